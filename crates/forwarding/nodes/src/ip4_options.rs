//! IPv4 options of a packet that is to be forwarded or is for this router (RFC 791 section 3.1, RFC 7126).
//!
//! A malformed option is answered with Parameter Problem (RFC 1812 section 5.2.6). Source routes are refused, unless the
//! configuration permits them: they lead packets past filters (RFC 7126 sections 4.3 and 4.4). All else is left as it is. This
//! router does not add itself to record route and timestamp options, and does not follow source routes: what a sender would
//! learn or choose by them is not worth a slow path that anybody can fill.

use weir_graph::DropReason;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;

/// Bytes of a header without options.
const HEADER: usize = 20;

/// Why a packet with options goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The option at this octet of the header is malformed.
    Malformed(u8),
    /// For a reason that is not answered.
    Silent(DropReason),
}

/// Inspects the options of a whole header.
pub(crate) fn check(header: &[u8], permits_source_routes: bool) -> Result<(), Refused> {
    let mut at = HEADER;
    while let Some(&kind) = header.get(at) {
        match kind {
            END => break,
            NO_OPERATION => at += 1,
            _ => at += option(header, at, kind, permits_source_routes)?,
        }
    }
    Ok(())
}

/// One option of more than one octet: its length.
fn option(header: &[u8], at: usize, kind: u8, permits: bool) -> Result<usize, Refused> {
    // A header has at most 60 octets.
    let malformed = |octet: usize| Refused::Malformed(octet as u8);
    let Some(&length) = header.get(at + 1) else {
        return Err(malformed(at));
    };
    let length = usize::from(length);
    if length < 2 || at + length > header.len() {
        return Err(malformed(at + 1));
    }
    // The first octet that a pointer may name, from 1 on.
    let first = match kind {
        RECORD_ROUTE | LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE => 4,
        TIMESTAMP => 5,
        _ => return Ok(length),
    };
    if length < first - 1 {
        return Err(malformed(at + 1));
    }
    if matches!(kind, LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE) && !permits {
        return Err(Refused::Silent(DropReason::Ip4SourceRoute));
    }
    if header
        .get(at + 2)
        .is_none_or(|&pointer| usize::from(pointer) < first)
    {
        return Err(malformed(at + 2));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[u8]) -> Result<(), Refused> {
        check(&[&[0x46; HEADER][..], options].concat(), false)
    }

    #[test]
    fn options_in_form_pass() {
        for options in [
            &[0, 0, 0, 0][..],
            &[1, 1, 1, 1],
            &[1, 1, 1, 0],
            // What is behind the end is padding.
            &[0, 7, 1, 9],
            // Router alert, record route with room for one and full, timestamp, an unknown option.
            &[148, 4, 0, 0],
            &[7, 7, 4, 0, 0, 0, 0, 0],
            &[7, 7, 8, 1, 2, 3, 4, 0],
            &[68, 8, 5, 0, 0, 0, 0, 0],
            &[94, 4, 1, 2],
        ] {
            assert_eq!(of(options), Ok(()), "{options:?}");
        }
    }

    #[test]
    fn what_is_malformed_is_named_by_its_octet() {
        for (options, octet) in [
            (&[1, 1, 1, 7][..], 23),
            (&[7, 0, 0, 0], 21),
            (&[7, 1, 0, 0], 21),
            (&[1, 7, 4, 4], 22),
            (&[7, 2, 1, 1], 21),
            (&[7, 3, 3, 0], 22),
            (&[68, 3, 5, 0], 21),
            (&[68, 4, 4, 0], 22),
            (&[131, 2, 0, 0], 21),
            (&[94, 5, 0, 0], 21),
        ] {
            assert_eq!(of(options), Err(Refused::Malformed(octet)), "{options:?}");
        }
    }

    #[test]
    fn source_routes_are_refused_unless_permitted() {
        for kind in [131, 137] {
            let route = [kind, 7, 4, 10, 0, 2, 2, 0];
            assert_eq!(of(&route), Err(Refused::Silent(DropReason::Ip4SourceRoute)));
            let header = [&[0x47; HEADER][..], &route].concat();
            assert_eq!(check(&header, true), Ok(()));
        }
    }

    #[test]
    fn nothing_panics() {
        for first in 0..=255 {
            for second in 0..=255 {
                for third in [0, 1, 4, 5, 255] {
                    let _ = of(&[first, second, third, 0]);
                    let _ = of(&[1, first, second, third]);
                }
            }
        }
    }
}
