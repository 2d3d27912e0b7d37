//! One question, its answers, and the end: the conversation over a netlink socket.
//!
//! Every question is sent with `NLM_F_ACK` or as a dump, so that it always has an end: an
//! acknowledgement, a refusal, or the last part of the dump. Answers to an earlier question that ran
//! out of time are reported by their sequence number and skipped; datagrams that do not come from the
//! kernel (port 0) are ignored; a dump which the kernel marks as interrupted is asked again. One
//! thread talks at a time (`&mut self`), blocking with a time limit.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};
use netlink_sys::{Socket, SocketAddr};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{Error, Result};
use crate::message::{self, Frame, Frames};

/// The largest datagram taken. The kernel fills dumps up to 32 KiB; a single answer is far smaller.
pub(crate) const DATAGRAM_BYTES: usize = 128 * 1024;
/// How often a dump is asked again when the tables change under it.
const DUMP_ATTEMPTS: u32 = 8;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// What is asked: the type of the message and its payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) kind: u16,
    pub(crate) payload: &'a [u8],
}

/// A socket of one netlink family, and the question under way.
pub(crate) struct Conversation {
    socket: Socket,
    sequence: u32,
    timeout: Duration,
    buffer: Vec<u8>,
}

/// How a conversation ended.
enum End {
    Complete,
    Interrupted,
}

impl Conversation {
    /// Opens a socket of the family `protocol` in the namespace of the calling thread.
    pub(crate) fn open(protocol: isize) -> Result<Self> {
        let socket = open_socket(protocol)?;
        Ok(Conversation {
            socket,
            sequence: 0,
            timeout: DEFAULT_TIMEOUT,
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sends one question with `flags` beside `NLM_F_ACK`, and hands over what precedes the
    /// acknowledgement.
    pub(crate) fn request(
        &mut self,
        asked: &str,
        question: Question<'_>,
        flags: u16,
        take: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<()> {
        self.send(asked, question, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        self.collect(asked, take).map(|_| ())
    }

    /// Asks for a whole table and gathers what `read` makes of each message.
    pub(crate) fn dump<T>(
        &mut self,
        asked: &str,
        question: Question<'_>,
        read: impl Fn(&Frame<'_>) -> Option<T>,
    ) -> Result<Vec<T>> {
        for _ in 0..DUMP_ATTEMPTS {
            let mut found = Vec::new();
            self.send(asked, question, NLM_F_REQUEST | NLM_F_DUMP)?;
            let end = self.collect(asked, &mut |frame| found.extend(read(frame)))?;
            if matches!(end, End::Complete) {
                return Ok(found);
            }
        }
        Err(Error::malformed(
            asked,
            "the table changed faster than it could be read",
        ))
    }

    /// Asks for a whole table and hands over each message; whether the table stayed as it was meanwhile. If not, what
    /// was handed over is not all of it.
    pub(crate) fn dump_each(
        &mut self,
        asked: &str,
        question: Question<'_>,
        take: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<bool> {
        self.send(asked, question, NLM_F_REQUEST | NLM_F_DUMP)?;
        Ok(matches!(self.collect(asked, take)?, End::Complete))
    }

    fn send(&mut self, asked: &str, question: Question<'_>, flags: u16) -> Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = message::frame(question.kind, flags, self.sequence, question.payload)
            .ok_or_else(|| Error::invalid(asked, "the question is too long"))?;
        let sent = self.socket.send_to(&bytes, &SocketAddr::new(0, 0), 0);
        sent.map(|_| ())
            .map_err(|source| Error::system(asked, source))
    }

    /// Takes answers until the acknowledgement or the end of the dump.
    fn collect(&mut self, asked: &str, take: &mut dyn FnMut(&Frame<'_>)) -> Result<End> {
        let deadline = Instant::now() + self.timeout;
        let mut end = End::Complete;
        loop {
            if !wait_readable(self.socket.as_fd(), deadline)
                .map_err(|source| Error::system(asked, source))?
            {
                return Err(Error::TimedOut {
                    asked: asked.to_owned(),
                    after: self.timeout,
                });
            }
            let length = match receive(&self.socket, &mut self.buffer) {
                Ok(Received::FromKernel(length)) => length,
                Ok(Received::Stranger | Received::Nothing) => continue,
                Err(source) => return Err(Error::system(asked, source)),
            };
            let Some(datagram) = self.buffer.get(..length) else {
                return Err(Error::malformed(
                    asked,
                    format!("{length} bytes in one datagram"),
                ));
            };
            for frame in Frames::new(datagram) {
                let frame = frame.map_err(|()| Error::malformed(asked, "a length lies"))?;
                if frame.sequence != self.sequence {
                    continue;
                }
                if frame.flags & message::FLAG_DUMP_INTERRUPTED != 0 {
                    end = End::Interrupted;
                }
                match frame.kind {
                    message::NOOP => (),
                    message::DONE => return Ok(end),
                    message::OVERRUN => return Err(Error::malformed(asked, "data was lost")),
                    message::ERROR => return judge(asked, &frame).map(|()| end),
                    _ => take(&frame),
                }
            }
        }
    }
}

fn judge(asked: &str, frame: &Frame<'_>) -> Result<()> {
    match message::verdict(frame) {
        None => Err(Error::malformed(
            asked,
            "an acknowledgement without a number",
        )),
        Some((0, _)) => Ok(()),
        Some((errno, detail)) => Err(Error::Refused {
            asked: asked.to_owned(),
            errno,
            detail,
        }),
    }
}

/// A bound, non-blocking socket of a netlink family, in the namespace of the calling thread.
pub(crate) fn open_socket(protocol: isize) -> Result<Socket> {
    let failed = |source: io::Error| Error::system("open a netlink socket", source);
    let mut socket = Socket::new(protocol).map_err(failed)?;
    socket.bind(&SocketAddr::new(0, 0)).map_err(failed)?;
    socket.set_non_blocking(true).map_err(failed)?;
    // Sentences with refusals, and no echo of the request: niceties that old kernels lack, so
    // that a refusal here is no reason to stop.
    let _ = socket.set_ext_ack(true);
    let _ = socket.set_cap_ack(true);
    Ok(socket)
}

/// What one read of a netlink socket brought.
pub(crate) enum Received {
    /// A datagram of the kernel with its true length, which may exceed the buffer.
    FromKernel(usize),
    /// A datagram of another process, or an interrupted call: of no use, but there may be more.
    Stranger,
    /// Nothing waits.
    Nothing,
}

/// Reads one datagram without blocking.
pub(crate) fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    match socket.recv_from(&mut &mut *buffer, libc::MSG_TRUNC) {
        Ok((length, sender)) if sender.port_number() == 0 => Ok(Received::FromKernel(length)),
        Ok(_) => Ok(Received::Stranger),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock => Ok(Received::Nothing),
            io::ErrorKind::Interrupted => Ok(Received::Stranger),
            _ => Err(error),
        },
    }
}

/// Waits until the descriptor is readable; false when the deadline passed first.
pub(crate) fn wait_readable(descriptor: BorrowedFd<'_>, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut waiting = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut waiting, Some(&limit)) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => (),
            Ok(_) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
}
