//! Duplicate address detection where an interface shares another's link: on a sub-interface, on the routed side of a
//! bridge domain, on a bond. Two routers over three memif connections have the same addresses on all, and notice.

use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::check;
use weir_engine::{Options, Router};

fn start(role: &str) -> Router {
    let socket = format!("@weir-duplicates-{}", std::process::id());
    let port = |id: u32| format!("{{ driver: memif, socket: '{socket}', id: {id}, role: {role} }}");
    let text = format!(
        "interfaces:
  m0:
    device: {}
    sub-interfaces: {{ 100: {{ addresses: [ '2001:db8:1::1/64' ] }} }}
  m1: {{ device: {} }}
  m2: {{ device: {} }}
  BondEthernet0: {{ addresses: [ '2001:db8:4::1/64' ] }}
bondethernets: {{ BondEthernet0: {{ interfaces: [ m2 ], mode: xor, load-balance: l2 }} }}
loopbacks:
  loop0: {{ addresses: [ '2001:db8:2::1/64' ], mac: '02:00:00:00:00:{}' }}
  loop1: {{ addresses: [ '2001:db8:3::1/64' ] }}
bridgedomains: {{ bd1: {{ interfaces: [ m1 ], bvi: loop0 }} }}
",
        port(0),
        port(1),
        port(2),
        if role == "master" { "0a" } else { "0b" },
    );
    let (config, _) =
        check("test.yaml", &text).unwrap_or_else(|findings| panic!("{}", findings[0]));
    Router::start(&config, &Options::default()).unwrap()
}

/// Of an interface: how many global addresses are still asked about, and how many are somebody else's.
fn unused(router: &Router, name: &str) -> (usize, usize) {
    let interfaces = router.interfaces().unwrap().interfaces;
    let interface = interfaces
        .iter()
        .find(|interface| interface.name == name)
        .unwrap();
    let global = |all: &[std::net::IpAddr]| {
        all.iter()
            .filter(|address| address.to_string().starts_with("2001"))
            .count()
    };
    (global(&interface.tentative), global(&interface.duplicate))
}

#[test]
fn two_routers_with_one_address_notice_on_inner_interfaces_too() {
    let routers = [start("master"), start("slave")];
    let began = Instant::now();
    let settled = |name: &str| routers.iter().all(|router| unused(router, name).0 == 0);
    while !["m0.100", "loop0", "BondEthernet0"]
        .into_iter()
        .all(settled)
    {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "still asking: {:?}",
            routers.each_ref().map(|it| it.interfaces().unwrap())
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    for name in ["m0.100", "loop0", "BondEthernet0"] {
        let duplicates: usize = routers.iter().map(|router| unused(router, name).1).sum();
        assert!(
            duplicates >= 1,
            "both use the address of {name}: {:?}",
            routers[0].interfaces().unwrap()
        );
    }
    // Nobody else is on a loopback that is no routed side.
    assert!(
        routers
            .iter()
            .all(|router| unused(router, "loop1") == (0, 0))
    );
    routers.iter().for_each(Router::stop);
}
