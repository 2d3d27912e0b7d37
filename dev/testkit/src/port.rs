//! Ports in memory, in place of the capture files that a scenario's configuration names.
//!
//! A file has an order of its own only; frames of a scenario have one across ports, and times. So the
//! script hands each frame over when it is its turn, and takes what was sent out again. Frames longer
//! than a buffer arrive as chains, as a driver of jumbo frames would bring them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_buf::{Pkt, PktCache, Vector};
use weir_config::Device;
use weir_port::{
    Capabilities, HardwareCounter, LinkState, OpenError, Port, QueuePair, RxQueue, TxQueue,
};
use weir_wire::MacAddr;

/// Both sides of a wire.
#[derive(Debug)]
struct Wire {
    arriving: VecDeque<Vec<u8>>,
    left: Vec<Vec<u8>>,
    up: bool,
}

/// A handle to a wire.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Wire>>);

impl Shared {
    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All ports of a scenario by name.
#[derive(Clone, Default)]
pub(crate) struct Ports(Arc<Mutex<BTreeMap<String, Shared>>>);

impl Ports {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Shared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, port: &str) -> Result<Shared, String> {
        let all = self.all();
        let names = || {
            all.keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        };
        all.get(port).cloned().ok_or_else(|| {
            format!(
                "no interface has a pcap device called {port}: there are {}",
                names()
            )
        })
    }

    /// Opens a pcap device whose files are called after a port; others are the system's.
    pub(crate) fn open(&self, device: &Device) -> Option<Result<Box<dyn Port>, OpenError>> {
        let Device::Pcap { input, output } = device else {
            return None;
        };
        let name = |path: &Option<std::path::PathBuf>, end: &str| {
            path.as_ref()?
                .to_str()?
                .strip_suffix(end)
                .map(str::to_owned)
        };
        let names = (name(input, ".in.pcap"), name(output, ".out.pcap"));
        let name = match names {
            (Some(one), Some(other)) if one != other => {
                return Some(Err(OpenError(format!(
                    "one port is called {one} and {other}"
                ))));
            }
            (Some(name), _) | (None, Some(name)) => name,
            (None, None) => {
                return Some(Err(OpenError(
                    "files of a scenario are called PORT.in.pcap and PORT.out.pcap".to_owned(),
                )));
            }
        };
        let wire = Shared(Arc::new(Mutex::new(Wire {
            arriving: VecDeque::new(),
            left: Vec::new(),
            up: true,
        })));
        let wire = self.all().entry(name.clone()).or_insert(wire).clone();
        Some(Ok(Box::new(MemoryPort { name, wire })))
    }

    /// A frame arrives.
    pub(crate) fn bring(&self, port: &str, frame: &[u8]) -> Result<(), String> {
        self.get(port)?.wire().arriving.push_back(frame.to_vec());
        Ok(())
    }

    /// A port's carrier comes or goes.
    pub(crate) fn set_link(&self, port: &str, up: bool) -> Result<(), String> {
        self.get(port)?.wire().up = up;
        Ok(())
    }

    /// What left since the last time, by port.
    pub(crate) fn take_left(&self) -> Vec<(String, Vec<u8>)> {
        let all = self.all();
        let of = |(name, shared): (&String, &Shared)| {
            let left = std::mem::take(&mut shared.wire().left);
            left.into_iter()
                .map(|frame| (name.clone(), frame))
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(of).collect()
    }

    /// Ports with frames that nobody took in.
    pub(crate) fn stuck(&self) -> Vec<String> {
        self.all()
            .iter()
            .filter(|(_, shared)| !shared.wire().arriving.is_empty())
            .map(|(name, _)| name.clone())
            .collect()
    }
}

struct MemoryPort {
    name: String,
    wire: Shared,
}

impl Port for MemoryPort {
    fn device(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            driver: "pcap",
            mode: "in memory".to_owned(),
            rx_queues: 1,
            tx_queues: 1,
            max_frame: 65_536,
        }
    }

    fn mac(&self) -> Option<MacAddr> {
        None
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        vec![QueuePair {
            rx: Some(Box::new(Rx(self.wire.clone()))),
            tx: Some(Box::new(Tx(self.wire.clone()))),
        }]
    }

    fn link(&mut self) -> LinkState {
        LinkState {
            up: self.wire.wire().up,
            speed: 0,
        }
    }

    fn counters(&self) -> Vec<HardwareCounter> {
        Vec::new()
    }
}

struct Rx(Shared);

impl RxQueue for Rx {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        let mut wire = self.0.wire();
        let mut count = 0;
        while count < most
            && let Some(packet) = wire.arriving.front().and_then(|frame| packet(frame, cache))
        {
            wire.arriving.pop_front();
            to.push(packet);
            count += 1;
        }
        count
    }
}

/// A frame in buffers; `None` when there are not enough of them.
fn packet(frame: &[u8], cache: &mut PktCache) -> Option<Pkt> {
    Pkt::gather(
        frame.len(),
        || cache.alloc(),
        |at, room| room.copy_from_slice(&frame[at..at + room.len()]),
    )
}

struct Tx(Shared);

impl TxQueue for Tx {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let count = from.len();
        let mut wire = self.0.wire();
        for packet in from.drain() {
            wire.left
                .push(packet.segments().flatten().copied().collect());
            cache.free(packet);
        }
        count
    }
}
