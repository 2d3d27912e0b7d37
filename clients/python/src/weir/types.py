"""What the API consists of: replies as dataclasses, requests as typed dictionaries.

Written by `generate.py` from the router's OpenAPI document; change that, not this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict


AclAction: TypeAlias = Literal[
    # They go on.
    "permit",
    # They are dropped.
    "deny",
]
"""What becomes of packets that match a term."""


AclDirection: TypeAlias = Literal[
    # Those that come in.
    "input",
    # Those that go out.
    "output",
]
"""Which packets of an interface pass a list."""


Adjacency: TypeAlias = Literal[
    # Sent on: the next hop's MAC address is known.
    "complete",
    # Held until the next hop answers.
    "incomplete",
    # Held until the destination itself answers.
    "glean",
    # For the router itself.
    "local",
    # Dropped, as asked.
    "drop",
    # Dropped, and the sender notified that the destination is unreachable.
    "unreachable",
    # Dropped, and the sender notified that it may not go there.
    "prohibit",
    # Dropped: the interface is down.
    "down",
]
"""What becomes of packets that take a path."""


AdjacencyKind: TypeAlias = Literal[
    # Sends them to a neighbour.
    "neighbor",
    # Finds the neighbour first: the destination itself.
    "glean",
    # Takes them for the router itself.
    "local",
    # Pushes labels, then sends them to a neighbour.
    "labelled",
    # Looks them up anew, without their label, in a table.
    "lookup",
    # Takes them for frames that came out of a pseudowire.
    "pseudowire",
    # Drops them.
    "blackhole",
    # Drops them, and tells the sender that the destination is unreachable.
    "unreachable",
    # Drops them, and tells the sender that it may not go there.
    "prohibit",
    # Drops what has no route, and tells the sender.
    "no-route",
]
"""What an adjacency does with packets."""


Clear: TypeAlias = Literal[
    # The counters of interfaces, their drops included.
    "interfaces",
    # Calls, packets and clocks of nodes, turns of workers.
    "runtime",
    # Drop counters.
    "errors",
]
"""Counters that can be set to 0."""


Component: TypeAlias = Literal[
    # An interface and its port.
    "interface",
    # The sFlow agent and its collectors.
    "sflow",
    # The flow exporter and its collectors.
    "ipfix",
    # Packet memory.
    "buffers",
    # Applied configurations.
    "history",
    # The configuration itself.
    "config",
]
"""A part of the router that can have a problem."""


ConfigEventKind: TypeAlias = Literal[
    # A change was done.
    "applied",
    # A change that waited was confirmed.
    "confirmed",
    # An earlier configuration runs again, because somebody asked.
    "rolled-back",
    # A change that nobody confirmed in time was undone.
    "expired",
    # A change failed, and what ran before runs on.
    "failed",
]
"""What happened to the configuration."""


CounterSource: TypeAlias = Literal[
    # Weir's own driver code.
    "driver",
    # The kernel, for the socket (AF_XDP's statistics).
    "xdp",
    # The kernel, for the network device.
    "kernel",
    # The device's driver in the kernel (ethtool).
    "ethtool",
]
"""Who counts."""


Discard: TypeAlias = Literal[
    # Drops them.
    "blackhole",
    # Drops them, and tells the sender that the destination is unreachable.
    "unreachable",
    # Drops them, and tells the sender that it may not go there.
    "prohibit",
]
"""What a route without paths does with packets."""


ErrorCode: TypeAlias = Literal[
    # The request cannot be understood, or asks for something impossible.
    "bad-request",
    # Nobody knows who asks: a token or a certificate is missing, or is unknown.
    "unauthorized",
    # Whoever asks may not do this.
    "forbidden",
    # The path, or the thing that it names, does not exist.
    "not-found",
    # The path exists, but not with this method.
    "method-not-allowed",
    # The request did not come in whole in time.
    "request-timeout",
    # The router's state forbids it now.
    "conflict",
    # The request's body is too large.
    "too-large",
    # The body is of a type that the path does not take.
    "unsupported-media-type",
    # The configuration that was sent has errors.
    "invalid",
    # A fault of the router.
    "internal",
    # This router cannot do that.
    "not-available",
    # The store of configurations cannot be written.
    "no-room",
    # The router has too much to do, or is stopping; try again.
    "unavailable",
]
"""The kinds of errors."""


EventLevel: TypeAlias = Literal[
    # Something is broken.
    "error",
    # Something is odd.
    "warn",
    # Something happened.
    "info",
    # For those who look for a fault.
    "debug",
    # Everything.
    "trace",
]
"""How important a line of the log is."""


Family: TypeAlias = Literal[
    # IPv4.
    "ipv4",
    # IPv6.
    "ipv6",
    # MPLS labels.
    "mpls",
]
"""A family of addresses."""


FindingSeverity: TypeAlias = Literal[
    # The file is refused.
    "error",
    # The file is good, but does something that is hardly meant.
    "warning",
]
"""Whether a file is refused for a finding."""


Health: TypeAlias = Literal[
    # It does.
    "ok",
    # A part of it does not work now.
    "degraded",
]
"""Whether the router does all that its configuration says."""


IdleMode: TypeAlias = Literal[
    # Looks again at once.
    "poll",
    # Looks again at once while packets come fast, else waits for the kernel to wake it.
    "adaptive",
    # Waits for the kernel to wake it.
    "sleep",
]
"""What a worker does without packets."""


InterfaceKind: TypeAlias = Literal[
    # On a port of its own.
    "port",
    # Several ports as one.
    "bond",
    # A VLAN of another interface.
    "sub-interface",
    # On nothing; always up.
    "loopback",
    # The routed end of a bridge domain.
    "bvi",
    # What comes out of a pseudowire.
    "pseudowire",
    # One end of a VXLAN tunnel.
    "vxlan",
]
"""The kinds of interfaces."""


LabelMeaning: TypeAlias = Literal[
    # Taken off. The label below it is next; IPv4 is, in the table of the interface it came in by.
    "ipv4-explicit-null",
    # The label below it is next, and the alert goes on with the packet.
    "router-alert",
    # As the one for IPv4, for IPv6.
    "ipv6-explicit-null",
    # Taken off with the entropy label below it.
    "entropy-label-indicator",
]
"""What a label stands for that has a meaning of its own."""


LabelMode: TypeAlias = Literal[
    # Carried over to what is under it.
    "uniform",
    # Left as they are under it.
    "pipe",
]
"""What becomes of time to live and class where a label is taken off (RFC 3443)."""


LabelSource: TypeAlias = Literal[
    # The configuration.
    "static",
    # FRR's zebra, by the forwarding plane manager protocol.
    "fpm",
    # The Linux kernel: what routing daemons and `ip -f mpls route` put there.
    "kernel",
    # A pseudowire, for what its far end sends.
    "pseudowire",
    # Built in: the label has a meaning of its own (RFC 3032, RFC 6790).
    "special",
]
"""Where the entry of a label comes from."""


LockReason: TypeAlias = Literal[
    # A change is being done.
    "apply-running",
    # A change waits to be confirmed.
    "confirm-pending",
]
"""Why nobody else may change the configuration."""


MemifRole: TypeAlias = Literal[
    # It listens.
    "master",
    # It connects, and shares its packet memory.
    "slave",
]
"""The two ends of a connection."""


NeighborState: TypeAlias = Literal[
    # Asked for, no answer yet.
    "incomplete",
    # It answered lately.
    "reachable",
    # It answered once, is still used and will be asked again.
    "stale",
    # It is being asked again.
    "probing",
    # It does not answer.
    "failed",
    # The configuration says it.
    "static",
]
"""How well a neighbour is known."""


ProblemSeverity: TypeAlias = Literal[
    # Something that the configuration asks for does not work now.
    "degraded",
    # Something to know about.
    "notice",
]
"""How bad a problem is."""


PushMode: TypeAlias = Literal[
    # From what they are pushed onto.
    "uniform",
    # It begins anew: the path is one hop.
    "pipe",
    # The same; the egress acts by the traffic class under the labels.
    "short-pipe",
]
"""Where the time to live of pushed labels comes from."""


RouteResync: TypeAlias = Literal[
    # The first request: what is not set from here on will be deleted.
    "begin",
    # The last request: what was not set since the first one is deleted.
    "end",
    # The only request.
    "all",
]
"""Where a request is in the replacement of all routes."""


RouteSource: TypeAlias = Literal[
    # An own address.
    "local",
    # The subnet of an own address.
    "connected",
    # A neighbour on a link.
    "neighbor",
    # The configuration.
    "static",
    # A client of the API (`POST /v1/routes`).
    "api",
    # FRR's zebra, by the forwarding plane manager protocol.
    "fpm",
    # The Linux kernel: what routing daemons and `ip route` put there.
    "kernel",
    # Built in: what no route covers, and destinations that are never forwarded to.
    "special",
]
"""Where a route comes from."""


RouteVerdict: TypeAlias = Literal[
    # Used: the prefix has no other.
    "only-route",
    # Used: its distance is the lowest.
    "lowest-distance",
    # Used: of the lowest distance its metric is the lowest.
    "lowest-metric",
    # Used: at equal distance and metric its source comes first.
    "first-source",
    # Not used: another distance is lower.
    "higher-distance",
    # Not used: at equal distance another metric is lower.
    "higher-metric",
    # Not used: at equal distance and metric another source comes first.
    "later-source",
]
"""Why a route of a prefix is used, or why not."""


Severity: TypeAlias = Literal[
    # As it should be: what the configuration or the protocol asks for.
    "info",
    # Somebody sends what is wrong, or something is missing.
    "warning",
    # The router lost a packet that it should have forwarded.
    "error",
]
"""How bad a drop is."""


SflowDirection: TypeAlias = Literal[
    # Those that come in.
    "rx",
    # Those that go out.
    "tx",
    # Both.
    "both",
]
"""Which packets of an interface are sampled."""


SflowEncoding: TypeAlias = Literal[
    # Interfaces as 32-bit indices.
    "expanded",
    # Interfaces below 2^24 only.
    "compact",
]
"""Which of the two forms of sFlow version 5 the agent speaks."""


StepGroup: TypeAlias = Literal[
    # What is no longer wanted goes.
    "prune",
    # What is new is made.
    "create",
    # What stays gets its new values.
    "sync",
]
"""The parts of a plan, in their order."""


Timestamp: TypeAlias = datetime
"""A point in time in UTC, as RFC 3339 writes it."""


Topic: TypeAlias = Literal[
    # Counters of interfaces, again and again.
    "counters",
    # Lines of the router's log.
    "log",
    # Changes of the configuration.
    "config",
    # Links that go up or down.
    "link",
]
"""What events can be about."""


Unresolved: TypeAlias = Literal[
    # No route covers it.
    "no-route",
    # It is an own address.
    "own-address",
    # The way to it leads back to the route itself.
    "loop",
    # The way to it goes over more routes, or branches more often, than is followed.
    "too-deep",
]
"""Why no path leads to a next hop."""


UpDown: TypeAlias = Literal[
    # Packets pass.
    "up",
    # They do not.
    "down",
]
"""Up or down."""


WhyOutcome: TypeAlias = Literal[
    # It is sent on.
    "forwarded",
    # It is dropped.
    "dropped",
    # It waits until its neighbor's MAC address is known.
    "held",
    # The router or its host takes it.
    "received",
]
"""What becomes of a packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBinding:
    """Lists that the packets of an interface pass in one direction."""

    interface: str
    """The interface."""

    direction: AclDirection
    """Which packets."""

    acls: list[str]
    """The lists, one after the other."""

    permitted: int
    """Packets that a term permitted."""

    denied: int
    """Packets that a term denied."""

    unmatched: int
    """Packets that no term matched; they are dropped, too."""

    rules: int
    """Rules that the terms stand for, with their prefix lists written out."""

    memory_bytes: int
    """Bytes that the classifier takes; shared by all that are bound to the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclTerm:
    """One term of a list, and what it met on all interfaces together, or on the one that was asked for."""

    acl: str
    """The list."""

    term: int
    """Its place there, from 0."""

    action: AclAction
    """What becomes of packets that match."""

    match: str
    """What it asks for, as the file spells it."""

    packets: int
    """Packets that met it first."""

    bytes: int
    """Their bytes."""

    description: str | None = None
    """The file's text for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclsPage:
    """A part of a long list."""

    bindings: list[AclBinding]
    """What interfaces are bound to, by interface and direction; in the first page only."""

    terms: list[AclTerm]
    """The terms of all lists, in their order."""

    next: str | None = None
    """There are more: the `after` that asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjacenciesPage:
    """A part of a long list."""

    adjacencies: list[AdjacencyReply]
    """The adjacencies, by number."""

    next: str | None = None
    """There are more: the `after` that asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjacencyReply:
    """The end of paths."""

    number: int
    """Its number."""

    kind: AdjacencyKind
    """What it does with packets."""

    state: Adjacency
    """What becomes of packets now."""

    groups: int
    """How many groups have a path that ends here."""

    address: str | None = None
    """The neighbour that they are handed to."""

    interface: str | None = None
    """The interface they leave by, or that the address is on."""

    labels: list[int] = field(default_factory=list)
    """MPLS labels that are pushed, outermost first."""

    mac: str | None = None
    """Its MAC address, once known."""

    mtu: int | None = None
    """The longest IP packet that it takes, in bytes, if it leaves the router."""

    source_mac: str | None = None
    """The MAC address that they are sent from."""

    table: int | None = None
    """The number of the table that they are looked up in."""

    vrf: str | None = None
    """The name of that table; the default one has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiError:
    """Why a request was not done."""

    code: ErrorCode
    """The kind of error; decides the HTTP status."""

    message: str
    """One sentence: what is wrong, with the names of the things it is about."""

    help: str
    """What would be right, or what to do; may be empty."""

    findings: list[Finding] = field(default_factory=list)
    """What is wrong with the configuration that was sent."""

    lock: ConfigLock | None = None
    """Who holds the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A change that was done."""

    revision: int
    """The number of what runs now in the history; unchanged when there was nothing to do."""

    steps: list[ConfigStep]
    """The steps that were done, in their order."""

    needs_restart: list[str]
    """Keys whose new value counts from the next start on."""

    findings: list[Finding]
    """Warnings about the file."""

    confirm_by: Timestamp | None = None
    """When the change is undone unless it is confirmed before; null = never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bond:
    """Several ports as one."""

    interface: str
    """The bond's interface."""

    mode: str
    """Which members carry frames: `lacp`, `xor`, `active-backup`, `round-robin` or `broadcast`."""

    link: UpDown
    """Whether some member carries frames."""

    speed: int
    """Bits per second of all members that carry frames; 0 = unknown."""

    members: list[BondMember]
    """Its members, in the order of their names."""

    load_balance: str | None = None
    """What keeps a flow on one member, in modes that choose by flow: `l2`, `l23` or `l34`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BondMember:
    """A member of a bond."""

    interface: str
    """Its interface."""

    link: UpDown
    """Whether it can carry frames at all: bond and member are wanted up, and the member's link is."""

    collecting: bool
    """Whether the bond takes frames from it."""

    distributing: bool
    """Whether the bond sends frames by it."""

    lacp: LacpPort | None = None
    """Where LACP stands, in mode `lacp`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bonds:
    """All bonds."""

    bonds: list[Bond]
    """The bonds, in the order of their interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeDomain:
    """One bridge domain."""

    name: str
    """Its name."""

    members: list[BridgeMember]
    """Its members, the routed side (BVI) among them."""

    learn: bool
    """Whether it learns where stations are."""

    forward: bool
    """Whether frames go to stations that are known."""

    flood: bool
    """Whether frames for groups go to all members."""

    unknown_unicast_flood: bool
    """Whether frames for unknown stations go to all members."""

    stations: int
    """Stations that are learned at the moment."""

    station_limit: int
    """How many may be learned."""

    table_bytes: int
    """Bytes of the table of stations."""

    learned: int
    """Stations learned so far."""

    moved: int
    """Stations that came in by another member than before."""

    aged: int
    """Stations forgotten for their silence."""

    displaced: int
    """Stations forgotten for others, since their places in the table were full."""

    not_learned: int
    """Frames whose sender was not learned, the limit being reached."""

    flooded: int
    """Frames for groups that were sent to several members."""

    unknown_unicast_flooded: int
    """Frames for unknown stations that were sent to several members."""

    copies_too_long: int
    """Copies that were not made, the frame being longer than the member's MTU."""

    age_seconds: int | None = None
    """Seconds of silence after which a station is forgotten; absent when never."""

    arp_entries: int = 0
    """Addresses of that list."""

    arp_terminated: int = 0
    """Questions for them that were not flooded."""

    arp_termination: bool = False
    """Whether it answers itself who asks for an address of its list."""

    arp_unicast_forward: bool = False
    """Whether such questions go to the station alone."""

    flood_limit: int | None = None
    """Frames for groups that each member may send a second; any number when absent."""

    unknown_unicast_limit: int | None = None
    """The same for frames to stations that are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeDomains:
    """All bridge domains."""

    bridges: list[BridgeDomain]
    """The domains, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeMember:
    """A member of a bridge domain."""

    interface: str
    """The interface."""

    bvi: bool
    """Whether it is the domain's routed side."""

    group: int
    """Its split-horizon group; 0 is none."""

    can_send: bool
    """Whether frames can be sent by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferPool:
    """One pool of packet memory."""

    pool: int
    """Its number, from 0."""

    buffers: int
    """Buffers that it has."""

    free: int
    """Buffers that nobody holds now; those in workers' caches count as free."""

    buffer_bytes: int
    """Bytes of one buffer."""

    hugepages: bool
    """Whether its memory is on hugepages."""

    failures: int
    """How often a buffer was wanted and there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """All pools of packet memory."""

    pools: list[BufferPool]
    """The pools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One capture."""

    number: int
    """Its number, by which it can be ended."""

    author: str
    """Who asked for it."""

    since: Timestamp
    """Since when it runs."""

    captured_packets: int
    """Packets captured so far."""

    captured_bytes: int
    """Bytes of the capture so far."""

    lost_packets: int
    """Packets that were lost, since the reader was too slow."""

    bytes: int | None = None
    """End before the capture is longer than this, in bytes; absent = never."""

    drop: bool = False
    """Packets that are dropped, each with its node and its reason as a comment."""

    interface: str | None = None
    """Only packets that came in by this interface, or at `tx` go out by it; absent = any."""

    milliseconds: int | None = None
    """End after this time; absent = never."""

    packets: int | None = None
    """End after so many packets; absent = never."""

    reasons: list[str] = field(default_factory=list)
    """Only drops for these reasons; empty = any."""

    rx: bool = False
    """Packets as they come in."""

    snap_bytes: int | None = None
    """Keep so many bytes of each packet; absent = all of them."""

    tx: bool = False
    """Packets as they are about to go out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captures:
    """Captures that are under way."""

    captures: list[Capture]
    """Each of them, oldest first."""

    most: int
    """How many there may be at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The answer to `POST /v1/clear/WORD`."""

    cleared: Clear
    """What was set to 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChecked:
    """What is wrong with a file: the answer to `POST /v1/config/check`."""

    ok: bool
    """Whether the file could be applied: no finding is an error."""

    findings: list[Finding]
    """Errors and warnings, in the order of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDiff:
    """A difference between two configurations."""

    diff: str
    """Lines as `diff -u` prints them; empty when there is no difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDump:
    """The running configuration as a file: `GET /v1/config/dump`."""

    yaml: str
    """The file's text; its plan against the same router is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEvent:
    """A change of the configuration."""

    time: Timestamp
    """When it happened."""

    what: ConfigEventKind
    """What happened."""

    revision: int
    """The revision it is about; for a failure, the one that still runs."""

    author: str
    """Who changed it."""

    comment: str
    """Why, or what failed; may be empty."""

    confirm_by: Timestamp | None = None
    """When the change is undone unless it is confirmed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLock:
    """Who holds the configuration, and until when; in the error of a change that comes meanwhile."""

    reason: LockReason
    """Why it is held."""

    author: str
    """Who changes."""

    since: Timestamp
    """Since when."""

    address: str | None = None
    """The client's address, when it came over TCP."""

    confirm_by: Timestamp | None = None
    """When the change that waits is undone by itself."""

    pid: int | None = None
    """The client's process, when it came over the Unix socket."""

    uid: int | None = None
    """The client's user, when it came over the Unix socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPlan:
    """What a change would do: the answer to `POST /v1/config/plan`."""

    findings: list[Finding]
    """Warnings about the file; a file with errors is refused instead, with the findings in the error."""

    steps: list[ConfigStep]
    """The steps in the order in which they would be done; none when the router runs so already."""

    without_device: list[str]
    """Interfaces for which the file names no device."""

    needs_restart: list[str]
    """Keys whose new value counts from the next start on."""

    peering: list[str] = field(default_factory=list)
    """What the BGP daemon would do with a changed `peering` section, a line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigStep:
    """One step of a plan."""

    group: StepGroup
    """Which part of the plan it belongs to."""

    kind: str
    """What is done, as `create-interface`."""

    object: str
    """What it is done to: an interface, a prefix."""

    text: str
    """The step in words, with the old and the new value."""

    disturbs: str | None = None
    """What it disturbs that was not asked for; absent when it disturbs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The answer to `POST /v1/config/confirm`."""

    revision: int
    """The revision that stays now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersEvent:
    """Counters of interfaces at one time."""

    time: Timestamp
    """When they were read."""

    interfaces: list[InterfaceCounters]
    """Each interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCounter:
    """How many packets were dropped at one place for one reason."""

    node: str
    """The node that dropped them."""

    reason: str
    """Why: the reason's name in the table of drop reasons."""

    severity: Severity
    """How bad that is."""

    sentence: str
    """The reason as a sentence."""

    count: int
    """How many."""

    interface: str | None = None
    """The interface they came in by; absent for packets that the router made itself."""

    worker: int | None = None
    """The worker that counted; absent in a sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encapsulation:
    """The tags of a sub-interface's frames: an outer one, of 802.1Q or 802.1ad, and perhaps one behind it."""

    exact_match: bool
    """Whether nothing but these tags may be there."""

    dot1ad: int | None = None
    """VLAN of an outer 802.1ad tag."""

    dot1q: int | None = None
    """VLAN of an outer 802.1Q tag."""

    inner_dot1q: int | None = None
    """VLAN of the 802.1Q tag behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """The body of a reply that tells an error."""

    error: ApiError
    """The error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Drops since the last `POST /v1/clear/errors`."""

    errors: list[DropCounter]
    """Every counter that is not 0. Summed over the workers, unless `?by_worker=true` was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureArc:
    """A stretch of a packet's path, and the nodes on it."""

    arc: str
    """Its name: `ip4-input`, `ip6-input`, `bridge-input`, `cross-connect-input`, `mpls-input`, `output`."""

    order: list[str]
    """The nodes of all features that there are, in the order in which packets pass them."""

    attached: list[str]
    """Those that the interface has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of all interfaces."""

    interfaces: list[InterfaceFeatures]
    """The interfaces, in the order of their numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FibSummary:
    """The size of the forwarding tables."""

    tables: list[FibTable]
    """Each table of each family."""

    adjacencies: int
    """Next hops that routes share."""

    groups: int
    """Sets of paths that routes share."""

    memory_bytes: int
    """Bytes of memory of all tables, next hops and groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FibTable:
    """One forwarding table."""

    table: int
    """The table (VRF); 0 = the default one."""

    family: Family
    """Which addresses it is for."""

    routes: list[RouteCount]
    """Routes in it, by where they come from; sources without routes are left out."""

    memory_bytes: int = 0
    """Bytes of its memory."""

    vrf: str | None = None
    """The name of the VRF; the default table has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding in a configuration file."""

    severity: FindingSeverity
    """Whether the file is refused for it."""

    file: str
    """The file's name as it was given."""

    line: int
    """The line, counted from 1."""

    column: int
    """The character in the line, counted from 1."""

    width: int
    """How many characters it is about, at least 1."""

    path: str
    """The key, as `interfaces.xe0.mtu`; empty when it is about the whole file."""

    message: str
    """What is wrong."""

    help: str
    """What would be right; may be empty."""

    rendered: str
    """All of it as a compiler prints it, with the line of the file; several lines, no colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEntry:
    """A flow that is under way. What its record set does not select is absent."""

    worker: int
    """The worker that has it."""

    records: str
    """The record set."""

    direction: SflowDirection
    """`rx` when it is metered where it comes in, `tx` where it leaves."""

    forwarding_status: int
    """`forwardingStatus`: 64 when it is forwarded, why not when it is not."""

    forwarding_status_name: str
    """The same in words: `forwarded`, `dropped: unroutable`."""

    packets: int
    """Packets so far; counted anew after each active timeout."""

    octets: int
    """Octets so far, likewise."""

    packets_per_second: int
    """Packets a second since the flow began, over the last two active timeouts at most."""

    octets_per_second: int
    """Octets a second, likewise."""

    start: Timestamp
    """The first packet."""

    end: Timestamp
    """The last one."""

    tcp_flags: int
    """TCP's flags of all packets."""

    bgp_next_hop: str | None = None
    """The next hop of its route, where that was looked up in a table."""

    customer_vlan: int | None = None
    """Inner VLAN."""

    destination: str | None = None
    """Destination."""

    destination_port: int | None = None
    """Destination port; of ICMP type and code."""

    ethertype: int | None = None
    """Ethertype of L2 flows."""

    input: str | None = None
    """The interface by which it comes in."""

    label: int | None = None
    """Top label of the stack that it comes with."""

    next_hop: str | None = None
    """The next hop."""

    output: str | None = None
    """The one by which it leaves."""

    protocol: int | None = None
    """Protocol of IP flows."""

    source: str | None = None
    """Source: an IP address, or a MAC address."""

    source_port: int | None = None
    """Source port."""

    traffic_class: int | None = None
    """Type of service, or traffic class."""

    vlan: int | None = None
    """Outer VLAN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGroup:
    """Flows that have something in common."""

    flows: int
    """Flows."""

    packets: int
    """Their packets so far."""

    octets: int
    """Their octets so far."""

    packets_per_second: int
    """The sum of their packets a second."""

    octets_per_second: int
    """The sum of their octets a second."""

    group: str | None = None
    """What that is: an address, a prefix, a name; `other` for groups beyond the limit of the router; absent
    where a flow's record set does not have it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLoad:
    """Flows, and what was in them."""

    flows: int
    """Flow records."""

    packets: int
    """Their packets."""

    octets: int
    """Their octets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowWorker:
    """The flows of one worker. In packets and octets: metered = exported + unexported + resident."""

    worker: int
    """Its number, from 0."""

    resident: int
    """Flows that are in its table."""

    metered_packets: int
    """Packets that were metered."""

    metered_octets: int
    """Octets of them."""

    begun: int
    """Flows that were begun."""

    ended_idle: int
    """Records of flows that were silent for the idle timeout."""

    ended_active: int
    """Records of flows that went on for the active timeout."""

    ended_seen: int
    """Records of flows whose end was seen (FIN, RST)."""

    ended_forced: int
    """Records of flows that left since the meter was changed or stopped."""

    ended_resources: int
    """Records of flows that had to make room for others."""

    exported: FlowLoad
    """What was exported in all."""

    unexported: FlowLoad
    """What made room while the ring to the exporter was full: in no record."""

    ignored_packets: int
    """Packets that should have been metered while there was no table."""

    ignored_octets: int
    """Octets of them."""

    passed_over: int
    """Packets that sampling passed over."""

    waiting: int
    """Packets that wait for an answer; metered when it is known where they go."""

    long_ways: int
    """Packets whose flow was not where the first look went: new flows, and tags that are alike by chance."""

    probes: int
    """Buckets that were looked at on those ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """Flows that are under way."""

    flows: list[FlowEntry]
    """The flows; none where groups were asked for."""

    matched: int
    """How many flows there were that the filter takes, shown or not."""

    groups: list[FlowGroup] = field(default_factory=list)
    """Sums of flows that have something in common, those with the most octets a second (or packets) first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """All ports."""

    ports: list[HardwarePort]
    """The ports, in the order of their interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareCounter:
    """One counter of a port."""

    name: str
    """The counter's name at its source."""

    value: int
    """Its value."""

    source: CounterSource
    """Who counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwarePort:
    """One port."""

    interface: str
    """The interface that sits on it."""

    device: str
    """The device in the system: a network device, a file."""

    driver: str
    """The driver as the configuration spells it: `af-xdp`, `tap`, `pcap`, `memif`, `null`, `generator`."""

    mode: str
    """How the driver runs, for people: `native, copy`, `generic`."""

    link: UpDown
    """Whether the device has a carrier."""

    speed: int
    """Its speed in bits per second; 0 = unknown."""

    rx_queues: int
    """How many receive queues are open."""

    tx_queues: int
    """How many transmit queues are open."""

    max_frame: int
    """The longest frame without FCS that it carries, in bytes."""

    counters: list[HardwareCounter]
    """Everything that driver, kernel and device count."""

    mac: str | None = None
    """The device's own MAC address, if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Applied configurations, newest first: `GET /v1/config/history`."""

    revisions: list[Revision]
    """The revisions."""

    lock: ConfigLock | None = None
    """A change that runs, or that waits to be confirmed."""

    next: int | None = None
    """There are older ones: the `before` that asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface."""

    name: str
    """Its name in the configuration."""

    index: int
    """Its stable number: the ifIndex that sFlow and SNMP know it by."""

    kind: InterfaceKind
    """What it is in the tree of interfaces."""

    mtu: int
    """The largest IP packet that leaves it, in bytes."""

    admin: UpDown
    """Whether it is wanted up."""

    link: UpDown
    """Whether it can carry packets."""

    speed: int
    """Its speed in bits per second; 0 = unknown."""

    sflow: bool
    """Whether received packets are sampled."""

    rx: Traffic
    """What it received."""

    tx: Traffic
    """What it sent."""

    rx_errors: int
    """Frames that were lost or broken before the router saw them (no buffer, ring full)."""

    tx_errors: int
    """Frames that could not be sent (ring full, device gone)."""

    drops: int
    """Packets dropped that were received here, or were to leave here."""

    addresses: list[str] = field(default_factory=list)
    """Its own addresses, each with the length of its subnet."""

    bridge_domain: str | None = None
    """The bridge domain that it is a member of."""

    description: str | None = None
    """Free text for people."""

    device: str | None = None
    """The device in the system, if any: a network device, a file."""

    driver: str | None = None
    """The driver as the configuration spells it: `af-xdp`, `tap`, `pcap`, `memif`, `null`, `generator`."""

    drops_by: list[InterfaceDrop] = field(default_factory=list)
    """The same by node and reason; reasons that never occurred are left out."""

    duplicate: list[str] = field(default_factory=list)
    """Own addresses that are not used because somebody else has them."""

    encapsulation: Encapsulation | None = None
    """The tags of its frames, of a sub-interface."""

    l2xc: str | None = None
    """The interface that everything received here leaves by."""

    mac: str | None = None
    """Its unicast MAC address, six pairs of lower-case hex digits with colons."""

    mpls: bool = False
    """Whether labelled packets are taken."""

    parent: str | None = None
    """The interface that it is a part of, if any."""

    tag_rewrite: str | None = None
    """What becomes of the tags of frames that cross, as the configuration says it; as usual when absent."""

    tentative: list[str] = field(default_factory=list)
    """Own addresses that are not used yet: whether somebody else has them is being asked (RFC 4862)."""

    unnumbered: str | None = None
    """The interface whose addresses it borrows."""

    urpf: str | None = None
    """How strictly the way back to sources is looked at: `loose`, `strict`; not at all when absent."""

    vrf: str | None = None
    """The table (VRF) that routes what comes in; the default one when absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceCounters:
    """Counters of one interface."""

    name: str
    """Its name."""

    index: int
    """Its ifIndex."""

    rx: Traffic
    """What it received."""

    tx: Traffic
    """What it sent."""

    rx_errors: int
    """Frames that were lost or broken before the router saw them."""

    tx_errors: int
    """Frames that could not be sent."""

    drops: int
    """Packets dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceDrop:
    """How many packets of one interface one node dropped for one reason."""

    node: str
    """The node that dropped them."""

    reason: str
    """Why: the reason's name in the table of drop reasons."""

    count: int
    """How many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceFeatures:
    """The features of one interface."""

    interface: str
    """The interface."""

    arcs: list[FeatureArc]
    """The stretches of a packet's path on which there are features."""

    policers: list[Policer]
    """Its policers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfacesPage:
    """A part of a long list."""

    interfaces: list[Interface]
    """The interfaces."""

    next: str | None = None
    """There are more: the `after` that asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipfix:
    """Settings and counters of meter and exporter."""

    settings: IpfixSettings
    """What the configuration says."""

    interfaces: list[IpfixInterface]
    """The metered interfaces."""

    workers: list[FlowWorker]
    """What each worker metered."""

    taken: FlowLoad
    """What the exporter took from the workers."""

    oldest_ms: int
    """Milliseconds that the oldest record waits which is in no message that went out yet."""

    collectors: list[IpfixCollector]
    """Where records go."""

    templates: list[IpfixTemplate]
    """The templates of data records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IpfixCollector:
    """One collector."""

    host: str
    """Its address or its name, as it is configured."""

    port: int
    """Its port."""

    transport: str
    """How it is reached: `udp`, `tcp` or `tls`."""

    version: str
    """What is spoken: `ipfix` or `netflow9`."""

    connected: bool
    """Whether a stream is connected, or datagrams have a socket."""

    connections: int
    """Connections that were made."""

    messages: int
    """Messages that went out."""

    message_octets: int
    """Octets of them."""

    sent: FlowLoad
    """What was sent."""

    not_sent: FlowLoad
    """What was not: the queue was full, or the kernel refused it."""

    left_out: FlowLoad
    """What it does not want."""

    queued: int
    """Octets that wait in the queue."""

    errors: int
    """Errors."""

    address: str | None = None
    """Its address; absent while its name is not looked up."""

    dev: str | None = None
    """The Linux device that they leave by, if it is configured."""

    dscp: int = 0
    """The class of the packets."""

    last_error: str | None = None
    """The last one, in words."""

    namespace: str | None = None
    """The network namespace that it is reached from, if not the router's own."""

    source: str | None = None
    """The address that messages come from, if it is configured."""

    table: str | None = None
    """The router's table that routes them; absent = the default one."""

    through_host: bool = False
    """Whether they leave through the host, whatever the router's routes say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IpfixInterface:
    """A metered interface."""

    interface: str
    """Its name."""

    index: int
    """Its ifIndex."""

    direction: SflowDirection
    """Where its packets are metered."""

    records: str
    """The record set."""

    sampling_rate: int
    """One packet in this many is metered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IpfixSettings:
    """The settings of the meter."""

    active_timeout: int
    """Seconds after which a flow that goes on is reported."""

    idle_timeout: int
    """Seconds without a packet after which a flow is over."""

    flows: int
    """Flows that the table of each worker holds at most."""

    sampling_rate: int
    """One packet in this many is metered."""

    domain: int
    """The observation domain."""

    template_interval: int
    """Seconds after which templates and options are sent again."""

    biflow: bool
    """Whether both directions of a conversation become one record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IpfixTemplate:
    """A template."""

    id: int
    """Its number."""

    records: str
    """The record set."""

    kind: str
    """The kind of flows: `ipv4`, `ipv6`, `l2` or `ipv4-by-ipv6`, with `-biflow` for both ways."""

    octets: int
    """Octets of a record."""

    elements: list[str]
    """Its elements, by IANA's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class L2Station:
    """One station."""

    bridge: str
    """The domain that it is in."""

    mac: str
    """Its address."""

    interface: str
    """The member that it is behind."""

    static: bool
    """Whether the configuration, or the BVI's own address, says so."""

    age: int | None = None
    """Seconds since it was last heard; absent for static ones and where nothing ages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class L2fibPage:
    """A part of a long list."""

    stations: list[L2Station]
    """The stations, by domain and address."""

    next: str | None = None
    """There are more: the `after` that asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPush:
    """How labels are pushed."""

    ttl_mode: PushMode
    """Where their time to live comes from (RFC 3443)."""

    entropy_label: bool = False
    """Whether an entropy label is pushed below the first one (RFC 6790)."""

    traffic_class: int | None = None
    """The traffic class that is written; without it, that of what they are pushed onto."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReply:
    """What is done with packets whose top label this is."""

    label: int
    """The incoming label."""

    ttl_mode: LabelMode
    """What becomes of time to live and class where it is taken off."""

    paths: list[PathReply]
    """Where packets may go, with the labels in its place; each flow takes one of them."""

    group: RouteGroup | None = None
    """The group that its paths are, shared with all labels and routes that lead over the same ones."""

    lookup: int | None = None
    """The table (VRF) that looks packets up once it is off; 0 = the default one."""

    meaning: LabelMeaning | None = None
    """What the label stands for, where that is its own meaning."""

    source: LabelSource = 'static'
    """Where the entry comes from."""

    vrf: str | None = None
    """The name of that table; the default one has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LacpEnd:
    """One end of a link."""

    system: str
    """The system's MAC address."""

    system_priority: int
    """The system's priority."""

    key: int
    """Links of one key may be aggregated."""

    port: int
    """The port's number."""

    port_priority: int
    """The port's priority."""

    state: list[str]
    """What is set of `active`, `short-timeout`, `aggregation`, `synchronization`, `collecting`,
    `distributing`, `defaulted` and `expired`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class LacpPort:
    """Where LACP stands on a member."""

    receive: str
    """The receive machine: `port-disabled`, `expired`, `defaulted` (nobody speaks LACP at the far end) or
    `current`.
    """

    mux: str
    """The mux machine: `detached`, `waiting`, `attached`, `collecting` or `distributing`."""

    selected: bool
    """Whether it leads to the far end that the bond has chosen."""

    actor: LacpEnd
    """What this end says of itself."""

    received: int
    """PDUs that were taken in."""

    sent: int
    """PDUs that were sent."""

    expired: int
    """How often the far end fell silent."""

    partner_changes: int
    """How often the far end became another one."""

    partner: LacpEnd | None = None
    """What the far end says of itself, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEvent:
    """A link went up or down."""

    time: Timestamp
    """When it was noticed."""

    interface: str
    """The interface."""

    index: int
    """Its ifIndex."""

    link: UpDown
    """How the link is now."""

    speed: int
    """Its speed in bits per second; 0 = unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linux:
    """The TAPs of interfaces, and what is read from the kernel."""

    interfaces: list[LinuxInterface]
    """Interfaces that Linux has a TAP of, by name."""

    audit: LinuxAudit
    """How the routes here compare with the kernel's."""

    convergence: list[LinuxConvergence]
    """How long changes of routes took, by source."""

    refused: list[LinuxRefused]
    """The last updates that were refused, the newest last."""

    bmp: LinuxBmp | None = None
    """What BGP daemons tell by BMP; absent when the configuration has no `linux.bmp`."""

    feed: LinuxFeed | None = None
    """How the kernel's routes are read; absent while they are not."""

    fpm: LinuxFpm | None = None
    """How FRR's zebra sends its routes; absent when the configuration has no `linux.fpm`."""

    namespace: str | None = None
    """The network namespace; the router's own when absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxAudit:
    """How the routes here compare with the kernel's. Each time that all tables are read they are compared,
    and differences are put right.
    """

    audits: int
    """The number of comparisons, the first reading included."""

    healed: int
    """Routes that were missing or led elsewhere, all those of the first reading included."""

    stale: int
    """Routes that the kernel had no more."""

    routes: int
    """Routes of the kernel in the tables now."""

    set_back: int = 0
    """Settings of TAPs that were changed in Linux and set back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxBmp:
    """What BGP daemons tell by the BGP Monitoring Protocol."""

    address: str
    """The own address and port."""

    sessions: list[LinuxBmpSession]
    """Daemons that are connected."""

    begun: int
    """Connections that began."""

    messages: int
    """Messages."""

    announced: int
    """Routes that were announced."""

    withdrawn: int
    """Routes that were withdrawn."""

    paths: int
    """Paths that are kept, of all peers together."""

    most_paths: int
    """Paths that are kept at most."""

    prefixes: int
    """Prefixes of these paths."""

    refused: list[LinuxCount]
    """Messages that could not be used, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxBmpPeer:
    """A peer of a BGP daemon."""

    address: str
    """Its address; unspecified for the daemon's own table."""

    as_number: int
    """Its AS number."""

    table: str
    """Which routes are sent: `pre-policy`, `post-policy` or `loc-rib`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxBmpSession:
    """A BGP daemon that is connected."""

    address: str
    """Its address and port."""

    name: str
    """The name that it gives itself."""

    messages: int
    """Messages."""

    peers: list[LinuxBmpPeer]
    """Its peers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxConvergence:
    """How long changes of routes took, from the first message of their batch being read until all workers
    forward by them. Changes that were found by reading whole tables are not included.
    """

    source: RouteSource
    """Who sent the changes."""

    updates: int
    """The number of changes."""

    buckets: list[LinuxDelay]
    """The changes by time. What took longer than the last bound is in `updates` only."""

    p50_us: int | None = None
    """Half of them took at most this time, in microseconds; absent when there were none, or when it is over
    the last bound.
    """

    p99_us: int | None = None
    """99 % of them did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxCount:
    """How often something was so."""

    reason: str
    """Why."""

    count: int
    """How often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxDelay:
    """The changes that took a time between the bound before and this one."""

    at_most_us: int
    """The bound in microseconds."""

    updates: int
    """The number of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxFeed:
    """How the kernel's routes are read."""

    messages: int
    """Messages of the kernel."""

    updates: int
    """Changes of routes in them."""

    applied: int
    """Changes that were carried out."""

    waiting: int
    """Batches that wait."""

    buffer_bytes: int
    """Bytes of the socket's buffer, as the kernel counts."""

    overruns: int
    """Times that the kernel dropped messages because the buffer was full."""

    resyncs: int
    """Times that all tables of the kernel were read."""

    interrupted: int
    """Times that a table changed while it was read."""

    refused: list[LinuxCount]
    """Messages and changes that could not be carried out, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxFpm:
    """How FRR's zebra sends its routes."""

    address: str
    """The own address and port."""

    connected: bool
    """Whether zebra is connected."""

    sessions: int
    """Connections that began."""

    frames: int
    """Frames."""

    messages: int
    """Netlink messages."""

    updates: int
    """Changes of routes in them."""

    waiting: int
    """Batches that wait."""

    objects: int
    """Next-hop objects."""

    parked: int
    """Routes that wait for a next-hop object that zebra has not sent."""

    refused: list[LinuxCount]
    """Messages that could not be carried out, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxInterface:
    """An interface that Linux has a TAP of."""

    interface: str
    """The interface."""

    name: str
    """The name of the TAP."""

    punt: list[LinuxPunt]
    """Packets for services of Linux by class."""

    followed_addresses: list[str] = field(default_factory=list)
    """Addresses that were added in Linux and are in use here."""

    followed_table: int | None = None
    """The table that it is in because its TAP is in a VRF device of Linux; absent where the configuration
    says it.
    """

    index: int | None = None
    """The index that Linux gave the TAP; absent while there is none."""

    trouble: str | None = None
    """What went wrong last, if it still does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxPunt:
    """Packets of one class for services of Linux."""

    punt_class: str
    """`bfd`, `bgp`, `routing`, `neighbor`, `icmp` or `other`."""

    limit: int
    """Packets a second that each worker passes, at most."""

    passed: int
    """Packets that went to the TAP."""

    policed: int
    """Packets that were over the limit, and dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxRefused:
    """An update that was refused."""

    object: str
    """Its destinations, or its label."""

    error: str
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The last lines of the log."""

    lines: list[LogEvent]
    """Lines, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """A line of the log."""

    time: Timestamp
    """When it was said."""

    level: EventLevel
    """How important it is."""

    target: str
    """The part of the router that says it."""

    message: str
    """What it says, with its fields as `key=value`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostEvent:
    """Events that a subscriber was too slow for."""

    topic: Topic
    """What they were about."""

    count: int
    """How many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memif:
    """One end of a shared-memory connection."""

    interface: str
    """The interface that sits on it."""

    socket: str
    """Where both ends meet: a path, or `@NAME` in the abstract space."""

    id: int
    """Which of the interfaces at that socket."""

    role: MemifRole
    """Which end this is."""

    zero_copy: bool
    """Whether frames stay where they are (as slave, whose packet memory is shared) or are copied."""

    secret: bool
    """Whether the peer must know a secret."""

    link: UpDown
    """Whether there is a peer."""

    connects: int
    """How often there was one since the port was opened."""

    queues: int
    """Queues of this end, in each direction."""

    rx_rings: int
    """Rings that frames come in on; 0 without a peer."""

    tx_rings: int
    """Rings that frames go out on; 0 without a peer."""

    ring_size: int
    """Descriptors of each ring: those there are, or those that are wanted while there is no peer."""

    region_bytes: list[int]
    """Sizes of the regions that are shared with this peer, in bytes, in the order of their numbers; a slave's
    last one is the packet memory.
    """

    disconnects: list[MemifDisconnects]
    """How often peers were parted from, or sent away, by reason; those that never came up are left out."""

    buffer_bytes: int | None = None
    """Bytes of each buffer that this end offers as slave."""

    last_disconnect: str | None = None
    """Why the last peer was parted from, if there was one."""

    peer: str | None = None
    """The peer's name of its program."""

    peer_interface: str | None = None
    """The peer's name of its interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemifDisconnects:
    """How often there was one reason to part."""

    reason: str
    """The reason's name."""

    sentence: str
    """What it means."""

    count: int
    """How often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memifs:
    """All memif ports."""

    ports: list[Memif]
    """The ports, in the order of their interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MplsFibPage:
    """A part of a long list."""

    labels: list[LabelReply]
    """The entries, by label."""

    next: str | None = None
    """There are more: the `after` that asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """One neighbour on a link."""

    interface: str
    """The interface it is behind."""

    address: str
    """Its address."""

    state: NeighborState
    """How well it is known."""

    age: float | None = None
    """Seconds since it last confirmed itself (or, when incomplete, since it was first asked for); absent for
    static ones.
    """

    mac: str | None = None
    """Its MAC address, once known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborsPage:
    """A part of a long list."""

    neighbors: list[Neighbor]
    """The neighbours, by interface and address."""

    evicted: int = 0
    """Neighbours that made room for others: without an answer, or known only because they spoke."""

    next: str | None = None
    """There are more: the `after` that asks for them."""

    refused: int = 0
    """New neighbours that were refused because there is no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextHop:
    """A next hop before it is resolved."""

    address: str
    """Its address."""

    table: str | None = None
    """The table whose longest match is the way to it; on a link when absent."""

    unresolved: Unresolved | None = None
    """Why no path leads to it; absent when one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRuntime:
    """One node on one worker."""

    name: str
    """The node's name."""

    calls: int
    """Vectors that it was handed; of a queue, calls that moved packets."""

    packets: int
    """Packets in them."""

    clocks: int
    """TSC clocks that it took, all in all."""

    clocks_per_packet: float
    """`clocks` / `packets`; 0 without packets."""

    packets_per_call: float
    """`packets` / `calls`; 0 without calls."""

    empty_calls: int = 0
    """Of a queue: calls that moved no packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathReply:
    """One path of a route."""

    weight: int
    """Its share of flows beside the other paths."""

    adjacency: Adjacency
    """What becomes of packets that take it."""

    adjacency_number: int = 0
    """The number of the adjacency at its end."""

    buckets: int = 0
    """How many of the group's buckets it has now; none while it is down."""

    interface: str | None = None
    """The interface they leave by, if any."""

    labels: list[int] = field(default_factory=list)
    """MPLS labels that are pushed, outermost first."""

    mac: str | None = None
    """The MAC address that they are sent to, once known."""

    mtu: int | None = None
    """The longest IP packet that it takes, in bytes, if it leaves the router."""

    next_hop: str | None = None
    """The neighbour that packets are handed to; absent when the destination itself is."""

    push: LabelPush | None = None
    """How they are pushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policer:
    """A policer: a single rate, two colours."""

    direction: str
    """`input` or `output`."""

    rate: int
    """Bits a second."""

    burst: int
    """Bytes that may come at once."""

    conformed_packets: int
    """Packets that conformed."""

    conformed_bytes: int
    """Their bytes, from the IP header on, or behind the Ethernet header."""

    dropped_packets: int
    """Packets that were dropped."""

    dropped_bytes: int
    """Their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong."""

    severity: ProblemSeverity
    """Whether something does not work now."""

    component: Component
    """Which part of the router."""

    object: str
    """Which interface, collector, pool or section of the file."""

    message: str
    """What is wrong, in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pseudowire:
    """One Ethernet pseudowire."""

    interface: str
    """Its interface."""

    local_label: int
    """The label of what comes in."""

    remote_label: int
    """The label that the far end has for it, innermost on all paths."""

    type: str
    """`raw`: frames as they are; `tagged`: each with a tag of the pseudowire's own."""

    control_word: bool
    """Whether a control word stands before each frame."""

    link: UpDown
    """Whether it is wanted up and some path can carry frames now."""

    paths: list[PathReply]
    """The ways to the far end, with all labels that are pushed; each flow takes one."""

    vlan: int | None = None
    """VLAN of that tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pseudowires:
    """All pseudowires."""

    pseudowires: list[Pseudowire]
    """The pseudowires, in the order of their interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One applied configuration."""

    revision: int
    """Its number; grows by each change."""

    time: Timestamp
    """When it was applied."""

    author: str
    """Who applied it."""

    comment: str
    """Why; may be empty."""

    confirmed: bool
    """Whether it stays: false while it waits to be confirmed."""

    running: bool
    """Whether it is what runs."""

    lines: int
    """How many lines it has."""

    lines_added: int
    """Lines that it has and the one before it has not."""

    lines_removed: int
    """Lines that the one before it has and it has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionText:
    """One applied configuration with its text: `GET /v1/config/history/{revision}`."""

    revision: int
    """Its number; grows by each change."""

    time: Timestamp
    """When it was applied."""

    author: str
    """Who applied it."""

    comment: str
    """Why; may be empty."""

    confirmed: bool
    """Whether it stays: false while it waits to be confirmed."""

    running: bool
    """Whether it is what runs."""

    lines: int
    """How many lines it has."""

    lines_added: int
    """Lines that it has and the one before it has not."""

    lines_removed: int
    """Lines that the one before it has and it has not."""

    yaml: str
    """The file's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One route."""

    table: int
    """The table (VRF) it is in; 0 = the default one."""

    prefix: str
    """The destinations it is for."""

    source: RouteSource
    """Where it comes from."""

    paths: list[PathReply]
    """Where packets may go; each flow takes one of them."""

    candidates: list[RouteCandidate] = field(default_factory=list)
    """All routes of the prefix, whatever their source is, the one in use first. Only where a prefix or an
    address is asked for.
    """

    group: RouteGroup | None = None
    """What it shares with all routes that lead the same way."""

    next_hops: list[NextHop] = field(default_factory=list)
    """Next hops as they were given, when one of them is looked up in a table or the API set the route;
    `paths` are what they resolve to.
    """

    vrf: str | None = None
    """The name of that table; the default one has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCandidate:
    """One of the routes of a prefix."""

    source: RouteSource
    """Where it comes from."""

    distance: int
    """The administrative distance of its source; the lowest is used."""

    metric: int
    """Among routes of one distance the lowest is used."""

    age: int
    """Seconds since it was set last."""

    verdict: RouteVerdict
    """Why it is used, or why not."""

    group: RouteGroup
    """What it shares with all routes that lead the same way."""

    paths: list[PathReply]
    """Where packets go that take it."""

    daemon: str | None = None
    """The daemon that this protocol belongs to."""

    protocol: str | None = None
    """The protocol that made it, as iproute2 names it, or its number; absent where the source says enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCount:
    """How many routes come from one source."""

    source: RouteSource
    """The source."""

    count: int
    """How many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteGroup:
    """Paths that routes share: when a link goes down the group is written once, and no route."""

    number: int
    """Its number."""

    routes: int
    """How many routes lead over it."""

    buckets: int
    """How many buckets its flows are spread over."""

    resilient: bool = False
    """Whether flows keep their paths when others come and go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRefusal:
    """A route that was refused."""

    prefix: str
    """Its destinations."""

    message: str
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutesChanged:
    """What a request did: the answer to `POST /v1/routes`."""

    set: int
    """Routes that were set."""

    deleted: int
    """Routes that were deleted because the request names them."""

    stale: int
    """Routes that were deleted at the end of a resync, because they were not set again."""

    refused: int
    """Routes that were refused. A route of the same table, prefix and metric that was there before stays."""

    errors: list[RouteRefusal] = field(default_factory=list)
    """Why, for the first 100 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutesPage:
    """A part of a long list."""

    routes: list[Route]
    """The routes, by table and prefix."""

    next: str | None = None
    """There are more: the `after` that asks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What each worker did since the last `POST /v1/clear/runtime`."""

    tsc_mhz: float
    """Millions of clocks a second."""

    seconds: float
    """Seconds since the counters were cleared, or the router started."""

    workers: list[WorkerRuntime]
    """The workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RxPlacement:
    """Which worker serves which receive queue."""

    queues: list[RxQueuePlacement]
    """The queues, by interface and number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RxQueuePlacement:
    """One receive queue and its worker."""

    interface: str
    """The interface."""

    queue: int
    """The queue's number, from 0."""

    worker: int
    """The worker's number, from 0."""

    core: int | None = None
    """The core that the worker is pinned to; absent when the kernel chooses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sflow:
    """Settings and counters of sampler and agent."""

    settings: SflowSettings
    """What the configuration says."""

    collectors: list[SflowCollector]
    """Where datagrams go."""

    workers: list[SflowWorker]
    """What each worker sampled."""

    interfaces: list[SflowInterface]
    """The sampled interfaces."""

    samples_sent: int
    """Samples that the agent put into datagrams, each counted once however many collectors."""

    samples_lost: int
    """Samples and counter records in one datagram or more that could not be encoded or sent."""

    samples_incomplete: int
    """Samples sent without an output: what became of their packets was not known in time."""

    drops: list[SflowDrop]
    """Packets that were dropped, by interface, node and reason."""

    discards_sent: int
    """Drop notifications that were sent."""

    discards_dropped: int
    """Drops without a notification: beyond the limit, or without room. Exact."""

    datagrams: int
    """Datagrams that the agent made."""

    agent: str | None = None
    """The address that the agent goes by, if it has one."""

    discovery: SflowDiscovery | None = None
    """The domain that announces more of them, if one is asked."""

    kernel: SflowKernel | None = None
    """What goes through the kernel, too, if anything is to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowCollector:
    """One collector."""

    host: str
    """Its address or its name, as it is configured or announced."""

    port: int
    """Its UDP port."""

    dscp: int
    """The class of the datagrams."""

    drops: bool
    """Whether discarded packets are reported to it."""

    announced: bool
    """Whether it is there because a domain announces it."""

    sent: int
    """Datagrams that the kernel took for it."""

    errors: int
    """Datagrams that the kernel refused, or that came back refused."""

    address: str | None = None
    """Its address; absent while its name is not looked up."""

    dev: str | None = None
    """The Linux device that they leave by, if it is not the kernel's choice."""

    last_error: str | None = None
    """The last refusal, in words."""

    namespace: str | None = None
    """The network namespace that it is reached from, if not the router's own."""

    source: str | None = None
    """The address that datagrams come from, if it is not the kernel's choice."""

    table: str | None = None
    """The router's table that routes them; absent = the default one."""

    through_host: bool = False
    """Whether they leave through the host, whatever the router's routes say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowDiscovery:
    """A domain that announces collectors."""

    domain: str | None = None
    """Which one; those that the machine's resolver searches when absent."""

    trouble: str | None = None
    """Why nothing could be found out, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowDrop:
    """Packets that were dropped for one reason by one node, of one interface."""

    node: str
    """The node that dropped them."""

    reason: str
    """Why: the reason's name in the table of drop reasons."""

    code: int
    """The reason's number in sFlow's table."""

    standard: str
    """The reason's name there."""

    dropped: int
    """How many were dropped since the router started."""

    reported: int
    """How many of them were reported."""

    interface: str | None = None
    """The interface that they came in by; absent for packets that the router made itself."""

    reported_as: list[SflowReported] = field(default_factory=list)
    """The numbers by which they were reported, where that depends on addresses of the packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowInterface:
    """One sampled interface."""

    interface: str
    """Its name."""

    index: int
    """Its ifIndex."""

    reported_index: int
    """The number by which datagrams report it."""

    sampling_rate: int
    """One packet in this many is sampled; 0 = none."""

    direction: SflowDirection
    """Which of its packets."""

    header_bytes: int
    """Bytes of each sampled packet that are reported."""

    polling_interval: int
    """Seconds between two reports of its counters; 0 = never."""

    pool: int
    """Packets that could have been sampled: the sample pool."""

    samples: int
    """Samples sent of them."""

    dropped: int
    """Samples of them that found a worker's ring full."""

    workers: list[SflowShare]
    """All three by worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowKernel:
    """What goes through the kernel, for hsflowd."""

    group: int
    """The group that samples of received packets carry."""

    egress_group: int
    """The group that samples of sent packets carry."""

    samples: int
    """Packet samples that were sent."""

    drops: int
    """Alerts of dropped packets that were sent."""

    reports: int
    """Reports of counters and of the router's state that were sent."""

    failed: int
    """Messages that the kernel did not take."""

    lacking: list[str]
    """Why not everything goes, in sentences."""

    namespace: str | None = None
    """The network namespace of who listens, if not the router's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowReported:
    """Dropped packets that were reported by one number of sFlow's table."""

    code: int
    """The number."""

    standard: str
    """Its name."""

    reported: int
    """How many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowSettings:
    """The settings of sampler and agent."""

    sampling_rate: int
    """One packet in this many is sampled; 0 = none."""

    polling_interval: int
    """Seconds between two reports of an interface's counters; 0 = never."""

    header_bytes: int
    """Bytes of each sampled packet that are reported."""

    direction: SflowDirection
    """Which packets of a sampled interface are sampled."""

    drop_limit: int
    """Maximum drop notifications per second; 0 = none."""

    encoding: SflowEncoding
    """The form of samples."""

    datagram_bytes: int
    """The largest datagram that is sent, in bytes of UDP payload."""

    agent_sub_id: int
    """Tells several agents with one address apart."""

    os_index: bool
    """Whether the Linux ifindex of a paired interface is reported instead of the router's number."""

    if_offset: int
    """With that, what is added to the numbers of interfaces that are not paired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowShare:
    """What one worker sampled on an interface."""

    worker: int
    """The worker's number, from 0."""

    pool: int
    """Packets that could have been sampled."""

    samples: int
    """Samples sent of them."""

    dropped: int
    """Samples of them that found its ring full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SflowWorker:
    """The samples of one worker."""

    worker: int
    """Its number, from 0."""

    samples_taken: int
    """Samples that it took, those dropped after included."""

    samples_sent: int
    """Samples of it that the agent put into datagrams."""

    samples_dropped: int
    """Samples that found its ring full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The state of the router as a whole."""

    state: Health
    """`degraded` when at least one problem is."""

    problems: list[Problem]
    """What is wrong, the worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The balance of packets since the router started; no `clear` reaches it. After the workers stopped,
    `packets_in + originated + replicated` equals `packets_out + consumed + held` plus all `drops`,
    exactly.
    """

    packets_in: int
    """Packets received on all ports."""

    packets_out: int
    """Packets handed to all ports."""

    originated: int
    """Packets that nodes made: ARP, ICMP errors, fragments."""

    replicated: int
    """Copies made for flooding, beyond the first."""

    consumed: int
    """Packets that ended in the router as they should: answered, learned from, punted."""

    held: int
    """Packets that wait now, for example for an ARP answer."""

    drops: dict[str, int]
    """Packets dropped, by reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The traces that are armed, and what they recorded."""

    filters: list[TraceFilter]
    """What was asked for, and how much of it is still to come."""

    packets: list[TracedPacket]
    """The recorded packets, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCleared:
    """The answer to `DELETE /v1/trace`."""

    cleared: str
    """Always `trace`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """One armed trace."""

    left: int
    """Packets still to come."""

    count: int = 50
    """How many packets, 1 to 10,000."""

    interface: str | None = None
    """Only packets received on this interface; absent = on any. Of a sub-interface or a bond, only packets
    that are not forwarded in one pass.
    """

    node: str | None = None
    """Only packets that enter this node, from where on they are recorded; absent = any, from their reception
    on. Packets that an earlier node forwards in one pass do not enter this node.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """A wish to trace packets."""

    count: int = 50
    """How many packets, 1 to 10,000."""

    interface: str | None = None
    """Only packets received on this interface; absent = on any. Of a sub-interface or a bond, only packets
    that are not forwarded in one pass.
    """

    node: str | None = None
    """Only packets that enter this node, from where on they are recorded; absent = any, from their reception
    on. Packets that an earlier node forwards in one pass do not enter this node.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """What one node did with a packet."""

    node: str
    """The node."""

    verdict: str
    """Where the packet went: `to ip4-lookup`, `drop ttl-expired`, `hold`."""

    decision: str | None = None
    """What the node decided by, for people: route and adjacency, term of an access list, label, meaning of a
    drop reason.
    """

    made_by: str | None = None
    """The earlier node that made this step in its own pass; absent if the node made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedPacket:
    """One recorded packet."""

    number: int
    """Its number, from 1, in the order of recording."""

    worker: int
    """The worker that forwarded it."""

    time: Timestamp
    """When it came."""

    length: int
    """Its length when it came, in bytes without FCS."""

    headers: str
    """Its headers when it came, for people; may have several lines."""

    steps: list[TraceStep]
    """The nodes whose steps were made, in order."""

    incomplete: str | None = None
    """Why steps or decisions are missing; absent if none are."""

    interface: str | None = None
    """The interface it came in by; absent for packets that the router made itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Packets in one direction; `packets` = `unicast` + `multicast` + `broadcast`."""

    packets: int
    """Packets."""

    bytes: int
    """Bytes of frames, FCS not counted."""

    unicast: int
    """Packets to one station."""

    multicast: int
    """Packets to a group of stations."""

    broadcast: int
    """Packets to all stations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The program that answers, and since when it runs."""

    version: str
    """Its version, as `0.1.0`."""

    pid: int
    """Its process."""

    started: int
    """When it started, in seconds since 1970."""

    uptime: int
    """For how many seconds it has been running."""

    workers: int
    """How many workers it has."""

    commit: str | None = None
    """The commit it was built from, when known."""

    config_file: str | None = None
    """The configuration file it was started with, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VxlanTunnel:
    """Frames inside of UDP packets, between this router and one other."""

    interface: str
    """The tunnel's interface."""

    index: int
    """The interface's index."""

    local: str
    """The own address."""

    remote: str
    """The far end's."""

    vni: int
    """The segment."""

    admin: UpDown
    """Whether it is wanted up."""

    mtu: int
    """The largest IP packet in a frame, in bytes."""

    bridge: str | None = None
    """The bridge domain that it is in."""

    l2xc: str | None = None
    """The interface that everything received here leaves by."""

    route: Route | None = None
    """The route to the far end, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VxlanTunnels:
    """All VXLAN tunnels."""

    tunnels: list[VxlanTunnel]
    """The tunnels, in the order of their interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What the router does with the packet."""

    interface: str
    """The interface on which it is received."""

    interface_from_route: bool
    """Whether the interface follows from the route to the source, since none was given."""

    outcome: WhyOutcome
    """What becomes of it."""

    acl_terms: list[WhyTerm]
    """The terms of access lists that decide about it, in the order in which they are applied."""

    frames: list[WhyFrame]
    """Frames that leave: the packet or its fragments, or the router's answer."""

    metered: bool
    """Whether flows of the interface are metered for IPFIX."""

    steps: list[TraceStep]
    """The nodes that it visits, in order."""

    meaning: str | None = None
    """The same in a sentence."""

    reason: str | None = None
    """Why it is dropped, by name."""

    route: Route | None = None
    """The route to its destination; absent without one."""

    sampling_rate: int | None = None
    """One in how many packets of the interface is sampled by sFlow; absent when none is."""

    source_route: Route | None = None
    """The route to its source, which the reverse path check uses."""

    urpf: str | None = None
    """The reverse path check of the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyFrame:
    """A frame that leaves the router."""

    interface: str
    """The interface by which it leaves."""

    source_mac: str
    """Its source MAC address."""

    destination_mac: str
    """Its destination MAC address."""

    vlans: list[int]
    """Its VLAN identifiers, the outermost first."""

    labels: list[int]
    """Its MPLS labels, the outermost first."""

    length: int
    """Its length in bytes without FCS."""

    mtu: int
    """The longest packet that the interface sends, in bytes from the IP header on."""

    originated: bool
    """Whether the router made it, for example an ICMP error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyTerm:
    """A term of an access list that a packet matches."""

    interface: str
    """The interface."""

    direction: str
    """`input` or `output`."""

    acl: str
    """The list."""

    term: int
    """The term's place in its list, from 0, as in `GET /v1/acls`."""

    action: str
    """`permit` or `deny`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRuntime:
    """One worker."""

    worker: int
    """Its number, from 0."""

    idle: IdleMode
    """What it does without packets."""

    turns: int
    """Turns of its loop."""

    busy_turns: int
    """Turns that had packets."""

    nodes: list[NodeRuntime]
    """Where the clocks went: receive queues (`DRIVER-rx INTERFACE qN`), nodes, transmit queues (`DRIVER-tx
    INTERFACE qN`), and `loop`, which is everything else. What was never called is left out.
    """

    busy: float = 0.0
    """The share of time that it spent in turns with packets, from 0 to 1."""

    busy_clocks: int = 0
    """TSC clocks of the turns that had packets."""

    clocks: int = 0
    """TSC clocks of all turns; the rows of `nodes` add up to them."""

    core: int | None = None
    """The core that it is pinned to; absent when the kernel chooses."""


Event: TypeAlias = CountersEvent | LogEvent | ConfigEvent | LinkEvent | LostEvent
"""One event. In the stream, `event:` is its name and `data:` all of it as JSON."""

EVENT_BY_WORD: dict[str, type[Event]] = {
    "counters": CountersEvent,
    "log": LogEvent,
    "config": ConfigEvent,
    "link": LinkEvent,
    "lost": LostEvent,
}
"""The type of an Event by its `event`."""


class ApiPathBody(TypedDict):
    """One path of a route of the API."""

    next_hop: str
    """The neighbour that packets are handed to, or with `lookup` an address that has a route."""

    interface: NotRequired[str | None]
    """The interface that the neighbour is behind; absent = the one whose subnet has it."""

    labels: NotRequired[list[int]]
    """MPLS labels to push, outermost first."""

    lookup: NotRequired[str | None]
    """The table in which the route to the next hop is looked up, `default` or a VRF's name; absent = it is on
    a link.
    """

    weight: NotRequired[int]
    """Its share of flows beside the other paths, from 1."""


class ApiRouteBody(TypedDict):
    """A route of the API."""

    prefix: str
    """The destinations."""

    discard: NotRequired[Discard | None]
    """Drops packets in place of sending them; then there are no paths."""

    metric: NotRequired[int]
    """Of several routes of the API to a prefix the one with the lowest metric is used."""

    paths: NotRequired[list[ApiPathBody]]
    """Where packets may go; each flow takes one of them. At most 64."""

    vrf: NotRequired[str | None]
    """The VRF whose table it is in; absent = the default table."""


class ApiRouteKeyBody(TypedDict):
    """Which route of the API."""

    prefix: str
    """The destinations."""

    metric: NotRequired[int]
    """Its metric."""

    vrf: NotRequired[str | None]
    """The VRF whose table it is in; absent = the default table."""


class ApplyRequestBody(TypedDict):
    """A file to apply: `POST /v1/config/apply`."""

    yaml: str
    """The file's text."""

    author: NotRequired[str | None]
    """Who, for the history; absent = the user who asks."""

    comment: NotRequired[str | None]
    """Why, for the history."""

    confirm_seconds: NotRequired[int | None]
    """Undo the change by itself unless it is confirmed within so many seconds, 1 to 86,400."""

    file: NotRequired[str | None]
    """The file's name, for findings; absent = `configuration`."""

    skip_unsupported: NotRequired[bool]
    """Keys that vppcfg knows and this router lacks are warnings, not errors."""


