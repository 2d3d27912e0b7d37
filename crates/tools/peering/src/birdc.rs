//! BIRD's control socket: commands, sessions and routes of a running daemon.
//!
//! A reply is a list of lines, each with a four-digit code. Codes from 8000 on are errors. Text of BIRD is input
//! from outside: what cannot be read is left out or an error, and never a panic.

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use serde::Serialize;

use crate::Error;

/// How long BIRD may take for one line of a reply.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the control socket.
pub struct Control {
    reader: BufReader<UnixStream>,
}

impl Control {
    /// Connects.
    ///
    /// # Errors
    /// When BIRD does not listen there.
    pub fn open(socket: &Path) -> Result<Control, Error> {
        let failed = |error: std::io::Error| {
            Error::Bird(format!("connect to {}: {error}", socket.display()))
        };
        let stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut control = Control {
            reader: BufReader::new(stream),
        };
        control.reply(|_| ())?;
        Ok(control)
    }

    /// Sends a command; the reply's text without codes.
    ///
    /// # Errors
    /// When BIRD refuses the command, or the connection breaks.
    pub fn ask(&mut self, command: &str) -> Result<String, Error> {
        let mut text = String::new();
        self.each_line(command, |line| text.push_str(line))?;
        Ok(text)
    }

    /// Sends a command and hands out the lines of the reply, each with its line end.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn each_line(&mut self, command: &str, line: impl FnMut(&str)) -> Result<(), Error> {
        self.reader
            .get_mut()
            .write_all(format!("{command}\n").as_bytes())
            .map_err(|error| Error::Bird(error.to_string()))?;
        self.reply(line)
    }

    /// Reads one reply: lines with a code and `-`, up to one with a code and a blank.
    fn reply(&mut self, mut each: impl FnMut(&str)) -> Result<(), Error> {
        let mut bytes = Vec::new();
        let mut failed = None;
        loop {
            bytes.clear();
            let read = self
                .reader
                .read_until(b'\n', &mut bytes)
                .map_err(|error| Error::Bird(error.to_string()))?;
            if read == 0 {
                return Err(Error::Bird("it closed the control socket".to_owned()));
            }
            let line = String::from_utf8_lossy(&bytes);
            let code = line
                .get(..4)
                .filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|code| code.parse::<u32>().ok());
            let is_last = code.is_some() && line.as_bytes().get(4) == Some(&b' ');
            let body = if code.is_some() {
                line.get(5..).unwrap_or("")
            } else {
                line.get(1..).unwrap_or("")
            };
            match code {
                // BIRD 3 cannot print an attribute of a thousand bytes and goes on with the next.
                _ if body.contains("<line overflow>") => each(body),
                Some(code) if code >= 8000 => failed = Some(body.trim().to_owned()),
                _ => each(body),
            }
            if is_last {
                return failed.map_or(Ok(()), |why| Err(Error::Bird(why)));
            }
        }
    }

    /// The sessions of BGP.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn sessions(&mut self) -> Result<Vec<Session>, Error> {
        Ok(sessions(&self.ask("show protocols all")?))
    }

    /// The number of routes of a table.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn count(&mut self, table: &str) -> Result<usize, Error> {
        // `3 of 3 routes for 3 networks in table roa_4`
        let text = self.ask(&format!("show route table {table} count"))?;
        let number = text
            .split_whitespace()
            .next()
            .and_then(|it| it.parse().ok());
        number.ok_or_else(|| Error::Bird(format!("a count without a number: {}", text.trim())))
    }

    /// Routes of one table behind a filter, one at a time.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn each_route_of(
        &mut self,
        table: &str,
        filter: &str,
        mut each: impl FnMut(TableRoute),
    ) -> Result<(), Error> {
        let mut reader = RouteReader::new(false);
        self.each_line(
            &format!("show route table {table} filter {filter} all"),
            |line| {
                if let Some(route) = reader.line(line) {
                    each(route);
                }
            },
        )?;
        reader.end().into_iter().for_each(&mut each);
        Ok(())
    }

    /// Routes with attributes, those that filters rejected included, one at a time.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub fn each_route(&mut self, mut each: impl FnMut(TableRoute)) -> Result<(), Error> {
        for (command, is_filtered) in [("show route all", false), ("show route filtered all", true)]
        {
            let mut reader = RouteReader::new(is_filtered);
            self.each_line(command, |line| {
                if let Some(route) = reader.line(line) {
                    each(route);
                }
            })?;
            reader.end().into_iter().for_each(&mut each);
        }
        Ok(())
    }
}

/// A session of BGP as BIRD reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Session {
    /// The protocol's name.
    pub name: String,
    /// Whether it is established.
    pub is_up: bool,
    /// Whether it is shut: by the configuration, by a command, or by a limit.
    pub is_disabled: bool,
    /// BIRD's words on its state: `Established`, `Active`, an error.
    pub state: String,
    /// When it entered the state, in BIRD's form.
    pub since: String,
    /// The neighbour's address.
    pub address: Option<IpAddr>,
    /// The neighbour's AS number.
    pub asn: Option<u32>,
    /// Routes accepted.
    pub imported: u64,
    /// Routes rejected and kept.
    pub filtered: u64,
    /// Routes announced.
    pub exported: u64,
    /// The configured limit of received routes.
    pub limit: Option<u64>,
    /// The last error.
    pub last_error: Option<String>,
}

