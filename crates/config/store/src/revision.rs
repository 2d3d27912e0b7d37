//! A revision and its file: the text as it was applied, below comment lines that describe it.
//!
//! ```text
//! # weir revision 42
//! # time 1730000000000
//! # author admin
//! # comment second uplink
//! # steps 7
//! # text 1234 0a1b2c3d
//! # check 89abcdef
//! interfaces: …
//! ```
//!
//! The file is a configuration by itself, to be read by people and by `weir config check`. `text` gives
//! length and checksum of what follows the head, `check` the checksum of the head above it, so that the
//! history is read without the texts. A file that does not say so to the byte is damaged, never half taken.

/// Bytes of a text at most: what a configuration file may have.
pub const MOST_TEXT: usize = 64 << 20;
/// Bytes of an author at most.
pub const MOST_AUTHOR: usize = 256;
/// Bytes of a comment at most.
pub const MOST_COMMENT: usize = 2048;
/// A head is never longer: a byte that is escaped takes 8 at most.
pub(crate) const MOST_HEAD: usize = 8 * (MOST_AUTHOR + MOST_COMMENT) + 1024;

/// Who applied a revision, when and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Milliseconds since 1970, UTC.
    pub time_unix_ms: u64,
    /// Who: a user's or a client's name.
    pub author: String,
    /// Why, in the author's words.
    pub comment: String,
    /// How many steps the plan had.
    pub steps: u32,
}

/// A revision as it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Its number; later ones are higher.
    pub number: u64,
    /// Who, when and why.
    pub meta: Meta,
    /// The text, to the byte.
    pub text: Vec<u8>,
}

/// What the head of a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) number: u64,
    pub(crate) meta: Meta,
    pub(crate) length: usize,
    sum: u32,
    /// Where the text begins.
    begin: usize,
}

/// The file of a revision.
pub(crate) fn encode(number: u64, meta: &Meta, text: &[u8]) -> Vec<u8> {
    let Meta {
        time_unix_ms,
        author,
        comment,
        steps,
    } = meta;
    let (author, comment, length, sum) = (
        escape(author),
        escape(comment),
        text.len(),
        crc32fast::hash(text),
    );
    let head = format!(
        "# weir revision {number}\n# time {time_unix_ms}\n# author {author}\n# comment {comment}\n# steps {steps}\n# text {length} {sum:08x}\n"
    );
    let mut file = format!("{head}# check {:08x}\n", crc32fast::hash(head.as_bytes())).into_bytes();
    file.extend_from_slice(text);
    file
}

/// Reads the head of a file; the bytes may end behind it.
pub(crate) fn decode_head(file: &[u8]) -> Option<Head> {
    let file = file.get(..MOST_HEAD).unwrap_or(file);
    let mark = b"\n# check ";
    let end = file.windows(mark.len()).position(|window| window == mark)? + 1;
    let begin = end + mark.len() + 8;
    let (head, check) = (file.get(..end)?, file.get(end + mark.len() - 1..begin)?);
    if check != format!("{:08x}\n", crc32fast::hash(head)).as_bytes() {
        return None;
    }
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let mut value = |key: &str| {
        lines
            .next()?
            .strip_prefix("# ")?
            .strip_prefix(key)?
            .strip_prefix(' ')
    };
    let number = value("weir revision")?.parse().ok()?;
    let time_unix_ms = value("time")?.parse().ok()?;
    let (author, comment) = (unescape(value("author")?)?, unescape(value("comment")?)?);
    let steps = value("steps")?.parse().ok()?;
    let (length, sum) = value("text")?.split_once(' ')?;
    let (length, sum) = (length.parse().ok()?, u32::from_str_radix(sum, 16).ok()?);
    Some(Head {
        number,
        meta: Meta {
            time_unix_ms,
            author,
            comment,
            steps,
        },
        length,
        sum,
        begin,
    })
}

/// Reads a whole file; nothing when a byte of it is not as written.
pub(crate) fn decode(file: &[u8]) -> Option<Revision> {
    let head = decode_head(file)?;
    let text = file.get(head.begin..)?;
    let whole = text.len() == head.length && crc32fast::hash(text) == head.sum;
    whole.then(|| Revision {
        number: head.number,
        meta: head.meta,
        text: text.to_vec(),
    })
}

/// One line that YAML takes as a comment: what is not printable or breaks a line there is escaped.
fn escape(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => line.push_str("\\\\"),
            // YAML 1.2 section 5.1: the printable characters; 1.1 takes the last two for line breaks.
            _ if letter.is_control()
                || matches!(
                    letter,
                    '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}'
                ) =>
            {
                line.extend(letter.escape_unicode());
            }
            _ => line.push(letter),
        }
    }
    line
}

fn unescape(line: &str) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        text.push_str(plain);
        if let Some(after) = escaped.strip_prefix('\\') {
            text.push('\\');
            rest = after;
        } else {
            let (code, after) = escaped.strip_prefix("u{")?.split_once('}')?;
            text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
            rest = after;
        }
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta(author: &str, comment: &str) -> Meta {
        Meta {
            time_unix_ms: 1_730_000_000_000,
            author: author.into(),
            comment: comment.into(),
            steps: 7,
        }
    }

    #[test]
    fn a_file_as_people_read_it() {
        let file = encode(
            42,
            &meta("admin", "second uplink\nwith \\ and \u{1b}"),
            b"interfaces: {}\n",
        );
        let text = "# weir revision 42\n# time 1730000000000\n# author admin\n\
                    # comment second uplink\\u{a}with \\\\ and \\u{1b}\n# steps 7\n# text 15 ";
        let read = String::from_utf8(file.clone()).unwrap();
        assert!(
            read.starts_with(text) && read.ends_with("\ninterfaces: {}\n"),
            "{read}"
        );
        assert_eq!(
            decode(&file).unwrap().meta.comment,
            "second uplink\nwith \\ and \u{1b}"
        );
    }

    #[test]
    fn a_comment_cannot_end_the_head() {
        let sly = meta("x\n# check 00000000", "\n# check 00000000\nevil: true");
        let file = encode(1, &sly, b"good: true\n# check 00000000\n");
        assert_eq!(
            decode(&file).unwrap(),
            Revision {
                number: 1,
                meta: sly,
                text: b"good: true\n# check 00000000\n".to_vec()
            }
        );
    }

    #[test]
    fn any_byte_changed_or_missing_is_seen() {
        let file = encode(3, &meta("a", "b"), b"text: 1\n");
        for place in 0..file.len() {
            assert_eq!(decode(&file[..place]), None);
            let mut other = file.clone();
            other[place] ^= 0x20;
            assert_eq!(decode(&other), None, "byte {place}");
        }
        assert_eq!(decode(&[file.as_slice(), b"x"].concat()), None);
    }

    #[test]
    fn the_longest_head_is_read() {
        let long = meta(&"\u{1}".repeat(MOST_AUTHOR), &"\u{1}".repeat(MOST_COMMENT));
        let file = encode(u64::MAX, &long, b"");
        assert!(file.len() <= MOST_HEAD, "{}", file.len());
        assert_eq!(decode(&file).unwrap().meta, long);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, time: u64, author: String, comment: String, steps: u32, text: Vec<u8>) {
            let meta = Meta { time_unix_ms: time, author, comment, steps };
            prop_assume!(meta.author.len() <= MOST_AUTHOR && meta.comment.len() <= MOST_COMMENT);
            prop_assert_eq!(decode(&encode(number, &meta, &text)), Some(Revision { number, meta, text }));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&bytes), None);
        }
    }
}
