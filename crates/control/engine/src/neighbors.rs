//! The neighbour table's rules (RFC 826, with the states of RFC 4861 section 7.3).
//!
//! Pure: from the received messages and the time it determines what to do. It does not depend on
//! adjacencies, sockets or threads. A neighbour is asked three times; one that answers is believed
//! for half a minute, then asked again if it is in use; one that does not is remembered as failed for
//! a while, so that senders hear at once.
//!
//! Others decide how many neighbours there seem to be: who scans a subnet those that do not answer, who asks us under many addresses
//! those that nobody asked for. When there is no room the oldest of these go, and not whom we asked and who answered.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use weir_fib::NeighborState;
use weir_wire::MacAddr;

/// Where a neighbour is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) interface: u32,
    pub(crate) address: IpAddr,
}

/// What is known of a neighbour.
#[derive(Clone, Debug)]
pub(crate) struct Neighbor {
    pub(crate) state: NeighborState,
    pub(crate) mac: MacAddr,
    /// When the state began or was confirmed last.
    pub(crate) since: u64,
    asked: u32,
    last_asked: u64,
    /// Routes that need it; it stays while there are any.
    pub(crate) routes: u32,
    /// When it was made, among all; tells who goes when there are too many.
    born: u64,
    /// It spoke to us and never answered a question of ours: nobody knows that it is there.
    unasked: bool,
}

/// What a neighbour said of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) mac: MacAddr,
    /// It spoke to us; others are only believed when they are known already.
    pub(crate) to_us: bool,
    /// The MAC address takes the place of another one (RFC 4861 section 4.4, the override flag).
    pub(crate) replaces: bool,
}

/// What the engine has to do about a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NeighborAction {
    /// It is new: make an adjacency.
    Create(Place),
    /// Its state or address changed.
    Update(Place, NeighborState, MacAddr),
    /// Packets that wait for it may go on (or fail).
    Release(Place),
    /// Ask everybody for it.
    Ask(Place),
    /// Ask itself whether it is still there.
    Probe(Place, MacAddr),
    /// It is gone.
    Remove(Place),
}

const SECOND: u64 = 1_000_000_000;
const ASK_INTERVAL: u64 = 900_000_000;
const MOST_ASKED: u32 = 3;
const REACHABLE_TIME: u64 = 30 * SECOND;
const FAILED_TIME: u64 = 5 * SECOND;
const STALE_TIME: u64 = 600 * SECOND;
/// More than any subnet here has. Beyond it the oldest goes that never answered a question; where there is none, new ones are refused.
const MOST: usize = 1 << 16;
/// Neighbours that nobody knows and no route needs: whoever scans a subnet makes them (RFC 6583). Beyond it the
/// oldest goes.
const MOST_UNRESOLVED: usize = 1 << 12;

/// All neighbours.
#[derive(Debug, Default)]
pub(crate) struct NeighborTable {
    known: BTreeMap<Place, Neighbor>,
    /// Those without an answer that no route needs, the oldest first.
    unresolved: BTreeSet<(u64, Place)>,
    /// Those that are known from what they said alone, and that no route needs, the oldest first.
    unasked: BTreeSet<(u64, Place)>,
    births: u64,
    /// New neighbours that were refused because the table is full.
    pub(crate) refused: u64,
    /// Neighbours that went because there were too many: without an answer, or never asked.
    pub(crate) evicted: u64,
}

impl NeighborTable {
    #[cfg(test)]
    fn get(&self, place: Place) -> Option<&Neighbor> {
        self.known.get(&place)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Place, &Neighbor)> {
        self.known.iter()
    }

