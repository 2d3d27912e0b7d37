//! Whether the router does all that its configuration says (`GET /v1/system`).
//!
//! One list of what is missing, refused or running short, so that an operator, a service manager and
//! an alert see the same. It costs little: no table is walked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the router as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// `degraded` when at least one problem is.
    pub state: Health,
    /// What is wrong, the worst first.
    pub problems: Vec<Problem>,
}

impl System {
    /// The state that follows from these problems.
    #[must_use]
    pub fn of(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.severity == ProblemSeverity::Notice);
        let degraded = problems
            .iter()
            .any(|problem| problem.severity == ProblemSeverity::Degraded);
        let state = if degraded {
            Health::Degraded
        } else {
            Health::Ok
        };
        Self { state, problems }
    }
}

/// Whether the router does all that its configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// It does.
    #[default]
    Ok,
    /// A part of it does not work now.
    Degraded,
}

impl std::fmt::Display for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
        })
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Whether something does not work now.
    pub severity: ProblemSeverity,
    /// Which part of the router.
    pub component: Component,
    /// Which interface, collector, pool or section of the file.
    pub object: String,
    /// What is wrong, in one sentence.
    pub message: String,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemSeverity {
    /// Something that the configuration asks for does not work now.
    Degraded,
    /// Something to know about.
    Notice,
}

impl std::fmt::Display for ProblemSeverity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Degraded => "degraded",
            Self::Notice => "notice",
        })
    }
}

/// A part of the router that can have a problem.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Component {
    /// An interface and its port.
    Interface,
    /// The sFlow agent and its collectors.
    Sflow,
    /// The flow exporter and its collectors.
    Ipfix,
    /// Packet memory.
    Buffers,
    /// Applied configurations.
    History,
    /// The configuration itself.
    Config,
}

impl Component {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Interface,
        Self::Sflow,
        Self::Ipfix,
        Self::Buffers,
        Self::History,
        Self::Config,
    ];

    /// Its word in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Sflow => "sflow",
            Self::Ipfix => "ipfix",
            Self::Buffers => "buffers",
            Self::History => "history",
            Self::Config => "config",
        }
    }
}

impl std::fmt::Display for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}
