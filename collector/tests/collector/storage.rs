//! Merging files, and the table of the largest keys.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use weir_collector::bench::dataset;
use weir_collector::config::QueryConfig;
use weir_collector::query::engine::Engine;
use weir_collector::query::{Answer, Metric, Query, Scope};
use weir_collector::row::Row;
use weir_collector::store::{Step, Store};

/// Begin of an hour.
const BEGIN: i64 = 1_700_002_800;

/// Rows whose times begin at `from`.
fn rows(seed: u64, count: usize, from: i64) -> Vec<Row> {
    let mut rows = dataset(seed, count);
    for row in &mut rows {
        row.time = from + (row.time - 1_700_000_100);
    }
    rows
}

async fn filled(folder: &Path, segments: i64) -> (Arc<Store>, u64) {
    let store = Store::open(folder, BEGIN).expect("store");
    let mut bytes = 0;
    for segment in 0..segments {
        let rows = rows(segment as u64 + 1, 600, BEGIN + segment * 300);
        bytes += rows.iter().map(|row| row.bytes).sum::<u64>();
        store.append(&rows, BEGIN + segment * 300);
        store.flush(BEGIN + segment * 300 + 299);
        store.seal(None).await.expect("sealed").expect("a segment");
    }
    (store, bytes)
}

async fn ask(
    store: &Arc<Store>,
    dimensions: &[&str],
    filter: &str,
    period: (i64, i64),
    exact: bool,
) -> Answer {
    let engine = Engine::new(Arc::clone(store), &QueryConfig::default()).expect("engine");
    let query = Query {
        from: period.0,
        to: period.1,
        dimensions: dimensions.iter().map(|name| (*name).to_owned()).collect(),
        filter: filter.to_owned(),
        metric: Metric::Bits,
        limit: 10,
        points: 0,
        bidirectional: false,
        previous: false,
        exact,
    };
    engine
        .answer(&query, &Scope::default())
        .await
        .expect("answer")
}

/// Rows of an answer by key, with "Other" and the total.
fn totals(answer: &Answer) -> BTreeMap<String, u64> {
    answer
        .rows
        .iter()
        .map(|row| {
            (
                format!("{} {}", row.role, row.key.join(",")),
                row.total as u64,
            )
        })
        .collect()
}

#[tokio::test]
async fn merging_the_files_of_an_hour_changes_no_answer_wherever_it_stops() {
    let folder = tempfile::tempdir().expect("folder");
    let (store, bytes) = filled(folder.path(), 3).await;
    let hour = (BEGIN, BEGIN + 3600);
    let questions: [(&[&str], &str); 3] = [
        (&["SrcAddr"], "SrcPort >= 0"),
        (&["InIfName"], ""),
        (&["ExporterName"], "DstPort = 443"),
    ];
    let mut expected = Vec::new();
    for (dimensions, filter) in questions {
        expected.push(totals(&ask(&store, dimensions, filter, hour, false).await));
    }
    assert_eq!(expected[0]["total "], bytes);
    let later = BEGIN + 3600 + 1000;
    // The hour is not over yet.
    assert_eq!(
        store
            .compact(BEGIN + 3600, 45, None)
            .await
            .expect("nothing to do"),
        None
    );
    let mut store = store;
    for step in [Step::Written, Step::Renamed, Step::Synced, Step::Committed] {
        assert!(
            store.compact(later, 45, Some(step)).await.is_err(),
            "{step:?}"
        );
        drop(store);
        store = Store::open(folder.path(), later).expect("store");
        for ((dimensions, filter), expected) in questions.iter().zip(&expected) {
            let answer = ask(&store, dimensions, filter, hour, false).await;
            assert_eq!(totals(&answer), *expected, "{step:?} {dimensions:?}");
        }
    }
    while store
        .compact(later, 45, None)
        .await
        .expect("merged")
        .is_some()
    {}
    let snapshot = store.snapshot(hour.0, hour.1);
    assert_eq!(
        (
            snapshot.flows.len(),
            snapshot.totals.len(),
            snapshot.tops.len(),
            snapshot.totals_step
        ),
        (1, 1, 1, 60)
    );
    for ((dimensions, filter), expected) in questions.iter().zip(&expected) {
        assert_eq!(
            totals(&ask(&store, dimensions, filter, hour, false).await),
            *expected,
            "{dimensions:?}"
        );
    }
    // Files are in order: what was written by a merge is as if it had been sorted.
    let files = std::fs::read_dir(folder.path().join("data"))
        .expect("folder")
        .flatten()
        .flat_map(|day| std::fs::read_dir(day.path()).expect("day").flatten());
    let names: Vec<String> = files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names.iter().all(|name| name.ends_with(".parquet")),
        "{names:?}"
    );
    // Old totals become sums of hours.
    assert!(
        store
            .compact(later + 50 * 86_400, 45, None)
            .await
            .expect("merged")
            .is_some()
    );
    assert_eq!(store.snapshot(hour.0, hour.1).totals_step, 3600);
    let answer = ask(&store, &["InIfName"], "", hour, false).await;
    assert_eq!((totals(&answer), answer.step), (expected[1].clone(), 3600));
}

