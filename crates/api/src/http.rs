//! From HTTP to the table of endpoints and back.
//!
//! A request is read whole (bounded in bytes and in time), answered on a blocking thread (a
//! bounded number at once, bounded in time, a panic is a 500) and told as JSON. Everything that
//! goes wrong has the one shape of [`ErrorBody`]. Runs on the server's thread.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request as HttpRequest;
use axum::http::{Response, StatusCode, Uri, header};
use axum::routing::{MethodFilter, on};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::endpoints::{ENDPOINTS, Endpoint, Request, methods_of, paths};
use crate::{ApiError, ErrorBody, ErrorCode, Limits, Router};

/// What every request needs.
#[derive(Clone)]
pub(crate) struct Shared {
    router: Arc<dyn Router>,
    limits: Limits,
    /// One permit for each blocking thread: a router that hangs ties up so many, and no queue
    /// grows behind them.
    answering: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(router: Arc<dyn Router>, limits: Limits) -> Self {
        Self { router, limits, answering: Arc::new(Semaphore::new(limits.answers)) }
    }
}

/// The axum router over the table.
pub(crate) fn service(shared: &Shared) -> axum::Router {
    let mut service = axum::Router::new();
    for endpoint in ENDPOINTS {
        let shared = shared.clone();
        let handler = move |request: HttpRequest| handle(shared, endpoint, request);
        service = service.route(endpoint.path, on(filter(endpoint.method), handler));
    }
    service.fallback(unknown_path).method_not_allowed_fallback(wrong_method)
}

fn filter(method: &str) -> MethodFilter {
    match method {
        "POST" => MethodFilter::POST,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}

async fn unknown_path(uri: Uri) -> Response<Body> {
    let help = format!("paths: {}", paths().join(", "));
    refusal(&ApiError::new(ErrorCode::NotFound, format!("there is nothing at {}", uri.path()), help))
}

async fn wrong_method(request: HttpRequest) -> Response<Body> {
    let path = request.uri().path();
    let methods = methods_of(path).join(", ");
    let message = format!("{} is not a method of {path}", request.method());
    let mut response = refusal(&ApiError::new(ErrorCode::MethodNotAllowed, message, format!("methods: {methods}")));
    // RFC 9110 15.5.6: a 405 names the methods that the path has.
    if let Ok(allow) = header::HeaderValue::from_str(&methods) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

async fn handle(shared: Shared, endpoint: &'static Endpoint, request: HttpRequest) -> Response<Body> {
    match answer(&shared, endpoint, request).await {
        Ok(text) => reply(StatusCode::OK, text),
        Err(error) => refusal(&error),
    }
}

async fn answer(shared: &Shared, endpoint: &'static Endpoint, request: HttpRequest) -> Result<Vec<u8>, ApiError> {
    let limits = shared.limits;
    let (head, body) = request.into_parts();
    let body = match timeout(limits.body_time, whole(body, limits.body_bytes)).await {
        Ok(body) => body?,
        Err(_) => return Err(late(&limits)),
    };
    let busy = || ApiError::new(ErrorCode::Unavailable, "the router has too much to do to answer", "try again in a moment");
    let answered = async {
        let permit = Arc::clone(&shared.answering).acquire_owned().await.map_err(|_| busy())?;
        let router = Arc::clone(&shared.router);
        let request = Request { uri: head.uri, body };
        let work = move || {
            let _permit = permit;
            (endpoint.answer)(router.as_ref(), &request)
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| {
            let message = format!("{} {} failed inside the router", endpoint.method, endpoint.path);
            ApiError::new(ErrorCode::Internal, message, "this is a fault of weir; its log says more")
        })?
    };
    timeout(limits.answer_time, answered).await.map_err(|_| busy())?
}

fn late(limits: &Limits) -> ApiError {
    let message = format!("the request did not come in whole within {} s", limits.body_time.as_secs_f64());
    ApiError::new(ErrorCode::RequestTimeout, message, "send the whole body at once")
}

/// The whole body, unless it is too large.
async fn whole(body: Body, most: usize) -> Result<Bytes, ApiError> {
    let too_large = || {
        let message = format!("the request's body is larger than {most} bytes");
        ApiError::new(ErrorCode::TooLarge, message, "no request of this API needs more")
    };
    match Limited::new(body, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(ApiError::new(ErrorCode::BadRequest, format!("the request's body cannot be read: {error}"), "")),
    }
}

fn refusal(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Strings and an enumeration: writing them cannot fail; an empty body would still have its status.
    let mut text = serde_json::to_vec(&ErrorBody { error: error.clone() }).unwrap_or_default();
    text.push(b'\n');
    reply(status, text)
}

fn reply(status: StatusCode, text: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
