//! Linux as the control plane: TAPs, the kernel's routes, packets for services of Linux.

use weir_api::Linux;

use super::{Cell, Column, Screen, Table, harmless};

/// `show linux`: everything.
pub(crate) fn all(reply: &Linux, screen: &Screen) -> String {
    if reply.interfaces.is_empty() {
        return "no interface has a TAP in Linux\n".to_owned();
    }
    [
        interfaces(reply, screen),
        feed(reply, screen),
        audit(reply, screen),
    ]
    .join("\n")
}

/// `show linux interface`.
pub(crate) fn interfaces(reply: &Linux, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::text("Interface"),
        Column::text("TAP"),
        Column::number("Index"),
        Column::text("Namespace"),
        Column::number("To Linux"),
        Column::number("Policed"),
        Column::text("Trouble"),
    ]);
    for it in &reply.interfaces {
        let index = it
            .index
            .map_or_else(|| "-".to_owned(), |index| index.to_string());
        table.row([
            Cell::from(harmless(&it.interface)),
            harmless(&it.name).into(),
            index.into(),
            harmless(reply.namespace.as_deref().unwrap_or("own")).into(),
            it.punt
                .iter()
                .map(|class| class.passed)
                .sum::<u64>()
                .to_string()
                .into(),
            it.punt
                .iter()
                .map(|class| class.policed)
                .sum::<u64>()
                .to_string()
                .into(),
            harmless(it.trouble.as_deref().unwrap_or("-")).into(),
        ]);
    }
    table.draw(screen)
}

/// `show linux punt`.
pub(crate) fn punt(reply: &Linux, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::text("Interface"),
        Column::text("Class"),
        Column::number("Limit/s"),
        Column::number("Passed"),
        Column::number("Policed"),
    ]);
    for it in &reply.interfaces {
        for class in &it.punt {
            table.row([
                Cell::from(harmless(&it.interface)),
                harmless(&class.punt_class).into(),
                class.limit.to_string().into(),
                class.passed.to_string().into(),
                class.policed.to_string().into(),
            ]);
        }
    }
    table.draw(screen)
}

/// `show linux feed`.
pub(crate) fn feed(reply: &Linux, _: &Screen) -> String {
    let Some(feed) = &reply.feed else {
        return "the kernel's routes are not read\n".to_owned();
    };
    let mut text = format!(
        "messages {}, route changes {}, applied {}, batches waiting {}\n\
         buffer {} bytes, overruns {}, tables read {}, read again {}\n",
        feed.messages,
        feed.updates,
        feed.applied,
        feed.waiting,
        feed.buffer_bytes,
        feed.overruns,
        feed.resyncs,
        feed.interrupted
    );
    for refused in &feed.refused {
        text += &format!("refused: {} {}\n", harmless(&refused.reason), refused.count);
    }
    for refused in reply.refused.iter().rev().take(10) {
        text += &format!(
            "  {}: {}\n",
            harmless(&refused.prefix),
            harmless(&refused.error)
        );
    }
    text
}

/// `show linux audit`.
pub(crate) fn audit(reply: &Linux, _: &Screen) -> String {
    let audit = &reply.audit;
    format!(
        "routes of the kernel {}, compared {} times, missing or different {}, stale {}\n",
        audit.routes, audit.audits, audit.healed, audit.stale
    )
}
