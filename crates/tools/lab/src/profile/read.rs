//! From a YAML tree to a profile, reporting all errors at once.
//!
//! Each reader takes its keys out of a map; keys that nobody took are errors.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::values::Type;
use super::yaml::{self, Content, Node};
use super::{
    Burst, Capture, IMIX, Label, Network, PacketSpec, Payload, Profile, ProfileError, StreamSpec,
    Transport, Values, Vlan,
};
use crate::stream::{LARGEST_FRAME, smallest_frame};
use crate::units::{self, Rate};

pub(super) struct Errors(pub(super) Vec<ProfileError>);

impl Errors {
    pub(super) fn add(&mut self, line: usize, path: &str, problem: impl Into<String>) {
        self.0.push(ProfileError {
            line,
            path: path.to_owned(),
            problem: problem.into(),
        });
    }
}

/// The keys of a map, each taken once.
pub(super) struct Keys<'n> {
    path: String,
    pub(super) line: usize,
    left: Vec<(&'n str, usize, &'n Node)>,
    known: Vec<&'static str>,
}

impl<'n> Keys<'n> {
    pub(super) fn of(node: &'n Node, path: &str, errors: &mut Errors) -> Keys<'n> {
        let left = match &node.content {
            Content::Map(entries) => entries
                .iter()
                .map(|(key, line, value)| (key.as_str(), *line, value))
                .collect(),
            Content::Scalar(text) if text.is_empty() => Vec::new(),
            _ => {
                errors.add(node.line, path, "expected keys and values");
                Vec::new()
            }
        };
        Keys {
            path: path.to_owned(),
            line: node.line,
            left,
            known: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<(&'n Node, String)> {
        self.known.push(key);
        let at = self.left.iter().position(|(other, ..)| *other == key)?;
        Some((
            self.left.remove(at).2,
            format!("{}.{key}", self.path)
                .trim_start_matches('.')
                .to_owned(),
        ))
    }

    /// Reads a scalar by `parse`; `None` when the key is absent or wrong.
    pub(super) fn scalar<T>(
        &mut self,
        key: &'static str,
        errors: &mut Errors,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (node, path) = self.take(key)?;
        let Content::Scalar(text) = &node.content else {
            errors.add(node.line, &path, "expected one value");
            return None;
        };
        parse(text)
            .map_err(|problem| errors.add(node.line, &path, problem))
            .ok()
    }

    fn number(&mut self, key: &'static str, most: u64, errors: &mut Errors) -> Option<u64> {
        self.scalar(key, errors, |text| {
            Type::Number(u128::from(most)).read(text)
        })
        .and_then(|value| u64::try_from(value).ok())
    }

    fn values(&mut self, key: &'static str, kind: Type, errors: &mut Errors) -> Option<Values> {
        let (node, path) = self.take(key)?;
        values(node, &path, kind, errors)
    }

    pub(super) fn finish(self, errors: &mut Errors) {
        for (key, line, _) in self.left {
            let path = format!("{}.{key}", self.path);
            errors.add(
                line,
                path.trim_start_matches('.'),
                format!("unknown key; known here: {}", self.known.join(", ")),
            );
        }
    }
}

/// A field: `A`, `A-B`, `[A, B]`, `{from, to, step, random}`.
fn values(node: &Node, path: &str, kind: Type, errors: &mut Errors) -> Option<Values> {
    let result = match &node.content {
        Content::Scalar(text) => kind.values(text),
        Content::List(items) => {
            let mut list = Vec::new();
            for (number, item) in items.iter().enumerate() {
                let value = match &item.content {
                    Content::Scalar(text) => kind.read(text),
                    _ => Err("expected one value".to_owned()),
                };
                match value {
                    Ok(value) => list.push(value),
                    Err(problem) => {
                        errors.add(item.line, &format!("{path}[{number}]"), problem);
                        return None;
                    }
                }
            }
            let same = list
                .first()
                .is_some_and(|first| list.iter().all(|value| value >> 64 == first >> 64));
            match list.first() {
                None => Err("the list is empty".to_owned()),
                Some(_) if !same => Err(
                    "the addresses differ in the upper 64 bits: only the lower 64 can vary"
                        .to_owned(),
                ),
                Some(first) => Ok(Values {
                    first: *first,
                    count: list.len() as u64,
                    step: 1,
                    random: false,
                    list,
                    every: 1,
                    start: 0,
                    down: false,
                }),
            }
        }
        Content::Map(_) => {
            let mut keys = Keys::of(node, path, errors);
            let read = |text: &str| kind.read(text);
            let from = keys.scalar("from", errors, read);
            let to = keys.scalar("to", errors, read);
            let step = keys.number("step", u64::MAX, errors).unwrap_or(1);
            let random = keys.scalar("random", errors, boolean).unwrap_or(false);
            let down = keys.scalar("down", errors, boolean).unwrap_or(false);
            let every = keys.scalar("every", errors, units::count).unwrap_or(1);
            let line = keys.line;
            keys.finish(errors);
            let (Some(from), Some(to)) = (from, to) else {
                errors.add(line, path, "a range needs from and to");
                return None;
            };
            if every == 0 {
                errors.add(line, path, "every must be 1 or more");
                return None;
            }
            kind.between(from, to, step).map(|values| Values {
                random,
                down,
                every,
                ..values
            })
        }
    };
    result
        .map_err(|problem| errors.add(node.line, path, problem))
        .ok()
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("true or false".to_owned()),
    }
}

pub(super) fn profile(text: &str, folder: &Path) -> Result<Profile, Vec<ProfileError>> {
    let mut errors = Errors(Vec::new());
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err((line, problem)) => {
            errors.add(line, "file", problem);
            return Err(errors.0);
        }
    };
    if let Content::List(items) = &root.content {
        return super::trex::profile(items, folder);
    }
    let mut keys = Keys::of(&root, "", &mut errors);
    let seed = keys.number("seed", u64::MAX, &mut errors).unwrap_or(1);
    let mut streams = Vec::new();
    match keys.take("streams") {
        Some((
            Node {
                content: Content::List(items),
                ..
            },
            _,
        )) if !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                streams.extend(stream(item, number, folder, &mut errors));
            }
        }
        Some((node, _)) => errors.add(
            node.line,
            "streams",
            "expected a list of at least one stream",
        ),
        None => errors.add(
            root.line,
            "streams",
            "missing: a profile needs at least one stream",
        ),
    }
    keys.finish(&mut errors);
    if errors.0.is_empty() {
        Ok(Profile { seed, streams })
    } else {
        Err(errors.0)
    }
}

