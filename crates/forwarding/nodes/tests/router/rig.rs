//! A small router of one worker, run by hand: frames in, frames out, every packet accounted for.
//!
//! ```text
//!  1 "west"  routed  10.0.1.1/24, 10.0.11.1/24      neighbour 10.0.1.2
//!  2 "east"  routed  10.0.2.1/24                    neighbours 10.0.2.2, .3; .9 asked for, .10 failed
//!  3 "south" routed  10.0.3.1/24                    neighbour 10.0.3.2
//!  4 ── 5    cross connected
//!  6 down, 7 without any configuration, 8 routed 10.0.8.1/24 but cannot send (neighbour 10.0.8.2)
//!
//!  192.168.0.0/16 via 10.0.2.2          172.16.0.0/16 via 10.0.2.2 (3) and 10.0.3.2 (1)
//!  198.18.0.0/24 blackhole, 198.18.1.0/24 unreachable, 198.18.2.0/24 prohibit
//!  198.19.0.0/24 via 10.0.2.9    198.19.1.0/24 via 10.0.2.10
//! ```
//!
//! IPv6 beside it, where an interface is routed: 2001:db8:N::1/64 and fe80::N, N being the interface's number,
//! with neighbours ::2 on each; east has ::3, ::9 (asked for) and ::10 (failed) too, and fe80::99 for the routes.
//! 2001:db8:1::dad is still tentative; south advertises itself.
//!
//!  2001:db8:a::/48 via 2001:db8:2::2        2001:db8:b::/48 via 2001:db8:2::2 (3) and 2001:db8:3::2 (1)
//!  2001:db8:c1::/48 unreachable, 2001:db8:c2::/48 prohibit
//!  2001:db8:c::/48 blackhole                2001:db8:d::/48 via 2001:db8:2::9    2001:db8:e::/48 via 2001:db8:2::10
//!  2001:db8:f::/48 and 203.0.113.0/24 via fe80::99 on east, which is asked for; 192.0.2.0/24 via 2001:db8:2::2
//!
//! After every turn the balance and the pool are checked to the packet.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use ipnet::{Ipv4Net, Ipv6Net};
use weir_buf::{DATA_ROOM, Hugepages, Pkt, PktCache, Pool, PoolConfig, Vector};
use weir_fib::{Adjacency, Fib4Writer, Fib6Writer, Group, NeighborState, NexthopTable, Path};
use weir_graph::{DropMap, DropReason, Env, Graph, GraphBuilder, HoldLimits, TraceStep};
use weir_nodes::{Entry, Event, IcmpLimit, PortTx, Tables, names, transmit};
use weir_port::TxQueue;
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind};
use weir_port::own_addresses::OwnAddresses;
use weir_ring::qsbr::Domain;
use weir_ring::spsc::{self, Consumer, Producer};
use weir_wire::MacAddr;
use weir_wire::build::{Ends, Ends6};

pub(crate) const WEST: u32 = 1;
pub(crate) const EAST: u32 = 2;
pub(crate) const SOUTH: u32 = 3;
pub(crate) const LEFT: u32 = 4;
pub(crate) const RIGHT: u32 = 5;
pub(crate) const DOWN: u32 = 6;
pub(crate) const BARE: u32 = 7;
pub(crate) const MUTE: u32 = 8;
pub(crate) const SECOND: u64 = 1_000_000_000;
const CHUNKS: usize = 1024;

/// The router's MAC address on an interface.
pub(crate) fn our_mac(interface: u32) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, interface as u8])
}

/// The MAC address of the station whose address ends in these two octets.
pub(crate) fn their_mac(subnet: u8, host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 1, subnet, host])
}

pub(crate) fn address(text: &str) -> std::net::IpAddr {
    text.parse().unwrap()
}

pub(crate) fn ip(text: &str) -> u32 {
    u32::from(text.parse::<Ipv4Addr>().unwrap())
}

/// From 10.0.1.2 behind `west`, through the router.
pub(crate) fn through(destination: &str) -> Ends {
    Ends {
        source_mac: their_mac(1, 2),
        destination_mac: our_mac(WEST),
        source: ip("10.0.1.2"),
        destination: ip(destination),
        source_port: 4000,
        destination_port: 9,
        ttl: 64,
    }
}

pub(crate) fn ip6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

