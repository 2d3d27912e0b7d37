//! Plans, proved against the model.
//!
//! Random pairs of good configurations, and every pair of those under `tests/varied`: the plan
//! leads from one to the other, in the order prune, create, sync; a second plan is empty; undoing
//! any number of its first steps leads back; and after no step does anything hang in the air (a
//! route without a subnet for its next hop, a cross connect to nowhere). The same configurations
//! are written, and `check` must take them.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::arbitrary::{Devices, config, pair};
use crate::check;

fn run(config: &mut Config, steps: impl IntoIterator<Item = Step>) {
    for step in steps {
        apply_to_model(config, &step).unwrap();
    }
}

/// Nothing names what is not there.
fn hangs_in_the_air(config: &Config) -> Option<String> {
    let subnets = Subnets::of(config);
    let borrows = |name: &str| {
        config
            .interfaces
            .get(name)
            .is_some_and(|it| it.unnumbered.is_some())
    };
    for (key, via) in &config.routes {
        if key
            .vrf
            .as_ref()
            .is_some_and(|vrf| !config.vrfs.contains_key(vrf))
        {
            return Some(format!("route {key}: no such table"));
        }
        let is_lost = |path: &crate::model::Path| match path.next_hop_table.as_deref() {
            None => {
                carrier(&subnets, key, path).is_none()
                    && !path.interface.as_deref().is_some_and(borrows)
            }
            Some(table) => table != DEFAULT_TABLE && !config.vrfs.contains_key(table),
        };
        if let Some(path) = via.paths().iter().find(|path| is_lost(path)) {
            return Some(format!("route {key} via {path}"));
        }
    }
    for (name, interface) in &config.interfaces {
        if interface
            .vrf
            .as_ref()
            .is_some_and(|vrf| !config.vrfs.contains_key(vrf))
        {
            return Some(format!("interface {name}: no such table"));
        }
        if interface
            .unnumbered
            .as_ref()
            .is_some_and(|lender| !config.interfaces.contains_key(lender))
        {
            return Some(format!("interface {name}: no such lender"));
        }
    }
    let vrf = |name: &str| config.interfaces.get(name).and_then(|it| it.vrf.as_deref());
    let reached = |key: &&NeighborKey| {
        borrows(&key.interface)
            || subnets
                .find(vrf(&key.interface), key.address, Some(&key.interface))
                .is_some()
    };
    let neighbor = config.neighbors.keys().find(|key| !reached(key));
    let target = config
        .interfaces
        .values()
        .filter_map(|it| it.l2xc.as_ref())
        .find(|target| !config.interfaces.contains_key(*target));
    neighbor
        .map(|key| format!("neighbor {key:?}"))
        .or_else(|| target.map(|target| format!("l2xc to {target}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn a_plan_leads_there_and_back((a, b) in pair(Devices::Any)) {
        there_and_back(&a, &b);
    }

    #[test]
    fn a_written_configuration_is_a_good_file(config in config(Devices::Any)) {
        let written = serde_json::to_string_pretty(&config).unwrap();
        match check("written", &written) {
            Ok((read, _)) => prop_assert_eq!(read, config),
            Err(errors) => prop_assert!(false, "{}\n{}", written, errors[0]),
        }
    }

    #[test]
    fn nothing_in_memory_needs_a_restart_or_a_device((a, b) in pair(Devices::InMemory)) {
        let restart = plan(&a, &b).iter().any(|step| matches!(step, Step::NeedsRestart { .. }));
        prop_assert!(!restart);
        prop_assert!(b.interfaces.values().filter_map(|it| it.device.as_ref()).all(|it| it.linux_name().is_none()));
    }
}

/// The whole of what a plan promises.
fn there_and_back(a: &Config, b: &Config) {
    let steps = plan(a, b);
    assert!(
        steps
            .windows(2)
            .all(|pair| pair[0].phase() <= pair[1].phase()),
        "{steps:#?}"
    );
    let mut states = vec![a.clone()];
    for step in &steps {
        let mut next = states.last().unwrap().clone();
        apply_to_model(&mut next, step).unwrap();
        assert_eq!(hangs_in_the_air(&next), None, "after {step}");
        states.push(next);
    }
    assert_eq!(states.last().unwrap(), b);
    assert!(plan(b, b).is_empty());
    assert!(plan(states.last().unwrap(), b).is_empty());
    let shown = Plan::between(a, b);
    assert!(shown.steps.iter().map(|planned| &planned.step).eq(&steps));
    for done in 0..=steps.len() {
        let mut undone = states[done].clone();
        run(&mut undone, steps[..done].iter().rev().map(Step::inverse));
        assert_eq!(&undone, a);
    }
    for step in &steps {
        assert_eq!(&step.inverse().inverse(), step);
        assert!(!step.to_string().contains('\n'));
        // `kind` is the name of the variant in kebab case.
        let debug = format!("{step:?}");
        let variant: String = debug
            .chars()
            .take_while(|letter| letter.is_alphanumeric())
            .collect();
        assert_eq!(step.kind().replace('-', ""), variant.to_lowercase());
    }
}

fn varied() -> Vec<(String, Config)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/varied");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        match check(&name, &std::fs::read_to_string(path).unwrap()) {
            Ok((config, warnings)) => {
                // Next hops in a circle are among what is to be planned.
                let unexpected = warnings
                    .iter()
                    .find(|it| !it.message.contains("its own route"));
                assert!(unexpected.is_none(), "{}", unexpected.unwrap());
                (name, config)
            }
            Err(errors) => panic!("{}", errors[0]),
        }
    };
    files.into_iter().map(read).collect()
}

#[test]
fn every_varied_configuration_leads_to_every_other() {
    let all = varied();
    assert!(all.len() >= 14, "{} configurations", all.len());
    for (from_name, from) in &all {
        for (to_name, to) in &all {
            println!("{from_name} -> {to_name}");
            assert_eq!(from == to, from_name == to_name, "they are varied");
            there_and_back(from, to);
            let restart = plan(from, to)
                .iter()
                .any(|step| matches!(step, Step::NeedsRestart { .. }));
            assert!(!restart, "a running router goes all the way");
        }
    }
}
