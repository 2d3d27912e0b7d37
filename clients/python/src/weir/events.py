"""What happens in a router, as it happens: an iterator of events."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from .decode import decode
from .types import EVENT_BY_WORD, Event
from .wire import EventStream


class Events:
    """Events one after the other. Waits for the next one; ends when the router stops, or by `close`.

    A reader that is slower than the router loses the oldest events, and receives their number in a `LostEvent`.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._events = self._decoded()

    def _decoded(self) -> Iterator[Event]:
        for value in self._stream:
            of = EVENT_BY_WORD.get(str(value.get("event"))) if isinstance(value, dict) else None
            # A newer router may tell what this client does not know.
            if of is not None:
                yield decode(of, value)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def close(self) -> None:
        """Stops listening."""
        self._stream.close()

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
