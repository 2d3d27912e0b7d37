//! `weir flow decode`: IPFIX and NetFlow of a capture file, an IPFIX file (RFC 5655) or the network, printed.
//!
//! Nothing is skipped in silence: what cannot be decoded is reported on standard error with its offset and its
//! reason, so are jumps of the sequence numbers, and at the end how much there was of everything. A file of
//! which something could not be decoded ends with exit code 1, after all that could be read was printed.
//! Messages are numbered by the file's frames, as Wireshark does it; those of an IPFIX file or the network in their order, from 1.
//! IPFIX is received over TCP as well, on the same port. Datagrams that were sent in fragments are put together.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_flowfmt::ipfix::decode::{Collector, Item, message_length};
use weir_flowfmt::ipfix::print::{Format, Printer};
use weir_flowfmt::ipfix::{NETFLOW_PORT, PORT};
use weir_flowfmt::sflow::capture::{UdpReader, cut_datagram};
use weir_pcap::file::Reader;

use super::listen::{Heard, flow_messages};
use crate::cli::{FlowDecodeArgs, FlowFormat};
use crate::failure::Failure;

/// Where flow records usually go: IPFIX, NetFlow, and NetFlow as nfcapd has it.
const PORTS: [u16; 3] = [PORT, NETFLOW_PORT, 9995];

/// The version of IPFIX, and octets of a message's header (RFC 7011, 3.1).
const IPFIX: u16 = 10;
const HEADER: usize = 16;

/// Does it.
pub(crate) fn execute(
    args: &FlowDecodeArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let usual = if json {
        FlowFormat::Json
    } else {
        FlowFormat::Line
    };
    let format = match args.format.unwrap_or(usual) {
        FlowFormat::Line => Format::Line,
        FlowFormat::Csv => Format::Csv,
        FlowFormat::Json => Format::Json,
    };
    let mut decoder = Decoder {
        to,
        printer: Printer::new(format),
        collector: Collector::new(),
    };
    match (&args.read, args.listen) {
        (Some(path), _) => decoder.file(path, args.port),
        (None, Some(address)) => decoder.network(address),
        (None, None) => Err(Failure::said("nothing to decode: -r FILE or -l ADDR:PORT")),
    }
}

struct Decoder<'a> {
    to: &'a mut dyn Write,
    printer: Printer,
    collector: Collector,
}

