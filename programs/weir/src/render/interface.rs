//! Interfaces: the list, one in detail, addresses.

use weir_api::{Interface, InterfaceKind, Interfaces, Traffic, UpDown};
use weir_config::IpNet;

use super::{Cell, Column, Screen, Style, Table, harmless, units};

/// `show interface`: a line an interface. "RX lost" are frames that the driver or the kernel lost before the router saw
/// them, a full receive ring above all; "Drops" are packets that the router dropped.
pub(crate) fn list(reply: &Interfaces, screen: &Screen) -> String {
    if reply.interfaces.is_empty() {
        return "no interfaces\n".to_owned();
    }
    // A column of zeros is the first to go on a narrow terminal; losses are among the last.
    let lost = reply.interfaces.iter().any(|it| it.rx_errors > 0);
    let mut table = Table::new([
        Column::long("Interface"),
        Column::number("Idx").spare(4),
        Column::text("Admin"),
        Column::text("Link"),
        Column::number("MTU").spare(5),
        Column::number("RX packets"),
        Column::number("RX bytes").spare(2),
        Column::number("RX lost").spare(if lost { 1 } else { 7 }),
        Column::number("TX packets"),
        Column::number("TX bytes").spare(3),
        Column::number("Drops"),
        Column::long("Description").spare(6),
    ]);
    for interface in &reply.interfaces {
        table.row([
            Cell::from(&interface.name),
            interface.index.into(),
            up_down(interface.admin),
            link(interface),
            interface.mtu.into(),
            interface.rx.packets.into(),
            interface.rx.bytes.into(),
            warning(interface.rx_errors),
            interface.tx.packets.into(),
            interface.tx.bytes.into(),
            warning(interface.drops),
            Cell::maybe(interface.description.as_ref()),
        ]);
    }
    table.draw(screen)
}

/// A count that should be 0.
fn warning(count: u64) -> Cell {
    let style = if count == 0 {
        Style::Plain
    } else {
        Style::Warning
    };
    Cell::styled(count, style)
}

pub(super) fn up_down(state: UpDown) -> Cell {
    Cell::styled(
        state,
        if state == UpDown::Up {
            Style::Good
        } else {
            Style::Plain
        },
    )
}

/// A link that is down although it is wanted up is bad.
fn link(interface: &Interface) -> Cell {
    match (interface.admin, interface.link) {
        (_, UpDown::Up) => Cell::styled("up", Style::Good),
        (UpDown::Up, UpDown::Down) => Cell::styled("down", Style::Bad),
        (UpDown::Down, UpDown::Down) => Cell::from("down"),
    }
}

/// `show interface addr`: a line an address or cross connect.
pub(crate) fn addresses(reply: &Interfaces, screen: &Screen) -> String {
    if reply.interfaces.is_empty() {
        return "no interfaces\n".to_owned();
    }
    let mut table = Table::new([
        Column::long("Interface"),
        Column::text("Link"),
        Column::long("Address"),
    ]);
    for interface in &reply.interfaces {
        let mut name = interface.name.as_str();
        let mut line = |what: String| {
            table.row([
                Cell::from(std::mem::take(&mut name)),
                link(interface),
                what.into(),
            ])
        };
        if let Some(peer) = &interface.l2xc {
            line(format!("cross-connected to {peer}"));
        }
        if let Some(lender) = &interface.unnumbered {
            line(format!("unnumbered, as {lender}"));
        }
        interface
            .addresses
            .iter()
            .for_each(|address| line(address_of(interface, address)));
        if interface.l2xc.is_none()
            && interface.addresses.is_empty()
            && interface.unnumbered.is_none()
        {
            line("none".to_owned());
        }
    }
    table.draw(screen)
}

/// An own address, and why it is not used if it is not (RFC 4862 section 5.4).
fn address_of(interface: &Interface, net: &IpNet) -> String {
    let why = match net.addr() {
        address if interface.tentative.contains(&address) => {
            " (tentative: asking whether it is free)"
        }
        address if interface.duplicate.contains(&address) => {
            " (duplicate: not used, another station has it)"
        }
        _ => "",
    };
    format!("{net}{why}")
}

/// `show interface NAME`: everything.
pub(crate) fn detail(reply: &Interfaces, screen: &Screen) -> String {
    reply
        .interfaces
        .iter()
        .map(|interface| one(interface, screen))
        .collect::<Vec<_>>()
        .join("\n")
}

