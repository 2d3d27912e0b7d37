//! The flow meter: what it counts, where its records go, and flows that are under way.

use weir_api::{FlowEntry, FlowLoad, FlowWorker, Flows, Ipfix, IpfixCollector};

use super::{Cell, Column, Screen, Style, Table, harmless};

/// `show flow`: settings, then a table each of interfaces and workers, then the exporter.
pub(crate) fn summary(reply: &Ipfix, screen: &Screen) -> String {
    let settings = &reply.settings;
    let sampling = rate(settings.sampling_rate);
    let biflow = if settings.biflow {
        ", both directions in one record"
    } else {
        ""
    };
    let mut text = format!(
        "timeouts          active {} s, idle {} s\ntable             {} flows a worker\nmetered           {sampling}{biflow}\ndomain            {}, templates every {} s\n",
        settings.active_timeout,
        settings.idle_timeout,
        settings.flows,
        settings.domain,
        settings.template_interval
    );
    for table in [
        interfaces(reply),
        workers(reply),
        ends(reply),
        losses(reply),
    ] {
        if !table.is_empty() {
            text += &format!("\n{}", table.draw(screen));
        }
    }
    text + &exporter(reply, screen)
}

fn interfaces(reply: &Ipfix) -> Table {
    let mut table = Table::new([
        Column::long("Interface"),
        Column::number("Idx"),
        Column::text("Direction"),
        Column::text("Records"),
        Column::text("Metered"),
    ]);
    for interface in &reply.interfaces {
        table.row([
            Cell::from(&interface.interface),
            interface.index.into(),
            interface.direction.to_string().into(),
            Cell::from(&interface.records),
            rate(interface.sampling_rate).into(),
        ]);
    }
    table
}

fn rate(rate: u32) -> String {
    match rate {
        0 | 1 => "every packet".to_owned(),
        rate => format!("1 in {rate}"),
    }
}

fn workers(reply: &Ipfix) -> Table {
    let mut table = Table::new([
        Column::number("Worker"),
        Column::number("Resident"),
        Column::number("Begun"),
        Column::number("Packets"),
        Column::number("Octets"),
        Column::number("Exported"),
        Column::number("Unexported"),
    ]);
    for it in &reply.workers {
        let style = if it.unexported.flows == 0 {
            Style::Plain
        } else {
            Style::Warning
        };
        table.row([
            Cell::from(it.worker),
            it.resident.into(),
            it.begun.into(),
            it.metered_packets.into(),
            it.metered_octets.into(),
            it.exported.flows.into(),
            Cell::styled(it.unexported.flows, style),
        ]);
    }
    table
}

/// Why flows ended.
fn ends(reply: &Ipfix) -> Table {
    let mut table = Table::new([
        Column::number("Worker"),
        Column::number("Idle"),
        Column::number("Active"),
        Column::number("End"),
        Column::number("Forced"),
        Column::number("Resources"),
    ]);
    for it in reply.workers.iter().filter(|it| it.exported.flows > 0) {
        table.row([
            Cell::from(it.worker),
            it.ended_idle.into(),
            it.ended_active.into(),
            it.ended_seen.into(),
            it.ended_forced.into(),
            it.ended_resources.into(),
        ]);
    }
    table
}

/// What was not metered; shown when there is any.
fn losses(reply: &Ipfix) -> Table {
    let mut table = Table::new([
        Column::number("Worker"),
        Column::number("Ignored"),
        Column::number("Passed over"),
        Column::number("Waiting"),
    ]);
    let any = |it: &&FlowWorker| it.ignored_packets + it.passed_over + it.waiting > 0;
    for it in reply.workers.iter().filter(any) {
        table.row([
            Cell::from(it.worker),
            it.ignored_packets.into(),
            it.passed_over.into(),
            it.waiting.into(),
        ]);
    }
    table
}

/// `show flow exporter`.
pub(crate) fn exporter(reply: &Ipfix, screen: &Screen) -> String {
    let FlowLoad {
        flows,
        packets,
        octets,
    } = reply.taken;
    let mut text = format!(
        "\nexporter          {flows} records taken of {packets} packets and {octets} octets\n"
    );
    text += &format!("oldest record     {} ms\n", reply.oldest_ms);
    let mut table = Table::new([
        Column::text("Collector"),
        Column::text("State"),
        Column::number("Messages"),
        Column::number("Sent"),
        Column::number("Not sent"),
        Column::number("Left out"),
        Column::number("Queued B"),
        Column::number("Errors"),
    ]);
    for it in &reply.collectors {
        let bad =
            |count: u64| Cell::styled(count, if count == 0 { Style::Plain } else { Style::Bad });
        table.row([
            Cell::from(place(it)),
            Cell::from(if it.connected { "up" } else { "down" }.to_owned()),
            it.messages.into(),
            it.sent.flows.into(),
            bad(it.not_sent.flows),
            it.left_out.flows.into(),
            it.queued.into(),
            bad(it.errors),
        ]);
    }
    if !table.is_empty() {
        text += &format!("\n{}", table.draw(screen));
    }
    for it in &reply.collectors {
        if let Some(error) = &it.last_error {
            text += &format!("\n{}: {}\n", place(it), harmless(error));
        }
    }
    text
}

fn place(collector: &IpfixCollector) -> String {
    let version = if collector.version == "ipfix" {
        ""
    } else {
        " netflow9"
    };
    format!(
        "{} {}{version}",
        harmless(&collector.transport),
        harmless(&collector.place())
    )
}

