//! A rule: what it asks of a packet, and what becomes of those that match.
//!
//! The types allow no rule that could not be meant: ports come with a protocol that has ports, ICMP's
//! type and code with ICMP. A field that a list leaves out (vppcfg's `any`) is the widest range, and a
//! rule whose port ranges are both the widest asks for no ports at all.
//!
//! [`Rule::matches4`] and [`Rule::matches6`] are the meaning of a rule, written as plainly as it can
//! be; everything else in this crate only has to agree with them, faster.

use std::ops::RangeInclusive;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_wire::IpProtocol;

use crate::key::{Key4, Key6, Upper};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It goes on.
    Permit,
    /// It is dropped.
    Deny,
}

/// The addresses that a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// Any, of both families.
    Any,
    /// IPv4, from one prefix to another.
    V4 {
        /// Where the packet comes from.
        source: Ipv4Net,
        /// Where it goes.
        destination: Ipv4Net,
    },
    /// IPv6, from one prefix to another.
    V6 {
        /// Where the packet comes from.
        source: Ipv6Net,
        /// Where it goes.
        destination: Ipv6Net,
    },
}

/// What a rule asks of that which the packet carries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Nothing.
    Any,
    /// A protocol.
    Protocol(IpProtocol),
    /// A protocol with ports, and ranges of them; TCP and UDP as a rule.
    Ports {
        /// The protocol.
        protocol: IpProtocol,
        /// The sender's port.
        source: RangeInclusive<u16>,
        /// The receiver's port.
        destination: RangeInclusive<u16>,
    },
    /// ICMP or ICMPv6, and ranges of its types and codes.
    Icmp {
        /// [`IpProtocol::ICMP`] or ICMPv6 (58).
        protocol: IpProtocol,
        /// The message's type.
        kind: RangeInclusive<u8>,
        /// The message's code.
        code: RangeInclusive<u8>,
    },
}

/// One rule of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What becomes of the packets that match.
    pub action: Action,
    /// The addresses that it asks for.
    pub addresses: Addresses,
    /// What it asks of the payload.
    pub payload: Payload,
}

/// A payload's demands as numbers: the protocol, and two ranges where ports or type and code must be readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demands {
    pub(crate) protocol: Option<u8>,
    /// The source port or ICMP type, lowest and highest; the destination port or ICMP code likewise.
    pub(crate) ports: Option<[(u16, u16); 2]>,
}

impl Payload {
    /// The demands; `None` when a range is turned round, which nothing can match.
    pub(crate) fn demands(&self) -> Option<Demands> {
        let (protocol, ranges, widest) = match self {
            Payload::Any => {
                return Some(Demands {
                    protocol: None,
                    ports: None,
                });
            }
            Payload::Protocol(protocol) => {
                return Some(Demands {
                    protocol: Some(protocol.0),
                    ports: None,
                });
            }
            Payload::Ports {
                protocol,
                source,
                destination,
            } => (
                protocol,
                [
                    (*source.start(), *source.end()),
                    (*destination.start(), *destination.end()),
                ],
                u16::MAX,
            ),
            Payload::Icmp {
                protocol,
                kind,
                code,
            } => {
                let wide = |range: &RangeInclusive<u8>| {
                    (u16::from(*range.start()), u16::from(*range.end()))
                };
                (protocol, [wide(kind), wide(code)], u16::from(u8::MAX))
            }
        };
        if ranges.iter().any(|(low, high)| low > high) {
            return None;
        }
        let anything = ranges.iter().all(|range| *range == (0, widest));
        Some(Demands {
            protocol: Some(protocol.0),
            ports: (!anything).then_some(ranges),
        })
    }

    fn matches(&self, protocol: u8, upper: Upper) -> bool {
        let Some(demands) = self.demands() else {
            return false;
        };
        if demands.protocol.is_some_and(|wanted| wanted != protocol) {
            return false;
        }
        match (demands.ports, upper) {
            (None, _) => true,
            // Ports are only in the first piece; the others follow it by address and protocol, as in VPP.
            (Some(_), Upper::LaterFragment) => true,
            (Some(_), Upper::Unreadable) => false,
            (Some([first, second]), Upper::Ports(a, b)) => {
                (first.0..=first.1).contains(&a) && (second.0..=second.1).contains(&b)
            }
        }
    }
}

impl Rule {
    /// A rule for every packet.
    #[must_use]
    pub const fn all(action: Action) -> Rule {
        Rule {
            action,
            addresses: Addresses::Any,
            payload: Payload::Any,
        }
    }

    /// Whether an IPv4 packet matches.
    #[must_use]
    pub fn matches4(&self, key: &Key4) -> bool {
        let addressed = match &self.addresses {
            Addresses::Any => true,
            Addresses::V4 {
                source,
                destination,
            } => source.contains(&key.source()) && destination.contains(&key.destination()),
            Addresses::V6 { .. } => false,
        };
        addressed && self.payload.matches(key.protocol().0, key.upper())
    }

    /// Whether an IPv6 packet matches.
    #[must_use]
    pub fn matches6(&self, key: &Key6) -> bool {
        let addressed = match &self.addresses {
            Addresses::Any => true,
            Addresses::V6 {
                source,
                destination,
            } => source.contains(&key.source()) && destination.contains(&key.destination()),
            Addresses::V4 { .. } => false,
        };
        addressed && self.payload.matches(key.protocol().0, key.upper())
    }
}
