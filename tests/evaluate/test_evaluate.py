"""``evaluate``: two tables in, tables of results out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest

from rankeval_spark import evaluate, schemas
from rankeval_spark.columns import LIST_KEY
from rankeval_spark.errors import ConfigError, InputError, RefusedCallError
from rankeval_spark.statistics import intervals
from tests.support.arrow_frames import assert_columns, assert_key, by, dicts, judgements, ranking, table, tuples, where
from tests.support.frames import after_run
from tests.support.logs import Logs
from tests.support.sections import measured, sections
from tests.support.threads import threads

if TYPE_CHECKING:
    from rankeval_spark import Evaluation
    from tests.support.logs import Tables

LOGS = Logs.make(seed=20260102)
MEASURES = ("nDCG@3", "nDCG", "AP@3", "P@1", "P@3", "Success@3", "R(rel=2)@3")
SLICES = ("country", ("country", "tier"))
METRIC_KEY = ("model_id", "slice", "slice_values", "measure", "k")

Values = dict[tuple[Any, ...], tuple[Any, ...]]


def evaluated(tables: Tables, **options: Any) -> Evaluation:  # noqa: ANN401 - those of evaluate
    """Evaluate the logs with all measures and slices."""
    given = {"measures": MEASURES, "segments": tables.segments, "slices": SLICES, **options}
    return evaluate(tables.recommendations, tables.held_out, **sections(**given))


def per_user(result: Evaluation) -> Values:
    """Every number of ``user_metrics`` by its key, ids as numbers."""
    rows = dicts(result.user_metrics)
    key = (*LIST_KEY, "k")
    found = {
        (row["model_id"], int(row["user_id"]), row["list_id"], row["k"]): tuple(
            sorted(value) if name == "segments" else value for name, value in row.items() if name not in key
        )
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def means(result: Evaluation) -> Values:
    """Every column of ``metrics`` by its key."""
    rows = dicts(result.metrics)
    found = {
        tuple(tuple(row[name]) if name == "slice_values" else row[name] for name in METRIC_KEY): tuple(
            value for name, value in row.items() if name not in METRIC_KEY
        )
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def assert_means_equal(found: Values, expected: Values) -> None:
    """Compare within 1e-12."""
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == tuple(
            pytest.approx(value, rel=0, abs=1e-12) if isinstance(value, float) else value for value in values
        ), key


@pytest.fixture(scope="module")
def expected() -> tuple[Values, Values]:
    """Per-user values and means of the logs as they come."""
    result = evaluated(LOGS.tables())
    return per_user(result), means(result)


# ---- what it promises ---------------------------------------------------------------------------------------------


def test_results_have_the_declared_columns_and_keys() -> None:
    result = evaluated(LOGS.tables())
    declared = [(field.name, field.type) for field in after_run(schemas.USER_METRICS)]
    measured = [(name, "double") for name in ("ndcg", "ap", "p", "success", "r_rel_2")]
    assert_columns(result.user_metrics, [*declared, *measured])
    assert_columns(result.metrics, after_run(schemas.METRICS))
    assert_columns(result.checks, after_run(schemas.CHECKS))
    assert_key(result.user_metrics, (*LIST_KEY, "k"))
    assert_key(result.user_values, (*LIST_KEY, "measure", "k"))
    assert_key(result.metrics, METRIC_KEY)
    assert_key(result.checks, ("input", "check"))


@pytest.mark.parametrize(("n_chunks", "n_threads"), [(1, 1), (7, 2), (50, 3)])
def test_the_order_and_the_chunks_of_the_rows_change_nothing(
    expected: tuple[Values, Values], n_chunks: int, n_threads: int
) -> None:
    """Per-user values bit for bit, means within 1e-12."""
    with threads(n_threads):
        result = evaluated(LOGS.tables(seed=n_chunks).in_chunks(n_chunks))
    assert per_user(result) == expected[0]
    assert_means_equal(means(result), expected[1])


def test_text_and_integer_ids_give_the_same_numbers_and_keep_their_type(expected: tuple[Values, Values]) -> None:
    result = evaluated(LOGS.tables(ids="bigint"))
    assert result.user_metrics.schema.field("user_id").type == pa.int64()
    assert result.user_values.schema.field("user_id").type == pa.int64()
    assert per_user(result) == expected[0]
    assert_means_equal(means(result), expected[1])


def test_results_used_inside_cached_are_those_outside(expected: tuple[Values, Values]) -> None:
    with evaluated(LOGS.tables()).cached() as kept:
        assert per_user(kept) == expected[0]
        assert kept.metrics is kept.metrics
    result = evaluated(LOGS.tables())
    with result.cached():
        inside = result.metrics
    assert result.metrics is inside


def test_cached_without_a_block_and_its_blocks_can_follow_one_another(expected: tuple[Values, Values]) -> None:
    result = evaluated(LOGS.tables())
    kept = result.cached()
    assert kept is result
    assert per_user(kept) == expected[0]
    with kept, kept as inside:
        assert_means_equal(means(inside), expected[1])
    with kept:
        kept.release()
    result.release()
    assert per_user(result) == expected[0]


def test_an_evaluation_says_which_meaning_of_a_name_was_taken() -> None:
    """Only MAR, which is another number in a popular library, is a reason to warn."""
    with warnings.catch_warnings(action="error"):
        named = evaluated(
            LOGS.tables(), measures=["MRR@3", "HR@3", "MAP(denom='min')@3", "P@1", "MAR(kind='hits_R')@3"]
        )
    assert [note.split(";")[0] for note in named.notes] == [
        "MRR is RR, 1 / rank of the first hit",
        "HR is Success, whether a list has a hit, so that the mean is a share of users",
        "P is the hits divided by k",
    ]
    assert "\nnote: MRR is RR" in repr(named)
    assert "note: P" not in repr(named)
    assert evaluated(LOGS.tables(), measures=["RR@3", "AP@3"], preset="kaggle").notes == ()
    with pytest.warns(UserWarning, match="MAR is the recall averaged over the ranks of the hits.*is AP@k") as warned:
        assert evaluated(LOGS.tables(), measures=["MAR@3"]).request.measure_set.labels == ("MAR(kind='hits_R')",)
    assert warned[0].filename == __file__


# ---- what the numbers are ----------------------------------------------------------------------------------------


def test_slices_of_one_partition_of_the_users_add_up_to_everyone(expected: tuple[Values, Values]) -> None:
    """Sum of n_g M(g) = n M, and so do the counts; users of whom nothing is known are a slice of their own."""
    columns = [field.name for field in after_run(schemas.METRICS) if field.name not in METRIC_KEY]
    rows = [dict(zip((*METRIC_KEY, *columns), (*key, *values), strict=True)) for key, values in expected[1].items()]
    assert {row["slice"] for row in rows} == {"all", "country", "country*tier"}
    assert (None,) in {row["slice_values"] for row in rows}
    same = itemgetter("model_id", "measure", "k")
    for whole in (row for row in rows if row["slice"] == "all"):
        for name in ("country", "country*tier"):
            parts = [row for row in rows if row["slice"] == name and same(row) == same(whole)]
            total = math.fsum(row["n_users"] * row["value"] for row in parts if row["n_users"])
            assert total == pytest.approx(whole["n_users"] * whole["value"], rel=0, abs=1e-12)
            for count in ("n_users", "n_undefined", "n_missing", "n_zero_relevant", "n_extra_users"):
                assert sum(row[count] for row in parts) == whole[count]


def test_means_are_those_of_the_per_user_values() -> None:
    result = evaluated(LOGS.tables())
    values = tuples(result.user_values, "model_id", "measure", "k", "value")
    everyone = where(result.metrics, slice="all")
    found = by(everyone, "model_id", "measure", "k", value="value")
    counts = by(everyone, "model_id", "measure", "k", value="n_users")
    wide = by(where(result.user_metrics, k=3), *LIST_KEY, value="ndcg")
    long = by(where(result.user_values, k=3, measure="nDCG"), *LIST_KEY, value="value")
    assert wide == long
    for key, mean in found.items():
        defined = [value for *its_key, value in values if tuple(its_key) == key and value is not None]
        assert len(defined) == counts[key]
        assert mean == pytest.approx(math.fsum(defined) / len(defined), rel=0, abs=1e-12)


def test_success_has_wilsons_interval_and_the_others_halls() -> None:
    users = {f"{n}": {"a": 1} for n in range(10)}
    log = ranking({user: "a b" if int(user) < 7 else "b c" for user in users})
    result = evaluate(log, judgements(users), measures=["HR@2", "P@2"])
    rows = by(result.metrics, "measure", value="ci_method")
    assert rows == {"Success": "wilson", "P": "hall"}
    low, high = map(float, intervals.wilson_interval(10, 7 / 10, 10 * 7 / 10 * 3 / 10, 0.95))
    ((value, *ends),) = tuples(where(result.metrics, measure="Success"), "value", "ci_low", "ci_high")
    assert value == 7 / 10
    assert ends == [pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12)]


def test_a_users_value_is_the_mean_over_his_lists() -> None:
    """Ann's lists have 1; Bob's 1, 0, 0 and 0: (1 + 1/4) / 2 over users."""
    rows = [("ann", "1", "a", 1.0), *(("bob", f"{n}", "a" if n == 0 else "b", 1.0) for n in range(4))]
    log = table("user_id list_id item_id score", *rows)
    result = evaluate(log, judgements({"ann": {"a": 1}, "bob": {"a": 1}}), measures=["P@1"])
    assert tuples(result.metrics, "value", "n_users") == [((1 + 1 / 4) / 2, 2)]
    assert tuples(result.user_metrics, "user_id", "list_id", "p") == [
        ("ann", "1", 1.0),
        ("bob", "0", 1.0),
        ("bob", "1", 0.0),
        ("bob", "2", 0.0),
        ("bob", "3", 0.0),
    ]


@pytest.mark.parametrize(
    ("population", "value", "counts"),
    [
        # Ann has a hit, Bob no list, Cat no relevant judgement, Dan no judgement at all.
        pytest.param("truth", (1 + 0) / 2, (2, 1), id="truth"),
        pytest.param("judged", (1 + 0 + 0) / 3, (3, 0), id="judged"),
        pytest.param("intersection", 1 / 1, (1, 1), id="intersection"),
        pytest.param("run", 1 / 1, (1, 2), id="run"),
    ],
)
def test_the_population_decides_who_enters_the_mean(population: str, value: float, counts: tuple[int, int]) -> None:
    log = ranking({"ann": "a b", "cat": "a b", "dan": "a b"})
    held_out = judgements({"ann": {"a": 1}, "bob": {"a": 1}, "cat": {"a": 0}})
    result = measured(log, held_out, measures=["P@1"], population=population)
    names = ("value", "n_users", "n_undefined", "n_missing", "n_zero_relevant", "n_extra_users")
    assert tuples(result.metrics, *names) == [(value, *counts, 1, 1, 1)]


@pytest.mark.filterwarnings("ignore:recommendations have no row of")
def test_models_are_those_of_the_log_or_those_expected() -> None:
    log = pa.concat_tables([ranking({"ann": "a"}, model_id="x"), ranking({"ann": "b"}, model_id="y")])
    held_out = judgements({"ann": {"a": 1}, "bob": {"a": 1}})

    def found(models: list[str] | None) -> list[tuple[Any, ...]]:
        result = evaluate(log, held_out, measures=["P@1"], models=models)
        return tuples(result.metrics, "model_id", "value", "n_users", "n_missing")

    assert found(None) == [("x", 1 / 2, 2, 1), ("y", 0.0, 2, 1)]
    assert found(["y", "ghost"]) == [("ghost", 0.0, 2, 2), ("y", 0.0, 2, 1)]


def test_a_log_without_models_is_that_of_one() -> None:
    result = evaluate(ranking({"ann": "a"}), judgements({"ann": {"a": 1}}), measures=["P@1"])
    assert tuples(result.metrics, "model_id", "value") == [("model", 1.0)]


def test_ranks_and_scores_of_the_same_order_give_the_same_numbers() -> None:
    scores = ranking({"ann": "a b c", "bob": "c b"})
    numbers = [(row["user_id"], row["item_id"], int(1000 - row["score"] * 7)) for row in dicts(scores)]
    ranks = table("user_id item_id rank", *numbers)
    held_out = judgements({"ann": {"b": 1, "c": 2}, "bob": {"b": 3}})
    found = [
        tuples(evaluate(log, held_out, measures=["nDCG@2", "AP"]).user_values, "user_id", "measure", "value")
        for log in (scores, ranks)
    ]
    assert found[0] == found[1]
    assert ("ann", "AP", (1 / 2 + 2 / 3) / 2) in found[0]


def test_ids_match_as_text_to_the_letter() -> None:
    """Neither are 007 and 7 the same user, nor composed and decomposed letters the same item."""
    log = ranking({"007": "é", "7": "e\u0301", "日本": "𝄞"})
    held_out = judgements({"007": {"é": 1}, "7": {"é": 1}, "日本": {"𝄞": 1}})
    result = evaluate(log, held_out, measures=["P@1"])
    assert by(result.user_metrics, "user_id", value="p") == {"007": 1.0, "7": 0.0, "日本": 1.0}


@pytest.mark.parametrize("type_", [pa.float32(), pa.int32(), pa.decimal128(10, 2), pa.string()], ids=str)
def test_scores_of_any_number_type_order_the_list(type_: pa.DataType) -> None:
    log = ranking({"ann": "a b c"})
    scores = log["score"].cast(pa.int32()).cast(pa.string()).cast(type_)
    typed = log.set_column(log.schema.get_field_index("score"), "score", scores)
    result = evaluate(typed, judgements({"ann": {"b": 1}}), measures=["RR"])
    assert tuples(result.user_metrics, "rr") == [(1 / 2,)]


def test_users_of_a_leaderboard_are_those_of_the_columns_that_it_shows() -> None:
    log = ranking({name: "a b" for name in ("ann", "bob", "cid")})
    truth = judgements({"ann": {"a": 1}, "bob": {"a": 2}, "cid": {"b": 1}})
    result = evaluate(log, truth, measures=["P(rel=2)@1", "P@2"])
    users = [result.leaderboard(k)["n_users"].to_pylist() for k in (1, 2, None)]
    assert users == [[1], [3], [3]]


def test_leaderboard_puts_the_best_model_first_and_names_measures_in_full() -> None:
    log = pa.concat_tables([ranking({"ann": "b a"}, model_id="late"), ranking({"ann": "a b"}, model_id="early")])
    result = evaluate(log, judgements({"ann": {"a": 1}}), measures=["RR@2", "P@1", "AP(denom='min')@2"])
    board = result.leaderboard()
    assert board.column_names == ["model_id", "n_users", "RR@2", "P@1", "AP(denom='min')@2"]
    assert [tuple(row.values()) for row in dicts(board)] == [
        ("early", 1, 1.0, 1.0, 1.0),
        ("late", 1, 1 / 2, 0.0, 1 / 2),
    ]
    assert result.leaderboard(k=1).column_names == ["model_id", "n_users", "P@1"]
    with pytest.raises(ConfigError, match=r"leaderboard\(k=\).*found 7.*1, 2"):
        result.leaderboard(k=7)


def test_checks_tell_what_was_found() -> None:
    log = table(
        "user_id item_id score",
        *(("ann", "a", 0.9), ("ann", "a", 0.1), ("ann", "b", math.nan), (None, "a", 0.5), ("dan", "c", 0.5)),
    )
    held_out = table("user_id item_id gain", ("ann", "a", 1.0), ("bob", "x", 0.0), ("bob", "y", None))
    found = by(evaluate(log, held_out, measures=["P@2"]).checks, "input", "check", value="count")
    assert found == {
        ("recommendations", "rows"): 5,
        ("recommendations", "null_keys"): 1,
        ("recommendations", "invalid_scores"): 1,
        ("recommendations", "zero_ranks"): 0,
        ("recommendations", "duplicates"): 1,
        ("recommendations", "short_lists"): 2,
        ("recommendations", "ties"): 0,
        ("recommendations", "rank_gaps"): 0,
        ("recommendations", "score_rank_disagree"): 0,
        ("recommendations", "extra_users"): 1,
        ("recommendations", "missing_users"): 1,
        ("held_out", "rows"): 3,
        ("held_out", "null_keys"): 0,
        ("held_out", "invalid_gains"): 1,
        ("held_out", "negative_gains"): 0,
        ("held_out", "low_gains"): 0,
        ("held_out", "duplicates"): 0,
        ("held_out", "zero_relevant"): 1,
        ("held_out", "unmatched_items"): 1,
    }


@pytest.mark.parametrize("models", [None, ["m"]])
@pytest.mark.parametrize("is_empty", [(True, False), (False, True), (True, True)])
def test_tables_without_rows_give_results_without_a_crash(
    is_empty: tuple[bool, bool], models: list[str] | None
) -> None:
    log, held_out = ranking({"ann": "a"}, model_id="m"), judgements({"ann": {"a": 1}})
    log, held_out = (
        frame.slice(0, 0) if empty else frame for frame, empty in zip((log, held_out), is_empty, strict=True)
    )
    result = evaluate(log, held_out, measures=["P@1"], models=models)
    values = tuples(result.metrics, "model_id", "value", "n_users", "n_missing", "n_extra_users")
    assert {count for (count,) in tuples(where(result.checks, check="rows"), "count")} <= {0, 1}
    assert result.leaderboard().num_rows == len(values)
    assert (values, result.user_metrics.num_rows) == {
        (True, False): ([("m", 0.0, 1, 1, 0)], 1) if models else ([], 0),
        (False, True): ([("m", None, 0, 0, 1)], 0),
        (True, True): ([], 0),
    }[is_empty]


# ---- what it refuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["duplicates", "held_out_duplicates", "invalid_scores", "ties"])
def test_a_policy_of_error_refuses_the_case_when_a_result_is_used(option: str) -> None:
    log = table("user_id item_id score", ("u", "a", 0.5), ("u", "a", 0.5), ("u", "b", 0.5), ("u", "c", None))
    held_out = table("user_id item_id", ("u", "a"), ("u", "a"))
    policies: dict[str, Any] = {option: "error"}
    result = measured(log, held_out, measures=["P@1"], **policies)
    with pytest.raises(RefusedCallError, match=rf"evaluate\(policies=\)\.{option}: found "):
        _ = result.metrics


def inputs() -> tuple[pa.Table, pa.Table]:
    """Two tables without a fault."""
    return ranking({"ann": "a"}), judgements({"ann": {"a": 1}})


def test_all_faults_of_the_arguments_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        measured(
            *inputs(),
            measures=["nDGC@10", "P@0"],
            models=["a", "a"],
            population="thruth",
            ties="item-asc",
            intervals={"confidence": 95, "method": "bootstrp", "replicates": 99, "seed": -1},
            slices=["contry"],
            segments=table("user_id country", ("ann", "AT")),
        )
    message = str(raised.value)
    parts = [
        "did you mean 'nDCG'?",
        "cutoff '0'",
        "model 'a' a second time",
        "did you mean 'truth'?",
        "did you mean 'item_asc'?",
        "evaluate(intervals=).confidence",
        "did you mean 'bootstrap'?",
        "evaluate(intervals=).replicates: found 99",
        "evaluate(intervals=).seed: found -1",
        "evaluate(slices=): found 'contry'; expected a column of segments: country; did you mean 'country'?",
    ]
    assert [part for part in parts if part not in message] == []
    assert len(raised.value.faults) == len(parts)


def test_unknown_baseline_is_reported_with_the_faults_of_other_arguments() -> None:
    with pytest.raises(ConfigError) as raised:
        evaluate(
            *inputs(), measures=["P@1"], models=["als"], baseline="asl", intervals={"confidence": 2, "replicates": 99}
        )
    assert [fault.where for fault in raised.value.faults] == [
        *("evaluate(intervals=).confidence", "evaluate(intervals=).replicates", "evaluate(baseline=)")
    ]


def drop(name: str) -> Callable[[pa.Table], pa.Table]:
    """Leave out a column."""
    return lambda frame: frame.drop_columns(name)


def rename(old: str, new: str) -> Callable[[pa.Table], pa.Table]:
    """Call a column otherwise."""
    return lambda frame: frame.rename_columns([new if each == old else each for each in frame.column_names])


@pytest.mark.parametrize(
    ("change_log", "change_held_out", "message"),
    [
        (rename("user_id", "userId"), None, r"recommendations=\): found no column 'user_id'.*userId"),
        (drop("score"), None, r"recommendations=\): found neither a score nor a rank"),
        (rename("score", "scores"), None, r"did you mean 'scores'\?"),
        (None, drop("item_id"), r"held_out=\): found no column 'item_id'"),
    ],
)
def test_a_column_that_is_missing_is_named(
    change_log: Callable[[pa.Table], pa.Table] | None,
    change_held_out: Callable[[pa.Table], pa.Table] | None,
    message: str,
) -> None:
    log, held_out = inputs()
    with pytest.raises(InputError, match=message):
        evaluate(
            change_log(log) if change_log else log,
            change_held_out(held_out) if change_held_out else held_out,
            measures=["P@1"],
        )


def test_columns_missing_in_both_tables_are_reported_at_once() -> None:
    log, held_out = inputs()
    with pytest.raises(InputError, match=r"(?s)recommendations.*held_out"):
        evaluate(log.drop_columns("item_id"), held_out.drop_columns("user_id"), measures=["P@1"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "rank"}, r"recommendations=\): found no column 'rank'.*ties='rank'"),
        ({"models": ["als"]}, r"recommendations=\): found no column 'model_id'.*models are named"),
    ],
    ids=str,
)
def test_an_option_that_needs_a_column_says_so(options: dict[str, Any], message: str) -> None:
    """Without the column every tie would fail in the middle of it all, and every list be left out without a word."""
    with pytest.raises(InputError, match=message):
        measured(*inputs(), measures=["P@1"], **options)


def test_rows_without_a_model_are_counted_although_the_models_are_named() -> None:
    log = table("model_id user_id item_id score", ("m", "ann", "a", 0.5), (None, "ann", "b", 0.9))
    result = evaluate(log, judgements({"ann": {"a": 1}}), measures=["P@1"], models=["m"])
    assert ("null_keys", 1) in tuples(where(result.checks, input="recommendations"), "check", "count")
    assert tuples(result.metrics, "model_id", "value") == [("m", 1.0)]


def test_any_stream_of_arrow_is_a_table_and_is_read_once() -> None:
    """Segments too, whose columns are looked at before any input is read."""

    class Stream:
        def __init__(self, read: pa.Table) -> None:
            self.read, self.n_reads = read, 0

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            self.n_reads += 1
            return self.read.__arrow_c_stream__(requested_schema)

    streams = [Stream(one) for one in (*inputs(), table("user_id tier", ("ann", "gold")))]
    log, held_out, segments = streams
    result = evaluate(log, held_out, measures=["P@1"], segments=segments, slices=["tier"])
    assert set(result.metrics["slice_value"].to_pylist()) == {"", "gold"}
    assert result.checks.num_rows
    assert [stream.n_reads for stream in streams] == [1, 1, 1]


def test_why_pandas_makes_floats_of_ids_is_said_once_in_a_message() -> None:
    frame = pd.DataFrame({"user_id": [1, None], "item_id": [2, None], "score": [1.0, 2.0]})
    with pytest.raises(InputError) as refused:
        evaluate(frame, frame, measures=["RR"])
    assert str(refused.value).count("because a missing id makes floats of whole numbers in pandas") == 1
    assert str(refused.value).count("write frame.astype({'item_id': 'Int64'})") == 2
    assert all("because" in fault.fix for fault in refused.value.faults)


def test_ids_that_are_text_in_one_table_and_numbers_in_another_are_refused() -> None:
    log, held_out = inputs()
    numbers = pa.table({"user_id": pa.array([7], pa.int64()), "item_id": held_out["item_id"]})
    with pytest.raises(RefusedCallError, match=r"user_id of type int64") as refused:
        evaluate(log, numbers, measures=["P@1"])
    (fault,) = refused.value.faults
    assert fault.where == "evaluate(held_out=)"
    assert fault.fix.startswith(
        "cast user_id of held_out to text, or pass inputs={'recommendations': {'types': {'user_id'"
    )
    with pytest.raises(RefusedCallError, match=r"user_id of type int64"):
        evaluate(
            log, held_out, measures=["P@1"], segments=numbers.append_column("tier", pa.array(["x"])), slices=["tier"]
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": []}, r"at least one, such as nDCG@10"),
        ({"measures": "nDCG@10"}, r"evaluate\(measures=\).*'nDCG@10'.*list"),
        ({"slices": ["country"]}, r"evaluate\(slices=\): found 'country'"),
        ({"slices": "tier", "segments": True}, r"evaluate\(slices=\).*'tier'.*list"),
        ({"slices": ["tear"], "segments": True}, r"did you mean 'tier'\?"),
        ({"slices": ["tier", "tier"], "segments": True}, r"evaluate\(slices=\).*once"),
        ({"slices": [("tier", "tier")], "segments": True}, r"evaluate\(slices=\).*once"),
        ({"slices": [()], "segments": True}, r"evaluate\(slices=\)"),
        ({"slices": ["all"], "segments": True}, r"evaluate\(slices=\)"),
        ({"models": []}, r"evaluate\(models=\)"),
        ({"models": "als"}, r"evaluate\(models=\)"),
        ({"models": [1]}, r"evaluate\(models=\)"),
        ({"confidence": "0.95"}, r"evaluate\(intervals=\)\.confidence"),
        ({"min_slice_size": "30"}, r"evaluate\(slicing=\)\.min_slice_size"),
        ({"tests": ["t", "sign"]}, r"evaluate\(comparisons=\)\.baseline.*the model to compare with"),
        (
            {"baseline": "m", "tests": ("t", "tukey")},
            r"evaluate\(comparisons=\)\.tests.*pass comparisons={'pairs': 'all'}",
        ),
        ({"baseline": "m", "replicates": 99}, r"evaluate\(comparisons=\)\.replicates"),
    ],
    ids=str,
)
def test_an_argument_that_makes_no_sense_is_a_clear_error(options: dict[str, Any], message: str) -> None:
    segments = table("user_id tier all", ("ann", "gold", "x")) if options.pop("segments", False) else None
    with pytest.raises(ConfigError, match=message):
        measured(*inputs(), **{"measures": ["P@1"], "segments": segments, **options})
