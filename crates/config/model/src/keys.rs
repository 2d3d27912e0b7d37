//! The key table: everything that a file may say.
//!
//! Each row has a key's path (`*` stands for a name, `[]` for an item of a list), its kind with its
//! range, its default, its documentation and an example. The walk, the suggestions, the error
//! texts, the reference page (`docs/configuration.md`), the JSON Schema and the dump use it. The
//! rows are made of the declarations: the fields of the sections (`#[derive(Section)]`, see
//! `weir-config-derive`), of which `file.rs` has the first.

mod table;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use table::KEYS;

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
    /// The same for labelled packets, whose sender cannot be notified.
    LabelVia,
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
    /// An address or a prefix, of either family.
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
    /// A section whose keys belong to another part of the router.
    Companion,
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
            Self::Interface | Self::Vrf | Self::AccessList | Self::PrefixList | Self::RecordSet => {
                None
            }
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

/// Next hops of a route, a label or a pseudowire.
pub(crate) const MOST_NEXT_HOPS: usize = 64;

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
        self.path
            .strip_suffix("[]")
            .unwrap_or_else(|| split(self.path).0)
    }
}

/// A path's last key, and all before it. hsflowd has one key with a dot in its name.
fn split(path: &'static str) -> (&'static str, &'static str) {
    const DOTTED: &str = "agent.cidr";
    match path
        .strip_suffix(DOTTED)
        .and_then(|parent| parent.strip_suffix('.'))
    {
        Some(parent) => (parent, DOTTED),
        None => path.rsplit_once('.').unwrap_or(("", path)),
    }
}

/// The rows below each row.
static BELOW: LazyLock<HashMap<&'static str, Vec<&'static Key>>> = LazyLock::new(|| {
    let mut below: HashMap<&'static str, Vec<&'static Key>> = HashMap::new();
    for row in KEYS.iter() {
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
            Self::Section | Self::Companion => "a section of keys".into(),
            Self::Named(Names::Interface) => "interfaces by name".into(),
            Self::Named(Names::AccessList) => "access lists by name".into(),
            Self::Named(Names::PrefixList) => "prefix lists by name".into(),
            Self::Named(Names::RecordSet) => "record sets by name".into(),
            Self::Named(Names::SubInterface) => "sub-interfaces by number".into(),
            Self::Named(Names::Vrf) => "tables by name".into(),
            Self::Named(Names::Numbered(word, last)) => {
                format!("sections by name, `{word}0` to `{word}{last}`")
            }
            Self::List(0, most) => format!("a list of at most {most}"),
            Self::List(least, most) => format!("a list of {least} to {most}"),
            Self::Via => {
                "an address, a list of next hops, `blackhole`, `unreachable` or `prohibit`".into()
            }
            Self::LabelVia => "an address, a list of next hops or `blackhole`".into(),
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
