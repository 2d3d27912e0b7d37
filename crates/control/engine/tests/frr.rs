//! FRR as the control plane: zebra sends its routes by the forwarding plane manager protocol.
//!
//! The router and its hosts are those of `dataplane`; zebra, staticd and bgpd run in the namespace of the TAPs, and a bgpd
//! without zebra at the far host. Needs root and FRR; skipped without.

mod dataplane;

use std::net::UdpSocket;
use std::time::Duration;

use dataplane::{
    Daemon, Frr, Trial, config_with, ip_in, pings, start_with, wait_for, wait_or_explain,
};
use weir_api::{LinuxFpm, RouteSource, Router as _};
use weir_flowfmt::ipfix::decode::{Collector, Item};
use weir_flowfmt::sflow::DataFormat;
use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};

/// Extended gateway.
const GATEWAY_FORMAT: DataFormat = DataFormat {
    enterprise: 0,
    format: 1003,
};

const FPM: &str = "fpm: { hold-time: 3600 }";

const STATIC: &str = "ip route 10.1.0.0/16 192.0.2.2
ip route 10.2.0.0/16 192.0.2.2
ip route 10.2.0.0/16 198.51.100.2
ip route 10.3.0.0/16 blackhole
ip route 10.4.0.0/16 reject
ip route 10.5.0.0/16 192.0.2.2
ip route 203.0.113.0/24 192.0.2.2
ipv6 route 2001:db8:aa::/48 2001:db8:1::2
ipv6 route 2001:db8:bb::/48 2001:db8:1::2
ipv6 route 2001:db8:bb::/48 2001:db8:2::2
ipv6 route 2001:db8:cc::/48 blackhole
";

/// The router's bgpd, and the far host's.
const NEAR: &str = "router bgp 65001
 bgp router-id 192.0.2.1
 no bgp ebgp-requires-policy
 neighbor 192.0.2.2 remote-as 65002
 neighbor 192.0.2.2 timers connect 1
 neighbor 192.0.2.2 advertisement-interval 0
";
const FAR: &str = "router bgp 65002
 bgp router-id 192.0.2.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 192.0.2.1 remote-as 65001
 neighbor 192.0.2.1 timers connect 1
 neighbor 192.0.2.1 advertisement-interval 0
 address-family ipv4 unicast
  network 10.98.0.0/16
  network 10.99.0.0/16
  neighbor 192.0.2.1 next-hop-self
";

impl Trial {
    fn fpm(&self) -> LinuxFpm {
        self.router.linux().unwrap().fpm.unwrap()
    }

    /// Whether FPM's route of a prefix is used, and leads over these next hops.
    fn leads(&self, prefix: &str, hops: &str) -> bool {
        let candidates = self.candidates(prefix);
        let is_fpm = candidates
            .first()
            .is_some_and(|it| it.source == RouteSource::Fpm);
        is_fpm && self.next_hop(prefix).as_deref() == Some(hops)
    }

    fn has_fpm(&self, prefix: &str) -> bool {
        let candidates = self.candidates(prefix);
        candidates.iter().any(|it| it.source == RouteSource::Fpm)
    }

    /// The next hops that the kernel has, which zebra has written.
    fn kernel_hops(&self, prefix: &str) -> String {
        let version = if prefix.contains(':') { "-6" } else { "-4" };
        let mut ip = self.dataplane.command("ip");
        let output = ip
            .args([version, "route", "show", prefix])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let hops = words.windows(2).filter(|pair| pair[0] == "via");
        hops.map(|pair| pair[1]).collect::<Vec<_>>().join(" ")
    }

    fn group(&self, prefix: &str) -> Option<u32> {
        Some(self.candidates(prefix).first()?.group.number)
    }
}

fn far_bgpd(trial: &Trial) -> Option<(Frr, Daemon)> {
    let frr = Frr::new(&trial.far, "frr-far")?;
    let bgpd = frr.start("bgpd", FAR, &["-Z"]);
    Some((frr, bgpd))
}

