"""The page of all keys of a config, made from its models."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from rankeval_spark.config import json_schema

Node: TypeAlias = Mapping[str, Any]

HEAD: Final = """\
# Configuration

Generated from the models in `rankeval_spark/config` by `make docs`. A config is one YAML file. `rankeval init` writes
one with every key and comments, and a JSON Schema for your editor; `rankeval validate` reports all faults at once. A
key without a value counts as left out, and an unknown key is an error. Relative paths start from the folder of the
file.
"""

EVERY_INPUT: Final = """\
### Every input

"""
_TABLE: Final = "| key | value | default | meaning |\n|---|---|---|---|\n"
_BOUNDS: Final = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
_NAMES: Final = {
    "integer": "whole number",
    "string": "text",
    "boolean": "true or false",
    "object": "map",
    "array": "list",
}
_MAX_KEYS: Final = 4
"""Sections with more keys have their defaults in their own table."""
_MOST_DIGITS: Final = 12
"""Longer bounds are those of the machine's whole numbers, which no one needs to read."""


def configuration_page() -> str:
    """Describe every key: a section for the file itself, and one for each kind of value that has keys of its own."""
    schema = json_schema.schema()
    definitions = schema["$defs"]
    names = list(dict.fromkeys(_named(schema, definitions)))
    inputs = dict.fromkeys(_references(definitions["Inputs"]["properties"]))
    rows = [_rows(definitions[name]) for name in inputs]
    shared = [row for row in rows[0] if all(row in others for others in rows)]
    sections = {name: _section(name, definitions[name], shared if name in inputs else ()) for name in names}
    sections["Policies"] = _without_meanings(
        "Policies", definitions["Policies"], "[Policies](policies.md) explains them."
    )
    sections["Inputs"] += f"\n{EVERY_INPUT}{_TABLE}{''.join(shared)}"
    return "\n".join([HEAD, _section("Top level", schema), *sections.values()])


def _named(node: Node, definitions: Node) -> Iterator[str]:
    """Name the definitions that a model uses, in the order of its keys, each before those that it uses itself."""
    for child in node.get("properties", {}).values():
        for name in _references(child):
            yield name
            yield from _named(definitions[name], definitions)


def _references(node: Any) -> Iterator[str]:  # noqa: ANN401 - any part of a JSON Schema
    if isinstance(node, Mapping):
        if "$ref" in node:
            yield node["$ref"].rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _section(title: str, model: Node, elsewhere: Collection[str] = ()) -> str:
    """Write the keys of a model but for the rows that are ``elsewhere``."""
    description = f"{model['description']}\n\n" if title != "Top level" and model.get("description") else ""
    rows = [row for row in _rows(model) if row not in elsewhere]
    head = f"## {title}\n\n{description}"
    if elsewhere:
        head += f"It has the keys of [every input](#every-input){' and:' + chr(10) if rows else '.'}\n"
    return head + (_TABLE + "".join(rows) if rows else "")


def _without_meanings(title: str, model: Node, explained: str) -> str:
    """Write the keys of a model with values and defaults alone, which another page explains."""
    head = f"## {title}\n\n{model['description']} {explained}\n\n| key | value | default |\n|---|---|---|\n"
    return head + "".join(f"{row.rsplit(' | ', 1)[0]} |\n" for row in _rows(model))


def _rows(model: Node) -> list[str]:
    required = set(model.get("required", ()))
    return [_row(name, field, name in required) for name, field in model["properties"].items()]


def _row(name: str, field: Node, is_required: bool) -> str:
    default = "required" if is_required else _default(field.get("default"))
    cells = (f"`{name}`", _type(field), default, field.get("description", ""))
    return "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in cells) + " |\n"


def _default(value: object) -> str:
    """Write a default: of thresholds those that apply, of a section a reference to its table."""
    if value in (None, [], {}):
        return ""
    if not isinstance(value, dict):
        return f"`{str(value).lower() if isinstance(value, bool) else value}`"
    given = {key: own for key, own in value.items() if own is not None}
    if len(value) > _MAX_KEYS or any(isinstance(own, dict | list) for own in given.values()):
        return "see its table"
    keys = [f"{key}: {own:g}" if isinstance(own, float) else f"{key}: {own}" for key, own in given.items()]
    return f"`{{{', '.join(keys)}}}`"


def _type(field: Node) -> str:
    choices = field.get("anyOf") or [field]
    return " or ".join(dict.fromkeys(_one(choice) for choice in choices if choice.get("type") != "null"))


def _one(node: Node) -> str:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in node:
        return _type(node)
    if "enum" in node or "const" in node:
        return " or ".join(f"`{value}`" for value in node.get("enum", [node.get("const")]))
    return _plain(node)


def _plain(node: Node) -> str:
    kinds = node.get("type", "any value")
    if "items" in node:
        return f"list of {_one(node['items'])}"
    if isinstance(node.get("additionalProperties"), Mapping):
        return f"map of names to {_one(node['additionalProperties'])}"
    bounds = [f"{sign} {node[key]}" for key, sign in _BOUNDS if key in node and len(str(node[key])) <= _MOST_DIGITS]
    named = (_NAMES.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null")
    return " ".join([" or ".join(named), ", ".join(bounds)]).strip()
