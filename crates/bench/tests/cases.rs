//! Every case passes its own check of frames and counters, and reports under its name.

use weir_bench::{Case, Effort, Found, run_case};

#[test]
fn every_case_forwards_what_it_should() {
    let mut names = Vec::new();
    for &case in Case::ALL {
        let (found, _) =
            run_case(case, Effort { turns: 2, pairs: 1, thinned: 50 }, |_| ()).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        assert!(!found.is_empty() && !case.about().is_empty());
        for found in found {
            let (name, figure) = match found {
                Found::Packets(found) => (found.name, found.clocks_per_packet),
                Found::Failover(found) => {
                    assert_eq!((found.groups_written, found.lost_after), (1, 0), "{found:?}");
                    (found.name, found.microseconds.min(found.packets_per_second))
                }
                Found::Metered(found) => {
                    assert!(found.resident > 0, "{found:?}");
                    (found.name, found.clocks_per_packet)
                }
                Found::Exported(found) => (found.name, found.records_per_second.min(found.router_records_per_second)),
                Found::Load(found) => (found.name, found.updates_per_second.min(found.forwarding_clocks).min(found.lookup_clocks)),
            };
            assert_eq!(name, case.name());
            assert!(figure > 0.0, "{case:?}");
        }
        names.push(case.name());
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
