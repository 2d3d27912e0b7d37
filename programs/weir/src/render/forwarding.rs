//! Neighbours and routes.

use std::fmt::Write;
use weir_api::{
    Adjacencies, Adjacency, Features, FibSummary, LabelReply, MplsFib, NeighborState, Neighbors,
    NextHop, PathReply, Pseudowires, PushMode, Route, RouteGroup, RouteVerdict, Routes, UpDown,
};

use super::{Cell, Column, Screen, Style, Table, units};

#[cfg(test)]
mod tests;

/// `show neighbors`: a line a neighbour, and how many there was no room for.
pub(crate) fn neighbors(reply: &Neighbors, screen: &Screen) -> String {
    let mut crowd = String::new();
    if reply.evicted + reply.refused > 0 {
        let _ = writeln!(
            crowd,
            "{} made room for others, {} refused",
            reply.evicted, reply.refused
        );
    }
    if reply.neighbors.is_empty() {
        return format!("no neighbors\n{crowd}");
    }
    let mut table = Table::new([
        Column::long("Interface"),
        Column::text("Address"),
        Column::text("MAC"),
        Column::text("State"),
        Column::number("Age"),
    ]);
    for neighbor in &reply.neighbors {
        let style = match neighbor.state {
            NeighborState::Reachable | NeighborState::Static => Style::Good,
            NeighborState::Stale | NeighborState::Probing => Style::Plain,
            NeighborState::Incomplete => Style::Warning,
            NeighborState::Failed => Style::Bad,
        };
        table.row([
            Cell::from(&neighbor.interface),
            neighbor.address.into(),
            neighbor.mac.as_deref().unwrap_or("-").into(),
            Cell::styled(neighbor.state, style),
            Cell::maybe(neighbor.age.map(units::seconds)),
        ]);
    }
    table.draw(screen) + &crowd
}

/// `show route`: a line a path; the route's own columns stand in its first line.
pub(crate) fn routes(reply: &Routes, screen: &Screen) -> String {
    if reply.routes.is_empty() {
        return "no routes\n".to_owned();
    }
    let mut table = Table::new([
        Column::text("Prefix"),
        Column::number("Table").spare(1),
        Column::text("Source"),
        Column::text("Next hop"),
        Column::long("Interface"),
        Column::number("Weight").spare(2),
        Column::text("Adjacency"),
    ]);
    for route in &reply.routes {
        let own = [
            Cell::from(route.prefix),
            route.table.into(),
            route.source.into(),
        ];
        if route.paths.is_empty() {
            let none = [
                Cell::default(),
                Cell::default(),
                Cell::default(),
                Cell::styled("no path", Style::Bad),
            ];
            table.row(own.iter().cloned().chain(none).collect::<Vec<_>>());
        }
        for (place, path) in route.paths.iter().enumerate() {
            let own = if place == 0 {
                own.to_vec()
            } else {
                vec![Cell::default(); own.len()]
            };
            let mut cells = path_cells(path);
            if let Some(why) = unresolved(&route.next_hops, path) {
                cells[3] = Cell::styled(format!("{}: {why}", path.adjacency), Style::Warning);
            }
            table.row(own.into_iter().chain(cells).collect::<Vec<_>>());
        }
    }
    table.draw(screen)
}

/// `show mpls fib`: a line a path; the label's own columns stand in its first line.
pub(crate) fn mpls_fib(reply: &MplsFib, screen: &Screen) -> String {
    if reply.labels.is_empty() {
        return "no labels\n".to_owned();
    }
    let mut table = Table::new([
        Column::number("Label"),
        Column::text("Source").spare(2),
        Column::text("Mode").spare(1),
        Column::number("Group").spare(4),
        Column::text("Next hop"),
        Column::long("Interface"),
        Column::number("Weight").spare(3),
        Column::text("Adjacency"),
    ]);
    for entry in &reply.labels {
        let group = Cell::maybe(entry.group.as_ref().map(|group| group.number));
        let own = [
            Cell::from(entry.label),
            entry.source.into(),
            entry.ttl_mode.into(),
            group,
        ];
        let action = entry
            .lookup
            .map(|number| format!("lookup in {}", table_name(number, entry.vrf.as_deref())));
        if let Some(action) = action.or(entry.meaning.map(|meaning| meaning.to_string())) {
            let end = [action.into(), "-".into(), Cell::default(), Cell::default()];
            table.row(own.iter().cloned().chain(end).collect::<Vec<_>>());
        }
        for (place, path) in entry.paths.iter().enumerate() {
            let own = if place == 0 {
                own.to_vec()
            } else {
                vec![Cell::default(); own.len()]
            };
            table.row(own.into_iter().chain(path_cells(path)).collect::<Vec<_>>());
        }
    }
    table.draw(screen)
}

