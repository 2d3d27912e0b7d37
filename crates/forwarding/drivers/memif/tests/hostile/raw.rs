//! A peer written by hand, byte by byte, that can say and write what it likes.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
    socket_with,
};

use crate::common::LONG;

pub(crate) const ACK: u16 = 1;
pub(crate) const HELLO: u16 = 2;
pub(crate) const INIT: u16 = 3;
pub(crate) const ADD_REGION: u16 = 4;
pub(crate) const ADD_RING: u16 = 5;
pub(crate) const CONNECT: u16 = 6;
pub(crate) const CONNECTED: u16 = 7;
pub(crate) const DISCONNECT: u16 = 8;

/// A message of this type with these fields behind it.
pub(crate) fn message(kind: u16, fields: &[&[u8]]) -> [u8; 128] {
    let mut bytes = [0; 128];
    let all = [&kind.to_le_bytes()[..], &fields.concat()].concat();
    bytes[..all.len()].copy_from_slice(&all);
    bytes
}

pub(crate) fn add_region(index: u16, size: u64) -> [u8; 128] {
    message(ADD_REGION, &[&index.to_le_bytes(), &size.to_le_bytes()])
}

pub(crate) fn add_ring(
    to_master: bool,
    index: u16,
    region: u16,
    offset: u32,
    log2_size: u8,
) -> [u8; 128] {
    let flags = u16::from(to_master);
    message(
        ADD_RING,
        &[
            &flags.to_le_bytes(),
            &index.to_le_bytes(),
            &region.to_le_bytes(),
            &offset.to_le_bytes(),
            &[log2_size],
        ],
    )
}

/// A socket of the right kind.
pub(crate) fn seqpacket() -> OwnedFd {
    socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap()
}

pub(crate) fn address(name: &str) -> SocketAddrUnix {
    SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()
}

pub(crate) fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// A memory file full of 0xaa.
pub(crate) fn memory(bytes: u64, seals: SealFlags) -> std::fs::File {
    let file = memfd_create(
        "weir-hostile",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )
    .unwrap();
    ftruncate(&file, bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    let file = std::fs::File::from(file);
    file.write_all_at(&vec![0xaa; bytes as usize], 0).unwrap();
    file
}

/// The control channel, seen from the peer.
pub(crate) struct Talk(pub(crate) OwnedFd);

impl Talk {
    pub(crate) fn say(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        // The other end may be gone already: then what it counted tells.
        let _ = sendmsg(
            &self.0,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        );
    }

    /// What comes next; `None` at the end of the channel.
    pub(crate) fn hear(&self) -> Option<([u8; 128], Option<OwnedFd>)> {
        let timeout = Timespec {
            tv_sec: LONG.as_secs() as i64,
            tv_nsec: 0,
        };
        let mut polled = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        assert!(
            poll(&mut polled, Some(&timeout)).unwrap() > 0,
            "nothing was said for {LONG:?}"
        );
        let mut bytes = [0; 128];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let heard = recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        );
        let mut descriptor = None;
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = part {
                descriptor = descriptors.next();
            }
        }
        matches!(heard, Ok(heard) if heard.bytes == 128).then_some((bytes, descriptor))
    }

    /// Hears a message of this type.
    #[track_caller]
    pub(crate) fn expect(&self, kind: u16) -> ([u8; 128], Option<OwnedFd>) {
        let heard = self
            .hear()
            .unwrap_or_else(|| panic!("message {kind} was expected, not the end"));
        assert_eq!(u16::from_le_bytes([heard.0[0], heard.0[1]]), kind);
        heard
    }

    /// Hears until the end; the text of the DISCONNECT before it.
    pub(crate) fn farewell(&self) -> String {
        let mut text = String::new();
        while let Some((bytes, _)) = self.hear() {
            if bytes[..2] == DISCONNECT.to_le_bytes() {
                text = String::from_utf8_lossy(&bytes[6..102])
                    .trim_end_matches('\0')
                    .to_owned();
            }
        }
        text
    }
}

/// A ring in a file.
pub(crate) struct RawRing<'a> {
    pub(crate) file: &'a std::fs::File,
    pub(crate) offset: u64,
    pub(crate) size: u16,
}

impl RawRing<'_> {
    pub(crate) fn initialise(&self) {
        self.file
            .write_all_at(&vec![0; 128 + 16 * usize::from(self.size)], self.offset)
            .unwrap();
        self.file
            .write_all_at(&0x3E3_1F20u32.to_le_bytes(), self.offset)
            .unwrap();
    }

    fn word(&self, place: u64) -> u16 {
        let mut bytes = [0; 2];
        self.file
            .read_exact_at(&mut bytes, self.offset + place)
            .unwrap();
        u16::from_le_bytes(bytes)
    }

    pub(crate) fn head(&self) -> u16 {
        self.word(6)
    }

    pub(crate) fn tail(&self) -> u16 {
        self.word(64)
    }

    pub(crate) fn set_head(&self, head: u16) {
        self.file
            .write_all_at(&head.to_le_bytes(), self.offset + 6)
            .unwrap();
    }

    pub(crate) fn set_tail(&self, tail: u16) {
        self.file
            .write_all_at(&tail.to_le_bytes(), self.offset + 64)
            .unwrap();
    }

    fn place(&self, slot: u16) -> u64 {
        self.offset + 128 + 16 * u64::from(slot % self.size)
    }

    pub(crate) fn set(&self, slot: u16, flags: u16, region: u16, length: u32, offset: u32) {
        let bytes = [
            &flags.to_le_bytes()[..],
            &region.to_le_bytes(),
            &length.to_le_bytes(),
            &offset.to_le_bytes(),
            &[0; 4],
        ]
        .concat();
        self.file.write_all_at(&bytes, self.place(slot)).unwrap();
    }

    /// Flags, region, length, offset.
    pub(crate) fn get(&self, slot: u16) -> (u16, u16, u32, u32) {
        let mut bytes = [0; 16];
        self.file
            .read_exact_at(&mut bytes, self.place(slot))
            .unwrap();
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        (word(0), word(2), long(4), long(8))
    }
}

/// Waits a moment, for what must not happen.
pub(crate) fn moment() {
    std::thread::sleep(Duration::from_millis(30));
}
