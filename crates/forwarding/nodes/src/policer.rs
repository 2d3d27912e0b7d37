//! policer-input and policer-output: how much an interface may receive or send.
//!
//! A single rate and two colours: RFC 2697 in its colour-blind mode with an excess burst of 0. A packet conforms if the bucket has
//! as many bytes as it is long from the IP header on (RFC 2697 section 3), or behind the Ethernet header if it is not IP; else it is dropped. The
//! bucket is full at first, holds `burst` bytes and gets `rate` bits a second. All workers share it: each takes what a vector needs in one exchange.
//!
//! The input policer comes before all other features, the output policer after them. ARP, neighbour discovery for groups and
//! LACP are not policed: without them the link would fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_buf::Pkt;
use weir_graph::{Cx, DropReason, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::{Feature, Input, Interface};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_wire::{EtherType, EthernetHeader};

use crate::features::{self, FeatureArc, FeatureSpec};
use crate::frame::ETHERNET;
use crate::{Tables, vector_loops};

/// What passed a policer or did not, all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicerSums {
    /// Packets that conformed.
    pub conformed_packets: u64,
    /// Their bytes, as the policer counts them.
    pub conformed_bytes: u64,
    /// Packets that were dropped.
    pub dropped_packets: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
}

/// What one worker counted.
#[derive(Debug, Default)]
struct Block {
    conformed_packets: Counter,
    conformed_bytes: Counter,
    dropped_packets: Counter,
    dropped_bytes: Counter,
}

/// The counters of a policer, which live as long as its interface has one.
#[derive(Debug)]
pub struct PolicerCounters(Box<[Padded<Block>]>);

impl PolicerCounters {
    /// Counters for `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> PolicerCounters {
        PolicerCounters((0..workers).map(|_| Padded::default()).collect())
    }

    /// All workers together.
    #[must_use]
    pub fn sums(&self) -> PolicerSums {
        self.0
            .iter()
            .fold(PolicerSums::default(), |sums, Padded(block)| PolicerSums {
                conformed_packets: sums.conformed_packets + block.conformed_packets.get(),
                conformed_bytes: sums.conformed_bytes + block.conformed_bytes.get(),
                dropped_packets: sums.dropped_packets + block.dropped_packets.get(),
                dropped_bytes: sums.dropped_bytes + block.dropped_bytes.get(),
            })
    }
}

/// A policer of one interface and direction.
#[derive(Debug)]
pub struct Policer {
    /// Time units that a byte takes at the rate, with [`FRACTION`] bits behind the point.
    price: u64,
    /// Time units that a full bucket takes.
    full: u64,
    /// When the bucket will be full again, in time units that wrap around (the generic cell rate algorithm, ITU-T I.371, with
    /// which the token bucket is equivalent).
    full_at: AtomicU64,
    counters: Arc<PolicerCounters>,
}

/// Time units a nanosecond: fine enough for the shortest packet at a terabit a second.
const UNITS: u64 = 256;
const FRACTION: u32 = 20;
/// How often a worker tries to take what its vector needs, before it leaves that to others.
const TRIES: usize = 64;

impl Policer {
    /// A policer of `rate` bits a second, at least 8,000 and at most 10^12, with a bucket of `burst` bytes. It starts full.
    #[must_use]
    pub fn new(rate: u64, burst: u32, counters: Arc<PolicerCounters>) -> Policer {
        let rate = rate.clamp(8_000, 1_000_000_000_000);
        let price = ((8_000_000_000 * u128::from(UNITS)) << FRACTION) / u128::from(rate);
        let full = (price * u128::from(burst)) >> FRACTION;
        Policer {
            price: price as u64,
            full: full as u64,
            full_at: AtomicU64::new(0),
            counters,
        }
    }

    /// A policer with the same bucket as it is now, and without counters: for packets that are not forwarded.
    #[must_use]
    pub fn copy(&self) -> Policer {
        Policer {
            price: self.price,
            full: self.full,
            full_at: AtomicU64::new(self.full_at.load(Relaxed)),
            counters: Arc::new(PolicerCounters::new(0)),
        }
    }

    /// Time units that `bytes` take, at most 2^16.
    #[inline(always)]
    fn time_of(&self, bytes: usize) -> u64 {
        (bytes.min(1 << 16) as u64 * self.price) >> FRACTION
    }

