//! A Weir master and slaves that lie, one lie at a time. After each, the master has parted from the
//! slave for the right reason, its pool is whole, and an honest slave is served.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{End, frame, pool, wait_for};
use crate::raw::{
    ACK, ADD_REGION, CONNECT, CONNECTED, DISCONNECT, HELLO, INIT, RawRing, Talk, add_region,
    add_ring, address, event, memory, message, moment, seqpacket,
};
use rustix::event::EventfdFlags;
use rustix::fs::{OFlags, SealFlags, ftruncate};
use rustix::net::connect;
use weir_memif::{MemifConfig, Role, Socket};

const SIZE: u16 = 32;
const LOG2: u8 = 5;
/// The region that is announced; the file is longer.
const REGION: u64 = 16384;
const FILE: u64 = 20480;
const TO_MASTER: u64 = 0;
const TO_SLAVE: u64 = 1024;
const BUFFERS: u32 = 4096;

fn master() -> (End, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "weir-hostile-slave-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let config = MemifConfig {
        secret: Some([7; 24]),
        ..MemifConfig::new(Role::Master, Socket::Abstract(name.clone()), 5)
    };
    (End::open(&config, &pool(512)), name)
}

fn init(version: u16, id: u32, mode: u8, secret: u8) -> [u8; 128] {
    message(
        INIT,
        &[
            &version.to_le_bytes(),
            &id.to_le_bytes(),
            &[mode],
            &[secret; 24],
            b"hostile",
        ],
    )
}

/// Connects and hears HELLO.
fn call(name: &str) -> Talk {
    let talk = Talk(seqpacket());
    wait_for("the master listens", || {
        connect(&talk.0, &address(name)).is_ok()
    });
    talk.expect(HELLO);
    talk
}

/// As far as INIT.
fn begin(name: &str) -> Talk {
    let talk = call(name);
    talk.say(&init(0x0200, 5, 0, 7), &[]);
    talk.expect(ACK);
    talk
}

fn honest_memory() -> File {
    let file = memory(FILE, SealFlags::SHRINK);
    for offset in [TO_MASTER, TO_SLAVE] {
        RawRing {
            file: &file,
            offset,
            size: SIZE,
        }
        .initialise();
    }
    file
}

/// As far as the region.
fn with_region(name: &str, file: &File) -> Talk {
    let talk = begin(name);
    talk.say(&add_region(0, REGION), &[file.as_fd()]);
    talk.expect(ACK);
    talk
}

/// All the way.
fn connected(master: &mut End, name: &str, file: &File) -> Talk {
    let talk = with_region(name, file);
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
    wait_for("the master is up", || master.is_up());
    master.idle();
    talk
}

/// The master parted for this reason, says so, is whole, and serves an honest slave.
#[track_caller]
fn parted(mut master: End, name: &str, talk: Talk, reason: &str) {
    wait_for(reason, || {
        master.idle();
        master.counter(&format!("disconnect_{reason}")) > 0
    });
    assert_eq!(
        talk.farewell().is_empty(),
        reason == "peer_left",
        "{reason} is sent, unless the peer disconnected"
    );
    drop(talk);
    assert!(!master.is_up());
    master.idle();
    let file = honest_memory();
    let honest = connected(&mut master, name, &file);
    let ring = RawRing {
        file: &file,
        offset: TO_MASTER,
        size: SIZE,
    };
    file.write_all_at(&frame(1, 100), u64::from(BUFFERS))
        .unwrap();
    ring.set(0, 0, 0, 100, BUFFERS);
    ring.set_head(1);
    assert_eq!(master.receive(0), [frame(1, 100)]);
    assert_eq!(ring.tail(), 1);
    drop(honest);
    master.close();
}

/// One wrong message after `begin`.
#[track_caller]
fn refused(reason: &str, say: impl Fn(&Talk)) {
    let (master, name) = master();
    let talk = begin(&name);
    say(&talk);
    parted(master, &name, talk, reason);
}

