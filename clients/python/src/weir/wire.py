"""HTTP to a router, over its Unix socket or over TCP.

Each question has a connection of its own, so that a client holds nothing in the router between two of
them. Answers are bounded in size, and a router that is silent for too long is given up.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from . import types
from .decode import decode
from .errors import Error, Late, NotUnderstood, Unreachable, refusal

T = TypeVar("T")
Query = Mapping[str, str | int | bool | Sequence[str] | None]

PATIENCE = 20.0
"""Seconds to wait for an answer: longer than a router takes at most."""
LONG_PATIENCE = 150.0
"""The same for what looks at or changes a configuration."""
SILENCE = 60.0
"""Seconds without a word after which a stream of events has lost its router, which gives a sign of life each 15 s."""
LARGEST_REPLY = 1 << 28
"""Bytes of an answer: more than any page has."""
LONGEST_EVENT = 64 << 20
"""Bytes of an event: counters of 10,000 interfaces have 5 MB."""


def segment(value: str | int) -> str:
    """A value as a part of a path."""
    return quote(str(value), safe="")


@dataclass(frozen=True)
class UnixTarget:
    """A router on this machine."""

    path: str

    def __str__(self) -> str:
        return self.path

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        return _UnixConnection(self.path, timeout)


@dataclass(frozen=True)
class TcpTarget:
    """A router elsewhere."""

    host: str
    port: int
    tls: ssl.SSLContext | None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("weir", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def tcp_target(address: str, ca: Path | None, certificate: Path | None, key: Path | None, tls: bool) -> TcpTarget:
    """The router at `host:port`. Without TLS only on this machine: routers listen nowhere else without."""
    host, colon, port = address.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdecimal():
        raise ValueError(f"{address!r} is no address: it has the form HOST:PORT")
    if tls:
        context = ssl.create_default_context(cafile=ca)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return TcpTarget(host, int(port), context)
    if not is_loopback(host):
        raise ValueError(f"{host} is not on this machine: a token would be readable on its way without TLS")
    return TcpTarget(host, int(port), None)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Wire:
    """Asks one router."""

    def __init__(self, target: UnixTarget | TcpTarget, token: str | None, timeout: float | None) -> None:
        self.target = target
        self._token = token
        self._timeout = timeout

    def ask(self, of: type[T], method: str, path: str, query: Query | None = None, body: object = None) -> T:
        """The answer as this type."""
        text = self.ask_text(method, path, query, body)
        try:
            value = json.loads(text)
        except ValueError as error:
            raise NotUnderstood(f"the router's answer is not JSON: {error}") from None
        return decode(of, value)

    def ask_text(self, method: str, path: str, query: Query | None = None, body: object = None) -> str:
        """The answer's text."""
        is_long = method != "GET" or path.startswith("/v1/config")
        patience = self._timeout or (LONG_PATIENCE if is_long else PATIENCE)
        deadline = time.monotonic() + patience
        connection, sock = self._open(patience)
        try:
            response = self._send(connection, method, path, query, body)
            text = self._read(sock, response, deadline)
            if response.status != 200:
                self._refuse(response.status, text)
            return text
        finally:
            connection.close()

    def stream(self, path: str, query: Query | None = None) -> EventStream:
        """An answer that comes piece by piece."""
        return EventStream(self, *self._opened("GET", path, query, None))

    def capture(self, method: str, path: str, query: Query | None = None, body: object = None) -> CaptureStream:
        """An answer that is a capture."""
        connection, sock, response = self._opened(method, path, query, body)
        # A capture of nothing says nothing, for as long as it likes.
        sock.settimeout(None)
        return CaptureStream(self, connection, sock, response)

    def _opened(
        self, method: str, path: str, query: Query | None, body: object
    ) -> tuple[http.client.HTTPConnection, socket.socket, http.client.HTTPResponse]:
        connection, sock = self._open(self._timeout or SILENCE)
        try:
            response = self._send(connection, method, path, query, body)
            if response.status != 200:
                deadline = time.monotonic() + (self._timeout or PATIENCE)
                self._refuse(response.status, self._read(sock, response, deadline))
        except BaseException:
            connection.close()
            raise
        return connection, sock, response

    def _open(self, timeout: float) -> tuple[http.client.HTTPConnection, socket.socket]:
        """A connection, and its socket, which the connection forgets when the router says that it closes."""
        connection = self.target.connection(timeout)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise self.broken(error) from error
        return connection, connection.sock

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, query: Query | None, body: object
    ) -> http.client.HTTPResponse:
        headers = {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        pairs = {key: _written(value) for key, value in (query or {}).items() if value is not None}
        place = f"{path}?{urlencode(pairs)}" if pairs else path
        try:
            # A router that refuses may do so, and close, before it has all that it refuses.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, place, content, headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self.broken(error) from error

    def _read(self, sock: socket.socket, response: http.client.HTTPResponse, deadline: float) -> str:
        pieces = bytearray()
        try:
            while piece := response.read1(1 << 16):
                pieces += piece
                if len(pieces) > LARGEST_REPLY:
                    raise NotUnderstood("the router's answer does not end")
                if (left := deadline - time.monotonic()) <= 0:
                    raise TimeoutError
                sock.settimeout(left)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
        except (OSError, http.client.HTTPException) as error:
            raise self.broken(error) from error
        return pieces.decode("utf-8", "replace")

    def _refuse(self, status: int, text: str) -> None:
        try:
            body = decode(types.ErrorBody, json.loads(text))
        except (ValueError, NotUnderstood):
            raise NotUnderstood(f"the router answers with status {status} and no error of the API") from None
        raise refusal(status, body.error)

    def broken(self, error: Exception) -> Error:
        """What an exception of the connection means."""
        if isinstance(error, Error):
            return error
        if isinstance(error, TimeoutError):
            return Late(f"the weir on {self.target} does not answer in time")
        if isinstance(error, FileNotFoundError | ConnectionRefusedError):
            return Unreachable(f"no weir answers on {self.target} (is it running?)")
        if isinstance(error, PermissionError):
            return Unreachable(f"not allowed to talk to the weir on {self.target} (try sudo, or join its group)")
        return Unreachable(f"cannot talk to the weir on {self.target}: {error or type(error).__name__}")


def _written(value: str | int | bool | Sequence[str]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    return ",".join(value)


class CaptureStream:
    """A capture as pcapng, in pieces as they come; `number` is the router's for it."""

    def __init__(
        self,
        wire: Wire,
        connection: http.client.HTTPConnection,
        sock: socket.socket,
        response: http.client.HTTPResponse,
    ) -> None:
        self._wire = wire
        self._connection = connection
        self._socket = sock
        self._response = response
        self._closed = False
        self._reading = threading.Lock()
        self.number = int(response.getheader("Weir-Capture") or 0)

    def close(self) -> None:
        """Goes away, which ends the capture; also while another thread waits for its next piece."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._reading:
            self._response.close()
            self._connection.close()

    def __enter__(self) -> CaptureStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._piece():
            yield piece
        self.close()

    def _piece(self) -> bytes:
        try:
            with self._reading:
                if self._closed or self._response.isclosed():
                    return b""
                return self._response.read1(1 << 16)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if self._closed:
                return b""
            self.close()
            raise self._wire.broken(error) from error


class EventStream:
    """The data of server-sent events (HTML 9.2), one after the other, until the router stops."""

    def __init__(
        self,
        wire: Wire,
        connection: http.client.HTTPConnection,
        sock: socket.socket,
        response: http.client.HTTPResponse,
    ) -> None:
        self._wire = wire
        self._connection = connection
        self._socket = sock
        self._response = response
        self._closed = False
        self._reading = threading.Lock()

    def close(self) -> None:
        """Ends the stream, also while another thread waits for its next event."""
        self._closed = True
        # That wakes whoever reads; what they read from is closed when they have left it.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with self._reading:
            self._response.close()
            self._connection.close()

    def __iter__(self) -> Iterator[Any]:
        data: list[str] = []
        size = 0
        while line := self._line(LONGEST_EVENT - size):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text.startswith("data:"):
                data.append(text[5:].removeprefix(" "))
                size += len(line)
            elif not text and data:
                try:
                    yield json.loads("\n".join(data))
                except ValueError as error:
                    raise NotUnderstood(f"an event is not JSON: {error}") from None
                data, size = [], 0
        self.close()

    def _line(self, most: int) -> bytes:
        """A line with its end; nothing when the stream has ended."""
        try:
            with self._reading:
                if self._closed or self._response.isclosed():
                    return b""
                line = self._response.readline(most + 1)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # A stream that is closed meanwhile has ended, however the reader notices.
            if self._closed:
                return b""
            self.close()
            raise self._wire.broken(error) from error
        if len(line) > most:
            self.close()
            raise NotUnderstood("an event does not end")
        return line
