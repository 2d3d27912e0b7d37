//! From a flow's record to the octets of a template's fields.
//!
//! A record set is a list of IANA's elements, or one of the named ones. Each shape of flow has its own template of it:
//! what makes no sense for the shape (an IPv4 address for IPv6) is left out. Shapes are the kinds of flows, and IPv4 that is routed
//! by IPv6 next hops (RFC 8950), which has room for both. [`Plan`] is what is worked out once; writing a record is then one
//! walk over its fields.

use weir_flowfmt::ipfix::elements::{by_name, by_number};
use weir_flowfmt::ipfix::template::{Field, REVERSE, Space, Template};
use weir_flowfmt::ipfix::{FIRST_DATA_SET, Version};

use crate::flows::FlowRecord;
use crate::flows::key::{Kind, MOST_SETS, Parts};
use crate::flows::record::MPLS;

/// What a flow's record looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// IPv4, next hops too.
    Ip4,
    /// IPv6.
    Ip6,
    /// Frames.
    L2,
    /// IPv4 with a next hop of IPv6 (RFC 8950).
    Ip4ByIp6,
}

/// The shapes, in the order of their templates.
pub const SHAPES: [Shape; 4] = [Shape::Ip4, Shape::Ip6, Shape::L2, Shape::Ip4ByIp6];

const V4: u8 = IP4 | BY6;
const V6: u8 = IP6;
const V6_HOP: u8 = IP6 | BY6;
const IP: u8 = V4 | V6;
const ALL: u8 = IP | L2;

const IP4: u8 = Shape::Ip4.bit();
const IP6: u8 = Shape::Ip6.bit();
const L2: u8 = Shape::L2.bit();
const BY6: u8 = Shape::Ip4ByIp6.bit();

impl Shape {
    const fn bit(self) -> u8 {
        1 << self as u8
    }

    fn of(record: &FlowRecord, parts: &Parts) -> Shape {
        match parts.kind {
            Kind::Ip6 => Shape::Ip6,
            Kind::L2 => Shape::L2,
            Kind::Ip4
                if [record.facts.next_hop, record.facts.bgp_next_hop]
                    .iter()
                    .any(|hop| four(hop).is_none()) =>
            {
                Shape::Ip4ByIp6
            }
            Kind::Ip4 => Shape::Ip4,
        }
    }
}

/// What can be exported: element, octets, and the shapes of flows that have it.
const FIELDS: [(u16, u16, u8); 62] = [
    (1, 8, ALL),
    (2, 8, ALL),
    (4, 1, IP),
    (5, 1, IP),
    // One octet: some collectors (pmacct 1.7) skip two. NetFlow 9 knows no other length.
    (6, 1, IP),
    (7, 2, IP),
    (8, 4, V4),
    (9, 1, V4),
    (10, 4, ALL),
    (11, 2, IP),
    (12, 4, V4),
    (13, 1, V4),
    (14, 4, ALL),
    (15, 4, V4),
    (16, 4, IP),
    (17, 4, IP),
    (18, 4, V4),
    (21, 4, ALL),
    (22, 4, ALL),
    (25, 8, IP),
    (26, 8, IP),
    (27, 16, V6),
    (28, 16, V6),
    (29, 1, V6),
    (30, 1, V6),
    (31, 4, V6),
    (32, 2, V4),
    (34, 4, ALL),
    (48, 1, ALL),
    (52, 1, IP),
    (53, 1, IP),
    (56, 6, ALL),
    (58, 2, ALL),
    (60, 1, IP),
    (61, 1, ALL),
    (62, 16, V6_HOP),
    (63, 16, V6_HOP),
    (70, 3, ALL),
    (71, 3, ALL),
    (72, 3, ALL),
    (73, 3, ALL),
    (74, 3, ALL),
    (80, 6, ALL),
    (89, 1, ALL),
    (128, 4, IP),
    (129, 4, IP),
    (136, 1, ALL),
    (139, 2, V6),
    (152, 8, ALL),
    (153, 8, ALL),
    (154, 8, ALL),
    (155, 8, ALL),
    (156, 8, ALL),
    (157, 8, ALL),
    (195, 1, IP),
    (197, 1, IP),
    (234, 4, ALL),
    (243, 2, ALL),
    (245, 2, ALL),
    (256, 2, L2),
    (302, 8, ALL),
    (352, 8, L2),
];

