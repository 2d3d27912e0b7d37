//! From frames to observations: what a record set selects tells flows apart, the rest stays out of the key.
//!
//! A record set is worked out once into masks over the key's words, one for each kind of flow. Most frames are plain
//! (Ethernet with at most one tag, IPv4 without options or IPv6 without extension headers, whole TCP or UDP): their keys are put together from
//! a few loads at fixed places, in `Sight::read`. Everything else takes the long way by [`super::observe`], which
//! says the same of plain frames, as a test holds.
//!
//! A record set without any field of IP looks at frames only: all of them are L2 flows.

use weir_cpu::{Lane, Lanes};

use super::index::TAGGED;
use super::key::{
    Addresses, Begun, BegunWide, Extra, ForwardingOutcome, Kind, PROTOCOL_AT, Parts, Secret, Short,
    TOS_AT, ground,
};
use super::observe::{self, Depth};
use super::record::{FACTS, MPLS, Reading, Share, Slip, TURNED, WIDE, marks_of, sizes_of};
use super::{Facts, Key, Observation};

/// Which parts of a key a record set selects, for one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    ip4: [u64; 7],
    ip6: [u64; 7],
    l2: [u64; 7],
    /// The octet that all its keys of a kind share, without the kind.
    ground: u64,
    /// How deep frames are parsed.
    depth: Depth,
    /// Whether plain IPv6 may be read in the short way.
    is_short6: bool,
    /// Whether MAC addresses (source, destination) and the entries of the label stack below the top one separate flows
    /// of IP; a key has no field for them.
    macs: (bool, bool),
    lower_labels: [bool; 4],
    /// What plain IPv4 begins with behind the MAC addresses: type, version and length of the header; what nothing begins with where
    /// IP is not looked for.
    plain4: u32,
    /// Of the sixteen octets of plain IPv4 from its TTL on, what tells flows apart; of the word in front of them, the type of service.
    own: [u64; 2],
    tos: u32,
    /// Whether the top label tells flows apart, and the flow label of IPv6.
    labels: (bool, bool),
    /// The mark of its readings: whether what only a flow's first packet tells is wanted.
    facts: u32,
}

/// What stands beside an observation until it is known whether it begins a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Destination and source address of the frame, and what is behind them.
    pub begin: [u8; 16],
}

impl Beside {
    /// Of a frame.
    #[inline(always)]
    pub(crate) fn of(frame: &[u8]) -> Beside {
        frame
            .first_chunk()
            .map_or_else(Beside::default, |begin| Beside { begin: *begin })
    }

    /// As facts of a flow.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.begin;
        Facts {
            destination_mac: [a, b, c, d, e, f],
            source_mac: [g, h, i, j, k, l],
            ..Facts::default()
        }
    }
}

/// What packets have that a key has no field for: MAC addresses, and entries of a label stack below the top one.
const FACTS_ELEMENTS: [u16; 6] = [56, 71, 72, 73, 74, 80];

/// What only IP flows have.
const OF_IP: [u16; 31] = [
    4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 18, 25, 26, 27, 28, 29, 30, 31, 32, 52, 53, 60, 62,
    63, 128, 129, 139, 195, 197,
];
/// Octets of a frame that the short way looks at: the shortest frame of Ethernet without its checksum.
const SHORT: usize = 60;
/// Octets of a plain IPv6 packet with the flags of TCP.
const SHORT6: usize = 68;

