//! Access lists.

use weir_api::{AclAction, Acls};

use super::{Cell, Column, Screen, Style, Table, units};

/// `show acl`: what interfaces are bound to, then a line a term.
pub(crate) fn acls(reply: &Acls, screen: &Screen) -> String {
    if reply.bindings.is_empty() && reply.terms.is_empty() {
        return "no access lists\n".to_owned();
    }
    let (bindings, terms) = (bindings(reply, screen), terms(reply, screen));
    let gap = if bindings.is_empty() || terms.is_empty() {
        ""
    } else {
        "\n"
    };
    format!("{bindings}{gap}{terms}")
}

fn bindings(reply: &Acls, screen: &Screen) -> String {
    if reply.bindings.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::long("Interface"),
        Column::text("Direction"),
        Column::long("Lists"),
        Column::number("Permitted"),
        Column::number("Denied"),
        Column::number("Unmatched"),
        Column::number("Rules").spare(1),
        Column::number("Memory").spare(2),
    ]);
    for binding in &reply.bindings {
        table.row([
            Cell::from(&binding.interface),
            binding.direction.into(),
            binding.acls.join(" ").into(),
            binding.permitted.into(),
            binding.denied.into(),
            binding.unmatched.into(),
            binding.rules.into(),
            units::memory(binding.memory_bytes).into(),
        ]);
    }
    table.draw(screen)
}

fn terms(reply: &Acls, screen: &Screen) -> String {
    if reply.terms.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::text("List"),
        Column::number("Term"),
        Column::text("Action"),
        Column::long("Match"),
        Column::number("Packets"),
        Column::number("Bytes"),
        Column::long("Description").spare(1),
    ]);
    for term in &reply.terms {
        let style = if term.action == AclAction::Permit {
            Style::Good
        } else {
            Style::Bad
        };
        table.row([
            Cell::from(&term.acl),
            term.term.into(),
            Cell::styled(term.action, style),
            Cell::from(&term.asks),
            term.packets.into(),
            term.bytes.into(),
            term.description.as_deref().unwrap_or("").into(),
        ]);
    }
    table.draw(screen)
}
