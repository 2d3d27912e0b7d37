//! The configuration file: YAML, every key optional, unknown keys refused with their place.

mod access;
mod names;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::Deserialize;

pub use access::{OidcConfig, ProxyConfig};
pub use names::{
    BmpConfig, ExporterConfig, ExporterRule, InterfaceConfig, InterfaceRule, NetworkConfig,
    RouterConfig, SourceConfig, TlsConfig,
};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}. Check the path and its permissions")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not the YAML that is expected.
    #[error("{path}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What and where.
        message: String,
    },
    /// Values that are well-formed and cannot be used; all of them at once.
    #[error("{path}: {}", .problems.join("; "))]
    Values {
        /// The file.
        path: PathBuf,
        /// Each with its key.
        problems: Vec<String>,
    },
}

/// The whole configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// UDP addresses to listen on; any takes sFlow, IPFIX and NetFlow.
    pub listen: Vec<SocketAddr>,
    /// TCP addresses to listen on for IPFIX (RFC 7011, 10.4).
    pub listen_tcp: Vec<SocketAddr>,
    /// IPFIX over TLS.
    pub tls: Option<TlsConfig>,
    /// Sockets and threads of each UDP address; datagrams of one source go to one of them.
    pub threads: usize,
    /// BMP sessions, for AS paths and communities.
    pub bmp: Option<BmpConfig>,
    /// Address of the console and the API.
    pub http: SocketAddr,
    /// Folder of all data.
    pub data: PathBuf,
    /// Bytes of each socket's receive buffer that the kernel is asked for.
    pub receive_buffer: usize,
    /// When data is deleted.
    pub retention: Retention,
    /// Exporters by address.
    pub exporters: BTreeMap<IpAddr, ExporterConfig>,
    /// Networks; the longest prefix wins.
    pub networks: BTreeMap<IpNet, NetworkConfig>,
    /// Rules that classify exporters by their names.
    pub exporter_rules: Vec<ExporterRule>,
    /// Rules that classify interfaces by names and descriptions.
    pub interface_rules: Vec<InterfaceRule>,
    /// mmdb files with countries and AS numbers; changed files are read anew.
    pub databases: Vec<PathBuf>,
    /// Files and URLs with further exporters and networks.
    pub sources: BTreeMap<String, SourceConfig>,
    /// Weir routers whose API is read, by the address of the exporter.
    pub routers: BTreeMap<IpAddr, RouterConfig>,
    /// Alert rules by name.
    pub alerts: BTreeMap<String, AlertConfig>,
    /// Webhooks that alerts are sent to.
    pub webhooks: Vec<String>,
    /// Alertmanagers that alerts are sent to.
    pub alertmanagers: Vec<String>,
    /// Addresses that alerts are sent to by syslog (RFC 5424 over UDP).
    pub syslog: Vec<SocketAddr>,
    /// Mail.
    pub email: Option<EmailConfig>,
    /// Limits of queries.
    pub query: QueryConfig,
    /// Requests from this machine (loopback) need no login while this is true and no user exists, and neither a proxy nor
    /// OpenID Connect is configured.
    pub open_on_loopback: bool,
    /// A proxy that logs users in.
    pub proxy: Option<ProxyConfig>,
    /// Login by OpenID Connect.
    pub oidc: Option<OidcConfig>,
}

impl Default for Config {
    fn default() -> Config {
        let any = |port| SocketAddr::from(([0_u16; 8], port));
        Config {
            listen: vec![any(6343), any(4739), any(2055)],
            listen_tcp: vec![any(4739)],
            tls: None,
            threads: 1,
            bmp: None,
            http: SocketAddr::from(([127, 0, 0, 1], 8080)),
            data: PathBuf::from("weir-collector-data"),
            receive_buffer: 32 << 20,
            retention: Retention::default(),
            exporters: BTreeMap::new(),
            networks: BTreeMap::new(),
            exporter_rules: Vec::new(),
            interface_rules: Vec::new(),
            databases: Vec::new(),
            sources: BTreeMap::new(),
            routers: BTreeMap::new(),
            alerts: BTreeMap::new(),
            webhooks: Vec::new(),
            alertmanagers: Vec::new(),
            syslog: Vec::new(),
            email: None,
            query: QueryConfig::default(),
            open_on_loopback: true,
            proxy: None,
            oidc: None,
        }
    }
}

