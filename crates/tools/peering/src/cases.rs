//! Policy cases: routes with the verdict that they should get, run against the generated filters.
//!
//! A BIRD without sessions holds each case as a static route in a table of its own, with the attributes of the
//! case, and runs the production filters over it. It listens on a Unix socket in a folder of its own and has
//! neither kernel routes nor network access.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use serde::Deserialize;

use crate::bird::{REJECTED, policy};
use crate::birdc::{Control, TableRoute, own_large};
use crate::model::{Neighbor, Peering};
use crate::policy::{Reason, Route, Verdict, community, large_community};
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
    /// Large communities, as `64500:1:2`.
    #[serde(default)]
    pub large_communities: Vec<String>,
    /// `accept`, or the name of a reason.
    pub expect: String,
    /// The local preference that an accepted route must get.
    pub local_pref: Option<u32>,
    /// Large communities that an accepted route must have, as `64500:0:2`.
    #[serde(default)]
    pub has: Vec<String>,
    /// Large communities that it must not have.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The exchange, where the neighbour is met at several.
    pub at: Option<String>,
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
    for (index, (case, found)) in cases.iter().zip(&verdicts).enumerate() {
        let mut wrong = |expected: String, found: String| {
            failed.push(Failed {
                number: index + 1,
                expected,
                found,
            });
        };
        let verdict = word(found.verdict);
        if verdict != case.expect {
            wrong(case.expect.clone(), verdict);
            continue;
        }
        if let (Some(wanted), Verdict::Accept { local_pref }) = (case.local_pref, found.verdict)
            && wanted != local_pref
        {
            wrong(format!("local preference {wanted}"), local_pref.to_string());
        }
        let is_there =
            |text: &&String| large_community(text).is_some_and(|it| found.large.contains(&it));
        if let Some(missing) = case.has.iter().find(|it| !is_there(it)) {
            let all = found.large.iter();
            let all: Vec<String> = all.map(|(a, b, c)| format!("{a}:{b}:{c}")).collect();
            wrong(format!("community {missing}"), all.join(" "));
        }
        if let Some(there) = case.lacks.iter().find(is_there) {
            wrong(
                format!("no community {there}"),
                format!("community {there}"),
            );
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
        .find(|it| it.asn == case.from && (case.at.is_none() || case.at == it.at))
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
    let mut route = Route::new(case.route, case.path.clone());
    for text in &case.communities {
        route.communities.push(
            community(text)
                .ok_or_else(|| format!("communities: {text:?}: write two numbers, as 65535:0"))?,
        );
    }
    for text in &case.large_communities {
        route.large.push(large_community(text).ok_or_else(|| {
            format!("large-communities: {text:?}: write three numbers, as 64500:1:2")
        })?);
    }
    let mut written = case.has.iter().chain(&case.lacks);
    if let Some(text) = written.find(|it| large_community(it).is_none()) {
        return Err(format!(
            "has, lacks: {text:?}: write three numbers, as 64500:0:2"
        ));
    }
    Ok((neighbor, route))
}

/// What the filters made of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The verdict.
    pub verdict: Verdict,
    /// The large communities of the route behind the filter.
    pub large: Vec<(u32, u32, u32)>,
}

