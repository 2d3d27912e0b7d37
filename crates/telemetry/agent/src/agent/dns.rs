//! Asking the DNS where a service is (SRV, RFC 2782), which the C library has no call for.
//!
//! A stub resolver: it asks the machine's name servers, one after the other, over UDP and, when an answer was cut,
//! over TCP. What comes back is looked at octet by octet and may be anything; bounds are those of RFC 1035. Hosts that
//! are found are names, and looked up by whoever goes there. It waits for its answers, so it is asked on a thread of
//! its own.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// SRV, and the class IN (RFC 1035 section 3.2.4).
const SRV: u16 = 33;
const IN: u16 = 1;
/// How long one server has, and how often each is asked, as resolv.conf(5) has it.
const PATIENCE: Duration = Duration::from_secs(5);
const ROUNDS: usize = 2;
/// Name servers that are asked (resolv.conf(5), MAXNS).
const MOST_SERVERS: usize = 3;
/// Services that are taken from an answer.
const MOST_SERVICES: usize = 64;
/// Pointers that a name may follow.
const MOST_POINTERS: usize = 32;

/// Where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// Lower ones are to be preferred.
    pub(super) priority: u16,
    pub(super) port: u16,
    /// The host's name.
    pub(super) host: String,
    /// For so many seconds it may be believed.
    pub(super) ttl: u32,
}

/// What `resolv.conf` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resolver {
    pub(super) servers: Vec<SocketAddr>,
    /// Domains that names are looked for in.
    pub(super) search: Vec<String>,
}

impl Resolver {
    /// Out of the text of `resolv.conf`; what is not understood there is passed over. The last list of domains counts.
    pub(super) fn read(text: &str) -> Resolver {
        let mut resolver = Resolver::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    resolver
                        .servers
                        .extend(address.map(|address| SocketAddr::new(address, 53)));
                }
                Some("search" | "domain") => resolver.search = words.map(str::to_owned).collect(),
                _ => {}
            }
        }
        resolver.servers.truncate(MOST_SERVERS);
        resolver
    }

    /// Asks for the services of a name. None is an answer, too.
    pub(super) fn services(&self, name: &str, random: u16) -> io::Result<Vec<Service>> {
        let question = question(name, random).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("{name} is too long for a name"),
            )
        })?;
        let mut last = Error::other("no name server is known");
        for server in self
            .servers
            .iter()
            .cycle()
            .take(self.servers.len() * ROUNDS)
        {
            match ask(*server, &question) {
                Ok(answer) => return answer,
                Err(error) => {
                    last = Error::new(
                        error.kind(),
                        format!("name server {}: {error}", server.ip()),
                    )
                }
            }
        }
        Err(last)
    }
}

/// A question as it is sent (RFC 1035 section 4.1). `None` for a name that cannot be one.
fn question(name: &str, number: u16) -> Option<Vec<u8>> {
    const RECURSION_DESIRED: u16 = 0x0100;
    let mut bytes = Vec::new();
    for word in [number, RECURSION_DESIRED, 1, 0, 0, 0] {
        bytes.extend(word.to_be_bytes());
    }
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len())
            .ok()
            .filter(|length| (1..=63).contains(length))?;
        bytes.push(length);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    for word in [SRV, IN] {
        bytes.extend(word.to_be_bytes());
    }
    // A name has 255 octets at most (section 2.3.4); 12 and 4 are around it.
    (bytes.len() <= 12 + 255 + 4).then_some(bytes)
}

/// The outer result is about the server: whether another should be asked.
fn ask(server: SocketAddr, question: &[u8]) -> io::Result<io::Result<Vec<Service>>> {
    let any: SocketAddr = if server.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0_u16; 8], 0).into()
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.send(question)?;
    let until = Instant::now() + PATIENCE;
    let mut bytes = vec![0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        };
        let said = bytes.get(..length).unwrap_or_default();
        match answer(question, said) {
            // Somebody else's words: the right ones may still come.
            Answer::NotToThis => {}
            Answer::Cut => return ask_at_length(server, question, until),
            Answer::Server(problem) => return Err(Error::other(problem)),
            Answer::Final(services) => return Ok(services),
        }
    }
}

