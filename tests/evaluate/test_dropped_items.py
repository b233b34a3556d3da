"""Recommended items that the policies leave out: seen before, unknown to the catalogue, or the query itself."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, RefusedCallError
from tests.support.arrow_frames import by, dicts, judgements, ranking, shuffled, table, tuples, where
from tests.support.sections import measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankeval_spark import Evaluation

TRAIN: Final = (("ann", "a"), ("ann", "a"), ("ann", "z"), ("bob", "b"), (None, "c"), ("ann", None), (None, None))
"""ann's a occurs twice; rows without a user or an item are in no list."""

MEASURES: Final = ("P@1", "RR", "nDCG@3", "Gini@3")


def log() -> pa.Table:
    """Ann's first item is seen, and so is all of Bob's list; to Cat all is new."""
    return ranking({"ann": "a b c", "bob": "b", "cat": "a b c"})


def truth() -> pa.Table:
    """Everyone is judged; Ann's a, which she has seen, too."""
    return judgements({"ann": {"a": 1, "b": 1}, "bob": {"b": 1}, "cat": {"c": 1}})


def train() -> pa.Table:
    """Make the training data."""
    return table("user_id item_id", *TRAIN)


def test_lists_close_up_where_a_seen_item_leaves_them() -> None:
    """Bob's list is empty then: he counts as a user without one. Judgements stay, so ann has 1 of 2."""
    result = measured(log(), truth(), measures=["R@1"], train=train(), seen_in_train="drop")
    assert by(result.user_metrics, "user_id", value="r") == {"ann": 1 / 2, "bob": 0.0, "cat": 0.0}
    assert by(result.user_metrics, "user_id", value="n_recommended") == {"ann": 1, "bob": 0, "cat": 1}
    assert tuples(result.metrics, "n_missing") == [(1,)]
    kept = evaluate(log(), truth(), measures=["R@1"], train=train())
    assert by(kept.user_metrics, "user_id", value="r") == {"ann": 1 / 2, "bob": 1.0, "cat": 0.0}


def test_a_list_of_which_nothing_is_left_is_none_as_where_all_scores_are_null() -> None:
    """Of a user who is not judged there is then no row at all; a model without any list still is one."""
    seen = table("user_id item_id", ("ann", "a"), ("eve", "a"))
    held_out = judgements({"ann": {"b": 1}, "bob": {"b": 1}})
    lists = ranking({"ann": "a", "bob": "b", "eve": "a"})
    dropped = measured(lists, held_out, measures=["RR"], train=seen, seen_in_train="drop", population="judged")
    nulls = table("user_id item_id score", ("ann", "a", None), ("bob", "b", 100.0), ("eve", "a", None))
    invalid = measured(nulls, held_out, measures=["RR"], population="judged")
    assert rows_of(dropped) == rows_of(invalid)
    only = measured(lists, held_out, measures=["RR"], train=lists.select(["user_id", "item_id"]), seen_in_train="drop")
    assert tuples(only.metrics, "model_id", "value", "n_users", "n_missing") == [("model", 0.0, 2, 2)]


LOST: Final = {
    **{"R": 0.0, "ItemCoverage": 0.0, "CatalogCoverage": 0.0, "UserCoverage": 0.0},
    **dict.fromkeys(("Entropy", "Gini", "Personalization", "PopREO", "PopRSP")),
}
"""Values of a model that shows nothing; None where there is none."""


def lost_and_kept() -> tuple[list[tuple[str, str, str, float]], list[tuple[str, str, float]], list[tuple[str, str]]]:
    """Make lists of two models, judgements, and training data that have all that the model "lost" recommends."""
    lists = [("lost", "ann", "a", 1.0), ("lost", "bob", "b", 1.0), ("kept", "ann", "c", 1.0)]
    return lists, [("ann", "a", 1.0), ("bob", "c", 1.0)], [("ann", "a"), ("bob", "b")]