/// Record sets with names.
pub const NAMED: [(&str, &[u16]); 4] = [
    (
        "5-tuple",
        &[8, 27, 12, 28, 7, 11, 4, 10, 14, 2, 1, 152, 153, 136],
    ),
    // Two elements for the VLAN and for the octets: collectors know one or the other.
    (
        "l2",
        &[56, 80, 256, 243, 58, 10, 14, 2, 1, 352, 152, 153, 136],
    ),
    (
        "router",
        &[
            8, 27, 12, 28, 7, 11, 4, 5, 6, 32, 139, 31, 10, 14, 234, 243, 58, 18, 63, 15, 62, 9,
            29, 13, 30, 2, 1, 152, 153, 136, 89, 61, 52, 53, 25, 26, 197,
        ],
    ),
    (
        "mpls",
        &[
            70, 71, 72, 8, 27, 12, 28, 7, 11, 4, 10, 14, 2, 1, 152, 153, 136, 89,
        ],
    ),
];

/// Fields that tell flows apart (RFC 7011 4.4).
const KEYS: [u16; 29] = [
    4, 5, 7, 8, 10, 11, 12, 14, 27, 28, 31, 32, 56, 58, 60, 61, 70, 71, 72, 73, 74, 80, 89, 139,
    195, 234, 243, 245, 256,
];

/// Why a record set cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// IANA does not know the name.
    #[error(
        "{0} is neither a record set (5-tuple, l2, router, mpls) nor an information element of IANA"
    )]
    Unknown(String),
    /// The meter does not have it.
    #[error("the meter does not measure {0}")]
    NotMeasured(String),
    /// Nothing to export.
    #[error("a record set needs a field")]
    Empty,
}

/// A record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSet(Vec<u16>);

impl RecordSet {
    /// The set that these names stand for: of sets, or of IANA's elements.
    ///
    /// # Errors
    /// When a name is unknown, or nothing that is measured.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<RecordSet, FieldError> {
        let mut elements = Vec::new();
        let mut add = |element: u16| {
            if !elements.contains(&element) {
                elements.push(element);
            }
        };
        for name in names {
            if let Some((_, set)) = NAMED.iter().find(|(set, _)| *set == name) {
                set.iter().for_each(|element| add(*element));
                continue;
            }
            let element = by_name(name).ok_or_else(|| FieldError::Unknown(name.to_owned()))?;
            if !FIELDS.iter().any(|(number, ..)| *number == element.number) {
                return Err(FieldError::NotMeasured(name.to_owned()));
            }
            add(element.number);
        }
        if elements.is_empty() {
            Err(FieldError::Empty)
        } else {
            Ok(RecordSet(elements))
        }
    }

    /// All elements that are measured.
    pub fn measured() -> impl Iterator<Item = u16> {
        FIELDS.iter().map(|(number, ..)| *number)
    }

    /// Octets of an IPFIX record of each of [`SHAPES`]; `None` if the set has no field for it.
    #[must_use]
    pub fn lengths(&self) -> [Option<u16>; SHAPES.len()] {
        SHAPES.map(|shape| {
            self.fields(shape, Version::Ipfix)
                .map(|field| field.length)
                .reduce(|sum, length| sum + length)
        })
    }

    /// IANA's numbers of its elements.
    #[must_use]
    pub fn elements(&self) -> &[u16] {
        &self.0
    }

    /// Whether flows of ICMP are distinguished by their type: where ports are, also for the sake of a next hop.
    pub(super) fn tells_types(&self) -> bool {
        let has = |wanted: &[u16]| self.0.iter().any(|element| wanted.contains(element));
        has(&[15, 18, 62, 63]) || has(&[4]) && has(&[11, 32, 139])
    }

    /// Octets of the longest template with its set's header: what a message must have room for.
    #[must_use]
    pub fn longest_template(&self) -> usize {
        SHAPES
            .iter()
            .map(|shape| 8 + 4 * self.fields(*shape, Version::Ipfix).count())
            .max()
            .unwrap_or(0)
    }

    fn fields(&self, shape: Shape, version: Version) -> impl Iterator<Item = Field> {
        // Without a place for next hops of IPv6 it is as any other of IPv4.
        let none =
            shape == Shape::Ip4ByIp6 && !self.0.iter().any(|element| matches!(element, 62 | 63));
        let bit = if none { 0 } else { shape.bit() };
        self.0.iter().filter_map(move |element| {
            // Version 9 tells times by its uptime (RFC 3954, 8).
            let element = match (version, element) {
                (Version::NetFlow9, 152) => 22,
                (Version::NetFlow9, 153) => 21,
                (_, element) => *element,
            };
            let (number, length, _) = FIELDS
                .iter()
                .find(|(number, _, shapes)| *number == element && shapes & bit != 0)?;
            Some(Field::iana(*number, *length))
        })
    }
}

