//! Files that are right, and files of which every error must be reported.

use super::*;

const GOOD: &str = "
ports:
  tap0:
    vlan: 100
    macs: [52:54:00:00:00:01]
    addresses: [192.0.2.10, 2001:db8::10]
    acl-in: web
    police-in: {packets: 100000, bits: 1000000000}
bonds:
  up:
    members: [eth0, eth1]
    trunk: [100, 200-202]
    native: 1
acls:
  web:
    - {action: permit, protocol: tcp, destination-port: 80-81, tcp-flags: 'syn,!ack', stateful: true}
    - {action: deny, source: 10.0.0.0/8}
";

#[test]
fn a_file_is_read() {
    let config = check("host.yaml", GOOD.as_bytes()).unwrap();
    let tap = &config.ports["tap0"];
    assert_eq!(tap.macs, [[0x52, 0x54, 0, 0, 0, 1]]);
    assert!(tap.guard.mac && tap.guard.ip && tap.guard.servers && !tap.learn && tap.answer);
    let up = &config.bonds["up"].port;
    assert_eq!(
        up.carries,
        Carries::Trunk {
            vlans: [100, 200, 201, 202].into(),
            native: Some(1),
            tpid: 0x8100
        }
    );
    assert!(up.learn && up.control && !up.guard.servers);
    assert_eq!(config.acls["web"][0].tcp_flags, Some((0b1_0010, 0b0_0010)));
    assert_eq!(config.interfaces().count(), 3);
}

#[test]
fn all_errors_are_reported_at_their_places() {
    let bad = "
modes: native
ports:
  tap0: {vlan: 5000}
  tap1: {vlan: 1, macs: [01:00:5e:00:00:01], acl-in: nowhere}
  a-name-that-is-too-long: {trunk: [9-1]}
acls:
  x:
    - {action: maybe}
    - {action: permit, destination-port: 80}
";
    let errors = check("host.yaml", bad.as_bytes()).unwrap_err();
    let lines: Vec<_> = errors
        .iter()
        .map(|it| (it.line, it.path.as_str()))
        .collect();
    assert!(lines.contains(&(2, "modes")), "{lines:?}");
    assert!(lines.contains(&(4, "ports.tap0.vlan")), "{lines:?}");
    assert!(lines.contains(&(5, "ports.tap1.macs")), "{lines:?}");
    assert!(
        lines.contains(&(6, "ports.a-name-that-is-too-long")),
        "{lines:?}"
    );
    assert!(lines.contains(&(9, "acls.x[0].action")), "{lines:?}");
    assert!(lines.contains(&(10, "acls.x[1]")), "{lines:?}");
    assert!(
        errors
            .iter()
            .any(|it| it.message.contains("there is no ACL"))
    );
}

#[test]
fn hostile_files_are_refused() {
    for text in [
        "[[[[",
        "ports: 3",
        "ports: {a: [1]}",
        "\u{0}",
        "acls: {x: {y: z}}",
        "ports:\n  x: {vlan: 1, police-in: 5}",
    ] {
        assert!(check("x", text.as_bytes()).is_err(), "{text}");
    }
    assert!(check("x", &[0xff, 0xfe]).is_err());
}

#[test]
fn the_example_of_the_documentation_is_right() {
    let page = include_str!("../../../../../docs/xdp.md");
    let example = page
        .split("```yaml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let config = check("docs/xdp.md", example.as_bytes()).unwrap();
    assert_eq!(config.interfaces().count(), 4);
}
