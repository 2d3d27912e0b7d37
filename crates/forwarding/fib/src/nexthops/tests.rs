use super::*;
use crate::{NeighborState, Path};

fn table(neighbors: u32) -> NexthopTable {
    let mut table = NexthopTable::new();
    for n in 1..=neighbors {
        assert_eq!(
            table.add_adjacency(Adjacency::neighbor(
                n,
                std::net::Ipv4Addr::from(0x0a00_0000 + n).into(),
                1500,
                [2, 0, 0, 0, 0, 1]
            )),
            n
        );
    }
    table
}

fn group(adjacencies: &[u32]) -> Group {
    Group::new(adjacencies.iter().copied().map(Path::to)).unwrap()
}

#[test]
fn what_does_not_exist_drops() {
    for nexthops in [Nexthops::default(), table(1).snapshot()] {
        assert_eq!(nexthops.choose(0, || unreachable!()), DROP);
        assert_eq!(nexthops.choose(u32::MAX, || unreachable!()), DROP);
        assert_eq!(
            (nexthops.kind(DROP), nexthops.kind(u32::MAX)),
            (AdjacencyKind::Drop, AdjacencyKind::Drop)
        );
        assert!(nexthops.adjacency(9).is_none());
    }
}

#[test]
fn groups_are_shared_and_counted() {
    let mut table = table(2);
    let one = table.acquire(group(&[1])).unwrap();
    let both = table.acquire(group(&[2, 1])).unwrap();
    assert_eq!(table.acquire(group(&[1, 2])), Ok(both));
    assert_ne!(one, both);
    assert_eq!(
        table.acquire(group(&[7])),
        Err(GroupError::UnknownAdjacency(7))
    );
    assert!(!table.remove_adjacency(2) && !table.remove_adjacency(DROP));
    table.release(both);
    assert!(table.group(both).is_some());
    table.release(both);
    assert!(table.group(both).is_none());
    table.release(both);
    assert!(table.remove_adjacency(2));
    assert_eq!(
        table.acquire(group(&[2])),
        Err(GroupError::UnknownAdjacency(2))
    );
    assert_eq!(
        table
            .groups()
            .map(|(number, _, users)| (number, users))
            .collect::<Vec<_>>(),
        [(one, 1)]
    );
    assert_eq!(table.snapshot().choose(both, || 0), DROP);
    assert_eq!(
        (
            table.acquire(group(&[1])),
            table.add_adjacency(Adjacency::blackhole())
        ),
        (Ok(one), 2)
    );
}

#[test]
fn the_hash_is_asked_only_to_choose() {
    let mut table = table(3);
    let one = table.acquire(group(&[3])).unwrap();
    let two = table.acquire(group(&[1, 2])).unwrap();
    let nexthops = table.snapshot();
    assert_eq!(nexthops.choose(one, || unreachable!()), 3);
    assert_eq!(
        (0..4)
            .map(|hash| nexthops.choose(two, || hash))
            .collect::<Vec<_>>(),
        [1, 2, 1, 2]
    );
    assert_eq!(
        (
            nexthops.buckets(one),
            nexthops.buckets(two),
            nexthops.buckets(99)
        ),
        (&[3][..], &[1, 2][..], &[DROP][..])
    );
}

#[test]
fn a_failed_path_changes_groups_not_routes() {
    let mut table = table(2);
    let one = table.acquire(group(&[1])).unwrap();
    let both = table.acquire(group(&[1, 2])).unwrap();
    let before = table.snapshot();
    assert_eq!((table.set_up(1, false), table.set_up(1, false)), (2, 0));
    let during = table.snapshot();
    assert_eq!(
        (
            during.choose(one, || 0),
            during.choose(both, || 0),
            during.choose(both, || 1)
        ),
        (DROP, 2, 2)
    );
    assert_eq!(
        (before.choose(one, || 0), before.choose(both, || 0)),
        (1, 1)
    );
    assert_eq!(table.set_up(1, true), 2);
    assert_eq!(table.snapshot().buckets(both), [1, 2]);
}

#[test]
fn a_group_knows_its_only_neighbour() {
    let mut table = table(2);
    let glean = table.add_adjacency(Adjacency::glean(1, 1500, [2; 6]));
    let one = table.acquire(group(&[1])).unwrap();
    let both = table.acquire(group(&[1, 2])).unwrap();
    let mixed = table.acquire(group(&[1, glean])).unwrap();
    let ask = |table: &mut NexthopTable, number| {
        table
            .snapshot()
            .view()
            .only_neighbor(number)
            .map(|it| it.interface)
    };
    assert_eq!(
        [one, both, mixed, 0, 99].map(|number| ask(&mut table, number)),
        [Some(1), None, None, None, None]
    );
    table.set_up(glean, false);
    assert_eq!(ask(&mut table, mixed), Some(1));
    table.set_up(1, false);
    assert_eq!(
        [one, both, mixed].map(|number| ask(&mut table, number)),
        [None, Some(2), None]
    );
    assert!(table.replace_adjacency(2, Adjacency::blackhole()));
    assert_eq!(ask(&mut table, both), None);
}

