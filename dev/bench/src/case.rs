//! The table of cases: what `weir bench` can measure.
//!
//! A case is a file in `cases/` with a constant that says its name, its limit, and how its scene is set: tables and
//! frames, and what must become of a frame. To add one: the file, a line in `cases/mod.rs`. What every case
//! shares (buffers, vectors, the graph, sFlow, checks of the counters) is in `scene.rs` and `rig.rs`.

use crate::measure::{BenchError, Effort};
use crate::report::Found;
use crate::scene::Scene;

/// What a case may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// Clocks a packet.
    Clocks(f64),
    /// So many times `ip4` of the same run.
    TimesIp4(f64),
    /// So many clocks more than `ip4` of the same run.
    OverIp4(f64),
    /// What another case adds to `ip4` of the same run, so many times.
    TimesAdded(&'static str, f64),
    /// So many clocks more than the weighted mean of other cases of the same run.
    OverMean(&'static [(&'static str, f64)], f64),
    /// Nothing was promised.
    None,
}

impl Limit {
    /// In clocks a packet; `None` without a promise, or when what it refers to was not measured. `of` tells the clocks
    /// of a case.
    pub(crate) fn clocks(self, of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let ip4 = of("ip4");
        match self {
            Limit::Clocks(clocks) => Some(clocks),
            Limit::TimesIp4(times) => ip4.map(|ip4| ip4 * times),
            Limit::OverIp4(clocks) => ip4.map(|ip4| ip4 + clocks),
            Limit::TimesAdded(other, times) => ip4
                .zip(of(other))
                .map(|(ip4, other)| ip4 + times * (other - ip4)),
            Limit::OverMean(parts, more) => parts
                .iter()
                .map(|&(name, weight)| of(name).map(|clocks| clocks * weight))
                .sum::<Option<f64>>()
                .map(|mean| mean + more),
            Limit::None => None,
        }
    }
}

/// What measures [`Kind::Load`]; the flag says whether packet memory lay on hugepages.
type LoadRun = fn(&'static str, Effort, &mut dyn FnMut(&str)) -> Result<(Found, bool), BenchError>;

/// How a case is measured.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Frames through the whole packet path.
    Packets {
        /// What it may cost without sFlow.
        limit: Limit,
        /// Sets tables, frames and the check.
        set: fn(&mut Scene),
    },
    /// Something else.
    Load {
        /// Measures it; gets its name, and the callback for progress.
        run: LoadRun,
    },
}

/// What is measured.
#[derive(Clone, Copy)]
pub struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
}

impl Case {
    /// All cases, in the order of the report.
    pub const ALL: &'static [Case] = crate::cases::ALL;

    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// What it measures, in a few words.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.about
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