    /// Polices packets at a time of the router's clock; `colour` is called with each one's index and whether it conforms.
    #[inline(always)]
    fn police(
        &self,
        now: u64,
        worker: usize,
        packets: &[Pkt],
        mut colour: impl FnMut(usize, bool),
    ) {
        let now = now.wrapping_mul(UNITS);
        let mut before = self.full_at.load(Relaxed);
        let mut sums = PolicerSums::default();
        // Each try starts again with what the others have left; the last one has failed only if they took all.
        for _ in 0..TRIES {
            sums = PolicerSums::default();
            let mut missing = self.missing(before, now);
            for (place, packet) in packets.iter().enumerate() {
                let bytes = packet.total_len().saturating_sub(ETHERNET);
                let more = missing + self.time_of(bytes);
                let conforms = more <= self.full;
                if conforms {
                    missing = more;
                    sums.conformed_packets += 1;
                    sums.conformed_bytes += bytes as u64;
                } else {
                    sums.dropped_packets += 1;
                    sums.dropped_bytes += bytes as u64;
                }
                colour(place, conforms);
            }
            let after = now.wrapping_add(missing);
            match self
                .full_at
                .compare_exchange_weak(before, after, Relaxed, Relaxed)
            {
                Ok(_) => break,
                Err(other) => before = other,
            }
        }
        if let Some(Padded(block)) = self.counters.0.get(worker) {
            block.conformed_packets.add(sums.conformed_packets);
            block.conformed_bytes.add(sums.conformed_bytes);
            block.dropped_packets.add(sums.dropped_packets);
            block.dropped_bytes.add(sums.dropped_bytes);
        }
    }

    /// Time units until the bucket is full. More than a full bucket cannot be missing: then it has been full for long, and the
    /// time has wrapped around.
    #[inline(always)]
    fn missing(&self, full_at: u64, now: u64) -> u64 {
        let missing = full_at.wrapping_sub(now);
        if missing <= self.full { missing } else { 0 }
    }
}

/// The policers of an interface.
#[derive(Clone, Debug, Default)]
pub struct Policers {
    /// Of what comes in ([`Feature::PoliceIn`]).
    pub input: Option<Arc<Policer>>,
    /// Of what goes out ([`Feature::PoliceOut`]).
    pub output: Option<Arc<Policer>>,
}

impl Policers {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.input.is_none() && self.output.is_none()
    }

    /// Copies with buckets of their own ([`Policer::copy`]).
    #[must_use]
    pub fn copies(&self) -> Policers {
        let copy = |policer: &Arc<Policer>| Arc::new(policer.copy());
        Policers {
            input: self.input.as_ref().map(copy),
            output: self.output.as_ref().map(copy),
        }
    }
}

pub(crate) const INPUT: FeatureSpec = FeatureSpec {
    feature: Feature::PoliceIn,
    node: "policer-input",
    arcs: &[
        FeatureArc::Ip4,
        FeatureArc::Ip6,
        FeatureArc::Bridge,
        FeatureArc::CrossConnect,
        FeatureArc::Mpls,
    ],
    runs_before: &["acl-input", "ip4-urpf", "ip6-urpf"],
};

pub(crate) const OUTPUT: FeatureSpec = FeatureSpec {
    feature: Feature::PoliceOut,
    node: "policer-output",
    arcs: &[FeatureArc::Output],
    runs_before: &[],
};

pub(crate) struct PolicerInput;

impl Node<Tables> for PolicerInput {
    const SPEC: NodeSpec = NodeSpec {
        name: INPUT.node,
        about: "Drops what an interface receives beyond its rate and burst.",
        nexts: &[],
        reasons: &[DropReason::Policed, DropReason::InterfaceDown],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        vector_loops::each_run(
            packets,
            verdicts,
            Pkt::interface,
            |index, packets, verdicts| {
                let Some(entry) = cx.world.entry(index) else {
                    return verdicts.fill(Verdict::drop(DropReason::InterfaceDown));
                };
                for (packet, verdict) in packets.iter_mut().zip(&mut *verdicts) {
                    *verdict = onward(&entry.interface, packet);
                }
                police(cx, entry.policers.input.as_deref(), packets, verdicts);
            },
        );
        Outcome::Each
    }
}

/// Where a packet goes that conforms.
#[inline(always)]
fn onward(interface: &Interface, packet: &mut Pkt) -> Verdict {
    let arc = match interface.input {
        Input::CrossConnect(out) => {
            packet.set_aux(out);
            FeatureArc::CrossConnect
        }
        Input::Bridge { .. } => FeatureArc::Bridge,
        _ => match EthernetHeader::read(packet.data()).map(|(header, _)| header.ethertype()) {
            Some(EtherType::MPLS) => FeatureArc::Mpls,
            Some(EtherType::IPV6) => FeatureArc::Ip6,
            _ => FeatureArc::Ip4,
        },
    };
    features::next(arc, interface, Some(const { features::number(INPUT.node) }))
}

pub(crate) struct PolicerOutput;

