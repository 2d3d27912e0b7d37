//! Links as the kernel describes them: decoding of `RTM_NEWLINK`, listing, looking up.
//!
//! The decoder takes the attributes it knows and skips the others, so that a newer kernel with
//! more of them, or with longer ones, reads the same. A missing attribute leaves the default.
//! Layouts: `include/uapi/linux/if_link.h` and `rtnetlink.h` of Linux.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};

use super::Route;
use crate::MacAddress;
use crate::error::{Error, Result};
use crate::message::{Attributes, Frame, text, u32_at, u64_at};

/// `RTM_NEWLINK`: a link exists or changed.
pub(crate) const RTM_NEWLINK: u16 = 16;
/// `RTM_DELLINK`: a link is gone.
pub(crate) const RTM_DELLINK: u16 = 17;

const LINK_HEADER: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_PROMISCUITY: u16 = 30;
const IFLA_IFALIAS: u16 = 20;
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_CARRIER_DOWN_COUNT: u16 = 48;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VRF_TABLE: u16 = 1;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_PROTOCOL: u16 = 5;
const IFLA_BOND_SLAVE_STATE: u16 = 1;
const IFLA_BOND_SLAVE_MII_STATUS: u16 = 2;
/// `linux/if.h`; the libc crate has neither.
const IFF_LOWER_UP: i32 = 1 << 16;
const IFF_DORMANT: i32 = 1 << 17;

/// RFC 2863 operational state, as the kernel keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OperState {
    /// The driver does not say (loopback, for one).
    #[default]
    Unknown,
    /// Some part is missing (hardware absent).
    NotPresent,
    /// No carrier, or set down.
    Down,
    /// The layer below is down.
    LowerLayerDown,
    /// In a test mode.
    Testing,
    /// Waits for an event, such as 802.1X.
    Dormant,
    /// Ready to pass packets.
    Up,
    /// A value this crate does not know.
    Other(u8),
}

impl From<u8> for OperState {
    fn from(value: u8) -> Self {
        match value {
            0 => OperState::Unknown,
            1 => OperState::NotPresent,
            2 => OperState::Down,
            3 => OperState::LowerLayerDown,
            4 => OperState::Testing,
            5 => OperState::Dormant,
            6 => OperState::Up,
            other => OperState::Other(other),
        }
    }
}

/// The kernel's own 64-bit counters of a link (`struct rtnl_link_stats64`, its first part).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    missing_docs,
    reason = "the names are the kernel's; if_link.h says what each counts"
)]
pub struct LinkStatistics {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub multicast: u64,
    pub collisions: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
    pub tx_aborted_errors: u64,
    pub tx_carrier_errors: u64,
    pub tx_fifo_errors: u64,
    pub tx_heartbeat_errors: u64,
    pub tx_window_errors: u64,
}

impl LinkStatistics {
    fn decode(bytes: &[u8]) -> Self {
        let word = |position: usize| u64_at(bytes, position * 8).unwrap_or(0);
        LinkStatistics {
            rx_packets: word(0),
            tx_packets: word(1),
            rx_bytes: word(2),
            tx_bytes: word(3),
            rx_errors: word(4),
            tx_errors: word(5),
            rx_dropped: word(6),
            tx_dropped: word(7),
            multicast: word(8),
            collisions: word(9),
            rx_length_errors: word(10),
            rx_over_errors: word(11),
            rx_crc_errors: word(12),
            rx_frame_errors: word(13),
            rx_fifo_errors: word(14),
            rx_missed_errors: word(15),
            tx_aborted_errors: word(16),
            tx_carrier_errors: word(17),
            tx_fifo_errors: word(18),
            tx_heartbeat_errors: word(19),
            tx_window_errors: word(20),
        }
    }
}

/// What a VLAN device adds to the frames of the link below it (`peer_index`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VlanTag {
    /// The VLAN.
    pub id: u16,
    /// The tag's EtherType: 0x8100 or 0x88a8.
    pub protocol: u16,
}

