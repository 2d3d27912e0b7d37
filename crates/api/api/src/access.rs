//! Who may do what: groups of the Unix socket's clients, tokens and certificates of TCP's.
//!
//! Over the Unix socket the kernel tells the peer's user and group (`SO_PEERCRED`, unix(7)), as
//! they were when it connected. Root and the router's own user are admins; others are what their
//! group makes them, which is either the group that the kernel tells or one that `/etc/group`
//! puts their user into. The groups of the *process* are not asked for: `/proc` may show another
//! process by then. Over TCP a token decides, looked up by its SHA-256 in a time that does not
//! depend on it, or the certificate that TLS has verified.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::{HeaderMap, header};

use crate::settings::{ServerSettings, Token, sha256};
use crate::socket::ServeError;
use crate::{ApiError, Caller, ErrorCode, Origin, Role};

/// More of `/etc/passwd` or `/etc/group` is not read.
const MOST_BYTES: u64 = 4 << 20;

/// Who may do what.
#[derive(Debug)]
pub(crate) struct Access {
    own_uid: u32,
    admins: Option<Group>,
    readers: Option<Group>,
    tokens: Vec<Token>,
}

/// Who may do what now: it changes while the server runs.
#[derive(Debug)]
pub(crate) struct Current(RwLock<Arc<Access>>);

impl Current {
    pub(crate) fn new(access: Access) -> Self {
        Self(RwLock::new(Arc::new(access)))
    }

    pub(crate) fn get(&self) -> Arc<Access> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, access: Access) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(access);
    }
}

/// A group of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) gid: u32,
}

/// What a connection knows of its client before it asks.
#[derive(Debug)]
pub(crate) enum Peer {
    /// The kernel, or TLS, vouches for it.
    Known(Caller),
    /// The client has no role: its user, and the text of the refusal.
    Refused(u32, ApiError),
    /// Each request shows a token.
    Tcp(SocketAddr),
    /// Anybody, on the listener that tells metrics only.
    Anybody(SocketAddr),
}

impl Peer {
    /// Where it is, for the log.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Known(caller) => caller.to_string(),
            Self::Refused(uid, _) => format!("uid {uid}"),
            Self::Tcp(address) | Self::Anybody(address) => address.to_string(),
        }
    }
}

impl Access {
    /// Finds the groups that the settings name.
    pub(crate) fn new(settings: &ServerSettings) -> Result<Self, ServeError> {
        let accounts = Accounts::read();
        let group = |name: &Option<String>| {
            name.as_ref()
                .map(|name| {
                    accounts
                        .group(name)
                        .ok_or_else(|| ServeError::NoGroup(name.clone()))
                })
                .transpose()
        };
        Ok(Self {
            own_uid: rustix::process::geteuid().as_raw(),
            admins: group(&settings.group)?,
            readers: group(&settings.read_only_group)?,
            tokens: settings.tokens.clone(),
        })
    }

    /// The group that the socket is given to.
    pub(crate) fn socket_group(&self) -> Option<&Group> {
        self.admins.as_ref()
    }

    /// Whether the socket must let everybody connect, because more than one group may.
    pub(crate) fn is_open_to_readers(&self) -> bool {
        self.readers.is_some()
    }

    /// What the kernel's word about a client means.
    pub(crate) fn of_unix(&self, uid: u32, gid: u32, pid: Option<u32>) -> Peer {
        self.judge(&Accounts::read(), uid, gid, pid)
    }

    fn judge(&self, accounts: &Accounts, uid: u32, gid: u32, pid: Option<u32>) -> Peer {
        let user = accounts.user(uid);
        let is_in = |group: &Option<Group>| {
            group
                .as_ref()
                .is_some_and(|group| group.gid == gid || accounts.is_member(user, &group.name))
        };
        let role = if uid == 0 || uid == self.own_uid || is_in(&self.admins) {
            Role::Admin
        } else if is_in(&self.readers) {
            Role::ReadOnly
        } else {
            return Peer::Refused(uid, self.stranger(uid));
        };
        Peer::Known(Caller {
            role,
            origin: Origin::Unix {
                uid,
                gid,
                pid,
                user: user.map(str::to_owned),
            },
        })
    }

