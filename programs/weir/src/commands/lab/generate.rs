//! `weir lab generate`: sends a profile and says what came back.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_buf::{Hugepages, Pool, PoolConfig};
use weir_lab::result::RunResult;
use weir_lab::run::{Control, Plan, run};

use super::view;
use crate::cli::GenerateArgs;
use crate::failure::Failure;

/// Packet buffers: two AF_XDP ports keep up to a quarter each.
const BUFFERS: usize = 32_768;
const USUAL: Duration = Duration::from_secs(10);

pub(super) fn execute(args: &GenerateArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let (profile, ports) = super::traffic(&args.traffic)?;
    let limited = profile.streams.iter().all(|spec| spec.packets > 0);
    let plan = Plan {
        duration: args.duration.or((!limited).then_some(USUAL)),
        drain: args.drain,
        line_rate: args.traffic.line_rate,
        load: None,
    };
    if let Some(path) = &args.write {
        let file = std::fs::File::create(path)
            .map_err(|error| Failure::said(format!("{}: {error}", path.display())))?;
        let written =
            weir_lab::offline::write(&profile, &plan, u64::MAX, std::io::BufWriter::new(file))?;
        if json {
            writeln!(
                to,
                "{}",
                serde_json::json!({ "written": written, "file": path })
            )?;
        } else {
            writeln!(to, "{written} packets written to {}", path.display())?;
        }
        return Ok(());
    }
    weir_lab::run::compile(&profile, &plan)?;
    let pool = Pool::new(PoolConfig {
        chunks: BUFFERS,
        hugepages: Hugepages::Auto,
    })
    .map_err(Failure::said)?;
    let mut open = Vec::new();
    for port in &ports {
        let mut port = port.open(&pool)?;
        port.wait_for_link(Duration::from_secs(10))?;
        open.push(port);
    }
    let control = Arc::new(Control::default());
    stop_on_signals(&control)?;
    let shown = !json && std::io::stdout().is_terminal();
    let names: Vec<_> = profile
        .streams
        .iter()
        .map(|spec| spec.name.clone())
        .collect();
    let viewer = shown
        .then(|| view::start(control.clone(), names))
        .transpose()?;
    let core = args.core;
    let worker = control.clone();
    let result = std::thread::spawn(move || {
        if let Some(core) = core {
            weir_cpu::pin_to(core).map_err(|source| {
                weir_lab::LabError::file(format!("pin to core {core}"), source)
            })?;
        }
        run(&profile, &plan, &mut open, &pool, &worker)
    })
    .join()
    .map_err(|_| Failure::said("the generator's thread failed"))?;
    control.stop.store(true, Ordering::Relaxed);
    if let Some(viewer) = viewer {
        let _ = viewer.join();
    }
    let result = result?;
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&result).map_err(Failure::said)?
        )?;
    } else {
        table(&result, to)?;
    }
    Ok(())
}

/// SIGINT and SIGTERM end the run; its result is still printed and all ports are closed.
pub(super) fn stop_on_signals(control: &Arc<Control>) -> Result<(), Failure> {
    let control = control.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::said)?;
    // Signals must be registered before traffic starts.
    let (interrupt, terminate) = {
        use tokio::signal::unix::{SignalKind, signal};
        let _entered = runtime.enter();
        (
            signal(SignalKind::interrupt()).map_err(Failure::said)?,
            signal(SignalKind::terminate()).map_err(Failure::said)?,
        )
    };
    std::thread::spawn(move || {
        let (mut interrupt, mut terminate) = (interrupt, terminate);
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        control.stop.store(true, Ordering::Relaxed);
    });
    Ok(())
}

fn table(result: &RunResult, to: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        to,
        "sent {} packets in {:.2} s: {:.0} packets/s, {:.3} Gbit/s of layer 1, {:.0} clocks to write a packet",
        result.sent,
        result.seconds,
        result.sent_pps,
        result.sent_bps_l1 / 1e9,
        result.clocks_per_packet
    )?;
    if let Some(pacing) = &result.pacing {
        writeln!(
            to,
            "pacing: {:.1} % within 2 µs of the schedule, median {:.1} µs, 99 % {:.1} µs, longest {:.1} µs",
            pacing.within_2us * 100.0,
            pacing.p50_us,
            pacing.p99_us,
            pacing.max_us
        )?;
    }
    if result.noise.run_delay > 0.01 || result.noise.steal > 0.01 {
        writeln!(
            to,
            "warning: the machine was busy: the generator waited {:.1} % of the time for a core, the hypervisor took {:.1} %",
            result.noise.run_delay * 100.0,
            result.noise.steal * 100.0
        )?;
    }
    for port in &result.ports {
        writeln!(
            to,
            "port {}: sent {}, received {} (not of this run {}), answered {} requests",
            port.name, port.sent, port.received, port.foreign, port.answered
        )?;
    }
    for stream in &result.streams {
        writeln!(
            to,
            "stream {}: sent {}, received {}, lost {}, duplicated {}, reordered {}, unsent {}",
            stream.name,
            stream.sent,
            stream.received,
            stream.lost,
            stream.duplicated,
            stream.reordered,
            stream.unsent
        )?;
        if let Some(latency) = &stream.latency {
            writeln!(
                to,
                "  latency in µs: min {} mean {} median {} 90 % {} 99 % {} 99.9 % {} max {}, jitter {}",
                latency.min_us,
                latency.mean_us,
                latency.p50_us,
                latency.p90_us,
                latency.p99_us,
                latency.p999_us,
                latency.max_us,
                latency.jitter_us
            )?;
        }
    }
    Ok(())
}