impl Selection {
    /// What a record set with these elements (IANA) selects. `set` is its number, `egress` says that packets are
    /// metered where they leave.
    #[must_use]
    pub fn new(elements: &[u16], set: u8, egress: bool) -> Selection {
        let has = |wanted: &[u16]| elements.iter().any(|element| wanted.contains(element));
        let ones = |wanted: bool| if wanted { u32::MAX } else { 0 };
        // What routing tells is looked up with what it was routed by, so that tells flows apart too.
        let hop = has(&[15, 18, 62, 63]);
        let way = hop || has(&[9, 13, 16, 17, 29, 30, 128, 129]);
        let table = way || has(&[234]);
        let labels = (way || has(&[70]), hop || has(&[31]));
        let mask = |kind: Kind| {
            let (source, destination) = match kind {
                Kind::Ip4 => (way || has(&[8]), way || has(&[12])),
                Kind::Ip6 => (way || has(&[27]), way || has(&[28])),
                Kind::L2 => (has(&[56]), has(&[80])),
            };
            let ip = kind != Kind::L2;
            let all = Parts {
                kind: Kind::L2,
                egress: false,
                set: 0,
                source: [if source { 0xff } else { 0 }; 16],
                destination: [if destination { 0xff } else { 0 }; 16],
                source_port: ones(if ip { hop || has(&[7]) } else { has(&[256]) }) as u16,
                destination_port: ones(ip && (hop || has(&[11, 32, 139]))) as u16,
                protocol: ones(ip && (hop || has(&[4]))) as u8,
                // The code point is the upper six bits; two packets that differ in the others are of one flow then.
                tos: (ones(ip && has(&[5])) | ones(ip && has(&[195])) & 0xfc) as u8,
                status: ones(has(&[89])) as u8,
                input: ones(table || has(&[10])),
                output: ones(hop || table && egress || has(&[14])),
                vlan: ones(table || has(&[58, 243])) as u16,
                customer_vlan: ones(table || has(&[245])) as u16,
                label: ones(labels.0 || labels.1 && kind == Kind::Ip6),
            };
            Key::new(&all).0
        };
        let macs = (has(&[56]), has(&[80]));
        let has_macs = macs.0 || macs.1;
        let lower_labels = [71, 72, 73, 74].map(|element| has(&[element]));
        let ip4 = mask(Kind::Ip4);
        let (source, destination, small) = (ip4[1] >> 32, ip4[3] >> 32, ip4[4]);
        let depth = if has(&OF_IP) {
            Depth::Ip
        } else if has(&[70, 71, 72, 73, 74]) {
            Depth::Labels
        } else {
            Depth::Frame
        };
        let is_short = depth == Depth::Ip && !has_macs;
        Selection {
            ip4,
            own: [
                (small >> 24 & 0xff) << PROTOCOL_AT | source << 32,
                destination | small & !0xffff_ffff,
            ],
            tos: ((small >> 16 & 0xff) << TOS_AT) as u32,
            ip6: mask(Kind::Ip6),
            l2: mask(Kind::L2),
            ground: ground(Kind::L2, egress, set),
            depth,
            is_short6: is_short,
            macs,
            lower_labels,
            plain4: if is_short { 0x45_0008 } else { u32::MAX },
            labels,
            facts: if has(&FACTS_ELEMENTS) { FACTS } else { 0 },
        }
    }

    /// The observation of any frame, on the slow path.
    pub(crate) fn read_any(
        &self,
        secret: &Secret,
        input: u32,
        frame: &[u8],
        length: u32,
    ) -> (Reading, Addresses, Facts) {
        let (any, facts) = self.observe_any(input, frame, length);
        let (mut reading, addresses) = Reading::new(&any, secret);
        reading.marks = reading.marks & !FACTS | self.facts;
        (reading, addresses, facts)
    }

    /// The bits of a key in which its interface of departure, and its status, are reported: of all kinds the same.
    #[must_use]
    pub fn masks_of_fate(&self) -> (u32, u8) {
        (self.l2[5] as u32, (self.l2[4] >> 8) as u8)
    }

    /// The bits of each part of a key that are selected for flows of a kind: zero for what is not.
    #[must_use]
    pub fn selected(&self, kind: Kind) -> Parts {
        Key(*match kind {
            Kind::Ip4 => &self.ip4,
            Kind::Ip6 => &self.ip6,
            Kind::L2 => &self.l2,
        })
        .parts()
    }

    /// The bits of the interfaces of arrival and departure that are reported.
    #[must_use]
    pub fn interface_masks(&self) -> (u32, u32) {
        ((self.l2[5] >> 32) as u32, self.l2[5] as u32)
    }

    /// What separates flows and has no field in a key. L2 flows have their MAC addresses in the key.
    fn extra(&self, seen: &observe::Seen) -> Extra {
        let is_ip = seen.parts.kind != Kind::L2;
        let mac = |is_wanted: bool, mac: [u8; 6]| if is_wanted && is_ip { mac } else { [0; 6] };
        let mut labels = seen.facts.labels;
        labels
            .iter_mut()
            .zip(self.lower_labels)
            .filter(|(_, is_wanted)| !is_wanted)
            .for_each(|(label, _)| *label = 0);
        Extra::new(
            mac(self.macs.0, seen.facts.source_mac),
            mac(self.macs.1, seen.facts.destination_mac),
            labels,
        )
    }

    /// The long way, for any frame.
    #[must_use]
    pub fn observe_any(&self, input: u32, frame: &[u8], length: u32) -> (Observation, Facts) {
        let mut seen = observe::observe(input, frame, length, self.depth);
        let extra = self.extra(&seen);
        let is_stack = seen.parts.label & MPLS != 0;
        if !(if is_stack {
            self.labels.0
        } else {
            self.labels.1
        }) {
            seen.parts.label = 0;
        }
        let mask = match seen.parts.kind {
            Kind::Ip4 => &self.ip4,
            Kind::Ip6 => &self.ip6,
            Kind::L2 => &self.l2,
        };
        let mut key = Key::new(&seen.parts);
        let kind = key.0[4] & 0xff;
        key.0
            .iter_mut()
            .zip(mask)
            .for_each(|(word, mask)| *word &= mask);
        key.0[4] = key.0[4] & !0xff | kind | self.ground;
        (
            Observation {
                key,
                extra,
                octets: seen.octets,
                tcp_flags: seen.tcp_flags,
                ttl: seen.ttl,
                fragment: seen.fragment,
            },
            seen.facts,
        )
    }
}

