//! The interactive shell: `weir` alone on a terminal.
//!
//! A line is a command as on the command line, without the `weir`. Tab completes words and the
//! router's names, `?` lists what may follow without Enter, words may be shortened, Ctrl-C takes
//! back the line or ends a command that runs, Ctrl-D, `quit` and `exit` leave.
//!
//! A command runs on a thread of its own while this one waits for it and for Ctrl-C. A command
//! that goes on for ever listens for Ctrl-C itself; one that does not end (a router that does not
//! answer) is left alone after [`GRACE`]: what it still says is thrown away.
//!
//! The same walk through the table of commands (`tree.rs`) serves the shell, `weir exec`, shortened
//! words on the command line, and the completion scripts of bash, zsh and fish (`complete.rs`).

pub(crate) mod complete;
mod editor;
pub(crate) mod exec;
mod help;
mod objects;
mod pager;
mod pipes;
pub(crate) mod split;
mod suggest;
mod tree;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::{Command, CommandFactory, Parser};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::{Cli, Where};
use crate::dispatch;
use crate::failure::{Failure, USAGE};
use crate::render::Screen;
use editor::{Editor, Typed};
use objects::Objects;
use pipes::{Filtered, Pipe};
pub(crate) use tree::takes_value;
use tree::{Ambiguous, Position};

/// How long a command may take to end after Ctrl-C.
const GRACE: Duration = Duration::from_millis(500);

/// The command line with whole words for shortened ones. What is not text stays as it is.
pub(crate) fn written_out(arguments: Vec<OsString>) -> Result<Vec<OsString>, Ambiguous> {
    let mut words: Vec<String> = Vec::new();
    for argument in arguments.iter().skip(1) {
        match argument.to_str() {
            Some(word) => words.push(word.to_owned()),
            None => return Ok(arguments),
        }
    }
    let of_environment = || Where {
        socket: std::env::var_os("WEIR_SOCKET").map(PathBuf::from),
        ..Where::default()
    };
    let router = said(&words).unwrap_or_else(of_environment);
    Position::after(&built(Cli::command()), &mut words, &Objects::new(router))?;
    Ok(arguments
        .into_iter()
        .take(1)
        .chain(words.into_iter().map(OsString::from))
        .collect())
}

/// The router that words say, if they do; words that are not whole yet, so that clap cannot tell.
fn said(words: &[String]) -> Option<Where> {
    let option = |name: &str| {
        let next = words
            .iter()
            .position(|word| word == name)
            .and_then(|place| words.get(place + 1))
            .map(String::as_str);
        next.or_else(|| {
            words
                .iter()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        })
    };
    let path = |name: &str| option(name).map(PathBuf::from);
    let at = Where {
        socket: path("--socket"),
        router: option("--router").map(str::to_owned),
        ca: path("--ca").or_else(|| std::env::var_os("WEIR_CA").map(PathBuf::from)),
        token_file: path("--token-file"),
    };
    (at.socket.is_some() || at.router.is_some()).then_some(at)
}

/// The tree of commands with everything that clap adds to it.
fn built(mut tree: Command) -> Command {
    tree.build();
    tree
}

/// The table as the shell has it: with its own words, without what starts a router.
fn shell_tree() -> Command {
    let mut tree = Cli::command();
    for elsewhere in ELSEWHERE {
        tree = tree.mut_subcommand(elsewhere, |command| command.hide(true));
    }
    let help = Command::new("help").about("List what may be said here, as ? does at any place");
    let quit = Command::new("quit")
        .about("Leave the shell, as Ctrl-D does")
        .visible_alias("exit")
        .alias("q");
    // Which router is decided when the shell is opened.
    for option in ["socket", "router", "ca", "token_file"] {
        tree = tree.mut_arg(option, |option| option.hide(true));
    }
    built(tree.subcommand(help).subcommand(quit))
}

/// Commands that are no use in a shell.
const ELSEWHERE: [&str; 4] = ["run", "demo", "completions", "man"];

