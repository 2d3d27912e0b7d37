//! The Grafana dashboard (`dashboards/weir.json`) against what a running router exposes.
//!
//! Each query is taken apart: every metric in it must be one that the router has, with every label that
//! it selects, sums or names by. Where there is a Prometheus, it scrapes the router and is asked each
//! query, which must give data. So a metric that is renamed breaks this test and not a dashboard.

mod live;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::{Folder, Router, free_port, has_program, tree};
use serde_json::Value;

/// Labels that Prometheus adds.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];
/// Words of PromQL.
const WORDS: &[&str] = &[
    "sum",
    "count",
    "rate",
    "changes",
    "time",
    "by",
    "on",
    "group_left",
    "or",
    "and",
];
/// Nothing of a router without devices has a speed.
const WITHOUT_DATA_HERE: &[&str] = &["Load of links"];
const LIMIT: Duration = Duration::from_secs(60);

/// A query, and where it stands.
struct Query {
    panel: String,
    text: String,
    legend: String,
}

fn dashboard() -> Value {
    serde_json::from_str(&std::fs::read_to_string(tree().join("dashboards/weir.json")).unwrap())
        .unwrap()
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().map_or(&[], Vec::as_slice)
}

fn text(of: &Value, key: &str) -> String {
    of[key].as_str().unwrap_or_default().to_owned()
}

/// The queries of panels.
fn queries(dashboard: &Value) -> Vec<Query> {
    let of_panel = |panel: &Value| -> Vec<Query> {
        let query = |target: &Value| Query {
            panel: text(panel, "title"),
            text: text(target, "expr"),
            legend: text(target, "legendFormat"),
        };
        list(panel, "targets").iter().map(query).collect()
    };
    list(dashboard, "panels")
        .iter()
        .flat_map(of_panel)
        .collect()
}

/// The queries of annotations and variables.
fn other_queries(dashboard: &Value) -> Vec<Query> {
    let annotations = list(&dashboard["annotations"], "list").iter();
    let annotations = annotations.map(|it| Query {
        panel: text(it, "name"),
        text: text(it, "expr"),
        legend: text(it, "textFormat"),
    });
    let variables = list(&dashboard["templating"], "list")
        .iter()
        .filter(|it| it["type"] == "query");
    let variables = variables.map(|it| {
        let asked = text(&it["query"], "query");
        let inside = asked
            .strip_prefix("label_values(")
            .and_then(|rest| rest.strip_suffix(')'));
        let (metric, label) = inside
            .and_then(|inside| inside.rsplit_once(", "))
            .unwrap_or_else(|| panic!("{asked}"));
        Query {
            panel: text(it, "name"),
            text: metric.to_owned(),
            legend: format!("{{{{{label}}}}}"),
        }
    });
    annotations.chain(variables).collect()
}

/// A piece of a query.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Name(String),
    Text,
    Sign(char),
}

fn pieces(query: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = query.chars().peekable();
    while let Some(first) = rest.next() {
        match first {
            '"' => {
                rest.by_ref().find(|&next| next == '"');
                pieces.push(Piece::Text);
            }
            '[' => {
                rest.by_ref().find(|&next| next == ']');
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let mut name = String::from(first);
                while let Some(next) =
                    rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '_')
                {
                    name.push(next);
                }
                pieces.push(Piece::Name(name));
            }
            first if first.is_whitespace() => {}
            first => pieces.push(Piece::Sign(first)),
        }
    }
    pieces
}

/// What a query names: metrics with the labels that select of them, and labels that it groups by.
#[derive(Default, Debug)]
struct Named {
    metrics: Vec<(String, BTreeSet<String>)>,
    groups: BTreeSet<String>,
}

fn named(query: &str) -> Named {
    let mut named = Named::default();
    let pieces = pieces(query);
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        at += 1;
        let Piece::Name(name) = piece else { continue };
        let is_grouping = matches!(name.as_str(), "by" | "on" | "group_left");
        if WORDS.contains(&name.as_str()) && !is_grouping {
            continue;
        }
        let end = match (is_grouping, pieces.get(at)) {
            (true, Some(Piece::Sign('('))) => ')',
            (false, Some(Piece::Sign('{'))) => '}',
            (false, _) => {
                named.metrics.push((name.clone(), BTreeSet::new()));
                continue;
            }
            (true, other) => panic!("{query}: {name} before {other:?}"),
        };
        let inside = pieces[at..]
            .iter()
            .take_while(|piece| **piece != Piece::Sign(end));
        let labels: BTreeSet<String> = inside
            .filter_map(|piece| {
                if let Piece::Name(name) = piece {
                    Some(name.clone())
                } else {
                    None
                }
            })
            .collect();
        at += pieces[at..]
            .iter()
            .position(|piece| *piece == Piece::Sign(end))
            .unwrap()
            + 1;
        if is_grouping {
            named.groups.extend(labels);
        } else {
            named.metrics.push((name.clone(), labels));
        }
    }
    named
}

