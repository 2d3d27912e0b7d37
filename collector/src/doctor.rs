//! `weir-collector doctor`: what on this machine would keep the collector from working well.
//!
//! Nothing is changed. Ports are tried by binding them for a moment, the data folder by writing a file into it.

use std::fmt;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::config::Config;
use crate::enrich::geo::Geo;
use crate::enrich::sources;
use crate::receive::Transport;
use crate::store::state::StateDb;

/// Share of the disk that should stay free.
const LOW_SPACE: f64 = 0.05;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether something will not work.
    pub is_problem: bool,
    /// What was examined.
    pub subject: String,
    /// What was found, and what to do.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_problem {
            "PROBLEM"
        } else {
            "ok     "
        };
        write!(f, "{mark} {}: {}", self.subject, self.text)
    }
}

/// Examines the machine for a configuration.
#[must_use]
pub fn examine(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |subject: &str, result: Result<String, String>| {
        let (is_problem, text) = match result {
            Ok(text) => (false, text),
            Err(text) => (true, text),
        };
        findings.push(Finding {
            is_problem,
            subject: subject.to_owned(),
            text,
        });
    };
    for address in &config.listen {
        let bound = UdpSocket::bind(address).map(|_| "can be bound".to_owned());
        add(
            &format!("udp {address}"),
            bound.map_err(|error| in_use(&error)),
        );
    }
    let tls = config.tls.iter().flat_map(|tls| &tls.listen);
    let bmp = config.bmp.iter().map(|bmp| &bmp.listen);
    for address in config
        .listen_tcp
        .iter()
        .chain(tls)
        .chain(bmp)
        .chain([&config.http])
    {
        let bound = TcpListener::bind(address).map(|_| "can be bound".to_owned());
        add(
            &format!("tcp {address}"),
            bound.map_err(|error| in_use(&error)),
        );
    }
    add("receive buffer", receive_buffer(config.receive_buffer));
    add("data folder", folder(&config.data));
    add("space", space(config));
    add("state database", state(&config.data));
    if let Some(tls) = &config.tls {
        let read = Transport::tls(tls).map(|_| "certificates can be used".to_owned());
        add("tls", read.map_err(|error| error.to_string()));
    }
    let geo = Geo::new(&config.databases);
    for file in geo.status() {
        let result = match &file.problem {
            None => Ok(format!("{}, build {}", file.kind, file.built)),
            Some(problem) => Err(problem.clone()),
        };
        add(&file.path.display().to_string(), result);
    }
    let client = sources::client();
    for (name, source) in &config.sources {
        let read = sources::read(&client, source).map(|overlay| {
            format!(
                "{} exporters, {} networks",
                overlay.exporters.len(),
                overlay.networks.len()
            )
        });
        add(&format!("source {name}"), read);
    }
    for (address, router) in &config.routers {
        let read =
            crate::routers::read(&client, *address, router).map(|_| "its API answers".to_owned());
        add(&format!("router {address}"), read);
    }
    if !config.http.ip().is_loopback() && config.proxy.is_none() {
        add(
            "console",
            Ok(format!(
                "{} is reached without TLS: put a proxy in front of it",
                config.http
            )),
        );
    }
    findings
}

fn in_use(error: &std::io::Error) -> String {
    format!(
        "{error}. If the collector runs already, that is why; else choose another port, or end the program that has it"
    )
}

/// What the kernel grants without the right to force more.
fn receive_buffer(wanted: usize) -> Result<String, String> {
    let granted = std::fs::read_to_string("/proc/sys/net/core/rmem_max")
        .ok()
        .and_then(|text| text.trim().parse::<usize>().ok());
    match granted {
        Some(granted) if granted >= wanted => Ok(format!("net.core.rmem_max is {granted}")),
        Some(granted) if nix::unistd::geteuid().is_root() => Ok(format!(
            "net.core.rmem_max is {granted}, below {wanted}; as root the collector may exceed it"
        )),
        Some(granted) => Err(format!(
            "net.core.rmem_max is {granted}, below the {wanted} of receive_buffer: bursts will be dropped. Run: sysctl -w net.core.rmem_max={wanted}"
        )),
        None => Ok("net.core.rmem_max cannot be read".to_owned()),
    }
}

fn folder(path: &Path) -> Result<String, String> {
    std::fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let probe = path.join(format!("doctor-{}.tmp", std::process::id()));
    let written = std::fs::write(&probe, b"x")
        .and_then(|()| std::fs::File::open(&probe)?.sync_all())
        .map_err(|error| format!("{}: {error}", path.display()));
    let _ = std::fs::remove_file(&probe);
    written.map(|()| format!("{} can be written", path.display()))
}

fn space(config: &Config) -> Result<String, String> {
    let stat = statvfs(&config.data).map_err(|error| error.to_string())?;
    let size = stat.fragment_size() as f64;
    let (free, all) = (
        stat.blocks_available() as f64 * size,
        stat.blocks() as f64 * size,
    );
    let text = format!(
        "{:.1} of {:.1} GB are free, retention.gigabytes is {}",
        free / 1e9,
        all / 1e9,
        config.retention.gigabytes
    );
    let used = crate::store::folder_bytes(&config.data) as f64;
    if free + used < config.retention.gigabytes * 1e9 {
        return Err(format!(
            "{text}: the disk will be full before old data is deleted. Lower retention.gigabytes"
        ));
    }
    if free < all * LOW_SPACE {
        return Err(format!("{text}: less than 5 % is free"));
    }
    Ok(text)
}

fn state(data: &Path) -> Result<String, String> {
    let path = data.join("state.redb");
    if !path.exists() {
        return Ok("will be made".to_owned());
    }
    StateDb::open(&path)
        .map(|_| "can be opened".to_owned())
        .map_err(|error| format!("{error}. If the collector runs already, that is why"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_named() {
        let folder = tempfile::tempdir().expect("folder");
        let taken = UdpSocket::bind("127.0.0.1:0").expect("socket");
        let address = taken.local_addr().expect("address");
        let text = format!(
            "listen: ['{address}']\nlisten_tcp: []\nhttp: '127.0.0.1:0'\ndata: '{}'\nretention: {{gigabytes: 1e9}}\ndatabases: [/none.mmdb]\nsources: {{s: {{file: /none.yaml}}}}\n",
            folder.path().display()
        );
        let config = Config::parse(Path::new("c"), &text).expect("good");
        let findings = examine(&config);
        let problem = |subject: &str| {
            let found = findings
                .iter()
                .find(|finding| finding.subject.contains(subject));
            found
                .unwrap_or_else(|| panic!("{subject}: {findings:?}"))
                .is_problem
        };
        for subject in ["udp", "space", "none.mmdb", "source s"] {
            assert!(problem(subject), "{subject}");
        }
        for subject in ["tcp", "data folder", "state"] {
            assert!(!problem(subject), "{subject}");
        }
    }
}
