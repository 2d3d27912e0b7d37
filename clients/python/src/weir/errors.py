"""What goes wrong, as exceptions: `Error` is all of them.

`Unreachable` is a router that does not answer, `Refused` is one that answers that it will not, with the
words of the router; its subclasses are the refusals that programs tell apart.
"""

from __future__ import annotations

from . import types


class Error(Exception):
    """Anything that goes wrong with a router."""


class Unreachable(Error, ConnectionError):
    """No router answers: it is not running, it may not be talked to, or the connection broke."""


class Late(Unreachable, TimeoutError):
    """The router does not answer in time. Whether it did what it was asked to is not known."""


class NotUnderstood(Error):
    """The router answered what this client does not understand."""


class Refused(Error):
    """The router answered that it does not do this."""

    def __init__(self, status: int, error: types.ApiError) -> None:
        super().__init__(f"{error.message} ({error.help})" if error.help else error.message)
        self.status = status
        """The HTTP status."""
        self.code: types.ErrorCode = error.code
        """The kind of error."""
        self.message = error.message
        """One sentence: what is wrong."""
        self.help = error.help
        """What would be right, or what to do; may be empty."""
        self.findings = error.findings
        """What is wrong with the configuration that was sent, with its places."""
        self.lock = error.lock
        """Who holds the configuration."""


class NotAllowed(Refused):
    """Nobody knows who asks, or whoever asks may not do this."""


class NotFound(Refused):
    """The thing that was named does not exist."""


class Conflict(Refused):
    """The router's state forbids it now; `lock` says who holds the configuration."""


class Invalid(Refused):
    """The configuration has errors; `findings` says which."""

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(finding.rendered.rstrip() for finding in self.findings)])


class NotAvailable(Refused):
    """This router cannot do that."""


BY_CODE: dict[str, type[Refused]] = {
    "unauthorized": NotAllowed,
    "forbidden": NotAllowed,
    "not-found": NotFound,
    "conflict": Conflict,
    "invalid": Invalid,
    "not-available": NotAvailable,
}


def refusal(status: int, error: types.ApiError) -> Refused:
    """The exception that tells this error."""
    return BY_CODE.get(error.code, Refused)(status, error)
