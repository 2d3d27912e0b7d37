//! The hash that keeps a flow of labelled packets on one path.
//!
//! An entropy label says it all (RFC 6790): labels and nothing else then. Without one, what the payload seems to be is
//! added, if it is IP beyond doubt (RFC 4928): version and lengths must agree, since an Ethernet frame of a
//! pseudowire without control word can begin with any nibble, and its packets must not be reordered. Special labels
//! tell nothing about a flow and are left out.

use weir_wire::ipv6::Flow;
use weir_wire::mpls::{Guess, Stack, guess_first};

use crate::flow_hash4;

const PRIME: u64 = 0xff51_afd7_ed55_8ccd;
const OTHER: u64 = 0xc4ce_b9fe_1a85_ec53;

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(PRIME);
    mixed ^ mixed >> 32
}

/// Hash of a labelled packet's flow.
#[must_use]
pub fn flow_hash_mpls(stack: &Stack<'_>) -> u32 {
    let mut hash = 0x9e37_79b9_7f4a_7c15;
    if let Some(entropy) = stack.entropy {
        return finish(mix(hash, u64::from(entropy.0)));
    }
    for entry in stack.entries().filter(|entry| !entry.label().is_special()) {
        hash = mix(hash, u64::from(entry.label().0));
    }
    match guess_first(stack.payload, stack.beyond) {
        Guess::Ipv4(header) => {
            let payload = stack.payload.get(header.header_len()..).unwrap_or(&[]);
            hash = mix(hash, u64::from(flow_hash4(header, payload)));
        }
        Guess::Ipv6(_) => {
            hash = mix(
                hash,
                Flow::read(stack.payload).map_or(0, |flow| u64::from(flow.hash(0))),
            )
        }
        Guess::Pseudowire | Guess::Unknown => {}
    }
    finish(hash)
}

fn finish(hash: u64) -> u32 {
    let mixed = hash.wrapping_mul(OTHER);
    (mixed ^ (mixed >> 29)) as u32
}

/// A flow's hash as an entropy label: never one of the special ones (RFC 6790 section 4.2).
#[inline]
pub(crate) fn entropy(hash: u32) -> u32 {
    let label = (hash ^ hash >> 20) & 0xf_ffff;
    if label < 16 { label + 16 } else { label }
}
