//! `weir xdp trace`: why a packet went where it went.
//!
//! The programs record a number of packets into the ring of events when they are asked to; packets take the same
//! path whether they are recorded or not.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::abi::{Bytes, Event};
use crate::daemon::Folders;
use crate::error::{Error, Result};
use crate::maps::{Maps, traces};
use crate::reason;

/// How long it rests while no packet comes.
const REST: Duration = Duration::from_millis(5);

/// A packet at one of its two stages.
#[derive(Clone, Debug, Serialize)]
pub struct Traced {
    /// Nanoseconds since boot.
    pub time: u64,
    /// `ingress` or `egress`.
    pub stage: &'static str,
    /// The ifindex of arrival.
    pub in_ifindex: u32,
    /// The ifindex of departure; `None` = none, or flooded.
    pub out_ifindex: Option<u32>,
    /// Whether it was flooded.
    pub flooded: bool,
    /// Bytes.
    pub length: u32,
    /// The VLAN.
    pub vlan: u16,
    /// How the destination was found.
    pub found: &'static str,
    /// The number of the ACL rule that decided, from 0.
    pub rule: Option<u32>,
    /// What became of it: `forwarded`, `kernel`, `dropped`.
    pub verdict: &'static str,
    /// Why it was dropped.
    pub reason: Option<&'static str>,
    /// The frame's first bytes, in hexadecimal.
    pub header: String,
}

impl Traced {
    /// What an event says.
    #[must_use]
    pub fn of(event: &Event) -> Traced {
        const FOUND: [&str; 7] = [
            "not looked up",
            "known",
            "unknown",
            "group",
            "answered",
            "control",
            "route",
        ];
        let header = event
            .header
            .get(..usize::from(event.captured))
            .unwrap_or(&event.header);
        Traced {
            time: event.time,
            stage: if event.stage == 0 {
                "ingress"
            } else {
                "egress"
            },
            in_ifindex: event.in_port,
            out_ifindex: (event.out_port != 0 && event.out_port != u32::MAX)
                .then_some(event.out_port),
            flooded: event.out_port == u32::MAX,
            length: event.length,
            vlan: event.vlan,
            found: FOUND.get(usize::from(event.found)).copied().unwrap_or("?"),
            rule: event.rule.checked_sub(1),
            verdict: match (event.stage, event.verdict) {
                (_, 1) => "dropped",
                (0, 2) => "kernel",
                _ => "forwarded",
            },
            reason: reason::by_number(event.reason).map(|it| it.name),
            header: header.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Records up to `count` events of a port (`None` = any) for at most `limit`, and hands each to `sink`.
///
/// # Errors
/// When the maps cannot be used, or there is no such port.
pub fn trace(
    folders: &Folders,
    port: Option<&str>,
    count: u32,
    limit: Duration,
    mut sink: impl FnMut(Traced),
) -> Result<u32> {
    let mut maps = Maps::open(&folders.tables())?;
    let slot = match port {
        None => u32::MAX,
        Some(name) => maps
            .ports()?
            .values()
            .find(|port| {
                port.name
                    .iter()
                    .take_while(|byte| **byte != 0)
                    .eq(name.as_bytes())
            })
            .map(|port| port.slot)
            .ok_or_else(|| Error::Entry {
                action: "find",
                name: "ports",
                reason: format!("there is no port {name}"),
            })?,
    };
    let mut ring = traces(&folders.tables())?;
    // What earlier readers left is not of this trace.
    while ring.next().is_some() {}
    let mut control = maps.control()?;
    (control.trace, control.trace_slot) = (i64::from(count), slot);
    maps.set_control(&control)?;
    let deadline = Instant::now() + limit;
    let mut seen = 0;
    while seen < count && Instant::now() < deadline {
        let Some(item) = ring.next() else {
            std::thread::sleep(REST);
            continue;
        };
        let Ok(bytes) = <&[u8; 184]>::try_from(&*item) else {
            continue;
        };
        let event = Event::of_bytes(bytes);
        if event.kind == 3 {
            seen += 1;
            sink(Traced::of(&event));
        }
    }
    let mut control = maps.control()?;
    control.trace = 0;
    maps.set_control(&control)?;
    Ok(seen)
}
