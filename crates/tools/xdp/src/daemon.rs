//! The daemon: follows the links of the machine and the configuration, and makes programs and maps follow them.
//!
//! One thread. Packets never wait for it: when it is slow, killed or absent, the programs go on with what the
//! maps hold. At start it reads what the maps hold and writes only the difference, so that a restart loses
//! neither packets nor counters nor learned addresses.
//!
//! The running configuration and its history are kept in the state folder. The API (`api.sock` there) hands changes to this
//! thread, one at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use aya::maps::{MapData, RingBuf};
use weir_api::{
    ApiError, Applied, ApplyRequest, Client, Confirmed, ErrorCode, RollbackRequest, Server,
    ServerHandle, ServerSettings,
};
use weir_netlink::netns::NetNs;
use weir_netlink::watch::{LinkEvent, LinkWatcher};

use crate::abi::{Bytes, Event, FdbKey, fdb_flags};
use crate::acl::Acls;
use crate::api::{Command, Host, needs_restart};
use crate::changes::{Changes, Who, findings, steps};
use crate::config::{self, Config};
use crate::error::{Error, Result};
use crate::maps::Maps;
use crate::programs::{self, Programs};
use crate::show;
use crate::state::{Link, Slots, Tables, bond_hash, bond_key, logicals, tables};
use crate::telemetry::{Telemetry, drop_budget, gaps};

/// Where the daemon keeps its files.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Pinned maps and links, on a BPF file system.
    pub pins: PathBuf,
    /// The running configuration, its history and the API's socket.
    pub state: PathBuf,
    /// The version of the tables' layout: tables of another version are not used.
    pub layout: u32,
}

impl Default for Folders {
    fn default() -> Folders {
        Folders {
            pins: "/sys/fs/bpf/weir-xdp".into(),
            state: "/run/weir-xdp".into(),
            layout: crate::abi::LAYOUT,
        }
    }
}

impl Folders {
    /// The pinned tables.
    #[must_use]
    pub fn tables(&self) -> PathBuf {
        self.pins.join(format!("tables-{}", self.layout))
    }

    /// The running configuration.
    #[must_use]
    pub fn running(&self) -> PathBuf {
        self.state.join("running.yaml")
    }

    /// The API's socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.state.join("api.sock")
    }

    /// Earlier configurations.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.state.join("history")
    }
}

/// How long the daemon rests when nothing happens.
const TURN: Duration = Duration::from_millis(50);

/// The daemon.
pub struct Daemon {
    config: Config,
    folders: Folders,
    maps: Maps,
    programs: Programs,
    /// What the maps hold.
    written: Tables,
    slots: Slots,
    acls: Acls,
    /// The numbers of the configuration's ACLs, once they are written.
    numbers: Option<BTreeMap<String, u32>>,
    watcher: LinkWatcher,
    links: BTreeMap<String, Link>,
    /// Interfaces to which the program is attached.
    attached: BTreeMap<u32, String>,
    text: String,
    host: Arc<Host>,
    commands: Receiver<Command>,
    server: Option<ServerHandle>,
    /// `None` only while a change is made.
    changes: Option<Changes>,
    ring: RingBuf<MapData>,
    telemetry: Option<Telemetry>,
    ticked_at: Instant,
    ageing: Ageing,
}

impl Daemon {
    /// Loads programs, attaches them to the configured interfaces that exist, and fills the maps. Runs in the
    /// network namespace of the calling thread.
    ///
    /// # Errors
    /// When the configuration cannot be applied. Without an earlier daemon's programs nothing is left behind; with
    /// them, they go on.
    pub fn start(text: &str, config: Config, folders: &Folders) -> Result<Daemon> {
        programs::prepare(&folders.pins)?;
        programs::prepare(&folders.tables())?;
        std::fs::create_dir_all(&folders.state).map_err(|source| Error::File {
            action: "make",
            path: folders.state.clone(),
            source,
        })?;
        // It has a lock, so that no two daemons have the same folder.
        let changes = Changes::open(&folders.history())
            .map_err(|error| service("the history of configurations", error))?;
        let is_first = programs::attached(&folders.pins).is_empty();
        let started = Daemon::begin(text, config, folders, changes);
        if started.is_err() && is_first {
            programs::remove(&folders.pins)?;
        }
        started
    }

