//! `show system`: whether the router does all that its configuration says.

use weir_api::System;

use super::{Cell, Column, Screen, Table};

/// The state in a line, then a line a problem.
pub(crate) fn system(reply: &System, screen: &Screen) -> String {
    let state = format!("state: {}\n", reply.state);
    if reply.problems.is_empty() {
        return state;
    }
    let mut table = Table::new([
        Column::text("Severity"),
        Column::text("Component"),
        Column::text("Object"),
        Column::long("Problem"),
    ]);
    for problem in &reply.problems {
        table.row([
            Cell::from(problem.severity.to_string()),
            problem.component.to_string().into(),
            Cell::from(&problem.object),
            Cell::from(&problem.message),
        ]);
    }
    state + &table.draw(screen)
}
