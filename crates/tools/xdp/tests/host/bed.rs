//! A host namespace with ports, a namespace behind each port, raw sockets there, and a daemon in a thread.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_netlink::ethtool::{Ethtool, Offload};
use weir_netlink::lab::preflight;
use weir_netlink::netns::NetNs;
use weir_netlink::route::VethPair;
use weir_xdp::config;
use weir_xdp::daemon::{Daemon, Folders};

/// Whether this machine can make namespaces; says why not in one line.
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

/// Waits up to 10 seconds for something to become true.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within 10 s"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A BPF file system of its own, and a state folder; both vanish with it.
pub(crate) struct Pins {
    root: PathBuf,
}

impl Pins {
    pub(crate) fn new() -> Pins {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("weir-xdp-{}-{number}", std::process::id()));
        std::fs::create_dir_all(root.join("bpf")).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "bpf", "bpf"])
            .arg(root.join("bpf"))
            .status()
            .unwrap();
        assert!(mounted.success());
        Pins { root }
    }

    pub(crate) fn folders(&self) -> Folders {
        Folders {
            pins: self.root.join("bpf/pins"),
            state: self.root.join("state"),
            layout: weir_xdp::abi::LAYOUT,
        }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let _ = weir_xdp::programs::remove(&self.folders().pins);
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.root.join("bpf"))
            .status();
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// A host with ports.
pub(crate) struct Bed {
    pub(crate) host: NetNs,
    pub(crate) pins: Pins,
}

impl Bed {
    pub(crate) fn new() -> Bed {
        let host = NetNs::new().unwrap();
        without_ipv6(&host);
        Bed {
            host,
            pins: Pins::new(),
        }
    }

    /// A port of the host; its far end is `p` in a namespace of its own.
    pub(crate) fn port(&self, name: &str) -> NetNs {
        let far = NetNs::new().unwrap();
        without_ipv6(&far);
        let mut route = self.host.route().unwrap();
        route
            .create_veth(&VethPair {
                name,
                peer_name: "p",
                peer_namespace: Some(&far),
                queues: Some(1),
                ..VethPair::default()
            })
            .unwrap();
        let near = route.link_by_name(name).unwrap().index;
        let mut far_route = far.route().unwrap();
        let index = far_route.link_by_name("p").unwrap().index;
        // A veth end takes redirected frames only while its peer has NAPI.
        far.run(|| {
            Ethtool::open()
                .unwrap()
                .set_offload("p", Offload::GenericReceive, true)
                .unwrap()
        })
        .unwrap();
        // The end that comes up last can send at once. The kernel reports the other one as running up to a
        // second later.
        route.set_up(near, true).unwrap();
        far_route.set_up(index, true).unwrap();
        far
    }

    pub(crate) fn start(&self, text: &str) -> Running {
        Running::start(&self.host, text, &self.pins.folders())
    }
}

fn without_ipv6(namespace: &NetNs) {
    namespace
        .run(|| {
            for part in ["all", "default"] {
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{part}/disable_ipv6"), "1");
            }
        })
        .unwrap();
}

/// A daemon in a thread.
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(host: &NetNs, text: &str, folders: &Folders) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, started) = channel();
        let (host, text, folders, own) =
            (host.clone(), text.to_owned(), folders.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            host.run(|| {
                let config = config::check("test", text.as_bytes()).unwrap_or_else(|errors| {
                    panic!(
                        "{}",
                        errors
                            .iter()
                            .map(ToString::to_string)
                            .collect::<Vec<_>>()
                            .join("\n")
                    )
                });
                match Daemon::start(&text, config, &folders) {
                    Ok(mut daemon) => {
                        ready.send(Ok(())).unwrap();
                        daemon.run(&own).unwrap();
                    }
                    Err(error) => ready.send(Err(error.to_string())).unwrap(),
                }
            })
            .unwrap();
        });
        started.recv().unwrap().unwrap();
        Running {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A raw socket on `p` of a namespace, for all frames with their tags.
pub(crate) struct Raw(OwnedFd);

impl Raw {
    pub(crate) fn open(namespace: &NetNs) -> Raw {
        let index = namespace.route().unwrap().link_by_name("p").unwrap().index;
        namespace.run(|| Raw::open_here(index)).unwrap()
    }

    fn open_here(index: u32) -> Raw {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: an ordinary call without pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(all)) };
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        // SAFETY: `fd` was just opened and belongs to nobody else.
        let raw = Raw(unsafe { OwnedFd::from_raw_fd(fd) });
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: all,
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let on: i32 = 1;
        // SAFETY: both calls read structs of the lengths given.
        unsafe {
            assert_eq!(
                libc::bind(
                    fd,
                    (&raw const address).cast(),
                    size_of_val(&address) as u32
                ),
                0
            );
            let set = libc::setsockopt(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_AUXDATA,
                (&raw const on).cast(),
                4,
            );
            assert_eq!(set, 0);
        }
        raw
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        // SAFETY: pointer and length are those of the slice.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }

    /// The next frame that came in, with the tag that the kernel took off.
    pub(crate) fn receive(&self) -> Option<Vec<u8>> {
        loop {
            let mut bytes = vec![0u8; 65_536];
            let mut control = [0u64; 16];
            // SAFETY: sockaddr_ll and msghdr are plain data, for which zeros are valid.
            let (mut from, mut message): (libc::sockaddr_ll, libc::msghdr) =
                unsafe { std::mem::zeroed() };
            let mut part = libc::iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: bytes.len(),
            };
            message.msg_name = (&raw mut from).cast();
            message.msg_namelen = size_of_val(&from) as u32;
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            // SAFETY: all pointers in the message are to live buffers of the lengths given.
            let got = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) };
            if got < 0 {
                return None;
            }
            if from.sll_pkttype == libc::PACKET_OUTGOING {
                continue;
            }
            bytes.truncate(got as usize);
            // SAFETY: the kernel filled the control buffer with whole messages.
            if let Some(auxiliary) = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() }
                && auxiliary.cmsg_type == libc::PACKET_AUXDATA
            {
                // SAFETY: a message of this type has a tpacket_auxdata.
                let data: libc::tpacket_auxdata =
                    unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(auxiliary).cast()) };
                if data.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                    let [type_high, type_low] = data.tp_vlan_tpid.to_be_bytes();
                    let [tci_high, tci_low] = data.tp_vlan_tci.to_be_bytes();
                    bytes.splice(12..12, [type_high, type_low, tci_high, tci_low]);
                }
            }
            return Some(bytes);
        }
    }

    /// The next frame, waited for.
    #[track_caller]
    pub(crate) fn next(&self) -> Vec<u8> {
        let mut found = None;
        wait_for("a frame", || {
            found = self.receive();
            found.is_some()
        });
        found.unwrap()
    }
}

/// An Ethernet frame, tagged when `vlan` is not 0, of at least 60 bytes.
pub(crate) fn frame(to: [u8; 6], from: [u8; 6], tci: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [to, from].concat();
    if tci != 0 {
        frame.extend([0x81, 0]);
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// IPv4 with UDP.
pub(crate) fn udp(source: [u8; 4], destination: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    let mut bytes = vec![8, 0, 0x45, 0, 0, 38, 0, 1, 0, 0, 64, 17, 0, 0];
    bytes.extend(source);
    bytes.extend(destination);
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend([0, 18, 0, 0]);
    bytes.extend([0x55; 10]);
    bytes
}
