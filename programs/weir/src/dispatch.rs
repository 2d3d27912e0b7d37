//! From a parsed command to the module that does it.
//!
//! The program's `main`, the shell and `weir exec` all come through here; what differs between
//! them (who reads the output, what ends a command) is theirs.

use std::io::Write;

use crate::cli::{Cli, Command, ConfigCommand, DemoOther, FlowCommand, SflowCommand};
use crate::failure::Failure;
use crate::{client, commands, shell, top};

/// Does what a command line says. Without a command there is nothing to do.
pub(crate) fn execute(cli: &Cli, to: &mut dyn Write) -> Result<(), Failure> {
    let (at, json) = (&cli.at, cli.json);
    let Some(command) = &cli.command else {
        return Ok(());
    };
    match command {
        Command::Run(args) => commands::run::execute(args, at.socket.as_deref(), to),
        Command::Config(ConfigCommand::Check(args)) => {
            commands::config_check::execute(args, at, json, to)
        }
        Command::Config(ConfigCommand::Plan(args)) => {
            commands::config_plan::plan(args, at, json, to)
        }
        Command::Config(ConfigCommand::Diff(args)) => {
            commands::config_plan::diff(args, at, json, to)
        }
        Command::Config(ConfigCommand::Apply(args)) => {
            commands::config_apply::apply(args, at, json, to)
        }
        Command::Config(ConfigCommand::Confirm) => commands::config_apply::confirm(at, json, to),
        Command::Config(ConfigCommand::Rollback(args)) => {
            commands::config_apply::rollback(args, at, json, to)
        }
        Command::Config(ConfigCommand::Dump(args)) => {
            commands::config_history::dump(args, at, json, to)
        }
        Command::Config(ConfigCommand::History(args)) => {
            commands::config_history::history(args, at, json, to)
        }
        Command::Config(ConfigCommand::Schema) => commands::config_check::schema(to),
        Command::Set(what) => commands::set::execute(what, at, json, to),
        Command::Route(what) => commands::route::execute(what, at, json, to),
        Command::Show(args) => client::show(args, at, json, to),
        Command::Clear(args) => client::clear(args.what, at, json, to),
        Command::Trace(args) => client::trace(&args.what, at, json, to),
        Command::Why(args) => client::why(args, at, json, to),
        Command::Pcap(what) => commands::pcap::execute(what, at, json, to),
        Command::Monitor(what) => commands::monitor::execute(what, at, json, to),
        Command::Top(args) => top::execute(args, at, json, to),
        Command::Exec(args) => shell::exec::execute(args, at, json, to),
        Command::Demo(args) => match &args.other {
            Some(DemoOther::Bgp(args)) => commands::demo_bgp::execute(args, to),
            None => commands::demo::execute(args, to),
        },
        Command::Bench(args) => commands::bench::execute(args, to),
        Command::Sflow(SflowCommand::Decode(args)) => {
            commands::sflow_decode::execute(args, json, to)
        }
        Command::Sflow(setting) => commands::set::sflow(setting, at, json, to),
        Command::Flow(FlowCommand::Decode(args)) => commands::flow_decode::execute(args, json, to),
        Command::Xdp(args) => commands::xdp::execute(args, json, to),
        Command::Doctor(args) => commands::doctor::execute(args, json, to),
        Command::Peering(what) => commands::peering::execute(what, json, to),
        Command::Lab(what) => commands::lab::execute(what, json, to),
        Command::Completions { shell } => commands::completions::execute(*shell, to),
        Command::Man(args) => commands::man::execute(args, to),
        Command::Complete(args) => shell::complete::execute(args, at, to),
    }
}
