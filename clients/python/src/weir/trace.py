"""Traces: what each node did with a packet."""

from __future__ import annotations

from . import types
from .operations import Operations


class Trace:
    """`router.trace`."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def add(self, *, node: str | None = None, interface: str | None = None, count: int = 50) -> types.TraceRequest:
        """Follows the next packets: all, those that enter a node, or those that an interface receives."""
        body: types.TraceRequestBody = {"count": count}
        if node is not None:
            body["node"] = node
        if interface is not None:
            body["interface"] = interface
        return self._operations.post_trace(body)

    def show(self) -> types.Trace:
        """Armed traces and recorded packets."""
        return self._operations.get_trace()

    def clear(self) -> None:
        """Disarms all traces and forgets what they recorded."""
        self._operations.delete_trace()
