//! One TCP stream as fast as it goes, between the two hosts.
//!
//! A thread writes blocks, another reads them; between two moments of the middle of the transfer the
//! bytes that were read are counted. Both ends keep the kernel's settings.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use weir_netlink::lab::{FAR, NEAR};

use super::cpu::CpuTime;
use super::rounds::Interrupt;
use super::sentence;
use super::stage::Stage;

const PORT: u16 = 5001;
/// Bytes of one write and of one read at most.
const BLOCK: usize = 128 << 10;
/// Slow start, and whatever else is at the beginning.
const WARM_UP: Duration = Duration::from_millis(500);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Reads and writes look that often whether it is over.
const PATIENCE: Duration = Duration::from_millis(100);

/// One round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transfer {
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// In this time.
    pub(super) elapsed: Duration,
    /// With this CPU time.
    pub(super) cpu: CpuTime,
}

/// Transfers for some time through whatever joins the hosts.
pub(super) fn transfer(
    stage: &Stage,
    lasting: Duration,
    interrupt: &Interrupt,
) -> Result<Transfer, String> {
    let listener = stage.in_host(FAR, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
    let to = SocketAddr::from((stage.far_address(), PORT));
    let out = stage.in_host(NEAR, || TcpStream::connect_timeout(&to, CONNECT_LIMIT))?;
    let (inward, _) = listener.accept().map_err(sentence)?;
    out.set_write_timeout(Some(PATIENCE)).map_err(sentence)?;
    inward.set_read_timeout(Some(PATIENCE)).map_err(sentence)?;
    let (read, over) = (AtomicU64::new(0), AtomicBool::new(false));
    Ok(std::thread::scope(|scope| {
        scope.spawn(|| write(out, &over));
        scope.spawn(|| take(inward, &read, &over));
        interrupt.sleep(WARM_UP);
        let (bytes, cpu, began) = (read.load(Ordering::Acquire), CpuTime::now(), Instant::now());
        interrupt.sleep(lasting);
        let bytes = read.load(Ordering::Acquire) - bytes;
        let done = Transfer {
            bytes,
            elapsed: began.elapsed(),
            cpu: CpuTime::now().since(cpu),
        };
        over.store(true, Ordering::Release);
        done
    }))
}

fn write(mut stream: TcpStream, over: &AtomicBool) {
    let block = vec![0x77; BLOCK];
    while !over.load(Ordering::Acquire) {
        // Nothing written in time: look whether it is over, and go on.
        let _ = stream.write(&block);
    }
}

fn take(mut stream: TcpStream, read: &AtomicU64, over: &AtomicBool) {
    let mut block = vec![0; BLOCK];
    while !over.load(Ordering::Acquire) {
        if let Ok(len) = stream.read(&mut block) {
            if len == 0 {
                return;
            }
            read.fetch_add(len as u64, Ordering::Release);
        }
    }
}
