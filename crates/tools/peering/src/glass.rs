//! The looking glass: sessions, routes and reasons over HTTP, for everybody to read.
//!
//! Nothing that a client sends reaches BIRD: a prefix is parsed and written anew, an AS number is a number, and the
//! three commands of BIRD are fixed. Answers are bounded, requests of an address are rated, and no more than
//! A bounded number of requests is worked on at a time. Texts of BIRD and of YAML are escaped in the page.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Json, Response};
use axum::routing::get;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::birdc::{Control, TableRoute};
use crate::plan::{Summary, rejection};
use crate::policy::functions;

/// Requests that are worked on at a time.
const AT_ONCE: usize = 4;
/// Requests of one address: so many at once, and then one each [`PERIOD`].
const BURST: f64 = 20.0;
/// The time after which an address may send another one.
const PERIOD: Duration = Duration::from_secs(1);
/// Addresses that are remembered; the oldest are forgotten.
const MOST_CLIENTS: usize = 4_096;
/// Routes of an answer.
const MOST_ROUTES: usize = 200;

/// What the looking glass reads.
pub struct Glass {
    socket: PathBuf,
    summary: Summary,
    clients: Mutex<HashMap<IpAddr, (f64, Instant)>>,
    slots: Semaphore,
}

/// A session as everybody may see it.
#[derive(Debug, Serialize)]
struct Neighbor {
    name: String,
    asn: u32,
    is_up: bool,
    state: String,
    since: String,
    accepted: u64,
    rejected: u64,
    announced: u64,
}

/// A route as everybody may see it.
#[derive(Debug, Serialize)]
struct Shown {
    prefix: IpNet,
    neighbor: String,
    path: Vec<u32>,
    accepted: bool,
    reason: Option<&'static str>,
    local_pref: Option<u32>,
    communities: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Wanted {
    prefix: Option<String>,
    asn: Option<String>,
    rejected: Option<String>,
}

/// What a query asks for, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filter {
    prefix: Option<IpNet>,
    asn: Option<u32>,
    rejected: bool,
}

impl Glass {
    /// A looking glass over a BIRD and the configuration that was applied to it.
    #[must_use]
    pub fn new(socket: PathBuf, summary: Summary) -> Glass {
        Glass {
            socket,
            summary,
            clients: Mutex::default(),
            slots: Semaphore::new(AT_ONCE),
        }
    }

    /// Whether an address may send a request now.
    fn admits(&self, client: IpAddr, now: Instant) -> bool {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        // Addresses of one network of IPv6 are one client.
        let client = match client {
            IpAddr::V6(it) => {
                let bits = u128::from(it) >> 64 << 64;
                IpAddr::V6(bits.into())
            }
            v4 => v4,
        };
        if clients.len() >= MOST_CLIENTS && !clients.contains_key(&client) {
            let oldest = clients
                .iter()
                .min_by_key(|(_, it)| it.1)
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                clients.remove(&oldest);
            }
        }
        let (left, since) = clients.entry(client).or_insert((BURST, now));
        let gained = now.saturating_duration_since(*since).as_secs_f64() / PERIOD.as_secs_f64();
        *left = (*left + gained).min(BURST);
        *since = now;
        if *left < 1.0 {
            return false;
        }
        *left -= 1.0;
        true
    }

    fn neighbors(&self) -> Result<Vec<Neighbor>, crate::Error> {
        let mut control = Control::open(&self.socket)?;
        let known = control.sessions()?.into_iter().filter_map(|it| {
            let asn = self.summary.sessions.get(&it.name)?.asn;
            Some(Neighbor {
                name: it.name,
                asn,
                is_up: it.is_up,
                // Errors of sockets are nobody's business.
                state: if it.is_up {
                    "up".to_owned()
                } else {
                    "down".to_owned()
                },
                since: it.since,
                accepted: it.imported,
                rejected: it.filtered,
                announced: it.exported,
            })
        });
        Ok(known.collect())
    }

    fn routes(&self, wanted: Filter) -> Result<Vec<Shown>, crate::Error> {
        let mut found = Vec::new();
        let mut control = Control::open(&self.socket)?;
        control.each_route(|route| {
            let Some(session) = self.summary.sessions.get(&route.protocol) else {
                return;
            };
            let is_wanted = found.len() < MOST_ROUTES
                && wanted.asn.is_none_or(|it| it == session.asn)
                && (route.is_filtered || !wanted.rejected)
                && wanted.prefix.is_none_or(|it| route.prefix.contains(&it));
            if is_wanted {
                found.push(self.shown(&route));
            }
        })?;
        Ok(found)
    }

    fn shown(&self, route: &TableRoute) -> Shown {
        let standard = route.communities.iter().map(|it| match *it {
            (65535, 0) => "65535:0 (GRACEFUL_SHUTDOWN)".to_owned(),
            (65535, 666) => "65535:666 (BLACKHOLE)".to_owned(),
            (65535, 65281) => "65535:65281 (NO_EXPORT)".to_owned(),
            (high, low) => format!("{high}:{low}"),
        });
        let large = route.large.iter().map(|it| {
            let text = format!("{}:{}:{}", it.0, it.1, it.2);
            match meaning(self.summary.asn, *it) {
                Some(meaning) => format!("{text} ({meaning})"),
                None => text,
            }
        });
        Shown {
            prefix: route.prefix,
            neighbor: route.protocol.clone(),
            path: route.path.clone(),
            accepted: !route.is_filtered,
            reason: rejection(self.summary.asn, route).map(|it| it.name()),
            local_pref: route.local_pref,
            communities: standard.chain(large).collect(),
        }
    }
}

