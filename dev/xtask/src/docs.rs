//! `cargo xtask docs-check`: links between pages lead somewhere, and the site's table of contents is complete.
//!
//! Checks every Markdown file of the tree: a relative link names a file that exists, and an anchor names a
//! heading of that file. Every page of docs/ is in docs/SUMMARY.md. Links to other sites are not followed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// Checks all pages, and prints what is wrong.
pub(crate) fn check() -> ExitCode {
    let pages = pages();
    let mut wrong = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            if let Err(why) = follow(&pages, page, &link) {
                wrong.push(format!("{}: {link}: {why}", page.display()));
            }
        }
    }
    let summary = pages
        .get(Path::new("docs/SUMMARY.md"))
        .map_or("", String::as_str);
    let listed = links(summary);
    for page in pages
        .keys()
        .filter(|page| page.parent() == Some(Path::new("docs")))
    {
        let name = page
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name != "SUMMARY.md" && !listed.contains(&name) {
            wrong.push(format!("{}: not in docs/SUMMARY.md", page.display()));
        }
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    if wrong.is_empty() {
        println!(
            "{} pages: every link leads to a file and a heading",
            pages.len()
        );
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The Markdown files that git knows, with their texts.
fn pages() -> BTreeMap<PathBuf, String> {
    let listed = std::process::Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.md",
        ])
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    listed
        .lines()
        .filter_map(|path| Some((PathBuf::from(path), std::fs::read_to_string(path).ok()?)))
        .collect()
}

/// The targets of inline links, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect();
        for after in prose.split("](").skip(1) {
            if let Some((target, _)) = after.split_once(')') {
                found.push(target.to_owned());
            }
        }
    }
    found
}

fn follow(pages: &BTreeMap<PathBuf, String>, page: &Path, link: &str) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = link
        .split_once('#')
        .map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() {
        page.to_owned()
    } else {
        normal(&page.parent().unwrap_or(Path::new("")).join(file))
    };
    if !target.exists() {
        return Err(format!("there is no {}", target.display()));
    }
    match (anchor, pages.get(&target)) {
        (Some(anchor), Some(text)) if !anchors(text).any(|known| known == anchor) => {
            Err(format!("{} has no heading #{anchor}", target.display()))
        }
        _ => Ok(()),
    }
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{anchors, links};

    #[test]
    fn links_in_code_are_no_links() {
        let text = "[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n[g](h.md#i)";
        assert_eq!(links(text), ["b.md", "h.md#i"]);
    }

    #[test]
    fn headings_have_anchors() {
        let text = "# What is metered\nx\n## `urpf`, and more";
        assert_eq!(
            anchors(text).collect::<Vec<_>>(),
            ["what-is-metered", "urpf-and-more"]
        );
    }
}
