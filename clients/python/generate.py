"""Writes `types.py` and `operations.py` of the client from a router's OpenAPI document.

    generate.py OPENAPI.json            writes both files
    generate.py --check OPENAPI.json    only says whether they are as they would be written; exit code 1 if not

What replies consist of becomes dataclasses, what requests consist of becomes typed dictionaries (an absent
key and a null are two things there), words become `Literal`s, and each operation becomes a method with the
parameters that the document names. A schema of a form that is not known here is an error, not a guess.
"""

from __future__ import annotations

import argparse
import json
import keyword
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "src" / "weir"
WIDTH = 110
REF = "#/components/schemas/"
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
Schema = dict[str, Any]


class Unknown(Exception):
    """The document has something that this script does not know."""


def name_of(ref: str) -> str:
    if not ref.startswith(REF):
        raise Unknown(f"a reference to {ref}")
    return ref.removeprefix(REF)


def python_type(schema: Schema, prefix: str = "", bodies: frozenset[str] = frozenset()) -> str:
    """The annotation of a value; `bodies` are the names of typed dictionaries."""

    def inner(of: Schema) -> str:
        return python_type(of, prefix, bodies)

    if "$ref" in schema:
        name = name_of(schema["$ref"])
        return f"{prefix}{name}{'Body' if name in bodies else ''}"
    if "anyOf" in schema:
        return " | ".join(inner(one) for one in schema["anyOf"])
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " | ".join(inner({**schema, "type": kind}) for kind in kinds)
    if kinds == "null":
        return "None"
    if kinds == "array":
        return f"list[{inner(schema['items'])}]"
    if kinds == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {inner(values)}]" if isinstance(values, dict) else "dict[str, Any]"
    if kinds == "string" and "enum" in schema:
        return "Literal[" + ", ".join(json.dumps(word) for word in schema["enum"]) + "]"
    if kinds == "string" and schema.get("format") == "date-time":
        return "datetime"
    if kinds in SIMPLE:
        return SIMPLE[kinds]
    raise Unknown(f"the schema {json.dumps(schema)}")


