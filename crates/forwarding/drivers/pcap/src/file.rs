//! Capture files: reads pcap and pcapng, writes pcap with nanoseconds.
//!
//! [`Reader`] is an iterator over the packets of a file or a pipe, whatever its byte order, time
//! resolution and number of interfaces; it holds one block in memory at a time. [`Writer`] makes
//! classic pcap files, which everything reads.
//!
//! A file can hold anything. Nothing in it makes this panic or take more than [`MAX_BLOCK`] of memory:
//! what is damaged is an error, and after an error the reader ends, because the place where the next
//! packet begins is known only from the one before.
//!
//! Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, InterfaceDescriptionBlock, PcapBlockOwned, PcapError, PcapHeader};

/// `LINKTYPE_ETHERNET`: frames from the destination MAC on, without FCS.
pub const ETHERNET: u32 = 1;
/// `LINKTYPE_RAW`: packets from the IP header on.
pub const RAW: u32 = 101;
/// `LINKTYPE_LINUX_SLL`: Linux cooked capture.
pub const LINUX_SLL: u32 = 113;
/// `LINKTYPE_LINUX_SLL2`: Linux cooked capture, version 2.
pub const LINUX_SLL2: u32 = 276;

/// Octets that a block of a file (a packet and what describes it) may have.
pub const MAX_BLOCK: usize = 16 << 20;

/// Octets held at first; larger blocks make it grow.
const FIRST_BUFFER: usize = 64 << 10;

/// The most that tools capture of a packet.
const MAX_SNAPLEN: u32 = 262_144;

const NANOSECONDS: u64 = 1_000_000_000;

/// A packet out of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it was captured, in nanoseconds since 1970; 0 where the file does not say.
    pub timestamp_ns: u64,
    /// How long it was; `data` may be less.
    pub orig_len: u32,
    /// What was kept of it.
    pub data: Vec<u8>,
    /// What `data` begins with: [`ETHERNET`], [`RAW`], …
    pub linktype: u32,
}

/// Why a capture file cannot be read (on).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system says so.
    #[error("cannot read the capture: {0}")]
    Io(#[from] io::Error),
    /// Neither pcap nor pcapng.
    #[error("not a capture file (neither pcap nor pcapng)")]
    NotACapture,
    /// The file ends inside a packet.
    #[error("the capture ends in the middle of a packet")]
    Truncated,
    /// A block claims to be larger than [`MAX_BLOCK`].
    #[error("the capture has a block of more than {MAX_BLOCK} octets")]
    TooLarge,
    /// A block contradicts itself.
    #[error("the capture is damaged")]
    Damaged,
    /// A packet belongs to an interface that the file does not describe.
    #[error("the capture has a packet of interface {0}, which it does not describe")]
    UnknownInterface(u32),
}

/// Iterator over the packets of a capture.
pub struct Reader {
    blocks: Box<dyn PcapReaderIterator + Send>,
    read_error: ReadError,
    interfaces: Vec<Interface>,
    capacity: usize,
    done: bool,
}

/// What packets take over from the interface they were captured at.
#[derive(Clone, Copy)]
struct Interface {
    linktype: u32,
    /// Octets kept of each packet; 0 for all.
    snaplen: u32,
    /// `if_tsresol`: a power of ten, or of two with the highest bit.
    resolution: u8,
    /// Seconds to be added to each timestamp.
    offset: i64,
}

