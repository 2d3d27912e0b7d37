//! What nodes read, and what they tell.
//!
//! [`Tables`] is one immutable value, published by the control thread and seen by a worker for a
//! whole turn. What changes while workers read changes atomically inside: routes in the FIB, the
//! state of a neighbour, counters.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::filter::Filter;
use weir_buf::{Flags, Pkt};
use weir_fib::{Fib4, Fib6, Lfib, Nexthops};
use weir_graph::{DropCounters, World};
use weir_port::interface::{Input, Interface, Kind};
use weir_port::vxlan::VxlanTable;
use weir_wire::{MacAddr, ipv6};

use crate::{BridgeDomain, Policers, features};

/// Whom ICMP errors come from when there is no address at all.
const DUMMY: u32 = 0xc000_0008;

/// An interface with what the graph counts for it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The interface.
    pub interface: Interface,
    /// Drops by node and reason, one block a worker.
    pub drops: Arc<[DropCounters]>,
    /// What packets pass that come in ([`weir_port::interface::Feature::AclIn`]).
    pub acl_input: Option<Filter>,
    /// What packets pass that go out ([`weir_port::interface::Feature::AclOut`]).
    pub acl_output: Option<Filter>,
    /// How much may come in and go out.
    pub policers: Policers,
}

impl Entry {
    /// An interface that is bound to no list.
    #[must_use]
    pub fn new(interface: Interface, drops: Arc<[DropCounters]>) -> Entry {
        Entry {
            interface,
            drops,
            acl_input: None,
            acl_output: None,
            policers: Policers::default(),
        }
    }
}

/// Everything that nodes read.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// By interface index.
    pub interfaces: Vec<Option<Arc<Entry>>>,
    /// IPv4 routes by table number.
    pub fib4: Vec<Arc<Fib4>>,
    /// IPv6 routes by table number.
    pub fib6: Vec<Arc<Fib6>>,
    /// Lengths of the IPv4 prefixes by table number, for those who report packets; none while nobody does.
    pub lengths4: Vec<Arc<Fib4>>,
    /// Lengths of the IPv6 prefixes.
    pub lengths6: Vec<Arc<Fib6>>,
    /// Bridge domains by number.
    pub bridges: Vec<Option<Arc<BridgeDomain>>>,
    /// What labels stand for.
    pub lfib: Arc<Lfib>,
    /// The VXLAN tunnels by what tells their packets.
    pub vxlan: Arc<VxlanTable>,
    /// Where routes and labels lead.
    pub nexthops: Nexthops,
    /// Whether IPv4 packets with source routes are forwarded (RFC 7126).
    pub source_routes: bool,
    /// Taps on what is dropped.
    pub drop_taps: u32,
    /// Whether taps look at any interface that is no port.
    pub inner_taps: bool,
    /// Whether it is noted by which member of a bond a packet came, for samples of what goes out.
    pub notes_members: bool,
}

impl Tables {
    /// The entry of an interface.
    #[inline(always)]
    #[must_use]
    pub fn entry(&self, interface: u32) -> Option<&Entry> {
        self.interfaces.get(interface as usize)?.as_deref()
    }

    /// An interface.
    #[inline(always)]
    #[must_use]
    pub fn interface(&self, interface: u32) -> Option<&Interface> {
        self.entry(interface).map(|entry| &entry.interface)
    }

    /// The access lists of what comes in on an interface.
    #[inline(always)]
    pub(crate) fn input_filter(&self, interface: u32) -> Option<&Filter> {
        self.entry(interface)?.acl_input.as_ref()
    }

    /// A bridge domain.
    #[inline(always)]
    #[must_use]
    pub fn bridge(&self, domain: u16) -> Option<&BridgeDomain> {
        self.bridges.get(domain as usize)?.as_deref()
    }

    /// The same for IPv6.
    #[inline(always)]
    #[must_use]
    pub fn fib6_for(&self, packet: &Pkt) -> Option<&Fib6> {
        if packet.flags().any(Flags::TABLED) {
            return self
                .fib6
                .get(packet.meta().table as usize)
                .map(|fib| &**fib);
        }
        self.fib6_of(packet.interface())
    }

