//! What makes an interface a bond: the `bondethernets` section in types.
//!
//! A bond is an interface whose device is this. Its members are not in here but each knows its bond, so
//! that one can join or leave while the others carry on. Anything here that differs makes another bond: it is taken
//! off and made anew, as vppcfg does it.

use serde::{Deserialize, Serialize};

/// How a bond chooses members, and how it talks to the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bond {
    /// Which members carry frames.
    #[serde(default)]
    pub mode: BondMode,
    /// What keeps a flow on one member.
    #[serde(default)]
    pub load_balance: LoadBalance,
    /// How often the far end is asked to speak.
    #[serde(default)]
    pub lacp_rate: LacpRate,
}

impl Bond {
    /// Whether the members are chosen by flow.
    #[must_use]
    pub const fn balances(&self) -> bool {
        matches!(self.mode, BondMode::Lacp | BondMode::Xor)
    }
}

impl std::fmt::Display for Bond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.mode.word())?;
        if self.balances() {
            write!(f, " by {}", self.load_balance.word())?;
        }
        if self.lacp_rate == LacpRate::Fast {
            f.write_str(", fast")
        } else {
            Ok(())
        }
    }
}

/// Which members carry frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BondMode {
    /// One after the other, frame by frame.
    RoundRobin,
    /// The first by name whose link is up.
    ActiveBackup,
    /// All carry every frame.
    Broadcast,
    /// Those that both ends agreed on (IEEE 802.1AX), by flow.
    #[default]
    Lacp,
    /// All whose link is up, by flow.
    Xor,
}

impl BondMode {
    /// The word in the file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::ActiveBackup => "active-backup",
            Self::Broadcast => "broadcast",
            Self::Lacp => "lacp",
            Self::Xor => "xor",
        }
    }
}

/// What keeps a flow on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBalance {
    /// MAC addresses.
    L2,
    /// MAC and IP addresses.
    L23,
    /// IP addresses, protocol and ports.
    #[default]
    L34,
}

impl LoadBalance {
    /// The word in the file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::L23 => "l23",
            Self::L34 => "l34",
        }
    }
}

/// How often the far end is asked to speak, and so how soon its silence is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LacpRate {
    /// Every 30 seconds; silence counts after 90.
    #[default]
    Slow,
    /// Every second; silence counts after 3.
    Fast,
}
