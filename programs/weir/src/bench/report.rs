//! What was found, under names that stay.
//!
//! `bridge` and `weir` have the same fields in the same units. `…_low` and `…_high` are quartiles over
//! the rounds; a ratio is Weir's figure over the bridge's, round by round.

use serde::Serialize;
use weir_bench::Machine;

use super::datagrams::{FRAME_BYTES, Flight};
use super::stream::Transfer;

/// At most so many times the bridge's CPU time a packet.
const MOST_CPU: f64 = 1.5;
/// At least this share of the bridge's TCP throughput.
const LEAST_TCP: f64 = 0.6;
/// At most so long a round trip, in microseconds.
const LONGEST_ROUND_TRIP: f64 = 1000.0;

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Where it was measured.
    pub(crate) machine: Machine,
    /// One entry a case.
    pub(crate) cases: Vec<Case>,
}

/// A case, whichever kind it is.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Case {
    Udp(UdpCase),
    Tcp(TcpCase),
    RoundTrip(RoundTripCase),
}

/// Paced datagrams.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct UdpCase {
    pub(crate) name: &'static str,
    pub(crate) frame_bytes: u32,
    pub(crate) offered_packets_per_second: u32,
    pub(crate) rounds: u32,
    pub(crate) round_seconds: u32,
    pub(crate) bridge: UdpSide,
    pub(crate) weir: UdpSide,
    /// Whether no more packets were lost than with the bridge.
    pub(crate) loss_met: bool,
    pub(crate) cpu_ratio: f64,
    pub(crate) cpu_ratio_low: f64,
    pub(crate) cpu_ratio_high: f64,
    pub(crate) cpu_ratio_target: f64,
    pub(crate) cpu_ratio_met: bool,
}

/// Datagrams through one middle, all rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct UdpSide {
    pub(crate) sent_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) loss_percent: f64,
    pub(crate) packets_per_second: f64,
    /// Datagrams between two sleeps of the sender.
    pub(crate) packets_per_burst: f64,
    /// All threads of the process and `ksoftirqd`: what is judged.
    pub(crate) cpu_us_per_packet: f64,
    pub(crate) cpu_us_per_packet_low: f64,
    pub(crate) cpu_us_per_packet_high: f64,
    /// Of these: the sending thread, with the soft interrupts in it.
    pub(crate) sender_us_per_packet: f64,
    /// The receiving thread.
    pub(crate) receiver_us_per_packet: f64,
    /// The router's own workers; the bridge has none.
    pub(crate) workers_us_per_packet: f64,
    /// The kernel's threads for soft interrupts.
    pub(crate) ksoftirqd_us_per_packet: f64,
    /// All that ran on the machine, other jobs too; not judged.
    pub(crate) machine_us_per_packet: f64,
}

/// One TCP stream.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TcpCase {
    pub(crate) name: &'static str,
    /// "off" on all ends, or "on" as on a new veth pair, where Weir's hosts make their own checksums.
    pub(crate) offloads: &'static str,
    pub(crate) rounds: u32,
    pub(crate) round_seconds: u32,
    pub(crate) bridge: TcpSide,
    pub(crate) weir: TcpSide,
    pub(crate) throughput_ratio: f64,
    pub(crate) throughput_ratio_low: f64,
    pub(crate) throughput_ratio_high: f64,
    /// None where losing is expected.
    pub(crate) throughput_ratio_target: Option<f64>,
    pub(crate) throughput_ratio_met: Option<bool>,
}

/// The stream through one middle.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TcpSide {
    pub(crate) gigabits_per_second: f64,
    pub(crate) gigabits_per_second_low: f64,
    pub(crate) gigabits_per_second_high: f64,
    pub(crate) cpu_seconds_per_gigabyte: f64,
}

/// One datagram there and back, nothing else under way.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoundTripCase {
    pub(crate) name: &'static str,
    pub(crate) rounds: u32,
    pub(crate) round_seconds: u32,
    pub(crate) bridge: RoundTripSide,
    pub(crate) weir: RoundTripSide,
    pub(crate) round_trip_us_target: f64,
    pub(crate) round_trip_met: bool,
}

