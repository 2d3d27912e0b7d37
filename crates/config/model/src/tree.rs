//! The file as a tree in which every key and value knows its place.
//!
//! The tree is built from saphyr-parser's events and not with saphyr's own `MarkedYaml`, for
//! three reasons: that tree copies the anchored node at every alias, so that ten lines of
//! aliases of aliases take all memory; it keeps one of two equal keys and forgets where the other
//! stood; and it has turned `null`, `yes` or `010` into values before one can ask for the text,
//! although whether `null` is a word is for the key table to say.
//!
//! All work is bounded before it is done: bytes, nodes (an alias counts as all that it stands
//! for) and depth. What cannot be read at all (syntax, control characters, tabs, a limit) gives
//! one error and no tree; equal keys are reported and the tree goes on with the first.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use crate::diagnostic::{Place, quote};
use crate::findings::{Segment, render};

/// Bounds on what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub bytes: usize,
    /// Commas and opening brackets: the parser keeps all tokens of a list or section in brackets
    /// until it ends, some 800 bytes for each of these.
    pub separators: usize,
    /// Keys, values, lists and sections together, aliases counted as what they stand for.
    pub nodes: usize,
    /// How deep lists and sections may be nested.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            separators: 500_000,
            nodes: 1_000_000,
            depth: 32,
        }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node<'t> {
    pub(crate) place: Place,
    pub(crate) content: Content<'t>,
}

/// What a value is, before its type is known.
#[derive(Debug, Clone)]
pub(crate) enum Content<'t> {
    /// Text as it stands in the file, and whether it stands there without quotes.
    Scalar {
        text: Cow<'t, str>,
        plain: bool,
    },
    List(Vec<Node<'t>>),
    Map(Vec<Entry<'t>>),
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'t> {
    pub(crate) key: Cow<'t, str>,
    pub(crate) place: Place,
    pub(crate) value: Node<'t>,
}

impl<'t> Node<'t> {
    /// Nothing stands behind the key.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, plain: true } if matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub(crate) fn entries(&self) -> &[Entry<'t>] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Node<'t>] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry<'t>> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    pub(crate) fn value(&self, key: &str) -> Option<&Node<'t>> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// Where the value of `path` stands; of a section or list, where its key stands; of what is not
/// there, where the last key on the way stands.
pub(crate) fn place_in(root: &Node<'_>, path: &[Segment<'_>]) -> Place {
    let mut place = Place::START;
    let mut node = root;
    for segment in path {
        match segment {
            Segment::Key(key) => {
                let Some(entry) = node.entry(key) else { break };
                (node, place) = (&entry.value, entry.place);
            }
            Segment::Item(item) => {
                let Some(item) = node.items().get(*item) else {
                    break;
                };
                (node, place) = (item, item.place);
            }
        }
        if node.text().is_some() {
            place = node.place;
        }
    }
    place
}

/// Something about the form of the file, before any key is looked up.
#[derive(Debug)]
pub(crate) struct FormError {
    pub(crate) place: Place,
    /// The key that was being read; empty when it is about the whole file.
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) label: &'static str,
    pub(crate) help: String,
}

impl FormError {
    fn new(place: Place, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            place,
            path: String::new(),
            message: message.into(),
            label: "",
            help: help.into(),
        }
    }
}

/// More equal keys than these are dropped in silence; a file with so many has enough errors.
const MOST_DUPLICATES: usize = 200;

/// What reading gives: the root (an empty section for an empty file), and equal keys.
pub(crate) struct Tree<'t> {
    pub(crate) root: Node<'t>,
    pub(crate) duplicates: Vec<FormError>,
}

/// Read the text into a tree, or say the one thing that makes it unreadable.
pub(crate) fn read<'t>(text: &'t str, limits: &Limits) -> Result<Tree<'t>, FormError> {
    look_for_too_many(text, limits)?;
    look_for_bad_characters(text)?;
    let mut builder = Builder {
        limits,
        nodes: 0,
        open: Vec::new(),
        root: None,
        anchors: HashMap::new(),
        duplicates: Vec::new(),
    };
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let taken = next
            .map_err(|error| syntax_error(&error))
            .and_then(|(event, span)| builder.take(event, span));
        taken.map_err(|error| FormError {
            path: builder.path(None),
            ..error
        })?;
    }
    let nothing = Node {
        place: Place::START,
        content: Content::Map(Vec::new()),
    };
    Ok(Tree {
        root: builder.root.unwrap_or(nothing),
        duplicates: builder.duplicates,
    })
}

fn syntax_error(error: &ScanError) -> FormError {
    let marker = error.marker();
    let place = Place {
        line: count(marker.line()).max(1),
        column: count(marker.col()).saturating_add(1),
        width: 1,
    };
    let message = format!("this is not YAML: {}", error.info());
    let mut found = FormError::new(
        place,
        message,
        "look at the indentation, brackets and quotes here and in the line before",
    );
    found.label = "reading stopped here";
    found
}