def assert_lost(rows: list[dict[str, Any]], *models: str) -> None:
    """Check that these models have a row of each measure, and those of all lists no user."""
    for model in models:
        own = [row for row in rows if row["model_id"] == model]
        assert {row["measure"]: row["value"] for row in own} == LOST
        assert {row["n_users"] for row in own if row["n_missing"] is None} == {0}
        assert {row["n_lists"] for row in own if row["n_missing"] is None} == {0}


def test_a_model_that_lost_all_lists_has_a_row_of_each_measure() -> None:
    lists, gains, pairs = lost_and_kept()
    given = {"train": table("user_id item_id", *pairs), "items": table("item_id", ("a",), ("b",), ("c",))}
    held_out, asked = table("user_id item_id gain", *gains), {"measures": [f"{name}@2" for name in LOST], **given}
    log = table("model_id user_id item_id score", *lists)
    rows = measured(log, held_out, seen_in_train="drop", **asked).metrics.to_pylist()
    assert_lost(rows, "lost")
    assert [row["value"] for row in rows if (row["model_id"], row["measure"]) == ("kept", "ItemCoverage")] == [1.0]
    alone = measured(log.slice(0, 2), held_out, seen_in_train="drop", **asked).metrics.to_pylist()
    assert_lost(alone, "lost")
    absent = measured(log, held_out, seen_in_train="drop", models=["lost", "kept", "absent"], **asked)
    with pytest.warns(UserWarning, match="recommendations have no row of 'absent'"):
        assert_lost(absent.metrics.to_pylist(), "lost", "absent")


def in_slices(to_frame: Callable[[pa.Table], Any]) -> Evaluation:
    """Evaluate three models: DE has users of both models with lists, FR of one of them, NO and unknown of none."""
    logged = [
        ("kept", "ann", "a", 1.0),
        ("kept", "bob", "b", 1.0),
        ("part", "ann", "a", 1.0),
        ("lost", "bob", "c", 1.0),
    ]
    rows = [*logged, ("lost", "cat", "c", 1.0)]  # cat has seen it, as bob has
    countries = {"ann": "DE", "bob": "FR", "cat": "NO", "dan": None}
    return measured(
        to_frame(table("model_id user_id item_id score", *rows)),
        to_frame(table("user_id item_id gain", *((user, "a", 1.0) for user in countries))),
        train=to_frame(table("user_id item_id", ("bob", "c"), ("cat", "c"), ("eve", "a"), ("eve", "b"))),
        items=to_frame(table("item_id", ("a",), ("b",), ("c",))),
        segments=to_frame(table("user_id country", *countries.items())),
        slices=["country"],
        models=["kept", "part", "lost", "absent"],
        seen_in_train="drop",
        measures=["P@1", "ItemCoverage@1", "CatalogCoverage@2", "Gini@1", "Entropy@1", "PopRSP@1"],
    )


def assert_in_slices(metrics: pa.Table) -> None:
    """Check that all models have a row of all measures in each slice where one of them has a list, and what it says."""
    rows = {(row["measure"], row["slice_value"], row["model_id"]): row for row in metrics.to_pylist()}
    models = ("kept", "part", "lost", "absent")
    of_all_lists = {"ItemCoverage", "CatalogCoverage", "Gini", "Entropy", "PopRSP"}
    assert {key for key in rows if key[0] in of_all_lists} == {
        (measure, value, model) for measure in of_all_lists for value in ("", "DE", "FR") for model in models
    }
    n_users = {"": (2, 1, 0, 0), "DE": (1, 1, 0, 0), "FR": (1, 0, 0, 0)}
    for value, counts in n_users.items():
        for model, count in zip(models, counts, strict=True):
            found = {name: rows[name, value, model] for name in of_all_lists}
            assert {(row["n_users"], row["n_lists"]) for row in found.values()} == {(count, count)}
            assert (found["ItemCoverage"]["value"], found["CatalogCoverage"]["value"]) == (count, count / 3)
            if not count:
                assert {found[name]["value"] for name in ("Gini", "Entropy", "PopRSP")} == {None}
            assert {row["std_error"] for row in found.values()} == {None}