#[test]
fn wrong_openings() {
    let cases: [(&str, Vec<u8>); 9] = [
        ("message_size", vec![3; 100]),
        ("message_size", vec![3; 129]),
        ("message_size", vec![3; 60_000]),
        ("unexpected_message", message(ACK, &[]).into()),
        ("unexpected_message", message(CONNECT, &[]).into()),
        ("version", init(0x0100, 5, 0, 7).into()),
        ("unknown_id", init(0x0200, 6, 0, 7).into()),
        ("mode", init(0x0200, 5, 1, 7).into()),
        ("wrong_secret", init(0x0200, 5, 0, 8).into()),
    ];
    for (reason, bytes) in cases {
        let (master, name) = master();
        let talk = call(&name);
        talk.say(&bytes, &[]);
        parted(master, &name, talk, reason);
    }
}

#[test]
fn messages_out_of_turn() {
    for kind in [0, ACK, HELLO, INIT, CONNECTED, 9, 77, u16::MAX] {
        refused("unexpected_message", |talk| {
            talk.say(&message(kind, &[]), &[])
        });
    }
    refused("message_size", |talk| talk.say(b"short", &[]));
    refused("peer_left", |talk| {
        talk.say(&message(DISCONNECT, &[&[0; 4], b"\x1b[31mbye"]), &[]);
        // Nobody answers a farewell.
        talk.say(&message(DISCONNECT, &[]), &[]);
        rustix::net::shutdown(&talk.0, rustix::net::Shutdown::Write).unwrap();
    });
}

#[test]
fn regions_that_cannot_be_had() {
    let region = |size, file: &dyn AsFd| {
        let file: OwnedFd = file.as_fd().try_clone_to_owned().unwrap();
        move |talk: &Talk| talk.say(&add_region(0, size), &[file.as_fd()])
    };
    let good = honest_memory();
    for size in [0, FILE + 1, u64::from(u32::MAX), u64::MAX] {
        refused("region_size", region(size, &good));
    }
    refused("region_file", |talk| talk.say(&add_region(0, REGION), &[]));
    // What could shrink would take this process along.
    refused(
        "region_not_sealed",
        region(REGION, &memory(FILE, SealFlags::empty())),
    );
    refused(
        "region_not_sealed",
        region(REGION, &memory(FILE, SealFlags::GROW)),
    );
    let (read, _write) = rustix::pipe::pipe().unwrap();
    refused("region_not_sealed", region(REGION, &read));
    refused(
        "region_not_sealed",
        region(REGION, &File::open("/proc/self/exe").unwrap()),
    );
    // Sealed, but not to be written.
    let only_read = File::open(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&good)
    ))
    .unwrap();
    refused("region_file", region(REGION, &only_read));
    for index in [1, 16, u16::MAX] {
        refused("region_index", |talk| {
            talk.say(&add_region(index, REGION), &[good.as_fd()])
        });
    }
    // More than were announced to be possible.
    refused("region_index", |talk| {
        for index in 0..=16 {
            talk.say(&add_region(index, REGION), &[good.as_fd()]);
        }
    });
    assert!(ftruncate(&good, 0).is_err(), "the seal holds");
}

