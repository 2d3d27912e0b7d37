//! `weir sflow decode`: sFlow datagrams of a capture file or of the network, printed, counted, written
//! as packets, passed on, turned into NetFlow.
//!
//! A broken datagram is reported on standard error and the next one is decoded: a collector's life. A
//! file that held broken ones, or is broken itself, ends with exit code 1, after everything that
//! could be read was printed. Datagrams are numbered by the file's frames, as Wireshark does it;
//! those received, in order of arrival, from 1.

use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_flowfmt::netflow5::{Converter, Options};
use weir_flowfmt::sflow::capture::{self, UdpReader, cut_datagram};
use weir_flowfmt::sflow::decode::Problem;
use weir_flowfmt::sflow::ledger::Ledger;
use weir_flowfmt::sflow::print::{Format, PrintError};
use weir_flowfmt::sflow::{decode_datagram_to, version4};
use weir_pcap::file::Reader;

use super::listen::datagrams;
use crate::cli::{DecodeFormat, SflowDecodeArgs};
use crate::collector::{Destinations, Packets, render};
use crate::failure::Failure;

/// Octets of the shortest datagram: the header with an IPv4 address of the agent, and no sample.
const SHORTEST: usize = 28;

/// Does it.
pub(crate) fn execute(
    args: &SflowDecodeArgs,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let mut decoder = Decoder::new(args, json, to)?;
    let outcome = match &args.read {
        Some(path) => decoder.file(path, args.port, args.playback),
        None => decoder.network(
            args.listen
                .unwrap_or(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), args.port)),
        ),
    };
    match outcome {
        Ok(()) | Err(Failure::Reported(_)) => decoder.end(json)?,
        Err(_) => {}
    }
    outcome
}

/// What is printed of each datagram.
enum Printed<'a> {
    Nothing,
    Form(Format<'a>),
    Packets(Packets),
}

struct Decoder<'a> {
    to: &'a mut dyn Write,
    printed: Printed<'a>,
    forward: Option<Destinations>,
    netflow: Option<(Converter, Destinations)>,
    ledger: Option<Ledger>,
    /// Whether datagrams are passed on and nothing else is done with them.
    is_forwarding_only: bool,
    broken: u64,
    /// Datagrams that go on behind their last sample.
    longer: u64,
}

