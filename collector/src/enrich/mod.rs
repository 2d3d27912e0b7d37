//! Names, sampling rates, networks, countries and AS paths: what rows get beside what their records report.
//!
//! Sources of names, first match wins: the configuration, then files and URLs ([`sources`]), then what exporters announce
//! (option records 82/83 and sampling options, sFlow port names). Of AS numbers: the record, BMP, networks, mmdb files.
//! Tables learnt from exporters are bounded; entries beyond the limit are not learnt and are counted.

pub mod geo;
pub mod networks;
pub mod rules;
pub mod sources;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use weir_bmp::{BgpPath, Routes, routes::Segment};
use weir_flowfmt::sflow::reasons;

use crate::config::{Config, ExporterConfig, InterfaceConfig};
use crate::row::{Country, ExporterInfo, InterfaceInfo, Row, Text, Unknown};
use geo::Geo;
use networks::Networks;
use rules::Rules;
use sources::Overlay;

/// Interfaces, and rates, learnt from all exporters.
const MOST_LEARNT: usize = 1 << 17;
/// Bytes of a learnt name.
const MOST_NAME: usize = 128;
/// AS numbers of a path that a row gets.
const MOST_HOPS: usize = 64;
/// Communities that a row gets.
const MOST_COMMUNITIES: usize = 64;

/// What is known of an interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// The name that the exporter announced.
    announced: Text,
    /// Its description.
    pub description: Text,
    /// Bits a second; 0 unknown.
    pub speed: u64,
    /// Whether the configuration gave the name.
    pub configured: bool,
    /// What rows share.
    pub info: Arc<InterfaceInfo>,
}

