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
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

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
}

/// Who makes a request.
#[derive(Clone, Debug, Serialize)]
pub struct Identity {
    /// Name of the user or token.
    pub name: String,
    /// What is allowed.
    pub role: Role,
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
    sessions: Mutex<Sessions>,
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
pub fn set_user(db: &StateDb, name: &str, password: &str, role: Role) -> Result<(), AuthError> {
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
    Ok(db.put(USERS, &[(name.to_owned(), Some(User { hash, role }))])?)
}

/// Makes a token and returns its secret, which is not stored.
///
/// # Errors
/// When the database cannot be written.
pub fn add_token(db: &StateDb, name: &str, role: Role, expires: i64) -> Result<String, AuthError> {
    let secret = random_hex()?;
    let token = Token {
        name: name.to_owned(),
        role,
        expires,
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
    pub fn new(store: Arc<Store>, open_on_loopback: bool) -> Users {
        Users {
            store,
            open_on_loopback,
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
        };
        let id = random_hex()?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.failures.remove(name);
        sessions.open.retain(|_, (_, ends)| *ends > now);
        if sessions.open.len() >= MOST_SESSIONS {
            return Err(AuthError::TooMany);
        }
        sessions
            .open
            .insert(id.clone(), (identity.clone(), now + SESSION));
        Ok((id, identity))
    }

    /// Ends a session.
    pub fn logout(&self, session: &str) {
        self.sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .open
            .remove(session);
    }

    /// Who makes a request, by session cookie, token, or loopback.
    ///
    /// # Errors
    /// When nobody is logged in.
    pub fn identify(
        &self,
        session: Option<&str>,
        token: Option<&str>,
        peer: IpAddr,
        host: &str,
        now: i64,
    ) -> Result<Identity, AuthError> {
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

    #[test]
    fn sessions_tokens_and_loopback() {
        let folder = tempfile::tempdir().expect("folder");
        let store = Store::open(folder.path(), 0).expect("store");
        let users = Users::new(Arc::clone(&store), true);
        let local: IpAddr = "127.0.0.1".parse().expect("address");
        assert!(
            users
                .identify(None, None, local, "localhost:8080", 0)
                .is_ok()
        );
        // Another machine, and another site's name for this one.
        assert!(
            users
                .identify(
                    None,
                    None,
                    "192.0.2.1".parse().expect("address"),
                    "localhost",
                    0
                )
                .is_err()
        );
        assert!(
            users
                .identify(None, None, local, "evil.example", 0)
                .is_err()
        );
        assert!(set_user(&store.db, "a b", "long enough", Role::Admin).is_err());
        assert!(set_user(&store.db, "ann", "short", Role::Admin).is_err());
        set_user(&store.db, "ann", "long enough", Role::Viewer).expect("user");
        assert!(users.identify(None, None, local, "localhost", 0).is_err());
        let (session, identity) = users.login("ann", "long enough", 0).expect("login");
        assert_eq!(identity.role, Role::Viewer);
        assert!(users.identify(Some(&session), None, local, "x", 1).is_ok());
        assert!(
            users
                .identify(Some(&session), None, local, "x", SESSION)
                .is_err()
        );
        users.logout(&session);
        assert!(users.identify(Some(&session), None, local, "x", 1).is_err());
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
        let secret = add_token(&store.db, "grafana", Role::Operator, 1000).expect("token");
        assert_eq!(
            users
                .identify(None, Some(&secret), local, "x", 1)
                .expect("token")
                .role,
            Role::Operator
        );
        assert!(
            users
                .identify(None, Some(&secret), local, "x", 1000)
                .is_err()
        );
        assert!(
            users
                .identify(None, Some("nonsense"), local, "x", 1)
                .is_err()
        );
    }
}
