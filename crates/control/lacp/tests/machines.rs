//! One end and made-up partners: what a PDU does to the receive, selection, mux and periodic machines
//! (IEEE 802.1AX-2020 section 6.4), at exact times.

use weir_lacp::{Aggregate, Mux, Receive, Settings};
use weir_wire::MacAddr;
use weir_wire::lacp::{End, State};

const SECOND: u64 = 1_000_000_000;
/// Tests begin later than any period that is counted from zero.
const START: u64 = 100 * SECOND;

fn settings(active: bool) -> Settings {
    Settings {
        system: MacAddr([2, 0, 0, 0, 0, 1]),
        system_priority: 32768,
        key: 7,
        port_priority: 255,
        active,
        fast: false,
    }
}

fn end(active: bool, ports: u32) -> Aggregate {
    let mut end = Aggregate::new(settings(active));
    for port in 1..=ports {
        end.add(port, port as u16);
        end.set_enabled(port, true, START);
    }
    end
}

fn partner(system: u8, port: u16, state: State) -> End {
    End::new(1, MacAddr([2, 0, 0, 0, 0, system]), 9, 2, port, state)
}

/// The states of a partner that takes part.
fn willing() -> State {
    State::default()
        .with(State::ACTIVE, true)
        .with(State::AGGREGATION, true)
        .with(State::SYNCHRONIZATION, true)
}

/// What a partner that has heard everything believes of us.
fn belief(end: &Aggregate, port: u32) -> End {
    end.pdu(port).unwrap().actor
}

fn with_state(end: End, state: State) -> End {
    let mut other = end;
    other.state = state;
    other
}

/// Whether we take the partner to be in step, after it said `actor` and `belief`.
fn in_step(end: &mut Aggregate, actor: End, belief: End) -> bool {
    end.heard(1, &actor, &belief, START);
    let status = end.status(1).unwrap();
    status.partner.state.has(State::SYNCHRONIZATION)
}

#[test]
fn a_partner_is_in_step_when_it_says_so_and_means_this_port() {
    let mut end = end(true, 1);
    let us = belief(&end, 1);
    let other_port = End::new(32768, settings(true).system, 7, 255, 2, us.state);
    let other_aggregation = with_state(us, us.state.with(State::AGGREGATION, false));
    let silent = willing().with(State::SYNCHRONIZATION, false);
    let alone = willing().with(State::AGGREGATION, false);
    for (state, belief, expected) in [
        (willing(), us, true),
        (silent, us, false),
        (willing(), other_port, false),
        (willing(), other_aggregation, false),
        // A partner whose link stands alone need not know which port we are.
        (alone, other_port, true),
        (silent.with(State::AGGREGATION, false), other_port, false),
    ] {
        let actor = partner(2, 1, state);
        assert_eq!(in_step(&mut end, actor, belief), expected, "{state:?}");
    }
}

#[test]
fn one_of_both_has_to_be_active() {
    let passive = partner(2, 1, willing().with(State::ACTIVE, false));
    let mut active = end(true, 1);
    let us = belief(&active, 1);
    let deaf = with_state(us, us.state.with(State::ACTIVE, false));
    assert!(in_step(&mut active, passive, us));
    assert!(
        !in_step(&mut active, passive, deaf),
        "it believes us passive"
    );
    let mut both_passive = end(false, 1);
    let us = belief(&both_passive, 1);
    assert!(!in_step(&mut both_passive, passive, us));
    let liar = with_state(us, us.state.with(State::ACTIVE, true));
    assert!(!in_step(&mut both_passive, passive, liar), "we are passive");
    assert!(in_step(&mut both_passive, partner(2, 1, willing()), us));
}

#[test]
fn pdus_and_changes_of_the_partner_are_counted() {
    let mut end = end(true, 1);
    let us = belief(&end, 1);
    let alone = partner(2, 1, willing().with(State::AGGREGATION, false));
    for (actor, changes) in [
        (partner(2, 1, willing()), 1),
        (partner(2, 1, willing()), 1),
        (partner(2, 4, willing()), 2),
        (partner(3, 4, willing()), 3),
        (
            partner(3, 4, willing().with(State::SYNCHRONIZATION, false)),
            3,
        ),
        (alone, 4),
        (alone, 4),
    ] {
        end.heard(1, &actor, &us, START);
        let counters = end.status(1).unwrap().counters;
        assert_eq!(counters.partner_changes, changes, "{actor:?}");
    }
    assert_eq!(end.status(1).unwrap().counters.received, 7);
    end.set_enabled(1, false, START);
    end.heard(1, &alone, &us, START);
    assert_eq!(end.status(1).unwrap().counters.received, 7);
}

