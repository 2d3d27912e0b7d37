//! What the tests against the real kernel share.

use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use weir_netlink::lab::preflight;

/// False when this machine cannot make namespaces; says why in one line a test program, past the
/// test harness, which hides what passing tests print.
pub(crate) fn can_run() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let answer = preflight();
        if let Err(why) = &answer {
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
        }
        answer.is_ok()
    })
}

/// Waits up to 5 seconds for something to become true.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within 5 s"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
