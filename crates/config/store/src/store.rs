//! The store: revisions and state in [`Files`], in an order that no crash can spoil.
//!
//! The order, and why it holds: a revision's file and its name are on the disk before a state that
//! speaks of it is written; a state is written over the *older* of the two state files, and the newer
//! one is on the disk whole before that begins; files that the new state does not name are removed only
//! when it is on the disk. So after a crash at any place one state is whole, and all it names is there.
//!
//! When a write of the state fails, nobody knows what the disk will show after a crash. The store then
//! writes the state that holds once more, with a higher generation; while that fails, too, it is
//! *unsettled*, and takes nothing new before it has succeeded.
//!
//! Called by one thread at a time; nothing here waits for anything but the disk.

use std::io;

use crate::error::StoreError;
use crate::files::{Files, OpenFile};
use crate::revision::{self, MOST_AUTHOR, MOST_COMMENT, MOST_HEAD, MOST_TEXT, Meta, Revision};
use crate::state::{Pending, RevisionState, SLOTS, State, Why, size_for};

/// The largest number of revisions that a store can keep.
pub const MOST_KEPT: usize = 1000;

/// Until when a revision must be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// Milliseconds since 1970, UTC. Shown to people; the caller's own timer decides.
    pub deadline_unix_ms: u64,
}

/// A revision that is on the disk and does not count yet.
#[derive(Debug)]
#[must_use = "commit it or abandon it"]
pub struct Prepared {
    entry: Entry,
    turn: u64,
}

impl Prepared {
    /// The number it will have.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.entry.revision
    }
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number.
    pub revision: u64,
    /// Who, when and why; empty when the file's head is damaged.
    pub meta: Meta,
    /// Bytes of the text.
    pub length: usize,
    /// What became of it.
    pub state: RevisionState,
    /// Whether its file is no longer as it was written, as far as it was read.
    pub damaged: bool,
}

/// What was found when the store was opened.
#[derive(Debug, Default)]
pub struct Recovered {
    /// What a restarted router must load; none when nothing was ever applied.
    pub running: Option<Revision>,
    /// A revision that was not confirmed when the router ended, and was rolled back now.
    pub rolled_back: Option<Pending>,
    /// There are revisions, but no state that is whole, which no crash leaves. The history was made again from the files;
    /// which of them ran is not known, so none is `running`.
    pub lost: bool,
    /// Revisions whose files are no longer as they were written. When the running one is among them,
    /// the newest one before it that was in force is taken.
    pub damaged: Vec<u64>,
    /// Files removed that no state speaks of: a crash left them.
    pub removed: usize,
    /// Why the disk did not take the state; nothing can be saved before it does.
    pub unrecorded: Option<StoreError>,
}

/// What was tried, on which file, and what the system said.
#[derive(Debug)]
struct Failed(String, io::Error);

impl Failed {
    fn refused(self) -> StoreError {
        StoreError::Refused {
            doing: self.0,
            source: self.1,
        }
    }

    fn unrecorded(self) -> StoreError {
        StoreError::Unrecorded {
            doing: self.0,
            source: self.1,
        }
    }

    fn open(self) -> StoreError {
        StoreError::Open {
            doing: self.0,
            source: self.1,
        }
    }
}

/// The applied configurations of one router.
pub struct Store {
    files: Box<dyn Files>,
    slots: [Option<Box<dyn OpenFile>>; 2],
    /// Bytes that each state file has on the disk.
    lengths: [usize; 2],
    /// Bytes that both must have, so that writing a state takes no space.
    size: usize,
    /// The state file that is on the disk, whole; the other one is the next to be written.
    durable: Option<usize>,
    generation: u64,
    /// Whether the disk has the state, and nothing that a crash could put in its place.
    settled: bool,
    state: State,
    /// As `state.revisions`.
    history: Vec<Entry>,
    keep: usize,
    /// Counts what was prepared: only the last can be committed.
    turn: u64,
    /// The file of what was prepared and neither committed nor abandoned.
    prepared: Option<u64>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Store")
            .field("folder", &self.files.path(""))
            .field("settled", &self.settled)
            .field("state", &self.state)
            .finish()
    }
}

