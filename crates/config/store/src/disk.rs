//! [`Files`] in a real folder, which belongs to one process at a time.
//!
//! The folder is made with mode 0700, its files with 0600: a configuration may hold secrets. All
//! operations are relative to the folder's descriptor. A lock on the file `lock`, which holds the number
//! of the process, keeps a second router out; it goes with the process, however that ends.
//!
//! On a disk that cannot be written at all the folder still opens, so that a router starts with the
//! configuration it had; every write then says why not.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fsync, openat, unlinkat};
use rustix::io::{Errno, retry_on_intr};

use crate::error::StoreError;
use crate::files::{Files, OpenFile};

const LOCK: &str = "lock";
/// More names than the store ever makes; others are not ours.
const MOST_NAMES: usize = 100_000;

/// A folder on a disk.
#[derive(Debug)]
pub struct DiskFiles {
    folder: PathBuf,
    directory: OwnedFd,
    /// Held as long as this lives; absent where nothing can be written, with the reason.
    lock: Result<File, Errno>,
}

impl DiskFiles {
    /// Opens a folder, and makes it if need be.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process has it, [`StoreError::Open`] when the system refuses.
    pub fn open(folder: &Path) -> Result<DiskFiles, StoreError> {
        let failed = |doing: String| move |source: io::Error| StoreError::Open { doing, source };
        make(folder).map_err(failed(format!("making the folder {}", folder.display())))?;
        let directory = rustix::fs::open(
            folder,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let directory = directory.map_err(|errno| {
            failed(format!("opening the folder {}", folder.display()))(errno.into())
        })?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = match openat(&directory, LOCK, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(take(File::from(file), folder)?),
            Err(errno @ (Errno::ROFS | Errno::NOSPC | Errno::DQUOT)) => Err(errno),
            Err(errno) => {
                return Err(failed(format!("opening {}", folder.join(LOCK).display()))(
                    errno.into(),
                ));
            }
        };
        Ok(DiskFiles {
            folder: folder.to_owned(),
            directory,
            lock,
        })
    }

    fn writable(&self) -> io::Result<()> {
        self.lock
            .as_ref()
            .map(|_| ())
            .map_err(|&errno| errno.into())
    }

    fn at(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(retry_on_intr(|| {
            openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)
        })?))
    }
}

/// Makes the folder; then its name is synced, or a power cut could take all of it.
fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    DirBuilder::new().mode(0o700).create(folder)?;
    File::open(parent)?.sync_all()
}

/// Locks the folder and leaves our number in the file.
fn take(file: File, folder: &Path) -> Result<File, StoreError> {
    match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut text = String::new();
            let read = (&file).take(32).read_to_string(&mut text);
            let process = read.ok().and_then(|_| text.trim().parse().ok());
            return Err(StoreError::Locked {
                folder: folder.display().to_string(),
                process,
            });
        }
        Err(errno) => {
            let doing = format!("locking {}", folder.join(LOCK).display());
            return Err(StoreError::Open {
                doing,
                source: errno.into(),
            });
        }
    }
    // Only the refusal of a second router reads it: on a full disk that one says "another process".
    let _ = file
        .set_len(0)
        .and_then(|()| (&file).write_all(format!("{}\n", std::process::id()).as_bytes()));
    Ok(file)
}

impl Files for DiskFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)?.take(MOST_NAMES) {
            // A name that is not UTF-8 is not ours.
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn read(&self, name: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Without NONBLOCK, a named pipe in the folder would stop us for ever.
        self.at(name, OFlags::RDONLY | OFlags::NONBLOCK)?
            .take(most as u64)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        self.writable()?;
        Ok(Box::new(DiskFile(self.at(name, OFlags::RDWR)?)))
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn OpenFile>> {
        self.writable()?;
        Ok(Box::new(DiskFile(
            self.at(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?,
        )))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.writable()?;
        Ok(unlinkat(&self.directory, name, AtFlags::empty())?)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.writable()?;
        Ok(retry_on_intr(|| fsync(self.directory.as_fd()))?)
    }

    fn path(&self, name: &str) -> String {
        if name.is_empty() {
            self.folder.display().to_string()
        } else {
            self.folder.join(name).display().to_string()
        }
    }
}

/// A file of the folder.
#[derive(Debug)]
struct DiskFile(File);

impl OpenFile for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, 0)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(retry_on_intr(|| fsync(self.0.as_fd()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("weir-store-{name}-{}", std::process::id()))
    }

    #[test]
    fn nobody_else_reads_and_the_second_is_reported_who_has_it() {
        let folder = folder("lock");
        let mut files = DiskFiles::open(&folder).unwrap();
        files.create("a").unwrap().write(b"secret").unwrap();
        assert_eq!(
            std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(
            std::fs::metadata(folder.join("a"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let lock = std::fs::metadata(folder.join(LOCK)).unwrap();
        assert_eq!(lock.permissions().mode() & 0o777, 0o600);
        let refused = DiskFiles::open(&folder).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains(&format!("in use by process {}", std::process::id())),
            "{refused}"
        );
        drop(files);
        assert_eq!(
            DiskFiles::open(&folder).unwrap().read("a", 3).unwrap(),
            b"sec"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn missing_parents_are_made_and_no_child_inherits_a_descriptor() {
        let top = folder("parents");
        let files = DiskFiles::open(&top.join("a/b")).unwrap();
        let flags = |fd: &dyn AsFd| rustix::io::fcntl_getfd(fd.as_fd()).unwrap();
        let expected = rustix::io::FdFlags::CLOEXEC;
        assert_eq!(flags(&files.directory), expected);
        assert_eq!(flags(files.lock.as_ref().unwrap()), expected);
        drop(files);
        std::fs::remove_dir_all(&top).unwrap();
        // A lock that is a link to elsewhere is not followed.
        std::fs::create_dir_all(&top).unwrap();
        std::os::unix::fs::symlink(top.join("elsewhere"), top.join(LOCK)).unwrap();
        assert!(DiskFiles::open(&top).is_err());
        assert!(!top.join("elsewhere").exists());
        std::fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn operations_do_what_they_say() {
        let folder = folder("files");
        let mut files = DiskFiles::open(&folder).unwrap();
        let mut file = files.create("a").unwrap();
        file.write(b"hello").unwrap();
        file.write(b"J").unwrap();
        file.sync().unwrap();
        assert_eq!(
            files.create("a").err().unwrap().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(
            files.open("b").err().unwrap().kind(),
            io::ErrorKind::NotFound
        );
        files.open("a").unwrap().write(b"j").unwrap();
        assert_eq!(files.read("a", 100).unwrap(), b"jello");
        assert!(files.list().unwrap().contains(&"a".to_owned()));
        files.remove("a").unwrap();
        files.sync_names().unwrap();
        assert_eq!(
            files.read("a", 100).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        let pipe = folder.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(files.read("pipe", 100).unwrap(), b"", "nobody waits");
        assert_eq!(files.path("a"), folder.join("a").display().to_string());
        assert_eq!(files.path(""), folder.display().to_string());
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
        assert!(
            files.read("link", 100).is_err(),
            "a link leads out of the folder"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