    /// The table that routes a packet: that of the interface it came in on, or the one that its label led to.
    #[inline(always)]
    #[must_use]
    pub fn fib4_for(&self, packet: &Pkt) -> Option<&Fib4> {
        if packet.flags().any(Flags::TABLED) {
            return self
                .fib4
                .get(packet.meta().table as usize)
                .map(|fib| &**fib);
        }
        self.fib4_of(packet.interface())
    }

    /// The number of the table that routes a packet.
    #[inline]
    #[must_use]
    pub fn table_of(&self, packet: &Pkt) -> u32 {
        if packet.flags().any(Flags::TABLED) {
            return packet.meta().table;
        }
        self.interface(packet.interface())
            .map_or(0, |interface| interface.table)
    }

    /// The table that routes what comes in on an interface.
    #[inline]
    #[must_use]
    pub fn fib4_of(&self, interface: u32) -> Option<&Fib4> {
        let table = self
            .interface(interface)
            .map_or(0, |interface| interface.table);
        self.fib4.get(table as usize).map(|fib| &**fib)
    }

    /// The same for IPv6.
    #[inline]
    #[must_use]
    pub fn fib6_of(&self, interface: u32) -> Option<&Fib6> {
        let table = self
            .interface(interface)
            .map_or(0, |interface| interface.table);
        self.fib6.get(table as usize).map(|fib| &**fib)
    }

    /// The interfaces whose subnets are in a table.
    fn of_table(&self, table: u32) -> impl Iterator<Item = &Interface> {
        self.interfaces
            .iter()
            .flatten()
            .map(|entry| &entry.interface)
            .filter(move |interface| interface.table == table)
    }

    /// The own address to speak from to `towards` about a packet (RFC 1812 section 4.3.2.4): of the interface that it came in on,
    /// of the same subnet if there is one. Where that has none in the packet's table, since a label led elsewhere or the link goes
    /// by IPv6 alone, one of that table, or of `end`, the table that its label leads to; where there is none
    /// at all, the one that stands for that (RFC 7600 section 4.8).
    #[must_use]
    pub fn source4(&self, packet: &Pkt, towards: u32, end: Option<u32>) -> u32 {
        let table = self.table_of(packet);
        let here = self
            .interface(packet.interface())
            .filter(|here| here.table == table);
        let here = here.and_then(|here| here.source_for(towards).or_else(|| first4(here)));
        here.or_else(|| {
            [Some(table), end]
                .into_iter()
                .flatten()
                .find_map(|table| self.source4_in(table, towards))
        })
        .unwrap_or(DUMMY)
    }

    /// The own address of a table that is nearest to `towards`, else a loopback's (the router's identifier), else any.
    fn source4_in(&self, table: u32, towards: u32) -> Option<u32> {
        let near = self
            .of_table(table)
            .filter(|it| it.covers(Ipv4Addr::from(towards).into()))
            .find_map(|it| it.source_for(towards));
        let named = || {
            self.of_table(table)
                .filter(|it| it.kind == Kind::Loopback)
                .find_map(first4)
        };
        near.or_else(named)
            .or_else(|| self.of_table(table).find_map(first4))
    }

    /// The own IPv6 address to speak from to `towards` about a packet (RFC 4443 section 2.2): of the same scope, of the
    /// same subnet if there is one, of the interface that it came in on, else of any in the packet's table, or in `end`, the one
    /// that its label leads to.
    #[must_use]
    pub fn source6(&self, packet: &Pkt, towards: u128, end: Option<u32>) -> Option<u128> {
        let (here, table) = (self.interface(packet.interface())?, self.table_of(packet));
        if ipv6::is_link_local(&towards.to_be_bytes()) {
            return here.link_local6();
        }
        let here = Some(here).filter(|here| here.table == table);
        let here = here.and_then(|here| here.source_for6(towards).or_else(|| global6(here)));
        here.or_else(|| {
            [Some(table), end]
                .into_iter()
                .flatten()
                .find_map(|table| self.source6_in(table, towards))
        })
    }

