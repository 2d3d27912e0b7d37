//! `weir peering plan` and `apply`.

use std::io::Write;

use weir_peering::apply::{Daemon, Guard, Outcome};
use weir_peering::bird;
use weir_peering::plan::{Comparison, Plan, SessionChange, Summary, VerdictDiff};
use weir_peering::resolve::Loaded;
use weir_peering::traffic::Traffic;

use super::{daemon, load, refused, write_json};
use crate::cli::{PeeringApplyArgs, PeeringPlanArgs};
use crate::failure::{CONFLICT, FAILED, Failure};

/// A configuration with what it changes.
struct Prepared {
    daemon: Daemon,
    of: Loaded,
    summary: Summary,
    plan: Plan,
}

fn prepare(args: &PeeringPlanArgs) -> Result<Prepared, Failure> {
    let of = load(&args.of)?;
    let traffic = args.traffic.as_deref().map(Traffic::load);
    let traffic = traffic.transpose().map_err(refused)?;
    let daemon = daemon(&args.daemon);
    daemon.settle().map_err(refused)?;
    let running = daemon.running().map_err(refused)?;
    let summary = Summary::of(&of.peering, &of.snapshot);
    let mut plan = Plan::between(running.as_ref(), &summary);
    plan.notes.clone_from(&of.notes);
    let mut comparison = Comparison::new(
        &of.peering,
        &of.snapshot,
        running.as_ref(),
        traffic.as_ref(),
    );
    daemon
        .control()
        .and_then(|mut control| control.each_route(|route| comparison.route(&route)))
        .map_err(refused)?;
    plan.verdicts = Some(comparison.finish());
    Ok(Prepared {
        daemon,
        of,
        summary,
        plan,
    })
}

pub(super) fn plan(args: &PeeringPlanArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let prepared = prepare(args)?;
    if json {
        return write_json(&prepared.plan, to);
    }
    print(&prepared.plan, to)?;
    if prepared.daemon.is_edited().map_err(refused)? {
        writeln!(
            to,
            "{} was not written by Weir; apply replaces it only with --replace",
            args.daemon.bird_config.display()
        )?;
    }
    Ok(())
}

pub(super) fn apply(
    args: &PeeringApplyArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let prepared = prepare(&args.plan)?;
    if !args.replace && prepared.daemon.is_edited().map_err(refused)? {
        return Err(Failure::Coded(
            CONFLICT,
            format!(
                "{} was not written by Weir, or was edited since: --replace replaces it",
                args.plan.daemon.bird_config.display()
            ),
        ));
    }
    let loss = prepared
        .plan
        .verdicts
        .as_ref()
        .and_then(VerdictDiff::largest_loss);
    if let Some((percent, session)) = loss.filter(|it| it.0 > f64::from(args.max_loss)) {
        return Err(Failure::Coded(
            CONFLICT,
            format!(
                "{percent:.0} % of the accepted routes of {session} would be rejected; --max-loss {} permits less. \
                 `weir peering plan` lists them",
                args.max_loss
            ),
        ));
    }
    if !json {
        print(&prepared.plan, to)?;
        to.flush()?;
    }
    let guard = Guard {
        window: args.guard,
        imports_percent: args.imports,
    };
    let configuration = bird::configuration(&prepared.of.peering, &prepared.of.snapshot);
    let outcome = prepared
        .daemon
        .apply(
            &configuration,
            &prepared.summary,
            &prepared.plan,
            guard,
            args.wait,
        )
        .map_err(refused)?;
    if json {
        write_json(&outcome, to)?;
    } else {
        match &outcome {
            Outcome::Confirmed => writeln!(to, "applied and confirmed")?,
            Outcome::Waiting { .. } => writeln!(
                to,
                "applied; `weir peering confirm` within {} s keeps it, otherwise BIRD undoes it",
                args.wait.unwrap_or_default().as_secs()
            )?,
            Outcome::Undone {
                reason,
                milliseconds,
            } => writeln!(to, "undone after {milliseconds} ms: {reason}")?,
        }
    }
    match outcome {
        Outcome::Undone { .. } => Err(Failure::Reported(FAILED)),
        _ => Ok(()),
    }
}

fn print(plan: &Plan, to: &mut dyn Write) -> Result<(), Failure> {
    for note in &plan.notes {
        writeln!(to, "note: {note}")?;
    }
    if plan.is_empty() {
        writeln!(to, "nothing changes")?;
    }
    for it in &plan.sessions {
        let (sign, text) = match it.change {
            SessionChange::Add => ("+", "new"),
            SessionChange::Remove => ("-", "removed"),
            SessionChange::Reset => ("~", "reset"),
            SessionChange::Disable => ("~", "shut"),
            SessionChange::Enable => ("~", "opened"),
            SessionChange::Reload => ("~", "new filters, stays up"),
        };
        writeln!(
            to,
            "{sign} session {} (AS{}, {}): {text}",
            it.name, it.asn, it.address
        )?;
    }
    for it in &plan.sets {
        writeln!(
            to,
            "~ prefixes of {}: {} -> {} (+{} -{})",
            it.name, it.before, it.after, it.added, it.removed
        )?;
    }
    let number = |it: Option<u32>| it.map_or_else(|| "none".to_owned(), |it| it.to_string());
    for it in &plan.limits {
        writeln!(
            to,
            "~ limit of {}: {} -> {}",
            it.name,
            number(it.before),
            number(it.after)
        )?;
    }
    if plan.roas.0 != plan.roas.1 {
        writeln!(to, "~ ROAs: {} -> {}", plan.roas.0, plan.roas.1)?;
    }
    let Some(diff) = &plan.verdicts else {
        return Ok(());
    };
    writeln!(
        to,
        "of {} routes: {} would be rejected, {} accepted, {} get another preference, {} are gone",
        diff.routes, diff.rejected, diff.accepted, diff.preference, diff.gone
    )?;
    for (name, it) in &diff.sessions {
        for (reason, routes) in &it.rejected {
            writeln!(to, "  {name}: {routes} rejected: {reason}")?;
        }
    }
    for it in &diff.examples {
        writeln!(
            to,
            "  {} from {}: {} -> {}",
            it.prefix, it.session, it.before, it.after
        )?;
    }
    if let Some(percent) = diff.traffic_percent {
        writeln!(
            to,
            "rejected and gone routes carry {percent:.1} % of the traffic"
        )?;
    }
    Ok(())
}
