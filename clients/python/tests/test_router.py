"""The client and a running router, whose socket the environment names.

The router has two interfaces: `source` makes packets and is sampled, `sink` swallows them; its
configuration is the file that the environment names. `cargo test -p weir --test python_client` starts
it. Each test leaves the router as it was.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import weir

SOCKET = os.environ.get("WEIR_TEST_SOCKET")
FILE = Path(os.environ.get("WEIR_TEST_CONFIG", ""))
PACKAGE = Path(__file__).resolve().parent.parent
PATIENCE = 30.0


def eventually(is_so: Callable[[], object]) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {PATIENCE} s")
        time.sleep(0.05)


@unittest.skipUnless(SOCKET, "no router: run it by `cargo test -p weir --test python_client`")
class RouterTest(unittest.TestCase):
    def setUp(self) -> None:
        self.router = weir.connect(SOCKET)
        self.addCleanup(self.router.close)
        self.addCleanup(self.router.config.apply, FILE)


class Document(RouterTest):
    def test_types_and_operations_are_those_of_the_routers_document(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(self.router.openapi(), file)
            file.flush()
            check = [] if os.environ.get("UPDATE_GOLDEN") else ["--check"]
            command = [sys.executable, str(PACKAGE / "generate.py"), *check, file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        help = "UPDATE_GOLDEN=1 cargo test -p weir --test python_client"
        self.assertEqual(done.returncode, 0, f"{done.stdout}{done.stderr} (write them again: {help})")

    def test_every_operation_is_used_by_the_client(self) -> None:
        files = [path for path in (PACKAGE / "src/weir").glob("*.py") if path.name != "operations.py"]
        written = "".join(path.read_text() for path in files)
        named = [
            operation["operationId"]
            for methods in self.router.openapi()["paths"].values()
            for operation in methods.values()
        ]
        # The metrics have two paths, one for people and one for Prometheus.
        unused = {name for name in named if f"operations.{name}(" not in written} - {"get_metrics_at_root"}
        self.assertGreater(len(named), 30)
        self.assertEqual(unused, set())


class Flows(RouterTest):
    def test_meter_and_flows_are_shown(self) -> None:
        flows = self.router.flows
        settings = flows.show().settings
        self.assertEqual((settings.active_timeout, settings.idle_timeout), (60, 15))
        self.assertEqual(flows.table(prefix="192.0.2.0/24", port=53, limit=7), [])
        self.assertEqual(flows.top("packets"), [])
        with self.assertRaises(weir.Refused):
            flows.table(prefix="192.0.2.0/33")


class Sflow(RouterTest):
    def test_rate_polling_and_header_bytes_are_set(self) -> None:
        sflow = self.router.sflow
        done = sflow.set(sampling_rate=1000, polling_interval_seconds=30, header_bytes=128)
        self.assertIn("sampling-rate 10 -> 1000", " ".join(step.text for step in done.steps))
        settings = sflow.settings()
        self.assertEqual((settings.sampling_rate, settings.polling_interval, settings.header_bytes), (1000, 30, 128))
        sflow.set(header_bytes=64)
        settings = sflow.settings()
        self.assertEqual((settings.sampling_rate, settings.polling_interval, settings.header_bytes), (1000, 30, 64))
        self.assertEqual(sflow.set(header_bytes=64).steps, [])
        sflow.set(header_bytes=weir.DEFAULT)
        self.assertEqual(sflow.settings().header_bytes, 128)

    def test_interfaces_are_enabled_disabled_and_dumped(self) -> None:
        sflow = self.router.sflow

        def names() -> list[str]:
            return [one.interface for one in sflow.interfaces()]

        self.assertEqual(names(), ["source"])
        sflow.enable("sink")
        self.assertEqual(sorted(names()), ["sink", "source"])
        self.assertTrue(self.router.interface("sink").sflow)
        sflow.disable("source")
        sflow.disable("sink")
        self.assertEqual(names(), [])
        sflow.enable("source")
        self.assertEqual(names(), ["source"])

    def test_samples_reach_the_collector(self) -> None:
        shown = self.router.sflow.show
        before = shown()
        eventually(lambda: shown().samples_sent > before.samples_sent + 100)
        eventually(lambda: shown().collectors[0].sent > before.collectors[0].sent)
        after = shown()
        self.assertEqual(after.collectors[0].errors, 0)
        self.assertEqual(self.router.sflow.interfaces()[0].index, self.router.interface("source").index)
        self.assertGreater(after.workers[0].samples_taken, before.workers[0].samples_taken)
        # One in ten, on the average.
        (source,) = self.router.sflow.interfaces()
        pool, samples = source.pool, source.samples
        self.assertTrue(5 < pool / samples < 20, (pool, samples))
        self.router.sflow.set(sampling_rate=0)

        def taken_in_a_while() -> int:
            before = shown().workers[0].samples_taken
            time.sleep(0.5)
            return shown().workers[0].samples_taken - before

        eventually(lambda: taken_in_a_while() == 0)

    def test_what_is_wrong_is_refused_and_changes_nothing(self) -> None:
        before = self.router.sflow.settings()
        with self.assertRaises(weir.NotFound) as unknown:
            self.router.sflow.enable("nowhere")
        self.assertIn("source", unknown.exception.help)
        with self.assertRaises(weir.Refused) as refused:
            self.router.sflow.set(sampling_rate=-1)
        self.assertIn(refused.exception.status, (400, 422))
        with self.assertRaises(weir.Invalid) as invalid:
            self.router.sflow.set(sampling_rate=7, header_bytes=100_000)
        self.assertEqual(invalid.exception.findings[0].path, "sflow.header-bytes")
        self.assertEqual(self.router.sflow.settings(), before)


class Looking(RouterTest):
    def test_interfaces(self) -> None:
        names = [interface.name for interface in self.router.interfaces()]
        self.assertEqual(sorted(names), ["sink", "source"])
        source = self.router.interface("source")
        self.assertEqual((source.driver, source.admin, source.addresses), ("generator", "up", ["10.0.0.1/24"]))
        eventually(lambda: self.router.interface("source").rx.packets > source.rx.packets)
        with self.assertRaises(weir.NotFound):
            self.router.interface("nowhere")

    def test_an_interface_is_set(self) -> None:
        self.router.set_interface("sink", mtu=9000, description="to nowhere", state="down")
        sink = self.router.interface("sink")
        self.assertEqual((sink.mtu, sink.description, sink.admin), (9000, "to nowhere", "down"))
        self.router.set_interface("sink", mtu=weir.DEFAULT, description=weir.DEFAULT)
        sink = self.router.interface("sink")
        self.assertEqual((sink.mtu, sink.description, sink.admin), (1500, None, "down"))

    def test_routes_and_neighbors(self) -> None:
        (static,) = [route for route in self.router.routes() if route.source == "static"]
        self.assertEqual((static.prefix, static.paths[0].next_hop), ("203.0.113.0/24", "198.51.100.2"))
        self.assertEqual([route.prefix for route in self.router.routes("203.0.113.9")], ["203.0.113.0/24"])
        known = {one.address: one.mac for one in self.router.neighbors("sink")}
        self.assertEqual(known["198.51.100.2"], "02:00:00:00:00:02")

    def test_routes_are_set_and_deleted(self) -> None:
        paths = [{"next_hop": "198.51.100.2"}]
        done = self.router.change_routes(set=[{"prefix": "203.0.114.0/24", "paths": paths}, {"prefix": "10.0.0.0/8"}])
        self.assertEqual((done.set, done.refused, done.errors[0].prefix), (1, 1, "10.0.0.0/8"))
        (route,) = self.router.routes("203.0.114.0/24")
        self.assertEqual(route.source, "api")
        done = self.router.change_routes(delete=[{"prefix": "203.0.114.0/24"}])
        self.assertEqual(done.deleted, 1)

    def test_counters(self) -> None:
        self.assertEqual(self.router.show_version().pid, int(os.environ["WEIR_TEST_PID"]))
        runtime = self.router.show_runtime()
        self.assertIn("ip4-lookup", [node.name for node in runtime.workers[0].nodes])
        eventually(lambda: [drop for drop in self.router.show_errors() if drop.interface == "source"])
        self.assertEqual({port.interface for port in self.router.show_hardware().ports}, {"sink", "source"})
        self.assertEqual({queue.interface for queue in self.router.show_rx_placement("sink").queues}, {"sink"})
        self.assertEqual(self.router.show_bridge_domains(), [])
        self.assertEqual(list(self.router.stations()), [])
        self.assertEqual(self.router.show_bond("sink"), [])
        self.assertEqual(self.router.show_vxlan_tunnel("sink"), [])
        self.assertEqual(self.router.show_memif("sink"), [])
        self.assertEqual(self.router.show_acl().bindings, [])
        self.assertGreater(self.router.show_fib_summary().adjacencies, 0)
        self.assertGreater(self.router.show_buffers()[0].buffers, 0)
        self.assertGreater(self.router.show_totals().packets_in, 0)
        begin = time.monotonic()
        self.router.clear_runtime()
        self.router.clear_errors()
        self.router.clear_interfaces()
        self.assertLess(self.router.show_runtime().seconds, time.monotonic() - begin + 0.1)
        self.assertIn("\n# EOF\n", self.router.metrics())

    def test_traces(self) -> None:
        self.addCleanup(self.router.trace.clear)
        self.router.trace.add(node="ip4-lookup", count=3)
        eventually(lambda: len(self.router.trace.show().packets) == 3)
        steps = self.router.trace.show().packets[0].steps
        self.assertEqual(steps[0].node, "ip4-lookup")
        self.router.trace.clear()
        self.assertEqual(self.router.trace.show().packets, [])

    def test_log(self) -> None:
        lines = self.router.show_log(level="info")
        self.assertTrue(any("configuration" in line.message for line in lines), lines)
        self.assertEqual(self.router.show_log(level="error"), [])

    def test_why(self) -> None:
        why = self.router.why("192.0.2.1", "240.0.0.1", protocol="tcp", port=443, interface="source")
        self.assertEqual((why.outcome, why.interface), ("dropped", "source"))
        self.assertTrue(why.reason and why.meaning and why.steps)
        with self.assertRaises(weir.Refused):
            self.router.why("192.0.2.1", "2001:db8::1", interface="source")

    def test_captures(self) -> None:
        # Section header, interfaces, packets, statistics: the blocks of pcapng.
        with self.router.capture(rx=True, interface="source", packets=3) as capture:
            whole = b"".join(capture)
        kinds, rest = [], whole
        while rest:
            kinds.append(int.from_bytes(rest[:4], "little"))
            rest = rest[int.from_bytes(rest[4:8], "little") :]
        self.assertEqual(kinds, [0x0A0D0D0A, 1, 6, 6, 6, 5])
        with self.router.capture(drop=True) as capture:
            next(iter(capture))
            (running,) = [one for one in self.router.captures() if one.number == capture.number]
            self.assertTrue(running.drop and not running.rx)
            self.router.end_capture(capture.number)
            self.assertTrue(all(capture))
        eventually(lambda: not self.router.captures())
        with self.assertRaises(weir.NotFound):
            self.router.capture(drop=True, reasons=["nonsense"])
        with self.assertRaises(weir.NotFound):
            self.router.end_capture(capture.number)

    def test_events(self) -> None:
        with self.router.events("counters", "config", interval=0.1) as events:
            first = next(event for event in events if isinstance(event, weir.types.CountersEvent))
            self.assertEqual({one.name for one in first.interfaces}, {"sink", "source"})
            self.router.sflow.set(sampling_rate=500)
            change = next(event for event in events if isinstance(event, weir.types.ConfigEvent))
            self.assertEqual(change.what, "applied")


class Configuration(RouterTest):
    def test_what_runs_is_dumped_and_planned_again(self) -> None:
        dumped = self.router.config.dump()
        self.assertEqual(self.router.config.plan(dumped).steps, [])
        self.assertEqual(self.router.config.diff(dumped), "")
        self.assertEqual(self.router.config.running()["sflow"]["sampling-rate"], 10)
        self.assertIn("properties", self.router.config.schema())

    def test_errors_have_places(self) -> None:
        checked = self.router.config.check("interfaces:\n  xe0: {mtu: small}\n")
        self.assertFalse(checked.ok)
        (finding,) = [one for one in checked.findings if one.path == "interfaces.xe0.mtu"]
        self.assertEqual((finding.line, finding.file), (2, "configuration"))
        with self.assertRaises(weir.Invalid) as caught:
            self.router.config.apply("sflow: {sampling-rate: -1}")
        self.assertIn("sampling-rate", str(caught.exception))
        self.assertTrue(self.router.config.check(FILE).ok)

    def test_a_file_is_planned_compared_and_applied(self) -> None:
        wanted = FILE.read_text().replace("sampling-rate: 10,", "sampling-rate: 20,")
        plan = self.router.config.plan(wanted)
        self.assertEqual([step.group for step in plan.steps], ["sync"])
        self.assertIn("20", self.router.config.diff(wanted))
        applied = self.router.config.apply(wanted, comment="finer")
        self.assertEqual([step.text for step in applied.steps], [step.text for step in plan.steps])
        self.assertEqual(self.router.sflow.settings().sampling_rate, 20)

    def test_history_confirmation_and_rollback(self) -> None:
        config = self.router.config
        before = next(config.history())
        wanted = FILE.read_text().replace("sampling-rate: 10,", "sampling-rate: 30,")
        applied = config.apply(wanted, comment="by the test", author="ann", confirm_seconds=600)
        self.assertIsNotNone(applied.confirm_by)
        lock = config.lock()
        assert lock is not None
        self.assertEqual((lock.reason, lock.author), ("confirm-pending", "ann"))
        with self.assertRaises(weir.Conflict) as held:
            self.router.sflow.set(sampling_rate=40)
        assert held.exception.lock is not None
        self.assertEqual(held.exception.lock.author, "ann")
        self.assertEqual(config.confirm(), applied.revision)
        newest = next(config.history())
        self.assertEqual((newest.revision, newest.comment, newest.author), (applied.revision, "by the test", "ann"))
        self.assertIn("30", config.revision(applied.revision).yaml)
        config.rollback(before.revision)
        self.assertEqual(self.router.sflow.settings().sampling_rate, 10)
        with self.assertRaises(weir.Refused):
            config.rollback(1 << 40)
        revisions = [one.revision for one in config.history()]
        self.assertEqual(revisions, sorted(revisions, reverse=True))


class Guide(RouterTest):
    """The examples of docs/python.md, with the names of this router."""

    def examples(self) -> list[str]:
        guide = (PACKAGE.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
        return re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)

    def run_example(self, text: str) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(text, "docs/python.md", "exec"), {"router": self.router, "weir": weir})
        return said.getvalue()

    def test_its_examples_do_what_they_say(self) -> None:
        first, configuration, events = self.examples()
        with mock.patch.dict(os.environ, {"WEIR_SOCKET": str(SOCKET)}):
            said = self.run_example(first.replace("xe0", "sink"))
        self.assertIn("sink 0 0", said)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(FILE.read_text().replace("sampling-rate: 10,", "sampling-rate: 50,"))
            file.flush()
            said = self.run_example(configuration.replace("weir.yaml", file.name))
        self.assertRegex(said, r"(?s)sync .*50.* second uplink")
        self.assertEqual(self.router.sflow.settings().sampling_rate, 1000)
        threading.Timer(0.5, self.router.close).start()
        self.assertRegex(self.run_example(events), r"^\d+\n")


class Tcp(RouterTest):
    def setUp(self) -> None:
        super().setUp()
        self.address = os.environ["WEIR_TEST_ADDRESS"]
        self.token = os.environ["WEIR_TEST_TOKEN"]
        self.papers = Path(os.environ["WEIR_TEST_PAPERS"])
        self.ca = self.papers / "router.pem"

    def test_a_token_may_look(self) -> None:
        with weir.connect(address=self.address, ca=self.ca, token=self.token) as router:
            self.assertEqual(router.show_version().pid, self.router.show_version().pid)
            with router.events("counters", interval=0.1) as events:
                self.assertIsInstance(next(events), weir.types.CountersEvent)
            with self.assertRaises(weir.NotAllowed) as refused:
                router.sflow.enable("sink")
            self.assertEqual((refused.exception.code, refused.exception.status), ("forbidden", 403))
        self.assertFalse(self.router.interface("sink").sflow)

    def test_a_certificate_may_change(self) -> None:
        paper, key = self.papers / "client.pem", self.papers / "client.key"
        with weir.connect(address=self.address, ca=self.ca, certificate=paper, key=key) as router:
            router.sflow.enable("sink")
        self.assertTrue(self.router.interface("sink").sflow)

    def test_strangers_are_refused_on_both_sides(self) -> None:
        for token in (None, "wrong"):
            with self.assertRaises(weir.NotAllowed) as refused:
                weir.connect(address=self.address, ca=self.ca, token=token)
            self.assertEqual(refused.exception.code, "unauthorized")
        with self.assertRaisesRegex(weir.Unreachable, "certificate verify failed"):
            weir.connect(address=self.address, token=self.token)
        with self.assertRaisesRegex(weir.Unreachable, "certificate verify failed"):
            weir.connect(address=self.address.replace("localhost", "127.0.0.1"), ca=self.ca, token=self.token)


if __name__ == "__main__":
    unittest.main()
