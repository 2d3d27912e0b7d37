//! `weir bench`.

use std::io::Write;

use crate::cli::BenchArgs;
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(_args: &BenchArgs, _to: &mut dyn Write) -> Result<(), Failure> {
    Err(Failure::said("`weir bench` is not in this build"))
}
