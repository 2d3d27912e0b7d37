//! `weir lab demo`: the lab checked against devices of known behaviour, then the Linux bridge and Weir.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use weir_lab::cpu::{CoreCost, KnownLoad, calibrated, measure_at};
use weir_lab::device::DeviceConfig;
use weir_lab::port::{Device, PortSpec};
use weir_lab::profile::{Profile, Simple};
use weir_lab::report::{Report, Test, environment};
use weir_lab::run::{Control, Plan, run};
use weir_lab::units::Rate;

use super::device::InProcess;
use super::generate::stop_on_signals;
use super::ndr::{Bench, pool};
use super::report::save;
use super::scenario::{Wanted, bridge_and_weir, test};
use super::stage::Cables;
use crate::cli::{LabDemoArgs, SearchArgs};
use crate::failure::Failure;

/// Packets per second of the device with a known limit: few, so that a busy machine keeps up.
const TRUE_RATE: f64 = 20_000.0;
const DELAY: Duration = Duration::from_millis(10);
const LOSE_EVERY: u64 = 250;
const KNOWN_SHARE: f64 = 0.25;

fn search(max_rate: f64, trial: Duration) -> SearchArgs {
    SearchArgs {
        min_rate: 1000.0,
        max_rate,
        trial,
        sum: None,
        exceed: 0.0,
        pdr: None,
        width: 0.005,
        noise: 0.02,
    }
}

/// The search on a machine that may be busy: loss in up to half of the trials is forgiven.
fn patient(max_rate: f64, trial: Duration, noise: f64) -> SearchArgs {
    SearchArgs {
        exceed: 0.5,
        sum: Some(trial * 3),
        noise,
        ..search(max_rate, trial)
    }
}

pub(super) fn execute(args: &LabDemoArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    weir_netlink::lab::preflight().map_err(Failure::said)?;
    let control = Arc::new(Control::default());
    stop_on_signals(&control)?;
    let mut report = Report {
        title: "weir lab demo".to_owned(),
        environment: environment(),
        tests: Vec::new(),
    };
    let (mpps, clocks) = generator(&control)?;
    let (found, trials) = known_limit(&control, &mut report)?;
    let (latency_error, made, seen) = known_faults(&control)?;
    let (cpu_known, cpu_found) = known_cpu()?;
    let profile = Profile::simple(&Simple {
        bidirectional: true,
        ..Simple::default()
    })
    .map_err(Failure::said)?;
    let mut rates = Vec::new();
    for (name, device) in bridge_and_weir() {
        let search = SearchArgs {
            width: 0.03,
            ..patient(1e6, Duration::from_millis(400), 1.0)
        };
        let wanted = Wanted {
            search: &search,
            sizes: &[],
            repeat: 1,
            cables: &Cables::Veth,
            noisy: false,
        };
        for result in test(&name, &device, &profile, &wanted, &control)? {
            rates.push((name.clone(), result.rate()));
            report.tests.push(result);
        }
    }
    save(&args.output, &report)?;
    let rate = |at: usize| rates.get(at).and_then(|(_, rate)| *rate);
    let summary = serde_json::json!({
        "true_pps": TRUE_RATE,
        "found_pps": found,
        "trials": trials,
        "generator_mpps": mpps,
        "clocks_per_packet": clocks,
        "latency_error_us": latency_error,
        "loss_made": made,
        "loss_found": seen,
        "cpu_known": cpu_known,
        "cpu_found": cpu_found,
        "bridge_pps": rate(0),
        "weir_pps": rate(1),
        "report": args.output,
    });
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&summary).map_err(Failure::said)?
        )?;
    } else {
        for (name, value) in summary.as_object().into_iter().flatten() {
            writeln!(to, "{name:<20} {value}")?;
        }
    }
    Ok(())
}

