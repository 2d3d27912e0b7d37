//! [`Files`] in memory, which remember a power cut: only what was synced is sure to be there after it.
//!
//! Every operation is noted. A *process* that dies loses nothing: clone the value and go on. A *power
//! cut* after any number of operations leaves one of many pictures, and [`Remembered::pictures`] gives
//! them: of a file that was written and not synced the old bytes, the new ones, or any mix, also its new
//! length with zeros; of names that were made or removed and not synced any selection, name by name. A
//! sync of a file says nothing about its name, nor the other way round. That is more than a journalling
//! file system ever loses; what holds here holds on one.
//!
//! It also plays a disk that fails: [`Remembered::fail`].
//!
//! For tests, here and of whoever uses the store. One lock, held for a copy at most.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::files::{Files, OpenFile};

/// Bytes that are written as one. Real sectors are longer; a state in a test is not.
const PIECE: usize = 32;

/// What a disk shows after a power cut: names and bytes.
pub type Picture = BTreeMap<String, Vec<u8>>;

/// What a failing disk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// After this many operations from now.
    pub after: usize,
    /// For this many operations.
    pub times: usize,
    /// What it says.
    pub kind: io::ErrorKind,
    /// Whether a write does half of it first, and a sync the whole.
    pub half_done: bool,
}

/// An operation that changes something, as it was carried out.
#[derive(Clone, Debug)]
enum Operation {
    Create { name: String, file: usize },
    Remove { name: String },
    Write { file: usize, bytes: Vec<u8> },
    Sync { file: usize },
    SyncNames,
}

#[derive(Clone, Debug, Default)]
struct Disk {
    /// What was there at first, all of it synced; the files are the first ones.
    first: Picture,
    operations: Vec<Operation>,
    /// As a process sees it.
    names: BTreeMap<String, usize>,
    contents: Vec<Vec<u8>>,
    fault: Option<Fault>,
}

/// A folder in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Remembered(Arc<Mutex<Disk>>);

impl Remembered {
    /// A folder that shows `picture`, all of it synced.
    #[must_use]
    pub fn showing(picture: &Picture) -> Remembered {
        let names = picture
            .keys()
            .enumerate()
            .map(|(file, name)| (name.clone(), file))
            .collect();
        let contents = picture.values().cloned().collect();
        Remembered(Arc::new(Mutex::new(Disk {
            first: picture.clone(),
            operations: Vec::new(),
            names,
            contents,
            fault: None,
        })))
    }

    /// How many operations have changed or synced something.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.disk().operations.len()
    }

    /// What a process sees.
    #[must_use]
    pub fn seen(&self) -> Picture {
        let disk = self.disk();
        disk.names
            .iter()
            .map(|(name, &file)| {
                (
                    name.clone(),
                    disk.contents.get(file).cloned().unwrap_or_default(),
                )
            })
            .collect()
    }

    /// Has the disk fail.
    pub fn fail(&self, fault: Fault) {
        self.disk().fault = Some(fault);
    }

    /// Has the disk work again.
    pub fn heal(&self) {
        self.disk().fault = None;
    }

    /// What a power cut after the first `operations` operations may leave: all pictures if they are at most
    /// `most`, else that many, the plainest and others by `seed`.
    #[must_use]
    pub fn pictures(&self, operations: usize, most: usize, seed: u64) -> Vec<Picture> {
        let disk = self.disk();
        let loose = Loose::after(
            &disk.first,
            disk.operations
                .get(..operations)
                .unwrap_or(&disk.operations),
        );
        drop(disk);
        loose.pictures(most, seed)
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is sure after a power cut, and what is not.
#[derive(Debug, Default)]
struct Loose {
    /// For each file the bytes synced last and the writes since.
    files: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// For each name what it may stand for, the synced one first.
    names: BTreeMap<String, Vec<Option<usize>>>,
}

impl Loose {
    fn after(first: &Picture, operations: &[Operation]) -> Loose {
        let mut loose = Loose::default();
        for (file, (name, bytes)) in first.iter().enumerate() {
            loose.files.push((bytes.clone(), Vec::new()));
            loose.names.insert(name.clone(), vec![Some(file)]);
        }
        operations
            .iter()
            .for_each(|operation| loose.take(operation));
        loose
    }

    fn take(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { name, file } => {
                self.files.resize_with(file + 1, Default::default);
                self.names
                    .entry(name.clone())
                    .or_insert_with(|| vec![None])
                    .push(Some(*file));
            }
            Operation::Remove { name } => self
                .names
                .entry(name.clone())
                .or_insert_with(|| vec![None])
                .push(None),
            Operation::Write { file, bytes } => self.files[*file].1.push(bytes.clone()),
            Operation::Sync { file } => {
                let (synced, since) = &mut self.files[*file];
                since.drain(..).for_each(|bytes| write_over(synced, &bytes));
            }
            Operation::SyncNames => self.names.values_mut().for_each(|choices| {
                choices.drain(..choices.len() - 1);
            }),
        }
    }

    fn pictures(&self, most: usize, seed: u64) -> Vec<Picture> {
        let contents: Vec<Vec<Vec<u8>>> = self
            .files
            .iter()
            .enumerate()
            .map(|(file, it)| contents(&it.0, &it.1, seed ^ (file as u64) << 32))
            .collect();
        let choices = self
            .names
            .values()
            .map(Vec::len)
            .chain(contents.iter().map(Vec::len));
        let all = choices
            .clone()
            .try_fold(1_usize, usize::checked_mul)
            .filter(|&all| all <= most);
        let mut random = Random(seed);
        let picture = |number: usize| {
            let mut rest = number;
            let mut choose = |among: usize| {
                let chosen = match (all, number) {
                    (Some(_), _) => rest % among,
                    (None, 0) => 0,
                    (None, 1) => among - 1,
                    (None, _) => random.below(among),
                };
                rest /= among;
                chosen
            };
            let names: Vec<_> = self
                .names
                .iter()
                .map(|(name, choices)| (name, choices[choose(choices.len())]))
                .collect();
            let bytes: Vec<_> = contents
                .iter()
                .map(|choices| &choices[choose(choices.len())])
                .collect();
            names
                .into_iter()
                .filter_map(|(name, file)| Some((name.clone(), bytes[file?].clone())))
                .collect()
        };
        (0..all.unwrap_or(most)).map(picture).collect()
    }
}

