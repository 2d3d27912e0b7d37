//! What tables look like: with an edge, without one, with colours, with hostile names.

use weir_api::*;

use super::*;

pub(super) const PIPE: Screen = Screen {
    width: None,
    colour: false,
};

fn terminal(width: usize) -> Screen {
    Screen {
        width: Some(width),
        colour: false,
    }
}

fn sample_table() -> Table {
    let mut table = Table::new([
        Column::long("Name"),
        Column::number("Count"),
        Column::text("State"),
        Column::long("Meaning"),
    ]);
    table.row([
        Cell::from("eth0"),
        5.into(),
        Cell::from("up"),
        Cell::from("a sentence of some length, not short"),
    ]);
    table.row([
        Cell::from("a-much-longer-name"),
        123_456.into(),
        Cell::default(),
        Cell::default(),
    ]);
    table
}

#[test]
fn columns_line_up_and_nothing_is_cut_in_a_pipe() {
    let expected = "\
Name                 Count  State  Meaning
eth0                     5  up     a sentence of some length, not short
a-much-longer-name  123456
";
    assert_eq!(sample_table().draw(&PIPE), expected);
    assert_eq!(sample_table().draw(&terminal(200)), expected);
}

#[test]
fn a_narrow_terminal_cuts_long_columns_only() {
    let expected = "\
Name              Count  State  Meaning
eth0                  5  up     a sentence of …
a-much-longer-…  123456
";
    assert_eq!(sample_table().draw(&terminal(47)), expected);
    for width in 0..100 {
        let drawn = sample_table().draw(&terminal(width));
        assert!(drawn.contains("123456") && drawn.contains("up"), "{drawn}");
        // 6 + 6 + 5 + 7 and three gaps: narrower than that nothing shrinks.
        assert!(
            drawn
                .lines()
                .all(|line| line.chars().count() <= width.max(30)),
            "{width}: {drawn}"
        );
    }
}

#[test]
fn the_least_important_column_shrinks_first() {
    let columns = [
        Column::long("Name"),
        Column::long("Description").spare(1),
        Column::text("State"),
    ];
    let mut table = Table::new(columns);
    table.row([
        "a-name-that-is-the-longest".into(),
        "what it is for".into(),
        Cell::from("up"),
    ]);
    let drawn = table.draw(&terminal(46));
    let expected = "\
Name                        Description  State
a-name-that-is-the-longest  what it is…  up
";
    assert_eq!(drawn, expected);
}

#[test]
fn spare_columns_are_left_out_when_shrinking_is_not_enough() {
    let reply = Interfaces {
        interfaces: vec![interface("wan")],
    };
    let heading = |width| {
        super::interface::list(&reply, &terminal(width))
            .lines()
            .next()
            .unwrap()
            .split("  ")
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(heading(110).len(), 12);
    assert_eq!(
        heading(80),
        [
            "Interface",
            "Admin",
            "Link",
            "RX packets",
            "RX bytes",
            "RX lost",
            "TX packets",
            "Drops"
        ]
    );
    assert_eq!(heading(20).len(), 6, "what cannot be spared stays");
    for width in [60, 80, 100, 120] {
        let drawn = super::interface::list(&reply, &terminal(width));
        assert!(
            drawn.lines().all(|line| line.chars().count() <= width),
            "{width}: {drawn}"
        );
    }
}

#[test]
fn colours_only_where_they_are_welcome() {
    let mut table = Table::new([Column::text("A"), Column::text("B")]);
    table.row([Cell::styled("up", Style::Good), Cell::from("x")]);
    assert_eq!(table.draw(&PIPE), "A   B\nup  x\n");
    let colour = Screen {
        width: None,
        colour: true,
    };
    assert_eq!(
        table.draw(&colour),
        "\x1b[1mA\x1b[0m   \x1b[1mB\x1b[0m\n\x1b[32mup\x1b[0m  x\n"
    );
}

#[test]
fn names_cannot_command_the_terminal() {
    assert_eq!(harmless("a\x1b[2Jb\n\u{9b}é…"), "a\\u{1b}[2Jb\\n\\u{9b}é…");
    let mut evil = interface("wan\x1b[31m");
    evil.description = Some("x\r\x07".to_owned());
    let reply = Interfaces {
        interfaces: vec![evil],
    };
    for text in [
        super::interface::list(&reply, &PIPE),
        super::interface::detail(&reply, &PIPE),
        super::interface::addresses(&reply, &PIPE),
    ] {
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()),
            "{text:?}"
        );
    }
}

