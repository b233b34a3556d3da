"""Inputs that cannot be used, and inputs that do not fit: what is refused, and what is warned of."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from decimal import Decimal
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, Fault, InputError, RefusedCallError
from tests.support.arrow_frames import by, dicts, table, where
from tests.support.sections import measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankeval_spark import Evaluation


# ---- what a notebook must not measure silently: ranks from 0 or of another type, inputs without a usable row -------


USERS = ("u", "v")
FROM_0 = [(user, item, rank) for user in USERS for rank, item in enumerate("abcd")]

RESULTS: dict[str, Callable[[Evaluation], pa.Table]] = {
    "user_metrics": lambda result: result.user_metrics,
    "user_values": lambda result: result.user_values,
    "metrics": lambda result: result.metrics,
    "comparisons": lambda result: result.comparisons,
    "checks": lambda result: result.checks,
    "leaderboard": lambda result: result.leaderboard(),
    "agreement": lambda result: result.agreement("model", k=2),
}


def held_out() -> pa.Table:
    return table("user_id item_id gain", ("u", "a", 1.0), ("v", "b", 1.0))


def log(*rows: tuple[Any, ...], order: str = "rank") -> pa.Table:
    return table(f"user_id item_id {order}", *(rows or FROM_0))


def evaluated(recommendations: pa.Table, judged: pa.Table, **options: Any) -> Evaluation:  # noqa: ANN401 - of evaluate
    return measured(recommendations, judged, **{"measures": ["RR"], "baseline": "model", **options})


def mean_rr(result: Evaluation) -> float:
    (row,) = dicts(where(result.metrics, measure="RR"))
    return float(row["value"])


# ---- ranks from 0 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(RESULTS))
def test_ranks_from_0_fail_every_result_and_name_the_remedy(name: str) -> None:
    result = evaluated(log(), held_out())
    with pytest.raises(RefusedCallError, match=r"evaluate\(recommendations=\): found rank 0, .*'ranks_from': 0"):
        RESULTS[name](result)


def test_ranks_from_0_are_measured_as_such_on_request() -> None:
    result = evaluated(log(), held_out(), ranks_from=0)
    assert mean_rr(result) == pytest.approx((1 + 1 / 2) / 2, rel=0, abs=1e-12)
    checks = by(where(result.checks, input="recommendations"), "check", value="count")
    assert (checks["zero_ranks"], checks["invalid_scores"], checks["rank_gaps"]) == (0, 0, 0)


@pytest.mark.parametrize("options", [{"rank_gaps": "keep"}, {"preset": "rectools"}])
def test_ranks_from_0_that_are_kept_count_from_1_too(options: dict[str, str]) -> None:
    result = evaluated(log(), held_out(), ranks_from=0, measures=["RR@4"], **options)
    assert mean_rr(result) == pytest.approx((1 + 1 / 2) / 2, rel=0, abs=1e-12)
    with pytest.raises(RefusedCallError, match="'ranks_from': 0"):
        _ = evaluated(log(), held_out(), measures=["RR@4"], **options).metrics


def test_ranks_from_0_next_to_scores_change_no_number() -> None:
    """The score orders the lists; the check of gaps sees the ranks."""
    frame = table("user_id item_id rank score", *((*row, 10.0 - row[-1]) for row in FROM_0))
    for options, n_gaps in (({}, 2), ({"ranks_from": 0}, 0)):
        result = evaluated(frame, held_out(), **options)
        assert mean_rr(result) == pytest.approx((1 + 1 / 2) / 2, rel=0, abs=1e-12)
        assert by(where(result.checks, input="recommendations"), "check", value="count")["rank_gaps"] == n_gaps


def test_rank_0_of_a_model_that_is_not_evaluated_is_no_fault() -> None:
    rows = [("old", *row) for row in FROM_0] + [("new", user, item, rank + 1) for user, item, rank in FROM_0]
    frame = table("model_id user_id item_id rank", *rows)
    assert mean_rr(evaluated(frame, held_out(), models=["new"], baseline="new")) == 3 / 4
    with pytest.raises(RefusedCallError, match="'ranks_from': 0"):
        _ = evaluated(frame, held_out(), models=["new", "old"], baseline="new").metrics


@pytest.mark.parametrize("asked", [2, -1, "0", True, 0.5])
def test_ranks_from_is_0_or_1(asked: object) -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(inputs=\)\.recommendations\.ranks_from"):
        evaluated(log(), held_out(), ranks_from=asked)


# ---- no usable row -------------------------------------------------------------------------------------------------

LOGS: dict[str, tuple[str, list[tuple[Any, ...]], str]] = {
    "negative ranks": ("rank", [("u", "a", -1), ("v", "b", -2)], "2 rows and none that can be used (2 invalid_scores)"),
    "no score": ("score", [("u", "a", math.nan), ("v", None, 1.0)], "(1 null_keys, 1 invalid_scores)"),
    "no list": ("rank list_id", [("u", "a", 1, None), ("v", "b", 2, None)], "(2 null_keys)"),
}


@pytest.mark.parametrize("models", [None, ["model"]])
@pytest.mark.parametrize("case", list(LOGS))
def test_log_without_a_usable_row_fails_with_the_counts(case: str, models: list[str] | None) -> None:
    order, rows, counted = LOGS[case]
    result = evaluated(log(*rows, order=order), held_out(), models=models)
    for name in ("user_metrics", "metrics", "comparisons", "checks"):
        with pytest.raises(RefusedCallError) as failed:
            RESULTS[name](result)
        assert failed.value.faults[0].where == "evaluate(recommendations=)"
        assert counted in str(failed.value), name
    drawn = evaluated(log(*rows, order=order), held_out(), models=models, intervals="bootstrap")
    with pytest.raises(RefusedCallError, match=r"evaluate\(recommendations=\): found .*none that can be used"):
        _ = drawn.metrics
    with pytest.raises(RefusedCallError), result.cached() as kept:
        _ = kept.metrics


def test_scores_of_text_that_are_no_numbers_are_refused_like_any_other_input() -> None:
    texts = log(("u", "a", 1), ("v", "b", 1)).set_column(2, "score", pa.array(["high", "low"]))
    result = evaluated(texts, held_out())
    with pytest.raises(RefusedCallError) as failed:
        _ = result.metrics
    expected = "ids that are not NULL, and a finite score or else a rank of at least 1"
    found = "2 rows and none that can be used (2 invalid_scores)"
    fix = "correct the rows; where rows are lists, the arrays of items and scores have one length"
    assert failed.value.faults == (Fault("evaluate(recommendations=)", found, expected, fix),)
    assert str(failed.value).startswith("the inputs cannot be evaluated:\n  - evaluate(recommendations=): found 2 rows")


def test_a_refusal_imports_nothing_of_spark() -> None:
    lines = """
        import sys, pyarrow as pa
        from rankeval_spark import evaluate
        from rankeval_spark.errors import RefusedCallError
        log = pa.table({"user_id": ["u"], "item_id": ["a"], "score": ["high"]})
        try:
            evaluate(log, log.select(["user_id", "item_id"]), measures=["RR"]).metrics
        except RefusedCallError as error:
            print(error)
        assert not {"py4j", "pyspark"} & set(sys.modules)
    """
    ran = subprocess.run([sys.executable, "-c", dedent(lines)], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("the inputs cannot be evaluated:")


def test_inputs_of_which_one_row_can_be_used_or_that_have_no_row_are_measured() -> None:
    mixed = log(("u", "a", 1), ("u", "b", -1), (None, "a", 1))
    assert mean_rr(evaluated(mixed, held_out(), models=["model"])) == (1 + 0) / 2
    empty = log().slice(0, 0)
    assert mean_rr(evaluated(empty, held_out(), models=["model"])) == 0


def test_other_inputs_without_a_usable_row_fail_too() -> None:
    good = log(("u", "a", 1), ("v", "b", 1))
    no_gain = table("user_id item_id gain", ("u", "a", math.nan), ("v", "b", math.nan))
    with pytest.raises(
        RefusedCallError, match=r"evaluate\(held_out=\): found 2 rows and none that can be used \(2 invalid_gains\)"
    ):
        _ = evaluated(good, no_gain).metrics
    train = table("user_id item_id", (None, "a"), (None, "b"))
    with pytest.raises(
        RefusedCallError, match=r"evaluate\(train=\): found 2 rows and none that can be used \(2 null_keys\)"
    ):
        _ = evaluated(good, held_out(), train=train, measures=["ARP@1"]).metrics
    segments = table("user_id country", (None, "DE"), (None, "DE"))
    with pytest.raises(RefusedCallError, match=r"evaluate\(segments=\): found 2 rows"):
        _ = evaluated(good, held_out(), segments=segments, slices=["country"]).metrics


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.decimal128(4, 1), pa.bool_()], ids=str)
def test_rank_that_is_no_whole_number_is_refused_at_the_call(kind: pa.DataType) -> None:
    rank = {pa.decimal128(4, 1): Decimal("1.0"), pa.bool_(): True}.get(kind, 1.0)
    frame = log().set_column(2, "rank", pa.array([rank] * len(FROM_0), kind))
    with pytest.raises(InputError, match=r"'rank' of type .*expected whole numbers"):
        evaluated(frame, held_out())


# ---- scores that a double cannot tell apart ------------------------------------------------------------------------

NEAR: dict[pa.DataType, tuple[object, object]] = {
    pa.int64(): (2**53, 2**53 + 1),
    pa.decimal128(30, 25): (Decimal("1.0000000000000000000100000"), Decimal("1.0000000000000000000200000")),
}


@pytest.mark.parametrize("kind", list(NEAR), ids=str)
def test_whole_numbers_and_decimals_are_ordered_exactly(kind: pa.DataType) -> None:
    """Item b has the higher score; as doubles the two tie, and the item id puts a first."""
    low, high = NEAR[kind]
    frame = table("user_id item_id", *((user, item) for user in USERS for item in "ab"))
    frame = frame.append_column("score", pa.array([low, high] * len(USERS), kind))
    result = evaluated(frame, held_out(), measures=["RR", "AUC"])
    assert by(result.user_metrics, "user_id", value="rr") == {"u": 1 / 2, "v": 1.0}
    (row,) = dicts(where(result.metrics, measure="RR"))
    assert row["tie_share"] == 0.0
    assert by(where(result.checks, input="recommendations"), "check", value="count")["ties"] == 0
    assert evaluated(frame, held_out(), ties="error").metrics.num_rows == 1
    (rough,) = dicts(evaluated(frame, held_out(), score_precision="single").metrics)
    assert rough["tie_share"] == 1.0


def test_ranks_contradict_whole_scores_that_differ_beyond_a_double() -> None:
    frame = table("user_id item_id rank", ("u", "a", 1), ("u", "b", 2))
    frame = frame.append_column("score", pa.array([2**53, 2**53 + 1]))
    checks = by(where(evaluated(frame, held_out()).checks, input="recommendations"), "check", value="count")
    assert checks["score_rank_disagree"] == 1


# ---- a baseline that is no model -----------------------------------------------------------------------------------


def of_two_models() -> pa.Table:
    return table("model_id user_id item_id rank", ("als", "u", "a", 1), ("popular", "u", "b", 1))


def test_a_baseline_that_the_log_does_not_name_is_refused_with_the_nearest_model() -> None:
    result = evaluated(of_two_models(), held_out(), baseline="popullar")
    assert result.metrics.num_rows
    said = r"evaluate\(baseline=\): found 'popullar'; .* the log: als, popular; did you mean 'popular'\?"
    with pytest.raises(ConfigError, match=said):
        _ = result.comparisons
    with pytest.raises(ConfigError, match=said):
        result.plot.forest()


def test_a_baseline_without_lists_that_models_names_is_compared() -> None:
    result = evaluated(of_two_models(), held_out(), models=["als", "absent"], baseline="absent", population="run")
    assert {row["reason"] for row in dicts(result.comparisons)} <= {"no_common_users"}


# ---- inputs that have nothing to do with each other ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "judged", "said"),
    [
        (FROM_0, table("user_id item_id gain", ("x", "a", 1.0)), "no user of held_out has a list"),
        (FROM_0, table("user_id item_id gain", ("u", "a", 0.0)), "no user has a relevant judgement"),
        (FROM_0, table("user_id item_id gain", ("u", "other", 1.0)), "no item of held_out is in a list; ids of both"),
    ],
    ids=["no common user", "nothing relevant", "no common item"],
)
def test_means_of_inputs_that_do_not_fit_are_warned_of_once(
    rows: list[tuple[Any, ...]], judged: pa.Table, said: str
) -> None:
    result = evaluate(log(*rows, order="score"), judged, measures=["RR"])
    with pytest.warns(UserWarning, match=f"nothing is measured: {said}.*see .checks"):
        assert result.metrics.num_rows
    with warnings.catch_warnings(action="error"):
        assert result.leaderboard().num_rows


def test_a_log_that_names_no_model_is_warned_of_where_it_is_used() -> None:
    empty = table("model_id user_id item_id rank", ("als", "u", "a", 1)).slice(0, 0)
    with pytest.warns(UserWarning, match="nothing is measured: recommendations have no row of a model") as warned:
        assert evaluate(empty, held_out(), measures=["RR"]).metrics.num_rows == 0
    assert warned[0].filename == __file__


def test_lists_that_miss_everything_are_no_reason_to_warn_where_items_are_common() -> None:
    judged = table("user_id item_id gain", ("u", "x", 1.0), ("v", "a", 1.0))
    listed = table("user_id item_id score", ("u", "a", 1.0), ("v", "x", 1.0))
    with warnings.catch_warnings(action="error"):
        assert evaluate(listed, judged, measures=["RR"]).metrics["value"].to_pylist() == [0]


def pairs_of(*users: str) -> pa.Table:
    """Recommend a, then b, to some users."""
    return table("user_id item_id score", *((user, item, -float(ord(item))) for user in users for item in "ab"))


def seen(*items: str) -> dict[str, Any]:
    """Drop items that every user of these tests has."""
    return {
        "train": table("user_id item_id", *((user, item) for user in "uvw" for item in items)),
        "seen_in_train": "drop",
    }


GRADES: Final = [
    (user, item, gain)
    for user, gains in (("u", (2, 1)), ("v", (2, 2)), ("w", (1, 1)))
    for item, gain in zip("ab", map(float, gains), strict=True)
]
"""User w has no list, and v's grades are equal: FCP has a value for u alone."""


