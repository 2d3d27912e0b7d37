//! Messages of rtnetlink as updates (`include/uapi/linux/rtnetlink.h` of Linux).
//!
//! Reads links, addresses, and IPv4 and IPv6 routes: gateways of either version (`RTA_GATEWAY`, `RTA_VIA`), several paths
//! with weights, labels to push, special types, tables and metrics. MPLS routes (incoming labels) are in `mpls`. Next-hop
//! objects of the kernel are read by the attributes that it adds for listeners that do not know them.
//!
//! Some messages are not for the RIB: routes of addresses and connected subnets (their own addresses make these here),
//! multicast and broadcast routes, and cached ones. What is for the RIB and cannot be expressed is refused
//! with a reason, and counted by the caller. Nothing here panics, whatever the bytes are.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weir_control::{LabelUpdate, NextHop, Route, RouteSource, RouteUpdate, Target};
use weir_netlink::{Attributes, Frame, MacAddress};

use crate::fpm::objects::Object;

mod mpls;

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;

/// Bytes of `struct ifinfomsg`, `struct ifaddrmsg`, `struct rtmsg` and `struct rtnexthop`.
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;
const HOP_HEADER: usize = 8;
/// Bytes of `struct nhmsg` and `struct nexthop_grp`.
const OBJECT_HEADER: usize = 8;
const MEMBER: usize = 8;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const AF_MPLS: u8 = 28;

const IFF_UP: u32 = 1;
const IFF_RUNNING: u32 = 0x40;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_TENTATIVE: u8 = 0x40;
const IFA_F_DADFAILED: u8 = 0x08;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_NEWDST: u16 = 19;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_TTL_PROPAGATE: u16 = 26;
const RTA_NH_ID: u16 = 30;

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP_TYPE: u16 = 7;
const NHA_ENCAP: u16 = 8;

const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;
const RTN_BLACKHOLE: u8 = 6;
const RTN_UNREACHABLE: u8 = 7;
const RTN_PROHIBIT: u8 = 8;
const RTM_F_CLONED: u32 = 0x200;
const RTPROT_REDIRECT: u8 = 1;
const RTPROT_KERNEL: u8 = 2;
const MAIN_TABLE: u32 = 254;
const LOCAL_TABLE: u32 = 255;
const LWTUNNEL_ENCAP_MPLS: u16 = 1;
const MPLS_IPTUNNEL_DST: u16 = 1;

/// Paths of a route, at most: more than any group can have.
const MOST_PATHS: usize = 256;
/// Labels of a path, at most.
const MOST_LABELS: usize = 16;
/// Targets that are remembered, at most.
const MOST_TARGETS: usize = 1 << 16;

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A route came, changed or went.
    Route(RouteUpdate),
    /// An incoming label came, changed or went.
    Label(LabelUpdate),
    /// A link came or changed.
    Link(LinkInfo),
    /// A next-hop object came or changed, or is gone.
    Object {
        /// Its number.
        id: u32,
        /// What it is now, if it is.
        object: Option<Object>,
    },
    /// The link of this index is gone.
    LinkGone(u32),
    /// An address of a link is in use, or is not any more.
    Address {
        /// The link's index.
        link: u32,
        /// The address with its subnet.
        address: IpNet,
        /// Whether it is gone.
        gone: bool,
    },
    /// Nothing that matters here.
    Ignored,
    /// It cannot be expressed here: why.
    Refused(&'static str),
}

/// A link as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkInfo {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The administrator wants it up.
    pub up: bool,
    /// It can pass packets.
    pub running: bool,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its Ethernet address, if it has one.
    pub mac: Option<MacAddress>,
    /// The index of the bridge, bond or VRF that it belongs to; 0 for none.
    pub controller: u32,
}

/// Reads messages; remembers targets, so that routes to the same place share one.
#[derive(Debug)]
pub struct Decoder {
    /// Who sends the messages.
    source: RouteSource,
    targets: HashMap<Target, Arc<Target>>,
    /// The last path of a route with a single one. A daemon that writes a full table names few.
    last: Option<(u32, Option<IpAddr>, Arc<Target>)>,
}

impl Decoder {
    /// Reads messages of the kernel or of zebra.
    #[must_use]
    pub fn new(source: RouteSource) -> Decoder {
        Decoder {
            source,
            targets: HashMap::new(),
            last: None,
        }
    }