    fn create(&mut self, place: Place, now: u64, actions: &mut Vec<NeighborAction>) -> bool {
        if self.known.len() >= MOST {
            let Some(&(_, oldest)) = self.unasked.first().or_else(|| self.unresolved.first())
            else {
                self.refused += 1;
                return false;
            };
            self.evict(oldest, actions);
        }
        self.births += 1;
        let (state, mac, born) = (NeighborState::Incomplete, MacAddr::ZERO, self.births);
        self.known.insert(
            place,
            Neighbor {
                state,
                mac,
                since: now,
                asked: 0,
                last_asked: 0,
                routes: 0,
                born,
                unasked: false,
            },
        );
        self.sort_in(place);
        actions.push(NeighborAction::Create(place));
        if self.unresolved.len() > MOST_UNRESOLVED
            && let Some(&(_, oldest)) = self.unresolved.first()
        {
            self.evict(oldest, actions);
        }
        true
    }

    /// It makes room; what waits for it hears that it is not there.
    fn evict(&mut self, place: Place, actions: &mut Vec<NeighborAction>) {
        self.evicted += 1;
        actions.push(NeighborAction::Release(place));
        self.remove(place, actions);
    }

    /// Keeps the lists of those that may go right, after a neighbour changed.
    fn sort_in(&mut self, place: Place) {
        let Some(neighbor) = self.known.get(&place) else {
            return;
        };
        let answers = !matches!(
            neighbor.state,
            NeighborState::Incomplete | NeighborState::Failed
        );
        let unasked = answers && neighbor.unasked && neighbor.state != NeighborState::Static;
        for (list, is_in) in [
            (&mut self.unresolved, !answers),
            (&mut self.unasked, unasked),
        ] {
            if is_in && neighbor.routes == 0 {
                list.insert((neighbor.born, place));
            } else {
                list.remove(&(neighbor.born, place));
            }
        }
    }

    fn remove(&mut self, place: Place, actions: &mut Vec<NeighborAction>) {
        if let Some(neighbor) = self.known.remove(&place) {
            self.unresolved.remove(&(neighbor.born, place));
            self.unasked.remove(&(neighbor.born, place));
            actions.push(NeighborAction::Remove(place));
        }
    }

    /// Packets wait for it; the worker has just asked once itself.
    pub(crate) fn wanted(&mut self, place: Place, now: u64, actions: &mut Vec<NeighborAction>) {
        if !self.known.contains_key(&place) && !self.create(place, now, actions) {
            return;
        }
        let Some(neighbor) = self.known.get_mut(&place) else {
            return;
        };
        if neighbor.state.is_usable() {
            return actions.push(NeighborAction::Release(place));
        }
        if neighbor.asked == 0 {
            (neighbor.asked, neighbor.last_asked, neighbor.since) = (1, now, now);
        }
    }

    /// It said who it is.
    pub(crate) fn heard(
        &mut self,
        place: Place,
        said: Said,
        now: u64,
        actions: &mut Vec<NeighborAction>,
    ) {
        let Said {
            mac,
            to_us,
            replaces,
        } = said;
        let is_new = !self.known.contains_key(&place);
        if is_new && (!to_us || !self.create(place, now, actions)) {
            return;
        }
        let Some(neighbor) = self.known.get_mut(&place) else {
            return;
        };
        if neighbor.state == NeighborState::Static {
            return;
        }
        neighbor.unasked = is_new || neighbor.unasked && neighbor.asked == 0;
        // RFC 4861 section 7.2.5: it may have moved, but this is not the one to believe; ask the one that is known.
        if !replaces && neighbor.state.is_usable() && neighbor.mac != mac {
            if neighbor.state == NeighborState::Reachable {
                (neighbor.state, neighbor.since, neighbor.asked) = (NeighborState::Stale, now, 0);
                actions.push(NeighborAction::Update(
                    place,
                    NeighborState::Stale,
                    neighbor.mac,
                ));
            }
            return;
        }
        let moved = neighbor.mac != mac || neighbor.state != NeighborState::Reachable;
        (neighbor.state, neighbor.mac, neighbor.since, neighbor.asked) =
            (NeighborState::Reachable, mac, now, 0);
        if moved {
            actions.push(NeighborAction::Update(place, NeighborState::Reachable, mac));
        }
        actions.push(NeighborAction::Release(place));
        self.sort_in(place);
    }

