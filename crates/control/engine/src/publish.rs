//! Publication: how workers get changed tables, and what waits until they have them.
//!
//! A worker uses one snapshot of groups and adjacencies for a whole turn but sees routes change at once. So a route
//! may lead to a group only when every worker has passed the publication of that group (see "The order of changes" in
//! `weir_fib`). Changes of routes and labels that need it wait in a queue, in their order, with the mark of the
//! publication that they need. The control thread carries them out when the workers have passed it.
//!
//! Publishing never waits for a worker, and nothing proceeds because time went by. A worker that is stalled delays
//! the changes behind it and the reuse of memory, and nothing else: the control lock stays free. Only
//! the callers of [`Router::apply`] wait, without the lock, so that a change is usually in force when they return.
//!
//! One exception waits with the lock held, and fails instead of going on: a port whose device an interface that is being
//! deleted still has ([`Control::settle_now`]).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use weir_control::{RouteId, Table};
use weir_graph::HoldKey;
use weir_port::interface::{Interface, Kind};
use weir_ring::qsbr::{Reader, Ticket};

use crate::control::Control;
use crate::recursion::ROUNDS;
use crate::router::Router;
use crate::taps::SFLOW_TAP;
use crate::worker::Command;

/// How long callers wait for the workers before they leave the rest to the control thread.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often they look.
const INTERVAL: Duration = Duration::from_micros(50);

/// A change of a table that waits until workers know a group.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// The route gets this group.
    Set {
        table: u32,
        prefix: IpNet,
        id: RouteId,
        group: u32,
        protocol: u8,
    },
    /// The route goes.
    Unset {
        table: u32,
        prefix: IpNet,
        id: RouteId,
    },
    /// The table goes, which the changes before this one have emptied.
    DeleteTable(u32),
}

/// What waits for the workers.
#[derive(Default)]
pub(crate) struct Publication {
    /// The last one that not all workers have passed.
    unpassed: Option<Ticket>,
    /// Changes that wait for the next publication.
    next: Vec<Waiting>,
    /// The number of changes that were ever queued, and of those that have been carried out. They go in order.
    pub(crate) queued: u64,
    pub(crate) done: u64,
    /// Changes whose groups are published, the oldest first.
    published: VecDeque<(Ticket, Vec<Waiting>)>,
    /// Packets that go on when everything is in force.
    releases: Vec<HoldKey>,
    /// New receive queues are handed out when everything is in force.
    pub(crate) begin_receiving: bool,
}

impl Publication {
    /// Whether a change of routes must queue behind others.
    fn is_waiting(&self) -> bool {
        self.unpassed.is_some() || !self.next.is_empty() || !self.published.is_empty()
    }

    fn queue(&mut self, change: Waiting) {
        self.queued += 1;
        self.next.push(change);
    }

    /// The number of changes that wait.
    pub(crate) fn len(&self) -> usize {
        let published: usize = self
            .published
            .iter()
            .map(|(_, changes)| changes.len())
            .sum();
        published + self.next.len()
    }
}

impl Control {
    /// Publishes the master tables. Does not wait for anybody.
    pub(crate) fn publish(&mut self) {
        self.share_out();
        self.find_tunnels();
        let looked_at = |interface: &Interface| {
            interface.kind != Kind::Port && (interface.rx_taps | interface.tx_taps) != 0
        };
        let any = |wanted: &dyn Fn(&Interface) -> bool| {
            self.tables
                .interfaces
                .iter()
                .flatten()
                .any(|entry| wanted(&entry.interface))
        };
        let (inner_taps, notes_members) = (
            any(&looked_at),
            any(&|interface| interface.tx_taps & SFLOW_TAP != 0),
        );
        (self.tables.inner_taps, self.tables.notes_members) = (inner_taps, notes_members);
        let interfaces = self.tables.interfaces.iter().flatten();
        self.own.set(interfaces.map(|entry| &entry.interface));
        self.tables.nexthops = self.nexthops.snapshot();
        self.published.publish(Box::new(self.tables.clone()));
        let ticket = self.domain.ticket();
        self.publication.unpassed = Some(ticket);
        let waiting = std::mem::take(&mut self.publication.next);
        if !waiting.is_empty() {
            self.publication.published.push_back((ticket, waiting));
        }
        for worker in &self.workers {
            worker.waker.wake();
        }
        self.stale = false;
        if self.trial.is_some() {
            // No thread runs the workers. A reader that a test stalls passes nothing.
            for _ in 0..4 {
                if self.domain.passed(ticket) {
                    break;
                }
                self.workers
                    .iter_mut()
                    .for_each(|worker| worker.wait(Duration::ZERO));
            }
        }
    }

