//! A Weir master and a Weir slave in one process.

mod common;
#[path = "common/weir.rs"]
mod weir;

use std::time::Duration;

use common::{End, frame, pool, wait_for};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_buf::{DATA_ROOM, PktCache, Vector};
use weir_memif::{MemifConfig, MemifPort, Role, Socket};

use crate::weir::{connected, meet, socket};

/// Sends frames of all sizes from one end and checks that the other gets them, in order.
fn carry(from: &mut End, to: &mut End, queue: usize, count: u32) {
    let mut expected = 0;
    let mut next = 0;
    let length = |number: u32| 14 + (number as usize * 37) % (DATA_ROOM - 14);
    wait_for("all frames arrived", || {
        let packets: Vec<_> = (next..count.min(next + 32))
            .map(|number| from.packet(&frame(number, length(number))))
            .collect();
        next += from.send(queue, packets) as u32;
        for bytes in to.receive(queue) {
            assert_eq!(bytes, frame(expected, length(expected)));
            expected += 1;
        }
        expected == count
    });
    from.idle();
    to.idle();
}

#[test]
fn frames_cross_both_ways_in_order() {
    let (mut master, mut slave) = connected(|_| ());
    carry(&mut master, &mut slave, 0, 5000);
    carry(&mut slave, &mut master, 0, 5000);
    for end in [&slave, &master] {
        assert_eq!(
            (end.counter("rx_packets_q0"), end.counter("tx_packets_q0")),
            (5000, 5000)
        );
        assert_eq!(end.counter("connects"), 1);
    }
    let status = slave.port.watch().status();
    assert!(
        status.connected && status.peer.starts_with("weir ") && status.interface == "weir/3",
        "{status:?}"
    );
    assert_eq!(
        (status.rx_rings, status.tx_rings, status.ring_size),
        (1, 1, 256)
    );
    assert_eq!(master.port.watch().status().regions.len(), 2);
    slave.close();
    master.close();
}

#[test]
fn queues_are_apart_and_have_both_directions() {
    let (mut master, mut slave) = connected(|config| config.queues = 4);
    for queue in [2, 0, 3, 1] {
        carry(&mut master, &mut slave, queue, 300);
        carry(&mut slave, &mut master, queue, 200);
    }
    for queue in 0..4 {
        assert_eq!(master.counter(&format!("tx_packets_q{queue}")), 300);
        assert_eq!(slave.counter(&format!("tx_packets_q{queue}")), 200);
    }
    master.close();
    slave.close();
}

#[test]
fn long_frames_are_chains_on_both_sides() {
    let (mut master, mut slave) = connected(|config| config.buffer_size = 512);
    let chained = |end: &mut End, number: u32, pieces: &[usize]| {
        let bytes = frame(number, pieces.iter().sum());
        let (mut done, mut whole): (usize, Option<weir_buf::Pkt>) = (0, None);
        for &length in pieces {
            let piece = end.packet(&bytes[done..done + length]);
            done += length;
            match &mut whole {
                Some(head) => head.append(piece).unwrap(),
                None => whole = Some(piece),
            }
        }
        (whole.unwrap(), bytes)
    };
    let shapes: [&[usize]; 8] = [
        &[2000, 2000, 2000, 3000 - 2000],
        &[100, 1],
        &[20, 512, 511, 1, 2],
        &[DATA_ROOM; 4],
        &[1514],
        &[14, 20, 8, 1, 600],
        &[14, DATA_ROOM, DATA_ROOM],
        &[42, 214, 1],
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        let (packet, bytes) = chained(&mut slave, number as u32, shape);
        assert_eq!(slave.send(0, [packet]), 1);
        assert_eq!(master.receive(0), [bytes], "{shape:?} to the master");
        slave.idle();
        let (packet, bytes) = chained(&mut master, number as u32, shape);
        assert_eq!(master.send(0, [packet]), 1);
        assert_eq!(slave.receive(0), [bytes], "{shape:?} to the slave");
    }
    master.close();
    slave.close();
}

#[test]
fn packets_of_another_pool_are_copied() {
    let (mut master, mut slave) = connected(|_| ());
    let other = pool(64);
    let mut stranger = other.alloc().unwrap();
    assert!(stranger.fill(&frame(1, 900)));
    let mut tail = other.alloc().unwrap();
    assert!(tail.fill(&frame(2, 300)));
    stranger.append(tail).unwrap();
    assert_eq!(slave.send(0, [stranger]), 1);
    assert_eq!(master.receive(0), [[frame(1, 900), frame(2, 300)].concat()]);
    assert_eq!((slave.counter("tx_copied_q0"), other.usage().free), (1, 64));
    master.close();
    slave.close();
}

