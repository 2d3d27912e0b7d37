//! `weir pcap`: captures, written to a file or to standard output as they come.
//!
//! The stream is read on a thread of its own, since reading waits; this one writes, and waits for
//! Ctrl-C. Ctrl-C asks the router to end the capture, whose last block then says how many packets were
//! lost; a second one ends at once. The summary is written to standard error when the capture itself goes
//! to standard output.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use weir_api::{CaptureRequest, Client, ClientError};
use weir_pcap::ng::Tally;

use crate::cli::{CapturePoint, PcapCaptureArgs, PcapCommand, PcapStopArgs, Where};
use crate::client::Output;
use crate::failure::Failure;
use crate::render;

/// Pieces that wait to be written.
const WAITING: usize = 4;

/// What a capture came to.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// The file; absent for standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// Packets captured.
    pub(crate) packets: u64,
    /// Their bytes on the wire.
    pub(crate) bytes: u64,
    /// Packets lost, since they were not read fast enough.
    pub(crate) lost: u64,
    /// Whether the router ended it, and so sent all of it.
    pub(crate) complete: bool,
}

/// Does it.
pub(crate) fn execute(
    what: &PcapCommand,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let client = at.client()?;
    match what {
        PcapCommand::Capture(args) => capture(args, &client, json, to),
        PcapCommand::Show => Output::new(json, to).put(&client.captures()?, render::pcap::captures),
        PcapCommand::Stop(args) => stop(args, &client, json, to),
    }
}

fn stop(
    args: &PcapStopArgs,
    client: &Client,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let numbers = match args.number {
        Some(number) => vec![number],
        None => client
            .captures()?
            .captures
            .into_iter()
            .map(|capture| capture.number)
            .collect(),
    };
    let mut ended = Vec::new();
    for number in numbers {
        ended.push(client.capture_end(number)?);
    }
    Output::new(json, to).put(&ended, |ended, _| {
        ended.iter().map(render::pcap::ended).collect()
    })
}

fn request(args: &PcapCaptureArgs) -> CaptureRequest {
    let wants = |point| {
        args.points.contains(&point)
            || (args.points.is_empty() && (args.reason.is_empty() || point == CapturePoint::Drop))
    };
    CaptureRequest {
        rx: wants(CapturePoint::Rx),
        tx: wants(CapturePoint::Tx),
        drop: wants(CapturePoint::Drop),
        interface: args.interface.clone(),
        reasons: args.reason.clone(),
        packets: args.count,
        bytes: args.size,
        milliseconds: args
            .duration
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        snap_bytes: args.snap,
    }
}

fn capture(
    args: &PcapCaptureArgs,
    client: &Client,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let is_stdout = args.write == Path::new("-");
    if is_stdout && io::stdout().is_terminal() {
        return Err(Failure::said(
            "a capture is nothing for a terminal: write it to a file with -w FILE, or pipe it: | tshark -r -",
        ));
    }
    let mut tally = Tally::default();
    if is_stdout {
        follow(
            client,
            &request(args),
            || Ok(Box::new(&mut *to)),
            &mut tally,
        )?;
        // Nobody may read it; the capture is what counts.
        let _ = tell(&summary(&tally, None), json, &mut io::stderr());
        return Ok(());
    }
    let name = args.write.display().to_string();
    let create = || {
        let file = File::create(&args.write)
            .map_err(|error| Failure::said(format_args!("{name}: {error}")))?;
        Ok(Box::new(BufWriter::new(file)) as Box<dyn Write>)
    };
    follow(client, &request(args), create, &mut tally)?;
    tell(&summary(&tally, Some(name.clone())), json, to)
}

fn summary(tally: &Tally, file: Option<String>) -> Summary {
    Summary {
        file,
        packets: tally.packets,
        bytes: tally.octets,
        lost: tally.lost,
        complete: tally.is_whole,
    }
}

fn tell(summary: &Summary, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string(summary).map_err(Failure::said)?
        )?;
    } else {
        to.write_all(render::pcap::summary(summary).as_bytes())?;
    }
    Ok(())
}

/// Begins a capture and writes it to what `open` opens, to its end. Whatever goes wrong, it is ended.
fn follow<'a>(
    client: &Client,
    request: &CaptureRequest,
    open: impl FnOnce() -> Result<Box<dyn Write + 'a>, Failure>,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::said)?;
    let mut interrupt = runtime
        .block_on(async { signal(SignalKind::interrupt()) })
        .map_err(Failure::said)?;
    let mut terminate = runtime
        .block_on(async { signal(SignalKind::terminate()) })
        .map_err(Failure::said)?;
    let pieces = client.capture(request)?;
    let number = pieces.number;
    let (sender, mut heard) = mpsc::channel(WAITING);
    let read = move || {
        // Nobody listens any more: enough was read.
        let _ = pieces
            .into_iter()
            .try_for_each(|piece| sender.blocking_send(piece));
    };
    std::thread::Builder::new()
        .name("pcap".to_owned())
        .spawn(read)
        .map_err(Failure::said)?;
    let outcome = open().and_then(|mut to| {
        let mut asked_to_end = false;
        loop {
            let piece: Option<Result<Vec<u8>, ClientError>> = runtime.block_on(async {
                tokio::select! {
                    biased;
                    _ = interrupt.recv() => None,
                    _ = terminate.recv() => None,
                    piece = heard.recv() => Some(piece.unwrap_or(Ok(Vec::new()))),
                }
            });
            match piece.transpose()? {
                // The end of the stream; the router sends no empty pieces.
                Some(piece) if piece.is_empty() => break,
                Some(piece) => {
                    tally.read(&piece);
                    to.write_all(&piece)?;
                    to.flush()?;
                }
                None if asked_to_end => break,
                None => {
                    asked_to_end = true;
                    client.capture_end(number)?;
                }
            }
        }
        Ok(())
    });
    if outcome.is_err() {
        // It may have ended by itself.
        let _ = client.capture_end(number);
    }
    outcome
}
