//! Files and URLs with further exporters and networks, read again now and then by one thread.
//!
//! What a source had stays in use until it can be read again; the health page says since when it cannot. A source has at
//! most [`MOST_BYTES`] bytes. Redirects are not followed, so that the address in the configuration is the one that is asked.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::config::{ExporterConfig, NetworkConfig, SourceConfig};

/// Bytes of the largest answer.
const MOST_BYTES: u64 = 32 << 20;
/// Seconds that a request may take.
const TIMEOUT: u64 = 20;

/// What the configuration, or a source, says of exporters and networks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overlay {
    /// Exporters by address.
    pub exporters: BTreeMap<IpAddr, ExporterConfig>,
    /// Networks by prefix.
    pub networks: BTreeMap<IpNet, NetworkConfig>,
}

/// State of a source, for the health page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// When it was last read, seconds since 1970; 0 never.
    pub read: i64,
    /// Exporters that it has.
    pub exporters: usize,
    /// Networks that it has.
    pub networks: usize,
    /// Why the last reading failed.
    pub problem: Option<String>,
}

/// A client for addresses that the configuration gives.
#[must_use]
pub fn client() -> ureq::Agent {
    ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(TIMEOUT)))
            .max_redirects(0)
            .http_status_as_error(true)
            .build(),
    )
}

/// The first line of a file.
///
/// # Errors
/// When it cannot be read.
pub fn secret(path: &Path) -> Result<String, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.lines().next().unwrap_or("").trim().to_owned())
}

/// Reads an address, with the token of a file if there is one.
///
/// # Errors
/// With a text that says what failed.
pub fn get(client: &ureq::Agent, url: &str, token_file: Option<&Path>) -> Result<String, String> {
    let mut request = client.get(url);
    if let Some(path) = token_file {
        request = request.header("authorization", format!("Bearer {}", secret(path)?));
    }
    let mut response = request.call().map_err(|error| format!("{url}: {error}"))?;
    if !response.status().is_success() {
        return Err(format!("{url}: status {}", response.status()));
    }
    let mut text = String::new();
    response
        .body_mut()
        .as_reader()
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("{url}: {error}"))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("{url}: more than {MOST_BYTES} bytes"));
    }
    Ok(text)
}

/// Reads a source.
///
/// # Errors
/// With a text that says what failed.
pub fn read(client: &ureq::Agent, config: &SourceConfig) -> Result<Overlay, String> {
    let (text, from) = match (&config.file, &config.url) {
        (Some(path), _) => {
            let size = std::fs::metadata(path).map_or(0, |data| data.len());
            if size > MOST_BYTES {
                return Err(format!("{}: more than {MOST_BYTES} bytes", path.display()));
            }
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            (text, path.display().to_string())
        }
        (None, Some(url)) => (get(client, url, config.token_file.as_deref())?, url.clone()),
        (None, None) => return Err("neither file nor url".to_owned()),
    };
    if text.trim().is_empty() {
        return Ok(Overlay::default());
    }
    // JSON is YAML, too.
    serde_saphyr::from_str(&text).map_err(|error| format!("{from}: {error}"))
}
