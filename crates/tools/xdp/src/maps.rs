//! The pinned maps, opened by their files: the daemon, and every command that shows something, use them alike.
//!
//! Nothing here runs with the packets. A map that was pinned by another version with other entries is refused
//! when it is opened.

use std::collections::BTreeMap;
use std::path::Path;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::xdp::DevMapHash;
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::ProgramFd;

use crate::abi::{
    Acl, Bytes, Control, Counters, FdbEntry, FdbKey, Logical, NEAR_PORTS, Policer, Port, REASONS,
    RuleHits,
};
use crate::error::{Error, Result, chain};
use crate::state::Tables;

/// The maps.
pub struct Maps {
    ports: Array<MapData, [u8; 600]>,
    near_ports: Array<MapData, u32>,
    far_ports: HashMap<MapData, u32, u32>,
    epoch: Array<MapData, u64>,
    vlan_devices: HashMap<MapData, [u8; 8], u32>,
    vlan_parents: HashMap<MapData, u32, [u8; 8]>,
    logicals: Array<MapData, [u8; 40]>,
    fdb: HashMap<MapData, [u8; 8], [u8; 24]>,
    counters: PerCpuArray<MapData, [u8; 504]>,
    control: Array<MapData, [u8; 40]>,
    policers: Array<MapData, [u8; 64]>,
    guard_mac: HashMap<MapData, [u8; 8], u32>,
    guard_ip: LpmTrie<MapData, [u8; 20], u32>,
    neighbors: HashMap<MapData, [u8; 20], [u8; 12]>,
    acls: Array<MapData, [u8; 128]>,
    acl_words: Array<MapData, u64>,
    acl_hits: PerCpuArray<MapData, [u8; 16]>,
    gaps: Array<MapData, u32>,
    transmit: DevMapHash<MapData>,
    flood: DevMapHash<MapData>,
}

