//! What a network driver tells and can be set: `SIOCETHTOOL`, the ioctl of ethtool.
//!
//! The ioctl is chosen over ethtool's netlink family because the netlink one has no driver
//! information and no driver statistics, and because every kernel in use has the ioctl. One datagram socket serves
//! the namespace in which it was opened; interfaces are named. Requests are short structures of
//! 32-bit words (`include/uapi/linux/ethtool.h`), written to and read from a guarded buffer, so that
//! a driver which answers more than it announced cannot write where it should not.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::MacAddress;
use crate::error::{Error, Result};
use crate::message::{text, u16_at, u32_at, u64_at};
use crate::route::valid_name;
use crate::sys::{self, GuardedBuffer};

const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GPERMADDR: u32 = 0x20;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_SCHANNELS: u32 = 0x3d;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;

/// `ETH_SS_STATS`: the set of strings that name the driver's statistics.
const STRING_SET_STATISTICS: u32 = 1;
/// `ETH_GSTRING_LEN`.
const STRING_BYTES: usize = 32;
/// More statistics than this are not asked for: the largest drivers have a few thousand.
const STATISTICS_LIMIT: usize = 32_768;
/// `SPEED_UNKNOWN`, and its 16-bit form in the old request.
const SPEED_UNKNOWN: u32 = u32::MAX;
const SPEED_UNKNOWN_OLD: u32 = 0xffff;

/// What `ethtool -i` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverInfo {
    /// The driver's name, such as `veth`, `virtio_net` or `ixgbe`.
    pub driver: String,
    /// The driver's version.
    pub version: String,
    /// The version of the device's firmware; empty when there is none.
    pub firmware: String,
    /// Where the device sits, such as a PCI address; empty for virtual ones.
    pub bus: String,
}

/// Whether a link can send and receive at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    /// One direction at a time.
    Half,
    /// Both directions at once.
    Full,
    /// The driver does not say.
    Unknown,
}

/// Speed and duplex of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSettings {
    /// Megabits a second; none when the driver does not know (no carrier, or virtual).
    pub megabits: Option<u32>,
    /// Half or full duplex.
    pub duplex: Duplex,
    /// Whether speed and duplex were negotiated.
    pub autonegotiation: bool,
}

/// How many queues ("channels") a device uses, and could use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Channels {
    /// Largest number of receive-only queues.
    pub max_rx: u32,
    /// Largest number of transmit-only queues.
    pub max_tx: u32,
    /// Largest number of queues for both.
    pub max_combined: u32,
    /// Receive-only queues in use.
    pub rx: u32,
    /// Transmit-only queues in use.
    pub tx: u32,
    /// Queues for other purposes in use.
    pub other: u32,
    /// Queues for both in use.
    pub combined: u32,
}

impl Channels {
    /// All queues on which packets are received now.
    pub fn receive_queues(&self) -> u32 {
        self.rx.saturating_add(self.combined)
    }

    /// All queues on which packets are sent now.
    pub fn transmit_queues(&self) -> u32 {
        self.tx.saturating_add(self.combined)
    }
}

/// Work which the device or the kernel does for a whole flow or for every packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offload {
    /// Receive checksums are verified by the device.
    RxChecksum,
    /// Transmit checksums are left to the device. On veth: packets travel without a checksum, so
    /// that who reads raw frames there (AF_XDP) must have it off at the sender.
    TxChecksum,
    /// Packets may consist of several pieces of memory.
    ScatterGather,
    /// The device cuts large TCP segments.
    TcpSegmentation,
    /// The kernel cuts large packets just before the driver.
    GenericSegmentation,
    /// The kernel joins received packets of a flow. On veth it also switches NAPI on, without which
    /// XDP cannot redirect to the peer.
    GenericReceive,
    /// The device joins received TCP segments.
    LargeReceive,
    /// The device takes VLAN tags off received frames.
    RxVlan,
    /// The device puts VLAN tags into sent frames.
    TxVlan,
}

/// How the kernel is asked about an offload.
enum Access {
    /// By two requests of its own: read and write.
    Own(u32, u32),
    /// By a bit in the word of flags.
    Flag(u32),
}

impl Offload {
    /// Every offload this crate knows.
    pub const ALL: [Offload; 9] = [
        Offload::RxChecksum,
        Offload::TxChecksum,
        Offload::ScatterGather,
        Offload::TcpSegmentation,
        Offload::GenericSegmentation,
        Offload::GenericReceive,
        Offload::LargeReceive,
        Offload::RxVlan,
        Offload::TxVlan,
    ];