    /// What a message says.
    pub fn read(&mut self, frame: &Frame<'_>) -> Message {
        let read = match frame.kind {
            RTM_NEWROUTE => self.route(frame.payload, false),
            RTM_DELROUTE => self.route(frame.payload, true),
            // The kernel adds their attributes to each route.
            RTM_NEWNEXTHOP | RTM_DELNEXTHOP if self.source == RouteSource::Kernel => {
                Some(Message::Ignored)
            }
            RTM_NEWNEXTHOP => object(frame.payload, false),
            RTM_DELNEXTHOP => object(frame.payload, true),
            RTM_NEWLINK => link(frame.payload).map(Message::Link),
            RTM_DELLINK => word(frame.payload, 4).map(Message::LinkGone),
            RTM_NEWADDR => address(frame.payload, false),
            RTM_DELADDR => address(frame.payload, true),
            _ => Some(Message::Ignored),
        };
        read.unwrap_or(Message::Refused("malformed"))
    }

    /// The target of a single path without labels.
    fn share_path(&mut self, interface: u32, gateway: Option<IpAddr>) -> Arc<Target> {
        if let Some((link, hop, target)) = &self.last
            && (*link, *hop) == (interface, gateway)
        {
            return target.clone();
        }
        let hop = NextHop {
            interface,
            gateway,
            weight: 1,
            labels: [].into(),
        };
        let target = self.share(Target::Paths([hop].into()));
        self.last = Some((interface, gateway, target.clone()));
        target
    }

    fn share(&mut self, target: Target) -> Arc<Target> {
        if let Some(known) = self.targets.get(&target) {
            return known.clone();
        }
        if self.targets.len() >= MOST_TARGETS {
            self.targets.clear();
        }
        let shared = Arc::new(target.clone());
        self.targets.insert(target, shared.clone());
        shared
    }

    fn route(&mut self, payload: &[u8], gone: bool) -> Option<Message> {
        let &[
            family,
            length,
            source_length,
            tos,
            table,
            protocol,
            _scope,
            kind,
        ] = payload.first_chunk::<8>()?;
        let flags = word(payload, 8)?;
        let attributes = payload.get(ROUTE_HEADER..)?;
        if !matches!(family, AF_INET | AF_INET6 | AF_MPLS) || flags & RTM_F_CLONED != 0 {
            return Some(Message::Ignored);
        }
        if matches!(protocol, RTPROT_KERNEL | RTPROT_REDIRECT) {
            return Some(Message::Ignored);
        }
        if family == AF_MPLS {
            return self.label(payload, protocol, kind, gone);
        }
        let mut read = Written::default();
        for (kind, value) in Attributes::new(attributes) {
            read.take(kind, value)?;
        }
        let table = match read.table.unwrap_or(u32::from(table)) {
            0 | MAIN_TABLE => 0,
            LOCAL_TABLE if kind == RTN_LOCAL => 0,
            LOCAL_TABLE => return Some(Message::Ignored),
            other => other,
        };
        let prefix = prefix(family, length, read.destination)?;
        if tos != 0 || source_length != 0 {
            return Some(Message::Refused("tos-or-source"));
        }
        let is_kernel = self.source == RouteSource::Kernel;
        // Zebra has one route for each prefix, whatever its metric is.
        let (source, metric) = (self.source, if is_kernel { read.metric } else { 0 });
        if gone {
            // Of an IPv6 route with several paths the kernel deletes one at a time.
            let one =
                (is_kernel && family == AF_INET6 && read.gateway.is_some()).then(|| read.hop());
            return Some(Message::Route(RouteUpdate::Remove {
                table,
                prefix,
                source,
                metric,
                path: one,
            }));
        }
        if read.refused.is_some() {
            return read.refused.map(Message::Refused);
        }
        let target = match kind {
            RTN_UNICAST if !is_kernel && read.object != 0 => Target::Object(read.object),
            RTN_UNICAST if !read.paths.is_empty() => Target::Paths(read.paths.into()),
            RTN_UNICAST if read.interface != 0 && !read.labels.is_empty() => {
                Target::Paths([read.hop()].into())
            }
            RTN_UNICAST if read.interface != 0 => {
                let target = self.share_path(read.interface, read.gateway);
                return Some(Message::Route(RouteUpdate::Set(Route {
                    table,
                    prefix,
                    source,
                    metric,
                    protocol,
                    target,
                })));
            }
            RTN_UNICAST => return Some(Message::Refused("no-next-hop")),
            RTN_BLACKHOLE => Target::Blackhole,
            RTN_UNREACHABLE => Target::Unreachable,
            RTN_PROHIBIT => Target::Prohibit,
            RTN_LOCAL => Target::Local,
            _ => return Some(Message::Ignored),
        };
        Some(Message::Route(RouteUpdate::Set(Route {
            table,
            prefix,
            source,
            metric,
            protocol,
            target: self.share(target),
        })))
    }
}

