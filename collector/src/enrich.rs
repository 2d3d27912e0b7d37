//! Names, sampling rates and networks: what rows get beside what their records report.
//!
//! Sources, first match wins: the configuration, then what exporters announce (option records 82/83 and sampling options,
//! sFlow port names). Tables learnt from exporters are bounded; entries beyond the limit are not learnt and are counted.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv6Addr;
use std::sync::Arc;

use ipnet::IpNet;
use weir_flowfmt::sflow::reasons;

use crate::config::Config;
use crate::row::{Row, Text, address};

/// Interfaces, and rates, learnt from all exporters.
const MOST_LEARNT: usize = 1 << 17;
/// Bytes of a learnt name.
const MOST_NAME: usize = 128;

/// What is known of an interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// Its name.
    pub name: Text,
    /// Its description.
    pub description: Text,
    /// Bits a second; 0 unknown.
    pub speed: u64,
    /// Whether the configuration gave the name.
    pub configured: bool,
}

#[derive(Clone, Debug)]
struct Exporter {
    address: Text,
    name: Text,
    rate: Option<u32>,
    interfaces: HashMap<u32, Interface>,
    /// Sampling rates by observation domain and selector.
    rates: HashMap<(u32, u64), u32>,
}

/// What exporters announced, as it is stored over restarts.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Learnt {
    /// Exporter, ifIndex, name, description, speed.
    interfaces: Vec<(String, u32, String, String, u64)>,
    /// Exporter, observation domain, selector, sampling rate.
    rates: Vec<(String, u32, u64, u32)>,
}

/// Everything that rows are completed with.
#[derive(Debug, Default)]
pub struct Enricher {
    exporters: HashMap<String, Exporter>,
    networks: Networks,
    dropped: HashMap<u32, Text>,
    learnt: usize,
    /// Names and rates that were not learnt because the tables are full.
    pub refused: u64,
}

impl Enricher {
    /// One with the names of a configuration.
    #[must_use]
    pub fn new(config: &Config) -> Enricher {
        let mut enricher = Enricher {
            networks: Networks::new(&config.networks),
            ..Enricher::default()
        };
        for (ip, exporter) in &config.exporters {
            let key = crate::account::exporter_name(*ip);
            let interfaces = exporter.interfaces.iter().map(|(index, name)| {
                (
                    *index,
                    Interface {
                        name: name.as_str().into(),
                        configured: true,
                        ..Interface::default()
                    },
                )
            });
            let entry = Exporter {
                address: key.as_str().into(),
                name: exporter.name.as_deref().unwrap_or(&key).into(),
                rate: exporter.sampling_rate,
                interfaces: interfaces.collect(),
                rates: HashMap::new(),
            };
            enricher.exporters.insert(key, entry);
        }
        enricher
    }

    fn exporter(&mut self, address: &str) -> Option<&mut Exporter> {
        if !self.exporters.contains_key(address) {
            if self.exporters.len() >= crate::account::MOST_EXPORTERS {
                return None;
            }
            let name: Text = address.into();
            let entry = Exporter {
                address: name.clone(),
                name,
                rate: None,
                interfaces: HashMap::new(),
                rates: HashMap::new(),
            };
            self.exporters.insert(address.to_owned(), entry);
        }
        self.exporters.get_mut(address)
    }

    /// A row of an exporter.
    pub(crate) fn row(&mut self, now: i64, exporter: &str, format: &Text, empty: &Text) -> Row {
        match self.exporter(exporter) {
            Some(entry) => {
                let mut row = Row::new(now, entry.address.clone(), format.clone(), empty);
                row.exporter_name = entry.name.clone();
                row
            }
            // The table is full (spoofed sources): the address is still stored, only names are not.
            None => Row::new(now, exporter.into(), format.clone(), empty),
        }
    }

    /// The sampling rate that the configuration sets for an exporter.
    pub(crate) fn rate_override(&self, exporter: &str) -> Option<u32> {
        self.exporters.get(exporter)?.rate
    }