class CaptureRequestBody(TypedDict):
    """What to capture. Of `rx`, `tx` and `drop`, at least one."""

    bytes: NotRequired[int | None]
    """End before the capture is longer than this, in bytes; absent = never."""

    drop: NotRequired[bool]
    """Packets that are dropped, each with its node and its reason as a comment."""

    interface: NotRequired[str | None]
    """Only packets that came in by this interface, or at `tx` go out by it; absent = any."""

    milliseconds: NotRequired[int | None]
    """End after this time; absent = never."""

    packets: NotRequired[int | None]
    """End after so many packets; absent = never."""

    reasons: NotRequired[list[str]]
    """Only drops for these reasons; empty = any."""

    rx: NotRequired[bool]
    """Packets as they come in."""

    snap_bytes: NotRequired[int | None]
    """Keep so many bytes of each packet; absent = all of them."""

    tx: NotRequired[bool]
    """Packets as they are about to go out."""


class ConfigTextBody(TypedDict):
    """A configuration file to look at: `POST /v1/config/check` and `/v1/config/plan`."""

    yaml: str
    """The file's text."""

    file: NotRequired[str | None]
    """The file's name, for findings; absent = `configuration`."""

    skip_unsupported: NotRequired[bool]
    """Keys that vppcfg knows and this router lacks are warnings, not errors."""