/// When data is deleted: by age or by size, whichever comes first.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Days that flows are kept.
    pub days: u32,
    /// Gigabytes (10⁹ bytes) that all files of flows may have.
    pub gigabytes: f64,
    /// Days that totals (one row a minute, interface and protocol) are kept.
    pub totals_days: u32,
    /// Days after which totals have one row an hour instead of one a minute.
    pub minutes_days: u32,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            days: 30,
            gigabytes: 50.0,
            totals_days: 400,
            minutes_days: 45,
        }
    }
}

/// A threshold on live traffic.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertConfig {
    /// Which flows; empty is all.
    #[serde(default)]
    pub filter: String,
    /// The alert is raised per value of these columns; none is one alert for all.
    #[serde(default)]
    pub by: Vec<String>,
    /// `bits`, `packets` or `discards`, each per second.
    pub metric: AlertMetric,
    /// Raised above this.
    pub above: f64,
    /// Cleared below this; 70 % of `above` when left out.
    #[serde(default)]
    pub clear_below: Option<f64>,
    /// Seconds that the rate is measured over.
    #[serde(default = "window")]
    pub window: u32,
    /// Seconds that the rate must stay below `clear_below`.
    #[serde(default = "hold")]
    pub hold: u32,
    /// Mean deviations above the mean of the hour of the week that are unusual; `above` is then the least threshold.
    #[serde(default)]
    pub baseline: Option<f64>,
}

/// How mail is protected.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EmailTls {
    /// TLS from the first byte (port 465).
    Tls,
    /// TLS after STARTTLS (port 587), never without it.
    #[default]
    Starttls,
    /// None: for a relay on this machine.
    None,
}

/// Where mail goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmailConfig {
    /// The relay.
    pub server: String,
    /// Its port; the usual one of `tls` without it.
    #[serde(default)]
    pub port: Option<u16>,
    /// How mail is protected.
    #[serde(default)]
    pub tls: EmailTls,
    /// The user at the relay.
    #[serde(default)]
    pub user: Option<String>,
    /// A file with the user's password.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// The sender.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
}

fn window() -> u32 {
    3
}

fn hold() -> u32 {
    30
}

/// What an alert measures.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertMetric {
    /// IP bits a second.
    Bits,
    /// Packets a second.
    Packets,
    /// Notifications of discarded packets a second.
    Discards,
}

/// Limits of queries.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueryConfig {
    /// Megabytes of memory for all queries together.
    pub megabytes: usize,
    /// Seconds that a query may take.
    pub seconds: u64,
    /// Queries at the same time.
    pub concurrent: usize,
}

impl Default for QueryConfig {
    fn default() -> QueryConfig {
        QueryConfig {
            megabytes: 512,
            seconds: 30,
            concurrent: 4,
        }
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// When it cannot be read, is not the expected YAML, or has values that cannot be used.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        Config::parse(path, &text)
    }

