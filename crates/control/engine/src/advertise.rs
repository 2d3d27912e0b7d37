//! Router advertisements: when they are sent, and what they say (RFC 4861 section 6.2).
//!
//! [`Schedule`] is pure: from the advertising interfaces, the solicitations and the time it determines which
//! are due. The first three of an interface come at most 16 seconds apart, later ones at an even choice between
//! a third of the configured interval and all of it; who asks is answered to all, with at least three seconds
//! between two. Part of the control thread. Interfaces whose link-local address is not yet known to be free
//! wait for that. One that ceases says so: a last advertisement of no lifetime tells hosts to look for another router
//! (section 6.2.5), when the configuration takes it back, takes the interface down or away, and when the router stops.

use std::collections::BTreeMap;

use weir_buf::{Flags, Pkt};
use weir_config::{Interface as Wanted, IpNet, RouterAdvertisements, is_link_local};
use weir_wire::ipv6::ALL_NODES;
use weir_wire::nd::{self, Prefix, Router};
use weir_wire::{EtherType, MacAddr, build, ipv6};

use crate::control::Control;

const SECOND: u64 = 1_000_000_000;
/// RFC 4861 section 10: MAX_INITIAL_RTR_ADVERT_INTERVAL and MAX_INITIAL_RTR_ADVERTISEMENTS.
const INITIAL_INTERVAL: u64 = 16 * SECOND;
const INITIAL: u32 = 3;
/// MIN_DELAY_BETWEEN_RAS.
const BETWEEN: u64 = 3 * SECOND;
/// MAX_RA_DELAY_TIME: how long an answer waits at most, so that several routers do not speak at once.
const DELAY: u64 = SECOND / 2;
/// AdvValidLifetime and AdvPreferredLifetime at their defaults, in seconds.
const VALID: u32 = 2_592_000;
const PREFERRED: u32 = 604_800;
/// Prefixes in one advertisement, which then fits the smallest MTU.
const MOST_PREFIXES: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Turn {
    /// What was said last.
    settings: RouterAdvertisements,
    /// When the next one is due.
    next: u64,
    last: Option<u64>,
    sent: u32,
    /// The state of the numbers that spread advertisements.
    random: u64,
}

/// When each interface advertises next.
#[derive(Debug, Default)]
pub(crate) struct Schedule(BTreeMap<u32, Turn>);

impl Schedule {
    /// These interfaces advertise. Returns those that are due, and plans their next.
    pub(crate) fn due(
        &mut self,
        advertising: &BTreeMap<u32, RouterAdvertisements>,
        now: u64,
    ) -> Vec<u32> {
        self.0
            .retain(|interface, _| advertising.contains_key(interface));
        let mut due = Vec::new();
        for (&interface, &settings) in advertising {
            let first = || Turn {
                settings,
                next: now,
                last: None,
                sent: 0,
                random: now ^ u64::from(interface) << 32,
            };
            let turn = self.0.entry(interface).or_insert_with(first);
            turn.settings = settings;
            if turn.next > now {
                continue;
            }
            due.push(interface);
            (turn.last, turn.sent) = (Some(now), turn.sent.saturating_add(1));
            let most = u64::from(settings.interval) * SECOND;
            let wait = most / 3 + turn.below(most - most / 3);
            turn.next = now
                + if turn.sent < INITIAL {
                    wait.min(INITIAL_INTERVAL)
                } else {
                    wait
                }
                .max(BETWEEN);
        }
        due
    }

    /// An interface advertises no more. What it said last, if it said anything.
    fn cease(&mut self, interface: u32) -> Option<RouterAdvertisements> {
        self.0
            .remove(&interface)
            .filter(|turn| turn.sent > 0)
            .map(|turn| turn.settings)
    }

    /// A host asks for routers.
    pub(crate) fn asked(&mut self, interface: u32, now: u64) {
        let Some(turn) = self.0.get_mut(&interface) else {
            return;
        };
        let earliest = turn.last.map_or(now, |last| last + BETWEEN);
        let soon = now.max(earliest) + turn.below(DELAY);
        turn.next = turn.next.min(soon);
    }
}