/// Over TCP, where a length stands before each message (RFC 1035 section 4.2.2).
fn ask_at_length(
    server: SocketAddr,
    question: &[u8],
    until: Instant,
) -> io::Result<io::Result<Vec<Service>>> {
    let left = || {
        until
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1))
    };
    let mut stream = TcpStream::connect_timeout(&server, left())?;
    stream.set_write_timeout(Some(left()))?;
    let length = u16::try_from(question.len()).unwrap_or(u16::MAX);
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    let mut read = |bytes: &mut [u8]| {
        stream.set_read_timeout(Some(left()))?;
        stream.read_exact(bytes)
    };
    read(&mut length)?;
    let mut bytes = vec![0; u16::from_be_bytes(length).into()];
    read(&mut bytes)?;
    match answer(question, &bytes) {
        Answer::Final(services) => Ok(services),
        Answer::Server(problem) => Err(Error::other(problem)),
        Answer::NotToThis | Answer::Cut => Err(Error::other("its answer is none")),
    }
}

/// What a message is to a question.
#[derive(Debug)]
enum Answer {
    /// Something else.
    NotToThis,
    /// There is more to it than fits a datagram.
    Cut,
    /// The server could not answer.
    Server(&'static str),
    /// What there is to know.
    Final(io::Result<Vec<Service>>),
}

/// Reads a message (RFC 1035 section 4.1.1).
fn answer(question: &[u8], bytes: &[u8]) -> Answer {
    const RESPONSE: u16 = 0x8000;
    const TRUNCATED: u16 = 0x0200;
    let (Some(flags), Some(answers)) = (word(bytes, 2), word(bytes, 6)) else {
        return Answer::NotToThis;
    };
    // The number and the question come back, names in whatever case.
    let asked = question.get(12..).unwrap_or_default();
    let echoed = bytes.get(12..12 + asked.len()).unwrap_or_default();
    if bytes.get(..2) != question.get(..2)
        || flags & RESPONSE == 0
        || word(bytes, 4) != Some(1)
        || !echoed.eq_ignore_ascii_case(asked)
    {
        return Answer::NotToThis;
    }
    match flags & 0xf {
        0 if flags & TRUNCATED != 0 => Answer::Cut,
        0 => Answer::Final(
            records(bytes, 12 + asked.len(), answers)
                .ok_or_else(|| Error::other("the answer is damaged")),
        ),
        // NXDOMAIN: there is no such name, whoever is asked.
        3 => Answer::Final(Ok(Vec::new())),
        1 => Answer::Server("it does not understand the question"),
        5 => Answer::Server("it refuses"),
        _ => Answer::Server("it failed"),
    }
}

/// The SRV records of an answer, in the order of their priorities.
fn records(bytes: &[u8], mut at: usize, count: u16) -> Option<Vec<Service>> {
    let mut services = Vec::new();
    for _ in 0..count {
        at = skip_name(bytes, at)?;
        let (kind, class, ttl, length) = (
            word(bytes, at)?,
            word(bytes, at + 2)?,
            long(bytes, at + 4)?,
            word(bytes, at + 8)?,
        );
        let data = at + 10;
        at = data + usize::from(length);
        bytes.get(data..at)?;
        // On the way to them there may be aliases (CNAME).
        if (kind, class) != (SRV, IN) || services.len() == MOST_SERVICES {
            continue;
        }
        let host = name(bytes, data + 6)?;
        // "." says that there is no such service here (RFC 2782).
        if !host.is_empty() {
            services.push(Service {
                priority: word(bytes, data)?,
                port: word(bytes, data + 4)?,
                host,
                ttl,
            });
        }
    }
    services.sort_by_key(|service| service.priority);
    Some(services)
}

/// Where what follows a name begins.
fn skip_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            0xc0..=0xff => return Some(at + 2),
            _ => return None,
        }
    }
}