#[test]
fn units_are_for_people() {
    assert_eq!(units::speed(0), "unknown speed");
    assert_eq!(units::speed(10_000_000_000), "10 Gbit/s");
    assert_eq!(units::speed(2_500_000_000), "2.5 Gbit/s");
    assert_eq!(units::speed(9600), "9.6 kbit/s");
    assert_eq!(units::speed(300), "300 bit/s");
    assert_eq!(units::seconds(1.25), "1.2 s");
    assert_eq!(units::seconds(65.9), "1 min 5 s");
    assert_eq!(units::seconds(3_720.0), "1 h 2 min");
    assert_eq!(units::seconds(97_200.0), "1 d 3 h");
    assert_eq!(units::percent(1, 8), "12.5 %");
    assert_eq!(units::percent(0, 0), "0.0 %");
}

fn interface(name: &str) -> Interface {
    Interface {
        name: name.to_owned(),
        index: 1,
        kind: InterfaceKind::Port,
        parent: None,
        device: Some("veth0".to_owned()),
        driver: Some("af-xdp".to_owned()),
        mac: Some("02:00:00:00:00:01".to_owned()),
        mtu: 1500,
        admin: UpDown::Up,
        link: UpDown::Up,
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
            packets: 100,
            bytes: 6400,
            unicast: 97,
            multicast: 1,
            broadcast: 2,
        },
        tx: Traffic {
            packets: 98,
            bytes: 6272,
            unicast: 98,
            ..Traffic::default()
        },
        rx_errors: 3,
        tx_errors: 0,
        drops: 2,
        drops_by: vec![InterfaceDrop {
            node: "ip4-input".to_owned(),
            reason: "ttl-expired".to_owned(),
            count: 2,
        }],
    }
}

#[test]
fn interfaces_in_a_list_and_one_by_one() {
    let reply = Interfaces {
        interfaces: vec![
            interface("wan"),
            Interface {
                index: 12,
                l2xc: Some("wan".into()),
                ..interface("lan")
            },
        ],
    };
    let expected = "\
Interface  Idx  Admin  Link   MTU  RX packets  RX bytes  RX lost  TX packets  TX bytes  Drops  Description
wan          1  up     up    1500         100      6400        3          98      6272      2
lan         12  up     up    1500         100      6400        3          98      6272      2
";
    assert_eq!(super::interface::list(&reply, &PIPE), expected);
    let expected = "\
Interface  Link  Address
wan        up    192.0.2.1/24
lan        up    cross-connected to wan
           up    192.0.2.1/24
";
    assert_eq!(super::interface::addresses(&reply, &PIPE), expected);
    let sub = Interface {
        encapsulation: Some(weir_api::Encapsulation {
            dot1q: None,
            dot1ad: Some(100),
            inner_dot1q: Some(7),
            exact_match: true,
        }),
        tag_rewrite: Some("pop 1".to_owned()),
        bridge_domain: Some("bd1".to_owned()),
        mpls: true,
        urpf: Some("strict".to_owned()),
        ..interface("wan.100")
    };
    let text = super::interface::detail(
        &Interfaces {
            interfaces: vec![sub],
        },
        &PIPE,
    );
    let lines = [
        "tags         dot1ad 100 inner-dot1q 7 exact-match",
        "tag rewrite  pop 1",
        "bridge       bd1",
        "mpls         taken",
        "urpf         strict",
    ];
    assert!(lines.iter().all(|line| text.contains(line)), "{text}");
    let one = Interfaces {
        interfaces: vec![interface("wan")],
    };
    let expected = "\
wan (index 1)
  kind         port on veth0, af-xdp
  state        admin up, link up, 10 Gbit/s
  mac          02:00:00:00:00:01
  mtu          1500
  address      192.0.2.1/24
  sflow        sampled
      Packets  Bytes  Unicast  Multicast  Broadcast  Errors
  rx      100   6400       97          1          2       3
  tx       98   6272       98          0          0       0
  Drops  Count  Node       Reason
  total      2
             2  ip4-input  ttl-expired
";
    assert_eq!(super::interface::detail(&one, &PIPE), expected);
    assert_eq!(
        super::interface::list(&Interfaces::default(), &PIPE),
        "no interfaces\n"
    );
}

