//! Output that is longer than the terminal goes through a pager: `$PAGER`, or `less`.

use std::io::{self, IsTerminal, Write};
use std::process::{Command as Process, Stdio};

use super::pipes::Pipe;
use crate::cli::{Cli, Command, ConfigCommand, Show, TraceCommand};

/// Longer output is not kept for a pager.
pub(crate) const MOST: usize = 16 << 20;

/// Whether a command's output may be kept until the command ends.
pub(crate) fn is_wanted(cli: &Cli, pipes: &[Pipe]) -> bool {
    let ends = match &cli.command {
        Some(Command::Show(args)) => args.watch.is_none() && !matches!(args.what, Show::Events(_)),
        Some(Command::Trace(args)) => matches!(args.what, TraceCommand::Show(_)),
        Some(Command::Config(what)) => matches!(
            what,
            ConfigCommand::Dump(_) | ConfigCommand::History(_) | ConfigCommand::Diff(_)
        ),
        Some(Command::Why(_)) => true,
        _ => false,
    };
    ends && io::stdout().is_terminal() && !pipes.iter().any(|it| matches!(it, Pipe::NoMore))
}

/// Writes output to the terminal, through a pager when it has more lines than the terminal.
pub(crate) fn show(output: &[u8]) -> io::Result<()> {
    let lines = output.iter().filter(|&&byte| byte == b'\n').count();
    let rows = crossterm::terminal::size().map_or(24, |(_, rows)| usize::from(rows));
    if lines < rows || !page(output)? {
        let mut to = io::stdout();
        to.write_all(output)?;
        to.flush()?;
    }
    Ok(())
}

/// Whether a pager showed it. It is the user's, so a shell starts it with its options.
fn page(output: &[u8]) -> io::Result<bool> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less -R".to_owned());
    let Some(program) = pager.split_whitespace().next() else {
        return Ok(false);
    };
    if !is_installed(program) {
        return Ok(false);
    }
    let mut child = Process::new("sh")
        .args(["-c", &pager])
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // Whoever leaves the pager early has seen enough.
        let _ = input.write_all(output);
    }
    child.wait()?;
    Ok(true)
}

fn is_installed(program: &str) -> bool {
    let is_file = |path: &std::path::Path| path.join(program).is_file();
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|it| is_file(&it)))
}
