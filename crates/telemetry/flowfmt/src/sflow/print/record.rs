//! A record by its structure: every field under its name, as its kind is written.

use std::fmt::{Display, Formatter, Result as Formatted};
use std::io;

use super::show::{Address, Hex, Mac, Uuid};
use super::{Part, Sink};
use crate::sflow::structure::{Kind, Structure, Value, Values};

/// Prints a record. The structures that are not printed field by field have arms of their own.
pub(super) fn record(
    sink: &mut impl Sink,
    of_flow: bool,
    structure: &Structure,
    values: &Values<'_>,
) -> io::Result<()> {
    if let Some((name, label)) = structure.label {
        sink.field(name, format_args!("{}{label}", structure.prefix))?;
    }
    sink.prefix(1, structure.prefix);
    let printed = match (
        of_flow,
        structure.format.enterprise,
        structure.format.format,
    ) {
        (true, 0, 2 | 1021 | 1022) => reordered(sink, structure, values, &[3, 0, 1, 2]),
        (true, 0, 1004) => reordered(sink, structure, values, &[0, 2, 1, 3]),
        (true, 0, 3 | 4 | 1023..=1026) => headers(sink, structure, values),
        (true, 0, 1003) => gateway(sink, structure, values),
        _ => {
            let mut fields = structure.fields.iter().zip(values.as_slice());
            fields.try_for_each(|(field, value)| self::field(sink, field.name, field.kind, value))
        }
    };
    sink.prefix(1, "");
    printed
}

/// Where sflowtool's order is not the wire's.
fn reordered(
    sink: &mut impl Sink,
    structure: &Structure,
    values: &Values<'_>,
    order: &[usize],
) -> io::Result<()> {
    for &place in order {
        if let (Some(named), Some(value)) =
            (structure.fields.get(place), values.as_slice().get(place))
        {
            field(sink, named.name, named.kind, value)?;
        }
    }
    Ok(())
}

/// Headers as fields (0:3 and 0:4): ports have the names of what the packet carries.
fn headers(sink: &mut impl Sink, structure: &Structure, values: &Values<'_>) -> io::Result<()> {
    let [
        length,
        protocol,
        source,
        destination,
        source_port,
        destination_port,
        flags,
        class,
    ] = values.as_slice()
    else {
        return Ok(());
    };
    let name = |place: usize| structure.fields.get(place).map_or("", |field| field.name);
    let number = |value: &Value<'_>| value.number().unwrap_or(0);
    sink.field("sampledPacketSize", number(length))?;
    sink.field(name(0), number(length))?;
    for (place, value) in [(2, source), (3, destination)] {
        if let Value::Address(address) = value {
            sink.field(name(place), Address(*address))?;
        }
    }
    sink.field(name(1), number(protocol))?;
    sink.field(name(7), number(class))?;
    let (from, to) = (number(source_port), number(destination_port));
    match number(protocol) {
        1 => {
            sink.field("ICMPType", from)?;
            sink.field("ICMPCode", to)
        }
        6 => {
            sink.field("TCPSrcPort", from)?;
            sink.field("TCPDstPort", to)?;
            sink.field("TCPFlags", number(flags))
        }
        17 => {
            sink.field("UDPSrcPort", from)?;
            sink.field("UDPDstPort", to)
        }
        _ => Ok(()),
    }
}

/// BGP's path (0:1003), with its first and its last number beside it.
fn gateway(sink: &mut impl Sink, structure: &Structure, values: &Values<'_>) -> io::Result<()> {
    for (named, value) in structure.fields.iter().zip(values.as_slice()) {
        match *value {
            Value::List(_, segments) => {
                let path = AsPath(segments);
                let (first, last) = (
                    path.numbers().next().unwrap_or(0),
                    path.numbers().last().unwrap_or(0),
                );
                if path.numbers().next().is_some() {
                    sink.field(named.name, path)?;
                }
                sink.field("dst_as", last)?;
                sink.field("dst_peer_as", first)?;
            }
            _ => field(sink, named.name, named.kind, value)?,
        }
    }
    Ok(())
}