impl Store {
    /// Opens a store and brings it in order: a revision that was not confirmed is rolled back, what a
    /// crash left is removed. The newest `keep` revisions are kept from now on (1 to [`MOST_KEPT`]).
    /// A disk that cannot be written does not keep a store from being opened.
    ///
    /// # Errors
    /// [`StoreError::Open`] when the folder cannot be read.
    pub fn open(
        files: Box<dyn Files>,
        keep: usize,
        now_unix_ms: u64,
    ) -> Result<(Store, Recovered), StoreError> {
        let keep = keep.clamp(1, MOST_KEPT);
        let mut store = Store {
            files,
            slots: [None, None],
            lengths: [0, 0],
            size: size_for(keep),
            durable: None,
            generation: 0,
            settled: true,
            state: State::default(),
            history: Vec::new(),
            keep,
            turn: 0,
            prepared: None,
        };
        let mut recovered = Recovered::default();
        let found = store.numbers().map_err(Failed::open)?;
        if !store.load_state().map_err(Failed::open)? && !found.is_empty() {
            recovered.lost = true;
            store.change(State::of_files(&found, keep));
        }
        if let Some(pending) = store.state.pending {
            store.change(store.state.after_rollback(now_unix_ms, Why::Restart));
            recovered.rolled_back = Some(pending);
        }
        store.load_history();
        recovered.running = store.load_running();
        recovered.damaged = store
            .history
            .iter()
            .filter(|entry| entry.damaged)
            .map(|entry| entry.revision)
            .collect();
        match store.settle() {
            Ok(()) => recovered.removed = store.clean(&found),
            Err(failed) => recovered.unrecorded = Some(failed.unrecorded()),
        }
        Ok((store, recovered))
    }

    /// Puts a new revision on the disk, where it does not count yet. What was prepared before and not
    /// committed is given up.
    ///
    /// # Errors
    /// [`StoreError::Refused`] when the disk is full or read-only, [`StoreError::Pending`] when a
    /// revision waits to be confirmed, [`StoreError::TooLong`]. Nothing has changed then.
    pub fn prepare(&mut self, text: &[u8], meta: Meta) -> Result<Prepared, StoreError> {
        check_length("text", text.len(), MOST_TEXT)?;
        check_length("author", meta.author.len(), MOST_AUTHOR)?;
        check_length("comment", meta.comment.len(), MOST_COMMENT)?;
        if let Some(Pending { revision, .. }) = self.state.pending {
            return Err(StoreError::Pending { revision });
        }
        self.give_up();
        self.settle().map_err(Failed::refused)?;
        let number = self.state.newest().saturating_add(1);
        self.turn += 1;
        self.prepared = Some(number);
        if let Err(failed) =
            self.write_revision(&name_of(number), &revision::encode(number, &meta, text))
        {
            self.give_up();
            return Err(failed.refused());
        }
        Ok(Prepared {
            entry: Entry {
                revision: number,
                meta,
                length: text.len(),
                state: RevisionState::Applied,
                damaged: false,
            },
            turn: self.turn,
        })
    }

    /// Makes a prepared revision the running one, until confirmed if asked so. Needs no space on the disk.
    ///
    /// # Errors
    /// [`StoreError::Refused`] when the disk fails, [`StoreError::Stale`]. The revision before runs on.
    pub fn commit(
        &mut self,
        prepared: Prepared,
        confirm: Option<Confirm>,
    ) -> Result<u64, StoreError> {
        let Prepared { mut entry, turn } = prepared;
        let number = entry.revision;
        if turn != self.turn || self.prepared != Some(number) {
            return Err(StoreError::Stale { revision: number });
        }
        let next = self.state.after_commit(
            number,
            confirm.map(|confirm| confirm.deadline_unix_ms),
            self.keep,
        );
        if let Err(failed) = self.switch(&next) {
            // Unsettled, the disk may show a state that names the file: it must stay.
            if self.settled {
                self.give_up();
            }
            self.prepared = None;
            return Err(failed.refused());
        }
        self.prepared = None;
        if confirm.is_some() {
            entry.state = RevisionState::Unconfirmed;
        }
        self.history.push(entry);
        self.prune();
        Ok(number)
    }

