//! What the tests against the real kernel share: a cable between two namespaces, a raw socket at its
//! far end, and a worker's part of a port.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use weir_afxdp::{AfxdpConfig, AfxdpPort};
use weir_buf::{Hugepages, Pkt, PktCache, Pool, PoolConfig, Vector};
use weir_netlink::lab::{Cable, Lab, Port as End, preflight};
use weir_netlink::netns::NetNs;
use weir_port::{OpenError, Port, QueuePair, RxQueue, TxQueue};

/// False when this machine cannot make namespaces; says why in one line a test program, past the
/// test harness, which hides what passing tests print.
pub(crate) fn can_run() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let answer = preflight();
        if let Err(why) = &answer {
            let _ = writeln!(io::stderr(), "skipped: {why}");
        }
        answer.is_ok()
    })
}

/// Waits up to 5 seconds for something to become true.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within 5 s"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A pool on ordinary pages.
pub(crate) fn pool(chunks: usize) -> Pool {
    Pool::new(PoolConfig {
        chunks,
        hugepages: Hugepages::Off,
    })
    .unwrap()
}

/// A lab of a router with the devices `p0`, `p1`, …, each with a cable to `eth0` of a host `h0`, `h1`,
/// ….
pub(crate) fn lab(ports: usize, queues: u32) -> Lab {
    lab_of(ports, queues, 1500)
}

/// The same with cables of another MTU.
pub(crate) fn lab_of(ports: usize, queues: u32, mtu: u32) -> Lab {
    let mut lab = Lab::new();
    lab.add_host("router").unwrap();
    for number in 0..ports {
        let host = format!("h{number}");
        lab.add_host(&host).unwrap();
        let one = End::new("router", &format!("p{number}"));
        let mut cable = Cable::new(one, End::new(&host, "eth0"));
        (cable.queues, cable.mtu) = (queues, mtu);
        lab.connect(&cable).unwrap();
    }
    lab
}

/// Opens a port in the lab's router.
pub(crate) fn open(lab: &Lab, config: &AfxdpConfig, pool: &Pool) -> Result<AfxdpPort, OpenError> {
    lab.host("router")
        .unwrap()
        .namespace()
        .run(|| AfxdpPort::open(config, pool))
        .unwrap()
}

/// A port with its queues and a worker's stock of packets.
pub(crate) struct Running {
    pub(crate) port: AfxdpPort,
    pub(crate) queues: Vec<QueuePair>,
    pub(crate) cache: PktCache,
    pub(crate) vector: Vector,
}

impl Running {
    pub(crate) fn open(lab: &Lab, config: &AfxdpConfig, pool: &Pool) -> Running {
        let mut port = open(lab, config, pool).unwrap();
        let queues = port.take_queues();
        Running {
            port,
            queues,
            cache: PktCache::new(pool),
            vector: Vector::with_capacity(256),
        }
    }

    pub(crate) fn rx(&mut self, queue: usize) -> &mut dyn RxQueue {
        self.queues[queue].rx.as_deref_mut().unwrap()
    }

    pub(crate) fn tx(&mut self, queue: usize) -> &mut dyn TxQueue {
        self.queues[queue].tx.as_deref_mut().unwrap()
    }

    /// Receives what is there on one queue, as bytes.
    pub(crate) fn receive(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let Running {
            queues,
            cache,
            vector,
            ..
        } = self;
        let rx = queues[queue].rx.as_deref_mut().unwrap();
        rx.recv(vector, cache, 256);
        let frames = vector
            .iter()
            .map(|packet| packet.segments().collect::<Vec<_>>().concat())
            .collect();
        cache.free_all(vector.drain());
        frames
    }

    /// Sends frames on one queue; returns how many were taken.
    pub(crate) fn send(&mut self, queue: usize, frames: &[Vec<u8>]) -> usize {
        let Running {
            queues,
            cache,
            vector,
            ..
        } = self;
        for frame in frames {
            let fill =
                |at: usize, room: &mut [u8]| room.copy_from_slice(&frame[at..at + room.len()]);
            vector.push(Pkt::gather(frame.len(), || cache.alloc(), fill).unwrap());
        }
        let tx = queues[queue].tx.as_deref_mut().unwrap();
        let taken = tx.send(vector, cache);
        tx.flush(cache);
        cache.free_all(vector.drain());
        taken
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        let counters = self.port.counters();
        counters
            .iter()
            .find(|counter| counter.name == name)
            .unwrap_or_else(|| panic!("no counter {name}"))
            .value
    }
}

/// A frame of `len` bytes with a number in it.
pub(crate) fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0xee; len];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    bytes[14..18].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The number in a frame.
pub(crate) fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[14..18].try_into().unwrap())
}

/// A raw socket on a device.
pub(crate) struct Raw(OwnedFd);

impl Raw {
    /// On `device` of a namespace; for frames of the ethertype that [`frame`] makes.
    pub(crate) fn open(namespace: &NetNs, device: &str) -> Raw {
        Raw::open_for(namespace, device, 0x88b5)
    }

    /// As [`Raw::open`], for frames of another type.
    pub(crate) fn open_for(namespace: &NetNs, device: &str, ethertype: u16) -> Raw {
        let index = namespace
            .route()
            .unwrap()
            .link_by_name(device)
            .unwrap()
            .index;
        namespace
            .run(|| Raw::open_here(index, ethertype.to_be()))
            .unwrap()
    }

    fn open_here(index: u32, ethertype: u16) -> Raw {
        // SAFETY: an ordinary call without pointers.
        let fd = unsafe {
            libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                i32::from(ethertype),
            )
        };
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        // SAFETY: `fd` was just opened and belongs to nobody else.
        let raw = Raw(unsafe { OwnedFd::from_raw_fd(fd) });
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: ethertype,
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let room: i32 = 32 << 20;
        // SAFETY: both calls read structs of the lengths given.
        unsafe {
            assert_eq!(
                libc::bind(
                    fd,
                    (&raw const address).cast(),
                    size_of_val(&address) as u32
                ),
                0,
                "{}",
                io::Error::last_os_error()
            );
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                (&raw const room).cast(),
                4,
            );
        }
        raw
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        // SAFETY: pointer and length are those of the slice.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    /// The next frame, if there is one.
    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 65_536];
        // SAFETY: pointer and length are those of the vector.
        let got = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                0,
            )
        };
        (got >= 0).then(|| {
            bytes.truncate(got as usize);
            bytes
        })
    }

    /// Frames until there are `count` or 5 seconds have passed.
    pub(crate) fn collect(&self, count: usize) -> Vec<Vec<u8>> {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut frames = Vec::new();
        while frames.len() < count && Instant::now() < deadline {
            match self.receive() {
                Some(frame) => frames.push(frame),
                None => std::thread::sleep(Duration::from_micros(200)),
            }
        }
        frames
    }
}
