//! The stations of a bridge domain: which MAC address is behind which member.
//!
//! Workers look up and learn, the control thread ages and shows, and nobody waits for anybody. A station
//! is one word (address, member, whether an operator set it), so that a reader sees all of it or nothing and
//! a writer needs one compare-and-exchange: learning fills an empty word, a move exchanges the
//! member, ageing empties the word. Six words and the seconds at which they were last heard make a cache
//! line; each address has two lines, of which a lookup mostly reads the first: the second is taken when the
//! first is more than half full and the second is not.
//!
//! Which lines those are is a secret of the table (`seed`), since whoever may send frames may choose
//! addresses. A table holds at most `limit` learned stations: what is beyond is not learned, and
//! stations that are known stay. Where both lines of an address are full all the same, the station
//! that was silent longest gives way.
//!
//! Races that are left and harm nobody: two workers that meet a station at once may note it twice (the first
//! word counts, the other ages); one that is heard while it is taken out is learned again with its next
//! frame.

use std::hint::cold_path;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use weir_ring::Padded;

/// Stations of a line.
const WAYS: usize = 6;
/// Stations that a line is meant for: the more places are left, the fewer pairs of lines are ever full.
const MEANT: usize = 3;
const ADDRESS: u64 = (1 << 48) - 1;
const STATIC: u64 = 1 << 63;

/// How many members a domain can number.
pub const MAX_MEMBERS: usize = 1 << 15;

/// A MAC address as the table compares it: the first octet lowest. Zero is no station's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Station(u64);

impl Station {
    /// Of six octets.
    #[inline(always)]
    #[must_use]
    pub const fn new([a, b, c, d, e, f]: [u8; 6]) -> Station {
        Station(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    /// Receiver and sender, from the start of a frame.
    #[inline(always)]
    #[must_use]
    pub fn pair(frame: &[u8; 12]) -> (Station, Station) {
        // Two loads of eight bytes each.
        let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        (
            Station(word(frame.first_chunk()) & ADDRESS),
            Station(word(frame.last_chunk()) >> 16),
        )
    }

    /// Whether it can be the address of one station: neither a group's nor zero.
    #[inline(always)]
    #[must_use]
    pub const fn is_unicast(self) -> bool {
        self.0 & 1 == 0 && self.0 != 0
    }

    /// The six octets.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = self.0.to_le_bytes();
        [a, b, c, d, e, f]
    }
}

/// What came of hearing a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is where it was.
    Known,
    /// It was not known before.
    New,
    /// It was not known before, and one that was silent for longer was forgotten for it.
    Instead,
    /// It was behind another member until now.
    Moved,
    /// An operator put it behind another member.
    Bound,
    /// It is not known, and no more are learned.
    Full,
}

/// A station of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacEntry {
    /// Its address.
    pub station: Station,
    /// The member that it is behind.
    pub member: u16,
    /// Whether an operator put it there.
    pub is_static: bool,
    /// The second at which it was last heard; they wrap.
    pub heard: u16,
}

/// A worker's second may be later than the one it is compared with, by this much at most.
const AHEAD: u16 = 256;

impl MacEntry {
    /// For how many seconds it was silent, in this second.
    #[must_use]
    pub fn silent(&self, second: u16) -> u16 {
        let silent = second.wrapping_sub(self.heard);
        if silent > u16::MAX - AHEAD { 0 } else { silent }
    }
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line {
    words: [AtomicU64; WAYS],
    heard: [AtomicU16; WAYS],
}

/// The stations of one bridge domain.
#[derive(Debug)]
pub struct MacTable {
    lines: Box<[Line]>,
    seed: [u64; 2],
    limit: u32,
    learned: Padded<AtomicU32>,
}

#[inline(always)]
fn word(station: Station, member: u16, is_static: bool) -> u64 {
    station.0
        | u64::from(member & (MAX_MEMBERS as u16 - 1)) << 48
        | if is_static { STATIC } else { 0 }
}

/// A station with its places in one table, in which nobody finds a rule who does not know the seed.
/// The default is that of no station: nobody is found by it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key {
    station: Station,
    /// Its first line, and in the lowest three bits the place where it is looked for first.
    first: u32,
}

impl Key {
    /// The station.
    #[inline(always)]
    #[must_use]
    pub const fn station(self) -> Station {
        self.station
    }
}

