#!/usr/bin/env python3
"""make demo-collector: three Weir routers in namespaces, traffic, a flood, losses, a crash, and the console.

Everything runs in network namespaces of its own and ends by itself. Needs root, the programs weir and weir-collector,
and chromium for the screenshots. With --json it prints one object; see docs/collector.md for its fields.
"""

import argparse
import ctypes
import gzip
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
NAME = f"weircol{os.getpid() % 100000}"
SAMPLING = 100
DROP_EVERY = 40
STREAM_RATE, STREAM_LIMIT = 1500, 30_000
FLOOD_RATE, FLOOD_LIMIT = 20_000, 160_000
VICTIM = "203.0.113.66"

COLLECTOR = """
listen: ["198.18.0.1:6344", "198.18.0.1:4739"]
listen_tcp: []
http: 127.0.0.1:8080
data: {folder}/data
exporters:
  198.18.0.11: {{name: edge1}}
  198.18.0.12: {{name: edge2}}
  198.18.0.13: {{name: edge3}}
networks: {{203.0.113.0/24: customers, 10.0.0.0/8: access}}
webhooks: ["http://127.0.0.1:8090/"]
alerts:
  flood: {{by: [DstAddr], filter: "Format = sflow", metric: packets, above: 8000, window: 2, hold: 5}}
"""

ROUTER = """
interfaces:
  access:
    device:
      driver: generator
      streams:
        - {{name: web, rate: {rate}, limit: {limit}, size: 500, source: 10.0.{n}.2-10.0.{n}.40, destination: 203.0.113.{n}, destination-port: 443, protocol: tcp}}
{flood}
    addresses: [10.0.{n}.1/24]
    sflow: true
  core:
    device: {{driver: null}}
    addresses: [198.51.100.1/24]
neighbors:
  - {{interface: core, address: 198.51.100.2, mac: 02:00:00:00:00:02}}
routes:
  - {{prefix: 203.0.113.0/24, via: 198.51.100.2}}
sflow:
  sampling-rate: {sampling}
  polling-interval: 5
  agent: 198.18.0.1{n}
  collectors: [{{address: 198.18.0.1, port: 6343}}]
ipfix:
  active-timeout: 3
  idle-timeout: 2
  interfaces: {{access: {{direction: rx}}}}
  collectors: [{{address: 198.18.0.1, port: 4739}}]
workers: {{idle: sleep}}
api: {{socket: {folder}/router{n}.sock}}
"""

FLOOD = (
    "        - {{name: flood, rate: {rate}, limit: {limit}, size: 64, source: 10.0.3.50-10.0.3.200, "
    "destination: {victim}, destination-port: 53, protocol: udp}}"
)


def say(text):
    print(text, file=sys.stderr, flush=True)


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True)


