//! The messages of the control channel: 128 bytes each, packed, in the machine's byte order.
//!
//! The layout is that of memif version 2.0 as libmemif and DPDK document it. Decoding looks at
//! nothing but the bytes: whether a message may come at this moment is the handshake's matter.
//! Names that a peer gives are cut to printable ASCII here, so that they can be logged and shown.

/// Bytes of every message.
pub(crate) const LENGTH: usize = 128;
/// The only version there is: 2.0.
pub(crate) const VERSION: u16 = 0x0200;
/// Bytes of a secret.
pub(crate) const SECRET: usize = 24;
/// The mode byte of Ethernet.
pub(crate) const ETHERNET: u8 = 0;
/// Bytes of the text in a DISCONNECT.
const TEXT: usize = 96;
const NAME: usize = 32;
/// Flag of ADD_RING: from slave to master.
const TO_MASTER: u16 = 1;

/// What a master says first: its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) name: String,
    pub(crate) min_version: u16,
    pub(crate) max_version: u16,
    pub(crate) max_region: u16,
    pub(crate) max_to_slave: u16,
    pub(crate) max_to_master: u16,
    pub(crate) max_log2_ring_size: u8,
}

/// What a slave answers: which interface it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Init {
    pub(crate) version: u16,
    pub(crate) id: u32,
    pub(crate) mode: u8,
    pub(crate) secret: [u8; SECRET],
    pub(crate) name: String,
}

/// Where a ring lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddRing {
    pub(crate) to_master: bool,
    pub(crate) index: u16,
    pub(crate) region: u16,
    pub(crate) offset: u32,
    pub(crate) log2_size: u8,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Ack,
    Hello(Hello),
    Init(Init),
    AddRegion { index: u16, size: u64 },
    AddRing(AddRing),
    Connect { name: String },
    Connected { name: String },
    Disconnect { code: u32, text: String },
    Unknown(u16),
}

/// Bytes with a place to write to, or to read from.
struct Cursor<B>(B, usize);

impl Cursor<&mut [u8; LENGTH]> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.0.get_mut(self.1..self.1 + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.1 += bytes.len();
    }

    /// A text with a zero behind it, in a field of `room` bytes.
    fn text(&mut self, text: &str, room: usize) {
        let length = text.len().min(room - 1);
        self.put(&text.as_bytes()[..length]);
        self.1 += room - length;
    }
}