/// One network interface of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The kernel's number of the interface (ifindex); unique within its namespace.
    pub index: u32,
    /// The name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// The Ethernet address, when the link has one of six bytes.
    pub mac: Option<MacAddress>,
    /// The largest packet above the Ethernet header, in bytes.
    pub mtu: u32,
    /// The administrator wants it up (`IFF_UP`).
    pub up: bool,
    /// It can pass packets now (`IFF_RUNNING`: up, and with carrier). The kernel sets it up to a second after
    /// `carrier`.
    pub running: bool,
    /// The driver reports a carrier (`IFF_LOWER_UP`).
    pub carrier: bool,
    /// It waits for an event, for example 802.1X (`IFF_DORMANT`).
    pub dormant: bool,
    /// It is a loopback (`IFF_LOOPBACK`).
    pub loopback: bool,
    /// How many users hold it promiscuous; 0 is not promiscuous.
    pub promiscuity: u32,
    /// RFC 2863 operational state.
    pub oper_state: OperState,
    /// Receive queues for which the device was made.
    pub rx_queues: u32,
    /// Transmit queues for which the device was made.
    pub tx_queues: u32,
    /// Length of the transmit queue in packets.
    pub tx_queue_length: u32,
    /// The driver's kind (`veth`, `bridge`, `tun`, ...); none for hardware.
    pub kind: Option<String>,
    /// The index of the link below or of the veth peer, in the namespace `link_netnsid`.
    pub peer_index: Option<u32>,
    /// The number which this namespace gives to the namespace of `peer_index`.
    pub link_netnsid: Option<i32>,
    /// The index of the bridge, bond or VRF to which it belongs.
    pub controller: Option<u32>,
    /// The routing table of a VRF device.
    pub vrf_table: Option<u32>,
    /// The text that the administrator gave it (`ip link set alias`).
    pub alias: Option<String>,
    /// Of a VLAN device.
    pub vlan: Option<VlanTag>,
    /// Of a member of the kernel's bond: whether the bond sends by it. It is false for members in reserve, and for
    /// members that LACP did not select or that do not distribute.
    pub bond_active: Option<bool>,
    /// How often it has lost its carrier (Linux 4.16).
    pub carrier_losses: u32,
    /// The kernel's counters.
    pub statistics: LinkStatistics,
}

impl Link {
    /// Reads the payload of `RTM_NEWLINK` or `RTM_DELLINK`. `None`: too short, of a family other
    /// than unspecified (a bridge's view of its port), or without an index.
    pub(crate) fn decode(payload: &[u8]) -> Option<Link> {
        let header = payload.get(..LINK_HEADER)?;
        if Link::is_view_of_bridge(header) {
            return None;
        }
        let flags = u32_at(header, 8)?.cast_signed();
        let mut link = Link {
            index: u32_at(header, 4).filter(|index| *index != 0)?,
            up: flags & libc::IFF_UP != 0,
            running: flags & libc::IFF_RUNNING != 0,
            carrier: flags & IFF_LOWER_UP != 0,
            dormant: flags & IFF_DORMANT != 0,
            loopback: flags & libc::IFF_LOOPBACK != 0,
            ..Link::default()
        };
        for (kind, value) in Attributes::new(payload.get(LINK_HEADER..)?) {
            link.take(kind, value);
        }
        Some(link)
    }

    /// True for what a bridge says of its port: it sends the same message types with family
    /// AF_BRIDGE when a port joins or leaves it. Taken for links, these would report living links
    /// as removed.
    pub(crate) fn is_view_of_bridge(payload: &[u8]) -> bool {
        payload
            .first()
            .is_some_and(|family| i32::from(*family) != libc::AF_UNSPEC)
    }

    fn take(&mut self, kind: u16, value: &[u8]) {
        let number = || u32_at(value, 0);
        match kind {
            IFLA_ADDRESS => self.mac = value.try_into().ok(),
            IFLA_IFNAME => self.name = text(value),
            IFLA_MTU => self.mtu = number().unwrap_or(0),
            IFLA_LINK => self.peer_index = number(),
            IFLA_MASTER => self.controller = number(),
            IFLA_TXQLEN => self.tx_queue_length = number().unwrap_or(0),
            IFLA_IFALIAS => self.alias = Some(text(value)),
            IFLA_OPERSTATE => self.oper_state = value.first().copied().unwrap_or(0).into(),
            IFLA_STATS64 => self.statistics = LinkStatistics::decode(value),
            IFLA_PROMISCUITY => self.promiscuity = number().unwrap_or(0),
            IFLA_NUM_TX_QUEUES => self.tx_queues = number().unwrap_or(0),
            IFLA_NUM_RX_QUEUES => self.rx_queues = number().unwrap_or(0),
            IFLA_LINK_NETNSID => self.link_netnsid = number().map(u32::cast_signed),
            IFLA_CARRIER_DOWN_COUNT => self.carrier_losses = number().unwrap_or(0),
            IFLA_LINKINFO => self.take_info(value),
            _ => (),
        }
    }

