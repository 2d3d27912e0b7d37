//! The values that the router of these tests answers with.

use weir_api::*;

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
        encapsulation: None,
        tag_rewrite: None,
        bridge_domain: None,
        mpls: false,
        urpf: None,
        sflow: true,
        rx: Traffic {
            packets: u64::MAX,
            bytes: 6400,
            unicast: 98,
            multicast: 1,
            broadcast: 1,
        },
        tx: Traffic::default(),
        rx_errors: 0,
        tx_errors: 3,
        drops: 2,
        drops_by: vec![InterfaceDrop {
            node: "ip4-input".to_owned(),
            reason: "ttl-expired".to_owned(),
            count: 2,
        }],
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
        push: None,
    };
    let group = Some(RouteGroup {
        number: 3,
        routes: 4,
        buckets: 1,
        resilient: false,
    });
    let vrf = (table == 7).then(|| "red".to_owned());
    Route {
        table,
        vrf,
        prefix: prefix.parse().unwrap(),
        source: RouteSource::Static,
        next_hops: vec![],
        candidates: vec![],
        group,
        paths: vec![path],
    }
}

pub(crate) fn ipfix() -> Ipfix {
    let load = |flows| FlowLoad {
        flows,
        packets: 3 * flows,
        octets: 300 * flows,
    };
    let tcp = IpfixCollector {
        host: "192.0.2.9".into(),
        address: Some([192, 0, 2, 9].into()),
        port: 4739,
        transport: "tcp".into(),
        version: "ipfix".into(),
        namespace: Some("mgmt".into()),
        source: Some([192, 0, 2, 1].into()),
        dscp: 16,
        dev: Some("vrf-mgmt".into()),
        table: Some("red".into()),
        through_host: true,
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
    };
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
        interfaces: vec![IpfixInterface {
            sampling_rate: 1,
            interface: "wan".into(),
            index: 1,
            direction: SflowDirection::Both,
            records: "router".into(),
        }],
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
        // One address, spoken to in two ways.
        collectors: vec![
            IpfixCollector {
                transport: "udp".into(),
                not_sent: load(0),
                ..tcp.clone()
            },
            tcp,
        ],
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
        source: Some("192.0.2.1".into()),
        destination: Some("198.51.100.2".into()),
        ethertype: None,
        protocol: Some(6),
        source_port: Some(49_152),
        destination_port: Some(443),
        input: Some("wan".into()),
        output: None,
        forwarding_status: 131,
        forwarding_status_name: "dropped: unroutable".into(),
        next_hop: None,
        bgp_next_hop: None,
        vlan: Some(100),
        customer_vlan: None,
        label: None,
        traffic_class: None,
        packets: 3,
        octets: 300,
        packets_per_second: 1,
        octets_per_second: 120,
        start: Timestamp::from_unix_ms(1_700_000_000_000),
        end: Timestamp::from_unix_ms(1_700_000_002_500),
        tcp_flags: 0x1b,
    };
    Flows {
        flows: vec![flow],
        groups: Vec::new(),
        matched: 1,
    }
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
            table: Some("red".to_owned()),
            through_host: true,
            drops: true,
            announced: true,
            sent: 7,
            errors: 1,
            last_error: Some("connection refused".to_owned()),
        }],
        discovery: Some(SflowDiscovery {
            domain: Some("example".to_owned()),
            trouble: Some("it refuses".to_owned()),
        }),
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
        workers: vec![SflowWorker {
            worker: 0,
            samples_taken: 10,
            samples_sent: 9,
            samples_dropped: 1,
        }],
        interfaces: vec![SflowInterface {
            interface: "wan".to_owned(),
            index: 1,
            reported_index: 7,
            sampling_rate: 1000,
            direction: SflowDirection::Rx,
            header_bytes: 128,
            polling_interval: 20,
            pool: 10_000,
            samples: 10,
            dropped: 1,
            workers: vec![SflowShare {
                worker: 0,
                pool: 10_000,
                samples: 10,
                dropped: 1,
            }],
        }],
        drops: vec![SflowDrop {
            interface: Some("wan".to_owned()),
            node: "ip4-lookup".to_owned(),
            reason: "no-route".to_owned(),
            code: 0,
            standard: "net_unreachable".to_owned(),
            dropped: 7,
            reported: 3,
            reported_as: Vec::new(),
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
    let request = TraceRequest {
        node: Some("ip4-input".to_owned()),
        interface: None,
        count: 5,
    };
    let step = TraceStep {
        node: "ip4-input".to_owned(),
        made_by: Some("eth-input".to_owned()),
        verdict: "drop ttl-expired".to_owned(),
        decision: Some("the packet's time to live is over".to_owned()),
    };
    let packet = TracedPacket {
        number: 1,
        worker: 0,
        interface: Some("wan".to_owned()),
        time: Timestamp::from_unix_ms(1_700_000_000_000),
        length: 64,
        headers: "192.0.2.9 -> 198.51.100.1 ttl 1".to_owned(),
        steps: vec![step],
        incomplete: Some("the tables have changed since".to_owned()),
    };
    Trace {
        filters: vec![TraceFilter { request, left: 4 }],
        packets: vec![packet],
    }
}

pub(crate) fn capture() -> Capture {
    let request = CaptureRequest {
        drop: true,
        reasons: vec!["no-route".to_owned()],
        snap_bytes: Some(96),
        ..CaptureRequest::default()
    };
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
