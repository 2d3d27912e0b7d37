//! The daemon: follows the links of the machine and the configuration, and makes programs and maps follow them.
//!
//! One thread. Packets never wait for it: when it is slow, killed or absent, the programs go on with what the
//! maps hold. At start it reads what the maps hold and writes only the difference, so that a restart loses
//! neither packets nor counters nor learned addresses.
//!
//! The running configuration is kept as a file in the state folder, and `control.sock` there takes new ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aya::maps::{MapData, RingBuf};
use weir_netlink::netns::NetNs;
use weir_netlink::watch::{LinkEvent, LinkWatcher};

use crate::abi::{Acl, Bytes, Event, FdbKey, fdb_flags};
use crate::acl::{Regions, Space, compile};
use crate::config::{self, Config, Rule};
use crate::error::{Error, Result};
use crate::maps::{Maps, events};
use crate::programs::{self, Programs};
use crate::requests::{Reply, Request, Requests};
use crate::sflow::{Exporter, gaps};
use crate::state::{Link, Slots, Tables, bond_hash, bond_key, logicals, tables};

/// Where the daemon keeps its files.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Pinned maps and links, on a BPF file system.
    pub pins: PathBuf,
    /// The running configuration and the control socket.
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

    /// The control socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.state.join("control.sock")
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
    requests: Requests,
    ring: RingBuf<MapData>,
    exporter: Option<Exporter>,
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
        let requests = Requests::open(&folders.socket())?;
        let is_first = programs::attached(&folders.pins).is_empty();
        let started = Daemon::begin(text, config, folders, requests);
        if started.is_err() && is_first {
            programs::remove(&folders.pins)?;
        }
        started
    }

    fn begin(text: &str, config: Config, folders: &Folders, requests: Requests) -> Result<Daemon> {
        let mut programs = Programs::load(&folders.pins, &folders.tables(), config.mode)?;
        let mut maps = Maps::open(&folders.tables())?;
        let written = maps.tables()?;
        let mut control = maps.control()?;
        control.netns = NetNs::current()?.inode()? as u32;
        (control.conn_tcp, control.conn_other) = config.connections;
        maps.set_control(&control)?;
        programs.attach_tracepoints()?;
        let mut watcher = LinkWatcher::open()?;
        let mut changes = Vec::new();
        watcher.resync(&mut changes)?;
        let mut daemon = Daemon {
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
            requests,
            ring: events(&folders.tables())?,
            exporter: None,
            ticked_at: Instant::now(),
            ageing: Ageing::new(Instant::now()),
        };
        daemon.follow(changes);
        daemon.sample()?;
        daemon.apply(true)?;
        daemon.keep(text)?;
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
            self.export()?;
            let now = Instant::now();
            if now.duration_since(self.ticked_at) >= Duration::from_secs(1) {
                self.ticked_at = now;
                // CPUs look into the forwarding database again, which keeps addresses that are in use.
                self.maps.next_epoch()?;
                self.lost_samples()?;
            }
            self.age(now)?;
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
            self.keep(text)
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

    /// Starts, changes or ends sampling as the configuration says.
    fn sample(&mut self) -> Result<()> {
        let Some(sflow) = &self.config.sflow else {
            self.exporter = None;
            return Ok(());
        };
        self.maps.set_gaps(gaps(sflow.rate))?;
        self.exporter = Some(Exporter::new(sflow, Instant::now()));
        Ok(())
    }

    /// Hands samples to the exporter.
    fn export(&mut self) -> Result<()> {
        let now = Instant::now();
        while let Some(item) = self.ring.next() {
            if let (Ok(bytes), Some(exporter)) =
                (<&[u8; 184]>::try_from(&*item), &mut self.exporter)
            {
                let event = Event::of_bytes(bytes);
                if event.kind == 1 {
                    exporter.sample(&event, now);
                }
            }
        }
        if let Some(exporter) = &mut self.exporter {
            exporter.turn(now);
        }
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

    fn serve(&mut self) {
        while let Some((request, client)) = self.requests.next() {
            let reply = match request {
                Request::Apply { text } => {
                    match config::check("new configuration", text.as_bytes()) {
                        Ok(config) => match self.reconfigure(&text, config) {
                            Ok(()) => Reply::done(),
                            Err(error) => Reply::failed(error.to_string()),
                        },
                        Err(findings) => Reply::failed(
                            findings
                                .iter()
                                .map(ToString::to_string)
                                .collect::<Vec<_>>()
                                .join("\n"),
                        ),
                    }
                }
            };
            client.answer(&reply);
        }
    }

    /// Samples that found the ring full, for the next datagrams.
    fn lost_samples(&mut self) -> Result<()> {
        if let Some(exporter) = &mut self.exporter {
            for (ifindex, port) in &self.written.ports {
                let lost = self.maps.counters(port.slot)?.events_lost;
                exporter.losses.insert(*ifindex, lost);
            }
        }
        Ok(())
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

/// The compiled ACLs in the maps.
struct Acls {
    /// Number and header by digest of name and rules.
    known: BTreeMap<u64, (u32, Acl)>,
    words: Regions,
    hits: Regions,
    numbers: u32,
}

impl Acls {
    fn of(maps: &Maps) -> Result<Acls> {
        let (numbers, words, hits) = maps.acl_sizes();
        let mut acls = Acls {
            known: BTreeMap::new(),
            words: Regions::new(words),
            hits: Regions::new(hits),
            numbers,
        };
        for number in 1..numbers {
            let acl = maps.acl(number)?;
            if acl.length > 0 {
                acls.words.mark(Space {
                    base: acl.base,
                    length: acl.length,
                });
                acls.hits.mark(Space {
                    base: acl.counters,
                    length: acl.rules,
                });
                acls.known.insert(acl.digest, (number, acl));
            }
        }
        Ok(acls)
    }

    /// Writes ACLs that are not there yet, beside those that are; returns the number of each.
    fn write(
        &mut self,
        wanted: &BTreeMap<String, Vec<Rule>>,
        maps: &mut Maps,
    ) -> Result<BTreeMap<String, u32>> {
        let mut numbers = BTreeMap::new();
        for (name, rules) in wanted {
            let digest = digest(name, rules);
            let number = match self.known.get(&digest) {
                Some((number, _)) => *number,
                None => self.write_one(name, rules, digest, maps)?,
            };
            numbers.insert(name.clone(), number);
        }
        Ok(numbers)
    }

    fn write_one(
        &mut self,
        name: &str,
        rules: &[Rule],
        digest: u64,
        maps: &mut Maps,
    ) -> Result<u32> {
        let full = |table| Error::Full {
            table,
            reason: format!("ACL {name} with {} rules does not fit", rules.len()),
        };
        let length = compile(rules, 0).words.len() as u32;
        let words = self.words.take(length).ok_or_else(|| full("acl_words"))?;
        let Some(hits) = self.hits.take(rules.len() as u32 + 1) else {
            self.words.free(words);
            return Err(full("acl_hits"));
        };
        let used: Vec<u32> = self.known.values().map(|known| known.0).collect();
        let number = (1..self.numbers)
            .find(|number| !used.contains(number))
            .ok_or_else(|| full("acls"))?;
        let compiled = compile(rules, words.base);
        let acl = Acl {
            side: compiled.sides,
            counters: hits.base,
            stateful: u32::from(compiled.stateful),
            base: words.base,
            length,
            rules: compiled.rules,
            pad: 0,
            digest,
        };
        maps.write_acl(number, &acl, &compiled.words)?;
        self.known.insert(digest, (number, acl));
        Ok(number)
    }

    /// Frees ACLs that no port refers to any more.
    fn free_unused(&mut self, used: &BTreeMap<String, u32>, maps: &mut Maps) -> Result<()> {
        let unused: Vec<u64> = self
            .known
            .iter()
            .filter(|(_, (number, _))| !used.values().any(|it| it == number))
            .map(|(digest, _)| *digest)
            .collect();
        for digest in unused {
            if let Some((number, acl)) = self.known.remove(&digest) {
                maps.write_acl(number, &Acl::of_bytes(&[0; 128]), &[])?;
                self.words.free(Space {
                    base: acl.base,
                    length: acl.length,
                });
                self.hits.free(Space {
                    base: acl.counters,
                    length: acl.rules,
                });
            }
        }
        Ok(())
    }
}

/// A hash of an ACL's name and rules (FNV-1a).
#[must_use]
pub fn digest(name: &str, rules: &[Rule]) -> u64 {
    bond_hash(&format!("{name}\0{rules:?}"))
}

/// Whether a daemon answers at the control socket of these folders.
#[must_use]
pub fn is_running(folders: &Folders) -> bool {
    std::os::unix::net::UnixStream::connect(folders.socket()).is_ok()
}

/// Sends a configuration to the daemon that runs with these folders.
///
/// # Errors
/// When there is none, or it refuses.
pub fn send(folders: &Folders, text: &str) -> Result<Reply> {
    crate::requests::send(
        Path::new(&folders.socket()),
        &Request::Apply {
            text: text.to_owned(),
        },
    )
}
