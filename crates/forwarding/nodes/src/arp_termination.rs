//! Who has an address, answered by the bridge domain itself: ARP termination, as VPP and vppcfg have it.
//!
//! A question to everybody (an ARP request, RFC 826; a neighbour solicitation, RFC 4861 section 7.2) for an address of a
//! domain's list need not be flooded: it is answered on the station's behalf, or goes to that station alone. All
//! others are flooded as ever. Nothing is learned for that list from what frames say.
//!
//! No node: the bridge asks here when it would flood a frame to a group.

use std::net::IpAddr;

use weir_buf::{Flags, Pkt};
use weir_wire::build::ARP_FRAME;
use weir_wire::ipv6::{self, ALL_NODES, UNSPECIFIED};
use weir_wire::nd::{self, Claim, Message};
use weir_wire::{ArpPacket, EtherType, EthernetHeader, Ipv6Header, MacAddr};
use zerocopy::IntoBytes;

/// Addresses of stations, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    four: Box<[(u32, MacAddr)]>,
    six: Box<[([u8; 16], MacAddr)]>,
    /// Whether questions are answered here.
    pub answers: bool,
    /// Whether they go to the station alone; goes before answering.
    pub forwards: bool,
}

impl Hosts {
    /// A list, which is asked nothing as long as it neither answers nor forwards.
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = (IpAddr, MacAddr)>) -> Hosts {
        let (mut four, mut six) = (Vec::new(), Vec::new());
        for (address, mac) in hosts {
            match address {
                IpAddr::V4(address) => four.push((u32::from(address), mac)),
                IpAddr::V6(address) => six.push((address.octets(), mac)),
            }
        }
        four.sort_unstable_by_key(|host| host.0);
        six.sort_unstable_by_key(|host| host.0);
        Hosts {
            four: four.into(),
            six: six.into(),
            answers: false,
            forwards: false,
        }
    }

    /// How many addresses there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.four.len() + self.six.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The station that a frame to a group asks for, if it is one of the list and not who asks.
    #[must_use]
    pub(crate) fn asked_for(&self, packet: &Pkt) -> Option<Question> {
        if !(self.answers || self.forwards) || packet.is_chained() {
            return None;
        }
        let (ethernet, l3) = EthernetHeader::read(packet.data())?;
        let (mac, question) = match ethernet.ethertype() {
            EtherType::ARP => {
                let (arp, _) = ArpPacket::read(l3).filter(|(arp, _)| {
                    arp.is_ethernet_ipv4() && arp.operation() == ArpPacket::REQUEST
                })?;
                let place = self
                    .four
                    .binary_search_by_key(&arp.target(), |host| host.0)
                    .ok()?;
                // Who says his own address asks for nobody.
                let asks = arp.sender() != arp.target() && arp.sender_mac == ethernet.source;
                let mac = self.four.get(place).filter(|_| asks)?.1;
                (
                    mac,
                    Question {
                        mac,
                        asker: arp.sender_mac,
                        what: What::Four {
                            sender: arp.sender(),
                            target: arp.target(),
                        },
                    },
                )
            }
            EtherType::IPV6 => {
                let (header, message) = Ipv6Header::read(l3)?;
                let message = message.get(..usize::from(header.payload_len()))?;
                let Ok(Message::NeighborSolicitation { target, mac: asker }) =
                    nd::read(header, message)
                else {
                    return None;
                };
                let place = self.six.binary_search_by_key(&target, |host| host.0).ok()?;
                let mac = self.six.get(place)?.1;
                let asker = asker.unwrap_or(ethernet.source);
                (
                    mac,
                    Question {
                        mac,
                        asker,
                        what: What::Six {
                            sender: header.source,
                            target,
                        },
                    },
                )
            }
            _ => return None,
        };
        (mac != question.asker && mac != ethernet.source).then_some(question)
    }
}

/// A question for a station of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// The station.
    pub(crate) mac: MacAddr,
    asker: MacAddr,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Four { sender: u32, target: u32 },
    Six { sender: [u8; 16], target: [u8; 16] },
}

/// Bytes of a neighbour advertisement with its option, in a frame.
const ADVERTISEMENT: usize = EthernetHeader::LEN + 40 + 8 + 16 + 8;

impl Question {
    /// The question goes to the station alone.
    pub(crate) fn address(&self, packet: &mut Pkt) {
        if let Some(to) = packet.data_mut().first_chunk_mut() {
            *to = self.mac.0;
        }
        packet.clear_flags(Flags::BROADCAST | Flags::MULTICAST);
    }

    /// The question becomes the station's answer; `None` when there is no room for it, and it is as it was.
    pub(crate) fn answer(&self, packet: &mut Pkt) -> Option<()> {
        match self.what {
            What::Four { sender, target } => {
                let reply = ArpPacket::new(ArpPacket::REPLY, self.mac, target, self.asker, sender);
                let ethernet = EthernetHeader::new(self.asker, self.mac, EtherType::ARP);
                let (front, rest) = packet
                    .data_mut()
                    .get_mut(..ARP_FRAME)?
                    .split_at_mut_checked(EthernetHeader::LEN)?;
                front.copy_from_slice(ethernet.as_bytes());
                rest.copy_from_slice(reply.as_bytes());
                packet.clear_flags(Flags::BROADCAST | Flags::MULTICAST);
            }
            What::Six { sender, target } => {
                let everybody = sender == UNSPECIFIED;
                let to = if everybody {
                    ipv6::multicast_mac(&ALL_NODES)
                } else {
                    self.asker
                };
                if !packet.set_len(ADVERTISEMENT) {
                    return None;
                }
                let (front, rest) = packet
                    .data_mut()
                    .split_at_mut_checked(EthernetHeader::LEN)?;
                front
                    .copy_from_slice(EthernetHeader::new(to, self.mac, EtherType::IPV6).as_bytes());
                // RFC 4861 section 7.2.8: who speaks for another does not override what that one says.
                let claim = Claim {
                    router: false,
                    solicited: true,
                    override_known: false,
                };
                nd::neighbor_advertisement(rest, target, sender, target, self.mac, claim)?;
                packet.clear_flags(Flags::BROADCAST | Flags::MULTICAST);
                if everybody {
                    packet.set_flags(Flags::MULTICAST);
                }
            }
        }
        Some(())
    }
}