    fn begin(text: &str, config: Config, folders: &Folders, changes: Changes) -> Result<Daemon> {
        let mut programs = Programs::load(&folders.pins, &folders.tables(), config.mode)?;
        let mut maps = Maps::open(&folders.tables())?;
        let written = maps.tables()?;
        let mut control = maps.control()?;
        control.netns = NetNs::current()?.inode()? as u32;
        (control.conn_tcp, control.conn_other) = config.connections;
        maps.set_control(&control)?;
        programs.attach_tracepoints()?;
        let mut watcher = LinkWatcher::open()?;
        let mut events = Vec::new();
        watcher.resync(&mut events)?;
        let (sender, commands) = channel();
        let host = Host::new(folders.clone(), sender);
        let mut daemon = Daemon {
            text: text.to_owned(),
            host,
            commands,
            server: None,
            changes: Some(changes),
            slots: slots_of(&written, &config),
            acls: Acls::of(&maps)?,
            numbers: None,
            config,
            folders: folders.clone(),
            maps,
            programs,
            written,
            watcher,
            links: BTreeMap::new(),
            attached: BTreeMap::new(),
            ring: crate::maps::events(&folders.tables())?,
            telemetry: None,
            ticked_at: Instant::now(),
            ageing: Ageing::new(Instant::now()),
        };
        daemon.follow(events);
        daemon.apply(true)?;
        daemon.keep(text)?;
        daemon.record_start()?;
        daemon.publish()?;
        daemon.sample()?;
        let settings = ServerSettings {
            metrics: daemon.config.metrics,
            ..ServerSettings::new(folders.socket())
        };
        daemon.server = Some(
            Server::serve(&settings, daemon.host.clone())
                .map_err(|error| service("the API", error))?,
        );
        // No program uses them any more.
        programs::remove_other_tables(&folders.pins, &folders.tables())?;
        Ok(daemon)
    }

