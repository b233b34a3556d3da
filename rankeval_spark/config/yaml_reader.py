"""Read YAML into plain data with the line of every value.

Scalars follow the core schema of YAML 1.2: `no` is text, `010` is ten, a date is text. Tags, duplicate keys and
aliases that multiply are faults. Why this is not left to a library: ``docs/decisions/0028``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from rankeval_spark.config.spark_settings import is_credential
from rankeval_spark.errors import REDACTED, ConfigError, Fault, shortened

MAX_CHARACTERS: Final = 256 * 1024
MAX_NODES: Final = 10_000  # largest number of values of a file, after aliases are expanded

MAX_DEPTH: Final = 20

Place = tuple[str | int, ...]  # keys and list indexes that lead to a value


class _CoreLoader(yaml.SafeLoader):
    """Scalars by the core schema of YAML 1.2."""


_CoreLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]{1,100}", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
     list("-+.0123456789")),
):  # fmt: skip  # a row a type
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


class _CoreDumper(yaml.SafeDumper):
    """Text in quotes where a reader of YAML 1.1 or 1.2 takes it for something else, such as ``no`` and ``5e3``.

    A path stands on a line of its own, where people may write ``{date}`` into it without quotes.
    """

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:  # noqa: ANN401 - of yaml
        node: yaml.MappingNode = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = node.flow_style and not any("/" in str(value.value) for _, value in node.value)
        return node


_CoreDumper.yaml_implicit_resolvers = {
    first: [
        *yaml.SafeDumper.yaml_implicit_resolvers.get(first, ()),
        *_CoreLoader.yaml_implicit_resolvers.get(first, ()),
    ]
    for first in {*yaml.SafeDumper.yaml_implicit_resolvers, *_CoreLoader.yaml_implicit_resolvers}
}


def to_text(data: object) -> str:
    """Write plain data as YAML, which :func:`parse` reads as the same data."""
    text: str = yaml.dump(
        data, Dumper=_CoreDumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120
    )
    return text


_SCALARS: Final[dict[str, Callable[[str], Any]]] = {
    "tag:yaml.org,2002:null": lambda text: None,  # noqa: ARG005 - one signature for all
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    "tag:yaml.org,2002:str": str,
}


@dataclass
class Document:
    """The plain data of a file, the first line of each value, and the faults."""

    data: Any
    lines: dict[Place, int] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def line(self, place: Place) -> int | None:
        """Return the line of a value, or of the nearest enclosing value that is in the file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


class _Builder:
    """Converts the nodes of a file to plain data, and collects their lines and faults on the way."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.faults: list[Fault] = []
        self.lines: dict[Place, int] = {}
        self.n_nodes = 0
        self.n_characters = 0

    def add_fault(self, node: yaml.Node, place: Place, found: str, expected: str, fix: str = "") -> None:
        self.faults.append(Fault(location_text(self.where, place, node.start_mark.line + 1), found, expected, fix))

    def build(self, node: yaml.Node, place: Place = ()) -> Any:  # noqa: ANN401 - a file can hold anything
        """Convert a node and all below it to plain data."""
        self.n_nodes += 1
        if self.n_nodes > MAX_NODES or len(place) > MAX_DEPTH:
            expected = f"at most {MAX_NODES} values, {MAX_DEPTH} deep"
            raise ConfigError(Fault(self.where, "too many values, or aliases that multiply", expected))
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._build_mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            self._refuse_tag(node, place, "tag:yaml.org,2002:seq")
            return [self.build(child, (*place, index)) for index, child in enumerate(node.value)]
        return self._build_scalar(node, place)

    def _build_mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        self._refuse_tag(node, place, "tag:yaml.org,2002:map")
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                self.add_fault(key_node, place, f"key {shortened(repr(key))}", "text as the key", "put it in quotes")
                continue
            below = (*place, key)
            if key in values:
                once = f"each key once (first on line {self.lines[below]})"
                self.add_fault(key_node, below, "the same key a second time", once)
                continue
            self.lines[below] = key_node.start_mark.line + 1
            values[key] = self.build(value_node, below)
        return values

    def _build_scalar(self, node: yaml.Node, place: Place) -> Any:  # noqa: ANN401 - text, number, bool or null
        self.n_characters += len(node.value)
        if self.n_characters > MAX_CHARACTERS:
            expected = f"at most {MAX_CHARACTERS} characters"
            raise ConfigError(Fault(self.where, "aliases that multiply a long text", expected))
        if node.tag not in _SCALARS:
            self._refuse_tag(node, place, "")
            return None
        try:
            return _SCALARS[node.tag](node.value)
        except ValueError:
            found = REDACTED if any(is_credential(str(part)) for part in place) else shortened(repr(node.value))
            self.add_fault(node, place, found, f"a value of its tag {_short_tag(node.tag)}")
            return None

    def _refuse_tag(self, node: yaml.Node, place: Place, allowed: str) -> None:
        if node.tag != allowed:
            self.add_fault(node, place, f"the tag {_short_tag(node.tag)}", "plain values only", "remove the tag")


def parse(text: str, where: str) -> Document:
    """Read one YAML document; ``where`` is the file in messages. ConfigError for other text, and for too much."""
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(Fault(where, f"{len(text)} characters", f"at most {MAX_CHARACTERS}"))
    try:
        node = yaml.compose(text, Loader=_CoreLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        fix = "write spaces instead of the tab" if "\\t" in str(error.problem) else ""
        if line and "{date" in text.splitlines()[line - 1]:
            fix = "put a text with {date} in quotes"
        details = "; ".join(part for part in (error.context, error.problem) if part)
        found = f"text that is not YAML ({details})"
        raise ConfigError(Fault(location_text(where, (), line), found, "YAML", fix)) from None
    except yaml.YAMLError as error:
        raise ConfigError(Fault(where, " ".join(str(error).split())[:200], "YAML text")) from None
    except RecursionError:
        raise ConfigError(Fault(where, "too deep a nesting", f"at most {MAX_DEPTH} levels")) from None
    if node is None:
        return Document(None)
    builder = _Builder(where)
    data = builder.build(node)
    return Document(data, builder.lines, tuple(builder.faults))


def place_text(place: Place) -> str:
    """Write a place as ``inputs.held_out.filters[0].op``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def location_text(file: str, place: Place, line: int | None) -> str:
    """Write where a value is: the file, the place in it and the line."""
    return ", ".join(part for part in (file, place_text(place)) if part) + (f" (line {line})" if line else "")


def _short_tag(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")