    /// The sampling rate that an exporter announced for a selector of a domain; selector 0 is "of the domain".
    pub(crate) fn rate(&self, exporter: &str, domain: u32, selector: u64) -> Option<u32> {
        let rates = &self.exporters.get(exporter)?.rates;
        rates
            .get(&(domain, selector))
            .or_else(|| rates.get(&(domain, 0)))
            .copied()
    }

    /// Learns a sampling rate.
    pub(crate) fn learn_rate(&mut self, exporter: &str, domain: u32, selector: u64, rate: u32) {
        let full = self.learnt >= MOST_LEARNT;
        let Some(entry) = self.exporter(exporter) else {
            self.refused += 1;
            return;
        };
        if let Some(known) = entry.rates.get_mut(&(domain, selector)) {
            *known = rate;
        } else if full {
            self.refused += 1;
        } else {
            entry.rates.insert((domain, selector), rate);
            self.learnt += 1;
        }
    }

    /// Learns an interface's name, description or speed; what the configuration says stays.
    pub(crate) fn interface(
        &mut self,
        exporter: &str,
        index: u32,
        name: Option<&str>,
        description: Option<&str>,
        speed: Option<u64>,
    ) {
        let full = self.learnt >= MOST_LEARNT;
        let Some(entry) = self.exporter(exporter) else {
            self.refused += 1;
            return;
        };
        let known = entry.interfaces.contains_key(&index);
        if !known && full {
            self.refused += 1;
            return;
        }
        let interface = entry.interfaces.entry(index).or_default();
        let set = |place: &mut Text, value: Option<&str>| {
            if let Some(value) = value
                .map(clean)
                .filter(|value| !value.is_empty() && **place != **value)
            {
                *place = value.as_str().into();
            }
        };
        if !interface.configured {
            set(&mut interface.name, name);
        }
        set(&mut interface.description, description);
        interface.speed = speed.unwrap_or(interface.speed);
        self.learnt += usize::from(!known);
    }

    /// All that exporters announced.
    #[must_use]
    pub fn learnt(&self) -> Learnt {
        let mut learnt = Learnt::default();
        for (name, exporter) in &self.exporters {
            for (index, interface) in exporter
                .interfaces
                .iter()
                .filter(|(_, interface)| !interface.configured)
            {
                let (label, description) = (
                    interface.name.to_string(),
                    interface.description.to_string(),
                );
                learnt
                    .interfaces
                    .push((name.clone(), *index, label, description, interface.speed));
            }
            for ((domain, selector), rate) in &exporter.rates {
                learnt.rates.push((name.clone(), *domain, *selector, *rate));
            }
        }
        learnt
    }

    /// Takes back what was stored.
    pub fn restore(&mut self, learnt: &Learnt) {
        for (exporter, index, name, description, speed) in &learnt.interfaces {
            self.interface(
                exporter,
                *index,
                Some(name),
                Some(description),
                Some(*speed),
            );
        }
        for (exporter, domain, selector, rate) in &learnt.rates {
            self.learn_rate(exporter, *domain, *selector, *rate);
        }
    }

    /// Interfaces of an exporter, by index.
    #[must_use]
    pub fn interfaces(&self, exporter: &str) -> BTreeMap<u32, Interface> {
        let interfaces = self.exporters.get(exporter).map(|entry| &entry.interfaces);
        interfaces
            .into_iter()
            .flatten()
            .map(|(index, interface)| (*index, interface.clone()))
            .collect()
    }

    /// Name of an exporter; its address when it has none.
    #[must_use]
    pub fn name(&self, exporter: &str) -> String {
        self.exporters
            .get(exporter)
            .map_or_else(|| exporter.to_owned(), |entry| entry.name.to_string())
    }

    /// The outcome of a packet that was discarded for a reason by sFlow's code.
    pub(crate) fn dropped(&mut self, code: u32) -> Text {
        if let Some(known) = self.dropped.get(&code) {
            return known.clone();
        }
        let text: Text = match reasons::name(code) {
            Some(name) => format!("dropped: {name}"),
            None => format!("dropped: reason {code}"),
        }
        .into();
        if self.dropped.len() < 1024 {
            self.dropped.insert(code, text.clone());
        }
        text
    }

