//! The machine as a data source: counter records 2000 to 2010 and 1001, out of `/proc` and `/sys`.
//!
//! The kernel's files are read when the machine is due, by the agent's thread; no more than [`MOST`] of
//! each. A file that is missing or says something else than expected leaves out the fields it would have
//! filled (all ones for a counter, 0 for a number, as the specification has unknown values), and a record
//! of which nothing is known is not sent. Which field is where in a record stands in the decoder's table
//! (`weir_flowfmt::sflow::records`): values are asked for by the names there.
//!
//! The use of the processors is measured second by second, so that the last five seconds, minute and five
//! minutes can be computed.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_flowfmt::sflow::structure::{Kind, Structure, Value};
use weir_flowfmt::sflow::{DataFormat, UNKNOWN_COUNTER_32, UNKNOWN_COUNTER_64, records};

use super::InterfaceReport;
use super::indices::Indices;

/// Octets read of a file.
const MOST: u64 = 1 << 20;
/// Interfaces listed as adaptors: what fits a datagram beside the rest.
const MOST_ADAPTORS: usize = 32;
/// Seconds over which the use of processors is remembered.
const REMEMBERED: usize = 300;

/// Where the machine's counters are read, and what they were some time ago.
pub(super) struct Host {
    root: PathBuf,
    /// Busy and all time of the processors, a second apart, the last one at the end.
    used: VecDeque<(u64, u64)>,
    look_at: Duration,
}

/// A record's values, which may hold text of their own.
pub(super) enum Owned {
    /// A number, an address, …
    Plain(Value<'static>),
    /// A string.
    Text(String),
    /// A list: how many, and its octets.
    List(u32, Vec<u8>),
}

impl Owned {
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Owned::Plain(value) => *value,
            Owned::Text(text) => Value::Octets(text.as_bytes()),
            Owned::List(count, items) => Value::List(*count, items),
        }
    }
}

