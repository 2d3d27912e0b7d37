//! `weir peering`: BGP policy from the `peering` section.

use std::io::Write;

use weir_peering::model::Peering;
use weir_peering::snapshot::Snapshot;
use weir_peering::{bird, cases};

use crate::cli::{PeeringArgs, PeeringCommand};
use crate::failure::{FAILED, Failure, REFUSED};

/// Runs the command.
pub(crate) fn execute(
    what: &PeeringCommand,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    match what {
        PeeringCommand::Check(args) => {
            let (peering, snapshot) = load(args)?;
            cases::check(&bird::configuration(&peering, &snapshot)).map_err(refused)?;
            let sessions: usize = peering.neighbors.iter().map(|it| it.addresses.len()).sum();
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
            let (peering, snapshot) = load(&args.of)?;
            let text = bird::configuration(&peering, &snapshot);
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
            let (peering, snapshot) = load(&args.of)?;
            let all = cases::load(&args.cases).map_err(refused)?;
            let failed = cases::run(&peering, &snapshot, &all).map_err(refused)?;
            if json {
                let list: Vec<_> = failed
                    .iter()
                    .map(|it| serde_json::json!({"case": it.number, "expected": it.expected, "found": it.found}))
                    .collect();
                writeln!(
                    to,
                    "{}",
                    serde_json::json!({"cases": all.len(), "failed": list})
                )?;
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
                return Err(Failure::Told(FAILED));
            }
        }
    }
    Ok(())
}

fn load(args: &PeeringArgs) -> Result<(Peering, Snapshot), Failure> {
    let text = std::fs::read_to_string(&args.config).map_err(|error| {
        Failure::said(format_args!(
            "cannot read {}: {error}",
            args.config.display()
        ))
    })?;
    let peering = Peering::parse(&args.config.display().to_string(), &text).map_err(refused)?;
    let snapshot = Snapshot::load(&args.snapshot, &peering).map_err(refused)?;
    Ok((peering, snapshot))
}

fn refused(error: weir_peering::Error) -> Failure {
    Failure::Coded(REFUSED, error.to_string())
}