/// What the generated filters say of routes, by a BIRD of its own.
///
/// # Errors
/// When BIRD is not installed, refuses the configuration, or does not answer.
pub fn verdicts(
    peering: &Peering,
    snapshot: &Snapshot,
    routes: &[(&Neighbor, Route)],
) -> Result<Vec<Found>, Error> {
    let mut text = format!("router id {};\n", peering.router_id);
    text += &policy(peering, snapshot);
    // BIRD 3 does not print attributes of a thousand bytes, so that long ones are removed behind the verdict.
    for neighbor in &peering.neighbors {
        let name = neighbor.name();
        for family in ["4", "6"] {
            let _ = writeln!(
                text,
                "filter verdict_{name}_{family} {{ if import_{name}_{family}() then \
                 bgp_large_community.add((OWN_ASN, {ACCEPTED}, 0)); \
                 bgp_community = -empty-; bgp_path = +empty+; accept; }}"
            );
        }
    }
    let mut tables: BTreeMap<(String, bool), Vec<TestTable>> = BTreeMap::new();
    for (number, (neighbor, route)) in routes.iter().enumerate() {
        let all = tables
            .entry((neighbor.name(), route.prefix.addr().is_ipv4()))
            .or_default();
        // A table has one route for a prefix.
        match all.iter_mut().find(|it| !it.contains_key(&route.prefix)) {
            Some(table) => drop(table.insert(route.prefix, number)),
            None => all.push(TestTable::from([(route.prefix, number)])),
        }
    }
    for ((name, is_ipv4), all) in &tables {
        for (index, table) in all.iter().enumerate() {
            let family = if *is_ipv4 { 4 } else { 6 };
            let name = format!("t_{name}_{family}_{index}");
            let _ = writeln!(
                text,
                "ipv{family} table {name};\nprotocol static s{name} {{ ipv{family} {{ table {name}; import filter {{ accept; }}; }};"
            );
            for number in table.values() {
                if let Some((_, route)) = routes.get(*number) {
                    test_route(&mut text, route);
                }
            }
            text.push_str("}\n");
        }
    }
    let mut bird = Bird::start(&text)?;
    if peering.data.rpki.servers.is_empty() {
        for is_ipv4 in [true, false] {
            let own = snapshot
                .vrps
                .iter()
                .filter(|it| it.prefix.addr().is_ipv4() == is_ipv4);
            bird.wait_for(if is_ipv4 { "roa_4" } else { "roa_6" }, own.count())?;
        }
        if text.contains("\naspa table aspas;\n") {
            bird.wait_for("aspas", snapshot.aspas.len())?;
        }
    }
    for ((name, is_ipv4), all) in &tables {
        for (index, table) in all.iter().enumerate() {
            let family = if *is_ipv4 { 4 } else { 6 };
            bird.wait_for(&format!("t_{name}_{family}_{index}"), table.len())?;
        }
    }
    let mut verdicts: Vec<Option<Found>> = vec![None; routes.len()];
    for ((name, is_ipv4), all) in &tables {
        for (index, table) in all.iter().enumerate() {
            let family = if *is_ipv4 { 4 } else { 6 };
            let (table_name, filter) = (
                format!("t_{name}_{family}_{index}"),
                format!("verdict_{name}_{family}"),
            );
            bird.control.each_route_of(&table_name, &filter, |route| {
                let slot = table
                    .get(&route.prefix)
                    .and_then(|it| verdicts.get_mut(*it));
                if let Some(slot) = slot {
                    *slot = read_verdict(peering.asn, route);
                }
            })?;
        }
    }
    let missing = |number: usize| Error::Bird(format!("no verdict on route {}", number + 1));
    verdicts
        .into_iter()
        .enumerate()
        .map(|(number, found)| found.ok_or_else(|| missing(number)))
        .collect()
}

/// The numbers of routes by prefix.
type TestTable = BTreeMap<IpNet, usize>;

fn test_route(text: &mut String, route: &Route) {
    let _ = write!(
        text,
        "  route {} blackhole {{ bgp_path = +empty+;",
        route.prefix
    );
    for asn in route.path.iter().rev() {
        let _ = write!(text, " bgp_path.prepend({asn});");
    }
    for (high, low) in &route.communities {
        let _ = write!(text, " bgp_community.add(({high}, {low}));");
    }
    for (global, function, value) in &route.large {
        let _ = write!(
            text,
            " bgp_large_community.add(({global}, {function}, {value}));"
        );
    }
    text.push_str(" };\n");
}

fn read_verdict(asn: u32, route: TableRoute) -> Option<Found> {
    let mut large = route.large;
    let verdict = if own_large(&large, asn, ACCEPTED).is_some() {
        large.retain(|it| (it.0, it.1) != (asn, ACCEPTED));
        let local_pref = route.local_pref.unwrap_or(100);
        Verdict::Accept { local_pref }
    } else {
        Verdict::Reject(own_large(&large, asn, REJECTED).and_then(Reason::of)?)
    };
    Some(Found { verdict, large })
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

/// `bird` is in /usr/sbin, which is not on every user's path. `WEIR_BIRD` names another one.
#[must_use]
pub fn program() -> PathBuf {
    if let Some(chosen) = std::env::var_os("WEIR_BIRD") {
        return PathBuf::from(chosen);
    }
    let usual = Path::new("/usr/sbin/bird");
    if usual.exists() {
        usual.to_owned()
    } else {
        PathBuf::from("bird")
    }
}

/// The version of the installed BIRD, major and minor.
#[must_use]
pub fn version() -> Option<(u32, u32)> {
    let output = Command::new(program()).arg("--version").output().ok()?;
    // `BIRD version 2.0.12`, on standard error or output.
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let mut numbers = text.split_whitespace().nth(2)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether BIRD is installed.
#[must_use]
pub fn is_available() -> bool {
    Command::new(program()).arg("--version").output().is_ok()
}

/// A folder for temporary files that goes away with this value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Folder, Error> {
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

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
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

impl Bird {
    /// Waits until a table has all its routes: BIRD 3 fills tables beside everything else.
    fn wait_for(&mut self, table: &str, routes: usize) -> Result<(), Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.control.count(table)?;
            if found >= routes {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Error::Bird(format!(
                    "table {table} has {found} of {routes} routes"
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Bird {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