impl Reader {
    /// Opens a capture file.
    ///
    /// # Errors
    /// When it cannot be read or does not begin as a capture does.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, FileError> {
        Reader::new(File::open(path)?)
    }

    /// Reads a capture from anything, for example a pipe.
    ///
    /// # Errors
    /// When it cannot be read or does not begin as a capture does.
    pub fn new(source: impl Read + Send + 'static) -> Result<Reader, FileError> {
        let read_error = ReadError::default();
        let source = Patient {
            source,
            error: read_error.clone(),
        };
        let blocks =
            pcap_parser::create_reader(FIRST_BUFFER, source).map_err(|error| match error {
                PcapError::ReadError => read_error.take(),
                _ => FileError::NotACapture,
            })?;
        Ok(Reader {
            blocks,
            read_error,
            interfaces: Vec::new(),
            capacity: FIRST_BUFFER,
            done: false,
        })
    }

    /// The next packet; `None` at the file's proper end.
    fn read(&mut self) -> Result<Option<Captured>, FileError> {
        loop {
            match self.blocks.next() {
                Ok((len, block)) => {
                    let packet = packet(&block, &mut self.interfaces);
                    drop(block);
                    self.blocks.consume(len);
                    if let Some(packet) = packet? {
                        return Ok(Some(packet));
                    }
                    continue;
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::UnexpectedEof) => return Err(FileError::Truncated),
                Err(PcapError::Incomplete(_)) => {}
                Err(PcapError::BufferTooSmall) => self.grow()?,
                Err(PcapError::ReadError) => return Err(self.read_error.take()),
                Err(_) => return Err(FileError::Damaged),
            }
            self.refill()?;
        }
    }

    fn refill(&mut self) -> Result<(), FileError> {
        let before = self.blocks.data().len();
        self.blocks.refill().map_err(|_| self.read_error.take())?;
        // Full, and still not a whole block.
        if self.blocks.data().len() == before && !self.blocks.reader_exhausted() {
            self.grow()
        } else {
            Ok(())
        }
    }

    fn grow(&mut self) -> Result<(), FileError> {
        self.capacity *= 2;
        if self.capacity > 2 * MAX_BLOCK || !self.blocks.grow(self.capacity) {
            Err(FileError::TooLarge)
        } else {
            Ok(())
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Captured, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The packet in a block; other blocks change what is known of the interfaces.
fn packet(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Captured>, FileError> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => *interfaces = vec![Interface::of_pcap(header)],
        PcapBlockOwned::Legacy(packet) => {
            let interface = interface(interfaces, 0)?;
            let time = u64::from(packet.ts_sec) << 32 | u64::from(packet.ts_usec);
            return Ok(Some(Captured {
                timestamp_ns: interface.pcap_time(time),
                orig_len: packet.origlen,
                data: packet.data.to_vec(),
                linktype: interface.linktype,
            }));
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            interfaces.push(Interface::of_pcapng(description))
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = interface(interfaces, packet.if_id)?;
            return Ok(Some(Captured {
                timestamp_ns: interface
                    .time(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low)),
                orig_len: packet.origlen,
                data: packet.packet_data().to_vec(),
                linktype: interface.linktype,
            }));
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            // Without a time, of the first interface, cut to its snap length (pcapng, section 4.4).
            let interface = interface(interfaces, 0)?;
            let snaplen = if interface.snaplen == 0 {
                usize::MAX
            } else {
                interface.snaplen as usize
            };
            let data = packet.packet_data();
            return Ok(Some(Captured {
                timestamp_ns: 0,
                orig_len: packet.origlen,
                data: data.get(..snaplen).unwrap_or(data).to_vec(),
                linktype: interface.linktype,
            }));
        }
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
}

fn interface(interfaces: &[Interface], number: u32) -> Result<&Interface, FileError> {
    interfaces
        .get(number as usize)
        .ok_or(FileError::UnknownInterface(number))
}

impl Interface {
    fn of_pcap(header: &PcapHeader) -> Interface {
        Interface {
            // The upper six bits say whether there is an FCS (pcap, section 4).
            linktype: header.network.0.cast_unsigned() & 0x03ff_ffff,
            snaplen: header.snaplen,
            resolution: if header.is_nanosecond_precision() {
                9
            } else {
                6
            },
            offset: header.thiszone.into(),
        }
    }

    fn of_pcapng(description: &InterfaceDescriptionBlock<'_>) -> Interface {
        Interface {
            linktype: description.linktype.0.cast_unsigned(),
            snaplen: description.snaplen,
            resolution: description.if_tsresol,
            offset: description.if_tsoffset,
        }
    }

    /// Seconds in the upper half, micro- or nanoseconds in the lower.
    fn pcap_time(&self, time: u64) -> u64 {
        let fraction = (time & 0xffff_ffff) * if self.resolution == 9 { 1 } else { 1000 };
        (time >> 32) * NANOSECONDS + fraction
    }

    /// A count of units since 1970, with the offset (pcapng, section 4.2); times that nanoseconds
    /// since 1970 cannot express become the nearest one.
    fn time(&self, units: u64) -> u64 {
        let units = u128::from(units) * u128::from(NANOSECONDS);
        let exponent = u32::from(self.resolution & 0x7f);
        let nanoseconds = if self.resolution & 0x80 == 0 {
            10_u128
                .checked_pow(exponent)
                .map_or(0, |per_second| units / per_second)
        } else {
            units.checked_shr(exponent).unwrap_or(0)
        };
        let offset = i128::from(self.offset) * i128::from(NANOSECONDS);
        // 64 bits times a billion has 94.
        let time = i128::try_from(nanoseconds)
            .unwrap_or(i128::MAX)
            .saturating_add(offset)
            .max(0);
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

/// Fills what it is given as far as the source goes: a pipe hands out what it has, and the parser
/// takes the first piece for the whole beginning.
struct Patient<R> {
    source: R,
    error: ReadError,
}

impl<R: Read> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.source.read(room) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error.keep(error);
                    return Err(io::ErrorKind::Other.into());
                }
            }
        }
        Ok(filled)
    }
}

