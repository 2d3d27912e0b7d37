//! Interfaces: what routing speaks of.
//!
//! An interface is a value in a table that workers read and the control thread replaces; only its
//! counters are written in place. Interfaces form a tree: on top of a port there is one of kind
//! `Port`; bonds, sub-interfaces, loopbacks and bridge interfaces name their parent. The index is
//! stable: it survives changes of the configuration and restarts, and is what sFlow reports.

use std::net::IpAddr;
use std::sync::Arc;

use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_wire::{MacAddr, ipv6};

use crate::bond::Bond;
use crate::host::Host;
use crate::own_addresses::OwnAddresses;
use crate::pseudowire::Pseudowire;
use crate::sub_interface::{SubInterface, SubInterfaces};
use crate::vxlan::Vxlan;

/// What an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The whole of a port.
    Port,
    /// Several ports as one.
    Bond,
    /// A tag's share of its parent.
    SubInterface,
    /// Nothing behind it; it has addresses.
    Loopback,
    /// The routed side of a bridge.
    Bvi,
    /// The end of a pseudowire.
    Pseudowire,
    /// One end of a VXLAN tunnel.
    Vxlan,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Port => "port",
            Kind::Bond => "bond",
            Kind::SubInterface => "sub-interface",
            Kind::Loopback => "loopback",
            Kind::Bvi => "bvi",
            Kind::Pseudowire => "pseudowire",
            Kind::Vxlan => "vxlan",
        }
    }
}

/// What is done with a frame that comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing: the interface is down.
    Closed,
    /// It goes out of that interface as it is.
    CrossConnect(u32),
    /// It goes to the stations of a bridge domain.
    Bridge {
        /// Number of the domain.
        domain: u16,
        /// The interface's number among the domain's members.
        member: u16,
    },
    /// It belongs to a bond.
    Member {
        /// The bond.
        bond: u32,
        /// Whether the bond takes frames from this member now.
        collects: bool,
    },
    /// It is routed.
    Routed,
    /// Nothing is configured that could take it.
    Unused,
}

/// What takes a frame that leaves by an interface: its driver, or a node that finds the way to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Output {
    /// The driver of a port.
    #[default]
    Driver = 0,
    /// sub-interface-output, which puts the tags on.
    SubInterface = 1,
    /// bvi-output, which hands it to the bridge domain.
    Bvi = 2,
    /// bond-output, which chooses a member.
    Bond = 3,
    /// pseudowire-output, which puts the labels on.
    Pseudowire = 4,
    /// vxlan-output, which puts it into a packet to the tunnel's far end.
    Vxlan = 5,
}

/// What can be attached to an interface. The nodes declare their order (`weir_nodes::FEATURES`). What is not attached costs
/// nothing: the bits are inspected once a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Feature {
    /// Access list on what comes in.
    AclIn,
    /// Reverse path check.
    Urpf,
    /// Policer of what comes in.
    PoliceIn,
    /// Access list on what goes out.
    AclOut,
    /// Policer of what goes out.
    PoliceOut,
}

/// How strictly the way back to a packet's source is looked at ([`Feature::Urpf`], RFC 3704).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReversePath {
    /// Any route must lead there.
    Loose,
    /// One must leave by the interface that the packet came in by.
    Strict,
}

/// A set of [`Feature`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features(u16);

impl Features {
    /// None.
    pub const EMPTY: Features = Features(0);

    /// With `feature` in it.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Features {
        Features(self.0 | 1 << feature as u8)
    }

    /// Without any of `others`.
    #[inline(always)]
    #[must_use]
    pub const fn without(self, others: Features) -> Features {
        Features(self.0 & !others.0)
    }

    /// What both have.
    #[inline(always)]
    #[must_use]
    pub const fn intersection(self, others: Features) -> Features {
        Features(self.0 & others.0)
    }

    /// Whether any of `others` is in it.
    #[inline(always)]
    #[must_use]
    pub const fn any(self, others: Features) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether `feature` is in it.
    #[inline(always)]
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u8) != 0
    }
}

