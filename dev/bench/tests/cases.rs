//! Every case passes its own check of frames and counters, and reports under its name.

use weir_bench::{Case, Effort, Found, run_case};

#[test]
fn every_case_forwards_what_it_should() {
    let (mut names, mut promised) = (Vec::new(), Vec::new());
    for &case in Case::ALL {
        eprintln!("{case:?}");
        let (found, _) = run_case(
            case,
            Effort {
                turns: 2,
                pairs: 1,
                thinned: 50,
                portion: std::time::Duration::ZERO,
                sampled: true,
            },
            |_| (),
        )
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
        assert!(!found.is_empty() && !case.about().is_empty());
        for found in found {
            let (name, figure) = match found {
                Found::Packets(found) => {
                    let sampled = found.sflow != "off";
                    let reported = [found.added, found.added_error, found.null, found.null_error]
                        .map(|figure| figure.is_some());
                    assert_eq!(reported, [sampled; 4], "{found:?}");
                    assert_eq!(found.samples_lost, sampled.then_some(0), "{found:?}");
                    if let Some(at_most) = found.added_at_most {
                        promised.push((found.name, found.sflow.clone(), at_most));
                    }
                    (found.name, found.clocks_per_packet)
                }
                Found::Failover(found) => {
                    assert_eq!(
                        (found.groups_written, found.lost_after),
                        (1, 0),
                        "{found:?}"
                    );
                    (found.name, found.microseconds.min(found.packets_per_second))
                }
                Found::Metered(found) => {
                    assert!(found.resident > 0, "{found:?}");
                    (found.name, found.clocks_per_packet)
                }
                Found::Exported(found) => (
                    found.name,
                    found
                        .records_per_second
                        .min(found.router_records_per_second),
                ),
                Found::Generated(found) => (found.name, found.clocks.min(found.mpps)),
                Found::Load(found) => (
                    found.name,
                    found
                        .updates_per_second
                        .min(found.forwarding_clocks)
                        .min(found.lookup_clocks),
                ),
            };
            assert_eq!(name, case.name());
            assert!(figure > 0.0, "{case:?}");
        }
        names.push(case.name());
    }
    let rates = [("10000", 0.2), ("1000", 0.5), ("100", 2.0)];
    let of = |case, rates: &[(&str, f64)]| {
        rates
            .iter()
            .map(|(rate, at_most)| (case, (*rate).to_owned(), *at_most))
            .collect::<Vec<_>>()
    };
    let mut wanted = [of("l2xc", &rates), of("ip4", &rates)].concat();
    wanted.extend(
        ["ip4-full", "ip6", "ip6-full", "mpls-swap"]
            .map(|case| of(case, &rates[..1]))
            .concat(),
    );
    promised.sort_by(|one, other| one.0.cmp(other.0));
    wanted.sort_by(|one, other| one.0.cmp(other.0));
    assert_eq!(promised, wanted);
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
