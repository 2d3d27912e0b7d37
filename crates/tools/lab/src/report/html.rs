//! The report as one HTML page.

use std::fmt::Write;

use super::svg::{Axis, bars, escaped, lines, short};
use super::{Report, Test, compare};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1d2530}\
h1{font-size:1.7rem}h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px solid #d5dae0}\
table{border-collapse:collapse;width:100%;font-size:.92rem}th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #e4e8ec}\
th:first-child,td:first-child{text-align:left}thead th{background:#f2f5f8}svg{width:100%;height:auto;margin:.6rem 0}\
.axis{font-size:12px;fill:#41505f}.tick{font-size:11px;text-anchor:end;fill:#41505f}.name,.value{font-size:11px;text-anchor:middle;fill:#1d2530}\
.grid{stroke:#e1e6eb}.note{color:#55636f;font-size:.9rem}li.verdict{font-weight:600}details{margin:.6rem 0}summary{cursor:pointer}\
svg+.legend{margin:0 0 1rem}.legend span{margin-right:1rem;font-size:.9rem;white-space:nowrap}.legend i{display:inline-block;width:.7rem;height:.7rem;margin-right:.3rem}\
.wide{overflow-x:auto}.wide td,.wide th{font-size:.82rem;padding:.25rem .4rem}\
.spoilt{color:#9a6200}.lossy{color:#a32020}@media print{details{display:block}}";

/// Renders the page.
#[must_use]
pub fn page(report: &Report) -> String {
    let mut html = String::new();
    let _ = write!(
        html,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title><style>{STYLE}</style></head><body><h1>{0}</h1>",
        escaped(&report.title)
    );
    verdicts(&mut html, report);
    rates(&mut html, report);
    latency(&mut html, report);
    cpu(&mut html, report);
    figures(&mut html, report);
    drops(&mut html, report);
    trials(&mut html, report);
    html.push_str("<h2>Environment</h2><table><tbody>");
    for (name, value) in &report.environment {
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td></tr>",
            escaped(name),
            escaped(value)
        );
    }
    html.push_str(
        "</tbody></table><p class=\"note\">Rates are packets per second in all directions together. A rate over veth or memif says how \
         this machine does with its other work; it says nothing about hardware. Compare devices of one report only.</p></body></html>\n",
    );
    html
}

fn verdicts(html: &mut String, report: &Report) {
    let all = compare(report);
    if all.is_empty() {
        return;
    }
    html.push_str("<h2>Comparison</h2><ul>");
    for comparison in all {
        let class = if comparison
            .interval
            .is_some_and(|interval| comparison.percent.abs() > interval)
        {
            "verdict"
        } else {
            ""
        };
        let _ = write!(
            html,
            "<li class=\"{class}\">{}</li>",
            escaped(&comparison.verdict)
        );
    }
    html.push_str("</ul>");
}

fn unique<'a>(values: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for value in values {
        if !list.contains(value) {
            list.push(value.clone());
        }
    }
    list
}

fn rates(html: &mut String, report: &Report) {
    let tests: Vec<&Test> = report
        .tests
        .iter()
        .filter(|test| test.search.is_some())
        .collect();
    if tests.is_empty() {
        return;
    }
    html.push_str("<h2>Rates</h2>");
    let traffics = unique(tests.iter().map(|test| &test.traffic));
    let devices = unique(tests.iter().map(|test| &test.device));
    let series: Vec<_> = devices
        .iter()
        .map(|device| {
            let rate = |traffic: &String| {
                tests
                    .iter()
                    .find(|test| test.device == *device && test.traffic == *traffic)
                    .and_then(|test| test.rate())
            };
            (device.clone(), traffics.iter().map(rate).collect())
        })
        .collect();
    html.push_str(&bars(
        "packets per second at the first goal, by traffic",
        &traffics,
        &series,
    ));
    html.push_str("<table><thead><tr><th>Device</th><th>Traffic</th><th>Goal</th><th>Loss allowed</th><th>Packets/s</th><th>Gbit/s (L1)</th><th>Fails at</th><th>Repeats</th><th>Trials</th><th>Spoilt</th></tr></thead><tbody>");
    for test in tests {
        let Some(search) = &test.search else { continue };
        let spoilt = search
            .trials
            .iter()
            .filter(|trial| trial.spoilt.is_some())
            .count();
        for found in &search.found {
            let number =
                |value: Option<f64>, none: &str| value.map_or_else(|| none.to_owned(), short);
            let bits = found.lower.map_or(0.0, |rate| {
                rate * (test.frame + crate::units::LAYER1_OVERHEAD) * 8.0 / 1e9
            });
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} %</td><td>{}</td><td>{bits:.3}</td><td>{}</td><td>{}</td><td>{}</td><td>{spoilt}</td></tr>",
                escaped(&test.device),
                escaped(&test.traffic),
                escaped(&found.goal.name),
                found.goal.loss_ratio * 100.0,
                number(found.lower, "below the lowest"),
                number(found.upper, "above the highest"),
                repeats(&test.repeats),
                search.trials.len()
            );
        }
    }
    html.push_str("</tbody></table>");
}