/// What one worker saw in one direction of an interface.
#[derive(Debug, Default)]
pub struct DirectionCounters {
    /// Frames.
    pub packets: Counter,
    /// Their bytes, without FCS.
    pub bytes: Counter,
    /// Frames to a group that is not everybody.
    pub multicast: Counter,
    /// Frames to everybody.
    pub broadcast: Counter,
}

/// What one worker saw on one interface, in cache lines of its own.
#[derive(Debug, Default)]
pub struct WorkerInterfaceCounters {
    /// Came in.
    pub rx: DirectionCounters,
    /// Went out.
    pub tx: DirectionCounters,
    /// Were to go out, and could not: the queue was full, the device gone.
    pub tx_lost: Counter,
}

/// The counters of an interface, one block a worker.
#[derive(Debug)]
pub struct InterfaceCounters(Box<[Padded<WorkerInterfaceCounters>]>);

/// The sum over workers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionSums {
    /// Frames.
    pub packets: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Frames to one station.
    pub unicast: u64,
    /// Frames to a group that is not everybody.
    pub multicast: u64,
    /// Frames to everybody.
    pub broadcast: u64,
}

impl InterfaceCounters {
    /// Counters for `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> InterfaceCounters {
        InterfaceCounters((0..workers).map(|_| Padded::default()).collect())
    }

    /// One worker's block.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, worker: usize) -> Option<&WorkerInterfaceCounters> {
        self.0.get(worker).map(|block| &block.0)
    }

    fn sums(
        &self,
        which: impl Fn(&WorkerInterfaceCounters) -> &DirectionCounters,
    ) -> DirectionSums {
        let mut sums = DirectionSums::default();
        for block in &self.0 {
            let counters = which(block);
            // Packets last: a reader between two additions sees group frames that are not yet in the
            // total, never a negative number of unicast ones.
            sums.multicast += counters.multicast.get();
            sums.broadcast += counters.broadcast.get();
            sums.bytes += counters.bytes.get();
            sums.packets += counters.packets.get();
        }
        sums.unicast = sums.packets.saturating_sub(sums.multicast + sums.broadcast);
        sums
    }

    /// What came in, all workers together.
    #[must_use]
    pub fn rx(&self) -> DirectionSums {
        self.sums(|block| &block.rx)
    }

    /// What went out, all workers together.
    #[must_use]
    pub fn tx(&self) -> DirectionSums {
        self.sums(|block| &block.tx)
    }

    /// What could not go out, all workers together.
    #[must_use]
    pub fn tx_lost(&self) -> u64 {
        self.0.iter().map(|block| block.tx_lost.get()).sum()
    }
}

impl DirectionCounters {
    /// Counts a vector.
    #[inline(always)]
    pub fn add(&self, packets: u64, bytes: u64, multicast: u64, broadcast: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
        if multicast | broadcast != 0 {
            self.multicast.add(multicast);
            self.broadcast.add(broadcast);
        }
    }
}