    /// The configuration says who it is; `None` takes that back.
    pub(crate) fn set_static(
        &mut self,
        place: Place,
        mac: Option<MacAddr>,
        now: u64,
        actions: &mut Vec<NeighborAction>,
    ) {
        if !self.known.contains_key(&place) && !self.create(place, now, actions) {
            return;
        }
        let Some(neighbor) = self.known.get_mut(&place) else {
            return;
        };
        (neighbor.since, neighbor.asked) = (now, 0);
        (neighbor.state, neighbor.mac) = match mac {
            Some(mac) => (NeighborState::Static, mac),
            None => (NeighborState::Incomplete, MacAddr::ZERO),
        };
        actions.push(NeighborAction::Update(place, neighbor.state, neighbor.mac));
        actions.push(NeighborAction::Release(place));
        self.sort_in(place);
        self.drop_if_unneeded(place, actions);
    }

    /// Nobody needs it and nobody knows it: it goes, as if it had never been.
    fn drop_if_unneeded(&mut self, place: Place, actions: &mut Vec<NeighborAction>) {
        if self.known.get(&place).is_some_and(|neighbor| {
            neighbor.routes == 0 && neighbor.state == NeighborState::Incomplete
        }) {
            self.remove(place, actions);
        }
    }

    /// A route needs it from now on.
    pub(crate) fn hold_for_route(
        &mut self,
        place: Place,
        now: u64,
        actions: &mut Vec<NeighborAction>,
    ) {
        if (self.known.contains_key(&place) || self.create(place, now, actions))
            && let Some(neighbor) = self.known.get_mut(&place)
        {
            neighbor.routes += 1;
            self.sort_in(place);
        }
    }

    /// A route needs it no more.
    pub(crate) fn let_go(&mut self, place: Place, actions: &mut Vec<NeighborAction>) {
        if let Some(neighbor) = self.known.get_mut(&place) {
            neighbor.routes = neighbor.routes.saturating_sub(1);
            self.sort_in(place);
            self.drop_if_unneeded(place, actions);
        }
    }

    /// The link was lost: whoever comes back may be somebody else. What is configured stays.
    pub(crate) fn unlearn(&mut self, interface: u32, now: u64, actions: &mut Vec<NeighborAction>) {
        let here = self.known.iter_mut().filter(|(place, it)| {
            place.interface == interface && it.state != NeighborState::Static
        });
        let mut changed = Vec::new();
        for (&place, neighbor) in here {
            (neighbor.state, neighbor.mac, neighbor.since, neighbor.asked) =
                (NeighborState::Incomplete, MacAddr::ZERO, now, 0);
            actions.push(NeighborAction::Update(
                place,
                NeighborState::Incomplete,
                MacAddr::ZERO,
            ));
            changed.push(place);
        }
        changed.into_iter().for_each(|place| self.sort_in(place));
    }

    /// Everything on an interface that no longer has this neighbour's subnet goes.
    pub(crate) fn forget(
        &mut self,
        mut gone: impl FnMut(Place) -> bool,
        actions: &mut Vec<NeighborAction>,
    ) {
        let places: Vec<Place> = self
            .known
            .keys()
            .copied()
            .filter(|&place| gone(place))
            .collect();
        for place in places {
            self.remove(place, actions);
        }
    }

