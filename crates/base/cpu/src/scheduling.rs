//! How the kernel schedules the calling thread: its priority, the cores that it may run on, how exactly it wakes.
//!
//! Workers call these once, when they start. Nothing here is called per packet.

use std::io;

/// Priority of real-time workers, low among real-time threads: interrupt threads of the kernel have 50.
const REAL_TIME_PRIORITY: libc::c_int = 10;

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Runs the calling thread before others that want the same core; they still run (nice -20).
///
/// # Errors
/// `EACCES` or `EPERM` without CAP_SYS_NICE.
pub fn set_high_priority() -> io::Result<()> {
    #[expect(unsafe_code, reason = "libc's calls are unsafe")]
    // SAFETY: no pointers; 0 means the calling thread.
    done(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) })
}

/// Runs the calling thread before all that are not real-time (SCHED_FIFO). It keeps its core for as long as it does not
/// sleep, so that threads which it waits for must be able to run on another core.
///
/// # Errors
/// `EPERM` without CAP_SYS_NICE.
pub fn set_real_time() -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: REAL_TIME_PRIORITY,
    };
    #[expect(unsafe_code, reason = "libc's call takes a raw pointer")]
    // SAFETY: the kernel reads the struct, which outlives the call; 0 means the calling thread.
    done(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

/// Lets the calling thread, and threads that it starts later, run on these cores only.
///
/// # Errors
/// When none of them may be used.
pub fn run_on(cores: &[usize]) -> io::Result<()> {
    #[expect(unsafe_code, reason = "libc's affinity calls take raw pointers")]
    // SAFETY: an all-zero cpu_set_t is valid; numbers are below CPU_SETSIZE; the set outlives the call and its size is
    // passed along; 0 means the calling thread.
    done(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &core in cores
            .iter()
            .filter(|&&core| core < libc::CPU_SETSIZE as usize)
        {
            libc::CPU_SET(core, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    })
}

/// Lets sleeps of the calling thread end when they should. Linux otherwise adds up to 50 microseconds.
pub fn wake_exactly() {
    #[expect(unsafe_code, reason = "libc's calls are unsafe")]
    // SAFETY: no pointers; a slack of one nanosecond is valid.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_may() {
        let all = crate::allowed_cores();
        let thread = std::thread::spawn(move || {
            run_on(&all[..1]).unwrap();
            let of_child = std::thread::spawn(crate::allowed_cores).join().unwrap();
            (crate::allowed_cores(), of_child, all[..1].to_vec())
        });
        let (own, of_child, expected) = thread.join().unwrap();
        assert_eq!((&own, &of_child), (&expected, &expected));
        assert!(run_on(&[]).is_err());
    }

    #[test]
    fn priorities_are_set_or_refused_for_lack_of_rights() {
        let refused = |result: io::Result<()>| match result {
            Ok(()) => false,
            Err(error) => {
                let errno = error.raw_os_error();
                assert!(matches!(errno, Some(libc::EPERM | libc::EACCES)), "{error}");
                true
            }
        };
        std::thread::spawn(move || {
            wake_exactly();
            if !refused(set_high_priority()) {
                #[expect(unsafe_code, reason = "libc's calls are unsafe")]
                // SAFETY: no pointers.
                let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
                assert_eq!(nice, -20);
            }
            if !refused(set_real_time()) {
                #[expect(unsafe_code, reason = "libc's calls are unsafe")]
                // SAFETY: no pointers.
                let policy = unsafe { libc::sched_getscheduler(0) };
                assert_eq!(policy, libc::SCHED_FIFO);
            }
        })
        .join()
        .unwrap();
    }
}
