//! Writes pcapng: packets of several interfaces in one stream, with names, directions and comments.
//!
//! Blocks are appended to a buffer that the caller empties whenever it likes: a stream that is cut
//! between two blocks is a whole capture. Little endian, nanoseconds.
//!
//! Format: draft-ietf-opsawg-pcapng, whose sections are named at the blocks.

use crate::file::ETHERNET;

/// Which way a packet went past its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It came in.
    Inbound,
    /// It went out.
    Outbound,
}

/// What an interface statistics block tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// Packets that were written.
    pub delivered: u64,
    /// Packets that were seen and lost, because whoever reads was too slow.
    pub lost: u64,
}

/// Appends blocks to a buffer.
#[derive(Debug, Default)]
pub struct Blocks {
    bytes: Vec<u8>,
    interfaces: u32,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const COMMENT: u16 = 1;

impl Blocks {
    /// A new capture by `application`.
    #[must_use]
    pub fn new(application: &str) -> Blocks {
        let mut blocks = Blocks::default();
        // 4.1: byte order, version 1.0, a section of unknown length; `shb_userappl` is option 4.
        let mut body = [0x1a2b_3c4d, 1, u32::MAX, u32::MAX]
            .iter()
            .flat_map(|word: &u32| word.to_le_bytes())
            .collect::<Vec<u8>>();
        option(&mut body, 4, application.as_bytes());
        blocks.block(SECTION_HEADER, body);
        blocks
    }

    /// Describes an interface; packets of it have the number that is returned.
    pub fn interface(&mut self, name: &str, snap: u32) -> u32 {
        // 4.2: link type, two reserved octets, snap length; `if_name` is option 2, `if_tsresol` 9.
        let mut body = Vec::from(ETHERNET.to_le_bytes());
        body.extend(snap.to_le_bytes());
        option(&mut body, 2, name.as_bytes());
        option(&mut body, 9, &[9]);
        self.block(INTERFACE_DESCRIPTION, body);
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// A packet that was `length` octets long.
    pub fn packet(
        &mut self,
        interface: u32,
        time: u64,
        length: u32,
        data: &[u8],
        direction: Direction,
        comment: Option<&str>,
    ) {
        // 4.3; `epb_flags` is option 2, whose lowest two bits are the direction.
        let mut body = Vec::with_capacity(data.len() + 96);
        let kept = u32::try_from(data.len()).unwrap_or(u32::MAX);
        for word in [interface, (time >> 32) as u32, time as u32, kept, length] {
            body.extend(word.to_le_bytes());
        }
        body.extend_from_slice(data);
        pad(&mut body);
        let flags: u32 = if direction == Direction::Inbound {
            1
        } else {
            2
        };
        if let Some(comment) = comment {
            option(&mut body, COMMENT, comment.as_bytes());
        }
        option(&mut body, 2, &flags.to_le_bytes());
        self.block(ENHANCED_PACKET, body);
    }

    /// What was counted at an interface.
    pub fn statistics(&mut self, interface: u32, counted: Statistics) {
        // 4.6; `isb_ifrecv` is option 4, `isb_osdrop` 7, `isb_usrdeliv` 8.
        let mut body = Vec::new();
        for word in [interface, (counted.time >> 32) as u32, counted.time as u32] {
            body.extend(word.to_le_bytes());
        }
        option(
            &mut body,
            4,
            &(counted.delivered + counted.lost).to_le_bytes(),
        );
        option(&mut body, 7, &counted.lost.to_le_bytes());
        option(&mut body, 8, &counted.delivered.to_le_bytes());
        self.block(INTERFACE_STATISTICS, body);
    }

    /// Octets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes what was appended so far: whole blocks.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// A block: type, length, body, `opt_endofopt`, length again (3.1).
    fn block(&mut self, kind: u32, mut body: Vec<u8>) {
        body.extend([0; 4]);
        let length = (body.len() + 12) as u32;
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(body);
        self.bytes.extend(length.to_le_bytes());
    }
}

/// An option: code, length, value, padded to 32 bits (3.5).
fn option(to: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    to.extend(code.to_le_bytes());
    to.extend((value.len() as u16).to_le_bytes());
    to.extend_from_slice(value);
    pad(to);
}

fn pad(to: &mut Vec<u8>) {
    to.resize(to.len().next_multiple_of(4), 0);
}

/// What a stream of blocks tells about itself, read as it goes by.
#[derive(Debug, Default)]
pub struct Tally {
    /// Packets that went by.
    pub packets: u64,
    /// Their octets on the wire.
    pub octets: u64,
    /// Packets that were lost, as the statistics at the end say.
    pub lost: u64,
    /// Whether the statistics came: the capture was ended, not cut off.
    pub is_whole: bool,
    /// The beginning of a block that is not whole yet.
    rest: Vec<u8>,
    /// Octets of the present block that need not be looked at.
    skip: usize,
}

/// As much of a block as is looked at: an interface statistics block is shorter.
const LOOKED_AT: usize = 96;

impl Tally {
    /// Reads on.
    pub fn read(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let skipped = self.skip.min(piece.len());
            self.skip -= skipped;
            piece = piece.get(skipped..).unwrap_or(&[]);
            let wanted = self.wanted();
            let taken = piece.len().min(wanted - self.rest.len());
            self.rest
                .extend_from_slice(piece.get(..taken).unwrap_or(&[]));
            piece = piece.get(taken..).unwrap_or(&[]);
            if self.rest.len() >= 8 && self.rest.len() == self.wanted() {
                self.block();
            }
        }
    }

