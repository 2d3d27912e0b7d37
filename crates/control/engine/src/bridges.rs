//! Bridge domains on the control side: their members' numbers, their stations' tables, their ageing.
//!
//! What lives longer than a change (stations, counters, storm meters) is kept here and handed into each new
//! [`BridgeDomain`] that workers see. A member that left keeps its number until no worker sees it any more and
//! its stations are forgotten; only then is the number given again.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use weir_config::{Bridge, BridgeRole};
use weir_fib::{MAX_MEMBERS, MacTable, Station};
use weir_nodes::{
    BridgeCounters, BridgeDomain, BridgeSettings, Hosts, Member, Meters, StormLimits,
};
use weir_port::interface::Input;
use weir_ring::Padded;

use crate::control::Control;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// How often stations age, in seconds.
pub(crate) const AGEING_INTERVAL: u64 = 5;

/// A bridge domain and what outlives its changes.
pub(crate) struct LiveBridge {
    /// Its number in the workers' tables.
    pub(crate) number: u16,
    pub(crate) stations: Arc<MacTable>,
    pub(crate) counters: Arc<[Padded<BridgeCounters>]>,
    /// By member number.
    pub(crate) members: Vec<Option<LiveMember>>,
    /// Numbers of members that left and whose stations are still to be forgotten.
    leaving: Vec<u16>,
    /// Stations that were silent for too long.
    pub(crate) aged: u64,
    /// How many static entries the table has room for.
    statics: usize,
}

/// A member of a live bridge domain.
pub(crate) struct LiveMember {
    pub(crate) interface: String,
    pub(crate) role: BridgeRole,
    meters: Arc<Meters>,
}

/// Numbers that nobody outside can guess.
fn seed() -> [u64; 2] {
    let random = || RandomState::new().build_hasher().finish();
    [random(), random()]
}

fn station(mac: weir_config::MacAddr) -> Station {
    Station::new(mac.0)
}

impl LiveBridge {
    fn number_of(&self, interface: &str) -> Option<u16> {
        let place = self.members.iter().position(|member| {
            member
                .as_ref()
                .is_some_and(|member| member.interface == interface)
        });
        place.and_then(|place| u16::try_from(place).ok())
    }

    /// The lowest number that no member and no station has.
    fn free_number(&self) -> Option<u16> {
        let all = 0..u16::try_from(MAX_MEMBERS).unwrap_or(u16::MAX);
        let mut free = all.filter(|number| {
            self.members
                .get(usize::from(*number))
                .is_none_or(Option::is_none)
        });
        free.find(|number| !self.leaving.contains(number))
    }
}

impl Control {
    pub(crate) fn create_bridge(&mut self, name: &str, wanted: &Bridge) -> Result<(), String> {
        let taken = |number: u16| self.bridges.values().any(|live| live.number == number);
        let number = (0..u16::MAX)
            .find(|&number| !taken(number))
            .ok_or("there are 65535 bridge domains already")?;
        let live = LiveBridge {
            number,
            stations: Arc::new(MacTable::new(wanted.settings.mac_limit, 0, seed())),
            counters: BridgeDomain::counters(self.workers.len()),
            members: Vec::new(),
            leaving: Vec::new(),
            aged: 0,
            statics: 0,
        };
        self.bridges.insert(name.to_owned(), live);
        self.refresh_bridge(name);
        Ok(())
    }

    pub(crate) fn delete_bridge(&mut self, name: &str) {
        if let Some(live) = self.bridges.remove(name)
            && let Some(place) = self.tables.bridges.get_mut(usize::from(live.number))
        {
            *place = None;
        }
        self.stale = true;
    }

    /// Settings, among them how many stations there may be.
    pub(crate) fn set_bridge(&mut self, name: &str, to: &Bridge) -> Result<(), String> {
        if self
            .bridges
            .get(name)
            .is_some_and(|live| live.stations.limit() != to.settings.mac_limit)
        {
            self.new_stations(name)?;
        }
        self.refresh_bridge(name);
        Ok(())
    }

    pub(crate) fn join_bridge(
        &mut self,
        name: &str,
        interface: &str,
        role: BridgeRole,
    ) -> Result<(), String> {
        let live = self
            .bridges
            .get_mut(name)
            .ok_or_else(|| format!("there is no bridge domain {name}"))?;
        let number = live
            .free_number()
            .ok_or("the bridge domain has too many members")?;
        let place = usize::from(number);
        if live.members.len() <= place {
            live.members.resize_with(place + 1, || None);
        }
        live.members[place] = Some(LiveMember {
            interface: interface.to_owned(),
            role,
            meters: Arc::default(),
        });
        self.refresh(interface);
        self.refresh_routed_side(name, interface);
        let result = self.bind_all(name);
        if result.is_err() {
            self.leave_bridge(name, interface)?;
        }
        result
    }

    pub(crate) fn leave_bridge(&mut self, name: &str, interface: &str) -> Result<(), String> {
        let Some(live) = self.bridges.get_mut(name) else {
            return Ok(());
        };
        if let Some(number) = live.number_of(interface) {
            live.members[usize::from(number)] = None;
            live.leaving.push(number);
        }
        self.refresh(interface);
        self.refresh_routed_side(name, interface);
        self.refresh_bridge(name);
        Ok(())
    }