    /// What the drivers say: of the link itself, and of it as a member.
    fn take_info(&mut self, value: &[u8]) {
        let find = |wanted: u16| {
            Attributes::new(value)
                .find(|(kind, _)| *kind == wanted)
                .map(|(_, value)| value)
        };
        self.kind = find(IFLA_INFO_KIND).map(text);
        if let (Some("vrf"), Some(data)) = (self.kind.as_deref(), find(IFLA_INFO_DATA)) {
            let mut all = Attributes::new(data);
            let table = all.find(|(kind, _)| *kind == IFLA_VRF_TABLE);
            self.vrf_table = table.and_then(|(_, value)| u32_at(value, 0));
        }
        if self.kind.as_deref() == Some("vlan")
            && let Some(data) = find(IFLA_INFO_DATA)
        {
            let mut tag = VlanTag {
                id: 0,
                protocol: 0x8100,
            };
            for (kind, value) in Attributes::new(data) {
                match (kind, value) {
                    (IFLA_VLAN_ID, [low, high, ..]) => tag.id = u16::from_ne_bytes([*low, *high]),
                    (IFLA_VLAN_PROTOCOL, [high, low, ..]) => {
                        tag.protocol = u16::from_be_bytes([*high, *low]);
                    }
                    _ => (),
                }
            }
            self.vlan = Some(tag);
        }
        if find(IFLA_INFO_SLAVE_KIND).map(text).as_deref() == Some("bond")
            && let Some(data) = find(IFLA_INFO_SLAVE_DATA)
        {
            // Both are 0 when all is well: the state is active, the MII status is up.
            let is_zero = |wanted: u16| {
                Attributes::new(data)
                    .find(|(kind, _)| *kind == wanted)
                    .is_none_or(|(_, value)| value.first().is_none_or(|byte| *byte == 0))
            };
            self.bond_active =
                Some(is_zero(IFLA_BOND_SLAVE_STATE) && is_zero(IFLA_BOND_SLAVE_MII_STATUS));
        }
    }
}

fn decode_frame(frame: &Frame<'_>) -> Option<Link> {
    if frame.kind == RTM_NEWLINK {
        Link::decode(frame.payload)
    } else {
        None
    }
}

impl Route {
    /// All links of the namespace, in the kernel's order.
    pub fn links(&mut self) -> Result<Vec<Link>> {
        let question = RouteNetlinkMessage::GetLink(LinkMessage::default());
        self.dump("list links", &question, decode_frame)
    }

    /// The link of this name.
    pub fn link_by_name(&mut self, name: &str) -> Result<Link> {
        let asked = format!("find link {name}");
        let mut question = LinkMessage::default();
        question
            .attributes
            .push(LinkAttribute::IfName(valid_name(&asked, name)?.to_owned()));
        self.one_link(&asked, question)
    }

    /// The link of this index.
    pub fn link_by_index(&mut self, index: u32) -> Result<Link> {
        let mut question = LinkMessage::default();
        question.header.index = index;
        self.one_link(&format!("find link number {index}"), question)
    }

    fn one_link(&mut self, asked: &str, question: LinkMessage) -> Result<Link> {
        let mut found = None;
        self.request(
            asked,
            &RouteNetlinkMessage::GetLink(question),
            0,
            &mut |frame| {
                found = decode_frame(frame);
            },
        )?;
        found.ok_or_else(|| Error::malformed(asked, "no link in the answer"))
    }
}

