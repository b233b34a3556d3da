"""Pages made from the code are current, examples in others are valid, and the API reference is complete."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

import rankeval_spark
import rankeval_spark.errors
import rankeval_spark.report.notebook
from rankeval_spark.config import load_config

ROOT = Path(__file__).parents[2]


def test_generated_pages_are_current() -> None:
    checked = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def yaml_blocks() -> list[tuple[str, str]]:
    """Give the examples of configs in the pages, each with its place."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        (f"{page.relative_to(ROOT)}-{number}", block)
        for page in pages
        for number, block in enumerate(
            re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
        )
    ]


@pytest.mark.parametrize("example", [pytest.param(block, id=place) for place, block in yaml_blocks()])
@pytest.mark.usefixtures("team_measures")
def test_examples_of_configs_are_valid(example: str, tmp_path: Path) -> None:
    """Whatever an example leaves out is that of the template, without what hangs on other keys."""
    config = yaml.safe_load((ROOT / "rankeval_spark" / "config" / "template.yaml").read_text(encoding="utf-8"))
    for key in {"slices", "slicing", "gates", "comparisons"} - yaml.safe_load(example).keys():
        config.pop(key, None)
    given = {name: {"format": "csv", "path": f"{name}.csv"} for name in ("segments", "train", "items")}
    config["inputs"] |= given
    config |= yaml.safe_load(example)
    path = tmp_path / "example.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    assert load_config(path).evaluation == config["evaluation"]


def documented() -> dict[str, object]:
    """Find what the API reference shows, by its name there."""
    names = re.findall(r"^::: rankeval_spark\.([\w.]+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.M)
    return {name: attrgetter(name)(rankeval_spark) for name in names}


def shown_members(shown: object) -> Iterator[tuple[str, Any]]:
    """Yield the functions and properties that the page shows of a class, or what it shows itself."""
    if not inspect.isclass(shown):
        yield "", shown
        return
    plugins = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["plugins"]
    (options,) = (one["mkdocstrings"]["handlers"]["python"]["options"] for one in plugins if "mkdocstrings" in one)
    for name, member in vars(shown).items():
        is_shown = not any(re.search(pattern.removeprefix("!"), name) for pattern in options["filters"])
        if is_shown and (callable(member) or isinstance(member, property | cached_property)):
            yield name, member


def test_every_public_name_is_in_the_api_reference() -> None:
    assert [name for name in rankeval_spark.__all__ if name not in {*documented(), "__version__"}] == []


@pytest.mark.parametrize("name", documented())
def test_the_api_reference_says_what_each_method_and_each_parameter_is(name: str) -> None:
    shown = documented()[name]
    for member_name, member in shown_members(shown):
        function = getattr(member, "fget", None) or getattr(member, "func", None) or member
        text = f"{inspect.getdoc(function)}\n{inspect.getdoc(shown)}"
        assert function.__doc__, f"{name}.{member_name}"
        has_parameters = inspect.isfunction(function)
        parameters = [one for one in inspect.signature(function).parameters if one != "self"] if has_parameters else ()
        assert [one for one in parameters if not re.search(rf"\b{one}\b", text)] == [], f"{name}.{member_name}"