/// What may be left of a file: as synced, as written, and mixes.
fn contents(synced: &[u8], since: &[Vec<u8>], seed: u64) -> Vec<Vec<u8>> {
    let mut all = vec![synced.to_vec()];
    if since.is_empty() {
        return all;
    }
    let mut written = synced.to_vec();
    for bytes in since {
        write_over(&mut written, bytes);
    }
    let mut grown = synced.to_vec();
    grown.resize(written.len(), 0);
    // Torn in the midst of what differs: a cut through bytes that are alike tells nothing.
    let differs = |pair: (&u8, &u8)| pair.0 != pair.1;
    let first = grown.iter().zip(&written).position(differs).unwrap_or(0);
    let last = grown.iter().zip(&written).rposition(differs).unwrap_or(0);
    let half = (first + last).div_ceil(2);
    let front = [&written[..half], &grown[half..]].concat();
    let back = [&grown[..half], &written[half..]].concat();
    let mut random = Random(seed);
    // Pieces come and go one by one, of each write since the sync.
    let mut pieces = grown.clone();
    for bytes in since {
        for (place, piece) in bytes
            .chunks(PIECE)
            .enumerate()
            .filter(|_| random.below(2) == 0)
        {
            pieces[place * PIECE..][..piece.len()].copy_from_slice(piece);
        }
    }
    all.extend([
        grown,
        front,
        back,
        written[..half.max(synced.len().min(written.len()))].to_vec(),
        pieces,
        written,
    ]);
    all
}

fn write_over(old: &mut Vec<u8>, bytes: &[u8]) {
    old.resize(old.len().max(bytes.len()), 0);
    old[..bytes.len()].copy_from_slice(bytes);
}

/// Numbers that look random (splitmix64), the same for the same seed.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((value ^ value >> 31) % bound.max(1) as u64) as usize
    }
}

impl Disk {
    /// Whether this operation fails, and how.
    fn fails(&mut self) -> Option<Fault> {
        let fault = self.fault.as_mut()?;
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        if fault.times == 0 {
            self.fault = None;
            return None;
        }
        fault.times -= 1;
        Some(*fault)
    }

    fn check(&mut self) -> io::Result<()> {
        self.fails().map_or(Ok(()), |fault| Err(fault.kind.into()))
    }

    fn write(&mut self, file: usize, bytes: &[u8]) {
        write_over(&mut self.contents[file], bytes);
        self.operations.push(Operation::Write {
            file,
            bytes: bytes.to_vec(),
        });
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Files for Remembered {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk().names.keys().cloned().collect())
    }