/// The labels in the name of a line: `{{interface}} {{direction}}`.
fn labels_of_legend(legend: &str) -> Vec<&str> {
    legend
        .split("{{")
        .skip(1)
        .filter_map(|rest| rest.split_once("}}"))
        .map(|(label, _)| label)
        .collect()
}

/// What a router exposes: the labels of each sample's name.
fn exposed(metrics: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut exposed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let end = line.find(['{', ' ']).unwrap();
        let labels = exposed.entry(line[..end].to_owned()).or_default();
        labels.extend(OF_PROMETHEUS.map(str::to_owned));
        if let Some(inside) = line[end..].strip_prefix('{') {
            let names = pieces(inside.rsplit_once('}').unwrap().0);
            labels.extend(names.into_iter().filter_map(|piece| {
                if let Piece::Name(name) = piece {
                    Some(name)
                } else {
                    None
                }
            }));
        }
    }
    exposed
}

/// `GET` of a path; the body when it was found.
fn get(port: u16, path: &str) -> Result<String, String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // HTTP/1.0, so that the answer comes in one piece and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .map_err(|error| error.to_string())?;
    let mut reply = String::new();
    stream
        .read_to_string(&mut reply)
        .map_err(|error| error.to_string())?;
    let (head, body) = reply.split_once("\r\n\r\n").ok_or("no answer")?;
    if head.starts_with("HTTP/1.0 200") || head.starts_with("HTTP/1.1 200") {
        Ok(body.to_owned())
    } else {
        Err(reply)
    }
}

/// A router that has dropped, sampled and sent something, and its metrics' port.
fn busy_router() -> (Router, u16) {
    let port = free_port();
    let router = Router::start(
        Folder::new("dashboard"),
        &format!("api: {{metrics: {{address: 127.0.0.1, port: {port}}}}}\n"),
    );
    let until = Instant::now() + LIMIT;
    let is_busy = |metrics: &str| {
        [
            "weir_dropped_packets_total{",
            "weir_sflow_pool_packets_total{",
            "weir_neighbors{",
        ]
        .iter()
        .all(|name| metrics.contains(name))
    };
    while !get(port, "/metrics").is_ok_and(|metrics| is_busy(&metrics)) {
        assert!(Instant::now() < until, "{:?}", get(port, "/metrics"));
        std::thread::sleep(Duration::from_millis(100));
    }
    (router, port)
}

/// What is wrong with the queries, judged by what was exposed.
fn faults(all: &[Query], exposed: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for Query {
        panel,
        text,
        legend,
    } in all
    {
        let named = named(text);
        assert!(!named.metrics.is_empty(), "{panel}: {text}");
        let mut labels = BTreeSet::new();
        for (metric, selected) in &named.metrics {
            let Some(known) = exposed.get(metric) else {
                wrong.push(format!("{panel}: no metric {metric}"));
                continue;
            };
            wrong.extend(
                selected
                    .difference(known)
                    .map(|label| format!("{panel}: {metric} has no {label}")),
            );
            labels.extend(known.iter().map(String::as_str));
        }
        let grouped = named.groups.iter().map(String::as_str);
        let unknown = grouped
            .chain(labels_of_legend(legend))
            .filter(|label| !labels.contains(label));
        wrong.extend(unknown.map(|label| format!("{panel}: nothing has {label}")));
    }
    wrong
}

