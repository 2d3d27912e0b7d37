//! Policy cases: routes with the verdict that they should get, run against the generated filters.
//!
//! A BIRD without sessions holds each case as a static route in a table of its own, with the attributes of the
//! case, and runs the production filters over it. It listens on a Unix socket in a folder of its own and has
//! neither kernel routes nor network access.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use serde::Deserialize;

use crate::bird::{REJECTED, name, policy};
use crate::birdc::{Control, large_communities, own_large};
use crate::model::{Neighbor, Peering};
use crate::policy::{Reason, Route, Verdict};
use crate::snapshot::Snapshot;
use crate::{Error, read};

/// How long BIRD may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Function value of the large community that marks an accepted route in a test run.
const ACCEPTED: u32 = 4_294_967_295;

/// A route and the verdict that it should get.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// The AS number of the neighbour that announces it.
    pub from: u32,
    /// The prefix.
    pub route: IpNet,
    /// The AS path, the neighbour first.
    pub path: Vec<u32>,
    /// Standard communities, as `65535:0`.
    #[serde(default)]
    pub communities: Vec<String>,
    /// `accept`, or the name of a reason.
    pub expect: String,
}

/// A case that got another verdict than it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The case, from 1 on.
    pub number: usize,
    /// What was expected.
    pub expected: String,
    /// What the filters said.
    pub found: String,
}

/// Reads a file with a list of cases.
///
/// # Errors
/// When the file cannot be read, or a case cannot be understood.
pub fn load(path: &Path) -> Result<Vec<Case>, Error> {
    serde_saphyr::from_str(&read(path)?).map_err(|error| Error::Format {
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

/// Runs cases; those that got another verdict.
///
/// # Errors
/// When a case names no neighbour, or BIRD cannot be run.
pub fn run(peering: &Peering, snapshot: &Snapshot, cases: &[Case]) -> Result<Vec<Failed>, Error> {
    let mut routes = Vec::new();
    let mut findings = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        match route(peering, case) {
            Ok(it) => routes.push(it),
            Err(reason) => findings.push(format!("case {}: {reason}", index + 1)),
        }
    }
    if !findings.is_empty() {
        return Err(Error::Findings(findings));
    }
    let verdicts = verdicts(peering, snapshot, &routes)?;
    let mut failed = Vec::new();
    for (index, (case, verdict)) in cases.iter().zip(&verdicts).enumerate() {
        let found = word(*verdict);
        if found != case.expect {
            failed.push(Failed {
                number: index + 1,
                expected: case.expect.clone(),
                found,
            });
        }
    }
    Ok(failed)
}

fn word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Accept { .. } => "accept".to_owned(),
        Verdict::Reject(reason) => reason.name().to_owned(),
    }
}

fn route<'a>(peering: &'a Peering, case: &Case) -> Result<(&'a Neighbor, Route), String> {
    let neighbor = peering
        .neighbors
        .iter()
        .find(|it| it.asn == case.from)
        .ok_or_else(|| format!("AS{} is no neighbour", case.from))?;
    let known = case.expect == "accept" || Reason::ALL.iter().any(|it| it.name() == case.expect);
    if !known {
        let names: Vec<&str> = Reason::ALL.iter().map(|it| it.name()).collect();
        return Err(format!(
            "expect: {:?} is neither accept nor one of {}",
            case.expect,
            names.join(", ")
        ));
    }
    let mut communities = Vec::new();
    for text in &case.communities {
        let parts = text
            .split_once(':')
            .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        communities.push(
            parts.ok_or_else(|| format!("communities: {text:?}: write two numbers, as 65535:0"))?,
        );
    }
    let route = Route {
        prefix: case.route.trunc(),
        path: case.path.clone(),
        communities,
    };
    Ok((neighbor, route))
}

