"""sFlow: settings, sampled interfaces, and what was sampled."""

from __future__ import annotations

from . import types
from .edit import Default, value
from .operations import Operations
from .pages import all_interfaces


class Sflow:
    """`router.sflow`."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def set(
        self,
        *,
        sampling_rate: int | Default | None = None,
        polling_interval_seconds: int | Default | None = None,
        header_bytes: int | Default | None = None,
    ) -> types.Applied:
        """Changes the settings that are given, all at once; the others stay.

        One packet in `sampling_rate` is sampled (0 = none), of each `header_bytes` bytes are reported, and
        counters of interfaces are reported every `polling_interval_seconds` (0 = never).
        """
        body: types.SflowPatchBody = {}
        if sampling_rate is not None:
            body["sampling_rate"] = value(sampling_rate)
        if polling_interval_seconds is not None:
            body["polling_interval_seconds"] = value(polling_interval_seconds)
        if header_bytes is not None:
            body["header_bytes"] = value(header_bytes)
        return self._operations.patch_sflow(body)

    def enable(self, interface: str) -> types.Applied:
        """Samples packets that the interface receives."""
        return self._operations.patch_interfaces_name(interface, {"sflow": True})

    def disable(self, interface: str) -> types.Applied:
        """Samples them no longer."""
        return self._operations.patch_interfaces_name(interface, {"sflow": False})

    def settings(self) -> types.SflowSettings:
        """The settings that are in force."""
        return self.show().settings

    def interfaces(self) -> list[types.SflowInterface]:
        """The sampled interfaces with their counters."""
        counted = {one.interface: one for one in self.show().interfaces}
        return [
            # What was enabled just now has not been counted yet.
            counted.get(one.name) or types.SflowInterface(interface=one.name, index=one.index, pool=0, samples=0)
            for one in all_interfaces(self._operations)
            if one.sflow
        ]

    def show(self) -> types.Sflow:
        """Settings, and the counters of workers, agent, collectors and interfaces, also of those once sampled."""
        return self._operations.get_sflow()
