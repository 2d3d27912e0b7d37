//! How interfaces are sampled: shared by all workers, changed while they run.
//!
//! Workers look at one number, which changes with every change; only then do they read the plan, and never wait for
//! whoever is writing it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::MOST_HEADER;

/// How an interface is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// One packet in so many; 0: none.
    pub rate: u32,
    /// The first bytes of a packet that are reported, 1 to 256.
    pub header: u16,
}

impl Sampling {
    /// With a header length that can be had.
    fn possible(self) -> Sampling {
        Sampling {
            header: self.header.clamp(1, MOST_HEADER as u16),
            ..self
        }
    }
}

/// How interfaces are sampled, shared by all workers and changed while they run.
#[derive(Debug)]
pub struct Settings {
    /// Changes with every change, so that workers need to look at nothing else.
    pub(super) generation: AtomicU32,
    plan: RwLock<Plan>,
}

/// What the settings say.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) usual: Sampling,
    pub(super) others: BTreeMap<u32, Sampling>,
}

impl Plan {
    pub(super) fn of(&self, interface: u32) -> Sampling {
        self.others
            .get(&interface)
            .copied()
            .unwrap_or(self.usual)
            .possible()
    }
}

impl Settings {
    /// One packet in `rate` (0: none), the first `header` bytes of it (1 to 256), on every interface.
    #[must_use]
    pub fn new(rate: u32, header: u16) -> Arc<Settings> {
        let plan = Plan {
            usual: Sampling { rate, header },
            others: BTreeMap::new(),
        };
        Arc::new(Settings {
            generation: AtomicU32::new(1),
            plan: RwLock::new(plan),
        })
    }

    /// Changes what is usual; workers see it with their samplers' next look or tick.
    pub fn set(&self, rate: u32, header: u16) {
        self.change(|plan| plan.usual = Sampling { rate, header });
    }

    /// Changes the interfaces that are sampled in another way than usual: all of them are in `others`.
    pub fn set_others(&self, others: BTreeMap<u32, Sampling>) {
        self.change(|plan| plan.others = others);
    }

    fn change(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan.write().unwrap_or_else(PoisonError::into_inner));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// How an interface is sampled.
    #[must_use]
    pub fn of(&self, interface: u32) -> Sampling {
        self.plan
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .of(interface)
    }

    /// The usual rate.
    #[must_use]
    pub fn rate(&self) -> u32 {
        self.plan
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .usual
            .rate
    }

    /// Without waiting: `None` while somebody changes it.
    pub(super) fn glance(&self) -> Option<Plan> {
        self.plan.try_read().ok().map(|plan| plan.clone())
    }
}
