//! `weir demo`.

use std::io::Write;

use crate::cli::DemoArgs;
use crate::failure::Failure;

/// Does it.
pub(crate) fn execute(_args: &DemoArgs, _to: &mut dyn Write) -> Result<(), Failure> {
    Err(Failure::said("`weir demo` is not in this build"))
}
