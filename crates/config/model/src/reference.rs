//! The reference page of the configuration file, rendered from the key table.
//!
//! A test keeps `docs/configuration.md` equal to what this gives, and puts the example at its
//! head through `check`, so that the page cannot tell what is not so.

use std::fmt::Write;

use crate::keys::{KEYS, Key, Kind};

/// The example at the head of the page: one file that has most sections.
pub(crate) const EXAMPLE: &str = "\
interfaces:
  xe0:
    description: to the upstream
    device: {driver: af-xdp, name: eth1, queues: 2}
    mtu: 1500
    addresses: [192.0.2.1/24]
    sflow: true
    rx-queue-workers: [0, 1]
  xe1:
    device: {driver: tap, name: lan0}
    addresses: [198.51.100.1/24]
sflow:
  sampling-rate: 1000
  collectors:
    - {address: 198.51.100.9, port: 6343}
routes:
  - {prefix: 0.0.0.0/0, via: 192.0.2.254}
  - {prefix: 203.0.113.0/24, via: [{next-hop: 192.0.2.10, weight: 2}, {next-hop: 192.0.2.11}]}
  - {prefix: 10.0.0.0/8, via: blackhole}
neighbors:
  - {interface: xe1, address: 198.51.100.7, mac: 02:00:00:00:00:07}
workers: {cores: [0, 1], idle: poll}
";

const HEAD: &str = "\
# The configuration file

<!-- Written from the key table of the crate `weir-config`; `UPDATE_GOLDEN=1 cargo test -p weir-config` rewrites it. -->

One YAML file holds the desired state of the router. `weir config check -c FILE` reads it and
shows every error at once, each with its line, its key, and what would be right; `weir run -c FILE`
starts a router with it. Keys are vppcfg's where vppcfg has them. Files to start from are in `examples`; `weir config schema`
writes the JSON Schema with which editors complete and check while one types.

";

const RULES: &str = "
## Rules between keys

- The ends of a cross connect (`l2xc`) are two interfaces of the file without addresses and with one MTU; an interface is the
  target of one other at most.
- An address is used once, a subnet by one interface (which may have several addresses of it, all with its prefix length), a Linux device by one interface, a capture written by one.
- An own address is not the network or broadcast address of its subnet, unless its length is 31 or 32 (RFC 3021).
- Each next hop and each static neighbour lies in a connected subnet (of its `interface`, when it names one) and is not an own
  address. A prefix has one route.
- A loopback stands under `loopbacks` and nowhere else. It is no end of a cross connect, and nobody is behind it: no next hop and
  no static neighbour lies in its subnets.
- An interface called `tapN` has an entry under `taps` or a `device`, not both. The MTU of both ends of a TAP is one.
- An interface called `BondEthernetN` has an entry under `bondethernets` or a `device`, not both; the MAC address of a bond stands
  under `bondethernets`. A member of a bond is in no other, is no bond, loopback or end of a cross connect, has no addresses, and has
  the MTU of its bond. A bond is not sampled, its members may be. `load-balance` is for modes `lacp` and `xor`, `lacp-rate` for `lacp`.
- The access lists of an interface are at most 65,536 rules in each direction, each source of a term with each destination of its
  version of IP being one. A prefix with host bits is taken for its network, with a warning; an empty prefix list matches nothing.
- An interface called `vxlan_tunnelN` has an entry under `vxlan_tunnels` or a `device`, not both. The ends of a tunnel are of one IP
  version, the far one is no own address, and no two tunnels have the same ends and `vni`. A tunnel may have
  sub-interfaces, is no member of a bond, and is not sampled.
- A member of a bridge domain is an interface with the domain's MTU, without addresses and without cross connect; it is in one
  domain. A BVI is a loopback with the domain's MTU, of one domain. Split-horizon groups and static entries name members.
- An interface called `pwN` has an entry under `pseudowires` or a `device`, not both; it has no queues, no sub-interfaces, is in no bond,
  and is not sampled. A label of this end is that of one pseudowire and of no entry of `mpls.labels`. The next hops of a pseudowire are
  behind other kinds of interfaces. `vlan` is for type `tagged`.
- Labels are pushed that have no meaning of their own: 16 and above, or an explicit null. `ttl-mode`, `traffic-class` and `entropy-label` are
  said of paths with `labels`. An interface with `mpls` is not cross-connected, no member of a bond or bridge domain, and exact in its tags.
