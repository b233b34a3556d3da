"""Results of this process as frames: what hands them on, and how they show themselves."""

from __future__ import annotations

import pickle
import re
import time
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import ResultTable, evaluate
from rankeval_spark.errors import ConfigError, InvalidCallError
from tests.support.html import parsed
from tests.support.sections import sections

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

HOSTILE: Final = "<script>x</script>|_a&b\\"
USERS: Final = [f"u{number:02}" for number in range(40)]
NAMES: Final = ("model_id", "user_id", "item_id", "rank")


def evaluated(models: dict[str, int], **options: Any) -> Evaluation:  # noqa: ANN401 - of evaluate
    """Evaluate models that have the one hit at a rank of their own, a rank lower for every other user."""
    rows = []
    for model, best in models.items():
        for number, user in enumerate(USERS):
            hit = best + number % 2
            items = [f"i{place}" for place in range(1, 9)]
            items[hit - 1] = "hit"
            rows += [(model, user, item, place) for place, item in enumerate(items, start=1)]
    log = pa.table(dict(zip(NAMES, zip(*rows, strict=True), strict=True)))
    held_out = pa.table({"user_id": USERS, "item_id": ["hit"] * len(USERS)})
    segments = pa.table({"user_id": USERS, "tier": ["one", "one", "two", "two"] * (len(USERS) // 4)})
    return evaluate(log, held_out, **sections(segments=segments, slices=["tier"], **options))


@pytest.fixture(scope="module")
def result() -> Evaluation:
    """Give three models, each significantly better than the next; one has a hostile name."""
    models = {"als": 1, HOSTILE: 4, "item_knn": 2}
    return evaluated(models, measures=["RR", "P@2", "unj@2"], baseline="item_knn", min_slice_size=5)


def results_of(evaluation: Evaluation) -> dict[str, ResultTable]:
    """Return every result by its name."""
    names = ("metrics", "comparisons", "user_metrics", "user_values", "ranked_items", "checks", "gaps", "group_metrics")
    called = {
        "leaderboard": evaluation.leaderboard(),
        "agreement": evaluation.agreement("als"),
        "hit_ranks": evaluation.hit_ranks("als", "item_knn"),
    }
    return {**{name: getattr(evaluation, name) for name in names}, **called}


def test_every_library_reads_the_rows_of_every_result(result: Evaluation) -> None:
    for table in results_of(result).values():
        plain, rows = table.to_arrow(), table  # duckdb finds `rows` by its name
        assert (type(rows), type(plain)) == (ResultTable, pa.Table)
        assert pa.table(table) == plain
        assert table == plain
        assert pl.DataFrame(table).equals(pl.DataFrame(plain))
        assert table.to_polars().equals(pl.DataFrame(plain))
        assert duckdb.sql("SELECT * FROM rows").to_arrow_table().to_pylist() == plain.to_pylist()
        pd.testing.assert_frame_equal(table.to_pandas(), plain.to_pandas())
        assert list(table) == table.to_pylist() == plain.to_pylist()
        assert len(table) == table.num_rows == plain.num_rows
        assert table.columns == table.column_names == plain.column_names


def test_pandas_and_altair_take_a_leaderboard_as_it_is(result: Evaluation) -> None:
    board = result.leaderboard()
    pd.testing.assert_frame_equal(pd.DataFrame(board), board.to_pandas())
    drawn = alt.Chart(board).mark_bar().encode(x="RR", y="model_id").to_dict()
    assert {name: axis["type"] for name, axis in drawn["encoding"].items()} == {"x": "quantitative", "y": "nominal"}
    assert list(drawn["datasets"].values()) == [board.to_pylist()]


def test_an_evaluation_takes_a_result_as_its_input(result: Evaluation) -> None:
    ranked = result.ranked_items
    again = evaluate(ranked, pa.table({"user_id": USERS, "item_id": ["hit"] * len(USERS)}), measures=["RR"])
    assert again.leaderboard()["RR"].to_pylist() == pytest.approx([3 / 4, 5 / 12, 9 / 40], rel=0, abs=1e-12)


def test_calls_of_arrow_return_such_a_table_again(result: Evaluation) -> None:
    board, is_first = result.leaderboard(), pc.field("RR") > 0.5
    found = [board.filter(is_first), board.select(["model_id"]), board.sort_by("RR"), board.slice(0, 2), board[:2]]
    assert [type(one) for one in found] == [ResultTable] * 5
    assert [one.num_rows for one in found] == [1, 3, 3, 2, 2]
    assert board["P@2"].to_pylist() == board.column("P@2").to_pylist() == [1 / 2, 1 / 4, 0]
    groups = result.metrics.group_by("model_id").aggregate([("value", "max")])
    assert isinstance(groups, ResultTable)
    assert groups.num_rows == 3
    assert board.join(board, "model_id", right_suffix="_2").num_columns == 9
    assert pickle.loads(pickle.dumps(board)) == board
    with pytest.raises(AttributeError, match="'ResultTable' object has no attribute 'colum'"):
        _ = board.colum


def test_a_leaderboard_has_letters_of_the_models_that_are_beaten(result: Evaluation) -> None:
    board = result.leaderboard().select(["model_id", "n_users", "RR"])
    first, *lines = repr(board).splitlines()
    assert first == "leaderboard: 3 models"
    assert lines[:4] == [
        "   model                         RR    users",
        "a  als                       0.7500 b     40",
        "b  item_knn                  0.4167 c     40",
        "c  <script>x</script>|_a&b\\  0.2250       40",
    ]
    assert " ".join(lines[4:]) == f"{BY_LETTERS} {OF_BASELINE}"


BY_LETTERS: Final = (
    "Letters name the models that a value is significantly better than, by the paired t test, two-sided at 0.05, with "
    "Holm's correction within its family of tests."
)
OF_BASELINE: Final = "Models are compared with item_knn alone."


def test_the_letters_are_those_of_the_comparisons(result: Evaluation) -> None:
    """Both ways: what is worse than the baseline gives the baseline its letter. Neither side of unj is better."""
    rows = parsed(result.leaderboard()._repr_html_()).one("tbody").all("tr")
    marks = [[one.words for one in row.all("sup")] for row in rows]
    of_all = result.comparisons.filter(pc.field("slice") == "all").to_pylist()
    verdicts = {(row["model_id"], row["measure"]): row["verdict"] for row in of_all}
    assert [verdicts["als", name] for name in ("RR", "P", "unj")] == ["better", "better", "different"]
    assert [verdicts[HOSTILE, name] for name in ("RR", "P", "unj")] == ["worse", "worse", "different"]
    assert marks == [["b", "b"], ["c", "c"], ["", ""]]


def test_a_hostile_model_is_text_everywhere(result: Evaluation) -> None:
    board = result.leaderboard()
    for html in (board._repr_html_(), result.comparisons._repr_html_(), result.metrics._repr_html_()):
        page = parsed(html)
        assert page.all("script") == []
        assert HOSTILE in [one.words for one in page.all("td")]
    assert r"| \<script\>x\</script\>\|\_a&b\\ |" in board.to_markdown()
    assert r"$<$script$>$x$<$/script$>$$|$\_a\&b\textbackslash{} &" in board.to_latex()


def test_the_best_of_each_measure_is_bold_in_the_direction_of_the_measure() -> None:
    """The lower Gini is the better one; neither side of Judged is."""
    items = pa.table({"item_id": ["hit", *(f"i{place}" for place in range(1, 9))]})
    result = evaluated({"late": 7, "first": 1}, measures=["Gini@2", "P@2", "Judged@2"], items=items)
    board = result.leaderboard()
    assert [row["Gini@2"] for row in board] == pytest.approx([13 / 16, 7 / 8], rel=0, abs=1e-12)
    rows = parsed(board._repr_html_()).one("tbody").all("tr")
    assert [[cell.words for cell in row.all("b")] for row in rows] == [["0.8125", "0.5000"], []]
    lines = parsed(result.metrics._repr_html_()).one("tbody").all("tr")
    bold = [[cell.words for cell in line.all("b")] for line in lines]
    assert bold == [["0.812"], [], [], [], ["0.500"], []] * 3
    assert parsed(result.group_metrics._repr_html_()).all("b") == []  # a gap is neither better nor worse


def test_means_are_shown_with_intervals_best_first_and_cut(result: Evaluation) -> None:
    rows = result.metrics
    head, titles, *lines = repr(rows).splitlines()
    assert head == "metrics: 27 rows"
    assert titles.split() == ["model", "slice", "measure", "value", "95", "%", "interval", "users"]
    assert [line.split()[0] for line in lines[:3]] == ["als", "item_knn", HOSTILE]
    assert lines[20] == "7 more rows: to_pandas() has all"
    assert lines[21].startswith("17 more columns: n_lists, n_undefined, ")
    assert max(map(len, lines)) <= 120
    kept = repr(rows.sort_by([("value", "ascending")])).splitlines()[2:5]
    assert [line.split()[0] for line in kept] != ["als", "item_knn", HOSTILE]


def test_a_terminal_of_80_columns_has_fewer_columns(result: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = repr(result.user_metrics).splitlines()
    assert lines[0] == "user_metrics: 240 rows"
    assert max(map(len, lines)) <= 80
    assert "more columns: " in " ".join(lines[-3:])


def test_latex_has_a_row_a_model_and_says_the_test(result: Evaluation) -> None:
    board = result.leaderboard().select(["model_id", "RR"]).slice(0, 2)
    assert board.to_latex(caption="Two models.", label="tab:two").splitlines() == [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{Two models. {BY_LETTERS}}}",
        r"\label{tab:two}",
        r"\begin{tabular}{llr}",
        r"\toprule",
        r" & model & RR \\",
        r"\midrule",
        r"a & als & \textbf{0.7500}\textsuperscript{b} \\",
        r"b & item\_knn & 0.4167 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    lines = result.comparisons.to_latex().splitlines()
    assert sum(line.endswith(r"\\") for line in lines) == 1 + result.comparisons.num_rows


def test_markdown_has_a_row_a_model_and_says_the_test(result: Evaluation) -> None:
    board = result.leaderboard().select(["model_id", "RR"]).slice(0, 2)
    assert [re.sub(" +", " ", line) for line in board.to_markdown().splitlines()] == [
        "| | model | RR |",
        "| :--- | :--- | ---: |",
        "| a | als | **0.7500**<sup>b</sup> |",
        r"| b | item\_knn | 0.4167 |",
        "",
        BY_LETTERS,
    ]


def test_an_unknown_small_result_is_refused_with_the_nearest(result: Evaluation) -> None:
    assert result.as_table("comparisons") == result.comparisons
    with pytest.raises(ConfigError, match="did you mean 'metrics'"):
        result.as_table("metric")


def test_a_leaderboard_is_shown_within_20_ms(result: Evaluation) -> None:
    board = result.leaderboard()
    repr(board)
    started = time.process_time()
    found = repr(board), board._repr_html_()
    assert time.process_time() - started < 0.02
    assert all(found)


def test_an_empty_result_shows_its_columns(result: Evaluation) -> None:
    for table in results_of(result).values():
        none = table.slice(0, 0)
        assert ": 0 " in repr(none)
        assert none.to_markdown().count("\n") == 2
        assert parsed(none._repr_html_()).one("tbody").all("tr") == []
        assert r"\midrule" in none.to_latex()


def test_a_page_without_comparisons_has_no_letters() -> None:
    board = evaluated({"als": 1, "knn": 2}, measures=["RR"]).leaderboard()
    assert repr(board).splitlines() == [
        "leaderboard: 2 models",
        "model      RR  users",
        "als    0.7500     40",
        "knn    0.4167     40",
    ]


def test_rows_are_kept_by_value_and_by_measure_with_its_cutoff(result: Evaluation) -> None:
    metrics = result.metrics
    kept = metrics.where(measure=["P@2", "RR"], slice="tier", model_id="als")
    assert isinstance(kept, ResultTable)
    plain = metrics.to_pandas().query("slice == 'tier' and model_id == 'als' and measure in ('P', 'RR')")
    assert len(plain) == 4
    assert (
        kept.to_pylist() == ResultTable(pa.Table.from_pandas(plain, metrics.schema, preserve_index=False)).to_pylist()
    )
    assert metrics.where(measure="P", k=2) == metrics.where(measure="P@2")
    assert result.comparisons.where(verdict="no such").num_rows == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": "als"}, r"where\(model=\): found no such column; expected .*did you mean 'model_id'"),
        ({"measure": "P@3"}, r"where\(measure=\): found 'P@3', which no row has; expected P, RR"),
        ({"slice": ["all", "teir"]}, r"found 'teir', which no row has; expected all, tier; did you mean 'tier'"),
        ({"k": "ten"}, r"where\(k=\): found 'ten'; expected a value of type int32"),
    ],
)
def test_rows_of_a_name_that_no_row_has_are_refused(result: Evaluation, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidCallError, match=message):
        result.metrics.where(**values)


def rank_of_hit(ranks: list[int]) -> float | None:
    return ranks[0] if ranks and ranks[0] > 1 else None


def test_means_of_some_users_say_so_below_a_leaderboard() -> None:
    """Of 40 users half have their hit first: under a no value, under b one for everyone."""
    board = evaluated({"a": 1, "b": 2}, measures=["RR", rank_of_hit]).leaderboard()
    said = "Means of those users only who have a value: rank_of_hit (20 to 40)."
    texts = (repr(board), board._repr_html_(), board.to_markdown(), repr(board.where(model_id="a")))
    assert all(said in text for text in texts)
    assert "rank\\_of\\_hit (20 to 40)" in board.to_latex()
    assert "who have a value" not in repr(evaluated({"a": 1}, measures=["RR"]).leaderboard())


def test_an_interval_whose_level_is_not_there_has_a_heading() -> None:
    means = evaluated({"a": 1}, measures=["RR"]).metrics
    assert " 95 % interval " in repr(means)
    assert " interval " in repr(means.drop_columns("ci_level"))
    assert "ci_low" not in repr(means.drop_columns("ci_level"))