    fn read(&self, name: &str, most: usize) -> io::Result<Vec<u8>> {
        let disk = self.disk();
        let bytes = disk
            .names
            .get(name)
            .and_then(|&file| disk.contents.get(file))
            .ok_or_else(missing)?;
        Ok(bytes.iter().take(most).copied().collect())
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        let file = self.disk().names.get(name).copied().ok_or_else(missing)?;
        Ok(Box::new(RememberedFile {
            disk: self.clone(),
            file,
        }))
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        let mut disk = self.disk();
        disk.check()?;
        if disk.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = disk.contents.len();
        disk.contents.push(Vec::new());
        disk.names.insert(name.to_owned(), file);
        disk.operations.push(Operation::Create {
            name: name.to_owned(),
            file,
        });
        Ok(Box::new(RememberedFile {
            disk: self.clone(),
            file,
        }))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.check()?;
        disk.names.remove(name).ok_or_else(missing)?;
        disk.operations.push(Operation::Remove {
            name: name.to_owned(),
        });
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut disk = self.disk();
        let fault = disk.fails();
        if fault.is_none_or(|fault| fault.half_done) {
            disk.operations.push(Operation::SyncNames);
        }
        fault.map_or(Ok(()), |fault| Err(fault.kind.into()))
    }

    fn path(&self, name: &str) -> String {
        format!("memory/{name}")
    }
}

/// A file of the folder.
#[derive(Debug)]
struct RememberedFile {
    disk: Remembered,
    file: usize,
}

impl OpenFile for RememberedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.disk();
        match disk.fails() {
            None => disk.write(self.file, bytes),
            Some(fault) => {
                if fault.half_done {
                    disk.write(self.file, &bytes[..bytes.len() / 2]);
                }
                return Err(fault.kind.into());
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.disk.disk();
        let fault = disk.fails();
        if fault.is_none_or(|fault| fault.half_done) {
            disk.operations.push(Operation::Sync { file: self.file });
        }
        fault.map_or(Ok(()), |fault| Err(fault.kind.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(files: &Remembered) -> Vec<Picture> {
        files.pictures(files.operations(), 1000, 1)
    }

    #[test]
    fn only_what_was_synced_is_sure() {
        let mut files = Remembered::showing(&Picture::from([("old".to_owned(), b"old".to_vec())]));
        let mut file = files.create("new").unwrap();
        file.write(b"12345678").unwrap();
        files.remove("old").unwrap();
        let pictures = after(&files);
        assert!(
            pictures
                .iter()
                .any(|it| it.contains_key("old") && it.contains_key("new"))
        );
        assert!(
            pictures
                .iter()
                .any(|it| it.contains_key("old") && !it.contains_key("new"))
        );
        assert!(
            pictures
                .iter()
                .any(|it| !it.contains_key("old") && !it.contains_key("new"))
        );
        for bytes in [
            &b""[..],
            b"12345678",
            b"1234\0\0\0\0",
            b"\0\0\0\0\0\0\0\0",
            b"1234",
        ] {
            assert!(
                pictures
                    .iter()
                    .any(|it| it.get("new").is_some_and(|new| new == bytes)),
                "{bytes:?}"
            );
        }
        files.sync_names().unwrap();
        assert!(
            after(&files)
                .iter()
                .all(|it| it.contains_key("new") && !it.contains_key("old"))
        );
        file.sync().unwrap();
        assert_eq!(
            after(&files),
            [Picture::from([("new".to_owned(), b"12345678".to_vec())])]
        );
        file.write(b"abcd").unwrap();
        let mut seen: Vec<_> = after(&files)
            .into_iter()
            .map(|it| it["new"].clone())
            .collect();
        seen.dedup();
        assert!(
            seen.contains(&b"12345678".to_vec()) && seen.contains(&b"abcd5678".to_vec()),
            "{seen:?}"
        );
        assert!(
            files
                .pictures(0, 10, 1)
                .iter()
                .all(|it| it.contains_key("old"))
        );
    }

    #[test]
    fn a_disk_fails_as_often_as_it_is_reported() {
        let mut files = Remembered::default();
        files.fail(Fault {
            after: 1,
            times: 2,
            kind: io::ErrorKind::StorageFull,
            half_done: true,
        });
        let mut file = files.create("a").unwrap();
        assert_eq!(
            file.write(b"1234").unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert_eq!(files.seen()["a"], b"12");
        assert!(file.sync().is_err());
        assert!(file.sync().is_ok());
    }
}
