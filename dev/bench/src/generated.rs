//! The traffic generator: clocks to write a packet, and packets per second into the null port.
//!
//! The best of many short runs counts: the others shared their core.

use std::time::Duration;

use serde::Serialize;
use weir_buf::{Hugepages, Pool, PoolConfig};
use weir_lab::port::{Device, PortSpec};
use weir_lab::profile::{Profile, Simple};
use weir_lab::run::{Control, Plan, run};
use weir_lab::units::Rate;

use crate::measure::{BenchError, Effort};
use crate::report::Found;
use crate::rig::CheckError;

/// What the generator does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Generated {
    /// The case.
    pub name: &'static str,
    /// Clocks to write a packet, in the best run.
    pub clocks: f64,
    /// What was promised.
    pub clocks_target: f64,
    /// Millions of packets per second, in the best run.
    pub mpps: f64,
    /// What was promised; 0 for no promise.
    pub mpps_target: f64,
}

fn check(problem: impl std::fmt::Display) -> BenchError {
    BenchError::Check(CheckError(problem.to_string()))
}

fn measured(
    profile: &Profile,
    limits: Generated,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    progress(&format!("{}: into the null port", limits.name));
    let pool = Pool::new(PoolConfig {
        chunks: 8192,
        hugepages: Hugepages::Auto,
    })
    .map_err(BenchError::Pool)?;
    let mut best = Generated {
        clocks: f64::INFINITY,
        mpps: 0.0,
        ..limits
    };
    for _ in 0..effort.pairs.clamp(1, 31) {
        let mut ports = [PortSpec::new(Device::Null).open(&pool).map_err(check)?];
        let plan = Plan {
            duration: Some((effort.portion / 5).max(Duration::from_millis(1))),
            drain: Duration::ZERO,
            ..Plan::default()
        };
        let result = run(profile, &plan, &mut ports, &pool, &Control::default()).map_err(check)?;
        if result.sent == 0 {
            return Err(check("nothing was sent"));
        }
        best.clocks = best.clocks.min(result.clocks_per_packet);
        best.mpps = best.mpps.max(result.sent_pps / 1e6);
    }
    Ok((Found::Generated(best), pool.on_hugepages()))
}

/// 64 bytes of 64k random flows with checksums.
pub(crate) fn flows(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    let wanted = Simple {
        rate: Some(Rate::Max),
        flows: Some(65_536),
        no_stamp: true,
        ..Simple::default()
    };
    let profile = Profile::simple(&wanted).map_err(check)?;
    let limits = Generated {
        name,
        clocks: 0.0,
        clocks_target: 90.0,
        mpps: 0.0,
        mpps_target: 10.0,
    };
    measured(&profile, limits, effort, progress)
}

/// Every field of a tagged UDP packet, with stamps.
pub(crate) fn fields(
    name: &'static str,
    effort: Effort,
    progress: &mut dyn FnMut(&str),
) -> Result<(Found, bool), BenchError> {
    let profile =
        Profile::from_yaml(weir_lab::FIELDS).map_err(|errors| check(format!("{errors:?}")))?;
    let limits = Generated {
        name,
        clocks: 0.0,
        clocks_target: 250.0,
        mpps: 0.0,
        mpps_target: 0.0,
    };
    measured(&profile, limits, effort, progress)
}
