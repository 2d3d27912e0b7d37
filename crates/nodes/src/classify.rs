//! What acl-input and acl-output have in common: a vector against the lists of its interfaces.
//!
//! Packets of one interface that follow each other are asked together, IPv4 and IPv6 apart. What is not IP
//! passes, and so does what lies behind more than two tags; as ARP passes, neighbour discovery does unless
//! a term denies it. An IP packet whose header is cut off is asked for as one of protocol 0 from nobody to
//! nobody.
//!
//! The caches are made with the first packet that meets a list, once a worker, so that a router without
//! lists does not pay for them in memory.

use weir_acl::{Asker4, Cache4, Cache6, Key4, Key6, NO_RULE, RuleIndex, Upper};
use weir_buf::{Pkt, VECTOR};
use weir_wire::{EtherType, EthernetHeader, IpProtocol};

use crate::each;
use crate::filter::Filter;

/// Flows that a worker remembers, in each family.
const FLOWS: usize = 65_536;

/// Where the IP header of a frame is, by its Ethernet header and up to two tags; `None` when it is not IP.
pub(crate) fn l3_of(frame: &[u8]) -> Option<usize> {
    let (header, _) = EthernetHeader::read(frame)?;
    let (mut ethertype, mut offset) = (header.ethertype(), EthernetHeader::LEN);
    for _ in 0..2 {
        if !ethertype.is_tag() {
            break;
        }
        let &[_, _, a, b] = frame.get(offset..)?.first_chunk()?;
        (ethertype, offset) = (EtherType(u16::from_be_bytes([a, b])), offset + 4);
    }
    matches!(ethertype, EtherType::IPV4 | EtherType::IPV6).then_some(offset)
}

/// Keys of one family with the places of their packets, and the answers.
struct Batch<K> {
    keys: Box<[K; VECTOR]>,
    places: Box<[u8; VECTOR]>,
    rules: Box<[RuleIndex; VECTOR]>,
    len: usize,
}

impl<K: Default + Copy> Batch<K> {
    fn new() -> Batch<K> {
        Batch { keys: Box::new([K::default(); VECTOR]), places: Box::new([0; VECTOR]), rules: Box::new([NO_RULE; VECTOR]), len: 0 }
    }

    #[inline(always)]
    fn push(&mut self, key: K, place: usize) {
        (self.keys[self.len % VECTOR], self.places[self.len % VECTOR]) = (key, place as u8);
        self.len += 1;
    }

    /// Keys and the room for their rules.
    #[inline(always)]
    fn asked(&mut self) -> (&[K], &mut [RuleIndex]) {
        let len = self.len.min(VECTOR);
        (&self.keys[..len], &mut self.rules[..len])
    }

    /// Places and rules.
    #[inline(always)]
    fn answers(&self) -> impl Iterator<Item = (usize, RuleIndex)> + '_ {
        let len = self.len.min(VECTOR);
        self.places[..len].iter().zip(&self.rules[..len]).map(|(&place, &rule)| (place as usize, rule))
    }
}

/// What eth-input's pass knows of the flows of interfaces with lists: what was answered lately, and the packets of a vector
/// about which nothing was.
pub(crate) struct Flows {
    cache: Cache4,
    unknown: Batch<Key4>,
}

impl Flows {
    #[cold]
    pub(crate) fn new(worker: usize) -> Flows {
        Flows { cache: Cache4::new(FLOWS, seed(worker)), unknown: Batch::new() }
    }

    /// For a vector's packets: the one to ask, and the packets that it knows nothing of.
    pub(crate) fn begin(&mut self, filter: &Filter) -> (Asker4<'_>, Unknown<'_>) {
        self.unknown.len = 0;
        (filter.list.acl().asker4(&mut self.cache), Unknown(&mut self.unknown))
    }

