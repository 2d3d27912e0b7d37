//! The third pass: what keys say about each other.
//!
//! Each rule is one function, and finds all its violations. A rule that compares two keys is
//! silent when one of them is broken, because the first pass has reported that already. Rules about
//! interfaces and links are in `links.rs`, about loopbacks and TAPs beside them in `named.rs`,
//! about sub-interfaces in `sub_interfaces.rs`,
//! about bonds in `bonds.rs`, about pseudowires in `pseudowires.rs`,
//! about VXLAN tunnels in `vxlan.rs`,
//! about the TAPs of Linux in `linux.rs`,
//! about the flow meter in `ipfix.rs`,
//! about addresses, routes and neighbours in `routing.rs`, about who reaches the API in
//! `access.rs`, about sFlow in `sflow.rs`, about the workers in `workers.rs`.
//!
//! Nothing here asks the running system: whether a device exists, has that many queues or can do
//! an MTU is for the engine, which also knows the interface indices that compact sFlow encoding
//! bounds.

mod access;
mod acl;
mod bonds;
mod bridges;
mod ipfix;
mod lcp;
mod links;
mod linux;
mod named;
mod pseudowires;
mod recursion;
mod routing;
mod sflow;
mod sub_interfaces;
mod vxlan;
mod workers;

pub use links::GENERATOR_MTU;

use crate::build::Candidate;
use crate::diagnostic::Place;
use crate::findings::{Findings, Remark, Segment};
use crate::model::Interface;
use crate::suggest::nearest;
use crate::tree::{Node, place_in};

/// Look at everything that keys say about each other.
pub(crate) fn check(root: &Node<'_>, candidate: &Candidate, findings: &mut Findings<'_>) {
    let mut rules = Rules {
        root,
        candidate,
        findings,
        comparisons: 200_000,
    };
    rules.links();
    rules.named();
    rules.sub_interfaces();
    rules.bonds();
    rules.vxlan_tunnels();
    rules.bridges();
    rules.routing();
    rules.access_lists();
    rules.sflow();
    rules.workers();
    rules.buffers();
    rules.ipfix();
    rules.linux();
    rules.lcp();
    rules.access();
}

struct Rules<'a, 't> {
    root: &'a Node<'a>,
    candidate: &'a Candidate,
    findings: &'a mut Findings<'t>,
    /// How many more names may be compared in the search for one that was meant.
    comparisons: usize,
}

impl Rules<'_, '_> {
    /// Report an error at the value of `path`, or at the last key on the way that exists.
    fn error(&mut self, path: &[Segment<'_>], message: String, label: &str, help: String) {
        if !self.findings.is_full() && !self.findings.is_broken(path) {
            self.findings
                .error(self.place(path), path, Remark::new(message, label, help));
        }
    }

    fn warning(&mut self, path: &[Segment<'_>], message: String, label: &str, help: String) {
        if !self.findings.is_broken(path) {
            self.findings
                .warning(self.place(path), path, Remark::new(message, label, help));
        }
    }

    fn place(&self, path: &[Segment<'_>]) -> Place {
        place_in(self.root, path)
    }

    /// Where a key of an interface stands: a sub-interface's under its parent.
    fn of_interface<'n>(&self, name: &'n str, key: &'static str) -> Vec<Segment<'n>> {
        let sub = self
            .candidate
            .config
            .interfaces
            .get(name)
            .and_then(Interface::sub_interface);
        let split = sub.and_then(|sub| {
            Some((
                name.get(..sub.parent.len())?,
                name.get(sub.parent.len() + 1..)?,
            ))
        });
        let section = if self
            .candidate
            .config
            .interfaces
            .get(name)
            .is_some_and(Interface::is_loopback)
        {
            "loopbacks"
        } else {
            "interfaces"
        };
        match split {
            Some((parent, id)) => vec![
                "interfaces".into(),
                parent.into(),
                "sub-interfaces".into(),
                id.into(),
                key.into(),
            ],
            None => vec![section.into(), name.into(), key.into()],
        }
    }

    /// An interface is named that the file does not have.
    fn interface_exists(&mut self, name: &str, path: &[Segment<'_>]) -> bool {
        let interfaces = &self.candidate.config.interfaces;
        if interfaces.contains_key(name) {
            return true;
        }
        if self.findings.is_full() {
            return false;
        }
        let affordable = self.comparisons.checked_sub(interfaces.len());
        let near = affordable.and_then(|_| nearest(name, interfaces.keys().map(String::as_str)));
        self.comparisons = affordable.unwrap_or(self.comparisons);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add `{name}` under `interfaces`, or name one that is there"),
        };
        if crate::value::interface_name(name).is_ok() {
            self.error(
                path,
                format!("there is no interface `{name}`"),
                "not under `interfaces`",
                help,
            );
        }
        false
    }
}
