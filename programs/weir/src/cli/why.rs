//! The arguments of `weir why`.

use std::net::IpAddr;

use clap::{Args, ValueEnum};
use weir_api::{WhyProtocol, WhyRequest};

pub(super) const WHY_EXAMPLES: &str = "\
Examples:
  weir why 192.0.2.7 198.51.100.9
  weir why 192.0.2.7 198.51.100.9 --protocol tcp --port 443 --interface xe0
  weir why 2001:db8::7 2001:db8:1::9 --length 1500

The packet runs through the router's own nodes and tables. Nothing is sent, counted or learnt.";

/// `weir why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The packet's source address
    #[arg(value_name = "SOURCE_IP")]
    source: IpAddr,
    /// The packet's destination address
    #[arg(value_name = "DESTINATION_IP")]
    destination: IpAddr,
    /// Protocol: udp, tcp (a SYN) or icmp (an echo request)
    #[arg(long, value_name = "UDP|TCP|ICMP", value_enum, default_value_t = Protocol::Udp)]
    protocol: Protocol,
    /// Destination port
    #[arg(long, value_name = "PORT", default_value_t = WhyRequest::default_destination_port())]
    port: u16,
    /// Source port
    #[arg(long, value_name = "PORT", default_value_t = WhyRequest::default_source_port())]
    source_port: u16,
    /// Receiving interface; without it, the one over which the source is routed
    #[arg(short, long, value_name = "INTERFACE")]
    interface: Option<String>,
    /// Length in bytes, from the IP header on
    #[arg(long, value_name = "BYTES", default_value_t = WhyRequest::default_length(),
          value_parser = clap::value_parser!(u32).range(i64::from(WhyRequest::lengths().0)..=i64::from(WhyRequest::lengths().1)))]
    length: u32,
    /// Time to live or hop limit
    #[arg(long, value_name = "HOPS", default_value_t = WhyRequest::default_ttl())]
    ttl: u8,
    /// IPv4 forbids to fragment the packet
    #[arg(long)]
    dont_fragment: bool,
}

/// The protocols by name.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Protocol {
    Udp,
    Tcp,
    Icmp,
}

impl WhyArgs {
    /// The request to the router.
    pub(crate) fn request(&self) -> WhyRequest {
        WhyRequest {
            source: self.source,
            destination: self.destination,
            protocol: match self.protocol {
                Protocol::Udp => WhyProtocol::Udp,
                Protocol::Tcp => WhyProtocol::Tcp,
                Protocol::Icmp => WhyProtocol::Icmp,
            },
            source_port: self.source_port,
            destination_port: self.port,
            interface: self.interface.clone(),
            length: self.length,
            ttl: self.ttl,
            dont_fragment: self.dont_fragment,
        }
    }
}