impl MacTable {
    /// An empty table for up to `limit` learned stations beside `statics` that are set.
    #[must_use]
    pub fn new(limit: u32, statics: usize, seed: [u64; 2]) -> MacTable {
        let lines = (limit as usize)
            .saturating_add(statics)
            .div_ceil(MEANT)
            .max(2);
        MacTable {
            lines: (0..lines).map(|_| Line::default()).collect(),
            seed,
            limit,
            learned: Padded::default(),
        }
    }

    /// How many stations may be learned.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// How many stations are learned at the moment.
    #[must_use]
    pub fn learned(&self) -> u32 {
        self.learned.load(Relaxed)
    }

    /// Bytes of the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }

    /// A number that nobody foresees who does not know the seed.
    #[inline(always)]
    fn hash(&self, station: Station) -> u64 {
        // Both factors have all of the address, since with one of them addresses in a row would fall in steps.
        let factors = (
            station.0 ^ self.seed[0],
            station.0.rotate_left(36) ^ self.seed[1],
        );
        let product = u128::from(factors.0) * u128::from(factors.1);
        product as u64 ^ (product >> 64) as u64
    }

    /// A station, ready to be looked for.
    #[inline(always)]
    #[must_use]
    pub fn key(&self, station: Station) -> Key {
        let place = (self.hash(station) & 0xffff_ffff) * self.lines.len() as u64;
        let way = ((place & 0xffff_ffff) * WAYS as u64) >> 32;
        Key {
            station,
            first: ((place >> 32) << 3 | way) as u32,
        }
    }

    /// Asks the cache for the line in which a station most probably is.
    #[inline(always)]
    pub fn prefetch(&self, key: Key) {
        weir_cpu::prefetch_address(
            self.lines
                .as_ptr()
                .wrapping_add(key.first as usize >> 3)
                .cast(),
        );
    }

    fn lines(&self, key: Key) -> (&Line, &Line) {
        let other = ((self.hash(key.station) >> 32) * self.lines.len() as u64) >> 32;
        // `key` made the first from a number below the length; the product of a number below 2^32 and the length, over
        // 2^32, is below the length.
        (
            &self.lines[key.first as usize >> 3],
            &self.lines[other as usize],
        )
    }

    /// The line of a station, its place and word there, if it is where it is looked for first, or next to that: one in thirty is,
    /// whose place was taken.
    #[inline(always)]
    fn near(&self, key: Key) -> Option<(&Line, usize, u64)> {
        let (line, place) = (
            self.lines.get(key.first as usize >> 3)?,
            key.first as usize % 8,
        );
        line.at(place, key.station).or_else(|| {
            cold_path();
            line.at(if place + 1 < WAYS { place + 1 } else { 0 }, key.station)
        })
    }

    /// The same wherever it is.
    #[inline(never)]
    fn seek(&self, key: Key) -> Option<(&Line, usize, u64)> {
        let (first, other) = self.lines(key);
        [first, other].into_iter().find_map(|line| {
            line.find(key.station)
                .map(|(place, word)| (line, place, word))
        })
    }