- Of each `id` at a memif `socket` there is one master and one slave at most. No memif meets at the API's socket. A master's
  socket lies in a folder that is there (under the systemd unit: `/run/weir`, the only one that it may write to).
- `rx-queue-workers` names workers that run, for at most as many queues as the device serves.
- `workers.count` and the number of `workers.cores` agree when both are given; a core is used once.
- `sflow.datagram-bytes` holds a sample with `sflow.header-bytes`. Compact encoding needs interface indices below 2^24.
- Interfaces under `ipfix.interfaces` are interfaces of the file, metered by at most 16 record sets. A template of each set that a collector
  gets, and a record of it, fit its `mtu`. `tls` is for `transport: tls`, with both `certificate` and `key` or none of them. No two collectors have
  one address, port and transport.
- A listener of the API without `tls` has a loopback address. There are tokens, or it has a `client-ca`. No two listeners want one
  port of an address; names and hashes of tokens are used once; `group` and `read-only-group` differ.

It is a warning, and no error, when an interface is sampled but there is no collector or the rate is 0, when there are collectors
but nothing is sampled, when a route is for a connected subnet, when the near end of a VXLAN tunnel is no own address, and when a TAP has ring sizes.

## What a file may be

UTF-8 of at most 64 MiB, one YAML document, at most 500,000 commas and opening brackets, at most 1,000,000 keys and values, nested at most 32 deep. Aliases count as what they
stand for. Tabs in the indentation, control characters, tags and a key that stands twice in its section are refused. Numbers are
decimal, without leading zeros and without quotes.
";

/// The whole page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    // Writing to a string cannot fail.
    let _ = write!(page, "```yaml\n{EXAMPLE}```\n");
    let sections = KEYS.iter().filter(|row| {
        !row.path.contains('.') && !row.path.contains('[') && row.kind != Kind::Unsupported
    });
    for section in sections {
        write_section(&mut page, section);
    }
    page.push_str(RULES);
    write_lacking(&mut page);
    page
}

fn write_section(page: &mut String, section: &Key) {
    let _ = write!(
        page,
        "\n## `{}`\n\n{}\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n",
        section.path, section.about
    );
    let belongs = |row: &&Key| {
        row.path
            .strip_prefix(section.path)
            .is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    let plain = |row: &&Key| {
        row.kind != Kind::Unsupported
            && !(row.kind == Kind::Section
                && (row.path.ends_with("[]") || row.path.ends_with(".*")))
    };
    for row in KEYS.iter().filter(belongs).filter(plain) {
        let default = match row.default {
            "" => "none".to_owned(),
            "required" => "required".to_owned(),
            default => format!("`{default}`"),
        };
        let drivers = if row.drivers.is_empty() {
            String::new()
        } else {
            format!(" Driver {} only.", crate::keys::one_of(row.drivers))
        };
        let path = row.path.replace('*', "NAME");
        let _ = writeln!(
            page,
            "| `{path}` | {} | {default} | {}{drivers} Example: `{}`. |",
            row.kind.expected(),
            row.about,
            row.example
        );
    }
}

fn write_lacking(page: &mut String) {
    page.push_str("\n## Known to vppcfg, not supported by this version\n\n");
    let rows: Vec<String> = KEYS
        .iter()
        .filter(|row| row.kind == Kind::Unsupported)
        .map(|row| format!("`{}`", row.path.replace('*', "NAME")))
        .collect();
    let _ = writeln!(page, "{}.", rows.join(", "));
    page.push_str(
        "\nA file with one of these is refused with the place; `--skip-unsupported` leaves these out and makes each a warning.\n",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_good_file() {
        let (config, warnings) = crate::check("example.yaml", EXAMPLE).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(config.interfaces.len(), 2);
        assert_eq!(config.routes.len(), 3);
    }

    #[test]
    fn no_cell_of_a_table_ends_early() {
        assert!(KEYS.iter().all(|row| {
            ![row.about, row.example, row.default]
                .iter()
                .any(|text| text.contains('|'))
        }));
    }

    #[test]
    fn the_page_in_the_documentation_is_this_one() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/configuration.md"
        );
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs")).unwrap();
            std::fs::write(path, reference()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == reference(),
            "docs/configuration.md is not what the key table says; UPDATE_GOLDEN=1 rewrites it"
        );
    }
}
