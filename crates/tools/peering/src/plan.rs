//! What a new configuration changes: sessions, prefix sets, ROAs, and the verdicts on routes that BIRD has now.
//!
//! The state before comes from a [`Summary`] that the last apply kept, and from BIRD's own table. Verdicts after
//! the change come from the policy as a pure function, so that nothing is loaded into the daemon for a plan.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::bird::{self, REJECTED};
use crate::birdc::{TableRoute, own_large};
use crate::model::{Mode, Peering, Relation};
use crate::policy::{Policy, Reason, Route, Verdict};
use crate::prefixes::PrefixIndex;
use crate::snapshot::{Entry, Snapshot};
use crate::traffic::Traffic;

/// Examples of changed routes that a plan lists.
const EXAMPLES: usize = 20;

/// What is kept of an applied configuration, to compare the next one with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The own AS number.
    pub asn: u32,
    /// Sessions by name.
    pub sessions: BTreeMap<String, SessionSummary>,
    /// What each neighbour may announce, by name and family.
    pub sets: BTreeMap<String, Vec<Entry>>,
    /// The number of ROAs.
    pub vrps: usize,
}

/// What is kept of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The neighbour's AS number.
    pub asn: u32,
    /// Its address.
    pub address: IpAddr,
    /// The own role (RFC 9234).
    pub role: String,
    /// Whether it is disabled.
    pub is_down: bool,
    /// Generalized TTL security.
    pub gtsm: bool,
    /// The file with the password.
    pub password_file: Option<PathBuf>,
    /// The limit of received routes.
    pub limit: Option<u32>,
    /// What happens beyond it.
    #[serde(default)]
    pub limit_action: String,
    /// A hash of filters and channel settings.
    pub filters: u64,
    /// A hash of the other settings of the session.
    #[serde(default)]
    pub options: u64,
}

impl Summary {
    /// The summary of a configuration.
    #[must_use]
    pub fn of(peering: &Peering, snapshot: &Snapshot) -> Summary {
        let mut summary = Summary {
            asn: peering.asn,
            vrps: snapshot.vrps.len(),
            ..Summary::default()
        };
        for neighbor in &peering.neighbors {
            let set = if neighbor.is_filtered_by_prefix() {
                snapshot.accepted(neighbor)
            } else {
                Vec::new()
            };
            for (is_ipv4, family) in [(true, "4"), (false, "6")] {
                let entries: Vec<Entry> = set
                    .iter()
                    .filter(|it| it.prefix.addr().is_ipv4() == is_ipv4)
                    .copied()
                    .collect();
                if neighbor.is_filtered_by_prefix() {
                    let name = format!("{}_{family}", neighbor.name());
                    summary.sets.insert(name, entries);
                }
            }
            for (name, it) in peering.sessions(neighbor) {
                let options = format!(
                    "{} {:?} {:?} {} {}",
                    it.passive, it.multihop, it.local_address, it.bfd, neighbor.require_role
                );
                let role = neighbor.relation.own_role().filter(|_| neighbor.role);
                let session = SessionSummary {
                    asn: neighbor.asn,
                    address: it.address,
                    role: role.unwrap_or("none").to_owned(),
                    is_down: it.mode == Mode::Down,
                    gtsm: it.gtsm,
                    password_file: it.password_file,
                    limit: it.limit,
                    limit_action: neighbor.limit_action.word().to_owned(),
                    filters: bird::hash(&bird::filters(peering, neighbor, it.address.is_ipv4())),
                    options: bird::hash(&options),
                };
                summary.sessions.insert(name, session);
            }
        }
        summary
    }
}

/// What happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionChange {
    /// It is new.
    Add,
    /// It goes away.
    Remove,
    /// It is closed and opened again.
    Reset,
    /// It is shut.
    Disable,
    /// It is opened.
    Enable,
    /// It stays up; routes pass the new filters.
    Reload,
}

/// A session that changes.
#[derive(Clone, Debug, Serialize)]
pub struct SessionStep {
    /// Its name.
    pub name: String,
    /// The neighbour.
    pub asn: u32,
    /// Its address.
    pub address: IpAddr,
    /// What happens.
    pub change: SessionChange,
}

/// A prefix set that changes.
#[derive(Clone, Debug, Serialize)]
pub struct SetStep {
    /// Neighbour and family.
    pub name: String,
    /// Entries before.
    pub before: usize,
    /// Entries after.
    pub after: usize,
    /// Entries that come.
    pub added: usize,
    /// Entries that go.
    pub removed: usize,
}

/// A limit that changes.
#[derive(Clone, Debug, Serialize)]
pub struct LimitStep {
    /// The session.
    pub name: String,
    /// The limit before; `None` = there was none.
    pub before: Option<u32>,
    /// The limit after.
    pub after: Option<u32>,
}