/// What an own large community means.
#[must_use]
pub fn meaning(asn: u32, (global, function, value): (u32, u32, u32)) -> Option<String> {
    if global != asn {
        return None;
    }
    Some(match (function, value) {
        (functions::RELATION, 1) => "from a peer".to_owned(),
        (functions::RELATION, 2) => "from a customer".to_owned(),
        (functions::RELATION, 3) => "from a transit provider".to_owned(),
        (functions::RELATION, 4) => "own".to_owned(),
        (functions::PREFERENCE, value) => format!("local preference {value}, please"),
        (2..=4, 0) => format!("prepend {} times to all", function - 1),
        (2..=4, value) => format!("prepend {} times to AS{value}", function - 1),
        (functions::VALIDATION, 1) => "in the AS-SET".to_owned(),
        (functions::VALIDATION, 2) => "origin valid".to_owned(),
        (functions::VALIDATION, 3) => "origin not found".to_owned(),
        (functions::WITHHOLD, 0) => "announce to nobody".to_owned(),
        (functions::WITHHOLD, value) => format!("do not announce to AS{value}"),
        (functions::REASON, value) => crate::policy::Reason::of(value)?.name().to_owned(),
        (functions::EXCHANGE, value) => format!("exchange {value} of PeeringDB"),
        _ => return None,
    })
}

impl Wanted {
    /// Understands a query; everything that is not exactly a prefix or a number is refused.
    fn filter(&self) -> Result<Filter, &'static str> {
        let text = |it: &Option<String>| {
            it.clone()
                .map(|it| it.trim().to_owned())
                .filter(|it| !it.is_empty())
        };
        let prefix = text(&self.prefix)
            .map(|it| {
                it.parse::<IpNet>()
                    .or_else(|_| it.parse::<IpAddr>().map(IpNet::from))
            })
            .transpose()
            .map_err(|_| "prefix: write a prefix or an address")?;
        let asn = text(&self.asn)
            .map(|it| it.trim_start_matches("AS").parse::<u32>())
            .transpose()
            .map_err(|_| "asn: write an AS number")?;
        if prefix.is_none() && asn.is_none() {
            return Err("name a prefix or an AS number");
        }
        Ok(Filter {
            prefix: prefix.map(|it| it.trunc()),
            asn,
            rejected: self.rejected.is_some(),
        })
    }
}

/// Text for a page.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            it if it.is_control() => safe.push(' '),
            it => safe.push(it),
        }
    }
    safe
}

type Shared = Arc<Glass>;

async fn work<T: Send + 'static>(
    glass: Shared,
    client: SocketAddr,
    job: impl FnOnce(&Glass) -> Result<T, crate::Error> + Send + 'static,
) -> Result<T, Response> {
    let refuse = |status: StatusCode, text: &'static str| (status, text).into_response();
    if !glass.admits(client.ip(), Instant::now()) {
        return Err(refuse(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests: one each second\n",
        ));
    }
    let Ok(_slot) = glass.slots.try_acquire() else {
        return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "busy: try again\n"));
    };
    let shared = Arc::clone(&glass);
    match tokio::task::spawn_blocking(move || job(&shared)).await {
        Ok(Ok(found)) => Ok(found),
        // What BIRD says is not for everybody.
        _ => Err(refuse(
            StatusCode::BAD_GATEWAY,
            "the BGP daemon does not answer\n",
        )),
    }
}

async fn neighbors(
    State(glass): State<Shared>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
) -> Response {
    match work(glass, client, Glass::neighbors).await {
        Ok(found) => Json(found).into_response(),
        Err(refused) => refused,
    }
}

async fn routes(
    State(glass): State<Shared>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let filter = match wanted.filter() {
        Ok(filter) => filter,
        Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
    };
    match work(glass, client, move |it| it.routes(filter)).await {
        Ok(found) => Json(found).into_response(),
        Err(refused) => refused,
    }
}

