//! Users, sessions and tokens.
//!
//! Passwords are stored as argon2id hashes, tokens as SHA-256 of 32 random bytes. Sessions are kept in memory for 12 hours.
//! While no user exists, requests from loopback with a loopback `Host` are allowed, so that a first start needs no setup and
//! another site's page cannot reach the API by a name that it points at this machine.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::{Config, ProxyConfig};
use crate::query::Scope;
use crate::store::state::{StateDb, TOKENS, USERS};
use crate::store::{Store, StoreError};

/// Seconds of a session.
const SESSION: i64 = 12 * 3600;
/// Sessions at the same time.
const MOST_SESSIONS: usize = 10_000;
/// Failed logins of one user in a minute after which more are refused.
const MOST_FAILURES: u32 = 5;
/// Users whose failures are remembered.
const MOST_NAMES: usize = 10_000;

/// What somebody may do; each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read everything.
    Viewer,
    /// Also acknowledge alerts and save filters.
    Operator,
    /// Also users and tokens.
    Admin,
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        match text {
            "viewer" => Ok(Role::Viewer),
            "operator" => Ok(Role::Operator),
            "admin" => Ok(Role::Admin),
            other => Err(format!(
                "unknown role {other}: use viewer, operator or admin"
            )),
        }
    }
}

/// Why somebody may not.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// Neither session nor token.
    #[error("log in first, or send a token")]
    NotLoggedIn,
    /// Wrong name or password.
    #[error("wrong name or password")]
    Wrong,
    /// Too many failures.
    #[error("too many failed logins: wait a minute")]
    TooMany,
    /// The role is too low.
    #[error("this needs the role {0:?}")]
    Forbidden(Role),
    /// A name or password that cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// The state database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A stored user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct User {
    hash: String,
    /// What the user may do.
    pub role: Role,
    /// The only tenant whose traffic the user sees; all of it without one.
    #[serde(default)]
    pub tenant: Option<String>,
}

/// A stored token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Token {
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it ends, seconds since 1970.
    pub expires: i64,
    /// The only tenant whose traffic it sees; all of it without one.
    #[serde(default)]
    pub tenant: Option<String>,
}

/// Who makes a request.
#[derive(Clone, Debug, Serialize)]
pub struct Identity {
    /// Name of the user or token.
    pub name: String,
    /// What is allowed.
    pub role: Role,
    /// The only tenant whose traffic is shown; all of it without one.
    pub tenant: Option<String>,
}

impl Identity {
    /// What may be seen.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope {
            tenant: self.tenant.clone(),
        }
    }
}

#[derive(Debug, Default)]
struct Sessions {
    open: HashMap<String, (Identity, i64)>,
    /// Failures by name: count and begin of the minute.
    failures: HashMap<String, (u32, i64)>,
}

/// All users.
#[derive(Debug)]
pub struct Users {
    store: Arc<Store>,
    open_on_loopback: bool,
    proxy: Option<ProxyConfig>,
    sessions: Mutex<Sessions>,
}

/// What a request says of who makes it.
#[derive(Debug)]
pub struct Credentials<'a> {
    /// The session cookie.
    pub session: Option<&'a str>,
    /// The token.
    pub token: Option<&'a str>,
    /// Where the request comes from.
    pub peer: IpAddr,
    /// The header `Host`.
    pub host: &'a str,
    /// All headers, for those of a proxy.
    pub headers: &'a HeaderMap,
}

fn random_hex() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::Invalid(error.to_string()))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds or changes a user.
///
/// # Errors
/// When name or password cannot be used, or the database cannot be written.
pub fn set_user(
    db: &StateDb,
    name: &str,
    password: &str,
    role: Role,
    tenant: Option<String>,
) -> Result<(), AuthError> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-@".contains(letter);
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        return Err(AuthError::Invalid(
            "a name has 1 to 64 letters, digits, '.', '_', '-' or '@'".to_owned(),
        ));
    }
    if password.len() < 8 || password.len() > 1024 {
        return Err(AuthError::Invalid(
            "a password has 8 to 1024 bytes".to_owned(),
        ));
    }
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|error| AuthError::Invalid(error.to_string()))?;
    let salt =
        SaltString::encode_b64(&salt).map_err(|error| AuthError::Invalid(error.to_string()))?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    let hash = hash
        .map_err(|error| AuthError::Invalid(error.to_string()))?
        .to_string();
    check_tenant(role, tenant.as_deref())?;
    let user = User { hash, role, tenant };
    Ok(db.put(USERS, &[(name.to_owned(), Some(user))])?)
}

