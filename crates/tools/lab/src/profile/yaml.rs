//! A YAML file as a tree with line numbers, built from the parser's events.
//!
//! Bounded: at most 1 MiB, 100,000 nodes, depth 16; anchors and aliases are refused, since a
//! profile needs none and they are the usual way to make a small file large.

use saphyr_parser::{Event, Parser};

/// A value and the line it starts on.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) content: Content,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(String, usize, Node)>),
}

const MOST_BYTES: usize = 1 << 20;
const MOST_NODES: usize = 100_000;
const MOST_DEPTH: usize = 16;

/// Parses one document; the error is a line number and a sentence.
pub(crate) fn parse(text: &str) -> Result<Node, (usize, String)> {
    if text.len() > MOST_BYTES {
        return Err((
            1,
            format!(
                "the file has {} bytes: at most {MOST_BYTES} are read",
                text.len()
            ),
        ));
    }
    let mut events = Parser::new_from_str(text);
    let mut nodes = 0;
    while let Some(event) = events.next() {
        let (event, span) =
            event.map_err(|error| (error.marker().line(), error.info().to_owned()))?;
        match event {
            Event::StreamStart | Event::DocumentStart(_) => {}
            Event::StreamEnd | Event::DocumentEnd => break,
            first => return node(first, span.start.line(), &mut events, &mut nodes, 0),
        }
    }
    Err((1, "the file is empty: a profile has `streams:`".to_owned()))
}

type Events<'t> = Parser<'t, saphyr_parser::StrInput<'t>>;

fn next<'t>(events: &mut Events<'t>) -> Result<(Event<'t>, usize), (usize, String)> {
    match events.next() {
        Some(Ok((event, span))) => Ok((event, span.start.line())),
        Some(Err(error)) => Err((error.marker().line(), error.info().to_owned())),
        None => Err((1, "the file ends early".to_owned())),
    }
}

fn node(
    first: Event<'_>,
    line: usize,
    events: &mut Events<'_>,
    nodes: &mut usize,
    depth: usize,
) -> Result<Node, (usize, String)> {
    *nodes += 1;
    if *nodes > MOST_NODES || depth > MOST_DEPTH {
        return Err((
            line,
            format!("too large: at most {MOST_NODES} values, {MOST_DEPTH} levels deep"),
        ));
    }
    let content = match first {
        Event::Scalar(text, ..) => Content::Scalar(text.into_owned()),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                let (event, line) = next(events)?;
                if matches!(event, Event::SequenceEnd) {
                    break;
                }
                items.push(node(event, line, events, nodes, depth + 1)?);
            }
            Content::List(items)
        }
        Event::MappingStart(..) => {
            let mut entries: Vec<(String, usize, Node)> = Vec::new();
            loop {
                let (event, line) = next(events)?;
                let key = match event {
                    Event::MappingEnd => break,
                    Event::Scalar(text, ..) => text.into_owned(),
                    _ => return Err((line, "a key must be a word".to_owned())),
                };
                if entries.iter().any(|(other, ..)| *other == key) {
                    return Err((line, format!("{key} is given twice")));
                }
                let (event, at) = next(events)?;
                let value = node(event, at, events, nodes, depth + 1)?;
                entries.push((key, line, value));
            }
            Content::Map(entries)
        }
        Event::Alias(_) => return Err((line, "aliases are not supported in profiles".to_owned())),
        _ => return Err((line, "not a value".to_owned())),
    };
    Ok(Node { line, content })
}
