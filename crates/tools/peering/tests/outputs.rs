//! Files for other programs and for FRR: accepted by the programs, compared, replaced and put back.

use std::path::{Path, PathBuf};
use std::process::Command;

use weir_peering::model::{AspaMode, Daemon, Peering};
use weir_peering::outputs::{self, files};
use weir_peering::resolve::{self, Loaded};
use weir_peering::{frr, router};

const ROUTER: &str = "\
interfaces:
  xe0: { addresses: [ 185.1.203.20/24, '2001:7f8:10f::206a:20/64' ] }
  xe1: { addresses: [ 185.1.95.20/24, '2001:7f8:b7::20/64' ] }
  xe2: { addresses: [ 185.1.204.1/24, '2a0b:dd80:1::1/64', 194.1.163.1/24, '2001:678:d78::1/64' ] }
";

const OUTPUTS: &str = "  outputs:
    host-name: nlams0.example.net
    management: [194.1.163.0/28, '2001:678:d78::/64']
    nftables: {file: FOLDER/peering.nft, management-ports: [830]}
    unbound: {file: FOLDER/unbound.conf, listen: [194.1.163.1], allow: [192.168.0.0/16]}
    snmpd: {file: FOLDER/snmpd.conf, location: Amsterdam, contact: noc@example.net}
    keepalived: {file: FOLDER/keepalived.conf, instances: {lan: {interface: lo, id: 7, priority: 150, addresses: [194.1.163.254/24]}}}
    ospf: {file: FOLDER/ospf.conf, interfaces: {xe2: {cost: 5, bfd: true}, lo: {stub: true}, xe1: {maintenance: true}}}
    reverse-dns: {folder: FOLDER/zones}
    registry: {file: FOLDER/ripe.txt, as-set: AS-IPNG, contact: noc@example.net}
    borgmatic: {file: FOLDER/borgmatic.yaml, repositories: ['ssh://backup.example.net/./nlams0']}
    access-lists: {file: FOLDER/acl.yaml}
";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-outputs-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/full")
}

fn load(more: &str, change: impl FnOnce(&mut Peering)) -> Loaded {
    let text = std::fs::read_to_string(data().join("peering.yaml")).unwrap();
    let mut peering = Peering::parse(
        "peering.yaml",
        &(text.replace(", interface: xe0.100", ", interface: xe0") + more),
    )
    .unwrap();
    peering.read_includes(&data()).unwrap();
    (peering.daemon, peering.policy.aspa) = (Daemon::Bird, AspaMode::Off);
    change(&mut peering);
    resolve::load(peering, &data(), 0).unwrap()
}

fn router_config() -> weir_config::Config {
    weir_config::check("router.yaml", ROUTER).unwrap().0
}

#[test]
fn outputs_are_written_checked_and_undone() {
    let folder = Folder::new("all");
    let of = load(
        &OUTPUTS.replace("FOLDER", &folder.0.display().to_string()),
        |_| (),
    );
    let all = outputs::all(&of.peering, &of.snapshot, &router_config()).unwrap();
    let text = |name: &str| &all.iter().find(|it| it.name == name).unwrap().text;
    assert!(
        text("nftables")
            .contains("set neighbors4 { type ipv4_addr; elements = { 185.1.95.7, 185.1.203.1,")
    );
    assert!(text("unbound").contains("access-control: 194.1.163.0/24 allow"));
    assert!(text("ospf").contains("interface \"xe1\" { cost 65535; };"));
    assert!(text("registry").contains("import:         from AS25091 action pref=940; accept ANY"));
    assert!(text("registry").contains("export:         to AS50869 announce ANY"));
    assert!(text("keepalived").contains("virtual_router_id 7"));
    let zones: Vec<_> = all.iter().filter(|it| it.name == "reverse-dns").collect();
    assert_eq!(zones.len(), 2);
    assert!(
        zones[0].text.contains("1 IN PTR xe2.nlams0.example.net.")
            || zones[1].text.contains("1 IN PTR xe2.nlams0.example.net.")
    );
    // The access lists are a good part of the router's file.
    let merged = format!(
        "{}{}",
        ROUTER.replace("xe0: { ", "xe0: { acl: { input: [ xe0-in ] }, "),
        text("access-lists").split("\ninterfaces:").next().unwrap()
    );
    let (config, _) =
        weir_config::check("merged.yaml", &merged).unwrap_or_else(|it| panic!("{it:?}\n{merged}"));
    assert!(config.access_lists.contains_key("xe0-in"), "{merged}");
    // keepalived takes only interfaces that the machine has.
    for it in all.iter().filter(|it| it.name != "keepalived") {
        match files::check(it).unwrap() {
            Some(()) => println!("{} is accepted by {}", it.name, it.check[0]),
            None => println!("{} was not checked by a program", it.name),
        }
    }
    // A file of a person is kept and comes back.
    std::fs::write(folder.0.join("snmpd.conf"), "mine\n").unwrap();
    assert!(
        files::compare(&all)
            .unwrap()
            .iter()
            .all(|it| !it.lines.is_empty())
    );
    let all: Vec<_> = all
        .into_iter()
        .filter(|it| it.name != "keepalived")
        .collect();
    assert_eq!(files::replace(&all).unwrap().len(), all.len());
    assert!(
        files::compare(&all)
            .unwrap()
            .iter()
            .all(|it| it.lines.is_empty())
    );
    assert_eq!(files::replace(&all).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(files::undo(&all).unwrap().len(), all.len());
    assert_eq!(
        std::fs::read_to_string(folder.0.join("snmpd.conf")).unwrap(),
        "mine\n"
    );
    assert!(!folder.0.join("peering.nft").exists());
}

#[test]
fn texts_that_would_end_a_statement_are_refused() {
    let hostile = "  outputs:\n    snmpd: {file: /dev/null, location: \"x\\nrwcommunity public\"}\n    \
                   keepalived: {file: /dev/null, instances: {'a { }': {interface: lo, id: 1, priority: 1, addresses: []}}}\n";
    let of = load(hostile, |_| ());
    let said = outputs::all(&of.peering, &of.snapshot, &router_config())
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("location") && said.contains("keepalived: instances"),
        "{said}"
    );
}

