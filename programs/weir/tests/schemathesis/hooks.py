"""Data that reaches the router behind its API: names that exist, configurations that could be applied.

Half of what is made up stays as it is; the other half gets something of the running router.
"""

import os
import random
from pathlib import Path

import schemathesis

FILE = Path(os.environ["WEIR_TEST_CONFIG"]).read_text(encoding="utf-8")
FILES = [
    FILE,
    FILE.replace("sampling-rate: 10,", "sampling-rate: 20,"),
    FILE.replace("    sflow: true\n", ""),
    FILE.replace("  - {prefix: 203.0.113.0/24, via: 198.51.100.2}\n", "  - {prefix: 203.0.113.0/25, via: 198.51.100.2}\n"),
    FILE.replace("{driver: null}", "{driver: null}\n    mtu: 9000"),
]
WORDS = {
    "name": ["source", "sink"],
    "interface": ["source", "sink"],
    "node": ["ip4-lookup", "eth-input"],
    "prefix": ["203.0.113.0/24", "198.51.100.2"],
    "revision": [1, 2, 3],
    "yaml": FILES,
}


def mixed(values):
    """The same with some values that mean something here."""
    if not isinstance(values, dict):
        return values
    known = {key: random.choice(WORDS[key]) for key in values if key in WORDS and random.random() < 0.5}
    return {**values, **known}


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    return mixed(path_parameters)


@schemathesis.hook
def map_query(context, query):
    return mixed(query)


@schemathesis.hook
def map_body(context, body):
    return mixed(body)