fn one(interface: &Interface, screen: &Screen) -> String {
    let mut text = format!(
        "{} (index {})\n",
        screen.styled(&harmless(&interface.name), Style::Heading),
        interface.index
    );
    let mut line =
        |key: &str, value: String| text += &format!("  {key:<12} {}\n", harmless(&value));
    if let Some(description) = &interface.description {
        line("description", description.clone());
    }
    line("kind", kind(interface));
    let speed = if interface.link == UpDown::Up {
        format!(", {}", units::speed(interface.speed))
    } else {
        String::new()
    };
    line(
        "state",
        format!("admin {}, link {}{speed}", interface.admin, interface.link),
    );
    line(
        "mac",
        interface.mac.clone().unwrap_or_else(|| "none".to_owned()),
    );
    line("mtu", interface.mtu.to_string());
    if let Some(peer) = &interface.l2xc {
        line("l2 xconnect", peer.clone());
    }
    if let Some(tags) = &interface.encapsulation {
        line("tags", tags.to_string());
    }
    if let Some(rewrite) = &interface.tag_rewrite {
        line("tag rewrite", rewrite.clone());
    }
    if let Some(bridge) = &interface.bridge_domain {
        line("bridge", bridge.clone());
    }
    if interface.mpls {
        line("mpls", "taken".to_owned());
    }
    if let Some(urpf) = &interface.urpf {
        line("urpf", urpf.clone());
    }
    if let Some(vrf) = &interface.vrf {
        line("vrf", vrf.clone());
    }
    if let Some(lender) = &interface.unnumbered {
        line("unnumbered", format!("as {lender}"));
    }
    for address in &interface.addresses {
        line("address", address_of(interface, address));
    }
    line(
        "sflow",
        if interface.sflow {
            "sampled".to_owned()
        } else {
            "not sampled".to_owned()
        },
    );
    let inner = Screen {
        width: screen.width.map(|width| width.saturating_sub(2)),
        ..*screen
    };
    text += &traffic(interface)
        .draw(&inner)
        .lines()
        .map(|row| format!("  {row}\n"))
        .collect::<String>();
    let drops = drops(interface);
    if !drops.is_empty() {
        text += &drops
            .draw(&inner)
            .lines()
            .map(|row| format!("  {row}\n"))
            .collect::<String>();
    }
    text
}

fn kind(interface: &Interface) -> String {
    let kind = match interface.kind {
        InterfaceKind::Port => "port",
        InterfaceKind::Bond => "bond",
        InterfaceKind::Pseudowire => "pseudowire",
        InterfaceKind::Vxlan => "vxlan",
        InterfaceKind::SubInterface => "sub-interface",
        InterfaceKind::Loopback => "loopback",
        InterfaceKind::Bvi => "bridge virtual interface",
    };
    match (&interface.parent, &interface.device, &interface.driver) {
        (Some(parent), ..) => format!("{kind} of {parent}"),
        (None, Some(device), Some(driver)) if device != driver => {
            format!("{kind} on {device}, {driver}")
        }
        (None, _, Some(driver)) if driver != kind => format!("{kind}, {driver}"),
        (None, _, Some(_)) => kind.to_owned(),
        (None, Some(device), None) => format!("{kind} on {device}"),
        (None, None, None) => format!("{kind}, no device"),
    }
}

fn traffic(interface: &Interface) -> Table {
    let mut table = Table::new([
        Column::text(""),
        Column::number("Packets"),
        Column::number("Bytes"),
        Column::number("Unicast").spare(3),
        Column::number("Multicast").spare(2),
        Column::number("Broadcast").spare(1),
        Column::number("Errors"),
    ]);
    let mut row = |name: &str, traffic: &Traffic, errors: u64| {
        table.row([
            Cell::from(name),
            traffic.packets.into(),
            traffic.bytes.into(),
            traffic.unicast.into(),
            traffic.multicast.into(),
            traffic.broadcast.into(),
            Cell::styled(
                errors,
                if errors == 0 {
                    Style::Plain
                } else {
                    Style::Bad
                },
            ),
        ]);
    };
    row("rx", &interface.rx, interface.rx_errors);
    row("tx", &interface.tx, interface.tx_errors);
    table
}

fn drops(interface: &Interface) -> Table {
    let mut table = Table::new([
        Column::text("Drops"),
        Column::number("Count"),
        Column::text("Node"),
        Column::text("Reason"),
    ]);
    if interface.drops == 0 && interface.drops_by.is_empty() {
        return table;
    }
    table.row([
        Cell::from("total"),
        interface.drops.into(),
        Cell::default(),
        Cell::default(),
    ]);
    for drop in &interface.drops_by {
        table.row([
            Cell::default(),
            drop.count.into(),
            Cell::from(&drop.node),
            Cell::from(&drop.reason),
        ]);
    }
    table
}
