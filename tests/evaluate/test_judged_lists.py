"""Judgements that name their list, the whole way: by hand, and against the same lists as users of their own."""

from __future__ import annotations

import datetime as dt
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import columns as C, evaluate
from rankeval_spark.errors import InputError, RefusedCallError
from tests.support.arrow_frames import by, dicts, in_chunks, shuffled, table, tuples, where
from tests.support.judged_lists import Sessions
from tests.support.sections import measured

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

LOG: Final = table(
    "user_id list_id item_id score", ("u", "1", "b", 2), ("u", "1", "d", 1), ("u", "2", "d", 2), ("u", "2", "c", 1)
)
JUDGED: Final = table("user_id list_id item_id", ("u", "1", "b"), ("u", "2", "c"))
FLOATS: Final = pa.table({"user_id": ["u"], "list_id": [1.0], "item_id": ["b"]})
UNREAD: Final = {
    "floats": pa.array([1.5, None, 2.0, float("nan")]),
    "without a value": pa.nulls(4, pa.string()),
    "arrays": pa.array([[1], [2, 3], [], None]),
}
"""Columns `list_id` that no list can have, by what they hold."""
IN_TIME: Final[dict[str, Any]] = {"attribution": "all", "attribution_window": "1d"}
QUIET: Final = pytest.mark.filterwarnings("ignore:nothing is measured")


def judged(*rows: tuple[Any, ...]) -> pa.Table:
    """Judgements of u: list, item and gain."""
    return table("user_id list_id item_id gain", *(("u", *row) for row in rows))


def with_unread_lists(name: str) -> tuple[pa.Table, pa.Table]:
    """Return the log and the judgements with times, both with a column of `UNREAD` as their lists."""
    shown, seen = (pa.array([dt.datetime(2026, 1, 1, hour)] * 4) for hour in (0, 1))
    log = LOG.drop_columns(["list_id"]).append_column("recommended_at", shown).append_column("list_id", UNREAD[name])
    held_out = judged(("1", "b", 1), ("1", "b", 1), ("2", "c", 1), ("2", "c", 1)).append_column("interacted_at", seen)
    held_out = held_out.drop_columns(["list_id"]).append_column("list_id", UNREAD[name])
    return log, held_out


def values(result: Evaluation[pa.Table], column: str, k: int = 0) -> dict[Any, Any]:
    return by(where(result.user_metrics, k=k), C.LIST_ID, value=column)


def mean(result: Evaluation[pa.Table], measure: str, k: int = 0, **of: str) -> float:
    (row,) = dicts(where(result.metrics, measure=measure, k=k, slice="all", **of))
    return float(row["value"])


def count(result: Evaluation[pa.Table], check: str, input_: str = "held_out") -> tuple[int, float | None, list[str]]:
    (row,) = [row for row in dicts(result.checks) if (row["input"], row["check"]) == (input_, check)]
    return row["count"], row["share"], row["sample_keys"]


# ---- by hand --------------------------------------------------------------------------------------------------------


def test_each_list_is_scored_against_its_own_judgements() -> None:
    result = evaluate(LOG, JUDGED, measures=["R", "RR", "nDCG@2", "P@1"])
    assert values(result, "r") == {"1": 1.0, "2": 1.0}
    assert values(result, "rr") == {"1": 1.0, "2": 1 / 2}
    assert values(result, "ndcg", 2) == {"1": 1.0, "2": pytest.approx(1 / math.log2(3), rel=0, abs=1e-12)}
    assert values(result, "p", 1) == {"1": 1.0, "2": 0.0}
    assert mean(result, "RR") == (1 + 1 / 2) / 2
    assert tuples(where(result.user_metrics, k=0), "n_judged", "n_relevant") == [(1, 1), (1, 1)]
    assert tuples(where(result.metrics, measure="R"), "n_users", "n_lists", "n_missing") == [(1, 2, 0)]


