"""Models that serve other users are not compared on the same users; the reason says so, and everything that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rankeval_spark.errors import ConfigError
from tests.support import arms
from tests.support.arrow_frames import table, tuples, where
from tests.support.sections import measured

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rankeval_spark import Evaluation

COUNTS = ("n_with_baseline", "n_with_model", "n_with_both")
DERIVED = (
    *("delta", "ci_low", "ci_high", "relative_delta", "relative_ci_low", "relative_ci_high", "p_value", "p_adjusted"),
    *("effect_size", "n_wins", "n_ties", "n_losses", "win_share", "loss_share", "verdict"),
)
WITHHELD = (
    "withheld: {n} of the 100 users of the smaller model have lists of both, fewer than 1 in 10; "
    "compare the means of population='run', which are over each model's own users"
)


def log_of(lists: Mapping[str, Mapping[str, str]], list_id: str = "") -> pa.Table:
    rows = [
        (model, user, list_id, item, float(-place))
        for model, users in lists.items()
        for user, items in users.items()
        for place, item in enumerate(items.split())
    ]
    return table("model_id user_id list_id item_id score", *rows)


def evaluated(
    shared: Collection[int] = (),
    *,
    log: pa.Table | None = None,
    to_frame: Callable[[pa.Table], Any] = lambda rows: rows,
    **asked: Any,  # noqa: ANN401 - arguments of evaluate
) -> Evaluation:
    held_out = table("user_id item_id gain", *((user, "t", 1.0) for user in arms.gains()))
    segments = table("user_id country", *arms.countries().items())
    given = log_of(arms.lists(shared)).drop_columns(["list_id"]) if log is None else log
    options = {"measures": ["Success@1", "RR@2"], "baseline": "A", "slices": ["country"], **asked}
    used = {"segments": to_frame(segments)} if options["slices"] else {}
    return measured(to_frame(given), to_frame(held_out), **used, **options)


@pytest.mark.parametrize("population", ["truth", "judged"])
def test_arms_of_an_experiment_have_their_means_and_no_verdict(population: str) -> None:
    result = evaluated(measures=["Success@1"], population=population)
    with pytest.warns(UserWarning, match=WITHHELD.format(n=0).replace(".", r"\.")):
        rows = result.comparisons
    (row,) = where(rows, slice="all").to_pylist()
    assert tuple(row[name] for name in COUNTS) == (900, 100, 0)
    assert row["n_users"] == 1_000
    assert [row["baseline_value"], row["value"]] == pytest.approx([300 / 1_000, 34 / 1_000], rel=0, abs=1e-12)
    assert row["reason"] == "few_common_lists"
    assert [row[name] for name in DERIVED] == [None] * len(DERIVED)
    assert row["family_size"] == 0


@pytest.mark.parametrize("population", ["run", "intersection"])
def test_the_means_of_own_users_can_be_compared(population: str) -> None:
    result = evaluated(measures=["Success@1"], population=population)
    everyone = where(result.metrics, slice="all", measure="Success")
    assert tuples(everyone, "model_id", "value", "n_users") == [("A", 300 / 900, 900), ("B", 34 / 100, 100)]
    (row,) = where(result.comparisons, slice="all").to_pylist()
    assert tuple(row[name] for name in COUNTS) == (900, 100, 0)
    assert (row["n_users"], row["reason"], row["verdict"]) == (0, "no_common_users", None)


@pytest.mark.parametrize(("n_shared", "is_withheld"), [(11, True), (12, False)])
@pytest.mark.parametrize("population", ["truth", "run"])
def test_one_in_ten_users_of_the_smaller_model_is_enough(n_shared: int, is_withheld: bool, population: str) -> None:
    """B has 100 + n users, n of them with A too: 110 < 111 for 11, and 120 > 112 for 12."""
    result = evaluated(range(n_shared), measures=["Success@1"], population=population, min_slice_size=5, slices=[])
    if is_withheld:
        with pytest.warns(UserWarning, match="11 of the 111 users"):
            rows = result.comparisons
    else:
        rows = result.comparisons
    (row,) = rows.to_pylist()
    assert tuple(row[name] for name in COUNTS) == (900, 100 + n_shared, n_shared)
    assert (row["reason"] == "few_common_lists", row["p_value"] is None, row["delta"] is None) == (is_withheld,) * 3


def test_slices_count_their_own_users_and_withheld_rows_are_no_part_of_a_family() -> None:
    """In AT a tenth of A's users and all of B's; in DE all users of B are users of A."""
    with pytest.warns(UserWarning, match="withheld: 11 of the 111"):
        rows = evaluated(range(11)).comparisons
    counts = tuples(where(rows, measure="RR"), "slice_value", *COUNTS, "reason", "family_size")
    assert sorted(counts) == [
        ("", 900, 111, 11, "few_common_lists", 1),
        ("AT", 90, 102, 2, "few_common_lists", 1),
        ("DE", 810, 9, 9, None, 1),
    ]


def test_all_tests_of_all_pairs_are_withheld_and_those_of_shared_users_are_not() -> None:
    tests = ("t", "wilcoxon", "sign", "randomization", "bootstrap", "tukey", "randomized_tukey")
    log = log_of({**arms.lists(), "C": {user: "x t" for user in arms.gains()}}).drop_columns(["list_id"])
    asked: dict[str, Any] = {"baseline": "A", "pairs": "all", "tests": tests, "replicates": 200}
    with pytest.warns(UserWarning, match="the comparison of 'B' with 'A' is withheld"):
        rows = evaluated(log=log, measures=["RR@2"], slices=[], **asked).comparisons
    reasons = {(row["baseline_model_id"], row["model_id"], row["test"]): row["reason"] for row in rows.to_pylist()}
    assert {key[2] for key, reason in reasons.items() if reason == "few_common_lists"} == set(tests)
    assert {key[:2] for key, reason in reasons.items() if reason == "few_common_lists"} == {("A", "B")}
    assert all(row["p_value"] is not None for row in rows.to_pylist() if "C" in (row["model_id"]))


def test_lists_without_a_relevant_item_are_lists() -> None:
    users = arms.gains()
    log = log_of({"A": dict.fromkeys(users, "t x"), "B": dict.fromkeys(users, "x y")}).drop_columns(["list_id"])
    (row,) = evaluated(log=log, measures=["Success@1"], slices=[]).comparisons.to_pylist()
    assert tuple(row[name] for name in COUNTS) == (1_000, 1_000, 1_000)
    assert (row["delta"], row["verdict"]) == (-1.0, "worse")


def test_users_with_several_lists_count_once() -> None:
    lists = arms.lists()
    log = pa.concat_tables([log_of(lists, "1"), log_of({"A": lists["A"]}, "2")])
    with pytest.warns(UserWarning, match="withheld: 0 of the 100 users"):
        (row,) = evaluated(log=log, measures=["Success@1"], slices=[]).comparisons.to_pylist()
    assert tuple(row[name] for name in COUNTS) == (900, 100, 0)


def test_a_model_without_any_list_is_compared_for_it_fails_its_users() -> None:
    users = arms.gains()
    log = log_of({"A": dict.fromkeys(users, "t x")}).drop_columns(["list_id"])
    (row,) = evaluated(log=log, measures=["Success@1"], slices=[], models=["A", "B"]).comparisons.to_pylist()
    assert (*(row[name] for name in COUNTS), row["reason"], row["delta"]) == (1_000, 0, 0, None, -1.0)


def test_arms_by_country_are_not_compared_in_the_country_of_one() -> None:
    lists = {"A": "DE", "B": "AT"}
    log = log_of({model: {u: "t x" for u, own in arms.countries().items() if own == of} for model, of in lists.items()})
    with pytest.warns(UserWarning, match="withheld: 0 of the 190 users"):
        rows = evaluated(log=log.drop_columns(["list_id"]), measures=["Success@1"]).comparisons
    found = tuples(rows, "slice_value", *COUNTS, "reason")
    assert sorted(found) == [
        ("", 810, 190, 0, "few_common_lists"),
        ("AT", 0, 190, 0, "few_common_lists"),
        ("DE", 810, 0, 0, "few_common_lists"),
    ]


def of_unjudged(shared: Collection[int], **asked: Any) -> Evaluation:  # noqa: ANN401 - arguments of evaluate
    lists, judged = arms.unjudged_arms(shared)
    options = {"measures": ["Success@1"], "baseline": "A", "to_frame": lambda rows: rows, **asked}
    to_frame = options.pop("to_frame")
    held_out = table("user_id item_id gain", *((user, item, 1.0) for user, own in judged.items() for item in own))
    return measured(to_frame(log_of(lists).drop_columns(["list_id"])), to_frame(held_out), **options)


@pytest.mark.parametrize("population", ["truth", "judged"])
@pytest.mark.parametrize(("shared", "n_both"), [((), 0), ((0,), 1)])
def test_users_without_a_judgement_count_among_those_served(
    shared: tuple[int, ...], n_both: int, population: str
) -> None:
    result = of_unjudged(shared, population=population)
    with pytest.warns(UserWarning, match=f"withheld: {n_both} of the 100 users"):
        (row,) = result.comparisons.to_pylist()
    assert tuple(row[name] for name in COUNTS) == (100, 100 + n_both, n_both)
    assert (row["n_users"], row["reason"]) == (100, "few_common_lists")
    assert [row[name] for name in DERIVED] == [None] * len(DERIVED)
    with pytest.raises(ConfigError, match="no user with Success@1 and lists of A and another model"):
        of_unjudged(()).plot.user_differences("Success@1")


def test_a_judged_panel_that_both_models_serve_is_compared() -> None:
    """Ten of A's 100 judged users are enough, although B serves 100 others too; nine are not."""
    (row,) = of_unjudged(range(10)).comparisons.to_pylist()
    assert (*(row[name] for name in COUNTS), row["reason"]) == (100, 110, 10, None)
    with pytest.warns(UserWarning, match="withheld: 9 of the 100 users"):
        (row,) = of_unjudged(range(9)).comparisons.to_pylist()


