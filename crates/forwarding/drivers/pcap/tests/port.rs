//! The port over files: what is in comes out, what is odd is counted, nothing leaks.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use weir_buf::{DATA_ROOM, Hugepages, PktCache, Pool, PoolConfig, Vector};
use weir_pcap::PcapPort;
use weir_pcap::file::{Captured, ETHERNET, RAW, Reader, Writer};
use weir_port::{LONGEST_FRAME, Port};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-pcap-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, linktype: u32, frames: &[(u32, Vec<u8>)]) {
    let mut writer = Writer::create(path, linktype).unwrap();
    for (n, (orig_len, data)) in frames.iter().enumerate() {
        writer
            .write(1_000_000_000 + n as u64, *orig_len, data)
            .unwrap();
    }
    writer.flush().unwrap();
}

fn read(path: &Path) -> Vec<Captured> {
    Reader::open(path).unwrap().map(Result::unwrap).collect()
}

fn frame(n: u8, len: usize) -> (u32, Vec<u8>) {
    (len as u32, vec![n; len])
}

fn pool() -> Pool {
    Pool::new(PoolConfig {
        chunks: 1024,
        hugepages: Hugepages::Off,
    })
    .unwrap()
}

/// The counters that are not 0.
fn counters(port: &PcapPort) -> Vec<(String, u64)> {
    port.counters()
        .into_iter()
        .filter(|counter| counter.value != 0)
        .map(|counter| (counter.name, counter.value))
        .collect()
}

fn named(list: &[(&str, u64)]) -> Vec<(String, u64)> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

#[test]
fn frames_come_in_order_and_go_out_with_their_time() {
    let folder = Folder::new("order");
    let (input, output) = (folder.file("in.pcap"), folder.file("out.pcap"));
    let frames: Vec<_> = (0..=255).cycle().take(600).map(|n| frame(n, 60)).collect();
    write(&input, ETHERNET, &frames);
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let mut port = PcapPort::open(Some(&input), Some(&output)).unwrap();
    assert_eq!(
        (port.device(), port.capabilities().mode.as_str()),
        (input.to_str().unwrap(), "reads and writes")
    );
    let mut pair = port.take_queues().remove(0);
    let (rx, tx) = (
        pair.rx.as_deref_mut().unwrap(),
        pair.tx.as_deref_mut().unwrap(),
    );
    let mut vector = Vector::default();
    let before = SystemTime::now();
    while !rx.is_exhausted() {
        let got = rx.recv(&mut vector, &mut cache, 100);
        assert!(got <= 100 && vector.len() == got);
        assert_eq!(tx.send(&mut vector, &mut cache), got);
        tx.flush(&mut cache);
    }
    let mut head = cache.alloc().unwrap();
    let mut tail = cache.alloc().unwrap();
    assert!(head.fill(&[1; 30]) && tail.fill(&[2; 40]));
    head.append(tail).unwrap();
    vector.push(head);
    tx.send(&mut vector, &mut cache);
    assert_eq!(
        counters(&port),
        named(&[("rx_packets", 600), ("tx_packets", 601)])
    );
    drop((pair, port, cache));
    assert_eq!(pool.usage().free, 1024);

    let mut written = read(&output);
    let chained = written.pop().unwrap();
    assert_eq!((chained.orig_len, &chained.data[29..31]), (70, &[1, 2][..]));
    assert_eq!(
        written
            .iter()
            .map(|captured| (captured.orig_len, captured.data.clone()))
            .collect::<Vec<_>>(),
        frames
    );
    let time =
        |captured: &Captured| SystemTime::UNIX_EPOCH + Duration::from_nanos(captured.timestamp_ns);
    assert!(
        written
            .windows(2)
            .all(|pair| pair[0].timestamp_ns <= pair[1].timestamp_ns)
    );
    assert!(time(&written[0]) >= before && time(&chained) <= SystemTime::now());
}

