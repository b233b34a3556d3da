"""What must hold of the agreement of two models' lists, and how their items are matched."""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, strategies as st

from rankeval_spark.apps.trec_report import requested_lines
from rankeval_spark.engine.scorer import to_item_facts
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Background, Lists, Measure, MeasureSet, Ranking
from tests.support.oracles.agreement import rank_biased_overlap
from tests.support.scored import KS, assert_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankeval_spark.measures.arrays import FloatVector

NAMES = ("Overlap", "Jaccard", "RBO(p=0.9)", "RBO(p=0.4)")

shown = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=9)


@cache
def measure_of(name: str, model: str = "other") -> Measure:
    """Read a measure beside a model."""
    base, _, options = name.partition("(")
    return Measure.parse(f"{base}(model='{model}'{',' + options if options else ')'}@1")


@cache
def at_every_cutoff(name: str) -> MeasureSet:
    """Read a measure beside a model at each of ``KS``."""
    return MeasureSet.of([measure_of(name).at(k) for k in KS])


def curve(name: str, own: Sequence[str], other: Sequence[str]) -> FloatVector:
    """Value of a measure at each of ``KS``, of two lists of items."""
    ranks = [own.index(item) + 1 if item in own else None for item in other]
    one = Ranking([None] * len(own), background=Background(others=[("other", ranks)]))
    (found,) = at_every_cutoff(name).score(Lists.of([one])).values()
    values: FloatVector = found[0]
    return values


@pytest.mark.parametrize("name", NAMES)
@given(own=shown, other=shown)
def test_agreement_is_that_of_the_other_model_with_this_one(name: str, own: list[str], other: list[str]) -> None:
    values = curve(name, own, other)
    assert_equal(values, curve(name, other, own))
    assert np.isnan(values).all() == (not own or not other)
    assert np.all(((values >= 0) & (values <= 1)) | np.isnan(values))


@pytest.mark.parametrize("name", NAMES)
@given(own=shown)
def test_a_list_agrees_with_itself_wholly_and_with_other_items_not_at_all(name: str, own: list[str]) -> None:
    assume(own)
    whole = np.minimum(KS, len(own)) / KS if name == "Overlap" else np.ones(len(KS))
    assert_equal(curve(name, own, own), whole)
    assert_equal(curve(name, own, [item.upper() for item in own]), np.zeros(len(KS)))


@given(own=shown, other=shown)
def test_jaccard_follows_from_overlap_where_both_lists_are_long_enough(own: list[str], other: list[str]) -> None:
    is_long = np.array(KS) <= min(len(own), len(other))
    overlap, jaccard = (curve(name, own, other)[is_long] for name in ("Overlap", "Jaccard"))
    assert_equal(jaccard, overlap / (2 - overlap))


@given(own=shown, other=shown)
def test_an_impatient_user_sees_the_first_place_alone(own: list[str], other: list[str]) -> None:
    assume(own and other)
    np.testing.assert_allclose(curve("RBO(p=0.0000001)", own, other), own[0] == other[0], rtol=0, atol=1e-6)


@given(own=st.permutations("abcdefgh"), places=st.tuples(st.integers(0, 7), st.integers(0, 7)))
def test_a_change_further_up_costs_more_of_rank_biased_overlap(own: list[str], places: tuple[int, int]) -> None:
    high, low = sorted(places)
    changed = [[*own[:place], "new", *own[place + 1 :]] for place in (high, low)]
    above, below = (curve("RBO(p=0.9)", own, other) for other in changed)
    assert np.all(above <= below + 1e-12)


@given(lists=st.tuples(shown, shown, shown))
def test_two_other_models_do_not_meet(lists: tuple[list[str], list[str], list[str]]) -> None:
    own, *others = lists
    ranks = [
        (name, [own.index(i) + 1 if i in own else None for i in one]) for name, one in zip("xy", others, strict=True)
    ]
    batch = Lists.of([Ranking([None] * len(own), background=Background(others=ranks))])
    asked = MeasureSet.of([measure_of(name, model).at(3) for name in NAMES for model in "xy"])
    assert asked.other_models == ("x", "y")
    found = asked.score(batch)
    for (name, model), column in zip(itertools.product(NAMES, "xy"), asked.columns, strict=True):
        assert_equal(found[column][0], curve(name, own, others["xy".index(model)])[[KS.index(3)]])