/// What a new configuration changes.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Sessions.
    pub sessions: Vec<SessionStep>,
    /// Prefix sets.
    pub sets: Vec<SetStep>,
    /// Limits of sessions that stay.
    pub limits: Vec<LimitStep>,
    /// ROAs before and after.
    pub roas: (usize, usize),
    /// What a person should know of the data.
    pub notes: Vec<String>,
    /// Routes that get another verdict; `None` = BIRD was not asked.
    pub verdicts: Option<VerdictDiff>,
}

impl Plan {
    /// Compares two configurations. `before` is `None` when nothing was applied yet.
    #[must_use]
    pub fn between(before: Option<&Summary>, after: &Summary) -> Plan {
        let empty = Summary::default();
        let before = before.unwrap_or(&empty);
        let mut plan = Plan {
            sessions: Vec::new(),
            sets: Vec::new(),
            limits: Vec::new(),
            roas: (before.vrps, after.vrps),
            notes: Vec::new(),
            verdicts: None,
        };
        let mut step = |name: &str, of: &SessionSummary, change| {
            plan.sessions.push(SessionStep {
                name: name.to_owned(),
                asn: of.asn,
                address: of.address,
                change,
            });
        };
        for (name, new) in &after.sessions {
            match before.sessions.get(name) {
                None => step(name, new, SessionChange::Add),
                Some(old) => {
                    if let Some(change) = change(old, new, before.asn != after.asn) {
                        step(name, new, change);
                    }
                }
            }
        }
        for (name, old) in &before.sessions {
            if !after.sessions.contains_key(name) {
                step(name, old, SessionChange::Remove);
            }
        }
        for (name, new) in &after.sessions {
            let old = before.sessions.get(name);
            if let Some(old) = old.filter(|old| old.limit != new.limit) {
                plan.limits.push(LimitStep {
                    name: name.clone(),
                    before: old.limit,
                    after: new.limit,
                });
            }
        }
        for (name, new) in &after.sets {
            let none = Vec::new();
            let old = before.sets.get(name).unwrap_or(&none);
            // Both are sorted.
            let added = new
                .iter()
                .filter(|it| old.binary_search(it).is_err())
                .count();
            let removed = old
                .iter()
                .filter(|it| new.binary_search(it).is_err())
                .count();
            if added + removed > 0 {
                plan.sets.push(SetStep {
                    name: name.clone(),
                    before: old.len(),
                    after: new.len(),
                    added,
                    removed,
                });
            }
        }
        plan
    }

    /// Whether nothing changes, as far as is known without BIRD's table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let quiet = self
            .verdicts
            .as_ref()
            .is_none_or(|it| it.rejected + it.accepted + it.preference == 0);
        let quiet = quiet && self.limits.is_empty();
        self.sessions.is_empty() && self.sets.is_empty() && self.roas.0 == self.roas.1 && quiet
    }
}

impl Plan {
    /// The plan for people, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.notes.iter().map(|it| format!("note: {it}")).collect();
        if self.is_empty() {
            lines.push("nothing changes".to_owned());
        }
        for it in &self.sessions {
            let (sign, text) = match it.change {
                SessionChange::Add => ("+", "new"),
                SessionChange::Remove => ("-", "removed"),
                SessionChange::Reset => ("~", "reset"),
                SessionChange::Disable => ("~", "shut"),
                SessionChange::Enable => ("~", "opened"),
                SessionChange::Reload => ("~", "new filters, stays up"),
            };
            lines.push(format!(
                "{sign} session {} (AS{}, {}): {text}",
                it.name, it.asn, it.address
            ));
        }
        for it in &self.sets {
            lines.push(format!(
                "~ prefixes of {}: {} -> {} (+{} -{})",
                it.name, it.before, it.after, it.added, it.removed
            ));
        }
        let number = |it: Option<u32>| it.map_or_else(|| "none".to_owned(), |it| it.to_string());
        for it in &self.limits {
            lines.push(format!(
                "~ limit of {}: {} -> {}",
                it.name,
                number(it.before),
                number(it.after)
            ));
        }
        if self.roas.0 != self.roas.1 {
            lines.push(format!("~ ROAs: {} -> {}", self.roas.0, self.roas.1));
        }
        if let Some(diff) = &self.verdicts {
            lines.extend(diff.lines());
        }
        lines
    }
}

