//! A blocking rtnetlink client: one socket, one question at a time, each with a time limit.
//!
//! Every change waits for the kernel's acknowledgement, so that `Ok` means that it is done. The
//! client serves the namespace in which it was opened, from whatever thread.
//!
//! `link` reads links, `change` alters and makes them, `address` adds addresses, routes, neighbours.

mod address;
mod change;
mod link;
mod lookup;

use std::time::Duration;

use netlink_packet_core::NetlinkSerializable;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;

pub use address::{LinkAddress, RouteEntry};
pub use change::VethPair;
pub use link::{Link, LinkStatistics, OperState, VlanTag};
pub(crate) use link::{RTM_DELLINK, RTM_NEWLINK, valid_name};
pub use lookup::FoundRoute;

use crate::conversation::{Conversation, Question};
use crate::error::Result;
use crate::message::Frame;

/// A client of the kernel's routing netlink family.
pub struct Route {
    conversation: Conversation,
}

impl Route {
    /// Opens a client for the network namespace of the calling thread.
    pub fn open() -> Result<Self> {
        Ok(Route {
            conversation: Conversation::open(NETLINK_ROUTE)?,
        })
    }

    /// Sets how long each later question may take; 5 seconds when never set.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.conversation.set_timeout(timeout);
    }

    fn request(
        &mut self,
        asked: &str,
        message: &RouteNetlinkMessage,
        flags: u16,
        take: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<()> {
        let payload = payload(message);
        let question = Question {
            kind: message.message_type(),
            payload: &payload,
        };
        self.conversation.request(asked, question, flags, take)
    }

    /// Sends one change and waits until the kernel says that it is done.
    fn change(&mut self, asked: &str, message: RouteNetlinkMessage, flags: u16) -> Result<()> {
        self.request(asked, &message, flags, &mut |_| ())
    }

    /// Hands over each message of a table that the kernel has: `kind` is the type of the request (`RTM_GET*`), `payload` its
    /// header. Returns whether the table stayed as it was meanwhile; if not, messages may be missing and the caller asks again.
    ///
    /// # Errors
    /// When the kernel refuses, or is silent for longer than the timeout.
    pub fn dump_each(
        &mut self,
        kind: u16,
        payload: &[u8],
        take: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<bool> {
        let question = Question { kind, payload };
        self.conversation
            .dump_each("read a table of the kernel", question, take)
    }

    fn dump<T>(
        &mut self,
        asked: &str,
        message: &RouteNetlinkMessage,
        read: impl Fn(&Frame<'_>) -> Option<T>,
    ) -> Result<Vec<T>> {
        let payload = payload(message);
        let question = Question {
            kind: message.message_type(),
            payload: &payload,
        };
        self.conversation.dump(asked, question, read)
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let timeout = self.conversation.timeout();
        formatter
            .debug_struct("Route")
            .field("timeout", &timeout)
            .finish_non_exhaustive()
    }
}

fn payload(message: &RouteNetlinkMessage) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}