    /// Whether every worker uses the tables that were published last.
    fn have_workers_passed(&mut self) -> bool {
        if let Some(ticket) = self.publication.unpassed {
            if !self.domain.passed(ticket) {
                return false;
            }
            self.publication.unpassed = None;
            self.domain.reclaim();
        }
        true
    }

    /// Carries out the changes whose groups all workers know.
    fn carry_out_published(&mut self) -> Result<(), String> {
        let mut result = Ok(());
        while let Some((ticket, _)) = self.publication.published.front()
            && self.domain.passed(*ticket)
            && let Some((_, changes)) = self.publication.published.pop_front()
        {
            self.publication.done += changes.len() as u64;
            for change in changes {
                result = result.and(self.carry_out_waiting(change));
            }
        }
        result
    }

    fn carry_out_waiting(&mut self, change: Waiting) -> Result<(), String> {
        match change {
            Waiting::Set {
                table,
                prefix,
                id,
                group,
                protocol,
            } => self
                .set_route(table, prefix, id, group, protocol)
                .map_err(|error| format!("route {prefix}: {error}")),
            Waiting::Unset { table, prefix, id } => {
                self.unset_route_now(table, prefix, id);
                Ok(())
            }
            Waiting::DeleteTable(place) => {
                self.delete_table(place);
                Ok(())
            }
        }
    }

