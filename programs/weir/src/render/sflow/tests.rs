//! What `show sflow` and its parts look like.

use weir_api::{
    Sflow, SflowCollector, SflowDirection, SflowDiscovery, SflowDrop, SflowEncoding,
    SflowInterface, SflowKernel, SflowSettings, SflowShare, SflowWorker,
};

use super::Screen;

const PIPE: Screen = Screen {
    width: None,
    colour: false,
};

fn reply() -> Sflow {
    let collector = |host: &str, address: Option<&str>| SflowCollector {
        host: host.to_owned(),
        address: address.map(|address| address.parse().unwrap()),
        port: 6343,
        namespace: None,
        source: None,
        dscp: 0,
        dev: None,
        table: None,
        through_host: false,
        drops: true,
        announced: false,
        sent: 7,
        errors: 0,
        last_error: None,
    };
    Sflow {
        settings: SflowSettings {
            sampling_rate: 1000,
            polling_interval: 0,
            header_bytes: 128,
            direction: SflowDirection::Rx,
            drop_limit: 100,
            encoding: SflowEncoding::Expanded,
            datagram_bytes: 1400,
            agent_sub_id: 0,
            os_index: true,
            if_offset: 1_000_000_000,
        },
        agent: Some("192.0.2.1".parse().unwrap()),
        collectors: vec![
            SflowCollector {
                errors: 1,
                last_error: Some("connection refused".to_owned()),
                ..collector("2001:db8::1", Some("2001:db8::1"))
            },
            SflowCollector {
                namespace: Some("mgmt".to_owned()),
                source: Some("192.0.2.7".parse().unwrap()),
                dscp: 16,
                dev: Some("vrf-mgmt".to_owned()),
                drops: false,
                announced: true,
                ..collector("collector.example", None)
            },
        ],
        discovery: Some(SflowDiscovery {
            domain: Some("example".to_owned()),
            trouble: Some("name server 192.0.2.53: timed out".to_owned()),
        }),
        kernel: Some(SflowKernel {
            group: 3,
            egress_group: 4,
            namespace: Some("mgmt".to_owned()),
            samples: 0,
            drops: 2,
            reports: 60,
            failed: 1,
            lacking: vec!["this kernel has no psample".to_owned()],
        }),
        workers: vec![SflowWorker {
            worker: 0,
            samples_taken: 10,
            samples_sent: 9,
            samples_dropped: 1,
        }],
        interfaces: vec![SflowInterface {
            interface: "wan".to_owned(),
            index: 1,
            reported_index: 7,
            sampling_rate: 1000,
            direction: SflowDirection::Rx,
            header_bytes: 128,
            polling_interval: 20,
            pool: 10_000,
            samples: 10,
            dropped: 1,
            workers: vec![
                SflowShare {
                    worker: 0,
                    pool: 4000,
                    samples: 4,
                    dropped: 0,
                },
                SflowShare {
                    worker: 1,
                    pool: 6000,
                    samples: 6,
                    dropped: 1,
                },
            ],
        }],
        drops: vec![
            SflowDrop {
                interface: Some("wan".to_owned()),
                node: "ip4-lookup".to_owned(),
                reason: "no-route".to_owned(),
                code: 0,
                standard: "net_unreachable".to_owned(),
                dropped: 7,
                reported: 3,
                reported_as: Vec::new(),
            },
            SflowDrop {
                interface: Some("wan".to_owned()),
                node: "ip4-input".to_owned(),
                reason: "ip4-martian-source".to_owned(),
                code: 274,
                standard: "sip_is_loopback_address".to_owned(),
                dropped: 5,
                reported: 5,
                reported_as: [(273, "sip_is_mc", 2), (295, "sip_is_class_e", 3)]
                    .map(|(code, standard, reported)| weir_api::SflowReported {
                        code,
                        standard: standard.to_owned(),
                        reported,
                    })
                    .to_vec(),
            },
            SflowDrop {
                interface: None,
                node: "port-tx".to_owned(),
                reason: "tx-full".to_owned(),
                code: 259,
                standard: "no_buffer_space".to_owned(),
                dropped: 2,
                reported: 0,
                reported_as: Vec::new(),
            },
        ],
        samples_sent: 9,
        samples_lost: 0,
        samples_incomplete: 2,
        discards_sent: 3,
        discards_dropped: 4,
        datagrams: 7,
    }
}

#[test]
fn settings_losses_and_troubles_are_reported() {
    let expected = "\
sampling-rate     1 in 1000, rx
polling-interval  off
header-bytes      128
drop-limit        100 a second
encoding          expanded, datagrams up to 1400 bytes
osIndex           on, ifOffset 1000000000
agent             192.0.2.1, sub-agent 0
samples           10 taken, 9 sent, 1 dropped, 0 lost, 2 without an output
discards          3 reported, 4 beyond the limit
datagrams         7
dns-sd            example
psample           groups 3 and 4 in mgmt: 0 samples, 2 drops, 60 reports, 1 failed

Collector                    Sent  Errors
[2001:db8::1]:6343              7       1
collector.example:6343%mgmt     7       0

Interface  Idx  Rate  Direction   Pool  Samples
wan          1  1000  rx         10000       10

Worker  Taken  Sent  Dropped
     0     10     9        1

[2001:db8::1]:6343: connection refused
dns-sd: name server 192.0.2.53: timed out
psample: this kernel has no psample
";
    assert_eq!(super::sflow(&reply(), &PIPE), expected);
}

#[test]
fn a_router_without_an_address_says_what_to_set() {
    let nameless = Sflow {
        agent: None,
        ..reply()
    };
    let line =
        "\nagent             0.0.0.0 (no address of its own: set sflow.agent), sub-agent 0\n";
    assert!(super::sflow(&nameless, &PIPE).contains(line));
}

#[test]
fn interfaces_are_reported_by_worker_too() {
    let expected = "\
Interface  Idx  Reported as  Rate  Direction  Header  Polling  Worker   Pool  Samples  Dropped
wan          1            7  1000  rx            128     20 s  all     10000       10        1
                                                               0        4000        4        0
                                                               1        6000        6        1
";
    assert_eq!(super::interfaces(&reply().interfaces, &PIPE), expected);
}

#[test]
fn collectors_are_reported_with_their_ways() {
    let expected = "\
Collector                    Address      Source     Device    DSCP  Drops  Found   Sent  Errors  Last error
[2001:db8::1]:6343           2001:db8::1  -          -            0  yes    listed     7       1  connection refused
collector.example:6343%mgmt  -            192.0.2.7  vrf-mgmt    16  no     dns-sd     7       0  -
";
    assert_eq!(super::collectors(&reply().collectors, &PIPE), expected);
}

#[test]
fn drops_are_reported_as_the_standard_names_them() {
    let expected = "\
Interface  Node        Reason                 Code  Standard                  Dropped  Reported
wan        ip4-lookup  no-route                  0  net_unreachable                 7         3
wan        ip4-input   ip4-martian-source  273,295  sip_is_mc,sip_is_class_e        5         5
-          port-tx     tx-full                 259  no_buffer_space                 2         0
";
    assert_eq!(super::drops(&reply().drops, &PIPE), expected);
}
