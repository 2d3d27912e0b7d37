//! Packets that wait for an answer, bounded in number and time.
//!
//! A queue is named by a key; whoever learns the answer releases the key and the packets go on to the
//! node that was named when they were held. What waits too long is dropped. Small on purpose: a
//! linear list of a few hundred keys, looked at only while it is not empty.

use weir_buf::{Flags, Pkt};

/// What a packet waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HoldKey {
    /// Kind of answer and interface, as the node sees fit.
    pub kind: u32,
    /// The thing itself, for example an address.
    pub what: u128,
}

/// How much may wait, and how long.
#[derive(Clone, Copy, Debug)]
pub struct HoldLimits {
    /// Different keys at a time.
    pub keys: usize,
    /// Packets a key.
    pub per_key: usize,
    /// Nanoseconds that a packet may wait.
    pub time: u64,
}

impl Default for HoldLimits {
    fn default() -> HoldLimits {
        HoldLimits {
            keys: 256,
            per_key: 16,
            time: 3_000_000_000,
        }
    }
}

#[derive(Debug)]
struct Queue {
    key: HoldKey,
    /// Number of the node that holds, for the drop counter.
    holder: u16,
    /// Number of the node that the packets go on to.
    next: u16,
    packets: Vec<(u64, Pkt)>,
}

/// All hold queues of one worker.
#[derive(Debug)]
pub(crate) struct Holds {
    limits: HoldLimits,
    queues: Vec<Queue>,
    spare: Vec<Vec<(u64, Pkt)>>,
    count: usize,
}

impl Holds {
    pub(crate) fn new(limits: HoldLimits) -> Holds {
        let spare = (0..limits.keys)
            .map(|_| Vec::with_capacity(limits.per_key))
            .collect();
        Holds {
            limits,
            queues: Vec::with_capacity(limits.keys),
            spare,
            count: 0,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Takes a packet, or hands it back when there is no room or it was held once already.
    pub(crate) fn keep(
        &mut self,
        key: HoldKey,
        holder: u16,
        next: u16,
        now: u64,
        mut packet: Pkt,
    ) -> Result<(), Pkt> {
        if packet.flags().any(Flags::HELD) {
            return Err(packet);
        }
        let place = match self
            .queues
            .iter()
            .position(|queue| queue.key == key && queue.next == next)
        {
            Some(place) => place,
            None => {
                let Some(packets) = self.spare.pop() else {
                    return Err(packet);
                };
                self.queues.push(Queue {
                    key,
                    holder,
                    next,
                    packets,
                });
                self.queues.len() - 1
            }
        };
        let Some(queue) = self.queues.get_mut(place) else {
            return Err(packet);
        };
        if queue.packets.len() >= self.limits.per_key {
            return Err(packet);
        }
        packet.set_flags(Flags::HELD);
        queue
            .packets
            .push((now.saturating_add(self.limits.time), packet));
        self.count += 1;
        Ok(())
    }

    /// Lets everything under `key` go on; `go` gets the next node's number and the packet.
    pub(crate) fn release(&mut self, key: HoldKey, mut go: impl FnMut(u16, Pkt)) {
        self.take(
            |queue| queue.key == key,
            |queue, packet| go(queue.next, packet),
        );
    }

    /// Gives up everything under `key`, or everything when there is no key; `lost` gets the holder's number.
    pub(crate) fn give_up(&mut self, key: Option<HoldKey>, mut lost: impl FnMut(u16, Pkt)) {
        self.take(
            |queue| key.is_none_or(|key| queue.key == key),
            |queue, packet| lost(queue.holder, packet),
        );
    }

    fn take(&mut self, mut which: impl FnMut(&Queue) -> bool, mut with: impl FnMut(&Queue, Pkt)) {
        let mut place = 0;
        while let Some(queue) = self.queues.get(place) {
            if !which(queue) {
                place += 1;
                continue;
            }
            let mut queue = self.queues.swap_remove(place);
            let mut packets = std::mem::take(&mut queue.packets);
            self.count -= packets.len();
            packets
                .drain(..)
                .for_each(|(_, packet)| with(&queue, packet));
            self.spare.push(packets);
        }
    }

    /// Drops what has waited too long; `lost` gets the holder's number.
    pub(crate) fn expire(&mut self, now: u64, mut lost: impl FnMut(u16, Pkt)) {
        let mut place = 0;
        while let Some(queue) = self.queues.get_mut(place) {
            let late = queue
                .packets
                .iter()
                .take_while(|(deadline, _)| *deadline <= now)
                .count();
            let holder = queue.holder;
            self.count -= late;
            queue
                .packets
                .drain(..late)
                .for_each(|(_, packet)| lost(holder, packet));
            if queue.packets.is_empty() {
                let queue = self.queues.swap_remove(place);
                self.spare.push(queue.packets);
            } else {
                place += 1;
            }
        }
    }
}
