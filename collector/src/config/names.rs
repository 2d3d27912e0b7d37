//! The parts of the configuration that say what exporters, interfaces and networks are, and where that comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Config;
use crate::enrich::rules::Rules;

/// IPFIX over TLS (RFC 7011, 11).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// Where to listen.
    pub listen: Vec<SocketAddr>,
    /// The collector's certificate with its chain, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// Certificates that those of exporters must be signed by, PEM; without it exporters need none.
    #[serde(default)]
    pub client_ca: Option<PathBuf>,
}

/// BMP sessions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BmpConfig {
    /// Where routers connect to.
    pub listen: SocketAddr,
    /// Paths that are kept at most.
    #[serde(default = "paths")]
    pub paths: usize,
}

fn paths() -> usize {
    4_000_000
}

/// What is known of an exporter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExporterConfig {
    /// Its name.
    pub name: Option<String>,
    /// Its role.
    pub role: String,
    /// Where it is.
    pub site: String,
    /// Whose it is.
    pub tenant: String,
    /// Used instead of any rate that the exporter announces.
    pub sampling_rate: Option<u32>,
    /// Interfaces by ifIndex.
    pub interfaces: BTreeMap<u32, InterfaceConfig>,
}

impl ExporterConfig {
    /// Takes what is missing from another one.
    pub fn complete(&mut self, other: &ExporterConfig) {
        let text = |own: &mut String, other: &String| {
            if own.is_empty() {
                own.clone_from(other);
            }
        };
        if self.name.is_none() {
            self.name.clone_from(&other.name);
        }
        text(&mut self.role, &other.role);
        text(&mut self.site, &other.site);
        text(&mut self.tenant, &other.tenant);
        self.sampling_rate = self.sampling_rate.or(other.sampling_rate);
        for (index, theirs) in &other.interfaces {
            let own = self.interfaces.entry(*index).or_default();
            text(&mut own.name, &theirs.name);
            text(&mut own.description, &theirs.description);
            text(&mut own.boundary, &theirs.boundary);
            text(&mut own.provider, &theirs.provider);
            text(&mut own.connectivity, &theirs.connectivity);
            if own.speed == 0 {
                own.speed = theirs.speed;
            }
        }
    }
}

/// What is known of an interface; a text alone is its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// `external` or `internal`.
    pub boundary: String,
    /// The network behind it.
    pub provider: String,
    /// For example `transit` or `ix`.
    pub connectivity: String,
    /// Bits a second; 0 unknown.
    pub speed: u64,
}

/// What is known of a network; a text alone is its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Where it is.
    pub site: String,
    /// Whose it is.
    pub tenant: String,
    /// Its country, two letters.
    pub country: String,
    /// Its AS number; 0 unknown.
    pub asn: u32,
}

impl From<&str> for InterfaceConfig {
    fn from(name: &str) -> InterfaceConfig {
        InterfaceConfig {
            name: name.to_owned(),
            ..InterfaceConfig::default()
        }
    }
}

impl From<&str> for NetworkConfig {
    fn from(name: &str) -> NetworkConfig {
        NetworkConfig {
            name: name.to_owned(),
            ..NetworkConfig::default()
        }
    }
}

/// The long form of [`InterfaceConfig`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "InterfaceConfig")]
struct InterfaceFields {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    boundary: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    connectivity: String,
    #[serde(default)]
    speed: u64,
}

/// The long form of [`NetworkConfig`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields, remote = "NetworkConfig")]
struct NetworkFields {
    #[serde(default)]
    name: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    site: String,
    #[serde(default)]
    tenant: String,
    #[serde(default)]
    country: String,
    #[serde(default)]
    asn: u32,
}

/// Reads either a text or a map.
struct TextOrMap<T>(PhantomData<T>, &'static str);

/// What a map of fields becomes.
trait Fields: Sized + for<'a> From<&'a str> {
    fn fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl Fields for InterfaceConfig {
    fn fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        InterfaceFields::deserialize(deserializer)
    }
}

impl Fields for NetworkConfig {
    fn fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NetworkFields::deserialize(deserializer)
    }
}

