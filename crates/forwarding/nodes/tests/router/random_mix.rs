//! Random mixes of protocols: the fast paths on whole vectors, and the same steps on vectors of one.
//!
//! Two routers get the same frames at the same time: one as vectors of up to 256, which are sorted into classes and run
//! through the fast paths; the other frame by frame. What leaves (but for the order between flows), events, and every drop
//! and interface counter must be equal. Counts by node are not compared: the first packets to a neighbour take
//! ip4-rewrite or ip6-rewrite until one has marked it as used, which is one packet there and a vector here. Frames are drawn with a fixed seed from all protocols, some of
//! them broken or cut. `WEIR_LONG=1` plays many more.

use weir_graph::Graph;
use weir_nodes::{IcmpLimit, Tables};
use weir_wire::build::{self, Ends};

use crate::fast_path::counted_alike;
use crate::hostile::{self, finish, mended};
use crate::ip6::udp6;
use crate::mpls::under;
use crate::pseudowire;
use crate::rig::*;

/// Vectors in `make test`, and with `WEIR_LONG`.
const VECTORS: (usize, usize) = (120, 400_000);

fn router() -> Router {
    let mut router = Router::with_labels(Setup {
        mtu: 300,
        chunks: 16_384,
        // Which of many packets gets the last message of a budget is a matter of order.
        icmp: IcmpLimit {
            rate: 1_000_000_000,
            burst: 1_000_000,
        },
        ..Setup::default()
    });
    pseudowire::add(&mut router);
    router
}

/// Draws frames.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }

    fn frame(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let payload = vec![7; self.below(64)];
        let host = self.below(250) as u8;
        let v4 = |destination: &str, ttl| {
            let ends = Ends {
                ttl,
                source_port: 1000 + u16::from(host),
                ..through(destination)
            };
            build::udp4(&ends, &payload)
        };
        let ttl = [64, 255, 2, 1][self.below(40).saturating_sub(36)];
        let routed = v4(&format!("192.168.{host}.9"), ttl);
        let mut frame = match self.below(12) {
            0..4 => routed,
            4..7 => udp6(&format!("2001:db8:a::{host:x}")),
            7 => v4(&format!("172.16.0.{host}"), ttl),
            8 => udp6(&format!("2001:db8:b::{host:x}")),
            9 => {
                let label = 100 + self.below(14) as u32;
                under(&routed, &[(label, self.below(8) as u8, ttl)])
            }
            10 => under(&routed, &[(600 + self.below(3) as u32, 0, 9)]),
            _ => seeds[self.below(seeds.len())].clone(),
        };
        match self.below(24) {
            0 => {
                let place = self.below(frame.len().min(64));
                frame[place] ^= 1 << self.below(8);
            }
            1 => {
                let place = self.below(frame.len().min(64));
                frame[place] ^= 1 << self.below(8);
                frame = mended(&frame);
            }
            2 => frame.truncate(self.below(frame.len() + 1)),
            3 => frame.extend([0; 9]),
            _ => {}
        }
        frame
    }
}

/// Clears the identification of the router's ICMPv4 errors, which have precedence 6: they are numbered as they are made, and the
/// order between flows is free. In place of the header checksum stands whether it was right.
fn without_identification(sent: &mut Sent) {
    let frame = &mut sent.1;
    // Behind up to five tags or labels.
    for at in (14..=34).step_by(4) {
        if let Some(header) = frame.get_mut(at..at + 20)
            && (header[0], header[1], header[9]) == (0x45, 0xc0, 1)
        {
            let is_right = weir_wire::checksum::internet(header) == 0;
            header[4..6].fill(0);
            header[10..12].fill(u8::from(is_right));
            return;
        }
    }
}

/// Everything that a router tells, in an order that is the same for both.
fn told(router: &mut Router, mut sent: Vec<Sent>) -> (Vec<Sent>, Vec<String>) {
    sent.iter_mut().for_each(without_identification);
    sent.sort();
    let mut events: Vec<String> = router
        .events()
        .iter()
        .map(|event| format!("{event:?}"))
        .collect();
    events.sort();
    (sent, events)
}

#[test]
fn vectors_do_what_single_packets_do() {
    let count = if std::env::var_os("WEIR_LONG").is_some() {
        VECTORS.1
    } else {
        VECTORS.0
    };
    let (mut whole, mut single) = (router(), router());
    let (mut draw, seeds) = (Draw(0x9e37_79b9_7f4a_7c15), hostile::seeds());
    for number in 0..count {
        let port = [WEST, WEST, WEST, EAST, SOUTH, LEFT, BARE][draw.below(7)];
        // Small vectors, which the workers mostly have, and full ones.
        let most = [4, 32, 256][draw.below(3)];
        let len = 1 + draw.below(most);
        let frames: Vec<_> = (0..len)
            .map(|_| {
                let mut frame = draw.frame(&seeds);
                if let Some(last) = frame.get_mut(5).filter(|last| **last == WEST as u8) {
                    *last = port as u8;
                }
                frame
            })
            .collect();
        let together = whole.send_all(port, &frames);
        let mut apart = Vec::new();
        for frame in &frames {
            apart.extend(single.send(port, frame));
        }
        let both = [told(&mut whole, together), told(&mut single, apart)];
        assert!(both[0].0 == both[1].0, "vector {number} on {port}: frames");
        assert_eq!(both[0].1, both[1].1, "vector {number} on {port}: events");
        assert_eq!(whole.drops(), single.drops(), "vector {number} on {port}");
        let held = |graph: &Graph<Tables>| graph.held();
        assert_eq!(held(&whole.graph), held(&single.graph), "vector {number}");
        whole.now += SECOND / 100;
        single.now += SECOND / 100;
    }
    counted_alike(&whole, &single);
    finish(whole);
    finish(single);
}