def test_without_the_column_every_list_meets_all_judgements_of_its_user() -> None:
    result = evaluate(LOG, JUDGED.drop_columns(["list_id"]), measures=["R"])
    assert values(result, "r") == {"1": 1 / 2, "2": 1 / 2}
    assert "unmatched_lists" not in result.checks["check"].to_pylist()


def test_a_judged_list_without_recommendations_scores_as_a_missing_one() -> None:
    more = judged(("1", "b", 1), ("2", "c", 1), ("3", "b", 1))
    of_truth = evaluate(LOG, more, measures=["RR"])
    assert values(of_truth, "rr") == {"1": 1.0, "2": 1 / 2, "3": 0.0}
    assert mean(of_truth, "RR") == (1 + 1 / 2 + 0) / 3
    assert tuples(of_truth.metrics, "n_users", "n_lists", "n_missing") == [(1, 3, 0)]
    assert mean(measured(LOG, more, measures=["RR"], missing="exclude"), "RR") == (1 + 1 / 2) / 2
    assert mean(measured(LOG, more, measures=["RR"], population="intersection"), "RR") == (1 + 1 / 2) / 2
    with pytest.raises(RefusedCallError, match="missing"):
        _ = measured(LOG, more, measures=["RR"], missing="error").metrics


def test_a_list_without_a_judgement_counts_only_where_the_run_is_the_population() -> None:
    one = judged(("1", "b", 1))
    assert values(evaluate(LOG, one, measures=["RR"]), "rr") == {"1": 1.0}
    of_run = measured(LOG, one, measures=["RR"], population="run", zero_relevant="zero")
    assert values(of_run, "rr") == {"1": 1.0, "2": 0.0}
    assert mean(of_run, "RR") == 1 / 2
    excluded = measured(LOG, one, measures=["RR"], population="run")
    assert values(excluded, "rr") == {"1": 1.0, "2": None}
    assert count(excluded, "extra_users", "recommendations") == (1, 1 / 2, ["model u"])


def test_a_list_without_a_relevant_judgement_is_judged_by_itself() -> None:
    low = judged(("1", "b", 1), ("2", "c", 0))
    assert values(evaluate(LOG, low, measures=["RR"]), "rr") == {"1": 1.0, "2": None}
    of_judged = measured(LOG, low, measures=["RR"], population="judged")
    assert values(of_judged, "rr") == {"1": 1.0, "2": 0.0}
    assert count(of_judged, "zero_relevant") == (0, 0.0, [])  # of users, and this one has a relevant judgement


def test_a_user_has_the_same_weight_however_many_lists_are_judged() -> None:
    log = table(
        "user_id list_id item_id score", ("u", "1", "a", 1), ("u", "2", "a", 1), ("u", "3", "a", 1), ("v", "1", "a", 1)
    )
    held_out = table(
        "user_id list_id item_id", ("u", "1", "a"), ("u", "2", "b"), ("u", "3", "b"), ("v", "1", "a"), ("w", "9", "a")
    )
    of_users = evaluate(log, held_out, measures=["R"])
    assert mean(of_users, "R") == pytest.approx((1 / 3 + 1 + 0) / 3, rel=0, abs=1e-12)
    assert tuples(of_users.metrics, "n_users", "n_lists", "n_missing") == [(3, 5, 1)]
    assert mean(measured(log, held_out, measures=["R"], unit="list"), "R") == pytest.approx(2 / 5, rel=0, abs=1e-12)
    assert count(of_users, "missing_users", "recommendations") == (1, 1 / 5, ["model"])