impl<'a> Decoder<'a> {
    fn new(
        args: &'a SflowDecodeArgs,
        json: bool,
        to: &'a mut dyn Write,
    ) -> Result<Decoder<'a>, Failure> {
        let forward = if args.forward.is_empty() {
            None
        } else {
            Some(Destinations::new(&args.forward)?)
        };
        let netflow = match &args.netflow_collector {
            None => None,
            Some(host) => {
                let options = Options {
                    unscaled: args.no_scaling,
                    peer_as: args.peer_as,
                };
                Some((
                    Converter::new(options),
                    Destinations::new(&[(host.clone(), args.netflow_port)])?,
                ))
            }
        };
        let silent = forward.is_some() || netflow.is_some() || args.agents;
        let is_forwarding_only = netflow.is_none() && !args.agents && args.format.is_none();
        let printed = printed(args, json, silent);
        let mut decoder = Decoder {
            to,
            printed,
            forward,
            netflow,
            ledger: args.agents.then(Ledger::new),
            is_forwarding_only,
            broken: 0,
            longer: 0,
        };
        if let Printed::Packets(_) = decoder.printed {
            Packets::begin(&mut decoder.to)?;
        }
        Ok(decoder)
    }

    /// All datagrams of a file; `times` as fast as they were captured, or as fast as it goes.
    fn file(&mut self, path: &Path, port: u16, times: Option<f64>) -> Result<(), Failure> {
        let name = path.display();
        let opened = if path == Path::new("-") {
            Reader::new(io::stdin())
        } else {
            Reader::open(path)
        };
        let reader = opened.map_err(|error| Failure::said(format_args!("{name}: {error}")))?;
        let (mut number, mut datagrams) = (0_u64, 0_u64);
        let mut pace = times.map(Pace::new);
        let (mut udp, mut last) = (UdpReader::new(), 0);
        for captured in reader {
            number += 1;
            let frame = match captured {
                Ok(frame) => frame,
                Err(error) => {
                    self.tell(format_args!("{name}: frame {number}"), &error)?;
                    continue;
                }
            };
            last = frame.timestamp_ns;
            let Some(found) = udp
                .read(number, frame.linktype, &frame.data)
                .filter(|found| found.destination.port() == port)
            else {
                continue;
            };
            if let Some(pace) = &mut pace {
                self.to.flush()?;
                pace.wait(frame.timestamp_ns);
            }
            datagrams += 1;
            for datagram in capture::datagrams(found.payload) {
                self.datagram(
                    number,
                    found.source,
                    found.destination,
                    frame.timestamp_ns,
                    datagram,
                )?;
            }
        }
        let (cut, lost) = udp.finish();
        for (number, octets, ends) in cut {
            let found = cut_datagram(&octets, ends);
            let Some(found) = found.filter(|found| found.destination.port() == port) else {
                continue;
            };
            datagrams += 1;
            let why = "not all fragments of its datagram are there";
            self.tell(format_args!("{name}: frame {number}"), &why)?;
            self.datagram(number, found.source, found.destination, last, found.payload)?;
        }
        if lost > 0 {
            say(format_args!(
                "{name}: of {lost} UDP datagrams there are only some fragments"
            ));
        }
        if datagrams == 0 && self.broken == 0 {
            say(format_args!(
                "{name}: none of its {number} frames is a whole UDP datagram to port {port} (--port chooses another)"
            ));
        }
        if self.broken == 0 {
            Ok(())
        } else {
            Err(Failure::Reported(1))
        }
    }

    fn network(&mut self, address: SocketAddr) -> Result<(), Failure> {
        let mut number = 0_u64;
        let ready =
            |address: SocketAddr| say(format_args!("listening on {address}; Ctrl-C ends it"));
        datagrams(address, ready, |from, bytes| {
            number += 1;
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_nanos();
            self.datagram(
                number,
                from,
                address,
                u64::try_from(now).unwrap_or(u64::MAX),
                bytes,
            )?;
            Ok(self.to.flush()?)
        })
    }

    fn datagram(
        &mut self,
        number: u64,
        from: SocketAddr,
        at: SocketAddr,
        time: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        // Passed on before anybody looks whether it is sound.
        if let Some(forward) = &mut self.forward {
            forward.send(bytes);
        }
        let printed = match &mut self.printed {
            Printed::Nothing if self.is_forwarding_only => Ok(()),
            // What is wrong with a datagram is reported in any case.
            Printed::Nothing => {
                decode_datagram_to(&mut io::sink(), Format::Text, from.ip(), time, bytes)
            }
            Printed::Form(format) => {
                decode_datagram_to(&mut self.to, *format, from.ip(), time, bytes)
            }
            Printed::Packets(packets) => packets.write(&mut self.to, from, at, time, bytes),
        };
        if self.ledger.is_some() || self.netflow.is_some() {
            let mut room = Vec::new();
            if let Ok((datagram, ..)) = version4::decode(bytes, &mut room) {
                if let Some(ledger) = &mut self.ledger {
                    ledger.note(&datagram);
                }
                if let Some((converter, collector)) = &mut self.netflow {
                    converter.convert(&datagram, time, |packet| {
                        collector.send(packet);
                        Ok::<(), Failure>(())
                    })?;
                }
            }
        }
        match printed {
            Ok(()) => Ok(()),
            // All that the datagram announces is there, and what is behind it is too short for another one.
            Err(PrintError::Malformed(error)) if matches!(error.problem, Problem::BehindSamples(behind) if behind < SHORTEST) =>
            {
                self.longer += 1;
                Ok(())
            }
            Err(PrintError::Malformed(error)) => {
                self.tell(format_args!("datagram {number} from {}", from.ip()), &error)
            }
            Err(PrintError::Output(error)) => Err(error.into()),
        }
    }

    /// What is said when everything is over.
    fn end(&mut self, json: bool) -> Result<(), Failure> {
        if let Some(ledger) = &self.ledger {
            if json {
                render::json(ledger, &mut self.to)?
            } else {
                render::text(ledger, &mut self.to)?
            }
        }
        for (what, destinations) in [
            ("datagrams", &self.forward),
            (
                "NetFlow packets",
                &self.netflow.as_ref().map(|(_, to)| to.clone()),
            ),
        ] {
            if let Some(destinations) = destinations {
                destinations.tell(what);
            }
        }
        if let Some((converter, _)) = &self.netflow
            && converter.skipped > 0
        {
            say(format_args!(
                "{} samples have no IPv4 packet, and no place in NetFlow version 5",
                converter.skipped
            ));
        }
        match self.longer {
            0 => {}
            1 => say(format_args!(
                "1 datagram has octets behind its last sample, which were ignored"
            )),
            many => say(format_args!(
                "{many} datagrams have octets behind their last samples, which were ignored"
            )),
        }
        self.to.flush()?;
        Ok(())
    }

    /// What was printed before goes out first, so that the two stay in order on a terminal.
    fn tell(&mut self, which: fmt::Arguments<'_>, why: &dyn fmt::Display) -> Result<(), Failure> {
        self.broken += 1;
        self.to.flush()?;
        say(format_args!("{which}: {why}"));
        Ok(())
    }
}

