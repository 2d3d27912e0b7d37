//! Streams that real daemons made, read again: what they lead to is compared with what the kernel listed at the end, and
//! each of them is cut and reordered.
//!
//! A recording is a file of `recordings`, named by daemon, version and channel: datagrams or reads, each behind its length
//! (four bytes, little endian). Beside it `.routes` has the lines of `ip -4 route` and `ip -6 route` at the end of
//! the recording. `record` makes both:
//!
//! ```text
//! WEIR_RECORD=bird-2.0.12 cargo test -p weir-linux --test recordings record -- --nocapture
//! ```
//!
//! A recording of FRR has a peer in a second namespace, BIRD, which announces and withdraws its routes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir_control::{RouteSource, RouteUpdate, Target};
use weir_linux::decode::{Decoder, Message};
use weir_linux::fpm::framing::Framer;
use weir_linux::fpm::objects::Objects;
use weir_netlink::Frames;
use weir_netlink::lab::{has_program, preflight};
use weir_netlink::listen::{Heard, Listener, group};
use weir_netlink::netns::NetNs;
use weir_netlink::route::VethPair;

const PATIENCE: Duration = Duration::from_secs(60);
/// The prefix that a daemon sets last, in the first configuration and in the second.
const MARKS: [&str; 2] = ["10.255.255.0/24", "10.255.254.0/24"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn parts(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut parts) = (bytes, Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        parts.push(after[..length].to_vec());
        rest = &after[length..];
    }
    parts
}

/// Routes by table, prefix and metric, with where they lead.
type Rib = BTreeMap<(u32, String, u32), String>;

fn target(target: &Target) -> String {
    match target {
        Target::Paths(hops) => {
            let hop = |hop: &weir_control::NextHop| {
                let gateway = hop.gateway.map_or("link".to_owned(), |it| it.to_string());
                format!("{gateway}*{}", hop.weight)
            };
            let mut all: Vec<String> = hops.iter().map(hop).collect();
            all.sort();
            all.join(" ")
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

fn take(update: &RouteUpdate, objects: &BTreeMap<u32, String>, rib: &mut Rib) {
    match update {
        RouteUpdate::Set(route) => {
            let leads = match &*route.target {
                Target::Object(id) => objects.get(id).cloned().unwrap_or_default(),
                other => target(other),
            };
            rib.insert((route.table, route.prefix.to_string(), route.metric), leads);
        }
        RouteUpdate::Remove {
            table,
            prefix,
            metric,
            path,
            ..
        } => {
            let key = (*table, prefix.to_string(), *metric);
            // One path of an IPv6 route: the others stay.
            let gone = path.as_ref().and_then(|path| path.gateway);
            let rest = gone.and_then(|gone| {
                let known = rib.get(&key)?;
                let left = known
                    .split(' ')
                    .filter(|hop| hop.split('*').next() != Some(&gone.to_string()));
                Some(left.collect::<Vec<_>>().join(" "))
            });
            match rest.filter(|rest| !rest.is_empty()) {
                Some(rest) => drop(rib.insert(key, rest)),
                None => drop(rib.remove(&key)),
            }
        }
    }
}

/// What datagrams of the kernel lead to.
fn read_netlink(parts: &[Vec<u8>]) -> Rib {
    let (mut decoder, mut rib) = (Decoder::new(RouteSource::Kernel), Rib::new());
    for part in parts {
        for frame in Frames::new(part).flatten() {
            if let Message::Route(update) = decoder.read(&frame) {
                take(&update, &BTreeMap::new(), &mut rib);
            }
        }
    }
    rib
}

/// What a stream of zebra leads to, read in pieces of this length.
fn read_fpm(parts: &[Vec<u8>], piece: usize) -> Rib {
    let (mut decoder, mut rib) = (Decoder::new(RouteSource::Fpm), Rib::new());
    let (mut framer, mut objects, mut leads) =
        (Framer::default(), Objects::default(), BTreeMap::new());
    for piece in parts.concat().chunks(piece) {
        framer.add(piece);
        while let Ok(Some(frame)) = framer.next_frame() {
            let frame = frame.to_vec();
            for message in Frames::new(&frame).flatten() {
                match decoder.read(&message) {
                    Message::Route(update) => take(&update, &leads, &mut rib),
                    Message::Object { id, object } => match object {
                        None => objects.remove(id),
                        Some(object) => {
                            for (id, changed) in objects.set(id, object).unwrap() {
                                leads.insert(id, target(&changed));
                            }
                        }
                    },
                    _ => {}
                }
            }
        }
    }
    rib
}

/// The prefixes that `ip route` listed, without the kernel's own.
fn listed(text: &str) -> BTreeSet<String> {
    let own = |line: &&str| line.contains(" proto ") && !line.contains("proto kernel");
    let prefix = |line: &str| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let first = match first {
            "blackhole" | "unreachable" | "prohibit" => words.next()?,
            other => other,
        };
        let is_six = first.contains(':');
        Some(match first {
            "default" => "0.0.0.0/0".to_owned(),
            host if !host.contains('/') => format!("{host}/{}", if is_six { 128 } else { 32 }),
            net => net.to_owned(),
        })
    };
    text.lines().filter(own).filter_map(prefix).collect()
}

fn recordings(channel: &str) -> Vec<(String, Vec<Vec<u8>>, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == channel) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let routes = path.with_extension("routes");
            let bytes = std::fs::read(&path).unwrap();
            all.push((
                name,
                parts(&bytes),
                std::fs::read_to_string(routes).unwrap(),
            ));
        }
    }
    assert!(!all.is_empty(), "no recording of {channel}");
    all
}