/// `show feature interface`: a line for each stretch of the path on which the interface has features, then its policers.
pub(crate) fn features(reply: &Features, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::long("Interface"),
        Column::text("Arc"),
        Column::text("Features"),
    ]);
    let mut policers = Table::new([
        Column::long("Interface"),
        Column::text("Policer"),
        Column::number("Rate bit/s"),
        Column::number("Burst").spare(3),
        Column::number("Conformed"),
        Column::number("Bytes").spare(1),
        Column::number("Dropped"),
        Column::number("Bytes").spare(2),
    ]);
    let mut has_policers = false;
    for interface in &reply.interfaces {
        for arc in &interface.arcs {
            let features = if arc.attached.is_empty() {
                "-".to_owned()
            } else {
                arc.attached.join(", ")
            };
            let name = Cell::from(&interface.interface);
            table.row([name, arc.arc.as_str().into(), features.into()]);
        }
        for policer in &interface.policers {
            has_policers = true;
            policers.row([
                Cell::from(&interface.interface),
                policer.direction.as_str().into(),
                policer.rate.into(),
                policer.burst.into(),
                policer.conformed_packets.into(),
                policer.conformed_bytes.into(),
                policer.dropped_packets.into(),
                policer.dropped_bytes.into(),
            ]);
        }
    }
    let mut text = table.draw(screen);
    if has_policers {
        text.push('\n');
        text.push_str(&policers.draw(screen));
    }
    text
}

/// `show pseudowire`: a line a path; what is the pseudowire's own stands in its first line.
pub(crate) fn pseudowires(reply: &Pseudowires, screen: &Screen) -> String {
    if reply.pseudowires.is_empty() {
        return "no pseudowires\n".to_owned();
    }
    let mut table = Table::new([
        Column::long("Pseudowire"),
        Column::text("Link"),
        Column::number("Label"),
        Column::text("Type").spare(1),
        Column::text("Control word").spare(2),
        Column::text("Next hop"),
        Column::long("Interface"),
        Column::number("Weight").spare(3),
        Column::text("Adjacency"),
    ]);
    for pseudowire in &reply.pseudowires {
        let link = if pseudowire.link == UpDown::Up {
            Style::Good
        } else {
            Style::Bad
        };
        let vlan = pseudowire
            .vlan
            .map_or_else(String::new, |vlan| format!(" {vlan}"));
        let own = [
            Cell::from(&pseudowire.interface),
            Cell::styled(pseudowire.link, link),
            pseudowire.local_label.into(),
            format!("{}{vlan}", pseudowire.kind).into(),
            if pseudowire.control_word { "yes" } else { "no" }.into(),
        ];
        if pseudowire.paths.is_empty() {
            table.row(
                own.iter()
                    .cloned()
                    .chain(vec![Cell::default(); 4])
                    .collect::<Vec<_>>(),
            );
        }
        for (place, path) in pseudowire.paths.iter().enumerate() {
            let own = if place == 0 {
                own.to_vec()
            } else {
                vec![Cell::default(); own.len()]
            };
            table.row(own.into_iter().chain(path_cells(path)).collect::<Vec<_>>());
        }
    }
    table.draw(screen)
}

fn path_cells(path: &PathReply) -> [Cell; 4] {
    let style = style_of(path.adjacency);
    let next_hop = path
        .next_hop
        .map_or_else(|| "-".to_owned(), |next_hop| next_hop.to_string());
    [
        (next_hop + &pushed(path)).into(),
        path.interface.as_deref().unwrap_or("-").into(),
        path.weight.into(),
        Cell::styled(path.adjacency, style),
    ]
}

/// A stack as iproute2 writes it.
fn stack(labels: &[u32]) -> String {
    let labels: Vec<String> = labels.iter().map(u32::to_string).collect();
    if labels.is_empty() {
        String::new()
    } else {
        format!(" label {}", labels.join("/"))
    }
}

/// The labels of a path, and how they are pushed where that is not as usual.
fn pushed(path: &PathReply) -> String {
    let mut text = stack(&path.labels);
    let Some(push) = path.push else { return text };
    // Writing to a text does not fail.
    if push.ttl_mode != PushMode::Uniform {
        let _ = write!(text, " {}", push.ttl_mode);
    }
    if let Some(class) = push.traffic_class {
        let _ = write!(text, " class {class}");
    }
    if push.entropy_label {
        text.push_str(" entropy-label");
    }
    text
}