/// From 2001:db8:1::2 behind `west`, through the router.
pub(crate) fn through6(destination: &str) -> Ends6 {
    Ends6 {
        source_mac: their_mac(1, 2),
        destination_mac: our_mac(WEST),
        source: ip6("2001:db8:1::2"),
        destination: ip6(destination),
        source_port: 4000,
        destination_port: 9,
        hop_limit: 64,
        flow_label: 0,
    }
}

/// What a test may want to be different.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) mtu: u32,
    pub(crate) icmp: IcmpLimit,
    pub(crate) holds: HoldLimits,
    pub(crate) chunks: usize,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            mtu: 1500,
            icmp: IcmpLimit::default(),
            holds: HoldLimits::default(),
            chunks: CHUNKS,
        }
    }
}

/// Interface and frame.
pub(crate) type Sent = (u32, Vec<u8>);

/// A transmit queue that keeps what it is given, up to `room` frames a turn.
struct Catcher {
    interface: u32,
    room: Arc<Mutex<usize>>,
    caught: Arc<Mutex<Vec<Sent>>>,
}

impl TxQueue for Catcher {
    fn send(&mut self, from: &mut Vector, cache: &mut PktCache) -> usize {
        let count = from.len().min(*self.room.lock().unwrap());
        for packet in from.drain_front(count) {
            let mut frame = vec![0; packet.total_len()];
            assert_eq!(packet.copy_out(0, &mut frame), frame.len());
            self.caught.lock().unwrap().push((self.interface, frame));
            cache.free(packet);
        }
        count
    }
}

pub(crate) struct Router {
    pub(crate) pool: Pool,
    pub(crate) graph: Graph<Tables>,
    pub(crate) cache: PktCache,
    pub(crate) tables: Tables,
    /// The filter that all interfaces share; brought up to date at each turn.
    pub(crate) own: Arc<OwnAddresses>,
    pub(crate) nexthops: NexthopTable,
    pub(crate) fib: Fib4Writer,
    pub(crate) fib6: Fib6Writer,
    pub(crate) now: u64,
    /// Frames that each port takes a turn.
    pub(crate) room: Arc<Mutex<usize>>,
    /// Packets that a test took out of the pool for itself.
    pub(crate) taken: Vec<Pkt>,
    events: (Producer<Event>, Consumer<Event>),
    _trace: Consumer<TraceStep>,
    /// By interface.
    pub(crate) ports: Vec<PortTx>,
    caught: Arc<Mutex<Vec<Sent>>>,
    entry: usize,
    stage: usize,
}

impl Default for Router {
    fn default() -> Router {
        Router::new(Setup::default())
    }
}

impl Router {
    /// A router whose interface `east` (and `right`) has another MTU.
    pub(crate) fn with_mtu(mtu: u32) -> Router {
        Router::new(Setup {
            mtu,
            ..Setup::default()
        })
    }

    pub(crate) fn new(setup: Setup) -> Router {
        Router::built(setup, weir_nodes::graph(setup.icmp))
    }

    /// A router of this graph, which may have taps.
    pub(crate) fn built(setup: Setup, builder: GraphBuilder<Tables>) -> Router {
        let pool = Pool::new(PoolConfig {
            chunks: setup.chunks,
            hugepages: Hugepages::Off,
        })
        .unwrap();
        let builder = builder.hold_limits(setup.holds);
        let map = builder.drop_map();
        let (producer, trace) = spsc::ring(64);
        let graph = builder.build(0, producer).unwrap();
        let (caught, room) = (Arc::default(), Arc::new(Mutex::new(usize::MAX)));
        let port = |interface| {
            let queue = Catcher {
                interface,
                room: Arc::clone(&room),
                caught: Arc::clone(&caught),
            };
            PortTx {
                interface,
                queue: Box::new(queue),
            }
        };
        let ports = (0..=MUTE).map(port).collect();
        let (entry, stage) = (
            graph.find(names::ETH_INPUT).unwrap(),
            graph.find(names::PORT_TX).unwrap(),
        );
        let mut router = Router {
            cache: PktCache::new(&pool),
            pool,
            graph,
            tables: Tables::default(),
            own: Arc::default(),
            nexthops: NexthopTable::new(),
            fib: Fib4Writer::new(&Domain::new(1)).unwrap(),
            fib6: Fib6Writer::new(&Domain::new(1)).unwrap(),
            now: SECOND,
            room,
            taken: Vec::new(),
            events: spsc::ring(1024),
            _trace: trace,
            ports,
            caught,
            entry,
            stage,
        };
        router.configure(setup.mtu, &map);
        router
    }

