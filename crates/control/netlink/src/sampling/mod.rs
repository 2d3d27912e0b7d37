//! The kernel's way to a sampling daemon: packet samples, drop alerts and counters as netlink messages, for
//! an unmodified hsflowd with its modules `psample`, `dropmon` and `vpp`.
//!
//! - [`psample`]: packet samples, on generic netlink's family `psample`, group `packets`.
//! - [`dropmon`]: alerts of dropped packets, on the family `NET_DM`, group `events`.
//! - [`usersock`]: counters and the router's state, from process to process, group 29.
//! - [`Channel`]: the sockets of one namespace, which send all of it.
//!
//! The layouts are those of VPP's sFlow plugin, which the daemon's module reads, and of Linux's
//! `include/uapi/linux/psample.h` and `net_dropmon.h`. Two things are done otherwise than in VPP: the
//! interface where a packet came in is a nested attribute in an alert, as the kernel has it, so that the
//! daemon finds it; and samples and counters speak of an interface by the same number.
//!
//! Messages are made in a buffer that is given, without allocating once it is large enough.

mod channel;
pub mod dropmon;
pub mod psample;
pub mod usersock;

pub use channel::{Channel, Feed, Sent};

/// Octets of `nlmsghdr`.
const HEADER: usize = 16;
/// An attribute whose value is attributes (`NLA_F_NESTED`).
const NESTED: u16 = 0x8000;

/// A message under construction in somebody's buffer.
struct Message<'a> {
    bytes: &'a mut Vec<u8>,
}

impl<'a> Message<'a> {
    /// `nlmsghdr` without its length. `port` is who sends, as netlink numbers sockets.
    fn begin(bytes: &'a mut Vec<u8>, kind: u16, sequence: u32, port: u32) -> Message<'a> {
        bytes.clear();
        bytes.extend_from_slice(&0_u32.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&0_u16.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&port.to_ne_bytes());
        Message { bytes }
    }

    /// `genlmsghdr`.
    fn generic(self, command: u8, version: u8) -> Self {
        self.bytes.extend_from_slice(&[command, version, 0, 0]);
        self
    }

    /// An attribute with its padding; a value too long for its length is cut to what fits.
    fn put(self, kind: u16, value: &[u8]) -> Self {
        let value = value.get(..65_528).unwrap_or(value);
        // Cut above to what 16 bits hold.
        let length = (value.len() + 4) as u16;
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
        self
    }

    fn put_u16(self, kind: u16, value: u16) -> Self {
        self.put(kind, &value.to_ne_bytes())
    }

    fn put_u32(self, kind: u16, value: u32) -> Self {
        self.put(kind, &value.to_ne_bytes())
    }

    fn put_u64(self, kind: u16, value: u64) -> Self {
        self.put(kind, &value.to_ne_bytes())
    }

    /// A string with its NUL, of at most `most` octets before it.
    fn put_text(self, kind: u16, text: &str, most: usize) -> Self {
        let text = text.get(..text.floor_char_boundary(most)).unwrap_or(text);
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        self.put(kind, &value)
    }

    /// The length, now that it is known.
    fn end(self) {
        let length = self.bytes.len() as u32;
        if let Some(place) = self.bytes.first_chunk_mut() {
            *place = length.to_ne_bytes();
        }
        debug_assert!(self.bytes.len() >= HEADER);
    }
}
