//! From the text of a file to a `Config`, or to all that is wrong with it.
//!
//! Each section has a function that matches its keys; a value that cannot be read is reported at its place
//! and replaced by a default, so that one run finds all errors.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::str::FromStr;

use weir_config::document::{Position, Report, Value, quoted, read};
use weir_config::{Diagnostic, IpNet, Limits};

use super::{
    Bond, Carries, Config, Guard, Limit, Mac, Mode, Port, Rule, Sflow, Unconfigured, Unknown,
};

/// Rules of all ACLs together: entries of `acl_hits`, less those that end each ACL.
const MOST_RULES: usize = 60_000;
/// Rules of one ACL.
const MOST_RULES_OF_ACL: usize = 10_000;
/// Ports and bonds.
const MOST_PORTS: usize = 2000;

/// Checks the text of a file; `name` is for messages only.
///
/// # Errors
/// All errors of the file, in its order.
pub fn check(name: &str, bytes: &[u8]) -> Result<Config, Vec<Diagnostic>> {
    let (document, report) = read(name, bytes, &Limits::default())?;
    let mut reader = Reader { report };
    let config = reader.file(document.root());
    reader.report.finish()?;
    Ok(config)
}

struct Reader<'t> {
    report: Report<'t>,
}

/// The keys of a port that are read before it is complete.
#[derive(Default)]
struct PortKeys {
    vlan: Option<u16>,
    tunnel: bool,
    priority_tags: bool,
    trunk: Option<BTreeSet<u16>>,
    native: Option<u16>,
    tpid: Option<u16>,
    routed: bool,
    guard: Option<Guard>,
    learn: Option<bool>,
    unknown: Option<Unknown>,
    answer: Option<bool>,
    control: Option<bool>,
}

