"""Each policy the whole way: what it makes of the numbers, and when it refuses."""

from __future__ import annotations

import datetime as dt
import itertools
from statistics import fmean
from typing import Any

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError, JudgementError, RefusedCallError
from tests.support.arrow_frames import by, judgements, ranking, table, tuples, where
from tests.support.sections import sections


def users() -> tuple[pa.Table, pa.Table]:
    """Ann has a hit, Bob no list, Cat no relevant judgement, Dan no judgement at all."""
    log = ranking({"ann": "a b", "cat": "a b", "dan": "a b"})
    return log, judgements({"ann": {"a": 1}, "bob": {"a": 1}, "cat": {"a": 0}})


@pytest.mark.parametrize(
    ("policies", "value", "n_users", "n_undefined"),
    [
        ({"population": "truth", "missing": "exclude"}, 1 / 1, 1, 1),
        ({"population": "judged", "missing": "exclude"}, (1 + 0) / 2, 2, 0),
        ({"population": "judged", "zero_relevant": "one"}, (1 + 0 + 1) / 3, 3, 0),
        ({"population": "intersection_judged"}, (1 + 0) / 2, 2, 0),
        ({"population": "intersection_judged", "zero_relevant": "one"}, (1 + 1) / 2, 2, 0),
        ({"population": "run", "zero_relevant": "zero"}, (1 + 0 + 0) / 3, 3, 0),
        ({"population": "run", "zero_relevant": "one"}, (1 + 1 + 1) / 3, 3, 0),
    ],
    ids=str,
)
def test_policies_decide_who_enters_the_mean_with_what(
    policies: dict[str, str], value: float, n_users: int, n_undefined: int
) -> None:
    """The health counts are the same under all of them."""
    policies_as_arguments: dict[str, Any] = dict(policies)
    result = evaluate(*users(), **sections(measures=["P@1"], **policies_as_arguments))
    names = ("value", "n_users", "n_undefined", "n_missing", "n_zero_relevant", "n_extra_users")
    assert tuples(result.metrics, *names) == [(value, n_users, n_undefined, 1, 1, 1)]


@pytest.mark.parametrize("policy", ["missing", "zero_relevant"])
def test_an_error_policy_fails_the_result_that_meets_its_case(policy: str) -> None:
    policies: dict[str, Any] = {policy: "error"}
    result = evaluate(*users(), **sections(measures=["P@1"], **policies))
    with pytest.raises(RefusedCallError, match=rf"evaluate\(policies=\)\.{policy}: found .*; expected no such case; "):
        _ = result.metrics


def test_contradictions_are_faults_of_the_arguments() -> None:
    with pytest.raises(ConfigError) as raised:
        evaluate(
            *users(), measures=["ERR@3", "P@1"], policies={"population": "run", "missing": "zero", "ties": "item-asc"}
        )
    assert sorted(fault.where for fault in raised.value.faults) == ["evaluate(policies=).ties"]
    with pytest.raises(ConfigError) as raised:
        evaluate(*users(), measures=["P@1"], policies={"population": "run", "missing": "zero"})
    assert [fault.where for fault in raised.value.faults] == ["evaluate(policies=).missing"]
    with pytest.raises(ConfigError, match=r"evaluate\(measures=\): found ERR with ties='expected'"):
        evaluate(*users(), measures=["ERR@3", "P@1"], policies={"ties": "expected"})
    with pytest.raises(ConfigError, match=r"evaluate\(measures=\): found AP\(denom='hits'\) with ties='pessimistic'"):
        evaluate(*users(), measures=["AP(denom='hits')", "P@1"], policies={"ties": "pessimistic"})


def test_ties_can_be_bounded_and_averaged() -> None:
    """One user, a block of four between two other items: bounds and mean are those over the 24 orders of the block."""
    gains = {"top": 0, "a": 2, "b": 0, "c": 1, "low": 3, "missed": 1}
    block = ["a", "b", "c", "d"]
    log = table("user_id item_id score", *(("u", i, 0.5) for i in block), ("u", "top", 0.9), ("u", "low", 0.1))
    held_out = judgements({"u": gains})
    names = ["P@2", "P@3", "RR", "AP@4", "nDCG@3", "nDCG", "Success@2"]

    def found(log: pa.Table, ties: str) -> dict[tuple[str, int], float]:
        values: dict[tuple[str, int], float] = by(
            evaluate(log, held_out, measures=names, policies={"ties": ties}).user_values, "measure", "k", value="value"
        )
        return values

    lists = [["top", *order, "low"] for order in itertools.permutations(block)]
    every_order = table(
        "user_id list_id item_id score",
        *(("u", f"{n}", item, -float(rank)) for n, items in enumerate(lists) for rank, item in enumerate(items)),
    )
    values = tuples(evaluate(every_order, held_out, measures=names).user_values, "measure", "k", "value")
    of_each = {key: [value for *its_key, value in values if tuple(its_key) == key] for key in {v[:2] for v in values}}
    assert {len(each) for each in of_each.values()} == {24}
    best, worst, mean = (found(log, ties) for ties in ("optimistic", "pessimistic", "expected"))
    for key, each in of_each.items():
        assert best[key] == pytest.approx(max(each), rel=0, abs=1e-12), key
        assert worst[key] == pytest.approx(min(each), rel=0, abs=1e-12), key
        assert mean[key] == pytest.approx(fmean(each), rel=0, abs=1e-12), key


