//! `weir demo bgp`: a full table by BGP, a link that is cut, and a BIRD that crashes. See `crate::demo::bgp`.

use std::io::Write;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::DemoBgpArgs;
use crate::demo::bgp::compare::compare;
use crate::demo::bgp::probe::Probe;
use crate::demo::bgp::process::{bird_exported, control_cpu_seconds, resident_bytes};
use crate::demo::bgp::stage::{Site, Stage, folder};
use crate::demo::bgp::texts::Announced;
use crate::failure::Failure;
use crate::signals::Signals;

/// The demo ends after this time at the latest.
const LIMIT: Duration = Duration::from_secs(170);
/// When it has not ended by then, or for [`GRACE`] after a signal, it is ended from outside: a call hangs.
const LAST: Duration = Duration::from_secs(178);
const GRACE: Duration = Duration::from_secs(5);
/// How often counters are read.
const LOOK: Duration = Duration::from_millis(100);
/// Packets a second of the probe.
const RATE: u32 = 2000;
/// Destinations of the probe.
const DESTINATIONS: usize = 4096;
/// How long after a link is cut packets are still counted as lost by it.
const FAILOVER: Duration = Duration::from_secs(3);
/// The tables have settled when nothing has changed for this time.
const QUIET: Duration = Duration::from_secs(3);

/// What the demo measured.
#[derive(Clone, Debug, Default, Serialize)]
struct Summary {
    /// Routes of BIRD in the kernel of the router that learns the table.
    routes_kernel: u64,
    /// Routes of the kernel in Weir's forwarding tables.
    routes_fib: u64,
    /// Routes that the kernel has and Weir has not, or that lead elsewhere there.
    missing: u64,
    /// Routes that Weir has and the kernel has not.
    stale: u64,
    /// CPU time of Weir's threads, without workers, while the table came.
    weir_cpu_seconds: f64,
    /// From the last route of BIRD in the kernel to the last one in the forwarding tables.
    seconds_after_kernel: f64,
    /// Times that all tables of the kernel were read again.
    resyncs: u64,
    /// From the cut to the last packet that was lost.
    failover_ms: f64,
    /// Pings that were lost, from the complete table to the end.
    ping_loss_percent: Option<f64>,
    /// Packets that were lost while BIRD was killed and learned the table anew.
    restart_loss_percent: f64,
    /// Memory that the router needed more with the table than without, by route.
    rib_bytes_per_route: u64,
}

/// Runs the demo.
pub(crate) fn execute(args: &DemoBgpArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let mut demo = Demo::begin(args, to)?;
    let mut summary = Summary::default();
    demo.load(&mut summary)?;
    demo.disturb(&mut summary)?;
    demo.compare(&mut summary)?;
    if args.json {
        let text = serde_json::to_string_pretty(&summary).map_err(Failure::said)?;
        writeln!(demo.to, "{text}")?;
    } else {
        demo.print(&summary)?;
    }
    Ok(())
}

struct Demo<'a> {
    args: &'a DemoBgpArgs,
    to: &'a mut dyn Write,
    began: Instant,
    announced: Announced,
    stage: Stage,
    signals: Signals,
    _alive: Arc<()>,
}

/// Ends the process when the demo does not end by itself. The kernel ends its children, and with them the namespaces go.
fn guard(began: Instant, signals: Signals, alive: Weak<()>) -> Result<(), Failure> {
    let watch = move || {
        let mut arrived = None;
        while alive.strong_count() > 0 {
            if signals.arrived() {
                arrived.get_or_insert_with(Instant::now);
            }
            let is_stuck = arrived.is_some_and(|at: Instant| at.elapsed() > GRACE);
            if is_stuck || began.elapsed() > LAST {
                eprintln!("weir: the demo is ended: it did not end by itself");
                let _ = std::fs::remove_dir_all(folder());
                std::process::exit(i32::from(crate::failure::FAILED));
            }
            std::thread::sleep(LOOK);
        }
    };
    let thread = std::thread::Builder::new().name("demo-guard".into());
    thread.spawn(watch).map(drop).map_err(Failure::said)
}

/// What the router that learns the table counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    routes: u64,
    applied: u64,
    messages: u64,
    resyncs: u64,
}

fn read(site: &Site) -> Result<Reading, Failure> {
    let linux = site.client.linux().map_err(Failure::said)?;
    let feed = linux.feed.unwrap_or_default();
    Ok(Reading {
        routes: linux.audit.routes,
        applied: feed.applied,
        messages: feed.messages,
        resyncs: feed.resyncs,
    })
}

