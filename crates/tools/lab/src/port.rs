//! The generator's ports: opened from a short text, with an address of their own.
//!
//! `null`, `pcap:OUT`, `memif:SOCKET`, `tap:NAME`, `afxdp:DEVICE` or `DEVICE` alone; options follow
//! after commas. Opening and closing happen on the control thread, the queues belong to the thread
//! that runs the generator.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_buf::Pool;
use weir_memif::{MemifConfig, MemifPort, Role, Socket};
use weir_netlink::ethtool::{Ethtool, Offload};
use weir_port::null::NullPort;
use weir_port::{Port, RxQueue, TxQueue};
use weir_wire::MacAddr;

use crate::error::LabError;

/// What a port is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// Discards what is sent; receives nothing.
    Null,
    /// Writes a capture file.
    Pcap(PathBuf),
    /// Shared memory with another program.
    Memif {
        /// A path, or `@name`.
        socket: String,
        /// The interface's number at the socket.
        id: u32,
        /// Whether this end listens.
        master: bool,
        /// Descriptors of each ring.
        ring: usize,
    },
    /// A TAP device that is created.
    Tap(String),
    /// A network device by AF_XDP.
    Afxdp(String, weir_afxdp::Mode),
}

/// A port as it is written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// What it is.
    pub device: Device,
    /// Its MAC address; the device's own when there is none.
    pub mac: Option<MacAddr>,
    /// IPv4 address and prefix length: ARP requests for it are answered.
    pub address: Option<(Ipv4Addr, u8)>,
    /// IPv6 address and prefix length: neighbor solicitations for it are answered.
    pub address6: Option<(Ipv6Addr, u8)>,
    /// The next hop whose MAC address packets for `gateway` get.
    pub gateway: Option<std::net::IpAddr>,
    /// Take the device even if this machine is reached through it.
    pub allow_management: bool,
}

const HELP: &str = "a port is null, pcap:FILE, memif:SOCKET[,id=N][,role=master|slave][,ring=N], tap:NAME or [afxdp:]DEVICE[,mode=auto|native|generic|zero-copy][,allow-management], \
each with [,mac=MAC][,address=ADDRESS/LENGTH][,gateway=ADDRESS]";

fn prefixed<A: std::str::FromStr>(text: &str, most: u8) -> Option<(A, u8)> {
    let (address, length) = text.split_once('/')?;
    let length: u8 = length.parse().ok().filter(|length| *length <= most)?;
    Some((address.parse().ok()?, length))
}

impl PortSpec {
    /// A port without addresses.
    #[must_use]
    pub fn new(device: Device) -> PortSpec {
        PortSpec {
            device,
            mac: None,
            address: None,
            address6: None,
            gateway: None,
            allow_management: false,
        }
    }

    /// Reads a port's text.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn parse(text: &str) -> Result<PortSpec, String> {
        let mut words = text.split(',');
        let first = words.next().unwrap_or_default();
        let (kind, name) = first.split_once(':').unwrap_or(("afxdp", first));
        let device = match (kind, name) {
            ("afxdp", "null") => Device::Null,
            (_, "") => return Err(format!("{text}: {HELP}")),
            ("pcap", name) => Device::Pcap(name.into()),
            ("memif", name) => Device::Memif {
                socket: name.to_owned(),
                id: 0,
                master: false,
                ring: 1024,
            },
            ("tap", name) => Device::Tap(name.to_owned()),
            ("afxdp", name) => Device::Afxdp(name.to_owned(), weir_afxdp::Mode::Auto),
            _ => return Err(format!("{text}: {HELP}")),
        };
        let mut spec = PortSpec::new(device);
        for word in words {
            spec.option(word)
                .ok_or_else(|| format!("{word} in {text}: {HELP}"))?;
        }
        Ok(spec)
    }

    fn option(&mut self, word: &str) -> Option<()> {
        if word == "allow-management" && matches!(self.device, Device::Afxdp(..)) {
            self.allow_management = true;
            return Some(());
        }
        let (key, value) = word.split_once('=')?;
        match (key, &mut self.device) {
            ("id", Device::Memif { id, .. }) => *id = value.parse().ok()?,
            ("ring", Device::Memif { ring, .. }) => *ring = value.parse().ok()?,
            ("role", Device::Memif { master, .. }) => {
                *master = match value {
                    "master" => true,
                    "slave" => false,
                    _ => return None,
                }
            }
            ("mode", Device::Afxdp(_, mode)) => {
                *mode = match value {
                    "auto" => weir_afxdp::Mode::Auto,
                    "native" => weir_afxdp::Mode::Native,
                    "generic" => weir_afxdp::Mode::Generic,
                    "zero-copy" => weir_afxdp::Mode::ZeroCopy,
                    _ => return None,
                }
            }
            ("mac", _) => self.mac = Some(value.parse().ok()?),
            ("address", _) if value.contains(':') => self.address6 = Some(prefixed(value, 128)?),
            ("address", _) => self.address = Some(prefixed(value, 32)?),
            ("gateway", _) => self.gateway = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }

    /// Opens the port; its packets come from `pool`.
    ///
    /// # Errors
    /// What the device or the operating system refused, in a sentence.
    pub fn open(&self, pool: &Pool) -> Result<LabPort, LabError> {
        let watched = match &self.device {
            Device::Afxdp(name, _) => Watched::new(name),
            _ => None,
        };
        let port: Box<dyn Port> = match &self.device {
            Device::Null => Box::new(NullPort::new(1)),
            Device::Pcap(path) => Box::new(weir_pcap::PcapPort::open(None, Some(Path::new(path)))?),
            Device::Memif {
                socket,
                id,
                master,
                ring,
            } => {
                let role = if *master { Role::Master } else { Role::Slave };
                let socket = match socket.strip_prefix('@') {
                    Some(name) => Socket::Abstract(name.to_owned()),
                    None => Socket::Path(socket.into()),
                };
                let config = MemifConfig {
                    ring_size: *ring,
                    ..MemifConfig::new(role, socket, *id)
                };
                Box::new(MemifPort::open(&config, pool)?)
            }
            Device::Tap(name) => {
                Box::new(weir_tap::TapPort::open(&weir_tap::TapConfig::new(name))?)
            }
            Device::Afxdp(name, mode) => {
                let config = weir_afxdp::AfxdpConfig {
                    mode: *mode,
                    ..weir_afxdp::AfxdpConfig::new(name)
                };
                Box::new(weir_afxdp::AfxdpPort::open(&config, pool)?)
            }
        };
        Ok(LabPort {
            watched,
            ..LabPort::new(port, self.clone())
        })
    }
}

