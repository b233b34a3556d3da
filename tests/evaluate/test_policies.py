"""Each policy the whole way: what it makes of the numbers, and when it refuses."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from math import log2
from statistics import fmean
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError, JudgementError, RefusedCallError
from tests.support.arrow_frames import by, dicts, judgements, ranking, table, tuples, where
from tests.support.item_groups import Case
from tests.support.sections import measured

# ---- each policy the whole way: what it makes of the numbers, and when it refuses ----------------------------------


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
    result = measured(*users(), measures=["P@1"], **policies_as_arguments)
    names = ("value", "n_users", "n_undefined", "n_missing", "n_zero_relevant", "n_extra_users")
    assert tuples(result.metrics, *names) == [(value, n_users, n_undefined, 1, 1, 1)]


@pytest.mark.parametrize("policy", ["missing", "zero_relevant"])
def test_an_error_policy_fails_the_result_that_meets_its_case(policy: str) -> None:
    policies: dict[str, Any] = {policy: "error"}
    result = measured(*users(), measures=["P@1"], **policies)
    with pytest.raises(RefusedCallError, match=rf"evaluate\(policies=\)\.{policy}: found .*; expected no such case; "):
        _ = result.metrics


def test_contradictions_are_faults_of_the_arguments() -> None:
    with pytest.raises(ConfigError) as raised:
        measured(*users(), measures=["ERR@3", "P@1"], population="run", missing="zero", ties="item-asc")
    assert sorted(fault.where for fault in raised.value.faults) == ["evaluate(policies=).ties"]
    with pytest.raises(ConfigError) as raised:
        measured(*users(), measures=["P@1"], population="run", missing="zero")
    assert [fault.where for fault in raised.value.faults] == ["evaluate(policies=).missing"]
    with pytest.raises(ConfigError, match=r"evaluate\(measures=\): found ERR with ties='expected'"):
        measured(*users(), measures=["ERR@3", "P@1"], ties="expected")
    with pytest.raises(ConfigError, match=r"evaluate\(measures=\): found AP\(denom='hits'\) with ties='pessimistic'"):
        measured(*users(), measures=["AP(denom='hits')", "P@1"], ties="pessimistic")


def test_ties_can_be_bounded_and_averaged() -> None:
    """One user, a block of four between two other items: bounds and mean are those over the 24 orders of the block."""
    gains = {"top": 0, "a": 2, "b": 0, "c": 1, "low": 3, "missed": 1}
    block = ["a", "b", "c", "d"]
    log = table("user_id item_id score", *(("u", i, 0.5) for i in block), ("u", "top", 0.9), ("u", "low", 0.1))
    held_out = judgements({"u": gains})
    names = ["P@2", "P@3", "RR", "AP@4", "nDCG@3", "nDCG", "Success@2"]

    def found(log: pa.Table, ties: str) -> dict[tuple[str, int], float]:
        values: dict[tuple[str, int], float] = by(
            measured(log, held_out, measures=names, ties=ties).user_values, "measure", "k", value="value"
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
    ("ids", "items", "by_bytes"), [("bigint", (-1, 9, 10), (9, 10, -1)), ("string", ("10", "9", "é"), ("é", "9", "10"))]
)
def test_ties_by_item_descending_reverse_those_ascending(
    ids: str, items: tuple[Any, ...], by_bytes: tuple[Any, ...]
) -> None:
    log = table("user_id item_id score", *((items[0], item, 0.5) for item in items), ids=ids)
    held_out = table("user_id item_id gain", (items[0], items[0], 1.0), ids=ids)
    orders = {"item_asc": items, "item_desc": items[::-1], "item_desc_bytes": by_bytes}
    for ties, order in orders.items():
        result = measured(log, held_out, measures=["RR"], ties=ties)
        assert result.ranked_items["item_id"].to_pylist() == list(order), ties
        assert tuples(result.metrics, "value") == [(1 / (order.index(items[0]) + 1),)]


def test_counts_next_to_expected_values_are_whole() -> None:
    log = table("user_id item_id score", ("u", "a", 0.5), ("u", "b", 0.5))
    result = measured(log, judgements({"u": {"b": 1}}), measures=["P@1"], ties="expected")
    assert tuples(result.user_metrics, "p", "n_hits", "has_ties") == [(1 / 2, 0, True)]


def test_judged_items_only() -> None:
    """Of Cat's list nothing is left: she counts as a user without one."""
    log = ranking({"ann": "x a y b", "cat": "x y"})
    held_out = judgements({"ann": {"a": 0, "b": 1}, "cat": {"c": 1}})
    result = measured(log, held_out, measures=["RR", "Judged@2"], judged_only=True)
    assert by(where(result.user_metrics, k=0), "user_id", value="rr") == {"ann": 1 / 2, "cat": 0.0}
    assert set(tuples(result.metrics, "n_missing")) == {(1,)}


