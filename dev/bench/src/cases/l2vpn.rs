//! `l2vpn-in`, `l2vpn-out`: the two ends of an Ethernet pseudowire with a control word, cross-connected to a port; 64k
//! flows in shuffled order.
//!
//! In is what the customer sends: it gets two labels, the pseudowire's and that of the label path. Out is what comes
//! under the pseudowire's label, the last hop having taken the other off.

use std::sync::Arc;

use weir_fib::{Adjacency, Group, LabelEntry, LabelStack, Path, Payload, TtlMode};
use weir_nodes::{Entry, IcmpLimit};
use weir_port::interface::{Input, Interface, InterfaceCounters, Kind as Sort, Output};
use weir_port::pseudowire::Pseudowire;

use crate::case::{Case, Kind, Limit};
use crate::scene::{IN, OURS, OUT, PEER, Scene, udp4};

pub(super) const INTO: Case = Case {
    name: "l2vpn-in",
    about: "frames into a pseudowire: control word and two labels on, 64k flows",
    kind: Kind::Packets {
        limit: Limit::TimesIp4(1.5),
        set: into,
    },
};

pub(super) const OUT_OF: Case = Case {
    name: "l2vpn-out",
    about: "frames out of a pseudowire: label and control word off, 64k flows",
    kind: Kind::Packets {
        limit: Limit::TimesIp4(1.5),
        set: out_of,
    },
};

const FLOWS: u32 = 65_536;
/// The pseudowire's interface.
const WIRE: u32 = 4;
/// The label of this end, that of the far end, and that of the label path there.
const NEAR: u32 = 16_000;
const FAR: u32 = 24_000;
const TUNNEL: u32 = 24_001;

/// A frame of a customer's.
fn frame(number: u32) -> [u8; crate::scene::FRAME] {
    let flow = number.wrapping_mul(40_503) % FLOWS;
    udp4(flow, 0x0a01_0000 + flow)
}

/// The pseudowire, whose frames leave by `out`.
fn wire(scene: &mut Scene, out: u32) {
    let neighbor = scene.neighbors(1);
    let number = scene
        .nexthops
        .group(neighbor[0])
        .and_then(|group| Some(group.paths().first()?.adjacency))
        .unwrap_or(0);
    let labels = LabelStack {
        mode: TtlMode::Pipe,
        ..LabelStack::of(&[TUNNEL, FAR])
    };
    let one = |path| Group::new([path]);
    let group = one(Path {
        labels,
        ..Path::to(number)
    })
    .and_then(|group| scene.nexthops.acquire(group))
    .expect("a group of one path");
    let end = scene.nexthops.add_adjacency(Adjacency::pseudowire(WIRE));
    let incoming = one(Path::to(end))
        .and_then(|group| scene.nexthops.acquire(group))
        .expect("a group of one path");
    scene.tables.lfib.set(
        NEAR,
        LabelEntry::new(incoming, TtlMode::Pipe, Payload::Either),
    );
    let interface = Interface {
        input: Input::CrossConnect(out),
        output: Output::Pseudowire,
        pseudowire: Some(Pseudowire::new(group, true, None)),
        can_send: true,
        ..Interface::at_rest(
            WIRE,
            "pw0".into(),
            Sort::Pseudowire,
            OURS,
            Arc::new(InterfaceCounters::new(1)),
        )
    };
    let map = weir_nodes::graph(IcmpLimit::default()).drop_map();
    scene.tables.interfaces.push(Some(Arc::new(Entry::new(
        interface,
        [map.counters()].into(),
    ))));
}

fn into(scene: &mut Scene) {
    wire(scene, IN);
    scene.interface(IN).input = Input::CrossConnect(WIRE);
    (0..FLOWS).for_each(|number| scene.frames.push(&frame(number)));
    scene.check = Box::new(|sent, got| {
        let entries = [
            (TUNNEL << 12 | 0xff).to_be_bytes(),
            (FAR << 12 | 0x1ff).to_be_bytes(),
            [0; 4],
        ]
        .concat();
        let wanted = [
            &[2, 0, 0, 0, 1, 1],
            &OURS.0[..],
            &[0x88, 0x47],
            &entries,
            sent,
        ]
        .concat();
        if got == wanted {
            Ok(())
        } else {
            Err(format!("not in the pseudowire as it should be: {got:02x?}"))
        }
    });
}

fn out_of(scene: &mut Scene) {
    wire(scene, OUT);
    let interface = scene.interface(IN);
    (interface.input, interface.mpls) = (Input::Routed, true);
    let entry = (NEAR << 12 | 0x100 | 62).to_be_bytes();
    for number in 0..FLOWS {
        scene.frames.push(
            &[
                &OURS.0[..],
                &PEER.0,
                &[0x88, 0x47],
                &entry,
                &[0; 4],
                &frame(number),
            ]
            .concat(),
        );
    }
    scene.check = Box::new(|sent, got| {
        if got == &sent[22..] {
            Ok(())
        } else {
            Err(format!("not as it went in: {got:02x?}"))
        }
    });
}
