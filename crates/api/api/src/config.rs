//! The configuration over the API: checked, planned, applied, confirmed and rolled back
//! (`/v1/config/…`, `PATCH /v1/sflow`, `PATCH /v1/interfaces/{name}`).
//!
//! A file travels as its text, so that findings have places in it. A change is one transaction:
//! it is done whole and gets a revision, or it is refused and nothing changed. A change with
//! `confirm_seconds` is undone by the router itself unless `POST /v1/config/confirm` comes in
//! time; until then nobody else may change anything.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::{Timestamp, UpDown};

/// A configuration file to look at: `POST /v1/config/check` and `/v1/config/plan`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigText {
    /// The file's text.
    pub yaml: String,
    /// The file's name, for findings; absent = `configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub file: Option<String>,
    /// Keys that vppcfg knows and this router lacks are warnings, not errors.
    #[serde(default)]
    pub skip_unsupported: bool,
}

impl ConfigText {
    /// The name that findings say.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.file.as_deref().unwrap_or(DEFAULT_FILE)
    }
}

const DEFAULT_FILE: &str = "configuration";

/// The running configuration as a file: `GET /v1/config/dump`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConfigDump {
    /// The file's text; its plan against the same router is empty.
    pub yaml: String,
}

/// What is wrong with a file: the answer to `POST /v1/config/check`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConfigChecked {
    /// Whether the file could be applied: no finding is an error.
    pub ok: bool,
    /// Errors and warnings, in the order of the file.
    pub findings: Vec<Finding>,
}

impl ConfigChecked {
    /// An answer that tells these findings.
    #[must_use]
    pub fn new(findings: Vec<Finding>) -> Self {
        Self {
            ok: findings
                .iter()
                .all(|finding| finding.severity != FindingSeverity::Error),
            findings,
        }
    }
}

/// One finding in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Whether the file is refused for it.
    pub severity: FindingSeverity,
    /// The file's name as it was given.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
    /// How many characters it is about, at least 1.
    pub width: u32,
    /// The key, as `interfaces.xe0.mtu`; empty when it is about the whole file.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right; may be empty.
    pub help: String,
    /// All of it as a compiler prints it, with the line of the file; several lines, no colour.
    pub rendered: String,
}

/// Whether a file is refused for a finding.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FindingSeverity {
    /// The file is refused.
    Error,
    /// The file is good, but does something that is hardly meant.
    Warning,
}

/// What a change would do: the answer to `POST /v1/config/plan`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConfigPlan {
    /// Warnings about the file; a file with errors is refused instead, with the findings in the error.
    pub findings: Vec<Finding>,
    /// The steps in the order in which they would be done; none when the router runs so already.
    pub steps: Vec<ConfigStep>,
    /// Interfaces for which the file names no device.
    pub without_device: Vec<String>,
    /// Keys whose new value counts from the next start on.
    pub needs_restart: Vec<String>,
    /// What the BGP daemon would do with a changed `peering` section, a line each.
    #[serde(default)]
    pub peering: Vec<String>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigStep {
    /// Which part of the plan it belongs to.
    pub group: StepGroup,
    /// What is done, as `create-interface`.
    pub kind: String,
    /// What it is done to: an interface, a prefix.
    pub object: String,
    /// The step in words, with the old and the new value.
    pub text: String,
    /// What it disturbs that was not asked for; absent when it disturbs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbs: Option<String>,
}

/// The parts of a plan, in their order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StepGroup {
    /// What is no longer wanted goes.
    Prune,
    /// What is new is made.
    Create,
    /// What stays gets its new values.
    Sync,
}

impl std::fmt::Display for StepGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Prune => "prune",
            Self::Create => "create",
            Self::Sync => "sync",
        })
    }
}

/// What the running configuration is compared with: `POST /v1/config/diff`. One of the two.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = one_of_yaml_and_revision()))]
pub struct DiffRequest {
    /// A file's text: from what runs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yaml: Option<String>,
    /// A revision of the history: from it to what runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

/// The rule between keys that the endpoint keeps, as JSON Schema says it.
fn one_of_yaml_and_revision() -> serde_json::Value {
    let absent = serde_json::json!({ "type": "null" });
    serde_json::json!([
        { "required": ["yaml"], "properties": { "yaml": { "type": "string" }, "revision": absent } },
        { "required": ["revision"], "properties": { "revision": { "type": "integer" }, "yaml": absent } },
    ])
}

/// A difference between two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConfigDiff {
    /// Lines as `diff -u` prints them; empty when there is no difference.
    pub diff: String,
}

/// A file to apply: `POST /v1/config/apply`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The file's text.
    pub yaml: String,
    /// The file's name, for findings; absent = `configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub file: Option<String>,
    /// Why, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub comment: Option<String>,
    /// Who, for the history; absent = the user who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub author: Option<String>,
    /// Undo the change by itself unless it is confirmed within so many seconds, 1 to 86,400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub confirm_seconds: Option<u32>,
    /// Keys that vppcfg knows and this router lacks are warnings, not errors.
    #[serde(default)]
    pub skip_unsupported: bool,
}

impl ApplyRequest {
    /// The name that findings say.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.file.as_deref().unwrap_or(DEFAULT_FILE)
    }
}

/// A change that was done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// The number of what runs now in the history; unchanged when there was nothing to do.
    pub revision: u64,
    /// The steps that were done, in their order.
    pub steps: Vec<ConfigStep>,
    /// Keys whose new value counts from the next start on.
    pub needs_restart: Vec<String>,
    /// Warnings about the file.
    pub findings: Vec<Finding>,
    /// When the change is undone unless it is confirmed before; null = never.
    pub confirm_by: Option<Timestamp>,
}