/// The range of repeated searches of the first goal.
fn repeats(rates: &[f64]) -> String {
    if rates.len() < 2 {
        return "1".to_owned();
    }
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let range = format!("{}: {} to {}", rates.len(), short(least), short(most));
    range.replace(' ', "\u{a0}")
}

fn latency(html: &mut String, report: &Report) {
    let tests: Vec<&Test> = report
        .tests
        .iter()
        .filter(|test| !test.latency.is_empty())
        .collect();
    if tests.is_empty() {
        return;
    }
    html.push_str("<h2>Latency by load</h2>");
    let series: Vec<_> = tests
        .iter()
        .map(|test| {
            let points = test
                .latency
                .iter()
                .map(|(load, latency)| (load * 100.0, latency.p50_us))
                .collect();
            (format!("{} {}", test.device, test.traffic), points)
        })
        .collect();
    html.push_str(&lines(
        "median latency in µs, by load in % of the rate found",
        " %",
        Axis::Logarithmic,
        &series,
    ));
    html.push_str("<table><thead><tr><th>Device</th><th>Traffic</th><th>Load</th><th>min µs</th><th>50 %</th><th>90 %</th><th>99 %</th><th>99.9 %</th><th>max µs</th><th>jitter</th></tr></thead><tbody>");
    for test in tests {
        for (load, l) in &test.latency {
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{:.0} %</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escaped(&test.device),
                escaped(&test.traffic),
                load * 100.0,
                l.min_us,
                l.p50_us,
                l.p90_us,
                l.p99_us,
                l.p999_us,
                l.max_us,
                l.jitter_us
            );
        }
    }
    html.push_str("</tbody></table>");
}

fn cpu(html: &mut String, report: &Report) {
    let tests: Vec<&Test> = report
        .tests
        .iter()
        .filter(|test| !test.cpu.is_empty())
        .collect();
    if tests.is_empty() {
        return;
    }
    html.push_str("<h2>What it takes from a core</h2>");
    let series: Vec<_> = tests
        .iter()
        .map(|test| {
            let points = test.cpu.iter();
            let points = points.map(|point| (point.sent, point.taken * 100.0));
            (test.device.clone(), points.collect())
        })
        .collect();
    html.push_str(&lines(
        "share of the device's core in %, by packets/s that were sent",
        "",
        Axis::Linear,
        &series,
    ));
    html.push_str("<div class=\"wide\"><table><thead><tr><th>Device</th><th>Sent/s</th><th>Came through/s</th><th>Taken</th><th>ns/packet</th><th>Threads</th><th>Softirq</th><th>Interrupts</th><th>Hypervisor</th><th>Unexplained</th><th>openssl</th></tr></thead><tbody>");
    for test in tests {
        for point in &test.cpu {
            let cost = &point.cost;
            let threads = cost.threads.iter().take(2);
            let threads: Vec<String> = threads
                .map(|(name, share)| format!("{} {:.1} %", escaped(name), share * 100.0))
                .collect();
            let each = |value: Option<f64>, factor: f64, unit: &str| {
                value.map_or_else(String::new, |value| format!("{:.1}{unit}", value * factor))
            };
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{:.0}</td><td>{:.0}</td><td>{:.1} %</td><td>{}</td><td>{}</td><td>{:.1} %</td><td>{:.1} %</td><td>{:.1} %</td><td>{:.1} %</td><td>{}</td></tr>",
                escaped(&test.device),
                point.sent,
                point.forwarded,
                point.taken * 100.0,
                point
                    .ns_per_packet
                    .map_or_else(String::new, |ns| format!("{ns:.0}")),
                threads.join(", "),
                cost.softirq_in_context() * 100.0,
                cost.irq * 100.0,
                cost.steal * 100.0,
                cost.rest() * 100.0,
                each(point.openssl, 100.0, " %"),
            );
        }
    }
    html.push_str("</tbody></table></div><p class=\"note\">Taken: by the device's threads and while the job of known speed was running, less what is taken without the device. Threads (the two largest are shown), softirq, interrupts, hypervisor and the unexplained rest add up to all that the job could not do; other programs' threads are among them.</p>");
    for test in &report.tests {
        for point in test.cpu.iter().filter(|point| !point.symbols.is_empty()) {
            let _ = write!(
                html,
                "<details><summary>{} at {:.0} packets/s: symbols by perf</summary><table><tbody>",
                escaped(&test.device),
                point.sent
            );
            for (name, share) in &point.symbols {
                let _ = write!(
                    html,
                    "<tr><td>{}</td><td>{:.1} %</td></tr>",
                    escaped(name),
                    share * 100.0
                );
            }
            html.push_str("</tbody></table></details>");
        }
    }
}

