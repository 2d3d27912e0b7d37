//! `weir complete`: what the completion scripts of bash, zsh and fish ask at each Tab.
//!
//! A line is one word that may follow, a tab, and what it means. A line that begins with a tab says
//! instead `files` or `folders`: shells complete those themselves, with their own quoting and
//! colours.

use std::io::Write;

use super::built;
use super::objects::Objects;
use super::split::split;
use super::suggest::{Suggestion, files_may_follow, suggest};
use super::tree::Position;
use crate::cli::kind::Source;
use crate::cli::{Cli, CompleteArgs, CompletionShell, Where};
use crate::failure::Failure;
use crate::render::harmless;

/// Does it.
pub(crate) fn execute(args: &CompleteArgs, at: &Where, to: &mut dyn Write) -> Result<(), Failure> {
    let Some((mut words, word)) = words(args) else {
        return Ok(());
    };
    let objects = Objects::new(super::said(&words).unwrap_or_else(|| at.clone()));
    let tree = built(<Cli as clap::CommandFactory>::command());
    let Ok(position) = Position::after(&tree, &mut words, &objects) else {
        return Ok(());
    };
    if let Some(source) = files_may_follow(&position).filter(|_| !word.starts_with('-')) {
        writeln!(
            to,
            "\t{}",
            if source == Source::Folders {
                "folders"
            } else {
                "files"
            }
        )?;
        return Ok(());
    }
    for suggestion in suggest(&position, &word, &objects) {
        writeln!(to, "{}", line(args.shell, &word, &suggestion))?;
    }
    Ok(())
}

/// The whole words without the program's name, and the unfinished one.
fn words(args: &CompleteArgs) -> Option<(Vec<String>, String)> {
    let Some(line) = &args.line else {
        let (last, before) = args.words.split_last()?;
        return Some((before.to_vec(), last.clone()));
    };
    let split = split(line);
    let (words, word, _) = split.unfinished(line)?;
    Some((words.get(1..)?.to_vec(), word.to_owned()))
}

fn line(shell: CompletionShell, typed: &str, suggestion: &Suggestion) -> String {
    let mut word = harmless(&suggestion.word);
    if shell == CompletionShell::Bash {
        // For bash a word begins anew after each of these (COMP_WORDBREAKS): it wants the rest only.
        let rest = typed.rfind([':', '=', '@']).map_or(0, |at| at + 1);
        word = word.get(rest..).unwrap_or_default().to_owned();
    }
    let about = suggestion.about.lines().next().unwrap_or_default();
    format!("{word}\t{}", harmless(about))
}
