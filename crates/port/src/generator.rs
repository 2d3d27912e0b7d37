//! A port that makes packets up: streams of templates with varying fields, in memory.
//!
//! A stream has a template frame, fields that vary from packet to packet, a limit and a rate. The
//! streams of a port take turns. IPv4 header checksums are kept right as fields change; UDP goes
//! without a checksum, which IPv4 allows. Pacing asks a clock and never sleeps: a stream that is not
//! due gives nothing. What is sent to the port is swallowed.
//!
//! Receiving allocates nothing but packets.

use std::sync::Arc;
use std::time::Instant;

use weir_buf::{DATA_ROOM, PktCache, Vector};
use weir_ring::counter::Counter;
use weir_wire::{EtherType, EthernetHeader, Ipv4Header, MacAddr, checksum};

use crate::null::NullTx;
use crate::{Capabilities, HardwareCounter, LinkState, Port, QueuePair, RxQueue, Source};

/// How a field changes from packet to packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// One up each time, from the last value back to the first.
    Increment,
    /// Any value of the range.
    Random,
}

/// A varying field: big-endian, at an offset of the frame.
#[derive(Clone, Debug)]
pub struct Field {
    /// Where it begins.
    pub offset: usize,
    /// Its bytes: 1, 2 or 4.
    pub width: usize,
    /// First value.
    pub first: u32,
    /// Last value.
    pub last: u32,
    /// How it changes.
    pub change: Change,
}

/// A stream of packets.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What every packet looks like but for its fields.
    pub template: Vec<u8>,
    /// What varies.
    pub fields: Vec<Field>,
    /// Packets in all; 0 for no end.
    pub limit: u64,
    /// Packets a second; 0 for as many as are asked for.
    pub rate: u64,
}

impl Stream {
    /// A stream of `template`, endless and as fast as it is asked for; `None` when it does not fit a
    /// buffer.
    #[must_use]
    pub fn new(template: Vec<u8>) -> Option<Stream> {
        (template.len() <= DATA_ROOM).then_some(Stream { template, fields: Vec::new(), limit: 0, rate: 0 })
    }

    /// With a varying field; one that does not fit the template is left out.
    #[must_use]
    pub fn field(mut self, field: Field) -> Stream {
        if matches!(field.width, 1 | 2 | 4) && field.offset.saturating_add(field.width) <= self.template.len() && field.first <= field.last
        {
            self.fields.push(field);
        }
        self
    }
}

/// What a generator counts.
#[derive(Debug, Default)]
struct Counts {
    made: Counter,
    short: Counter,
}

/// The port.
pub struct GeneratorPort {
    streams: Vec<Stream>,
    seed: u64,
    counts: Vec<Arc<Counts>>,
}

impl GeneratorPort {
    /// A port whose streams are divided over `queues` queues: stream `n` on queue `n % queues`.
    #[must_use]
    pub fn new(streams: Vec<Stream>, queues: usize, seed: u64) -> GeneratorPort {
        GeneratorPort { streams, seed, counts: (0..queues.max(1)).map(|_| Arc::default()).collect() }
    }
}

impl Port for GeneratorPort {
    fn device(&self) -> &str {
        "generator"
    }

    fn capabilities(&self) -> Capabilities {
        let queues = self.counts.len();
        Capabilities {
            driver: "generator",
            mode: format!("{} streams", self.streams.len()),
            rx_queues: queues,
            tx_queues: queues,
            max_frame: DATA_ROOM,
        }
    }

    fn mac(&self) -> Option<MacAddr> {
        None
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        let queues = self.counts.len();
        let pair = |(number, counts): (usize, &Arc<Counts>)| {
            let mine = self.streams.iter().skip(number).step_by(queues).cloned();
            let rx = GeneratorRx::new(mine.collect(), self.seed.wrapping_add(number as u64), counts.clone());
            QueuePair { rx: Some(Box::new(rx)), tx: Some(Box::new(NullTx)) }
        };
        self.counts.iter().enumerate().map(pair).collect()
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: 0 }
    }

    fn counters(&self) -> Vec<HardwareCounter> {
        let counter = |name: &str, value| HardwareCounter { name: name.to_owned(), value, source: Source::Driver };
        let sum = |which: fn(&Counts) -> &Counter| self.counts.iter().map(|counts| which(counts).get()).sum();
        vec![counter("generated", sum(|counts| &counts.made)), counter("no buffer", sum(|counts| &counts.short))]
    }
}

/// One stream under way.
struct Running {
    stream: Stream,
    /// The value each field has next.
    values: Vec<u32>,
    made: u64,
    ip4: bool,
}

/// The receiving side of one queue.
struct GeneratorRx {
    streams: Vec<Running>,
    turn: usize,
    random: u64,
    started: Option<Instant>,
    counts: Arc<Counts>,
}

impl GeneratorRx {
    fn new(streams: Vec<Stream>, seed: u64, counts: Arc<Counts>) -> GeneratorRx {
        let run = |stream: Stream| Running {
            values: stream.fields.iter().map(|field| field.first).collect(),
            ip4: EthernetHeader::read(&stream.template).is_some_and(|(header, _)| header.ethertype() == EtherType::IPV4),
            made: 0,
            stream,
        };
        GeneratorRx { streams: streams.into_iter().map(run).collect(), turn: 0, random: seed | 1, started: None, counts }
    }

    /// How many packets a stream may give now.
    fn due(running: &Running, elapsed: u128) -> u64 {
        let stream = &running.stream;
        let by_limit = if stream.limit == 0 { u64::MAX } else { stream.limit - running.made.min(stream.limit) };
        if stream.rate == 0 {
            return by_limit;
        }
        let until_now = u64::try_from(elapsed * u128::from(stream.rate) / 1_000_000_000).unwrap_or(u64::MAX);
        by_limit.min(until_now.saturating_sub(running.made))
    }
}