impl<'a> Demo<'a> {
    fn begin(args: &'a DemoBgpArgs, to: &'a mut dyn Write) -> Result<Demo<'a>, Failure> {
        let (began, alive) = (Instant::now(), Arc::new(()));
        let signals = Signals::new()?;
        guard(began, signals.clone(), Arc::downgrade(&alive))?;
        let announced = Announced::new(args.routes as usize, args.routes6 as usize);
        let stage = Stage::build(&announced).map_err(Failure::said)?;
        let mut demo = Demo {
            args,
            to,
            began,
            announced,
            stage,
            signals,
            _alive: alive,
        };
        demo.say("two routers are up, joined by two links")?;
        Ok(demo)
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        if !self.args.json {
            writeln!(
                self.to,
                "{:>6.1} s  {text}",
                self.began.elapsed().as_secs_f64()
            )?;
            self.to.flush()?;
        }
        Ok(())
    }

    /// Fails when a signal has arrived, the demo's time is over, or a daemon has ended.
    fn check(&mut self, what: &str) -> Result<(), Failure> {
        if self.signals.arrived() {
            return Err(Failure::said("the demo was ended by a signal"));
        }
        self.stage.west.check_bird().map_err(Failure::said)?;
        self.stage.east.check_bird().map_err(Failure::said)?;
        if self.began.elapsed() < LIMIT {
            return Ok(());
        }
        let limit = LIMIT.as_secs();
        Err(Failure::said(format!("{what} after {limit} s")))
    }

    /// Lets time pass.
    fn pause(&mut self, time: Duration) -> Result<(), Failure> {
        let until = Instant::now() + time;
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            self.check("the demo is not complete")?;
            std::thread::sleep(rest.min(LOOK));
        }
        Ok(())
    }

    fn exported(&self) -> u64 {
        let control = self.stage.west.bird_control();
        ["k4", "k6"]
            .iter()
            .filter_map(|protocol| bird_exported(&control, protocol))
            .sum()
    }

    /// The daemons start; the table comes.
    fn load(&mut self, summary: &mut Summary) -> Result<(), Failure> {
        let pid = self.stage.west.weir.id();
        let (before, resyncs) = (
            resident_bytes(pid).unwrap_or(0),
            read(&self.stage.west)?.resyncs,
        );
        let cpu = control_cpu_seconds(pid).unwrap_or(0.0);
        for name in ["east", "west"] {
            let host = self.stage.lab.host(name).map_err(Failure::said)?.clone();
            let site = if name == "east" {
                &mut self.stage.east
            } else {
                &mut self.stage.west
            };
            site.start_bird(&host, false).map_err(Failure::said)?;
        }
        let wanted = self.announced.len() as u64;
        self.say(&format!(
            "BIRD runs on both; east announces {wanted} prefixes"
        ))?;
        let mut kernel = None;
        // Beside the table there are the routes to the other loopback.
        let reading = loop {
            self.check("the table has not come")?;
            let reading = read(&self.stage.west)?;
            if kernel.is_none() && self.exported() >= wanted + 2 {
                kernel = Some(Instant::now());
            }
            if kernel.is_some() && reading.routes >= wanted + 2 {
                break reading;
            }
            std::thread::sleep(LOOK);
        };
        let after = kernel.map_or(Duration::ZERO, |kernel| kernel.elapsed());
        summary.seconds_after_kernel = rounded(if after > LOOK {
            after.as_secs_f64()
        } else {
            0.0
        });
        summary.weir_cpu_seconds = rounded(control_cpu_seconds(pid).unwrap_or(0.0) - cpu);
        summary.resyncs = reading.resyncs - resyncs;
        let grown = resident_bytes(pid).unwrap_or(0).saturating_sub(before);
        summary.rib_bytes_per_route = grown / wanted.max(1);
        self.say(&format!(
            "the table is complete: {} routes, {} s of CPU time, {} bytes a route",
            reading.routes, summary.weir_cpu_seconds, summary.rib_bytes_per_route
        ))
    }

    /// Traffic, a link that is cut, a daemon that is killed.
    fn disturb(&mut self, summary: &mut Summary) -> Result<(), Failure> {
        let (near, far) = (
            self.stage.host("host-a").map_err(Failure::said)?.clone(),
            self.stage.host("host-b").map_err(Failure::said)?.clone(),
        );
        let (nets, step) = (
            &self.announced.four,
            self.announced.four.len() / DESTINATIONS + 1,
        );
        let destinations: Vec<_> = nets
            .iter()
            .step_by(step)
            .map(|net| net.hosts().next().unwrap_or(net.network()))
            .collect();
        let target = destinations
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        // The first packets wait for neighbours.
        let _ = near.run(
            "ping",
            &["-c", "3", "-i", "0.2", "-n", &target],
            Duration::from_secs(10),
        );
        let ping = near
            .spawn("ping", &["-i", "0.1", "-n", "-q", &target])
            .map_err(Failure::said)?;
        let probe = Probe::start(&near, &far, destinations, RATE).map_err(Failure::said)?;
        self.pause(Duration::from_secs(2))?;
        let cut = Instant::now();
        self.stage
            .set_link("link-1", false)
            .map_err(Failure::said)?;
        self.say("link 1 is cut")?;
        self.pause(FAILOVER)?;
        self.settle("BIRD has not moved the table to the other link")?;
        self.say("BIRD has moved the table to the other link")?;
        let killed = Instant::now();
        self.stage.west.kill_bird();
        self.pause(Duration::from_secs(1))?;
        let host = self.stage.host("west").map_err(Failure::said)?.clone();
        self.stage
            .west
            .start_bird(&host, true)
            .map_err(Failure::said)?;
        self.say("west's BIRD was killed and starts anew")?;
        let wanted = self.announced.len() as u64;
        while self.exported() < wanted + 2 {
            self.check("BIRD has not learned the table again")?;
            std::thread::sleep(LOOK);
        }
        self.settle("the tables do not settle after BIRD's restart")?;
        let restarted = Instant::now();
        self.say(&format!(
            "BIRD has learned the table again; {} packets of the probe arrived",
            probe.received()
        ))?;
        let ping = ping.interrupt().map_err(Failure::said)?;
        let record = probe.stop();
        summary.failover_ms = rounded(record.last_loss_after(cut, FAILOVER).as_secs_f64() * 1e3);
        summary.restart_loss_percent = rounded(record.loss_percent(killed, restarted));
        summary.ping_loss_percent = crate::demo::traffic::loss(&ping.stdout);
        Ok(())
    }

    /// Waits until the feed has had nothing to do for a while.
    fn settle(&mut self, what: &str) -> Result<(), Failure> {
        let (mut last, mut since) = (read(&self.stage.west)?, Instant::now());
        while since.elapsed() < QUIET {
            self.check(what)?;
            std::thread::sleep(LOOK);
            let now = read(&self.stage.west)?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    fn compare(&mut self, summary: &mut Summary) -> Result<(), Failure> {
        let namespace = self
            .stage
            .host("west")
            .map_err(Failure::said)?
            .namespace()
            .clone();
        let compared = compare(&namespace, &self.stage.west.client).map_err(Failure::said)?;
        summary.routes_kernel = compared.kernel;
        summary.routes_fib = compared.fib;
        summary.missing = compared.missing;
        summary.stale = compared.stale;
        self.say("kernel and forwarding tables are compared")
    }

    fn print(&mut self, it: &Summary) -> Result<(), Failure> {
        let ping = it
            .ping_loss_percent
            .map_or_else(|| "-".to_owned(), |loss| format!("{loss} %"));
        let lines = [
            ("routes of BIRD in the kernel", it.routes_kernel.to_string()),
            (
                "of them in the forwarding tables",
                it.routes_fib.to_string(),
            ),
            ("missing or different", it.missing.to_string()),
            ("stale", it.stale.to_string()),
            (
                "CPU time of Weir for the table",
                format!("{} s", it.weir_cpu_seconds),
            ),
            (
                "complete after the kernel",
                format!("{} s", it.seconds_after_kernel),
            ),
            ("tables read again", it.resyncs.to_string()),
            (
                "last packet lost after the cut",
                format!("{} ms", it.failover_ms),
            ),
            ("pings lost", ping),
            (
                "packets lost over BIRD's restart",
                format!("{} %", it.restart_loss_percent),
            ),
            (
                "memory a route",
                format!("{} bytes", it.rib_bytes_per_route),
            ),
        ];
        writeln!(self.to)?;
        for (what, value) in lines {
            writeln!(self.to, "{what:<36} {value}")?;
        }
        Ok(())
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