/// What plain packets of IPv4 are read by: copied, so that it can be in registers while others are written.
///
/// Words are loaded as they are on the wire, the first octet lowest, and stay so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glass {
    /// As [`Selection`] has it.
    plain4: u32,
    tos: u32,
    own: [u64; 2],
    ground: u64,
    begun: Begun,
}

/// Reads frames of plain IPv4, the usual ones.
pub(crate) trait Read: Copy {
    /// What tells whether frames are other ones: of several that is asked once.
    type Odd: Copy;

    /// Of no frames yet.
    fn none(self) -> Self::Odd;

    /// Gives the frame's hash, and adds to `odd` whether it is another one, and nothing was written that matters.
    fn read(self, frame: &[u8], to: &mut Slip, odd: &mut Self::Odd) -> u64;

    /// Whether any was another one.
    fn is_any(self, odd: Self::Odd) -> bool;
}

impl Read for Glass {
    type Odd = u32;

    #[inline(always)]
    fn none(self) -> u32 {
        0
    }

    #[inline(always)]
    fn is_any(self, odd: u32) -> bool {
        odd != 0
    }

    #[inline(always)]
    fn read(self, frame: &[u8], to: &mut Slip, any: &mut u32) -> u64 {
        let Some(head) = frame.first_chunk::<SHORT>() else {
            *any = 1;
            return TAGGED;
        };
        let (slip, odd) = self.slip(head);
        *to = slip;
        *any |= odd;
        // From what is in registers: the words in memory would be read at once before they are there.
        self.begun.hash(slip.key)
    }
}

impl Glass {
    /// What a frame tells if it is plain, and 0 if it is.
    #[inline(always)]
    fn slip(self, head: &[u8; SHORT]) -> (Slip, u32) {
        // Type, version, type of service; TTL, protocol, checksum, source; fragment word.
        let (kind, own, fragment) = (half(head, 12), quad(head, 22), u32::from(pair(head, 20)));
        let (length, flags) = (
            pair(head, 16).swap_bytes(),
            FLAGS[usize::from((own >> 8) as u8)],
        );
        let key = [
            own & self.own[0] | self.ground | u64::from(kind & self.tos),
            quad(head, 30) & self.own[1],
        ];
        let marks = marks_of(pair(head, 46) & flags as u16, fragment as u8 & 0xe0);
        let marks_and_sizes = [u64::from(marks) << 32, sizes_of(length, own as u8)];
        // Whole, TCP or UDP, with all of the header that is looked at.
        let odd = (kind ^ self.plain4) << 8
            | fragment & 0xff3f
            | u32::from(length < LEAST)
            | flags & NEITHER;
        (
            Slip {
                key,
                marks_and_sizes,
            },
            odd,
        )
    }
}

/// The same for a processor with [`Lanes`]: all masks are in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideGlass {
    lanes: Lanes,
    /// Of the sixteen octets from the type on: those of plain packets, and what is looked at there.
    plain: [Lane; 2],
    /// Of these, the order in which length, TTL and fragments stand in a [`Slip`]; what is turned there; and the least length.
    sizes: [Lane; 3],
    /// Of the octets from the TTL on, with the type of service in place of half the checksum: what tells flows apart, and the ground.
    own: [Lane; 2],
    begun: BegunWide,
}

impl WideGlass {
    fn new(lanes: Lanes, glass: &Glass, begun: BegunWide) -> WideGlass {
        let Glass {
            plain4,
            tos,
            own: [first, second],
            ground,
            ..
        } = *glass;
        // What nothing begins with where IP is not looked for.
        let impossible = if plain4 == u32::MAX {
            u64::MAX
        } else {
            u64::from(plain4)
        };
        let order = [
            0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 8, 0x80, 5, 4, 10, 0x80, 5, 4, 10, 0x80,
        ];
        WideGlass {
            lanes,
            plain: [lanes.of([impossible, 0]), lanes.of([0x00ff_ffff, 0xff3f])],
            sizes: [
                lanes.load(&order),
                lanes.of([0, TURNED]),
                lanes.of([0, LEAST.into()]),
            ],
            own: [
                lanes.of([first | u64::from(tos), second]),
                lanes.of([ground, 0]),
            ],
            begun,
        }
    }
}

