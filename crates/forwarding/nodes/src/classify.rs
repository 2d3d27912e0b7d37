//! What acl-input and acl-output have in common: a vector against the lists of its interfaces.
//!
//! Packets of one interface that follow each other are asked together, IPv4 and IPv6 apart. What is not IP
//! passes, and so does what lies behind more than two tags; as ARP passes, neighbour discovery does unless
//! a term denies it. An IP packet whose header is cut off is asked for as one of protocol 0 from nobody to
//! nobody.
//!
//! The caches are made with the first packet that meets a list, once a worker, so that a router without
//! lists does not pay for them in memory.

use weir_acl::{Answer, Asker4, Asker6, Cache4, Cache6, Key4, Key6, Known4, Upper, Wire4};
use weir_buf::{Pkt, VECTOR};
use weir_wire::{EtherType, EthernetHeader, IpProtocol};

use crate::filter::{Filter, Judgement};
use crate::vector_loops;

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
    answers: Box<[Answer; VECTOR]>,
    len: usize,
}

impl<K: Default + Copy> Batch<K> {
    fn new() -> Batch<K> {
        Batch {
            keys: Box::new([K::default(); VECTOR]),
            places: Box::new([0; VECTOR]),
            answers: Box::new([0; VECTOR]),
            len: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, key: K, place: usize) {
        (self.keys[self.len % VECTOR], self.places[self.len % VECTOR]) = (key, place as u8);
        self.len += 1;
    }

    /// Keys and the room for their answers.
    #[inline(always)]
    fn asked(&mut self) -> (&[K], &mut [Answer]) {
        let len = self.len.min(VECTOR);
        (&self.keys[..len], &mut self.answers[..len])
    }

    /// Places and what was answered.
    #[inline(always)]
    fn judgements(&self) -> impl Iterator<Item = (usize, Judgement)> + '_ {
        let len = self.len.min(VECTOR);
        self.places[..len]
            .iter()
            .zip(&self.answers[..len])
            .map(|(&place, &answer)| (place as usize, Judgement(answer)))
    }
}

/// What a fast path of eth-input has cached of the IPv4 flows of interfaces with lists, and the packets of a vector of whose flows
/// nothing is cached.
pub(crate) struct Flows4 {
    cache: Known4,
    unknown: Batch<Key4>,
}

impl Flows4 {
    #[cold]
    pub(crate) fn new(worker: usize) -> Flows4 {
        Flows4 {
            cache: Known4::new(seed(worker)),
            unknown: Batch::new(),
        }
    }

    /// For a vector's packets: what has the cached answers, and the packets without.
    pub(crate) fn begin(&mut self, filter: &Filter) -> (Asker4<'_>, Unknown<'_, Key4>) {
        let Flows4 { cache, unknown } = self;
        unknown.len = 0;
        (filter.list.acl().asker4(cache), Unknown(unknown))
    }

    /// Searches the list for what was not cached: places and judgements.
    pub(crate) fn learn(
        &mut self,
        filter: &Filter,
    ) -> impl Iterator<Item = (usize, Judgement)> + '_ {
        let Flows4 { cache, unknown } = self;
        let (keys, answers) = unknown.asked();
        filter.list.acl().learn4(cache, keys, answers);
        unknown.judgements()
    }

    /// Whether there is anything that was not cached.
    pub(crate) fn has_unknown(&self) -> bool {
        self.unknown.len > 0
    }
}

/// The same for IPv6.
pub(crate) struct Flows6 {
    cache: Cache6,
    unknown: Batch<Key6>,
}

impl Flows6 {
    #[cold]
    pub(crate) fn new(worker: usize) -> Flows6 {
        Flows6 {
            cache: Cache6::new(FLOWS / 2, seed(worker)),
            unknown: Batch::new(),
        }
    }

    /// As [`Flows4::begin`].
    pub(crate) fn begin(&mut self, filter: &Filter) -> (Asker6<'_>, Unknown<'_, Key6>) {
        let Flows6 { cache, unknown } = self;
        unknown.len = 0;
        (filter.list.acl().asker6(cache), Unknown(unknown))
    }

    /// As [`Flows4::learn`].
    pub(crate) fn learn(
        &mut self,
        filter: &Filter,
    ) -> impl Iterator<Item = (usize, Judgement)> + '_ {
        let Flows6 { cache, unknown } = self;
        let (keys, answers) = unknown.asked();
        filter.list.acl().classify6_cached(cache, keys, answers);
        unknown.judgements()
    }

    /// Whether there is anything that was not cached.
    pub(crate) fn has_unknown(&self) -> bool {
        self.unknown.len > 0
    }
}

