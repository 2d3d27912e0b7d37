//! Changes of the running BIRD: applied with BIRD's own time limit, watched, confirmed or undone.
//!
//! `apply` writes the configuration beside the old one, renames it, and sends `configure timeout`. While guards
//! run, sessions and imports are compared with what the plan predicts. The first guard that fails undoes the change
//! at once. When Weir itself is killed, BIRD undoes the change at the end of its time limit, and the next command puts the
//! earlier file back.
//!
//! One process at a time changes the state folder (a lock on `lock`). Files there:
//!
//! | file | what |
//! |---|---|
//! | `running.json` | summary of the confirmed configuration |
//! | `running.conf`, `previous.conf` (`.json`) | the confirmed configuration and the one before it |
//! | `pending.json`, `before.conf` | a change that waits for `confirm`, and the file that it replaced |

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::birdc::{Control, Session};
use crate::model::Mode;
use crate::plan::{Comparison, Plan, SessionChange, Summary};
use crate::resolve::Loaded;
use crate::traffic::Traffic;
use crate::{Error, cases};

/// How often guards look.
const TURN: Duration = Duration::from_millis(200);
/// BIRD's time limit is this much later than Weir's, so that Weir decides while it lives.
const MARGIN: Duration = Duration::from_secs(30);

/// The daemon and the folder that belongs to it.
#[derive(Clone, Debug)]
pub struct Daemon {
    /// The configuration file that BIRD reads.
    pub configuration: PathBuf,
    /// BIRD's control socket.
    pub socket: PathBuf,
    /// Weir's folder.
    pub state: PathBuf,
}

/// What must hold after a change.
#[derive(Clone, Copy)]
pub struct Guard<'g> {
    /// How long it is watched.
    pub window: Duration,
    /// By how many percent imports may be below what the plan predicts.
    pub imports_percent: u32,
    /// The number of routes of the router's forwarding table, when there is one to watch.
    pub fib: Option<&'g dyn Fn() -> Option<u64>>,
    /// By how many percent it may differ from the number before, beyond what the plan predicts.
    pub fib_percent: u32,
}

