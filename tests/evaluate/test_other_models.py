"""Measures of the agreement of two models, from the log to ``metrics`` and comparisons."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError
from tests.support.arrow_frames import by, dicts, judgements, table, tuples, where
from tests.support.oracles.agreement import common, rank_biased_overlap
from tests.support.sections import measured

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark import Evaluation

Lists = dict[tuple[str, str, str], list[Any]]
"""Items by model, user and list."""

MODELS = ("base", "a 'new', better one", "other.model`")
LABELS = [f"{name}(model={model!r}{p})" for model in MODELS for name, p in (("Overlap", ""), ("RBO", ",p=0.8"))]
KS = (1, 3, 6)
ASKED = [f"{label}@{k}" for label in LABELS for k in KS]


def drawn(items: list[Any]) -> Lists:
    """Draw lists of several lengths: one or two for most users under most models."""
    draw = random.Random(7)
    return {
        (model, f"u{user}", name): draw.sample(items, draw.choice([1, 3, 6, 9]))
        for model in MODELS
        for user in range(12)
        for name in ("home", "cart")
        if draw.random() < 0.7
    }


def inputs(lists: Lists, *, ids: str = "string") -> tuple[pa.Table, pa.Table]:
    """Make a log of these lists, and judgements of a user; ``ids`` is the type of the items."""
    rows = [
        (model, user, name, item, float(-place))
        for (model, user, name), items in lists.items()
        for place, item in enumerate(items)
    ]
    log = table("model_id user_id list_id item_id score", *rows)
    return _with_ids(log, ids), _with_ids(judgements({"u0": {"1": 1}}), ids)


def _with_ids(frame: pa.Table, ids: str) -> pa.Table:
    place = frame.column_names.index(C.ITEM_ID)
    return frame.set_column(place, C.ITEM_ID, frame[C.ITEM_ID].cast({"string": "string", "bigint": "int64"}[ids]))


def evaluated(lists: Lists, *, ids: str = "string", **options: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
    """Evaluate a log of these lists for everyone who got one."""
    return measured(*inputs(lists, ids=ids), population="run", **options)


def values_of(lists: Lists, model: str, k: int) -> dict[tuple[str, str, str], dict[str, float | None]]:
    """Compute overlap and rank-biased overlap with a model by their formulas; None without two lists of two."""
    found: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for (owner, user, name), items in lists.items():
        own, other = items[:k], [] if owner == model else lists.get((model, user, name), [])[:k]
        short, long = sorted((own, other), key=len)
        found[owner, user, name] = {
            f"Overlap(model={model!r})": common(own, other, k) / k if short else None,
            f"RBO(model={model!r},p=0.8)": float(rank_biased_overlap(short, long, 0.8)) if short else None,
        }
    return found


@pytest.mark.parametrize("models", [None, MODELS], ids=["models found", "models named"])
@pytest.mark.parametrize("ids", ["string", "bigint"])
def test_every_list_is_compared_with_the_one_of_the_same_name_of_each_model(
    models: tuple[str, ...] | None, ids: str
) -> None:
    lists = drawn([str(number) for number in range(12)])
    result = evaluated(lists, ids=ids, measures=[*ASKED, "P@3"], models=models)
    found = by(result.user_values, *C.LIST_KEY, C.MEASURE, C.K, value=C.VALUE)
    for k in KS:
        for model in MODELS:
            for key, expected in values_of(lists, model, k).items():
                for label, value in expected.items():
                    shown = found[(*key, label, k)]
                    assert shown == (None if value is None else pytest.approx(value, rel=0, abs=1e-12)), (key, label, k)


def test_agreement_of_an_evaluation_has_the_values_of_the_measures() -> None:
    lists = drawn([*"abcdefghijkl"])
    asked = [f"{name}(model='base'{p})@3" for name, p in (("Overlap", ""), ("Jaccard", ""), ("RBO", ",p=0.8"))]
    result = evaluated(lists, measures=asked)
    rows = result.user_metrics.filter(pc.field("overlap_model_base").is_valid())
    names = ("overlap_model_base", "jaccard_model_base", "rbo_model_base_p_0_8")
    expected = set(tuples(rows, *C.LIST_KEY, *names))
    agreement = result.agreement("base", k=3, p=0.8)
    assert agreement.column_names == [*C.LIST_KEY, "overlap", "jaccard", "rbo"]
    assert {tuple(row.values()) for row in dicts(agreement)} == expected
    assert len(expected) > 10


@pytest.mark.filterwarnings("ignore:recommendations have no row of")
def test_a_model_compared_with_itself_or_with_an_absent_one_has_no_value() -> None:
    lists = {("base", "u0", ""): ["a", "b", "c"], ("new", "u0", ""): ["b"]}
    measures = ["RBO(model='base')@3", "Overlap(model='ghost')@3", "P@3"]
    result = evaluated(lists, measures=measures, baseline="base")
    means = by(result.metrics, C.MODEL_ID, C.MEASURE, value=C.VALUE)
    assert means["base", "RBO(model='base',p=0.9)"] is None
    assert means["new", "RBO(model='base',p=0.9)"] > 0
    assert (means["base", "Overlap(model='ghost')"], means["new", "Overlap(model='ghost')"]) == (None, None)
    reasons = by(result.comparisons, C.MEASURE, value="reason")
    assert reasons["RBO(model='base',p=0.9)"] == "no_common_users"


@pytest.mark.parametrize(("duplicates", "value"), [("best", 1 / 3), ("keep", 2 / 3)])
def test_item_that_both_lists_hold_twice_counts_as_often_as_the_policy_says(duplicates: str, value: float) -> None:
    lists = {("base", "u0", ""): ["a", "b", "a"], ("new", "u0", ""): ["a", "a", "c", "a"]}
    result = evaluated(lists, measures=["Overlap(model='base')@3"], duplicates=duplicates)
    assert by(result.user_metrics, C.MODEL_ID, value="overlap_model_base")["new"] == pytest.approx(value, abs=1e-12)


def test_ranks_that_are_kept_are_those_that_count() -> None:
    rows = [("base", "u0", "a", 1), ("base", "u0", "b", 4), ("new", "u0", "b", 2), ("new", "u0", "a", 3)]
    log = table("model_id user_id item_id rank", *rows)
    held_out = judgements({"u0": {"a": 1}})
    asked = [f"Overlap(model='base')@{k}" for k in (2, 3, 4)]
    result = measured(log, held_out, measures=asked, rank_gaps="keep")
    of_new = by(where(result.user_metrics, model_id="new"), C.K, value="overlap_model_base")
    assert of_new == {2: 0, 3: 1 / 3, 4: 2 / 4}


def test_unknown_model_is_refused_with_the_nearest_one() -> None:
    lists = {("popular", "u0", ""): ["a"]}
    with pytest.raises(ConfigError) as raised:
        evaluated(lists, measures=["Overlap(model='populr')@3", "RBO(model='popular')"], models=["popular", "als"])
    assert [str(fault) for fault in raised.value.faults] == [
        "evaluate(measures=): found model 'populr' in Overlap(model='populr'); "
        "expected one of the models: popular, als; did you mean 'popular'?"
    ]


@pytest.mark.parametrize("population", ["truth", "judged", "intersection", "intersection_judged", "run"])
@pytest.mark.parametrize("compared", [{"baseline": "base"}, {"pairs": "all"}])
@pytest.mark.filterwarnings("ignore:recommendations have no row of 'new'")
def test_a_named_model_without_lists_is_compared_under_every_population(
    population: str, compared: dict[str, Any]
) -> None:
    users = [f"u{number}" for number in range(30)]
    log = table("model_id user_id item_id score", *(("base", user, "a", 1.0) for user in users))
    held_out = table("user_id item_id gain", *((user, "a", 1.0) for user in users))
    segments = table("user_id country", *((user, ("AT", "DE")[user > "u2"]) for user in users))
    options: dict[str, Any] = {"segments": segments, "slices": ["country"], "population": population, **compared}
    result = measured(log, held_out, measures=["P@1"], models=["base", "new"], **options)
    rows = tuples(
        result.comparisons, *(C.BASELINE_MODEL_ID, C.MODEL_ID, "slice_value", "n_users", "delta", "reason", "verdict")
    )
    if population in ("truth", "judged"):
        assert [row[4] for row in rows] == [-1.0] * 3
    else:
        absent = (0, None, "no_common_users", None)
        assert rows == [("base", "new", slice_value, *absent) for slice_value in ("", "AT", "DE")]
    in_metrics = [value for model, value in tuples(result.metrics, C.MODEL_ID, "slice_value") if model == "new"]
    assert in_metrics == [row[2] for row in rows], "the slices of its means"
