//! `weir peering drain`, `undrain` and `refresh`: maintenance and new data, with a look at the traffic.

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_api::Client;
use weir_peering::apply::{Daemon, Guard, Outcome};
use weir_peering::model::Mode;
use weir_peering::plan::{SessionChange, VerdictDiff};
use weir_peering::resolve::Loaded;
use weir_peering::traffic::Traffic;
use weir_peering::{Error, bird};

use super::{daemon, fetch_snapshot, load_for, refused, write_json};
use crate::cli::{PeeringDrainArgs, PeeringRefreshArgs};
use crate::failure::{CONFLICT, FAILED, Failure};

/// How often the traffic is looked at.
const TURN: Duration = Duration::from_secs(2);
/// The most flows, or groups of them, that the router is asked for.
const MOST_FLOWS: &str = "10000";
/// The longest shutdown message (RFC 9003 allows 255; RFC 8203 allowed 128).
const LONGEST_MESSAGE: usize = 128;

/// The router's flows as traffic by destination.
pub(super) fn measured(router: &Path) -> Result<Traffic, Failure> {
    let query = [
        ("group", Some("destination")),
        ("lengths", Some("24,48")),
        ("top", Some("octets")),
        ("limit", Some(MOST_FLOWS)),
    ];
    let reply = Client::new(router).flows(&query)?;
    let rows = reply.groups.iter().filter_map(|it| {
        let prefix = it.group.as_deref()?.parse().ok()?;
        Some((prefix, it.octets_per_second))
    });
    Ok(Traffic::of(rows))
}

/// What is drained: sessions, and where their traffic is seen.
struct Target {
    sessions: Vec<String>,
    addresses: Vec<IpAddr>,
    interface: Option<String>,
}

fn target(of: &Loaded, name: &str) -> Result<Target, Failure> {
    let mut target = Target {
        sessions: Vec::new(),
        addresses: Vec::new(),
        interface: of
            .peering
            .exchanges
            .get(name)
            .and_then(|it| it.interface.clone()),
    };
    for neighbor in &of.peering.neighbors {
        let is_meant = neighbor.at.as_deref() == Some(name)
            || neighbor.name() == name
            || format!("AS{}", neighbor.asn) == name;
        if is_meant {
            for (session, it) in of.peering.sessions(neighbor) {
                target.sessions.push(session);
                target.addresses.push(it.address);
            }
        }
    }
    if target.sessions.is_empty() {
        return Err(Failure::said(format_args!(
            "{name} is neither a neighbour (AS64500, AS64500_frysix) nor an exchange"
        )));
    }
    Ok(target)
}

impl Target {
    /// Bits a second that still pass.
    fn bits(&self, router: &Path) -> Result<u64, Failure> {
        let mut query = vec![("top", Some("octets")), ("limit", Some(MOST_FLOWS))];
        if let Some(interface) = &self.interface {
            query.push(("interface", Some(interface.as_str())));
        }
        let reply = Client::new(router).flows(&query)?;
        let is_by_interface = self.interface.is_some();
        let octets: u64 = reply
            .flows
            .iter()
            .filter(|it| {
                is_by_interface || it.next_hop.is_some_and(|hop| self.addresses.contains(&hop))
            })
            .map(|it| it.octets_per_second)
            .sum();
        Ok(octets.saturating_mul(8))
    }
}

/// Applies the section with other modes; the modes are kept when it holds.
fn apply_mode(
    args: &PeeringDrainArgs,
    own: &Daemon,
    mode: Option<Mode>,
    to: &mut dyn Write,
) -> Result<Loaded, Failure> {
    let before = own.modes().map_err(refused)?;
    let mut modes = before.clone();
    match mode {
        Some(mode) => modes.insert(args.name.clone(), mode),
        None => modes.remove(&args.name),
    };
    own.set_modes(&modes).map_err(refused)?;
    let done = load_for(&args.of, own).and_then(|of| {
        target(&of, &args.name)?;
        let (summary, plan) = own.prepare(&of, None).map_err(refused)?;
        let text = bird::configuration(&of.peering, &of.snapshot);
        let guard = Guard::new(Duration::from_secs(2), 20);
        let outcome = own
            .apply(&text, &summary, &plan, guard, None)
            .map_err(refused)?;
        match outcome {
            Outcome::Undone { reason, .. } => {
                writeln!(to, "undone: {reason}")?;
                Err(Failure::Reported(FAILED))
            }
            _ => Ok(of),
        }
    });
    if done.is_err() {
        own.set_modes(&before).map_err(refused)?;
    }
    done
}