/// Opens one map and checks the sizes of its entries.
fn open<M>(folder: &Path, name: &'static str) -> Result<M>
where
    M: TryFrom<Map, Error = MapError>,
{
    let failed = |error: &dyn std::error::Error| Error::Map {
        name,
        folder: folder.to_owned(),
        reason: chain(error),
    };
    let data = MapData::from_pin(folder.join(name)).map_err(|error| failed(&error))?;
    let map = Map::from_map_data(data).map_err(|error| failed(&error))?;
    M::try_from(map).map_err(|error| failed(&error))
}

fn entry(action: &'static str, name: &'static str) -> impl Fn(MapError) -> Error {
    move |error| Error::Entry {
        action,
        name,
        reason: chain(&error),
    }
}

/// A missing entry is no error.
fn removed(name: &'static str, result: std::result::Result<(), MapError>) -> Result<()> {
    match result {
        Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(2) => Ok(()),
        other => other.map_err(entry("delete", name)),
    }
}

/// Opens the ring of samples. A ring has one reader at a time: this one is the daemon's.
///
/// # Errors
/// When it is not there.
pub fn events(folder: &Path) -> Result<RingBuf<MapData>> {
    open(folder, "events")
}

/// Opens the ring of traced packets.
///
/// # Errors
/// When it is not there.
pub fn traces(folder: &Path) -> Result<RingBuf<MapData>> {
    open(folder, "traces")
}

impl Maps {
    /// Opens the maps in a folder.
    ///
    /// # Errors
    /// When one is missing or has other entries.
    pub fn open(folder: &Path) -> Result<Maps> {
        Ok(Maps {
            ports: open(folder, "ports")?,
            near_ports: open(folder, "near_ports")?,
            far_ports: open(folder, "far_ports")?,
            epoch: open(folder, "epoch")?,
            vlan_devices: open(folder, "vlan_devices")?,
            vlan_parents: open(folder, "vlan_parents")?,
            logicals: open(folder, "logicals")?,
            fdb: open(folder, "fdb")?,
            counters: open(folder, "counters")?,
            control: open(folder, "control")?,
            policers: open(folder, "policers")?,
            guard_mac: open(folder, "guard_mac")?,
            guard_ip: open(folder, "guard_ip")?,
            neighbors: open(folder, "neighbors")?,
            acls: open(folder, "acls")?,
            acl_words: open(folder, "acl_words")?,
            acl_hits: open(folder, "acl_hits")?,
            gaps: open(folder, "gaps")?,
            transmit: open(folder, "transmit")?,
            flood: open(folder, "flood")?,
        })
    }

    /// The ports by ifindex.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn ports(&self) -> Result<BTreeMap<u32, Port>> {
        let mut ports = BTreeMap::new();
        for entry in 2..self.ports.len() {
            let port = self.port(entry)?;
            if port.ifindex != 0 && self.entry_of(port.ifindex)? == entry {
                ports.insert(port.ifindex, port);
            }
        }
        Ok(ports)
    }

    fn port(&self, number: u32) -> Result<Port> {
        let bytes = self.ports.get(&number, 0).map_err(entry("read", "ports"))?;
        Ok(Port::of_bytes(&bytes))
    }

    /// The entry of an interface; 0 = none.
    fn entry_of(&self, ifindex: u32) -> Result<u32> {
        if ifindex < NEAR_PORTS {
            return self
                .near_ports
                .get(&ifindex, 0)
                .map_err(entry("read", "near_ports"));
        }
        match self.far_ports.get(&ifindex, 0) {
            Err(MapError::KeyNotFound) => Ok(0),
            other => other.map_err(entry("read", "far_ports")),
        }
    }

    fn set_entry(&mut self, ifindex: u32, number: u32) -> Result<()> {
        if ifindex < NEAR_PORTS {
            return self
                .near_ports
                .set(ifindex, number, 0)
                .map_err(entry("write", "near_ports"));
        }
        if number == 0 {
            return removed("far_ports", self.far_ports.remove(&ifindex));
        }
        self.far_ports
            .insert(ifindex, number, 0)
            .map_err(entry("write", "far_ports"))
    }

    /// Writes a port to the entry of its slot that no packet reads, and then makes that its entry.
    fn set_port(&mut self, ifindex: u32, port: &Port) -> Result<()> {
        for number in [port.slot * 2, port.slot * 2 + 1] {
            let there = self.port(number)?;
            if there.ifindex != 0 && self.entry_of(there.ifindex)? == number {
                continue;
            }
            self.ports
                .set(number, port.to_bytes(), 0)
                .map_err(entry("write", "ports"))?;
            return self.set_entry(ifindex, number);
        }
        Err(Error::Full {
            table: "ports",
            reason: format!("port number {} has two interfaces", port.slot),
        })
    }

    fn remove_port(&mut self, ifindex: u32) -> Result<()> {
        // The entry itself stays as it is: a packet may be reading it.
        self.set_entry(ifindex, 0)
    }

    /// Makes void what CPUs remember of the forwarding database. Programs count in the lower half.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn next_epoch(&mut self) -> Result<()> {
        let now = self.epoch.get(&0, 0).map_err(entry("read", "epoch"))?;
        self.epoch
            .set(0, now.wrapping_add(1 << 32), 0)
            .map_err(entry("write", "epoch"))
    }

    /// The addresses in the forwarding database.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn fdb(&self) -> Result<Vec<(FdbKey, FdbEntry)>> {
        let decode = |item: std::result::Result<([u8; 8], [u8; 24]), MapError>| {
            item.map(|(key, value)| (FdbKey::of_bytes(&key), FdbEntry::of_bytes(&value)))
                .map_err(entry("read", "fdb"))
        };
        self.fdb.iter().map(decode).collect()
    }

    /// The addresses in the forwarding database, without what is known of them.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn fdb_keys(&self) -> Result<Vec<FdbKey>> {
        self.fdb
            .keys()
            .map(|key| {
                key.map(|key| FdbKey::of_bytes(&key))
                    .map_err(entry("read", "fdb"))
            })
            .collect()
    }

    /// What is known of an address.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn fdb_entry(&self, key: &FdbKey) -> Result<Option<FdbEntry>> {
        match self.fdb.get(&key.to_bytes(), 0) {
            Ok(value) => Ok(Some(FdbEntry::of_bytes(&value))),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(entry("read", "fdb")(error)),
        }
    }

    /// Removes a learned address.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn forget(&mut self, key: &FdbKey) -> Result<()> {
        removed("fdb", self.fdb.remove(&key.to_bytes()))
    }

    /// A port's counters, all CPUs together.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn counters(&self, slot: u32) -> Result<Counters> {
        let values = self
            .counters
            .get(&slot, 0)
            .map_err(entry("read", "counters"))?;
        let mut sum = Counters::default();
        for value in values.iter().map(Counters::of_bytes) {
            add(&mut sum, &value);
        }
        Ok(sum)
    }

    /// Sets a port's counters to 0.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn clear_counters(&mut self, slot: u32) -> Result<()> {
        let cpus = self
            .counters
            .get(&slot, 0)
            .map_err(entry("read", "counters"))?
            .len();
        let zero = vec![[0u8; 504]; cpus];
        let values = aya::maps::PerCpuValues::try_from(zero).map_err(|error| Error::Entry {
            action: "write",
            name: "counters",
            reason: error.to_string(),
        })?;
        self.counters
            .set(slot, values, 0)
            .map_err(entry("write", "counters"))
    }

    /// A policer.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn policer(&self, index: u32) -> Result<Policer> {
        let bytes = self
            .policers
            .get(&index, 0)
            .map_err(entry("read", "policers"))?;
        Ok(Policer::of_bytes(&bytes))
    }

    /// Settings for all ports.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn control(&self) -> Result<Control> {
        let bytes = self.control.get(&0, 0).map_err(entry("read", "control"))?;
        Ok(Control::of_bytes(&bytes))
    }

    /// Changes settings for all ports.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn set_control(&mut self, control: &Control) -> Result<()> {
        self.control
            .set(0, control.to_bytes(), 0)
            .map_err(entry("write", "control"))
    }

    /// The header of an ACL.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn acl(&self, number: u32) -> Result<Acl> {
        let bytes = self.acls.get(&number, 0).map_err(entry("read", "acls"))?;
        Ok(Acl::of_bytes(&bytes))
    }

    /// Entries of `acls`, `acl_words` and `acl_hits`.
    #[must_use]
    pub fn acl_sizes(&self) -> (u32, u32, u32) {
        (self.acls.len(), self.acl_words.len(), self.acl_hits.len())
    }

    /// Writes an ACL: its words, counters at 0, then its header.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub fn write_acl(&mut self, number: u32, acl: &Acl, words: &[u64]) -> Result<()> {
        for (index, word) in (acl.base..).zip(words) {
            self.acl_words
                .set(index, *word, 0)
                .map_err(entry("write", "acl_words"))?;
        }
        for index in acl.counters..acl.counters.saturating_add(acl.rules) {
            let cpus = self
                .acl_hits
                .get(&index, 0)
                .map_err(entry("read", "acl_hits"))?
                .len();
            if let Ok(zero) = aya::maps::PerCpuValues::try_from(vec![[0u8; 16]; cpus]) {
                self.acl_hits
                    .set(index, zero, 0)
                    .map_err(entry("write", "acl_hits"))?;
            }
        }
        self.acls
            .set(number, acl.to_bytes(), 0)
            .map_err(entry("write", "acls"))
    }

    /// Packets and bytes that a rule decided.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn rule_hits(&self, index: u32) -> Result<RuleHits> {
        let values = self
            .acl_hits
            .get(&index, 0)
            .map_err(entry("read", "acl_hits"))?;
        let mut sum = RuleHits::default();
        for value in values.iter().map(RuleHits::of_bytes) {
            sum.packets = sum.packets.wrapping_add(value.packets);
            sum.bytes = sum.bytes.wrapping_add(value.bytes);
        }
        Ok(sum)
    }

    /// Writes the gaps between samples.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn set_gaps(&mut self, gaps: impl Iterator<Item = u32>) -> Result<()> {
        for (index, gap) in (0..self.gaps.len()).zip(gaps) {
            self.gaps
                .set(index, gap, 0)
                .map_err(entry("write", "gaps"))?;
        }
        Ok(())
    }

    /// What the maps hold of the tables. Used once, by a daemon that starts.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn tables(&self) -> Result<Tables> {
        let mut tables = Tables {
            ports: self.ports()?,
            ..Tables::default()
        };
        for (key, value) in self.fdb()? {
            if value.flags & crate::abi::fdb_flags::STATIC != 0 {
                tables.statics.insert(
                    key.to_bytes(),
                    FdbEntry {
                        seen: 0,
                        moves: 0,
                        ..value
                    },
                );
            }
        }
        for item in self.guard_mac.iter() {
            let (key, value) = item.map_err(entry("read", "guard_mac"))?;
            tables.guard_mac.insert(key, value);
        }
        for item in self.guard_ip.iter() {
            let (key, value) = item.map_err(entry("read", "guard_ip"))?;
            tables
                .guard_ip
                .insert((key.prefix_len(), key.data()), value);
        }
        for item in self.neighbors.iter() {
            let (key, value) = item.map_err(entry("read", "neighbors"))?;
            tables.neighbors.insert(key, Bytes::of_bytes(&value));
        }
        for item in self.vlan_devices.iter() {
            let (key, value) = item.map_err(entry("read", "vlan_devices"))?;
            tables.vlan_devices.insert(key, value);
        }
        for item in self.vlan_parents.iter() {
            let (key, value) = item.map_err(entry("read", "vlan_parents"))?;
            tables.vlan_parents.insert(key, value);
        }
        for (map, name, list) in [
            (&self.transmit, "transmit", &mut tables.transmit),
            (&self.flood, "flood", &mut tables.flood),
        ] {
            for item in map.keys() {
                let key = item.map_err(entry("read", name))?;
                list.insert(key, key);
            }
        }
        // Arrays are always written: an entry for a number that is not in use does no harm.
        Ok(tables)
    }

    /// Makes the maps hold `new` where they hold `old`. What ports refer to is written before them and removed
    /// after them, so that no packet sees half of a change of one port.
    ///
    /// # Errors
    /// When a map cannot be written: full, or another version's.
    pub fn write(
        &mut self,
        old: &Tables,
        new: &Tables,
        egress: &ProgramFd,
        rewrite_devmaps: bool,
    ) -> Result<()> {
        for (key, value) in changed(&old.logicals, &new.logicals) {
            self.logicals
                .set(*key, Logical::to_bytes(value), 0)
                .map_err(entry("write", "logicals"))?;
        }
        for (key, value) in changed(&old.policers, &new.policers) {
            self.policers
                .set(*key, value.to_bytes(), 0)
                .map_err(entry("write", "policers"))?;
        }
        for (key, value) in changed(&old.guard_mac, &new.guard_mac) {
            self.guard_mac
                .insert(key, value, 0)
                .map_err(entry("write", "guard_mac"))?;
        }
        for ((length, data), value) in changed(&old.guard_ip, &new.guard_ip) {
            self.guard_ip
                .insert(&Key::new(*length, *data), value, 0)
                .map_err(entry("write", "guard_ip"))?;
        }
        for (key, value) in changed(&old.neighbors, &new.neighbors) {
            self.neighbors
                .insert(key, value.to_bytes(), 0)
                .map_err(entry("write", "neighbors"))?;
        }
        for (key, value) in changed(&old.vlan_devices, &new.vlan_devices) {
            self.vlan_devices
                .insert(key, value, 0)
                .map_err(entry("write", "vlan_devices"))?;
        }
        for (key, value) in changed(&old.vlan_parents, &new.vlan_parents) {
            self.vlan_parents
                .insert(key, value, 0)
                .map_err(entry("write", "vlan_parents"))?;
        }
        for (key, value) in changed(&old.statics, &new.statics) {
            self.fdb
                .insert(key, value.to_bytes(), 0)
                .map_err(entry("write", "fdb"))?;
        }
        for (key, value) in changed(&old.ports, &new.ports) {
            self.set_port(*key, value)?;
        }
        self.devmaps(old, new, egress, rewrite_devmaps)?;
        for key in missing(&old.ports, &new.ports) {
            self.remove_port(*key)?;
        }
        for key in missing(&old.statics, &new.statics) {
            removed("fdb", self.fdb.remove(key))?;
        }
        for key in missing(&old.vlan_devices, &new.vlan_devices) {
            removed("vlan_devices", self.vlan_devices.remove(key))?;
        }
        for key in missing(&old.vlan_parents, &new.vlan_parents) {
            removed("vlan_parents", self.vlan_parents.remove(key))?;
        }
        for key in missing(&old.neighbors, &new.neighbors) {
            removed("neighbors", self.neighbors.remove(key))?;
        }
        for (length, data) in missing(&old.guard_ip, &new.guard_ip) {
            removed("guard_ip", self.guard_ip.remove(&Key::new(*length, *data)))?;
        }
        for key in missing(&old.guard_mac, &new.guard_mac) {
            removed("guard_mac", self.guard_mac.remove(key))?;
        }
        for key in missing(&old.logicals, &new.logicals) {
            self.logicals
                .set(*key, [0; 40], 0)
                .map_err(entry("write", "logicals"))?;
        }
        self.next_epoch()
    }

    /// Writes where frames for ports and bonds go; used when a link changes, before anything else is computed.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn set_logical(&mut self, number: u32, logical: &Logical) -> Result<()> {
        self.logicals
            .set(number, Logical::to_bytes(logical), 0)
            .map_err(entry("write", "logicals"))
    }

    fn devmaps(
        &mut self,
        old: &Tables,
        new: &Tables,
        egress: &ProgramFd,
        rewrite: bool,
    ) -> Result<()> {
        let none = BTreeMap::new();
        for (map, name, old, new) in [
            (&mut self.transmit, "transmit", &old.transmit, &new.transmit),
            (&mut self.flood, "flood", &old.flood, &new.flood),
        ] {
            for (key, ifindex) in changed(if rewrite { &none } else { old }, new) {
                map.insert(*key, *ifindex, Some(egress), 0)
                    .map_err(|error| Error::Entry {
                        action: "write",
                        name,
                        reason: chain(&error),
                    })?;
            }
            for key in missing(old, new) {
                removed(name, map.remove(*key))?;
            }
        }
        let mut control = self.control()?;
        control.flood_ports = new.flood.len() as u32;
        control.flood_bytes = new.flood_bytes;
        self.set_control(&control)
    }
}

fn changed<'t, K: Ord, V: PartialEq>(
    old: &BTreeMap<K, V>,
    new: &'t BTreeMap<K, V>,
) -> Vec<(&'t K, &'t V)> {
    new.iter()
        .filter(|(key, value)| old.get(key) != Some(value))
        .collect()
}

fn missing<'t, K: Ord, V>(old: &'t BTreeMap<K, V>, new: &BTreeMap<K, V>) -> Vec<&'t K> {
    old.keys().filter(|key| !new.contains_key(key)).collect()
}

fn add(sum: &mut Counters, more: &Counters) {
    macro_rules! fields {
        ($($field:ident)*) => { $(sum.$field = sum.$field.wrapping_add(more.$field);)* };
    }
    fields! {
        in_packets in_bytes out_packets out_bytes in_multicast in_broadcast out_multicast out_broadcast kernel flooded replicated filtered answered learned moved
        learn_full drops_unreported sample_pool sampled events_lost transmit_lost redirect_lost egress_drops
    }
    for reason in 0..REASONS {
        sum.drops[reason] = sum.drops[reason].wrapping_add(more.drops[reason]);
    }
}