    /// With whom the BVI shares its link is the other members' matter.
    fn refresh_routed_side(&mut self, name: &str, than: &str) {
        let members = self
            .bridges
            .get(name)
            .into_iter()
            .flat_map(|live| live.members.iter().flatten());
        let bvi = members
            .filter(|member| member.role == BridgeRole::Bvi && member.interface != than)
            .map(|bvi| bvi.interface.clone())
            .next();
        if let Some(bvi) = bvi {
            self.refresh(&bvi);
        }
    }

    /// The interface's bridge domain, if it is in one, and its number there.
    pub(crate) fn bridge_of(&self, interface: &str) -> Option<(&str, Input, BridgeRole)> {
        self.bridges.iter().find_map(|(name, live)| {
            let member = live.number_of(interface)?;
            let role = live.members.get(usize::from(member))?.as_ref()?.role;
            Some((
                name.as_str(),
                Input::Bridge {
                    domain: live.number,
                    member,
                },
                role,
            ))
        })
    }

    /// What is bound in a domain: static entries, and its BVI's own address.
    fn bound(&self, name: &str) -> Vec<(Station, u16)> {
        let (Some(live), Some(wanted)) = (self.bridges.get(name), self.config.bridges.get(name))
        else {
            return Vec::new();
        };
        let entries = wanted
            .static_macs
            .iter()
            .filter_map(|entry| Some((station(entry.mac), live.number_of(&entry.interface)?)));
        let bvi = live
            .members
            .iter()
            .flatten()
            .find(|member| member.role == BridgeRole::Bvi)
            .map(|member| &member.interface);
        let own = bvi.and_then(|bvi| {
            Some((
                Station::new(self.tables.interface(self.index_of(bvi))?.mac.0),
                live.number_of(bvi)?,
            ))
        });
        entries.chain(own).collect()
    }

    /// Binds what shall be bound and nothing else; in another table where this one has no room.
    pub(crate) fn bind_all(&mut self, name: &str) -> Result<(), String> {
        let bound = self.bound(name);
        let Some(live) = self.bridges.get(name) else {
            return Ok(());
        };
        live.stations
            .forget(|entry| entry.is_static && !bound.contains(&(entry.station, entry.member)));
        let known = |&(station, member): &(Station, u16)| {
            live.stations.is_bound(live.stations.key(station), member)
        };
        let roomy = bound.len() <= live.statics;
        if !(roomy
            && bound
                .iter()
                .all(|it| known(it) || live.stations.bind(it.0, it.1)))
        {
            return self.new_stations(name);
        }
        self.refresh_bridge(name);
        Ok(())
    }

    /// Another table of stations, of the wanted size, with all that is known.
    fn new_stations(&mut self, name: &str) -> Result<(), String> {
        let bound = self.bound(name);
        let Some(limit) = self
            .config
            .bridges
            .get(name)
            .map(|wanted| wanted.settings.mac_limit)
        else {
            return Ok(());
        };
        let Some(live) = self.bridges.get_mut(name) else {
            return Ok(());
        };
        let room = bound.len().next_power_of_two().max(8);
        for _ in 0..16 {
            let table = MacTable::new(limit, room, seed());
            if bound
                .iter()
                .all(|&(station, member)| table.bind(station, member))
            {
                table.take_over(&live.stations, |entry| !entry.is_static);
                (live.stations, live.statics) = (Arc::new(table), room);
                self.refresh_bridge(name);
                return Ok(());
            }
        }
        Err(format!("{name} has no room for its static entries"))
    }

    /// Works a domain out anew and puts it into the master tables.
    pub(crate) fn refresh_bridge(&mut self, name: &str) {
        let (Some(live), Some(wanted)) = (self.bridges.get(name), self.config.bridges.get(name))
        else {
            return;
        };
        let member = |member: &Option<LiveMember>| {
            let member = member.as_ref()?;
            let interface = self.tables.interface(self.index_of(&member.interface))?;
            Some(Member {
                interface: interface.index,
                group: if let BridgeRole::Member(group) = member.role {
                    group
                } else {
                    0
                },
                is_bvi: member.role == BridgeRole::Bvi,
                longest: interface.mtu + ETHERNET,
                meters: member.meters.clone(),
            })
        };
        let mut domain =
            BridgeDomain::new(name.into(), live.stations.clone(), live.counters.clone());
        domain.members = live.members.iter().map(member).collect();
        let settings = &wanted.settings;
        domain.settings = BridgeSettings {
            learn: settings.learn,
            forward: settings.unicast_forward,
            flood_groups: settings.unicast_flood,
            flood_unknown: settings.unknown_unicast_flood,
        };
        let limit = |rate: u32| Some(rate).filter(|&rate| rate != 0);
        domain.storms = StormLimits {
            groups: limit(settings.flood_limit),
            unknown: limit(settings.unknown_unicast_limit),
        };
        let mut hosts = Hosts::new(
            wanted
                .arp_entries
                .iter()
                .map(|(address, mac)| (*address, weir_wire::MacAddr(mac.0))),
        );
        (hosts.answers, hosts.forwards) = (settings.arp_termination, settings.arp_unicast_forward);
        domain.hosts = Arc::new(hosts);
        let place = usize::from(live.number);
        if self.tables.bridges.len() <= place {
            self.tables.bridges.resize(place + 1, None);
        }
        self.tables.bridges[place] = Some(Arc::new(domain.ready()));
        self.stale = true;
    }

