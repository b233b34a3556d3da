"""Functions as measures: the same numbers as ours, what they declare, and one message where they fail."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest

from rankeval_spark import evaluate, measure
from rankeval_spark.errors import Fault, InvalidCallError, MeasureError
from rankeval_spark.measures import CutLists, Definition, FloatMatrix, Measure, Ratio
from rankeval_spark.measures.plugins import record
from rankeval_spark.refusals import find_refusal
from tests.support.arrow_frames import by, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rankeval_spark import Evaluation

CUTOFFS: Final = ("@1", "@3", "@10", "")
GAINS: Final = (0.0, 1.0, 2.0, 3.0, -1.0)


def dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def my_ndcg(gains: list[float], judged: list[float], n_relevant: int, k: int | None) -> float | None:
    """Discounted gain over that of the best order."""
    return dcg(gains) / dcg(judged[:k]) if n_relevant else None


def my_rr(ranks: list[int], n_relevant: int) -> float | None:
    """Inverse rank of the first hit."""
    if not n_relevant:
        return None
    return 1 / ranks[0] if ranks else 0


@measure(undefined="no relevant judgement", bounds=(0, 1), cutoff="required")
def my_p(relevant: list[bool], n_relevant: int, k: int) -> float:
    """Share of the first k that is relevant."""
    return sum(relevant) / k if n_relevant else math.nan


@measure(ratio=True, bounds=(0, 1))
def my_r(ranks: list[int], n_relevant: int, *, rel: float = 1) -> tuple[int, int]:  # noqa: ARG001 - it decides what is relevant
    """Share of the relevant items that is recommended."""
    return len(ranks), n_relevant


@Definition(name="KernelRecall", formula="h_k / R", source="a test")
def kernel_recall(cut: CutLists, *, rel: float = 1) -> Ratio:
    """Share of the relevant items that is recommended, of all lists at once."""
    return Ratio(cut.hits(rel), cut.n_relevant(rel))


BOUNDED: Final = measure(bounds=(0, 1))
OF_GAINS: Final = BOUNDED(my_ndcg)  # with their bounds, which intervals read
OF_RANKS: Final = BOUNDED(my_rr)

OURS: Final[dict[str, tuple[str, Any]]] = {
    **{f"nDCG{k}": (f"my_ndcg{k}", OF_GAINS) for k in CUTOFFS},
    **{f"RR{k}": (f"my_rr{k}", OF_RANKS) for k in CUTOFFS},
    **{f"P{k}": (f"my_p{k}", my_p) for k in CUTOFFS[:3]},
    **{f"R{k}": (f"my_r{k}", my_r) for k in CUTOFFS},
    **{f"R(rel=2){k}": (f"my_r(rel=2){k}", my_r) for k in CUTOFFS},
    **{f"R(agg='micro'){k}": (f"my_r(agg='micro'){k}", my_r) for k in CUTOFFS},
    "R(judged_only=True)@3": ("my_r(judged_only=True)@3", my_r),
    "nDCG(group='rock')@3": ("my_ndcg(group='rock')@3", OF_GAINS),
    "R(agg='micro')@5": ("KernelRecall(agg='micro')@5", kernel_recall),
}
"""Measures of this package, each with a copy of it: its text, and the function."""


def frames(n_users: int = 60) -> dict[str, Any]:
    """Draw lists of two models, some shorter or missing, with judgements of several gains, and countries."""
    draw = np.random.default_rng(7)
    log, judged = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    for user in range(n_users):
        for model in ("als", "knn"):
            items = draw.permutation(30)[: int(draw.integers(0, 13))]
            log += [(model, f"u{user:02}", f"i{item}", -float(rank)) for rank, item in enumerate(items)]
        n_judged = int(draw.integers(1, 9))
        judged += [(f"u{user:02}", f"i{item}", float(draw.choice(GAINS))) for item in draw.permutation(30)[:n_judged]]
    return {
        "recommendations": table("model_id user_id item_id score", *log),
        "held_out": table("user_id item_id gain", *judged),
        "segments": table("user_id country", *((f"u{n:02}", ("DE", "AT")[n % 2]) for n in range(n_users))),
        "items": pa.table({"item_id": [f"i{n}" for n in range(30)], "categories": [["rock"], ["pop"]] * 15}),
    }


def evaluated(measures: Sequence[Any], **options: Any) -> Evaluation[Any]:  # noqa: ANN401 - arguments of evaluate
    return evaluate(**frames(), measures=measures, baseline="als", slices=["country"], **options)


def label(text: str) -> tuple[str, int]:
    name, _, k = text.partition("@")
    return name, int(k or 0)


@pytest.mark.parametrize("population", ["truth", "judged", "run"])
def test_copies_of_measures_have_the_same_means_intervals_and_tests(population: str) -> None:
    functions = dict.fromkeys(function for _, function in OURS.values())
    texts = [*OURS, *(text for text, _ in OURS.values())]
    result = evaluated(
        [*texts, *(each @ 10 if each is my_p else each for each in functions)],
        policies={
            "population": population,
        },
    )
    names = {label(theirs): label(ours) for ours, (theirs, _) in OURS.items()}
    for frame, keys, columns in (
        (result.metrics, ("model_id", "slice_value"), ("value", "ci_low", "ci_high", "std_dev", "n_users")),
        (result.comparisons, ("model_id", "slice_value"), ("delta", "ci_low", "ci_high", "p_value", "detectable")),
        (result.group_metrics, ("model_id", "slice_value"), ("value", "ci_low", "n_users")),
    ):
        rows = frame.to_pylist()
        assert all(set(columns) <= row.keys() for row in rows[:1])
        found = {(*(row[key] for key in keys), row["measure"], row["k"]): row for row in rows}
        n_compared = 0
        for (theirs, k), (ours, _) in names.items():
            for key in [key for key in found if key[2:] == (ours, k)]:
                copy = found[*key[:2], theirs, k]
                n_compared += 1
                for column in columns:
                    one, other = (np.nan if row[column] is None else float(row[column]) for row in (found[key], copy))
                    np.testing.assert_allclose(other, one, rtol=0, atol=1e-12, err_msg=f"{key} {column}")
        assert n_compared or frame is result.group_metrics


def test_columns_of_users_are_those_of_the_copied_measures() -> None:
    result = evaluated(["nDCG@3", "nDCG@10", my_ndcg, "my_ndcg@3", "my_ndcg@10", "nDCG"])
    users = result.user_metrics
    np.testing.assert_allclose(users["my_ndcg"].to_numpy(), users["ndcg"].to_numpy(), rtol=0, atol=1e-12)
    assert {"my_ndcg", "nDCG"} <= set(result.user_values["measure"].to_pylist())
    assert result.leaderboard().column_names[2:] == ["nDCG@3", "nDCG@10", "my_ndcg", "my_ndcg@3", "my_ndcg@10", "nDCG"]


def lists_of(function: Callable[..., Any], **options: Any) -> dict[Any, Any]:  # noqa: ANN401 - arguments of evaluate
    """Evaluate two users, of whom the second one has no list, and return the values by user."""
    log = table("model_id user_id item_id score", ("als", "ann", "a", 0.9), ("als", "ann", "b", 0.5))
    judged = table("user_id item_id gain", ("ann", "b", 2.0), ("ann", "z", 1.0), ("bob", "a", 1.0))
    result = evaluate(log, judged, measures=[function], **options)
    (column,) = result.request.measure_set.columns
    return by(result.user_metrics, "user_id", value=column)


def test_function_receives_the_facts_that_it_names() -> None:
    seen = list[tuple[Any, ...]]()

    def look(gains, relevant, ranks, n_relevant, judged, k, length, items, scores, *, p=0.5):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0913, PLR0917 - as in a notebook
        seen.append((gains, relevant, ranks, n_relevant, judged, k, length, items, scores, p))
        return 1

    assert lists_of(measure(look) @ 1) == {"ann": 1.0, "bob": 1.0}
    assert seen == [
        ([0.0], [False], [], 2, [2.0, 1.0], 1, 2, ["a"], [0.9], 0.5),
        ([], [], [], 1, [1.0], 1, 0, [], [], 0.5),
    ]
    seen.clear()
    lists_of(measure(look))
    assert seen[0] == ([0.0, 2.0], [False, True], [2], 2, [2.0, 1.0], None, 2, ["a", "b"], [0.9, 0.5], 0.5)


def test_lower_is_better_where_the_function_says_so() -> None:
    @measure(better="lower", without_relevant=100, undefined="no hit")
    def first_rank(ranks: list[int]) -> float | None:
        return ranks[0] if ranks else None

    primary = {"primary": [first_rank @ 10]}
    result = evaluated([my_ndcg, first_rank @ 10], policies={"population": "judged"}, comparisons=primary)
    best = min(by(result.leaderboard(), "model_id", value="first_rank@10").values())
    assert f"**{best:.4g}**" in result.leaderboard().to_markdown()
    result = evaluated([first_rank @ 10], policies={"population": "judged"})
    means = by(result.leaderboard(), "model_id", value="first_rank@10")
    assert list(means) == sorted(means, key=lambda model: means[model])
    assert max(means.values()) > 10  # of users without a hit, who have 100
    (row,) = [row for row in result.comparisons.to_pylist() if row["slice"] == "all"]
    assert row["verdict"] in {"better", "worse", "undecided"}
    worst = {row["model_id"]: row["value"] for row in result.group_metrics.to_pylist() if "Worst" in row["measure"]}
    groups = [row for row in result.metrics.to_pylist() if row["slice"] == "country"]
    assert worst == {model: max(row["value"] for row in groups if row["model_id"] == model) for model in worst}


def test_undefined_is_null() -> None:
    def half(ranks: list[int]) -> float | None:
        return 0.5 if ranks else None

    @measure(undefined="no hit")
    def nan_half(ranks: list[int]) -> float:
        return 0.5 if ranks else math.nan

    assert lists_of(half) == lists_of(nan_half) == {"ann": 0.5, "bob": None}


def test_function_that_is_defined_again_is_the_one_that_counts() -> None:
    def score_of_cell(length: int) -> float:
        return 1.0 + 0 * length

    first = score_of_cell
    before = evaluated([score_of_cell])

    def score_of_cell(length: int) -> float:  # type: ignore[no-redef]  # as a cell that runs again
        return 2.0 + 0 * length

    after = evaluated([score_of_cell])
    assert {row["value"] for row in before.metrics.to_pylist()} == {1.0}
    assert {row["value"] for row in after.metrics.to_pylist()} == {2.0}
    with pytest.raises(InvalidCallError, match="a second function called score_of_cell; expected one function"):
        evaluated([first, score_of_cell])
    with pytest.raises(InvalidCallError, match="unknown measure 'score_of_cell'"):
        evaluated(["score_of_cell"])


def failing(ranks: list[int]) -> float:
    return 1 / ranks[0]


def of_text(gains: list[float]) -> Any:  # noqa: ANN401 - wrong on purpose
    return f"{sum(gains)}"


def of_many(gains: list[float]) -> Any:  # noqa: ANN401 - wrong on purpose
    return np.array(gains)


def undeclared(ranks: list[int]) -> float:
    return ranks[0] if ranks else math.nan


@measure(bounds=(0, 1))
def too_large(gains: list[float]) -> float:
    return sum(gains)


@measure(ratio=True)
def no_pair(gains: list[float]) -> Any:  # noqa: ANN401 - wrong on purpose
    return sum(gains)


@Definition(name="OneValue", formula="1", source="a test", undefined="never")
def one_value(cut: CutLists) -> FloatMatrix:
    """Return too few values."""
    return np.ones(len(cut.lists.hit_rank))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (measure(failing) @ 5, r"failing@5, user 'bob' under model 'als': found IndexError: list index out of range in "
        r"line \d+ \(return 1 / ranks\[0\]\); expected a number; this user has no list"),
        (of_text, r"of_text, user 'ann' under model 'als': found '2.0' of type str; expected a number; return float"),
        (of_many, r"user 'ann' under model 'als': found array\(\[0., 2.\]\) of type numpy.ndarray; expected a number"),
        (undeclared, r"user 'bob' under model 'als': found NaN; expected a number, or None .* declare it: @measure"),
        (too_large, r"user 'ann' under model 'als': found 2; expected a value in \[0, 1\], as declared"),
        (no_pair, r"user 'ann' under model 'als': found 2.0 of type float; expected a pair \(numerator, denominator\)"),
        (one_value, r"OneValue, lists from that of user 'ann' .*: found an array of shape \(1,\); expected float64"),
    ],
)  # fmt: skip  # a case a line
def test_failure_of_a_function_names_user_and_model(function: Any, message: str) -> None:  # noqa: ANN401 - of any kind
    with pytest.raises(MeasureError, match=message) as caught:
        lists_of(function)
    assert len(caught.value.faults) == 1
    assert "evaluate(measures=)" in str(caught.value)


def test_failure_in_one_of_several_lists_of_a_user_names_the_list() -> None:
    log = table("user_id list_id item_id score", ("ann", "morning", "b", 1.0), ("ann", "noon", "a", 1.0))
    judged = table("user_id item_id", ("ann", "b"))
    with pytest.raises(MeasureError, match="failing, user 'ann' under model 'model', list 'noon': found IndexError"):
        _ = evaluate(log, judged, measures=[failing]).metrics


@pytest.mark.parametrize("fix", ["", "return 0 for an empty list"])
def test_failure_is_read_from_the_report_of_a_spark_job(fix: str) -> None:
    fault = Fault("measures, failing@5, user 'bob' under model 'als'", "IndexError: no rank in line 3", "a number", fix)
    report = (
        f"Job aborted.\n  File worker.py, line 5\nrankeval_spark.errors.MeasureError: {MeasureError(fault)}\n\tat org"
    )
    assert find_refusal(report) == fault


class SomeClass:
    """A class."""


def called_like_ours(gains: list[float]) -> float:
    return sum(gains)


called_like_ours.__name__ = "Hit_Rate"


def unknown_fact(gain: list[float], k: int) -> float:
    return sum(gain) / k


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ([lambda gains: sum(gains) / 2], r"\[0\]: found a lambda, which has no name; .*define it with def, or name it"),
        ([SomeClass], r"\[0\]: found a class; expected a function of one list, or text such as 'nDCG@10'"),
        ([pa.table({"a": [1]})], r"\[0\]: found pyarrow.Table; expected a function of one list"),
        ([partial(failing)], r"\[0\]: found a functools.partial without name"),
        ([called_like_ours], r"\[0\]: found the name 'Hit_Rate', which is read as Success; expected a name of its own"),
        ([unknown_fact], r"found the argument gain; expected some of gains, relevant, .*did you mean 'gains'\?"),
        (failing, r"measures=\): found a function; expected a list; write measures=\[failing\]"),
        ([measure(failing) @ 0], r"\[0\], failing@0: found cutoff '0'; .* leave '@0' out for the whole list"),
        ([failing, "failling@3"], r"\[1\], failling@3: found unknown measure .* did you mean 'failing'\?"),
        ([my_ndcg, "nDCGG@3"], r"\[1\], nDCGG@3: found unknown measure .* did you mean 'nDCG'\?"),
        ([my_p], r"found no cutoff in 'my_p'; expected one; for my_p it is required|my_p: found no cutoff"),
    ],
)
def test_what_is_no_measure_is_refused_with_a_fix(measures: Any, message: str) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(InvalidCallError, match=message) as caught:
        evaluated(measures)
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"better": "low", "without_relevant": 9}, r"better=\): found 'low'; expected one of higher, .* mean 'lower'"),
        (
            {"better": "lower"},
            r"without_relevant=\): found none with better='lower'; expected a number; the worst value",
        ),
        ({"cutoff": "always"}, r"cutoff=\): found 'always'; expected one of required, optional, forbidden"),
    ],
)
def test_what_a_measure_cannot_declare_is_refused(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidCallError, match=message):
        measure(**declared)(failing)


def test_figures_and_config_of_a_call_know_its_functions() -> None:
    def of_cell(ranks: list[int]) -> float:
        return len(ranks)

    result = evaluated([measure(of_cell) @ 3, "of_cell@10"])
    assert result.plot.curves("of_cell") is not None
    config = result.to_config()
    assert config.startswith("# Only this process has the measure of_cell. Move it into a module, with the decorator")
    assert "measures: [of_cell@3, of_cell@10]" in config
    named = evaluated([my_p @ 3]).to_config()
    assert f"plugins: [{__name__}]" in named
    assert "Only this process" not in named


def test_a_function_is_its_measure_wherever_a_call_names_one() -> None:
    def hits(ranks: list[int]) -> float:
        return len(ranks)

    @Definition(name="OfKernel", formula="h", source="here", bounds=(0, 10))
    def kernel(cut: CutLists) -> FloatMatrix:
        """Hits."""
        return cut.hits(1)

    both: dict[str, Any] = {"OfKernel": kernel, "hits@3": measure(hits) @ 3}
    result = evaluated(["RR", *both.values()], comparisons={"primary": [*both.values()]})
    families = result.comparisons.where(family="primary", slice="all")
    assert set(families.column("measure").to_pylist()) == {"OfKernel", "hits"}
    for name, function in both.items():
        assert result.metrics.where(measure=function) == result.metrics.where(measure=name)
        assert result.compare("knn", "als", measure=function).text == result.compare("knn", "als", measure=name).text
        assert result.gap_tests(measures=[function]) == result.gap_tests(measures=[name])
        assert result.plot.forest(function).title == result.plot.forest(name).title
        assert str(result.explain("u01", function, model="als")) == str(result.explain("u01", name, model="als"))
    assert result.plot.tradeoffs("RR", against=[both["hits@3"]]).title


def test_another_source_is_another_definition() -> None:
    def recorded(function: Any, **declared: Any) -> dict[str, str]:  # noqa: ANN401 - a function
        own = measure(**declared)(function).definition
        return record(own, Measure(own.name, (), entry=own))

    def one(gains: list[float]) -> float:
        return dcg(gains)

    kept = one

    def one(gains: list[float]) -> float:  # type: ignore[no-redef]  # a version with a comment
        return dcg(gains)  # the same

    same = one

    def one(gains: list[float]) -> float:  # type: ignore[no-redef]  # another version
        return 2 * dcg(gains)

    assert recorded(kept)["code"] == recorded(same)["code"] != recorded(one)["code"]
    assert recorded(kept)["better"] == "higher"
    assert recorded(kept, version="2")["version"] == "2"
