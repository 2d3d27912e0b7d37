//! What a new configuration changes, for `weir xdp plan`.

use std::collections::BTreeMap;

use super::Config;

/// One line for each port, bond, ACL and setting that differs: `+` new, `-` gone, `~` changed.
#[must_use]
pub fn plan(old: &Config, new: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    compare("port", &old.ports, &new.ports, &mut lines);
    compare("bond", &old.bonds, &new.bonds, &mut lines);
    compare("acl", &old.acls, &new.acls, &mut lines);
    let settings = [
        ("unconfigured", old.unconfigured != new.unconfigured),
        ("ageing", old.ageing != new.ageing),
        ("connections", old.connections != new.connections),
        ("sflow", old.sflow != new.sflow),
        (
            "api (takes effect when the daemon starts again)",
            old.metrics != new.metrics,
        ),
        (
            "mode (takes effect when the daemon starts again)",
            old.mode != new.mode,
        ),
    ];
    lines.extend(
        settings
            .iter()
            .filter(|it| it.1)
            .map(|it| format!("~ {}", it.0)),
    );
    lines
}

fn compare<T: PartialEq>(
    kind: &str,
    old: &BTreeMap<String, T>,
    new: &BTreeMap<String, T>,
    lines: &mut Vec<String>,
) {
    for (name, value) in new {
        match old.get(name) {
            None => lines.push(format!("+ {kind} {name}")),
            Some(before) if before != value => lines.push(format!("~ {kind} {name}")),
            Some(_) => (),
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        lines.push(format!("- {kind} {name}"));
    }
}
