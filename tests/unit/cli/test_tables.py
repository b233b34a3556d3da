"""What the terminal shows of results."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from rankeval_spark.cli import tables

if TYPE_CHECKING:
    from rich.table import Table


def rows(measure: str, **values: float | None) -> list[dict[str, object]]:
    """One mean a model."""
    return [
        {"model_id": model, "measure": measure, "k": 0, "value": value, "ci_low": None, "ci_high": None}
        for model, value in values.items()
    ]


@pytest.mark.parametrize(("measure", "best"), [("RR", "b"), ("RMSE", "a"), ("NoLongerKnown", "b"), ("ARP", "")])
def test_best_mean_of_a_line_is_marked_the_lowest_of_an_error(measure: str, best: str) -> None:
    table = tables.leaderboard(rows(measure, a=1.0, b=2.0, c=None), "title")
    cells = {str(column.header): next(iter(column.cells)) for column in table.columns}
    assert [model for model in "abc" if "bold" in str(cells[model])] == list(best)


@pytest.mark.parametrize(("width", "n_lines"), [(80, 2), (100, 1)])
def test_means_and_intervals_of_a_leaderboard_are_never_cut_off(width: int, n_lines: int) -> None:
    own = rows("AP", als=0.0723, item_knn=0.0724, popular=0.0382)
    means = [{**row, "ci_low": 0.0638, "ci_high": 0.0807} for row in own]

    text = printed(tables.leaderboard(means, "nightly, 2026-01-02", width=width), width)

    assert "…" not in text
    assert text.count("[0.0638, 0.0807]") == 3
    assert [text.count(mean) for mean in ("0.0723", "0.0724", "0.0382")] == [1, 1, 1]
    assert len(text.splitlines()) == 3 + n_lines


def difference(model: str, measure: str, slice_value: str = "", **changes: object) -> dict[str, object]:
    """One row of ``comparisons``, as far as it is shown."""
    where = {"model_id": model, "slice": "country" if slice_value else "all", "slice_value": slice_value}
    numbers = {"delta": 0.0583, "ci_low": 0.046, "ci_high": 0.0706, "relative_delta": 0.729, "p_adjusted": 1.2e-30}
    tested = {"ci_level": 0.95, "correction": "holm", "family_size": 324, "reason": None, "verdict": "better"}
    return {**where, "baseline_model_id": "popular", "measure": measure, "k": 10, **numbers, **tested, **changes}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("slice_value", ["", "a country of a long name"])
@pytest.mark.parametrize("is_of_nights", [False, True])
def test_verdict_interval_and_p_of_a_comparison_are_never_cut_off(
    width: int, slice_value: str, is_of_nights: bool
) -> None:
    few = {"verdict": None, "p_adjusted": None, "reason": "few_users", "relative_delta": None}
    rows = [
        difference("als", "nDCG"),
        difference("item_knn", "nDCG(dcg='exp-log2')", slice_value, verdict="undecided"),
        difference("item_knn", "AP(denom='min')", slice_value, **few),
    ]
    if is_of_nights:
        rows = [{**row, "earlier_value": 0.0812, "value": 0.1395} for row in rows]
        for row in rows:
            del row["baseline_model_id"]
    out = io.StringIO()
    Console(file=out, width=width).print(tables.comparisons(rows, "nightly, 2026-01-02", width=width))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width + 1
    assert "…" not in text
    assert text.count("+0.0583 [+0.0460, +0.0706]") == 3
    for said in ("better", "undecided", "not tested: few users", "1.2e-30"):
        assert said in text
    assert text.count("0.0812") == 3 * is_of_nights
    assert text.count("0.1395") == 3 * is_of_nights


def test_each_row_names_its_baseline_where_there_are_several() -> None:
    out = io.StringIO()
    rows = [difference("als", "RR"), difference("als", "RR", baseline_model_id="item_knn")]
    Console(file=out, width=120).print(tables.comparisons(rows, "nightly"))
    assert "als - popular" in out.getvalue()
    assert "als - item_knn" in out.getvalue()


def gap(**changes: object) -> dict[str, object]:
    """How far the groups of a slicing lie apart, as far as it is shown."""
    about = {"model_id": "item_knn", "slice": "country", "measure": "nDCG", "k": 10, "ci_level": 0.95}
    numbers = {"gap": 0.0312, "ci_low": 0.0102, "ci_high": 0.0522}
    ratio = {"ratio": 0.8123, "ratio_ci_low": 0.7004, "ratio_ci_high": 0.9321}
    ends = {"lowest_group": "DE", "lowest_value": 0.1351, "highest_group": "AT", "highest_value": 0.1663}
    return {**about, **numbers, **ratio, **ends, "n_groups": 5, "n_left_out": 2, **changes}


def printed(table: Table, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width + 1
    assert "…" not in text
    return text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_numbers_of_a_gap_are_never_cut_off(width: int) -> None:
    rows = [
        gap(),
        gap(slice="country*activity", measure="nDCG(dcg='exp-log2')", ci_low=-0.0123),
        gap(measure="AP", lowest_group="Bosnia and Herzegovina", n_left_out=0),
    ]
    text = printed(tables.gaps(rows, "nightly, 2026-01-02", width=width), width)
    assert text.splitlines()[0].strip() == "nightly, 2026-01-02: 95 % intervals"
    assert text.count("0.0312") == text.count("0.8123") == text.count("[0.7004, 0.9321]") == 3
    assert text.count("[0.0102, 0.0522]") == 2
    assert text.count("[-0.0123, 0.0522]") == 1
    assert text.count("AT 0.1663") == text.count("5 compared") == 3
    assert text.count("DE 0.1351") == text.count("2 left out") == 2


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(("ci_low", "mark"), [(0.0001, " *"), (0.0, ""), (-0.01, "")])
def test_gap_whose_interval_lies_above_0_is_marked_and_the_mark_explained(width: int, ci_low: float, mark: str) -> None:
    table = tables.gaps([gap(ci_low=ci_low)], "nightly", width=width)
    (cell,) = (next(iter(column.cells)) for column in table.columns if column.header == "gap")
    assert str(cell).splitlines()[0] == f"0.0312{mark}"
    assert "* the interval of the gap lies above 0" in printed(table, width)


@pytest.mark.parametrize("width", [80, 120])
def test_gap_of_fewer_than_two_groups_is_a_dash(width: int) -> None:
    names = ("gap", "ci_low", "ci_high", "ratio", "ratio_ci_low", "ratio_ci_high")
    ends = ("lowest_group", "lowest_value", "highest_group", "highest_value")
    table = tables.gaps([gap(n_groups=0, **dict.fromkeys((*names, *ends)))], "nightly", width=width)
    cells = {str(column.header): str(next(iter(column.cells))) for column in table.columns}
    assert (cells["gap"], cells["ratio"]) == ("-", "-")
    shown = "lowest -\nhighest -\n" if width < 100 else ""
    assert cells["groups"] == f"{shown}0 compared\n2 left out"


def sliced(slice_value: str, **changes: object) -> dict[str, object]:
    """One row of ``metrics`` of a slice, as far as it is shown."""
    about = {"model_id": "item_knn", "slice": "country", "slice_value": slice_value, "measure": "nDCG", "k": 10}
    numbers = {"value": 0.1234, "ci_low": -0.0012, "ci_high": 0.2345, "ci_level": 0.95, "n_users": 12_345}
    return {**about, **numbers, "is_small": False, **changes}


@pytest.mark.parametrize("width", [80, 100, 120])
def test_means_of_slices_are_never_cut_off(width: int) -> None:
    crossed = sliced("Bosnia and Herzegovina*middle", slice="country*activity", measure="nDCG(dcg='exp-log2')")
    rows = [sliced("DE"), sliced("", slice="all"), sliced("", measure="GroupGap(nDCG)"), crossed]
    text = printed(tables.means(rows, "nightly, 2026-01-02"), width)
    assert text.splitlines()[0].strip() == "nightly, 2026-01-02: 95 % intervals"
    assert text.count("0.1234 [-0.0012, 0.2345] │ 12,345") == 4
    assert "min_slice_size" not in text


def test_one_slice_is_in_the_heading_and_small_groups_are_marked() -> None:
    small = sliced("DE", n_users=3, is_small=True, ci_low=None, ci_high=None)
    table = tables.means([small, sliced("", measure="GroupGap(nDCG)", value=None)], "nightly")
    assert [str(column.header) for column in table.columns] == ["model", "country", "measure", "mean", "users"]
    first, second = zip(*(column.cells for column in table.columns), strict=True)
    assert first == ("item_knn", "DE", "nDCG@10", "0.1234 [dim]-[/dim]", "* 3")
    assert second == ("item_knn", "-", "GroupGap(nDCG)@10", "-", "12,345")
    assert "* fewer users than min_slice_size" in printed(table, 80)


@pytest.mark.parametrize(
    ("value", "words", "group"),
    [(">= 59", "age ≥ 59", "≥ 59"), ("< 18", "age < 18", "< 18"), ("[18, 59)", "18 ≤ age < 59", "18 to < 59")],
)
def test_bands_of_numbers_are_inequalities_in_every_table(value: str, words: str, group: str) -> None:
    compared = tables.comparisons([difference("als", "nDCG", value, slice="age")], "night", width=160)
    assert words in printed(compared, 160)
    mean, everyone = sliced(value, slice="age"), sliced("", slice="all")
    assert words in printed(tables.means([mean, everyone], "night"), 120)
    assert group in printed(tables.means([mean], "night"), 120)


def test_other_tests_are_next_to_the_verdict_where_they_were_requested() -> None:
    numbers = {"delta": 0.1, "ci_low": 0.05, "ci_high": 0.15, "relative_delta": 0.5, "p_adjusted": 0.01}
    about = {"baseline_model_id": "pop", "model_id": "als", "slice": "all", "slice_value": "", "measure": "RR", "k": 5}
    row = {
        **about,
        **numbers,
        "ci_level": 0.95,
        "correction": "holm",
        "family_size": 2,
        "verdict": "better",
        "reason": None,
    }
    others = {"bootstrap": 0.0123, "randomized_tukey": None}
    shown = tables.comparisons([{**row, "other_tests": others}], "night")
    assert list(shown.columns[-1].cells) == ["bootstrap 0.012, randomized tukey -"]
    assert list(shown.columns[-2].cells) == ["0.01"]
    assert len(tables.comparisons([{**row, "other_tests": {}}], "night").columns) == len(shown.columns) - 1


def test_rules_have_a_line_each_with_the_number_of_cases_by_verdict() -> None:
    rows = [
        {"gate": number, "rule": f"rule {number}", "verdict": verdict}
        for number, verdict in ((1, "passed"), (1, "failed"), (1, "passed"), (2, "too_few_users"))
    ]
    columns = [[str(cell) for cell in column.cells] for column in tables.rules(rows).columns]
    assert columns == [
        ["1", "2"],
        ["rule 1", "rule 2"],
        ["2 [green]passed[/green], 1 [bold red]failed[/bold red]", "1 [yellow]too few users[/yellow]"],
    ]