    /// Runs until `stop` is set. Programs stay attached.
    ///
    /// # Errors
    /// When netlink fails for good.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            if self.watcher.wait(TURN)? {
                let mut events = Vec::new();
                self.watcher.read(&mut events)?;
                if events.contains(&LinkEvent::Overrun) {
                    self.watcher.resync(&mut events)?;
                }
                if self.follow(events)
                    && let Err(error) = self.leave_failed_links().and_then(|()| self.apply(false))
                {
                    tracing::error!(%error, "a change of links could not be applied");
                }
            }
            self.serve();
            self.undo_late_change();
            self.export();
            let now = Instant::now();
            if now.duration_since(self.ticked_at) >= Duration::from_secs(1) {
                self.ticked_at = now;
                // CPUs look into the forwarding database again, which keeps addresses that are in use.
                self.maps.next_epoch()?;
                self.publish()?;
            }
            self.age(now)?;
        }
        if let Some(server) = self.server.take() {
            server.stop();
        }
        Ok(())
    }

    /// Takes link events in; whether they matter.
    fn follow(&mut self, events: Vec<LinkEvent>) -> bool {
        if events.is_empty() {
            return false;
        }
        let links: BTreeMap<String, Link> = self
            .watcher
            .links()
            .values()
            .map(|it| (it.name.clone(), Link::from(it)))
            .collect();
        let matters = self
            .config
            .interfaces()
            .any(|(name, ..)| links.get(name) != self.links.get(name));
        self.links = links;
        matters
    }

    /// Takes links that failed out of the tables at once, before anything else is computed or written.
    fn leave_failed_links(&mut self) -> Result<()> {
        for (number, logical) in logicals(&self.config, &self.links, &self.slots) {
            if self.written.logicals.get(&number) != Some(&logical) {
                self.maps.set_logical(number, &logical)?;
                self.written.logicals.insert(number, logical);
                self.maps.next_epoch()?;
            }
        }
        Ok(())
    }

    /// Makes programs and maps what configuration and links say.
    fn apply(&mut self, rewrite_devmaps: bool) -> Result<()> {
        // Not compared again when a link changes: a failed member of a bond must be left at once.
        let acls = match &self.numbers {
            Some(numbers) => numbers.clone(),
            None => self.acls.write(&self.config.acls, &mut self.maps)?,
        };
        self.numbers = Some(acls.clone());
        let (new, gone) = tables(&self.config, &self.links, &acls, &mut self.slots);
        let egress = self.programs.egress()?;
        // A new port is in the maps before its program runs, and a removed one has no program any more when it
        // leaves the maps: its frames are the kernel's, not lost.
        for ifindex in self
            .written
            .ports
            .keys()
            .filter(|key| !new.ports.contains_key(key))
        {
            self.programs.detach(*ifindex);
            self.attached.remove(ifindex);
        }
        for ifindex in programs::attached(&self.folders.pins) {
            if !new.ports.contains_key(&ifindex) {
                self.programs.detach(ifindex);
            }
        }
        self.maps
            .write(&self.written, &new, &egress, rewrite_devmaps)?;
        self.written = new;
        for slot in gone {
            self.maps.clear_counters(slot)?;
        }
        self.acls.free_unused(&acls, &mut self.maps)?;
        if rewrite_devmaps {
            // A program of arrival and an egress program of different versions never see the same frame.
            programs::wait_for_packets();
        }
        let mut failed = None;
        for (name, link) in &self.links {
            let configured = self.written.ports.contains_key(&link.ifindex);
            if !configured || self.attached.contains_key(&link.ifindex) {
                continue;
            }
            match self.programs.attach(link.ifindex, name) {
                Ok(()) => {
                    self.attached.insert(link.ifindex, name.clone());
                }
                Err(error) => {
                    tracing::error!(%error, "an interface is not served");
                    failed = failed.or(Some(error));
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Replaces the configuration. On an error the earlier one is in force again.
    ///
    /// # Errors
    /// When it cannot be applied.
    pub fn reconfigure(&mut self, text: &str, config: Config) -> Result<()> {
        let before = std::mem::replace(&mut self.config, config);
        self.numbers = None;
        let applied = self.apply(false).and_then(|()| {
            let mut control = self.maps.control()?;
            (control.conn_tcp, control.conn_other) = self.config.connections;
            self.maps.set_control(&control)?;
            self.sample()?;
            self.keep(text)?;
            self.text = text.to_owned();
            self.publish()
        });
        if let Err(error) = applied {
            self.config = before;
            self.numbers = None;
            if let Err(again) = self.apply(false) {
                tracing::error!(error = %again, "the earlier configuration could not be restored");
            }
            return Err(error);
        }
        Ok(())
    }

    /// Starts, changes or ends sampling and the reports of drops as the configuration says.
    fn sample(&mut self) -> Result<()> {
        let mut control = self.maps.control()?;
        control.drop_events = self
            .config
            .sflow
            .as_ref()
            .map_or(0, |sflow| drop_budget(sflow.drop_limit));
        let Some(sflow) = &self.config.sflow else {
            self.telemetry = None;
            return self.maps.set_control(&control);
        };
        self.maps.set_gaps(gaps(sflow.rate))?;
        match &mut self.telemetry {
            Some(telemetry) => telemetry.reconfigure(sflow),
            None => {
                let started = Telemetry::start(sflow, self.host.clone());
                self.telemetry = Some(started.map_err(|error| service("the sFlow agent", error))?);
            }
        }
        self.maps.set_control(&control)
    }

    /// Hands samples and drops to the agent. Without one they are taken out of the ring and forgotten.
    fn export(&mut self) {
        while let Some(item) = self.ring.next() {
            if let (Ok(bytes), Some(telemetry)) =
                (<&[u8; 184]>::try_from(&*item), &mut self.telemetry)
            {
                telemetry.take(&Event::of_bytes(bytes));
            }
        }
    }

    /// Publishes for the API's threads and the agent, and hands the agent what the programs could not report.
    fn publish(&mut self) -> Result<()> {
        if let Some(telemetry) = &mut self.telemetry {
            for (ifindex, port) in &self.written.ports {
                let counters = self.maps.counters(port.slot)?;
                telemetry.lost(*ifindex, counters.events_lost, counters.drops_unreported);
            }
        }
        let ports = show::views(&self.maps, &self.written.ports)?;
        let mut published = self.host.published();
        published.ports = ports;
        published.links.clone_from(&self.links);
        published.text.clone_from(&self.text);
        published.config = Some(self.config.clone());
        published.sflow = self
            .telemetry
            .as_ref()
            .map(Telemetry::stats)
            .unwrap_or_default();
        Ok(())
    }

    /// Writes the running configuration; other programs see the old or the new file, never half of one.
    fn keep(&self, text: &str) -> Result<()> {
        let (path, new) = (
            self.folders.running(),
            self.folders.state.join("running.yaml.new"),
        );
        let failed = |source| Error::File {
            action: "write",
            path: path.clone(),
            source,
        };
        std::fs::write(&new, text).map_err(failed)?;
        std::fs::rename(&new, &path).map_err(failed)
    }

    /// Does what the API asks for.
    fn serve(&mut self) {
        // A caller that is gone needs no answer.
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Apply(request, author, answer) => {
                    let _ = answer.send(self.change(&request, author));
                }
                Command::Confirm(answer) => {
                    let confirmed = self
                        .history()
                        .and_then(Changes::confirm)
                        .map(|revision| Confirmed { revision });
                    let _ = answer.send(confirmed);
                }
                Command::Rollback(request, author, answer) => {
                    let _ = answer.send(self.roll_back(&request, author));
                }
                Command::History(limit, before, answer) => {
                    let _ = answer.send(self.history().map(|it| it.history(limit, before)));
                }
                Command::Revision(number, answer) => {
                    let _ = answer.send(self.history().and_then(|it| it.revision(number)));
                }
            }
        }
    }

    fn history(&mut self) -> std::result::Result<&mut Changes, ApiError> {
        self.changes
            .as_mut()
            .ok_or_else(|| ApiError::new(ErrorCode::Internal, "a change is under way", ""))
    }

    /// The revision that the daemon starts with, when it is another one than the last.
    fn record_start(&mut self) -> Result<()> {
        let text = self.text.clone();
        let failed = |error: ApiError| service("the history of configurations", error);
        let changes = self.history().map_err(failed)?;
        let runs = changes
            .running()
            .is_some_and(|last| changes.text(last).is_ok_and(|it| it == text));
        if runs {
            return Ok(());
        }
        let who = Who {
            author: "weir xdp run".to_owned(),
            comment: String::new(),
            confirm_seconds: None,
        };
        changes
            .make(&text, &who, 0, || Ok(()))
            .map(drop)
            .map_err(failed)
    }

    /// One change, as a transaction.
    fn change(
        &mut self,
        request: &ApplyRequest,
        author: String,
    ) -> std::result::Result<Applied, ApiError> {
        let new = config::check(request.file_name(), request.yaml.as_bytes())
            .map_err(|all| ApiError::invalid(findings(all)))?;
        self.history()?.is_free()?;
        let steps = steps(&self.config, &new);
        let needs_restart = needs_restart(&self.config, &new);
        let who = Who {
            author,
            comment: request.comment.clone().unwrap_or_default(),
            confirm_seconds: request.confirm_seconds,
        };
        let before = (self.text.clone(), self.config.clone());
        let mut changes = self
            .changes
            .take()
            .ok_or_else(|| ApiError::new(ErrorCode::Internal, "a change is under way", ""))?;
        let made = changes.make(&request.yaml, &who, steps.len(), || {
            self.reconfigure(&request.yaml, new)
                .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string(), ""))
        });
        self.changes = Some(changes);
        if made.is_err() && self.text != before.0 {
            // It was made, and could not be recorded.
            if let Err(error) = self.reconfigure(&before.0, before.1) {
                tracing::error!(%error, "the earlier configuration could not be restored");
            }
        }
        let (revision, confirm_by) = made?;
        Ok(Applied {
            revision,
            steps,
            needs_restart,
            findings: Vec::new(),
            confirm_by,
        })
    }

    fn roll_back(
        &mut self,
        request: &RollbackRequest,
        author: String,
    ) -> std::result::Result<Applied, ApiError> {
        let waits = self.history()?.lock().is_some();
        if waits && request.revision.is_none() && request.steps_back.unwrap_or(1) == 1 {
            return self.undo(false);
        }
        let changes = self.history()?;
        let revision = changes.meant(request.revision, request.steps_back)?;
        let yaml = changes.text(revision)?;
        let comment = request
            .comment
            .clone()
            .unwrap_or_else(|| format!("revision {revision} again"));
        let request = ApplyRequest {
            yaml,
            file: Some(format!("revision {revision}")),
            comment: Some(comment),
            confirm_seconds: request.confirm_seconds,
            ..ApplyRequest::default()
        };
        self.change(&request, author)
    }

    /// Takes back the change that waits to be confirmed.
    fn undo(&mut self, is_late: bool) -> std::result::Result<Applied, ApiError> {
        let text = self.history()?.before_pending().ok_or_else(|| {
            ApiError::new(ErrorCode::Conflict, "no change waits to be confirmed", "")
        })??;
        let old = config::check("the revision before", text.as_bytes())
            .map_err(|all| ApiError::invalid(findings(all)))?;
        let steps = steps(&self.config, &old);
        self.reconfigure(&text, old)
            .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string(), ""))?;
        let revision = self.history()?.undone(is_late)?;
        Ok(Applied {
            revision,
            steps,
            ..Applied::default()
        })
    }

    fn undo_late_change(&mut self) {
        if self.changes.as_ref().is_some_and(Changes::is_late) {
            match self.undo(true) {
                Ok(applied) => tracing::warn!(
                    revision = applied.revision,
                    "a change was not confirmed in time and is undone"
                ),
                Err(error) => {
                    tracing::error!(%error, "a change that was not confirmed cannot be undone");
                    // Not tried again at each turn.
                    let _ = self.history().and_then(|it| it.undone(true));
                }
            }
        }
    }

    /// Forgets learned addresses that were not seen for long: some of them a turn, so that a link that fails is
    /// never waited for.
    fn age(&mut self, now: Instant) -> Result<()> {
        let limit = u64::from(self.config.ageing) * 1_000_000_000;
        if self.ageing.is_due(now) {
            self.ageing.keys = self.maps.fdb_keys()?;
        }
        let clock = monotonic();
        let mut forgotten = false;
        for _ in 0..AGED_AT_ONCE {
            let Some(key) = self.ageing.keys.pop() else {
                break;
            };
            if let Some(entry) = self.maps.fdb_entry(&key)?
                && entry.flags & fdb_flags::STATIC == 0
                && clock.saturating_sub(entry.seen) > limit
            {
                self.maps.forget(&key)?;
                forgotten = true;
            }
        }
        if forgotten {
            self.maps.next_epoch()?;
        }
        Ok(())
    }
}