#[test]
fn hardware_hides_zeros_unless_asked() {
    let counter = |name: &str, value, source| HardwareCounter {
        name: name.to_owned(),
        value,
        source,
    };
    let port = HardwarePort {
        interface: "wan".to_owned(),
        device: "veth0".to_owned(),
        driver: "af-xdp".to_owned(),
        mode: "native, copy".to_owned(),
        mac: None,
        link: UpDown::Up,
        speed: 0,
        rx_queues: 2,
        tx_queues: 1,
        max_frame: 3498,
        counters: vec![
            counter("rx_ring_full", 7, CounterSource::Xdp),
            counter("rx_packets", 0, CounterSource::Kernel),
        ],
    };
    let reply = Hardware { ports: vec![port] };
    let expected = "\
wan on veth0, link up, unknown speed
  driver af-xdp (native, copy)
  2 rx queues, 1 tx queue, frames up to 3498 bytes
  Counter       Value  Source
  rx_ring_full      7  xdp
  1 counter at 0 not shown (--all shows them)
";
    assert_eq!(super::hardware::hardware(&reply, false, &PIPE), expected);
    let all = super::hardware::hardware(&reply, true, &PIPE);
    assert!(
        all.contains("rx_packets        0  kernel") && !all.contains("--all"),
        "{all}"
    );
    let queues = vec![RxQueuePlacement {
        interface: "wan".to_owned(),
        queue: 0,
        worker: 1,
        core: None,
    }];
    let placement = super::hardware::rx_placement(&RxPlacement { queues }, &PIPE);
    assert_eq!(
        placement,
        "Interface  Queue  Worker  Core\nwan            0       1   any\n"
    );
}

