//! `weir run`.

use std::io::Write;

use crate::cli::RunArgs;
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(_args: &RunArgs, _socket: Option<&std::path::Path>, _to: &mut dyn Write) -> Result<(), Failure> {
    Err(Failure::said("`weir run` is not in this build"))
}
