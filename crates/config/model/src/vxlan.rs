//! What makes an interface a VXLAN tunnel: the `vxlan_tunnels` section in types.
//!
//! A tunnel is an interface whose device is this, as a bond is; an entry under `interfaces` sets all else. Another
//! end or another segment is another tunnel: it is taken off and made anew, as vppcfg does it.

use std::net::IpAddr;

use weir_config_derive::Section;

/// One tunnel (RFC 7348): frames of a segment, between this router and one other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Section)]
#[section(example = "{local: 192.0.2.1, remote: 192.0.2.2, vni: 100}")]
pub struct Vxlan {
    /// The address that packets are sent from and received at: one of this router's own, in the
    /// default table.
    #[key(required, example = "192.0.2.1")]
    pub local: IpAddr,
    /// The address of the other router, of the same IP version. Groups are not supported.
    #[key(required, example = "192.0.2.2")]
    pub remote: IpAddr,
    /// The VXLAN network identifier. No two tunnels have the same ends and the same VNI.
    #[key(required, default = 0, kind = Whole(1, 16_777_215), example = "100")]
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
