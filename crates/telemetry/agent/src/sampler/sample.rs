//! A sampled packet, and what became of it.
//!
//! A sample lies in a ring's slot from the moment it is written until the agent has encoded it, and its packet's end
//! is written into the same slot when it comes soon enough. Each part begins with a cache line of its own: facts,
//! the bytes as they left, the bytes as they came.

use weir_buf::Pkt;
use weir_graph::PacketOutcome;

/// The most bytes of a packet that a sample keeps.
pub const MOST_HEADER: usize = 256;
/// Bytes of a packet that is sent which are kept, as they left: addresses, tags, labels.
pub const MOST_LEAVING: usize = 64;

/// One sampled packet: a cache line of facts, then the bytes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Sample {
    /// The data source: the interface of arrival, or of departure of what goes out.
    pub interface: u32,
    /// The rate under which it was drawn.
    pub rate: u32,
    /// Packets that this worker could have sampled on this interface, up to and with this one.
    pub pool: u64,
    /// Nanoseconds of the router's clock, of the turn.
    pub time: u64,
    /// The packet, while it is on its way.
    pub(super) identity: usize,
    /// Bytes of the whole frame, without FCS.
    pub frame: u32,
    /// Under which its outcome is reported; 0 of what goes out, whose outcome is to go out unless the sample has another one.
    pub ticket: u32,
    /// The interface that the packet came in on; 0 of what this router itself sends.
    pub input: u32,
    /// How many of `header` are to be reported.
    pub kept: u16,
    /// How many of `header` are the packet's: enough of them to tell where it goes.
    pub copied: u16,
    /// What became of it, when that was known before anybody read it.
    pub(crate) outcome: Option<PacketOutcome>,
    /// How many of `leaving` are the packet's.
    left: u16,
    /// Whether its end may still be written here.
    pub(super) open: bool,
    /// Where its packet stood in its vector as it came in.
    pub(super) place: u16,
    /// So that what follows begins a cache line.
    _rest: [u8; 2],
    leaving: [u8; MOST_LEAVING],
    /// The packet's first bytes.
    pub header: [u8; MOST_HEADER],
}

const _: () = assert!(
    std::mem::offset_of!(Sample, leaving) == 64 && std::mem::offset_of!(Sample, header) == 128
);

impl Default for Sample {
    fn default() -> Sample {
        Sample {
            interface: 0,
            rate: 0,
            pool: 0,
            time: 0,
            identity: 0,
            frame: 0,
            ticket: 0,
            input: 0,
            kept: 0,
            copied: 0,
            outcome: None,
            left: 0,
            open: false,
            place: 0,
            _rest: [0; 2],
            leaving: [0; MOST_LEAVING],
            header: [0; MOST_HEADER],
        }
    }
}

impl Sample {
    /// The bytes that are reported.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.header.get(..self.kept as usize).unwrap_or(&[])
    }

    /// The packet's first bytes, as far as they are here.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        self.header.get(..self.copied as usize).unwrap_or(&[])
    }

    /// What became of the packet, if that is written here.
    #[must_use]
    pub fn ending(&self) -> Option<Ending<'_>> {
        self.outcome.map(|outcome| Ending {
            outcome,
            leaving: self.leaving.get(..self.left as usize).unwrap_or(&[]),
        })
    }

    /// Writes the first facts of a packet whose end is to follow.
    #[inline(always)]
    pub(super) fn begin(&mut self, packet: &Pkt, open: bool) {
        (self.identity, self.open, self.outcome) = (packet.identity(), open, None);
    }

    /// Writes what became of it.
    #[inline(always)]
    pub(super) fn end(&mut self, outcome: PacketOutcome, packet: &Pkt) {
        if let PacketOutcome::Sent(_) = outcome {
            self.left = keep(packet, &mut self.leaving);
        }
        (self.outcome, self.open) = (Some(outcome), false);
    }
}

/// What became of a sampled packet, as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending<'a> {
    /// Its outcome.
    pub outcome: PacketOutcome,
    /// Its first bytes as they left, if it was sent.
    pub leaving: &'a [u8],
}

/// What became of a packet whose sample could not wait for it.
#[derive(Clone, Copy, Debug)]
pub struct TicketOutcome {
    /// The worker that sampled it, and the ticket.
    pub mark: Mark,
    outcome: PacketOutcome,
    left: u16,
    leaving: [u8; MOST_LEAVING],
}

impl TicketOutcome {
    /// Of a packet with a mark.
    #[must_use]
    pub fn new(mark: Mark, outcome: PacketOutcome, packet: &Pkt) -> TicketOutcome {
        let mut leaving = [0; MOST_LEAVING];
        let left = if let PacketOutcome::Sent(_) = outcome {
            keep(packet, &mut leaving)
        } else {
            0
        };
        TicketOutcome {
            mark,
            outcome,
            left,
            leaving,
        }
    }

    #[cfg(test)]
    pub(crate) fn bare(ticket: u32, outcome: PacketOutcome) -> TicketOutcome {
        TicketOutcome {
            mark: Mark::new(0, ticket),
            outcome,
            left: 0,
            leaving: [0; MOST_LEAVING],
        }
    }

    /// What became of it.
    #[must_use]
    pub fn ending(&self) -> Ending<'_> {
        Ending {
            outcome: self.outcome,
            leaving: self.leaving.get(..self.left as usize).unwrap_or(&[]),
        }
    }
}

/// Keeps the first bytes of a packet as it leaves; returns how many are its own.
#[inline(always)]
fn keep(packet: &Pkt, room: &mut [u8; MOST_LEAVING]) -> u16 {
    match packet.data_and_behind(MOST_LEAVING).as_array() {
        Some(whole) => *room = *whole,
        // So near the end of its chunk that no whole line is there.
        None => keep_slowly(packet, room),
    }
    packet.len().min(MOST_LEAVING) as u16
}

#[cold]
#[inline(never)]
fn keep_slowly(packet: &Pkt, room: &mut [u8; MOST_LEAVING]) {
    packet.copy_out(0, room);
}

/// A mark: the worker and the ticket of a sample in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub(super) u32);

impl Mark {
    /// Bits of the ticket.
    const TICKET: u32 = 24;

    /// Of a worker's sample. Tickets wrap; there are at most 64 workers.
    pub(super) fn new(worker: usize, ticket: u32) -> Mark {
        Mark((worker as u32) << Mark::TICKET | ticket)
    }

    /// The worker.
    #[must_use]
    pub fn worker(self) -> usize {
        (self.0 >> Mark::TICKET) as usize
    }

    /// The ticket.
    #[must_use]
    pub fn ticket(self) -> u32 {
        self.0 & ((1 << Mark::TICKET) - 1)
    }
}

/// The ticket after another: 1 to 2^24 - 1.
pub(super) fn next_ticket(ticket: u32) -> u32 {
    if ticket + 1 < 1 << Mark::TICKET {
        ticket + 1
    } else {
        1
    }
}

/// How many tickets one lies behind another.
pub(crate) fn ticket_distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from) & ((1 << Mark::TICKET) - 1)
}
