//! How single values of the command line are read.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Reads `10s`, `500ms`, `2m`, `1h`; a bare number means seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let help = "a duration is a number with ms, s, m or h: 10s";
    let (number, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let number: u64 = number.parse().map_err(|_| help.to_owned())?;
    let milliseconds = match unit {
        "ms" => Some(number),
        "" | "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => return Err(help.to_owned()),
    };
    match milliseconds {
        None => Err("longer than time itself".to_owned()),
        Some(0) => Err("must be longer than nothing".to_owned()),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}

/// Reads `127.0.0.1:6343`, `[::1]:6343`, `:6343` and `6343`.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let any = |port| SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    let port_alone = text.strip_prefix(':').unwrap_or(text).parse().map(any);
    text.parse().or(port_alone).map_err(|_| {
        "an address and a port are written as 127.0.0.1:6343, [::1]:6343 or 6343".to_owned()
    })
}

/// Reads `192.0.2.1/6343`, `[2001:db8::1]/6343`, `collector.example/6343`, and the same with a colon.
pub(super) fn destination(text: &str) -> Result<(String, u16), String> {
    let help = || "a destination is a host and a UDP port, as 192.0.2.1/6343".to_owned();
    let (host, port) = text
        .rsplit_once('/')
        .or_else(|| text.rsplit_once(':'))
        .ok_or_else(help)?;
    let host = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    match port.parse() {
        Ok(port @ 1..) if !host.is_empty() => Ok((host.to_owned(), port)),
        _ => Err(help()),
    }
}

/// Reads how many times as fast; something more than nothing.
pub(super) fn pace(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(times) if times > 0.0 && times <= 1e9 => Ok(times),
        _ => Err("a number above 0, as 1 or 0.5 or 100".to_owned()),
    }
}

/// Reads a duration of at most a day, in whole seconds: how long a change waits to be confirmed.
pub(super) fn confirm_within(text: &str) -> Result<Duration, String> {
    let seconds = duration(text)?.as_millis().div_ceil(1000);
    match u64::try_from(seconds) {
        Ok(seconds @ ..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err("a change waits for at most a day".to_owned()),
    }
}

/// A field of sFlow datagrams, by the name under which it is printed.
pub(super) fn field_name(text: &str) -> Result<String, String> {
    if weir_flowfmt::sflow::print::is_name(text) {
        return Ok(text.to_owned());
    }
    let names = weir_flowfmt::sflow::print::names();
    let same = names.iter().find(|name| name.eq_ignore_ascii_case(text));
    let advice = same.map_or_else(String::new, |name| format!(" (there is {name})"));
    Err(format!(
        "no field has this name{advice}. Names are, with discarded_ or inner_ before them for discarded packets and packets in tunnels: {}",
        names.join(", ")
    ))
}