/// A record: its structure and a value for each field.
pub(super) type Record = (&'static Structure, Vec<Owned>);

/// Numbers under the names of the table.
type Found = BTreeMap<String, u64>;

impl Host {
    /// The machine whose files are under `root`, which is `/` but in tests.
    pub(super) fn new(root: &Path) -> Host {
        Host {
            root: root.to_owned(),
            used: VecDeque::new(),
            look_at: Duration::ZERO,
        }
    }

    fn read(&self, path: &str) -> String {
        let mut bytes = Vec::new();
        let read = File::open(self.root.join(path))
            .and_then(|file| file.take(MOST).read_to_end(&mut bytes));
        if read.is_err() {
            String::new()
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        }
    }

    /// Looks once a second how busy the processors are.
    pub(super) fn look(&mut self, now: Duration) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + Duration::from_secs(1);
        let stat = self.read("proc/stat");
        let times: Vec<u64> = stat
            .lines()
            .next()
            .unwrap_or("")
            .split_whitespace()
            .skip(1)
            .filter_map(|word| word.parse().ok())
            .collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already (proc(5)).
        let [_, _, _, idle, waiting, ..] = times[..] else {
            return;
        };
        let all: u64 = times.iter().take(8).sum();
        self.used
            .push_back((all.saturating_sub(idle).saturating_sub(waiting), all));
        if self.used.len() > REMEMBERED + 1 {
            self.used.pop_front();
        }
    }

    /// Hundredths of a percent in use over the last seconds; unknown when not yet so long.
    fn use_of(&self, seconds: usize) -> u32 {
        let last = self.used.back();
        let before = self
            .used
            .len()
            .checked_sub(seconds + 1)
            .and_then(|place| self.used.get(place));
        match (last, before) {
            (Some(last), Some(before)) if last.1 > before.1 => {
                u32::try_from(10_000 * last.0.saturating_sub(before.0) / (last.1 - before.1))
                    .unwrap_or(UNKNOWN_COUNTER_32)
            }
            _ => UNKNOWN_COUNTER_32,
        }
    }

    /// All records that something is known for.
    pub(super) fn records(&self, interfaces: &[InterfaceReport], indices: &Indices) -> Vec<Record> {
        let mut records = Vec::new();
        records.extend(self.identity());
        records.extend(adaptors(interfaces, indices));
        let memory = self.memory();
        for (number, found) in [
            (1001, self.processor(&memory)),
            (2003, self.cpu()),
            (2004, memory),
            (2005, self.disk()),
            (2006, self.network()),
        ] {
            records.extend(by_name(number, &found));
        }
        let snmp = self.snmp();
        for number in 2007..=2010 {
            records.extend(by_name(number, &snmp));
        }
        records
    }

    fn identity(&self) -> Option<Record> {
        let structure = records::counter_record(DataFormat::standard(2000))?;
        let line = |path| self.read(path).trim().to_owned();
        let host = line("proc/sys/kernel/hostname");
        let uuid = uuid(&line("sys/class/dmi/id/product_uuid"))
            .or_else(|| uuid(&line("etc/machine-id")))
            .unwrap_or([0; 16]);
        // The specification's machine_type and os_name.
        let machine = match std::env::consts::ARCH {
            "x86" => 2,
            "x86_64" => 3,
            "powerpc" | "powerpc64" => 7,
            "arm" | "aarch64" => 10,
            _ => 1,
        };
        const LINUX: u32 = 2;
        let plain = |value| Owned::Plain(value);
        let release = line("proc/sys/kernel/osrelease");
        // "Maximum length 64" and 32.
        let cut = |mut text: String, most: usize| {
            text.truncate(text.floor_char_boundary(most));
            Owned::Text(text)
        };
        Some((
            structure,
            vec![
                cut(host, 64),
                plain(Value::Uuid(uuid)),
                plain(Value::U32(machine)),
                plain(Value::U32(LINUX)),
                cut(release, 32),
            ],
        ))
    }

    fn processor(&self, memory: &Found) -> Found {
        let mut found = Found::new();
        if self.used.len() < 2 {
            return found;
        }
        for (name, seconds) in [("5s_cpu", 5), ("1m_cpu", 60), ("5m_cpu", 300)] {
            found.insert(name.into(), self.use_of(seconds).into());
        }
        for (name, of) in [
            ("total_memory_bytes", "mem_total"),
            ("free_memory_bytes", "mem_free"),
        ] {
            found.extend(memory.get(of).map(|&value| (name.to_owned(), value)));
        }
        found
    }

    fn cpu(&self) -> Found {
        let mut found = Found::new();
        let loads = self.read("proc/loadavg");
        let mut words = loads.split_whitespace();
        for name in ["cpu_load_one", "cpu_load_five", "cpu_load_fifteen"] {
            let load = words.next().and_then(|word| word.parse::<f32>().ok());
            found.extend(load.map(|load| (name.to_owned(), u64::from(load.to_bits()))));
        }
        if let Some((running, all)) = words.next().and_then(|word| word.split_once('/')) {
            put(&mut found, "cpu_proc_run", running);
            put(&mut found, "cpu_proc_total", all);
        }
        put(
            &mut found,
            "cpu_uptime",
            self.read("proc/uptime").split('.').next().unwrap_or(""),
        );
        let speed = self.read("proc/cpuinfo");
        let megahertz = speed.lines().find_map(|line| {
            line.strip_prefix("cpu MHz")?
                .split(':')
                .nth(1)?
                .trim()
                .split('.')
                .next()
        });
        put(&mut found, "cpu_speed", megahertz.unwrap_or(""));
        let stat = self.read("proc/stat");
        let processors = stat
            .lines()
            .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
            .count();
        found.insert("cpu_num".into(), processors as u64);
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("cpu") => {
                    // Milliseconds of hundredths of a second, the unit of user space on every machine.
                    let names =
                        ["user", "nice", "system", "idle", "wio"].map(|name| format!("cpu_{name}"));
                    let more = [
                        "cpuintr",
                        "cpu_sintr",
                        "cpu_steal",
                        "cpu_guest",
                        "cpu_guest_nice",
                    ]
                    .map(str::to_owned);
                    for (name, ticks) in names.into_iter().chain(more).zip(words) {
                        found.extend(
                            ticks
                                .parse::<u64>()
                                .ok()
                                .map(|ticks| (name, ticks.wrapping_mul(10))),
                        );
                    }
                }
                Some("intr") => put(&mut found, "cpuinterrupts", words.next().unwrap_or("")),
                Some("ctxt") => put(&mut found, "cpu_contexts", words.next().unwrap_or("")),
                _ => {}
            }
        }
        found
    }

    fn memory(&self) -> Found {
        let mut found = Found::new();
        let names = [
            ("MemTotal", "mem_total"),
            ("MemFree", "mem_free"),
            ("Shmem", "mem_shared"),
            ("Buffers", "mem_buffers"),
            ("Cached", "mem_cached"),
            ("SwapTotal", "swap_total"),
            ("SwapFree", "swap_free"),
        ];
        for line in self.read("proc/meminfo").lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let Some((_, field)) = names.iter().find(|(of, _)| *of == name) else {
                continue;
            };
            let kilobytes = value
                .split_whitespace()
                .next()
                .and_then(|word| word.parse::<u64>().ok());
            found.extend(
                kilobytes.map(|kilobytes| ((*field).to_owned(), kilobytes.saturating_mul(1024))),
            );
        }
        let names = [
            ("pgpgin", "page_in"),
            ("pgpgout", "page_out"),
            ("pswpin", "swap_in"),
            ("pswpout", "swap_out"),
        ];
        for line in self.read("proc/vmstat").lines() {
            let Some((name, value)) = line.split_once(' ') else {
                continue;
            };
            if let Some((_, field)) = names.iter().find(|(of, _)| *of == name) {
                put(&mut found, field, value.trim());
            }
        }
        found
    }

    /// Whole disks; their partitions are in them, and what is made of them or of memory is not there.
    fn disk(&self) -> Found {
        let mut found = Found::new();
        for line in self.read("proc/diskstats").lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, _, name, numbers @ ..] = &words[..] else {
                continue;
            };
            let whole = !["loop", "ram", "dm-", "md", "zram", "sr"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
            if !whole || is_partition(name) {
                continue;
            }
            let number = |place: usize| {
                numbers
                    .get(place)
                    .and_then(|word| word.parse::<u64>().ok())
                    .unwrap_or(0)
            };
            // Reads, merged, sectors, ms; the same of writes (Documentation/admin-guide/iostats). A sector has 512 octets.
            for (field, value) in [
                ("disk_reads", number(0)),
                ("disk_bytes_read", number(2).wrapping_mul(512)),
                ("disk_read_time", number(3)),
                ("disk_writes", number(4)),
                ("disk_bytes_written", number(6).wrapping_mul(512)),
                ("disk_write_time", number(7)),
            ] {
                let sum = found.entry(field.to_owned()).or_insert(0);
                *sum = sum.wrapping_add(value);
            }
        }
        self.file_systems(&mut found);
        found
    }

    /// Room on disks that are mounted, each once however often it is.
    fn file_systems(&self, found: &mut Found) {
        let mut seen = std::collections::BTreeSet::new();
        let (mut total, mut free, mut fullest) = (0_u64, 0_u64, 0_u64);
        for line in self.read("proc/mounts").lines() {
            let mut words = line.split_whitespace();
            let (Some(device), Some(place)) = (words.next(), words.next()) else {
                continue;
            };
            if !device.starts_with("/dev/")
                || device.starts_with("/dev/loop")
                || !seen.insert(device.to_owned())
            {
                continue;
            }
            let Ok(room) = rustix::fs::statvfs(place) else {
                continue;
            };
            let (all, unused) = (
                room.f_blocks.saturating_mul(room.f_frsize),
                room.f_bavail.saturating_mul(room.f_frsize),
            );
            total = total.saturating_add(all);
            free = free.saturating_add(unused);
            if all > 0 {
                fullest = fullest.max((10_000.0 * (1.0 - unused as f64 / all as f64)) as u64);
            }
        }
        if !seen.is_empty() {
            found.extend(
                [
                    ("disk_total", total),
                    ("disk_free", free),
                    ("disk_partition_max_used", fullest),
                ]
                .map(|(name, value)| (name.to_owned(), value)),
            );
        }
    }

    /// What went through the kernel's own interfaces but the loopback.
    fn network(&self) -> Found {
        let mut found = Found::new();
        for line in self.read("proc/net/dev").lines() {
            let Some((name, numbers)) = line.split_once(':') else {
                continue;
            };
            if name.trim() == "lo" {
                continue;
            }
            let numbers: Vec<u64> = numbers
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            for (field, place) in [
                ("nio_bytes_in", 0),
                ("nio_pkts_in", 1),
                ("nio_errs_in", 2),
                ("nio_drops_in", 3),
                ("nio_bytes_out", 8),
                ("nio_pkts_out", 9),
                ("nio_errs_out", 10),
                ("nio_drops_out", 11),
            ] {
                let sum = found.entry(field.to_owned()).or_insert(0);
                *sum = sum.wrapping_add(numbers.get(place).copied().unwrap_or(0));
            }
        }
        found
    }

    /// IP, ICMP, TCP and UDP: a line of names, then a line of numbers.
    fn snmp(&self) -> Found {
        let mut found = Found::new();
        let text = self.read("proc/net/snmp");
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let [names, numbers] = pair else { continue };
            let (Some((protocol, names)), Some((_, numbers))) =
                (names.split_once(':'), numbers.split_once(':'))
            else {
                continue;
            };
            for (name, number) in names.split_whitespace().zip(numbers.split_whitespace()) {
                // The kernel spells `InParmProbs` what the specification calls `icmpInParamProbs`.
                let name = name.replace("ParmProbs", "ParamProbs");
                // -1 is no limit of connections: unknown.
                let number = number.parse::<i64>().unwrap_or(0);
                found.insert(
                    format!("{}{name}", protocol.to_lowercase()),
                    u64::from(number as u32),
                );
            }
        }
        found
    }
}

