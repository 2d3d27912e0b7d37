//! A loopback has nothing behind it, and its addresses answer.
//!
//! A generator sends echo requests for an address of a loopback; what leaves by the generator's
//! port is the answers, since nothing else goes there. No root needed.

use std::time::{Duration, Instant};

use weir_config::check;
use weir_engine::{Options, Router};

const TEXT: &str = "
interfaces:
  xe0:
    device:
      driver: generator
      streams: [{name: ping, limit: 1000, rate: 2000, protocol: icmp, source: 10.0.0.2, destination: 192.0.2.255}]
    addresses: [10.0.0.1/24]
neighbors: [{interface: xe0, address: 10.0.0.2, mac: 02:00:00:00:00:02}]
";

fn answers(text: &str) -> weir_api::Totals {
    let (config, _) = check("weir.yaml", text).unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let done = |it: &weir_api::Totals| {
        it.packets_in >= 1000 && it.packets_out + it.drops.values().sum::<u64>() >= 1000
    };
    while !done(&router.balance()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    router.stop();
    router.balance()
}

#[test]
fn an_address_of_a_loopback_answers() {
    let with = answers(&format!(
        "{TEXT}loopbacks: {{loop0: {{addresses: [192.0.2.255/32]}}}}\n"
    ));
    // The first packets come when all is in place that they need.
    assert_eq!(with.packets_out, 1000, "{with:?}");
    let without = answers(TEXT);
    assert_eq!(without.drops.get("no-route"), Some(&1000), "{without:?}");
}