/// The attributes of a route, or of one path.
#[derive(Default)]
struct Written<'a> {
    destination: Option<&'a [u8]>,
    interface: u32,
    gateway: Option<IpAddr>,
    metric: u32,
    table: Option<u32>,
    encapsulation: u16,
    labels: Vec<u32>,
    /// `RTA_TTL_PROPAGATE` is there and says no.
    is_pipe: bool,
    paths: Vec<NextHop>,
    /// The number of a next-hop object; 0 for none.
    object: u32,
    refused: Option<&'static str>,
}

impl<'a> Written<'a> {
    /// `None` for what is malformed.
    fn take(&mut self, kind: u16, value: &'a [u8]) -> Option<()> {
        match kind {
            RTA_DST => self.destination = Some(value),
            RTA_OIF => self.interface = word(value, 0)?,
            RTA_GATEWAY => self.gateway = Some(ip(value)?),
            RTA_VIA => self.gateway = Some(via(value)?),
            RTA_PRIORITY => self.metric = word(value, 0)?,
            RTA_TABLE => self.table = Some(word(value, 0)?),
            RTA_ENCAP_TYPE => {
                self.encapsulation = u16::from_ne_bytes(*value.first_chunk()?);
                if self.encapsulation != LWTUNNEL_ENCAP_MPLS {
                    self.refused = Some("encapsulation");
                }
            }
            RTA_ENCAP => self.labels = labels(value)?,
            RTA_NEWDST => self.labels = stack(value)?,
            RTA_TTL_PROPAGATE => self.is_pipe = value.first() == Some(&0),
            RTA_NH_ID => self.object = word(value, 0)?,
            RTA_MULTIPATH => self.multipath(value)?,
            _ => {}
        }
        Some(())
    }

    fn multipath(&mut self, mut rest: &'a [u8]) -> Option<()> {
        while !rest.is_empty() {
            let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
            let attributes = rest.get(HOP_HEADER..length)?;
            let hops = *rest.get(3)?;
            let mut path = Written {
                interface: word(rest, 4)?,
                ..Written::default()
            };
            for (kind, value) in Attributes::new(attributes) {
                // A path has no paths, table or destination of its own.
                if matches!(
                    kind,
                    RTA_GATEWAY | RTA_VIA | RTA_ENCAP | RTA_ENCAP_TYPE | RTA_NEWDST
                ) {
                    path.take(kind, value)?;
                }
            }
            self.refused = self.refused.or(path.refused);
            if self.paths.len() >= MOST_PATHS {
                self.refused = Some("too-many-paths");
                return Some(());
            }
            self.paths.push(NextHop {
                weight: u32::from(hops) + 1,
                ..path.hop()
            });
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(())
    }

    fn hop(&self) -> NextHop {
        NextHop {
            interface: self.interface,
            gateway: self.gateway,
            weight: 1,
            labels: self.labels.clone().into(),
        }
    }
}

/// A next-hop object (`include/uapi/linux/nexthop.h`).
fn object(payload: &[u8], gone: bool) -> Option<Message> {
    let (mut id, mut members, mut is_blackhole) = (None, None, false);
    let mut read = Written::default();
    for (kind, value) in Attributes::new(payload.get(OBJECT_HEADER..)?) {
        // Attributes of next hops mean what those of routes do, under other numbers.
        match kind {
            NHA_ID => id = Some(word(value, 0)?),
            NHA_GROUP => members = Some(group_members(value)?),
            NHA_BLACKHOLE => is_blackhole = true,
            NHA_OIF => read.take(RTA_OIF, value)?,
            NHA_GATEWAY => read.take(RTA_GATEWAY, value)?,
            NHA_ENCAP_TYPE => read.take(RTA_ENCAP_TYPE, value)?,
            NHA_ENCAP => read.take(RTA_ENCAP, value)?,
            _ => {}
        }
    }
    let id = id.filter(|id| *id != 0)?;
    if gone {
        return Some(Message::Object { id, object: None });
    }
    let object = match members {
        _ if read.refused.is_some() => return read.refused.map(Message::Refused),
        Some(members) => Object::Group(members),
        None if is_blackhole => Object::Single(Target::Blackhole),
        None if read.interface == 0 => return Some(Message::Refused("no-next-hop")),
        None => Object::Single(Target::Paths([read.hop()].into())),
    };
    Some(Message::Object {
        id,
        object: Some(object),
    })
}

/// The members of a group with their weights (`struct nexthop_grp`: number, weight - 1, reserved).
fn group_members(bytes: &[u8]) -> Option<Vec<(u32, u32)>> {
    if !bytes.len().is_multiple_of(MEMBER) || bytes.len() / MEMBER > MOST_PATHS {
        return None;
    }
    let member = |bytes: &[u8]| Some((word(bytes, 0)?, u32::from(*bytes.get(4)?) + 1));
    bytes.chunks(MEMBER).map(member).collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
        _ => None,
    }
}

