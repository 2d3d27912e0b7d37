"""A router, as this client shows it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Unpack

from . import types
from .config import Config
from .edit import Default, value
from .events import Events
from .flows import Flows
from .operations import Operations
from .pages import all_acls, all_adjacencies, all_interfaces, all_neighbors, all_routes, all_stations
from .sflow import Sflow
from .trace import Trace
from .wire import CaptureStream, TcpTarget, UnixTarget, Wire, tcp_target

SOCKET = "/run/weir/api.sock"
"""Where a router listens when nobody says."""

Topic = Literal["counters", "log", "config", "link"]


class Router:
    """One router. Made by `connect`; usable by several threads at once."""

    def __init__(self, wire: Wire) -> None:
        self.operations = Operations(wire)
        """Every operation of the API as it is, for what has no method here."""
        self.sflow = Sflow(self.operations)
        self.flows = Flows(self.operations)
        """sFlow's settings, sampled interfaces and counters."""
        self.config = Config(self.operations)
        """The configuration."""
        self.trace = Trace(self.operations)
        """Traces of packets."""
        self._target = wire.target
        self._listening: weakref.WeakSet[Events] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<weir.Router {self._target}>"

    def __enter__(self) -> Router:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all streams of events. Nothing else is held between two calls."""
        for events in list(self._listening):
            events.close()

    def interfaces(self) -> Iterator[types.Interface]:
        """All interfaces with their counters, in the order of their index."""
        return all_interfaces(self.operations)

    def interface(self, name: str) -> types.Interface:
        """One interface with its counters."""
        return self.operations.get_interfaces(name=name).interfaces[0]

    def set_interface(
        self,
        name: str,
        *,
        state: types.UpDown | Default | None = None,
        mtu: int | Default | None = None,
        description: str | Default | None = None,
        sflow: bool | Default | None = None,
    ) -> types.Applied:
        """Changes the settings of an interface that are given, all at once; the others stay."""
        body: types.InterfacePatchBody = {}
        if state is not None:
            body["state"] = value(state)
        if mtu is not None:
            body["mtu"] = value(mtu)
        if description is not None:
            body["description"] = value(description)
        if sflow is not None:
            body["sflow"] = value(sflow)
        return self.operations.patch_interfaces_name(name, body)

    def neighbors(self, interface: str | None = None) -> Iterator[types.Neighbor]:
        """Neighbours on the links, or on one of them."""
        return all_neighbors(self.operations, interface)

    def stations(self, bridge: str | None = None) -> Iterator[types.L2Station]:
        """Stations of all bridge domains, or of one."""
        return all_stations(self.operations, bridge)

    def routes(
        self, prefix: str | None = None, *, table: int | None = None, family: str | None = None
    ) -> Iterator[types.Route]:
        """Routes with their paths: all, those for a prefix, or the longest match of an address; of ipv4, ipv6 or both."""
        return all_routes(self.operations, prefix, table, family)

    def change_routes(self, **changes: Unpack[types.RouteChangesBody]) -> types.RoutesChanged:
        """Sets and deletes routes of the API, at most 100,000 at once. They are gone when the router restarts."""
        return self.operations.post_routes(changes)

    def adjacencies(self, interface: str | None = None) -> Iterator[types.AdjacencyReply]:
        """Where paths end: all, or those of an interface."""
        return all_adjacencies(self.operations, interface)

    def show_version(self) -> types.Version:
        """Who answers, and since when."""
        return self.operations.get_version()

    def show_hardware(self, interface: str | None = None) -> types.Hardware:
        """Ports with the counters of driver, kernel and device."""
        return self.operations.get_hardware(interface=interface)

    def show_rx_placement(self, interface: str | None = None) -> types.RxPlacement:
        """Which worker serves which receive queue."""
        return self.operations.get_rx_placement(interface=interface)

    def show_pseudowire(self, interface: str | None = None) -> list[types.Pseudowire]:
        """Pseudowires, their labels and their ways."""
        return self.operations.get_pseudowires(interface=interface).pseudowires

    def show_bond(self, interface: str | None = None) -> list[types.Bond]:
        """Bonds, their members, and where LACP stands."""
        return self.operations.get_bonds(interface=interface).bonds

    def show_vxlan_tunnel(self, interface: str | None = None) -> list[types.VxlanTunnel]:
        """VXLAN tunnels, and where they lead."""
        return self.operations.get_vxlan_tunnels(interface=interface).tunnels

    def show_bridge_domains(self, bridge: str | None = None) -> list[types.BridgeDomain]:
        """Bridge domains, their members, and what they counted."""
        return self.operations.get_bridge_domains(bridge=bridge).bridges

    def show_mpls_fib(self, label: int | None = None) -> list[types.LabelReply]:
        """Incoming labels and what is done with them."""
        return self.operations.get_mpls_fib(label=label).labels

    def show_memif(self, interface: str | None = None) -> list[types.Memif]:
        """Shared-memory connections and their peers."""
        return self.operations.get_memif(interface=interface).ports

    def show_system(self) -> types.System:
        """What is degraded, and why."""
        return self.operations.get_system()

    def show_linux(self) -> types.Linux:
        """Linux as the control plane: TAPs, routes that were read, packets for its services."""
        return self.operations.get_linux()

    def show_feature(self, interface: str | None = None) -> list[types.InterfaceFeatures]:
        """Features of interfaces in their order, and what policers counted."""
        return self.operations.get_features(interface=interface).interfaces

    def show_acl(self, acl: str | None = None, interface: str | None = None) -> types.AclsPage:
        """Access lists: what interfaces are bound to, and what each term met."""
        return all_acls(self.operations, acl, interface)

    def show_runtime(self) -> types.Runtime:
        """Calls, packets and clocks of each node on each worker."""
        return self.operations.get_runtime()

    def show_errors(self, interface: str | None = None, *, by_worker: bool = False) -> list[types.DropCounter]:
        """Drops by node, reason and interface."""
        return self.operations.get_errors(interface=interface, by_worker=by_worker).errors

    def show_fib_summary(self) -> types.FibSummary:
        """The size of the forwarding tables."""
        return self.operations.get_fib_summary()

    def show_buffers(self) -> list[types.BufferPool]:
        """How full packet memory is."""
        return self.operations.get_buffers().pools

    def show_totals(self) -> types.Totals:
        """The balance of packets since the router started."""
        return self.operations.get_totals()

    def show_log(
        self, limit: int = 100, level: Literal["error", "warn", "info", "debug", "trace"] = "trace"
    ) -> list[types.LogEvent]:
        """The last lines of the log of this level and above, the oldest first."""
        return self.operations.get_log(limit=limit, level=[level]).lines

    def why(
        self,
        source: str,
        destination: str,
        *,
        protocol: Literal["udp", "tcp", "icmp"] = "udp",
        port: int | None = None,
        source_port: int | None = None,
        interface: str | None = None,
        length: int | None = None,
        ttl: int | None = None,
        dont_fragment: bool = False,
    ) -> types.Why:
        """What the router would do with a packet, and why. Nothing is sent, counted or learnt."""
        return self.operations.get_why(
            source=source,
            destination=destination,
            protocol=[protocol],
            destination_port=port,
            source_port=source_port,
            interface=interface,
            length=length,
            ttl=ttl,
            dont_fragment=dont_fragment,
        )

    def clear_interfaces(self) -> None:
        """Sets the counters of interfaces to 0."""
        self.operations.post_clear_interfaces()

    def clear_runtime(self) -> None:
        """Sets the counters of nodes to 0."""
        self.operations.post_clear_runtime()

    def clear_errors(self) -> None:
        """Sets the counters of drops to 0."""
        self.operations.post_clear_errors()

    def events(self, *topics: Topic, interface: str | None = None, interval: float | None = None) -> Events:
        """What happens, as it happens: the named topics, or all.

        `interval` is the time between two `counters` in seconds; `interface` narrows counters and links.
        """
        interval_ms = None if interval is None else round(interval * 1000)
        stream = self.operations.get_events(topics=list(topics) or None, interval_ms=interval_ms, interface=interface)
        events = Events(stream)
        self._listening.add(events)
        return events

    def capture(self, **wanted: Unpack[types.CaptureRequestBody]) -> CaptureStream:
        """Captures packets: an iterator of pcapng in pieces, until a limit is reached, `end_capture` or `close`.

        Of `rx`, `tx` and `drop`, at least one is to be true. To see how many packets were lost, end it and read on.
        """
        return self.operations.post_pcap(wanted)

    def captures(self) -> list[types.Capture]:
        """Captures that are under way."""
        return self.operations.get_pcap().captures

    def end_capture(self, number: int) -> types.Capture:
        """Ends a capture; its reader gets what was captured by then."""
        return self.operations.delete_pcap_number(number)

    def metrics(self) -> str:
        """All counters as OpenMetrics text."""
        return self.operations.get_metrics()

    def openapi(self) -> dict[str, Any]:
        """The API as an OpenAPI 3.1 document."""
        return self.operations.get_openapi_json()


def connect(
    socket: str | os.PathLike[str] | None = None,
    *,
    address: str | None = None,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    tls: bool = True,
    timeout: float | None = None,
) -> Router:
    """The router at a Unix socket, or at an address; raises `Unreachable` when none answers.

    Without arguments it is the one on this machine: at `$WEIR_SOCKET`, else at /run/weir/api.sock. With
    `address` (`HOST:PORT`) it is asked over TCP with TLS, and shown a token or a client certificate with its
    key; `ca` is the file of the CA that vouches for the router, where the system does not know it.
    `timeout` is how many seconds to wait for an answer.
    """
    if address is None:
        path = os.fspath(socket) if socket is not None else os.environ.get("WEIR_SOCKET") or SOCKET
        target: UnixTarget | TcpTarget = UnixTarget(path)
    elif socket is not None:
        raise ValueError("a router is at a socket or at an address, not at both")
    else:
        target = tcp_target(address, _path(ca), _path(certificate), _path(key), tls)
    router = Router(Wire(target, token, timeout))
    router.show_version()
    return router


def _path(of: str | os.PathLike[str] | None) -> Path | None:
    return None if of is None else Path(of)
