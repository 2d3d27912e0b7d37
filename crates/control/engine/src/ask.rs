//! Frames in which the control side asks: who has an address (ARP, RFC 826; neighbour solicitation,
//! RFC 4861), whether a neighbour is still there, and whether an own address is free (RFC 4862).
//!
//! Built in a buffer of the pool and handed to a worker, which sends it like any other packet.

use std::net::{IpAddr, Ipv6Addr};

use weir_buf::{Flags, Pkt};
use weir_wire::{EtherType, EthernetHeader, MacAddr, build, ipv6, nd};

use crate::control::Control;
use crate::neighbors::Place;
use crate::worker::Command;

/// Room for a neighbour solicitation with its option: IPv6 header, message, target, link-layer address.
const SOLICITATION: usize = 40 + 8 + 16 + 8;

impl Control {
    /// Asks for a neighbour: itself, at the MAC address that it had, or everybody.
    pub(crate) fn ask(&mut self, place: Place, known: Option<MacAddr>) {
        let Some(interface) = self
            .tables
            .interface(place.interface)
            .filter(|interface| interface.can_send)
        else {
            return;
        };
        let mac = interface.mac;
        let packet = match place.address {
            IpAddr::V4(address) => {
                let source = interface.source_for(address.into());
                source.and_then(|source| self.arp_request(mac, source, address.into(), known))
            }
            IpAddr::V6(address) => {
                let source = interface.source_for6(address.into()).map(u128::to_be_bytes);
                let target = address.octets();
                source.and_then(|source| match known {
                    Some(known) => self.solicitation(mac, known, |packet| {
                        nd::neighbor_probe(packet, source, mac, target)
                    }),
                    None => self.to_group(mac, &target, |packet| {
                        nd::neighbor_solicitation(packet, source, mac, target)
                    }),
                })
            }
        };
        self.send(place.interface, packet);
    }

    /// Asks whether an own address is free.
    pub(crate) fn ask_if_free(&mut self, interface: u32, address: Ipv6Addr) {
        let Some(mac) = self
            .tables
            .interface(interface)
            .filter(|it| it.can_send)
            .map(|it| it.mac)
        else {
            return;
        };
        let target = address.octets();
        let packet = self.to_group(mac, &target, |packet| {
            nd::duplicate_solicitation(packet, target)
        });
        self.send(interface, packet);
    }

    fn arp_request(
        &self,
        mac: MacAddr,
        source: u32,
        wanted: u32,
        known: Option<MacAddr>,
    ) -> Option<Pkt> {
        let mut packet = self.memory.any().alloc()?;
        if !packet.set_len(build::ARP_FRAME)
            || !build::arp_request(packet.data_mut(), mac, source, wanted)
        {
            return None;
        }
        match known {
            Some(known) => packet.data_mut().get_mut(..6)?.copy_from_slice(&known.0),
            None => packet.set_flags(Flags::BROADCAST),
        }
        Some(packet)
    }

    /// A solicitation to everybody whose address could be `target` (RFC 4291 section 2.7.1).
    fn to_group(
        &self,
        mac: MacAddr,
        target: &[u8; 16],
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<Pkt> {
        let group = ipv6::multicast_mac(&ipv6::solicited_node(target));
        let mut packet = self.solicitation(mac, group, write)?;
        packet.set_flags(Flags::MULTICAST);
        Some(packet)
    }

    fn solicitation(
        &self,
        mac: MacAddr,
        destination: MacAddr,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Option<Pkt> {
        let mut packet = self.memory.any().alloc()?;
        if !packet.set_len(EthernetHeader::LEN + SOLICITATION) {
            return None;
        }
        let l3 = build::ethernet_blank(packet.data_mut(), EtherType::IPV6)?;
        let length = write(l3)?;
        let (to, from) = packet.data_mut().get_mut(..12)?.split_at_mut(6);
        to.copy_from_slice(&destination.0);
        from.copy_from_slice(&mac.0);
        packet
            .set_len(EthernetHeader::LEN + length)
            .then_some(packet)
    }

    pub(crate) fn send(&mut self, interface: u32, packet: Option<Pkt>) {
        let (Some(mut packet), Some(worker)) = (packet, self.workers.first_mut()) else {
            return;
        };
        packet.set_flags(Flags::ORIGINATED);
        packet.set_interface(interface);
        packet.set_aux(interface);
        worker.tell(Command::Send(packet));
    }
}
