"""Families of tests: what decides, its slices, and everything else."""

from __future__ import annotations

from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.config.inference import Family, TestName
from rankeval_spark.errors import ConfigError

N_USERS: Final = 60
ALL_TESTS: Final = get_args(TestName)


def compared(seed: int = 0, measures: tuple[str, ...] = ("nDCG@5",), slices: Any = ("country",), **options: Any) -> Any:  # noqa: ANN401 - rows by key, and sections of the call
    """Compare three models of random lists, the last of which knows the user's item more often; rows by key."""
    draw = np.random.default_rng(seed)
    rows, users = [], [f"u{user}" for user in range(N_USERS)]
    for model, skill in (("base", 0.1), ("new", 0.2), ("best", 0.6)):
        for user in users:
            items = [f"i{item}" for item in draw.permutation(12)[:6]]
            items[0] = user if draw.random() < skill else items[0]
            rows += [(model, user, item, -float(place)) for place, item in enumerate(items)]
    log = pa.table(dict(zip(("model_id", "user_id", "item_id", "score"), zip(*rows, strict=True), strict=True)))
    segments = {"country": [("AT", "CH")[place % 2] for place in range(N_USERS)], "device": ["tv"] * N_USERS}
    result = evaluate(
        log,
        pa.table({"user_id": users, "item_id": users}),
        measures=list(measures),
        segments=pa.table({"user_id": users, **segments}),
        slices=list(slices),
        comparisons={"baseline": "base", **options},
    )
    keys = ("test", "baseline_model_id", "model_id", "slice", "slice_value", "measure", "k")
    return {tuple(row[name] for name in keys): row for row in result.comparisons.to_pylist()}


def of_family(rows: Any, *names: Family) -> dict[Any, tuple[Any, ...]]:  # noqa: ANN401 - of `compared`
    """Return what follows from the correction, by key."""
    found = ("p_adjusted", "family_size", "verdict", "reason")
    return {key: tuple(row[name] for name in found) for key, row in rows.items() if row["family"] in names}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("options", [{}, {"pairs": "all", "tests": ALL_TESTS, "replicates": 100}])
def test_what_is_diagnostic_never_changes_what_decides(seed: int, options: dict[str, Any]) -> None:
    plain = compared(seed, **options)
    more = ("nDCG@5", "nDCG@2", "P@3", "R@6", "AP(denom='min')@4")
    with_measures = compared(seed, more, **options)
    with_slices = compared(seed, more, ["country", "device", ["device", "country"]], **options)
    assert of_family(plain, "primary", "slices") == of_family(with_measures, "primary", "slices")
    assert of_family(plain, "primary") == of_family(with_slices, "primary")
    assert {key[3] for key in of_family(with_slices, "slices")} == {"country", "device", "device*country"}
    n_pairs = 3 if options else 2
    sizes = {row["family"]: row["family_size"] for row in with_measures.values() if row["test"] == "t"}
    assert sizes == {"primary": n_pairs, "slices": 2 * n_pairs, "exploratory": 4 * 3 * n_pairs}


def test_a_slice_is_tested_whatever_all_users_say() -> None:
    """In CH the new model always fails where it is the base that finds the item, in AT it is the other way round."""
    users = [f"u{user}" for user in range(40)]
    lists = [
        (model, user, user if (model == "new") == (place % 2 == 0) else "x", 1.0)
        for model in ("base", "new")
        for place, user in enumerate(users)
    ]
    log = pa.table(dict(zip(("model_id", "user_id", "item_id", "score"), zip(*lists, strict=True), strict=True)))
    countries = [("AT", "CH")[place % 2] for place in range(40)]
    # 19 of 20 users, so that the differences of a slice vary
    held_out = pa.table({"user_id": users, "item_id": [user if place > 1 else "y" for place, user in enumerate(users)]})
    rows = evaluate(
        log,
        held_out,
        measures=["Success@1"],
        segments=pa.table({"user_id": users, "country": countries}),
        slices=["country"],
        slicing={"min_slice_size": 5},
        baseline="base",
    ).comparisons.to_pylist()
    found = {row["slice_value"]: (row["family"], row["family_size"], row["verdict"]) for row in rows}
    assert found == {"": ("primary", 1, "undecided"), "AT": ("slices", 2, "better"), "CH": ("slices", 2, "worse")}