#[test]
fn recordings_lead_to_the_routes_that_the_kernel_listed() {
    for (name, parts, routes) in recordings("netlink") {
        let rib = read_netlink(&parts);
        let prefixes: BTreeSet<String> = rib.keys().map(|key| key.1.clone()).collect();
        assert_eq!(prefixes, listed(&routes), "{name}");
        for ((_, prefix, _), leads) in &rib {
            let lines: Vec<&str> = routes.lines().collect();
            let is_it = |line: &&&str| line.split_whitespace().take(2).any(|word| word == prefix);
            let Some(at) = lines.iter().position(|line| is_it(&line)) else {
                continue;
            };
            // The paths of a route with several are on lines of their own.
            let more = lines[at + 1..]
                .iter()
                .take_while(|line| line.starts_with(['\t', ' ']));
            let text: String = std::iter::once(&lines[at]).chain(more).copied().collect();
            for hop in leads.split(' ').filter_map(|hop| hop.split('*').next()) {
                let is_there = text.contains(hop) || hop == "link";
                assert!(is_there, "{name}: {prefix} leads to {leads}, and {text}");
            }
        }
    }
    for (name, parts, routes) in recordings("fpm") {
        let rib = read_fpm(&parts, 1 << 16);
        let prefixes: BTreeSet<String> = rib.keys().map(|key| key.1.clone()).collect();
        assert_eq!(prefixes, listed(&routes), "{name}");
        assert!(
            rib.values().all(|leads| !leads.is_empty()),
            "{name}: {rib:?}"
        );
    }
}

#[test]
fn pieces_of_any_length_are_read_alike() {
    for (name, parts, _) in recordings("fpm") {
        let whole = read_fpm(&parts, 1 << 16);
        for piece in [1, 3, 7, 64, 1000] {
            assert_eq!(read_fpm(&parts, piece), whole, "{name} by {piece}");
        }
    }
}