/// Addresses that are inspected in one turn.
const AGED_AT_ONCE: usize = 512;
/// Time between two rounds, and before the first: an address in use is seen again within it.
const AGEING_ROUND: Duration = Duration::from_secs(3);

/// A round through the forwarding database.
struct Ageing {
    keys: Vec<FdbKey>,
    began: Instant,
}

impl Ageing {
    fn new(now: Instant) -> Ageing {
        Ageing {
            keys: Vec::new(),
            began: now,
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.keys.is_empty() && now.duration_since(self.began) >= AGEING_ROUND;
        if is_due {
            self.began = now;
        }
        is_due
    }
}

/// Nanoseconds of the clock that the programs use.
#[must_use]
pub fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The numbers that ports and bonds have in the maps of an earlier daemon.
fn slots_of(tables: &Tables, config: &Config) -> Slots {
    let mut slots = Slots::default();
    for port in tables.ports.values() {
        let end = port
            .name
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(port.name.len());
        let Some(Ok(name)) = port.name.get(..end).map(std::str::from_utf8) else {
            continue;
        };
        slots.0.insert(name.to_owned(), port.slot);
        let bond = config
            .bonds
            .keys()
            .find(|bond| bond_hash(bond) == port.bond);
        if let Some(bond) = bond.filter(|_| port.bond != 0) {
            slots.0.insert(bond_key(bond), port.logical);
        }
    }
    slots
}

/// Whether a daemon answers at the API's socket of these folders.
#[must_use]
pub fn is_running(folders: &Folders) -> bool {
    std::os::unix::net::UnixStream::connect(folders.socket()).is_ok()
}

/// Sends a configuration to the daemon that runs with these folders.
///
/// # Errors
/// When there is none, or it refuses.
pub fn send(folders: &Folders, text: &str) -> Result<()> {
    let request = ApplyRequest {
        yaml: text.to_owned(),
        ..ApplyRequest::default()
    };
    Client::new(folders.socket())
        .config_apply(&request)
        .map(drop)
        .map_err(|error| service("the configuration is refused", error))
}

fn service(what: &'static str, reason: impl std::fmt::Display) -> Error {
    Error::Service {
        what,
        reason: reason.to_string(),
    }
}
