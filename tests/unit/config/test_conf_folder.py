"""The template, the JSON Schema and the config of the demo are valid, complete and current."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rankeval_spark.config import json_schema, load_config, yaml_reader

PROJECT = Path(__file__).parents[3]
CONF = PROJECT / "conf"
TEMPLATE = PROJECT / "rankeval_spark" / "config" / "template.yaml"
DEMO = PROJECT / "rankeval_spark" / "demo" / "demo.yaml"


def test_json_schema_is_current() -> None:
    committed = TEMPLATE.with_name("evaluation.schema.json").read_text(encoding="utf-8")
    assert committed == json_schema.schema_text(), "run: python -m rankeval_spark.config.json_schema"


def test_template_is_valid() -> None:
    assert load_config(TEMPLATE).evaluation == "nightly"


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_config_of_the_folder_is_valid(path: Path) -> None:
    assert load_config(path).evaluation == path.stem


@pytest.mark.parametrize("path", [*sorted(CONF.glob("*.yaml")), DEMO, TEMPLATE], ids=lambda path: path.stem)
def test_every_config_is_written_as_the_same_config(path: Path, tmp_path: Path) -> None:
    config, written = load_config(path), tmp_path / path.name
    written.write_text(config.to_yaml(), encoding="utf-8")
    assert load_config(written).config_hash == config.config_hash


def test_template_names_every_key() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    missing = [key for key in sorted(_keys(json_schema.build_schema())) if not re.search(rf"\b{key}\b:?", text)]
    assert missing == []


def test_template_shows_the_defaults() -> None:
    template, bare = load_config(TEMPLATE), load_config(DEMO)
    for name in ("policies", "checks", "intervals"):
        assert getattr(template, name) == getattr(bare, name)
    assert template.slicing.min_slice_size == bare.slicing.min_slice_size
    assert template.inputs.max_rows_per_user == bare.inputs.max_rows_per_user
    assert template.results.model_copy(update={"lists": True}).on_busy == bare.results.on_busy
    assert template.results.wait_seconds == bare.results.wait_seconds


def test_demo_asks_for_every_measure_at_every_cutoff() -> None:
    config = load_config(DEMO)
    asked = config.measure_set
    assert len(asked.columns) == 16
    assert asked.ks == (1, 5, 10, 20, 50, 100)
    assert set(asked.requested_ks.values()) == {asked.ks}
    assert config.results.location == str(DEMO.with_name("results"))


def test_json_schema_knows_what_the_loader_knows() -> None:
    definitions = json_schema.build_schema()["$defs"]
    assert definitions["Policies"]["additionalProperties"] is False
    for path in (DEMO, TEMPLATE):
        data = yaml_reader.parse(path.read_text(encoding="utf-8"), path.name).data
        assert _unknown(data, json_schema.build_schema(), definitions) == []


def _keys(schema: dict[str, Any]) -> set[str]:
    """Collect the names of all properties, and of the keys that mappings take."""
    models = [schema, *schema["$defs"].values()]
    properties = [item for model in models for item in model.get("properties", {}).items()]
    of_mappings = re.findall(r"'propertyNames': \{'enum': \[([^\]]*)\]", str(schema))
    return {name for name, _ in properties} | {key.strip(" '") for keys in of_mappings for key in keys.split(",")}


def _unknown(data: object, schema: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    """Walk data along the schema and return the keys that it does not know."""
    schema = _resolved(schema, definitions)
    if not isinstance(data, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    unknown = [key for key in data if key not in known]
    return unknown + [
        below for key, value in data.items() if key in known for below in _unknown(value, known[key], definitions)
    ]


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    for choice in schema.get("anyOf", ()):
        if "$ref" in choice:
            schema = choice
    return definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