    /// Forgets a prepared revision.
    pub fn abandon(&mut self, prepared: Prepared) {
        if prepared.turn == self.turn {
            self.give_up();
        }
    }

    /// Confirms the pending revision. Needs no space on the disk.
    ///
    /// # Errors
    /// [`StoreError::NothingPending`]; [`StoreError::Refused`] when the disk fails: it is still pending.
    pub fn confirm(&mut self) -> Result<u64, StoreError> {
        let pending = self.state.pending.ok_or(StoreError::NothingPending)?;
        self.switch(&self.state.after_confirm())
            .map_err(Failed::refused)?;
        self.tell_fates();
        Ok(pending.revision)
    }

    /// Gives the pending revision up; the one before it runs again. Needs no space on the disk.
    ///
    /// # Errors
    /// [`StoreError::NothingPending`]; [`StoreError::Unrecorded`] when the disk fails: the store has
    /// rolled back all the same, and a restart comes to the same.
    pub fn roll_back_pending(&mut self, now_unix_ms: u64, why: Why) -> Result<Pending, StoreError> {
        let pending = self.state.pending.ok_or(StoreError::NothingPending)?;
        self.change(self.state.after_rollback(now_unix_ms, why));
        self.tell_fates();
        self.settle().map_err(Failed::unrecorded)?;
        Ok(pending)
    }

    /// The revision that waits to be confirmed.
    #[must_use]
    pub fn pending(&self) -> Option<Pending> {
        self.state.pending
    }

    /// The number of the running revision.
    #[must_use]
    pub fn running(&self) -> Option<u64> {
        self.state.running
    }

    /// What is kept, oldest first.
    #[must_use]
    pub fn history(&self) -> &[Entry] {
        &self.history
    }

    /// Reads a revision of the history.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] when it is not kept, [`StoreError::Damaged`], [`StoreError::Open`].
    pub fn read(&self, number: u64) -> Result<Revision, StoreError> {
        if !self.history.iter().any(|entry| entry.revision == number) {
            let oldest = self.history.first().map_or(0, |entry| entry.revision);
            return Err(StoreError::Unknown {
                revision: number,
                oldest,
                newest: self.state.newest(),
            });
        }
        let name = name_of(number);
        match self.files.read(&name, MOST_HEAD + MOST_TEXT + 1) {
            Ok(file) => revision::decode(&file).filter(|it| it.number == number),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(self.failed("reading", &name)(source).open()),
        }
        .ok_or_else(|| StoreError::Damaged {
            revision: number,
            path: self.files.path(&name),
        })
    }

    fn failed(&self, doing: &str, name: &str) -> impl FnOnce(io::Error) -> Failed + use<> {
        let doing = format!("{doing} {}", self.files.path(name));
        move |error| Failed(doing, error)
    }

    /// The numbers of all files that are revisions by name.
    fn numbers(&self) -> Result<Vec<u64>, Failed> {
        let names = self.files.list().map_err(self.failed("listing", ""))?;
        Ok(names.iter().filter_map(|name| number_of(name)).collect())
    }

