//! Bonds, and where LACP stands on their members.

use weir_api::{Bond, Bonds, LacpEnd, UpDown};

use super::{Cell, Column, Screen, Style, Table, harmless, units};

/// `show bond`: a line a bond, then its members.
pub(crate) fn bonds(reply: &Bonds, screen: &Screen) -> String {
    if reply.bonds.is_empty() {
        return "no bonds\n".to_owned();
    }
    reply
        .bonds
        .iter()
        .map(|bond| one(bond, screen))
        .collect::<Vec<_>>()
        .join("\n")
}

fn one(bond: &Bond, screen: &Screen) -> String {
    let link = screen.styled(
        &bond.link.to_string(),
        if bond.link == UpDown::Up {
            Style::Good
        } else {
            Style::Bad
        },
    );
    let by = bond
        .load_balance
        .as_ref()
        .map_or_else(String::new, |layers| format!(" by {layers}"));
    let name = screen.styled(&harmless(&bond.interface), Style::Heading);
    let using = bond
        .members
        .iter()
        .filter(|member| member.distributing)
        .count() as u64;
    let members = units::count(bond.members.len() as u64, "member", "members");
    let mut text = format!(
        "{name} {}{by}, link {link}, {members}, {using} in use\n",
        bond.mode
    );
    let mut table = Table::new([
        Column::text("Member"),
        Column::text("Link"),
        Column::text("Takes"),
        Column::text("Sends"),
        Column::text("LACP"),
    ]);
    for member in &bond.members {
        let yes = |is: bool| {
            if is {
                Cell::styled("yes", Style::Good)
            } else {
                Cell::from("no")
            }
        };
        let lacp = Cell::maybe(
            member
                .lacp
                .as_ref()
                .map(|port| format!("{}, {}", port.receive, port.mux)),
        );
        table.row([
            Cell::from(&member.interface),
            Cell::from(&member.link.to_string()),
            yes(member.collecting),
            yes(member.distributing),
            lacp,
        ]);
    }
    text += &indented(&table, screen);
    text
}

/// `show lacp`: a table a bond that speaks it, two lines a member: this end and the far one.
pub(crate) fn lacp(reply: &Bonds, screen: &Screen) -> String {
    let speakers: Vec<String> = reply
        .bonds
        .iter()
        .filter(|bond| bond.mode == "lacp")
        .map(|bond| talk(bond, screen))
        .collect();
    if speakers.is_empty() {
        "no bond speaks LACP\n".to_owned()
    } else {
        speakers.join("\n")
    }
}

fn talk(bond: &Bond, screen: &Screen) -> String {
    let mut text = format!(
        "{}\n",
        screen.styled(&harmless(&bond.interface), Style::Heading)
    );
    let mut table = Table::new([
        Column::text("Member"),
        Column::text("End"),
        Column::text("System"),
        Column::number("Priority"),
        Column::number("Key"),
        Column::number("Port"),
        Column::text("State"),
    ]);
    for (member, port) in bond
        .members
        .iter()
        .filter_map(|member| Some((member, member.lacp.as_ref()?)))
    {
        table.row(end(&member.interface, "actor", &port.actor));
        match &port.partner {
            Some(partner) => table.row(end("", "partner", partner)),
            None => table.row([
                Cell::from(""),
                "partner".into(),
                "none".into(),
                "".into(),
                "".into(),
                "".into(),
                "".into(),
            ]),
        }
    }
    text += &indented(&table, screen);
    let mut machines = Table::new([
        Column::text("Member"),
        Column::text("Receive"),
        Column::text("Mux"),
        Column::text("Chosen"),
        Column::number("Rx"),
        Column::number("Tx"),
        Column::number("Silent"),
        Column::number("Changed"),
    ]);
    for (member, port) in bond
        .members
        .iter()
        .filter_map(|member| Some((member, member.lacp.as_ref()?)))
    {
        machines.row([
            Cell::from(&member.interface),
            Cell::from(&port.receive),
            Cell::from(&port.mux),
            Cell::from(if port.selected { "yes" } else { "no" }),
            port.received.into(),
            port.sent.into(),
            port.expired.into(),
            port.partner_changes.into(),
        ]);
    }
    text + &indented(&machines, screen)
}

fn end(member: &str, which: &'static str, end: &LacpEnd) -> [Cell; 7] {
    [
        Cell::from(member),
        which.into(),
        Cell::from(&end.system),
        u64::from(end.system_priority).into(),
        u64::from(end.key).into(),
        u64::from(end.port).into(),
        Cell::from(&end.state.join(" ")),
    ]
}

fn indented(table: &Table, screen: &Screen) -> String {
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
