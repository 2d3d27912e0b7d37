//! Delivery of alerts: webhooks, Alertmanager, syslog, e-mail.
//!
//! Each destination has a thread and a bounded queue of its own, so that one that does not answer holds up neither detection
//! nor the others. A delivery is tried three times; what the queue has no room for is counted. Addresses come from the
//! configuration only, and redirects are not followed.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Message, SmtpTransport, Transport as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::Alert;
use crate::config::{Config, EmailConfig, EmailTls};
use crate::enrich::sources::secret;

/// Deliveries of one destination that wait.
const MOST_WAITING: usize = 256;
/// Seconds between tries.
const PAUSES: [u64; 2] = [1, 5];

/// Counters of one destination.
#[derive(Debug, Default)]
pub struct Counters {
    /// Delivered.
    pub sent: AtomicU64,
    /// Given up after all tries.
    pub failed: AtomicU64,
    /// Dropped because too many waited.
    pub dropped: AtomicU64,
}

/// The same, for views.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The destination, without secrets.
    pub destination: String,
    /// Delivered.
    pub sent: u64,
    /// Given up after all tries.
    pub failed: u64,
    /// Dropped because too many waited.
    pub dropped: u64,
}

#[derive(Debug)]
struct Destination {
    name: String,
    queue: SyncSender<Alert>,
    counters: Arc<Counters>,
}

/// All destinations.
#[derive(Debug, Default)]
pub struct Notifier {
    destinations: Vec<Destination>,
}

type Deliver = Box<dyn FnMut(&Alert) -> Result<(), String> + Send>;

fn client() -> ureq::Agent {
    ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(10)))
            .max_redirects(0)
            .build(),
    )
}

fn post(client: &ureq::Agent, url: &str, body: &str) -> Result<(), String> {
    let response = client
        .post(url)
        .header("content-type", "application/json")
        .send(body)
        .map_err(|error| error.to_string())?;
    // A redirect is an answer, but not of the address that was configured.
    if response.status().is_success() {
        Ok(())
    } else {
        Err(format!("status {}", response.status()))
    }
}

impl Notifier {
    /// The destinations of a configuration.
    #[must_use]
    pub fn new(config: &Config) -> Notifier {
        let mut notifier = Notifier::default();
        for url in &config.webhooks {
            let (client, to) = (client(), url.clone());
            notifier.add(
                format!("webhook {}", host_of(url)),
                Box::new(move |alert| {
                    let body = serde_json::to_string(alert).map_err(|error| error.to_string())?;
                    post(&client, &to, &body)
                }),
            );
        }
        for url in &config.alertmanagers {
            let (client, to) = (
                client(),
                format!("{}/api/v2/alerts", url.trim_end_matches('/')),
            );
            notifier.add(
                format!("alertmanager {}", host_of(url)),
                Box::new(move |alert| {
                    post(&client, &to, &json!([alertmanager(alert)]).to_string())
                }),
            );
        }
        for address in &config.syslog {
            let to = *address;
            notifier.add(
                format!("syslog {to}"),
                Box::new(move |alert| {
                    let own = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                    UdpSocket::bind(own)
                        .and_then(|socket| socket.send_to(syslog(alert).as_bytes(), to))
                        .map(|_| ())
                        .map_err(|error| error.to_string())
                }),
            );
        }
        if let Some(email) = config.email.clone() {
            notifier.add(
                format!("e-mail by {}", email.server),
                Box::new(move |alert| mail(&email, alert)),
            );
        }
        notifier
    }

    fn add(&mut self, name: String, mut deliver: Deliver) {
        let (queue, alerts): (SyncSender<Alert>, Receiver<Alert>) = sync_channel(MOST_WAITING);
        let counters = Arc::new(Counters::default());
        let (own, label) = (Arc::clone(&counters), name.clone());
        let work = move || {
            while let Ok(alert) = alerts.recv() {
                let mut result = deliver(&alert);
                for pause in PAUSES {
                    let Err(error) = &result else { break };
                    tracing::warn!(
                        destination = label,
                        error,
                        "delivery failed and is tried again"
                    );
                    std::thread::sleep(Duration::from_secs(pause));
                    result = deliver(&alert);
                }
                match result {
                    Ok(()) => own.sent.fetch_add(1, Ordering::Relaxed),
                    Err(error) => {
                        tracing::error!(destination = label, error, "alert was not delivered");
                        own.failed.fetch_add(1, Ordering::Relaxed)
                    }
                };
            }
        };
        if let Err(error) = std::thread::Builder::new()
            .name("notify".to_owned())
            .spawn(work)
        {
            tracing::error!(destination = name, %error, "the thread cannot be started: alerts are not delivered");
        }
        self.destinations.push(Destination {
            name,
            queue,
            counters,
        });
    }

