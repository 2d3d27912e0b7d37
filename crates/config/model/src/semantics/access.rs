//! Rules about who reaches the API: listeners, tokens, certificates.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Rules;
use crate::device::{Device, Memif};
use crate::findings::{Segment, at};

/// Hashes of tokens that anyone would try first.
const GUESSABLE: &[(&str, &str)] = &[
    (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "an empty token",
    ),
    (
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "`test`",
    ),
    (
        "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
        "`secret`",
    ),
    (
        "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8",
        "`password`",
    ),
    (
        "8c6976e5b5410415bde908bd4dee15dfb167a9c873fc4bb8a81f6f2ab448a918",
        "`admin`",
    ),
    (
        "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0",
        "`token`",
    ),
    (
        "9e1bd4e58bdc27cb9abf4c558b21963a3f3fb6b08c715e8e2bb6c795162994bc",
        "`weir`",
    ),
    (
        "057ba03d6c44104863dc7361fe4578965d1887360f90a0895882e58a6248fc86",
        "`changeme`",
    ),
];

impl Rules<'_, '_> {
    pub(super) fn access(&mut self) {
        // With an item left out, the indices of the others do not match.
        let (listen, tokens) = (
            self.findings.any_broken("api.listen"),
            self.findings.any_broken("api.tokens"),
        );
        if !listen {
            self.listeners(tokens);
            self.listeners_apart();
        }
        if !tokens {
            self.tokens();
        }
        self.groups();
        self.hidden_secrets();
    }

    /// A secret that is `hidden` was taken out of a dump.
    fn hidden_secrets(&mut self) {
        for (name, interface) in &self.candidate.config.interfaces {
            let Some(Device::Memif(memif)) = &interface.device else {
                continue;
            };
            if memif.secret.as_deref() != Some(Memif::HIDDEN) {
                continue;
            }
            self.warning(
                at!["interfaces", name.as_str(), "device", "secret"],
                format!("the secret of `{name}` is not in this file"),
                "the other end will not know this one",
                "give the secret; only a running router that has this interface knows it".into(),
            );
        }
    }

    /// Tokens do not cross a network in the clear, and a listener lets somebody in.
    fn listeners(&mut self, tokens_broken: bool) {
        let api = &self.candidate.config.api;
        for (item, listen) in api.listen.iter().enumerate() {
            let is_loopback = listen.address.is_loopback();
            if listen.tls.is_none() && !is_loopback {
                let message = format!("{} would be served without encryption", listen.address);
                let help = "add `tls`, or listen on 127.0.0.1 or ::1 only".to_owned();
                self.error(
                    at!["api", "listen", item, "address"],
                    message,
                    "tokens could be read on the way",
                    help,
                );
            }
            let by_certificate = listen
                .tls
                .as_ref()
                .is_some_and(|tls| tls.client_ca.is_some());
            if api.tokens.is_empty() && !by_certificate && !tokens_broken {
                let message = format!(
                    "nobody is let in at {} port {}",
                    listen.address, listen.port
                );
                let help = "add `api.tokens`, or `client-ca` to its `tls`".to_owned();
                self.error(
                    at!["api", "listen", item],
                    message,
                    "no token, no client certificate",
                    help,
                );
            }
        }
    }

    /// No two listeners want the same port of an address.
    fn listeners_apart(&mut self) {
        let api = &self.candidate.config.api;
        let mut taken: Vec<(SocketAddr, String)> = Vec::new();
        let listen = api.listen.iter().enumerate();
        let listen = listen.map(|(item, it)| {
            (
                vec![Segment::from("api"), "listen".into(), item.into()],
                it.address,
                it.port,
            )
        });
        let metrics = api.metrics.iter().map(|it| {
            (
                vec![Segment::from("api"), "metrics".into()],
                it.address,
                it.port,
            )
        });
        for (at, address, port) in listen.chain(metrics) {
            let here = SocketAddr::new(address, port);
            if let Some((_, first)) = taken.iter().find(|(there, _)| collide(*there, here)) {
                let help = format!("`{first}` listens there already; choose another port");
                self.error(
                    &at,
                    format!("{address} port {port} is used twice"),
                    "the second use",
                    help,
                );
            }
            taken.push((here, crate::findings::render(&at)));
        }
    }

    fn tokens(&mut self) {
        let mut names = HashMap::new();
        let mut hashes = HashMap::new();
        for (item, token) in self.candidate.config.api.tokens.iter().enumerate() {
            let hash = token.sha256.to_string();
            if let Some((_, word)) = GUESSABLE.iter().find(|(known, _)| *known == hash) {
                let message = format!("this is the hash of {word}, which anyone can guess");
                let help = "make a token with `openssl rand -hex 32`".to_owned();
                self.error(
                    at!["api", "tokens", item, "sha256"],
                    message,
                    "not secret",
                    help,
                );
            }
            if token.sha256.is_hidden() {
                let message = format!("the hash of token `{}` is not in this file", token.name);
                self.warning(
                    at!["api", "tokens", item, "sha256"],
                    message,
                    "nobody is let in with this token",
                    "give its hash; only a running router that has a token of this name knows it"
                        .into(),
                );
                continue;
            }
            if let Some(earlier) = names.insert(token.name.as_str(), item) {
                let help = format!("the first is `api.tokens[{earlier}]`; give each its own name");
                self.error(
                    at!["api", "tokens", item, "name"],
                    format!("two tokens are called `{}`", token.name),
                    "the second one",
                    help,
                );
            }
            if let Some(earlier) = hashes.insert(token.sha256, item) {
                let help = format!(
                    "the first is `api.tokens[{earlier}]`; give each user a token of its own"
                );
                self.error(
                    at!["api", "tokens", item, "sha256"],
                    "the same token twice".into(),
                    "the second one",
                    help,
                );
            }
        }
    }

    fn groups(&mut self) {
        let api = &self.candidate.config.api;
        if let (Some(all), Some(some)) = (&api.group, &api.read_only_group)
            && all == some
        {
            let message = format!("the group `{all}` is let in to do everything, and to look only");
            self.error(
                at!["api", "read-only-group"],
                message,
                "",
                "name another group, or remove one of the two".into(),
            );
        }
    }
}

/// Whether two listeners cannot be at once. `::` takes IPv4, too, as Linux has it by default
/// (ip(7), `bindv6only`).
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |wide: SocketAddr, narrow: SocketAddr| {
        wide.ip().is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4())
    };
    one.port() == other.port()
        && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
}
