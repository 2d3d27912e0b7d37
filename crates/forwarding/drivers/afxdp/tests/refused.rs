//! What cannot be opened says so in one sentence with what to do, and leaves nothing behind.

#[allow(dead_code, reason = "each test program uses a part of it")]
mod common;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod switch;

use common::{can_run, pool};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use switch::{ENDS, assert_whole, open};
use weir_afxdp::{AfxdpConfig, AfxdpPort, Mode};
use weir_netlink::lab::{Lab, ROUTER};

/// Opens and expects a refusal; gives the sentence.
#[track_caller]
fn refusal(lab: &Lab, device: &str, mode: Mode) -> String {
    let pool = pool(4096);
    let error = open(lab, device, mode, &pool)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert_whole(&pool);
    assert!(
        !error.contains('\n') && error.len() < 300,
        "one sentence: {error}"
    );
    error
}

#[test]
fn a_device_that_is_not_there() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let error = refusal(&lab, "port-c", Mode::Auto);
    assert!(
        error.contains("port-c") && error.contains("port-a") && error.contains("port-b"),
        "names the like: {error}"
    );
    assert!(refusal(&lab, "a name/that cannot be", Mode::Auto).contains("a name/that cannot be"));
    assert!(refusal(&lab, "lo", Mode::Auto).contains("loopback"));
}

#[test]
fn zero_copy_where_there_is_none() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let error = refusal(&lab, ENDS[0], Mode::ZeroCopy);
    assert!(
        error.contains(ENDS[0]) && error.contains("zero-copy") && error.contains("native"),
        "{error}"
    );
}

#[test]
fn a_device_in_use() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(4096);
    for (first, second) in [
        (Mode::Auto, Mode::Auto),
        (Mode::Auto, Mode::Generic),
        (Mode::Generic, Mode::Auto),
        (Mode::Generic, Mode::Generic),
    ] {
        let port = open(&lab, ENDS[0], first, &pool).unwrap();
        let error = refusal(&lab, ENDS[0], second);
        assert!(
            error.contains(ENDS[0]) && error.contains("in use"),
            "{first:?} then {second:?}: {error}"
        );
        drop(port);
    }
    assert_whole(&pool);
}

#[test]
fn impossible_rings() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(4096);
    for ring in [0, 1, 1000, 1 << 31] {
        let config = AfxdpConfig {
            ring,
            ..AfxdpConfig::new(ENDS[0])
        };
        let opened = common::open(&lab, &config, &pool);
        let error = opened.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("power of two"), "{error}");
    }
    assert_whole(&pool);
}

/// Without a right the sentence names all three. Rights belong to the thread, so a helper gives
/// them up.
#[test]
fn without_rights() {
    if !can_run() {
        return;
    }
    let lab = Lab::two_hosts().switched().build().unwrap();
    let pool = pool(4096);
    let all = CapabilitySet::NET_ADMIN
        | CapabilitySet::NET_RAW
        | CapabilitySet::BPF
        | CapabilitySet::SYS_ADMIN;
    let refused = |lost: CapabilitySet| {
        let config = AfxdpConfig::new(ENDS[0]);
        let namespace = lab.host(ROUTER).unwrap().namespace();
        let opened = namespace.run(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(lost);
            set_capabilities(None, sets).unwrap();
            AfxdpPort::open(&config, &pool).map(|_| ())
        });
        opened.unwrap().unwrap_err().to_string()
    };
    for lost in [
        all,
        CapabilitySet::NET_RAW,
        CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN,
        CapabilitySet::BPF | CapabilitySet::SYS_ADMIN,
    ] {
        let error = refused(lost);
        assert!(error.contains(ENDS[0]), "{lost:?}: {error}");
        for right in ["root", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"] {
            assert!(error.contains(right), "{lost:?}: {error}");
        }
    }
    assert_whole(&pool);
}
