//! `weir peering status`, `routes`, `explain` and `report`: what BIRD has, in Weir's words.

use std::collections::BTreeMap;
use std::io::Write;

use weir_peering::birdc::TableRoute;
use weir_peering::fetch::{meta, now};
use weir_peering::plan::{Summary, announced, rejection};
use weir_peering::policy::{Policy, Route, Verdict};
use weir_peering::resolve::Loaded;

use super::{daemon, folder, load, refused, section, write_json};
use crate::cli::{PeeringDaemonArgs, PeeringExplainArgs, PeeringReportArgs, PeeringRoutesArgs};
use crate::failure::{CONFLICT, Failure};
use crate::render::{Cell, Column, Screen, Table};

fn applied(args: &PeeringDaemonArgs) -> Result<Summary, Failure> {
    let found = daemon(args).running().map_err(refused)?;
    found.ok_or_else(|| {
        Failure::Coded(
            CONFLICT,
            "no configuration was applied by `weir peering apply` yet".to_owned(),
        )
    })
}

pub(super) fn status(
    args: &PeeringDaemonArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let own = daemon(args);
    own.settle().map_err(refused)?;
    let sessions = own
        .control()
        .and_then(|mut control| control.sessions())
        .map_err(refused)?;
    let waits = own.waits_until().map_err(refused)?;
    if json {
        return write_json(
            &serde_json::json!({"sessions": sessions, "waits_until": waits}),
            to,
        );
    }
    let mut table = Table::new([
        Column::text("Session"),
        Column::text("Neighbor"),
        Column::text("State"),
        Column::text("Since"),
        Column::number("Accepted"),
        Column::number("Rejected"),
        Column::number("Announced"),
        Column::text("Of limit"),
    ]);
    for it in &sessions {
        let address = it.address.map_or_else(String::new, |it| it.to_string());
        let of_limit = it
            .limit
            .filter(|limit| *limit > 0)
            .map_or_else(String::new, |limit| {
                format!("{} %", (it.imported + it.filtered) * 100 / limit)
            });
        table.row([
            Cell::from(&it.name),
            Cell::from(&address),
            Cell::from(&it.state),
            Cell::from(&it.since),
            it.imported.into(),
            it.filtered.into(),
            it.exported.into(),
            Cell::from(&of_limit),
        ]);
    }
    write!(to, "{}", table.draw(&Screen::of_stdout()))?;
    if let Some(until) = waits {
        let left = until.saturating_sub(now());
        writeln!(
            to,
            "a change waits for `weir peering confirm`, {left} s more"
        )?;
    }
    Ok(())
}

pub(super) fn routes(
    args: &PeeringRoutesArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let summary = applied(&args.daemon)?;
    let mut control = daemon(&args.daemon).control().map_err(refused)?;
    let mut failed = None;
    control
        .each_route(|route| {
            let Some(session) = summary.sessions.get(&route.protocol) else {
                return;
            };
            let wanted = args.asn.is_none_or(|asn| asn == session.asn)
                && (route.is_filtered || !args.rejected);
            if wanted {
                let written = write_route(&route, &summary, json, to);
                failed = failed.take().or(written.err());
            }
        })
        .map_err(refused)?;
    failed.map_or(Ok(()), Err)
}

fn write_route(
    route: &TableRoute,
    summary: &Summary,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let reason = rejection(summary.asn, route).map(|it| it.name());
    let path: Vec<String> = route.path.iter().map(u32::to_string).collect();
    if json {
        return write_json(
            &serde_json::json!({
                "prefix": route.prefix, "session": route.protocol, "path": route.path, "accepted": !route.is_filtered,
                "reason": reason, "local_pref": route.local_pref,
            }),
            to,
        );
    }
    let verdict = match (route.is_filtered, reason) {
        (false, _) => format!(
            "accepted, local preference {}",
            route.local_pref.unwrap_or(100)
        ),
        (true, Some(reason)) => format!("rejected: {reason}"),
        (true, None) => "rejected".to_owned(),
    };
    writeln!(
        to,
        "{} from {}, path {}: {verdict}",
        route.prefix,
        route.protocol,
        path.join(" ")
    )?;
    Ok(())
}

pub(super) fn explain(
    args: &PeeringExplainArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let Loaded {
        peering, snapshot, ..
    } = load(&args.of)?;
    let policy = Policy::new(&peering, &snapshot);
    let mut found: Vec<(usize, String, Route)> = Vec::new();
    let neighbors: Vec<usize> = (0..peering.neighbors.len())
        .filter(|number| {
            peering
                .neighbors
                .get(*number)
                .is_some_and(|it| it.asn == args.from)
        })
        .collect();
    let Some(first) = neighbors.first().copied() else {
        return Err(Failure::said(format_args!(
            "AS{} is no neighbor",
            args.from
        )));
    };
    if args.path.is_empty() {
        let sessions: BTreeMap<String, usize> = neighbors
            .iter()
            .filter_map(|number| Some((*number, peering.neighbors.get(*number)?)))
            .flat_map(|(number, of)| peering.sessions(of).map(move |(name, _)| (name, number)))
            .collect();
        daemon(&args.daemon)
            .control()
            .and_then(|mut control| {
                control.each_route(|route| {
                    if let Some(number) = sessions.get(&route.protocol)
                        && route.prefix == args.prefix
                    {
                        found.push((*number, route.protocol.clone(), announced(&route)));
                    }
                })
            })
            .map_err(refused)?;
    } else {
        let route = Route::new(args.prefix, args.path.clone());
        found.push((first, format!("AS{}", args.from), route));
    }
    if found.is_empty() {
        return Err(Failure::said(format_args!(
            "BIRD has no route {} from AS{}; --path evaluates one that is not there",
            args.prefix, args.from
        )));
    }
    for (number, session, route) in found {
        let verdict = match policy.import(number, &route) {
            Verdict::Accept { local_pref } => format!("accepted, local preference {local_pref}"),
            Verdict::Reject(reason) => format!("rejected: {}", reason.name()),
        };
        let evidence = policy.evidence(number, &route);
        if json {
            write_json(
                &serde_json::json!({
                    "prefix": route.prefix, "session": session, "verdict": verdict, "evidence": evidence,
                }),
                to,
            )?;
            continue;
        }
        writeln!(to, "{} from {session}: {verdict}", route.prefix)?;
        for line in evidence {
            writeln!(to, "  {line}")?;
        }
    }
    Ok(())
}

pub(super) fn report(
    args: &PeeringReportArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let written = section(&args.of)?;
    let Loaded {
        peering,
        peeringdb,
        notes,
        ..
    } = load(&args.of)?;
    let mut lines = notes;
    for (file, it) in meta(&folder(&args.of, &peering)?).map_err(refused)?.files {
        let age = now().saturating_sub(it.fetched);
        if args.max_age.is_some_and(|most| age > most.as_secs()) {
            lines.push(format!("{file} is {} hours old", age / 3600));
        }
    }
    let own = daemon(&args.daemon);
    let sessions = own
        .control()
        .and_then(|mut control| control.sessions())
        .map_err(refused)?;
    for (name, mode) in own.modes().map_err(refused)? {
        lines.push(format!(
            "{name} is in maintenance ({mode:?}); `weir peering undrain {name}` ends it"
        ));
    }
    lines.extend(weir_peering::report::report(
        &peering, &written, &peeringdb, &sessions,
    ));
    if json {
        return write_json(&lines, to);
    }
    for line in &lines {
        writeln!(to, "{line}")?;
    }
    if lines.is_empty() {
        writeln!(to, "nothing needs attention")?;
    }
    Ok(())
}
