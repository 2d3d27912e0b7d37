//! Incoming labels, as the control side changes them.
//!
//! An entry leads to a group, as a route does, and waits for the publication of a new one as a route does: a worker
//! must know the group before it meets the label.

use weir_api::{LabelMeaning, LabelMode, LabelReply, LabelSource};
use weir_config::{LabelEntry, TtlMode};
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

/// A label that waits until workers know its group.
pub(crate) struct WaitingLabel {
    pub(crate) label: u32,
    pub(crate) entry: Entry,
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
            entry: Entry::new(group, mode, Payload::Either),
        });
        Ok(())
    }

    /// The adjacency that looks packets up in a table; one a table, made when it is first wanted.
    fn lookup_end(&mut self, table: u32) -> u32 {
        if let Some(&number) = self.lookup_ends.get(&table) {
            return number;
        }
        let number = self.nexthops.add_adjacency(Adjacency::lookup_in(table));
        self.lookup_ends.insert(table, number);
        number
    }

    /// Puts the labels that waited into the table. Workers know their groups.
    pub(crate) fn settle_labels(&mut self) {
        for WaitingLabel { label, entry } in std::mem::take(&mut self.waiting_labels) {
            match self.tables.lfib.set(label, entry) {
                Some(old) if old.is_set() => self.release_group(old.group()),
                Some(_) => {}
                None => self.release_group(entry.group()),
            }
        }
    }

    /// Forgets a label.
    pub(crate) fn remove_label(&mut self, label: u32) {
        if !self.waiting_labels.is_empty() {
            self.settle_or_log();
        }
        if let Some(old) = self
            .tables
            .lfib
            .set(label, Entry::NONE)
            .filter(|old| old.is_set())
        {
            self.release_group(old.group());
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
            source: if paths.iter().any(comes_out) {
                LabelSource::Pseudowire
            } else {
                LabelSource::Static
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