    /// Octets of the present block to look at: its head, and then what its length allows.
    fn wanted(&self) -> usize {
        if self.rest.len() < 8 {
            8
        } else {
            self.length().min(LOOKED_AT)
        }
    }

    fn word(&self, place: usize) -> u32 {
        self.rest
            .get(place..place + 4)
            .and_then(|word| word.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    }

    fn length(&self) -> usize {
        (self.word(4) as usize).max(12)
    }

    fn block(&mut self) {
        match self.word(0) {
            ENHANCED_PACKET => {
                self.packets += 1;
                self.octets += u64::from(self.word(24));
            }
            INTERFACE_STATISTICS => {
                self.is_whole = true;
                self.lost += self.lost_in_statistics();
            }
            _ => {}
        }
        self.skip = self.length() - self.rest.len();
        self.rest.clear();
    }

    /// `isb_osdrop` among the options behind 20 octets.
    fn lost_in_statistics(&self) -> u64 {
        let mut place = 20;
        while let Some(head) = self.rest.get(place..place + 4) {
            let [code, length] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_le_bytes);
            if code == 7 {
                return u64::from(self.word(place + 4)) | u64::from(self.word(place + 8)) << 32;
            }
            if code == 0 {
                break;
            }
            place += 4 + usize::from(length).next_multiple_of(4);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Reader;

    fn capture() -> Vec<u8> {
        let mut blocks = Blocks::new("weir");
        let (left, right) = (blocks.interface("left", 0), blocks.interface("right", 96));
        blocks.packet(
            left,
            1_700_000_000_123_456_789,
            3,
            &[1, 2, 3],
            Direction::Inbound,
            None,
        );
        blocks.packet(
            right,
            1_700_000_000_123_456_790,
            1500,
            &[7; 96],
            Direction::Inbound,
            Some("dropped: no-route"),
        );
        blocks.statistics(
            left,
            Statistics {
                time: 1_700_000_001_000_000_000,
                delivered: 2,
                lost: 5,
            },
        );
        blocks.take()
    }

    #[test]
    fn a_foreign_reader_reads_it() {
        let packets: Vec<_> = Reader::new(std::io::Cursor::new(capture()))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(packets.len(), 2);
        assert_eq!(
            (packets[0].timestamp_ns, &packets[0].data[..]),
            (1_700_000_000_123_456_789, &[1, 2, 3][..])
        );
        assert_eq!(
            (
                packets[1].orig_len,
                packets[1].data.len(),
                packets[1].linktype
            ),
            (1500, 96, ETHERNET)
        );
    }

    #[test]
    fn the_octets_are_those_of_the_specification() {
        let mut blocks = Blocks::new("w");
        let section = blocks.take();
        // Type, length 40, magic, version 1.0, unknown length; shb_userappl "w"; end of options; length.
        let expected = "0a0d0d0a 28000000 4d3c2b1a 01000000 ffffffffffffffff 04000100 77000000 00000000 28000000";
        assert_eq!(hex(&section), expected.replace(' ', ""));
        assert_eq!(blocks.interface("x", 0), 0);
        // Type 1, length 40, Ethernet, no snap length; if_name "x"; if_tsresol 9; end; length.
        let expected = "01000000 28000000 01000000 00000000 02000100 78000000 09000100 09000000 00000000 28000000";
        assert_eq!(hex(&blocks.take()), expected.replace(' ', ""));
        blocks.packet(0, 0x1_0000_0002, 9, &[0xab], Direction::Outbound, None);
        let expected = "06000000 30000000 00000000 01000000 02000000 01000000 09000000 ab000000 02000400 02000000 00000000 30000000";
        assert_eq!(hex(&blocks.take()), expected.replace(' ', ""));
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_tally_is_right_however_the_stream_is_cut() {
        let whole = capture();
        for size in [1, 2, 7, 64, 4096] {
            let mut tally = Tally::default();
            whole.chunks(size).for_each(|piece| tally.read(piece));
            assert_eq!(
                (tally.packets, tally.octets, tally.lost, tally.is_whole),
                (2, 1503, 5, true),
                "pieces of {size}"
            );
        }
        let mut cut = Tally::default();
        cut.read(&whole[..whole.len() - 70]);
        assert!(!cut.is_whole);
    }

    #[test]
    fn the_tally_survives_nonsense() {
        let mut tally = Tally::default();
        for seed in 0..2_000_u32 {
            let word = seed.wrapping_mul(2_654_435_761);
            tally.read(&[6, 0, 0, 0]);
            tally.read(&(word % 64).to_le_bytes());
            tally.read(&word.to_be_bytes());
        }
    }
}
