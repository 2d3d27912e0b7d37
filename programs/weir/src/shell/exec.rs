//! `weir exec FILE`: commands from a file, one a line, as VPP's `exec`.
//!
//! Blank lines and comments are skipped (`#`, and VPP's `comment { … }`, also over several lines).
//! The first command that fails ends it, unless `--keep-going`; the exit code is that of the first
//! failure. A file may run further files, [`DEEPEST`] deep.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use super::objects::Objects;
use super::pipes::{self, Filtered, Pipe, Piped};
use super::{Meaning, NotUnderstood, interpret, shell_tree, split};
use crate::cli::{Cli, Command, ExecArgs, Where};
use crate::dispatch;
use crate::failure::{Failure, USAGE};

/// Files within files: one that runs itself ends here.
const DEEPEST: u8 = 8;

/// A file that is longer, or has a longer line, is not a list of commands.
const LARGEST: u64 = 16 << 20;
const LONGEST_LINE: usize = 64 << 10;

/// Does it.
pub(crate) fn execute(
    args: &ExecArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let name = if args.file == Path::new("-") {
        "standard input".to_owned()
    } else {
        args.file.display().to_string()
    };
    if args.depth > DEEPEST {
        return Err(Failure::said(format_args!(
            "{name} is run {DEEPEST} files deep; does it run itself?"
        )));
    }
    let tree = shell_tree();
    let objects = Objects::new(at.clone());
    let mut script = Script {
        lines: open(&args.file, &name)?,
        name,
        number: 0,
        in_comment: false,
    };
    let mut first_failure = None;
    while let Some((words, pipes)) = script.next_command()? {
        let json = json || pipes::is_json(&pipes);
        let outcome = match interpret(&tree, words, &objects, at, json) {
            Ok(Meaning::Quit) => break,
            Ok(Meaning::Help) => Ok(()),
            Ok(Meaning::Command(cli)) => one(*cli, args.depth, &pipes, to),
            Err(trouble) => Err(not_understood(&trouble)),
        };
        match outcome {
            Ok(()) => {}
            Err(Failure::NobodyReads) => return Err(Failure::NobodyReads),
            Err(failure) => {
                // What was printed before the failure stands before it.
                to.flush()?;
                failure.tell(&format!("weir: {}:{}", script.name, script.number));
                first_failure.get_or_insert(failure.code());
                if !args.keep_going {
                    break;
                }
            }
        }
    }
    first_failure.map_or(Ok(()), |code| Err(Failure::Reported(code)))
}

fn one(mut cli: Cli, depth: u8, pipes: &[Pipe], to: &mut dyn Write) -> Result<(), Failure> {
    if let Some(Command::Exec(inner)) = &mut cli.command {
        inner.depth = depth + 1;
    }
    if !pipes::filters(pipes) {
        return dispatch::execute(&cli, to);
    }
    let mut filtered = Filtered::new(pipes, to);
    let outcome = dispatch::execute(&cli, &mut filtered);
    let ended = filtered.end().map_err(Failure::from);
    outcome.and(ended)
}

fn not_understood(trouble: &NotUnderstood) -> Failure {
    let sentence = match trouble {
        NotUnderstood::Ambiguous(ambiguous) => ambiguous.to_string(),
        NotUnderstood::Elsewhere(word) => format!("`weir {word}` is no command for a file"),
        NotUnderstood::Usage(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    };
    Failure::Coded(USAGE, sentence)
}

fn open(file: &Path, name: &str) -> Result<Box<dyn BufRead>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin().take(LARGEST))));
    }
    let file = File::open(file)
        .map_err(|error| Failure::said(format_args!("cannot read {name}: {error}")))?;
    Ok(Box::new(BufReader::new(file.take(LARGEST))))
}

struct Script {
    lines: Box<dyn BufRead>,
    name: String,
    number: u64,
    in_comment: bool,
}

impl Script {
    /// The words of the next line that has a command, and the filters on its output.
    fn next_command(&mut self) -> Result<Option<Piped>, Failure> {
        while let Some(line) = self.next_line()? {
            let text = self.without_comment(&line).trim();
            let split = split::split(text);
            if split.end == split::End::Open {
                return Err(self.wrong("quotes that nobody closed, or a lone backslash at the end"));
            }
            if !split.words.is_empty() {
                let apart = pipes::apart(text, split);
                return apart.map(Some).map_err(|what| self.wrong(&what));
            }
        }
        if self.in_comment {
            Err(self.wrong("a comment { that nobody closed"))
        } else {
            Ok(None)
        }
    }

    fn next_line(&mut self) -> Result<Option<String>, Failure> {
        let mut line = Vec::new();
        let most = LONGEST_LINE as u64 + 1;
        let read = self.lines.by_ref().take(most).read_until(b'\n', &mut line);
        read.map_err(|error| Failure::said(format_args!("cannot read {}: {error}", self.name)))?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if line.len() > LONGEST_LINE {
            return Err(self.wrong("a line of more than 64 KiB is no command"));
        }
        String::from_utf8(line)
            .map(Some)
            .map_err(|_| self.wrong("not text in UTF-8"))
    }

    /// VPP's comments: `comment { … }` where a command could begin.
    fn without_comment<'l>(&mut self, line: &'l str) -> &'l str {
        let mut rest = line;
        loop {
            if self.in_comment {
                let Some((_, after)) = rest.split_once('}') else {
                    return "";
                };
                (rest, self.in_comment) = (after, false);
            }
            match rest
                .trim_start()
                .strip_prefix("comment")
                .map(str::trim_start)
                .and_then(|after| after.strip_prefix('{'))
            {
                Some(inside) => (rest, self.in_comment) = (inside, true),
                None => return rest,
            }
        }
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::Coded(USAGE, format!("{}:{}: {what}", self.name, self.number))
    }
}
