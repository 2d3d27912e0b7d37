//! Clocks a packet of both halves in both roles, at vectors of 256.
//!
//! `clocks [BYTES]` measures a master and a slave on one core, turn by turn, so that what is shared
//! stays in that core's caches: the price of the work itself. `clocks [BYTES] apart` has them on two
//! cores, one sending all it can: the price with the lines moving between cores; only full vectors
//! count. Each figure is the median; freeing and allocating on the other side of the call is not in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_buf::{Hugepages, PktCache, Pool, PoolConfig, VECTOR, Vector};
use weir_memif::{MemifConfig, MemifPort, Role, Socket};
use weir_port::{Port, RxQueue, TxQueue};

const TURNS: usize = 20_000;

struct End {
    name: &'static str,
    port: MemifPort,
    rx: Box<dyn RxQueue>,
    tx: Box<dyn TxQueue>,
    cache: PktCache,
}

fn open(role: Role) -> Result<End, Box<dyn std::error::Error>> {
    let pool = Pool::new(PoolConfig {
        chunks: 8192,
        hugepages: Hugepages::Auto,
    })?;
    let socket = Socket::Abstract(format!("weir-memif-clocks-{}", std::process::id()));
    let mut port = MemifPort::open(&MemifConfig::new(role, socket, 0), &pool)?;
    let queues = port.take_queues().pop().ok_or("no queues")?;
    let (rx, tx) = (queues.rx.ok_or("no rx")?, queues.tx.ok_or("no tx")?);
    Ok(End {
        name: role.name(),
        port,
        rx,
        tx,
        cache: PktCache::new(&pool),
    })
}

fn median(mut samples: Vec<u64>) -> String {
    samples.sort_unstable();
    let at = |part: usize| {
        samples
            .get(samples.len() * part / 100)
            .copied()
            .unwrap_or(0) as f64
            / VECTOR as f64
    };
    format!(
        "{:6.2} clocks a packet (5 %: {:.2}, 95 %: {:.2}, {} vectors)",
        at(50),
        at(5),
        at(95),
        samples.len()
    )
}

fn fill(end: &mut End, vector: &mut Vector, bytes: usize) {
    end.cache.alloc_into(VECTOR - vector.len(), vector);
    vector
        .iter_mut()
        .filter(|packet| packet.is_empty())
        .for_each(|packet| _ = packet.set_len(bytes));
}

/// One vector from one end to the other and back into the pools, `TURNS` times.
fn together(from: &mut End, to: &mut End, bytes: usize) {
    let (mut vector, mut sending, mut receiving) =
        (Vector::with_capacity(VECTOR), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        fill(from, &mut vector, bytes);
        let start = weir_cpu::tsc();
        let sent = from.tx.send(&mut vector, &mut from.cache);
        from.tx.flush(&mut from.cache);
        let middle = weir_cpu::tsc();
        let got = to.rx.recv(&mut vector, &mut to.cache, VECTOR);
        let end = weir_cpu::tsc();
        if (sent, got) == (VECTOR, VECTOR) {
            sending.push(middle - start);
            receiving.push(end - middle);
        }
        to.cache.free_vector(&mut vector);
    }
    println!("{:6} tx {}", from.name, median(sending));
    println!("{:6} rx {}", to.name, median(receiving));
}

/// One end sends all it can on core 1, the other receives on core 0.
fn apart(from: &mut End, to: &mut End, bytes: usize) {
    let (ready, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut vector, mut receiving, mut count) = (Vector::with_capacity(VECTOR), Vec::new(), 0);
    std::thread::scope(|scope| {
        let (ready, stop, sender) = (&ready, &stop, &mut *from);
        let sending = scope.spawn(move || {
            let _ = weir_cpu::pin_to(1);
            ready.store(true, Ordering::Relaxed);
            let (mut vector, mut samples) = (Vector::with_capacity(VECTOR), Vec::new());
            while !stop.load(Ordering::Relaxed) {
                fill(sender, &mut vector, bytes);
                let start = weir_cpu::tsc();
                let sent = sender.tx.send(&mut vector, &mut sender.cache);
                sender.tx.flush(&mut sender.cache);
                if sent == VECTOR {
                    samples.push(weir_cpu::tsc() - start);
                }
            }
            sender.cache.free_vector(&mut vector);
            samples
        });
        // It starts on our core and needs it for a moment.
        while !ready.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(2) {
            let start = weir_cpu::tsc();
            let got = to.rx.recv(&mut vector, &mut to.cache, VECTOR);
            if got == VECTOR {
                receiving.push(weir_cpu::tsc() - start);
            }
            to.tx.flush(&mut to.cache);
            count += got;
            to.cache.free_vector(&mut vector);
        }
        let seconds = begin.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        println!(
            "{:6} tx {}",
            from_name(to),
            median(sending.join().unwrap_or_default())
        );
        println!(
            "{:6} rx {}, {:.1} Mpps",
            to.name,
            median(receiving),
            count as f64 / seconds / 1e6
        );
    });
    while to.rx.recv(&mut vector, &mut to.cache, VECTOR) > 0 {
        to.cache.free_vector(&mut vector);
    }
    from.tx.flush(&mut from.cache);
}

fn from_name(to: &End) -> &'static str {
    if to.name == "master" {
        "slave"
    } else {
        "master"
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let bytes = words
        .iter()
        .find_map(|word| word.parse().ok())
        .unwrap_or(60);
    let (mut master, mut slave) = (open(Role::Master)?, open(Role::Slave)?);
    while !(master.port.link().up && slave.port.link().up) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = weir_cpu::pin_to(0);
    // The slave's first turn offers its buffers.
    slave
        .rx
        .recv(&mut Vector::with_capacity(VECTOR), &mut slave.cache, VECTOR);
    let run = if words.iter().any(|word| word == "apart") {
        apart
    } else {
        together
    };
    println!(
        "frames of {bytes} bytes, hugepages: {}",
        slave.cache.pool().on_hugepages()
    );
    run(&mut slave, &mut master, bytes);
    run(&mut master, &mut slave, bytes);
    Ok(())
}
