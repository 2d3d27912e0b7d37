//! The program `weir`: a router, and everything one does with it from a terminal.
//!
//! This file reads the command line (shortened words become whole ones first), opens the shell when
//! there is no command and somebody sits there, and turns failures into a sentence on standard error
//! and an exit code. Output that nobody reads any more (`weir show errors | head -1`) is no failure.

#![forbid(unsafe_code)]

mod bench;
mod cli;
mod client;
mod collector;
mod commands;
mod demo;
mod dispatch;
mod failure;
mod render;
mod running;
mod service;
mod shell;
mod signals;
mod top;

use std::ffi::OsString;
use std::io::{self, BufRead, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command, ExecArgs};
use crate::failure::{Failure, USAGE};

fn main() -> ExitCode {
    let arguments = match shell::written_out(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(ambiguous) => {
            Failure::Coded(USAGE, ambiguous.to_string()).tell("weir");
            return ExitCode::from(USAGE);
        }
    };
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come as errors, too. A closed pipe is no reason to say anything.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    ExitCode::from(if cli.command.is_some() {
        once(&cli)
    } else if !io::stdin().is_terminal() && has_input() {
        // Commands come from a pipe or a file, one a line.
        once(&Cli {
            command: Some(Command::Exec(ExecArgs::standard_input())),
            ..cli
        })
    } else if io::stdin().is_terminal() && io::stdout().is_terminal() {
        shell::interactive(&cli)
    } else {
        // Help that a pager or a file reads is what was asked for.
        let _ = Cli::command().print_help();
        0
    })
}

/// Whether standard input has anything to read; what is looked at stays there.
fn has_input() -> bool {
    io::stdin()
        .lock()
        .fill_buf()
        .is_ok_and(|bytes| !bytes.is_empty())
}

/// The command line.
fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(arguments)
}

fn once(cli: &Cli) -> u8 {
    let mut output = BufWriter::new(io::stdout().lock());
    let outcome = dispatch::execute(cli, &mut output);
    // Before a failure is reported, whatever its kind, comes what was said before it.
    let flushed = output.flush().map_err(Failure::from);
    // What is left in the buffer has no reader: it must not be tried again.
    let _ = output.into_parts();
    match outcome.and(flushed) {
        Ok(()) => 0,
        Err(failure) => {
            failure.tell("weir");
            failure.code()
        }
    }
}
