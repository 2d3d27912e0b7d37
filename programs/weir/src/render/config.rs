//! Configurations: plans, what was done, differences, history.

use std::time::{Duration, SystemTime};

use weir_api::{
    Applied, ConfigDiff, ConfigPlan, ConfigStep, History, LockReason, StepGroup, Timestamp,
};

use super::{Cell, Column, Screen, Style, Table, harmless, units};

/// `config plan`: the steps by group, and what they do not reach.
pub(crate) fn plan(reply: &ConfigPlan, screen: &Screen) -> String {
    let mut text = steps(&reply.steps, screen);
    if reply.steps.is_empty() {
        text += "nothing to do: the router is so already\n";
    } else {
        let count = |group| {
            reply
                .steps
                .iter()
                .filter(|step| step.group == group)
                .count()
        };
        let (prune, create, sync) = (
            count(StepGroup::Prune),
            count(StepGroup::Create),
            count(StepGroup::Sync),
        );
        let all = units::count(reply.steps.len() as u64, "step", "steps");
        text += &format!("{all}: {prune} prune, {create} create, {sync} sync\n");
    }
    for line in &reply.peering {
        text += &format!("peering: {line}\n");
    }
    text + &restart(&reply.needs_restart, screen) + &without_device(&reply.without_device, screen)
}

fn steps(steps: &[ConfigStep], screen: &Screen) -> String {
    let mut text = String::new();
    let mut group = None;
    for step in steps {
        let (sign, style) = match step.group {
            StepGroup::Prune => ('-', Style::Bad),
            StepGroup::Create => ('+', Style::Good),
            StepGroup::Sync => ('~', Style::Warning),
        };
        if group.replace(step.group) != Some(step.group) {
            text += &format!(
                "{}\n",
                screen.styled(&step.group.to_string(), Style::Heading)
            );
        }
        let disturbs = step
            .disturbs
            .as_ref()
            .map_or_else(String::new, |disturbs| format!(" ({})", harmless(disturbs)));
        text += &format!(
            "  {}\n",
            screen.styled(&format!("{sign} {}{disturbs}", harmless(&step.text)), style)
        );
    }
    text
}

fn restart(sections: &[String], screen: &Screen) -> String {
    list("after a restart only: ", sections, screen)
}

fn without_device(interfaces: &[String], screen: &Screen) -> String {
    list("without a device, carrying nothing: ", interfaces, screen)
}

fn list(what: &str, names: &[String], screen: &Screen) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(
        "{}{}\n",
        screen.styled(what, Style::Warning),
        harmless(&names.join(", "))
    )
}

/// What a change did; `confirm` is the command that keeps it.
pub(crate) fn applied(reply: &Applied, confirm: &str, screen: &Screen) -> String {
    let mut text = steps(&reply.steps, screen);
    let count = units::count(reply.steps.len() as u64, "step", "steps");
    text += &match (reply.steps.is_empty(), reply.revision) {
        (true, _) if reply.needs_restart.is_empty() => {
            "nothing to do: the router is so already\n".to_owned()
        }
        (true, _) => "nothing changes before a restart\n".to_owned(),
        // Revisions begin at 1.
        (false, 0) => format!("done: {count}; this router keeps no history\n"),
        (false, revision) => format!("revision {revision} runs: {count}\n"),
    };
    text += &restart(&reply.needs_restart, screen);
    if let Some(until) = reply.confirm_by {
        let warning = format!(
            "it is undone in {}, at {}, unless it is confirmed: {confirm}",
            left(until),
            clock(until)
        );
        text += &format!("{}\n", screen.styled(&harmless(&warning), Style::Warning));
    }
    text
}

/// How long it is until then.
fn left(until: Timestamp) -> String {
    let left = SystemTime::from(until)
        .duration_since(SystemTime::now())
        .unwrap_or(Duration::ZERO);
    // To the second: by the time it is read, the fraction is gone.
    units::seconds(left.as_secs_f64().round()).replace(".0 s", " s")
}

/// `12:34:56 UTC`, out of RFC 3339's form.
fn clock(time: Timestamp) -> String {
    let text = time.to_string();
    let clock = text
        .split_once('T')
        .map_or(text.as_str(), |(_, clock)| clock);
    format!("{} UTC", clock.split(['.', 'Z']).next().unwrap_or(clock))
}

/// `2026-11-21 10:15:33`, out of RFC 3339's form.
pub(super) fn date_and_clock(time: Timestamp) -> String {
    let text = time.to_string().replace('T', " ");
    text.split(['.', 'Z']).next().unwrap_or(&text).to_owned()
}

/// `config diff`: as `diff -u`, in its usual colours.
pub(crate) fn diff(reply: &ConfigDiff, screen: &Screen) -> String {
    if reply.diff.is_empty() {
        return "no difference\n".to_owned();
    }
    let coloured = |line: &str| {
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Style::Heading,
            [b'+', ..] => Style::Good,
            [b'-', ..] => Style::Bad,
            [b'@', ..] => Style::Warning,
            _ => Style::Plain,
        };
        screen.styled(&harmless(line), style) + "\n"
    };
    reply.diff.lines().map(coloured).collect()
}

/// A configuration file: as it is where no person looks, harmless where one does.
pub(crate) fn file(yaml: &str, screen: &Screen) -> String {
    if screen.width.is_none() {
        let end = if yaml.ends_with('\n') { "" } else { "\n" };
        return format!("{yaml}{end}");
    }
    yaml.lines().map(|line| harmless(line) + "\n").collect()
}

/// `config history`: a line a revision, the newest first.
pub(crate) fn history(reply: &History, screen: &Screen) -> String {
    if reply.revisions.is_empty() {
        return "no revisions\n".to_owned();
    }
    let mut table = Table::new([
        Column::number("Revision"),
        Column::text("Time (UTC)"),
        Column::long("Author"),
        Column::text("State"),
        Column::number("Lines").spare(2),
        Column::text("Changed").spare(1),
        Column::long("Comment"),
    ]);
    for revision in &reply.revisions {
        let state = match (revision.running, revision.confirmed) {
            (true, false) => Cell::styled("to be confirmed", Style::Warning),
            (true, true) => Cell::styled("runs", Style::Good),
            // Nobody confirmed it in time.
            (false, false) => Cell::from("undone"),
            (false, true) => Cell::default(),
        };
        table.row([
            Cell::from(revision.revision),
            date_and_clock(revision.time).into(),
            Cell::from(&revision.author),
            state,
            revision.lines.into(),
            format!("+{} -{}", revision.lines_added, revision.lines_removed).into(),
            Cell::from(&revision.comment),
        ]);
    }
    let mut text = table.draw(screen);
    if reply.next.is_some() {
        text += "there are older ones (--max shows more)\n";
    }
    if let Some(lock) = &reply.lock {
        let what = match lock.reason {
            LockReason::ApplyRunning => "is changing the configuration",
            LockReason::ConfirmPending => "has to confirm a change",
        };
        let until = lock.confirm_by.map_or_else(String::new, |until| {
            format!(", which is undone in {}", left(until))
        });
        let warning = harmless(&format!("{} {what}{until}", lock.author));
        text += &format!("{}\n", screen.styled(&warning, Style::Warning));
    }
    text
}
