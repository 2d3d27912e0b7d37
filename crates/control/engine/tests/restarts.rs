//! BIRD, FRR, the peer and Weir are killed and started in any order: at the end the forwarding tables are what the daemons have.
//!
//! The router and its hosts are those of `dataplane`. BIRD learns routes of the far host's BIRD by BGP and writes them into the
//! kernel; staticd's routes come by FPM. The order comes from a seed, which is in the test's name. Needs root, BIRD and FRR.

mod dataplane;

use std::path::Path;
use std::time::Duration;

use dataplane::{Daemon, Frr, Trial, pings, start_with, wait_or_explain};
use weir_api::{RouteSource, Router as _};

const FPM: &str = "fpm: { hold-time: 20 }";
/// Actions of each case.
const ACTIONS: usize = 8;

const NEAR: &str = "router id 192.0.2.1;
graceful restart wait 20;
protocol device { scan time 1; }
protocol kernel k4 { graceful restart; scan time 2; ipv4 { import none; export all; }; }
protocol bgp peer { local 192.0.2.1 as 65001; neighbor 192.0.2.2 as 65002; graceful restart on;
  connect retry time 1; connect delay time 1; error wait time 1, 2;
  ipv4 { import all; export none; }; }
";

/// The far host's BIRD announces prefixes of these numbers.
fn far(numbers: &[u8]) -> String {
    let routes: Vec<String> = numbers
        .iter()
        .map(|number| format!("route 10.{number}.0.0/16 blackhole;"))
        .collect();
    format!(
        "router id 192.0.2.2;
protocol device {{ scan time 1; }}
protocol static s4 {{ ipv4; route 203.0.113.0/24 blackhole; {} }}
protocol bgp peer {{ local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001; graceful restart on;
  connect retry time 1; connect delay time 1; error wait time 1, 2;
  ipv4 {{ import all; export all; next hop self; }}; }}
",
        routes.join(" ")
    )
}

/// Staticd's routes of these numbers.
fn staticd(numbers: &[u8]) -> String {
    let routes = numbers
        .iter()
        .map(|number| format!("ip route 10.{number}.0.0/16 192.0.2.2\n"));
    routes.collect()
}

/// xorshift; the same order for the same seed on each machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Prefixes of one source.
fn prefixes(trial: &Trial, source: RouteSource) -> Vec<String> {
    let routes = trial.router.routes().unwrap().routes;
    let mut all: Vec<String> = routes
        .iter()
        .filter(|route| route.source == source)
        .map(|route| route.prefix.to_string())
        .collect();
    all.sort();
    all
}

fn run(seed: u64) {
    if !["/usr/sbin/bird", "/usr/bin/bird"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        eprintln!("skipped: BIRD is not installed (package bird2)");
        return;
    }
    let Some(mut trial) = start_with(FPM) else {
        return;
    };
    let Some(frr) = Frr::new(&trial.dataplane, &format!("frr-restarts{seed}")) else {
        return;
    };
    let (near_name, far_name) = (format!("near{seed}"), format!("far{seed}"));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut announced, mut fixed) = (vec![1, 2, 3, 4], vec![11, 12, 13]);
    let bird = |of: &Trial, config: &str, is_far: bool, more: &[&str]| {
        let (namespace, name) = if is_far {
            (&of.far, &far_name)
        } else {
            (&of.dataplane, &near_name)
        };
        Daemon::bird_again(namespace, name, config, more)
    };
    let mut far_bird = Some(bird(&trial, &far(&announced), true, &[]));
    let mut near_bird = Some(bird(&trial, NEAR, false, &[]));
    let mut zebra = Some((frr.zebra(), frr.start("staticd", &staticd(&fixed), &[])));
    let mut done = Vec::new();
    for _ in 0..ACTIONS {
        let action = random.below(6);
        done.push(action);
        match action {
            0 => trial = trial.restart(FPM),
            1 => near_bird = None,
            2 => {
                drop(near_bird.take());
                near_bird = Some(bird(&trial, NEAR, false, &["-R"]));
            }
            3 => {
                // The peer comes back with another table.
                drop(far_bird.take());
                announced.retain(|number| *number != 1 + random.below(4) as u8);
                announced.push(20 + announced.len() as u8);
                far_bird = Some(bird(&trial, &far(&announced), true, &[]));
            }
            4 => zebra = None,
            _ => {
                drop(zebra.take());
                fixed.rotate_left(1);
                fixed.pop();
                fixed.push(30 + random.below(9) as u8);
                zebra = Some((frr.zebra(), frr.start("staticd", &staticd(&fixed), &[])));
            }
        }
        std::thread::sleep(Duration::from_millis(random.below(3000)));
    }
    // At the end all run.
    if near_bird.is_none() {
        near_bird = Some(bird(&trial, NEAR, false, &["-R"]));
    }
    if zebra.is_none() {
        zebra = Some((frr.zebra(), frr.start("staticd", &staticd(&fixed), &[])));
    }
    let sorted = |numbers: &[u8], more: &[&str]| {
        let numbers = numbers.iter().map(|number| format!("10.{number}.0.0/16"));
        let mut all: Vec<String> = numbers
            .chain(more.iter().map(|it| (*it).to_owned()))
            .collect();
        all.sort();
        all.dedup();
        all
    };
    let (of_bird, of_frr) = (sorted(&announced, &["203.0.113.0/24"]), sorted(&fixed, &[]));
    let explain = || {
        let linux = trial.router.linux().unwrap();
        let kernel = trial
            .dataplane
            .command("ip")
            .args(["route"])
            .output()
            .unwrap();
        format!(
            "actions {done:?}\nkernel {:?}\nfpm {:?}\n{:?}\n{:?}\n{}",
            prefixes(&trial, RouteSource::Kernel),
            prefixes(&trial, RouteSource::Fpm),
            linux.fpm,
            linux.audit,
            String::from_utf8_lossy(&kernel.stdout)
        )
    };
    let is_equal = || {
        prefixes(&trial, RouteSource::Kernel) == of_bird
            && prefixes(&trial, RouteSource::Fpm) == of_frr
    };
    wait_or_explain("the tables are the daemons'", is_equal, explain);
    wait_or_explain("a ping", || pings(&trial.near, "203.0.113.1"), explain);
    drop((near_bird, far_bird, zebra));
    trial.router.stop();
}

#[test]
fn any_order_of_seed_1() {
    run(1);
}

#[test]
fn any_order_of_seed_2() {
    run(2);
}

#[test]
fn any_order_of_seed_3() {
    run(3);
}