def test_a_model_without_a_judged_list_misses_it() -> None:
    log = table(
        "model_id user_id list_id item_id score",
        *(("als", "u", "1", "a", 1), ("als", "u", "2", "b", 1), ("pop", "u", "2", "b", 1), ("pop", "v", "1", "b", 1)),
    )
    held_out = table("user_id list_id item_id", ("u", "1", "a"), ("u", "2", "b"), ("v", "1", "b"))
    result = evaluate(log, held_out, measures=["R"], baseline="als")
    rows = where(result.user_metrics, k=0)
    assert by(rows, "model_id", "user_id", "list_id", value="r") == {
        **{("als", "u", "1"): 1, ("als", "u", "2"): 1, ("als", "v", "1"): 0},
        **{("pop", "u", "1"): 0, ("pop", "u", "2"): 1, ("pop", "v", "1"): 1},
    }
    assert (mean(result, "R", model_id="als"), mean(result, "R", model_id="pop")) == (1 / 2, 3 / 4)
    assert tuples(result.comparisons, "model_id", "n_users", "delta") == [("pop", 2, 3 / 4 - 1 / 2)]
    assert by(where(result.metrics, measure="R"), "model_id", value="n_missing") == {"als": 1, "pop": 0}


def test_ids_of_lists_are_compared_as_text() -> None:
    numbers = pa.table({"user_id": ["u", "u"], "list_id": [1, 2], "item_id": ["b", "c"]})
    assert mean(evaluate(LOG, numbers, measures=["R"]), "R") == 1.0
    padded = pa.table({"user_id": ["u", "u"], "list_id": ["01", "2"], "item_id": ["b", "c"]})
    assert values(evaluate(LOG, padded, measures=["R"]), "r") == {"01": 0.0, "2": 1.0}


def test_a_repeated_judgement_is_one_of_the_same_list() -> None:
    rows = judged(("1", "b", 1), ("1", "b", 2), ("2", "b", 1), ("2", "c", 1))
    summed = measured(LOG, rows, measures=["CG"], held_out_duplicates="sum")
    assert values(summed, "cg") == {"1": 3.0, "2": 1.0}
    assert count(summed, "duplicates") == (1, 1 / 4, ["u"])
    once = judged(("1", "b", 1), ("2", "b", 1))
    assert mean(measured(LOG, once, measures=["R"], held_out_duplicates="error"), "R") == 1 / 2
    with pytest.raises(RefusedCallError, match="held_out_duplicates"):
        _ = measured(LOG, rows, measures=["R"], held_out_duplicates="error").metrics


def test_judgements_of_lists_that_the_log_lacks_are_counted() -> None:
    rows = judged(("1", "b", 1), ("x", "b", 1), ("y", "d", 1), ("x", "d", 1))
    found = evaluate(
        LOG, pa.concat_tables([rows, table("user_id list_id item_id gain", ("v", "1", "b", 1))]), measures=["R"]
    )
    assert count(found, "unmatched_lists") == (4, 4 / 5, ["u x", "v 1"])


def test_lists_that_do_not_match_at_all_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="nothing is measured: no list of held_out .* such as 's1' and '1'"):
        _ = evaluate(LOG, judged(("s1", "b", 1), ("s2", "c", 1)), measures=["R"]).metrics


def test_a_judgement_without_its_list_counts_as_a_null_key() -> None:
    rows = judged(("1", "b", 1), (None, "c", 1))
    result = evaluate(LOG, rows, measures=["R"])
    assert values(result, "r") == {"1": 1.0}
    assert count(result, "null_keys") == (1, 1 / 2, ["u NULL c"])
    with pytest.raises(RefusedCallError, match="null_keys"):
        _ = evaluate(LOG, judged((None, "b", 1)), measures=["R"]).metrics


@pytest.mark.parametrize(
    ("log", "held_out", "asked", "message"),
    [
        (LOG.drop_columns(["list_id"]), JUDGED, {}, r"recommendations=\): found no column 'list_id'"),
        (
            LOG,
            JUDGED,
            {"attribution": "all", "attribution_window": "1d"},
            r"held_out=\): found a column 'list_id' and attribution",
        ),
        (LOG, FLOATS, {}, "of type float64 for list_id; expected text or whole numbers"),
    ],
)
def test_what_contradicts_lists_of_judgements_is_refused(
    log: pa.Table, held_out: pa.Table, asked: dict[str, Any], message: str
) -> None:
    if asked:
        log = log.append_column("recommended_at", pa.array([dt.datetime(2026, 1, 1)] * len(log)))
        held_out = held_out.append_column("interacted_at", pa.array([dt.datetime(2026, 1, 1)] * len(held_out)))
    with pytest.raises(InputError, match=message):
        measured(log, held_out, measures=["R"], **asked)


