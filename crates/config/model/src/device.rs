//! What an interface is attached to: the `device` section in types.
//!
//! A device cannot change under a living interface. The plan takes the interface off and makes
//! it anew when anything here differs, so there is no step for "set queues".

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::bond::Bond;
use crate::linux::LinuxTap;
use crate::scalar::{Ipv4Range, MacAddr, PortRange};
use crate::sub_interface::SubInterface;
use crate::vxlan::Vxlan;

/// The thing behind an interface that packets come from and go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "driver",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Device {
    /// AF_XDP sockets on a Linux network device.
    AfXdp {
        /// The Linux name of the network device.
        name: String,
        /// How many queues of it are served, from queue 0 upwards.
        #[serde(default = "one_queue")]
        queues: u16,
        /// How the kernel hands packets over.
        #[serde(default)]
        mode: XdpMode,
        /// Take the device even if this machine is managed through it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        allow_management: bool,
    },
    /// A TAP device that is made when the interface is created.
    Tap {
        /// The Linux name it gets.
        name: String,
        /// The MAC address of the Linux end; made up by the kernel when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_mac: Option<MacAddr>,
    },
    /// The Linux end of another interface. In the file it has a section of its own, `linux`.
    LinuxTap(LinuxTap),
    /// Capture files: read what arrives, write what leaves.
    Pcap {
        /// Packets that arrive; nothing arrives when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<PathBuf>,
        /// Where packets that leave are written; they vanish, counted, when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<PathBuf>,
    },
    /// One end of a shared-memory connection to another program: VPP, DPDK, another Weir.
    Memif(Memif),
    /// Nothing arrives, and all that leaves vanishes, counted.
    Null,
    /// Packets made in memory from templates; what leaves vanishes, counted.
    Generator {
        /// The streams, which take turns.
        streams: Vec<Stream>,
    },
    /// Nothing at all: the interface is always up, and its addresses answer. In the file it has a
    /// section of its own, `loopbacks`.
    Loopback,
    /// The share of another interface that its tags say. In the file it stands under that one, in
    /// `sub-interfaces`.
    SubInterface(SubInterface),
    /// What comes out of a pseudowire. In the file it has a section of its own, `pseudowires`.
    Pseudowire,
    /// Several other interfaces as one. In the file it has a section of its own, `bondethernets`.
    Bond(Bond),
    /// Frames inside of UDP packets to another router. In the file it has a section of its own, `vxlan_tunnels`.
    Vxlan(Vxlan),
}

fn one_queue() -> u16 {
    1
}

impl Device {
    /// The driver's word in the file.
    #[must_use]
    pub fn driver(&self) -> &'static str {
        match self {
            Self::AfXdp { .. } => "af-xdp",
            Self::Tap { .. } => "tap",
            Self::LinuxTap(_) => "linux-tap",
            Self::Pcap { .. } => "pcap",
            Self::Memif(_) => "memif",
            Self::Null => "null",
            Self::Generator { .. } => "generator",
            Self::Loopback => "loopback",
            Self::SubInterface(_) => "sub-interface",
            Self::Bond(_) => "bond",
            Self::Pseudowire => "pseudowire",
            Self::Vxlan(_) => "vxlan",
        }
    }

    /// The Linux network device it uses or makes, if it does.
    #[must_use]
    pub fn linux_name(&self) -> Option<&str> {
        match self {
            Self::AfXdp { name, .. }
            | Self::Tap { name, .. }
            | Self::LinuxTap(LinuxTap { name, .. }) => Some(name),
            Self::Pcap { .. }
            | Self::Memif(_)
            | Self::Null
            | Self::Generator { .. }
            | Self::Loopback
            | Self::SubInterface(_)
            | Self::Pseudowire
            | Self::Bond(_)
            | Self::Vxlan(_) => None,
        }
    }

    /// How many receive queues it has.
    #[must_use]
    pub fn queues(&self) -> u16 {
        match self {
            Self::AfXdp { queues, .. } | Self::Memif(Memif { queues, .. }) => *queues,
            Self::Loopback
            | Self::SubInterface(_)
            | Self::Bond(_)
            | Self::Pseudowire
            | Self::Vxlan(_) => 0,
            _ => 1,
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.driver())?;
        match self {
            Self::AfXdp { name, queues, .. } if *queues > 1 => {
                write!(f, " {name}, {queues} queues")
            }
            Self::AfXdp { name, .. }
            | Self::Tap { name, .. }
            | Self::LinuxTap(LinuxTap { name, .. }) => write!(f, " {name}"),
            Self::Pcap { input, output } => {
                if let Some(input) = input {
                    write!(f, " from {}", input.display())?;
                }
                if let Some(output) = output {
                    write!(f, " to {}", output.display())?;
                }
                Ok(())
            }
            Self::Memif(memif) => {
                write!(
                    f,
                    " {} {} at {}",
                    memif.role.word(),
                    memif.id,
                    memif.socket.display()
                )?;
                if memif.queues > 1 {
                    write!(f, ", {} queues", memif.queues)
                } else {
                    Ok(())
                }
            }
            Self::SubInterface(sub) => sub.fmt(f),
            Self::Bond(bond) => write!(f, " {bond}"),
            Self::Vxlan(tunnel) => write!(f, " {tunnel}"),
            Self::Null | Self::Loopback | Self::Pseudowire => Ok(()),
            Self::Generator { streams } => write!(f, " with {} streams", streams.len()),
        }
    }
}

