//! Ports and their queues.

use weir_api::{Buffers, Hardware, HardwarePort, RxPlacement, UpDown};

use super::{Cell, Column, Screen, Style, Table, harmless, units};

/// `show hardware`: a paragraph a port, with its counters; those at 0 only when asked for.
pub(crate) fn hardware(reply: &Hardware, all: bool, screen: &Screen) -> String {
    if reply.ports.is_empty() {
        return "no ports\n".to_owned();
    }
    reply
        .ports
        .iter()
        .map(|port| one(port, all, screen))
        .collect::<Vec<_>>()
        .join("\n")
}

fn one(port: &HardwarePort, all: bool, screen: &Screen) -> String {
    let link = screen.styled(
        &port.link.to_string(),
        if port.link == UpDown::Up {
            Style::Good
        } else {
            Style::Bad
        },
    );
    let mut text = format!(
        "{} on {}, link {link}",
        screen.styled(&harmless(&port.interface), Style::Heading),
        harmless(&port.device)
    );
    if port.link == UpDown::Up {
        text += &format!(", {}", units::speed(port.speed));
    }
    let mode = if port.mode.is_empty() {
        String::new()
    } else {
        format!(" ({})", harmless(&port.mode))
    };
    text += &format!("\n  driver {}{mode}", harmless(&port.driver));
    if let Some(mac) = &port.mac {
        text += &format!(", mac {}", harmless(mac));
    }
    let rx = units::count(port.rx_queues.into(), "rx queue", "rx queues");
    let tx = units::count(port.tx_queues.into(), "tx queue", "tx queues");
    text += &format!("\n  {rx}, {tx}, frames up to {} bytes\n", port.max_frame);
    text + &counters(port, all, screen)
}

fn counters(port: &HardwarePort, all: bool, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::long("Counter"),
        Column::number("Value"),
        Column::text("Source"),
    ]);
    for counter in port
        .counters
        .iter()
        .filter(|counter| all || counter.value != 0)
    {
        table.row([
            Cell::from(&counter.name),
            counter.value.into(),
            counter.source.into(),
        ]);
    }
    let inner = Screen {
        width: screen.width.map(|width| width.saturating_sub(2)),
        ..*screen
    };
    let mut text = if table.is_empty() {
        String::new()
    } else {
        table
            .draw(&inner)
            .lines()
            .map(|row| format!("  {row}\n"))
            .collect()
    };
    let hidden = port
        .counters
        .iter()
        .filter(|counter| !all && counter.value == 0)
        .count();
    if hidden > 0 {
        text += &format!(
            "  {} at 0 not shown (--all shows them)\n",
            units::count(hidden as u64, "counter", "counters")
        );
    }
    text
}

/// `show rx-placement`: a line a queue.
pub(crate) fn rx_placement(reply: &RxPlacement, screen: &Screen) -> String {
    if reply.queues.is_empty() {
        return "no receive queues\n".to_owned();
    }
    let mut table = Table::new([
        Column::long("Interface"),
        Column::number("Queue"),
        Column::number("Worker"),
        Column::number("Core"),
    ]);
    for queue in &reply.queues {
        let core = queue
            .core
            .map_or_else(|| "any".to_owned(), |core| core.to_string());
        table.row([
            Cell::from(&queue.interface),
            queue.queue.into(),
            queue.worker.into(),
            core.into(),
        ]);
    }
    table.draw(screen)
}

/// `show buffers`: a line a pool.
pub(crate) fn buffers(reply: &Buffers, screen: &Screen) -> String {
    if reply.pools.is_empty() {
        return "no packet memory\n".to_owned();
    }
    let mut table = Table::new([
        Column::number("Pool"),
        Column::number("Buffers"),
        Column::number("Free"),
        Column::number("In use"),
        Column::number("Bytes each"),
        Column::text("Memory"),
        Column::number("Failures"),
    ]);
    for pool in &reply.pools {
        let memory = units::memory(pool.buffers.saturating_mul(pool.buffer_bytes.into()));
        let pages = if pool.hugepages {
            "on hugepages"
        } else {
            "on ordinary pages"
        };
        table.row([
            Cell::from(pool.pool),
            pool.buffers.into(),
            pool.free.into(),
            units::percent(pool.buffers.saturating_sub(pool.free), pool.buffers).into(),
            pool.buffer_bytes.into(),
            format!("{memory} {pages}").into(),
            Cell::styled(
                pool.failures,
                if pool.failures == 0 {
                    Style::Plain
                } else {
                    Style::Bad
                },
            ),
        ]);
    }
    table.draw(screen)
}
