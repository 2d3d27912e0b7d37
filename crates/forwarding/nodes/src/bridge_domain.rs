//! A bridge domain as workers see it: its members, its stations, its settings.
//!
//! The control thread makes a new one for each change and carries over what lives longer: the table of
//! stations, the counters, the storm meters. Members keep their numbers, by which the stations name
//! them, as long as they are members; a number is given again only when no station names it any more.
//!
//! Storm meters are shared by all workers, since a storm may come in by any of a member's queues: one
//! exchange for each frame that is to be copied, which costs little beside the copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_fib::MacTable;
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_wire::EthernetHeader;

use crate::Hosts;

/// A bridge domain.
#[derive(Clone, Debug)]
pub struct BridgeDomain {
    /// Name.
    pub name: Arc<str>,
    /// By member number.
    pub members: Vec<Option<Member>>,
    /// Who is behind which member.
    pub stations: Arc<MacTable>,
    /// What is done with frames.
    pub settings: BridgeSettings,
    /// How much a member may send for flooding.
    pub storms: StormLimits,
    /// Stations whose addresses nobody else need be asked for.
    pub hosts: Arc<Hosts>,
    /// What was seen, one block a worker.
    pub counters: Arc<[Padded<BridgeCounters>]>,
    /// By member number; see [`BridgeDomain::ready`].
    exits: Box<[Exit]>,
}

/// What the usual case needs to know of the member that it sends to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exit {
    pub(crate) interface: u32,
    /// Bytes behind the Ethernet header that it takes, and one more; 0 when nothing goes there in the usual way.
    pub(crate) room: u32,
    pub(crate) group: u16,
}

/// What a bridge domain does with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeSettings {
    /// Learn where stations are.
    pub learn: bool,
    /// Send frames to stations that are known.
    pub forward: bool,
    /// Send frames for a group to all members.
    pub flood_groups: bool,
    /// Send frames for a station that is not known to all members.
    pub flood_unknown: bool,
}

impl Default for BridgeSettings {
    fn default() -> BridgeSettings {
        BridgeSettings {
            learn: true,
            forward: true,
            flood_groups: true,
            flood_unknown: true,
        }
    }
}

/// An interface in a bridge domain.
#[derive(Clone, Debug)]
pub struct Member {
    /// The interface.
    pub interface: u32,
    /// Members of one split-horizon group do not send to one another; 0 is no group.
    pub group: u8,
    /// Whether it is the routed side of the domain.
    pub is_bvi: bool,
    /// The longest frame that it takes, without tags.
    pub longest: u32,
    /// What it sent for flooding.
    pub meters: Arc<Meters>,
}

/// How many frames to flood a member may send a second; `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StormLimits {
    /// To groups, everybody among them.
    pub groups: Option<u32>,
    /// To stations that are not known.
    pub unknown: Option<u32>,
}

/// The storm meters of a member.
#[derive(Debug, Default)]
pub struct Meters {
    pub(crate) groups: Meter,
    pub(crate) unknown: Meter,
}

/// When the frames taken so far are paid for, in nanoseconds of the router's clock (the generic cell rate
/// algorithm, ITU-T I.371).
#[derive(Debug, Default)]
pub(crate) struct Meter(AtomicU64);

/// How far a member may be ahead of its rate: a tenth of a second, and at least this many frames.
const BURST: u64 = 16;

impl Meter {
    /// Whether one more frame may pass.
    pub(crate) fn takes(&self, rate: u32, now: u64) -> bool {
        let price = 1_000_000_000 / u64::from(rate.max(1));
        let most = (price * (BURST - 1)).max(100_000_000);
        let mut paid = self.0.load(Relaxed);
        // Another worker may be quicker a few times; who is always late has met a storm.
        for _ in 0..8 {
            let from = paid.max(now);
            if from - now > most {
                return false;
            }
            match self
                .0
                .compare_exchange_weak(paid, from + price, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(other) => paid = other,
            }
        }
        false
    }
}

