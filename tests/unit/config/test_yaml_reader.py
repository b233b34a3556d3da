"""YAML as plain data, without what a config has no use for."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from rankeval_spark.config import yaml_reader
from rankeval_spark.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("010", 10),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("true", True),
        ("~", None),
        ("-1.5e3", -1500.0),
        ("1e3", 1000.0),
        ("'7'", "7"),
        ("{a: [1, {b: c}]}", {"a": [1, {"b": "c"}]}),
    ],
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    assert yaml_reader.parse(text, "f").data == value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: !!python/object/apply:os.system [ls]", "the tag !!python/object/apply:os.system"),
        ("a: !env HOME", "the tag !env"),
        ("a: !!set {x}", "the tag !!set"),
        ("a: !!int x", "'x'"),
        ("a: 1\nb: 2\na: 3", "the same key a second time"),
        ("1: a", "key '1'"),
        ("[a]: b", "key ["),
    ],
)
def test_what_a_config_has_no_use_for_is_refused(text: str, found: str) -> None:
    (fault,) = yaml_reader.parse(text, "f").faults
    assert fault.found.startswith(found)
    assert fault.where.startswith("f")


def test_path_of_a_written_config_may_be_given_a_date() -> None:
    written = yaml_reader.to_text({"inputs": {"held_out": {"format": "csv", "path": "data/held_out"}}})
    dated = yaml_reader.parse(written.replace("data/", "data/{date}/"), "f").data
    assert dated == {"inputs": {"held_out": {"format": "csv", "path": "data/{date}/held_out"}}}
    with pytest.raises(ConfigError, match=r"line 2\): .*; put a text with {date} in quotes"):
        yaml_reader.parse("a:\n  b: {path: data/{date}/x}", "f")


def test_aliases_may_be_used() -> None:
    assert yaml_reader.parse("a: &x [1]\nb: *x", "f").data == {"a": [1], "b": [1]}


def test_aliases_that_multiply_are_refused() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="aliases that multiply"):
        yaml_reader.parse("\n".join(["l0: &l0 [x]", *levels]), "f")


def test_alias_of_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="aliases that multiply"):
        yaml_reader.parse("a: &a [*a]", "f")


@pytest.mark.parametrize("text", ["[" * 5000, "[" * 200 + "]" * 200, "x" * 300_000])
def test_monstrous_files_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        yaml_reader.parse(text, "f")


def test_values_know_their_lines() -> None:
    document = yaml_reader.parse("a:\n  - 1\n  - b:\n      c: 2\n", "f")
    assert document.line(("a", 1, "b", "c")) == 4
    assert document.line(("a", 1, "missing", "c")) == 3


@given(st.text(max_size=200))
def test_any_text_is_data_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        yaml_reader.parse(text, "f")
