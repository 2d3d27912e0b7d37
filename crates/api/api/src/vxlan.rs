//! VXLAN tunnels: `GET /v1/vxlan-tunnels`.
//!
//! A tunnel's counters and drops are those of its interface (`GET /v1/interfaces`); here is where it leads.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forwarding::Route;
use crate::interface::UpDown;

/// All VXLAN tunnels.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VxlanTunnels {
    /// The tunnels, in the order of their interfaces.
    pub tunnels: Vec<VxlanTunnel>,
}

/// Frames inside of UDP packets, between this router and one other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VxlanTunnel {
    /// The tunnel's interface.
    pub interface: String,
    /// The interface's index.
    pub index: u32,
    /// The own address.
    pub local: IpAddr,
    /// The far end's.
    pub remote: IpAddr,
    /// The segment.
    pub vni: u32,
    /// Whether it is wanted up.
    pub admin: UpDown,
    /// The largest IP packet in a frame, in bytes.
    pub mtu: u32,
    /// The bridge domain that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
    /// The interface that everything received here leaves by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2xc: Option<String>,
    /// The route to the far end, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
}
