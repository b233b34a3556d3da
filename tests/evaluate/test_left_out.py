"""A warning says which rows are left out that nobody asked to leave out: one a kind, with count and share."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from tests.support.arrow_frames import table
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from rankeval_spark import Evaluation

ROWS: Final = [(user, item, 4.0 - place) for user in "uvw" for place, item in enumerate("abcd")]
JUDGED: Final = [("u", "a", 1.0), ("v", "b", 1.0), ("w", "c", 1.0)]


def log(*rows: tuple[Any, ...]) -> pa.Table:
    return table("user_id item_id score", *ROWS, *rows)


def held_out(*rows: tuple[Any, ...]) -> pa.Table:
    return table("user_id item_id gain", *JUDGED, *rows)


def warned(compute: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        compute()
    return [str(one.message).removesuffix("; see .checks") for one in heard]


BAD_SCORES: Final = [("u", "x", math.nan), ("v", "x", math.inf)]
IDS: Final = [(None, "a", 1.0), ("u", None, 1.0)]


@pytest.mark.parametrize(
    ("recommendations", "judged", "options", "said"),
    [
        pytest.param(
            log(*BAD_SCORES),
            held_out(),
            {},
            [
                "recommendations: 2 of 14 rows (14.3 %) are left out: the score, or without one the rank, is NULL, NaN "
                "or infinite"
            ],
            id="scores",
        ),
        pytest.param(log(*BAD_SCORES), held_out(), {"invalid_scores": "drop"}, [], id="scores, as asked for"),
        pytest.param(
            log(*IDS),
            held_out(*IDS),
            {},
            [
                "recommendations: 2 of 14 rows (14.3 %) are left out: an id is NULL",
                "held_out: 2 of 5 rows (40 %) are left out: an id is NULL",
            ],
            id="ids",
        ),
        pytest.param(
            log(),
            held_out(("u", "b", math.nan)),
            {},
            ["held_out: 1 of 4 rows (25 %) are left out: the gain is NULL, NaN or infinite"],
            id="gains",
        ),
        pytest.param(
            log(),
            held_out(),
            {"train": table("user_id item_id", ("u", "a"), ("u", None)), "seen_in_train": "drop"},
            ["train: 1 of 2 rows (50 %) are left out: an id is NULL"],
            id="training data",
        ),
        pytest.param(log(), held_out(("u", "b", 0.0)), {}, [], id="nothing"),
    ],
)
def test_rows_that_cannot_be_used_are_said_by_the_call(
    recommendations: pa.Table, judged: pa.Table, options: dict[str, Any], said: list[str]
) -> None:
    found: list[Evaluation] = []
    assert (
        warned(lambda: found.append(evaluate(recommendations, judged, **sections(measures=["RR"], **options)))) == said
    )
    assert warned(lambda: found[0].metrics) == []


REPEATED: Final = (
    "recommendations: 2 of 14 rows (14.3 %) repeat an item of their list; its best place counts (duplicates='best')"
)
UNSERVED: Final = "recommendations: 4 of 7 judged users (57.1 %) have no list"
OTHERS: Final = [(user, "a", 1.0) for user in "stxy"]


@pytest.mark.parametrize(
    ("recommendations", "judged", "options", "said"),
    [
        pytest.param(log(("u", "a", 0.5), ("v", "b", 0.5)), held_out(), {}, [REPEATED], id="repeated items"),
        pytest.param(log(("u", "a", 0.5)), held_out(), {"duplicates": "best"}, [], id="repeated items, as asked for"),
        pytest.param(log(), held_out(*OTHERS), {}, [UNSERVED], id="users without a list"),
        pytest.param(log(), held_out(*OTHERS), {"population": "run"}, [], id="users that no mean has"),
        pytest.param(log(), held_out(*JUDGED), {}, [], id="judgements may repeat"),
        pytest.param(log(*((user, "a", 1.0) for user in "stxyz")), held_out(), {}, [], id="users without a judgement"),
    ],
)
@pytest.mark.parametrize("first", ["metrics", "comparisons", "checks"])
def test_what_lists_show_is_said_with_the_first_small_result(
    recommendations: pa.Table, judged: pa.Table, options: dict[str, Any], said: list[str], first: str
) -> None:
    result = evaluate(recommendations, judged, **sections(measures=["RR"], baseline="model", **options))
    assert warned(lambda: getattr(result, first)) == said
    assert warned(lambda: result.metrics) == []  # once


def test_an_input_without_a_usable_row_is_refused_without_a_warning() -> None:
    none = table("user_id item_id score", ("u", "a", math.nan))
    assert warned(lambda: evaluate(none, held_out(), measures=["RR"])) == []


def test_the_model_whose_users_are_missing_is_named() -> None:
    names = table("model_id user_id item_id score", ("A", "u", "a", 1.0), *(("B", u, "a", 1.0) for u in "uvw"))
    result = evaluate(names, held_out(), measures=["RR"])
    assert warned(result.leaderboard) == ["recommendations: 2 of 3 judged users (66.7 %) have no list of 'A'"]


@pytest.mark.parametrize("users", [["u", "v", None], [None, "w"]])
def test_row_of_segments_without_a_user_is_the_segment_of_no_user(users: list[str | None]) -> None:
    segments = table("user_id country", *((user, "FR" if user else "DE") for user in users))
    result = evaluate(log(), held_out(), measures=["RR"], segments=segments, slices=["country"])
    values = {row["slice_value"]: row["n_users"] for row in result.metrics.to_pylist() if row["slice"] == "country"}
    assert values == {"FR": len(users) - 1, "(unknown)": 4 - len(users)}