/// `struct rtvia`: a family and an address.
fn via(bytes: &[u8]) -> Option<IpAddr> {
    ip(bytes.get(2..)?)
}

/// The label stack of an MPLS encapsulation, outermost first.
fn labels(bytes: &[u8]) -> Option<Vec<u32>> {
    let Some((_, stack)) = Attributes::new(bytes).find(|(kind, _)| *kind == MPLS_IPTUNNEL_DST)
    else {
        return Some(Vec::new());
    };
    self::stack(stack)
}

/// Entries of a label stack, outermost first.
fn stack(bytes: &[u8]) -> Option<Vec<u32>> {
    let entries = bytes.chunks(4).take(MOST_LABELS + 1);
    let labels: Option<Vec<u32>> = entries
        .map(|entry| Some(u32::from_be_bytes(entry.try_into().ok()?) >> 12))
        .collect();
    labels.filter(|labels| labels.len() <= MOST_LABELS)
}

fn prefix(family: u8, length: u8, destination: Option<&[u8]>) -> Option<IpNet> {
    Some(match (family, destination) {
        (AF_INET, None) => Ipv4Net::new(Ipv4Addr::UNSPECIFIED, length).ok()?.into(),
        (_, None) => Ipv6Net::new(Ipv6Addr::UNSPECIFIED, length).ok()?.into(),
        (_, Some(bytes)) => match (family, ip(bytes)?) {
            (AF_INET, IpAddr::V4(address)) => Ipv4Net::new(address, length).ok()?.trunc().into(),
            (AF_INET6, IpAddr::V6(address)) => Ipv6Net::new(address, length).ok()?.trunc().into(),
            _ => return None,
        },
    })
}

fn link(payload: &[u8]) -> Option<LinkInfo> {
    let (index, flags) = (word(payload, 4)?, word(payload, 8)?);
    let mut info = LinkInfo {
        index,
        name: String::new(),
        up: flags & IFF_UP != 0,
        running: flags & IFF_RUNNING != 0,
        mtu: 0,
        mac: None,
        controller: 0,
    };
    for (kind, value) in Attributes::new(payload.get(LINK_HEADER..)?) {
        match kind {
            IFLA_ADDRESS => info.mac = value.try_into().ok(),
            IFLA_IFNAME => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
                info.name = String::from_utf8_lossy(name).into_owned();
            }
            IFLA_MTU => info.mtu = word(value, 0)?,
            IFLA_MASTER => info.controller = word(value, 0)?,
            _ => {}
        }
    }
    Some(info)
}

fn address(payload: &[u8], gone: bool) -> Option<Message> {
    let &[_family, length, flags, _scope] = payload.first_chunk::<4>()?;
    let link = word(payload, 4)?;
    let (mut near, mut far) = (None, None);
    for (kind, value) in Attributes::new(payload.get(ADDRESS_HEADER..)?) {
        match kind {
            IFA_LOCAL => near = Some(ip(value)?),
            IFA_ADDRESS => far = Some(ip(value)?),
            _ => {}
        }
    }
    if !gone && flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) != 0 {
        return Some(Message::Ignored);
    }
    let address = IpNet::new(near.or(far)?, length).ok()?;
    Some(Message::Address {
        link,
        address,
        gone,
    })
}

#[cfg(test)]
mod tests;
