//! `weir peering`: BGP policy from the `peering` section. The work is in the crate `weir-peering`; here is what
//! people read.

mod change;
mod demo;
mod drain;
mod inspect;
mod outputs;

pub(crate) use change::fib_routes;

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use weir_peering::fetch::{self, Sources};
use weir_peering::model::{Daemon, Peering};
use weir_peering::resolve::{self, Loaded};
use weir_peering::{Error, apply, bird, cases, frr};

use crate::cli::{PeeringArgs, PeeringCommand, PeeringDaemonArgs, PeeringFetchArgs};
use crate::failure::{CONFLICT, FAILED, Failure, NO_ROUTER, REFUSED};

/// Runs the command.
pub(crate) fn execute(
    what: &PeeringCommand,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    match what {
        PeeringCommand::Check(args) => {
            let Loaded {
                peering,
                snapshot,
                notes,
                ..
            } = {
                let mut loaded = load(args)?;
                cross_check(args, &mut loaded)?;
                loaded
            };
            match peering.daemon {
                Daemon::Frr => {
                    let text = frr::configuration(&peering, &snapshot).map_err(refused)?;
                    frr::check(&text).map_err(refused)?;
                }
                _ => cases::check(&bird::configuration(&peering, &snapshot)).map_err(refused)?,
            }
            let sessions: usize = peering.neighbors.iter().map(|it| it.addresses.len()).sum();
            for note in notes {
                writeln!(to, "note: {note}")?;
            }
            writeln!(
                to,
                "{} is right: {} neighbors, {sessions} sessions, {} prefix sets, {} ROAs",
                args.config.display(),
                peering.neighbors.len(),
                snapshot.sets.len(),
                snapshot.vrps.len()
            )?;
        }
        PeeringCommand::Build(args) => {
            let Loaded {
                peering, snapshot, ..
            } = load(&args.of)?;
            let text = match peering.daemon {
                Daemon::Frr => frr::configuration(&peering, &snapshot).map_err(refused)?,
                _ => bird::configuration(&peering, &snapshot),
            };
            match &args.output {
                None => to.write_all(text.as_bytes())?,
                Some(file) => {
                    // Written beside it and renamed: a reader sees the old file or the new one.
                    let new = file.with_extension("new");
                    std::fs::write(&new, text)
                        .and_then(|()| std::fs::rename(&new, file))
                        .map_err(|error| {
                            Failure::said(format_args!("cannot write {}: {error}", file.display()))
                        })?;
                }
            }
        }
        PeeringCommand::Test(args) => {
            let Loaded {
                peering, snapshot, ..
            } = load(&args.of)?;
            let all = cases::load(&args.cases).map_err(refused)?;
            let failed = cases::run(&peering, &snapshot, &all).map_err(refused)?;
            if json {
                let list: Vec<_> = failed
                    .iter()
                    .map(|it| serde_json::json!({"case": it.number, "expected": it.expected, "found": it.found}))
                    .collect();
                write_json(&serde_json::json!({"cases": all.len(), "failed": list}), to)?;
            } else {
                for it in &failed {
                    writeln!(
                        to,
                        "case {}: expected {}, found {}",
                        it.number, it.expected, it.found
                    )?;
                }
                writeln!(to, "{} cases, {} failed", all.len(), failed.len())?;
            }
            if !failed.is_empty() {
                return Err(Failure::Reported(FAILED));
            }
        }
        PeeringCommand::Fetch(args) => return fetch_snapshot(args, json, to),
        PeeringCommand::Plan(args) => return change::plan(args, json, to),
        PeeringCommand::Apply(args) => return change::apply(args, json, to),
        PeeringCommand::Confirm(args) => {
            daemon(args).confirm().map_err(refused)?;
            writeln!(to, "confirmed")?;
        }
        PeeringCommand::Rollback(args) => {
            let waited = daemon(args).rollback().map_err(refused)?;
            let text = if waited {
                "the change that waited is undone"
            } else {
                "the configuration before is in force"
            };
            writeln!(to, "{text}")?;
        }
        PeeringCommand::Status(args) => return inspect::status(args, json, to),
        PeeringCommand::Routes(args) => return inspect::routes(args, json, to),
        PeeringCommand::Explain(args) => return inspect::explain(args, json, to),
        PeeringCommand::Report(args) => return inspect::report(args, json, to),
        PeeringCommand::Drain(args) => return drain::drain(args, to),
        PeeringCommand::Undrain(args) => return drain::undrain(args, to),
        PeeringCommand::Refresh(args) => return drain::refresh(args, json, to),
        PeeringCommand::Outputs(args) => return outputs::outputs(args, to),
        PeeringCommand::Import(args) => return outputs::import(args, to),
        PeeringCommand::LookingGlass(args) => return outputs::looking_glass(args, to),
        PeeringCommand::Demo => return demo::execute(json, to),
    }
    Ok(())
}

