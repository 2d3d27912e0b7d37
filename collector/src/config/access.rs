//! The parts of the configuration that say who gets in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::Deserialize;

use super::Config;
use crate::users::Role;

/// A proxy that logs users in and sends their names in a header.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyConfig {
    /// Addresses of the proxy; the header counts from no other.
    pub from: Vec<IpNet>,
    /// The header with the user's name.
    #[serde(default = "user_header")]
    pub user_header: String,
    /// The header with the user's role: viewer, operator or admin.
    #[serde(default)]
    pub role_header: Option<String>,
    /// The header with the only tenant that the user sees.
    #[serde(default)]
    pub tenant_header: Option<String>,
    /// The role of users without such a header.
    #[serde(default = "viewer")]
    pub role: Role,
}

fn user_header() -> String {
    "x-remote-user".to_owned()
}

fn viewer() -> Role {
    Role::Viewer
}

/// Login by OpenID Connect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcConfig {
    /// The provider.
    pub issuer: String,
    /// This collector's name at the provider.
    pub client_id: String,
    /// A file with the secret; none for public clients.
    #[serde(default)]
    pub client_secret_file: Option<PathBuf>,
    /// The address of this console with `/api/v1/oidc/callback`.
    pub redirect: String,
    /// What is asked for.
    #[serde(default = "scope")]
    pub scope: String,
    /// The claim with the user's name; `sub` where it is missing.
    #[serde(default = "user_claim")]
    pub user_claim: String,
    /// The claim with the user's groups.
    #[serde(default = "role_claim")]
    pub role_claim: String,
    /// Roles by group.
    #[serde(default)]
    pub roles: BTreeMap<String, Role>,
    /// The role of users in none of these groups; without it they get none.
    #[serde(default)]
    pub role: Option<Role>,
}

fn scope() -> String {
    "openid profile email".to_owned()
}

fn user_claim() -> String {
    "preferred_username".to_owned()
}

fn role_claim() -> String {
    "groups".to_owned()
}

impl Config {
    /// What is wrong with proxy and provider.
    pub(super) fn access_problems(&self, problems: &mut Vec<String>) {
        if let Some(proxy) = &self.proxy {
            if proxy.from.is_empty() {
                problems.push(
                    "proxy.from: no address. Add the proxy's, for example 127.0.0.1/32".to_owned(),
                );
            }
            let headers = [
                Some(&proxy.user_header),
                proxy.role_header.as_ref(),
                proxy.tenant_header.as_ref(),
            ];
            for header in headers.into_iter().flatten() {
                let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
                if header.is_empty() || !header.chars().all(good) {
                    problems.push(format!("proxy: {header:?} is no name of a header"));
                }
            }
        }
        if let Some(oidc) = &self.oidc {
            for (key, url) in [("issuer", &oidc.issuer), ("redirect", &oidc.redirect)] {
                let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
                if !url.starts_with("https://") && !local.iter().any(|start| url.starts_with(start))
                {
                    problems.push(format!(
                        "oidc.{key}: {url} is not https://, and not on this machine"
                    ));
                }
            }
            if !oidc.redirect.ends_with("/api/v1/oidc/callback") {
                problems.push("oidc.redirect: must end in /api/v1/oidc/callback".to_owned());
            }
            if oidc.roles.is_empty() && oidc.role.is_none() {
                problems.push("oidc: neither roles nor role: nobody could log in".to_owned());
            }
        }
    }
}
