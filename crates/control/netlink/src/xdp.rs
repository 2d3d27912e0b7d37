//! What a driver can do with XDP and AF_XDP, asked from the kernel's `netdev` netlink family.
//!
//! Worth asking before a port is used: the features change at run time. A veth end takes frames
//! redirected to it (`NDO_XMIT`) only while its *peer* has NAPI, that is while the peer has an XDP
//! program or generic receive offload on; else the kernel says that it has redirected them, and
//! they are gone. Kernels before 6.3 do not have the family; the answer is then
//! [`Error::is_unsupported`] or [`Error::is_not_found`], and a driver is best tried.
//!
//! Of veth, seen on Linux 6.18:
//! - generic receive offload set while the end is down counts from the moment it is set up;
//! - a native program is refused (ENOSPC) while the peer has more tx queues than this end has rx
//!   queues, and the peer cannot have more as long as the program is attached;
//! - a pair made without a number of queues has room for one a CPU but uses one;
//! - a native program that does not declare `xdp.frags` limits the peer's MTU to 3506, and is
//!   refused when the peer's is larger;
//! - attaching takes TCP segmentation from the peer, but not its transmit checksum offload: the
//!   packets still come without a checksum unless that is switched off;
//! - what a program did is counted in the driver's statistics (`rx_queue_N_xdp_*`, `rx_queue_N_drops`).
//!
//! Numbers: `include/uapi/linux/genetlink.h` and `netdev.h` of Linux.

use netlink_sys::protocols::NETLINK_GENERIC;

use crate::conversation::{Conversation, Question};
use crate::error::{Error, Result};
use crate::message::{Attributes, push_attribute, u16_at, u32_at, u64_at};

const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENERIC_HEADER: usize = 4;

const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;

/// The XDP features of one interface, as they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XdpFeatures {
    /// The driver runs XDP programs itself (native mode): abort, drop, pass, send back.
    pub native: bool,
    /// Native programs may redirect packets, to AF_XDP sockets among others.
    pub redirect: bool,
    /// Frames that others redirect to this interface are sent.
    pub transmit_redirected: bool,
    /// AF_XDP sockets can share their memory with the device.
    pub zero_copy: bool,
    /// Native programs may see packets of several pieces of memory.
    pub receive_pieces: bool,
    /// Redirected frames of several pieces of memory are sent.
    pub transmit_pieces: bool,
    /// How many pieces a zero-copy frame may have; 0 when unknown.
    pub zero_copy_pieces: u32,
}

impl XdpFeatures {
    fn decode(attributes: Attributes<'_>) -> Self {
        let mut features = XdpFeatures::default();
        for (kind, value) in attributes {
            match kind {
                NETDEV_A_DEV_XDP_FEATURES => features.set_bits(u64_at(value, 0).unwrap_or(0)),
                NETDEV_A_DEV_XDP_ZC_MAX_SEGS => {
                    features.zero_copy_pieces = u32_at(value, 0).unwrap_or(0);
                }
                _ => (),
            }
        }
        features
    }

    fn set_bits(&mut self, bits: u64) {
        self.native = bits & 1 != 0;
        self.redirect = bits & 2 != 0;
        self.transmit_redirected = bits & 4 != 0;
        self.zero_copy = bits & 8 != 0;
        self.receive_pieces = bits & 32 != 0;
        self.transmit_pieces = bits & 64 != 0;
    }
}

/// Asks for the XDP features of the interface `index` in the namespace of the calling thread.
pub fn features(index: u32) -> Result<XdpFeatures> {
    let asked = format!("ask for the XDP features of link {index}");
    let mut conversation = Conversation::open(NETLINK_GENERIC)?;
    let family = family(&mut conversation, &asked, "netdev")?;
    let payload = generic(
        NETDEV_CMD_DEV_GET,
        NETDEV_A_DEV_IFINDEX,
        &index.to_ne_bytes(),
    );
    let mut found = None;
    conversation.request(
        &asked,
        Question {
            kind: family,
            payload: &payload,
        },
        0,
        &mut |frame| {
            let attributes =
                Attributes::new(frame.payload.get(GENERIC_HEADER..).unwrap_or_default());
            found = Some(XdpFeatures::decode(attributes));
        },
    )?;
    found.ok_or_else(|| Error::malformed(asked, "no interface in the answer"))
}

/// The number the kernel gave at boot to a generic netlink family.
fn family(conversation: &mut Conversation, asked: &str, name: &str) -> Result<u16> {
    let mut terminated = name.as_bytes().to_vec();
    terminated.push(0);
    let payload = generic(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, &terminated);
    let mut found = None;
    let question = Question {
        kind: GENL_ID_CTRL,
        payload: &payload,
    };
    conversation.request(asked, question, 0, &mut |frame| {
        let attributes = frame.payload.get(GENERIC_HEADER..).unwrap_or_default();
        found = Attributes::new(attributes)
            .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
            .and_then(|(_, value)| u16_at(value, 0));
    })?;
    found.ok_or_else(|| Error::malformed(asked, format!("no number for the family {name}")))
}

/// `struct genlmsghdr` (command, version 1, two reserved bytes) and one short attribute.
fn generic(command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let mut payload = vec![command, 1, 0, 0];
    // Values here are four bytes or a family's name: never too long for an attribute.
    let _ = push_attribute(&mut payload, kind, value);
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_read() {
        let mut bytes = Vec::new();
        push_attribute(
            &mut bytes,
            NETDEV_A_DEV_XDP_FEATURES,
            &0x23u64.to_ne_bytes(),
        )
        .unwrap();
        push_attribute(
            &mut bytes,
            NETDEV_A_DEV_XDP_ZC_MAX_SEGS,
            &1u32.to_ne_bytes(),
        )
        .unwrap();
        let features = XdpFeatures::decode(Attributes::new(&bytes));
        let wanted = XdpFeatures {
            native: true,
            redirect: true,
            receive_pieces: true,
            zero_copy_pieces: 1,
            ..XdpFeatures::default()
        };
        assert_eq!(features, wanted);
        for length in 0..bytes.len() {
            let _ = XdpFeatures::decode(Attributes::new(&bytes[..length]));
        }
    }
}
