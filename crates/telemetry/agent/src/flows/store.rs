//! The records of a table, by place: for each flow the one line that its packets touch, which lies behind its bucket, and apart from it
//! what only some flows have and no packet of a known flow reads.
//!
//! Such are the addresses of what is not IPv4, and what only the first packet tells where a record set wants it. They lie
//! in a pool, so that places that are empty cost nothing there, and a record that moves leaves them where they are.

use weir_cpu::LargePages;

use super::Facts;
use super::index::{Index, NONE};
use super::key::{Addresses, Key, Short};
use super::record::{AsNumbers, EndReason, FACTS, FlowRecord, Hot, Reading, WIDE};

/// What lies beside some of them.
#[derive(Debug)]
pub(super) struct Pool {
    /// By the record's place: where it is.
    attached: LargePages<u32>,
    facts: LargePages<Facts>,
    addresses: LargePages<Addresses>,
    /// What was never used begins here; and a stack of what is free again.
    fresh: u32,
    free: Vec<u32>,
}

impl Index {
    /// The hash of the flow at a place.
    #[inline(always)]
    pub(super) fn hash_of(&self, place: u32) -> u64 {
        self.secret.hash(&self.hot(place).short)
    }

    /// Whether it is the flow of a packet.
    #[inline(always)]
    pub(super) fn is_of(&self, place: u32, packet: &Reading) -> bool {
        self.hot(place).short == packet.short
    }

    /// The key of a wide flow as it leaves, of others as it is.
    #[inline(always)]
    pub(super) fn short_of(&self, place: u32) -> Short {
        let hot = self.hot(place);
        if hot.is_wide() {
            let (_, addresses) = self.pool.of(place);
            hot.short.without_digest(&self.secret, addresses)
        } else {
            hot.short
        }
    }

    /// A flow begins at a place where none is.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        moment: u32,
        place: u32,
        packet: &Reading,
        addresses: &Addresses,
        facts: &mut dyn FnMut() -> Facts,
    ) {
        *self.hot_mut(place) = Hot::begin(packet, moment, self.fraction);
        if packet.marks & (WIDE | FACTS) != 0 {
            self.pool
                .attach(place, addresses, (packet.marks & FACTS != 0).then(facts));
        }
    }

    /// The flow at a place is gone: whoever guessed that a packet's flow is here finds that it is not.
    #[inline(always)]
    pub(super) fn clear(&mut self, place: u32) {
        let hot = self.hot_mut(place);
        hot.short = Short::default();
        if hot.has_more() {
            self.pool.give_back(place);
        }
    }

    /// A record moves to a place where none is.
    pub(super) fn move_to(&mut self, from: u32, to: u32) {
        if from == to {
            return;
        }
        let hot = *self.hot(from);
        self.hot_mut(from).short = Short::default();
        if hot.has_more() {
            self.pool.attached[to as usize] = self.pool.attached[from as usize];
        }
        *self.hot_mut(to) = hot;
    }

    /// What a flow has beside its line: those parts that its marks speak of matter.
    #[inline(always)]
    pub(super) fn beside(&self, place: u32) -> (&Facts, &Addresses) {
        if !self.hot(place).has_more() {
            (&Facts::NONE, &[0; 4])
        } else {
            self.pool.of(place)
        }
    }

    /// The record of a flow as it is now.
    pub(super) fn record(&self, place: u32, now: u64, reason: EndReason) -> FlowRecord {
        let (hot, (facts, addresses)) = (self.hot(place), self.beside(place));
        let facts = if hot.has_facts() { *facts } else { Facts::NONE };
        FlowRecord {
            key: Key::join(&self.short_of(place), addresses),
            sums: hot.sums(now, reason),
            vrf: 0,
            numbers: AsNumbers::default(),
            facts,
        }
    }
}

impl Pool {
    /// With so many places, for so many flows.
    pub(super) fn new(places: usize, flows: usize) -> Pool {
        Pool {
            attached: LargePages::filled(NONE, places),
            facts: LargePages::filled(Facts::NONE, flows),
            addresses: LargePages::filled(Addresses::default(), flows),
            fresh: 0,
            free: Vec::with_capacity(flows),
        }
    }

    /// Where nothing is written, another flow's value stays: it is not read.
    fn attach(&mut self, place: u32, addresses: &Addresses, facts: Option<Facts>) {
        let attached = self.free.pop().unwrap_or(self.fresh);
        self.fresh = self.fresh.max(attached.saturating_add(1));
        debug_assert!(
            (attached as usize) < self.facts.len(),
            "the pool has room for every flow"
        );
        if let (Some(here), Some(there)) = (
            self.facts.get_mut(attached as usize),
            self.addresses.get_mut(attached as usize),
        ) {
            if let Some(facts) = facts {
                *here = facts;
            }
            *there = *addresses;
            self.attached[place as usize] = attached;
        }
    }

    fn give_back(&mut self, place: u32) {
        self.free.push(self.attached[place as usize]);
    }

    fn of(&self, place: u32) -> (&Facts, &Addresses) {
        let attached = self.attached[place as usize] as usize;
        (
            self.facts.get(attached).unwrap_or(&Facts::NONE),
            self.addresses.get(attached).unwrap_or(&[0; 4]),
        )
    }
}
