//! The same samples, counters and reported drops through the kernel, for a daemon that listens there: hsflowd with its
//! modules `psample`, `vpp` and `dropmon`.
//!
//! Beside the agent's own datagrams, not instead of them: what the kernel lacks is reported in a sentence, once,
//! and nothing else changes. Samples and counters go by the router's own numbers here; the number among those of Linux is
//! reported with the counters, and the daemon selects by its configuration. An alert names an interface as Linux would. The channel is opened by the agent's thread
//! when it is asked for, and again every now and then while its namespace is not there, or a module is missing.

use std::time::{Duration, Instant};

use weir_netlink::netns::NetNs;
use weir_netlink::sampling::dropmon::Alert;
use weir_netlink::sampling::psample::Sample as Message;
use weir_netlink::sampling::usersock::{Counters, Status};
use weir_netlink::sampling::{Channel, Sent};

use super::InterfaceReport;
use super::indices::Indices;
use super::traps;
use crate::sampler::Sample;

/// A channel that could not be opened is tried again after the first time, one that lacks something after the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));
/// The router's state is reported this often.
const STATUS: Duration = Duration::from_secs(1);

/// What goes through the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPath {
    /// The group that samples of received packets carry.
    pub group: u32,
    /// The group that samples of sent packets carry.
    pub egress_group: u32,
    /// The network namespace that the daemon is in; the router's own when absent.
    pub namespace: Option<String>,
}

/// What went through the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Messages by kind, and those that it did not take.
    pub sent: Sent,
    /// Why not everything goes, in sentences.
    pub lacking: Vec<String>,
}

/// A dropped packet that is reported.
pub(super) struct Dropped<'a> {
    /// Where it came in, by the number that the daemon knows; 0 = nowhere.
    pub(super) input: u32,
    /// Who dropped it, and why.
    pub(super) node: &'a str,
    pub(super) reason: &'a str,
    /// The same in sFlow's numbers.
    pub(super) code: u16,
    /// Of the whole frame.
    pub(super) length: u32,
    pub(super) data: &'a [u8],
}

/// A channel, and the namespace that it is in.
struct Open {
    channel: Channel,
    namespace: Option<u64>,
}

/// The way through the kernel, if it is wanted.
pub(super) struct Kernel {
    wanted: Option<KernelPath>,
    open: Option<Open>,
    retry_at: Instant,
    status_at: Instant,
    started: Instant,
    /// Numbers of samples, by direction.
    sequences: [u32; 2],
    lacking: Vec<String>,
    /// What went through channels that are closed.
    before: Sent,
}

impl Kernel {
    pub(super) fn new(wanted: Option<KernelPath>, now: Instant) -> Kernel {
        Kernel {
            wanted,
            open: None,
            retry_at: now,
            status_at: now,
            started: now,
            sequences: [0; 2],
            lacking: Vec::new(),
            before: Sent::default(),
        }
    }

    /// Something else may be wanted. A listener that sees the groups' numbers or the time start again knows of a new start.
    pub(super) fn configure(&mut self, wanted: Option<&KernelPath>, now: Instant) {
        if self.wanted.as_ref() != wanted {
            let before = self.stats().sent;
            *self = Kernel {
                before,
                ..Kernel::new(wanted.cloned(), now)
            };
        }
    }

    /// What went so far, if it is wanted.
    pub(super) fn stats(&self) -> KernelStats {
        let mut sent = self.before;
        if let Some(open) = &self.open {
            sent += open.channel.sent;
        }
        KernelStats {
            sent,
            lacking: self.lacking.clone(),
        }
    }

    /// The same, unless nothing is to go this way.
    pub(super) fn reported(&self) -> Option<KernelStats> {
        self.wanted.as_ref().map(|_| self.stats())
    }

    /// Opens what is wanted, and tells the router's state. `drops` are samples that were lost on the way here.
    pub(super) fn tend(&mut self, drops: u32, now: Instant) {
        if self.wanted.is_none() || now < self.status_at {
            return;
        }
        self.status_at = now + STATUS;
        self.leave_what_is_gone(now);
        if (self.open.is_none() || !self.lacking.is_empty()) && now >= self.retry_at {
            self.open_channel();
            self.retry_at = now
                + if self.open.is_some() {
                    RETRY.1
                } else {
                    RETRY.0
                };
        }
        let uptime = now.duration_since(self.started).as_secs();
        let failed = self.stats().sent.samples_failed;
        if let Some(open) = &mut self.open {
            // Both wrap.
            open.channel.status(&Status {
                uptime: uptime as u32,
                drops: drops.wrapping_add(failed as u32),
            });
        }
    }

