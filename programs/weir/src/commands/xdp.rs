//! `weir xdp`: the commands of the XDP host path. The work is in the crate `weir-xdp`; here is what people read.

pub(crate) mod bench;
mod demo;
mod host;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use weir_xdp::config::{self, Config};
use weir_xdp::daemon::{self, Daemon, Folders};
use weir_xdp::preflight::{Level, preflight};
use weir_xdp::show::{self, Balance};
use weir_xdp::{programs, trace};

use crate::cli::{Where, XdpArgs, XdpCommand, XdpShow, XdpTraceArgs};
use crate::failure::{Failure, NO_ROUTER, REFUSED};
use crate::render::{Cell, Column, Screen, Table};

/// Does it.
pub(crate) fn execute(args: &XdpArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let folders = Folders {
        pins: args.pins.clone(),
        state: args.state.clone(),
        layout: weir_xdp::abi::LAYOUT,
    };
    match &args.what {
        XdpCommand::Run(file) => run(&file.config, &folders, to),
        XdpCommand::Check(file) => check(&file.config, json, to),
        XdpCommand::Plan(file) => plan(&file.config, &folders, json, to),
        XdpCommand::Apply(args) => super::config_apply::apply(args, &at(&folders), json, to),
        XdpCommand::Confirm => super::config_apply::confirm(&at(&folders), json, to),
        XdpCommand::Rollback(args) => super::config_apply::rollback(args, &at(&folders), json, to),
        XdpCommand::History(args) => super::config_history::history(args, &at(&folders), json, to),
        XdpCommand::Show { what } => show(*what, &folders, json, to),
        XdpCommand::Trace(args) => trace_packets(args, &folders, json, to),
        XdpCommand::Detach => detach(&folders, to),
        XdpCommand::Demo => demo::execute(json, to),
    }
}

/// The file's text and what it means; all findings go to standard error.
fn read(path: &Path) -> Result<(String, Config), Failure> {
    let name = path.display().to_string();
    let bytes =
        std::fs::read(path).map_err(|error| Failure::said(format!("read {name}: {error}")))?;
    match config::check(&name, &bytes) {
        Ok(config) => Ok((String::from_utf8_lossy(&bytes).into_owned(), config)),
        Err(findings) => {
            for finding in &findings {
                let _ = writeln!(std::io::stderr(), "{finding}\n");
            }
            Err(Failure::Coded(
                REFUSED,
                format!("{name} is refused: {} errors", findings.len()),
            ))
        }
    }
}

fn run(path: &Path, folders: &Folders, to: &mut dyn Write) -> Result<(), Failure> {
    let (text, config) = read(path)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(Failure::said)?;
    let (mut interrupt, mut terminate) = runtime
        .block_on(async {
            Ok::<_, std::io::Error>((
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            ))
        })
        .map_err(Failure::said)?;
    let ports = config.interfaces().count();
    let mut daemon = Daemon::start(&text, config, folders).map_err(Failure::said)?;
    writeln!(
        to,
        "weir xdp runs: {ports} ports, tables in {}",
        folders.pins.display()
    )?;
    to.flush()?;
    crate::service::daemon_ready(&format!("{ports} ports"));
    runtime.block_on(serve(move |stop| daemon.run(stop), async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }))
}

/// Runs `work` in a thread until a signal arrives or it ends by itself; an end without a signal is an error.
async fn serve<E: std::fmt::Display + Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Result<(), E> + Send + 'static,
    signal: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let own = stop.clone();
    // Dropped by a thread that panics, which also ends the wait.
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let worker = std::thread::Builder::new()
        .name("weir-xdp".into())
        .spawn(move || {
            let _ended = ended;
            work(&own)
        })
        .map_err(Failure::said)?;
    let is_early = tokio::select! {
        () = signal => false,
        _ = end => true,
    };
    stop.store(true, Ordering::Relaxed);
    match worker.join() {
        Ok(Ok(())) if is_early => Err(Failure::said("the daemon ended without a signal")),
        Ok(outcome) => outcome
            .map_err(|error| Failure::said(format!("the daemon failed: {error}; programs go on"))),
        Err(_) => Err(Failure::said("the daemon panicked; programs go on")),
    }
}