impl Read for WideGlass {
    /// Bits that are as they should not be, and those of the protocol.
    type Odd = (Lane, u32);

    #[inline(always)]
    fn none(self) -> (Lane, u32) {
        (self.lanes.of([0, 0]), 0)
    }

    #[inline(always)]
    fn is_any(self, (odd, flags): (Lane, u32)) -> bool {
        flags & NEITHER != 0 || !self.lanes.is_zero(odd)
    }

    #[inline(always)]
    fn read(self, frame: &[u8], to: &mut Slip, odd: &mut (Lane, u32)) -> u64 {
        let Some(head) = frame.first_chunk::<SHORT>() else {
            odd.1 |= NEITHER;
            return TAGGED;
        };
        let WideGlass {
            lanes,
            plain: [plain, looked_at],
            sizes: [order, turned, least],
            own: [mask, ground],
            begun,
        } = self;
        let begin = lanes.load(sixteen(head, 12));
        let key = lanes.or(
            lanes.and(
                lanes.with_octet_3(lanes.load(sixteen(head, 22)), head[15]),
                mask,
            ),
            ground,
        );
        to.key = lanes.words(key);
        let flags = FLAGS[usize::from(head[23])];
        let sizes = lanes.shuffle(begin, order);
        to.marks_and_sizes = lanes
            .words(lanes.with_octets_4(lanes.xor(sizes, turned), pair(head, 46) & flags as u16));
        odd.0 = lanes.or(
            odd.0,
            lanes.or(
                lanes.xor(lanes.and(begin, looked_at), plain),
                lanes.more(least, sizes),
            ),
        );
        odd.1 |= flags;
        begun.hash(key)
    }
}

/// A record set at an interface: what is the same for all packets of a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'a> {
    selection: &'a Selection,
    secret: &'a Secret,
    /// What plain packets have in common.
    pub(crate) share: Share,
}

impl<'a> Sight<'a> {
    #[inline(always)]
    pub(crate) fn new(selection: &'a Selection, secret: &'a Secret, input: u32) -> Sight<'a> {
        let input = u64::from(input) << 32;
        let interfaces = input & selection.ip4[5];
        let share = Share {
            interfaces,
            rest: secret.rest(interfaces, 0),
            facts: selection.facts,
        };
        Sight {
            selection,
            secret,
            share,
        }
    }

    /// For plain packets.
    #[inline(always)]
    pub(crate) fn glass(&self) -> Glass {
        let Selection {
            plain4,
            own,
            tos,
            ground,
            ..
        } = *self.selection;
        Glass {
            plain4,
            tos,
            own,
            ground: ground | Kind::Ip4 as u64,
            begun: self.secret.begin(self.share.rest),
        }
    }

    /// The same for a processor with [`Lanes`].
    #[inline(always)]
    pub(crate) fn wide_glass(&self, lanes: Lanes) -> WideGlass {
        WideGlass::new(
            lanes,
            &self.glass(),
            self.secret.begin_wide(lanes, self.share.rest),
        )
    }

    /// For plain packets of IPv6, on a processor with `lanes` if there are any.
    #[inline(always)]
    pub(crate) fn glass6(&self, lanes: Option<Lanes>) -> Glass6<'a> {
        let Selection { ip6, .. } = self.selection;
        // As a plain packet has them: what is small in the first word, ports in the upper half of the second.
        let small = Short::new(0, ip6[4] & 0xffff_0000, 0, 0);
        Glass6 {
            secret: self.secret,
            lanes,
            addresses: [ip6[0], ip6[1], ip6[2], ip6[3]],
            small: small.0[0],
            ports: ip6[4] & !0xffff_ffff,
            vlan: ip6[6],
            flow_label: if self.selection.labels.1 {
                0x000f_ffff
            } else {
                0
            },
            ground: self.selection.ground | Kind::Ip6 as u64,
            interfaces: self.share.interfaces,
            is_short: self.selection.is_short6,
        }
    }

    /// Reads a frame of plain IPv6, or of plain IPv4 or IPv6 behind one VLAN tag; `None` for what the long way is for.
    #[inline(always)]
    pub(crate) fn read_other(&self, glass6: &Glass6<'_>, frame: &[u8]) -> Option<Told> {
        let (tag, untagged) = match pair(frame.first_chunk::<SHORT>()?, 12) {
            IP6 => (0, frame),
            VLAN | QINQ | QINQ_OLD => (
                u64::from(word(frame.first_chunk::<SHORT>()?, 14) & 0xfff) << 48,
                frame.get(4..)?,
            ),
            _ => return None,
        };
        match pair(untagged.first_chunk::<SHORT>()?, 12) {
            IP6 => {
                let (told, odd) = glass6.read(untagged, tag);
                (odd == 0).then_some(told)
            }
            IP4 => self.plain4(untagged, tag),
            _ => None,
        }
    }

    /// Plain IPv4 behind a tag.
    #[inline(always)]
    fn plain4(&self, untagged: &[u8], tag: u64) -> Option<Told> {
        let (slip, odd) = self.glass().slip(untagged.first_chunk()?);
        if odd != 0 {
            return None;
        }
        let tail = tag & self.selection.ip4[6];
        let short = self.share.short(&slip, tail, ForwardingOutcome::default());
        Some(Told {
            slip,
            tail,
            addresses: [0; 4],
            hash: self.secret.hash(&short),
        })
    }

    /// Whether record sets want what only a flow's first packet tells.
    #[inline(always)]
    pub(crate) fn wants_facts(&self) -> bool {
        self.share.facts != 0
    }
}

