//! `weir monitor`: a running router, drawn anew again and again.
//!
//! Rates are differences of counters over the time between two answers of the router. On a terminal
//! each picture replaces the one before; elsewhere they follow one another, and as JSON each is one
//! line. [`repeat`] also serves `weir show --watch`.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use weir_api::Interface;

use crate::cli::{Monitor, MonitorInterfaceArgs, Where};
use crate::failure::Failure;
use crate::render::{self, Screen, rates::Rate};

/// Does it.
pub(crate) fn execute(
    what: &Monitor,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    match what {
        Monitor::Interface(args) => interfaces(args, at, json, to),
        Monitor::Events(args) => super::events::execute(args, at, json, to),
    }
}

fn interfaces(
    args: &MonitorInterfaceArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let client = at.client()?;
    let mut last = Reading::of(client.interfaces(args.interface.as_deref())?.interfaces);
    let mut left = args.count;
    repeat(args.interval, false, to, |to| {
        let next = Reading::of(client.interfaces(args.interface.as_deref())?.interfaces);
        let rates = next.since(&last);
        if json {
            writeln!(
                to,
                "{}",
                serde_json::to_string(&serde_json::json!({ "interfaces": rates }))
                    .map_err(Failure::said)?
            )?;
        } else {
            to.write_all(
                picture(&render::rates::interfaces(&rates, &Screen::of_stdout())).as_bytes(),
            )?;
        }
        last = next;
        left = left.map(|left| left.saturating_sub(1));
        Ok(left != Some(0))
    })
}

/// A picture as it is put on a terminal: over the one before. Elsewhere, as it is.
pub(crate) fn picture(text: &str) -> String {
    if !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    // ECMA-48: home, each line with its rest erased, then everything below.
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// Does something again and again until it says that it is enough, or Ctrl-C is pressed, which is
/// no failure. `at_once`: also before the first interval.
pub(crate) fn repeat(
    interval: Duration,
    at_once: bool,
    to: &mut dyn Write,
    mut each: impl FnMut(&mut dyn Write) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::said)?;
    let mut interrupt = runtime
        .block_on(async { signal(SignalKind::interrupt()) })
        .map_err(Failure::said)?;
    let mut terminate = runtime
        .block_on(async { signal(SignalKind::terminate()) })
        .map_err(Failure::said)?;
    let mut wait = |interval| {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => false,
                _ = terminate.recv() => false,
                () = tokio::time::sleep(interval) => true,
            }
        })
    };
    let clear = if std::io::stdout().is_terminal() {
        "\x1b[H\x1b[2J"
    } else {
        ""
    };
    to.write_all(clear.as_bytes())?;
    let mut interval_before = if at_once { Duration::ZERO } else { interval };
    while wait(interval_before) {
        if !each(to)? {
            break;
        }
        to.flush()?;
        interval_before = interval;
    }
    Ok(())
}

/// Counters at a time.
struct Reading {
    at: Instant,
    interfaces: Vec<Interface>,
}

impl Reading {
    fn of(interfaces: Vec<Interface>) -> Self {
        Self {
            at: Instant::now(),
            interfaces,
        }
    }

    /// What passed in a second; nothing for an interface that is new, or whose counters began anew.
    fn since(&self, earlier: &Self) -> Vec<Rate> {
        let seconds = (self.at - earlier.at).as_secs_f64().max(1e-3);
        let before: HashMap<u32, &Interface> = earlier
            .interfaces
            .iter()
            .map(|interface| (interface.index, interface))
            .collect();
        let rate = |now: &Interface| {
            let before = before.get(&now.index);
            let difference = |counter: fn(&Interface) -> u64| {
                let passed = before
                    .and_then(|before| counter(now).checked_sub(counter(before)))
                    .unwrap_or(0);
                passed as f64 / seconds
            };
            Rate {
                interface: now.name.clone(),
                link: now.link,
                rx_packets: difference(|interface| interface.rx.packets),
                rx_bits: 8.0 * difference(|interface| interface.rx.bytes),
                tx_packets: difference(|interface| interface.tx.packets),
                tx_bits: 8.0 * difference(|interface| interface.tx.bytes),
                drops: difference(|interface| interface.drops),
            }
        };
        self.interfaces.iter().map(rate).collect()
    }
}