/// Record sets by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSets(pub Vec<(u8, RecordSet)>);

impl From<RecordSet> for RecordSets {
    /// One, number 0.
    fn from(set: RecordSet) -> RecordSets {
        RecordSets(vec![(0, set)])
    }
}

impl RecordSets {
    /// Whether any field of any set depends on where flows were routed.
    #[must_use]
    pub fn need_completion(&self) -> bool {
        self.0.iter().any(|(_, set)| {
            set.0.iter().any(|element| {
                matches!(
                    element,
                    9 | 13 | 15..=18 | 29 | 30 | 62 | 63 | 128 | 129 | 234
                )
            })
        })
    }
}

/// Times of records, for those who read them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epoch {
    /// Nanoseconds since 1970 when the router's clock was 0.
    pub wall: u64,
    /// The router's clock when the exporter's uptime was 0.
    pub started: u64,
}

impl Epoch {
    fn wall(&self, time: u64) -> u64 {
        self.wall.saturating_add(time)
    }

    /// Milliseconds of uptime; wraps, as its field does.
    pub(super) fn uptime(&self, time: u64) -> u32 {
        (time.saturating_sub(self.started) / 1_000_000) as u32
    }
}

/// How the packets of a record set's flows were chosen (RFC 5477: a Selector).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Its number: `selectorId`, `samplerId`.
    pub(super) number: u8,
    /// One packet in so many.
    pub(super) rate: u32,
}

impl Sampler {
    /// The one that all record sets share which have no rate of their own.
    pub(super) const fn usual(rate: u32) -> Sampler {
        Sampler { number: 1, rate }
    }

    /// That of a record set with a rate of its own: its number goes with that of the set.
    pub(super) const fn of_set(set: u8, rate: u32) -> Sampler {
        Sampler {
            number: set + 2,
            rate,
        }
    }
}

/// A record set worked out for one version: its templates.
#[derive(Clone, Debug)]
pub struct Plan {
    sampler: Sampler,
    templates: [Template; SHAPES.len()],
    /// The same with what the other direction tells behind it (RFC 5103).
    both: [Template; SHAPES.len()],
}

/// Numbers of templates of both directions are so much higher.
const BOTH: u16 = 256;
/// Elements that the other direction tells anew: what was counted, when, and why the record was made.
const REVERSED: [u16; 18] = [
    1, 2, 6, 21, 22, 25, 26, 52, 53, 89, 136, 152, 153, 154, 155, 156, 157, 197,
];
/// What the forward direction of a biflow is (`biflowDirection`, RFC 5103 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// Unknown which side began.
    Arbitrary = 0,
    /// The initiator's.
    Initiator = 1,
}

/// `biflowDirection`.
const DIRECTION: Field = Field::iana(239, 1);

impl Plan {
    /// The templates of a record set by its number.
    #[must_use]
    pub fn new(set: &RecordSet, version: Version, number: u8) -> Plan {
        let first = FIRST_DATA_SET + SHAPES.len() as u16 * u16::from(number % MOST_SETS as u8);
        let fields = |shape: Shape| set.fields(shape, version).collect::<Vec<_>>();
        let template = |shape: Shape| Template::data(first + shape as u16, fields(shape));
        let both = |shape: Shape| {
            let mut all = fields(shape);
            if version == Version::Ipfix && !all.is_empty() && shape != Shape::L2 {
                let reversed = |field: &&Field| REVERSED.contains(&field.number);
                let reverse: Vec<Field> = all
                    .iter()
                    .filter(reversed)
                    .map(|field| Field {
                        space: Space::Enterprise(REVERSE),
                        ..*field
                    })
                    .collect();
                all.extend(reverse);
                all.push(DIRECTION);
            } else {
                all.clear();
            }
            Template::data(first + BOTH + shape as u16, all)
        };
        Plan {
            sampler: Sampler::usual(1),
            templates: SHAPES.map(template),
            both: SHAPES.map(both),
        }
    }

    /// The same for flows whose packets were chosen so.
    #[must_use]
    pub(super) fn sampled_by(self, sampler: Sampler) -> Plan {
        Plan { sampler, ..self }
    }