    /// The own address of a table that is nearest to `towards`, else any that is no link's.
    fn source6_in(&self, table: u32, towards: u128) -> Option<u128> {
        let near = self
            .of_table(table)
            .filter(|it| it.covers(Ipv6Addr::from(towards).into()))
            .find_map(|it| it.source_for6(towards));
        near.or_else(|| self.of_table(table).find_map(global6))
    }

    /// Whether an address is one of this router's in the table that routes a packet.
    #[must_use]
    pub fn owns(&self, packet: &Pkt, address: u32) -> bool {
        self.of_table(self.table_of(packet))
            .any(|interface| interface.owns(address))
    }

    /// The same for IPv6. Link-local addresses are those of the interface that the packet came in on.
    #[must_use]
    pub fn owns6(&self, packet: &Pkt, address: u128) -> bool {
        if ipv6::is_link_local(&address.to_be_bytes()) {
            return self
                .interface(packet.interface())
                .is_some_and(|here| here.owns6(address));
        }
        self.of_table(self.table_of(packet))
            .any(|interface| interface.owns6(address))
    }
}

/// An interface's first address.
fn first4(of: &Interface) -> Option<u32> {
    of.addresses.first().map(|own| own.0)
}

/// An interface's first address that is no link's.
fn global6(of: &Interface) -> Option<u128> {
    of.addresses6
        .iter()
        .map(|own| own.0)
        .find(|own| !ipv6::is_link_local(&own.to_be_bytes()))
}

/// What nodes tell the control side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets wait for a neighbour that is not known.
    Wanted {
        /// The interface it is behind.
        interface: u32,
        /// Its address.
        address: IpAddr,
    },
    /// A neighbour said who it is.
    Heard {
        /// The interface it is behind.
        interface: u32,
        /// Its address.
        address: IpAddr,
        /// Its MAC address.
        mac: MacAddr,
        /// Whether it spoke to us (a reply, or a request for our address); else it is only believed
        /// when the neighbour is known already.
        to_us: bool,
        /// Whether the MAC address takes the place of another one that is known (RFC 4861 section 4.4: the
        /// override flag; always so of ARP).
        replaces: bool,
    },
    /// Another host uses, or wants to use, an address of this router's, tentative ones included (RFC 4862
    /// section 5.4).
    Duplicate {
        /// The interface it is heard on.
        interface: u32,
        /// The address.
        address: IpAddr,
        /// Who has it.
        mac: MacAddr,
    },
    /// The far end of a bond's member spoke LACP.
    Lacp {
        /// The member.
        interface: u32,
        /// What it says of itself.
        actor: weir_wire::lacp::End,
        /// What it believes of us.
        partner: weir_wire::lacp::End,
    },
    /// A host asks for routers on an interface that advertises (RFC 4861 section 6.2.6).
    RouterWanted {
        /// The interface.
        interface: u32,
    },
}

impl World for Tables {
    type Event = Event;

    #[inline]
    fn drops(&self, interface: u32, worker: usize) -> Option<&DropCounters> {
        self.entry(interface)?.drops.get(worker)
    }

    #[inline]
    fn rx_taps(&self, interface: u32) -> u32 {
        self.interface(interface)
            .map_or(0, |interface| interface.rx_taps)
    }

    #[inline]
    fn tx_taps(&self, interface: u32) -> u32 {
        self.interface(interface)
            .map_or(0, |interface| interface.tx_taps)
    }

    #[inline(always)]
    fn has_inner_taps(&self) -> bool {
        self.inner_taps
    }

    fn received_on(&self, packet: &Pkt) -> u32 {
        let (interface, member) = (packet.interface(), packet.meta().member);
        let of_bond = |port: &Interface| matches!(port.input, Input::Member { bond, .. } if bond == interface);
        if self.notes_members && self.interface(member).is_some_and(of_bond) {
            member
        } else {
            interface
        }
    }

    #[inline]
    fn drop_taps(&self) -> u32 {
        self.drop_taps
    }

    #[inline(always)]
    fn output(&self, interface: u32) -> u8 {
        match self.interface(interface) {
            Some(interface) => features::output(interface),
            None => 0,
        }
    }
}
