//! The search beside the reference implementation of MLRsearch, on the same simulated device.

use std::process::Command;

use weir_lab::mlr::{Goal, Limits, search};
use weir_lab::simulated::Simulated;

/// Prints the bounds that the Python package finds for a device of this capacity.
const SCRIPT: &str = "
import sys
try:
    from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal
except ImportError:
    print('absent'); sys.exit(0)
capacity = float(sys.argv[1])
class Device(AbstractMeasurer):
    def __init__(self): self.trials = 0
    def measure(self, intended_duration, intended_load):
        self.trials += 1
        offered = int(intended_duration * intended_load)
        lost = max(0, -int(-(offered - capacity * intended_duration) // 1))
        return MeasurementResult(intended_duration=intended_duration, intended_load=intended_load,
            offered_count=offered, loss_count=lost)
goal = SearchGoal(loss_ratio=0.0, exceed_ratio=0.0, relative_width=0.005, initial_trial_duration=0.25,
    final_trial_duration=1.0, duration_sum=1.0, preceding_targets=2, expansion_coefficient=2)
config = Config()
config.goals = [goal]
config.min_load = 1000.0
config.max_load = 14880000.0
config.search_duration_max = 1e9
config.warmup_duration = 0.25
device = Device()
result = MultipleLossRatioSearch(config=config).search(measurer=device, debug=lambda *a: None)[goal]
print(float(result.relevant_lower_bound), float(result.relevant_upper_bound), device.trials)
";

#[test]
fn the_reference_finds_the_same() {
    for (seed, capacity) in [(1, 123_456.0), (2, 5_000_000.0), (3, 14_000_000.0)] {
        let output = Command::new("python3")
            .args(["-c", SCRIPT, &capacity.to_string()])
            .output();
        let Ok(output) = output else {
            eprintln!("skipped: python3 is not installed");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.trim() == "absent" {
            eprintln!("skipped: the Python package MLRsearch is not installed");
            return;
        }
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let numbers: Vec<f64> = text
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        let limits = Limits {
            min_load: 1000.0,
            max_load: 1.488e7,
            ..Limits::default()
        };
        let own = search(
            &[Goal::no_drop(1.0)],
            limits,
            &mut Simulated::new(capacity, seed),
        )
        .unwrap();
        let (lower, upper) = (own.found[0].lower.unwrap(), own.found[0].upper.unwrap());
        eprintln!(
            "capacity {capacity}: reference {numbers:?}, own {lower} {upper} in {}",
            own.trials.len()
        );
        // Both contain the capacity, to one packet, and are as narrow as the goal asks for.
        assert!(
            numbers[0] <= capacity + 1.0 && numbers[1] >= capacity - 1.0,
            "{numbers:?}"
        );
        assert!(
            lower <= capacity + 1.0 && upper >= capacity - 1.0,
            "{lower} {upper}"
        );
        assert!(
            lower <= numbers[1] && numbers[0] <= upper,
            "the intervals do not overlap"
        );
    }
}