RUN_OF_SEEN: Final = {"population": "run", **seen("a", "b"), "seen_in_train": "keep"}


@pytest.mark.parametrize(
    ("measure", "judged", "options", "expected"),
    [
        ("FCP", GRADES, {}, 1.0),  # most users are undefined
        ("FCP", GRADES, {"population": "intersection"}, 1.0),
        ("ARP", [("x", "a", 1.0)], RUN_OF_SEEN, 3.0),  # measures of lists need no judgement
        ("ItemCoverage", [("x", "y", 0.0)], {}, 2.0),  # nor do those of all lists
        ("R", [("u", "a", 1.0)], seen("b"), 1.0),  # one item is dropped
        ("R", [("u", "c", 1.0), ("v", "a", 1.0)], seen("a"), 0.0),  # hits are dropped
    ],
)
def test_a_mean_that_is_measured_is_no_reason_to_warn(
    measure: str, judged: list[tuple[Any, ...]], options: dict[str, Any], expected: float
) -> None:
    held_out = table("user_id item_id gain", *judged)
    with warnings.catch_warnings(action="error"):
        found = measured(pairs_of("u", "v"), held_out, measures=[measure], **options).metrics
    assert found["value"].to_pylist() == [expected]


NO_GRADE: Final = r"no user has a value: FCP is undefined \(no two held-out items"
TOO_LOW: Final = r"no user has a relevant judgement \(a gain of at least 1; the largest is 0.5\)"
OF_OTHERS: Final = "no user with a relevant judgement has a list; see"
ALL_SEEN: Final = "no user of held_out has a list left by seen_in_train"
UNKNOWN: Final = {"items": table("item_id", ("c",)), "unknown_items": "drop"}


