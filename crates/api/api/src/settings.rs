//! Settings of a server: where it listens, roles of clients, and limits.
//!
//! A value of this crate's own, so that whoever reads configuration files may call its keys as it
//! likes. Secrets do not stand in it: of a token it has the SHA-256, of a key the file's name.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::Role;

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The Unix socket.
    pub socket: PathBuf,
    /// The group whose members are admins, beside root and the router's own user. The socket is
    /// given to it.
    pub group: Option<String>,
    /// The group whose members may look. With one, anybody may connect to the socket, and the
    /// credentials of the peer decide.
    pub read_only_group: Option<String>,
    /// Where the API also listens for TCP.
    pub listeners: Vec<TcpListen>,
    /// The tokens that TCP clients show.
    pub tokens: Vec<Token>,
    /// Where metrics (and nothing else) are served over plain HTTP to every client that can connect.
    pub metrics: Option<SocketAddr>,
    /// What clients may take.
    pub limits: Limits,
}

impl ServerSettings {
    /// A server on a Unix socket, for root and the router's own user.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            group: None,
            read_only_group: None,
            listeners: Vec::new(),
            tokens: Vec::new(),
            metrics: None,
            limits: Limits::default(),
        }
    }
}

/// One TCP listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpListen {
    /// Its address and port.
    pub address: SocketAddr,
    /// Its certificate; without, the address must be a loopback one.
    pub tls: Option<Tls>,
}

/// How a TCP listener speaks TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The file with its certificate and those between it and the root, as PEM.
    pub certificate: PathBuf,
    /// The file with its private key, as PEM.
    pub key: PathBuf,
    /// The file with the roots of clients' certificates, as PEM; without, clients show tokens.
    pub client_ca: Option<PathBuf>,
    /// What a client with a certificate may do.
    pub client_role: Role,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its name, for the log and the history.
    pub name: String,
    /// The SHA-256 of the token's text.
    pub sha256: [u8; 32],
    /// What its holder may do.
    pub role: Role,
}

impl Token {
    /// The token with this text.
    #[must_use]
    pub fn of(name: impl Into<String>, text: &str, role: Role) -> Self {
        Self {
            name: name.into(),
            sha256: sha256(text.as_bytes()),
            role,
        }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let mut sum = [0; 32];
    sum.iter_mut()
        .zip(digest.as_ref())
        .for_each(|(to, from)| *to = *from);
    sum
}

/// What clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once, on each listener.
    pub connections: usize,
    /// Requests that are being answered at once.
    pub answers: usize,
    /// Streams of events at once.
    pub streams: usize,
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// The largest body of a request that carries a configuration, in bytes.
    pub config_bytes: usize,
    /// Requests that carry a configuration, at once.
    pub configs: usize,
    /// How long a client may take to send a request's head; an idle connection ends after it.
    pub head_time: Duration,
    /// How long a client may take to send a request's body.
    pub body_time: Duration,
    /// How long the router may take to answer.
    pub answer_time: Duration,
    /// How long the router may take to look at, or to change, a configuration.
    pub change_time: Duration,
    /// How long a client may take to read the next part of a reply.
    pub write_time: Duration,
    /// How long a stream of events stays silent before a sign of life is sent.
    pub silence: Duration,
    /// How long requests under way may take when the server stops.
    pub stop_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            answers: 4,
            streams: 16,
            body_bytes: 1 << 20,
            config_bytes: 32 << 20,
            configs: 2,
            head_time: Duration::from_secs(5),
            body_time: Duration::from_secs(5),
            answer_time: Duration::from_secs(10),
            change_time: Duration::from_secs(120),
            write_time: Duration::from_secs(5),
            silence: Duration::from_secs(15),
            stop_time: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_as_its_sha_256() {
        // FIPS 180-2 appendix B.1.
        let expected = [
            0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae,
            0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61,
            0xf2, 0x00, 0x15, 0xad,
        ];
        assert_eq!(Token::of("test", "abc", Role::Admin).sha256, expected);
    }
}
