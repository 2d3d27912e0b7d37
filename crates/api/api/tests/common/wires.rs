//! Asking without the client: octets over a Unix socket or TCP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use weir_api::*;

use super::Place;

/// A row of the table with its parameters and a body that it takes.
pub(crate) fn fitting(endpoint: &Endpoint) -> (String, &'static str) {
    let path = endpoint
        .path
        .replace("{name}", "lan%20%26%20co")
        .replace("{revision}", "3")
        .replace("{number}", "7");
    let path = match endpoint.path {
        "/v1/why" => format!("{path}?source=192.0.2.1&destination=192.0.2.2"),
        _ => path,
    };
    let body = match (endpoint.method, endpoint.path) {
        ("PATCH", "/v1/sflow") => r#"{"sampling_rate": 100}"#,
        ("POST", "/v1/routes") => r#"{"delete": [{"prefix": "192.0.2.0/24"}]}"#,
        ("PATCH", _) => r#"{"mtu": 9000}"#,
        (_, "/v1/pcap") if endpoint.body.is_some() => r#"{"rx": true}"#,
        (_, "/v1/config/diff") => r#"{"revision": 3}"#,
        (_, path)
            if path.starts_with("/v1/config/")
                && endpoint.body.is_some()
                && !path.ends_with("rollback") =>
        {
            r#"{"yaml": "a: 1"}"#
        }
        _ if endpoint.body.is_some() => "{}",
        _ => "",
    };
    (path, body)
}

/// Sends bytes as they are, and reads until the server closes.
pub(crate) fn raw(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // A server that refuses early may close before everything is sent.
    let _ = stream.write_all(request);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}

/// Asks over plain TCP, with a token or without.
pub(crate) fn plain_tcp(
    address: SocketAddr,
    token: Option<&str>,
    method: &str,
    target: &str,
    body: &str,
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let token = token
        .map(|token| format!("Authorization: Bearer {token}\r\n"))
        .unwrap_or_default();
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n{token}Content-Length: {length}\r\n\r\n{body}"
    );
    let _ = stream.write_all(request.as_bytes());
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let status = reply
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("no status in {reply:?}"));
    let (head, text) = reply.split_once("\r\n\r\n").unwrap();
    (status, text.to_owned(), head.to_ascii_lowercase())
}

/// Settings with a plain listener on loopback, and the tokens `look` and `do`.
pub(crate) fn with_tcp(place: &Place) -> ServerSettings {
    let mut settings = ServerSettings::new(place.socket());
    settings.listeners.push(TcpListen {
        address: "127.0.0.1:0".parse().unwrap(),
        tls: None,
    });
    settings.tokens = vec![
        Token::of("monitor", "look", Role::ReadOnly),
        Token::of("robot", "do", Role::Admin),
    ];
    settings
}

/// Asks without the client: status and JSON body.
pub(crate) fn plain(
    socket: &Path,
    method: &str,
    target: &str,
    body: &str,
) -> (u16, serde_json::Value, String) {
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let reply = raw(socket, request.as_bytes());
    let status = reply
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("no status in {reply:?}"));
    let (head, text) = reply.split_once("\r\n\r\n").unwrap();
    (
        status,
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text:?}")),
        head.to_ascii_lowercase(),
    )
}
