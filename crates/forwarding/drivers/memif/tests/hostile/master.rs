//! A Weir slave and masters that lie. The slave has lent such a master its whole pool, so that what
//! counts here is that nothing leaks, nothing is used twice, and no lie is followed.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{SocketFlags, accept_with, bind, listen};
use weir_memif::{MemifConfig, Role, Socket};

use crate::common::{End, frame, pool, wait_for};
use crate::raw::{
    ACK, ADD_REGION, ADD_RING, CONNECT, CONNECTED, HELLO, INIT, RawRing, Talk, address, message,
    seqpacket,
};

const SIZE: u16 = 32;

/// A slave, and the socket that it calls.
fn slave() -> (End, OwnedFd) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "weir-hostile-master-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let listener = seqpacket();
    bind(&listener, &address(&name)).unwrap();
    listen(&listener, 4).unwrap();
    let config = MemifConfig {
        ring_size: usize::from(SIZE),
        ..MemifConfig::new(Role::Slave, Socket::Abstract(name), 5)
    };
    (End::open(&config, &pool(512)), listener)
}

fn answer(listener: &OwnedFd) -> Talk {
    Talk(accept_with(listener, SocketFlags::CLOEXEC).unwrap())
}

fn hello(versions: (u16, u16), regions: u16, rings: (u16, u16), log2_size: u8) -> [u8; 128] {
    let words = [versions.0, versions.1, regions, rings.0, rings.1]
        .map(u16::to_le_bytes)
        .concat();
    message(HELLO, &[&[b'x'; 32], &words, &[log2_size]])
}

/// What the slave shares.
struct Shared {
    rings: File,
    pool: File,
    /// Offsets of the ring to the master and the ring to the slave.
    offsets: (u64, u64),
    talk: Talk,
}

impl Shared {
    fn to_master(&self) -> RawRing<'_> {
        RawRing {
            file: &self.rings,
            offset: self.offsets.0,
            size: SIZE,
        }
    }

    fn to_slave(&self) -> RawRing<'_> {
        RawRing {
            file: &self.rings,
            offset: self.offsets.1,
            size: SIZE,
        }
    }
}

/// Takes everything that the slave has to give, up to its CONNECT.
fn take_all(listener: &OwnedFd) -> Shared {
    let talk = answer(listener);
    talk.say(&hello((0x0200, 0x0200), 1, (0, 0), 14), &[]);
    talk.expect(INIT);
    let mut regions = Vec::new();
    for index in 0..2 {
        talk.say(&message(ACK, &[]), &[]);
        let (bytes, file) = talk.expect(ADD_REGION);
        assert_eq!(bytes[2..4], u16::to_le_bytes(index));
        regions.push(File::from(file.unwrap()));
    }
    let mut offsets = (0, 0);
    for index in 0..2 {
        talk.say(&message(ACK, &[]), &[]);
        let (bytes, event) = talk.expect(ADD_RING);
        assert!(event.is_some());
        let offset = u64::from(u32::from_le_bytes(bytes[8..12].try_into().unwrap()));
        assert_eq!(
            (bytes[2] == 1, bytes[12]),
            (index == 0, 5),
            "first the ring to the master"
        );
        if index == 0 {
            offsets.0 = offset
        } else {
            offsets.1 = offset
        }
    }
    talk.say(&message(ACK, &[]), &[]);
    talk.expect(CONNECT);
    let pool = regions.pop().unwrap();
    Shared {
        rings: regions.pop().unwrap(),
        pool,
        offsets,
        talk,
    }
}

fn connect(slave: &mut End, listener: &OwnedFd) -> Shared {
    let shared = take_all(listener);
    shared.talk.say(&message(CONNECTED, &[b"evil0"]), &[]);
    wait_for("the slave offers buffers", || {
        slave.idle();
        slave.pool.usage().lent > 0
    });
    shared
}