@pytest.mark.parametrize(
    ("ids", "items", "by_bytes"),
    [("bigint", (-1, 9, 10), (9, 10, -1)), ("string", ("10", "9", "é"), ("é", "9", "10"))],
)
def test_ties_by_item_descending_reverse_those_ascending(
    ids: str, items: tuple[Any, ...], by_bytes: tuple[Any, ...]
) -> None:
    log = table("user_id item_id score", *((items[0], item, 0.5) for item in items), ids=ids)
    held_out = table("user_id item_id gain", (items[0], items[0], 1.0), ids=ids)
    orders = {"item_asc": items, "item_desc": items[::-1], "item_desc_bytes": by_bytes}
    for ties, order in orders.items():
        result = evaluate(log, held_out, measures=["RR"], policies={"ties": ties})
        assert result.ranked_items["item_id"].to_pylist() == list(order), ties
        assert tuples(result.metrics, "value") == [(1 / (order.index(items[0]) + 1),)]


def test_counts_next_to_expected_values_are_whole() -> None:
    log = table("user_id item_id score", ("u", "a", 0.5), ("u", "b", 0.5))
    result = evaluate(log, judgements({"u": {"b": 1}}), measures=["P@1"], policies={"ties": "expected"})
    assert tuples(result.user_metrics, "p", "n_hits", "has_ties") == [(1 / 2, 0, True)]


def test_judged_items_only() -> None:
    """Of Cat's list nothing is left: she counts as a user without one."""
    log = ranking({"ann": "x a y b", "cat": "x y"})
    held_out = judgements({"ann": {"a": 0, "b": 1}, "cat": {"c": 1}})
    result = evaluate(log, held_out, measures=["RR", "Judged@2"], policies={"judged_only": True})
    assert by(where(result.user_metrics, k=0), "user_id", value="rr") == {"ann": 1 / 2, "cat": 0.0}
    assert set(tuples(result.metrics, "n_missing")) == {(1,)}


def test_a_negative_gain_is_no_judgement_where_judged_items_alone_count() -> None:
    """As of trec_eval -J: it marks an item that was pooled and not judged. Bob's list holds nothing else."""
    log = ranking({"ann": "n a b", "bob": "n"})
    held_out = judgements({"ann": {"n": -1, "a": 1, "b": 0}, "bob": {"n": -1, "c": 1}})
    result = evaluate(log, held_out, measures=["RR", "P@2", "Judged@2"], policies={"judged_only": True})
    found = by(where(result.user_values, user_id="ann"), "measure", value="value")
    assert found == {"RR": 1 / 1, "P": 1 / 2, "Judged": 2 / 2}
    assert set(tuples(result.metrics, "n_missing")) == {(1,)}


def test_single_precision_makes_ties_of_scores_that_hardly_differ() -> None:
    log = table("user_id item_id score", ("u", "a", 0.1), ("u", "b", 0.1 + 1e-9))
    held_out = judgements({"u": {"a": 1}})
    for precision, expected in (("double", 1 / 2), ("single", 1.0)):
        result = evaluate(log, held_out, measures=["RR"], policies={"score_precision": precision})
        assert tuples(result.user_values, "value") == [(expected,)]


@pytest.mark.parametrize("kept", [{"rank_gaps": "keep"}, {"preset": "rectools"}], ids=str)
def test_lists_cut_down_to_judged_items_cannot_keep_their_ranks(kept: dict[str, Any]) -> None:
    """Of x, a, y, b with a relevant and b judged, a stands first when the list closes up."""
    columns = "user_id item_id score rank"
    log = table(columns, ("u", "x", 3.0, 1), ("u", "a", 2.0, 2), ("u", "y", 1.0, 3), ("u", "b", 0.5, 4))
    held_out = judgements({"u": {"a": 1, "b": 0}})
    found = r"evaluate\(policies=\)\.rank_gaps: found rank_gaps='keep'.* with judged_only"
    message = rf"{found}.*pass policies={{'rank_gaps': 'renumber'}}"
    with pytest.raises(ConfigError, match=message):
        evaluate(log, held_out, **sections(measures=["P@1"], judged_only=True, **kept))
    anew: dict[str, Any] = {**kept, "rank_gaps": "renumber"}
    result = evaluate(log, held_out, **sections(measures=["P@1"], judged_only=True, **anew))
    assert tuples(result.metrics, "value") == [(1.0,)]