@pytest.mark.parametrize(
    ("judged", "options", "said"),
    [
        ([("u", "a", 2.0), ("v", "a", 1.0)], {"measures": ["FCP"]}, NO_GRADE),  # one judgement each
        ([("u", "a", 0.5), ("v", "a", math.inf)], {}, TOO_LOW),
        ([("u", "a", 0.5), ("w", "a", 2.0)], {}, OF_OTHERS),
        ([("u", "a", 0.5), ("w", "a", 2.0)], {"population": "intersection"}, OF_OTHERS),
        ([("u", "a", 1.0)], seen("a", "b"), ALL_SEEN),
        ([("u", "a", 1.0)], {"missing": "exclude", **seen("a", "b")}, ALL_SEEN),
        ([("u", "a", 1.0)], UNKNOWN, "no recommended item is in the catalogue"),
        ([("x", "a", 1.0)], {"measures": ["GMAP"]}, "no user of held_out has a list; ids of both"),  # and no 0
    ],
)
def test_the_cause_why_nothing_is_measured_is_that_of_ids_and_gains(
    judged: list[tuple[Any, ...]], options: dict[str, Any], said: str
) -> None:
    held_out, asked = table("user_id item_id gain", *judged), {"measures": ["R"], **options}
    with pytest.warns(UserWarning, match=f"nothing is measured: {said}"):
        assert measured(pairs_of("u", "v"), held_out, **asked).metrics.num_rows


