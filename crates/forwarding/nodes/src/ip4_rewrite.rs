//! ip4-rewrite: the packet gets a new Ethernet header and loses a hop.
//!
//! The usual case, a plain packet whose neighbour is known and in use, is rewritten in ip4-lookup's pass by
//! [`plain`]; the node sees what is left.
//!
//! What cannot go on as it is goes elsewhere unchanged: too long to be fragmented or complained
//! about, at the end of its time to live to be complained about, no MAC address yet to be held.

use weir_buf::{Flags, Pkt};
use weir_fib::{Adjacency, NeighborState};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::checksum::decrement_ttl;
use weir_wire::{EthernetHeader, Ipv4Header, MacAddr};

use crate::Tables;
use crate::icmp4_error::{FRAGMENTATION_NEEDED, HOST_UNREACHABLE, TTL_EXPIRED, complain};

pub(crate) struct Ip4Rewrite;

const IP4_FRAGMENT: Next = Next(0);
const IP4_GLEAN: Next = Next(1);
const ICMP4_ERROR: Next = Next(2);
const MPLS_PUSH: Next = Next(3);

impl Node<Tables> for Ip4Rewrite {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip4-rewrite",
        about: "Checks the MTU, takes a hop off the time to live and writes the MAC addresses.",
        nexts: &["ip4-fragment", "ip4-glean", "icmp4-error", "mpls-push"],
        reasons: &[DropReason::Ip4Truncated, DropReason::NoRoute],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = rewrite(cx.world, packet);
        }
        Outcome::Each
    }
}

/// Bytes of a plain packet's headers.
const PLAIN: usize = EthernetHeader::LEN + Ipv4Header::LEN;
/// The word of time to live, protocol and checksum.
const HOPS: std::ops::Range<usize> = EthernetHeader::LEN + 8..EthernetHeader::LEN + 12;

/// The usual case, for ip4-lookup: a plain packet that fits, may go on, and whose neighbour is known.
/// Returns the interface; `None`, and nothing is changed, when anything is otherwise.
#[inline(always)]
pub(crate) fn plain(adjacency: &Adjacency, packet: &mut Pkt) -> Option<u32> {
    let len = packet.len();
    let frame = packet.data_mut().first_chunk_mut()?;
    let interface = head(
        adjacency,
        len,
        u32::from_le_bytes(*frame[HOPS].as_array()?),
        frame,
    )?;
    packet.set_aux(interface);
    Some(interface)
}

/// The same on the headers of a plain packet of `len` bytes; `hops` is what [`HOPS`] of it holds.
#[inline(always)]
pub(crate) fn head(
    adjacency: &Adjacency,
    len: usize,
    hops: u32,
    frame: &mut [u8; PLAIN],
) -> Option<u32> {
    // All packets of a vector find the same here, so that none overtakes another, nor those that were held.
    let (start, rest) = adjacency.in_use_by_ip4()?;
    if len > adjacency.longest_frame() {
        return None;
    }
    let hops = hop_taken(hops)?;
    frame[HOPS].copy_from_slice(&hops.to_le_bytes());
    // The last two bytes of the first are overwritten by the second, which puts IPv4's type there that was there.
    frame[..8].copy_from_slice(&start);
    frame[6..14].copy_from_slice(&rest);
    Some(adjacency.interface)
}

/// [`weir_wire::checksum::decrement_ttl`] on the four bytes from the time to live to the checksum at once; `None`
/// when that was the last hop.
#[inline(always)]
pub(crate) fn hop_taken(word: u32) -> Option<u32> {
    if word & 0xff <= 1 {
        return None;
    }
    // One less in the first byte is one more in the checksum's first (RFC 1624), with the end-around
    // carry that makes 0 of 0xffff too.
    let carry = u32::from(word >= 0xfffe_0000);
    Some(word.wrapping_add(0xffff).wrapping_add(carry << 16))
}

/// The same four bytes with a time to live of at most `most`, which is one at least.
#[inline(always)]
pub(crate) fn hops_at_most(word: u32, most: u32) -> u32 {
    let Some(less @ 1..) = (word & 0xff).checked_sub(most) else {
        return word;
    };
    // So much less in the first byte is so much more in the checksum's first, and what is carried out of its last
    // comes in again at its first.
    let sum = (word >> 16) + less;
    let sum = (sum + ((sum + 1) >> 16)) & 0xffff;
    (sum << 16) | ((word & 0xffff) - less)
}