#[test]
fn a_wrong_belief_is_answered_at_once_and_a_right_one_is_not() {
    for wrong in [
        State::ACTIVE,
        State::SHORT_TIMEOUT,
        State::SYNCHRONIZATION,
        State::AGGREGATION,
    ] {
        let mut end = end(true, 1);
        // It has said what is due.
        while !end.tick(START).is_empty() {}
        let mut now = START + 2 * SECOND;
        let mut answers = |flip: Option<State>, end: &mut Aggregate| {
            now += 2 * SECOND;
            let us = belief(end, 1);
            let state = match flip {
                Some(bit) => us.state.with(bit, !us.state.has(bit)),
                None => us.state,
            };
            let alone = willing().with(State::AGGREGATION, false);
            end.heard(1, &partner(2, 1, alone), &with_state(us, state), now);
            end.tick(now).len()
        };
        // Until the machines have come to rest.
        for _ in 0..10 {
            answers(None, &mut end);
        }
        assert_eq!(answers(None, &mut end), 0, "{wrong:?}");
        assert_eq!(answers(Some(wrong), &mut end), 1, "{wrong:?}");
        assert_eq!(answers(None, &mut end), 0, "{wrong:?}");
    }
}

#[test]
fn a_chosen_port_waits_two_seconds_and_ports_that_wait_join_together() {
    let mut end = end(true, 2);
    let hear = |end: &mut Aggregate, port: u32, now: u64| {
        let us = belief(end, port);
        end.heard(port, &partner(2, port as u16, willing()), &us, now);
    };
    let mux = |end: &mut Aggregate, now: u64| {
        end.tick(now);
        [1, 2].map(|port| end.status(port).unwrap().mux)
    };
    assert_eq!(mux(&mut end, START), [Mux::Detached; 2]);
    assert_eq!(mux(&mut end, START + 1), [Mux::Detached; 2]);
    hear(&mut end, 1, START + 1);
    let first = START + 2;
    assert_eq!(mux(&mut end, first), [Mux::Waiting, Mux::Detached]);
    hear(&mut end, 2, first + SECOND);
    let second = first + SECOND;
    assert_eq!(mux(&mut end, second), [Mux::Waiting; 2]);
    let until = second + 2 * SECOND;
    assert_eq!(mux(&mut end, first + 2 * SECOND), [Mux::Waiting; 2]);
    assert_eq!(mux(&mut end, until - 1), [Mux::Waiting; 2]);
    let joined = mux(&mut end, until);
    assert!(joined.iter().all(|&mux| mux >= Mux::Attached), "{joined:?}");
}

#[test]
fn the_group_with_most_links_is_chosen_and_the_lowest_of_equals() {
    for (systems, expected) in [
        ([2, 3, 3], [false, true, true]),
        ([3, 2, 2], [false, true, true]),
        ([4, 3, 2], [false, false, true]),
    ] {
        let mut end = end(true, 3);
        for (port, system) in (1..).zip(systems) {
            let us = belief(&end, port);
            end.heard(port, &partner(system, port as u16, willing()), &us, START);
        }
        end.tick(START);
        let selected = [1, 2, 3].map(|port| end.status(port).unwrap().selected);
        assert_eq!(selected, expected, "{systems:?}");
    }
}

#[test]
fn three_pdus_in_a_second_and_the_fourth_when_it_is_over() {
    let mut end = end(true, 1);
    while !end.tick(START).is_empty() {}
    let begin = START + 50 * SECOND;
    let mut sends = |now: u64| {
        // A belief about another port is answered.
        let nobody = partner(9, 9, State::default());
        end.heard(1, &partner(2, 1, willing()), &nobody, now);
        end.tick(now).len()
    };
    assert_eq!([0, 1, 2, 3].map(|after| sends(begin + after)), [1, 1, 1, 0]);
    assert_eq!(sends(begin + SECOND - 1), 0);
    assert_eq!(sends(begin + SECOND), 1);
    assert_eq!(sends(begin + SECOND), 0);
    assert_eq!(sends(begin + SECOND + 1), 1);
}

#[test]
fn a_port_that_is_taken_out_has_a_last_word_and_is_gone() {
    let mut end = end(true, 2);
    let pdu = end.pdu(2).unwrap();
    assert_eq!((pdu.actor.port(), pdu.actor.key()), (2, 7));
    end.retain(|port| port != 2);
    assert!(end.pdu(2).is_none() && end.status(2).is_none());
    assert!(end.status(1).is_some());
}

#[test]
fn states_have_the_names_of_the_standard() {
    let receive = [
        Receive::PortDisabled,
        Receive::Expired,
        Receive::Defaulted,
        Receive::Current,
    ];
    let names = ["port-disabled", "expired", "defaulted", "current"];
    assert_eq!(receive.map(Receive::name), names);
    let mux = [
        Mux::Detached,
        Mux::Waiting,
        Mux::Attached,
        Mux::Collecting,
        Mux::Distributing,
    ];
    let names = [
        "detached",
        "waiting",
        "attached",
        "collecting",
        "distributing",
    ];
    assert_eq!(mux.map(Mux::name), names);
}