pub(super) fn drain(args: &PeeringDrainArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let is_wrong = |c: char| c.is_control() || c == '"' || c == '\\';
    if args.message.len() > LONGEST_MESSAGE || args.message.chars().any(is_wrong) {
        return Err(Failure::said(format_args!(
            "message: at most {LONGEST_MESSAGE} bytes without quotes, backslashes and control characters"
        )));
    }
    let own = daemon(&args.daemon);
    let of = apply_mode(args, &own, Some(Mode::Drain), to)?;
    let target = target(&of, &args.name)?;
    writeln!(
        to,
        "{} announces GRACEFUL_SHUTDOWN on {} sessions",
        args.name,
        target.sessions.len()
    )?;
    to.flush()?;
    if !args.now {
        let until = Instant::now() + args.wait;
        loop {
            let bits = target.bits(&args.api)?;
            if bits < args.below {
                writeln!(to, "{bits} bit/s are left")?;
                break;
            }
            if Instant::now() >= until {
                return Err(Failure::Coded(
                    CONFLICT,
                    format!(
                        "{bits} bit/s are left after {} s: the sessions stay open and drained; \
                         `weir peering undrain {}` ends it, --now shuts them",
                        args.wait.as_secs(),
                        args.name
                    ),
                ));
            }
            std::thread::sleep(TURN);
        }
    }
    // The message goes with the command; the configuration keeps the sessions shut.
    let mut control = own.control().map_err(refused)?;
    for session in &target.sessions {
        control
            .ask(&format!("disable {session} \"{}\"", args.message))
            .map_err(refused)?;
    }
    apply_mode(args, &own, Some(Mode::Down), to)?;
    writeln!(
        to,
        "{} sessions are shut: {}",
        target.sessions.len(),
        args.message
    )?;
    Ok(())
}

pub(super) fn undrain(args: &PeeringDrainArgs, to: &mut dyn Write) -> Result<(), Failure> {
    let own = daemon(&args.daemon);
    let of = apply_mode(args, &own, None, to)?;
    let target = target(&of, &args.name)?;
    let mut control = own.control().map_err(refused)?;
    for session in &target.sessions {
        control.ask(&format!("enable {session}")).map_err(refused)?;
    }
    writeln!(to, "{} sessions are open", target.sessions.len())?;
    Ok(())
}

pub(super) fn refresh(
    args: &PeeringRefreshArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    // What could not be fetched keeps its earlier data; the rest goes on, and the exit code says it.
    let fetched = fetch_snapshot(&args.fetch, json, to);
    let own = daemon(&args.daemon);
    own.settle().map_err(refused)?;
    let of = load_for(&args.fetch.of, &own)?;
    if own.is_edited().map_err(refused)? {
        return Err(refused(Error::Refused(
            "BIRD's configuration was edited since, or never applied: `weir peering apply`"
                .to_owned(),
        )));
    }
    let (summary, plan) = own.prepare(&of, None).map_err(refused)?;
    if json {
        write_json(&plan, to)?;
    } else {
        for line in plan.lines() {
            writeln!(to, "{line}")?;
        }
    }
    let mut waits = Vec::new();
    let loss = plan.verdicts.as_ref().and_then(VerdictDiff::largest_loss);
    if let Some((percent, session)) = loss.filter(|it| it.0 > f64::from(args.max_loss)) {
        waits.push(format!(
            "{percent:.0} % of the accepted routes of {session} would be rejected"
        ));
    }
    for it in plan
        .sessions
        .iter()
        .filter(|it| it.change == SessionChange::Remove)
    {
        waits.push(format!("session {} ({}) would go", it.name, it.address));
    }
    let sessions = own
        .control()
        .and_then(|mut control| control.sessions())
        .map_err(refused)?;
    for it in &plan.limits {
        let has = sessions.iter().find(|of| of.name == it.name);
        let routes = has.map_or(0, |of| of.imported + of.filtered);
        if it.after.is_some_and(|limit| u64::from(limit) < routes) {
            waits.push(format!(
                "{} has {routes} routes, more than its new limit",
                it.name
            ));
        }
    }
    if !waits.is_empty() {
        return Err(Failure::Coded(
            CONFLICT,
            format!("not applied, a person must: {}", waits.join("; ")),
        ));
    }
    if !args.dry_run && !plan.is_empty() {
        let text = bird::configuration(&of.peering, &of.snapshot);
        let guard = Guard::new(args.guard, 20);
        let outcome = own
            .apply(&text, &summary, &plan, guard, None)
            .map_err(refused)?;
        if let Outcome::Undone { reason, .. } = outcome {
            return Err(Failure::said(format_args!("undone: {reason}")));
        }
        if !json {
            writeln!(to, "applied and confirmed")?;
        }
    }
    fetched
}
