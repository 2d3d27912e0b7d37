//! Shared-memory connections.

use weir_api::{Memif, Memifs, UpDown};

use super::{Cell, Column, Screen, Style, Table, harmless, units};

/// `show memif`: a paragraph a port. What a peer says of itself is shown without what a terminal obeys.
pub(crate) fn memif(reply: &Memifs, screen: &Screen) -> String {
    if reply.ports.is_empty() {
        return "no memif ports\n".to_owned();
    }
    reply
        .ports
        .iter()
        .map(|port| one(port, screen))
        .collect::<Vec<_>>()
        .join("\n")
}

fn one(port: &Memif, screen: &Screen) -> String {
    let link = screen.styled(
        &port.link.to_string(),
        if port.link == UpDown::Up {
            Style::Good
        } else {
            Style::Bad
        },
    );
    let (name, socket) = (
        screen.styled(&harmless(&port.interface), Style::Heading),
        harmless(&port.socket),
    );
    let mut text = format!(
        "{name} is {} of memif {} at {socket}, link {link}\n",
        port.role, port.id
    );
    text += &match (port.link, &port.peer) {
        (UpDown::Down, _) => "  no peer".to_owned(),
        (UpDown::Up, None) => "  a peer without a name".to_owned(),
        (UpDown::Up, Some(peer)) => format!("  peer {}", harmless(peer)),
    };
    if let Some(interface) = &port.peer_interface {
        text += &format!(", its interface {}", harmless(interface));
    }
    text += &format!(
        ", connected {}\n",
        units::count(port.connects, "time", "times")
    );
    text += &format!("  {}\n", memory(port));
    text += &format!("  {}\n", rings(port));
    if let Some(reason) = &port.last_disconnect {
        text += &format!("  last peer: {}\n", harmless(reason));
    }
    text + &disconnects(port, screen)
}

fn memory(port: &Memif) -> String {
    let mut text = if port.zero_copy {
        "zero-copy: the peer reads and writes the packet memory"
    } else {
        "copy"
    }
    .to_owned();
    if let Some(bytes) = port.buffer_bytes {
        text += &format!(", buffers of {bytes} bytes");
    }
    if port.secret {
        text += ", with a secret";
    }
    text
}

fn rings(port: &Memif) -> String {
    let queues = units::count(port.queues.into(), "queue", "queues");
    if port.link == UpDown::Down {
        return format!(
            "{queues} in each direction, rings of {} wanted",
            port.ring_size
        );
    }
    let (rx, tx) = (
        units::count(port.rx_rings.into(), "rx ring", "rx rings"),
        units::count(port.tx_rings.into(), "tx ring", "tx rings"),
    );
    let regions: Vec<String> = port
        .region_bytes
        .iter()
        .map(|bytes| units::memory(*bytes))
        .collect();
    let regions = if regions.is_empty() {
        "no region".to_owned()
    } else {
        format!("regions of {}", regions.join(", "))
    };
    format!("{queues}, {rx} and {tx} of {}, {regions}", port.ring_size)
}

fn disconnects(port: &Memif, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::long("Parted or sent away"),
        Column::number("Times"),
        Column::long("Meaning"),
    ]);
    for reason in &port.disconnects {
        table.row([
            Cell::from(&reason.reason),
            reason.count.into(),
            Cell::from(&reason.sentence),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let inner = Screen {
        width: screen.width.map(|width| width.saturating_sub(2)),
        ..*screen
    };
    table
        .draw(&inner)
        .lines()
        .map(|row| format!("  {row}\n"))
        .collect()
}