/// Round trips through one middle.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RoundTripSide {
    pub(crate) round_trips: usize,
    pub(crate) round_trip_us: f64,
    pub(crate) round_trip_us_p99: f64,
}

/// Lower quartile, median, upper quartile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) low: f64,
    pub(super) middle: f64,
    pub(super) high: f64,
}

impl Spread {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Spread {
            low: quantile(&values, 0.25),
            middle: quantile(&values, 0.5),
            high: quantile(&values, 0.75),
        }
    }
}

/// Between the two nearest of sorted values; 0 when there are none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(below), sorted.get(above)) {
        (Some(below), Some(above)) => below + (above - below) * place.fract(),
        _ => 0.0,
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn ratios(bridge: &[f64], weir: &[f64]) -> Spread {
    Spread::of(bridge.iter().zip(weir).map(|(bridge, weir)| weir / bridge))
}

impl UdpCase {
    /// From the rounds of both sides, in their order.
    pub(super) fn new(
        name: &'static str,
        rate: u32,
        round_seconds: u32,
        bridge: &[Flight],
        weir: &[Flight],
    ) -> UdpCase {
        let cost = |flights: &[Flight]| {
            flights
                .iter()
                .map(|flight| flight.cpu.whole_us() / flight.sent as f64)
                .collect::<Vec<_>>()
        };
        let ratio = ratios(&cost(bridge), &cost(weir));
        let (bridge, weir) = (UdpSide::new(bridge), UdpSide::new(weir));
        UdpCase {
            name,
            frame_bytes: FRAME_BYTES,
            offered_packets_per_second: rate,
            rounds: bridge.0,
            round_seconds,
            // A share, since the two sides did not send exactly as many.
            loss_met: weir.1.loss_percent <= bridge.1.loss_percent,
            bridge: bridge.1,
            weir: weir.1,
            cpu_ratio: rounded(ratio.middle),
            cpu_ratio_low: rounded(ratio.low),
            cpu_ratio_high: rounded(ratio.high),
            cpu_ratio_target: MOST_CPU,
            cpu_ratio_met: ratio.middle <= MOST_CPU,
        }
    }
}

impl UdpSide {
    fn new(flights: &[Flight]) -> (u32, UdpSide) {
        let sum = |field: fn(&Flight) -> u64| flights.iter().map(field).sum::<u64>();
        let spread = |field: fn(&Flight) -> f64| {
            Spread::of(
                flights
                    .iter()
                    .map(|flight| field(flight) / flight.sent as f64),
            )
        };
        let (sent, received) = (sum(|flight| flight.sent), sum(|flight| flight.received));
        let lost = sent.saturating_sub(received);
        let cost = spread(|flight| flight.cpu.whole_us());
        let median = |field: fn(&Flight) -> f64| rounded(spread(field).middle);
        let side = UdpSide {
            sent_packets: sent,
            lost_packets: lost,
            loss_percent: 100.0 * lost as f64 / sent.max(1) as f64,
            packets_per_second: rounded(
                Spread::of(
                    flights
                        .iter()
                        .map(|flight| flight.sent as f64 / flight.elapsed.as_secs_f64()),
                )
                .middle,
            ),
            packets_per_burst: rounded(sent as f64 / sum(|flight| flight.bursts).max(1) as f64),
            cpu_us_per_packet: rounded(cost.middle),
            cpu_us_per_packet_low: rounded(cost.low),
            cpu_us_per_packet_high: rounded(cost.high),
            sender_us_per_packet: median(|flight| flight.sender_us),
            receiver_us_per_packet: median(|flight| flight.receiver_us),
            workers_us_per_packet: median(|flight| flight.cpu.workers_us()),
            ksoftirqd_us_per_packet: median(|flight| flight.cpu.put_off_us()),
            machine_us_per_packet: median(|flight| flight.cpu.machine_us()),
        };
        (flights.len() as u32, side)
    }
}

