"""One method for each operation of the API, with the parameters that it takes.

Written by `generate.py` from the router's OpenAPI document; change that, not this.
"""

from __future__ import annotations

from typing import Any, Literal

from . import types
from .wire import CaptureStream, EventStream, Wire, segment


class Operations:
    """The operations, asked over one wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def get_metrics_at_root(self) -> str:
        """All counters for Prometheus, where it looks by itself. `GET /metrics`"""
        return self._wire.ask_text("GET", "/metrics")

    def get_acls(
        self,
        *,
        acl: str | None = None,
        interface: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> types.AclsPage:
        """Access lists: what interfaces are bound to, and what each term met. `GET /v1/acls`"""
        return self._wire.ask(
            types.AclsPage,
            "GET",
            "/v1/acls",
            query={"acl": acl, "interface": interface, "limit": limit, "after": after},
        )

    def get_adjacencies(
        self,
        *,
        interface: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> types.AdjacenciesPage:
        """Where paths end: neighbours and all else. `GET /v1/adjacencies`"""
        return self._wire.ask(
            types.AdjacenciesPage,
            "GET",
            "/v1/adjacencies",
            query={"interface": interface, "limit": limit, "after": after},
        )

    def get_bonds(self, *, interface: str | None = None) -> types.Bonds:
        """Bonds, their members, and where LACP stands. `GET /v1/bonds`"""
        return self._wire.ask(types.Bonds, "GET", "/v1/bonds", query={"interface": interface})

    def get_bridge_domains(self, *, bridge: str | None = None) -> types.BridgeDomains:
        """Bridge domains, their members, and what they counted. `GET /v1/bridge-domains`"""
        return self._wire.ask(types.BridgeDomains, "GET", "/v1/bridge-domains", query={"bridge": bridge})

    def get_buffers(self) -> types.Buffers:
        """How full packet memory is. `GET /v1/buffers`"""
        return self._wire.ask(types.Buffers, "GET", "/v1/buffers")

    def post_clear_errors(self) -> types.Cleared:
        """Sets drop counters to 0. `POST /v1/clear/errors`"""
        return self._wire.ask(types.Cleared, "POST", "/v1/clear/errors")

    def post_clear_interfaces(self) -> types.Cleared:
        """Sets interface counters to 0. `POST /v1/clear/interfaces`"""
        return self._wire.ask(types.Cleared, "POST", "/v1/clear/interfaces")

    def post_clear_runtime(self) -> types.Cleared:
        """Sets node counters to 0. `POST /v1/clear/runtime`"""
        return self._wire.ask(types.Cleared, "POST", "/v1/clear/runtime")

    def get_config(self) -> dict[str, Any]:
        """The running configuration, with the keys of the file. `GET /v1/config`"""
        return self._wire.ask(dict[str, object], "GET", "/v1/config")

    def post_config_apply(self, body: types.ApplyRequestBody) -> types.Applied:
        """Applies a file as one transaction. `POST /v1/config/apply`"""
        return self._wire.ask(types.Applied, "POST", "/v1/config/apply", body=body)

    def post_config_check(self, body: types.ConfigTextBody) -> types.ConfigChecked:
        """Looks at a file, and tells everything that is wrong. `POST /v1/config/check`"""
        return self._wire.ask(types.ConfigChecked, "POST", "/v1/config/check", body=body)

    def post_config_confirm(self) -> types.Confirmed:
        """Keeps the change that waits to be confirmed. `POST /v1/config/confirm`"""
        return self._wire.ask(types.Confirmed, "POST", "/v1/config/confirm")

    def post_config_diff(self, body: types.DiffRequestBody) -> types.ConfigDiff:
        """Compares a file, or a revision, with what runs. `POST /v1/config/diff`"""
        return self._wire.ask(types.ConfigDiff, "POST", "/v1/config/diff", body=body)

    def get_config_dump(self) -> types.ConfigDump:
        """The running configuration as a file. `GET /v1/config/dump`"""
        return self._wire.ask(types.ConfigDump, "GET", "/v1/config/dump")

    def get_config_history(self, *, limit: int | None = None, before: int | None = None) -> types.History:
        """Applied configurations, newest first. `GET /v1/config/history`"""
        return self._wire.ask(
            types.History,
            "GET",
            "/v1/config/history",
            query={"limit": limit, "before": before},
        )

    def get_config_history_revision(self, revision: int) -> types.RevisionText:
        """One applied configuration with its text. `GET /v1/config/history/{revision}`"""
        return self._wire.ask(types.RevisionText, "GET", f"/v1/config/history/{segment(revision)}")

    def post_config_plan(self, body: types.ConfigTextBody) -> types.ConfigPlan:
        """Tells what applying a file would do. `POST /v1/config/plan`"""
        return self._wire.ask(types.ConfigPlan, "POST", "/v1/config/plan", body=body)

    def post_config_rollback(self, body: types.RollbackRequestBody) -> types.Applied:
        """Goes back to an earlier configuration. `POST /v1/config/rollback`"""
        return self._wire.ask(types.Applied, "POST", "/v1/config/rollback", body=body)

    def get_config_schema(self) -> dict[str, Any]:
        """The JSON Schema of configuration files. `GET /v1/config/schema`"""
        return self._wire.ask(dict[str, object], "GET", "/v1/config/schema")

    def get_errors(self, *, interface: str | None = None, by_worker: bool | None = None) -> types.Errors:
        """Drops by node, reason and interface. `GET /v1/errors`"""
        return self._wire.ask(
            types.Errors,
            "GET",
            "/v1/errors",
            query={"interface": interface, "by_worker": by_worker},
        )

    def get_events(
        self,
        *,
        topics: list[Literal["counters", "log", "config", "link"]] | None = None,
        interval_ms: int | None = None,
        interface: str | None = None,
    ) -> EventStream:
        """Counters, log lines, changes and link events as they happen. `GET /v1/events`"""
        return self._wire.stream(
            "/v1/events",
            query={"topics": topics, "interval_ms": interval_ms, "interface": interface},
        )

    def get_features(self, *, interface: str | None = None) -> types.Features:
        """Features of interfaces in their order, and what policers counted. `GET /v1/features`"""
        return self._wire.ask(types.Features, "GET", "/v1/features", query={"interface": interface})

    def get_fib_summary(self) -> types.FibSummary:
        """The size of the forwarding tables. `GET /v1/fib-summary`"""
        return self._wire.ask(types.FibSummary, "GET", "/v1/fib-summary")

    def get_flows(
        self,
        *,
        prefix: str | None = None,
        interface: str | None = None,
        port: int | None = None,
        protocol: int | None = None,
        top: list[Literal["octets", "packets"]] | None = None,
        group: list[Literal["source", "destination", "host", "protocol", "input", "output", "status"]] | None = None,
        lengths: str | None = None,
        limit: int | None = None,
    ) -> types.Flows:
        """Flows that are under way. `GET /v1/flows`"""
        return self._wire.ask(
            types.Flows,
            "GET",
            "/v1/flows",
            query={"prefix": prefix, "interface": interface, "port": port, "protocol": protocol, "top": top, "group": group, "lengths": lengths, "limit": limit},
        )

    def get_hardware(self, *, interface: str | None = None) -> types.Hardware:
        """Ports with the counters of driver, kernel and device. `GET /v1/hardware`"""
        return self._wire.ask(types.Hardware, "GET", "/v1/hardware", query={"interface": interface})

    def get_interfaces(
        self,
        *,
        name: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> types.InterfacesPage:
        """Interfaces with their counters. `GET /v1/interfaces`"""
        return self._wire.ask(
            types.InterfacesPage,
            "GET",
            "/v1/interfaces",
            query={"name": name, "limit": limit, "after": after},
        )

    def patch_interfaces_name(self, name: str, body: types.InterfacePatchBody) -> types.Applied:
        """Edits one interface's settings. `PATCH /v1/interfaces/{name}`"""
        return self._wire.ask(types.Applied, "PATCH", f"/v1/interfaces/{segment(name)}", body=body)

    def get_ipfix(self) -> types.Ipfix:
        """Settings and counters of the flow meter and its exporter. `GET /v1/ipfix`"""
        return self._wire.ask(types.Ipfix, "GET", "/v1/ipfix")

    def get_l2fib(
        self,
        *,
        bridge: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> types.L2fibPage:
        """Stations of bridge domains. `GET /v1/l2fib`"""
        return self._wire.ask(
            types.L2fibPage,
            "GET",
            "/v1/l2fib",
            query={"bridge": bridge, "limit": limit, "after": after},
        )

    def get_linux(self) -> types.Linux:
        """The TAPs of interfaces in Linux, and what is read from the kernel. `GET /v1/linux`"""
        return self._wire.ask(types.Linux, "GET", "/v1/linux")

    def get_log(
        self,
        *,
        limit: int | None = None,
        level: list[Literal["error", "warn", "info", "debug", "trace"]] | None = None,
    ) -> types.Log:
        """The last lines of the log. `GET /v1/log`"""
        return self._wire.ask(types.Log, "GET", "/v1/log", query={"limit": limit, "level": level})

    def get_memif(self, *, interface: str | None = None) -> types.Memifs:
        """Shared-memory connections and their peers. `GET /v1/memif`"""
        return self._wire.ask(types.Memifs, "GET", "/v1/memif", query={"interface": interface})

    def get_metrics(self) -> str:
        """All counters for Prometheus. `GET /v1/metrics`"""
        return self._wire.ask_text("GET", "/v1/metrics")

    def get_mpls_fib(
        self,
        *,
        label: int | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> types.MplsFibPage:
        """Incoming MPLS labels: all, or one, a page at a time. `GET /v1/mpls-fib`"""
        return self._wire.ask(
            types.MplsFibPage,
            "GET",
            "/v1/mpls-fib",
            query={"label": label, "limit": limit, "after": after},
        )

    def get_neighbors(
        self,
        *,
        interface: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> types.NeighborsPage:
        """Neighbours on the links. `GET /v1/neighbors`"""
        return self._wire.ask(
            types.NeighborsPage,
            "GET",
            "/v1/neighbors",
            query={"interface": interface, "limit": limit, "after": after},
        )

    def get_openapi_json(self) -> dict[str, Any]:
        """This API as an OpenAPI 3.1 document. `GET /v1/openapi.json`"""
        return self._wire.ask(dict[str, object], "GET", "/v1/openapi.json")

    def get_pcap(self) -> types.Captures:
        """Captures that are under way. `GET /v1/pcap`"""
        return self._wire.ask(types.Captures, "GET", "/v1/pcap")

    def post_pcap(self, body: types.CaptureRequestBody) -> CaptureStream:
        """Captures packets, until the client goes away or a limit is reached. `POST /v1/pcap`"""
        return self._wire.capture("POST", "/v1/pcap", body=body)

    def delete_pcap_number(self, number: int) -> types.Capture:
        """Ends a capture; its reader receives what was captured until then. `DELETE /v1/pcap/{number}`"""
        return self._wire.ask(types.Capture, "DELETE", f"/v1/pcap/{segment(number)}")

    def get_pseudowires(self, *, interface: str | None = None) -> types.Pseudowires:
        """Pseudowires, their labels and their ways. `GET /v1/pseudowires`"""
        return self._wire.ask(types.Pseudowires, "GET", "/v1/pseudowires", query={"interface": interface})

    def get_routes(
        self,
        *,
        prefix: str | None = None,
        table: int | None = None,
        family: list[Literal["ipv4", "ipv6"]] | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> types.RoutesPage:
        """Routes with their paths. `GET /v1/routes`"""
        return self._wire.ask(
            types.RoutesPage,
            "GET",
            "/v1/routes",
            query={"prefix": prefix, "table": table, "family": family, "limit": limit, "after": after},
        )

    def post_routes(self, body: types.RouteChangesBody) -> types.RoutesChanged:
        """Sets and deletes routes of the API, until the router restarts. `POST /v1/routes`"""
        return self._wire.ask(types.RoutesChanged, "POST", "/v1/routes", body=body)

    def get_runtime(self) -> types.Runtime:
        """Calls, packets and clocks of each node on each worker. `GET /v1/runtime`"""
        return self._wire.ask(types.Runtime, "GET", "/v1/runtime")

    def get_rx_placement(self, *, interface: str | None = None) -> types.RxPlacement:
        """Which worker serves which receive queue. `GET /v1/rx-placement`"""
        return self._wire.ask(types.RxPlacement, "GET", "/v1/rx-placement", query={"interface": interface})

    def get_sflow(self) -> types.Sflow:
        """Settings and counters of the sFlow sampler and agent. `GET /v1/sflow`"""
        return self._wire.ask(types.Sflow, "GET", "/v1/sflow")

    def patch_sflow(self, body: types.SflowPatchBody) -> types.Applied:
        """Edits sFlow's settings. `PATCH /v1/sflow`"""
        return self._wire.ask(types.Applied, "PATCH", "/v1/sflow", body=body)

    def get_system(self) -> types.System:
        """Whether the router does all that its configuration says, and what is wrong. `GET /v1/system`"""
        return self._wire.ask(types.System, "GET", "/v1/system")

    def get_totals(self) -> types.Totals:
        """The balance of packets since start. `GET /v1/totals`"""
        return self._wire.ask(types.Totals, "GET", "/v1/totals")

    def delete_trace(self) -> types.TraceCleared:
        """Disarms all traces and forgets what they recorded. `DELETE /v1/trace`"""
        return self._wire.ask(types.TraceCleared, "DELETE", "/v1/trace")

    def get_trace(self) -> types.Trace:
        """Armed traces and recorded packets. `GET /v1/trace`"""
        return self._wire.ask(types.Trace, "GET", "/v1/trace")

    def post_trace(self, body: types.TraceRequestBody) -> types.TraceRequest:
        """Arms a trace. `POST /v1/trace`"""
        return self._wire.ask(types.TraceRequest, "POST", "/v1/trace", body=body)

    def get_version(self) -> types.Version:
        """Who answers, and since when. `GET /v1/version`"""
        return self._wire.ask(types.Version, "GET", "/v1/version")

    def get_vxlan_tunnels(self, *, interface: str | None = None) -> types.VxlanTunnels:
        """VXLAN tunnels, and where they lead. `GET /v1/vxlan-tunnels`"""
        return self._wire.ask(types.VxlanTunnels, "GET", "/v1/vxlan-tunnels", query={"interface": interface})

    def get_why(
        self,
        *,
        source: str | None = None,
        destination: str | None = None,
        protocol: list[Literal["udp", "tcp", "icmp"]] | None = None,
        source_port: int | None = None,
        destination_port: int | None = None,
        interface: str | None = None,
        length: int | None = None,
        ttl: int | None = None,
        dont_fragment: bool | None = None,
    ) -> types.Why:
        """What the router would do with a packet, and why. Nothing is sent, counted or learnt. `GET /v1/why`
        """
        return self._wire.ask(
            types.Why,
            "GET",
            "/v1/why",
            query={"source": source, "destination": destination, "protocol": protocol, "source_port": source_port, "destination_port": destination_port, "interface": interface, "length": length, "ttl": ttl, "dont_fragment": dont_fragment},
        )