    fn stranger(&self, uid: u32) -> ApiError {
        let groups: Vec<_> = [&self.admins, &self.readers]
            .into_iter()
            .flatten()
            .map(|group| group.name.as_str())
            .collect();
        let help = match groups.as_slice() {
            [] => "only root and the router's own user may".to_owned(),
            groups => format!("try sudo, or join the group {}", groups.join(" or ")),
        };
        ApiError::new(
            ErrorCode::Forbidden,
            format!("the user with uid {uid} may not talk to this router"),
            help,
        )
    }

    /// Who shows this token (RFC 6750 2.1).
    pub(crate) fn of_token(
        &self,
        address: SocketAddr,
        headers: &HeaderMap,
    ) -> Result<Caller, ApiError> {
        let refused = |message: &str| {
            ApiError::new(
                ErrorCode::Unauthorized,
                message,
                "send `Authorization: Bearer TOKEN`",
            )
        };
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Err(refused("the request shows no token"));
        };
        // RFC 9110 11.1: the scheme's case does not matter.
        let (scheme, token) = value
            .as_bytes()
            .split_at_checked(7)
            .ok_or_else(|| refused("the request shows no bearer token"))?;
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return Err(refused("the request shows no bearer token"));
        }
        let sum = sha256(token.trim_ascii());
        // All tokens are looked at, all bytes of each: time tells nothing.
        let mut found = None;
        for known in &self.tokens {
            let difference = known
                .sha256
                .iter()
                .zip(&sum)
                .fold(0, |difference, (a, b)| difference | (a ^ b));
            if std::hint::black_box(difference) == 0 {
                found = Some(known);
            }
        }
        let token = found.ok_or_else(|| refused("the token is not known"))?;
        Ok(Caller {
            role: token.role,
            origin: Origin::Tcp {
                address,
                name: token.name.clone(),
            },
        })
    }

    /// Who asks.
    pub(crate) fn caller(&self, peer: &Peer, headers: &HeaderMap) -> Result<Caller, ApiError> {
        match peer {
            Peer::Known(caller) => Ok(caller.clone()),
            Peer::Refused(_, error) => Err(error.clone()),
            Peer::Tcp(address) => self.of_token(*address, headers),
            Peer::Anybody(address) => Ok(Caller {
                role: Role::ReadOnly,
                origin: Origin::Tcp {
                    address: *address,
                    name: "anybody".to_owned(),
                },
            }),
        }
    }
}

/// The name of a client with this certificate.
pub(crate) fn certificate_name(certificate: &[u8]) -> String {
    let sum = sha256(certificate);
    sum.iter()
        .take(8)
        .fold("certificate ".to_owned(), |name, byte| {
            format!("{name}{byte:02x}")
        })
}

/// The users and groups of the system, as passwd(5) and group(5) write them.
#[derive(Debug, Default)]
struct Accounts {
    passwd: String,
    group: String,
}

