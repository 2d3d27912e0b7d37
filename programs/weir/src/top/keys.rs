//! What a key does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::state::{FlowOrder, FlowRate, Pane, State};

/// What the loop has to do after a key.
pub(crate) enum Action {
    /// Draw again.
    Redraw,
    /// Look up this flow, then draw.
    Lookup(Box<FlowRate>),
    /// End.
    Quit,
}

/// Applies a key to the state.
pub(crate) fn press(state: &mut State, key: KeyEvent) -> Action {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if key.code == KeyCode::Char('q') || (control && key.code == KeyCode::Char('c')) {
        return Action::Quit;
    }
    if state.detail.is_some() || state.help {
        if state.help || matches!(key.code, KeyCode::Esc | KeyCode::Enter) {
            state.detail = None;
            state.help = false;
        }
        return Action::Redraw;
    }
    match key.code {
        KeyCode::Tab | KeyCode::Right => focus(state, 1),
        KeyCode::BackTab | KeyCode::Left => focus(state, 2),
        KeyCode::Up | KeyCode::Char('k') => state.selected = state.selected.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => {
            state.selected = (state.selected + 1).min(state.rows().saturating_sub(1));
        }
        KeyCode::Home => state.selected = 0,
        KeyCode::End => state.selected = state.rows().saturating_sub(1),
        KeyCode::Char('b') => state.order = FlowOrder::Bits,
        KeyCode::Char('p') => state.order = FlowOrder::Packets,
        KeyCode::Char(' ') => state.paused = !state.paused,
        KeyCode::Char('h' | '?') => state.help = true,
        KeyCode::Enter if state.pane == Pane::Flows => {
            let flow = state
                .flows
                .as_ref()
                .and_then(|flows| flows.get(state.selected));
            if let Some(flow) = flow {
                return Action::Lookup(Box::new(flow.clone()));
            }
        }
        _ => {}
    }
    Action::Redraw
}

fn focus(state: &mut State, steps: usize) {
    const PANES: [Pane; 3] = [Pane::Interfaces, Pane::Flows, Pane::Drops];
    let now = PANES
        .iter()
        .position(|pane| *pane == state.pane)
        .unwrap_or(0);
    state.pane = PANES[(now + steps) % PANES.len()];
    state.selected = 0;
}
