//! `weir lab ndr`: searches a device's rates, and `search` for other commands.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use weir_api::Client;
use weir_buf::{Hugepages, Pool, PoolConfig};
use weir_lab::counters::{CounterSource, Counters, Linux, Vpp};
use weir_lab::mlr::{Goal, Limits, Measurer, Search, Trial, search};
use weir_lab::ndr::TrafficMeasurer;
use weir_lab::port::LabPort;
use weir_lab::profile::{FrameSize, Profile};
use weir_lab::report::{Report, Test, environment};
use weir_lab::result::Latency;
use weir_lab::run::{Control, Plan};

use super::generate::stop_on_signals;
use crate::cli::{NdrArgs, SearchArgs};
use crate::failure::{Failure, REFUSED};

const BUFFERS: usize = 32_768;

/// Weir's drop counters and interface totals, by its API.
struct Weir(Client, String);

impl CounterSource for Weir {
    fn read(&mut self) -> Result<Counters, String> {
        let mut counters = Counters::new();
        let errors = self
            .0
            .errors(None, false)
            .map_err(|error| error.to_string())?;
        for row in errors.errors {
            *counters
                .entry(format!("{}/drop/{}", self.1, row.reason))
                .or_default() += row.count;
        }
        let runtime = self.0.runtime().map_err(|error| error.to_string())?;
        for worker in runtime.workers {
            *counters
                .entry(format!("{}/clocks-busy/all", self.1))
                .or_default() += worker.busy_clocks;
            for node in worker.nodes {
                *counters
                    .entry(format!("{}/vectors/{}", self.1, node.name))
                    .or_default() += node.calls;
                *counters
                    .entry(format!("{}/clocks/{}", self.1, node.name))
                    .or_default() += node.clocks;
                *counters
                    .entry(format!("{}/packets/{}", self.1, node.name))
                    .or_default() += node.packets;
            }
        }
        Ok(counters)
    }
}

/// A running Weir as a source of counters.
pub(super) fn weir_counters(name: &str, socket: &str) -> Box<dyn CounterSource> {
    Box::new(Weir(Client::new(socket), name.to_owned()))
}

fn sources(args: &NdrArgs) -> Vec<Box<dyn CounterSource>> {
    args.device_counters
        .iter()
        .map(|text| match text.split_once('=') {
            _ if text == "linux" => Box::new(Linux::new("/", Vec::new())) as Box<dyn CounterSource>,
            Some(("vpp", socket)) => Box::new(Vpp::new(socket)),
            Some((name, socket)) => weir_counters(name, socket),
            None => weir_counters("weir", text),
        })
        .collect()
}

pub(super) fn execute(args: &NdrArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let (profile, specs) = super::traffic(&args.traffic)?;
    let pool = pool()?;
    let mut ports = Vec::new();
    for spec in &specs {
        let mut port = spec.open(&pool)?;
        port.wait_for_link(Duration::from_secs(10))?;
        ports.push(port);
    }
    let control = Arc::new(Control::default());
    stop_on_signals(&control)?;
    let mut tests = Vec::new();
    for profile in sized(&profile, &args.sizes)? {
        let mut bench = Bench {
            profile: &profile,
            ports: &mut ports,
            pool: &pool,
            control: &control,
            search: &args.search,
            noisy: !json,
        };
        let mut test = Test {
            device: args.device.clone(),
            traffic: traffic_name(&profile),
            frame: frame(&profile),
            ..Test::default()
        };
        for _ in 0..args.repeat {
            let found = bench.search(sources(args))?;
            test.repeats
                .extend(found.found.first().and_then(|found| found.lower));
            test.search = Some(found);
        }
        if args.latency
            && let Some(rate) = test.rate()
        {
            test.latency = bench.latency(rate, &[0.1, 0.5, 0.9])?;
        }
        test.costs();
        tests.push(test);
    }
    let mut environment = environment();
    environment.extend(
        ports
            .iter()
            .map(|port| ("port".to_owned(), port.describe())),
    );
    let report = Report {
        title: args.device.clone(),
        environment,
        tests,
    };
    if let Some(path) = &args.output {
        let text = serde_json::to_vec_pretty(&report).map_err(Failure::said)?;
        std::fs::write(path, text)
            .map_err(|error| Failure::said(format!("{}: {error}", path.display())))?;
    }
    print(&report, json, to)
}

pub(super) fn pool() -> Result<Pool, Failure> {
    Pool::new(PoolConfig {
        chunks: BUFFERS,
        hugepages: Hugepages::Auto,
    })
    .map_err(Failure::said)
}

/// The profile once for each frame size; as it is when there are none.
pub(super) fn sized(profile: &Profile, sizes: &[FrameSize]) -> Result<Vec<Profile>, Failure> {
    if sizes.is_empty() {
        return Ok(vec![profile.clone()]);
    }
    let one = |size: &FrameSize| profile.with_size(*size);
    sizes
        .iter()
        .map(one)
        .collect::<Result<_, _>>()
        .map_err(|problem| Failure::Coded(REFUSED, problem))
}

