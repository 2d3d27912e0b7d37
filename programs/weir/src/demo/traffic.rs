//! The demo's traffic: paced UDP of several sizes, a paced TCP stream, and ping.
//!
//! Each direction of a pair is a thread in its host's namespace. Pacing is by absolute time, so that
//! a late wake-up is made up for; what a socket does not take is skipped, not waited for.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_netlink::lab::{Lab, Running};

/// Payloads of the UDP mix.
const SIZES: [usize; 4] = [18, 300, 900, 1400];
const PORTS: [u16; 4] = [5001, 5002, 5003, 5004];
const TCP_PORT: u16 = 5100;
/// Bytes a second of the TCP stream.
const TCP_RATE: usize = 2_000_000;
const TICK: Duration = Duration::from_millis(5);

/// From, to, and the share of packets in percent. The last one takes the broken route.
const STREAMS: [(&str, &str, Ipv4Addr, u64); 5] = [
    ("host-a", "host-b", Ipv4Addr::new(10, 2, 0, 2), 38),
    ("host-b", "host-a", Ipv4Addr::new(10, 1, 0, 2), 20),
    ("host-c", "host-d", Ipv4Addr::new(10, 3, 0, 2), 30),
    ("host-d", "host-c", Ipv4Addr::new(10, 3, 0, 1), 10),
    ("host-a", "host-b", Ipv4Addr::new(198, 51, 100, 9), 2),
];

/// The senders under way.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    ping: Option<Running>,
}

impl Traffic {
    /// Starts everything at `rate` packets a second in all.
    pub(crate) fn start(lab: &Lab, rate: u32) -> Result<Traffic, String> {
        let mut traffic = Traffic {
            stop: Arc::default(),
            threads: Vec::new(),
            ping: None,
        };
        introduce(lab)?;
        for host in ["host-a", "host-b", "host-c", "host-d"] {
            traffic.swallow(lab, host)?;
        }
        for (from, _, address, share) in STREAMS {
            let socket = in_host(lab, from, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
            socket
                .set_nonblocking(true)
                .map_err(|error| error.to_string())?;
            let (stop, rate) = (traffic.stop.clone(), u64::from(rate) * share / 100);
            traffic.threads.push(std::thread::spawn(move || {
                send_udp(&socket, address, rate, &stop)
            }));
        }
        traffic.tcp(lab)?;
        traffic.ping = start_ping(lab)?;
        Ok(traffic)
    }

    /// Sockets that take what is sent to a host, so that it answers with no ICMP.
    fn swallow(&mut self, lab: &Lab, host: &str) -> Result<(), String> {
        for port in PORTS {
            let Ok(socket) = in_host(lab, host, move || {
                UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))
            }) else {
                continue;
            };
            socket
                .set_read_timeout(Some(Duration::from_millis(200)))
                .map_err(|error| error.to_string())?;
            let stop = self.stop.clone();
            self.threads.push(std::thread::spawn(move || {
                let mut buffer = [0; 2048];
                while !stop.load(Ordering::Acquire) {
                    let _ = socket.recv(&mut buffer);
                }
            }));
        }
        Ok(())
    }

    fn tcp(&mut self, lab: &Lab) -> Result<(), String> {
        let listener = in_host(lab, "host-b", || {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, TCP_PORT))
        })?;
        listener
            .set_nonblocking(true)
            .map_err(|error| error.to_string())?;
        let stop = self.stop.clone();
        self.threads
            .push(std::thread::spawn(move || take_tcp(&listener, &stop)));
        let namespace = lab
            .host("host-a")
            .map_err(|error| error.to_string())?
            .namespace()
            .clone();
        let stop = self.stop.clone();
        self.threads.push(std::thread::spawn(move || {
            let to = SocketAddr::from((Ipv4Addr::new(10, 2, 0, 2), TCP_PORT));
            if let Ok(Ok(stream)) =
                namespace.run(move || TcpStream::connect_timeout(&to, Duration::from_secs(3)))
            {
                send_tcp(stream, &stop);
            }
        }));
        Ok(())
    }

    /// Ends everything; the loss that ping saw, in percent, if it ran.
    pub(crate) fn stop(&mut self) -> Option<f64> {
        let loss = self
            .ping
            .take()
            .and_then(|ping| ping.interrupt().ok())
            .and_then(|done| loss(&done.stdout));
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        loss
    }
}

fn in_host<T: Send + 'static>(
    lab: &Lab,
    host: &str,
    make: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let host = lab.host(host).map_err(|error| error.to_string())?;
    host.namespace()
        .run(make)
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())
}

fn send_udp(socket: &UdpSocket, to: Ipv4Addr, rate: u64, stop: &AtomicBool) {
    let (began, payload) = (Instant::now(), [0x77; 1400]);
    let mut sent = 0u64;
    while !stop.load(Ordering::Acquire) {
        let due = began.elapsed().as_micros() as u64 * rate / 1_000_000;
        while sent < due {
            let kind = (sent % 7) as usize % SIZES.len();
            let _ = socket.send_to(payload.get(..SIZES[kind]).unwrap_or(&[]), (to, PORTS[kind]));
            sent += 1;
        }
        std::thread::sleep(TICK);
    }
}

fn send_tcp(mut stream: TcpStream, stop: &AtomicBool) {
    let (began, chunk) = (Instant::now(), [0x77; 8192]);
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    let mut sent = 0;
    while !stop.load(Ordering::Acquire) {
        let due = began.elapsed().as_millis() as usize * TCP_RATE / 1000;
        while sent < due && !stop.load(Ordering::Acquire) {
            match stream.write(&chunk) {
                Ok(len) => sent += len,
                Err(_) => break,
            }
        }
        std::thread::sleep(TICK);
    }
}

fn take_tcp(listener: &TcpListener, stop: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while !stop.load(Ordering::Acquire) {
        let Ok((mut stream, _)) = listener.accept() else {
            std::thread::sleep(TICK);
            continue;
        };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        while !stop.load(Ordering::Acquire) {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(_) => break,
            }
        }
    }
}

/// Lets the router learn its neighbours before there is traffic: what waits for one in a crowd may have to make room, a
/// ping among it.
fn introduce(lab: &Lab) -> Result<(), String> {
    if !weir_netlink::lab::has_program("ping") {
        return Ok(());
    }
    let host = lab.host("host-a").map_err(|error| error.to_string())?;
    for _ in 0..5 {
        let asked = host.run(
            "ping",
            &["-c", "1", "-W", "1", "10.2.0.2"],
            Duration::from_secs(3),
        );
        if asked.is_ok_and(|done| loss(&done.stdout) == Some(0.0)) {
            break;
        }
    }
    Ok(())
}

/// `ping` from host-a to host-b, if it is installed.
fn start_ping(lab: &Lab) -> Result<Option<Running>, String> {
    if !weir_netlink::lab::has_program("ping") {
        return Ok(None);
    }
    let host = lab.host("host-a").map_err(|error| error.to_string())?;
    host.spawn("ping", &["-i", "0.2", "-W", "1", "10.2.0.2"])
        .map(Some)
        .map_err(|error| error.to_string())
}

/// The percentage in ping's last lines.
pub(crate) fn loss(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.contains("packet loss"))?;
    line.split(',')
        .find(|part| part.contains("packet loss"))?
        .trim()
        .split('%')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_loss_is_read() {
        let output = "x\n50 packets transmitted, 49 received, 2% packet loss, time 9000ms\n";
        assert_eq!(super::loss(output), Some(2.0));
        assert_eq!(super::loss("nothing"), None);
    }
}