fn fetch_snapshot(args: &PeeringFetchArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let peering = section(&args.of)?;
    let sources = Sources {
        vrps: args.vrps.clone(),
        irr: args.irr.clone(),
        irr_server: args.irr_server.clone(),
        irr_sources: args.irr_sources.clone(),
        peeringdb: args.peeringdb.clone(),
    };
    let all = fetch::fetch(
        &peering,
        &folder(&args.of, &peering)?,
        &sources,
        args.max_shrink,
    )
    .map_err(refused)?;
    if json {
        write_json(&all, to)?;
    } else {
        for it in &all {
            match &it.problem {
                None => writeln!(
                    to,
                    "{}: {} entries, {} before",
                    it.file, it.after, it.before
                )?,
                Some(problem) => writeln!(to, "{}: not taken over: {problem}", it.file)?,
            }
        }
    }
    let failed = all.iter().filter(|it| it.problem.is_some()).count();
    if failed > 0 {
        return Err(Failure::said(format_args!(
            "{failed} of {} sources were not taken over; the earlier data is in place",
            all.len()
        )));
    }
    Ok(())
}

fn section(args: &PeeringArgs) -> Result<Peering, Failure> {
    Peering::load(&args.config).map_err(refused)
}

/// The folder of the snapshot: the option, else the key `data.folder`.
fn folder(args: &PeeringArgs, peering: &Peering) -> Result<PathBuf, Failure> {
    let folder = args
        .snapshot
        .clone()
        .or_else(|| peering.data.folder.clone());
    folder.ok_or_else(|| {
        Failure::said("name the folder of the snapshot: --snapshot, or the key data.folder")
    })
}

fn load(args: &PeeringArgs) -> Result<Loaded, Failure> {
    let peering = section(args)?;
    let folder = folder(args, &peering)?;
    resolve::load(peering, &folder, fetch::now()).map_err(refused)
}

/// The same with the maintenance of a daemon, and checked against the router that the file is of.
fn load_for(args: &PeeringArgs, daemon: &apply::Daemon) -> Result<Loaded, Failure> {
    let mut peering = section(args)?;
    let folder = folder(args, &peering)?;
    peering.apply_modes(&daemon.modes().map_err(refused)?);
    let mut loaded = resolve::load(peering, &folder, fetch::now()).map_err(refused)?;
    cross_check(args, &mut loaded)?;
    Ok(loaded)
}

/// The whole file as the router's configuration.
fn router_config(args: &PeeringArgs) -> Result<weir_config::Config, Failure> {
    let name = args.config.display().to_string();
    let text = std::fs::read(&args.config)
        .map_err(|error| Failure::said(format_args!("cannot read {name}: {error}")))?;
    match weir_config::check_bytes(&name, &text) {
        Ok((config, _)) => Ok(config),
        Err(findings) => {
            let lines = findings.iter().map(ToString::to_string);
            Err(refused(Error::Findings(lines.collect())))
        }
    }
}

/// Compares the section with the rest of the router's file, where there is one.
fn cross_check(args: &PeeringArgs, loaded: &mut Loaded) -> Result<(), Failure> {
    let name = args.config.display().to_string();
    let config = router_config(args)?;
    let found = weir_peering::router::cross_check(&loaded.peering, &config);
    loaded.notes.extend(found.warnings);
    if found.errors.is_empty() {
        return Ok(());
    }
    let lines = found
        .errors
        .into_iter()
        .map(|it| format!("{name}: peering: {it}"));
    Err(refused(Error::Findings(lines.collect())))
}

fn daemon(args: &PeeringDaemonArgs) -> apply::Daemon {
    apply::Daemon {
        configuration: args.bird_config.clone(),
        socket: args.socket.clone(),
        state: args.state.clone(),
    }
}

fn refused(error: Error) -> Failure {
    let code = match &error {
        Error::Refused(_) => CONFLICT,
        Error::Bird(text) if text.starts_with("connect to ") => NO_ROUTER,
        _ => REFUSED,
    };
    Failure::Coded(code, error.to_string())
}

fn write_json(value: &impl Serialize, to: &mut dyn Write) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::said)?;
    writeln!(to, "{text}")?;
    Ok(())
}