fn check(path: &Path, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let (_, config) = read(path)?;
    let findings = preflight(&config).map_err(Failure::said)?;
    if json {
        write_json(&findings, to)?;
    } else {
        let screen = Screen::of_stdout();
        let mut table = Table::new([
            Column::text("Interface"),
            Column::text("Level"),
            Column::long("Finding"),
        ]);
        for it in &findings {
            let level = match it.level {
                Level::Good => "good",
                Level::Warning => "warning",
                Level::Bad => "bad",
            };
            table.row([
                Cell::from(&it.interface),
                level.into(),
                Cell::from(&it.text),
            ]);
        }
        write!(to, "{}", table.draw(&screen))?;
    }
    let bad = findings.iter().filter(|it| it.level == Level::Bad).count();
    if bad > 0 {
        return Err(Failure::Coded(
            REFUSED,
            format!("{bad} findings make packets vanish: correct them first"),
        ));
    }
    if !json {
        writeln!(to, "{} is right", path.display())?;
    }
    Ok(())
}

fn plan(path: &Path, folders: &Folders, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let (_, new) = read(path)?;
    let running = folders.running();
    let bytes = std::fs::read(&running).map_err(|error| {
        Failure::Coded(NO_ROUTER, format!("read {}: {error}", running.display()))
    })?;
    let old = config::check("running", &bytes)
        .map_err(|_| Failure::said("the running configuration is damaged"))?;
    let lines = config::plan(&old, &new);
    if json {
        return write_json(&lines, to);
    }
    for line in &lines {
        writeln!(to, "{line}")?;
    }
    if lines.is_empty() {
        writeln!(to, "nothing changes")?;
    }
    Ok(())
}

/// The daemon's API.
fn at(folders: &Folders) -> Where {
    Where {
        socket: Some(folders.socket()),
        ..Where::default()
    }
}

