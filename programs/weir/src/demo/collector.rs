//! The demo's collectors: one receives the router's sFlow and scales it, one adds up its IPFIX records.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_flowfmt::ipfix;
use weir_flowfmt::ipfix::decode::Item;
use weir_flowfmt::ipfix::flow::Flow;
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};
use weir_netlink::netns::NetNs;
use weir_wire::{EtherType, EthernetHeader, Ipv4Header};

/// More talkers than a demo has; what is beyond is counted under nobody.
const MOST_TALKERS: usize = 4096;

/// What was received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    pub(crate) datagrams: u64,
    pub(crate) broken: u64,
    pub(crate) samples: u64,
    /// Samples times their rate.
    pub(crate) estimated_packets: u64,
    /// By source and destination: samples, estimated packets, estimated bytes.
    pub(crate) talkers: BTreeMap<(Ipv4Addr, Ipv4Addr), (u64, u64, u64)>,
}

/// A thread that receives.
pub(crate) struct Collector {
    collected: Arc<Mutex<Collected>>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

fn lock(collected: &Mutex<Collected>) -> MutexGuard<'_, Collected> {
    collected.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    /// Listens in a namespace.
    pub(crate) fn start(namespace: &NetNs) -> Result<Collector, String> {
        let socket = namespace
            .run(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 6343)))
            .map_err(|error| error.to_string())?;
        let socket = socket.map_err(|error| format!("the collector cannot listen: {error}"))?;
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .map_err(|error| error.to_string())?;
        let (collected, stop) = (
            Arc::<Mutex<Collected>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (into, until) = (collected.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            loop {
                match socket.recv(&mut buffer) {
                    Ok(len) => take(&mut lock(&into), buffer.get(..len).unwrap_or(&[])),
                    // Asked to stop and nothing more within the time-out: all is in.
                    Err(_) if until.load(Ordering::Acquire) => return,
                    Err(_) => {}
                }
            }
        });
        Ok(Collector {
            collected,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What was received so far.
    pub(crate) fn now(&self) -> Collected {
        lock(&self.collected).clone()
    }

    /// Takes what is still in the socket and ends.
    pub(crate) fn stop(&self) -> Collected {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let _ = thread.join();
        }
        self.now()
    }
}

fn take(collected: &mut Collected, bytes: &[u8]) {
    let Ok(datagram) = Datagram::decode(bytes) else {
        collected.broken += 1;
        return;
    };
    collected.datagrams += 1;
    for sample in datagram.samples() {
        let Ok(Sample::Flow(_, flow, records)) = sample else {
            continue;
        };
        collected.samples += 1;
        collected.estimated_packets += u64::from(flow.rate);
        for record in records {
            let Ok(FlowRecord::RawHeader(raw)) = record else {
                continue;
            };
            let Some(ends) = ends(raw.header) else {
                continue;
            };
            if collected.talkers.len() < MOST_TALKERS || collected.talkers.contains_key(&ends) {
                let talker = collected.talkers.entry(ends).or_default();
                talker.0 += 1;
                talker.1 += u64::from(flow.rate);
                talker.2 += u64::from(flow.rate) * u64::from(raw.frame_length);
            }
        }
    }
}

fn ends(frame: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (ethernet, l3) = EthernetHeader::read(frame)?;
    if ethernet.ethertype() != EtherType::IPV4 {
        return None;
    }
    let (header, _) = Ipv4Header::read(l3)?;
    Some((header.source_addr(), header.destination_addr()))
}

/// Flow records and the packets in them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowTotals {
    pub(crate) records: u64,
    pub(crate) packets: u64,
}

/// A thread that receives IPFIX.
pub(crate) struct FlowCollector {
    totals: Arc<Mutex<FlowTotals>>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl FlowCollector {
    /// Listens in a namespace.
    pub(crate) fn start(namespace: &NetNs) -> Result<FlowCollector, String> {
        let bound = namespace
            .run(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, ipfix::PORT)))
            .map_err(|error| error.to_string())?;
        let socket = bound.map_err(|error| format!("the flow collector cannot listen: {error}"))?;
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .map_err(|error| error.to_string())?;
        let (totals, stop) = (
            Arc::<Mutex<FlowTotals>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (into, until) = (totals.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut decoder = ipfix::decode::Collector::new();
            let mut buffer = vec![0; 65_536];
            loop {
                match socket.recv_from(&mut buffer) {
                    Ok((len, exporter)) => {
                        let bytes = buffer.get(..len).unwrap_or(&[]);
                        decoder.read(exporter, bytes, &mut |item| {
                            if let Item::Record(record) = item {
                                let mut totals =
                                    into.lock().unwrap_or_else(PoisonError::into_inner);
                                totals.records += 1;
                                totals.packets += Flow::of(&record).packets;
                            }
                        });
                    }
                    Err(_) if until.load(Ordering::Acquire) => return,
                    Err(_) => {}
                }
            }
        });
        Ok(FlowCollector {
            totals,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What was received so far.
    pub(crate) fn now(&self) -> FlowTotals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is still in the socket and ends.
    pub(crate) fn stop(&self) -> FlowTotals {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let _ = thread.join();
        }
        self.now()
    }
}