impl<'de, T: Fields> Visitor<'de> for TextOrMap<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::fields(MapAccessDeserializer::new(map))
    }
}

impl<'de> Deserialize<'de> for InterfaceConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMap(
            PhantomData,
            "a name, or name, description, boundary, provider, connectivity, speed",
        ))
    }
}

impl<'de> Deserialize<'de> for NetworkConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMap(
            PhantomData,
            "a name, or name, role, site, tenant, country, asn",
        ))
    }
}

/// A rule that classifies exporters.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExporterRule {
    /// Regular expression that the name matches; empty matches all.
    pub name: String,
    /// The role that it sets.
    pub role: String,
    /// The site that it sets.
    pub site: String,
    /// The tenant that it sets.
    pub tenant: String,
}

/// A rule that classifies interfaces.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterfaceRule {
    /// Regular expression that the exporter's name matches; empty matches all.
    pub exporter: String,
    /// The same for the name of the interface.
    pub name: String,
    /// The same for its description.
    pub description: String,
    /// The boundary that it sets: `external` or `internal`.
    pub boundary: String,
    /// The provider that it sets.
    pub provider: String,
    /// The connectivity that it sets.
    pub connectivity: String,
}

/// A file or URL with `exporters` and `networks` as the configuration has them, in YAML or JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The file.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The URL.
    #[serde(default)]
    pub url: Option<String>,
    /// A file with the token that is sent to the URL.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Seconds between two readings.
    #[serde(default = "interval")]
    pub interval: u64,
}

fn interval() -> u64 {
    300
}

/// The API of a Weir router.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterConfig {
    /// Its URL.
    pub url: String,
    /// A file with the token.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Seconds between two readings.
    #[serde(default = "router_interval")]
    pub interval: u64,
    /// The address of this collector as the router knows it, if the router has several collectors.
    #[serde(default)]
    pub collector: Option<String>,
}

fn router_interval() -> u64 {
    30
}

fn file_problem(problems: &mut Vec<String>, key: &str, path: &Path) {
    if let Err(error) = std::fs::metadata(path) {
        problems.push(format!("{key}: {}: {error}", path.display()));
    }
}

fn url_problem(problems: &mut Vec<String>, key: &str, url: &str) {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        problems.push(format!("{key}: {url} is neither http:// nor https://"));
    }
}

impl Config {
    /// What is wrong with names and where they come from.
    pub(super) fn name_problems(&self, problems: &mut Vec<String>) {
        problems.extend(Rules::new(self).1);
        for (address, exporter) in &self.exporters {
            for (index, interface) in &exporter.interfaces {
                if !matches!(interface.boundary.as_str(), "" | "external" | "internal") {
                    problems.push(format!(
                        "exporters.{address}.interfaces.{index}.boundary: {:?} is neither external nor internal",
                        interface.boundary
                    ));
                }
            }
        }
        for (net, network) in &self.networks {
            let country = &network.country;
            if !country.is_empty() && crate::row::Country::new(country).code().is_empty() {
                problems.push(format!(
                    "networks.{net}.country: {country:?} is no code of two letters"
                ));
            }
        }
        for (name, source) in &self.sources {
            match (&source.file, &source.url) {
                (Some(_), None) => {}
                (None, Some(url)) => url_problem(problems, &format!("sources.{name}.url"), url),
                _ => problems.push(format!("sources.{name}: needs either file or url")),
            }
            if source.interval == 0 {
                problems.push(format!(
                    "sources.{name}.interval: must be at least 1 second"
                ));
            }
        }
        for (address, router) in &self.routers {
            url_problem(problems, &format!("routers.{address}.url"), &router.url);
            if router.interval == 0 {
                problems.push(format!(
                    "routers.{address}.interval: must be at least 1 second"
                ));
            }
        }
        if let Some(tls) = &self.tls {
            file_problem(problems, "tls.certificate", &tls.certificate);
            file_problem(problems, "tls.key", &tls.key);
            if let Some(path) = &tls.client_ca {
                file_problem(problems, "tls.client_ca", path);
            }
        }
        if !(1..=64).contains(&self.threads) {
            problems.push("threads: must be 1 to 64".to_owned());
        }
    }
}
