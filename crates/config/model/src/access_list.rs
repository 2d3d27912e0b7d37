//! Access lists and prefix lists, in vppcfg's form.
//!
//! A list is terms in order; the first that a packet matches says what becomes of it, and what no
//! term matches is denied. A term that leaves a field out asks nothing of it. Addresses are `any`,
//! one address, a prefix, or the name of a prefix list; [`Term::ways`] writes those out, so that
//! whoever carries a list out knows nothing of prefix lists.
//!
//! Each value has one spelling in the file, as in `scalar.rs`. Names of protocols are
//! IANA's for those that stand in such lists, those of services are in `services.rs`; every number may stand as a number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use weir_config_derive::{Section, Words};

use crate::scalar::{NotAValue, decimal};
use crate::section::text_values;
use crate::services::port;

/// One prefix list.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{members: [192.0.2.0/24]}")]
pub struct PrefixList {
    /// Free text; absent by default.
    #[key(kind = Text(255), example = "our customers")]
    pub description: Option<String>,
    /// Addresses and prefixes of either family; an address is a prefix of full length. Without any
    /// the list matches nothing.
    #[key(
        items = (0, 10_000), kind = AnyPrefix, example = "[192.0.2.0/24, 2001:db8::1]",
        item = "An address or a prefix; host bits of a prefix are ignored."
    )]
    pub members: BTreeSet<IpNet>,
}

impl PrefixList {
    /// How many prefixes of IPv4 and of IPv6.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let v4 = self
            .members
            .iter()
            .filter(|net| matches!(net, IpNet::V4(_)))
            .count();
        (v4, self.members.len() - v4)
    }
}

/// One access list.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{terms: [{action: permit}]}")]
pub struct AccessList {
    /// Free text; absent by default.
    #[key(kind = Text(255), example = "access to the web servers")]
    pub description: Option<String>,
    /// Its terms in order; the first that matches a packet decides.
    #[key(
        required, default = Vec::new(), items = (1, 10_000),
        example = "[{action: permit, source: customers}]"
    )]
    pub terms: Vec<Term>,
}

/// The lists that an interface is bound to, each in order; one list after the other.
#[derive(Debug, Clone, PartialEq, Eq, Section)]
#[section(example = "{input: [web]}")]
pub struct Binding {
    /// Treatment of later fragments, which have no ports: `match` = a term with ports matches those
    /// with its addresses and protocol; `drop`; `permit`.
    #[key(example = "drop")]
    pub fragments: AclFragments,
    /// Lists for received packets, one after the other; a single one may stand without brackets.
    #[key(items = (0, 16), kind = AccessListName, example = "[web]", item = "A list under `acls`.")]
    pub input: Vec<String>,
    /// Lists for sent packets, in the same way.
    #[key(items = (0, 16), kind = AccessListName, example = "[web]", item = "A list under `acls`.")]
    pub output: Vec<String>,
}

/// Treatment of later fragments, which have no ports, where lists are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Words)]
pub enum AclFragments {
    /// A term with ports matches those with its addresses and protocol.
    #[default]
    Match,
    /// They are dropped.
    Drop,
    /// They pass.
    Permit,
}

impl Binding {
    /// Whether nothing is bound, and nothing said.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.input.is_empty()
            && self.output.is_empty()
            && matches!(self.fragments, AclFragments::Match)
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.input.is_empty(), self.output.is_empty()) {
            (true, true) => f.write_str("none"),
            (false, true) => write!(f, "in {}", self.input.join(" ")),
            (true, false) => write!(f, "out {}", self.output.join(" ")),
            (false, false) => write!(
                f,
                "in {} out {}",
                self.input.join(" "),
                self.output.join(" ")
            ),
        }?;
        match self.fragments {
            AclFragments::Match => Ok(()),
            fragments => write!(f, ", fragments {}", fragments.word()),
        }
    }
}