#[inline(never)]
fn rewrite(tables: &Tables, packet: &mut Pkt) -> Verdict {
    let Some(adjacency) = tables.nexthops.adjacency(packet.aux()) else {
        return Verdict::drop(DropReason::NoRoute);
    };
    let end = adjacency.end();
    let Some(destination) = end.rewrite() else {
        return unresolved(end.state(), packet);
    };
    if packet.total_len() - packet.l3_offset().min(packet.len()) > adjacency.mtu as usize {
        return too_long(adjacency.mtu, packet);
    }
    let originated = packet.flags().any(Flags::ORIGINATED);
    let Some((ethernet, l3)) = EthernetHeader::read_mut(packet.data_mut()) else {
        return Verdict::drop(DropReason::Ip4Truncated);
    };
    let Some((header, _)) = Ipv4Header::read_mut(l3) else {
        return Verdict::drop(DropReason::Ip4Truncated);
    };
    if !originated {
        if header.ttl <= 1 {
            complain(packet, TTL_EXPIRED, 0);
            return Verdict::to(ICMP4_ERROR);
        }
        decrement_ttl(header);
    }
    if adjacency.labelled().is_some() {
        return Verdict::to(MPLS_PUSH);
    }
    ethernet.destination = MacAddr(destination);
    ethernet.source = MacAddr(adjacency.source_mac());
    packet.set_aux(adjacency.interface);
    adjacency.note_used();
    Verdict::OUT
}

/// Whether a packet's last hop was the one to here.
#[cold]
pub(crate) fn is_expired(packet: &Pkt) -> bool {
    let last = Ipv4Header::read(packet.l3()).is_some_and(|(header, _)| header.ttl <= 1);
    last && !packet.flags().any(Flags::ORIGINATED)
}

#[cold]
fn unresolved(state: NeighborState, packet: &mut Pkt) -> Verdict {
    if is_expired(packet) {
        complain(packet, TTL_EXPIRED, 0);
        return Verdict::to(ICMP4_ERROR);
    }
    if state == NeighborState::Failed {
        complain(packet, HOST_UNREACHABLE, 0);
        return Verdict::to(ICMP4_ERROR);
    }
    Verdict::to(IP4_GLEAN)
}

#[cold]
fn too_long(mtu: u32, packet: &mut Pkt) -> Verdict {
    if is_expired(packet) {
        complain(packet, TTL_EXPIRED, 0);
        return Verdict::to(ICMP4_ERROR);
    }
    if Ipv4Header::read(packet.l3()).is_some_and(|(header, _)| header.dont_fragment()) {
        complain(packet, FRAGMENTATION_NEEDED, mtu);
        return Verdict::to(ICMP4_ERROR);
    }
    packet.meta_mut().argument = mtu;
    Verdict::to(IP4_FRAGMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_taken_off_together_as_one_by_one() {
        for checksum in 0..u16::MAX {
            for (ttl, most) in [
                (1, 1),
                (64, 64),
                (64, 63),
                (64, 255),
                (200, 1),
                (255, 254),
                (255, 2),
            ] {
                let [a, b] = checksum.to_be_bytes();
                let word = u32::from_le_bytes([ttl, 17, a, b]);
                let wanted = (most..ttl).fold(word, |word, _| hop_taken(word).unwrap());
                assert_eq!(
                    hops_at_most(word, most.into()),
                    wanted,
                    "{ttl} {most} {checksum:#x}"
                );
            }
        }
    }

    #[test]
    fn a_hop_is_taken_as_the_wire_crate_does() {
        for checksum in 0..=u16::MAX {
            for ttl in [0, 1, 2, 64, 255] {
                let mut header = Ipv4Header::new(1, 2, weir_wire::IpProtocol::UDP, ttl, 20);
                header.set_checksum(checksum);
                let [a, b] = checksum.to_be_bytes();
                let word = hop_taken(u32::from_le_bytes([ttl, 17, a, b])).map(u32::to_le_bytes);
                decrement_ttl(&mut header);
                let [a, b] = header.checksum().to_be_bytes();
                assert_eq!(
                    word,
                    (ttl > 1).then_some([header.ttl, 17, a, b]),
                    "{ttl} {checksum:#x}"
                );
            }
        }
    }
}
