//! The first pass: every key and value of the tree against the key table.
//!
//! The walk goes on after an error, so that all unknown keys, wrong types and impossible values
//! of a file come in one run. It goes only where the table goes, so it is as deep as the table.

use crate::device::Device;
use crate::diagnostic::{Place, quote};
use crate::findings::{Findings, Remark, Segment};
use crate::keys::{Key, Kind, MOST_NEXT_HOPS, Names, below, one_of};
use crate::suggest::nearest;
use crate::synonyms::{elsewhere, ours};
use crate::tree::{Content, Entry, Node};
use crate::value;

/// The file as a whole.
static ROOT: Key = Key {
    path: "",
    kind: Kind::Section,
    default: "",
    about: "",
    example: "interfaces: {xe0: {mtu: 1500}}",
    drivers: &[],
};

/// Check the whole tree.
pub(crate) fn walk(root: &Node<'_>, findings: &mut Findings<'_>) {
    Walker {
        findings,
        path: Vec::new(),
    }
    .node(&ROOT, root, root.place);
}

struct Walker<'n, 'f, 't> {
    findings: &'f mut Findings<'t>,
    path: Vec<Segment<'n>>,
}

impl<'n> Walker<'n, '_, '_> {
    fn node(&mut self, row: &'static Key, node: &'n Node<'_>, key: Place) {
        match row.kind {
            Kind::Section => self.section(row, node, key),
            Kind::Named(names) => self.named(row, node, names),
            Kind::List(least, most) => self.list(row, node, least, most),
            Kind::Via | Kind::LabelVia if matches!(node.content, Content::List(_)) => {
                self.list(row, node, 1, MOST_NEXT_HOPS)
            }
            Kind::Companion => drop(self.map(row, node)),
            Kind::Unsupported => self.unsupported(row, key),
            _ => self.scalar(row, node),
        }
    }

    /// Report a value, and tell later passes not to judge it.
    fn fault(&mut self, row: &Key, place: Place, message: String, help: Option<String>) {
        let example = || format!("for example `{}: {}`", row.name(), row.example);
        let example = if row.path.ends_with("[]") || row.path.is_empty() {
            format!("for example `{}`", row.example)
        } else {
            example()
        };
        let help = help.unwrap_or_else(|| match row.kind {
            Kind::Sha256 => {
                "`printf %s TOKEN | sha256sum` prints the hash of a token of your own".to_owned()
            }
            _ => example,
        });
        self.findings.error(
            place,
            &self.path,
            Remark::new(message, format!("expected {}", row.kind.expected()), help),
        );
        self.findings.mark_broken(&self.path, row.path);
    }

    fn scalar(&mut self, row: &'static Key, node: &'n Node<'_>) {
        let (text, plain) = match &node.content {
            Content::Scalar { text, plain } => (text, *plain),
            Content::List(_) => {
                return self.fault(row, node.place, "a list stands here".into(), None);
            }
            Content::Map(_) => {
                let help = matches!(row.kind, Kind::Via | Kind::LabelVia)
                    .then(|| "write it as a list of one: `- next-hop: …`".to_owned());
                return self.fault(
                    row,
                    node.place,
                    "a section of keys stands here".into(),
                    help,
                );
            }
        };
        let is_word = matches!(row.kind, Kind::Word(words) if words.contains(&text.as_ref()));
        if !is_word && (node.is_empty() || text.is_empty()) {
            return self.fault(row, node.place, "there is no value here".into(), None);
        }
        if let Err(problem) = value::check(row.kind, text, plain) {
            self.fault(row, node.place, problem.message, problem.help);
        }
    }