#[test]
fn routes_of_zebra_are_followed_in_all_forms() {
    let Some(trial) = start_with(FPM) else { return };
    let Some(frr) = Frr::new(&trial.dataplane, "frr-forms") else {
        return;
    };
    let (_zebra, _staticd) = (frr.zebra(), frr.start("staticd", STATIC, &[]));
    for (prefix, hops) in [
        ("10.1.0.0/16", "192.0.2.2"),
        ("10.2.0.0/16", "192.0.2.2 198.51.100.2"),
        ("10.3.0.0/16", "drop"),
        ("10.4.0.0/16", "unreachable"),
        ("2001:db8:aa::/48", "2001:db8:1::2"),
        ("2001:db8:bb::/48", "2001:db8:1::2 2001:db8:2::2"),
        ("2001:db8:cc::/48", "drop"),
    ] {
        wait_for(prefix, || trial.leads(prefix, hops));
    }
    // Routes that zebra gives one next-hop object have one group.
    assert_eq!(trial.group("10.1.0.0/16"), trial.group("10.5.0.0/16"));
    assert_eq!(
        trial.candidates("10.1.0.0/16")[0].protocol.as_deref(),
        Some("static")
    );
    assert!(pings(&trial.near, "203.0.113.1"), "over zebra's route");
    // A path less, another next hop, withdrawals.
    frr.configure(&["no ip route 10.2.0.0/16 198.51.100.2"]);
    wait_for("one path less", || trial.leads("10.2.0.0/16", "192.0.2.2"));
    frr.configure(&["no ipv6 route 2001:db8:bb::/48 2001:db8:1::2"]);
    wait_for("one IPv6 path less", || {
        trial.leads("2001:db8:bb::/48", "2001:db8:2::2")
    });
    frr.configure(&[
        "ip route 10.1.0.0/16 198.51.100.2",
        "no ip route 10.1.0.0/16 192.0.2.2",
    ]);
    wait_for("another next hop", || {
        trial.leads("10.1.0.0/16", "198.51.100.2")
    });
    frr.configure(&["no ip route 10.3.0.0/16 blackhole"]);
    frr.configure(&["no ipv6 route 2001:db8:aa::/48 2001:db8:1::2"]);
    wait_for("withdrawals", || {
        !trial.has_fpm("10.3.0.0/16") && !trial.has_fpm("2001:db8:aa::/48")
    });
    // Zebra takes the routes of a link that is down back, and adds them again.
    ip_in(&trial.dataplane, "link set lan0 down");
    wait_for("the interface comes back, and its routes", || {
        trial.leads("10.1.0.0/16", "198.51.100.2")
    });
    let fpm = trial.fpm();
    assert!(
        fpm.connected && fpm.sessions == 1 && fpm.objects > 0,
        "{fpm:?}"
    );
    assert_eq!(fpm.parked, 0, "{fpm:?}");
    assert!(fpm.refused.is_empty(), "{fpm:?}");
    trial.router.stop();
}

#[test]
fn routes_stay_while_frr_is_away_and_stale_ones_go_by_protocol() {
    let Some(trial) = start_with(FPM) else { return };
    let Some(frr) = Frr::new(&trial.dataplane, "frr-restart") else {
        return;
    };
    let Some((far, _far_bgpd)) = far_bgpd(&trial) else {
        return;
    };
    let (zebra, staticd) = (frr.zebra(), frr.start("staticd", STATIC, &[]));
    let bgpd = frr.start("bgpd", NEAR, &[]);
    let by_bgp = ["10.98.0.0/16", "10.99.0.0/16"];
    wait_for("the routes of staticd and bgpd", || {
        by_bgp.iter().all(|prefix| trial.leads(prefix, "192.0.2.2"))
            && trial.leads("10.5.0.0/16", "192.0.2.2")
            && trial.leads("203.0.113.0/24", "192.0.2.2")
    });
    assert!(pings(&trial.near, "203.0.113.1"));
    // Zebra first: it withdraws the routes of a daemon that it sees go.
    drop((zebra, staticd, bgpd));
    wait_for("the session ends", || !trial.fpm().connected);
    let all_stay = |prefixes: &[&str]| {
        for prefix in prefixes {
            assert!(trial.has_fpm(prefix), "{prefix} is gone");
        }
    };
    all_stay(&["10.1.0.0/16", "10.5.0.0/16", "10.98.0.0/16", "10.99.0.0/16"]);
    assert!(pings(&trial.near, "203.0.113.1"), "while FRR is away");
    // Zebra and staticd come back with a route less. Of BGP they know nothing yet. The kernel loses these routes first: zebra
    // keeps what it finds there now and then, and sends it.
    for gone in ["10.5.0.0/16", "10.98.0.0/16", "10.99.0.0/16"] {
        ip_in(&trial.dataplane, &format!("route del {gone}"));
    }
    let fewer = STATIC.replace("ip route 10.5.0.0/16 192.0.2.2\n", "");
    let (_zebra, _staticd) = (frr.zebra(), frr.start("staticd", &fewer, &[]));
    let is_gone = || {
        all_stay(&["10.1.0.0/16", "10.98.0.0/16", "10.99.0.0/16"]);
        !trial.has_fpm("10.5.0.0/16")
    };
    wait_or_explain("the stale static route goes", is_gone, || {
        let kernel = trial.kernel_hops("10.5.0.0/16");
        let zebra = frr.show("show ip route");
        format!("{:?}\nkernel: {kernel:?}\nzebra: {zebra}", trial.fpm())
    });
    // Bgpd learns one of the two again; the other one has been withdrawn meanwhile.
    far.configure(&[
        "router bgp 65002",
        "address-family ipv4 unicast",
        "no network 10.99.0.0/16",
    ]);
    let _bgpd = frr.start("bgpd", NEAR, &[]);
    wait_for("the stale route of BGP goes", || {
        all_stay(&["10.1.0.0/16", "10.98.0.0/16"]);
        !trial.has_fpm("10.99.0.0/16")
    });
    assert!(pings(&trial.near, "203.0.113.1"), "when FRR is back");
    trial.router.stop();
}

