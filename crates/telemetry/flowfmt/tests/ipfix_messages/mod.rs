//! Messages of made-up flows, and the flows: for those who read them to say the same.

use std::net::{Ipv4Addr, Ipv6Addr};

use weir_flowfmt::ipfix::Version;
use weir_flowfmt::ipfix::encode::{Fit, MessageBuilder};
use weir_flowfmt::ipfix::encode5::{Flow5, Header5, message};
use weir_flowfmt::ipfix::template::{Field, Template};

/// Seconds of the export.
pub(crate) const EXPORTED: u32 = 1_700_000_100;
/// Milliseconds of the first flow's first packet.
pub(crate) const FIRST: u64 = 1_700_000_000_123;

/// A flow, identified by its number.
pub(crate) struct Made(pub(crate) u64);

impl Made {
    pub(crate) fn is_v6(&self) -> bool {
        self.0 % 3 == 2
    }

    pub(crate) fn source(&self) -> (Ipv4Addr, Ipv6Addr) {
        (
            Ipv4Addr::from(0x0a00_0000 + self.0 as u32),
            Ipv6Addr::from(0x2001_0db8_0000_0001_0000_0000_0000_0000 + u128::from(self.0)),
        )
    }

    pub(crate) fn destination(&self) -> (Ipv4Addr, Ipv6Addr) {
        (
            Ipv4Addr::from(0xc000_0200 + self.0 as u32),
            Ipv6Addr::from(0x2001_0db8_ffff_ffff_ffff_ffff_ffff_0000 + u128::from(self.0)),
        )
    }

    pub(crate) fn protocol(&self) -> u8 {
        match (self.0 % 4, self.is_v6()) {
            (0, _) => 6,
            (1, _) => 17,
            (2, false) => 1,
            (2, true) => 58,
            _ => 47,
        }
    }

    pub(crate) fn ports(&self) -> (u16, u16) {
        match self.protocol() {
            6 | 17 => (1024 + self.0 as u16, 443),
            1 | 58 => (0, 0x0800),
            _ => (0, 0),
        }
    }

    pub(crate) fn tcp_flags(&self) -> u16 {
        if self.protocol() == 6 { 0x1b } else { 0 }
    }

    pub(crate) fn packets(&self) -> u64 {
        1 + self.0 * 37
    }

    pub(crate) fn octets(&self) -> u64 {
        self.packets() * 1234 + self.0.pow(4)
    }

    pub(crate) fn first(&self) -> u64 {
        FIRST + self.0
    }

    pub(crate) fn last(&self) -> u64 {
        self.first() + self.0 * 1001
    }

    fn record(&self, version: Version) -> Vec<u8> {
        let mut octets = Vec::new();
        if self.is_v6() {
            octets.extend(self.source().1.octets());
            octets.extend(self.destination().1.octets());
        } else {
            octets.extend(self.source().0.octets());
            octets.extend(self.destination().0.octets());
        }
        let (source, destination) = self.ports();
        octets.extend(source.to_be_bytes());
        octets.extend(destination.to_be_bytes());
        octets.extend([self.protocol(), 8]);
        octets.extend(self.tcp_flags().to_be_bytes());
        octets.extend(7_u32.to_be_bytes());
        octets.extend(9_u32.to_be_bytes());
        octets.extend(self.packets().to_be_bytes());
        octets.extend(self.octets().to_be_bytes());
        if version == Version::Ipfix {
            octets.extend(self.first().to_be_bytes());
            octets.extend(self.last().to_be_bytes());
        } else {
            // Uptime was 1,000,000 ms at the export.
            let uptime = |time: u64| 1_000_000 + (time as i64 - i64::from(EXPORTED) * 1000) as i32;
            octets.extend(uptime(self.first()).to_be_bytes());
            octets.extend(uptime(self.last()).to_be_bytes());
        }
        octets.extend([24, 16, 64]);
        octets
    }
}

pub(crate) fn template(version: Version, v6: bool) -> Template {
    let (source, destination, size, masks) = if v6 {
        (27, 28, 16, (29, 30))
    } else {
        (8, 12, 4, (9, 13))
    };
    let (first, last, time) = if version == Version::Ipfix {
        (152, 153, 8)
    } else {
        (22, 21, 4)
    };
    let fields = [
        (source, size),
        (destination, size),
        (7, 2),
        (11, 2),
        (4, 1),
        (5, 1),
        (6, 2),
        (10, 4),
        (14, 4),
        (2, 8),
        (1, 8),
        (first, time),
        (last, time),
        (masks.0, 1),
        (masks.1, 1),
        (89, 1),
    ];
    let fields = fields
        .iter()
        .map(|(number, length)| Field::iana(*number, *length))
        .collect();
    Template::data(if v6 { 257 } else { 256 }, fields)
}

