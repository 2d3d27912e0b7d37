//! `weir config`: configurations, as files, as changes and as history.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::values::confirm_within;

/// `weir config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file: every error with its line, its key and what would be right
    #[command(after_help = CHECK_NOTES)]
    Check(ConfigCheckArgs),
    /// Show the steps from the running configuration to a file
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(ConfigPlanArgs),
    /// Make a running router as a file says, whole or not at all
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(ConfigApplyArgs),
    /// Compare the running configuration with a file or an earlier one, line by line
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(ConfigDiffArgs),
    /// Print the running configuration, or an earlier one, as a file
    Dump(ConfigDumpArgs),
    /// Keep the change that waits to be confirmed
    Confirm,
    /// Go back to an earlier configuration
    #[command(after_help = ROLLBACK_EXAMPLES)]
    Rollback(ConfigRollbackArgs),
    /// List the applied configurations: when, by whom, why
    History(ConfigHistoryArgs),
    /// Print the JSON Schema of configuration files, for editors (needs no router)
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
}

const CHECK_NOTES: &str = "\
Examples:
  weir config check -c weir.yaml
  weir config check -c weir.yaml --running
  weir config check -c vppcfg.yaml --skip-unsupported

Exit code 4 when the file is refused; warnings alone are no reason.";

const PLAN_EXAMPLES: &str = "\
Examples:
  weir config plan -c new.yaml                    against the running router
  weir config plan -c new.yaml --from old.yaml    between two files, without a router
  weir config plan -c new.yaml --offline          from nothing, without a router";

const DIFF_EXAMPLES: &str = "\
Examples:
  weir config diff -c new.yaml                    from what runs to a file
  weir config diff 12                             from revision 12 to what runs
  weir config diff -c new.yaml --from old.yaml    between two files, without a router";

const APPLY_EXAMPLES: &str = "\
Examples:
  weir config apply -c new.yaml --dry-run
  weir config apply -c new.yaml --confirm 5m --comment \"second uplink\"
  weir config confirm

With --confirm the router undoes the change by itself unless `weir config confirm` comes in time,
also when the connection or the router is lost in between.";

const ROLLBACK_EXAMPLES: &str = "\
Examples:
  weir config history
  weir config rollback                 to the one before what runs, or undo what waits
  weir config rollback 12              to revision 12";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  weir config schema > weir.schema.json

An editor with a YAML language server then completes and checks files that begin with
  # yaml-language-server: $schema=weir.schema.json";

/// A configuration file.
#[derive(Debug, Args)]
pub(crate) struct ConfigFileArgs {
    /// The configuration file; - = standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Leave out, with a warning, what vppcfg has and this version lacks
    #[arg(long)]
    pub(crate) skip_unsupported: bool,
}

/// `weir config check`.
#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFileArgs,
    /// Also against the machine of the running router: devices, queues, MTUs
    #[arg(long)]
    pub(crate) running: bool,
}

/// `weir config plan`.
#[derive(Debug, Args)]
pub(crate) struct ConfigPlanArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFileArgs,
    /// Plan from this file instead of the running configuration
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "offline")]
    pub(crate) from: Option<PathBuf>,
    /// Plan from nothing instead of the running configuration
    #[arg(long)]
    pub(crate) offline: bool,
}

/// `weir config apply`.
#[derive(Debug, Args)]
pub(crate) struct ConfigApplyArgs {
    #[command(flatten)]
    pub(crate) file: ConfigFileArgs,
    /// Undo it after this time unless it is confirmed: 90s, 5m, 1h, at most a day
    #[arg(long, value_name = "DURATION", value_parser = confirm_within)]
    pub(crate) confirm: Option<Duration>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `weir config diff`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("other").required(true).args(["config", "revision"]))]
pub(crate) struct ConfigDiffArgs {
    /// To this file; - = standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// From this file instead of the running configuration, without a router
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "config")]
    pub(crate) from: Option<PathBuf>,
    /// From this revision to what runs
    #[arg(value_name = "REVISION")]
    pub(crate) revision: Option<u64>,
}

/// `weir config dump`.
#[derive(Debug, Args)]
pub(crate) struct ConfigDumpArgs {
    /// This revision instead of what runs
    #[arg(value_name = "REVISION")]
    pub(crate) revision: Option<u64>,
}

/// `weir config rollback`.
#[derive(Debug, Args)]
pub(crate) struct ConfigRollbackArgs {
    /// The revision, as the history numbers it [default: the one before]
    #[arg(value_name = "REVISION")]
    pub(crate) revision: Option<u64>,
    /// So many revisions back instead
    #[arg(long, value_name = "COUNT", conflicts_with = "revision", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) back: Option<u32>,
    /// Undo it after this time unless it is confirmed: 90s, 5m, 1h, at most a day
    #[arg(long, value_name = "DURATION", value_parser = confirm_within)]
    pub(crate) confirm: Option<Duration>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
}

/// `weir config history`.
#[derive(Debug, Args)]
pub(crate) struct ConfigHistoryArgs {
    /// Only the last so many
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: Option<u32>,
}