    /// The templates that have any field; those of both directions, too, if there will be such records.
    pub fn templates(&self, biflow: bool) -> impl Iterator<Item = &Template> {
        let both = if biflow { self.both.as_slice() } else { &[] };
        self.templates
            .iter()
            .chain(both)
            .filter(|template| !template.fields.is_empty())
    }

    /// The template of flows of this shape, if the set has a field for it.
    #[must_use]
    pub fn template(&self, shape: Shape) -> Option<&Template> {
        self.templates
            .get(shape as usize)
            .filter(|template| !template.fields.is_empty())
    }

    /// The template of records of both directions, if there can be such of this shape.
    #[must_use]
    pub fn template_of_both(&self, shape: Shape) -> Option<&Template> {
        self.both
            .get(shape as usize)
            .filter(|template| !template.fields.is_empty())
    }

    /// Which fields tell flows apart: `flowKeyIndicator` (173), a bit for each of the first 64 fields.
    #[must_use]
    pub fn key_indicator(template: &Template) -> u64 {
        let is_key = |field: &Field| field.space == Space::Iana && KEYS.contains(&field.number);
        let keys = template
            .fields
            .iter()
            .enumerate()
            .take(64)
            .filter(|(_, field)| is_key(field));
        keys.fold(0, |bits, (place, _)| bits | 1 << place)
    }

    /// Writes a record; the number of its template, if there is one for its kind.
    pub fn write(&self, record: &FlowRecord, epoch: &Epoch, octets: &mut Vec<u8>) -> Option<u16> {
        let parts = record.key.parts();
        let shape = Shape::of(record, &parts);
        let template = self.template(shape).or_else(|| {
            self.template(Shape::Ip4)
                .filter(|_| shape == Shape::Ip4ByIp6)
        })?;
        octets.clear();
        let context = (epoch, self.sampler);
        for field in &template.fields {
            write_field(field.number, record, &parts, context, octets);
        }
        Some(template.id)
    }

    /// Writes a record of both directions; `None` where there is no template for such.
    pub fn write_both(
        &self,
        (forward, reverse): (&FlowRecord, &FlowRecord),
        direction: Direction,
        epoch: &Epoch,
        octets: &mut Vec<u8>,
    ) -> Option<u16> {
        let (parts, back) = (forward.key.parts(), reverse.key.parts());
        let of = |shape: Shape| self.template_of_both(shape);
        // What is reported of its path is of the forward direction.
        let shape = Shape::of(forward, &parts);
        let template = of(shape).or_else(|| of(Shape::Ip4).filter(|_| shape == Shape::Ip4ByIp6))?;
        octets.clear();
        let context = (epoch, self.sampler);
        for field in &template.fields {
            match field.space {
                _ if *field == DIRECTION => octets.push(direction as u8),
                Space::Iana | Space::Scope9 => {
                    write_field(field.number, forward, &parts, context, octets)
                }
                Space::Enterprise(_) => write_field(field.number, reverse, &back, context, octets),
            }
        }
        Some(template.id)
    }
}

/// An address of IPv4, if it is one.
fn four(address: &[u8; 16]) -> Option<[u8; 4]> {
    match address {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last @ ..] => Some(*last),
        _ => None,
    }
}

/// An address of IPv6: that of a flow of IPv6, or one that is none of IPv4.
fn six(address: &[u8; 16], parts: &Parts) -> [u8; 16] {
    if parts.kind == Kind::Ip4 && four(address).is_some() {
        [0; 16]
    } else {
        *address
    }
}

