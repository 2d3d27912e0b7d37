//! Lines as they are typed: editing, history, Tab, and `?` without Enter.
//!
//! rustyline does the editing. It has no key that shows something and goes on with the same line;
//! so `?` ends the line, is remembered by its key handler, and the next line begins with what was
//! typed before it.
//!
//! The history is the user's: `$XDG_STATE_HOME/weir/history` (usually `~/.local/state`), readable by
//! nobody else, at most [`MOST_LINES`]. Lines that begin with a space are not kept, nor are very long ones.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Command;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Context, Event, EventContext,
    EventHandler, Helper, KeyEvent, RepeatCount,
};

use super::objects::Objects;
use super::split::{End, quoted, split};
use super::suggest::{Suggestion, suggest};
use super::tree::Position;
use crate::render::Screen;

/// Lines of the history.
const MOST_LINES: usize = 1000;

/// A longer line is not kept.
const LONGEST_KEPT: usize = 4096;

/// A history of more bytes was not written here: it is not read.
const LARGEST_HISTORY: u64 = (MOST_LINES * LONGEST_KEPT) as u64 * 2;

/// What the person at the terminal did.
pub(crate) enum Typed {
    /// A line and Enter.
    Line(String),
    /// A `?` after these characters.
    Question(String),
    /// Ctrl-C: nothing, after all.
    Nothing,
    /// Ctrl-D.
    End,
}

/// Reads lines.
pub(crate) struct Editor {
    lines: rustyline::Editor<Words, FileHistory>,
    /// Where in the line a `?` was pressed.
    question: Arc<Mutex<Option<usize>>>,
    /// What the next line begins with: before and after the cursor.
    begun: (String, String),
    history: Option<PathBuf>,
}

impl Editor {
    /// An editor that knows the words of `tree` and the names of a router's things.
    pub(crate) fn open(tree: Command, objects: Objects) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .max_history_size(MOST_LINES)?
            .history_ignore_space(true);
        let config = config
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .build();
        let mut lines = rustyline::Editor::with_config(config)?;
        lines.set_helper(Some(Words { tree, objects }));
        let question = Arc::new(Mutex::new(None));
        lines.bind_sequence(
            KeyEvent::from('?'),
            EventHandler::Conditional(Box::new(QuestionMark(Arc::clone(&question)))),
        );
        let history = history_file().filter(|file| {
            fs::metadata(file).map_or(0, |metadata| metadata.len()) <= LARGEST_HISTORY
        });
        if let Some(file) = &history {
            // None yet, or one that cannot be read: there is life without.
            let _ = lines.load_history(file);
        }
        Ok(Self {
            lines,
            question,
            begun: Default::default(),
            history,
        })
    }

    /// Reads until Enter, `?`, Ctrl-C or Ctrl-D.
    pub(crate) fn read(&mut self, prompt: &str) -> Result<Typed, ReadlineError> {
        let colour = Screen::of_stdout().colour;
        let styled = if colour {
            format!("\x1b[1m{prompt}\x1b[0m")
        } else {
            prompt.to_owned()
        };
        let (before, after) = std::mem::take(&mut self.begun);
        let line = match self
            .lines
            .readline_with_initial(&(prompt, styled.as_str()), (&before, &after))
        {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => return Ok(Typed::Nothing),
            Err(ReadlineError::Eof) => return Ok(Typed::End),
            Err(error) => return Err(error),
        };
        let asked = self
            .question
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((before, after)) = asked.and_then(|at| line.split_at_checked(at)) {
            self.begun = (before.to_owned(), after.to_owned());
            return Ok(Typed::Question(before.to_owned()));
        }
        self.remember(&line);
        Ok(Typed::Line(line))
    }

    fn remember(&mut self, line: &str) {
        if line.trim().is_empty()
            || line.len() > LONGEST_KEPT
            || !self.lines.add_history_entry(line).unwrap_or(false)
        {
            return;
        }
        let Some(file) = &self.history else { return };
        // A history that cannot be written is no reason to stop working.
        let _ = keep(&mut self.lines, file);
    }
}

fn keep(
    lines: &mut rustyline::Editor<Words, FileHistory>,
    file: &Path,
) -> Result<(), ReadlineError> {
    if let Some(folder) = file.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    lines.append_history(file)?;
    fs::set_permissions(file, Permissions::from_mode(0o600))?;
    Ok(())
}

/// XDG Base Directory Specification: state that is to stay, but is not worth a backup.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("weir/history"))
}

/// `?` outside of quotes asks; within, it is a character.
struct QuestionMark(Arc<Mutex<Option<usize>>>);

impl ConditionalEventHandler for QuestionMark {
    fn handle(
        &self,
        _event: &Event,
        _times: RepeatCount,
        _positive: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        let before = context.line().get(..context.pos())?;
        if matches!(split(before).end, End::Open | End::Comment) {
            return None;
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.pos());
        Some(Cmd::AcceptLine)
    }
}

/// What Tab knows.
struct Words {
    tree: Command,
    objects: Objects,
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or(line);
        let split = split(before);
        let Some((words, word, start)) = split.unfinished(before) else {
            return Ok((at, Vec::new()));
        };
        let mut words = words.to_vec();
        let Ok(position) = Position::after(&self.tree, &mut words, &self.objects) else {
            return Ok((at, Vec::new()));
        };
        let pair = |suggestion: Suggestion| {
            let end = if suggestion.goes_on { "" } else { " " };
            Pair {
                replacement: quoted(&suggestion.word) + end,
                display: crate::render::harmless(&suggestion.word),
            }
        };
        Ok((
            start,
            suggest(&position, word, &self.objects)
                .into_iter()
                .map(pair)
                .collect(),
        ))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}
