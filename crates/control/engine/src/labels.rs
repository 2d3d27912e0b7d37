//! Incoming labels, as the control side changes them.
//!
//! An entry leads to a group, as a route does, and waits for the publication of a new one as a route does: a worker
//! must know the group before it meets the label. A label may have an entry of each source (configuration, zebra, kernel);
//! the one of the lowest distance is in the table, and the next one takes its place when it goes.

use std::collections::BTreeMap;

use weir_api::{LabelMeaning, LabelMode, LabelReply, LabelSource};
use weir_config::{LabelEntry, TtlMode};
use weir_control::RouteSource;
use weir_fib::{Adjacency, AdjacencyKind, LabelEntry as Entry, LabelStack, Payload};

use crate::control::Control;

/// The labels that a path pushes.
pub(crate) fn pushed(path: &weir_config::Path) -> LabelStack {
    let (mode, class, entropy) = (
        ttl_mode(path.ttl_mode),
        path.traffic_class,
        path.entropy_label,
    );
    LabelStack {
        mode,
        class,
        entropy,
        ..LabelStack::of(&path.labels)
    }
}

fn ttl_mode(mode: TtlMode) -> weir_fib::TtlMode {
    match mode {
        TtlMode::Uniform => weir_fib::TtlMode::Uniform,
        TtlMode::Pipe => weir_fib::TtlMode::Pipe,
        TtlMode::ShortPipe => weir_fib::TtlMode::ShortPipe,
    }
}

/// A change of a label that waits until workers know its group.
pub(crate) struct WaitingLabel {
    pub(crate) label: u32,
    pub(crate) source: RouteSource,
    /// The number of the protocol that made it; 0 where there is none.
    pub(crate) protocol: u8,
    /// The new entry; none when it goes.
    pub(crate) entry: Option<Entry>,
}

/// What a source does with a label.
#[derive(Clone, Copy, Debug)]
struct Known {
    entry: Entry,
    protocol: u8,
    generation: u8,
}

/// The entries of all sources, at most one of each for a label of 20 bits. Sources are in the order of their distance.
#[derive(Debug, Default)]
pub(crate) struct LabelRib {
    entries: BTreeMap<(u32, RouteSource), Known>,
    generations: [u8; RouteSource::ALL.len()],
}

impl LabelRib {
    /// Sets or removes an entry; returns the one before.
    fn change(&mut self, change: &WaitingLabel) -> Option<Entry> {
        let key = (change.label, change.source);
        let old = match change.entry {
            None => self.entries.remove(&key),
            Some(entry) => {
                let known = Known {
                    entry,
                    protocol: change.protocol,
                    generation: self.generations[change.source as usize],
                };
                self.entries.insert(key, known)
            }
        };
        old.map(|known| known.entry)
    }

    fn best(&self, label: u32) -> Option<(RouteSource, Entry)> {
        let all = (label, RouteSource::Local)..=(label, RouteSource::Neighbor);
        let (key, known) = self.entries.range(all).next()?;
        Some((key.1, known.entry))
    }

    /// Begins a new generation of a source: what it does not set again is stale.
    pub(crate) fn begin_generation(&mut self, source: RouteSource) {
        let generation = &mut self.generations[source as usize];
        *generation = generation.wrapping_add(1);
    }

    /// The stale labels of a source, with their protocols.
    pub(crate) fn stale(&self, source: RouteSource) -> Vec<(u32, u8)> {
        let current = self.generations[source as usize];
        let is_stale = |(key, known): &(&(u32, RouteSource), &Known)| {
            key.1 == source && known.generation != current
        };
        let stale = self.entries.iter().filter(is_stale);
        stale.map(|(key, known)| (key.0, known.protocol)).collect()
    }
}

impl Control {
    /// Says what is done with a label, in the place of what was.
    pub(crate) fn add_label(&mut self, label: u32, entry: &LabelEntry) -> Result<(), String> {
        let group = match (&entry.via, entry.lookup_vrf()) {
            (Some(via), _) => self.group_of(None, via, None)?,
            (None, table) => {
                let vrf = table.flatten();
                let table = self.place_of_vrf(vrf).ok_or_else(|| {
                    format!(
                        "label {label}: there is no table {}",
                        vrf.unwrap_or_default()
                    )
                })?;
                let end = self.lookup_end(table);
                self.single(end)
            }
        };
        let mode = ttl_mode(entry.ttl_mode);
        self.waiting_labels.push(WaitingLabel {
            label,
            source: RouteSource::Static,
            protocol: 0,
            entry: Some(Entry::new(group, mode, Payload::Either)),
        });
        Ok(())
    }

    /// The adjacency that looks packets up in a table; one a table, made when it is first wanted.
    pub(crate) fn lookup_end(&mut self, table: u32) -> u32 {
        if let Some(&number) = self.lookup_ends.get(&table) {
            return number;
        }
        let number = self.nexthops.add_adjacency(Adjacency::lookup_in(table));
        self.lookup_ends.insert(table, number);
        number
    }

