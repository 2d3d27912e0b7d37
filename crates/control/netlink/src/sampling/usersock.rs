//! Counters and the router's state for the daemon's module `vpp`.
//!
//! Sent from process to process (`NETLINK_USERSOCK`) to group 29. There is no generic header; the numbers
//! of the attributes are the module's own.

use super::Message;

/// The multicast group.
pub const GROUP: u32 = 29;
/// Message types.
const STATUS: u16 = 1;
const INTERFACE_COUNTERS: u16 = 2;

/// Numbers of attributes.
mod attribute {
    pub(super) const PORTNAME: u16 = 0;
    pub(super) const IFINDEX: u16 = 1;
    pub(super) const IFTYPE: u16 = 2;
    pub(super) const IFSPEED: u16 = 3;
    pub(super) const IFDIRECTION: u16 = 4;
    pub(super) const OPER_UP: u16 = 5;
    pub(super) const ADMIN_UP: u16 = 6;
    pub(super) const RX_OCTETS: u16 = 7;
    pub(super) const TX_OCTETS: u16 = 8;
    pub(super) const RX_PKTS: u16 = 9;
    pub(super) const TX_PKTS: u16 = 10;
    pub(super) const RX_BCASTS: u16 = 11;
    pub(super) const TX_BCASTS: u16 = 12;
    pub(super) const RX_MCASTS: u16 = 13;
    pub(super) const TX_MCASTS: u16 = 14;
    pub(super) const RX_DISCARDS: u16 = 15;
    pub(super) const TX_DISCARDS: u16 = 16;
    pub(super) const RX_ERRORS: u16 = 17;
    pub(super) const TX_ERRORS: u16 = 18;
    pub(super) const HW_ADDRESS: u16 = 19;
    pub(super) const UPTIME_S: u16 = 20;
    pub(super) const OSINDEX: u16 = 21;
    pub(super) const DROPS: u16 = 22;
    pub(super) const SEQ: u16 = 23;
}

/// The router, once a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Seconds since the start; begins anew with every start, which is how the daemon knows of one.
    pub uptime: u32,
    /// Samples lost since then, by full rings and by this channel; wraps.
    pub drops: u32,
}

/// An interface's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are named as the module names its attributes"
)]
pub struct Counters<'a> {
    pub name: &'a str,
    pub ifindex: u32,
    /// Linux's number of the paired interface, if there is one.
    pub os_index: Option<u32>,
    pub kind: u32,
    /// Bits a second.
    pub speed: u64,
    /// 1 = full duplex, 2 = half.
    pub direction: u32,
    pub oper_up: bool,
    pub admin_up: bool,
    pub mac: Option<[u8; 6]>,
    pub rx_octets: u64,
    pub tx_octets: u64,
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_broadcasts: u64,
    pub tx_broadcasts: u64,
    pub rx_multicasts: u64,
    pub tx_multicasts: u64,
    pub rx_discards: u64,
    pub tx_discards: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
}

/// Writes the router's state. Both kinds of message share one sequence.
pub fn write_status(bytes: &mut Vec<u8>, port: u32, sequence: u32, status: &Status) {
    Message::begin(bytes, STATUS, sequence, port)
        .put_u32(attribute::UPTIME_S, status.uptime)
        .put_u32(attribute::DROPS, status.drops)
        .put_u32(attribute::SEQ, sequence)
        .end();
}

/// Writes an interface's counters.
pub fn write_counters(bytes: &mut Vec<u8>, port: u32, sequence: u32, counters: &Counters<'_>) {
    /// The longest name of an interface, without its NUL.
    const MOST_NAME: usize = 63;
    let mut message = Message::begin(bytes, INTERFACE_COUNTERS, sequence, port)
        .put_text(attribute::PORTNAME, counters.name, MOST_NAME)
        .put_u32(attribute::IFINDEX, counters.ifindex)
        .put_u32(attribute::IFTYPE, counters.kind)
        .put_u64(attribute::IFSPEED, counters.speed)
        .put_u32(attribute::IFDIRECTION, counters.direction)
        .put_u32(attribute::OPER_UP, counters.oper_up.into())
        .put_u32(attribute::ADMIN_UP, counters.admin_up.into())
        .put_u64(attribute::RX_OCTETS, counters.rx_octets)
        .put_u64(attribute::TX_OCTETS, counters.tx_octets)
        .put_u64(attribute::RX_PKTS, counters.rx_packets)
        .put_u64(attribute::TX_PKTS, counters.tx_packets)
        .put_u64(attribute::RX_BCASTS, counters.rx_broadcasts)
        .put_u64(attribute::TX_BCASTS, counters.tx_broadcasts)
        .put_u64(attribute::RX_MCASTS, counters.rx_multicasts)
        .put_u64(attribute::TX_MCASTS, counters.tx_multicasts)
        .put_u64(attribute::RX_DISCARDS, counters.rx_discards)
        .put_u64(attribute::TX_DISCARDS, counters.tx_discards)
        .put_u64(attribute::RX_ERRORS, counters.rx_errors)
        .put_u64(attribute::TX_ERRORS, counters.tx_errors);
    if let Some(mac) = counters.mac {
        message = message.put(attribute::HW_ADDRESS, &mac);
    }
    if let Some(index) = counters.os_index {
        message = message.put_u32(attribute::OSINDEX, index);
    }
    message.put_u32(attribute::SEQ, sequence).end();
}