#[test]
fn a_memif_tells_who_its_peer_is_and_why_others_went() {
    let there = Memif {
        interface: "m0".to_owned(),
        socket: "/run/m.sock".to_owned(),
        id: 7,
        role: MemifRole::Slave,
        zero_copy: true,
        secret: true,
        link: UpDown::Up,
        connects: 2,
        peer: Some("DPDK \u{1b}[31m22".to_owned()),
        peer_interface: Some("net_memif0".to_owned()),
        queues: 2,
        rx_rings: 2,
        tx_rings: 1,
        ring_size: 512,
        buffer_bytes: Some(2048),
        region_bytes: vec![24576, 40 << 20],
        last_disconnect: Some("the peer closed the control channel or died".to_owned()),
        disconnects: vec![MemifDisconnects {
            reason: "peer_gone".to_owned(),
            sentence: "it died".to_owned(),
            count: 1,
        }],
    };
    let gone = Memif {
        interface: "m1".to_owned(),
        role: MemifRole::Master,
        zero_copy: false,
        secret: false,
        link: UpDown::Down,
        connects: 0,
        peer: None,
        peer_interface: None,
        queues: 1,
        rx_rings: 0,
        tx_rings: 0,
        buffer_bytes: None,
        region_bytes: Vec::new(),
        last_disconnect: None,
        disconnects: Vec::new(),
        ..there.clone()
    };
    let shown = super::memif::memif(
        &Memifs {
            ports: vec![there, gone],
        },
        &PIPE,
    );
    let expected = "\
m0 is slave of memif 7 at /run/m.sock, link up
  peer DPDK \\u{1b}[31m22, its interface net_memif0, connected 2 times
  zero-copy: the peer reads and writes the packet memory, buffers of 2048 bytes, with a secret
  2 queues, 2 rx rings and 1 tx ring of 512, regions of 24 KiB, 40 MiB
  last peer: the peer closed the control channel or died
  Parted or sent away  Times  Meaning
  peer_gone                1  it died

m1 is master of memif 7 at /run/m.sock, link down
  no peer, connected 0 times
  copy
  1 queue in each direction, rings of 512 wanted
";
    assert_eq!(shown, expected);
    assert_eq!(
        super::memif::memif(&Memifs::default(), &PIPE),
        "no memif ports\n"
    );
}

#[test]
fn a_bridge_domain_tells_who_is_in_it_and_whom_it_knows() {
    let member = |interface: &str, bvi, group, can_send| BridgeMember {
        interface: interface.to_owned(),
        bvi,
        group,
        can_send,
    };
    let domain = BridgeDomain {
        name: "bd1".to_owned(),
        members: vec![
            member("xe0", false, 1, true),
            member("loop0", true, 0, false),
        ],
        forward: true,
        flood: true,
        age_seconds: Some(300),
        stations: 2,
        station_limit: 100,
        table_bytes: 2048,
        learned: 3,
        moved: 1,
        flood_limit: Some(1000),
        ..BridgeDomain::default()
    };
    let expected = "\
bd1: does not learn, does not flood unknown unicast
  2 of 100 stations learned, which age after 5 min; 2 KiB in the table
  learned 3, moved 1, aged 0, displaced 0, not learned 0
  flooded 0 (at most 1000 a second and member), unknown unicast 0, copies too long 0
  Member  Role    Group  Sends
  xe0     member      1  yes
  loop0   bvi            no
";
    assert_eq!(
        super::bridge::domains(
            &BridgeDomains {
                bridges: vec![domain]
            },
            &PIPE
        ),
        expected
    );
    assert_eq!(
        super::bridge::domains(&BridgeDomains::default(), &PIPE),
        "no bridge domains\n"
    );
    let station = |mac: &str, age: Option<u32>| L2Station {
        bridge: "bd1".into(),
        mac: mac.into(),
        interface: "xe0".into(),
        is_static: age.is_none(),
        age,
    };
    let l2fib = L2fib {
        stations: vec![
            station("02:00:00:00:00:01", None),
            station("02:00:00:00:00:02", Some(7)),
        ],
    };
    let expected = "\
Bridge  MAC                Interface  Kind     Age
bd1     02:00:00:00:00:01  xe0        static
bd1     02:00:00:00:00:02  xe0        learned  7 s
";
    assert_eq!(super::bridge::l2fib(&l2fib, &PIPE), expected);
    assert_eq!(
        super::bridge::l2fib(&L2fib::default(), &PIPE),
        "no stations\n"
    );
}

#[test]
fn a_tunnel_tells_its_ends_and_where_it_leads() {
    let path = PathReply {
        next_hop: Some("192.0.2.254".parse().unwrap()),
        interface: Some("up".into()),
        weight: 1,
        buckets: 1,
        adjacency_number: 7,
        adjacency: Adjacency::Complete,
        mac: None,
        mtu: None,
        labels: Vec::new(),
        push: None,
    };
    let route = Route {
        table: 0,
        vrf: None,
        prefix: "198.51.100.0/24".parse().unwrap(),
        source: RouteSource::Static,
        group: None,
        next_hops: Vec::new(),
        candidates: Vec::new(),
        paths: vec![path],
    };
    let tunnel = VxlanTunnel {
        interface: "vxlan_tunnel1".into(),
        index: 7,
        local: "192.0.2.1".parse().unwrap(),
        remote: "198.51.100.1".parse().unwrap(),
        vni: 100,
        admin: UpDown::Up,
        mtu: 1500,
        bridge: Some("bd1".into()),
        l2xc: None,
        route: Some(route),
    };
    let lost = VxlanTunnel {
        interface: "vxlan_tunnel2".into(),
        admin: UpDown::Down,
        bridge: None,
        route: None,
        ..tunnel.clone()
    };
    let expected = "\
Tunnel         Index  State  Local      Remote        VNI   MTU  Frames to  Route
vxlan_tunnel1      7  up     192.0.2.1  198.51.100.1  100  1500  bd1        198.51.100.0/24 by up
vxlan_tunnel2      7  down   192.0.2.1  198.51.100.1  100  1500
";
    assert_eq!(
        super::vxlan::tunnels(
            &VxlanTunnels {
                tunnels: vec![tunnel, lost]
            },
            &PIPE
        ),
        expected
    );
    assert_eq!(
        super::vxlan::tunnels(&VxlanTunnels::default(), &PIPE),
        "no VXLAN tunnels\n"
    );
}

#[test]
fn a_bond_tells_who_carries_frames_and_where_lacp_stands() {
    let end = |system: &str, port, state: &[&str]| LacpEnd {
        system: system.to_owned(),
        system_priority: 32768,
        key: 7,
        port,
        port_priority: 32768,
        state: state.iter().map(|word| (*word).to_owned()).collect(),
    };
    let port = |mux: &str, partner| LacpPort {
        receive: "current".to_owned(),
        mux: mux.to_owned(),
        selected: true,
        actor: end("02:00:00:00:00:0b", 2, &["active", "aggregation"]),
        partner,
        received: 12,
        sent: 13,
        expired: 1,
        partner_changes: 2,
    };
    let far = end("02:00:00:00:00:09", 3, &["active"]);
    let member = |name: &str, carries, lacp| BondMember {
        interface: name.to_owned(),
        link: UpDown::Up,
        collecting: carries,
        distributing: carries,
        lacp: Some(lacp),
    };
    let members = vec![
        member("xe0", true, port("distributing", Some(far))),
        member("xe1", false, port("detached", None)),
    ];
    let bond = Bond {
        interface: "BondEthernet0".to_owned(),
        mode: "lacp".to_owned(),
        load_balance: Some("l34".to_owned()),
        link: UpDown::Up,
        speed: 0,
        members,
    };
    let other = Bond {
        interface: "BondEthernet1".to_owned(),
        mode: "broadcast".to_owned(),
        load_balance: None,
        link: UpDown::Down,
        members: Vec::new(),
        ..bond.clone()
    };
    let all = Bonds {
        bonds: vec![bond, other],
    };
    let expected = "\
BondEthernet0 lacp by l34, link up, 2 members, 1 in use
  Member  Link  Takes  Sends  LACP
  xe0     up    yes    yes    current, distributing
  xe1     up    no     no     current, detached

BondEthernet1 broadcast, link down, 0 members, 0 in use
";
    assert_eq!(super::bond::bonds(&all, &PIPE), expected);
    let expected = "\
BondEthernet0
  Member  End      System             Priority  Key  Port  State
  xe0     actor    02:00:00:00:00:0b     32768    7     2  active aggregation
          partner  02:00:00:00:00:09     32768    7     3  active
  xe1     actor    02:00:00:00:00:0b     32768    7     2  active aggregation
          partner  none
  Member  Receive  Mux           Chosen  Rx  Tx  Silent  Changed
  xe0     current  distributing  yes     12  13       1        2
  xe1     current  detached      yes     12  13       1        2
";
    assert_eq!(super::bond::lacp(&all, &PIPE), expected);
    assert_eq!(super::bond::bonds(&Bonds::default(), &PIPE), "no bonds\n");
    assert_eq!(
        super::bond::lacp(&Bonds::default(), &PIPE),
        "no bond speaks LACP\n"
    );
}

#[test]
fn runtime_looks_as_vpp_users_know_it() {
    let nodes = vec![
        NodeRuntime {
            empty_calls: 7,
            ..NodeRuntime::new("af-xdp-rx xe0 q0", 4, 1000, 1000)
        },
        NodeRuntime::new("eth-input", 4, 1000, 9000),
        NodeRuntime::new("ip4-lookup", 3, 0, 0),
    ];
    let worker = WorkerRuntime {
        worker: 0,
        core: Some(1),
        idle: IdleMode::Sleep,
        turns: 8,
        busy_turns: 4,
        clocks: 10_000,
        busy_clocks: 9500,
        busy: 0.5,
        nodes,
    };
    let reply = Runtime {
        tsc_mhz: 2600.4,
        seconds: 12.5,
        workers: vec![worker],
    };
    let expected = "\
Since 12.5 s, TSC 2600 MHz

Worker 0 (core 1, idle: sleep): 8 turns, 50.0 % of the time busy
Name              Calls  Empty  Packets  Clocks/packet  Packets/call   Share
af-xdp-rx xe0 q0      4      7     1000           1.00        250.00  10.0 %
eth-input             4      0     1000           9.00        250.00  90.0 %
ip4-lookup            3      0        0           0.00          0.00   0.0 %
";
    assert_eq!(super::runtime::runtime(&reply, &PIPE), expected);
}

#[test]
fn errors_say_what_they_mean() {
    let drop = DropCounter {
        worker: None,
        node: "ip4-input".to_owned(),
        reason: "ttl-expired".to_owned(),
        severity: Severity::Info,
        sentence: "the packet's TTL ran out".to_owned(),
        interface: None,
        count: 12,
    };
    let expected = "\
Count  Node       Reason       Severity  Interface  Meaning
   12  ip4-input  ttl-expired  info      own        the packet's TTL ran out
";
    assert_eq!(
        super::runtime::errors(
            &Errors {
                errors: vec![drop.clone()]
            },
            &PIPE
        ),
        expected
    );
    let by_worker = super::runtime::errors(
        &Errors {
            errors: vec![DropCounter {
                worker: Some(3),
                ..drop
            }],
        },
        &PIPE,
    );
    assert!(by_worker.starts_with("Worker  Count  Node"), "{by_worker}");
    assert_eq!(
        super::runtime::errors(&Errors::default(), &PIPE),
        "no drops\n"
    );
    let totals = Totals {
        packets_in: 5,
        packets_out: 3,
        drops: [("tx-full".to_owned(), 1)].into(),
        ..Totals::default()
    };
    let text = super::runtime::totals(&totals, &PIPE);
    assert!(
        text.contains("  tx-full       1\n") && text.ends_with("under way       1\n"),
        "{text}"
    );
}

#[test]
fn routes_show_each_path() {
    let path = |next_hop: &str, adjacency| PathReply {
        next_hop: next_hop.parse().ok(),
        interface: Some("wan".to_owned()),
        weight: 1,
        buckets: 1,
        adjacency_number: 7,
        adjacency,
        mac: Some("02:00:00:00:00:09".to_owned()),
        mtu: Some(1500),
        labels: vec![],
        push: None,
    };
    let group = Some(RouteGroup {
        number: 3,
        routes: 2,
        buckets: 2,
        resilient: true,
    });
    let route = |prefix: &str, source, paths| Route {
        table: 0,
        vrf: None,
        prefix: prefix.parse().unwrap(),
        source,
        next_hops: vec![NextHop {
            address: "10.9.9.9".parse().unwrap(),
            table: Some("default".to_owned()),
            unresolved: None,
        }],
        group: group.clone(),
        paths,
        candidates: Vec::new(),
    };
    let mut labelled = path("192.0.2.10", Adjacency::Incomplete);
    labelled.labels = vec![100, 200];
    let (ttl_mode, traffic_class) = (weir_api::PushMode::Pipe, Some(5));
    labelled.push = Some(weir_api::LabelPush {
        ttl_mode,
        traffic_class,
        entropy_label: true,
    });
    let reply = Routes {
        routes: vec![
            route(
                "0.0.0.0/0",
                RouteSource::Static,
                vec![path("192.0.2.9", Adjacency::Complete), labelled],
            ),
            route(
                "192.0.2.0/24",
                RouteSource::Connected,
                vec![path("", Adjacency::Glean)],
            ),
            route("198.51.100.0/24", RouteSource::Static, vec![]),
        ],
    };
    let expected = "\
Prefix           Table  Source     Next hop                                             Interface  Weight  Adjacency
0.0.0.0/0            0  static     192.0.2.9                                            wan             1  complete
                                   192.0.2.10 label 100/200 pipe class 5 entropy-label  wan             1  incomplete
192.0.2.0/24         0  connected  -                                                    wan             1  glean
198.51.100.0/24      0  static                                                                             no path
";
    assert_eq!(super::forwarding::routes(&reply, &PIPE), expected);
    let mut red = reply;
    red.routes.truncate(1);
    (red.routes[0].table, red.routes[0].vrf) = (10, Some("red".to_owned()));
    let expected = "\
0.0.0.0/0, table 10 (red), static
  next hop 10.9.9.9, by table default
  group 3: 2 paths in 2 buckets, resilient, for 2 routes
    path via 192.0.2.9 on wan, weight 1: 1 bucket
      adjacency 7: complete, to 02:00:00:00:00:09, mtu 1500
    path via 192.0.2.10 on wan label 100/200 pipe class 5 entropy-label, weight 1: 1 bucket
      adjacency 7: incomplete, to 02:00:00:00:00:09, mtu 1500
";
    assert_eq!(super::forwarding::chain(&red, &PIPE), expected);
}

#[test]
fn neighbors_without_an_answer_have_no_mac() {
    let neighbor = Neighbor {
        interface: "wan".to_owned(),
        address: "192.0.2.9".parse().unwrap(),
        mac: None,
        state: NeighborState::Incomplete,
        age: Some(0.5),
    };
    let expected = "\
Interface  Address    MAC  State         Age
wan        192.0.2.9  -    incomplete  0.5 s
";
    let mut all = Neighbors {
        neighbors: vec![neighbor],
        ..Neighbors::default()
    };
    assert_eq!(super::forwarding::neighbors(&all, &PIPE), expected);
    (all.evicted, all.refused) = (7, 1);
    assert_eq!(
        super::forwarding::neighbors(&all, &PIPE),
        format!("{expected}7 made room for others, 1 refused\n")
    );
}

#[test]
fn flows_tell_ends_and_fates() {
    let flow = |text: &str| serde_json::from_str::<weir_api::FlowEntry>(text).unwrap();
    let tcp = r#"{"worker": 0, "records": "router", "direction": "rx", "source": "192.0.2.1", "destination": "198.51.100.2", "protocol": 6,
        "source_port": 49152, "destination_port": 443, "input": "wan", "output": "lan", "forwarding_status": 64, "forwarding_status_name": "forwarded",
        "next_hop": "10.0.0.2", "packets": 3, "octets": 300, "packets_per_second": 1, "octets_per_second": 1534, "start": "2023-11-14T22:13:20.000Z", "end": "2023-11-14T22:13:22.500Z", "tcp_flags": 27}"#;
    let ping = r#"{"worker": 0, "records": "router", "direction": "tx", "source": "2001:db8::1", "destination": "2001:db8::2", "protocol": 58,
        "destination_port": 32768, "input": "wan", "forwarding_status": 131, "forwarding_status_name": "dropped: unroutable", "vlan": 100, "customer_vlan": 7,
        "packets": 1, "octets": 64, "packets_per_second": 1, "octets_per_second": 64,
        "start": "2023-11-14T22:13:20.000Z", "end": "2023-11-14T22:13:20.000Z", "tcp_flags": 0}"#;
    // A record set without addresses and protocol.
    let class = r#"{"worker": 0, "records": "class", "direction": "rx", "forwarding_status": 64, "forwarding_status_name": "forwarded",
        "packets": 1, "octets": 64, "packets_per_second": 1250000, "octets_per_second": 125000000,
        "start": "2023-11-14T22:13:20.000Z", "end": "2023-11-14T22:13:20.000Z", "tcp_flags": 0}"#;
    let reply = weir_api::Flows {
        flows: vec![flow(tcp), flow(ping), flow(class)],
        groups: Vec::new(),
        matched: 9,
    };
    let expected = "\
Source           Destination       Proto  In   Out  Bit/s  Packets/s  Packets  Octets  Seconds  Remarks
192.0.2.1:49152  198.51.100.2:443  tcp    wan  lan  12.3k          1        3     300    2.500  via 10.0.0.2
2001:db8::1      2001:db8::2       icmp6  wan  -      512          1        1      64    0.000  dropped: unroutable, leaving, vlan 100.7
-                -                 -      -    -    1.00G      1.25M        1      64    0.000