#[test]
fn each_truncation_is_read_or_refused() {
    for (_, parts, _) in recordings("netlink") {
        let mut decoder = Decoder::new(RouteSource::Kernel);
        for part in &parts {
            for length in 0..part.len() {
                for frame in Frames::new(&part[..length]).flatten() {
                    let _ = decoder.read(&frame);
                }
                // The same with a header that says that it is whole.
                let mut cut = part[..length].to_vec();
                if let Some(header) = cut.first_chunk_mut::<4>() {
                    *header = (length as u32).to_ne_bytes();
                }
                for frame in Frames::new(&cut).flatten() {
                    let _ = decoder.read(&frame);
                }
            }
        }
    }
    for (_, parts, _) in recordings("fpm") {
        let stream = parts.concat();
        for length in (0..stream.len()).step_by(97) {
            let _ = read_fpm(&[stream[..length].to_vec()], 1 << 16);
        }
    }
}

#[test]
fn the_order_of_other_prefixes_does_not_matter() {
    for (name, parts, _) in recordings("netlink") {
        let whole = read_netlink(&parts);
        // By prefix, and within one in the order in which they came.
        let mut decoder = Decoder::new(RouteSource::Kernel);
        let mut by_prefix: Vec<(String, Vec<u8>)> = Vec::new();
        for part in &parts {
            for frame in Frames::new(part).flatten() {
                if let Message::Route(update) = decoder.read(&frame) {
                    by_prefix.push((update.prefix().to_string(), part.clone()));
                }
            }
        }
        by_prefix.sort_by(|one, other| other.0.cmp(&one.0));
        let reordered: Vec<Vec<u8>> = by_prefix.into_iter().map(|(_, part)| part).collect();
        assert_eq!(read_netlink(&reordered), whole, "{name}");
    }
}

const BIRD: [&str; 2] = [
    "router id 10.0.0.1;
protocol device {}
protocol kernel k4 { merge paths yes limit 8; ipv4 { import none; export all; }; }
protocol kernel k6 { merge paths yes limit 8; ipv6 { import none; export all; }; }
protocol static s4 { ipv4;
  route 10.1.0.0/16 via 192.0.2.2;
  route 10.2.0.0/16 via 192.0.2.2 weight 3 via 192.0.2.3 weight 1;
  route 10.3.0.0/16 blackhole;
  route 10.4.0.0/16 unreachable;
  route 10.5.0.0/16 prohibit;
  route 10.6.0.0/16 via 198.51.100.9%near onlink;
  route 10.7.0.0/16 via \"near\";
  route 10.8.0.0/16 via 192.0.2.2;
  route 10.9.1.0/32 via 192.0.2.2;
  route 10.255.255.0/24 via 192.0.2.2;
}
protocol static s6 { ipv6;
  route 2001:db8:1::/48 via 2001:db8::2;
  route 2001:db8:2::/48 via 2001:db8::2 via 2001:db8::3;
  route 2001:db8:3::/48 blackhole;
  route 2001:db8:4::/48 via 2001:db8::2;
}
",
    "router id 10.0.0.1;
protocol device {}
protocol kernel k4 { merge paths yes limit 8; ipv4 { import none; export all; }; }
protocol kernel k6 { merge paths yes limit 8; ipv6 { import none; export all; }; }
protocol static s4 { ipv4;
  route 10.1.0.0/16 via 192.0.2.3;
  route 10.2.0.0/16 via 192.0.2.3;
  route 10.3.0.0/16 via 192.0.2.2;
  route 10.4.0.0/16 blackhole;
  route 10.6.0.0/16 via 198.51.100.9%near onlink;
  route 10.8.0.0/16 via 192.0.2.2 weight 1 via 192.0.2.3 weight 1;
  route 10.255.255.0/24 via 192.0.2.2;
  route 10.255.254.0/24 via 192.0.2.2;
}
protocol static s6 { ipv6;
  route 2001:db8:1::/48 blackhole;
  route 2001:db8:2::/48 via 2001:db8::3;
  route 2001:db8:3::/48 via 2001:db8::2;
  route 2001:db8:5::/48 via 2001:db8::2;
}
",
];

