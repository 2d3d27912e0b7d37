//! The daemon and its programs between namespaces.

use weir_flowfmt::sflow::decode::{Datagram, Sample};
use weir_xdp::daemon;
use weir_xdp::show::{self, Balance, PortView};

use crate::bed::{Bed, Raw, can_run, frame, udp, wait_for};

const ONE: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const TWO: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const THREE: [u8; 6] = [0x52, 0x54, 0, 0, 0, 3];
const FAR: [u8; 6] = [0x52, 0x54, 0, 0, 0xff, 1];
const ALL: [u8; 6] = [0xff; 6];

const HOST: &str = "
ports:
  tap1: {vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.1]}
  tap2: {vlan: 100, macs: ['52:54:00:00:00:02'], addresses: [192.0.2.2]}
  tap3: {vlan: 200, macs: ['52:54:00:00:00:03'], addresses: [192.0.2.3]}
  up: {trunk: [100, 200]}
";

fn port(views: &[PortView], name: &str) -> PortView {
    views
        .iter()
        .find(|view| view.name == name)
        .cloned()
        .unwrap()
}

fn dropped(view: &PortView, reason: &str) -> u64 {
    view.drops
        .iter()
        .find(|it| it.reason == reason)
        .map_or(0, |it| it.packets)
}

#[test]
fn guests_and_uplink_exchange_frames_in_their_vlans() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let [one, two, three, up] =
        ["tap1", "tap2", "tap3", "up"].map(|name| Raw::open(&bed.port(name)));
    let folders = bed.pins.folders();
    let running = bed.start(HOST);

    // From the uplink: the tag goes, whatever its priority; the source is learned.
    let payload = udp([198, 51, 100, 1], [192, 0, 2, 1], (7, 9));
    up.send(&frame(ONE, FAR, 100 | 5 << 13, &payload));
    let got = one.next();
    assert_eq!(got[..14], frame(ONE, FAR, 0, &payload)[..14]);
    let fdb = show::fdb(&folders).unwrap();
    assert!(fdb.iter().any(|it| it.vlan == 100
        && it.mac == "52:54:00:00:ff:01"
        && it.port == "up"
        && !it.is_static));

    // To the uplink: the tag comes.
    let answer = udp([192, 0, 2, 1], [198, 51, 100, 1], (9, 7));
    one.send(&frame(FAR, ONE, 0, &answer));
    assert_eq!(up.next()[..18], frame(FAR, ONE, 100, &answer)[..18]);

    // Between guests.
    one.send(&frame(TWO, ONE, 0, &answer));
    assert_eq!(two.next()[..14], frame(TWO, ONE, 0, &answer)[..14]);

    // A broadcast: the ports of the VLAN, each with its tag.
    one.send(&frame(ALL, ONE, 0, &answer));
    assert_eq!(two.next()[..14], frame(ALL, ONE, 0, &answer)[..14]);
    assert_eq!(up.next()[..18], frame(ALL, ONE, 100, &answer)[..18]);
    three.send(&frame(
        ALL,
        THREE,
        0,
        &udp([192, 0, 2, 3], [255; 4], (1, 2)),
    ));
    assert_eq!(up.next()[..18], frame(ALL, THREE, 200, &[8, 0])[..18]);
    assert!(three.receive().is_none() && two.receive().is_none());

    // An ARP request for a guest is answered at once.
    let mut request = vec![8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
    request.extend(ONE);
    request.extend([192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2]);
    one.send(&frame(ALL, ONE, 0, &request));
    let reply = one.next();
    assert_eq!(
        reply[..22],
        [&ONE[..], &TWO, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat()
    );
    assert_eq!(
        reply[22..42],
        [&TWO[..], &[192, 0, 2, 2], &ONE, &[192, 0, 2, 1]].concat()
    );

    // What is not permitted is dropped, with its reason.
    one.send(&frame(TWO, FAR, 0, &answer));
    one.send(&frame(
        TWO,
        ONE,
        0,
        &udp([192, 0, 2, 99], [192, 0, 2, 2], (1, 2)),
    ));
    one.send(&frame(
        TWO,
        ONE,
        0,
        &udp([192, 0, 2, 1], [192, 0, 2, 2], (67, 68)),
    ));
    one.send(&frame(TWO, ONE, 7, &answer));
    wait_for("four drops", || {
        let view = port(&show::ports(&folders).unwrap(), "tap1");
        ["spoofed-mac", "spoofed-ip", "dhcp-server", "tagged-frame"]
            .iter()
            .all(|reason| dropped(&view, reason) == 1)
    });
    let views = show::ports(&folders).unwrap();
    assert_eq!(port(&views, "tap1").answered, 1);
    let balance = Balance::of(&views);
    assert!(balance.is_exact(), "{balance:?}");
    drop(running);
}

#[test]
fn forwarding_goes_on_without_the_daemon_and_counters_survive_it() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let [one, two] = ["tap1", "tap2"].map(|name| Raw::open(&bed.port(name)));
    let folders = bed.pins.folders();
    let payload = udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2));
    let send = |count: u64| {
        for _ in 0..count {
            one.send(&frame(TWO, ONE, 0, &payload));
            two.next();
        }
    };
    drop(bed.start(HOST));
    send(10);
    let running = bed.start(HOST);
    send(10);
    assert_eq!(
        port(&show::ports(&folders).unwrap(), "tap2").out_packets,
        20
    );

    // A new configuration by the control socket: the ports change VLANs, and keep their counters.
    let other = HOST.replace("tap2: {vlan: 100", "tap2: {vlan: 300");
    daemon::send(&folders, &other).unwrap();
    one.send(&frame(TWO, ONE, 0, &payload));
    wait_for("the frame's drop", || {
        dropped(
            &port(&show::ports(&folders).unwrap(), "tap1"),
            "no-flood-port",
        ) == 1
            || port(&show::ports(&folders).unwrap(), "tap2").filtered == 1
    });
    assert!(daemon::send(&folders, "ports: 5").is_err());
    daemon::send(&folders, HOST).unwrap();
    send(1);

    // A port vanishes and comes again, as that of a guest that is started anew.
    let mut route = bed.host.route().unwrap();
    let index = route.link_by_name("tap2").unwrap().index;
    route.delete(index).unwrap();
    wait_for("the port's removal", || {
        show::ports(&folders)
            .unwrap()
            .iter()
            .all(|it| it.name != "tap2")
    });
    let two = Raw::open(&bed.port("tap2"));
    wait_for("the port's return", || {
        show::ports(&folders)
            .unwrap()
            .iter()
            .any(|it| it.name == "tap2")
    });
    wait_for("a frame to the new port", || {
        one.send(&frame(TWO, ONE, 0, &payload));
        two.receive().is_some()
    });
    drop(running);
}

