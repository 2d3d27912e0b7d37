//! Measuring forwarding on veth pairs: a paced generator, a counting sink, and the CPU time of a device's NAPI thread.
//!
//! The generator is a BPF program that the kernel runs with live frames, so that frames arrive as from a driver and
//! not as socket buffers. Receive processing of a device runs in a kernel thread of its own (threaded NAPI), whose
//! run time the scheduler counts exactly. Used by `weir xdp demo`; not part of the service.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aya::maps::{Array, MapData};
use aya::programs::{
    SchedClassifier, TcAttachType, TestRun, TestRunAttrs, TestRunOptions, Xdp, XdpMode,
};
use aya::{Ebpf, EbpfLoader};
use zerocopy::IntoBytes;

use crate::error::{Error, Result, chain};
use crate::programs::kernel;

/// The compiled programs; `bpf/build` makes them.
pub static GENERATOR: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/generate.o"));

/// Bytes of a generated frame.
pub const LENGTH: usize = 64;
/// Bytes of `struct traffic`.
const TRAFFIC: usize = 104;
/// Runs of the program in one system call: some tenths of a second. Setting up one takes 30 ms.
const LAPS: u32 = 1 << 20;
/// Frames that are sent back to back, as a card with interrupt moderation hands them to the host; a power of 2.
pub const BURST: u32 = 32;
/// The same of a card under load.
pub const LONG_BURST: u32 = 128;
/// Frames that the kernel handles between two pauses.
const BATCH: u32 = 128;

fn failed(reason: impl Into<String>) -> Error {
    Error::Load {
        kernel: kernel(),
        reason: reason.into(),
    }
}

fn load() -> Result<Ebpf> {
    EbpfLoader::new()
        .load(GENERATOR)
        .map_err(|error| failed(chain(&error)))
}

fn program<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut Xdp> {
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| failed(format!("the object has no {name}")))?;
    program
        .try_into()
        .map_err(|error: aya::programs::ProgramError| failed(chain(&error)))
}

fn array<'e, V: aya::Pod>(ebpf: &'e mut Ebpf, name: &str) -> Result<Array<&'e mut MapData, V>> {
    let map = ebpf
        .map_mut(name)
        .ok_or_else(|| failed(format!("the object has no map {name}")))?;
    Array::try_from(map).map_err(|error| failed(chain(&error)))
}

/// Sends frames out of a device of the calling thread's namespace.
pub struct Generator {
    ebpf: Ebpf,
    frame: [u8; LENGTH],
    flows: u32,
    /// Frames that are sent back to back: [`BURST`] or [`LONG_BURST`].
    pub burst: u32,
}

impl Generator {
    /// A generator of this frame, which has a tag, IPv4 and UDP. `flows` source ports from 1024 are used in turn;
    /// 0 = the frame's.
    ///
    /// # Errors
    /// When the kernel does not load the program.
    pub fn new(frame: &[u8; LENGTH], flows: u32) -> Result<Generator> {
        let mut ebpf = load()?;
        program(&mut ebpf, "weir_generate")?
            .load()
            .map_err(|error| failed(chain(&error)))?;
        Ok(Generator {
            ebpf,
            frame: *frame,
            flows,
            burst: BURST,
        })
    }

    /// Sends `packets` frames at `rate` frames a second out of a device. Returns the number that was sent, which
    /// is lower when `limit` passed first.
    ///
    /// # Errors
    /// When the kernel does not run the program.
    pub fn send(&mut self, ifindex: u32, rate: u32, packets: u64, limit: Duration) -> Result<u64> {
        let mut traffic = [0u8; TRAFFIC];
        let gap = (1_000_000_000 * u64::from(self.burst) / u64::from(rate.max(1))).max(1);
        traffic[..8].copy_from_slice(&gap.to_ne_bytes());
        traffic[24..32].copy_from_slice(&packets.to_ne_bytes());
        traffic[32..36].copy_from_slice(&self.flows.to_ne_bytes());
        traffic[36..40].copy_from_slice(&self.burst.to_ne_bytes());
        traffic[40..].copy_from_slice(&self.frame);
        array::<[u8; TRAFFIC]>(&mut self.ebpf, "traffic")?
            .set(0, traffic, 0)
            .map_err(|error| failed(chain(&error)))?;
        // `struct xdp_md`: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let context: [u32; 6] = [0, LENGTH as u32, 0, ifindex, 0, 0];
        let until = Instant::now() + limit;
        pin_to_first_cpu();
        loop {
            let options = TestRunOptions {
                data_in: Some(&self.frame),
                ctx_in: Some(context.as_bytes()),
                repeat: LAPS,
                attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
                ..TestRunOptions::default()
            };
            program(&mut self.ebpf, "weir_generate")?
                .test_run(options)
                .map_err(|error| failed(chain(&error)))?;
            let now = array::<[u8; TRAFFIC]>(&mut self.ebpf, "traffic")?
                .get(&0, 0)
                .map_err(|error| failed(chain(&error)))?;
            let mut sent = [0; 8];
            sent.copy_from_slice(&now[16..24]);
            let sent = u64::from_ne_bytes(sent);
            if sent >= packets || Instant::now() >= until {
                return Ok(sent);
            }
        }
    }
}

