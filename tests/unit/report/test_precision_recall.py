"""Figures of precision over recall: their curves, where two cross, their bands, and the panels."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import InvalidCallError
from rankeval_spark.report import figures
from rankeval_spark.report.figures.charts import NothingToDrawError
from rankeval_spark.report.figures.precision_recall import find_crossings, find_spots, mean_points
from tests.support.arrow_frames import table

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

KS = range(1, 9)
AT_KS = [f"{name}@{k}" for k in KS for name in "PR"]
HITS = {"als": {1, 3, 7}, "knn": {2, 4, 5}}
N_RELEVANT = 4


@pytest.fixture(scope="module")
def result() -> Evaluation:
    """Evaluate two lists of eight items, with four relevant items r0 to r3 that the lists have in order."""
    names = {model: dict(zip(sorted(ranks), ("r0", "r1", "r2"), strict=True)) for model, ranks in HITS.items()}
    log = [(model, "u", names[model].get(rank, f"{model}{rank}"), rank) for model in HITS for rank in KS]
    held_out = table("user_id item_id", *(("u", f"r{n}") for n in range(N_RELEVANT)))
    levels = [f"IPrec@{level / 10:g}" for level in range(11)]
    return evaluate(table("model_id user_id item_id rank", *log), held_out, measures=[*AT_KS, *levels])


def drawn(figure: figures.Figure, kind: str) -> list[list[dict[str, Any]]]:
    """Return the rows of the layers of one kind, by panel."""
    spec = figure.chart.to_dict()
    return [
        [row for layer in panel["layer"] if layer["mark"]["type"] == kind for row in layer["data"]["values"]]
        for panel in spec.get("vconcat", [spec])
    ]


@pytest.mark.parametrize("model", HITS)
def test_the_area_under_the_raw_steps_of_a_list_is_its_average_precision(result: Evaluation, model: str) -> None:
    curve = mean_points(result.metrics.to_arrow(), find_spots(result.metrics.to_arrow(), raw=True))[model]
    points = [(Fraction(sum(rank <= k for rank in HITS[model]), N_RELEVANT), k) for k in KS]
    expected = [(0, points[0][0] * N_RELEVANT), *((recall, recall * N_RELEVANT / k) for recall, k in points)]
    found = [(point["recall"], point["precision"]) for point in curve]
    np.testing.assert_allclose(found, np.array(expected, float), rtol=0, atol=1e-12)
    area = sum((b["recall"] - a["recall"]) * b["precision"] for a, b in pairwise(curve))
    precisions = [Fraction(number, rank) for number, rank in enumerate(sorted(HITS[model]), 1)]
    assert area == pytest.approx(float(sum(precisions) / N_RELEVANT), rel=0, abs=1e-12)


def test_models_lie_on_one_another_and_each_over_its_users(result: Evaluation) -> None:
    for raw, n_points in ((False, 11), (True, 1 + len(KS))):
        figure = result.plot.pr_curve(raw=raw)
        assert [panel["title"] for panel in figure.chart.to_dict()["vconcat"]] == ["all models", "als", "knn"]
        lines = drawn(figure, "line")
        assert [len(rows) for rows in lines] == [2 * n_points, 2 * n_points, 2 * n_points]  # a user and the mean
        one_user, mean = lines[1][:n_points], lines[1][n_points:]
        assert [row["precision"] for row in one_user] == [row["precision"] for row in mean]
        assert len(drawn(result.plot.pr_curve(raw=raw, users=False), "line")) == 1
        assert len(drawn(result.plot.pr_curve("als", raw=raw), "line")) == 1


def test_the_caption_says_where_two_models_cross(result: Evaluation) -> None:
    """At k = 1 als has the only hit; at rank 5 knn has three of five, als two. Rank 4 is the second hit of knn."""
    figure = result.plot.pr_curve(raw=True, users=False)
    (rings,) = (
        layer["data"]["values"]
        for layer in figure.chart.to_dict()["layer"]
        if layer["mark"]["type"] == "point" and not layer["mark"]["filled"]
    )
    # als is above up to recall 2/4 by its hits at 1 and 3; then knn, which is at 3/4 with 3/5, als with 3/7
    assert rings == [{"models": "als and knn", "recall": 0.5, "precision": pytest.approx((0.5 + 0.6) / 2)}]
    assert "A ring marks where two models cross: als and knn at recall 0.50." in figure.caption
    assert "No two models cross" not in figure.caption


def test_bands_and_their_words_end_at_0_and_1(result: Evaluation) -> None:
    wide = result.metrics.to_arrow()
    for name, end in (("ci_low", -0.25), ("ci_high", 1.25)):
        place = wide.schema.get_field_index(name)
        wide = wide.set_column(place, name, pa.repeat(pa.scalar(end), wide.num_rows))
    for raw in (False, True):
        (rows,) = drawn(figures.pr_curve(wide, raw=raw), "area")
        assert {(row["low"], row["high"]) for row in rows} == {(0, 1)}
        assert {row["interval"] for row in rows} == {"0.000 to 1.000, uncertain"}  # of one user


def naive_turns(one: np.ndarray, other: np.ndarray) -> int:
    """Count changes of side of two series."""
    signs = [sign for sign in np.sign(np.round(one - other, 12)) if sign]
    return sum(first != second for first, second in pairwise(signs))


@pytest.mark.parametrize("is_stepped", [False, True])
def test_crossings_are_those_of_the_curves_read_at_ten_thousand_recalls(is_stepped: bool) -> None:
    draw, fine = random.Random(7), (np.arange(10_000) + 0.5) / 10_000
    for _ in range(60):
        curves = {}
        for name in "xy":
            recalls = sorted(draw.sample(range(1, 20), 6)) if is_stepped else [2 * n for n in range(6)]
            levels = [0.0, *(recall / 20 for recall in recalls), 1.0]
            heights = [draw.randrange(9) / 8 for _ in levels]
            heights[0] = heights[1] if is_stepped else heights[0]
            curves[name] = list(zip(levels, heights, strict=True))
        read = []
        for curve in curves.values():
            at, height = np.array(curve).T
            at_fine = height[np.searchsorted(at, fine)] if is_stepped else np.interp(fine, at, height)
            read.append(at_fine)
        rows = {name: [{"recall": r, "precision": p} for r, p in curve] for name, curve in curves.items()}
        found = find_crossings(rows, is_stepped=is_stepped)
        assert len(found) == naive_turns(*read)
        for cross in found:  # both curves pass the place: on the one side above, on the other below
            near = np.abs(fine - cross["recall"]) < 2e-4
            for values in read:
                assert values[near].min() - 2e-2 <= cross["precision"] <= values[near].max() + 2e-2


def test_a_wrong_model_and_missing_measures_are_refused(result: Evaluation) -> None:
    with pytest.raises(InvalidCallError, match=r"found 'alz'; expected a model .*did you mean 'als'"):
        result.plot.pr_curve("alz")
    log, held_out = table("user_id item_id rank", ("u", "a", 1)), table("user_id item_id", ("u", "a"))
    of_p = evaluate(log, held_out, measures=["P@1"])
    with pytest.raises(NothingToDrawError, match=r"no rows of P and R at the same cutoff.*request P@1, R@1"):
        of_p.plot.pr_curve(raw=True)