impl VerdictDiff {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "of {} routes: {} would be rejected, {} accepted, {} get another preference, {} are gone",
            self.routes, self.rejected, self.accepted, self.preference, self.gone
        )];
        for (name, it) in &self.sessions {
            for (reason, routes) in &it.rejected {
                lines.push(format!("  {name}: {routes} rejected: {reason}"));
            }
        }
        for it in &self.examples {
            lines.push(format!(
                "  {} from {}: {} -> {}",
                it.prefix, it.session, it.before, it.after
            ));
        }
        if let Some(percent) = self.traffic_percent {
            lines.push(format!(
                "rejected and gone routes carry {percent:.1} % of the traffic"
            ));
        }
        lines
    }
}

fn change(old: &SessionSummary, new: &SessionSummary, other_asn: bool) -> Option<SessionChange> {
    let identity = |it: &SessionSummary| {
        let it = it.clone();
        let transport = (it.gtsm, it.password_file, it.options);
        (it.asn, it.address, it.role, transport)
    };
    let channel = |it: &SessionSummary| (it.limit, it.limit_action.clone(), it.filters);
    match (old.is_down, new.is_down) {
        (false, true) => Some(SessionChange::Disable),
        (true, false) => Some(SessionChange::Enable),
        _ if other_asn || identity(old) != identity(new) => Some(SessionChange::Reset),
        _ if channel(old) != channel(new) => Some(SessionChange::Reload),
        _ => None,
    }
}

/// Routes of one session that get another verdict, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionDiff {
    /// Routes accepted now.
    pub accepted_before: u64,
    /// Routes accepted after the change.
    pub accepted_after: u64,
    /// Accepted now, rejected then, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Rejected now, accepted then.
    pub accepted: u64,
    /// Routes of a session that goes away or is shut.
    pub gone: u64,
}

/// What becomes of the routes in BIRD's table.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerdictDiff {
    /// Routes of neighbours in the table, rejected ones included.
    pub routes: u64,
    /// Accepted now, rejected then.
    pub rejected: u64,
    /// Rejected now, accepted then.
    pub accepted: u64,
    /// Accepted with another local preference.
    pub preference: u64,
    /// Routes of sessions that go away or are shut.
    pub gone: u64,
    /// By session.
    pub sessions: BTreeMap<String, SessionDiff>,
    /// Some of the changed routes.
    pub examples: Vec<Example>,
    /// The share of traffic to destinations whose route is rejected or gone, in percent; `None` = not known.
    pub traffic_percent: Option<f64>,
}

/// A route with another verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// The prefix.
    pub prefix: String,
    /// The session.
    pub session: String,
    /// The verdict now.
    pub before: String,
    /// The verdict then; `gone` when the session ends.
    pub after: String,
}

impl VerdictDiff {
    /// The largest share of a session's accepted routes that is rejected, in percent, and the session. Sessions
    /// that are removed or shut on purpose do not count.
    #[must_use]
    pub fn largest_loss(&self) -> Option<(f64, &str)> {
        self.sessions
            .iter()
            .filter(|(_, it)| it.accepted_before > it.gone)
            .map(|(name, it)| {
                let lost: u64 = it.rejected.values().sum();
                (
                    100.0 * lost as f64 / it.accepted_before as f64,
                    name.as_str(),
                )
            })
            .max_by(|one, other| one.0.total_cmp(&other.0))
    }
}

/// Compares verdicts, a route at a time.
pub struct Comparison<'a> {
    peering: &'a Peering,
    policy: Policy<'a>,
    /// Position of the neighbour and whether the session is shut, by session.
    known: BTreeMap<String, (usize, bool)>,
    /// Sessions that go away.
    removed: Vec<String>,
    diff: VerdictDiff,
    traffic: Option<&'a Traffic>,
    /// Accepted prefixes and whether all their routes stay.
    prefixes: PrefixIndex<bool>,
}

