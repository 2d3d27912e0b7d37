//! The daemon's services: API with confirmation and rollback, metrics, sFlow's counters and drops, failed links, upgrades.

use std::net::UdpSocket;
use std::time::Duration;

use weir_api::{ApplyRequest, Client, ErrorCode, RollbackRequest};
use weir_flowfmt::sflow::decode::{CounterRecord, Datagram, Sample};
use weir_xdp::daemon::{self, Folders};
use weir_xdp::show;

use crate::bed::{Bed, Raw, Running, can_run, frame, udp, wait_for};

const ONE: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const TWO: [u8; 6] = [0x52, 0x54, 0, 0, 0, 2];
const HOST: &str = "
ports:
  tap1: {vlan: 100, macs: ['52:54:00:00:00:01'], addresses: [192.0.2.1]}
  tap2: {vlan: 100, macs: ['52:54:00:00:00:02'], addresses: [192.0.2.2]}
";

fn apply(client: &Client, yaml: &str, confirm_seconds: Option<u32>) -> weir_api::Applied {
    let request = ApplyRequest {
        yaml: yaml.to_owned(),
        confirm_seconds,
        ..ApplyRequest::default()
    };
    client.config_apply(&request).unwrap()
}

#[test]
fn changes_are_confirmed_or_undone_and_can_be_rolled_back() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let _guests = ["tap1", "tap2"].map(|name| bed.port(name));
    let folders = bed.pins.folders();
    let running = bed.start(HOST);
    let client = Client::new(folders.socket());
    let vlan = |name: &str| {
        let config = client.config().unwrap();
        config["ports"][name]["carries"]["access"]["vlan"]
            .as_u64()
            .unwrap()
    };

    // A file with errors changes nothing, and its findings have places.
    let bad = ApplyRequest {
        yaml: "ports:\n  tap1: {vlan: 5000}".to_owned(),
        ..ApplyRequest::default()
    };
    let refusal = client.config_apply(&bad).unwrap_err();
    let refusal = refusal.refusal().unwrap();
    assert_eq!(
        (refusal.code, refusal.findings[0].line),
        (ErrorCode::Invalid, 2)
    );

    // Not confirmed: undone at the deadline, and nothing else is taken until then.
    let other = HOST.replace("tap2: {vlan: 100", "tap2: {vlan: 300");
    let applied = apply(&client, &other, Some(600));
    assert_eq!((vlan("tap2"), applied.steps.len()), (300, 1));
    assert_eq!(applied.steps[0].text, "~ port tap2");
    let second = client.config_apply(&ApplyRequest {
        yaml: HOST.to_owned(),
        ..ApplyRequest::default()
    });
    assert_eq!(
        second.unwrap_err().refusal().unwrap().code,
        ErrorCode::Conflict
    );
    client.config_rollback(&RollbackRequest::default()).unwrap();
    assert_eq!(vlan("tap2"), 100);
    apply(&client, &other, Some(1));
    wait_for("the deadline", || vlan("tap2") == 100);

    // Confirmed: it stays, and an earlier revision can be taken again.
    apply(&client, &other, Some(600));
    client.config_confirm().unwrap();
    assert_eq!(
        client.config_confirm().unwrap_err().refusal().unwrap().code,
        ErrorCode::Conflict
    );
    assert_eq!(vlan("tap2"), 300);
    client.config_rollback(&RollbackRequest::default()).unwrap();
    assert_eq!(
        (vlan("tap2"), client.config_dump().unwrap().yaml.as_str()),
        (100, HOST)
    );
    let history = client.config_history(None, None).unwrap();
    assert_eq!(history.revisions.len(), 5);
    assert!(history.revisions[0].running);
    drop(running);

    // The history goes on with a daemon that starts again.
    let running = bed.start(HOST);
    assert_eq!(
        client.config_history(None, None).unwrap().revisions.len(),
        5
    );
    drop(running);
}

#[test]
fn interfaces_drops_and_metrics_are_those_of_the_programs() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let [one, two] = ["tap1", "tap2"].map(|name| Raw::open(&bed.port(name)));
    let folders = bed.pins.folders();
    let running = bed.start(HOST);
    let client = Client::new(folders.socket());
    let good = frame(TWO, ONE, 0, &udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2)));
    let bad = frame(TWO, ONE, 0, &udp([192, 0, 2, 9], [192, 0, 2, 2], (1, 2)));
    let broadcast = frame([0xff; 6], ONE, 0, &udp([192, 0, 2, 1], [255; 4], (1, 2)));
    for it in [&good, &good, &bad, &broadcast] {
        one.send(it);
    }
    for _ in 0..3 {
        two.next();
    }
    wait_for("the counters", || {
        client.interfaces(None).unwrap().interfaces[0].rx.packets == 4
    });
    let interfaces = client.interfaces(None).unwrap().interfaces;
    let (from, to) = (&interfaces[0], &interfaces[1]);
    assert_eq!((from.rx.unicast, from.rx.broadcast, from.drops), (3, 1, 1));
    assert_eq!((to.tx.packets, to.tx.broadcast), (3, 1));
    assert_eq!(from.driver.as_deref(), Some("xdp"));
    let errors = client.errors(None, false).unwrap().errors;
    assert!(
        errors
            .iter()
            .any(|it| it.reason == "spoofed-ip" && it.count == 1)
    );
    let totals = client.totals().unwrap();
    assert_eq!(
        (totals.packets_in, totals.packets_out, totals.unaccounted()),
        (4, 3, 0)
    );
    let metrics = client.metrics().unwrap();
    for line in ["weir_interface_admin_up{interface=\"tap1\"}", "spoofed-ip"] {
        assert!(metrics.contains(line), "{line}:\n{metrics}");
    }
    let stations = client.l2fib(None).unwrap().stations;
    assert!(
        stations
            .iter()
            .any(|it| it.interface == "tap2" && it.is_static)
    );
    drop(running);
}

