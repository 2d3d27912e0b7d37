//! Lists made to be hard: they are searched rightly, or refused, and always in bounded time and memory.

use std::time::{Duration, Instant};

use weir_acl::synthetic::Random;
use weir_acl::{
    Acl, Action, Addresses, BuildError, Key4, MAX_RULES, NO_RULE, Payload, Rule, Upper,
};
use weir_wire::IpProtocol;

fn ports(
    source: std::ops::RangeInclusive<u16>,
    destination: std::ops::RangeInclusive<u16>,
) -> Rule {
    Rule {
        action: Action::Permit,
        addresses: Addresses::Any,
        payload: Payload::Ports {
            protocol: IpProtocol::TCP,
            source,
            destination,
        },
    }
}

fn key(random: &mut Random) -> Key4 {
    let upper = Upper::Ports(random.number() as u16, random.number() as u16);
    Key4::new(
        random.number() as u32,
        random.number() as u32,
        IpProtocol::TCP,
        upper,
    )
}

/// Builds, within a time that a slow machine keeps too, and compares; `Err` when refused.
fn tried(rules: &[Rule]) -> Result<Acl, BuildError> {
    let start = Instant::now();
    let acl = Acl::build(rules);
    assert!(
        start.elapsed() < Duration::from_secs(120),
        "{:?}",
        start.elapsed()
    );
    let acl = acl?;
    let mut random = Random::new(5);
    let keys: Vec<Key4> = (0..500).map(|_| key(&mut random)).collect();
    let mut found = vec![0; keys.len()];
    acl.classify4_batch(&keys, &mut found);
    for (key, found) in keys.iter().zip(found) {
        let wanted = rules
            .iter()
            .position(|rule| rule.matches4(key))
            .map_or(NO_RULE, |rule| rule as u32);
        assert_eq!(
            (found, acl.classify4(key).unwrap_or(NO_RULE)),
            (wanted, wanted),
            "{key:?}"
        );
    }
    let facts = acl.facts();
    assert!(facts.bytes < 20_000 + rules.len() * 3 * 6000, "{facts:?}");
    Ok(acl)
}

#[test]
fn nested_ranges() {
    // The widest first: all others are never reached by some, and found by none.
    let rules: Vec<Rule> = (0..2000)
        .map(|n| ports(n..=65_535 - n, 0..=u16::MAX))
        .collect();
    assert!(tried(&rules).is_ok());
    // The narrowest first: each is the first for two ports.
    let rules: Vec<Rule> = (0..2000)
        .rev()
        .map(|n| ports(n * 16..=65_535 - n * 16, 0..=u16::MAX))
        .collect();
    assert!(tried(&rules).is_ok());
}

#[test]
fn stripes_across() {
    let mut random = Random::new(1);
    let mut stripe = || {
        let low = random.below(60_000) as u16;
        low..=low + 64
    };
    let rules: Vec<Rule> = (0..1000)
        .map(|n| {
            if n % 2 == 0 {
                ports(stripe(), 0..=u16::MAX)
            } else {
                ports(0..=u16::MAX, stripe())
            }
        })
        .collect();
    assert!(tried(&rules).is_ok());
}

#[test]
fn rectangles_upon_rectangles() {
    let mut random = Random::new(2);
    let mut side = || {
        let (a, b) = (random.number() as u16, random.number() as u16);
        a.min(b)..=a.max(b)
    };
    let few: Vec<Rule> = (0..300).map(|_| ports(side(), side())).collect();
    assert!(tried(&few).is_ok());
    // Thousands at once tell nothing apart in any tree of bounded size; whichever it is, it is said.
    let many: Vec<Rule> = (0..4000).map(|_| ports(side(), side())).collect();
    match tried(&many) {
        Ok(acl) => assert!(acl.facts().longest_scan <= 64),
        Err(error) => assert!(
            matches!(error, BuildError::Entangled(length) if length > 512),
            "{error}"
        ),
    }
}

#[test]
fn nothing_tells_them_apart() {
    // Long, thin and wide in turn, all around one point, so that every leaf there holds them all.
    let rules: Vec<Rule> = (0..2000u16)
        .map(|n| ports(30_000 - n..=35_000 - n, 30_000 + n..=35_000 + n))
        .collect();
    match tried(&rules) {
        Ok(acl) => assert!(acl.facts().longest_scan <= 64),
        Err(error) => assert!(error.to_string().contains("overlap too much"), "{error}"),
    }
}

#[test]
fn what_is_refused() {
    let turned = [
        Rule::all(Action::Deny),
        Rule {
            payload: turned_payload(),
            ..Rule::all(Action::Permit)
        },
    ];
    assert_eq!(Acl::build(&turned).err(), Some(BuildError::Turned(1)));
    let many = vec![Rule::all(Action::Deny); MAX_RULES + 1];
    assert_eq!(
        Acl::build(&many).err(),
        Some(BuildError::TooMany(MAX_RULES + 1))
    );
    assert_eq!(
        Acl::build(&many[1..]).unwrap().classify4(&Key4::default()),
        Some(0)
    );
}

fn turned_payload() -> Payload {
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "the very thing that is refused"
    )]
    let kind = 9..=3;
    Payload::Icmp {
        protocol: IpProtocol::ICMP,
        kind,
        code: 0..=255,
    }
}
