//! The one table of keys: everything the file may say.
//!
//! A row gives a key's place (`*` stands for a name, `[]` for an item of a list), its type with
//! range, its default, one sentence and a right example. Checking, suggestions, error texts and
//! the reference page (`docs/configuration.md`) come from here, so whoever adds a feature adds
//! rows here, fields in `model.rs` and reading in `build.rs`; a test holds the defaults of table
//! and model equal, and each example is put through `check`.
//!
//! Keys that vppcfg has and this version lacks are rows, too, so that an existing file is told
//! what is lacking and not that its keys are unknown.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::scalar::decimal;

/// What may stand behind a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Known keys, one level down.
    Section,
    /// Names of this sort as keys.
    Named(Names),
    /// Items, from `0` to `1` of them.
    List(usize, usize),
    /// One next hop, a list of them, or a word for none.
    Via,
    /// A whole number from `0` to `1`.
    Whole(u64, u64),
    /// A power of two from `0` to `1`.
    PowerOfTwo(u64, u64),
    /// true or false.
    Truth,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Text of at most so many characters.
    Text(usize),
    /// The name of an interface of this file.
    InterfaceName,
    /// The name of a table of this file.
    VrfName,
    /// The same, or `default`.
    TableName,
    /// The name of a Linux network device.
    LinuxName,
    /// A file of at most so many bytes of path.
    File(usize),
    /// Where both ends of a memif connection meet.
    MemifSocket,
    /// What only those who may must know: text of at most so many bytes, in no message.
    Secret(usize),
    /// A unicast MAC address.
    UnicastMac,
    /// Any MAC address.
    Mac,
    /// An own address with its subnet.
    OwnAddress,
    /// A prefix without host bits.
    Prefix,
    /// The address of one neighbour.
    Neighbor,
    /// An IPv4 or IPv6 address.
    Ip,
    /// A host by address or by name.
    Host,
    /// An address, or an interface of this file that has one.
    AddressOrInterface,
    /// A prefix, or what is not in one with a `!` before it.
    Cidr,
    /// A name in the DNS.
    HostName,
    /// The name of a network namespace.
    NamespaceName,
    /// An IPv4 or IPv6 address to listen on, also "any".
    ListenAddress,
    /// The name of a Unix group.
    UnixGroup,
    /// An address or a prefix without host bits, of either family.
    AnyPrefix,
    /// `any`, an address, a prefix, or the name of a prefix list.
    Scope,
    /// The name or number of an IP protocol.
    Protocol,
    /// `any`, ports by number or name, or a range of them.
    Ports,
    /// `any`, a number up to 255, or a range of them.
    Octets,
    /// The name of an access list of this file.
    AccessListName,
    /// A SHA-256 hash in hexadecimal.
    Sha256,
    /// An IPv4 address or a range of them.
    AddressRange,
    /// A port or a range of them.
    PortRange,
    /// vppcfg has it, this version not.
    Unsupported,
}

/// What the names in a section of names are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// Of interfaces.
    Interface,
    /// Of access lists.
    AccessList,
    /// Of prefix lists.
    PrefixList,
    /// Of record sets.
    RecordSet,
    /// Of sub-interfaces: numbers from 1.
    SubInterface,
    /// Of tables.
    Vrf,
    /// A word and a number up to this one, as `loop0`.
    Numbered(&'static str, u32),
}

impl Names {
    /// vppcfg's names of loopbacks, with its limit.
    pub(crate) const LOOPBACKS: Self = Self::Numbered("loop", 4095);
    /// vppcfg's names of bonds, with its limit.
    pub(crate) const BONDS: Self = Self::Numbered("BondEthernet", 4_294_967_294);
    /// Names of pseudowires.
    pub(crate) const PSEUDOWIRES: Self = Self::Numbered("pw", 4_294_967_294);
    /// vppcfg's names of TAPs, with its limit.
    pub(crate) const TAPS: Self = Self::Numbered("tap", 1024);
    /// vppcfg's names of VXLAN tunnels, with its limit.
    pub(crate) const VXLAN_TUNNELS: Self = Self::Numbered("vxlan_tunnel", 2_147_483_647);
    /// vppcfg's names of bridge domains, with its limit.
    pub(crate) const BRIDGES: Self = Self::Numbered("bd", 16_777_215);

    /// The number behind the word, whether or not it is within the limit.
    pub(crate) fn numbers(self, name: &str) -> Option<u64> {
        match self {
            Self::Interface | Self::Vrf | Self::AccessList | Self::PrefixList | Self::RecordSet => None,
            Self::SubInterface => decimal(name),
            Self::Numbered(word, _) => decimal(name.strip_prefix(word)?),
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// Where it stands, as `interfaces.*.mtu`.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    /// As the file would spell it; `REQUIRED`, or empty when absence means something else, which
    /// `about` then says.
    pub(crate) default: &'static str,
    /// One sentence for the reference.
    pub(crate) about: &'static str,
    /// A right value.
    pub(crate) example: &'static str,
    /// The drivers it is for; empty = all.
    pub(crate) drivers: &'static [&'static str],
}

/// In place of a default: the key must be there.
pub(crate) const REQUIRED: &str = "required";

impl Key {
    /// The last word of the path.
    pub(crate) fn name(&self) -> &'static str {
        split(self.path.strip_suffix("[]").unwrap_or(self.path)).1
    }

    pub(crate) fn is_required(&self) -> bool {
        self.default == REQUIRED
    }

    pub(crate) fn parent(&self) -> &'static str {
        self.path.strip_suffix("[]").unwrap_or_else(|| split(self.path).0)
    }
}

/// A path's last key, and all before it. hsflowd has one key with a dot in its name.
fn split(path: &'static str) -> (&'static str, &'static str) {
    const DOTTED: &str = "agent.cidr";
    match path.strip_suffix(DOTTED).and_then(|parent| parent.strip_suffix('.')) {
        Some(parent) => (parent, DOTTED),
        None => path.rsplit_once('.').unwrap_or(("", path)),
    }
}

const fn key(path: &'static str, kind: Kind, default: &'static str, example: &'static str, about: &'static str) -> Key {
    Key { path, kind, default, about, example, drivers: &[] }
}

const fn of(drivers: &'static [&'static str], row: Key) -> Key {
    Key { drivers, ..row }
}

const fn lacks(path: &'static str) -> Key {
    key(path, Kind::Unsupported, "", "", "")
}

use Kind::{
    AccessListName, AddressOrInterface, AddressRange, AnyPrefix, Cidr, File, Host, HostName, InterfaceName, Ip, LinuxName, List,
    ListenAddress, Mac, MemifSocket, Named, NamespaceName, Neighbor, Octets, OwnAddress, PortRange, Ports, PowerOfTwo, Prefix, Protocol,
    Scope, Secret, Section, Sha256, TableName, Text, Truth, UnicastMac, UnixGroup, Via, VrfName, Whole, Word,
};

const LINUX: &[&str] = &["af-xdp", "tap"];
const XDP: &[&str] = &["af-xdp"];
const PCAP: &[&str] = &["pcap"];
const MEMIF: &[&str] = &["memif"];
const QUEUED: &[&str] = &["af-xdp", "memif"];
const TAP: &[&str] = &["tap"];
const GENERATOR: &[&str] = &["generator"];

const LOOPBACKS: Kind = Named(Names::LOOPBACKS);
const TAPS: Kind = Named(Names::TAPS);
const BRIDGES: Kind = Named(Names::BRIDGES);
const SUB_INTERFACES: Kind = Named(Names::SubInterface);
const BONDS: Kind = Named(Names::BONDS);
const PSEUDOWIRES: Kind = Named(Names::PSEUDOWIRES);
const VXLAN_TUNNELS: Kind = Named(Names::VXLAN_TUNNELS);

/// The drivers a device can have.
pub(crate) const DRIVERS: &[&str] = &["af-xdp", "tap", "pcap", "memif", "null", "generator"];

