//! The control socket: one request and one reply a connection, each one line of JSON.
//!
//! The daemon never waits for a client: reading and writing have a short time limit, and a request has a limit
//! of bytes. The socket belongs to root; its mode is 0600.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The longest request.
const MOST: u64 = 64 << 20;
/// A client that is slower than this is not served.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a client wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Replace the configuration.
    Apply {
        /// The file's text.
        text: String,
    },
}

/// What the daemon replies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// Why it was not done; `None` = done.
    pub error: Option<String>,
}

impl Reply {
    /// It is done.
    #[must_use]
    pub fn done() -> Reply {
        Reply { error: None }
    }

    /// It is not.
    #[must_use]
    pub fn failed(error: String) -> Reply {
        Reply { error: Some(error) }
    }
}

/// The daemon's end.
pub(crate) struct Requests(UnixListener);

/// A client that waits for its reply.
pub(crate) struct Client(UnixStream);

impl Requests {
    pub(crate) fn open(path: &Path) -> Result<Requests> {
        let failed = |source| Error::File {
            action: "listen on",
            path: path.to_owned(),
            source,
        };
        if UnixStream::connect(path).is_ok() {
            return Err(failed(std::io::Error::other(
                "another daemon runs with this state folder",
            )));
        }
        // Left by a daemon that was killed.
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Requests(listener))
    }

    /// The next request, if one waits.
    pub(crate) fn next(&self) -> Option<(Request, Client)> {
        loop {
            let (stream, _) = self.0.accept().ok()?;
            let limits = [
                stream.set_read_timeout(Some(PATIENCE)),
                stream.set_write_timeout(Some(PATIENCE)),
            ];
            if limits.iter().any(std::result::Result::is_err)
                || stream.set_nonblocking(false).is_err()
            {
                continue;
            }
            let mut line = String::new();
            if BufReader::new(&stream)
                .take(MOST)
                .read_line(&mut line)
                .is_err()
            {
                continue;
            }
            match serde_json::from_str(&line) {
                Ok(request) => return Some((request, Client(stream))),
                Err(error) => Client(stream).answer(&Reply::failed(format!(
                    "this request is not understood: {error}"
                ))),
            }
        }
    }
}

impl Client {
    /// Sends the reply; a client that is gone needs none.
    pub(crate) fn answer(mut self, reply: &Reply) {
        if let Ok(mut line) = serde_json::to_string(reply) {
            line.push('\n');
            let _ = self.0.write_all(line.as_bytes());
        }
    }
}

/// Sends a request and waits for the reply.
///
/// # Errors
/// When no daemon listens, or the connection breaks.
pub fn send(path: &Path, request: &Request) -> Result<Reply> {
    let failed = |source| Error::File {
        action: "ask the daemon at",
        path: path.to_owned(),
        source,
    };
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .map_err(failed)?;
    let mut line =
        serde_json::to_string(request).map_err(|error| failed(std::io::Error::other(error)))?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(failed)?;
    let mut reply = String::new();
    BufReader::new(stream)
        .take(MOST)
        .read_line(&mut reply)
        .map_err(failed)?;
    serde_json::from_str(&reply).map_err(|error| failed(std::io::Error::other(error)))
}
