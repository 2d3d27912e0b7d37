//! Peers that lie to a whole router: they are parted from with a reason, and the other ports go on.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::SealFlags;
use rustix::net::{SocketAddrUnix, SocketFlags, accept_with, bind, connect, listen};

use crate::raw::{
    ACK, ADD_REGION, ADD_RING, CONNECT, CONNECTED, HELLO, INIT, RawRing, Talk, add_region,
    add_ring, event, memory, message, seqpacket,
};
use crate::router::{Folder, Weir, wait_for};

const SIZE: u16 = 32;
const LOG2: u8 = 5;
const REGION: u64 = 16_384;
const TO_MASTER: u64 = 0;
const TO_SLAVE: u64 = 1024;
const BUFFERS: u32 = 4096;

/// A router with a memif, and beside it a generator whose packets are swallowed.
fn router(folder: &Folder, role: &str) -> (Weir, SocketAddrUnix) {
    let socket = folder.file("memif.sock");
    let weir = Weir::start(
        folder,
        role,
        &format!(
            "interfaces:
  gen:
    l2xc: out
    device: {{ driver: generator, streams: [ {{ name: a, rate: 2000, source: 10.0.0.1, destination: 10.1.0.1 }} ] }}
  out: {{ device: {{ driver: 'null' }} }}
  m0: {{ device: {{ driver: memif, socket: {socket}, id: 5, role: {role}, ring-size: {SIZE} }}, l2xc: sink }}
  sink: {{ device: {{ driver: 'null' }} }}
"
        ),
    );
    (weir, SocketAddrUnix::new(socket).unwrap())
}

/// The other ports go on, and lose nothing that came in.
fn others_go_on(weir: &Weir) {
    let before = weir.packets("out").1;
    wait_for("the other ports go on", || {
        weir.packets("out").1 > before + 200
    });
    weir.assert_nothing_dropped();
}

/// The peer was parted from for this reason, which is instructed to it, to people and to programs.
fn parted(weir: &Weir, talk: Talk, reason: &str, round: u64) {
    wait_for(reason, || weir.disconnects("m0", reason) == round);
    let reported = talk.farewell();
    assert!(!reported.is_empty(), "{reason}");
    wait_for("the link is down", || !weir.link_is_up("m0"));
    assert_eq!(
        weir.memif("m0")["last_disconnect"].as_str(),
        Some(reported.as_str())
    );
    assert!(weir.shown("memif").contains(reason) && weir.shown("memif").contains(&reported));
}

/// Connects as a slave whose memory holds both rings and some buffers.
fn as_slave(weir: &Weir, address: &SocketAddrUnix) -> (Talk, File) {
    let talk = Talk(seqpacket());
    wait_for("the router listens", || connect(&talk.0, address).is_ok());
    talk.expect(HELLO);
    talk.say(
        &message(
            INIT,
            &[
                &0x0200u16.to_le_bytes(),
                &5u32.to_le_bytes(),
                &[0],
                &[0; 24],
                b"hostile",
            ],
        ),
        &[],
    );
    talk.expect(ACK);
    let file = memory(REGION, SealFlags::SHRINK);
    for offset in [TO_MASTER, TO_SLAVE] {
        RawRing {
            file: &file,
            offset,
            size: SIZE,
        }
        .initialise();
    }
    talk.say(&add_region(0, REGION), &[file.as_fd()]);
    talk.expect(ACK);
    let events = [event(), event()];
    for (to_master, offset) in [(true, TO_MASTER), (false, TO_SLAVE)] {
        talk.say(
            &add_ring(to_master, 0, 0, offset as u32, LOG2),
            &[events[usize::from(to_master)].as_fd()],
        );
        talk.expect(ACK);
    }
    talk.say(&message(CONNECT, &[b"evil0"]), &[]);
    talk.expect(CONNECTED);
    wait_for("the link is up", || weir.link_is_up("m0"));
    assert_eq!(
        (
            weir.memif("m0")["peer"].as_str(),
            weir.memif("m0")["peer_interface"].as_str()
        ),
        (Some("hostile"), Some("evil0"))
    );
    (talk, file)
}

