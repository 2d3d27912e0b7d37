//! `weir sflow decode`: sFlow datagrams of a capture file or of the network, printed.
//!
//! A broken datagram is told on standard error and the next one is decoded: a collector's life. A
//! file that held broken ones, or is broken itself, ends with exit code 1, after everything that
//! could be read was printed. Datagrams are numbered by the file's frames, as Wireshark does it;
//! those received, in order of arrival, from 1.

use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_flowfmt::sflow::capture::udp_payload;
use weir_flowfmt::sflow::decode_datagram_to;
use weir_flowfmt::sflow::print::{Format, PrintError};
use weir_pcap::file::Reader;

use super::udp_listen::listen;
use crate::cli::{DecodeFormat, SflowDecodeArgs};
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(args: &SflowDecodeArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let usual = if json { DecodeFormat::Json } else { DecodeFormat::Text };
    let mut decoder = Decoder { to, format: format(args.format.unwrap_or(usual)), broken: 0 };
    match (&args.read, args.listen) {
        (Some(path), _) => decoder.file(path, args.port),
        (None, Some(address)) => decoder.network(address),
        (None, None) => Err(Failure::said("nothing to decode: -r FILE or -l ADDR:PORT")),
    }
}

fn format(wanted: DecodeFormat) -> Format {
    match wanted {
        DecodeFormat::Text => Format::Text,
        DecodeFormat::Line => Format::Line,
        DecodeFormat::Json => Format::Json,
    }
}

struct Decoder<'a> {
    to: &'a mut dyn Write,
    format: Format,
    broken: u64,
}

impl Decoder<'_> {
    fn file(&mut self, path: &Path, port: u16) -> Result<(), Failure> {
        let name = path.display();
        let reader = Reader::open(path).map_err(|error| Failure::said(format_args!("{name}: {error}")))?;
        let (mut number, mut datagrams) = (0_u64, 0_u64);
        for captured in reader {
            number += 1;
            let frame = match captured {
                Ok(frame) => frame,
                Err(error) => {
                    self.tell(format_args!("{name}: frame {number}"), &error)?;
                    continue;
                }
            };
            let Some(found) = udp_payload(frame.linktype, &frame.data).filter(|found| found.destination.port() == port) else {
                continue;
            };
            datagrams += 1;
            self.datagram(number, found.source.ip(), frame.timestamp_ns, found.payload)?;
        }
        if datagrams == 0 && self.broken == 0 {
            say(format_args!("{name}: none of its {number} frames is a whole UDP datagram to port {port} (--port chooses another)"));
        }
        if self.broken == 0 { Ok(()) } else { Err(Failure::Told(1)) }
    }

    fn network(&mut self, address: SocketAddr) -> Result<(), Failure> {
        let mut number = 0_u64;
        let ready = |address: SocketAddr| say(format_args!("listening on {address}; Ctrl-C ends it"));
        listen(address, ready, |from, bytes| {
            number += 1;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            self.datagram(number, from.ip(), u64::try_from(now).unwrap_or(u64::MAX), bytes)?;
            Ok(self.to.flush()?)
        })
    }

    fn datagram(&mut self, number: u64, from: IpAddr, time: u64, bytes: &[u8]) -> Result<(), Failure> {
        match decode_datagram_to(&mut self.to, self.format, from, time, bytes) {
            Ok(()) => Ok(()),
            Err(PrintError::Malformed(error)) => self.tell(format_args!("datagram {number} from {from}"), &error),
            Err(PrintError::Output(error)) => Err(error.into()),
        }
    }

    /// What was printed before goes out first, so that the two stay in order on a terminal.
    fn tell(&mut self, which: fmt::Arguments<'_>, why: &dyn fmt::Display) -> Result<(), Failure> {
        self.broken += 1;
        self.to.flush()?;
        say(format_args!("{which}: {why}"));
        Ok(())
    }
}

fn say(what: fmt::Arguments<'_>) {
    // Without standard error the exit code still tells.
    let _ = writeln!(io::stderr(), "weir: {what}");
}