#[test]
fn a_router_that_starts_later_gets_all_routes_of_zebra() {
    let Some(trial) = start_with(FPM) else { return };
    let Some(frr) = Frr::new(&trial.dataplane, "frr-later") else {
        return;
    };
    let (_zebra, _staticd) = (frr.zebra(), frr.start("staticd", STATIC, &[]));
    wait_for("the route", || trial.leads("10.1.0.0/16", "192.0.2.2"));
    let trial = trial.restart(FPM);
    // Zebra decides when it uses a path over a link that is new: the kernel has what it has chosen.
    for prefix in ["10.2.0.0/16", "10.5.0.0/16", "2001:db8:bb::/48"] {
        let explain = || {
            let linux = trial.router.linux().unwrap();
            let (four, six) = (frr.show("show ip route"), frr.show("show ipv6 route"));
            format!(
                "kernel {:?}, here {:?}\n{:?}\n{:?}\n{four}\n{six}",
                trial.kernel_hops(prefix),
                trial.next_hop(prefix),
                linux.fpm,
                linux.refused
            )
        };
        let is_equal = || {
            let hops = trial.kernel_hops(prefix);
            !hops.is_empty() && trial.leads(prefix, &hops)
        };
        wait_or_explain(prefix, is_equal, explain);
    }
    trial.router.stop();
}

/// The router's bgpd, which sends its routes by BMP, and the far host's with a longer path.
const MONITORED: &str = "router bgp 65001
 bgp router-id 192.0.2.1
 no bgp ebgp-requires-policy
 neighbor 192.0.2.2 remote-as 65002
 neighbor 192.0.2.2 timers connect 1
 bmp targets weir
  bmp monitor ipv4 unicast post-policy
  bmp connect 127.0.0.1 port 11019 min-retry 100 max-retry 500
";
const PREPENDED: &str = "router bgp 65002
 bgp router-id 192.0.2.2
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 192.0.2.1 remote-as 65001
 neighbor 192.0.2.1 timers connect 1
 address-family ipv4 unicast
  network 10.98.0.0/16
  neighbor 192.0.2.1 next-hop-self
  neighbor 192.0.2.1 route-map OUT out
route-map OUT permit 10
 set as-path prepend 64999
 set community 65002:7
";

/// What a sample's extended gateway (0:1003) has when the router knows the path by BMP: next hop, own AS, source AS and its peer, the
/// path in one sequence, one community, and the local preference (none, so 0).
const GATEWAY: &str = "1 c0000202 65001 0 0 1 2 2 65002 64999 1 fdea0007 0";

