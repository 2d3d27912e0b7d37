//! How a memif port is to be, and whether that can be.

use std::path::PathBuf;

use rustix::net::SocketAddrUnix;
use weir_buf::{DATA_ROOM, Pool};
use weir_port::OpenError;

use crate::message::SECRET;
use crate::sys::MOST_LOG2;

/// The most queues of a port.
pub const MOST_QUEUES: usize = 64;
/// The smallest ring.
pub const LEAST_RING: usize = 32;
/// The largest ring.
pub const MOST_RING: usize = 1 << MOST_LOG2;
/// The smallest buffer.
const LEAST_BUFFER: usize = 64;

/// Which end of the connection a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Listens; copies frames out of and into the memory of the slave. DPDK says "server".
    Master,
    /// Connects; shares the packet memory with the master and copies nothing. DPDK says "client".
    Slave,
}

impl Role {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Master => "master",
            Role::Slave => "slave",
        }
    }
}

/// Where both ends meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Socket {
    /// A path in the file system.
    Path(PathBuf),
    /// A name in the network namespace's own space, gone with its listener.
    Abstract(String),
}

impl Socket {
    pub(crate) fn address(&self) -> Result<SocketAddrUnix, OpenError> {
        let address = match self {
            Socket::Path(path) => SocketAddrUnix::new(path.as_path()),
            Socket::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        };
        let empty = match self {
            Socket::Path(path) => path.as_os_str().is_empty(),
            Socket::Abstract(name) => name.is_empty(),
        };
        match address {
            Ok(address) if !empty => Ok(address),
            _ => Err(OpenError(format!(
                "{self}: impossible as a socket: use 1 to 107 bytes"
            ))),
        }
    }
}

impl std::fmt::Display for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Socket::Path(path) => path.display().fmt(f),
            Socket::Abstract(name) => write!(f, "@{name}"),
        }
    }
}

/// How a port is to be opened. Frames are Ethernet frames.
#[derive(Clone, PartialEq, Eq)]
pub struct MemifConfig {
    /// Which end this is.
    pub role: Role,
    /// Where both ends meet. Several masters with different `id`s may share one.
    pub socket: Socket,
    /// Which interface at that socket.
    pub id: u32,
    /// What a slave must know; a text is padded with zeroes. `None`: nobody is asked.
    pub secret: Option<[u8; SECRET]>,
    /// Queues, in both directions.
    pub queues: usize,
    /// Descriptors of each ring, a power of two. The slave's counts.
    pub ring_size: usize,
    /// As slave: room that is offered to the master in each buffer. At most [`weir_buf::DATA_ROOM`].
    pub buffer_size: usize,
}

impl std::fmt::Debug for MemifConfig {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemifConfig")
            .field("role", &self.role)
            .field("socket", &self.socket)
            .field("id", &self.id)
            .field("secret", &self.secret.map(|_| "given"))
            .field("queues", &self.queues)
            .field("ring_size", &self.ring_size)
            .field("buffer_size", &self.buffer_size)
            .finish()
    }
}

impl MemifConfig {
    /// One queue, rings of 1024, whole buffers, no secret.
    #[must_use]
    pub fn new(role: Role, socket: Socket, id: u32) -> MemifConfig {
        MemifConfig {
            role,
            socket,
            id,
            secret: None,
            queues: 1,
            ring_size: 1024,
            buffer_size: DATA_ROOM,
        }
    }

    /// For messages: "memif ROLE ID at SOCKET".
    pub(crate) fn name(&self) -> String {
        format!("memif {} {} at {}", self.role.name(), self.id, self.socket)
    }

    pub(crate) fn log2_ring_size(&self) -> u8 {
        self.ring_size.trailing_zeros() as u8
    }

    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let impossible = |what: String| Err(OpenError(format!("{}: {what}", self.name())));
        self.socket.address()?;
        if !(1..=MOST_QUEUES).contains(&self.queues) {
            return impossible(format!(
                "{} queues are impossible: use 1 to {MOST_QUEUES}",
                self.queues
            ));
        }
        if !self.ring_size.is_power_of_two() || !(LEAST_RING..=MOST_RING).contains(&self.ring_size)
        {
            return impossible(format!(
                "a ring of {} is impossible: use a power of two from {LEAST_RING} to {MOST_RING}",
                self.ring_size
            ));
        }
        if !(LEAST_BUFFER..=DATA_ROOM).contains(&self.buffer_size) {
            return impossible(format!(
                "buffers of {} bytes are impossible: use {LEAST_BUFFER} to {DATA_ROOM}",
                self.buffer_size
            ));
        }
        Ok(())
    }

    /// How many chunks a receiving queue gives to the master: a full ring, but no port takes more
    /// than a quarter of what is free when it is opened.
    pub(crate) fn level(&self, pool: &Pool) -> u16 {
        let share = pool.usage().free / 4 / self.queues.max(1);
        share.max(LEAST_RING).min(self.ring_size) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_ports_are_refused_with_a_sentence() {
        let good = MemifConfig::new(Role::Slave, Socket::Abstract("x".into()), 0);
        assert!(good.check().is_ok());
        let bad = [
            MemifConfig {
                queues: 0,
                ..good.clone()
            },
            MemifConfig {
                queues: MOST_QUEUES + 1,
                ..good.clone()
            },
            MemifConfig {
                ring_size: 1000,
                ..good.clone()
            },
            MemifConfig {
                ring_size: 16,
                ..good.clone()
            },
            MemifConfig {
                ring_size: 1 << 15,
                ..good.clone()
            },
            MemifConfig {
                buffer_size: DATA_ROOM + 1,
                ..good.clone()
            },
            MemifConfig {
                buffer_size: 10,
                ..good.clone()
            },
            MemifConfig {
                socket: Socket::Path("x".repeat(200).into()),
                ..good.clone()
            },
            MemifConfig {
                socket: Socket::Path(PathBuf::new()),
                ..good.clone()
            },
            MemifConfig {
                socket: Socket::Abstract(String::new()),
                ..good.clone()
            },
        ];
        for config in bad {
            assert!(
                config.check().unwrap_err().0.contains("impossible"),
                "{config:?}"
            );
        }
    }

    #[test]
    fn the_secret_is_not_shown() {
        let config = MemifConfig {
            secret: Some(*b"abcdefghijklmnopqrstuvwx"),
            ..MemifConfig::new(Role::Slave, Socket::Abstract("x".into()), 0)
        };
        assert!(!format!("{config:?}").contains("abc") && !format!("{config:?}").contains("97"));
    }
}
