//! What taps see on interfaces that no port feeds: frames as they are there, once, in each direction.

use std::sync::{Arc, Mutex};

use weir_buf::Pkt;
use weir_graph::{DropReason, Look, Marker, Marks, PacketOutcome, Point, Tap};
use weir_nodes::Tables;
use weir_port::interface::Input;
use weir_port::sub_interface::SubInterface;
use weir_wire::build;

use crate::bridge::BVI;
use crate::rig::*;
use crate::vlan::{Q, dot1q, tagged};
use crate::vxlan::{self, PORT4, TUNNEL4};

type Seen = Vec<(bool, u32, bool, Vec<u8>)>;

/// Keeps what it is shown: whether it came in, by which interface, whether that is an inner one, and the frame.
struct Watcher(Arc<Mutex<Seen>>);

impl Tap<Tables> for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn look(&mut self, look: &Look<'_, Tables>, packets: &[Pkt], _: &mut Marks) -> u64 {
        let frames = packets.iter().map(|packet| {
            (
                look.point == Point::Rx,
                look.interface,
                look.inner,
                packet.data().to_vec(),
            )
        });
        self.0.lock().unwrap().extend(frames);
        0
    }
}

/// A router whose interfaces of these numbers are looked at.
fn watched(prepare: impl FnOnce(&mut Router), interfaces: &[u32]) -> (Router, Arc<Mutex<Seen>>) {
    let seen = Arc::<Mutex<Seen>>::default();
    let setup = Setup::default();
    let mut router = Router::built(
        setup,
        weir_nodes::graph(setup.icmp).tap(Box::new(Watcher(seen.clone()))),
    );
    prepare(&mut router);
    for &interface in interfaces {
        router.change(interface, |it| (it.rx_taps, it.tx_taps) = (1, 1));
    }
    router.tables.inner_taps = true;
    (router, seen)
}

fn take(seen: &Mutex<Seen>) -> Seen {
    std::mem::take(&mut seen.lock().unwrap())
}

fn vlans(router: &mut Router) {
    let vlan = |vlan| (SubInterface::new(WEST, dot1q(vlan)), Input::Routed);
    router.add_sub_interfaces(&[vlan(100), vlan(200)]);
    router.connect_sub_interface(20, "10.0.20.1/24", "10.0.20.2");
    router.connect_sub_interface(21, "10.0.21.1/24", "10.0.21.2");
}

#[test]
fn on_a_sub_interface_frames_have_no_tag() {
    let (mut router, seen) = watched(vlans, &[20]);
    let frame = build::udp4(&through("10.0.21.2"), &[1; 30]);
    let (_, left) = router.send_one(WEST, &tagged(&frame, &[(Q, 100)]));
    assert_eq!(
        take(&seen),
        [(true, 20, true, frame.clone())],
        "the other VLAN is not looked at"
    );
    assert_eq!(left.len(), frame.len() + 4);
    // Out by it, and an echo: in and out.
    let out = build::udp4(&through("10.0.20.2"), &[1; 30]);
    router.send(WEST, &tagged(&out, &[(Q, 200)]));
    let seen_events = take(&seen);
    assert_eq!(
        (
            seen_events.len(),
            seen_events[0].0,
            seen_events[0].1,
            seen_events[0].3.len()
        ),
        (1, false, 20, out.len())
    );
    router.send(
        WEST,
        &tagged(
            &build::echo4(&through("10.0.20.1"), 8, 1, 1, &[1; 8]),
            &[(Q, 100)],
        ),
    );
    // The answer goes by the route to 10.0.1.2, which is behind the port itself.
    assert_eq!(take(&seen).len(), 1);
    // What is the port's own, and what is nobody's, is not the sub-interface's.
    router.send(WEST, &frame);
    router.send(WEST, &tagged(&frame, &[(Q, 300)]));
    assert_eq!(take(&seen), []);
}

#[test]
fn who_looks_at_the_port_too_sees_both() {
    let (mut router, seen) = watched(vlans, &[WEST, 20]);
    let frame = build::udp4(&through("10.0.2.2"), &[1; 30]);
    router.send_one(WEST, &tagged(&frame, &[(Q, 100)]));
    let seen_events = take(&seen);
    assert_eq!(
        seen_events,
        [
            (true, WEST, false, tagged(&frame, &[(Q, 100)])),
            (true, 20, true, frame)
        ]
    );
}

