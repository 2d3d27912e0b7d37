//! `weir config dump` and `weir config history`: what runs, and what ran.

use std::io::Write;

use crate::cli::{ConfigDumpArgs, ConfigHistoryArgs, Where};
use crate::client::Output;
use crate::failure::Failure;
use crate::render;

/// `weir config dump`. The text goes out as it is, comments included: it is to be a file again.
pub(crate) fn dump(
    args: &ConfigDumpArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let client = at.client()?;
    let mut output = Output::new(json, to);
    match args.revision {
        None => output.put(&client.config_dump()?, |dump, screen| {
            render::config::file(&dump.yaml, screen)
        }),
        Some(revision) => output.put(&client.config_revision(revision)?, |old, screen| {
            render::config::file(&old.yaml, screen)
        }),
    }
}

/// `weir config history`.
pub(crate) fn history(
    args: &ConfigHistoryArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    Output::new(json, to).put(
        &at.client()?.config_history(args.max, None)?,
        render::config::history,
    )
}
