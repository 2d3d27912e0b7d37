//! From the configuration's `device` to an open port.

use weir_buf::Pool;
use weir_config::{Device, Interface, Memif, MemifRole, StreamProtocol, XdpMode};
use weir_memif::{MemifConfig, MemifPort, MemifWatch, Role, Socket};
use weir_netlink::netns::NetNs;
use weir_port::generator::{Change, Field, GeneratorPort, Stream};
use weir_port::null::NullPort;
use weir_port::{OpenError, Port};
use weir_wire::{EtherType, IpProtocol, MacAddr};

/// An open port, and what is asked of it beyond what all ports can be asked.
pub(crate) struct Opened {
    pub(crate) port: Box<dyn Port>,
    /// Of a memif: who its peer is.
    pub(crate) peer: Option<MemifWatch>,
}

/// Opens what an interface is attached to; `None` when it has no device, or is a loopback.
///
/// `share` is the number of buffers that each queue may lend. `own` is the address that the interface has when neither the configuration nor the device says.
pub(crate) fn open(
    interface: &Interface,
    own: MacAddr,
    pool: &Pool,
    share: usize,
) -> Result<Option<Opened>, OpenError> {
    let mut peer = None;
    let Some(device) = &interface.device else {
        return Ok(None);
    };
    let port: Box<dyn Port> = match device {
        Device::AfXdp {
            name, queues, mode, ..
        } => {
            let mode = match mode {
                XdpMode::Auto => weir_afxdp::Mode::Auto,
                XdpMode::ZeroCopy => weir_afxdp::Mode::ZeroCopy,
                XdpMode::Native => weir_afxdp::Mode::Native,
                XdpMode::Generic => weir_afxdp::Mode::Generic,
            };
            let queues = Some(usize::from(*queues));
            let config = weir_afxdp::AfxdpConfig {
                mode,
                queues,
                share: Some(share),
                ..weir_afxdp::AfxdpConfig::new(name)
            };
            Box::new(weir_afxdp::AfxdpPort::open(&config, pool)?)
        }
        Device::Loopback
        | Device::SubInterface(_)
        | Device::Bond(_)
        | Device::Pseudowire
        | Device::Vxlan(_) => return Ok(None),
        Device::Tap { name, host_mac } => {
            let mac = host_mac.map(|mac| MacAddr(mac.0));
            let config = weir_tap::TapConfig {
                mtu: u32::from(interface.mtu),
                mac,
                ..weir_tap::TapConfig::new(name)
            };
            Box::new(weir_tap::TapPort::open(&config)?)
        }
        Device::LinuxTap(tap) => {
            let config = weir_tap::TapConfig {
                mtu: u32::from(interface.mtu),
                mac: Some(own),
                persistent: tap.persistent,
                ..weir_tap::TapConfig::new(&tap.name)
            };
            Box::new(match &tap.namespace {
                None => weir_tap::TapPort::open(&config)?,
                Some(name) => {
                    let failed = |error| OpenError(format!("{}: {error}", tap.name));
                    let namespace = NetNs::open_named(name).map_err(failed)?;
                    let open = || weir_tap::TapPort::open(&config);
                    namespace.run(open).map_err(failed)??
                }
            })
        }
        Device::Pcap { input, output } => Box::new(weir_pcap::PcapPort::open(
            input.as_deref(),
            output.as_deref(),
        )?),
        Device::Memif(memif) => {
            let port = MemifPort::open(&memif_config(memif), pool)?;
            peer = Some(port.watch());
            Box::new(port)
        }
        Device::Null => Box::new(NullPort::new(1)),
        Device::Generator { streams } => {
            let to = interface.mac.map_or(own, |mac| MacAddr(mac.0));
            Box::new(GeneratorPort::new(
                streams
                    .iter()
                    .filter_map(|wanted| stream(wanted, to))
                    .collect(),
                1,
                seed(),
            ))
        }
    };
    Ok(Some(Opened { port, peer }))
}

/// A memif as the driver has it. The pool is what a slave shares, so its size is not said here.
fn memif_config(memif: &Memif) -> MemifConfig {
    let role = match memif.role {
        MemifRole::Master => Role::Master,
        MemifRole::Slave => Role::Slave,
    };
    let socket = match memif.abstract_name() {
        Some(name) => Socket::Abstract(name.to_owned()),
        None => Socket::Path(memif.socket.clone()),
    };
    let queues = usize::from(memif.queues);
    let (ring_size, buffer_size) = (usize::from(memif.ring_size), usize::from(memif.buffer_size));
    let secret = memif.secret.as_deref().map(padded);
    MemifConfig {
        secret,
        queues,
        ring_size,
        buffer_size,
        ..MemifConfig::new(role, socket, memif.id)
    }
}

/// Queues of a device that lend packet buffers.
pub(crate) fn lending_queues(device: Option<&Device>) -> u16 {
    match device {
        Some(Device::AfXdp { queues, .. }) => *queues,
        Some(Device::Memif(memif)) if memif.role == MemifRole::Slave => memif.queues,
        _ => 0,
    }
}

/// Whether the Linux device that an interface is attached to is not there.
pub(crate) fn is_missing(device: Option<&Device>) -> bool {
    let Some(Device::AfXdp { name, .. }) = device else {
        return false;
    };
    weir_netlink::route::Route::open()
        .and_then(|mut route| route.link_by_name(name))
        .is_err_and(|error| error.is_not_found())
}

