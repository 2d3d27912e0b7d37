//! `weir route`: sets and deletes routes of a running router over the API.
//!
//! A file is read whole before anything is sent, so that a line that is not understood changes nothing. Then
//! routes go in batches, as the API bounds a request.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::str::SplitWhitespace;

use weir_api::{ApiPath, ApiRoute, ApiRouteKey, Discard, RouteChanges, RouteResync, RoutesChanged};
use weir_config::IpNet;

use super::config_file;
use crate::cli::{HowDiscarded, RouteAddArgs, RouteCommand, RouteKeyArgs, RouteLoadArgs, Where};
use crate::failure::Failure;
use crate::render::units;

/// Routes in one request: bounded, so that each is answered within seconds.
const BATCH: usize = 20_000;

/// Does it.
pub(crate) fn execute(
    what: &RouteCommand,
    at: &Where,
    json: bool,
    to: &mut dyn Write,
) -> Result<(), Failure> {
    let changed = match what {
        RouteCommand::Add(args) => at.client()?.routes_change(&RouteChanges {
            set: vec![added(args)],
            ..RouteChanges::default()
        })?,
        RouteCommand::Delete(args) => at.client()?.routes_change(&RouteChanges {
            delete: vec![key(&args.key)],
            ..RouteChanges::default()
        })?,
        RouteCommand::Flush => at.client()?.routes_change(&RouteChanges {
            resync: Some(RouteResync::All),
            ..RouteChanges::default()
        })?,
        RouteCommand::Load(args) => load(args, at)?,
    };
    if json {
        let text = serde_json::to_string_pretty(&changed).map_err(Failure::said)?;
        writeln!(to, "{text}")?;
    } else {
        writeln!(to, "{}", summary(&changed))?;
    }
    for refused in &changed.errors {
        let message = crate::render::harmless(&refused.message);
        eprintln!("{}: {message}", refused.prefix);
    }
    match (what, changed.refused) {
        (RouteCommand::Delete(args), 0) if changed.deleted == 0 => Err(Failure::said(
            format_args!("no route to {} was set here", args.key.prefix),
        )),
        (_, 0) => Ok(()),
        (_, refused) => Err(Failure::said(format_args!(
            "{} refused",
            units::count(refused, "route was", "routes were")
        ))),
    }
}

fn summary(changed: &RoutesChanged) -> String {
    format!(
        "{} set, {} deleted",
        units::count(changed.set, "route", "routes"),
        changed.deleted + changed.stale
    )
}

fn key(args: &RouteKeyArgs) -> ApiRouteKey {
    ApiRouteKey {
        prefix: args.prefix,
        vrf: args.vrf.clone(),
        metric: args.metric,
    }
}

fn added(args: &RouteAddArgs) -> ApiRoute {
    let path = |&next_hop| ApiPath {
        next_hop,
        interface: args.interface.clone(),
        lookup: args.lookup.clone(),
        weight: 1,
        labels: args.labels.clone(),
    };
    ApiRoute {
        prefix: args.key.prefix,
        vrf: args.key.vrf.clone(),
        metric: args.key.metric,
        paths: args.via.iter().map(path).collect(),
        discard: args.discard.map(|how| match how {
            HowDiscarded::Blackhole => Discard::Blackhole,
            HowDiscarded::Unreachable => Discard::Unreachable,
            HowDiscarded::Prohibit => Discard::Prohibit,
        }),
    }
}

fn load(args: &RouteLoadArgs, at: &Where) -> Result<RoutesChanged, Failure> {
    let routes = read(&args.file)?;
    let client = at.client()?;
    let mut changed = RoutesChanged::default();
    let batches = routes.chunks(BATCH);
    let last = batches.len().saturating_sub(1);
    for (number, batch) in batches.enumerate() {
        let resync = match (args.replace, number == 0, number == last) {
            (true, true, true) => Some(RouteResync::All),
            (true, true, false) => Some(RouteResync::Begin),
            (true, false, true) => Some(RouteResync::End),
            _ => None,
        };
        changed.add(client.routes_change(&RouteChanges {
            set: batch.to_vec(),
            resync,
            ..RouteChanges::default()
        })?);
    }
    if routes.is_empty() && args.replace {
        return Err(Failure::said(format_args!(
            "{} has no routes; `weir route flush` deletes all",
            config_file::name(&args.file)
        )));
    }
    Ok(changed)
}

/// The routes in a file.
fn read(file: &Path) -> Result<Vec<ApiRoute>, Failure> {
    let name = config_file::name(file);
    let opened: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = std::fs::File::open(file)
            .map_err(|error| Failure::said(format_args!("cannot read {name}: {error}")))?;
        Box::new(BufReader::new(opened))
    };
    let mut routes = Vec::new();
    for (number, line) in opened.lines().enumerate() {
        let number = number + 1;
        let line =
            line.map_err(|error| Failure::said(format_args!("cannot read {name}: {error}")))?;
        let text = line.split('#').next().unwrap_or_default();
        let route = parse(text)
            .map_err(|why| Failure::said(format_args!("{name}, line {number}: {why}")))?;
        routes.extend(route);
    }
    Ok(routes)
}