/// Datagrams until `done` says so.
fn receive(socket: &UdpSocket, mut done: impl FnMut(Sample<'_>) -> bool) {
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut bytes = [0; 2000];
    loop {
        let length = socket.recv(&mut bytes).unwrap();
        for sample in Datagram::decode(&bytes[..length]).unwrap().samples() {
            if done(sample.unwrap()) {
                return;
            }
        }
    }
}

#[test]
fn sflow_has_counters_and_notifications_of_drops() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let [one, _two] = ["tap1", "tap2"].map(|name| Raw::open(&bed.port(name)));
    let collector = bed
        .host
        .run(|| UdpSocket::bind("127.0.0.1:0").unwrap())
        .unwrap();
    let address = collector.local_addr().unwrap();
    let text = format!(
        "{}sflow: {{sampling-rate: 1000, polling-interval: 1, drop-limit: 100, agent: 192.0.2.254, collectors: ['{address}']}}\n",
        HOST.replace("192.0.2.1]", "192.0.2.1], sample: true")
    );
    let running = bed.start(&text);
    let index = bed
        .host
        .route()
        .unwrap()
        .link_by_name("tap1")
        .unwrap()
        .index;
    let bad = frame(TWO, ONE, 0, &udp([192, 0, 2, 9], [192, 0, 2, 2], (1, 2)));
    for _ in 0..3 {
        one.send(&bad);
    }
    let (mut drops, mut counted) = (0, false);
    receive(&collector, |sample| {
        match sample {
            Sample::Discard(discard, _) => {
                // Reverse path forwarding: the source address is not one of the port's.
                assert_eq!((discard.reason, discard.input), (302, index));
                drops += 1;
            }
            Sample::Counters(_, it, records) if it.source.index == index => {
                for record in records {
                    if let CounterRecord::Interface(counters) = record.unwrap() {
                        counted |= counters.in_discards == 3 && counters.in_unicast == 3;
                    }
                }
            }
            _ => (),
        }
        drops == 3 && counted
    });
    drop(running);
}

#[test]
fn a_failed_leg_of_a_bond_carries_nothing() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let guest = Raw::open(&bed.port("tap1"));
    let far = ["up1", "up2"].map(|name| bed.port(name));
    let legs = [&far[0], &far[1]].map(Raw::open);
    let folders = bed.pins.folders();
    let running = bed.start(
        "ports:\n  tap1: {vlan: 100}\nbonds:\n  up: {members: [up1, up2], trunk: [100], macs: ['52:54:00:00:00:02']}\n",
    );
    let flows = |ports: std::ops::Range<u16>| {
        for port in ports {
            guest.send(&frame(
                TWO,
                ONE,
                0,
                &udp([10, 0, 0, 1], [10, 0, 0, 2], (port, 2)),
            ));
        }
    };
    let sent = |name: &str| {
        let ports = show::ports(&folders).unwrap();
        ports.iter().find(|it| it.name == name).unwrap().out_packets
    };
    flows(1000..1200);
    wait_for("both legs", || sent("up1") + sent("up2") == 200);
    let (one, two) = (sent("up1"), sent("up2"));
    assert!(one > 40 && two > 40, "{one} {two}");
    while legs.iter().any(|leg| leg.receive().is_some()) {}

    // The far end of one leg goes down: its carrier is lost.
    let mut route = far[0].route().unwrap();
    let index = route.link_by_name("p").unwrap().index;
    route.set_up(index, false).unwrap();
    let client = Client::new(folders.socket());
    wait_for("the loss of the carrier", || {
        let interfaces = client.interfaces(Some("up1")).unwrap().interfaces;
        interfaces[0].link == weir_api::UpDown::Down
    });
    let before = (sent("up1"), sent("up2"));
    flows(1000..1200);
    wait_for("the other leg", || sent("up2") == before.1 + 200);
    assert_eq!(sent("up1"), before.0);
    assert!(show::Balance::of(&show::ports(&folders).unwrap()).is_exact());
    drop(running);
}

#[test]
fn tables_of_another_layout_are_replaced_without_loss() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let [one, two] = ["tap1", "tap2"].map(|name| Raw::open(&bed.port(name)));
    let new = bed.pins.folders();
    let old = Folders {
        layout: 1,
        ..new.clone()
    };
    let payload = udp([192, 0, 2, 1], [192, 0, 2, 2], (1, 2));
    let send = |count: usize| {
        for _ in 0..count {
            one.send(&frame(TWO, ONE, 0, &payload));
            two.next();
        }
    };
    let running = Running::start(&bed.host, HOST, &old);
    send(5);
    drop(running);
    send(5);
    let running = Running::start(&bed.host, HOST, &new);
    send(5);
    assert!(new.tables().exists() && !old.tables().exists());
    let sent: u64 = show::ports(&new)
        .unwrap()
        .iter()
        .map(|it| it.out_packets)
        .sum();
    assert_eq!(sent, 5);
    drop(running);
}

#[test]
fn a_second_daemon_of_the_same_folder_is_refused() {
    if !can_run() {
        return;
    }
    let bed = Bed::new();
    let _guests = ["tap1", "tap2"].map(|name| bed.port(name));
    let folders = bed.pins.folders();
    let running = bed.start(HOST);
    let config = weir_xdp::config::check("test", HOST.as_bytes()).unwrap();
    let second = bed
        .host
        .run(|| daemon::Daemon::start(HOST, config, &folders).map(drop))
        .unwrap();
    assert!(second.is_err());
    assert!(daemon::is_running(&folders));
    drop(running);
}