/// One field. A list of words without any, and what is not there, is not printed.
fn field(sink: &mut impl Sink, name: &str, kind: Kind, value: &Value<'_>) -> io::Result<()> {
    match (kind, *value) {
        (Kind::Hundredths, Value::U32(u32::MAX)) => sink.field(name, "unknown"),
        (Kind::Hundredths, Value::U32(value)) => sink.field(name, Hundredths(value)),
        (Kind::Choice(words), Value::U32(value)) => match words.get(value as usize) {
            Some(word) => sink.field(name, word),
            None => sink.field(name, value),
        },
        (Kind::Id64, Value::U64(value)) => sink.field(name, format_args!("{value:016x}")),
        // Of strings without any octet sflowtool prints the names of these only.
        (Kind::Text, Value::Octets([])) if matches!(name, "src_user" | "dst_user" | "url") => {
            sink.foreign(name, "")
        }
        (Kind::Text, Value::Octets([]))
        | (Kind::Rest, Value::Octets([]))
        | (_, Value::Absent | Value::Words([])) => Ok(()),
        (Kind::Text, Value::Octets(text)) => sink.foreign(name, &String::from_utf8_lossy(text)),
        (_, Value::Octets(octets)) => sink.field(name, Hex(octets)),
        (Kind::Labels, Value::Words(words)) => sink.field(name, Joined(words, label)),
        (Kind::Tags, Value::Words(words)) => sink.field(name, Joined(words, tag)),
        (Kind::Percentages, Value::Words(words)) => sink.field(
            name,
            Joined(words, |value: u32, f: &mut Formatter<'_>| {
                Hundredths(value).fmt(f)
            }),
        ),
        (_, Value::Words(words)) => sink.field(
            name,
            Joined(words, |value: u32, f: &mut Formatter<'_>| value.fmt(f)),
        ),
        (Kind::Adaptors, Value::List(count, items)) => adaptors(sink, count, items),
        (Kind::Lanes, Value::List(count, items)) => lanes(sink, name, count, items),
        (_, Value::List(..)) => Ok(()),
        (_, Value::U32(value)) => sink.field(name, value),
        (_, Value::U64(value)) => sink.field(name, value),
        (_, Value::I32(value)) => sink.field(name, value),
        (_, Value::F32(value)) => sink.field(name, format_args!("{value:.3}")),
        (_, Value::Octet(value)) => sink.field(name, value),
        (_, Value::Address(address)) => sink.field(name, Address(address)),
        (_, Value::Mac(mac)) => sink.field(name, Mac(mac)),
        (_, Value::Uuid(uuid)) => sink.field(name, Uuid(uuid)),
    }
}

/// The interfaces of a host (2001).
fn adaptors(sink: &mut impl Sink, count: u32, items: &[u8]) -> io::Result<()> {
    let (mut rest, nests) = (items, sink.nests());
    if nests {
        sink.begin_list("adaptor_list")?;
    }
    for number in 0..count {
        let (Some(ifindex), Some(macs)) = (take_word(&mut rest), take_word(&mut rest)) else {
            break;
        };
        let Some((of_this, behind)) = rest.split_at_checked(8 * macs as usize) else {
            break;
        };
        rest = behind;
        let mut addresses = of_this
            .as_chunks::<8>()
            .0
            .iter()
            .map(|&[a, b, c, d, e, f, _, _]| Mac([a, b, c, d, e, f]));
        if nests {
            sink.begin(Part::Item)?;
            sink.field("ifIndex", ifindex)?;
            sink.field("MACs", macs)?;
            sink.begin_list("mac_list")?;
            addresses.try_for_each(|mac| sink.item(mac))?;
            sink.end_list()?;
            sink.end(Part::Item)?;
        } else {
            sink.field(&format!("adaptor_{number}_ifIndex"), ifindex)?;
            sink.field(&format!("adaptor_{number}_MACs"), macs)?;
            for (place, mac) in addresses.enumerate() {
                sink.field(&format!("adaptor_{number}_MAC_{place}"), mac)?;
            }
        }
    }
    if nests { sink.end_list() } else { Ok(()) }
}

