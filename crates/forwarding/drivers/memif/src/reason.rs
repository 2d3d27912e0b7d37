//! Why a peer is parted from: one table, one counter each.
//!
//! The name is the counter's (`disconnect_NAME`), the sentence is sent to the peer in the DISCONNECT
//! and shown as the last reason. Any thread may count.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! reasons {
    ($($variant:ident, $name:literal, $sentence:literal;)*) => {
        /// Why there is no connection to a peer any more, or none came about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $sentence] $variant,)*
        }

        impl Reason {
            /// All of them, in the order of their numbers.
            pub const ALL: [Reason; [$(Reason::$variant),*].len()] = [$(Reason::$variant),*];

            /// The name as counters carry it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            /// What it means, for people and for the peer.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Reason::$variant => $sentence,)* }
            }
        }
    };
}

reasons! {
    Gone, "peer_gone", "the peer closed the control channel or died";
    Left, "peer_left", "the peer took its leave";
    Closed, "closed", "this port was closed";
    Timeout, "timeout", "the peer did not answer in time";
    Channel, "channel", "the control channel failed";
    MessageSize, "message_size", "a message does not have 128 bytes";
    Unexpected, "unexpected_message", "a message that may not come at this moment";
    Version, "version", "the peer does not speak version 2.0";
    Mode, "mode", "the peer does not want Ethernet frames";
    Identity, "unknown_id", "there is no interface of this id here";
    Secret, "wrong_secret", "the secret is wrong";
    Busy, "already_connected", "the interface has a peer already";
    PeerLimits, "peer_limits", "the peer takes fewer rings or regions than are needed here";
    RegionIndex, "region_index", "a region's number is not the next one, or there are too many";
    RegionSize, "region_size", "a region is empty, too large, or larger than its file";
    RegionFile, "region_file", "a region came without a memory file that can be mapped";
    RegionSeal, "region_not_sealed", "a region's file is not sealed against shrinking";
    RegionPages, "region_hugepages", "a region on hugepages is taken from the own user or root only";
    RingIndex, "ring_index", "a ring's number was given already, or there are more rings than queues";
    RingPlace, "ring_place", "a ring lies outside its region, is not aligned, or is too large";
    RingCookie, "ring_cookie", "a ring does not begin with the cookie";
    RingInterrupt, "ring_interrupt", "a ring came without an event descriptor";
    RingsMissing, "rings_missing", "the peer gave fewer rings than there are queues to send on";
    BadIndex, "bad_index", "an index in a ring is out of range";
    BadDescriptor, "bad_descriptor", "a descriptor points outside the regions";
    BadLength, "bad_length", "a descriptor is longer than its buffer, or has no room";
    BadChain, "bad_chain", "a frame of too many pieces or bytes";
}

impl Reason {
    pub(crate) fn from_number(number: u8) -> Option<Reason> {
        Reason::ALL.get(usize::from(number)).copied()
    }
}

/// How often each reason came up.
#[derive(Debug, Default)]
pub(crate) struct Reasons([AtomicU64; Reason::ALL.len()]);

impl Reasons {
    pub(crate) fn count(&self, reason: Reason) {
        if let Some(counter) = self.0.get(reason as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn of(&self, reason: Reason) -> u64 {
        self.0
            .get(reason as usize)
            .map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_name_counter_and_fits_a_message() {
        let reasons = Reasons::default();
        for (number, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(Reason::from_number(number as u8), Some(reason));
            assert!(reason.sentence().len() < 96, "{}", reason.name());
            assert_eq!(
                Reason::ALL
                    .iter()
                    .filter(|other| other.name() == reason.name())
                    .count(),
                1
            );
            reasons.count(reason);
            assert_eq!(reasons.of(reason), 1);
        }
        assert_eq!(Reason::from_number(200), None);
    }
}
