//! Rules about the workers: as many as cores, each on one of its own.

use std::collections::HashMap;

use super::Rules;
use crate::findings::at;

impl Rules<'_, '_> {
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
