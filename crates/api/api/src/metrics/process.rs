//! What the system says of the router's process: proc(5), getrlimit(2), clock_gettime(2).

use std::fs;
use std::io;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The router's process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Process {
    /// Seconds of processor time that all its threads took.
    pub cpu_seconds: f64,
    /// Bytes of memory that it has in RAM, hugepages not counted.
    pub resident_bytes: u64,
    /// Bytes of its address space.
    pub virtual_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// The most descriptors that it may open, if bounded.
    pub most_descriptors: Option<u64>,
}

impl Process {
    /// Asks the system.
    ///
    /// # Errors
    /// Without `/proc`.
    pub fn read() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self {
            cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            resident_bytes: field(&status, "VmRSS:").saturating_mul(1024),
            virtual_bytes: field(&status, "VmSize:").saturating_mul(1024),
            threads: field(&status, "Threads:"),
            descriptors: fs::read_dir("/proc/self/fd")?.count() as u64,
            most_descriptors: getrlimit(Resource::Nofile).current,
        })
    }
}

/// The number behind a word at the beginning of a line; 0 when there is none.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_threads_and_descriptors() {
        let process = Process::read().unwrap();
        assert!(
            process.resident_bytes > 100_000 && process.virtual_bytes > process.resident_bytes,
            "{process:?}"
        );
        assert!(
            process.threads >= 1 && process.descriptors >= 3 && process.cpu_seconds > 0.0,
            "{process:?}"
        );
        assert!(
            process
                .most_descriptors
                .is_none_or(|most| most >= process.descriptors),
            "{process:?}"
        );
    }
}