def test_a_missing_column_says_to_rename_the_one_that_is_it() -> None:
    with pytest.raises(InputError, match=r"no column 'item_id' among user_id, thing, score; .*; rename"):
        evaluate(table("user_id thing score", ("u", "a", 1.0)), held_out(), measures=["RR"])
    with pytest.raises(InputError, match=r"no column 'recommended_at'; .*; rename the column"):
        measured(log(order="score"), held_out(), measures=["RR"], attribution="all", attribution_window="1d")


def test_a_column_of_models_with_another_name_is_warned_of() -> None:
    listed = table("Algorithm user_id item_id score", ("als", "u", "a", 1.0), ("pop", "u", "a", 1.0))
    with pytest.warns(
        UserWarning, match="no column 'model_id', .* if 'Algorithm' names the models, rename it"
    ) as warned:
        evaluate(listed, held_out(), measures=["RR"])
    assert warned[0].filename == __file__


def shown(*hours: int, gap: int = 0) -> pa.Table:
    """One user's lists of two items each, the second item a gap of minutes after the first."""
    rows = [
        ("u", f"{hour}{item}", 1.0 - item, f"2026-01-02 {hour:02}:{item * gap:02}") for hour in hours for item in (0, 1)
    ]
    return table("user_id item_id score recommended_at", *rows)


