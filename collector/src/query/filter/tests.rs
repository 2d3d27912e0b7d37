//! Filters as text, as SQL, as patterns, and what is wrong with them.

use super::*;

fn sql(text: &str) -> String {
    parse(text).map_or_else(|error| format!("error {error}"), |expr| expr.sql())
}

#[test]
fn filters_become_sql() {
    for (filter, expected) in [
        ("", "1 = 1"),
        ("SrcAS = AS2906", "src_as = 2906"),
        (
            "srcas IN (AS2906, 15169)",
            "(src_as = 2906 OR src_as = 15169)",
        ),
        ("ExporterName LIKE th2-%", "exporter_name LIKE 'th2-%'"),
        (
            "ExporterName ILIKE 'TH%'",
            "lower(exporter_name) LIKE 'th%'",
        ),
        (
            "Proto = udp AND NOT DstPort >= 1024",
            "(proto = 17 AND (NOT dst_port >= 1024))",
        ),
        ("DstPort != SrcPort -- comment", "dst_port <> src_port"),
        (
            "EType = IPv6 OR /* x */ EType = 0x806",
            "(etype = 34525 OR etype = 2054)",
        ),
        ("Port = 53", "(src_port = 53 OR dst_port = 53)"),
        ("Port != 53", "(src_port <> 53 AND dst_port <> 53)"),
        (
            "SrcAddr << 203.0.113.0/24",
            "(src_hi = 0 AND src_lo >= 281474087547136 AND src_lo <= 281474087547391)",
        ),
        (
            "DstAddr << 2001:db8::/32",
            "(dst_hi >= 2306139568115548160 AND dst_hi <= 2306139572410515455)",
        ),
        ("InIfName = \"it's\"", "in_if_name = 'it''s'"),
        (
            "(InIf = 1 OR InIf = 2) AND OutIf NOT IN (3)",
            "((in_if = 1 OR in_if = 2) AND (NOT (out_if = 3)))",
        ),
    ] {
        assert_eq!(sql(filter), expected, "{filter}");
    }
}

#[test]
fn errors_say_where() {
    for (filter, at, part) in [
        ("Nope = 1", 0, "unknown column Nope"),
        ("SrcAS >", 6, "SrcAS can be compared"),
        ("DstPort >", 9, "ends where a value"),
        ("DstPort = x", 10, "expected a number"),
        ("SrcAddr << 1.2.3", 11, "no prefix"),
        ("(InIf = 1", 9, "ends where \")\""),
        ("InIf = 1 x", 9, "expected AND, OR"),
        ("InIfName = \"a", 11, "no end"),
        ("DstPort = InIfName", 10, "different types"),
    ] {
        let error = parse(filter).expect_err(filter);
        assert_eq!(error.at, at, "{filter}: {error}");
        assert!(error.message.contains(part), "{filter}: {error}");
    }
    assert!(parse(&"(".repeat(4000)).is_err());
    assert!(parse(&"NOT ".repeat(2000)).is_err());
}

#[test]
fn patterns_match_as_in_sql() {
    for (text, pattern, expected) in [
        ("th2-edge1", "th2-%", true),
        ("th2-edge1", "%edge_", true),
        ("th2-edge1", "edge", false),
        ("", "%", true),
        ("aXbXc", "a%X%c", true),
        ("abc", "a%d", false),
    ] {
        assert_eq!(like(text, pattern), expected, "{text} {pattern}");
    }
}

proptest::proptest! {
    #[test]
    fn nothing_panics(text in ".{0,60}") {
        let _ = parse(&text);
    }
}

#[test]
fn lists_are_searched_for_a_member() {
    let unknown = crate::row::Unknown::default();
    let mut row = crate::row::Row::new(0, Default::default(), "sflow".into(), &unknown);
    row.as_path = "64500 1299 64501".into();
    row.communities = "65000:1 65000:20".into();
    for (text, expected) in [
        ("ASPath = AS1299", true),
        ("ASPath = 129", false),
        ("ASPath != 64501", false),
        ("ASPath IN (1, AS64500)", true),
        ("ASPath = \"64500 1299 64501\"", true),
        ("ASPath = \"64500\"", false),
        ("ASPath LIKE 64500%", true),
        ("Communities = 65000:2", false),
        ("Communities = 65000:20", true),
        ("NOT Communities = 65000:1", false),
    ] {
        let expr = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(expr.holds(&row), expected, "{text}");
    }
    for text in [
        "ASPath = x",
        "Communities = 1",
        "Communities = a:b",
        "ASPath < 3",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}