/// An open port.
pub struct LabPort {
    pub(crate) port: Box<dyn Port>,
    pub(crate) spec: PortSpec,
    pub(crate) mac: MacAddr,
    pub(crate) rx: Vec<Box<dyn RxQueue>>,
    pub(crate) tx: Vec<Box<dyn TxQueue>>,
    /// Its network device, if it has one.
    watched: Option<Watched>,
}

/// Who is asked whether a device is still there.
struct Watched {
    device: String,
    /// Of the device's network namespace.
    ethtool: Ethtool,
}

impl Watched {
    fn new(device: &str) -> Option<Watched> {
        Some(Watched {
            device: device.to_owned(),
            ethtool: Ethtool::open().ok()?,
        })
    }
}

impl LabPort {
    pub(crate) fn new(mut port: Box<dyn Port>, spec: PortSpec) -> LabPort {
        let mac = spec
            .mac
            .or_else(|| port.mac())
            .unwrap_or(MacAddr([2, 0, 0, 0, 0, 1]));
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for pair in port.take_queues() {
            rx.extend(pair.rx);
            tx.extend(pair.tx);
        }
        LabPort {
            port,
            spec,
            mac,
            rx,
            tx,
            watched: None,
        }
    }

    /// Name, driver and mode, for reports.
    #[must_use]
    pub fn describe(&self) -> String {
        let capabilities = self.port.capabilities();
        format!(
            "{} ({}, {})",
            self.port.device(),
            capabilities.driver,
            capabilities.mode
        )
    }

    /// Whether the device was deleted. One system call; a socket that was opened just before notices nothing.
    pub(crate) fn is_gone(&self) -> bool {
        self.watched.as_ref().is_some_and(|watched| {
            let answer = watched.ethtool.offload(&watched.device, Offload::RxVlan);
            answer.is_err_and(|error| error.is_not_found())
        })
    }

    /// Waits until the link is up.
    ///
    /// # Errors
    /// When it is still down after `limit`.
    pub fn wait_for_link(&mut self, limit: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + limit;
        while !self.port.link().up {
            if Instant::now() >= deadline {
                return Err(LabError::LinkDown {
                    port: self.port.device().to_owned(),
                    after: limit,
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read() {
        let spec =
            PortSpec::parse("memif:@a,id=3,role=master,address=10.0.0.1/24,mac=02:00:00:00:00:09")
                .unwrap();
        assert_eq!(
            spec.device,
            Device::Memif {
                socket: "@a".into(),
                id: 3,
                master: true,
                ring: 1024
            }
        );
        assert_eq!(spec.address, Some((Ipv4Addr::new(10, 0, 0, 1), 24)));
        assert_eq!(PortSpec::parse("null").unwrap().device, Device::Null);
        assert_eq!(
            PortSpec::parse("eth0").unwrap().device,
            Device::Afxdp("eth0".into(), weir_afxdp::Mode::Auto)
        );
        for wrong in [
            "",
            "pcap:",
            "eth0,id=3",
            "eth0,mode=x",
            "eth0,address=10.0.0.1",
            "x:y",
            "null,address=10.0.0.1/33",
        ] {
            assert!(PortSpec::parse(wrong).is_err(), "{wrong}");
        }
    }
}