    /// Completes a row with the names of its interfaces and networks.
    pub(crate) fn finish(&self, exporter: &str, row: &mut Row) {
        if let Some(entry) = self.exporters.get(exporter) {
            if let Some(interface) = entry.interfaces.get(&row.in_if) {
                row.in_if_name = interface.name.clone();
            }
            if let Some(interface) = entry.interfaces.get(&row.out_if) {
                row.out_if_name = interface.name.clone();
            }
        }
        if let Some(net) = self.networks.find(row.src) {
            row.src_net = net.clone();
        }
        if let Some(net) = self.networks.find(row.dst) {
            row.dst_net = net.clone();
        }
    }
}

/// Printable characters only, and not too many: names come from outside.
fn clean(name: &str) -> String {
    name.chars()
        .filter(|letter| !letter.is_control())
        .take(MOST_NAME)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Prefixes with names; the longest one wins.
#[derive(Debug, Default)]
pub struct Networks {
    /// By length, longest first: network address to name.
    lengths: Vec<(u8, HashMap<u128, Text>)>,
}

impl Networks {
    fn new(networks: &BTreeMap<IpNet, String>) -> Networks {
        let mut lengths: BTreeMap<u8, HashMap<u128, Text>> = BTreeMap::new();
        for (net, name) in networks {
            // IPv4 is mapped into IPv6, as in the table.
            let (base, length) = match net {
                IpNet::V4(v4) => (address(v4.network().into()), v4.prefix_len() + 96),
                IpNet::V6(v6) => (v6.network(), v6.prefix_len()),
            };
            lengths
                .entry(length)
                .or_default()
                .insert(base.into(), Arc::from(name.as_str()));
        }
        Networks {
            lengths: lengths.into_iter().rev().collect(),
        }
    }

    fn find(&self, ip: Ipv6Addr) -> Option<&Text> {
        let bits = u128::from(ip);
        self.lengths.iter().find_map(|(length, names)| {
            let mask = u128::MAX.checked_shl(128 - u32::from(*length)).unwrap_or(0);
            names.get(&(bits & mask))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_names_an_address() {
        let of = |nets: &[(&str, &str)]| {
            let nets = nets
                .iter()
                .filter_map(|(net, name)| Some((net.parse().ok()?, (*name).to_owned())));
            Networks::new(&nets.collect())
        };
        let nets = of(&[
            ("10.0.0.0/8", "all"),
            ("10.1.0.0/16", "site"),
            ("2001:db8::/32", "six"),
            ("::/0", "rest"),
        ]);
        let find = |ip: &str| {
            let ip = ip.parse().map(address).ok()?;
            nets.find(ip).map(|text| text.to_string())
        };
        assert_eq!(find("10.1.2.3").as_deref(), Some("site"));
        assert_eq!(find("10.2.2.3").as_deref(), Some("all"));
        assert_eq!(find("2001:db8::1").as_deref(), Some("six"));
        assert_eq!(find("192.0.2.1").as_deref(), Some("rest"));
    }

    #[test]
    fn names_from_outside_are_cleaned_and_bounded() {
        let mut enricher = Enricher::default();
        enricher.interface("192.0.2.1", 1, Some(" wan\u{0}\n "), None, None);
        enricher.interface("192.0.2.1", 2, Some(&"x".repeat(5000)), None, None);
        let interfaces = enricher.interfaces("192.0.2.1");
        assert_eq!(&*interfaces[&1].name, "wan");
        assert_eq!(interfaces[&2].name.len(), MOST_NAME);
        for index in 0..MOST_LEARNT as u32 + 100 {
            enricher.interface("192.0.2.2", index, Some("x"), None, None);
        }
        assert_eq!(enricher.learnt, MOST_LEARNT);
        assert_eq!(enricher.refused, 102);
    }
}