/// Bounds that must hold before the parser sees the text.
fn look_for_too_many(text: &str, limits: &Limits) -> Result<(), FormError> {
    let separators = text
        .bytes()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
        .count();
    if separators > limits.separators {
        let message = format!(
            "the file has {separators} commas and opening brackets, more than the {} that are read",
            limits.separators
        );
        return Err(FormError::new(
            Place::START,
            message,
            "write large lists and sections with one item in a line, without brackets",
        ));
    }
    Ok(())
}

/// YAML 1.2, 5.1 forbids control characters and 6.1 tabs in indentation; parsers find them late
/// and with odd messages.
fn look_for_bad_characters(text: &str) -> Result<(), FormError> {
    for (number, line) in (1u32..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let place = |index: usize| Place {
            line: number,
            column: count(index).saturating_add(1),
            width: 1,
        };
        if line.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            let bad = line
                .chars()
                .enumerate()
                .find(|(_, c)| c.is_ascii_control() && *c != '\t');
            if let Some((index, character)) = bad {
                let message = format!(
                    "control character U+{:04X} in the file",
                    u32::from(character)
                );
                return Err(FormError::new(
                    place(index),
                    message,
                    "remove it; a configuration is plain text in UTF-8",
                ));
            }
            let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
            let rest = line.get(indentation..).unwrap_or("");
            if let Some(index) = line.get(..indentation).and_then(|it| it.find('\t'))
                && !rest.is_empty()
                && !rest.starts_with('#')
            {
                return Err(FormError::new(
                    place(index),
                    "a tab in the indentation",
                    "indent with spaces",
                ));
            }
        }
    }
    Ok(())
}

/// Lines and columns beyond 2^32 cannot occur within the byte limit.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn place_of(span: Span) -> Place {
    let width = if span.end.line() == span.start.line() {
        span.end.col().saturating_sub(span.start.col())
    } else {
        1
    };
    Place {
        line: count(span.start.line()).max(1),
        column: count(span.start.col()).saturating_add(1),
        width: count(width).max(1),
    }
}

/// A list or section whose end has not been seen yet.
struct Open<'t> {
    place: Place,
    anchor: usize,
    /// Nodes counted when it began, so that its size is known when it ends.
    nodes_before: usize,
    content: Content<'t>,
    /// The key that waits for its value.
    key: Option<(Cow<'t, str>, Place)>,
}

