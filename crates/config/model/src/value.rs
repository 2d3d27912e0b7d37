//! Whether one text is a value of its kind, and what is wrong with it if not.
//!
//! Everything that can be said of a value without looking at other keys is said here, also that
//! an own address is a subnet's broadcast address. Typed values are read with the same functions
//! in `build.rs`, after this has found no fault.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

use crate::access_list::{self, Octets, Ports, Protocol, Scope};
use crate::diagnostic::quote;
use crate::keys::{Kind, Names};
use crate::model::Via;
use crate::scalar::{
    Host, Ipv4Range, MacAddr, NotAValue, PortRange, Sha256, decimal, is_host_name,
};
use crate::suggest::nearest;

/// What is wrong with a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    /// What would be right, when it is more than the row's example.
    pub(crate) help: Option<String>,
}

fn problem<T>(message: String) -> Result<T, Problem> {
    Err(Problem {
        message,
        help: None,
    })
}

fn problem_with_help<T>(message: String, help: impl Into<String>) -> Result<T, Problem> {
    Err(Problem {
        message,
        help: Some(help.into()),
    })
}

/// Look at a scalar; `plain` = it stands without quotes.
pub(crate) fn check(kind: Kind, text: &str, plain: bool) -> Result<(), Problem> {
    match kind {
        Kind::Whole(low, high) => whole(text, plain, low, high),
        Kind::PowerOfTwo(low, high) => power_of_two(text, plain, low, high),
        Kind::Truth if truth(text).is_some() && plain => Ok(()),
        Kind::Truth if truth(text).is_some() => problem_with_help(
            format!("{} in quotes is text", quote(text)),
            format!("write `{text}` without quotes"),
        ),
        Kind::Truth => problem(format!("{} is neither true nor false", quote(text))),
        Kind::Word(_) if text == "permit+reflect" => problem_with_help(
            "`permit+reflect` keeps state, which this version does not".to_owned(),
            "write `permit`, and permit the way back in a list for the other direction",
        ),
        Kind::Word(words) => word(text, words),
        Kind::Text(most) => free_text(text, most),
        Kind::InterfaceName => interface_name(text),
        Kind::VrfName => vrf_name(text),
        Kind::TableName if text == crate::DEFAULT_TABLE => Ok(()),
        Kind::TableName => vrf_name(text),
        Kind::LinuxName => linux_name(text),
        Kind::File(most) if text.len() > most => problem_with_help(
            format!("this path has {} bytes", text.len()),
            format!("at most {most} bytes fit"),
        ),
        Kind::File(_) => Ok(()),
        Kind::MemifSocket => memif_socket(text),
        Kind::Secret(most) => secret(text, most),
        Kind::Mac => mac(text).map(drop),
        Kind::UnicastMac => unicast_mac(text),
        Kind::OwnAddress => own_address(text).map(drop),
        Kind::Prefix => prefix(text).map(drop),
        Kind::Neighbor => neighbor(text).map(drop),
        // That a label's is `blackhole` is reported with the label.
        Kind::Via | Kind::LabelVia if Via::of_word(text).is_some() => Ok(()),
        Kind::Via | Kind::LabelVia => neighbor(text).map(drop),
        Kind::Ip => ip(text).and_then(|address| match address.is_unspecified() {
            true => problem(format!("{} is no one's address", quote(text))),
            false => Ok(()),
        }),
        Kind::Host => text
            .parse::<Host>()
            .map(drop)
            .or_else(|wrong| problem(format!("{} {wrong}", quote(text)))),
        Kind::HostName if is_host_name(text) => Ok(()),
        Kind::HostName => problem(format!("{} cannot be a name in the DNS", quote(text))),
        Kind::NamespaceName => namespace_name(text),
        Kind::ListenAddress => ip(text).map(drop),
        Kind::UnixGroup => unix_group(text),
        // Host bits are reported as a warning.
        Kind::AnyPrefix if access_list::prefix(text).is_some() => Ok(()),
        Kind::AnyPrefix => any_prefix(text),
        Kind::Cidr => text
            .strip_prefix('!')
            .map_or_else(|| any_prefix(text), excluded),
        Kind::AddressOrInterface if text.parse::<std::net::IpAddr>().is_err() => {
            interface_or_address(text)
        }
        Kind::AddressOrInterface => check(Kind::Ip, text, plain),
        Kind::Scope => spelled::<Scope>(text),
        Kind::Protocol if text == "any" => Ok(()),
        Kind::Protocol => protocol(text),
        Kind::Ports => spelled::<Ports>(text),
        Kind::Octets => spelled::<Octets>(text),
        Kind::AccessListName => list_name(text),
        Kind::Sha256 => text
            .parse::<Sha256>()
            .map(drop)
            .or_else(|wrong| problem(format!("{} {wrong}", quote(text)))),
        Kind::AddressRange => text
            .parse::<Ipv4Range>()
            .map(drop)
            .or_else(|wrong| problem(format!("{} {wrong}", quote(text)))),
        Kind::PortRange => text
            .parse::<PortRange>()
            .map(drop)
            .or_else(|wrong| problem(format!("{} {wrong}", quote(text)))),
        Kind::Section | Kind::Named(_) | Kind::List(..) | Kind::Companion | Kind::Unsupported => {
            Ok(())
        }
    }
}