/// The answer to `POST /v1/config/confirm`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Confirmed {
    /// The revision that stays now.
    pub revision: u64,
}

/// What to go back to: `POST /v1/config/rollback`. Neither `revision` nor `steps_back` = one back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = both_revision_and_steps_back()))]
pub struct RollbackRequest {
    /// This revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// So many revisions before the one that runs, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub steps_back: Option<u32>,
    /// Why, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub comment: Option<String>,
    /// Who, for the history; absent = the user who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub author: Option<String>,
    /// Undo it by itself unless it is confirmed within so many seconds, 1 to 86,400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub confirm_seconds: Option<u32>,
}

fn both_revision_and_steps_back() -> serde_json::Value {
    let number = serde_json::json!({ "type": "integer" });
    serde_json::json!({ "required": ["revision", "steps_back"], "properties": { "revision": number, "steps_back": number } })
}

/// Applied configurations, newest first: `GET /v1/config/history`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The revisions.
    pub revisions: Vec<Revision>,
    /// A change that runs, or that waits to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<ConfigLock>,
    /// There are older ones: the `before` that asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One applied configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// Its number; grows by each change.
    pub revision: u64,
    /// When it was applied.
    pub time: Timestamp,
    /// Who applied it.
    pub author: String,
    /// Why; may be empty.
    pub comment: String,
    /// Whether it stays: false while it waits to be confirmed.
    pub confirmed: bool,
    /// Whether it is what runs.
    pub running: bool,
    /// How many lines it has.
    pub lines: u32,
    /// Lines that it has and the one before it has not.
    pub lines_added: u32,
    /// Lines that the one before it has and it has not.
    pub lines_removed: u32,
}

/// One applied configuration with its text: `GET /v1/config/history/{revision}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionText {
    /// When, who and why.
    #[serde(flatten)]
    pub revision: Revision,
    /// The file's text.
    pub yaml: String,
}

/// Who holds the configuration, and until when; in the error of a change that comes meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigLock {
    /// Why it is held.
    pub reason: LockReason,
    /// Who changes.
    pub author: String,
    /// Since when.
    pub since: Timestamp,
    /// The client's user, when it came over the Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The client's process, when it came over the Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The client's address, when it came over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// When the change that waits is undone by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_by: Option<Timestamp>,
}

/// Why nobody else may change the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockReason {
    /// A change is being done.
    ApplyRunning,
    /// A change waits to be confirmed.
    ConfirmPending,
}

/// A short edit of sFlow: `PATCH /v1/sflow`. Absent = stays, null = back to the default
/// (RFC 7396).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct SflowPatch {
    /// One packet in this many is sampled; 0 = none.
    #[serde(default, skip_serializing_if = "Edit::is_keep")]
    pub sampling_rate: Edit<u32>,
    /// Seconds between two reports of an interface's counters; 0 = never.
    #[serde(default, skip_serializing_if = "Edit::is_keep")]
    pub polling_interval_seconds: Edit<u32>,
    /// Bytes of each sampled packet that are reported.
    #[serde(default, skip_serializing_if = "Edit::is_keep")]
    pub header_bytes: Edit<u32>,
}

/// A short edit of one interface: `PATCH /v1/interfaces/{name}`. Absent = stays, null = back to
/// the default (RFC 7396).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct InterfacePatch {
    /// Whether received packets are sampled.
    #[serde(default, skip_serializing_if = "Edit::is_keep")]
    pub sflow: Edit<bool>,
    /// Whether it is wanted up.
    #[serde(default, skip_serializing_if = "Edit::is_keep")]
    pub state: Edit<UpDown>,
    /// The largest IP packet that leaves it, in bytes.
    #[serde(default, skip_serializing_if = "Edit::is_keep")]
    pub mtu: Edit<u32>,
    /// Free text for people.
    #[serde(default, skip_serializing_if = "Edit::is_keep")]
    pub description: Edit<String>,
}

/// What an edit does with one value, as RFC 7396 has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Edit<T> {
    /// The key is absent: the value stays.
    #[default]
    Keep,
    /// The key is null: the value is as if the file did not have the key.
    Unset,
    /// The new value.
    Set(T),
}

impl<T> Edit<T> {
    /// Whether the value stays.
    pub const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// The value after the edit, given the one before it and the default.
    pub fn of(self, before: T, default: T) -> T {
        match self {
            Self::Keep => before,
            Self::Unset => default,
            Self::Set(value) => value,
        }
    }
}

impl<T> From<T> for Edit<T> {
    fn from(value: T) -> Self {
        Self::Set(value)
    }
}

impl<T: Serialize> Serialize for Edit<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => value.serialize(serializer),
            Self::Keep | Self::Unset => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Edit<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| value.map_or(Self::Unset, Self::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Edit<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Edit_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_tells_absent_from_null_from_a_value() {
        let patch: SflowPatch =
            serde_json::from_str(r#"{"sampling_rate": 100, "header_bytes": null}"#).unwrap();
        assert_eq!(
            patch,
            SflowPatch {
                sampling_rate: Edit::Set(100),
                header_bytes: Edit::Unset,
                ..SflowPatch::default()
            }
        );
        assert_eq!(
            serde_json::to_string(&patch).unwrap(),
            r#"{"sampling_rate":100,"header_bytes":null}"#
        );
        assert_eq!(
            (
                patch.sampling_rate.of(1, 9),
                patch.polling_interval_seconds.of(2, 9),
                patch.header_bytes.of(3, 9)
            ),
            (100, 2, 9)
        );
        assert!(serde_json::from_str::<SflowPatch>(r#"{"polling_interval": 1}"#).is_err());
        assert!(serde_json::from_str::<InterfacePatch>(r#"{"state": "sideways"}"#).is_err());
    }
}
