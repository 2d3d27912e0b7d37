//! `weir sflow decode`.

use std::io::Write;

use crate::cli::SflowDecodeArgs;
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(_args: &SflowDecodeArgs, _to: &mut dyn Write) -> Result<(), Failure> {
    Err(Failure::said("`weir sflow decode` is not in this build"))
}