/// A name, whose end may stand somewhere before (RFC 1035 section 4.1.4).
fn name(bytes: &[u8], mut at: usize) -> Option<String> {
    let (mut name, mut pointers) = (String::new(), 0);
    loop {
        match *bytes.get(at)? {
            0 => return Some(name),
            length @ 1..=63 => {
                let label = bytes.get(at + 1..at + 1 + usize::from(length))?;
                // What is no host's name is of no use, and is not shown to anybody.
                if !label
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
                    || name.len() > 255
                {
                    return None;
                }
                if !name.is_empty() {
                    name.push('.');
                }
                name.extend(label.iter().map(|&byte| char::from(byte)));
                at += 1 + usize::from(length);
            }
            0xc0..=0xff if pointers < MOST_POINTERS => {
                at = usize::from(word(bytes, at)? & 0x3fff);
                pointers += 1;
            }
            _ => return None,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(
        bytes.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer to the question for `_sflow._udp.example`, worked out by hand: an alias, then two services whose hosts
    /// end in the question's name, the second of them preferred.
    const SAID: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x03\0\0\0\0\
        \x06_sflow\x04_udp\x07example\0\0\x21\0\x01\
        \xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01s\xc0\x18\
        \xc0\x31\0\x21\0\x01\0\0\x01\x2c\0\x0a\0\x14\0\0\x18\xc7\x01b\xc0\x18\
        \xc0\x31\0\x21\0\x01\0\0\0\x3c\0\x0a\0\x0a\0\x05\x18\xc8\x01a\xc0\x18";

    fn services(said: &[u8]) -> Answer {
        answer(&question("_sflow._udp.example", 0x1234).unwrap(), said)
    }

    #[test]
    fn services_are_found_behind_an_alias_and_ordered() {
        let Answer::Final(Ok(found)) = services(SAID) else {
            panic!()
        };
        let expected = [(10, 6344, "a.example", 60), (20, 6343, "b.example", 300)];
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.priority, it.port, it.host.as_str(), it.ttl))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_question_is_these_bytes() {
        assert_eq!(
            question("_sflow._udp.example.", 0x1234).unwrap(),
            b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x06_sflow\x04_udp\x07example\0\0\x21\0\x01"
        );
        assert_eq!(question("a..b", 1), None);
        assert_eq!(question(&"a.".repeat(200), 1), None);
        assert_eq!(question(&"a".repeat(64), 1), None);
    }

    #[test]
    fn what_is_no_answer_is_distinguished() {
        let with = |place: usize, byte: u8| {
            let mut said = SAID.to_vec();
            said[place] = byte;
            services(&said)
        };
        assert!(matches!(with(0, 0x13), Answer::NotToThis), "another number");
        assert!(matches!(with(2, 0x01), Answer::NotToThis), "a question");
        assert!(matches!(with(14, b'x'), Answer::NotToThis), "another name");
        assert!(
            matches!(with(14, b'S'), Answer::Final(Ok(_))),
            "the same name"
        );
        assert!(matches!(with(2, 0x83), Answer::Cut));
        assert!(matches!(with(3, 0x82), Answer::Server(_)), "SERVFAIL");
        assert!(matches!(with(3, 0x85), Answer::Server(_)), "REFUSED");
        assert!(
            matches!(with(3, 0x83), Answer::Final(Ok(none)) if none.is_empty()),
            "NXDOMAIN"
        );
    }

    #[test]
    fn a_name_that_points_at_itself_ends() {
        let mut said = SAID.to_vec();
        let last = said.len() - 1;
        said[last] = last as u8 - 1;
        assert!(matches!(services(&said), Answer::Final(Err(_))));
    }

    #[test]
    fn no_octet_and_no_length_makes_it_fall() {
        for length in 0..SAID.len() {
            let _ = services(&SAID[..length]);
        }
        for place in 0..SAID.len() {
            for byte in [0, 1, 63, 64, 0xc0, 0xff] {
                let mut said = SAID.to_vec();
                said[place] = byte;
                let _ = services(&said);
            }
        }
    }

    #[test]
    fn the_machines_file_is_read_as_far_as_it_is_understood() {
        let text = "# made by hand\nsearch example.net example.org\nnameserver 192.0.2.53\nnameserver nonsense\noptions edns0\n\
                    nameserver 2001:db8::53\nnameserver 192.0.2.54\nnameserver 192.0.2.55\n";
        let servers = ["192.0.2.53:53", "[2001:db8::53]:53", "192.0.2.54:53"]
            .map(|server| server.parse().unwrap());
        let search = ["example.net", "example.org"].map(str::to_owned);
        assert_eq!(
            Resolver::read(text),
            Resolver {
                servers: servers.into(),
                search: search.into()
            }
        );
    }
}
