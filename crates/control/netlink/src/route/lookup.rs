//! Which route the kernel would take to an address.
//!
//! One question and one answer, whatever the size of the table: `RTM_GETROUTE` with an address and
//! `RTM_F_FIB_MATCH`, so that the answer is the route itself and not a copy made for the address.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage};

use super::Route;
use super::address::family;
use crate::error::Result;
use crate::message::{Attributes, u16_at, u32_at};

const RTM_NEWROUTE: u16 = 24;
/// `struct rtmsg`.
const ROUTE_HEADER: usize = 12;
const RTA_OIF: u16 = 4;
const RTA_MULTIPATH: u16 = 9;
/// `struct rtnexthop`: length, flags, hops, index.
const NEXT_HOP_HEADER: usize = 8;

/// A route that the kernel found for an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundRoute {
    /// The prefix length of the route; 0 is a default route.
    pub prefix_length: u8,
    /// The links that it leads over; several with several next hops.
    pub links: Vec<u32>,
}

fn decode(payload: &[u8]) -> Option<FoundRoute> {
    let mut found = FoundRoute {
        prefix_length: *payload.get(1)?,
        links: Vec::new(),
    };
    for (kind, value) in Attributes::new(payload.get(ROUTE_HEADER..)?) {
        match kind {
            RTA_OIF => found.links.extend(u32_at(value, 0)),
            RTA_MULTIPATH => {
                let mut rest = value;
                while let Some(length) = u16_at(rest, 0).map(usize::from) {
                    found.links.extend(u32_at(rest, 4));
                    // Each next hop is aligned to four bytes.
                    let next = length.max(NEXT_HOP_HEADER).next_multiple_of(4);
                    rest = rest.get(next..).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    Some(found)
}

impl Route {
    /// The route to an address; `None` when there is none, or it leads nowhere.
    pub fn route_to(&mut self, address: IpAddr) -> Result<Option<FoundRoute>> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.header.flags = RouteFlags::FibMatch;
        message
            .attributes
            .push(RouteAttribute::Destination(RouteAddress::from(address)));
        let mut found = None;
        let asked = format!("find the route to {address}");
        let answer = self.request(
            &asked,
            &RouteNetlinkMessage::GetRoute(message),
            0,
            &mut |frame| {
                if frame.kind == RTM_NEWROUTE {
                    found = decode(frame.payload);
                }
            },
        );
        match answer {
            Ok(()) => Ok(found),
            Err(error)
                if matches!(
                    error.errno(),
                    Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL)
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_with_one_and_with_several_next_hops_are_read() {
        let mut one = vec![2, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        one.extend(8u16.to_ne_bytes());
        one.extend(RTA_OIF.to_ne_bytes());
        one.extend(7u32.to_ne_bytes());
        let links = vec![7];
        assert_eq!(
            decode(&one),
            Some(FoundRoute {
                prefix_length: 0,
                links
            })
        );
        let mut several = vec![2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        several.extend(20u16.to_ne_bytes());
        several.extend(RTA_MULTIPATH.to_ne_bytes());
        for link in [3u32, 4] {
            several.extend(8u16.to_ne_bytes());
            several.extend([0, 0]);
            several.extend(link.to_ne_bytes());
        }
        let links = vec![3, 4];
        assert_eq!(
            decode(&several),
            Some(FoundRoute {
                prefix_length: 24,
                links
            })
        );
        // A next hop whose length lies ends the list.
        let mut broken = several[..12].to_vec();
        broken.extend(12u16.to_ne_bytes());
        broken.extend(RTA_MULTIPATH.to_ne_bytes());
        broken.extend([0; 8]);
        assert_eq!(decode(&broken).unwrap().links, [0]);
        assert_eq!(decode(&[2]), None);
    }
}
