//! The Internet checksum over what a packet carries, which may span chunks.

use weir_buf::Pkt;
use weir_wire::checksum::Sum;

/// The checksum over the bytes from `offset` behind the network header's start up to `len` of them, on top of `sum`; 0
/// when the one that is in there is right.
pub(crate) fn from_l3(packet: &Pkt, offset: usize, len: usize, sum: Sum) -> u16 {
    let rest = packet.l3().get(offset..).unwrap_or(&[]);
    if let Some(bytes) = rest.get(..len) {
        return sum.add_bytes(bytes).finish();
    }
    let (mut at, mut left, mut sum, mut piece) = (packet.l3_offset() + offset, len, sum, [0; 256]);
    while left > 0 {
        // Of an even length, but for the last one.
        let wanted = left.min(piece.len());
        let count = packet.copy_out(at, piece.get_mut(..wanted).unwrap_or(&mut []));
        sum = sum.add_bytes(piece.get(..count).unwrap_or(&[]));
        (at, left) = (at + count, left - count);
        if count < wanted {
            break;
        }
    }
    sum.finish()
}
