//! The order of everything: cases, and in each case bridge and Weir alternately.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::AfxdpArgs;
use super::datagrams::fly;
use super::echo::round_trips;
use super::report::{Case, RoundTripCase, TcpCase, UdpCase};
use super::stage::{Side, Stage};
use super::stream::transfer;

/// Names and rates of the cases with datagrams.
const UDP: [(&str, u32); 2] = [("afxdp-udp-50k", 50_000), ("afxdp-udp-100k", 100_000)];
/// Names of the cases with TCP, and whether offloads are on.
const TCP: [(&str, bool); 2] = [("afxdp-tcp", false), ("afxdp-tcp-gso", true)];
const ROUND_TRIP: &str = "afxdp-round-trip";
/// Making and removing the middle, warming up and waiting for the last packet; for the forecast only.
const BESIDES: Duration = Duration::from_millis(700);
/// How long a nap is between two looks at the interrupt.
const NAP: Duration = Duration::from_millis(50);

/// Somebody pressed Ctrl-C.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for SIGINT and SIGTERM from a thread of its own.
    fn watch() -> Result<Interrupt, String> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = Interrupt::default();
        let interrupted = interrupt.0.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(super::sentence)?;
        let watched = runtime.block_on(async {
            Ok((
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            ))
        });
        let (mut first, mut second) = watched.map_err(|error: std::io::Error| error.to_string())?;
        let body = move || {
            runtime.block_on(async {
                tokio::select! { _ = first.recv() => {}, _ = second.recv() => {} }
            });
            interrupted.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new()
            .name("weir-signals".to_owned())
            .spawn(body)
            .map_err(super::sentence)?;
        Ok(interrupt)
    }

    /// Whether it is to end.
    #[inline]
    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps so long, or until it is to end.
    pub(super) fn sleep(&self, lasting: Duration) {
        let until = Instant::now() + lasting;
        while !self.came() && Instant::now() < until {
            std::thread::sleep(NAP.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

/// Where the bench stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) case: &'static str,
    pub(crate) round: u32,
    pub(crate) rounds: u32,
    pub(crate) side: &'static str,
    pub(crate) left: Duration,
}

/// All cases, and whether packet memory was on hugepages; `None` when somebody pressed Ctrl-C.
pub(crate) fn measure(
    args: AfxdpArgs,
    mut tell: impl FnMut(Progress),
) -> Result<Option<(Vec<Case>, bool)>, String> {
    let cases = UDP.len() + TCP.len() + 1;
    let mut bench = Bench {
        args,
        interrupt: Interrupt::watch()?,
        tell: &mut tell,
        left: cases as u32 * args.rounds * Side::BOTH.len() as u32,
        hugepages: true,
    };
    let mut found = Vec::new();
    let lasting = Duration::from_secs(args.seconds.into());
    for (name, rate) in UDP {
        let [bridge, weir] = bench.by_turns(name, false, |stage, interrupt| {
            fly(stage, rate, lasting, interrupt)
        })?;
        found.push(Case::Udp(UdpCase::new(
            name,
            rate,
            args.seconds,
            &bridge,
            &weir,
        )));
    }
    for (name, offloads) in TCP {
        let [bridge, weir] = bench.by_turns(name, offloads, |stage, interrupt| {
            transfer(stage, lasting, interrupt)
        })?;
        found.push(Case::Tcp(TcpCase::new(
            name,
            offloads,
            args.seconds,
            &bridge,
            &weir,
        )));
    }
    let [bridge, weir] = bench.by_turns(ROUND_TRIP, false, |stage, interrupt| {
        round_trips(stage, lasting, interrupt)
    })?;
    found.push(Case::RoundTrip(RoundTripCase::new(
        ROUND_TRIP,
        args.rounds,
        args.seconds,
        bridge.concat(),
        weir.concat(),
    )));
    Ok((!bench.interrupt.came()).then_some((found, bench.hugepages)))
}

/// What goes on from case to case.
struct Bench<'a> {
    args: AfxdpArgs,
    interrupt: Interrupt,
    tell: &'a mut dyn FnMut(Progress),
    /// Rounds still to come.
    left: u32,
    hugepages: bool,
}

impl Bench<'_> {
    /// The rounds of one case, those with the bridge and those with Weir.
    fn by_turns<T>(
        &mut self,
        case: &'static str,
        offloads: bool,
        round: impl Fn(&Stage, &Interrupt) -> Result<T, String>,
    ) -> Result<[Vec<T>; 2], String> {
        let mut found = [Vec::new(), Vec::new()];
        if self.interrupt.came() {
            return Ok(found);
        }
        let stage = Stage::build(offloads)?;
        for number in 1..=self.args.rounds {
            for (side, found) in Side::BOTH.into_iter().zip(&mut found) {
                if self.interrupt.came() {
                    continue;
                }
                let left = (Duration::from_secs(self.args.seconds.into()) + BESIDES) * self.left;
                (self.tell)(Progress {
                    case,
                    round: number,
                    rounds: self.args.rounds,
                    side: side.name(),
                    left,
                });
                let middle = stage.join(side)?;
                found.push(round(&stage, &self.interrupt)?);
                if side == Side::Weir {
                    self.hugepages &= middle.on_hugepages();
                }
                self.left -= 1;
            }
        }
        Ok(found)
    }
}