    /// Takes the newer of the state files that are whole; false when none is.
    fn load_state(&mut self) -> Result<bool, Failed> {
        let mut whole = 0;
        for (slot, name) in SLOTS.into_iter().enumerate() {
            let bytes = match self.files.read(name, size_for(MOST_KEPT)) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(self.failed("reading", name)(error)),
            };
            self.size = self.size.max(bytes.len());
            if let Some(length) = self.lengths.get_mut(slot) {
                *length = bytes.len();
            }
            let Some((generation, state)) = State::decode(&bytes) else {
                self.settled = false;
                continue;
            };
            whole += 1;
            if self.durable.is_none() || generation > self.generation {
                (self.durable, self.generation, self.state) = (Some(slot), generation, state);
            }
        }
        // A process that was killed may have left a state in memory only: what we tell now must hold
        // after a power cut, too, and until then the other file, if it is whole, is the one that is safe.
        if let Some(slot) = self.durable
            && self.sync_found(slot).is_err()
        {
            self.durable = Some(if whole == 2 { 1 - slot } else { slot });
            self.settled = false;
        }
        Ok(whole > 0)
    }

    fn sync_found(&mut self, slot: usize) -> Result<(), Failed> {
        self.open_slots()?;
        if let Some(Some(file)) = self.slots.get_mut(slot) {
            file.sync().map_err(|error| Failed(String::new(), error))?;
        }
        self.files
            .sync_names()
            .map_err(|error| Failed(String::new(), error))
    }

    /// Reads the heads of all revisions that the state names.
    fn load_history(&mut self) {
        for (number, state) in self.state.revisions.clone() {
            let head = self
                .files
                .read(&name_of(number), MOST_HEAD)
                .ok()
                .and_then(|file| revision::decode_head(&file));
            let head = head.filter(|head| head.number == number);
            let damaged = head.is_none();
            let (meta, length) =
                head.map_or_else(Default::default, |head| (head.meta, head.length));
            self.history.push(Entry {
                revision: number,
                meta,
                length,
                state,
                damaged,
            });
        }
    }

    /// Reads the running revision, or the newest before it that was in force and is whole.
    fn load_running(&mut self) -> Option<Revision> {
        let mut wanted = self.state.running;
        while let Some(number) = wanted {
            if let Ok(revision) = self.read(number) {
                if self.state.running != wanted {
                    self.change(State {
                        running: wanted,
                        ..self.state.clone()
                    });
                }
                return Some(revision);
            }
            self.history
                .iter_mut()
                .filter(|entry| entry.revision == number)
                .for_each(|entry| entry.damaged = true);
            let fits = |entry: &&Entry| {
                entry.revision < number && entry.state == RevisionState::Applied && !entry.damaged
            };
            wanted = self
                .history
                .iter()
                .rev()
                .find(fits)
                .map(|entry| entry.revision);
        }
        if self.state.running.is_some() {
            self.change(State {
                running: None,
                ..self.state.clone()
            });
        }
        None
    }

    /// Sets the state in memory; the disk follows with [`Store::settle`].
    fn change(&mut self, state: State) {
        self.state = state;
        self.settled = false;
    }

    /// Sets the state on the disk, then in memory; when the disk fails, neither.
    fn switch(&mut self, next: &State) -> Result<(), Failed> {
        self.settle()?;
        if let Err(failed) = self.write_state(next) {
            self.settled = false;
            // Whether this works or not, it is tried again before anything new is taken.
            let _ = self.settle();
            return Err(failed);
        }
        self.state = next.clone();
        Ok(())
    }

    /// Sees to it that the disk has the state, and that the next one will take no space.
    fn settle(&mut self) -> Result<(), Failed> {
        // Twice where both state files are too short: they are written in turn.
        while !self.settled || self.lengths.iter().any(|&length| length < self.size) {
            self.open_slots()?;
            self.write_state(&self.state.clone())?;
            self.settled = true;
        }
        Ok(())
    }

    /// Opens both state files, and makes those that are missing at full size.
    fn open_slots(&mut self) -> Result<(), Failed> {
        let mut made = false;
        let size = self.size;
        let slots = self.slots.iter_mut().zip(&mut self.lengths).zip(SLOTS);
        for ((slot, length), name) in slots.filter(|((slot, _), _)| slot.is_none()) {
            let failed = |doing: &str| {
                let doing = format!("{doing} {}", self.files.path(name));
                move |error| Failed(doing, error)
            };
            let (opening, making) = (failed("opening"), failed("making"));
            let file = match self.files.open(name) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    (made, *length) = (true, size);
                    let file = self.files.create(name).and_then(|mut file| {
                        file.write(&vec![b'\n'; size])?;
                        file.sync()?;
                        Ok(file)
                    });
                    if file.is_err() {
                        let _ = self.files.remove(name);
                    }
                    file.map_err(making)?
                }
                Err(error) => return Err(opening(error)),
            };
            *slot = Some(file);
        }
        if made {
            self.files
                .sync_names()
                .map_err(self.failed("syncing", ""))?;
        }
        Ok(())
    }

    /// Writes a state over the older state file.
    fn write_state(&mut self, state: &State) -> Result<(), Failed> {
        let target = self.durable.map_or(0, |durable| 1 - durable);
        self.generation = self.generation.saturating_add(1);
        let bytes = state.encode(self.generation, self.size);
        let name = SLOTS.get(target).copied().unwrap_or_default();
        let (writing, syncing) = (self.failed("writing", name), self.failed("syncing", name));
        let Some(Some(file)) = self.slots.get_mut(target) else {
            return Err(writing(io::ErrorKind::NotFound.into()));
        };
        file.write(&bytes).map_err(writing)?;
        file.sync().map_err(syncing)?;
        self.durable = Some(target);
        if let Some(length) = self.lengths.get_mut(target) {
            *length = bytes.len();
        }
        Ok(())
    }

    /// Writes the file of a revision; it is on the disk, name and all, when this comes back.
    fn write_revision(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failed> {
        let mut file = match self.files.create(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Given up before, and could not be removed then.
                self.files
                    .remove(name)
                    .map_err(self.failed("removing", name))?;
                self.files.create(name)
            }
            other => other,
        }
        .map_err(self.failed("making", name))?;
        file.write(bytes).map_err(self.failed("writing", name))?;
        file.sync().map_err(self.failed("syncing", name))?;
        self.files.sync_names().map_err(self.failed("syncing", ""))
    }

    /// Removes what was prepared. If that fails, the next revision of this number or the next start does it.
    fn give_up(&mut self) {
        if let Some(number) = self.prepared.take() {
            let _ = self.files.remove(&name_of(number));
        }
    }

    /// Removes revisions that the state no longer names; what fails is done at the next start.
    fn prune(&mut self) {
        let (files, state) = (&mut self.files, &self.state);
        self.history.retain(|entry| {
            let kept = state
                .revisions
                .iter()
                .any(|(number, _)| *number == entry.revision);
            if !kept {
                let _ = files.remove(&name_of(entry.revision));
            }
            kept
        });
        self.tell_fates();
    }

    /// Brings the history's states up to the state's.
    fn tell_fates(&mut self) {
        for entry in &mut self.history {
            if let Some((_, state)) = self
                .state
                .revisions
                .iter()
                .find(|(number, _)| *number == entry.revision)
            {
                entry.state = *state;
            }
        }
    }

    /// Removes files of revisions that the state does not name.
    fn clean(&mut self, found: &[u64]) -> usize {
        let named = |number: &u64| {
            self.state
                .revisions
                .iter()
                .any(|(other, _)| other == number)
        };
        let orphans: Vec<u64> = found
            .iter()
            .filter(|number| !named(number))
            .copied()
            .collect();
        orphans
            .iter()
            .filter(|number| self.files.remove(&name_of(**number)).is_ok())
            .count()
    }
}

fn check_length(what: &'static str, length: usize, most: usize) -> Result<(), StoreError> {
    if length > most {
        Err(StoreError::TooLong { what, length, most })
    } else {
        Ok(())
    }
}

fn name_of(number: u64) -> String {
    format!("{number:06}.yaml")
}

/// The number of a revision's file; nothing when it is another file.
fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".yaml")?.parse().ok()?;
    (name_of(number) == name).then_some(number)
}