fn figures(html: &mut String, report: &Report) {
    if report.tests.iter().all(|test| test.figures.is_empty()) {
        return;
    }
    html.push_str("<h2>Figures</h2><table><thead><tr><th>Device</th><th>Traffic</th><th>What</th><th>Value</th></tr></thead><tbody>");
    for test in &report.tests {
        for (name, value, unit) in &test.figures {
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} {}</td></tr>",
                escaped(&test.device),
                escaped(&test.traffic),
                escaped(name),
                short(*value),
                escaped(unit)
            );
        }
    }
    html.push_str("</tbody></table>");
}

fn drops(html: &mut String, report: &Report) {
    html.push_str("<h2>Where packets were lost</h2><p class=\"note\">Counters of the device that grew in trials with loss.</p>");
    html.push_str("<table><thead><tr><th>Device</th><th>Traffic</th><th>Counter</th><th>Packets</th></tr></thead><tbody>");
    let mut any = false;
    for test in &report.tests {
        for (name, count) in test.drops().into_iter().take(12) {
            any = true;
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{count}</td></tr>",
                escaped(&test.device),
                escaped(&test.traffic),
                escaped(&name)
            );
        }
    }
    if !any {
        html.push_str(
            "<tr><td colspan=\"4\">No counter of a device was read, or none grew.</td></tr>",
        );
    }
    html.push_str("</tbody></table>");
}

fn trials(html: &mut String, report: &Report) {
    html.push_str("<h2>Trials</h2>");
    for test in &report.tests {
        let Some(search) = &test.search else { continue };
        let _ = write!(
            html,
            "<details><summary>{} at {}: {} trials</summary><table><thead><tr><th>Load</th><th>Seconds</th><th>Offered</th><th>Sent</th><th>Lost</th><th>Loss %</th><th>p50 µs</th><th>Note</th></tr></thead><tbody>",
            escaped(&test.device),
            escaped(&test.traffic),
            search.trials.len()
        );
        for trial in &search.trials {
            let class = if trial.spoilt.is_some() {
                "spoilt"
            } else if trial.lost > 0 {
                "lossy"
            } else {
                ""
            };
            let _ = write!(
                html,
                "<tr class=\"{class}\"><td>{:.0}</td><td>{:.2}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.4}</td><td>{}</td><td>{}</td></tr>",
                trial.load,
                trial.duration,
                trial.offered,
                trial.sent,
                trial.lost,
                trial.loss_ratio() * 100.0,
                trial
                    .p50_us
                    .map_or_else(String::new, |value| format!("{value:.1}")),
                escaped(trial.spoilt.as_deref().unwrap_or(""))
            );
        }
        html.push_str("</tbody></table></details>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlr::{Goal, Limits, search};
    use crate::simulated::Simulated;

    #[test]
    fn a_page_needs_nothing_from_elsewhere_and_escapes_names() {
        let mut device = Simulated::new(1e6, 1);
        let found = search(&[Goal::no_drop(1.0)], Limits::default(), &mut device).unwrap();
        let test = |name: &str, repeats: Vec<f64>| Test {
            device: name.to_owned(),
            traffic: "64".to_owned(),
            frame: 64.0,
            search: Some(found.clone()),
            repeats,
            ..Test::default()
        };
        let report = Report {
            title: "Test <script>".to_owned(),
            environment: vec![("kernel".to_owned(), "6.18".to_owned())],
            tests: vec![test("A", vec![1.0, 1.01]), test("B", vec![2.0, 2.01])],
        };
        let html = page(&report);
        for text in [
            "<svg",
            "Test &lt;script&gt;",
            "faster than A at 64",
            "<td>0.672</td>",
            "</html>",
        ] {
            assert!(html.contains(text), "{text} is missing in {html}");
        }
        for text in ["http", "<script", "src=", "NaN", "inf<"] {
            assert!(!html.contains(text), "{text} is in {html}");
        }
        let json = serde_json::to_string(&report).unwrap();
        // The last digit of a float may differ.
        let again: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(page(&again), html);
    }
}
