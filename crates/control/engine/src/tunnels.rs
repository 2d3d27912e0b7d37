//! VXLAN tunnels on the control side: the table by which workers find them, and what the API tells.
//!
//! A tunnel is an interface without a port whose link is always up: whether the far end can be reached is the matter
//! of the routes to it, and what cannot go there is dropped, counted on the tunnel's interface.

use std::net::IpAddr;
use std::sync::Arc;

use weir_config::AdminState;
use weir_port::vxlan::VxlanTable;

use crate::control::Control;

impl Control {
    /// Makes the table of tunnels anew when there are others than before.
    pub(crate) fn find_tunnels(&mut self) {
        if !std::mem::take(&mut self.tunnels_changed) {
            return;
        }
        let entries = self
            .tables
            .interfaces
            .iter()
            .flatten()
            .map(|entry| &entry.interface);
        let tunnels: Vec<_> = entries
            .filter_map(|interface| Some((interface.vxlan.clone()?, interface.index)))
            .collect();
        self.tables.vxlan = Arc::new(VxlanTable::new(
            tunnels.iter().map(|(tunnel, index)| (&**tunnel, *index)),
        ));
    }

    pub(crate) fn vxlan_views(&self) -> weir_api::VxlanTunnels {
        let tunnels = self.config.interfaces.iter().filter_map(|(name, wanted)| {
            let tunnel = wanted.as_vxlan()?;
            let attached = self.interfaces.get(name)?;
            Some(weir_api::VxlanTunnel {
                interface: name.clone(),
                index: attached.index,
                local: tunnel.local,
                remote: tunnel.remote,
                vni: tunnel.vni,
                admin: (wanted.state == AdminState::Up).into(),
                mtu: u32::from(wanted.mtu),
                bridge: self.bridge_of(name).map(|(bridge, ..)| bridge.to_owned()),
                l2xc: wanted.l2xc.clone(),
                route: self.route_to(tunnel.remote),
            })
        });
        weir_api::VxlanTunnels {
            tunnels: tunnels.collect(),
        }
    }

    /// The route by which packets to an address leave, in the default table.
    fn route_to(&self, address: IpAddr) -> Option<weir_api::Route> {
        let table = self.routing.first()?.as_ref()?;
        table
            .longest_match(address)
            .map(|found| self.route_view(table, found))
    }
}