#[tokio::test]
async fn the_largest_keys_answer_for_long_periods_with_exact_sums() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::open(folder.path(), BEGIN).expect("store");
    for day in 0..3 {
        let from = BEGIN + day * 86_400;
        store.append(&rows(day as u64 + 1, 8_000, from), from);
        store.flush(from + 299);
        store.seal(None).await.expect("sealed").expect("a segment");
    }
    let period = (BEGIN, BEGIN + 3 * 86_400);
    for merged in [false, true] {
        if merged {
            while store
                .compact(period.1 + 10_000, 45, None)
                .await
                .expect("merged")
                .is_some()
            {}
        }
        for (dimensions, filter) in [
            (&["SrcAS"][..], ""),
            (&["DstAddr"], ""),
            (&["SrcAS", "DstAS"], "ExporterName LIKE edge%"),
            (&["ExporterName", "DstPort"], "NOT ExporterName = edge0"),
        ] {
            let name = format!("{dimensions:?} {filter} merged {merged}");
            let (tops, raw) = (
                ask(&store, dimensions, filter, period, false).await,
                ask(&store, dimensions, filter, period, true).await,
            );
            assert_eq!(serde_json::json!(tops.resolution), "tops", "{name}");
            assert_eq!(serde_json::json!(raw.resolution), "raw", "{name}");
            let (short, long) = (totals(&tops), totals(&raw));
            assert_eq!(
                (short["total "], tops.stored_rows),
                (long["total "], raw.stored_rows),
                "{name}"
            );
            let named = tops.named_percent.expect("percent");
            assert!(named > 50.0 && named <= 100.0, "{name}: {named}");
            let rest = long["total "] as f64 * (1.0 - named / 100.0);
            for row in tops.rows.iter().filter(|row| row.role == "row") {
                let key = format!("row {}", row.key.join(","));
                let Some(exact) = long.get(&key) else {
                    continue;
                };
                let lacks = *exact as f64 - row.total;
                assert!(
                    (-0.5..=rest + 1.0).contains(&lacks),
                    "{name}: {key} {exact} {}",
                    row.total
                );
            }
            // Shown keys and "Other" are everything.
            let parts: f64 = tops
                .rows
                .iter()
                .filter(|row| row.role != "total")
                .map(|row| row.total)
                .sum();
            assert!((parts - long["total "] as f64).abs() < 1.0, "{name}");
        }
        // A filter on what only rows have is answered from rows.
        let answer = ask(&store, &["SrcAS"], "TCPFlags = 2", period, false).await;
        assert_eq!(serde_json::json!(answer.resolution), "raw");
    }
}
