//! Congestion marks of a tunnel's outer header, copied to the packet inside (RFC 6040 section 4.2, figure 4).
//!
//! Outside, a congested router has marked a packet instead of dropping it. When it comes out of the tunnel the mark goes to the
//! header inside; where that says its ends do not know such marks, the packet is dropped in the router's stead. What is no IP passes as it
//! is: no sender slows down for such a mark.

use weir_graph::DropReason;
use weir_wire::checksum::changed;

use crate::classify::l3_of;

/// Bits of the type of service, or traffic class.
pub(crate) const ECN: u8 = 3;
const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const CE: u8 = 3;

/// What the header inside is to say, of what both say; `None` when the packet is to be dropped.
const fn both(inner: u8, outer: u8) -> Option<u8> {
    match (inner, outer) {
        (NOT_ECT, CE) => None,
        (NOT_ECT | CE, _) => Some(inner),
        (_, ECT_1 | CE) => Some(outer),
        _ => Some(inner),
    }
}

/// Tells a frame what the packet around it says. Nothing is changed when it is to be dropped.
#[inline(never)]
pub(crate) fn hand_in(outer: u8, frame: &mut [u8]) -> Result<(), DropReason> {
    let Some(packet) = l3_of(frame).and_then(|at| frame.get_mut(at..)) else {
        return Ok(());
    };
    match packet {
        [version, service, rest @ ..] if *version >> 4 == 4 => {
            let merged = both(*service & ECN, outer & ECN).ok_or(DropReason::TunnelCongested)?;
            let (old, new) = (*service, *service & !ECN | merged);
            // The checksum's place, behind version and type of service.
            if let Some(Ok(place)) = rest
                .get_mut(8..10)
                .map(<&mut [u8; 2]>::try_from)
                .filter(|_| old != new)
            {
                let word = |service| u16::from_be_bytes([*version, service]);
                *place = changed(u16::from_be_bytes(*place), word(old), word(new)).to_be_bytes();
                *service = new;
            }
        }
        // The traffic class lies across two octets; ECN's bits are in the upper half of the second (RFC 8200 section 3).
        [version, second, ..] if *version >> 4 == 6 => {
            let merged =
                both(*second >> 4 & ECN, outer & ECN).ok_or(DropReason::TunnelCongested)?;
            *second = *second & !(ECN << 4) | merged << 4;
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::both;

    /// RFC 6040 figure 4, row by row: Not-ECT, ECT(0), ECT(1), CE.
    #[test]
    fn both_headers_are_heard() {
        let table = [
            (0, [Some(0), Some(0), Some(0), None]),
            (2, [Some(2), Some(2), Some(1), Some(3)]),
            (1, [Some(1), Some(1), Some(1), Some(3)]),
            (3, [Some(3); 4]),
        ];
        for (inner, row) in table {
            assert_eq!([0, 2, 1, 3].map(|outer| both(inner, outer)), row, "{inner}");
        }
    }
}