/// The generator alone: millions of packets per second into nothing, clocks to write a packet.
fn generator(control: &Control) -> Result<(f64, f64), Failure> {
    let wanted = Simple {
        rate: Some(Rate::Max),
        flows: Some(65_536),
        no_stamp: true,
        ..Simple::default()
    };
    let profile = Profile::simple(&wanted).map_err(Failure::said)?;
    let pool = pool()?;
    let mut best = (0.0, f64::INFINITY);
    // The best of several short runs: the others had company.
    for _ in 0..8 {
        let mut ports = [PortSpec::new(Device::Null).open(&pool)?];
        let plan = Plan {
            duration: Some(Duration::from_millis(150)),
            drain: Duration::ZERO,
            ..Plan::default()
        };
        let result = run(&profile, &plan, &mut ports, &pool, control)?;
        best = (
            f64::max(best.0, result.sent_pps / 1e6),
            f64::min(best.1, result.clocks_per_packet),
        );
    }
    Ok(best)
}

fn known_limit(control: &Control, report: &mut Report) -> Result<(Option<f64>, usize), Failure> {
    let pool = pool()?;
    let config = DeviceConfig {
        packets_per_second: Some(TRUE_RATE),
        queue: 100,
        ..DeviceConfig::default()
    };
    let (device, mut ports) = InProcess::start("limit", config, &pool)?;
    let profile = Profile::simple(&Simple {
        flows: Some(1000),
        ..Simple::default()
    })
    .map_err(Failure::said)?;
    let args = patient(10.0 * TRUE_RATE, Duration::from_secs(1), 1.0);
    let mut bench = Bench {
        profile: &profile,
        ports: &mut ports,
        pool: &pool,
        control,
        search: &args,
        noisy: false,
    };
    let search = bench.search(Vec::new());
    device.end()?;
    let search = search?;
    let trials = search.trials.len();
    let found = search.found.first().and_then(|found| found.lower);
    report.tests.push(Test {
        device: format!("test device of {TRUE_RATE:.0} packets/s"),
        traffic: "64".to_owned(),
        frame: 64.0,
        search: Some(search),
        ..Test::default()
    });
    Ok((found, trials))
}

/// A device that delays and loses: the error of the median latency, packets lost and found lost.
fn known_faults(control: &Control) -> Result<(f64, u64, u64), Failure> {
    let pool = pool()?;
    let config = DeviceConfig {
        delay: DELAY,
        lose_every: LOSE_EVERY,
        ..DeviceConfig::default()
    };
    let (device, mut ports) = InProcess::start("faults", config, &pool)?;
    let wanted = Simple {
        rate: Some(Rate::Packets(10_000.0)),
        packets: Some(20_000),
        ..Simple::default()
    };
    let profile = Profile::simple(&wanted).map_err(Failure::said)?;
    let plan = Plan {
        drain: Duration::from_secs(1),
        ..Plan::default()
    };
    let result = run(&profile, &plan, &mut ports, &pool, control);
    let counts = device.end()?;
    let result = result?;
    let latency = result
        .streams
        .first()
        .and_then(|stream| stream.latency.as_ref());
    let error = latency.map_or(f64::NAN, |latency| {
        latency.p50_us - DELAY.as_secs_f64() * 1e6
    });
    Ok((error, counts.lost, result.lost))
}

/// A load of known cost, and what the job beside it found: the load's thread, and what was taken while
/// the job was running more than without the load. Other programs' threads are left out.
fn known_cpu() -> Result<(f64, f64), Failure> {
    let core = weir_cpu::allowed_cores().first().copied().unwrap_or(0);
    let speed = calibrated(core)?;
    let alone = measure_at(&[(core, speed)], Duration::from_secs(2))?;
    let load = KnownLoad::start(core, KNOWN_SHARE);
    let beside = measure_at(&[(core, speed)], Duration::from_secs(4));
    let known = load.end();
    let of = |costs: &[CoreCost]| {
        costs
            .first()
            .map_or(0.0, |cost| cost.of(KnownLoad::THREAD) + cost.in_context)
    };
    Ok((known, of(&beside?) - of(&alone)))
}
