//! Packet samples (`include/uapi/linux/psample.h`).

use super::Message;

/// The generic family's name.
pub const FAMILY: &str = "psample";
/// Its multicast group.
pub const GROUP: &str = "packets";
/// `PSAMPLE_CMD_SAMPLE`.
const COMMAND: u8 = 0;
/// `PSAMPLE_GENL_VERSION`.
const VERSION: u8 = 1;

/// `PSAMPLE_ATTR_…`.
mod attribute {
    pub(super) const IIFINDEX: u16 = 0;
    pub(super) const OIFINDEX: u16 = 1;
    pub(super) const ORIGSIZE: u16 = 2;
    pub(super) const SAMPLE_GROUP: u16 = 3;
    pub(super) const GROUP_SEQ: u16 = 4;
    pub(super) const SAMPLE_RATE: u16 = 5;
    pub(super) const DATA: u16 = 6;
    pub(super) const PROTO: u16 = 14;
}

/// A sampled packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Where it came in; 0 = unknown.
    pub input: u32,
    /// Where it goes; 0 = unknown.
    pub output: u32,
    /// Its length, of which `data` may be the beginning.
    pub original_length: u32,
    /// The group of samples it belongs to: who samples, and which way.
    pub group: u32,
    /// Its number in that group.
    pub sequence: u32,
    /// One packet in so many is sampled.
    pub rate: u32,
    /// Its first bytes, from the Ethernet header on.
    pub data: &'a [u8],
}

/// Writes the message. `family` is the number that the kernel gave the family.
pub fn write(bytes: &mut Vec<u8>, family: u16, port: u32, sample: &Sample<'_>) {
    /// `PSAMPLE_ATTR_PROTO` as VPP sends it: the data begins with Ethernet.
    const ETHERNET: u16 = 1;
    Message::begin(bytes, family, sample.sequence, port)
        .generic(COMMAND, VERSION)
        .put_u32(attribute::IIFINDEX, sample.input)
        .put_u32(attribute::OIFINDEX, sample.output)
        .put_u32(attribute::ORIGSIZE, sample.original_length)
        .put_u32(attribute::SAMPLE_GROUP, sample.group)
        .put_u32(attribute::GROUP_SEQ, sample.sequence)
        .put_u32(attribute::SAMPLE_RATE, sample.rate)
        .put(attribute::DATA, sample.data)
        .put_u16(attribute::PROTO, ETHERNET)
        .end();
}
