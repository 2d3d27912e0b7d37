//! The APIs of Weir routers: names of interfaces, applied configurations, and what the router counted as sent.
//!
//! One thread a router reads `/v1/interfaces`, `/v1/config/history`, `/v1/sflow` and `/v1/ipfix`. With the router's own counters
//! the way between router and collector is checked: everything sent since the first reading either arrived or is known to be
//! lost. An answer that is not understood, or none, is shown; what was read before stays.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::config::{ExporterConfig, InterfaceConfig, RouterConfig};
use crate::enrich::sources::{Overlay, get};

/// Interfaces of a router that are read.
const MOST_INTERFACES: usize = 1 << 16;
/// Applied configurations that are kept.
const MOST_REVISIONS: usize = 200;

/// An applied configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Its number.
    pub revision: u64,
    /// When it was applied, as RFC 3339 writes it.
    pub time: String,
    /// Who applied it.
    pub author: String,
    /// Why.
    pub comment: String,
}

/// What this collector received of an exporter by one format, in the units of its sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Arrived {
    /// Units that arrived.
    pub arrived: u64,
    /// Units lost by sequence numbers.
    pub lost: u64,
}

/// Whether everything that the router sent arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conservation {
    /// Units that the router sent since the first reading: datagrams of sFlow, records of IPFIX.
    pub sent: u64,
    /// Units that arrived since then, before and after the reading: both, as some are on the way.
    pub arrived: [u64; 2],
    /// Units lost since then by sequence numbers.
    pub lost: u64,
    /// Units that the router could not send.
    pub not_sent: u64,
    /// Whether sent = arrived + lost, within what was on the way.
    pub balanced: bool,
}

/// What is known of a router.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RouterState {
    /// When it was last read, seconds since 1970; 0 never.
    pub read: i64,
    /// Why the last reading failed.
    pub problem: Option<String>,
    /// Applied configurations, newest first.
    pub revisions: Vec<Revision>,
    /// The check of sFlow; absent while the router sends none to this collector.
    pub sflow: Option<Conservation>,
    /// The check of IPFIX.
    pub ipfix: Option<Conservation>,
    #[serde(skip)]
    first_sflow: Option<First>,
    #[serde(skip)]
    first_ipfix: Option<First>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    sent: u64,
    not_sent: u64,
}

/// The first reading: what was sent, and what had arrived before and after it.
type First = (Sent, Arrived, Arrived);

#[derive(Deserialize)]
struct Interface {
    index: u32,
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    speed: u64,
}

#[derive(Deserialize)]
struct Interfaces {
    interfaces: Vec<Interface>,
}

#[derive(Deserialize)]
struct History {
    revisions: Vec<Revision>,
}

#[derive(Default, Deserialize)]
struct Load {
    flows: u64,
}

/// A collector as both `/v1/sflow` and `/v1/ipfix` have it.
#[derive(Deserialize)]
struct Collector {
    #[serde(default)]
    address: Option<String>,
    port: u16,
    sent: serde_json::Value,
    #[serde(default)]
    not_sent: Load,
    #[serde(default)]
    errors: u64,
}

impl Collector {
    fn counts(&self) -> Sent {
        match self.sent.as_u64() {
            // Datagrams of sFlow.
            Some(sent) => Sent {
                sent,
                not_sent: self.errors,
            },
            // Records of IPFIX.
            None => Sent {
                sent: self.sent["flows"].as_u64().unwrap_or(0),
                not_sent: self.not_sent.flows,
            },
        }
    }

    /// Whether it is this collector by `address` or `address:port`.
    fn is(&self, name: &str) -> bool {
        let address = self.address.as_deref().unwrap_or("");
        address == name
            || format!("{address}:{}", self.port) == name
            || format!("[{address}]:{}", self.port) == name
    }
}

#[derive(Deserialize)]
struct Collectors {
    collectors: Vec<Collector>,
}

/// Of several collectors of a router the one that is this one; the only one if none is named.
fn own(collectors: &Collectors, name: Option<&str>) -> Option<Sent> {
    match (name, collectors.collectors.as_slice()) {
        (Some(name), all) => all.iter().find(|one| one.is(name)).map(Collector::counts),
        (None, [one]) => Some(one.counts()),
        (None, _) => None,
    }
}

/// What one reading found.
#[derive(Debug, Default)]
pub struct Reading {
    /// Names of its interfaces.
    pub overlay: Overlay,
    revisions: Vec<Revision>,
    sflow: Option<Sent>,
    ipfix: Option<Sent>,
}

