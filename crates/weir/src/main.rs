//! The program `weir`: a router, and everything one does with it from a terminal.
//!
//! This file only hands a parsed command to the module that does it, and turns failures into a
//! sentence on standard error and an exit code: 0 done, 1 failed, 2 not understood. Output that
//! nobody reads any more (`weir show errors | head -1`) is no failure.

#![forbid(unsafe_code)]

mod cli;
mod client;
mod commands;
mod demo;
mod failure;
mod render;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command, ConfigCommand, SflowCommand};
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come as errors, too. A closed pipe is no reason to say anything.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let mut output = BufWriter::new(io::stdout().lock());
    let outcome = execute(&cli, &mut output);
    // Before a failure is told, whatever its kind, comes what was said before it.
    let flushed = output.flush().map_err(Failure::from);
    let code = match outcome.and(flushed) {
        Ok(()) | Err(Failure::NobodyReads) => 0,
        Err(Failure::Told(code)) => code,
        Err(Failure::Said(sentence)) => {
            let _ = writeln!(io::stderr(), "weir: {sentence}");
            1
        }
    };
    // What is left in the buffer has no reader: it must not be tried again.
    let _ = output.into_parts();
    ExitCode::from(code)
}

fn execute(cli: &Cli, to: &mut dyn Write) -> Result<(), Failure> {
    let socket = cli.socket.as_deref();
    match &cli.command {
        Command::Run(args) => commands::run::execute(args, socket, to),
        Command::Config(ConfigCommand::Check(args)) => commands::config_check::execute(args, to),
        Command::Show(args) => client::show(args, socket, to),
        Command::Clear(args) => client::clear(args.what, socket),
        Command::Trace(args) => client::trace(&args.what, socket, to),
        Command::Demo(args) => commands::demo::execute(args, to),
        Command::Bench(args) => commands::bench::execute(args, to),
        Command::Sflow(SflowCommand::Decode(args)) => commands::sflow_decode::execute(args, to),
        Command::Completions { shell } => {
            clap_complete::generate(clap_complete::Shell::from(*shell), &mut Cli::command(), "weir", &mut Completions(to));
            Ok(())
        }
    }
}

/// Output for the completion generator, which panics on errors of writing: a reader that went
/// away is not told to it, and the flush at the end finds out.
struct Completions<'a>(&'a mut dyn Write);

impl Write for Completions<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