/// Every key, in the order of the reference.
#[rustfmt::skip]
pub(crate) static KEYS: &[Key] = &[
    key("interfaces", Named(Names::Interface), "{}", "{xe0: {mtu: 1500}}", "Interfaces by name: a letter, then up to 31 letters, digits, `.`, `_`, `/` or `-`."),
    key("interfaces.*", Section, "{}", "{mtu: 1500}", "One interface."),
    key("interfaces.*.description", Text(255), "", "to the core", "Free text for people; absent by default."),
    key("interfaces.*.device", Section, "", "{driver: af-xdp, name: eth1}", "What the interface is attached to; one without a device is known but carries nothing."),
    key("interfaces.*.device.driver", Word(DRIVERS), REQUIRED, "af-xdp", "Who moves the packets: a Linux network device through AF_XDP, a TAP that is made, capture files, memory shared with another program (memif, Ethernet mode), nothing at all, or packets made in memory."),
    of(LINUX, key("interfaces.*.device.name", LinuxName, REQUIRED, "eth1", "The Linux name of the network device (af-xdp), or the one that the TAP gets (tap).")),
    of(QUEUED, key("interfaces.*.device.queues", Whole(1, 64), "1", "2", "How many queues of the device are served, from queue 0 upwards (af-xdp), or there are in each direction (memif).")),
    of(XDP, key("interfaces.*.device.mode", Word(&["auto", "zero-copy", "native", "generic"]), "auto", "native", "How AF_XDP attaches: `auto` takes the best the driver offers, the others exactly that or nothing.")),
    of(TAP, key("interfaces.*.device.host-mac", UnicastMac, "", "02:00:00:00:00:0a", "The MAC address of the Linux end of the TAP; made up by the kernel when absent.")),
    of(PCAP, key("interfaces.*.device.input", File(4095), "", "in.pcap", "The capture whose packets arrive; nothing arrives when absent.")),
    of(PCAP, key("interfaces.*.device.output", File(4095), "", "out.pcap", "The capture that leaving packets are written to; they vanish, counted, when absent.")),
    of(MEMIF, key("interfaces.*.device.socket", MemifSocket, REQUIRED, "/run/vpp/memif.sock", "Where both ends meet: an absolute path of at most 107 bytes, or `@NAME` in the abstract space of the network namespace. Several masters with different `id`s may share one.")),
    of(MEMIF, key("interfaces.*.device.id", Whole(0, u32::MAX as u64), "0", "7", "Which of the interfaces at that socket.")),
    of(MEMIF, key("interfaces.*.device.role", Word(&["master", "slave"]), REQUIRED, "slave", "Which end this is: `master` listens and copies frames, `slave` connects and lets the master read and write its packet memory, all of it, which spares every copy. DPDK says server and client.")),
    of(MEMIF, key("interfaces.*.device.secret", Secret(24), "", "sesame", "What the other end must know, 1 to 24 bytes; nobody is asked when absent. Whoever may read the configuration can read it: it keeps ends apart that do not belong together, and does not replace the socket's permissions.")),
    of(MEMIF, key("interfaces.*.device.ring-size", PowerOfTwo(32, 16_384), "1024", "2048", "Descriptors of each ring; the slave's counts for both ends.")),
    of(MEMIF, key("interfaces.*.device.buffer-size", Whole(256, 2240), "2048", "2240", "As slave, the bytes of each buffer that the master may fill; a longer frame takes several.")),
    of(GENERATOR, key("interfaces.*.device.streams", List(1, 256), REQUIRED, "[{name: a, source: 10.0.0.1, destination: 10.0.1.1}]", "The streams of packets that are made; they take turns.")),
    key("interfaces.*.device.streams[]", Section, "", "{name: a, source: 10.0.0.1, destination: 10.0.1.1}", "One stream."),
    key("interfaces.*.device.streams[].name", Text(32), REQUIRED, "a", "Its name in counters and messages, once in a device."),
    key("interfaces.*.device.streams[].limit", Whole(0, u64::MAX), "0", "1000000", "Packets until it ends; 0 = endless."),
    key("interfaces.*.device.streams[].rate", Whole(0, 1_000_000_000), "0", "50000", "Packets a second; 0 = as fast as it goes."),
    key("interfaces.*.device.streams[].size", Whole(60, 9216), "60", "1400", "Bytes of each frame, Ethernet header included, frame check sequence not."),
    key("interfaces.*.device.streams[].source-mac", UnicastMac, "02:77:65:69:72:01", "02:00:00:00:00:07", "Where the frames claim to come from."),
    key("interfaces.*.device.streams[].destination-mac", Mac, "", "02:00:00:00:00:01", "Where they go; the interface's own address when absent, so that they are routed."),
    key("interfaces.*.device.streams[].source", AddressRange, REQUIRED, "10.0.0.1-10.0.0.9", "Source addresses, walked through in turn."),
    key("interfaces.*.device.streams[].destination", AddressRange, REQUIRED, "10.0.1.1", "Destination addresses, walked through in turn."),
    key("interfaces.*.device.streams[].source-port", PortRange, "1024", "1024-2047", "Source ports, walked through in turn; unused with icmp."),
    key("interfaces.*.device.streams[].destination-port", PortRange, "9", "53", "Destination ports, walked through in turn; unused with icmp."),
    key("interfaces.*.device.streams[].protocol", Word(&["udp", "tcp", "icmp"]), "udp", "tcp", "What follows the IPv4 header: UDP, TCP without a connection, or ICMP echo requests."),
    key("interfaces.*.mac", UnicastMac, "", "02:00:00:00:00:01", "Its MAC address; the device's own when absent."),
    key("interfaces.*.mtu", Whole(128, 9216), "1500", "9000", "The largest IP packet that leaves it, in bytes."),
    key("interfaces.*.state", Word(&["up", "down"]), "up", "down", "Whether it is wanted up."),
    key("interfaces.*.vrf", VrfName, "", "red", "The table that routes what comes in, and that its own subnets are in; the default one when absent."),
    key("interfaces.*.addresses", List(0, 65_536), "[]", "[192.0.2.1/24, '2001:db8::1/64']", "Own IPv4 and IPv6 addresses with their subnets. No two interfaces of one table share a subnet. An interface with an IPv6 address also has a link-local one, made from its MAC address unless one is given here."),
    key("interfaces.*.addresses[]", OwnAddress, "", "192.0.2.1/24", "An own address."),
    key("interfaces.*.l2xc", InterfaceName, "", "xe1", "The interface that everything received here leaves by, unlooked at (L2 cross connect). Neither of the two has addresses, both have the same MTU, and an interface is the target of one other at most. For both directions, set it on both."),
    key("interfaces.*.acl", Section, "{}", "{input: [web]}", "The access lists that its packets pass; what no term of them matches is dropped, what is not IP passes."),
    key("interfaces.*.acl.input", List(0, 16), "[]", "[web]", "Lists for packets that come in, one after the other."),
    key("interfaces.*.acl.input[]", AccessListName, "", "web", "A list under `acls`."),
    key("interfaces.*.acl.output", List(0, 16), "[]", "[web]", "Lists for packets that go out."),
    key("interfaces.*.acl.output[]", AccessListName, "", "web", "A list under `acls`."),
    key("interfaces.*.urpf", Word(&["loose", "strict"]), "", "strict", "Unicast reverse path forwarding (RFC 3704): drop what comes in from a source to which no route leads back (`loose`; the default route counts, a `blackhole` one does not) or none by this interface (`strict`; each path of a route counts). Not looked at when absent."),
    key("interfaces.*.sflow", Truth, "false", "true", "Whether received packets are sampled."),
    key("interfaces.*.mpls", Truth, "false", "true", "Whether labelled packets (MPLS) are taken here; sending them needs nothing."),
    key("interfaces.*.rx-queue-workers", List(0, 64), "[]", "[0, 1]", "The worker of receive queue 0, 1, …; queues beyond the list are placed by the router."),
    key("interfaces.*.rx-queue-workers[]", Whole(0, 63), "", "0", "A worker, counted from 0."),
    key("interfaces.*.router-advertisements", Section, "", "{interval: 200, lifetime: 600}", "Advertise this router to the hosts on the link (RFC 4861); not done when absent. Hosts then make themselves addresses of the interface's IPv6 subnets of 64 bits, and take it for a default router."),
    key("interfaces.*.router-advertisements.interval", Whole(4, 1800), REQUIRED, "200", "The most seconds between two advertisements; the least are a third of it."),
    key("interfaces.*.router-advertisements.lifetime", Whole(0, 9000), "1800", "600", "Seconds that hosts may take it for a default router after each; 0 = never, else not below `interval`."),
    key("interfaces.*.router-advertisements.managed", Truth, "false", "true", "Whether hosts are told to ask DHCPv6 for addresses."),
    key("interfaces.*.router-advertisements.other", Truth, "false", "true", "Whether hosts are told to ask DHCPv6 for other settings."),
    lacks("interfaces.*.lcp"),
    key("interfaces.*.unnumbered", InterfaceName, "", "xe1", "The interface whose addresses are borrowed, mostly a loopback: packets are routed here, and what is said from here is said from those, though its subnets are not on this link. Next hops and static neighbors name this interface and may have any address; neighbors of the borrowed subnets are learned. It has no addresses of its own, and both are in one table."),
    lacks("interfaces.*.device-type"),
    key("interfaces.*.sub-interfaces", SUB_INTERFACES, "{}", "{100: {addresses: [192.0.2.1/24]}}", "Sub-interfaces by number, 1 to 4294967295: each takes the frames with its tags and is an interface called `PARENT.NUMBER`, as `xe0.100`. An interface with sub-interfaces has no `l2xc` of its own."),
    key("interfaces.*.sub-interfaces.*", Section, "{}", "{addresses: [192.0.2.1/24]}", "One sub-interface."),
    key("interfaces.*.sub-interfaces.*.description", Text(255), "", "customer 7", "Free text for people; absent by default."),
    key("interfaces.*.sub-interfaces.*.mtu", Whole(128, 9216), "", "1400", "The largest IP packet that leaves it, in bytes; its parent's when absent, and never more."),
    key("interfaces.*.sub-interfaces.*.state", Word(&["up", "down"]), "up", "down", "Whether it is wanted up; not while its parent is down."),
    key("interfaces.*.sub-interfaces.*.encapsulation", Section, "", "{dot1ad: 100, inner-dot1q: 200, exact-match: true}", "The tags of its frames, which no other sub-interface of the parent has; its number as VLAN, and `exact-match`, when absent. Of several that could take a frame, the one that says most tags does."),
    key("interfaces.*.sub-interfaces.*.encapsulation.dot1q", Whole(1, 4094), "", "100", "VLAN of the outer tag, an 802.1Q tag (0x8100)."),
    key("interfaces.*.sub-interfaces.*.encapsulation.dot1ad", Whole(1, 4094), "", "100", "VLAN of the outer tag, an 802.1ad tag (0x88a8), in place of `dot1q`."),
    key("interfaces.*.sub-interfaces.*.encapsulation.inner-dot1q", Whole(1, 4094), "", "200", "VLAN of the tag behind the outer one, an 802.1Q tag."),
    key("interfaces.*.sub-interfaces.*.encapsulation.exact-match", Truth, "false", "true", "Whether frames have these tags and no other; needed where there are addresses."),
    key("interfaces.*.sub-interfaces.*.vrf", VrfName, "", "red", "The table that routes what comes in, and that its own subnets are in; the default one when absent, whatever its parent's is."),
    key("interfaces.*.sub-interfaces.*.addresses", List(0, 65_536), "[]", "[192.0.2.1/24]", "Own addresses with their subnets, under the same rules as those of interfaces."),
    key("interfaces.*.sub-interfaces.*.addresses[]", OwnAddress, "", "192.0.2.1/24", "An own address."),
    key("interfaces.*.sub-interfaces.*.l2xc", InterfaceName, "", "xe1", "The interface that everything received here leaves by, as for interfaces. It comes without its tags, unless `tag-rewrite` says otherwise, and leaves with those of the other."),
    key("interfaces.*.sub-interfaces.*.tag-rewrite", Section, "", "{pop: 1, dot1q: 300}", "What becomes of the tags of a frame that comes in to cross to another interface; what goes out by here gets the reverse. Without it all tags of the encapsulation go. `{pop: 0}` leaves them, and puts none on what goes out."),
    key("interfaces.*.sub-interfaces.*.tag-rewrite.pop", Whole(0, 2), REQUIRED, "1", "How many outer tags go; no more than the encapsulation has."),
    key("interfaces.*.sub-interfaces.*.tag-rewrite.dot1q", Whole(1, 4094), "", "300", "VLAN of an 802.1Q tag that comes in their place, outermost. It has the priority of the outer tag that went, if one did."),
    key("interfaces.*.sub-interfaces.*.tag-rewrite.dot1ad", Whole(1, 4094), "", "300", "The same with an 802.1ad tag, in place of `dot1q`."),
    key("interfaces.*.sub-interfaces.*.tag-rewrite.inner-dot1q", Whole(1, 4094), "", "400", "VLAN of an 802.1Q tag behind that one."),
    key("interfaces.*.sub-interfaces.*.mpls", Truth, "false", "true", "Whether labelled packets (MPLS) are taken here; needs `exact-match`."),
    key("interfaces.*.sub-interfaces.*.acl", Section, "{}", "{input: [web]}", "The access lists that its packets pass, as for interfaces. Those of its parent are not for them."),
    key("interfaces.*.sub-interfaces.*.acl.input", List(0, 16), "[]", "[web]", "Lists for packets that come in, one after the other."),
    key("interfaces.*.sub-interfaces.*.acl.input[]", AccessListName, "", "web", "A list under `acls`."),
    key("interfaces.*.sub-interfaces.*.acl.output", List(0, 16), "[]", "[web]", "Lists for packets that go out."),
    key("interfaces.*.sub-interfaces.*.acl.output[]", AccessListName, "", "web", "A list under `acls`."),
    key("interfaces.*.sub-interfaces.*.urpf", Word(&["loose", "strict"]), "", "strict", "Unicast reverse path forwarding, as for interfaces."),
    lacks("interfaces.*.sub-interfaces.*.lcp"),
    key("interfaces.*.sub-interfaces.*.unnumbered", InterfaceName, "", "xe1", "The interface whose addresses are borrowed, as for interfaces."),

    key("loopbacks", LOOPBACKS, "{}", "{loop0: {addresses: [192.0.2.255/32]}}", "Interfaces with nothing behind them, `loop0` to `loop4095`: always up, and their addresses answer through every other interface."),
    key("loopbacks.*", Section, "{}", "{addresses: [192.0.2.255/32]}", "One loopback."),
    key("loopbacks.*.description", Text(255), "", "router id", "Free text for people; absent by default."),
    key("loopbacks.*.mac", UnicastMac, "", "02:00:00:00:00:0b", "Its MAC address; made up when absent."),
    key("loopbacks.*.mtu", Whole(128, 9216), "1500", "9000", "Its MTU in bytes."),
    key("loopbacks.*.vrf", VrfName, "", "red", "The table that its addresses are in; the default one when absent."),
    key("loopbacks.*.addresses", List(0, 65_536), "[]", "[192.0.2.255/32]", "Own addresses with their subnets, under the same rules as those of interfaces."),
    key("loopbacks.*.addresses[]", OwnAddress, "", "192.0.2.255/32", "An own address."),
    lacks("loopbacks.*.lcp"),
    lacks("loopbacks.*.unnumbered"),
    key("loopbacks.*.mpls", Truth, "false", "true", "Whether labelled packets (MPLS) are taken that come in by it as the routed side of a bridge domain."),

    key("taps", TAPS, "{}", "{tap0: {host: {name: lan0}}}", "TAPs in vppcfg's form, `tap0` to `tap1024`. Each is an interface of the same name; an entry under `interfaces`, without `device`, sets its addresses, state and all else. `device: {driver: tap}` says the same for an interface of any name."),
    key("taps.*", Section, "", "{host: {name: lan0}}", "One TAP."),
    key("taps.*.description", Text(255), "", "to Linux", "Free text for people; a description under `interfaces` goes before it."),
    key("taps.*.host", Section, REQUIRED, "{name: lan0, mtu: 9000}", "The Linux end."),
    key("taps.*.host.name", LinuxName, REQUIRED, "lan0", "The Linux name it gets."),
    key("taps.*.host.mac", UnicastMac, "", "02:00:00:00:00:0a", "Its MAC address; made up by the kernel when absent."),
    key("taps.*.host.mtu", Whole(128, 9216), "1500", "9000", "The MTU of both ends. An `mtu` under `interfaces` says the same, so that the two agree when both are given."),
    lacks("taps.*.host.bridge"),
    lacks("taps.*.host.bridge-create"),
    lacks("taps.*.host.namespace"),
    lacks("taps.*.host.namespace-create"),
    key("taps.*.rx-ring-size", PowerOfTwo(8, 32_768), "", "256", "Read for vppcfg's sake, and without effect: the kernel's TAP has no ring of descriptors."),
    key("taps.*.tx-ring-size", PowerOfTwo(8, 32_768), "", "256", "As `rx-ring-size`."),

    key("bondethernets", BONDS, "{}", "{BondEthernet0: {interfaces: [xe0, xe1]}}", "Bonds, `BondEthernet0` to `BondEthernet4294967294`: several ports as one. Each is an interface of the same name; an entry under `interfaces`, without `device` and `mac`, sets its addresses, MTU, cross connect and all else."),
    key("bondethernets.*", Section, "{}", "{interfaces: [xe0, xe1]}", "One bond."),
    key("bondethernets.*.description", Text(255), "", "to the switch", "Free text for people; a description under `interfaces` goes before it."),
    key("bondethernets.*.mac", UnicastMac, "", "02:00:00:00:00:0b", "Its MAC address, which LACP tells the far end as the system's; that of the member first by name when absent."),
    key("bondethernets.*.interfaces", List(0, 64), "[]", "[xe0, xe1]", "Its members: interfaces with a device of their own and the MTU of the bond, without addresses and cross connect, each in one bond."),
    key("bondethernets.*.interfaces[]", InterfaceName, "", "xe0", "A member."),
    key("bondethernets.*.mode", Word(&["round-robin", "active-backup", "broadcast", "lacp", "xor"]), "lacp", "active-backup", "Which members carry frames: with `lacp` those that both ends agreed on (IEEE 802.1AX), with `xor` all whose link is up, both by flow; with `active-backup` the first by name whose link is up; with `round-robin` one after the other, with `broadcast` all of them, for every frame."),
    key("bondethernets.*.load-balance", Word(&["l2", "l23", "l34"]), "l34", "l2", "What keeps a flow on one member, in modes `lacp` and `xor`: MAC addresses, those and IP addresses, or IP addresses, protocol and ports. VLAN tags are looked through."),
    key("bondethernets.*.lacp-rate", Word(&["slow", "fast"]), "slow", "fast", "How often the far end is asked to speak, in mode `lacp`: every 30 seconds, its silence counting after 90, or every second, counting after 3. (vppcfg does not have this key.)"),

    key("vxlan_tunnels", VXLAN_TUNNELS, "{}", "{vxlan_tunnel1: {local: 192.0.2.1, remote: 192.0.2.2, vni: 100}}", "VXLAN tunnels (RFC 7348), `vxlan_tunnel0` to `vxlan_tunnel2147483647`: frames inside of UDP packets, between this router and one other. Each is an interface of the same name, a member of a bridge domain or an end of a cross connect as any other; an entry under `interfaces`, without `device`, sets its MTU, cross connect and all else. The packets are routed by the default table, are never fragmented (an IPv4 tunnel adds 50 bytes to each frame, an IPv6 tunnel 70), and come from a source port that tells the flows inside apart."),
    key("vxlan_tunnels.*", Section, "", "{local: 192.0.2.1, remote: 192.0.2.2, vni: 100}", "One tunnel."),
    key("vxlan_tunnels.*.description", Text(255), "", "to the other site", "Free text for people; a description under `interfaces` goes before it."),
    key("vxlan_tunnels.*.local", Ip, REQUIRED, "192.0.2.1", "The address that packets come from and are taken at: one of this router's own, in the default table."),
    key("vxlan_tunnels.*.remote", Ip, REQUIRED, "192.0.2.2", "The address of the other router, of the same IP version. Groups are not supported."),
    key("vxlan_tunnels.*.vni", Whole(1, 16_777_215), REQUIRED, "100", "The segment. No two tunnels have the same ends and the same segment."),

    key("bridgedomains", BRIDGES, "{}", "{bd1: {interfaces: [xe0, xe1]}}", "Bridge domains, `bd1` to `bd16777215`: each sends frames between its members by MAC address."),
    key("bridgedomains.*", Section, "{}", "{interfaces: [xe0, xe1]}", "One bridge domain."),
    key("bridgedomains.*.description", Text(255), "", "the office", "Free text for people; absent by default."),
    key("bridgedomains.*.mtu", Whole(128, 9216), "1500", "9000", "The MTU of all its members and of its BVI."),
    key("bridgedomains.*.bvi", InterfaceName, "", "loop0", "The loopback that is its routed side: it is behind the BVI's addresses that the members' stations find the router."),
    key("bridgedomains.*.interfaces", List(0, 4096), "[]", "[xe0, xe1]", "Its members: interfaces without addresses and cross connect, each in one domain."),
    key("bridgedomains.*.interfaces[]", InterfaceName, "", "xe0", "A member."),
    key("bridgedomains.*.split-horizon-groups", List(0, 4096), "[]", "[{interface: xe0, group: 1}]", "Members that send nothing to one another, as those towards the other routers of a full mesh."),
    key("bridgedomains.*.split-horizon-groups[]", Section, "", "{interface: xe0, group: 1}", "One member's group."),
    key("bridgedomains.*.split-horizon-groups[].interface", InterfaceName, REQUIRED, "xe0", "The member."),
    key("bridgedomains.*.split-horizon-groups[].group", Whole(1, 255), REQUIRED, "1", "Its group."),
    key("bridgedomains.*.static-macs", List(0, 16_384), "[]", "[{mac: 02:00:00:00:00:07, interface: xe0}]", "Stations that are always behind one member; what others send in their name is dropped."),
    key("bridgedomains.*.static-macs[]", Section, "", "{mac: 02:00:00:00:00:07, interface: xe0}", "One station."),
    key("bridgedomains.*.static-macs[].mac", UnicastMac, REQUIRED, "02:00:00:00:00:07", "Its MAC address."),
    key("bridgedomains.*.static-macs[].interface", InterfaceName, REQUIRED, "xe0", "The member it is behind."),
    key("bridgedomains.*.arp-entries", List(0, 65_536), "[]", "[{address: 192.0.2.7, mac: 02:00:00:00:00:07}]", "Addresses of stations, for `arp-termination` and `arp-unicast-forward`."),
    key("bridgedomains.*.arp-entries[]", Section, "", "{address: 192.0.2.7, mac: 02:00:00:00:00:07}", "One address."),
    key("bridgedomains.*.arp-entries[].address", Neighbor, REQUIRED, "192.0.2.7", "The address, of either IP version."),
    key("bridgedomains.*.arp-entries[].mac", UnicastMac, REQUIRED, "02:00:00:00:00:07", "The MAC address of the station that has it."),
    key("bridgedomains.*.settings", Section, "{}", "{mac-age-minutes: 10}", "What it does with frames."),
    key("bridgedomains.*.settings.learn", Truth, "true", "false", "Whether it learns where stations are."),
    key("bridgedomains.*.settings.unicast-flood", Truth, "true", "false", "Whether frames for groups, broadcast among them, go to all members. (The name is vppcfg's, for VPP's `flood`.)"),
    key("bridgedomains.*.settings.unknown-unicast-flood", Truth, "true", "false", "Whether frames for stations that are not known go to all members."),
    key("bridgedomains.*.settings.unicast-forward", Truth, "true", "false", "Whether frames go to stations that are known."),
    key("bridgedomains.*.settings.mac-age-minutes", Whole(0, 255), "5", "10", "Minutes of silence after which a station is forgotten; 0 = never. (vppcfg's default is 0; this one is IEEE 802.1Q's.)"),
    key("bridgedomains.*.settings.mac-limit", Whole(1, 1_048_576), "16384", "1000", "How many stations it learns at most; frames of others are forwarded all the same."),
    key("bridgedomains.*.settings.flood-limit", Whole(0, 100_000_000), "0", "1000", "Frames for groups that each member may send a second, others are dropped; 0 = any number."),
    key("bridgedomains.*.settings.unknown-unicast-limit", Whole(0, 100_000_000), "0", "1000", "The same for frames to stations that are not known."),
    key("bridgedomains.*.settings.arp-termination", Truth, "false", "true", "Whether it answers itself who asks for an address of `arp-entries`, by ARP or neighbour discovery; other questions are flooded."),
    key("bridgedomains.*.settings.arp-unicast-forward", Truth, "false", "true", "Whether such questions go to the station alone; goes before `arp-termination`."),

    key("sflow", Section, "{}", "{sampling-rate: 1000}", "How sampled interfaces are sampled, and where samples go. hsflowd's names of keys are read, too: `sampling`, `polling`, `headerBytes`, `datagramBytes`, `agentIP`, `subAgentId`, and of collectors `ip` and `udpport`."),
    key("sflow.sampling-rate", Whole(0, u32::MAX as u64), "10000", "1000", "One packet in this many is sampled; 0 = none."),
    key("sflow.polling-interval", Whole(0, 86_400), "20", "30", "Seconds between two reports of an interface's counters; 0 = never."),
    key("sflow.header-bytes", Whole(1, 256), "128", "64", "Bytes of each sampled packet that are reported."),
    key("sflow.direction", Word(&["rx", "tx", "both"]), "rx", "both", "Which packets of a sampled interface are sampled: those that come in, those that go out, or both."),
    key("sflow.drop-limit", Whole(0, 100_000), "0", "100", "Discarded packets that are told a second at most, each with its reason (sFlow 0:5); 0 = none."),
    key("sflow.encoding", Word(&["expanded", "compact"]), "expanded", "compact", "The form of samples; `compact` needs interface indices below 2^24."),
    key("sflow.agent", AddressOrInterface, "", "192.0.2.1", "The address the agent goes by, or, as in hsflowd, the interface whose addresses go before others; when absent, one of its own, chosen as hsflowd does: global IPv4, private IPv4, global IPv6, unique local IPv6, IPv4 and IPv6 of sub-interfaces, link-local ones; of one sort that of the interface with the lowest number."),
    key("sflow.agent.cidr", List(0, 16), "[]", "[10.0.0.0/8, '!10.9.0.0/16']", "Prefixes of addresses that go before others as the agent's; with `!`, of those that come last. Of an address the last prefix counts that it is in, and of two the one listed earlier goes before the other."),
    key("sflow.agent.cidr[]", Cidr, "", "10.0.0.0/8", "An address or a prefix, or `!` and one of them."),
    key("sflow.agent-sub-id", Whole(0, u32::MAX as u64), "0", "1", "Tells several agents with one address apart."),
    key("sflow.datagram-bytes", Whole(256, 8192), "1400", "8192", "The largest datagram that is sent, in bytes of UDP payload; at least 120 more than `header-bytes`."),
    key("sflow.osIndex", Truth, "false", "true", "Whether datagrams tell interfaces by the numbers of the Linux interfaces that they are paired with, as `sflow.interfaces` says, or by the router's own."),
    key("sflow.ifOffset", Whole(0, 1_000_000_000), "1000000000", "500000000", "What is added to the router's own number of an interface that is not paired, so that no Linux interface has it: with `osIndex`, and towards hsflowd (`psample`), where it is to be as in its `vpp` section."),
    key("sflow.collectors", List(0, 16), "[]", "[{address: 192.0.2.9}]", "Where datagrams go, each to all of them."),
    key("sflow.collectors[]", Section, "", "{address: 192.0.2.9, port: 6343}", "One collector."),
    key("sflow.collectors[].address", Host, REQUIRED, "192.0.2.9", "Its address, IPv4 or IPv6, or its name, which is looked up until it is found."),
    key("sflow.collectors[].port", Whole(1, 65_535), "6343", "6344", "Its UDP port."),
    key("sflow.collectors[].namespace", NamespaceName, "", "mgmt", "The network namespace that it is reached from, as `ip netns` names it; the router's own when absent."),
    key("sflow.collectors[].source", Ip, "", "192.0.2.1", "The address that datagrams come from; the kernel's choice when absent."),
    key("sflow.collectors[].dscp", Whole(0, 63), "0", "16", "The class of the datagrams."),
    key("sflow.collectors[].dev", LinuxName, "", "vrf-mgmt", "The Linux device that datagrams leave by: a VRF's or any other."),
    key("sflow.collectors[].drops", Truth, "true", "false", "Whether discarded packets are told to it; some collectors lose what follows one in a datagram."),
    key("sflow.dns-sd", Section, "", "{domain: example.net}", "Collectors that a domain announces as `_sflow._udp` (RFC 6763), beside those listed."),
    key("sflow.dns-sd.domain", HostName, "", "example.net", "Which domain; those that the machine's resolver searches when absent."),
    key("sflow.psample", Section, "", "{group: 3}", "Samples, counters and told drops also through the kernel, for hsflowd with its modules `psample`, `vpp` and `dropmon`."),
    key("sflow.psample.group", Whole(1, u32::MAX as u64), "3", "1", "The group that samples of received packets carry."),
    key("sflow.psample.egress-group", Whole(1, u32::MAX as u64), "4", "2", "The group that samples of sent packets carry."),
    key("sflow.psample.namespace", NamespaceName, "", "mgmt", "The network namespace that hsflowd is in; the router's own when absent."),
    key("sflow.interfaces", Named(Names::Interface), "{}", "{xe0: {sampling-rate: 100}}", "Interfaces that are sampled in another way than said above, by name."),
    key("sflow.interfaces.*", Section, "", "{sampling-rate: 100}", "What is other than usual there."),
    key("sflow.interfaces.*.sampling-rate", Whole(0, u32::MAX as u64), "", "100", "One packet in this many is sampled there; 0 = none."),
    key("sflow.interfaces.*.polling-interval", Whole(0, 86_400), "", "60", "Seconds between two reports of its counters; 0 = never."),
    key("sflow.interfaces.*.header-bytes", Whole(1, 256), "", "64", "Bytes of each packet sampled there that are reported."),
    key("sflow.interfaces.*.direction", Word(&["rx", "tx", "both"]), "", "tx", "Which of its packets are sampled."),
    key("sflow.interfaces.*.osIndex", Whole(1, 1_000_000_000), "", "7", "The number of the Linux interface that it is paired with."),

    key("ipfix", Section, "{}", "{idle-timeout: 30}", "Flows that are metered (IPFIX, NetFlow 9), and where their records go."),
    key("ipfix.active-timeout", Whole(1, 65_535), "60", "300", "Seconds after which a flow that goes on is reported, and again each time."),
    key("ipfix.idle-timeout", Whole(1, 65_535), "15", "30", "Seconds without a packet after which a flow is over."),
    key("ipfix.flows", Whole(1024, 1 << 26), "1048576", "65536", "Flows that the table of each worker holds at most; it takes some 250 bytes for each. When it is full, those that are nearest to their end make room."),
    key("ipfix.sampling-rate", Whole(1, u32::MAX as u64), "1", "100", "One packet in this many is metered, chosen at random; collectors are told, and scale."),
    key("ipfix.domain", Whole(1, u32::MAX as u64), "1", "7", "The observation domain: one for the whole router."),
    key("ipfix.template-interval", Whole(1, 3600), "30", "60", "Seconds after which templates and options are sent again."),
    key("ipfix.biflow", Truth, "false", "true", "Whether both directions of a conversation become one record (RFC 5103) for collectors of IPFIX."),
    key("ipfix.records", Named(Names::RecordSet), "{}", "{mine: {elements: [5-tuple, forwardingStatus]}}", "Record sets by name, beside those that are always there: `5-tuple`, `l2` (MAC addresses, type, VLAN: frames only), `router` (all that a router knows of an IP flow) and `mpls`."),
    key("ipfix.records.*", Section, "", "{elements: [5-tuple, forwardingStatus]}", "One record set."),
    key("ipfix.records.*.elements", List(1, 64), REQUIRED, "[5-tuple, forwardingStatus]", "What its records have; it tells flows apart as well."),
    key("ipfix.records.*.elements[]", Word(crate::ipfix::PARTS), "", "forwardingStatus", "An information element by IANA's name, or a set that is always there."),
    key("ipfix.interfaces", Named(Names::Interface), "{}", "{xe0: {records: router}}", "Interfaces that are metered, by name: ports, sub-interfaces, bonds, tunnels."),
    key("ipfix.interfaces.*", Section, "{}", "{records: router, direction: both}", "How it is metered."),
    key("ipfix.interfaces.*.direction", Word(&["rx", "tx", "both"]), "rx", "both", "Where its packets are metered: as they come in (with where they went, or why they were dropped), as they leave, or both."),
    key("ipfix.interfaces.*.records", Text(55), "5-tuple", "router", "The record set."),
    key("ipfix.collectors", List(0, 16), "[]", "[{address: 192.0.2.9}]", "Where records go, each to all that want it."),
    key("ipfix.collectors[]", Section, "", "{address: 192.0.2.9, port: 2055}", "One collector."),
    key("ipfix.collectors[].address", Ip, REQUIRED, "192.0.2.9", "Its address, IPv4 or IPv6."),
    key("ipfix.collectors[].port", Whole(1, 65_535), "4739", "2055", "Its port; 4740 is usual for TLS."),
    key("ipfix.collectors[].transport", Word(&["udp", "tcp", "tls"]), "udp", "tcp", "How it is reached. UDP is never waited for; messages for TCP and TLS wait in a queue."),
    key("ipfix.collectors[].version", Word(&["ipfix", "netflow9"]), "ipfix", "netflow9", "What is spoken: IPFIX (RFC 7011) or NetFlow version 9 (RFC 3954), which goes over UDP only."),
    key("ipfix.collectors[].records", List(0, 16), "[]", "[router]", "The record sets it wants; those of all interfaces when empty."),
    key("ipfix.collectors[].records[]", Text(55), "", "router", "A record set."),
    key("ipfix.collectors[].mtu", Whole(128, 9216), "1500", "1400", "Octets of the longest IP packet on the way there; each template fits one."),
    key("ipfix.collectors[].queue", Whole(64, 1_048_576), "4096", "16384", "KiB of messages that wait for a stream at most; what comes then is not sent, counted."),
    key("ipfix.collectors[].tls", Section, "", "{name: collector.example.net, ca: /etc/weir/ca.pem}", "What TLS needs to know, with `transport: tls`."),
    key("ipfix.collectors[].tls.name", Text(255), REQUIRED, "collector.example.net", "The name, or address, that its certificate has."),
    key("ipfix.collectors[].tls.ca", File(4095), REQUIRED, "/etc/weir/ca.pem", "Certificates, in PEM, one of which must have signed that of the collector."),
    key("ipfix.collectors[].tls.certificate", File(4095), "", "/etc/weir/weir.pem", "The router's own certificate with its chain, in PEM, for collectors that ask for one."),
    key("ipfix.collectors[].tls.key", File(4095), "", "/etc/weir/weir.key", "Its private key, in PEM."),

    key("vrfs", Named(Names::Vrf), "{}", "{red: {table: 10}}", "Routing tables beside the default one, each for IPv4 and IPv6, by name: a letter, then up to 31 letters, digits, `.`, `_`, `/` or `-`."),
    key("vrfs.*", Section, "", "{table: 10}", "One table."),
    key("vrfs.*.table", Whole(1, u32::MAX as u64), REQUIRED, "10", "Its number, which no other table has; the default table's is 0."),
    key("vrfs.*.description", Text(255), "", "customer red", "Free text for people; absent by default."),

    key("routes", List(0, 1_000_000), "[]", "[{prefix: 0.0.0.0/0, via: blackhole}]", "Static routes, each prefix once in a table. All with the same `via` share a group of paths, which is written once when a link goes down."),
    key("routes[]", Section, "", "{prefix: 0.0.0.0/0, via: 192.0.2.254}", "One route."),
    key("routes[].vrf", VrfName, "", "red", "The table it is in; the default one when absent."),
    key("routes[].prefix", Prefix, REQUIRED, "198.51.100.0/24", "What it is for, without host bits."),
    key("routes[].via", Via, REQUIRED, "192.0.2.254", "Where it leads: the address of a next hop, a list of several that share the flows, or `blackhole` (dropped), `unreachable` or `prohibit` (dropped, and the sender told: ICMP host unreachable or communication prohibited, ICMPv6 no route or prohibited). Each next hop lies in a connected subnet of the table; that of an IPv4 route may be IPv6 (RFC 8950)."),
    key("routes[].resilient", Truth, "false", "true", "Whether flows keep their next hops when others are added to `via` or taken away: only those of a next hop that goes move, and one that comes takes no more than its share."),
    key("routes[].via[]", Section, "", "{next-hop: 192.0.2.254, weight: 2}", "One next hop of several."),
    key("routes[].via[].next-hop", Neighbor, REQUIRED, "192.0.2.254", "Its address."),
    key("routes[].via[].interface", InterfaceName, "", "xe0", "The interface it is behind; found by its subnet when absent. A link-local next hop needs it."),
    key("routes[].via[].next-hop-table", TableName, "", "default", "The next hop need not be on a link: the way to it is the longest match in this table, `default` or a VRF, and follows it when that changes (a recursive next hop)."),
    key("routes[].via[].weight", Whole(1, 255), "1", "2", "Its share of the flows beside the others."),
    key("routes[].via[].labels", List(0, 16), "[]", "[100, 200]", "MPLS labels that are pushed, outermost first."),
    key("routes[].via[].labels[]", Whole(0, 1_048_575), "", "100", "A label: 16 to 1048575, or an explicit null, 0 for IPv4 and 2 for IPv6."),
    key("routes[].via[].ttl-mode", Word(&["uniform", "pipe"]), "uniform", "pipe", "Where the time to live of pushed labels comes from (RFC 3443): that of the packet, or 255."),
    key("routes[].via[].traffic-class", Whole(0, 7), "", "5", "Traffic class of pushed labels (RFC 5462); that of what they are pushed onto when absent, for IP the upper three bits of its DSCP."),
    key("routes[].via[].entropy-label", Truth, "false", "true", "Whether an entropy label and its indicator are pushed below the outermost label (RFC 6790), so that routers on the way tell flows apart; the end of that label's path must know them."),

    key("mpls", Section, "{}", "{labels: [{label: 100, lookup: default}]}", "What is done with labelled packets."),
    key("mpls.labels", List(0, 1_048_560), "[]", "[{label: 100, lookup: default}]", "Static entries, each label once."),
    key("mpls.labels[]", Section, "", "{label: 100, via: [{next-hop: 192.0.2.254, labels: [200]}]}", "One entry; at most one of `via` and `lookup`."),
    key("mpls.labels[].label", Whole(16, 1_048_575), REQUIRED, "100", "The incoming label."),
    key("mpls.labels[].via", Via, "", "192.0.2.254", "Where packets go: a next hop, a list of several that share the flows, or `blackhole`. The labels of a next hop take the place of the incoming one (swap); without any it is taken off (penultimate hop popping)."),
    key("mpls.labels[].via[]", Section, "", "{next-hop: 192.0.2.254, labels: [200]}", "One next hop of several."),
    key("mpls.labels[].via[].next-hop", Neighbor, REQUIRED, "192.0.2.254", "Its address."),
    key("mpls.labels[].via[].interface", InterfaceName, "", "xe0", "The interface it is behind; found by its subnet when absent."),
    key("mpls.labels[].via[].weight", Whole(1, 255), "1", "2", "Its share of the flows beside the others."),
    key("mpls.labels[].via[].labels", List(0, 16), "[]", "[200]", "Labels in the place of the incoming one, outermost first."),
    key("mpls.labels[].via[].labels[]", Whole(0, 1_048_575), "", "200", "A label: 16 to 1048575, or an explicit null, 0 for IPv4 and 2 for IPv6."),
    key("mpls.labels[].via[].ttl-mode", Word(&["uniform", "pipe"]), "uniform", "pipe", "Where the time to live of pushed labels comes from (RFC 3443): that of the packet, or 255."),
    key("mpls.labels[].via[].traffic-class", Whole(0, 7), "", "5", "Traffic class of pushed labels (RFC 5462); that of what they are pushed onto when absent, for IP the upper three bits of its DSCP."),
    key("mpls.labels[].via[].entropy-label", Truth, "false", "true", "Whether an entropy label and its indicator are pushed below the outermost label (RFC 6790), so that routers on the way tell flows apart; the end of that label's path must know them."),
    key("mpls.labels[].lookup", TableName, "", "red", "The table that looks packets up by their address once the label, which must be their last, is off: the name of a VRF, or `default`, which it is when both this and `via` are absent."),
    key("mpls.labels[].ttl-mode", Word(&["uniform", "pipe", "short-pipe"]), "uniform", "pipe", "What becomes of time to live and traffic class where the label is taken off: carried over to what is under it, or not (RFC 3443)."),

    key("pseudowires", PSEUDOWIRES, "{}", "{pw0: {local-label: 1000, remote-label: 2000, via: 192.0.2.254}}", "Ethernet pseudowires over MPLS (RFC 4448), `pw0` to `pw4294967294`. Each is an interface of the same name; an entry under `interfaces`, without `device`, sets its MTU, cross connect and all else. So it is an end of a cross connect, a member of a bridge domain, or routed. The interfaces that carry it need `mpls`."),
    key("pseudowires.*", Section, "", "{local-label: 1000, remote-label: 2000, via: 192.0.2.254}", "One pseudowire."),
    key("pseudowires.*.description", Text(255), "", "customer 7", "Free text for people; a description under `interfaces` goes before it."),
    key("pseudowires.*.local-label", Whole(16, 1_048_575), REQUIRED, "1000", "The label of frames that come in, which no entry of `mpls.labels` and no other pseudowire has."),
    key("pseudowires.*.remote-label", Whole(16, 1_048_575), REQUIRED, "2000", "The label that the far end has for it, pushed below those of `via`."),
    key("pseudowires.*.via", Via, REQUIRED, "192.0.2.254", "The way to the far end: a next hop, a list of several that share the flows, or `blackhole`. The labels of a next hop are those of the label path to the far end; none where the next hop is the far end itself."),
    key("pseudowires.*.via[]", Section, "", "{next-hop: 192.0.2.254, labels: [100]}", "One next hop."),
    key("pseudowires.*.via[].next-hop", Neighbor, REQUIRED, "192.0.2.254", "Its address."),
    key("pseudowires.*.via[].interface", InterfaceName, "", "xe0", "The interface it is behind; found by its subnet when absent."),
    key("pseudowires.*.via[].weight", Whole(1, 255), "1", "2", "Its share of the flows beside the others."),
    key("pseudowires.*.via[].labels", List(0, 15), "[]", "[100]", "Labels of the label path to the far end, outermost first."),
    key("pseudowires.*.via[].labels[]", Whole(0, 1_048_575), "", "100", "A label: 16 to 1048575, or an explicit null, 0 for IPv4 and 2 for IPv6."),
    key("pseudowires.*.via[].traffic-class", Whole(0, 7), "", "5", "Traffic class of pushed labels (RFC 5462); the priority of the frame's outer tag when absent."),
    key("pseudowires.*.via[].entropy-label", Truth, "false", "true", "Whether an entropy label and its indicator are pushed below the outermost label (RFC 6790)."),
    key("pseudowires.*.control-word", Truth, "true", "false", "Whether a control word (RFC 4385) stands before each frame, at both ends. Without it, a router on the way may take a frame for IP and lead its flow over several paths."),
    key("pseudowires.*.type", Word(&["raw", "tagged"]), "raw", "tagged", "What both ends have agreed on (RFC 4448 section 4.4.1): frames as they are, or each with a tag of the pseudowire's own."),
    key("pseudowires.*.vlan", Whole(0, 4094), "0", "100", "VLAN of that tag on frames that are sent, with type `tagged`; received frames lose their outer tag, whichever it is."),

    key("neighbors", List(0, 1_000_000), "[]", "[]", "Static ARP and neighbour discovery entries."),
    key("neighbors[]", Section, "", "{interface: xe0, address: 192.0.2.7, mac: 02:00:00:00:00:07}", "One entry."),
    key("neighbors[].interface", InterfaceName, REQUIRED, "xe0", "The interface it is behind."),
    key("neighbors[].address", Neighbor, REQUIRED, "192.0.2.7", "Its address, in a subnet of that interface."),
    key("neighbors[].mac", UnicastMac, REQUIRED, "02:00:00:00:00:07", "Its MAC address."),

    key("prefixlists", Named(Names::PrefixList), "{}", "{customers: {members: [192.0.2.0/24, 2001:db8::/32]}}", "Prefixes under names, for terms of access lists."),
    key("prefixlists.*", Section, "", "{members: [192.0.2.0/24]}", "One prefix list."),
    key("prefixlists.*.description", Text(255), "", "our customers", "Free text for people; absent by default."),
    key("prefixlists.*.members", List(1, 10_000), REQUIRED, "[192.0.2.0/24, 2001:db8::1]", "Addresses and prefixes of either family."),
    key("prefixlists.*.members[]", AnyPrefix, "", "192.0.2.0/24", "An address, or a prefix without host bits."),

    key("acls", Named(Names::AccessList), "{}", "{web: {terms: [{action: permit, protocol: tcp, destination-port: https}]}}", "Access lists by name; an interface's `acl` binds them."),
    key("acls.*", Section, "", "{terms: [{action: permit}]}", "One access list."),
    key("acls.*.description", Text(255), "", "who may reach the web", "Free text for people; absent by default."),
    key("acls.*.terms", List(1, 10_000), REQUIRED, "[{action: permit, source: customers}]", "Its terms in order; the first that a packet matches says what becomes of it."),
    key("acls.*.terms[]", Section, "", "{action: deny, source: 192.0.2.0/24}", "One term; what it leaves out it does not ask for."),
    key("acls.*.terms[].description", Text(255), "", "no spoofing", "Free text for people; absent by default."),
    key("acls.*.terms[].action", Word(&["permit", "deny"]), REQUIRED, "deny", "What becomes of packets that match. vppcfg's `permit+reflect`, which keeps state, is refused."),
    key("acls.*.terms[].family", Word(&["any", "ipv4", "ipv6"]), "any", "ipv4", "The version of IP; `any` = each that its addresses have."),
    key("acls.*.terms[].source", Scope, "any", "customers", "Where packets come from: an address, a prefix, or the name of a prefix list."),
    key("acls.*.terms[].destination", Scope, "any", "192.0.2.7", "Where they go."),
    key("acls.*.terms[].protocol", Protocol, "any", "tcp", "What they carry, by name or number."),
    key("acls.*.terms[].source-port", Ports, "any", "1024-", "Their source port, for tcp, udp and sctp: a number, a name, or a range `a-b`, `-b` or `a-`."),
    key("acls.*.terms[].destination-port", Ports, "any", "https", "Their destination port."),
    key("acls.*.terms[].icmp-type", Octets, "any", "8", "Their ICMP type, for icmp and ipv6-icmp: a number or a range."),
    key("acls.*.terms[].icmp-code", Octets, "any", "0", "Their ICMP code."),

    key("workers", Section, "{}", "{cores: [0, 1], idle: poll}", "Worker threads of the packet path. A change needs a restart."),
    key("workers.cores", List(1, 64), "", "[0, 1]", "The core of worker 0, 1, …; not pinned when absent."),
    key("workers.cores[]", Whole(0, 4095), "", "0", "A core as Linux counts it."),
    key("workers.count", Whole(1, 64), "1", "2", "How many workers; as many as `cores` when those are given."),
    key("workers.idle", Word(&["poll", "sleep"]), "sleep", "poll", "What a worker does without packets: look again at once, or wait for the kernel to wake it."),

    key("buffers", Section, "{}", "{per-numa: 32768}", "Packet memory. A change needs a restart."),
    key("buffers.per-numa", Whole(1024, 4_194_304), "16384", "32768", "Buffers in the pool of each NUMA node."),
    key("buffers.hugepages", Word(&["auto", "off"]), "auto", "off", "Whether the pool lies in hugepages when there are enough free ones."),

    key("api", Section, "{}", "{socket: /run/weir/second.sock}", "Where the router is reached, and by whom. A change needs a restart."),
    key("api.socket", File(107), "/run/weir/api.sock", "/run/weir/second.sock", "The Unix socket of the API."),
    key("api.group", UnixGroup, "", "weir", "The Unix group whose members may do everything over the socket; only root and the router's own user may when absent."),
    key("api.read-only-group", UnixGroup, "", "adm", "The Unix group whose members may look, and change nothing."),
    key("api.listen", List(0, 16), "[]", "[{address: 127.0.0.1}]", "TCP addresses of the API, beside the socket."),
    key("api.listen[]", Section, "", "{address: 127.0.0.1, port: 8443}", "One of them. Without `tls` it is a loopback address, because tokens would be read on the way."),
    key("api.listen[].address", ListenAddress, REQUIRED, "127.0.0.1", "The own address to listen on; `0.0.0.0` or `::` for all."),
    key("api.listen[].port", Whole(1, 65_535), "8443", "9443", "The TCP port."),
    key("api.listen[].tls", Section, "", "{certificate: /etc/weir/api.pem, key: /etc/weir/api.key}", "Encrypt; plain HTTP when absent."),
    key("api.listen[].tls.certificate", File(4095), REQUIRED, "/etc/weir/api.pem", "The certificate with its chain, in PEM."),
    key("api.listen[].tls.key", File(4095), REQUIRED, "/etc/weir/api.key", "Its private key, in PEM."),
    key("api.listen[].tls.client-role", Word(&["read-only", "admin"]), "read-only", "admin", "What clients with a certificate may do: look, or everything."),
    key("api.listen[].tls.client-ca", File(4095), "", "/etc/weir/clients.pem", "Certificates, in PEM, one of which must have signed that of a client; clients need none when absent."),
    key("api.tokens", List(0, 256), "[]", "[{name: grafana, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}]", "Bearer tokens that are let in over TCP."),
    key("api.tokens[]", Section, "", "{name: grafana, role: read-only, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}", "One token."),
    key("api.tokens[].name", Text(64), REQUIRED, "grafana", "Who it is, in the log."),
    key("api.tokens[].role", Word(&["read-only", "admin"]), "read-only", "admin", "Whether its bearer may only look, or do everything."),
    key("api.tokens[].sha256", Sha256, REQUIRED, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "The SHA-256 hash of the token in hexadecimal, as `sha256sum` writes it for a file that holds the token and no line end; the token itself stands nowhere."),
    key("api.metrics", Section, "", "{address: 127.0.0.1, port: 9482}", "A listener of its own that gives counters in the OpenMetrics form, and nothing else, to whoever asks; none when absent."),
    key("api.metrics.address", ListenAddress, REQUIRED, "127.0.0.1", "The own address to listen on; `0.0.0.0` or `::` for all."),
    key("api.metrics.port", Whole(1, 65_535), "9482", "9483", "The TCP port."),

    key("logging", Section, "{}", "{level: debug}", "What is logged, and how."),
    key("logging.level", Word(&["error", "warn", "info", "debug", "trace"]), "info", "debug", "Messages below this level are not written."),
    key("logging.format", Word(&["text", "json"]), "text", "json", "Lines for people, or one JSON object a line. A change needs a restart."),

    key("history", Section, "{}", "{keep: 100}", "Where applied configurations are kept, to go back to. A change needs a restart."),
    key("history.directory", File(4095), "/var/lib/weir/config", "/srv/weir/config", "The folder."),
    key("history.keep", Whole(1, 1000), "50", "100", "How many of the last ones are kept."),
];

