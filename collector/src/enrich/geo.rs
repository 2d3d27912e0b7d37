//! Countries and AS numbers of addresses, from mmdb files.
//!
//! A file is read whole into memory. A thread compares time and size of each file every few seconds and reads a changed
//! one anew; a file that cannot be read leaves the table of before in use, and the health page says why. Data that many
//! networks share is decoded once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use maxminddb::Reader;
use serde::{Deserialize, Serialize};

use crate::row::Country;

/// Decoded entries that are remembered.
const MOST_DECODED: usize = 1 << 18;
/// Bytes of the largest file that is read.
const MOST_BYTES: u64 = 1 << 30;

/// What files have of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its country.
    pub country: Country,
    /// Its AS number; 0 unknown.
    pub asn: u32,
}

/// A country as different vendors write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum CountryField<'a> {
    Code(&'a str),
    Record { iso_code: Option<&'a str> },
}

/// An AS number as different vendors write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum AsnField<'a> {
    Number(u32),
    Text(&'a str),
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    country: Option<CountryField<'a>>,
    country_code: Option<&'a str>,
    #[serde(borrow)]
    asn: Option<AsnField<'a>>,
    autonomous_system_number: Option<u32>,
}

impl Fields<'_> {
    fn found(&self) -> Found {
        let code = match &self.country {
            Some(CountryField::Code(code)) => Some(*code),
            Some(CountryField::Record { iso_code }) => *iso_code,
            None => self.country_code,
        };
        let asn = match &self.asn {
            Some(AsnField::Number(number)) => Some(*number),
            Some(AsnField::Text(text)) => text.trim_start_matches("AS").parse().ok(),
            None => self.autonomous_system_number,
        };
        Found {
            country: code.map(Country::new).unwrap_or_default(),
            asn: asn.unwrap_or(0),
        }
    }
}

/// One file in memory.
#[derive(Debug)]
struct Database {
    reader: Reader<Vec<u8>>,
    decoded: Mutex<HashMap<usize, Found>>,
}

impl Database {
    fn read(path: &Path) -> Result<Database, String> {
        let size = std::fs::metadata(path)
            .map_err(|error| error.to_string())?
            .len();
        if size > MOST_BYTES {
            return Err(format!("{size} bytes are more than {MOST_BYTES}"));
        }
        let reader = Reader::open_readfile(path).map_err(|error| error.to_string())?;
        Ok(Database {
            reader,
            decoded: Mutex::default(),
        })
    }

    fn find(&self, ip: IpAddr) -> Found {
        // Only a file with addresses of both kinds, or of this kind, answers.
        let Ok(result) = self.reader.lookup(ip) else {
            return Found::default();
        };
        let Some(offset) = result.offset() else {
            return Found::default();
        };
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = decoded.get(&offset) {
            return *found;
        }
        let found = match result.decode::<Fields<'_>>() {
            Ok(Some(fields)) => fields.found(),
            _ => Found::default(),
        };
        if decoded.len() < MOST_DECODED {
            decoded.insert(offset, found);
        }
        found
    }
}

/// State of one file, for the health page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileStatus {
    /// The file.
    pub path: PathBuf,
    /// When its vendor built what is in use, seconds since 1970.
    pub built: u64,
    /// Kind of database, as the file says.
    pub kind: String,
    /// Times that it was read.
    pub loads: u64,
    /// Why the newest version cannot be used.
    pub problem: Option<String>,
}

#[derive(Debug, Default)]
struct Slot {
    status: FileStatus,
    /// Time and size when it was last tried.
    seen: Option<(SystemTime, u64)>,
    database: Option<Arc<Database>>,
}

/// All files.
#[derive(Debug, Default)]
pub struct Geo {
    slots: Mutex<Vec<Slot>>,
    current: RwLock<Arc<Vec<Arc<Database>>>>,
}

impl Geo {
    /// The files of a configuration, read at once.
    #[must_use]
    pub fn new(paths: &[PathBuf]) -> Geo {
        let slots = paths.iter().map(|path| Slot {
            status: FileStatus {
                path: path.clone(),
                ..FileStatus::default()
            },
            ..Slot::default()
        });
        let geo = Geo {
            slots: Mutex::new(slots.collect()),
            current: RwLock::default(),
        };
        geo.reload();
        geo
    }

