//! What a change of an access list does to its counters: the terms that stay go on counting, and a number that a
//! reader has seen never becomes smaller.

use std::time::{Duration, Instant};

use weir_api::{AclQuery, ApplyRequest, Caller, Router as _};
use weir_config::check;
use weir_engine::{Options, Router};

const LIMIT: Duration = Duration::from_secs(20);

/// A router that receives UDP packets to the ports 7 and 9, and others that no term permits.
fn config(terms: &str) -> String {
    let stream = |name: &str, port: u16| {
        format!(
            "        - {{ name: {name}, source: 10.0.0.2, destination: 198.51.100.7, destination-port: {port}, rate: 1000 }}\n"
        )
    };
    format!(
        "workers: {{ count: 1, idle: sleep }}
acls:
  edge:
    terms: [ {terms} ]
interfaces:
  in0:
    addresses: [ 10.0.0.1/24 ]
    acl: {{ input: [ edge ] }}
    device:
      driver: generator
      streams:
{}{}{}  out0: {{ addresses: [ 192.0.2.1/24 ], device: {{ driver: 'null' }} }}
routes: [ {{ prefix: 198.51.100.0/24, via: blackhole }} ]
",
        stream("seven", 7),
        stream("nine", 9),
        stream("other", 11),
    )
}

const SEVEN: &str = "{ action: deny, protocol: udp, destination-port: 7 }";
const SEVEN_DESCRIBED: &str =
    "{ action: deny, protocol: udp, destination-port: 7, description: echo }";
const NINE: &str = "{ action: permit, protocol: udp, destination-port: 9 }";
const NOBODY: &str = "{ action: deny, protocol: tcp }";

/// Packets of each term, of those that match none, and of all.
fn counts(router: &Router) -> (Vec<u64>, u64, u64) {
    let query = AclQuery {
        most: 100,
        ..AclQuery::default()
    };
    let acls = router.acls_where(&query).unwrap();
    let terms: Vec<u64> = acls.terms.iter().map(|term| term.packets).collect();
    let binding = &acls.bindings[0];
    let all = binding.permitted + binding.denied + binding.unmatched;
    (terms, binding.unmatched, all)
}

fn apply(router: &Router, terms: &str) -> Vec<String> {
    let request = ApplyRequest {
        yaml: config(terms),
        ..ApplyRequest::default()
    };
    let applied = router.config_apply(&request, &Caller::router()).unwrap();
    applied.steps.into_iter().map(|step| step.text).collect()
}

/// Waits until terms 0 and 1 and what no term matched have counted this number of packets more.
fn wait_for_more(router: &Router, more: u64) {
    let (before, unmatched, _) = counts(router);
    let until = Instant::now() + LIMIT;
    loop {
        let (now, none, _) = counts(router);
        let grown = |index: usize| now[index] >= before[index] + more;
        if grown(0) && grown(1) && none >= unmatched + more {
            return;
        }
        assert!(Instant::now() < until, "{before:?} {now:?} {none}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_change_of_a_term_keeps_the_counters_of_the_others() {
    let (config, _) = check("weir.yaml", &config(&[SEVEN, NINE].join(", "))).unwrap();
    let router = Router::start(&config, &Options::default()).unwrap();
    wait_for_more(&router, 50);

    // A term before them, which no packet matches.
    let (before, unmatched, all) = counts(&router);
    let steps = apply(&router, &[NOBODY, SEVEN, NINE].join(", "));
    assert_eq!(steps, ["change acl edge: add term 0 (deny tcp)"]);
    let (after, none, sum) = counts(&router);
    assert_eq!(after[0], 0);
    assert!(after[1] >= before[0] && after[2] >= before[1], "{after:?}");
    assert!(none >= unmatched && sum >= all, "{none} {sum}");

    // The order changes, and the description of a term. Counts of two bindings before go on.
    let steps = apply(&router, &[NINE, SEVEN_DESCRIBED].join(", "));
    assert_eq!(steps.len(), 1, "{steps:?}");
    let (later, none_later, _) = counts(&router);
    assert!(later[0] >= after[2] && later[1] >= after[1], "{later:?}");
    assert!(none_later >= none);
    wait_for_more(&router, 50);

    // A term that becomes another one, which no packet matches, starts at zero. The other one does not.
    let (before, ..) = counts(&router);
    let changed = SEVEN.replace('7', "12");
    let steps = apply(&router, &[NINE, &changed].join(", "));
    let expected =
        "change acl edge: term 1: deny udp destination-port 7 -> deny udp destination-port 12";
    assert_eq!(steps, [expected]);
    let (after, ..) = counts(&router);
    assert!(after[0] >= before[0], "{before:?} {after:?}");
    assert_eq!(after[1], 0);
    router.stop();
}
