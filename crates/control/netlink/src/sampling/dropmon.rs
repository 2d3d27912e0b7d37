//! Alerts of dropped packets (`include/uapi/linux/net_dropmon.h`).

use super::{Message, NESTED};

/// The generic family's name.
pub const FAMILY: &str = "NET_DM";
/// Its multicast group.
pub const GROUP: &str = "events";
/// `NET_DM_CMD_PACKET_ALERT`.
const COMMAND: u8 = 5;
/// As VPP sends it; the daemon does not look.
const VERSION: u8 = 0;
/// `NET_DM_ORIGIN_SW`.
const SOFTWARE: u16 = 0;
/// The longest name, without its NUL.
const MOST_NAME: usize = 63;

/// `NET_DM_ATTR_…`.
mod attribute {
    pub(super) const IN_PORT: u16 = 4;
    pub(super) const PROTO: u16 = 6;
    pub(super) const PAYLOAD: u16 = 7;
    pub(super) const TRUNC_LEN: u16 = 9;
    pub(super) const ORIG_LEN: u16 = 10;
    pub(super) const ORIGIN: u16 = 14;
    pub(super) const HW_TRAP_GROUP_NAME: u16 = 15;
    pub(super) const HW_TRAP_NAME: u16 = 16;
    pub(super) const REASON: u16 = 23;
    /// Inside of `IN_PORT`.
    pub(super) const PORT_NETDEV_IFINDEX: u16 = 0;
}

/// A dropped packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert<'a> {
    /// Where it came in; 0 = unknown, and not said.
    pub input: u32,
    /// Among which others the trap is.
    pub group: &'a str,
    /// The trap that took it: why it was dropped.
    pub trap: &'a str,
    /// Why, in the kernel's words, where it has any.
    pub reason: Option<&'a str>,
    /// Its length, of which `data` may be the beginning.
    pub original_length: u32,
    /// Its EtherType.
    pub protocol: u16,
    /// Its first bytes.
    pub data: &'a [u8],
}

/// Writes the message. `family` is the number that the kernel gave the family.
pub fn write(bytes: &mut Vec<u8>, family: u16, port: u32, sequence: u32, alert: &Alert<'_>) {
    let length = u32::try_from(alert.data.len()).unwrap_or(u32::MAX);
    let mut message = Message::begin(bytes, family, sequence, port)
        .generic(COMMAND, VERSION)
        .put_u16(attribute::ORIGIN, SOFTWARE)
        .put_text(attribute::HW_TRAP_GROUP_NAME, alert.group, MOST_NAME)
        .put_text(attribute::HW_TRAP_NAME, alert.trap, MOST_NAME)
        .put_u32(attribute::ORIG_LEN, alert.original_length)
        .put_u32(attribute::TRUNC_LEN, length)
        .put_u16(attribute::PROTO, alert.protocol);
    if alert.input != 0 {
        let [a, b, c, d] = alert.input.to_ne_bytes();
        let [l, m] = 8_u16.to_ne_bytes();
        let [k, n] = attribute::PORT_NETDEV_IFINDEX.to_ne_bytes();
        message = message.put(attribute::IN_PORT | NESTED, &[l, m, k, n, a, b, c, d]);
    }
    if let Some(reason) = alert.reason {
        message = message.put_text(attribute::REASON, reason, MOST_NAME);
    }
    message.put(attribute::PAYLOAD, alert.data).end();
}
