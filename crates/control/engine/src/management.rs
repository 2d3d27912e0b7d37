//! Which network devices this machine uses for itself.
//!
//! Linux receives nothing from a device that the router has taken, so taking the device with the
//! machine's address or its default route, or the one that an SSH session comes over, may cut off
//! the operator. Read from the kernel each time: a few netlink requests and `/proc/net/tcp`. What
//! cannot be read counts as not used. Runs on API threads and at the start; opens nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_config::Management;
use weir_netlink::route::{Link, Route};

/// Addresses that only a default route leads to (RFC 5737, RFC 3849); of IPv4 two, since a lab may
/// have one of these networks.
const ELSEWHERE: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 254)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 254)),
];
/// SSH clients whose routes are looked up at most.
const CLIENTS: usize = 64;
/// The port of SSH servers.
const SSH: u16 = 22;

/// What each of `links` is used for; those that are not used are not in the map.
pub(crate) fn uses(route: &mut Route, links: &[Link]) -> BTreeMap<u32, Management> {
    let mut uses: BTreeMap<u32, Management> = BTreeMap::new();
    for address in route.addresses().unwrap_or_default() {
        if !is_link_local(address.address) && !address.address.is_loopback() {
            let used = uses.entry(address.index).or_default();
            used.addresses.push(address.address);
        }
    }
    for elsewhere in ELSEWHERE {
        let found = route.route_to(elsewhere).ok().flatten();
        for link in found
            .filter(|found| found.prefix_length == 0)
            .map(|found| found.links)
            .unwrap_or_default()
        {
            uses.entry(link).or_default().default_route = true;
        }
    }
    for client in ssh_clients().into_iter().take(CLIENTS) {
        let found = route.route_to(client).ok().flatten();
        for link in found.map(|found| found.links).unwrap_or_default() {
            uses.entry(link).or_default().ssh_clients.push(client);
        }
    }
    let mut with_those_above = BTreeMap::new();
    for link in links {
        let mut all = Management::default();
        for index in above(link.index, links) {
            if let Some(used) = uses.get(&index) {
                all.addresses.extend(&used.addresses);
                all.default_route |= used.default_route;
                all.ssh_clients.extend(&used.ssh_clients);
            }
        }
        if all.is_used() {
            with_those_above.insert(link.index, all);
        }
    }
    with_those_above
}

/// What this machine uses the device of this name for, in the network namespace of the calling thread.
#[must_use]
pub fn use_of(device: &str) -> Option<Management> {
    let mut route = Route::open().ok()?;
    let links = route.links().ok()?;
    let index = links.iter().find(|link| link.name == device)?.index;
    uses(&mut route, &links).remove(&index)
}

/// A link and those whose frames pass through it: VLANs of it, the bridge or bond that it belongs to.
fn above(index: u32, links: &[Link]) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([index]);
    let mut waiting = vec![index];
    while let Some(below) = waiting.pop() {
        let on_it = links.iter().filter(|link| {
            // The peer of a veth is at its other end, not above it.
            let stacked = link.peer_index == Some(below)
                && link.link_netnsid.is_none()
                && link.kind.as_deref() != Some("veth");
            stacked && link.index != below
        });
        let controller = links
            .iter()
            .find(|link| link.index == below)
            .and_then(|link| link.controller);
        for next in on_it.map(|link| link.index).chain(controller) {
            if found.insert(next) {
                waiting.push(next);
            }
        }
    }
    found
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The far ends of connections to this machine's SSH server.
fn ssh_clients() -> BTreeSet<IpAddr> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|text| clients_in(&text))
        .collect()
}

/// Far ends of the established connections to port 22 in a table as `/proc/net/tcp` has it.
fn clients_in(table: &str) -> Vec<IpAddr> {
    let client = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, remote, state) = (columns.next()?, columns.next()?, columns.next()?);
        let (_, port) = local.split_once(':')?;
        let to_ssh = u16::from_str_radix(port, 16).ok()? == SSH;
        let (address, _) = remote.split_once(':')?;
        (to_ssh && state == "01").then(|| address_in(address))?
    };
    table
        .lines()
        .filter_map(client)
        .filter(|address| !address.is_loopback())
        .collect()
}

/// An address in words of 32 bits, each in the byte order of the machine.
fn address_in(text: &str) -> Option<IpAddr> {
    let word = |start: usize| {
        let word = u32::from_str_radix(text.get(start..start + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    if text.len() == 8 {
        return word(0).map(IpAddr::from);
    }
    let mut bytes = [0; 16];
    for (part, start) in bytes.chunks_exact_mut(4).zip((0..32).step_by(8)) {
        part.copy_from_slice(&word(start)?);
    }
    Some(Ipv6Addr::from(bytes).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_clients_are_read_from_the_kernels_tables() {
        let four = "  sl  local_address rem_address   st\n\
            0: 0100007F:0016 0900A8C0:D431 01 00000000:00000000\n\
            1: 0500A8C0:0016 0900A8C0:D431 01 00000000:00000000\n\
            2: 0500A8C0:0016 0700A8C0:D431 06 00000000:00000000\n\
            3: 0500A8C0:0050 0800A8C0:D431 01 00000000:00000000\n\
            broken\n";
        let expected: Vec<IpAddr> = ["192.168.0.9", "192.168.0.9"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        if cfg!(target_endian = "little") {
            assert_eq!(clients_in(four), expected);
            assert_eq!(
                address_in("B80D01200000000000000000010000AA"),
                Some("2001:db8::aa00:1".parse().unwrap())
            );
            assert_eq!(
                address_in("0000000000000000FFFF00000900A8C0"),
                Some("192.168.0.9".parse().unwrap())
            );
        }
        assert_eq!(address_in("12345"), None);
        assert_eq!(address_in("é1234567"), None);
    }

    #[test]
    fn what_is_stacked_on_a_link_belongs_to_it() {
        let link = |index, peer_index, controller, kind: Option<&str>| Link {
            index,
            peer_index,
            controller,
            kind: kind.map(str::to_owned),
            ..Link::default()
        };
        let links = [
            link(2, None, Some(5), None),
            link(3, Some(2), None, Some("vlan")),
            link(4, Some(2), None, Some("veth")),
            link(5, None, None, Some("bridge")),
            link(6, Some(5), None, Some("vlan")),
        ];
        assert_eq!(above(2, &links), [2, 3, 5, 6].into());
        assert_eq!(above(4, &links), [4].into());
        assert_eq!(above(9, &links), [9].into());
    }
}