fn write_field(
    element: u16,
    record: &FlowRecord,
    parts: &Parts,
    (epoch, sampler): (&Epoch, Sampler),
    to: &mut Vec<u8>,
) {
    let (sums, facts) = (&record.sums, &record.facts);
    let milliseconds = |time| (epoch.wall(time) / 1_000_000).to_be_bytes();
    let ntp = |time| weir_flowfmt::ipfix::elements::to_ntp(epoch.wall(time));
    match element {
        // Records of `352` are of frames, and the meter counts their octets.
        1 | 352 => to.extend(sums.octets.to_be_bytes()),
        2 => to.extend(sums.packets.to_be_bytes()),
        4 => to.push(parts.protocol),
        5 => to.push(parts.tos),
        6 => to.push(sums.tcp_flags as u8),
        7 => to.extend(parts.source_port.to_be_bytes()),
        8 => to.extend(&parts.source[12..]),
        9 | 29 => to.push(facts.source_prefix),
        10 => to.extend(parts.input.to_be_bytes()),
        11 => to.extend(parts.destination_port.to_be_bytes()),
        12 => to.extend(&parts.destination[12..]),
        13 | 30 => to.push(facts.destination_prefix),
        14 => to.extend(parts.output.to_be_bytes()),
        15 => to.extend(four(&facts.next_hop).unwrap_or_default()),
        16 => to.extend(record.numbers.source.to_be_bytes()),
        17 => to.extend(record.numbers.destination.to_be_bytes()),
        128 => to.extend(record.numbers.next.to_be_bytes()),
        129 => to.extend(record.numbers.previous.to_be_bytes()),
        18 => to.extend(four(&facts.bgp_next_hop).unwrap_or_default()),
        21 => to.extend(epoch.uptime(sums.last).to_be_bytes()),
        22 => to.extend(epoch.uptime(sums.first).to_be_bytes()),
        25 => to.extend(u64::from(sums.shortest).to_be_bytes()),
        26 => to.extend(u64::from(sums.longest).to_be_bytes()),
        27 => to.extend(parts.source),
        28 => to.extend(parts.destination),
        31 => to.extend(
            if parts.label & MPLS == 0 {
                parts.label
            } else {
                0
            }
            .to_be_bytes(),
        ),
        32 | 139 => to.extend(
            if matches!(parts.protocol, 1 | 58) {
                parts.destination_port
            } else {
                0
            }
            .to_be_bytes(),
        ),
        34 => to.extend(sampler.rate.max(1).to_be_bytes()),
        48 => to.push(sampler.number),
        52 => to.push(sums.ttl_low),
        53 => to.push(sums.ttl_high),
        56 => to.extend(facts.source_mac_of(parts)),
        58 | 243 => to.extend(parts.vlan.to_be_bytes()),
        60 => to.push(parts.kind as u8),
        61 => to.push(parts.egress.into()),
        62 => to.extend(six(&facts.next_hop, parts)),
        63 => to.extend(six(&facts.bgp_next_hop, parts)),
        70 => to.extend(
            &if parts.label & MPLS == 0 {
                [0; 4]
            } else {
                (parts.label & 0x00ff_ffff).to_be_bytes()
            }[1..],
        ),
        71..=74 => to.extend(
            &facts
                .labels
                .get(usize::from(element - 71))
                .copied()
                .unwrap_or(0)
                .to_be_bytes()[1..],
        ),
        80 => to.extend(facts.destination_mac_of(parts)),
        89 => to.push(if parts.status == 0 { 64 } else { parts.status }),
        136 => to.push(sums.reason as u8),
        152 => to.extend(milliseconds(sums.first)),
        153 => to.extend(milliseconds(sums.last)),
        // RFC 7011, 6.1.9: the lowest 11 bits of a fraction that counts microseconds are zero.
        154 => to.extend((ntp(sums.first) & !0x7ff).to_be_bytes()),
        155 => to.extend((ntp(sums.last) & !0x7ff).to_be_bytes()),
        156 => to.extend(ntp(sums.first).to_be_bytes()),
        157 => to.extend(ntp(sums.last).to_be_bytes()),
        195 => to.push(parts.tos >> 2),
        197 => to.push(sums.fragment),
        245 => to.extend(parts.customer_vlan.to_be_bytes()),
        234 => to.extend(record.vrf.to_be_bytes()),
        256 => to.extend(parts.source_port.to_be_bytes()),
        302 => to.extend(u64::from(sampler.number).to_be_bytes()),
        other => debug_assert!(by_number(other).is_none(), "a field that nobody writes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is selected, each template's record has the octets its template says.
    #[test]
    fn records_are_as_long_as_their_templates_say() {
        for version in [Version::Ipfix, Version::NetFlow9] {
            let every: Vec<&str> = FIELDS
                .iter()
                .map(|(number, ..)| by_number(*number).unwrap().name)
                .collect();
            let set = RecordSet::new(every).unwrap();
            let plan = Plan::new(&set, version, 3);
            for shape in SHAPES {
                let kind = match shape {
                    Shape::Ip4 | Shape::Ip4ByIp6 => Kind::Ip4,
                    Shape::Ip6 => Kind::Ip6,
                    Shape::L2 => Kind::L2,
                };
                let key = crate::flows::Key::new(&Parts {
                    kind,
                    ..Parts::default()
                });
                let mut record = FlowRecord {
                    key,
                    ..FlowRecord::default()
                };
                record.facts.next_hop = if shape == Shape::Ip4ByIp6 {
                    [0xfe; 16]
                } else {
                    [0; 16]
                };
                let mut octets = Vec::new();
                let id = plan.write(&record, &Epoch::default(), &mut octets).unwrap();
                let template = plan.template(shape).unwrap();
                assert_eq!(
                    (template.id, template.fixed()),
                    (id, Some(octets.len())),
                    "{shape:?}"
                );
                let both = plan.write_both(
                    (&record, &record),
                    Direction::Arbitrary,
                    &Epoch::default(),
                    &mut octets,
                );
                let template = plan
                    .templates(true)
                    .find(|template| Some(template.id) == both);
                assert_eq!(
                    both.is_some(),
                    version == Version::Ipfix && shape != Shape::L2
                );
                assert!(
                    template.is_none_or(|template| template.fixed() == Some(octets.len())),
                    "{shape:?}"
                );
            }
        }
    }

    #[test]
    fn sets_are_named_or_listed() {
        assert!(
            NAMED
                .iter()
                .all(|(name, _)| RecordSet::new([*name]).is_ok())
        );
        assert!(FIELDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(FIELDS.iter().all(|(number, length, _)| {
            by_number(*number)
                .unwrap()
                .kind
                .size()
                .is_none_or(|size| *length <= size)
        }));
        let both = RecordSet::new(["5-tuple", "sourceIPv4Address", "forwardingStatus"]).unwrap();
        assert_eq!(both.0.len(), NAMED[0].1.len() + 1);
        assert_eq!(
            RecordSet::new(["nonsense"]),
            Err(FieldError::Unknown("nonsense".into()))
        );
        assert_eq!(
            RecordSet::new(["httpStatusCode"]),
            Err(FieldError::NotMeasured("httpStatusCode".into()))
        );
        assert_eq!(RecordSet::new([]), Err(FieldError::Empty));
        // A set of L2 has nothing but addresses of L2 for IPv4.
        let plan = Plan::new(
            &RecordSet::new(["sourceIPv4Address"]).unwrap(),
            Version::Ipfix,
            0,
        );
        assert!(plan.template(Shape::Ip6).is_none() && plan.templates(false).count() == 1);
    }

    /// RFC 8950: IPv4 whose next hop, or BGP's, is one of IPv6. What is of the other family is zero.
    #[test]
    fn next_hops_of_either_family_are_reported() {
        let set = RecordSet::new([
            "ipNextHopIPv4Address",
            "ipNextHopIPv6Address",
            "bgpNextHopIPv4Address",
            "bgpNextHopIPv6Address",
        ])
        .unwrap();
        let (plan, six) = (
            Plan::new(&set, Version::Ipfix, 0),
            [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9],
        );
        let four = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1];
        let written = |plan: &Plan, next_hop, bgp_next_hop| {
            let mut record = FlowRecord {
                key: crate::flows::Key::new(&Parts {
                    kind: Kind::Ip4,
                    ..Parts::default()
                }),
                ..FlowRecord::default()
            };
            (record.facts.next_hop, record.facts.bgp_next_hop) = (next_hop, bgp_next_hop);
            let mut octets = Vec::new();
            (plan.write(&record, &Epoch::default(), &mut octets), octets)
        };
        assert_eq!(
            written(&plan, four, [0; 16]),
            (Some(256), [&four[12..], &[0; 4]].concat())
        );
        assert_eq!(
            written(&plan, six, four),
            (
                Some(259),
                [&[0; 4], &six[..], &four[12..], &[0; 16]].concat()
            )
        );
        assert_eq!(
            written(&plan, four, six),
            (
                Some(259),
                [&four[12..], &[0; 16], &[0; 4], &six[..]].concat()
            )
        );
        // A set without a place for it.
        let plan = Plan::new(
            &RecordSet::new(["ipNextHopIPv4Address"]).unwrap(),
            Version::Ipfix,
            0,
        );
        assert_eq!(written(&plan, six, [0; 16]), (Some(256), vec![0; 4]));
    }

    #[test]
    fn keys_are_reported() {
        let template = Template::data(
            256,
            vec![Field::iana(8, 4), Field::iana(1, 8), Field::iana(7, 2)],
        );
        assert_eq!(Plan::key_indicator(&template), 0b101);
    }
}
