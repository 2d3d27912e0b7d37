//! docs/nodes.md, made of the catalogue of nodes, the table of features and the table of drop reasons;
//! `UPDATE_GOLDEN=1` rewrites it.

use std::fmt::Write;

use weir_graph::DropReason;
use weir_nodes::{FEATURES, IcmpLimit};

fn page() -> String {
    let (producer, _trace) = weir_ring::spsc::ring(1);
    let graph = weir_nodes::graph(IcmpLimit::default());
    let graph = graph.build(0, producer).unwrap();
    let mut page = String::from(
        "# Nodes, features and drop reasons\n\nMade from the code's own tables.\n\n## Nodes\n\n\
         A vector of packets passes nodes; each gives every packet a verdict. A node's file in \
         `crates/forwarding/nodes/src` has its name.\n\n\
         | node | does | sends to | drops for |\n|---|---|---|---|\n",
    );
    let names = |names: Vec<&str>| match names.len() {
        0 => "-".to_owned(),
        _ => format!("`{}`", names.join("`, `")),
    };
    for spec in graph.specs() {
        let (nexts, reasons) = (
            names(spec.nexts.to_vec()),
            names(spec.reasons.iter().map(|reason| reason.name()).collect()),
        );
        let (name, about) = (spec.name, spec.about);
        let _ = writeln!(page, "| `{name}` | {about} | {nexts} | {reasons} |");
    }
    page.push_str(
        "\n## Features\n\n\
         A feature is a node that interfaces can have on a path. The order follows from \
         \"before\".\n\n| node | paths | before |\n|---|---|---|\n",
    );
    for feature in FEATURES {
        let arcs = names(feature.arcs.iter().map(|arc| arc.name()).collect());
        let before = names(feature.runs_before.to_vec());
        let _ = writeln!(page, "| `{}` | {arcs} | {before} |", feature.node);
    }
    page.push_str(
        "\n## Drop reasons\n\n\
         As `weir show errors`, the API, the metrics and captures name them.\n\n\
         | reason | severity | meaning |\n|---|---|---|\n",
    );
    for reason in DropReason::ALL {
        let (name, severity) = (reason.name(), reason.severity().name());
        let _ = writeln!(page, "| `{name}` | {severity} | {} |", reason.sentence());
    }
    page
}

#[test]
fn the_page_is_made_of_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/nodes.md");
    let page = page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/nodes.md differs; UPDATE_GOLDEN=1 rewrites it"
    );
}