impl Guard<'_> {
    /// A guard over sessions and imports.
    #[must_use]
    pub fn new(window: Duration, imports_percent: u32) -> Self {
        Guard {
            window,
            imports_percent,
            fib: None,
            fib_percent: 100,
        }
    }
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// It is in force.
    Confirmed,
    /// It is in force until a deadline, and waits for `confirm`.
    Waiting {
        /// Seconds since 1970.
        until: u64,
    },
    /// A guard failed, and the earlier configuration is in force.
    Undone {
        /// Which guard failed.
        reason: String,
        /// Milliseconds from the failure to the undo.
        milliseconds: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Pending {
    until: u64,
    summary: Summary,
    /// Whether there was a file before.
    had_file: bool,
}

/// The lock of the state folder; it ends with this value.
struct Lock {
    _file: File,
}

impl Daemon {
    /// The summary of the confirmed configuration.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn running(&self) -> Result<Option<Summary>, Error> {
        read_json(&self.state.join("running.json"))
    }

    /// Whether the file that BIRD reads is not the one that Weir confirmed last.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn is_edited(&self) -> Result<bool, Error> {
        let found = read_file(&self.configuration)?;
        Ok(match read_file(&self.state.join("running.conf"))? {
            Some(own) => found.as_ref() != Some(&own),
            None => found.is_some_and(|text| !text.trim().is_empty()),
        })
    }

    /// Compares a configuration with the one that runs, and with the routes that BIRD has now.
    ///
    /// # Errors
    /// When BIRD does not run, or a file cannot be read.
    pub fn prepare(
        &self,
        of: &Loaded,
        traffic: Option<&Traffic>,
    ) -> Result<(Summary, Plan), Error> {
        let running = self.running()?;
        let summary = Summary::of(&of.peering, &of.snapshot);
        let mut plan = Plan::between(running.as_ref(), &summary);
        plan.notes.clone_from(&of.notes);
        if of.peering.include.changes_filters() {
            plan.notes
                .push("included files change filters; verdicts are those without them".to_owned());
        }
        let mut comparison = Comparison::new(&of.peering, &of.snapshot, running.as_ref(), traffic);
        self.control()?
            .each_route(|route| comparison.route(&route))?;
        plan.verdicts = Some(comparison.finish());
        Ok((summary, plan))
    }

    /// Maintenance that is not in the file, by neighbour or exchange.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn modes(&self) -> Result<BTreeMap<String, Mode>, Error> {
        Ok(read_json(&self.state.join("modes.json"))?.unwrap_or_default())
    }

    /// Keeps maintenance for the next commands.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_modes(&self, modes: &BTreeMap<String, Mode>) -> Result<(), Error> {
        std::fs::create_dir_all(&self.state).map_err(failed(&self.state))?;
        write_json(&self.state.join("modes.json"), modes)
    }

    /// A connection to BIRD.
    ///
    /// # Errors
    /// When it does not run.
    pub fn control(&self) -> Result<Control, Error> {
        Control::open(&self.socket)
    }

    fn lock(&self) -> Result<Lock, Error> {
        let failed = |source| Error::File {
            path: self.state.display().to_string(),
            source,
        };
        std::fs::create_dir_all(&self.state).map_err(failed)?;
        let file = File::create(self.state.join("lock")).map_err(failed)?;
        file.try_lock()
            .map_err(|_| Error::Refused("another `weir peering` changes BIRD now".to_owned()))?;
        Ok(Lock { _file: file })
    }

    /// Puts the earlier file back when BIRD has undone a change that nobody confirmed.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn settle(&self) -> Result<bool, Error> {
        let Some(pending) = self.pending()? else {
            return Ok(false);
        };
        if now() < pending.until.saturating_add(MARGIN.as_secs()) {
            return Ok(false);
        }
        self.restore(&pending)?;
        Ok(true)
    }

    fn pending(&self) -> Result<Option<Pending>, Error> {
        read_json(&self.state.join("pending.json"))
    }

    /// Seconds since 1970 until which a change waits for `confirm`.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn waits_until(&self) -> Result<Option<u64>, Error> {
        Ok(self.pending()?.map(|it| it.until))
    }

    fn restore(&self, pending: &Pending) -> Result<(), Error> {
        let before = self.state.join("before.conf");
        if pending.had_file {
            let text = read_file(&before)?.ok_or_else(|| {
                Error::Refused(format!(
                    "{} is missing: write BIRD's earlier configuration yourself",
                    before.display()
                ))
            })?;
            write(&self.configuration, &text)?;
        } else {
            remove(&self.configuration)?;
        }
        remove(&self.state.join("pending.json"))?;
        remove(&before)
    }

    /// Replaces the configuration of the running BIRD. With `wait`, a change whose guards held waits that long for
    /// [`Daemon::confirm`]; otherwise it is confirmed.
    ///
    /// # Errors
    /// When BIRD refuses the configuration or does not answer; the earlier file is in place then.
    pub fn apply(
        &self,
        configuration: &str,
        summary: &Summary,
        plan: &Plan,
        guard: Guard<'_>,
        wait: Option<Duration>,
    ) -> Result<Outcome, Error> {
        let _lock = self.lock()?;
        self.settle()?;
        if self.pending()?.is_some() {
            return Err(Error::Refused(
                "a change waits for `weir peering confirm` or `rollback`".to_owned(),
            ));
        }
        cases::check(configuration)?;
        let mut control = self.control()?;
        let expected = Expected::new(&control.sessions()?, summary, plan, guard);
        let before = read_file(&self.configuration)?;
        let limit = guard.window + wait.unwrap_or_default();
        let pending = Pending {
            until: now() + limit.as_secs(),
            summary: summary.clone(),
            had_file: before.is_some(),
        };
        if let Some(text) = &before {
            write(&self.state.join("before.conf"), text)?;
        }
        write_json(&self.state.join("pending.json"), &pending)?;
        write(&self.configuration, configuration)?;
        if let Err(error) = self.configure(&mut control, limit + MARGIN) {
            self.restore(&pending)?;
            return Err(error);
        }
        if let Err(reason) = expected.watch(&mut control, guard) {
            let since = Instant::now();
            // A connection that broke may be the reason.
            let mut control = self.control()?;
            control.ask("configure undo")?;
            self.restore(&pending)?;
            expected.enable(&mut control)?;
            return Ok(Outcome::Undone {
                reason,
                milliseconds: since.elapsed().as_millis() as u64,
            });
        }
        if wait.is_some() {
            return Ok(Outcome::Waiting {
                until: pending.until,
            });
        }
        self.keep(&mut control, &pending)?;
        Ok(Outcome::Confirmed)
    }

    fn configure(&self, control: &mut Control, limit: Duration) -> Result<(), Error> {
        let reply = control.ask(&format!("configure timeout {}", limit.as_secs().max(1)))?;
        // BIRD names the file that it read.
        let path = self.configuration.display().to_string();
        if reply.contains(&path) {
            return Ok(());
        }
        // The refusal says more than a failed undo of a configuration that did not change.
        let _ = control.ask("configure undo");
        Err(Error::Refused(format!(
            "BIRD reads another file than {path}: {}; name it by --bird-config",
            reply.lines().next().unwrap_or("").trim()
        )))
    }

    fn keep(&self, control: &mut Control, pending: &Pending) -> Result<(), Error> {
        control.ask("configure confirm")?;
        for name in ["conf", "json"] {
            let running = self.state.join(format!("running.{name}"));
            if let Some(text) = read_file(&running)? {
                write(&self.state.join(format!("previous.{name}")), &text)?;
            }
        }
        if let Some(text) = read_file(&self.configuration)? {
            write(&self.state.join("running.conf"), &text)?;
        }
        write_json(&self.state.join("running.json"), &pending.summary)?;
        remove(&self.state.join("pending.json"))?;
        remove(&self.state.join("before.conf"))
    }

    /// Confirms the change that waits.
    ///
    /// # Errors
    /// When none waits, or its time is over.
    pub fn confirm(&self) -> Result<(), Error> {
        let _lock = self.lock()?;
        if self.settle()? {
            return Err(Error::Refused(
                "the change was not confirmed in time; the earlier configuration is in force"
                    .to_owned(),
            ));
        }
        let pending = self
            .pending()?
            .ok_or_else(|| Error::Refused("no change waits".to_owned()))?;
        self.keep(&mut self.control()?, &pending)
    }

    /// Undoes the change that waits, or else goes back to the configuration before the running one. Returns
    /// whether a change waited.
    ///
    /// # Errors
    /// When there is nothing to go back to, or BIRD refuses.
    pub fn rollback(&self) -> Result<bool, Error> {
        let _lock = self.lock()?;
        if self.settle()? {
            return Ok(true);
        }
        let mut control = self.control()?;
        if let Some(pending) = self.pending()? {
            control.ask("configure undo")?;
            self.restore(&pending)?;
            return Ok(true);
        }
        let (previous, summary) = (
            read_file(&self.state.join("previous.conf"))?,
            read_json::<Summary>(&self.state.join("previous.json"))?,
        );
        let (Some(previous), Some(summary)) = (previous, summary) else {
            return Err(Error::Refused(
                "there is no earlier configuration".to_owned(),
            ));
        };
        cases::check(&previous)?;
        let pending = Pending {
            until: now(),
            summary,
            had_file: true,
        };
        if let Some(text) = read_file(&self.configuration)? {
            write(&self.state.join("before.conf"), &text)?;
        }
        write_json(&self.state.join("pending.json"), &pending)?;
        write(&self.configuration, &previous)?;
        if let Err(error) = self.configure(&mut control, MARGIN) {
            self.restore(&pending)?;
            return Err(error);
        }
        self.keep(&mut control, &pending)?;
        Ok(false)
    }
}

