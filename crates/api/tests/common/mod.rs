//! A router that answers from values, and a place for its socket.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use weir_api::*;

/// A directory that goes away with the test.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("weir-api-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("api.sock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How the test router misbehaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    /// `runtime` panics.
    Panics,
    /// `runtime` takes this many milliseconds.
    Slow(u64),
    /// `config` answers with this many bytes.
    Talks(usize),
}

pub(crate) struct TestRouter {
    pub(crate) mood: Mood,
    pub(crate) armed: Mutex<Vec<TraceRequest>>,
    pub(crate) cleared: Mutex<Vec<Clear>>,
}

impl TestRouter {
    pub(crate) fn new(mood: Mood) -> Self {
        Self { mood, armed: Mutex::default(), cleared: Mutex::default() }
    }
}

pub(crate) fn interface(name: &str, index: u32) -> Interface {
    Interface {
        name: name.to_owned(),
        index,
        kind: InterfaceKind::Port,
        parent: None,
        device: Some(format!("veth-{name}")),
        driver: Some("af-xdp".to_owned()),
        mac: Some("02:00:00:00:00:01".to_owned()),
        mtu: 1500,
        admin: UpDown::Up,
        link: UpDown::Down,
        speed: 10_000_000_000,
        description: None,
        addresses: vec!["192.0.2.1/24".parse().unwrap()],
        l2xc: None,
        sflow: true,
        rx: Traffic { packets: u64::MAX, bytes: 6400, unicast: 98, multicast: 1, broadcast: 1 },
        tx: Traffic::default(),
        rx_errors: 0,
        tx_errors: 3,
        drops: 2,
        drops_by: vec![InterfaceDrop { node: "ip4-input".to_owned(), reason: "ttl-expired".to_owned(), count: 2 }],
    }
}

pub(crate) fn drop_counter(worker: u32, interface: &str, count: u64) -> DropCounter {
    DropCounter {
        worker: Some(worker),
        node: "ip4-input".to_owned(),
        reason: "ttl-expired".to_owned(),
        severity: Severity::Info,
        sentence: "the packet's TTL ran out".to_owned(),
        interface: Some(interface.to_owned()),
        count,
    }
}

pub(crate) fn route(prefix: &str, table: u32) -> Route {
    let path = PathReply {
        next_hop: Some("192.0.2.9".parse().unwrap()),
        interface: Some("wan".to_owned()),
        weight: 1,
        adjacency: Adjacency::Complete,
        labels: vec![],
    };
    Route { table, prefix: prefix.parse().unwrap(), source: RouteSource::Static, paths: vec![path] }
}

pub(crate) fn sflow() -> Sflow {
    Sflow {
        settings: SflowSettings {
            sampling_rate: 1000,
            polling_interval: 20,
            header_bytes: 128,
            encoding: SflowEncoding::Expanded,
            datagram_bytes: 1400,
            agent_sub_id: 0,
        },
        agent: Some("192.0.2.1".parse().unwrap()),
        collectors: vec![SflowCollector {
            address: "2001:db8::1".parse().unwrap(),
            port: 6343,
            sent: 7,
            errors: 1,
            last_error: Some("connection refused".to_owned()),
        }],
        workers: vec![SflowWorker { worker: 0, samples_taken: 10, samples_sent: 9, samples_dropped: 1 }],
        interfaces: vec![SflowInterface { interface: "wan".to_owned(), index: 1, pool: 10_000, samples: 10 }],
        samples_sent: 9,
        samples_lost: 0,
        datagrams: 7,
    }
}

pub(crate) fn trace() -> Trace {
    let request = TraceRequest { node: Some("ip4-input".to_owned()), interface: None, count: 5 };
    let step = TraceStep {
        node: "ip4-input".to_owned(),
        description: "IP4 192.0.2.9 -> 198.51.100.1 ttl 1".to_owned(),
        verdict: "drop ttl-expired".to_owned(),
    };
    let packet = TracedPacket { number: 1, worker: 0, interface: Some("wan".to_owned()), at: 1.25, length: 64, steps: vec![step] };
    Trace { filters: vec![TraceFilter { request, left: 4 }], packets: vec![packet] }
}

impl Router for TestRouter {
    fn version(&self) -> Result<Version, ApiError> {
        Ok(Version {
            version: "0.1.0".to_owned(),
            commit: None,
            pid: std::process::id(),
            started: 1,
            uptime: 2,
            workers: 1,
            config_file: None,
        })
    }

    fn interfaces(&self) -> Result<Interfaces, ApiError> {
        Ok(Interfaces { interfaces: vec![interface("wan", 1), interface("lan & co", 2)] })
    }

