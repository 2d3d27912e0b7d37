//! A profile into a capture file, in virtual time: nothing is measured, everything is reproducible.

use std::io::Write;

use weir_pcap::file::{ETHERNET, Writer};

use crate::error::LabError;
use crate::profile::Profile;
use crate::run::{Plan, compile};

/// The gap between packets of a stream without a rate: 64 bytes at 10 Gbit/s.
const GAP: u64 = 67;

/// Writes the packets of all ports, in the order of their times, until every stream has ended or
/// `most` packets are written. Returns how many.
///
/// # Errors
/// When a stream cannot be compiled, or the file cannot be written.
pub fn write(profile: &Profile, plan: &Plan, most: u64, to: impl Write) -> Result<u64, LabError> {
    let failed = |source| LabError::file("write the capture", source);
    let mut streams = compile(profile, plan)?;
    let mut file = Writer::new(to, ETHERNET).map_err(failed)?;
    let mut written = 0;
    let mut frame = Vec::new();
    while written < most {
        let time = |stream: &crate::stream::Stream| {
            let number = stream.written();
            let time = stream.schedule.time_of(number);
            if stream.schedule.is_max() && time != u64::MAX {
                time + number * GAP
            } else {
                time
            }
        };
        let next = streams
            .iter_mut()
            .map(|stream| (time(stream), stream))
            .min_by_key(|(time, _)| *time);
        let Some((time, stream)) =
            next.filter(|(time, _)| *time != u64::MAX && plan.ends_after(*time))
        else {
            break;
        };
        frame.resize(stream.next_len(), 0);
        stream.write(&mut frame, time);
        file.write(time, frame.len() as u32, &frame)
            .map_err(failed)?;
        written += 1;
    }
    file.flush().map_err(failed)?;
    Ok(written)
}
