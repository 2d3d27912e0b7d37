//! The sFlow sampler and agent.

use weir_api::{Sflow, SflowSettings};

use super::{Cell, Column, Screen, Style, Table, harmless};

/// `show sflow`: settings, then a table each of collectors, interfaces and workers.
pub(crate) fn sflow(reply: &Sflow, screen: &Screen) -> String {
    let mut text = settings(&reply.settings);
    let agent = reply.agent.map_or_else(|| "none".to_owned(), |agent| agent.to_string());
    text += &format!("agent             {agent}, sub-agent {}\n", reply.settings.agent_sub_id);
    let (taken, sent, dropped) = (reply.samples_taken(), reply.samples_sent, reply.samples_dropped());
    text += &format!("samples           {taken} taken, {sent} sent, {dropped} dropped, {} lost\n", reply.samples_lost);
    if reply.settings.drop_limit > 0 {
        text += &format!("discards          {} told, {} beyond the limit\n", reply.discards_sent, reply.discards_dropped);
    }
    text += &format!("datagrams         {}\n", reply.datagrams);
    for table in [collectors(reply), interfaces(reply), workers(reply)] {
        if !table.is_empty() {
            text += &format!("\n{}", table.draw(screen));
        }
    }
    for collector in &reply.collectors {
        if let Some(error) = &collector.last_error {
            text += &format!("\n{}: {}\n", place(collector.address, collector.port), harmless(error));
        }
    }
    text
}

fn settings(settings: &SflowSettings) -> String {
    let rate = if settings.sampling_rate == 0 { "off".to_owned() } else { format!("1 in {}", settings.sampling_rate) };
    let polling = if settings.polling_interval == 0 { "off".to_owned() } else { format!("{} s", settings.polling_interval) };
    let (header, encoding, datagram) = (settings.header_bytes, settings.encoding, settings.datagram_bytes);
    let drops = if settings.drop_limit == 0 { "off".to_owned() } else { format!("{} a second", settings.drop_limit) };
    let direction = settings.direction;
    format!(
        "sampling-rate     {rate}, {direction}\npolling-interval  {polling}\nheader-bytes      {header}\ndrop-limit        {drops}\nencoding          {encoding}, datagrams up to {datagram} bytes\n"
    )
}

fn place(address: std::net::IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

fn collectors(reply: &Sflow) -> Table {
    let mut table = Table::new([Column::text("Collector"), Column::number("Sent"), Column::number("Errors")]);
    for collector in &reply.collectors {
        let style = if collector.errors == 0 { Style::Plain } else { Style::Bad };
        table.row([Cell::from(place(collector.address, collector.port)), collector.sent.into(), Cell::styled(collector.errors, style)]);
    }
    table
}

fn interfaces(reply: &Sflow) -> Table {
    let mut table = Table::new([
        Column::long("Interface"),
        Column::number("Idx"),
        Column::number("Rate"),
        Column::text("Direction"),
        Column::number("Pool"),
        Column::number("Samples"),
    ]);
    for interface in &reply.interfaces {
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
    let mut table = Table::new([Column::number("Worker"), Column::number("Taken"), Column::number("Sent"), Column::number("Dropped")]);
    for worker in &reply.workers {
        let style = if worker.samples_dropped == 0 { Style::Plain } else { Style::Warning };
        table.row([
            Cell::from(worker.worker),
            worker.samples_taken.into(),
            worker.samples_sent.into(),
            Cell::styled(worker.samples_dropped, style),
        ]);
    }
    table
}
