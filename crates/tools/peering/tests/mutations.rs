//! What becomes of a plan when public data changes: an AS-SET that is empty, numbers of 0, old ROAs, an address that is gone.

use std::path::{Path, PathBuf};

use weir_peering::model::{AspaMode, Daemon, Peering};
use weir_peering::plan::{Plan, Summary};
use weir_peering::resolve::{self, Loaded};
use weir_peering::{Error, fetch};

const NOW: u64 = 1_800_000_000;

/// A copy of the full example that goes away with the value.
struct Data(PathBuf);

impl Data {
    fn new(name: &str) -> Data {
        let to = std::env::temp_dir().join(format!("weir-mutations-{name}-{}", std::process::id()));
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/full");
        copy(&from, &to);
        Data(to)
    }

    fn load(&self) -> Result<Loaded, Error> {
        self.load_at(NOW)
    }

    fn load_at(&self, now: u64) -> Result<Loaded, Error> {
        let mut peering = Peering::load(&self.0.join("peering.yaml"))?;
        (peering.daemon, peering.policy.aspa) = (Daemon::Bird, AspaMode::Off);
        resolve::load(peering, &self.0, now)
    }

    fn replace(&self, file: &str, from: &str, to: &str) {
        let path = self.0.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} does not have {from}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.join(file), text).unwrap();
    }

    /// Says when each file was fetched: so many hours ago.
    fn age(&self, file: &str, hours: u64) {
        let meta = serde_json::json!({"files": {file: {"fetched": NOW - hours * 3600, "from": "test", "entries": 1}}});
        self.write("meta.json", &meta.to_string());
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn plan(before: &Loaded, after: &Loaded) -> Vec<String> {
    let old = Summary::of(&before.peering, &before.snapshot);
    let new = Summary::of(&after.peering, &after.snapshot);
    let mut plan = Plan::between(Some(&old), &new);
    plan.notes.clone_from(&after.notes);
    plan.lines()
}

#[test]
fn an_as_set_without_prefixes_is_refused_and_never_an_open_filter() {
    let data = Data::new("empty");
    for family in ["4", "6"] {
        data.write(&format!("irr/RIPE__AS-INIT7.{family}.json"), "{\"NN\": []}");
    }
    let said = data.load().unwrap_err().to_string();
    assert!(
        said.contains("AS13030: RIPE::AS-INIT7 has no prefixes"),
        "{said}"
    );
    // One family that is empty is a network without that family.
    let data = Data::new("one-family");
    data.write("irr/RIPE__AS-INIT7.6.json", "{\"NN\": []}");
    let after = data.load().unwrap();
    let text = weir_peering::bird::configuration(&after.peering, &after.snapshot);
    assert!(
        text.contains("= [\n  ::/128\n];"),
        "an empty set matches nothing"
    );
    let before = Data::new("before").load().unwrap();
    let lines = plan(&before, &after);
    assert!(
        lines.contains(&"~ prefixes of AS13030_frysix_6: 1 -> 0 (+0 -1)".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn a_number_of_0_in_peeringdb_is_no_limit_of_100() {
    let before = Data::new("numbers-before").load().unwrap();
    let data = Data::new("numbers");
    data.replace(
        "peeringdb.json",
        "\"info_prefixes4\": 1500, \"info_prefixes6\": 300",
        "\"info_prefixes4\": 0, \"info_prefixes6\": 0",
    );
    let lines = plan(&before, &data.load().unwrap());
    assert!(
        lines.contains(&"~ limit of AS13030_frysix_1: 1840 -> 170000".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines
            .iter()
            .any(|it| it.starts_with("note: AS13030_frysix: PeeringDB has no number of prefixes")),
        "{lines:?}"
    );
}

#[test]
fn old_roas_are_reported_and_expired_ones_reject_nothing() {
    let data = Data::new("ages");
    let before = data.load().unwrap();
    data.age("vrps.json", 12);
    let after = data.load().unwrap();
    assert_eq!(
        plan(&before, &after),
        [
            "note: AS15169_frysix: PeeringDB has no number of prefixes; its limits are those of every peer",
            "note: vrps.json is 12 hours old",
            "nothing changes"
        ]
    );
    data.age("vrps.json", 49);
    let after = data.load().unwrap();
    assert!(after.snapshot.vrps.is_empty() && after.snapshot.aspas.is_empty());
    let lines = plan(&before, &after);
    assert!(
        lines.contains(&"note: vrps.json is 49 hours old and expired: origin validation finds no ROA for any route".to_owned()),
        "{lines:?}"
    );
    // Prefix sets are held, and then refused: never empty.
    data.age("irr/RIPE__AS-INIT7.4.json", 30);
    let after = data.load().unwrap();
    assert_eq!(after.snapshot.sets, before.snapshot.sets);
    data.age("irr/RIPE__AS-INIT7.4.json", 15 * 24);
    let said = data.load().unwrap_err().to_string();
    assert!(said.contains("expired; run `weir peering fetch`"), "{said}");
}

#[test]
fn an_address_that_is_gone_takes_its_session_and_the_last_one_the_neighbour() {
    let before = Data::new("gone-before").load().unwrap();
    let data = Data::new("gone");
    data.replace(
        "netixlan.json",
        "2001:7f8:10f::3b41:15",
        "2001:7f8:10f::3b41:16",
    );
    let lines = plan(&before, &data.load().unwrap());
    assert!(
        lines.contains(
            &"~ session AS15169_frysix_2 (AS15169, 2001:7f8:10f::3b41:16): reset".to_owned()
        ),
        "{lines:?}"
    );
    data.replace("netixlan.json", "\"asn\": 15169", "\"asn\": 15168");
    let after = data.load().unwrap();
    let lines = plan(&before, &after);
    for line in [
        "- session AS15169_frysix_1 (AS15169, 185.1.203.15): removed",
        "note: AS15169_frysix: PeeringDB has no address of it at the exchange any more: it gets no session",
    ] {
        assert!(
            lines.iter().any(|it| it == line),
            "{line} is missing in {lines:?}"
        );
    }
    // The others are as they were: a neighbour that is gone stops no build.
    assert_eq!(
        after.peering.neighbors.len() + 1,
        before.peering.neighbors.len()
    );
}

#[test]
fn damaged_files_are_refused_by_name() {
    for (file, text) in [
        ("netixlan.json", "{\"data\": [{\"asn\": -1}]}"),
        (
            "ixpfx.json",
            "{\"data\": [{\"ixlan_id\": 3512, \"prefix\": \"x\"}]}",
        ),
        ("peeringdb.json", "{"),
        (
            "vrps.json",
            "{\"roas\": [{\"prefix\": \"192.0.2.0/24\", \"maxLength\": 8, \"asn\": 1}]}",
        ),
        (
            "slurm.json",
            "{\"validationOutputFilters\": {\"prefixFilters\": [{}]}}",
        ),
        ("irr/RIPE__AS-INIT7.asns.json", "{\"NN\": []}"),
        ("meta.json", "[]"),
    ] {
        let data = Data::new("damaged");
        data.write(file, text);
        let said = data.load().unwrap_err().to_string();
        let name = file.trim_start_matches("irr/").trim_end_matches(".json");
        assert!(
            said.contains(name) || said.contains("has no AS numbers"),
            "{file}: {said}"
        );
    }
}

#[test]
fn peeringdb_is_fetched_from_a_folder_before_what_follows_from_it() {
    let source = Data::new("source");
    let data = Data::new("target");
    for (file, _) in weir_peering::peeringdb::FILES {
        std::fs::remove_file(data.0.join(file)).unwrap();
    }
    let peering = Peering::load(&data.0.join("peering.yaml")).unwrap();
    let sources = fetch::Sources {
        peeringdb: Some(source.0.display().to_string()),
        irr: Some(source.0.join("irr")),
        vrps: Some(source.0.join("vrps.json").display().to_string()),
        ..fetch::Sources::default()
    };
    let all = fetch::fetch(&peering, &data.0, &sources, 20).unwrap();
    assert!(all.iter().all(|it| it.problem.is_none()), "{all:?}");
    // The AS-SET of AS15169 follows from PeeringDB.
    assert!(
        all.iter().any(|it| it.file.contains("irr/AS15169.4.json")),
        "{all:?}"
    );
    // Fewer routers at the exchange are not taken over.
    source.write("netixlan.json", "{\"data\": []}");
    let all = fetch::fetch(&peering, &data.0, &sources, 20).unwrap();
    let problems: Vec<_> = all
        .iter()
        .filter(|it| it.problem.is_some())
        .map(|it| it.file.as_str())
        .collect();
    assert_eq!(problems, ["netixlan.json"]);
    let loaded = data.load_at(fetch::now());
    assert!(loaded.is_ok(), "{loaded:?}");
}
