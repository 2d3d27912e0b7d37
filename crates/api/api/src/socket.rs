//! The socket's name in the file system: taken, held, given back.
//!
//! A name that a dead router left behind is removed; one that answers is left alone, and so is
//! anything that is no socket. Two routers that start at once are kept apart by a lock on the
//! directory, which leaves nothing behind. At the end the name is removed only if it is still the
//! socket that was bound here.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest path that fits a socket's address: `sun_path` has 108 bytes, the last is 0
/// (unix(7)).
const LONGEST_PATH: usize = 107;

/// Owner and group may connect.
const MODE: u32 = 0o660;
/// Everybody may connect; the peer's credentials decide.
const OPEN_MODE: u32 = 0o666;

/// Whom the socket is opened to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opened {
    /// The group it is given to.
    pub(crate) group: Option<u32>,
    /// Whether everybody may connect.
    pub(crate) everybody: bool,
}

/// Why the API's socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another router answers there.
    #[error("another weir already runs on {} (stop it, or choose another socket with --socket)", .0.display())]
    AlreadyRuns(PathBuf),
    /// The name is taken by something that is no socket.
    #[error("{} exists and is no socket (remove it, or choose another with --socket)", .0.display())]
    NotASocket(PathBuf),
    /// The path does not fit a socket's address.
    #[error("the socket's path {} is longer than {LONGEST_PATH} bytes (choose a shorter one with --socket)", .0.display())]
    PathTooLong(PathBuf),
    /// The directory cannot be made or used.
    #[error("cannot use the directory {} for the API's socket: {source} (run as root, or choose another socket with --socket)", .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The socket cannot be made.
    #[error("cannot open the API's socket {}: {source} (run as root, or choose another socket with --socket)", .socket.display())]
    Bind {
        /// The socket.
        socket: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A group in the settings does not exist.
    #[error(
        "the API's group {0:?} does not exist (make it with `groupadd --system {0}`, or name another)"
    )]
    NoGroup(String),
    /// The socket cannot be given to its group.
    #[error("cannot give the API's socket {} to its group: {source} (run as root, or as a member of the group)", .socket.display())]
    GiveToGroup {
        /// The socket.
        socket: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Tokens would cross the network in plain sight.
    #[error(
        "the API does not listen on {0} without TLS (give it a certificate, or a loopback address)"
    )]
    PlainTcp(SocketAddr),
    /// Nobody has a token or a certificate.
    #[error("nobody could ask the API on {0} (add a token, or the CA of clients' certificates)")]
    NobodyMayAsk(SocketAddr),
    /// A certificate or a key cannot be used.
    #[error("cannot use {} for the API's TLS: {reason}", .file.display())]
    Tls {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// TCP cannot be listened on.
    #[error("the API cannot listen on {address}: {source}")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The server's thread cannot be started.
    #[error("cannot start the API's thread: {0}")]
    Thread(io::Error),
}

/// A name in the file system that is ours.
#[derive(Debug)]
pub(crate) struct SocketName {
    path: PathBuf,
    /// Device and inode at the time of binding.
    identity: (u64, u64),
}

impl SocketName {
    /// Removes the name, unless somebody has put another file there since.
    pub(crate) fn remove(&self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // A name that cannot be removed is found stale by the next router.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()))
}

/// Binds a listening socket at `path`.
pub(crate) fn bind(path: &Path, opened: Opened) -> Result<(UnixListener, SocketName), ServeError> {
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(ServeError::PathTooLong(path.to_owned()));
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let _lock = lock(directory).map_err(|source| ServeError::Directory {
        directory: directory.to_owned(),
        source,
    })?;
    remove_stale(path)?;
    let failed = |source| ServeError::Bind {
        socket: path.to_owned(),
        source,
    };
    let listener = UnixListener::bind(path).map_err(failed)?;
    let name = SocketName {
        path: path.to_owned(),
        identity: identity(path).map_err(failed)?,
    };
    let ready = open(path, opened).and_then(|()| listener.set_nonblocking(true).map_err(failed));
    match ready {
        Ok(()) => Ok((listener, name)),
        Err(error) => {
            name.remove();
            Err(error)
        }
    }
}

/// The group first, then its right to connect.
fn open(path: &Path, opened: Opened) -> Result<(), ServeError> {
    if let Some(gid) = opened.group {
        let failed = |source| ServeError::GiveToGroup {
            socket: path.to_owned(),
            source,
        };
        std::os::unix::fs::lchown(path, None, Some(gid)).map_err(failed)?;
    }
    let mode = if opened.everybody { OPEN_MODE } else { MODE };
    let failed = |source| ServeError::Bind {
        socket: path.to_owned(),
        source,
    };
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)
}

/// Holds off other routers that start in the same directory, until the file is dropped.
fn lock(directory: &Path) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    let file = File::open(directory)?;
    for _ in 0..200 {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(
        ErrorKind::TimedOut,
        "another process holds a lock on it",
    ))
}

/// Makes way: removes a socket that nobody listens on.
fn remove_stale(path: &Path) -> Result<(), ServeError> {
    let failed = |source| ServeError::Bind {
        socket: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(data) if !data.file_type().is_socket() => {
            return Err(ServeError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        // WouldBlock: it listens, and its queue is full.
        Ok(_) => Err(ServeError::AlreadyRuns(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(ServeError::AlreadyRuns(path.to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
