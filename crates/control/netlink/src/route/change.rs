//! Making, altering and deleting links.
//!
//! Each function is one netlink request and one acknowledgement. Links are named by index, which
//! stays the same when a link is renamed and is not reused soon after it is deleted. `IFF_PROMISC`
//! set here counts as one user of the promiscuous mode, as `ip link set promisc` does.

use std::os::fd::AsRawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};

use super::Route;
use super::link::valid_name;
use crate::MacAddress;
use crate::error::Result;
use crate::netns::NetNs;

/// What a new veth pair shall be like; only the two names are needed.
#[derive(Debug, Clone, Default)]
pub struct VethPair<'a> {
    /// Name of the end that stays in the client's namespace.
    pub name: &'a str,
    /// Name of the other end.
    pub peer_name: &'a str,
    /// Where the other end goes; the client's namespace when none.
    pub peer_namespace: Option<&'a NetNs>,
    /// Receive and transmit queues of both ends; the kernel chooses when none, and then starts
    /// with one queue in use.
    pub queues: Option<u32>,
    /// Ethernet address of the near end; random when none.
    pub mac: Option<MacAddress>,
    /// Ethernet address of the other end; random when none.
    pub peer_mac: Option<MacAddress>,
    /// MTU of both ends; 1500 when none.
    pub mtu: Option<u32>,
}

impl VethPair<'_> {
    fn end(&self, name: &str, mac: Option<MacAddress>) -> LinkMessage {
        let mut end = LinkMessage::default();
        end.attributes.push(LinkAttribute::IfName(name.to_owned()));
        if let Some(mac) = mac {
            end.attributes.push(LinkAttribute::Address(mac.to_vec()));
        }
        if let Some(mtu) = self.mtu {
            end.attributes.push(LinkAttribute::Mtu(mtu));
        }
        if let Some(queues) = self.queues {
            end.attributes.push(LinkAttribute::NumRxQueues(queues));
            end.attributes.push(LinkAttribute::NumTxQueues(queues));
        }
        end
    }
}

impl Route {
    /// Makes a veth pair; both ends are down.
    pub fn create_veth(&mut self, pair: &VethPair<'_>) -> Result<()> {
        let asked = format!("create veth pair {} / {}", pair.name, pair.peer_name);
        valid_name(&asked, pair.name)?;
        valid_name(&asked, pair.peer_name)?;
        let mut peer = pair.end(pair.peer_name, pair.peer_mac);
        if let Some(namespace) = pair.peer_namespace {
            peer.attributes
                .push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        }
        let mut near = pair.end(pair.name, pair.mac);
        near.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.create(&asked, near)
    }

    /// Makes a bridge and returns its index; it is down.
    pub fn create_bridge(&mut self, name: &str) -> Result<u32> {
        let asked = format!("create bridge {name}");
        let mut bridge = LinkMessage::default();
        let name = valid_name(&asked, name)?;
        bridge
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        bridge
            .attributes
            .push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(
                InfoKind::Bridge,
            )]));
        self.create(&asked, bridge)?;
        Ok(self.link_by_name(name)?.index)
    }

    /// Makes a VRF device for a routing table and returns its index; it is up.
    pub fn create_vrf(&mut self, name: &str, table: u32) -> Result<u32> {
        let asked = format!("create VRF {name} of table {table}");
        let mut vrf = LinkMessage::default();
        let name = valid_name(&asked, name)?;
        vrf.attributes.push(LinkAttribute::IfName(name.to_owned()));
        vrf.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Vrf),
            LinkInfo::Data(InfoData::Vrf(vec![InfoVrf::TableId(table)])),
        ]));
        self.create(&asked, vrf)?;
        let index = self.link_by_name(name)?.index;
        self.set_up(index, true)?;
        Ok(index)
    }

    /// Sets the administrator's text of a link.
    pub fn set_alias(&mut self, index: u32, text: &str) -> Result<()> {
        let attribute = LinkAttribute::IfAlias(text.to_owned());
        self.alter(format!("set alias of link {index}"), index, attribute)
    }

    fn create(&mut self, asked: &str, link: LinkMessage) -> Result<()> {
        self.change(
            asked,
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    fn alter(&mut self, asked: String, index: u32, attribute: LinkAttribute) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes.push(attribute);
        self.change(&asked, RouteNetlinkMessage::SetLink(link), 0)
    }

    fn set_flag(&mut self, asked: String, index: u32, flag: LinkFlags, on: bool) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.change_mask = flag;
        link.header.flags = if on { flag } else { LinkFlags::empty() };
        self.change(&asked, RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Sets a link up or down.
    pub fn set_up(&mut self, index: u32, up: bool) -> Result<()> {
        let asked = format!("set link {index} {}", if up { "up" } else { "down" });
        self.set_flag(asked, index, LinkFlags::Up, up)
    }

    /// Gives a link a carrier or takes it away, where its driver lets others say so (TAP, dummy).
    pub fn set_carrier(&mut self, index: u32, on: bool) -> Result<()> {
        let asked = format!(
            "set carrier of link {index} {}",
            if on { "on" } else { "off" }
        );
        self.alter(asked, index, LinkAttribute::Carrier(u8::from(on)))
    }

    /// Switches the administrator's promiscuous mode of a link on or off.
    pub fn set_promiscuous(&mut self, index: u32, on: bool) -> Result<()> {
        let asked = format!("set promiscuous mode of link {index} to {on}");
        self.set_flag(asked, index, LinkFlags::Promisc, on)
    }

    /// Sets the MTU of a link.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<()> {
        self.alter(
            format!("set MTU {mtu} of link {index}"),
            index,
            LinkAttribute::Mtu(mtu),
        )
    }

    /// Sets the Ethernet address of a link.
    pub fn set_mac(&mut self, index: u32, mac: MacAddress) -> Result<()> {
        let attribute = LinkAttribute::Address(mac.to_vec());
        self.alter(
            format!("set MAC {mac:02x?} of link {index}"),
            index,
            attribute,
        )
    }

    /// Renames a link.
    pub fn rename(&mut self, index: u32, name: &str) -> Result<()> {
        let asked = format!("rename link {index} to {name}");
        let attribute = LinkAttribute::IfName(valid_name(&asked, name)?.to_owned());
        self.alter(asked, index, attribute)
    }

    /// Sets the length of the transmit queue of a link, in packets.
    pub fn set_tx_queue_length(&mut self, index: u32, packets: u32) -> Result<()> {
        let asked = format!("set transmit queue of link {index} to {packets} packets");
        self.alter(asked, index, LinkAttribute::TxQueueLen(packets))
    }

    /// Makes a link a port of a bridge, bond or VRF, or takes it out with `None`.
    pub fn set_controller(&mut self, index: u32, controller: Option<u32>) -> Result<()> {
        let asked = match controller {
            Some(controller) => format!("make link {index} a port of link {controller}"),
            None => format!("take link {index} out of its bridge"),
        };
        self.alter(
            asked,
            index,
            LinkAttribute::Controller(controller.unwrap_or(0)),
        )
    }

    /// Moves a link to another namespace, where it is down and may have another index.
    pub fn move_to(&mut self, index: u32, namespace: &NetNs) -> Result<()> {
        let attribute = LinkAttribute::NetNsFd(namespace.as_raw_fd());
        self.alter(
            format!("move link {index} to another namespace"),
            index,
            attribute,
        )
    }

    /// Deletes a link; with one end of a veth pair the other goes too.
    pub fn delete(&mut self, index: u32) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        self.change(
            &format!("delete link {index}"),
            RouteNetlinkMessage::DelLink(link),
            0,
        )
    }
}
