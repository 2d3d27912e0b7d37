//! Login by OpenID Connect: authorization code flow with PKCE (RFC 7636).
//!
//! A login that began is kept for ten minutes under its `state`, which the browser also has as a cookie: an answer that another
//! browser began is refused. The ID token's signature (RS256 or ES256), issuer, audience, end and nonce are checked. Addresses
//! come from the issuer's discovery document and must have the issuer's scheme; redirects are not followed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::config::OidcConfig;
use crate::enrich::sources::{client, secret};
use crate::users::{Identity, Role};

/// Seconds in which a login must end.
const LOGIN: i64 = 600;
/// Logins under way at the same time.
const MOST_LOGINS: usize = 1000;
/// Seconds that clocks may differ.
const CLOCK: i64 = 60;

/// Why somebody is not logged in.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The provider cannot be reached or answers something else.
    #[error("identity provider: {0}")]
    Provider(String),
    /// The login does not belong to this browser, or took too long.
    #[error("this login was not begun here, or took longer than ten minutes. Begin again")]
    State,
    /// The ID token is not valid.
    #[error("the identity provider's token is not valid: {0}")]
    Token(&'static str),
    /// The user has no role.
    #[error("{0} has no role here")]
    NoRole(String),
    /// Too many logins are under way.
    #[error("too many logins are under way: try again in a minute")]
    TooMany,
}

#[derive(Clone, Debug, Deserialize)]
struct Discovery {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
}

#[derive(Debug)]
struct Login {
    verifier: String,
    nonce: String,
    ends: i64,
}

/// The client of one provider.
#[derive(Debug)]
pub struct Oidc {
    config: OidcConfig,
    logins: Mutex<HashMap<String, Login>>,
}

/// Where the browser is sent, and the state that it must bring back.
#[derive(Debug)]
pub struct Begun {
    /// Address of the provider.
    pub url: String,
    /// The state, to be set as a cookie.
    pub state: String,
}

fn random() -> Result<String, OidcError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| OidcError::Provider(error.to_string()))?;
    Ok(BASE64.encode(bytes))
}

/// A text as part of a query (RFC 3986: all but unreserved characters are escaped).
fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn form(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    pairs.join("&")
}

impl Oidc {
    /// A client.
    #[must_use]
    pub fn new(config: OidcConfig) -> Oidc {
        Oidc {
            config,
            logins: Mutex::default(),
        }
    }

    fn discover(&self) -> Result<Discovery, OidcError> {
        let issuer = self.config.issuer.trim_end_matches('/');
        let found: Discovery = self.json(&format!("{issuer}/.well-known/openid-configuration"))?;
        if found.issuer.trim_end_matches('/') != issuer {
            return Err(OidcError::Provider(format!(
                "it calls itself {:?}, not {issuer:?}",
                found.issuer
            )));
        }
        let scheme = issuer.split("://").next().unwrap_or("https");
        for url in [
            &found.authorization_endpoint,
            &found.token_endpoint,
            &found.jwks_uri,
        ] {
            if url.split("://").next() != Some(scheme) {
                return Err(OidcError::Provider(format!("{url} is not {scheme}")));
            }
        }
        Ok(found)
    }

    fn json<T: for<'de> Deserialize<'de>>(&self, url: &str) -> Result<T, OidcError> {
        let text =
            crate::enrich::sources::get(&client(), url, None).map_err(OidcError::Provider)?;
        serde_json::from_str(&text).map_err(|error| OidcError::Provider(format!("{url}: {error}")))
    }