#[test]
fn what_is_odd_is_counted_and_left_out() {
    let folder = Folder::new("odd");
    let input = folder.file("in.pcap");
    write(
        &input,
        ETHERNET,
        &[
            frame(1, 60),
            (1500, vec![2; 96]),
            frame(3, DATA_ROOM),
            frame(4, DATA_ROOM + 1),
            frame(5, 0),
            frame(6, LONGEST_FRAME),
            frame(7, LONGEST_FRAME + 1),
        ],
    );
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let mut port = PcapPort::open(Some(&input), None).unwrap();
    let mut rx = port.take_queues().remove(0).rx.unwrap();
    let mut vector = Vector::default();
    assert_eq!(rx.recv(&mut vector, &mut cache, 256), 5);
    assert!(rx.is_exhausted());
    assert_eq!(
        vector
            .iter()
            .map(|packet| packet.total_len())
            .collect::<Vec<_>>(),
        [60, DATA_ROOM, DATA_ROOM + 1, 0, LONGEST_FRAME]
    );
    let long = vector.last().unwrap();
    assert_eq!(
        (
            long.segments().count(),
            long.segments().collect::<Vec<_>>().concat()
        ),
        (5, frame(6, LONGEST_FRAME).1)
    );
    assert_eq!(
        counters(&port),
        named(&[("rx_packets", 5), ("rx_cut", 1), ("rx_too_long", 1)])
    );

    let raw = folder.file("raw.pcap");
    write(&raw, RAW, &[frame(1, 60), frame(2, 60)]);
    let mut port = PcapPort::open(Some(&raw), None).unwrap();
    let mut rx = port.take_queues().remove(0).rx.unwrap();
    assert_eq!(rx.recv(&mut vector, &mut cache, 256), 0);
    assert!(rx.is_exhausted());
    assert_eq!(counters(&port), named(&[("rx_not_ethernet", 2)]));
}

/// A file cut at any length gives its whole frames, then ends, and says that it is damaged.
#[test]
fn a_file_cut_anywhere_ends() {
    let folder = Folder::new("cut");
    let whole = folder.file("whole.pcap");
    write(
        &whole,
        ETHERNET,
        &[frame(1, 60), frame(2, 61), frame(3, 62)],
    );
    let bytes = std::fs::read(&whole).unwrap();
    let ends = [24, 24 + 76, 24 + 76 + 77, 24 + 76 + 77 + 78];
    assert_eq!(bytes.len(), ends[3]);
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let input = folder.file("in.pcap");
    let mut opened = 0;
    for len in 0..=bytes.len() {
        std::fs::write(&input, &bytes[..len]).unwrap();
        let Ok(mut port) = PcapPort::open(Some(&input), None) else {
            assert!(len < 24, "{len}");
            continue;
        };
        opened += 1;
        let mut rx = port.take_queues().remove(0).rx.unwrap();
        let mut vector = Vector::default();
        let got = rx.recv(&mut vector, &mut cache, 256);
        assert_eq!(rx.recv(&mut vector, &mut cache, 256), 0);
        assert!(rx.is_exhausted());
        let wanted = ends.iter().filter(|end| **end <= len).count() - 1;
        assert_eq!(got, wanted, "{len}");
        let damaged = counters(&port).contains(&("rx_damaged".to_owned(), 1));
        assert_eq!(damaged, !ends.contains(&len), "{len}");
        cache.free_all(vector.drain());
    }
    assert!(opened > 200);
    drop(cache);
    assert_eq!(pool.usage().free, 1024);
}

#[test]
fn an_empty_pool_loses_no_frame() {
    let folder = Folder::new("pool");
    let input = folder.file("in.pcap");
    write(&input, ETHERNET, &[frame(1, 60), frame(2, 60)]);
    let pool = pool();
    let hoard: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    let mut cache = PktCache::new(&pool);
    let mut port = PcapPort::open(Some(&input), None).unwrap();
    let mut rx = port.take_queues().remove(0).rx.unwrap();
    let mut vector = Vector::default();
    assert_eq!(
        (
            rx.recv(&mut vector, &mut cache, 256),
            rx.recv(&mut vector, &mut cache, 256)
        ),
        (0, 0)
    );
    assert!(!rx.is_exhausted());
    drop(hoard);
    assert_eq!(rx.recv(&mut vector, &mut cache, 256), 2);
    assert_eq!(
        counters(&port),
        named(&[("rx_packets", 2), ("rx_no_buffer", 2)])
    );
}