    /// The member that a station is behind; `None` also for groups, which are never noted.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, key: Key) -> Option<u16> {
        match self.near(key) {
            Some((.., word)) => Some(member_of(word)),
            None => self.find_far(key),
        }
    }

    #[inline(never)]
    fn find_far(&self, key: Key) -> Option<u16> {
        self.seek(key).map(|(.., word)| member_of(word))
    }

    /// Whether a station is known to be behind a member. If so, it was heard in this second.
    #[inline(always)]
    #[must_use]
    pub fn is_known(&self, key: Key, member: u16, second: u16) -> bool {
        match self.near(key) {
            Some((line, place, word)) if member_of(word) == member => {
                line.touch(place, second);
                true
            }
            Some(_) => false,
            None => self.is_known_far(key, member, second),
        }
    }

    #[inline(never)]
    fn is_known_far(&self, key: Key, member: u16, second: u16) -> bool {
        let Some((line, place, _)) = self
            .seek(key)
            .filter(|(.., word)| member_of(*word) == member)
        else {
            return false;
        };
        line.touch(place, second);
        true
    }

    /// Whether an operator put a station behind this member.
    #[must_use]
    pub fn is_bound(&self, key: Key, member: u16) -> bool {
        self.seek(key)
            .is_some_and(|(.., word)| word & STATIC != 0 && member_of(word) == member)
    }

    /// Whether an operator put a station behind another member than this.
    #[must_use]
    pub fn is_bound_elsewhere(&self, key: Key, member: u16) -> bool {
        self.seek(key)
            .is_some_and(|(.., word)| word & STATIC != 0 && member_of(word) != member)
    }

    /// Takes note of a frame that came in by `member` in this second. The station of a group is known to nobody, so
    /// do not ask for it.
    pub fn hear(&self, key: Key, member: u16, second: u16) -> Heard {
        let wanted = word(key.station, member, false);
        let Some((line, place, found)) = self.seek(key) else {
            return self.add(key, wanted, second);
        };
        if member_of(found) == member {
            line.touch(place, second);
            return Heard::Known;
        }
        if found & STATIC != 0 {
            return Heard::Bound;
        }
        line.touch(place, second);
        // Who is second here finds it moved already; the next frame tells who was right.
        if line.exchange(place, found, wanted) {
            Heard::Moved
        } else {
            Heard::Known
        }
    }

    /// Learns a station that is in neither of its lines.
    #[inline(never)]
    fn add(&self, key: Key, wanted: u64, second: u16) -> Heard {
        if self.learned() >= self.limit {
            return Heard::Full;
        }
        if self.learned.fetch_add(1, Relaxed) >= self.limit {
            self.learned.fetch_sub(1, Relaxed);
            return Heard::Full;
        }
        let (first, other) = self.lines(key);
        let (first, other) = if first.used() >= MEANT && other.used() < first.used() {
            (other, first)
        } else {
            (first, other)
        };
        if [first, other]
            .iter()
            .any(|line| line.fill(key, wanted, second))
        {
            return Heard::New;
        }
        // One goes and one comes, so the count stays.
        self.learned.fetch_sub(1, Relaxed);
        let silent = |line: &Line| line.longest_silent(second);
        let ((line, (age, place, found)), rival) = match (silent(first), silent(other)) {
            (Some(one), rival) => ((first, one), rival),
            (None, Some(one)) => ((other, one), None),
            (None, None) => return Heard::Full,
        };
        let (line, place, found) = match rival {
            Some((older, place, found)) if older > age => (other, place, found),
            _ => (line, place, found),
        };
        if !line.exchange(place, found, wanted) {
            return Heard::Full;
        }
        line.touch(place, second);
        Heard::Instead
    }

    /// Puts a station behind a member until it is taken away; for the control thread. `false` when both
    /// its lines are full of such: another seed is needed.
    #[must_use]
    pub fn bind(&self, station: Station, member: u16) -> bool {
        self.remove(station);
        let wanted = word(station, member, true);
        let key = self.key(station);
        let (first, other) = self.lines(key);
        if [first, other].iter().any(|line| line.fill(key, wanted, 0)) {
            return true;
        }
        for line in [first, other] {
            for place in 0..WAYS {
                let found = line.words[place].load(Relaxed);
                if found & STATIC == 0 && line.exchange(place, found, wanted) {
                    if found != 0 {
                        self.learned.fetch_sub(1, Relaxed);
                    }
                    return true;
                }
            }
        }
        false
    }

    /// Forgets a station, however it came in.
    pub fn remove(&self, station: Station) -> bool {
        let (first, second) = self.lines(self.key(station));
        let mut removed = false;
        for line in [first, second] {
            for place in 0..WAYS {
                let found = line.words[place].load(Relaxed);
                if found != 0 && found & ADDRESS == station.0 {
                    removed |= self.clear(line, place, found);
                }
            }
        }
        removed
    }

    fn clear(&self, line: &Line, place: usize, found: u64) -> bool {
        let cleared = line.exchange(place, found, 0);
        if cleared && found & STATIC == 0 {
            self.learned.fetch_sub(1, Relaxed);
        }
        cleared
    }

    /// Forgets learned stations that were silent for more than `most` seconds; how many. To be called more often
    /// than seconds wrap.
    pub fn age(&self, second: u16, most: u16) -> usize {
        self.forget(|entry| !entry.is_static && entry.silent(second) > most)
    }

    /// Forgets the stations that `which` names; how many.
    pub fn forget(&self, which: impl Fn(&MacEntry) -> bool) -> usize {
        let mut gone = 0;
        for line in &self.lines {
            for place in 0..WAYS {
                let found = line.words[place].load(Relaxed);
                if found != 0
                    && which(&entry(found, line.heard[place].load(Relaxed)))
                    && self.clear(line, place, found)
                {
                    gone += 1;
                }
            }
        }
        gone
    }

    /// Every station, in no order that means anything. One that moves meanwhile is shown once or not at all.
    pub fn entries(&self) -> impl Iterator<Item = MacEntry> {
        let places = self
            .lines
            .iter()
            .flat_map(|line| line.words.iter().zip(&line.heard));
        places
            .map(|(word, heard)| (word.load(Relaxed), heard.load(Relaxed)))
            .filter(|&(word, _)| word != 0)
            .map(|(word, heard)| entry(word, heard))
    }

    /// Takes over what another table holds, as far as there is room; for a table of another size.
    pub fn take_over(&self, from: &MacTable, wanted: impl Fn(&MacEntry) -> bool) {
        for entry in from.entries().filter(wanted) {
            if entry.is_static {
                let _ = self.bind(entry.station, entry.member);
            } else {
                self.hear(self.key(entry.station), entry.member, entry.heard);
            }
        }
    }
}