/// A tenant sees its own traffic and changes nothing that others have.
fn check_tenant(role: Role, tenant: Option<&str>) -> Result<(), AuthError> {
    match tenant {
        Some("") => Err(AuthError::Invalid("a tenant has a name".to_owned())),
        Some(_) if role != Role::Viewer => Err(AuthError::Invalid(
            "with a tenant the role must be viewer".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Makes a token and returns its secret, which is not stored.
///
/// # Errors
/// When the database cannot be written.
pub fn add_token(
    db: &StateDb,
    name: &str,
    role: Role,
    expires: i64,
    tenant: Option<String>,
) -> Result<String, AuthError> {
    check_tenant(role, tenant.as_deref())?;
    let secret = random_hex()?;
    let token = Token {
        name: name.to_owned(),
        role,
        expires,
        tenant,
    };
    db.put(
        TOKENS,
        &[(hex(&Sha256::digest(secret.as_bytes())), Some(token))],
    )?;
    Ok(secret)
}

impl Users {
    /// The users of a store.
    #[must_use]
    pub fn new(store: Arc<Store>, config: &Config) -> Users {
        Users {
            store,
            open_on_loopback: config.open_on_loopback
                && config.proxy.is_none()
                && config.oidc.is_none(),
            proxy: config.proxy.clone(),
            sessions: Mutex::default(),
        }
    }

    /// Logs in: the id of a new session.
    ///
    /// # Errors
    /// When name or password are wrong, or there were too many tries.
    pub fn login(
        &self,
        name: &str,
        password: &str,
        now: i64,
    ) -> Result<(String, Identity), AuthError> {
        {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.failures.retain(|_, (_, since)| now - *since < 60);
            let full =
                sessions.failures.len() >= MOST_NAMES && !sessions.failures.contains_key(name);
            if full
                || sessions
                    .failures
                    .get(name)
                    .is_some_and(|(count, _)| *count >= MOST_FAILURES)
            {
                return Err(AuthError::TooMany);
            }
            // Counted before the password is checked, so that tries at the same time count too.
            sessions
                .failures
                .entry(name.to_owned())
                .or_insert((0, now))
                .0 += 1;
        }
        let user = self.store.db.get::<User>(USERS, name)?;
        // An unknown name takes as long as a wrong password.
        const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let stored = user.as_ref().map_or(NOBODY, |user| user.hash.as_str());
        let hash = PasswordHash::new(stored).map_err(|_| AuthError::Wrong)?;
        let correct = Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok();
        let Some(user) = user.filter(|_| correct) else {
            return Err(AuthError::Wrong);
        };
        let identity = Identity {
            name: name.to_owned(),
            role: user.role,
            tenant: user.tenant,
        };
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .failures
            .remove(name);
        Ok((self.open(identity.clone(), now)?, identity))
    }

    /// Opens a session for somebody who proved who they are: its id, always a new one.
    ///
    /// # Errors
    /// When there are too many sessions.
    pub fn open(&self, identity: Identity, now: i64) -> Result<String, AuthError> {
        let id = random_hex()?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.open.retain(|_, (_, ends)| *ends > now);
        if sessions.open.len() >= MOST_SESSIONS {
            return Err(AuthError::TooMany);
        }
        sessions.open.insert(id.clone(), (identity, now + SESSION));
        Ok(id)
    }

    /// Ends a session.
    pub fn logout(&self, session: &str) {
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .open
            .remove(session);
    }

    /// Who the proxy says makes a request; nobody when the request does not come from the proxy.
    fn by_proxy(&self, headers: &HeaderMap, peer: IpAddr) -> Option<Identity> {
        let proxy = self.proxy.as_ref()?;
        let peer = peer.to_canonical();
        if !proxy.from.iter().any(|net| net.contains(&peer)) {
            return None;
        }
        let text = |name: &str| {
            // A header that is there twice may be one of the client's own.
            let mut values = headers.get_all(name).iter();
            let value = values.next().filter(|_| values.next().is_none())?;
            value.to_str().ok().filter(|text| !text.is_empty())
        };
        let name = text(&proxy.user_header).filter(|name| name.len() <= 256)?;
        let role = match &proxy.role_header {
            Some(header) => match text(header) {
                Some(role) => role.parse().ok()?,
                None => proxy.role,
            },
            None => proxy.role,
        };
        let tenant = proxy.tenant_header.as_deref().and_then(text);
        Some(Identity {
            name: name.to_owned(),
            // A tenant changes nothing.
            role: if tenant.is_some() { Role::Viewer } else { role },
            tenant: tenant.map(str::to_owned),
        })
    }

    /// Who makes a request, by token, session cookie, proxy, or loopback.
    ///
    /// # Errors
    /// When nobody is logged in.
    pub fn identify(&self, credentials: &Credentials<'_>, now: i64) -> Result<Identity, AuthError> {
        let Credentials {
            session,
            token,
            peer,
            host,
            headers,
        } = *credentials;
        if let Some(secret) = token {
            let found = self
                .store
                .db
                .get::<Token>(TOKENS, &hex(&Sha256::digest(secret.as_bytes())))?;
            let token = found
                .filter(|token| token.expires > now)
                .ok_or(AuthError::NotLoggedIn)?;
            return Ok(Identity {
                name: format!("token {}", token.name),
                role: token.role,
                tenant: token.tenant,
            });
        }
        if let Some(session) = session {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((identity, ends)) = sessions.open.get(session)
                && *ends > now
            {
                return Ok(identity.clone());
            }
        }
        if let Some(identity) = self.by_proxy(headers, peer) {
            return Ok(identity);
        }
        let nobody = || {
            self.store
                .db
                .all::<User>(USERS)
                .map(|users| users.is_empty())
        };
        if self.open_on_loopback
            && peer.to_canonical().is_loopback()
            && is_loopback_host(host)
            && nobody()?
        {
            return Ok(Identity {
                name: "local".to_owned(),
                role: Role::Admin,
                tenant: None,
            });
        }
        Err(AuthError::NotLoggedIn)
    }
}

fn is_loopback_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Setup {
        users: Users,
        store: Arc<Store>,
        _folder: tempfile::TempDir,
    }

    fn setup(text: &str) -> Setup {
        let folder = tempfile::tempdir().expect("folder");
        let store = Store::open(folder.path(), 0).expect("store");
        let config = Config::parse(std::path::Path::new("c"), text).expect("good");
        Setup {
            users: Users::new(Arc::clone(&store), &config),
            store,
            _folder: folder,
        }
    }

    impl Setup {
        fn identify(
            &self,
            (session, token): (Option<&str>, Option<&str>),
            peer: &str,
            host: &str,
            now: i64,
            headers: &[(&'static str, &str)],
        ) -> Option<Identity> {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().expect("value"));
            }
            let credentials = Credentials {
                session,
                token,
                peer: peer.parse().expect("address"),
                host,
                headers: &map,
            };
            self.users.identify(&credentials, now).ok()
        }

        fn local(&self) -> bool {
            self.identify((None, None), "127.0.0.1", "localhost:8080", 0, &[])
                .is_some()
        }
    }

    #[test]
    fn sessions_tokens_and_loopback() {
        let setup = setup("");
        let (users, db) = (&setup.users, &setup.store.db);
        assert!(setup.local());
        // Another machine, and another site's name for this one.
        assert!(
            setup
                .identify((None, None), "192.0.2.1", "localhost", 0, &[])
                .is_none()
        );
        assert!(
            setup
                .identify((None, None), "127.0.0.1", "evil.example", 0, &[])
                .is_none()
        );
        assert!(set_user(db, "a b", "long enough", Role::Admin, None).is_err());
        assert!(set_user(db, "ann", "short", Role::Admin, None).is_err());
        let tenant = || Some("a".to_owned());
        assert!(set_user(db, "bob", "long enough", Role::Admin, tenant()).is_err());
        set_user(db, "ann", "long enough", Role::Viewer, None).expect("user");
        assert!(!setup.local());
        let (session, identity) = users.login("ann", "long enough", 0).expect("login");
        assert_eq!(identity.role, Role::Viewer);
        let by =
            |session: &str, now| setup.identify((Some(session), None), "192.0.2.1", "x", now, &[]);
        assert!(by(&session, 1).is_some());
        assert!(by(&session, SESSION).is_none());
        users.logout(&session);
        assert!(by(&session, 1).is_none());
        for _ in 0..MOST_FAILURES {
            assert!(matches!(
                users.login("ann", "wrong wrong", 100),
                Err(AuthError::Wrong)
            ));
        }
        assert!(matches!(
            users.login("ann", "long enough", 100),
            Err(AuthError::TooMany)
        ));
        assert!(users.login("ann", "long enough", 200).is_ok());
        let secret = add_token(db, "grafana", Role::Operator, 1000, None).expect("token");
        let by =
            |secret: &str, now| setup.identify((None, Some(secret)), "192.0.2.1", "x", now, &[]);
        assert_eq!(
            by(&secret, 1).map(|identity| identity.role),
            Some(Role::Operator)
        );
        assert!(by(&secret, 1000).is_none() && by("nonsense", 1).is_none());
        let secret = add_token(db, "portal", Role::Viewer, 1000, tenant()).expect("token");
        assert_eq!(
            by(&secret, 1).and_then(|identity| identity.tenant),
            tenant()
        );
    }

    #[test]
    fn a_session_that_somebody_else_chose_opens_nothing() {
        let setup = setup("");
        set_user(&setup.store.db, "ann", "long enough", Role::Viewer, None).expect("user");
        let fixed = "0".repeat(64);
        assert!(
            setup
                .identify((Some(&fixed), None), "192.0.2.1", "x", 0, &[])
                .is_none()
        );
        let (session, _) = setup.users.login("ann", "long enough", 0).expect("login");
        assert_ne!(session, fixed);
        assert!(
            setup
                .identify((Some(&fixed), None), "192.0.2.1", "x", 0, &[])
                .is_none()
        );
    }

    #[test]
    fn a_header_counts_from_the_proxy_only() {
        let setup = setup(
            "proxy: {from: [192.0.2.0/28, 127.0.0.1/32], role_header: x-role, tenant_header: x-tenant}\n",
        );
        // With a proxy this machine is not open: requests of everybody come from it.
        assert!(!setup.local());
        let by = |peer: &str, headers: &[(&'static str, &str)]| {
            setup.identify((None, None), peer, "localhost", 0, headers)
        };
        let ann = ("x-remote-user", "ann");
        let role = |identity: Option<Identity>| identity.map(|identity| identity.role);
        assert_eq!(role(by("192.0.2.1", &[ann])), Some(Role::Viewer));
        assert_eq!(role(by("::ffff:192.0.2.1", &[ann])), Some(Role::Viewer));
        assert_eq!(role(by("192.0.2.77", &[ann])), None);
        assert_eq!(role(by("192.0.2.1", &[])), None);
        assert_eq!(
            role(by("192.0.2.1", &[ann, ("x-remote-user", "eve")])),
            None
        );
        assert_eq!(
            role(by("192.0.2.1", &[ann, ("x-role", "operator")])),
            Some(Role::Operator)
        );
        assert_eq!(role(by("192.0.2.1", &[ann, ("x-role", "root")])), None);
        let tenant =
            by("192.0.2.1", &[ann, ("x-role", "admin"), ("x-tenant", "a")]).expect("tenant");
        assert_eq!(
            (tenant.role, tenant.tenant.as_deref()),
            (Role::Viewer, Some("a"))
        );
    }
}