def test_lists_that_are_merged_are_warned_of() -> None:
    last_touch = {"attribution": "last_touch", "attribution_window": "1d"}
    clicked = table("user_id item_id interacted_at", ("u", "10", 1_767_322_800_000_000))
    by_time = partial(evaluate, held_out=clicked, measures=["RR"], policies=last_touch)
    with pytest.warns(UserWarning, match="no column 'list_id', .* 1 of 1 have several times in recommended_at"):
        by_time(shown(1, 2))
    with warnings.catch_warnings(action="error"):
        by_time(shown(1))
        by_time(shown(1, gap=5))  # times of single items
        named = shown(1, 2).append_column("list_id", pa.array(["a", "a", "b", "b"]))
        by_time(named)


def test_times_of_another_unit_are_no_times() -> None:
    listed = shown(1).set_column(3, "recommended_at", pa.array([1_767_315_600_000] * 2))  # milliseconds
    clicked = table("user_id item_id interacted_at", ("u", "10", 1_767_322_800_000_000))
    said = "recommendations: 2 of 2 rows have no time that can be read in 'recommended_at' .* or seconds since 1970"
    with pytest.warns(UserWarning, match=said):
        result = measured(listed, clicked, measures=["RR"], attribution="last_touch", attribution_window="1d")
    with pytest.warns(UserWarning, match="of lists of no time and interactions of 2026-01-02 03:00:00; see .checks"):
        assert result.metrics.num_rows


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"held_out": table("user_id item_id")}, "nothing is measured: held_out has no rows"),
        ({"models": ["zz"]}, "no row of 'zz', which models= or a measure names; the log has: m, n"),
        ({"measures": ["P(rel=4)@1"]}, r"no user has a relevant judgement \(a gain of at least 4; the largest is 2\)"),
    ],
)
def test_a_warning_names_the_cause(options: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {
        "recommendations": table("model_id user_id item_id score", ("m", "u", "a", 1.0), ("n", "u", "b", 1.0)),
        "held_out": table("user_id item_id gain", ("u", "a", 2.0)),
        "measures": ["P@1"],
    }
    with pytest.warns(UserWarning, match=said):
        assert measured(**{**given, **options}).metrics is not None


def test_measures_that_compare_with_a_model_that_is_not_there_are_warned_of() -> None:
    log_ = table("model_id user_id item_id score", ("m", "u", "a", 1.0), ("n", "u", "b", 1.0))
    judged = table("user_id item_id", ("u", "a"))
    result = evaluate(log_, judged, measures=["Overlap(model='popular')@1"])
    with pytest.warns(UserWarning, match="no row of 'popular', which models= or a measure names; the log has: m, n"):
        result.metrics  # noqa: B018 - computed when it is read
    with pytest.raises(ConfigError, match=r"agreement\(baseline=\): found 'zz'; expected a model of the log: m, n"):
        evaluate(log_, judged, measures=["P@1"]).agreement("zz")


@pytest.mark.parametrize(
    ("held_out", "said"),
    [
        (table("user_id item_id rating", ("u", "a", "4")), "no column 'gain', so each of its rows has the gain 1"),
        (table("user_id item_id Gain", ("u", "a", "4")), "if 'Gain' holds the gains, rename it to gain"),
    ],
)
def test_gains_of_another_name_are_warned_of(held_out: pa.Table, said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        evaluate(log(order="score"), held_out, measures=["RR"])
    with warnings.catch_warnings(action="error"):
        evaluate(log(order="score"), held_out.rename_columns(["user_id", "item_id", "gain"]), measures=["RR"])
        evaluate(
            log(order="score"),
            held_out,
            measures=["RR"],
            inputs={"held_out": {"gains": {"column": held_out.column_names[2], "edges": [4]}}},
        )


def test_segments_without_slices_are_warned_of() -> None:
    given = (log(order="score"), table("user_id item_id", ("u", "a")))
    users = table("user_id country", ("u", "DE"))
    with pytest.warns(UserWarning, match=r"segments= is given and not used; slices=\['country'\] makes slices of it"):
        evaluate(*given, measures=["RR"], segments=users)
    with warnings.catch_warnings(action="error"):
        evaluate(*given, measures=["RR"], segments=users, slices=["country"])


def test_a_user_without_a_list_among_others_is_no_reason_to_warn() -> None:
    judged = table("user_id item_id gain", ("u", "a", 1.0), ("x", "a", 1.0))
    with warnings.catch_warnings(action="error"):
        assert evaluate(log(order="score"), judged, measures=["RR"]).metrics.num_rows


def test_a_result_with_a_row_for_almost_every_user_names_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two measures of 30 values of one segment, 2 of another and of everyone: 66 rows."""
    users = [f"u{number}" for number in range(30)]
    segments = table("user_id phone country", *((user, user, "DE" if user < "u2" else "FR") for user in users))
    log = table("user_id item_id score", *((user, "a", 1.0) for user in users))
    judged = table("user_id item_id gain", ("u1", "a", 1.0))
    asked: dict[str, Any] = {"measures": ["P@1", "R@1"], "segments": segments, "slices": ["country", "phone"]}
    monkeypatch.setattr("rankeval_spark.sums.grouping.MAX_ROWS", 66)
    assert measured(log, judged, population="run", **asked).metrics.num_rows == 66
    monkeypatch.setattr("rankeval_spark.sums.grouping.MAX_ROWS", 65)
    with pytest.raises(RefusedCallError, match=r"evaluate\(slices=\): found a result of more than 65 rows, .*'phone'"):
        measured(log, judged, population="run", **asked).leaderboard()


# ---- a warning says which rows are left out that nobody asked to leave out: one a kind, with count and share -------


ROWS: Final = [(user, item, 4.0 - place) for user in "uvw" for place, item in enumerate("abcd")]
JUDGED: Final = [("u", "a", 1.0), ("v", "b", 1.0), ("w", "c", 1.0)]


def with_rows(*rows: tuple[Any, ...]) -> pa.Table:
    return table("user_id item_id score", *ROWS, *rows)


def with_judgements(*rows: tuple[Any, ...]) -> pa.Table:
    return table("user_id item_id gain", *JUDGED, *rows)


def warned(compute: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        compute()
    return [str(one.message).removesuffix("; see .checks") for one in heard]


BAD_SCORES: Final = [("u", "x", math.nan), ("v", "x", math.inf)]
IDS: Final = [(None, "a", 1.0), ("u", None, 1.0)]
SEEN: Final = {"train": table("user_id item_id", ("u", "a"), ("u", None)), "seen_in_train": "drop"}
OTHERS: Final = [(user, "a", 1.0) for user in "stxy"]
LEFT_OUT: Final = "are left out: the score, or without one the rank, is NULL, NaN or infinite"
NO_ID: Final = "are left out: an id is NULL"
UNSERVED: Final = "recommendations: 4 of 7 judged users (57.1 %) have no list"
REPEATED: Final = (
    "recommendations: 2 of 14 rows (14.3 %) repeat an item of their list; its best place counts (duplicates='best')"
)


@pytest.mark.parametrize(
    ("listed", "judged", "options", "said"),
    [
        (BAD_SCORES, [], {}, [f"recommendations: 2 of 14 rows (14.3 %) {LEFT_OUT}"]),
        (BAD_SCORES, [], {"invalid_scores": "drop"}, []),  # as asked for
        (IDS, IDS, {}, [f"recommendations: 2 of 14 rows (14.3 %) {NO_ID}", f"held_out: 2 of 5 rows (40 %) {NO_ID}"]),
        (
            [],
            [("u", "b", math.nan)],
            {},
            ["held_out: 1 of 4 rows (25 %) are left out: the gain is NULL, NaN or infinite"],
        ),
        ([], [], SEEN, [f"train: 1 of 2 rows (50 %) {NO_ID}"]),
        ([], [("u", "b", 0.0)], {}, []),
    ],
    ids=["scores", "scores, as asked for", "ids", "gains", "training data", "nothing"],
)
def test_rows_that_cannot_be_used_are_said_by_the_call(
    listed: list[Any], judged: list[Any], options: dict[str, Any], said: list[str]
) -> None:
    found: list[Evaluation] = []
    given = with_rows(*listed), with_judgements(*judged)
    assert warned(lambda: found.append(measured(*given, measures=["RR"], **options))) == said
    assert warned(lambda: found[0].metrics) == []


@pytest.mark.parametrize(
    ("listed", "judged", "options", "said"),
    [
        ([("u", "a", 0.5), ("v", "b", 0.5)], [], {}, [REPEATED]),
        ([("u", "a", 0.5)], [], {"duplicates": "best"}, []),  # as asked for
        ([], OTHERS, {}, [UNSERVED]),
        ([], OTHERS, {"population": "run"}, []),  # users that no mean has
        ([], JUDGED, {}, []),  # judgements may repeat
        ([(user, "a", 1.0) for user in "stxyz"], [], {}, []),  # users without a judgement
    ],
)
@pytest.mark.parametrize("first", ["metrics", "comparisons", "checks"])
def test_what_lists_show_is_said_with_the_first_small_result(
    listed: list[Any], judged: list[Any], options: dict[str, Any], said: list[str], first: str
) -> None:
    result = measured(with_rows(*listed), with_judgements(*judged), measures=["RR"], baseline="model", **options)
    assert warned(lambda: getattr(result, first)) == said
    assert warned(lambda: result.metrics) == []  # once


def test_an_input_without_a_usable_row_is_refused_without_a_warning() -> None:
    none = table("user_id item_id score", ("u", "a", math.nan))
    assert warned(lambda: evaluate(none, with_judgements(), measures=["RR"])) == []


def test_the_model_whose_users_are_missing_is_named() -> None:
    names = table("model_id user_id item_id score", ("A", "u", "a", 1.0), *(("B", u, "a", 1.0) for u in "uvw"))
    result = evaluate(names, with_judgements(), measures=["RR"])
    assert warned(result.leaderboard) == ["recommendations: 2 of 3 judged users (66.7 %) have no list of 'A'"]


@pytest.mark.parametrize("users", [["u", "v", None], [None, "w"]])
def test_row_of_segments_without_a_user_is_the_segment_of_no_user(users: list[str | None]) -> None:
    segments = table("user_id country", *((user, "FR" if user else "DE") for user in users))
    result = evaluate(with_rows(), with_judgements(), measures=["RR"], segments=segments, slices=["country"])
    values = {row["slice_value"]: row["n_users"] for row in result.metrics.to_pylist() if row["slice"] == "country"}
    assert values == {"FR": len(users) - 1, "(unknown)": 4 - len(users)}