def test_missing_ids_that_make_floats_of_lists_in_pandas_are_named() -> None:
    with pytest.raises(InputError, match=r"frame.astype\(\{'list_id': 'Int64'\}\)"):
        evaluate(LOG, FLOATS.to_pandas(), measures=["R"])


@pytest.mark.parametrize("log", [LOG, LOG.drop_columns(["list_id"])])
def test_pooled_lists_meet_all_judgements_whatever_list_they_name(log: pa.Table) -> None:
    rows = judged(("1", "b", 1), (None, "c", 1), ("7", "x", 1))
    result = measured(log, rows, measures=["R"], lists="pooled")
    assert mean(result, "R") == pytest.approx(2 / 3, rel=0, abs=1e-12)
    assert count(result, "null_keys") == (0, 0.0, [])
    assert "unmatched_lists" not in result.checks["check"].to_pylist()


@pytest.mark.parametrize("unnamed", [[], ["list_id"]])
@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize("asked", [{}, IN_TIME])
def test_pooled_lists_read_no_list_of_either_table(name: str, asked: dict[str, Any], unnamed: list[str]) -> None:
    log, held_out = with_unread_lists(name)
    result = measured(log.drop_columns(unnamed), held_out, measures=["R"], lists="pooled", **asked)
    assert mean(result, "R") == 1.0
    assert [count(result, "null_keys", of) for of in ("recommendations", "held_out")] == [(0, 0.0, [])] * 2


def test_items_are_judged_by_list_in_ranked_items_and_hit_ranks() -> None:
    log = pa.concat_tables(
        [
            LOG.append_column("model_id", pa.repeat("als", 4)),
            LOG.append_column("model_id", pa.repeat("pop", 4)).filter(pc.field("item_id") != "b"),
        ]
    )
    result = evaluate(log, JUDGED, measures=["R"], baseline="als")
    of_als = where(result.ranked_items, model_id="als")
    assert by(of_als, "list_id", "item_id", value="gain") == {
        **{("1", "b"): 1, ("1", "d"): None},
        **{("2", "d"): None, ("2", "c"): 1},
    }
    keys = ("list_id", "item_id", "baseline_rank", "rank")
    assert tuples(result.hit_ranks("pop", "als"), *keys) == [("1", "b", 1, None), ("2", "c", 2, 2)]


def test_unjudged_items_leave_each_list_by_its_own_judgements() -> None:
    rows = judged(("1", "d", 1), ("2", "c", 1), ("2", "b", 0))
    result = measured(LOG, rows, measures=["RR", "Judged@2"], judged_only=True)
    assert values(result, "rr") == {"1": 1.0, "2": 1.0}
    assert tuples(where(result.user_metrics, k=0), "list_id", "n_recommended") == [("1", 1), ("2", 1)]
    by_option = evaluate(LOG, rows, measures=["RR(judged_only=True)", "Judged@2", "Bpref"])
    assert values(by_option, "rr_judged_only_true") == {"1": 1.0, "2": 1.0}
    assert values(by_option, "judged", 2) == {"1": 1 / 2, "2": 1 / 2}


def test_weights_belong_to_the_judgements_of_a_list() -> None:
    columns = "user_id list_id item_id"
    rows = table(columns, *(("u", "1", "b"), ("u", "1", "x"), ("u", "2", "b"), ("u", "2", "c")))
    rows = rows.append_column("weight", pa.array([3.0, 1.0, 1.0, 4.0]))  # b: 3 in the one list, 1 in the other
    result = evaluate(LOG, rows, measures=["R(weighted=True)"])
    assert values(result, "r_weighted_true") == {"1": 3 / 4, "2": 4 / 5}


# ---- every list as a user of its own --------------------------------------------------------------------------------

