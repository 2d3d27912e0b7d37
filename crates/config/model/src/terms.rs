//! Terms of access lists in words, and which terms differ between two lists.
//!
//! A term's number is its index in the file (`acls.NAME.terms[0]`), as in `weir show acl`.

use std::collections::HashMap;
use std::fmt::Write;

use crate::access_list::{AccessList, Family, Octets, Ports, Scope, Term, TermAction};

/// Differences that a plan lists one by one; the rest is a count.
const LISTED: usize = 4;

impl Term {
    /// What packets must have, in the file's words; `any` when the term matches every packet.
    #[must_use]
    pub fn match_text(&self) -> String {
        let family = match self.family {
            Family::Any => None,
            Family::Ipv4 => Some("ipv4".to_owned()),
            Family::Ipv6 => Some("ipv6".to_owned()),
        };
        let scope =
            |key: &str, scope: &Scope| (*scope != Scope::Any).then(|| format!("{key} {scope}"));
        let ports =
            |key: &str, ports: Ports| (ports != Ports::ANY).then(|| format!("{key} {ports}"));
        let octets =
            |key: &str, octets: Octets| (octets != Octets::ANY).then(|| format!("{key} {octets}"));
        let words = [
            family,
            self.protocol.map(|protocol| protocol.to_string()),
            scope("source", &self.source),
            ports("source-port", self.source_port),
            scope("destination", &self.destination),
            ports("destination-port", self.destination_port),
            octets("icmp-type", self.icmp_type),
            octets("icmp-code", self.icmp_code),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        if words.is_empty() {
            "any".to_owned()
        } else {
            words.join(" ")
        }
    }

    /// Action and match: `deny tcp destination-port 25`.
    fn text(&self) -> String {
        let action = match self.action {
            TermAction::Permit => "permit",
            TermAction::Deny => "deny",
        };
        format!("{action} {}", self.match_text())
    }
}

/// One difference between two lists, with the term's index where it is or was.
#[derive(Debug, PartialEq, Eq)]
enum Change<'a> {
    Added(usize, &'a Term),
    Removed(usize, &'a Term),
    Replaced(usize, &'a Term, &'a Term),
}

impl Change<'_> {
    fn text(&self) -> String {
        match self {
            Self::Added(index, term) => format!("add term {index} ({})", term.text()),
            Self::Removed(index, term) => format!("remove term {index} ({})", term.text()),
            Self::Replaced(index, from, to) => {
                let (old, new) = (from.text(), to.text());
                if old == new {
                    format!("describe term {index} ({new})")
                } else {
                    format!("term {index}: {old} -> {new}")
                }
            }
        }
    }
}

/// Which terms of a list change, for a line of a plan.
pub(crate) fn change_text(from: &AccessList, to: &AccessList) -> String {
    let changes = changes(&from.terms, &to.terms);
    let mut text = String::new();
    for change in changes.iter().take(LISTED) {
        let gap = if text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}{}", change.text());
    }
    if changes.len() > LISTED {
        let _ = write!(text, ", and {} more terms", changes.len() - LISTED);
    }
    if text.is_empty() {
        text.push_str("its description");
    }
    text
}

/// The differences in order, in time that grows with the lists: a term of `to` that is equal to a later term of
/// `from` keeps it, and what lies between two such pairs was replaced, added or removed.
fn changes<'a>(from: &'a [Term], to: &'a [Term]) -> Vec<Change<'a>> {
    let mut places: HashMap<&Term, Vec<usize>> = HashMap::new();
    for (index, term) in to.iter().enumerate().rev() {
        places.entry(term).or_default().push(index);
    }
    let (mut changes, mut old, mut new) = (Vec::new(), 0, 0);
    for (index, term) in from.iter().enumerate() {
        let Some(later) = places.get_mut(term) else {
            continue;
        };
        while later.pop_if(|place| *place < new).is_some() {}
        let Some(place) = later.pop() else { continue };
        between(from, to, (old, index), (new, place), &mut changes);
        (old, new) = (index + 1, place + 1);
    }
    between(from, to, (old, from.len()), (new, to.len()), &mut changes);
    changes
}

fn between<'a>(
    from: &'a [Term],
    to: &'a [Term],
    (old, old_end): (usize, usize),
    (new, new_end): (usize, usize),
    changes: &mut Vec<Change<'a>>,
) {
    let gone = from.get(old..old_end).unwrap_or_default();
    let come = to.get(new..new_end).unwrap_or_default();
    let both = gone.len().min(come.len());
    for (offset, (gone, come)) in gone.iter().zip(come).enumerate() {
        changes.push(Change::Replaced(new + offset, gone, come));
    }
    for (offset, term) in gone.iter().enumerate().skip(both) {
        changes.push(Change::Removed(old + offset, term));
    }
    for (offset, term) in come.iter().enumerate().skip(both) {
        changes.push(Change::Added(new + offset, term));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ports: &[u16]) -> AccessList {
        let term = |port: &u16| Term {
            protocol: Some("tcp".parse().unwrap()),
            destination_port: port.to_string().parse().unwrap(),
            ..Term::all(TermAction::Deny)
        };
        AccessList {
            description: None,
            terms: ports.iter().map(term).collect(),
        }
    }

    #[test]
    fn a_plan_names_the_terms_that_change() {
        let text = |from: &[u16], to: &[u16]| change_text(&list(from), &list(to));
        let term = |port: u16| format!("deny tcp destination-port {port}");
        assert_eq!(
            text(&[22, 25, 80], &[22, 26, 80]),
            format!("term 1: {} -> {}", term(25), term(26))
        );
        assert_eq!(
            text(&[22, 80], &[22, 25, 80]),
            format!("add term 1 ({})", term(25))
        );
        assert_eq!(
            text(&[22, 25, 80], &[22, 80]),
            format!("remove term 1 ({})", term(25))
        );
        assert_eq!(
            text(&[22, 25], &[25, 22]),
            format!("add term 0 ({}), remove term 1 ({})", term(25), term(25))
        );
        assert_eq!(
            text(&[22, 22], &[22]),
            format!("remove term 1 ({})", term(22))
        );
        let many: Vec<u16> = (1..=9).collect();
        let said = text(&many, &[]);
        assert!(said.ends_with("and 5 more terms"), "{said}");
        let mut described = list(&[22]);
        described.terms[0].description = Some("ssh".to_owned());
        assert_eq!(
            change_text(&list(&[22]), &described),
            format!("describe term 0 ({})", term(22))
        );
        let mut other = list(&[22]);
        other.description = Some("edge".to_owned());
        assert_eq!(change_text(&list(&[22]), &other), "its description");
    }

    #[test]
    fn a_match_is_written_as_in_the_file() {
        let mut term = Term::all(TermAction::Permit);
        assert_eq!(term.text(), "permit any");
        term.family = Family::Ipv6;
        term.protocol = Some("icmp6".parse().unwrap());
        term.source = "customers".parse().unwrap();
        term.icmp_type = "128".parse().unwrap();
        term.icmp_code = "0-3".parse().unwrap();
        assert_eq!(
            term.text(),
            "permit ipv6 ipv6-icmp source customers icmp-type 128 icmp-code 0-3"
        );
    }
}