impl Reader<'_> {
    fn error(&mut self, at: Position, path: &str, message: String, help: &str) {
        self.report.error(at, path, message, help);
    }

    fn unknown_key(&mut self, at: Position, path: &str, key: &str, keys: &str) {
        let path = join(path, key);
        self.error(
            at,
            &path,
            format!("there is no key {} here", quoted(key)),
            &format!("keys: {keys}"),
        );
    }

    fn section<'d>(&mut self, value: Value<'d>, path: &str) -> Vec<(&'d str, Position, Value<'d>)> {
        match value.entries() {
            Some(entries) => entries.collect(),
            None if value.is_empty() => Vec::new(),
            None => {
                self.error(
                    value.position(),
                    path,
                    "a section is expected here".into(),
                    "keys with values, indented",
                );
                Vec::new()
            }
        }
    }

    fn list<'d>(&mut self, value: Value<'d>, path: &str) -> Vec<Value<'d>> {
        if let Some(items) = value.items() {
            return items.collect();
        }
        if value.is_empty() {
            return Vec::new();
        }
        if value.text().is_some() {
            return vec![value];
        }
        self.error(
            value.position(),
            path,
            "a list is expected here".into(),
            "for example [a, b]",
        );
        Vec::new()
    }

    fn scalar<T: FromStr>(&mut self, value: Value<'_>, path: &str, expected: &str) -> Option<T> {
        let found = value.text().and_then(|text| text.trim().parse().ok());
        if found.is_none() {
            let text = value.text().map_or_else(|| "this".to_owned(), quoted);
            self.error(
                value.position(),
                path,
                format!("{text} is not {expected}"),
                "",
            );
        }
        found
    }

    fn number(&mut self, value: Value<'_>, path: &str, least: u64, most: u64) -> Option<u64> {
        let expected = format!("a whole number from {least} to {most}");
        let number: u64 = self.scalar(value, path, &expected)?;
        if (least..=most).contains(&number) {
            return Some(number);
        }
        self.error(
            value.position(),
            path,
            format!("{number} is not {expected}"),
            "",
        );
        None
    }

    fn small<T: TryFrom<u64>>(
        &mut self,
        value: Value<'_>,
        path: &str,
        least: u64,
        most: u64,
    ) -> Option<T> {
        self.number(value, path, least, most)
            .and_then(|number| T::try_from(number).ok())
    }

    fn boolean(&mut self, value: Value<'_>, path: &str) -> Option<bool> {
        self.scalar(value, path, "true or false")
    }

    fn word<T: Copy>(&mut self, value: Value<'_>, path: &str, words: &[(&str, T)]) -> Option<T> {
        let text = value.text().unwrap_or_default();
        let found = words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value);
        if found.is_none() {
            let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.error(
                value.position(),
                path,
                format!("{} is not known here", quoted(text)),
                &format!("one of: {}", names.join(", ")),
            );
        }
        found
    }

    fn file(&mut self, root: Value<'_>) -> Config {
        let mut config = Config {
            mode: Mode::default(),
            unconfigured: Unconfigured::default(),
            ageing: 300,
            connections: (3600, 60),
            metrics: None,
            sflow: None,
            ports: BTreeMap::new(),
            bonds: BTreeMap::new(),
            acls: BTreeMap::new(),
        };
        let mut positions = BTreeMap::new();
        for (key, at, value) in self.section(root, "") {
            match key {
                "mode" => {
                    let words = [("native", Mode::Native), ("generic", Mode::Generic)];
                    config.mode = self.word(value, key, &words).unwrap_or_default();
                }
                "unconfigured" => {
                    let words = [
                        ("kernel", Unconfigured::Kernel),
                        ("drop", Unconfigured::Drop),
                    ];
                    config.unconfigured = self.word(value, key, &words).unwrap_or_default();
                }
                "ageing" => config.ageing = self.small(value, key, 1, 86_400).unwrap_or(300),
                "connections" => {
                    for (key, at, value) in self.section(value, "connections") {
                        let path = join("connections", key);
                        match key {
                            "tcp" => {
                                config.connections.0 =
                                    self.small(value, &path, 1, 86_400).unwrap_or(3600)
                            }
                            "other" => {
                                config.connections.1 =
                                    self.small(value, &path, 1, 86_400).unwrap_or(60)
                            }
                            _ => self.unknown_key(at, "connections", key, "tcp, other"),
                        }
                    }
                }
                "api" => {
                    for (key, at, value) in self.section(value, "api") {
                        let path = join("api", key);
                        match key {
                            "metrics" => {
                                config.metrics = self.scalar(
                                    value,
                                    &path,
                                    "an address with a port, as 127.0.0.1:9101",
                                )
                            }
                            _ => self.unknown_key(at, "api", key, "metrics"),
                        }
                    }
                }
                "sflow" => config.sflow = self.sflow(at, value),
                "ports" => {
                    for (name, at, value) in self.section(value, "ports") {
                        let path = join("ports", name);
                        self.interface_name(at, &path, name);
                        positions.insert(name.to_owned(), at);
                        let (port, _) = self.port(at, value, &path, false);
                        config.ports.insert(name.to_owned(), port);
                    }
                }
                "bonds" => {
                    for (name, at, value) in self.section(value, "bonds") {
                        let path = join("bonds", name);
                        let (port, members) = self.port(at, value, &path, true);
                        if members.is_empty() || members.len() > crate::abi::MEMBERS {
                            self.error(
                                at,
                                &path,
                                format!("a bond has 1 to {} members", crate::abi::MEMBERS),
                                "members: [eth0, eth1]",
                            );
                        }
                        for member in &members {
                            self.interface_name(at, &path, member);
                            if positions.insert(member.clone(), at).is_some() {
                                self.error(
                                    at,
                                    &path,
                                    format!("{} is already a port or a member", quoted(member)),
                                    "",
                                );
                            }
                        }
                        config.bonds.insert(name.to_owned(), Bond { members, port });
                    }
                }
                "acls" => {
                    for (name, at, value) in self.section(value, "acls") {
                        let rules = self.acl(at, value, &join("acls", name));
                        config.acls.insert(name.to_owned(), rules);
                    }
                }
                _ => self.unknown_key(
                    at,
                    "",
                    key,
                    "mode, unconfigured, ageing, connections, api, sflow, ports, bonds, acls",
                ),
            }
        }
        self.relations(root, &config, &positions);
        config
    }

    /// What keys say about each other.
    fn relations(
        &mut self,
        root: Value<'_>,
        config: &Config,
        positions: &BTreeMap<String, Position>,
    ) {
        let at = |name: &str| positions.get(name).copied().unwrap_or(root.position());
        let mut macs: BTreeMap<(u16, Mac), &str> = BTreeMap::new();
        let mut routed = 0;
        let mut count = 0;
        for (name, port, bond) in config.interfaces() {
            count += 1;
            routed += usize::from(port.carries == Carries::Routed);
            for acl in [&port.acl_in, &port.acl_out].into_iter().flatten() {
                if !config.acls.contains_key(acl) {
                    self.error(
                        at(name),
                        &join("ports", name),
                        format!("there is no ACL {}", quoted(acl)),
                        "define it in the section acls",
                    );
                }
            }
            if port.sample && config.sflow.is_none() {
                self.error(
                    at(name),
                    &join("ports", name),
                    "`sample` needs the section sflow".into(),
                    "",
                );
            }
            if bond.is_some() {
                continue;
            }
            if let Carries::Access { vlan, .. } = port.carries {
                for mac in &port.macs {
                    if let Some(other) = macs.insert((vlan, *mac), name) {
                        self.error(
                            at(name),
                            &join("ports", name),
                            format!("{} of VLAN {vlan} is also on port {other}", show_mac(mac)),
                            "a MAC address is on one port of a VLAN",
                        );
                    }
                }
            }
        }
        if routed > 0 && routed < count {
            self.error(
                root.position(),
                "ports",
                "routed ports and VLAN ports cannot be mixed".into(),
                "use two files and two daemons",
            );
        }
        if count + config.bonds.len() > MOST_PORTS {
            self.error(
                root.position(),
                "ports",
                format!("there are {count} ports, more than {MOST_PORTS}"),
                "",
            );
        }
        let rules: usize = config.acls.values().map(Vec::len).sum();
        if rules > MOST_RULES {
            self.error(
                root.position(),
                "acls",
                format!("there are {rules} rules, more than {MOST_RULES}"),
                "",
            );
        }
    }

    fn interface_name(&mut self, at: Position, path: &str, name: &str) {
        let good = (1..=15).contains(&name.len())
            && !name.contains(|c: char| c.is_whitespace() || c == '/' || c.is_control())
            && name != "."
            && name != "..";
        if !good {
            self.error(
                at,
                path,
                format!("{} is not an interface name", quoted(name)),
                "1 to 15 bytes without / and spaces",
            );
        }
    }

    fn sflow(&mut self, at: Position, value: Value<'_>) -> Option<Sflow> {
        let mut sflow = Sflow {
            rate: 0,
            polling_interval: 20,
            drop_limit: 0,
            agent: IpAddr::from([127, 0, 0, 1]),
            collectors: Vec::new(),
        };
        for (key, at, value) in self.section(value, "sflow") {
            let path = join("sflow", key);
            match key {
                "sampling-rate" => sflow.rate = self.small(value, &path, 1, 1 << 30).unwrap_or(1),
                "polling-interval" => {
                    sflow.polling_interval = self.small(value, &path, 0, 86_400).unwrap_or(20)
                }
                "drop-limit" => {
                    sflow.drop_limit = self.small(value, &path, 0, 100_000).unwrap_or(0)
                }
                "agent" => {
                    sflow.agent = self
                        .scalar(value, &path, "an IP address")
                        .unwrap_or(sflow.agent)
                }
                "collectors" => {
                    for item in self.list(value, &path) {
                        if let Some(collector) =
                            self.scalar(item, &path, "an address with a port, as 192.0.2.1:6343")
                        {
                            sflow.collectors.push(collector);
                        }
                    }
                }
                _ => self.unknown_key(
                    at,
                    "sflow",
                    key,
                    "sampling-rate, polling-interval, drop-limit, agent, collectors",
                ),
            }
        }
        if sflow.rate == 0 || sflow.collectors.is_empty() {
            self.error(
                at,
                "sflow",
                "sampling-rate and collectors are needed".into(),
                "",
            );
            return None;
        }
        Some(sflow)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each key")]
    fn port(
        &mut self,
        at: Position,
        value: Value<'_>,
        path: &str,
        is_bond: bool,
    ) -> (Port, Vec<String>) {
        const KEYS: &str = "vlan, tunnel, priority-tags, trunk, native, tpid, routed, macs, addresses, guard, learn, unknown-unicast, answer, isolated, control, priority, acl-in, acl-out, police-in, police-out, storm, sample";
        let mut keys = PortKeys::default();
        let mut members = Vec::new();
        let mut port = Port {
            carries: Carries::Routed,
            macs: Vec::new(),
            addresses: Vec::new(),
            guard: Guard::default(),
            learn: false,
            unknown: Unknown::Flood,
            answer: false,
            isolated: false,
            control: false,
            priority: 0,
            acl_in: None,
            acl_out: None,
            police_in: None,
            police_out: None,
            storm: None,
            sample: false,
        };
        for (key, at, value) in self.section(value, path) {
            let path = &join(path, key);
            match key {
                "members" if is_bond => {
                    for item in self.list(value, path) {
                        members.extend(item.text().map(str::to_owned));
                    }
                }
                "vlan" => keys.vlan = self.small(value, path, 1, 4094),
                "tunnel" => keys.tunnel = self.boolean(value, path).unwrap_or_default(),
                "priority-tags" => {
                    keys.priority_tags = self.boolean(value, path).unwrap_or_default()
                }
                "trunk" => keys.trunk = Some(self.vlans(value, path)),
                "native" => keys.native = self.small(value, path, 1, 4094),
                "tpid" => {
                    keys.tpid = self.word(value, path, &[("802.1q", 0x8100), ("802.1ad", 0x88a8)])
                }
                "routed" => keys.routed = self.boolean(value, path).unwrap_or_default(),
                "macs" => {
                    for item in self.list(value, path) {
                        if let Some(mac) = self.scalar::<MacText>(
                            item,
                            path,
                            "a MAC address of one host, as 52:54:00:00:00:01",
                        ) {
                            port.macs.push(mac.0);
                        }
                    }
                }
                "addresses" => {
                    for item in self.list(value, path) {
                        port.addresses.extend(self.prefix(item, path));
                    }
                }
                "guard" => {
                    let mut guard = Guard::default();
                    for item in self.list(value, path) {
                        match self.word(
                            item,
                            path,
                            &[("mac", 0), ("ip", 1), ("servers", 2), ("none", 3)],
                        ) {
                            Some(0) => guard.mac = true,
                            Some(1) => guard.ip = true,
                            Some(2) => guard.servers = true,
                            _ => (),
                        }
                    }
                    keys.guard = Some(guard);
                }
                "learn" => keys.learn = self.boolean(value, path),
                "unknown-unicast" => {
                    let words = [
                        ("flood", Unknown::Flood),
                        ("drop", Unknown::Drop),
                        ("kernel", Unknown::Kernel),
                    ];
                    keys.unknown = self.word(value, path, &words);
                }
                "answer" => keys.answer = self.boolean(value, path),
                "isolated" => port.isolated = self.boolean(value, path).unwrap_or_default(),
                "control" => {
                    keys.control = self.word(value, path, &[("kernel", true), ("drop", false)]);
                }
                "priority" => port.priority = self.small(value, path, 0, 7).unwrap_or_default(),
                "acl-in" => port.acl_in = value.text().map(str::to_owned),
                "acl-out" => port.acl_out = value.text().map(str::to_owned),
                "police-in" => port.police_in = Some(self.limit(value, path)),
                "police-out" => port.police_out = Some(self.limit(value, path)),
                "storm" => port.storm = Some(self.limit(value, path)),
                "sample" => port.sample = self.boolean(value, path).unwrap_or_default(),
                _ => self.unknown_key(at, path.rsplit_once('.').map_or("", |it| it.0), key, KEYS),
            }
        }
        port.carries = self.carries(at, path, &keys);
        let access = matches!(port.carries, Carries::Access { .. });
        let known_guest = access && !port.macs.is_empty();
        port.guard = keys.guard.unwrap_or(Guard {
            mac: known_guest,
            ip: known_guest && !port.addresses.is_empty(),
            servers: access,
        });
        port.learn = keys
            .learn
            .unwrap_or(!known_guest && port.carries != Carries::Routed);
        port.unknown = keys.unknown.unwrap_or(Unknown::Flood);
        port.answer = keys.answer.unwrap_or(access);
        port.control = keys.control.unwrap_or(!access);
        if port.guard.mac && port.macs.is_empty() {
            self.error(
                at,
                path,
                "the guard of MAC addresses needs macs".into(),
                "or leave mac out of guard",
            );
        }
        if port.guard.ip && port.addresses.is_empty() {
            self.error(
                at,
                path,
                "the guard of IP addresses needs addresses".into(),
                "or leave ip out of guard",
            );
        }
        (port, members)
    }

    fn carries(&mut self, at: Position, path: &str, keys: &PortKeys) -> Carries {
        let kinds = usize::from(keys.vlan.is_some())
            + usize::from(keys.trunk.is_some())
            + usize::from(keys.routed);
        if kinds != 1 {
            self.error(
                at,
                path,
                "one of vlan, trunk and routed is needed, and only one".into(),
                "vlan: 100 for a guest, trunk: [100-199] for an uplink",
            );
        }
        if keys.trunk.is_none() && (keys.native.is_some() || keys.tpid.is_some()) {
            self.error(at, path, "native and tpid belong to a trunk".into(), "");
        }
        if let Some(vlan) = keys.vlan {
            return Carries::Access {
                vlan,
                tunnel: keys.tunnel,
                priority_tags: keys.priority_tags,
            };
        }
        match &keys.trunk {
            Some(vlans) => Carries::Trunk {
                vlans: vlans.clone(),
                native: keys.native,
                tpid: keys.tpid.unwrap_or(0x8100),
            },
            None => Carries::Routed,
        }
    }

    fn vlans(&mut self, value: Value<'_>, path: &str) -> BTreeSet<u16> {
        let mut vlans = BTreeSet::new();
        for item in self.list(value, path) {
            let text = item.text().unwrap_or_default();
            match range(text) {
                Some((first, last)) if first >= 1 && last <= 4094 => vlans.extend(first..=last),
                _ => self.error(
                    item.position(),
                    path,
                    format!("{} is not a VLAN or a range of VLANs", quoted(text)),
                    "1 to 4094, as 100 or 100-199",
                ),
            }
        }
        vlans
    }

    fn prefix(&mut self, value: Value<'_>, path: &str) -> Option<IpNet> {
        let text = value.text().unwrap_or_default();
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(IpNet::from(address));
        }
        self.scalar::<IpNet>(value, path, "an address or a prefix")
            .map(|net| net.trunc())
    }

    fn limit(&mut self, value: Value<'_>, path: &str) -> Limit {
        let mut limit = Limit {
            burst_ms: 10,
            ..Limit::default()
        };
        let at = value.position();
        for (key, at, value) in self.section(value, path) {
            let path = &join(path, key);
            match key {
                "packets" => limit.packets = self.number(value, path, 1, 1_000_000_000),
                "bits" => limit.bits = self.number(value, path, 8000, 1_000_000_000_000),
                "burst-ms" => limit.burst_ms = self.small(value, path, 1, 10_000).unwrap_or(10),
                _ => self.unknown_key(
                    at,
                    path.rsplit_once('.').map_or("", |it| it.0),
                    key,
                    "packets, bits, burst-ms",
                ),
            }
        }
        if limit.packets.is_none() && limit.bits.is_none() {
            self.error(
                at,
                path,
                "a limit has packets, bits, or both".into(),
                "packets: 100000",
            );
        }
        limit
    }

    fn acl(&mut self, at: Position, value: Value<'_>, path: &str) -> Vec<Rule> {
        let items = self.list(value, path);
        if items.len() > MOST_RULES_OF_ACL {
            self.error(
                at,
                path,
                format!(
                    "the ACL has {} rules, more than {MOST_RULES_OF_ACL}",
                    items.len()
                ),
                "",
            );
            return Vec::new();
        }
        items
            .into_iter()
            .enumerate()
            .map(|(number, item)| self.rule(item, &format!("{path}[{number}]")))
            .collect()
    }

    fn rule(&mut self, value: Value<'_>, path: &str) -> Rule {
        const KEYS: &str = "action, stateful, source, destination, protocol, source-port, destination-port, icmp-type, icmp-code, tcp-flags";
        let mut rule = Rule::any(false);
        let (mut action, mut code) = (None, None);
        for (key, at, value) in self.section(value, path) {
            let path = &join(path, key);
            match key {
                "action" => action = self.word(value, path, &[("permit", true), ("deny", false)]),
                "stateful" => rule.stateful = self.boolean(value, path).unwrap_or_default(),
                "source" => rule.source = self.prefix(value, path),
                "destination" => rule.destination = self.prefix(value, path),
                "protocol" => rule.protocol = self.protocol(value, path),
                "source-port" => rule.source_ports = self.port_range(value, path),
                "destination-port" => rule.destination_ports = self.port_range(value, path),
                "icmp-type" => rule.icmp = self.small(value, path, 0, 255).map(|kind| (kind, None)),
                "icmp-code" => code = self.small(value, path, 0, 255),
                "tcp-flags" => rule.tcp_flags = self.tcp_flags(value, path),
                _ => self.unknown_key(at, path.rsplit_once('.').map_or("", |it| it.0), key, KEYS),
            }
        }
        let at = value.position();
        match action {
            Some(permit) => rule.permit = permit,
            None => self.error(
                at,
                path,
                "action is needed".into(),
                "action: permit or action: deny",
            ),
        }
        if let Some((_, slot)) = &mut rule.icmp {
            *slot = code;
        } else if code.is_some() {
            self.error(at, path, "icmp-code needs icmp-type".into(), "");
        }
        let has_ports = rule.source_ports.is_some() || rule.destination_ports.is_some();
        if has_ports && !matches!(rule.protocol, Some(6 | 17 | 132)) {
            self.error(at, path, "ports need protocol: tcp, udp or sctp".into(), "");
        }
        if rule.icmp.is_some() && !matches!(rule.protocol, Some(1 | 58)) {
            self.error(
                at,
                path,
                "icmp-type needs protocol: icmp or icmp6".into(),
                "",
            );
        }
        if rule.tcp_flags.is_some() && rule.protocol != Some(6) {
            self.error(at, path, "tcp-flags need protocol: tcp".into(), "");
        }
        if rule.stateful && !rule.permit {
            self.error(at, path, "a stateful rule permits".into(), "action: permit");
        }
        if let (Some(source), Some(destination)) = (rule.source, rule.destination)
            && source.addr().is_ipv4() != destination.addr().is_ipv4()
        {
            self.error(
                at,
                path,
                "source and destination are of different families".into(),
                "",
            );
        }
        rule
    }

    fn protocol(&mut self, value: Value<'_>, path: &str) -> Option<u8> {
        let known = [
            ("icmp", 1),
            ("tcp", 6),
            ("udp", 17),
            ("gre", 47),
            ("esp", 50),
            ("icmp6", 58),
            ("ospf", 89),
            ("sctp", 132),
        ];
        let text = value.text().unwrap_or_default();
        match text.parse() {
            Ok(number) => Some(number),
            Err(_) => self.word(value, path, &known),
        }
    }

    fn port_range(&mut self, value: Value<'_>, path: &str) -> Option<(u16, u16)> {
        let text = value.text().unwrap_or_default();
        let found = range(text);
        if found.is_none() {
            self.error(
                value.position(),
                path,
                format!("{} is not a port or a range of ports", quoted(text)),
                "as 80 or 8000-8080",
            );
        }
        found
    }

    /// `syn,!ack`: these flags set, those with ! not.
    fn tcp_flags(&mut self, value: Value<'_>, path: &str) -> Option<(u8, u8)> {
        let (mut mask, mut set) = (0, 0);
        let names = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];
        for word in value.text().unwrap_or_default().split(',') {
            let (name, wanted) = word
                .trim()
                .strip_prefix('!')
                .map_or((word.trim(), true), |name| (name, false));
            let Some(bit) = names.iter().position(|known| *known == name) else {
                self.error(
                    value.position(),
                    path,
                    format!("{} is not a TCP flag", quoted(name)),
                    &format!("of {}, as syn,!ack", names.join(", ")),
                );
                return None;
            };
            mask |= 1 << bit;
            set |= u8::from(wanted) << bit;
        }
        Some((mask, set))
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// `5` or `5-9`.
fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last).then_some((first, last))
}

/// A MAC address of one host in the file.
struct MacText(Mac);

impl FromStr for MacText {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut mac = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(())?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ())?;
        }
        let good = parts.next().is_none() && mac[0] & 1 == 0 && mac != [0; 6];
        good.then_some(MacText(mac)).ok_or(())
    }
}

/// A MAC address as it is written.
#[must_use]
pub fn show_mac(mac: &Mac) -> String {
    let parts: Vec<_> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}