3 of 9 flows
";
    assert_eq!(super::flow::flows(&reply, &PIPE), expected);
    // On a narrow screen neither addresses nor reasons are shortened.
    let narrow = Screen {
        width: Some(80),
        ..PIPE
    };
    let text = super::flow::flows(&reply, &narrow);
    assert!(
        text.contains("192.0.2.1:49152  198.51.100.2:443") && !text.contains('…'),
        "{text}"
    );
    assert!(
        text.contains("dropped: unroutable, leaving, vlan 100.7"),
        "{text}"
    );
    assert!(
        !text.contains("Seconds") && text.contains("Bit/s"),
        "{text}"
    );
}

#[test]
fn sums_of_flows() {
    let group = |group: Option<&str>, octets_per_second: u64| weir_api::FlowGroup {
        group: group.map(str::to_owned),
        flows: 2,
        packets: 30,
        octets: 4000,
        packets_per_second: octets_per_second / 100,
        octets_per_second,
    };
    let reply = weir_api::Flows {
        flows: Vec::new(),
        groups: vec![group(Some("192.0.2.0/24"), 1_250_000), group(None, 12)],
        matched: 4,
    };
    let expected = "\
Group         Flows  Bit/s  Packets/s  Packets  Octets
192.0.2.0/24      2  10.0M      12.5k       30    4000
-                 2     96          0       30    4000

4 flows
";
    assert_eq!(super::flow::groups(&reply, &PIPE), expected);
}

