//! Recipes of the documentation, run as they stand, in namespaces of their own: a router behind one network card,
//! and its API over TLS. Skipped with one line where no namespace can be made (not root).

use std::path::Path;
use std::process::Command;

/// The contents of the `sh` blocks of a page below a heading, in order.
fn shell_blocks(page: &str, heading: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(page).unwrap();
    let section = text.split("\n## ").find(|part| part.starts_with(heading));
    let mut lines = section.expect("the page has this heading").lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        if line == "```sh" {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(block.join("\n"));
        }
    }
    blocks
}

/// What a script says in namespaces of its own, in an empty folder; none where that is not possible.
fn said_by(name: &str, script: &str) -> Option<String> {
    let possible = Command::new("unshare").args(["-mn", "true"]).status();
    if !possible.is_ok_and(|status| status.success()) {
        println!("skipped: needs root and network namespaces");
        return None;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    let folder = std::env::temp_dir().join(format!("weir-recipe-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Private /run/netns and /run/weir, and this namespace's devices in /sys, so that routers and namespaces of this machine do not matter.
    let setup = "mkdir -p /run/netns /run/weir; mount -t tmpfs tmpfs /run/netns; mount -t tmpfs tmpfs /run/weir; mount -t sysfs sysfs /sys; \
                 ip link set lo up; exec timeout 120 bash -euo pipefail -c \"$SCRIPT\"";
    let output = Command::new("unshare")
        .args(["-mnpf", "--kill-child", "--mount-proc", "sh", "-c", setup])
        .current_dir(&folder)
        .env("SCRIPT", format!("{HELPERS}\n{script}"))
        .env(
            "PATH",
            format!("{}:{}", program.display(), std::env::var("PATH").unwrap()),
        )
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}\n{script}\n{said}\n{complaints}",
        output.status
    );
    Some(said)
}

/// Shell functions of the tests: a router that runs in the background, and things to wait for.
const HELPERS: &str = r#"
wait_until() { for i in $(seq 200); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.1; done; echo "not within 20 s: $*" >&2; return 1; }
start() { weir run -c "$1" --socket "$2" >"$2.log" 2>&1 & router=$!; wait_until weir --socket "$2" show interface || { cat "$2.log" >&2; return 1; }; }
stop() { kill -INT "$1"; wait "$1"; }
pings() { ping -c 1 -W 1 192.0.2.1; }
"#;

/// The machine: `eth0` with an address, and beyond it a gateway, which is a router too.
fn machine(gateway: &str, device: &str) -> String {
    format!(
        "ip netns add gateway
ip link add eth0 type veth peer name eth0 netns gateway
ip -n gateway link set lo up
ip -n gateway link set eth0 up
ip link set eth0 up
cat > gateway.yaml <<'YAML'
{gateway}
YAML
ip netns exec gateway bash -c 'weir run -c gateway.yaml --socket gateway.sock >gateway.log 2>&1 & echo $! >gateway.pid'
wait_until weir --socket gateway.sock show interface || {{ cat gateway.log >&2; exit 1; }}
{device}"
    )
}

fn has_programs(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let found = weir_netlink::lab::has_program(program);
        if !found {
            println!("skipped: needs {program}");
        }
        found
    })
}

#[test]
fn a_machine_with_one_card_is_reached_through_the_router() {
    if !has_programs(&["ping", "ip"]) {
        return;
    }
    let blocks = shell_blocks("first-router.md", "One card only");
    let [untagged, _, script] = blocks.as_slice() else {
        panic!("the page has other blocks: {blocks:?}");
    };
    let gateway = "interfaces:\n  e0: { device: { driver: af-xdp, name: eth0 }, addresses: [ 192.0.2.1/24 ] }";
    let machine = machine(
        gateway,
        "ip address add 192.0.2.2/24 dev eth0; ip route add default via 192.0.2.1; wait_until pings",
    );
    let run = "mac=$(cat /sys/class/net/eth0/address)
start untagged.yaml one.sock
./management.sh mgmt
[ \"$(cat /sys/class/net/mgmt/address)\" = \"$mac\" ]
wait_until pings
ip route get 192.0.2.99 | grep -q 'dev mgmt'
stop $router
./management.sh eth0
wait_until pings
echo done";
    let commands = [machine.as_str(), untagged, script, run].join("\n");
    if let Some(said) = said_by("card", &commands) {
        assert!(said.ends_with("done\n"), "{said}");
    }
}

#[test]
fn a_machine_with_one_card_is_reached_in_a_vlan_through_the_router() {
    if !has_programs(&["ping", "ip"]) {
        return;
    }
    let blocks = shell_blocks("first-router.md", "One card only");
    let [_, vlan, script] = blocks.as_slice() else {
        panic!("the page has other blocks: {blocks:?}");
    };
    let gateway = "interfaces:
  e0:
    device: { driver: af-xdp, name: eth0 }
    addresses: [ 198.51.100.2/24 ]
    sub-interfaces:
      10: { addresses: [ 192.0.2.1/24 ] }";
    // The tests' kernel may have no VLANs, so the machine cannot be reached before the router runs.
    let machine = machine(gateway, "");
    let run = "start vlan.yaml one.sock
./management.sh mgmt
wait_until pings
ip route get 192.0.2.99 | grep -q 'dev mgmt'
stop $router
echo done";
    let commands = [machine.as_str(), vlan, script, run].join("\n");
    if let Some(said) = said_by("vlan", &commands) {
        assert!(said.ends_with("done\n"), "{said}");
    }
}

#[test]
fn a_self_signed_certificate_is_made_and_trusted_as_the_page_says() {
    if !has_programs(&["openssl", "ip"]) {
        return;
    }
    let blocks = shell_blocks("security.md", "Reach the API from another machine");
    let [make, ask] = blocks.as_slice() else {
        panic!("the page has other blocks: {blocks:?}");
    };
    // The same without `CA:FALSE`, for another address, and with another certificate as `--ca`.
    let others = "refusal() { set +e; text=$(\"$@\" 2>&1); echo \"$? $text\"; set -e; }
stop $router
cp router.pem old.pem
openssl req -x509 -newkey ed25519 -noenc -days 30 -keyout router.key -out router.pem -subj /CN=router1 -addext subjectAltName=IP:192.0.2.1 2>/dev/null
start weir.yaml api.sock
refusal weir --router 192.0.2.1:8443 --ca router.pem --token-file token show interface
stop $router
openssl req -x509 -newkey ed25519 -noenc -days 30 -keyout router.key -out router.pem -subj /CN=router1 -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:192.0.2.7 2>/dev/null
start weir.yaml api.sock
refusal weir --router 192.0.2.1:8443 --ca old.pem --token-file token show interface
refusal weir --router 192.0.2.1:8443 --ca router.pem --token-file token show interface
stop $router";
    let commands = [
        "ip address add 192.0.2.1/32 dev lo",
        make,
        "start weir.yaml api.sock",
        ask,
        others,
    ];
    let Some(said) = said_by("tls", &commands.join("\n")) else {
        return;
    };
    let refusals: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("certificate is"))
        .collect();
    let expected = [
        "is that of an authority (CA:TRUE), which no server may present: make one with basicConstraints",
        "is not signed by the one in the file of --ca",
        "is for another name or address than that of --router",
    ];
    assert_eq!(refusals.len(), expected.len(), "{said}");
    for (refusal, expected) in refusals.iter().zip(expected) {
        assert!(refusal.starts_with("3 weir: cannot talk to"), "{refusal}");
        assert!(refusal.contains(expected), "{refusal}");
        assert!(!refusal.contains("OtherError"), "{refusal}");
    }
}