/// What was sent is in the file about a second later, while the port is open.
#[test]
fn the_file_is_complete_up_to_the_last_second() {
    let folder = Folder::new("flush");
    let output = folder.file("out.pcap");
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let mut port = PcapPort::open(None, Some(&output)).unwrap();
    let pair = port.take_queues().remove(0);
    assert!(pair.rx.is_none() && port.capabilities().rx_queues == 0);
    let mut tx = pair.tx.unwrap();
    let mut vector = Vector::default();
    let mut packet = cache.alloc().unwrap();
    assert!(packet.fill(&[7; 60]));
    vector.push(packet);
    tx.send(&mut vector, &mut cache);
    tx.flush(&mut cache);
    assert!(std::fs::read(&output).unwrap().len() <= 24);
    std::thread::sleep(Duration::from_millis(1050));
    tx.flush(&mut cache);
    assert_eq!(read(&output).len(), 1);
}

/// A disk that is full (`/dev/full` always is): counted, and the port lives.
#[test]
fn a_full_disk_is_counted() {
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let mut port = PcapPort::open(None, Some(Path::new("/dev/full"))).unwrap();
    let mut tx = port.take_queues().remove(0).tx.unwrap();
    let mut vector = Vector::default();
    for _ in 0..40 {
        for _ in 0..10 {
            let mut packet = cache.alloc().unwrap();
            assert!(packet.fill(&[7; 1500]));
            vector.push(packet);
        }
        assert_eq!(tx.send(&mut vector, &mut cache), 10);
    }
    let list = counters(&port);
    let value = |name: &str| {
        list.iter()
            .find(|(known, _)| known == name)
            .map_or(0, |(_, value)| *value)
    };
    assert_eq!(value("tx_packets") + value("tx_lost"), 400);
    assert!(value("tx_lost") > 380, "{list:?}");
    drop((tx, cache));
    assert_eq!(pool.usage().free, 1024);
}

#[test]
fn without_files_it_swallows() {
    let pool = pool();
    let mut cache = PktCache::new(&pool);
    let mut port = PcapPort::open(None, None).unwrap();
    assert_eq!(
        (port.device(), port.capabilities().mode.as_str()),
        ("pcap", "swallows")
    );
    let mut vector = Vector::default();
    vector.push(cache.alloc().unwrap());
    assert_eq!(
        port.take_queues()
            .remove(0)
            .tx
            .unwrap()
            .send(&mut vector, &mut cache),
        1
    );
    assert_eq!(counters(&port), named(&[("tx_packets", 1)]));
    assert!(port.take_queues().is_empty());
}

#[test]
fn refusals_name_the_file() {
    let folder = Folder::new("refused");
    let (missing, text, here) = (
        folder.file("missing.pcap"),
        folder.file("text.pcap"),
        folder.file("here.pcap"),
    );
    std::fs::write(&text, "this is no capture").unwrap();
    write(&here, ETHERNET, &[frame(1, 60)]);
    let refused = |input: Option<&Path>, output: Option<&Path>| {
        PcapPort::open(input, output)
            .map(drop)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(Some(&missing), None).contains("missing.pcap: cannot read the capture"));
    assert!(refused(Some(&text), None).contains("text.pcap: not a capture file"));
    assert!(
        refused(None, Some(&folder.file("no/such/folder.pcap")))
            .contains("folder.pcap: cannot write the capture")
    );
    assert!(refused(Some(&here), Some(&here)).contains("read and written at once"));
    assert_eq!(read(&here).len(), 1, "it was not emptied");
}
