//! The decoder before somebody else's agent: pmacct's `sfprobe` reads a capture made here and sends sFlow;
//! what is decoded must be the capture's packets, in their order and with their lengths.
//!
//! Skipped where pmacct is not installed.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_flowfmt::sflow::decode::{Datagram, FlowRecord, Sample};
use weir_flowfmt::sflow::ledger::Ledger;
use weir_flowfmt::sflow::packet::{Ip, Packet, Transport};
use weir_flowfmt::sflow::records::flow_record;
use weir_flowfmt::sflow::{RawHeader, Source};

const PACKETS: u16 = 20;

/// UDP from 10.1.0.N port 40000+N with N octets more than a hundred.
fn frame(number: u16) -> Vec<u8> {
    let payload = vec![number as u8; usize::from(100 + number)];
    let udp = 108 + number;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0x10];
    frame.extend((udp + 20).to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.extend([0, 0, 64, 17, 0, 0, 10, 1, 0, number as u8, 10, 2, 0, 1]);
    for word in [40_000 + number, 50_000, udp, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(payload);
    frame
}

fn capture() -> Vec<u8> {
    let head = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1]
        .map(u32::to_le_bytes)
        .concat();
    (1..=PACKETS).fold(head, |mut bytes, number| {
        let frame = frame(number);
        let length = frame.len() as u32;
        bytes.extend(
            [1_700_000_000 + u32::from(number), 0, length, length]
                .map(u32::to_le_bytes)
                .concat(),
        );
        bytes.extend(frame);
        bytes
    })
}

/// A folder and a process that go away with the test.
struct Probe(PathBuf, Option<Child>);

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(child) = &mut self.1 {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_sfprobe_sends_is_read_as_it_was_captured() {
    let folder = std::env::temp_dir().join(format!("weir-sfprobe-{}", std::process::id()));
    let mut probe = Probe(folder.clone(), None);
    std::fs::create_dir_all(&folder).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    std::fs::write(folder.join("in.pcap"), capture()).unwrap();
    let config = format!(
        "daemonize: false\npcap_savefile: {}\nplugins: sfprobe[a]\nsfprobe_receiver[a]: {}\n\
         sfprobe_agentip[a]: 192.0.2.7\nsfprobe_agentsubid[a]: 5\nsampling_rate[a]: 1\n",
        folder.join("in.pcap").display(),
        socket.local_addr().unwrap()
    );
    std::fs::write(folder.join("pmacctd.conf"), config).unwrap();
    let started = Command::new("pmacctd")
        .arg("-f")
        .arg(folder.join("pmacctd.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = started else {
        eprintln!("skipped: pmacct is not installed");
        return;
    };
    probe.1 = Some(child);
    let (mut ledger, mut number) = (Ledger::new(), 0);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut buffer = vec![0; 65_536];
    while number < PACKETS {
        assert!(
            Instant::now() < deadline,
            "{number} of {PACKETS} samples came"
        );
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let datagram = Datagram::decode(&buffer[..length]).unwrap();
        assert_eq!(
            (datagram.agent, datagram.sub_agent_id),
            (Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))), 5)
        );
        ledger.note(&datagram);
        for sample in datagram.samples() {
            let Sample::Flow(_, flow, records) = sample.unwrap() else {
                continue;
            };
            number += 1;
            assert_eq!(
                (flow.sequence, flow.rate, flow.pool, flow.drops),
                (number.into(), 1, number.into(), 0)
            );
            assert_eq!(flow.source, Source::interface(1));
            let mut raw = None;
            for record in records {
                match record.unwrap() {
                    FlowRecord::RawHeader(header) => raw = Some(header),
                    FlowRecord::Other(other) => {
                        flow_record(other.format)
                            .unwrap_or_else(|| panic!("{}", other.format))
                            .read(&other)
                            .unwrap();
                    }
                    unread => panic!("{unread:?}"),
                }
            }
            header(&raw.unwrap(), number);
        }
    }
    let (_, _, agent) = ledger.agents().next().unwrap();
    assert_eq!(
        (agent.datagrams.lost, agent.samples[0]),
        (0, u64::from(PACKETS))
    );
}

fn header(raw: &RawHeader<'_>, number: u16) {
    let frame = frame(number);
    assert_eq!(
        (raw.protocol, raw.frame_length as usize, raw.stripped),
        (RawHeader::ETHERNET, frame.len() + 4, 4)
    );
    assert_eq!(raw.header, &frame[..raw.header.len()]);
    assert!(raw.header.len() >= 64);
    let packet = Packet::decode(raw);
    let Some(Ip::V4(ip)) = packet.ip else {
        panic!("{packet:?}")
    };
    assert_eq!(
        (ip.source, ip.tos, ip.id),
        (Ipv4Addr::new(10, 1, 0, number as u8), 0x10, number)
    );
    assert_eq!(
        packet.transport,
        Some(Transport::Udp {
            source: 40_000 + number,
            destination: 50_000,
            length: 108 + number
        })
    );
}