    fn configure(&mut self, mtu: u32, map: &DropMap) {
        let mut interfaces = vec![None];
        for (index, name, input, addresses) in [
            (
                WEST,
                "west",
                Input::Routed,
                &["10.0.1.1/24", "10.0.11.1/24"][..],
            ),
            (EAST, "east", Input::Routed, &["10.0.2.1/24"]),
            (SOUTH, "south", Input::Routed, &["10.0.3.1/24"]),
            (LEFT, "left", Input::CrossConnect(RIGHT), &[]),
            (RIGHT, "right", Input::CrossConnect(LEFT), &[]),
            (DOWN, "down", Input::Closed, &[]),
            (BARE, "bare", Input::Unused, &[]),
            (MUTE, "mute", Input::Routed, &["10.0.8.1/24"]),
        ] {
            let mtu = if matches!(index, EAST | RIGHT) {
                mtu
            } else {
                1500
            };
            let addresses: Vec<Ipv4Net> =
                addresses.iter().map(|text| text.parse().unwrap()).collect();
            self.connect(index, mtu, &addresses);
            let addresses6: &[_] = if input == Input::Routed {
                &self.connect6(index, mtu)
            } else {
                &[]
            };
            let counters = Arc::new(InterfaceCounters::new(1));
            let interface = Interface {
                mtu,
                input,
                addresses: addresses
                    .iter()
                    .map(|net| (u32::from(net.addr()), net.prefix_len()))
                    .collect(),
                addresses6: addresses6.into(),
                tentative6: if index == WEST {
                    [u128::from_be_bytes(ip6("2001:db8:1::dad"))].into()
                } else {
                    [].into()
                },
                advertises: index == SOUTH,
                can_send: index != MUTE,
                own: Arc::clone(&self.own),
                ..Interface::at_rest(index, name.into(), Kind::Port, our_mac(index), counters)
            };
            interfaces.push(Some(Arc::new(Entry::new(
                interface,
                [map.counters()].into(),
            ))));
        }
        self.tables.interfaces = interfaces;
        self.tables.fib4 = vec![self.fib.fib().clone()];
        self.tables.fib6 = vec![self.fib6.fib().clone()];
        self.routes(mtu);
        self.routes6(mtu);
        self.publish();
    }

    /// The IPv6 subnet of an interface, and its own addresses, which are returned.
    fn connect6(&mut self, index: u32, mtu: u32) -> [(u128, u8); 2] {
        let glean = self
            .nexthops
            .add_adjacency(Adjacency::glean(index, mtu, our_mac(index).0));
        let local = self.nexthops.add_adjacency(Adjacency::local(index));
        let own: Ipv6Addr = format!("2001:db8:{index}::1").parse().unwrap();
        let link: Ipv6Addr = format!("fe80::{index}").parse().unwrap();
        self.route6(Ipv6Net::new(own, 64).unwrap().trunc(), &[(glean, 1)]);
        self.route6(Ipv6Net::from(own), &[(local, 1)]);
        // The subnet-router anycast address (RFC 4291 section 2.6.1).
        self.route6(
            Ipv6Net::from(Ipv6Net::new(own, 64).unwrap().network()),
            &[(local, 1)],
        );
        [(own.into(), 64), (link.into(), 64)]
    }

    fn routes6(&mut self, mtu: u32) {
        let [_, east, south, _] = [(WEST, 1500), (EAST, mtu), (SOUTH, 1500), (MUTE, 1500)]
            .map(|(index, mtu)| self.neighbor6(index, &format!("2001:db8:{index}::2"), mtu));
        self.neighbor6(EAST, "2001:db8:2::3", mtu);
        let asked = self.neighbor6(EAST, "2001:db8:2::9", mtu);
        let failed = self.neighbor6(EAST, "2001:db8:2::10", mtu);
        self.set_neighbor(asked, NeighborState::Incomplete);
        self.set_neighbor(failed, NeighborState::Failed);
        let far = self.nexthops.add_adjacency(Adjacency::neighbor(
            EAST,
            address("fe80::99"),
            mtu,
            our_mac(EAST).0,
        ));
        let [hole, unreachable, prohibited] = self.nowhere();
        for (prefix, paths) in [
            ("2001:db8:a::/48", &[(east, 1)][..]),
            ("2001:db8:b::/48", &[(east, 3), (south, 1)]),
            ("2001:db8:c::/48", &[(hole, 1)]),
            ("2001:db8:c1::/48", &[(unreachable, 1)]),
            ("2001:db8:c2::/48", &[(prohibited, 1)]),
            ("2001:db8:d::/48", &[(asked, 1)]),
            ("2001:db8:e::/48", &[(failed, 1)]),
            ("2001:db8:f::/48", &[(far, 1)]),
        ] {
            self.route6(prefix.parse().unwrap(), paths);
        }
        // RFC 8950: IPv4 by IPv6 next hops.
        self.route("203.0.113.0/24".parse().unwrap(), &[(far, 1)]);
        self.route("192.0.2.0/24".parse().unwrap(), &[(east, 1)]);
    }