    /// Asks the list for what was not known: places, keys and rules.
    pub(crate) fn learn(&mut self, filter: &Filter) -> impl Iterator<Item = (usize, Key4, RuleIndex)> + '_ {
        let (keys, rules) = self.unknown.asked();
        filter.list.acl().classify4_cached(&mut self.cache, keys, rules);
        self.unknown.answers().zip(&*self.unknown.keys).map(|((place, rule), key)| (place, *key, rule))
    }
}

/// The packets of a vector whose flows are not known.
pub(crate) struct Unknown<'a>(&'a mut Batch<Key4>);

impl Unknown<'_> {
    #[inline(never)]
    pub(crate) fn note(&mut self, place: usize, key: Key4) {
        self.0.push(key, place);
    }

    pub(crate) fn any(&self) -> bool {
        self.0.len > 0
    }
}

/// A node's room to classify vectors in.
pub(crate) struct Classifier {
    four: Batch<Key4>,
    six: Batch<Key6>,
    caches: Option<(Cache4, Cache6)>,
    permitted: Box<[bool; VECTOR]>,
}

impl Default for Classifier {
    fn default() -> Classifier {
        Classifier { four: Batch::new(), six: Batch::new(), caches: None, permitted: Box::new([true; VECTOR]) }
    }
}

impl Classifier {
    /// Which of up to 256 packets, all of one interface, the filter lets pass. `l3` tells where a packet's
    /// IP header is.
    #[inline(always)]
    pub(crate) fn ask(&mut self, filter: &Filter, worker: usize, packets: &mut [Pkt], l3: impl Fn(&Pkt) -> Option<usize>) -> &[bool] {
        let Classifier { four, six, caches, permitted } = self;
        let count = packets.len().min(VECTOR);
        permitted.fill(true);
        (four.len, six.len) = (0, 0);
        each::frame(&mut packets[..count], |place, packet| {
            let Some(bytes) = l3(packet).and_then(|offset| packet.data().get(offset..)) else { return };
            match bytes.first().map(|first| first >> 4) {
                Some(4) => four.push(Key4::read(bytes).unwrap_or_default(), place),
                Some(6) => six.push(Key6::read(bytes).unwrap_or_default(), place),
                _ => {}
            }
        });
        let (cache4, cache6) = caches.get_or_insert_with(|| new_caches(worker));
        if four.len > 0 {
            let (keys, rules) = four.asked();
            filter.list.acl().classify4_cached(cache4, keys, rules);
        }
        if six.len > 0 {
            let (keys, rules) = six.asked();
            filter.list.acl().classify6_cached(cache6, keys, rules);
        }
        for (place, rule) in four.answers() {
            let bytes = packets.get(place).map_or(0, Pkt::total_len);
            permitted[place % VECTOR] = filter.settle(worker, rule, bytes);
        }
        for (key, (place, rule)) in six.keys.iter().zip(six.answers()) {
            if rule == NO_RULE && is_discovery(key) && packets.get(place).is_some_and(|packet| came_by_no_router(packet, &l3)) {
                continue;
            }
            let bytes = packets.get(place).map_or(0, Pkt::total_len);
            permitted[place % VECTOR] = filter.settle(worker, rule, bytes);
        }
        &permitted[..count]
    }
}

/// Neighbour discovery (RFC 4861 4): no term need permit it, as none need permit ARP.
fn is_discovery(key: &Key6) -> bool {
    key.protocol() == IpProtocol::ICMP6 && matches!(key.upper(), Upper::Ports(133..=136, 0))
}

/// A hop limit of 255, which no router passes on (RFC 4861 3.1): else whoever is far away could get past a list in
/// the name of discovery.
fn came_by_no_router(packet: &Pkt, l3: impl Fn(&Pkt) -> Option<usize>) -> bool {
    l3(packet).and_then(|offset| packet.data().get(offset + 7)) == Some(&255)
}

/// Caches under seeds that nobody outside can know.
#[cold]
fn new_caches(worker: usize) -> (Cache4, Cache6) {
    (Cache4::new(FLOWS, seed(worker)), Cache6::new(FLOWS / 4, seed(worker)))
}

fn seed(worker: usize) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(worker)
}
