"""How measures and presets look: nothing stands over the width of the terminal, and nothing is left out at any."""

from __future__ import annotations

from typing import Final

import pytest

from rankeval_spark.cli import terminal
from rankeval_spark.config import PRESETS, Policies
from rankeval_spark.measures import registry
from tests.support.cli import rankeval

WIDTHS: Final = (80, 120)


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Print for a terminal of so many columns."""
    columns: int = request.param
    monkeypatch.setattr(terminal, "WIDTH_OF_A_LOG", columns)
    return columns


def said(*arguments: str) -> str:
    """Run the command and return what it says with single blanks, however it was broken into lines."""
    done = rankeval("measures", *arguments)
    assert (done.code, done.err) == (0, "")
    return " ".join(done.out.split())


def widest(*arguments: str) -> int:
    """Columns of the longest line that the command prints."""
    return max(len(line.rstrip()) for line in rankeval("measures", *arguments).out.splitlines())


@pytest.mark.parametrize("entry", registry.entries(), ids=lambda entry: entry.name)
def test_explanation_fits_the_terminal_and_is_whole(entry: registry.Entry, width: int) -> None:
    definition = entry.definition
    text = said(entry.name)

    assert widest(entry.name) <= width
    for part in (entry.summary, definition.formula, entry.range, definition.undefined, definition.source):
        assert " ".join(part.split()) in text
    assert " nan" not in text


def test_list_fits_the_terminal_and_is_whole(width: int) -> None:
    assert widest() <= width
    found = "".join(said().replace("│", "").split())
    assert [entry.name for entry in registry.entries() if entry.name not in found] == []


def test_narrow_list_has_everything_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "WIDTH_OF_A_LOG", 80)
    lines = rankeval("measures").out.splitlines()
    first = lines.index("AP  (1 / R) sum_{i<=k} r_i h_i / i")

    assert lines[first + 1] == "  options     rel=1, denom='R' | 'min' | 'k' | 'len' | 'hits', [@k]"
    assert lines[first + 2] == "  range       [0, 1]"
    assert lines[first + 3] == "  undefined   no relevant judgement (R = 0)"
    assert lines[first + 4].startswith("  source      trec_eval map and map_cut; ")


def test_every_preset_is_listed_with_all_it_sets(width: int) -> None:
    text = said("--presets")

    assert widest("--presets") <= width
    for name, preset in PRESETS.items():
        assert f"{name} {preset.tool} policies" in text
        assert [f"{policy}={value}" for policy, value in preset.policies.items() if f"{policy}=" not in text] == []
    assert "lenskit.metrics with a list length n, averaged by RunAnalysis policies population=run, zero_" in text
    assert "measures P(denom='len'), R(denom='min'), AP(denom='len'), nDCG(dcg='jk2',gains='binary')" in text
    assert text.endswith("rankeval measures --presets NAME explains one.")


@pytest.mark.parametrize("name", PRESETS)
def test_preset_is_explained_with_its_notes(name: str, width: int) -> None:
    preset, text = PRESETS[name], said("--presets", name)

    assert widest("--presets", name) <= width
    for policy, value in preset.policies.items():
        default = Policies.model_fields[policy].default
        assert f"policy {policy}: {value} ({default} without a preset)" in text
    for measure in preset.options:
        assert f"measure {measure} stands for {measure}(" in text
    assert [note for note in preset.notes if f"note {note}" not in text] == []
    assert f"how preset: {name} in a config, or evaluate(..., preset='{name}')" in text


def test_misspelt_preset_is_answered_with_the_nearest() -> None:
    done = rankeval("measures", "--presets", "lenskti")

    assert done.code == 2
    done.assert_readable()
    assert "found 'lenskti'; expected one of trec_eval, ir_measures, ranx" in done.message
    assert "did you mean 'lenskit'?" in done.message