PLAIN: Final = (
    "R@3",
    "RR",
    "nDCG@3",
    "AP",
    "P@2",
    "Bpref",
    "Judged@3",
    "nDCG(ideal='retrieved')@3",
    "infAP",
    "RBP(max_rel=3)",
)
BEYOND: Final = (
    *("alpha_nDCG@3", "SRecall@3", "NotInTrain@3", "Serendipity(kind='content')@3", "Calibration@3", "FCP"),
    *("R(group='rock')@3", "ILD(sim='jaccard',unknown='drop')@3"),
)
POPULAR: Final = ("ARP@3", "nDCG(group='tail')@3", "EPC@3", "ILD(sim='cooccurrence',unknown='drop')@3")
"""Measures that read how often items are in the training data."""
BY_GAIN: Final = ("R@3", "RR", "nDCG@3", "AP", "P@2", "Bpref")
OF_ALL: Final = ("PopREO@3", "PopREO(rel=2)@2", "ItemCoverage@3")


def by_list(result: Evaluation[pa.Table], split: bool) -> dict[Any, dict[str, Any]]:
    found = {}
    for row in dicts(result.user_metrics):
        user, name = (row.pop(C.USER_ID), row.pop(C.LIST_ID))
        pair = tuple(user.split("/")) if split else (user, name)
        found[(row.pop(C.MODEL_ID), *pair, row.pop(C.K))] = row
    return found


@QUIET
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "asked",
    [
        {"measures": [*PLAIN, *BEYOND]},
        {"measures": POPULAR},
        {
            **{"population": "judged", "zero_relevant": "one", "held_out_duplicates": "sum", "ties": "optimistic"},
            "measures": BY_GAIN,
        },
        {"population": "run", "zero_relevant": "zero", "held_out_duplicates": "last", "judged_only": True},
        {
            "population": "intersection",
            "seen_in_train": "drop",
            "ties": "expected",
            "measures": ["nDCG@3", "RR", "P@2"],
        },
        {"missing": "exclude", "duplicates": "keep", "ties": "pessimistic", "measures": BY_GAIN},
    ],
)
def test_a_list_scores_as_that_of_a_user_who_has_no_other(seed: int, asked: dict[str, Any]) -> None:
    sessions = Sessions.draw(seed, has_own_train=asked.get("measures") is not POPULAR)
    given = {"measures": PLAIN, "models": sessions.models, **asked}
    together = measured(sessions.log, sessions.held_out, train=sessions.train, items=sessions.items, **given)
    apart = sessions.as_users()
    alone = measured(apart.log, apart.held_out, train=apart.train, items=apart.items, **given)
    found, wanted = by_list(together, split=False), by_list(alone, split=True)
    assert found == wanted
    assert {row["n_judged"] for row in found.values()} > {1, 2}


@QUIET
def test_parity_counts_the_judgements_of_each_list() -> None:
    """Ann's two lists have own judgements: both hold one item of their own two, of the same or another group."""
    for seed in range(5):
        sessions = Sessions.draw(seed, has_own_train=False)
        apart = sessions.as_users()
        given: dict[str, Any] = {"measures": OF_ALL, "models": sessions.models, "missing": "exclude"}
        sides = [
            measured(one.log, one.held_out, train=one.train, items=one.items, **given) for one in (sessions, apart)
        ]
        found, wanted = (tuples(side.metrics, "model_id", "measure", "k", "value") for side in sides)
        assert [row[:3] for row in found] == [row[:3] for row in wanted]
        one, other = ([math.nan if row[3] is None else row[3] for row in rows] for rows in (found, wanted))
        assert one == pytest.approx(other, rel=0, abs=1e-12, nan_ok=True)