def of_sessions(n_shared: int, **asked: Any) -> Evaluation:  # noqa: ANN401 - arguments of evaluate
    lists = arms.sessions(n_shared)
    rows = [
        (model, user, name, item, float(-place))
        for model, own in lists.items()
        for (user, name), items in own.items()
        for place, item in enumerate(items.split())
    ]
    options = {"measures": ["Success@1"], "baseline": "A", "to_frame": lambda rows: rows, **asked}
    to_frame = options.pop("to_frame")
    judged = sorted({(*key, "t") for own in lists.values() for key in own})
    log, held_out = table("model_id user_id list_id item_id score", *rows), table("user_id list_id item_id", *judged)
    return measured(to_frame(log), to_frame(held_out), **options)


@pytest.mark.parametrize("unit", ["user", "list"])
def test_models_that_answer_other_lists_of_the_same_users_are_not_compared(unit: str) -> None:
    with pytest.warns(UserWarning, match="withheld: fewer than 1 in 10 of the judged lists"):
        (row,) = of_sessions(0, unit=unit).comparisons.to_pylist()
    assert (*(row[name] for name in COUNTS), row["reason"]) == (30, 30, 30, "few_common_judged_lists")
    assert [row[name] for name in DERIVED] == [None] * len(DERIVED)
    (row,) = of_sessions(1, unit=unit).comparisons.to_pylist()
    assert (*(row[name] for name in COUNTS), row["reason"]) == (30, 30, 30, None)


def test_lists_that_judgements_do_not_name_are_shared_by_their_users() -> None:
    lists = arms.sessions(0)
    users = {model: {user: items for (user, _), items in own.items()} for model, own in lists.items()}
    log = pa.concat_tables([log_of({"A": users["A"]}, "1"), log_of({"B": users["B"]}, "2")])
    (row,) = evaluated(log=log, measures=["Success@1"], slices=[]).comparisons.to_pylist()
    assert (*(row[name] for name in COUNTS), row["reason"]) == (30, 30, 30, None)


def test_figures_of_differences_say_why_there_is_none() -> None:
    result = evaluated(measures=["Success@1"])
    with pytest.warns(UserWarning, match="withheld"), pytest.raises(ConfigError, match="withheld: 0 of the 100 users"):
        result.plot.forest()
    with pytest.raises(ConfigError, match="no user with Success@1 and lists of A and another model"):
        result.plot.user_differences("Success@1")