/// A name the kernel accepts for an interface: 1 to 15 bytes, no slash, colon or white space.
pub(crate) fn valid_name<'a>(asked: &str, name: &'a str) -> Result<&'a str> {
    let length_fits = (1..libc::IFNAMSIZ).contains(&name.len());
    let bad = |character: char| {
        character == '/' || character == ':' || character == '\0' || character.is_whitespace()
    };
    if !length_fits || name == "." || name == ".." || name.contains(bad) {
        let why = format!(
            "{name:?} is no interface name: 1 to 15 bytes without slash, colon or white space"
        );
        return Err(Error::invalid(asked, why));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(value.len() + 4)
            .unwrap()
            .to_ne_bytes()
            .to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn hand_made() -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 0];
        bytes.extend_from_slice(&5u32.to_ne_bytes());
        let flags = libc::IFF_UP | libc::IFF_RUNNING | IFF_LOWER_UP;
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend(attribute(IFLA_IFNAME, b"a0\0"));
        bytes.extend(attribute(IFLA_MTU, &9000u32.to_ne_bytes()));
        bytes.extend(attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]));
        bytes.extend(attribute(IFLA_OPERSTATE, &[6]));
        bytes.extend(attribute(
            IFLA_LINKINFO | 0x8000,
            &attribute(IFLA_INFO_KIND, b"veth\0"),
        ));
        bytes.extend(attribute(IFLA_STATS64, &7u64.to_ne_bytes()));
        bytes.extend(attribute(999, b"from a newer kernel"));
        bytes
    }

    #[test]
    fn a_link_is_read() {
        let link = Link::decode(&hand_made()).unwrap();
        assert_eq!((link.index, link.name.as_str(), link.mtu), (5, "a0", 9000));
        assert_eq!(link.mac, Some([2, 0, 0, 0, 0, 9]));
        assert!(link.up && link.running && link.carrier && !link.dormant && !link.loopback);
        assert_eq!(link.oper_state, OperState::Up);
        assert_eq!(link.kind.as_deref(), Some("veth"));
        assert_eq!(
            link.statistics,
            LinkStatistics {
                rx_packets: 7,
                ..Default::default()
            }
        );
    }

    #[test]
    fn vlan_devices_and_members_of_bonds_are_read() {
        let with = |information: &[u8]| {
            let mut bytes = vec![0; 4];
            bytes.extend_from_slice(&5u32.to_ne_bytes());
            bytes.extend_from_slice(&[0; 8]);
            bytes.extend(attribute(IFLA_LINKINFO, information));
            Link::decode(&bytes).unwrap()
        };
        let data = [
            attribute(IFLA_VLAN_ID, &100u16.to_ne_bytes()),
            attribute(IFLA_VLAN_PROTOCOL, &[0x88, 0xa8]),
        ]
        .concat();
        let vlan = with(
            &[
                attribute(IFLA_INFO_KIND, b"vlan\0"),
                attribute(IFLA_INFO_DATA, &data),
            ]
            .concat(),
        );
        let tag = VlanTag {
            id: 100,
            protocol: 0x88a8,
        };
        assert_eq!((vlan.vlan, vlan.bond_active), (Some(tag), None));
        for (state, mii, expected) in [(0, 0, true), (1, 0, false), (0, 2, false)] {
            let data = [
                attribute(IFLA_BOND_SLAVE_STATE, &[state]),
                attribute(IFLA_BOND_SLAVE_MII_STATUS, &[mii]),
            ]
            .concat();
            let member = with(
                &[
                    attribute(IFLA_INFO_SLAVE_KIND, b"bond\0"),
                    attribute(IFLA_INFO_SLAVE_DATA, &data),
                ]
                .concat(),
            );
            assert_eq!((member.bond_active, member.vlan), (Some(expected), None));
        }
    }

    #[test]
    fn truncation_at_every_length_is_survived() {
        let bytes = hand_made();
        for length in 0..bytes.len() {
            assert_eq!(
                Link::decode(&bytes[..length]).is_some(),
                length >= LINK_HEADER
            );
        }
    }

    #[test]
    fn what_a_bridge_says_of_its_port_is_no_link() {
        let mut bytes = hand_made();
        bytes[0] = 7;
        assert_eq!(Link::decode(&bytes), None);
    }

    #[test]
    fn names_the_kernel_would_refuse_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a:b",
            "sixteen-bytes-xx",
            "nul\0",
        ] {
            assert!(valid_name("test", name).is_err(), "{name:?}");
        }
        assert!(valid_name("test", "fifteen-bytes-x").is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Link::decode(&bytes);
            let mut plausible = hand_made();
            plausible.truncate(LINK_HEADER);
            plausible.extend_from_slice(&bytes);
            prop_assert!(Link::decode(&plausible).is_some());
        }
    }
}
