//! `weir demo`: see `crate::demo` for what it builds.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::cli::DemoArgs;
use crate::demo::collector::Collector;
use crate::demo::stage::Stage;
use crate::demo::summary::Summary;
use crate::demo::traffic::Traffic;
use crate::demo::view::View;
use crate::failure::Failure;

/// Packets a second that the hosts send when nobody says.
const RATE: u32 = 20_000;
const PICTURE: Duration = Duration::from_millis(500);

/// Does it.
pub(crate) fn execute(args: &DemoArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::said)?;
    let stage = Stage::build()?;
    let namespace = stage
        .lab
        .host("router")
        .map_err(Failure::said)?
        .namespace()
        .clone();
    let mut collector = Collector::start(&namespace).map_err(Failure::said)?;
    let mut traffic =
        Traffic::start(&stage.lab, args.rate.unwrap_or(RATE)).map_err(Failure::said)?;
    let began = Instant::now();
    let shown = runtime.block_on(watch(args, &stage, &collector, began, to));
    let ping = traffic.stop();
    stage.router.stop();
    let collected = collector.stop();
    let summary = Summary::new(
        &stage.router,
        &collected,
        ping,
        began.elapsed().as_secs_f64(),
    );
    drop(stage);
    shown?;
    tell(args, &summary, to)
}

/// Shows pictures until the time is over or somebody presses Ctrl-C.
async fn watch(
    args: &DemoArgs,
    stage: &Stage,
    collector: &Collector,
    began: Instant,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::said)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::said)?;
    let terminal = std::io::stdout().is_terminal();
    let mut view = View::default();
    // The first picture is only there for the rates of the second.
    let _ = view.picture(&stage.router, &collector.now(), Duration::ZERO, PICTURE);
    let mut last = Instant::now();
    loop {
        let left = args.duration.map_or(PICTURE, |duration| {
            duration.saturating_sub(began.elapsed()).min(PICTURE)
        });
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            () = tokio::time::sleep(left) => {}
        }
        let now = Instant::now();
        if !args.json && terminal {
            let picture =
                view.picture(&stage.router, &collector.now(), began.elapsed(), now - last);
            // Home, draw, clear what an earlier, longer picture left behind.
            let picture = picture.replace('\n', "\x1b[K\n");
            write!(to, "\x1b[H\x1b[2J{picture}")?;
            to.flush()?;
        }
        if args.json || terminal {
            last = now;
        }
        if args
            .duration
            .is_some_and(|duration| began.elapsed() >= duration)
        {
            if !args.json && !terminal {
                write!(
                    to,
                    "{}",
                    view.picture(&stage.router, &collector.now(), began.elapsed(), now - last)
                )?;
            }
            return Ok(());
        }
    }
}

fn tell(args: &DemoArgs, summary: &Summary, to: &mut dyn Write) -> Result<(), Failure> {
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
    if let Some(loss) = summary.ping_loss_percent {
        writeln!(to, "ping: {loss} % lost")?;
    }
    Ok(())
}
