//! The live view of a run, drawn with ratatui five times a second on a thread of its own.
//!
//! The terminal is restored when the run ends, however it ends; `q` and Ctrl-C end it.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Row, Sparkline, Table};
use ratatui::{Frame, Terminal};
use weir_lab::run::{Control, Live};

use crate::failure::Failure;

const PICTURE: Duration = Duration::from_millis(200);
const HISTORY: usize = 200;

/// Starts the view.
pub(super) fn start(control: Arc<Control>, names: Vec<String>) -> Result<JoinHandle<()>, Failure> {
    // The command holds the lock of standard output until it ends, so that this is another handle.
    let screen = std::io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(Failure::said)?;
    let mut screen = Screen(File::from(screen));
    let mut terminal = screen.begin().map_err(Failure::said)?;
    control.watched.store(true, Ordering::Relaxed);
    Ok(std::thread::spawn(move || {
        let mut view = View {
            names,
            ..View::default()
        };
        while !control.stop.load(Ordering::Relaxed) {
            if let Ok(live) = control.live.lock() {
                view.take(&live);
            }
            let _ = terminal.draw(|frame| view.draw(frame));
            if let Ok(true) = event::poll(PICTURE)
                && let Ok(Event::Key(key)) = event::read()
                && (key.code == KeyCode::Char('q')
                    || key.code == KeyCode::Char('c')
                        && key.modifiers.contains(KeyModifiers::CONTROL))
            {
                control.stop.store(true, Ordering::Relaxed);
            }
        }
        drop(terminal);
        drop(screen);
    }))
}

/// The terminal in raw mode with its other screen; both end with the value.
struct Screen(File);

impl Screen {
    fn begin(&mut self) -> std::io::Result<Terminal<CrosstermBackend<File>>> {
        enable_raw_mode()?;
        execute!(self.0, EnterAlternateScreen, Hide)?;
        Terminal::new(CrosstermBackend::new(self.0.try_clone()?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing is left to be done for a terminal that went away.
        let _ = execute!(self.0, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

#[derive(Default)]
struct View {
    names: Vec<String>,
    now: Live,
    before: Live,
    latency: Vec<u64>,
    rate: Vec<u64>,
}

impl View {
    fn take(&mut self, live: &Live) {
        if live.seconds <= self.now.seconds {
            return;
        }
        self.before = std::mem::replace(&mut self.now, live.clone());
        let p99 = live
            .streams
            .iter()
            .map(|stream| stream.4)
            .fold(0.0, f64::max);
        let sent = |live: &Live| live.streams.iter().map(|stream| stream.0).sum::<u64>();
        let gap = (self.now.seconds - self.before.seconds).max(1e-9);
        let rate = (sent(&self.now) - sent(&self.before).min(sent(&self.now))) as f64 / gap;
        for (history, value) in [(&mut self.latency, p99), (&mut self.rate, rate)] {
            history.push(value as u64);
            if history.len() > HISTORY {
                history.remove(0);
            }
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let rows = u16::try_from(self.names.len())
            .unwrap_or(u16::MAX)
            .saturating_add(3);
        let [head, table, rate, latency] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(rows),
            Constraint::Min(3),
            Constraint::Min(3),
        ])
        .areas(frame.area());
        frame.render_widget(
            Line::from(format!(
                " weir lab generate   {:.1} s   q ends",
                self.now.seconds
            ))
            .bold(),
            head,
        );
        frame.render_widget(self.table(), table);
        let last = |history: &[u64]| history.last().copied().unwrap_or(0);
        let title = format!(" packets/s: {} ", last(&self.rate));
        frame.render_widget(
            Sparkline::default()
                .block(Block::bordered().title(title))
                .data(&self.rate),
            rate,
        );
        let title = format!(" latency, 99 %: {} µs ", last(&self.latency));
        frame.render_widget(
            Sparkline::default()
                .block(Block::bordered().title(title))
                .data(&self.latency),
            latency,
        );
    }

    fn table(&self) -> Table<'_> {
        let gap = (self.now.seconds - self.before.seconds).max(1e-9);
        let rows = self.names.iter().enumerate().map(|(number, name)| {
            let (sent, received, lost, p50, p99) =
                self.now.streams.get(number).copied().unwrap_or_default();
            let before = self.before.streams.get(number).copied().unwrap_or_default();
            let rate =
                |now: u64, before: u64| format!("{:.0}", now.saturating_sub(before) as f64 / gap);
            Row::new([
                name.clone(),
                rate(sent, before.0),
                rate(received, before.1),
                sent.to_string(),
                received.to_string(),
                lost.to_string(),
                format!("{p50:.1}"),
                format!("{p99:.1}"),
            ])
        });
        let head = [
            "stream",
            "sent/s",
            "received/s",
            "sent",
            "received",
            "not yet back",
            "p50 µs",
            "p99 µs",
        ];
        let widths = [Constraint::Min(10); 8];
        Table::new(rows, widths)
            .header(Row::new(head).style(Style::new().bold()))
            .block(Block::bordered())
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    #[test]
    fn rates_are_differences_of_two_pictures() {
        let mut view = View {
            names: vec!["web".into()],
            ..View::default()
        };
        view.take(&Live {
            seconds: 1.0,
            streams: vec![(1000, 990, 10, 5.0, 9.0)],
        });
        view.take(&Live {
            seconds: 1.5,
            streams: vec![(2000, 1980, 20, 6.0, 12.0)],
        });
        let mut terminal = Terminal::new(TestBackend::new(100, 16)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let text = format!("{}", terminal.backend());
        for wanted in [
            "web",
            "2000",
            "1980",
            "20",
            "12.0",
            "latency, 99 %: 12 µs",
            "packets/s: 2000",
        ] {
            assert!(text.contains(wanted), "{wanted} is missing in\n{text}");
        }
    }
}
