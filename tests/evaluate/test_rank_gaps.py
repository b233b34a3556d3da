"""Lists that keep the ranks of the log, the whole way: what is a mean of items is divided by the items there are."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark import evaluate
from tests.support.arrow_frames import dicts, judgements, table, tuples, where
from tests.support.sections import sections

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


def values_of(rows: list[tuple[Any, ...]], measures: list[str], **options: Any) -> dict[str, Any]:  # noqa: ANN401 - those of evaluate
    """Evaluate one user's list; what they hold out is a."""
    result = evaluate(
        table("user_id item_id rank", *rows),
        judgements({"u": {"a": 1}}),
        **sections(
            measures=measures, train=table("user_id item_id", *(tuple(row.split()) for row in TRAIN)), **options
        ),
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
    found = values_of(rows, measures, **options)
    assert found.keys() == set(measures)
    for name in measures:
        value = expected[name]
        assert found[name] == (value if value is None else pytest.approx(value, rel=0, abs=1e-12)), name


def test_similar_items_are_found_at_their_ranks() -> None:
    """Of a, b and d at ranks 2, 5 and 9 only a and b have a user in common."""
    rows = [("u", "a", 2), ("u", "b", 5), ("u", "d", 9)]
    names = [f"ILS(sim='cooccurrence')@{k}" for k in (4, 5, 9)]
    found = values_of(rows, names, rank_gaps="keep")
    assert found == dict(zip(names, (None, pytest.approx(1 / 2), pytest.approx(1 / 6)), strict=True))


def test_measures_of_all_lists_count_the_lists_that_begin_further_down() -> None:
    """The lists of v and w begin at ranks 2 and 3; at k = 2 the one of w has no item yet."""
    rows = [("u", "a", 1), ("u", "b", 2), ("v", "a", 2), ("w", "c", 3), ("w", "a", 4)]
    measures = ["Personalization@2", "Personalization(denom='min')@2", "Personalization@4", "CatalogCoverage@2"]
    result = evaluate(
        table("user_id item_id rank", *rows),
        judgements({"u": {"a": 1}}),
        measures=measures,
        train=table("user_id item_id", *(tuple(row.split()) for row in TRAIN)),
        policies={"rank_gaps": "keep"},
        slicing={"min_slice_size": 1},
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
