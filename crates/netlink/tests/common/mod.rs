//! What the tests against the real kernel share.

use std::time::{Duration, Instant};

use weir_netlink::lab::preflight;

/// False, with one line, when this machine cannot make namespaces.
pub(crate) fn can_run() -> bool {
    preflight().inspect_err(|why| println!("skipped: {why}")).is_ok()
}

/// Waits up to 5 seconds for something to become true.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not happen within 5 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}