fn stream(node: &Node, number: usize, folder: &Path, errors: &mut Errors) -> Option<StreamSpec> {
    let before = errors.0.len();
    let path = format!("streams[{number}]");
    let mut keys = Keys::of(node, &path, errors);
    let name = keys
        .scalar("name", errors, |text| Ok(text.to_owned()))
        .unwrap_or_else(|| format!("stream-{number}"));
    let rate = keys.scalar("rate", errors, Rate::parse);
    let mut spec = StreamSpec::new(&name, rate.unwrap_or(Rate::Packets(1000.0)));
    spec.port = keys.number("port", 63, errors).unwrap_or(0) as usize;
    spec.packets = keys.scalar("packets", errors, units::count).unwrap_or(0);
    spec.start = keys
        .scalar("start", errors, units::duration)
        .unwrap_or(Duration::ZERO);
    spec.ramp = keys.scalar("ramp", errors, units::duration);
    let stamp = keys.scalar("stamp", errors, boolean);
    spec.stamped = stamp.unwrap_or(true);
    if let Some((node, path)) = keys.take("capture") {
        let capture = capture(node, &path, folder, errors);
        spec.timed = rate.is_none();
        if stamp == Some(true) {
            errors.add(
                node.line,
                &path,
                "frames of a capture are sent as they are: stamp must be false",
            );
        }
        keys.finish(errors);
        spec.stamped = false;
        if spec.packets == 0 {
            spec.packets = capture.as_ref().map_or(0, |(_, packets)| *packets);
        }
        spec.capture = Some(Arc::new(capture?.0));
        return (errors.0.len() == before).then_some(spec);
    }
    let size_line = keys
        .left
        .iter()
        .find(|(key, ..)| *key == "size")
        .map_or(keys.line, |(_, line, _)| *line);
    let mut imix = false;
    if let Some((node, path)) = keys.take("size") {
        spec.sizes = sizes(node, &path, errors).unwrap_or(spec.sizes);
        imix = matches!(&node.content, Content::Scalar(text) if text == "imix");
    }
    if let Some((node, path)) = keys.take("burst") {
        let mut burst = Keys::of(node, &path, errors);
        let packets = burst.scalar("packets", errors, units::count);
        let every = burst.scalar("every", errors, units::duration);
        burst.finish(errors);
        match (packets, every) {
            (Some(packets @ 1..), Some(every)) if !every.is_zero() => {
                spec.burst = Some(Burst { packets, every })
            }
            _ => errors.add(
                node.line,
                &path,
                "a burst needs packets (1 or more) and every (a duration above 0)",
            ),
        }
    }
    spec.packet = packet(&mut keys, errors);
    if let Some(flows) = keys.scalar("flows", errors, units::count) {
        spec.vary_flows(flows);
    }
    keys.finish(errors);
    if errors.0.len() > before {
        return None;
    }
    let least = smallest_frame(&spec) + 4;
    if imix {
        // The mix is for plain headers: with longer ones its smallest frame grows.
        spec.sizes
            .iter_mut()
            .for_each(|(size, _)| *size = (*size).max(least as u16));
    }
    for (size, _) in &spec.sizes {
        if usize::from(*size) < least || usize::from(*size) > LARGEST_FRAME + 4 {
            let problem = format!(
                "{size} bytes are impossible: these headers{} need {least} to {} bytes with FCS",
                if spec.stamped { " and the stamp" } else { "" },
                LARGEST_FRAME + 4
            );
            errors.add(size_line, &format!("{path}.size"), problem);
        }
    }
    Some(spec)
}

