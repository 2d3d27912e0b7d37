//! Trials with real traffic: what [`crate::mlr::search`] measures devices with.
//!
//! A trial runs the profile at the given total load. The noise guard marks a trial with loss as
//! spoilt when the generator waited too long for a core or the hypervisor took time; trials without
//! loss count in any case. Device counters are read outside of the measured time.

use weir_buf::Pool;

use crate::counters::{CounterSource, growth};
use crate::error::LabError;
use crate::mlr::{Measurer, Trial};
use crate::port::LabPort;
use crate::profile::Profile;
use crate::result::RunResult;
use crate::run::{Control, Plan, run};

/// Makes trials with traffic.
pub struct TrafficMeasurer<'a> {
    /// What is sent.
    pub profile: &'a Profile,
    /// How long to wait for packets on their way.
    pub plan: Plan,
    /// The open ports.
    pub ports: &'a mut [LabPort],
    /// Packet memory.
    pub pool: &'a Pool,
    /// Ends everything early.
    pub control: &'a Control,
    /// The counters of the device.
    pub sources: Vec<Box<dyn CounterSource + 'a>>,
    /// The share of time that may be stolen from a trial that counts in spite of loss.
    pub noise_limit: f64,
    /// Reported after each trial.
    pub progress: &'a mut dyn FnMut(&Trial),
    /// The run of the newest trial.
    pub last: Option<RunResult>,
}

impl Measurer for TrafficMeasurer<'_> {
    fn measure(&mut self, load: f64, duration: f64) -> Result<Trial, LabError> {
        if self.control.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(LabError::Refused("stopped".to_owned()));
        }
        let length = std::time::Duration::from_secs_f64(duration);
        let plan = Plan {
            duration: Some(length),
            load: Some(load),
            ..self.plan.clone()
        };
        let mut problem = None;
        let mut read = |sources: &mut Vec<Box<dyn CounterSource + '_>>| {
            let mut all = crate::counters::Counters::new();
            for source in sources {
                match source.read() {
                    Ok(mut counters) => all.append(&mut counters),
                    Err(error) => problem = Some(format!("the device's counters: {error}")),
                }
            }
            all
        };
        let before = read(&mut self.sources);
        let result = run(self.profile, &plan, self.ports, self.pool, self.control)?;
        let after = read(&mut self.sources);
        if self.control.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(LabError::Refused("stopped".to_owned()));
        }
        let trial = self.trial(load, duration, &result);
        // A device that reboots answers no questions: its trial does not count.
        let spoilt = trial.spoilt.clone().or(problem.filter(|_| trial.lost > 0));
        let trial = Trial {
            device: growth(&before, &after),
            spoilt,
            ..trial
        };
        (self.progress)(&trial);
        self.last = Some(result);
        Ok(trial)
    }
}

impl TrafficMeasurer<'_> {
    fn trial(&self, load: f64, duration: f64, result: &RunResult) -> Trial {
        let offered: u64 = result
            .streams
            .iter()
            .map(|stream| stream.sent + stream.unsent)
            .sum();
        let received: u64 = result.streams.iter().map(|stream| stream.received).sum();
        let lost = offered.saturating_sub(received);
        let noise = &result.noise;
        let spoilt = (lost > 0 && noise.run_delay.max(noise.steal) > self.noise_limit).then(|| {
            format!(
                "the generator waited {:.1} % of the time for a core, the hypervisor took {:.1} %",
                noise.run_delay * 100.0,
                noise.steal * 100.0
            )
        });
        let latency = result
            .streams
            .iter()
            .filter_map(|stream| stream.latency.as_ref());
        let worst =
            |pick: fn(&crate::result::Latency) -> f64| latency.clone().map(pick).reduce(f64::max);
        Trial {
            load,
            duration,
            offered,
            sent: result.sent,
            lost,
            spoilt,
            p50_us: worst(|latency| latency.p50_us),
            p99_us: worst(|latency| latency.p99_us),
            ..Trial::default()
        }
    }
}
