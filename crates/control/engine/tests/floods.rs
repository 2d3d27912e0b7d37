//! A scan of a subnet in which nobody is: what it may cost is bounded and counted, and others do not notice.
//!
//! One generator sends to 16,384 addresses of a /16, one packet each, while another one's packets go on to a neighbour of the
//! same link.

use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::check;
use weir_engine::{Options, Router};

const SCANNED: u64 = 16_384;
const TEXT: &str = "
interfaces:
  gen0:
    device: { driver: generator, streams: [ { name: scan, limit: 16384, rate: 20000, source: 10.0.0.2, destination: 10.1.1.0-10.1.64.255 } ] }
    addresses: [ 10.0.0.1/24 ]
  gen1:
    device: { driver: generator, streams: [ { name: steady, limit: 1000, rate: 1000, source: 10.2.0.2, destination: 10.1.0.9 } ] }
    addresses: [ 10.2.0.1/24 ]
  out0: { device: { driver: 'null' }, addresses: [ 10.1.0.1/16 ] }
neighbors:
  - { interface: gen0, address: 10.0.0.2, mac: 02:00:00:00:00:02 }
  - { interface: out0, address: 10.1.0.9, mac: 02:00:00:00:00:09 }
";

#[test]
fn a_scan_is_bounded_and_counted_and_disturbs_nobody() {
    let (config, _) = check("weir.yaml", TEXT).unwrap_or_else(|findings| panic!("{findings:?}"));
    let router = Router::start(&config, &Options::default()).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let rx = |name: &str| {
        let all = router.interfaces().unwrap().interfaces;
        all.iter().find(|it| it.name == name).unwrap().rx.packets
    };
    let (mut most, mut evicted) = (0, 0);
    while rx("gen0") < SCANNED || rx("gen1") < 1000 || evicted < 1000 {
        let now = router.neighbors().unwrap();
        (most, evicted) = (most.max(now.neighbors.len()), now.evicted);
        assert_eq!(now.refused, 0, "there is room for those who answer");
        assert!(
            Instant::now() < until,
            "{} scanned, {} passed, {evicted} evicted",
            rx("gen0"),
            rx("gen1")
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // 4096 without an answer, and those that are known.
    assert!(most > 4000 && most <= 4096 + 2, "{most} neighbours at once");
    router.stop();
    let totals = router.balance();
    let drops = |reason: &str| totals.drops.get(reason).copied().unwrap_or(0);
    let waited = drops("hold-full") + drops("host-unreachable") + totals.held;
    assert_eq!(
        waited, SCANNED,
        "each of the scan's packets waited, or had no room to: {totals:?}"
    );
    assert_eq!(
        totals
            .drops
            .keys()
            .filter(|reason| !matches!(reason.as_str(), "hold-full" | "host-unreachable"))
            .count(),
        0,
        "{totals:?}"
    );
    // What else was made are questions and answers to the scanner.
    assert_eq!(totals.packets_out, 1000 + totals.originated, "{totals:?}");
}
