//! The kernel's 802.1Q and 802.1ad devices at both ends of the router's sub-interfaces.

use super::bed::{Bed, kernel_has};

const LINKS: [&str; 2] = [
    "link add link base name one type vlan proto 802.1Q id 5",
    "link add link base name two type vlan proto 802.1ad id 5",
];

/// Tags of a device, outermost first.
type Tags = &'static [(&'static str, u16)];

const DOT1Q: &str = "802.1Q";
const DOT1AD: &str = "802.1ad";

/// A device with these tags on a host's `eth0`, called `tNUMBER`, with an address.
fn device(bed: &Bed, host: &str, number: usize, tags: Tags, address: &str) {
    let (mut below, last) = ("eth0".to_owned(), tags.len() - 1);
    for (place, (protocol, id)) in tags.iter().enumerate() {
        let name = if place == last {
            format!("t{number}")
        } else {
            format!("{below}.{id}-{number}").replace("eth0.", "o")
        };
        // An outer device of a pair of tags carries frames of four bytes more than its MTU.
        bed.on(
            host,
            &format!("ip link add link {below} name {name} type vlan proto {protocol} id {id}"),
        );
        bed.on(host, &format!("ip link set {name} up"));
        below = name;
    }
    // Every veth takes frames of its MTU and one tag.
    bed.on(
        host,
        &format!("ip link set {below} mtu {}", 1504 - 4 * tags.len()),
    );
    bed.on(host, &format!("ip address add {address} dev {below}"));
}

/// The largest echo request of a packet with so many tags.
fn full_size(tags: Tags) -> usize {
    1504 - 4 * tags.len() - 28
}

#[test]
fn every_kind_of_tag_is_routed_to_every_other() {
    if !kernel_has(&LINKS) {
        return;
    }
    let near: [Tags; 4] = [
        &[(DOT1Q, 10)],
        &[(DOT1AD, 10)],
        &[(DOT1AD, 100), (DOT1Q, 200)],
        &[(DOT1Q, 100), (DOT1Q, 200)],
    ];
    let far: [Tags; 4] = [
        &[(DOT1Q, 4094)],
        &[(DOT1AD, 20)],
        &[(DOT1AD, 4000), (DOT1Q, 1)],
        &[(DOT1Q, 4000), (DOT1Q, 1)],
    ];
    let mut bed = Bed::new("tags", &[("near", 1), ("far", 1)]);
    let mut config = "interfaces:\n".to_owned();
    for (network, host, ends) in [(1, "near", &near), (2, "far", &far)] {
        config += &format!(
            "  {host}:\n    device: {{driver: af-xdp, name: {host}-0}}\n    sub-interfaces:\n"
        );
        for (number, tags) in ends.iter().enumerate() {
            let key = if tags[0].0 == DOT1Q {
                "dot1q"
            } else {
                "dot1ad"
            };
            let inner = tags
                .get(1)
                .map_or_else(String::new, |(_, id)| format!("inner-dot1q: {id}, "));
            let encapsulation = format!("{key}: {}, {inner}exact-match: true", tags[0].1);
            let mtu = 1504 - 4 * tags.len();
            config += &format!(
                "      {}: {{encapsulation: {{{encapsulation}}}, mtu: {mtu}, addresses: [10.{network}.{number}.1/24]}}\n",
                number + 1
            );
            device(
                &bed,
                host,
                number,
                tags,
                &format!("10.{network}.{number}.2/24"),
            );
        }
    }
    bed.start(&config);
    for (number, tags) in near.iter().enumerate() {
        // To the next kind of tag at the other end, and back.
        let other = (number + 1) % 4;
        bed.on(
            "near",
            &format!("ip route add 10.2.{other}.0/24 via 10.1.{number}.1"),
        );
        bed.on(
            "far",
            &format!("ip route add 10.1.{number}.0/24 via 10.2.{other}.1"),
        );
        bed.ping("near", &format!("10.1.{number}.1"), full_size(tags));
        bed.ping("far", &format!("10.2.{other}.1"), full_size(far[other]));
        bed.ping(
            "near",
            &format!("10.2.{other}.2"),
            full_size(tags).min(full_size(far[other])),
        );
        bed.ping("far", &format!("10.1.{number}.2"), 56);
        let (came, left) = bed.packets(&format!("near.{}", number + 1));
        assert!(
            came >= 3 && left >= 3,
            "near.{}: {came} in, {left} out",
            number + 1
        );
    }
    // A tag that nobody has.
    device(&bed, "near", 9, &[(DOT1Q, 77)], "10.1.9.2/24");
    bed.no_ping("near", "10.1.9.1");
    let errors = bed.ask("show errors").to_string();
    assert!(
        errors.contains("unknown-vlan") || errors.contains("vlan"),
        "{errors}"
    );
    bed.stop();
}

#[test]
fn tags_are_popped_pushed_and_translated_on_the_way_across() {
    if !kernel_has(&LINKS) {
        return;
    }
    let mut bed = Bed::new("rewrite", &[("near", 1), ("far", 1)]);
    let ways: [(Tags, &str, Tags, &str); 5] = [
        // One tag becomes another; two become one; as they are; one becomes two by its own rewrite; the outer goes.
        (&[(DOT1Q, 10)], "dot1q: 10", &[(DOT1AD, 20)], "dot1ad: 20"),
        (
            &[(DOT1AD, 100), (DOT1Q, 200)],
            "dot1ad: 100, inner-dot1q: 200",
            &[(DOT1Q, 30)],
            "dot1q: 30",
        ),
        (
            &[(DOT1Q, 40)],
            "dot1q: 40}, tag-rewrite: {pop: 0",
            &[(DOT1Q, 40)],
            "dot1q: 40}, tag-rewrite: {pop: 0",
        ),
        (
            &[(DOT1Q, 50)],
            "dot1q: 50}, tag-rewrite: {pop: 1, dot1ad: 60, inner-dot1q: 61",
            &[(DOT1AD, 60), (DOT1Q, 61)],
            "dot1ad: 60, inner-dot1q: 61}, tag-rewrite: {pop: 0",
        ),
        (
            &[(DOT1AD, 70), (DOT1Q, 71)],
            "dot1ad: 70, inner-dot1q: 71}, tag-rewrite: {pop: 1",
            &[(DOT1Q, 71)],
            "dot1q: 71}, tag-rewrite: {pop: 0",
        ),
    ];
    let mut config = "interfaces:\n".to_owned();
    for (host, other, last) in [("near", "far", 1), ("far", "near", 2)] {
        config += &format!(
            "  {host}:\n    device: {{driver: af-xdp, name: {host}-0}}\n    sub-interfaces:\n"
        );
        for (number, (left, left_keys, right, right_keys)) in ways.iter().enumerate() {
            let (tags, keys) = if last == 1 {
                (*left, left_keys)
            } else {
                (*right, right_keys)
            };
            config += &format!(
                "      {}: {{encapsulation: {{{keys}}}, l2xc: {other}.{}}}\n",
                number + 1,
                number + 1
            );
            device(
                &bed,
                host,
                number,
                tags,
                &format!("10.3.{number}.{last}/24"),
            );
        }
    }
    bed.start(&config);
    for (number, (left, _, right, _)) in ways.iter().enumerate() {
        bed.ping(
            "near",
            &format!("10.3.{number}.2"),
            full_size(left).min(full_size(right)),
        );
        bed.ping("far", &format!("10.3.{number}.1"), 56);
    }
    bed.stop();
}