fn spelled<V: FromStr<Err = NotAValue>>(text: &str) -> Result<(), Problem> {
    text.parse::<V>()
        .map(drop)
        .or_else(|wrong| problem(format!("{} {wrong}", quote(text))))
}

fn interface_or_address(text: &str) -> Result<(), Problem> {
    match interface_name(text) {
        Ok(()) => Ok(()),
        Err(_) => problem(format!(
            "{} is neither an IP address nor the name of an interface",
            quote(text)
        )),
    }
}

/// What stands behind a `!`.
fn excluded(text: &str) -> Result<(), Problem> {
    any_prefix(text).or_else(|_| {
        problem(format!(
            "{} is neither an address nor a prefix after `!`",
            quote(text)
        ))
    })
}

fn any_prefix(text: &str) -> Result<(), Problem> {
    match (access_list::prefix(text), text.parse::<IpNet>()) {
        (_, Ok(net)) if net != net.trunc() => problem_with_help(
            format!("{} has host bits", quote(text)),
            format!("write `{}`", net.trunc()),
        ),
        (Some(_), _) => Ok(()),
        (None, _) => problem(format!(
            "{} is neither an address nor a prefix",
            quote(text)
        )),
    }
}

fn protocol(text: &str) -> Result<(), Problem> {
    let message = || format!("{} is not a protocol", quote(text));
    match text.parse::<Protocol>() {
        Ok(_) => Ok(()),
        Err(_) => match nearest(text, access_list::PROTOCOLS.iter().map(|(name, _)| *name)) {
            Some(near) => problem_with_help(message(), format!("did you mean `{near}`?")),
            None => problem_with_help(
                message(),
                "name it as IANA does, or give its number, 0 to 255",
            ),
        },
    }
}

/// The names that prefix lists and access lists can have.
fn list_name(text: &str) -> Result<(), Problem> {
    const RIGHT: &str =
        "a letter, then up to 55 letters, digits, `.`, `_` or `-`, as in `customers`";
    match text {
        "any" => problem_with_help(
            "`any` stands for all addresses, and cannot be the name of a list".to_owned(),
            RIGHT,
        ),
        _ if access_list::is_name(text) => Ok(()),
        _ => problem_with_help(
            format!("{} cannot be the name of a list", quote(text)),
            RIGHT,
        ),
    }
}

fn whole(text: &str, plain: bool, low: u64, high: u64) -> Result<(), Problem> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match decimal::<u64>(text) {
        Some(_) if !plain => problem_with_help(
            format!("{} in quotes is text, not a number", quote(text)),
            format!("write `{text}` without quotes"),
        ),
        Some(number) if number < low => problem(format!("{number} is too small")),
        Some(number) if number > high => problem(format!("{number} is too large")),
        Some(_) => Ok(()),
        None if digits && text.starts_with('0') => {
            let bare = text.trim_start_matches('0');
            problem_with_help(
                format!("{} has leading zeros", quote(text)),
                format!(
                    "write `{}`; numbers are decimal",
                    if bare.is_empty() { "0" } else { bare }
                ),
            )
        }
        None if digits => problem(format!("{} is too large", quote(text))),
        None => problem(format!("{} is not a whole number", quote(text))),
    }
}