/// One term; a field that it omits matches any value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Section)]
#[section(example = "{action: deny, source: 192.0.2.0/24}")]
pub struct Term {
    /// Free text; absent by default.
    #[key(kind = Text(255), example = "no spoofing")]
    pub description: Option<String>,
    /// What is done with packets that match. vppcfg's `permit+reflect`, which keeps state, is
    /// refused.
    #[key(required, default = TermAction::Deny, example = "deny")]
    pub action: TermAction,
    /// The version of IP; `any` = each that its addresses have.
    #[key(example = "ipv4")]
    pub family: Family,
    /// Source of packets: an address, a prefix, or the name of a prefix list.
    #[key(example = "customers")]
    pub source: Scope,
    /// Destination of packets, in the same way.
    #[key(example = "192.0.2.7")]
    pub destination: Scope,
    /// The IP protocol, by name or number; any when absent.
    #[key(example = "tcp")]
    pub protocol: Option<Protocol>,
    /// The source port, for tcp, udp and sctp: a number, a name, or a range `a-b`, `-b` or `a-`.
    #[key(example = "1024-")]
    pub source_port: Ports,
    /// The destination port. Names are those that IANA has for services, with the usual aliases as
    /// `www`.
    #[key(example = "https")]
    pub destination_port: Ports,
    /// The ICMP type, for icmp and ipv6-icmp: a number or a range.
    #[key(example = "8")]
    pub icmp_type: Octets,
    /// The ICMP code.
    #[key(example = "0")]
    pub icmp_code: Octets,
}

text_values!(
    Scope: Some(crate::keys::Kind::Scope),
    Protocol: Some(crate::keys::Kind::Protocol),
    Ports: Some(crate::keys::Kind::Ports),
    Octets: Some(crate::keys::Kind::Octets),
);

impl Term {
    /// A term about everything.
    #[must_use]
    pub fn all(action: TermAction) -> Self {
        Self {
            description: None,
            action,
            family: Family::Any,
            source: Scope::Any,
            destination: Scope::Any,
            protocol: None,
            source_port: Ports::ANY,
            destination_port: Ports::ANY,
            icmp_type: Octets::ANY,
            icmp_code: Octets::ANY,
        }
    }

    /// From where to where it is about, prefix lists written out: each source with each destination of
    /// the same family. Lists that are not there are empty.
    #[must_use]
    pub fn ways(&self, lists: &BTreeMap<String, PrefixList>) -> Vec<AddressPair> {
        if (self.family, &self.source, &self.destination) == (Family::Any, &Scope::Any, &Scope::Any)
        {
            return vec![AddressPair::Any];
        }
        let (source, destination) = (
            self.source.prefixes(lists),
            self.destination.prefixes(lists),
        );
        let mut ways = Vec::new();
        if self.family != Family::Ipv6 {
            each_with_each(&source.0, &destination.0, |source, destination| {
                ways.push(AddressPair::V4 {
                    source,
                    destination,
                })
            });
        }
        if self.family != Family::Ipv4 {
            each_with_each(&source.1, &destination.1, |source, destination| {
                ways.push(AddressPair::V6 {
                    source,
                    destination,
                })
            });
        }
        ways
    }

    /// How many [`Term::ways`] there are, without making them; `list` tells how many prefixes of each family a
    /// list has.
    pub(crate) fn count_ways(&self, list: impl Fn(&str) -> (usize, usize)) -> usize {
        let (source, destination) = (self.source.counts(&list), self.destination.counts(&list));
        let v4 = if self.family == Family::Ipv6 {
            0
        } else {
            source.0.saturating_mul(destination.0)
        };
        let v6 = if self.family == Family::Ipv4 {
            0
        } else {
            source.1.saturating_mul(destination.1)
        };
        v4.saturating_add(v6)
    }
}

fn each_with_each<P: Copy>(sources: &[P], destinations: &[P], mut take: impl FnMut(P, P)) {
    for source in sources {
        for destination in destinations {
            take(*source, *destination);
        }
    }
}

/// A source and a destination of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressPair {
    /// From anywhere to anywhere, in either family.
    Any,
    /// IPv4.
    V4 {
        /// Where packets come from.
        source: Ipv4Net,
        /// Where they go.
        destination: Ipv4Net,
    },
    /// IPv6.
    V6 {
        /// Where packets come from.
        source: Ipv6Net,
        /// Where they go.
        destination: Ipv6Net,
    },
}

/// What is done with packets that match a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Words)]
pub enum TermAction {
    /// They pass.
    Permit,
    /// They are dropped, counted.
    Deny,
}