/// Frames of a capture, and how many packets all passes have (0: no limit).
fn capture(node: &Node, path: &str, folder: &Path, errors: &mut Errors) -> Option<(Capture, u64)> {
    let (file, speed, passes, line) = match &node.content {
        Content::Scalar(file) => (Some(file.clone()), 1.0, 1, node.line),
        _ => {
            let mut keys = Keys::of(node, path, errors);
            let file = keys.scalar("file", errors, |text| Ok(text.to_owned()));
            let speed = keys.scalar("speed", errors, |text| {
                units::scaled(text)
                    .filter(|speed| *speed > 0.0)
                    .ok_or_else(|| "a factor above 0: 2 replays twice as fast".to_owned())
            });
            let passes = keys.scalar("loop", errors, |text| match text {
                "forever" => Ok(0),
                _ => units::count(text),
            });
            let line = keys.line;
            keys.finish(errors);
            (file, speed.unwrap_or(1.0), passes.unwrap_or(1), line)
        }
    };
    let Some(file) = file else {
        errors.add(line, path, "a capture needs file");
        return None;
    };
    Capture::open(&folder.join(file), speed)
        .map(|capture| {
            let packets = capture.frames.len() as u64 * passes;
            (capture, packets)
        })
        .map_err(|problem| errors.add(line, path, problem))
        .ok()
}

fn sizes(node: &Node, path: &str, errors: &mut Errors) -> Option<Vec<(u16, u32)>> {
    let number = |text: &str, most: u128| Type::Number(most).read(text);
    match &node.content {
        Content::Scalar(text) if text == "imix" => Some(IMIX.to_vec()),
        Content::Scalar(text) => match number(text, 16_000) {
            Ok(size) => Some(vec![(size as u16, 1)]),
            Err(problem) => {
                errors.add(
                    node.line,
                    path,
                    format!("{problem}; or imix, or a list of {{size, weight}}"),
                );
                None
            }
        },
        Content::List(items) => {
            let mut sizes = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}[{index}]");
                let mut keys = Keys::of(item, &path, errors);
                let size = keys.number("size", 16_000, errors);
                let weight = keys.number("weight", 1000, errors).unwrap_or(1).max(1);
                keys.finish(errors);
                match size {
                    Some(size) => sizes.push((size as u16, weight as u32)),
                    None => errors.add(item.line, &path, "expected a size"),
                }
            }
            (!sizes.is_empty()).then_some(sizes)
        }
        Content::Map(_) => {
            errors.add(
                node.line,
                path,
                "expected a number, imix, or a list of {size, weight}",
            );
            None
        }
    }
}

