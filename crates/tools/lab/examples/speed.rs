//! How fast the generator writes packets: clocks a packet and millions of packets per second into
//! the null port, for 64k flows and for all fields varying. Run with `--release`.

use std::time::Duration;

use weir_buf::{Hugepages, Pool, PoolConfig};
use weir_lab::port::{Device, PortSpec};
use weir_lab::profile::{Profile, Simple};
use weir_lab::run::{Control, Plan, run};
use weir_lab::units::Rate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flows = Simple {
        rate: Some(Rate::Max),
        flows: Some(65_536),
        ..Simple::default()
    };
    let plain = Simple {
        rate: Some(Rate::Max),
        no_stamp: true,
        flows: Some(65_536),
        ..Simple::default()
    };
    let all = Profile::from_yaml(weir_lab::FIELDS).map_err(|errors| format!("{errors:?}"))?;
    let pool = Pool::new(PoolConfig {
        chunks: 8192,
        hugepages: Hugepages::Auto,
    })?;
    for (name, profile) in [
        ("64k flows", Profile::simple(&plain)?),
        ("64k flows, stamped", Profile::simple(&flows)?),
        ("all fields", all),
    ] {
        for _ in 0..5 {
            let mut ports = [PortSpec::new(Device::Null).open(&pool)?];
            let plan = Plan {
                duration: Some(Duration::from_millis(300)),
                drain: Duration::ZERO,
                ..Plan::default()
            };
            let result = run(&profile, &plan, &mut ports, &pool, &Control::default())?;
            println!(
                "{name}: {:.1} clocks, {:.2} Mpps, waited {:.0} %",
                result.clocks_per_packet,
                result.sent_pps / 1e6,
                result.noise.run_delay * 100.0
            );
        }
    }
    Ok(())
}