#[test]
fn in_a_tunnel_frames_are_as_they_are_inside() {
    let (mut router, seen) = watched(vxlan::add, &[TUNNEL4]);
    let frame = vxlan::inner(1, 30);
    router.send_one(PORT4, &frame);
    router.send_one(WEST, &vxlan::from_far(&frame));
    assert_eq!(
        take(&seen),
        [
            (false, TUNNEL4, true, frame.clone()),
            (true, TUNNEL4, true, frame)
        ]
    );
}

#[test]
fn on_a_bond_frames_are_those_of_all_members_and_lacp_is_not() {
    let (mut router, seen) = watched(crate::bond::add, &[crate::bond::BOND]);
    let frame = build::udp4(&crate::bond::up("10.0.2.2", 7), &[1; 30]);
    router.send_one(crate::bond::A, &frame);
    router.send_one(crate::bond::B, &frame);
    router.send(crate::bond::A, &crate::bond::slow(&[1; 60]));
    assert_eq!(take(&seen), vec![(true, crate::bond::BOND, true, frame); 2]);
    let (member, left) = router.send_one(WEST, &build::udp4(&through("10.0.40.2"), &[1; 30]));
    assert!(member >= crate::bond::A);
    assert_eq!(take(&seen), [(false, crate::bond::BOND, true, left)]);
}

#[test]
fn on_the_routed_side_of_a_bridge_frames_are_its_own() {
    let (mut router, seen) = watched(
        |router| crate::bridge::add_routed_side(router, |_| {}),
        &[BVI],
    );
    // Flooded, as nobody was heard in the domain.
    let (_, left) = router
        .send(WEST, &build::udp4(&through("10.0.20.2"), &[1; 30]))
        .remove(0);
    assert_eq!(take(&seen), [(false, BVI, true, left)]);
}

#[test]
fn nobody_is_shown_anything_while_nobody_looks() {
    let (mut router, seen) = watched(vlans, &[20]);
    router.change(20, |it| (it.rx_taps, it.tx_taps) = (0, 0));
    router.tables.inner_taps = false;
    router.send_one(
        WEST,
        &tagged(&build::udp4(&through("10.0.21.2"), &[1; 30]), &[(Q, 100)]),
    );
    assert_eq!(take(&seen), []);
}

/// What a driver refused of each vector that it requested: their last octets, and how they end.
type Refusals = Vec<(Vec<u8>, Option<DropReason>)>;

/// Looks at what goes out, and wants to know what the driver takes of every second vector.
struct Asker {
    vectors: usize,
    seen_events: Arc<Mutex<Refusals>>,
}

impl Tap<Tables> for Asker {
    fn name(&self) -> &'static str {
        "asker"
    }

    fn look(&mut self, look: &Look<'_, Tables>, _: &[Pkt], marks: &mut Marks) -> u64 {
        if look.point == Point::Tx {
            self.vectors += 1;
            if self.vectors % 2 == 1 {
                marks.await_driver();
            }
        }
        0
    }

    fn marker(&mut self) -> Option<&mut dyn Marker> {
        Some(self)
    }
}

impl Marker for Asker {
    fn outcome(&mut self, _: &Pkt, _: PacketOutcome) {}

    fn part(&mut self, _: &Pkt) -> u32 {
        0
    }

    fn leaving(&mut self, _: u32, _: &[Pkt], _: usize) -> bool {
        false
    }

    fn left(&mut self, refused: &[Pkt], outcome: PacketOutcome) {
        let reason = if let PacketOutcome::Dropped { reason, .. } = outcome {
            Some(reason)
        } else {
            None
        };
        let places = refused
            .iter()
            .filter_map(|packet| packet.data().last().copied())
            .collect();
        self.seen_events.lock().unwrap().push((places, reason));
    }
}

#[test]
fn who_looks_at_what_goes_out_can_ask_what_the_driver_took() {
    let seen_events = Arc::<Mutex<Refusals>>::default();
    let setup = Setup::default();
    let asker = Asker {
        vectors: 0,
        seen_events: Arc::clone(&seen_events),
    };
    let mut router = Router::built(setup, weir_nodes::graph(setup.icmp).tap(Box::new(asker)));
    router.change(EAST, |it| it.tx_taps = 1);
    let frames: Vec<Vec<u8>> = (0..5)
        .map(|n| build::udp4(&through("10.0.2.2"), &[n; 30]))
        .collect();
    for room in [3, 3, usize::MAX] {
        *router.room.lock().unwrap() = room;
        router.send_all(WEST, &frames);
    }
    let refused = (vec![3, 4], Some(DropReason::TxFull));
    assert_eq!(
        *seen_events.lock().unwrap(),
        [refused, (vec![], Some(DropReason::TxFull))],
        "not of the second vector, and of one that was taken whole"
    );
}