def test_a_model_without_a_list_has_rows_in_the_slices_of_the_others() -> None:
    with pytest.warns(UserWarning, match="recommendations have no row of 'absent'"):
        assert_in_slices(in_slices(lambda rows: rows).metrics)


@pytest.mark.filterwarnings("ignore:recommendations have no row of")
@pytest.mark.parametrize("measure", ["ItemCoverage", "Personalization", "PopREO"])
def test_a_model_that_is_alone_and_without_a_list_is_measured_with_slices_too(measure: str) -> None:
    log, segments = ranking({"ann": "a"}, model_id="als"), table("user_id country", ("ann", "DE"))
    given = {"segments": segments, "slices": ["country"], "train": table("user_id item_id", ("ann", "b"))}
    result = evaluate(log, judgements({"ann": {"a": 1}}), measures=["P@1", f"{measure}@1"], models=["ghost"], **given)
    value = 0.0 if measure == "ItemCoverage" else None
    rows = {row[:2]: row[2:] for row in tuples(result.metrics, "measure", "slice", "value", "n_users")}
    assert rows == {("P", "all"): (0.0, 1), ("P", "country"): (0.0, 1), (measure, "all"): (value, 0)}


@pytest.mark.parametrize("by_catalogue", [True, False], ids=["items", "items of train"])
def test_unknown_items_leave_the_lists(by_catalogue: bool) -> None:
    """Of x, a, y, b only a and b stand in the catalogue, once or twice; a row of it without an item is none."""
    lists = ranking({"ann": "x a y b", "bob": "x"})
    held_out = judgements({"ann": {"b": 1}, "bob": {"x": 1}})
    known = table("user_id item_id", ("u", "a"), ("v", "b"), ("v", "b"), ("v", None), (None, "c"))
    items = table("item_id", ("a",), ("b",), (None,), ("c",))
    given: dict[str, Any] = {"items": items} if by_catalogue else {"train": known}
    result = measured(lists, held_out, measures=["RR", "P@2"], unknown_items="drop", **given)
    assert by(where(result.user_metrics, k=0), "user_id", value="rr") == {"ann": 1 / 2, "bob": 0.0}
    assert by(where(result.user_metrics, k=0), "user_id", value="n_recommended") == {"ann": 2, "bob": 0}
    counts = {row["check"]: (row["count"], row["share"], row["sample_keys"]) for row in dicts(result.checks)}
    assert counts["unknown_items"] == (2, 2 / 4, ["x", "y"])
    assert counts["unknown_rows"] == (3, 3 / 5, ["x", "y"])


def test_the_catalogue_goes_before_the_training_data() -> None:
    lists, held_out = ranking({"ann": "a b"}), judgements({"ann": {"a": 1, "b": 1}})
    result = measured(
        *(lists, held_out),
        measures=["SetR"],
        train=table("user_id item_id", ("bob", "a"), ("bob", "b")),
        items=table("item_id", ("b",)),
        unknown_items="drop",
    )
    assert tuples(result.user_metrics, "setr") == [(1 / 2,)]


def test_what_was_left_out_is_counted_as_it_stood_in_the_log() -> None:
    """In all of its rows, also below the cutoff and where a measure that looks at seen items finds none left."""
    rows = [("ann", "b", 9.0), ("ann", "c", 8.0), ("ann", "a", 7.0), ("bob", "b", 9.0), ("bob", None, 1.0)]
    dropped = measured(
        table("user_id item_id score", *rows, ("ann", "z", None)),
        truth(),
        measures=["NotInTrain@1"],
        train=train(),
        seen_in_train="drop",
    )
    assert by(dropped.user_values, "user_id", value="value") == {"ann": 1.0, "bob": None, "cat": None}
    (seen,) = dicts(where(dropped.checks, check="seen_in_train").select(["input", "count", "share", "sample_keys"]))
    # Two of the four rows that can be used.
    assert [tuple(seen.values())] == [("recommendations", 2, 2 / 4, ["model ann  a", "model bob  b"])]