    /// Begins a login. Blocks while the provider's addresses are read.
    ///
    /// # Errors
    /// When the provider cannot be reached, or too many logins are under way.
    pub fn begin(&self, now: i64) -> Result<Begun, OidcError> {
        let discovery = self.discover()?;
        let (state, verifier, nonce) = (random()?, random()?, random()?);
        {
            let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
            logins.retain(|_, login| login.ends > now);
            if logins.len() >= MOST_LOGINS {
                return Err(OidcError::TooMany);
            }
            logins.insert(
                state.clone(),
                Login {
                    verifier: verifier.clone(),
                    nonce: nonce.clone(),
                    ends: now + LOGIN,
                },
            );
        }
        let challenge = BASE64.encode(Sha256::digest(verifier.as_bytes()));
        let join = if discovery.authorization_endpoint.contains('?') {
            '&'
        } else {
            '?'
        };
        let query = form(&[
            ("response_type", "code"),
            ("client_id", &self.config.client_id),
            ("redirect_uri", &self.config.redirect),
            ("scope", &self.config.scope),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(Begun {
            url: format!("{}{join}{query}", discovery.authorization_endpoint),
            state,
        })
    }

    /// Ends a login with the code that the browser brought. Blocks while the provider is asked.
    ///
    /// # Errors
    /// When the login is not known, the provider refuses, the token is not valid, or the user has no role.
    pub fn end(
        &self,
        code: &str,
        state: &str,
        cookie: Option<&str>,
        now: i64,
    ) -> Result<Identity, OidcError> {
        if cookie != Some(state) {
            return Err(OidcError::State);
        }
        // A state works once.
        let login = self
            .logins
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(state)
            .filter(|login| login.ends > now)
            .ok_or(OidcError::State)?;
        let discovery = self.discover()?;
        let secret = match &self.config.client_secret_file {
            Some(path) => secret(path).map_err(OidcError::Provider)?,
            None => String::new(),
        };
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.config.redirect.as_str()),
            ("client_id", self.config.client_id.as_str()),
            ("code_verifier", login.verifier.as_str()),
        ];
        if !secret.is_empty() {
            pairs.push(("client_secret", &secret));
        }
        let refuse = |error: ureq::Error| {
            OidcError::Provider(format!("{}: {error}", discovery.token_endpoint))
        };
        let answer = client()
            .post(&discovery.token_endpoint)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json")
            .send(form(&pairs))
            .map_err(refuse)?
            .body_mut()
            .with_config()
            .limit(1 << 20)
            .read_to_string()
            .map_err(refuse)?;
        let answer: Value = serde_json::from_str(&answer)
            .map_err(|error| OidcError::Provider(format!("token answer: {error}")))?;
        let token = answer["id_token"]
            .as_str()
            .ok_or(OidcError::Token("the answer has no id_token"))?;
        let keys: Value = self.json(&discovery.jwks_uri)?;
        let claims = verify(token, &keys)?;
        self.identity(&claims, &discovery.issuer, &login.nonce, now)
    }

    /// The identity of claims whose signature is valid.
    fn identity(
        &self,
        claims: &Value,
        issuer: &str,
        nonce: &str,
        now: i64,
    ) -> Result<Identity, OidcError> {
        if claims["iss"].as_str() != Some(issuer) {
            return Err(OidcError::Token("another issuer"));
        }
        let id = Some(self.config.client_id.as_str());
        let is_for_us = match &claims["aud"] {
            Value::String(audience) => Some(audience.as_str()) == id,
            Value::Array(all) => {
                all.iter().any(|one| one.as_str() == id)
                    && (all.len() == 1 || claims["azp"].as_str() == id)
            }
            _ => false,
        };
        if !is_for_us {
            return Err(OidcError::Token("another audience"));
        }
        if claims["exp"]
            .as_i64()
            .is_none_or(|ends| ends + CLOCK <= now)
        {
            return Err(OidcError::Token("it has ended"));
        }
        if claims["nonce"].as_str() != Some(nonce) {
            return Err(OidcError::Token("another nonce"));
        }
        let name = claims[self.config.user_claim.as_str()]
            .as_str()
            .or_else(|| claims["sub"].as_str())
            .filter(|name| !name.is_empty() && name.len() <= 256)
            .ok_or(OidcError::Token("it names no user"))?;
        let role = self
            .role(claims)
            .ok_or_else(|| OidcError::NoRole(name.to_owned()))?;
        Ok(Identity {
            name: name.to_owned(),
            role,
            tenant: None,
        })
    }

