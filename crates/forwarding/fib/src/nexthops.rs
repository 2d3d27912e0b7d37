//! Groups and adjacencies: the snapshot that workers read and the table that makes it.
//!
//! [`Nexthops`] is immutable and cheap to clone; it is published as a part of the workers' tables. A
//! group of one path is 16 bytes with the adjacency inside; only a group of several has a bucket table
//! elsewhere. What is out of range is [`DROP`], so nothing here can fail or panic.
//!
//! [`NexthopTable`] belongs to the control thread. It keeps each group once, with the number of routes
//! that use it, and rebuilds the buckets of exactly those groups that hold a path which goes down or
//! comes up: what that costs does not depend on how many routes there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::group::{Group, GroupError, LabelStack, MAX_BUCKETS, Path};
use crate::lfib::{Labelled, MAX_LABELS};
use crate::{Adjacency, AdjacencyKind};

/// The adjacency, and the group, of what has no route.
pub const DROP: u32 = 0;

/// The adjacencies of a group of several paths.
#[derive(Clone, Debug)]
struct Buckets {
    /// How many there are, less one; a power of two less one.
    mask: u32,
    table: [u32; MAX_BUCKETS],
}

/// A group as workers read it, in half a cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(32))]
struct GroupEntry {
    /// The adjacency of bucket 0, and of all when there is one path.
    first: u32,
    /// The label stack entry that a swap writes, when all packets get one label and go to `below`; else 0. With [`PUSHED`]
    /// when it is also what a push writes.
    swap: u32,
    buckets: Option<Arc<Buckets>>,
    /// The neighbour that all packets go to, when there is one bucket and it leads to one; put in when
    /// the snapshot is made.
    neighbor: Option<Arc<Adjacency>>,
    /// The neighbour below the label of `swap`.
    below: Option<Arc<Adjacency>>,
}

const _: () = assert!(size_of::<GroupEntry>() == 32);

/// In the place of an entry's time to live, which it does not have yet.
const PUSHED: u32 = 1;

impl GroupEntry {
    fn new(buckets: &[u32]) -> GroupEntry {
        let first = buckets.first().copied().unwrap_or(DROP);
        let count = buckets.len().min(MAX_BUCKETS);
        if count < 2 || !count.is_power_of_two() {
            return GroupEntry {
                first,
                ..GroupEntry::default()
            };
        }
        let mut table = [DROP; MAX_BUCKETS];
        table
            .iter_mut()
            .zip(buckets)
            .for_each(|(place, &bucket)| *place = bucket);
        GroupEntry {
            first,
            buckets: Some(Arc::new(Buckets {
                mask: count as u32 - 1,
                table,
            })),
            ..GroupEntry::default()
        }
    }
}

/// Groups and adjacencies as of one moment.
#[derive(Clone, Debug, Default)]
pub struct Nexthops {
    groups: Arc<[GroupEntry]>,
    adjacencies: Arc<[Option<Arc<Adjacency>>]>,
    has_labels: bool,
}

/// [`Nexthops`] as plain slices: for loops over many packets, which would otherwise follow the same
/// two pointers again for each.
#[derive(Clone, Copy, Debug)]
pub struct NexthopView<'a> {
    groups: &'a [GroupEntry],
    adjacencies: &'a [Option<Arc<Adjacency>>],
    has_labels: bool,
}

impl<'a> NexthopView<'a> {
    /// As [`Nexthops::choose`].
    #[inline(always)]
    #[must_use]
    pub fn choose(self, group: u32, hash: impl FnOnce() -> u32) -> u32 {
        let Some(entry) = self.groups.get(group as usize) else {
            return DROP;
        };
        match &entry.buckets {
            None => entry.first,
            Some(buckets) => buckets.table[(hash() & buckets.mask) as usize % MAX_BUCKETS],
        }
    }

