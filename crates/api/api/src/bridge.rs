//! Bridge domains and their stations: `GET /v1/bridge-domains`, `GET /v1/l2fib`.
//!
//! The stations come in pages, in the order of domains' names and addresses.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NotAPlace;

/// All bridge domains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BridgeDomains {
    /// The domains, by name.
    pub bridges: Vec<BridgeDomain>,
}

/// One bridge domain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BridgeDomain {
    /// Its name.
    pub name: String,
    /// Its members, the routed side (BVI) among them.
    pub members: Vec<BridgeMember>,
    /// Whether it learns where stations are.
    pub learn: bool,
    /// Whether frames go to stations that are known.
    pub forward: bool,
    /// Whether frames for groups go to all members.
    pub flood: bool,
    /// Whether frames for unknown stations go to all members.
    pub unknown_unicast_flood: bool,
    /// Seconds of silence after which a station is forgotten; absent when never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u32>,
    /// Stations that are learned at the moment.
    pub stations: u32,
    /// How many may be learned.
    pub station_limit: u32,
    /// Bytes of the table of stations.
    pub table_bytes: u64,
    /// Stations learned so far.
    pub learned: u64,
    /// Stations that came in by another member than before.
    pub moved: u64,
    /// Stations forgotten for their silence.
    pub aged: u64,
    /// Stations forgotten for others, since their places in the table were full.
    pub displaced: u64,
    /// Frames whose sender was not learned, the limit being reached.
    pub not_learned: u64,
    /// Frames for groups that were sent to several members.
    pub flooded: u64,
    /// Frames for unknown stations that were sent to several members.
    pub unknown_unicast_flooded: u64,
    /// Copies that were not made, the frame being longer than the member's MTU.
    pub copies_too_long: u64,
    /// Frames for groups that each member may send a second; any number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flood_limit: Option<u32>,
    /// The same for frames to stations that are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_unicast_limit: Option<u32>,
    /// Whether it answers itself who asks for an address of its list.
    #[serde(default)]
    pub arp_termination: bool,
    /// Whether such questions go to the station alone.
    #[serde(default)]
    pub arp_unicast_forward: bool,
    /// Addresses of that list.
    #[serde(default)]
    pub arp_entries: u64,
    /// Questions for them that were not flooded.
    #[serde(default)]
    pub arp_terminated: u64,
}

/// A member of a bridge domain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BridgeMember {
    /// The interface.
    pub interface: String,
    /// Whether it is the domain's routed side.
    pub bvi: bool,
    /// Its split-horizon group; 0 is none.
    pub group: u8,
    /// Whether frames can be sent by it.
    pub can_send: bool,
}

/// Stations of bridge domains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct L2fib {
    /// The stations, by domain and address.
    pub stations: Vec<L2Station>,
}

/// One station.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct L2Station {
    /// The domain that it is in.
    pub bridge: String,
    /// Its address.
    pub mac: String,
    /// The member that it is behind.
    pub interface: String,
    /// Whether the configuration, or the BVI's own address, says so.
    #[serde(rename = "static")]
    pub is_static: bool,
    /// Seconds since it was last heard; absent for static ones and where nothing ages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<u32>,
}

/// A station's place in the list; written as `bd1,02:00:00:00:00:07`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct L2fibKey {
    /// The domain.
    pub bridge: String,
    /// The station.
    pub mac: String,
}

impl From<&L2Station> for L2fibKey {
    fn from(station: &L2Station) -> Self {
        Self {
            bridge: station.bridge.clone(),
            mac: station.mac.clone(),
        }
    }
}

impl fmt::Display for L2fibKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.bridge, self.mac)
    }
}

impl FromStr for L2fibKey {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let (bridge, mac) = text.split_once(',').ok_or(NotAPlace)?;
        Ok(Self {
            bridge: bridge.to_owned(),
            mac: mac.to_owned(),
        })
    }
}

/// Which stations are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct L2fibQuery {
    /// Those of this domain.
    pub bridge: Option<String>,
    /// Those behind this one.
    pub after: Option<L2fibKey>,
    /// At most so many.
    pub most: usize,
}

impl L2fibQuery {
    /// Takes what is asked for from the whole list.
    #[must_use]
    pub fn narrow(&self, mut all: L2fib) -> L2fib {
        all.stations.retain(|station| {
            self.bridge
                .as_ref()
                .is_none_or(|name| *name == station.bridge)
                && self.after.as_ref().is_none_or(|after| {
                    (&station.bridge, &station.mac) > (&after.bridge, &after.mac)
                })
        });
        all.stations
            .sort_by(|a, b| (&a.bridge, &a.mac).cmp(&(&b.bridge, &b.mac)));
        all.stations.truncate(self.most);
        all
    }
}
