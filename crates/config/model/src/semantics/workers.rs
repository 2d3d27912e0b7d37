//! Rules about the workers and their packet memory: as many workers as cores, each on one of its own; a pool that has
//! buffers for all queues.

use std::collections::HashMap;

use super::Rules;
use crate::BufferPlan;
use crate::findings::at;

impl Rules<'_, '_> {
    /// A pool of a chosen size has a share for each queue that lends from it.
    pub(super) fn buffers(&mut self) {
        let config = &self.candidate.config;
        let (plan, least) = (config.buffer_plan(), config.least_buffers());
        if let Some(wanted) = config.buffers.per_numa
            && plan.share < BufferPlan::least_share()
            && !self.findings.is_broken(at!["buffers", "per-numa"])
        {
            let message = format!(
                "{wanted} buffers are too few for {} queues of AF_XDP and memif ports",
                plan.queues
            );
            let help = format!("use {least} or more, or leave it out: the router sizes the pool");
            self.error(at!["buffers", "per-numa"], message, "", help);
        }
    }

    pub(super) fn workers(&mut self) {
        let workers = &self.candidate.config.workers;
        if self.findings.any_broken("workers.cores") {
            return;
        }
        if !workers.cores.is_empty() && workers.cores.len() != usize::from(workers.count) {
            let message = format!("{} workers on {} cores", workers.count, workers.cores.len());
            self.error(
                at!["workers", "count"],
                message,
                "",
                "leave out `count`: there is one worker for each core".into(),
            );
        }
        let mut first = HashMap::new();
        for (item, core) in workers.cores.iter().enumerate() {
            if let Some(earlier) = first.insert(core, item) {
                let help = format!(
                    "worker {earlier} has it already; two workers on one core only hinder each other"
                );
                self.error(
                    at!["workers", "cores", item],
                    format!("core {core} is used twice"),
                    "the second one",
                    help,
                );
            }
        }
    }
}
