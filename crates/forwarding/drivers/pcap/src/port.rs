//! The port over a file to read and a file to write; either may be missing. Without a file to write
//! what is sent vanishes, counted.

use std::path::Path;
use std::sync::Arc;

use weir_port::{
    Capabilities, HardwareCounter, LONGEST_FRAME, LinkState, OpenError, Port, QueuePair, Source,
};
use weir_ring::Padded;
use weir_ring::counter::Counter;
use weir_wire::MacAddr;

use crate::file::{ETHERNET, FileError, Reader, Writer};
use crate::rx::Receiver;
use crate::tx::Sender;

/// What the receiving side counts.
#[derive(Debug, Default)]
pub(crate) struct RxCounts {
    pub(crate) packets: Counter,
    pub(crate) no_buffer: Counter,
    pub(crate) cut: Counter,
    pub(crate) too_long: Counter,
    pub(crate) not_ethernet: Counter,
    pub(crate) damaged: Counter,
}

/// What the sending side counts.
#[derive(Debug, Default)]
pub(crate) struct TxCounts {
    pub(crate) packets: Counter,
    pub(crate) lost: Counter,
}

/// The port's counters.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) rx: Padded<RxCounts>,
    pub(crate) tx: Padded<TxCounts>,
}

/// Capture files as a port.
pub struct PcapPort {
    name: String,
    mode: &'static str,
    queues: Vec<QueuePair>,
    receives: bool,
    counts: Arc<Counts>,
}

impl PcapPort {
    /// Opens the file to read and creates, or empties, the file to write.
    ///
    /// # Errors
    /// One sentence: which file, and what to do.
    pub fn open(input: Option<&Path>, output: Option<&Path>) -> Result<PcapPort, OpenError> {
        if let (Some(input), Some(output)) = (input, output)
            && same_file(input, output)
        {
            return Err(OpenError(format!(
                "{} cannot be read and written at once: use another file for the output",
                input.display()
            )));
        }
        let counts = Arc::<Counts>::default();
        let reader = input
            .map(|path| Reader::open(path).map_err(|error| unreadable(path, &error)))
            .transpose()?;
        let writer = output
            .map(|path| Writer::create(path, ETHERNET).map_err(|error| unwritable(path, &error)))
            .transpose()?;
        let mode = match (&reader, &writer) {
            (Some(_), Some(_)) => "reads and writes",
            (Some(_), None) => "reads, swallows",
            (None, Some(_)) => "writes",
            (None, None) => "swallows",
        };
        let name = input
            .or(output)
            .map_or_else(|| "pcap".to_owned(), |path| path.display().to_string());
        let receives = reader.is_some();
        let pair = QueuePair {
            rx: reader
                .map(|reader| Box::new(Receiver::new(reader, name.clone(), counts.clone())) as _),
            tx: Some(Box::new(Sender::new(
                writer,
                output.unwrap_or(Path::new("")).display().to_string(),
                counts.clone(),
            ))),
        };
        Ok(PcapPort {
            name,
            mode,
            queues: vec![pair],
            receives,
            counts,
        })
    }
}

/// Creating the output would empty the input. A path that is not there yet is no file yet.
fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn unreadable(path: &Path, error: &FileError) -> OpenError {
    let advice = match error {
        FileError::Io(_) => "give the path of a capture file that may be read",
        _ => "`tcpdump -w` and Wireshark write such files",
    };
    OpenError(format!("{}: {error}: {advice}", path.display()))
}

fn unwritable(path: &Path, error: &std::io::Error) -> OpenError {
    OpenError(format!(
        "{}: cannot write the capture: {error}: give a path in a folder that may be written",
        path.display()
    ))
}

impl Port for PcapPort {
    fn device(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        let rx_queues = usize::from(self.receives);
        Capabilities {
            driver: "pcap",
            mode: self.mode.to_owned(),
            rx_queues,
            tx_queues: 1,
            max_frame: LONGEST_FRAME,
        }
    }

    fn mac(&self) -> Option<MacAddr> {
        None
    }

    fn take_queues(&mut self) -> Vec<QueuePair> {
        std::mem::take(&mut self.queues)
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: 0 }
    }

    fn counters(&self) -> Vec<HardwareCounter> {
        let (rx, tx) = (&self.counts.rx, &self.counts.tx);
        let list = [
            ("rx_packets", &rx.packets),
            ("rx_no_buffer", &rx.no_buffer),
            ("rx_cut", &rx.cut),
            ("rx_too_long", &rx.too_long),
            ("rx_not_ethernet", &rx.not_ethernet),
            ("rx_damaged", &rx.damaged),
            ("tx_packets", &tx.packets),
            ("tx_lost", &tx.lost),
        ];
        list.map(|(name, counter)| HardwareCounter {
            name: name.to_owned(),
            value: counter.get(),
            source: Source::Driver,
        })
        .into()
    }
}
