"""How measures and presets look: nothing stands over the width of the terminal, and nothing is left out at any."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import Final, NamedTuple

import pytest

from rankeval_spark.cli import terminal
from rankeval_spark.cli.measures import measures_command, presets_command, tools_command
from rankeval_spark.config import Policies, presets
from rankeval_spark.measures import group_statistics, registry
from rankeval_spark.measures.other_tools import read_tools
from tests.support.cli import rankeval

WIDTHS: Final = (80, 120)


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Print for a terminal of so many columns."""
    columns: int = request.param
    monkeypatch.setattr(terminal, "WIDTH_OF_A_LOG", columns)
    return columns


class Said(NamedTuple):
    """What a command printed: with single blanks, however it was broken into lines, and the length of the longest."""

    text: str
    widest: int


every_measure: Final = partial(measures_command, is_all=True)


def said(name: str | None = None, *, view: Callable[[str | None], None] = every_measure) -> Said:
    """Show all of measures, or presets, without the command line around."""
    out = io.StringIO()
    with redirect_stdout(out):
        view(name)
    lines = out.getvalue().splitlines()
    return Said(" ".join(out.getvalue().split()), max(len(line.rstrip()) for line in lines))


def test_every_explanation_fits_the_terminal_and_is_whole(width: int) -> None:
    for entry in registry.entries():
        found = said(entry.name)
        assert found.widest <= width, entry.name
        for part in (entry.summary, entry.formula, entry.range, entry.undefined, entry.source):
            assert " ".join(part.split()) in found.text
        assert " nan" not in found.text


def test_list_fits_the_terminal_and_is_whole(width: int) -> None:
    found = said()

    assert found.widest <= width
    letters = "".join(found.text.replace("│", "").split())
    assert [entry.name for entry in registry.entries() if entry.name not in letters] == []


def test_statistics_of_measures_are_listed_and_explained(width: int) -> None:
    letters = "".join(said().text.replace("│", "").split())
    for one in group_statistics.ALL:
        text, widest = said(one.name.upper())
        assert widest <= width
        for part in (one.name, one.summary, one.formula, one.way, one.range, one.undefined, one.interval, one.source):
            assert part in text
        assert "".join((one.name + one.formula).split())[:12] in letters
    assert said("GroupGap(nDCG)@10").text == said("GroupGap").text


def test_narrow_list_has_everything_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "WIDTH_OF_A_LOG", 80)
    lines = rankeval("measures", "--all").out.splitlines()
    first = lines.index("AP  (1 / R) sum_{i<=k} r_i h_i / i")

    assert lines[first + 1] == "  options     rel=1, agg='macro' | 'micro', denom='R' | 'min' | 'k' | 'len' |"
    assert lines[first + 2] == "              'hits' | 'none', gains='binary' | {grade:gain}, group=,"
    assert lines[first + 3] == "              judged_only=, weighted=, [@k]"
    assert lines[first + 4] == "  range       [0, 1], to inf with other options"
    assert lines[first + 5] == "  undefined   no relevant judgement (R = 0)"
    assert lines[first + 6].startswith("  source      trec_eval map and map_cut; ")


def test_every_preset_is_listed_with_all_it_sets(width: int) -> None:
    text, widest = said(view=presets_command)

    assert widest <= width
    for name, preset in presets().items():
        assert f"{name} {preset.tool} policies" in text
        assert [f"{policy}={value}" for policy, value in preset.policies.items() if f"{policy}=" not in text] == []
    assert "lenskit.metrics with a list length n, averaged by RunAnalysis policies population=run, zero_" in text
    assert "measures P(denom='len'), R(denom='min'), AP(denom='len'), nDCG(dcg='jk2',gains='binary')" in text
    assert text.endswith("rankeval measures --presets NAME explains one.")


@pytest.mark.parametrize("name", presets())
def test_preset_is_explained_with_its_notes(name: str, width: int) -> None:
    preset, (text, widest) = presets()[name], said(name, view=presets_command)

    assert widest <= width
    for policy, value in preset.policies.items():
        default = Policies.model_fields[policy].default
        assert f"policy {policy}: {value} ({default} without a preset)" in text
    for measure in preset.options:
        assert f"measure {measure} stands for {measure}(" in text
    assert [note for note in preset.notes if f"note {note}" not in text] == []
    assert f"how preset: {name} in a config, or evaluate(..., preset='{name}')" in text


def test_command_takes_the_name_of_a_preset_and_suggests_the_nearest() -> None:
    assert rankeval("measures", "--presets", "lenskit").out.startswith("lenskit  lenskit.metrics with a list length n")
    done = rankeval("measures", "--presets", "lenskti")

    assert done.code == 2
    done.assert_readable()
    assert "found 'lenskti'; expected one of trec_eval, ir_measures, ranx" in done.message
    assert "did you mean 'lenskit'?" in done.message


