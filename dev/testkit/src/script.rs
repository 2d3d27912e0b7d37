//! `packets.txt`: what happens, one paragraph each, in order.
//!
//! ```text
//! # What the scenario shows, with the RFC that says so.
//!
//! in left: an ICMP echo request whose time to live ends here
//!   02:00:00:00:00:01            # destination: left
//!   02:00:00:00:01:02            # source: a station behind left
//!   0800                         # IPv4
//!   4500 001c 0000 0000 01 01    # 20 octets of header, 28 in all, TTL 1, ICMP
//!   ...
//!
//! out left at 0.5: time exceeded, to its sender
//!   ...
//! ```
//!
//! A paragraph begins with what happens:
//!
//! | | |
//! |---|---|
//! | `in PORT` | a frame arrives |
//! | `out PORT` | a frame must leave, next on this port |
//! | `link PORT up`, `link PORT down` | the port's carrier changes |
//! | `apply FILE` | the configuration is changed to this file |
//! | `wait` | nothing happens; time passes up to here |
//!
//! then, where wanted, `xN` (`in` and `out` only: N times the same), `at SECONDS` (else a
//! microsecond after the paragraph before; for `out` the time of the paragraph before) or `together`
//! (`in` only: in one vector with the frame before), a colon and a sentence. Octets follow as hex,
//! `00*46` for 46 times the same, or as IPv4, IPv6 and MAC addresses; `#` begins a comment, which
//! names the field when the octet differs.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Nanoseconds.
pub type Time = u64;

/// What one paragraph says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Frames arrive at a port.
    In(Frame),
    /// Frames must leave by a port.
    Out(Frame),
    /// A port's carrier comes or goes.
    Link {
        /// The port.
        port: String,
        /// Whether there is a carrier now.
        up: bool,
    },
    /// The configuration becomes that of this file in the scenario's folder.
    Apply(String),
    /// Time passes.
    Wait,
}

/// Octets on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The port.
    pub port: String,
    /// How many times.
    pub times: usize,
    /// Whether it arrives in one vector with the frame before.
    pub together: bool,
    /// The octets.
    pub bytes: Vec<u8>,
    /// Up to where which comment explains the octets.
    pub fields: Vec<(usize, String)>,
}

/// One paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The line that it begins at.
    pub line: usize,
    /// When, since the start.
    pub time: Time,
    /// What happens.
    pub action: Action,
    /// In words.
    pub sentence: String,
}

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The paragraphs in order.
    pub events: Vec<Event>,
    /// Remarks of tshark (`_ws.expert` messages) that are right, from lines `# tshark: MESSAGE`.
    pub expected_remarks: Vec<String>,
}

const MICROSECOND: Time = 1_000;
const SECOND: f64 = 1e9;

impl Script {
    /// Reads the text.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Script, String> {
        let mut script = Script::default();
        let mut now = 0;
        for (number, line) in text.lines().enumerate() {
            let place = |error: String| format!("line {}: {error}", number + 1);
            let (code, comment) = line
                .split_once('#')
                .map_or((line, ""), |(code, comment)| (code, comment.trim()));
            if let Some(remark) = comment
                .strip_prefix("tshark:")
                .filter(|_| code.trim().is_empty())
            {
                script.expected_remarks.push(remark.trim().to_owned());
            } else if code.trim().is_empty() {
                continue;
            } else if code.starts_with(char::is_whitespace) {
                let frame = script
                    .events
                    .last_mut()
                    .and_then(|event| event.action.frame_mut());
                let frame = frame.ok_or_else(|| place("octets without a frame".to_owned()))?;
                octets(code, &mut frame.bytes).map_err(place)?;
                frame.fields.push((frame.bytes.len(), comment.to_owned()));
            } else {
                let event = heading(number + 1, line, now).map_err(place)?;
                if event.time < now {
                    return Err(place("time goes backwards".to_owned()));
                }
                now = event.time;
                script.events.push(event);
            }
        }
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), String> {
        let mut before: Option<&Frame> = None;
        for event in &self.events {
            let place = |error: &str| Err(format!("line {}: {error}", event.line));
            if event
                .action
                .frame()
                .is_some_and(|frame| frame.bytes.is_empty())
            {
                return place("a frame without octets");
            }
            if let Action::In(frame) = &event.action {
                if frame.together && before.is_none_or(|before| before.port != frame.port) {
                    return place("there is no frame before it on this port");
                }
                before = Some(frame);
            } else if !matches!(event.action, Action::Out(_)) {
                before = None;
            }
        }
        Ok(())
    }

    /// The frames of one direction with their times, by port.
    pub fn frames(&self, inward: bool) -> impl Iterator<Item = (Time, &Frame, &Event)> {
        self.events
            .iter()
            .filter_map(move |event| match &event.action {
                Action::In(frame) if inward => Some((event.time, frame, event)),
                Action::Out(frame) if !inward => Some((event.time, frame, event)),
                _ => None,
            })
    }
}

impl Action {
    /// The frame, if it is about one.
    #[must_use]
    pub fn frame(&self) -> Option<&Frame> {
        match self {
            Action::In(frame) | Action::Out(frame) => Some(frame),
            _ => None,
        }
    }

    fn frame_mut(&mut self) -> Option<&mut Frame> {
        match self {
            Action::In(frame) | Action::Out(frame) => Some(frame),
            _ => None,
        }
    }
}

