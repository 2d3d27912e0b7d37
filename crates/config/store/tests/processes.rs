//! The store as processes and disks really end: killed at every system call, the disk full or read-only.
//!
//! This test is its own child: started again with `writer DIR …` it works on a store in DIR, and tells
//! on its output what it begins and what is done. The parent kills it
//!
//! * at each operation of [`Files`], before, in the midst of and after it (the child aborts by itself), and
//! * at each system call (`strace` injects the signal),
//!
//! and opens the store each time: what runs is the old or the new configuration. On a tiny file system in
//! a mount namespace, the disk is filled up between preparing and committing. What needs root or strace
//! says so in one line and is left out without. No test harness: `strace` shall see one thread.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use weir_store::{Confirm, DiskFiles, Files, Meta, OpenFile, Recovered, Store, StoreError, Why};

const KEEP: usize = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words.as_slice() {
        ["writer", folder] => writer(Box::new(DiskFiles::open(Path::new(folder)).expect("opens"))),
        ["writer", folder, place, how] => {
            let inner = DiskFiles::open(Path::new(folder)).expect("opens");
            let left = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(
                place.parse().expect("a number"),
            ));
            writer(Box::new(Dying {
                inner,
                death: Death {
                    left,
                    how: how.to_string(),
                },
            }));
        }
        ["full-disk", folder] => full_disk(Path::new(folder)),
        ["read-only", folder] => read_only(Path::new(folder)),
        ["prepare-disk", folder] => prepare_disk(Path::new(folder)),
        _ if words.contains(&"--list") => {}
        _ => {
            for (name, test) in TESTS {
                let began = std::time::Instant::now();
                let said = test();
                println!(
                    "test {name} ... {said} ({:.1} s)",
                    began.elapsed().as_secs_f32()
                );
            }
        }
    }
    ExitCode::SUCCESS
}

/// A test by name; it tells how it went, or panics.
type Test = (&'static str, fn() -> String);

const TESTS: [Test; 6] = [
    (
        "the_folder_is_synced_before_a_state_names_a_file",
        the_folder_is_synced_before_a_state_names_a_file,
    ),
    ("killed_at_each_operation", killed_at_each_operation),
    ("killed_at_each_system_call", killed_at_each_system_call),
    (
        "the_second_process_is_refused",
        the_second_process_is_refused,
    ),
    ("full_disk", || {
        in_a_mount_namespace(
            "full-disk",
            "mount -t tmpfs -o size=160k,mode=700 none \"$DIR\"",
        )
    }),
    ("read_only_disk", || {
        in_a_mount_namespace(
            "read-only",
            "mount -t tmpfs none \"$DIR\" && \"$SELF\" prepare-disk \"$DIR\" && mount -o remount,ro \"$DIR\"",
        )
    }),
];

// The child.

fn open(folder: &Path) -> (Store, Recovered) {
    Store::open(Box::new(DiskFiles::open(folder).expect("opens")), KEEP, 1).expect("opens")
}

fn meta() -> Meta {
    Meta {
        time_unix_ms: 1,
        author: "test".into(),
        comment: String::new(),
        steps: 0,
    }
}

fn text(number: usize) -> Vec<u8> {
    format!("text {number}\n{}", "x".repeat(5000)).into_bytes()
}

/// One write to the output, so that a killed child has written it whole or not at all.
fn tell(line: String) {
    io::stdout()
        .write_all(line.as_bytes())
        .expect("the parent reads");
}

/// Goes through a store's life. A line `from A to B` comes before each step: a restart then runs text A
/// or B; `is B` after it: then it runs B.
fn writer(files: Box<dyn Files>) {
    let (mut store, _) = Store::open(files, KEEP, 1).expect("opens");
    let confirm = Some(Confirm {
        deadline_unix_ms: 2,
    });
    let mut running = 0;
    for (number, confirmed) in [
        (1, None),
        (2, None),
        (3, Some(true)),
        (4, Some(false)),
        (5, None),
        (6, None),
    ] {
        let after = if confirmed.is_none() { number } else { running };
        tell(format!("from {running} to {after}\n"));
        let prepared = store
            .prepare(&text(number), meta())
            .expect("there is space");
        store
            .commit(prepared, confirm.filter(|_| confirmed.is_some()))
            .expect("commits");
        tell(format!("is {after}\n"));
        match confirmed {
            Some(true) => {
                tell(format!("from {running} to {number}\n"));
                store.confirm().expect("confirms");
                tell(format!("is {number}\n"));
                running = number;
            }
            Some(false) => {
                store
                    .roll_back_pending(1, Why::Deadline)
                    .expect("rolls back");
            }
            None => running = number,
        }
    }
}

/// Files that abort the process at an operation.
struct Dying {
    inner: DiskFiles,
    death: Death,
}

#[derive(Clone)]
struct Death {
    left: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    how: String,
}

impl Death {
    /// Counts an operation and dies around it, when it is the one.
    fn around<T>(
        &self,
        half: impl FnOnce(),
        whole: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let now = self.left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 0;
        if now && self.how == "half" {
            half();
        }
        if now && self.how != "after" {
            std::process::abort();
        }
        let result = whole();
        if now {
            std::process::abort();
        }
        result
    }
}

struct DyingFile {
    inner: Box<dyn OpenFile>,
    death: Death,
}

impl Files for Dying {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn read(&self, name: &str, most: usize) -> io::Result<Vec<u8>> {
        self.inner.read(name, most)
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(DyingFile {
            inner: self.inner.open(name)?,
            death: self.death.clone(),
        }))
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        let inner = self.death.around(|| (), || self.inner.create(name))?;
        Ok(Box::new(DyingFile {
            inner,
            death: self.death.clone(),
        }))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.death.around(|| (), || self.inner.remove(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.death.around(|| (), || self.inner.sync_names())
    }

    fn path(&self, name: &str) -> String {
        self.inner.path(name)
    }
}

impl OpenFile for DyingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let inner = std::cell::RefCell::new(&mut self.inner);
        // A state's words are all in its first few hundred bytes: cut within them.
        let cut = 120.min(bytes.len() / 2);
        self.death.around(
            || inner.borrow_mut().write(&bytes[..cut]).expect("half of it"),
            || inner.borrow_mut().write(bytes),
        )
    }

    fn sync(&mut self) -> io::Result<()> {
        self.death.around(|| (), || self.inner.sync())
    }
}

