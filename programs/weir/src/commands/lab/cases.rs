//! `weir lab cpu --case`: what a device takes from its core at several loads.
//!
//! The generator and its half of the cables are on one core, the device and its half on another one. A
//! job of known speed runs beside the device. The core is measured without the device first: what is
//! taken then is not the device's. The settings that move packets to a core end with the namespaces.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_buf::Pool;
use weir_lab::cpu::{CoreCost, calibrated, measure_at};
use weir_lab::energy::Energy;
use weir_lab::profile::{Profile, Simple};
use weir_lab::report::{CpuPoint, Report, Test, environment};
use weir_lab::result::RunResult;
use weir_lab::run::{Control, Plan, run};
use weir_lab::units::Rate;

use super::generate::stop_on_signals;
use super::ndr::pool;
use super::report::save;
use super::scenario::switch;
use super::stage::{Cables, Device, Stage};
use crate::cli::{CpuArgs, CpuCase, CpuProgram};
use crate::failure::{Failure, USAGE};

pub(super) fn execute(args: &CpuArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    weir_netlink::lab::preflight().map_err(Failure::said)?;
    let cores = if args.cores.is_empty() {
        weir_cpu::allowed_cores()
    } else {
        args.cores.clone()
    };
    let (Some(generator), Some(device)) = (cores.first().copied(), cores.last().copied()) else {
        return Err(Failure::said("no core may be used"));
    };
    if generator == device {
        return Err(Failure::Coded(
            USAGE,
            "cases need two cores: one for the generator, one for the device".to_owned(),
        ));
    }
    let control = Arc::new(Control::default());
    stop_on_signals(&control)?;
    let mut report = Report {
        title: "What forwarding takes from a core".to_owned(),
        environment: environment(),
        tests: Vec::new(),
    };
    for case in &args.case {
        let name = name(*case);
        let setup = match setup(*case, device) {
            Ok(setup) => setup,
            Err(why) => {
                eprintln!("skipped: {name}: {why}");
                continue;
            }
        };
        let bench = Bench {
            args,
            generator,
            core: device,
            control: &control,
        };
        let cpu = bench.case(name, &setup)?;
        report.tests.push(Test {
            device: name.to_owned(),
            traffic: "64".to_owned(),
            frame: 64.0,
            cpu,
            ..Test::default()
        });
        // A page with what is there is worth having when a later case fails.
        if let Some(path) = &args.output {
            save(path, &report)?;
        }
    }
    if json {
        let text = serde_json::to_string_pretty(&report).map_err(Failure::said)?;
        writeln!(to, "{text}")?;
    } else {
        table(&report, to)?;
        if let Some(path) = &args.output {
            writeln!(to, "written: {}", path.display())?;
        }
    }
    Ok(())
}

fn name(case: CpuCase) -> &'static str {
    match case {
        CpuCase::Bridge => "Linux bridge",
        CpuCase::Router => "Linux router",
        CpuCase::Ovs => "Open vSwitch",
        CpuCase::Xdp => "weir xdp",
        CpuCase::WeirSleep => "Weir, sleep",
        CpuCase::WeirAdaptive => "Weir, adaptive",
        CpuCase::WeirPoll => "Weir, poll",
    }
}

/// The device of a case; the error says why this machine cannot have it.
fn setup(case: CpuCase, core: usize) -> Result<Device, &'static str> {
    let weir = |idle: &str| {
        switch().replace(
            "workers: {count: 1, idle: sleep}",
            &format!("workers: {{cores: [{core}], idle: {idle}}}"),
        )
    };
    Ok(match case {
        CpuCase::Bridge => Device::Bridge,
        CpuCase::Router => Device::Linux,
        CpuCase::Ovs => match super::ovs::missing() {
            Some(why) => return Err(why),
            None => Device::OpenVSwitch,
        },
        CpuCase::Xdp => Device::Xdp,
        CpuCase::WeirSleep => Device::Weir(weir("sleep")),
        CpuCase::WeirAdaptive => Device::Weir(weir("adaptive")),
        CpuCase::WeirPoll => Device::Weir(weir("poll")),
    })
}

struct Bench<'a> {
    args: &'a CpuArgs,
    generator: usize,
    core: usize,
    control: &'a Control,
}

