//! Energy of the processor packages, by RAPL's counters in `/sys/class/powercap`.
//!
//! Virtual machines rarely have them, and most kernels let only root read them.

use std::collections::BTreeMap;
use std::path::Path;

/// Microjoules of each package, and where its counter wraps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Energy(BTreeMap<String, (u64, u64)>);

impl Energy {
    /// Reads the counters below `root`; without any there are none.
    #[must_use]
    pub fn sample(root: &Path) -> Energy {
        let folder = root.join("sys/class/powercap");
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let number = |path: &Path| {
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let packages = entries.filter_map(|entry| {
            let name = entry.file_name().to_str()?.to_owned();
            // A package is intel-rapl:0; intel-rapl:0:1 is a part of it.
            if name.matches(':').count() != 1 {
                return None;
            }
            let at = number(&entry.path().join("energy_uj"))?;
            let most = number(&entry.path().join("max_energy_range_uj")).unwrap_or(u64::MAX);
            Some((name, (at, most)))
        });
        Energy(packages.collect())
    }

    /// Joules since an earlier sample; `None` where the machine does not say.
    #[must_use]
    pub fn since(&self, before: &Energy) -> Option<f64> {
        let mut sum = None;
        for (name, (now, most)) in &self.0 {
            let (then, _) = before.0.get(name)?;
            let used = if now >= then {
                now - then
            } else {
                now.saturating_add(most - then.min(most))
            };
            sum = Some(sum.unwrap_or(0.0) + used as f64 * 1e-6);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_added_and_counters_wrap() {
        let root = std::env::temp_dir().join(format!("weir-energy-{}", std::process::id()));
        let record = |name: &str, value: u64| {
            let folder = root.join("sys/class/powercap").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("energy_uj"), format!("{value}\n")).unwrap();
            std::fs::write(folder.join("max_energy_range_uj"), "10000000\n").unwrap();
        };
        assert_eq!(Energy::sample(&root).since(&Energy::default()), None);
        record("intel-rapl:0", 1_000_000);
        record("intel-rapl:0:0", 7);
        record("intel-rapl:1", 9_000_000);
        let before = Energy::sample(&root);
        record("intel-rapl:0", 3_500_000);
        record("intel-rapl:1", 500_000);
        let joules = Energy::sample(&root).since(&before);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(joules, Some(2.5 + 1.5));
    }
}