    /// The neighbour that all packets of a group go to, if there is one: most groups are of one path
    /// to a neighbour, and this says so in one step.
    #[inline(always)]
    #[must_use]
    pub fn only_neighbor(self, group: u32) -> Option<&'a Adjacency> {
        self.groups.get(group as usize)?.neighbor.as_deref()
    }

    /// The labels that all packets of a group get, with the neighbour below, if they all get the same.
    #[inline(always)]
    #[must_use]
    pub fn only_labelled(self, group: u32) -> Option<&'a Labelled> {
        let entry = self.groups.get(group as usize)?;
        if entry.buckets.is_some() {
            None
        } else {
            self.adjacency(entry.first)?.labelled()
        }
    }

    /// The one label that all packets of a group get in the place of theirs, as an entry without class, bottom and time
    /// to live, and the neighbour that they go to; `None` for a group that does anything else.
    #[inline(always)]
    #[must_use]
    pub fn only_swap(self, group: u32) -> Option<(u32, &'a Adjacency)> {
        let entry = self.groups.get(group as usize)?;
        Some((entry.swap & !PUSHED, entry.below.as_deref()?))
    }

    /// The same for a push: the one label that all packets of a group get, its time to live and class theirs.
    #[inline(always)]
    #[must_use]
    pub fn only_push(self, group: u32) -> Option<(u32, &'a Adjacency)> {
        let entry = self
            .groups
            .get(group as usize)
            .filter(|entry| entry.swap & PUSHED != 0)?;
        Some((entry.swap & !PUSHED, entry.below.as_deref()?))
    }

    /// As [`Nexthops::buckets`].
    #[must_use]
    pub fn buckets(self, group: u32) -> &'a [u32] {
        match self.groups.get(group as usize) {
            Some(GroupEntry {
                buckets: Some(buckets),
                ..
            }) => &buckets.table[..(buckets.mask as usize + 1).min(MAX_BUCKETS)],
            Some(entry) => std::slice::from_ref(&entry.first),
            None => &[DROP],
        }
    }

    /// As [`Nexthops::adjacency`].
    #[inline(always)]
    #[must_use]
    pub fn adjacency(self, number: u32) -> Option<&'a Adjacency> {
        self.adjacencies.get(number as usize)?.as_deref()
    }

    /// Whether any path pushes labels.
    #[inline(always)]
    #[must_use]
    pub fn has_labels(self) -> bool {
        self.has_labels
    }

    /// As [`Nexthops::kind`].
    #[inline(always)]
    #[must_use]
    pub fn kind(self, number: u32) -> AdjacencyKind {
        self.adjacency(number)
            .map_or(AdjacencyKind::Drop, |adjacency| adjacency.kind)
    }
}

impl Nexthops {
    /// The same as slices.
    #[inline(always)]
    #[must_use]
    pub fn view(&self) -> NexthopView<'_> {
        NexthopView {
            groups: &self.groups,
            adjacencies: &self.adjacencies,
            has_labels: self.has_labels,
        }
    }

    /// The adjacency for a packet of `group`. The flow's hash is only asked for when there are
    /// several paths.
    #[inline(always)]
    #[must_use]
    pub fn choose(&self, group: u32, hash: impl FnOnce() -> u32) -> u32 {
        self.view().choose(group, hash)
    }

    /// An adjacency.
    #[inline(always)]
    #[must_use]
    pub fn adjacency(&self, number: u32) -> Option<&Adjacency> {
        self.view().adjacency(number)
    }

    /// What an adjacency does; what does not exist drops.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self, number: u32) -> AdjacencyKind {
        self.view().kind(number)
    }

    /// The adjacency of each bucket of a group.
    #[must_use]
    pub fn buckets(&self, group: u32) -> &[u32] {
        self.view().buckets(group)
    }
}

/// What a swap and, mostly, a push writes when it is one entry; else 0.
fn one_entry(labelled: &Labelled) -> u32 {
    labelled.only_swap().map_or(0, |entry| {
        if labelled.only_push().is_some() {
            entry | PUSHED
        } else {
            entry
        }
    })
}

/// A group that is kept.
#[derive(Debug)]
struct Kept {
    group: Group,
    users: u32,
    /// The adjacency of each path, with labels where it has some.
    ends: Vec<u32>,
    /// Its content may be replaced: equal groups are not this one.
    own: bool,
}

/// An adjacency that is kept.
#[derive(Debug)]
struct End {
    adjacency: Arc<Adjacency>,
    up: bool,
    /// Groups with a path that ends here, with labels or without.
    groups: BTreeSet<u32>,
    /// Stacks of labels over this neighbour: the number of the adjacency, and how many paths use it.
    stacks: HashMap<LabelStack, (u32, u32)>,
    /// Goes with the last of these groups.
    is_abandoned: bool,
}

