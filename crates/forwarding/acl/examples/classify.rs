//! What a classification costs: `chrt -f 10 cargo run --release --example classify -p weir-acl [keys]`.
//!
//! Lists of each kind, traffic aimed at their rules, vectors of 256 out of 65,536 keys (or the given number). Each figure is
//! the median of fifteen passes in TSC clocks a key: as a batch, one by one, and, for lists where that
//! is bearable, the naive scan of all rules (medians over fewer keys).

use std::time::Instant;

use weir_acl::synthetic::{self, Family, Kind};
use weir_acl::{Acl, Cache4, Cache6, Rule};

const KEYS: usize = 65_536;

/// The median of some passes over `keys` keys.
fn median(keys: usize, passes: usize, mut pass: impl FnMut()) -> f64 {
    let mut clocks: Vec<f64> = (0..passes)
        .map(|_| {
            let start = weir_cpu::tsc();
            pass();
            (weir_cpu::tsc() - start) as f64 / keys as f64
        })
        .collect();
    clocks.sort_by(f64::total_cmp);
    clocks[passes / 2]
}

struct Figures {
    batch: f64,
    cached: f64,
    single: f64,
    naive: f64,
}

fn measure<K: Copy>(
    keys: &[K],
    rules: &[Rule],
    batch: impl Fn(&[K], &mut [u32]),
    mut cached: impl FnMut(&[K], &mut [u32]),
    single: impl Fn(&K) -> Option<u32>,
    matches: impl Fn(&Rule, &K) -> bool,
) -> Figures {
    let mut found = vec![0; 256];
    let mut sum = 0u64;
    let batch = median(keys.len(), 15, || {
        for chunk in keys.chunks(256) {
            batch(chunk, &mut found);
            sum += found.iter().map(|rule| u64::from(*rule)).sum::<u64>();
        }
    });
    let cached = median(keys.len(), 15, || {
        for chunk in keys.chunks(256) {
            cached(chunk, &mut found);
            sum += found.iter().map(|rule| u64::from(*rule)).sum::<u64>();
        }
    });
    let single = median(keys.len(), 15, || {
        sum += keys
            .iter()
            .map(|key| u64::from(single(key).unwrap_or(0)))
            .sum::<u64>()
    });
    let few = &keys[..(4_000_000 / rules.len().max(1)).clamp(256, keys.len())];
    let naive = median(few.len(), 3, || {
        sum += few
            .iter()
            .map(|key| {
                rules
                    .iter()
                    .position(|rule| matches(rule, key))
                    .unwrap_or(0) as u64
            })
            .sum::<u64>();
    });
    assert_ne!(sum, 1);
    Figures {
        batch,
        cached,
        single,
        naive,
    }
}

fn main() {
    let keys = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(KEYS);
    println!("instructions: {}", weir_cpu::level().name());
    println!(
        "{:<6}{:<10}{:>7}{:>8}{:>8}{:>9}{:>11}{:>4}{:>9}{:>10}{:>7}{:>6}",
        "",
        "",
        "rules",
        "batch",
        "cached",
        "single",
        "naive",
        "",
        "kB",
        "build ms",
        "trees",
        "scan"
    );
    for family in [Family::V4, Family::V6] {
        for kind in [Kind::Access, Kind::Firewall, Kind::Chain] {
            for count in [100, 1000, 10_000] {
                let rules = synthetic::rules(7, count, kind, family);
                let start = Instant::now();
                let acl = match Acl::build(&rules) {
                    Ok(acl) => acl,
                    Err(error) => {
                        println!("{family:?} {kind:?} {count}: {error}");
                        continue;
                    }
                };
                let (mut cache4, mut cache6) = (Cache4::new(keys, 1), Cache6::new(keys, 1));
                let build = start.elapsed().as_secs_f64() * 1e3;
                let facts = acl.facts();
                let (figures, trees) = if family == Family::V4 {
                    let keys = synthetic::keys4(8, &rules, keys);
                    (
                        measure(
                            &keys,
                            &rules,
                            |k, r| acl.classify4_batch(k, r),
                            |k, r| acl.classify4_cached(&mut cache4, k, r),
                            |k| acl.classify4(k),
                            Rule::matches4,
                        ),
                        facts.trees4,
                    )
                } else {
                    let keys = synthetic::keys6(8, &rules, keys);
                    (
                        measure(
                            &keys,
                            &rules,
                            |k, r| acl.classify6_batch(k, r),
                            |k, r| acl.classify6_cached(&mut cache6, k, r),
                            |k| acl.classify6(k),
                            Rule::matches6,
                        ),
                        facts.trees6,
                    )
                };
                println!(
                    "{:<6}{:<10}{:>7}{:>8.1}{:>8.1}{:>9.1}{:>11.1}{:>4}{:>9}{:>10.1}{:>7}{:>6}",
                    format!("{family:?}"),
                    format!("{kind:?}"),
                    count,
                    figures.batch,
                    figures.cached,
                    figures.single,
                    figures.naive,
                    "",
                    facts.bytes / 1000,
                    build,
                    trees,
                    facts.longest_scan
                );
            }
        }
    }
}