    /// Puts the labels that waited into the table. Workers know their groups.
    pub(crate) fn settle_labels(&mut self) {
        for change in std::mem::take(&mut self.waiting_labels) {
            self.change_label(&change);
        }
    }

    fn change_label(&mut self, change: &WaitingLabel) {
        let old = self.labels.change(change);
        let best = self.labels.best(change.label);
        let entry = best.map_or(Entry::NONE, |(_, entry)| entry);
        // Labels beyond 20 bits are refused before; such a one would not be in the table.
        let _ = self.tables.lfib.set(change.label, entry);
        if let Some(old) = old {
            self.release_group(old.group());
        }
    }

    /// Forgets a label of the configuration.
    pub(crate) fn remove_label(&mut self, label: u32) {
        if !self.waiting_labels.is_empty() {
            self.settle_or_log();
        }
        self.remove_label_of(label, RouteSource::Static);
    }

    /// Forgets a label of a source; the entry of the next source takes its place.
    pub(crate) fn remove_label_of(&mut self, label: u32, source: RouteSource) {
        let change = WaitingLabel {
            label,
            source,
            protocol: 0,
            entry: None,
        };
        // Another source's entry may wait for its group; so changes stay in order.
        if self.waiting_labels.is_empty() {
            self.change_label(&change);
        } else {
            self.waiting_labels.push(change);
        }
    }

    /// The entries that are asked for.
    pub(crate) fn labels_where(
        &self,
        label: Option<u32>,
        after: Option<u32>,
        most: usize,
    ) -> Vec<LabelReply> {
        let wanted = |(number, _): &(u32, Entry)| {
            label.is_none_or(|label| label == *number) && after.is_none_or(|after| *number > after)
        };
        let ordinary = self
            .tables
            .lfib
            .labels()
            .filter(wanted)
            .map(|(label, entry)| self.label_view(label, entry));
        // The special ones are below all others.
        self.special_labels()
            .filter(|it| {
                label.is_none_or(|label| label == it.label)
                    && after.is_none_or(|after| it.label > after)
            })
            .chain(ordinary)
            .take(most)
            .collect()
    }

    /// Labels that workers act by without an entry, where an interface takes labels.
    fn special_labels(&self) -> impl Iterator<Item = LabelReply> {
        let takes_labels = self
            .config
            .interfaces
            .values()
            .any(|interface| interface.mpls);
        let all = if takes_labels {
            &LabelMeaning::ALL[..]
        } else {
            &[]
        };
        all.iter().map(|&(label, meaning)| LabelReply {
            label,
            source: LabelSource::Special,
            meaning: Some(meaning),
            ttl_mode: LabelMode::Uniform,
            lookup: None,
            vrf: None,
            group: None,
            paths: Vec::new(),
        })
    }

    fn label_view(&self, label: u32, entry: Entry) -> LabelReply {
        let paths = self
            .nexthops
            .group(entry.group())
            .map_or(&[][..], |group| group.paths());
        let (ends, buckets) = (
            self.nexthops.ends(entry.group()),
            self.nexthops.buckets(entry.group()),
        );
        let share = |end: u32| buckets.iter().filter(|&&bucket| bucket == end).count() as u32;
        let end = |path: &weir_fib::Path| {
            self.nexthops
                .adjacency(path.adjacency)
                .filter(|end| end.kind == AdjacencyKind::Lookup)
        };
        let table = paths.iter().find_map(end).map(|end| end.interface);
        let comes_out = |path: &weir_fib::Path| {
            self.nexthops
                .adjacency(path.adjacency)
                .is_some_and(|end| end.kind == AdjacencyKind::Pseudowire)
        };
        let leaves = paths
            .iter()
            .zip(ends)
            .filter(|(path, _)| end(path).is_none());
        LabelReply {
            label,
            source: match self.labels.best(label) {
                _ if paths.iter().any(comes_out) => LabelSource::Pseudowire,
                Some((RouteSource::Kernel, _)) => LabelSource::Kernel,
                Some((RouteSource::Fpm, _)) => LabelSource::Fpm,
                _ => LabelSource::Static,
            },
            meaning: None,
            ttl_mode: if entry.is_pipe() {
                LabelMode::Pipe
            } else {
                LabelMode::Uniform
            },
            lookup: table.map(|table| self.number_of_table(table)),
            vrf: table.and_then(|table| self.name_of_table(table)),
            group: Some(self.group_view(entry.group())),
            paths: leaves
                .map(|(path, &end)| self.path_view(path, end, share(end)))
                .collect(),
        }
    }

    /// Lets the neighbours go that an entry held.
    pub(crate) fn let_go_of_label(&mut self, entry: &LabelEntry) {
        if let Some(via) = &entry.via {
            self.let_go(None, via);
        }
    }
}