/// The slave parted for this reason and says so. What it had lent comes home when the master has
/// closed its end, and then it calls again.
#[track_caller]
fn parted(mut slave: End, listener: &OwnedFd, talk: Talk, reason: &str) {
    wait_for(reason, || {
        slave.idle();
        slave.counter(&format!("disconnect_{reason}")) > 0
    });
    assert!(!talk.farewell().is_empty(), "{reason} is sent");
    drop(talk);
    wait_for("all that was lent is home", || {
        slave.idle();
        slave.pool.usage().lent == 0
    });
    let again = connect(&mut slave, listener);
    let ring = again.to_slave();
    let (_, region, _, offset) = ring.get(0);
    assert_eq!(region, 1);
    again
        .pool
        .write_all_at(&frame(1, 100), u64::from(offset))
        .unwrap();
    ring.set(0, 0, 1, 100, offset);
    ring.set_tail(1);
    assert_eq!(slave.receive(0), [frame(1, 100)]);
    drop(again);
    slave.close();
}

#[test]
fn masters_that_cannot_be_served() {
    let cases = [
        ("version", hello((0x0100, 0x01ff), 1, (0, 0), 14)),
        ("version", hello((0x0201, 0x0300), 1, (0, 0), 14)),
        ("version", hello((0xffff, 0), 1, (0, 0), 14)),
        ("peer_limits", hello((0x0200, 0x0200), 0, (0, 0), 14)),
        ("unexpected_message", message(ACK, &[])),
        ("unexpected_message", message(CONNECTED, &[])),
        ("unexpected_message", message(INIT, &[])),
        ("unexpected_message", message(0xffff, &[])),
    ];
    for (reason, bytes) in cases {
        let (slave, listener) = slave();
        let talk = answer(&listener);
        talk.say(&bytes, &[]);
        parted(slave, &listener, talk, reason);
    }
    let (slave, listener) = slave();
    let talk = answer(&listener);
    talk.say(b"hello?", &[]);
    parted(slave, &listener, talk, "message_size");
}

#[test]
fn answers_out_of_turn() {
    let lies: [&[[u8; 128]]; 4] = [
        // CONNECTED before anything was given.
        &[
            hello((0x0200, 0x0200), 1, (0, 0), 14),
            message(CONNECTED, &[]),
        ],
        // HELLO twice.
        &[
            hello((0x0200, 0x0200), 1, (0, 0), 14),
            hello((0x0200, 0x0200), 1, (0, 0), 14),
        ],
        // One acknowledgement too many: INIT, two regions, two rings, and CONNECT has none.
        &[
            hello((0x0200, 0x0200), 1, (0, 0), 14),
            message(ACK, &[]),
            message(ACK, &[]),
            message(ACK, &[]),
            message(ACK, &[]),
            message(ACK, &[]),
            message(ACK, &[]),
        ],
        &[
            hello((0x0200, 0x0200), 1, (0, 0), 14),
            message(ADD_REGION, &[]),
        ],
    ];
    for says in lies {
        let (slave, listener) = slave();
        let talk = answer(&listener);
        says.iter().for_each(|bytes| talk.say(bytes, &[]));
        parted(slave, &listener, talk, "unexpected_message");
    }
}

#[test]
fn a_master_that_falls_silent_is_not_waited_for() {
    let (slave, listener) = slave();
    let talk = answer(&listener);
    talk.say(&hello((0x0200, 0x0200), 1, (0, 0), 14), &[]);
    parted(slave, &listener, talk, "timeout");
}