#[test]
fn a_neighbour_completes_in_every_snapshot_at_once() {
    let mut table = table(1);
    let old = table.snapshot();
    table.add_adjacency(Adjacency::local(1));
    table
        .adjacency(1)
        .unwrap()
        .set_neighbor(NeighborState::Reachable, [6; 6]);
    for nexthops in [&old, &table.snapshot()] {
        assert_eq!(nexthops.adjacency(1).unwrap().rewrite(), Some([6; 6]));
    }
    assert!(
        table.replace_adjacency(
            1,
            Adjacency::neighbor(1, std::net::Ipv4Addr::from(1).into(), 9000, [2; 6])
        ) && !table.replace_adjacency(DROP, Adjacency::blackhole())
    );
    assert_eq!(
        (
            old.adjacency(1).unwrap().mtu,
            table.snapshot().adjacency(1).unwrap().mtu
        ),
        (1500, 9000)
    );
}

#[test]
fn paths_with_labels_share_their_neighbours_fate() {
    use crate::LabelStack;
    let mut table = table(2);
    let path = |adjacency, labels: &[u32]| Path {
        labels: LabelStack::of(labels),
        ..Path::to(adjacency)
    };
    let one = table
        .acquire(Group::new([path(1, &[100, 200])]).unwrap())
        .unwrap();
    let same = table
        .acquire(Group::new([path(1, &[100, 200]), path(2, &[300])]).unwrap())
        .unwrap();
    let twice = table
        .acquire(Group::new([path(1, &[16]), path(1, &[17])]).unwrap())
        .unwrap();
    assert_eq!(
        table.ends(one)[0],
        table.ends(same)[0],
        "the same labels over the same neighbour are one adjacency"
    );
    assert_ne!(table.ends(twice)[0], table.ends(twice)[1]);
    let snapshot = table.snapshot();
    let labelled = snapshot.view().only_labelled(one).unwrap();
    assert_eq!(
        (labelled.entries(), labelled.bytes(), labelled.only_swap()),
        (&[100 << 12, 200 << 12][..], 8, None)
    );
    let over = snapshot.adjacency(table.ends(one)[0]).unwrap();
    assert_eq!(
        (over.kind, over.mtu, over.interface, over.end().mtu),
        (AdjacencyKind::Labelled, 1492, 1, 1500)
    );
    assert!(
        snapshot.view().only_neighbor(one).is_none()
            && snapshot.view().only_labelled(same).is_none()
    );
    // The neighbour's failure, completion and change of link reach the labels over it.
    assert_eq!(table.set_up(1, false), 3);
    assert_eq!(
        (
            table.snapshot().choose(one, || 0),
            table.snapshot().buckets(same)
        ),
        (DROP, &table.ends(same)[1..])
    );
    assert_eq!(table.set_up(1, true), 3);
    table
        .adjacency(1)
        .unwrap()
        .set_neighbor(NeighborState::Reachable, [6; 6]);
    assert_eq!(
        snapshot.view().only_labelled(one).unwrap().below.rewrite(),
        Some([6; 6])
    );
    let other = table.adjacency(1).unwrap().with_link(9000, [2; 6]);
    assert!(table.replace_adjacency(1, other) && !table.remove_adjacency(1));
    let over = table.snapshot();
    assert_eq!(
        (
            over.adjacency(table.ends(one)[0]).unwrap().mtu,
            over.view().only_labelled(one).unwrap().below.mtu
        ),
        (8992, 9000)
    );
    let places = table.adjacencies().count();
    for group in [one, same, twice] {
        table.release(group);
    }
    assert_eq!(
        (
            places - table.adjacencies().count(),
            table.remove_adjacency(1)
        ),
        (4, true)
    );
}

#[test]
fn a_group_of_its_own_gets_other_paths_in_place() {
    use crate::LabelStack;
    let mut table = table(3);
    let shared = table.acquire(group(&[1])).unwrap();
    let own = table.acquire_own(group(&[1])).unwrap();
    assert!(own != shared && table.acquire(group(&[1])) == Ok(shared));
    table.acquire_again(own);
    assert_eq!(table.users(own), 2);
    assert!(
        !table.replace_own(own, group(&[1]))
            && !table.replace_own(shared, group(&[2]))
            && !table.replace_own(own, group(&[9]))
    );
    assert!(table.replace_own(own, group(&[2, 3])));
    assert_eq!(
        (
            table.snapshot().buckets(own),
            table.snapshot().buckets(shared)
        ),
        (&[2, 3][..], &[1][..])
    );
    assert_eq!(
        (table.set_up(2, false), table.snapshot().choose(own, || 0)),
        (1, 3)
    );
    assert!(!table.remove_adjacency(2));
    let labelled = Path {
        labels: LabelStack::of(&[100]),
        ..Path::to(3)
    };
    let places = table.adjacencies().count();
    assert!(
        table.replace_own(own, Group::new([labelled.clone()]).unwrap())
            && table.remove_adjacency(2)
    );
    assert!(table.replace_own(own, Group::new([labelled, Path::to(1)]).unwrap()));
    assert_eq!(
        table.adjacencies().count(),
        places,
        "2 is gone, the labels over 3 have come"
    );
    table.release(own);
    table.release(own);
    assert!(table.group(own).is_none() && table.remove_adjacency(3));
}

