//! What the machine has, for holding a configuration against it: network devices with their queues
//! and the MTU they can do, places for sockets, cores, memory. Read anew each time, since devices come and go. What cannot
//! be read counts as sufficient, so that nothing is refused for it; opening the device
//! has the last word.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use weir_config::{
    Checked, Config, Device, DeviceKind, Diagnostic, Interface, Management, NamespaceObstacle,
    SocketObstacle, System, SystemDevice, check_system, namespaces_of,
};
use weir_netlink::netns::NetNs;
use weir_netlink::route::{Link, Route};

use crate::management;
use crate::memory::Memory;

/// The MTU whose frames fit one buffer, with an Ethernet header and one VLAN tag.
const ONE_BUFFER: u32 = weir_buf::DATA_ROOM as u32 - 18;
// The check knows it without the buffers.
const _: () = assert!(weir_config::GENERATOR_MTU as u32 == ONE_BUFFER);

/// What the machine says about a good file, for a router that runs `running` and has `memory` already.
pub(crate) fn remarks(checked: &Checked, running: &Config, memory: &Memory) -> Vec<Diagnostic> {
    let mut system = system(&checked.config, memory);
    let runs = |(name, interface): &(&String, &Interface)| {
        let same = |it: &&Interface| it.device == interface.device && it.mtu == interface.mtu;
        running.interfaces.get(*name).filter(same).is_some()
    };
    let unchanged = checked.config.interfaces.iter().filter(runs);
    system.unchanged = unchanged.map(|(name, _)| name.clone()).collect();
    let mut remarks = check_system(checked, &system);
    if system.devices.is_empty() {
        // Not even `lo`: the kernel did not tell.
        remarks.retain(|remark| !remark.path.ends_with(".device.name"));
    }
    remarks
}

fn system(config: &Config, memory: &Memory) -> System {
    let (own_bytes, own_huge) = memory.pools().fold((0, 0), |(all, huge), (_, pool)| {
        let bytes = pool.mapped_bytes() as u64;
        if pool.on_hugepages() {
            (all, huge + bytes)
        } else {
            (all + bytes, huge)
        }
    });
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let facts = facts_of_memory(&text);
    let kib = |name: &str| facts.get(name).copied();
    let huge = kib("HugePages_Free").unwrap_or(0) * kib("Hugepagesize").unwrap_or(0) * 1024;
    System {
        devices: devices(),
        unchanged: Default::default(),
        driver_mtu: driver_mtu(),
        socket_obstacles: obstacles(config),
        namespace_obstacles: namespace_obstacles(config),
        cores: crate::cores::allowed()
            .iter()
            .filter_map(|&core| u16::try_from(core).ok())
            .collect(),
        memory_available_bytes: kib("MemAvailable")
            .map_or(u64::MAX, |kib| (kib * 1024).saturating_add(own_bytes)),
        hugepages_free_bytes: huge.saturating_add(own_huge),
        bytes_per_buffer: weir_buf::STRIDE as u64,
        pools: u16::try_from(Memory::nodes(config).len().max(1)).unwrap_or(u16::MAX),
    }
}

/// Drivers that carry less than an interface may be asked for.
fn driver_mtu() -> BTreeMap<String, u32> {
    let old_kernel = (!weir_afxdp::knows_pieces()).then(|| ("af-xdp".to_owned(), ONE_BUFFER));
    old_kernel.into_iter().collect()
}

/// `/proc/meminfo` by name; sizes in KiB, counts as they are.
fn facts_of_memory(text: &str) -> BTreeMap<&str, u64> {
    text.lines().filter_map(fact).collect()
}

fn fact(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    Some((name, rest.split_whitespace().next()?.parse().ok()?))
}

/// What is in the way of the sockets that masters want.
fn obstacles(config: &Config) -> BTreeMap<PathBuf, SocketObstacle> {
    let memif = |interface: &Interface| match &interface.device {
        Some(Device::Memif(memif)) if memif.abstract_name().is_none() => Some(memif.socket.clone()),
        _ => None,
    };
    let sockets = config.interfaces.values().filter_map(memif);
    sockets
        .filter_map(|socket| obstacle(&socket).map(|obstacle| (socket, obstacle)))
        .collect()
}

/// Namespaces that cannot be entered from here, found out by trying.
fn namespace_obstacles(config: &Config) -> BTreeMap<String, NamespaceObstacle> {
    let obstacle = |name: &str| match NetNs::open_named(name) {
        Err(error) if error.is_not_found() => Some(NamespaceObstacle::Missing),
        Err(_) => Some(NamespaceObstacle::Forbidden),
        Ok(namespace) => {
            let entered = namespace.run(|| ());
            entered.is_err().then_some(NamespaceObstacle::Forbidden)
        }
    };
    let names = namespaces_of(config).into_iter();
    names
        .filter_map(|name| Some((name.to_owned(), obstacle(name)?)))
        .collect()
}

fn obstacle(socket: &Path) -> Option<SocketObstacle> {
    if socket.parent().is_some_and(|folder| !folder.is_dir()) {
        return Some(SocketObstacle::NoFolder);
    }
    let there = std::fs::symlink_metadata(socket).ok()?;
    (!there.file_type().is_socket()).then_some(SocketObstacle::NotASocket)
}

fn devices() -> BTreeMap<String, SystemDevice> {
    let mut route = Route::open().ok();
    let links = route
        .as_mut()
        .and_then(|route| route.links().ok())
        .unwrap_or_default();
    let mut uses = route
        .as_mut()
        .map(|route| management::uses(route, &links))
        .unwrap_or_default();
    links
        .into_iter()
        .map(|link| {
            let used = uses.remove(&link.index).unwrap_or_default();
            (link.name.clone(), device(&link, used))
        })
        .collect()
}

/// A device takes frames of the MTU that it is set to: the router does not change it.
fn device(link: &Link, management: Management) -> SystemDevice {
    let kind = match link.kind.as_deref() {
        _ if link.loopback => DeviceKind::Loopback,
        Some("tun") => DeviceKind::Tap,
        _ if link.mac.is_some() => DeviceKind::Ethernet,
        _ => DeviceKind::Other,
    };
    SystemDevice {
        kind,
        max_queues: u16::try_from(link.rx_queues.max(1)).unwrap_or(u16::MAX),
        max_mtu: link.mtu,
        management,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        let facts = facts_of_memory(
            "MemAvailable:   2048 kB\nHugePages_Free:      3\nHugepagesize:       2048 kB\nodd line\nx: y\n",
        );
        assert_eq!(
            (
                facts.get("MemAvailable"),
                facts.get("HugePages_Free"),
                facts.len()
            ),
            (Some(&2048), Some(&3), 3)
        );
    }

    #[test]
    fn sockets_have_a_folder_and_nothing_else_in_their_place() {
        let here = std::env::current_exe().unwrap();
        assert_eq!(obstacle(&here), Some(SocketObstacle::NotASocket));
        assert_eq!(obstacle(&here.with_file_name("nothing-is-called-so")), None);
        assert_eq!(
            obstacle(&here.join("x.sock")),
            Some(SocketObstacle::NoFolder)
        );
    }

    #[test]
    fn this_machine_has_a_loopback() {
        assert_eq!(
            devices().get("lo").map(|device| device.kind),
            Some(DeviceKind::Loopback)
        );
    }
}