class Stage:
    """Namespaces and processes, all removed at the end."""

    def __init__(self):
        self.processes = []
        self.folder = tempfile.mkdtemp(prefix="weir-collector-demo-")

    def __enter__(self):
        self.namespace(NAME)
        ip("-n", NAME, "link", "add", "br0", "type", "bridge")
        ip("-n", NAME, "addr", "add", "198.18.0.1/24", "dev", "br0")
        ip("-n", NAME, "link", "set", "br0", "up")
        for number in (1, 2, 3):
            inside = f"{NAME}r{number}"
            self.namespace(inside)
            ip("-n", NAME, "link", "add", f"v{number}", "type", "veth", "peer", "name", "mgmt", "netns", inside)
            ip("-n", NAME, "link", "set", f"v{number}", "master", "br0", "up")
            ip("-n", inside, "addr", "add", f"198.18.0.1{number}/24", "dev", "mgmt")
            ip("-n", inside, "link", "set", "mgmt", "up")
        return self

    def namespace(self, name):
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")

    def start(self, namespace, *command, **more):
        process = subprocess.Popen(["ip", "netns", "exec", namespace, *command], **more)
        self.processes.append(process)
        return process

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for name in (NAME, f"{NAME}r1", f"{NAME}r2", f"{NAME}r3"):
            ip("netns", "del", name, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def inside(namespace, work):
    """Runs a function in a thread that entered a namespace, as its sockets belong to it."""
    def run():
        handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        if LIBC.setns(handle, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(handle)
        work()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class Relay:
    """Passes sFlow on from 6343 to the collector and drops each 40th datagram."""

    def __init__(self):
        self.passed = self.dropped = 0

    def run(self):
        receive = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receive.bind(("198.18.0.1", 6343))
        send = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while True:
            data, _ = receive.recvfrom(65536)
            if (self.passed + self.dropped) % DROP_EVERY == DROP_EVERY - 1:
                self.dropped += 1
            else:
                send.sendto(data, ("198.18.0.1", 6344))
                self.passed += 1


class Webhook:
    """Notes when the first alert arrives."""

    def __init__(self):
        self.events = []

    def run(self):
        events = self.events

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                events.append((time.time(), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        http.server.HTTPServer(("127.0.0.1", 8090), Handler).serve_forever()


class Api:
    def __init__(self):
        self.answer = None

    def get(self, path, raw=False):
        result = []

        def work():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:8080{path}", timeout=40) as response:
                    body = response.read()
                    result.append(body if raw else json.loads(body))
            except OSError as error:
                result.append(error)

        inside(NAME, work).join()
        if isinstance(result[0], OSError):
            raise result[0]
        return result[0]

    def query(self, **parameters):
        line = urllib.parse.urlencode({"from": "-15m", "points": 0, **parameters})
        return self.get(f"/api/v1/query?{line}")

    def wait(self, what, holds, seconds):
        end = time.time() + seconds
        while time.time() < end:
            try:
                health = self.get("/api/v1/health")
                if holds(health):
                    return health
            except OSError:
                pass
            time.sleep(0.3)
        raise SystemExit(f"demo: waited {seconds} s for {what}: it did not happen")


def start_collector(stage, program):
    return stage.start(NAME, program, "run", "--config", f"{stage.folder}/collector.yaml", stdout=subprocess.DEVNULL)


def screenshots(stage, folder):
    """The console in headless chromium: how many errors its console reported, and the pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        say("skipped: chromium is not installed, no screenshots")
        return None, []
    errors, pictures = 0, []
    end = int(time.time())
    period = f"from={end - 90}&to={end}"
    # Not live: its stream never ends, and virtual time would wait for it. console/test/check.mjs opens it.
    pages = [
        ("explorer", f"/?v=1&q=ExporterName,DstAddr&m=packets&{period}", []),
        ("bands", f"/?v=1&q=ExporterName&m=packets&g=line&f=Format%20%3D%20sflow&{period}", []),
        ("dark", f"/?v=1&q=SrcAddr&{period}", ["--blink-settings=preferredColorScheme=0"]),
        ("heatmap", f"/?v=1&q=DstAddr&m=packets&g=heatmap&{period}", []),
        ("sankey", f"/?v=1&q=ExporterName,DstNet,DstAddr&m=packets&g=sankey&{period}", []),
        ("drops", f"/?v=1&p=drops&{period}", []),
        ("exporters", "/?v=1&p=exporters", []),
        ("health", "/?v=1&p=health", []),
        ("alerts", "/?v=1&p=alerts", []),
    ]
    for name, path, more in pages:
        picture = os.path.join(folder, f"console-{name}.png")
        process = stage.start(
            NAME, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--window-size=1280,900",
            "--virtual-time-budget=8000", f"--user-data-dir={stage.folder}/chromium", f"--screenshot={picture}", *more,
            f"http://127.0.0.1:8080{path}", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        try:
            _, log = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            log = "CONSOLE error: chromium did not end"
        lines = [line for line in log.splitlines() if "CONSOLE" in line]
        for line in lines:
            say(line)
        errors += len(lines)
        if os.path.exists(picture):
            pictures.append(picture)
    return errors, pictures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default="weir")
    parser.add_argument("--collector", default="weir-collector")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--screenshots", default=".", help="folder of the screenshots")
    arguments = parser.parse_args()
    os.makedirs(arguments.screenshots, exist_ok=True)
    api, relay, webhook = Api(), Relay(), Webhook()
    with Stage() as stage:
        with open(f"{stage.folder}/collector.yaml", "w") as file:
            file.write(COLLECTOR.format(folder=stage.folder))
        inside(NAME, relay.run)
        inside(NAME, webhook.run)
        collector = start_collector(stage, arguments.collector)
        api.wait("the collector", lambda _: True, 30)
        say("collector is up; three routers forward traffic, the third has a flood")
        routers = []
        flood_begin = 0
        for number in (1, 2, 3):
            if number == 3:
                # Traffic of the others first, so that the graph shows the flood beginning.
                time.sleep(8)
            flood = FLOOD.format(rate=FLOOD_RATE, limit=FLOOD_LIMIT, victim=VICTIM) if number == 3 else ""
            path = f"{stage.folder}/router{number}.yaml"
            with open(path, "w") as file:
                file.write(ROUTER.format(n=number, rate=STREAM_RATE, limit=STREAM_LIMIT, flood=flood, sampling=SAMPLING, folder=stage.folder))
            flood_begin = time.time()
            routers.append(stage.start(f"{NAME}r{number}", arguments.weir, "run", "-c", path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            time.sleep(1)
            if routers[-1].poll() is not None:
                raise SystemExit(f"demo: router {number} ended: {routers[-1].stderr.read()}")
        sent = 3 * STREAM_LIMIT + FLOOD_LIMIT
        ipfix = lambda: api.query(metric="packets", filter="Format = ipfix")["rows"][-1]["total"]
        end = time.time() + 60
        while ipfix() < sent and time.time() < end:
            time.sleep(1)
        # Routers export what they still hold when they end.
        for router in routers:
            router.send_signal(signal.SIGTERM)
        for router in routers:
            router.wait(20)
        time.sleep(2)
        health = api.get("/api/v1/health")
        health = api.wait("durable rows", lambda h: h["store"]["durable"] == h["rows"], 20)
        expected = health["rows"]
        time.sleep(6)
        coverage = api.query()["coverage"]
        errors, pictures = screenshots(stage, arguments.screenshots)
        say(f"{expected} rows; the collector is killed (SIGKILL) and started again")
        collector.kill()
        collector.wait()
        start_collector(stage, arguments.collector)
        api.wait("the collector", lambda _: True, 30)
        answer = api.query(metric="packets", filter="Format = sflow")
        total = answer["rows"][-1]
        estimated, band = total["total"], total["band"]
        raised = [t for t, event in webhook.events if event["status"] == "firing" and event["key"].get("DstAddr") == VICTIM]
        result = {
            "packets_sent": sent,
            "packets_estimated": round(estimated),
            "band_percent": round(100 * (band[1] - band[0]) / 2 / estimated, 2),
            "ipfix_packets": round(ipfix()),
            "loss_made_percent": round(100 * relay.dropped / (relay.dropped + relay.passed), 2),
            "loss_shown_percent": round(100 - next(f["percent"] for f in coverage["formats"] if f["format"] == "sflow"), 2),
            "alert_seconds": round(min(raised) - flood_begin, 1) if raised else None,
            "rows_after_kill": api.query()["stored_rows"],
            "rows_expected": expected,
            "console_errors": errors,
            "first_load_kb": round(sum(len(gzip.compress(api.get(p, raw=True))) for p in ("/", "/console.js", "/console.css")) / 1000, 1),
            "screenshots": pictures,
        }
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:20} {value}")
    good = (
        result["ipfix_packets"] == sent and result["rows_after_kill"] == expected and not result["console_errors"] and raised
    )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
