"""Edits of single settings: what is None stays, `DEFAULT` goes back to the default (RFC 7396's null)."""

from __future__ import annotations

import enum
from typing import Final, TypeVar

T = TypeVar("T")


class Default(enum.Enum):
    """The type of `DEFAULT`."""

    DEFAULT = "default"


DEFAULT: Final = Default.DEFAULT
"""As if the configuration did not have the key."""


def value(of: T | Default) -> T | None:
    """The value as the API takes it."""
    return None if isinstance(of, Default) else of
