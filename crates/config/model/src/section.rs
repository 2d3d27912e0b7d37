//! What a declared key is made of: `#[derive(Section)]` (crate `weir-config-derive`) turns each
//! field of a section into calls of these traits.
//!
//! A [`Section`] has keys; a [`Value`] is a scalar, a section, or a list, a map or an option of
//! values. Each has three operations: it adds its rows to the key table, it reads itself from a
//! node of the file, and it writes itself as JSON.
//!
//! Reading is the second pass over a file (see `build.rs`) and reports nothing: the walk has
//! reported every invalid value already. An invalid value reads as `None`, so that its key has its
//! default.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use serde_json::{Map, Value as Json};

use crate::access_list;
use crate::keys::{Key, Kind, Names, REQUIRED};
use crate::model::{Path, Via};
use crate::scalar::{Host, Ipv4Range, MacAddr, PortRange, Sha256, decimal};
use crate::tree::{Content, Node};
use crate::value;

/// A key as its field declares it.
pub(crate) struct Declared<'a> {
    /// The path of its section; empty at the top of the file.
    pub(crate) parent: &'a str,
    pub(crate) name: &'static str,
    pub(crate) about: &'a str,
    /// Empty = that of the value's section.
    pub(crate) example: &'a str,
    /// Documentation of an item of a list of scalars.
    pub(crate) item: &'a str,
    /// The kind of the scalar, where the type does not determine it.
    pub(crate) kind: Option<Kind>,
    /// The least and the largest number of items.
    pub(crate) items: Option<(usize, usize)>,
    pub(crate) names: Option<Names>,
    /// The default as JSON; none of a required key.
    pub(crate) default: Option<Json>,
    /// What the section is read for; see `on` of the derive macro.
    pub(crate) scope: &'static str,
}

impl Declared<'_> {
    fn path(&self) -> &'static str {
        let path = match (self.parent, self.name) {
            (parent, "[]") => format!("{parent}[]"),
            ("", name) => name.to_owned(),
            (parent, name) => format!("{parent}.{name}"),
        };
        // The table is made once and kept.
        path.leak()
    }

    fn row(&self, kind: Kind, about: &str, example: &str) -> Key {
        let text = |text: &str| -> &'static str { text.to_owned().leak() };
        let default = match (&self.default, kind) {
            (None, _) => REQUIRED,
            // An empty list that a file cannot have stands for an absent key.
            (Some(_), Kind::List(1.., _)) => "",
            (Some(_), Kind::List(0, _)) => "[]",
            (Some(_), Kind::Named(_)) | (Some(Json::Object(_)), _) => "{}",
            (Some(Json::Null), _) => "",
            (Some(Json::String(value)), _) => text(value),
            (Some(value), _) => value.to_string().leak(),
        };
        Key {
            path: self.path(),
            kind,
            default,
            about: text(about),
            example: text(example),
            drivers: &[],
        }
    }

    /// The key of an item of this list or map.
    fn below<'b>(
        &self,
        path: &'b str,
        name: &'static str,
        about: &'b str,
        example: &'b str,
    ) -> Declared<'b> {
        Declared {
            parent: path,
            name,
            about,
            example,
            item: "",
            kind: self.kind,
            items: None,
            names: None,
            default: Some(Json::Null),
            scope: self.scope,
        }
    }
}

/// What a key can hold.
pub(crate) trait Value: Sized {
    /// Adds the row of the key, and those of the keys below it.
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>);

    /// The value of a node. A scalar is of `kind`, where the type does not determine it.
    fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self>;

    /// The value as JSON, null when there is nothing to write; `full` = with keys that are at their
    /// default.
    fn write(&self, full: bool) -> Json;
}

/// Keys under one name.
pub(crate) trait Section: Sized {
    /// Documentation.
    const ABOUT: &'static str;
    /// An example of a section.
    const EXAMPLE: &'static str;

    /// Adds the rows of the keys.
    fn key_rows(path: &str, scope: &'static str, rows: &mut Vec<Key>);

    /// The section that a node holds, with the keys that exist for the purpose `scope`, all when it
    /// is empty; `None` when a required key cannot be read.
    fn read_keys(node: &Node<'_>, scope: &str) -> Option<Self>;

    /// Writes the keys that exist for the purpose `scope`; all when it is empty.
    fn write_keys(&self, full: bool, scope: &str, map: &mut Map<String, Json>);
}

impl<T: Section> Value for T {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        let or = |own: &str, general: &'static str| -> String {
            if own.is_empty() { general } else { own }.to_owned()
        };
        let (about, example) = (
            or(declared.about, T::ABOUT),
            or(declared.example, T::EXAMPLE),
        );
        let row = declared.row(Kind::Section, &about, &example);
        rows.push(row);
        T::key_rows(row.path, declared.scope, rows);
    }