/// Which form was asked for; without any, text, unless something else is to be done.
fn printed(args: &SflowDecodeArgs, json: bool, silent: bool) -> Printed<'_> {
    let form = |asked: bool, format| asked.then_some(Printed::Form(format));
    let packets = |asked: bool, packets| asked.then_some(Printed::Packets(packets));
    let by_name = |format| match format {
        DecodeFormat::Text => Printed::Form(Format::Text),
        DecodeFormat::Line => Printed::Form(Format::Line),
        DecodeFormat::Json => Printed::Form(Format::Json),
        DecodeFormat::None => Printed::Nothing,
    };
    args.format
        .map(by_name)
        .or(form(args.line, Format::Line))
        .or(form(
            !args.columns.is_empty(),
            Format::Columns(&args.columns),
        ))
        .or(form(args.grep, Format::Grep))
        .or(form(args.compact, Format::Json))
        .or(form(args.pretty, Format::PrettyJson))
        .or(packets(args.packets, Packets::Sampled))
        .or(packets(args.discards, Packets::Discarded))
        .or(packets(args.datagrams, Packets::Datagrams))
        .unwrap_or(if silent {
            Printed::Nothing
        } else {
            Printed::Form(if json { Format::Json } else { Format::Text })
        })
}

/// Waits until what was captured later is due.
struct Pace {
    times: f64,
    began: Instant,
    first: Option<u64>,
}

impl Pace {
    fn new(times: f64) -> Pace {
        Pace {
            times,
            began: Instant::now(),
            first: None,
        }
    }

    fn wait(&mut self, timestamp_ns: u64) {
        let first = *self.first.get_or_insert(timestamp_ns);
        // A capture's clock may step back: then nothing is waited for.
        let after = timestamp_ns.saturating_sub(first) as f64 / self.times;
        let due = Duration::from_nanos(after as u64);
        if let Some(rest) = due.checked_sub(self.began.elapsed()) {
            thread::sleep(rest);
        }
    }
}

fn say(what: fmt::Arguments<'_>) {
    // Without standard error the exit code still tells.
    let _ = writeln!(io::stderr(), "weir: {what}");
}
