//! Link events of the kernel: what happens to devices reaches the control side at once.
//!
//! The control thread waits on the watcher's descriptor beside its own, so that a link that goes down takes its paths out
//! of use within milliseconds. The poll of all ports twice a second stays: it sees what no event reports (memif peers,
//! sockets that died) and stands in where the kernel gives no events.
//!
//! A link that went down and came up again between two events has lost its carrier all the same. The kernel counts
//! that, and neighbours learnt before are forgotten.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use weir_netlink::watch::{LinkEvent, LinkWatcher};

use crate::control::Control;

/// Links that changed, by name, and whether each was down meanwhile.
pub(crate) type Changed = BTreeMap<String, bool>;

/// The kernel's link events in the namespace of the thread that opened this.
pub(crate) struct LinkEvents {
    watcher: LinkWatcher,
    /// How often each link has lost its carrier, by its number.
    losses: BTreeMap<u32, u32>,
}

impl LinkEvents {
    /// Starts to watch; `None`, with a line in the log, where that cannot be.
    pub(crate) fn open() -> Option<LinkEvents> {
        let opened = LinkWatcher::open().and_then(|watcher| {
            let mut events = LinkEvents {
                watcher,
                losses: BTreeMap::new(),
            };
            let mut there = Vec::new();
            events.watcher.resync(&mut there)?;
            events.digest(there);
            Ok(events)
        });
        match opened {
            Ok(events) => Some(events),
            Err(error) => {
                tracing::warn!(
                    "no link events from the kernel: {error}; links are polled twice a second"
                );
                None
            }
        }
    }

    /// What to poll.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.watcher.as_fd()
    }

    /// The links that changed since the last call. Does not block.
    pub(crate) fn read(&mut self) -> Changed {
        let mut events = Vec::new();
        let mut result = self.watcher.read(&mut events);
        if events.contains(&LinkEvent::Overrun) {
            result = self.watcher.resync(&mut events);
        }
        if let Err(error) = result {
            tracing::warn!("link events: {error}");
        }
        self.digest(events)
    }

    fn digest(&mut self, events: Vec<LinkEvent>) -> Changed {
        let mut changed = Changed::new();
        for event in events {
            let (link, gone) = match event {
                LinkEvent::Added(link) | LinkEvent::Changed(link) => (link, false),
                LinkEvent::Removed(link) => (link, true),
                LinkEvent::Overrun => continue,
            };
            let before = if gone {
                self.losses.remove(&link.ifindex)
            } else {
                self.losses.insert(link.ifindex, link.carrier_losses)
            };
            let lost = before.is_some_and(|before| before != link.carrier_losses);
            *changed.entry(link.name).or_default() |= gone || lost || !link.running;
        }
        changed
    }
}

impl Control {
    /// Updates the ports whose devices changed. Called after each read of events, also when there were none.
    ///
    /// Events of a port that was reopened since the last call describe its device before that, so they do not
    /// count as a loss of the link.
    pub(crate) fn links_changed(&mut self, changed: &Changed) {
        let reopened = std::mem::take(&mut self.reopened);
        let device = |name: &String| {
            let wanted = self.config.interfaces.get(name)?;
            let was_down = *changed.get(wanted.device.as_ref()?.linux_name()?)?;
            Some((name.clone(), was_down && !reopened.contains(name)))
        };
        let concerned: Vec<(String, bool)> = self.interfaces.keys().filter_map(device).collect();
        if concerned.is_empty() {
            return;
        }
        for (name, was_down) in concerned {
            self.watch_link(&name, was_down);
        }
        self.settle_or_log();
    }
}
