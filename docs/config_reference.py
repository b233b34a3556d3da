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
file. In parentheses stand the value of a key and its default.
"""

EVERY_INPUT: Final = "### Every input\n\n[Inputs](inputs.md) explains the keys of all inputs.\n\n"
_BOUNDS: Final = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<"))
_NAMES: Final = {
    "integer": "whole number",
    "string": "text",
    "boolean": "true or false",
    "object": "map",
    "array": "list",
}
_EXTENDED: Final = {"Volume": "Threshold", "Drift": "Threshold"}
"""Models with the keys of another one and more."""
_PAGES: Final = {
    **dict.fromkeys(("RecommendationsInput", "HeldOutInput", "SegmentsInput", "TrainInput", "ItemsInput"), "inputs.md"),
    "Nested": "inputs.md#one-row-per-list-the-nested-form",
    "NestedJudgements": "inputs.md#one-row-per-list-the-nested-form",
    "Gains": "inputs.md#events",
    "Policies": "policies.md",
    "Slicing": "slices.md",
    "Band": "slices.md",
    "Intervals": "intervals.md",
    "Comparisons": "comparisons.md",
    "Gate": "gates.md",
    "Notification": "schedule.md#alerts",
}
"""Pages that explain all keys of a model, so that these have their values and defaults here."""
_CHECK: Final = "[Threshold](#threshold)"
_MAX_KEYS: Final = 4
"""Sections with more keys have their defaults with these."""
_MOST_DIGITS: Final = 12
"""Longer bounds are those of the machine's whole numbers, which no one needs to read."""


def configuration_page() -> str:
    """Describe every key: a section for the file itself, and one for each kind of value that has keys of its own."""
    schema = json_schema.build_schema()
    definitions = schema["$defs"]
    names = list(dict.fromkeys(_named(schema, definitions)))
    keys = {name: _keys(definitions[name], name not in _PAGES) for name in names} | {"Policies": []}
    inputs = dict.fromkeys(_references(definitions["Inputs"]["properties"]))
    every = [key for key in keys[next(iter(inputs))] if all(key in keys[name] for name in inputs)]
    shared = {
        **dict.fromkeys(inputs, ("every input", every)),
        **{name: (base, keys[base]) for name, base in _EXTENDED.items()},
    }
    sections = {name: _section(name, definitions[name], keys[name], *shared.get(name, ("", ()))) for name in names}
    sections["Inputs"] += f"\n{EVERY_INPUT}{''.join(every)}"
    return "\n".join([HEAD, _section("Top level", schema, _keys(schema)), *sections.values()])


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


def _section(title: str, model: Node, keys: Collection[str], base: str = "", of_base: Collection[str] = ()) -> str:
    """Write the keys of a model but for those of its ``base``, which has a section of its own."""
    description = f"{model['description']} " if title != "Top level" and model.get("description") else ""
    own = [key for key in keys if key not in of_base]
    if title in _PAGES and base != "every input":
        description += f"[{_PAGES[title].partition('.')[0].capitalize()}]({_PAGES[title]}) explains the keys. "
    if base:
        description += f"It has the keys of [{base}](#{base.lower().replace(' ', '-')}){' and:' if own else '.'}"
    if title == "Checks":
        description += (
            "Keys without a kind have a [Threshold](#threshold). [Checks](checks.md): what a run does with them."
        )
    return "\n\n".join(filter(None, [f"## {title}", description.strip(), "".join(own).rstrip("\n")])) + "\n"


def _keys(model: Node, with_meaning: bool = True) -> list[str]:
    """Write each key of a model as an item of a list: value, default and meaning."""
    required = set(model.get("required", ()))
    items = model["properties"].items()
    return [_key(name, field, name in required, with_meaning) for name, field in items]


def _key(name: str, field: Node, is_required: bool, with_meaning: bool) -> str:
    kind = _type(field)
    default = "required" if is_required else _default(field.get("default"))
    shown = "; ".join(filter(None, ["" if kind == _CHECK else kind, default]))
    meaning = field.get("description", "").replace("\n", " ") if with_meaning else ""
    return f"- `{name}`{f' ({shown})' if shown else ''}{': ' + meaning if meaning else ''}\n"


def _default(value: object) -> str:
    """Write a default: of thresholds those that apply, of a section with many keys nothing, because it has them."""
    if value in (None, [], {}):
        return ""
    if not isinstance(value, dict):
        return f"default `{str(value).lower() if isinstance(value, bool) else value}`"
    given = {key: own for key, own in value.items() if own is not None}
    if len(value) > _MAX_KEYS or any(isinstance(own, dict | list) for own in given.values()):
        return ""
    keys = [f"{key}: {own:g}" if isinstance(own, float) else f"{key}: {own}" for key, own in given.items()]
    return f"default `{{{', '.join(keys)}}}`"


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
        values = [f"`{value}`" for value in node.get("enum", [node.get("const")])]
        return " or ".join(filter(None, [", ".join(values[:-1]), values[-1]]))
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
