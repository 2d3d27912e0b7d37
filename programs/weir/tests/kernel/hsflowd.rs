//! hsflowd as it is, with its modules `psample`, `vpp` and `dropmon`, reads what Weir sends through the kernel.
//!
//! Weir sends the same samples in datagrams of its own as well: what hsflowd makes of them has to have equal values. The
//! program is in no package of Debian's, so that the case is run only where there is one (`WEIR_HSFLOWD` is its command
//! line, with `-l` where its modules are elsewhere than it thinks).

use std::collections::BTreeSet;

use serde_json::Value;

use super::bed::{Bed, kernel_has, wait};
use super::first::{FirstNamespace, OFFSET, index};

/// hsflowd's and Weir's datagrams go to these ports.
const HEARD: u16 = 16_343;
const OWN: u16 = 16_344;

/// What a decoder wrote so far, a datagram a line, as samples.
fn samples(file: &str) -> Vec<Value> {
    let said = std::fs::read_to_string(file).unwrap();
    let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let datagrams = whole
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    datagrams
        .flat_map(|datagram| datagram["samples"].as_array().unwrap().clone())
        .collect()
}

/// A field of a sample, wherever it stands in it.
fn field(sample: &Value, name: &str) -> Option<String> {
    let elements = sample["elements"].as_array();
    let inside = || {
        elements
            .into_iter()
            .flatten()
            .find_map(|element| element[name].as_str())
    };
    sample[name].as_str().or_else(inside).map(str::to_owned)
}

/// These fields of all samples of a kind.
fn fields(samples: &[Value], kind: &str, names: &[&str]) -> BTreeSet<Vec<String>> {
    let of_kind = samples.iter().filter(|sample| sample["sampleType"] == kind);
    of_kind
        .filter_map(|sample| names.iter().map(|name| field(sample, name)).collect())
        .collect()
}

/// Packets and where they were seen, in the router's numbers. Only an interface is reported through the kernel as where a packet
/// went: what ended otherwise went nowhere that is known.
fn packets(samples: &[Value], number: impl Fn(u64) -> u64) -> BTreeSet<Vec<String>> {
    const FIELDS: [&str; 7] = [
        "sourceId",
        "inputPort",
        "outputPort",
        "meanSkipCount",
        "sampledPacketSize",
        "strippedBytes",
        "headerBytes",
    ];
    let own = |port: &str| match port.parse() {
        Ok(0x3FFF_FFFF) | Err(_) => "0".to_owned(),
        Ok(port) => number(port).to_string(),
    };
    let reported = |mut packet: Vec<String>| {
        packet[0] = own(packet[0].trim_start_matches("0:"));
        (packet[1], packet[2]) = (own(&packet[1]), own(&packet[2]));
        packet
    };
    fields(samples, "FLOWSAMPLE", &FIELDS)
        .into_iter()
        .map(reported)
        .collect()
}

/// Dropped packets, in the same way. hsflowd takes their lengths as they are, without the check sequence.
fn drops(samples: &[Value], number: impl Fn(u64) -> u64) -> BTreeSet<Vec<String>> {
    let found = fields(
        samples,
        "DISCARD",
        &["inputPort", "discardCode", "discarded_headerBytes"],
    );
    let reported = |mut drop: Vec<String>| {
        drop[0] = number(drop[0].parse().unwrap()).to_string();
        drop
    };
    found.into_iter().map(reported).collect()
}

/// Counters of an interface, in the order in which they came.
fn counters(samples: &[Value], name: &str) -> Vec<[u64; 4]> {
    const FIELDS: [&str; 4] = [
        "ifInOctets",
        "ifOutOctets",
        "ifInUcastPkts",
        "ifOutUcastPkts",
    ];
    let of_name = samples
        .iter()
        .filter(|sample| field(sample, "ifName").as_deref() == Some(name));
    of_name
        .map(|sample| FIELDS.map(|counter| field(sample, counter).unwrap().parse().unwrap()))
        .collect()
}