impl Running {
    /// Writes one packet and moves the fields on.
    fn write(&mut self, frame: &mut [u8], random: &mut u64) {
        frame.copy_from_slice(&self.stream.template);
        for (field, value) in self.stream.fields.iter().zip(&mut self.values) {
            let bytes = value.to_be_bytes();
            if let (Some(place), Some(bytes)) = (frame.get_mut(field.offset..field.offset + field.width), bytes.get(4 - field.width..)) {
                place.copy_from_slice(bytes);
            }
            *value = next(field, *value, random);
        }
        if self.ip4
            && !self.stream.fields.is_empty()
            && let Some(l3) = frame.get_mut(14..)
            && Ipv4Header::read(l3).is_some()
        {
            checksum::ipv4_header_set(l3);
        }
        self.made += 1;
    }
}

fn next(field: &Field, value: u32, random: &mut u64) -> u32 {
    match field.change {
        Change::Increment if value >= field.last => field.first,
        Change::Increment => value + 1,
        Change::Random => {
            // xorshift64* (Marsaglia 2003, Vigna 2016): traffic need only look random.
            *random ^= *random >> 12;
            *random ^= *random << 25;
            *random ^= *random >> 27;
            let bits = random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
            let span = u64::from(field.last - field.first) + 1;
            field.first + ((bits * span) >> 32) as u32
        }
    }
}

impl RxQueue for GeneratorRx {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        let started = *self.started.get_or_insert_with(Instant::now);
        let paced = self.streams.iter().any(|running| running.stream.rate != 0);
        let elapsed = if paced { started.elapsed().as_nanos() } else { 0 };
        let (mut got, mut idle) = (0, 0);
        let count = self.streams.len();
        while got < most && idle < count {
            self.turn = if self.turn + 1 >= count { 0 } else { self.turn + 1 };
            let Some(running) = self.streams.get_mut(self.turn) else { break };
            if Self::due(running, elapsed) == 0 {
                idle += 1;
                continue;
            }
            let Some(mut packet) = cache.alloc() else {
                self.counts.short.add(1);
                break;
            };
            if packet.set_len(running.stream.template.len()) {
                running.write(packet.data_mut(), &mut self.random);
                to.push(packet);
                got += 1;
            }
            idle = 0;
        }
        self.counts.made.add(got as u64);
        got
    }

    fn is_exhausted(&self) -> bool {
        self.streams.iter().all(|running| running.stream.limit != 0 && running.made >= running.stream.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_buf::{Hugepages, Pool, PoolConfig};
    use weir_wire::build;

    fn template() -> Vec<u8> {
        let mut frame = vec![0; 60];
        let l3 = build::ethernet_blank(&mut frame, EtherType::IPV4).unwrap();
        build::icmp4(l3, 0x0a00_0001, 0x0a00_0002, 64, 8, 0, 0, &[7; 18]);
        frame
    }

    fn receive(streams: Vec<Stream>, most: usize) -> (Vec<Vec<u8>>, bool) {
        let pool = Pool::new(PoolConfig { chunks: 1024, hugepages: Hugepages::Off }).unwrap();
        let mut cache = PktCache::new(&pool);
        let mut port = GeneratorPort::new(streams, 1, 7);
        let mut rx = port.take_queues().remove(0).rx.unwrap();
        let mut vector = Vector::default();
        let got = rx.recv(&mut vector, &mut cache, most);
        assert_eq!(got, vector.len());
        assert_eq!(port.counters()[0].value, got as u64);
        (vector.iter().map(|packet| packet.data().to_vec()).collect(), rx.is_exhausted())
    }

    #[test]
    fn fields_vary_and_checksums_stay_right() {
        let source = Field { offset: 26, width: 4, first: 0x0a00_0001, last: 0x0a00_0003, change: Change::Increment };
        let ttl = Field { offset: 22, width: 1, first: 10, last: 20, change: Change::Random };
        let stream = Stream::new(template()).unwrap().field(source).field(ttl);
        let (frames, exhausted) = receive(vec![stream], 100);
        assert!(frames.len() == 100 && !exhausted);
        for (number, frame) in frames.iter().enumerate() {
            let (header, _) = Ipv4Header::read(&frame[14..]).unwrap();
            assert!(checksum::ipv4_header_ok(header));
            assert_eq!(header.source(), 0x0a00_0001 + number as u32 % 3);
            assert!((10..=20).contains(&header.ttl));
        }
        assert!(frames.iter().any(|frame| frame[22] != frames[0][22]));
    }

    #[test]
    fn limits_end_streams_and_streams_take_turns() {
        let mut one = Stream::new(vec![1; 60]).unwrap();
        let mut two = Stream::new(vec![2; 60]).unwrap();
        (one.limit, two.limit) = (3, 5);
        let (frames, exhausted) = receive(vec![one, two], 100);
        assert!(exhausted);
        let firsts: Vec<u8> = frames.iter().map(|frame| frame[0]).collect();
        assert_eq!(firsts, [2, 1, 2, 1, 2, 1, 2, 2]);
    }

    #[test]
    fn a_paced_stream_gives_nothing_before_its_time() {
        let mut stream = Stream::new(vec![1; 60]).unwrap();
        stream.rate = 1;
        assert!(receive(vec![stream], 100).0.is_empty());
        assert!(Stream::new(vec![0; 4000]).is_none());
    }

    #[test]
    fn fields_that_do_not_fit_are_left_out() {
        let wrong = Field { offset: 58, width: 4, first: 0, last: 1, change: Change::Increment };
        assert!(Stream::new(vec![0; 60]).unwrap().field(wrong).fields.is_empty());
    }
}