/// A record's words as [`GATEWAY`] has them.
fn gateway_words(body: &[u8]) -> String {
    let (words, _) = body.as_chunks::<4>();
    let words = words.iter().map(|word| u32::from_be_bytes(*word));
    let shown = words.map(|word| match word {
        0xc000_0202 | 0xfdea_0007 => format!("{word:x}"),
        _ => word.to_string(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn samples_and_flows_have_the_as_path_that_bgpd_tells_by_bmp() {
    let linux = "bmp: {}";
    let Some(trial) = start_with(linux) else {
        return;
    };
    let Some(far) = Frr::new(&trial.far, "bmp-far") else {
        return;
    };
    let _far_bgpd = far.start("bgpd", PREPENDED, &["-Z"]);
    let frr = Frr::new(&trial.dataplane, "bmp-near").unwrap();
    let _zebra = frr.start("zebra", "", &[]);
    let bgpd = frr.start("bgpd", MONITORED, &["-M", "bmp"]);
    let bind = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let wait = Some(Duration::from_millis(100));
        socket.set_read_timeout(wait).unwrap();
        socket
    };
    let (samples, flows) = trial.far.run(|| (bind(), bind())).unwrap();
    let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
    let more = format!(
        "sflow: {{ sampling-rate: 1, polling-interval: 0, collectors: [ {{ address: 127.0.0.1, port: {} }} ] }}
ipfix:
  records: {{ as: {{ elements: [ sourceIPv4Address, bgpDestinationAsNumber, bgpNextAdjacentAsNumber, bgpSourceAsNumber, bgpPrevAdjacentAsNumber, packetDeltaCount ] }} }}
  interfaces: {{ lan: {{ records: as }} }}
  active-timeout: 1
  collectors: [ {{ address: 127.0.0.1, port: {} }} ]
",
        port(&samples),
        port(&flows)
    );
    let mut wanted = config_with(&trial.name.0, linux, &more);
    wanted.interfaces.get_mut("lan").unwrap().sflow = true;
    // In the namespace of the collectors, since the exporter's thread is started now.
    let applied = trial.far.run(|| trial.router.apply(&wanted).map(drop));
    applied.unwrap().unwrap();
    let bmp = || trial.router.linux().unwrap().bmp.unwrap();
    let is_known = || bmp().paths == 1 && trial.has("10.98.0.0/16");
    wait_or_explain("the route of bgpd in both ways", is_known, || {
        format!("{:?}\n{}", bmp(), frr.show("show bmp"))
    });
    let shown = bmp();
    assert_eq!((shown.sessions.len(), shown.prefixes), (1, 1), "{shown:?}");
    assert_eq!(shown.sessions[0].peers[0].as_number, 65_002, "{shown:?}");

    let mut buffer = vec![0; 9000];
    let mut gateways = Vec::new();
    wait_or_explain(
        "a sample with the path",
        || {
            pings(&trial.near, "10.98.0.1");
            while let Ok(length) = samples.recv(&mut buffer) {
                for sample in Datagram::decode(&buffer[..length]).unwrap().samples() {
                    let Ok(Sample::Flow(_, _, records)) = sample else {
                        continue;
                    };
                    gateways.extend(records.filter_map(|record| match record {
                        Ok(FlowRecord::Other(it)) if it.format == GATEWAY_FORMAT => {
                            Some(gateway_words(it.body))
                        }
                        _ => None,
                    }));
                }
            }
            gateways.iter().any(|it| it == GATEWAY)
        },
        || "see below".into(),
    );
    assert!(gateways.iter().all(|it| it == GATEWAY), "{gateways:?}");

    let (mut collector, mut found) = (Collector::default(), Vec::new());
    let explain = || format!("{:?}", trial.router.ipfix().unwrap());
    let has_numbers = || {
        pings(&trial.near, "10.98.0.1");
        while let Ok((length, from)) = flows.recv_from(&mut buffer) {
            collector.read(from, &buffer[..length], &mut |item| {
                if let Item::Record(record) = item
                    && !record.template.is_options()
                {
                    let number = |element| record.number(element).unwrap_or(u64::MAX);
                    found.push([16, 17, 128, 129].map(number));
                }
            });
        }
        found.contains(&[0, 64_999, 65_002, 0])
    };
    wait_or_explain("a flow with the numbers", has_numbers, explain);
    // Bgpd ends: its paths go, and samples go on without them.
    drop(bgpd);
    wait_for("no session, no paths", || {
        let shown = bmp();
        shown.sessions.is_empty() && shown.paths == 0
    });
    trial.router.stop();
}
