//! Linux as the control plane: TAPs, the kernel's routes, packets for services of Linux.

use weir_api::{Linux, LinuxBmp, LinuxFpm, LinuxInterface};

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
        Column::text("Followed"),
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
            followed(it).into(),
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

/// What an interface has from Linux alone.
fn followed(it: &LinuxInterface) -> String {
    let table = it.followed_table.map(|table| format!("table {table}"));
    let addresses = it.followed_addresses.iter();
    let addresses = addresses.map(|address| harmless(address));
    let all: Vec<String> = table.into_iter().chain(addresses).collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(", ")
    }
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
pub(crate) fn feed(reply: &Linux, screen: &Screen) -> String {
    let mut text = kernel(reply);
    if let Some(fpm) = &reply.fpm {
        text += &zebra(fpm);
    }
    if let Some(received) = &reply.bmp {
        text += &bmp(received);
    }
    if !reply.convergence.is_empty() {
        text += "\n";
        text += &convergence(reply, screen);
    }
    text
}

/// How long changes of routes took.
fn convergence(reply: &Linux, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::text("Source"),
        Column::number("Route changes"),
        Column::number("50 % within"),
        Column::number("99 % within"),
    ]);
    let bound = |us: Option<u64>| match us {
        Some(us) => format!("{} ms", us as f64 / 1e3),
        None => "over 10 s".to_owned(),
    };
    for it in &reply.convergence {
        table.row([
            Cell::from(it.source.to_string()),
            it.updates.to_string().into(),
            bound(it.p50_us).into(),
            bound(it.p99_us).into(),
        ]);
    }
    table.draw(screen)
}

fn zebra(fpm: &LinuxFpm) -> String {
    let is_connected = if fpm.connected { "yes" } else { "no" };
    let mut text = format!(
        "fpm {}: connected {is_connected}, sessions {}, frames {}, messages {}, route changes {}, batches waiting {}\n\
         next-hop objects {}, routes that wait for one {}\n",
        harmless(&fpm.address),
        fpm.sessions,
        fpm.frames,
        fpm.messages,
        fpm.updates,
        fpm.waiting,
        fpm.objects,
        fpm.parked
    );
    for refused in &fpm.refused {
        text += &format!("refused: {} {}\n", harmless(&refused.reason), refused.count);
    }
    text
}

fn bmp(bmp: &LinuxBmp) -> String {
    let mut text = format!(
        "bmp {}: sessions {} ({} began), messages {}, routes announced {}, withdrawn {}\n\
         paths {} of at most {}, prefixes {}\n",
        harmless(&bmp.address),
        bmp.sessions.len(),
        bmp.begun,
        bmp.messages,
        bmp.announced,
        bmp.withdrawn,
        bmp.paths,
        bmp.most_paths,
        bmp.prefixes
    );
    for session in &bmp.sessions {
        let (address, name) = (harmless(&session.address), harmless(&session.name));
        text += &format!("session {address} {name}: messages {}\n", session.messages);
        for peer in &session.peers {
            let (address, table) = (peer.address, harmless(&peer.table));
            text += &format!("  peer {address} AS {} {table}\n", peer.as_number);
        }
    }
    for refused in &bmp.refused {
        text += &format!("refused: {} {}\n", harmless(&refused.reason), refused.count);
    }
    text
}

fn kernel(reply: &Linux) -> String {
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
            harmless(&refused.object),
            harmless(&refused.error)
        );
    }
    text
}

/// `show linux audit`.
pub(crate) fn audit(reply: &Linux, _: &Screen) -> String {
    let audit = &reply.audit;
    format!(
        "routes of the kernel {}, compared {} times, missing or different {}, stale {}\n\
         settings of TAPs that were set back {}\n",
        audit.routes, audit.audits, audit.healed, audit.stale, audit.set_back
    )
}
