//! vppcfg's `lcp`: the Linux name of an interface's TAP, as in `linux.interfaces`. Its own rules are those of VPP, because
//! the file is used with VPP, too.

use std::collections::HashMap;

use super::Rules;
use crate::build::sub_entries;
use crate::findings::{Segment, at};
use crate::tree::Node;

/// The longest name of a Linux device (`IFNAMSIZ`), without its end.
const LONGEST: usize = 15;

impl<'a> Rules<'a, '_> {
    pub(super) fn lcp(&mut self) {
        let root = self.root;
        let mut all: Vec<(Vec<Segment<'a>>, &'a Node<'a>, bool)> = Vec::new();
        for section in ["interfaces", "loopbacks"] {
            for entry in root.value(section).map_or(&[][..], Node::entries) {
                if let Some(lcp) = entry.value.value("lcp") {
                    all.push((at![section, &*entry.key, "lcp"].to_vec(), lcp, true));
                }
            }
        }
        for (parent, id, node) in sub_entries(root) {
            let Some(lcp) = node.value("lcp") else {
                continue;
            };
            let interfaces = root.value("interfaces");
            let of = interfaces.and_then(|all| all.value(parent));
            let has_parent = of.is_some_and(|of| of.value("lcp").is_some());
            let at = at!["interfaces", parent, "sub-interfaces", id, "lcp"];
            all.push((at.to_vec(), lcp, has_parent));
        }
        let mut names: HashMap<&str, String> = HashMap::new();
        for (at, lcp, has_parent) in all {
            let Some(name) = lcp.text() else {
                continue;
            };
            let is_odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
            if name.is_empty() || name.len() > LONGEST || name.contains(is_odd) {
                let help = format!("1 to {LONGEST} characters without space, `/` and `:`");
                let message = format!(
                    "{} is no name of a Linux device",
                    crate::diagnostic::quote(name)
                );
                self.error(&at, message, "", help);
            } else if let Some(first) = names.get(name) {
                let help = format!("`{first}` has it already");
                self.error(
                    &at,
                    format!("two devices are called `{name}`"),
                    "the second one",
                    help,
                );
            } else if !has_parent {
                self.error(
                    &at,
                    "a sub-interface has `lcp` and its parent has none".into(),
                    "",
                    "add `lcp` to the parent: in Linux the device is a VLAN of the parent's".into(),
                );
            }
            names
                .entry(name)
                .or_insert_with(|| crate::findings::render(&at));
        }
    }
}
