//! The other end of an agent: a UDP socket that takes datagrams apart.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use weir_flowfmt::sflow::decode::{CounterRecord, Datagram, FlowRecord, Sample};
use weir_flowfmt::sflow::{CountersSample, DataFormat, FlowSample, InterfaceCounters};
use weir_telemetry::agent::{
    AgentConfig, Asked, InterfaceReport, PathLookup, Reports, SampledPath,
};

/// A flow sample as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) format: DataFormat,
    pub(crate) sample: FlowSample,
    pub(crate) protocol: u32,
    pub(crate) frame_length: u32,
    pub(crate) stripped: u32,
    pub(crate) header: Vec<u8>,
}

/// A counters sample as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    pub(crate) format: DataFormat,
    pub(crate) sample: CountersSample,
    pub(crate) interface: InterfaceCounters,
    pub(crate) name: String,
    pub(crate) at: Instant,
}

/// A datagram as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sequence: u32,
    pub(crate) flows: Vec<Flow>,
    pub(crate) counters: Vec<Counters>,
}

/// A collector that understands everything an agent sends, and nothing else. A thread of its own
/// keeps the socket's buffer empty, so that the kernel loses nothing however late the test looks.
pub(crate) struct Receiver {
    address: SocketAddr,
    datagrams: mpsc::Receiver<Received>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(crate) fn new() -> Receiver {
        Receiver::at("127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn at(address: SocketAddr) -> Receiver {
        let socket = UdpSocket::bind(address).unwrap();
        // As large as it may be: on a busy machine the thread below may sleep while the agent sends.
        let _ = set_socket_recv_buffer_size(&socket, 4 << 20);
        let _ = set_socket_recv_buffer_size_force(&socket, 4 << 20);
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, datagrams) = mpsc::channel();
        let stopped = stop.clone();
        let receive = move || {
            let mut buffer = vec![0; 65_536];
            while !stopped.load(Ordering::Acquire) {
                if let Ok(length) = socket.recv(&mut buffer) {
                    let _ = sender.send(take_apart(&buffer[..length]));
                }
            }
        };
        Receiver {
            address,
            datagrams,
            stop,
            thread: Some(std::thread::spawn(receive)),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next datagram, if one comes in time.
    pub(crate) fn next(&self, time: Duration) -> Option<Received> {
        self.datagrams.recv_timeout(time).ok()
    }

    /// What comes until nothing comes any more.
    pub(crate) fn all(&self) -> Vec<Received> {
        std::iter::from_fn(|| self.next(Duration::from_millis(300))).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            assert!(
                thread.join().is_ok() || std::thread::panicking(),
                "a datagram could not be read"
            );
        }
    }
}

fn take_apart(bytes: &[u8]) -> Received {
    let datagram = Datagram::decode(bytes).unwrap();
    let mut received = Received {
        bytes: bytes.to_vec(),
        sequence: datagram.sequence,
        flows: Vec::new(),
        counters: Vec::new(),
    };
    for sample in datagram.samples() {
        match sample.unwrap() {
            Sample::Flow(format, sample, records) => {
                let records: Vec<_> = records.map(Result::unwrap).collect();
                let [FlowRecord::RawHeader(raw), ref way @ ..] = records[..] else {
                    panic!("{records:?}")
                };
                let ways = [
                    DataFormat::EXTENDED_SWITCH,
                    DataFormat::EXTENDED_ROUTER,
                    DataFormat::EXTENDED_MPLS,
                ];
                let is_of_its_way = |record: &FlowRecord<'_>| matches!(record, FlowRecord::Other(other) if ways.contains(&other.format));
                assert!(way.iter().all(is_of_its_way), "{records:?}");
                let (protocol, frame_length, stripped) =
                    (raw.protocol, raw.frame_length, raw.stripped);
                received.flows.push(Flow {
                    format,
                    sample,
                    protocol,
                    frame_length,
                    stripped,
                    header: raw.header.to_vec(),
                });
            }
            Sample::Counters(format, sample, records) => {
                let records: Vec<_> = records.map(Result::unwrap).collect();
                let [
                    CounterRecord::Interface(interface),
                    CounterRecord::PortName(name),
                ] = records[..]
                else {
                    panic!("{records:?}")
                };
                let name = String::from_utf8(name.to_vec()).unwrap();
                received.counters.push(Counters {
                    format,
                    sample,
                    interface,
                    name,
                    at: Instant::now(),
                });
            }
            other => panic!("{other:?}"),
        }
    }
    received
}

/// All flow samples of some datagrams, in order.
pub(crate) fn flows(datagrams: &[Received]) -> Vec<Flow> {
    datagrams
        .iter()
        .flat_map(|datagram| datagram.flows.clone())
        .collect()
}

/// The router's side of counters, as a test wants it.
#[derive(Default)]
pub(crate) struct Interfaces(pub(crate) Mutex<Vec<InterfaceReport>>, pub(crate) AtomicU64);

impl Interfaces {
    pub(crate) fn of(reports: Vec<InterfaceReport>) -> Arc<Interfaces> {
        Arc::new(Interfaces(Mutex::new(reports), AtomicU64::new(0)))
    }
}

impl Reports for Interfaces {
    fn interfaces(&self) -> Vec<InterfaceReport> {
        self.0.lock().unwrap().clone()
    }

    fn dropped(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }

    fn node(&self, number: u16) -> &'static str {
        ["eth-input", "ip4-input"]
            .get(usize::from(number))
            .copied()
            .unwrap_or("?")
    }

    fn with_ways(&self, work: &mut dyn FnMut(&dyn PathLookup)) {
        work(&AsSeen);
    }
}

/// PathLookup of a router without sub-interfaces, routes and labels.
struct AsSeen;

impl PathLookup for AsSeen {
    fn way(&self, asked: &Asked<'_>) -> SampledPath {
        SampledPath {
            input: asked.input,
            output: asked.departure.map_or(0, |(port, _)| port),
            ..SampledPath::default()
        }
    }
}

/// An agent at 192.0.2.1 that sends to `collectors` and reports no counters.
pub(crate) fn config(collectors: &[SocketAddr]) -> AgentConfig {
    let collectors = collectors.iter().map(|&address| address.into()).collect();
    AgentConfig {
        collectors,
        ..AgentConfig::new("192.0.2.1".parse().unwrap())
    }
}

/// Waits until something is so, and fails when it does not become so.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < until, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
