//! From HTTP to the table of endpoints and back.
//!
//! First it is clear who asks, then whether they may; only then is a request read, whole, bounded
//! in bytes and in time. It is answered on a blocking thread (a bounded number at once, bounded in
//! time, a panic is a 500). Everything that goes wrong has the one shape of [`ErrorBody`]. Changes
//! are logged with who asked for them. Runs on the server's thread.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::RequestExt;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request as HttpRequest};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header, request::Parts};
use axum::routing::{MethodFilter, on};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use crate::access::{Access, Current, Peer};
use crate::endpoints::{
    Answer, ENDPOINTS, Endpoint, Reply, Request, event_parameters, methods_of, paths,
};
use crate::guests::Guest;
use crate::{
    ApiError, Caller, ErrorBody, ErrorCode, EventBus, Limits, Role, Router, encoding, metrics,
    stream,
};

/// What every request needs.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) router: Arc<dyn Router>,
    limits: Limits,
    access: Arc<Current>,
    pub(crate) events: EventBus,
    pub(crate) stopped: watch::Receiver<bool>,
    /// One permit for each blocking thread: a router that hangs ties up so many, and no queue
    /// grows behind them.
    answering: Arc<Semaphore>,
    /// One permit for each large body in memory.
    large: Arc<Semaphore>,
    /// One permit for each stream of events.
    streams: Arc<Semaphore>,
    /// One permit for each connection of a user who may do nothing.
    strangers: Arc<Semaphore>,
    refusals: Arc<Refusals>,
}

/// Refused users get a reply with the reason; beyond this number at once they get none.
const STRANGERS: usize = 8;

/// Refused clients: they are logged, at a limited rate.
#[derive(Default)]
struct Refusals(Mutex<(Option<Instant>, u64)>);

impl Refusals {
    /// Counts one; at most once a second it returns that it is logged, with the number that was not.
    fn count(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (logged, unsaid) = &mut *state;
        if logged.is_some_and(|logged| logged.elapsed() < Duration::from_secs(1)) {
            *unsaid = unsaid.saturating_add(1);
            return None;
        }
        *logged = Some(Instant::now());
        Some(std::mem::take(unsaid))
    }
}

impl Shared {
    pub(crate) fn new(
        router: Arc<dyn Router>,
        limits: Limits,
        access: Arc<Current>,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let events = router.events().unwrap_or_default();
        let permits = |count: usize| Arc::new(Semaphore::new(count.max(1)));
        let (answering, large, streams) = (
            permits(limits.answers),
            permits(limits.configs),
            permits(limits.streams),
        );
        let (strangers, refusals) = (permits(STRANGERS), Arc::default());
        Self {
            router,
            limits,
            access,
            events,
            stopped,
            answering,
            large,
            streams,
            strangers,
            refusals,
        }
    }

    /// A slot for the reply to a refused user; `None` when there are too many.
    pub(crate) fn stranger(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.strangers).try_acquire_owned().ok()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Who may do what, now.
    pub(crate) fn access(&self) -> Arc<Access> {
        self.access.get()
    }

    /// Asks the router on a blocking thread, when one is free; not longer than `most`.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        most: Duration,
        what: &str,
        question: impl FnOnce(&dyn Router) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let answered = async {
            let permit = Arc::clone(&self.answering)
                .acquire_owned()
                .await
                .map_err(|_| busy())?;
            let router = Arc::clone(&self.router);
            let work = move || {
                let _permit = permit;
                question(router.as_ref())
            };
            tokio::task::spawn_blocking(work).await.map_err(|_| {
                let message = format!("{what} failed inside the router");
                ApiError::new(
                    ErrorCode::Internal,
                    message,
                    "this is a fault of weir; its log says more",
                )
            })?
        };
        timeout(most, answered).await.map_err(|_| busy())?
    }
}

fn busy() -> ApiError {
    ApiError::new(
        ErrorCode::Unavailable,
        "the router has too much to do to answer",
        "try again in a moment",
    )
}

