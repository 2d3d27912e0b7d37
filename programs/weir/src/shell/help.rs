//! `?`: what may follow here, a line each with what it means.

use super::objects::Objects;
use super::split::split;
use super::suggest::{self, Suggestion};
use super::tree::Position;
use crate::cli::kind::Kind;
use crate::render::{Screen, Style, harmless};

/// More names than these are shown as a number.
const MOST_NAMES: usize = 30;

/// What may follow the beginning of a line.
pub(crate) fn help(tree: &clap::Command, line: &str, objects: &Objects, screen: &Screen) -> String {
    let split = split(line);
    let Some((words, word, _)) = split.unfinished(line) else {
        return "  a comment: nothing is done\n".to_owned();
    };
    let mut words = words.to_vec();
    match Position::after(tree, &mut words, objects) {
        Err(ambiguous) => format!("  {}\n", harmless(&ambiguous.to_string())),
        Ok(position) => at(&position, word, objects, screen),
    }
}

fn at(position: &Position<'_>, word: &str, objects: &Objects, screen: &Screen) -> String {
    let mut lines = Vec::new();
    if let Some(argument) = position.awaited {
        value_lines(argument, word, objects, &mut lines);
    } else {
        if !word.starts_with('-') {
            lines.extend(suggest::commands(position, word).into_iter().map(pair));
            if let Some(argument) = position.next_value() {
                value_lines(argument, word, objects, &mut lines);
            }
        }
        if word.is_empty() || word.starts_with('-') {
            lines.extend(suggest::options(position, word).into_iter().map(pair));
        }
    }
    if lines.is_empty() && !word.is_empty() {
        return format!("  nothing here begins with \"{}\"\n", harmless(word));
    }
    if word.is_empty() && position.is_complete() {
        lines.push(("Enter".to_owned(), "does it".to_owned()));
    }
    draw(&lines, screen)
}

fn pair(suggestion: Suggestion) -> (String, String) {
    (suggestion.word, suggestion.about)
}

/// The argument itself when no word of it was begun, and the values that it may have.
fn value_lines(
    argument: &clap::Arg,
    word: &str,
    objects: &Objects,
    lines: &mut Vec<(String, String)>,
) {
    let names = argument
        .get_value_names()
        .and_then(|names| names.first())
        .map_or("VALUE", |name| name.as_str());
    if word.is_empty() {
        let about = argument
            .get_help()
            .map(ToString::to_string)
            .filter(|help| !help.is_empty());
        let about = about
            .or_else(|| Kind::of(argument).map(|kind| kind.sentence.to_owned()))
            .unwrap_or_default();
        lines.push((names.to_owned(), about));
    }
    let values = suggest::values(argument, word, objects);
    let more = values.len().saturating_sub(MOST_NAMES);
    let indent = if word.is_empty() { "  " } else { "" };
    lines.extend(
        values
            .into_iter()
            .take(MOST_NAMES)
            .map(|value| (format!("{indent}{}", value.word), value.about)),
    );
    if more > 0 {
        lines.push((format!("{indent}…"), format!("and {more} more")));
    }
}

fn draw(lines: &[(String, String)], screen: &Screen) -> String {
    let widest = lines
        .iter()
        .map(|(word, _)| word.chars().count())
        .max()
        .unwrap_or(0)
        .min(30);
    let mut text = String::new();
    for (word, about) in lines {
        let (word, mut about) = (harmless(word), harmless(about));
        let padding = " ".repeat(widest.saturating_sub(word.chars().count()));
        let room = screen
            .width
            .map_or(usize::MAX, |width| width.saturating_sub(widest + 5))
            .max(10);
        if about.chars().count() > room {
            about = about.chars().take(room - 1).chain(['…']).collect();
        }
        let line = format!(
            "  {}{padding}  {about}",
            screen.styled(&word, Style::Heading)
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}
