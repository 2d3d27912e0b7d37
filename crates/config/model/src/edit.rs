//! Single settings set in the text of a file, so that its comments, order and spelling stay.
//!
//! A value that is there is replaced; one that is not is put before the first key of its section. That covers how
//! files are usually written. The caller checks that the new text means what it wants, because an anchor or an unusual form may
//! make it mean something else; then it writes the whole file anew.

use crate::credentials::end_of_scalar;
use crate::tree::{Content, Entry, Limits, Node, read};

/// The text with these keys set in the section that `path` names; `None` when the section is not in the text, or
/// the text is no YAML. A value is a scalar as YAML writes it.
#[must_use]
pub fn set_in_text(text: &str, path: &[&str], keys: &[(&str, String)]) -> Option<String> {
    let mut text = text.to_owned();
    for (key, value) in keys {
        text = set_one(&text, path, key, value)?;
    }
    Some(text)
}

fn set_one(text: &str, path: &[&str], key: &str, value: &str) -> Option<String> {
    let limits = Limits {
        bytes: usize::MAX,
        separators: usize::MAX,
        nodes: usize::MAX,
        ..Limits::default()
    };
    let tree = read(text, &limits).ok()?;
    let mut section = &tree.root;
    for name in path {
        let Some(next) = section.value(name) else {
            // Only a section at the top is added: where another one belongs is for its writer to say.
            let [name] = path else { return None };
            return Some(appended(text, name, key, value));
        };
        section = next;
    }
    if let Some(entry) = section.entry(key) {
        return replaced(text, &entry.value, value);
    }
    inserted(text, section.entries().first()?, key, value)
}

fn appended(text: &str, section: &str, key: &str, value: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{end}{section}:\n  {key}: {value}\n")
}

/// The byte at which a place begins.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let mut start = 0;
    for _ in 1..line {
        start += text.get(start..)?.find('\n')? + 1;
    }
    let column = (column as usize).checked_sub(1)?;
    let rest = text.get(start..)?;
    let at = rest.char_indices().nth(column).map(|(at, _)| at);
    Some(start + at.unwrap_or(rest.len()))
}

fn replaced(text: &str, node: &Node<'_>, value: &str) -> Option<String> {
    let Content::Scalar { text: old, plain } = &node.content else {
        return None;
    };
    let start = offset(text, node.place.line, node.place.column)?;
    let rest = text.get(start..)?;
    let line = rest.split_inclusive('\n').next()?;
    let length = if *plain {
        line.starts_with(old.as_ref()).then_some(old.len())?
    } else {
        end_of_scalar(line)
    };
    let (before, after) = (text.get(..start)?, rest.get(length..)?);
    Some(format!("{before}{value}{after}"))
}

/// Before the first key of the section: on a line of its own, or in the same brackets.
fn inserted(text: &str, first: &Entry<'_>, key: &str, value: &str) -> Option<String> {
    let at = offset(text, first.place.line, first.place.column)?;
    let (before, after) = (text.get(..at)?, text.get(at..)?);
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.trim().is_empty() {
        return Some(format!("{before}{key}: {value}\n{line}{after}"));
    }
    let in_brackets = line.trim_end().ends_with(['{', ',']);
    in_brackets.then(|| format!("{before}{key}: {value}, {after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, path: &[&str], key: &str, value: &str) -> Option<String> {
        set_in_text(text, path, &[(key, value.to_owned())])
    }

    const FILE: &str = "# my router
interfaces:
  wan:            # to the world
    # the provider's MTU
    mtu: 1492     # PPPoE
    description: \"a # b\"  # why
  lan: { mtu: 9000, state: down }  # inside
  bare:
";

    #[test]
    fn what_is_there_is_replaced_and_comments_stay() {
        let done = set(FILE, &["interfaces", "wan"], "mtu", "1500").unwrap();
        assert_eq!(done, FILE.replace("1492 ", "1500 "));
        let done = set(FILE, &["interfaces", "wan"], "description", "'c'").unwrap();
        assert_eq!(done, FILE.replace("\"a # b\"", "'c'"));
        let done = set(FILE, &["interfaces", "lan"], "state", "up").unwrap();
        assert_eq!(done, FILE.replace("down", "up"));
    }

    #[test]
    fn what_is_not_there_is_put_before_the_first_key() {
        let done = set(FILE, &["interfaces", "wan"], "sflow", "true").unwrap();
        assert_eq!(
            done,
            FILE.replace("    mtu: 1492", "    sflow: true\n    mtu: 1492")
        );
        let done = set(FILE, &["interfaces", "lan"], "sflow", "true").unwrap();
        assert_eq!(done, FILE.replace("{ mtu", "{ sflow: true, mtu"));
        let done = set(FILE, &["sflow"], "header-bytes", "64").unwrap();
        assert_eq!(done, format!("{FILE}sflow:\n  header-bytes: 64\n"));
    }

    #[test]
    fn what_cannot_be_set_in_place_is_left_to_the_caller() {
        assert_eq!(set(FILE, &["interfaces", "nobody"], "mtu", "1500"), None);
        assert_eq!(set(FILE, &["interfaces", "bare"], "mtu", "1500"), None);
        assert_eq!(set("a: [", &["a"], "b", "c"), None);
    }
}