impl Node<Tables> for PolicerOutput {
    const SPEC: NodeSpec = NodeSpec {
        name: OUTPUT.node,
        about: "Drops what an interface should send beyond its rate and burst.",
        nexts: &[],
        reasons: &[DropReason::Policed, DropReason::TxDown],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        vector_loops::each_run(packets, verdicts, Pkt::aux, |index, packets, verdicts| {
            let Some(entry) = cx.world.entry(index) else {
                return verdicts.fill(Verdict::drop(DropReason::TxDown));
            };
            let onward = features::next(
                FeatureArc::Output,
                &entry.interface,
                Some(const { features::number(OUTPUT.node) }),
            );
            verdicts.fill(onward);
            police(cx, entry.policers.output.as_deref(), packets, verdicts);
        });
        Outcome::Each
    }
}

/// Packets of one interface, whose verdicts are those of packets that conform.
#[inline(always)]
fn police(
    cx: &Cx<'_, Tables>,
    policer: Option<&Policer>,
    packets: &[Pkt],
    verdicts: &mut [Verdict],
) {
    if let Some(policer) = policer {
        let mut dropped = [0u64; 4];
        policer.police(cx.now, cx.worker, packets, |place, conforms| {
            let (word, bit) = (place / 64 % 4, place % 64);
            dropped[word] = dropped[word] & !(1 << bit) | u64::from(!conforms) << bit;
        });
        for (place, verdict) in verdicts.iter_mut().enumerate() {
            if dropped[place / 64 % 4] >> (place % 64) & 1 != 0 {
                *verdict = Verdict::drop(DropReason::Policed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn policer(rate: u64, burst: u32) -> Policer {
        Policer::new(rate, burst, Arc::new(PolicerCounters::new(1)))
    }

    /// Packets of a length that conform, of those that come at a time.
    fn conforming(policer: &Policer, now: u64, bytes: usize, packets: usize) -> usize {
        let time = policer.time_of(bytes);
        let now = now.wrapping_mul(UNITS);
        let mut missing = policer.missing(policer.full_at.load(Relaxed), now);
        let count = (0..packets)
            .take_while(|_| {
                let conforms = missing + time <= policer.full;
                missing += if conforms { time } else { 0 };
                conforms
            })
            .count();
        policer.full_at.store(now.wrapping_add(missing), Relaxed);
        count
    }

    #[test]
    fn a_burst_conforms_and_then_the_rate() {
        // 8 Mbit/s are 1,000 bytes a millisecond.
        let policer = policer(8_000_000, 10_000);
        assert_eq!(conforming(&policer, SECOND, 1000, 100), 10);
        assert_eq!(conforming(&policer, SECOND, 1000, 100), 0);
        assert_eq!(conforming(&policer, SECOND + 3_000_000, 1000, 100), 3);
        assert_eq!(conforming(&policer, SECOND + 3_500_000, 1000, 100), 0);
        assert_eq!(conforming(&policer, SECOND + 4_000_000, 1000, 100), 1);
        // The bucket holds no more than the burst.
        assert_eq!(conforming(&policer, 60 * SECOND, 1000, 100), 10);
        // What is longer than it never conforms.
        assert_eq!(conforming(&policer, 120 * SECOND, 10_001, 1), 0);
        assert_eq!(conforming(&policer, 120 * SECOND, 10_000, 2), 1);
    }

    #[test]
    fn a_steady_flow_gets_its_rate_at_any_speed() {
        for rate in [
            8_000,
            64_000,
            1_000_000_000,
            400_000_000_000,
            1_000_000_000_000,
        ] {
            let policer = policer(rate, 100_000);
            let (bytes, step) = (50, (400 * SECOND / rate / 4).max(1));
            let wanted = rate as f64 / 8.0;
            let steps = 100_000;
            conforming(&policer, SECOND, bytes, 1_000_000);
            let sent: usize = (1..=steps)
                .map(|n| bytes * conforming(&policer, SECOND + n * step, bytes, 1_000_000))
                .sum();
            let seconds = (steps * step) as f64 / SECOND as f64;
            let share = sent as f64 / seconds / wanted;
            assert!((0.99..1.01).contains(&share), "{rate}: {share}");
        }
    }

    #[test]
    fn long_rest_and_wrapped_time_leave_a_full_bucket() {
        let policer = policer(8_000, 2000);
        assert_eq!(conforming(&policer, SECOND, 1000, 9), 2);
        for now in [
            u64::MAX / UNITS,
            u64::MAX / UNITS + SECOND * 10,
            u64::MAX / 2,
            u64::MAX - 1,
        ] {
            assert_eq!(conforming(&policer, now, 1000, 9), 2, "{now}");
        }
    }
}