    /// The ends of routes that lead nowhere.
    fn nowhere(&mut self) -> [u32; 3] {
        [
            Adjacency::blackhole(),
            Adjacency::rejected(),
            Adjacency::prohibited(),
        ]
        .map(|end| self.nexthops.add_adjacency(end))
    }

    /// Adds a reachable IPv6 neighbour and its host route; returns the adjacency.
    pub(crate) fn neighbor6(&mut self, interface: u32, address: &str, mtu: u32) -> u32 {
        let [.., host] = ip6(address);
        let adjacency =
            Adjacency::neighbor(interface, self::address(address), mtu, our_mac(interface).0);
        adjacency.set_neighbor(NeighborState::Reachable, their_mac(interface as u8, host).0);
        let number = self.nexthops.add_adjacency(adjacency);
        self.route6(
            Ipv6Net::from(address.parse::<Ipv6Addr>().unwrap()),
            &[(number, 1)],
        );
        number
    }

    pub(crate) fn route6(&mut self, prefix: Ipv6Net, paths: &[(u32, u32)]) {
        let paths = paths.iter().map(|&(adjacency, weight)| Path {
            weight,
            ..Path::to(adjacency)
        });
        let group = self.nexthops.acquire(Group::new(paths).unwrap()).unwrap();
        self.fib6.insert(prefix, group).unwrap();
    }

    /// The adjacency of a neighbour.
    pub(crate) fn adjacency_of(&self, neighbor: &str) -> u32 {
        self.nexthops
            .adjacencies()
            .find(|(_, end)| end.address == address(neighbor))
            .unwrap()
            .0
    }

    /// Connected subnets: the addresses, their directed broadcasts, and the subnet itself.
    pub(crate) fn connect(&mut self, index: u32, mtu: u32, addresses: &[Ipv4Net]) {
        if addresses.is_empty() {
            return;
        }
        let glean = self
            .nexthops
            .add_adjacency(Adjacency::glean(index, mtu, our_mac(index).0));
        let local = self.nexthops.add_adjacency(Adjacency::local(index));
        for net in addresses {
            self.route(net.trunc(), &[(glean, 1)]);
            self.route(Ipv4Net::from(net.addr()), &[(local, 1)]);
            self.route(Ipv4Net::from(net.broadcast()), &[(local, 1)]);
        }
    }

    fn routes(&mut self, mtu: u32) {
        self.neighbor(WEST, "10.0.1.2", 1500);
        let east = self.neighbor(EAST, "10.0.2.2", mtu);
        self.neighbor(EAST, "10.0.2.3", mtu);
        let south = self.neighbor(SOUTH, "10.0.3.2", 1500);
        self.neighbor(MUTE, "10.0.8.2", 1500);
        let asked = self.neighbor(EAST, "10.0.2.9", mtu);
        let failed = self.neighbor(EAST, "10.0.2.10", mtu);
        self.set_neighbor(asked, NeighborState::Incomplete);
        self.set_neighbor(failed, NeighborState::Failed);
        let [hole, unreachable, prohibited] = self.nowhere();
        for (prefix, paths) in [
            ("192.168.0.0/16", &[(east, 1)][..]),
            ("172.16.0.0/16", &[(east, 3), (south, 1)]),
            ("198.18.0.0/24", &[(hole, 1)]),
            ("198.18.1.0/24", &[(unreachable, 1)]),
            ("198.18.2.0/24", &[(prohibited, 1)]),
            ("198.19.0.0/24", &[(asked, 1)]),
            ("198.19.1.0/24", &[(failed, 1)]),
        ] {
            self.route(prefix.parse().unwrap(), paths);
        }
    }