impl End {
    fn new(adjacency: Adjacency) -> End {
        End {
            adjacency: Arc::new(adjacency),
            up: true,
            groups: BTreeSet::new(),
            stacks: HashMap::new(),
            is_abandoned: false,
        }
    }
}

/// The cold side: makes [`Nexthops`].
#[derive(Debug)]
pub struct NexthopTable {
    groups: Vec<Option<Kept>>,
    numbers: HashMap<Group, u32>,
    free_groups: Vec<u32>,
    adjacencies: Vec<Option<End>>,
    free_adjacencies: Vec<u32>,
    /// The adjacencies of each interface: there may be many interfaces, each with few.
    by_interface: BTreeMap<u32, BTreeSet<u32>>,
    entries: Vec<GroupEntry>,
    snapshot: Option<Nexthops>,
}

impl Default for NexthopTable {
    fn default() -> NexthopTable {
        NexthopTable::new()
    }
}

impl NexthopTable {
    /// A table with nothing but adjacency and group [`DROP`].
    #[must_use]
    pub fn new() -> NexthopTable {
        NexthopTable {
            groups: vec![None],
            numbers: HashMap::new(),
            free_groups: Vec::new(),
            adjacencies: vec![Some(End::new(Adjacency::unreachable()))],
            free_adjacencies: Vec::new(),
            by_interface: BTreeMap::new(),
            entries: vec![GroupEntry::default()],
            snapshot: None,
        }
    }

    /// What workers shall read from now on. Cheap when nothing has changed since the last call.
    #[must_use]
    pub fn snapshot(&mut self) -> Nexthops {
        let only = |entry: &GroupEntry| {
            let end = self.adjacencies.get(entry.first as usize)?.as_ref()?;
            entry.buckets.is_none().then_some(&end.adjacency)
        };
        let settle = |entry: &GroupEntry| GroupEntry {
            neighbor: only(entry)
                .filter(|only| only.kind == AdjacencyKind::Neighbor)
                .cloned(),
            swap: only(entry)
                .and_then(|only| only.labelled())
                .map_or(0, one_entry),
            below: only(entry)
                .and_then(|only| {
                    only.labelled()
                        .filter(|labels| labels.only_swap().is_some())
                })
                .map(|labels| labels.below.clone()),
            ..entry.clone()
        };
        let make = || Nexthops {
            groups: self.entries.iter().map(settle).collect(),
            adjacencies: self
                .adjacencies
                .iter()
                .map(|end| end.as_ref().map(|end| end.adjacency.clone()))
                .collect(),
            has_labels: self
                .adjacencies
                .iter()
                .flatten()
                .any(|end| end.adjacency.kind == AdjacencyKind::Labelled),
        };
        self.snapshot.get_or_insert_with(make).clone()
    }

