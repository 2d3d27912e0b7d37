//! The export bench counts right, however slow the build is that it measures.

use std::time::Duration;

#[test]
fn every_sample_is_sent_or_dropped_and_each_worker_has_its_share() {
    let found = weir_bench::sflow_export(Duration::from_millis(300), |_| {}).unwrap();
    let over = &found.overload;
    assert!(over.is_exact() && over.taken > 0, "{over:?}");
    assert!(over.fairness >= 0.95, "{over:?}");
    assert!(
        found.steps.iter().all(|step| step.samples_per_second > 0.0),
        "{found:?}"
    );
}