impl Decoder<'_> {
    fn file(&mut self, path: &Path, port: Option<u16>) -> Result<(), Failure> {
        let name = path.display();
        let failed = |error: io::Error| Failure::said(format_args!("{name}: {error}"));
        let mut input: Box<dyn Read + Send> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(BufReader::new(File::open(path).map_err(failed)?))
        };
        let mut begin = Vec::new();
        (&mut input)
            .take(2)
            .read_to_end(&mut begin)
            .map_err(failed)?;
        // No capture file begins so.
        let is_ipfix = begin == IPFIX.to_be_bytes();
        let input = io::Cursor::new(begin).chain(input);
        if is_ipfix {
            return self.ipfix_file(path, input);
        }
        let reader =
            Reader::new(input).map_err(|error| Failure::said(format_args!("{name}: {error}")))?;
        let wanted = |found: u16| port.map_or(PORTS.contains(&found), |port| port == found);
        let (mut number, mut datagrams, mut broken) = (0_u64, 0_u64, false);
        let (mut udp, mut last) = (UdpReader::new(), 0);
        for captured in reader {
            number += 1;
            let frame = match captured {
                Ok(frame) => frame,
                Err(error) => {
                    broken = true;
                    self.to.flush()?;
                    say(format_args!("{name}: frame {number}: {error}"));
                    continue;
                }
            };
            last = frame.timestamp_ns;
            let Some(found) = udp
                .read(number, frame.linktype, &frame.data)
                .filter(|found| wanted(found.destination.port()))
            else {
                continue;
            };
            datagrams += 1;
            self.message(number, found.source, frame.timestamp_ns, found.payload)?;
        }
        let (cut, lost) = udp.finish();
        for (number, octets, ends) in cut {
            let found = cut_datagram(&octets, ends);
            let Some(found) = found.filter(|found| wanted(found.destination.port())) else {
                continue;
            };
            datagrams += 1;
            broken = true;
            self.to.flush()?;
            say(format_args!(
                "{name}: frame {number}: not all fragments of its datagram are there"
            ));
            self.message(number, found.source, last, found.payload)?;
        }
        if lost > 0 {
            say(format_args!(
                "{name}: of {lost} UDP datagrams there are only some fragments"
            ));
        }
        if datagrams == 0 && !broken {
            say(format_args!(
                "{name}: none of its {number} frames is a UDP datagram to a port of flow records (--port chooses another)"
            ));
        }
        let undecoded = self.end()?;
        if broken || undecoded {
            Err(Failure::Reported(1))
        } else {
            Ok(())
        }
    }

    /// Messages one after the other (RFC 5655).
    fn ipfix_file(&mut self, path: &Path, mut file: impl Read) -> Result<(), Failure> {
        let (name, mut number, mut message) = (path.display(), 0_u64, Vec::new());
        let from = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        let mut broken = false;
        loop {
            message.clear();
            let mut part = |octets: usize, message: &mut Vec<u8>| {
                (&mut file).take(octets as u64).read_to_end(message)
            };
            let read = part(HEADER, &mut message)?;
            if read == 0 {
                break;
            }
            number += 1;
            let version = message.first_chunk().map(|it| u16::from_be_bytes(*it));
            let length = message_length(&message).filter(|length| *length >= HEADER);
            let (Some(IPFIX), Some(length), HEADER) = (version, length, read) else {
                broken = true;
                self.to.flush()?;
                say(format_args!("{name}: message {number}: no header of IPFIX"));
                break;
            };
            part(length - HEADER, &mut message)?;
            let seconds = message.get(4..8).and_then(|it| it.try_into().ok());
            let time = u64::from(u32::from_be_bytes(seconds.unwrap_or_default()));
            self.message(number, from, time * 1_000_000_000, &message)?;
        }
        let undecoded = self.end()?;
        if broken || undecoded {
            Err(Failure::Reported(1))
        } else {
            Ok(())
        }
    }

    fn network(&mut self, address: SocketAddr) -> Result<(), Failure> {
        let mut number = 0_u64;
        let ready =
            |address: SocketAddr| say(format_args!("listening on {address}; Ctrl-C ends it"));
        flow_messages(address, ready, |heard| {
            match heard {
                Heard::Message(from, bytes) => {
                    number += 1;
                    let now = SystemTime::now()
                        .duration_since(UNIX_EPOCH)
                        .unwrap_or_default()
                        .as_nanos();
                    self.message(number, from, u64::try_from(now).unwrap_or(u64::MAX), bytes)?;
                }
                Heard::Broken(from, why) => say(format_args!("the stream from {from}: {why}")),
            }
            Ok(self.to.flush()?)
        })?;
        self.end().map(|_| ())
    }

    fn message(
        &mut self,
        number: u64,
        from: SocketAddr,
        time: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let mut outcome = Ok(());
        let Decoder {
            to,
            printer,
            collector,
        } = self;
        collector.read(from, bytes, &mut |item| {
            if outcome.is_ok() {
                outcome = show(*to, printer, &format!("message {number}"), time, &item);
            }
        });
        Ok(outcome?)
    }

    /// Tells what is left to tell; whether anything was not decoded.
    fn end(&mut self) -> Result<bool, Failure> {
        let mut outcome = Ok(());
        let Decoder {
            to,
            printer,
            collector,
        } = self;
        collector.finish(&mut |item| {
            if outcome.is_ok() {
                outcome = show(*to, printer, "a set that waited for its template", 0, &item);
            }
        });
        outcome?;
        self.to.flush()?;
        let (totals, left_out) = (self.collector.totals(), self.printer.left_out());
        if totals.messages > 0 {
            let options = if left_out > 0 {
                " (not in this format: --format json)"
            } else {
                ""
            };
            say(format_args!(
                "{} messages: {} flow records, {} of options{options}, {} templates; {} missing by their numbers; {} times not decoded, {} octets",
                totals.messages,
                totals.records,
                totals.options_records,
                totals.templates,
                totals.missing,
                totals.undecoded,
                totals.undecoded_octets
            ));
        }
        if totals.templates_forgotten > 0 {
            say(format_args!(
                "{} templates were forgotten, because there were too many",
                totals.templates_forgotten
            ));
        }
        Ok(totals.undecoded > 0)
    }
}

/// Prints an item, or tells it. What was printed before goes out first, so that the two stay in order on a terminal.
fn show(
    to: &mut dyn Write,
    printer: &mut Printer,
    which: &str,
    time: u64,
    item: &Item<'_>,
) -> io::Result<()> {
    match item {
        Item::Undecoded(what) => {
            to.flush()?;
            say(format_args!(
                "{which} from {}, octet {}: {} ({} octets not decoded)",
                what.exporter, what.offset, what.why, what.octets
            ));
        }
        Item::Sequence(header, gap) => {
            to.flush()?;
            let what = match gap.missing() {
                Some(count) => format!("{count} missing"),
                None => "it went back: the exporter started anew, or messages overtook each other"
                    .to_owned(),
            };
            let (exporter, domain) = (header.exporter, header.domain);
            say(format_args!(
                "{which} from {exporter}, domain {domain}: number {} where {} was due: {what}",
                gap.found, gap.expected
            ));
        }
        _ => printer.item(to, time, item)?,
    }
    Ok(())
}

fn say(what: std::fmt::Arguments<'_>) {
    // Without standard error the exit code still tells.
    let _ = writeln!(io::stderr(), "weir: {what}");
}
