//! A router with all that belongs to it: its history, its log, its API.
//!
//! `weir run` begins one, waits, reloads when asked, and ends it. What is chosen here is where things
//! lie: the history beside nothing that a reboot clears, named after the socket, so that several routers
//! on one machine do not meet. A router on a socket elsewhere than `/run/weir` keeps a history, and its
//! interfaces' numbers over a restart, only when its file names a folder.

mod access;
pub(crate) mod log;
mod peering;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weir_api::{Router as _, ServerControl, ServerHandle};
use weir_config::{CheckOptions, Config, History};
use weir_engine::{AccessControl, CompanionControl, LogControl, Options, Router, Startup};

use crate::commands::config_file;
use crate::failure::Failure;
use crate::render::units;

/// Where sockets lie that have a name of their own.
const RUN: &str = "/run/weir";
/// The commit that this program was built from; `unknown` without git.
const COMMIT: &str = env!("WEIR_COMMIT");
/// What survives a reboot.
const STATE: &str = "/var/lib/weir";

/// A router that runs, and everything around it.
pub(crate) struct Running {
    pub(crate) router: Router,
    server: ServerHandle,
    pub(crate) socket: PathBuf,
    file: PathBuf,
    skip_unsupported: bool,
}

impl Running {
    /// Begins with `file`, or with what ran last when the file was not edited since.
    pub(crate) fn begin(
        file: &Path,
        skip_unsupported: bool,
        socket: Option<&Path>,
    ) -> Result<Running, Failure> {
        let (text, from_file) = read(file, skip_unsupported)?;
        let log = log::start(&from_file.logging);
        let socket = socket.map_or_else(|| from_file.api.socket.clone(), Path::to_owned);
        let name = file.display().to_string();
        let history = history_folder(&from_file.history, &socket);
        let startup = match &history {
            Some(folder) => Startup::choose(
                &name,
                &text,
                from_file.clone(),
                folder,
                usize::from(from_file.history.keep),
            )
            .map_err(Failure::said)?,
            None => Startup::without_history(from_file, &text),
        };
        let config = startup.config().clone();
        log.set(config.logging.level);
        let server_control: Arc<OnceLock<ServerControl>> = Arc::default();
        let options = Options {
            access: Some(access_control(&server_control, &socket)),
            index_file: index_file(&socket, history.as_deref()),
            config_file: Some(name),
            commit: (COMMIT != "unknown").then(|| COMMIT.to_owned()),
            companion: CompanionControl::new(peering::BgpDaemon::new(file, &socket)),
            log: Some(LogControl::new(move |level| log.set(level))),
            ..Options::default()
        };
        let router = Router::start_from(startup, &options).map_err(Failure::said)?;
        log::tell(router.events());
        match weir_api::Server::serve(
            &access::settings(&config.api, &socket),
            Arc::new(router.clone()),
        ) {
            Ok(server) => {
                let _ = server_control.set(server.control());
                Ok(Running {
                    router,
                    server,
                    socket,
                    file: file.to_owned(),
                    skip_unsupported,
                })
            }
            Err(error) => {
                router.stop();
                Err(Failure::said(error))
            }
        }
    }

    /// How many interfaces it has.
    pub(crate) fn interfaces(&self) -> usize {
        self.router
            .interfaces()
            .map_or(0, |reply| reply.interfaces.len())
    }

    /// Applies the file anew. Whatever is wrong with it is said in the log, and nothing is changed.
    pub(crate) fn reload(&self) {
        let name = self.file.display().to_string();
        let text = match std::fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) => {
                return tracing::error!("{name} cannot be read, nothing is changed: {error}");
            }
        };
        match self.router.reload(&name, &text, self.skip_unsupported) {
            Ok(applied) => {
                self.read_certificates();
                let waits = if applied.needs_restart.is_empty() {
                    String::new()
                } else {
                    format!(
                        "; a restart is needed for {}",
                        applied.needs_restart.join(", ")
                    )
                };
                tracing::info!(
                    "{name} is applied: {}{waits}",
                    units::count(applied.steps.len() as u64, "step", "steps")
                );
            }
            Err(error) => {
                error
                    .findings
                    .iter()
                    .for_each(|finding| tracing::error!("{}", finding.rendered));
                tracing::error!("{name} is not applied, nothing is changed: {error}");
            }
        }
    }

    /// Reads certificates again: their files may be newer while the configuration is the same.
    fn read_certificates(&self) {
        let api = self.router.running().api;
        let settings = access::settings(&api, &self.socket);
        if let Err(error) = self.server.control().update(&settings) {
            tracing::error!(%error, "certificates of the API cannot be read again");
        }
    }

    /// Ends it all, in order.
    pub(crate) fn end(self) {
        self.server.stop();
        self.router.stop();
    }
}

