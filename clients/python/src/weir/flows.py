"""The flow meter: what it counts, where its records go, and flows that are under way."""

from __future__ import annotations

from typing import Literal

from . import types
from .operations import Operations


class Flows:
    """`router.flows`."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def show(self) -> types.Ipfix:
        """Settings, and the counters of workers, exporter and collectors."""
        return self._operations.get_ipfix()

    def table(
        self,
        *,
        prefix: str | None = None,
        interface: str | None = None,
        port: int | None = None,
        limit: int | None = None,
    ) -> list[types.FlowEntry]:
        """Flows that are under way, at most `limit` (100 when absent), of this prefix, interface and port."""
        return self._operations.get_flows(prefix=prefix, interface=interface, port=port, limit=limit).flows

    def top(
        self,
        by: Literal["octets", "packets"] = "octets",
        *,
        prefix: str | None = None,
        interface: str | None = None,
        port: int | None = None,
        limit: int = 10,
    ) -> list[types.FlowEntry]:
        """The flows with the most octets, or packets, so far."""
        found = self._operations.get_flows(prefix=prefix, interface=interface, port=port, top=[by], limit=limit)
        return found.flows
