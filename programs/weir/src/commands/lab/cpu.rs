//! `weir lab cpu`: what other work takes from the cores.

use std::io::Write;

use weir_lab::cpu::{KnownLoad, measure};

use crate::cli::CpuArgs;
use crate::failure::Failure;

pub(super) fn execute(args: &CpuArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    if !args.case.is_empty() {
        return super::cases::execute(args, json, to);
    }
    let cores = if args.cores.is_empty() {
        weir_cpu::allowed_cores()
    } else {
        args.cores.clone()
    };
    let loads: Vec<_> = args
        .known
        .map(|share| {
            cores
                .iter()
                .map(|core| KnownLoad::start(*core, share))
                .collect()
        })
        .unwrap_or_default();
    let costs = measure(&cores, args.duration);
    let known: Vec<f64> = loads.into_iter().map(KnownLoad::end).collect();
    let costs = costs?;
    let taken: f64 = costs.iter().map(|cost| cost.taken).sum();
    let each = args.rate.map(|rate| taken * 1e9 / rate);
    if json {
        let text = serde_json::json!({ "cores": costs, "taken_cores": taken, "known": known, "ns_per_packet": each });
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&text).map_err(Failure::said)?
        )?;
        return Ok(());
    }
    writeln!(
        to,
        "core   taken   by others   while running   softirq   interrupts   hypervisor"
    )?;
    for cost in &costs {
        let percent = |share: f64| share * 100.0;
        writeln!(
            to,
            "{:>4} {:>6.1} % {:>9.1} % {:>13.1} % {:>7.1} % {:>10.1} % {:>10.1} %",
            cost.core,
            percent(cost.taken),
            percent(cost.scheduled),
            percent(cost.in_context),
            percent(cost.softirq),
            percent(cost.irq),
            percent(cost.steal)
        )?;
    }
    for cost in costs.iter().filter(|cost| !cost.threads.is_empty()) {
        let threads = cost.threads.iter().take(5);
        let threads: Vec<String> = threads
            .map(|(name, share)| format!("{name} {:.1} %", share * 100.0))
            .collect();
        writeln!(to, "core {}: others were {}", cost.core, threads.join(", "))?;
    }
    for (cost, known) in costs.iter().zip(&known) {
        writeln!(
            to,
            "core {}: the known load took {:.1} %, {:.1} % were found",
            cost.core,
            known * 100.0,
            cost.taken * 100.0
        )?;
    }
    if let Some(each) = each {
        writeln!(to, "{each:.0} ns of CPU time for each packet")?;
    }
    Ok(())
}
