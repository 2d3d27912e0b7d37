//! The sockets of one namespace that samples, alerts and counters leave by.
//!
//! Netlink multicast reaches whoever listens in the namespace of the sending socket; that nobody does is
//! the usual case, and no error (`ECONNREFUSED`, `ESRCH`). Sending never waits: what the kernel does not
//! take now is lost and counted. A kernel without a family is reported in one sentence, once, when the
//! channel is opened, and the rest of it works on.

use std::os::fd::AsRawFd;

use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_USERSOCK};
use netlink_sys::{Socket, SocketAddr};

use super::{dropmon, psample, usersock};
use crate::conversation::{Conversation, Question, open_socket};
use crate::error::{Error, Result};
use crate::message::{self, Attributes};
use crate::netns::NetNs;

/// What a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Packet samples.
    Samples,
    /// Alerts of dropped packets.
    Drops,
}

/// What became of the messages of a channel. Sent is what was given to somebody, or to nobody because nobody listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packet samples that were sent.
    pub samples: u64,
    /// Alerts of dropped packets that were sent.
    pub drops: u64,
    /// Reports of counters and of the router's state that were sent.
    pub reports: u64,
    /// Packet samples that the kernel did not take.
    pub samples_failed: u64,
    /// Other messages that it did not take.
    pub others_failed: u64,
}

impl std::ops::AddAssign for Sent {
    fn add_assign(&mut self, more: Sent) {
        self.samples += more.samples;
        self.drops += more.drops;
        self.reports += more.reports;
        self.samples_failed += more.samples_failed;
        self.others_failed += more.others_failed;
    }
}

/// A family of generic netlink and its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Family {
    number: u16,
    group: u32,
}

/// Sockets, families, and where messages are made.
pub struct Channel {
    generic: Socket,
    user: Socket,
    samples: Option<Family>,
    drops: Option<Family>,
    port: u32,
    sequence: u32,
    bytes: Vec<u8>,
    /// What was sent and what not.
    pub sent: Sent,
}

impl Channel {
    /// Opens the sockets in a namespace. The second value says, a sentence each, what this kernel lacks.
    ///
    /// # Errors
    /// When there are no sockets to be had.
    pub fn open(namespace: &NetNs) -> Result<(Channel, Vec<String>)> {
        namespace.run(|| {
            let (generic, user) = (open_socket(NETLINK_GENERIC)?, open_socket(NETLINK_USERSOCK)?);
            let mut lacking = Vec::new();
            let mut found = |name: &str, group: &str, module: &str, what: &str| match family(name, group) {
                Ok(family) => Some(family),
                Err(Error::Refused { errno: libc::ENOENT, .. }) => {
                    lacking.push(format!(
                        "this kernel has no {name} in this network namespace, so {what} do not go through it: `modprobe {module}` \
                         brings it{}",
                        if name == dropmon::FAMILY { " to the first namespace, which alone can have it" } else { "" }
                    ));
                    None
                }
                Err(error) => {
                    lacking.push(format!("{what} do not go through the kernel's {name}: {error}"));
                    None
                }
            };
            let samples = found(psample::FAMILY, psample::GROUP, "psample", "packet samples");
            let drops = found(dropmon::FAMILY, dropmon::GROUP, "drop_monitor", "drop notifications");
            let port = std::process::id();
            let sent = Sent::default();
            Ok((Channel { generic, user, samples, drops, port, sequence: 0, bytes: Vec::new(), sent }, lacking))
        })?
    }

    /// Whether the kernel takes such messages at all.
    #[must_use]
    pub fn carries(&self, feed: Feed) -> bool {
        match feed {
            Feed::Samples => self.samples.is_some(),
            Feed::Drops => self.drops.is_some(),
        }
    }

    /// Sends a sample; nothing when the kernel has no `psample`.
    pub fn sample(&mut self, sample: &psample::Sample<'_>) {
        let Some(family) = self.samples else { return };
        psample::write(&mut self.bytes, family.number, self.port, sample);
        let taken = self.send(family.group, true);
        *if taken {
            &mut self.sent.samples
        } else {
            &mut self.sent.samples_failed
        } += 1;
    }

    /// Sends an alert; nothing when the kernel has no `NET_DM`.
    pub fn drop_alert(&mut self, alert: &dropmon::Alert<'_>) {
        let Some(family) = self.drops else { return };
        self.sequence = self.sequence.wrapping_add(1);
        dropmon::write(
            &mut self.bytes,
            family.number,
            self.port,
            self.sequence,
            alert,
        );
        let taken = self.send(family.group, true);
        *if taken {
            &mut self.sent.drops
        } else {
            &mut self.sent.others_failed
        } += 1;
    }

    /// Sends the router's state.
    pub fn status(&mut self, status: &usersock::Status) {
        self.sequence = self.sequence.wrapping_add(1);
        usersock::write_status(&mut self.bytes, self.port, self.sequence, status);
        self.report();
    }

    /// Sends an interface's counters.
    pub fn counters(&mut self, counters: &usersock::Counters<'_>) {
        self.sequence = self.sequence.wrapping_add(1);
        usersock::write_counters(&mut self.bytes, self.port, self.sequence, counters);
        self.report();
    }