// The parent.

/// A folder of this test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        // In memory where that can be had: a killed process loses nothing either way, and it is faster.
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        };
        let folder = parent.join(format!("weir-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn itself() -> PathBuf {
    std::env::current_exe().expect("this test")
}

/// Whether a restarted router runs what the dead writer's words allow; then whether it works on.
fn check(folder: &Path, output_text: &str, place: &str) {
    let number = |word: &str| word.parse::<usize>().expect("a number");
    let last: Vec<&str> = output_text
        .lines()
        .next_back()
        .unwrap_or("is 0")
        .split(' ')
        .collect();
    let allowed = match last.as_slice() {
        ["is", it] => vec![number(it)],
        ["from", old, "to", new] => vec![number(old), number(new)],
        _ => panic!("the writer said {output_text}"),
    };
    let (mut store, recovered) = open(folder);
    assert!(
        recovered.damaged.is_empty() && recovered.unrecorded.is_none(),
        "{place}: {recovered:?}"
    );
    let running = recovered.running.map(|revision| revision.text);
    let fits = allowed
        .iter()
        .any(|&it| running == (it > 0).then(|| text(it)));
    assert!(
        fits,
        "{place}: {allowed:?} should run, but it is {:?}",
        running.map(|text| String::from_utf8_lossy(&text[..7]).into_owned())
    );
    let prepared = store.prepare(b"after", meta()).expect("works on");
    store.commit(prepared, None).expect("works on");
    drop(store);
    assert_eq!(
        open(folder)
            .1
            .running
            .map(|revision| revision.text)
            .as_deref(),
        Some(&b"after"[..])
    );
}

fn killed_at_each_operation() -> String {
    let (mut killed, mut place) = (0, 0);
    loop {
        for how in ["before", "half", "after"] {
            let folder = Folder::new("operation");
            let store = folder.0.join("store");
            let output = Command::new(itself())
                .arg("writer")
                .arg(&store)
                .args([&place.to_string(), how])
                .output()
                .expect("starts");
            let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() {
                assert!(killed > 100, "{killed}");
                return format!("ok, {killed} deaths");
            }
            killed += 1;
            check(&store, &output_text, &format!("{how} operation {place}"));
        }
        place += 1;
    }
}

fn strace(folder: &Path, options: &[&str]) -> io::Result<Output> {
    Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(folder.join("trace"))
        .args(options)
        .arg(itself())
        .arg("writer")
        .arg(folder.join("store"))
        .output()
}

fn killed_at_each_system_call() -> String {
    let folder = Folder::new("calls");
    let Ok(output) = strace(&folder.0, &[]) else {
        return "skipped: strace is not installed".into();
    };
    if !output.status.success() {
        return format!(
            "skipped: strace cannot trace here: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let trace = std::fs::read_to_string(folder.0.join("trace")).expect("a trace");
    let calls: Vec<&str> = trace
        .lines()
        .filter_map(|line| line.split_once('(')?.0.split(' ').next_back())
        .collect();
    // From the first look at the folder on; before that, the program is being loaded.
    let first = trace
        .lines()
        .position(|line| line.contains("weir-store-calls") && !line.contains("execve"))
        .expect("opens the folder");
    let mut killed = 0;
    for place in first..calls.len() {
        let _ = std::fs::remove_dir_all(folder.0.join("store"));
        let name = calls[place];
        // strace counts each kind of call by itself.
        let nth = calls[..=place]
            .iter()
            .filter(|other| **other == name)
            .count();
        let inject = format!("inject={name}:signal=KILL:when={nth}");
        let output = strace(&folder.0, &["-e", &inject]).expect("starts");
        assert!(!output.status.success(), "{inject} does not kill");
        killed += 1;
        check(
            &folder.0.join("store"),
            &String::from_utf8_lossy(&output.stdout),
            &inject,
        );
    }
    assert!(killed > 90, "{killed} of {}", calls.len() - first);
    format!("ok, {killed} deaths")
}

/// A revision's name and text are on the disk before a state that speaks of it is written, and at the end all is. The
/// folder in memory of the other tests cannot show that the real one syncs its directory and files.
fn the_folder_is_synced_before_a_state_names_a_file() -> String {
    let folder = Folder::new("synced");
    let Ok(output) = strace(&folder.0, &["-y", "-e", "trace=openat,pwrite64,fsync"]) else {
        return "skipped: strace is not installed".into();
    };
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return format!("skipped: strace cannot trace here: {}", why.trim());
    }
    let trace = std::fs::read_to_string(folder.0.join("trace")).expect("a trace");
    let store = format!("<{}>)", folder.0.join("store").display());
    let (mut unsynced, mut names, mut states) = (None, 0, 0);
    // The path that a call's descriptor stands for: `fsync(5</tmp/x/state.a>) = 0`.
    let path = |line: &str| -> Option<String> {
        let (_, rest) = line.split_once('<')?;
        Some(rest.split_once('>')?.0.to_owned())
    };
    let mut unsynced_files = std::collections::BTreeSet::new();
    for line in trace.lines() {
        if let Some(file) = path(line).filter(|_| line.contains("pwrite64(")) {
            if file.contains("/state.") {
                assert!(
                    unsynced_files.is_empty(),
                    "{unsynced_files:?} before {line}"
                );
            }
            unsynced_files.insert(file);
        } else if let Some(file) = path(line).filter(|_| line.contains("fsync(")) {
            unsynced_files.remove(&file);
        }
        if line.contains("openat(") && line.contains("O_CREAT") && line.contains(".yaml\"") {
            unsynced = Some(line);
            names += 1;
        } else if line.contains("fsync(") && line.contains(&store) {
            unsynced = None;
        } else if line.contains("pwrite64(") && line.contains("/state.") {
            assert_eq!(unsynced, None, "before {line}");
            states += 1;
        }
    }
    assert!(
        names > 2 && states > 2,
        "{names} names, {states} states:\n{trace}"
    );
    assert!(unsynced_files.is_empty(), "{unsynced_files:?} at the end");
    format!("ok, {names} names")
}

fn the_second_process_is_refused() -> String {
    let folder = Folder::new("second");
    let (_store, _) = open(&folder.0.join("store"));
    let output = Command::new(itself())
        .arg("writer")
        .arg(folder.0.join("store"))
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success()
            && said.contains(&format!("process: Some({})", std::process::id())),
        "{said}"
    );
    "ok".into()
}

fn in_a_mount_namespace(what: &str, mount: &str) -> String {
    let folder = Folder::new(what);
    let script = format!("{mount} && exec \"$SELF\" \"$WHAT\" \"$DIR\"");
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            &format!("mount -t tmpfs none \"$DIR\" && umount \"$DIR\" || exit 77; {script}"),
        ])
        .env("DIR", &folder.0)
        .env("SELF", itself())
        .env("WHAT", what)
        .output();
    let Ok(output) = output else {
        return "skipped: unshare is not installed".into();
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(77) || said.contains("unshare failed") {
        return "skipped: mounting needs root".into();
    }
    assert!(output.status.success(), "{said}");
    format!("ok, {}", String::from_utf8_lossy(&output.stdout).trim())
}

