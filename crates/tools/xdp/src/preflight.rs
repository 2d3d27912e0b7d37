//! `weir xdp check`: whether the machine can do what a configuration says, before packets are lost to find out.
//!
//! Devices lose redirected frames without an error where a feature is missing, so features are read from the
//! kernel, not tried. Nothing is changed.

use serde::Serialize;
use weir_netlink::ethtool::{Ethtool, Offload};
use weir_netlink::route::Route;
use weir_netlink::xdp;

use crate::config::{Carries, Config, Mode};
use crate::error::Result;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As it should be.
    Good,
    /// Works, with a limit.
    Warning,
    /// Packets will be lost.
    Bad,
}

/// One thing that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The interface.
    pub interface: String,
    /// How bad it is.
    pub level: Level,
    /// What, and what to do.
    pub text: String,
}

/// Checks every configured interface in the namespace of the calling thread.
///
/// # Errors
/// When netlink cannot be used at all.
pub fn preflight(config: &Config) -> Result<Vec<Finding>> {
    let mut route = Route::open()?;
    let ethtool = Ethtool::open()?;
    let links = route.links()?;
    let mut found = Vec::new();
    for (name, port, _) in config.interfaces() {
        let mut add = |level, text: String| {
            found.push(Finding {
                interface: name.to_owned(),
                level,
                text,
            });
        };
        let Some(link) = links.iter().find(|link| link.name == name) else {
            add(
                Level::Warning,
                "it does not exist yet; it is served when it appears".into(),
            );
            continue;
        };
        match xdp::features(link.index) {
            Err(error) => add(
                Level::Warning,
                format!("its XDP features are unknown (Linux 6.3 reports them): {error}"),
            ),
            Ok(features) => {
                if config.mode == Mode::Native && !(features.native && features.redirect) {
                    add(
                        Level::Bad,
                        "the driver has no native XDP with redirect: set `mode: generic`".into(),
                    );
                }
                if config.mode == Mode::Native && !features.transmit_redirected {
                    add(
                        Level::Bad,
                        "the driver does not send redirected frames now; on veth, `ethtool -K PEER gro on` at the other end changes that".into(),
                    );
                }
            }
        }
        let is_on = |offload| ethtool.offload(name, offload).unwrap_or(false);
        if is_on(Offload::LargeReceive) {
            add(
                Level::Bad,
                format!("LRO joins packets: `ethtool -K {name} lro off`"),
            );
        }
        let driver = ethtool
            .driver(name)
            .map(|info| info.driver)
            .unwrap_or_default();
        let is_virtual = matches!(driver.as_str(), "veth" | "tun");
        if matches!(port.carries, Carries::Trunk { .. }) && is_on(Offload::RxVlan) && !is_virtual {
            add(
                Level::Bad,
                format!(
                    "the device takes VLAN tags off, so that programs cannot see them: `ethtool -K {name} rxvlan off`"
                ),
            );
        }
        if let Ok(channels) = ethtool.channels(name) {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            if !is_virtual && (channels.transmit_queues() as usize) < cpus {
                add(
                    Level::Warning,
                    format!(
                        "{} transmit queues for {cpus} CPUs: some drivers lose or lock where CPUs have no queue of their own",
                        channels.transmit_queues()
                    ),
                );
            }
        }
        if driver == "veth" {
            add(
                Level::Warning,
                "veth: switch transmit checksum offload off inside the guest (`ethtool -K eth0 tx off`); redirected packets keep unfinished checksums".into(),
            );
        }
        if driver == "tun" {
            add(
                Level::Warning,
                "tap: switch guest offloads off (csum, tso, ufo); redirected frames carry no offload information".into(),
            );
        }
        if link.mtu > 3506 {
            add(
                Level::Bad,
                format!(
                    "its MTU is {}; programs take frames of one page, MTU 3506 at most",
                    link.mtu
                ),
            );
        }
    }
    Ok(found)
}