#[test]
fn traces_are_paragraphs() {
    let step = |node: &str, verdict: &str| TraceStep {
        node: node.to_owned(),
        made_by: None,
        verdict: verdict.to_owned(),
        decision: None,
    };
    let steps = vec![
        step("eth-input", "to acl-input"),
        TraceStep {
            made_by: Some("eth-input".to_owned()),
            decision: Some("term 2 of list edge permits".to_owned()),
            ..step("acl-input", "to ip4-lookup")
        },
        TraceStep {
            decision: Some("time to live is over".to_owned()),
            ..step("ip4-input", "drop ttl-expired")
        },
    ];
    let packet = TracedPacket {
        number: 1,
        worker: 0,
        interface: Some("wan".to_owned()),
        time: "2026-11-21T10:15:33.250Z".parse().unwrap(),
        length: 64,
        headers: "02:00:00:00:00:01 -> 02:00:00:00:00:02 IP4 64 bytes\n192.0.2.1 -> 192.0.2.9"
            .to_owned(),
        steps,
        incomplete: Some("the tables have changed since".to_owned()),
    };
    let request = TraceRequest {
        node: Some("ip4-input".to_owned()),
        interface: Some("wan".to_owned()),
        count: 5,
    };
    let reply = Trace {
        filters: vec![TraceFilter { request, left: 4 }],
        packets: vec![packet],
    };
    let expected = "\
Packet 1 from wan, 64 bytes, worker 0, 2026-11-21T10:15:33.250Z
    02:00:00:00:00:01 -> 02:00:00:00:00:02 IP4 64 bytes
    192.0.2.1 -> 192.0.2.9
  eth-input  -> to acl-input
  acl-input (in eth-input)  -> to ip4-lookup: term 2 of list edge permits
  ip4-input  -> drop ttl-expired: time to live is over
  (the tables have changed since)

recording 5 packets received on wan from node ip4-input on: 4 still to come
";
    assert_eq!(super::trace::trace(&reply, &PIPE), expected);
    assert!(super::trace::trace(&Trace::default(), &PIPE).starts_with("no packets recorded"));
}

