//! `weir monitor events`: what happens in the router, as it happens, until Ctrl-C.
//!
//! The stream is read on a thread of its own, since reading waits; this one waits for events and for
//! Ctrl-C. A reader that is left behind ends at the router's next sign of life.

use std::io::Write;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use weir_api::{EventRequest, Topic};

use crate::cli::{EventTopic, MonitorEventsArgs, Where};
use crate::failure::Failure;
use crate::render::{self, Screen};

/// Events that are waiting to be printed: a slow terminal stops the reading, not the router.
const WAITING: usize = 64;

/// Does it.
pub(crate) fn execute(
    args: &MonitorEventsArgs,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let request = EventRequest {
        topics: topics(&args.topics),
        interval_ms: None,
        interface: args.interface.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::said)?;
    let mut interrupt = runtime
        .block_on(async { signal(SignalKind::interrupt()) })
        .map_err(Failure::said)?;
    let mut terminate = runtime
        .block_on(async { signal(SignalKind::terminate()) })
        .map_err(Failure::said)?;
    let events = at.client()?.events(&request)?;
    let (sender, mut heard) = mpsc::channel(WAITING);
    let read = move || {
        // Nobody listens any more: enough was read.
        let _ = events
            .into_iter()
            .try_for_each(|event| sender.blocking_send(event));
    };
    std::thread::Builder::new()
        .name("events".to_owned())
        .spawn(read)
        .map_err(Failure::said)?;
    let mut left = args.count;
    while left != Some(0) {
        let event = runtime.block_on(async {
            tokio::select! {
                event = heard.recv() => event,
                _ = interrupt.recv() => None,
                _ = terminate.recv() => None,
            }
        });
        let Some(event) = event.transpose()? else {
            break;
        };
        if json {
            writeln!(
                to,
                "{}",
                serde_json::to_string(&event).map_err(Failure::said)?
            )?;
        } else {
            to.write_all(render::event::event(&event, &Screen::of_stdout()).as_bytes())?;
        }
        to.flush()?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

fn topics(wanted: &[EventTopic]) -> Vec<Topic> {
    if wanted.is_empty() {
        return vec![Topic::Log, Topic::Config, Topic::Link];
    }
    let topic = |topic: &EventTopic| match topic {
        EventTopic::Log => Topic::Log,
        EventTopic::Config => Topic::Config,
        EventTopic::Link => Topic::Link,
        EventTopic::Counters => Topic::Counters,
    };
    wanted.iter().map(topic).collect()
}