fn sessions(text: &str) -> Vec<Session> {
    let mut all: Vec<Session> = Vec::new();
    let mut is_bgp = false;
    for line in text.lines() {
        if !line.starts_with([' ', '\t']) && !line.is_empty() {
            let words: Vec<&str> = line.split_whitespace().collect();
            is_bgp = words.get(1) == Some(&"BGP");
            if let (true, [name, _, _, state, since, info @ ..]) = (is_bgp, words.as_slice()) {
                all.push(Session {
                    name: (*name).to_owned(),
                    is_up: *state == "up",
                    is_disabled: *state == "down",
                    state: if info.is_empty() {
                        (*state).to_owned()
                    } else {
                        info.join(" ")
                    },
                    since: (*since).to_owned(),
                    ..Session::default()
                });
            }
            continue;
        }
        let Some(session) = all.last_mut().filter(|_| is_bgp) else {
            continue;
        };
        let Some((key, value)) = line.trim().split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key {
            "Neighbor address" => {
                let address = value.split(['%', ' ']).next().unwrap_or("");
                session.address = address.parse().ok();
            }
            "Neighbor AS" => session.asn = value.parse().ok(),
            "Last error" => session.last_error = Some(value.to_owned()),
            "Receive limit" => {
                let number = value.split_whitespace().next().unwrap_or("");
                session.limit = number.parse().ok();
            }
            "Routes" => {
                for part in value.split(',') {
                    let mut words = part.split_whitespace();
                    let number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
                    match words.next() {
                        Some("imported") => session.imported += number,
                        Some("filtered") => session.filtered += number,
                        Some("exported") => session.exported += number,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    all
}

/// A route of BIRD's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRoute {
    /// The prefix.
    pub prefix: IpNet,
    /// The protocol that it came from.
    pub protocol: String,
    /// The AS path, the neighbour first. Members of AS_SETs are part of it.
    pub path: Vec<u32>,
    /// Whether the path has an AS_SET.
    pub has_as_set: bool,
    /// The next hop.
    pub next_hop: Option<IpAddr>,
    /// Standard communities.
    pub communities: Vec<(u16, u16)>,
    /// Large communities.
    pub large: Vec<(u32, u32, u32)>,
    /// The local preference.
    pub local_pref: Option<u32>,
    /// Whether a filter rejected it.
    pub is_filtered: bool,
    /// Whether BIRD could not print all of its attributes.
    pub is_cut: bool,
}

/// Puts routes together from the lines of `show route all`.
struct RouteReader {
    is_filtered: bool,
    /// The prefix stands only before the first of its routes.
    prefix: Option<IpNet>,
    route: Option<TableRoute>,
    /// The attribute that a further line continues.
    key: String,
}

impl RouteReader {
    fn new(is_filtered: bool) -> RouteReader {
        RouteReader {
            is_filtered,
            prefix: None,
            route: None,
            key: String::new(),
        }
    }

    /// Takes a line; the route that it completes.
    fn line(&mut self, line: &str) -> Option<TableRoute> {
        if let Some(attribute) = line.strip_prefix('\t') {
            self.attribute(attribute);
            return None;
        }
        let done = self.route.take();
        let first = line.split_whitespace().next().unwrap_or("");
        if !line.starts_with(' ') {
            self.prefix = first.parse().ok();
        }
        // `[AS64500_1 12:00:00.000 from …]`; the origin's bracket has no blank.
        let protocol = line
            .split_once('[')
            .and_then(|(_, rest)| rest.split([' ', ']']).next());
        if let (Some(prefix), Some(protocol)) = (self.prefix, protocol) {
            self.route = Some(TableRoute {
                prefix,
                protocol: protocol.to_owned(),
                path: Vec::new(),
                has_as_set: false,
                next_hop: None,
                communities: Vec::new(),
                large: Vec::new(),
                local_pref: None,
                is_filtered: self.is_filtered,
                is_cut: false,
            });
            self.key.clear();
        }
        done
    }

    fn attribute(&mut self, text: &str) {
        let Some(route) = &mut self.route else {
            return;
        };
        if text.contains("<line overflow>") {
            route.is_cut = true;
            return;
        }
        // A further line of a list begins with a second tab.
        let (is_first, value) = match text.strip_prefix('\t') {
            Some(more) => (false, more),
            None => {
                let Some((key, value)) = text.split_once(':') else {
                    return;
                };
                key.trim().clone_into(&mut self.key);
                (true, value)
            }
        };
        // BIRD 2 writes `BGP.as_path`, BIRD 3 `bgp_path`.
        let key = self.key.as_str();
        let key = key
            .strip_prefix("BGP.")
            .or_else(|| key.strip_prefix("bgp_"));
        match key.unwrap_or("") {
            "next_hop" if is_first => {
                // An IPv6 route may have a link-local address besides.
                let first = value.split_whitespace().next().unwrap_or("");
                route.next_hop = first.parse().ok();
            }
            "as_path" | "path" => {
                route.has_as_set |= value.contains('{');
                let numbers = value.split(|c: char| !c.is_ascii_digit());
                route
                    .path
                    .extend(numbers.filter_map(|it| it.parse::<u32>().ok()));
            }
            "local_pref" => route.local_pref = value.trim().parse().ok(),
            "community" => {
                route
                    .communities
                    .extend(tuples(value).filter_map(|it| match it.as_slice() {
                        [high, low] => {
                            Some((u16::try_from(*high).ok()?, u16::try_from(*low).ok()?))
                        }
                        _ => None,
                    }));
            }
            "large_community" => route.large.extend(large_communities(value)),
            _ => {}
        }
    }

    fn end(self) -> Option<TableRoute> {
        self.route
    }
}

/// The numbers of `(1,2) (3, 4)`.
fn tuples(list: &str) -> impl Iterator<Item = Vec<u32>> + '_ {
    list.split(')').filter_map(|part| {
        part.trim()
            .strip_prefix('(')?
            .split(',')
            .map(|number| number.trim().parse().ok())
            .collect()
    })
}

/// The large communities of a line of BIRD.
pub(crate) fn large_communities(list: &str) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
    tuples(list).filter_map(|numbers| match numbers.as_slice() {
        [global, function, value] => Some((*global, *function, *value)),
        _ => None,
    })
}

/// The value of the own large community with a function.
pub(crate) fn own_large(list: &[(u32, u32, u32)], asn: u32, function: u32) -> Option<u32> {
    list.iter()
        .find(|it| (it.0, it.1) == (asn, function))
        .map(|it| it.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Replies of BIRD 2.0.12, codes removed.
    const PROTOCOLS: &str = "Name       Proto      Table      State  Since         Info\n\
device1    Device     ---        up     12:00:00.000  \n\n\
AS13030_1  BGP        ---        up     12:00:01.000  Established   \n  \
BGP state:          Established\n    Neighbor address: 2001:db8::1%eth0\n    Neighbor AS:      13030\n  \
Channel ipv4\n    State:          UP\n    Receive limit:  5000\n      Action:       disable\n    \
Routes:         3 imported, 2 filtered, 1 exported, 3 preferred\n\n\
AS25091_1  BGP        ---        start  12:00:02.000  Active        Socket: Connection refused\n  \
BGP state:          Active\n    Neighbor AS:      25091\n    Last error:       Socket: Connection refused\n";

    #[test]
    fn sessions_are_read() {
        let all = sessions(PROTOCOLS);
        assert_eq!(all.len(), 2);
        let up = &all[0];
        assert_eq!(
            (
                up.is_up,
                up.asn,
                up.imported,
                up.filtered,
                up.exported,
                up.limit
            ),
            (true, Some(13030), 3, 2, 1, Some(5000))
        );
        assert_eq!(up.address, "2001:db8::1".parse().ok());
        assert_eq!(
            (all[1].is_up, all[1].state.as_str()),
            (false, "Active Socket: Connection refused")
        );
    }

    const ROUTES: &str = "Table master4:\n\
77.109.128.0/18      unicast [AS13030_1 12:00:00.000] * (100) [AS1299i]\n\tvia 10.0.0.1 on eth0\n\
\tType: BGP univ\n\tBGP.as_path: 13030 1299 {65001 65002}\n\tBGP.local_pref: 210\n\
\tBGP.community: (65535,0) (1,2)\n\t\t(3,4)\n\tBGP.large_community: (8298, 0, 1)\n                     \
unicast [AS25091_1 12:00:01.000 from 10.0.0.9] (100) [AS1299i]\n\tBGP.as_path: 25091 1299\n\n\
Table master6:\n2001:db8::/32        unicast [AS13030_2 12:00:00.000] * (100) [i]\n\tBGP.as_path: 13030\n";

    #[test]
    fn routes_are_read() {
        let mut reader = RouteReader::new(false);
        let mut all: Vec<TableRoute> = ROUTES
            .lines()
            .filter_map(|line| reader.line(line))
            .collect();
        all.extend(reader.end());
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].path, [13030, 1299, 65001, 65002]);
        assert_eq!(all[0].communities, [(65535, 0), (1, 2), (3, 4)]);
        assert!(all[0].has_as_set && !all[1].has_as_set);
        assert_eq!(
            (all[0].local_pref, own_large(&all[0].large, 8298, 0)),
            (Some(210), Some(1))
        );
        assert_eq!(
            (all[1].prefix, all[1].protocol.as_str()),
            (all[0].prefix, "AS25091_1")
        );
        assert_eq!(all[2].prefix, "2001:db8::/32".parse::<IpNet>().unwrap());
    }

    #[test]
    fn a_reply_cut_anywhere_is_read_without_a_panic() {
        for text in [PROTOCOLS, ROUTES] {
            for length in 0..text.len() {
                let _ = sessions(&text[..length]);
                let mut reader = RouteReader::new(true);
                text[..length]
                    .lines()
                    .for_each(|line| drop(reader.line(line)));
            }
        }
    }
}
