"""Values of users and means the whole way, against naive references."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError, JudgementError
from rankeval_spark.measures import Measure, Ranking
from tests.support import oracles
from tests.support.arrow_frames import by, dicts, shuffled, table, tuples, where
from tests.support.item_groups import Case
from tests.support.ratings import list_of, random_ratings, tables
from tests.support.sections import measured

if TYPE_CHECKING:
    from rankeval_spark import Evaluation


# ---- the whole way against trec_eval, and against ranx where its definitions are the same --------------------------


Nested = dict[str, dict[str, Any]]

KS: Final = (1, 3, 10)
TREC: Final = {
    **{f"P@{k}": f"P_{k}" for k in KS},
    **{f"R@{k}": f"recall_{k}" for k in KS},
    **{f"AP@{k}": f"map_cut_{k}" for k in KS},
    **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in KS},
    **{f"Success@{k}": f"success_{k}" for k in KS},
    **{"AP": "map", "nDCG": "ndcg", "RR": "recip_rank", "Rprec": "Rprec"},
}
"""Our names and those of trec_eval."""

RANX: Final = {"P@3": "precision@3", "R@3": "recall@3", "AP": "map", "nDCG@10": "ndcg@10", "RR": "mrr"}


def random_logs(seed: int, items: list[str], n_users: int = 60) -> tuple[Nested, Nested]:
    """Draw runs and judgements: scores of few values, lists of 1 to 15 items, grades 0 to 3, users without a list."""
    draw = random.Random(seed)
    users = [draw.choice(["u", "ü", "用户", "0"]) + str(number) for number in range(n_users)]
    run = {
        user: {item: draw.randint(-8, 8) / 8 for item in draw.sample(items, draw.randint(1, 15))}
        for user in users
        if draw.random() < 0.85
    }
    qrel = {
        user: {item: draw.choice([0, 0, 1, 1, 2, 3]) for item in draw.sample(items, draw.randint(1, 12))}
        for user in users
        if draw.random() < 0.9
    }
    return run, qrel


def evaluated(run: Nested, qrel: Nested, **options: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
    """Evaluate dictionaries as trec_eval takes them."""
    scores = [(user, item, score) for user, items in run.items() for item, score in items.items()]
    gains = [(user, item, float(gain)) for user, items in qrel.items() for item, gain in items.items()]
    return measured(shuffled(table("user_id item_id score", *scores)), table("user_id item_id gain", *gains), **options)


def values_of(result: Evaluation) -> Nested:
    """Value of each user by measure."""
    found: Nested = defaultdict(dict)
    for measure, k, user, value in tuples(result.user_values, "measure", "k", "user_id", "value"):
        found[f"{measure}@{k}" if k else measure][user] = value
    return found


def assert_close(found: dict[str, float], expected: dict[str, float], what: str, atol: float) -> None:
    """Compare the values of the same users."""
    assert found.keys() == expected.keys(), what
    users = sorted(expected)
    np.testing.assert_allclose(
        [found[user] for user in users], [expected[user] for user in users], rtol=0, atol=atol, err_msg=what
    )


@pytest.mark.parametrize(
    ("seed", "items"),
    [
        pytest.param(1, [f"d{number}" for number in range(25)], id="d2 stands above d10"),
        pytest.param(2, [f"{number}" for number in range(25)], id="digits"),
        pytest.param(
            3, [*"abcÄéß", *(f"日{n}" for n in range(10)), "𝄞", "\uffee", "Z", "_", "0", "00"], id="any letters"
        ),
    ],
)
def test_per_user_values_are_those_of_trec_eval(seed: int, items: list[str]) -> None:
    """Ties by the bytes of the item descending; every judged user counts, as with its option -c."""
    run, qrel = random_logs(seed, items)
    result = evaluated(run, qrel, measures=list(TREC), ties="item_desc_bytes", population="judged")
    found = values_of(result)
    trec = pytrec_eval.RelevanceEvaluator(qrel, set(TREC.values())).evaluate(run)
    missing = dict.fromkeys(set(qrel) - set(run), 0.0)
    assert missing
    for ours, theirs in TREC.items():
        expected = {**missing, **{user: values[theirs] for user, values in trec.items()}}
        assert_close(found[ours], expected, ours, atol=1e-9)


@pytest.mark.parametrize("seed", [4])
def test_means_are_those_of_trec_eval(seed: int) -> None:
    run, qrel = random_logs(seed, [f"d{number}" for number in range(25)])
    result = evaluated(run, qrel, measures=list(TREC), ties="item_desc_bytes", population="judged")
    trec = pytrec_eval.RelevanceEvaluator(qrel, set(TREC.values())).evaluate(run)
    rows = tuples(result.metrics, "measure", "k", "value", "n_users", "n_missing", "n_extra_users")
    counts = (len(qrel), len(set(qrel) - set(run)), len(set(run) - set(qrel)))
    assert {row[3:] for row in rows} == {counts}
    for measure, k, value, *_ in rows:
        theirs = TREC[f"{measure}@{k}" if k else measure]
        mean = sum(values[theirs] for values in trec.values()) / len(qrel)
        assert value == pytest.approx(mean, rel=0, abs=1e-9), measure


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # numba and ir_datasets warn of their own matters
def test_values_without_ties_are_those_of_ranx() -> None:
    """Where the definitions agree: binary relevance, no ties, every user on both sides and with a relevant item."""
    import ranx  # noqa: PLC0415 - compiles for seconds when it is imported

    draw = random.Random(5)
    items = [f"d{number}" for number in range(25)]
    users = [f"u{number}" for number in range(20)]
    scores = [number / 8 for number in range(1000)]
    run = {user: dict(zip(draw.sample(items, 12), draw.sample(scores, 12), strict=True)) for user in users}
    qrel = {user: dict.fromkeys(draw.sample(items, draw.randint(1, 8)), 1) for user in users}
    found = values_of(evaluated(run, qrel, measures=list(RANX)))
    theirs = ranx.evaluate(ranx.Qrels(qrel), ranx.Run(run), list(RANX.values()), return_mean=False)
    for ours, name in RANX.items():
        assert_close(found[ours], dict(zip(sorted(users), map(float, theirs[name]), strict=True)), ours, atol=1e-9)


# ---- measures of one item group, of values beside the gains and of the catalogue, from the tables to the users' value


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
    result = measured(**case.tables(), measures=asked, population="judged", **policies)
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
        measured(log, held_out, measures=["ClassAccuracy@3", "R(gains='value')@3"], ties="rank")
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
    found = measured(
        table("model_id user_id item_id score", *rows),
        table("user_id item_id gain", *judged),
        segments=table("user_id country", *((user, "ABC"[place % 3]) for place, user in enumerate(users))),
        items=table("item_id", *((item,) for item in "abcdefghi")),
        measures=["GMAP@3", "GMAP(floor=0.01)@3", "LogAP@3", "AP@3", *ALL_LISTS, "R(agg='micro')@3"],
        slices=["country"],
        min_slice_size=2,
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


# ---- measures that read the scores of hits, the whole way: from a log of predictions to means ----------------------


READING: Final = ("RMSE", "MAE", "FCP", "FCP(ties='discordant')", "KendallTau", "Spearman", "AUC(rel=3)")


def test_values_and_means_are_those_of_the_naive_references() -> None:
    predicted, rated = random_ratings(seed=7)
    asked = (*READING, "PredictedShare", "P@3")
    result = evaluate(*tables(predicted, rated), measures=asked)
    found = by(result.user_values, "measure", "user_id", value="value")
    means = by(result.metrics, "measure", value="value")
    for text in asked:
        measure = Measure.parse(text)
        lists = {user: list_of(predicted.get(user, {}), rated.get(user, {})) for user in rated}
        expected = {user: oracles.expected(measure, one) for user, one in lists.items()}
        values = {user: found[measure.label, user] for user in lists}
        assert {user for user, value in values.items() if value is None} == {
            user for user, value in expected.items() if math.isnan(value)
        }
        defined = {user: value for user, value in expected.items() if not math.isnan(value)}
        assert {user: values[user] for user in defined} == pytest.approx(defined, rel=0, abs=1e-12)
        assert means[measure.label] == pytest.approx(sum(defined.values()) / len(defined), rel=0, abs=1e-12)


def test_leaderboard_begins_with_the_smallest_error() -> None:
    predictions = [("far", "a", 1.0), ("near", "a", 4.5), ("none", "b", 5.0)]
    log = table("model_id item_id score user_id", *((*row, "u") for row in predictions))
    held_out = table("user_id item_id gain", ("u", "a", 5.0))
    board = evaluate(log, held_out, measures=["RMSE", "PredictedShare"]).leaderboard()
    assert [tuple(row.values()) for row in dicts(board)] == [
        ("near", 1, 0.5, 1.0),
        ("far", 1, 4.0, 1.0),
        ("none", 1, None, 0.0),
    ]


def test_prediction_that_must_not_be_missing_ends_the_run() -> None:
    log = table("user_id item_id score", ("u", "a", 4.5))
    held_out = table("user_id item_id gain", ("u", "a", 5.0), ("u", "b", 1.0))
    asked = evaluate(log, held_out, measures=["RMSE(missing='error')"])
    message = r"1 of 2 held-out items without a score, in 1 of 1 lists, such as that of user 'u' under model 'model';"
    with pytest.raises(JudgementError, match=message):
        _ = asked.metrics


def test_user_whose_prediction_is_missing_is_named_whatever_the_ids_are() -> None:
    """Of two users the one who lacks a score, also where judgements of an item group alone are looked at."""
    log = table("model_id user_id item_id score", ("als", 7, 1, 4.5), ("als", 8, 1, 4.5), ids="bigint")
    held_out = table("user_id item_id gain", (7, 1, 5.0), (8, 1, 5.0), (8, 2, 1.0), ids="bigint")
    items = table("item_id categories", (1, ["x"]), (2, ["x"]), ids="bigint")
    for text in ("MAE(missing='error')", "MSE(group='x',missing='error')", "RMSE(agg='micro',missing='error')"):
        asked = evaluate(log, held_out, measures=[text], items=items)
        with pytest.raises(JudgementError, match="lists, such as that of user '8' under model 'als'"):
            _ = asked.user_metrics
    score_of_8 = table("model_id user_id item_id score", ("als", 8, 2, 1.0), ids="bigint")
    complete = evaluate(pa.concat_tables([log, score_of_8]), held_out, measures=["MAE(missing='error')"])
    assert by(complete.user_metrics, "user_id", value="mae_missing_error") == {7: 0.5, 8: 0.25}


def test_log_without_scores_is_refused_before_anything_is_computed() -> None:
    ranks = table("user_id item_id rank", ("u", "a", 1))
    held_out = table("user_id item_id gain", ("u", "a", 1.0))
    message = "no column 'score'; expected scores, because RMSE, AUC read them; add the scores to the log"
    with pytest.raises(InputError, match=message):
        evaluate(ranks, held_out, measures=["P@1", "RMSE", "AUC"])


# ---- weights of judgements through ``evaluate``: the ratios of sums, what is left out, and what is refused ---------


WEIGHTED_LOG = pa.table(
    {"user_id": ["ann", "ann", "bob", "bob"], "item_id": ["hit", "rare", "hit", "rare"], "score": [0.9, 0.5, 0.4, 0.8]}
)
WEIGHTED = ["R@1", "R(weighted=True)@1", "R(agg='micro',weighted=True)@1", "nDCG(weighted=True)@2"]


def weighted(weights: list[float | None]) -> pa.Table:
    """Judge both items for ann and one for bob."""
    return pa.table(
        {"user_id": ["ann", "ann", "bob"], "item_id": ["hit", "rare", "hit"], "weight": pa.array(weights, pa.float64())}
    )


def weighted_means(judged: pa.Table, **options: Any) -> dict[str, float]:  # noqa: ANN401 - any policy
    rows = measured(WEIGHTED_LOG, judged, measures=WEIGHTED[:3], **options).metrics.to_pylist()
    return {row["measure"]: row["value"] for row in rows}


def test_means_are_those_of_weighted_sums() -> None:
    assert weighted_means(weighted([1, 3, 4])) == {
        "R": (1 / 2 + 0) / 2,
        "R(weighted=True)": (1 / 4 + 0) / 2,
        "R(agg='micro',weighted=True)": 1 / 8,
    }


@pytest.mark.parametrize("weight", [0.0, -2.0, None, float("nan"), float("inf")])
def test_judgement_without_a_weight_counts_for_other_measures_alone(weight: float | None) -> None:
    assert weighted_means(weighted([1, weight, 4])) == {
        "R": (1 / 2 + 0) / 2,
        "R(weighted=True)": (1 / 1 + 0) / 2,
        "R(agg='micro',weighted=True)": 1 / 5,
    }


def test_user_whose_weights_cannot_be_used_is_undefined() -> None:
    result = measured(WEIGHTED_LOG, weighted([1, 3, 0]), measures=["R(weighted=True)@1"], zero_relevant="exclude")
    (row,) = result.metrics.to_pylist()
    assert (row["value"], row["n_users"]) == (1 / 4, 1)


def test_whole_numbers_are_weights_too() -> None:
    judged = weighted([1, 3, 4])
    whole = judged.set_column(2, "weight", judged["weight"].cast(pa.int64()))
    assert weighted_means(whole) == weighted_means(judged)


def test_rows_of_a_pair_have_one_weight() -> None:
    judged = weighted([1, 3, 4])
    assert weighted_means(pa.concat_tables([judged, judged])) == weighted_means(judged)
    for duplicates in ("max", "sum"):
        assert weighted_means(pa.concat_tables([judged, judged]), held_out_duplicates=duplicates) == weighted_means(
            judged
        )
    found = r"a user has two weights for an item; expected one .*; give all rows"
    with pytest.raises(Exception, match=found):
        weighted_means(pa.concat_tables([judged, weighted([1, 2, 4])]))


def test_what_has_no_weighted_form_or_no_weights_is_refused() -> None:
    judged = weighted([1, 3, 4])
    with pytest.raises(
        ConfigError, match=r"Bpref\(weighted=True\): found option 'weighted'; expected a measure to which"
    ):
        evaluate(WEIGHTED_LOG, judged, measures=["Bpref(weighted=True)"])
    with pytest.raises(InputError, match=r"held_out=\): found no column 'weight'"):
        evaluate(WEIGHTED_LOG, judged.drop_columns("weight"), measures=["R(weighted=True)@1"])


OF_WEIGHT: Final = [
    *("R", "nDCG", "nCG", "CG", "DCG", "NumHits", "ARHR", "ARHR(denom='ideal')", "MAR(kind='cutoffs')"),
    *("nDCG(ideal='len')", "R(agg='micro')", "DCG(gains='value')"),
]
"""Measures that take weights."""


@pytest.mark.parametrize("judged_only", ["option", "policy", "neither"])
@pytest.mark.parametrize("ties", ["item_asc", "expected"])
@pytest.mark.parametrize("weight", [0.0, -1.0, None, float("nan")])
def test_row_without_a_weight_is_as_if_it_were_left_out(judged_only: str, ties: str, weight: float | None) -> None:
    """Rank 1 is an item without a weight, rank 2 and 3 tie, and rank 4 is unjudged."""
    log = pa.table({"user_id": ["u"] * 5, "item_id": list("abcxd"), "score": [4.0, 3.0, 3.0, 2.0, 1.0]})
    rows = {"item_id": list("abcdm"), "gain": [1.0, 1, 2, 3, 1], "weight": [weight, 1.0, 2.0, 0.5, 3.0]}
    judged = pa.table({"user_id": ["u"] * 5, **rows, "value": [9.0, 1, 2, 3, 4]})
    options = "weighted=True,judged_only=True" if judged_only == "option" else "weighted=True"
    names = [name[:-1] + f",{options})" if name.endswith(")") else f"{name}({options})" for name in OF_WEIGHT]
    measures = [f"{name}@{k}" for name in names for k in (1, 2, 3)]

    def values(weighted: pa.Table) -> list[tuple[Any, ...]]:
        policies: dict[str, Any] = {"ties": ties, "judged_only": judged_only == "policy"}
        return tuples(measured(log, weighted, measures=measures, **policies).metrics, "measure", "k", "value")

    assert values(judged) == values(judged.slice(1))


def test_item_of_weight_0_leaves_the_list_where_judged_items_alone_count() -> None:
    log = pa.table({"user_id": ["u", "u"], "item_id": ["a", "b"], "score": [2.0, 1.0]})
    judged = pa.table({"user_id": ["u", "u"], "item_id": ["a", "b"], "gain": [1.0, 1.0], "weight": [0.0, 1.0]})
    asked = ["R(weighted=True,judged_only=True)@1", "nDCG(weighted=True,judged_only=True)@1", "R(judged_only=True)@1"]
    rows = tuples(evaluate(log, judged, measures=asked).metrics, "measure", "value")
    assert rows == [
        ("R(judged_only=True)", 1 / 2),
        ("R(judged_only=True,weighted=True)", 1.0),
        ("nDCG(judged_only=True,weighted=True)", 1.0),
    ]


def test_group_without_a_weight_above_0_is_undefined_under_any_policy() -> None:
    """As for a user without a judgement of the group: bob's only judgement of the tail has weight 0."""
    judged = weighted([1, 3, 0])
    train = pa.table({"user_id": ["a"] * 9 + ["b"], "item_id": ["rare"] * 9 + ["hit"]})
    asked = ["R(group='tail',weighted=True)@1"]
    result = measured(WEIGHTED_LOG, judged, measures=asked, train=train, population="judged", zero_relevant="zero")
    assert tuples(result.metrics, "value", "n_users") == [(1.0, 1)]
