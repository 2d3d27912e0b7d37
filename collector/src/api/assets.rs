//! The console's files, built by npm (`console/`), committed and compiled in: cargo needs no npm.

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

const FILES: &[(&str, &str, &[u8])] = &[
    (
        "/",
        "text/html; charset=utf-8",
        include_bytes!("../../../console/dist/index.html"),
    ),
    (
        "/console.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../console/dist/console.js"),
    ),
    (
        "/console.css",
        "text/css; charset=utf-8",
        include_bytes!("../../../console/dist/console.css"),
    ),
];

/// A file of the console.
pub(super) async fn file(uri: Uri) -> Response {
    match FILES.iter().find(|(path, ..)| *path == uri.path()) {
        Some((_, kind, bytes)) => (
            [
                (header::CONTENT_TYPE, *kind),
                (header::CACHE_CONTROL, "no-cache"),
            ],
            *bytes,
        )
            .into_response(),
        None => (StatusCode::NOT_FOUND, "not found\n").into_response(),
    }
}