def references(schema: Any) -> Iterator[str]:
    """All schemas that a schema refers to itself."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield name_of(schema["$ref"])
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def reachable(start: Any, schemas: dict[str, Schema]) -> set[str]:
    """All schemas that something refers to, also through others."""
    found: set[str] = set()
    todo = list(references(start))
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(references(schemas[name]))
    return found


def sentence(text: str) -> str:
    """Text of the document as one paragraph."""
    return " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")


def docstring(text: str, indent: str) -> str:
    text = sentence(text)
    if len(indent) + len(text) + 6 <= WIDTH:
        return f'{indent}"""{text}"""\n'
    lines = textwrap.wrap(text, WIDTH - len(indent) - 3)
    return f'{indent}"""' + f"\n{indent}".join(lines) + f'\n{indent}"""\n'


def identifier(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise Unknown(f"{name!r} as a name")
    return name


def fields_in_order(schema: Schema) -> list[str]:
    """Required keys in the order of the document, then the others."""
    required = list(schema.get("required", []))
    return required + sorted(set(schema["properties"]) - set(required))


def dataclass_text(name: str, schema: Schema) -> str:
    text = f"\n\n@dataclass(frozen=True, slots=True, kw_only=True)\nclass {name}:\n"
    text += docstring(schema["description"], "    ")
    required = set(schema.get("required", []))
    for key in fields_in_order(schema):
        of = schema["properties"][key]
        kind = python_type(of)
        default = ""
        if key not in required:
            if isinstance(of.get("default"), (list, dict)):
                # A list or dictionary as default would be one for all objects; those of the API are empty.
                assert not of["default"], key
                default = f" = field(default_factory={type(of['default']).__name__})"
            elif "default" in of:
                default = f" = {of['default']!r}"
            elif kind.startswith("list["):
                default = " = field(default_factory=list)"
            else:
                kind = kind if kind.endswith("| None") else f"{kind} | None"
                default = " = None"
        text += f"\n    {identifier(key)}: {kind}{default}\n" + docstring(of.get("description", key), "    ")
    return text


def body_text(name: str, schema: Schema, bodies: frozenset[str]) -> str:
    """A request as a typed dictionary: what is not there is not sent."""
    text = f"\n\nclass {name}Body(TypedDict):\n" + docstring(schema["description"], "    ")
    required = set(schema.get("required", []))
    for key in fields_in_order(schema):
        of = schema["properties"][key]
        kind = python_type(of, bodies=bodies)
        kind = kind if key in required else f"NotRequired[{kind}]"
        text += f"\n    {identifier(key)}: {kind}\n" + docstring(of.get("description", key), "    ")
    return text


def words_text(name: str, schema: Schema) -> str:
    words = [one["const"] for one in schema["oneOf"]]
    text = f"\n\n{name}: TypeAlias = Literal[\n"
    for one, word in zip(schema["oneOf"], words, strict=True):
        comment = textwrap.wrap(sentence(one.get("description", word)), WIDTH - 6)
        text += textwrap.indent("\n".join(comment), "    # ") + f"\n    {json.dumps(word)},\n"
    return text + "]\n" + docstring(schema["description"], "")


def tagged_union_text(name: str, schema: Schema) -> str:
    """Alternatives that each refer to a type and name it by a word under one key."""
    (tag,) = {key for one in schema["oneOf"] for key in one["properties"]}
    by_word = [(one["properties"][tag]["const"], name_of(one["$ref"])) for one in schema["oneOf"]]
    text = f"\n\n{name}: TypeAlias = " + " | ".join(of for _, of in by_word) + "\n"
    text += docstring(schema["description"], "")
    text += f"\n{name.upper()}_BY_WORD: dict[str, type[{name}]] = {{\n"
    text += "".join(f"    {json.dumps(word)}: {of},\n" for word, of in by_word)
    return text + "}\n" + docstring(f"The type of an {name} by its `{tag}`.", "")


def schema_text(name: str, schema: Schema) -> str:
    alternatives = schema.get("oneOf", [])
    if alternatives and all("const" in one for one in alternatives):
        return words_text(name, schema)
    if alternatives and all("$ref" in one for one in alternatives):
        return tagged_union_text(name, schema)
    if schema.get("type") == "object" and "properties" in schema:
        return dataclass_text(name, schema)
    return f"\n\n{name}: TypeAlias = {python_type(schema)}\n" + docstring(schema["description"], "")


def in_order(names: set[str], schemas: dict[str, Schema]) -> list[str]:
    """Aliases after what they are made of; what is a class needs no order."""
    unions = {name for name in names if any("$ref" in one for one in schemas[name].get("oneOf", []))}
    aliases = {name for name in names - unions if "properties" not in schemas[name]}
    return sorted(aliases) + sorted(names - unions - aliases) + sorted(unions)


def types_file(document: Schema) -> str:
    schemas: dict[str, Schema] = document["components"]["schemas"]
    in_bodies, in_replies = uses(document)
    bodies = body_names(document)
    text = ""
    for name in in_order(set(schemas) & (in_replies | in_bodies) - (set(bodies) - in_replies), schemas):
        text += schema_text(name, schemas[name])
    for name in sorted(bodies):
        text += body_text(name, schemas[name], bodies)
    typing = [name for name in ("Any", "Literal", "NotRequired", "TypeAlias", "TypedDict") if name in text]
    head = HEAD.format(what="What the API consists of: replies as dataclasses, requests as typed dictionaries.")
    head += "from dataclasses import dataclass, field\nfrom datetime import datetime\n"
    return f"{head}from typing import {', '.join(typing)}\n{text}"


def operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def body_schema(operation: Schema) -> Schema | None:
    body = operation.get("requestBody")
    return body["content"]["application/json"]["schema"] if body else None


def uses(document: Schema) -> tuple[set[str], set[str]]:
    """Schemas that requests consist of, and schemas that replies consist of."""
    schemas = document["components"]["schemas"]
    all_operations = [operation for _, _, operation in operations(document)]
    in_bodies = reachable([body_schema(operation) for operation in all_operations], schemas)
    in_replies = reachable([operation["responses"] for operation in all_operations], schemas)
    return in_bodies, in_replies


def body_names(document: Schema) -> frozenset[str]:
    """Schemas of requests that are objects."""
    schemas = document["components"]["schemas"]
    return frozenset(name for name in uses(document)[0] if "properties" in schemas[name])


def parameters(operation: Schema, bodies: frozenset[str]) -> tuple[list[str], dict[str, str]]:
    """The signature of an operation, and its query."""
    required, optional, query = [], [], {}
    for one in operation["parameters"]:
        name, kind = identifier(one["name"]), python_type(one["schema"])
        if one["in"] == "path":
            required.append(f"{name}: {kind}")
        elif one["in"] == "query" and not one["required"]:
            optional.append(f"{name}: {kind} | None = None")
            query[one["name"]] = name
        else:
            raise Unknown(f"a parameter in {one['in']}")
    body = body_schema(operation)
    if body is not None:
        required.append("body: " + python_type(body, "types.", bodies))
    return ["self", *required, *(["*", *optional] if optional else [])], query


def operation_text(method: str, path: str, operation: Schema, bodies: frozenset[str]) -> str:
    ((content, reply),) = operation["responses"]["200"]["content"].items()
    signature, query = parameters(operation, bodies)
    in_path = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
    place = json.dumps(path)
    for name in in_path:
        place = "f" + place.removeprefix("f").replace("{" + name + "}", "{segment(" + name + ")}")
    arguments = [json.dumps(method), place]
    if content == "text/event-stream":
        kind, call, arguments = "EventStream", "self._wire.stream", arguments[1:]
    elif content == "application/x-pcapng":
        kind, call = "CaptureStream", "self._wire.capture"
    elif content == "application/json":
        kind = python_type(reply["schema"], "types.")
        call, arguments = "self._wire.ask", [kind.replace("Any", "object"), *arguments]
    else:
        kind, call = "str", "self._wire.ask_text"
    if query:
        pairs = ", ".join(f"{json.dumps(key)}: {name}" for key, name in query.items())
        arguments.append(f"query={{{pairs}}}")
    if "requestBody" in operation:
        arguments.append("body=body")
    head = f"\n    def {identifier(operation['operationId'])}({', '.join(signature)}) -> {kind}:\n"
    if len(head) > WIDTH + 1:
        lines = "".join(f"        {part},\n" for part in signature)
        head = f"\n    def {operation['operationId']}(\n{lines}    ) -> {kind}:\n"
    result = f"        return {call}({', '.join(arguments)})\n"
    if len(result) > WIDTH + 1:
        result = f"        return {call}(\n            " + ",\n            ".join(arguments) + ",\n        )\n"
    return head + docstring(f"{operation['summary']} `{method} {path}`", "        ") + result


def operations_file(document: Schema) -> str:
    bodies = body_names(document)
    text = HEAD.format(what="One method for each operation of the API, with the parameters that it takes.")
    text += "from typing import Any, Literal\n\nfrom . import types\nfrom .wire import CaptureStream, EventStream, Wire, segment\n"
    text += "\n\nclass Operations:\n" + docstring("The operations, asked over one wire.", "    ")
    text += "\n    def __init__(self, wire: Wire) -> None:\n        self._wire = wire\n"
    for method, path, operation in operations(document):
        text += operation_text(method, path, operation, bodies)
    return text


HEAD = '''"""{what}

Written by `generate.py` from the router's OpenAPI document; change that, not this.
"""

from __future__ import annotations

'''


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the client's types and operations from an OpenAPI document.")
    parser.add_argument("document", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    arguments = parser.parse_args()
    document = json.loads(arguments.document.read_text(encoding="utf-8"))
    outdated = []
    for name, text in [("types.py", types_file(document)), ("operations.py", operations_file(document))]:
        path = FOLDER / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        outdated.append(name)
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
    if outdated:
        print(", ".join(outdated), "differ from the document" if arguments.check else "written")
    return 1 if outdated and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
