"""The client alone, and in front of servers that misbehave."""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import weir
from weir import types
from weir.decode import decode
from weir.wire import segment, tcp_target

VERSION = {"version": "9.9.9", "pid": 1, "started": 2, "uptime": 3, "workers": 4}
Answer = Callable[[str, socket.socket], None]


class FakeRouter:
    """A server that says who it is when asked, and answers all else as a test wants."""

    def __init__(self, answer: Answer) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name, "weir.sock"))
        self.asked: list[str] = []
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    head += piece
                if head.startswith(b"STOP"):
                    return
                request = head.split(b"\r\n")[0].decode()
                self.asked.append(request)
                with contextlib.suppress(OSError):
                    if request.startswith("GET /v1/version "):
                        reply(connection, 200, VERSION)
                    else:
                        self._answer(request, connection)

    def stop(self) -> None:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self.path)
            last.sendall(b"STOP\r\n\r\n")
        self._thread.join()
        self._listener.close()
        self.folder.cleanup()


def reply(connection: socket.socket, status: int, body: object) -> None:
    text = json.dumps(body).encode()
    connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(text)) + text)


@contextlib.contextmanager
def fake(answer: Answer, timeout: float | None = None) -> Iterator[tuple[FakeRouter, weir.Router]]:
    server = FakeRouter(answer)
    try:
        with weir.connect(server.path, timeout=timeout) as router:
            yield server, router
    finally:
        server.stop()


class Decoding(unittest.TestCase):
    def test_a_newer_router_is_understood(self) -> None:
        traffic = {"packets": 5, "bytes": 6, "unicast": 1, "multicast": 2, "broadcast": 2, "anycast": 7}
        self.assertEqual(decode(types.Traffic, traffic).packets, 5)
        link = {"time": "2026-01-02T03:04:05.6Z", "interface": "xe0", "index": 1, "link": "sideways", "speed": 0}
        event = decode(types.LinkEvent, link)
        self.assertEqual(event.time, datetime(2026, 1, 2, 3, 4, 5, 600_000, UTC))
        self.assertEqual(event.link, "sideways")

    def test_what_is_absent_is_none_or_empty(self) -> None:
        version = decode(types.Version, VERSION)
        self.assertIsNone(version.commit)
        error = decode(types.ApiError, {"code": "conflict", "message": "m", "help": ""})
        self.assertEqual((error.findings, error.lock), ([], None))

    def test_what_is_wrong_is_reported_with_its_place(self) -> None:
        cases: list[tuple[object, str]] = [
            ([], "an object (Errors)"),
            ({}, "no errors"),
            ({"errors": [{}]}, "no node in errors[0]"),
            ({"errors": 3}, "3 in errors, not a list"),
            ({"errors": [{"node": True}]}, "True in errors[0].node, not a text"),
        ]
        for value, message in cases:
            with self.subTest(value), self.assertRaises(weir.NotUnderstood) as caught:
                decode(types.Errors, value)
            self.assertIn(message, str(caught.exception))
        for count in ["1", 1.5, None, True]:
            with self.subTest(count), self.assertRaises(weir.NotUnderstood):
                decode(types.Totals, {"drops": {"no-route": count}})


class Addresses(unittest.TestCase):
    def test_hosts_and_ports_are_distinguished(self) -> None:
        cases = [("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:8443", "::1", 8443), ("localhost:1", "localhost", 1)]
        for address, host, port in cases:
            target = tcp_target(address, None, None, None, False)
            self.assertEqual((target.host, target.port), (host, port))
        for address in ["", "localhost", ":80", "host:", "host:x"]:
            with self.subTest(address), self.assertRaises(ValueError):
                tcp_target(address, None, None, None, True)

    def test_a_token_never_leaves_the_machine_without_tls(self) -> None:
        for address in ["192.0.2.1:80", "router.example:80", "[2001:db8::1]:80"]:
            with self.subTest(address), self.assertRaises(ValueError):
                weir.connect(address=address, token="secret", tls=False)

    def test_a_router_is_at_one_place(self) -> None:
        with self.assertRaises(ValueError):
            weir.connect("/run/weir.sock", address="localhost:1")

    def test_names_in_paths_are_escaped(self) -> None:
        self.assertEqual(segment("a/b ?%é"), "a%2Fb%20%3F%25%C3%A9")