fn power_of_two(text: &str, plain: bool, low: u64, high: u64) -> Result<(), Problem> {
    whole(text, plain, low, high)?;
    match decimal::<u64>(text) {
        Some(number) if !number.is_power_of_two() => {
            let (below, above) = (number.next_power_of_two() / 2, number.next_power_of_two());
            problem_with_help(
                format!("{number} is not a power of two"),
                format!("{below} or {above}"),
            )
        }
        _ => Ok(()),
    }
}

/// All spellings that YAML readers take for a truth value: here the key says that it is one, so
/// none can be meant as text.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn word(text: &str, words: &[&'static str]) -> Result<(), Problem> {
    if words.contains(&text) {
        return Ok(());
    }
    let message = format!("{} is not a value of this key", quote(text));
    match nearest(text, words.iter().copied()) {
        Some(near) => problem_with_help(message, format!("did you mean `{near}`?")),
        None => problem(message),
    }
}

fn free_text(text: &str, most: usize) -> Result<(), Problem> {
    let length = text.chars().count();
    if length > most {
        return problem(format!("this text has {length} characters"));
    }
    match text.chars().find(|character| character.is_control()) {
        Some(character) => problem_with_help(
            format!(
                "control character U+{:04X} in this text",
                u32::from(character)
            ),
            "write it in one line",
        ),
        None => Ok(()),
    }
}

/// What fits the kernel's socket addresses (unix(7)): 108 bytes, one of them for the end of a path or
/// the beginning of an abstract name.
fn memif_socket(text: &str) -> Result<(), Problem> {
    const RIGHT: &str = "`/run/vpp/memif.sock`, or `@name` in the abstract space";
    let (what, bytes) = match text.strip_prefix('@') {
        Some(name) => ("name", name.len()),
        None => ("path", text.len()),
    };
    if text.chars().any(char::is_control) {
        return problem_with_help("this socket has a control character".into(), RIGHT);
    }
    if bytes == 0 || (!text.starts_with('@') && !text.starts_with('/')) {
        return problem_with_help(format!("{} is no place for a socket", quote(text)), RIGHT);
    }
    if bytes > 107 {
        return problem_with_help(
            format!("this {what} of a socket has {bytes} bytes"),
            "at most 107 bytes fit",
        );
    }
    Ok(())
}

/// Tells nothing of the secret but its length.
fn secret(text: &str, most: usize) -> Result<(), Problem> {
    if text.chars().any(char::is_control) {
        return problem_with_help(
            "this secret has a control character".into(),
            "letters, digits and signs",
        );
    }
    if text.len() > most {
        return problem_with_help(
            format!("this secret has {} bytes", text.len()),
            format!("at most {most} bytes fit"),
        );
    }
    Ok(())
}

/// A key in a section of names.
pub(crate) fn name(names: Names, text: &str) -> Result<(), Problem> {
    let (word, last) = match names {
        Names::Interface => return interface_name(text),
        Names::AccessList | Names::PrefixList | Names::RecordSet => return list_name(text),
        Names::SubInterface => return sub_interface_number(text),
        Names::Vrf => return vrf_name(text),
        Names::Numbered(word, last) => (word, last),
    };
    match names.numbers(text) {
        Some(number) if number <= u64::from(last) => Ok(()),
        Some(number) => problem_with_help(
            format!("the number {number} is too large"),
            format!("`{word}0` to `{word}{last}`"),
        ),
        None => problem_with_help(
            format!("{} cannot be a name here", quote(text)),
            format!("`{word}0` to `{word}{last}`"),
        ),
    }
}