impl Turn {
    /// An even choice below a bound (xorshift; nothing secret depends on it).
    fn below(&mut self, bound: u64) -> u64 {
        self.random |= 1;
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * u128::from(bound)) >> 64) as u64
    }
}

/// What an interface says of itself and its link.
fn router(settings: &RouterAdvertisements, mac: MacAddr, mtu: u32) -> Router {
    Router {
        hop_limit: 64,
        managed: settings.managed,
        other: settings.other,
        lifetime: settings.lifetime,
        mac: Some(mac),
        mtu: Some(mtu),
        ..Router::default()
    }
}

/// The subnets of an interface as they are advertised: of those of 64 bits they make themselves addresses
/// (RFC 4862 section 5.5.3 wants an interface identifier of 64 bits).
fn prefixes(wanted: &Wanted) -> Vec<Prefix> {
    let mut subnets: Vec<(u128, u8)> = Vec::new();
    for net in &wanted.addresses {
        if let IpNet::V6(net) = net
            && !is_link_local(net.addr().into())
        {
            subnets.push((net.network().into(), net.prefix_len()));
        }
    }
    subnets.dedup();
    let prefix = |&(network, len): &(u128, u8)| {
        Prefix::new(
            network.to_be_bytes(),
            len,
            true,
            len == 64,
            VALID,
            PREFERRED,
        )
    };
    subnets.iter().take(MOST_PREFIXES).map(prefix).collect()
}

impl Control {
    /// Sends the advertisements that are due.
    pub(crate) fn tick_advertisements(&mut self) {
        let now = self.clock.now();
        let mut advertising = BTreeMap::new();
        for (name, wanted) in &self.config.interfaces {
            let (Some(settings), Some(attached)) =
                (wanted.router_advertisements, self.interfaces.get(name))
            else {
                continue;
            };
            let ready = self
                .tables
                .interface(attached.index)
                .is_some_and(|it| it.can_send && it.link_local6().is_some());
            if ready {
                advertising.insert(attached.index, settings);
            }
        }
        for index in self.advertisements.due(&advertising, now) {
            let wanted = self
                .name_of(index)
                .and_then(|name| self.config.interfaces.get(name));
            let Some((wanted, settings)) =
                wanted.and_then(|wanted| Some((wanted, wanted.router_advertisements?)))
            else {
                continue;
            };
            let packet = self.advertisement(index, &settings, &prefixes(wanted));
            self.send(index, packet);
        }
    }

    /// The last words of an interface, while it still can send: nobody shall take it for a default router from now on. Its
    /// subnets stay what they are, and are not spoken of.
    pub(crate) fn cease_advertising(&mut self, index: u32) {
        let can_send = self
            .tables
            .interface(index)
            .is_some_and(|interface| interface.can_send);
        if let Some(settings) = self
            .advertisements
            .cease(index)
            .filter(|settings| can_send && settings.lifetime > 0)
        {
            let packet = self.advertisement(
                index,
                &RouterAdvertisements {
                    lifetime: 0,
                    ..settings
                },
                &[],
            );
            self.send(index, packet);
            // By the tables that are in force.
            self.workers.first_mut().map(|worker| worker.sync());
        }
    }

    /// The router stops.
    pub(crate) fn cease_all_advertising(&mut self) {
        let all: Vec<u32> = self.advertisements.0.keys().copied().collect();
        all.into_iter()
            .for_each(|index| self.cease_advertising(index));
    }

    fn advertisement(
        &self,
        index: u32,
        settings: &RouterAdvertisements,
        prefixes: &[Prefix],
    ) -> Option<Pkt> {
        let interface = self.tables.interface(index)?;
        let router = router(settings, interface.mac, interface.mtu);
        let source = interface.link_local6()?.to_be_bytes();
        let mut packet = self.memory.any().alloc()?;
        if !packet.set_len(ETHERNET + ipv6::MIN_MTU) {
            return None;
        }
        let l3 = build::ethernet_blank(packet.data_mut(), EtherType::IPV6)?;
        let length = nd::router_advertisement(l3, source, ALL_NODES, &router, prefixes)?;
        let (to, from) = packet.data_mut().get_mut(..12)?.split_at_mut(6);
        to.copy_from_slice(&ipv6::multicast_mac(&ALL_NODES).0);
        from.copy_from_slice(&interface.mac.0);
        packet.set_flags(Flags::MULTICAST);
        packet.set_len(ETHERNET + length).then_some(packet)
    }
}