def test_a_negative_gain_is_no_judgement_where_judged_items_alone_count() -> None:
    """As of trec_eval -J: it marks an item that was pooled and not judged. Bob's list holds nothing else."""
    log = ranking({"ann": "n a b", "bob": "n"})
    held_out = judgements({"ann": {"n": -1, "a": 1, "b": 0}, "bob": {"n": -1, "c": 1}})
    result = measured(log, held_out, measures=["RR", "P@2", "Judged@2"], judged_only=True)
    found = by(where(result.user_values, user_id="ann"), "measure", value="value")
    assert found == {"RR": 1 / 1, "P": 1 / 2, "Judged": 2 / 2}
    assert set(tuples(result.metrics, "n_missing")) == {(1,)}


def test_single_precision_makes_ties_of_scores_that_hardly_differ() -> None:
    log = table("user_id item_id score", ("u", "a", 0.1), ("u", "b", 0.1 + 1e-9))
    held_out = judgements({"u": {"a": 1}})
    for precision, expected in (("double", 1 / 2), ("single", 1.0)):
        result = measured(log, held_out, measures=["RR"], score_precision=precision)
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
        measured(log, held_out, measures=["P@1"], judged_only=True, **kept)
    anew: dict[str, Any] = {**kept, "rank_gaps": "renumber"}
    result = measured(log, held_out, measures=["P@1"], judged_only=True, **anew)
    assert tuples(result.metrics, "value") == [(1.0,)]