    /// The name ethtool's man page gives it.
    pub fn name(self) -> &'static str {
        match self {
            Offload::RxChecksum => "rx",
            Offload::TxChecksum => "tx",
            Offload::ScatterGather => "sg",
            Offload::TcpSegmentation => "tso",
            Offload::GenericSegmentation => "gso",
            Offload::GenericReceive => "gro",
            Offload::LargeReceive => "lro",
            Offload::RxVlan => "rxvlan",
            Offload::TxVlan => "txvlan",
        }
    }

    fn access(self) -> Access {
        match self {
            Offload::RxChecksum => Access::Own(0x14, 0x15),
            Offload::TxChecksum => Access::Own(0x16, 0x17),
            Offload::ScatterGather => Access::Own(0x18, 0x19),
            Offload::TcpSegmentation => Access::Own(0x1e, 0x1f),
            Offload::GenericSegmentation => Access::Own(0x23, 0x24),
            Offload::GenericReceive => Access::Own(0x2b, 0x2c),
            Offload::LargeReceive => Access::Flag(1 << 15),
            Offload::RxVlan => Access::Flag(1 << 8),
            Offload::TxVlan => Access::Flag(1 << 7),
        }
    }
}

/// A client of the ethtool ioctl.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Opens a client for the network namespace of the calling thread.
    pub fn open() -> Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
            .map_err(|errno| Error::system("open a socket for ethtool", errno))?;
        Ok(Ethtool { socket })
    }

    /// The driver of an interface.
    pub fn driver(&self, name: &str) -> Result<DriverInfo> {
        let answer = self.ask(
            &format!("ask for the driver of {name}"),
            name,
            &[ETHTOOL_GDRVINFO],
            196,
        )?;
        let field = |offset: usize| {
            text(
                answer
                    .bytes()
                    .get(offset..offset.saturating_add(32))
                    .unwrap_or_default(),
            )
        };
        Ok(DriverInfo {
            driver: field(4),
            version: field(36),
            firmware: field(68),
            bus: field(100),
        })
    }

    /// Speed and duplex of an interface, by the new request or, on old kernels, the old one.
    pub fn link_settings(&self, name: &str) -> Result<LinkSettings> {
        match self.link_settings_new(name) {
            Err(error) if error.is_unsupported() => self.link_settings_old(name),
            answer => answer,
        }
    }

    /// `struct ethtool_link_settings`: the first call tells, as a negative number, how many words
    /// each of the three bitmaps behind it has; the second call must name that number.
    fn link_settings_new(&self, name: &str) -> Result<LinkSettings> {
        let asked = format!("ask for the speed of {name}");
        const BITMAP_WORDS: usize = 15;
        let shake = self.ask(&asked, name, &[ETHTOOL_GLINKSETTINGS], 48)?;
        let words = shake
            .bytes()
            .get(BITMAP_WORDS)
            .copied()
            .unwrap_or(0)
            .cast_signed();
        if words >= 0 {
            return Err(Error::malformed(asked, "no length of the link modes"));
        }
        let mut request = GuardedBuffer::new(48 + 3 * 4 * usize::from(words.unsigned_abs()))
            .map_err(|source| Error::system(asked.clone(), source))?;
        write_words(&mut request, &[ETHTOOL_GLINKSETTINGS]);
        if let Some(byte) = request.bytes_mut().get_mut(BITMAP_WORDS) {
            *byte = words.unsigned_abs();
        }
        self.call(&asked, name, &mut request)?;
        let bytes = request.bytes();
        let speed = u32_at(bytes, 4).filter(|speed| *speed != SPEED_UNKNOWN && *speed != 0);
        Ok(LinkSettings {
            megabits: speed,
            duplex: duplex(bytes.get(8)),
            autonegotiation: bytes.get(11) == Some(&1),
        })
    }

    /// `struct ethtool_cmd`: the speed is cut in two halves of 16 bits.
    fn link_settings_old(&self, name: &str) -> Result<LinkSettings> {
        let answer = self.ask(
            &format!("ask for the speed of {name}"),
            name,
            &[ETHTOOL_GSET],
            44,
        )?;
        let bytes = answer.bytes();
        let half = |offset: usize| u32::from(u16_at(bytes, offset).unwrap_or(0));
        let speed = (half(28) << 16) | half(12);
        let known = ![0, SPEED_UNKNOWN, SPEED_UNKNOWN_OLD].contains(&speed);
        Ok(LinkSettings {
            megabits: known.then_some(speed),
            duplex: duplex(bytes.get(14)),
            autonegotiation: bytes.get(18) == Some(&1),
        })
    }

    /// Whether an offload is on.
    pub fn offload(&self, name: &str, offload: Offload) -> Result<bool> {
        let asked = format!("ask for offload {} of {name}", offload.name());
        match offload.access() {
            Access::Own(read, _) => Ok(self.word(&asked, name, read)? != 0),
            Access::Flag(flag) => Ok(self.word(&asked, name, ETHTOOL_GFLAGS)? & flag != 0),
        }
    }

    /// Switches an offload on or off, and makes sure that it is: the kernel also says yes to what
    /// another setting forbids.
    pub fn set_offload(&self, name: &str, offload: Offload, on: bool) -> Result<()> {
        let asked = format!(
            "switch offload {} of {name} {}",
            offload.name(),
            if on { "on" } else { "off" }
        );
        match offload.access() {
            Access::Own(_, write) => self.ask(&asked, name, &[write, u32::from(on)], 8)?,
            Access::Flag(flag) => {
                let flags = self.word(&asked, name, ETHTOOL_GFLAGS)?;
                let wanted = if on { flags | flag } else { flags & !flag };
                self.ask(&asked, name, &[ETHTOOL_SFLAGS, wanted], 8)?
            }
        };
        if self.offload(name, offload)? == on {
            return Ok(());
        }
        Err(Error::invalid(
            asked,
            "another setting of the device forbids it",
        ))
    }

    /// How many queues a device uses.
    pub fn channels(&self, name: &str) -> Result<Channels> {
        let asked = format!("ask for the queues of {name}");
        let answer = self.ask(&asked, name, &[ETHTOOL_GCHANNELS], 36)?;
        let word = |position: usize| u32_at(answer.bytes(), position * 4).unwrap_or(0);
        Ok(Channels {
            max_rx: word(1),
            max_tx: word(2),
            max_combined: word(4),
            rx: word(5),
            tx: word(6),
            other: word(7),
            combined: word(8),
        })
    }

    /// Sets how many queues a device uses: `rx`, `tx`, `other` and `combined` of `wanted`. The
    /// kernel refuses to take queues away on which an AF_XDP socket is bound.
    pub fn set_channels(&self, name: &str, wanted: &Channels) -> Result<()> {
        let asked = format!(
            "set the queues of {name} to {} rx, {} tx, {} combined",
            wanted.rx, wanted.tx, wanted.combined
        );
        let request = [
            ETHTOOL_SCHANNELS,
            0,
            0,
            0,
            0,
            wanted.rx,
            wanted.tx,
            wanted.other,
            wanted.combined,
        ];
        self.ask(&asked, name, &request, 36).map(|_| ())
    }

    /// The driver's own statistics, by name, in the driver's order; empty when it has none.
    pub fn statistics(&self, name: &str) -> Result<Vec<(String, u64)>> {
        let asked = format!("ask for the driver statistics of {name}");
        let count = match self.statistics_count(&asked, name) {
            Ok(count) => count.min(STATISTICS_LIMIT),
            Err(error) if error.is_unsupported() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        let strings = self.ask(
            &asked,
            name,
            &[ETHTOOL_GSTRINGS, STRING_SET_STATISTICS],
            12 + STRING_BYTES * STATISTICS_LIMIT,
        )?;
        let values = self.ask(&asked, name, &[ETHTOOL_GSTATS], 8 + 8 * STATISTICS_LIMIT)?;
        Ok(pair_up(strings.bytes(), values.bytes()))
    }

    fn statistics_count(&self, asked: &str, name: &str) -> Result<usize> {
        // `struct ethtool_sset_info`: command, reserved, 64-bit mask of sets, one count a set.
        let request = [ETHTOOL_GSSET_INFO, 0, 1 << STRING_SET_STATISTICS, 0];
        let answer = self.ask(asked, name, &request, 24)?;
        let mask = u64_at(answer.bytes(), 8).unwrap_or(0);
        if mask & (1 << STRING_SET_STATISTICS) == 0 {
            return Ok(0);
        }
        Ok(u32_at(answer.bytes(), 16).unwrap_or(0) as usize)
    }

    /// The Ethernet address with which the device was made; none when it has none.
    pub fn permanent_mac(&self, name: &str) -> Result<Option<MacAddress>> {
        let asked = format!("ask for the permanent MAC of {name}");
        let answer = self.ask(&asked, name, &[ETHTOOL_GPERMADDR, 32], 8 + 32)?;
        if u32_at(answer.bytes(), 4) != Some(6) {
            return Ok(None);
        }
        let mac: Option<MacAddress> = answer
            .bytes()
            .get(8..14)
            .and_then(|mac| mac.try_into().ok());
        Ok(mac.filter(|mac| *mac != [0; 6]))
    }

    /// A request whose answer is the second word (`struct ethtool_value`).
    fn word(&self, asked: &str, name: &str, command: u32) -> Result<u32> {
        let answer = self.ask(asked, name, &[command], 8)?;
        Ok(u32_at(answer.bytes(), 4).unwrap_or(0))
    }

    fn ask(&self, asked: &str, name: &str, words: &[u32], room: usize) -> Result<GuardedBuffer> {
        let mut buffer = GuardedBuffer::new(room).map_err(|source| Error::system(asked, source))?;
        write_words(&mut buffer, words);
        self.call(asked, name, &mut buffer)?;
        Ok(buffer)
    }

    fn call(&self, asked: &str, name: &str, buffer: &mut GuardedBuffer) -> Result<()> {
        let name = valid_name(asked, name)?;
        sys::ethtool(self.socket.as_fd(), name, buffer)
            .map_err(|source: io::Error| Error::system(asked, source))
    }
}