/// The version of IP that a term matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Words)]
pub enum Family {
    /// Both, as far as its addresses allow.
    #[default]
    Any,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Addresses that a term matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub enum Scope {
    /// All.
    #[default]
    Any,
    /// Those of a prefix.
    Prefix(IpNet),
    /// Those of a prefix list.
    List(String),
}

impl Scope {
    fn prefixes(&self, lists: &BTreeMap<String, PrefixList>) -> (Vec<Ipv4Net>, Vec<Ipv6Net>) {
        let members: Vec<IpNet> = match self {
            Self::Any => return (vec![Ipv4Net::default()], vec![Ipv6Net::default()]),
            Self::Prefix(net) => vec![*net],
            Self::List(name) => lists
                .get(name)
                .map(|list| list.members.iter().copied().collect())
                .unwrap_or_default(),
        };
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for member in members {
            match member {
                IpNet::V4(net) => v4.push(net.trunc()),
                IpNet::V6(net) => v6.push(net.trunc()),
            }
        }
        (v4, v6)
    }

    /// How many prefixes of IPv4 and of IPv6; `list` tells it of a list.
    pub(crate) fn counts(&self, list: impl Fn(&str) -> (usize, usize)) -> (usize, usize) {
        match self {
            Self::Any => (1, 1),
            Self::Prefix(IpNet::V4(_)) => (1, 0),
            Self::Prefix(IpNet::V6(_)) => (0, 1),
            Self::List(name) => list(name),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Prefix(net) => net.fmt(f),
            Self::List(name) => f.write_str(name),
        }
    }
}

/// An address, as a prefix of full length, or a prefix, whose host bits mean nothing.
pub(crate) fn prefix(text: &str) -> Option<IpNet> {
    match text.parse::<IpNet>() {
        Ok(net) => Some(net.trunc()),
        Err(_) => text.parse::<IpAddr>().ok().map(IpNet::from),
    }
}

/// Whether a text can be the name of a list.
pub(crate) fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    text.len() <= 56
        && text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic())
        && text.bytes().all(inner)
}

impl FromStr for Scope {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Some(net) = prefix(text) {
            return Ok(Self::Prefix(net));
        }
        // A name like `face` is no address, and `10.0.0.0/33` is no name.
        if is_name(text) {
            Ok(Self::List(text.to_owned()))
        } else {
            Err(NotAValue("is neither an address, a prefix, nor a name"))
        }
    }
}

/// What an IP packet carries (IANA's protocol numbers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// ICMP for IPv6.
    pub const ICMP6: Self = Self(58);

    /// Whether it has ports that a term can ask for.
    #[must_use]
    pub const fn has_ports(self) -> bool {
        matches!(self.0, 6 | 17 | 132)
    }

    /// Whether it has types and codes.
    #[must_use]
    pub const fn is_icmp(self) -> bool {
        matches!(self.0, 1 | 58)
    }
}

/// Names of protocols as IANA writes them, in small letters.
pub(crate) const PROTOCOLS: &[(&str, u8)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ipv4", 4),
    ("tcp", 6),
    ("egp", 8),
    ("igp", 9),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("eigrp", 88),
    ("ospf", 89),
    ("etherip", 97),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
    ("udplite", 136),
    ("mpls-in-ip", 137),
];

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Protocol {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        let named = || {
            PROTOCOLS
                .iter()
                .find(|(name, _)| *name == text || (*name == "ipv6-icmp" && text == "icmp6"))
        };
        decimal(text)
            .or_else(|| named().map(|(_, number)| *number))
            .map(Self)
            .ok_or(NotAValue("is not a protocol"))
    }
}

/// Ports from the lowest to the highest, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The lowest.
    pub first: u16,
    /// The highest, not below `first`.
    pub last: u16,
}

impl Ports {
    /// All of them.
    pub const ANY: Self = Self {
        first: 0,
        last: u16::MAX,
    };
}

impl Default for Ports {
    fn default() -> Self {
        Self::ANY
    }
}

/// `any`, one, `a-b`, `-b` or `a-`.
fn range<N: Copy + PartialOrd>(
    text: &str,
    least: N,
    most: N,
    one: impl Fn(&str) -> Option<N>,
) -> Result<(N, N), NotAValue> {
    const WRONG: NotAValue = NotAValue("is neither a number, a name, nor a range");
    if text == "any" {
        return Ok((least, most));
    }
    // Names have hyphens, too.
    if let Some(only) = one(text) {
        return Ok((only, only));
    }
    let (first, last) = text.split_once('-').ok_or(WRONG)?;
    let (first, last) = (first.trim_end(), last.trim_start());
    if first.is_empty() && last.is_empty() {
        return Err(WRONG);
    }
    let first = if first.is_empty() {
        least
    } else {
        one(first).ok_or(WRONG)?
    };
    let last = if last.is_empty() {
        most
    } else {
        one(last).ok_or(WRONG)?
    };
    if last < first {
        Err(NotAValue("ends before it begins"))
    } else {
        Ok((first, last))
    }
}