def test_every_tool_is_listed_with_its_measures_and_what_to_write_for_each(width: int) -> None:
    for tool, facts in read_tools().items():
        text, widest = said(tool, view=lambda name: tools_command(str(name), None))
        assert widest <= width
        letters = "".join(text.replace("│", "").split())
        assert [name for name in facts["metrics"] if name.split()[0][:8] not in letters] == []
    done = rankeval("measures", "--from", "XGBoost", "ndcg@5-").out
    assert done.startswith("ndcg@k-  of xgboost is nDCG(dcg='exp-log2')@k")
    assert "in YAML     preset: xgboost" in done
    assert "policies: {zero_relevant: zero}" in done
    assert "policies={'zero_relevant': 'zero'})" in done
    assert "why         it is a ratio of two means" in rankeval("measures", "--from", "surprise", "fcp").out
    (first, *_) = json.loads(rankeval("measures", "--from", "torchmetrics", "RetrievalMRR", "--json").out)
    assert (first["metric"], first["ours"]) == ("RetrievalMRR", "RR")


@pytest.mark.parametrize(
    ("tool", "name", "found", "measures"),
    [
        ("torchmetrics", "recall@5", "RetrievalRecall(top_k=k)", '["R@5"]'),
        ("torchmetrics", "RetrievalMAP(top_k=3)", "RetrievalMAP(top_k=k)", "[\"AP(denom='hits')@3\"]"),
        ("lightfm", "auc", "auc_score", "[\"CatalogAUC(ties='zero')\"]"),
        ("implicit", "map@7", "mean_average_precision_at_k", "[\"AP(denom='min')@7\"]"),
        ("trec_eval", "map_cut.20", "map_cut_k", '["AP@20"]'),
    ],
)
def test_a_part_of_a_name_or_our_name_finds_it_and_its_cutoff_is_taken(
    tool: str, name: str, found: str, measures: str
) -> None:
    done = " ".join(rankeval("measures", "--from", tool, name).out.split())
    assert done.startswith(f"{found} of {tool} is ")
    assert f"measures: {measures}" in done


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("torchmetric",), "did you mean 'torchmetrics'?"),
        (("sklearn", "ncdg_score"), "found 'ncdg_score'; expected one of ndcg_score, "),
        (("lightgbm", "mapp"), "did you mean 'map'?"),
    ],
)
def test_an_unknown_tool_or_name_of_its_own_is_answered_with_the_nearest(
    arguments: tuple[str, ...], message: str
) -> None:
    done = rankeval("measures", "--from", *arguments)
    assert done.code == 2
    done.assert_readable()
    assert message in done.message


def test_command_says_which_meaning_of_a_name_is_taken() -> None:
    said = " ".join(rankeval("measures", "mrr").out.split())
    assert "RR, 1 / rank of the first hit; the sum of 1 / rank over all hits is ARHR" in said


@pytest.mark.parametrize("arguments", [(), ("nDCG",), ("R",), ("--search", "rank"), ("--search", "coverage")])
def test_what_nobody_asked_to_be_whole_fits_a_screen(width: int, arguments: tuple[str, ...]) -> None:
    done = rankeval("measures", *arguments)
    most = {WIDTHS[0]: 80, WIDTHS[1]: 60}[width] if arguments == ("nDCG",) else 55  # the measure with the most options
    assert len(done.out.splitlines()) <= most
    assert max(len(line.rstrip()) for line in done.out.splitlines()) <= width


def test_the_plain_list_has_every_name() -> None:
    text = said(view=measures_command).text
    names = {name.strip(",") for name in text.split()}
    assert {one.name for one in registry.entries()} | {one.name for one in group_statistics.ALL} <= names


def test_a_search_finds_measures_by_their_words() -> None:
    found = rankeval("measures", "--search", "coverage").out
    firsts = [line.split()[0] for line in found.splitlines()]
    assert {"CatalogCoverage", "ItemCoverage", "UserCoverage"} <= set(firsts[:3])
    none = rankeval("measures", "--search", "zebra")
    assert (none.code, none.out) == (2, "")
    assert "--search: found 'zebra'; expected words about a measure" in none.message


@pytest.mark.parametrize(
    ("word", "names"),
    [("diversity", ["ILD", "Personalization", "Entropy"]), ("Coverage@10", ["CatalogCoverage", "ItemCoverage"])],
)
def test_a_word_for_several_measures_lists_them(word: str, names: list[str]) -> None:
    done = rankeval("measures", word)
    assert done.code == 0
    assert f"{word.partition('@')[0]} has several meanings: " in " ".join(done.out.split())
    firsts = [line.partition("  ")[0] for line in done.out.splitlines()]
    assert set(names) <= set(firsts)