#[test]
fn a_section_is_compared_with_the_router_that_it_is_a_part_of() {
    let of = load("", |_| ());
    let found = router::cross_check(&of.peering, &router_config());
    assert_eq!(found.errors, Vec::<String>::new());
    let warned = |text: &str| found.warnings.iter().any(|it| it.contains(text));
    assert!(
        warned("neither uRPF nor an access list") && warned("is not sampled"),
        "{found:?}"
    );
    let other = ROUTER
        .replace("185.1.203.20/24", "185.1.203.20/25")
        .replace("185.1.204.1/24, ", "")
        .replace("xe0:", "xe0: { mtu: 9000, ")
        .replace("xe0: { mtu: 9000,  {", "xe0: { mtu: 9000,");
    let (config, _) = weir_config::check("router.yaml", &other).unwrap();
    let found = router::cross_check(&of.peering, &config);
    assert!(
        found
            .errors
            .iter()
            .any(|it| it.contains("AS25091_1: 185.1.204.9 is in the subnet of no interface")),
        "{found:?}"
    );
    assert!(
        found
            .warnings
            .iter()
            .any(|it| it.contains("has an MTU of 9000, the LAN of 1500")),
        "{found:?}"
    );
    let (config, _) = weir_config::check("router.yaml", "interfaces: {xe9: {}}").unwrap();
    let found = router::cross_check(&of.peering, &config);
    assert!(
        found
            .errors
            .iter()
            .any(|it| it.contains("has no interface \"xe0\"")),
        "{found:?}"
    );
}

#[test]
fn frr_accepts_the_configuration_and_its_limits_are_refused() {
    let of = load("", |it| it.daemon = Daemon::Frr);
    let said = frr::configuration(&of.peering, &of.snapshot)
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("AS50869: blackhole") && said.contains("RTR servers"),
        "{said}"
    );
    let of = load("", |it| {
        it.daemon = Daemon::Frr;
        it.neighbors.iter_mut().for_each(|it| it.blackhole = false);
        it.data.rpki.servers = vec!["127.0.0.1:3323".to_owned().try_into().unwrap()];
    });
    let text = frr::configuration(&of.peering, &of.snapshot).unwrap();
    assert_eq!(text, frr::configuration(&of.peering, &of.snapshot).unwrap());
    // Without sequence numbers FRR removes whole lists, and leaks meanwhile.
    for line in text
        .lines()
        .filter(|it| it.contains("prefix-list ") && !it.starts_with(' '))
    {
        assert!(line.contains(" seq "), "{line}");
    }
    for part in [
        "bgp ebgp-requires-policy",
        "neighbor 185.1.204.9 ttl-security hops 1",
        "neighbor 185.1.203.15 local-role peer",
        "neighbor 185.1.203.1 local-role rs-client",
        "maximum-prefix 1840 80 warning-only",
        "match rpki invalid",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    if Command::new("vtysh").arg("--help").output().is_err() {
        println!("skipped: FRR is not installed");
        return;
    }
    if let Err(error) = frr::check(&text) {
        panic!("{error}\n{text}");
    }
}
