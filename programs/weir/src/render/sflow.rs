//! The sFlow sampler and agent.

use weir_api::{Sflow, SflowCollector, SflowDrop, SflowInterface, SflowKernel, SflowSettings};

use super::{Cell, Column, Screen, Style, Table, harmless};

#[cfg(test)]
mod tests;

/// `show sflow`: settings, then a table each of collectors, interfaces and workers, and what is wrong.
pub(crate) fn sflow(reply: &Sflow, screen: &Screen) -> String {
    let mut text = settings(&reply.settings);
    let agent = reply.agent.map_or_else(
        || "0.0.0.0 (no address of its own: set sflow.agent)".to_owned(),
        |agent| agent.to_string(),
    );
    text += &format!(
        "agent             {agent}, sub-agent {}\n",
        reply.settings.agent_sub_id
    );
    let (taken, sent, dropped) = (
        reply.samples_taken(),
        reply.samples_sent,
        reply.samples_dropped(),
    );
    text += &format!(
        "samples           {taken} taken, {sent} sent, {dropped} dropped, {} lost, {} without an output\n",
        reply.samples_lost, reply.samples_incomplete
    );
    if reply.settings.drop_limit > 0 {
        text += &format!(
            "discards          {} reported, {} beyond the limit\n",
            reply.discards_sent, reply.discards_dropped
        );
    }
    text += &format!("datagrams         {}\n", reply.datagrams);
    if let Some(found) = &reply.discovery {
        text += &format!(
            "dns-sd            {}\n",
            found.domain.as_deref().unwrap_or("the resolver's domains")
        );
    }
    if let Some(path) = &reply.kernel {
        text += &kernel(path);
    }
    for table in [
        collector_counts(&reply.collectors),
        sampled(&reply.interfaces),
        workers(reply),
    ] {
        if !table.is_empty() {
            text += &format!("\n{}", table.draw(screen));
        }
    }
    text + &troubles(reply)
}

/// `show sflow interface`: each interface, and each worker's part of it.
pub(crate) fn interfaces(interfaces: &[SflowInterface], screen: &Screen) -> String {
    let mut table = Table::new([
        Column::long("Interface"),
        Column::number("Idx"),
        Column::number("Reported as"),
        Column::number("Rate"),
        Column::text("Direction"),
        Column::number("Header"),
        Column::number("Polling"),
        Column::text("Worker"),
        Column::number("Pool"),
        Column::number("Samples"),
        Column::number("Dropped"),
    ]);
    for interface in interfaces {
        table.row([
            Cell::from(&interface.interface),
            interface.index.into(),
            interface.reported_index.into(),
            interface.sampling_rate.into(),
            interface.direction.to_string().into(),
            interface.header_bytes.into(),
            seconds(interface.polling_interval).into(),
            "all".to_owned().into(),
            interface.pool.into(),
            interface.samples.into(),
            dropped(interface.dropped),
        ]);
        for share in &interface.workers {
            let nothing = || Cell::from(String::new());
            table.row([
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                nothing(),
                share.worker.to_string().into(),
                share.pool.into(),
                share.samples.into(),
                dropped(share.dropped),
            ]);
        }
    }
    table.draw(screen)
}

/// `show sflow collector`: how each is reached, and what it got.
pub(crate) fn collectors(collectors: &[SflowCollector], screen: &Screen) -> String {
    let mut table = Table::new([
        Column::long("Collector"),
        Column::text("Address"),
        Column::text("Source"),
        Column::text("Device"),
        Column::number("DSCP"),
        Column::text("Drops"),
        Column::text("Found"),
        Column::number("Sent"),
        Column::number("Errors"),
        Column::long("Last error"),
    ]);
    for collector in collectors {
        let or_dash = |text: Option<String>| Cell::from(text.unwrap_or_else(|| "-".to_owned()));
        table.row([
            Cell::from(harmless(&collector.place())),
            or_dash(collector.address.map(|address| address.to_string())),
            or_dash(collector.source.map(|source| source.to_string())),
            or_dash(collector.dev.as_deref().map(harmless)),
            collector.dscp.to_string().into(),
            if collector.drops { "yes" } else { "no" }.to_owned().into(),
            if collector.announced {
                "dns-sd"
            } else {
                "listed"
            }
            .to_owned()
            .into(),
            collector.sent.into(),
            errors(collector),
            or_dash(collector.last_error.as_deref().map(harmless)),
        ]);
    }
    table.draw(screen)
}

