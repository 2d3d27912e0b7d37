//! The live view on a terminal in memory: rates, keys, and what fits on 80 columns and 24 lines.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::keys::{Action, press};
use super::reading::{Lookup, Reading};
use super::state::{FlowOrder, Pane, State};
use super::{draw, plain};

/// A reading at `seconds`, by which each counter has grown in proportion.
fn reading(began: Instant, seconds: u64) -> Reading {
    let traffic = |rate: u64| {
        json!({"packets": rate * seconds, "bytes": 125 * rate * seconds, "unicast": 0,
               "multicast": 0, "broadcast": 0})
    };
    let interface = |name: &str, index: u32, link: &str, rate: u64| {
        json!({"name": name, "index": index, "kind": "port", "mtu": 1500, "admin": "up",
               "link": link, "speed": 0, "addresses": [], "tentative": [], "duplicate": [],
               "mpls": false, "sflow": false, "rx": traffic(rate), "tx": traffic(0),
               "rx_errors": 0, "tx_errors": 0, "drops": 7 * seconds, "drops_by": []})
    };
    let flow = |source: &str, status: u8, packets: u64, octets: u64| {
        json!({"worker": 0, "records": "router", "direction": "rx", "source": source,
               "destination": "10.2.0.2", "protocol": 17, "source_port": 5000,
               "destination_port": 53, "input": "xe0", "output": "xe1",
               "forwarding_status": status, "forwarding_status_name": "forwarded",
               "packets": packets * seconds, "octets": octets * seconds,
               "packets_per_second": packets, "octets_per_second": octets, "start": "2026-01-01T00:00:00Z",
               "end": "2026-01-01T00:00:01Z", "tcp_flags": 0})
    };
    fn read<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
        serde_json::from_value(value).unwrap()
    }
    Reading {
        at: began + Duration::from_secs(seconds),
        version: read(
            json!({"version": "0.1.0", "pid": 1, "started": 0, "uptime": seconds,
                             "workers": 1}),
        ),
        interfaces: read(json!([
            interface("xe0", 1, "up", 1000),
            interface("xe1", 2, "down", 0)
        ])),
        drops: read(
            json!([{"node": "ip4-lookup", "reason": "no-route", "severity": "error",
                            "sentence": "No route covers the destination.", "count": 7}]),
        ),
        runtime: read(json!({"tsc_mhz": 1000.0, "seconds": 1.0, "workers": []})),
        totals: read(
            json!({"packets_in": 0, "packets_out": 0, "originated": 0, "replicated": 0,
                            "consumed": 0, "held": 0, "drops": {"no-route": 7 * seconds}}),
        ),
        flows: Some(read(json!([
            flow("10.1.0.1", 64, 10, 125_000),
            flow("10.1.0.2", 131, 400, 25_000)
        ]))),
        sflow: None,
    }
}

fn state() -> State {
    let (mut state, began) = (State::new("router-1".to_owned()), Instant::now());
    state.take(reading(began, 1));
    state.take(reading(began, 3));
    state
}

fn picture(state: &State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    buffer
        .content()
        .chunks(usize::from(width))
        .map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n")
        .collect()
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

#[test]
fn rates_are_differences_by_the_time_between_readings() {
    let state = state();
    assert_eq!(state.interfaces[0].rx_packets, 1000.0);
    assert_eq!(state.interfaces[0].rx_bits, 1_000_000.0);
    assert_eq!(state.drops[0].rate, 7.0);
    let flows = state.flows.unwrap();
    assert_eq!((flows[0].packets, flows[0].bits), (10.0, 1_000_000.0));
    assert_eq!(flows[1].result, "dropped: unroutable");
}

#[test]
fn a_cleared_counter_has_rate_0_and_not_a_negative_one() {
    let (mut state, began) = (State::new(String::new()), Instant::now());
    state.take(reading(began, 5));
    let mut cleared = reading(began, 1);
    cleared.at = began + Duration::from_secs(6);
    state.take(cleared);
    assert_eq!(state.interfaces[0].rx_packets, 0.0);
    assert_eq!(state.drops[0].rate, 0.0);
}

#[test]
fn eighty_columns_and_24_lines_show_every_part() {
    let picture = picture(&state(), 80, 24);
    for part in [
        "router-1",
        "xe0",
        "DOWN",
        "1.00 M",
        "10.1.0.1:5000",
        "10.2.0.2:53",
        "-> xe1",
        "unroutable",
        "no-route",
        "No route covers",
        "q quit",
    ] {
        assert!(picture.contains(part), "{part} is missing:\n{picture}");
    }
}

#[test]
fn a_small_terminal_says_what_it_needs() {
    assert!(picture(&state(), 60, 10).contains("needs 80 columns and 24 lines"));
}

#[test]
fn keys_move_sort_pause_and_quit() {
    let mut state = state();
    assert!(matches!(
        press(&mut state, key(KeyCode::Down)),
        Action::Redraw
    ));
    assert_eq!(state.selected, 1);
    press(&mut state, key(KeyCode::Down));
    assert_eq!(state.selected, 1, "the selection stays in the table");
    let Action::Lookup(flow) = press(&mut state, key(KeyCode::Enter)) else {
        panic!("Enter asks for a look-up");
    };
    assert_eq!(flow.flow.source.as_deref(), Some("10.1.0.2"));
    state.detail = Some((*flow, Ok(Lookup::default())));
    assert!(picture(&state, 80, 24).contains("no route covers the destination"));
    press(&mut state, key(KeyCode::Esc));
    assert!(state.detail.is_none());
    press(&mut state, key(KeyCode::Char('p')));
    assert_eq!(state.order, FlowOrder::Packets);
    press(&mut state, key(KeyCode::Tab));
    assert_eq!((state.pane, state.selected), (Pane::Drops, 0));
    press(&mut state, key(KeyCode::Char(' ')));
    assert!(picture(&state, 80, 24).contains("PAUSED"));
    assert!(matches!(
        press(&mut state, key(KeyCode::Char('q'))),
        Action::Quit
    ));
}

#[test]
fn names_from_outside_cannot_write_on_the_terminal() {
    let mut state = state();
    state.interfaces[0].name = "xe0\x1b[2J".to_owned();
    assert!(!picture(&state, 80, 24).contains('\x1b'));
    assert!(!plain::lines(&state).contains('\x1b'));
}
