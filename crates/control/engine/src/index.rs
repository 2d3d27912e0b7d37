//! Stable interface numbers.
//!
//! An interface keeps its number for as long as its name is known: through changes of the
//! configuration and through restarts, when there is a file to keep it in. Numbers begin at 1 and are
//! never given to another name while the file lives.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

/// More names than any configuration has; a file that says more is not ours.
const MOST: usize = 1 << 20;

/// The numbers given so far.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    numbers: BTreeMap<String, u32>,
    next: u32,
    file: Option<PathBuf>,
    changed: bool,
}

impl Indexes {
    /// Reads the numbers from `file`, if there is one. Lines that make no sense are left out.
    pub(crate) fn load(file: Option<&Path>) -> Indexes {
        let text = file
            .and_then(|file| std::fs::read_to_string(file).ok())
            .unwrap_or_default();
        let mut indexes = Indexes {
            numbers: BTreeMap::new(),
            next: 1,
            file: file.map(Path::to_owned),
            changed: false,
        };
        let mut taken = BTreeSet::new();
        for line in text.lines().take(MOST) {
            let Some((number, name)) = line.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u32>() else {
                continue;
            };
            if number > 0 && number < 1 << 24 && taken.insert(number) {
                indexes.numbers.insert(name.to_owned(), number);
                indexes.next = indexes.next.max(number + 1);
            }
        }
        indexes
    }

    /// The number of `name`, a new one if need be; [`Indexes::keep`] then writes it down.
    pub(crate) fn of(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(name.to_owned(), number);
        self.changed = true;
        number
    }

    /// Writes new numbers to the file, once for all of them.
    pub(crate) fn keep(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        if let Err(error) = self.save() {
            tracing::warn!(
                "interface numbers could not be saved, they may change at the next start: {error}"
            );
        }
    }

    /// Writes beside the file and renames, so that a crash leaves the old or the new one.
    fn save(&self) -> std::io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let beside = file.with_extension("new");
        let mut out = std::fs::File::create(&beside)?;
        for (name, number) in &self.numbers {
            writeln!(out, "{number} {name}")?;
        }
        out.sync_all()?;
        std::fs::rename(&beside, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_a_restart() {
        let folder = std::env::temp_dir().join(format!("weir-index-{}", std::process::id()));
        let file = folder.join("ifindex");
        let mut indexes = Indexes::load(Some(&file));
        assert_eq!(
            (indexes.of("xe0"), indexes.of("xe1"), indexes.of("xe0")),
            (1, 2, 1)
        );
        indexes.keep();
        let mut again = Indexes::load(Some(&file));
        assert_eq!((again.of("xe1"), again.of("xe2")), (2, 3));
        std::fs::write(&file, "7 a\n7 b\nx y\n0 z\n\u{0}").unwrap();
        let mut odd = Indexes::load(Some(&file));
        assert_eq!((odd.of("a"), odd.of("b")), (7, 8));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
