//! Adding addresses, routes and neighbours; which addresses there are.
//!
//! Addresses are added as the administrator's own: IPv6 ones skip duplicate address detection
//! (RFC 4862 5.4), because a lab or a router's interface must answer at once. Routes go to the main
//! table with protocol `static` and replace an equal one; neighbours are permanent.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressProtocol, AddressScope,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::Route;
use crate::MacAddress;
use crate::error::{Error, Result};
use crate::message::{Attributes, Frame, u32_at};

const RTM_NEWADDR: u16 = 20;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_PROTO: u16 = 11;
/// `struct ifaddrmsg`: family, prefix length, flags, scope, index.
const ADDRESS_HEADER: usize = 8;
/// `IFA_F_DADFAILED` and `IFA_F_TENTATIVE`: addresses that are not used.
const UNUSED: u8 = 0x08 | 0x40;

/// An address of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkAddress {
    /// The link's index.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// The length of its subnet's prefix in bits.
    pub prefix_length: u8,
    /// Who added it (`IFA_PROTO`, Linux 5.18); 0 where nobody said so.
    pub protocol: u8,
}

fn decode_address(frame: &Frame<'_>) -> Option<LinkAddress> {
    let payload = frame.payload;
    if frame.kind != RTM_NEWADDR || payload.get(2)? & UNUSED != 0 {
        return None;
    }
    let (index, attributes) = (u32_at(payload, 4)?, payload.get(ADDRESS_HEADER..)?);
    // On a link between two ends the local one is distinguished from the other.
    let of_kind = |wanted| {
        Attributes::new(attributes)
            .find(|(kind, _)| *kind == wanted)
            .map(|(_, value)| value)
    };
    let value = of_kind(IFA_LOCAL).or_else(|| of_kind(IFA_ADDRESS))?;
    let four = <[u8; 4]>::try_from(value).map(IpAddr::from);
    let address = four
        .or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from))
        .ok()?;
    Some(LinkAddress {
        index,
        address,
        prefix_length: *payload.get(1)?,
        protocol: of_kind(IFA_PROTO)
            .and_then(|value| value.first().copied())
            .unwrap_or(0),
    })
}

/// One static route of the main table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteEntry {
    /// The network's address.
    pub destination: IpAddr,
    /// The network's prefix length in bits; 0 with an unspecified address is the default route.
    pub prefix_length: u8,
    /// The next router; none for a network that is reached directly.
    pub gateway: Option<IpAddr>,
    /// The index of the link to use; the kernel finds it by the gateway when none.
    pub link: Option<u32>,
}

impl RouteEntry {
    /// The default route of the gateway's family.
    pub fn default_via(gateway: IpAddr) -> Self {
        RouteEntry {
            destination: unspecified(gateway),
            prefix_length: 0,
            gateway: Some(gateway),
            link: None,
        }
    }
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::from([0u8; 4]),
        IpAddr::V6(_) => IpAddr::from([0u8; 16]),
    }
}

pub(super) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn valid_prefix(asked: &str, address: IpAddr, prefix_length: u8) -> Result<()> {
    let longest = if address.is_ipv4() { 32 } else { 128 };
    if prefix_length > longest {
        return Err(Error::invalid(
            asked,
            format!("a prefix has at most {longest} bits here"),
        ));
    }
    Ok(())
}

impl Route {
    /// The addresses of the namespace that are in use, in the kernel's order.
    pub fn addresses(&mut self) -> Result<Vec<LinkAddress>> {
        let question = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.dump("list addresses", &question, decode_address)
    }

    /// Adds an address with its network to a link.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix_length: u8) -> Result<()> {
        self.add_address_of(index, address, prefix_length, 0)
    }

    /// The same with a mark of who added it (`IFA_PROTO`), which kernels before 5.18 do not keep; 0 for nobody.
    pub fn add_address_of(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix_length: u8,
        protocol: u8,
    ) -> Result<()> {
        let asked = format!("add address {address}/{prefix_length} to link {index}");
        let mut message = address_message(&asked, index, address, prefix_length)?;
        if protocol != 0 {
            let mark = AddressProtocol::from(protocol);
            message.attributes.push(AddressAttribute::Protocol(mark));
        }
        self.change(
            &asked,
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Takes an address off a link.
    pub fn remove_address(&mut self, index: u32, address: IpAddr, prefix_length: u8) -> Result<()> {
        let asked = format!("remove address {address}/{prefix_length} from link {index}");
        let message = address_message(&asked, index, address, prefix_length)?;
        self.change(&asked, RouteNetlinkMessage::DelAddress(message), 0)
    }

    /// Adds a static route, or replaces the equal one.
    pub fn add_route(&mut self, entry: &RouteEntry) -> Result<()> {
        let asked = format!("add route {}/{}", entry.destination, entry.prefix_length);
        valid_prefix(&asked, entry.destination, entry.prefix_length)?;
        if entry
            .gateway
            .is_some_and(|gateway| gateway.is_ipv4() != entry.destination.is_ipv4())
        {
            return Err(Error::invalid(
                asked,
                "destination and gateway are of two families",
            ));
        }
        let mut route = RouteMessage::default();
        route.header.address_family = family(entry.destination);
        route.header.destination_prefix_length = entry.prefix_length;
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.kind = RouteType::Unicast;
        route.header.scope = if entry.gateway.is_some() {
            RouteScope::Universe
        } else {
            RouteScope::Link
        };
        let destination = RouteAttribute::Destination(RouteAddress::from(entry.destination));
        route.attributes.push(destination);
        if let Some(gateway) = entry.gateway {
            route
                .attributes
                .push(RouteAttribute::Gateway(RouteAddress::from(gateway)));
        }
        if let Some(link) = entry.link {
            route.attributes.push(RouteAttribute::Oif(link));
        }
        self.change(
            &asked,
            RouteNetlinkMessage::NewRoute(route),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    /// Adds a permanent neighbour entry (ARP or neighbour discovery), or replaces it.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: MacAddress) -> Result<()> {
        let mut neighbour = NeighbourMessage::default();
        neighbour.header.family = family(address);
        neighbour.header.ifindex = index;
        neighbour.header.state = NeighbourState::Permanent;
        neighbour
            .attributes
            .push(NeighbourAttribute::Destination(address.into()));
        neighbour
            .attributes
            .push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
        let asked = format!("add neighbour {address} to link {index}");
        let message = RouteNetlinkMessage::NewNeighbour(neighbour);
        self.change(&asked, message, NLM_F_CREATE | NLM_F_REPLACE)
    }
}

fn address_message(
    asked: &str,
    index: u32,
    address: IpAddr,
    prefix_length: u8,
) -> Result<AddressMessage> {
    valid_prefix(asked, address, prefix_length)?;
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.prefix_len = prefix_length;
    message.header.index = index;
    message.header.scope = AddressScope::Universe;
    message.attributes.push(AddressAttribute::Local(address));
    message.attributes.push(AddressAttribute::Address(address));
    if address.is_ipv6() {
        message
            .attributes
            .push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    Ok(message)
}
