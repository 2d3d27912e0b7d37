//! Adding a configuration key takes at most three hand-written places: CONTRIBUTING.md has a commit as
//! an example, which is compared with the files here.

use std::path::Path;

/// The places that the example changes: a file, and its lines there with their sign.
fn places(text: &str) -> Vec<(String, Vec<(char, String)>)> {
    let example = text.split("```diff\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let mut places: Vec<(String, Vec<(char, String)>)> = Vec::new();
    for line in example.lines() {
        if let Some(file) = line.strip_prefix("--- a/") {
            places.push((file.to_owned(), Vec::new()));
            continue;
        }
        let (sign, rest) = line.split_at(1);
        let (_, lines) = places.last_mut().unwrap();
        lines.push((sign.chars().next().unwrap(), rest.to_owned()));
    }
    places
}

#[test]
fn a_key_takes_three_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let places = places(&read("CONTRIBUTING.md"));
    assert!((1..=3).contains(&places.len()), "{places:#?}");
    let (declaration, _) = &places[0];
    assert!(declaration.starts_with("crates/config/model/src/"));
    for (file, lines) in &places {
        assert!(lines.iter().any(|(sign, _)| *sign == '+'), "{file}");
        let unchanged: Vec<&str> = lines
            .iter()
            .filter(|(sign, _)| *sign != '+')
            .map(|(_, line)| line.as_str())
            .collect();
        let text = read(file);
        let there: Vec<&str> = text.lines().collect();
        assert!(
            there
                .windows(unchanged.len())
                .any(|lines| lines == unchanged),
            "{file} does not have these lines: {unchanged:#?}"
        );
    }
}

/// The declaration of the example's neighbour is all that the reference, the schema and the defaults
/// are made of.
#[test]
fn what_a_declaration_makes() {
    let schema = weir_config::schema();
    let key = &schema["properties"]["ip4"]["properties"]["source-routes"];
    assert_eq!(key["default"], false);
    assert!(key["description"].as_str().unwrap().contains("RFC 7126"));
    assert!(weir_config::reference().contains("| `ip4.source-routes` | `true` or `false` |"));
    let (config, _) = weir_config::check("text", "ip4: {source-routes: true}").unwrap();
    assert!(config.ip4.source_routes);
    assert_eq!(
        weir_config::to_yaml(&config),
        "ip4:\n  source-routes: true\n"
    );
    let plan = weir_config::plan(&weir_config::Config::default(), &config);
    let texts: Vec<String> = plan.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["set ip4: source-routes false -> true"]);
    let shown = serde_json::to_value(&config).unwrap();
    assert_eq!(shown["ip4"]["source-routes"], true);
}
