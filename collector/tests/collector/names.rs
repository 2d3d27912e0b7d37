//! Names, classification, networks and countries in stored rows; files of the first schema.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use weir_collector::bench::{dataset, sflow_datagram};
use weir_collector::config::QueryConfig;
use weir_collector::query::engine::Engine;
use weir_collector::query::{Metric, Query, Scope};
use weir_collector::row::batch;
use weir_collector::store::Store;

use crate::{send, start};

/// Keys of the largest row of a query.
fn first(answer: &Value) -> Vec<&str> {
    let key = answer["rows"][0]["key"].as_array();
    key.unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

#[test]
fn rows_are_classified_and_sources_are_read_again() {
    let folder = tempfile::tempdir().expect("folder");
    let source = folder.path().join("names.json");
    let write = |tenant: &str| {
        let names = json!({
            "exporters": { "192.0.2.1": { "interfaces": { "1": { "name": "wan1", "description": "transit: cogent 10G" } } } },
            "networks": { "10.0.0.0/8": { "name": "own", "tenant": tenant, "country": "NL", "asn": 64_510 } },
        });
        // As others do: a reader never sees half a file.
        let new = source.with_extension("new");
        std::fs::write(&new, names.to_string()).expect("written");
        std::fs::rename(&new, &source).expect("renamed");
    };
    write("a");
    let running = start(
        folder.path(),
        &format!(
            "exporters: {{192.0.2.1: {{name: ams-edge1, interfaces: {{2: lan}}}}}}\n\
             exporter_rules:\n  - {{name: '^(?<site>\\w+)-edge', role: edge, site: $site}}\n\
             interface_rules:\n  - {{description: '^(transit|ix): (\\S+)', boundary: external, connectivity: $1, provider: $2}}\n  - {{boundary: internal}}\n\
             sources: {{file: {{file: '{}', interval: 1}}}}\n",
            source.display()
        ),
    );
    running.wait("/sources/file/networks", 1);
    send(
        running.udp,
        (1..=8).map(|number| sflow_datagram(number, 7, 10)),
    );
    running.wait("/store/durable", 56);
    let ask = |dimensions: &str, filter: &str| {
        running.get(&format!(
            "/api/v1/query?from=-1h&points=0&dimensions={dimensions}&filter={filter}"
        ))
    };
    let answer = ask(
        "ExporterName,ExporterRole,ExporterSite,InIfName,InIfBoundary,InIfProvider,InIfConnectivity",
        "InIf%3D1",
    );
    assert_eq!(
        first(&answer),
        [
            "ams-edge1",
            "edge",
            "ams",
            "wan1",
            "external",
            "cogent",
            "transit"
        ]
    );
    let answer = ask("InIfName,InIfBoundary,InIfProvider", "InIf%3D2");
    assert_eq!(first(&answer), ["lan", "internal", ""]);
    let answer = ask("SrcNet,SrcNetTenant,SrcCountry,SrcAS", "");
    assert_eq!(first(&answer), ["own", "a", "NL", "AS64510"]);
    // A changed source counts for what arrives after it was read.
    write("b");
    let seen = |tenant: &str| ask("", &format!("SrcNetTenant%3D{tenant}"))["stored_rows"].as_u64();
    for number in 9.. {
        send(running.udp, [sflow_datagram(number, 7, 10)].into_iter());
        if seen("b") > Some(0) {
            break;
        }
        assert!(number < 5000, "the changed file was never read");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // A broken one changes nothing, and is named.
    std::fs::write(&source, "{networks: [").expect("written");
    let begin = std::time::Instant::now();
    let problem = loop {
        let health = running.get("/api/v1/health");
        if let Some(problem) = health["sources"]["file"]["problem"].as_str() {
            break problem.to_owned();
        }
        assert!(begin.elapsed().as_secs() < 60, "{health}");
    };
    assert!(problem.contains("names.json"), "{problem}");
}

/// A file as the first release wrote it: its 35 columns, their order and types are frozen here.
fn write_first_schema(path: &Path) {
    use datafusion::parquet::arrow::ArrowWriter;
    let rows = dataset(3, 1000);
    let all = batch(&rows).expect("a batch");
    let first = all
        .project(&(0..35).collect::<Vec<_>>())
        .expect("35 columns");
    let names: Vec<String> = first
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(
        names.join(" "),
        "time exporter exporter_name format in_if out_if in_if_name out_if_name src_hi src_lo dst_hi dst_lo src_port dst_port proto etype \
         tos tcp_flags vlan src_as dst_as src_len dst_len src_net dst_net outcome direction rate samples bytes packets l2_bytes bytes_var \
         packets_var discards"
    );
    let mut writer = ArrowWriter::try_new(
        std::fs::File::create(path).expect("file"),
        first.schema(),
        None,
    )
    .expect("writer");
    writer.write(&first).expect("written");
    writer.close().expect("closed");
}

#[tokio::test]
async fn files_of_the_first_schema_answer_beside_new_ones() {
    let folder = tempfile::tempdir().expect("folder");
    {
        let store = Store::open(folder.path(), 1_700_000_000).expect("store");
        store.append(&dataset(3, 1000), 1_700_000_000);
        store.flush(1_700_000_001);
        store.seal(None).await.expect("sealed").expect("a segment");
        let path = store.snapshot(0, i64::MAX).flows[0].clone();
        write_first_schema(&path);
        // The manifest as the first release had it.
        store.set_schema_for_test(&path, 1).expect("entry");
        store.append(&dataset(4, 500), 1_700_000_000);
        store.flush(1_700_000_002);
        store.seal(None).await.expect("sealed").expect("a segment");
    }
    let store = Store::open(folder.path(), 1_700_000_400).expect("store");
    assert!(store.status().quarantined.is_empty());
    let engine = Engine::new(Arc::clone(&store), &QueryConfig::default()).expect("engine");
    let ask = async |dimensions: &[&str], filter: &str| {
        let query = Query {
            from: 1_700_000_000,
            to: 1_700_001_000,
            dimensions: dimensions.iter().map(|name| (*name).to_owned()).collect(),
            filter: filter.to_owned(),
            metric: Metric::Flows,
            limit: 20,
            points: 0,
            bidirectional: false,
            previous: false,
            exact: false,
        };
        engine
            .answer(&query, &Scope::default())
            .await
            .expect("answer")
    };
    assert_eq!(ask(&[], "SrcPort >= 0").await.stored_rows, 1500);
    // What old rows lack is empty, as in new rows that lack it.
    let answer = ask(&["ExporterRole"], "SrcPort >= 0").await;
    let of = |name: &str| {
        answer
            .rows
            .iter()
            .find(|row| row.role == "row" && row.key[0] == name)
            .map(|row| row.total)
    };
    assert_eq!((of(""), of("edge")), (Some(1000.0), Some(500.0)));
    assert_eq!(
        ask(&[], "ExporterRole = '' AND SrcPort >= 0")
            .await
            .stored_rows,
        1000
    );
    assert_eq!(
        ask(&[], "ExporterRole != edge AND SrcPort >= 0")
            .await
            .stored_rows,
        1000
    );
}