/// The lanes of an optical module (0:10).
fn lanes(sink: &mut impl Sink, name: &str, count: u32, items: &[u8]) -> io::Result<()> {
    const NAMES: [&str; 10] = [
        "index",
        "tx_bias_current_uA",
        "tx_power_uW",
        "tx_power_min_uW",
        "tx_power_max_uW",
        "tx_wavelength_nM",
        "rx_power_uW",
        "rx_power_min_uW",
        "rx_power_max_uW",
        "rx_wavelength_nM",
    ];
    let nests = sink.nests();
    sink.field(name, count)?;
    if nests {
        sink.begin_list("sfp_lanes")?;
    }
    for (lane, of_this) in items.as_chunks::<40>().0.iter().enumerate() {
        if nests {
            sink.begin(Part::Item)?;
        }
        for (name, word) in NAMES.iter().zip(words(of_this)) {
            if nests {
                sink.field(name, word)?;
            } else {
                sink.field(&format!("sfp_lane_{name}.{lane}"), word)?;
            }
        }
        if nests {
            sink.end(Part::Item)?;
        }
    }
    if nests { sink.end_list() } else { Ok(()) }
}

fn take_word(rest: &mut &[u8]) -> Option<u32> {
    let (word, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_be_bytes(*word))
}

fn words(octets: &[u8]) -> impl Iterator<Item = u32> {
    octets
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| u32::from_be_bytes(*word))
}

/// Words with `-` between them.
pub(super) struct Joined<'a, F>(pub(super) &'a [u8], pub(super) F);

impl<F: Fn(u32, &mut Formatter<'_>) -> Formatted> Display for Joined<'_, F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        let mut separator = "";
        for word in words(self.0) {
            f.write_str(separator)?;
            (self.1)(word, f)?;
            separator = "-";
        }
        Ok(())
    }
}

/// A label stack entry (RFC 3032): label, traffic class, bottom of stack, TTL.
pub(super) fn label(entry: u32, f: &mut Formatter<'_>) -> Formatted {
    write!(
        f,
        "{}.{}.{}.{}",
        entry >> 12,
        entry >> 9 & 7,
        entry >> 8 & 1,
        entry & 0xff
    )
}

/// TPID, priority, drop eligibility, VLAN.
fn tag(tag: u32, f: &mut Formatter<'_>) -> Formatted {
    write!(
        f,
        "{:#06x}.{}.{}.{}",
        tag >> 16,
        tag >> 13 & 7,
        tag >> 12 & 1,
        tag & 0xfff
    )
}

/// Hundredths with their point.
struct Hundredths(u32);

impl Display for Hundredths {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// Segments one behind the other; a set's numbers stand in parentheses.
struct AsPath<'a>(&'a [u8]);

impl<'a> AsPath<'a> {
    /// Each segment's type and numbers. That the lengths are right was seen when they were read.
    fn segments(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (kind, count) = (take_word(&mut rest)?, take_word(&mut rest)?);
            let (numbers, behind) = rest.split_at_checked((count as usize).checked_mul(4)?)?;
            rest = behind;
            Some((kind, numbers))
        })
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.segments().flat_map(|(_, numbers)| words(numbers))
    }
}

impl Display for AsPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        /// Type of a segment whose numbers have no order (RFC 4271, 4.3).
        const SET: u32 = 1;
        let mut separator = "";
        for (kind, numbers) in self.segments() {
            let joined = Joined(numbers, |value: u32, f: &mut Formatter<'_>| value.fmt(f));
            if kind == SET {
                write!(f, "({joined})")?
            } else {
                write!(f, "{separator}{joined}")?
            }
            separator = "-";
        }
        Ok(())
    }
}
