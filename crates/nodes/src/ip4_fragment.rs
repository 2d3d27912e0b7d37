//! ip4-fragment: cuts a packet that is longer than the MTU (RFC 791 section 3.2).
//!
//! The packet itself becomes the first fragment; the others are originated. All go back to
//! ip4-rewrite, where they now fit. Options whose copied bit is set are repeated in each fragment. A
//! fragment can itself be cut again.

use weir_buf::{DATA_ROOM, Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{Ipv4Header, checksum};

use crate::Tables;

pub(crate) struct Ip4Fragment {
    /// Fragments in the making; kept, so that nothing is allocated for a packet.
    made: Vec<Piece>,
}

impl Default for Ip4Fragment {
    fn default() -> Ip4Fragment {
        Ip4Fragment { made: Vec::with_capacity(256) }
    }
}

const IP4_REWRITE: Next = Next(0);
/// The longest header that the length field can say.
const LONGEST_HEADER: usize = 60;

impl Node<Tables> for Ip4Fragment {
    const SPEC: NodeSpec = NodeSpec {
        name: "ip4-fragment",
        about: "Cuts packets that are longer than the MTU.",
        nexts: &["ip4-rewrite"],
        reasons: &[DropReason::NoBuffer, DropReason::Ip4BadLength],
    };

    #[inline(always)]
    fn process(&mut self, cx: &mut Cx<'_, Tables>, packets: &mut [Pkt], verdicts: &mut [Verdict]) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = match fragment(cx, &mut self.made, packet, IP4_REWRITE) {
                Ok(()) => Verdict::to(IP4_REWRITE),
                Err(reason) => Verdict::drop(reason),
            };
        }
        Outcome::Each
    }
}

/// What all fragments of one packet share.
struct Cut {
    l3: usize,
    header: [u8; LONGEST_HEADER],
    header_len: usize,
    /// Bytes behind the header.
    payload: usize,
    /// Offset field and flag of the packet itself, which may be a fragment already.
    first_offset: u16,
    more: bool,
}

/// Cuts a packet whose network header is at the packet's offset for it, into pieces of at most `Meta::argument`
/// bytes; what stands before that header is repeated in each. The pieces go to `next`.
pub(crate) fn fragment(cx: &mut Cx<'_, Tables>, made: &mut Vec<Piece>, packet: &mut Pkt, next: Next) -> Result<(), DropReason> {
    let mtu = (packet.meta().argument as usize).min(DATA_ROOM.saturating_sub(packet.l3_offset()));
    let cut = Cut::of(packet).ok_or(DropReason::Ip4BadLength)?;
    let first = piece(mtu, cut.header_len)?;
    let mut later_header = cut.header;
    let later_len = keep_copied_options(&mut later_header, cut.header_len);
    let later = piece(mtu, later_len)?;
    let count = cut.payload.saturating_sub(first).div_ceil(later);
    // All buffers first: either every fragment is sent or none.
    take_spare(cx, count, made)?;
    let mut at = first;
    for mut twin in made.drain(..) {
        let len = later.min(cut.payload - at);
        twin.write(packet, &cut, &later_header[..later_len], at, len);
        cx.originate(twin.0, next);
        at += len;
    }
    shorten(packet, &cut, first);
    Ok(())
}

/// A packet under construction.
pub(crate) struct Piece(Pkt);

fn take_spare(cx: &mut Cx<'_, Tables>, count: usize, made: &mut Vec<Piece>) -> Result<(), DropReason> {
    for _ in 0..count {
        match cx.alloc() {
            Some(packet) => made.push(Piece(packet)),
            None => {
                made.drain(..).for_each(|piece| cx.free(piece.0));
                return Err(DropReason::NoBuffer);
            }
        }
    }
    Ok(())
}

/// Bytes of payload a fragment: a multiple of 8, at least 8.
fn piece(mtu: usize, header: usize) -> Result<usize, DropReason> {
    let piece = mtu.saturating_sub(header) & !7;
    if piece < 8 { Err(DropReason::Ip4BadLength) } else { Ok(piece) }
}

impl Cut {
    fn of(packet: &Pkt) -> Option<Cut> {
        let (header, _) = Ipv4Header::read(packet.l3())?;
        let (header_len, total) = (header.header_len(), header.total_len() as usize);
        if header.fragment_offset() as usize * 8 + total > 0xffff {
            // A fragment that ends beyond the longest packet: its pieces' offsets would start over.
            return None;
        }
        let bytes = packet.l3().get(..header_len)?;
        let mut kept = [0; LONGEST_HEADER];
        kept.get_mut(..header_len)?.copy_from_slice(bytes);
        Some(Cut {
            l3: packet.l3_offset(),
            header: kept,
            header_len,
            payload: total.checked_sub(header_len)?,
            first_offset: header.fragment_offset(),
            more: header.more_fragments(),
        })
    }
}

impl Piece {
    /// Makes the fragment that starts at byte `at` of the payload.
    fn write(&mut self, from: &Pkt, cut: &Cut, header: &[u8], at: usize, len: usize) {
        let packet = &mut self.0;
        packet.set_interface(from.interface());
        packet.set_aux(from.aux());
        packet.set_flags(from.flags().without(Flags::MARKED | Flags::TRACED | Flags::HASHED));
        packet.set_l3_offset(cut.l3);
        packet.meta_mut().table = from.meta().table;
        let _ = packet.set_len(cut.l3 + header.len() + len);
        let data = packet.data_mut();
        from.copy_out(0, &mut data[..cut.l3]);
        data[cut.l3..cut.l3 + header.len()].copy_from_slice(header);
        from.copy_out(cut.l3 + cut.header_len + at, &mut data[cut.l3 + header.len()..]);
        let more = cut.more || at + len < cut.payload;
        finish(&mut data[cut.l3..], header.len(), len, cut.first_offset + (at / 8) as u16, more);
    }
}

/// Makes the packet itself the first fragment.
fn shorten(packet: &mut Pkt, cut: &Cut, len: usize) {
    let end = cut.l3 + cut.header_len + len;
    let had = packet.len();
    let rest = packet.split_first();
    let _ = packet.set_len(end);
    // The first fragment fits one chunk, but may need bytes of the next ones; the others have theirs.
    if let (Some(rest), Some(place)) = (rest, packet.data_mut().get_mut(had..)) {
        rest.copy_out(0, place);
    }
    finish(packet.l3_mut(), cut.header_len, len, cut.first_offset, true);
}

fn finish(l3: &mut [u8], header_len: usize, payload: usize, offset: u16, more: bool) {
    if let Some((header, _)) = Ipv4Header::read_mut(l3) {
        header.set_header_len(header_len);
        header.set_total_len((header_len + payload) as u16);
        header.set_fragment(offset, more);
    }
    checksum::ipv4_header_set(l3);
}

/// Keeps the options that every fragment repeats; returns the header's new length.
fn keep_copied_options(header: &mut [u8; LONGEST_HEADER], len: usize) -> usize {
    let (mut from, mut to) = (20, 20);
    while from < len {
        let (kind, size) = match header[from] {
            0 => break,
            1 => (1, 1),
            kind => (kind, header.get(from + 1).map_or(0, |&size| size as usize)),
        };
        if size == 0 || from + size > len {
            break;
        }
        if kind & 0x80 != 0 {
            header.copy_within(from..from + size, to);
            to += size;
        }
        from += size;
    }
    let end = to.next_multiple_of(4);
    header[to..].fill(0);
    end
}
