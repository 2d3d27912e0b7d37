//! Rules about the sFlow agent and the workers.

use std::collections::HashMap;

use super::Rules;
use crate::findings::at;

/// Bytes of a datagram around the header of one expanded flow sample, worked out from the sFlow
/// version 5 specification: datagram with an IPv6 agent 40, record tag and length 8, expanded
/// flow sample 44, record tag and length 8, raw header 16; rounded up to leave room for padding
/// of the header to 4 bytes.
const AROUND_HEADER: u32 = 120;

impl Rules<'_, '_> {
    pub(super) fn settings(&mut self) {
        self.sflow_use();
        self.sflow_agent();
        self.sflow_interfaces();
        self.collectors();
        self.workers();
    }

    /// Sampling that nobody hears of, and collectors that hear nothing.
    fn sflow_use(&mut self) {
        let config = &self.candidate.config;
        let sampled = config.interfaces.iter().find(|(_, interface)| interface.sflow).map(|(name, _)| name.as_str());
        match sampled {
            Some(name) if config.sflow.collectors.is_empty() && !self.findings.any_broken("sflow.collectors") => {
                let message = format!("interface `{name}` is sampled, but there is no collector");
                let help = "add one, as `sflow: {collectors: [{address: 192.0.2.9}]}`".to_owned();
                self.warning(&self.of_interface(name, "sflow"), message, "samples go nowhere", help);
            }
            Some(name) if config.sflow.sampling_rate == 0 => {
                let message = format!("interface `{name}` is sampled, but the sampling rate is 0");
                let help = "set `sflow.sampling-rate` to 1 or more, or remove `sflow: true`".to_owned();
                self.warning(at!["sflow", "sampling-rate"], message, "nothing is sampled", help);
            }
            None if !config.sflow.collectors.is_empty() && !self.findings.any_broken("interfaces") => {
                let help = "add `sflow: true` to the interfaces that are to be sampled".to_owned();
                self.warning(at!["sflow", "collectors"], "there are collectors, but no interface is sampled".into(), "", help);
            }
            _ => {}
        }
    }

    /// What is said of an interface that is not sampled is said in vain.
    fn sflow_interfaces(&mut self) {
        let config = &self.candidate.config;
        for name in config.sflow.interfaces.keys() {
            match config.interfaces.get(name) {
                Some(interface) if interface.sflow => {}
                Some(_) => {
                    let help = format!("set `sflow: true` on `{name}`, or remove this");
                    self.warning(at!["sflow", "interfaces", name.as_str()], format!("interface `{name}` is not sampled"), "", help);
                }
                None if self.findings.any_broken("interfaces") => {}
                None => {
                    let help = "one of `interfaces`".to_owned();
                    self.error(at!["sflow", "interfaces", name.as_str()], format!("there is no interface `{name}`"), "", help);
                }
            }
        }
    }

    fn sflow_agent(&mut self) {
        let sflow = &self.candidate.config.sflow;
        let longest = sflow.interfaces.values().filter_map(|other| other.header_bytes).fold(sflow.header_bytes, u16::max);
        let needed = u32::from(longest).saturating_add(AROUND_HEADER);
        let header_broken = self.findings.is_broken(at!["sflow", "header-bytes"]);
        if u32::from(sflow.datagram_bytes) < needed && !header_broken {
            let message = format!("a sample with {longest} header bytes does not fit a datagram of {}", sflow.datagram_bytes);
            self.error(at!["sflow", "datagram-bytes"], message, "", format!("at least {needed}, or fewer `header-bytes`"));
        }
    }

    fn collectors(&mut self) {
        let mut first = HashMap::new();
        let root = self.root;
        let written = root.value("sflow").and_then(|sflow| sflow.value("collectors")).map_or(0, |list| list.items().len());
        let collectors = &self.candidate.config.sflow.collectors;
        if written != collectors.len() {
            return; // One is broken, and indices do not match.
        }
        for (item, collector) in collectors.iter().enumerate() {
            if let Some(earlier) = first.insert((collector.address, collector.port), item) {
                let message = format!("the collector {} port {} is listed twice", collector.address, collector.port);
                let help = format!("the first is `sflow.collectors[{earlier}]`; keep one of them");
                self.error(at!["sflow", "collectors", item], message, "the second one", help);
            }
        }
    }

    fn workers(&mut self) {
        let workers = &self.candidate.config.workers;
        if self.findings.any_broken("workers.cores") {
            return;
        }
        if !workers.cores.is_empty() && workers.cores.len() != usize::from(workers.count) {
            let message = format!("{} workers on {} cores", workers.count, workers.cores.len());
            self.error(at!["workers", "count"], message, "", "leave out `count`: there is one worker for each core".into());
        }
        let mut first = HashMap::new();
        for (item, core) in workers.cores.iter().enumerate() {
            if let Some(earlier) = first.insert(core, item) {
                let help = format!("worker {earlier} has it already; two workers on one core only hinder each other");
                self.error(at!["workers", "cores", item], format!("core {core} is used twice"), "the second one", help);
            }
        }
    }
}