    /// Adds a reachable neighbour and its host route; returns the adjacency.
    pub(crate) fn neighbor(&mut self, interface: u32, address: &str, mtu: u32) -> u32 {
        let [_, _, subnet, host] = ip(address).to_be_bytes();
        let adjacency =
            Adjacency::neighbor(interface, self::address(address), mtu, our_mac(interface).0);
        adjacency.set_neighbor(NeighborState::Reachable, their_mac(subnet, host).0);
        let number = self.nexthops.add_adjacency(adjacency);
        self.route(
            Ipv4Net::from(address.parse::<Ipv4Addr>().unwrap()),
            &[(number, 1)],
        );
        number
    }

    /// Sets a neighbour's state; it keeps its address.
    pub(crate) fn set_neighbor(&mut self, adjacency: u32, state: NeighborState) {
        self.nexthops.adjacency(adjacency).unwrap().set_state(state);
    }

    pub(crate) fn route(&mut self, prefix: Ipv4Net, paths: &[(u32, u32)]) {
        let paths = paths.iter().map(|&(adjacency, weight)| Path {
            weight,
            ..Path::to(adjacency)
        });
        let group = self.nexthops.acquire(Group::new(paths).unwrap()).unwrap();
        self.fib.insert(prefix, group).unwrap();
    }

    /// Shows the worker what has changed.
    pub(crate) fn publish(&mut self) {
        self.tables.nexthops = self.nexthops.snapshot();
    }

    /// A packet with these bytes, in as many chunks as it takes.
    pub(crate) fn packet(&mut self, frame: &[u8]) -> Pkt {
        self.packet_cut(frame, DATA_ROOM)
    }

    /// A packet in chunks of at most `most` bytes.
    pub(crate) fn packet_cut(&mut self, frame: &[u8], most: usize) -> Pkt {
        let mut pieces = frame.chunks(most);
        let mut packet = self.cache.alloc().unwrap();
        assert!(packet.fill(pieces.next().unwrap_or(&[])));
        for piece in pieces {
            let mut tail = self.cache.alloc().unwrap();
            assert!(tail.fill(piece));
            assert!(packet.append(tail).is_ok());
        }
        packet
    }

    /// Sends frames in on an interface, as one vector; what leaves, in order for each interface.
    pub(crate) fn send_all(&mut self, interface: u32, frames: &[Vec<u8>]) -> Vec<Sent> {
        let mut vector = Vector::default();
        for frame in frames {
            let packet = self.packet(frame);
            vector.push(packet);
        }
        self.send_vector(interface, &mut vector)
    }

    pub(crate) fn send_vector(&mut self, interface: u32, vector: &mut Vector) -> Vec<Sent> {
        self.breathe(interface, vector);
        self.balance();
        std::mem::take(&mut *self.caught.lock().unwrap())
    }

    pub(crate) fn send(&mut self, interface: u32, frame: &[u8]) -> Vec<Sent> {
        self.send_all(interface, &[frame.to_vec()])
    }

    /// Sends one frame in, which must come out as one.
    pub(crate) fn send_one(&mut self, interface: u32, frame: &[u8]) -> Sent {
        let mut sent = self.send(interface, frame);
        assert_eq!(sent.len(), 1, "one frame for one frame: {:?}", self.drops());
        sent.remove(0)
    }

    /// Runs what is queued and hands it to the ports; everything is counted afterwards.
    pub(crate) fn turn(&mut self) -> Vec<Sent> {
        self.breathe(WEST, &mut Vector::default());
        self.balance();
        std::mem::take(&mut *self.caught.lock().unwrap())
    }

    /// What a worker does in a turn, and nothing else.
    pub(crate) fn breathe(&mut self, interface: u32, vector: &mut Vector) {
        self.breathe_at(self.entry, interface, vector);
    }

    /// The same with the received packets at a node in the middle of the graph.
    pub(crate) fn breathe_at(&mut self, entry: usize, interface: u32, vector: &mut Vector) {
        let interfaces = self.tables.interfaces.iter().flatten();
        self.own.set(interfaces.map(|entry| &entry.interface));
        let mut env = Env {
            world: &self.tables,
            now: self.now,
            cache: &mut self.cache,
            events: &mut self.events.0,
            event_sent: false,
        };
        self.graph.inhale(&mut env, entry, interface, vector);
        self.graph.run(&mut env);
        self.graph.expire(&mut env);
        while let Some((interface, mut packets)) = self.graph.next_leaving() {
            let port = &mut self.ports[interface as usize];
            transmit(&mut self.graph, &mut env, self.stage, 0, port, &mut packets);
            self.graph.recycle(interface, packets);
        }
    }