    /// Lets time pass. `used` says, and forgets, whether packets were sent to a neighbour.
    pub(crate) fn tick(
        &mut self,
        now: u64,
        mut used: impl FnMut(Place) -> bool,
        actions: &mut Vec<NeighborAction>,
    ) {
        let (mut gone, mut failed) = (Vec::new(), Vec::new());
        for (&place, neighbor) in &mut self.known {
            let was = neighbor.state;
            let age = now.saturating_sub(neighbor.since);
            match neighbor.state {
                NeighborState::Incomplete => ask_again(place, neighbor, now, actions),
                NeighborState::Probe => ask_again(place, neighbor, now, actions),
                NeighborState::Reachable if age >= REACHABLE_TIME => {
                    (neighbor.state, neighbor.since, neighbor.asked) =
                        (NeighborState::Stale, now, 0);
                    actions.push(NeighborAction::Update(
                        place,
                        NeighborState::Stale,
                        neighbor.mac,
                    ));
                    let _ = used(place);
                }
                NeighborState::Stale if used(place) => {
                    (
                        neighbor.state,
                        neighbor.since,
                        neighbor.asked,
                        neighbor.last_asked,
                    ) = (NeighborState::Probe, now, 1, now);
                    actions.push(NeighborAction::Update(
                        place,
                        NeighborState::Probe,
                        neighbor.mac,
                    ));
                    actions.push(NeighborAction::Probe(place, neighbor.mac));
                }
                NeighborState::Stale if age >= STALE_TIME && neighbor.routes == 0 => {
                    gone.push(place)
                }
                NeighborState::Failed if age >= FAILED_TIME => {
                    if neighbor.routes == 0 {
                        gone.push(place);
                    } else {
                        (neighbor.state, neighbor.since, neighbor.asked) =
                            (NeighborState::Incomplete, now, 0);
                        actions.push(NeighborAction::Update(
                            place,
                            NeighborState::Incomplete,
                            neighbor.mac,
                        ));
                    }
                }
                _ => {}
            }
            if was == NeighborState::Probe && neighbor.state == NeighborState::Failed {
                failed.push(place);
            }
        }
        failed.into_iter().for_each(|place| self.sort_in(place));
        for place in gone {
            self.remove(place, actions);
        }
    }
}