#[test]
fn a_full_ring_takes_no_more_and_says_so() {
    let (mut master, mut slave) = connected(|config| config.ring_size = 32);
    for from_master in [true, false] {
        let (from, to) = if from_master {
            (&mut master, &mut slave)
        } else {
            (&mut slave, &mut master)
        };
        let packets: Vec<_> = (0..50)
            .map(|number| from.packet(&frame(number, 60)))
            .collect();
        assert_eq!(from.send(0, packets), 32);
        assert_eq!(from.counter("tx_ring_full_q0"), 18);
        assert_eq!(to.receive(0).len(), 32);
        to.idle();
        from.idle();
        let packets: Vec<_> = (0..5)
            .map(|number| from.packet(&frame(number, 60)))
            .collect();
        assert_eq!(from.send(0, packets), 5);
        assert_eq!(to.receive(0).len(), 5);
    }
    assert_eq!(master.counter("tx_ring_full_q0"), 18);
    master.close();
    slave.close();
}

#[test]
fn what_is_no_frame_is_refused() {
    let (mut master, mut slave) = connected(|_| ());
    for end in [&mut master, &mut slave] {
        let packets = [
            end.packet(b"short"),
            end.packet(&frame(1, 60)),
            end.packet(b""),
        ];
        assert_eq!(end.send(0, packets), 3);
        assert_eq!(
            (end.counter("tx_refused_q0"), end.counter("tx_packets_q0")),
            (2, 1)
        );
    }
    assert_eq!((master.receive(0).len(), slave.receive(0).len()), (1, 1));
    master.close();
    slave.close();
}

#[test]
fn without_a_peer_nothing_is_sent_and_the_link_is_down() {
    let config = MemifConfig::new(Role::Slave, socket(), 0);
    let mut slave = End::open(&config, &pool(256));
    let packet = slave.packet(&frame(1, 60));
    assert_eq!(slave.send(0, [packet]), 0);
    assert!(!slave.is_up());
    assert_eq!(slave.counter("tx_no_peer_q0"), 1);
    slave.close();
}

#[test]
fn either_end_may_go_and_come_back() {
    let socket = socket();
    let config = MemifConfig {
        ring_size: 64,
        ..MemifConfig::new(Role::Master, socket, 9)
    };
    let slave_config = MemifConfig {
        role: Role::Slave,
        ..config.clone()
    };
    let mut master = End::open(&config, &pool(1024));
    let mut slave = End::open(&slave_config, &pool(1024));
    for round in 1..=3 {
        meet(&mut master, &mut slave);
        carry(&mut master, &mut slave, 0, 100);
        carry(&mut slave, &mut master, 0, 100);
        // Frames that nobody will take any more.
        let packets: Vec<_> = (0..5)
            .map(|number| slave.packet(&frame(number, 60)))
            .collect();
        assert_eq!(slave.send(0, packets), 5);
        assert_eq!(master.counter("connects"), round);
        slave.close();
        wait_for("the master notices", || !master.is_up());
        master.idle();
        slave = End::open(&slave_config, &pool(1024));
    }
    meet(&mut master, &mut slave);
    for round in 2..=3 {
        let packets: Vec<_> = (0..5)
            .map(|number| slave.packet(&frame(number, 60)))
            .collect();
        assert_eq!(slave.send(0, packets), 5);
        master.close();
        wait_for("the slave notices", || !slave.is_up());
        wait_for("the slave has its chunks back", || {
            slave.idle();
            slave.pool.usage().lent == 0
        });
        assert_eq!(slave.counter("disconnect_peer_left"), round - 1);
        master = End::open(&config, &pool(1024));
        meet(&mut master, &mut slave);
        carry(&mut slave, &mut master, 0, 100);
        assert_eq!(slave.counter("connects"), round);
    }
    assert!(
        slave
            .port
            .watch()
            .status()
            .last_parting
            .unwrap()
            .contains("closed")
    );
    master.close();
    slave.close();
}