#[test]
fn slaves_that_write_nonsense_are_sent_away() {
    let folder = Folder::new();
    let (weir, address) = router(&folder, "master");
    type Lie = fn(&RawRing<'_>);
    let lies: [(&str, u64, Lie); 5] = [
        // More than the ring holds.
        ("bad_index", 1, |ring| ring.set_head(SIZE + 1)),
        ("bad_index", 2, |ring| ring.set_head(u16::MAX)),
        // Behind the region's end, in no region at all.
        ("bad_descriptor", 1, |ring| {
            ring.set(0, 0, 0, 2000, REGION as u32 - 100);
            ring.set_head(1);
        }),
        ("bad_descriptor", 2, |ring| {
            ring.set(0, 0, 9, 100, BUFFERS);
            ring.set_head(1);
        }),
        ("bad_chain", 1, |ring| {
            ring.set(0, 0, 0, u32::MAX, u32::MAX);
            ring.set_head(1);
        }),
    ];
    for (reason, round, lie) in lies {
        let (talk, file) = as_slave(&weir, &address);
        lie(&RawRing {
            file: &file,
            offset: TO_MASTER,
            size: SIZE,
        });
        parted(&weir, talk, reason, round);
        others_go_on(&weir);
    }
    // An honest one is served, and nothing of the others came in.
    let (talk, file) = as_slave(&weir, &address);
    let ring = RawRing {
        file: &file,
        offset: TO_MASTER,
        size: SIZE,
    };
    ring.set(0, 0, 0, 100, BUFFERS);
    ring.set_head(1);
    wait_for("its frame arrives", || weir.packets("sink").1 == 1);
    assert_eq!(weir.packets("m0"), (1, 0));
    drop(talk);
    let log = weir.stop();
    assert!(
        log.contains("m0: no peer: \"an index in a ring is out of range\"")
            && !log.contains("panic"),
        "{log}"
    );
}

#[test]
fn a_peer_that_goes_and_comes_between_two_looks_is_reported_of_as_both() {
    let folder = Folder::new();
    let (weir, address) = router(&folder, "master");
    let mut before = as_slave(&weir, &address);
    for round in 1..=4 {
        // Mostly faster than anybody looks.
        drop(before);
        before = as_slave(&weir, &address);
        wait_for("the other one is seen", || {
            weir.memif("m0")["connects"] == round + 1
        });
        wait_for("both are informed of", || {
            let log = weir.log();
            let count = |line: &str| log.matches(line).count() as u64;
            (
                count("m0: the peer is "),
                count("m0: link is down"),
                count("m0: link is up"),
            ) == (round + 1, round, round + 1)
        });
        assert!(weir.link_is_up("m0"));
    }
    assert_eq!(weir.disconnects("m0", "peer_gone"), 4);
}

/// What a slave shares.
struct Lent {
    talk: Talk,
    rings: File,
    to_slave: u64,
}

fn as_master(weir: &Weir, listener: &OwnedFd) -> Lent {
    let talk = Talk(accept_with(listener, SocketFlags::CLOEXEC).unwrap());
    let words = [0x0200u16, 0x0200, 1, 0, 0].map(u16::to_le_bytes).concat();
    talk.say(&message(HELLO, &[&[b'x'; 32], &words, &[14]]), &[]);
    talk.expect(INIT);
    talk.say(&message(ACK, &[]), &[]);
    let rings = File::from(talk.expect(ADD_REGION).1.unwrap());
    talk.say(&message(ACK, &[]), &[]);
    talk.expect(ADD_REGION);
    let mut to_slave = 0;
    for _ in 0..2 {
        talk.say(&message(ACK, &[]), &[]);
        let (bytes, _) = talk.expect(ADD_RING);
        if bytes[2] & 1 == 0 {
            to_slave = u64::from(u32::from_le_bytes(bytes[8..12].try_into().unwrap()));
        }
    }
    talk.say(&message(ACK, &[]), &[]);
    talk.expect(CONNECT);
    talk.say(&message(CONNECTED, &[b"evil0"]), &[]);
    wait_for("the link is up", || weir.link_is_up("m0"));
    Lent {
        talk,
        rings,
        to_slave,
    }
}

#[test]
fn masters_that_write_nonsense_are_left() {
    let folder = Folder::new();
    let (weir, address) = router(&folder, "slave");
    let listener = seqpacket();
    bind(&listener, &address).unwrap();
    listen(&listener, 4).unwrap();
    type Lie = fn(&RawRing<'_>);
    let lies: [(&str, u64, Lie); 3] = [
        ("bad_index", 1, |ring| ring.set_tail(u16::MAX)),
        // Longer than the buffer that was offered.
        ("bad_length", 1, |ring| {
            let (_, region, length, offset) = ring.get(0);
            ring.set(0, 0, region, length + 1, offset);
            ring.set_tail(1);
        }),
        ("bad_length", 2, |ring| {
            ring.set(0, 0, 1, u32::MAX, 0);
            ring.set_tail(1);
        }),
    ];
    for (reason, round, lie) in lies {
        let Lent {
            talk,
            rings,
            to_slave,
        } = as_master(&weir, &listener);
        let ring = RawRing {
            file: &rings,
            offset: to_slave,
            size: SIZE,
        };
        wait_for("buffers are offered", || ring.head() > 0);
        lie(&ring);
        parted(&weir, talk, reason, round);
        others_go_on(&weir);
    }
    assert_eq!(weir.packets("m0"), (0, 0));
    weir.stop();
}

#[test]
fn who_lacks_the_secret_is_refused_and_both_sides_can_see_it() {
    let folder = Folder::new();
    let socket = folder.file("memif.sock");
    let text = |role: &str, secret: &str| {
        format!(
            "interfaces:\n  m0: {{ device: {{ driver: memif, socket: {socket}, role: {role}, secret: {secret} }} }}\n"
        )
    };
    let master = Weir::start(&folder, "master", &text("master", "sesame"));
    let slave = Weir::start(&folder, "slave", &text("slave", "barley"));
    wait_for("it tries more than once", || {
        master.disconnects("m0", "wrong_secret") > 2
    });
    assert!(!master.link_is_up("m0") && !slave.link_is_up("m0"));
    assert_eq!(
        slave.memif("m0")["last_disconnect"],
        "the peer took its leave: the secret is wrong"
    );
    // However often it happens, it is reported once.
    assert_eq!(
        slave.log().matches("the secret is wrong").count(),
        1,
        "{}",
        slave.log()
    );
    slave.change("barley", "sesame");
    wait_for("they meet", || {
        master.link_is_up("m0") && slave.link_is_up("m0")
    });
    for log in [master.stop(), slave.stop()] {
        assert!(!log.contains("sesame") && !log.contains("barley"), "{log}");
    }
}