/// An address for an end of a memif, the same after each start. The interface's number would not do: the
/// other end is often another Weir whose interface has that number, too.
pub(crate) fn memif_mac(memif: &Memif, index: u32) -> MacAddr {
    let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
    let text = format!(
        "{} {} {} {index}",
        memif.role.word(),
        memif.id,
        memif.socket.display()
    );
    // FNV-1a, folded from 64 bits.
    let hash = machine
        .iter()
        .take(64)
        .chain(text.as_bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let [a, b, c, d] = ((hash >> 32) as u32 ^ hash as u32).to_be_bytes();
    MacAddr([0x02, 0x6d, a, b, c, d])
}

/// A text as the protocol carries it, with zeroes behind it.
fn padded(secret: &str) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes
        .iter_mut()
        .zip(secret.bytes())
        .for_each(|(place, byte)| *place = byte);
    bytes
}

/// 64 bits from the operating system.
pub(crate) fn seed() -> u64 {
    let mut bytes = [0; 8];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes)
}

/// A generator's stream from its description.
fn stream(wanted: &weir_config::Stream, to: MacAddr) -> Option<Stream> {
    let size = usize::from(wanted.size).max(60);
    let mut frame = vec![0; size];
    frame
        .get_mut(0..6)?
        .copy_from_slice(&wanted.destination_mac.map_or(to.0, |mac| mac.0));
    frame.get_mut(6..12)?.copy_from_slice(&wanted.source_mac.0);
    frame
        .get_mut(12..14)?
        .copy_from_slice(&EtherType::IPV4.0.to_be_bytes());
    let protocol = match wanted.protocol {
        StreamProtocol::Udp => IpProtocol::UDP,
        StreamProtocol::Tcp => IpProtocol::TCP,
        StreamProtocol::Icmp => IpProtocol::ICMP,
    };
    write_headers(frame.get_mut(14..)?, wanted, protocol)?;
    let range = |offset, first: u32, last: u32, width| Field {
        offset,
        width,
        first,
        last,
        change: Change::Increment,
    };
    let mut stream = Stream::new(frame)?
        .field(range(
            26,
            u32::from(wanted.source.first),
            u32::from(wanted.source.last),
            4,
        ))
        .field(range(
            30,
            u32::from(wanted.destination.first),
            u32::from(wanted.destination.last),
            4,
        ));
    if protocol != IpProtocol::ICMP {
        stream = stream
            .field(range(
                34,
                u32::from(wanted.source_port.first),
                u32::from(wanted.source_port.last),
                2,
            ))
            .field(range(
                36,
                u32::from(wanted.destination_port.first),
                u32::from(wanted.destination_port.last),
                2,
            ));
    }
    (stream.limit, stream.rate) = (wanted.limit, wanted.rate);
    Some(stream)
}

/// IPv4 and transport headers over all of `l3`; UDP goes without a checksum.
fn write_headers(l3: &mut [u8], wanted: &weir_config::Stream, protocol: IpProtocol) -> Option<()> {
    let (source, destination) = (
        u32::from(wanted.source.first),
        u32::from(wanted.destination.first),
    );
    let payload = l3.len().checked_sub(28)?;
    if protocol == IpProtocol::ICMP {
        return weir_wire::build::icmp4(l3, source, destination, 64, 8, 0, 1, &vec![0; payload])
            .then_some(());
    }
    let total = u16::try_from(l3.len()).ok()?;
    let header = weir_wire::Ipv4Header::new(source, destination, protocol, 64, total);
    let (place, _) = weir_wire::Ipv4Header::read_mut(l3)?;
    *place = header;
    weir_wire::checksum::ipv4_header_set(l3);
    l3.get_mut(20..22)?
        .copy_from_slice(&wanted.source_port.first.to_be_bytes());
    l3.get_mut(22..24)?
        .copy_from_slice(&wanted.destination_port.first.to_be_bytes());
    let rest = if protocol == IpProtocol::UDP {
        u16::try_from(8 + payload).ok()?
    } else {
        0
    };
    l3.get_mut(24..26)?.copy_from_slice(&rest.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_memif_have_addresses_of_their_own() {
        let memif = |role, id| Memif {
            socket: "/run/a".into(),
            id,
            role,
            secret: None,
            queues: 1,
            ring_size: 1024,
            buffer_size: 2048,
        };
        let all = [
            (MemifRole::Master, 0, 1),
            (MemifRole::Slave, 0, 1),
            (MemifRole::Slave, 1, 1),
            (MemifRole::Slave, 0, 2),
        ];
        let macs: std::collections::BTreeSet<_> = all
            .map(|(role, id, index)| memif_mac(&memif(role, id), index).0)
            .into();
        assert_eq!(macs.len(), all.len());
        assert!(macs.iter().all(|mac| mac[0] == 0x02));
        assert_eq!(
            memif_mac(&memif(MemifRole::Master, 7), 3),
            memif_mac(&memif(MemifRole::Master, 7), 3)
        );
    }

    #[test]
    fn a_memif_is_opened_as_it_was_written() {
        let mut memif = Memif {
            socket: "@a".into(),
            id: 7,
            role: MemifRole::Slave,
            secret: Some("sesame".into()),
            queues: 2,
            ring_size: 512,
            buffer_size: 2240,
        };
        let config = memif_config(&memif);
        assert_eq!(
            (config.role, &config.socket, config.id),
            (Role::Slave, &Socket::Abstract("a".into()), 7)
        );
        assert_eq!(
            (config.queues, config.ring_size, config.buffer_size),
            (2, 512, 2240)
        );
        assert!(config.secret.is_some_and(|secret| secret.starts_with(b"sesame\0") && secret.ends_with(&[0; 17])));
        (memif.socket, memif.role, memif.secret) = ("/run/a".into(), MemifRole::Master, None);
        let config = memif_config(&memif);
        assert_eq!(
            (config.role, config.socket, config.secret),
            (Role::Master, Socket::Path("/run/a".into()), None)
        );
    }
}
