//! Files for other programs from the same section and data.

use serde::Deserialize;

/// The `outputs` key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Outputs {}
