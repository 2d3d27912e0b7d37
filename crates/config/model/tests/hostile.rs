//! Files that mean harm, or were never configurations: one clear message, in bounded time and
//! memory, and never a panic.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use weir_config::{CheckOptions, Diagnostic, Limits, check, check_bytes, check_with};

fn options(limits: &Limits) -> CheckOptions {
    CheckOptions {
        limits: *limits,
        ..CheckOptions::new("hostile")
    }
}

/// The one error of a text.
fn only(text: &str, limits: &Limits) -> Diagnostic {
    let mut errors = check_with(&options(limits), text.as_bytes()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

fn message(text: &str) -> String {
    only(text, &Limits::default()).message
}

/// Processor time of this thread. Unlike the clock, it does not pass while others have the core.
fn cpu_time() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|it| it.parse().ok());
    std::time::Duration::from_nanos(nanoseconds.unwrap_or(0))
}

#[test]
fn too_many_bytes() {
    let limits = Limits {
        bytes: 100,
        ..Limits::default()
    };
    assert_eq!(
        only(&"#".repeat(101), &limits).message,
        "the file has 101 bytes, more than the 100 that are read"
    );
    assert!(check_with(&options(&limits), "#".repeat(100).as_bytes()).is_ok());
    let huge = vec![b'a'; (64 << 20) + 10];
    let errors = check_bytes("huge", &huge).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].message.contains("bytes, more than the 67108864"),
        "{}",
        errors[0]
    );
    assert!(errors[0].excerpt.text.is_empty());
    // A hundred megabytes that are no text at all are refused by their size, unread.
    let binary = vec![0xff; 100 << 20];
    let start = cpu_time();
    assert!(
        check_bytes("binary", &binary).unwrap_err()[0]
            .message
            .contains("104857600 bytes, more than")
    );
    let taken = cpu_time() - start;
    assert!(taken.as_millis() < 1000, "{taken:?}");
}

#[test]
fn too_many_nodes() {
    let limits = Limits {
        nodes: 10,
        ..Limits::default()
    };
    assert_eq!(
        only("interfaces: {a: {}, b: {}, c: {}, d: {}, e: {}}", &limits).message,
        "the file has more than 10 keys and values"
    );
    assert!(check_with(&options(&limits), b"interfaces: {a: {}, b: {}, c: {}}").is_ok());
}

#[test]
fn too_many_commas_in_brackets() {
    let text = format!("routes: [{}]", "a,".repeat(500_001));
    assert!(message(&text).contains("commas and opening brackets"));
}

#[test]
fn alias_bombs() {
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (new, old) in ('b'..='z').zip('a'..='y') {
        let aliases = vec![format!("*{old}"); 10].join(",");
        bomb.push_str(&format!("{new}: &{new} [{aliases}]\n"));
    }
    assert!(message(&bomb).contains("keys and values"));
    let many = format!(
        "interfaces:\n  a: &a {{mtu: 1500}}\n{}",
        (0..500_000)
            .map(|n| format!("  x{n}: *a\n"))
            .collect::<String>()
    );
    assert!(message(&many).contains("keys and values"));
}