/// What a plain packet tells that is not untagged IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) slip: Slip,
    /// The last word of its key.
    pub(crate) tail: u64,
    pub(crate) addresses: Addresses,
    pub(crate) hash: u64,
}

/// What plain packets of IPv6 are read by: as [`Glass`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glass6<'a> {
    secret: &'a Secret,
    lanes: Option<Lanes>,
    /// What separates flows: of the addresses, of what is small, of ports and tags.
    addresses: Addresses,
    small: u64,
    ports: u64,
    vlan: u64,
    flow_label: u32,
    ground: u64,
    interfaces: u64,
    /// Whether packets of IPv6 may be read so at all.
    is_short: bool,
}

impl Glass6<'_> {
    /// Whether a frame is probably one of those.
    #[inline(always)]
    pub(crate) fn fits(&self, frame: &[u8]) -> bool {
        self.is_short
            && frame
                .first_chunk::<SHORT>()
                .is_some_and(|head| pair(head, 12) == IP6)
    }

    /// What an untagged frame tells if it is plain IPv6, and 0 if it is; `tag` is what stood in front of its type.
    #[inline(always)]
    pub(crate) fn read(&self, untagged: &[u8], tag: u64) -> (Told, u32) {
        let Some(head) = untagged.first_chunk::<SHORT6>() else {
            let nothing = Told {
                hash: TAGGED,
                ..Told::default()
            };
            return (nothing, 1);
        };
        let (length, protocol) = (word(head, 18), head[20]);
        let flags = FLAGS[usize::from(protocol)];
        let first = half(head, 14).swap_bytes();
        let odd = u32::from(pair(head, 12) ^ IP6)
            | (first >> 28 ^ 6)
            | flags & NEITHER
            | u32::from(length < LEAST - 20)
            | u32::from(length > u16::MAX - 40)
            | u32::from(!self.is_short);
        let raw = [
            quad(head, 22),
            quad(head, 30),
            quad(head, 38),
            quad(head, 46),
        ];
        let mask = &self.addresses;
        let addresses = [
            raw[0] & mask[0],
            raw[1] & mask[1],
            raw[2] & mask[2],
            raw[3] & mask[3],
        ];
        let [low, high] = match self.lanes {
            Some(lanes) => {
                let [a, b, c, d] = addresses;
                let digest = self
                    .secret
                    .digest_wide(lanes, lanes.of([a, b]), lanes.of([c, d]));
                lanes.words(digest)
            }
            None => self.secret.digest(&addresses),
        };
        let small = u64::from(protocol) << PROTOCOL_AT | u64::from((first >> 20) as u8) << TOS_AT;
        let key = [
            small & self.small | self.ground | low << 32,
            low >> 32 | quad(head, 50) & self.ports,
        ];
        let tail = (tag & self.vlan | u64::from(first & self.flow_label)) ^ high;
        let marks = marks_of(pair(head, 66) & flags as u16, 0) | WIDE;
        let sizes = sizes_of(length.wrapping_add(40), head[21]);
        let rest = self.secret.rest(self.interfaces, tail);
        let hash = match self.lanes {
            Some(lanes) => self.secret.begin_wide(lanes, rest).hash(lanes.of(key)),
            None => self.secret.begin(rest).hash(key),
        };
        let slip = Slip {
            key,
            marks_and_sizes: [u64::from(marks) << 32, sizes],
        };
        (
            Told {
                slip,
                tail,
                addresses,
                hash,
            },
            odd,
        )
    }
}

/// Ethertypes as they lie in memory.
const IP4: u16 = u16::from_ne_bytes([0x08, 0x00]);
const IP6: u16 = u16::from_ne_bytes([0x86, 0xdd]);
const VLAN: u16 = u16::from_ne_bytes([0x81, 0x00]);
const QINQ: u16 = u16::from_ne_bytes([0x88, 0xa8]);
const QINQ_OLD: u16 = u16::from_ne_bytes([0x91, 0x00]);

