//! Frames of a capture file, kept in memory with their times, for replay.
//!
//! Control thread only. Bounded: at most a million frames and 128 MiB. Frames are sent as they are; a
//! frame that the file cut short, is not Ethernet or is longer than a packet buffer is an error,
//! because a replay without it would be other traffic.

use std::path::Path;
use std::sync::Arc;

use weir_pcap::file::{ETHERNET, Reader};

use crate::stream::LARGEST_FRAME;

const MOST_FRAMES: usize = 1_000_000;
const MOST_BYTES: usize = 128 << 20;

/// The frames of a capture file.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// The frames, without FCS.
    pub frames: Vec<Vec<u8>>,
    /// When each is due, in nanoseconds from the first, in ascending order.
    pub times: Arc<[u64]>,
    /// Nanoseconds from the first frame of one pass to that of the next.
    pub period: u64,
}

impl Capture {
    /// Reads a file; its times are divided by `speed`.
    ///
    /// # Errors
    /// A sentence that says which frame cannot be sent, or why the file cannot be read.
    pub fn open(path: &Path, speed: f64) -> Result<Capture, String> {
        let wrong = |problem: String| format!("{}: {problem}", path.display());
        let reader = Reader::open(path).map_err(|error| wrong(error.to_string()))?;
        let (mut frames, mut stamps, mut bytes) = (Vec::new(), Vec::<u64>::new(), 0);
        for (number, captured) in (1_usize..).zip(reader) {
            let captured = captured.map_err(|error| wrong(error.to_string()))?;
            let len = captured.data.len();
            let refuse = |why: &str| Err(wrong(format!("frame {number} {why}")));
            if captured.linktype != ETHERNET {
                return refuse("is no Ethernet frame");
            }
            if captured.orig_len as usize != len {
                return refuse(&format!(
                    "is cut: {len} of {} bytes are in the file",
                    captured.orig_len
                ));
            }
            if !(14..=LARGEST_FRAME).contains(&len) {
                return refuse(&format!(
                    "has {len} bytes: 14 to {LARGEST_FRAME} can be sent"
                ));
            }
            bytes += len;
            if number > MOST_FRAMES || bytes > MOST_BYTES {
                return refuse(&format!(
                    "is too much: at most {MOST_FRAMES} frames and {} MiB are kept",
                    MOST_BYTES >> 20
                ));
            }
            frames.push(captured.data);
            stamps.push(captured.timestamp_ns);
        }
        if frames.is_empty() {
            return Err(wrong("there are no frames in it".to_owned()));
        }
        let (times, period) = schedule(&stamps, speed);
        Ok(Capture {
            frames,
            times: times.into(),
            period,
        })
    }

    pub(crate) fn average_len(&self) -> f64 {
        let bytes: usize = self.frames.iter().map(Vec::len).sum();
        bytes as f64 / self.frames.len().max(1) as f64
    }

    /// Frames per second on average.
    pub(crate) fn average_rate(&self) -> f64 {
        self.frames.len() as f64 * 1e9 / self.period.max(1) as f64
    }
}

/// Times from the first frame on. A frame that the file stamps earlier than its predecessor is due
/// with it. The gap before a repetition is the average one.
fn schedule(stamps: &[u64], speed: f64) -> (Vec<u64>, u64) {
    let first = stamps.first().copied().unwrap_or(0);
    let mut latest = 0;
    let times: Vec<u64> = stamps
        .iter()
        .map(|stamp| {
            latest = latest.max((stamp.saturating_sub(first) as f64 / speed).round() as u64);
            latest
        })
        .collect();
    let gap = match times.len() {
        0 | 1 => 1_000_000,
        count => (latest / (count as u64 - 1)).max(1),
    };
    (times, latest.saturating_add(gap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_ascend_and_a_pass_ends_with_an_average_gap() {
        assert_eq!(
            schedule(&[100, 300, 200, 700], 2.0),
            (vec![0, 100, 100, 300], 400)
        );
        assert_eq!(schedule(&[5], 1.0), (vec![0], 1_000_000));
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        use weir_pcap::file::Writer;
        let path = std::env::temp_dir().join(format!("weir-capture-{}", std::process::id()));
        let write = |linktype, frames: &[(u32, usize)]| {
            let mut file = Writer::create(&path, linktype).unwrap();
            for (orig_len, len) in frames {
                file.write(7, *orig_len, &vec![0; *len]).unwrap();
            }
            file.flush().unwrap();
            Capture::open(&path, 1.0)
        };
        for (linktype, frames, text) in [
            (
                ETHERNET,
                [(60, 60), (90, 60)].as_slice(),
                "frame 2 is cut: 60 of 90",
            ),
            (ETHERNET, &[(9, 9)], "has 9 bytes"),
            (101, &[(60, 60)], "frame 1 is no Ethernet"),
            (ETHERNET, &[], "no frames"),
        ] {
            let error = write(linktype, frames).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
        assert_eq!(
            write(ETHERNET, &[(60, 60), (61, 61)]).unwrap().frames.len(),
            2
        );
        std::fs::remove_file(&path).unwrap();
        assert!(Capture::open(&path, 1.0).is_err());
    }
}