    fn read(node: &Node<'_>, _kind: Option<Kind>) -> Option<Self> {
        T::read_keys(node, "")
    }

    fn write(&self, full: bool) -> Json {
        to_json(self, full)
    }
}

/// A section as JSON.
pub(crate) fn to_json<T: Section>(section: &T, full: bool) -> Json {
    let mut map = Map::new();
    section.write_keys(full, "", &mut map);
    Json::Object(map)
}

/// Writes a key, unless there is nothing to write.
pub(crate) fn insert(map: &mut Map<String, Json>, name: &str, value: Json) {
    if !value.is_null() {
        map.insert(name.to_owned(), value);
    }
}

/// The row of the key that selects the variant of a section.
pub(crate) fn tag_row(
    path: &str,
    name: &'static str,
    words: &'static [&'static str],
    about: &str,
    example: &str,
) -> Key {
    let declared = Declared {
        parent: path,
        name,
        about,
        example,
        item: "",
        kind: None,
        items: None,
        names: None,
        default: None,
        scope: "",
    };
    declared.row(Kind::Word(words), about, example)
}

/// Adds the rows of one variant, whose word is `word`. A key that another variant has, too, is one
/// row for both.
pub(crate) fn merge(
    rows: &mut Vec<Key>,
    path: &str,
    word: &'static str,
    add: impl FnOnce(&mut Vec<Key>),
) {
    let mut of_variant = Vec::new();
    add(&mut of_variant);
    for mut row in of_variant {
        let words = rows
            .iter_mut()
            .find(|there| there.path == row.path)
            .map(|there| &mut there.drivers);
        match words {
            Some(words) => *words = [words, &[word][..]].concat().leak(),
            None => {
                if row.parent() == path {
                    row.drivers = vec![word].leak();
                }
                rows.push(row);
            }
        }
    }
}

/// The text of a scalar, unless nothing stands behind the key or it is not of this kind.
pub(crate) fn text_of<'n>(node: &'n Node<'_>, kind: Kind) -> Option<&'n str> {
    let Content::Scalar { text, plain } = &node.content else {
        return None;
    };
    let is_word = matches!(kind, Kind::Word(words) if words.contains(&text.as_ref()));
    let is_valid = is_word
        || (!text.is_empty() && !node.is_empty() && value::check(kind, text, *plain).is_ok());
    is_valid.then_some(text)
}

pub(crate) fn scalar_row(declared: &Declared<'_>, kind: Option<Kind>, rows: &mut Vec<Key>) {
    // A type without a kind of its own is declared with one; a test reads every row's example.
    let kind = declared.kind.or(kind).unwrap_or(Kind::Unsupported);
    let about = if declared.about.is_empty() {
        "One of them."
    } else {
        declared.about
    };
    rows.push(declared.row(kind, about, declared.example));
}

/// `Value` for types that are written as text, with the kind of each, if the type determines it.
macro_rules! text_values {
    ($($type:ty: $kind:expr),* $(,)?) => { $(
        impl $crate::section::Value for $type {
            fn rows(declared: &$crate::section::Declared<'_>, rows: &mut Vec<$crate::keys::Key>) {
                $crate::section::scalar_row(declared, $kind, rows);
            }

            fn read(
                node: &$crate::tree::Node<'_>,
                kind: Option<$crate::keys::Kind>,
            ) -> Option<Self> {
                $crate::section::text_of(node, kind.or($kind)?)?.parse().ok()
            }

            fn write(&self, _full: bool) -> serde_json::Value {
                serde_json::Value::String(self.to_string())
            }
        }
    )* };
}
pub(crate) use text_values;

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl Value for $type {
            fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
                scalar_row(declared, None, rows);
            }

            fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self> {
                decimal(text_of(node, kind?)?)
            }

            fn write(&self, _full: bool) -> Json {
                (*self).into()
            }
        }
    )* };
}

numbers!(u8, u16, u32, u64);

text_values!(
    String: None,
    IpAddr: Some(Kind::Ip),
    MacAddr: Some(Kind::UnicastMac),
    Host: Some(Kind::Host),
    Sha256: Some(Kind::Sha256),
    Ipv4Range: Some(Kind::AddressRange),
    PortRange: Some(Kind::PortRange),
);

