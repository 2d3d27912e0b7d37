//! Rules of `linux`: which interfaces Linux can have, and what they are called there.

use std::collections::BTreeMap;

use super::Rules;
use crate::findings::{Segment, at};

/// The most bytes of a Linux interface's name (`IFNAMSIZ` less the end).
const LONGEST_NAME: usize = 15;

impl Rules<'_, '_> {
    pub(super) fn linux(&mut self) {
        let config = &self.candidate.config;
        if let Some(fpm) = config.linux.fpm.as_ref()
            && !fpm.address.is_loopback()
        {
            self.warning(
                at!["linux", "fpm", "address"],
                format!("every host that reaches {} can set routes", fpm.address),
                "FPM has no authentication",
                "use 127.0.0.1 or ::1, or limit by a firewall which hosts reach the port".into(),
            );
        }
        if let Some(bmp) = config.linux.bmp.as_ref() {
            if !bmp.address.is_loopback() {
                self.warning(
                    at!["linux", "bmp", "address"],
                    format!("every host that reaches {} can set AS paths", bmp.address),
                    "BMP has no authentication",
                    "use 127.0.0.1 or ::1, or limit by a firewall which hosts reach the port"
                        .into(),
                );
            }
            let is_same =
                |fpm: &crate::LinuxFpm| (fpm.address, fpm.port) == (bmp.address, bmp.port);
            if config.linux.fpm.as_ref().is_some_and(is_same) {
                self.error(
                    at!["linux", "bmp", "port"],
                    format!(
                        "`fpm` listens on port {} of {} already",
                        bmp.port, bmp.address
                    ),
                    "",
                    "give one of them another port".into(),
                );
            }
        }
        let mut names: BTreeMap<&str, (&str, bool)> = BTreeMap::new();
        for interface in config.linux.interfaces.keys() {
            let (at, is_lcp) = self.place_of_tap(interface);
            let at = &at[..];
            let Some(paired) = config.interfaces.get(interface) else {
                self.error(
                    at,
                    format!("there is no interface `{interface}`"),
                    "",
                    "name one under `interfaces`, `loopbacks` or `bondethernets`".into(),
                );
                continue;
            };
            if paired.l2xc.is_some() || paired.bond.is_some() {
                self.error(
                    at,
                    format!("the interface `{interface}` is not routed: Linux would get nothing"),
                    "cross-connected, or a member of a bond",
                    "take it out of `linux`, or route it".into(),
                );
            }
            let name = config.linux.name_of(interface).unwrap_or_default();
            // The rules of `lcp` report its names.
            if !is_lcp && (name.len() > LONGEST_NAME || name.contains('/')) {
                self.error(
                    at,
                    format!("`{name}` cannot be the name of a Linux interface"),
                    "",
                    format!("give it a `name` of at most {LONGEST_NAME} bytes without `/`"),
                );
            }
            if let Some((other, of_lcp)) = names.insert(name, (interface, is_lcp))
                && !(is_lcp && of_lcp)
            {
                self.error(
                    at,
                    format!("`{other}` and `{interface}` have one name in Linux, `{name}`"),
                    "",
                    "give one of them another `name`".into(),
                );
            }
        }
    }

    /// Where the file names the TAP of an interface, and whether by `lcp`.
    fn place_of_tap<'n>(&self, interface: &'n str) -> (Vec<Segment<'n>>, bool) {
        let linux = self.root.value("linux");
        let all = linux.and_then(|linux| linux.value("interfaces"));
        if all.is_some_and(|all| all.value(interface).is_some()) {
            return (at!["linux", "interfaces", interface].to_vec(), false);
        }
        let has = |section: &str| {
            let entries = self.root.value(section);
            entries.is_some_and(|all| all.value(interface).is_some())
        };
        let place = match interface.rsplit_once('.') {
            _ if has("interfaces") => at!["interfaces", interface, "lcp"].to_vec(),
            _ if has("loopbacks") => at!["loopbacks", interface, "lcp"].to_vec(),
            Some((parent, id)) => at!["interfaces", parent, "sub-interfaces", id, "lcp"].to_vec(),
            None => at!["interfaces"].to_vec(),
        };
        (place, true)
    }
}
