//! What the store does for its caller, on a folder in memory.

use std::io::ErrorKind;

use weir_store::{
    Confirm, Fault, Meta, Picture, Recovered, Remembered, RevisionState, Store, StoreError, Why,
};

fn meta(comment: &str) -> Meta {
    Meta {
        time_unix_ms: 1_730_000_000_000,
        author: "admin".into(),
        comment: comment.into(),
        steps: 4,
    }
}

fn open(files: &Remembered, keep: usize) -> (Store, Recovered) {
    Store::open(Box::new(files.clone()), keep, 500).unwrap()
}

fn apply(store: &mut Store, text: &str, confirm: Option<Confirm>) -> u64 {
    let prepared = store.prepare(text.as_bytes(), meta(text)).unwrap();
    store.commit(prepared, confirm).unwrap()
}

const SOON: Option<Confirm> = Some(Confirm {
    deadline_unix_ms: 1000,
});

#[test]
fn the_history_tells_who_when_why_and_what_became_of_it() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "a", None);
    apply(&mut store, "b", SOON);
    store.roll_back_pending(700, Why::Deadline).unwrap();
    apply(&mut store, "c", SOON);
    let states: Vec<RevisionState> = store.history().iter().map(|entry| entry.state).collect();
    assert_eq!(
        states,
        [
            RevisionState::Applied,
            RevisionState::RolledBack {
                time_unix_ms: 700,
                why: Why::Deadline
            },
            RevisionState::Unconfirmed
        ]
    );
    assert_eq!(
        (store.running(), store.pending().unwrap().before),
        (Some(3), Some(1))
    );
    assert_eq!(store.confirm().unwrap(), 3);
    let before = store.history().to_vec();
    assert_eq!(
        (before[2].state, before[2].meta.clone(), before[2].length),
        (RevisionState::Applied, meta("c"), 1)
    );
    assert_eq!(store.read(2).unwrap().text, b"b");
    let (store, recovered) = open(&files, 50);
    assert_eq!(
        (store.history(), recovered.rolled_back),
        (before.as_slice(), None)
    );
}

#[test]
fn the_last_fifty_are_kept() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    for number in 1..=120 {
        apply(&mut store, &format!("text {number}"), None);
    }
    assert_eq!(store.history().len(), 50);
    assert_eq!(store.read(71).unwrap().text, b"text 71");
    let refused = store.read(70).unwrap_err().to_string();
    assert_eq!(
        refused,
        "there is no revision 70: those from 71 to 120 are kept"
    );
    assert_eq!(files.seen().len(), 52, "and two state files");
}

#[test]
fn a_router_that_died_unconfirmed_starts_with_the_one_before() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "good", None);
    apply(&mut store, "cuts me off", SOON);
    let (mut store, recovered) = open(&files, 50);
    assert_eq!(recovered.running.unwrap().text, b"good");
    assert_eq!(recovered.rolled_back.unwrap().revision, 2);
    assert_eq!(
        store.history()[1].state,
        RevisionState::RolledBack {
            time_unix_ms: 500,
            why: Why::Restart
        }
    );
    assert!(matches!(store.confirm(), Err(StoreError::NothingPending)));
    assert_eq!(
        apply(&mut store, "next", None),
        3,
        "a number that was acknowledged is not reused"
    );
}

#[test]
fn the_first_one_unconfirmed_leaves_nothing() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "first", SOON);
    let (store, recovered) = open(&files, 50);
    assert!(recovered.running.is_none() && recovered.rolled_back.is_some());
    assert_eq!((store.running(), store.history().len()), (None, 1));
}

#[test]
fn while_one_is_pending_no_other_is_taken() {
    let (mut store, _) = open(&Remembered::default(), 50);
    apply(&mut store, "a", SOON);
    let refused = store.prepare(b"b", meta("")).unwrap_err().to_string();
    assert_eq!(
        refused,
        "revision 1 is not confirmed yet: confirm it or roll it back first"
    );
}

#[test]
fn only_the_last_prepared_can_be_committed() {
    let (mut store, _) = open(&Remembered::default(), 50);
    let one = store.prepare(b"one", meta("")).unwrap();
    let two = store.prepare(b"two", meta("")).unwrap();
    assert!(matches!(
        store.commit(one, None),
        Err(StoreError::Stale { revision: 1 })
    ));
    assert_eq!(store.commit(two, None).unwrap(), 1);
    assert_eq!(store.read(1).unwrap().text, b"two");
    let three = store.prepare(b"three", meta("")).unwrap();
    let four = store.prepare(b"four", meta("")).unwrap();
    store.abandon(three);
    assert_eq!(
        store.commit(four, None).unwrap(),
        2,
        "what was given up takes nothing along"
    );
}

#[test]
fn too_long_is_refused() {
    let (mut store, _) = open(&Remembered::default(), 50);
    let long = Meta {
        comment: "x".repeat(2049),
        ..meta("")
    };
    let refused = store.prepare(b"", long).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the configuration's comment has 2049 bytes, at most 2048 can be kept"
    );
}

#[test]
fn a_full_disk_refuses_before_anything_changes() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "old", None);
    let before = files.seen();
    for after in 0..4 {
        files.fail(Fault {
            after,
            times: 1,
            kind: ErrorKind::StorageFull,
            half_done: true,
        });
        let refused = store.prepare(b"new", meta("")).unwrap_err();
        assert_eq!(refused.system(), Some(ErrorKind::StorageFull));
        assert!(
            refused
                .to_string()
                .starts_with("cannot save the configuration, nothing was changed: "),
            "{refused}"
        );
        assert_eq!(files.seen(), before, "nor left behind");
    }
    assert_eq!(store.running(), Some(1));
}