/// The traffic in a word.
pub(super) fn traffic_name(profile: &Profile) -> String {
    match profile.streams.first() {
        Some(spec) if spec.sizes.len() > 1 => "imix".to_owned(),
        Some(spec) => spec
            .sizes
            .first()
            .map_or_else(String::new, |(size, _)| size.to_string()),
        None => String::new(),
    }
}

pub(super) fn frame(profile: &Profile) -> f64 {
    profile
        .streams
        .first()
        .map_or(64.0, weir_lab::profile::StreamSpec::average_size)
}

/// The goals that the arguments describe.
pub(super) fn goals(args: &SearchArgs) -> Vec<Goal> {
    let trial = args.trial.as_secs_f64();
    let strict = Goal {
        exceed_ratio: args.exceed,
        duration_sum: args.sum.map_or(trial, |sum| sum.as_secs_f64().max(trial)),
        width: args.width,
        ..Goal::no_drop(trial)
    };
    let partial = args.pdr.map(|loss_ratio| Goal {
        name: "PDR".to_owned(),
        loss_ratio,
        ..strict.clone()
    });
    std::iter::once(strict).chain(partial).collect()
}

/// A device under test with the generator's ports.
pub(super) struct Bench<'a> {
    pub(super) profile: &'a Profile,
    pub(super) ports: &'a mut [LabPort],
    pub(super) pool: &'a Pool,
    pub(super) control: &'a Control,
    pub(super) search: &'a SearchArgs,
    /// Trials are printed on standard error.
    pub(super) noisy: bool,
}

impl Bench<'_> {
    fn measurer<'b>(
        &'b mut self,
        sources: Vec<Box<dyn CounterSource + 'b>>,
        progress: &'b mut dyn FnMut(&Trial),
    ) -> TrafficMeasurer<'b> {
        TrafficMeasurer {
            profile: self.profile,
            plan: Plan::default(),
            ports: self.ports,
            pool: self.pool,
            control: self.control,
            sources,
            noise_limit: self.search.noise,
            progress,
            last: None,
        }
    }

    /// Searches all goals.
    pub(super) fn search(
        &mut self,
        sources: Vec<Box<dyn CounterSource>>,
    ) -> Result<Search, Failure> {
        let limits = Limits {
            min_load: self.search.min_rate,
            max_load: self.search.max_rate,
            ..Limits::default()
        };
        let goals = goals(self.search);
        let noisy = self.noisy && std::io::stderr().is_terminal();
        let mut progress = |trial: &Trial| {
            if noisy {
                let note = trial
                    .spoilt
                    .as_ref()
                    .map_or_else(String::new, |why| format!(" (spoilt: {why})"));
                eprintln!(
                    "{:.0} packets/s for {:.2} s: lost {} of {}{note}",
                    trial.load, trial.duration, trial.lost, trial.offered
                );
            }
        };
        let sources = sources
            .into_iter()
            .map(|source| source as Box<dyn CounterSource>)
            .collect();
        let mut measurer = self.measurer(sources, &mut progress);
        search(&goals, limits, &mut measurer).map_err(Failure::said)
    }

    /// Latency at these shares of a rate.
    pub(super) fn latency(
        &mut self,
        rate: f64,
        shares: &[f64],
    ) -> Result<Vec<(f64, Latency)>, Failure> {
        let trial = self.search.trial.as_secs_f64();
        let mut nothing = |_: &Trial| {};
        let mut measurer = self.measurer(Vec::new(), &mut nothing);
        let mut all = Vec::new();
        for share in shares {
            measurer.measure(rate * share, trial)?;
            let streams = measurer
                .last
                .take()
                .map(|run| run.streams)
                .unwrap_or_default();
            // The worst direction counts.
            let worst = streams
                .into_iter()
                .filter_map(|stream| stream.latency)
                .max_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
            all.extend(worst.map(|latency| (*share, latency)));
        }
        Ok(all)
    }
}

/// Prints what was found.
pub(super) fn print(report: &Report, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(report).map_err(Failure::said)?
        )?;
        return Ok(());
    }
    for test in &report.tests {
        let trials = test.search.as_ref().map_or(0, |search| search.trials.len());
        for found in test.search.iter().flat_map(|search| &search.found) {
            let rate = |rate: Option<f64>, none: &str| {
                rate.map_or_else(|| none.to_owned(), |rate| format!("{rate:.0} packets/s"))
            };
            writeln!(
                to,
                "{}, {}: {} {}, fails at {} ({trials} trials)",
                test.device,
                test.traffic,
                found.goal.name,
                rate(found.lower, "not even the lowest rate"),
                rate(found.upper, "no rate tried")
            )?;
        }
        for (name, count) in test.drops() {
            writeln!(to, "  lost: {name} {count}")?;
        }
        for (share, latency) in &test.latency {
            writeln!(
                to,
                "  latency at {:.0} %: median {} µs, 99 % {} µs",
                share * 100.0,
                latency.p50_us,
                latency.p99_us
            )?;
        }
    }
    for comparison in weir_lab::report::compare(report) {
        writeln!(to, "{}", comparison.verdict)?;
    }
    Ok(())
}