    /// Reads files that changed. Returns whether any did.
    pub fn reload(&self) -> bool {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = false;
        for slot in slots.iter_mut() {
            let seen = std::fs::metadata(&slot.status.path)
                .and_then(|data| Ok((data.modified()?, data.len())));
            let seen = match seen {
                Ok(seen) => Some(seen),
                Err(error) => {
                    slot.status.problem = Some(error.to_string());
                    None
                }
            };
            if seen.is_none() || seen == slot.seen {
                continue;
            }
            slot.seen = seen;
            match Database::read(&slot.status.path) {
                Ok(database) => {
                    let meta = database.reader.metadata();
                    slot.status.built = meta.build_epoch;
                    slot.status.kind = meta.database_type.to_string();
                    slot.status.loads += 1;
                    slot.status.problem = None;
                    slot.database = Some(Arc::new(database));
                    changed = true;
                }
                Err(error) => {
                    tracing::warn!(file = %slot.status.path.display(), %error, "mmdb file cannot be read; the one of before stays in use");
                    slot.status.problem = Some(error);
                }
            }
        }
        if changed {
            let all = slots.iter().filter_map(|slot| slot.database.clone());
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(all.collect());
        }
        changed
    }

    /// What the files have of an address; of each value the first file that has it counts.
    #[must_use]
    pub fn find(&self, ip: IpAddr) -> Found {
        let files = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = Found::default();
        for file in files.iter() {
            let one = file.find(ip);
            if found.country == Country::default() {
                found.country = one.country;
            }
            if found.asn == 0 {
                found.asn = one.asn;
            }
        }
        found
    }