    /// Gives up what waits.
    pub(crate) fn give_up(&mut self, reason: DropReason) {
        let mut env = Env {
            world: &self.tables,
            now: self.now,
            cache: &mut self.cache,
            events: &mut self.events.0,
            event_sent: false,
        };
        self.graph.give_up(&mut env, None, reason);
        self.balance();
    }

    /// Empties the pool but for `left` packets.
    pub(crate) fn starve(&mut self, left: usize) {
        while let Some(packet) = self.cache.alloc() {
            self.taken.push(packet);
        }
        for _ in 0..left {
            self.cache.free(self.taken.pop().unwrap());
        }
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.events.1.pop()).collect()
    }

    /// Every packet is somewhere: in the balance, in the pool, in the counters of interfaces.
    pub(crate) fn balance(&self) {
        let counters = self.graph.counters();
        let t = &counters.totals;
        let gone = t.output.get() + t.dropped.get() + t.consumed.get() + t.held.get();
        assert_eq!(
            t.input.get() + t.originated.get() + t.replicated.get(),
            gone,
            "the balance: {t:?}"
        );
        let dropped: u64 = self.drops().iter().map(|&(.., count)| count).sum();
        assert_eq!(dropped, t.dropped.get(), "every drop has a reason");
        if self.graph.held() == 0 {
            let free = self.pool.usage().free + self.cache.held() + self.taken.len();
            assert_eq!(free, self.pool.chunks(), "nothing leaks from the pool");
        }
        let (mut rx, mut tx) = (0, 0);
        for interface in self.tables.interfaces.iter().flatten() {
            let sums = &interface.interface.counters;
            if interface.interface.kind == Kind::Port {
                rx += sums.rx().packets;
                tx += sums.tx().packets;
            }
            for sums in [sums.rx(), sums.tx()] {
                assert_eq!(sums.unicast + sums.multicast + sums.broadcast, sums.packets);
            }
        }
        assert_eq!(
            rx + counters.orphans.sum(),
            t.input.get(),
            "ports, or nobody's, count what comes in"
        );
        assert_eq!(tx, t.output.get(), "ports count what goes out");
    }

    /// All drops that happened: node, reason, interface, how many.
    pub(crate) fn drops(&self) -> Vec<(&'static str, DropReason, u32, u64)> {
        let map = self.graph.drop_map();
        let counters = self.graph.counters();
        let mut drops = Vec::new();
        for (place, &(node, reason)) in map.pairs().iter().enumerate() {
            let mut note = |interface, count| {
                if count > 0 {
                    drops.push((node, reason, interface, count));
                }
            };
            note(0, counters.orphans.get(place));
            for entry in self.tables.interfaces.iter().flatten() {
                note(entry.interface.index, entry.drops[0].get(place));
            }
        }
        drops
    }

    /// How many packets were dropped for a reason, wherever.
    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.drops()
            .iter()
            .filter(|drop| drop.1 == reason)
            .map(|drop| drop.3)
            .sum()
    }

    pub(crate) fn interface(&self, index: u32) -> &Interface {
        self.tables.interface(index).unwrap()
    }

    /// Changes an interface as the control side would: another value in its place.
    pub(crate) fn change(&mut self, index: u32, change: impl FnOnce(&mut Interface)) {
        let place = self.tables.interfaces[index as usize].as_mut().unwrap();
        change(&mut Arc::make_mut(place).interface);
    }

    /// Adds an interface as the control side would, with a port behind it that keeps what it sends.
    pub(crate) fn install(&mut self, mut interface: Interface) {
        interface.own = Arc::clone(&self.own);
        let place = interface.index as usize;
        if self.tables.interfaces.len() <= place {
            self.tables.interfaces.resize(place + 1, None);
        }
        let drops = [self.graph.drop_map().counters()].into();
        self.tables.interfaces[place] = Some(Arc::new(Entry::new(interface, drops)));
        for interface in self.ports.len() as u32..=place as u32 {
            let queue = Catcher {
                interface,
                room: Arc::clone(&self.room),
                caught: Arc::clone(&self.caught),
            };
            self.ports.push(PortTx {
                interface,
                queue: Box::new(queue),
            });
        }
    }
}