def test_several_primary_measures_share_their_families_under_any_name() -> None:
    rows = compared(0, ("P@5", "AP@5", "nDCG@5", "nDCG@3"), primary=["ndcg@5", "MAP@5"])
    named = {key[5:] for key, row in rows.items() if row["family"] != "exploratory"}
    assert named == {("nDCG", 5), ("AP", 5)}
    sizes = {row["family"]: row["family_size"] for row in rows.values()}
    assert sizes == {"primary": 4, "slices": 8, "exploratory": 12}


def test_the_default_is_the_first_measure_that_can_be_compared_at_its_first_cutoff() -> None:
    rows = compared(0, ("GMAP@5", "ItemCoverage@5", "P@3", "P@1", "nDCG@5"))
    assert {key[5:] for key, row in rows.items() if row["family"] == "primary"} == {("P", 3)}


def test_a_primary_measure_without_users_leaves_the_others_exploratory() -> None:
    rows = compared(0, ("R(rel=9)@5", "nDCG@5"), primary=["R(rel=9)@5"])
    found = {(row["family"], row["family_size"], row["n_users"] > 0, row["p_value"] is None) for row in rows.values()}
    assert found == {("exploratory", 6, True, False)} | {
        (row["family"], 0, False, True) for row in rows.values() if row["measure"] == "R(rel=9)"
    }


@pytest.mark.parametrize(
    ("primary", "message"),
    [
        (["nDGC@5"], r"primary\[0\]: found 'nDGC@5'; .* nDCG@5, P@5; did you mean 'nDCG@5'"),
        (["P@5", "nDCG"], r"primary\[1\]: found 'nDCG'; .* compares: nDCG@5, P@5; write nDCG@5"),
        (["P"], r"primary\[0\]: found 'P'; .*; write P@5"),
        (["P@10"], r"primary\[0\]: found 'P@10'; expected a measure and cutoff .*; write P@5"),
        (["GMAP@5"], r"found 'GMAP@5'; expected a mean or a ratio of sums over users"),
        (["ItemCoverage@5"], r"found 'ItemCoverage@5'; expected a mean or a ratio of sums over users"),
        (["P@5", "P@5"], r"primary\[1\]: found measure 'P@5' a second time"),
        ([], "primary: found an empty list"),
        ("P@5", r"expected a list; write primary=\[.P@5.\]"),
    ],
)
def test_a_primary_measure_that_is_not_compared_is_refused_with_the_nearest(primary: Any, message: str) -> None:  # noqa: ANN401 - what a user may write
    with pytest.raises(ConfigError, match=message):
        compared(0, ("nDCG@5", "P@5", "GMAP@5", "ItemCoverage@5"), primary=primary)


def test_paired_and_unpaired_tests_of_a_night_are_one_family() -> None:
    """Models a and b serve the arms of an experiment, c serves both."""
    arms = {"a": range(60), "b": range(60, 120), "c": range(120)}
    draw = np.random.default_rng(1)
    rows = [(model, f"u{user}", f"i{draw.integers(3)}") for model, users in arms.items() for user in users]
    log = pa.table(dict(zip(("model_id", "user_id", "item_id"), zip(*rows, strict=True), strict=True)))
    log = log.append_column("score", pa.array([1.0] * len(rows)))
    held_out = pa.table({"user_id": [f"u{user}" for user in range(120)], "item_id": ["i0", "i1"] * 60})
    split = {"a": 0.5, "b": 0.5}
    found = evaluate(log, held_out, measures=["RR@1"], comparisons={"baseline": "a", "split": split}).comparisons
    tests = {row["model_id"]: (row["test"], row["family"], row["family_size"]) for row in found.to_pylist()}
    assert tests == {"b": ("unpaired", "primary", 2), "c": ("t", "primary", 2)}
