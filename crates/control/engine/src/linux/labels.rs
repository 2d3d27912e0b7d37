//! Incoming labels of the kernel and of zebra (LDP, BGP): the group that a label leads to.
//!
//! A path over a gateway swaps or takes off the label, as `weir_fib` does with labels of the configuration. A path without
//! gateway ends here: packets are looked up in the table of the VRF device that the path names (L3VPN), or in the default
//! one when it names the loopback.

use weir_control::{LabelRoute, LabelUpdate, RouteSource, Target, UpdateError};
use weir_fib::{LabelEntry as Entry, Payload, TtlMode};
use weir_linux::protocol::Protocols;

use crate::control::Control;
use crate::labels::WaitingLabel;

/// The first label that is not reserved (RFC 7274), and the first beyond 20 bits.
const LABELS: std::ops::Range<u32> = 16..1 << 20;

impl Control {
    /// Carries out changes of a source's labels. One that is refused leaves no older one behind.
    pub(crate) fn update_labels(&mut self, updates: &[LabelUpdate]) {
        for update in updates {
            let result = match update {
                LabelUpdate::Set(route) => self.set_source_label(route),
                LabelUpdate::Remove { label, source } => {
                    self.remove_label_of(*label, *source);
                    Ok(())
                }
            };
            match result {
                Ok(()) => self.linux.counters.applied += 1,
                Err(error) => {
                    let label = update.label();
                    self.linux.refuse(format_args!("label {label}"), error);
                }
            }
        }
        self.settle_or_log();
    }

    fn set_source_label(&mut self, route: &LabelRoute) -> Result<(), UpdateError> {
        if !LABELS.contains(&route.label) {
            return Err(UpdateError::BadLabel(route.label));
        }
        match self.group_of_label(route) {
            Ok(group) => {
                let mode = if route.is_pipe {
                    TtlMode::Pipe
                } else {
                    TtlMode::Uniform
                };
                self.waiting_labels.push(WaitingLabel {
                    label: route.label,
                    source: route.source,
                    protocol: route.protocol,
                    entry: Some(Entry::new(group, mode, Payload::Either)),
                });
                Ok(())
            }
            Err(error) => {
                self.remove_label_of(route.label, route.source);
                Err(error)
            }
        }
    }

    /// The group that a label leads to, with one user more.
    fn group_of_label(&mut self, route: &LabelRoute) -> Result<u32, UpdateError> {
        let hops = match &*route.target {
            Target::Object(object) => return self.group_of_known_object(*object),
            Target::Paths(hops) => &hops[..],
            _ => &[],
        };
        if let [hop] = hops
            && hop.gateway.is_none()
            && hop.labels.is_empty()
        {
            let table = self.table_of_link(hop.interface)?;
            let end = self.lookup_end(table);
            return Ok(self.single(end));
        }
        if let Some(hop) = hops.iter().find(|hop| hop.gateway.is_none()) {
            return Err(UpdateError::NoInterface(hop.interface));
        }
        self.group_of_target(&route.target)
    }

    /// The place of the table that a device of Linux stands for.
    fn table_of_link(&mut self, link: u32) -> Result<u32, UpdateError> {
        if let Some(number) = self.linux.vrf_links.get(&link) {
            return self.place_of_number(*number);
        }
        if self.linux.loopback == Some(link) {
            return Ok(0);
        }
        // A link whose route came before it, such as a VRF device that is being made.
        self.linux.lacks_link = true;
        Err(UpdateError::NoInterface(link))
    }

    /// Removes the labels that a source has not set again, of these protocols when some are named.
    pub(super) fn remove_stale_labels(
        &mut self,
        source: RouteSource,
        protocols: Option<Protocols>,
    ) {
        for (label, protocol) in self.labels.stale(source) {
            if protocols.is_none_or(|protocols| protocols.contains(protocol)) {
                self.linux.counters.stale += 1;
                self.remove_label_of(label, source);
            }
        }
        self.settle_or_log();
    }
}