fn put(found: &mut Found, name: &str, text: &str) {
    found.extend(text.parse().ok().map(|value| (name.to_owned(), value)));
}

/// `sda1` and `nvme0n1p2` are partitions, `sda` and `nvme0n1` are not.
fn is_partition(name: &str) -> bool {
    if name.starts_with("nvme") || name.starts_with("mmcblk") {
        return name.contains('p');
    }
    name.starts_with(['s', 'h', 'v', 'x']) && name.ends_with(|last: char| last.is_ascii_digit())
}

/// With dashes or without.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|digit| *digit != '-').collect();
    let number = u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|_| digits.len() == 32)?;
    Some(number.to_be_bytes())
}

/// A record of the table with what was found under its fields' names; nothing when nothing was.
fn by_name(number: u32, found: &Found) -> Option<Record> {
    let structure = records::counter_record(DataFormat::standard(number))?;
    if !structure
        .fields
        .iter()
        .any(|field| found.contains_key(field.name))
    {
        return None;
    }
    let value = |field: &weir_flowfmt::sflow::structure::Field| {
        let number = found.get(field.name).copied();
        Owned::Plain(match field.kind {
            // Counters of 32 bits wrap.
            Kind::U32 | Kind::Hundredths => {
                Value::U32(number.map_or(UNKNOWN_COUNTER_32, |number| number as u32))
            }
            Kind::F32 => Value::F32(number.map_or(-1.0, |bits| f32::from_bits(bits as u32))),
            _ => Value::U64(number.unwrap_or(UNKNOWN_COUNTER_64)),
        })
    };
    Some((structure, structure.fields.iter().map(value).collect()))
}