#[derive(Debug, Default)]
struct Exporter {
    info: Arc<ExporterInfo>,
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
    /// What the configuration and sources say of exporters.
    settings: HashMap<String, ExporterConfig>,
    base: Overlay,
    overlays: BTreeMap<String, Overlay>,
    rules: Rules,
    networks: Networks,
    geo: Arc<Geo>,
    routes: Option<Arc<Routes>>,
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
            base: Overlay {
                exporters: config.exporters.clone(),
                networks: config.networks.clone(),
            },
            // The configuration was checked: rules that cannot be used are none.
            rules: Rules::new(config).0,
            ..Enricher::default()
        };
        enricher.rebuild_networks();
        enricher.rebuild();
        enricher
    }

    /// Uses mmdb files.
    pub fn set_geo(&mut self, geo: Arc<Geo>) {
        self.geo = geo;
    }

    /// Uses routes that BMP sessions keep.
    pub fn set_routes(&mut self, routes: Arc<Routes>) {
        self.routes = Some(routes);
    }

    /// Takes what a source has, instead of what it had before.
    pub fn set_overlay(&mut self, source: &str, overlay: Overlay) {
        if self.overlays.get(source) == Some(&overlay) {
            return;
        }
        let before = self.overlays.insert(source.to_owned(), overlay);
        let known = before.map(|before| before.networks).unwrap_or_default();
        let same = self
            .overlays
            .get(source)
            .is_some_and(|overlay| overlay.networks == known);
        if !same {
            self.rebuild_networks();
        }
        self.rebuild();
    }

    fn rebuild_networks(&mut self) {
        let lists = [&self.base].into_iter().chain(self.overlays.values());
        self.networks = Networks::new(lists.map(|overlay| &overlay.networks));
    }

    /// Makes settings and all shared names anew.
    fn rebuild(&mut self) {
        let lists = [&self.base].into_iter().chain(self.overlays.values());
        let mut settings: HashMap<String, ExporterConfig> = HashMap::new();
        for (ip, exporter) in lists.flat_map(|overlay| &overlay.exporters) {
            settings
                .entry(crate::account::exporter_name(*ip))
                .or_default()
                .complete(exporter);
        }
        self.settings = settings;
        for (address, settings) in &self.settings {
            let exporter = self.exporters.entry(address.clone()).or_default();
            for index in settings.interfaces.keys() {
                exporter.interfaces.entry(*index).or_default();
            }
        }
        for (address, exporter) in &mut self.exporters {
            let settings = self.settings.get(address);
            exporter.info = exporter_info(&self.rules, address, settings);
            for (index, interface) in &mut exporter.interfaces {
                let configured = settings.and_then(|settings| settings.interfaces.get(index));
                interface.complete(&self.rules, &exporter.info.name, configured);
            }
        }
    }

    fn exporter(&mut self, address: &str) -> Option<&mut Exporter> {
        if !self.exporters.contains_key(address) {
            if self.exporters.len() >= crate::account::MOST_EXPORTERS {
                return None;
            }
            let entry = Exporter {
                info: exporter_info(&self.rules, address, self.settings.get(address)),
                ..Exporter::default()
            };
            self.exporters.insert(address.to_owned(), entry);
        }
        self.exporters.get_mut(address)
    }

    /// A row of an exporter.
    pub(crate) fn row(
        &mut self,
        now: i64,
        exporter: &str,
        format: &Text,
        unknown: &Unknown,
    ) -> Row {
        let info = match self.exporter(exporter) {
            Some(entry) => Arc::clone(&entry.info),
            // The table is full (spoofed sources): the address is still stored, only names are not.
            None => Arc::new(ExporterInfo {
                address: exporter.into(),
                name: exporter.into(),
                ..ExporterInfo::default()
            }),
        };
        Row::new(now, info, Arc::clone(format), unknown)
    }

    /// The sampling rate that the configuration sets for an exporter.
    pub(crate) fn rate_override(&self, exporter: &str) -> Option<u32> {
        self.settings.get(exporter)?.sampling_rate
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
        if self.exporter(exporter).is_none() {
            self.refused += 1;
            return;
        }
        let Some(entry) = self.exporters.get_mut(exporter) else {
            return;
        };
        let known = entry.interfaces.contains_key(&index);
        if !known && full {
            self.refused += 1;
            return;
        }
        let interface = entry.interfaces.entry(index).or_default();
        let set = |place: &mut Text, value: Option<&str>| {
            let value = value
                .map(clean)
                .filter(|value| !value.is_empty() && **place != **value);
            if let Some(value) = &value {
                *place = value.as_str().into();
            }
            value.is_some()
        };
        let changed =
            set(&mut interface.announced, name) | set(&mut interface.description, description);
        interface.speed = speed.unwrap_or(interface.speed);
        if changed || !known {
            let settings = self.settings.get(exporter);
            let configured = settings.and_then(|settings| settings.interfaces.get(&index));
            interface.complete(&self.rules, &entry.info.name, configured);
        }
        self.learnt += usize::from(!known);
    }

    /// All that exporters announced.
    #[must_use]
    pub fn learnt(&self) -> Learnt {
        let mut learnt = Learnt::default();
        for (name, exporter) in &self.exporters {
            let known = exporter.interfaces.iter().filter(|(_, interface)| {
                !interface.announced.is_empty() || !interface.description.is_empty()
            });
            for (index, interface) in known {
                let (label, description) = (
                    interface.announced.to_string(),
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
            .map_or_else(|| exporter.to_owned(), |entry| entry.info.name.to_string())
    }

    /// What is known of an exporter.
    #[must_use]
    pub fn info(&self, exporter: &str) -> Option<Arc<ExporterInfo>> {
        self.exporters
            .get(exporter)
            .map(|entry| Arc::clone(&entry.info))
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

    /// Completes a row: names of its interfaces and networks, countries, AS numbers and the path.
    pub(crate) fn finish(&self, exporter: &str, row: &mut Row) {
        if let Some(entry) = self.exporters.get(exporter) {
            if let Some(interface) = entry.interfaces.get(&row.in_if) {
                row.in_port = Arc::clone(&interface.info);
            }
            if let Some(interface) = entry.interfaces.get(&row.out_if) {
                row.out_port = Arc::clone(&interface.info);
            }
        }
        if let Some(routes) = &self.routes {
            if row.dst_as == 0 || row.as_path.is_empty() {
                if let Some(path) = routes.longest(row.dst.to_canonical()) {
                    route(row, &path);
                }
            }
            if row.src_as == 0 {
                let path = routes.longest(row.src.to_canonical());
                row.src_as = path.map_or(0, |path| path.origin());
            }
        }
        if let Some(network) = self.networks.find(row.src) {
            row.src_net = Arc::clone(&network.info);
            row.src_country = network.country;
            row.src_as = first(row.src_as, network.asn);
        }
        if let Some(network) = self.networks.find(row.dst) {
            row.dst_net = Arc::clone(&network.info);
            row.dst_country = network.country;
            row.dst_as = first(row.dst_as, network.asn);
        }
        if !self.geo.is_empty() {
            let found = self.geo.find(row.src.to_canonical());
            row.src_as = first(row.src_as, found.asn);
            if row.src_country == Country::default() {
                row.src_country = found.country;
            }
            let found = self.geo.find(row.dst.to_canonical());
            row.dst_as = first(row.dst_as, found.asn);
            if row.dst_country == Country::default() {
                row.dst_country = found.country;
            }
        }
    }
}

/// The first number that is known.
fn first(a: u32, b: u32) -> u32 {
    if a == 0 { b } else { a }
}

/// Sets what the route to the destination has.
fn route(row: &mut Row, path: &BgpPath) {
    row.dst_as = first(row.dst_as, path.origin());
    if row.as_path.is_empty() {
        row.as_path = path_text(path.attributes.as_path.iter().map(Segment::numbers)).into();
    }
    if row.communities.is_empty() {
        row.communities = communities_text(path.attributes.communities.iter().copied()).into();
    }
}

/// An AS path as rows have it: numbers between spaces. Members of a set stand between spaces, too.
pub(crate) fn path_text<'a>(segments: impl Iterator<Item = &'a [u32]>) -> String {
    let mut text = String::new();
    for number in segments.flatten().take(MOST_HOPS) {
        let _ = write!(text, "{}{number}", if text.is_empty() { "" } else { " " });
    }
    text
}

/// Communities as rows have them: `a:b` between spaces.
pub(crate) fn communities_text(all: impl Iterator<Item = u32>) -> String {
    let mut text = String::new();
    for community in all.take(MOST_COMMUNITIES) {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{}:{}", community >> 16, community & 0xffff);
    }
    text
}

impl Interface {
    /// Makes what rows share anew.
    fn complete(&mut self, rules: &Rules, exporter: &str, configured: Option<&InterfaceConfig>) {
        let none = InterfaceConfig::default();
        let configured = configured.unwrap_or(&none);
        self.configured = !configured.name.is_empty();
        if !configured.description.is_empty() {
            self.description = configured.description.as_str().into();
        }
        if configured.speed != 0 {
            self.speed = configured.speed;
        }
        let mut info = InterfaceInfo {
            name: if self.configured {
                configured.name.as_str().into()
            } else {
                Arc::clone(&self.announced)
            },
            boundary: configured.boundary.as_str().into(),
            provider: configured.provider.as_str().into(),
            connectivity: configured.connectivity.as_str().into(),
        };
        rules.interface(exporter, &self.description, &mut info);
        self.info = Arc::new(info);
    }
}

fn exporter_info(
    rules: &Rules,
    address: &str,
    settings: Option<&ExporterConfig>,
) -> Arc<ExporterInfo> {
    let none = ExporterConfig::default();
    let settings = settings.unwrap_or(&none);
    let mut info = ExporterInfo {
        address: address.into(),
        name: settings.name.as_deref().unwrap_or(address).into(),
        role: settings.role.as_str().into(),
        site: settings.site.as_str().into(),
        tenant: settings.tenant.as_str().into(),
    };
    rules.exporter(&mut info);
    Arc::new(info)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_are_cleaned_and_bounded() {
        let mut enricher = Enricher::default();
        enricher.interface("192.0.2.1", 1, Some(" wan\u{0}\n "), None, None);
        enricher.interface("192.0.2.1", 2, Some(&"x".repeat(5000)), None, None);
        let interfaces = enricher.interfaces("192.0.2.1");
        assert_eq!(&*interfaces[&1].info.name, "wan");
        assert_eq!(interfaces[&2].info.name.len(), MOST_NAME);
        for index in 0..MOST_LEARNT as u32 + 100 {
            enricher.interface("192.0.2.2", index, Some("x"), None, None);
        }
        assert_eq!(enricher.learnt, MOST_LEARNT);
        assert_eq!(enricher.refused, 102);
    }
}
