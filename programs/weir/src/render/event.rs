//! Events: a line each, or one an interface for counters.

use weir_api::{
    ConfigEvent, ConfigEventKind, Event, EventLevel, LinkEvent, Log, LogEvent, Timestamp, UpDown,
};

use super::{Screen, Style, harmless, units};

/// `show log`: a line each.
pub(crate) fn log(reply: &Log, screen: &Screen) -> String {
    if reply.lines.is_empty() {
        return "no lines\n".to_owned();
    }
    let line = |line: &LogEvent| event(&Event::Log(line.clone()), screen);
    reply.lines.iter().map(line).collect()
}

/// One event.
pub(crate) fn event(event: &Event, screen: &Screen) -> String {
    match event {
        Event::Counters(counters) => counters
            .interfaces
            .iter()
            .map(|interface| {
                let (rx, tx) = (interface.rx.packets, interface.tx.packets);
                let counts = format!(
                    "rx {rx} packets, tx {tx} packets, {} dropped",
                    interface.drops
                );
                line(
                    counters.time,
                    "counters",
                    Style::Plain,
                    &format!("{}: {counts}", interface.name),
                    screen,
                )
            })
            .collect(),
        Event::Log(log) => {
            let (word, style) = match log.level {
                EventLevel::Error => ("error", Style::Bad),
                EventLevel::Warn => ("warn", Style::Warning),
                EventLevel::Info => ("info", Style::Good),
                EventLevel::Debug => ("debug", Style::Plain),
                EventLevel::Trace => ("trace", Style::Plain),
            };
            line(log.time, word, style, &log.message, screen)
        }
        Event::Config(change) => line(
            change.time,
            "config",
            Style::Heading,
            &configuration(change),
            screen,
        ),
        Event::Link(link) => line(link.time, "link", Style::Heading, &link_state(link), screen),
        Event::Lost(lost) => {
            let lost = format!(
                "{} of {} were lost: this reader is too slow\n",
                units::count(lost.count, "event", "events"),
                lost.topic
            );
            screen.styled(&lost, Style::Bad)
        }
    }
}

fn line(time: Timestamp, word: &str, style: Style, what: &str, screen: &Screen) -> String {
    let padding = " ".repeat(8_usize.saturating_sub(word.len()));
    format!(
        "{time}  {}{padding}  {}\n",
        screen.styled(word, style),
        harmless(what)
    )
}

fn link_state(link: &LinkEvent) -> String {
    let speed = if link.link == UpDown::Up {
        format!(", {}", units::speed(link.speed))
    } else {
        String::new()
    };
    format!("{} is {}{speed}", link.interface, link.link)
}

fn configuration(change: &ConfigEvent) -> String {
    let (number, author) = (change.revision, &change.author);
    let comment = if change.comment.is_empty() {
        String::new()
    } else {
        format!(": {}", change.comment)
    };
    match change.what {
        ConfigEventKind::Applied => {
            let until = change.confirm_by.map_or_else(String::new, |until| {
                format!(", undone at {until} unless confirmed")
            });
            format!("revision {number} applied by {author}{until}{comment}")
        }
        ConfigEventKind::Confirmed => format!("revision {number} confirmed by {author}{comment}"),
        ConfigEventKind::RolledBack => {
            format!("revision {number} runs again, by {author}{comment}")
        }
        ConfigEventKind::Expired => {
            format!("not confirmed in time: revision {number} runs again{comment}")
        }
        ConfigEventKind::Failed => {
            format!("a change by {author} failed, revision {number} runs on{comment}")
        }
    }
}