const PEER: [&str; 2] = [
    "router id 192.0.2.2;
protocol device {}
protocol static s4 { ipv4; route 10.1.0.0/16 blackhole; route 10.2.0.0/16 blackhole; route 10.255.255.0/24 blackhole; }
protocol static s6 { ipv6; route 2001:db8:1::/48 blackhole; route 2001:db8:2::/48 blackhole; }
protocol bgp four { local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001; connect retry time 1; connect delay time 1;
  error wait time 1, 2; ipv4 { import all; export all; next hop self; }; }
protocol bgp six { local 2001:db8::2 as 65002; neighbor 2001:db8::1 as 65001; connect retry time 1; connect delay time 1;
  error wait time 1, 2; ipv6 { import all; export all; next hop self; }; }
",
    "router id 192.0.2.2;
protocol device {}
protocol static s4 { ipv4; route 10.1.0.0/16 blackhole; route 10.3.0.0/16 blackhole; route 10.255.255.0/24 blackhole;
  route 10.255.254.0/24 blackhole; }
protocol static s6 { ipv6; route 2001:db8:1::/48 blackhole; route 2001:db8:3::/48 blackhole; }
protocol bgp four { local 192.0.2.2 as 65002; neighbor 192.0.2.1 as 65001; connect retry time 1; connect delay time 1;
  error wait time 1, 2; ipv4 { import all; export filter { bgp_med = 77; accept; }; next hop self; }; }
protocol bgp six { local 2001:db8::2 as 65002; neighbor 2001:db8::1 as 65001; connect retry time 1; connect delay time 1;
  error wait time 1, 2; ipv6 { import all; export all; next hop self; }; }
",
];

const FRR: &str = "router bgp 65001
 bgp router-id 192.0.2.1
 no bgp ebgp-requires-policy
 neighbor 192.0.2.2 remote-as 65002
 neighbor 192.0.2.2 timers connect 1
 neighbor 2001:db8::2 remote-as 65002
 neighbor 2001:db8::2 timers connect 1
 address-family ipv6 unicast
  neighbor 2001:db8::2 activate
 exit-address-family
";