    /// The highest role of the user's groups; that of everybody without a group.
    fn role(&self, claims: &Value) -> Option<Role> {
        let roles: &BTreeMap<String, Role> = &self.config.roles;
        let groups = match &claims[self.config.role_claim.as_str()] {
            Value::String(group) => vec![group.as_str()],
            Value::Array(groups) => groups.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let of_groups = groups.into_iter().filter_map(|group| roles.get(group));
        of_groups.copied().max().or(self.config.role)
    }
}

/// The claims of a token with a valid signature by one of the keys.
fn verify(token: &str, keys: &Value) -> Result<Value, OidcError> {
    let parts: Vec<&str> = token.split('.').collect();
    let [head, body, signature] = parts.as_slice() else {
        return Err(OidcError::Token("it has not three parts"));
    };
    let decode = |text: &str| {
        BASE64
            .decode(text)
            .map_err(|_| OidcError::Token("a part is no base64url"))
    };
    let json = |bytes: Vec<u8>| {
        serde_json::from_slice::<Value>(&bytes).map_err(|_| OidcError::Token("a part is no JSON"))
    };
    let header = json(decode(head)?)?;
    let signature = decode(signature)?;
    let signed = token
        .get(..head.len() + 1 + body.len())
        .ok_or(OidcError::Token("it has not three parts"))?;
    let algorithm = header["alg"].as_str().unwrap_or("");
    let number = |key: &Value, name: &str| {
        key[name]
            .as_str()
            .and_then(|text| BASE64.decode(text).ok())
            .unwrap_or_default()
    };
    let candidates = keys["keys"].as_array().into_iter().flatten().filter(|key| {
        (header["kid"].is_null() || key["kid"] == header["kid"])
            && key["use"].as_str().is_none_or(|usage| usage == "sig")
    });
    for key in candidates {
        // The kind of the key decides with the algorithm: neither "none" nor a shared secret is ever taken.
        let valid = match (algorithm, key["kty"].as_str(), key["crv"].as_str()) {
            ("RS256", Some("RSA"), _) => RsaPublicKeyComponents {
                n: number(key, "n"),
                e: number(key, "e"),
            }
            .verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature)
            .is_ok(),
            ("ES256", Some("EC"), Some("P-256")) => {
                let mut point = vec![4];
                point.extend(number(key, "x"));
                point.extend(number(key, "y"));
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(signed.as_bytes(), &signature)
                    .is_ok()
            }
            _ => false,
        };
        if valid {
            return json(decode(body)?);
        }
    }
    Err(OidcError::Token(
        "its signature is of no key of the provider",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::Arc;

    fn config(issuer: &str) -> OidcConfig {
        let text = format!(
            "oidc: {{issuer: '{issuer}', client_id: weir, redirect: 'http://127.0.0.1:8080/api/v1/oidc/callback', roles: {{noc: operator, admins: admin}}}}\n"
        );
        let config = crate::config::Config::parse(std::path::Path::new("c"), &text).expect("good");
        config.oidc.expect("oidc")
    }

    fn token(key: &EcdsaKeyPair, head: &Value, claims: &Value) -> String {
        let signed = format!(
            "{}.{}",
            BASE64.encode(head.to_string()),
            BASE64.encode(claims.to_string())
        );
        let signature = key
            .sign(&SystemRandom::new(), signed.as_bytes())
            .expect("signed");
        format!("{signed}.{}", BASE64.encode(signature.as_ref()))
    }

    fn key() -> EcdsaKeyPair {
        let random = SystemRandom::new();
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("key");
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random)
            .expect("key")
    }

    fn jwks(key: &EcdsaKeyPair) -> Value {
        let point = key.public_key().as_ref();
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "1", "x": BASE64.encode(&point[1..33]), "y": BASE64.encode(&point[33..]) }] })
    }

    #[test]
    fn only_signed_tokens_for_this_client_are_taken() {
        let (good, other) = (key(), key());
        let oidc = Oidc::new(config("https://id.example"));
        let head = json!({ "alg": "ES256", "kid": "1" });
        let claims = json!({ "iss": "https://id.example", "aud": "weir", "exp": 2000, "nonce": "n", "sub": "1", "preferred_username": "ann", "groups": ["x", "noc"] });
        let check = |token: &str| -> Result<Identity, OidcError> {
            oidc.identity(
                &verify(token, &jwks(&good))?,
                "https://id.example",
                "n",
                1000,
            )
        };
        let identity = check(&token(&good, &head, &claims)).expect("valid");
        assert_eq!(
            (identity.name.as_str(), identity.role),
            ("ann", Role::Operator)
        );
        let refused = |text: &str, token: &str| {
            let error = check(token).expect_err(text).to_string();
            assert!(error.contains(text), "{text}: {error}");
        };
        refused("signature", &token(&other, &head, &claims));
        refused(
            "signature",
            &token(&good, &json!({ "alg": "none" }), &claims),
        );
        refused(
            "signature",
            &token(&good, &json!({ "alg": "HS256", "kid": "1" }), &claims),
        );
        let whole = token(&good, &head, &claims);
        refused("three parts", whole.rsplit_once('.').expect("parts").0);
        let with = |name: &str, value: Value| {
            let mut changed = claims.clone();
            changed[name] = value;
            token(&good, &head, &changed)
        };
        refused("issuer", &with("iss", json!("https://evil.example")));
        refused("audience", &with("aud", json!("other")));
        refused("audience", &with("aud", json!(["other", "weir"])));
        refused("ended", &with("exp", json!(900)));
        refused("nonce", &with("nonce", json!("m")));
        refused("no role", &with("groups", json!(["x"])));
        // A signed body that was exchanged.
        let parts: Vec<&str> = whole.split('.').collect();
        let forged = BASE64.encode(claims.to_string().replace("ann", "eve"));
        refused("signature", &format!("{}.{forged}.{}", parts[0], parts[2]));
    }

    /// A provider that answers discovery, keys and tokens; the nonce of the login is passed by the code.
    fn provider(key: Arc<EcdsaKeyPair>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("socket");
        let issuer = format!("http://{}", listener.local_addr().expect("address"));
        let own = issuer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut reader = BufReader::new(stream.try_clone().expect("stream"));
                let (mut first, mut length) = (String::new(), 0);
                reader.read_line(&mut first).expect("line");
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).expect("line");
                    if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = text.trim().parse().expect("length");
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("body");
                let body = String::from_utf8(body).expect("text");
                let answer = if first.contains("openid-configuration") {
                    json!({ "issuer": own, "authorization_endpoint": format!("{own}/auth"), "token_endpoint": format!("{own}/token"), "jwks_uri": format!("{own}/keys") })
                } else if first.contains("/keys") {
                    jwks(&key)
                } else {
                    assert!(
                        body.contains("grant_type=authorization_code")
                            && body.contains("code_verifier="),
                        "{body}"
                    );
                    let nonce = body
                        .split('&')
                        .find_map(|pair| pair.strip_prefix("code="))
                        .expect("code");
                    let claims = json!({ "iss": own, "aud": "weir", "exp": 5000, "nonce": nonce, "sub": "7", "groups": "admins" });
                    json!({ "id_token": token(&key, &json!({ "alg": "ES256", "kid": "1" }), &claims) })
                };
                let text = answer.to_string();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                    text.len()
                );
            }
        });
        issuer
    }

    #[test]
    fn a_login_ends_once_and_only_in_the_browser_that_began_it() {
        let oidc = Oidc::new(config(&provider(Arc::new(key()))));
        let begun = oidc.begin(1000).expect("begun");
        let parameter = |name: &str| {
            let query = begun.url.split_once('?').expect("query").1;
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(&format!("{name}=")))
                .expect("parameter")
                .to_owned()
        };
        assert_eq!(parameter("code_challenge_method"), "S256");
        assert!(
            begun
                .url
                .contains("redirect_uri=http%3A%2F%2F127.0.0.1%3A8080%2Fapi")
        );
        let nonce = parameter("nonce");
        // Another browser has no such cookie.
        assert!(matches!(
            oidc.end(&nonce, &begun.state, None, 1001),
            Err(OidcError::State)
        ));
        assert!(matches!(
            oidc.end(&nonce, &begun.state, Some("other"), 1001),
            Err(OidcError::State)
        ));
        let identity = oidc
            .end(&nonce, &begun.state, Some(&begun.state), 1001)
            .expect("logged in");
        assert_eq!((identity.name.as_str(), identity.role), ("7", Role::Admin));
        assert!(matches!(
            oidc.end(&nonce, &begun.state, Some(&begun.state), 1001),
            Err(OidcError::State)
        ));
        let late = oidc.begin(1000).expect("begun");
        assert!(matches!(
            oidc.end("x", &late.state, Some(&late.state), 1600),
            Err(OidcError::State)
        ));
    }
}