/// A line as `ip route` writes it; nothing for a blank one.
fn parse(line: &str) -> Result<Option<ApiRoute>, String> {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else {
        return Ok(None);
    };
    let discard = match first {
        "blackhole" => Some(Discard::Blackhole),
        "unreachable" => Some(Discard::Unreachable),
        "prohibit" => Some(Discard::Prohibit),
        _ => None,
    };
    let prefix = match discard {
        Some(_) => value(&mut words, first)?,
        None => first,
    };
    let mut route = ApiRoute {
        prefix: self::prefix(prefix)?,
        vrf: None,
        metric: 0,
        paths: Vec::new(),
        discard,
    };
    while let Some(word) = words.next() {
        let value = value(&mut words, word)?;
        let bad = |what| format!("`{value}` is not {what}");
        match (word, route.paths.last_mut()) {
            ("via", _) => route.paths.push(ApiPath {
                next_hop: value.parse().map_err(|_| bad("an address"))?,
                interface: None,
                lookup: None,
                weight: 1,
                labels: Vec::new(),
            }),
            ("dev", Some(path)) => path.interface = Some(value.to_owned()),
            ("lookup", Some(path)) => path.lookup = Some(value.to_owned()),
            ("weight", Some(path)) => {
                path.weight = value.parse().map_err(|_| bad("a weight, 1 to 255"))?;
            }
            ("labels", Some(path)) => {
                let labels: Result<Vec<u32>, _> = value.split(',').map(str::parse).collect();
                path.labels = labels.map_err(|_| bad("a list of labels: 100,200"))?;
            }
            ("metric", _) => route.metric = value.parse().map_err(|_| bad("a metric"))?,
            ("vrf", _) => route.vrf = Some(value.to_owned()),
            ("dev" | "lookup" | "weight" | "labels", None) => {
                return Err(format!(
                    "`{word}` belongs to a next hop: write `via` before it"
                ));
            }
            _ => {
                return Err(format!(
                    "`{word}` is not understood; known: via, dev, lookup, weight, labels, metric, vrf"
                ));
            }
        }
    }
    if route.paths.is_empty() && discard.is_none() {
        return Err("no `via`".to_owned());
    }
    Ok(Some(route))
}

fn value<'l>(words: &mut SplitWhitespace<'l>, of: &str) -> Result<&'l str, String> {
    words.next().ok_or_else(|| format!("`{of}` has no value"))
}

/// A prefix; a host's address alone is one, and `default` is all IPv4.
fn prefix(text: &str) -> Result<IpNet, String> {
    if text == "default" {
        return Ok(IpNet::V4(weir_config::Ipv4Net::default()));
    }
    text.parse()
        .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
        .map_err(|_| format!("`{text}` is not a prefix"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_ip_route_writes_them() {
        let route = |line| parse(line).unwrap().unwrap();
        let plain = route("203.0.113.0/24 via 192.0.2.1 dev wan metric 20 vrf red");
        assert_eq!(plain.prefix.to_string(), "203.0.113.0/24");
        assert_eq!((plain.metric, plain.vrf.as_deref()), (20, Some("red")));
        let path = plain.paths.first().unwrap();
        assert_eq!(path.next_hop.to_string(), "192.0.2.1");
        assert_eq!(path.interface.as_deref(), Some("wan"));
        let two = route("2001:db8::/32 via fe80::1 dev a weight 2 via fe80::2 dev b labels 16,17");
        let weights: Vec<_> = two.paths.iter().map(|path| path.weight).collect();
        assert_eq!(weights, [2, 1]);
        assert_eq!(two.paths.last().unwrap().labels, [16, 17]);
        assert_eq!(
            route("blackhole 10.0.0.1").discard,
            Some(Discard::Blackhole)
        );
        assert_eq!(
            route("default via 192.0.2.1").prefix.to_string(),
            "0.0.0.0/0"
        );
        assert_eq!(parse("   "), Ok(None));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, why) in [
            ("10.0.0.0/8", "no `via`"),
            ("10.0.0.0/33 via 192.0.2.1", "`10.0.0.0/33` is not a prefix"),
            ("10.0.0.0/8 via nobody", "`nobody` is not an address"),
            ("10.0.0.0/8 via", "`via` has no value"),
            (
                "10.0.0.0/8 dev wan",
                "`dev` belongs to a next hop: write `via` before it",
            ),
            (
                "10.0.0.0/8 via 192.0.2.1 weight 300",
                "`300` is not a weight, 1 to 255",
            ),
            ("blackhole", "`blackhole` has no value"),
        ] {
            assert_eq!(parse(line).unwrap_err(), why, "{line}");
        }
    }
}