/// What the operating system said; the parser forgets it.
#[derive(Clone, Default)]
struct ReadError(Arc<Mutex<Option<io::Error>>>);

impl ReadError {
    fn keep(&self, error: io::Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn take(&self) -> FileError {
        let error = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        FileError::Io(error.unwrap_or_else(|| io::ErrorKind::Other.into()))
    }
}

/// Writes a pcap file with nanoseconds, little endian.
#[derive(Debug)]
pub struct Writer<W: Write> {
    sink: W,
}

impl Writer<io::BufWriter<File>> {
    /// Creates a file, or empties the one that is there.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn create(path: impl AsRef<Path>, linktype: u32) -> io::Result<Self> {
        Writer::new(io::BufWriter::new(File::create(path)?), linktype)
    }
}

impl<W: Write> Writer<W> {
    /// Writes the file's header. All packets have the same link type.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn new(mut sink: W, linktype: u32) -> io::Result<Self> {
        // Magic of files with nanoseconds, version 2.4, two unused words (pcap, section 4).
        let header = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, MAX_SNAPLEN, linktype];
        sink.write_all(&words(header))?;
        Ok(Writer { sink })
    }

    /// Goes on with a file whose header was written before.
    pub fn appending(sink: W) -> Self {
        Writer { sink }
    }

    /// Writes a packet that was `orig_len` long; of `data` at most 262,144 octets are kept.
    ///
    /// # Errors
    /// When the sink refuses, or the time is later than 2106, which the format cannot express.
    pub fn write(&mut self, timestamp_ns: u64, orig_len: u32, data: &[u8]) -> io::Result<()> {
        let Ok(seconds) = u32::try_from(timestamp_ns / NANOSECONDS) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a pcap file cannot express times after 2106",
            ));
        };
        let nanoseconds = (timestamp_ns % NANOSECONDS) as u32;
        let kept = data.get(..MAX_SNAPLEN as usize).unwrap_or(data);
        self.sink
            .write_all(&words([seconds, nanoseconds, kept.len() as u32, orig_len]))?;
        self.sink.write_all(kept)
    }

    /// Hands everything written so far on.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    /// The sink, for example the bytes of a file in memory.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.sink
    }
}

fn words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
