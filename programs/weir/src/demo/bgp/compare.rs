//! The routes of the kernel, as `ip route` prints them, compared with those that Weir forwards by.
//!
//! `ip` is the reference: it shares no code with Weir's reader of netlink.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::Stdio;

use ipnet::IpNet;
use weir_api::{Client, RouteSource};
use weir_netlink::netns::NetNs;

/// Next hops and their devices, in order.
type Hops = Vec<(IpAddr, String)>;

/// How the two compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Routes of BIRD in the kernel.
    pub(crate) kernel: u64,
    /// Routes of the kernel in Weir's forwarding tables.
    pub(crate) fib: u64,
    /// Those of the kernel that Weir does not have, or that lead elsewhere there.
    pub(crate) missing: u64,
    /// Those of Weir that the kernel does not have.
    pub(crate) stale: u64,
}

/// Compares the kernel of a namespace with a router.
pub(crate) fn compare(namespace: &NetNs, client: &Client) -> Result<Compared, String> {
    let (mut routes, mut compared) = (HashMap::new(), Compared::default());
    for family in ["-4", "-6"] {
        read_kernel(namespace, family, &mut routes)?;
    }
    compared.kernel = routes.len() as u64;
    let take = |part: weir_api::Routes| {
        for route in part
            .routes
            .iter()
            .filter(|route| route.source == RouteSource::Kernel)
        {
            compared.fib += 1;
            let mut hops: Hops = route
                .paths
                .iter()
                .filter_map(|path| Some((path.next_hop?, path.interface.clone()?)))
                .collect();
            hops.sort();
            match routes.remove(&route.prefix) {
                None => compared.stale += 1,
                Some(kernel) if kernel != hops => compared.missing += 1,
                Some(_) => {}
            }
        }
    };
    client
        .each_routes(None, None, None, take)
        .map_err(|error| error.to_string())?;
    compared.missing += routes.len() as u64;
    Ok(compared)
}

fn read_kernel(
    namespace: &NetNs,
    family: &str,
    to: &mut HashMap<IpNet, Hops>,
) -> Result<(), String> {
    let mut command = namespace.command("ip");
    command
        .args([family, "-o", "route", "show", "proto", "bird"])
        .stdout(Stdio::piped());
    let mut child =
        weir_netlink::netns::spawn_lasting(command).map_err(|error| error.to_string())?;
    let output = child.stdout.take().ok_or("ip has no output")?;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Some((prefix, hops)) = parse(&line, family == "-6") {
            to.insert(prefix, hops);
        }
    }
    child.wait().map(drop).map_err(|error| error.to_string())
}

/// A line of `ip -o route`: `PREFIX [nexthop] via A dev D …`.
fn parse(line: &str, six: bool) -> Option<(IpNet, Hops)> {
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    let prefix = match (first, six) {
        ("default", false) => "0.0.0.0/0".parse().ok()?,
        ("default", true) => "::/0".parse().ok()?,
        _ => first
            .parse()
            .or_else(|_| first.parse::<IpAddr>().map(IpNet::from))
            .ok()?,
    };
    let (mut hops, mut gateway) = (Hops::new(), None);
    while let Some(word) = words.next() {
        match word {
            "via" => gateway = words.next()?.parse().ok(),
            "dev" => {
                let device = words.next()?.to_owned();
                hops.extend(gateway.take().map(|gateway| (gateway, device)));
            }
            _ => {}
        }
    }
    hops.sort();
    Some((prefix, hops))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ip_are_read() {
        let hop = |address: &str, device: &str| (address.parse().unwrap(), device.to_owned());
        let single = parse(
            "20.0.0.0/24 via 10.0.2.2 dev core2 proto bird metric 32 ",
            false,
        )
        .unwrap();
        assert_eq!(
            single,
            (
                "20.0.0.0/24".parse().unwrap(),
                vec![hop("10.0.2.2", "core2")]
            )
        );
        let line = "1.2.3.4 proto bird metric 32 \\\tnexthop via 10.0.2.2 dev core2 weight 1 \\\tnexthop via 10.0.1.2 dev core1 weight 1 ";
        let (prefix, hops) = parse(line, false).unwrap();
        assert_eq!(prefix, "1.2.3.4/32".parse().unwrap());
        assert_eq!(hops, [hop("10.0.1.2", "core1"), hop("10.0.2.2", "core2")]);
        let (prefix, hops) = parse(
            "2001:db8::/32 via fd00:11::2 dev core1 proto bird metric 32 pref medium",
            true,
        )
        .unwrap();
        assert_eq!(
            (prefix, hops),
            (
                "2001:db8::/32".parse().unwrap(),
                vec![hop("fd00:11::2", "core1")]
            )
        );
        assert_eq!(parse("", false), None);
    }
}