/// What the generated filters say of routes, by a BIRD of its own.
///
/// # Errors
/// When BIRD is not installed, refuses the configuration, or does not answer.
pub fn verdicts(
    peering: &Peering,
    snapshot: &Snapshot,
    routes: &[(&Neighbor, Route)],
) -> Result<Vec<Verdict>, Error> {
    let mut text = format!("router id {};\n", peering.router_id);
    text += &policy(peering, snapshot);
    for neighbor in &peering.neighbors {
        let name = name(neighbor);
        for family in ["4", "6"] {
            let _ = writeln!(
                text,
                "filter verdict_{name}_{family} {{ if import_{name}_{family}() then \
                 bgp_large_community.add((OWN_ASN, {ACCEPTED}, 0)); accept; }}"
            );
        }
    }
    for (number, (_, route)) in routes.iter().enumerate() {
        test_route(&mut text, number, route);
    }
    let mut bird = Bird::start(&text)?;
    let mut verdicts = Vec::with_capacity(routes.len());
    for (number, (neighbor, route)) in routes.iter().enumerate() {
        let family = if route.prefix.addr().is_ipv4() {
            "4"
        } else {
            "6"
        };
        let answer = bird.control.ask(&format!(
            "show route table t{number} filter verdict_{}_{family} all",
            name(neighbor)
        ))?;
        verdicts.push(read_verdict(peering.asn, &answer)?);
    }
    Ok(verdicts)
}

fn test_route(text: &mut String, number: usize, route: &Route) {
    let family = if route.prefix.addr().is_ipv4() {
        "ipv4"
    } else {
        "ipv6"
    };
    let _ = write!(
        text,
        "{family} table t{number};\nprotocol static s{number} {{ {family} {{ table t{number}; import filter {{ accept; }}; }};\n  \
         route {} blackhole {{ bgp_path = +empty+;",
        route.prefix
    );
    for asn in route.path.iter().rev() {
        let _ = write!(text, " bgp_path.prepend({asn});");
    }
    for (high, low) in &route.communities {
        let _ = write!(text, " bgp_community.add(({high}, {low}));");
    }
    text.push_str(" };\n}\n");
}

fn read_verdict(asn: u32, answer: &str) -> Result<Verdict, Error> {
    let communities: Vec<(u32, u32, u32)> = answer
        .lines()
        .filter_map(|line| line.trim().strip_prefix("BGP.large_community:"))
        .flat_map(large_communities)
        .collect();
    if own_large(&communities, asn, ACCEPTED).is_some() {
        let local_pref = answer
            .lines()
            .find_map(|line| line.trim().strip_prefix("BGP.local_pref:"))
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(100);
        return Ok(Verdict::Accept { local_pref });
    }
    own_large(&communities, asn, REJECTED)
        .and_then(Reason::of)
        .map(Verdict::Reject)
        .ok_or_else(|| Error::Bird(format!("an answer without a verdict: {answer}")))
}

/// Checks a configuration by `bird -p`, in a process of its own.
///
/// # Errors
/// When BIRD is not installed or refuses it.
pub fn check(configuration: &str) -> Result<(), Error> {
    let folder = Folder::new()?;
    let file = folder.write("bird.conf", configuration)?;
    let output = Command::new(program())
        .arg("-p")
        .arg("-c")
        .arg(&file)
        .output()
        .map_err(|error| {
            Error::Bird(format!(
                "cannot run bird: {error}; install the package bird2"
            ))
        })?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Error::Bird(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ))
    }
}

/// `bird` is in /usr/sbin, which is not on every user's path.
fn program() -> PathBuf {
    let usual = Path::new("/usr/sbin/bird");
    if usual.exists() {
        usual.to_owned()
    } else {
        PathBuf::from("bird")
    }
}

/// Whether BIRD is installed.
#[must_use]
pub fn is_available() -> bool {
    Command::new(program()).arg("--version").output().is_ok()
}

/// A folder for temporary files that goes away with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Error> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("weir-peering-{}-{number}", std::process::id()));
        std::fs::create_dir(&path)
            .map(|()| Folder(path.clone()))
            .map_err(|source| Error::File {
                path: path.display().to_string(),
                source,
            })
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        std::fs::write(&path, text).map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A BIRD without sessions.
struct Bird {
    child: Child,
    control: Control,
    _folder: Folder,
}

impl Bird {
    fn start(configuration: &str) -> Result<Bird, Error> {
        check(configuration)?;
        let folder = Folder::new()?;
        let (file, socket) = (
            folder.write("bird.conf", configuration)?,
            folder.0.join("bird.ctl"),
        );
        let mut child = Command::new(program())
            .args(["-f", "-c"])
            .arg(&file)
            .arg("-s")
            .arg(&socket)
            .arg("-P")
            .arg(folder.0.join("bird.pid"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Error::Bird(error.to_string()))?;
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(control) = Control::open(&socket) {
                return Ok(Bird {
                    child,
                    control,
                    _folder: folder,
                });
            }
            if Instant::now() >= until || !matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::Bird("it does not start".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
