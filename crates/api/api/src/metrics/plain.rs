//! Prometheus's text format 0.0.4, from OpenMetrics: for scrapers that ask for it.
//!
//! The samples are the same lines. There the name in `HELP` and `TYPE` is the samples' name, an info is a gauge, and there is
//! neither `UNIT` nor an end.

/// Its type in HTTP.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics in this format.
pub(crate) fn of(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut suffix = "";
    for line in text.lines() {
        let Some(about) = line.strip_prefix("# ") else {
            plain.push_str(line);
            plain.push('\n');
            continue;
        };
        let mut words = about.splitn(3, ' ');
        let (keyword, name, rest) = (words.next(), words.next(), words.next());
        let line = match (keyword, name, rest.unwrap_or_default()) {
            (Some("TYPE"), Some(name), kind) => {
                let kind = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    other => ("", other),
                };
                suffix = kind.0;
                format!("# TYPE {name}{suffix} {}\n", kind.1)
            }
            (Some("HELP"), Some(name), help) => {
                // Here a quote is not escaped.
                let help = help.replace("\\\"", "\"");
                format!("# HELP {name}{suffix} {help}\n")
            }
            _ => continue,
        };
        plain.push_str(&line);
    }
    plain
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_and_types_are_those_of_the_older_format() {
        let text = "# TYPE weir_a counter\n# UNIT weir_a bytes\n# HELP weir_a A \\\"b\\\".\nweir_a_total{x=\"1\"} 2\n\
                    # TYPE weir_build info\n# HELP weir_build B.\nweir_build_info{v=\"1\"} 1\n\
                    # TYPE weir_c gauge\n# HELP weir_c C.\nweir_c 3\n# EOF\n";
        let plain = "# TYPE weir_a_total counter\n# HELP weir_a_total A \"b\".\nweir_a_total{x=\"1\"} 2\n\
                     # TYPE weir_build_info gauge\n# HELP weir_build_info B.\nweir_build_info{v=\"1\"} 1\n\
                     # TYPE weir_c gauge\n# HELP weir_c C.\nweir_c 3\n";
        assert_eq!(super::of(text), plain);
    }
}