#[test]
fn deep_nesting() {
    let brackets = message(&"[".repeat(100_000));
    assert!(
        brackets.contains("recursion") || brackets.contains("nested"),
        "{brackets}"
    );
    assert!(
        message(&format!("interfaces: {}", "{a: ".repeat(10_000)))
            .contains("nested more than 32 deep")
    );
    assert!(message(&"- ".repeat(10_000)).contains("nested more than 32 deep"));
    let blocks: String = (0..2_000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    assert!(message(&blocks).contains("nested more than 32 deep"));
}

#[test]
fn nul_bytes_and_other_control_characters_have_their_place() {
    let error = only("interfaces:\n  xe0: {mtu: 15\u{0}00}\n", &Limits::default());
    assert_eq!(
        (error.line, error.column, error.message.as_str()),
        (2, 16, "control character U+0000 in the file")
    );
    let shown = error.to_string();
    assert!(
        shown
            .chars()
            .all(|character| character == '\n' || !character.is_control()),
        "{shown:?}"
    );
    assert!(message("a: \u{1b}[31m").contains("U+001B"));
}

#[test]
fn bytes_that_are_no_text_have_their_place() {
    let error = check_bytes("f", b"interfaces:\n  xe0: \xff\n")
        .unwrap_err()
        .remove(0);
    assert_eq!(
        (error.line, error.column, error.message.as_str()),
        (2, 8, "this byte is not UTF-8 text")
    );
    assert!(
        check_bytes("f", b"\xef\xbb\xbfinterfaces: {}\n").is_ok(),
        "a byte order mark is no error"
    );
}

#[test]
fn errors_are_counted_and_not_kept_without_end() {
    let text: String = std::iter::once("interfaces:\n".to_owned())
        .chain((0..5_000).map(|n| format!("  x{n}: {{mtu: a, foo: b}}\n")))
        .collect();
    let errors = check("many", &text).unwrap_err();
    assert_eq!(errors.len(), 201);
    assert_eq!(
        errors[200].message,
        "there are more errors; the first 200 are shown"
    );
    let twice: String = std::iter::once("interfaces:\n".to_owned())
        .chain((0..5_000).map(|_| "  xe0: {}\n".to_owned()))
        .collect();
    assert!(check("twice", &twice).unwrap_err().len() <= 201);
}

#[test]
fn every_prefix_of_a_file_is_read_or_refused() {
    let text = include_str!("cases/correct-every-key.yaml");
    for (end, _) in text.char_indices() {
        let _ = check("prefix", &text[..end]);
    }
}

#[test]
fn ten_thousand_interfaces_and_routes_stay_quick() {
    let mut text = String::from("interfaces:\n");
    for n in 0..10_000 {
        let (high, low) = (n >> 8, n & 255);
        text.push_str(&format!("  xe{n}:\n    device: {{driver: tap, name: t{n}}}\n    addresses: [10.{high}.{low}.1/24]\n"));
    }
    text.push_str("routes:\n");
    for n in 0..10_000 {
        let (high, low) = (n >> 8, n & 255);
        text.push_str(&format!(
            "  - {{prefix: 100.{high}.{low}.0/24, via: 10.{high}.{low}.2}}\n"
        ));
    }
    let start = cpu_time();
    let (config, _) = check("large", &text).unwrap();
    let steps = weir_config::plan(&weir_config::Config::default(), &config);
    assert_eq!(steps.len(), 4 * 10_000);
    // Work that grows with the square would take minutes; a release build takes a tenth of a second.
    let taken = cpu_time() - start;
    assert!(taken.as_secs() < 20, "{taken:?}");
}

/// The help for a hash must not be a hash: pasted, it would be the hash of somebody's password.
#[test]
fn the_help_for_a_missing_hash_has_none() {
    for token in ["{name: a}", "{name: a, sha256: secret}"] {
        let text = format!("api: {{tokens: [{token}]}}\n");
        for error in check("file", &text).unwrap_err() {
            let said = error.to_string();
            let is_hash =
                |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            let words = said.split(|letter: char| !letter.is_ascii_alphanumeric());
            assert_eq!(words.filter(|word| is_hash(word)).count(), 0, "{said}");
        }
    }
}

#[test]
fn ten_thousand_sub_interfaces_of_one_port_stay_quick() {
    let mut text =
        "interfaces:\n  xe0:\n    device: {driver: tap, name: t0}\n    sub-interfaces:\n"
            .to_owned();
    for n in 0..10_000 {
        let (outer, inner) = (100 + n / 4000, 1 + n % 4000);
        let (high, low) = (n >> 8, n & 255);
        text.push_str(&format!(
            "      {}: {{encapsulation: {{dot1q: {outer}, inner-dot1q: {inner}, exact-match: true}}, addresses: [10.{high}.{low}.1/24]}}\n",
            n + 1
        ));
    }
    let start = cpu_time();
    let (config, _) = check("large", &text).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let other = check("other", &text.replace("10.39.15.1/24", "10.39.15.2/24"))
        .unwrap()
        .0;
    assert_eq!(weir_config::plan(&config, &other).len(), 2);
    // Work that grows with the square took seconds in a release build.
    let taken = cpu_time() - start;
    assert!(taken.as_secs() < 20, "{taken:?}");
}

/// Work that grows with the square of the file would take minutes with each of these.
#[test]
fn many_mistakes_of_one_kind_stay_quick() {
    const MANY: usize = 20_000;
    let each = |head: &str, line: &dyn Fn(usize) -> String| {
        head.to_owned() + &(0..MANY).map(line).collect::<String>()
    };
    let to_nowhere = each("interfaces:\n", &|n| format!("  xe{n}: {{l2xc: ye{n}}}\n"));
    let to_sub_interfaces = each("interfaces:\n", &|n| {
        format!("  xe{n}: {{sub-interfaces: {{1: {{}}}}, l2xc: xe{n}.1}}\n")
    });
    let taps = each("taps:\n", &|n| {
        format!("  tap{n}: {{host: {{name: t, mtu: 1500}}}}\n")
    });
    let taps = taps
        + &each("interfaces:\n", &|n| {
            format!("  tap{}: {{mtu: 9000}}\n", MANY - n)
        });
    let loopbacks = each("loopbacks:\n", &|n| format!("  loop{n}: {{}}\n"))
        + &each("interfaces:\n", &|n| format!("  loop{n}: {{}}\n"));
    let overlaps = each("interfaces:\n", &|n| {
        format!("  xe{n}: {{addresses: [10.{}.{}.1/8]}}\n", n >> 8, n & 255)
    });
    let hops = each(
        "interfaces: {xe0: {addresses: [10.0.0.1/8]}}\nroutes:\n",
        &|n| {
            format!(
                "  - {{prefix: 100.{}.{}.0/24, via: [{{next-hop: 10.0.0.2, interface: xf{n}}}]}}\n",
                n >> 8,
                n & 255
            )
        },
    );
    for (what, text) in [
        ("l2xc to nowhere", to_nowhere),
        ("l2xc to sub-interfaces", to_sub_interfaces),
        ("taps", taps),
        ("loopbacks", loopbacks),
        ("overlapping subnets", overlaps),
        ("next hops on unknown interfaces", hops),
    ] {
        let start = cpu_time();
        let errors = check(what, &text).unwrap_err();
        assert_eq!(
            errors
                .iter()
                .filter(|it| it.severity == weir_config::Severity::Error)
                .count(),
            201,
            "{what}"
        );
        let taken = cpu_time() - start;
        assert!(taken.as_secs() < 40, "{what}: {taken:?}");
        println!("{what}: {taken:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// A good file with a few bytes replaced, removed or doubled.
    #[test]
    fn damaged_files_never_panic(damage in proptest::collection::vec((any::<u16>(), any::<u8>(), 0u8..4), 1..8)) {
        let mut bytes = include_bytes!("cases/correct-every-key.yaml").to_vec();
        for (at, byte, how) in damage {
            let at = usize::from(at) % bytes.len();
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"{}[]:,&*!|>'\"#\n\t -?"[usize::from(byte) % 19]),
                _ => bytes.extend_from_slice(&bytes.clone()[at..]),
            }
        }
        if let Err(errors) = check_bytes("damaged", &bytes) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert!(error.line >= 1 && error.column >= 1 && error.width >= 1);
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    /// Text made of YAML's own signs.
    #[test]
    fn signs_never_panic(text in "[a{}\\[\\]:,&*!|>'\"#\n -?~%@0]{0,200}") {
        let _ = check("signs", &text);
    }
}

#[test]
fn what_the_help_proposes_for_a_list_is_accepted() {
    for value in ["127.0.0.1", "collector.example.net"] {
        let found = only(
            &format!("sflow: {{collectors: {value}}}"),
            &Limits::default(),
        );
        let proposed = found.help.split('`').nth(1).unwrap_or_default();
        let text = format!("sflow: {{{proposed}}}");
        assert!(check("weir.yaml", &text).is_ok(), "{text}");
    }
}
