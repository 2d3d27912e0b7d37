//! The commands of `weir peering`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// `weir peering`.
#[derive(Debug, Subcommand)]
pub(crate) enum PeeringCommand {
    /// Check the `peering` section against the snapshot, and the result with `bird -p`
    Check(PeeringArgs),
    /// Write the BIRD configuration
    Build(PeeringBuildArgs),
    /// Run policy cases against the generated filters, in a BIRD without sessions
    #[command(after_help = TEST_EXAMPLES)]
    Test(PeeringTestArgs),
}

pub(super) const PEERING_EXAMPLES: &str = "\
Examples:
  weir peering check -c weir.yaml --snapshot data
  weir peering build -c weir.yaml --snapshot data -o /etc/bird/bird.conf
  weir peering test -c weir.yaml --snapshot data cases.yaml

The snapshot is a folder: irr/SET.4.json and irr/SET.6.json as `bgpq4 -j -l NN SET` writes them (`:` in the
name is `_`), and vrps.json as rpki-client writes it. What it lacks is an error, and never an open filter.";

const TEST_EXAMPLES: &str = "\
A case:
  - {from: 64500, route: 203.0.113.0/24, path: [64500, 64501], expect: rpki-invalid}

`expect` is accept, or why the route is rejected: path-too-long, bogon-asn, first-as, prefix-length,
bogon-prefix, transit-free-asn, rpki-invalid, not-in-irr. Exit code 1 when a case got another verdict.";

/// The section and the data.
#[derive(Debug, Args)]
pub(crate) struct PeeringArgs {
    /// The file with the `peering` section
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// The folder with IRR and RPKI data
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) snapshot: PathBuf,
}

/// `weir peering build`.
#[derive(Debug, Args)]
pub(crate) struct PeeringBuildArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    /// Where to [default: standard output]; an existing file is replaced at once
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// `weir peering test`.
#[derive(Debug, Args)]
pub(crate) struct PeeringTestArgs {
    #[command(flatten)]
    pub(crate) of: PeeringArgs,
    /// The file with the cases
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cases: PathBuf,
}
