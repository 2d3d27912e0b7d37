//! What the kernel says about a process, and what BIRD says about its routes.

use std::path::Path;
use std::process::Command;

/// The unit of times in `/proc` (`USER_HZ`), which is the same on all platforms of Linux that Weir runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// The CPU time of the threads of a process that are not workers, in seconds.
///
/// Workers forward packets; what is left is what the control side needs.
pub(crate) fn control_cpu_seconds(pid: u32) -> Option<f64> {
    let mut ticks = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))
        .ok()?
        .flatten()
    {
        let Ok(text) = std::fs::read_to_string(task.path().join("stat")) else {
            continue;
        };
        let Some((name, rest)) = text.rsplit_once(')') else {
            continue;
        };
        if name.contains("(weir-worker") {
            continue;
        }
        // Behind the name: the state is field 3, the user's and the system's time are fields 14 and 15.
        let mut times = rest.split_ascii_whitespace().skip(11).take(2);
        ticks += times
            .by_ref()
            .filter_map(|it| it.parse::<u64>().ok())
            .sum::<u64>();
    }
    Some(ticks as f64 / TICKS_PER_SECOND)
}

/// The bytes of a process that are in memory.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The number of routes that a protocol of BIRD has exported, of one IP version.
pub(crate) fn bird_exported(control: &Path, protocol: &str) -> Option<u64> {
    let output = Command::new("birdc")
        .arg("-s")
        .arg(control)
        .args(["show", "protocols", "all", protocol])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    exported(&text)
}

/// `Routes: 3 imported, 2 exported, 1 preferred`.
fn exported(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("Routes:"))?;
    let part = line
        .split([',', ':'])
        .find(|part| part.contains("exported"))?;
    part.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_of_exported_routes_is_read() {
        let text = "k4 Kernel master4 up 12:00\n  Channel ipv4\n    Routes:         0 imported, 12345 exported\n";
        assert_eq!(super::exported(text), Some(12345));
        assert_eq!(super::exported("no such protocol"), None);
    }

    #[test]
    fn this_process_has_memory_and_a_time() {
        let pid = std::process::id();
        assert!(super::resident_bytes(pid).is_some_and(|bytes| bytes > 0));
        assert!(super::control_cpu_seconds(pid).is_some());
    }
}
