//! The report as a person reads it: one line a figure, with the bridge's beside it.

use std::io::{self, Write};

use super::report::{Case, Report, RoundTripCase, TcpCase, UdpCase};

/// Writes the table.
pub(crate) fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let machine = &report.machine;
    let pages = if machine.hugepages {
        "hugepages"
    } else {
        "ordinary pages"
    };
    writeln!(
        to,
        "{}, {} cores, packet memory on {pages}\n",
        machine.cpu, machine.cores
    )?;
    writeln!(
        to,
        "{:<18}{:<22}{:>10}{:>10}{:>8}{:>16}  Target",
        "Case", "Figure", "Bridge", "Weir", "Ratio", "Quartiles"
    )?;
    for case in &report.cases {
        match case {
            Case::Udp(case) => udp(case, to)?,
            Case::Tcp(case) => tcp(case, to)?,
            Case::RoundTrip(case) => round_trip(case, to)?,
        }
    }
    writeln!(to)?;
    writeln!(
        to,
        "Lost: sent less received, all rounds together. CPU: microseconds a packet of all threads that had"
    )?;
    writeln!(
        to,
        "to do with it (sender, receiver, workers, soft interrupts); \"workers\" are part of it."
    )?;
    writeln!(
        to,
        "TCP: Gbit/s of one stream. With GSO on, the bridge carries segments of up to 64 KiB in one piece."
    )
}

fn row(
    to: &mut dyn Write,
    case: &str,
    figure: &str,
    bridge: &str,
    weir: &str,
    rest: &str,
) -> io::Result<()> {
    let line = format!("{case:<18}{figure:<22}{bridge:>10}{weir:>10}{rest}");
    writeln!(to, "{}", line.trim_end())
}

fn ratio(middle: f64, low: f64, high: f64) -> String {
    let quartiles = format!("{low:.2} to {high:.2}");
    format!("{middle:>8.2}{quartiles:>16}")
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn udp(case: &UdpCase, to: &mut dyn Write) -> io::Result<()> {
    let (bridge, weir) = (&case.bridge, &case.weir);
    let target = format!("{:26}no more: {}", "", met(case.loss_met));
    row(
        to,
        case.name,
        "lost packets",
        &bridge.lost_packets.to_string(),
        &weir.lost_packets.to_string(),
        &target,
    )?;
    let ratio = ratio(case.cpu_ratio, case.cpu_ratio_low, case.cpu_ratio_high);
    let target = format!(
        "{ratio}  at most {}: {}",
        case.cpu_ratio_target,
        met(case.cpu_ratio_met)
    );
    let number = |value: f64| format!("{value:.2}");
    row(
        to,
        "",
        "CPU us a packet",
        &number(bridge.cpu_us_per_packet),
        &number(weir.cpu_us_per_packet),
        &target,
    )?;
    row(
        to,
        "",
        "  workers",
        "",
        &number(weir.workers_us_per_packet),
        "",
    )?;
    row(
        to,
        "",
        "  sender",
        &number(bridge.sender_us_per_packet),
        &number(weir.sender_us_per_packet),
        "",
    )?;
    row(
        to,
        "",
        "  receiver",
        &number(bridge.receiver_us_per_packet),
        &number(weir.receiver_us_per_packet),
        "",
    )
}

fn tcp(case: &TcpCase, to: &mut dyn Write) -> io::Result<()> {
    let number = |value: f64| format!("{value:.2}");
    let ratio = ratio(
        case.throughput_ratio,
        case.throughput_ratio_low,
        case.throughput_ratio_high,
    );
    let target = match (case.throughput_ratio_target, case.throughput_ratio_met) {
        (Some(target), Some(reached)) => format!("{ratio}  at least {target}: {}", met(reached)),
        _ => ratio,
    };
    row(
        to,
        case.name,
        "Gbit/s",
        &number(case.bridge.gigabits_per_second),
        &number(case.weir.gigabits_per_second),
        &target,
    )?;
    let cost = [
        case.bridge.cpu_seconds_per_gigabyte,
        case.weir.cpu_seconds_per_gigabyte,
    ]
    .map(number);
    row(to, "", "CPU s a gigabyte", &cost[0], &cost[1], "")
}

fn round_trip(case: &RoundTripCase, to: &mut dyn Write) -> io::Result<()> {
    let number = |value: f64| format!("{value:.0}");
    let target = format!(
        "{:26}at most {}: {}",
        "",
        case.round_trip_us_target,
        met(case.round_trip_met)
    );
    row(
        to,
        case.name,
        "us, median",
        &number(case.bridge.round_trip_us),
        &number(case.weir.round_trip_us),
        &target,
    )?;
    row(
        to,
        "",
        "us, 99 of 100",
        &number(case.bridge.round_trip_us_p99),
        &number(case.weir.round_trip_us_p99),
        "",
    )
}
