//! Every crash of every sequence: always the old or the new configuration, never none.
//!
//! A sequence of operations runs on [`Remembered`]. For each of its prefixes, each picture that a power
//! cut may leave is opened as a restarted router would, and compared with what must run then; the
//! recovery itself is cut off and repeated, too. Some sequences are written out, others random; a disk
//! that fails joins in.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use proptest::prelude::*;
use weir_store::{
    Confirm, Fault, Meta, Picture, Recovered, Remembered, RevisionState, Store, StoreError, Why,
};

const KEEP: usize = 3;
/// Pictures looked at per prefix; where there are more, this many of them.
const MOST: usize = 200;

#[derive(Clone, Copy, Debug)]
enum Act {
    Apply,
    ApplyConfirm,
    Abandon,
    Confirm,
    RollBack,
    /// The process dies and starts again; the machine does not.
    Restart,
    /// The process dies between preparing and committing.
    DieUnderway,
}

/// A moment: so many operations of the disk were done, and a restart then runs this.
#[derive(Clone, Debug)]
struct Moment {
    operations: usize,
    running: Option<Vec<u8>>,
}

/// A store at work, and what must hold.
struct Work {
    files: Remembered,
    store: Option<Store>,
    number: u32,
    /// The running text, and the one before it while it is unconfirmed.
    running: Option<Vec<u8>>,
    before: Option<Option<Vec<u8>>>,
    /// Each text that was ever prepared, by its number: numbers of abandoned ones are given again.
    texts: BTreeMap<u64, Vec<Vec<u8>>>,
    moments: Vec<Moment>,
}

fn meta(number: u32) -> Meta {
    Meta {
        time_unix_ms: u64::from(number),
        author: "test".into(),
        comment: format!("change {number}"),
        steps: number,
    }
}

fn open(files: &Remembered) -> (Store, Recovered) {
    Store::open(Box::new(files.clone()), KEEP, 77).expect("a store opens after any crash")
}

fn text_of(recovered: &Recovered) -> Option<Vec<u8>> {
    recovered
        .running
        .as_ref()
        .map(|revision| revision.text.clone())
}

impl Work {
    fn new() -> Work {
        let files = Remembered::default();
        let (store, recovered) = open(&files);
        assert!(recovered.running.is_none() && recovered.unrecorded.is_none());
        let start = Moment {
            operations: 0,
            running: None,
        };
        let mut work = Work {
            files,
            store: Some(store),
            number: 0,
            running: None,
            before: None,
            texts: BTreeMap::new(),
            moments: vec![start],
        };
        work.note();
        work
    }

    /// What a restart would run now.
    fn after_restart(&self) -> Option<Vec<u8>> {
        self.before.clone().unwrap_or_else(|| self.running.clone())
    }

    fn note(&mut self) {
        self.moments.push(Moment {
            operations: self.files.operations(),
            running: self.after_restart(),
        });
    }

    fn store(&mut self) -> &mut Store {
        self.store.as_mut().expect("open")
    }