    fn report(&mut self) {
        let taken = self.send(usersock::GROUP, false);
        *if taken {
            &mut self.sent.reports
        } else {
            &mut self.sent.others_failed
        } += 1;
    }

    /// Whether the kernel took it.
    fn send(&mut self, group: u32, generic: bool) -> bool {
        let socket = if generic { &self.generic } else { &self.user };
        // An address names groups by bits, of which there are 32; `family` has seen to it.
        let groups = 1_u32.checked_shl(group.wrapping_sub(1)).unwrap_or(0);
        let outcome = socket.send_to(&self.bytes, &SocketAddr::new(0, groups), libc::MSG_DONTWAIT);
        let nobody = |error: &std::io::Error| {
            matches!(error.raw_os_error(), Some(libc::ECONNREFUSED | libc::ESRCH))
        };
        outcome.as_ref().map_or_else(nobody, |_| true)
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let socket = self.generic.as_raw_fd();
        f.debug_struct("Channel")
            .field("socket", &socket)
            .field("samples", &self.samples)
            .field("drops", &self.drops)
            .finish_non_exhaustive()
    }
}

/// The numbers of a family and of one of its groups (`include/uapi/linux/genetlink.h`).
fn family(name: &str, group: &str) -> Result<Family> {
    /// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_NAME`.
    const CONTROLLER: u16 = 0x10;
    const GET_FAMILY: u8 = 3;
    const FAMILY_NAME: u16 = 2;
    let asked = format!("find the netlink family {name}");
    let mut payload = vec![GET_FAMILY, 1, 0, 0];
    let with_nul = [name.as_bytes(), &[0]].concat();
    message::push_attribute(&mut payload, FAMILY_NAME, &with_nul)
        .ok_or_else(|| Error::invalid(asked.as_str(), "the name is too long"))?;
    let mut found = None;
    let mut conversation = Conversation::open(NETLINK_GENERIC)?;
    conversation.request(
        &asked,
        Question {
            kind: CONTROLLER,
            payload: &payload,
        },
        0,
        &mut |frame| {
            found = found.or(read_family(frame.payload, group));
        },
    )?;
    match found {
        Some(family) if (1..=32).contains(&family.group) => Ok(family),
        Some(family) => Err(Error::malformed(
            asked,
            format!(
                "its group has the number {}, and a socket can only send to the first 32",
                family.group
            ),
        )),
        None => Err(Error::malformed(asked, format!("it has no group {group}"))),
    }
}

/// Out of the controller's answer, its `genlmsghdr` included.
fn read_family(payload: &[u8], group: &str) -> Option<Family> {
    /// `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_MCAST_GROUPS`; `CTRL_ATTR_MCAST_GRP_NAME`, `CTRL_ATTR_MCAST_GRP_ID`.
    const FAMILY_ID: u16 = 1;
    const GROUPS: u16 = 7;
    const GROUP_NAME: u16 = 1;
    const GROUP_ID: u16 = 2;
    let attributes = payload.get(4..).unwrap_or_default();
    let number = message::u16_at(attribute(attributes, FAMILY_ID)?, 0)?;
    let groups = attribute(attributes, GROUPS)?;
    let named = |entry: &[u8]| {
        attribute(entry, GROUP_NAME).is_some_and(|name| message::text(name) == group)
    };
    let (_, entry) = Attributes::new(groups).find(|(_, entry)| named(entry))?;
    let group = message::u32_at(attribute(entry, GROUP_ID)?, 0)?;
    Some(Family { number, group })
}

/// The value of the first attribute of this number.
fn attribute(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    Attributes::new(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The controller's answer for a family of number 31 with two groups.
    fn answer() -> Vec<u8> {
        let mut groups = Vec::new();
        for (place, (name, number)) in [("config", 6_u32), ("packets", 7)].into_iter().enumerate() {
            let mut entry = Vec::new();
            message::push_attribute(&mut entry, 2, &number.to_ne_bytes()).unwrap();
            message::push_attribute(&mut entry, 1, format!("{name}\0").as_bytes()).unwrap();
            message::push_attribute(&mut groups, place as u16 + 1, &entry).unwrap();
        }
        let mut payload = vec![1, 2, 0, 0];
        message::push_attribute(&mut payload, 2, b"psample\0").unwrap();
        message::push_attribute(&mut payload, 1, &31_u16.to_ne_bytes()).unwrap();
        message::push_attribute(&mut payload, 7, &groups).unwrap();
        payload
    }

    #[test]
    fn a_family_and_its_group_are_found() {
        let payload = answer();
        assert_eq!(
            read_family(&payload, "packets"),
            Some(Family {
                number: 31,
                group: 7
            })
        );
        assert_eq!(read_family(&payload, "events"), None);
        for length in 0..payload.len() {
            let _ = read_family(&payload[..length], "packets");
        }
    }

    #[test]
    fn a_family_that_nobody_has_is_refused_by_the_kernel() {
        let outcome = family("weir-nonsense", "none");
        assert!(
            matches!(
                outcome,
                Err(Error::Refused {
                    errno: libc::ENOENT,
                    ..
                })
            ),
            "{outcome:?}"
        );
        // The controller itself is always there.
        let found = family("nlctrl", "notify").unwrap();
        assert_eq!(found.number, 0x10);
    }
}
