//! The command line of `weir doctor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

pub(crate) const DOCTOR_EXAMPLES: &str = "\
Examples:
  weir doctor                          what hurts forwarding on this host, worst first
  weir doctor --json
  weir doctor --explain ring-size      what a check is about
  sudo weir doctor --fix bpf-jit       makes the changes of one check
  sudo weir doctor --undo bpf-jit      and takes them back
  weir doctor --root recorded          a host that was recorded into a folder

Exit codes:
  0  nothing worse than advice
  1  at least one warning, or a change failed
  6  at least one critical finding

Nothing is changed without --fix.";

/// `weir doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Run these checks only
    #[arg(value_name = "CHECK")]
    pub(crate) checks: Vec<String>,
    /// List all checks
    #[arg(long, conflicts_with = "checks")]
    pub(crate) list: bool,
    /// Explain a check
    #[arg(long, value_name = "CHECK", conflicts_with_all = ["checks", "list"])]
    pub(crate) explain: Option<String>,
    /// Make the changes that a check proposes
    #[arg(long, value_name = "CHECK", conflicts_with_all = ["checks", "list", "explain"])]
    pub(crate) fix: Option<String>,
    /// Undo the changes that --fix made for a check
    #[arg(long, value_name = "CHECK", conflicts_with_all = ["checks", "list", "explain", "fix"])]
    pub(crate) undo: Option<String>,
    /// Read /proc, /sys and commands/ below this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "/")]
    pub(crate) root: PathBuf,
    /// Where --fix notes what undoes its changes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "/var/lib/weir/doctor.json")]
    pub(crate) record: PathBuf,
}
