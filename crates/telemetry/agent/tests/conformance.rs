//! The page that says which test proves what names no test that is not there.

use std::path::Path;

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = std::fs::read_to_string(root.join("docs/sflow.md")).unwrap();
    let mut named = 0;
    for line in page
        .lines()
        .filter(|line| line.starts_with('|') && line.contains(".rs`"))
    {
        let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        let [.., file, test] = quoted[..] else {
            panic!("{line}")
        };
        let source = std::fs::read_to_string(root.join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let place = source
            .find(&format!("fn {test}()"))
            .unwrap_or_else(|| panic!("{file} has no {test}"));
        let before = source[..place].trim_end();
        assert!(before.ends_with("#[test]"), "{test} is no test");
        named += 1;
    }
    assert!(named > 30, "{named}");
}