/// What the plan predicts of sessions.
struct Expected {
    /// Sessions that were up and stay; they must never go down.
    steady: Vec<String>,
    /// Sessions that were up and are reset; they must be up at the end.
    returning: Vec<String>,
    /// The fewest imports of a session that is up.
    imports: BTreeMap<String, u64>,
    /// The fewest and the most routes of the forwarding table.
    fib: Option<(u64, u64)>,
}

impl Expected {
    fn new(before: &[Session], summary: &Summary, plan: &Plan, guard: Guard<'_>) -> Expected {
        let changes: BTreeMap<&str, SessionChange> = plan
            .sessions
            .iter()
            .map(|it| (it.name.as_str(), it.change))
            .collect();
        let mut expected = Expected {
            steady: Vec::new(),
            returning: Vec::new(),
            imports: BTreeMap::new(),
            fib: guard.fib.and_then(|routes| routes()).map(|before| {
                let share = |percent: u64| before.saturating_mul(percent) / 100;
                let percent = u64::from(guard.fib_percent.min(100));
                let gone = plan.verdicts.as_ref().map_or(0, |it| it.rejected + it.gone);
                let more = plan.verdicts.as_ref().map_or(0, |it| it.accepted);
                (
                    share(100 - percent).saturating_sub(gone),
                    share(100 + percent).saturating_add(more),
                )
            }),
        };
        for session in before.iter().filter(|it| it.is_up) {
            if !summary.sessions.contains_key(&session.name) {
                continue;
            }
            match changes.get(session.name.as_str()) {
                Some(SessionChange::Disable | SessionChange::Remove) => continue,
                Some(SessionChange::Reset | SessionChange::Add | SessionChange::Enable) => {
                    expected.returning.push(session.name.clone());
                }
                Some(SessionChange::Reload) | None => expected.steady.push(session.name.clone()),
            }
            let predicted = match &plan.verdicts {
                Some(diff) => diff
                    .sessions
                    .get(&session.name)
                    .map_or(0, |it| it.accepted_after),
                None => session.imported,
            };
            let share = 100u64.saturating_sub(u64::from(guard.imports_percent));
            expected
                .imports
                .insert(session.name.clone(), predicted.saturating_mul(share) / 100);
        }
        expected
    }