/// The number of a sub-interface, as vppcfg has it.
fn sub_interface_number(text: &str) -> Result<(), Problem> {
    match Names::SubInterface.numbers(text) {
        Some(number) if (1..=u64::from(u32::MAX)).contains(&number) => Ok(()),
        _ => problem_with_help(
            format!("{} cannot be the number of a sub-interface", quote(text)),
            "a whole number from 1 to 4294967295",
        ),
    }
}

/// Characters of an interface's name: what VPP has room for.
pub(crate) const LONGEST_NAME: usize = 63;

/// The names an interface can have.
pub(crate) fn interface_name(text: &str) -> Result<(), Problem> {
    const RIGHT: &str =
        "a letter, then up to 62 letters, digits, `.`, `_`, `/` or `-`, as in `xe0`";
    match is_name(text, LONGEST_NAME) {
        true => Ok(()),
        false => problem_with_help(
            format!("{} cannot be the name of an interface", quote(text)),
            RIGHT,
        ),
    }
}

fn is_name(text: &str, most: usize) -> bool {
    let inner =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-');
    text.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic())
        && text.bytes().all(inner)
        && text.len() <= most
}

/// The names a table can have: not that of the one which is always there.
pub(crate) fn vrf_name(text: &str) -> Result<(), Problem> {
    const RIGHT: &str =
        "a letter, then up to 31 letters, digits, `.`, `_`, `/` or `-`, as in `red`";
    if text == "default" {
        return problem_with_help(
            "`default` is the table that is always there".into(),
            "leave it out, or name another table",
        );
    }
    match is_name(text, 32) {
        true => Ok(()),
        false => problem_with_help(
            format!("{} cannot be the name of a table", quote(text)),
            RIGHT,
        ),
    }
}

/// What the kernel takes: net/core/dev.c, `dev_valid_name`.
fn linux_name(text: &str) -> Result<(), Problem> {
    let bad = |character: char| {
        character == '/' || character == ':' || character.is_whitespace() || character.is_control()
    };
    if text.len() > 15 || matches!(text, "." | "..") || text.chars().any(bad) {
        return problem_with_help(
            format!(
                "{} cannot be the name of a Linux network device",
                quote(text)
            ),
            "at most 15 bytes without `/`, `:` and spaces, as in `eth1`",
        );
    }
    Ok(())
}

/// What can be a file's name under `/run/netns`.
fn namespace_name(text: &str) -> Result<(), Problem> {
    let bad =
        |character: char| character == '/' || character.is_whitespace() || character.is_control();
    if text.len() > 255 || matches!(text, "." | "..") || text.chars().any(bad) {
        return problem_with_help(
            format!("{} cannot be the name of a network namespace", quote(text)),
            "at most 255 bytes without `/` and spaces, as in `mgmt`",
        );
    }
    Ok(())
}

/// What `groupadd` of shadow makes, and numbers of groups are not names.
fn unix_group(text: &str) -> Result<(), Problem> {
    let first = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let inner =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$');
    if first && text.len() <= 32 && text.bytes().all(inner) {
        return Ok(());
    }
    problem_with_help(
        format!("{} cannot be the name of a Unix group", quote(text)),
        "a letter or `_`, then up to 31 letters, digits, `_`, `-` or `.`, as in `weir`",
    )
}

fn mac(text: &str) -> Result<MacAddr, Problem> {
    text.parse()
        .or_else(|wrong| problem(format!("{} {wrong}", quote(text))))
}

fn unicast_mac(text: &str) -> Result<(), Problem> {
    let mac = mac(text)?;
    if mac.is_unicast() {
        return Ok(());
    }
    if mac.octets() == [0; 6] {
        return problem(format!("{} belongs to nobody", quote(text)));
    }
    problem_with_help(
        format!("{} is a multicast address", quote(text)),
        "a unicast address: the first byte is even, as in `02:00:00:00:00:01`",
    )
}