/// Reads and does commands until there are no more; the exit code.
pub(crate) fn interactive(cli: &Cli) -> u8 {
    let at = cli.at.clone();
    let signals = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let interrupts = signals.and_then(|runtime| {
        let interrupt = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
        Ok(Interrupts { runtime, interrupt })
    });
    let opened = interrupts.map_err(Failure::said).and_then(|interrupts| {
        let objects = Objects::new(at.clone());
        let editor = Editor::open(shell_tree(), objects.clone()).map_err(Failure::said)?;
        Ok(Shell {
            tree: shell_tree(),
            objects,
            at,
            json: cli.json,
            interrupts,
            editor,
        })
    });
    match opened.and_then(Shell::talk) {
        Ok(()) => 0,
        Err(failure) => {
            failure.tell("weir");
            failure.code()
        }
    }
}

struct Shell {
    tree: Command,
    objects: Objects,
    at: Where,
    json: bool,
    interrupts: Interrupts,
    editor: Editor,
}

struct Interrupts {
    runtime: tokio::runtime::Runtime,
    interrupt: Signal,
}

impl Shell {
    fn talk(mut self) -> Result<(), Failure> {
        let mut to = io::stdout();
        writeln!(
            to,
            "weir {}: ? lists what may be said, Tab completes, quit leaves",
            env!("CARGO_PKG_VERSION")
        )?;
        if let Err(failure) = self.at.client().and_then(|client| Ok(client.version()?)) {
            failure.tell("weir");
        }
        let prompt = format!("{}> ", router_name(&self.at));
        loop {
            match self.editor.read(&prompt).map_err(Failure::said)? {
                Typed::Line(line) => {
                    if !self.line(&line)? {
                        return Ok(());
                    }
                }
                Typed::Question(before) => {
                    write!(
                        to,
                        "{}",
                        help::help(&self.tree, &before, &self.objects, &Screen::of_stdout())
                    )?;
                }
                Typed::Nothing => {}
                Typed::End => return Ok(()),
            }
        }
    }

    /// Does a line; tells whether more may come.
    fn line(&mut self, line: &str) -> Result<bool, Failure> {
        let split = split::split(line);
        if split.words.is_empty() {
            return Ok(true);
        }
        if split.end == split::End::Open {
            Failure::said("quotes that nobody closed, or a lone backslash at the end").tell("weir");
            return Ok(true);
        }
        let (words, pipes) = match pipes::apart(line, split) {
            Ok(apart) => apart,
            Err(what) => {
                Failure::Coded(USAGE, what).tell("weir");
                return Ok(true);
            }
        };
        let json = self.json || pipes::is_json(&pipes);
        match interpret(&self.tree, words, &self.objects, &self.at, json) {
            Ok(Meaning::Quit) => return Ok(false),
            Ok(Meaning::Help) => {
                let help = help::help(&self.tree, "", &self.objects, &Screen::of_stdout());
                write!(io::stdout(), "{help}{}", pipes::HELP)?;
            }
            Ok(Meaning::Command(cli)) => self.interrupts.run(*cli, &pipes),
            Err(NotUnderstood::Ambiguous(ambiguous)) => {
                Failure::Coded(USAGE, ambiguous.to_string()).tell("weir")
            }
            Err(NotUnderstood::Usage(error)) => {
                let _ = error.print();
            }
            Err(NotUnderstood::Elsewhere(word)) => {
                Failure::said(format_args!("`weir {word}` is said outside of this shell"))
                    .tell("weir")
            }
        }
        Ok(true)
    }
}

/// What a line means.
enum Meaning {
    /// Leave.
    Quit,
    /// List what there is.
    Help,
    /// A command.
    Command(Box<Cli>),
}

/// Why a line means nothing.
enum NotUnderstood {
    Ambiguous(Ambiguous),
    Usage(clap::Error),
    Elsewhere(String),
}