#[test]
fn several_masters_share_a_socket_and_secrets_are_asked_for() {
    let socket = Socket::Path(
        std::env::temp_dir().join(format!("weir-memif-test-{}.sock", std::process::id())),
    );
    let Socket::Path(path) = socket.clone() else {
        unreachable!()
    };
    let secret = Some(*b"a secret of 24 bytes....");
    let one = MemifConfig {
        secret,
        ..MemifConfig::new(Role::Master, socket.clone(), 1)
    };
    let two = MemifConfig {
        queues: 2,
        ..MemifConfig::new(Role::Master, socket, 2)
    };
    let memory = pool(4096);
    let mut masters = [End::open(&one, &memory), End::open(&two, &memory)];
    assert!(
        MemifPort::open(&one, &memory)
            .unwrap_err()
            .0
            .contains("already")
    );
    let as_slave = |config: &MemifConfig| MemifConfig {
        role: Role::Slave,
        ..config.clone()
    };
    let wrong = MemifConfig {
        secret: None,
        ..as_slave(&one)
    };
    let stranger = MemifConfig {
        id: 7,
        ..as_slave(&one)
    };
    let (wrong, stranger) = (
        End::open(&wrong, &pool(256)),
        End::open(&stranger, &pool(256)),
    );
    wait_for("the wrong secret is noticed", || {
        masters[0].counter("disconnect_wrong_secret") > 0
    });
    wait_for("the unknown id is noticed", || {
        masters[1].counter("disconnect_unknown_id") > 0
    });
    wait_for("the slave is notified", || {
        wrong.counter("disconnect_peer_left") > 0
    });
    assert!(
        wrong
            .port
            .watch()
            .status()
            .last_parting
            .unwrap()
            .contains("secret")
    );
    assert_eq!(masters[0].counter("connects"), 0);
    wrong.close();
    stranger.close();
    let mut slaves = [
        End::open(&as_slave(&one), &pool(4096)),
        End::open(&as_slave(&two), &pool(4096)),
    ];
    for (master, slave) in masters.iter_mut().zip(&mut slaves) {
        wait_for("they meet", || {
            master.idle();
            slave.idle();
            master.is_up() && slave.is_up() && slave.pool.usage().lent > 0
        });
        carry(master, slave, 0, 100);
        carry(slave, master, 0, 100);
    }
    // A second slave of the same id has to wait.
    let second = End::open(&as_slave(&two), &pool(256));
    wait_for("the second one is sent away", || {
        masters[1].counter("disconnect_already_connected") > 0
    });
    assert!(slaves[1].is_up());
    second.close();
    slaves.into_iter().for_each(End::close);
    masters.into_iter().for_each(
        |End {
             port,
             rx,
             tx,
             cache,
             ..
         }| drop((rx, tx, port, cache)),
    );
    assert_eq!(memory.usage().free, 4096);
    assert!(!path.exists(), "the socket's file is removed");
}

#[test]
fn a_stale_socket_is_replaced_and_other_files_are_not() {
    let path = std::env::temp_dir().join(format!("weir-memif-stale-{}.sock", std::process::id()));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let config = MemifConfig::new(Role::Master, Socket::Path(path.clone()), 1);
    drop(MemifPort::open(&config, &pool(64)).unwrap());
    assert!(!path.exists());
    std::fs::write(&path, "precious").unwrap();
    assert!(
        MemifPort::open(&config, &pool(64))
            .unwrap_err()
            .0
            .contains("no socket")
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();
    let nowhere = MemifConfig::new(
        Role::Master,
        Socket::Path("/nonexistent/weir.sock".into()),
        1,
    );
    assert!(
        MemifPort::open(&nowhere, &pool(64))
            .unwrap_err()
            .0
            .contains("folder")
    );
}

/// Sleeps on the queue as a worker does; whether something woke it.
fn nap(end: &mut End, longest: Duration) -> bool {
    end.rx[0].before_sleep();
    let mut polled = [PollFd::from_borrowed_fd(
        end.rx[0].readable().unwrap(),
        PollFlags::IN,
    )];
    let timeout = Timespec {
        tv_sec: longest.as_secs() as i64,
        tv_nsec: i64::from(longest.subsec_nanos()),
    };
    poll(&mut polled, Some(&timeout)).unwrap() > 0
}

#[test]
fn sleepers_are_woken_by_frames_and_by_peers() {
    let (mut master, mut slave) = connected(|_| ());
    for turn in 0..20 {
        let (sleeper, sender) = if turn % 2 == 0 {
            (&mut master, &mut slave)
        } else {
            (&mut slave, &mut master)
        };
        // What woke it for the connection is over after a turn or two.
        for _ in 0..3 {
            nap(sleeper, Duration::ZERO);
            sleeper.idle();
        }
        assert!(!nap(sleeper, Duration::from_millis(5)), "nothing came");
        sleeper.idle();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                assert!(nap(sleeper, common::LONG), "turn {turn}: not woken");
                sleeper.receive(0)
            });
            std::thread::sleep(Duration::from_millis(2));
            let packet = sender.packet(&frame(turn, 100));
            assert_eq!(sender.send(0, [packet]), 1);
            assert_eq!(worker.join().unwrap(), [frame(turn, 100)]);
        });
        // What came before it slept needs no interrupt.
        let packet = sender.packet(&frame(turn, 100));
        assert_eq!(sender.send(0, [packet]), 1);
        assert!(nap(sleeper, common::LONG));
        assert_eq!(sleeper.receive(0).len(), 1);
    }
    // A polling peer is not interrupted.
    let before = slave.counter("tx_interrupts_q0");
    master.idle();
    let packet = slave.packet(&frame(1, 100));
    slave.send(0, [packet]);
    assert_eq!(
        (slave.counter("tx_interrupts_q0"), master.receive(0).len()),
        (before, 1)
    );
    // The peer's end wakes too.
    nap(&mut slave, Duration::ZERO);
    slave.idle();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| nap(&mut slave, common::LONG));
        master.close();
        assert!(worker.join().unwrap());
    });
    slave.close();
}

