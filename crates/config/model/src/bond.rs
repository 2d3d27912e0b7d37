//! What makes an interface a bond: the `bondethernets` section in types.
//!
//! A bond is an interface whose device is this. Its members are not in here but each knows its bond, so
//! that one can join or leave while the others carry on. Anything here that differs makes another bond: it is taken
//! off and made anew, as vppcfg does it.

use weir_config_derive::{Section, Words};

/// How a bond selects members, and how it runs LACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Section)]
#[section(example = "{mode: lacp}")]
pub struct Bond {
    /// Which members carry frames: with `lacp` those that both ends agreed on (IEEE 802.1AX), with
    /// `xor` all whose link is up, both by flow; with `active-backup` the first by name whose link
    /// is up; with `round-robin` one after the other, with `broadcast` all of them, for every
    /// frame.
    #[key(example = "active-backup")]
    pub mode: BondMode,
    /// What keeps a flow on one member, in modes `lacp` and `xor`: MAC addresses, those and IP
    /// addresses, or IP addresses, protocol and ports. VLAN tags are skipped.
    #[key(example = "l2")]
    pub load_balance: LoadBalance,
    /// How often the partner is asked to send LACPDUs, in mode `lacp`: every 30 seconds with a
    /// timeout of 90, or every second with a timeout of 3. (vppcfg does not have this key.)
    #[key(example = "fast")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
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

/// What keeps a flow on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum LoadBalance {
    /// MAC addresses.
    L2,
    /// MAC and IP addresses.
    L23,
    /// IP addresses, protocol and ports.
    #[default]
    L34,
}

/// How often the partner is asked to send LACPDUs, which determines the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum LacpRate {
    /// Every 30 seconds; the timeout is 90.
    #[default]
    Slow,
    /// Every second; the timeout is 3.
    Fast,
}
