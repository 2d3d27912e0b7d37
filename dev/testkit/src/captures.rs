//! The captures of a scenario: `PORT.in.pcap` and `PORT.out.pcap`, made from `packets.txt`.
//!
//! One capture for each port and direction that has frames, with the script's times, so that other
//! tools show what the text says. What is committed must be what the text makes: [`differences`].

use std::collections::BTreeMap;
use std::path::Path;

use weir_pcap::file::{ETHERNET, Writer};

use crate::script::Script;

/// File names and contents.
///
/// # Errors
/// When a time cannot be written.
pub fn make(script: &Script) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut writers = BTreeMap::new();
    for (inward, way) in [(true, "in"), (false, "out")] {
        for (time, frame, _) in script.frames(inward) {
            let name = format!("{}.{way}.pcap", frame.port);
            let new = || Writer::new(Vec::new(), ETHERNET);
            let writer = match writers.entry(name) {
                std::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(new().map_err(|error| error.to_string())?)
                }
            };
            for _ in 0..frame.times {
                let length = u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX);
                writer
                    .write(time, length, &frame.bytes)
                    .map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(writers
        .into_iter()
        .map(|(name, writer)| (name, writer.into_inner()))
        .collect())
}

/// Whether a file is such a capture, by its name.
fn is_capture(name: &str) -> bool {
    name.ends_with(".in.pcap") || name.ends_with(".out.pcap")
}

fn present(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok());
    let read = |name: String| {
        let bytes =
            std::fs::read(folder.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        Ok((name, bytes))
    };
    names.filter(|name| is_capture(name)).map(read).collect()
}

/// What lies in the folder otherwise than the text makes it, one line each.
///
/// # Errors
/// When something cannot be read.
pub fn differences(folder: &Path, script: &Script) -> Result<Vec<String>, String> {
    let (wanted, present) = (make(script)?, present(folder)?);
    let missing = wanted
        .keys()
        .filter(|name| !present.contains_key(*name))
        .map(|name| format!("{name} is missing"));
    let surplus = present
        .keys()
        .filter(|name| !wanted.contains_key(*name))
        .map(|name| format!("{name} is not in packets.txt"));
    let other = wanted
        .iter()
        .filter(|(name, bytes)| present.get(*name).is_some_and(|there| there != *bytes));
    Ok(missing
        .chain(surplus)
        .chain(other.map(|(name, _)| format!("{name} is not what packets.txt says")))
        .collect())
}

/// Writes the captures, and removes those that the text does not have.
///
/// # Errors
/// When something cannot be read or written.
pub fn write(folder: &Path, script: &Script) -> Result<usize, String> {
    let (wanted, present) = (make(script)?, present(folder)?);
    for name in present.keys().filter(|name| !wanted.contains_key(*name)) {
        std::fs::remove_file(folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    for (name, bytes) in wanted
        .iter()
        .filter(|(name, bytes)| present.get(*name) != Some(*bytes))
    {
        std::fs::write(folder.join(name), bytes).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(wanted.len())
}