fn show(what: XdpShow, folders: &Folders, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let screen = Screen::of_stdout();
    match what {
        XdpShow::Port => {
            let ports = show::ports(folders).map_err(Failure::said)?;
            if json {
                return write_json(&ports, to);
            }
            let mut table = Table::new([
                Column::text("Port"),
                Column::number("Received"),
                Column::number("Sent"),
                Column::number("Dropped"),
                Column::number("Kernel"),
                Column::number("Flooded"),
                Column::number("Answered"),
                Column::number("Learned"),
            ]);
            for it in &ports {
                let dropped: u64 = it.drops.iter().map(|it| it.packets).sum();
                table.row([
                    Cell::from(&it.name),
                    it.in_packets.into(),
                    it.out_packets.into(),
                    dropped.into(),
                    it.kernel.into(),
                    it.flooded.into(),
                    it.answered.into(),
                    it.learned.into(),
                ]);
            }
            write!(to, "{}", table.draw(&screen))?;
        }
        XdpShow::Fdb => {
            let fdb = show::fdb(folders).map_err(Failure::said)?;
            if json {
                return write_json(&fdb, to);
            }
            let mut table = Table::new([
                Column::number("VLAN"),
                Column::text("MAC"),
                Column::text("Port"),
                Column::text("Age"),
                Column::number("Moves"),
            ]);
            for it in &fdb {
                let age = it
                    .age
                    .map_or_else(|| "static".to_owned(), |age| format!("{age} s"));
                table.row([
                    u64::from(it.vlan).into(),
                    Cell::from(&it.mac),
                    Cell::from(&it.port),
                    Cell::from(&age),
                    u64::from(it.moves).into(),
                ]);
            }
            write!(to, "{}", table.draw(&screen))?;
        }
        XdpShow::Acl => {
            let rules = show::acls(folders).map_err(Failure::said)?;
            if json {
                return write_json(&rules, to);
            }
            let mut table = Table::new([
                Column::text("ACL"),
                Column::number("Rule"),
                Column::text("Action"),
                Column::number("Packets"),
                Column::number("Bytes"),
            ]);
            for it in &rules {
                let action = match &it.text {
                    Some(rule) if rule.permit => "permit",
                    Some(_) => "deny",
                    None => "deny (no rule matched)",
                };
                table.row([
                    Cell::from(&it.acl),
                    u64::from(it.rule).into(),
                    action.into(),
                    it.packets.into(),
                    it.bytes.into(),
                ]);
            }
            write!(to, "{}", table.draw(&screen))?;
        }
        XdpShow::Drops => {
            let ports = show::ports(folders).map_err(Failure::said)?;
            let balance = Balance::of(&ports);
            if json {
                return write_json(
                    &serde_json::json!({"ports": ports, "balance": balance, "exact": balance.is_exact()}),
                    to,
                );
            }
            let mut table = Table::new([
                Column::text("Port"),
                Column::text("Reason"),
                Column::number("Packets"),
            ]);
            for port in &ports {
                for drop in &port.drops {
                    table.row([
                        Cell::from(&port.name),
                        drop.reason.into(),
                        drop.packets.into(),
                    ]);
                }
            }
            write!(to, "{}", table.draw(&screen))?;
            writeln!(
                to,
                "in {} + replicated {} = out {} + drops {} + kernel {} + filtered {}{}",
                balance.input,
                balance.replicated,
                balance.output,
                balance.drops,
                balance.kernel,
                balance.filtered,
                if balance.is_exact() {
                    ""
                } else {
                    "  (packets are on their way)"
                }
            )?;
        }
        XdpShow::Runtime => {
            let runtime = Runtime {
                kernel: programs::kernel(),
                daemon: daemon::is_running(folders),
                interfaces: programs::attached(&folders.pins),
                object_bytes: programs::OBJECT.len(),
            };
            if json {
                return write_json(&runtime, to);
            }
            writeln!(to, "kernel {}", runtime.kernel)?;
            writeln!(
                to,
                "daemon {}",
                if runtime.daemon {
                    "runs"
                } else {
                    "does not run"
                }
            )?;
            writeln!(to, "programs on {} interfaces", runtime.interfaces.len())?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Runtime {
    kernel: String,
    daemon: bool,
    interfaces: Vec<u32>,
    object_bytes: usize,
}

fn trace_packets(
    args: &XdpTraceArgs,
    folders: &Folders,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let mut failed = None;
    trace::trace(
        folders,
        args.port.as_deref(),
        args.count,
        args.duration,
        |it| {
            let written = if json {
                write_json(&it, to)
            } else {
                let out = match (it.flooded, it.out_ifindex) {
                    (true, _) => "all".to_owned(),
                    (_, Some(index)) => index.to_string(),
                    _ => "-".to_owned(),
                };
                let rule = it
                    .rule
                    .map_or_else(String::new, |rule| format!(" rule {rule}"));
                let reason = it
                    .reason
                    .map_or_else(String::new, |reason| format!(" ({reason})"));
                writeln!(
                    to,
                    "{} ifindex {} -> {out}: VLAN {}, {} bytes, destination {}{rule}: {}{reason}",
                    it.stage, it.in_ifindex, it.vlan, it.length, it.found, it.verdict
                )
                .map_err(Failure::from)
            };
            failed = failed.take().or(written.err());
        },
    )
    .map_err(Failure::said)?;
    failed.map_or(Ok(()), Err)
}

fn detach(folders: &Folders, to: &mut dyn Write) -> Result<(), Failure> {
    if daemon::is_running(folders) {
        return Err(Failure::said("the daemon runs: stop it first"));
    }
    programs::remove(&folders.pins).map_err(Failure::said)?;
    let _ = std::fs::remove_file(folders.running());
    writeln!(to, "detached")?;
    Ok(())
}

fn write_json(value: &impl Serialize, to: &mut dyn Write) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::said)?;
    writeln!(to, "{text}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(
        work: impl FnOnce(&AtomicBool) -> Result<(), String> + Send + 'static,
        signal: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(serve(work, signal))
    }

    #[test]
    fn a_daemon_that_fails_ends_the_command_without_a_signal() {
        let failed = run(
            |_| Err("netlink is gone".to_owned()),
            std::future::pending(),
        );
        let text = format!("{:?}", failed.unwrap_err());
        assert!(text.contains("netlink is gone"), "{text}");
        assert!(run(|_| panic!("a test"), std::future::pending()).is_err());
        assert!(run(|_| Ok(()), std::future::pending()).is_err());
    }

    #[test]
    fn a_signal_ends_the_daemon() {
        let until_stopped = |stop: &AtomicBool| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok(())
        };
        assert!(run(until_stopped, std::future::ready(())).is_ok());
    }
}
