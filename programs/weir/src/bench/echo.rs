//! The round trip of one small datagram when nothing else is under way: what sleeping costs in time.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_netlink::lab::{FAR, NEAR};

use super::rounds::Interrupt;
use super::sentence;
use super::stage::Stage;

const PORT: u16 = 5002;
/// Everybody is asleep again before the next is sent.
const PAUSE: Duration = Duration::from_millis(3);
const PATIENCE: Duration = Duration::from_millis(500);

/// Sends datagrams one by one for some time and returns how long each took to come back, in
/// microseconds. One that does not come back is none.
pub(super) fn round_trips(
    stage: &Stage,
    lasting: Duration,
    interrupt: &Interrupt,
) -> Result<Vec<f64>, String> {
    let mirror = stage.in_host(FAR, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
    mirror
        .set_read_timeout(Some(Duration::from_millis(50)))
        .map_err(sentence)?;
    let socket = stage.in_host(NEAR, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    socket
        .connect(SocketAddr::from((stage.far_address(), PORT)))
        .map_err(sentence)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(sentence)?;
    let over = AtomicBool::new(false);
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| reflect(&mirror, &over));
        let began = Instant::now();
        while began.elapsed() < lasting && !interrupt.came() {
            times.extend(round_trip(&socket, times.len() as u64));
            std::thread::sleep(PAUSE);
        }
        over.store(true, Ordering::Release);
    });
    // The first goes over paths that have never been used.
    Ok(times.split_off(1.min(times.len())))
}

fn round_trip(socket: &UdpSocket, number: u64) -> Option<f64> {
    let (began, mut bytes) = (Instant::now(), [0; 18]);
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    let mut answer = [0; 100];
    socket.send(&bytes).ok()?;
    loop {
        let len = socket.recv(&mut answer).ok()?;
        // One that came too late is not the answer.
        if answer.get(..len) == Some(&bytes) {
            return Some(began.elapsed().as_secs_f64() * 1e6);
        }
    }
}

fn reflect(socket: &UdpSocket, over: &AtomicBool) {
    let mut bytes = [0; 100];
    while !over.load(Ordering::Acquire) {
        if let Ok((len, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(bytes.get(..len).unwrap_or_default(), from);
        }
    }
}
