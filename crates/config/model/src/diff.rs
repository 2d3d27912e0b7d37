//! What differs between two configurations, as a unified diff of the files that say them.
//!
//! The lines of both come from one table in one order, and every line knows what it is about. So
//! the two trees are walked side by side, in time that grows with their size, and a line stands
//! against the line about the same thing: no interface is ever shown as a mixture of two others,
//! as happens to programs that only see text.

use std::collections::HashMap;
use std::fmt::Write;

use crate::dump::{Block, blocks};
use crate::model::Config;

/// Lines shown before and after a change.
const CONTEXT: usize = 3;

/// How the file of one configuration becomes that of another: a unified diff, under the two
/// names; empty when they are equal.
#[must_use]
pub fn diff(from_name: &str, from: &Config, to_name: &str, to: &Config) -> String {
    if from == to {
        return String::new();
    }
    let mut lines = Vec::new();
    compare(&blocks(from), &blocks(to), 0, &mut lines);
    let mut text = format!("--- {from_name}\n+++ {to_name}\n");
    hunks(&lines, &mut text);
    text
}

/// A line and whether it stays (` `), goes (`-`) or comes (`+`).
struct Line {
    sign: char,
    text: String,
}

fn compare(from: &[Block], to: &[Block], depth: usize, lines: &mut Vec<Line>) {
    let place: HashMap<&str, usize> = to
        .iter()
        .enumerate()
        .map(|(index, block)| (block.id.as_str(), index))
        .collect();
    let mut next = 0;
    for block in from {
        // What is the same thing, and not yet passed by.
        let Some(at) = place
            .get(block.id.as_str())
            .copied()
            .filter(|at| *at >= next)
        else {
            write(block, '-', depth, lines);
            continue;
        };
        to.iter()
            .take(at)
            .skip(next)
            .for_each(|block| write(block, '+', depth, lines));
        next = at + 1;
        if let Some(other) = to.get(at) {
            pair(block, other, depth, lines);
        }
    }
    to.iter()
        .skip(next)
        .for_each(|block| write(block, '+', depth, lines));
}

fn pair(from: &Block, to: &Block, depth: usize, lines: &mut Vec<Line>) {
    if from.line == to.line {
        lines.push(Line {
            sign: ' ',
            text: indented(&from.line, depth),
        });
        compare(&from.below, &to.below, depth + 1, lines);
    } else {
        write(from, '-', depth, lines);
        write(to, '+', depth, lines);
    }
}

fn write(block: &Block, sign: char, depth: usize, lines: &mut Vec<Line>) {
    block.write(depth, &mut |line, depth| {
        lines.push(Line {
            sign,
            text: indented(line, depth),
        })
    });
}

fn indented(line: &str, depth: usize) -> String {
    format!("{}{line}", "  ".repeat(depth))
}