def test_scores_are_compared_as_trec_eval_9_does_unless_version_10_is_asked_for() -> None:
    """In single precision 0.1 and 0.1 + 1e-9 tie, and the item whose id is greater comes first."""
    log = table("user_id item_id score", ("u", "a", 0.1 + 1e-9), ("u", "b", 0.1))
    held_out = judgements({"u": {"a": 1, "b": 0}})
    of_9 = evaluate(log, held_out, measures=["RR"], preset="trec_eval")
    of_10 = measured(log, held_out, measures=["RR"], preset="trec_eval", score_precision="double")
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
    result = measured(log, held_out, measures=["CG"], held_out_duplicates="last")
    assert tuples(result.user_values, "value") == [(1.0,)]


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        (
            {"held_out_duplicates": "last"},
            r"held_out=\): found no column 'interacted_at'.*pass policies={'held_out_duplicates': 'max'}",
        ),
        ({"rank_gaps": "keep"}, r"recommendations=\): found no column 'rank'.*pass policies={'rank_gaps': 'renumber'}"),
    ],
)
def test_a_policy_that_needs_a_column_says_so(policies: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        measured(*users(), measures=["P@1"], **policies)


@pytest.mark.parametrize("gains", [[0.1] * 10, [1e16, 1.0, -1e16], [0.7, 0.2, 0.1]])
def test_gains_that_add_up_to_1_make_an_item_relevant(gains: list[float]) -> None:
    """Added up one after another, each of these sums is below 1."""
    held_out = table("user_id item_id gain", *(("ann", "a", gain) for gain in gains))
    result = measured(ranking({"ann": "a"}), held_out, measures=["RR", "CG@1"], held_out_duplicates="sum")
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


# ---- one measure of the judged items alone, beside others of all: from the tables to the users' values -------------


OF_SUMS: Final = (
    *("P@3", "P(denom='len')@3", "R@2", "Success@1", "RR", "AP", "AP(agg='micro',denom='min')@4", "Rprec"),
    *("nDCG@3", "nDCG(agg='micro',dcg='exp-log2')", "nDCG(gains='value')@3", "nDCG(group='tail')@3", "RBP(rel=1)@5"),
)
ANY: Final = (*OF_SUMS, "ERR@3", "IPrec@0.5", "PAUC@2", "AP(denom='hits')", "nDCG(ideal='retrieved')@4")


def alone(text: str) -> str:
    """Write the measure with the option."""
    head, at, k = text.partition("@")
    if head == "IPrec":
        return f"IPrec(recall={k},judged_only=True)"
    return (f"{head[:-1]},judged_only=True)" if "(" in head else f"{head}(judged_only=True)") + at + k


class WithPool(Case):
    """Random tables in which some of the judged items were pooled and not judged, as trec_eval's -1 says."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for place, held in enumerate(self.held.values()):
            first, (_, value) = next(iter(held.items()))
            held[first] = (-1.0 if place % 3 == 0 else held[first][0], value)


@pytest.mark.parametrize(
    ("measures", "policies"),
    [
        pytest.param(ANY, {}, id="ties by item"),
        pytest.param(OF_SUMS, {"ties": "expected", "population": "judged"}, id="means over ties"),
    ],
)
def test_option_gives_the_values_of_the_policy_to_the_bit(measures: tuple[str, ...], policies: dict[str, Any]) -> None:
    inputs = WithPool(seed=21).tables()
    by_option = measured(**inputs, measures=list(map(alone, measures)), **policies)
    by_policy = measured(**inputs, measures=list(measures), judged_only=True, **policies)
    found, expected = (
        sorted(tuples(result.user_values, "user_id", "k", "value"), key=repr) for result in (by_option, by_policy)
    )
    assert len(found) > 40
    assert found == expected
    labels = dict(zip(by_option.request.measure_set.labels, by_policy.request.measure_set.labels, strict=True))
    values = {
        (labels[measure], *rest) for measure, *rest in tuples(by_option.user_values, "measure", "k", "user_id", "value")
    }
    assert values == {tuple(row) for row in tuples(by_policy.user_values, "measure", "k", "user_id", "value")}


def test_all_items_of_a_list_reach_the_measure_and_its_counts_stay_those_of_the_run() -> None:
    """The largest cutoff is 1, the judged items stand at ranks 5 and 6. Of Cat's list nothing is left."""
    log = ranking({"ann": "v w x y b a", "cat": "x y"})
    held_out = judgements({"ann": {"a": 1, "b": 0}, "cat": {"c": 1}})
    result = evaluate(log, held_out, measures=["R(judged_only=True)@2", "RR@1", "P(judged_only=True)@1"])
    assert by(where(result.user_metrics, k=2), "user_id", value="r_judged_only_true") == {"ann": 1 / 1, "cat": 0.0}
    assert by(where(result.user_metrics, k=1), "user_id", value="p_judged_only_true") == {"ann": 0.0, "cat": 0.0}
    assert sorted(tuples(where(result.user_metrics, k=2), "user_id", "n_recommended", "n_hits")) == [
        ("ann", 2, 0),
        ("cat", 2, 0),
    ]
    assert set(tuples(result.metrics, "n_missing")) == {(0,)}


def test_lists_that_keep_the_ranks_of_the_log_cannot_close_up_for_one_measure() -> None:
    log, held_out = ranking({"ann": "x a"}), judgements({"ann": {"a": 1}})
    found = r"evaluate\(measures=\): found RR\(judged_only=True\) with rank_gaps='keep'.*pass policies={'rank_gaps': "
    with pytest.raises(ConfigError, match=found):
        measured(log, held_out, measures=["RR(judged_only=True)", "RR"], rank_gaps="keep")


# ---- lists that keep the ranks of the log, the whole way: what is a mean of items is divided by the items there are


TRAIN: Final = ("u a", "v a", "u b", "w b", "x d", "v a", "w c")
"""a has 3 of 7 interactions and 2 of 4 users; u has a and b."""

AT_RANK_2: Final = {
    "UnrepeatedReco@2": 1,
    "UnrepeatedReco(kind='full')@4": 1,
    "SufficientReco@2": 0,
    "SufficientReco(kind='share')@2": 1 / 2,
    "UserCoverage@1": 0,
    "UserCoverage@2": 1,
    "ARP@1": None,
    "ARP@2": 3,
    "NotInTrain@2": 0,
    "MIUF@2": log2(4 / 2),
    "P(denom='len')@2": 1,
    "Judged@2": 1,
    "unj@2": 0,
    "nDCG@2": 1 / log2(3),
    "EPC@2": 1 / 2,
    "DCG(unjudged='mean')@2": 1 / log2(3),
    "ILD(sim='cooccurrence')@2": None,
}
REPEATED: Final = {
    "UnrepeatedReco@4": 3 / 4,
    "UnrepeatedReco(kind='full')@4": 0,
    "SufficientReco(kind='share')@4": 3 / 4,
    "ARP@4": (3 + 1 + 1) / 3,
    # a and b have u in common, of 2 users each; ranks 1 and 3 hold items of which nobody has both.
    "ILD(sim='cooccurrence')@4": 1,
    "P@4": 1 / 4,
    "P(denom='len')@4": 1 / 3,
}


def values_of_list(rows: list[tuple[Any, ...]], measures: list[str], **options: Any) -> dict[str, Any]:  # noqa: ANN401 - those of evaluate
    """Evaluate one user's list; what they hold out is a."""
    result = measured(
        table("user_id item_id rank", *rows),
        judgements({"u": {"a": 1}}),
        measures=measures,
        train=table("user_id item_id", *(tuple(row.split()) for row in TRAIN)),
        **options,
    )
    return {f"{row['measure']}@{row['k']}": row["value"] for row in dicts(result.user_values)}


@pytest.mark.parametrize("options", [{"rank_gaps": "keep"}, {"preset": "rectools"}], ids=str)
@pytest.mark.parametrize(
    ("rows", "expected"),
    [([("u", "a", 2)], AT_RANK_2), ([("u", "a", 1), ("u", "a", 2), ("u", "c", 3), ("u", "d", 4)], REPEATED)],
    ids=["one item at rank 2", "an item twice"],
)
def test_items_places_and_cutoff_are_three_numbers(
    rows: list[tuple[Any, ...]], expected: dict[str, float | None], options: dict[str, str]
) -> None:
    measures = [name for name in expected if "preset" not in options or not name.startswith(("nDCG", "DCG"))]
    found = values_of_list(rows, measures, **options)
    assert found.keys() == set(measures)
    for name in measures:
        value = expected[name]
        assert found[name] == (value if value is None else pytest.approx(value, rel=0, abs=1e-12)), name


def test_similar_items_are_found_at_their_ranks() -> None:
    """Of a, b and d at ranks 2, 5 and 9 only a and b have a user in common."""
    rows = [("u", "a", 2), ("u", "b", 5), ("u", "d", 9)]
    names = [f"ILS(sim='cooccurrence')@{k}" for k in (4, 5, 9)]
    found = values_of_list(rows, names, rank_gaps="keep")
    assert found == dict(zip(names, (None, pytest.approx(1 / 2), pytest.approx(1 / 6)), strict=True))


def test_measures_of_all_lists_count_the_lists_that_begin_further_down() -> None:
    """The lists of v and w begin at ranks 2 and 3; at k = 2 the one of w has no item yet."""
    rows = [("u", "a", 1), ("u", "b", 2), ("v", "a", 2), ("w", "c", 3), ("w", "a", 4)]
    measures = ["Personalization@2", "Personalization(denom='min')@2", "Personalization@4", "CatalogCoverage@2"]
    result = measured(
        table("user_id item_id rank", *rows),
        judgements({"u": {"a": 1}}),
        measures=measures,
        train=table("user_id item_id", *(tuple(row.split()) for row in TRAIN)),
        rank_gaps="keep",
        min_slice_size=1,
    )
    found = {
        f"{row['measure']}@{row['k']}": (row["value"], row["n_users"], row["n_lists"]) for row in dicts(result.metrics)
    }
    assert found == {
        "Personalization@2": (1 - 1 / 2, 2, 2),
        "Personalization(denom='min')@2": (1 - 1 / 1, 2, 2),
        "Personalization@4": (pytest.approx(1 - 3 / (3 * 4)), 3, 3),
        "CatalogCoverage@2": (2 / 4, 2, 2),
    }


RANKS: dict[str, Sequence[int | None]] = {
    "ann": (1, 2, 3),
    "bob": (1, 3, 4),
    "cat": (0, 1, 2),
    "dan": (2, 1, 3),
    "eve": (3, 2, 1),  # of these the second stands where its rank says, and is better all the same
    "fay": (1, 1, 3),
    "gus": (None, None, None),
    "hal": (2, 1, 3),  # his first two have the same score
    "kim": (4, 4, 1, 1),  # adds up as 1 to 4 does
}
"""Ranks of the log, from the highest score to the lowest."""


def test_ranks_that_are_not_1_to_n_or_contradict_the_scores_are_counted_list_by_list() -> None:
    rows: list[tuple[Any, ...]] = [
        ("m", user, item, -1.0 if (user, place) == ("hal", 0) else -float(place), rank)
        for user, ranks in RANKS.items()
        for place, (item, rank) in enumerate(zip("abcd", ranks, strict=False))
    ]
    rows += [("m", "leo", item, -float(place), place + 1) for place, item in enumerate("aab")]
    log = table("model_id user_id item_id score rank", *rows)

    def counted(log: pa.Table) -> dict[str, list[Any]]:
        checks = evaluate(log, judgements({"ann": {"b": 1}}), measures=["RR@3"]).checks
        of_log = where(checks, input="recommendations")
        return {name: rest for name, *rest in tuples(of_log, "check", "count", "share", "sample_keys")}

    found = counted(log)
    assert found["rank_gaps"] == [4, 4 / 10, ["m bob", "m kim"]]  # cat and fay too; of leo's a repeated item is counted
    assert found["score_rank_disagree"] == [3, 3 / 10, ["m dan", "m kim"]]
    assert found["duplicates"] == [1, 1 / (3 * 8 + 4 + 3), ["m leo"]]

    positive = log.filter(pc.or_kleene(pc.is_null(log["rank"]), pc.greater(log["rank"], 0)))  # rank 0 is refused
    of_ranks = counted(positive.drop_columns("score"))
    assert of_ranks["rank_gaps"] == [3, 3 / 9, ["m bob", "m kim"]]  # cat has 1 and 2, and gus nothing
    assert of_ranks["score_rank_disagree"] == [0, None, []]