/// Names of interfaces, scope ingressInterface; of fixed lengths, since nfdump 1.7 refuses variable ones in options.
pub(crate) fn interfaces() -> Template {
    Template::options(
        258,
        1,
        vec![Field::iana(10, 4), Field::iana(82, 8), Field::iana(83, 8)],
    )
}

fn interface() -> Vec<u8> {
    let mut octets = 7_u32.to_be_bytes().to_vec();
    for name in ["wan0", "uplink"] {
        octets.extend(name.bytes().chain([0; 8]).take(8));
    }
    octets
}

/// Templates, options and this many flows in messages of at most so many octets.
pub(crate) fn messages(version: Version, most: usize, flows: u64) -> Vec<Vec<u8>> {
    let (mut builder, mut sequence, mut messages) =
        (MessageBuilder::new(version, 7, most), 0, Vec::new());
    let mut add = |builder: &mut MessageBuilder, add: &dyn Fn(&mut MessageBuilder) -> Fit| {
        if add(builder) == Fit::Full {
            let count = if version == Version::Ipfix {
                builder.records()
            } else {
                1
            };
            messages.push(builder.finish(sequence, EXPORTED, 1_000_000).to_vec());
            sequence += count;
            builder.clear();
            assert_eq!(add(builder), Fit::Added);
        }
    };
    for template in [
        template(version, false),
        template(version, true),
        interfaces(),
    ] {
        add(&mut builder, &|builder| {
            builder.template(&template).unwrap()
        });
    }
    add(&mut builder, &|builder| {
        builder.record(258, &interface()).unwrap()
    });
    for flow in (0..flows).map(Made) {
        let record = flow.record(version);
        add(&mut builder, &|builder| {
            builder
                .record(if flow.is_v6() { 257 } else { 256 }, &record)
                .unwrap()
        });
    }
    messages.push(builder.finish(sequence, EXPORTED, 1_000_000).to_vec());
    messages
}

/// One message of version 5 with the flows of IPv4 among the first 30.
pub(crate) fn message5() -> Vec<u8> {
    let flows: Vec<Flow5> = (0..30)
        .map(Made)
        .filter(|flow| !flow.is_v6())
        .map(|flow| flow5(&flow))
        .collect();
    message(
        &Header5 {
            uptime: 1_000_000,
            time: u64::from(EXPORTED) * 1_000_000_000,
            sequence: 17,
            engine: 0,
            sampling: 0,
        },
        &flows,
    )
}

fn flow5(flow: &Made) -> Flow5 {
    let uptime = |time: u64| (1_000_000 + time as i64 - i64::from(EXPORTED) * 1000) as u32;
    Flow5 {
        source: flow.source().0,
        destination: flow.destination().0,
        next_hop: Ipv4Addr::new(192, 0, 2, 254),
        input: 7,
        output: 9,
        packets: flow.packets() as u32,
        octets: flow.octets() as u32,
        first: uptime(flow.first()),
        last: uptime(flow.last()),
        source_port: flow.ports().0,
        destination_port: flow.ports().1,
        tcp_flags: flow.tcp_flags() as u8,
        protocol: flow.protocol(),
        tos: 8,
        source_as: 64_500,
        destination_as: 64_501,
        source_mask: 24,
        destination_mask: 16,
    }
}

/// A capture of these datagrams, over Ethernet and IPv4 to this port, a millisecond apart.
pub(crate) fn capture(port: u16, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut octets: Vec<u8> = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1]
        .iter()
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    for (number, message) in messages.iter().enumerate() {
        let udp = 8 + message.len() as u16;
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
        frame.extend((20 + udp).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        [40_000, port, udp, 0]
            .iter()
            .for_each(|word: &u16| frame.extend(word.to_be_bytes()));
        frame.extend(message);
        let length = frame.len() as u32;
        [EXPORTED, number as u32 * 1000, length, length]
            .iter()
            .for_each(|word| octets.extend(word.to_le_bytes()));
        octets.extend(frame);
    }
    octets
}