class DiffRequestBody(TypedDict):
    """What the running configuration is compared with: `POST /v1/config/diff`. One of the two."""

    revision: NotRequired[int | None]
    """A revision of the history: from it to what runs."""

    yaml: NotRequired[str | None]
    """A file's text: from what runs to it."""


class InterfacePatchBody(TypedDict):
    """A short edit of one interface: `PATCH /v1/interfaces/{name}`. Absent = stays, null = back to the
    default (RFC 7396).
    """

    description: NotRequired[str | None]
    """Free text for people."""

    mtu: NotRequired[int | None]
    """The largest IP packet that leaves it, in bytes."""

    sflow: NotRequired[bool | None]
    """Whether received packets are sampled."""

    state: NotRequired[UpDown | None]
    """Whether it is wanted up."""


class RollbackRequestBody(TypedDict):
    """What to go back to: `POST /v1/config/rollback`. Neither `revision` nor `steps_back` = one back."""

    author: NotRequired[str | None]
    """Who, for the history; absent = the user who asks."""

    comment: NotRequired[str | None]
    """Why, for the history."""

    confirm_seconds: NotRequired[int | None]
    """Undo it by itself unless it is confirmed within so many seconds, 1 to 86,400."""

    revision: NotRequired[int | None]
    """This revision."""

    steps_back: NotRequired[int | None]
    """So many revisions before the one that runs, at least 1."""