    /// Publishes what changed, if anything did, and carries out what workers are ready for. What they are not ready for
    /// follows with a later call: the control thread calls again soon while [`Control::is_settling`].
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        let mut result = Ok(());
        for _ in 0..ROUNDS {
            result = result.and(self.carry_out_published());
            if self.stale || self.nexthops.is_changed() || !self.publication.next.is_empty() {
                self.publish();
            }
            result = result.and(self.carry_out_published());
            // What next hops resolve to may have changed with the routes, and make routes to neighbours.
            let again = self.resolve_again();
            let is_done = !self.stale && !self.nexthops.is_changed();
            if !again && is_done && self.publication.next.is_empty() {
                break;
            }
        }
        if self.have_workers_passed() && self.publication.len() == 0 && !self.stale {
            self.forget_leaving_members();
            self.settle_labels();
            self.close_leaving();
            if std::mem::take(&mut self.publication.begin_receiving) {
                self.begin_receiving(|_| true);
            }
            for key in std::mem::take(&mut self.publication.releases) {
                self.release_held(key);
            }
        }
        result
    }

    /// As [`Control::settle`], where the result is only logged.
    pub(crate) fn settle_or_log(&mut self) {
        if let Err(error) = self.settle() {
            tracing::error!("{error}");
        }
    }

    /// Whether something waits for the workers.
    pub(crate) fn is_settling(&self) -> bool {
        self.publication.is_waiting()
            || self.publication.begin_receiving
            || !self.publication.releases.is_empty()
            || !self.leaving.is_empty()
            || !self.waiting_labels.is_empty()
    }

    /// Settles everything, or fails. Waits with the lock held: only for what cannot be done otherwise.
    pub(crate) fn settle_now(&mut self) -> Result<(), String> {
        let began = Instant::now();
        self.settle()?;
        while self.is_settling() {
            if began.elapsed() > PATIENCE {
                return Err(format!(
                    "a worker has not taken over the tables for {} s; see `weir show runtime`, and try again",
                    PATIENCE.as_secs()
                ));
            }
            std::thread::sleep(INTERVAL);
            self.settle()?;
        }
        Ok(())
    }

    /// Lets held packets go on, when the routes that they wait for are in force.
    pub(crate) fn release_when_settled(&mut self, key: HoldKey) {
        if self.publication.is_waiting() {
            self.publication.releases.push(key);
        } else {
            self.release_held(key);
        }
    }

    fn release_held(&mut self, key: HoldKey) {
        self.workers
            .iter_mut()
            .for_each(|worker| worker.tell(Command::Release(key)));
    }

    /// Adds a route: at once when workers know its group and nothing waits before it, else after the next publication. So
    /// a thousand routes of one change need one publication.
    pub(crate) fn set_route_soon(
        &mut self,
        table: u32,
        prefix: IpNet,
        id: impl Into<RouteId>,
        group: u32,
    ) -> Result<(), String> {
        self.set_route_of(table, prefix, id.into(), group, 0)
            .map_err(|error| format!("route {prefix}: {error}"))
    }

    /// The same for a route of a protocol.
    pub(crate) fn set_route_of(
        &mut self,
        table: u32,
        prefix: IpNet,
        id: RouteId,
        group: u32,
        protocol: u8,
    ) -> Result<(), weir_control::UpdateError> {
        if self.may_set_at_once() {
            return self.set_route(table, prefix, id, group, protocol);
        }
        self.publication.queue(Waiting::Set {
            table,
            prefix,
            id,
            group,
            protocol,
        });
        Ok(())
    }

    /// Whether a route whose group there was before may be set at once.
    pub(crate) fn may_set_at_once(&self) -> bool {
        !self.publication.is_waiting() && !self.nexthops.is_changed()
    }

    /// Removes the route of a source; the next best one takes its place.
    pub(crate) fn unset_route(&mut self, table: u32, prefix: IpNet, id: impl Into<RouteId>) {
        let id = id.into();
        if self.publication.len() > 0 {
            self.settle_or_log();
        }
        if self.publication.len() > 0 {
            self.publication.queue(Waiting::Unset { table, prefix, id });
        } else {
            self.unset_route_now(table, prefix, id);
        }
    }

    /// Deletes a table when the changes that wait have emptied it.
    pub(crate) fn delete_table_when_settled(&mut self, place: u32) {
        if self.publication.len() > 0 {
            self.settle_or_log();
        }
        if self.publication.len() > 0 {
            self.publication.queue(Waiting::DeleteTable(place));
        } else {
            self.delete_table(place);
        }
    }

    fn delete_table(&mut self, place: u32) {
        self.drop_api_routes(place);
        if let Some(slot) = self.routing.get_mut(place as usize) {
            debug_assert!(
                slot.as_ref().is_none_or(Table::is_empty),
                "the plan empties a table before it goes"
            );
            *slot = None;
        }
        while self.routing.last().is_some_and(Option::is_none) {
            self.routing.pop();
        }
        self.show_tables();
    }
}

/// Keeps the tables from being passed, as a worker that hangs does; for tests.
#[doc(hidden)]
pub struct Stall(Reader);

impl std::fmt::Debug for Stall {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_tuple("Stall").finish_non_exhaustive()
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.0.offline();
    }
}

impl Router {
    /// Acts as a worker that hangs from here on, until the value is dropped; for tests.
    ///
    /// # Panics
    /// When there is one already.
    #[doc(hidden)]
    #[must_use]
    pub fn stall(&self) -> Stall {
        let mut reader = self
            .control()
            .domain
            .register()
            .unwrap_or_else(|error| panic!("{error}"));
        reader.quiesce();
        Stall(reader)
    }

    /// Whether changes wait for a worker.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        self.control().is_settling()
    }

    /// Waits, without the lock, until the workers have taken over everything.
    pub(crate) fn wait_until_settled(&self) {
        let began = Instant::now();
        loop {
            {
                let mut control = self.control();
                control.settle_or_log();
                if !control.is_settling() || control.trial.is_some() {
                    return;
                }
                if began.elapsed() > PATIENCE {
                    tracing::error!(
                        waiting = control.publication.len(),
                        "a worker has not taken over the tables: changes wait for it"
                    );
                    return;
                }
            }
            std::thread::sleep(INTERVAL);
        }
    }
}
