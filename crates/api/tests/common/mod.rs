//! A router that answers from values, and a place for its socket.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
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
    /// Somebody else is changing the configuration.
    Locked,
    /// The store of configurations cannot be written.
    Full,
    /// It has this many routes, neighbours and interfaces.
    Large(u32),
}

pub(crate) struct TestRouter {
    pub(crate) mood: Mood,
    pub(crate) events: EventBus,
    /// Every change that was asked for, with who asked.
    pub(crate) changes: Mutex<Vec<(String, Caller)>>,
    pub(crate) armed: Mutex<Vec<TraceRequest>>,
    pub(crate) cleared: Mutex<Vec<Clear>>,
}

impl TestRouter {
    pub(crate) fn new(mood: Mood) -> Self {
        let events = EventBus::with_capacity(16);
        Self { mood, events, changes: Mutex::default(), armed: Mutex::default(), cleared: Mutex::default() }
    }

    fn changed(&self, what: impl std::fmt::Debug, caller: &Caller) {
        self.changes.lock().unwrap().push((format!("{what:?}"), caller.clone()));
    }

    /// Whether nothing at all was changed.
    pub(crate) fn is_untouched(&self) -> bool {
        self.changes.lock().unwrap().is_empty() && self.armed.lock().unwrap().is_empty() && self.cleared.lock().unwrap().is_empty()
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
        tentative: Vec::new(),
        duplicate: Vec::new(),
        vrf: None,
        unnumbered: None,
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
        buckets: 1,
        adjacency_number: 7,
        adjacency: Adjacency::Complete,
        mac: Some("02:00:00:00:00:09".to_owned()),
        mtu: Some(1500),
        labels: vec![],
    };
    let group = Some(RouteGroup { number: 3, routes: 4, buckets: 1, resilient: false });
    let vrf = (table == 7).then(|| "red".to_owned());
    Route { table, vrf, prefix: prefix.parse().unwrap(), source: RouteSource::Static, next_hops: vec![], group, paths: vec![path] }
}

pub(crate) fn ipfix() -> Ipfix {
    let load = |flows| FlowLoad { flows, packets: 3 * flows, octets: 300 * flows };
    Ipfix {
        settings: IpfixSettings {
            active_timeout: 60,
            idle_timeout: 15,
            flows: 65_536,
            sampling_rate: 1,
            domain: 1,
            template_interval: 30,
            biflow: false,
        },
        interfaces: vec![IpfixInterface { interface: "wan".into(), index: 1, direction: SflowDirection::Both, records: "router".into() }],
        workers: vec![FlowWorker {
            resident: 7,
            metered_packets: 60,
            metered_octets: 6000,
            begun: 27,
            ended_idle: 13,
            ended_seen: 5,
            exported: load(18),
            unexported: load(2),
            ignored_packets: 1,
            ..FlowWorker::default()
        }],
        taken: load(18),
        oldest_ms: 12,
        collectors: vec![IpfixCollector {
            address: [192, 0, 2, 9].into(),
            port: 4739,
            transport: "tcp".into(),
            version: "ipfix".into(),
            connected: true,
            connections: 1,
            messages: 3,
            message_octets: 900,
            sent: load(17),
            not_sent: load(1),
            left_out: FlowLoad::default(),
            queued: 0,
            errors: 1,
            last_error: Some("Connection refused".into()),
        }],
        templates: vec![IpfixTemplate {
            id: 256,
            records: "router".into(),
            kind: "ipv4".into(),
            octets: 12,
            elements: vec!["sourceIPv4Address".into(), "packetDeltaCount".into()],
        }],
    }
}

pub(crate) fn flows() -> Flows {
    let flow = FlowEntry {
        worker: 0,
        records: "router".into(),
        direction: SflowDirection::Rx,
        source: "192.0.2.1".into(),
        destination: "198.51.100.2".into(),
        ethertype: None,
        protocol: Some(6),
        source_port: Some(49_152),
        destination_port: Some(443),
        input: Some("wan".into()),
        output: None,
        forwarding_status: 131,
        next_hop: None,
        bgp_next_hop: None,
        vlan: Some(100),
        customer_vlan: None,
        label: None,
        traffic_class: None,
        packets: 3,
        octets: 300,
        start: Timestamp::from_unix_ms(1_700_000_000_000),
        end: Timestamp::from_unix_ms(1_700_000_002_500),
        tcp_flags: 0x1b,
    };
    Flows { flows: vec![flow], matched: 1 }
}