    /// Forgets the stations of members that no worker sees any more; called when what changed is published.
    pub(crate) fn forget_leaving_members(&mut self) {
        for live in self
            .bridges
            .values_mut()
            .filter(|live| !live.leaving.is_empty())
        {
            let leaving = std::mem::take(&mut live.leaving);
            live.stations
                .forget(|entry| leaving.contains(&entry.member));
        }
    }

    /// Forgets stations that were silent for too long.
    pub(crate) fn age_bridges(&mut self) {
        let second = (self.clock.now() / 1_000_000_000) as u16;
        let ages: BTreeMap<&str, u16> = self
            .config
            .bridges
            .iter()
            .map(|(name, bridge)| {
                (
                    name.as_str(),
                    u16::from(bridge.settings.mac_age_minutes) * 60,
                )
            })
            .collect();
        for (name, live) in &mut self.bridges {
            if let Some(&most) = ages.get(name.as_str()).filter(|&&most| most != 0) {
                live.aged += live.stations.age(second, most) as u64;
            }
        }
    }
}

/// What the API shows.
impl Control {
    pub(crate) fn bridge_views(&self) -> weir_api::BridgeDomains {
        let view = |(name, wanted): (&String, &Bridge)| {
            Some(self.bridge_view(name, wanted, self.bridges.get(name)?))
        };
        weir_api::BridgeDomains {
            bridges: self.config.bridges.iter().filter_map(view).collect(),
        }
    }

    fn bridge_view(
        &self,
        name: &str,
        wanted: &Bridge,
        live: &LiveBridge,
    ) -> weir_api::BridgeDomain {
        let sums = self
            .tables
            .bridge(live.number)
            .map(BridgeDomain::sums)
            .unwrap_or_default();
        let member = |member: &LiveMember| weir_api::BridgeMember {
            interface: member.interface.clone(),
            bvi: member.role == BridgeRole::Bvi,
            group: if let BridgeRole::Member(group) = member.role {
                group
            } else {
                0
            },
            can_send: self
                .tables
                .interface(self.index_of(&member.interface))
                .is_some_and(|interface| interface.can_send),
        };
        let settings = &wanted.settings;
        weir_api::BridgeDomain {
            name: name.to_owned(),
            members: live.members.iter().flatten().map(member).collect(),
            learn: settings.learn,
            forward: settings.unicast_forward,
            flood: settings.unicast_flood,
            unknown_unicast_flood: settings.unknown_unicast_flood,
            age_seconds: Some(u32::from(settings.mac_age_minutes) * 60).filter(|&age| age != 0),
            stations: live.stations.learned(),
            station_limit: live.stations.limit(),
            table_bytes: live.stations.bytes() as u64,
            learned: sums.learned,
            moved: sums.moved,
            aged: live.aged,
            displaced: sums.displaced,
            not_learned: sums.not_learned,
            flooded: sums.flooded_groups,
            unknown_unicast_flooded: sums.flooded_unknown,
            copies_too_long: sums.too_long,
            flood_limit: Some(settings.flood_limit).filter(|limit| *limit > 0),
            unknown_unicast_limit: Some(settings.unknown_unicast_limit).filter(|limit| *limit > 0),
            arp_termination: settings.arp_termination,
            arp_unicast_forward: settings.arp_unicast_forward,
            arp_entries: wanted.arp_entries.len() as u64,
            arp_terminated: sums.questions,
        }
    }

    /// Stations of one domain or of all. What a worker changes meanwhile may be shown or not.
    pub(crate) fn l2fib_view(&self, of: Option<&str>) -> weir_api::L2fib {
        let second = (self.clock.now() / 1_000_000_000) as u16;
        let mut stations = Vec::new();
        for (name, live) in self
            .bridges
            .iter()
            .filter(|(name, _)| of.is_none_or(|of| of == *name))
        {
            let ages = self
                .config
                .bridges
                .get(name)
                .is_some_and(|bridge| bridge.settings.mac_age_minutes != 0);
            for entry in live.stations.entries() {
                let Some(Some(member)) = live.members.get(usize::from(entry.member)) else {
                    continue;
                };
                stations.push(weir_api::L2Station {
                    bridge: name.clone(),
                    mac: weir_config::MacAddr(entry.station.octets()).to_string(),
                    interface: member.interface.clone(),
                    is_static: entry.is_static,
                    age: (ages && !entry.is_static).then(|| u32::from(entry.silent(second))),
                });
            }
        }
        weir_api::L2fib { stations }
    }
}
