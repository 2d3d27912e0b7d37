//! nd-input: answers for own addresses and passes on what neighbours say (RFC 4861).
//!
//! The control side decides what to believe; this node refuses what can never be true and keeps a storm of
//! the same news to one event a second, of hosts that ask for routers to ten. A neighbour is believed about
//! addresses of the interface's subnets only, but answered for any sender. Another host with an address of ours, tentative ones included, is reported
//! to the control side (RFC 4862 section 5.4). Redirects and other routers' advertisements are not for a
//! router.

use std::net::Ipv6Addr;

use weir_buf::{Flags, Pkt};
use weir_graph::{Cx, DropReason, Next, Node, NodeSpec, Outcome, Verdict};
use weir_port::interface::Interface;
use weir_wire::ipv6::{self, ALL_NODES, UNSPECIFIED};
use weir_wire::nd::{self, Claim, Message, NdError};
use weir_wire::{EtherType, EthernetHeader, Ipv6Header, MacAddr};
use zerocopy::IntoBytes;

use crate::frame::ETHERNET;
use crate::icmp6_error::REDIRECT;
use crate::ip6_glean::NEIGHBOR_FRAME;
use crate::recent::{self, Recent};
use crate::{Event, Tables};

const LINUX_PUNT: Next = Next(0);

pub(crate) struct NdInput {
    recent: Recent,
}

impl Default for NdInput {
    fn default() -> NdInput {
        NdInput {
            recent: Recent::new(1_000_000_000),
        }
    }
}

impl Node<Tables> for NdInput {
    const SPEC: NodeSpec = NodeSpec {
        name: "nd-input",
        about: "Answers neighbour solicitations for own addresses and learns from what neighbours say.",
        nexts: &["linux-punt"],
        reasons: &[
            DropReason::NdTruncated,
            DropReason::NdHopLimit,
            DropReason::IcmpBadChecksum,
            DropReason::NdMalformed,
            DropReason::NdForeign,
            DropReason::NdMartian,
            DropReason::NdRedirect,
            DropReason::NdRouter,
        ],
    };

    #[inline(always)]
    fn process(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        packets: &mut [Pkt],
        verdicts: &mut [Verdict],
    ) -> Outcome {
        for (packet, verdict) in packets.iter_mut().zip(verdicts) {
            *verdict = self.take(cx, packet).unwrap_or_else(Verdict::drop);
        }
        Outcome::Each
    }
}

/// Who speaks.
struct Sender {
    /// Unspecified of who asks whether an address is free.
    address: [u8; 16],
    mac: MacAddr,
}

/// The kind of an event, so that a storm of it is reported once.
#[derive(Clone, Copy)]
enum News {
    Heard,
    Duplicate,
    RouterWanted,
}

impl NdInput {
    fn take(&mut self, cx: &mut Cx<'_, Tables>, packet: &mut Pkt) -> Result<Verdict, DropReason> {
        let Some(interface) = cx.world.interface(packet.interface()) else {
            return Err(DropReason::NdForeign);
        };
        if packet.flags().any(Flags::TABLED) {
            // A label path is no link, however many hops the packet has left (RFC 4861 section 3.1).
            return Err(DropReason::NdHopLimit);
        }
        if packet.is_chained() {
            // Longer than anything that is said here, and RFC 6980 wants it in one piece.
            return Err(DropReason::NdTruncated);
        }
        let Some((ethernet, _)) = EthernetHeader::read(packet.data()) else {
            return Err(DropReason::NdTruncated);
        };
        let Some((header, message)) = Ipv6Header::read(packet.l3()) else {
            return Err(DropReason::NdTruncated);
        };
        if message.first() == Some(&REDIRECT) {
            return Err(DropReason::NdRedirect);
        }
        let mut sender = Sender {
            address: header.source,
            mac: ethernet.source,
        };
        match nd::read(header, message).map_err(refusal)? {
            Message::RouterAdvertisement { .. } if interface.host.is_some() => {
                Ok(Verdict::to(LINUX_PUNT))
            }
            Message::RouterAdvertisement { .. } => Err(DropReason::NdRouter),
            Message::RouterSolicitation { mac } => {
                sender.mac = mac.unwrap_or(sender.mac);
                self.router_wanted(cx, interface, &sender, mac.is_some())
            }
            Message::NeighborSolicitation { target, mac } => {
                sender.mac = mac.unwrap_or(sender.mac);
                self.solicited(cx, interface, &sender, mac.is_some(), target)?;
                answer(interface, packet, &sender, target);
                Ok(Verdict::OUT)
            }
            Message::NeighborAdvertisement {
                target,
                mac,
                solicited,
                override_known,
                ..
            } => {
                sender.mac = mac.unwrap_or(sender.mac);
                // An advertisement without a MAC address confirms one, and replaces none.
                self.advertised(
                    cx,
                    interface,
                    &sender,
                    target,
                    solicited,
                    override_known && mac.is_some(),
                )
            }
        }
    }

    /// Somebody asks for routers.
    fn router_wanted(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        sender: &Sender,
        says_mac: bool,
    ) -> Result<Verdict, DropReason> {
        if !interface.advertises {
            if interface.host.is_some() {
                return Ok(Verdict::to(LINUX_PUNT));
            }
            return Err(DropReason::NdRouter);
        }
        check_sender(interface, sender)?;
        if says_mac {
            self.believe(cx, interface, sender.address, sender.mac, true, true);
        }
        // The answer to one is to all who asked before it, and may have been given when the next one asks: reported ten times a
        // second.
        let tenth = u128::from(cx.now / 100_000_000);
        if self.is_news(cx, interface, News::RouterWanted, tenth, MacAddr::ZERO, 0) {
            cx.event(Event::RouterWanted {
                interface: interface.index,
            });
        }
        Ok(Verdict::CONSUME)
    }

