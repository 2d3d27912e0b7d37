"""Long lists: asked for page by page, returned as one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from . import types
from .operations import Operations

PAGE = 10_000
"""Entries that a page is asked to have: the most that a router gives."""

T = TypeVar("T")


class Page(Protocol):
    """A part of a list."""

    @property
    def next(self) -> str | None:
        """Where the next part begins."""


P = TypeVar("P", bound=Page)


def entries(ask: Callable[[str | None], P], of: Callable[[P], list[T]]) -> Iterator[T]:
    """All entries of all pages; a page is asked for when the one before it is read."""
    after: str | None = None
    while True:
        page = ask(after)
        yield from of(page)
        if page.next is None:
            return
        after = page.next


def all_interfaces(operations: Operations) -> Iterator[types.Interface]:
    """All interfaces, in the order of their index."""
    return entries(lambda after: operations.get_interfaces(limit=PAGE, after=after), lambda page: page.interfaces)


def all_stations(operations: Operations, bridge: str | None) -> Iterator[types.L2Station]:
    """All stations of bridge domains, or those of one domain."""
    return entries(
        lambda after: operations.get_l2fib(bridge=bridge, limit=PAGE, after=after),
        lambda page: page.stations,
    )


def all_neighbors(operations: Operations, interface: str | None) -> Iterator[types.Neighbor]:
    """All neighbours, or those of an interface."""
    return entries(
        lambda after: operations.get_neighbors(interface=interface, limit=PAGE, after=after),
        lambda page: page.neighbors,
    )


def all_adjacencies(operations: Operations, interface: str | None) -> Iterator[types.AdjacencyReply]:
    """All adjacencies, or those of an interface."""
    return entries(
        lambda after: operations.get_adjacencies(interface=interface, limit=PAGE, after=after),
        lambda page: page.adjacencies,
    )


def all_routes(
    operations: Operations, prefix: str | None, table: int | None, family: str | None
) -> Iterator[types.Route]:
    """All routes, or those of a prefix or a table."""
    return entries(
        lambda after: operations.get_routes(prefix=prefix, table=table, family=family, limit=PAGE, after=after),
        lambda page: page.routes,
    )


def all_acls(operations: Operations, acl: str | None, interface: str | None) -> types.AclsPage:
    """Bindings and all terms, as one page."""
    first = operations.get_acls(acl=acl, interface=interface, limit=PAGE)
    terms = list(first.terms)
    after = first.next
    while after is not None:
        page = operations.get_acls(acl=acl, interface=interface, limit=PAGE, after=after)
        terms += page.terms
        after = page.next
    return dataclasses.replace(first, terms=terms, next=None)