/// Hands new tokens and certificates to the server, once there is one.
fn access_control(server: &Arc<OnceLock<ServerControl>>, socket: &Path) -> AccessControl {
    let (server, socket) = (Arc::clone(server), socket.to_owned());
    AccessControl::new(move |api| match server.get() {
        Some(server) => server
            .update(&access::settings(api, &socket))
            .map_err(|error| error.to_string()),
        None => Ok(()),
    })
}

/// The file's text and what it means; its findings go to standard error.
fn read(file: &Path, skip_unsupported: bool) -> Result<(String, Config), Failure> {
    let name = config_file::name(file);
    let bytes = config_file::read(file)?;
    let options = CheckOptions {
        skip_unsupported,
        ..CheckOptions::new(&name)
    };
    match weir_config::check_with(&options, &bytes) {
        Ok(checked) => {
            config_file::tell(&checked.warnings);
            Ok((String::from_utf8_lossy(&bytes).into_owned(), checked.config))
        }
        Err(findings) => Err(config_file::refuse(
            &name,
            &findings,
            false,
            &mut std::io::sink(),
        )),
    }
}

/// The name of a router's state: that of its socket.
fn state_of(socket: &Path) -> PathBuf {
    let name = socket
        .file_stem()
        .map_or_else(|| "weir".into(), |stem| stem.to_string_lossy().into_owned());
    Path::new(STATE).join(name)
}

/// Where interface numbers are kept, if they are: with the router's state, or with its history.
fn index_file(socket: &Path, history: Option<&Path>) -> Option<PathBuf> {
    let usual = socket.parent() == Some(Path::new(RUN));
    if usual {
        Some(state_of(socket).with_extension("ifindex"))
    } else {
        history.map(|folder| folder.join("ifindex"))
    }
}

/// Where applied configurations are kept, if they are.
fn history_folder(history: &History, socket: &Path) -> Option<PathBuf> {
    let usual = History::default().directory;
    if history.directory != usual {
        return Some(history.directory.clone());
    }
    if socket == weir_config::Api::default().socket {
        return Some(usual);
    }
    (socket.parent() == Some(Path::new(RUN))).then(|| state_of(socket).join("config"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_router_has_a_history_of_its_own() {
        let usual = History::default();
        let given = History {
            directory: "/srv/w".into(),
            ..History::default()
        };
        let folder = |history: &History, socket: &str| {
            history_folder(history, Path::new(socket)).map(|folder| folder.display().to_string())
        };
        assert_eq!(
            folder(&usual, "/run/weir/api.sock").as_deref(),
            Some("/var/lib/weir/config")
        );
        assert_eq!(
            folder(&usual, "/run/weir/second.sock").as_deref(),
            Some("/var/lib/weir/second/config")
        );
        assert_eq!(folder(&usual, "/tmp/x.sock"), None);
        assert_eq!(folder(&given, "/tmp/x.sock").as_deref(), Some("/srv/w"));
        let numbers = |socket: &str, history| {
            index_file(Path::new(socket), history).map(|file| file.display().to_string())
        };
        assert_eq!(
            numbers("/run/weir/api.sock", None).as_deref(),
            Some("/var/lib/weir/api.ifindex")
        );
        assert_eq!(numbers("/tmp/x.sock", None), None);
        assert_eq!(
            numbers("/tmp/x.sock", Some(Path::new("/srv/w"))).as_deref(),
            Some("/srv/w/ifindex")
        );
    }
}