#[test]
fn routed_ports_forward_by_the_tables_of_the_kernel() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let [one, two] = ["tap1", "tap2"].map(|name| Raw::open(&bed.port(name)));
    let mut route = bed.host.route().unwrap();
    let mut macs = Vec::new();
    for (name, address) in [("tap1", [10, 0, 1, 1]), ("tap2", [10, 0, 2, 1])] {
        let link = route.link_by_name(name).unwrap();
        route.add_address(link.index, address.into(), 24).unwrap();
        macs.push(link.mac.unwrap());
    }
    let out = route.link_by_name("tap2").unwrap().index;
    route.add_neighbour(out, [10, 0, 2, 2].into(), TWO).unwrap();
    bed.host
        .run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap())
        .unwrap();
    let running = bed.start("ports:\n  tap1: {routed: true}\n  tap2: {routed: true}\n");
    let mut payload = udp([10, 0, 1, 2], [10, 0, 2, 2], (5, 6));
    // The header's checksum, worked out by hand as RFC 1071 says.
    let sum = payload[2..22].chunks(2).fold(0u32, |sum, pair| {
        sum + u32::from(pair[0]) * 256 + u32::from(pair[1])
    });
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    payload[12..14].copy_from_slice(&checksum.to_be_bytes());
    one.send(&frame(macs[0], ONE, 0, &payload));
    let got = two.next();
    assert_eq!(got[..12], [TWO, macs[1]].concat());
    assert_eq!(got[22], 63);
    let sum = got[14..34].chunks(2).fold(0u32, |sum, pair| {
        sum + u32::from(pair[0]) * 256 + u32::from(pair[1])
    });
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    // The kernel's own forwarding is not counted as sent.
    assert_eq!(
        port(&show::ports(&bed.pins.folders()).unwrap(), "tap2").out_packets,
        1
    );
    drop(running);
}

#[test]
fn samples_reach_a_collector_and_add_up_to_the_packets() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let [one, two] = ["tap1", "tap2"].map(|name| Raw::open(&bed.port(name)));
    let collector = bed
        .host
        .run(|| std::net::UdpSocket::bind("127.0.0.1:0").unwrap())
        .unwrap();
    let address = collector.local_addr().unwrap();
    let text = format!(
        "{}sflow: {{sampling-rate: 10, agent: 192.0.2.254, collectors: ['{address}']}}\n",
        HOST.replace("192.0.2.1]", "192.0.2.1], sample: true")
    );
    let running = bed.start(&text);
    let payload = udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2));
    let packets = 3000;
    for _ in 0..packets {
        one.send(&frame(TWO, ONE, 0, &payload));
        while two.receive().is_some() {}
    }
    let view = port(&show::ports(&bed.pins.folders()).unwrap(), "tap1");
    assert_eq!(view.in_packets, packets);
    // 300 on average, with a standard deviation of 16.4: five of them.
    assert!((218..=382).contains(&view.sampled), "{}", view.sampled);
    collector
        .set_read_timeout(Some(std::time::Duration::from_secs(10)))
        .unwrap();
    let (mut samples, mut bytes) = (0, [0; 2000]);
    while samples < view.sampled {
        let length = collector.recv(&mut bytes).unwrap();
        assert!(length <= 1400);
        let datagram = Datagram::decode(&bytes[..length]).unwrap();
        assert_eq!(datagram.agent, Some([192, 0, 2, 254].into()));
        for sample in datagram.samples() {
            if let Sample::Flow(_, flow, _) = sample.unwrap() {
                assert_eq!((flow.rate, flow.drops), (10, 0));
                samples += 1;
            }
        }
    }
    assert_eq!(samples, view.sampled);
    drop(running);
}