fn style_of(state: Adjacency) -> Style {
    match state {
        Adjacency::Complete | Adjacency::Local => Style::Good,
        Adjacency::Glean | Adjacency::Drop | Adjacency::Unreachable | Adjacency::Prohibit => {
            Style::Plain
        }
        Adjacency::Incomplete => Style::Warning,
        Adjacency::Down => Style::Bad,
    }
}

/// `show ip fib PREFIX`: each route down to the wire, a line a link of the chain, and all routes of its prefix.
pub(crate) fn chain(reply: &Routes, screen: &Screen) -> String {
    if reply.routes.is_empty() {
        return "no routes\n".to_owned();
    }
    let text = |route| route_chain(route) + &candidates(route, screen);
    reply.routes.iter().map(text).collect()
}

/// All routes of a prefix: which is used, and why.
fn candidates(route: &Route, screen: &Screen) -> String {
    if route.candidates.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::text("Source"),
        Column::text("Protocol"),
        Column::text("Daemon").spare(1),
        Column::number("Distance"),
        Column::number("Metric"),
        Column::number("Age").spare(2),
        Column::number("Group").spare(3),
        Column::text("Next hop"),
        Column::text("Verdict"),
    ]);
    for candidate in &route.candidates {
        let hops: Vec<String> = candidate
            .paths
            .iter()
            .map(|path| {
                path.next_hop
                    .map_or_else(|| path.adjacency.to_string(), |it| it.to_string())
            })
            .collect();
        let style = match candidate.verdict {
            RouteVerdict::HigherDistance
            | RouteVerdict::HigherMetric
            | RouteVerdict::LaterSource => Style::Plain,
            _ => Style::Good,
        };
        table.row([
            Cell::from(candidate.source),
            candidate.protocol.as_deref().unwrap_or("-").into(),
            candidate.daemon.as_deref().unwrap_or("-").into(),
            u32::from(candidate.distance).into(),
            candidate.metric.into(),
            units::seconds(candidate.age as f64).into(),
            candidate.group.number.into(),
            hops.join(" ").into(),
            Cell::styled(candidate.verdict, style),
        ]);
    }
    format!("\n{}", table.draw(screen))
}

fn route_chain(route: &Route) -> String {
    let mut text = format!(
        "{}, {}, {}\n",
        route.prefix,
        table_name(route.table, route.vrf.as_deref()),
        route.source
    );
    next_hop_lines(&mut text, &route.next_hops);
    group_chain(
        &mut text,
        route.group.as_ref(),
        (&route.paths, &route.next_hops),
        ("route", "routes"),
    );
    text
}

/// A table by its number, and its name if it has one.
fn table_name(number: u32, vrf: Option<&str>) -> String {
    vrf.map_or_else(
        || format!("table {number}"),
        |vrf| format!("table {number} ({vrf})"),
    )
}

/// Next hops before they are resolved, and why one is not.
fn next_hop_lines(text: &mut String, next_hops: &[NextHop]) {
    for next_hop in next_hops {
        let table = next_hop
            .table
            .as_ref()
            .map(|table| format!(", by table {table}"))
            .unwrap_or_default();
        let why = next_hop
            .unresolved
            .map(|why| format!(": unresolved, {why}"))
            .unwrap_or_default();
        // Writing to a text does not fail.
        let _ = writeln!(text, "  next hop {}{table}{why}", next_hop.address);
    }
}

/// Why packets are dropped that take a path, if that is because no next hop is resolved: the only path is none.
fn unresolved(next_hops: &[NextHop], path: &PathReply) -> Option<String> {
    let nowhere = path.adjacency == Adjacency::Drop
        && !next_hops.is_empty()
        && next_hops.iter().all(|it| it.unresolved.is_some());
    let addresses: Vec<String> = next_hops.iter().map(|it| it.address.to_string()).collect();
    let noun = if addresses.len() == 1 {
        "next hop"
    } else {
        "next hops"
    };
    nowhere.then(|| format!("unresolved {noun} {}", addresses.join(", ")))
}

