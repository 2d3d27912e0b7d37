//! Settings of the `peering:` section that belong to no neighbour.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

use crate::policy::Reason;
use crate::{Error, read};

/// The daemon that a configuration is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Daemon {
    /// BIRD from 2.0.12 on.
    #[default]
    #[serde(rename = "bird")]
    Bird,
    /// BIRD from 2.16 on, which has ASPA.
    #[serde(rename = "bird-2.16")]
    Bird216,
    /// FRR's bgpd, with its limits.
    #[serde(rename = "frr")]
    Frr,
    /// None: data, reports and outputs for other programs only.
    #[serde(rename = "none")]
    None,
}

/// How old a source may be.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct DataSource {
    /// A file, a URL, or a server that it comes from.
    pub from: Option<String>,
    /// IRR databases in their order, for bgpq4.
    pub sources: Vec<String>,
    /// Older data is reported.
    #[serde(deserialize_with = "duration")]
    pub max_age: Duration,
    /// Older data is used for nothing new: a change that needs it is refused.
    #[serde(deserialize_with = "duration")]
    pub expire: Duration,
}

impl Default for DataSource {
    fn default() -> Self {
        DataSource {
            from: None,
            sources: Vec::new(),
            max_age: Duration::from_secs(24 * 3600),
            expire: Duration::from_secs(14 * 24 * 3600),
        }
    }
}

/// An RTR server (RFC 8210).
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct RpkiServer {
    /// Its address.
    pub address: std::net::SocketAddr,
}

impl TryFrom<String> for RpkiServer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(|address| RpkiServer { address })
            .map_err(|_| format!("{text:?}: write ADDRESS:PORT, as 127.0.0.1:3323"))
    }
}

/// Validated ROA payloads.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct RpkiSource {
    /// A file or a URL, as rpki-client writes it.
    pub from: Option<String>,
    /// Servers that the daemon gets its payloads from. The snapshot's are for plans and tests then.
    pub servers: Vec<RpkiServer>,
    /// Local exceptions (SLURM, RFC 8416).
    pub slurm: Option<PathBuf>,
    /// Older data is reported.
    #[serde(deserialize_with = "duration")]
    pub max_age: Duration,
    /// Older data says "not found" of every route.
    #[serde(deserialize_with = "duration")]
    pub expire: Duration,
}

impl Default for RpkiSource {
    fn default() -> Self {
        RpkiSource {
            from: None,
            servers: Vec::new(),
            slurm: None,
            max_age: Duration::from_secs(6 * 3600),
            expire: Duration::from_secs(48 * 3600),
        }
    }
}

/// Public data.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Data {
    /// The folder of the snapshot.
    pub folder: Option<PathBuf>,
    /// PeeringDB.
    pub peeringdb: DataSource,
    /// Internet Routing Registries.
    pub irr: DataSource,
    /// RPKI.
    pub rpki: RpkiSource,
}

/// What happens with routes whose path contradicts ASPA objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AspaMode {
    /// They are not checked.
    #[default]
    Off,
    /// They are marked and accepted.
    Tag,
    /// They are rejected.
    Reject,
}

/// What filters check.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct PolicyOptions {
    /// Reasons that mark a route and do not reject it.
    pub shadow: Vec<Reason>,
    /// ASPA.
    pub aspa: AspaMode,
    /// Prefixes that are rejected with their more-specific ones.
    pub reject_prefixes: Vec<IpNet>,
    /// AS numbers that are rejected anywhere in a path.
    pub reject_asns: Vec<u32>,
    /// Networks that buy no transit, instead of the list of this version.
    pub transit_free_asns: Option<Vec<u32>>,
    /// Networks that are never behind route servers, besides those that say so in PeeringDB.
    pub never_via_route_servers: Vec<u32>,
    /// Local preferences that customers may choose by the community (own AS, 1, preference).
    pub customer_local_prefs: Option<Vec<u32>>,
    /// Whether a valid ROA of an AS in the AS-SET counts as a route object.
    pub roa_as_route_object: Option<bool>,
}

/// The running daemon, and what must hold after a change.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct ControlOptions {
    /// The configuration file that BIRD reads.
    pub config: PathBuf,
    /// BIRD's control socket.
    pub socket: PathBuf,
    /// Where Weir keeps what it applied.
    pub state: PathBuf,
    /// How long guards watch a change that is made with the router's.
    #[serde(deserialize_with = "duration")]
    pub guard: Duration,
    /// By how many percent imports may be below what the plan predicts.
    pub imports: u32,
    /// By how many percent the routes of the forwarding table may differ from those before.
    pub fib: u32,
    /// The percentage of a session's accepted routes that a change may reject.
    pub max_loss: u32,
    /// Replace a configuration file that Weir did not write.
    pub replace: bool,
}

impl Default for ControlOptions {
    fn default() -> Self {
        ControlOptions {
            config: PathBuf::from("/etc/bird/bird.conf"),
            socket: PathBuf::from("/run/bird/bird.ctl"),
            state: PathBuf::from("/var/lib/weir-peering"),
            guard: Duration::from_secs(10),
            imports: 20,
            fib: 20,
            max_loss: 20,
            replace: false,
        }
    }
}

/// How routes reach the kernel, and so the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Kernel {
    /// Whether they do.
    pub export: bool,
    /// The kernel's table; the main one when absent.
    pub table: Option<u32>,
    /// The most next hops of a prefix.
    pub merge_paths: u8,
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel {
            export: true,
            table: None,
            merge_paths: 1,
        }
    }
}

/// A BMP station.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Bmp {
    /// Its address.
    pub address: std::net::IpAddr,
    /// Its port.
    #[serde(default = "bmp_port")]
    pub port: u16,
}

const fn bmp_port() -> u16 {
    1790
}

/// Hand-written configuration of the daemon. File names as they are written; texts once they are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Include {
    /// Statements at the beginning of the file.
    pub global: Vec<PathBuf>,
    /// Statements of each import filter, before the checks.
    pub before_import: Vec<PathBuf>,
    /// Statements of each import filter, after them.
    pub after_import: Vec<PathBuf>,
    /// Statements of each export filter, before the checks.
    pub before_export: Vec<PathBuf>,
    /// Statements at the end of the file.
    pub end: Vec<PathBuf>,
    /// The texts of the five points.
    #[serde(skip)]
    pub texts: [String; 5],
}

impl Include {
    pub(super) fn read(&mut self, folder: &Path) -> Result<(), Error> {
        let points = [
            &self.global,
            &self.before_import,
            &self.after_import,
            &self.before_export,
            &self.end,
        ];
        for (files, text) in points.into_iter().zip(&mut self.texts) {
            text.clear();
            for file in files {
                text.push_str(&read(&folder.join(file))?);
                if !text.ends_with('\n') {
                    text.push('\n');
                }
            }
        }
        Ok(())
    }

    /// Whether filters have statements that the policy as a pure function does not have.
    #[must_use]
    pub fn changes_filters(&self) -> bool {
        self.texts.iter().take(4).any(|it| !it.trim().is_empty())
    }
}

/// A time as `30s`, `15m`, `24h` or `7d`.
fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || serde::de::Error::custom(format!("{text:?}: write 30s, 15m, 24h or 7d"));
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number = text.get(..text.len() - unit.len_utf8());
    let number: u32 = number.and_then(|it| it.parse().ok()).ok_or_else(wrong)?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}