/// An interface as workers see it.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Stable number, from 1; also the ifIndex that sFlow reports.
    pub index: u32,
    /// Name.
    pub name: Arc<str>,
    /// What it is.
    pub kind: Kind,
    /// The interface that it is a part of.
    pub parent: Option<u32>,
    /// Its station address.
    pub mac: MacAddr,
    /// The longest layer 3 packet, in bytes.
    pub mtu: u32,
    /// What is done with what comes in.
    pub input: Input,
    /// What takes that which leaves.
    pub output: Output,
    /// Table (VRF) that routes what comes in; the same number for IPv4 and IPv6.
    pub table: u32,
    /// Own IPv4 addresses and their prefix lengths.
    pub addresses: Arc<[(u32, u8)]>,
    /// Own IPv6 addresses and their prefix lengths, the link-local one among them.
    pub addresses6: Arc<[(u128, u8)]>,
    /// Own IPv6 addresses of which is still being asked whether they are free (RFC 4862 section 5.4); they are
    /// not among `addresses6`.
    pub tentative6: Arc<[u128]>,
    /// Whether the addresses are borrowed from another interface: then anybody may be behind this one, whatever their
    /// subnets are.
    pub unnumbered: bool,
    /// Whether this router advertises itself to hosts (RFC 4861 section 6.2), and so wants to hear who asks for
    /// routers.
    pub advertises: bool,
    /// Whether labelled packets are taken.
    pub mpls: bool,
    /// How strictly the way back to the sources of what comes in is looked at, if at all.
    pub urpf: Option<ReversePath>,
    /// What is attached.
    pub features: Features,
    /// Taps on what comes in.
    pub rx_taps: u32,
    /// Taps on what goes out.
    pub tx_taps: u32,
    /// Domain and member number of a BVI: where that goes which is routed out of it.
    pub bvi_of: Option<(u16, u16)>,
    /// What makes it a sub-interface, if it is one.
    pub sub_interface: Option<SubInterface>,
    /// Its own sub-interfaces by their tags; `None` without any, so that one look a vector tells.
    pub sub_interfaces: Option<Arc<SubInterfaces>>,
    /// What makes it a bond, if it is one.
    pub bond: Option<Arc<Bond>>,
    /// What makes it a pseudowire, if it is one.
    pub pseudowire: Option<Pseudowire>,
    /// What makes it a VXLAN tunnel, if it is one.
    pub vxlan: Option<Arc<Vxlan>>,
    /// Its end in Linux, if it has one.
    pub host: Option<Arc<Host>>,
    /// Whether frames can be sent: administratively up and its port has a transmit queue.
    pub can_send: bool,
    /// Which source addresses may be this router's own: one filter for all interfaces of the router.
    pub own: Arc<OwnAddresses>,
    /// Counters; carried over when the interface changes.
    pub counters: Arc<InterfaceCounters>,
}

impl Interface {
    /// An interface that nothing is done with yet.
    #[must_use]
    pub fn at_rest(
        index: u32,
        name: Arc<str>,
        kind: Kind,
        mac: MacAddr,
        counters: Arc<InterfaceCounters>,
    ) -> Interface {
        Interface {
            index,
            name,
            kind,
            parent: None,
            mac,
            mtu: 1500,
            input: Input::Unused,
            output: Output::Driver,
            table: 0,
            addresses: [].into(),
            addresses6: [].into(),
            tentative6: [].into(),
            unnumbered: false,
            advertises: false,
            mpls: false,
            urpf: None,
            features: Features::default(),
            rx_taps: 0,
            tx_taps: 0,
            bvi_of: None,
            sub_interface: None,
            sub_interfaces: None,
            bond: None,
            pseudowire: None,
            vxlan: None,
            host: None,
            can_send: false,
            own: OwnAddresses::none(),
            counters,
        }
    }

    /// Whether `address` is one of the interface's own.
    #[must_use]
    pub fn owns(&self, address: u32) -> bool {
        self.addresses.iter().any(|&(own, _)| own == address)
    }