    fn prepare(&mut self) -> Option<(weir_store::Prepared, Vec<u8>)> {
        self.number += 1;
        let number = self.number;
        let text = format!(
            "# change {number}\n{}",
            "x".repeat(number as usize * 700 % 3000)
        )
        .into_bytes();
        match self.store().prepare(&text, meta(number)) {
            Ok(prepared) => {
                self.texts
                    .entry(prepared.revision())
                    .or_default()
                    .push(text.clone());
                Some((prepared, text))
            }
            Err(StoreError::Pending { .. }) => {
                assert!(self.before.is_some());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Apply | Act::ApplyConfirm => {
                if let Some((prepared, text)) = self.prepare() {
                    self.note();
                    let confirm = matches!(act, Act::ApplyConfirm).then_some(Confirm {
                        deadline_unix_ms: 9,
                    });
                    self.store().commit(prepared, confirm).expect("commits");
                    let old = self.running.replace(text);
                    self.before = confirm.map(|_| old);
                }
            }
            Act::Abandon => {
                if let Some((prepared, _)) = self.prepare() {
                    self.store().abandon(prepared);
                }
            }
            Act::Confirm => {
                let pending = self.before.take().is_some();
                assert_eq!(self.store().confirm().is_ok(), pending);
            }
            Act::RollBack => {
                let before = self.before.take();
                assert_eq!(
                    self.store().roll_back_pending(5, Why::Deadline).is_ok(),
                    before.is_some()
                );
                self.running = before.unwrap_or(self.running.take());
            }
            Act::Restart => self.restart(),
            Act::DieUnderway => {
                let _ = self.prepare();
                self.restart();
            }
        }
        self.note();
    }

    fn restart(&mut self) {
        self.note();
        drop(self.store.take());
        let (store, recovered) = open(&self.files);
        let expected = self.after_restart();
        assert_eq!(text_of(&recovered), expected);
        assert_eq!(recovered.rolled_back.is_some(), self.before.is_some());
        self.running = expected;
        self.before = None;
        self.store = Some(store);
    }

    /// Cuts the power after each operation, in each way; returns how many pictures were looked at.
    fn cut_everywhere(&self, seed: u64) -> usize {
        let mut looked = 0;
        for operations in 0..=self.files.operations() {
            let done = self
                .moments
                .iter()
                .rev()
                .find(|moment| moment.operations <= operations)
                .expect("the first has none");
            let next = self
                .moments
                .iter()
                .find(|moment| moment.operations > operations && done.operations < operations);
            for (number, picture) in self
                .files
                .pictures(operations, MOST, seed)
                .into_iter()
                .enumerate()
            {
                let running = self.check(&picture, number % 32 == 0);
                let fits =
                    running == done.running || next.is_some_and(|next| running == next.running);
                assert!(
                    fits,
                    "after {operations} operations: {:?} runs",
                    running.map(|text| String::from_utf8_lossy(&text).into_owned())
                );
                looked += 1;
            }
        }
        looked
    }

    /// Opens a picture; if asked, cuts the recovery off everywhere, and applies something.
    fn check(&self, picture: &Picture, thorough: bool) -> Option<Vec<u8>> {
        let files = Remembered::showing(picture);
        let (mut store, recovered) = open(&files);
        assert!(
            recovered.unrecorded.is_none() && recovered.damaged.is_empty(),
            "{recovered:?}"
        );
        assert_eq!(store.pending(), None);
        let running = text_of(&recovered);
        for entry in store.history() {
            let text = store
                .read(entry.revision)
                .expect("the history can be read")
                .text;
            assert!(
                self.texts[&entry.revision].contains(&text),
                "a text that was prepared under this number"
            );
            assert_ne!(entry.state, RevisionState::Unconfirmed);
        }
        assert!(store.history().len() <= KEEP + 1);
        let leftovers = files
            .seen()
            .keys()
            .filter(|name| name.ends_with(".yaml"))
            .count()
            - store.history().len();
        assert_eq!(leftovers, 0);
        if thorough {
            for operations in 0..=files.operations() {
                for cut in files.pictures(operations, 20, 3) {
                    assert_eq!(
                        text_of(&open(&Remembered::showing(&cut)).1),
                        running,
                        "the recovery was cut off after {operations} operations"
                    );
                }
            }
            let prepared = store.prepare(b"after", meta(1000)).expect("works on");
            store.commit(prepared, None).expect("works on");
            assert_eq!(text_of(&open(&files).1).as_deref(), Some(&b"after"[..]));
        }
        running
    }
}

fn run(acts: &[Act], seed: u64) -> usize {
    let mut work = Work::new();
    acts.iter().for_each(|&act| work.act(act));
    work.cut_everywhere(seed)
}

#[test]
fn written_out_sequences() {
    use Act::{Abandon, Apply, ApplyConfirm, Confirm, DieUnderway, Restart, RollBack};
    let sequences: [&[Act]; 6] = [
        &[Apply, Apply, Apply, Apply, Apply],
        &[ApplyConfirm, Confirm, ApplyConfirm, RollBack, Apply],
        &[ApplyConfirm, Restart, Apply, ApplyConfirm, Restart, Restart],
        &[Apply, Abandon, Apply, DieUnderway, Apply],
        &[
            Apply,
            ApplyConfirm,
            Apply,
            Confirm,
            ApplyConfirm,
            RollBack,
            ApplyConfirm,
            RollBack,
            ApplyConfirm,
            RollBack,
        ],
        &[Restart, DieUnderway, Restart],
    ];
    let looked: usize = sequences.iter().map(|acts| run(acts, 1)).sum();
    assert!(looked > 1000, "{looked} pictures");
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => Just(Act::Apply),
        3 => Just(Act::ApplyConfirm),
        1 => Just(Act::Abandon),
        2 => Just(Act::Confirm),
        2 => Just(Act::RollBack),
        1 => Just(Act::Restart),
        1 => Just(Act::DieUnderway),
    ];
    prop::collection::vec(act, 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_sequences(acts in acts(), seed: u64) {
        prop_assert!(run(&acts, seed) > 0);
    }

    /// A disk that fails once or for good, at any operation: what was acknowledged holds, and it continues when
    /// the disk works again.
    #[test]
    fn failing_disks(acts in acts(), after in 0..60_usize, times in 1..6_usize, half_done: bool, full: bool) {
        let files = Remembered::default();
        let kind = if full { ErrorKind::StorageFull } else { ErrorKind::Other };
        let (mut store, _) = open(&files);
        files.fail(Fault { after, times, kind, half_done });
        let (mut running, mut before): (Option<Vec<u8>>, Option<Option<Vec<u8>>>) = (None, None);
        for (number, act) in acts.into_iter().enumerate() {
            let text = format!("text {number}").into_bytes();
            match act {
                Act::Apply | Act::ApplyConfirm | Act::Abandon => match store.prepare(&text, meta(1)) {
                    Ok(prepared) if matches!(act, Act::Abandon) => store.abandon(prepared),
                    Ok(prepared) => {
                        let confirm = matches!(act, Act::ApplyConfirm).then_some(Confirm { deadline_unix_ms: 1 });
                        match store.commit(prepared, confirm) {
                            Ok(_) => before = confirm.map(|_| running.take()).or(before).filter(|_| confirm.is_some()),
                            Err(error) => {
                                prop_assert_eq!(error.system(), Some(kind));
                                continue;
                            }
                        }
                        running = Some(text);
                    }
                    Err(StoreError::Pending { .. }) => prop_assert!(before.is_some()),
                    Err(error) => prop_assert_eq!(error.system(), Some(kind), "{}", error),
                },
                Act::Confirm => match store.confirm() {
                    Ok(_) => before = None,
                    Err(StoreError::NothingPending) => prop_assert!(before.is_none()),
                    Err(error) => prop_assert_eq!(error.system(), Some(kind)),
                },
                Act::RollBack => match store.roll_back_pending(1, Why::Asked) {
                    Err(StoreError::NothingPending) => prop_assert!(before.is_none()),
                    _ => running = before.take().unwrap_or_default(),
                },
                Act::Restart | Act::DieUnderway => {}
            }
            prop_assert_eq!(store.running().map(|number| store.read(number).expect("whole").text), running.clone());
        }
        files.heal();
        // What was acknowledged before the fault may be unsettled; one change more, and everything holds again.
        if store.pending().is_some() {
            store.confirm().expect("the disk works again");
        }
        let prepared = store.prepare(b"last", meta(2)).expect("the disk works again");
        store.commit(prepared, None).expect("the disk works again");
        for picture in files.pictures(files.operations(), MOST, 5) {
            let (_, recovered) = open(&Remembered::showing(&picture));
            prop_assert_eq!(text_of(&recovered), Some(b"last".to_vec()));
            prop_assert!(recovered.damaged.is_empty());
        }
    }
}

/// A fault at any single operation, and power cut after it: the old or the new, whatever was acknowledged.
#[test]
fn a_fault_and_then_a_power_cut() {
    for (after, times) in (0..14).flat_map(|after| [1, 2, 100].map(|times| (after, times))) {
        for half_done in [false, true] {
            let files = Remembered::default();
            let (mut store, _) = open(&files);
            let first = store.prepare(b"old", meta(1)).unwrap();
            store.commit(first, None).unwrap();
            let begin = files.operations();
            files.fail(Fault {
                after,
                times,
                kind: ErrorKind::Other,
                half_done,
            });
            let saved = store
                .prepare(b"new", meta(2))
                .and_then(|prepared| store.commit(prepared, None));
            for operations in begin..=files.operations() {
                let (last, sure) = (operations == files.operations(), times == 1);
                for picture in files.pictures(operations, MOST, 9) {
                    let (_, recovered) = open(&Remembered::showing(&picture));
                    assert!(recovered.damaged.is_empty());
                    let text = text_of(&recovered).expect("never none");
                    assert!(text == b"old" || text == b"new");
                    assert!(
                        !last || saved.is_err() || text == b"new",
                        "acknowledged as saved"
                    );
                    assert!(
                        !last || saved.is_ok() || !sure || text == b"old",
                        "reported as unchanged"
                    );
                }
            }
        }
    }
}

/// A process that was killed left a state in memory only, and the next one's disk fails while it opens:
/// the state file that is on the disk stays untouched until the other one is.
#[test]
fn a_fault_while_opening_after_a_kill() {
    for (after, times) in (0..4).flat_map(|after| (1..4).map(move |times| (after, times))) {
        let files = Remembered::default();
        let (mut store, _) = open(&files);
        let first = store.prepare(b"old", meta(1)).unwrap();
        store.commit(first, None).unwrap();
        let second = store.prepare(b"new", meta(2)).unwrap();
        // The state is written, its sync and all that follows are not.
        files.fail(Fault {
            after: 1,
            times: usize::MAX,
            kind: ErrorKind::Other,
            half_done: false,
        });
        let begin = files.operations();
        assert!(store.commit(second, None).is_err());
        drop(store);
        files.fail(Fault {
            after,
            times,
            kind: ErrorKind::Other,
            half_done: false,
        });
        let (_, recovered) = open(&files);
        assert_eq!(
            text_of(&recovered),
            Some(b"new".to_vec()),
            "what the process sees"
        );
        for operations in begin..=files.operations() {
            for picture in files.pictures(operations, MOST, 11) {
                let (_, after_cut) = open(&Remembered::showing(&picture));
                let text = text_of(&after_cut).expect("never none");
                let saved = operations == files.operations() && recovered.unrecorded.is_none();
                assert!(text == b"new" || text == b"old" && !saved);
            }
        }
    }
}