    /// Whether something changed since the last snapshot, so that groups may be missing from it.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.snapshot.is_none()
    }

    /// Adds an adjacency; returns its number.
    pub fn add_adjacency(&mut self, adjacency: Adjacency) -> u32 {
        self.snapshot = None;
        let interface = adjacency.interface;
        let end = Some(End::new(adjacency));
        let number = match self.free_adjacencies.pop() {
            Some(number) if (number as usize) < self.adjacencies.len() => {
                self.adjacencies[number as usize] = end;
                number
            }
            _ => {
                self.adjacencies.push(end);
                (self.adjacencies.len() - 1) as u32
            }
        };
        self.note_interface(number, None, Some(interface));
        number
    }

    /// An adjacency is of another interface now.
    fn note_interface(&mut self, number: u32, before: Option<u32>, now: Option<u32>) {
        if before == now {
            return;
        }
        if let Some(before) = before
            && let Some(here) = self.by_interface.get_mut(&before)
        {
            here.remove(&number);
            if here.is_empty() {
                self.by_interface.remove(&before);
            }
        }
        if let Some(now) = now {
            self.by_interface.entry(now).or_default().insert(number);
        }
    }

    /// Puts another adjacency in the place of one; paths that end there stay, and their labels. `false` when
    /// there is none.
    pub fn replace_adjacency(&mut self, number: u32, adjacency: Adjacency) -> bool {
        let Some(end) = self.end_mut(number).filter(|_| number != DROP) else {
            return false;
        };
        let mut moved = vec![(number, end.adjacency.interface, adjacency.interface)];
        end.adjacency = Arc::new(adjacency);
        let below = end.adjacency.clone();
        let stacks: Vec<_> = end
            .stacks
            .iter()
            .map(|(stack, &(place, _))| (place, Labelled::new(below.clone(), stack)))
            .collect();
        for (place, labelled) in stacks {
            if let Some(over) = self.end_mut(place) {
                let adjacency = Adjacency::over(labelled);
                moved.push((place, over.adjacency.interface, adjacency.interface));
                over.adjacency = Arc::new(adjacency);
            }
        }
        for (number, before, now) in moved {
            self.note_interface(number, Some(before), Some(now));
        }
        self.snapshot = None;
        true
    }

    /// The adjacency of a path: with labels, one of its own over the neighbour's, which paths of the same labels
    /// share.
    fn take_end(&mut self, path: &Path) -> u32 {
        if path.labels.labels.is_empty() {
            return path.adjacency;
        }
        let Some(end) = self.end_mut(path.adjacency) else {
            return DROP;
        };
        if let Some((number, users)) = end.stacks.get_mut(&path.labels) {
            *users += 1;
            return *number;
        }
        let over = Adjacency::over(Labelled::new(end.adjacency.clone(), &path.labels));
        let number = self.add_adjacency(over);
        if let Some(end) = self.end_mut(path.adjacency) {
            end.stacks.insert(path.labels.clone(), (number, 1));
        }
        number
    }

    /// The counterpart of [`NexthopTable::take_end`].
    fn give_end(&mut self, path: &Path) {
        let Some(end) = self.end_mut(path.adjacency) else {
            return;
        };
        let Some((number, users)) = end.stacks.get_mut(&path.labels) else {
            return;
        };
        *users -= 1;
        if *users == 0 {
            let number = *number;
            end.stacks.remove(&path.labels);
            self.remove_adjacency(number);
        }
    }

    /// Whether a path of a new group can be.
    fn check_path(&self, path: &Path) -> Result<(), GroupError> {
        let adjacency = self
            .adjacency(path.adjacency)
            .ok_or(GroupError::UnknownAdjacency(path.adjacency))?;
        match path.labels.labels.len() {
            0 => Ok(()),
            _ if adjacency.kind != AdjacencyKind::Neighbor => {
                Err(GroupError::LabelsToNobody(path.adjacency))
            }
            many if many > MAX_LABELS => Err(GroupError::TooManyLabels(many)),
            _ => Ok(()),
        }
    }

    /// Removes an adjacency. `false`, and nothing is done, while a group has a path that ends there.
    fn remove_adjacency(&mut self, number: u32) -> bool {
        if number == DROP
            || !self
                .end_mut(number)
                .is_some_and(|end| end.groups.is_empty())
        {
            return false;
        }
        if let Some(gone) = self
            .adjacencies
            .get_mut(number as usize)
            .and_then(Option::take)
        {
            self.note_interface(number, Some(gone.adjacency.interface), None);
        }
        self.free_adjacencies.push(number);
        self.snapshot = None;
        true
    }

    /// Removes an adjacency now, or when the last group is gone that has a path that ends there.
    pub fn abandon_adjacency(&mut self, number: u32) {
        if !self.remove_adjacency(number)
            && let Some(end) = self.end_mut(number).filter(|_| number != DROP)
        {
            end.is_abandoned = true;
        }
    }

    /// The adjacencies of these paths that nobody else knows go, if no group has a path that ends there.
    fn remove_abandoned(&mut self, paths: &[Path]) {
        for path in paths {
            if self
                .end_mut(path.adjacency)
                .is_some_and(|end| end.is_abandoned)
            {
                self.remove_adjacency(path.adjacency);
            }
        }
    }

    /// An adjacency.
    #[must_use]
    pub fn adjacency(&self, number: u32) -> Option<&Arc<Adjacency>> {
        self.adjacencies
            .get(number as usize)?
            .as_ref()
            .map(|end| &end.adjacency)
    }

    /// All adjacencies with their numbers.
    pub fn adjacencies(&self) -> impl Iterator<Item = (u32, &Arc<Adjacency>)> {
        self.adjacencies
            .iter()
            .enumerate()
            .filter_map(|(number, end)| Some((number as u32, &end.as_ref()?.adjacency)))
    }

    /// The adjacencies of an interface with their numbers.
    pub fn adjacencies_of(&self, interface: u32) -> impl Iterator<Item = (u32, &Arc<Adjacency>)> {
        let here = self.by_interface.get(&interface).into_iter().flatten();
        here.filter_map(|&number| Some((number, self.adjacency(number)?)))
    }

    /// Takes paths to an adjacency out of use, or in again, in all groups that have one. Returns how
    /// many groups changed.
    pub fn set_up(&mut self, number: u32, up: bool) -> usize {
        let Some(end) = self.end_mut(number).filter(|end| end.up != up) else {
            return 0;
        };
        end.up = up;
        let groups: Vec<u32> = end.groups.iter().copied().collect();
        for &group in &groups {
            self.rebuild(group);
        }
        groups.len()
    }

    /// The number of a group; a user more. Equal groups have one number.
    ///
    /// # Errors
    /// When a path ends in an adjacency that does not exist, or has labels that nobody could get.
    pub fn acquire(&mut self, group: Group) -> Result<u32, GroupError> {
        if let Some(&number) = self.numbers.get(&group) {
            if let Some(Some(kept)) = self.groups.get_mut(number as usize) {
                kept.users += 1;
            }
            return Ok(number);
        }
        let number = self.enter(group.clone(), false)?;
        self.numbers.insert(group, number);
        Ok(number)
    }

    /// The number of a group that nobody else gets for an equal one, so that [`NexthopTable::replace_own`] can put other
    /// paths into it.
    ///
    /// # Errors
    /// As [`NexthopTable::acquire`].
    pub fn acquire_own(&mut self, group: Group) -> Result<u32, GroupError> {
        self.enter(group, true)
    }

    /// One user more of a group that there is.
    pub fn acquire_again(&mut self, number: u32) {
        if let Some(Some(kept)) = self.groups.get_mut(number as usize) {
            kept.users += 1;
        }
    }

    /// Puts other paths into a group of its own: one write, however many routes lead over it. `false`, and nothing is done,
    /// when it is no such group, is so already, or a path cannot be.
    pub fn replace_own(&mut self, number: u32, group: Group) -> bool {
        let is_other = |kept: &Kept| kept.own && kept.group != group;
        let sound = group
            .paths()
            .iter()
            .all(|path| self.check_path(path).is_ok());
        let Some(Some(kept)) = self
            .groups
            .get_mut(number as usize)
            .filter(|kept| sound && kept.as_ref().is_some_and(is_other))
        else {
            return false;
        };
        let before = std::mem::replace(&mut kept.group, group.clone());
        // What the old and the new one share is not let go in between.
        let ends = group
            .paths()
            .iter()
            .map(|path| self.take_end(path))
            .collect();
        for path in before.paths() {
            if let Some(end) = self.end_mut(path.adjacency) {
                end.groups.remove(&number);
            }
            self.give_end(path);
        }
        for path in group.paths() {
            if let Some(end) = self.end_mut(path.adjacency) {
                end.groups.insert(number);
            }
        }
        if let Some(Some(kept)) = self.groups.get_mut(number as usize) {
            kept.ends = ends;
        }
        self.remove_abandoned(before.paths());
        self.rebuild(number);
        true
    }

    fn enter(&mut self, group: Group, own: bool) -> Result<u32, GroupError> {
        group
            .paths()
            .iter()
            .try_for_each(|path| self.check_path(path))?;
        let number = self.free_groups.pop().unwrap_or_else(|| {
            self.groups.push(None);
            self.entries.push(GroupEntry::default());
            (self.groups.len() - 1) as u32
        });
        for path in group.paths() {
            if let Some(end) = self.end_mut(path.adjacency) {
                end.groups.insert(number);
            }
        }
        let ends = group
            .paths()
            .iter()
            .map(|path| self.take_end(path))
            .collect();
        if let Some(place) = self.groups.get_mut(number as usize) {
            *place = Some(Kept {
                group,
                users: 1,
                ends,
                own,
            });
        }
        self.rebuild(number);
        Ok(number)
    }

    /// A user less; without users the group goes, and its number may come again. Only after no route
    /// uses it any more (see the order of changes in the crate's description).
    pub fn release(&mut self, number: u32) {
        let Some(place) = self.groups.get_mut(number as usize) else {
            return;
        };
        let Some(kept) = place else { return };
        kept.users -= 1;
        if kept.users > 0 {
            return;
        }
        let Some(kept) = place.take() else { return };
        if !kept.own {
            self.numbers.remove(&kept.group);
        }
        for path in kept.group.paths() {
            if let Some(end) = self.end_mut(path.adjacency) {
                end.groups.remove(&number);
            }
            self.give_end(path);
        }
        self.remove_abandoned(kept.group.paths());
        if let Some(entry) = self.entries.get_mut(number as usize) {
            *entry = GroupEntry::default();
        }
        self.free_groups.push(number);
        self.snapshot = None;
    }

    /// The adjacency of each path of a group, in their order: with labels, the one that pushes them.
    #[must_use]
    pub fn ends(&self, number: u32) -> &[u32] {
        self.groups
            .get(number as usize)
            .and_then(Option::as_ref)
            .map_or(&[], |kept| &kept.ends)
    }

    /// The adjacency of each bucket of a group, as of now.
    #[must_use]
    pub fn buckets(&self, number: u32) -> &[u32] {
        NexthopView {
            groups: &self.entries,
            adjacencies: &[],
            has_labels: false,
        }
        .buckets(number)
    }

    /// How many groups have a path that ends in an adjacency.
    #[must_use]
    pub fn groups_over(&self, number: u32) -> usize {
        let over = |end: &End| end.groups.len();
        match self
            .adjacencies
            .get(number as usize)
            .and_then(Option::as_ref)
        {
            // Groups are noted at the neighbour below the labels.
            Some(end) if end.adjacency.kind == AdjacencyKind::Labelled => self
                .groups
                .iter()
                .flatten()
                .filter(|kept| kept.ends.contains(&number))
                .count(),
            end => end.map_or(0, over),
        }
    }

    /// How many routes use a group.
    #[must_use]
    pub fn users(&self, number: u32) -> u32 {
        self.groups
            .get(number as usize)
            .and_then(Option::as_ref)
            .map_or(0, |kept| kept.users)
    }

    /// A group by its number.
    #[must_use]
    pub fn group(&self, number: u32) -> Option<&Group> {
        self.groups
            .get(number as usize)?
            .as_ref()
            .map(|kept| &kept.group)
    }

    /// Bytes that groups and adjacencies occupy, here and in a snapshot.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let paths: usize = self
            .groups()
            .map(|(_, group, _)| size_of_val(group.paths()))
            .sum();
        let buckets: usize = self
            .entries
            .iter()
            .filter(|entry| entry.buckets.is_some())
            .count()
            * size_of::<Buckets>();
        let groups = self.groups.len()
            * (size_of::<Option<Kept>>() + size_of::<(Group, u32)>() + 2 * size_of::<GroupEntry>());
        let ends = self.adjacencies.len()
            * (size_of::<Option<End>>() + size_of::<Adjacency>() + size_of::<Arc<Adjacency>>());
        // A group's paths are kept twice: with it, and as the key that it is found by.
        2 * paths + buckets + groups + ends
    }

    /// All groups: number, paths, users.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group, u32)> {
        let row = |(number, kept): (usize, &'_ Option<Kept>)| kept.as_ref().map(|_| number as u32);
        self.groups
            .iter()
            .enumerate()
            .filter_map(row)
            .filter_map(|number| {
                let kept = self.groups.get(number as usize)?.as_ref()?;
                Some((number, &kept.group, kept.users))
            })
    }

    /// Works a group's buckets out anew.
    fn rebuild(&mut self, number: u32) {
        let Some(Some(Kept { group, ends, .. })) = self.groups.get(number as usize) else {
            return;
        };
        let up = |adjacency: u32| {
            self.adjacencies
                .get(adjacency as usize)
                .and_then(Option::as_ref)
                .is_some_and(|end| end.up)
        };
        let entry = GroupEntry::new(&group.buckets(ends, up));
        if let Some(place) = self.entries.get_mut(number as usize) {
            *place = entry;
        }
        self.snapshot = None;
    }

    fn end_mut(&mut self, number: u32) -> Option<&mut End> {
        self.adjacencies.get_mut(number as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests;