/// `ADDRESS/LENGTH`, of either IP version.
fn net(text: &str) -> Result<IpNet, Problem> {
    let Some((address, length)) = text.split_once('/') else {
        if let Ok(address) = text.parse::<IpAddr>() {
            let usual = if address.is_ipv4() { 24 } else { 64 };
            let help = format!("write `{text}/{usual}` or whatever the length is");
            return problem_with_help(format!("{} lacks its prefix length", quote(text)), help);
        }
        return problem(format!(
            "{} is not an address with its prefix length",
            quote(text)
        ));
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return problem(format!("{} is not an IP address", quote(address)));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    match decimal::<u8>(length).and_then(|length| IpNet::new(address, length).ok()) {
        Some(net) => Ok(net),
        None => problem_with_help(
            format!(
                "`/{}` is not a prefix length",
                length.chars().take(8).collect::<String>()
            ),
            format!("a whole number from 0 to {most}, without leading zeros"),
        ),
    }
}

/// Why an address cannot be a host's, as a part of a sentence.
#[must_use]
pub fn not_a_host(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_a_host4(address),
        IpAddr::V6(address) => not_a_host6(address),
    }
}

/// An address that a host may have (RFC 1122, 3.2.1.3; RFC 6890).
fn not_a_host4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("means \"this network\" (RFC 1122)"),
        [127, ..] => Some("is a loopback address"),
        [224..=239, ..] => Some("is a multicast address"),
        [255, 255, 255, 255] => Some("is the broadcast address"),
        [240..=255, ..] => Some("is reserved (RFC 1112)"),
        _ => None,
    }
}

/// An address that a host may have (RFC 4291, 2.5 and 2.7).
fn not_a_host6(address: Ipv6Addr) -> Option<&'static str> {
    if address.to_ipv4_mapped().is_some() {
        return Some("stands for an IPv4 address (RFC 4291)");
    }
    match address.octets() {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] => Some("is no one's address"),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] => Some("is the loopback address"),
        [0xff, ..] => Some("is a multicast address"),
        _ => None,
    }
}

pub(crate) fn own_address(text: &str) -> Result<IpNet, Problem> {
    let net = net(text)?;
    if net.prefix_len() == 0 {
        let help = format!("a prefix length from 1 to {}", net.max_prefix_len());
        return problem_with_help(
            format!("{} claims every address as connected", quote(text)),
            help,
        );
    }
    if let Some(what) = not_a_host(net.addr()) {
        return problem(format!("{} {what}", quote(&net.addr().to_string())));
    }
    match net {
        IpNet::V4(net) => no_edge(net)?,
        // RFC 4291, 2.5.6: 64 bits of link, the rest of the interface.
        IpNet::V6(net)
            if net.addr().is_unicast_link_local()
                && (net.prefix_len() != 64 || net.addr().segments()[1..4] != [0; 3]) =>
        {
            let help = "a link-local address is in fe80::/64: write `fe80::1/64` or the like";
            return problem_with_help(
                format!("{} is no link-local address with its subnet", quote(text)),
                help,
            );
        }
        IpNet::V6(_) => {}
    }
    Ok(net)
}

/// RFC 3021: with 31 bits both addresses are hosts'; with 32 there is only the one.
fn no_edge(net: Ipv4Net) -> Result<(), Problem> {
    if net.prefix_len() >= 31 {
        return Ok(());
    }
    let (first, last) = host_range(net);
    let hint = |which: &str| {
        problem_with_help(
            format!("`{}` is the {which} address of {}", net.addr(), net.trunc()),
            format!("an address from {first} to {last}"),
        )
    };
    if net.addr() == net.network() {
        return hint("network");
    }
    if net.addr() == net.broadcast() {
        return hint("broadcast");
    }
    Ok(())
}

fn host_range(net: Ipv4Net) -> (Ipv4Addr, Ipv4Addr) {
    let first = u32::from(net.network()).saturating_add(1);
    let last = u32::from(net.broadcast()).saturating_sub(1);
    (first.into(), last.into())
}

pub(crate) fn prefix(text: &str) -> Result<IpNet, Problem> {
    routable(net(text)?, text)
}

