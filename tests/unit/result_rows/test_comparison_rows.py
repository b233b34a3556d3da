"""The workers of comparisons, on plain tables: every test against scipy and the statistics, whatever the partitions."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from rankeval_spark.config import Comparisons
from rankeval_spark.config.inference import Family, TestName
from rankeval_spark.config.request import Request
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.engine import paired_differences
from rankeval_spark.engine.slices import USER_HASH
from rankeval_spark.measures import MeasureSet
from rankeval_spark.result_rows import comparison_rows
from rankeval_spark.statistics import (
    hashed_random,
    moments,
    multiple_testing,
    paired_ratios,
    paired_tests,
    rank_tests,
    resampling,
)
from rankeval_spark.statistics.paired_tests import PairedValues, differences_by_group
from rankeval_spark.statistics.resampling import Draws

if TYPE_CHECKING:
    from rankeval_spark.statistics import Zeros

Rows: TypeAlias = dict[tuple[Any, ...], dict[str, Any]]

ASKED = MeasureSet.parse(["P@1", "P@5", "R(agg='micro')@5"])
N_USERS = 60
MODELS = ("base", "new", "other")
EVERY: tuple[Any, ...] = get_args(TestName)
REPLICATES = 499
NUMBERS = ("k", "n_recommended")


def scored(n_users: int = N_USERS) -> list[dict[str, Any]]:
    """Rows of (model, user, k): the new model is better; one user has no value of it, another no list."""
    draw = random.Random(3)
    rows = []
    for user in range(n_users):
        base = draw.randrange(5) / 8
        for model, gain in zip(MODELS, (0.0, 1 / 8, draw.choice((-1, 0, 1)) / 8), strict=True):
            for k in (1, 5):
                p = None if (model, user, k) == ("new", 5, 1) else base + gain + draw.randrange(3) / 8
                weight = 1.0 + user % 3
                micro = (draw.randrange(5) / 4, weight) if k == 5 else (None, None)
                rows.append(
                    {
                        **{"model_id": model, "user_id": f"u{user}", "k": k, "p": p, "n_recommended": 1},
                        **dict(zip(ASKED.columns[1:] + tuple(ASKED.denominator_columns.values()), micro, strict=True)),
                        "_segment_0": None if user == 3 else ("DE", "FR")[user >= 50],
                    }
                )
    return [row for row in rows if (row["model_id"], row["user_id"]) != ("new", "u7")]


def compared(
    rows: list[dict[str, Any]],
    parts: int = 1,
    *,
    are_lists: bool = False,
    models: Sequence[str] | None = None,
    **options: Any,  # noqa: ANN401 - of Comparisons
) -> Rows:
    """Do what Spark does: split the users, aggregate each part as rows or as lists, group, finish and adjust."""
    asked = Comparisons(**{"baseline": "base", "replicates": REPLICATES, **options})
    texts, slices = tuple(map(str, ASKED.measures)), (("country",),)
    expected = None if models is None else tuple(models)
    request = Request(
        measures=texts, models=expected, slices=slices, slicing=Slicing(min_slice_size=5), comparisons=asked
    )
    finisher = comparison_rows.build_comparison_rows(request)
    aggregator = finisher.aggregator
    groups: dict[tuple[Any, ...], list[pa.RecordBatch]] = defaultdict(list)
    users = sorted({row["user_id"] for row in rows})
    for part in range(parts):
        own = [row for row in rows if users.index(row["user_id"]) % parts == part]
        own.sort(key=lambda row: str(row["user_id"]))
        aggregates = (
            chain.from_iterable(aggregator.aggregate_lists(*some) for some in lists_of(own))
            if are_lists
            else aggregator.aggregate_rows(iter([to_batch(own)] if own else []))
        )
        for batch in aggregates:
            for position, row in enumerate(batch.to_pylist()):
                key = tuple(row[name] for name in paired_differences.GROUP)
                groups[(*key[:3], tuple(key[3]), key[4])].append(batch.slice(position, 1))
    tables = []
    for key, batches in groups.items():
        typed = zip((*key[:3], list(key[3]), key[4]), batches[0].schema.types, strict=False)
        tables.append(
            finisher.finish(tuple(pa.scalar(each, kind) for each, kind in typed), pa.Table.from_batches(batches))
        )
    found = [row for batch in finisher.adjust(iter(pa.concat_tables(tables).to_batches())) for row in batch.to_pylist()]
    keys = ("test", "baseline_model_id", "model_id", "slice_value", "measure", "k")
    by_key = {tuple(row[name] for name in keys): row for row in found}
    assert len(by_key) == len(found)
    return by_key


def to_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    hashes = hashed_random.hash_ids([row["user_id"] for row in rows])
    types = {name: pa.float64() for name in ASKED.stored}
    columns = {
        name: pa.array([row[name] for row in rows], types.get(name, pa.int32() if name in NUMBERS else pa.string()))
        for name in rows[0]
    }
    return pa.RecordBatch.from_pydict({**columns, USER_HASH: pa.array(hashes)})


def lists_of(rows: list[dict[str, Any]]) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Lay rows out as lists with both cutoffs, some users at a time; two rows of a list follow one another."""
    for start in range(0, N_USERS, 25):
        own = [row for row in rows if start <= int(row["user_id"][1:]) < start + 25]
        first = pa.Table.from_batches([to_batch(own[::2])]) if own else None
        assert [row["k"] for row in own] == [1, 5] * (len(own) // 2)
        if first is not None:
            numbers = np.array([[row[name] for name in ASKED.stored] for row in own], dtype=np.float64)
            yield first.drop_columns(["k", *ASKED.stored]), numbers.reshape(-1, 2, len(ASKED.stored))


def values(rows: list[dict[str, Any]], model: str, k: int, column: str = "p") -> dict[str, float]:
    return {
        row["user_id"]: row[column]
        for row in rows
        if (row["model_id"], row["k"]) == (model, k) and row[column] is not None
    }


def pair_of(k: int, column: str = "p") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values of the new model and of the baseline, and hashes, of their common users."""
    rows = scored()
    new, base = (values(rows, model, k, column) for model in ("new", "base"))
    common = [user for user in base if user in new]
    sides = [np.array([[found[user]] for user in common]) for found in (new, base)]
    return sides[0], sides[1], hashed_random.hash_ids(common)


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
def test_wilcoxon_treats_users_without_a_difference_as_asked(zeros: Zeros) -> None:
    found = compared(scored(), tests=("t", "wilcoxon"), wilcoxon_zeros=zeros)
    for k in (1, 5):
        new, base, _ = pair_of(k)
        eighths = np.rint(8 * (new - base)[:, 0])
        assert (eighths == 0).sum() > 3
        expected = rank_tests.wilcoxon_p(rank_tests.count_magnitudes(eighths), zeros=zeros)
        row = found["wilcoxon", "base", "new", "", "P", k]
        assert (row["p_value"], row["method"]) == (pytest.approx(expected, rel=1e-12), zeros)


def test_every_test_of_a_pair_is_that_of_scipy_or_of_the_statistics() -> None:
    found = compared(scored(), tests=EVERY[:5], seed=7)
    for k in (1, 5):
        new, base, hashes = pair_of(k)
        d, group = (new - base)[:, 0], np.zeros(len(new), dtype=np.int64)
        rows = {test: found[test, "base", "new", "", "P", k] for test in EVERY[:5]}
        assert {row["n_users"] for row in rows.values()} == {58 if k == 1 else 59}
        assert [row["delta"] for row in rows.values()] == pytest.approx([d.mean()] * 5, rel=1e-12)

        expected = stats.ttest_rel(new[:, 0], base[:, 0])
        assert rows["t"]["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
        assert rows["sign"]["p_value"] == pytest.approx(
            stats.binomtest((d > 0).sum(), (d != 0).sum()).pvalue, rel=1e-12
        )
        ranked = rank_tests.wilcoxon_p(rank_tests.count_magnitudes(np.rint(8 * d)), zeros="wilcox")
        assert rows["wilcoxon"]["p_value"] == pytest.approx(ranked, rel=1e-12)
        for test in ("t", "sign", "wilcoxon", "randomization"):
            assert rows[test]["ci_low"] == pytest.approx(expected.confidence_interval(0.95).low, rel=1e-9)

        pairs = differences_by_group(PairedValues.from_values(new, base), group, 1)
        sums = paired_tests.sign_sums(d[:, None], hashes, Draws(REPLICATES, 7))
        assert rows["randomization"]["p_value"] == paired_tests.randomization_test(pairs, sums)[0][0, 0]
        drawn = resampling.weighted_sums(d[:, None], hashes, Draws(REPLICATES, 7))
        low, high = resampling.percentile_interval(drawn.means, 0.95)
        p = resampling.studentized_p(moments.moments_by_group(d[:, None], group, 1), drawn)
        boot = rows["bootstrap"]
        assert (boot["p_value"], boot["replicates"], boot["seed"]) == (p[0, 0], REPLICATES, 7)
        assert boot["ci_low"] == pytest.approx(low[0, 0], rel=1e-12)
        assert boot["ci_high"] == pytest.approx(high[0, 0], rel=1e-12)
        methods = {test: row["method"] for test, row in rows.items()}
        expected_methods = ("t", "monte_carlo", "monte_carlo", "wilcox", "binomial")
        assert methods == dict(zip(EVERY[:5], expected_methods, strict=True))
        assert {test: row["verdict"] is not None for test, row in rows.items()} == {test: test == "t" for test in rows}


def test_both_tests_of_tukey_are_those_of_the_users_with_values_under_all_models() -> None:
    found = compared(scored(), tests=EVERY, pairs="all", seed=7)
    per_model = [values(scored(), model, 1) for model in MODELS]
    users = [user for user in per_model[0] if all(user in each for each in per_model)]
    table = np.array([[each[user] for each in per_model] for user in users])
    centred = multiple_testing.centre_by_user(table[:, :, None])
    n = len(users)
    expected = multiple_testing.tukey_test(
        np.array([n]), centred[:, :, 0].mean(axis=0)[None], n * centred[:, :, 0].var(axis=0)[None], level=0.95
    )
    sums = multiple_testing.permuted_sums(centred, hashed_random.hash_ids(users), Draws(REPLICATES, 7))[0]
    random_p = multiple_testing.randomised_p(centred.sum(axis=0), np.abs(centred).sum(axis=(0, 1)), sums)
    for pair, (one, other) in enumerate(combinations(range(3), 2)):
        key = (MODELS[one], MODELS[other], "", "P", 1)
        row, drawn = found[("tukey", *key)], found[("randomized_tukey", *key)]
        assert row["n_users"] == drawn["n_users"] == 58
        assert row["delta"] == pytest.approx(-expected.delta[0, pair], rel=1e-9)
        assert (row["value"], row["baseline_value"]) == pytest.approx(
            (table[:, other].mean(), table[:, one].mean()), rel=1e-12
        )
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(
            (-expected.high[0, pair], -expected.low[0, pair]), rel=1e-9
        )
        assert row["p_value"] == pytest.approx(expected.p[0, pair], rel=1e-7, abs=1e-12)
        assert row["effect_size"] == pytest.approx(-expected.effect_size[0, pair], rel=1e-9)
        assert (row["n_wins"], row["method"], drawn["method"]) == (None, "studentized_range", "monte_carlo")
        assert (drawn["p_value"], drawn["ci_low"], drawn["replicates"]) == (random_p[0, pair], None, REPLICATES)


def test_two_models_have_the_p_of_the_paired_t_in_the_test_of_tukey() -> None:
    rows = [row for row in scored() if row["model_id"] != "other"]
    found = compared(rows, tests=("t", "tukey"), pairs="all")
    key = ("base", "new", "", "P", 5)
    assert found[("tukey", *key)]["p_value"] == pytest.approx(found[("t", *key)]["p_value"], rel=1e-7)


def test_ratios_of_sums_are_compared_by_the_delta_method_and_by_t_alone() -> None:
    found = compared(scored(), tests=EVERY[:5])
    of_ratio = {key[0]: row for key, row in found.items() if key[1:] == ("base", "new", "", "R(agg='micro')", 5)}
    assert set(of_ratio) == {"t"}
    row = of_ratio["t"]
    column, weight = ASKED.columns[1], ASKED.denominator_columns[ASKED.columns[1]]
    (new, base, _), (of_new, of_base, _) = pair_of(5, column), pair_of(5, weight)
    pairs = paired_ratios.ratio_pairs_by_group(
        (new * of_new, of_new), (base * of_base, of_base), np.zeros(len(new), dtype=np.int64), 1
    )
    expected = paired_ratios.compare_ratios(pairs, level=0.95)
    assert row["method"] == "delta"
    assert row["baseline_value"] == pytest.approx((base * of_base).sum() / of_base.sum(), rel=1e-12)
    for name, each in (
        ("delta", expected.delta),
        ("ci_low", expected.low),
        ("p_value", expected.p),
        ("relative_delta", expected.change.value),
        ("relative_ci_high", expected.change.high),
    ):
        assert row[name] == pytest.approx(each[0, 0], rel=1e-9), name
    assert row["n_wins"] == (new > base).sum()


def test_partitions_change_no_drawn_p_and_nothing_else_by_more_than_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    one = compared(scored(), tests=EVERY, pairs="all")
    monkeypatch.setattr(paired_differences, "MAX_SUMMED", 1)  # a group of users at a time
    monkeypatch.setattr(paired_differences, "MAX_HELD", 1)
    other = compared(list(reversed(scored())), 7, tests=EVERY, pairs="all")
    assert one.keys() == other.keys()
    for key, row in one.items():
        if row["method"] == "monte_carlo":
            assert other[key]["p_value"] == row["p_value"], key
        for name, value in row.items():
            same = pytest.approx(value, rel=1e-9, abs=1e-15) if isinstance(value, float) else value
            assert other[key][name] == same, (key, name)


def test_lists_and_rows_are_compared_alike() -> None:
    by_rows = compared(scored(), 2, tests=EVERY, pairs="all")
    by_lists = compared(scored(), 3, are_lists=True, tests=EVERY, pairs="all")
    assert by_lists.keys() == by_rows.keys()
    for key, row in by_rows.items():
        for name, value in row.items():
            same = pytest.approx(value, rel=1e-12, abs=1e-12) if isinstance(value, float) else value
            assert by_lists[key][name] == same, (key, name)


def test_each_test_has_three_families_and_too_few_replicates_are_said() -> None:
    found = compared(scored(), tests=("t", "sign", "bootstrap"), replicates=100)
    for test, name in product(("t", "sign", "bootstrap"), get_args(Family)):
        rows = [row for key, row in found.items() if (key[0], row["family"]) == (test, name)]
        assert {row["family_size"] for row in rows} == {sum(row["p_value"] is not None for row in rows)}
        of_primary = {key[4:] == ("P", 1) for key, row in found.items() if row["family"] == name}
        assert of_primary == {name != "exploratory"}
    drawn = [row for key, row in found.items() if key[0] == "bootstrap" and row["p_value"] is not None]
    sizes = {row["family"]: (row["family_size"], row["reason"]) for row in drawn}
    # Two models, and two countries with five users; P@5 on everyone and in them: 6 / (100 + 1) > 0.05 > 4 / (100 + 1).
    assert sizes == {"primary": (2, None), "slices": (4, None), "exploratory": (6, "replicates")}
    assert all((row["p_adjusted"] is None) == (row["family"] == "exploratory") for row in drawn)
    assert all(row["p_adjusted"] is not None for key, row in found.items() if key[0] == "sign" and row["p_value"])


def test_a_baseline_without_common_users_leaves_rows_that_say_so() -> None:
    absent = compared(scored(), baseline="nobody")
    assert {key[1:3] for key in absent} == {("nobody", model) for model in MODELS}
    assert {(row["n_users"], row["reason"], row["p_value"]) for row in absent.values()} == {
        (0, "no_common_users", None)
    }

    apart = [row for row in scored() if (row["model_id"] == "base") == (int(row["user_id"][1:]) < 50)]
    for parts in (1, 7):
        found = compared(apart, parts, tests=EVERY, pairs="all")
        of_baseline = [row for key, row in found.items() if key[1] == "base" and key[0] == "t"]
        assert {row["reason"] for row in of_baseline} == {"no_common_users"}
        assert {key[3] for key in found if key[:3] == ("t", "base", "new")} == {"", "FR"}
        assert {row["reason"] for key, row in found.items() if key[0] == "tukey" and key[3] == ""} == {
            "no_common_users"
        }
        assert found["t", "new", "other", "FR", "P", 5]["n_users"] == 10


@pytest.mark.parametrize("parts", [1, 7])
def test_expected_models_without_users_leave_rows_in_every_slice(parts: int) -> None:
    """Users below 50 have only the baseline, the others only the new model, and no one has the third."""
    apart = [row for row in scored() if (row["model_id"] == "base") == (int(row["user_id"][1:]) < 50)]
    apart = [row for row in apart if row["model_id"] != "other"]
    found = compared(apart, parts, models=MODELS, tests=EVERY, pairs="all")
    of_t = {key[1:]: row for key, row in found.items() if key[0] == "t"}
    slices = {key[2] for key in of_t}
    assert slices == {"", "DE", "FR", "(unknown)"}
    for pair in (("base", "new"), ("base", "other"), ("new", "other")):
        for slice_value in slices:
            row = of_t[(*pair, slice_value, "P", 5)]
            numbers = [row[name] for name in ("n_users", "value", "baseline_value", "delta", "p_value", "verdict")]
            assert (numbers, row["reason"]) == ([0, *[None] * 5], "no_common_users")
    drawn = {row["reason"] for key, row in found.items() if key[0] in EVERY[1:5]}
    assert drawn == {"no_common_users"}


def test_expected_models_with_users_change_nothing_where_they_have_them() -> None:
    unnamed, named = (compared(scored(), 3, models=models, tests=EVERY, pairs="all") for models in (None, MODELS))
    assert {key: named[key] for key in unnamed} == unnamed
    assert {row["n_users"] for key, row in named.items() if key not in unnamed} <= {0}


def test_equal_and_few_differences_keep_their_p_in_every_test_of_signs() -> None:
    same = [{**row, "p": 0.5} for row in scored() if row["model_id"] != "other"]
    found = compared(same, tests=EVERY, pairs="all")
    p = {key[0]: row["p_value"] for key, row in found.items() if key[3:] == ("", "P", 1)}
    assert p == dict.fromkeys(EVERY, 1.0)

    better = [{**row, "p": 0.5 + (row["model_id"] == "new") * (int(row["user_id"][1:]) < 9) / 8} for row in same]
    found = compared(better, tests=EVERY[:2])
    rows = {key[0]: row for key, row in found.items() if key[3:] == ("", "P", 5)}  # 8 differ, u7 has no list
    assert {(row["method"], row["p_value"]) for row in rows.values()} == {("exact", 2 / 2**8)}
    assert rows["randomization"]["replicates"] is None
