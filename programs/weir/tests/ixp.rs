//! `weir peering demo`: leaks, hijacks, a plan, an undo and a de-peering with BIRD in namespaces.

use std::process::Command;

#[test]
fn leaks_and_hijacks_are_rejected_and_the_plan_is_right() {
    if let Err(why) = weir_netlink::lab::preflight() {
        println!("skipped: {why}");
        return;
    }
    if !weir_peering::cases::is_available() {
        println!("skipped: bird is not installed (apt install bird2)");
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["peering", "demo", "--json"])
        .output()
        .unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    for (made, seen) in [
        ("sessions", "sessions_up"),
        ("leaks_made", "leaks_rejected"),
        ("hijacks_made", "hijacks_rejected"),
    ] {
        assert!(found[made].as_u64() > Some(0), "{found}");
        assert_eq!(found[made], found[seen], "{found}");
    }
    assert_eq!(found["verdict_diff_right"], true, "{found}");
    assert_eq!(found["policy_cases_failed"], 0, "{found}");
    assert!(output.status.success(), "{output:?}");
}
