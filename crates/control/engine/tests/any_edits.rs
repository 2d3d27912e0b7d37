//! A configuration that was accepted starts: any sequence of edits, whichever of them are refused, and then a restart on the same
//! machine. The machine has veths of several MTUs, one that carries its own address, and lacks a device.
//!
//! Edits come from a seed, which a failure names. `WEIR_LONG=1` runs many more sequences.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use weir_api::{
    ApplyRequest, Caller, Edit, InterfacePatch, RollbackRequest, Router as _, SflowPatch, UpDown,
};
use weir_config::check;
use weir_engine::{Options, Router, Startup};
use weir_netlink::lab::{Cable, Lab, Port, preflight};
use weir_netlink::netns::NetNs;

/// Edits in a sequence.
const EDITS: usize = 12;
const MTUS: [u32; 7] = [64, 1280, 1400, 1500, 1600, 2478, 9216];

/// Numbers from a seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % most
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// The devices `p0` to `p3`; `p3` carries an address of the machine.
fn machine() -> Lab {
    let mut lab = Lab::new();
    lab.add_host("router").unwrap();
    for number in 0..4 {
        let host = format!("h{number}");
        lab.add_host(&host).unwrap();
        let mut own = Port::new("router", &format!("p{number}"));
        if number == 3 {
            own = own.address(Ipv4Addr::new(10, 9, 9, 1), 24);
        }
        let other = Port::new(&host, "eth0");
        lab.connect(&Cable::new(own, other)).unwrap();
    }
    let namespace = lab.host("router").unwrap().namespace();
    let large = namespace
        .command("ip")
        .args(["link", "set", "p1", "mtu", "3000"])
        .status();
    assert!(large.unwrap().success());
    lab
}

/// A file with some of the machine's devices, and some that it does not have.
fn file(dice: &mut Dice) -> String {
    let mut text = "interfaces:\n".to_owned();
    let devices = ["p0", "p1", "p2", "p3", "p9"];
    let mut any = false;
    for (number, device) in devices.iter().enumerate() {
        if dice.chance(2) {
            continue;
        }
        any = true;
        let queues = if dice.chance(8) { ", queues: 3" } else { "" };
        let manage = if *device == "p3" && dice.chance(2) {
            ", allow-management: true"
        } else {
            ""
        };
        let _ = write!(
            text,
            "  i{number}:\n    device: {{ driver: af-xdp, name: {device}{queues}{manage} }}\n    addresses: [ 10.{number}.0.1/24 ]\n"
        );
        if dice.chance(2) {
            let _ = writeln!(text, "    mtu: {}", dice.one(&MTUS));
        }
        if dice.chance(3) {
            let mtu = match dice.below(3) {
                0 => String::new(),
                _ => format!(", mtu: {}", dice.one(&MTUS)),
            };
            let _ = write!(
                text,
                "    sub-interfaces:\n      10: {{ encapsulation: {{ dot1q: 10, exact-match: true }}{mtu} }}\n"
            );
        }
    }
    if !any || dice.chance(3) {
        text.push_str("  i8: { device: { driver: 'null' }, addresses: [ 10.8.0.1/24 ] }\n");
    }
    if dice.chance(3) {
        text.push_str("  t0: { device: { driver: tap, name: wtap0 }, mtu: 1500 }\n");
    }
    if dice.chance(6) {
        let _ = writeln!(
            text,
            "buffers: {{ per-numa: {} }}",
            dice.one(&[4096, 16384])
        );
    }
    if dice.chance(4) {
        text.push_str("sflow: { collectors: [ 192.0.2.9 ], agent: 192.0.2.8 }\n");
    }
    text
}