#[test]
fn workers_on_threads_of_their_own_lose_nothing() {
    let (master, slave) = connected(|config| config.queues = 2);
    const COUNT: u32 = 40_000;
    let End {
        port: master_port,
        rx: master_rx,
        tx: mut master_tx,
        cache: master_cache,
        pool: master_pool,
    } = master;
    let End {
        port: slave_port,
        rx: mut slave_rx,
        tx: slave_tx,
        cache: slave_cache,
        pool: slave_pool,
    } = slave;
    drop((master_cache, slave_cache));
    std::thread::scope(|scope| {
        for (tx, pool) in master_tx.iter_mut().zip([&master_pool; 2]) {
            scope.spawn(move || {
                let (mut cache, mut vector, mut next) =
                    (PktCache::new(pool), Vector::with_capacity(256), 0);
                while next < COUNT {
                    while vector.len() < 64 && next + (vector.len() as u32) < COUNT {
                        let mut packet = cache.alloc().unwrap();
                        assert!(packet.fill(&frame(next + vector.len() as u32, 64)));
                        vector.push(packet);
                    }
                    let sent = tx.send(&mut vector, &mut cache);
                    next += sent as u32;
                    if sent == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for (rx, pool) in slave_rx.iter_mut().zip([&slave_pool; 2]) {
            scope.spawn(move || {
                let (mut cache, mut vector, mut next) =
                    (PktCache::new(pool), Vector::with_capacity(256), 0);
                while next < COUNT {
                    if rx.recv(&mut vector, &mut cache, 256) == 0 {
                        std::thread::yield_now();
                    }
                    for packet in vector.iter() {
                        assert_eq!(packet.data(), frame(next, 64));
                        next += 1;
                    }
                    cache.free_vector(&mut vector);
                }
            });
        }
    });
    drop((master_rx, master_tx, slave_rx, slave_tx));
    drop((master_port, slave_port));
    wait_for("every chunk is home", || {
        [&master_pool, &slave_pool]
            .iter()
            .all(|pool| pool.usage().free == pool.chunks())
    });
}

#[test]
fn an_empty_pool_starves_nobody_for_ever() {
    let config = MemifConfig {
        ring_size: 64,
        ..MemifConfig::new(Role::Master, socket(), 1)
    };
    let mut master = End::open(&config, &pool(64));
    let mut slave = End::open(
        &MemifConfig {
            role: Role::Slave,
            ..config
        },
        &pool(1024),
    );
    meet(&mut master, &mut slave);
    let held: Vec<_> = std::iter::from_fn(|| master.cache.alloc()).collect();
    let packets: Vec<_> = (0..10)
        .map(|number| slave.packet(&frame(number, 60)))
        .collect();
    assert_eq!(slave.send(0, packets), 10);
    assert_eq!(
        (master.receive(0).len(), master.counter("rx_no_buffer_q0")),
        (0, 1)
    );
    master.cache.free_all(held.into_iter());
    assert_eq!(master.receive(0).len(), 10);
    master.close();
    slave.close();
}
