//! `weir config dump` and `weir config history`: what runs, and what ran.

use std::io::Write;
use std::path::Path;

use crate::cli::{ConfigDumpArgs, ConfigHistoryArgs};
use crate::client::{Output, client};
use crate::failure::Failure;
use crate::render;

/// `weir config dump`. The text goes out as it is, comments included: it is to be a file again.
pub(crate) fn dump(args: &ConfigDumpArgs, socket: Option<&Path>, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    let client = client(socket);
    let mut output = Output::new(json, to);
    match args.revision {
        None => output.put(&client.config_dump()?, |dump, screen| render::config::file(&dump.yaml, screen)),
        Some(revision) => output.put(&client.config_revision(revision)?, |old, screen| render::config::file(&old.yaml, screen)),
    }
}

/// `weir config history`.
pub(crate) fn history(args: &ConfigHistoryArgs, socket: Option<&Path>, json: bool, to: &mut dyn Write) -> Result<(), Failure> {
    Output::new(json, to).put(&client(socket).config_history(args.max, None)?, render::config::history)
}
