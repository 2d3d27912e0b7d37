//! A stream under way: writes one packet after the other, the same bytes for the same seed.
//!
//! Called from the generator's thread for every packet; allocates nothing. Checksums are the
//! constant sum of the template plus what varies, so their cost does not grow with the frame.

use weir_buf::DATA_ROOM;

use crate::pace::Schedule;
use crate::packet::{self, FieldSpec, Template};
use crate::profile::StreamSpec;
use crate::raw;
use crate::stamp::{self, Stamp};

/// The largest frame without FCS that the generator sends: one buffer.
pub const LARGEST_FRAME: usize = DATA_ROOM;

/// The smallest frame without FCS that holds the headers, and the stamp when there is one. At least 60.
#[must_use]
pub fn smallest_frame(spec: &StreamSpec) -> usize {
    if let Some(raw) = &spec.packet.raw {
        return raw.bytes.len();
    }
    let headers = packet::headers(&spec.packet).bytes.len();
    (headers + if spec.stamped { stamp::LEN } else { 0 })
        .next_multiple_of(2)
        .max(60)
}

/// xorshift64* (Vigna 2016): fast, and the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        // splitmix64, so that neighbouring seeds differ; the state must not be 0.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((z ^ z >> 31) | 1)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// A field under way.
#[derive(Clone, Debug)]
struct Field {
    at: usize,
    width: usize,
    first: u64,
    step: u64,
    count: u64,
    index: u64,
    /// Packets that still get the value of `index`, and how many each value gets.
    left: u64,
    every: u64,
    random: bool,
    list: Box<[u64]>,
    /// The bits of the field.
    mask: u64,
    /// By how much its words count in the two checksums: 0 or 1; 256 for one byte at an even offset.
    in_header: u64,
    in_transport: u64,
}

impl Field {
    fn new(spec: &FieldSpec, l3: usize) -> Field {
        // A checksum adds words of 16 bits. A value that ends within a word counts 256 times:
        // exchanging the bytes of all words exchanges those of the sum (RFC 1071).
        let ends_at = spec.at - l3.min(spec.at) + spec.width;
        let weight = if ends_at.is_multiple_of(2) { 1 } else { 256 };
        let value = |value: u128| (value as u64) << spec.shift | spec.fixed;
        let values = &spec.values;
        let mut list: Box<[u64]> = values.list.iter().map(|item| value(*item)).collect();
        let step = values.step << spec.shift;
        let (first, step) = if values.down {
            list.reverse();
            (value(values.last()), step.wrapping_neg())
        } else {
            (value(values.first), step)
        };
        Field {
            at: spec.at,
            width: spec.width,
            first,
            step,
            count: values.count,
            index: values.start,
            left: values.every.max(1),
            every: values.every.max(1),
            random: values.random,
            list,
            mask: u64::MAX >> (64 - 8 * spec.width.clamp(1, 8)),
            in_header: u64::from(spec.in_header) * weight,
            in_transport: u64::from(spec.in_transport) * weight,
        }
    }

    #[inline]
    fn next(&mut self, random: &mut Random) -> u64 {
        let index = if self.random {
            random.below(self.count)
        } else {
            let now = self.index;
            self.left -= 1;
            if self.left == 0 {
                self.left = self.every;
                self.index = if now + 1 >= self.count { 0 } else { now + 1 };
            }
            now
        };
        if self.list.is_empty() {
            self.first.wrapping_add(index.wrapping_mul(self.step)) & self.mask
        } else {
            self.list.get(index as usize).copied().unwrap_or(self.first)
        }
    }
}

#[inline]
fn words(value: u64) -> u64 {
    (value >> 48) + (value >> 32 & 0xffff) + (value >> 16 & 0xffff) + (value & 0xffff)
}