    /// Somebody asks for an address; no error when it has to be answered.
    fn solicited(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        sender: &Sender,
        says_mac: bool,
        target: [u8; 16],
    ) -> Result<(), DropReason> {
        check_sender(interface, sender)?;
        let address = u128::from_be_bytes(target);
        let ours = interface.owns6(address) || interface.is_anycast6(address);
        if sender.address == UNSPECIFIED {
            // Two want the same address at the same time (RFC 4862 section 5.4.3).
            if interface.tentative6.contains(&address) {
                self.tell_duplicate(cx, interface, target, sender.mac);
            }
        } else {
            self.check_address(cx, interface, sender.address, sender.mac)?;
            if says_mac {
                self.believe(cx, interface, sender.address, sender.mac, ours, true);
            }
        }
        if ours {
            Ok(())
        } else {
            Err(DropReason::NdForeign)
        }
    }

    /// Somebody says that it has an address.
    fn advertised(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        sender: &Sender,
        target: [u8; 16],
        solicited: bool,
        replaces: bool,
    ) -> Result<Verdict, DropReason> {
        check_sender(interface, sender)?;
        self.check_address(cx, interface, target, sender.mac)?;
        if !interface.is_near(Ipv6Addr::from(target).into()) {
            return Err(DropReason::NdForeign);
        }
        self.believe(cx, interface, target, sender.mac, solicited, replaces);
        // Linux has neighbours of its own; solicitations are answered here alone.
        Ok(if interface.host.is_some() {
            Verdict::to(LINUX_PUNT)
        } else {
            Verdict::CONSUME
        })
    }

    /// Refuses an address of our own that somebody else says is his, and tells of it.
    fn check_address(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        address: [u8; 16],
        mac: MacAddr,
    ) -> Result<(), DropReason> {
        let number = u128::from_be_bytes(address);
        if interface.owns6(number) || interface.tentative6.contains(&number) {
            self.tell_duplicate(cx, interface, address, mac);
            return Err(DropReason::NdMartian);
        }
        Ok(())
    }

    fn tell_duplicate(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        address: [u8; 16],
        mac: MacAddr,
    ) {
        if self.is_news(
            cx,
            interface,
            News::Duplicate,
            u128::from_be_bytes(address),
            mac,
            0,
        ) {
            cx.event(Event::Duplicate {
                interface: interface.index,
                address: Ipv6Addr::from(address).into(),
                mac,
            });
        }
    }

    /// Tells the control side where a neighbour is, if it can be a neighbour.
    fn believe(
        &mut self,
        cx: &mut Cx<'_, Tables>,
        interface: &Interface,
        address: [u8; 16],
        mac: MacAddr,
        to_us: bool,
        replaces: bool,
    ) {
        let address = Ipv6Addr::from(address);
        let flags = u64::from(to_us) | u64::from(replaces) << 1;
        if !address.is_unspecified()
            && interface.is_near(address.into())
            && self.is_news(cx, interface, News::Heard, address.into(), mac, flags)
        {
            let to_us = to_us && interface.covers(address.into());
            cx.event(Event::Heard {
                interface: interface.index,
                address: address.into(),
                mac,
                to_us,
                replaces,
            });
        }
    }

    fn is_news(
        &mut self,
        cx: &Cx<'_, Tables>,
        interface: &Interface,
        news: News,
        address: u128,
        mac: MacAddr,
        flags: u64,
    ) -> bool {
        let beside = u64::from(interface.index) << 8 | (news as u64) << 2 | flags;
        self.recent.is_new(
            recent::mix(address, beside) ^ recent::mix(mac.to_u64().into(), 0),
            cx.now,
        )
    }
}

/// A hardware address that cannot be a neighbour's: a group's, none, our own (a probe of ours that came back).
fn check_sender(interface: &Interface, sender: &Sender) -> Result<(), DropReason> {
    if sender.mac.is_unicast() && sender.mac != interface.mac {
        Ok(())
    } else {
        Err(DropReason::NdMartian)
    }
}

fn refusal(error: NdError) -> DropReason {
    match error {
        NdError::HopLimit(_) => DropReason::NdHopLimit,
        NdError::Truncated => DropReason::NdTruncated,
        NdError::Checksum => DropReason::IcmpBadChecksum,
        NdError::Other
        | NdError::Code(_)
        | NdError::Option
        | NdError::Target
        | NdError::Addresses => DropReason::NdMalformed,
    }
}

/// Turns a question into its answer, in place (RFC 4861 section 7.2.4); who asks whether the address is free is
/// reported together with all others.
fn answer(interface: &Interface, packet: &mut Pkt, asker: &Sender, target: [u8; 16]) {
    let everybody = asker.address == UNSPECIFIED;
    let mac = if everybody {
        ipv6::multicast_mac(&ALL_NODES)
    } else {
        asker.mac
    };
    let _ = packet.set_len(NEIGHBOR_FRAME);
    if let Some((ethernet, l3)) = packet.data_mut().split_at_mut_checked(ETHERNET) {
        ethernet
            .copy_from_slice(EthernetHeader::new(mac, interface.mac, EtherType::IPV6).as_bytes());
        let claim = Claim {
            router: true,
            solicited: true,
            // An anycast address is other routers' too (RFC 4861 section 7.2.7).
            override_known: !interface.is_anycast6(u128::from_be_bytes(target)),
        };
        nd::neighbor_advertisement(l3, target, asker.address, target, interface.mac, claim);
    }
    packet.set_aux(interface.index);
    packet.clear_flags(Flags::BROADCAST | Flags::MULTICAST);
    packet.set_flags(Flags::ORIGINATED);
    if everybody {
        packet.set_flags(Flags::MULTICAST);
    }
}