#[test]
fn version_is_short() {
    let version = Version {
        version: "0.1.0".to_owned(),
        commit: Some("abc".to_owned()),
        pid: 7,
        started: 0,
        uptime: 90,
        workers: 1,
        config_file: Some("/etc/weir.yaml".to_owned()),
    };
    let expected =
        "weir 0.1.0 (abc)\nprocess 7, up 1 min 30 s, 1 worker, configured by /etc/weir.yaml\n";
    assert_eq!(super::version::version(&version, &PIPE), expected);
}

#[test]
fn memory_and_tables_are_summed_up() {
    let pool = BufferPool {
        pool: 0,
        buffers: 16_384,
        free: 4096,
        buffer_bytes: 2560,
        hugepages: true,
        failures: 3,
    };
    let expected = "\
Pool  Buffers  Free  In use  Bytes each  Memory               Failures
   0    16384  4096  75.0 %        2560  40 MiB on hugepages         3
";
    assert_eq!(
        super::hardware::buffers(&Buffers { pools: vec![pool] }, &PIPE),
        expected
    );
    assert_eq!(
        super::hardware::buffers(&Buffers::default(), &PIPE),
        "no packet memory\n"
    );
    let routes = vec![RouteCount {
        source: RouteSource::Static,
        count: 1_000_000,
    }];
    let tables = vec![FibTable {
        table: 0,
        vrf: None,
        family: Family::Ipv4,
        routes,
        memory_bytes: 0,
    }];
    let summary = FibSummary {
        tables,
        adjacencies: 1,
        groups: 2,
        memory_bytes: 1_610_612_736,
    };
    let expected = "\
Table  Family  Source   Routes
    0  ipv4    static  1000000
    0  ipv4    all     1000000
1 next hop, 2 sets of paths, 1.5 GiB of memory
";
    assert_eq!(super::forwarding::summary(&summary, &PIPE), expected);
}

