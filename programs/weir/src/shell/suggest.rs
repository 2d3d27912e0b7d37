//! What may follow: the answer to Tab, to `?` and to the completion scripts.
//!
//! Suggestions come from the table of commands (names, options, words that an argument may have)
//! and from the names that exist. Other spellings of a command are only suggested when the
//! command's own name does not begin as the word does: `show hard` finds `hardware`, `show arp`
//! finds `arp`.

use std::fs;
use std::path::Path;

use clap::{Arg, Command};

use super::objects::Objects;
use super::tree::{Position, takes_value};
use crate::cli::kind::{Kind, Source};

/// More files of one folder are not looked at.
const MOST_FILES: usize = 1000;

/// More values are nothing to choose from.
const MOST_VALUES: usize = 500;

/// A word that may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suggestion {
    /// The word.
    pub(crate) word: String,
    /// What it means; may be empty.
    pub(crate) about: String,
    /// Whether the word goes on: a folder, whose files come next.
    pub(crate) goes_on: bool,
}

impl Suggestion {
    fn new(word: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            word: word.into(),
            about: about.into(),
            goes_on: false,
        }
    }
}

/// Whether files may follow: shells complete those better themselves.
pub(crate) fn files_may_follow(position: &Position<'_>) -> Option<Source> {
    let argument = position.awaited.or_else(|| position.next_value())?;
    Kind::of(argument)
        .map(|kind| kind.source)
        .filter(|source| matches!(source, Source::Files | Source::Folders))
}

/// The words that begin with `word` and may stand at `position`.
pub(crate) fn suggest(position: &Position<'_>, word: &str, objects: &Objects) -> Vec<Suggestion> {
    if let Some(argument) = position.awaited {
        return values(argument, word, objects);
    }
    if word.starts_with('-') && !position.only_values {
        return options(position, word);
    }
    let mut suggestions = commands(position, word);
    if let Some(argument) = position.next_value() {
        suggestions.extend(values(argument, word, objects));
    }
    suggestions
}

/// The commands that begin so; those that are hidden, never.
pub(crate) fn commands(position: &Position<'_>, word: &str) -> Vec<Suggestion> {
    let about = |command: &Command| {
        command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let visible = || {
        position
            .subcommands()
            .filter(|command| !command.is_hide_set())
    };
    let named = visible().filter(|command| command.get_name().starts_with(word));
    let mut suggestions: Vec<_> = named
        .map(|command| Suggestion::new(command.get_name(), about(command)))
        .collect();
    if suggestions.is_empty() {
        let first_alias = |command: &Command| {
            command
                .get_all_aliases()
                .find(|alias| alias.starts_with(word))
                .map(str::to_owned)
        };
        suggestions = visible()
            .filter_map(|command| Some(Suggestion::new(first_alias(command)?, about(command))))
            .collect();
    }
    suggestions
}

/// The options that begin so.
pub(crate) fn options(position: &Position<'_>, word: &str) -> Vec<Suggestion> {
    let about = |argument: &Arg| {
        argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let options = position
        .options()
        .filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()));
    let names =
        options.filter_map(|argument| Some((argument, format!("--{}", argument.get_long()?))));
    names
        .filter(|(_, name)| name.starts_with(word))
        .map(|(argument, name)| Suggestion::new(name, about(argument)))
        .collect()
}

/// The values of an argument that begin so.
pub(crate) fn values(argument: &Arg, word: &str, objects: &Objects) -> Vec<Suggestion> {
    if !takes_value(argument) {
        return Vec::new();
    }
    let possible = argument
        .get_possible_values()
        .into_iter()
        .filter(|value| !value.is_hide_set());
    let about = |value: &clap::builder::PossibleValue| {
        value
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let mut found: Vec<_> = possible
        .map(|value| Suggestion::new(value.get_name(), about(&value)))
        .collect();
    let source = Kind::of(argument).map_or(Source::Nothing, |kind| kind.source);
    found.extend(
        objects
            .list(source)
            .into_iter()
            .map(|object| Suggestion::new(object.name, object.about)),
    );
    found.retain(|suggestion| suggestion.word.starts_with(word));
    found.truncate(MOST_VALUES);
    if matches!(source, Source::Files | Source::Folders) {
        found.extend(files(word, source == Source::Folders));
    }
    found
}

/// Files and folders that begin so; those with a dot only when the word has it.
fn files(word: &str, only_folders: bool) -> Vec<Suggestion> {
    let (folder, name) = word
        .rsplit_once('/')
        .map_or(("", word), |(folder, name)| (&word[..=folder.len()], name));
    let Ok(entries) = fs::read_dir(if folder.is_empty() {
        Path::new(".")
    } else {
        Path::new(folder)
    }) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten().take(MOST_FILES) {
        let Ok(file) = entry.file_name().into_string() else {
            continue;
        };
        let hidden = file.starts_with('.') && !name.starts_with('.');
        let is_folder = fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
        if !file.starts_with(name) || hidden || (only_folders && !is_folder) {
            continue;
        }
        let end = if is_folder { "/" } else { "" };
        found.push(Suggestion {
            word: format!("{folder}{file}{end}"),
            about: String::new(),
            goes_on: is_folder,
        });
    }
    found.sort_by(|one, other| one.word.cmp(&other.word));
    found
}
