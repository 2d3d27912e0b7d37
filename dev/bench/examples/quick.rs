//! Runs the cases with little effort; for tuning.
use std::time::Duration;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let sampled = std::env::var_os("SFLOW").is_some();
    for &case in weir_bench::Case::ALL {
        if !only.is_empty() && !only.iter().any(|name| name == case.name()) {
            continue;
        }
        match weir_bench::run_case(
            case,
            weir_bench::Effort {
                turns: 512,
                pairs: 31,
                thinned: 1,
                portion: Duration::from_millis(100),
                sampled,
            },
            |_| (),
        ) {
            Ok((results, huge)) => {
                for found in results {
                    let weir_bench::Found::Packets(r) = found else {
                        println!("{found:#?}");
                        continue;
                    };
                    if !sampled {
                        println!(
                            "{:<12} {:>7.2} {:>7.2} {:?}",
                            r.name, r.clocks_per_packet, r.clocks_median, r.nodes
                        );
                        continue;
                    }
                    println!(
                        "{} {} huge={huge} {:.2} clocks added {:?} +- {:?} [{:?} {:?}] null {:?} +- {:?} repeated {:?} samples {:?} lost {:?} {:?}",
                        r.name,
                        r.sflow,
                        r.clocks_per_packet,
                        r.added,
                        r.added_error,
                        r.added_low,
                        r.added_high,
                        r.null,
                        r.null_error,
                        r.repeated,
                        r.samples,
                        r.samples_lost,
                        r.nodes
                    );
                }
            }
            Err(error) => println!("{error}"),
        }
    }
}
