//! The formats `line` and `csv` of nfdump 1.7, as its output is.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::net::IpAddr;

use super::super::Version;
use super::super::decode::{Header, Record};
use super::super::flow::Flow;
use super::Moment;
use super::json::{Label, Mac};

pub(super) const LINE_HEADER: &str = "Date first seen             Duration     Proto      Src IP Addr:Port          Dst IP Addr:Port   Packets    Bytes Flows";
pub(super) const CSV_HEADER: &str = "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt,in,out,sas,das,smk,dmk,dtos,dir,nh,nhb,svln,dvln,\
     ismc,odmc,idmc,osmc,mpls1,mpls2,mpls3,mpls4,mpls5,mpls6,mpls7,mpls8,mpls9,mpls10,cl,sl,al,ra,eng,exid,tr";

/// Exporters that are numbered; those after them are 0, so that a flood of them takes no memory.
const MOST_EXPORTERS: usize = 1 << 16;
/// Addresses longer than this are shortened in lines.
const SHORT: usize = 16;

/// What nfdump calls protocols.
#[rustfmt::skip]
const PROTOCOLS: [&str; 138] = [
    "", "ICMP", "IGMP", "GGP", "IPIP", "ST", "TCP", "CBT", "EGP", "IGP",
    "BBN", "NVPII", "PUP", "ARGUS", "ENCOM", "XNET", "CHAOS", "UDP", "MUX", "DCN",
    "HMP", "PRM", "XNS", "Trnk1", "Trnk2", "Leaf1", "Leaf2", "RDP", "IRTP", "ISO-4",
    "NETBK", "MFESP", "MEINP", "DCCP", "3PC", "IDPR", "XTP", "DDP", "IDPR", "TP++",
    "IL", "IPv6", "SDRP", "Rte6", "Frag6", "IDRP", "RSVP", "GRE", "MHRP", "BNA",
    "ESP", "AH", "INLSP", "SWIPE", "NARP", "MOBIL", "TLSP", "SKIP", "ICMP6", "NOHE6",
    "OPTS6", "HOST", "CFTP", "NET", "SATNT", "KLAN", "RVD", "IPPC", "FS", "SATM",
    "VISA", "IPCV", "CPNX", "CPHB", "WSN", "PVP", "BSATM", "SUNND", "WBMON", "WBEXP",
    "ISOIP", "VMTP", "SVMTP", "VINES", "TTP", "NSIGP", "DGP", "TCF", "EIGRP", "OSPF",
    "S-RPC", "LARP", "MTP", "AX.25", "OS", "MICP", "SCCSP", "ETHIP", "ENCAP", "",
    "GMTP", "IFMP", "PNNI", "PIM", "ARIS", "SCPS", "QNX", "A/N", "IPcmp", "SNP",
    "CpqPP", "IPXIP", "VRRP", "PGM", "0hop", "L2TP", "DDX", "IATP", "STP", "SRP",
    "UTI", "SMP", "SM", "PTP", "ISIS4", "FIRE", "CRTP", "CRUDP", "", "IPLT",
    "SPS", "PIPE", "SCTP", "FC", "", "MHEAD", "UDP-L", "MPLS",
];

/// Numbers exporters as they come.
#[derive(Debug, Default)]
pub(super) struct Exporters(HashMap<(IpAddr, Version, u32), usize>);

impl Exporters {
    pub(super) fn number(&mut self, header: &Header) -> usize {
        let (next, key) = (
            self.0.len() + 1,
            (header.exporter.ip(), header.version, header.domain),
        );
        if next > MOST_EXPORTERS {
            return self.0.get(&key).copied().unwrap_or(0);
        }
        *self.0.entry(key).or_insert(next)
    }
}

pub(super) fn line(to: &mut dyn Write, record: &Record<'_>) -> io::Result<()> {
    let flow = Flow::of(record);
    let (start, duration) = times(&flow, record.header);
    let (source, destination) = (flow.source_address(), flow.destination_address());
    let (source_port, destination_port) = ports(&flow);
    writeln!(
        to,
        "{} {:>16} {:<5} {:>16}{}{:<5} -> {:>16}{}{:<5} {:>8} {:>8} {:>5}",
        Moment {
            time: start,
            between: ' ',
            digits: 3
        },
        Duration(duration).to_string(),
        Protocol(flow.protocol).to_string(),
        short(source),
        before_port(source),
        source_port,
        short(destination),
        before_port(destination),
        destination_port,
        Scaled(flow.packets).to_string(),
        Scaled(flow.octets).to_string(),
        1,
    )
}

