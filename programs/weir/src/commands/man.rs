//! `weir man`: man pages, and the same as one page of Markdown.
//!
//! Both are written from the table of commands alone. `docs/cli.md` is that Markdown; a test keeps
//! it so.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::kind::KINDS;
use crate::cli::{Cli, ManArgs};
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(args: &ManArgs, to: &mut dyn Write) -> Result<(), Failure> {
    match &args.folder {
        _ if args.markdown => Ok(to.write_all(markdown().as_bytes())?),
        Some(folder) => pages(folder, to),
        None => Ok(to.write_all(&page(&Cli::command())?)?),
    }
}

/// One page a command: `weir.1`, `weir-show.1`, `weir-show-interface.1`.
fn pages(folder: &Path, to: &mut dyn Write) -> Result<(), Failure> {
    let mut tree = Cli::command();
    tree.build();
    let mut written = 0_usize;
    visit(&tree, &mut |command| {
        let file = folder.join(format!("{}.1", dashed(command)));
        written += 1;
        fs::write(&file, page(command)?).map_err(|error| {
            Failure::said(format_args!("cannot write {}: {error}", file.display()))
        })
    })?;
    writeln!(to, "{written} man pages in {}", folder.display())?;
    Ok(())
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let manual = Man::new(command.clone())
        .title(dashed(command))
        .manual("Weir")
        .source(concat!("weir ", env!("CARGO_PKG_VERSION")));
    manual.render(&mut text)?;
    Ok(text)
}

/// `weir-show-interface`.
fn dashed(command: &Command) -> String {
    whole_name(command).replace(' ', "-")
}

/// `weir show interface`; known after building.
fn whole_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// A command, and all below it; hidden ones are for programs.
fn visit(
    command: &Command,
    each: &mut dyn FnMut(&Command) -> Result<(), Failure>,
) -> Result<(), Failure> {
    each(command)?;
    command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
        .try_for_each(|inner| visit(inner, each))
}

/// The reference page.
fn markdown() -> String {
    let mut tree = Cli::command();
    tree.build();
    let mut text = String::from(HEAD);
    // Writing to a string cannot fail.
    let _ = visit(&tree, &mut |command| {
        section(command, &mut text);
        Ok(())
    });
    text += VALUES_HEAD;
    for kind in KINDS {
        let _ = writeln!(
            text,
            "| `{}` | {} |",
            kind.name.replace('|', "\\|"),
            escaped(kind.sentence)
        );
    }
    text
}

const HEAD: &str = "\
# Commands

<!-- Written from the table of commands of the crate `weir`; `UPDATE_GOLDEN=1 cargo test -p weir --bin weir` rewrites it. -->

`weir` alone, on a terminal, opens a shell: the same commands without the `weir`, Tab for words and names,
`?` for what may follow, `quit` to leave. Behind a command the shell and `weir exec` take filters: `| match PATTERN`,
`| except PATTERN`, `| last N`, `| count`, `| json`. Output that is longer than the terminal goes through `$PAGER` or
`less`; `| no-more` prevents that. Everywhere words may be shortened as long as they are clear
(`weir sh int`), and `--json` prints JSON instead of text for people. `weir completions` and `weir man` write
what this page has for bash, zsh, fish and man.
";

const VALUES_HEAD: &str = "
## Words in capitals

| | |
|---|---|
";

fn section(command: &Command, text: &mut String) {
    let level = if whole_name(command).contains(' ') {
        "###"
    } else {
        "##"
    };
    let _ = writeln!(text, "\n{level} {}\n", whole_name(command));
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let _ = writeln!(text, "{}.", escaped(&about));
    let aliases: Vec<String> = command
        .get_visible_aliases()
        .map(|alias| format!("`{alias}`"))
        .collect();
    if !aliases.is_empty() {
        let _ = writeln!(text, "Other spellings: {}.", aliases.join(", "));
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage
        .trim_start_matches("Usage:")
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    let _ = writeln!(text, "\n```\n{usage}\n```");
    let own = |argument: &&Arg| {
        !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
    };
    // What holds everywhere stands once, at the top.
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(own)
        .filter(|argument| !whole_name(command).contains(' ') || !is_everywhere(argument))
        .collect();
    if !arguments.is_empty() {
        *text += "\n| | |\n|---|---|\n";
        arguments
            .iter()
            .for_each(|argument| argument_row(argument, text));
    }
    if let Some(after) = command.get_after_help() {
        let _ = writeln!(text, "\n```text\n{}\n```", after.to_string().trim_end());
    }
}

fn is_everywhere(argument: &Arg) -> bool {
    argument.is_global_set()
        && ["socket", "router", "ca", "token_file", "json"].contains(&argument.get_id().as_str())
}

fn argument_row(argument: &Arg, text: &mut String) {
    let mut name = String::new();
    if let Some(short) = argument.get_short() {
        let _ = write!(name, "-{short}");
    }
    if let Some(long) = argument.get_long() {
        let comma = if name.is_empty() { "" } else { ", " };
        let _ = write!(name, "{comma}--{long}");
    }
    let value = argument
        .get_value_names()
        .and_then(|names| names.first())
        .filter(|_| crate::shell::takes_value(argument));
    if let Some(value) = value {
        let space = if name.is_empty() { "" } else { " " };
        let _ = write!(name, "{space}{value}");
    }
    let mut about = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let words: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !words.is_empty() && crate::shell::takes_value(argument) {
        let _ = write!(about, ": {}", words.join(", "));
    }
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty() && crate::shell::takes_value(argument) {
        let _ = write!(about, " (default {})", defaults.join(" "));
    }
    let _ = writeln!(
        text,
        "| `{}` | {} |",
        name.replace('|', "\\|"),
        escaped(&about)
    );
}

/// Text that stands in a cell and means itself.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_is_what_the_table_says() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(file, markdown()).unwrap();
        }
        let written = fs::read_to_string(file).unwrap_or_default();
        assert!(
            written == markdown(),
            "docs/cli.md is not what the table of commands says; UPDATE_GOLDEN=1 rewrites it"
        );
    }

    #[test]
    fn the_first_page_needs_no_folder() {
        let mut text = Vec::new();
        execute(
            &ManArgs {
                folder: None,
                markdown: false,
            },
            &mut text,
        )
        .unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(".TH weir 1") && text.contains("Exit codes"),
            "{text}"
        );
    }
}