#[test]
fn rings_that_lie_elsewhere() {
    let good = honest_memory();
    let cases: [(&str, [u8; 128]); 10] = [
        ("ring_place", add_ring(true, 0, 1, 0, LOG2)),
        ("ring_place", add_ring(true, 0, u16::MAX, 0, LOG2)),
        ("ring_place", add_ring(true, 0, 0, REGION as u32, LOG2)),
        (
            "ring_place",
            add_ring(true, 0, 0, REGION as u32 - 632, LOG2),
        ),
        ("ring_place", add_ring(true, 0, 0, u32::MAX - 7, LOG2)),
        ("ring_place", add_ring(true, 0, 0, 3, LOG2)),
        ("ring_place", add_ring(true, 0, 0, 0, 15)),
        ("ring_place", add_ring(true, 0, 0, 0, u8::MAX)),
        ("ring_index", add_ring(true, 1, 0, 0, LOG2)),
        ("ring_index", add_ring(false, u16::MAX, 0, 0, LOG2)),
    ];
    let ring = |reason: &str, says: &[([u8; 128], Vec<BorrowedFd<'_>>)]| {
        let (master, name) = master();
        let talk = with_region(&name, &good);
        says.iter()
            .for_each(|(bytes, descriptors)| talk.say(bytes, descriptors));
        parted(master, &name, talk, reason);
    };
    let events = event();
    for (reason, bytes) in cases {
        ring(reason, &[(bytes, vec![events.as_fd()])]);
    }
    let twice = (add_ring(true, 0, 0, 0, LOG2), vec![events.as_fd()]);
    ring("ring_index", &[twice.clone(), twice]);
    ring("ring_interrupt", &[(add_ring(true, 0, 0, 0, LOG2), vec![])]);
    let (_read, write) = rustix::pipe::pipe().unwrap();
    ring(
        "ring_interrupt",
        &[(add_ring(true, 0, 0, 0, LOG2), vec![write.as_fd()])],
    );
    ring("rings_missing", &[(message(CONNECT, &[]), vec![])]);
    ring(
        "rings_missing",
        &[
            (add_ring(false, 0, 0, 1024, LOG2), vec![events.as_fd()]),
            (message(CONNECT, &[]), vec![]),
        ],
    );
    let both = [
        (add_ring(true, 0, 0, 0, LOG2), vec![events.as_fd()]),
        (add_ring(false, 0, 0, 2048, LOG2), vec![events.as_fd()]),
    ];
    ring(
        "ring_cookie",
        &[
            both[0].clone(),
            both[1].clone(),
            (message(CONNECT, &[]), vec![]),
        ],
    );
    refused("ring_place", |talk| {
        talk.say(&add_ring(true, 0, 0, 0, LOG2), &[events.as_fd()])
    });
}

#[test]
fn messages_after_the_connection() {
    for kind in [ACK, INIT, ADD_REGION, CONNECT, CONNECTED, 99] {
        let (mut master, name) = master();
        let file = honest_memory();
        let talk = connected(&mut master, &name, &file);
        talk.say(&message(kind, &[]), &[]);
        parted(master, &name, talk, "unexpected_message");
    }
}

#[test]
fn nonsense_in_the_ring_that_the_master_reads() {
    type Lie = fn(&RawRing<'_>);
    let lies: [(&str, Lie); 9] = [
        ("bad_index", |ring| ring.set_head(SIZE + 1)),
        ("bad_index", |ring| ring.set_head(u16::MAX)),
        ("bad_descriptor", |ring| {
            (ring.set(0, 0, 1, 60, BUFFERS), ring.set_head(1)).1
        }),
        ("bad_descriptor", |ring| {
            (ring.set(0, 0, u16::MAX, 60, BUFFERS), ring.set_head(1)).1
        }),
        ("bad_descriptor", |ring| {
            (ring.set(0, 0, 0, 60, REGION as u32 - 59), ring.set_head(1)).1
        }),
        ("bad_descriptor", |ring| {
            (ring.set(0, 0, 0, 1500, u32::MAX), ring.set_head(1)).1
        }),
        ("bad_descriptor", |ring| {
            (ring.set(0, 0, 0, 0xffff, BUFFERS), ring.set_head(1)).1
        }),
        ("bad_chain", |ring| {
            (ring.set(0, 0, 0, u32::MAX, BUFFERS), ring.set_head(1)).1
        }),
        ("bad_chain", |ring| {
            // A frame without end.
            (0..SIZE).for_each(|slot| ring.set(slot, 1, 0, 9000, BUFFERS));
            ring.set_head(SIZE);
        }),
    ];
    for (reason, lie) in lies {
        let (mut master, name) = master();
        let file = honest_memory();
        let talk = connected(&mut master, &name, &file);
        lie(&RawRing {
            file: &file,
            offset: TO_MASTER,
            size: SIZE,
        });
        assert_eq!(master.receive(0).len(), 0, "{reason}");
        parted(master, &name, talk, reason);
    }
}

#[test]
fn nonsense_in_the_ring_that_the_master_fills() {
    type Lie = fn(&RawRing<'_>);
    let lies: [(&str, usize, Lie); 7] = [
        ("bad_index", 60, |ring| ring.set_head(SIZE + 1)),
        ("bad_length", 60, |ring| {
            (ring.set(0, 0, 0, 0, BUFFERS), ring.set_head(1)).1
        }),
        ("bad_descriptor", 60, |ring| {
            (ring.set(0, 0, 3, 2048, BUFFERS), ring.set_head(1)).1
        }),
        ("bad_descriptor", 60, |ring| {
            (
                ring.set(0, 0, 0, 2048, REGION as u32 - 59),
                ring.set_head(1),
            )
                .1
        }),
        ("bad_descriptor", 60, |ring| {
            (ring.set(0, 0, 0, u32::MAX, u32::MAX), ring.set_head(1)).1
        }),
        ("bad_descriptor", 900, |ring| {
            // The second buffer of a frame lies across the region's end.
            ring.set(0, 0, 0, 500, BUFFERS);
            ring.set(1, 0, 0, 500, REGION as u32 - 100);
            ring.set_head(2);
        }),
        ("bad_descriptor", 900, |ring| {
            ring.set(0, 0, 0, 500, BUFFERS);
            ring.set(1, 0, 0, 500, u32::MAX);
            ring.set_head(2);
        }),
    ];
    for (reason, length, lie) in lies {
        let (mut master, name) = master();
        let file = honest_memory();
        let talk = connected(&mut master, &name, &file);
        lie(&RawRing {
            file: &file,
            offset: TO_SLAVE,
            size: SIZE,
        });
        let packet = master.packet(&frame(1, length));
        assert_eq!(master.send(0, [packet]), 0, "{reason}");
        // What lies behind the region, in the same file, was not touched.
        let mut behind = vec![0; (FILE - REGION) as usize];
        file.read_exact_at(&mut behind, REGION).unwrap();
        assert!(behind.iter().all(|&byte| byte == 0xaa), "{reason}");
        parted(master, &name, talk, reason);
    }
}

#[test]
fn a_slave_that_wants_interrupts_cannot_make_a_worker_wait() {
    let (mut master, name) = master();
    let file = honest_memory();
    let talk = with_region(&name, &file);
    // A counter at its limit, without O_NONBLOCK: writing to it would wait for ever.
    let full = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    assert!(
        !rustix::fs::fcntl_getfl(&full)
            .unwrap()
            .contains(OFlags::NONBLOCK)
    );
    for (to_master, offset) in [(true, TO_MASTER), (false, TO_SLAVE)] {
        talk.say(
            &add_ring(to_master, 0, 0, offset as u32, LOG2),
            &[full.as_fd()],
        );
        talk.expect(ACK);
    }
    talk.say(&message(CONNECT, &[]), &[]);
    talk.expect(CONNECTED);
    wait_for("the master is up", || master.is_up());
    master.idle();
    let ring = RawRing {
        file: &file,
        offset: TO_SLAVE,
        size: SIZE,
    };
    (0..SIZE).for_each(|slot| ring.set(slot, 0, 0, 256, BUFFERS));
    ring.set_head(SIZE);
    let packet = master.packet(&frame(9, 100));
    assert_eq!(master.send(0, [packet]), 1);
    assert_eq!(
        (master.counter("tx_interrupts_q0"), ring.tail(), ring.get(0)),
        (1, 1, (0, 0, 100, BUFFERS))
    );
    let mut bytes = [0; 100];
    file.read_exact_at(&mut bytes, u64::from(BUFFERS)).unwrap();
    assert_eq!(bytes[..], frame(9, 100));
    drop(talk);
    master.close();
}

#[test]
fn silent_callers_do_not_keep_others_out() {
    let (master, name) = master();
    // More than are heard at a time; all of them say nothing.
    let silent: Vec<OwnedFd> = (0..12)
        .filter_map(|_| {
            let socket = seqpacket();
            rustix::io::ioctl_fionbio(&socket, true).unwrap();
            connect(&socket, &address(&name)).is_ok().then_some(socket)
        })
        .collect();
    assert!(silent.len() >= 8);
    moment();
    let honest = MemifConfig {
        secret: Some([7; 24]),
        ..MemifConfig::new(Role::Slave, Socket::Abstract(name), 5)
    };
    let mut honest = End::open(&honest, &pool(512));
    wait_for("an honest slave is heard", || honest.is_up());
    assert!(master.counter("disconnect_timeout") >= 8);
    drop(silent);
    honest.close();
    master.close();
}