fn packet(keys: &mut Keys<'_>, errors: &mut Errors) -> PacketSpec {
    let mut packet = PacketSpec::default();
    let mut ether_type = 0x88b5;
    if let Some((node, path)) = keys.take("ethernet") {
        let mut keys = Keys::of(node, &path, errors);
        packet.source_mac = keys
            .values("source", Type::Mac, errors)
            .unwrap_or(packet.source_mac);
        if let Some((node, path)) = keys.take("destination") {
            packet.destination_mac = match &node.content {
                Content::Scalar(text) if text == "gateway" => None,
                _ => values(node, &path, Type::Mac, errors),
            };
        }
        ether_type = keys
            .number("type", 0xffff, errors)
            .map_or(ether_type, |value| value as u16);
        keys.finish(errors);
    }
    for (node, path) in list(keys, "vlan") {
        packet.vlans.extend(vlan(node, &path, errors));
    }
    for (node, path) in list(keys, "mpls") {
        packet.labels.extend(label(node, &path, errors));
    }
    network(keys, &mut packet, ether_type, errors);
    transport(keys, &mut packet, errors);
    if let Some(payload) = keys.scalar("payload", errors, |text| Ok(payload(text))) {
        packet.payload = payload;
    }
    packet
}

fn payload(text: &str) -> Payload {
    match text {
        "zeros" | "" => Payload::Zeros,
        "counting" => Payload::Counting,
        "random" => Payload::Random,
        other => Payload::Bytes(other.as_bytes().to_vec()),
    }
}

/// The items of a list, or one value alone.
fn list<'n>(keys: &mut Keys<'n>, key: &'static str) -> Vec<(&'n Node, String)> {
    match keys.take(key) {
        None => Vec::new(),
        Some((
            Node {
                content: Content::List(items),
                ..
            },
            path,
        )) => items
            .iter()
            .enumerate()
            .map(|(number, item)| (item, format!("{path}[{number}]")))
            .collect(),
        Some(one) => vec![one],
    }
}

fn vlan(node: &Node, path: &str, errors: &mut Errors) -> Option<Vlan> {
    let id = Type::Number(4094);
    if !matches!(node.content, Content::Map(_)) {
        return Some(Vlan {
            protocol: 0x8100,
            id: values(node, path, id, errors)?,
            priority: 0,
        });
    }
    let mut keys = Keys::of(node, path, errors);
    let protocol = keys.number("protocol", 0xffff, errors).unwrap_or(0x8100) as u16;
    let priority = keys.number("priority", 7, errors).unwrap_or(0) as u8;
    let id = keys.values("id", id, errors);
    keys.finish(errors);
    Some(Vlan {
        protocol,
        id: id?,
        priority,
    })
}

fn label(node: &Node, path: &str, errors: &mut Errors) -> Option<Label> {
    let kind = Type::Number(0xf_ffff);
    if !matches!(node.content, Content::Map(_)) {
        return Some(Label {
            label: values(node, path, kind, errors)?,
            class: 0,
            ttl: 64,
        });
    }
    let mut keys = Keys::of(node, path, errors);
    let class = keys.number("class", 7, errors).unwrap_or(0) as u8;
    let ttl = keys.number("ttl", 255, errors).unwrap_or(64) as u8;
    let label = keys.values("label", kind, errors);
    keys.finish(errors);
    Some(Label {
        label: label?,
        class,
        ttl,
    })
}

