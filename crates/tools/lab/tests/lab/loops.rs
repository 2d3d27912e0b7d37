//! Runs through the test device over memif: loss, duplicates, reordering and delay are found exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_buf::{Hugepages, Pool, PoolConfig};
use weir_lab::device::{self, DeviceConfig, DeviceCounts};
use weir_lab::port::{LabPort, PortSpec};

/// A device under test on a thread of its own, and the generator's two ports to it.
pub(super) struct Rig {
    pub(super) ports: Vec<LabPort>,
    pub(super) pool: Pool,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<DeviceCounts>>,
}

impl Rig {
    pub(super) fn new(name: &str, config: DeviceConfig) -> Rig {
        let pool = || {
            Pool::new(PoolConfig {
                chunks: 16_384,
                hugepages: Hugepages::Off,
            })
            .unwrap()
        };
        let name = format!("@weir-lab-{}-{name}", std::process::id());
        let open = |role: &str, id: u8, pool: &Pool| {
            PortSpec::parse(&format!("memif:{name},id={id},role={role},ring=4096"))
                .unwrap()
                .open(pool)
                .unwrap()
        };
        let (own, other) = (pool(), pool());
        let mut far = [open("master", 0, &other), open("master", 1, &other)];
        let mut ports = vec![open("slave", 0, &own), open("slave", 1, &own)];
        for port in far.iter_mut().chain(&mut ports) {
            port.wait_for_link(Duration::from_secs(20)).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || device::run(&config, &mut far, &other, &stopped));
        Rig {
            ports,
            pool: own,
            stop,
            thread: Some(thread),
        }
    }

    pub(super) fn end(mut self) -> DeviceCounts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

mod runs {
    use weir_lab::profile::{Profile, Simple};
    use weir_lab::result::RunResult;
    use weir_lab::run::{Control, Plan, run};
    use weir_lab::units::Rate;

    use super::*;

    fn go(rig: &mut Rig, packets: u64, bidirectional: bool) -> RunResult {
        let wanted = Simple {
            rate: Some(Rate::Packets(20_000.0)),
            packets: Some(packets),
            flows: Some(1000),
            bidirectional,
            ..Simple::default()
        };
        let profile = Profile::simple(&wanted).unwrap();
        let plan = Plan {
            drain: Duration::from_secs(2),
            ..Plan::default()
        };
        run(
            &profile,
            &plan,
            &mut rig.ports,
            &rig.pool,
            &Control::default(),
        )
        .unwrap()
    }

    /// What the device did to packets is what the generator found, packet for packet.
    #[test]
    fn what_the_device_did_is_found() {
        let config = DeviceConfig {
            lose_every: 101,
            duplicate_every: 77,
            swap_every: 50,
            ..DeviceConfig::default()
        };
        let mut rig = Rig::new("did", config);
        let result = go(&mut rig, 10_000, true);
        let counts = rig.end();
        let sum = |pick: fn(&weir_lab::result::StreamResult) -> u64| {
            result.streams.iter().map(pick).sum::<u64>()
        };
        assert_eq!(counts.received, 20_000, "{counts:?}");
        assert_eq!(counts.over_capacity + counts.no_room, 0, "{counts:?}");
        assert_eq!(sum(|stream| stream.sent), 20_000);
        assert_eq!(sum(|stream| stream.lost), counts.lost, "{result:#?}");
        assert_eq!(
            sum(|stream| stream.duplicated),
            counts.duplicated,
            "{result:#?}"
        );
        // A packet that waits when the next one is lost is still passed by the one after.
        assert_eq!(
            sum(|stream| stream.reordered),
            counts.swapped,
            "{result:#?}"
        );
        assert_eq!(counts.lost, 2 * (10_000 / 101));
    }

    /// The median is never below the device's delay. How far above it may be is for an idle machine.
    #[test]
    fn a_delay_is_a_lower_bound_of_latency() {
        let mut rig = Rig::new(
            "delay",
            DeviceConfig {
                delay: Duration::from_millis(10),
                ..DeviceConfig::default()
            },
        );
        let result = go(&mut rig, 2000, false);
        rig.end();
        let latency = result.streams[0].latency.clone().unwrap();
        assert_eq!(latency.samples, 2000 - result.streams[0].lost);
        assert!(latency.min_us >= 9_990.0, "{latency:?}");
        if std::env::var_os("WEIR_LONG").is_some() {
            assert!(latency.p50_us < 10_020.0, "{latency:?}");
        }
    }

    #[test]
    fn a_stopped_run_ends_and_tells_what_it_has() {
        let mut rig = Rig::new("stop", DeviceConfig::default());
        let control = Arc::new(Control::default());
        let other = control.clone();
        let profile = Profile::simple(&Simple {
            rate: Some(Rate::Packets(1000.0)),
            ..Simple::default()
        })
        .unwrap();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            other.stop.store(true, Ordering::Relaxed);
        });
        let result = run(
            &profile,
            &Plan::default(),
            &mut rig.ports,
            &rig.pool,
            &control,
        )
        .unwrap();
        stopper.join().unwrap();
        rig.end();
        assert!(result.sent > 0);
    }

    #[test]
    fn a_stream_needs_its_port() {
        let mut rig = Rig::new("port", DeviceConfig::default());
        let mut profile = Profile::simple(&Simple::default()).unwrap();
        profile.streams[0].port = 2;
        let error = run(
            &profile,
            &Plan::default(),
            &mut rig.ports,
            &rig.pool,
            &Control::default(),
        )
        .unwrap_err();
        rig.end();
        assert!(
            error.to_string().contains("port 2 is not there: 2 port(s)"),
            "{error}"
        );
    }
}

/// A port that takes fewer packets than are due: the run ends on time, and the rest is unsent.
#[test]
fn what_a_port_does_not_take_is_unsent() {
    use weir_lab::profile::{Profile, Simple};
    use weir_lab::run::{Control, Plan, run};
    use weir_lab::units::Rate;

    // Ten million packets per second are beyond what this build writes.
    let mut rig = Rig::new("unsent", DeviceConfig::default());
    let wanted = Simple {
        rate: Some(Rate::Packets(1e9)),
        ..Simple::default()
    };
    let plan = Plan {
        duration: Some(Duration::from_millis(20)),
        ..Plan::default()
    };
    let result = run(
        &Profile::simple(&wanted).unwrap(),
        &plan,
        &mut rig.ports,
        &rig.pool,
        &Control::default(),
    )
    .unwrap();
    rig.end();
    let stream = &result.streams[0];
    assert_eq!(stream.sent + stream.unsent, 20_000_000);
    assert!(stream.unsent > 10_000_000, "{stream:?}");
}