fn write_words(buffer: &mut GuardedBuffer, words: &[u32]) {
    for (place, word) in buffer.bytes_mut().chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
}

fn duplex(byte: Option<&u8>) -> Duplex {
    match byte {
        Some(0) => Duplex::Half,
        Some(1) => Duplex::Full,
        _ => Duplex::Unknown,
    }
}

/// Joins the answers of `ETHTOOL_GSTRINGS` (command, set, count, strings) and `ETHTOOL_GSTATS`
/// (command, count, values). When the driver's set changed in between, the shorter one counts.
fn pair_up(strings: &[u8], values: &[u8]) -> Vec<(String, u64)> {
    let named = u32_at(strings, 8).unwrap_or(0) as usize;
    let counted = u32_at(values, 4).unwrap_or(0) as usize;
    let names = strings
        .get(12..)
        .unwrap_or_default()
        .chunks_exact(STRING_BYTES)
        .take(named);
    let numbers = values
        .get(8..)
        .unwrap_or_default()
        .chunks_exact(8)
        .take(counted);
    names
        .zip(numbers)
        .map(|(name, value)| (text(name), u64_at(value, 0).unwrap_or(0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn old_and_new_request_tell_the_same_speed() {
        use crate::route::VethPair;
        if let Err(why) = crate::lab::preflight() {
            println!("skipped: {why}");
            return;
        }
        let namespace = crate::netns::NetNs::new().unwrap();
        let pair = VethPair {
            name: "a",
            peer_name: "b",
            ..VethPair::default()
        };
        namespace.route().unwrap().create_veth(&pair).unwrap();
        let client = namespace.run(Ethtool::open).unwrap().unwrap();
        let old = client.link_settings_old("a").unwrap();
        assert_eq!(old, client.link_settings_new("a").unwrap());
        assert_eq!(old.megabits, Some(10_000));
    }

    #[test]
    fn names_and_values_are_joined() {
        let mut strings = vec![0; 12];
        strings[8] = 2;
        strings.extend_from_slice(b"rx_one\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        strings.extend_from_slice(&[b'x'; STRING_BYTES]);
        let mut values = vec![0; 8];
        values[4] = 9;
        values.extend_from_slice(&5u64.to_ne_bytes());
        values.extend_from_slice(&6u64.to_ne_bytes());
        let joined = pair_up(&strings, &values);
        assert_eq!(
            joined,
            [("rx_one".to_owned(), 5), ("x".repeat(STRING_BYTES), 6)]
        );
    }

    proptest! {
        #[test]
        fn lying_counts_do_not_panic(
            strings in prop::collection::vec(any::<u8>(), 0..200),
            values in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let most = (strings.len() / STRING_BYTES).min(values.len() / 8);
            prop_assert!(pair_up(&strings, &values).len() <= most);
        }
    }
}