/// One edit; whether the router took it. Whatever it refuses must leave it as it was.
fn edit(router: &Router, dice: &mut Dice) -> (String, bool) {
    let caller = Caller::router();
    let before = router.running();
    let names: Vec<String> = before.interfaces.keys().cloned().collect();
    let (what, taken) = match dice.below(6) {
        0 | 1 => {
            let yaml = file(dice);
            let request = ApplyRequest {
                yaml: yaml.clone(),
                ..ApplyRequest::default()
            };
            (yaml, router.config_apply(&request, &caller).map(drop))
        }
        2 => {
            let request = RollbackRequest {
                steps_back: Some(1 + u32::try_from(dice.below(2)).unwrap()),
                ..RollbackRequest::default()
            };
            let taken = router.config_rollback(&request, &caller).map(drop);
            ("rollback".to_owned(), taken)
        }
        3 => {
            let patch = SflowPatch {
                header_bytes: Edit::Set(u32::try_from(dice.below(300)).unwrap()),
                ..SflowPatch::default()
            };
            let taken = router.sflow_patch(&patch, &caller).map(drop);
            (format!("{patch:?}"), taken)
        }
        _ => {
            let name = &names[dice.below(names.len())];
            let mut patch = InterfacePatch::default();
            match dice.below(4) {
                0 | 1 => patch.mtu = Edit::Set(dice.one(&MTUS)),
                2 => patch.state = Edit::Set(dice.one(&[UpDown::Up, UpDown::Down])),
                _ => patch.sflow = Edit::Set(dice.chance(2)),
            }
            let taken = router.interface_patch(name, &patch, &caller).map(drop);
            (format!("{name}: {patch:?}"), taken)
        }
    };
    if taken.is_err() {
        assert_eq!(
            router.running(),
            before,
            "refused, and not as before: {what}"
        );
    }
    (what, taken.is_ok())
}

fn start(namespace: &NetNs, folder: &Path, text: &str) -> Result<Router, String> {
    namespace
        .run(|| {
            let config = check("weir.yaml", text).unwrap().0;
            let startup = Startup::choose("weir.yaml", text, config, folder, 50)
                .map_err(|error| error.to_string())?;
            Router::start_from(startup, &Options::default()).map_err(|error| error.to_string())
        })
        .unwrap()
}

/// Interfaces whose device cannot be opened though the machine has it.
fn faults(router: &Router) -> Vec<String> {
    let system = router.system().unwrap();
    let problems = system.problems.into_iter();
    problems
        .filter(|problem| problem.component == weir_api::Component::Interface)
        .filter(|problem| !problem.message.contains("`p9`") && !problem.message.contains("p9"))
        .map(|problem| format!("{}: {}", problem.object, problem.message))
        .collect()
}

fn sequence(seed: u64) -> (usize, usize) {
    let folder: PathBuf =
        std::env::temp_dir().join(format!("weir-any-edits-{seed}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let lab = machine();
    let namespace = lab.host("router").unwrap().namespace();
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let first = "interfaces: { i8: { device: { driver: 'null' }, addresses: [ 10.8.0.1/24 ] } }\n";
    let router = start(namespace, &folder, first).unwrap();
    let (mut done, mut log) = (0, Vec::new());
    for _ in 0..EDITS {
        let (what, taken) = namespace.run(|| edit(&router, &mut dice)).unwrap();
        done += usize::from(taken);
        log.push(format!(
            "{} {what}",
            if taken { "taken" } else { "refused" }
        ));
    }
    let wanted = router.running();
    let faults_before = faults(&router);
    router.stop();
    drop(router);
    let again = start(namespace, &folder, first)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", log.join("\n")));
    assert_eq!(again.running(), wanted, "seed {seed}\n{}", log.join("\n"));
    assert_eq!(
        faults(&again),
        faults_before,
        "seed {seed}: a port that was open is not\n{}",
        log.join("\n")
    );
    again.stop();
    let _ = std::fs::remove_dir_all(&folder);
    (done, EDITS)
}

#[test]
fn what_was_accepted_starts_again() {
    if let Err(why) = preflight() {
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
        return;
    }
    let sequences = if std::env::var_os("WEIR_LONG").is_some() {
        200
    } else {
        5
    };
    let (mut taken, mut all) = (0, 0);
    for seed in 1..=sequences {
        let (done, edits) = sequence(seed);
        taken += done;
        all += edits;
    }
    assert!(taken * 5 > all, "only {taken} of {all} edits were accepted");
    assert!(taken < all, "none of {all} edits was refused");
}
