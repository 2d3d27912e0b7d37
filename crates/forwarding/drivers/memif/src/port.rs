//! The port: what the control thread asks of a memif connection.
//!
//! The port is there whether or not it has a peer: without one its link is down, nothing is received,
//! and what is sent is left to the caller. Peers come and go by themselves; the port never has to be
//! opened again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use weir_buf::Pool;
use weir_port::{Capabilities, HardwareCounter, LinkState, OpenError, Port, QueuePair, Source};
use weir_wire::MacAddr;

use crate::control::Control;
use crate::listen::Membership;
use crate::reason::Reason;
use crate::rx::Receiver;
use crate::setup::{MemifConfig, Role};
use crate::shared::{Shared, lock};
use crate::tx::Sender;

/// The longest frame: what a chain of chunks can hold.
const LONGEST: usize = 0xffff;

/// One end of a shared-memory connection.
#[derive(Debug)]
pub struct MemifPort {
    name: String,
    shared: Arc<Shared>,
    membership: Option<Membership>,
    thread: Option<JoinHandle<()>>,
    taken: bool,
}

/// What `show memif` tells of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemifStatus {
    /// How the port was opened.
    pub config: MemifConfig,
    /// Whether there is a peer.
    pub connected: bool,
    /// How often there was one.
    pub connects: u64,
    /// The name that the peer gives its program.
    pub peer: String,
    /// The name that the peer gives its interface.
    pub interface: String,
    /// Rings that frames come in on.
    pub rx_rings: usize,
    /// Rings that frames go out on.
    pub tx_rings: usize,
    /// Descriptors of the first ring.
    pub ring_size: usize,
    /// Sizes of the regions that are shared with this peer, in bytes; a slave's last one is the pool.
    pub regions: Vec<usize>,
    /// Why the last peer was parted from.
    pub last_parting: Option<String>,
}

/// Asks for a port's status from any thread, also after the port was handed to the engine.
#[derive(Clone, Debug)]
pub struct MemifWatch(Arc<Shared>);

impl MemifWatch {
    /// The status now.
    #[must_use]
    pub fn status(&self) -> MemifStatus {
        let known = lock(&self.0.known).clone();
        let link = self.0.link().flatten();
        let link = link.as_ref();
        MemifStatus {
            config: self.0.config.clone(),
            connected: link.is_some(),
            connects: self.0.connects.load(Ordering::Relaxed),
            peer: known.peer,
            interface: known.interface,
            rx_rings: link.map_or(0, |link| link.rx.len()),
            tx_rings: link.map_or(0, |link| link.tx.len()),
            ring_size: link
                .and_then(|link| link.rx.first())
                .map_or(0, |lane| usize::from(lane.ring.size())),
            regions: link.map_or_else(Vec::new, |link| {
                let pool = (self.0.config.role == Role::Slave).then(|| self.0.pool.mapped_bytes());
                link.regions
                    .iter()
                    .map(|region| region.bytes())
                    .chain(pool)
                    .collect()
            }),
            last_parting: known.parted,
        }
    }
}

impl MemifPort {
    /// Opens the port over the memory of `pool`. A master listens from now on, a slave looks for its
    /// master from now on; neither waits for the other here.
    ///
    /// # Errors
    /// One sentence: what is missing and what to do.
    pub fn open(config: &MemifConfig, pool: &Pool) -> Result<MemifPort, OpenError> {
        config.check()?;
        let name = config.name();
        let shared = Shared::new(config, pool, config.level(pool));
        let shared = Arc::new(
            shared
                .map_err(|errno| OpenError(format!("{name}: {}", std::io::Error::from(errno))))?,
        );
        let membership = if config.role == Role::Master {
            Some(Membership::new(&shared)?)
        } else {
            None
        };
        let control = Control::new(shared.clone());
        let thread = std::thread::Builder::new()
            .name(format!("memif-{}", config.id))
            .spawn(move || control.run());
        let thread =
            thread.map_err(|error| OpenError(format!("{name}: no thread can be made: {error}")))?;
        Ok(MemifPort {
            name,
            shared,
            membership,
            thread: Some(thread),
            taken: false,
        })
    }

    /// A handle to the port's status.
    #[must_use]
    pub fn watch(&self) -> MemifWatch {
        MemifWatch(self.shared.clone())
    }
}

impl Port for MemifPort {
    fn device(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        let config = &self.shared.config;
        let mode = match config.role {
            Role::Master => "master, copy",
            Role::Slave => "slave, zero-copy",
        };
        let queues = config.queues;
        Capabilities {
            driver: "memif",
            mode: mode.to_owned(),
            rx_queues: queues,
            tx_queues: queues,
            max_frame: LONGEST,
        }
    }

    fn mac(&self) -> Option<MacAddr> {
        None
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        if std::mem::replace(&mut self.taken, true) {
            return Vec::new();
        }
        let pair = |number| QueuePair {
            rx: Some(Box::new(Receiver::new(&self.shared, number))),
            tx: Some(Box::new(Sender::new(&self.shared, number))),
        };
        (0..self.shared.config.queues).map(pair).collect()
    }

    fn link(&mut self) -> LinkState {
        LinkState {
            up: self.shared.is_up(),
            speed: 0,
        }
    }

    fn counters(&self) -> Vec<HardwareCounter> {
        let counter = |name: String, value| HardwareCounter {
            name,
            value,
            source: Source::Driver,
        };
        let mut list = vec![counter(
            "connects".into(),
            self.shared.connects.load(Ordering::Relaxed),
        )];
        for (number, counts) in self.shared.counts.iter().enumerate() {
            let (rx, tx) = (&counts.rx, &counts.tx);
            let own = [
                ("rx_packets", rx.packets.get()),
                ("rx_no_buffer", rx.no_buffer.get()),
                ("rx_runts", rx.runts.get()),
                ("tx_packets", tx.packets.get()),
                ("tx_ring_full", tx.ring_full.get()),
                ("tx_no_peer", tx.no_peer.get()),
                ("tx_refused", tx.refused.get()),
                ("tx_copied", tx.copied.get()),
                ("tx_interrupts", tx.interrupts.get()),
            ];
            list.extend(own.map(|(name, value)| counter(format!("{name}_q{number}"), value)));
        }
        list.extend(Reason::ALL.map(|reason| {
            let before = self
                .membership
                .as_ref()
                .map_or(0, |membership| membership.sent_away(reason));
            counter(
                format!("disconnect_{}", reason.name()),
                self.shared.reasons.of(reason) + before,
            )
        }));
        list
    }
}

impl Drop for MemifPort {
    fn drop(&mut self) {
        // First nobody new, then nobody at all.
        drop(self.membership.take());
        self.shared.stop.store(true, Ordering::Release);
        self.shared.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