#[test]
fn nonsense_in_the_rings() {
    type Lie = fn(&Shared);
    let lies: [(&str, Lie); 8] = [
        // More than was offered.
        ("bad_index", |shared| shared.to_slave().set_tail(SIZE + 1)),
        ("bad_index", |shared| shared.to_slave().set_tail(u16::MAX)),
        // Longer than the buffer.
        ("bad_length", |shared| {
            let (_, region, length, offset) = shared.to_slave().get(0);
            shared.to_slave().set(0, 0, region, length + 1, offset);
            shared.to_slave().set_tail(1);
        }),
        ("bad_length", |shared| {
            shared.to_slave().set(0, 0, 1, u32::MAX, 0);
            shared.to_slave().set_tail(1);
        }),
        // 32 full buffers are more than a frame can have.
        ("bad_chain", |shared| {
            for slot in 0..SIZE {
                let (_, region, length, offset) = shared.to_slave().get(slot);
                shared.to_slave().set(slot, 1, region, length, offset);
            }
            shared.to_slave().set_tail(SIZE);
        }),
        // More was read than was sent.
        ("bad_index", |shared| shared.to_master().set_tail(4)),
        ("bad_index", |shared| shared.to_master().set_tail(u16::MAX)),
        ("unexpected_message", |shared| {
            shared.talk.say(&message(ACK, &[]), &[])
        }),
    ];
    for (reason, lie) in lies {
        let (mut slave, listener) = slave();
        let shared = connect(&mut slave, &listener);
        let packets: Vec<_> = (0..3)
            .map(|number| slave.packet(&frame(number, 200)))
            .collect();
        assert_eq!(slave.send(0, packets), 3);
        let lent = slave.pool.usage().lent;
        assert_eq!(lent, usize::from(SIZE) + 3);
        let before = Instant::now();
        lie(&shared);
        wait_for(reason, || {
            slave.idle();
            slave.counter(&format!("disconnect_{reason}")) > 0
        });
        slave.idle();
        // The master has not closed its end: what it may still write to is not used again yet, but
        // for a second at most.
        let still = slave.pool.usage().lent;
        assert!(
            still > 0 || before.elapsed() > Duration::from_millis(900),
            "{reason}: {still} of {lent}"
        );
        parted(slave, &listener, shared.talk, reason);
    }
}

#[test]
fn a_master_cannot_move_what_it_was_lent() {
    let (mut slave, listener) = slave();
    let shared = connect(&mut slave, &listener);
    let ring = shared.to_slave();
    for slot in 0..4 {
        let (_, _, _, offset) = ring.get(slot);
        shared
            .pool
            .write_all_at(&frame(u32::from(slot), 100), u64::from(offset))
            .unwrap();
        // Length and chain are the master's to say; region and offset are not.
        ring.set(
            slot,
            0,
            9,
            100,
            [0, u32::MAX, 7, 0x8000_0000][usize::from(slot)],
        );
    }
    ring.set_tail(4);
    assert_eq!(
        slave.receive(0),
        [frame(0, 100), frame(1, 100), frame(2, 100), frame(3, 100)]
    );
    // The same of what it reads: nonsense there changes nothing about what comes home.
    let packets: Vec<_> = (0..4)
        .map(|number| slave.packet(&frame(number, 100)))
        .collect();
    assert_eq!(slave.send(0, packets), 4);
    let ring = shared.to_master();
    assert_eq!(ring.head(), 4);
    (0..4).for_each(|slot| ring.set(slot, 0xffff, 0xffff, u32::MAX, 12_345));
    ring.set_tail(4);
    slave.idle();
    assert_eq!(slave.tx[0].pending(), 0);
    drop(shared);
    slave.close();
}

#[test]
fn a_master_that_keeps_its_end_open_keeps_nothing() {
    let (mut slave, listener) = slave();
    let shared = connect(&mut slave, &listener);
    shared.to_slave().set_tail(u16::MAX);
    // It neither reads its channel nor closes it.
    wait_for("all that was lent is home", || {
        slave.idle();
        slave.pool.usage().lent == 0
    });
    assert_eq!(slave.counter("disconnect_bad_index"), 1);
    assert!(shared.rings.as_fd().try_clone_to_owned().is_ok());
    slave.close();
}