    /// Whether there is any file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// The state of each file.
    #[must_use]
    pub fn status(&self) -> Vec<FileStatus> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|slot| slot.status.clone()).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A value of the format's data section (MaxMind DB 2.0: control octet of type and size).
    pub(crate) enum Data {
        Text(&'static str),
        Number(u32),
        Small(u16),
        Long(u64),
        Map(Vec<(&'static str, Data)>),
        List(Vec<Data>),
    }

    fn encode(data: &Data, out: &mut Vec<u8>) {
        match data {
            Data::Text(text) => {
                out.push(2 << 5 | text.len() as u8);
                out.extend(text.as_bytes());
            }
            Data::Number(number) => {
                out.push(6 << 5 | 4);
                out.extend(number.to_be_bytes());
            }
            Data::Small(number) => {
                out.push(5 << 5 | 2);
                out.extend(number.to_be_bytes());
            }
            Data::Long(number) => {
                out.extend([8, 2]);
                out.extend(number.to_be_bytes());
            }
            Data::List(values) => {
                out.extend([values.len() as u8, 4]);
                values.iter().for_each(|value| encode(value, out));
            }
            Data::Map(entries) => {
                out.push(7 << 5 | entries.len() as u8);
                for (key, value) in entries {
                    encode(&Data::Text(key), out);
                    encode(value, out);
                }
            }
        }
    }

    /// A file with IPv4 prefixes of 8 bits, written from the specification: a binary tree with records of 24 bits.
    pub(crate) fn database(kind: &'static str, networks: &[(u8, Data)]) -> Vec<u8> {
        // Node 0 is the root; each path of 8 bits gets nodes of its own where they are missing.
        const NONE: u32 = u32::MAX;
        let mut nodes: Vec<[u32; 2]> = vec![[NONE; 2]];
        let (mut data, mut offsets) = (Vec::new(), Vec::new());
        for (first, value) in networks {
            let mut node = 0;
            for bit in (1..8).rev() {
                let side = usize::from(first >> bit & 1);
                if nodes[node][side] == NONE {
                    nodes.push([NONE; 2]);
                    nodes[node][side] = nodes.len() as u32 - 1;
                }
                node = nodes[node][side] as usize;
            }
            offsets.push((node, usize::from(first & 1), data.len() as u32));
            encode(value, &mut data);
        }
        let count = nodes.len() as u32;
        for (node, side, offset) in offsets {
            nodes[node][side] = count + 16 + offset;
        }
        let mut out = Vec::new();
        for record in nodes.iter().flatten() {
            let record = if *record == NONE { count } else { *record };
            out.extend(&record.to_be_bytes()[1..]);
        }
        out.extend([0; 16]);
        out.extend(data);
        out.extend(b"\xab\xcd\xefMaxMind.com");
        let meta = Data::Map(vec![
            ("node_count", Data::Number(count)),
            ("record_size", Data::Small(24)),
            ("ip_version", Data::Small(4)),
            ("database_type", Data::Text(kind)),
            ("description", Data::Map(vec![("en", Data::Text("test"))])),
            ("languages", Data::List(vec![Data::Text("en")])),
            ("binary_format_major_version", Data::Small(2)),
            ("binary_format_minor_version", Data::Small(0)),
            ("build_epoch", Data::Long(1_700_000_000)),
        ]);
        encode(&meta, &mut out);
        out
    }

    fn country(code: &'static str) -> Data {
        Data::Map(vec![(
            "country",
            Data::Map(vec![("iso_code", Data::Text(code))]),
        )])
    }

    #[test]
    fn files_of_several_vendors_are_read_and_reloaded() {
        let folder = tempfile::tempdir().expect("folder");
        let (countries, numbers) = (folder.path().join("c.mmdb"), folder.path().join("a.mmdb"));
        std::fs::write(
            &countries,
            database("Country", &[(10, country("NL")), (11, country("DE"))]),
        )
        .expect("written");
        let asn = |number| Data::Map(vec![("autonomous_system_number", Data::Number(number))]);
        let text = Data::Map(vec![
            ("asn", Data::Text("AS64501")),
            ("country_code", Data::Text("fr")),
        ]);
        std::fs::write(&numbers, database("ASN", &[(10, asn(64_500)), (12, text)]))
            .expect("written");
        let missing = folder.path().join("missing.mmdb");
        let geo = Geo::new(&[countries.clone(), numbers, missing]);
        let find = |ip: &str| {
            let found = geo.find(ip.parse().expect("address"));
            (found.country.code().to_owned(), found.asn)
        };
        assert!(geo.status()[0].problem.is_none(), "{:?}", geo.status());
        assert_eq!(find("10.1.2.3"), ("NL".to_owned(), 64_500));
        assert_eq!(find("11.0.0.1"), ("DE".to_owned(), 0));
        assert_eq!(find("12.0.0.1"), ("FR".to_owned(), 64_501));
        assert_eq!(find("13.0.0.1"), (String::new(), 0));
        assert_eq!(find("2001:db8::1"), (String::new(), 0));
        let status = geo.status();
        assert_eq!(
            (status[0].loads, status[0].built, status[0].kind.as_str()),
            (1, 1_700_000_000, "Country")
        );
        assert!(status[2].problem.is_some());
        assert!(!geo.reload());
        // A damaged file changes nothing; a whole one does.
        std::fs::write(&countries, b"no database").expect("written");
        assert!(!geo.reload());
        assert_eq!(find("10.1.2.3").0, "NL");
        assert!(geo.status()[0].problem.is_some());
        std::fs::write(&countries, database("Country", &[(10, country("BE"))])).expect("written");
        assert!(geo.reload());
        assert_eq!(find("10.1.2.3").0, "BE");
        assert!(geo.status()[0].problem.is_none());
    }

    #[test]
    fn damaged_files_are_errors_or_unknown() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("x.mmdb");
        let whole = database("Country", &[(10, country("NL")), (200, country("DE"))]);
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("written");
            let _ =
                Geo::new(std::slice::from_ref(&path)).find("10.0.0.1".parse().expect("address"));
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            std::fs::write(&path, &changed).expect("written");
            let _ =
                Geo::new(std::slice::from_ref(&path)).find("10.0.0.1".parse().expect("address"));
        }
    }
}