pub(crate) fn sflow() -> Sflow {
    Sflow {
        settings: SflowSettings {
            sampling_rate: 1000,
            polling_interval: 20,
            header_bytes: 128,
            direction: SflowDirection::Rx,
            drop_limit: 100,
            encoding: SflowEncoding::Expanded,
            datagram_bytes: 1400,
            agent_sub_id: 0,
            os_index: true,
            if_offset: 1_000_000_000,
        },
        agent: Some("192.0.2.1".parse().unwrap()),
        collectors: vec![SflowCollector {
            host: "collector.example".to_owned(),
            address: Some("2001:db8::1".parse().unwrap()),
            port: 6343,
            namespace: Some("mgmt".to_owned()),
            source: Some("2001:db8::2".parse().unwrap()),
            dscp: 16,
            dev: Some("vrf-mgmt".to_owned()),
            drops: true,
            announced: true,
            sent: 7,
            errors: 1,
            last_error: Some("connection refused".to_owned()),
        }],
        discovery: Some(SflowDiscovery { domain: Some("example".to_owned()), trouble: Some("it refuses".to_owned()) }),
        kernel: Some(SflowKernel {
            group: 3,
            egress_group: 4,
            namespace: Some("mgmt".to_owned()),
            samples: 5,
            drops: 2,
            reports: 60,
            failed: 1,
            lacking: vec!["this kernel has no psample".to_owned()],
        }),
        workers: vec![SflowWorker { worker: 0, samples_taken: 10, samples_sent: 9, samples_dropped: 1 }],
        interfaces: vec![SflowInterface {
            interface: "wan".to_owned(),
            index: 1,
            told_index: 7,
            sampling_rate: 1000,
            direction: SflowDirection::Rx,
            header_bytes: 128,
            polling_interval: 20,
            pool: 10_000,
            samples: 10,
            dropped: 1,
            workers: vec![SflowShare { worker: 0, pool: 10_000, samples: 10, dropped: 1 }],
        }],
        drops: vec![SflowDrop {
            interface: Some("wan".to_owned()),
            node: "ip4-lookup".to_owned(),
            reason: "no-route".to_owned(),
            code: 0,
            standard: "net_unreachable".to_owned(),
            dropped: 7,
            told: 3,
        }],
        samples_sent: 9,
        samples_lost: 0,
        samples_incomplete: 0,
        discards_sent: 3,
        discards_dropped: 4,
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

pub(crate) fn capture() -> Capture {
    let request = CaptureRequest { drop: true, reasons: vec!["no-route".to_owned()], snap_bytes: Some(96), ..CaptureRequest::default() };
    Capture {
        number: 7,
        author: "ana".to_owned(),
        since: Timestamp::from_unix_ms(0),
        request,
        captured_packets: 5,
        captured_bytes: 700,
        lost_packets: 1,
    }
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
        if let Mood::Large(count) = self.mood {
            return Ok(Interfaces { interfaces: (1..=count).map(|index| interface(&format!("i{index}"), index)).collect() });
        }
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

    fn bridge_domains(&self) -> Result<BridgeDomains, ApiError> {
        let member = |interface: &str, bvi| BridgeMember { interface: interface.to_owned(), bvi, group: u8::from(!bvi), can_send: true };
        let of = |name: &str| BridgeDomain {
            name: name.to_owned(),
            members: vec![member("wan", false), member("loop0", true)],
            learn: true,
            age_seconds: Some(300),
            stations: 2,
            station_limit: 100,
            moved: 7,
            ..BridgeDomain::default()
        };
        Ok(BridgeDomains { bridges: vec![of("bd1"), of("bd2")] })
    }

    fn l2fib_where(&self, query: &L2fibQuery) -> Result<L2fib, ApiError> {
        let station = |bridge: &str, last: u8| L2Station {
            bridge: bridge.to_owned(),
            mac: format!("02:00:00:00:00:{last:02x}"),
            interface: "wan".to_owned(),
            is_static: last == 1,
            age: (last != 1).then_some(4),
        };
        Ok(query.narrow(L2fib { stations: (1..=5).flat_map(|last| [station("bd2", last), station("bd1", last)]).collect() }))
    }

    fn pseudowires(&self) -> Result<Pseudowires, ApiError> {
        let path = PathReply {
            next_hop: None,
            interface: Some("lan & co".to_owned()),
            weight: 1,
            buckets: 1,
            adjacency_number: 9,
            adjacency: Adjacency::Complete,
            mac: Some("02:00:00:00:00:09".to_owned()),
            mtu: Some(1500),
            labels: vec![100, 2000],
        };
        let pseudowire = |interface: &str, paths| Pseudowire {
            interface: interface.to_owned(),
            local_label: 1000,
            remote_label: 2000,
            kind: "tagged".to_owned(),
            vlan: Some(7),
            control_word: true,
            link: UpDown::Up,
            paths,
        };
        Ok(Pseudowires { pseudowires: vec![pseudowire("wan", vec![path]), pseudowire("lan & co", Vec::new())] })
    }

    fn vxlan_tunnels(&self) -> Result<VxlanTunnels, ApiError> {
        let tunnel = |interface: &str, route: Option<Route>| VxlanTunnel {
            interface: interface.to_owned(),
            index: 9,
            local: "192.0.2.1".parse().unwrap(),
            remote: "198.51.100.1".parse().unwrap(),
            vni: 16_777_215,
            admin: UpDown::Up,
            mtu: 1500,
            bridge: route.as_ref().map(|_| "bd1".to_owned()),
            l2xc: None,
            route,
        };
        let route = self.routes()?.routes.into_iter().next();
        Ok(VxlanTunnels { tunnels: vec![tunnel("wan", route), tunnel("lan & co", None)] })
    }

    fn bonds(&self) -> Result<Bonds, ApiError> {
        let end = |port, state: &[&str]| LacpEnd {
            system: "02:00:00:00:00:09".to_owned(),
            system_priority: 32768,
            key: 7,
            port,
            port_priority: 32768,
            state: state.iter().map(|word| (*word).to_owned()).collect(),
        };
        let lacp = LacpPort {
            receive: "current".to_owned(),
            mux: "distributing".to_owned(),
            selected: true,
            actor: end(1, &["active", "aggregation"]),
            partner: Some(end(2, &["active"])),
            received: 10,
            sent: 11,
            expired: 1,
            partner_changes: 2,
        };
        let member =
            BondMember { interface: "lan & co".to_owned(), link: UpDown::Up, collecting: true, distributing: false, lacp: Some(lacp) };
        let bond = |interface: &str, members| Bond {
            interface: interface.to_owned(),
            mode: "lacp".to_owned(),
            load_balance: Some("l34".to_owned()),
            link: UpDown::Up,
            speed: 20_000_000_000,
            members,
        };
        Ok(Bonds { bonds: vec![bond("wan", vec![member]), bond("lan & co", Vec::new())] })
    }

    fn mpls_fib(&self, label: Option<u32>, after: Option<u32>, most: usize) -> Result<MplsFib, ApiError> {
        let entry =
            |number: u32| LabelReply { label: number, ttl_mode: LabelMode::Pipe, lookup: Some(number % 2), group: None, paths: vec![] };
        let wanted = |number: &u32| label.is_none_or(|label| label == *number) && after.is_none_or(|after| *number > after);
        Ok(MplsFib { labels: (16..20).filter(wanted).take(most).map(entry).collect() })
    }

    fn memif(&self) -> Result<Memifs, ApiError> {
        let port = |interface: &str, role| Memif {
            interface: interface.to_owned(),
            socket: "/run/memif.sock".to_owned(),
            id: 7,
            role,
            zero_copy: role == MemifRole::Slave,
            secret: true,
            link: UpDown::Up,
            connects: 2,
            peer: Some("a peer".to_owned()),
            peer_interface: None,
            queues: 2,
            rx_rings: 1,
            tx_rings: 1,
            ring_size: 1024,
            buffer_bytes: (role == MemifRole::Slave).then_some(2048),
            region_bytes: vec![4096, 65536],
            last_disconnect: Some("it left".to_owned()),
            disconnects: vec![MemifDisconnects { reason: "peer_left".to_owned(), sentence: "it left".to_owned(), count: 1 }],
        };
        Ok(Memifs { ports: vec![port("wan", MemifRole::Master), port("lan & co", MemifRole::Slave)] })
    }

    fn acls_where(&self, query: &AclQuery) -> Result<Acls, ApiError> {
        let term = |term, action| AclTerm {
            acl: "web".to_owned(),
            term,
            action,
            asks: "tcp destination-port 443".to_owned(),
            description: None,
            packets: 7,
            bytes: 700,
        };
        let terms = vec![term(0, AclAction::Permit), term(1, AclAction::Deny)];
        let behind = |term: &AclTerm| query.after.as_ref().is_none_or(|after| AclTermKey::from(term) > *after);
        let binding = AclBinding {
            interface: "wan".to_owned(),
            direction: AclDirection::Input,
            acls: vec!["web".to_owned()],
            permitted: 7,
            denied: 7,
            unmatched: 1,
            rules: 2,
            memory_bytes: 4096,
        };
        let bindings = if query.after.is_none() { vec![binding] } else { Vec::new() };
        Ok(Acls { bindings, terms: terms.into_iter().filter(behind).take(query.most).collect() })
    }

    fn runtime(&self) -> Result<Runtime, ApiError> {
        match self.mood {
            Mood::Panics => panic!("as the test asks"),
            Mood::Slow(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
            _ => {}
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
        if let Mood::Large(count) = self.mood {
            let other = |number: u32| Neighbor { address: std::net::Ipv4Addr::from(number).into(), ..neighbor.clone() };
            return Ok(Neighbors { neighbors: (0..count).rev().map(other).collect(), ..Neighbors::default() });
        }
        Ok(Neighbors { neighbors: vec![neighbor], ..Neighbors::default() })
    }

    fn routes(&self) -> Result<Routes, ApiError> {
        if let Mood::Large(count) = self.mood {
            // 20,000 in each table.
            let prefix = |number: u32| format!("10.{}.{}.0/24", number % 20_000 / 256, number % 20_000 % 256);
            let route = |number: u32| route(&prefix(number), number / 20_000);
            return Ok(Routes { routes: (0..count).rev().map(route).collect() });
        }
        Ok(Routes { routes: vec![route("0.0.0.0/0", 0), route("10.0.0.0/8", 0), route("10.1.0.0/16", 0), route("10.0.0.0/8", 7)] })
    }

    fn adjacencies_where(&self, query: &AdjacencyQuery) -> Result<Adjacencies, ApiError> {
        let adjacency = |number: u32, interface: Option<&str>| AdjacencyReply {
            number,
            kind: if interface.is_some() { AdjacencyKind::Neighbor } else { AdjacencyKind::Blackhole },
            state: if interface.is_some() { Adjacency::Complete } else { Adjacency::Drop },
            interface: interface.map(str::to_owned),
            address: interface.and_then(|_| "192.0.2.9".parse().ok()),
            mac: interface.map(|_| "02:00:00:00:00:09".to_owned()),
            source_mac: interface.map(|_| "02:00:00:00:00:01".to_owned()),
            mtu: interface.map(|_| 1500),
            labels: vec![],
            groups: number,
        };
        let all = vec![adjacency(7, Some("wan")), adjacency(1, None), adjacency(9, Some("lan & co"))];
        Ok(query.narrow(Adjacencies { adjacencies: all }))
    }

    fn sflow(&self) -> Result<Sflow, ApiError> {
        Ok(sflow())
    }

    fn ipfix(&self) -> Result<Ipfix, ApiError> {
        Ok(ipfix())
    }

    fn flows_where(&self, query: &FlowQuery) -> Result<Flows, ApiError> {
        let mut all = flows();
        all.flows.retain(|it| query.interface.is_none() || it.input == query.interface || it.output == query.interface);
        all.flows.truncate(query.most);
        Ok(all)
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

    fn capture(&self, request: &CaptureRequest, _caller: &Caller) -> Result<CaptureStream, ApiError> {
        let (sink, stream) = CaptureStream::new(7);
        let pieces = request.packets.unwrap_or(2);
        std::thread::spawn(move || {
            for number in 0..pieces {
                let mut piece = vec![number as u8; 1000];
                while let Err(NotTaken::Later(same)) = sink.offer(piece) {
                    piece = same;
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            // A capture of 99 waits for somebody who ends it.
            while pieces == 99 && !sink.is_gone() && !sink.is_enough() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(stream)
    }

    fn captures(&self) -> Result<Captures, ApiError> {
        Ok(Captures { captures: vec![capture()], most: 8 })
    }

    fn capture_end(&self, number: u64) -> Result<Capture, ApiError> {
        let unknown = || ApiError::new(ErrorCode::NotFound, format!("no capture {number}"), "");
        if matches!(number, 3 | 7) { Ok(capture()) } else { Err(unknown()) }
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

    fn buffers(&self) -> Result<Buffers, ApiError> {
        let pool = BufferPool { pool: 0, buffers: 16384, free: 16000, buffer_bytes: 2496, hugepages: true, failures: 3 };
        Ok(Buffers { pools: vec![pool] })
    }

    fn fib_summary(&self) -> Result<FibSummary, ApiError> {
        let routes = vec![RouteCount { source: RouteSource::Static, count: 3 }, RouteCount { source: RouteSource::Special, count: 1 }];
        let table = FibTable { table: 0, vrf: None, family: Family::Ipv4, routes, memory_bytes: 0 };
        Ok(FibSummary { tables: vec![table], adjacencies: 2, groups: 1, memory_bytes: 4096 })
    }

    fn config_dump(&self) -> Result<ConfigDump, ApiError> {
        Ok(ConfigDump { yaml: "interfaces: {}\n".to_owned() })
    }

    fn config_schema(&self) -> Result<serde_json::Value, ApiError> {
        Ok(serde_json::json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" }))
    }

    fn config_check(&self, file: &ConfigText) -> Result<ConfigChecked, ApiError> {
        let findings = if file.yaml.starts_with("bad") { vec![finding(file.file_name())] } else { vec![] };
        Ok(ConfigChecked::new(findings))
    }

    fn config_plan(&self, file: &ConfigText) -> Result<ConfigPlan, ApiError> {
        if file.yaml.starts_with("bad") {
            return Err(ApiError::invalid(vec![finding(file.file_name())]));
        }
        Ok(ConfigPlan { steps: vec![step()], without_device: vec!["wan".to_owned()], ..ConfigPlan::default() })
    }

    fn config_diff(&self, request: &DiffRequest) -> Result<ConfigDiff, ApiError> {
        Ok(ConfigDiff { diff: format!("{request:?}") })
    }

    fn config_apply(&self, request: &ApplyRequest, caller: &Caller) -> Result<Applied, ApiError> {
        match self.mood {
            Mood::Locked => return Err(ApiError::locked(lock())),
            Mood::Full => return Err(ApiError::no_room("No space left on device")),
            _ if request.yaml.starts_with("bad") => return Err(ApiError::invalid(vec![finding(request.file_name())])),
            _ => self.changed(request, caller),
        }
        let confirm_by = request.confirm_seconds.map(|seconds| Timestamp::from_unix_ms(u64::from(seconds) * 1000));
        Ok(Applied { revision: 17, steps: vec![step()], confirm_by, ..Applied::default() })
    }

    fn config_confirm(&self, caller: &Caller) -> Result<Confirmed, ApiError> {
        self.changed("confirm", caller);
        Ok(Confirmed { revision: 17 })
    }

    fn config_rollback(&self, request: &RollbackRequest, caller: &Caller) -> Result<Applied, ApiError> {
        self.changed(request, caller);
        Ok(Applied { revision: 18, ..Applied::default() })
    }

    fn config_history(&self, limit: usize, before: Option<u64>) -> Result<History, ApiError> {
        let newest = before.unwrap_or(8).min(8);
        let revisions = (1..newest).rev().take(limit).map(revision).collect();
        let lock = (self.mood == Mood::Locked).then(lock);
        Ok(History { revisions, lock, next: None })
    }

    fn config_revision(&self, number: u64) -> Result<RevisionText, ApiError> {
        if (1..8).contains(&number) {
            return Ok(RevisionText { revision: revision(number), yaml: "interfaces: {}\n".to_owned() });
        }
        Err(ApiError::unknown("revision", &number.to_string(), ["1", "7"]))
    }

    fn sflow_patch(&self, patch: &SflowPatch, caller: &Caller) -> Result<Applied, ApiError> {
        self.changed(patch, caller);
        Ok(Applied { revision: 19, ..Applied::default() })
    }

    fn interface_patch(&self, name: &str, patch: &InterfacePatch, caller: &Caller) -> Result<Applied, ApiError> {
        self.changed((name, patch), caller);
        Ok(Applied { revision: 20, ..Applied::default() })
    }

    fn events(&self) -> Option<EventBus> {
        Some(self.events.clone())
    }
}

pub(crate) fn finding(file: &str) -> Finding {
    Finding {
        severity: FindingSeverity::Error,
        file: file.to_owned(),
        line: 3,
        column: 10,
        width: 3,
        path: "interfaces.xe0.mtu".to_owned(),
        message: "`abc` is not a whole number".to_owned(),
        help: "for example `mtu: 1500`".to_owned(),
        rendered: format!("error: `abc` is not a whole number\n  --> {file}:3:10"),
    }
}

pub(crate) fn step() -> ConfigStep {
    ConfigStep {
        group: StepGroup::Sync,
        kind: "set-mtu".to_owned(),
        object: "wan".to_owned(),
        text: "interface wan: mtu 1500 -> 9000".to_owned(),
        disturbs: None,
    }
}

pub(crate) fn revision(number: u64) -> Revision {
    Revision {
        revision: number,
        time: Timestamp::from_unix_ms(number * 1000),
        author: "ana".to_owned(),
        comment: String::new(),
        confirmed: true,
        running: number == 7,
        lines: 3,
        lines_added: 1,
        lines_removed: 0,
    }
}

pub(crate) fn lock() -> ConfigLock {
    ConfigLock {
        reason: LockReason::ConfirmPending,
        author: "ana".to_owned(),
        since: Timestamp::from_unix_ms(0),
        uid: Some(1000),
        pid: Some(4711),
        address: None,
        confirm_by: Some(Timestamp::from_unix_ms(300_000)),
    }
}

/// A row of the table with its parameters and a body that it takes.
pub(crate) fn fitting(endpoint: &Endpoint) -> (String, &'static str) {
    let path = endpoint.path.replace("{name}", "lan%20%26%20co").replace("{revision}", "3").replace("{number}", "7");
    let body = match (endpoint.method, endpoint.path) {
        ("PATCH", "/v1/sflow") => r#"{"sampling_rate": 100}"#,
        ("PATCH", _) => r#"{"mtu": 9000}"#,
        (_, "/v1/pcap") if endpoint.body.is_some() => r#"{"rx": true}"#,
        (_, "/v1/config/diff") => r#"{"revision": 3}"#,
        (_, path) if path.starts_with("/v1/config/") && endpoint.body.is_some() && !path.ends_with("rollback") => r#"{"yaml": "a: 1"}"#,
        _ if endpoint.body.is_some() => "{}",
        _ => "",
    };
    (path, body)
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

/// Asks over plain TCP, with a token or without.
pub(crate) fn plain_tcp(address: SocketAddr, token: Option<&str>, method: &str, target: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n{token}Content-Length: {length}\r\n\r\n{body}");
    let _ = stream.write_all(request.as_bytes());
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let status = reply.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no status in {reply:?}"));
    let (head, text) = reply.split_once("\r\n\r\n").unwrap();
    (status, text.to_owned(), head.to_ascii_lowercase())
}

/// Settings with a plain listener on loopback, and the tokens `look` and `do`.
pub(crate) fn with_tcp(place: &Place) -> ServerSettings {
    let mut settings = ServerSettings::new(place.socket());
    settings.listeners.push(TcpListen { address: "127.0.0.1:0".parse().unwrap(), tls: None });
    settings.tokens = vec![Token::of("monitor", "look", Role::ReadOnly), Token::of("robot", "do", Role::Admin)];
    settings
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
