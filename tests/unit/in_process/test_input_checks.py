"""What is wrong with tables in memory and the lists made of them, counted and judged."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.config import Checks, Policies, Threshold
from rankeval_spark.config.inference import Comparisons
from rankeval_spark.config.request import Request
from rankeval_spark.engine.checks import Tally
from rankeval_spark.engine.scorer import IS_EVALUATED
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.inputs.arrow.reading import Source, Tables
from rankeval_spark.result_rows.check_rows import CheckCount
from rankeval_spark.sums.check_counts import N_LISTED
from rankeval_spark.sums.input_checks import ROWS, tallies_to_rows
from tests.support.arrow_sources import source
from tests.support.input_checks import to_checks

COUNTED: Final = ("count", "share", "verdict", "sample_keys")

_SEEN: Final = pa.struct([("n_seen", pa.int32()), ("n_items", pa.int32())])
_SCORED: Final = {
    C.MODEL_ID: (pa.string(), "m"),
    C.USER_ID: (pa.string(), None),
    C.K: (pa.int32(), 1),
    **{name: (pa.int32(), 1) for name in (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED, N_LISTED)},
    C.N_DUPLICATES: (pa.int32(), 0),
    C.HAS_TIES: (pa.bool_(), False),
    IS_EVALUATED: (pa.bool_(), True),
}
"""Type and default of the columns of scored rows: of a judged user with a list of one item, at cutoff 1."""

_IF_KNOWN: Final = {C.HAS_RANK_GAPS: pa.bool_(), C.IS_OUT_OF_ORDER: pa.bool_(), C.SEEN: _SEEN}
"""Columns that scored rows have where the log, or the request, asks for it."""


def scored(*rows: dict[str, Any]) -> pa.Table:
    """Make scored rows; what is not named has its default."""
    types = {name: type_ for name, (type_, _) in _SCORED.items()}
    types |= {name: type_ for name, type_ in _IF_KNOWN.items() if any(name in row for row in rows)}
    defaults = {name: value for name, (_, value) in _SCORED.items()}
    return pa.Table.from_pylist([{**defaults, **row} for row in rows], schema=pa.schema(types))


def request(*measures: str, **asked: Any) -> Request:  # noqa: ANN401 - settings of every type
    """Ask for measures, P@1 where none is named, with some policies and other settings of a request."""
    policies = {name: asked.pop(name) for name in list(asked) if name in Policies.model_fields}
    return Request(measures=measures or ("P@1",), policies=Policies(**policies), **asked)


LOG: Final = source("recommendations", "model_id user_id item_id score", ("m", "ann", "a", 1.0), ("m", "bob", "a", 1.0))
HELD_OUT: Final = source("held_out", "user_id item_id", ("ann", "a"))


def checked(
    log: Source = LOG,
    held_out: Source = HELD_OUT,
    *,
    lists: pa.Table | None = None,
    asked: Request | None = None,
    checks: Checks | None = None,
    band_facts: tuple[CheckCount, ...] = (),
    **others: Source,
) -> list[dict[str, Any]]:
    """Check inputs, most of them without a fault."""
    tables = Tables(log, held_out, **others, are_checked=False)
    rows = scored({C.USER_ID: "ann"}) if lists is None else lists
    found: list[dict[str, Any]] = to_checks(
        tables, rows, asked or request(), checks or Checks(), band_facts
    ).to_pylist()
    return found


def found(rows: list[dict[str, Any]], input_: str) -> dict[str, tuple[Any, ...]]:
    """Count, share, verdict and samples of an input, by check."""
    return {row["check"]: tuple(row[name] for name in COUNTED) for row in rows if row["input"] == input_}


def test_rows_have_columns_types_and_order_of_the_published_table() -> None:
    train, items = source("train", "user_id item_id", ("u", "a")), source("items", "item_id", ("a",))
    segments = source("segments", "user_id country", ("u", "DE"))
    asked = request(slices=[("country",)])
    band = CheckCount("segments", "bands.age", 1, 2, ["18"])
    rows = checked(asked=asked, train=train, items=items, segments=segments, band_facts=(band,))
    assert list(rows[0]) == [name for name in schemas.CHECKS.field_names() if name not in C.RUN_KEY]
    types = to_checks(Tables(LOG, HELD_OUT), scored({C.USER_ID: "ann"}), request(), Checks()).schema.types
    assert types == [*[pa.string()] * 3, pa.int64(), *[pa.float64()] * 2, pa.string(), pa.list_(pa.string())]
    assert [(row["input"], row["check"]) for row in rows] == [
        *(("recommendations", name) for name in ("rows", "null_keys", "zero_ranks", "invalid_scores")),
        *(("held_out", name) for name in ("rows", "null_keys", "invalid_gains", "negative_gains", "low_gains")),
        *(("held_out", name) for name in ("duplicates", "zero_relevant", "unmatched_items", "held_out_in_train")),
        *(("train", name) for name in ("rows", "null_keys")),
        *(("items", name) for name in ("rows", "null_keys", "invalid_facts", "duplicates")),
        *(("recommendations", "unknown_items"), ("segments", "bands.age"), ("segments", "alike_values")),
        *(("recommendations", name) for name in ("duplicates", "short_lists", "ties", "extra_users", "rank_gaps")),
        *(("recommendations", name) for name in ("score_rank_disagree", "missing_users")),
    ]


def test_a_share_above_its_threshold_is_a_warning_or_an_error() -> None:
    rows = [("m", f"u{number}", "a", 1.0 if number else None) for number in range(4)]
    log = source("recommendations", "model_id user_id item_id score", *rows)

    def verdict(**threshold: float) -> tuple[Any, ...]:
        row = next(
            row for row in checked(log, checks=Checks(invalid_scores=Threshold(**threshold))) if row["count"] == 1
        )
        return tuple(row[name] for name in ("severity", "share", "threshold", "verdict"))

    assert verdict(warn=0.1, error=0.2) == ("error", 1 / 4, 0.2, "error")
    assert verdict(warn=0.1, error=0.3) == ("error", 1 / 4, 0.1, "warn")
    assert verdict(warn=0.25) == ("warn", 1 / 4, 0.25, "ok")
    assert verdict(error=0.25) == ("error", 1 / 4, 0.25, "ok")
    assert verdict() == ("info", 1 / 4, None, "ok")


def test_keys_are_shown_with_the_names_that_a_log_without_them_has() -> None:
    rows = [("ann", "a", 0.5), (None, "a", 0.5), ("ann", None, math.nan), ("ann", "b", math.nan), ("bob", "c", None)]
    log = source("recommendations", "user_id item_id score", *rows)
    of_log = found(checked(log), "recommendations")
    assert of_log["null_keys"] == (2, 2 / 5, "warn", ["model NULL  a", "model ann  NULL"])
    assert of_log["invalid_scores"] == (2, 2 / 5, "warn", ["model ann  b", "model bob  c"])
    assert of_log["rows"] == (5, None, "ok", [])
    numbered = source(
        "recommendations", "user_id item_id score", (9, 1, None), (10, 2, None), (8, 3, 1.0), ids="bigint"
    )
    held_out = source("held_out", "user_id item_id", (8, 3), ids="bigint")
    assert found(checked(numbered, held_out), "recommendations")["invalid_scores"][3] == ["model 10  2", "model 9  1"]


def test_judgements_that_are_repeated_worthless_or_of_unlisted_items_are_counted() -> None:
    rows = [("ann", "a", 0.25), ("ann", "a", 0.5), ("ann", "a", 0.25), ("bob", "x", 0.5), ("cat", "a", 1.0)]
    held_out = source("held_out", "user_id item_id gain", *rows, ("dan", "y", None), ("cat", "z", 2.0))
    of_held_out = found(checked(held_out=held_out), "held_out")
    assert of_held_out["duplicates"] == (2, 2 / 6, "warn", ["ann"])
    assert of_held_out["zero_relevant"] == (2, 2 / 3, "warn", ["ann", "bob"])
    assert of_held_out["unmatched_items"] == (2, 2 / 6, "ok", ["x", "z"])
    summed = found(checked(held_out=held_out, asked=request(held_out_duplicates="sum")), "held_out")
    assert summed["zero_relevant"][:2] == (1, 1 / 3), "ann's gains add up to 1"
    assert found(checked(held_out=held_out, asked=request(held_out_duplicates="error")), "held_out") == of_held_out


def test_the_newest_of_several_judgements_counts_on_request() -> None:
    old, new = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    rows = [("ann", "a", 2.0, old), ("ann", "a", 0.5, new), ("bob", "a", 3.0, None), ("bob", "a", 1.0, old)]
    held_out = source("held_out", "user_id item_id gain interacted_at", *rows)
    asked = request(held_out_duplicates="last")
    assert found(checked(held_out=held_out, asked=asked), "held_out")["zero_relevant"] == (1, 1 / 2, "ok", ["ann"])


@pytest.mark.parametrize(
    ("column", "worst", "measure"), [("value", None, "R(gains='value')@1"), ("weight", 0.0, "R(weighted=True)@1")]
)
def test_values_and_weights_are_checked_where_a_measure_reads_them(
    column: str, worst: float | None, measure: str
) -> None:
    held_out = source("held_out", f"user_id item_id {column}", ("ann", "a", worst), ("ann", "b", 1.0))
    assert f"invalid_{column}s" not in found(checked(held_out=held_out), "held_out")
    read = found(checked(held_out=held_out, asked=request(measure)), "held_out")
    assert read[f"invalid_{column}s"] == (1, 1 / 2, "warn", ["ann a"])


def test_interactions_after_the_cut_are_counted() -> None:
    day = datetime(2026, 1, 1, tzinfo=UTC)
    train = source("train", "user_id item_id interacted_at", ("u", "a", day), ("u", "b", None), (None, "c", day))
    of_train = found(checked(train=train, asked=request(evaluation_date=date(2026, 1, 1))), "train")
    assert of_train["train_after_cut"] == (1, 1 / 3, "warn", ["u a"])
    assert of_train["null_keys"] == (1, 1 / 3, "warn", ["NULL c"])


def test_an_item_twice_in_the_catalogue_is_an_error_whatever_the_threshold() -> None:
    items = source("items", "item_id", ("a",), ("b",), ("a",), (None,), ("a",))
    of_items = found(checked(items=items, checks=Checks(duplicates=Threshold(warn=1))), "items")
    assert of_items["duplicates"] == (2, 2 / 4, "error", ["a"])


def test_vectors_of_another_length_are_counted_where_a_measure_reads_them() -> None:
    vectors = [("a", [1.0]), ("b", [1.0, 2.0]), ("c", [3.0, 4.0]), ("d", None), ("e", [math.nan]), ("f", [])]
    items = source("items", "item_id vector", *vectors, ("g", [0.5, 1.0]), (None, [1.0]))
    assert "vector_lengths" not in found(checked(items=items), "items")
    of_items = found(checked(items=items, asked=request("ILD@2")), "items")
    assert of_items["vector_lengths"] == (2, 2 / 5, "error", ["b: 2 numbers", "f: 0 numbers", "a: 1 number"])
    alike = source("items", "item_id vector", ("b", [1.0, 2.0]), ("c", [3.0, 4.0]), ("d", None))
    assert found(checked(items=alike, asked=request("ILD@2")), "items")["vector_lengths"] == (0, 0.0, "ok", [])


def test_items_that_the_catalogue_does_not_have_are_counted() -> None:
    log = source("recommendations", "user_id item_id score", *(("u", item, 1.0) for item in "aabbbc"))
    items = source("items", "item_id", ("a",), (None,))
    of_log = found(checked(log, items=items), "recommendations")
    assert of_log["unknown_items"] == (2, 2 / 3, "warn", ["b", "c"])
    assert "unknown_rows" not in of_log
    train = source("train", "user_id item_id", ("u", "a"), ("v", "b"))
    assert "unknown_items" not in found(checked(log, train=train), "recommendations")
    dropped = found(checked(log, train=train, asked=request(unknown_items="drop")), "recommendations")
    assert dropped["unknown_items"] == (1, 1 / 3, "warn", ["c"])
    assert dropped["unknown_rows"] == (1, 1 / 6, "ok", ["c"])


@pytest.mark.parametrize("ids", ["string", "bigint"])
def test_rows_the_user_has_in_the_training_data_are_counted_when_dropped(ids: str) -> None:
    name = str if ids == "string" else int
    pairs = [(7, 1), (7, 1), (7, 3), (8, 2), (8, 1), (9, 4)]
    log = source(
        "recommendations",
        "model_id user_id item_id score",
        *(("m", name(user), name(item), 1.0) for user, item in pairs),
        ids=ids,
    )
    held_out = source("held_out", "user_id item_id", (name(7), name(1)), ids=ids)
    owned = [(name(7), name(1)), (name(8), name(2)), (None, name(4)), (name(9), None), (name(6), name(4))]
    train = source("train", "user_id item_id", *owned, ids=ids)
    lists = scored({C.USER_ID: "7", C.SEEN: {"n_seen": 1, "n_items": 2}})
    dropped = found(
        checked(log, held_out, train=train, lists=lists, asked=request(seen_in_train="drop")), "recommendations"
    )
    assert dropped["seen_in_train"] == (3, 3 / 6, "ok", ["m 7  1", "m 8  2"])
    kept = found(checked(log, held_out, train=train, lists=lists), "recommendations")
    assert kept["seen_in_train"] == (1, 1 / 2, "ok", ["m 7"]), "of the lists alone"


def test_segment_values_that_read_alike_are_counted() -> None:
    values = ["DE", "de", " De ", "\u2003dE", "FR", None, "\x1fFR", "Σας", "ΣΑΣ"]
    rows = [(f"u{place}", value, "x") for place, value in enumerate(values)]
    segments = source("segments", "user_id country tier", *rows, (None, "fr", "X"))
    asked = request(slices=[("country",), ("country", "tier")])
    (alike,) = found(checked(segments=segments, asked=asked), "segments").values()
    assert alike == (6, 6 / 9, "warn", ["country: ' De ', 'DE', 'de'", "country: 'ΣΑΣ', 'Σας'"])
    assert found(checked(segments=segments), "segments") == {}, "no slice names them"


# ---- lists ----------------------------------------------------------------------------------------------------------


def test_lists_are_looked_at_at_the_largest_cutoff() -> None:
    rows: list[tuple[str, int, int, dict[str, Any]]] = [
        ("ann", 10, 3, {}),
        ("bob", 9, 0, {C.HAS_TIES: True}),
        ("cat", 0, 0, {C.HAS_TIES: None}),
    ]
    rows += [("dan", 12, 0, {C.HAS_TIES: True, C.N_JUDGED: 0})]
    lists = scored(
        *(
            {C.USER_ID: user, C.K: k, C.N_RECOMMENDED: min(n, k), N_LISTED: n + more, C.N_DUPLICATES: more, **rest}
            for user, n, more, rest in rows
            for k in (5, 10)
        )
    )
    of_lists = found(checked(lists=lists, asked=request("P@5", "P@10", "RR")), "recommendations")
    assert {check: (*row[:2], row[3]) for check, row in of_lists.items() if check in LIST_CHECKS} == {
        "duplicates": (3, 3 / 34, ["m ann"]),
        "extra_users": (1, 1 / 3, ["m dan"]),
        "missing_users": (1, 1 / 3, ["m"]),
        "rank_gaps": (0, None, []),
        "score_rank_disagree": (0, None, []),
        "short_lists": (1, 1 / 3, ["m bob"]),
        "ties": (1, 1 / 2, ["m bob"]),
    }


LIST_CHECKS: Final = (
    *("duplicates", "extra_users", "missing_users", "rank_gaps", "score_rank_disagree", "short_lists", "ties"),
)


def test_without_a_cutoff_no_list_is_short() -> None:
    lists = scored({C.USER_ID: "ann", C.K: 0})
    of_lists = found(checked(lists=lists, asked=request("RR")), "recommendations")
    assert of_lists["short_lists"] == (0, 0.0, "ok", [])


def test_flags_of_ranks_are_counted_among_the_lists_that_have_them() -> None:
    flags = {"ann": (True, False), "bob": (False, False), "cat": (None, None), "dan": (True, True)}
    lists = scored(
        *({C.USER_ID: user, C.HAS_RANK_GAPS: gap, C.IS_OUT_OF_ORDER: out} for user, (gap, out) in flags.items())
    )
    of_lists = found(checked(lists=lists), "recommendations")
    assert of_lists["rank_gaps"] == (2, 2 / 3, "warn", ["m ann", "m dan"])
    assert of_lists["score_rank_disagree"] == (1, 1 / 3, "warn", ["m dan"])


def test_a_baseline_without_a_list_is_counted() -> None:
    lists = scored({C.USER_ID: "ann"}, {C.USER_ID: "ann", C.MODEL_ID: "none", C.N_RECOMMENDED: 0})
    for baseline, expected in (("m", (0, 0.0, "ok", [])), ("none", (1, 1.0, "warn", ["none"]))):
        asked = request(comparisons=Comparisons(baseline=baseline))
        assert found(checked(lists=lists, asked=asked), "recommendations")["absent_baseline"] == expected
    asked = request(comparisons=Comparisons(pairs="all"))
    assert "absent_baseline" not in found(checked(lists=lists, asked=asked), "recommendations")


def test_missing_users_are_those_of_the_model_that_misses_most() -> None:
    """Of two that miss as many it is the last by its name."""
    rows = [
        {C.USER_ID: user, C.MODEL_ID: model, C.N_RECOMMENDED: int(user == "a")} for user in "abc" for model in "xzy"
    ]
    full = [{C.USER_ID: user, C.MODEL_ID: "zz"} for user in "abc"]
    nobody = [{C.USER_ID: "d", C.MODEL_ID: "zzz", C.N_JUDGED: 0}]
    of_lists = found(checked(lists=scored(*rows, *full, *nobody)), "recommendations")
    assert of_lists["missing_users"] == (2, 2 / 3, "warn", ["z"])


def test_inputs_without_rows_have_facts_of_zero() -> None:
    columns = {"train": "user_id item_id interacted_at", "items": "item_id vector", "segments": "user_id country"}
    others: dict[str, Any] = {name: source(name, names) for name, names in columns.items()}
    asked = request(
        *("P@1", "ILD@1"),
        comparisons=Comparisons(baseline="m"),
        evaluation_date=date(2026, 1, 1),
        seen_in_train="drop",
        unknown_items="drop",
        slices=[("country",)],
    )
    log, held_out = source("recommendations", "user_id item_id score"), source("held_out", "user_id item_id")
    rows = checked(log, held_out, lists=scored(), asked=asked, **others)
    counts = {(row["input"], row["check"]): row["count"] for row in rows}
    assert {key for key, count in counts.items() if count} == {("recommendations", "absent_baseline")}
    assert {row["share"] for row in rows} == {None, 1.0}
    assert len(rows) == 33


def test_a_count_that_no_list_of_names_has_is_shown_all_the_same() -> None:
    """Whoever counts something more in the workers need not name it anywhere else."""
    tables = Tables(source("recommendations", "user_id item_id score"), source("held_out", "user_id item_id"))
    host = InProcess(Usable(tables, Request(measures=("P@1",)), 1))
    totals = host.input_totals()
    more = Tally("held_out", "train_after_cut", 2, 3, "a", "b")
    totals[ROWS] = pa.concat_tables([totals[ROWS], pa.Table.from_batches([tallies_to_rows([more])])])
    assert host.input_checks.facts(totals)[-1] == CheckCount("held_out", "train_after_cut", 2, 3, ["a", "b"])
