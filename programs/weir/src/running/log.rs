//! The log of a running router: to standard error, and to whoever subscribed to it over the API.
//!
//! The level is the configuration's and changes with it; `RUST_LOG` in the environment has precedence,
//! for those who look for a fault. Nothing on a packet's way logs.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};
use weir_api::{EventBus, EventLevel, LogEvent, Timestamp};
use weir_config::{LogFormat, LogLevel, Logging};

/// Where lines are published once there is a router.
static BUS: OnceLock<EventBus> = OnceLock::new();

/// Changes how much is logged.
#[derive(Clone)]
pub(crate) struct Log(Option<reload::Handle<EnvFilter, Registry>>);

impl Log {
    /// From now on, messages of this level and above.
    pub(crate) fn set(&self, level: LogLevel) {
        if let Some(handle) = &self.0 {
            let _ = handle.reload(EnvFilter::new(level.word()));
        }
    }
}

/// Begins to log.
pub(crate) fn start(logging: &Logging) -> Log {
    let given = EnvFilter::try_from_default_env().ok();
    let is_given = given.is_some();
    let (filter, handle) =
        reload::Layer::new(given.unwrap_or_else(|| EnvFilter::new(logging.level.word())));
    let lines = match logging.format {
        LogFormat::Text => fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .with_target(false)
            .boxed(),
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(std::io::stderr)
            .boxed(),
    };
    // A second router in one process logs where the first does.
    let _ = Registry::default()
        .with(filter)
        .with(lines)
        .with(Teller)
        .try_init();
    Log((!is_given).then_some(handle))
}

/// Hands lines to subscribers and to `weir show log`, too.
pub(crate) fn tell(bus: Option<EventBus>) {
    if let Some(bus) = bus {
        let _ = BUS.set(bus);
    }
}

/// Hands lines to the API.
struct Teller;

impl<S: Subscriber> Layer<S> for Teller {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(bus) = BUS.get() else {
            return;
        };
        let metadata = event.metadata();
        let mut line = Line(String::new());
        event.record(&mut line);
        bus.publish(weir_api::Event::Log(LogEvent {
            time: Timestamp::now(),
            level: level(*metadata.level()),
            target: metadata.target().to_owned(),
            message: line.0,
        }));
    }
}

fn level(level: Level) -> EventLevel {
    match level {
        Level::ERROR => EventLevel::Error,
        Level::WARN => EventLevel::Warn,
        Level::INFO => EventLevel::Info,
        Level::DEBUG => EventLevel::Debug,
        Level::TRACE => EventLevel::Trace,
    }
}

/// The message, then its fields.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = if field.name() == "message" {
            write!(self.0, "{value:?}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
    }
}
