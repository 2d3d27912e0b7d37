//! Rules about the flow meter and its exporter.

use std::collections::HashMap;

use super::Rules;
use crate::findings::at;
use crate::ipfix::{IpfixTransport, IpfixVersion, RECORD_SETS};

/// Record sets that are distinguished.
const MOST_SETS: usize = 16;

impl Rules<'_, '_> {
    pub(super) fn ipfix(&mut self) {
        self.ipfix_sets();
        self.ipfix_interfaces();
        self.ipfix_collectors();
        self.ipfix_use();
    }

    /// Sets that are always there mean what they mean.
    fn ipfix_sets(&mut self) {
        let config = &self.candidate.config;
        for name in config
            .ipfix
            .records
            .keys()
            .filter(|name| RECORD_SETS.contains(&name.as_str()))
        {
            let help = "choose another name".to_owned();
            self.error(
                at!["ipfix", "records", name.as_str()],
                format!("the record set `{name}` is always there"),
                "",
                help,
            );
        }
    }

    fn ipfix_interfaces(&mut self) {
        let config = &self.candidate.config;
        for (name, interface) in &config.ipfix.interfaces {
            self.interface_exists(name, at!["ipfix", "interfaces", name.as_str()]);
            self.set_exists(
                &interface.records,
                at!["ipfix", "interfaces", name.as_str(), "records"],
            );
        }
        let sets = config.ipfix.metered_by().len();
        if sets > MOST_SETS {
            let message = format!("interfaces are metered by {sets} record sets");
            self.error(
                at!["ipfix", "interfaces"],
                message,
                "",
                format!(
                    "at most {MOST_SETS}; a set with several sampling rates counts once for each"
                ),
            );
        }
    }

    fn set_exists(&mut self, set: &str, path: &[crate::findings::Segment<'_>]) {
        let ipfix = &self.candidate.config.ipfix;
        if ipfix.has_set(set) || self.findings.any_broken("ipfix.records") {
            return;
        }
        let own = ipfix.records.keys().map(String::as_str);
        let all: Vec<String> = RECORD_SETS
            .into_iter()
            .chain(own)
            .take(20)
            .map(|name| format!("`{name}`"))
            .collect();
        self.error(
            path,
            format!("there is no record set `{set}`"),
            "",
            format!("one of {}", all.join(", ")),
        );
    }

    fn ipfix_collectors(&mut self) {
        let root = self.root;
        let written = root
            .value("ipfix")
            .and_then(|ipfix| ipfix.value("collectors"))
            .map_or(0, |list| list.items().len());
        let ipfix = &self.candidate.config.ipfix;
        if written != ipfix.collectors.len() {
            return; // One is broken, and indices do not match.
        }
        let mut first = HashMap::new();
        for (item, collector) in ipfix.collectors.iter().enumerate() {
            for (place, set) in collector.records.iter().enumerate() {
                self.set_exists(set, at!["ipfix", "collectors", item, "records", place]);
            }
            if let Some(earlier) = first.insert(
                (
                    &collector.address,
                    collector.port,
                    collector.transport as u8,
                ),
                item,
            ) {
                let help = format!("the first is `ipfix.collectors[{earlier}]`; keep one of them");
                self.error(
                    at!["ipfix", "collectors", item],
                    format!("the collector {collector} is listed twice"),
                    "the second one",
                    help,
                );
            }
            if collector.version == IpfixVersion::Netflow9
                && collector.transport != IpfixTransport::Udp
            {
                let message = "NetFlow version 9 goes over UDP only".to_owned();
                self.error(
                    at!["ipfix", "collectors", item, "version"],
                    message,
                    "",
                    "use `transport: udp`, or `version: ipfix`".into(),
                );
            }
            let conflicts = (&collector.namespace, &collector.dev, collector.host);
            self.collector_path("ipfix", item, collector.table.as_deref(), conflicts);
            if collector.table.is_some() && collector.transport != IpfixTransport::Udp {
                self.error(
                    at!["ipfix", "collectors", item, "table"],
                    "TCP and TLS leave through the host only".to_owned(),
                    "",
                    "leave out `table`, or use `transport: udp`".into(),
                );
            }
            self.collector_source("ipfix", item, &collector.address, collector.source);
            self.collector_address("ipfix", item, &collector.address, collector.dev.as_ref());
            self.ipfix_tls(item);
            self.ipfix_fits(item);
        }
    }

    fn ipfix_tls(&mut self, item: usize) {
        let Some(collector) = self.candidate.config.ipfix.collectors.get(item) else {
            return;
        };
        let path = at!["ipfix", "collectors", item, "tls"];
        match (&collector.tls, collector.transport) {
            (None, IpfixTransport::Tls) if !self.findings.any_broken("ipfix.collectors") => {
                let help =
                    "add `tls: {name: collector.example.net, ca: /etc/weir/ca.pem}`".to_owned();
                self.error(
                    path,
                    "`transport: tls` needs to know whom to trust".into(),
                    "",
                    help,
                );
            }
            (Some(_), IpfixTransport::Udp | IpfixTransport::Tcp) => {
                self.error(
                    path,
                    "`tls` is for `transport: tls`".into(),
                    "",
                    "set the transport, or remove this".into(),
                );
            }
            (Some(tls), _) if tls.certificate.is_some() != tls.key.is_some() => {
                let message =
                    "a certificate without its key, or a key without its certificate".to_owned();
                self.error(
                    path,
                    message,
                    "",
                    "give both `certificate` and `key`, or none".into(),
                );
            }
            _ => {}
        }
    }

    /// A message holds each template and a record of it.
    fn ipfix_fits(&mut self, item: usize) {
        let ipfix = &self.candidate.config.ipfix;
        let Some(collector) = ipfix.collectors.get(item) else {
            return;
        };
        let room = collector.message();
        for set in ipfix.sets_for(collector) {
            let (template, record) = ipfix.longest(set, collector.version);
            let needed = template.max(record);
            if needed > room {
                let what = if template > room {
                    "template"
                } else {
                    "record"
                };
                let message = format!(
                    "a {what} of the record set `{set}` does not fit an MTU of {}",
                    collector.mtu
                );
                let least = needed + u32::from(collector.mtu) - room;
                let help = format!("at least {least}, or a smaller set");
                self.error(at!["ipfix", "collectors", item, "mtu"], message, "", help);
                return;
            }
        }
    }

    /// Metering that nobody hears of, and collectors that hear nothing.
    fn ipfix_use(&mut self) {
        let ipfix = &self.candidate.config.ipfix;
        if self.findings.any_broken("ipfix") {
            return;
        }
        if ipfix.collectors.is_empty() && !ipfix.interfaces.is_empty() {
            let help = "add one, as `collectors: [{address: 192.0.2.9}]`".to_owned();
            self.warning(
                at!["ipfix", "interfaces"],
                "flows are metered, but there is no collector".into(),
                "records go nowhere",
                help,
            );
        }
        if !ipfix.collectors.is_empty() && ipfix.interfaces.is_empty() {
            let help = "name interfaces under `ipfix.interfaces`".to_owned();
            self.warning(
                at!["ipfix", "collectors"],
                "there are collectors, but no interface is metered".into(),
                "",
                help,
            );
        }
    }
}