impl Value for IpNet {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        scalar_row(declared, None, rows);
    }

    fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self> {
        let text = text_of(node, kind?)?;
        match kind {
            Some(Kind::AnyPrefix) => access_list::prefix(text),
            _ => text.parse().ok(),
        }
    }

    fn write(&self, _full: bool) -> Json {
        Json::String(self.to_string())
    }
}

impl Value for PathBuf {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        scalar_row(declared, Some(Kind::File(4095)), rows);
    }

    fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self> {
        text_of(node, kind.unwrap_or(Kind::File(4095))).map(Self::from)
    }

    fn write(&self, _full: bool) -> Json {
        // A path that is not UTF-8 can come from no file.
        self.to_string_lossy().into()
    }
}

/// A section whose keys belong to another part of the router.
impl Value for Json {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        rows.push(declared.row(Kind::Companion, declared.about, declared.example));
    }

    fn read(node: &Node<'_>, _kind: Option<Kind>) -> Option<Self> {
        (!node.is_empty()).then(|| crate::companion::value(node))
    }

    fn write(&self, _full: bool) -> Json {
        self.clone()
    }
}

impl Value for bool {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        scalar_row(declared, Some(Kind::Truth), rows);
    }

    fn read(node: &Node<'_>, _kind: Option<Kind>) -> Option<Self> {
        value::truth(text_of(node, Kind::Truth)?)
    }

    fn write(&self, _full: bool) -> Json {
        (*self).into()
    }
}

impl<T: Value> Value for Option<T> {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        T::rows(declared, rows);
    }

    fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self> {
        T::read(node, kind).map(Some)
    }

    fn write(&self, full: bool) -> Json {
        self.as_ref().map_or(Json::Null, |value| value.write(full))
    }
}

fn list_rows<T: Value>(declared: &Declared<'_>, rows: &mut Vec<Key>) {
    let (least, most) = declared.items.unwrap_or((0, usize::MAX));
    let row = declared.row(Kind::List(least, most), declared.about, declared.example);
    rows.push(row);
    T::rows(
        &declared.below(row.path, "[]", declared.item, first_item(declared.example)),
        rows,
    );
}

/// The first item of an example of a list of scalars; empty of a list of sections, which have
/// examples of their own.
fn first_item(example: &str) -> &str {
    let items = example.trim_start_matches('[').trim_end_matches(']');
    if items.starts_with('{') {
        return "";
    }
    items.split(", ").next().unwrap_or(items)
}

macro_rules! lists {
    ($($list:ident: $($bound:ident),*);*) => { $(
        impl<T: Value $(+ $bound)*> Value for $list<T> {
            fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
                list_rows::<T>(declared, rows);
            }

            fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self> {
                let items = node.items().iter();
                Some(items.filter_map(|item| T::read(item, kind)).collect())
            }

            fn write(&self, full: bool) -> Json {
                if self.is_empty() {
                    return Json::Null;
                }
                self.iter().map(|item| item.write(full)).collect()
            }
        }
    )* };
}

lists!(Vec: ; BTreeSet: Ord);

impl<K: FromStr + Display + Ord, T: Value> Value for BTreeMap<K, T> {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        let names = declared.names.unwrap_or(Names::Interface);
        let row = declared.row(Kind::Named(names), declared.about, declared.example);
        rows.push(row);
        T::rows(&declared.below(row.path, "*", "", ""), rows);
    }

    fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self> {
        let entries = node.entries().iter();
        let read = entries
            .filter_map(|entry| Some((entry.key.parse().ok()?, T::read(&entry.value, kind)?)));
        Some(read.collect())
    }

    fn write(&self, full: bool) -> Json {
        if self.is_empty() {
            return Json::Null;
        }
        let entries = self
            .iter()
            .map(|(key, value)| (key.to_string(), value.write(full)));
        Json::Object(entries.collect())
    }
}

impl Value for Via {
    fn rows(declared: &Declared<'_>, rows: &mut Vec<Key>) {
        scalar_row(declared, None, rows);
        let path = declared.path();
        Path::rows(&declared.below(path, "[]", "", ""), rows);
    }

    fn read(node: &Node<'_>, kind: Option<Kind>) -> Option<Self> {
        if let Content::List(_) = node.content {
            return Vec::read(node, None).map(Self::Paths);
        }
        let text = text_of(node, kind?)?;
        let one = || Some(Self::Paths(vec![Path::to(value::neighbor(text).ok()?)]));
        Self::of_word(text).or_else(one)
    }

    fn write(&self, full: bool) -> Json {
        match self {
            Self::Paths(paths) | Self::Resilient(paths) => paths.write(full),
            Self::Blackhole | Self::Unreachable | Self::Prohibit => Json::String(self.to_string()),
        }
    }
}