/// What words mean in a shell that talks to a router; words may say another one.
fn interpret(
    tree: &Command,
    mut words: Vec<String>,
    objects: &Objects,
    at: &Where,
    json: bool,
) -> Result<Meaning, NotUnderstood> {
    Position::after(tree, &mut words, objects).map_err(NotUnderstood::Ambiguous)?;
    match words.first().map(String::as_str) {
        Some("quit") if words.len() == 1 => return Ok(Meaning::Quit),
        Some("help") if words.len() == 1 => return Ok(Meaning::Help),
        Some(word) if ELSEWHERE.contains(&word) => {
            return Err(NotUnderstood::Elsewhere(word.to_owned()));
        }
        _ => {}
    }
    let another = said(&words);
    let arguments =
        std::iter::once(OsString::from("weir")).chain(words.into_iter().map(OsString::from));
    let mut cli = Cli::try_parse_from(arguments).map_err(NotUnderstood::Usage)?;
    cli.at = another.unwrap_or_else(|| at.clone());
    cli.json |= json;
    Ok(Meaning::Command(Box::new(cli)))
}

impl Interrupts {
    /// Does a command until it ends or Ctrl-C is pressed. Long output goes through a pager.
    fn run(&mut self, cli: Cli, pipes: &[Pipe]) {
        let given_up = Arc::new(AtomicBool::new(false));
        let (end, mut ended) = tokio::sync::oneshot::channel();
        let is_paged = pager::is_wanted(&cli, pipes);
        let kept = Arc::new(Mutex::new(Vec::new()));
        let output = Output {
            given_up: Arc::clone(&given_up),
            kept: is_paged.then(|| Arc::clone(&kept)),
        };
        let pipes = pipes.to_vec();
        let work = move || {
            let mut output = BufWriter::new(output);
            let outcome = if pipes::filters(&pipes) {
                let mut filtered = Filtered::new(&pipes, &mut output);
                let outcome = dispatch::execute(&cli, &mut filtered);
                outcome.and(filtered.end().map_err(Failure::from))
            } else {
                dispatch::execute(&cli, &mut output)
            };
            let flushed = output.flush().map_err(Failure::from);
            let _ = output.into_parts();
            // No caller waits any more, so nothing is sent.
            let _ = end.send(outcome.and(flushed));
        };
        if let Err(error) = thread::Builder::new()
            .name("command".to_owned())
            .spawn(work)
        {
            return Failure::said(error).tell("weir");
        }
        let interrupt = &mut self.interrupt;
        let outcome = self.runtime.block_on(async {
            tokio::select! {
                outcome = &mut ended => Some(outcome),
                _ = interrupt.recv() => tokio::time::timeout(GRACE, &mut ended).await.ok(),
            }
        });
        if outcome.is_some() && is_paged {
            let kept = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
            if let Err(error) = pager::show(&kept) {
                Failure::said(error).tell("weir");
            }
        }
        match outcome {
            None => {
                given_up.store(true, Ordering::Release);
                Failure::said("not waited for any longer").tell("\nweir");
            }
            Some(Err(_)) => {
                Failure::said("this command failed inside; that is a fault of weir").tell("weir")
            }
            Some(Ok(Err(failure))) => failure.tell("weir"),
            Some(Ok(Ok(()))) => {}
        }
    }
}

/// Standard output, until nobody waits for the command any more.
struct Output {
    given_up: Arc<AtomicBool>,
    /// Where output is kept for a pager.
    kept: Option<Arc<Mutex<Vec<u8>>>>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.given_up.load(Ordering::Acquire) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let Some(kept) = &self.kept else {
            return io::stdout().write(bytes);
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() + bytes.len() > pager::MOST {
            // Too long to keep: it goes to the terminal as it comes.
            io::stdout().write_all(&std::mem::take(&mut *kept))?;
            drop(kept);
            self.kept = None;
            return io::stdout().write(bytes);
        }
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// The router's address; without one, this machine's name, with the socket's when it is not the
/// usual one, since there may be several.
fn router_name(at: &Where) -> String {
    let machine = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let machine = machine
        .split('.')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or("weir");
    let stem = at
        .socket()
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = match (&at.router, stem) {
        (Some(address), _) => address.clone(),
        (None, Some(stem)) if !at.options().is_empty() => format!("{machine}:{stem}"),
        (None, _) => machine.to_owned(),
    };
    crate::render::harmless(&name)
}