/// How one end of a memif connection is to be. Frames are Ethernet frames.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Memif {
    /// Where both ends meet: an absolute path, or `@NAME` in the network namespace's own space.
    pub socket: PathBuf,
    /// Which of the interfaces at that socket.
    #[serde(default)]
    pub id: u32,
    /// Which end this is.
    pub role: MemifRole,
    /// What both ends must know, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Queues in each direction.
    #[serde(default = "one_queue")]
    pub queues: u16,
    /// Descriptors of each ring; the slave's counts.
    #[serde(default = "Memif::default_ring_size")]
    pub ring_size: u16,
    /// As slave: bytes of each buffer that the master may fill.
    #[serde(default = "Memif::default_buffer_size")]
    pub buffer_size: u16,
}

impl Memif {
    /// Stands for a secret that is not shown.
    pub const HIDDEN: &str = "hidden";

    /// VPP's default.
    #[must_use]
    pub const fn default_ring_size() -> u16 {
        1024
    }

    /// VPP's default.
    #[must_use]
    pub const fn default_buffer_size() -> u16 {
        2048
    }

    /// The name in the abstract space, when the socket is one of those.
    #[must_use]
    pub fn abstract_name(&self) -> Option<&str> {
        self.socket
            .to_str()
            .and_then(|socket| socket.strip_prefix('@'))
    }
}

impl std::fmt::Debug for Memif {
    /// Without the secret: what is logged for a fault tells nobody.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memif")
            .field("socket", &self.socket)
            .field("id", &self.id)
            .field("role", &self.role)
            .field("secret", &self.secret.as_ref().map(|_| "given"))
            .field("queues", &self.queues)
            .field("ring_size", &self.ring_size)
            .field("buffer_size", &self.buffer_size)
            .finish()
    }
}

/// The two ends of a memif connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemifRole {
    /// Listens, and copies frames out of and into the memory of the slave.
    Master,
    /// Connects, and shares its packet memory with the master.
    Slave,
}

impl MemifRole {
    /// The word in the file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Slave => "slave",
        }
    }
}

/// How AF_XDP attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// The best that the driver offers: zero-copy, else native, else generic.
    #[default]
    Auto,
    /// Zero-copy or refuse.
    ZeroCopy,
    /// In the driver, with a copy, or refuse.
    Native,
    /// In the kernel's general path: works everywhere, slow.
    Generic,
}

/// One template of the generator and what varies in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Stream {
    /// Its name in counters and messages.
    pub name: String,
    /// Packets until it ends; 0 = endless.
    #[serde(default)]
    pub limit: u64,
    /// Packets a second; 0 = as fast as it goes.
    #[serde(default)]
    pub rate: u64,
    /// Bytes of each frame, Ethernet header included, frame check sequence not.
    #[serde(default = "Stream::default_size")]
    pub size: u16,
    /// Where the frames claim to come from.
    #[serde(default = "Stream::default_source_mac")]
    pub source_mac: MacAddr,
    /// Where they go; the interface's own address when absent, so that it routes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_mac: Option<MacAddr>,
    /// Source addresses, walked through in turn.
    pub source: Ipv4Range,
    /// Destination addresses, walked through in turn.
    pub destination: Ipv4Range,
    /// Source ports, walked through in turn; unused with icmp.
    #[serde(default = "Stream::default_source_port")]
    pub source_port: PortRange,
    /// Destination ports, walked through in turn; unused with icmp.
    #[serde(default = "Stream::default_destination_port")]
    pub destination_port: PortRange,
    /// What follows the IPv4 header.
    #[serde(default)]
    pub protocol: StreamProtocol,
}

impl Stream {
    /// Frames of 60 bytes: the shortest Ethernet frame without its check sequence.
    #[must_use]
    pub const fn default_size() -> u16 {
        60
    }

    /// A locally administered address that no NIC carries by itself.
    #[must_use]
    pub const fn default_source_mac() -> MacAddr {
        MacAddr([0x02, 0x77, 0x65, 0x69, 0x72, 0x01])
    }

    /// Port 1024, the first that is not reserved.
    #[must_use]
    pub const fn default_source_port() -> PortRange {
        PortRange {
            first: 1024,
            last: 1024,
        }
    }

    /// Port 9, discard (RFC 863).
    #[must_use]
    pub const fn default_destination_port() -> PortRange {
        PortRange { first: 9, last: 9 }
    }
}

/// The protocol of a generated packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamProtocol {
    /// UDP datagrams.
    #[default]
    Udp,
    /// TCP segments without a connection.
    Tcp,
    /// ICMP echo requests.
    Icmp,
}
