//! Far more flows than a table holds, through the whole router: what was metered was exported, or lost and counted, to the
//! packet and the octet; each collector got all that was taken, or what is missing is counted and seen by it.
//!
//! Each packet of a generator is a flow. 60,000 of them and more meet a table of 4,096; `make test-long` takes ten million and
//! a million.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_api::{FlowLoad, Ipfix, Router as _};
use weir_config::check;
use weir_engine::{Options, Router};
use weir_flowfmt::ipfix::decode::{Collector, Item, message_length};
use weir_flowfmt::ipfix::flow::Flow;

/// Records of options that may be among what is missing, at most.
const OPTIONS: u64 = 1000;

/// What a collector heard.
#[derive(Default)]
struct Heard {
    collector: Collector,
    load: FlowLoad,
    /// Records that its sequence numbers say it did not get.
    missing: u64,
}

impl Heard {
    fn hear(&mut self, from: SocketAddr, message: &[u8]) {
        let Heard {
            collector,
            load,
            missing,
        } = self;
        collector.read(from, message, &mut |item| match item {
            Item::Record(record) if !record.template.is_options() => {
                let flow = Flow::of(&record);
                load.flows += 1;
                (load.packets, load.octets) =
                    (load.packets + flow.packets, load.octets + flow.octets);
            }
            Item::Sequence(_, gap) => {
                *missing += u64::from(gap.missing().unwrap_or_else(|| panic!("{gap:?}")))
            }
            Item::Undecoded(what) => panic!("{what:?}"),
            _ => {}
        });
    }

    fn of_datagrams(socket: &UdpSocket, stop: &AtomicBool) -> Heard {
        let (mut heard, mut buffer) = (Heard::default(), vec![0; 9000]);
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        loop {
            let over = stop.load(Ordering::Acquire);
            match socket.recv_from(&mut buffer) {
                Ok((length, from)) => heard.hear(from, &buffer[..length]),
                Err(_) if over => return heard,
                Err(_) => {}
            }
        }
    }

    fn of_a_stream(listener: &TcpListener) -> Heard {
        let (mut stream, from) = listener.accept().unwrap();
        let (mut heard, mut buffer, mut chunk) = (Heard::default(), Vec::new(), vec![0; 65_536]);
        while let count @ 1.. = stream.read(&mut chunk).unwrap() {
            buffer.extend_from_slice(&chunk[..count]);
            let mut at = 0;
            while let Some(length) =
                message_length(&buffer[at..]).filter(|length| buffer.len() - at >= *length)
            {
                heard.hear(from, &buffer[at..at + length]);
                at += length;
            }
            buffer.drain(..at);
        }
        heard
    }
}

fn sum(parts: &[FlowLoad]) -> FlowLoad {
    parts
        .iter()
        .fold(FlowLoad::default(), |sum, part| FlowLoad {
            flows: sum.flows + part.flows,
            packets: sum.packets + part.packets,
            octets: sum.octets + part.octets,
        })
}

/// Sends so many flows, or a little more, through a table of so many; what the router reported when it had stopped, and both collectors.
fn run(flows: u32, table: u32) -> (Ipfix, weir_api::Totals, Heard, Heard) {
    let (socket, listener) = (
        UdpSocket::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let (udp, tcp) = (
        socket.local_addr().unwrap().port(),
        listener.local_addr().unwrap().port(),
    );
    let text = format!(
        "
interfaces:
  xe0:
    addresses: [10.0.0.1/24]
    device:
      driver: generator
      streams: [{{name: all, size: 100, source: 11.0.0.0-11.255.255.255, destination: 198.51.100.7}}]
  xe1: {{device: {{driver: 'null'}}, addresses: [10.1.0.1/24]}}
neighbors: [{{interface: xe1, address: 10.1.0.2, mac: 02:00:00:00:01:02}}]
routes: [{{prefix: 198.51.0.0/16, via: 10.1.0.2}}]
ipfix:
  flows: {table}
  interfaces: {{xe0: {{}}}}
  collectors: [{{address: 127.0.0.1, port: {udp}}}, {{address: 127.0.0.1, port: {tcp}, transport: tcp, queue: 64}}]
"
    );
    let config = check("weir.yaml", &text)
        .unwrap_or_else(|findings| panic!("{findings:?}"))
        .0;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (by_udp, by_tcp) = (
            scope.spawn(|| Heard::of_datagrams(&socket, &stop)),
            scope.spawn(|| Heard::of_a_stream(&listener)),
        );
        let router = Router::start(
            &config,
            &Options {
                seed: Some(5),
                ..Options::default()
            },
        )
        .unwrap();
        let until = Instant::now() + Duration::from_secs(300);
        loop {
            let ipfix = router.ipfix().unwrap();
            assert!(
                ipfix.workers[0].resident <= u64::from(table) + 256 && Instant::now() < until,
                "{ipfix:?}"
            );
            if ipfix.workers[0].metered_packets >= u64::from(flows) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        router.stop();
        let (ipfix, totals) = (router.ipfix().unwrap(), router.balance());
        stop.store(true, Ordering::Release);
        (
            ipfix,
            totals,
            by_udp.join().unwrap(),
            by_tcp.join().unwrap(),
        )
    })
}

#[test]
fn what_was_metered_was_exported_or_is_counted() {
    let long = std::env::var_os("WEIR_LONG").is_some();
    let (flows, table) = if long {
        (10_000_000, 1 << 20)
    } else {
        (60_000, 4096)
    };
    let began = Instant::now();
    let (ipfix, totals, by_udp, by_tcp) = run(flows, table);
    let worker = &ipfix.workers[0];
    eprintln!(
        "{:?}: {worker:?}\n{:?}\n{:?}\nheard {:?}, {} missing; {:?}",
        began.elapsed(),
        ipfix.taken,
        ipfix.collectors,
        by_udp.load,
        by_udp.missing,
        by_tcp.load
    );
    // Each packet of 86 octets begins a flow: what came is metered or ignored.
    assert_eq!(
        worker.metered_packets + worker.ignored_packets,
        totals.packets_in
    );
    assert_eq!(
        (worker.begun, worker.metered_octets),
        (worker.metered_packets, 86 * worker.metered_packets)
    );
    // Nothing is left, and nothing lost without being counted.
    assert_eq!((worker.resident, worker.waiting), (0, 0));
    assert_eq!(
        sum(&[worker.exported, worker.unexported]),
        FlowLoad {
            flows: worker.begun,
            packets: worker.metered_packets,
            octets: worker.metered_octets
        }
    );
    assert_eq!(ipfix.taken, worker.exported);
    assert!(
        worker.ended_resources > 0 && worker.ended_forced > 0,
        "{worker:?}"
    );
    for collector in &ipfix.collectors {
        assert_eq!(
            sum(&[collector.sent, collector.not_sent, collector.left_out]),
            ipfix.taken,
            "{collector:?}"
        );
    }
    // UDP: what it did not get is what its sequence numbers say, but for what may be missing behind the last message that it
    // got. TCP: it has what was sent.
    let [udp, tcp] = [&ipfix.collectors[0], &ipfix.collectors[1]];
    assert!(
        by_udp.load.flows > 0 && by_udp.load.flows + by_udp.missing <= ipfix.taken.flows + OPTIONS,
        "{udp:?}"
    );
    assert_eq!((by_tcp.load, by_tcp.missing), (tcp.sent, 0), "{tcp:?}");
}