#[inline]
fn folded(mut sum: u64) -> u16 {
    sum = (sum & 0xffff_ffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[inline]
fn put<const N: usize>(frame: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = frame
        .get_mut(at..at + N)
        .and_then(|place| <&mut [u8; N]>::try_from(place).ok())
    {
        *place = value;
    }
}

/// A compiled stream.
#[derive(Clone, Debug)]
pub struct Stream {
    templates: Vec<Template>,
    /// The order of the sizes, for a whole cycle of the mix.
    order: Vec<u32>,
    turn: usize,
    fields: Vec<Field>,
    random: Random,
    number: u16,
    sequence: u64,
    /// When packets are due.
    pub(crate) schedule: Schedule,
}

impl Stream {
    /// Compiles stream `number` of a profile with this seed.
    #[must_use]
    pub fn new(spec: &StreamSpec, number: u16, seed: u64, schedule: Schedule) -> Stream {
        let mut random = Random::new(seed ^ u64::from(number).wrapping_mul(0xd6e8_feb8_6659_fd93));
        let stamp = spec.stamped.then_some(number);
        let (templates, fields) = match (&spec.capture, &spec.packet.raw) {
            (Some(capture), _) => (
                capture.frames.iter().map(|f| Template::plain(f)).collect(),
                Vec::new(),
            ),
            (None, Some(frame)) => {
                let (template, fields, l3) = raw::compile(frame, stamp);
                (
                    vec![template],
                    fields.iter().map(|field| Field::new(field, l3)).collect(),
                )
            }
            (None, None) => built(spec, stamp, &mut random),
        };
        let mut order: Vec<u32> = if spec.capture.is_some() {
            (0..templates.len() as u32).collect()
        } else {
            spec.sizes
                .iter()
                .zip(0..)
                .flat_map(|((_, weight), number)| std::iter::repeat_n(number, *weight as usize))
                .collect()
        };
        if spec.capture.is_none() {
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at as u64 + 1) as usize);
            }
        }
        Stream {
            templates,
            order,
            turn: 0,
            fields,
            random,
            number,
            sequence: 0,
            schedule,
        }
    }

    /// Packets written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.sequence
    }

    /// The length of the next frame.
    #[inline]
    #[must_use]
    pub fn next_len(&self) -> usize {
        self.template().map_or(0, |template| template.bytes.len())
    }

    #[inline]
    fn template(&self) -> Option<&Template> {
        self.templates.get(*self.order.get(self.turn)? as usize)
    }

    /// Writes the next packet, sent at `time`, into a frame of [`Stream::next_len`] bytes.
    #[inline]
    pub fn write(&mut self, frame: &mut [u8], time: u64) {
        let Some(template) = self
            .order
            .get(self.turn)
            .and_then(|at| self.templates.get(*at as usize))
        else {
            return;
        };
        self.turn = if self.turn + 1 >= self.order.len() {
            0
        } else {
            self.turn + 1
        };
        if frame.len() != template.bytes.len() {
            return;
        }
        copy(frame, &template.bytes);
        let (mut header, mut transport) = (0, 0);
        for field in &mut self.fields {
            let value = field.next(&mut self.random);
            match field.width {
                4 => put(frame, field.at, (value as u32).to_be_bytes()),
                2 => put(frame, field.at, (value as u16).to_be_bytes()),
                1 => put(frame, field.at, [value as u8]),
                6 => {
                    put(frame, field.at, ((value >> 32) as u16).to_be_bytes());
                    put(frame, field.at + 2, (value as u32).to_be_bytes());
                }
                _ => put(frame, field.at, value.to_be_bytes()),
            }
            let words = words(value);
            header += words * field.in_header;
            transport += words * field.in_transport;
        }
        if let Some(at) = template.stamp {
            let stamp = Stamp {
                stream: self.number,
                sequence: self.sequence as u32,
                time,
            };
            put(frame, at, stamp.bytes());
            transport += words(u64::from(stamp.sequence)) + words(time);
        }
        if let Some((at, sum)) = template.header {
            put(frame, at, folded(header + u64::from(sum)).to_be_bytes());
        }
        if let Some((at, sum)) = template.transport {
            let sum = folded(transport + u64::from(sum));
            put(
                frame,
                at,
                if sum == 0 && template.udp {
                    0xffff
                } else {
                    sum
                }
                .to_be_bytes(),
            );
        }
        self.sequence += 1;
    }
}

/// Templates and fields of packets that are described by their headers.
fn built(
    spec: &StreamSpec,
    stamp: Option<u16>,
    random: &mut Random,
) -> (Vec<Template>, Vec<Field>) {
    let headers = packet::headers(&spec.packet);
    let least = smallest_frame(spec);
    let template = |(size, _): &(u16, u32)| {
        let len = usize::from(*size)
            .saturating_sub(4)
            .clamp(least, LARGEST_FRAME.max(least));
        packet::template(&headers, len, &spec.packet.payload, stamp, &mut || {
            random.next() >> 32
        })
    };
    let templates = spec.sizes.iter().map(template).collect();
    let l3 = headers.l3.map_or(0, |(l3, _)| l3);
    let fields = headers.fields.iter();
    (
        templates,
        fields.map(|field| Field::new(field, l3)).collect(),
    )
}

/// Copies a template; frames of 60 bytes, the usual ones in tests of packet rates, without a call.
#[inline]
fn copy(frame: &mut [u8], template: &[u8]) {
    if let (Ok(frame), Ok(template)) = (
        <&mut [u8; 60]>::try_from(&mut *frame),
        <&[u8; 60]>::try_from(template),
    ) {
        *frame = *template;
    } else {
        frame.copy_from_slice(template);
    }
}
