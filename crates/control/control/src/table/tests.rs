//! Tests of a table, against a plain list of routes.

use super::*;

#[test]
fn the_first_source_counts_and_shows_what_it_hid() {
    let domain = Domain::new(1);
    let mut table = Table::new(&domain, None, 0).unwrap();
    for prefix in ["10.0.0.0/8", "2001:db8::/32"] {
        let prefix: IpNet = prefix.parse().unwrap();
        let best = |table: &Table| {
            table
                .longest_match(prefix.addr())
                .map(|found| (found.source, found.group))
        };
        assert_eq!(table.set(prefix, RouteSource::Connected, 5), Ok(None));
        assert_eq!(table.set(prefix, RouteSource::Neighbor, 7), Ok(None));
        assert_eq!(best(&table), Some((RouteSource::Connected, 5)));
        assert_eq!(table.set(prefix, RouteSource::Static, 6), Ok(None));
        assert_eq!(best(&table), Some((RouteSource::Static, 6)));
        assert_eq!(table.set(prefix, RouteSource::Static, 8), Ok(Some(6)));
        assert_eq!(table.set(prefix, RouteSource::Connected, 9), Ok(Some(5)));
        assert_eq!(table.counts().iter().flatten().sum::<u64>(), 3);
        assert_eq!(table.unset(prefix, RouteSource::Static), Ok(Some(8)));
        assert_eq!(best(&table), Some((RouteSource::Connected, 9)));
        assert_eq!(table.unset(prefix, RouteSource::Neighbor), Ok(Some(7)));
        assert_eq!(table.unset(prefix, RouteSource::Neighbor), Ok(None));
        assert_eq!(table.unset(prefix, RouteSource::Connected), Ok(Some(9)));
        assert_eq!(best(&table), None);
    }
    assert!(table.is_empty() && table.counts() == [[0; RouteSource::ALL.len()]; 2]);
}

#[test]
fn lengths_follow_the_routes_while_they_are_wanted() {
    let domain = Domain::new(1);
    let mut table = Table::new(&domain, None, 0).unwrap();
    let prefix = |text: &str| text.parse::<IpNet>().unwrap();
    table
        .set(prefix("10.0.0.0/8"), RouteSource::Static, 1)
        .unwrap();
    assert!(table.lengths().is_none());
    table.measure(&domain, true).unwrap();
    for net in ["10.1.0.0/16", "2001:db8::/32", "2001:db8:1::/48"] {
        table.set(prefix(net), RouteSource::Static, 1).unwrap();
    }
    table
        .set(prefix("10.1.0.0/16"), RouteSource::Connected, 1)
        .unwrap();
    let lengths = |table: &Table| {
        [
            "10.2.0.1",
            "10.1.0.1",
            "9.9.9.9",
            "2001:db8:1::1",
            "2001:db8::1",
            "::1",
        ]
        .map(|address| table.lengths().unwrap().length(address.parse().unwrap()))
    };
    assert_eq!(lengths(&table), [8, 16, 0, 48, 32, 0]);
    table
        .unset(prefix("10.1.0.0/16"), RouteSource::Static)
        .unwrap();
    table
        .unset(prefix("2001:db8:1::/48"), RouteSource::Static)
        .unwrap();
    assert_eq!(
        lengths(&table),
        [8, 16, 0, 32, 32, 0],
        "what another source still has stays"
    );
    table
        .unset(prefix("10.1.0.0/16"), RouteSource::Connected)
        .unwrap();
    assert_eq!((lengths(&table)[1], table.lengths().unwrap().len()), (8, 2));
    table.measure(&domain, false).unwrap();
    assert!(table.lengths().is_none());
}

#[test]
fn routes_come_in_order_and_go_on_from_anywhere() {
    let domain = Domain::new(1);
    let mut table = Table::new(&domain, None, 0).unwrap();
    let all: Vec<IpNet> = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.0/16",
        "::/0",
        "2001:db8::/32",
    ]
    .map(|text| text.parse().unwrap())
    .into();
    for prefix in all.iter().rev() {
        table.set(*prefix, RouteSource::Static, 1).unwrap();
    }
    let after = |prefix| {
        table
            .after(prefix)
            .map(|found| found.prefix)
            .collect::<Vec<_>>()
    };
    assert_eq!(after(None), all);
    for (place, prefix) in all.iter().enumerate() {
        assert_eq!(after(Some(*prefix)), all[place + 1..]);
    }
}

#[test]
fn of_one_source_the_lowest_metric_is_the_best() {
    let domain = Domain::new(1);
    let mut table = Table::new(&domain, None, 0).unwrap();
    let prefix: IpNet = "198.51.100.0/24".parse().unwrap();
    let id = |source, metric| RouteId { source, metric };
    let (kernel, fpm) = (RouteSource::Kernel, RouteSource::Fpm);
    for (metric, group) in [(1024, 4), (32, 2), (20, 1), (100, 3)] {
        assert_eq!(table.set(prefix, id(kernel, metric), group), Ok(None));
    }
    assert_eq!(table.get(prefix).unwrap().group, 1);
    assert_eq!(table.set(prefix, id(fpm, 4000), 9), Ok(None));
    let order = |table: &Table| {
        table
            .candidates(prefix)
            .iter()
            .map(|route| (route.id.source, route.id.metric, route.group))
            .collect::<Vec<_>>()
    };
    let all = [
        (fpm, 4000, 9),
        (kernel, 20, 1),
        (kernel, 32, 2),
        (kernel, 100, 3),
        (kernel, 1024, 4),
    ];
    assert_eq!(order(&table), all, "distance comes before metric");
    assert_eq!(table.unset(prefix, id(fpm, 4000)), Ok(Some(9)));
    assert_eq!(table.unset(prefix, id(kernel, 100)), Ok(Some(3)));
    assert_eq!(table.unset(prefix, id(kernel, 20)), Ok(Some(1)));
    assert_eq!(order(&table), [(kernel, 32, 2), (kernel, 1024, 4)]);
    assert_eq!(table.fib4.get("198.51.100.0/24".parse().unwrap()), Some(2));
    assert_eq!(table.counts()[0][kernel as usize], 2);
}