fn network(keys: &mut Keys<'_>, packet: &mut PacketSpec, ether_type: u16, errors: &mut Errors) {
    let line = keys.line;
    let (v4, v6) = (keys.take("ipv4"), keys.take("ipv6"));
    let none = keys.scalar("network", errors, |text| {
        if text == "none" {
            Ok(())
        } else {
            Err("only `none`".to_owned())
        }
    });
    if usize::from(v4.is_some()) + usize::from(v6.is_some()) + usize::from(none.is_some()) > 1 {
        errors.add(line, &keys.path, "only one of ipv4, ipv6 and network: none");
    }
    let Network::V4 {
        source,
        destination,
        ttl,
        dscp,
    } = PacketSpec::default().network
    else {
        return;
    };
    if let Some((node, path)) = v4 {
        let mut keys = Keys::of(node, &path, errors);
        packet.network = Network::V4 {
            source: keys.values("source", Type::V4, errors).unwrap_or(source),
            destination: keys
                .values("destination", Type::V4, errors)
                .unwrap_or(destination),
            ttl: keys.values("ttl", Type::Number(255), errors).unwrap_or(ttl),
            dscp: keys
                .values("dscp", Type::Number(63), errors)
                .unwrap_or(dscp),
        };
        keys.finish(errors);
    } else if let Some((node, path)) = v6 {
        let mut keys = Keys::of(node, &path, errors);
        let address =
            |last| u128::from(std::net::Ipv6Addr::new(0x2001, 0xdb8, last, 0, 0, 0, 0, 1));
        packet.network = Network::V6 {
            source: keys
                .values("source", Type::V6, errors)
                .unwrap_or(Values::fixed(address(1))),
            destination: keys
                .values("destination", Type::V6, errors)
                .unwrap_or(Values::fixed(address(2))),
            ttl: keys
                .values("hop-limit", Type::Number(255), errors)
                .unwrap_or(ttl),
            dscp: keys.number("dscp", 63, errors).unwrap_or(0) as u8,
            flow_label: keys.number("flow-label", 0xf_ffff, errors).unwrap_or(0) as u32,
        };
        keys.finish(errors);
    } else if none.is_some() {
        packet.network = Network::None(ether_type);
        packet.transport = Transport::None(0);
    }
}

fn transport(keys: &mut Keys<'_>, packet: &mut PacketSpec, errors: &mut Errors) {
    let line = keys.line;
    let (udp, tcp) = (keys.take("udp"), keys.take("tcp"));
    let echo = keys.take("icmp");
    let protocol = keys.number("protocol", 255, errors);
    let given = [
        udp.is_some(),
        tcp.is_some(),
        echo.is_some(),
        protocol.is_some(),
    ];
    let given = given.into_iter().filter(|given| *given).count();
    if given > 1 {
        errors.add(line, &keys.path, "only one of udp, tcp, icmp and protocol");
    }
    if given > 0 && matches!(packet.network, Network::None(_)) {
        errors.add(
            line,
            &keys.path,
            "udp, tcp, icmp and protocol need ipv4 or ipv6",
        );
    }
    let port = Type::Number(65_535);
    let ports = |keys: &mut Keys<'_>, errors: &mut Errors| {
        (
            keys.values("source", port, errors)
                .unwrap_or(Values::fixed(1024)),
            keys.values("destination", port, errors)
                .unwrap_or(Values::fixed(1025)),
        )
    };
    if let Some((node, path)) = udp {
        let mut keys = Keys::of(node, &path, errors);
        let (source, destination) = ports(&mut keys, errors);
        packet.transport = Transport::Udp(source, destination);
        keys.finish(errors);
    } else if let Some((node, path)) = tcp {
        let mut keys = Keys::of(node, &path, errors);
        let (source, destination) = ports(&mut keys, errors);
        let flags = keys.number("flags", 255, errors).unwrap_or(0x10) as u8;
        packet.transport = Transport::Tcp(source, destination, flags);
        keys.finish(errors);
    } else if echo.is_some() {
        packet.transport = Transport::Echo;
    } else if let Some(protocol) = protocol {
        packet.transport = Transport::None(protocol as u8);
    }
}
