//! MPLS routes of the kernel and of zebra (`AF_MPLS`): what is done with an incoming label.
//!
//! A path with `RTA_NEWDST` swaps the label for these; one without takes it off: with a gateway for the next router
//! (penultimate hop popping), without one for this router itself. Then the output device says where packets
//! go on: a VRF device into its table (L3VPN), the loopback into the default one.
//!
//! The label of the implicit null is never on the wire (RFC 3032 section 2.1); where a source names it, nothing is pushed.

use weir_control::{LabelRoute, LabelUpdate, NextHop, RouteSource, Target};
use weir_netlink::Attributes;

use super::{Decoder, Message, ROUTE_HEADER, RTN_BLACKHOLE, RTN_UNICAST, Written, stack};

/// Bits of a label.
const LABEL_BITS: u8 = 20;
const IMPLICIT_NULL: u32 = 3;

impl Decoder {
    pub(super) fn label(
        &mut self,
        payload: &[u8],
        protocol: u8,
        kind: u8,
        gone: bool,
    ) -> Option<Message> {
        let length = *payload.get(1)?;
        let mut read = Written::default();
        for (kind, value) in Attributes::new(payload.get(ROUTE_HEADER..)?) {
            // `RTA_DST` is the label itself, not an address.
            read.take(kind, value)?;
        }
        let &[label] = stack(read.destination?)?.as_slice() else {
            return None;
        };
        if length != LABEL_BITS {
            return None;
        }
        let source = self.source;
        if gone {
            return Some(Message::Label(LabelUpdate::Remove { label, source }));
        }
        if read.refused.is_some() {
            return read.refused.map(Message::Refused);
        }
        let target = match kind {
            RTN_UNICAST if !read.paths.is_empty() => {
                Target::Paths(read.paths.into_iter().map(without_null).collect())
            }
            RTN_UNICAST if read.object != 0 && source == RouteSource::Fpm => {
                Target::Object(read.object)
            }
            RTN_UNICAST if read.interface != 0 => Target::Paths([without_null(read.hop())].into()),
            RTN_UNICAST => return Some(Message::Refused("no-next-hop")),
            RTN_BLACKHOLE => Target::Blackhole,
            _ => return Some(Message::Ignored),
        };
        Some(Message::Label(LabelUpdate::Set(LabelRoute {
            label,
            source,
            protocol,
            is_pipe: read.is_pipe,
            target: self.share(target),
        })))
    }
}

fn without_null(mut hop: NextHop) -> NextHop {
    if hop.labels.contains(&IMPLICIT_NULL) {
        let labels = hop.labels.iter().filter(|label| **label != IMPLICIT_NULL);
        hop.labels = labels.copied().collect();
    }
    hop
}