    /// Whether a neighbour at `address` would be behind this interface.
    #[must_use]
    pub fn is_near(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.source_for(address.into()).is_some(),
            IpAddr::V6(address) => self.source_for6(address.into()).is_some(),
        }
    }

    /// Whether `address` lies in one of the interface's subnets.
    #[must_use]
    pub fn reaches(&self, address: u32) -> bool {
        self.source_for(address).is_some()
    }

    /// Whether `address` is one of the interface's own.
    #[must_use]
    pub fn owns6(&self, address: u128) -> bool {
        self.addresses6.iter().any(|&(own, _)| own == address)
    }

    /// Whether `address` is the anycast address of all routers of one of the interface's subnets (RFC 4291 section 2.6.1).
    /// Links of two addresses have none (RFC 6164 section 5.1).
    #[must_use]
    pub fn is_anycast6(&self, address: u128) -> bool {
        self.addresses6
            .iter()
            .any(|&(own, len)| subnet_anycast6(own, len) == Some(address))
    }

    /// Whether packets to this group are for this router: all nodes, all routers, and the solicited-node
    /// groups of own addresses, tentative and anycast ones too (RFC 4291 section 2.8, RFC 4862 section 5.4.2).
    #[must_use]
    pub fn listens6(&self, group: &[u8; 16]) -> bool {
        let own = || {
            self.addresses6
                .iter()
                .map(|&(own, _)| own)
                .chain(self.tentative6.iter().copied())
                .chain(
                    self.addresses6
                        .iter()
                        .filter_map(|&(own, len)| subnet_anycast6(own, len)),
                )
        };
        *group == ipv6::ALL_NODES
            || *group == ipv6::ALL_ROUTERS
            || own().any(|own| *group == ipv6::solicited_node(&own.to_be_bytes()))
    }

    /// The own link-local IPv6 address.
    #[must_use]
    pub fn link_local6(&self) -> Option<u128> {
        self.addresses6
            .iter()
            .map(|&(own, _)| own)
            .find(|own| ipv6::is_link_local(&own.to_be_bytes()))
    }

    /// The own IPv6 address to speak from to a neighbour at `address`: one of the same subnet.
    #[must_use]
    pub fn source_for6(&self, address: u128) -> Option<u128> {
        let of_subnet = || {
            self.addresses6
                .iter()
                .find(|&&(own, len)| (own ^ address) & mask6(len) == 0)
        };
        of_subnet()
            .or_else(|| self.addresses6.first().filter(|_| self.unnumbered))
            .map(|&(own, _)| own)
    }

    /// The own address to speak from to a neighbour at `address`.
    #[must_use]
    pub fn source_for(&self, address: u32) -> Option<u32> {
        let of_subnet = || {
            self.addresses
                .iter()
                .find(|&&(own, len)| (own ^ address) & mask(len) == 0)
        };
        of_subnet()
            .or_else(|| self.addresses.first().filter(|_| self.unnumbered))
            .map(|&(own, _)| own)
    }

    /// Whether `address` lies in a subnet of the interface, or of the one that it borrows from: who says to be there is
    /// believed without having been asked for.
    #[must_use]
    pub fn covers(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self
                .addresses
                .iter()
                .any(|&(own, len)| (own ^ u32::from(address)) & mask(len) == 0),
            IpAddr::V6(address) => self
                .addresses6
                .iter()
                .any(|&(own, len)| (own ^ u128::from(address)) & mask6(len) == 0),
        }
    }
}

/// The subnet-router anycast address of an own address, unless it is that address itself, or of a link.
#[must_use]
pub fn subnet_anycast6(own: u128, len: u8) -> Option<u128> {
    let anycast = own & mask6(len);
    let has_one = len < 127 && anycast != own && !ipv6::is_link_local(&own.to_be_bytes());
    has_one.then_some(anycast)
}

/// The mask of a prefix length.
#[must_use]
pub fn mask(len: u8) -> u32 {
    u32::MAX
        .checked_shl(32 - u32::from(len.min(32)))
        .unwrap_or(0)
}

/// The mask of an IPv6 prefix length.
#[must_use]
pub fn mask6(len: u8) -> u128 {
    u128::MAX
        .checked_shl(128 - u32::from(len.min(128)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_subnets() {
        assert_eq!(
            (mask6(0), mask6(64), mask6(128)),
            (0, u128::MAX << 64, u128::MAX)
        );
        assert_eq!(
            (mask(0), mask(24), mask(32), mask(200)),
            (0, 0xffff_ff00, u32::MAX, u32::MAX)
        );
    }

    #[test]
    fn unicast_is_what_is_left() {
        let counters = InterfaceCounters::new(2);
        counters.of(0).unwrap().rx.add(10, 640, 2, 1);
        counters.of(1).unwrap().rx.add(5, 320, 0, 0);
        let sums = counters.rx();
        assert_eq!(
            (
                sums.packets,
                sums.unicast,
                sums.multicast,
                sums.broadcast,
                sums.bytes
            ),
            (15, 12, 2, 1, 960)
        );
        assert_eq!(counters.tx(), DirectionSums::default());
        assert!(counters.of(2).is_none());
    }

    #[test]
    fn features_are_a_set() {
        let set = Features::default()
            .with(Feature::Urpf)
            .with(Feature::AclOut);
        assert!(set.has(Feature::Urpf) && set.has(Feature::AclOut) && !set.has(Feature::AclIn));
        let rest = set.without(Features::EMPTY.with(Feature::Urpf));
        assert!(!rest.has(Feature::Urpf) && rest.any(set) && !rest.without(set).any(set));
    }
}
