//! The link watcher against the kernel of this machine.

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::{can_run, wait_for};
use weir_netlink::netns::NetNs;
use weir_netlink::route::{Route, VethPair};
use weir_netlink::watch::{LinkEvent, LinkWatcher};

fn pair<'a>(name: &'a str, peer_name: &'a str) -> VethPair<'a> {
    VethPair {
        name,
        peer_name,
        ..VethPair::default()
    }
}

/// A namespace, a client and a watcher that has reported the links that existed.
fn watched(buffer: usize) -> (NetNs, Route, LinkWatcher) {
    let namespace = NetNs::new().unwrap();
    let route = namespace.route().unwrap();
    let mut watcher = namespace
        .run(|| LinkWatcher::with_buffer(buffer))
        .unwrap()
        .unwrap();
    let mut events = Vec::new();
    watcher.resync(&mut events).unwrap();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, LinkEvent::Added(link) if link.name == "lo")),
        "{events:?}"
    );
    (namespace, route, watcher)
}

/// Reads until an event is as wanted, and returns all read up to then.
#[track_caller]
fn until(
    watcher: &mut LinkWatcher,
    what: &str,
    wanted: impl Fn(&LinkEvent) -> bool,
) -> Vec<LinkEvent> {
    let mut events = Vec::new();
    wait_for(what, || {
        watcher.wait(Duration::from_millis(100)).unwrap();
        watcher.read(&mut events).unwrap();
        events.iter().any(&wanted)
    });
    events
}

#[test]
fn a_life_of_a_link_is_reported() {
    if !can_run() {
        return;
    }
    let (_namespace, mut route, mut watcher) = watched(1 << 20);
    assert!(
        !watcher.wait(Duration::from_millis(20)).unwrap(),
        "nothing has happened"
    );
    route.create_veth(&pair("a", "b")).unwrap();
    until(
        &mut watcher,
        "a appears",
        |event| matches!(event, LinkEvent::Added(link) if link.name == "a" && !link.up),
    );
    let index = route.link_by_name("a").unwrap().index;
    let peer = route.link_by_name("b").unwrap().index;
    route.set_up(index, true).unwrap();
    route.set_up(peer, true).unwrap();
    until(
        &mut watcher,
        "a runs",
        |event| matches!(event, LinkEvent::Changed(link) if link.name == "a" && link.up && link.running),
    );
    route.set_up(peer, false).unwrap();
    until(
        &mut watcher,
        "a loses carrier",
        |event| matches!(event, LinkEvent::Changed(link) if link.name == "a" && link.up && !link.running),
    );
    route.set_mtu(index, 1300).unwrap();
    route.set_mac(index, [2, 0, 0, 0, 9, 9]).unwrap();
    until(&mut watcher, "a changes", |event| {
        matches!(event, LinkEvent::Changed(link)
            if link.mtu == 1300 && link.mac == Some([2, 0, 0, 0, 9, 9]))
    });
    route.rename(index, "z").unwrap();
    until(
        &mut watcher,
        "a is renamed",
        |event| matches!(event, LinkEvent::Changed(link) if link.ifindex == index && link.name == "z"),
    );
    route.delete(index).unwrap();
    let last = until(
        &mut watcher,
        "z goes",
        |event| matches!(event, LinkEvent::Removed(link) if link.ifindex == index),
    );
    assert!(!last.iter().any(|event| matches!(event, LinkEvent::Overrun)));
    assert_eq!((watcher.overruns(), watcher.undecodable()), (0, 0));
}

#[test]
fn leaving_a_bridge_is_not_leaving_the_world() {
    if !can_run() {
        return;
    }
    let (_namespace, mut route, mut watcher) = watched(1 << 20);
    route.create_veth(&pair("a", "b")).unwrap();
    let bridge = route.create_bridge("br0").unwrap();
    let port = route.link_by_name("a").unwrap().index;
    route.set_controller(port, Some(bridge)).unwrap();
    route.set_controller(port, None).unwrap();
    // A last, unmistakable event: all before it has been read when it is.
    route.set_mtu(port, 1234).unwrap();
    let events = until(
        &mut watcher,
        "the last change",
        |event| matches!(event, LinkEvent::Changed(link) if link.mtu == 1234),
    );
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, LinkEvent::Removed(_))),
        "{events:?}"
    );
    assert!(watcher.links().contains_key(&port));
}

#[test]
fn a_link_moved_away_is_gone_here() {
    if !can_run() {
        return;
    }
    let (_namespace, mut route, mut watcher) = watched(1 << 20);
    let other = NetNs::new().unwrap();
    route.create_veth(&pair("a", "b")).unwrap();
    let index = route.link_by_name("b").unwrap().index;
    route.move_to(index, &other).unwrap();
    until(
        &mut watcher,
        "b leaves",
        |event| matches!(event, LinkEvent::Removed(link) if link.name == "b"),
    );
}

#[test]
fn an_overrun_is_counted_and_mended_by_a_resync() {
    if !can_run() {
        return;
    }
    // The smallest buffer the kernel grants holds two messages or so.
    let (_namespace, mut route, mut watcher) = watched(2048);
    route.create_veth(&pair("kept", "kept-peer")).unwrap();
    route.create_veth(&pair("gone", "gone-peer")).unwrap();
    let mut events = Vec::new();
    watcher.resync(&mut events).unwrap();
    let gone = route.link_by_name("gone").unwrap().index;
    let kept = route.link_by_name("kept").unwrap().index;
    for mtu in 1000..1200 {
        route.set_mtu(kept, mtu).unwrap();
    }
    route.delete(gone).unwrap();
    route.create_veth(&pair("new", "new-peer")).unwrap();

    events.clear();
    let before = watcher.overruns();
    watcher.read(&mut events).unwrap();
    assert!(events.contains(&LinkEvent::Overrun), "{events:?}");
    assert!(watcher.overruns() > before);

    events.clear();
    watcher.resync(&mut events).unwrap();
    let names: BTreeSet<String> = watcher
        .links()
        .values()
        .map(|link| link.name.clone())
        .collect();
    let truth: BTreeSet<String> = route
        .links()
        .unwrap()
        .into_iter()
        .map(|link| link.name)
        .collect();
    assert_eq!(names, truth);
    assert!(names.contains("new") && !names.contains("gone"));
    assert_eq!(watcher.links()[&kept].mtu, 1199);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, LinkEvent::Removed(link) if link.name == "gone"))
    );
    // And it goes on as before.
    route.set_mtu(kept, 1500).unwrap();
    until(
        &mut watcher,
        "a change after the overrun",
        |event| matches!(event, LinkEvent::Changed(link) if link.mtu == 1500),
    );
}