def test_scores_are_compared_as_trec_eval_9_does_unless_version_10_is_asked_for() -> None:
    """In single precision 0.1 and 0.1 + 1e-9 tie, and the item whose id is greater comes first."""
    log = table("user_id item_id score", ("u", "a", 0.1 + 1e-9), ("u", "b", 0.1))
    held_out = judgements({"u": {"a": 1, "b": 0}})
    of_9 = evaluate(log, held_out, measures=["RR"], preset="trec_eval")
    of_10 = evaluate(log, held_out, measures=["RR"], preset="trec_eval", policies={"score_precision": "double"})
    assert tuples(of_9.metrics, "value") == [(1 / 2,)]
    assert tuples(of_10.metrics, "value") == [(1 / 1,)]


def test_a_gain_that_cannot_be_raised_ends_as_a_readable_fault() -> None:
    log, held_out = ranking({"u": "a"}), judgements({"u": {"a": 2000}})
    result = evaluate(log, held_out, measures=["DCG(dcg='exp-log2')@5"])
    with pytest.raises(JudgementError, match=r"dcg='exp-log2': found a gain of 2000; expected none above 1000"):
        _ = result.metrics


@pytest.mark.parametrize(
    "type_", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32(), pa.int64(), pa.string()], ids=str
)
def test_the_last_judgement_counts_whatever_its_time_is_written_as(type_: pa.DataType) -> None:
    days = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (2, 1)]
    times = pa.array(days, pa.timestamp("s", "UTC")).cast(type_)
    held_out = table("user_id item_id gain", ("u", "a", 1.0), ("u", "a", 5.0)).append_column("interacted_at", times)
    log = ranking({"u": "a"})
    result = evaluate(log, held_out, measures=["CG"], policies={"held_out_duplicates": "last"})
    assert tuples(result.user_values, "value") == [(1.0,)]


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (
            {"held_out_duplicates": "last"},
            r"held_out=\): found no column 'interacted_at'.*pass policies={'held_out_duplicates': 'max'}",
        ),
        ({"rank_gaps": "keep"}, r"recommendations=\): found no column 'rank'.*pass policies={'rank_gaps': 'renumber'}"),
        ({"preset": "rectools"}, r"recommendations=\): found no column 'rank'"),
    ],
)
def test_a_policy_that_needs_a_column_says_so(policies: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(*users(), **sections(measures=["P@1"], **policies))


@pytest.mark.parametrize("gains", [[0.1] * 10, [1e16, 1.0, -1e16], [0.7, 0.2, 0.1]])
def test_gains_that_add_up_to_1_make_an_item_relevant(gains: list[float]) -> None:
    """Added up one after another, each of these sums is below 1."""
    held_out = table("user_id item_id gain", *(("ann", "a", gain) for gain in gains))
    result = evaluate(ranking({"ann": "a"}), held_out, measures=["RR", "CG@1"], policies={"held_out_duplicates": "sum"})
    assert tuples(result.metrics, "measure", "value", "n_users") == [("CG", 1.0, 1), ("RR", 1.0, 1)]
    assert by(result.checks, "input", "check", value="count")["held_out", "zero_relevant"] == 0


def test_a_negative_gain_is_no_judgement_to_any_measure_of_judged_items() -> None:
    """Item n was pooled and not judged. The values are those without its row; its value counts nothing."""
    log = ranking({"ann": "n a b x"})
    held_out = table("user_id item_id gain value", ("ann", "n", -1, 5), ("ann", "a", 2, 3), ("ann", "b", 0, 1))
    measures = [
        *("Judged@2", "Judged(denom='k')@2", "unj@2", "RBPResidual(p=0.5)@2", "CG(unjudged='mean')@2"),
        *("CG(unjudged='median')@4", "CG(gains='value')@2", "Bpref"),
    ]
    found = by(evaluate(log, held_out, measures=measures).metrics, "measure", "k", value="value")
    assert found == {
        ("Judged", 2): 1 / 2,
        ("Judged(denom='k')", 2): 1 / 2,
        ("unj", 2): 1 / 2,
        ("RBPResidual(p=0.5)", 2): 1 / 4 + 1 / 2,
        ("CG(unjudged='mean')", 2): (2 + 0) / 2 + 2,
        ("CG(unjudged='median')", 4): 1 + 2 + 0 + 1,
        ("CG(gains='value')", 2): 3.0,
        ("Bpref", 0): 1.0,
    }
    assert by(evaluate(log, held_out[1:], measures=measures).metrics, "measure", "k", value="value") == found