    /// Watches for the whole window; the first guard that fails ends it.
    fn watch(&self, control: &mut Control, guard: Guard<'_>) -> Result<(), String> {
        let until = Instant::now() + guard.window;
        loop {
            let is_last = Instant::now() >= until;
            let sessions = control.sessions().map_err(|error| error.to_string())?;
            self.check(&sessions, is_last)?;
            self.check_fib(guard.fib.and_then(|routes| routes()))?;
            if is_last {
                return Ok(());
            }
            std::thread::sleep(TURN.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Opens sessions that the change shut. BIRD keeps a session disabled whose limit was exceeded, also when the
    /// limit is gone.
    fn enable(&self, control: &mut Control) -> Result<(), Error> {
        for session in control.sessions()? {
            let is_ours =
                self.steady.contains(&session.name) || self.returning.contains(&session.name);
            if is_ours && session.is_disabled {
                control.ask(&format!("enable {}", session.name))?;
            }
        }
        Ok(())
    }

    /// Compares the number of routes of the forwarding table with its bounds.
    fn check_fib(&self, found: Option<u64>) -> Result<(), String> {
        match (self.fib, found) {
            (Some((least, most)), Some(found)) if found < least || found > most => Err(format!(
                "the forwarding table has {found} routes; {least} to {most} are expected"
            )),
            (Some(_), None) => Err("the router does not say how many routes it has".to_owned()),
            _ => Ok(()),
        }
    }

    fn check(&self, sessions: &[Session], is_last: bool) -> Result<(), String> {
        let by_name: BTreeMap<&str, &Session> =
            sessions.iter().map(|it| (it.name.as_str(), it)).collect();
        let down = |name: &String| {
            by_name
                .get(name.as_str())
                .filter(|it| !it.is_up)
                .map(|it| {
                    let why = it.last_error.as_deref().unwrap_or(&it.state);
                    format!("session {name} is down: {why}")
                })
                .or_else(|| {
                    (!by_name.contains_key(name.as_str()))
                        .then(|| format!("session {name} is not there"))
                })
        };
        if let Some(reason) = self.steady.iter().find_map(down) {
            return Err(reason);
        }
        for name in &self.steady {
            let found = by_name.get(name.as_str()).map_or(0, |it| it.imported);
            let least = self.imports.get(name).copied().unwrap_or(0);
            if found < least {
                return Err(format!(
                    "session {name} has {found} routes; the plan predicts at least {least}"
                ));
            }
        }
        match self.returning.iter().find_map(down) {
            Some(reason) if is_last => return Err(reason),
            _ => {}
        }
        Ok(())
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |it| it.as_secs())
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::File {
        path: path.display().to_string(),
        source,
    }
}

fn read_file(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let Some(text) = read_file(path)? else {
        return Ok(None);
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Error::Format {
            path: path.display().to_string(),
            reason: error.to_string(),
        })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value).map_err(|error| Error::Format {
        path: path.display().to_string(),
        reason: error.to_string(),
    })?;
    write(path, &text)
}

/// Writes a file beside the old one and renames it: readers see one or the other.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, path))
        .map_err(failed(path))
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{SessionDiff, VerdictDiff};

    fn session(name: &str, is_up: bool, imported: u64) -> Session {
        Session {
            name: name.to_owned(),
            is_up,
            imported,
            ..Session::default()
        }
    }

    fn summary(names: &[&str]) -> Summary {
        let one = |name: &&str| {
            let text = r#"{"asn": 64500, "address": "192.0.2.1", "role": "peer", "is_down": false, "gtsm": false,
                "password_file": null, "limit": null, "filters": 0}"#;
            ((*name).to_owned(), serde_json::from_str(text).unwrap())
        };
        Summary {
            asn: 65000,
            sessions: names.iter().map(one).collect(),
            ..Summary::default()
        }
    }

