//! What leaves: packets by interface, until the engine hands them to drivers.
//!
//! Runs in the worker. An interface that no driver feeds has a node before its output, which gets the packets instead.

use weir_buf::{Pkt, Vector};

use super::Graph;
use crate::node::World;

impl<W: World> Graph<W> {
    /// The output of an interface, noted as leaving.
    #[inline]
    pub(super) fn output(&mut self, interface: u32) -> &mut Vector {
        let place = interface as usize;
        if place >= self.outputs.len() {
            self.outputs.resize_with(place + 1, Vector::default);
        }
        if self.outputs[place].is_empty() {
            self.leaving.push(interface);
        }
        &mut self.outputs[place]
    }

    /// The node that takes what leaves by an interface; `None` when a driver does.
    #[inline(always)]
    fn output_node(&self, world: &W, interface: u32) -> Option<usize> {
        let number = world.output(interface);
        if number == 0 {
            None
        } else {
            self.output_nodes
                .get(number as usize - 1)
                .map(|&node| node as usize)
        }
    }

    pub(super) fn leave(&mut self, world: &W, interface: u32, packets: &mut Vector, count: usize) {
        if let Some(node) = self.output_node(world, interface) {
            return self.divert(node, interface, packets, count);
        }
        if count == packets.len() {
            self.output(interface).take_all(packets);
        } else {
            self.output(interface).extend(packets.drain_front(count));
        }
    }

    /// Packets that all have this interface in their `aux` words.
    pub(super) fn leave_run(
        &mut self,
        world: &W,
        interface: u32,
        packets: impl Iterator<Item = Pkt>,
    ) {
        match self.output_node(world, interface) {
            None => self.output(interface).extend(packets),
            Some(node) => {
                if let Some(slot) = self.slots.get_mut(node) {
                    slot.queue.extend(packets);
                    self.pending |= 1 << node;
                }
            }
        }
    }

    /// Packets that leave by the interfaces in their `aux` words. Those repeat: that a driver takes what leaves by one is looked up
    /// once for the run.
    pub(super) fn leave_each(&mut self, world: &W, packets: impl Iterator<Item = Pkt>) {
        let mut drivers = [u32::MAX; 16];
        for packet in packets {
            let interface = packet.aux();
            let known = &mut drivers[interface as usize % 16];
            if *known != interface {
                if let Some(node) = self.output_node(world, interface) {
                    self.enqueue_one(node, packet);
                    continue;
                }
                *known = interface;
            }
            self.output(interface).push(packet);
        }
    }

    pub(super) fn leave_one(&mut self, world: &W, packet: Pkt) {
        match self.output_node(world, packet.aux()) {
            Some(node) => self.enqueue_one(node, packet),
            None => self.output(packet.aux()).push(packet),
        }
    }

    /// Packets for an interface that a node stands before; it finds the interface in the `aux` word.
    fn divert(&mut self, node: usize, interface: u32, packets: &mut Vector, count: usize) {
        for packet in packets.iter_mut().take(count) {
            packet.set_aux(interface);
        }
        if count == packets.len() {
            return self.enqueue(node, packets);
        }
        if let Some(slot) = self.slots.get_mut(node) {
            slot.queue.extend(packets.drain_front(count));
            self.pending |= 1 << node;
        }
    }

    /// The next interface with packets to leave, and those packets. Put the emptied vector back with
    /// [`Graph::recycle`].
    #[inline]
    pub fn next_leaving(&mut self) -> Option<(u32, Vector)> {
        let interface = self.leaving.pop()?;
        let vector = std::mem::take(self.outputs.get_mut(interface as usize)?);
        Some((interface, vector))
    }

    /// Gives the storage of an emptied output back.
    #[inline]
    pub fn recycle(&mut self, interface: u32, vector: Vector) {
        debug_assert!(vector.is_empty());
        if let Some(place) = self.outputs.get_mut(interface as usize)
            && place.is_empty()
        {
            *place = vector;
        }
    }
}

/// The interface that all packets leave by, when it is one.
#[inline]
pub(super) fn one_output(packets: &[Pkt]) -> Option<u32> {
    let first = packets.first()?.aux();
    let differ = packets
        .iter()
        .fold(0, |differ, packet| differ | (packet.aux() ^ first));
    (differ == 0).then_some(first)
}
