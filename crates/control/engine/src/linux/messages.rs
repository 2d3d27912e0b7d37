//! What the feeds have read, carried out batch by batch, and the search for stale routes.

use std::time::Instant;

use ipnet::IpNet;
use weir_control::{RouteSource, RouteUpdate};
use weir_linux::decode::Message;
use weir_linux::feed::{Feed, FeedMessage};
use weir_linux::fpm::Fpm;
use weir_linux::protocol::Protocols;

use crate::control::Control;

/// Messages of the feed that are carried out with the lock held once: at most so many times 1,024 updates.
const MESSAGES_A_ROUND: usize = 8;
/// Changes that may wait for the workers before the feed has to wait.
const MOST_WAITING: usize = 1 << 16;
/// Prefixes that are inspected for stale routes with the lock held once.
const SWEEP: usize = 1 << 14;

/// A search for stale routes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    source: RouteSource,
    /// Only routes of these; of all when absent.
    protocols: Option<Protocols>,
    /// The index of the table, and the prefix behind which it goes on.
    table: usize,
    after: Option<IpNet>,
}

/// Routes of several messages, and when the first of each was read.
#[derive(Default)]
struct Gathered {
    updates: Vec<RouteUpdate>,
    received: Vec<(RouteSource, Instant, usize)>,
}

impl Control {
    /// Carries out what the feed has read.
    pub(crate) fn take_linux(&mut self) {
        self.note_convergence();
        let mut gathered = Gathered::default();
        for _ in 0..MESSAGES_A_ROUND {
            if self.publication.len() > MOST_WAITING {
                break;
            }
            let of_kernel = self.linux.feed.as_ref().and_then(Feed::next);
            let of_zebra = self.linux.fpm.as_ref().and_then(Fpm::next);
            if of_kernel.is_none() && of_zebra.is_none() {
                break;
            }
            if let Some(message) = of_kernel {
                self.gather(RouteSource::Kernel, message, &mut gathered);
            }
            if let Some(message) = of_zebra {
                self.gather(RouteSource::Fpm, message, &mut gathered);
            }
        }
        self.take_gathered(&mut gathered);
        self.sweep_stale();
        self.note_convergence();
    }

    fn note_convergence(&mut self) {
        let done = self.publication.done;
        self.linux.convergence.done(done, Instant::now());
    }

    /// Takes a message, or keeps its routes for the next one: routes that come one after another are set together.
    fn gather(&mut self, source: RouteSource, message: FeedMessage, gathered: &mut Gathered) {
        match message {
            FeedMessage::Routes(updates, received) => {
                if let Some(received) = received {
                    let noted = (source, received, updates.len());
                    gathered.received.push(noted);
                }
                gathered.updates.extend(updates);
            }
            other => {
                self.take_gathered(gathered);
                self.take_message(source, other);
            }
        }
    }

    fn take_gathered(&mut self, gathered: &mut Gathered) {
        let Gathered { updates, received } = std::mem::take(gathered);
        if !updates.is_empty() {
            self.update_routes(&updates);
        }
        let queued = self.publication.queued;
        for (source, received, updates) in received {
            let convergence = &mut self.linux.convergence;
            convergence.note(source, received, updates, queued);
        }
    }

    fn take_message(&mut self, source: RouteSource, message: FeedMessage) {
        let is_kernel = source == RouteSource::Kernel;
        match message {
            // Gathered before.
            FeedMessage::Routes(updates, _) => self.update_routes(&updates),
            FeedMessage::Labels(updates) => self.update_labels(&updates),
            FeedMessage::Objects(changes) => self.update_objects(&changes),
            FeedMessage::Begin if is_kernel => {
                self.linux.is_reading = true;
                self.linux.counters.audits += 1;
                self.begin_generation(source);
            }
            FeedMessage::Begin => {
                self.linux.objects.forget_all_parked();
                self.begin_generation(source);
            }
            FeedMessage::End(protocols) => {
                if is_kernel {
                    self.linux.is_reading = false;
                }
                let parked = self.linux.objects.parked();
                if !is_kernel && parked > 0 {
                    tracing::warn!(
                        routes = parked,
                        "routes of zebra name next hops that it has not sent"
                    );
                }
                self.search_stale(source, protocols);
            }
            FeedMessage::Others(messages) => self.take_links(&messages),
        }
    }

    fn begin_generation(&mut self, source: RouteSource) {
        // A search that is under way would take routes for stale that are about to be set again.
        self.linux.sweeps.retain(|sweep| sweep.source != source);
        for table in self.routing.iter_mut().flatten() {
            table.begin_generation(source);
        }
        self.labels.begin_generation(source);
    }

    /// Removes all routes of a source.
    pub(super) fn begin_sweep(&mut self, source: RouteSource) {
        self.begin_generation(source);
        self.search_stale(source, None);
    }

    fn search_stale(&mut self, source: RouteSource, protocols: Option<Protocols>) {
        self.linux.sweeps.push_back(Sweep {
            source,
            protocols,
            table: 0,
            after: None,
        });
    }

    /// Removes stale routes, some at a time.
    fn sweep_stale(&mut self) {
        // Routes that wait have the new generation only when they are set.
        if self.publication.len() > 0 {
            return;
        }
        let Some(sweep) = self.linux.sweeps.pop_front() else {
            return;
        };
        if sweep.table >= self.routing.len() {
            self.remove_stale_labels(sweep.source, sweep.protocols);
            return;
        }
        let next_table = Sweep {
            table: sweep.table + 1,
            after: None,
            ..sweep
        };
        let Some(Some(table)) = self.routing.get(sweep.table) else {
            self.linux.sweeps.push_front(next_table);
            return;
        };
        let (mut stale, next) = table.stale(sweep.source, sweep.after, SWEEP);
        if let Some(protocols) = sweep.protocols {
            stale.retain(|(prefix, id)| {
                let all = table.candidates(*prefix);
                let route = all.iter().find(|route| route.id == *id);
                route.is_some_and(|route| protocols.contains(route.protocol))
            });
        }
        self.linux.counters.stale += stale.len() as u64;
        for (prefix, id) in stale {
            self.unset_route(sweep.table as u32, prefix, id);
        }
        self.linux.sweeps.push_front(match next {
            None => next_table,
            Some(next) => Sweep {
                after: Some(next),
                ..sweep
            },
        });
    }

    fn take_links(&mut self, messages: &[Message]) {
        let is_ours = |link: u32| self.linux.links.contains_key(&link);
        let is_vrf = |link: u32| self.linux.vrf_links.contains_key(&link);
        let matters = |message: &Message| match message {
            Message::Link(info) => {
                is_ours(info.index) || is_vrf(info.index) || self.is_tap_name(&info.name)
            }
            Message::LinkGone(link) if is_vrf(*link) => true,
            Message::LinkGone(link) | Message::Address { link, .. } => is_ours(*link),
            _ => false,
        };
        let down = messages.iter().any(
            |message| matches!(message, Message::Link(info) if is_ours(info.index) && !info.up),
        );
        if messages.iter().any(matters) {
            self.sync_linux();
        }
        // The kernel says nothing about the IPv4 routes of a link that goes down.
        if let Some(feed) = self.linux.feed.as_ref().filter(|_| down) {
            feed.resync();
        }
    }

    fn is_tap_name(&self, name: &str) -> bool {
        let linux = &self.config.linux;
        let mut names = linux.interfaces.keys();
        names.any(|interface| linux.name_of(interface) == Some(name))
    }
}