#[test]
fn who_keeps_more_makes_room_for_it_at_once() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 3);
    for number in 0..4 {
        apply(&mut store, &format!("text {number}"), None);
    }
    let lengths = |files: &Remembered| ["state.a", "state.b"].map(|name| files.seen()[name].len());
    assert_eq!(lengths(&files), [4096, 4096]);
    let (mut store, recovered) = open(&files, 1000);
    assert!(
        recovered.running.is_some()
            && lengths(&files)[0] > 72_000
            && lengths(&files)[0] == lengths(&files)[1]
    );
    for number in 4..1100 {
        apply(&mut store, &format!("text {number}"), None);
    }
    assert_eq!(store.history().len(), 1000);
    let (mut store, _) = open(&files, 2);
    apply(&mut store, "last", None);
    assert_eq!(
        (store.history().len(), lengths(&files)[0] > 72_000),
        (2, true)
    );
    assert_eq!(open(&files, 2).1.running.unwrap().text, b"last");
}

/// Changes a byte in the text of a file.
fn spoil(picture: &mut Picture, name: &str) {
    *picture.get_mut(name).unwrap().last_mut().unwrap() ^= 1;
}

#[test]
fn a_damaged_running_revision_is_not_taken_and_the_one_before_it_is() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "a", None);
    apply(&mut store, "rolled back", SOON);
    store.roll_back_pending(1, Why::Asked).unwrap();
    apply(&mut store, "c", None);
    let mut picture = files.seen();
    spoil(&mut picture, "000003.yaml");
    let files = Remembered::showing(&picture);
    let (store, recovered) = open(&files, 50);
    assert_eq!(
        (recovered.running.unwrap().text, recovered.damaged),
        (b"a".to_vec(), vec![3])
    );
    assert_eq!(
        store.read(3).unwrap_err().to_string(),
        "revision 3 is damaged: memory/000003.yaml is not as it was written"
    );
    assert!(
        files.seen().contains_key("000003.yaml"),
        "people may still want to read it"
    );
    spoil(&mut picture, "000001.yaml");
    let (store, recovered) = open(&Remembered::showing(&picture), 50);
    assert!(recovered.running.is_none() && store.running().is_none());
    assert_eq!(recovered.damaged, [1, 3]);
}

#[test]
fn without_a_state_file_the_history_stays_and_nothing_runs() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "a", None);
    apply(&mut store, "b", None);
    for lost in ["state.a", "state.b"] {
        let mut picture = files.seen();
        picture.remove(lost);
        let files = Remembered::showing(&picture);
        let (_, recovered) = open(&files, 50);
        assert!(recovered.running.is_some() && recovered.damaged.is_empty());
        assert!(files.seen().contains_key(lost), "made again");
    }
    let mut picture = files.seen();
    picture.retain(|name, _| name.ends_with(".yaml"));
    let garbled = ["state.a", "state.b"].map(|name| (name.to_owned(), b"garbled".to_vec()));
    for more in [Vec::new(), garbled.to_vec()] {
        let mut picture = picture.clone();
        picture.extend(more);
        let files = Remembered::showing(&picture);
        let (mut store, recovered) = open(&files, 50);
        assert!(recovered.lost && recovered.running.is_none());
        assert_eq!(store.running(), None);
        let numbers: Vec<u64> = store.history().iter().map(|it| it.revision).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(store.read(2).unwrap().text, b"b");
        assert_eq!(apply(&mut store, "c", None), 3, "no number is given twice");
        let (_, recovered) = open(&files, 50);
        assert!(!recovered.lost);
        assert_eq!(recovered.running.unwrap().text, b"c");
    }
}

#[test]
fn leftovers_go_and_foreign_files_stay() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "a", None);
    let mut picture = files.seen();
    picture.insert("000002.yaml".into(), b"torn".to_vec());
    picture.insert("7.yaml".into(), b"mine".to_vec());
    picture.insert("notes".into(), b"mine".to_vec());
    let files = Remembered::showing(&picture);
    let (_, recovered) = open(&files, 50);
    assert_eq!(recovered.removed, 1);
    assert!(files.seen().contains_key("7.yaml") && files.seen().contains_key("notes"));
}

#[test]
fn a_disk_that_takes_nothing_still_tells_what_to_run() {
    let files = Remembered::default();
    let (mut store, _) = open(&files, 50);
    apply(&mut store, "good", None);
    apply(&mut store, "unconfirmed", SOON);
    files.fail(Fault {
        after: 0,
        times: usize::MAX,
        kind: ErrorKind::ReadOnlyFilesystem,
        half_done: false,
    });
    for _ in 0..2 {
        let (mut store, recovered) = open(&files, 50);
        assert_eq!(recovered.running.unwrap().text, b"good");
        assert_eq!(
            recovered.unrecorded.unwrap().system(),
            Some(ErrorKind::ReadOnlyFilesystem)
        );
        let refused = store.prepare(b"new", meta("")).unwrap_err();
        assert_eq!(refused.system(), Some(ErrorKind::ReadOnlyFilesystem));
    }
    let (mut store, _) = open(&files, 50);
    files.heal();
    assert_eq!(apply(&mut store, "new", None), 3);
    assert_eq!(open(&files, 50).1.running.unwrap().text, b"new");
}
