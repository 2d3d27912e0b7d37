//! The live view: what passes, what the collector makes of it, what was dropped.

use std::fmt::Write as _;
use std::time::Duration;

use weir_api::Router as _;
use weir_engine::Router;

use crate::demo::collector::Collected;
use crate::demo::summary::{expected_error, true_packets};
use crate::render::units;

const TALKERS: usize = 6;

/// Counters of the last picture, for rates.
#[derive(Default)]
pub(crate) struct View {
    last: Vec<(String, u64, u64)>,
}

impl View {
    /// One picture; `since` is the time since the one before.
    pub(crate) fn picture(
        &mut self,
        router: &Router,
        collected: &Collected,
        elapsed: Duration,
        since: Duration,
    ) -> String {
        let mut text = format!(
            "weir demo  {:.0} s   (Ctrl-C ends it)\n\n",
            elapsed.as_secs_f64()
        );
        self.interfaces(&mut text, router, since);
        talkers(&mut text, router, collected);
        drops(&mut text, router);
        text
    }

    fn interfaces(&mut self, text: &mut String, router: &Router, since: Duration) {
        let interfaces = router
            .interfaces()
            .map(|reply| reply.interfaces)
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{:<10}{:<10}{:>12}{:>12}{:>12}{:>12}",
            "Interface", "", "RX pkt/s", "RX Mbit/s", "TX pkt/s", "TX Mbit/s"
        );
        let seconds = since.as_secs_f64().max(1e-3);
        let mut now = Vec::new();
        for interface in &interfaces {
            let rate = |direction: &str, packets: u64, bytes: u64| {
                let key = format!("{} {direction}", interface.name);
                let before = self
                    .last
                    .iter()
                    .find(|(name, ..)| *name == key)
                    .map_or((packets, bytes), |(_, p, b)| (*p, *b));
                let per_second =
                    |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
                (
                    key,
                    per_second(packets, before.0),
                    per_second(bytes, before.1) * 8.0 / 1e6,
                )
            };
            let (rx, rx_rate, rx_bits) = rate("rx", interface.rx.packets, interface.rx.bytes);
            let (tx, tx_rate, tx_bits) = rate("tx", interface.tx.packets, interface.tx.bytes);
            let what = interface
                .l2xc
                .as_ref()
                .map_or("routed".to_owned(), |out| format!("-> {out}"));
            let _ = writeln!(
                text,
                "{:<10}{what:<10}{rx_rate:>12.0}{rx_bits:>12.1}{tx_rate:>12.0}{tx_bits:>12.1}",
                interface.name
            );
            now.push((rx, interface.rx.packets, interface.rx.bytes));
            now.push((tx, interface.tx.packets, interface.tx.bytes));
        }
        self.last = now;
    }
}

fn talkers(text: &mut String, router: &Router, collected: &Collected) {
    let truth = true_packets(router);
    let error =
        100.0 * (collected.estimated_packets as f64 - truth as f64).abs() / truth.max(1) as f64;
    let expected = expected_error(collected.samples);
    let _ = writeln!(
        text,
        "\nsFlow: {} in {}; packets estimated {}, counted {}, error {error:.2} % (expected within {expected:.2} %)",
        units::count(collected.samples, "sample", "samples"),
        units::count(collected.datagrams, "datagram", "datagrams"),
        collected.estimated_packets,
        truth
    );
    let mut talkers: Vec<_> = collected.talkers.iter().collect();
    talkers.sort_by_key(|(_, (_, _, bytes))| std::cmp::Reverse(*bytes));
    let _ = writeln!(
        text,
        "\n{:<34}{:>10}{:>14}{:>12}{:>12}",
        "Top talkers (scaled)", "Samples", "Packets", "MB", "+- %"
    );
    for ((source, destination), (samples, packets, bytes)) in talkers.into_iter().take(TALKERS) {
        let ends = format!("{source} -> {destination}");
        let _ = writeln!(
            text,
            "{ends:<34}{samples:>10}{packets:>14}{:>12.1}{:>12.1}",
            *bytes as f64 / 1e6,
            expected_error(*samples)
        );
    }
}

fn drops(text: &mut String, router: &Router) {
    let totals = router.balance();
    let _ = writeln!(
        text,
        "\nDrops: {}",
        if totals.drops.is_empty() { "none" } else { "" }
    );
    for (reason, count) in &totals.drops {
        let sentence = weir_graph::DropReason::ALL
            .iter()
            .find(|it| it.name() == reason)
            .map_or("", |it| it.sentence());
        let _ = writeln!(text, "{count:>10}  {reason:<22}{sentence}");
    }
}