pub(super) fn csv(
    to: &mut dyn Write,
    record: &Record<'_>,
    exporter: usize,
    received: u64,
) -> io::Result<()> {
    let (flow, header) = (Flow::of(record), record.header);
    let (start, duration) = times(&flow, header);
    let second = |time| Moment {
        time,
        between: ' ',
        digits: 0,
    };
    // ICMP's type and code are the destination port here.
    let port = flow
        .icmp_type_and_code()
        .map_or(flow.destination_port, |(kind, code)| {
            u16::from_be_bytes([kind, code])
        });
    write!(
        to,
        "{},{},{}.{:03},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
        second(start),
        second(flow.end.unwrap_or(header.time)),
        duration / 1000,
        duration % 1000,
        flow.source_address(),
        flow.destination_address(),
        flow.source_port,
        port,
        Protocol(flow.protocol),
        TcpFlags(flow.tcp_flags),
        flow.forwarding_status,
        flow.tos,
        flow.packets,
        flow.octets,
        flow.post_packets,
        flow.post_octets,
        flow.input,
        flow.output,
        flow.source_as,
        flow.destination_as,
        flow.source_prefix,
        flow.destination_prefix,
        flow.post_tos,
        flow.direction,
    )?;
    csv_rest(to, &flow)?;
    // nfdump's engine type and id, of NetFlow only.
    let [kind, id] = if header.version == Version::Ipfix {
        [0, 0]
    } else {
        (header.domain as u16).to_be_bytes()
    };
    writeln!(
        to,
        ",    0.000,    0.000,    0.000,{},{kind}/{id},{exporter},{}",
        header.exporter.ip(),
        Moment {
            time: received,
            between: ' ',
            digits: 3
        }
    )
}

/// Next hops, VLANs, MAC addresses and labels.
fn csv_rest(to: &mut dyn Write, flow: &Flow) -> io::Result<()> {
    for hop in [flow.next_hop, flow.bgp_next_hop] {
        match hop {
            Some(hop) => write!(to, ",{hop}")?,
            None => to.write_all(b",0.0.0.0")?,
        }
    }
    write!(to, ",{},{}", flow.vlan, flow.post_vlan)?;
    for mac in [
        flow.source_mac,
        flow.post_destination_mac,
        flow.destination_mac,
        flow.post_source_mac,
    ] {
        write!(to, ",{}", Mac(mac))?;
    }
    flow.labels
        .iter()
        .try_for_each(|entry| write!(to, ",{}", Label(*entry)))
}

/// Begin in nanoseconds since 1970, and duration in milliseconds, as nfdump computes it: of whole ones.
fn times(flow: &Flow, header: &Header) -> (u64, u64) {
    let start = flow.start.unwrap_or(header.time);
    let end = flow.end.unwrap_or(start);
    (start, (end / 1_000_000).saturating_sub(start / 1_000_000))
}

fn ports(flow: &Flow) -> (String, String) {
    match flow.icmp_type_and_code() {
        Some((kind, code)) => ("0".to_owned(), format!("{kind}.{code}")),
        None => (
            flow.source_port.to_string(),
            flow.destination_port.to_string(),
        ),
    }
}

fn before_port(address: IpAddr) -> char {
    if address.is_ipv4() { ':' } else { '.' }
}

/// Both ends of an address that is too long.
fn short(address: IpAddr) -> String {
    let text = address.to_string();
    match (text.get(..7), text.get(text.len().saturating_sub(7)..)) {
        (Some(begin), Some(end)) if text.len() > SHORT => format!("{begin}..{end}"),
        _ => text,
    }
}

struct Protocol(Option<u8>);

impl Display for Protocol {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0.unwrap_or(0);
        match PROTOCOLS.get(usize::from(number)) {
            Some(name) if !name.is_empty() => to.write_str(name),
            _ => write!(to, "{number}"),
        }
    }
}

struct TcpFlags(u16);

impl Display for TcpFlags {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, letter) in "CEUAPRSF".chars().enumerate() {
            let set = self.0 & 0x80 >> place != 0;
            write!(to, "{}", if set { letter } else { '.' })?;
        }
        Ok(())
    }
}

/// Milliseconds as days and a time of day.
struct Duration(u64);

impl Display for Duration {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, milliseconds) = (self.0 / 1000, self.0 % 1000);
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
        if days > 0 {
            write!(to, "{days}d ")?;
        }
        write!(
            to,
            "{hours:02}:{minutes:02}:{:02}.{milliseconds:03}",
            seconds % 60
        )
    }
}

/// A count, in millions and more from a million on.
struct Scaled(u64);

impl Display for Scaled {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0 as f64;
        match self.0 {
            0..1_000_000 => write!(to, "{}", self.0),
            1_000_000..1_000_000_000 => write!(to, "{:.1} M", count / 1e6),
            1_000_000_000..1_000_000_000_000 => write!(to, "{:.1} G", count / 1e9),
            _ => write!(to, "{:.1} T", count / 1e12),
        }
    }
}