/// hsflowd counts from the first report that it heard.
fn is_growth(heard: [u64; 4], own: &[[u64; 4]]) -> bool {
    let grew = |from: &[u64; 4], to: &[u64; 4]| {
        (0..2).all(|it| to[it].checked_sub(from[it]) == Some(heard[it]))
    };
    own.iter()
        .enumerate()
        .any(|(place, from)| own[place..].iter().any(|to| grew(from, to)))
}

/// `osIndex` is hsflowd's setting and Weir's; the numbers are those that hsflowd tells then.
fn hsflowd_reads(os_index: bool) {
    if !kernel_has(&["link add nlmon-test type nlmon"]) {
        return;
    }
    let hsflowd = std::env::var("WEIR_HSFLOWD").unwrap_or_else(|_| "hsflowd".to_owned());
    let mut bed = Bed::new(
        if os_index {
            "hsflowd-on"
        } else {
            "hsflowd-off"
        },
        &[("near", 1), ("far", 1)],
    );
    bed.on("near", "ip address add 10.1.0.2/24 dev eth0");
    bed.on("far", "ip address add 10.2.0.2/24 dev eth0");
    bed.on("near", "ip route add default via 10.1.0.1");
    bed.on("far", "ip route add default via 10.2.0.1");
    let mut first = FirstNamespace::new();
    let (heard, own, conf, log) = (
        bed.file("heard"),
        bed.file("own"),
        bed.file("hsflowd.conf"),
        bed.file("hsflowd"),
    );
    for (port, file) in [(HEARD, &heard), (OWN, &own)] {
        first.spawn(
            &format!(
                "{} sflow decode --listen 127.0.0.1:{port} -j",
                super::bed::weir()
            ),
            file,
            "listening",
        );
    }
    let setting = if os_index { "" } else { "osIndex=off" };
    let written = format!(
        "sflow {{ agentIP=192.0.2.7 polling=1 sampling=1 collector {{ ip=127.0.0.1 udpport={HEARD} }}
         psample {{ }} vpp {{ {setting} }} dropmon {{ start=off limit=1000 }} }}"
    );
    std::fs::write(&conf, written).unwrap();
    let (output, pid) = (bed.file("hsflowd.auto"), bed.file("hsflowd.pid"));
    first.spawn(
        &format!("{hsflowd} -d -P -f {conf} -o {output} -p {pid}"),
        &log,
        "",
    );
    wait("hsflowd listens", || {
        // NETLINK_USERSOCK and group 29, as columns 2 and 4.
        let sockets = std::fs::read_to_string("/proc/net/netlink").unwrap();
        let listens = |line: &str| {
            line.split_whitespace()
                .skip(1)
                .step_by(2)
                .take(2)
                .eq(["2", "10000000"])
        };
        if sockets.lines().any(listens) {
            Ok(())
        } else {
            Err(std::fs::read_to_string(&log).unwrap())
        }
    });
    let config = format!(
        "interfaces:
  near: {{device: {{driver: af-xdp, name: near-0}}, addresses: [10.1.0.1/24], sflow: true}}
  far: {{device: {{driver: af-xdp, name: far-0}}, addresses: [10.2.0.1/24], sflow: true}}
sflow:
  sampling-rate: 1
  direction: both
  polling-interval: 1
  drop-limit: 1000
  osIndex: {os_index}
  psample: {{namespace: {name}}}
  interfaces: {{near: {{osIndex: 4321}}}}
  collectors: [{{address: 127.0.0.1, port: {OWN}, namespace: {name}}}]
",
        name = first.name
    );
    bed.start(&config);
    let (near, far) = (index(&bed, "near"), index(&bed, "far"));
    // What hsflowd tells, in Weir's own numbers.
    let back = |reported: u64| match reported {
        0 => 0,
        4321 if os_index => near,
        _ if os_index => reported.checked_sub(OFFSET).unwrap(),
        _ => reported,
    };
    wait("counters of both at hsflowd's collector", || {
        let all = samples(&heard);
        if ["near", "far"]
            .iter()
            .all(|name| !counters(&all, name).is_empty())
        {
            Ok(())
        } else {
            Err(format!("{all:?}"))
        }
    });
    let story = || {
        let (heard, own) = (samples(&heard), samples(&own));
        let seen = |samples: &[Value]| {
            (
                packets(samples, back),
                drops(samples, back),
                counters(samples, "near"),
            )
        };
        format!(
            "heard {:#?}\nown {:#?}\n{}",
            seen(&heard),
            seen(&own),
            std::fs::read_to_string(&log).unwrap()
        )
    };
    wait(
        "the request's samples and drops, equal to Weir's own",
        || {
            // hsflowd begins to read them a while after it listens for counters.
            bed.ping("near", "10.2.0.2", 100);
            bed.no_ping("near", "10.99.0.1");
            let (said, _) = bed.try_on("near", "ping -c 1 -W 2 -t 1 10.2.0.2");
            assert!(said.contains("Time to live exceeded"), "{said}");
            let (heard, own) = (samples(&heard), samples(&own));
            let (reported, said) = (packets(&heard, back), packets(&own, back));
            let crossed = |packet: &Vec<String>| {
                packet[1] == near.to_string() && packet[2] == far.to_string() && packet[4] == "146"
            };
            let sources: BTreeSet<&String> = reported
                .iter()
                .filter(|it| crossed(it) && said.contains(*it))
                .map(|packet| &packet[0])
                .collect();
            let (lost, said) = (drops(&heard, back), drops(&own, back));
            // No route, by the name that Linux has for the reason; time to live exceeded, by that of the trap.
            let same = |code: &str| {
                lost.iter().any(|drop| {
                    drop[..2] == [near.to_string(), code.to_owned()] && said.contains(drop)
                })
            };
            if sources.len() == 2 && same("0") && same("257") {
                Ok(())
            } else {
                Err(story())
            }
        },
    );
    wait("counters that grew as Weir's own", || {
        let (heard, own) = (samples(&heard), samples(&own));
        let same = |name: &str| {
            counters(&heard, name)
                .iter()
                .any(|it| it[0] > 200 && it[1] > 200 && is_growth(*it, &counters(&own, name)))
        };
        if same("near") && same("far") {
            Ok(())
        } else {
            Err(story())
        }
    });
    // Nothing of what hsflowd tells is otherwise than Weir's own.
    let all = samples(&heard);
    wait(
        "each of them among Weir's own, which may come later",
        || {
            let mine = samples(&own);
            let strange: Vec<Vec<String>> = packets(&all, back)
                .difference(&packets(&mine, back))
                .cloned()
                .collect();
            if strange.is_empty() {
                Ok(())
            } else {
                Err(format!("{strange:?} in none of {mine:?}"))
            }
        },
    );
    let known: BTreeSet<String> = fields(
        &all,
        "DISCARD",
        &["discarded_hw_trap_group", "discarded_hw_trap_name"],
    )
    .into_iter()
    .map(|it| it.join(" "))
    .collect();
    let names = [
        "vpp_icmp4-error vpp_no-route",
        "vpp_icmp4-error ttl_value_is_too_small",
    ];
    assert!(names.iter().all(|name| known.contains(*name)), "{known:?}");
    bed.stop();
}

#[test]
#[ignore = "run where there is an hsflowd"]
fn an_unmodified_hsflowd_tells_the_same_by_linuxs_numbers() {
    hsflowd_reads(true);
}

#[test]
#[ignore = "run where there is an hsflowd"]
fn an_unmodified_hsflowd_tells_the_same_by_the_routers_numbers() {
    hsflowd_reads(false);
}
