//! Rules that classify exporters and interfaces by their names.
//!
//! A rule has regular expressions and the attributes that it sets. All expressions of a rule must match. `$1` and `$name`
//! in an attribute are groups of the last expression. The first rule that sets an attribute counts; what the configuration
//! says of one exporter or interface counts before any rule.

use regex::Regex;

use crate::config::{Config, ExporterRule, InterfaceRule};
use crate::row::{ExporterInfo, InterfaceInfo, Text};

/// Bytes of an attribute that a rule makes.
const MOST_ATTRIBUTE: usize = 128;

/// A rule: expressions by subject, and what it sets in the order of the attributes.
#[derive(Debug)]
struct Rule<const SUBJECTS: usize, const ATTRIBUTES: usize> {
    expressions: [Option<Regex>; SUBJECTS],
    sets: [String; ATTRIBUTES],
}

/// The rules of a configuration.
#[derive(Debug, Default)]
pub struct Rules {
    exporters: Vec<Rule<1, 3>>,
    interfaces: Vec<Rule<3, 3>>,
}

/// An expression of a rule; `None` when it has none.
///
/// # Errors
/// With the reason why it is no regular expression.
fn expression(text: &str) -> Result<Option<Regex>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    regex::RegexBuilder::new(text)
        .size_limit(1 << 20)
        .build()
        .map(Some)
        .map_err(|error| {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or("").trim();
            format!(
                "{text:?} is no regular expression: {}",
                last.trim_start_matches("error: ")
            )
        })
}

impl<const SUBJECTS: usize, const ATTRIBUTES: usize> Rule<SUBJECTS, ATTRIBUTES> {
    fn new(
        expressions: [&str; SUBJECTS],
        sets: [&str; ATTRIBUTES],
    ) -> Result<Rule<SUBJECTS, ATTRIBUTES>, String> {
        let mut built = [const { None }; SUBJECTS];
        for (place, text) in built.iter_mut().zip(expressions) {
            *place = expression(text)?;
        }
        Ok(Rule {
            expressions: built,
            sets: sets.map(str::to_owned),
        })
    }

    /// Sets attributes that are still empty.
    fn apply(&self, subjects: [&str; SUBJECTS], attributes: [&mut Text; ATTRIBUTES]) {
        let mut groups = None;
        for (expression, subject) in self.expressions.iter().zip(subjects) {
            if let Some(expression) = expression {
                groups = expression.captures(subject);
                if groups.is_none() {
                    return;
                }
            }
        }
        for (attribute, set) in attributes.into_iter().zip(&self.sets) {
            if !attribute.is_empty() || set.is_empty() {
                continue;
            }
            let mut value = String::new();
            match &groups {
                Some(groups) => groups.expand(set, &mut value),
                None => value.push_str(set),
            }
            *attribute = value
                .chars()
                .take(MOST_ATTRIBUTE)
                .collect::<String>()
                .into();
        }
    }
}

impl Rules {
    /// The rules of a configuration, and what is wrong with those that cannot be used.
    #[must_use]
    pub fn new(config: &Config) -> (Rules, Vec<String>) {
        let (mut rules, mut problems) = (Rules::default(), Vec::new());
        for (number, rule) in config.exporter_rules.iter().enumerate() {
            let ExporterRule {
                name,
                role,
                site,
                tenant,
            } = rule;
            match Rule::new([name], [role, site, tenant]) {
                Ok(rule) => rules.exporters.push(rule),
                Err(error) => problems.push(format!("exporter_rules[{number}]: {error}")),
            }
        }
        for (number, rule) in config.interface_rules.iter().enumerate() {
            let InterfaceRule {
                exporter,
                name,
                description,
                boundary,
                provider,
                connectivity,
            } = rule;
            if !matches!(boundary.as_str(), "" | "external" | "internal") {
                problems.push(format!(
                    "interface_rules[{number}].boundary: {boundary:?} is neither external nor internal"
                ));
            }
            match Rule::new(
                [exporter, name, description],
                [boundary, provider, connectivity],
            ) {
                Ok(rule) => rules.interfaces.push(rule),
                Err(error) => problems.push(format!("interface_rules[{number}]: {error}")),
            }
        }
        (rules, problems)
    }

    /// Completes what is known of an exporter.
    pub fn exporter(&self, info: &mut ExporterInfo) {
        let name = info.name.clone();
        for rule in &self.exporters {
            rule.apply([&name], [&mut info.role, &mut info.site, &mut info.tenant]);
        }
    }

    /// Completes what is known of an interface.
    pub fn interface(&self, exporter: &str, description: &str, info: &mut InterfaceInfo) {
        let name = info.name.clone();
        for rule in &self.interfaces {
            rule.apply(
                [exporter, &name, description],
                [
                    &mut info.boundary,
                    &mut info.provider,
                    &mut info.connectivity,
                ],
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_sets_an_attribute_counts() {
        let text = "exporter_rules:\n  - {name: '^(?<site>[a-z]+)-edge', role: edge, site: $site}\n  - {site: other}\n\
                    interface_rules:\n  - {description: '(?i)^(transit|ix):\\s*(\\S+)', boundary: external, connectivity: $1, provider: $2}\n  - {boundary: internal}\n";
        let config = Config::parse(std::path::Path::new("c"), text).expect("good");
        let (rules, problems) = Rules::new(&config);
        assert!(problems.is_empty(), "{problems:?}");
        let exporter = |name: &str| {
            let mut info = ExporterInfo {
                name: name.into(),
                ..ExporterInfo::default()
            };
            rules.exporter(&mut info);
            (info.role.to_string(), info.site.to_string())
        };
        assert_eq!(exporter("ams-edge1"), ("edge".to_owned(), "ams".to_owned()));
        assert_eq!(exporter("core"), (String::new(), "other".to_owned()));
        let interface = |description: &str| {
            let mut info = InterfaceInfo::default();
            rules.interface("ams-edge1", description, &mut info);
            format!("{} {} {}", info.boundary, info.connectivity, info.provider)
        };
        assert_eq!(interface("Transit: cogent 10G"), "external Transit cogent");
        assert_eq!(interface("to core"), "internal  ");
    }

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        let text = "interface_rules:\n  - {name: '('}\n  - {boundary: outside}\n";
        let error = Config::parse(std::path::Path::new("c"), text).expect_err("refused");
        let error = error.to_string();
        assert!(
            error.contains("interface_rules[0]") && error.contains("interface_rules[1]"),
            "{error}"
        );
    }
}