    /// Queues an alert for all destinations.
    pub fn send(&self, alert: &Alert) {
        for destination in &self.destinations {
            if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
                destination.queue.try_send(alert.clone())
            {
                destination.counters.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Counters of all destinations.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        let of = |destination: &Destination| Status {
            destination: destination.name.clone(),
            sent: destination.counters.sent.load(Ordering::Relaxed),
            failed: destination.counters.failed.load(Ordering::Relaxed),
            dropped: destination.counters.dropped.load(Ordering::Relaxed),
        };
        self.destinations.iter().map(of).collect()
    }
}

/// Scheme and host of a URL: paths of webhooks are often secrets.
fn host_of(url: &str) -> String {
    let end = url
        .split_once("://")
        .map_or(url, |(_, rest)| rest)
        .split(['/', '?'])
        .next()
        .unwrap_or("");
    end.rsplit('@').next().unwrap_or("").to_owned()
}

fn key_text(alert: &Alert) -> String {
    let parts: Vec<String> = alert
        .key
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if parts.is_empty() {
        "all traffic".to_owned()
    } else {
        parts.join(", ")
    }
}

/// A sentence of an alert.
fn sentence(alert: &Alert) -> String {
    format!(
        "{}: {} is {} with {:.0} {:?}/s (95 % band {:.0} to {:.0}, limit {:.0})",
        alert.rule,
        key_text(alert),
        if alert.ended.is_none() {
            "above its limit"
        } else {
            "below its limit again"
        },
        alert.rate,
        alert.metric,
        alert.band[0],
        alert.band[1],
        alert.above
    )
}

/// An alert as Alertmanager's API version 2 takes it.
fn alertmanager(alert: &Alert) -> Value {
    let mut labels: BTreeMap<String, String> = alert.key.clone();
    labels.insert("alertname".to_owned(), alert.rule.clone());
    let mut value = json!({
        "labels": labels,
        "annotations": { "summary": sentence(alert), "filter": alert.filter },
        "startsAt": rfc3339(alert.began),
    });
    if let Some(ended) = alert.ended {
        value["endsAt"] = json!(rfc3339(ended));
    }
    value
}

fn rfc3339(time: i64) -> String {
    let second = time.rem_euclid(86_400);
    let day = crate::store::day_of(time);
    format!(
        "{day}T{:02}:{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// A line by RFC 5424, facility daemon; severity warning, or notice at the end.
fn syslog(alert: &Alert) -> String {
    let priority = 3 * 8 + if alert.ended.is_none() { 4 } else { 5 };
    let time = rfc3339(alert.ended.unwrap_or(alert.began));
    let text: String = sentence(alert)
        .chars()
        .filter(|letter| !letter.is_control())
        .take(1000)
        .collect();
    format!("<{priority}>1 {time} - weir-collector - alert - {text}")
}

/// Sends one mail.
fn mail(config: &EmailConfig, alert: &Alert) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let address = |address: &str| {
        address
            .parse()
            .map_err(|error| format!("{address}: {error}"))
    };
    let status = if alert.ended.is_none() {
        "Alert"
    } else {
        "Ended"
    };
    let mut message = Message::builder()
        .from(address(&config.from)?)
        .subject(format!("{status}: {}, {}", alert.rule, key_text(alert)))
        .header(ContentType::TEXT_PLAIN);
    for to in &config.to {
        message = message.to(address(to)?);
    }
    let body = format!(
        "{}\n\nBegan: {}\nFilter: {}\n",
        sentence(alert),
        rfc3339(alert.began),
        alert.filter
    );
    let message = message.body(body).map_err(|error| text(&error))?;
    let mut transport = match config.tls {
        EmailTls::Tls => SmtpTransport::relay(&config.server).map_err(|error| text(&error))?,
        EmailTls::Starttls => {
            SmtpTransport::starttls_relay(&config.server).map_err(|error| text(&error))?
        }
        EmailTls::None => SmtpTransport::builder_dangerous(&config.server),
    };
    if let Some(port) = config.port {
        transport = transport.port(port);
    }
    if let (Some(user), Some(file)) = (&config.user, &config.password_file) {
        transport = transport.credentials(Credentials::new(user.clone(), secret(file)?));
    }
    transport
        .timeout(Some(Duration::from_secs(20)))
        .build()
        .send(&message)
        .map(|_| ())
        .map_err(|error| text(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AlertMetric;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    pub(super) fn alert() -> Alert {
        Alert {
            id: "flood/203.0.113.66/1".to_owned(),
            rule: "flood".to_owned(),
            key: [("DstAddr".to_owned(), "203.0.113.66".to_owned())].into(),
            filter: "DstAddr = 203.0.113.66".to_owned(),
            status: "firing",
            metric: AlertMetric::Packets,
            above: 1000.0,
            rate: 5000.0,
            band: [4000.0, 6000.0],
            peak: 5000.0,
            began: 1_700_000_000,
            ended: None,
            acknowledged: None,
            silenced: false,
            below_since: None,
            notified: false,
        }
    }

    fn config(text: &str) -> Config {
        Config::parse(std::path::Path::new("c"), text).expect("good")
    }

    /// Reads one HTTP request: its first line and its body.
    fn request(stream: &TcpStream) -> (String, String) {
        let mut reader = BufReader::new(stream);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).expect("line");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("line");
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().expect("length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("body");
        (first, String::from_utf8(body).expect("text"))
    }

    #[test]
    fn alertmanager_gets_labels_and_times() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("socket");
        let address = listener.local_addr().expect("address");
        let notifier = Notifier::new(&config(&format!("alertmanagers: ['http://{address}/']\n")));
        notifier.send(&alert());
        let (mut stream, _) = listener.accept().expect("a request");
        let (first, body) = request(&stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .expect("answer");
        assert!(first.starts_with("POST /api/v2/alerts "), "{first}");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(
            body[0]["labels"],
            json!({ "alertname": "flood", "DstAddr": "203.0.113.66" })
        );
        assert_eq!(body[0]["startsAt"], "2023-11-14T22:13:20Z");
        assert!(body[0]["endsAt"].is_null());
    }

    #[test]
    fn a_redirect_of_a_webhook_is_not_followed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("socket");
        let inner = TcpListener::bind("127.0.0.1:0").expect("socket");
        inner.set_nonblocking(true).expect("set");
        let (address, secret) = (
            listener.local_addr().expect("address"),
            inner.local_addr().expect("address"),
        );
        let client = client();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a request");
            request(&stream);
            let head = format!(
                "HTTP/1.1 307 X\r\nlocation: http://{secret}/admin\r\ncontent-length: 0\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).expect("answer");
        });
        let result = post(&client, &format!("http://{address}/hook"), "{}");
        served.join().expect("served");
        assert!(result.is_err());
        assert!(
            inner.accept().is_err(),
            "the address behind the redirect was called"
        );
    }

    #[test]
    fn syslog_gets_a_line_by_rfc_5424() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("socket");
        let address = socket.local_addr().expect("address");
        let notifier = Notifier::new(&config(&format!("syslog: ['{address}']\n")));
        notifier.send(&alert());
        let mut buffer = [0; 2000];
        let length = socket.recv(&mut buffer).expect("a line");
        let line = std::str::from_utf8(&buffer[..length]).expect("text");
        assert!(
            line.starts_with(
                "<28>1 2023-11-14T22:13:20Z - weir-collector - alert - flood: DstAddr 203.0.113.66"
            ),
            "{line}"
        );
    }

    #[test]
    fn mail_is_sent_by_smtp() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("socket");
        let port = listener.local_addr().expect("address").port();
        let notifier = Notifier::new(&config(&format!(
            "email: {{server: 127.0.0.1, port: {port}, tls: none, from: 'weir@example.net', to: ['noc@example.net']}}\n"
        )));
        notifier.send(&alert());
        let (stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("stream"));
        let mut stream = stream;
        stream.write_all(b"220 test\r\n").expect("greeting");
        let (mut recipient, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).expect("line") == 0 {
                break;
            }
            let answer: &[u8] = if line.starts_with("EHLO") {
                b"250 test\r\n"
            } else if line.starts_with("DATA") {
                stream.write_all(b"354 go on\r\n").expect("answer");
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).expect("line");
                    if line == ".\r\n" {
                        break;
                    }
                    data.push_str(&line);
                }
                stream.write_all(b"250 taken\r\n").expect("answer");
                break;
            } else {
                if line.starts_with("RCPT") {
                    recipient.clone_from(&line);
                }
                b"250 ok\r\n"
            };
            stream.write_all(answer).expect("answer");
        }
        assert!(recipient.contains("noc@example.net"), "{recipient}");
        assert!(
            data.contains("Subject: Alert: flood, DstAddr 203.0.113.66"),
            "{data}"
        );
        assert!(
            data.contains("Filter: DstAddr =3D 203.0.113.66")
                || data.contains("Filter: DstAddr = 203.0.113.66"),
            "{data}"
        );
    }

    #[test]
    fn secrets_in_addresses_are_not_shown() {
        assert_eq!(
            host_of("https://user:pass@hooks.example/T0/secret?x=1"),
            "hooks.example"
        );
    }
}
