//! What makes an interface a VXLAN tunnel: the `vxlan_tunnels` section in types.
//!
//! A tunnel is an interface whose device is this, as a bond is; an entry under `interfaces` sets all else. Another
//! end or another segment is another tunnel: it is taken off and made anew, as vppcfg does it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// One tunnel (RFC 7348): frames of a segment, between this router and one other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Vxlan {
    /// The own address that packets come from and are taken at.
    pub local: IpAddr,
    /// The far end.
    pub remote: IpAddr,
    /// The segment, 1 to 16777215.
    pub vni: u32,
}

impl std::fmt::Display for Vxlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "from {} to {}, vni {}",
            self.local, self.remote, self.vni
        )
    }
}

/// Whether packets of a tunnel can be from or to this address: a host's, beyond its link.
#[must_use]
pub(crate) fn is_end(address: IpAddr) -> bool {
    let odd = match address {
        IpAddr::V4(address) => {
            address.is_broadcast()
                || address.is_link_local()
                || address.octets()[0] == 0
                || address.octets()[0] >= 240
        }
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || address.to_ipv4_mapped().is_some()
        }
    };
    !odd && !address.is_multicast() && !address.is_loopback() && !address.is_unspecified()
}
