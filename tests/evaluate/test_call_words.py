"""What ``evaluate`` refuses is said in the words of a call: arguments with ``=``, values and types of Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.config import Policies, validate_model
from rankeval_spark.errors import (
    ConfigError,
    FaultsError,
    InputError,
    InvalidCallError,
    JudgementError,
    RefusedCallError,
)
from rankeval_spark.inputs.input_columns import missing_faults
from tests.support.sections import measured

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

LOG = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [10, 11, 12], "score": [0.9, 0.8, 0.7]})
HELD_OUT = pd.DataFrame({"user_id": [1, 2], "item_id": [10, 12]})
SEGMENTS = pd.DataFrame({"user_id": [1, 2], "country": ["a", "b"], "joined": [date(2026, 1, 1)] * 2})
ITEMS = pd.DataFrame({"item_id": [10], "vector": [1.5], "categories": [7], "published_at": [8]})


def refused(log: Any = LOG, held_out: Any = HELD_OUT, measures: Any = ("nDCG@10",), **options: Any) -> FaultsError:  # noqa: ANN401 - what is refused
    """Return what a call raises, at once or where its first result is used."""
    with pytest.raises(FaultsError) as raised:
        measured(log, held_out, measures=measures, **options).metrics  # noqa: B018 - a result is used
    return raised.value


CALLS: Final[dict[type[FaultsError], dict[str, dict[str, Any]]]] = {
    InvalidCallError: {
        "evaluate(measures=): found 'nDCG@10'; expected a list; write measures=[\"nDCG@10\"]": {"measures": "nDCG@10"},
        'evaluate(measures=): found None; expected a value; such as measures=["nDCG@10", "P@5"]': {"measures": None},
        'evaluate(measures=): found a dict; expected a list; such as measures=["nDCG@10", "P@5"]': {
            "measures": {"nDCG": 10}
        },
        'evaluate(measures=)[1]: found 10; expected text; such as measures=["nDCG@10", "P@5"]': {
            "measures": ["nDCG@10", 10]
        },
        "evaluate(preset=): found a pandas.DataFrame; expected a value, because this argument takes no table; name": {
            "preset": SEGMENTS
        },
        "evaluate(policies=).population: found a pandas.DataFrame; expected one of truth, judged, intersection, ": {
            "population": SEGMENTS
        },
        "evaluate(slices=): found 'country'; expected a list; write slices=[\"country\"]": {
            "slices": "country",
            "segments": SEGMENTS,
        },
        "evaluate(policies=).judged_only: found 'yes'; expected True or False": {"judged_only": "yes"},
        'evaluate(baseline=): found 1; expected text; write "1"': {"baseline": 1},
        "evaluate(policies=).attribution_window: found 7; expected text; such as '7d'": {
            "attribution": "all",
            "attribution_window": 7,
        },
        (
            "evaluate(policies=).attribution_window: found no window with attribution='all'; expected a time such "
            "as 7d or 36h; "
        ): {"attribution": "all"},
        (
            "evaluate(inputs=).held_out.gains: found no key 'column'; expected this key; such as {'column': "
            "'event', 'values': {"
        ): {"gains": {"values": {"purchase": 3}}},
        "evaluate(inputs=).held_out.gains.edges: found [4.0, 2.0]; expected ascending numbers, each once": {
            "gains": {"column": "rating", "edges": [4, 2]}
        },
        (
            "evaluate(slicing=).bands.age: found neither edges nor quantiles; expected one of them; write "
            "{'edges': [18, 25,"
        ): {"bands": {"age": {}}, "slices": ["age"], "segments": SEGMENTS.assign(age=3)},
        (
            "evaluate(policies=).missing: found missing='zero' with population='intersection'; expected one of "
            "exclude, error; pass policies={'population': 'truth'}, or 'judged'"
        ): {"population": "intersection", "missing": "zero"},
        (
            "evaluate(measures=): found IPS with population='truth'; expected population='judged', because "
            "impressions without a reward count too; pass policies={'population': 'judged'}"
        ): {"measures": ["IPS"]},
        (
            "evaluate(comparisons=).tests: found tukey, but pairs='baseline'; expected tests of a model against "
            "the baseline; pass comparisons={'pairs': 'all'}"
        ): {"baseline": "als", "tests": ["t", "tukey"]},
        (
            "evaluate(train=): found None; expected train, for seen_in_train='drop'; give it, or pass "
            "policies={'seen_in_train': 'keep'}"
        ): {"seen_in_train": "drop"},
    },
    InputError: {
        "evaluate(items=): found no column 'vector'; expected the column, for ILD; rename the column that is it to": {
            "measures": ["ILD@2"],
            "items": ITEMS[["item_id"]],
        },
        "evaluate(measures=): found CatalogCoverage@5 without a catalogue; expected items= or train=; pass items=": {
            "measures": ["CatalogCoverage@5"]
        },
        (
            "evaluate(recommendations=): found no column 'rank'; expected ranks, because ties='rank' reads them; "
            "pass policies={'ties': 'item_asc'}"
        ): {"ties": "rank"},
        (
            "evaluate(policies=).order: found 'rank', which ignores the scores; expected scores for RMSE; pass "
            "policies={'order': 'score'}, or"
        ): {"log": LOG.assign(rank=1), "measures": ["RMSE"], "order": "rank"},
        "evaluate(recommendations=): found column 'item_id' of type float64 for item_id; expected text or whole": {
            "log": pl.from_pandas(LOG).with_columns(item_id=1.5)
        },
        "evaluate(held_out=): found column 'gain' of type datetime64 for gain; expected a type that can be read as": {
            "held_out": HELD_OUT.assign(gain=pd.Timestamp("2026-01-01"))
        },
        "evaluate(held_out=): found column 'gain' of type timedelta64[ns] for gain; expected a type that can be": {
            "held_out": HELD_OUT.assign(gain=pd.Timedelta("1d"))
        },
        (
            "evaluate(items=): found column 'categories' of type int64 for categories; expected a type that can be "
            "read as list[str]"
        ): {"measures": ["ILD@2"], "items": ITEMS},
        "evaluate(recommendations=): found column 'recommendations' of type list[dict[movieId: int64, rating:": {
            "log": pd.DataFrame({"user_id": [1], "recommendations": [[{"movieId": 1, "rating": 0.5}]]})
        },
    },
    RefusedCallError: {
        (
            "evaluate(held_out=): found item_id of type str, while evaluate(recommendations=) has int64; expected "
            "one type"
        ): {"held_out": HELD_OUT.astype({"item_id": "str"})},
        (
            "evaluate(policies=).duplicates: found item '10' occurs twice in a list of user '1'; expected no such "
            "case; remove them, or pass policies={'duplicates': 'best'}"
        ): {"log": pd.concat([LOG, LOG]), "duplicates": "error"},
        (
            "evaluate(policies=).held_out_duplicates: found a (user, item) pair occurs twice in the held-out "
            "table; expected no such case; remove them, or pass policies={'held_out_duplicates': 'max'}, or 'sum' "
            "or 'last'"
        ): {"held_out": pd.concat([HELD_OUT, HELD_OUT]), "held_out_duplicates": "error"},
        (
            "evaluate(policies=).ties: found two items of one list have the same score; expected no such case; "
            "pass policies={'ties': 'item_asc'}, or 'item_desc' or 'rank'"
        ): {"log": LOG.assign(score=1.0), "ties": "error"},
    },
    JudgementError: {
        "evaluate(measures=), ERR: found a judgement with grade 9; expected none above max_rel=4; set max_rel to": {
            "held_out": HELD_OUT.assign(gain=[9, 1]),
            "measures": ["ERR@5"],
        },
    },
}
"""Calls by the error that they raise and the beginning of what it says."""


@pytest.mark.parametrize(("kind", "said"), [(kind, said) for kind, calls in CALLS.items() for said in calls])
def test_a_refusal_is_in_the_words_of_the_call_and_none_of_a_file_or_of_sql(kind: type[FaultsError], said: str) -> None:
    """Neither paths and keys of a config, nor types of Spark: no DataFrame of Spark is given."""
    error = refused(**CALLS[kind][said])
    assert type(error) is kind
    assert said in [str(fault)[: len(said)] for fault in error.faults]
    others = r"inputs\.|policies\.|bigint|double|timestamp_ntz|array<|in quotes|\bkeys with|found true"
    assert re.findall(others, str(error)) == []
    assert all("=)" in fault.where for fault in error.faults)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"judged_only": "yes"}, "judged_only: found 'yes'; expected true or false"),
        ({"attribution": "all"}, "found no window with attribution 'all'; expected a time such as 7d or 36h; set attr"),
        ({"population": "intersection", "missing": "zero"}, "found missing 'zero' with population 'intersection'"),
    ],
)
def test_a_file_keeps_its_own_words(written: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        validate_model(Policies, written)
    assert said in str(raised.value)
    assert type(raised.value) is ConfigError


def test_arrow_tables_are_named_like_the_others() -> None:
    log = pa.table({"user_id": pa.array([True]), "item_id": pa.array([b"a"]), "score": [1.0]})
    assert "of type bool for user_id" in str(refused(log))


@pytest.mark.parametrize(
    ("columns", "fixes"),
    [
        (
            {"user_id": "userId", "item_id": "trackId", "score": "prediction"},
            ["did you mean 'userId'? rename it to user_id", "did you mean 'trackId'? rename it to item_id"],
        ),
        (
            {"user_id": "userId", "item_id": "movieId", "score": "prediction"},  # MovieLens, but for the score
            ["did you mean 'prediction'? rename it to score"],
        ),
        (
            {"user_id": "customer", "item_id": "rated_track"},
            ["did you mean 'customer'? rename it to user_id", "did you mean 'rated_track'? rename it to item_id"],
        ),
        ({"user_id": "qid"}, ["did you mean 'qid'? rename it to user_id"]),
        ({"score": "rating"}, ["did you mean 'rating'? rename it to score"]),
        ({"score": "Position"}, ["did you mean 'Position'? rename it to rank"]),
        ({"score": "scores"}, ["did you mean 'scores'?"]),
        ({"item_id": "x"}, ["rename the column that is it to item_id"]),
    ],
    ids=str,
)
def test_a_column_by_another_name_is_named(columns: dict[str, str], fixes: list[str]) -> None:
    found = [fault.fix for fault in refused(LOG.rename(columns=columns)).faults]
    assert [fix.partition(", or pass inputs=")[0] for fix in found] == fixes


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (
            {"measures": ["ILD(sim='jaccard')@2"], "items": pd.DataFrame({"item_id": [1], "genres": [["a"]]})},
            "did you mean 'genres'? rename it to categories",
        ),
        (
            {"measures": ["ILD@2"], "items": pd.DataFrame({"item_id": [1], "embedding": [[1.0]]})},
            "did you mean 'embedding'? rename it to vector",
        ),
        (
            {"held_out": HELD_OUT.assign(timestamp=5), "held_out_duplicates": "last"},
            "did you mean 'timestamp'? rename it to interacted_at, or pass policies={'held_out_duplicates': 'max'}",
        ),
        (
            {"log": LOG.assign(pos=1), "order": "rank"},
            "did you mean 'pos'? rename it to rank, or pass policies={'order': 'score'}",
        ),
    ],
    ids=str,
)
def test_a_column_that_is_asked_for_by_another_name_is_named(options: dict[str, Any], fix: str) -> None:
    (fault,) = refused(**options).faults
    assert fault.fix.partition(", or pass inputs=")[0] == fix


def test_a_config_names_the_likely_column_by_its_key() -> None:
    names = {name: name for name in schemas.TRAIN.field_names()}
    faults = missing_faults(["user_id", "movieId"], names, {}, "inputs.train")
    assert [fault.fix for fault in faults] == ["did you mean 'movieId'? write inputs.train.columns.item_id: movieId"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda result: result.gap_tests(measures="RR"), "gap_tests(measures=): found 'RR'; expected a list; write"),
        (lambda result: result.gap_tests(measures={}), "gap_tests(measures=): found a dict; expected a list"),
        (lambda result: result.gap_tests(replicates="5"), "gap_tests(replicates=): found '5'; expected a whole number"),
        (lambda result: result.gap_tests(), "evaluate(slices=): found None; expected segments whose groups are compar"),
        (lambda result: result.comparisons, "evaluate(baseline=): found None; expected the model that others are com"),
        (lambda result: result.leaderboard(k=7), "leaderboard(k=): found 7; expected a requested cutoff: 10"),
        (lambda result: result.hit_ranks(None, "model"), "hit_ranks(model=): found None; expected a model of the log"),
        (lambda result: result.agreement("pop"), "agreement(baseline=): found 'pop'; expected a model of the log"),
    ],
)
def test_a_result_that_is_refused_speaks_of_its_own_call(call: Callable[[Evaluation], object], said: str) -> None:
    with pytest.raises(InvalidCallError) as raised:
        call(evaluate(LOG, HELD_OUT, measures=["nDCG@10"]))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("ties", "expected", "policies={'ties': 'expected'}"),
        ("min_slice_size", 5, "slicing={'min_slice_size': 5}"),
        ("confidence", 0.9, "intervals={'confidence': 0.9}"),
        ("margin", 0.1, "comparisons={'margin': 0.1}"),
        ("time_zone", "Asia/Tokyo", "inputs={'time_zone': 'Asia/Tokyo'}"),
        ("gains", {}, "inputs={'held_out': {'gains': {}}}"),
    ],
)
def test_a_key_of_a_section_that_is_passed_as_an_argument_is_given_its_place(
    name: str, value: object, fix: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"evaluate({name}=): found an unknown argument")) as raised:
        evaluate(LOG, HELD_OUT, measures=["RR"], **{name: value})  # type: ignore[arg-type]  # what is refused
    assert str(raised.value).endswith(f"; write {fix}")
