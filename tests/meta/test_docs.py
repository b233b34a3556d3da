"""The pages that are made from the code are current, and the examples in the others valid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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