def test_long_lists_and_a_patient_user_cost_no_precision() -> None:
    own = [f"i{place}" for place in range(600)]
    other = [*own[300:450], *(f"o{place}" for place in range(50)), *own[:300]]
    ranks = [own.index(item) + 1 if item in own else None for item in other]
    batch = Lists.of([Ranking([None] * len(own), background=Background(others=[("m", ranks)]))])
    for p in (0.5, 0.99, 0.9999):
        asked = MeasureSet.parse([f"RBO(model='m',p={p})@400", f"RBO(model='m',p={p})"])
        (values,) = asked.score(batch).values()
        expected = [float(rank_biased_overlap(*both, p)) for both in ((own[:400], other[:400]), (other, own))]
        np.testing.assert_allclose(values, [expected], rtol=0, atol=1e-12)


def arrow(lists: Sequence[Sequence[tuple[int, Any]]], id_type: pa.DataType) -> pa.Array:
    """Write facts of items, their rank and their id, as Spark hands them over."""
    rows = [[{"rank": rank, "item_id": item} for rank, item in one] for one in lists]
    return pa.array(rows, pa.list_(pa.struct([("rank", pa.int32()), ("item_id", id_type)])))


def others(id_type: pa.DataType, **models: Sequence[Sequence[tuple[int, Any]] | None]) -> pa.Array:
    """Write the lists of other models."""
    one = pa.struct([("length", pa.int32()), ("ranks", pa.list_(pa.int32())), ("items", pa.list_(id_type))])
    rows = [
        {name: None if rows[place] is None else _list(rows[place] or []) for name, rows in models.items()}
        for place in range(len(next(iter(models.values()))))
    ]
    return pa.array(rows, pa.struct([(name, one) for name in models]))


def _list(rows: Sequence[tuple[int, Any]]) -> dict[str, Any]:
    return {
        "length": max(rank for rank, _ in rows),
        "ranks": [rank for rank, _ in rows],
        "items": [item for _, item in rows],
    }


@pytest.mark.parametrize(("id_type", "ids"), [(pa.string(), "abcd"), (pa.int64(), (1, -(2**62), 3, 2**62))])
def test_items_are_matched_list_by_list_whatever_their_ids(id_type: pa.DataType, ids: Sequence[Any]) -> None:
    a, b, c, d = ids
    own = arrow([[(1, a), (2, b)], [], [(1, c), (2, a), (3, d)], [(1, a)]], id_type)
    popular = [[(1, b), (2, c)], [(1, a)], [(1, a), (2, c), (3, b)], None]
    facts = to_item_facts(own, None, None, None, others(id_type, popular=popular, random=[None] * 4))
    shared = facts.known_shared["popular"]
    assert [*zip(shared.owner.tolist(), shared.depth.tolist(), strict=True)] == [(0, 2), (2, 2), (2, 2)]
    assert shared.length.tolist() == [2, 1, 3, 0]
    nothing = facts.known_shared["random"]
    assert (nothing.owner.tolist(), nothing.length.tolist()) == ([], [0, 0, 0, 0])


def test_second_copy_of_an_item_meets_the_second() -> None:
    own = arrow([[(1, "a"), (2, "b"), (3, "a"), (4, "a")]], pa.string())
    facts = to_item_facts(own, None, None, None, others(pa.string(), m=[[(1, "b"), (2, "a"), (3, "c"), (5, "a")]]))
    shared = facts.known_shared["m"]
    assert sorted(shared.depth.tolist()) == [2, 2, 5]
    assert shared.length.tolist() == [5]


def test_batches_without_a_list_have_nothing_in_common() -> None:
    facts = to_item_facts(arrow([], pa.string()), None, None, None, others(pa.string(), m=[]))
    assert facts.known_shared["m"].length.tolist() == []


def test_the_other_model_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r"no option 'model'; expected model as a model of the same run; write RBO\("):
        Measure.parse("RBO@10")
    assert str(Measure.parse('rbo(MODEL="My Model")@10')) == "RBO(model='My Model',p=0.9)@10"


def test_runs_of_trec_files_do_not_know_the_other_model() -> None:
    with pytest.raises(ConfigError, match="found a measure of the rows of the log; expected one of a run and its judg"):
        requested_lines(["RBO(model='bm25')@10"], level=1, version=10)


def test_the_log_is_what_they_need() -> None:
    asked = MeasureSet.parse(["Overlap(model='popular')@5"])
    assert asked.requiring() == {"the rows of the log": ["Overlap(model='popular')"]}
    assert asked.lacking([]) == {}