    fn list(&mut self, row: &'static Key, node: &'n Node<'_>, least: usize, most: usize) {
        let Content::List(items) = &node.content else {
            if node.is_empty() && least == 0 {
                return;
            }
            // A list of sections is shown by its example: the value alone would be refused as an item, too.
            let item = below(row.path).first();
            let holds_values = item.is_none_or(|item| !matches!(item.kind, Kind::Section));
            let written = node
                .text()
                .filter(|text| holds_values && !text.is_empty() && !node.is_empty());
            let help = written.map(|text| {
                format!(
                    "write it as a list of one: `[{}]`",
                    text.chars().take(48).collect::<String>()
                )
            });
            let what = if matches!(node.content, Content::Map(_)) {
                "a section of keys"
            } else {
                "one value"
            };
            let what = if node.is_empty() { "nothing" } else { what };
            return self.fault(
                row,
                node.place,
                format!("{what} stands here, not a list"),
                help,
            );
        };
        if items.len() < least || items.len() > most {
            let is_via = matches!(row.kind, Kind::Via | Kind::LabelVia);
            let bound = if is_via {
                format!(" next hops; there are {least} to {most}")
            } else {
                " items".to_owned()
            };
            self.fault(
                row,
                node.place,
                format!("this list has {}{bound}", items.len()),
                None,
            );
        }
        let Some(item_row) = below(row.path).first() else {
            return;
        };
        for (index, item) in items.iter().enumerate() {
            if self.findings.is_full() {
                return;
            }
            self.path.push(Segment::Item(index));
            self.node(item_row, item, item.place);
            self.path.pop();
        }
    }

    fn named(&mut self, row: &'static Key, node: &'n Node<'_>, names: Names) {
        let Some(entries) = self.map(row, node) else {
            return;
        };
        let Some(child) = below(row.path).first() else {
            return;
        };
        for entry in entries {
            if self.findings.is_full() {
                return;
            }
            self.path.push(Segment::Key(&entry.key));
            if let Err(problem) = value::name(names, &entry.key) {
                let remark = Remark::new(
                    problem.message,
                    "not a name",
                    problem.help.unwrap_or_default(),
                );
                self.findings.error(entry.place, &self.path, remark);
            }
            self.node(child, &entry.value, entry.place);
            self.path.pop();
        }
    }

    /// The entries of a section; nothing at all is an empty one.
    fn map(&mut self, row: &'static Key, node: &'n Node<'_>) -> Option<&'n [Entry<'n>]> {
        match &node.content {
            Content::Map(entries) => Some(entries),
            Content::Scalar { .. } if node.is_empty() => Some(&[]),
            Content::Scalar { text, .. } => {
                self.fault(
                    row,
                    node.place,
                    format!("{} stands here, not a section of keys", quote(text)),
                    None,
                );
                None
            }
            Content::List(_) => {
                self.fault(
                    row,
                    node.place,
                    "a list stands here, not a section of keys".into(),
                    None,
                );
                None
            }
        }
    }

    fn section(&mut self, row: &'static Key, node: &'n Node<'_>, key: Place) {
        let Some(entries) = self.map(row, node) else {
            return;
        };
        let rows = below(row.path);
        let driver = node
            .value("driver")
            .and_then(Node::text)
            .and_then(|text| Device::WORDS.iter().copied().find(|driver| *driver == text));
        for entry in entries {
            if self.findings.is_full() {
                return;
            }
            self.path.push(Segment::Key(&entry.key));
            match rows.iter().find(|row| row.name() == entry.key) {
                Some(row) if foreign(row, driver) => self.foreign_key(row, entry.place, driver),
                Some(row) => self.node(row, &entry.value, entry.place),
                None => self.unknown_key(row, rows, entry),
            }
            self.path.pop();
        }
        for row in rows
            .iter()
            .filter(|row| row.is_required() && !lacks_driver(row, driver))
        {
            if !self.has_key(row, node) {
                self.missing_key(row, key);
            }
        }
    }

    fn has_key(&self, row: &Key, node: &Node<'_>) -> bool {
        let mut path = self.path.clone();
        path.push(Segment::Key(row.name()));
        // A mistyped key counts as there: its typo has been reported.
        node.value(row.name()).is_some() || self.findings.is_broken(&path)
    }

    fn missing_key(&mut self, row: &'static Key, place: Place) {
        self.path.push(Segment::Key(row.name()));
        // An example here would be pasted, and its token would be known to everyone.
        let help = match row.kind {
            Kind::Sha256 => {
                "`printf %s TOKEN | sha256sum` prints the hash of a token of your own".to_owned()
            }
            _ => format!("add `{}: {}`", row.name(), row.example),
        };
        self.findings.error(
            place,
            &self.path,
            Remark::new(
                format!("the key `{}` is missing", row.name()),
                format!("expected {}", row.kind.expected()),
                help,
            ),
        );
        self.findings.mark_broken(&self.path, row.path);
        self.path.pop();
    }

    fn foreign_key(&mut self, row: &'static Key, place: Place, driver: Option<&str>) {
        let message = format!(
            "the key `{}` is not for driver {}",
            row.name(),
            driver.unwrap_or("?")
        );
        let help = format!("remove it, or change the driver to {}", one_of(row.drivers));
        self.findings
            .error(place, &self.path, Remark::new(message, "", help));
        self.findings.mark_broken(&self.path, row.path);
    }

    fn unknown_key(&mut self, parent: &'static Key, rows: &[&'static Key], entry: &'n Entry<'_>) {
        let known = || {
            rows.iter()
                .filter(|row| row.kind != Kind::Unsupported)
                .map(|row| row.name())
        };
        if let Some(ours) = ours(parent.path, &entry.key) {
            let message = format!("`{ours}` is given twice, here as {}", quote(&entry.key));
            return self.findings.error(
                entry.place,
                &self.path,
                Remark::new(message, "the same key", "keep one of the two".to_owned()),
            );
        }
        let near = nearest(&entry.key, known());
        let help = match (elsewhere(parent.path, &entry.key), near) {
            _ if entry.key == "<<" => "merge keys are not read; write the keys out".to_owned(),
            (Some(help), _) => help.to_owned(),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => format!(
                "the keys here are {}",
                one_of(&known().collect::<Vec<_>>()).replace(" or ", " and ")
            ),
        };
        let label = if parent.path.is_empty() {
            "not a section of this file".to_owned()
        } else {
            "not a key of this section".to_owned()
        };
        self.findings.error(
            entry.place,
            &self.path,
            Remark::new(format!("unknown key {}", quote(&entry.key)), label, help),
        );
        if let Some(row) = near.and_then(|near| rows.iter().find(|row| row.name() == near)) {
            let mut path = self.path.clone();
            path.pop();
            path.push(Segment::Key(row.name()));
            self.findings.mark_broken(&path, row.path);
        }
    }