impl<'a> Comparison<'a> {
    /// Prepares a comparison with the policy of a new configuration.
    #[must_use]
    pub fn new(
        peering: &'a Peering,
        snapshot: &'a Snapshot,
        before: Option<&Summary>,
        traffic: Option<&'a Traffic>,
    ) -> Comparison<'a> {
        let mut known = BTreeMap::new();
        for (number, neighbor) in peering.neighbors.iter().enumerate() {
            let sessions = peering.sessions(neighbor);
            known.extend(sessions.map(|(name, it)| (name, (number, it.mode == Mode::Down))));
        }
        let removed = before
            .into_iter()
            .flat_map(|it| it.sessions.keys())
            .filter(|name| !known.contains_key(*name))
            .cloned()
            .collect();
        Comparison {
            peering,
            policy: Policy::new(peering, snapshot),
            known,
            removed,
            diff: VerdictDiff::default(),
            traffic,
            prefixes: PrefixIndex::default(),
        }
    }

    /// Takes a route of BIRD's table. Routes that are not of a neighbour are left out.
    pub fn route(&mut self, route: &TableRoute) {
        let before = verdict_of(self.peering.asn, route);
        let after = match self.known.get(&route.protocol) {
            Some((_, true)) => None,
            // What is not known does not change.
            Some((_, false)) if route.is_cut => match before {
                Found::Accept(local_pref) => Some(Verdict::Accept {
                    local_pref: local_pref.unwrap_or(100),
                }),
                Found::Reject(reason) => Some(Verdict::Reject(reason.unwrap_or(Reason::AsSet))),
            },
            Some((number, false)) if self.is_own(*number) => {
                let local_pref = route.local_pref.unwrap_or(100);
                Some(Verdict::Accept { local_pref })
            }
            Some((number, false)) => Some(self.policy.import(*number, &announced(route))),
            None if self.removed.contains(&route.protocol) => None,
            None => return,
        };
        self.diff.routes += 1;
        let session = self
            .diff
            .sessions
            .entry(route.protocol.clone())
            .or_default();
        let was_accepted = matches!(before, Found::Accept(_));
        session.accepted_before += u64::from(was_accepted);
        session.accepted_after += u64::from(matches!(after, Some(Verdict::Accept { .. })));
        let mut stays = true;
        let is_changed = match (before, after) {
            (Found::Accept(_), None) => {
                session.gone += 1;
                self.diff.gone += 1;
                stays = false;
                true
            }
            (Found::Accept(_), Some(Verdict::Reject(reason))) => {
                *session.rejected.entry(reason.name()).or_default() += 1;
                self.diff.rejected += 1;
                stays = false;
                true
            }
            (Found::Reject(_), Some(Verdict::Accept { .. })) => {
                session.accepted += 1;
                self.diff.accepted += 1;
                true
            }
            (Found::Accept(Some(old)), Some(Verdict::Accept { local_pref }))
                if old != local_pref =>
            {
                self.diff.preference += 1;
                true
            }
            _ => false,
        };
        if is_changed && self.diff.examples.len() < EXAMPLES {
            self.diff.examples.push(Example {
                prefix: route.prefix.to_string(),
                session: route.protocol.clone(),
                before: before.word(),
                after: after.map_or_else(|| "gone".to_owned(), word),
            });
        }
        if self.traffic.is_some() && was_accepted {
            self.prefixes.insert(&route.prefix, stays);
        }
    }

    /// Whether the neighbour is a router of the own network, whose routes are not filtered.
    fn is_own(&self, neighbor: usize) -> bool {
        let neighbor = self.peering.neighbors.get(neighbor);
        neighbor.is_some_and(|it| it.relation == Relation::Own)
    }

    /// The result.
    #[must_use]
    pub fn finish(mut self) -> VerdictDiff {
        if let Some(traffic) = self.traffic {
            let changed = traffic.share(|destination| {
                // The longest prefix carries the traffic.
                let mut covering = self.prefixes.covering(destination).rev();
                let Some((longest, stays)) = covering.next() else {
                    return false;
                };
                !stays || covering.take_while(|it| it.0 == longest).any(|it| !it.1)
            });
            self.diff.traffic_percent = Some(100.0 * changed);
        }
        self.diff
    }
}

/// The verdict that a route has in BIRD's table.
#[derive(Clone, Copy)]
enum Found {
    Accept(Option<u32>),
    Reject(Option<Reason>),
}

impl Found {
    fn word(self) -> String {
        match self {
            Found::Accept(Some(local_pref)) => word(Verdict::Accept { local_pref }),
            Found::Accept(None) => "accept".to_owned(),
            Found::Reject(reason) => reason.map_or("rejected", Reason::name).to_owned(),
        }
    }
}

fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Accept { local_pref } => format!("accept, local preference {local_pref}"),
        Verdict::Reject(reason) => reason.name().to_owned(),
    }
}

fn verdict_of(asn: u32, route: &TableRoute) -> Found {
    if route.is_filtered {
        Found::Reject(own_large(&route.large, asn, REJECTED).and_then(Reason::of))
    } else {
        Found::Accept(route.local_pref)
    }
}

/// Why BIRD rejected a route; `None` = it did not, or the reason is not Weir's.
#[must_use]
pub fn rejection(asn: u32, route: &TableRoute) -> Option<Reason> {
    match verdict_of(asn, route) {
        Found::Reject(reason) => reason,
        Found::Accept(_) => None,
    }
}

/// A route as its neighbour announced it, as far as the policy is concerned: filters remove communities that do not
/// count, and change neither prefix nor path nor next hop.
#[must_use]
pub fn announced(route: &TableRoute) -> Route {
    Route {
        prefix: route.prefix,
        path: route.path.clone(),
        has_as_set: route.has_as_set,
        communities: route.communities.clone(),
        large: route.large.clone(),
        next_hop: route.next_hop,
    }
}
