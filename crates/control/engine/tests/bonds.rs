//! Two routers with a bond between them, over two memif connections: LACP agrees, flows spread, a member that goes
//! is left, and what comes of it is seen at both ends.

use std::time::{Duration, Instant};

use weir_api::Router as _;
use weir_config::{Config, check};
use weir_engine::{Options, Router};

fn good(text: &str) -> Config {
    check("test.yaml", text)
        .unwrap_or_else(|findings| panic!("{}", findings[0]))
        .0
}

/// Ends of the connections; the master's router sends to what lies behind the other one.
fn ends(role: &str, lacp: &str, first_is: &str) -> String {
    let socket = format!("@weir-bonds-{}-{lacp}", std::process::id());
    let port = |id: u32, state: &str| {
        format!(
            "  m{id}: {{ device: {{ driver: memif, socket: '{socket}', id: {id}, role: {role} }}, state: {state} }}\n"
        )
    };
    format!("interfaces:\n{}{}", port(0, first_is), port(1, "up"))
}

fn sender(mode: &str, first_is: &str) -> Config {
    let ends = ends("master", mode, first_is);
    good(&format!(
        "{ends}  BondEthernet0: {{ addresses: [ 10.1.0.1/24 ] }}
  gen:
    addresses: [ 10.2.0.1/24 ]
    device: {{ driver: generator, streams: [ {{ name: a, rate: 2000, source: 10.2.0.2-10.2.0.99, destination: 10.9.0.1 }} ] }}
bondethernets:
  BondEthernet0: {{ interfaces: [ m0, m1 ], mode: {mode} }}
routes: [ {{ prefix: 10.9.0.0/16, via: 10.1.0.2 }} ]
"
    ))
}

fn receiver(mode: &str) -> Config {
    let ends = ends("slave", mode, "up");
    good(&format!(
        "{ends}  BondEthernet0: {{ addresses: [ 10.1.0.2/24 ] }}
bondethernets:
  BondEthernet0: {{ interfaces: [ m0, m1 ], mode: {mode} }}
routes: [ {{ prefix: 10.9.0.0/16, via: blackhole }} ]
"
    ))
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The members by which a router sends.
fn sending(router: &Router) -> Vec<String> {
    let bonds = router.bonds().unwrap().bonds;
    bonds[0]
        .members
        .iter()
        .filter(|member| member.distributing)
        .map(|member| member.interface.clone())
        .collect()
}

fn received(router: &Router, name: &str) -> u64 {
    router
        .interfaces()
        .unwrap()
        .interfaces
        .iter()
        .find(|it| it.name == name)
        .map_or(0, |it| it.rx.packets)
}

/// Frames that came through: routed, and dropped by the route.
fn arrived(router: &Router) -> u64 {
    router
        .balance()
        .drops
        .get("blackhole")
        .copied()
        .unwrap_or(0)
}

#[test]
fn two_routers_agree_by_lacp_and_leave_a_member_that_goes() {
    let far = Router::start(&receiver("lacp"), &Options::default()).unwrap();
    let near = Router::start(&sender("lacp", "up"), &Options::default()).unwrap();
    for router in [&near, &far] {
        wait("both members in use", || sending(router) == ["m0", "m1"]);
    }
    let lacp = |router: &Router| {
        router.bonds().unwrap().bonds[0].members[0]
            .lacp
            .clone()
            .unwrap()
    };
    let (here, there) = (lacp(&near), lacp(&far));
    assert_eq!(
        (here.receive.as_str(), here.mux.as_str()),
        ("current", "distributing")
    );
    assert_eq!(here.partner.unwrap().system, there.actor.system);
    wait("flows over both", || {
        received(&far, "m0") > 100 && received(&far, "m1") > 100 && arrived(&far) > 200
    });

    near.apply(&sender("lacp", "down")).unwrap();
    wait("the member is left at both ends", || {
        sending(&near) == ["m1"] && sending(&far) == ["m1"]
    });
    let (before, first) = (arrived(&far), received(&far, "m0"));
    wait("all flows over the other", || arrived(&far) > before + 500);
    // What was on its way, and PDUs.
    assert!(received(&far, "m0") < first + 50);

    near.apply(&sender("lacp", "up")).unwrap();
    for router in [&near, &far] {
        wait("the member is back", || sending(router) == ["m0", "m1"]);
    }
    near.stop();
    far.stop();
    for router in [near, far] {
        let totals = router.balance();
        let gone =
            totals.packets_out + totals.drops.values().sum::<u64>() + totals.consumed + totals.held;
        assert_eq!(
            totals.packets_in + totals.originated + totals.replicated,
            gone,
            "{totals:?}"
        );
    }
}

#[test]
fn a_far_end_that_does_not_speak_gets_nothing() {
    let far = Router::start(&receiver("xor"), &Options::default()).unwrap();
    // Meets the other at its sockets, but speaks LACP.
    let text = serde_json::to_string(&sender("xor", "up"))
        .unwrap()
        .replace("\"mode\":\"xor\"", "\"mode\":\"lacp\"");
    let near = Router::start(&good(&text), &Options::default()).unwrap();
    wait("the partner runs LACP", || {
        far.balance().drops.get("lacp-off").copied().unwrap_or(0) > 2
    });
    assert_eq!(sending(&far), ["m0", "m1"], "whose links are up");
    assert_eq!(sending(&near), [""; 0]);
    assert_eq!(arrived(&far), 0);
    near.stop();
    far.stop();
}
