//! `weir demo`: see `crate::demo` for what it builds.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cli::DemoArgs;
use crate::commands::monitor;
use crate::demo::collector::{Collector, FlowCollector};
use crate::demo::stage::Stage;
use crate::demo::summary::Summary;
use crate::demo::traffic::Traffic;
use crate::demo::view::DemoSource;
use crate::failure::Failure;
use crate::top::{self, Source, State};

/// Packets a second that the hosts send by default.
const RATE: u32 = 20_000;
/// Time between two readings on a terminal.
const INTERVAL: Duration = Duration::from_millis(500);
/// Time between two readings without a terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);
/// How long the demo runs without a terminal and without `--duration`.
const PLAIN_DURATION: Duration = Duration::from_secs(30);

/// Runs the demo.
pub(crate) fn execute(args: &DemoArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let stage = Stage::build()?;
    let namespace = stage
        .lab
        .host("router")
        .map_err(Failure::said)?
        .namespace()
        .clone();
    let collector = Arc::new(Collector::start(&namespace).map_err(Failure::said)?);
    let flows = Arc::new(FlowCollector::start(&namespace).map_err(Failure::said)?);
    let mut traffic =
        Traffic::start(&stage.lab, args.rate.unwrap_or(RATE)).map_err(Failure::said)?;
    let began = Instant::now();
    let source = DemoSource {
        router: stage.router.clone(),
        collector: collector.clone(),
        flows: flows.clone(),
    };
    let shown = show(args, source, began, to);
    let ping = traffic.stop();
    stage.router.stop();
    let (collected, flows) = (collector.stop(), flows.stop());
    let summary = Summary::new(
        &stage.router,
        &collected,
        flows,
        ping,
        began.elapsed().as_secs_f64(),
    );
    drop(stage);
    shown?;
    report(args, &summary, to)
}

/// Shows the router until the time is over or the user ends it.
fn show(
    args: &DemoArgs,
    mut source: DemoSource,
    began: Instant,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let mut state = State::new("demo".to_owned());
    state.take(source.read().map_err(Failure::said)?);
    if !args.json && std::io::stdout().is_terminal() {
        return top::run(Box::new(source), state, INTERVAL, args.duration);
    }
    let duration = args.duration.unwrap_or(PLAIN_DURATION);
    let interval = PLAIN_INTERVAL.min(duration);
    monitor::repeat(interval, false, to, |to| {
        if !args.json {
            state.take(source.read().map_err(Failure::said)?);
            state.notes = source.notes();
            to.write_all(top::lines(&state).as_bytes())?;
        }
        Ok(began.elapsed() < duration)
    })
}

/// Prints the balance and the errors of measurement.
fn report(args: &DemoArgs, summary: &Summary, to: &mut dyn Write) -> Result<(), Failure> {
    if args.json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(summary).map_err(Failure::said)?
        )?;
        return Ok(());
    }
    let dropped: u64 = summary.drops.values().sum();
    writeln!(
        to,
        "\nin {} + originated {} + replicated {} = out {} + dropped {dropped} + consumed {} + held {}",
        summary.packets_in,
        summary.originated,
        summary.replicated,
        summary.packets_out,
        summary.consumed,
        summary.held
    )?;
    writeln!(
        to,
        "sFlow: {} samples, estimated {} of {} packets, error {} % (expected within {} %)",
        summary.samples_received,
        summary.estimated_packets,
        summary.true_packets,
        summary.error_percent,
        summary.expected_error_percent
    )?;
    writeln!(
        to,
        "IPFIX: {} records of {} packets, {} packets came in",
        summary.flows_metered, summary.flow_packets, summary.packets_in
    )?;
    if let Some(loss) = summary.ping_loss_percent {
        writeln!(to, "ping: {loss} % lost")?;
    }
    Ok(())
}