/// The rows below each row.
static BELOW: LazyLock<HashMap<&'static str, Vec<&'static Key>>> = LazyLock::new(|| {
    let mut below: HashMap<&'static str, Vec<&'static Key>> = HashMap::new();
    for row in KEYS {
        below.entry(row.parent()).or_default().push(row);
    }
    below
});

/// The keys that may stand in the section `path`; for a list, the row of its items.
pub(crate) fn below(path: &str) -> &'static [&'static Key] {
    BELOW.get(path).map_or(&[], Vec::as_slice)
}

impl Kind {
    /// What is right, as the object of "expected".
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Section => "a section of keys".into(),
            Self::Named(Names::Interface) => "interfaces by name".into(),
            Self::Named(Names::AccessList) => "access lists by name".into(),
            Self::Named(Names::PrefixList) => "prefix lists by name".into(),
            Self::Named(Names::RecordSet) => "record sets by name".into(),
            Self::Named(Names::SubInterface) => "sub-interfaces by number".into(),
            Self::Named(Names::Vrf) => "tables by name".into(),
            Self::Named(Names::Numbered(word, last)) => format!("sections by name, `{word}0` to `{word}{last}`"),
            Self::List(0, most) => format!("a list of at most {most}"),
            Self::List(least, most) => format!("a list of {least} to {most}"),
            Self::Via => "an address, a list of next hops, `blackhole`, `unreachable` or `prohibit`".into(),
            Self::Whole(0, u64::MAX) => "a whole number".into(),
            Self::Whole(low, high) => format!("a whole number from {low} to {high}"),
            Self::PowerOfTwo(low, high) => format!("a power of two from {low} to {high}"),
            Self::Truth => "`true` or `false`".into(),
            Self::Word(words) => one_of(words),
            Self::Text(most) => format!("text of at most {most} characters"),
            Self::InterfaceName => "the name of an interface of this file".into(),
            Self::VrfName => "the name of a table of this file".into(),
            Self::TableName => "the name of a table of this file, or default".into(),
            Self::LinuxName => "the name of a Linux network device".into(),
            Self::File(_) => "the path of a file".into(),
            Self::MemifSocket => "an absolute path, or `@NAME`".into(),
            Self::Secret(most) => format!("1 to {most} bytes of text"),
            Self::UnicastMac => "a unicast MAC address".into(),
            Self::Mac => "a MAC address".into(),
            Self::OwnAddress => "an IPv4 or IPv6 address with its prefix length".into(),
            Self::Prefix => "an IPv4 or IPv6 prefix".into(),
            Self::Neighbor | Self::Ip | Self::ListenAddress => "an IPv4 or IPv6 address".into(),
            Self::Host => "an IPv4 or IPv6 address or the name of a host".into(),
            Self::HostName => "a name in the DNS".into(),
            Self::NamespaceName => "the name of a network namespace".into(),
            Self::UnixGroup => "the name of a Unix group".into(),
            Self::AnyPrefix => "an address or a prefix".into(),
            Self::AddressOrInterface => "an IP address or the name of an interface".into(),
            Self::Cidr => "an address or a prefix, maybe after `!`".into(),
            Self::Scope => "`any`, an address, a prefix or the name of a prefix list".into(),
            Self::Protocol => "the name or number of a protocol".into(),
            Self::Ports => "`any`, a port or a range of them".into(),
            Self::Octets => "`any`, a number up to 255 or a range of them".into(),
            Self::AccessListName => "the name of an access list".into(),
            Self::Sha256 => "64 hexadecimal digits".into(),
            Self::AddressRange => "an IPv4 address or a range of them".into(),
            Self::PortRange => "a port or a range of them".into(),
            Self::Unsupported => "nothing".into(),
        }
    }
}