#[test]
fn what_a_source_does_not_set_again_is_stale() {
    let domain = Domain::new(1);
    let mut table = Table::new(&domain, None, 0).unwrap();
    let prefix = |text: &str| text.parse::<IpNet>().unwrap();
    let all = [
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.2.0.0/16",
        "2001:db8::/32",
        "2001:db8:1::/48",
    ];
    for net in all {
        table.set(prefix(net), RouteSource::Kernel, 1).unwrap();
    }
    table
        .set(prefix("10.2.0.0/16"), RouteSource::Static, 2)
        .unwrap();
    table.begin_generation(RouteSource::Kernel);
    for net in ["10.0.0.0/8", "2001:db8::/32"] {
        table.set(prefix(net), RouteSource::Kernel, 1).unwrap();
    }
    table
        .set(prefix("10.3.0.0/16"), RouteSource::Kernel, 1)
        .unwrap();
    for most in [1, 2, 100] {
        let (mut stale, mut after) = (Vec::new(), None);
        loop {
            let (found, next) = table.stale(RouteSource::Kernel, after, most);
            stale.extend(found.into_iter().map(|(net, _)| net));
            after = next;
            if after.is_none() {
                break;
            }
        }
        stale.sort();
        let expected = ["10.1.0.0/16", "10.2.0.0/16", "2001:db8:1::/48"].map(prefix);
        assert_eq!(stale, expected, "the hidden one too, {most} at a time");
    }
}

/// Compares with a list of routes that is sorted for each question.
#[derive(Default)]
struct Reference(Vec<(IpNet, RouteId, u32)>);

impl Reference {
    fn set(&mut self, prefix: IpNet, id: RouteId, group: u32) -> Option<u32> {
        let old = self.unset(prefix, id);
        self.0.push((prefix, id, group));
        old
    }

    fn unset(&mut self, prefix: IpNet, id: RouteId) -> Option<u32> {
        let at = self
            .0
            .iter()
            .position(|route| (route.0, route.1) == (prefix, id))?;
        Some(self.0.remove(at).2)
    }

    fn best(&self, prefix: IpNet) -> Option<u32> {
        let of_prefix = self.0.iter().filter(|route| route.0 == prefix);
        let best = of_prefix.min_by_key(|route| (route.1.source.distance(), route.1.metric));
        best.map(|route| route.2)
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(48))]
    #[test]
    fn any_order_of_changes_leaves_the_best_in_the_forwarding_table(
        steps in proptest::collection::vec((0u8..4, 0usize..6, 0u32..3, 1u32..50, proptest::bool::weighted(0.6)), 1..80)
    ) {
        let domain = Domain::new(1);
        let mut table = Table::new(&domain, None, 0).unwrap();
        let mut reference = Reference::default();
        let prefixes: Vec<IpNet> = ["10.0.0.0/8", "10.0.0.0/9", "2001:db8::/32", "::/0"]
            .map(|text| text.parse().unwrap())
            .into();
        for (prefix, source, metric, group, add) in steps {
            let prefix = prefixes[usize::from(prefix)];
            let id = RouteId { source: RouteSource::ALL[source], metric };
            if add {
                proptest::prop_assert_eq!(table.set(prefix, id, group).unwrap(), reference.set(prefix, id, group));
            } else {
                proptest::prop_assert_eq!(table.unset(prefix, id).unwrap(), reference.unset(prefix, id));
            }
            for prefix in &prefixes {
                let best = reference.best(*prefix);
                proptest::prop_assert_eq!(table.get(*prefix).map(|found| found.group), best);
                let forwarded = match *prefix {
                    IpNet::V4(net) => table.fib4.get(net),
                    IpNet::V6(net) => table.fib6.get(net),
                };
                proptest::prop_assert_eq!(forwarded, best);
            }
        }
        let counted: u64 = table.counts().iter().flatten().sum();
        proptest::prop_assert_eq!(counted, reference.0.len() as u64);
    }
}

#[test]
fn a_route_that_is_set_again_unchanged_keeps_its_age() {
    let domain = Domain::new(1);
    let mut table = Table::new(&domain, None, 0).unwrap();
    let prefix: IpNet = "10.0.0.0/8".parse().unwrap();
    let route = |source: RouteSource, group, since| Candidate {
        id: source.into(),
        group,
        protocol: 12,
        since,
    };
    for (source, group, since, expected) in [
        (RouteSource::Kernel, 5, 100, 100),
        // The kernel's tables are read again.
        (RouteSource::Kernel, 5, 200, 100),
        (RouteSource::Kernel, 6, 300, 300),
        // The same among those that are not used.
        (RouteSource::Static, 7, 400, 400),
        (RouteSource::Kernel, 6, 500, 300),
        (RouteSource::Kernel, 8, 600, 600),
    ] {
        table
            .set_route(prefix, route(source, group, since))
            .unwrap();
        let all = table.candidates(prefix);
        let ours = all.iter().find(|it| it.id.source == source).unwrap();
        assert_eq!((ours.group, ours.since), (group, expected));
    }
}
