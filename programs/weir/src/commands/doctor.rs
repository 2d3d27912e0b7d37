//! `weir doctor`: prints what the crate `weir_doctor` finds.

use std::io::Write;

use weir_doctor::{ALL, Change, Check, Host, Severity, examine, find, fix};

use crate::cli::DoctorArgs;
use crate::failure::{FAILED, Failure, USAGE};

/// At least one critical finding.
const CRITICAL: u8 = 6;

/// Does it.
pub(crate) fn execute(args: &DoctorArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let host = Host::recorded(&args.root);
    for name in args
        .checks
        .iter()
        .chain(&args.explain)
        .chain(&args.fix)
        .chain(&args.undo)
    {
        known(name)?;
    }
    if args.list {
        return list(json, to);
    }
    if let Some(name) = &args.explain {
        return explain(known(name)?, json, to);
    }
    if let Some(name) = &args.fix {
        return make(&host, name, args, json, to);
    }
    if let Some(name) = &args.undo {
        let undone = fix::undo(&host, Some(name), &args.record).map_err(Failure::said)?;
        return changes(&undone, "undone", json, to);
    }
    let found = examine(&host, &args.checks);
    let worst = found
        .iter()
        .map(|diagnosis| diagnosis.finding.severity)
        .max();
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&found).map_err(Failure::said)?
        )?;
    } else {
        for diagnosis in &found {
            let finding = &diagnosis.finding;
            writeln!(
                to,
                "{}: {}: {} ({})",
                word(finding.severity),
                finding.object,
                finding.evidence,
                diagnosis.check
            )?;
            writeln!(to, "  {}", diagnosis.consequence)?;
            match &finding.change {
                Change::Write { path, value } => writeln!(to, "  fix: echo {value} > /{path}")?,
                Change::Run { command, undo } => writeln!(to, "  fix: {command}\n  undo: {undo}")?,
                Change::Manual { how } => writeln!(to, "  what to do: {how}")?,
            }
        }
        let count = |severity| {
            found
                .iter()
                .filter(|diagnosis| diagnosis.finding.severity == severity)
                .count()
        };
        writeln!(
            to,
            "{} checks: {} critical, {} warnings, {} pieces of advice",
            if args.checks.is_empty() {
                ALL.len()
            } else {
                args.checks.len()
            },
            count(Severity::Critical),
            count(Severity::Warning),
            count(Severity::Advice)
        )?;
    }
    match worst {
        Some(Severity::Critical) => Err(Failure::Reported(CRITICAL)),
        Some(Severity::Warning) => Err(Failure::Reported(FAILED)),
        _ => Ok(()),
    }
}

fn known(name: &str) -> Result<&'static Check, Failure> {
    find(name).ok_or_else(|| {
        Failure::Coded(
            USAGE,
            format!("there is no check {name}: weir doctor --list names them"),
        )
    })
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Advice => "advice",
    }
}

fn list(json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    if json {
        let rows: Vec<_> = ALL
            .iter()
            .map(|check| serde_json::json!({"check": check.name, "title": check.title}))
            .collect();
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&rows).map_err(Failure::said)?
        )?;
        return Ok(());
    }
    for check in ALL {
        writeln!(to, "{:<24} {}", check.name, check.title)?;
    }
    Ok(())
}

fn explain(check: &Check, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    if json {
        let text = serde_json::json!({
            "check": check.name, "title": check.title, "consequence": check.consequence, "explanation": check.explanation
        });
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&text).map_err(Failure::said)?
        )?;
    } else {
        writeln!(
            to,
            "{}: {}\n\nOtherwise: {}\n\n{}",
            check.name, check.title, check.consequence, check.explanation
        )?;
    }
    Ok(())
}

fn make(
    host: &Host,
    name: &str,
    args: &DoctorArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let mut made = Vec::new();
    for diagnosis in examine(host, &[name.to_owned()]) {
        match fix::apply(host, name, &diagnosis.finding, &args.record) {
            Ok(change) => made.push(change),
            Err(error) => {
                changes(&made, "changed", json, to)?;
                return Err(Failure::said(format!(
                    "{}: {error}",
                    diagnosis.finding.object
                )));
            }
        }
    }
    changes(&made, "changed", json, to)
}

fn changes(list: &[fix::Made], what: &str, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(list).map_err(Failure::said)?
        )?;
        return Ok(());
    }
    for made in list {
        let change = match if what == "undone" {
            &made.undo
        } else {
            &made.done
        } {
            Change::Write { path, value } => format!("/{path} = {value}"),
            Change::Run { command, .. } => command.clone(),
            Change::Manual { how } => how.clone(),
        };
        writeln!(to, "{what}: {}: {change}", made.object)?;
    }
    if list.is_empty() {
        writeln!(to, "nothing to do")?;
    }
    Ok(())
}
