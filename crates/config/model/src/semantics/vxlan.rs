//! Rules about VXLAN tunnels: their ends, their segments, and what they have under `interfaces`.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::Rules;
use crate::findings::at;
use crate::keys::Names;
use crate::tree::Node;
use crate::vxlan::{Vxlan, is_end};

impl Rules<'_, '_> {
    pub(super) fn vxlan_tunnels(&mut self) {
        let (root, none): (&Node<'_>, &[_]) = (self.root, &[]);
        let tunnels = root.value("vxlan_tunnels").map_or(none, Node::entries);
        let own: HashSet<IpAddr> = self
            .candidate
            .config
            .interfaces
            .values()
            .flat_map(|it| &it.addresses)
            .map(|net| net.addr())
            .collect();
        let routed: HashSet<IpAddr> = self
            .candidate
            .config
            .interfaces
            .values()
            .filter(|it| it.vrf.is_none())
            .flat_map(|it| &it.addresses)
            .map(|net| net.addr())
            .collect();
        let mut first_of: HashMap<Vxlan, &str> = HashMap::new();
        for entry in tunnels {
            let name = entry.key.as_ref();
            if crate::value::name(Names::VXLAN_TUNNELS, name).is_err() {
                continue;
            }
            let Some(tunnel) = self
                .candidate
                .config
                .interfaces
                .get(name)
                .and_then(|it| it.as_vxlan().copied())
            else {
                continue;
            };
            if let Some(first) = first_of.insert(tunnel, name) {
                let help = format!(
                    "`{first}` has them already; give each tunnel between two routers its own `vni`"
                );
                self.error(
                    at!["vxlan_tunnels", name, "vni"],
                    "two tunnels have the same ends and segment".into(),
                    "the second one",
                    help,
                );
            }
            self.vxlan_ends(name, &tunnel, &own, &routed);
        }
        let named: HashSet<&str> = tunnels.iter().map(|entry| entry.key.as_ref()).collect();
        for entry in root.value("interfaces").map_or(none, Node::entries) {
            if named.contains(entry.key.as_ref()) {
                self.vxlan_interface(&entry.key, &entry.value);
            } else {
                self.vxlan_exists(&entry.key, &entry.value);
            }
        }
    }

    fn vxlan_ends(
        &mut self,
        name: &str,
        tunnel: &Vxlan,
        own: &HashSet<IpAddr>,
        routed: &HashSet<IpAddr>,
    ) {
        let (local, remote) = (
            at!["vxlan_tunnels", name, "local"],
            at!["vxlan_tunnels", name, "remote"],
        );
        let mut odd = false;
        for (at, end) in [(local, tunnel.local), (remote, tunnel.remote)] {
            if !is_end(end) {
                odd = true;
                let help = "name an address that packets can be routed to: no group's, no link-local one, not this host";
                self.error(
                    at,
                    format!("`{end}` cannot be the end of a tunnel"),
                    "",
                    help.into(),
                );
            }
        }
        if odd {
            return;
        }
        if tunnel.local.is_ipv4() != tunnel.remote.is_ipv4() {
            let message = format!(
                "the ends of `{name}` are of two IP versions: {} and {}",
                tunnel.local, tunnel.remote
            );
            self.error(
                remote,
                message,
                "",
                "give both ends IPv4 addresses, or IPv6 ones".into(),
            );
        } else if tunnel.local == tunnel.remote || own.contains(&tunnel.remote) {
            let message = format!(
                "the far end of `{name}` is this router: {} is its own address",
                tunnel.remote
            );
            self.error(
                remote,
                message,
                "",
                "name the address of the other router".into(),
            );
        } else if !routed.contains(&tunnel.local) {
            let message = format!(
                "`{}` is no own address of the default table, so nothing comes in by `{name}`",
                tunnel.local
            );
            let help = format!(
                "give it to an interface without `vrf`, for example `loopbacks: {{loop0: {{addresses: [{}]}}}}`",
                host(tunnel.local)
            );
            self.warning(local, message, "", help);
        }
    }

    /// What a tunnel has under `interfaces`.
    fn vxlan_interface(&mut self, name: &str, interface: &Node<'_>) {
        let odd = [
            (
                "device",
                "is a VXLAN tunnel and has a device",
                "remove the device, or the tunnel",
            ),
            (
                "rx-queue-workers",
                "is a VXLAN tunnel, which has no queues of its own",
                "place those of the ports that its packets come in by",
            ),
        ];
        for (key, what, help) in odd {
            if interface.value(key).is_some() {
                self.error(
                    at!["interfaces", name, key],
                    format!("`{name}` {what}"),
                    "",
                    help.into(),
                );
            }
        }
        if self
            .candidate
            .config
            .interfaces
            .get(name)
            .is_some_and(|it| it.sflow)
        {
            let message = format!(
                "`{name}` is a VXLAN tunnel; packets are sampled where they come in, at ports"
            );
            self.error(
                at!["interfaces", name, "sflow"],
                message,
                "",
                "set `sflow` on the ports".into(),
            );
        }
    }

    /// vppcfg gives the names `vxlan_tunnelN` to tunnels alone.
    fn vxlan_exists(&mut self, name: &str, interface: &Node<'_>) {
        let is_tunnel = Names::VXLAN_TUNNELS.numbers(name).is_some();
        if is_tunnel
            && interface.value("device").is_none()
            && !self.findings.is_broken(at!["vxlan_tunnels"])
        {
            let message = format!("there is no VXLAN tunnel `{name}`");
            let help = format!(
                "add `{name}: {{local: …, remote: …, vni: …}}` under `vxlan_tunnels`, or give the interface a `device`"
            );
            self.error(
                at!["interfaces", name],
                message,
                "not under `vxlan_tunnels`",
                help,
            );
        }
    }
}

/// An address as a subnet of its own.
fn host(address: IpAddr) -> ipnet::IpNet {
    ipnet::IpNet::from(address)
}
