//! What an argument's value is, given by its name in capitals: `INTERFACE`, `NODE`, `FILE`.
//!
//! The name that the help shows is the key into one table: where the possible values come from
//! (so that Tab can list them, in the shell as in bash) and a sentence for the reference page. An
//! argument whose value has no row here fails a test.

use clap::Arg;

/// Where the values that an argument may have are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// The running router's interfaces.
    Interfaces,
    /// The nodes of the running router's graph, and `any`.
    Nodes,
    /// The access lists of the running router.
    AccessLists,
    /// The prefixes of the running router's routes.
    Prefixes,
    /// The applied configurations that the running router keeps.
    Revisions,
    /// The reasons for which packets are dropped.
    Reasons,
    /// The cases of `weir bench`.
    BenchCases,
    /// Files.
    Files,
    /// Folders.
    Folders,
    /// Nowhere, or in the argument's own list of words.
    Nothing,
}

/// One kind of value.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Its name in help texts.
    pub(crate) name: &'static str,
    /// Where values come from.
    pub(crate) source: Source,
    /// What it is, for the reference page.
    pub(crate) sentence: &'static str,
}

const fn kind(name: &'static str, source: Source, sentence: &'static str) -> Kind {
    Kind {
        name,
        source,
        sentence,
    }
}

/// All kinds, in the order of the reference page.
pub(crate) const KINDS: &[Kind] = &[
    kind(
        "INTERFACE",
        Source::Interfaces,
        "the name of an interface, as in the configuration",
    ),
    kind(
        "INTERFACE|NUMBER",
        Source::Interfaces,
        "the name of an interface, or the number of an adjacency as `show ip fib` has it",
    ),
    kind(
        "BRIDGE-DOMAIN",
        Source::Nothing,
        "the name of a bridge domain, as in the configuration",
    ),
    kind(
        "NODE",
        Source::Nodes,
        "the name of a node of the graph, as `show runtime` has it; `any` is all of them",
    ),
    kind(
        "ACL",
        Source::AccessLists,
        "the name of an access list, as in the configuration",
    ),
    kind(
        "PREFIX|ADDRESS",
        Source::Prefixes,
        "a prefix as 192.0.2.0/24, or an address as 192.0.2.7",
    ),
    kind(
        "PREFIX",
        Source::Prefixes,
        "a prefix as 192.0.2.0/24 or 2001:db8::/32",
    ),
    kind("ADDRESS", Source::Nothing, "an IP address"),
    kind(
        "VRF",
        Source::Nothing,
        "the name of a VRF, as in the configuration; `default` is the default table",
    ),
    kind(
        "LABELS",
        Source::Nothing,
        "MPLS labels with commas between them, the outermost first",
    ),
    kind("HOW", Source::Nothing, "one of the words that are listed"),
    kind(
        "REVISION",
        Source::Revisions,
        "the number of an applied configuration, as `config history` has it",
    ),
    kind(
        "PART",
        Source::Nothing,
        "a part of what there is to see: the command lists them",
    ),
    kind("CASE", Source::BenchCases, "the name of a measurement"),
    kind(
        "FILE",
        Source::Files,
        "a file; where it says so, - is standard input or output",
    ),
    kind("DIR", Source::Folders, "a folder"),
    kind(
        "FILE|URL",
        Source::Files,
        "a file, or an address with http:// or https://",
    ),
    kind(
        "LIST",
        Source::Nothing,
        "words or numbers with commas between",
    ),
    kind("PERCENT", Source::Nothing, "a whole number from 0 to 100"),
    kind(
        "NEIGHBOR|EXCHANGE",
        Source::Nothing,
        "a BGP neighbour as AS64500 or AS64500_frysix, or the name of an exchange",
    ),
    kind(
        "ADDRESS:PORT",
        Source::Nothing,
        "an address and a port to listen on, as 127.0.0.1:8070",
    ),
    kind("ASN", Source::Nothing, "an AS number, as 64500"),
    kind("PREFIX", Source::Nothing, "a prefix, as 192.0.2.0/24"),
    kind(
        "HOST:PORT",
        Source::Nothing,
        "a router's TCP address, as 192.0.2.1:8443",
    ),
    kind(
        "SOCKET",
        Source::Files,
        "the Unix socket of a running router",
    ),
    kind(
        "DURATION",
        Source::Nothing,
        "a time as 500ms, 90s, 5m or 1h; a number alone means seconds",
    ),
    kind("SECONDS", Source::Nothing, "a number of seconds"),
    kind(
        "REASON",
        Source::Reasons,
        "a reason for which packets are dropped, as `show errors` has it",
    ),
    kind(
        "CHECK",
        Source::Nothing,
        "the name of a check, as `weir doctor --list` has it",
    ),
    kind(
        "DEVICE",
        Source::Nothing,
        "a port: null, pcap:FILE, memif:SOCKET, tap:NAME, or a network device by AF_XDP",
    ),
    kind(
        "PROFILE",
        Source::Files,
        "a file with streams, or the word imix",
    ),
    kind(
        "RATE",
        Source::Nothing,
        "a rate as 100kpps, 1Gbps, 10GbpsL1, 50% or max",
    ),
    kind(
        "ADDRESSES",
        Source::Nothing,
        "an address, or a range as 10.0.0.1-10.0.0.9",
    ),
    kind(
        "SCENARIO",
        Source::Nothing,
        "the name of a scenario, as `weir lab run` lists them",
    ),
    kind("FACTOR", Source::Nothing, "a factor above 0, as 2 or 0.5"),
    kind("SHARE", Source::Nothing, "a share from 0 to 1, as 0.005"),
    kind(
        "SOURCE",
        Source::Nothing,
        "linux, or [NAME=]SOCKET of a running router",
    ),
    kind("MAC", Source::Nothing, "a MAC address"),
    kind("BITS", Source::Nothing, "bits per second, as 10G"),
    kind("COUNT", Source::Nothing, "how many"),
    kind("N", Source::Nothing, "a number"),
    kind(
        "LEVEL",
        Source::Nothing,
        "how important a line of the log is: `error`, `warn`, `info`, `debug` or `trace`",
    ),
    kind(
        "PROTOCOL",
        Source::Nothing,
        "an IP protocol by its name or number, as `tcp` or 6",
    ),
    kind(
        "IPV4,IPV6",
        Source::Nothing,
        "two prefix lengths, of IPv4 and IPv6, as 24,48",
    ),
    kind(
        "SOURCE_IP",
        Source::Nothing,
        "the address that a packet comes from",
    ),
    kind(
        "DESTINATION_IP",
        Source::Nothing,
        "the address that a packet goes to",
    ),
    kind("HOPS", Source::Nothing, "a number of hops, 0 to 255"),
    kind(
        "UDP|TCP|ICMP",
        Source::Nothing,
        "the protocol of a packet: `udp`, `tcp` or `icmp`",
    ),
    kind("BYTES", Source::Nothing, "a number of bytes"),
    kind("STATE", Source::Nothing, "one of the words that are listed"),
    kind("TOPIC", Source::Nothing, "one of the words that are listed"),
    kind("POINT", Source::Nothing, "one of the words that are listed"),
    kind("PORT", Source::Nothing, "a port of UDP or TCP"),
    kind("LABEL", Source::Nothing, "an MPLS label, 0 to 1048575"),
    kind(
        "TABLE",
        Source::Nothing,
        "the name of a VRF, or the number of a routing table; `default` or 0 is the default one",
    ),
    kind(
        "ADDR:PORT",
        Source::Nothing,
        "an address and a UDP port, as 127.0.0.1:6343, [::1]:6343 or 6343",
    ),
    kind(
        "HOST/PORT",
        Source::Nothing,
        "a host and a UDP port, as 192.0.2.1/6343",
    ),
    kind("HOST", Source::Nothing, "a name or an address"),
    kind(
        "TIMES",
        Source::Nothing,
        "a number above 0, as 1 or 0.5 or 100",
    ),
    kind(
        "FIELD,...",
        Source::Nothing,
        "names of fields as the text form prints them, with commas between them",
    ),
    kind(
        "TEXT",
        Source::Nothing,
        "any text; in quotes when it has spaces",
    ),
    kind(
        "FORMAT",
        Source::Nothing,
        "one of the words that are listed",
    ),
    kind("SHELL", Source::Nothing, "one of the words that are listed"),
    kind(
        "WORD",
        Source::Nothing,
        "a word of a command line, or one of those that are listed",
    ),
];

impl Kind {
    /// The kind of an argument's value; none for a flag, or when the table lacks it.
    pub(crate) fn of(argument: &Arg) -> Option<&'static Self> {
        let name = argument.get_value_names()?.first()?;
        KINDS.iter().find(|kind| kind.name == name.as_str())
    }
}
