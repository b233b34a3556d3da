"""Measures of one item group, of values beside the gains and of the catalogue, from the tables to the users' values."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.measures import Measure, Ranking
from tests.support import oracles
from tests.support.arrow_frames import by, dicts, table, where
from tests.support.item_groups import Case
from tests.support.sections import sections

ASKED: Final = (
    *(f"nDCG(group='{group}')@3" for group in ("head", "middle", "tail", "rock", "sci-fi")),
    *("P(group='tail')@3", "R(agg='micro',group='tail')@3", "AP(rel=2,group='head')", "Bpref(group='rock')"),
    *("Judged(group='middle')@3", "RMSE(group='tail')", "nDCG(gains='value',group='tail')@5"),
    *("R(gains='value')@3", "R(rel=2,agg='micro',gains='value')@5", "DCG(gains='value')@3", "nCG(gains='value')@3"),
    *("nDCG(unjudged='mean')@3", "nDCG(group='rock',unjudged='median')@3", "ClassAccuracy@3", "MCC@3", "P@3"),
)


def expected_value(measure: Measure, one: Ranking) -> float:
    """Value of a user where those without a relevant judgement score 0, unless the group has no judgement of theirs."""
    value = oracles.expected(measure, one)
    if not math.isnan(value):
        return value
    of_group = one if measure.group is None else oracles.within(one, measure.group)
    has_judgements = of_group.missed or any(gain is not None for gain in of_group.gains)
    filled = measure.without_relevant
    return filled if has_judgements else math.nan


ALL_LISTS: Final = ("Gini@3", "Entropy@3", "Entropy(norm=True)@3", "Personalization@3")

OF_ALL_ITEMS: Final = ("nDCG@3", "R(agg='micro')@3", "AP(rel=2)", "Bpref", "RMSE(group='tail')", "ClassAccuracy@3")


@pytest.mark.parametrize(
    ("asked", "policies"),
    [
        pytest.param(ASKED, {}, id="defaults"),
        pytest.param(ASKED[:8], {"judged_only": True}, id="gains known before the ranks"),
        pytest.param(OF_ALL_ITEMS, {"ties": "optimistic"}, id="ties by gain"),
    ],
)
def test_users_values_are_those_of_the_naive_references(asked: tuple[str, ...], policies: dict[str, Any]) -> None:
    case = Case(seed=11)
    result = evaluate(**sections(**case.tables(), measures=asked, population="judged", **policies))
    found = by(result.user_values, "measure", "user_id", value="value")
    for text in asked:
        measure = Measure.parse(text)
        expected = {user: expected_value(measure, case.ranking(user, **policies)) for user in case.held}
        values = [math.nan if found[measure.label, user] is None else found[measure.label, user] for user in expected]
        np.testing.assert_allclose(values, list(expected.values()), rtol=0, atol=1e-12, err_msg=text)
    without_head = {found["nDCG(group='head')", user] for user in case.held} if asked != OF_ALL_ITEMS else {None}
    assert None in without_head, "a user without a judgement of the head"


def test_values_and_gains_that_do_not_count_are_checked_where_a_measure_reads_them() -> None:
    inputs = Case(seed=11).tables()
    held = dicts(inputs["held_out"])
    n_unusable = sum(row["value"] is None or math.isnan(row["value"]) for row in held)
    n_low = sum(0 < row["gain"] < 1 for row in held)

    def of(*measures: str) -> dict[str, Any]:
        checks = evaluate(inputs["recommendations"], inputs["held_out"], measures=measures).checks
        rows = dicts(where(checks, input="held_out"))
        return {row["check"]: (row["count"], row["share"], row["verdict"]) for row in rows}

    checked = of("R(gains='value')@3")
    assert checked["invalid_values"] == (n_unusable, n_unusable / len(held), "error")
    assert checked["low_gains"] == (n_low, n_low / len(held), "warn")


def test_what_a_measure_lacks_is_reported_before_anything_is_computed() -> None:
    inputs = Case(seed=11).tables()
    log, held_out = inputs["recommendations"], inputs["held_out"].drop_columns("value")
    with pytest.raises(InputError, match=r"found no column 'value'; expected the column, for R\(gains='value'\)"):
        evaluate(log, held_out, measures=["R(gains='value')@3", "P@3"])
    with pytest.raises(ConfigError, match=r"train=.*P\(group='tail'\)(.|\n)*items=.*P\(group='rock'\)"):
        evaluate(log, held_out, measures=["P(group='tail')@3", "P(group='rock')@3"])
    with pytest.raises(InputError, match=r"found no column 'categories'; expected the column, for P\(group='rock'\)"):
        evaluate(log, held_out, measures=["P(group='rock')@3"], items=inputs["items"].drop_columns("categories"))
    with pytest.raises(InputError, match="ClassAccuracy@3 without a catalogue"):
        evaluate(log, held_out, measures=["ClassAccuracy@3"])
    with pytest.raises(InputError) as raised:
        evaluate(log, held_out, measures=["ClassAccuracy@3", "R(gains='value')@3"], policies={"ties": "rank"})
    assert [fault.found for fault in raised.value.faults] == [
        "no column 'rank'",
        "ClassAccuracy@3 without a catalogue",
        "no column 'value'",
    ], "a policy, a measure without its input and one without its column, all at once"


@pytest.mark.parametrize("hits", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("n_users", [6, 30, 90])
def test_intervals_of_groups_stay_in_the_range_of_their_measure(n_users: int, hits: float) -> None:
    draw = np.random.default_rng(round(100 * hits) + n_users)
    users = [f"u{number}" for number in range(n_users)]
    lists = {user: draw.permutation(list("abcdefgh"))[:3].tolist() for user in users}
    rows = [("m", user, item, -float(rank)) for user, items in lists.items() for rank, item in enumerate(items)]
    judged = [(user, items[draw.integers(3)] if draw.random() < hits else "h", 1.0) for user, items in lists.items()]
    found = evaluate(
        table("model_id user_id item_id score", *rows),
        table("user_id item_id gain", *judged),
        segments=table("user_id country", *((user, "ABC"[place % 3]) for place, user in enumerate(users))),
        items=table("item_id", *((item,) for item in "abcdefghi")),
        measures=["GMAP@3", "GMAP(floor=0.01)@3", "LogAP@3", "AP@3", *ALL_LISTS, "R(agg='micro')@3"],
        slices=["country"],
        slicing={"min_slice_size": 2},
    ).group_metrics
    n_intervals = 0
    for row in (row for row in found.to_pylist() if row["ci_low"] is not None):
        n_intervals += 1
        kind, _, label = row["measure"].partition("(")
        low, high = Measure.parse(f"{label[:-1]}@3").bounds
        low, high = {"GroupGap": (0, high - low), "GroupRatio": (0, 1)}.get(kind, (low, high))
        assert low <= row["ci_low"] <= row["value"] <= row["ci_high"] <= high, row["measure"]
        assert row["ci_low"] < row["ci_high"], row["measure"]
    assert n_intervals > 10
