//! The side of the generator that gives packets.

use std::sync::Arc;
use std::time::Instant;

use weir_buf::{PktCache, Vector};

use super::Counts;
use super::checksums::{Effect, effects};
use super::stream::{Change, Field, Stream};
use crate::RxQueue;

/// A field under way.
struct RunningField {
    field: Field,
    /// What it has in the template, to correct checksums by the difference.
    template: [u8; 4],
    /// What it has next.
    value: u32,
    effects: [Option<Effect>; 2],
}

impl RunningField {
    fn new(template: &[u8], field: Field) -> Option<RunningField> {
        if !field.fits(template.len()) {
            return None;
        }
        let mut bytes = [0; 4];
        bytes
            .get_mut(..field.width)?
            .copy_from_slice(template.get(field.offset..field.offset + field.width)?);
        Some(RunningField {
            template: bytes,
            value: field.first,
            effects: effects(template, &field),
            field,
        })
    }

    #[inline]
    fn write(&self, frame: &mut [u8]) {
        let Field { offset, width, .. } = self.field;
        let bytes = self.value.to_be_bytes();
        let (Some(new), Some(old)) = (bytes.get(4 - width..), self.template.get(..width)) else {
            return;
        };
        if let Some(place) = frame.get_mut(offset..offset + width) {
            place.copy_from_slice(new);
        }
        self.effects
            .iter()
            .flatten()
            .for_each(|effect| effect.follow(frame, old, new));
    }

    #[inline]
    fn advance(&mut self, random: &mut u64) {
        let Field {
            first,
            last,
            change,
            ..
        } = self.field;
        self.value = match change {
            Change::Increment if self.value >= last => first,
            Change::Increment => self.value + 1,
            Change::Random => {
                let span = u64::from(last - first) + 1;
                first + ((u64::from(next_random(random)) * span) >> 32) as u32
            }
        };
    }
}

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016):
/// traffic need only look random.
#[inline]
fn next_random(state: &mut u64) -> u32 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
}

/// One stream under way.
struct Running {
    template: Vec<u8>,
    fields: Vec<RunningField>,
    limit: u64,
    rate: u64,
    made: u64,
}

impl Running {
    fn new(stream: Stream, random: &mut u64) -> Running {
        let Stream {
            template,
            fields,
            limit,
            rate,
        } = stream;
        let mut fields: Vec<_> = fields
            .into_iter()
            .filter_map(|field| RunningField::new(&template, field))
            .collect();
        // The first value of a random field is as random as the others.
        fields
            .iter_mut()
            .filter(|field| field.field.change == Change::Random)
            .for_each(|field| field.advance(random));
        Running {
            template,
            fields,
            limit,
            rate,
            made: 0,
        }
    }

    /// How many packets the stream may give, `elapsed` nanoseconds after the first call.
    fn due(&self, elapsed: u64) -> u64 {
        let by_limit = if self.limit == 0 {
            u64::MAX
        } else {
            self.limit.saturating_sub(self.made)
        };
        if self.rate == 0 {
            return by_limit;
        }
        let until_now = u128::from(elapsed) * u128::from(self.rate) / 1_000_000_000;
        by_limit.min(
            u64::try_from(until_now)
                .unwrap_or(u64::MAX)
                .saturating_sub(self.made),
        )
    }

    /// Writes one packet and moves the fields on.
    fn write(&mut self, frame: &mut [u8], random: &mut u64) {
        frame.copy_from_slice(&self.template);
        for field in &mut self.fields {
            field.write(frame);
            field.advance(random);
        }
        self.made += 1;
    }
}

/// The receiving side of one queue.
pub(super) struct GeneratorRx {
    streams: Vec<Running>,
    turn: usize,
    random: u64,
    paced: bool,
    started: Option<Instant>,
    counts: Arc<Counts>,
}

impl GeneratorRx {
    pub(super) fn new(streams: Vec<Stream>, seed: u64, counts: Arc<Counts>) -> GeneratorRx {
        // The generator must not start at 0, and neighbouring seeds shall not look alike.
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let streams: Vec<_> = streams
            .into_iter()
            .map(|stream| Running::new(stream, &mut random))
            .collect();
        let paced = streams.iter().any(|running| running.rate != 0);
        GeneratorRx {
            streams,
            turn: 0,
            random,
            paced,
            started: None,
            counts,
        }
    }

    /// Appends what is due `elapsed` nanoseconds after the first call, at most `most` packets.
    pub(super) fn give(
        &mut self,
        elapsed: u64,
        to: &mut Vector,
        cache: &mut PktCache,
        most: usize,
    ) -> usize {
        let (mut got, mut idle) = (0, 0);
        let count = self.streams.len();
        while got < most && idle < count {
            let Some(running) = self.streams.get_mut(self.turn) else {
                break;
            };
            self.turn = if self.turn + 1 >= count {
                0
            } else {
                self.turn + 1
            };
            if running.due(elapsed) == 0 {
                idle += 1;
                continue;
            }
            let Some(mut packet) = cache.alloc() else {
                self.counts.rx.no_buffer.add(1);
                break;
            };
            // A template longer than a buffer (the fields of a stream are public) ends the stream.
            if !packet.set_len(running.template.len()) {
                (running.limit, running.made) = (1, 1);
                cache.free(packet);
                continue;
            }
            running.write(packet.data_mut(), &mut self.random);
            to.push(packet);
            got += 1;
            idle = 0;
        }
        self.counts.rx.made.add(got as u64);
        got
    }
}

impl RxQueue for GeneratorRx {
    fn recv(&mut self, to: &mut Vector, cache: &mut PktCache, most: usize) -> usize {
        let elapsed = if self.paced {
            let started = *self.started.get_or_insert_with(Instant::now);
            u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
        } else {
            0
        };
        self.give(elapsed, to, cache, most)
    }

    fn is_exhausted(&self) -> bool {
        self.streams
            .iter()
            .all(|running| running.limit != 0 && running.made >= running.limit)
    }
}