/// The router's interfaces with their addresses.
fn adaptors(interfaces: &[InterfaceReport], indices: &Indices) -> Option<Record> {
    let structure = records::counter_record(DataFormat::standard(2001))?;
    let with_mac: Vec<(u32, [u8; 6])> = interfaces
        .iter()
        .filter_map(|it| Some((indices.reported(it.ifindex), it.mac?)))
        .take(MOST_ADAPTORS)
        .collect();
    if with_mac.is_empty() {
        return None;
    }
    let mut items = Vec::new();
    for (ifindex, mac) in &with_mac {
        items.extend(ifindex.to_be_bytes());
        items.extend(1_u32.to_be_bytes());
        items.extend(mac);
        items.extend([0; 2]);
    }
    Some((structure, vec![Owned::List(with_mac.len() as u32, items)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(record: &Record) -> BTreeMap<&'static str, u64> {
        let (structure, values) = record;
        structure
            .fields
            .iter()
            .zip(values)
            .filter_map(|(field, value)| Some((field.name, value.value().number()?)))
            .collect()
    }

    fn record(records: &[Record], number: u32) -> &Record {
        records
            .iter()
            .find(|(structure, _)| structure.format.format == number)
            .unwrap_or_else(|| panic!("no record {number}"))
    }

    /// A machine made of files.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str, files: &[(&str, &str)]) -> Machine {
            let root =
                std::env::temp_dir().join(format!("weir-host-{}-{name}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Machine(root)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const STAT: &str = "cpu  100 20 30 400 50 6 7 8 9 10\ncpu0 50 10 15 200 25 3 3 4 5 5\ncpu1 50 10 15 200 25 3 4 4 4 5\n\
        intr 123456 0 1\nctxt 777\n";

    #[test]
    fn the_kernels_files_fill_the_records() {
        let machine = Machine::new(
            "whole",
            &[
                ("proc/stat", STAT),
                ("proc/loadavg", "0.50 0.25 0.125 3/400 12345\n"),
                ("proc/uptime", "98765.43 1.0\n"),
                ("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2400.123\n"),
                (
                    "proc/meminfo",
                    "MemTotal:  1000 kB\nMemFree: 200 kB\nBuffers: 3 kB\nCached: 4 kB\nShmem: 5 kB\nSwapTotal: 6 kB\nSwapFree: 7 kB\n",
                ),
                (
                    "proc/vmstat",
                    "pgpgin 11\npgpgout 12\npswpin 13\npswpout 14\n",
                ),
                (
                    "proc/diskstats",
                    "8 0 sda 10 1 20 30 40 2 50 60 0 0 0\n8 1 sda1 9 9 9 9 9 9 9 9 0 0 0\n7 0 loop0 9 9 9 9 9 9 9 9\n259 0 nvme0n1 1 0 2 3 4 0 5 6\n",
                ),
                (
                    "proc/net/dev",
                    "Inter-|\n face |\n  lo: 9 9 9 9 0 0 0 0 9 9 9 9\n eth0: 1 2 3 4 0 0 0 0 5 6 7 8\n eth1: 10 20 30 40 0 0 0 0 50 60 70 80\n",
                ),
                (
                    "proc/net/snmp",
                    "Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 1000\nUdp: InDatagrams NoPorts\nUdp: 5 6\nTcp: MaxConn InSegs\nTcp: -1 42\n",
                ),
                ("proc/sys/kernel/hostname", "router1\n"),
                (
                    "proc/sys/kernel/osrelease",
                    "6.1.0-13-amd64-with-a-name-longer-than-it-may-be\n",
                ),
                ("etc/machine-id", "000102030405060708090a0b0c0d0e0f\n"),
            ],
        );
        let mut host = Host::new(&machine.0);
        host.look(Duration::ZERO);
        std::fs::write(
            machine.0.join("proc/stat"),
            STAT.replacen("100 20 30 400", "175 20 30 425", 1),
        )
        .unwrap();
        host.look(Duration::from_millis(500));
        for second in 1..=5 {
            host.look(Duration::from_secs(second));
        }
        let report = InterfaceReport {
            ifindex: 3,
            mac: Some([2, 0, 0, 0, 0, 3]),
            ..InterfaceReport::default()
        };
        let records = host.records(&[report, InterfaceReport::default()], &Indices::default());

        let (structure, identity) = record(&records, 2000);
        assert_eq!(structure.fields.len(), identity.len());
        assert_eq!(identity[0].value(), Value::Octets(b"router1"));
        assert_eq!(
            identity[1].value(),
            Value::Uuid(std::array::from_fn(|at| at as u8))
        );
        assert_eq!(
            identity[4].value(),
            Value::Octets(b"6.1.0-13-amd64-with-a-name-longe")
        );
        assert_eq!(
            record(&records, 2001).1[0].value(),
            Value::List(1, &[0, 0, 0, 3, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 0, 0])
        );
        // 75 of 100 ticks were busy.
        let processor = numbers(record(&records, 1001));
        assert_eq!(
            (
                processor["5s_cpu"],
                processor["1m_cpu"],
                processor["total_memory_bytes"]
            ),
            (7500, u64::from(u32::MAX), 1_024_000)
        );
        let (_, cpu) = record(&records, 2003);
        assert_eq!(
            [cpu[0].value(), cpu[1].value(), cpu[2].value()],
            [Value::F32(0.5), Value::F32(0.25), Value::F32(0.125)]
        );
        let cpu = numbers(record(&records, 2003));
        let expected = [
            ("cpu_proc_run", 3),
            ("cpu_proc_total", 400),
            ("cpu_num", 2),
            ("cpu_speed", 2400),
            ("cpu_uptime", 98_765),
        ];
        let more = [
            ("cpu_user", 1750),
            ("cpu_wio", 500),
            ("cpuintr", 60),
            ("cpu_sintr", 70),
            ("cpu_steal", 80),
            ("cpu_guest_nice", 100),
        ];
        for (name, value) in expected
            .into_iter()
            .chain(more)
            .chain([("cpuinterrupts", 123_456), ("cpu_contexts", 777)])
        {
            assert_eq!(cpu[name], value, "{name}");
        }
        let memory = numbers(record(&records, 2004));
        assert_eq!(
            (memory["mem_free"], memory["swap_free"], memory["swap_out"]),
            (204_800, 7168, 14)
        );
        let disk = numbers(record(&records, 2005));
        assert_eq!(
            (
                disk["disk_reads"],
                disk["disk_bytes_read"],
                disk["disk_writes"],
                disk["disk_write_time"]
            ),
            (11, 11_264, 44, 66)
        );
        let network = numbers(record(&records, 2006));
        assert_eq!(
            (
                network["nio_bytes_in"],
                network["nio_drops_in"],
                network["nio_drops_out"]
            ),
            (11, 44, 88)
        );
        let ip = numbers(record(&records, 2007));
        // What the kernel does not say is unknown.
        assert_eq!(
            (ip["ipForwarding"], ip["ipInReceives"], ip["ipInHdrErrors"]),
            (1, 1000, u64::from(u32::MAX))
        );
        assert_eq!(numbers(record(&records, 2009))["tcpInSegs"], 42);
        assert_eq!(numbers(record(&records, 2010))["udpNoPorts"], 6);
        assert!(
            records
                .iter()
                .all(|(structure, _)| structure.format.format != 2008),
            "there is no ICMP"
        );
    }

    /// The kernel spells two names in another way than the specification.
    #[test]
    fn parameter_problems_are_reported() {
        let text = "Icmp: InMsgs InParmProbs OutMsgs OutParmProbs\nIcmp: 9 3 8 4\n";
        let machine = Machine::new("parmprobs", &[("proc/net/snmp", text)]);
        let records = Host::new(&machine.0).records(&[], &Indices::default());
        let icmp = numbers(record(&records, 2008));
        assert_eq!(
            (icmp["icmpInParamProbs"], icmp["icmpOutParamProbs"]),
            (3, 4)
        );
    }

    #[test]
    fn a_machine_that_tells_nothing_or_nonsense_is_survived() {
        let nonsense = "cpu x\n\u{0}:::\n999999999999999999999999 -5 a/b\ncpu 1 2\n";
        let files = [
            "stat",
            "loadavg",
            "meminfo",
            "vmstat",
            "diskstats",
            "net/dev",
            "net/snmp",
            "mounts",
            "uptime",
            "cpuinfo",
        ];
        let paths: Vec<String> = files.iter().map(|file| format!("proc/{file}")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), nonsense)).collect();
        for machine in [
            Machine::new("nothing", &[]),
            Machine::new("nonsense", &files),
        ] {
            let mut host = Host::new(&machine.0);
            for second in 0..400 {
                host.look(Duration::from_secs(second));
            }
            assert!(host.used.len() <= REMEMBERED + 1);
            for (structure, values) in host.records(&[], &Indices::default()) {
                assert_eq!(structure.fields.len(), values.len());
            }
        }
    }

    #[test]
    fn this_machine_has_most_of_them() {
        let mut host = Host::new(Path::new("/"));
        host.look(Duration::ZERO);
        host.look(Duration::from_secs(1));
        let records = host.records(&[], &Indices::default());
        for number in [2000, 2003, 2004, 2006, 2007, 2009, 2010] {
            record(&records, number);
        }
        assert!(numbers(record(&records, 2004))["mem_total"] > 1 << 20);
    }
}
