//! `weir why`: what the router would do with a packet.
//!
//! A packet made to the request is run over the tables that the workers read (`dry_run.rs`). What it met is read off the
//! steps, and the frames that would have left.

use std::net::IpAddr;

use weir_api::{ApiError, ErrorCode, Why, WhyFrame, WhyProtocol, WhyRequest};
use weir_port::interface::{Input, Interface, Kind, ReversePath};
use weir_wire::{EthernetHeader, MacAddr, build};

use crate::control::Control;
use weir_control::Table;

/// The sender's MAC address, which no device has (locally administered).
const SENDER: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xfe]);
/// Bytes of an Ethernet header.
const ETHERNET: usize = EthernetHeader::LEN;

impl Control {
    /// What would become of a packet.
    pub(crate) fn why(&mut self, request: &WhyRequest) -> Result<Why, ApiError> {
        check(request)?;
        let tables = self.tables_apart();
        let (index, interface_from_route) = self.entrance(request)?;
        let interface = self.tables.interface(index).ok_or_else(gone)?;
        let (port, frame) = self.frame(request, interface)?;
        let run = self.dry_run(&tables, port, &frame)?;
        let table = self.routing_of(interface);
        let longest = |address| {
            let table = table?;
            let found = table.longest_match(address)?;
            Some(self.route_view(table, found))
        };
        let acl_terms = self.terms_met(&tables);
        let steps = self.decisions(&run, &acl_terms);
        let name = self.name_of(index).unwrap_or_default().to_owned();
        let config = self.config.interfaces.get(&name);
        Ok(Why {
            outcome: run.outcome,
            reason: run.reason.map(|reason| reason.name().to_owned()),
            meaning: run.reason.map(|reason| reason.sentence().to_owned()),
            acl_terms,
            urpf: interface.urpf.map(|mode| {
                let mode = match mode {
                    ReversePath::Loose => "loose",
                    ReversePath::Strict => "strict",
                };
                mode.to_owned()
            }),
            source_route: longest(request.source),
            route: longest(request.destination),
            frames: run
                .frames
                .iter()
                .filter_map(|(index, frame)| self.frame_view(*index, frame, request))
                .collect(),
            sampling_rate: config
                .filter(|wanted| wanted.sflow)
                .map(|_| self.sflow.config.rate_of(&name)),
            metered: self.config.ipfix.interfaces.contains_key(&name),
            steps: steps.into_iter().map(|step| step.view).collect(),
            interface: name,
            interface_from_route,
        })
    }

    /// The interface that receives the packet, and whether the route to its source names it.
    fn entrance(&self, request: &WhyRequest) -> Result<(u32, bool), ApiError> {
        if let Some(name) = &request.interface {
            let known = self.interfaces.keys().map(String::as_str);
            let attached = self
                .interfaces
                .get(name)
                .ok_or_else(|| ApiError::unknown("interface", name, known))?;
            return Ok((attached.index, false));
        }
        let by_route = || {
            let table = self.routing.first()?.as_ref()?;
            let route = self.route_view(table, table.longest_match(request.source)?);
            let name = route.paths.into_iter().find_map(|path| path.interface)?;
            Some(self.interfaces.get(&name)?.index)
        };
        by_route().map(|index| (index, true)).ok_or_else(|| {
            ApiError::new(
                ErrorCode::NotFound,
                format!(
                    "no route to {} leads to an interface, so it is not known where the packet is received",
                    request.source
                ),
                "name the receiving interface",
            )
        })
    }

    /// The table that an interface looks destinations up in.
    fn routing_of(&self, interface: &Interface) -> Option<&Table> {
        self.routing.get(interface.table as usize)?.as_ref()
    }

    /// The port that receives the packet, and the frame as it comes in there.
    fn frame(
        &self,
        request: &WhyRequest,
        interface: &Interface,
    ) -> Result<(u32, Vec<u8>), ApiError> {
        let mut frame = packet(request, interface.mac).ok_or_else(|| {
            bad(
                "the packet cannot be made",
                "ask for one with both addresses of one family",
            )
        })?;
        let mut port = interface;
        if let Some(sub) = &interface.sub_interface {
            let tags = sub.encapsulation;
            if let Some(inner) = tags.inner {
                frame = build::tagged(&frame, inner, 0);
            }
            frame = build::tagged(&frame, tags.outer, 0);
            if tags.service
                && let Some(ethertype) = frame.get_mut(12..14)
            {
                ethertype.copy_from_slice(&[0x88, 0xa8]);
            }
            port = self.tables.interface(sub.parent).ok_or_else(gone)?;
        }
        if port.kind == Kind::Bond {
            let mut ports = self.tables.interfaces.iter().flatten();
            let member = ports.find(|it| {
                matches!(it.interface.input, Input::Member { bond, collects: true } if bond == port.index)
            });
            port = &member.ok_or_else(no_member)?.interface;
        }
        if port.kind != Kind::Port {
            return Err(bad(
                &format!("{} receives no frames by itself", port.name),
                "name a port, a bond, or a sub-interface of one",
            ));
        }
        Ok((port.index, frame))
    }