/// The bits that are flags of TCP, behind its ports, by protocol; as they are on the wire.
static FLAGS: [u32; 256] = {
    let mut flags = [NEITHER; 256];
    (flags[6], flags[17]) = (0xff0f, 0);
    flags
};
/// Neither TCP nor UDP.
const NEITHER: u32 = 1 << 16;
/// An IPv4 packet without options that is shorter may lack flags of TCP.
const LEAST: u16 = 34;

/// Sixteen octets as they are on the wire.
#[inline(always)]
fn sixteen(head: &[u8; SHORT], at: usize) -> &[u8; 16] {
    head.get(at..)
        .and_then(|rest| rest.first_chunk())
        .unwrap_or(&[0; 16])
}

#[inline(always)]
fn word<const N: usize>(head: &[u8; N], at: usize) -> u16 {
    pair(head, at).swap_bytes()
}

/// As they are on the wire: two octets, four, eight.
#[inline(always)]
fn pair<const N: usize>(head: &[u8; N], at: usize) -> u16 {
    head.get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |octets| u16::from_le_bytes(*octets))
}

#[inline(always)]
fn half<const N: usize>(head: &[u8; N], at: usize) -> u32 {
    head.get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |octets| u32::from_le_bytes(*octets))
}

#[inline(always)]
fn quad<const N: usize>(head: &[u8; N], at: usize) -> u64 {
    head.get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |octets| u64::from_le_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exporter::RecordSet;
    use crate::random::Random;

    fn selection(names: &[&str]) -> Selection {
        Selection::new(
            RecordSet::new(names.iter().copied()).unwrap().elements(),
            3,
            false,
        )
    }

    /// Whether it is another frame, and its hash.
    fn read_by(glass: impl Read, frame: &[u8], to: &mut Slip) -> (bool, u64) {
        let mut odd = glass.none();
        let hash = glass.read(frame, to, &mut odd);
        (glass.is_any(odd), hash)
    }

    fn read(
        selection: &Selection,
        secret: &Secret,
        input: u32,
        frame: &[u8],
    ) -> Option<(Reading, Addresses, Beside)> {
        let (mut slip, mut beside) = (Slip::default(), Beside::default());
        let (mut reading, addresses);
        let sight = Sight::new(selection, secret, input);
        let (odd, hash) = match Lanes::new() {
            Some(lanes) => {
                let wide = read_by(sight.wide_glass(lanes), frame, &mut slip);
                let mut same = Slip::default();
                let (odd, _) = read_by(sight.glass(), frame, &mut same);
                assert_eq!(
                    (wide.0, wide.0 || slip == same),
                    (odd, true),
                    "{frame:02x?}"
                );
                wide
            }
            None => read_by(sight.glass(), frame, &mut slip),
        };
        let nowhere = ForwardingOutcome::default();
        let plain = if !odd {
            reading = sight.share.reading((&slip, 0), nowhere, hash);
            addresses = Addresses::default();
            true
        } else {
            let of = |lanes| sight.read_other(&sight.glass6(lanes), frame);
            let other = of(Lanes::new());
            let told = other.unwrap_or_default();
            reading = sight
                .share
                .reading((&told.slip, told.tail), nowhere, told.hash);
            addresses = told.addresses;
            other.is_some()
        };
        reading.forget_place();
        if plain && sight.wants_facts() {
            beside = Beside::of(frame);
        }
        plain.then_some((reading, addresses, beside))
    }

    /// The key of a record.
    fn joined(reading: &Reading, secret: &Secret, addresses: &Addresses) -> Key {
        let clear = if reading.is_wide() {
            reading.short.without_digest(secret, addresses)
        } else {
            reading.short
        };
        Key::join(&clear, addresses)
    }

    /// Random frames that are nearly plain: whenever the short way takes one, the long way says the same.
    #[test]
    fn both_ways_say_the_same() {
        let mut random = Random::new(11);
        let secret = Secret::new(&mut random);
        let (mut short, mut long) = (0, 0);
        for names in [
            &["5-tuple"][..],
            &["router"],
            &["mpls"],
            &["sourceIPv4Address", "packetDeltaCount"],
            &["l2"],
            &["flowLabelIPv6"],
        ] {
            let selection = selection(names);
            for _ in 0..20_000 {
                let mut frame: Vec<u8> = (0..60 + random.bits() % 40)
                    .map(|_| random.bits() as u8)
                    .collect();
                let v6 = random.bits() & 1 == 0;
                let (kind, first) = if v6 {
                    ([0x86, 0xdd], 0x60)
                } else {
                    ([8, 0], 0x45)
                };
                (frame[12], frame[13], frame[14]) = (
                    kind[0],
                    kind[1],
                    first | if v6 { frame[14] & 15 } else { 0 },
                );
                let protocol = [6, 17, 1, 44, frame[23]][random.bits() as usize % 5];
                let length = random.bits() % 64;
                if v6 {
                    (frame[18], frame[19], frame[20]) = (0, length as u8, protocol);
                } else {
                    (frame[16], frame[17], frame[23]) = (0, length as u8, protocol);
                    (frame[20], frame[21]) = if random.bits() & 3 == 0 {
                        (frame[20], frame[21])
                    } else {
                        (frame[20] & 0xc0, 0)
                    };
                }
                if random.bits() & 1 == 0 {
                    let tag = [0x81, 0, random.bits() as u8, random.bits() as u8];
                    frame.splice(12..12, tag);
                }
                let (any, far, facts) = selection.read_any(&secret, 7, &frame, frame.len() as u32);
                let Some((quick, addresses, beside)) = read(&selection, &secret, 7, &frame) else {
                    long += 1;
                    continue;
                };
                short += 1;
                assert_eq!(
                    joined(&quick, &secret, &addresses).parts(),
                    joined(&any, &secret, &far).parts(),
                    "{names:?} {frame:02x?}"
                );
                let facts = if selection.facts == 0 {
                    Facts::default()
                } else {
                    facts
                };
                assert_eq!(
                    (quick, addresses, beside.facts()),
                    (any, far, facts),
                    "{frame:02x?}"
                );
            }
        }
        assert!(short > 15_000 && long > 20_000, "{short} {long}");
    }

    /// Frames that differ in one part each: MAC addresses, tags, labels, addresses, ports and the like.
    fn variants() -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let stacks: [&[u32]; 7] = [
            &[],
            &[100],
            &[101],
            &[100, 7001],
            &[100, 7002],
            &[100, 7001, 5, 6, 7],
            &[100, 7001, 5, 6, 8],
        ];
        for (change, tags) in (0..14).flat_map(|change| (0..3).map(move |tags| (change, tags))) {
            for (stack, is_ip6) in stacks
                .iter()
                .flat_map(|stack| [(stack, false), (stack, true)])
            {
                let on = |number: u32| u8::from(change == number);
                let mut frame = vec![2, 0, 0, 0, 1, on(1), 2, 0, 0, 0, 2, on(2)];
                for tag in 0..tags {
                    frame.extend([0x81, 0, 0, 10 + tag + on(3)]);
                }
                frame.extend(match (stack.is_empty(), is_ip6) {
                    (false, _) => [0x88, 0x47],
                    (true, false) => [0x08, 0x00],
                    (true, true) => [0x86, 0xdd],
                });
                for (number, label) in stack.iter().enumerate() {
                    let bottom = u32::from(number + 1 == stack.len()) << 8;
                    frame.extend((label << 12 | bottom | 64).to_be_bytes());
                }
                let protocol = if change == 4 { 17 } else { 6 };
                if is_ip6 {
                    frame.extend([0x60 | on(5), 0, 0, on(6), 0, 30, protocol, 64]);
                    frame.extend([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, on(7)]);
                    frame.extend([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, on(8)]);
                } else {
                    frame.extend([0x45, on(5) << 4, 0, 50, 0, 0, 0, 0, 64, protocol, 0, 0]);
                    frame.extend([192, 0, 2, on(7), 198, 51, 100, on(8)]);
                }
                frame.extend([4, on(9), 1, on(10)]);
                frame.extend([0; 30]);
                all.push(frame);
            }
        }
        all
    }

    /// Whatever is selected: packets of one flow have the same value in each field that `flowKeyIndicator` reports as a key.
    #[test]
    fn reported_keys_separate_flows() {
        use crate::exporter::fields::{Epoch, Plan};
        use crate::flows::FlowRecord;
        use std::collections::HashMap;
        use weir_flowfmt::ipfix::Version;

        let name = |number: u16| {
            weir_flowfmt::ipfix::elements::by_number(number)
                .unwrap()
                .name
        };
        let frames = variants();
        let secret = Secret::new(&mut Random::new(5));
        let keys = [
            56, 80, 70, 71, 72, 73, 74, 58, 243, 245, 4, 5, 7, 8, 11, 12, 27, 28, 31,
        ];
        let mut sets: Vec<Vec<&str>> =
            vec![vec!["5-tuple"], vec!["l2"], vec!["router"], vec!["mpls"]];
        for one in keys {
            sets.push(vec![name(one), "packetDeltaCount"]);
            sets.push(vec!["5-tuple", name(one)]);
            sets.extend(keys.map(|other| vec![name(one), name(other)]));
        }
        for names in sets {
            let set = RecordSet::new(names.iter().copied()).unwrap();
            let selection = Selection::new(set.elements(), 0, false);
            let plan = Plan::new(&set, Version::Ipfix, 0);
            let mut seen: HashMap<([u64; 4], Addresses), Vec<Vec<u8>>> = HashMap::new();
            for frame in &frames {
                let (reading, addresses, facts) = match read(&selection, &secret, 7, frame) {
                    Some((reading, addresses, beside)) => (reading, addresses, beside.facts()),
                    None => selection.read_any(&secret, 7, frame, frame.len() as u32),
                };
                let record = FlowRecord {
                    key: joined(&reading, &secret, &addresses),
                    facts,
                    ..FlowRecord::default()
                };
                let mut octets = Vec::new();
                let Some(id) = plan.write(&record, &Epoch::default(), &mut octets) else {
                    continue;
                };
                let template = plan.templates(false).find(|it| it.id == id).unwrap();
                let (indicator, mut at, mut values) = (
                    Plan::key_indicator(template),
                    0,
                    vec![id.to_be_bytes().to_vec()],
                );
                for (number, field) in template.fields.iter().enumerate() {
                    let end = at + usize::from(field.length);
                    if indicator >> number & 1 != 0 {
                        values.push(octets[at..end].to_vec());
                    }
                    at = end;
                }
                let first = seen
                    .entry((reading.short.0, addresses))
                    .or_insert_with(|| values.clone());
                assert_eq!(*first, values, "{names:?} {frame:02x?}");
            }
        }
    }

    /// A set that has anything of IP looks for IP, whatever that is.
    #[test]
    fn what_only_ip_has_is_looked_for() {
        for element in RecordSet::measured() {
            let name = weir_flowfmt::ipfix::elements::by_number(element)
                .unwrap()
                .name;
            let [.., l2, _] = RecordSet::new([name]).unwrap().lengths();
            let is_of_ip = l2.is_none();
            assert_eq!(selection(&[name]).depth == Depth::Ip, is_of_ip, "{name}");
            let [vlan, packets] = ["dot1qVlanId", "packetDeltaCount"];
            assert_eq!(
                selection(&[vlan, name, packets]).depth == Depth::Ip,
                is_of_ip,
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_not_selected_does_not_tell_flows_apart() {
        let mut frame = vec![0; 60];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0xb8]);
        (frame[17], frame[22], frame[23]) = (46, 64, 17);
        frame[26..38].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 2, 4, 210, 0, 53]);
        let secret = Secret::new(&mut Random::new(5));
        let parts = |names: &[&str]| {
            let (reading, addresses, _) = read(&selection(names), &secret, 9, &frame).unwrap();
            joined(&reading, &secret, &addresses).parts()
        };
        let congested = |names: &[&str]| {
            let mut marked = frame.clone();
            marked[15] |= 3;
            let (reading, addresses, _) = read(&selection(names), &secret, 9, &marked).unwrap();
            joined(&reading, &secret, &addresses).parts().tos
        };
        let tuple = parts(&["5-tuple"]);
        assert_eq!(
            (
                tuple.tos,
                tuple.input,
                tuple.source_port,
                tuple.protocol,
                tuple.set
            ),
            (0, 9, 1234, 17, 3)
        );
        assert_eq!(parts(&["router"]).tos, 0xb8);
        // Congestion marks are no part of the code point.
        assert_eq!(congested(&["ipDiffServCodePoint"]), 0xb8);
        assert_eq!(
            congested(&["ipDiffServCodePoint", "ipClassOfService"]),
            0xbb
        );
        let one = parts(&["sourceIPv4Address"]);
        assert_eq!(
            (one.source[12..].to_vec(), one.destination, one.input),
            (vec![192, 0, 2, 1], [0; 16], 0)
        );
        // What it was routed by: the table by where it came in, the next hop by all of it.
        let table = parts(&["ingressVRFID", "sourceIPv4Address"]);
        assert_eq!((table.input, table.destination), (9, [0; 16]));
        let next = parts(&["ipNextHopIPv4Address", "octetDeltaCount"]);
        assert_eq!(
            (
                next.input,
                next.source_port,
                next.destination_port,
                next.protocol,
                next.tos
            ),
            (9, 1234, 53, 17, 0)
        );
        assert_eq!(
            (&next.source[12..], &next.destination[12..]),
            (&[192, 0, 2, 1][..], &[198, 51, 100, 2][..])
        );
        // Frames only: all are L2.
        let (seen, _) = selection(&["l2"]).observe_any(9, &frame, 60);
        assert_eq!(
            (
                seen.key.parts().kind,
                seen.key.parts().source_port,
                seen.octets
            ),
            (Kind::L2, 0x0800, 60)
        );
        assert!(read(&selection(&["l2"]), &secret, 9, &frame).is_none());
    }
}