    /// A namespace that is no longer the one of its name has no listeners whom anybody could find.
    fn leave_what_is_gone(&mut self, now: Instant) {
        let Some(name) = self
            .wanted
            .as_ref()
            .and_then(|wanted| wanted.namespace.as_deref())
        else {
            return;
        };
        let current = || {
            NetNs::open_named(name)
                .and_then(|namespace| namespace.inode())
                .ok()
        };
        if let Some(open) = &self.open
            && open.namespace != current()
        {
            self.before += open.channel.sent;
            (self.open, self.retry_at) = (None, now);
        }
    }

    fn open_channel(&mut self) {
        let name = self
            .wanted
            .as_ref()
            .and_then(|wanted| wanted.namespace.as_deref());
        let opened = name
            .map_or_else(NetNs::current, NetNs::open_named)
            .and_then(|namespace| {
                let (channel, lacking) = Channel::open(&namespace)?;
                Ok((
                    Open {
                        channel,
                        namespace: name.map(|_| namespace.inode()).transpose()?,
                    },
                    lacking,
                ))
            });
        let lacking = match opened {
            // The same as before: listeners see no new start.
            Ok((_, lacking)) if self.open.is_some() && lacking == self.lacking => lacking,
            Ok((open, lacking)) => {
                if let Some(old) = self.open.replace(open) {
                    self.before += old.channel.sent;
                }
                lacking
            }
            Err(error) => vec![error.to_string()],
        };
        for sentence in lacking
            .iter()
            .filter(|sentence| !self.lacking.contains(sentence))
        {
            tracing::warn!("sFlow through the kernel: {sentence}");
        }
        if lacking.is_empty() && !self.lacking.is_empty() {
            tracing::info!("sFlow through the kernel: nothing is missing any more");
        }
        self.lacking = lacking;
    }

    /// A sample, with what became of its packet as far as that is a number of an interface.
    pub(super) fn sample(&mut self, sample: &Sample, input: u32, output: u32) {
        /// Both addresses and the type: the daemon takes them off without asking whether they are there.
        const ETHERNET: usize = 14;
        let (Some(open), Some(wanted)) = (&mut self.open, &self.wanted) else {
            return;
        };
        let Some(data) = sample.start().get(..usize::from(sample.kept).max(ETHERNET)) else {
            return;
        };
        // What goes out has no ticket; each direction has a sequence of its own, as listeners find gaps by group.
        let [ingress, egress] = &mut self.sequences;
        let (group, sequence) = if sample.ticket == 0 {
            (wanted.egress_group, egress)
        } else {
            (wanted.group, ingress)
        };
        *sequence = sequence.wrapping_add(1);
        open.channel.sample(&Message {
            input,
            output,
            original_length: sample.frame,
            group,
            sequence: *sequence,
            rate: sample.rate,
            data,
        });
    }

    /// A dropped packet that is reported.
    pub(super) fn drop_alert(&mut self, dropped: &Dropped<'_>) {
        /// The `EtherType` of IPv4: the daemon passes over alerts without one, and what it tells begins with Ethernet anyway.
        const IPV4: u16 = 0x0800;
        let Some(open) = &mut self.open else { return };
        let protocol = dropped
            .data
            .get(12..14)
            .and_then(|octets| octets.try_into().ok())
            .map_or(IPV4, u16::from_be_bytes);
        let names = traps::names(dropped.code, dropped.node, dropped.reason);
        open.channel.drop_alert(&Alert {
            input: dropped.input,
            group: &names.group,
            trap: &names.trap,
            reason: names.reason,
            original_length: dropped.length,
            protocol,
            data: dropped.data,
        });
    }

    /// An interface's counters.
    pub(super) fn counters(&mut self, report: &InterfaceReport, indices: &Indices) {
        let Some(open) = &mut self.open else { return };
        /// `ifType` of Ethernet and full duplex.
        const ETHERNET: u32 = 6;
        const FULL: u32 = 1;
        let sum = |a: u64, b: u64, c: u64| a.wrapping_add(b).wrapping_add(c);
        open.channel.counters(&Counters {
            name: &report.name,
            ifindex: report.ifindex,
            // Without it the daemon, as it is by default, keeps the interface's samples back.
            os_index: Some(indices.netdev(report.ifindex)),
            kind: if report.kind == 0 {
                ETHERNET
            } else {
                report.kind
            },
            speed: report.speed,
            direction: FULL,
            oper_up: report.oper_up,
            admin_up: report.admin_up,
            mac: report.mac,
            rx_octets: report.in_octets,
            tx_octets: report.out_octets,
            rx_packets: sum(report.in_unicast, report.in_multicast, report.in_broadcast),
            tx_packets: sum(
                report.out_unicast,
                report.out_multicast,
                report.out_broadcast,
            ),
            rx_broadcasts: report.in_broadcast,
            tx_broadcasts: report.out_broadcast,
            rx_multicasts: report.in_multicast,
            tx_multicasts: report.out_multicast,
            rx_discards: report.in_discards,
            tx_discards: report.out_discards,
            rx_errors: report.in_errors,
            tx_errors: report.out_errors,
        });
    }
}