fn write_range<N: PartialEq + fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    (first, last): (N, N),
    any: bool,
) -> fmt::Result {
    if any {
        f.write_str("any")
    } else if first == last {
        write!(f, "{first}")
    } else {
        write!(f, "{first}-{last}")
    }
}

impl FromStr for Ports {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        range(text, 0, u16::MAX, port).map(|(first, last)| Self { first, last })
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_range(f, (self.first, self.last), *self == Self::ANY)
    }
}

/// ICMP types or codes from the lowest to the highest, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Octets {
    /// The lowest.
    pub first: u8,
    /// The highest, not below `first`.
    pub last: u8,
}

impl Octets {
    /// All of them.
    pub const ANY: Self = Self {
        first: 0,
        last: u8::MAX,
    };
}

impl Default for Octets {
    fn default() -> Self {
        Self::ANY
    }
}

impl FromStr for Octets {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        range(text, 0, u8::MAX, decimal).map(|(first, last)| Self { first, last })
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_range(f, (self.first, self.last), *self == Self::ANY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_one_spelling() {
        for (text, canonical) in [
            ("any", "any"),
            ("443", "443"),
            ("https", "443"),
            ("-1023", "0-1023"),
            ("1024-", "1024-65535"),
            ("0-65535", "any"),
        ] {
            assert_eq!(text.parse::<Ports>().unwrap().to_string(), canonical);
        }
        assert_eq!("radius-acct".parse::<Ports>().unwrap().first, 1813);
        assert_eq!(
            "ssh-http".parse::<Ports>().unwrap(),
            Ports {
                first: 22,
                last: 80
            }
        );
        for wrong in ["", "-", "http-ssh", "65536", "a", "1-2-3", "+1"] {
            assert!(wrong.parse::<Ports>().is_err(), "{wrong}");
        }
        for (text, canonical) in [
            ("tcp", "tcp"),
            ("6", "tcp"),
            ("icmp6", "ipv6-icmp"),
            ("253", "253"),
        ] {
            assert_eq!(text.parse::<Protocol>().unwrap().to_string(), canonical);
        }
        assert!("256".parse::<Protocol>().is_err() && "quic".parse::<Protocol>().is_err());
        for (text, canonical) in [
            ("10.0.0.1", "10.0.0.1/32"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("10.0.0.1/24", "10.0.0.0/24"),
            ("any", "any"),
        ] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), canonical);
        }
        for wrong in ["10.0.0.0/33", "", "a b", "::1/-1"] {
            assert!(wrong.parse::<Scope>().is_err(), "{wrong}");
        }
        assert_eq!("8".parse::<Octets>().unwrap(), Octets { first: 8, last: 8 });
    }

    #[test]
    fn lists_are_written_out_by_family() {
        let list = |members: &[&str]| PrefixList {
            description: None,
            members: members.iter().map(|text| prefix(text).unwrap()).collect(),
        };
        let lists = BTreeMap::from([
            (
                "a".to_owned(),
                list(&["10.0.0.0/8", "192.0.2.1", "2001:db8::/32"]),
            ),
            ("b".to_owned(), list(&["198.51.100.0/24"])),
        ]);
        let term = |source: &str, destination: &str, family| Term {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            family,
            ..Term::all(TermAction::Deny)
        };
        for (term, v4, v6) in [
            (term("a", "b", Family::Any), 2, 0),
            (term("a", "any", Family::Any), 2, 1),
            (term("a", "any", Family::Ipv6), 0, 1),
            (term("any", "any", Family::Ipv4), 1, 0),
            (term("nobody", "any", Family::Any), 0, 0),
        ] {
            let ways = term.ways(&lists);
            assert_eq!(
                ways.iter()
                    .filter(|way| matches!(way, AddressPair::V4 { .. }))
                    .count(),
                v4
            );
            assert_eq!(
                ways.iter()
                    .filter(|way| matches!(way, AddressPair::V6 { .. }))
                    .count(),
                v6
            );
            let counts = |name: &str| lists.get(name).map_or((0, 0), PrefixList::counts);
            assert_eq!(term.count_ways(counts), v4 + v6);
        }
        assert_eq!(
            Term::all(TermAction::Permit).ways(&lists),
            [AddressPair::Any]
        );
    }
}