/// Asks once more, or gives up.
fn ask_again(place: Place, neighbor: &mut Neighbor, now: u64, actions: &mut Vec<NeighborAction>) {
    if neighbor.asked == 0 || now.saturating_sub(neighbor.last_asked) < ASK_INTERVAL {
        return;
    }
    if neighbor.asked >= MOST_ASKED {
        (neighbor.state, neighbor.since, neighbor.asked) = (NeighborState::Failed, now, 0);
        actions.push(NeighborAction::Update(
            place,
            NeighborState::Failed,
            neighbor.mac,
        ));
        return actions.push(NeighborAction::Release(place));
    }
    (neighbor.asked, neighbor.last_asked) = (neighbor.asked + 1, now);
    actions.push(match neighbor.state {
        NeighborState::Probe => NeighborAction::Probe(place, neighbor.mac),
        _ => NeighborAction::Ask(place),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place {
        interface: 1,
        address: IpAddr::V4(std::net::Ipv4Addr::new(0, 0, 0, 7)),
    };
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);

    fn said(to_us: bool) -> Said {
        Said {
            mac: MAC,
            to_us,
            replaces: true,
        }
    }

    /// Ticks once a tenth of a second up to `until`; returns what was to be done.
    fn pass(table: &mut NeighborTable, from: u64, until: u64, used: bool) -> Vec<NeighborAction> {
        let mut actions = Vec::new();
        (from / 100_000_000..until / 100_000_000)
            .for_each(|tenth| table.tick(tenth * 100_000_000, |_| used, &mut actions));
        actions
    }

    #[test]
    fn one_that_never_answers_is_asked_thrice_fails_and_is_forgotten() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        table.wanted(PLACE, 0, &mut actions);
        assert_eq!(actions, [NeighborAction::Create(PLACE)]);
        let actions = pass(&mut table, 0, 3 * SECOND, false);
        let failed = NeighborAction::Update(PLACE, NeighborState::Failed, MacAddr::ZERO);
        assert_eq!(
            actions,
            [
                NeighborAction::Ask(PLACE),
                NeighborAction::Ask(PLACE),
                failed,
                NeighborAction::Release(PLACE)
            ]
        );
        assert_eq!(
            pass(&mut table, 3 * SECOND, 9 * SECOND, false),
            [NeighborAction::Remove(PLACE)]
        );
        assert!(table.get(PLACE).is_none());
    }

    #[test]
    fn one_that_answers_is_believed_then_probed_if_used() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        table.wanted(PLACE, 0, &mut actions);
        table.heard(PLACE, said(true), SECOND, &mut actions);
        assert_eq!(
            actions[1..],
            [
                NeighborAction::Update(PLACE, NeighborState::Reachable, MAC),
                NeighborAction::Release(PLACE)
            ]
        );
        let actions = pass(&mut table, SECOND, 32 * SECOND, true);
        assert!(actions.contains(&NeighborAction::Probe(PLACE, MAC)));
        let mut actions = Vec::new();
        table.heard(PLACE, said(true), 32 * SECOND, &mut actions);
        assert_eq!(table.get(PLACE).unwrap().state, NeighborState::Reachable);
    }

    #[test]
    fn one_that_is_not_used_ages_out_and_one_with_a_route_stays() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        table.heard(PLACE, said(true), 0, &mut actions);
        assert_eq!(
            pass(&mut table, 0, 640 * SECOND, false).last(),
            Some(&NeighborAction::Remove(PLACE))
        );
        table.hold_for_route(PLACE, 0, &mut actions);
        table.heard(PLACE, said(true), 0, &mut actions);
        pass(&mut table, 0, 700 * SECOND, false);
        assert_eq!(table.get(PLACE).unwrap().state, NeighborState::Stale);
    }

    #[test]
    fn a_lost_link_makes_learnt_ones_unknown() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        table.heard(PLACE, said(true), 0, &mut actions);
        actions.clear();
        table.unlearn(2, 5, &mut actions);
        assert!(actions.is_empty());
        table.unlearn(1, 5, &mut actions);
        assert_eq!(
            actions,
            [NeighborAction::Update(
                PLACE,
                NeighborState::Incomplete,
                MacAddr::ZERO
            )]
        );
    }

    #[test]
    fn strangers_are_not_believed_and_static_ones_not_changed() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        table.heard(PLACE, said(false), 0, &mut actions);
        assert!(table.get(PLACE).is_none());
        table.set_static(PLACE, Some(MAC), 0, &mut actions);
        table.heard(
            PLACE,
            Said {
                mac: MacAddr([2; 6]),
                ..said(true)
            },
            1,
            &mut actions,
        );
        assert_eq!(table.get(PLACE).unwrap().mac, MAC);
    }

    #[test]
    fn a_scan_evicts_the_oldest_that_did_not_answer_and_nobody_else() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        let place = |number: u32| Place {
            interface: 1,
            address: std::net::Ipv6Addr::from(u128::from(number)).into(),
        };
        table.heard(place(1), said(true), 0, &mut actions);
        table.hold_for_route(place(2), 0, &mut actions);
        (10..10 + MOST_UNRESOLVED as u32)
            .for_each(|number| table.wanted(place(number), 0, &mut actions));
        assert_eq!(table.evicted, 0);
        actions.clear();
        (1 << 20..(1 << 20) + 3).for_each(|number| table.wanted(place(number), 1, &mut actions));
        let gone: Vec<_> = actions
            .iter()
            .filter_map(|action| {
                if let NeighborAction::Remove(place) = action {
                    Some(*place)
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(
            (gone, table.evicted),
            (vec![place(10), place(11), place(12)], 3)
        );
        assert!(table.get(place(1)).is_some() && table.get(place(2)).is_some());
        assert_eq!(table.known.len(), MOST_UNRESOLVED + 2);
        // Once a route lets go, it is one of those.
        table.let_go(place(2), &mut actions);
        assert!(table.get(place(2)).is_none() && table.unresolved.len() == MOST_UNRESOLVED);
    }

    #[test]
    fn a_crowd_that_nobody_asked_for_makes_room_and_those_who_answered_stay() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        let place = |number: u32| Place {
            interface: 1,
            address: std::net::Ipv6Addr::from(u128::from(number)).into(),
        };
        // One that was asked for, one that was asked when it had grown stale, one for a route, and one that is configured.
        table.wanted(place(1), 0, &mut actions);
        (1..=3).for_each(|number| table.heard(place(number), said(true), 0, &mut actions));
        table.tick(31 * SECOND, |_| true, &mut actions);
        table.tick(32 * SECOND, |_| true, &mut actions);
        (1..=2)
            .for_each(|number| table.heard(place(number), said(true), 33 * SECOND, &mut actions));
        table.hold_for_route(place(3), 0, &mut actions);
        table.set_static(place(4), Some(MAC), 0, &mut actions);
        // Somebody speaks to us under more addresses than there is room for.
        (10..10 + MOST as u32)
            .for_each(|number| table.heard(place(number), said(true), 34 * SECOND, &mut actions));
        assert_eq!(
            (table.known.len(), table.evicted, table.refused),
            (MOST, 4, 0)
        );
        assert!((1..=4).all(|number| table.get(place(number)).is_some()));
        assert!(
            (10..14).all(|number| table.get(place(number)).is_none())
                && table.get(place(14)).is_some()
        );
        // Those whom packets wait for, who answer, whom a route needs and who are configured find room.
        actions.clear();
        table.wanted(place(1 << 20), 35 * SECOND, &mut actions);
        assert_eq!(
            actions,
            [
                NeighborAction::Release(place(14)),
                NeighborAction::Remove(place(14)),
                NeighborAction::Create(place(1 << 20))
            ]
        );
        table.hold_for_route(place(2 << 20), 35 * SECOND, &mut actions);
        table.set_static(place(3 << 20), Some(MAC), 35 * SECOND, &mut actions);
        assert_eq!(
            (table.known.len(), table.evicted, table.refused),
            (MOST, 7, 0)
        );
        assert_eq!(table.unasked.len() + 7, MOST);
        // A link that is lost makes all of them unknown; they are in one list at a time, and leave it when they go.
        table.unlearn(1, 36 * SECOND, &mut actions);
        assert!(table.unasked.is_empty() && table.unresolved.len() + 4 == MOST);
        table.forget(|_| true, &mut actions);
        assert!(table.known.is_empty() && table.unasked.is_empty() && table.unresolved.is_empty());
    }

    #[test]
    fn one_that_replaces_nothing_only_casts_doubt() {
        let (mut table, mut actions) = (NeighborTable::default(), Vec::new());
        let timid = |mac| Said {
            mac,
            to_us: true,
            replaces: false,
        };
        table.heard(PLACE, timid(MAC), 0, &mut actions);
        assert_eq!(
            table.get(PLACE).unwrap().mac,
            MAC,
            "where nothing is known it is believed"
        );
        actions.clear();
        table.heard(PLACE, timid(MacAddr([2; 6])), 1, &mut actions);
        assert_eq!(
            actions,
            [NeighborAction::Update(PLACE, NeighborState::Stale, MAC)]
        );
        table.heard(PLACE, timid(MacAddr([2; 6])), 2, &mut actions);
        assert_eq!(
            (table.get(PLACE).unwrap().state, actions.len()),
            (NeighborState::Stale, 1)
        );
        table.heard(PLACE, timid(MAC), 3, &mut actions);
        assert_eq!(table.get(PLACE).unwrap().state, NeighborState::Reachable);
        table.heard(
            PLACE,
            Said {
                mac: MacAddr([2; 6]),
                ..said(true)
            },
            4,
            &mut actions,
        );
        assert_eq!(table.get(PLACE).unwrap().mac, MacAddr([2; 6]));
    }
}