def test_nothing_is_said_of_ranks_from_which_items_were_taken() -> None:
    columns = "user_id item_id score rank"
    ranks = table(columns, *(("ann", item, -float(rank), rank) for rank, item in enumerate("abc", 1)))
    for policy in ({"seen_in_train": "drop"}, {"unknown_items": "drop"}, {}):
        options: dict[str, Any] = policy
        result = measured(ranks, truth(), measures=["RR"], train=train(), **options)
        share = None if policy else 0.0
        checks = result.checks.filter(pc.field("check").isin(["rank_gaps", "score_rank_disagree"]))
        assert by(checks, "check", value="share") == {"rank_gaps": share, "score_rank_disagree": share}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({"seen_in_train": "drop"}, ["evaluate(train=): found None; expected train, for seen_in_train='drop'"]),
        (
            {"unknown_items": "drop", "seen_in_train": "drop", "ties": "expected"},
            [
                "evaluate(train=): found None; expected train, for seen_in_train='drop'",
                "evaluate(items=): found None; expected items or train, for unknown_items='drop'",
                "evaluate(measures=): found ERR with ties='expected'",
            ],
        ),
        ({"seen_in_train": "dorp"}, ["evaluate(policies=).seen_in_train: found 'dorp'"]),
        ({"own_item": "dorp"}, ["evaluate(policies=).own_item: found 'dorp'; expected one of keep, drop, drop_both"]),
    ],
)
def test_a_policy_without_the_input_that_it_goes_by_is_a_fault(policies: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        measured(log(), truth(), measures=["ERR@3"], **policies)
    told = [str(fault) for fault in raised.value.faults]
    assert [found.startswith(text) for found, text in zip(told, expected, strict=True)] == [True] * len(expected), told


def similar_items(ids: str = "string") -> tuple[pa.Table, pa.Table]:
    """Make a log whose users are items too: 1 is in its own list and judgements, 2 below 1, 3 is alone in its list."""
    name = int if ids == "bigint" else str
    log, held_out = (
        [(name(query), name(item), value) for query, item, value in rows]
        for rows in (
            [(1, 1, 9.0), (1, 2, 8.0), (1, 3, 7.0), (2, 1, 9.0), (2, 2, 8.0), (3, 3, 9.0), (4, 1, 9.0)],
            [(1, 1, 1.0), (1, 3, 1.0), (2, 1, 1.0), (3, 3, 1.0), (3, 1, 1.0), (4, 2, 1.0)],
        )
    )
    return table("user_id item_id score", *log, ids=ids), table("user_id item_id gain", *held_out, ids=ids)


@pytest.mark.parametrize("ids", ["string", "bigint"])
@pytest.mark.parametrize(
    ("own_item", "recall", "reciprocal"),
    [
        ("keep", [2 / 2, 1, 1 / 2, 0], [1, 1, 1, 0]),
        ("drop", [1 / 2, 1, 0, 0], [1 / 2, 1, 0, 0]),
        ("drop_both", [1 / 1, 1, 0, 0], [1 / 2, 1, 0, 0]),
    ],
)
def test_query_leaves_its_own_list_and_its_judgements(
    ids: str, own_item: str, recall: list[float], reciprocal: list[float]
) -> None:
    similar, held_out = similar_items(ids)
    result = measured(shuffled(similar), held_out, measures=["R@3", "RR@3"], own_item=own_item)
    users = result.user_metrics.sort_by("user_id")
    assert [users[name].to_pylist() for name in ("r", "rr")] == [recall, reciprocal]
    assert users["n_recommended"].to_pylist() == ([3, 2, 1, 1] if own_item == "keep" else [2, 1, 0, 1])
    counted = tuples(where(result.checks, check="own_item"), "input", "count", "share", "sample_keys")
    expected = [("held_out", 2, 2 / 6, ["1 1", "3 3"]), ("recommendations", 3, 3 / 7, ["model 1  1", "model 3  3"])]
    assert counted == ([] if own_item == "keep" else expected)
    checks = where(result.checks, input="recommendations", check="rank_gaps")
    assert tuples(checks, "verdict") == [("ok",)]


def test_list_in_one_cell_loses_the_query_too() -> None:
    nested = pa.table({"user_id": ["a", "b"], "item_id": [["a", "b", "c"], ["c", "b"]]})
    held_out = judgements({"a": {"b": 1}, "b": {"a": 1}})
    result = measured(nested, held_out, measures=["RR"], own_item="drop")
    assert by(result.user_metrics, "user_id", value="rr") == {"a": 1.0, "b": 0.0}


def test_warning_says_that_own_item_leaves_nothing() -> None:
    own, others = ranking({"a": "a", "b": "b"}), judgements({"a": {"b": 1}})
    itself = judgements({"a": {"a": 1}})
    with pytest.warns(UserWarning, match="no recommended item is left by own_item; see .checks"):
        assert tuples(measured(own, others, measures=["RR"], own_item="drop").metrics, "value") == [(0.0,)]
    with pytest.warns(UserWarning, match="held_out has no rows left by own_item"):
        assert not measured(own, itself, measures=["RR"], own_item="drop_both").metrics.num_rows


def test_ids_of_different_types_are_not_compared_with_each_other() -> None:
    log = pa.table({"user_id": ["7"], "item_id": [7], "score": [1.0]})
    with pytest.raises(RefusedCallError) as raised:
        measured(log, log, measures=["RR"], own_item="drop")
    (fault,) = raised.value.faults
    assert str(fault) == (
        "evaluate(recommendations=): found user_id of type str and item_id of type int64; expected one type, "
        "because own_item='drop' compares them; cast item_id of all inputs to text"
    )
    assert evaluate(log, log, measures=["RR"]).metrics.num_rows


# ---- against a log that was filtered by hand ------------------------------------------------------------------------


def rows_of(result: Evaluation) -> list[str]:
    """Give the tables of users and of means, row by row."""
    return [*map(str, dicts(result.user_metrics)), *map(str, dicts(result.metrics))]


def random_rows(seed: int, ids: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Make a log of two models with ties, repeated items and gaps in its ranks, judgements, and training data."""
    draw = random.Random(seed)
    name = str if ids == "string" else int
    users, items = [name(10 + number) for number in range(12)], [name(number) for number in range(15)]
    listed = [
        (model, user, item, draw.choice((0.1, 0.5, 0.9)), rank)
        for model in ("als", "pop")
        for user in users
        if draw.random() < 0.9
        for rank, item in zip(sorted(draw.sample(range(1, 30), 7)), draw.choices(items, k=7), strict=True)
    ]
    judged = [(user, item, float(draw.randint(0, 3))) for user in users for item in draw.sample(items, 4)]
    pairs = [(draw.choice([*users, None]), draw.choice([*items[:11], None])) for _ in range(90)]
    return listed, judged, [*pairs, *pairs[:20]]


BOTH: Final = {"seen_in_train": "drop", "unknown_items": "drop"}
EVERY: Final = {**BOTH, "own_item": "drop"}


@pytest.mark.parametrize(
    ("ids", "policies", "others"),
    [
        pytest.param("string", {"seen_in_train": "drop"}, {}, id="seen"),
        pytest.param("bigint", {"unknown_items": "drop"}, {}, id="unknown"),
        pytest.param("bigint", BOTH, {"rank_gaps": "keep"}, id="both, ranks kept"),
        pytest.param("string", BOTH, {"ties": "pessimistic", "models": ["pop", "als"]}, id="both, ties by gain"),
        pytest.param("bigint", {"own_item": "drop"}, {}, id="the query"),
        pytest.param("string", EVERY, {"lists": "pooled"}, id="all three, lists pooled"),
    ],
)
def test_numbers_are_those_of_a_log_without_these_rows(
    ids: str, policies: dict[str, Any], others: dict[str, Any]
) -> None:
    """Of every table, and of how far the lists agree; an item twice in a list, or in the training data, or a NULL."""
    listed, judged, pairs = random_rows(7, ids)
    owned, known = set(pairs), {item for _, item in pairs}
    kept = [
        row
        for row in listed
        if not ("seen_in_train" in policies and (row[1], row[2]) in owned)
        and not ("unknown_items" in policies and row[2] not in known)
        and not ("own_item" in policies and row[1] == row[2])
    ]
    assert len(listed) > len(kept) > len({row[:3] for row in kept}) > 20
    held_out = table("user_id item_id gain", *judged, ids=ids)
    trained = table("user_id item_id", *pairs, ids=ids)

    def evaluated(rows: list[tuple[Any, ...]], **drops: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
        log = shuffled(table("model_id user_id item_id score rank", *rows, ids=ids))
        return measured(log, held_out, measures=MEASURES, train=trained, **others, **drops)

    found, expected = evaluated(listed, **policies), evaluated(kept)
    assert rows_of(found) == rows_of(expected)
    assert dicts(found.agreement("als", k=5)) == dicts(expected.agreement("als", k=5))


# ---- judgements that are in the training data -----------------------------------------------------------------------

SHOWN: Final = {"u": "a b c"}
KNOWN: Final = (("u", "a"), ("u", "x"))
"""Of the held-out a, x and b the user has two in train, one of which is recommended."""


def known_judgements(policy: str, *rows: tuple[str, str, float]) -> Evaluation:
    """Evaluate the list a, b, c of a user who has a and x in the training data."""
    held_out = table("user_id item_id gain", *(rows or [("u", item, 1.0) for item in "axb"]))
    train = table("user_id item_id", *KNOWN)
    return measured(ranking(SHOWN), held_out, measures=["R@3"], train=train, seen_in_train=policy, population="judged")


def counted(result: Evaluation, check: str = "held_out_in_train") -> list[tuple[Any, ...]]:
    """Return count, share, verdict and keys of a check."""
    return tuples(where(result.checks, check=check), "count", "share", "verdict", "sample_keys")


@pytest.mark.parametrize(("policy", "recall"), [("keep", 2 / 3), ("drop", 1 / 3), ("drop_both", 1.0)])
def test_judgements_in_train_are_counted_and_dropped_with_both(policy: str, recall: float) -> None:
    result = known_judgements(policy)
    assert tuples(result.metrics, "value", "n_users") == [(recall, 1)]
    verdict = "ok" if policy == "drop_both" else "warn"  # where they are left out, nothing is wrong with them
    assert counted(result) == [(2, 2 / 3, verdict, ["u a", "u x"])]


def test_a_pair_counts_once_and_gains_of_zero_do_too() -> None:
    rows = [("u", "a", 0.0), ("u", "a", 1.0), ("u", "b", 0.0), ("u", "x", -1.0), ("v", "x", 1.0)]
    assert counted(known_judgements("keep", *rows)) == [(2, 2 / 4, "warn", ["u a", "u x"])]


def test_without_training_data_the_check_is_not_made() -> None:
    assert counted(evaluate(log(), truth(), measures=["RR"])) == []
    of_others = evaluate(log(), truth(), measures=["RR"], train=table("user_id item_id", ("eve", "a"), ("ann", "z")))
    assert counted(of_others) == [(0, 0.0, "ok", [])]


def test_a_user_all_of_whose_judgements_are_dropped_is_not_judged() -> None:
    """One whose other judgements are not relevant follows the policy of users without a relevant one."""
    rows = [("u", "a", 1.0), ("u", "b", 0.0), ("v", "b", 1.0)]
    result = known_judgements("drop_both", *rows)
    assert tuples(result.metrics, "value", "n_users", "n_missing", "n_zero_relevant") == [(0.0, 2, 1, 1)]
    assert counted(result, "zero_relevant") == [(1, 1 / 2, "ok", ["u"])]
    with pytest.warns(UserWarning, match="judgements of items in train are left out by seen_in_train='drop_both'"):
        assert tuples(known_judgements("drop_both", *rows[:1]).metrics, "value", "n_users") == [(None, 0)]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"population": "judged", "measures": [*MEASURES, "R@3"]}, id="judged"),
        pytest.param({"population": "run", "zero_relevant": "zero", "measures": [*MEASURES, "R@3"]}, id="run"),
        pytest.param({"unknown_items": "drop", "ties": "expected", "measures": ["R@3", "P@1"]}, id="unknown too"),
        pytest.param({"measures": ["RMSE", "MAE"]}, id="predictions"),
        pytest.param({"measures": ["R(group='tail')@3", "PopREO@3", "NotInTrain@3"]}, id="groups"),
        pytest.param({"held_out_duplicates": "sum", "duplicates": "keep", "measures": ["nDCG@3"]}, id="sum"),
    ],
)
def test_both_equals_dropping_with_judgements_filtered_by_hand(options: dict[str, Any]) -> None:
    listed, judged, pairs = random_rows(13, "bigint")
    judged, owned = [*judged, *judged[:9]], set(pairs)
    log, train = (
        table("model_id user_id item_id score rank", *listed, ids="bigint"),
        table("user_id item_id", *pairs, ids="bigint"),
    )

    def evaluated(policy: str, rows: list[tuple[Any, ...]]) -> Evaluation:
        held_out = shuffled(table("user_id item_id gain", *rows, ids="bigint"))
        return measured(log, held_out, train=train, seen_in_train=policy, **options)

    found = evaluated("drop_both", judged)
    expected = evaluated("drop", [row for row in judged if row[:2] not in owned])
    assert rows_of(found) == rows_of(expected)
    assert rows_of(found) != rows_of(evaluated("drop", judged))
    n_known = len({row[:2] for row in judged} & owned)
    assert [row[0] for row in counted(found)] == [n_known]
    assert n_known > 5


def test_judgements_of_a_list_are_known_to_its_user() -> None:
    """The item counts once for each list that it is a judgement of, whichever list the training data came from."""
    columns = "user_id list_id item_id"
    log = table(f"{columns} score", ("u", "1", "a", 2.0), ("u", "1", "b", 1.0), ("u", "2", "b", 1.0))
    held_out = table(columns, ("u", "1", "a"), ("u", "1", "b"), ("u", "2", "a"), ("u", "2", "b"))
    train = table("user_id item_id", ("u", "a"))
    asked: dict[str, Any] = {"measures": ["R@1"], "train": train, "unit": "list"}
    assert counted(measured(log, held_out, **asked)) == [(2, 2 / 4, "warn", ["u a"])]
    both = measured(log, held_out, **asked, seen_in_train="drop_both")
    assert tuples(both.user_metrics, "list_id", "r") == [("1", 1.0), ("2", 1.0)]


def test_attributed_interactions_in_train_are_dropped_too() -> None:
    at = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(3)]  # the list is shown at the first hour
    shown_at = "2026-01-01 00:00:00"
    log = table("user_id item_id score recommended_at", ("u", "a", 2.0, shown_at), ("u", "b", 1.0, shown_at))
    held_out = table("user_id item_id interacted_at", ("u", "a", at[1]), ("u", "b", at[2]), ("u", "x", at[2]))
    found = {
        policy: measured(
            log,
            held_out,
            measures=["R@2"],
            train=table("user_id item_id", *KNOWN),
            seen_in_train=policy,
            attribution="last_touch",
            attribution_window="1d",
        )
        for policy in ("keep", "drop", "drop_both")
    }
    recalls = {policy: tuples(result.metrics, "value") for policy, result in found.items()}
    assert recalls == {"keep": [(2 / 3,)], "drop": [(1 / 3,)], "drop_both": [(1.0,)]}
    assert {policy: counted(result)[0][:2] for policy, result in found.items()} == dict.fromkeys(found, (2, 2 / 3))