/// Why a prefix cannot be a route's, in one sentence.
#[must_use]
pub fn route_prefix_problem(net: IpNet) -> Option<String> {
    // The text is needed for the message only.
    let is_fine = net == net.trunc()
        && !net.addr().is_multicast()
        && !crate::model::is_link_local(net.addr());
    if is_fine {
        return None;
    }
    let problem = routable(net, &net.to_string()).err()?;
    Some(match problem.help {
        Some(help) => format!("{}; {help}", problem.message),
        None => problem.message,
    })
}

fn routable(net: IpNet, text: &str) -> Result<IpNet, Problem> {
    if net != net.trunc() {
        return problem_with_help(
            format!("{} has host bits set", quote(text)),
            format!("write `{}`", net.trunc()),
        );
    }
    if net.addr().is_multicast() {
        return problem_with_help(
            format!(
                "{} is multicast, which is not routed in this version",
                quote(text)
            ),
            "a unicast prefix",
        );
    }
    if crate::model::is_link_local(net.addr()) && net.prefix_len() >= 10 {
        let help = "remove it: each interface with IPv6 has its own fe80::/64";
        return problem_with_help(
            format!("{} is link-local, and never routed (RFC 4291)", quote(text)),
            help,
        );
    }
    Ok(net)
}

pub(crate) fn neighbor(text: &str) -> Result<IpAddr, Problem> {
    let address = ip(text)?;
    match not_a_host(address) {
        Some(what) => problem(format!("{} {what}", quote(text))),
        None => Ok(address),
    }
}

fn ip(text: &str) -> Result<IpAddr, Problem> {
    text.parse()
        .or_else(|_| problem(format!("{} is not an IP address", quote(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_leave_out_network_and_broadcast() {
        for right in [
            "192.0.2.1/24",
            "192.0.2.0/31",
            "192.0.2.1/31",
            "192.0.2.255/32",
            "10.255.255.255/7",
            "192.0.2.2/30",
            "2001:db8::1/64",
            "2001:DB8:0:0:0::1/127",
            "2001:db8::/64",
            "fc00::7/7",
            "fe80::1/64",
        ] {
            assert!(own_address(right).is_ok(), "{right}");
        }
        for wrong in [
            "192.0.2.0/24",
            "192.0.2.255/24",
            "192.0.2.3/30",
            "10.0.0.1/0",
            "10.0.0.1",
            "10.0.0.1/33",
            "10.0.0.1/024",
            "127.0.0.1/8",
            "224.0.0.1/24",
            "255.255.255.255/32",
            "010.0.0.1/24",
            "2001:db8::1",
            "2001:db8::1/129",
            "2001:db8::1/0",
            "::1/128",
            "::/64",
            "ff02::1/64",
            "::ffff:10.0.0.1/120",
            "fe80::1/10",
            "fe80:1::1/64",
            "2001:db8::g/64",
            "fe80::1%eth0/64",
            "/24",
            "10.0.0.1/",
        ] {
            assert!(own_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_say_what_is_wrong_with_them() {
        let message =
            |text, plain| whole(text, plain, 128, 9216).map_err(|problem| problem.message);
        assert_eq!(message("1500", true), Ok(()));
        assert_eq!(message("127", true), Err("127 is too small".into()));
        assert_eq!(message("9217", true), Err("9217 is too large".into()));
        assert_eq!(
            message("99999999999999999999999", true),
            Err("`99999999999999999999999` is too large".into())
        );
        assert_eq!(
            message("01500", true),
            Err("`01500` has leading zeros".into())
        );
        assert_eq!(
            message("0x5dc", true),
            Err("`0x5dc` is not a whole number".into())
        );
        assert_eq!(
            message("1500", false),
            Err("`1500` in quotes is text, not a number".into())
        );
    }

    #[test]
    fn linux_names_are_what_the_kernel_takes() {
        for right in ["eth0", "veth-a.100", "0", "a@b"] {
            assert!(linux_name(right).is_ok(), "{right}");
        }
        for wrong in ["sixteen-bytes-xx", ".", "..", "a b", "a/b", "a:b"] {
            assert!(linux_name(wrong).is_err(), "{wrong}");
        }
    }
}