    #[test]
    fn guards_compare_sessions_and_imports_with_the_plan() {
        let old = summary(&["a", "b", "c"]);
        let mut new = summary(&["a", "b"]);
        new.sessions.get_mut("b").unwrap().gtsm = true;
        let mut plan = Plan::between(Some(&old), &new);
        let predicted = SessionDiff {
            accepted_after: 50,
            ..SessionDiff::default()
        };
        plan.verdicts = Some(VerdictDiff {
            sessions: [("a".to_owned(), predicted)].into(),
            ..VerdictDiff::default()
        });
        let fib = || Some(1_000);
        let guard = Guard {
            fib: Some(&fib),
            fib_percent: 5,
            ..Guard::new(Duration::ZERO, 10)
        };
        let before = [
            session("a", true, 100),
            session("b", true, 5),
            session("c", true, 5),
        ];
        let expected = Expected::new(&before, &new, &plan, guard);
        // `a` stays, `b` is reset, `c` goes.
        let check = |a: Session, b_up: bool, is_last: bool| {
            expected.check(&[a, session("b", b_up, 0)], is_last)
        };
        assert_eq!(check(session("a", true, 45), false, false), Ok(()));
        assert!(check(session("a", true, 44), true, false).is_err());
        assert!(check(session("a", false, 50), true, false).is_err());
        assert!(check(session("a", true, 50), false, true).is_err());
        assert_eq!(check(session("a", true, 50), true, true), Ok(()));
        assert!(expected.check(&[session("b", true, 0)], false).is_err());
        let fib = |routes| expected.check_fib(routes).is_ok();
        assert!(fib(Some(950)) && fib(Some(1_050)));
        assert!(!fib(Some(949)) && !fib(Some(1_051)) && !fib(None));
    }
}
