//! Rules about who reaches the API: listeners, tokens, certificates.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Rules;
use crate::findings::{Segment, at};

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
