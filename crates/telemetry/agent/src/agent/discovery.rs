//! Collectors that a domain announces (DNS-SD, RFC 6763, service `_sflow._udp`).
//!
//! The domain is asked again when its answer is no longer to be believed. While it cannot be asked, or says nothing,
//! what it said last stays: a name server that is away for a minute stops no samples. An answer that names nobody does.
//! Rates and other settings that TXT records may hold are not taken from there: they stand in the configuration.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use super::dns::{Resolver, Service};
use super::target::Target;
use crate::random::Random;

/// The service's name.
const SERVICE: &str = "_sflow._udp";
/// How long an answer is believed, at least and at most; and when it is asked again after trouble.
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(86_400);
const RETRY: Duration = Duration::from_secs(30);
/// Collectors that are taken from an answer.
const MOST: usize = 16;

/// Which domain is asked, and whom about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSd {
    /// The domain; those that the machine's resolver searches when absent.
    pub domain: Option<String>,
    /// The name servers; the machine's when there are none.
    pub servers: Vec<SocketAddr>,
}

type Answer = io::Result<Vec<Service>>;

/// What is known of a domain's collectors.
pub(super) struct Discovery {
    wanted: Option<DnsSd>,
    asking: Option<Receiver<Answer>>,
    ask_at: Instant,
    found: Vec<Target>,
    trouble: Option<String>,
}

impl Discovery {
    pub(super) fn new(wanted: Option<DnsSd>, now: Instant) -> Discovery {
        Discovery {
            wanted,
            asking: None,
            ask_at: now,
            found: Vec::new(),
            trouble: None,
        }
    }

    /// Another domain may be wanted.
    pub(super) fn configure(&mut self, wanted: Option<&DnsSd>, now: Instant) {
        if self.wanted.as_ref() != wanted {
            *self = Discovery::new(wanted.cloned(), now);
        }
    }

    /// The collectors that were found.
    pub(super) fn found(&self) -> &[Target] {
        &self.found
    }

    /// Why nothing could be found out.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Asks when it is time to. Returns whether others were found than before.
    pub(super) fn tend(&mut self, now: Instant) -> bool {
        let Some(wanted) = &self.wanted else {
            return false;
        };
        if let Some(asking) = &self.asking {
            let answer = match asking.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {
                    Err(io::Error::other("the thread that asks ended"))
                }
            };
            self.asking = None;
            return self.take(answer, now);
        }
        if now >= self.ask_at {
            match ask(wanted.clone()) {
                Ok(asking) => self.asking = Some(asking),
                Err(error) => return self.take(Err(error), now),
            }
        }
        false
    }

    fn take(&mut self, answer: Answer, now: Instant) -> bool {
        match answer {
            Ok(services) => {
                let ttl = services
                    .iter()
                    .map(|service| Duration::from_secs(service.ttl.into()))
                    .min()
                    .unwrap_or(RETRY);
                self.ask_at = now + ttl.clamp(SHORTEST, LONGEST);
                self.trouble = services
                    .is_empty()
                    .then(|| "nobody is announced".to_owned());
                let found: Vec<Target> = services
                    .into_iter()
                    .take(MOST)
                    .map(|it| Target::new(it.host, it.port))
                    .collect();
                let others = found != self.found;
                if others {
                    let names: Vec<String> = found.iter().map(Target::to_string).collect();
                    tracing::info!(
                        "sFlow collectors that are announced: {}",
                        if names.is_empty() {
                            "none".into()
                        } else {
                            names.join(", ")
                        }
                    );
                }
                self.found = found;
                others
            }
            Err(error) => {
                self.ask_at = now + RETRY;
                let text = error.to_string();
                if self.trouble.as_ref() != Some(&text) {
                    tracing::warn!(
                        "sFlow collectors cannot be looked up: {text}; those found before stay"
                    );
                }
                self.trouble = Some(text);
                false
            }
        }
    }
}

/// Asks on a thread of its own, which ends with the answer.
fn ask(wanted: DnsSd) -> io::Result<Receiver<Answer>> {
    let (answer, asking) = channel();
    std::thread::Builder::new()
        .name("weir-dns-sd".into())
        .spawn(move || {
            let _ = answer.send(services(&wanted));
        })?;
    Ok(asking)
}

fn services(wanted: &DnsSd) -> Answer {
    let mut resolver =
        Resolver::read(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
    if !wanted.servers.is_empty() {
        resolver.servers.clone_from(&wanted.servers);
    }
    let domains = wanted
        .domain
        .clone()
        .map_or_else(|| resolver.search.clone(), |domain| vec![domain]);
    if domains.is_empty() {
        return Err(io::Error::other(
            "no domain is given, and the machine's resolver searches none",
        ));
    }
    let mut random = Random::new(seed()?);
    for domain in domains {
        let found = resolver.services(&format!("{SERVICE}.{domain}"), random.bits() as u16)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Questions have numbers that nobody guesses, so that nobody else answers them.
fn seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}