/// A metric appears with its first value, and some come and go (a neighbour, a drop): what was seen counts.
#[test]
fn every_query_names_metrics_and_labels_that_the_router_exposes() {
    let (_router, port) = busy_router();
    let dashboard = dashboard();
    let all: Vec<Query> = queries(&dashboard)
        .into_iter()
        .chain(other_queries(&dashboard))
        .collect();
    assert!(all.len() > 50);
    let until = Instant::now() + LIMIT;
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    loop {
        for (metric, labels) in exposed(&get(port, "/metrics").unwrap()) {
            seen.entry(metric).or_default().extend(labels);
        }
        let wrong = faults(&all, &seen);
        if wrong.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "{}", wrong.join("\n"));
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn what_is_wrong_in_a_query_is_noticed() {
    let query = r#"sum by (instance, node) (rate(weir_x_total{node=~"$a|{b}", c="d"}[$__rate_interval])) / on (e) group_left () weir_y * 8"#;
    let named = named(query);
    let set = |labels: &[&str]| {
        labels
            .iter()
            .map(|label| (*label).to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        named.metrics,
        [
            ("weir_x_total".to_owned(), set(&["node", "c"])),
            ("weir_y".to_owned(), set(&[]))
        ]
    );
    assert_eq!(named.groups, set(&["e", "instance", "node"]));
    assert_eq!(labels_of_legend("{{a}} and {{b_c}}"), ["a", "b_c"]);
    let exposed = exposed("# HELP x\nx_total{a=\"1, b=2}\",c=\"\"} 5\ny 1\n# EOF\n");
    assert_eq!(exposed["x_total"], set(&["a", "c", "instance", "job"]));
    assert_eq!(exposed["y"], set(&["instance", "job"]));
}

/// What a person sees at once: titles, units, names of lines, and panels beside and not upon each other.
#[test]
fn every_panel_is_reported_and_has_its_place() {
    let dashboard = dashboard();
    let panels = list(&dashboard, "panels");
    let rows: Vec<String> = panels
        .iter()
        .filter(|panel| panel["type"] == "row")
        .map(|row| text(row, "title"))
        .collect();
    assert_eq!(rows.len(), 7, "{rows:?}");
    let (mut ids, mut titles, mut taken) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = text(panel, "title");
        assert!(
            ids.insert(panel["id"].as_u64().unwrap()) && titles.insert(title.clone()),
            "twice: {title}"
        );
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{title}");
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{title} lies upon another panel");
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(text(panel, "description").ends_with('.'), "{title}");
        assert!(
            !text(&panel["fieldConfig"]["defaults"], "unit").is_empty(),
            "{title}"
        );
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        for target in list(panel, "targets") {
            assert!(!text(target, "legendFormat").is_empty(), "{title}");
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
        }
    }
}

/// A Prometheus that scrapes one router.
struct Prometheus {
    child: Child,
    port: u16,
    _folder: Folder,
}

impl Prometheus {
    fn start(target: u16) -> Prometheus {
        let (folder, port) = (Folder::new("prometheus"), free_port());
        let config = folder.file("prometheus.yml");
        let scrape = format!(
            "global: {{scrape_interval: 500ms}}\nscrape_configs: [{{job_name: weir, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n"
        );
        std::fs::write(&config, scrape).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.file("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Prometheus {
            child,
            port,
            _folder: folder,
        }
    }

    /// The series that a query gives.
    fn ask(&self, query: &str) -> Result<Vec<Value>, String> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let reply: Value =
            serde_json::from_str(&get(self.port, &format!("/api/v1/query?query={escaped}"))?)
                .map_err(|error| error.to_string())?;
        reply["data"]["result"]
            .as_array()
            .cloned()
            .ok_or_else(|| reply.to_string())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A query as Grafana sends it when everything is chosen.
fn chosen(query: &str) -> String {
    let values = [
        ("$__rate_interval", "5s"),
        ("$__interval", "30s"),
        ("$instance", "(127.0.0.1.*)"),
        ("$interface", "(source|sink)"),
        ("$worker", "(0)"),
    ];
    values
        .iter()
        .fold(query.to_owned(), |query, (variable, value)| {
            query.replace(variable, value)
        })
}

#[test]
fn prometheus_has_data_for_every_query() {
    if !has_program("prometheus") {
        return;
    }
    let (_router, port) = busy_router();
    let prometheus = Prometheus::start(port);
    let mut open: Vec<Query> = queries(&dashboard());
    open.retain(|query| !WITHOUT_DATA_HERE.contains(&query.panel.as_str()));
    let asked = open.len();
    let until = Instant::now() + LIMIT;
    let mut said = Vec::new();
    while !open.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(500));
        said.clear();
        open.retain(|query| match prometheus.ask(&chosen(&query.text)) {
            Ok(series) if !series.is_empty() => false,
            other => {
                said.push(format!("{}: {}: {other:?}", query.panel, query.text));
                true
            }
        });
    }
    assert!(open.is_empty(), "{}", said.join("\n"));
    eprintln!("{asked} queries gave data");
    // A query that is no PromQL, and one for what there is not, would be noticed.
    assert!(prometheus.ask("rate(weir_workers").is_err());
    assert!(prometheus.ask("weir_nothing").unwrap().is_empty());
    // What is without data here is at least PromQL.
    for query in queries(&dashboard())
        .iter()
        .filter(|query| WITHOUT_DATA_HERE.contains(&query.panel.as_str()))
    {
        assert!(
            prometheus.ask(&chosen(&query.text)).is_ok(),
            "{}",
            query.text
        );
    }
    // And what it gives is so: 3200 packets a second are made.
    let rate = || -> f64 {
        let series = prometheus.ask(r#"sum(rate(weir_interface_packets_total{interface="source", direction="rx"}[5s]))"#).unwrap();
        series
            .first()
            .and_then(|sum| sum["value"][1].as_str()?.parse().ok())
            .unwrap_or(0.0)
    };
    while !(1600.0..4800.0).contains(&rate()) {
        assert!(Instant::now() < until, "{} packets a second", rate());
        std::thread::sleep(Duration::from_millis(500));
    }
}