/// What one worker saw in a bridge domain.
#[derive(Debug, Default)]
pub struct BridgeCounters {
    /// Stations learned.
    pub learned: Counter,
    /// Stations that came in by another member than before.
    pub moved: Counter,
    /// Frames whose sender was not learned for lack of room.
    pub not_learned: Counter,
    /// Stations forgotten for others, since their places in the table were full.
    pub displaced: Counter,
    /// Frames for groups that were sent to several members.
    pub flooded_groups: Counter,
    /// Frames for stations that were not known, sent to several members.
    pub flooded_unknown: Counter,
    /// Copies that were not made, since the frame is longer than a member takes.
    pub too_long: Counter,
    /// Questions for addresses of the list that were not flooded.
    pub questions: Counter,
}

macro_rules! sums {
    ($($name:ident $about:literal;)*) => {
        /// The counters of a bridge domain at one moment, all workers together.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct BridgeSums {
            $(#[doc = $about] pub $name: u64,)*
        }

        impl BridgeSums {
            fn add(&mut self, block: &BridgeCounters) {
                $(self.$name += block.$name.get();)*
            }
        }
    };
}

sums! {
    learned "Stations learned.";
    moved "Stations that came in by another member than before.";
    not_learned "Frames whose sender was not learned for lack of room.";
    displaced "Stations forgotten for others.";
    flooded_groups "Frames for groups that were sent to several members.";
    flooded_unknown "Frames for stations that were not known.";
    too_long "Copies that were not made for their length.";
    questions "Questions for addresses of the list that were not flooded.";
}

impl BridgeDomain {
    /// A domain without members.
    #[must_use]
    pub fn new(
        name: Arc<str>,
        stations: Arc<MacTable>,
        counters: Arc<[Padded<BridgeCounters>]>,
    ) -> BridgeDomain {
        let (settings, storms) = (BridgeSettings::default(), StormLimits::default());
        let hosts = Arc::default();
        BridgeDomain {
            name,
            members: Vec::new(),
            stations,
            settings,
            storms,
            hosts,
            counters,
            exits: Box::default(),
        }
    }

    /// The domain once all its fields are as they shall be.
    #[must_use]
    pub fn ready(mut self) -> BridgeDomain {
        let exit = |member: &Option<Member>| match member {
            Some(member) if self.settings.forward && !member.is_bvi => {
                let room = (member.longest + 1).saturating_sub(EthernetHeader::LEN as u32);
                Exit {
                    interface: member.interface,
                    room,
                    group: member.group.into(),
                }
            }
            _ => Exit::default(),
        };
        self.exits = self.members.iter().map(exit).collect();
        self
    }

    #[inline(always)]
    pub(crate) fn exits(&self) -> &[Exit] {
        &self.exits
    }

    /// Counters for `workers` workers.
    #[must_use]
    pub fn counters(workers: usize) -> Arc<[Padded<BridgeCounters>]> {
        (0..workers).map(|_| Padded::default()).collect()
    }

    /// A member by its number.
    #[inline(always)]
    #[must_use]
    pub fn member(&self, number: u16) -> Option<&Member> {
        self.members.get(number as usize)?.as_ref()
    }

    /// What all workers saw.
    #[must_use]
    pub fn sums(&self) -> BridgeSums {
        let mut sums = BridgeSums::default();
        self.counters.iter().for_each(|block| sums.add(block));
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_lets_a_burst_pass_and_then_the_rate() {
        const SECOND: u64 = 1_000_000_000;
        for (rate, burst) in [(1, 16), (100, 16), (1000, 101), (1_000_000, 100_001)] {
            let meter = Meter::default();
            let taken =
                |now: u64, frames: usize| (0..frames).filter(|_| meter.takes(rate, now)).count();
            assert_eq!(taken(5 * SECOND, 200_000), burst, "rate {rate}");
            let later = taken(6 * SECOND, 2_000_000);
            assert!(
                later.abs_diff(burst.min(rate as usize)) <= 1,
                "rate {rate}: {later}"
            );
            let mut steady = 0;
            for tenth in 0..100 {
                steady += taken(7 * SECOND + tenth * SECOND / 10, 150_000);
            }
            assert!(
                steady <= 10 * rate as usize + burst + 1,
                "rate {rate}: {steady} in ten seconds"
            );
        }
    }
}