/// Changes with their context, those that are close to each other together.
fn hunks(lines: &[Line], text: &mut String) {
    let changed: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.sign != ' ')
        .map(|(index, _)| index)
        .collect();
    let (mut old, mut new, mut passed) = (0, 0, 0);
    for group in changed.chunk_by(|one, other| other - one <= 2 * CONTEXT + 1) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let start = first.saturating_sub(CONTEXT);
        let end = (last + CONTEXT + 1).min(lines.len());
        let (before, here) = (
            lines.get(passed..start).unwrap_or(&[]),
            lines.get(start..end).unwrap_or(&[]),
        );
        old += before.len();
        new += before.len();
        let (gone, come) = (
            here.iter().filter(|it| it.sign != '+').count(),
            here.iter().filter(|it| it.sign != '-').count(),
        );
        // POSIX diff: the number of the first line, or of the one before when there is none.
        let number = |passed: usize, count: usize| if count == 0 { passed } else { passed + 1 };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "@@ -{},{gone} +{},{come} @@",
            number(old, gone),
            number(new, come)
        );
        here.iter().for_each(|line| {
            let _ = writeln!(text, "{}{}", line.sign, line.text);
        });
        (old, new, passed) = (old + gone, new + come, end);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::arbitrary::{Devices, pair};
    use crate::dump::to_yaml;

    /// What `patch` does, and no tolerance: every line and number has to be right.
    fn patched(from: &str, diff: &str) -> String {
        let old: Vec<&str> = from.lines().collect();
        let (mut new, mut at): (Vec<&str>, usize) = (Vec::new(), 0);
        let mut lines = diff.lines().skip(2).peekable();
        while let Some(head) = lines.next() {
            let numbers: Vec<usize> = head
                .split([' ', ',', '-', '+', '@'])
                .filter_map(|it| it.parse().ok())
                .collect();
            let [start, gone, new_start, come] = numbers[..] else {
                panic!("{head}")
            };
            let start = if gone == 0 { start } else { start - 1 };
            new.extend(&old[at..start]);
            assert_eq!(
                new.len(),
                if come == 0 { new_start } else { new_start - 1 },
                "{diff}"
            );
            at = start;
            let before = (at, new.len());
            while let Some(line) = lines.next_if(|line| !line.starts_with("@@")) {
                let (sign, text) = line.split_at(1);
                if sign != "+" {
                    assert_eq!(old[at], text, "{diff}");
                    at += 1;
                }
                if sign != "-" {
                    new.push(text);
                }
            }
            assert_eq!(
                (at - before.0, new.len() - before.1),
                (gone, come),
                "{diff}"
            );
        }
        new.extend(&old[at..]);
        new.iter().map(|line| format!("{line}\n")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(3), ..ProptestConfig::default() })]

        #[test]
        fn the_old_file_patched_is_the_new_one((from, to) in pair(Devices::Any)) {
            let diff = diff("a", &from, "b", &to);
            prop_assert_eq!(diff.is_empty(), from == to);
            if from != to {
                prop_assert_eq!(patched(&to_yaml(&from), &diff), to_yaml(&to));
            }
        }
    }

    fn of(text: &str) -> Config {
        match crate::check("file", text) {
            Ok((config, _)) => config,
            Err(errors) => panic!("{}", errors[0]),
        }
    }

    #[test]
    fn changes_stand_in_their_context() {
        let from = of(
            "interfaces: {xe0: {addresses: [192.0.2.1/24]}, xe1: {}, xe2: {mtu: 9000}}\nroutes: [{prefix: 10.0.0.0/8, via: 192.0.2.9}]",
        );
        let to = of(
            "interfaces: {xe0: {addresses: [192.0.2.1/24, 192.0.2.2/24]}, xe2: {}}\nroutes: [{prefix: 10.0.0.0/8, via: blackhole}]",
        );
        let expected = "\
--- running
+++ wanted
@@ -2,9 +2,8 @@
   xe0:
     addresses:
       - 192.0.2.1/24
+      - 192.0.2.2/24
-  xe1: {}
-  xe2:
-    mtu: 9000
+  xe2: {}
 routes:
   - prefix: 10.0.0.0/8
-    via: 192.0.2.9
+    via: blackhole
";
        assert_eq!(diff("running", &from, "wanted", &to), expected);
        assert_eq!(diff("a", &to, "b", &to), "");
    }

    #[test]
    fn everything_may_come_or_go() {
        let some = of("interfaces: {xe0: {mtu: 9000}}");
        let nothing = Config::default();
        assert_eq!(
            diff("a", &nothing, "b", &some),
            "--- a\n+++ b\n@@ -1,1 +1,3 @@\n-{}\n+interfaces:\n+  xe0:\n+    mtu: 9000\n"
        );
        assert_eq!(
            diff("a", &some, "b", &nothing),
            "--- a\n+++ b\n@@ -1,3 +1,1 @@\n-interfaces:\n-  xe0:\n-    mtu: 9000\n+{}\n"
        );
    }
}