#[test]
fn a_change_without_history_or_steps_is_reported() {
    let step = ConfigStep {
        group: StepGroup::Sync,
        kind: "k".to_owned(),
        object: "o".to_owned(),
        text: "set\x1b[2J".to_owned(),
        disturbs: None,
    };
    let applied = Applied {
        steps: vec![step],
        ..Applied::default()
    };
    let said = super::config::applied(&applied, "weir config confirm", &PIPE);
    assert_eq!(
        said,
        "sync\n  ~ set\\u{1b}[2J\ndone: 1 step; this router keeps no history\n"
    );
    let said = super::config::applied(
        &Applied {
            revision: 9,
            ..Applied::default()
        },
        "weir config confirm",
        &PIPE,
    );
    assert_eq!(said, "nothing to do: the router is so already\n");
    let colour = Screen {
        width: Some(80),
        colour: true,
    };
    let said = super::config::diff(
        &ConfigDiff {
            diff: "-a\n+b\x07\n".to_owned(),
        },
        &colour,
    );
    assert_eq!(said, "\x1b[31m-a\x1b[0m\n\x1b[32m+b\\u{7}\x1b[0m\n");
}

/// A file goes out as it is, except onto a terminal, which it could command.
#[test]
fn a_file_is_a_file() {
    assert_eq!(super::config::file("a: \"\x1b\"", &PIPE), "a: \"\x1b\"\n");
    assert_eq!(
        super::config::file("a: \"\x1b\"\nb: 1\n", &terminal(80)),
        "a: \"\\u{1b}\"\nb: 1\n"
    );
}

#[test]
fn events_are_lines() {
    let time = Timestamp::from_unix_ms(0);
    let log = LogEvent {
        time,
        level: EventLevel::Warn,
        target: "t".to_owned(),
        message: "odd\x1b[2J".to_owned(),
    };
    assert_eq!(
        super::event::event(&Event::Log(log), &PIPE),
        "1970-01-01T00:00:00.000Z  warn      odd\\u{1b}[2J\n"
    );
    let (author, comment) = ("ada".to_owned(), "uplink".to_owned());
    let change = ConfigEvent {
        time,
        what: ConfigEventKind::Expired,
        revision: 6,
        author,
        comment,
        confirm_by: None,
    };
    let said = super::event::event(&Event::Config(change), &PIPE);
    assert_eq!(
        said,
        "1970-01-01T00:00:00.000Z  config    not confirmed in time: revision 6 runs again: uplink\n"
    );
    let lost = LostEvent {
        topic: Topic::Log,
        count: 3,
    };
    assert_eq!(
        super::event::event(&Event::Lost(lost), &PIPE),
        "3 events of log were lost: this reader is too slow\n"
    );
}

#[test]
fn rates_have_units() {
    use super::rates::{Rate, interfaces};
    let rate = Rate {
        interface: "wan".to_owned(),
        link: UpDown::Up,
        rx_packets: 812.4,
        rx_bits: 9_876_543_210.0,
        tx_packets: 1000.0,
        tx_bits: 0.0,
        drops: 1.0,
    };
    let expected = "\
Interface  Link  RX packets/s  RX bit/s  TX packets/s  TX bit/s  Drops/s
wan        up             812    9.88 G        1.00 k         0        1
";
    assert_eq!(interfaces(&[rate], &PIPE), expected);
}