    fn unsupported(&mut self, row: &'static Key, place: Place) {
        let message = format!(
            "`{}` is known to vppcfg, but not supported by this version",
            row.name()
        );
        self.findings.unsupported(
            place,
            &self.path,
            message,
            "remove it, or skip what is not supported; the rest of the file can stay",
        );
    }
}

/// The row is for other drivers than the one that is set.
fn foreign(row: &Key, driver: Option<&str>) -> bool {
    driver.is_some_and(|driver| !row.drivers.is_empty() && !row.drivers.contains(&driver))
}

/// The row cannot be asked for: it is for other drivers, or the driver is not known.
fn lacks_driver(row: &Key, driver: Option<&str>) -> bool {
    !row.drivers.is_empty() && driver.is_none_or(|driver| !row.drivers.contains(&driver))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;
    use crate::keys::KEYS;
    use crate::tree::{Limits, read};

    #[test]
    fn every_example_and_default_of_the_table_is_right() {
        for row in KEYS.iter().filter(|row| row.kind != Kind::Unsupported) {
            let default = (!row.is_required() && !row.default.is_empty()).then_some(row.default);
            for text in default.into_iter().chain([row.example]) {
                let Ok(tree) = read(text, &Limits::default()) else {
                    panic!("{text}")
                };
                let mut findings = Findings::new(Source::new("table", text));
                Walker {
                    findings: &mut findings,
                    path: Vec::new(),
                }
                .node(row, &tree.root, Place::START);
                assert!(findings.finish().is_ok(), "{}: {text}", row.path);
            }
        }
    }

    #[test]
    fn every_row_but_the_first_level_has_its_parent_in_the_table() {
        for row in KEYS.iter() {
            let parent = row.parent();
            if !parent.is_empty() {
                assert!(
                    KEYS.iter().any(|other| other.path == parent),
                    "{}",
                    row.path
                );
            }
        }
    }
}