impl Cursor<&[u8; LENGTH]> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self
            .0
            .get(self.1..self.1 + N)
            .and_then(|bytes| bytes.try_into().ok());
        self.1 += N;
        bytes.unwrap_or([0; N])
    }

    fn word(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn long(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn byte(&mut self) -> u8 {
        u8::from_ne_bytes(self.take())
    }

    /// Up to the first zero, printable ASCII only.
    fn text<const N: usize>(&mut self) -> String {
        let bytes = self.take::<N>();
        let shown = |byte: &u8| {
            if byte.is_ascii_graphic() || *byte == b' ' {
                *byte as char
            } else {
                '?'
            }
        };
        bytes
            .iter()
            .take_while(|&&byte| byte != 0)
            .map(shown)
            .collect()
    }
}

impl Message {
    fn number(&self) -> u16 {
        match self {
            Message::Ack => 1,
            Message::Hello(_) => 2,
            Message::Init(_) => 3,
            Message::AddRegion { .. } => 4,
            Message::AddRing(_) => 5,
            Message::Connect { .. } => 6,
            Message::Connected { .. } => 7,
            Message::Disconnect { .. } => 8,
            Message::Unknown(number) => *number,
        }
    }

    /// As bytes.
    pub(crate) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut to = Cursor(&mut bytes, 0);
        to.put(&self.number().to_ne_bytes());
        match self {
            Message::Ack | Message::Unknown(_) => (),
            Message::Hello(hello) => {
                to.text(&hello.name, NAME);
                for word in [
                    hello.min_version,
                    hello.max_version,
                    hello.max_region,
                    hello.max_to_slave,
                    hello.max_to_master,
                ] {
                    to.put(&word.to_ne_bytes());
                }
                to.put(&[hello.max_log2_ring_size]);
            }
            Message::Init(init) => {
                to.put(&init.version.to_ne_bytes());
                to.put(&init.id.to_ne_bytes());
                to.put(&[init.mode]);
                to.put(&init.secret);
                to.text(&init.name, NAME);
            }
            Message::AddRegion { index, size } => {
                to.put(&index.to_ne_bytes());
                to.put(&size.to_ne_bytes());
            }
            Message::AddRing(ring) => {
                to.put(&(if ring.to_master { TO_MASTER } else { 0 }).to_ne_bytes());
                to.put(&ring.index.to_ne_bytes());
                to.put(&ring.region.to_ne_bytes());
                to.put(&ring.offset.to_ne_bytes());
                to.put(&[ring.log2_size]);
            }
            Message::Connect { name } | Message::Connected { name } => to.text(name, NAME),
            Message::Disconnect { code, text } => {
                to.put(&code.to_ne_bytes());
                to.text(text, TEXT);
            }
        }
        bytes
    }

    /// From bytes.
    pub(crate) fn decode(bytes: &[u8; LENGTH]) -> Message {
        let mut from = Cursor(bytes, 0);
        match from.word() {
            1 => Message::Ack,
            2 => Message::Hello(Hello {
                name: from.text::<NAME>(),
                min_version: from.word(),
                max_version: from.word(),
                max_region: from.word(),
                max_to_slave: from.word(),
                max_to_master: from.word(),
                max_log2_ring_size: from.byte(),
            }),
            3 => Message::Init(Init {
                version: from.word(),
                id: from.long(),
                mode: from.byte(),
                secret: from.take(),
                name: from.text::<NAME>(),
            }),
            4 => Message::AddRegion {
                index: from.word(),
                size: u64::from_ne_bytes(from.take()),
            },
            5 => Message::AddRing(AddRing {
                to_master: from.word() & TO_MASTER != 0,
                index: from.word(),
                region: from.word(),
                offset: from.long(),
                log2_size: from.byte(),
            }),
            6 => Message::Connect {
                name: from.text::<NAME>(),
            },
            7 => Message::Connected {
                name: from.text::<NAME>(),
            },
            8 => Message::Disconnect {
                code: from.long(),
                text: from.text::<TEXT>(),
            },
            number => Message::Unknown(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Message> {
        let hello = Hello {
            name: "weir".into(),
            min_version: VERSION,
            max_version: VERSION,
            max_region: 15,
            max_to_slave: 3,
            max_to_master: 4,
            max_log2_ring_size: 14,
        };
        let init = Init {
            version: VERSION,
            id: 7,
            mode: ETHERNET,
            secret: [9; SECRET],
            name: "other".into(),
        };
        let ring = AddRing {
            to_master: true,
            index: 1,
            region: 2,
            offset: 0x0102_0304,
            log2_size: 10,
        };
        vec![
            Message::Ack,
            Message::Hello(hello),
            Message::Init(init),
            Message::AddRegion {
                index: 1,
                size: 0x0102_0304_0506_0708,
            },
            Message::AddRing(ring),
            Message::Connect { name: "a".into() },
            Message::Connected { name: "b".into() },
            Message::Disconnect {
                code: 5,
                text: "why".into(),
            },
            Message::Unknown(99),
        ]
    }

    #[test]
    fn messages_are_read_as_written() {
        messages()
            .iter()
            .for_each(|message| assert_eq!(Message::decode(&message.encode()), *message));
    }

    /// Worked out by hand from the packed layout, on a little-endian machine.
    #[test]
    #[cfg(target_endian = "little")]
    fn bytes_lie_where_the_protocol_wants_them() {
        let encoded: Vec<_> = messages().iter().map(Message::encode).collect();
        assert_eq!(encoded[1][..6], *b"\x02\0weir");
        assert_eq!(encoded[1][34..45], [0, 2, 0, 2, 15, 0, 3, 0, 4, 0, 14]);
        assert_eq!(encoded[2][..9], [3, 0, 0, 2, 7, 0, 0, 0, 0]);
        assert_eq!(
            (&encoded[2][9..33], &encoded[2][33..38]),
            (&[9; 24][..], &b"other"[..])
        );
        assert_eq!(encoded[3][..12], [4, 0, 1, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(
            encoded[4][..15],
            [5, 0, 1, 0, 1, 0, 2, 0, 4, 3, 2, 1, 10, 0, 0]
        );
        assert_eq!(encoded[7][..9], *b"\x08\0\x05\0\0\0why");
    }

    #[test]
    fn texts_are_cut_and_made_printable() {
        let long = Message::Connect {
            name: "x".repeat(200),
        };
        assert_eq!(
            Message::decode(&long.encode()),
            Message::Connect {
                name: "x".repeat(NAME - 1)
            }
        );
        let mut bytes = Message::Disconnect {
            code: 0,
            text: String::new(),
        }
        .encode();
        bytes[6..10].copy_from_slice(&[0x1b, b'[', 0xff, b'm']);
        assert_eq!(
            Message::decode(&bytes),
            Message::Disconnect {
                code: 0,
                text: "?[?m".into()
            }
        );
    }
}