/// `in left x3 at 1.5: a sentence`
fn heading(line: usize, text: &str, now: Time) -> Result<Event, String> {
    let (head, sentence) = text
        .split_once(": ")
        .ok_or("a paragraph begins with what happens, a colon and a sentence")?;
    let mut words = head.split_whitespace();
    let mut next = |what: &str| {
        words
            .next()
            .map(str::to_owned)
            .ok_or_else(|| format!("{what} is missing"))
    };
    let frame = |port| Frame {
        port,
        times: 1,
        together: false,
        bytes: Vec::new(),
        fields: Vec::new(),
    };
    let mut action = match next("what happens")?.as_str() {
        "in" => Action::In(frame(next("the port")?)),
        "out" => Action::Out(frame(next("the port")?)),
        "link" => Action::Link {
            port: next("the port")?,
            up: is_up(&next("up or down")?)?,
        },
        "apply" => Action::Apply(next("the file")?),
        "wait" => Action::Wait,
        other => return Err(format!("`{other}` is none of in, out, link, apply, wait")),
    };
    let mut time = None;
    while let Some(word) = words.next() {
        match (word, &mut action) {
            ("at", _) => time = Some(seconds(words.next().ok_or("the time is missing")?)?),
            ("together", Action::In(frame)) => (frame.together, time) = (true, Some(now)),
            (word, Action::In(frame) | Action::Out(frame)) if word.starts_with('x') => {
                frame.times = word[1..]
                    .parse()
                    .map_err(|_| format!("`{word}` is no number of frames"))?;
            }
            (word, _) => return Err(format!("`{word}` has no place here")),
        }
    }
    let usual = if matches!(action, Action::Out(_)) {
        now
    } else {
        now + MICROSECOND
    };
    Ok(Event {
        line,
        time: time.unwrap_or(usual),
        action,
        sentence: sentence.trim().to_owned(),
    })
}

fn is_up(word: &str) -> Result<bool, String> {
    match word {
        "up" => Ok(true),
        "down" => Ok(false),
        other => Err(format!("`{other}` is neither up nor down")),
    }
}

fn seconds(word: &str) -> Result<Time, String> {
    let seconds: f64 = word
        .parse()
        .map_err(|_| format!("`{word}` is no number of seconds"))?;
    if (0.0..1e6).contains(&seconds) {
        Ok((seconds * SECOND).round() as Time)
    } else {
        Err(format!("{word} seconds are out of range"))
    }
}

/// The octets of a line.
fn octets(line: &str, to: &mut Vec<u8>) -> Result<(), String> {
    for word in line.split_whitespace() {
        let wrong = || format!("`{word}` is neither hex octets nor an address");
        if let Some((octet, times)) = word.split_once('*') {
            let octet = u8::from_str_radix(octet, 16).map_err(|_| wrong())?;
            let times: usize = times.parse().map_err(|_| wrong())?;
            to.resize(to.len() + times.min(65_536), octet);
        } else if let Ok(address) = word.parse::<Ipv4Addr>() {
            to.extend(address.octets());
        } else if let Ok(mac) = word.parse::<weir_wire::MacAddr>() {
            to.extend(mac.0);
        } else if let Ok(address) = word.parse::<Ipv6Addr>() {
            to.extend(address.octets());
        } else {
            to.extend(hex(word).ok_or_else(wrong)?);
        }
    }
    Ok(())
}

fn hex(word: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = word.as_bytes().as_chunks::<2>();
    let octet = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty().then(|| pairs.iter().map(octet).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_read() {
        let text = "# Story.\n# tshark: Odd: but so\n\nin left: one\n  02:00:00:00:00:01 0a0B # to\n  192.0.2.1 00*2\n\
                    in left x2 together: two\n  ff\nout right at 1.5: three\n  2001:db8::1\nlink left down: four\napply b.yaml at 2: five\nwait at 9: six\n";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.expected_remarks, ["Odd: but so"]);
        let times: Vec<Time> = script.events.iter().map(|event| event.time).collect();
        assert_eq!(
            times,
            [
                1_000,
                1_000,
                1_500_000_000,
                1_500_001_000,
                2_000_000_000,
                9_000_000_000
            ]
        );
        let frame = script.events[0].action.frame().unwrap();
        assert_eq!(frame.bytes, [2, 0, 0, 0, 0, 1, 10, 11, 192, 0, 2, 1, 0, 0]);
        assert_eq!(frame.fields, [(8, "to".to_owned()), (14, String::new())]);
        assert!(
            script.events[1]
                .action
                .frame()
                .is_some_and(|frame| frame.together && frame.times == 2)
        );
        assert_eq!(script.events[2].action.frame().unwrap().bytes.len(), 16);
        assert_eq!(
            script.events[3].action,
            Action::Link {
                port: "left".to_owned(),
                up: false
            }
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, word) in [
            ("in left: a\n  0g", 2, "0g"),
            ("in left: a\n  123", 2, "123"),
            ("in left: a", 1, "without octets"),
            ("  00", 1, "without a frame"),
            ("in left a", 1, "colon"),
            ("up left: a", 1, "`up`"),
            ("in left at x: a", 1, "`x`"),
            ("wait at 2: a\nwait at 1: b", 2, "backwards"),
            ("in left together: a\n  00", 1, "before"),
            ("wait x2: a", 1, "x2"),
            ("link left sideways: a", 1, "sideways"),
        ] {
            let error = Script::parse(text).unwrap_err();
            assert!(
                error.starts_with(&format!("line {line}: ")) && error.contains(word),
                "{text:?}: {error}"
            );
        }
    }
}
