//! A router that answers from values, and a place for its socket.

#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod values;
mod wires;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use weir_api::*;

pub(crate) use self::values::*;
pub(crate) use self::wires::*;

/// A directory that goes away with the test.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("weir-api-{}-{number}", std::process::id()));
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
        Self {
            mood,
            events,
            changes: Mutex::default(),
            armed: Mutex::default(),
            cleared: Mutex::default(),
        }
    }

    fn changed(&self, what: impl std::fmt::Debug, caller: &Caller) {
        self.changes
            .lock()
            .unwrap()
            .push((format!("{what:?}"), caller.clone()));
    }

    /// Whether nothing at all was changed.
    pub(crate) fn is_untouched(&self) -> bool {
        self.changes.lock().unwrap().is_empty()
            && self.armed.lock().unwrap().is_empty()
            && self.cleared.lock().unwrap().is_empty()
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

    fn linux(&self) -> Result<weir_api::Linux, ApiError> {
        Ok(weir_api::Linux {
            namespace: Some("dataplane".to_owned()),
            interfaces: vec![weir_api::LinuxInterface {
                interface: "wan".to_owned(),
                name: "wan0".to_owned(),
                index: Some(3),
                trouble: None,
                followed_table: None,
                followed_addresses: Vec::new(),
                punt: vec![weir_api::LinuxPunt {
                    punt_class: "bgp".to_owned(),
                    limit: 50_000,
                    passed: 71,
                    policed: 72,
                }],
            }],
            feed: Some(weir_api::LinuxFeed {
                updates: 73,
                overruns: 74,
                resyncs: 75,
                refused: vec![weir_api::LinuxCount {
                    reason: "no-interface".to_owned(),
                    count: 76,
                }],
                ..weir_api::LinuxFeed::default()
            }),
            fpm: Some(weir_api::LinuxFpm {
                address: "127.0.0.1:2620".to_owned(),
                connected: true,
                sessions: 77,
                updates: 78,
                objects: 79,
                parked: 80,
                ..weir_api::LinuxFpm::default()
            }),
            bmp: Some(weir_api::LinuxBmp {
                address: "127.0.0.1:11019".to_owned(),
                sessions: vec![weir_api::LinuxBmpSession {
                    address: "127.0.0.1:40000".to_owned(),
                    name: "edge".to_owned(),
                    messages: 85,
                    peers: vec![weir_api::LinuxBmpPeer {
                        address: [192, 0, 2, 2].into(),
                        as_number: 65_002,
                        table: "post-policy".to_owned(),
                    }],
                }],
                paths: 86,
                most_paths: 4_000_000,
                prefixes: 87,
                ..weir_api::LinuxBmp::default()
            }),
            audit: weir_api::LinuxAudit {
                audits: 81,
                healed: 82,
                stale: 83,
                routes: 84,
                set_back: 96,
            },
            convergence: vec![weir_api::LinuxConvergence {
                source: weir_api::RouteSource::Kernel,
                updates: 9,
                p50_us: Some(1000),
                p99_us: None,
                buckets: [(1000, 6), (2000, 2)]
                    .map(|(at_most_us, updates)| weir_api::LinuxDelay {
                        at_most_us,
                        updates,
                    })
                    .to_vec(),
            }],
            ..weir_api::Linux::default()
        })
    }

    fn system(&self) -> Result<System, ApiError> {
        Ok(System::of(vec![Problem {
            severity: ProblemSeverity::Degraded,
            component: Component::Interface,
            object: "wan".to_owned(),
            message: "there is no network device `eth1`".to_owned(),
        }]))
    }

    fn interfaces(&self) -> Result<Interfaces, ApiError> {
        if let Mood::Large(count) = self.mood {
            return Ok(Interfaces {
                interfaces: (1..=count)
                    .map(|index| interface(&format!("i{index}"), index))
                    .collect(),
            });
        }
        Ok(Interfaces {
            interfaces: vec![interface("wan", 1), interface("lan & co", 2)],
        })
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
            counters: vec![HardwareCounter {
                name: "rx_dropped".to_owned(),
                value: 5,
                source: CounterSource::Xdp,
            }],
        };
        Ok(Hardware {
            ports: vec![port("wan"), port("lan & co")],
        })
    }

    fn rx_placement(&self) -> Result<RxPlacement, ApiError> {
        let queue = |interface: &str, queue| RxQueuePlacement {
            interface: interface.to_owned(),
            queue,
            worker: 0,
            core: Some(1),
        };
        Ok(RxPlacement {
            queues: vec![queue("wan", 0), queue("wan", 1), queue("lan & co", 0)],
        })
    }

    fn bridge_domains(&self) -> Result<BridgeDomains, ApiError> {
        let member = |interface: &str, bvi| BridgeMember {
            interface: interface.to_owned(),
            bvi,
            group: u8::from(!bvi),
            can_send: true,
        };
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
        Ok(BridgeDomains {
            bridges: vec![of("bd1"), of("bd2")],
        })
    }

    fn l2fib_where(&self, query: &L2fibQuery) -> Result<L2fib, ApiError> {
        let station = |bridge: &str, last: u8| L2Station {
            bridge: bridge.to_owned(),
            mac: format!("02:00:00:00:00:{last:02x}"),
            interface: "wan".to_owned(),
            is_static: last == 1,
            age: (last != 1).then_some(4),
        };
        Ok(query.narrow(L2fib {
            stations: (1..=5)
                .flat_map(|last| [station("bd2", last), station("bd1", last)])
                .collect(),
        }))
    }

    fn features(&self) -> Result<Features, ApiError> {
        let features = |interface: &str| InterfaceFeatures {
            interface: interface.to_owned(),
            arcs: vec![FeatureArc {
                arc: "ip4-input".to_owned(),
                order: vec!["policer-input".to_owned(), "acl-input".to_owned()],
                attached: vec!["acl-input".to_owned()],
            }],
            policers: vec![Policer {
                direction: "input".to_owned(),
                rate: 8_000,
                burst: 1_500,
                conformed_packets: 1,
                conformed_bytes: 2,
                dropped_packets: 3,
                dropped_bytes: 4,
            }],
        };
        Ok(Features {
            interfaces: vec![features("wan"), features("lan & co")],
        })
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
            push: None,
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
        Ok(Pseudowires {
            pseudowires: vec![
                pseudowire("wan", vec![path]),
                pseudowire("lan & co", Vec::new()),
            ],
        })
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
        Ok(VxlanTunnels {
            tunnels: vec![tunnel("wan", route), tunnel("lan & co", None)],
        })
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
        let member = BondMember {
            interface: "lan & co".to_owned(),
            link: UpDown::Up,
            collecting: true,
            distributing: false,
            lacp: Some(lacp),
        };
        let bond = |interface: &str, members| Bond {
            interface: interface.to_owned(),
            mode: "lacp".to_owned(),
            load_balance: Some("l34".to_owned()),
            link: UpDown::Up,
            speed: 20_000_000_000,
            members,
        };
        Ok(Bonds {
            bonds: vec![bond("wan", vec![member]), bond("lan & co", Vec::new())],
        })
    }

    fn mpls_fib(
        &self,
        label: Option<u32>,
        after: Option<u32>,
        most: usize,
    ) -> Result<MplsFib, ApiError> {
        let entry = |number: u32| LabelReply {
            label: number,
            source: LabelSource::Static,
            meaning: None,
            ttl_mode: LabelMode::Pipe,
            lookup: Some(number % 2),
            vrf: (!number.is_multiple_of(2)).then(|| "blue".to_owned()),
            group: None,
            paths: vec![],
        };
        let wanted = |number: &u32| {
            label.is_none_or(|label| label == *number) && after.is_none_or(|after| *number > after)
        };
        Ok(MplsFib {
            labels: (16..20).filter(wanted).take(most).map(entry).collect(),
        })
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
            disconnects: vec![MemifDisconnects {
                reason: "peer_left".to_owned(),
                sentence: "it left".to_owned(),
                count: 1,
            }],
        };
        Ok(Memifs {
            ports: vec![
                port("wan", MemifRole::Master),
                port("lan & co", MemifRole::Slave),
            ],
        })
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
        let behind = |term: &AclTerm| {
            query
                .after
                .as_ref()
                .is_none_or(|after| AclTermKey::from(term) > *after)
        };
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
        let bindings = if query.after.is_none() {
            vec![binding]
        } else {
            Vec::new()
        };
        Ok(Acls {
            bindings,
            terms: terms.into_iter().filter(behind).take(query.most).collect(),
        })
    }

    fn runtime(&self) -> Result<Runtime, ApiError> {
        match self.mood {
            Mood::Panics => panic!("as the test asks"),
            Mood::Slow(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
            _ => {}
        }
        let nodes = vec![
            NodeRuntime::new("eth-input", 4, 1000, 9000),
            NodeRuntime::new("ip4-local", 0, 0, 0),
        ];
        let worker = WorkerRuntime {
            worker: 0,
            core: None,
            idle: IdleMode::Sleep,
            turns: 9,
            busy_turns: 4,
            clocks: 10_000,
            busy_clocks: 9500,
            busy: 0.25,
            nodes,
        };
        Ok(Runtime {
            tsc_mhz: 2600.0,
            seconds: 1.5,
            workers: vec![worker],
        })
    }

    fn errors(&self) -> Result<Errors, ApiError> {
        Ok(Errors {
            errors: vec![
                drop_counter(0, "wan", 2),
                drop_counter(1, "wan", 3),
                drop_counter(1, "lan & co", 7),
            ],
        })
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
            let other = |number: u32| Neighbor {
                address: std::net::Ipv4Addr::from(number).into(),
                ..neighbor.clone()
            };
            return Ok(Neighbors {
                neighbors: (0..count).rev().map(other).collect(),
                refused: 1,
                evicted: 7,
            });
        }
        Ok(Neighbors {
            neighbors: vec![neighbor],
            ..Neighbors::default()
        })
    }

    fn routes(&self) -> Result<Routes, ApiError> {
        if let Mood::Large(count) = self.mood {
            // 20,000 in each table.
            let prefix = |number: u32| {
                format!(
                    "10.{}.{}.0/24",
                    number % 20_000 / 256,
                    number % 20_000 % 256
                )
            };
            let route = |number: u32| route(&prefix(number), number / 20_000);
            return Ok(Routes {
                routes: (0..count).rev().map(route).collect(),
            });
        }
        Ok(Routes {
            routes: vec![
                route("0.0.0.0/0", 0),
                route("10.0.0.0/8", 0),
                route("10.1.0.0/16", 0),
                route("10.0.0.0/8", 7),
            ],
        })
    }

    fn adjacencies_where(&self, query: &AdjacencyQuery) -> Result<Adjacencies, ApiError> {
        let adjacency = |number: u32, interface: Option<&str>| AdjacencyReply {
            number,
            kind: if interface.is_some() {
                AdjacencyKind::Neighbor
            } else {
                AdjacencyKind::Blackhole
            },
            state: if interface.is_some() {
                Adjacency::Complete
            } else {
                Adjacency::Drop
            },
            interface: interface.map(str::to_owned),
            address: interface.and_then(|_| "192.0.2.9".parse().ok()),
            table: None,
            vrf: None,
            mac: interface.map(|_| "02:00:00:00:00:09".to_owned()),
            source_mac: interface.map(|_| "02:00:00:00:00:01".to_owned()),
            mtu: interface.map(|_| 1500),
            labels: vec![],
            groups: number,
        };
        let all = vec![
            adjacency(7, Some("wan")),
            adjacency(1, None),
            adjacency(9, Some("lan & co")),
        ];
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
        all.flows.retain(|it| {
            query.interface.is_none() || it.input == query.interface || it.output == query.interface
        });
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

    fn capture(
        &self,
        request: &CaptureRequest,
        _caller: &Caller,
    ) -> Result<CaptureStream, ApiError> {
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
        Ok(Captures {
            captures: vec![capture()],
            most: 8,
        })
    }

    fn capture_end(&self, number: u64) -> Result<Capture, ApiError> {
        let unknown = || ApiError::new(ErrorCode::NotFound, format!("no capture {number}"), "");
        if matches!(number, 3 | 7) {
            Ok(capture())
        } else {
            Err(unknown())
        }
    }

    fn totals(&self) -> Result<Totals, ApiError> {
        let drops = BTreeMap::from([("ttl-expired".to_owned(), 2), ("tx-full".to_owned(), 1)]);
        Ok(Totals {
            packets_in: 10,
            packets_out: 8,
            originated: 2,
            replicated: 0,
            consumed: 1,
            held: 0,
            drops,
        })
    }

    fn config(&self) -> Result<serde_json::Value, ApiError> {
        let padding = if let Mood::Talks(bytes) = self.mood {
            "x".repeat(bytes)
        } else {
            String::new()
        };
        Ok(serde_json::json!({ "interfaces": { "wan": { "mtu": 1500 } }, "padding": padding }))
    }

    fn clear(&self, what: Clear) -> Result<(), ApiError> {
        self.cleared.lock().unwrap().push(what);
        Ok(())
    }

    fn buffers(&self) -> Result<Buffers, ApiError> {
        let pool = BufferPool {
            pool: 0,
            buffers: 16384,
            free: 16000,
            buffer_bytes: 2496,
            hugepages: true,
            failures: 3,
        };
        Ok(Buffers { pools: vec![pool] })
    }

    fn fib_summary(&self) -> Result<FibSummary, ApiError> {
        let routes = vec![
            RouteCount {
                source: RouteSource::Static,
                count: 3,
            },
            RouteCount {
                source: RouteSource::Special,
                count: 1,
            },
        ];
        let table = FibTable {
            table: 0,
            vrf: None,
            family: Family::Ipv4,
            routes,
            memory_bytes: 0,
        };
        Ok(FibSummary {
            tables: vec![table],
            adjacencies: 2,
            groups: 1,
            memory_bytes: 4096,
        })
    }

    fn config_dump(&self) -> Result<ConfigDump, ApiError> {
        Ok(ConfigDump {
            yaml: "interfaces: {}\n".to_owned(),
        })
    }

    fn config_schema(&self) -> Result<serde_json::Value, ApiError> {
        Ok(
            serde_json::json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" }),
        )
    }

    fn config_check(&self, file: &ConfigText) -> Result<ConfigChecked, ApiError> {
        let findings = if file.yaml.starts_with("bad") {
            vec![finding(file.file_name())]
        } else {
            vec![]
        };
        Ok(ConfigChecked::new(findings))
    }

    fn config_plan(&self, file: &ConfigText) -> Result<ConfigPlan, ApiError> {
        if file.yaml.starts_with("bad") {
            return Err(ApiError::invalid(vec![finding(file.file_name())]));
        }
        Ok(ConfigPlan {
            steps: vec![step()],
            without_device: vec!["wan".to_owned()],
            ..ConfigPlan::default()
        })
    }

    fn config_diff(&self, request: &DiffRequest) -> Result<ConfigDiff, ApiError> {
        Ok(ConfigDiff {
            diff: format!("{request:?}"),
        })
    }

    fn config_apply(&self, request: &ApplyRequest, caller: &Caller) -> Result<Applied, ApiError> {
        match self.mood {
            Mood::Locked => return Err(ApiError::locked(lock())),
            Mood::Full => return Err(ApiError::no_room("No space left on device")),
            _ if request.yaml.starts_with("bad") => {
                return Err(ApiError::invalid(vec![finding(request.file_name())]));
            }
            _ => self.changed(request, caller),
        }
        let confirm_by = request
            .confirm_seconds
            .map(|seconds| Timestamp::from_unix_ms(u64::from(seconds) * 1000));
        Ok(Applied {
            revision: 17,
            steps: vec![step()],
            confirm_by,
            ..Applied::default()
        })
    }

    fn config_confirm(&self, caller: &Caller) -> Result<Confirmed, ApiError> {
        self.changed("confirm", caller);
        Ok(Confirmed { revision: 17 })
    }

    fn config_rollback(
        &self,
        request: &RollbackRequest,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        self.changed(request, caller);
        Ok(Applied {
            revision: 18,
            ..Applied::default()
        })
    }

    fn config_history(&self, limit: usize, before: Option<u64>) -> Result<History, ApiError> {
        let newest = before.unwrap_or(8).min(8);
        let revisions = (1..newest).rev().take(limit).map(revision).collect();
        let lock = (self.mood == Mood::Locked).then(lock);
        Ok(History {
            revisions,
            lock,
            next: None,
        })
    }

    fn config_revision(&self, number: u64) -> Result<RevisionText, ApiError> {
        if (1..8).contains(&number) {
            return Ok(RevisionText {
                revision: revision(number),
                yaml: "interfaces: {}\n".to_owned(),
            });
        }
        Err(ApiError::unknown(
            "revision",
            &number.to_string(),
            ["1", "7"],
        ))
    }

    fn routes_change(
        &self,
        changes: &weir_api::RouteChanges,
        caller: &Caller,
    ) -> Result<weir_api::RoutesChanged, ApiError> {
        self.changed(changes, caller);
        Ok(weir_api::RoutesChanged {
            set: changes.set.len() as u64,
            ..weir_api::RoutesChanged::default()
        })
    }

    fn sflow_patch(&self, patch: &SflowPatch, caller: &Caller) -> Result<Applied, ApiError> {
        self.changed(patch, caller);
        Ok(Applied {
            revision: 19,
            ..Applied::default()
        })
    }

    fn interface_patch(
        &self,
        name: &str,
        patch: &InterfacePatch,
        caller: &Caller,
    ) -> Result<Applied, ApiError> {
        self.changed((name, patch), caller);
        Ok(Applied {
            revision: 20,
            ..Applied::default()
        })
    }

    fn why(&self, request: &weir_api::WhyRequest) -> Result<weir_api::Why, ApiError> {
        Ok(weir_api::Why {
            interface: request.interface.clone().unwrap_or_default(),
            interface_from_route: request.interface.is_none(),
            outcome: weir_api::WhyOutcome::Dropped,
            reason: Some("no-route".to_owned()),
            meaning: None,
            acl_terms: Vec::new(),
            urpf: None,
            source_route: None,
            route: None,
            frames: Vec::new(),
            sampling_rate: None,
            metered: false,
            steps: Vec::new(),
        })
    }

    fn events(&self) -> Option<EventBus> {
        Some(self.events.clone())
    }
}
