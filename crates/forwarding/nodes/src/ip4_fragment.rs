//! ip4-fragment: cuts a packet that is longer than the MTU (RFC 791 section 3.2).
//!
//! The packet itself becomes the first fragment; the others are originated. All go back to
//! ip4-rewrite, where they now fit. Options whose copied bit is set are repeated in each fragment. A
//! fragment can itself be cut again.

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_wire::{Ipv4Header, checksum};

use crate::{Tables, ip4_input};

pub(crate) struct Ip4Fragment {
    /// Fragments in the making; kept, so that nothing is allocated for a packet.
    made: Vec<Piece>,
}

impl Default for Ip4Fragment {
    fn default() -> Ip4Fragment {
        Ip4Fragment {
            made: Vec::with_capacity(256),
        }
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
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
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
pub(crate) fn fragment(
    cx: &mut Cx<'_, Tables>,
    made: &mut Vec<Piece>,
    packet: &mut Pkt,
    next: Next,
) -> Result<(), DropReason> {
    let mtu = packet.meta().argument as usize;
    let cut = Cut::of(packet).ok_or(DropReason::Ip4BadLength)?;
    let first = piece(mtu, cut.header_len)?;
    let mut later_header = cut.header;
    let later_len = keep_copied_options(&mut later_header, cut.header_len);
    let later = piece(mtu, later_len)?;
    let mut at = first;
    while at < cut.payload {
        let len = later.min(cut.payload - at);
        let Some(piece) = Piece::make(cx, packet, &cut, &later_header[..later_len], at, len) else {
            // Either every fragment is sent or none.
            made.drain(..).for_each(|piece| cx.free(piece.0));
            return Err(DropReason::NoBuffer);
        };
        made.push(piece);
        at += len;
    }
    made.drain(..).for_each(|piece| cx.originate(piece.0, next));
    // The packet itself is the first fragment.
    ip4_input::shorten(packet, cut.header_len + first);
    finish(
        packet.l3_mut(),
        cut.header_len,
        first,
        cut.first_offset,
        true,
    );
    Ok(())
}

/// A fragment that is not sent yet.
pub(crate) struct Piece(Pkt);

/// Bytes of payload a fragment: a multiple of 8, at least 8.
fn piece(mtu: usize, header: usize) -> Result<usize, DropReason> {
    let piece = mtu.saturating_sub(header) & !7;
    if piece < 8 {
        Err(DropReason::Ip4BadLength)
    } else {
        Ok(piece)
    }
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
    /// The fragment that starts at byte `at` of the payload.
    fn make(
        cx: &mut Cx<'_, Tables>,
        from: &Pkt,
        cut: &Cut,
        header: &[u8],
        at: usize,
        len: usize,
    ) -> Option<Piece> {
        let start = cut.l3 + header.len();
        let source = cut.l3 + cut.header_len + at;
        // The headers lie in the first chunk.
        let fill = |place: usize, room: &mut [u8]| {
            if place > 0 {
                from.copy_out(source + place - start, room);
            } else if let Some((headers, payload)) = room.split_at_mut_checked(start) {
                from.copy_out(0, &mut headers[..cut.l3]);
                headers[cut.l3..].copy_from_slice(header);
                from.copy_out(source, payload);
            }
        };
        let mut packet = Pkt::gather(start + len, || cx.alloc(), fill)?;
        packet.set_interface(from.interface());
        packet.set_aux(from.aux());
        packet.set_flags(
            from.flags()
                .without(Flags::MARKED | Flags::TRACED | Flags::HASHED),
        );
        packet.set_l3_offset(cut.l3);
        (packet.meta_mut().table, packet.meta_mut().member) =
            (from.meta().table, from.meta().member);
        let more = cut.more || at + len < cut.payload;
        finish(
            packet.l3_mut(),
            header.len(),
            len,
            cut.first_offset + (at / 8) as u16,
            more,
        );
        Some(Piece(packet))
    }
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