/// "`a`, `b` or `c`".
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::Config;

    const TOKENS: &str = "tokens: [{name: a, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}]";

    /// A good file around one key; `KEY` stands where it goes.
    fn around(row: &Key) -> String {
        let device = |inner: &str| format!("interfaces: {{xe0: {{device: {{{inner}, KEY}}}}}}");
        let parent = row.parent();
        match parent {
            "" if row.name() == "bridgedomains" => "interfaces: {xe0: {}, xe1: {}}\nKEY".to_owned(),
            "" if row.name() == "pseudowires" => "interfaces: {xe0: {addresses: [192.0.2.1/24]}}\nKEY".to_owned(),
            "" if row.name() == "bondethernets" => "interfaces: {xe0: {}, xe1: {}}\nKEY".to_owned(),
            "bondethernets.*" => "interfaces: {xe0: {}, xe1: {}}\nbondethernets: {BondEthernet0: {KEY}}".to_owned(),
            "" => "KEY".to_owned(),
            "sflow" if row.name() == "interfaces" => "interfaces: {xe0: {sflow: true}}\nsflow: {KEY}".to_owned(),
            "interfaces.*" => {
                "interfaces: {xe0: {KEY}, xe1: {}}\nworkers: {count: 2}\nvrfs: {red: {table: 10}}\nacls: {web: {terms: [{action: permit}]}}"
                    .to_owned()
            }
            "interfaces.*.device" if row.name() == "input" => device("driver: pcap, output: x"),
            "interfaces.*.device" if row.name() == "output" => device("driver: pcap, input: x"),
            "interfaces.*.device" if row.name() == "host-mac" => device("driver: tap, name: t0"),
            "interfaces.*.device" if row.drivers == MEMIF => device("driver: memif, socket: /a, role: slave"),
            "interfaces.*.device" => device("driver: af-xdp, name: e0"),
            "interfaces.*.device.streams[]" => {
                device("driver: generator, streams: [{name: a, source: 10.0.0.1, destination: 10.0.1.1, KEY}]").replace("}], KEY", "}]")
            }
            "interfaces.*.acl" => "interfaces: {xe0: {acl: {KEY}}}\nacls: {web: {terms: [{action: permit}]}}".to_owned(),
            "prefixlists.*" if row.name() == "members" => "prefixlists: {customers: {KEY}}".to_owned(),
            "prefixlists.*" => "prefixlists: {customers: {members: [192.0.2.0/24], KEY}}".to_owned(),
            "acls.*" if row.name() == "terms" => "acls: {web: {KEY}}\nprefixlists: {customers: {members: [192.0.2.0/24]}}".to_owned(),
            "acls.*" => "acls: {web: {terms: [{action: permit}], KEY}}".to_owned(),
            "acls.*.terms[]" => {
                let protocol = match row.name() {
                    "protocol" => "",
                    "icmp-type" | "icmp-code" => "protocol: icmp, ",
                    _ => "protocol: tcp, ",
                };
                let action = if row.name() == "action" { "" } else { "action: permit, " };
                format!("acls: {{web: {{terms: [{{{action}{protocol}KEY}}]}}}}\nprefixlists: {{customers: {{members: [192.0.2.0/24]}}}}")
            }
            "interfaces.*.sub-interfaces.*" => "interfaces: {xe0: {sub-interfaces: {100: {KEY}}}, xe1: {}}\nvrfs: {red: {table: 10}}\n\
                                                acls: {web: {terms: [{action: permit}]}}"
                .to_owned(),
            "interfaces.*.sub-interfaces.*.acl" => {
                "interfaces: {xe0: {sub-interfaces: {100: {acl: {KEY}}}}}\nacls: {web: {terms: [{action: permit}]}}".to_owned()
            }
            "interfaces.*.sub-interfaces.*.encapsulation" => {
                let outer = if row.name().starts_with("dot1") { "" } else { "dot1q: 5, " };
                format!("interfaces: {{xe0: {{sub-interfaces: {{100: {{encapsulation: {{{outer}KEY}}}}}}}}}}")
            }
            "interfaces.*.sub-interfaces.*.tag-rewrite" => {
                let outer = if row.name().starts_with("dot1") { "" } else { ", dot1q: 5" };
                format!("interfaces: {{xe0: {{sub-interfaces: {{100: {{tag-rewrite: {{pop: 1{outer}, KEY}}}}}}}}}}")
            }
            "interfaces.*.router-advertisements" => {
                "interfaces: {xe0: {addresses: ['2001:db8::1/64'], router-advertisements: {interval: 600, KEY}}}".to_owned()
            }
            "loopbacks.*" => "loopbacks: {loop0: {KEY}}\nvrfs: {red: {table: 10}}".to_owned(),
            "vxlan_tunnels.*" => "vxlan_tunnels: {vxlan_tunnel1: {local: 192.0.2.1, remote: 192.0.2.2, vni: 7, KEY}}".to_owned(),
            "vrfs.*" => "vrfs: {red: {table: 10, KEY}}".to_owned(),
            "routes[]" if row.name() == "resilient" => {
                "interfaces: {xe0: {addresses: [192.0.2.1/24]}}\nroutes: [{prefix: 10.0.0.0/8, via: 192.0.2.254, KEY}]".to_owned()
            }
            "routes[]" => "vrfs: {red: {table: 10}}\nroutes: [{prefix: 10.0.0.0/8, via: blackhole, KEY}]".to_owned(),
            "bridgedomains.*" => {
                let members = if matches!(row.name(), "mtu" | "interfaces") { "" } else { "interfaces: [xe0, xe1], " };
                format!("interfaces: {{xe0: {{}}, xe1: {{}}}}\nloopbacks: {{loop0: {{}}}}\nbridgedomains: {{bd1: {{{members}KEY}}}}")
            }
            "bridgedomains.*.settings" => "bridgedomains: {bd1: {settings: {KEY}}}".to_owned(),
            "taps.*" if row.name() == "host" => "taps: {tap0: {KEY}}".to_owned(),
            "taps.*" => "taps: {tap0: {host: {name: t0}, KEY}}".to_owned(),
            "taps.*.host" => "taps: {tap0: {host: {name: t0, KEY}}}".to_owned(),
            "api.listen[]" => format!("api: {{{TOKENS}, listen: [{{address: 127.0.0.1, KEY}}]}}"),
            "api.listen[].tls" => {
                format!("api: {{{TOKENS}, listen: [{{address: 127.0.0.1, tls: {{certificate: c, key: k, KEY}}}}]}}")
            }
            "api.tokens[]" => format!("api: {{{TOKENS}}}").replace("}]", ", KEY}]"),
            "api.metrics" => "api: {metrics: {address: 127.0.0.1, KEY}}".to_owned(),
            "api" if row.name() != "tokens" => format!("api: {{{TOKENS}, KEY}}"),
            "sflow.interfaces.*" => {
                "interfaces: {xe0: {sflow: true}}\nsflow: {collectors: [{address: 192.0.2.9}], interfaces: {xe0: {KEY}}}".to_owned()
            }
            // Sections that mean something when they are empty.
            "sflow.dns-sd" | "sflow.psample" => format!("sflow: {{{}: {{KEY}}}}", &row.parent()["sflow.".len()..]),
            "ipfix" if row.name() == "interfaces" => "interfaces: {xe0: {}}\nipfix: {KEY}".to_owned(),
            "ipfix.records.*" => "ipfix: {records: {mine: {KEY}}}".to_owned(),
            "ipfix.interfaces.*" => "interfaces: {xe0: {}}\nipfix: {interfaces: {xe0: {KEY}}}".to_owned(),
            "ipfix.collectors[]" if row.name() == "tls" => "ipfix: {collectors: [{address: 192.0.2.9, transport: tls, KEY}]}".to_owned(),
            "ipfix.collectors[]" => "ipfix: {collectors: [{address: 192.0.2.9, KEY}]}".to_owned(),
            "ipfix.collectors[].tls" => {
                let other = if row.name() == "key" { "certificate: c, " } else { "key: k, " };
                let other = if matches!(row.name(), "name" | "ca") { "" } else { other };
                format!("ipfix: {{collectors: [{{address: 192.0.2.9, transport: tls, tls: {{name: a, ca: b, {other}KEY}}}}]}}")
            }
            "sflow.collectors[]" => "sflow: {collectors: [{address: 192.0.2.9, KEY}]}".to_owned(),
            "pseudowires.*" => {
                let more = if row.name() == "vlan" { "type: tagged, " } else { "" };
                let needed = "local-label: 1000, remote-label: 2000, via: 192.0.2.254";
                format!("interfaces: {{xe0: {{addresses: [192.0.2.1/24]}}}}\npseudowires: {{pw0: {{{needed}, {more}KEY}}}}")
            }
            "pseudowires.*.via[]" => {
                let needed = "local-label: 1000, remote-label: 2000, via: [{next-hop: 192.0.2.254, KEY}]";
                format!("interfaces: {{xe0: {{addresses: [192.0.2.1/24]}}}}\npseudowires: {{pw0: {{{needed}}}}}")
            }
            "routes[].via[]" | "mpls.labels[].via[]" => {
                let labels = if matches!(row.name(), "ttl-mode" | "traffic-class" | "entropy-label") { "labels: [16], " } else { "" };
                let via = format!("via: [{{next-hop: 192.0.2.254, {labels}KEY}}]");
                let entry = if row.path.starts_with("routes") {
                    format!("routes: [{{prefix: 10.0.0.0/8, {via}}}]")
                } else {
                    format!("mpls: {{labels: [{{label: 100, {via}}}]}}")
                };
                format!("interfaces: {{xe0: {{addresses: [192.0.2.1/24]}}}}\n{entry}")
            }
            "mpls.labels[]" if row.name() == "ttl-mode" => "mpls: {labels: [{label: 100, lookup: default, KEY}]}".to_owned(),
            "mpls.labels[]" => {
                "vrfs: {red: {table: 10}}\ninterfaces: {xe0: {addresses: [192.0.2.1/24]}}\nmpls: {labels: [{label: 100, KEY}]}".to_owned()
            }
            section => format!("{section}: {{KEY}}"),
        }
    }

    fn text(row: &Key, key: &str) -> String {
        around(row).replace("KEY", key).replace(", }", "}")
    }

    fn optional() -> impl Iterator<Item = &'static Key> {
        let optional =
            |row: &&Key| row.kind != Kind::Unsupported && !row.is_required() && !row.path.ends_with("[]") && !row.path.ends_with(".*");
        KEYS.iter().filter(optional).filter(|row| row.path != "neighbors")
    }

    /// A good file for the example and for the default of each key, by the key's path.
    pub(crate) fn good_files() -> Vec<(String, String)> {
        let values = optional().flat_map(|row| [(row, row.example), (row, row.default)]).filter(|(_, value)| !value.is_empty());
        values.map(|(row, value)| (row.path.to_owned(), text(row, &format!("{}: {value}", row.name())))).collect()
    }

    fn read(row: &Key, key: &str) -> Config {
        let text = text(row, key);
        match crate::check("key", &text) {
            Ok((config, _)) => config,
            Err(errors) => panic!("{text}\n{}", errors[0]),
        }
    }

    #[test]
    fn each_key_is_read_and_its_default_is_the_models() {
        for row in optional() {
            if row.path.contains("encapsulation.dot1") || row.path.starts_with("ipfix.collectors[].tls") {
                // One of the two is needed, or this itself; `good_files` has them.
                continue;
            }
            let without = read(row, "");
            if !row.default.is_empty() {
                let with_default = read(row, &format!("{}: {}", row.name(), row.default));
                assert_eq!(with_default, without, "{}: the table's default is not the model's", row.path);
            }
            if row.name().ends_with("-ring-size") {
                continue; // Read for vppcfg's sake.
            }
            let with_example = read(row, &format!("{}: {}", row.name(), row.example));
            assert_ne!(with_example, without, "{}: the key changes nothing", row.path);
        }
    }
}
