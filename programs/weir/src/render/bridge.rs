//! Bridge domains and their stations.

use weir_api::{BridgeDomain, BridgeDomains, L2fib};

use super::{Cell, Column, Screen, Style, Table, harmless, units};

/// `show bridge-domain`: a paragraph a domain, a line a member.
pub(crate) fn domains(reply: &BridgeDomains, screen: &Screen) -> String {
    if reply.bridges.is_empty() {
        return "no bridge domains\n".to_owned();
    }
    reply
        .bridges
        .iter()
        .map(|domain| one(domain, screen))
        .collect::<Vec<_>>()
        .join("\n")
}

fn one(domain: &BridgeDomain, screen: &Screen) -> String {
    let off = [
        (domain.learn, "does not learn"),
        (domain.forward, "does not forward unicast"),
        (domain.flood, "does not flood groups"),
        (
            domain.unknown_unicast_flood,
            "does not flood unknown unicast",
        ),
    ];
    let off: Vec<&str> = off
        .iter()
        .filter(|(on, _)| !on)
        .map(|(_, what)| *what)
        .collect();
    let mut text = screen.styled(&harmless(&domain.name), Style::Heading);
    if !off.is_empty() {
        text += &format!(": {}", off.join(", "));
    }
    let age = domain
        .age_seconds
        .map_or("never age".to_owned(), |seconds| {
            format!("age after {} min", seconds / 60)
        });
    text += &format!(
        "\n  {} of {} stations learned, which {age}; ",
        domain.stations, domain.station_limit
    );
    text += &format!("{} in the table\n", units::memory(domain.table_bytes));
    text += &format!(
        "  learned {}, moved {}, aged {}, displaced {}, not learned {}\n",
        domain.learned, domain.moved, domain.aged, domain.displaced, domain.not_learned
    );
    let limit = |limit: Option<u32>| {
        limit
            .map(|limit| format!(" (at most {limit} a second and member)"))
            .unwrap_or_default()
    };
    text += &format!(
        "  flooded {}{}, unknown unicast {}{}, copies too long {}\n",
        domain.flooded,
        limit(domain.flood_limit),
        domain.unknown_unicast_flooded,
        limit(domain.unknown_unicast_limit),
        domain.copies_too_long
    );
    if domain.arp_termination || domain.arp_unicast_forward {
        let way = if domain.arp_unicast_forward {
            "go to the station alone"
        } else {
            "are answered here"
        };
        let addresses = units::count(domain.arp_entries, "address", "addresses");
        text += &format!(
            "  questions for {addresses} {way}: {}\n",
            domain.arp_terminated
        );
    }
    let mut table = Table::new([
        Column::long("Member"),
        Column::text("Role"),
        Column::number("Group"),
        Column::text("Sends"),
    ]);
    for member in &domain.members {
        let sends = if member.can_send {
            Cell::styled("yes", Style::Good)
        } else {
            Cell::styled("no", Style::Bad)
        };
        let role = if member.bvi { "bvi" } else { "member" };
        table.row([
            Cell::from(&member.interface),
            role.into(),
            Cell::maybe((member.group != 0).then_some(member.group.to_string())),
            sends,
        ]);
    }
    if table.is_empty() {
        return text + "  no members\n";
    }
    let inner = Screen {
        width: screen.width.map(|width| width.saturating_sub(2)),
        ..*screen
    };
    text + &table
        .draw(&inner)
        .lines()
        .map(|row| format!("  {row}\n"))
        .collect::<String>()
}

/// `show l2fib`: a line a station.
pub(crate) fn l2fib(reply: &L2fib, screen: &Screen) -> String {
    if reply.stations.is_empty() {
        return "no stations\n".to_owned();
    }
    let mut table = Table::new([
        Column::text("Bridge"),
        Column::text("MAC"),
        Column::long("Interface"),
        Column::text("Kind"),
        Column::number("Age"),
    ]);
    for station in &reply.stations {
        let kind = if station.is_static {
            "static"
        } else {
            "learned"
        };
        let age = Cell::maybe(station.age.map(|age| format!("{age} s")));
        table.row([
            Cell::from(&station.bridge),
            (&station.mac).into(),
            (&station.interface).into(),
            kind.into(),
            age,
        ]);
    }
    table.draw(screen)
}
