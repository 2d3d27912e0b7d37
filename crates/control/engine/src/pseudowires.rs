//! Pseudowires, as the control side makes them: a group for what goes out, a label for what comes in.
//!
//! The interface is made before and goes after, as any; here it gets what makes it carry frames. The way to the far end
//! is a `via` like a route's, each path with the far end's label below its own. The label of this end leads to an
//! adjacency that stands for the interface, and waits for its publication as every label does.

use weir_config::{Pseudowire, PseudowireType};
use weir_fib::{Adjacency, LabelEntry as Entry, Payload, TtlMode};

use crate::control::Control;
use crate::labels::WaitingLabel;
use weir_control::RouteSource;

/// A pseudowire that has its labels.
pub(crate) struct LivePseudowire {
    /// The group of what goes out.
    pub(crate) group: u32,
    /// The adjacency of what comes in.
    end: u32,
}

impl Control {
    /// What workers need to know of an interface that is a pseudowire and has its labels.
    pub(crate) fn pseudowire_entry(&self, name: &str) -> Option<weir_port::pseudowire::Pseudowire> {
        let (live, wanted) = (
            self.pseudowires.get(name)?,
            self.config.pseudowires.get(name)?,
        );
        let vlan = (wanted.kind == PseudowireType::Tagged).then_some(wanted.vlan);
        Some(weir_port::pseudowire::Pseudowire::new(
            live.group,
            wanted.control_word,
            vlan,
        ))
    }

    pub(crate) fn add_pseudowire(&mut self, name: &str, wanted: &Pseudowire) -> Result<(), String> {
        let group = self.group_of(None, &wanted.labelled_via(), None)?;
        let end = self
            .nexthops
            .add_adjacency(Adjacency::pseudowire(self.index_of(name)));
        let incoming = self.single(end);
        // Nothing of an Ethernet frame goes by the label's time to live or class.
        let entry = Entry::new(incoming, TtlMode::Pipe, Payload::Either);
        self.waiting_labels.push(WaitingLabel {
            label: wanted.local_label,
            source: RouteSource::Static,
            protocol: 0,
            entry: Some(entry),
        });
        self.pseudowires
            .insert(name.to_owned(), LivePseudowire { group, end });
        self.refresh(name);
        Ok(())
    }

    /// The label of this end stays.
    pub(crate) fn change_pseudowire(
        &mut self,
        name: &str,
        from: &Pseudowire,
        to: &Pseudowire,
    ) -> Result<(), String> {
        let group = self.group_of(None, &to.labelled_via(), None)?;
        if let Some(live) = self.pseudowires.get_mut(name) {
            let old = std::mem::replace(&mut live.group, group);
            self.release_group(old);
        }
        self.refresh(name);
        self.let_go(None, &from.via);
        Ok(())
    }

    pub(crate) fn remove_pseudowire(&mut self, name: &str, was: &Pseudowire) {
        self.remove_label(was.local_label);
        if let Some(live) = self.pseudowires.remove(name) {
            self.release_group(live.group);
            self.nexthops.abandon_adjacency(live.end);
        }
        self.refresh(name);
        self.let_go(None, &was.via);
    }

    /// What the API tells of them.
    pub(crate) fn pseudowire_views(&self) -> weir_api::Pseudowires {
        let view = |(name, wanted): (&String, &Pseudowire)| {
            let index = self.index_of(name);
            let paths = self
                .pseudowires
                .get(name)
                .map_or_else(Vec::new, |live| self.path_views(live.group));
            let carries = paths
                .iter()
                .any(|path| path.adjacency == weir_api::Adjacency::Complete);
            let is_up = self
                .tables
                .interface(index)
                .is_some_and(|interface| interface.can_send);
            let view = weir_api::Pseudowire {
                interface: name.clone(),
                local_label: wanted.local_label,
                remote_label: wanted.remote_label,
                kind: wanted.kind.word().to_owned(),
                vlan: (wanted.kind == PseudowireType::Tagged).then_some(wanted.vlan),
                control_word: wanted.control_word,
                link: (is_up && carries).into(),
                paths,
            };
            (index, view)
        };
        let mut all: Vec<_> = self.config.pseudowires.iter().map(view).collect();
        all.sort_by_key(|(index, _)| *index);
        weir_api::Pseudowires {
            pseudowires: all.into_iter().map(|(_, view)| view).collect(),
        }
    }
}