    fn frame_view(&self, index: u32, frame: &[u8], request: &WhyRequest) -> Option<WhyFrame> {
        let (header, _) = EthernetHeader::read(frame)?;
        let (mut vlans, mut labels, mut at) = (Vec::new(), Vec::new(), ETHERNET - 2);
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        while matches!(word(at), Some(0x8100 | 0x88a8)) {
            vlans.push(word(at + 2)? & 0xfff);
            at += 4;
        }
        if word(at) == Some(0x8847) {
            at += 2;
            loop {
                let entry = u32::from_be_bytes(*frame.get(at..)?.first_chunk()?);
                labels.push(entry >> 12);
                at += 4;
                if entry & 0x100 != 0 {
                    break;
                }
            }
        } else {
            at += 2;
        }
        let source = match frame.get(at)? >> 4 {
            4 => IpAddr::from(*frame.get(at + 12..)?.first_chunk::<4>()?),
            6 => IpAddr::from(*frame.get(at + 8..)?.first_chunk::<16>()?),
            _ => request.source,
        };
        Some(WhyFrame {
            interface: self.name_of(index)?.to_owned(),
            source_mac: header.source.to_string(),
            destination_mac: header.destination.to_string(),
            vlans,
            labels,
            length: frame.len() as u32,
            mtu: self.tables.interface(index).map_or(0, |it| it.mtu),
            originated: source != request.source,
        })
    }
}

/// An untagged frame to the interface.
fn packet(request: &WhyRequest, to: MacAddr) -> Option<Vec<u8>> {
    let mut frame = vec![0; ETHERNET + request.length as usize];
    let made = match (request.source, request.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ends = build::Ends {
                source_mac: SENDER,
                destination_mac: to,
                source: source.into(),
                destination: destination.into(),
                source_port: request.source_port,
                destination_port: request.destination_port,
                ttl: request.ttl,
            };
            let (identifier, sequence) = (request.source_port, request.destination_port);
            let made = match request.protocol {
                WhyProtocol::Udp => build::udp4_into(&mut frame, &ends),
                WhyProtocol::Tcp => build::tcp4_into(&mut frame, &ends, 2),
                WhyProtocol::Icmp => build::echo4_into(&mut frame, &ends, 8, identifier, sequence),
            };
            if request.dont_fragment {
                *frame.get_mut(ETHERNET + 6)? |= 0x40;
            } else {
                *frame.get_mut(ETHERNET + 6)? &= !0x40;
            }
            weir_wire::checksum::ipv4_header_set(frame.get_mut(ETHERNET..)?);
            made
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ends = build::Ends6 {
                source_mac: SENDER,
                destination_mac: to,
                source: source.octets(),
                destination: destination.octets(),
                source_port: request.source_port,
                destination_port: request.destination_port,
                hop_limit: request.ttl,
                ..build::Ends6::default()
            };
            let (identifier, sequence) = (request.source_port, request.destination_port);
            match request.protocol {
                WhyProtocol::Udp => build::udp6_into(&mut frame, &ends),
                WhyProtocol::Tcp => build::tcp6_into(&mut frame, &ends, 2),
                WhyProtocol::Icmp => {
                    build::echo6_into(&mut frame, &ends, 128, identifier, sequence)
                }
            }
        }
        _ => false,
    };
    made.then_some(frame)
}

fn check(request: &WhyRequest) -> Result<(), ApiError> {
    let (least, most) = WhyRequest::lengths();
    if !(least..=most).contains(&request.length) {
        return Err(bad(
            &format!("a length of {} bytes is out of range", request.length),
            &format!("choose {least} to {most} bytes"),
        ));
    }
    if request.source.is_ipv4() != request.destination.is_ipv4() {
        return Err(bad(
            "source and destination are of different families",
            "give two IPv4 or two IPv6 addresses",
        ));
    }
    Ok(())
}

fn bad(message: &str, help: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message, help)
}

fn gone() -> ApiError {
    ApiError::new(
        ErrorCode::NotFound,
        "the interface is not there",
        "see `weir show interface`",
    )
}

fn no_member() -> ApiError {
    bad("no member of the bond receives", "see `weir show bond`")
}
