//! What workers do: clocks of nodes, drops, the balance.

use weir_api::{Errors, Runtime, Severity, Totals, WorkerRuntime};

use super::{Cell, Column, Screen, Style, Table, units};

/// `show runtime`: a table a worker.
pub(crate) fn runtime(reply: &Runtime, screen: &Screen) -> String {
    let mut text = format!(
        "Since {}, TSC {:.0} MHz\n",
        units::seconds(reply.seconds),
        reply.tsc_mhz
    );
    for worker in &reply.workers {
        text += &format!("\n{}\n", screen.styled(&about(worker), Style::Heading));
        text += &nodes(worker).draw(screen);
    }
    text
}

fn about(worker: &WorkerRuntime) -> String {
    let core = worker
        .core
        .map_or_else(|| "any core".to_owned(), |core| format!("core {core}"));
    format!(
        "Worker {} ({core}, idle: {}): {}, {:.1} % of the time busy",
        worker.worker,
        worker.idle,
        units::count(worker.turns, "turn", "turns"),
        worker.busy * 100.0
    )
}

fn nodes(worker: &WorkerRuntime) -> Table {
    let mut table = Table::new([
        Column::long("Name"),
        Column::number("Calls"),
        Column::number("Empty"),
        Column::number("Packets"),
        Column::number("Clocks/packet"),
        Column::number("Packets/call"),
        Column::number("Share"),
    ]);
    for node in &worker.nodes {
        table.row([
            Cell::from(&node.name),
            node.calls.into(),
            node.empty_calls.into(),
            node.packets.into(),
            format!("{:.2}", node.clocks_per_packet).into(),
            format!("{:.2}", node.packets_per_call).into(),
            units::percent(node.clocks, worker.clocks).into(),
        ]);
    }
    table
}

/// `show errors`: a line a counter.
pub(crate) fn errors(reply: &Errors, screen: &Screen) -> String {
    if reply.errors.is_empty() {
        return "no drops\n".to_owned();
    }
    let by_worker = reply.errors.iter().any(|error| error.worker.is_some());
    let mut columns = vec![
        Column::number("Count"),
        Column::text("Node"),
        Column::text("Reason"),
        Column::text("Severity").spare(1),
        Column::long("Interface"),
        Column::long("Meaning").spare(2),
    ];
    if by_worker {
        columns.insert(0, Column::number("Worker"));
    }
    let mut table = Table::new(columns);
    for error in &reply.errors {
        let style = match error.severity {
            Severity::Info => Style::Plain,
            Severity::Warning => Style::Warning,
            Severity::Error => Style::Bad,
        };
        let mut row = vec![
            error.count.into(),
            Cell::from(&error.node),
            Cell::from(&error.reason),
            Cell::styled(error.severity, style),
            error.interface.as_deref().unwrap_or("own").into(),
            Cell::from(&error.sentence),
        ];
        if by_worker {
            row.insert(0, Cell::maybe(error.worker));
        }
        table.row(row);
    }
    table.draw(screen)
}

/// `show totals`: the balance, both sides.
pub(crate) fn totals(reply: &Totals, screen: &Screen) -> String {
    let mut table = Table::new([Column::text("Packets"), Column::number("Count")]);
    for (name, count) in [
        ("received", reply.packets_in),
        ("originated", reply.originated),
        ("replicated", reply.replicated),
        ("sent", reply.packets_out),
        ("consumed", reply.consumed),
        ("held", reply.held),
        ("dropped", reply.dropped()),
    ] {
        table.row([Cell::from(name), count.into()]);
    }
    for (reason, count) in &reply.drops {
        table.row([Cell::from(format!("  {reason}")), (*count).into()]);
    }
    table.row([Cell::from("under way"), reply.unaccounted().into()]);
    table.draw(screen)
}
