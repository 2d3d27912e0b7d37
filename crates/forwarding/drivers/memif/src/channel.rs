//! The control channel: a Unix socket of whole messages, each with at most one descriptor.
//!
//! Never waits. A peer whose queue is full of messages that it does not read is a broken peer.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::message::{LENGTH, Message};
use crate::reason::Reason;

/// What came.
#[derive(Debug)]
pub(crate) enum Received {
    Message(Message, Option<OwnedFd>),
    Nothing,
    /// The peer closed its end.
    End,
    Bad(Reason),
}

/// One end of a control channel.
#[derive(Debug)]
pub(crate) struct Channel(pub(crate) OwnedFd);

impl Channel {
    /// Sends a message, with a descriptor perhaps.
    pub(crate) fn send(
        &self,
        message: &Message,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<(), Reason> {
        let bytes = message.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(|descriptor| [descriptor]);
        if let Some(descriptors) = &descriptors {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        match sendmsg(
            &self.0,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        ) {
            Ok(LENGTH) => Ok(()),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(Reason::Gone),
            _ => Err(Reason::Channel),
        }
    }

    /// Takes the next message. Descriptors beyond the first are closed.
    pub(crate) fn receive(&self) -> Received {
        // One byte more than a message, to notice a longer one.
        let mut bytes = [0; LENGTH + 1];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2), ScmCredentials(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let length = match recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            flags,
        ) {
            Ok(received) => received.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Received::Nothing,
            Err(Errno::CONNRESET | Errno::PIPE) => return Received::End,
            Err(_) => return Received::Bad(Reason::Channel),
        };
        let mut descriptor = None;
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = part {
                for next in descriptors {
                    descriptor = descriptor.or(Some(next));
                }
            }
        }
        match (length, bytes.first_chunk::<LENGTH>()) {
            (0, _) => Received::End,
            (LENGTH, Some(message)) => Received::Message(Message::decode(message), descriptor),
            _ => Received::Bad(Reason::MessageSize),
        }
    }

    /// Tells the peer why, if it still listens.
    pub(crate) fn part(&self, reason: Reason) {
        let _ = self.send(
            &Message::Disconnect {
                code: u32::from(reason as u8),
                text: reason.sentence().to_owned(),
            },
            None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, send, socketpair};

    fn pair() -> (Channel, Channel) {
        let (a, b) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        (Channel(a), Channel(b))
    }

    #[test]
    fn messages_and_descriptors_arrive() {
        let (here, there) = pair();
        assert!(matches!(there.receive(), Received::Nothing));
        here.send(&Message::Ack, Some(here.0.as_fd())).unwrap();
        here.send(&Message::Ack, None).unwrap();
        assert!(matches!(
            there.receive(),
            Received::Message(Message::Ack, Some(_))
        ));
        assert!(matches!(
            there.receive(),
            Received::Message(Message::Ack, None)
        ));
        drop(here);
        assert!(matches!(there.receive(), Received::End));
        assert_eq!(there.send(&Message::Ack, None), Err(Reason::Gone));
    }

    #[test]
    fn other_sizes_are_refused_and_nobody_waits() {
        let (here, there) = pair();
        for length in [1, LENGTH - 1, LENGTH + 1, 4096] {
            send(&here.0, &vec![0; length], SendFlags::empty()).unwrap();
            assert!(
                matches!(there.receive(), Received::Bad(Reason::MessageSize)),
                "{length}"
            );
        }
        let full = (0..100_000).find_map(|_| here.send(&Message::Ack, None).err());
        assert_eq!(full, Some(Reason::Channel));
    }
}