/// The packets of a vector whose flows are not cached.
pub(crate) struct Unknown<'a, K>(&'a mut Batch<K>);

impl Unknown<'_, Key4> {
    /// Notes a packet, if it is of a protocol that most packets are of: others are never cached here.
    pub(crate) fn note(&mut self, place: usize, key: Wire4) -> bool {
        if !key.is_usual() {
            return false;
        }
        self.0.push(key.into(), place);
        true
    }
}

impl Unknown<'_, Key6> {
    /// Notes a packet.
    pub(crate) fn note(&mut self, place: usize, key: Key6) {
        self.0.push(key, place);
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
        Classifier {
            four: Batch::new(),
            six: Batch::new(),
            caches: None,
            permitted: Box::new([true; VECTOR]),
        }
    }
}

impl Classifier {
    /// Which of up to 256 packets, all of one interface, the filter lets pass. `l3` tells where a packet's
    /// IP header is.
    #[inline(always)]
    pub(crate) fn ask(
        &mut self,
        filter: &Filter,
        worker: usize,
        packets: &mut [Pkt],
        l3: impl Fn(&Pkt) -> Option<usize>,
    ) -> &[bool] {
        let Classifier {
            four,
            six,
            caches,
            permitted,
        } = self;
        let count = packets.len().min(VECTOR);
        permitted.fill(true);
        (four.len, six.len) = (0, 0);
        vector_loops::each_packet(&mut packets[..count], |place, packet| {
            let Some(bytes) = l3(packet).and_then(|offset| packet.data().get(offset..)) else {
                return;
            };
            let fate = |upper| filter.list.fate_of_fragment(upper);
            let fate = match bytes.first().map(|first| first >> 4) {
                Some(4) => {
                    let key = Key4::read(bytes).unwrap_or_default();
                    let fate = fate(key.upper());
                    if fate.is_none() {
                        four.push(key, place);
                    }
                    fate
                }
                Some(6) => {
                    let key = Key6::read(bytes).unwrap_or_default();
                    let fate = fate(key.upper());
                    if fate.is_none() {
                        six.push(key, place);
                    }
                    fate
                }
                _ => None,
            };
            if let Some(passes) = fate {
                permitted[place % VECTOR] =
                    filter.settle_fragment(worker, passes, packet.total_len());
            }
        });
        let (cache4, cache6) = caches.get_or_insert_with(|| new_caches(worker));
        if four.len > 0 {
            let (keys, answers) = four.asked();
            filter.list.acl().classify4_cached(cache4, keys, answers);
        }
        if six.len > 0 {
            let (keys, answers) = six.asked();
            filter.list.acl().classify6_cached(cache6, keys, answers);
        }
        for (place, judgement) in four.judgements() {
            let bytes = packets.get(place).map_or(0, Pkt::total_len);
            permitted[place % VECTOR] = filter.settle(worker, judgement, bytes);
        }
        for (key, (place, judgement)) in six.keys.iter().zip(six.judgements()) {
            let discovers = filter.list.is_of_nothing(judgement) && is_discovery(key);
            if discovers
                && packets
                    .get(place)
                    .is_some_and(|packet| came_by_no_router(packet, &l3))
            {
                continue;
            }
            let bytes = packets.get(place).map_or(0, Pkt::total_len);
            permitted[place % VECTOR] = filter.settle(worker, judgement, bytes);
        }
        &permitted[..count]
    }
}

/// Neighbour discovery (RFC 4861 4): no term need permit it, as none need permit ARP.
fn is_discovery(key: &Key6) -> bool {
    key.protocol() == IpProtocol::ICMP6 && matches!(key.upper(), Upper::Ports(133..=136, 0))
}

/// A hop limit of 255, which no router passes on (RFC 4861 3.1): otherwise a distant sender could get past a list in
/// the name of discovery.
fn came_by_no_router(packet: &Pkt, l3: impl Fn(&Pkt) -> Option<usize>) -> bool {
    l3(packet).and_then(|offset| packet.data().get(offset + 7)) == Some(&255)
}

/// Caches under seeds that nobody outside can know.
#[cold]
fn new_caches(worker: usize) -> (Cache4, Cache6) {
    (
        Cache4::new(FLOWS, seed(worker)),
        Cache6::new(FLOWS / 4, seed(worker)),
    )
}

fn seed(worker: usize) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(worker)
}
