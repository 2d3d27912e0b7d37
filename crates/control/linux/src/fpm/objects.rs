//! Next-hop objects of zebra: single next hops and groups of them, by number.
//!
//! A route of the FPM stream names an object. An object is resolved to the paths that it leads over at the moment, so that
//! the RIB can write them into one next-hop group, however many routes name the object. When a member of a group changes,
//! the groups that have it are resolved again. Members that are unknown are left out: zebra sends members before their
//! group, and after a failure it sends them again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_control::{NextHop, Target};

/// Objects that are remembered, at most.
const MOST_OBJECTS: usize = 1 << 16;
/// Members of a group, at most; more than any of Weir's groups can have.
const MOST_MEMBERS: usize = 256;
/// Members of all groups together, at most. An object that changes has all groups resolved that it is a member of, so this also
/// bounds what one message leads to.
const MOST_MEMBERSHIPS: usize = 1 << 16;

/// What an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// One next hop, or a special destination.
    Single(Target),
    /// Other objects with their weights.
    Group(Vec<(u32, u32)>),
}

/// All objects of one session.
#[derive(Debug, Default)]
pub struct Objects {
    objects: BTreeMap<u32, Object>,
    /// Groups by their members.
    users: BTreeSet<(u32, u32)>,
}

impl Objects {
    /// An object is new or has changed. Returns it and all groups that have it, with what they lead to now; `None` when
    /// there is no room.
    pub fn set(&mut self, id: u32, object: Object) -> Option<Vec<(u32, Arc<Target>)>> {
        if !self.objects.contains_key(&id) && self.objects.len() >= MOST_OBJECTS {
            return None;
        }
        if let Object::Group(members) = &object
            && self.users.len() + members.len().min(MOST_MEMBERS) > MOST_MEMBERSHIPS
        {
            return None;
        }
        self.forget_members(id);
        if let Object::Group(members) = &object {
            let members = members.iter().take(MOST_MEMBERS);
            self.users.extend(members.map(|(member, _)| (*member, id)));
        }
        self.objects.insert(id, object);
        let groups = self
            .users
            .range((id, 0)..=(id, u32::MAX))
            .map(|(_, group)| *group);
        let changed: Vec<u32> = std::iter::once(id).chain(groups).collect();
        let resolved = changed
            .into_iter()
            .filter_map(|id| Some((id, Arc::new(self.resolve(id)?))));
        Some(resolved.collect())
    }

    /// An object is gone.
    pub fn remove(&mut self, id: u32) {
        self.forget_members(id);
        self.objects.remove(&id);
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Forgets all, when another session begins.
    pub fn clear(&mut self) {
        self.objects.clear();
        self.users.clear();
    }

    fn forget_members(&mut self, id: u32) {
        if let Some(Object::Group(members)) = self.objects.get(&id) {
            for (member, _) in members {
                self.users.remove(&(*member, id));
            }
        }
    }

    fn resolve(&self, id: u32) -> Option<Target> {
        match self.objects.get(&id)? {
            Object::Single(target) => Some(target.clone()),
            Object::Group(members) => {
                let mut paths = Vec::new();
                for (member, weight) in members.iter().take(MOST_MEMBERS) {
                    // Groups have no groups as members: the kernel does not allow it.
                    if let Some(Object::Single(Target::Paths(hops))) = self.objects.get(member) {
                        let weighted = |hop: &NextHop| NextHop {
                            weight: *weight,
                            ..hop.clone()
                        };
                        paths.extend(hops.iter().map(weighted));
                    }
                }
                Some(if paths.is_empty() {
                    Target::Unreachable
                } else {
                    Target::Paths(paths.into())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(interface: u32, weight: u32) -> NextHop {
        NextHop {
            interface,
            gateway: None,
            weight,
            labels: [].into(),
        }
    }

    fn single(interface: u32) -> Object {
        Object::Single(Target::Paths([hop(interface, 1)].into()))
    }

    fn paths(hops: &[(u32, u32)]) -> Target {
        Target::Paths(
            hops.iter()
                .map(|(interface, weight)| hop(*interface, *weight))
                .collect(),
        )
    }

    fn plain(changed: Option<Vec<(u32, Arc<Target>)>>) -> Vec<(u32, Target)> {
        changed
            .unwrap()
            .into_iter()
            .map(|(id, target)| (id, (*target).clone()))
            .collect()
    }

    #[test]
    fn a_group_follows_its_members() {
        let mut objects = Objects::default();
        // The group may come first, after a failure.
        let group = Object::Group(vec![(1, 1), (2, 3)]);
        assert_eq!(plain(objects.set(9, group)), [(9, Target::Unreachable)]);
        assert_eq!(
            plain(objects.set(1, single(5))),
            [(1, paths(&[(5, 1)])), (9, paths(&[(5, 1)]))]
        );
        assert_eq!(
            plain(objects.set(2, single(6))),
            [(2, paths(&[(6, 1)])), (9, paths(&[(5, 1), (6, 3)]))]
        );
        assert_eq!(
            plain(objects.set(2, single(7)))[1],
            (9, paths(&[(5, 1), (7, 3)]))
        );
        // A group that changes its members does not follow the old ones any more.
        assert_eq!(
            plain(objects.set(9, Object::Group(vec![(2, 1)]))),
            [(9, paths(&[(7, 1)]))]
        );
        assert_eq!(plain(objects.set(1, single(8))), [(1, paths(&[(8, 1)]))]);
        objects.remove(9);
        assert_eq!(plain(objects.set(2, single(8))), [(2, paths(&[(8, 1)]))]);
    }

    #[test]
    fn there_is_a_limit_of_objects() {
        let mut objects = Objects::default();
        for id in 0..MOST_OBJECTS as u32 {
            assert!(objects.set(id, single(1)).is_some());
        }
        assert_eq!(objects.set(u32::MAX, single(1)), None);
        assert!(objects.set(0, single(2)).is_some());
    }

    /// A change of one object would else resolve all groups of all objects.
    #[test]
    fn there_is_a_limit_of_members_in_all_groups() {
        let mut objects = Objects::default();
        let members: Vec<_> = (0..MOST_MEMBERS as u32).map(|id| (id, 1)).collect();
        let groups = (MOST_MEMBERSHIPS / MOST_MEMBERS) as u32;
        for id in 1000..1000 + groups {
            assert!(objects.set(id, Object::Group(members.clone())).is_some());
        }
        assert_eq!(objects.set(1, Object::Group(vec![(2, 1)])), None);
        assert_eq!(plain(objects.set(0, single(1))).len(), 1 + groups as usize);
        objects.remove(1000);
        assert!(objects.set(1, Object::Group(vec![(2, 1)])).is_some());
    }
}