    /// Reads and checks a text; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
        let config: Config = if text.trim().is_empty() {
            Config::default()
        } else {
            serde_saphyr::from_str(text).map_err(|error| ConfigError::Syntax {
                path: path.to_owned(),
                message: error.to_string(),
            })?
        };
        let problems = config.problems();
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Values {
                path: path.to_owned(),
                problems,
            })
        }
    }

    /// What is wrong with values that are well-formed.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.listen.is_empty() && self.listen_tcp.is_empty() {
            problems.push(
                "listen: no address to receive on. Add one, for example \"[::]:6343\"".to_owned(),
            );
        }
        if self.retention.days == 0 {
            problems.push(
                "retention.days: 0 would delete everything at once. Use 1 or more".to_owned(),
            );
        }
        if self.retention.gigabytes.is_nan() || self.retention.gigabytes <= 0.0 {
            problems.push("retention.gigabytes: must be above 0".to_owned());
        }
        if self.query.megabytes < 32 || self.query.seconds == 0 || self.query.concurrent == 0 {
            problems.push(
                "query: needs at least 32 megabytes, 1 second and 1 concurrent query".to_owned(),
            );
        }
        self.name_problems(&mut problems);
        self.access_problems(&mut problems);
        for (address, exporter) in &self.exporters {
            if exporter.sampling_rate == Some(0) {
                problems.push(format!(
                    "exporters.{address}.sampling_rate: 0 is no rate. Use 1 for \"not sampled\""
                ));
            }
        }
        for (name, alert) in &self.alerts {
            if alert.above.is_nan() || alert.above <= 0.0 {
                problems.push(format!("alerts.{name}.above: must be above 0"));
            }
            if alert
                .clear_below
                .is_some_and(|clear| clear.is_nan() || clear > alert.above)
            {
                problems.push(format!(
                    "alerts.{name}.clear_below: must not be above `above`"
                ));
            }
            if alert
                .baseline
                .is_some_and(|baseline| baseline.is_nan() || baseline <= 0.0)
            {
                problems.push(format!("alerts.{name}.baseline: must be above 0"));
            }
            if !(1..=60).contains(&alert.window) {
                problems.push(format!("alerts.{name}.window: must be 1 to 60 seconds"));
            }
            if let Err(error) = crate::query::filter::parse(&alert.filter) {
                problems.push(format!("alerts.{name}.filter: {error}"));
            }
            for column in &alert.by {
                if crate::query::columns::dimension(column).is_none() {
                    problems.push(format!("alerts.{name}.by: unknown column {column}"));
                }
            }
        }
        for (key, urls) in [
            ("webhooks", &self.webhooks),
            ("alertmanagers", &self.alertmanagers),
        ] {
            for url in urls {
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    problems.push(format!("{key}: {url} is neither http:// nor https://"));
                }
            }
        }
        if let Some(email) = &self.email {
            if email.to.is_empty() {
                problems.push("email.to: no recipient".to_owned());
            }
            for address in email.to.iter().chain([&email.from]) {
                if let Err(error) = address.parse::<lettre::Address>() {
                    problems.push(format!("email: {address:?}: {error}"));
                }
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("c.yaml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_a_configuration() {
        let config = parse("").expect("empty");
        assert_eq!(config.listen.len(), 3);
        assert!(config.http.ip().is_loopback());
    }

    #[test]
    fn a_file_is_read() {
        let config = parse(
            "listen: ['127.0.0.1:6343']\nexporters:\n  192.0.2.1: {name: edge1, sampling_rate: 1000, interfaces: {1: wan}}\n\
             networks: {203.0.113.0/24: customers}\n\
             alerts:\n  flood: {filter: 'Proto = udp', by: [DstAddr], metric: packets, above: 1000}\n",
        )
        .expect("good");
        let exporter = config.exporters.values().next().expect("one");
        assert_eq!(
            (
                exporter.name.as_deref(),
                exporter.interfaces[&1].name.as_str()
            ),
            (Some("edge1"), "wan")
        );
        assert_eq!(config.alerts["flood"].window, 3);
    }

    #[test]
    fn errors_name_place_and_key() {
        let unknown = parse("listne: []\n").expect_err("unknown key");
        assert!(
            unknown.contains("listne") && unknown.contains("line 1"),
            "{unknown}"
        );
        let values = parse("retention: {days: 0, gigabytes: -1}\nalerts:\n  a: {metric: bits, above: 0, filter: 'SrcAS >'}\n")
            .expect_err("values");
        for part in [
            "retention.days",
            "retention.gigabytes",
            "alerts.a.above",
            "alerts.a.filter",
        ] {
            assert!(values.contains(part), "{part} in {values}");
        }
    }
}
