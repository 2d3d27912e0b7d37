//! The stream of `GET /v1/events`: one subscriber's events, as they happen.
//!
//! Nothing is queued for a subscriber but one event that is being written. What is published
//! meanwhile waits in the topic's ring ([`EventBus`](crate::EventBus)); what falls out of it is
//! reported as `lost`. A subscriber that reads nothing at all is closed by the bound on writes. A
//! silent stream sends a comment now and then, so that a client which is gone is noticed. Runs on
//! the server's thread; counters are asked for on a blocking one.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

use crate::endpoints::EventParameters;
use crate::http::Shared;
use crate::listen::is_true;
use crate::{
    ApiError, CaptureStream, CountersEvent, Event, Interface, InterfaceCounters, LostEvent,
    Timestamp, Topic,
};

/// The first message to a subscriber: from here on it misses nothing.
const WELCOME: &[u8] = b": weir\nretry: 1000\n\n";
/// A comment: clients ignore it (HTML 9.2.6).
const SIGN_OF_LIFE: &[u8] = b":\n\n";

/// A subscriber.
struct Subscriber {
    shared: Shared,
    interface: Option<String>,
    log: Option<Ring>,
    config: Option<Ring>,
    link: Option<Ring>,
    /// When counters are due.
    clock: Option<Interval>,
    is_new: bool,
    _place: OwnedSemaphorePermit,
}

type Ring = broadcast::Receiver<Arc<Event>>;

/// Subscribes. From here on, everything that is published is sent, or counted as lost.
pub(crate) async fn open(
    shared: Shared,
    wanted: EventParameters,
    place: OwnedSemaphorePermit,
) -> Result<Body, ApiError> {
    if let Some(name) = wanted.interface.clone() {
        let exists = move |router: &dyn crate::Router| {
            let all = router.interfaces()?.interfaces;
            let known = || all.iter().map(|interface| interface.name.as_str());
            if known().any(|known| known == name) {
                Ok(())
            } else {
                Err(ApiError::unknown("interface", &name, known()))
            }
        };
        shared
            .ask(shared.limits().answer_time, "finding an interface", exists)
            .await?;
    }
    let ring = |topic| {
        wanted
            .topics
            .contains(&topic)
            .then(|| shared.events.ring(topic).map(broadcast::Sender::subscribe))
            .flatten()
    };
    let clock = wanted.topics.contains(&Topic::Counters).then(|| {
        let mut clock = interval(Duration::from_millis(u64::from(wanted.interval_ms)));
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        clock
    });
    let (log, config, link) = (ring(Topic::Log), ring(Topic::Config), ring(Topic::Link));
    let subscriber = Subscriber {
        shared,
        interface: wanted.interface,
        log,
        config,
        link,
        clock,
        is_new: true,
        _place: place,
    };
    Ok(Body::new(Stream {
        next: Some(Box::pin(subscriber.next())),
    }))
}

impl Subscriber {
    /// The next piece of the stream, and the subscriber again; nothing when the router stops.
    async fn next(mut self) -> Option<(Self, Bytes)> {
        if self.is_new {
            self.is_new = false;
            return Some((self, Bytes::from_static(WELCOME)));
        }
        let silent = Instant::now() + self.shared.limits().silence;
        loop {
            let mut stopped = self.shared.stopped.clone();
            let event = tokio::select! {
                () = is_true(&mut stopped) => return None,
                event = receive(&mut self.log, Topic::Log) => event,
                event = receive(&mut self.config, Topic::Config) => event,
                event = receive(&mut self.link, Topic::Link) => event,
                () = tick(&mut self.clock) => Some(self.counters().await),
                () = sleep_until(silent) => return Some((self, Bytes::from_static(SIGN_OF_LIFE))),
            };
            if let Some(text) = event
                .filter(|event| self.is_wanted(event))
                .and_then(|event| written(&event))
            {
                return Some((self, text));
            }
        }
    }

    fn is_wanted(&self, event: &Event) -> bool {
        match (&self.interface, event) {
            (Some(name), Event::Link(link)) => link.interface == *name,
            _ => true,
        }
    }

    /// The counters of now; when the router is too busy to tell them, one event was lost.
    async fn counters(&self) -> Arc<Event> {
        let asked = self.shared.ask(
            self.shared.limits().answer_time,
            "reading counters",
            |router| router.interfaces(),
        );
        let Ok(all) = asked.await else {
            return Arc::new(Event::Lost(LostEvent {
                topic: Topic::Counters,
                count: 1,
            }));
        };
        let wanted = |interface: &Interface| {
            self.interface
                .as_ref()
                .is_none_or(|name| *name == interface.name)
        };
        let interfaces = all
            .interfaces
            .into_iter()
            .filter(wanted)
            .map(counters)
            .collect();
        Arc::new(Event::Counters(CountersEvent {
            time: Timestamp::now(),
            interfaces,
        }))
    }
}

fn counters(of: Interface) -> InterfaceCounters {
    let Interface {
        name,
        index,
        rx,
        tx,
        rx_errors,
        tx_errors,
        drops,
        ..
    } = of;
    InterfaceCounters {
        name,
        index,
        rx,
        tx,
        rx_errors,
        tx_errors,
        drops,
    }
}

async fn tick(clock: &mut Option<Interval>) {
    match clock {
        Some(clock) => {
            clock.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// The next event of a ring, or how many fell out of it.
async fn receive(ring: &mut Option<Ring>, topic: Topic) -> Option<Arc<Event>> {
    let Some(open) = ring else {
        return std::future::pending().await;
    };
    match open.recv().await {
        Ok(event) => Some(event),
        Err(RecvError::Lagged(count)) => Some(Arc::new(Event::Lost(LostEvent { topic, count }))),
        Err(RecvError::Closed) => {
            *ring = None;
            None
        }
    }
}

/// An event as HTML 9.2.5 has it. JSON has no line breaks, so `data:` is one line.
fn written(event: &Event) -> Option<Bytes> {
    let data = serde_json::to_string(event).ok()?;
    Some(Bytes::from(format!(
        "event: {}\ndata: {data}\n\n",
        event.name()
    )))
}

/// The body of a capture: what the engine hands on, until it ends. When the client goes away it is
/// dropped, which the engine notices.
pub(crate) fn capture(pieces: CaptureStream, mut stopped: watch::Receiver<bool>) -> Body {
    let stopped = Box::pin(async move { is_true(&mut stopped).await });
    Body::new(Pieces {
        pieces,
        stopped: Some(stopped),
    })
}

struct Pieces {
    pieces: CaptureStream,
    /// The server's end, until it comes: the capture is asked to end, too.
    stopped: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(stopped) = self.stopped.as_mut()
            && stopped.as_mut().poll(context).is_ready()
        {
            self.stopped = None;
            self.pieces.ask_to_end();
        }
        self.pieces
            .poll(context)
            .map(|piece| piece.map(|piece| Ok(Frame::data(Bytes::from(piece)))))
    }
}

/// A body whose pieces are made one after the other, each when the one before it was taken.
struct Stream {
    next: Option<Next>,
}

type Next = Pin<Box<dyn Future<Output = Option<(Subscriber, Bytes)>> + Send>>;

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = self.next.as_mut() else {
            return Poll::Ready(None);
        };
        match next.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.next = None;
                Poll::Ready(None)
            }
            Poll::Ready(Some((subscriber, piece))) => {
                self.next = Some(Box::pin(subscriber.next()));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
        }
    }
}