#[test]
fn who_is_abandoned_goes_with_the_last_group() {
    let mut table = table(3);
    let labelled = Path {
        labels: LabelStack::of(&[100]),
        ..Path::to(1)
    };
    let all = table.adjacencies().count();
    let shared = table
        .acquire(Group::new([Path::to(1), labelled, Path::to(2)]).unwrap())
        .unwrap();
    let own = table.acquire_own(group(&[1])).unwrap();
    [1, 3, DROP]
        .into_iter()
        .for_each(|number| table.abandon_adjacency(number));
    assert!(
        table.adjacency(1).is_some()
            && table.adjacency(3).is_none()
            && table.adjacency(DROP).is_some()
    );
    table.release(shared);
    assert!(
        table.adjacency(1).is_some() && table.adjacency(2).is_some(),
        "a group is left, and nobody abandoned the other"
    );
    assert!(table.replace_own(own, group(&[2])));
    assert!(table.adjacency(1).is_none());
    assert_eq!(table.adjacencies().count(), all - 2);
    // Whoever gets the number is another one.
    let number = table.add_adjacency(Adjacency::neighbor(
        1,
        std::net::Ipv4Addr::new(192, 0, 2, 9).into(),
        1500,
        [2; 6],
    ));
    let last = table.acquire(group(&[number])).unwrap();
    table.release(last);
    assert!(table.adjacency(number).is_some());
}

#[test]
fn labels_need_a_neighbour_and_have_a_bound() {
    use crate::LabelStack;
    let mut table = table(1);
    let hole = table.add_adjacency(Adjacency::blackhole());
    let mut ask = |adjacency, depth| {
        let labels = LabelStack {
            entropy: true,
            ..LabelStack::of(&vec![99; depth])
        };
        table.acquire(
            Group::new([Path {
                labels,
                ..Path::to(adjacency)
            }])
            .unwrap(),
        )
    };
    assert_eq!(ask(hole, 1), Err(GroupError::LabelsToNobody(hole)));
    assert_eq!(ask(1, 17), Err(GroupError::TooManyLabels(17)));
    let group = ask(1, 16).unwrap();
    let snapshot = table.snapshot();
    let labelled = snapshot.view().only_labelled(group).unwrap();
    assert_eq!(
        (
            labelled.entries().len(),
            labelled.entropy(),
            labelled.entries()[1]
        ),
        (18, Some(2), 7 << 12)
    );
}

/// Whatever is added, replaced and removed, labels over neighbours included.
#[test]
fn the_adjacencies_of_an_interface_are_found_without_a_search() {
    let mut table = NexthopTable::new();
    let mut random = crate::synthetic::Random::new(5);
    let mut below = |most: usize| random.below(most as u64) as u32;
    let mut groups = Vec::new();
    for round in 0..400u32 {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + round);
        let new = Adjacency::neighbor(1 + below(5), address.into(), 1500, [2, 0, 0, 0, 0, 1]);
        let known: Vec<u32> = table
            .adjacencies()
            .filter(|(_, it)| it.kind == AdjacencyKind::Neighbor)
            .map(|(number, _)| number)
            .collect();
        let one = known.get(below(known.len().max(1)) as usize);
        match (below(5), one) {
            (0 | 1, _) | (_, None) => drop(table.add_adjacency(new)),
            (2, Some(&one)) => drop(table.replace_adjacency(one, new)),
            (3, Some(&one)) => table.abandon_adjacency(one),
            (_, Some(&one)) => {
                let labelled = Path {
                    labels: LabelStack::of(&[100 + below(3)]),
                    ..Path::to(one)
                };
                groups.extend(table.acquire(Group::new([labelled]).unwrap()));
                if groups.len() > 8 {
                    table.release(groups.remove(0));
                }
            }
        }
        for interface in 1..=5 {
            let by_search = table.adjacencies();
            let by_search = by_search.filter(|(_, it)| it.interface == interface);
            let by_search: Vec<u32> = by_search.map(|(number, _)| number).collect();
            let found: Vec<u32> = table.adjacencies_of(interface).map(|(n, _)| n).collect();
            assert_eq!(found, by_search, "round {round}");
        }
    }
    assert!(
        table
            .adjacencies()
            .any(|(_, it)| it.kind == AdjacencyKind::Labelled)
    );
}
