//! `weir lab device`: the test device on two ports, and `InProcess` for other commands.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_lab::device::{DeviceConfig, DeviceCounts, run};
use weir_lab::port::{LabPort, PortSpec};
use weir_lab::run::Control;
use weir_lab::units::Rate;

use super::generate::stop_on_signals;
use super::ndr::pool;
use crate::cli::DeviceArgs;
use crate::failure::{Failure, USAGE};

pub(super) fn execute(args: &DeviceArgs, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let [one, other] = args.port.as_slice() else {
        return Err(Failure::Coded(
            USAGE,
            "a device has two ports: give --port twice".to_owned(),
        ));
    };
    super::spare_management(&args.port)?;
    let config = DeviceConfig {
        packets_per_second: match args.capacity {
            Some(Rate::Packets(rate)) => Some(rate),
            _ => None,
        },
        bits_per_second: match args.capacity {
            Some(Rate::Layer2(bits)) => Some(bits),
            None | Some(Rate::Packets(_)) => None,
            Some(_) => {
                return Err(Failure::Coded(
                    USAGE,
                    "a capacity is in pps or in bps".to_owned(),
                ));
            }
        },
        queue: args.queue,
        delay: args.delay,
        lose_every: args.lose_every,
        duplicate_every: args.duplicate_every,
        swap_every: args.swap_every,
    };
    let control = Arc::new(Control::default());
    stop_on_signals(&control)?;
    let pool = pool()?;
    let mut ports = [one.open(&pool)?, other.open(&pool)?];
    let deadline = args.duration.map(|duration| Instant::now() + duration);
    let watched = control.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    std::thread::spawn(move || {
        while !watched.stop.load(Ordering::Relaxed)
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        stopped.store(true, Ordering::Relaxed);
    });
    let counts = run(&config, &mut ports, &pool, &stop);
    if json {
        writeln!(
            to,
            "{}",
            serde_json::to_string_pretty(&counts).map_err(Failure::said)?
        )?;
    } else {
        writeln!(
            to,
            "received {}, forwarded {}, over capacity {}, lost on purpose {}, duplicated {}, exchanged {}, no room {}",
            counts.received,
            counts.forwarded,
            counts.over_capacity,
            counts.lost,
            counts.duplicated,
            counts.swapped,
            counts.no_room
        )?;
    }
    Ok(())
}

/// The device on a thread of this process, behind two memif ports.
pub(super) struct InProcess {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<DeviceCounts>,
}

impl InProcess {
    /// Starts it; the ports are the generator's.
    pub(super) fn start(
        name: &str,
        config: DeviceConfig,
        own: &weir_buf::Pool,
    ) -> Result<(InProcess, Vec<LabPort>), Failure> {
        let socket = format!("@weir-lab-{}-{name}", std::process::id());
        let other = pool()?;
        let open = |role: &str, id: u8, pool: &weir_buf::Pool| -> Result<LabPort, Failure> {
            let text = format!("memif:{socket},id={id},role={role},ring=8192");
            Ok(PortSpec::parse(&text).map_err(Failure::said)?.open(pool)?)
        };
        let mut far = [open("master", 0, &other)?, open("master", 1, &other)?];
        let mut near = vec![open("slave", 0, own)?, open("slave", 1, own)?];
        for port in far.iter_mut().chain(&mut near) {
            port.wait_for_link(Duration::from_secs(10))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || run(&config, &mut far, &other, &stopped));
        Ok((InProcess { stop, thread }, near))
    }

    /// Ends it.
    pub(super) fn end(self) -> Result<DeviceCounts, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| Failure::said("the test device's thread failed"))
    }
}