/// The axum router over the table.
pub(crate) fn service(shared: &Shared) -> axum::Router {
    let mut service = axum::Router::new();
    for endpoint in ENDPOINTS {
        let shared = shared.clone();
        let handler = move |request: HttpRequest| handle(shared, endpoint, request);
        service = service.route(endpoint.path, on(filter(endpoint.method), handler));
    }
    service
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
}

/// What the listener for metrics answers.
pub(crate) fn metrics_service(shared: &Shared) -> axum::Router {
    let mut service = axum::Router::new();
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.path == "/metrics")
    {
        let shared = shared.clone();
        let handler = move |request: HttpRequest| handle(shared, endpoint, request);
        service = service.route(endpoint.path, on(filter(endpoint.method), handler));
    }
    service.fallback(only_metrics)
}

fn filter(method: &str) -> MethodFilter {
    match method {
        "POST" => MethodFilter::POST,
        "PATCH" => MethodFilter::PATCH,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}

/// What one connection is served by: who asks is found out before anything else is.
pub(crate) fn conversation(
    shared: Shared,
    service: axum::Router,
    peer: Peer,
    guest: Arc<Guest>,
) -> impl Service<hyper::Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
{
    let inner = TowerToHyperService::new(service);
    let peer = Arc::new(peer);
    service_fn(move |mut request: hyper::Request<Incoming>| {
        let (shared, inner, peer) = (shared.clone(), inner.clone(), Arc::clone(&peer));
        let guest = Arc::clone(&guest);
        async move {
            match shared.access().caller(&peer, request.headers()) {
                Ok(caller) => {
                    guest.prove();
                    request.extensions_mut().insert(caller);
                    inner.call(request).await
                }
                Err(error) => {
                    if let Some(unsaid) = shared.refusals.count() {
                        let path = request.uri().path();
                        tracing::info!(from = %peer.place(), method = %request.method(), path, unsaid, "the API refuses somebody");
                    }
                    Ok(turned_away(&error))
                }
            }
        }
    })
}

/// A refusal after which the connection ends: who may not ask shall not hold it.
fn turned_away(error: &ApiError) -> Response<Body> {
    let mut response = refusal(error);
    response.headers_mut().insert(
        header::CONNECTION,
        header::HeaderValue::from_static("close"),
    );
    if error.code == ErrorCode::Unauthorized {
        // RFC 6750 3.
        response.headers_mut().insert(
            header::WWW_AUTHENTICATE,
            header::HeaderValue::from_static("Bearer"),
        );
    }
    response
}

async fn unknown_path(uri: Uri) -> Response<Body> {
    let help = format!("paths: {}", paths().join(", "));
    refusal(&ApiError::new(
        ErrorCode::NotFound,
        format!("there is nothing at {}", uri.path()),
        help,
    ))
}

async fn only_metrics(uri: Uri) -> Response<Body> {
    refusal(&ApiError::new(
        ErrorCode::NotFound,
        format!("there is nothing at {}", uri.path()),
        "this listener has GET /metrics only",
    ))
}

async fn wrong_method(request: HttpRequest) -> Response<Body> {
    let path = request.uri().path();
    let methods = methods_of(path).join(", ");
    let message = format!("{} is not a method of {path}", request.method());
    let mut response = refusal(&ApiError::new(
        ErrorCode::MethodNotAllowed,
        message,
        format!("methods: {methods}"),
    ));
    // RFC 9110 15.5.6: a 405 names the methods that the path has.
    if let Ok(allow) = header::HeaderValue::from_str(&methods) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

async fn handle(
    shared: Shared,
    endpoint: &'static Endpoint,
    mut request: HttpRequest,
) -> Response<Body> {
    let Some(caller) = request.extensions_mut().remove::<Caller>() else {
        return refusal(&ApiError::new(
            ErrorCode::Internal,
            "nobody knows who asks",
            "",
        ));
    };
    let changes = endpoint.role == Role::Admin;
    let path = if changes {
        request.uri().path().to_owned()
    } else {
        String::new()
    };
    let outcome = answer(&shared, endpoint, caller.clone(), request).await;
    if changes {
        let status = outcome.as_ref().map_or_else(
            |error| error.code.status(),
            |response| response.status().as_u16(),
        );
        tracing::info!(%caller, role = %caller.role, method = endpoint.method, path, status, "the API was asked for a change");
    }
    outcome.unwrap_or_else(|error| refusal(&error))
}

async fn answer(
    shared: &Shared,
    endpoint: &'static Endpoint,
    caller: Caller,
    mut request: HttpRequest,
) -> Result<Response<Body>, ApiError> {
    if caller.role < endpoint.role {
        let message = format!(
            "{caller} may look, but not change: {} {} is for admins",
            endpoint.method, endpoint.path
        );
        return Err(ApiError::new(
            ErrorCode::Forbidden,
            message,
            "ask as root, as a member of the admin group, or with an admin's token",
        ));
    }
    let in_path = path_parameters(&mut request).await?;
    let (head, body) = request.into_parts();
    let body = read_body(shared, endpoint, &head, body).await?;
    let request = Request {
        endpoint,
        uri: head.uri.clone(),
        in_path,
        body: body.0,
        caller,
    };
    match endpoint.answer {
        Answer::Text(_) if head.method == Method::HEAD => {
            Ok(reply(StatusCode::OK, content_type(endpoint), Body::empty()))
        }
        Answer::Text(answer) => {
            let most = if endpoint.of_config {
                shared.limits.change_time
            } else {
                shared.limits.answer_time
            };
            let what = format!("{} {}", endpoint.method, endpoint.path);
            let large = body.1;
            let gzip = encoding::takes_gzip(&head.headers);
            let plain = matches!(endpoint.reply, Reply::OpenMetrics)
                && encoding::wants_plain_metrics(&head.headers);
            let answered = shared.ask(most, &what, move |router| {
                let answered = answer(router, &request);
                drop(request);
                let packed = answered.map(|mut text| {
                    if plain {
                        text = metrics::plain::of(&String::from_utf8_lossy(&text)).into_bytes();
                    }
                    let packed = gzip.then(|| encoding::compressed(&text)).flatten();
                    packed.map_or((text, false), |packed| (packed, true))
                });
                if large.is_some() {
                    weir_cpu::heap::give_back();
                }
                drop(large);
                packed
            });
            let (text, is_packed) = answered.await?;
            let content_type = if plain {
                metrics::plain::CONTENT_TYPE
            } else {
                content_type(endpoint)
            };
            let mut response = reply(StatusCode::OK, content_type, Body::from(text));
            let headers = response.headers_mut();
            let varies = header::HeaderValue::from_static("accept, accept-encoding");
            headers.insert(header::VARY, varies);
            if is_packed {
                let gzip = header::HeaderValue::from_static("gzip");
                headers.insert(header::CONTENT_ENCODING, gzip);
            }
            Ok(response)
        }
        Answer::Stream => {
            let wanted = event_parameters(&request)?;
            let busy = || {
                ApiError::new(
                    ErrorCode::Unavailable,
                    "there are too many streams of events",
                    "end one of them first",
                )
            };
            let place = Arc::clone(&shared.streams)
                .try_acquire_owned()
                .map_err(|_| busy())?;
            let body = stream::open(shared.clone(), wanted, place).await?;
            Ok(reply(StatusCode::OK, content_type(endpoint), body))
        }
        Answer::Capture(begin) => {
            let begun = shared
                .ask(
                    shared.limits.answer_time,
                    "beginning a capture",
                    move |router| begin(router, &request),
                )
                .await?;
            let number = begun.number;
            let mut response = reply(
                StatusCode::OK,
                content_type(endpoint),
                stream::capture(begun, shared.stopped.clone()),
            );
            response
                .headers_mut()
                .insert(CAPTURE_NUMBER, header::HeaderValue::from(number));
            Ok(response)
        }
    }
}

fn content_type(endpoint: &Endpoint) -> &'static str {
    match endpoint.reply {
        Reply::Json(_) => JSON,
        Reply::OpenMetrics => crate::metrics::CONTENT_TYPE,
        Reply::Events => "text/event-stream",
        Reply::Pcapng => PCAPNG,
    }
}

async fn path_parameters(request: &mut HttpRequest) -> Result<Vec<String>, ApiError> {
    let parameters = request.extract_parts::<RawPathParams>().await;
    let parameters =
        parameters.map_err(|error| ApiError::new(ErrorCode::BadRequest, error.body_text(), ""))?;
    Ok(parameters
        .iter()
        .map(|(_, value)| value.to_owned())
        .collect())
}

/// The body, and the permit to hold it when it is large.
async fn read_body(
    shared: &Shared,
    endpoint: &Endpoint,
    head: &Parts,
    body: Body,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), ApiError> {
    let limits = shared.limits;
    if endpoint.body.is_some() {
        must_be_json(&head.headers)?;
    }
    let length = head
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|text| text.to_str().ok())
        .and_then(|text| text.parse().ok());
    let is_small = length.is_some_and(|length: usize| length <= limits.body_bytes);
    let (most, time, permit) = if endpoint.of_config && endpoint.body.is_some() && !is_small {
        let place = Arc::clone(&shared.large).acquire_owned();
        let place = timeout(limits.answer_time, place)
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(busy)?;
        (
            limits.config_bytes,
            limits.body_time.saturating_mul(4),
            Some(place),
        )
    } else {
        (limits.body_bytes, limits.body_time, None)
    };
    match timeout(time, whole(body, most)).await {
        Ok(body) => Ok((body?, permit)),
        Err(_) => {
            let message = format!(
                "the request did not come in whole within {} s",
                time.as_secs_f64()
            );
            Err(ApiError::new(
                ErrorCode::RequestTimeout,
                message,
                "send the whole body at once",
            ))
        }
    }
}