/// In a namespace, on a file system of 40 pages.
fn full_disk(mount: &Path) {
    let folder = mount.join("store");
    let (mut refused, mut accepted) = (0, 0);
    // How many pages are left: too few for the file, just enough, more.
    for left in 0..6 {
        let (mut store, _) = open(&folder);
        let first = store.prepare(&text(1), meta()).expect("there is space");
        store.commit(first, None).expect("commits");
        let seen = listing(&folder);
        fill(mount, left);
        match store.prepare(&text(2), meta()) {
            Err(error) => {
                assert_eq!(error.system(), Some(io::ErrorKind::StorageFull), "{error}");
                assert_eq!(listing(&folder), seen, "nothing is left behind");
                refused += 1;
            }
            Ok(prepared) => {
                fill(mount, 0);
                assert!(
                    std::fs::write(mount.join("probe"), b"x").is_err(),
                    "the disk is full"
                );
                let _ = std::fs::remove_file(mount.join("probe"));
                store
                    .commit(
                        prepared,
                        Some(Confirm {
                            deadline_unix_ms: 1,
                        }),
                    )
                    .expect("needs no space");
                store
                    .roll_back_pending(1, Why::Deadline)
                    .expect("needs no space");
                accepted += 1;
            }
        }
        assert!(
            matches!(
                store.prepare(&text(3), meta()),
                Err(StoreError::Refused { .. })
            ) || left > 0
        );
        drop(store);
        let (store, recovered) = open(&folder);
        assert!(
            recovered.running.is_some_and(|it| it.text == text(1))
                && recovered.unrecorded.is_none(),
            "a full disk opens"
        );
        drop(store);
        std::fs::remove_file(mount.join("filler")).expect("removed");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
    assert!(
        refused > 1 && accepted > 1,
        "{refused} refused, {accepted} accepted"
    );
    println!(
        "{refused} refused, {accepted} committed and rolled back on a disk without a free byte"
    );
}

/// Fills the disk to the last page but `left`.
fn fill(mount: &Path, left: usize) {
    let mut filler = std::fs::File::options()
        .append(true)
        .create(true)
        .open(mount.join("filler"))
        .expect("a file");
    while filler.write_all(&[1; 4096]).is_ok() {}
    let length = filler.metadata().expect("its length").len();
    filler
        .set_len(length.saturating_sub(4096 * left as u64))
        .expect("shorter");
}

fn listing(folder: &Path) -> Vec<(String, u64)> {
    let entries = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    let mut all: Vec<_> = entries
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                entry.metadata().expect("its size").len(),
            )
        })
        .collect();
    all.sort();
    all
}

fn prepare_disk(mount: &Path) {
    let (mut store, _) = open(&mount.join("store"));
    for (number, confirm) in [
        (1, None),
        (
            2,
            Some(Confirm {
                deadline_unix_ms: 1,
            }),
        ),
    ] {
        let prepared = store
            .prepare(&text(number), meta())
            .expect("there is space");
        store.commit(prepared, confirm).expect("commits");
    }
}

/// In a namespace, on a file system that was made read-only after [`prepare_disk`].
fn read_only(mount: &Path) {
    let (mut store, recovered) = open(&mount.join("store"));
    assert!(
        recovered.running.is_some_and(|it| it.text == text(1)),
        "the unconfirmed one is not taken"
    );
    assert_eq!(
        recovered.unrecorded.and_then(|it| it.system()),
        Some(io::ErrorKind::ReadOnlyFilesystem)
    );
    let refused = store.prepare(&text(3), meta()).expect_err("read-only");
    assert_eq!(refused.system(), Some(io::ErrorKind::ReadOnlyFilesystem));
    assert_eq!(store.history().len(), 2);
    println!("\"{refused}\"");
}
