//! The page `docs/metrics.md`, written from the table of metrics.

use std::fmt::Write;

use crate::metrics::families::METRICS;

const HEAD: &str = "\
# Metrics

<!-- Written from the table of metrics of the crate `weir-api`; `UPDATE_GOLDEN=1 cargo test -p weir-api` rewrites it. -->

`GET /metrics` (and `/v1/metrics`) tells every counter of the router as OpenMetrics 1.0 text, for Prometheus and all
that speak its language. It is asked for over the API's listeners, with a role that may look, or over a listener of
its own that has nothing else. A client that sends `Accept-Encoding: gzip` gets about a tenth of the bytes; one that accepts
`text/plain` and not OpenMetrics gets Prometheus's text format 0.0.4.

A counter's samples end in `_total`, an info's in `_info`. Counters of interfaces, nodes and drops start again at 0 after
`weir clear`; those of ports are the driver's, the kernel's and the device's own. A label that has nothing to say is empty.

| sample | type | unit | labels | meaning |
|---|---|---|---|---|
";

/// The page `docs/metrics.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    for family in METRICS {
        let labels: Vec<_> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{}{}` | {} | {} | {} | {} |",
            family.name,
            family.kind.suffix(),
            family.kind.word(),
            family.unit.unwrap_or_default(),
            labels.join(", "),
            family.help
        );
    }
    page
}
