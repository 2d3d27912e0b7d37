//! The loop of the live view on a terminal.
//!
//! A thread reads the router and answers look-ups; this thread draws and handles keys. The terminal is
//! restored however the view ends, a panic included.

use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyEventKind};
use weir_api::FlowEntry;

use super::draw;
use super::keys::{Action, press};
use super::reading::{Lookup, Reading, Source};
use super::state::{FlowRate, State};
use crate::failure::Failure;
use crate::signals::Signals;

/// How long a key may wait, and how soon a signal is noticed.
const TICK: Duration = Duration::from_millis(50);

enum Answer {
    Reading(Box<Result<Reading, String>>, Vec<String>),
    Lookup(Box<FlowRate>, Result<Lookup, String>),
}

/// Shows the view until the user quits, a signal arrives, or `duration` is over.
pub(crate) fn run(
    source: Box<dyn Source>,
    mut state: State,
    interval: Duration,
    duration: Option<Duration>,
) -> Result<(), Failure> {
    let (ask, questions) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let reader = std::thread::Builder::new()
        .name("top-reader".to_owned())
        .spawn(move || read(source, interval, &questions, &answer))
        .map_err(Failure::said)?;
    let signals = Signals::new()?;
    let mut terminal = ratatui::try_init().map_err(Failure::said)?;
    let ended = (|| {
        let began = Instant::now();
        loop {
            terminal
                .draw(|frame| draw::draw(frame, &state))
                .map_err(Failure::said)?;
            // A terminal that is gone reports an event at once, for ever, and reads nothing.
            if !std::io::stdout().is_terminal() {
                return Ok(());
            }
            if event::poll(TICK).map_err(Failure::said)?
                && let Event::Key(key) = event::read().map_err(Failure::said)?
                && key.kind != KeyEventKind::Release
            {
                match press(&mut state, key) {
                    Action::Quit => return Ok(()),
                    Action::Redraw => {}
                    // The reader ends only with this function.
                    Action::Lookup(flow) => drop(ask.send(flow)),
                }
            }
            take(&mut state, &answers);
            if signals.arrived() {
                return Ok(());
            }
            if duration.is_some_and(|duration| began.elapsed() >= duration) {
                return Ok(());
            }
        }
    })();
    ratatui::restore();
    drop(ask);
    drop(answers);
    // The reader notices within an interval that nobody listens; a router that does not answer must
    // not keep the terminal busy, so the thread is not waited for.
    drop(reader);
    ended
}

fn take(state: &mut State, answers: &Receiver<Answer>) {
    for answer in answers.try_iter() {
        match answer {
            Answer::Reading(reading, notes) => match *reading {
                Ok(reading) if !state.paused => {
                    state.take(reading);
                    state.notes = notes;
                }
                Ok(_) => {}
                Err(error) => state.error = Some(error),
            },
            Answer::Lookup(flow, lookup) => state.detail = Some((*flow, lookup)),
        }
    }
}

fn read(
    mut source: Box<dyn Source>,
    interval: Duration,
    questions: &Receiver<Box<FlowRate>>,
    answer: &Sender<Answer>,
) {
    let mut next = Instant::now() + interval;
    loop {
        let sent = match questions.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(flow) => {
                let entry: &FlowEntry = &flow.flow;
                let lookup = source.lookup(entry);
                answer.send(Answer::Lookup(flow, lookup))
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                next = Instant::now() + interval;
                let reading = source.read();
                answer.send(Answer::Reading(Box::new(reading), source.notes()))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}