/// Reads a router.
///
/// # Errors
/// With a text that says what failed.
pub fn read(
    client: &ureq::Agent,
    address: IpAddr,
    config: &RouterConfig,
) -> Result<Reading, String> {
    let base = config.url.trim_end_matches('/');
    let load = |path: &str| {
        get(
            client,
            &format!("{base}{path}"),
            config.token_file.as_deref(),
        )
    };
    let not_understood = |path: &str, error: serde_json::Error| format!("{base}{path}: {error}");
    let interfaces: Interfaces = serde_json::from_str(&load("/v1/interfaces")?)
        .map_err(|error| not_understood("/v1/interfaces", error))?;
    // A router without a history answers with an error: then it has no revisions.
    let history = load("/v1/config/history?limit=50")
        .ok()
        .and_then(|text| serde_json::from_str::<History>(&text).ok());
    let collectors = |path: &str| -> Result<Option<Sent>, String> {
        let Ok(text) = load(path) else {
            return Ok(None);
        };
        let found: Collectors =
            serde_json::from_str(&text).map_err(|error| not_understood(path, error))?;
        Ok(own(&found, config.collector.as_deref()))
    };
    let (sflow, ipfix) = (collectors("/v1/sflow")?, collectors("/v1/ipfix")?);
    let mut exporter = ExporterConfig::default();
    for interface in interfaces.interfaces.into_iter().take(MOST_INTERFACES) {
        let entry = InterfaceConfig {
            name: interface.name,
            description: interface.description.unwrap_or_default(),
            speed: interface.speed,
            ..InterfaceConfig::default()
        };
        exporter.interfaces.insert(interface.index, entry);
    }
    let mut overlay = Overlay::default();
    overlay.exporters.insert(address, exporter);
    let mut revisions = history.map(|history| history.revisions).unwrap_or_default();
    revisions.truncate(MOST_REVISIONS);
    Ok(Reading {
        overlay,
        revisions,
        sflow,
        ipfix,
    })
}

/// What arrived of both formats.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Of sFlow.
    pub sflow: Arrived,
    /// Of IPFIX.
    pub ipfix: Arrived,
}

impl RouterState {
    /// Enters a reading, with what had arrived before it began and some time after it ended.
    pub fn enter(&mut self, reading: Reading, before: Counts, after: Counts, now: i64) {
        self.read = now;
        self.problem = None;
        self.revisions = reading.revisions;
        self.sflow = conserve(
            &mut self.first_sflow,
            reading.sflow,
            before.sflow,
            after.sflow,
        );
        self.ipfix = conserve(
            &mut self.first_ipfix,
            reading.ipfix,
            before.ipfix,
            after.ipfix,
        );
    }
}

fn conserve(
    first: &mut Option<First>,
    sent: Option<Sent>,
    before: Arrived,
    after: Arrived,
) -> Option<Conservation> {
    let sent = sent?;
    // A router that started again counts from 0.
    if first.is_some_and(|(begin, ..)| sent.sent < begin.sent) {
        *first = None;
    }
    let Some((begin, first_before, first_after)) = *first else {
        *first = Some((sent, before, after));
        return None;
    };
    let sent_since = sent.sent.saturating_sub(begin.sent);
    let all = |counts: Arrived| counts.arrived + counts.lost;
    // What was on the way during the first or this reading may or may not be part of `sent_since`.
    let least = all(before).saturating_sub(all(first_after));
    let most = all(after).saturating_sub(all(first_before));
    Some(Conservation {
        sent: sent_since,
        arrived: [
            before.arrived.saturating_sub(first_after.arrived),
            after.arrived.saturating_sub(first_before.arrived),
        ],
        lost: after.lost.saturating_sub(first_before.lost),
        not_sent: sent.not_sent.saturating_sub(begin.not_sent),
        balanced: (least..=most).contains(&sent_since),
    })
}

/// States of all routers, by the address of the exporter.
pub type Routers = BTreeMap<IpAddr, RouterState>;

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(arrived: u64, lost: u64) -> Arrived {
        Arrived { arrived, lost }
    }

    #[test]
    fn sent_is_arrived_and_lost_within_what_is_on_the_way() {
        let sent = |sent| Some(Sent { sent, not_sent: 0 });
        let mut first = None;
        assert_eq!(
            conserve(&mut first, sent(100), arrived(40, 0), arrived(42, 0)),
            None
        );
        let check =
            conserve(&mut first, sent(200), arrived(130, 10), arrived(133, 10)).expect("check");
        assert_eq!((check.sent, check.lost), (100, 10));
        assert!(check.balanced, "{check:?}");
        // 20 of 200 never arrived, and no sequence number says so.
        let check =
            conserve(&mut first, sent(300), arrived(210, 10), arrived(213, 10)).expect("check");
        assert!(!check.balanced, "{check:?}");
        // A restart of the router begins anew.
        assert_eq!(
            conserve(&mut first, sent(5), arrived(220, 10), arrived(220, 10)),
            None
        );
        let check =
            conserve(&mut first, sent(15), arrived(230, 10), arrived(230, 10)).expect("check");
        assert!(check.balanced, "{check:?}");
    }

    #[test]
    fn collectors_of_both_formats_are_read() {
        let sflow: Collectors = serde_json::from_str(
            r#"{"collectors":[{"address":"192.0.2.9","port":6343,"sent":7,"errors":2,"host":"x"},{"address":"192.0.2.8","port":6343,"sent":9,"errors":0}]}"#,
        )
        .expect("sflow");
        assert_eq!(own(&sflow, None), None);
        assert_eq!(
            own(&sflow, Some("192.0.2.9:6343")),
            Some(Sent {
                sent: 7,
                not_sent: 2
            })
        );
        assert_eq!(
            own(&sflow, Some("192.0.2.8")),
            Some(Sent {
                sent: 9,
                not_sent: 0
            })
        );
        let ipfix: Collectors = serde_json::from_str(
            r#"{"collectors":[{"address":"192.0.2.9","port":4739,"errors":0,"sent":{"flows":5,"octets":1,"packets":1},"not_sent":{"flows":1,"octets":0,"packets":0}}]}"#,
        )
        .expect("ipfix");
        assert_eq!(
            own(&ipfix, None),
            Some(Sent {
                sent: 5,
                not_sent: 1
            })
        );
    }
}