class Misbehaving(unittest.TestCase):
    def test_nobody_there(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "weir.sock")
            with self.assertRaisesRegex(weir.Unreachable, "no weir answers on"):
                weir.connect(path)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
            with self.assertRaisesRegex(weir.Unreachable, "no weir answers on"):
                weir.connect(path)

    def test_silence_is_late(self) -> None:
        def silent(_: str, connection: socket.socket) -> None:
            connection.recv(1)

        with fake(silent, timeout=0.2) as (_, router):
            with self.assertRaises(weir.Late):
                router.show_totals()

    def test_a_trickle_is_late_too(self) -> None:
        def trickle(_: str, connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n")
            for _number in range(1000):
                connection.sendall(b" ")
                time.sleep(0.02)

        with fake(trickle, timeout=0.3) as (_, router):
            begin = time.monotonic()
            with self.assertRaises(weir.Late):
                router.show_totals()
            self.assertLess(time.monotonic() - begin, 5)

    def test_what_is_no_answer_is_an_error(self) -> None:
        cases: list[tuple[bytes, type[weir.Error]]] = [
            (b"", weir.Unreachable),
            (b"SSH-2.0-x\r\n\r\n", weir.Unreachable),
            (b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{", weir.Unreachable),
            (b"HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\n{", weir.NotUnderstood),
            (b"HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\n[]", weir.NotUnderstood),
            (b"HTTP/1.1 502 X\r\nContent-Length: 6\r\n\r\n<html>", weir.NotUnderstood),
        ]
        for text, kind in cases:


            def answer(_: str, connection: socket.socket, text: bytes = text) -> None:
                connection.sendall(text)

            with self.subTest(text), fake(answer) as (_, router):
                with self.assertRaises(kind):
                    router.show_totals()

    def test_refusals_are_distinguished(self) -> None:
        finding = {"severity": "error", "file": "f", "line": 1, "column": 2, "width": 3}
        finding |= {"path": "p", "message": "m", "help": "", "rendered": "error: m\n --> f:1:2\n"}
        lock = {"reason": "confirm-pending", "author": "ann", "since": "2026-01-02T03:04:05Z", "pid": 7}
        errors: list[tuple[int, str, dict[str, Any], type[weir.Refused]]] = [
            (400, "bad-request", {}, weir.Refused),
            (401, "unauthorized", {}, weir.NotAllowed),
            (403, "forbidden", {}, weir.NotAllowed),
            (404, "not-found", {}, weir.NotFound),
            (409, "conflict", {"lock": lock}, weir.Conflict),
            (422, "invalid", {"findings": [finding]}, weir.Invalid),
            (501, "not-available", {}, weir.NotAvailable),
            (418, "teapot", {}, weir.Refused),
        ]
        for status, code, more, kind in errors:
            body = {"error": {"code": code, "message": "not so", "help": "thus", **more}}

            def answer(_: str, connection: socket.socket, status: int = status, body: object = body) -> None:
                reply(connection, status, body)

            with self.subTest(code), fake(answer) as (_, router):
                with self.assertRaises(weir.Refused) as caught:
                    router.sflow.set(sampling_rate=1)
                error = caught.exception
                self.assertIs(type(error), kind)
                self.assertEqual((error.status, error.code), (status, code))
                self.assertEqual((error.message, error.help), ("not so", "thus"))
                self.assertIn("not so (thus)", str(error))
                if error.lock is not None:
                    self.assertEqual((error.lock.author, error.lock.pid, error.lock.uid), ("ann", 7, None))
                if error.findings:
                    self.assertIn(" --> f:1:2", str(error))

    def test_pages_become_one_list(self) -> None:
        def page(request: str, connection: socket.socket) -> None:
            number = 2 if "after=2%25a+b" in request else 1
            neighbor = {"interface": "a b", "address": f"192.0.2.{number}", "state": "reachable"}
            more = {"next": "2%a b"} if number == 1 else {}
            reply(connection, 200, {"neighbors": [neighbor], **more})

        with fake(page) as (server, router):
            self.assertEqual([one.address for one in router.neighbors("a b")], ["192.0.2.1", "192.0.2.2"])
            self.assertEqual(server.asked[1], "GET /v1/neighbors?interface=a+b&limit=10000 HTTP/1.1")


class Streams(unittest.TestCase):
    HEAD = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"
    LOST = b'event: lost\r\ndata: {"event": "lost",\ndata: "topic": "log", "count": 3}\n\n'

    def test_events_come_whole_however_they_were_cut(self) -> None:
        text = b": weir\nretry: 1000\n\n" + self.LOST + b'event: new\ndata: {"event":"new"}\n\n' + self.LOST
        for size in [1, 7, 1000]:

            def answer(_: str, connection: socket.socket, size: int = size) -> None:
                connection.sendall(self.HEAD)
                for start in range(0, len(text), size):
                    piece = text[start : start + size]
                    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                connection.sendall(b"0\r\n\r\n")

            with self.subTest(size), fake(answer) as (server, router):
                events = list(router.events("log", "link", interval=0.25, interface="xe0"))
                self.assertEqual(events, [types.LostEvent(topic="log", count=3)] * 2)
                wanted = "GET /v1/events?topics=log%2Clink&interval_ms=250&interface=xe0 HTTP/1.1"
                self.assertEqual(server.asked[-1], wanted)

    def test_another_thread_can_end_the_wait(self) -> None:
        def answer(_: str, connection: socket.socket) -> None:
            connection.sendall(self.HEAD)
            connection.recv(1)

        with fake(answer) as (_, router):
            events = router.events()
            threading.Timer(0.2, events.close).start()
            begin = time.monotonic()
            self.assertEqual(list(events), [])
            self.assertLess(time.monotonic() - begin, 5)

    def test_a_stream_that_breaks_says_so(self) -> None:
        def answer(_: str, connection: socket.socket) -> None:
            connection.sendall(self.HEAD + b"40\r\n" + self.LOST[:20])

        with fake(answer) as (_, router), self.assertRaises(weir.Unreachable):
            list(router.events())


if __name__ == "__main__":
    unittest.main()