/// A body of another type is refused, so that a page in a browser cannot send one without asking
/// first (Fetch 4.8: JSON is not a type that goes without a preflight).
fn must_be_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    if JSON_TYPES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
    {
        return Ok(());
    }
    let message = format!("the request's body is of type {essence:?}");
    Err(ApiError::new(
        ErrorCode::UnsupportedMediaType,
        message,
        format!("send it as {JSON}"),
    ))
}

/// The header that tells a capture's number, since its body is the capture.
pub(crate) const CAPTURE_NUMBER: &str = "weir-capture";
/// What Wireshark's own descriptions call it; IANA has no name for it.
pub(crate) const PCAPNG: &str = "application/x-pcapng";

const JSON: &str = "application/json";
/// The second one is that of RFC 7396.
const JSON_TYPES: [&str; 2] = [JSON, "application/merge-patch+json"];

/// The whole body, unless it is too large.
async fn whole(body: Body, most: usize) -> Result<Bytes, ApiError> {
    let too_large = || {
        let message = format!("the request's body is larger than {most} bytes");
        ApiError::new(
            ErrorCode::TooLarge,
            message,
            "no request of this API needs more",
        )
    };
    match Limited::new(body, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(ApiError::new(
            ErrorCode::BadRequest,
            format!("the request's body cannot be read: {error}"),
            "",
        )),
    }
}

fn refusal(error: &ApiError) -> Response<Body> {
    let status =
        StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Strings and an enumeration: writing them cannot fail; an empty body would still have its status.
    let mut text = serde_json::to_vec(&ErrorBody {
        error: error.clone(),
    })
    .unwrap_or_default();
    text.push(b'\n');
    reply(status, JSON, Body::from(text))
}

fn reply(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static(content_type),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    response
}