/// `show flow template`.
pub(crate) fn templates(reply: &Ipfix, _screen: &Screen) -> String {
    let mut text = String::new();
    for template in &reply.templates {
        let (records, kind) = (harmless(&template.records), harmless(&template.kind));
        text += &format!(
            "{} {records} {kind}, {} octets\n",
            template.id, template.octets
        );
        for element in &template.elements {
            text += &format!("    {}\n", harmless(element));
        }
    }
    if text.is_empty() {
        "no record set is in use\n".to_owned()
    } else {
        text
    }
}

/// `show flow table` and `show flow top`.
///
/// Addresses and remarks (why packets were dropped) are never shortened. On a narrow screen columns that say less are left out.
pub(crate) fn flows(reply: &Flows, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::text("Source"),
        Column::text("Destination"),
        Column::text("Proto"),
        Column::text("In").spare(2),
        Column::text("Out").spare(1),
        Column::number("Bit/s"),
        Column::number("Packets/s").spare(3),
        Column::number("Packets").spare(4),
        Column::number("Octets").spare(5),
        Column::number("Seconds").spare(6),
        Column::text("Remarks"),
    ]);
    for flow in &reply.flows {
        let seconds = flow.end.unix_ms().saturating_sub(flow.start.unix_ms()) as f64 / 1e3;
        let name =
            |name: &Option<String>| Cell::from(name.clone().unwrap_or_else(|| "-".to_owned()));
        table.row([
            Cell::from(end(flow.source.as_deref(), flow.source_port, flow)),
            Cell::from(end(
                flow.destination.as_deref(),
                flow.destination_port,
                flow,
            )),
            Cell::from(protocol(flow)),
            name(&flow.input),
            name(&flow.output),
            Cell::from(scaled(flow.octets_per_second.saturating_mul(8))),
            Cell::from(scaled(flow.packets_per_second)),
            flow.packets.into(),
            flow.octets.into(),
            Cell::from(format!("{seconds:.3}")),
            Cell::from(remarks(flow)),
        ]);
    }
    let mut text = table.draw(screen);
    let shown = reply.flows.len() as u64;
    if shown < reply.matched {
        text += &format!("\n{shown} of {} flows\n", reply.matched);
    }
    text
}

/// `show flow top --group`.
pub(crate) fn groups(reply: &Flows, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::text("Group"),
        Column::number("Flows"),
        Column::number("Bit/s"),
        Column::number("Packets/s"),
        Column::number("Packets").spare(1),
        Column::number("Octets").spare(2),
    ]);
    for group in &reply.groups {
        table.row([
            Cell::from(group.group.clone().unwrap_or_else(|| "-".to_owned())),
            group.flows.into(),
            Cell::from(scaled(group.octets_per_second.saturating_mul(8))),
            Cell::from(scaled(group.packets_per_second)),
            group.packets.into(),
            group.octets.into(),
        ]);
    }
    table.draw(screen) + &format!("\n{} flows\n", reply.matched)
}

/// Three or four digits and a decimal prefix: `950`, `1.23k`, `45.6M`, `7890G`.
fn scaled(number: u64) -> String {
    const PREFIXES: [&str; 4] = ["k", "M", "G", "T"];
    if number < 1000 {
        return number.to_string();
    }
    let (mut value, mut prefix) = (number as f64 / 1e3, 0);
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        (value, prefix) = (value / 1e3, prefix + 1);
    }
    let digits = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!(
        "{value:.digits$}{}",
        PREFIXES.get(prefix).copied().unwrap_or_default()
    )
}

fn end(address: Option<&str>, port: Option<u16>, flow: &FlowEntry) -> String {
    let Some(address) = address else {
        return port.map_or_else(|| "-".to_owned(), |port| format!("-:{port}"));
    };
    let has_ports = !matches!(flow.protocol, None | Some(1 | 58));
    match port.filter(|_| has_ports) {
        Some(port) if address.contains(':') => format!("[{}]:{port}", harmless(address)),
        Some(port) => format!("{}:{port}", harmless(address)),
        None => harmless(address),
    }
}

fn protocol(flow: &FlowEntry) -> String {
    match (flow.protocol, flow.ethertype) {
        (Some(6), _) => "tcp".to_owned(),
        (Some(17), _) => "udp".to_owned(),
        (Some(1), _) => "icmp".to_owned(),
        (Some(58), _) => "icmp6".to_owned(),
        (Some(other), _) => other.to_string(),
        (None, Some(ethertype)) => format!("{ethertype:04x}"),
        (None, None) => "-".to_owned(),
    }
}

fn remarks(flow: &FlowEntry) -> String {
    let mut remarks = Vec::new();
    if !matches!(flow.forwarding_status, 64..128) {
        remarks.push(harmless(&flow.forwarding_status_name));
    }
    if flow.direction == weir_api::SflowDirection::Tx {
        remarks.push("leaving".to_owned());
    }
    remarks.extend(flow.vlan.map(|vlan| match flow.customer_vlan {
        Some(customer) => format!("vlan {vlan}.{customer}"),
        None => format!("vlan {vlan}"),
    }));
    remarks.extend(flow.label.map(|label| format!("label {label}")));
    remarks.extend(flow.next_hop.map(|next_hop| format!("via {next_hop}")));
    remarks.extend(
        flow.bgp_next_hop
            .map(|next_hop| format!("towards {next_hop}")),
    );
    remarks.join(", ")
}
