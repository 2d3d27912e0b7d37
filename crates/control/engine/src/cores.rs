//! Which cores threads run on, and with which priority.
//!
//! Workers that are pinned have their cores for themselves as far as there are others: the thread that starts the
//! router gives these cores up, and so do all threads that it starts later (control, API, agent, exporter). Workers take
//! the priority of the configuration when they start; where the right is missing they run as other threads, and the log
//! says so.
//!
//! A real-time worker does not let other threads run on its core. It waits for the control thread at times, so that
//! real-time priority is refused where no core would be left for that thread.

use std::sync::OnceLock;

use weir_config::Priority;
use weir_cpu::scheduling;

/// The cores of the process as it was started, whatever cores the calling thread has given up since.
pub(crate) fn allowed() -> &'static [usize] {
    static CORES: OnceLock<Vec<usize>> = OnceLock::new();
    CORES.get_or_init(weir_cpu::allowed_cores)
}

/// The cores that are left for other threads than workers.
fn left(cores: &[usize]) -> Vec<usize> {
    allowed()
        .iter()
        .filter(|core| !cores.contains(core))
        .copied()
        .collect()
}

/// The calling thread leaves the workers' cores, if there are others.
pub(crate) fn leave_to_workers(cores: &[usize]) {
    let left = left(cores);
    if cores.is_empty() || left.is_empty() {
        return;
    }
    if let Err(error) = scheduling::run_on(&left) {
        tracing::warn!("threads beside the workers cannot be kept off their cores: {error}");
    }
}

/// The priority that `count` workers can have on these cores, or on any if there are none.
pub(crate) fn priority(wanted: Priority, count: usize, cores: &[usize]) -> Priority {
    let is_one_left = if cores.is_empty() {
        allowed().len() > count
    } else {
        !left(cores).is_empty()
    };
    if wanted == Priority::RealTime && !is_one_left {
        tracing::warn!(
            "workers.priority: real-time needs a core that no worker has, and there are {} cores for {count} workers: workers run with high priority",
            allowed().len()
        );
        return Priority::High;
    }
    wanted
}

/// Gives the calling thread, a worker, its priority.
pub(crate) fn take_priority(priority: Priority, worker: usize) {
    let result = match priority {
        Priority::Normal => return,
        Priority::High => scheduling::set_high_priority(),
        Priority::RealTime => scheduling::set_real_time(),
    };
    if let Err(error) = result {
        tracing::warn!(
            worker,
            "the worker runs with the priority of other threads: {error}; give the router CAP_SYS_NICE, or set workers.priority: normal"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_needs_a_core_for_the_others() {
        let all = allowed();
        let chosen = |cores: &[usize]| priority(Priority::RealTime, cores.len().max(1), cores);
        assert_eq!(chosen(all), Priority::High);
        if all.len() > 1 {
            assert_eq!(chosen(&all[..1]), Priority::RealTime);
            assert_eq!(chosen(&[]), Priority::RealTime);
        }
        assert_eq!(priority(Priority::Normal, 1, all), Priority::Normal);
    }

    #[test]
    fn other_threads_leave_the_cores_of_workers() {
        let all = allowed().to_vec();
        std::thread::spawn(move || {
            leave_to_workers(&all);
            assert_eq!(weir_cpu::allowed_cores(), all, "there are no others");
            if all.len() > 1 {
                leave_to_workers(&all[..1]);
                assert_eq!(weir_cpu::allowed_cores(), all[1..]);
                assert_eq!(allowed(), all, "the check of a file still knows them");
            }
        })
        .join()
        .unwrap();
    }
}