fn gigabits(transfer: &Transfer) -> f64 {
    transfer.bytes as f64 * 8e-9 / transfer.elapsed.as_secs_f64()
}

impl TcpCase {
    /// From the rounds of both sides, in their order.
    pub(super) fn new(
        name: &'static str,
        offloads: bool,
        round_seconds: u32,
        bridge: &[Transfer],
        weir: &[Transfer],
    ) -> TcpCase {
        let rates = |transfers: &[Transfer]| transfers.iter().map(gigabits).collect::<Vec<_>>();
        let ratio = ratios(&rates(bridge), &rates(weir));
        let target = (!offloads).then_some(LEAST_TCP);
        TcpCase {
            name,
            offloads: if offloads { "on" } else { "off" },
            rounds: bridge.len() as u32,
            round_seconds,
            bridge: TcpSide::new(bridge),
            weir: TcpSide::new(weir),
            throughput_ratio: rounded(ratio.middle),
            throughput_ratio_low: rounded(ratio.low),
            throughput_ratio_high: rounded(ratio.high),
            throughput_ratio_target: target,
            throughput_ratio_met: target.map(|target| ratio.middle >= target),
        }
    }
}

impl TcpSide {
    fn new(transfers: &[Transfer]) -> TcpSide {
        let rate = Spread::of(transfers.iter().map(gigabits));
        let cost = Spread::of(
            transfers
                .iter()
                .map(|transfer| transfer.cpu.whole_us() * 1e3 / transfer.bytes as f64),
        );
        TcpSide {
            gigabits_per_second: rounded(rate.middle),
            gigabits_per_second_low: rounded(rate.low),
            gigabits_per_second_high: rounded(rate.high),
            cpu_seconds_per_gigabyte: rounded(cost.middle),
        }
    }
}

impl RoundTripCase {
    /// From all round trips of both sides.
    pub(super) fn new(
        name: &'static str,
        rounds: u32,
        round_seconds: u32,
        bridge: Vec<f64>,
        weir: Vec<f64>,
    ) -> RoundTripCase {
        let (bridge, weir) = (RoundTripSide::new(bridge), RoundTripSide::new(weir));
        RoundTripCase {
            name,
            rounds,
            round_seconds,
            round_trip_us_target: LONGEST_ROUND_TRIP,
            round_trip_met: weir.round_trips > 0 && weir.round_trip_us <= LONGEST_ROUND_TRIP,
            bridge,
            weir,
        }
    }
}

impl RoundTripSide {
    fn new(mut times: Vec<f64>) -> RoundTripSide {
        times.sort_by(f64::total_cmp);
        RoundTripSide {
            round_trips: times.len(),
            round_trip_us: rounded(quantile(&times, 0.5)),
            round_trip_us_p99: rounded(quantile(&times, 0.99)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0, f64::NAN].into_iter());
        assert_eq!(
            spread,
            Spread {
                low: 1.75,
                middle: 2.5,
                high: 3.25
            }
        );
        assert_eq!(Spread::of(std::iter::empty()), Spread::default());
    }

    #[test]
    fn a_ratio_is_of_neighbouring_rounds() {
        // A machine that becomes slower: the medians alone would say 1.5.
        assert_eq!(ratios(&[1.0, 2.0, 4.0], &[2.0, 4.0, 8.0]).middle, 2.0);
    }

    #[test]
    fn loss_is_judged_against_the_bridge() {
        let flight = |sent, received| Flight {
            sent,
            received,
            elapsed: std::time::Duration::from_secs(1),
            ..Flight::default()
        };
        let case = |weir| {
            UdpCase::new(
                "afxdp-udp-50k",
                50_000,
                1,
                &[flight(1000, 999)],
                &[flight(2000, weir)],
            )
        };
        assert!(case(1998).loss_met && !case(1997).loss_met);
        assert_eq!(
            (case(1997).weir.lost_packets, case(1997).weir.loss_percent),
            (3, 0.15)
        );
    }
}
