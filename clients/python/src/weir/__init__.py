"""Asks and configures a Weir router.

    import weir

    with weir.connect() as router:
        router.sflow.set(sampling_rate=1000, polling_interval_seconds=30, header_bytes=128)
        router.sflow.enable("xe0")
        for interface in router.interfaces():
            print(interface.name, interface.rx.packets)
"""

from . import types
from .edit import DEFAULT, Default
from .errors import (
    Conflict,
    Error,
    Invalid,
    Late,
    NotAllowed,
    NotAvailable,
    NotFound,
    NotUnderstood,
    Refused,
    Unreachable,
)
from .events import Events
from .router import Router, connect

__all__ = [
    "DEFAULT",
    "Conflict",
    "Default",
    "Error",
    "Events",
    "Invalid",
    "Late",
    "NotAllowed",
    "NotAvailable",
    "NotFound",
    "NotUnderstood",
    "Refused",
    "Router",
    "Unreachable",
    "connect",
    "types",
]