impl Bench<'_> {
    fn case(&self, name: &str, device: &Device) -> Result<Vec<CpuPoint>, Failure> {
        // Before the device is there: a worker that polls would take the calibration's time.
        let speed = calibrated(self.core)?;
        let none = own(&self.job(speed)?);
        let idle = self.with(CpuProgram::Openssl, openssl);
        let cables = Cables::Split {
            generator: self.generator,
            device: self.core,
        };
        let pool = pool()?;
        let mut stage = Stage::build(device, !device.is_switch(), &cables, &pool)?;
        // What it takes without a packet: a worker that polls takes all.
        let cost = self.job(speed)?;
        let mut points = vec![CpuPoint {
            taken: own(&cost) - none,
            cost,
            ..CpuPoint::default()
        }];
        for rate in &self.args.rates {
            if self.control.stop.load(Ordering::Relaxed) {
                return Err(Failure::said("stopped"));
            }
            if std::io::stderr().is_terminal() {
                eprintln!("{name} at {rate:.0} packets/s");
            }
            let (run, meanwhile) = self.under_load(&mut stage, &pool, *rate, speed, device)?;
            let cost = meanwhile.cost;
            let taken = own(&cost) - none;
            let forwarded = run.received as f64 / run.seconds.max(1e-9);
            points.push(CpuPoint {
                sent: run.sent_pps,
                forwarded,
                taken,
                ns_per_packet: (forwarded > 0.0).then(|| taken * 1e9 / forwarded),
                openssl: meanwhile
                    .openssl
                    .zip(idle)
                    .map(|(now, idle)| 1.0 - now / idle.max(1.0)),
                joules: meanwhile.joules,
                symbols: meanwhile.symbols,
                cost,
            });
        }
        Ok(points)
    }

    /// A figure of another program, when it was asked for. One that fails is not worth losing a
    /// measurement for.
    fn with<T>(
        &self,
        program: CpuProgram,
        measure: impl Fn(usize, Duration) -> Result<T, Failure>,
    ) -> Option<T> {
        if !self.args.with.contains(&program) {
            return None;
        }
        measure(self.core, self.args.duration)
            .map_err(|failure| failure.tell("warning: not measured"))
            .ok()
    }

    fn job(&self, speed: f64) -> Result<CoreCost, Failure> {
        let costs = measure_at(&[(self.core, speed)], self.args.duration)?;
        Ok(costs.into_iter().next().unwrap_or_default())
    }

    /// Measures while the generator sends.
    fn under_load(
        &self,
        stage: &mut Stage,
        pool: &Pool,
        rate: f64,
        speed: f64,
        device: &Device,
    ) -> Result<(RunResult, Meanwhile), Failure> {
        let profile = profile(device.is_switch(), rate)?;
        let control = Control::default();
        let ports = &mut stage.ports;
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                weir_cpu::pin_to(self.generator).map_err(|source| {
                    weir_lab::LabError::file(format!("pin to core {}", self.generator), source)
                })?;
                run(&profile, &Plan::default(), ports, pool, &control)
            });
            // Neighbours are resolved, and queues are in their usual state.
            std::thread::sleep(Duration::from_millis(300));
            let measured = self.measured(speed);
            control.stop.store(true, Ordering::Relaxed);
            let run = sender
                .join()
                .map_err(|_| Failure::said("the generator's thread failed"))??;
            Ok((run, measured?))
        })
    }

    fn measured(&self, speed: f64) -> Result<Meanwhile, Failure> {
        let before = Energy::sample(Path::new("/"));
        let cost = self.job(speed)?;
        let joules = Energy::sample(Path::new("/")).since(&before);
        Ok(Meanwhile {
            cost,
            joules,
            openssl: self.with(CpuProgram::Openssl, openssl),
            symbols: self.with(CpuProgram::Perf, perf).unwrap_or_default(),
        })
    }
}

/// The share that the device may have taken: its threads, and what was taken while the job was running.
/// Other programs' threads, which need not even live until the end, are left out.
fn own(cost: &CoreCost) -> f64 {
    let threads = OWN.map(|name| cost.of(name));
    cost.in_context + threads.iter().sum::<f64>()
}

/// What the names of a device's threads begin with.
const OWN: [&str; 4] = ["ksoftirqd", "napi/", "weir", "ovs"];

/// What was found while a load was there.
struct Meanwhile {
    cost: CoreCost,
    openssl: Option<f64>,
    joules: Option<f64>,
    symbols: Vec<(String, f64)>,
}

/// One stream from port 0 without end.
fn profile(switched: bool, rate: f64) -> Result<Profile, Failure> {
    let mut simple = Simple {
        rate: Some(Rate::Packets(rate)),
        ..Simple::default()
    };
    if !switched {
        simple.source = Some("10.1.0.2".to_owned());
        simple.destination = Some("10.2.0.2".to_owned());
        simple.gateway = true;
    }
    Profile::simple(&simple).map_err(Failure::said)
}

/// Runs a program to its end; the error names it.
fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .output()
        .map_err(|error| Failure::said(format!("{name}: {error}")))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&done.stderr);
    Err(Failure::said(format!(
        "{name} ended with {}: {}",
        done.status,
        error.trim()
    )))
}

