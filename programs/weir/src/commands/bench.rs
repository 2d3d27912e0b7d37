//! `weir bench`: what a packet costs on this machine; `weir bench afxdp`: beside the kernel's bridge,
//! see `crate::bench` for what it builds.

use std::io::{IsTerminal, Write};

use weir_bench::{
    Case, CaseResult, Effort, Exported, Failover, FibLoad, Found, Generated, Machine, Metered,
    Report, Step,
};

use crate::bench::{self, AfxdpArgs};
use crate::cli::{BenchArgs, BenchOther};
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(args: &BenchArgs, to: &mut dyn Write) -> Result<(), Failure> {
    match args.other {
        Some(BenchOther::Afxdp(afxdp_args)) => return afxdp(afxdp_args, args.json, to),
        Some(BenchOther::Xdp { rounds }) => {
            return super::xdp::bench::execute(rounds, args.json, to);
        }
        Some(BenchOther::SflowExport { seconds }) => return sflow_export(seconds, args.json, to),
        Some(BenchOther::SflowDecode { seconds }) => return sflow_decode(seconds, args.json, to),
        None => {}
    }
    let cases = chosen(&args.cases)?;
    if let Some(turns) = args.untimed {
        return untimed(&cases, if args.cases.is_empty() { 0 } else { turns }, to);
    }
    let effort = if args.quick {
        Effort::quick()
    } else {
        Effort::default()
    };
    let (mut results, mut hugepages) = (Vec::new(), true);
    for case in cases {
        let progress = |what: &str| {
            if std::io::stderr().is_terminal() {
                eprint!("\r\x1b[K{what}");
            }
        };
        let (case_results, huge) =
            weir_bench::run_case(case, effort, progress).map_err(Failure::said)?;
        hugepages &= huge;
        results.extend(case_results);
    }
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    let report = Report::new(machine(hugepages), results);
    if args.json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&report).map_err(Failure::said)?
        )?;
    } else {
        table(&report, to)?;
    }
    Ok(())
}

/// Beside the bridge. A missed target is a figure, not a failure.
fn afxdp(args: AfxdpArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    weir_netlink::lab::preflight().map_err(Failure::said)?;
    let shown = std::io::stderr().is_terminal();
    let tell = |now: bench::Progress| {
        if shown {
            let left = now.left.as_secs();
            eprint!(
                "\r\x1b[K{}, round {} of {}, {}; about {left} s left",
                now.case, now.round, now.rounds, now.side
            );
        }
    };
    let found = bench::measure(args, tell);
    if shown {
        eprint!("\r\x1b[K");
    }
    let Some((cases, hugepages)) = found.map_err(Failure::said)? else {
        eprintln!("weir: interrupted; nothing is left of the bench");
        // As a shell counts an end by SIGINT.
        return Err(Failure::Reported(130));
    };
    let report = bench::Report {
        machine: machine(hugepages),
        cases,
    };
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&report).map_err(Failure::said)?
        )?;
    } else {
        bench::write_table(&report, to)?;
    }
    Ok(())
}

/// The agent on one core. A missed target is a figure, not a failure.
fn sflow_export(seconds: u32, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let shown = std::io::stderr().is_terminal();
    let progress = |what: &str| {
        if shown {
            eprint!("\r\x1b[K{what}");
        }
    };
    let found = weir_bench::sflow_export(std::time::Duration::from_secs(seconds.into()), progress)
        .map_err(Failure::said)?;
    if shown {
        eprint!("\r\x1b[K");
    }
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&found).map_err(Failure::said)?
        )?;
        return Ok(());
    }
    for step in &found.steps {
        let Step {
            wanted,
            samples_per_second,
            dropped,
            missing,
        } = step;
        writeln!(
            to,
            "{wanted:>10.0} samples a second wanted, {samples_per_second:>10.0} taken, {dropped} dropped, {missing} missing"
        )?;
    }
    let (figure, target, datagrams, header) = (
        found.samples_per_second,
        found.target,
        found.datagrams_per_second,
        found.header_bytes,
    );
    writeln!(
        to,
        "\n{figure:.0} samples a second with {header} octets each and nothing lost, at least {target}; {datagrams:.0} datagrams"
    )?;
    let over = &found.overload;
    let (sum, exact) = (
        over.sent + over.dropped,
        if over.is_exact() { "exactly" } else { "NOT" },
    );
    writeln!(
        to,
        "too many: {} taken, {exact} the {sum} that were sent ({}) or dropped ({})",
        over.taken, over.sent, over.dropped
    )?;
    writeln!(
        to,
        "          {:.0} a second, shared by workers at {:.4} (Jain), {} received",
        over.samples_per_second, over.fairness, over.received
    )?;
    Ok(())
}