#[inline(always)]
fn member_of(word: u64) -> u16 {
    (word >> 48) as u16 & (MAX_MEMBERS as u16 - 1)
}

fn entry(word: u64, heard: u16) -> MacEntry {
    MacEntry {
        station: Station(word & ADDRESS),
        member: member_of(word),
        is_static: word & STATIC != 0,
        heard,
    }
}

impl Line {
    /// The line with a place and its word, if a station is there.
    #[inline(always)]
    fn at(&self, place: usize, station: Station) -> Option<(&Line, usize, u64)> {
        let word = self.words.get(place)?.load(Relaxed);
        // An empty word looks like a station of zeros.
        (word & ADDRESS == station.0 && word != 0).then_some((self, place, word))
    }

    /// Where a station is, and its word.
    fn find(&self, station: Station) -> Option<(usize, u64)> {
        for (place, word) in self.words.iter().enumerate() {
            let word = word.load(Relaxed);
            if word & ADDRESS == station.0 {
                // An empty word looks like a station of zeros.
                return (word != 0).then_some((place, word));
            }
        }
        None
    }

    fn used(&self) -> usize {
        self.words
            .iter()
            .filter(|word| word.load(Relaxed) != 0)
            .count()
    }

    /// Once a second a station at most writes.
    #[inline(always)]
    fn touch(&self, place: usize, second: u16) {
        if let Some(heard) = self
            .heard
            .get(place)
            .filter(|heard| heard.load(Relaxed) != second)
        {
            heard.store(second, Relaxed);
        }
    }

    fn exchange(&self, place: usize, from: u64, to: u64) -> bool {
        self.words[place]
            .compare_exchange(from, to, Relaxed, Relaxed)
            .is_ok()
    }

    /// Puts a word into an empty place, if it can be that where it is looked for first. The second comes before the
    /// word, so that nobody takes it for an old one.
    fn fill(&self, key: Key, wanted: u64, second: u16) -> bool {
        let best = key.first as usize % 8;
        (best..best + WAYS).map(|place| place % WAYS).any(|place| {
            if self.words[place].load(Relaxed) != 0 {
                return false;
            }
            self.heard[place].store(second, Relaxed);
            self.exchange(place, 0, wanted)
        })
    }

    /// How long the learned station that was silent longest was so, its place and its word.
    fn longest_silent(&self, second: u16) -> Option<(u16, usize, u64)> {
        let each = (0..WAYS).map(|place| {
            (
                second.wrapping_sub(self.heard[place].load(Relaxed)),
                place,
                self.words[place].load(Relaxed),
            )
        });
        each.filter(|&(_, _, word)| word & STATIC == 0 && word != 0)
            .max_by_key(|&(silent, ..)| silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_know_the_seed_cannot_crowd_a_line() {
        let (known, secret) = (
            MacTable::new(1024, 0, [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]),
            MacTable::new(1024, 0, [3, 0x1234_5678_9abc_def0]),
        );
        let pair: Vec<*const Line> = known.lines.iter().take(2).map(std::ptr::from_ref).collect();
        let falls_there = |&station: &Station| {
            let (one, other) = known.lines(known.key(station));
            pair.contains(&std::ptr::from_ref(one)) && pair.contains(&std::ptr::from_ref(other))
        };
        let crowd: Vec<Station> = (1..)
            .map(|number| Station(number << 8 | 2))
            .filter(falls_there)
            .take(24)
            .collect();
        let learned = |table: &MacTable| {
            crowd
                .iter()
                .filter(|&&station| table.hear(table.key(station), 1, 1) == Heard::New)
                .count()
        };
        assert_eq!(learned(&known), 2 * WAYS, "two lines are full");
        assert_eq!(learned(&secret), 24, "spread over the other table");
    }
}
