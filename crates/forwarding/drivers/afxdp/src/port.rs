//! The port: what the control thread asks of an AF_XDP device.
//!
//! Everything it asks goes over sockets opened together with the port, so the answers are those of
//! the device's network namespace whichever thread asks.
//!
//! A device that vanishes is noticed by [`Port::link`] (asked every second) or by a queue whose system
//! call fails; then the queues report themselves dead, the engine drops them, and
//! [`Port::should_reopen`] turns true once a device of that name is there again. Nothing is logged
//! here about that: the engine says it once.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use weir_buf::Pool;
use weir_netlink::ethtool::{Ethtool, Offload};
use weir_netlink::route::{Link, LinkStatistics, Route};
use weir_port::{Capabilities, HardwareCounter, LinkState, OpenError, Port, QueuePair, Source};
use weir_wire::MacAddr;

use crate::program::Program;
use crate::setup::{AfxdpConfig, Opened, Setup, rights};
use crate::socket::{QueueCounts, Socket};
use crate::sys;

/// A network device reached through AF_XDP.
pub struct AfxdpPort {
    device: String,
    index: u32,
    mac: Option<MacAddr>,
    capabilities: Capabilities,
    /// Taken off first; the sockets go when the workers have let go of theirs.
    program: Option<Program>,
    queues: Vec<QueuePair>,
    sockets: Vec<Option<Arc<Socket>>>,
    counts: Vec<Arc<QueueCounts>>,
    promiscuous: Option<OwnedFd>,
    route: Mutex<Route>,
    ethtool: Ethtool,
    gone: bool,
    last_link: LinkState,
    /// Dropped last.
    tags: Option<KeptTags>,
}

impl AfxdpPort {
    /// Opens the device in the network namespace of the calling thread, over the memory of `pool`.
    ///
    /// # Errors
    /// One sentence: what is missing and what to do.
    pub fn open(config: &AfxdpConfig, pool: &Pool) -> Result<AfxdpPort, OpenError> {
        let failed = |error: weir_netlink::Error| OpenError(format!("{}: {error}", config.device));
        let mut route = Route::open().map_err(failed)?;
        let ethtool = Ethtool::open().map_err(failed)?;
        let setup = Setup::new(config, pool, &mut route, &ethtool)?;
        let tags = KeptTags::of(&config.device).map_err(failed)?;
        let (
            Opened {
                program,
                sockets,
                mode,
            },
            queues,
        ) = setup.open()?;
        let promiscuous = if config.promiscuous {
            Some(hold_promiscuous(&config.device, setup.link.index)?)
        } else {
            None
        };
        tracing::info!(
            device = config.device,
            mode,
            rx_queues = setup.rx_queues,
            tx_queues = setup.tx_queues,
            "AF_XDP port open"
        );
        Ok(AfxdpPort {
            device: config.device.clone(),
            index: setup.link.index,
            mac: setup.link.mac.map(MacAddr),
            capabilities: Capabilities {
                driver: "af-xdp",
                mode: mode.to_owned(),
                rx_queues: setup.rx_queues,
                tx_queues: setup.tx_queues,
                max_frame: sockets
                    .iter()
                    .map(|socket| socket.longest())
                    .min()
                    .unwrap_or(0),
            },
            program: Some(program),
            queues,
            counts: sockets
                .iter()
                .map(|socket| socket.counts().clone())
                .collect(),
            sockets: sockets.into_iter().map(Some).collect(),
            promiscuous,
            last_link: LinkState {
                up: setup.link.running,
                speed: 0,
            },
            route: Mutex::new(route),
            ethtool,
            tags,
            gone: false,
        })
    }

    fn ask(&self) -> Option<weir_netlink::Result<Link>> {
        // The control thread is the only one; a poisoned lock only means that it panicked once.
        (!self.gone).then(|| {
            self.route
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .link_by_index(self.index)
        })
    }

    /// The device is gone: the queues are stopped, and what the workers have let go of is closed.
    fn vanish(&mut self) {
        if !self.gone {
            self.gone = true;
            if let Some(mut tags) = self.tags.take() {
                // Whatever has the name from now on is another device.
                tags.is_gone = true;
            }
            (self.program, self.promiscuous) = (None, None);
            self.queues.clear();
        }
        for place in &mut self.sockets {
            if let Some(socket) = place.take() {
                socket.declare_dead();
                // Kept while a worker still has a half, so that closing it falls to this thread.
                *place = (Arc::strong_count(&socket) > 1).then_some(socket);
            }
        }
        self.last_link = LinkState {
            up: false,
            speed: 0,
        };
    }