/// A decoder on one core.
fn sflow_decode(seconds: u32, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let report = bench::sflow_decode::measure(std::time::Duration::from_secs(seconds.into()))
        .map_err(Failure::said)?;
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&report).map_err(Failure::said)?
        )?;
        return Ok(());
    }
    for row in &report.figures {
        writeln!(
            to,
            "{:<28}{:>12.0} flow samples a second, at least {}",
            row.what, row.samples_per_second, row.target
        )?;
    }
    Ok(())
}

/// Without names of cases: which there are.
fn untimed(cases: &[Case], turns: usize, to: &mut dyn Write) -> Result<(), Failure> {
    for &case in cases {
        if let Some(packets) = weir_bench::run_untimed(case, turns).map_err(Failure::said)? {
            writeln!(to, "{} {packets}", case.name())?;
        }
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Case>, Failure> {
    if names.is_empty() {
        return Ok(Case::ALL.to_vec());
    }
    let known = || {
        Case::ALL
            .iter()
            .map(|case| case.name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let find = |name: &String| {
        let case = Case::ALL.iter().copied().find(|case| case.name() == name);
        case.ok_or_else(|| {
            Failure::said(format!(
                "there is no case {name}; there are {}, afxdp, xdp, sflow-export and sflow-decode",
                known()
            ))
        })
    };
    names.iter().map(find).collect()
}

fn machine(hugepages: bool) -> Machine {
    Machine {
        cpu: weir_cpu::model_name(),
        tsc_mhz: (weir_cpu::tsc_hz() as f64 / 1e5).round() / 10.0,
        cores: weir_cpu::allowed_cores().len(),
        hugepages,
        rustc: env!("WEIR_RUSTC").to_owned(),
        commit: env!("WEIR_COMMIT").to_owned(),
        code_path: weir_cpu::level().name(),
    }
}

fn table(report: &Report, to: &mut dyn Write) -> Result<(), Failure> {
    let machine = &report.machine;
    let pages = if machine.hugepages {
        "hugepages"
    } else {
        "ordinary pages"
    };
    writeln!(
        to,
        "{}, TSC {} MHz, {} cores, {pages}, {}\n",
        machine.cpu, machine.tsc_mhz, machine.cores, machine.code_path
    )?;
    writeln!(
        to,
        "{:<12}{:>10}{:>10}{:>9}{:>8}{:>14}{:>9}{:>18}{:>9}{:>14}  Nodes",
        "Case",
        "sFlow",
        "Clocks",
        "At most",
        "Mpps",
        "Added",
        "At most",
        "Quartiles",
        "In all",
        "Null"
    )?;
    for found in &report.cases {
        if let Found::Packets(case) = found {
            line(case, to)?;
        }
    }
    writeln!(
        to,
        "\nClocks of the time stamp counter a packet, the generator's input not counted."
    )?;
    writeln!(
        to,
        "Added: what sFlow adds, nineteen times of twenty within what stands behind it; null: off beside off, in the same way."
    )?;
    writeln!(
        to,
        "Added is of the quarter of rounds that had the core most to themselves, In all of all rounds."
    )?;
    for found in &report.cases {
        match found {
            Found::Load(found) => load(found, to)?,
            Found::Failover(found) => failover(found, to)?,
            Found::Metered(found) => metered(found, to)?,
            Found::Exported(found) => exported(found, to)?,
            Found::Generated(found) => generated(found, to)?,
            Found::Packets(_) => {}
        }
    }
    Ok(())
}

/// A full table, one line a figure.
fn load(found: &FibLoad, to: &mut dyn Write) -> Result<(), Failure> {
    writeln!(to, "\n{}, {} prefixes", found.name, found.prefixes)?;
    let mut row = |what: &str, figure: f64, digits: usize, bound: &str, target: f64| {
        writeln!(to, "{what:<50}{figure:>12.digits$}  {bound} {target}")
    };
    row(
        "seconds to load",
        found.seconds,
        3,
        "at most",
        found.seconds_target,
    )?;
    row(
        "bytes a prefix that lookups read",
        found.lookup_bytes_per_prefix,
        1,
        "at most",
        found.lookup_bytes_per_prefix_target,
    )?;
    row(
        "the same of 10000 prefixes, in all",
        found.few_lookup_bytes as f64,
        0,
        "at most",
        found.few_lookup_bytes_target as f64,
    )?;
    row(
        "bytes a prefix with exact routes and groups",
        found.bytes_per_prefix,
        1,
        "at most",
        found.bytes_per_prefix_target,
    )?;
    row(
        "clocks of a lookup alone",
        found.lookup_clocks,
        1,
        "at most",
        found.lookup_clocks_target,
    )?;
    row(
        "changes a second while a worker forwards",
        found.updates_per_second,
        0,
        "at least",
        found.updates_per_second_target,
    )?;
    row(
        "percent slower at 300000 changes a second",
        found.slowed_percent,
        1,
        "at most",
        found.slowed_percent_target,
    )?;
    writeln!(
        to,
        "{:<50}{:>12.1}",
        "percent slower at that many", found.slowed_percent_at_most_updates
    )?;
    Ok(())
}

/// A link that goes down, one line a figure.
fn failover(found: &Failover, to: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        to,
        "\n{}, {} prefixes over one group of two next hops",
        found.name, found.prefixes
    )?;
    let mut row = |what: &str, figure: f64, digits: usize, rest: &str| {
        writeln!(to, "{what:<50}{figure:>12.digits$}{rest}")
    };
    row(
        "groups written when a link goes down",
        found.groups_written as f64,
        0,
        "",
    )?;
    row(
        "microseconds until all goes by the other",
        found.microseconds,
        1,
        "",
    )?;
    row("the longest", found.microseconds_max, 1, "")?;
    row(
        "microseconds of a publication of nothing new",
        found.publish_microseconds,
        1,
        "",
    )?;
    row(
        "packets a second all the while",
        found.packets_per_second,
        0,
        "",
    )?;
    row("packets towards the link before", found.lost_before, 0, "")?;
    row(
        "packets towards the link, or dropped, after",
        found.lost_after as f64,
        0,
        &format!("  at most {}", found.lost_after_target),
    )?;
    Ok(())
}

/// The flow meter, in one line.
fn metered(found: &Metered, to: &mut dyn Write) -> Result<(), Failure> {
    let Metered {
        name,
        clocks_per_packet_off: off,
        clocks_per_packet: on,
        tap_clocks,
        tap_clocks_target,
        null,
        resident,
        ..
    } = found;
    let in_all = found.tap_clocks_in_all;
    let quartiles = format!(
        "{:.2} to {:.2}",
        found.tap_clocks_low, found.tap_clocks_high
    );
    let lost = if found.unexported > 0 {
        format!(", {} unexported", found.unexported)
    } else {
        String::new()
    };
    writeln!(
        to,
        "\n{name:<12}{off:>10.2} without, {on:.2} with; tap_clocks {tap_clocks:.2} ({quartiles}; in all {in_all:.2}), at most {tap_clocks_target}; null {null:.2}; {resident} flows{lost}"
    )?;
    Ok(())
}

/// The exporter of flows.
fn exported(found: &Exported, to: &mut dyn Write) -> Result<(), Failure> {
    let Exported {
        name,
        records_per_second,
        records_per_second_target,
        router_records_per_second,
        not_sent,
    } = found;
    writeln!(
        to,
        "\n{name:<12}{records_per_second:>10.0} records a second, at least {records_per_second_target}; {router_records_per_second:.0} of the set router; {not_sent} not sent"
    )?;
    Ok(())
}

fn generated(found: &Generated, to: &mut dyn Write) -> Result<(), Failure> {
    let Generated {
        name,
        clocks,
        clocks_target,
        mpps,
        mpps_target,
    } = found;
    writeln!(
        to,
        "\n{name:<16}{clocks:>8.1} clocks to write a packet, at most {clocks_target}; {mpps:.2} Mpps, at least {mpps_target}"
    )?;
    Ok(())
}

fn line(case: &CaseResult, to: &mut dyn Write) -> Result<(), Failure> {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.2}"));
    let quartiles = match (case.added_low, case.added_high) {
        (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
        // Without sFlow median and upper quartile of the clocks: where they are far above, others had a part of the core.
        _ => format!("{:.2} to {:.2}", case.clocks_median, case.clocks_high),
    };
    let nodes: Vec<String> = case
        .nodes
        .iter()
        .map(|(name, clocks)| format!("{name} {clocks:.1}"))
        .collect();
    let within = |value: Option<f64>, error: Option<f64>| match (value, error) {
        (Some(value), Some(error)) => format!("{value:.2} ±{error:.2}"),
        _ => String::new(),
    };
    let (added, null) = (
        within(case.added, case.added_error),
        within(case.null, case.null_error),
    );
    let rate = if case.sflow == "off" {
        case.sflow.clone()
    } else {
        format!("1:{}", case.sflow)
    };
    // A sample that finds the ring full costs less than one that is kept: such a figure tells nothing.
    let lost = case
        .samples_lost
        .filter(|&lost| lost > 0)
        .map_or(String::new(), |lost| format!("  {lost} samples lost"));
    writeln!(
        to,
        "{:<12}{rate:>10}{:>10.2}{:>9}{:>8.1}{added:>14}{:>9}{quartiles:>18}{:>9}{null:>14}  {}{lost}",
        case.name,
        case.clocks_per_packet,
        number(case.at_most),
        case.mpps,
        number(case.added_at_most),
        number(case.added_in_all),
        nodes.join(", ")
    )?;
    Ok(())
}
