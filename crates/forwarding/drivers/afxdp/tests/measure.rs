//! What forwarding costs, and what the kernel's bridge loses and costs beside it. Measured on demand,
//! for it says nothing about right or wrong:
//!
//! ```text
//! cargo test --release -p weir-afxdp --test measure -- --ignored --nocapture
//! ```

#[allow(dead_code, reason = "each test program uses a part of it")]
mod common;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod switch;

use std::time::{Duration, Instant};

use common::{can_run, pool};
use switch::{ENDS, Pace, Switch, account, both_ways, counter, greet, open, traffic};
use weir_afxdp::Mode;
use weir_netlink::lab::{Lab, ROUTER};
use weir_port::Source;

/// CPU seconds of this process: sender, receiver and worker, with the soft interrupts that ran in their
/// place. Other jobs of the machine are not in it, as they would be in `/proc/stat`.
fn own_cpu() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// CPU seconds of the kernel's threads for soft interrupts that were put off; other jobs' too.
fn put_off() -> f64 {
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let named = processes.filter(|path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("ksoftirqd"))
    });
    let ran = named.filter_map(|path| {
        std::fs::read_to_string(path.join("schedstat"))
            .ok()?
            .split(' ')
            .next()?
            .parse::<f64>()
            .ok()
    });
    ran.sum::<f64>() / 1e9
}

/// Sends one way for some seconds and prints loss and CPU time a frame.
fn measure(lab: &Lab, what: &str, rate: f64) -> u32 {
    const SECONDS: f64 = 5.0;
    let count = (rate * SECONDS) as u32;
    let [(from, to, sink), _] = both_ways(lab, 1);
    let (before, put_off_before, start) = (own_cpu(), put_off(), Instant::now());
    let arrived = traffic(&from, to, &sink, count, Pace::Open(rate));
    let (cpu, late, elapsed) = (
        own_cpu() - before,
        put_off() - put_off_before,
        start.elapsed(),
    );
    let lost = count - arrived.numbers as u32;
    println!(
        "{what} {:.0} kpps: sent {count} lost {lost} in {elapsed:.1?}, process {:.2} us a frame, ksoftirqd {:.2}",
        rate / 1000.0,
        cpu * 1e6 / f64::from(count),
        late * 1e6 / f64::from(count)
    );
    lost
}

#[test]
#[ignore = "a measurement, not a test"]
fn ports_beside_the_bridge() {
    if !can_run() {
        return;
    }
    for rate in [50_000.0, 100_000.0] {
        for round in 1..=3 {
            let lab = Lab::two_hosts().switched().build().unwrap();
            lab.bridge(ROUTER, "bridge", &ENDS).unwrap();
            greet(&lab);
            std::thread::sleep(Duration::from_millis(200));
            measure(&lab, &format!("{round} bridge       "), rate);
            drop(lab);
            for (mode, name) in [
                (Mode::Native, "native, copy "),
                (Mode::Generic, "generic, copy"),
            ] {
                let lab = Lab::two_hosts().switched().build().unwrap();
                let pool = pool(16_384);
                let (mut one, mut other) = (
                    open(&lab, ENDS[0], mode, &pool).unwrap(),
                    open(&lab, ENDS[1], mode, &pool).unwrap(),
                );
                let switch = Switch::start(&mut one, &mut other, &pool);
                greet(&lab);
                let lost = measure(&lab, &format!("{round} {name}"), rate);
                if lost > 0 {
                    println!("{}", account(&lab, [&one, &other]));
                }
                let frames = counter(&one, "rx_packets", Source::Driver);
                let calls = counter(&other, "tx_wakeups", Source::Driver);
                let cpu = switch.end().cpu;
                println!(
                    "    worker {:.2} us a frame, {:.1} frames a sendto",
                    cpu.as_secs_f64() * 1e6 / frames as f64,
                    frames as f64 / calls as f64
                );
            }
        }
    }
}