/// Bytes of an Ethernet header.
const ETHERNET: usize = weir_wire::EthernetHeader::LEN;

#[cfg(test)]
mod tests {
    use super::*;

    fn every(interval: u16) -> RouterAdvertisements {
        RouterAdvertisements {
            interval,
            ..RouterAdvertisements::default()
        }
    }

    /// When advertisements of one interface are due within some seconds, tenth by tenth.
    fn times(schedule: &mut Schedule, interval: u16, tenths: std::ops::Range<u64>) -> Vec<u64> {
        let advertising = BTreeMap::from([(3, every(interval))]);
        tenths
            .map(|tenth| tenth * SECOND / 10)
            .filter(|&now| !schedule.due(&advertising, now).is_empty())
            .collect()
    }

    #[test]
    fn the_first_come_soon_and_later_ones_at_the_interval() {
        let mut schedule = Schedule::default();
        let sent = times(&mut schedule, 600, 0..100_000);
        let waits: Vec<u64> = sent
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) / SECOND)
            .collect();
        assert_eq!(sent[0], 0);
        assert!(waits[..2].iter().all(|&wait| wait <= 16), "{waits:?}");
        assert!(
            waits[2..].iter().all(|wait| (200..=600).contains(wait)),
            "{waits:?}"
        );
        assert!(
            waits[2..].iter().max() > waits[2..].iter().min(),
            "not all alike"
        );
        assert!((17..=50).contains(&waits.len()), "{}", waits.len());
    }

    #[test]
    fn who_asks_is_answered_soon_and_a_storm_every_three_seconds() {
        let mut schedule = Schedule::default();
        times(&mut schedule, 600, 0..1000);
        schedule.asked(3, 101 * SECOND);
        let sent = times(&mut schedule, 600, 1010..1100);
        assert!(sent.len() == 1 && sent[0] <= 102 * SECOND, "{sent:?}");
        let advertising = BTreeMap::from([(3, every(600))]);
        let storm = (1100..1400)
            .map(|tenth| tenth * SECOND / 10)
            .filter(|&now| {
                schedule.asked(3, now);
                !schedule.due(&advertising, now).is_empty()
            });
        assert!(
            (6..=11).contains(&storm.count()),
            "thirty seconds of asking"
        );
        schedule.asked(77, 0);
    }

    #[test]
    fn an_interface_that_ceases_is_forgotten() {
        let mut schedule = Schedule::default();
        let both = BTreeMap::from([(1, every(4)), (2, every(4))]);
        assert_eq!(schedule.due(&both, 0), [1, 2]);
        assert_eq!(schedule.due(&BTreeMap::from([(2, every(4))]), 1), [0u32; 0]);
        assert_eq!(schedule.due(&both, 2), [1], "and begins anew");
        assert_eq!(
            (schedule.cease(2), schedule.cease(2), schedule.cease(7)),
            (Some(every(4)), None, None),
            "once"
        );
    }

    #[test]
    fn hosts_make_addresses_of_subnets_of_64_bits() {
        let nets = [
            "fe80::1/64",
            "2001:db8:1::1/64",
            "2001:db8:1::2/64",
            "2001:db8:2::1/96",
            "10.0.0.1/24",
        ];
        let wanted = Wanted {
            addresses: nets.iter().map(|net| net.parse().unwrap()).collect(),
            ..Wanted::default()
        };
        let advertised: Vec<_> = prefixes(&wanted)
            .iter()
            .map(|it| (it.prefix, it.length, it.is_on_link(), it.is_autonomous()))
            .collect();
        let network = |third: u8| [0x20, 1, 0xd, 0xb8, 0, third, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            advertised,
            [(network(1), 64, true, true), (network(2), 96, true, false)]
        );
    }
}