struct Builder<'t, 'l> {
    limits: &'l Limits,
    nodes: usize,
    open: Vec<Open<'t>>,
    root: Option<Node<'t>>,
    /// Anchored nodes that are complete, with their sizes.
    anchors: HashMap<usize, (Node<'t>, usize)>,
    duplicates: Vec<FormError>,
}

impl<'t> Builder<'t, '_> {
    fn take(&mut self, event: Event<'t>, span: Span) -> Result<(), FormError> {
        let place = place_of(span);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => Err(FormError::new(
                place,
                "a second document begins here",
                "write one document to a file, without a second `---`",
            )),
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(id) => self.alias(id, place),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.is_some(), place)?;
                self.grow(1, place)?;
                let node = Node {
                    place,
                    content: Content::Scalar {
                        text,
                        plain: style == ScalarStyle::Plain,
                    },
                };
                self.remember(anchor, &node, 1)?;
                self.place_node(node)
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(Content::List(Vec::new()), anchor, tag.is_some(), place)
            }
            Event::MappingStart(anchor, tag) => {
                self.begin(Content::Map(Vec::new()), anchor, tag.is_some(), place)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn grow(&mut self, nodes: usize, place: Place) -> Result<(), FormError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= self.limits.nodes {
            return Ok(());
        }
        let message = format!(
            "the file has more than {} keys and values",
            self.limits.nodes
        );
        Err(FormError::new(
            place,
            message,
            "is this the right file? Aliases count as all that they stand for",
        ))
    }

    fn begin(
        &mut self,
        content: Content<'t>,
        anchor: usize,
        tagged: bool,
        place: Place,
    ) -> Result<(), FormError> {
        refuse_tag(tagged, place)?;
        if self.open.len() >= self.limits.depth {
            let message = format!(
                "lists and sections are nested more than {} deep",
                self.limits.depth
            );
            return Err(FormError::new(
                place,
                message,
                "the deepest key of the reference is 6 levels down",
            ));
        }
        self.refuse_as_key(place)?;
        let nodes_before = self.nodes;
        self.grow(1, place)?;
        let place = Place { width: 1, ..place };
        self.open.push(Open {
            place,
            anchor,
            nodes_before,
            content,
            key: None,
        });
        Ok(())
    }

    /// A list or section cannot stand where a key is due.
    fn refuse_as_key(&self, place: Place) -> Result<(), FormError> {
        match self.open.last() {
            Some(Open {
                content: Content::Map(_),
                key: None,
                ..
            }) => Err(FormError::new(
                place,
                "a list or section stands where a key should",
                "a key is a plain word, as in `mtu: 1500`",
            )),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), FormError> {
        let Some(mut open) = self.open.pop() else {
            return Ok(());
        };
        if let Content::Map(entries) = &mut open.content {
            self.drop_duplicates(entries);
        }
        let node = Node {
            place: open.place,
            content: open.content,
        };
        self.remember(
            open.anchor,
            &node,
            self.nodes.saturating_sub(open.nodes_before),
        )?;
        self.place_node(node)
    }

    /// What has an anchor is kept beside the tree, which costs its size once more.
    fn remember(&mut self, anchor: usize, node: &Node<'t>, size: usize) -> Result<(), FormError> {
        if anchor != 0 {
            self.grow(size, node.place)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(())
    }

    /// An alias is a copy, paid for out of the same budget before it is made.
    fn alias(&mut self, id: usize, place: Place) -> Result<(), FormError> {
        let size = self.anchors.get(&id).map(|(_, size)| *size);
        self.grow(size.unwrap_or(1), place)?;
        match self.anchors.get(&id) {
            Some((node, _)) => {
                let node = node.clone();
                if !matches!(node.content, Content::Scalar { .. }) {
                    self.refuse_as_key(place)?;
                }
                self.check_depth(&node, place)?;
                self.place_node(node)
            }
            None => Err(FormError::new(
                place,
                "an alias inside what it stands for",
                "write the value out",
            )),
        }
    }

    fn check_depth(&self, node: &Node<'t>, place: Place) -> Result<(), FormError> {
        if self.open.len().saturating_add(depth(node)) > self.limits.depth {
            return Err(FormError::new(
                place,
                "aliases are nested too deep",
                "write the value out",
            ));
        }
        Ok(())
    }

    fn place_node(&mut self, node: Node<'t>) -> Result<(), FormError> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.content {
            Content::List(items) => items.push(node),
            Content::Map(entries) => match open.key.take() {
                None => match node.content {
                    Content::Scalar { text, .. } => open.key = Some((text, node.place)),
                    _ => return self.refuse_as_key(node.place),
                },
                Some((key, place)) => entries.push(Entry {
                    key,
                    place,
                    value: at_key_when_empty(node, place),
                }),
            },
            Content::Scalar { .. } => {}
        }
        Ok(())
    }

    /// Keep the first of equal keys and report the others.
    fn drop_duplicates(&mut self, entries: &mut Vec<Entry<'t>>) {
        let mut first: HashMap<&str, Place> = HashMap::with_capacity(entries.len());
        let mut found = Vec::new();
        let mut second = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let earlier = *first.entry(&entry.key).or_insert(entry.place);
            if earlier == entry.place {
                continue;
            }
            second.push(index);
            if self.duplicates.len().saturating_add(found.len()) < MOST_DUPLICATES {
                let message = format!("the key {} stands here twice", quote(&entry.key));
                let help = format!("the first is in line {}; keep one of them", earlier.line);
                let path = self.path(Some(&entry.key));
                found.push(FormError {
                    place: entry.place,
                    path,
                    message,
                    label: "the second one",
                    help,
                });
            }
        }
        let mut second = second.into_iter().peekable();
        let mut index = 0;
        entries.retain(|_| {
            let dropped = second.next_if_eq(&index).is_some();
            index += 1;
            !dropped
        });
        self.duplicates.append(&mut found);
    }

    /// Where reading is: the keys and items that are open, and one more key.
    fn path(&self, last: Option<&str>) -> String {
        let mut segments = Vec::with_capacity(self.open.len() + 1);
        for open in &self.open {
            match (&open.content, &open.key) {
                (Content::List(items), _) => segments.push(Segment::Item(items.len())),
                (_, Some((key, _))) => segments.push(Segment::Key(key)),
                _ => {}
            }
        }
        segments.extend(last.map(Segment::Key));
        render(&segments)
    }
}

/// The parser places a missing value wherever the next word stands; point at its key instead.
fn at_key_when_empty<'t>(node: Node<'t>, key: Place) -> Node<'t> {
    match &node.content {
        Content::Scalar { text, plain: true }
            if text.is_empty()
                || text == "~" && node.place.width == 1 && node.place.line != key.line =>
        {
            Node { place: key, ..node }
        }
        _ => node,
    }
}

fn depth(node: &Node<'_>) -> usize {
    // Recursion is as deep as the limit on nesting lets a complete node be.
    let below = match &node.content {
        Content::Scalar { .. } => return 0,
        Content::List(items) => items.iter().map(depth).max(),
        Content::Map(entries) => entries.iter().map(|entry| depth(&entry.value)).max(),
    };
    below.unwrap_or(0).saturating_add(1)
}

fn refuse_tag(tagged: bool, place: Place) -> Result<(), FormError> {
    if tagged {
        return Err(FormError::new(
            place,
            "a YAML tag stands here",
            "remove the word with the `!`; types come from the key",
        ));
    }
    Ok(())
}