/// Keeps the calling thread on the first CPU: receive processing that is measured has the last one.
fn pin_to_first_cpu() {
    let mut first = rustix::thread::CpuSet::new();
    first.set(0);
    // Without it the figures scatter more.
    let _ = rustix::thread::sched_setaffinity(None, &first);
}

/// Counts and drops the generator's frames on a device of the calling thread's namespace, as long as it lives.
pub struct Sink {
    ebpf: Ebpf,
}

impl Sink {
    /// Attaches to a device.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn attach(ifindex: u32) -> Result<Sink> {
        let mut ebpf = load()?;
        let sink = program(&mut ebpf, "weir_sink")?;
        sink.load().map_err(|error| failed(chain(&error)))?;
        sink.attach_to_if_index(ifindex, XdpMode::Driver)
            .map_err(|error| failed(chain(&error)))?;
        Ok(Sink { ebpf })
    }

    /// Frames so far.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn packets(&mut self) -> Result<u64> {
        array::<u64>(&mut self.ebpf, "sink")?
            .get(&0, 0)
            .map_err(|error| failed(chain(&error)))
    }
}

/// A guest on a TAP device: a thread that reads and counts the generator's frames, as long as it lives. The device
/// belongs to the namespace of the thread that makes it.
pub struct TapGuest {
    packets: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// The thread's number.
    pub thread_id: u32,
}

impl TapGuest {
    /// Makes the device and starts to read.
    ///
    /// # Errors
    /// When there is no `/dev/net/tun`, or no right to use it.
    pub fn start(name: &str) -> Result<TapGuest> {
        let device = weir_tap::descriptor(name).map_err(|error| failed(error.to_string()))?;
        let packets = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let (own_packets, own_stop) = (packets.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("weir-guest".into())
            .spawn(move || {
                let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32);
                read_frames(&device, &own_packets, &own_stop);
            })
            .map_err(|error| failed(error.to_string()))?;
        let thread_id = told.recv().map_err(|error| failed(error.to_string()))?;
        Ok(TapGuest {
            packets,
            stop,
            thread: Some(thread),
            thread_id,
        })
    }

    /// Frames so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }
}

impl Drop for TapGuest {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_frames(device: &std::os::fd::OwnedFd, packets: &AtomicU64, stop: &AtomicBool) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut frame = [0u8; 2048];
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    while !stop.load(Ordering::Relaxed) {
        while let Ok(length) = rustix::io::read(device, &mut frame) {
            if frame.get(..length).and_then(|it| it.get(59)) == Some(&0x55) {
                packets.fetch_add(1, Ordering::Relaxed);
            }
        }
        let _ = poll(&mut [PollFd::new(device, PollFlags::IN)], Some(&limit));
    }
}

/// Takes the tag of VLAN 100 off frames that a device of the calling thread's namespace receives, in the traffic control
/// hook, and drops other frames, as long as it lives: for bridges of kernels without VLAN filtering.
pub struct Pop {
    _ebpf: Ebpf,
}

impl Pop {
    /// Attaches to a device.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(device: &str) -> Result<Pop> {
        let mut ebpf = load()?;
        let program: &mut SchedClassifier = ebpf
            .program_mut("weir_pop")
            .ok_or_else(|| failed("the object has no weir_pop"))?
            .try_into()
            .map_err(|error: aya::programs::ProgramError| failed(chain(&error)))?;
        program.load().map_err(|error| failed(chain(&error)))?;
        program
            .attach(device, TcAttachType::Ingress)
            .map_err(|error| failed(chain(&error)))?;
        Ok(Pop { _ebpf: ebpf })
    }
}

/// The kernel thread that receives for a device with threaded NAPI.
pub struct NapiThread {
    /// Its process number.
    pub id: u32,
}

impl NapiThread {
    /// The thread of the device with this name. The name must be unique on the machine, because threads of all
    /// namespaces are listed together. `None` = NAPI of the device is not threaded.
    #[must_use]
    pub fn of(name: &str) -> Option<NapiThread> {
        let prefix = format!("napi/{name}-");
        std::fs::read_dir("/proc")
            .ok()?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .find(|id| {
                std::fs::read_to_string(format!("/proc/{id}/comm"))
                    .is_ok_and(|comm| comm.starts_with(&prefix))
            })
            .map(|id| NapiThread { id })
    }

    /// How long it ran so far.
    ///
    /// # Errors
    /// When it is gone.
    pub fn run_time(&self) -> Result<Duration> {
        let path = PathBuf::from(format!("/proc/{}/schedstat", self.id));
        let text = std::fs::read_to_string(&path).map_err(|source| Error::File {
            action: "read",
            path: path.clone(),
            source,
        })?;
        let nanoseconds = text
            .split_whitespace()
            .next()
            .and_then(|it| it.parse().ok());
        nanoseconds
            .map(Duration::from_nanos)
            .ok_or_else(|| Error::File {
                action: "read",
                path,
                source: std::io::Error::other("it has no run time"),
            })
    }
}
