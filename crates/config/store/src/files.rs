//! What the store needs of a file system: six operations in one folder, none of them surprising.
//!
//! The promises are those of a disk and not more. What was written may be lost, in whole or in any part,
//! until [`OpenFile::sync`] has come back; what was created or removed may be undone by a power cut,
//! name by name, until [`Files::sync_names`] has come back.

use std::io;

/// A folder of files.
pub trait Files: Send {
    /// The names of all files.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The first `most` bytes of a file.
    ///
    /// # Errors
    /// What the system says; `NotFound` when there is no such file.
    fn read(&self, name: &str, most: usize) -> io::Result<Vec<u8>>;

    /// Opens a file that exists, to overwrite it.
    ///
    /// # Errors
    /// What the system says; `NotFound` when there is no such file.
    fn open(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>>;

    /// Makes an empty file.
    ///
    /// # Errors
    /// What the system says; `AlreadyExists` when there is one.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says; `NotFound` when there is no such file.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Comes back when creations and removals so far are on the disk.
    ///
    /// # Errors
    /// What the system says; the disk may then have them or not.
    fn sync_names(&mut self) -> io::Result<()>;

    /// How messages call a file, or the folder when `name` is empty.
    fn path(&self, name: &str) -> String;
}

/// A file that is open for writing.
pub trait OpenFile: Send {
    /// Writes `bytes` over the beginning; what lies behind them stays.
    ///
    /// # Errors
    /// What the system says; any part of the bytes may have been written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Comes back when everything written is on the disk.
    ///
    /// # Errors
    /// What the system says; the disk may then have any part of it.
    fn sync(&mut self) -> io::Result<()>;
}