/// `show sflow drops`: what was dropped, as the standard names it, and how many of each kind were reported.
///
/// Where the standard has several names for a reason, the names are those by which packets were reported.
pub(crate) fn drops(drops: &[SflowDrop], screen: &Screen) -> String {
    let mut table = Table::new([
        Column::long("Interface"),
        Column::text("Node"),
        Column::text("Reason"),
        Column::number("Code"),
        Column::text("Standard"),
        Column::number("Dropped"),
        Column::number("Reported"),
    ]);
    for drop in drops {
        let (codes, standards): (Vec<_>, Vec<_>) = match drop.reported_as.as_slice() {
            [] => (vec![drop.code.to_string()], vec![drop.standard.clone()]),
            several => several
                .iter()
                .map(|it| (it.code.to_string(), it.standard.clone()))
                .unzip(),
        };
        table.row([
            Cell::from(drop.interface.clone().unwrap_or_else(|| "-".to_owned())),
            drop.node.clone().into(),
            drop.reason.clone().into(),
            codes.join(",").into(),
            standards.join(",").into(),
            drop.dropped.into(),
            drop.reported.into(),
        ]);
    }
    table.draw(screen)
}

fn settings(settings: &SflowSettings) -> String {
    let rate = if settings.sampling_rate == 0 {
        "off".to_owned()
    } else {
        format!("1 in {}", settings.sampling_rate)
    };
    let polling = seconds(settings.polling_interval);
    let (header, encoding, datagram) = (
        settings.header_bytes,
        settings.encoding,
        settings.datagram_bytes,
    );
    let drops = if settings.drop_limit == 0 {
        "off".to_owned()
    } else {
        format!("{} a second", settings.drop_limit)
    };
    let direction = settings.direction;
    let indices = if settings.os_index {
        format!("osIndex           on, ifOffset {}\n", settings.if_offset)
    } else {
        String::new()
    };
    format!(
        "sampling-rate     {rate}, {direction}\npolling-interval  {polling}\nheader-bytes      {header}\ndrop-limit        {drops}\nencoding          {encoding}, datagrams up to {datagram} bytes\n{indices}"
    )
}

fn seconds(interval: u32) -> String {
    if interval == 0 {
        "off".to_owned()
    } else {
        format!("{interval} s")
    }
}

fn kernel(path: &SflowKernel) -> String {
    let inside = path
        .namespace
        .as_ref()
        .map_or_else(String::new, |namespace| {
            format!(" in {}", harmless(namespace))
        });
    format!(
        "psample           groups {} and {}{inside}: {} samples, {} drops, {} reports, {} failed\n",
        path.group, path.egress_group, path.samples, path.drops, path.reports, path.failed
    )
}

/// What is wrong, a line each.
fn troubles(reply: &Sflow) -> String {
    let of_collectors = reply
        .collectors
        .iter()
        .filter_map(|it| Some(format!("{}: {}", it.place(), it.last_error.as_deref()?)));
    let of_discovery = reply
        .discovery
        .iter()
        .filter_map(|it| Some(format!("dns-sd: {}", it.trouble.as_deref()?)));
    let of_kernel = reply
        .kernel
        .iter()
        .flat_map(|path| &path.lacking)
        .map(|sentence| format!("psample: {sentence}"));
    let lines: Vec<String> = of_collectors
        .chain(of_discovery)
        .chain(of_kernel)
        .map(|line| harmless(&line) + "\n")
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("\n{}", lines.concat())
    }
}

fn dropped(samples: u64) -> Cell {
    Cell::styled(
        samples,
        if samples == 0 {
            Style::Plain
        } else {
            Style::Warning
        },
    )
}

fn errors(collector: &SflowCollector) -> Cell {
    Cell::styled(
        collector.errors,
        if collector.errors == 0 {
            Style::Plain
        } else {
            Style::Bad
        },
    )
}

fn collector_counts(collectors: &[SflowCollector]) -> Table {
    let mut table = Table::new([
        Column::text("Collector"),
        Column::number("Sent"),
        Column::number("Errors"),
    ]);
    for collector in collectors {
        table.row([
            Cell::from(harmless(&collector.place())),
            collector.sent.into(),
            errors(collector),
        ]);
    }
    table
}

fn sampled(interfaces: &[SflowInterface]) -> Table {
    let mut table = Table::new([
        Column::long("Interface"),
        Column::number("Idx"),
        Column::number("Rate"),
        Column::text("Direction"),
        Column::number("Pool"),
        Column::number("Samples"),
    ]);
    for interface in interfaces {
        table.row([
            Cell::from(&interface.interface),
            interface.index.into(),
            interface.sampling_rate.into(),
            interface.direction.to_string().into(),
            interface.pool.into(),
            interface.samples.into(),
        ]);
    }
    table
}

fn workers(reply: &Sflow) -> Table {
    let mut table = Table::new([
        Column::number("Worker"),
        Column::number("Taken"),
        Column::number("Sent"),
        Column::number("Dropped"),
    ]);
    for worker in &reply.workers {
        table.row([
            Cell::from(worker.worker),
            worker.samples_taken.into(),
            worker.samples_sent.into(),
            dropped(worker.samples_dropped),
        ]);
    }
    table
}
