//! `weir bench xdp`: what a frame from a card to a guest costs, beside the Linux bridge with the same rules, with many
//! rules, and with sFlow. The figure is CPU time of receive processing; `host` says how it is taken.
//!
//! Rounds of all hosts alternate, and each figure is the median of its rounds. A missed limit is no failure.

use std::io::Write;
use std::net::UdpSocket;

use serde::Serialize;
use weir_netlink::lab::Running;
use weir_xdp::measure::{BURST, Generator, LONG_BURST, NapiThread};

use super::host::{Files, Guest, Host, bridge, configuration, frame, median};
use crate::failure::Failure;
use crate::render::{Cell, Column, Screen, Table};

const FRAMES: u64 = 80_000;
const RATE: u32 = 200_000;
/// UDP ports that the ACLs deny; one more rule permits the rest.
const FEW: u16 = 9;
const MANY: u16 = 999;
/// One frame in this many is sampled.
const SAMPLED: u32 = 1000;

/// One comparison.
#[derive(Serialize)]
struct Row {
    guest: &'static str,
    /// Frames that arrive back to back.
    burst: u32,
    what: &'static str,
    base: &'static str,
    ns_base: f64,
    ns: f64,
    ratio: f64,
    limit: f64,
}

/// A host that is measured, with what must live as long.
struct Side {
    host: Host,
    thread: NapiThread,
    costs: Vec<f64>,
    _kept: (Option<(Files, Running)>, Option<weir_xdp::measure::Pop>),
}

impl Side {
    fn xdp(kind: Guest, denied: u16, sflow: Option<&str>) -> Result<Side, Failure> {
        let files = Files::new()?;
        let host = Host::build(kind)?;
        files.write(&configuration(&host, denied, sflow.map(|to| (to, SAMPLED))))?;
        let machine = host.lab.host("host").map_err(Failure::said)?.clone();
        let running = files.start(&machine)?;
        Ok(Side {
            thread: host.card_thread()?,
            host,
            costs: Vec::new(),
            _kept: (Some((files, running)), None),
        })
    }

    fn bridge(kind: Guest) -> Result<Side, Failure> {
        let (host, pop) = bridge(kind, FEW)?;
        Ok(Side {
            thread: host.card_thread()?,
            host,
            costs: Vec::new(),
            _kept: (None, pop),
        })
    }
}

pub(crate) fn execute(rounds: u32, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    weir_netlink::lab::preflight().map_err(Failure::said)?;
    let mut rows = Vec::new();
    for (kind, guest) in [(Guest::Tap, "TAP"), (Guest::Veth, "veth")] {
        rows.extend(compare(kind, guest, rounds)?);
    }
    if json {
        let text = serde_json::to_string_pretty(&rows).map_err(Failure::said)?;
        return Ok(writeln!(to, "{text}")?);
    }
    let mut table = Table::new([
        Column::text("Guest"),
        Column::number("Burst"),
        Column::text("What"),
        Column::text("Compared with"),
        Column::number("ns"),
        Column::number("ns there"),
        Column::number("Ratio"),
        Column::number("Limit"),
    ]);
    for row in &rows {
        table.row([
            row.guest.into(),
            u64::from(row.burst).into(),
            row.what.into(),
            row.base.into(),
            Cell::from(&format!("{:.0}", row.ns)),
            Cell::from(&format!("{:.0}", row.ns_base)),
            Cell::from(&format!("{:.2}", row.ratio)),
            Cell::from(&format!("{:.2}", row.limit)),
        ]);
    }
    Ok(write!(to, "{}", table.draw(&Screen::of_stdout()))?)
}

fn compare(kind: Guest, guest: &'static str, rounds: u32) -> Result<Vec<Row>, Failure> {
    let collector = UdpSocket::bind("127.0.0.1:0").map_err(Failure::said)?;
    let collector = collector.local_addr().map_err(Failure::said)?.to_string();
    let mut generator = Generator::new(&frame(4000), 1000).map_err(Failure::said)?;
    let mut sides = [
        Side::bridge(kind)?,
        Side::xdp(kind, FEW, None)?,
        Side::xdp(kind, MANY, None)?,
        Side::xdp(kind, FEW, Some(&collector))?,
    ];
    let mut rows = Vec::new();
    for burst in [BURST, LONG_BURST] {
        generator.burst = burst;
        // The first round fills caches and tables, and does not count.
        for round in 0..=rounds {
            for side in &mut sides {
                let cost = side
                    .host
                    .cost(&mut generator, &side.thread, (RATE, FRAMES))?;
                if round > 0 {
                    side.costs.push(cost);
                }
            }
        }
        let [bridge, few, many, sampled] =
            std::array::from_fn(|side| median(std::mem::take(&mut sides[side].costs)));
        let row = |what, base, ns: f64, ns_base: f64, limit| Row {
            guest,
            burst,
            what,
            base,
            ns_base,
            ns,
            ratio: ns / ns_base,
            limit,
        };
        rows.extend([
            row(
                "VLAN pop, ACL of 10 rules",
                "bridge and nft",
                few,
                bridge,
                0.25,
            ),
            row("ACL of 1,000 rules", "10 rules", many, few, 1.5),
            row("sFlow at 1:1000", "without", sampled, few, 1.02),
        ]);
    }
    Ok(rows)
}
