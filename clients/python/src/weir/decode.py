"""From JSON to the types of `types.py`.

A type's decoder is made once, from its annotations. Keys that this client does not know are left out, and
words that it does not know stay as they are: a newer router can be asked. A key that must be there and is
not, or a value of another kind, is reported with its place.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .errors import NotUnderstood

T = TypeVar("T")
Decoder = Callable[[object, str], Any]
"""Takes a JSON value and its place in the document."""


def decode(of: type[T], value: object) -> T:
    """The value as this type."""
    return cast(T, decoder(cast(Any, of))(value, ""))


def wrong(place: str, wanted: str, value: object) -> NotUnderstood:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return NotUnderstood(f"the router's answer has {shown} {f'in {place}' if place else 'at its top'}, not {wanted}")


@functools.cache
def decoder(of: Any) -> Decoder:
    """Makes the decoder of a type."""
    if of is Any or of is object:
        return lambda value, _: value
    if dataclasses.is_dataclass(of):
        return of_dataclass(cast(type, of))
    origin, arguments = get_origin(of), get_args(of)
    if origin is list:
        return of_list(decoder(arguments[0]))
    if origin is dict:
        return of_dict(decoder(arguments[1]))
    if origin in (Union, types.UnionType):
        (inner,) = (decoder(one) for one in arguments if one is not type(None))
        return lambda value, place: None if value is None else inner(value, place)
    if origin is Literal:
        return decoder(str)
    if of is datetime:
        return point_in_time
    return of_simple(of)


def of_simple(of: type) -> Decoder:
    wanted = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}[of]

    def decode_simple(value: object, place: str) -> object:
        if type(value) is of:
            return value
        if of is float and type(value) is int:
            return float(value)
        raise wrong(place, wanted, value)

    return decode_simple


def point_in_time(value: object, place: str) -> datetime:
    """RFC 3339, as the router writes it."""
    try:
        return datetime.fromisoformat(cast(str, value))
    except (TypeError, ValueError):
        raise wrong(place, "a point in time", value) from None


def of_list(inner: Decoder) -> Decoder:
    def decode_list(value: object, place: str) -> list[object]:
        if not isinstance(value, list):
            raise wrong(place, "a list", value)
        return [inner(one, f"{place}[{number}]") for number, one in enumerate(value)]

    return decode_list


def of_dict(inner: Decoder) -> Decoder:
    def decode_dict(value: object, place: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise wrong(place, "an object", value)
        return {key: inner(one, f"{place}.{key}") for key, one in value.items()}

    return decode_dict


def of_dataclass(of: type) -> Decoder:
    kinds = get_type_hints(of)
    fields = [(field.name, decoder(kinds[field.name]), is_optional(field)) for field in dataclasses.fields(of)]

    def decode_dataclass(value: object, place: str) -> object:
        if not isinstance(value, dict):
            raise wrong(place, f"an object ({of.__name__})", value)
        known = {}
        for name, inner, optional in fields:
            if name in value:
                known[name] = inner(value[name], f"{place}.{name}" if place else name)
            elif not optional:
                raise NotUnderstood(f"the router's answer has no {name} {f'in {place}' if place else 'at its top'}")
        return of(**known)

    return decode_dataclass


def is_optional(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