impl Accounts {
    fn read() -> Self {
        let text = |path: &str| {
            let mut bytes = Vec::new();
            // A system without these files has no groups, either.
            let _ = File::open(Path::new(path))
                .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Self {
            passwd: text("/etc/passwd"),
            group: text("/etc/group"),
        }
    }

    /// The name of the user with this number.
    fn user(&self, uid: u32) -> Option<&str> {
        self.passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
            (number.parse() == Ok(uid)).then_some(name)
        })
    }

    fn group(&self, name: &str) -> Option<Group> {
        self.group.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (known, _, gid) = (fields.next()?, fields.next()?, fields.next()?);
            let gid = gid.parse().ok()?;
            (known == name).then(|| Group {
                name: name.to_owned(),
                gid,
            })
        })
    }

    fn is_member(&self, user: Option<&str>, group: &str) -> bool {
        let Some(user) = user else { return false };
        self.group.lines().any(|line| {
            let mut fields = line.split(':');
            fields.next() == Some(group)
                && fields
                    .nth(2)
                    .is_some_and(|members| members.split(',').any(|member| member == user))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let group = |name: &str, gid| {
            Some(Group {
                name: name.to_owned(),
                gid,
            })
        };
        Access {
            own_uid: 110,
            admins: group("weir", 200),
            readers: group("weir-read", 201),
            tokens: Vec::new(),
        }
    }

    fn accounts() -> Accounts {
        Accounts {
            passwd: "root:x:0:0:root:/root:/bin/sh\nana:x:1000:1000::/:/bin/sh\nbo:x:1001:1001::/:/bin/sh\n\nbroken\ncy:x:1002:1002:\n"
                .to_owned(),
            group: "weir:x:200:ana,dee\nweir-read:x:201:bo,ana\nbroken\nother:x:300:cy\n".to_owned(),
        }
    }

    #[test]
    fn the_peers_credentials_decide() {
        let (access, accounts) = (access(), accounts());
        let role = |uid, gid| match access.judge(&accounts, uid, gid, None) {
            Peer::Known(caller) => Some(caller.role),
            _ => None,
        };
        assert_eq!(role(0, 0), Some(Role::Admin), "root");
        assert_eq!(role(110, 5), Some(Role::Admin), "the router's own user");
        assert_eq!(
            role(1000, 1000),
            Some(Role::Admin),
            "a member of both groups"
        );
        assert_eq!(
            role(1001, 1001),
            Some(Role::ReadOnly),
            "a member of the readers"
        );
        assert_eq!(role(1001, 200), Some(Role::Admin), "who took on the group");
        assert_eq!(
            role(7777, 201),
            Some(Role::ReadOnly),
            "a user without a name"
        );
        assert_eq!(role(1002, 1002), None, "somebody else");
        assert_eq!(role(7777, 7777), None, "nobody");
        let Peer::Refused(_, error) = access.judge(&accounts, 1002, 1002, None) else {
            panic!("let in")
        };
        assert_eq!(
            (error.code, error.help.as_str()),
            (
                ErrorCode::Forbidden,
                "try sudo, or join the group weir or weir-read"
            )
        );
    }

    #[test]
    fn without_groups_only_root_and_the_own_user_may() {
        let access = Access {
            admins: None,
            readers: None,
            ..access()
        };
        assert!(matches!(
            access.judge(&accounts(), 1000, 0, None),
            Peer::Refused(..)
        ));
        assert!(matches!(
            access.judge(&accounts(), 110, 7, None),
            Peer::Known(_)
        ));
    }

    #[test]
    fn tokens_are_known_by_their_sum() {
        let tokens = vec![
            Token::of("monitor", "look", Role::ReadOnly),
            Token::of("robot", "do it", Role::Admin),
        ];
        let access = Access { tokens, ..access() };
        let address = "192.0.2.1:9".parse().unwrap();
        let ask = |value: &str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            access.of_token(address, &headers)
        };
        assert_eq!(ask("Bearer look").unwrap().role, Role::ReadOnly);
        let caller = ask("bearer  do it ").unwrap();
        assert_eq!(
            (caller.role, caller.author()),
            (Role::Admin, "robot".to_owned())
        );
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer Look",
            "Basic look",
            "look",
            "Bearer look look",
            "Bearerlook",
            "Bearer\tlook",
        ] {
            assert_eq!(
                ask(wrong).unwrap_err().code,
                ErrorCode::Unauthorized,
                "{wrong}"
            );
        }
        assert_eq!(
            access
                .of_token(address, &HeaderMap::new())
                .unwrap_err()
                .code,
            ErrorCode::Unauthorized
        );
    }
}