/// `show mpls fib LABEL`: the label down to the wire, a line a link of the chain.
pub(crate) fn label_chain(reply: &MplsFib, _: &Screen) -> String {
    if reply.labels.is_empty() {
        return "no labels\n".to_owned();
    }
    let chain = |entry: &LabelReply| {
        if let Some(meaning) = entry.meaning {
            return format!(
                "label {}, {meaning}, {}\n  {}\n",
                entry.label,
                entry.source,
                meaning.action()
            );
        }
        let mut text = format!(
            "label {}, {}, {}\n",
            entry.label, entry.source, entry.ttl_mode
        );
        if let Some(number) = entry.lookup {
            // Writing to a text does not fail.
            let _ = writeln!(
                text,
                "  pop, then lookup in {}",
                table_name(number, entry.vrf.as_deref())
            );
            return text;
        }
        group_chain(
            &mut text,
            entry.group.as_ref(),
            (&entry.paths, &[]),
            ("entry", "entries"),
        );
        text
    };
    reply.labels.iter().map(chain).collect()
}

/// Group, paths, adjacencies; `users` is one and several of what leads over the group.
fn group_chain(
    text: &mut String,
    group: Option<&RouteGroup>,
    (paths, next_hops): (&[PathReply], &[NextHop]),
    users: (&str, &str),
) {
    // Writing to a text does not fail.
    if let Some(group) = group {
        let (buckets, users) = (
            units::count(group.buckets.into(), "bucket", "buckets"),
            units::count(group.routes.into(), users.0, users.1),
        );
        let count = units::count(paths.len() as u64, "path", "paths");
        let resilient = if group.resilient { ", resilient" } else { "" };
        let _ = writeln!(
            text,
            "  group {}: {count} in {buckets}{resilient}, for {users}",
            group.number
        );
    }
    for path in paths {
        let on = path
            .interface
            .as_ref()
            .map(|interface| format!(" on {interface}"))
            .unwrap_or_default();
        let via = path
            .next_hop
            .map(|next_hop| format!("via {next_hop}"))
            .unwrap_or_else(|| "direct".to_owned());
        let labels = pushed(path);
        let buckets = units::count(path.buckets.into(), "bucket", "buckets");
        let _ = writeln!(
            text,
            "    path {via}{on}{labels}, weight {}: {buckets}",
            path.weight
        );
        let mac = path
            .mac
            .as_ref()
            .map(|mac| format!(", to {mac}"))
            .unwrap_or_default();
        let mtu = path
            .mtu
            .map(|mtu| format!(", mtu {mtu}"))
            .unwrap_or_default();
        let why = unresolved(next_hops, path)
            .map(|why| format!(", {why}"))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "      adjacency {}: {}{mac}{mtu}{why}",
            path.adjacency_number, path.adjacency
        );
    }
}

/// `show adjacency`: a line an adjacency.
pub(crate) fn adjacencies(reply: &Adjacencies, screen: &Screen) -> String {
    if reply.adjacencies.is_empty() {
        return "no adjacencies\n".to_owned();
    }
    let mut table = Table::new([
        Column::number("Number"),
        Column::text("Kind"),
        Column::text("Address"),
        Column::long("Interface"),
        Column::text("MAC"),
        Column::number("MTU").spare(1),
        Column::number("Groups").spare(2),
        Column::text("State"),
    ]);
    for it in &reply.adjacencies {
        let labels = stack(&it.labels);
        let end = match (it.address, it.table) {
            (Some(address), _) => address.to_string(),
            (None, Some(table)) => table_name(table, it.vrf.as_deref()),
            (None, None) => "-".to_owned(),
        };
        table.row([
            Cell::from(it.number),
            it.kind.into(),
            (end + &labels).into(),
            it.interface.as_deref().unwrap_or("-").into(),
            it.mac.as_deref().unwrap_or("-").into(),
            Cell::maybe(it.mtu),
            it.groups.into(),
            Cell::styled(it.state, style_of(it.state)),
        ]);
    }
    table.draw(screen)
}

/// `show ip fib summary`: a line a table and source.
pub(crate) fn summary(reply: &FibSummary, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::number("Table"),
        Column::text("Family"),
        Column::text("Source"),
        Column::number("Routes"),
    ]);
    for fib in &reply.tables {
        let family = fib.family.word();
        for routes in &fib.routes {
            table.row([
                Cell::from(fib.table),
                family.into(),
                routes.source.into(),
                routes.count.into(),
            ]);
        }
        let all: u64 = fib.routes.iter().map(|routes| routes.count).sum();
        table.row([
            Cell::from(fib.table),
            family.into(),
            Cell::styled("all", Style::Heading),
            all.into(),
        ]);
    }
    let adjacencies = units::count(reply.adjacencies, "next hop", "next hops");
    let groups = units::count(reply.groups, "set of paths", "sets of paths");
    format!(
        "{}{adjacencies}, {groups}, {} of memory\n",
        table.draw(screen),
        units::memory(reply.memory_bytes)
    )
}