    fn socket_counters(&self, number: usize, list: &mut Vec<HardwareCounter>) {
        let Some(counts) = self.counts.get(number) else {
            return;
        };
        let mut push = |name: &str, value, source| {
            list.push(HardwareCounter {
                name: format!("{name}_q{number}"),
                value,
                source,
            })
        };
        counts
            .own()
            .into_iter()
            .for_each(|(name, value)| push(name, value, Source::Driver));
        let live = self
            .sockets
            .get(number)
            .and_then(Option::as_ref)
            .map(|socket| socket.statistics());
        let values = live.unwrap_or_else(|| counts.last());
        sys::STATISTICS
            .into_iter()
            .zip(values)
            .for_each(|(name, value)| push(name, value, Source::Xdp));
    }
}

/// A device that takes VLAN tags off frames tells them beside the frame, where no XDP program sees them. So that offload is off
/// while the port is open, and on again afterwards.
#[derive(Debug)]
struct KeptTags {
    device: String,
    /// Of the device's network namespace.
    ethtool: Ethtool,
    is_gone: bool,
}

impl KeptTags {
    /// `None` when the device leaves tags alone.
    fn of(device: &str) -> weir_netlink::Result<Option<KeptTags>> {
        let ethtool = Ethtool::open()?;
        if !ethtool.offload(device, Offload::RxVlan).is_ok_and(|on| on) {
            return Ok(None);
        }
        if let Err(error) = ethtool.set_offload(device, Offload::RxVlan, false) {
            tracing::warn!(
                device,
                "it takes VLAN tags off what comes in, so tagged frames will seem to have none: {error}"
            );
            return Ok(None);
        }
        Ok(Some(KeptTags {
            device: device.to_owned(),
            ethtool,
            is_gone: false,
        }))
    }
}

impl Drop for KeptTags {
    fn drop(&mut self) {
        if self.is_gone {
            return;
        }
        if let Err(error) = self
            .ethtool
            .set_offload(&self.device, Offload::RxVlan, true)
        {
            let device = &self.device;
            tracing::warn!(
                device,
                "its offload of received VLAN tags (rxvlan) stays off: {error}"
            );
        }
    }
}

fn hold_promiscuous(device: &str, index: u32) -> Result<OwnedFd, OpenError> {
    sys::hold_promiscuous(index).map_err(|error| {
        OpenError(format!(
            "{device} cannot be made promiscuous: {error}; {}",
            rights()
        ))
    })
}

/// The kernel's counters of a device by their names.
fn kernel_counters(statistics: &LinkStatistics) -> [(&'static str, u64); 14] {
    [
        ("rx_packets", statistics.rx_packets),
        ("tx_packets", statistics.tx_packets),
        ("rx_bytes", statistics.rx_bytes),
        ("tx_bytes", statistics.tx_bytes),
        ("rx_errors", statistics.rx_errors),
        ("tx_errors", statistics.tx_errors),
        ("rx_dropped", statistics.rx_dropped),
        ("tx_dropped", statistics.tx_dropped),
        ("multicast", statistics.multicast),
        ("rx_crc_errors", statistics.rx_crc_errors),
        ("rx_fifo_errors", statistics.rx_fifo_errors),
        ("rx_missed_errors", statistics.rx_missed_errors),
        ("tx_carrier_errors", statistics.tx_carrier_errors),
        ("tx_fifo_errors", statistics.tx_fifo_errors),
    ]
}

impl Port for AfxdpPort {
    fn device(&self) -> &str {
        &self.device
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn mac(&self) -> Option<MacAddr> {
        self.mac
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn link(&mut self) -> LinkState {
        let found_dead = self.sockets.iter().flatten().any(|socket| socket.is_dead());
        match self.ask() {
            Some(Ok(link)) if !found_dead => {
                let speed = self
                    .ethtool
                    .link_settings(&link.name)
                    .ok()
                    .and_then(|settings| settings.megabits);
                self.sockets
                    .iter()
                    .flatten()
                    .for_each(|socket| _ = socket.fit(link.mtu));
                self.last_link = LinkState {
                    up: link.running,
                    speed: u64::from(speed.unwrap_or(0)) * 1_000_000,
                };
            }
            // Another failure (a full netlink queue) says nothing about the device.
            Some(Err(error)) if !error.is_not_found() && !found_dead => (),
            _ => self.vanish(),
        }
        self.last_link
    }

    fn counters(&self) -> Vec<HardwareCounter> {
        let mut list = Vec::new();
        (0..self.counts.len()).for_each(|number| self.socket_counters(number, &mut list));
        if let Some(Ok(link)) = self.ask() {
            let counter = |(name, value): (&str, u64), source| HardwareCounter {
                name: name.to_owned(),
                value,
                source,
            };
            list.extend(
                kernel_counters(&link.statistics).map(|pair| counter(pair, Source::Kernel)),
            );
            let driver = self.ethtool.statistics(&link.name).unwrap_or_default();
            list.extend(driver.into_iter().map(|(name, value)| HardwareCounter {
                name,
                value,
                source: Source::Ethtool,
            }));
        }
        list
    }

    fn should_reopen(&mut self) -> bool {
        if !self.gone {
            return false;
        }
        self.vanish();
        self.route
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .link_by_name(&self.device)
            .is_ok()
    }
}