    fn hardware(&self) -> Result<Hardware, ApiError> {
        let port = |interface: &str| HardwarePort {
            interface: interface.to_owned(),
            device: format!("veth-{interface}"),
            driver: "af-xdp".to_owned(),
            mode: "native, copy".to_owned(),
            mac: None,
            link: UpDown::Up,
            speed: 0,
            rx_queues: 1,
            tx_queues: 1,
            max_frame: 1514,
            counters: vec![HardwareCounter { name: "rx_dropped".to_owned(), value: 5, source: CounterSource::Xdp }],
        };
        Ok(Hardware { ports: vec![port("wan"), port("lan & co")] })
    }

    fn rx_placement(&self) -> Result<RxPlacement, ApiError> {
        let queue = |interface: &str, queue| RxQueuePlacement { interface: interface.to_owned(), queue, worker: 0, core: Some(1) };
        Ok(RxPlacement { queues: vec![queue("wan", 0), queue("wan", 1), queue("lan & co", 0)] })
    }

    fn runtime(&self) -> Result<Runtime, ApiError> {
        match self.mood {
            Mood::Panics => panic!("as the test asks"),
            Mood::Slow(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
            Mood::Good | Mood::Talks(_) => {}
        }
        let nodes = vec![NodeRuntime::new("eth-input", 4, 1000, 9000), NodeRuntime::new("ip4-local", 0, 0, 0)];
        let worker = WorkerRuntime { worker: 0, core: None, idle: IdleMode::Sleep, turns: 9, busy_turns: 4, nodes };
        Ok(Runtime { tsc_mhz: 2600.0, seconds: 1.5, workers: vec![worker] })
    }

    fn errors(&self) -> Result<Errors, ApiError> {
        Ok(Errors { errors: vec![drop_counter(0, "wan", 2), drop_counter(1, "wan", 3), drop_counter(1, "lan & co", 7)] })
    }

    fn neighbors(&self) -> Result<Neighbors, ApiError> {
        let neighbor = Neighbor {
            interface: "wan".to_owned(),
            address: "192.0.2.9".parse().unwrap(),
            mac: None,
            state: NeighborState::Incomplete,
            age: Some(0.5),
        };
        Ok(Neighbors { neighbors: vec![neighbor] })
    }

    fn routes(&self) -> Result<Routes, ApiError> {
        Ok(Routes { routes: vec![route("0.0.0.0/0", 0), route("10.0.0.0/8", 0), route("10.1.0.0/16", 0), route("10.0.0.0/8", 7)] })
    }

    fn sflow(&self) -> Result<Sflow, ApiError> {
        Ok(sflow())
    }

    fn trace(&self) -> Result<Trace, ApiError> {
        Ok(trace())
    }

    fn trace_add(&self, request: &TraceRequest) -> Result<(), ApiError> {
        if let Some(node) = request.node.as_deref()
            && node != "ip4-input"
        {
            return Err(ApiError::unknown("node", node, ["ip4-input"]));
        }
        self.armed.lock().unwrap().push(request.clone());
        Ok(())
    }

    fn trace_clear(&self) -> Result<(), ApiError> {
        self.armed.lock().unwrap().clear();
        Ok(())
    }

    fn totals(&self) -> Result<Totals, ApiError> {
        let drops = BTreeMap::from([("ttl-expired".to_owned(), 2), ("tx-full".to_owned(), 1)]);
        Ok(Totals { packets_in: 10, packets_out: 8, originated: 2, replicated: 0, consumed: 1, held: 0, drops })
    }

    fn config(&self) -> Result<serde_json::Value, ApiError> {
        let padding = if let Mood::Talks(bytes) = self.mood { "x".repeat(bytes) } else { String::new() };
        Ok(serde_json::json!({ "interfaces": { "wan": { "mtu": 1500 } }, "padding": padding }))
    }

    fn clear(&self, what: Clear) -> Result<(), ApiError> {
        self.cleared.lock().unwrap().push(what);
        Ok(())
    }
}

/// Sends bytes as they are, and reads until the server closes.
pub(crate) fn raw(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // A server that refuses early may close before everything is sent.
    let _ = stream.write_all(request);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}

/// Asks without the client: status and JSON body.
pub(crate) fn plain(socket: &Path, method: &str, target: &str, body: &str) -> (u16, serde_json::Value, String) {
    let length = body.len();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    let reply = raw(socket, request.as_bytes());
    let status = reply.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no status in {reply:?}"));
    let (head, text) = reply.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text:?}")), head.to_ascii_lowercase())
}