fn ip(namespace: &NetNs, line: &str) -> String {
    let mut command = namespace.command("ip");
    let output = command.args(line.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {line}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What comes from a daemon and from the kernel at the same time.
struct Recorder {
    listener: Listener,
    fpm: Option<(TcpListener, Option<std::net::TcpStream>)>,
    datagrams: Vec<Vec<u8>>,
    stream: Vec<Vec<u8>>,
}

impl Recorder {
    fn read(&mut self) {
        while let Heard::Datagram(bytes) = self.listener.receive().unwrap() {
            self.datagrams.push(bytes.to_vec());
        }
        let Some((listener, session)) = &mut self.fpm else {
            return;
        };
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            *session = Some(stream);
        }
        let mut buffer = vec![0; 1 << 16];
        while let Some(Ok(length)) = session.as_mut().map(|it| it.read(&mut buffer)) {
            if length == 0 {
                return;
            }
            self.stream.push(buffer[..length].to_vec());
        }
    }

    /// Records until a prefix is there, and for some time more.
    fn until(&mut self, prefix: &str) {
        let began = Instant::now();
        let has = |rib: &Rib| rib.keys().any(|key| key.1 == prefix);
        let is_there = |it: &Recorder| {
            has(&read_netlink(&it.datagrams))
                && (it.fpm.is_none() || has(&read_fpm(&it.stream, 1 << 16)))
        };
        let mut since: Option<Instant> = None;
        while since.is_none_or(|since| since.elapsed() < Duration::from_secs(5)) {
            assert!(began.elapsed() < PATIENCE, "{prefix} never came");
            std::thread::sleep(Duration::from_millis(50));
            self.read();
            if since.is_none() && is_there(self) {
                since = Some(Instant::now());
            }
        }
    }

    fn write(&self, name: &str, routes: &str) {
        let file = |parts: &[Vec<u8>]| {
            let with_length =
                |part: &Vec<u8>| [&(part.len() as u32).to_le_bytes()[..], part].concat();
            parts.iter().map(with_length).collect::<Vec<_>>().concat()
        };
        let path = |extension: &str| folder().join(format!("{name}.{extension}"));
        std::fs::write(path("netlink"), file(&self.datagrams)).unwrap();
        if self.fpm.is_some() {
            std::fs::write(path("fpm"), file(&self.stream)).unwrap();
        }
        std::fs::write(path("routes"), routes).unwrap();
    }
}

/// Records what `WEIR_RECORD` names.
#[test]
fn record() {
    let Some(name) = std::env::var("WEIR_RECORD").ok() else {
        return;
    };
    if let Err(why) = preflight() {
        panic!("{why}");
    }
    assert!(has_program("bird"));
    let (near, far) = (NetNs::new().unwrap(), NetNs::new().unwrap());
    let mut route = near.route().unwrap();
    let pair = VethPair {
        name: "near",
        peer_name: "far",
        peer_namespace: Some(&far),
        ..VethPair::default()
    };
    route.create_veth(&pair).unwrap();
    for line in [
        "addr add 192.0.2.1/24 dev near",
        "addr add 2001:db8::1/64 dev near nodad",
        "link set near up",
    ] {
        ip(&near, line);
    }
    for line in [
        "addr add 192.0.2.2/24 dev far",
        "addr add 2001:db8::2/64 dev far nodad",
        "link set far up",
    ] {
        ip(&far, line);
    }
    let groups = [group::IPV4_ROUTE, group::IPV6_ROUTE, group::LINK];
    let is_frr = name.starts_with("frr");
    let fpm = is_frr.then(|| {
        let listener = near
            .run(|| TcpListener::bind("127.0.0.1:2620"))
            .unwrap()
            .unwrap();
        listener.set_nonblocking(true).unwrap();
        (listener, None)
    });
    let mut recorder = Recorder {
        listener: near
            .run(|| Listener::open(&groups, 1 << 24))
            .unwrap()
            .unwrap(),
        fpm,
        datagrams: Vec::new(),
        stream: Vec::new(),
    };
    let place = std::env::temp_dir().join(format!("weir-record-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    Command::new("chmod")
        .arg("777")
        .arg(&place)
        .status()
        .unwrap();
    let file = |name: &str, text: &str| {
        let path = place.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let quiet = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let (namespace, configs) = if is_frr { (&far, PEER) } else { (&near, BIRD) };
    let config = file("bird.conf", configs[0]);
    let control = place.join("ctl");
    let mut children = Vec::new();
    let mut bird = namespace.command("bird");
    bird.arg("-f")
        .arg("-c")
        .arg(&config)
        .arg("-s")
        .arg(&control);
    children.push(quiet(&mut bird));
    if is_frr {
        let programs = std::env::var("WEIR_FRR").unwrap_or_else(|_| "/usr/lib/frr".to_owned());
        for (daemon, text, more) in [
            (
                "zebra",
                "fpm address 127.0.0.1 port 2620\n",
                &["-M", "dplane_fpm_nl"][..],
            ),
            ("bgpd", FRR, &[]),
        ] {
            let mut command = near.command(Path::new(&programs).join(daemon));
            command.args(["-u", "frr", "-g", "frr", "-A", "127.0.0.1", "-z"]);
            command
                .arg(place.join("zserv"))
                .arg("--vty_socket")
                .arg(&place);
            command.arg("-i").arg(place.join(format!("{daemon}.pid")));
            command
                .arg("-f")
                .arg(file(&format!("{daemon}.conf"), text))
                .args(more);
            children.push(quiet(&mut command));
        }
    }
    recorder.until(MARKS[0]);
    file("bird.conf", configs[1]);
    let mut birdc = Command::new("birdc");
    birdc.arg("-s").arg(&control).arg("configure");
    assert!(birdc.stdout(Stdio::null()).status().unwrap().success());
    recorder.until(MARKS[1]);
    let routes = ip(&near, "-4 route") + &ip(&near, "-6 route");
    recorder.write(&name, &routes);
    for mut child in children {
        let _ = child.kill();
        let _ = child.wait();
    }
    let _ = std::fs::remove_dir_all(&place);
}