def is_close(one: object, other: object) -> bool:
    """Whether two cells are equal, numbers but for the order in which lists of a user are added up."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0, abs_tol=1e-12)
    return one == other


@QUIET
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("asked", [{}, {"unit": "list"}, {"population": "run", "zero_relevant": "zero"}])
def test_judgements_of_every_list_of_the_user_are_those_without_a_list(seed: int, asked: dict[str, Any]) -> None:
    sessions = Sessions.draw(seed)
    als = where(sessions.log, model_id="als")
    pop = shuffled(als, seed).set_column(0, "model_id", pa.repeat("pop", als.num_rows))
    log = pa.concat_tables([als, pop.set_column(4, "score", pc.negate(pop["score"]))])
    held_out = sessions.held_out.drop_columns(["list_id"])
    lists = als.group_by(["user_id", "list_id"]).aggregate([])
    given: dict[str, Any] = {"measures": PLAIN[:5], "baseline": "als", "items": sessions.items, **asked}
    names = defaultdict(list)
    for row in dicts(lists):
        names[row["user_id"]].append(row["list_id"])
    repeated = pa.Table.from_pylist(
        [{**row, "list_id": name} for row in dicts(held_out) for name in names[row["user_id"]] or [""]]
    )
    plain, by_name = measured(log, held_out, **given), measured(log, repeated, **given)
    assert by_name.user_metrics.equals(plain.user_metrics)
    for one, other in ((by_name.metrics, plain.metrics), (by_name.comparisons, plain.comparisons)):
        for found, wanted in zip(dicts(one), dicts(other), strict=True):
            assert found.keys() == wanted.keys()
            assert all(is_close(found[name], value) for name, value in wanted.items()), (found, wanted)
    assert by_name.hit_ranks("pop", "als").equals(plain.hit_ranks("pop", "als"))
    assert by_name.agreement("als", k=3).equals(plain.agreement("als", k=3))


# ---- a loop ---------------------------------------------------------------------------------------------------------


def loop(sessions: Sessions) -> dict[tuple[str, str, str], tuple[float, float]]:
    """R@3 and RR of each judged (model, user, list), written as one would on paper."""
    gains: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in dicts(sessions.held_out):
        own = gains[row["user_id"], row["list_id"]]
        own[row["item_id"]] = max(row["gain"], own.get(row["item_id"], -math.inf))
    lists: dict[Any, list[Any]] = defaultdict(list)
    for row in dicts(sessions.log):
        lists[row["model_id"], row["user_id"], row["list_id"]].append((-row["score"], row["item_id"]))
    found = {}
    for (user, name), own in gains.items():
        relevant = {item for item, gain in own.items() if gain >= 1}
        for model in sessions.models:
            items = list(dict.fromkeys(item for _, item in sorted(lists[model, user, name])))
            ranks = [rank for rank, item in enumerate(items, 1) if item in relevant]
            recall = sum(rank <= 3 for rank in ranks) / len(relevant) if relevant else math.nan
            found[model, user, name] = (recall, (1 / ranks[0] if ranks else 0.0) if relevant else math.nan)
    return found


@QUIET
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("unit", ["user", "list"])
def test_means_over_judged_lists_agree_with_a_loop(seed: int, unit: str) -> None:
    sessions = Sessions.draw(seed, n_users=40)
    log, held_out = (shuffled(in_chunks(one, 3), seed) for one in (sessions.log, sessions.held_out))
    result = measured(log, held_out, measures=["R@3", "RR"], models=sessions.models, unit=unit, baseline="als")
    expected = loop(sessions)
    for place, (measure, k) in enumerate((("R", 3), ("RR", 0))):
        means = {}
        for model in sessions.models:
            own: dict[str, list[float]] = defaultdict(list)
            for (of, user, _), both in expected.items():
                if of == model and not math.isnan(both[place]):
                    own[user].append(both[place])
            weights = [1.0 if unit == "user" else float(len(one)) for one in own.values()]
            means[model] = float(np.average([np.mean(one) for one in own.values()], weights=weights))
            (row,) = dicts(where(result.metrics, measure=measure, k=k, model_id=model))
            assert (row["n_users"], row["n_lists"]) == (len(own), sum(map(len, own.values())))
            assert row["value"] == pytest.approx(means[model], rel=0, abs=1e-12)
        (row,) = dicts(where(result.comparisons, measure=measure, k=k, model_id="pop"))
        assert row["delta"] == pytest.approx(means["pop"] - means["als"], rel=0, abs=1e-12)