class RouteChangesBody(TypedDict):
    """Routes to delete and to set: `POST /v1/routes`. Routes are deleted first, then set, each in the order
    of the list.
    """

    delete: NotRequired[list[ApiRouteKeyBody]]
    """Routes to delete; one that is not there is not an error."""

    resync: NotRequired[RouteResync | None]
    """Replaces all routes of the API by those that are set between a request with `begin` and one with `end`,
    which may be the same request (`all`). Until the end the routes from before stay in force.
    """

    set: NotRequired[list[ApiRouteBody]]
    """Routes to set: new ones, and ones that replace the route with the same table, prefix and metric."""


class SflowPatchBody(TypedDict):
    """A short edit of sFlow: `PATCH /v1/sflow`. Absent = stays, null = back to the default (RFC 7396)."""

    header_bytes: NotRequired[int | None]
    """Bytes of each sampled packet that are reported."""

    polling_interval_seconds: NotRequired[int | None]
    """Seconds between two reports of an interface's counters; 0 = never."""

    sampling_rate: NotRequired[int | None]
    """One packet in this many is sampled; 0 = none."""


class TraceRequestBody(TypedDict):
    """A wish to trace packets."""

    count: NotRequired[int]
    """How many packets, 1 to 10,000."""

    interface: NotRequired[str | None]
    """Only packets received on this interface; absent = on any. Of a sub-interface or a bond, only packets
    that are not forwarded in one pass.
    """

    node: NotRequired[str | None]
    """Only packets that enter this node, from where on they are recorded; absent = any, from their reception
    on. Packets that an earlier node forwards in one pass do not enter this node.
    """