async fn page(
    State(glass): State<Shared>,
    ConnectInfo(client): ConnectInfo<SocketAddr>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let asn = glass.summary.asn;
    let value = |it: &Option<String>| escaped(it.as_deref().unwrap_or(""));
    let mut text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>AS{asn} looking glass</title>\
         <style>body{{font-family:sans-serif;margin:2em}}td,th{{padding:.2em .6em;text-align:left}}</style></head><body>\
         <h1>AS{asn} looking glass</h1><form><label>Prefix or address <input name=\"prefix\" value=\"{}\"></label> \
         <label>AS number <input name=\"asn\" value=\"{}\"></label> \
         <label><input type=\"checkbox\" name=\"rejected\"> rejected only</label> <button>Show</button></form>",
        value(&wanted.prefix),
        value(&wanted.asn)
    );
    let is_query = wanted.prefix.is_some() || wanted.asn.is_some();
    let filter = wanted.filter();
    if let (true, Err(why)) = (is_query, &filter) {
        let _ = write!(text, "<p>{why}</p>");
    }
    let job = move |it: &Glass| -> Result<(Vec<Neighbor>, Vec<Shown>), crate::Error> {
        let routes = match filter {
            Ok(filter) => it.routes(filter)?,
            Err(_) => Vec::new(),
        };
        Ok((it.neighbors()?, routes))
    };
    let (all, routes) = match work(glass, client, job).await {
        Ok(found) => found,
        Err(refused) => return refused,
    };
    if is_query {
        text.push_str("<table><tr><th>Prefix<th>Neighbour<th>AS path<th>Verdict<th>Communities");
        for it in &routes {
            let path: Vec<String> = it.path.iter().map(u32::to_string).collect();
            let verdict = match (it.accepted, it.reason) {
                (true, _) => format!("accepted, preference {}", it.local_pref.unwrap_or(100)),
                (false, reason) => format!("rejected: {}", reason.unwrap_or("by a filter")),
            };
            let _ = write!(
                text,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{}",
                it.prefix,
                escaped(&it.neighbor),
                path.join(" "),
                escaped(&verdict),
                escaped(&it.communities.join(", "))
            );
        }
        text.push_str("</table>");
        if routes.len() >= MOST_ROUTES {
            let _ = write!(text, "<p>The first {MOST_ROUTES} routes.</p>");
        }
    }
    text.push_str(
        "<table><tr><th>Neighbour<th>AS<th>State<th>Since<th>Accepted<th>Rejected<th>Announced",
    );
    for it in &all {
        let _ = write!(
            text,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            escaped(&it.name),
            it.asn,
            it.state,
            escaped(&it.since),
            it.accepted,
            it.rejected,
            it.announced
        );
    }
    text.push_str("</table></body></html>\n");
    let mut reply = Html(text).into_response();
    let policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'";
    reply.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(policy),
    );
    reply
}

/// Serves until the listener fails.
///
/// # Errors
/// When the socket cannot be used.
pub fn serve(glass: Glass, listener: std::net::TcpListener) -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(page))
        .route("/api/neighbors", get(neighbors))
        .route("/api/routes", get(routes))
        .with_state(Arc::new(glass));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async move {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        axum::serve(
            listener,
            app.into_make_service_with_connect_info::<SocketAddr>(),
        )
        .await
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(prefix: &str, asn: &str) -> Result<Filter, &'static str> {
        let of = Wanted {
            prefix: Some(prefix.to_owned()),
            asn: Some(asn.to_owned()),
            rejected: None,
        };
        of.filter()
    }

    #[test]
    fn only_prefixes_and_numbers_are_taken() {
        assert!(wanted("192.0.2.7", "").is_ok() && wanted("", "AS64500").is_ok());
        for (prefix, asn) in [
            ("", ""),
            ("192.0.2.0/24 all; configure", ""),
            ("", "64500\nshutdown"),
            ("<script>", ""),
            ("", "-1"),
        ] {
            assert!(wanted(prefix, asn).is_err(), "{prefix:?} {asn:?}");
        }
        assert_eq!(escaped("<b a=\"'&\n"), "&lt;b a=&quot;&#39;&amp; ");
    }

    #[test]
    fn requests_of_an_address_are_rated_and_memory_is_bounded() {
        let glass = Glass::new(PathBuf::new(), Summary::default());
        let start = Instant::now();
        let client: IpAddr = "2001:db8::1".parse().unwrap();
        let other: IpAddr = "2001:db8::2".parse().unwrap();
        let admitted = (0..100).filter(|_| glass.admits(client, start)).count();
        assert_eq!(admitted, BURST as usize);
        // The same network, and then a second later.
        assert!(!glass.admits(other, start));
        assert!(glass.admits(other, start + PERIOD));
        for number in 0..10_000u32 {
            assert!(glass.admits(IpAddr::V4(number.into()), start + PERIOD));
        }
        assert!(glass.clients.lock().unwrap().len() <= MOST_CLIENTS);
    }

    #[test]
    fn own_communities_are_explained() {
        assert_eq!(
            meaning(64500, (64500, 7, 14)).as_deref(),
            Some("rpki-invalid")
        );
        assert_eq!(
            meaning(64500, (64500, 2, 0)).as_deref(),
            Some("prepend 1 times to all")
        );
        assert_eq!(meaning(64500, (64501, 0, 1)), None);
    }
}