/// Bytes per second of wall-clock time that `openssl speed` encrypts on a core.
fn openssl(core: usize, duration: Duration) -> Result<f64, Failure> {
    let seconds = duration.as_secs().max(1).to_string();
    let text = output(Command::new("taskset").args([
        "-c",
        &core.to_string(),
        "openssl",
        "speed",
        "-elapsed",
        "-mr",
        "-seconds",
        &seconds,
        "-bytes",
        "16384",
        "-evp",
        "aes-256-cbc",
    ]))?;
    openssl_rate(&text).ok_or_else(|| Failure::said("openssl speed printed no result"))
}

/// From the line `+F:25:AES-256-CBC:559067500.99` of `openssl speed -mr`.
fn openssl_rate(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("+F:"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// The symbols that ran most on a core, by `perf record`.
fn perf(core: usize, duration: Duration) -> Result<Vec<(String, f64)>, Failure> {
    let file = std::env::temp_dir().join(format!("weir-lab-perf-{}", std::process::id()));
    let path = file.display().to_string();
    let seconds = duration.as_secs().max(1).to_string();
    let recorded = output(Command::new("perf").args([
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-C",
        &core.to_string(),
        "-o",
        &path,
        "--",
        "sleep",
        &seconds,
    ]));
    let text = recorded.and_then(|_| {
        output(Command::new("perf").args([
            "report",
            "-i",
            &path,
            "--stdio",
            "--no-children",
            "--sort",
            "comm,symbol",
            "-q",
        ]))
    });
    let _ = std::fs::remove_file(&file);
    Ok(symbols(&text?))
}

fn symbols(text: &str) -> Vec<(String, f64)> {
    text.lines()
        .filter_map(|line| {
            let (percent, rest) = line.trim().split_once('%')?;
            let words: Vec<&str> = rest
                .split_whitespace()
                .filter(|word| *word != "-")
                .collect();
            Some((words.join(" "), percent.trim().parse::<f64>().ok()? / 100.0))
        })
        .take(12)
        .collect()
}

fn table(report: &Report, to: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        to,
        "{:<16} {:>9} {:>9} {:>8} {:>10}  {:<26} softirq  irq  hypervisor  unexplained  openssl",
        "device", "sent/s", "through/s", "taken", "ns/packet", "threads"
    )?;
    for test in &report.tests {
        for point in &test.cpu {
            let cost = &point.cost;
            let (own, others): (Vec<_>, Vec<_>) = cost
                .threads
                .iter()
                .partition(|(name, _)| OWN.iter().any(|own| name.starts_with(own)));
            let threads = own.into_iter().chain(others).take(2);
            let threads: Vec<String> = threads
                .map(|(name, share)| format!("{name} {:.1} %", share * 100.0))
                .collect();
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            writeln!(
                to,
                "{:<16} {:>9.0} {:>9.0} {:>6.1} % {:>10}  {:<26} {:>5.1} % {:>4.1} % {:>8.1} % {:>10.1} %  {}",
                test.device,
                point.sent,
                point.forwarded,
                point.taken * 100.0,
                or_none(point.ns_per_packet.map(|ns| format!("{ns:.0}"))),
                threads.join(", "),
                cost.softirq_in_context() * 100.0,
                cost.irq * 100.0,
                cost.steal * 100.0,
                cost.rest() * 100.0,
                or_none(point.openssl.map(|share| format!("{:.1} %", share * 100.0))),
            )?;
        }
        if let Some(joules) = test.cpu.last().and_then(|point| point.joules) {
            writeln!(to, "{:<16} {joules:.1} J at the highest load", test.device)?;
        }
        let symbols = test.cpu.last().map(|point| &point.symbols);
        for (name, share) in symbols.into_iter().flatten().take(5) {
            writeln!(to, "  {:>5.1} %  {name}", share * 100.0)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as openssl 3.0 and perf 6.1 print them.
    #[test]
    fn outputs_of_other_programs_are_read() {
        let text = "+DT:AES-256-CBC:1:16384\n+R:34464:AES-256-CBC:1.010000\n+H:16384\n+F:25:AES-256-CBC:559067500.99\n";
        assert_eq!(openssl_rate(text), Some(559_067_500.99));
        assert_eq!(openssl_rate("error"), None);
        let text = "     5.21%  weir-worker-0  [k] bpf_redirect_map      -      -      \n\n     1.00%  swapper  [.] main -  - \n";
        assert_eq!(
            symbols(text),
            [
                ("weir-worker-0 [k] bpf_redirect_map".to_owned(), 0.0521),
                ("swapper [.] main".to_owned(), 0.01)
            ]
        );
    }
}
