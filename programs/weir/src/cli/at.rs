//! Which router a command talks to: a Unix socket of this machine, or a TCP address.
//!
//! The token stands in the environment or in a file, never on the command line, which everybody on
//! the machine can read.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use weir_api::Client;

use crate::failure::Failure;

/// A token that is longer is another kind of file.
const LONGEST_TOKEN: usize = 4096;

/// Which router.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct Where {
    /// The router's socket [default: /run/weir/api.sock; for `run`, the file's `api.socket`]
    #[arg(long, global = true, help_heading = "Router", hide_env_values = true, env = "WEIR_SOCKET", value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,
    /// A router's TCP address instead; the token is in the environment's WEIR_TOKEN
    #[arg(long, global = true, help_heading = "Router", value_name = "HOST:PORT")]
    pub(crate) router: Option<String>,
    /// The CA that vouches for that router's certificate; without it, no TLS: for this machine only
    #[arg(long, global = true, help_heading = "Router", env = "WEIR_CA", hide_env_values = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca: Option<PathBuf>,
    /// A file that has the token for that router
    #[arg(long, global = true, help_heading = "Router", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
}

impl Where {
    /// A client of it. Nothing is asked yet.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let Some(address) = &self.router else {
            return Ok(Client::new(self.socket()));
        };
        let token = self.token()?;
        match &self.ca {
            Some(ca) => Ok(Client::tls(address, ca, token.as_deref())?),
            None => Ok(Client::tcp(address, token.as_deref())),
        }
    }

    /// The socket, for a router of this machine.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(default_socket)
    }

    /// How output names it: its address, or its socket.
    pub(crate) fn name(&self) -> String {
        self.router
            .clone()
            .unwrap_or_else(|| self.socket().display().to_string())
    }

    /// The options that lead to it, with a space after each; none for the usual one.
    pub(crate) fn options(&self) -> String {
        match &self.router {
            Some(router) => {
                let ca = self
                    .ca
                    .as_ref()
                    .map_or_else(String::new, |ca| format!("--ca {} ", ca.display()));
                let token = self.token_file.as_ref().map_or_else(String::new, |file| {
                    format!("--token-file {} ", file.display())
                });
                format!("--router {router} {ca}{token}")
            }
            None if self.socket() == default_socket() => String::new(),
            None => format!("--socket {} ", self.socket().display()),
        }
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.token_file else {
            return Ok(std::env::var("WEIR_TOKEN")
                .ok()
                .filter(|token| !token.is_empty()));
        };
        let text = fs::read_to_string(file).map_err(|error| {
            Failure::said(format_args!("cannot read {}: {error}", file.display()))
        })?;
        match text.trim() {
            token if !token.is_empty() && token.len() <= LONGEST_TOKEN => {
                Ok(Some(token.to_owned()))
            }
            _ => Err(Failure::said(format_args!(
                "{} has no token",
                file.display()
            ))),
        }
    }
}

/// Where the router is when nobody says: where a configuration without `api.socket` puts it.
pub(crate) fn default_socket() -> PathBuf {
    weir_config::Api::default().socket
}
