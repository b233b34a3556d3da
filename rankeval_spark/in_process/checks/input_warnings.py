"""Warnings of inputs that can be evaluated, but are hardly what was meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.ranking.attribution import text_of_micros
from rankeval_spark.errors import warn_user

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.inputs.arrow.input_tables import Source, Tables

_MOST_NAMED: Final = 10
"""Models that a warning names."""


def warn_if_nothing_is_measured(metrics: pa.Table, tables: Tables, request: Request) -> None:
    """Warn of inputs that have nothing to do with each other: their means are 0, NaN or not there."""
    rows = metrics.filter((pc.field(C.SLICE) == C.ALL_USERS) & pc.field("n_missing").is_valid())
    n_users, n_missing = (pc.max(rows["n_users"]).as_py() or 0, pc.min(rows["n_missing"]).as_py() or 0)
    log, held_out = tables.recommendations.table, tables.held_out.table
    if not held_out.num_rows:
        found = "held_out has no rows"
    elif not len(metrics):
        found = "recommendations have no row of a model"
    elif len(rows) and not n_users and not _absent(tables, request.measures.other_models):
        found = f"no user has a relevant judgement ({_relevance(held_out[C.GAIN], request)})"
        if request.policies.is_attributed:
            found += (
                f", of lists of {_span(log[C.RECOMMENDED_AT])} and interactions of {_span(held_out[C.INTERACTED_AT])}"
            )
    elif len(rows) and n_missing >= n_users and not _absent_models(tables, request):
        found = "no user of held_out has a list; ids of both tables have to match"
    elif len(rows) and pc.max(pc.abs(rows["value"])).as_py() == 0 and not _share_items(tables):
        found = "no item of held_out is in a list; ids of both tables have to match"
    else:
        return
    warn_user(f"nothing is measured: {found}; see .checks")


def _relevance(gains: pa.ChunkedArray, request: Request) -> str:
    """Say which gain is relevant, for the measure that expects least, and which is the largest."""
    expected = (one.options.get("rel", 1.0) for one in request.measures.measures)
    least = min((each for each in expected if isinstance(each, int | float)), default=1.0)
    largest = pc.max(gains).as_py()
    return f"a gain of at least {least:g}" + ("" if largest is None else f"; the largest is {largest:g}")


def warn_of_absent_models(tables: Tables, request: Request) -> None:
    """Warn of models that are named and have no row in the log: those expected, and those that measures compare with.

    The users of the first are all missing, and the measures have no value.
    """
    absent = _absent_models(tables, request)
    others = request.measures.other_models
    lost = [*absent, *(name for name in _absent(tables, others) if name not in absent)]
    if lost:
        known = sorted(filter(None, _models_of(tables)))
        warn_user(
            f"recommendations have no row of {', '.join(map(repr, lost))}, which models= or a measure names; "
            f"the log has: {', '.join(known[:_MOST_NAMED])}"
        )


def _absent_models(tables: Tables, request: Request) -> list[str]:
    return _absent(tables, request.models or ())


def _absent(tables: Tables, names: Sequence[str]) -> list[str]:
    """Say which models a log with models has no row of."""
    log = tables.recommendations.table
    if not names or C.MODEL_ID not in log.column_names or not log.num_rows:
        return []
    known = _models_of(tables)
    return [name for name in names if name not in known]


def _models_of(tables: Tables) -> set[str | None]:
    return set(pc.unique(tables.recommendations.table[C.MODEL_ID]).to_pylist())


def warn_of_unread_times(tables: Tables) -> None:
    """Warn of rows whose time is NULL or could not be read: attribution leaves them out."""
    for source, name in ((tables.recommendations, C.RECOMMENDED_AT), (tables.held_out, C.INTERACTED_AT)):
        times = source.table[name]
        if times.null_count:
            warn_user(
                f"{source.name}: {times.null_count:,} of {len(times):,} rows have no time that can be read in {name!r} "
                "and are left out; expected timestamps, text such as '2026-01-31 05:00:00', or seconds since 1970 "
                "(pandas.to_datetime reads other forms and units)"
            )


def warn_of_merged_lists(log: Source) -> None:
    """Warn of a log without ids of lists in which users were shown lists at several times: they would be one list."""
    if C.LIST_ID in log.given:
        return
    keys = [name for name in (C.MODEL_ID, C.USER_ID) if name in log.table.column_names]
    users = log.table.group_by(keys).aggregate([(C.RECOMMENDED_AT, "min"), (C.RECOMMENDED_AT, "max")])
    is_several = pc.not_equal(users[f"{C.RECOMMENDED_AT}_min"], users[f"{C.RECOMMENDED_AT}_max"])
    n_several = pc.sum(is_several).as_py()
    if not n_several or log.table.group_by([*keys, C.RECOMMENDED_AT]).aggregate([]).num_rows * 2 > log.table.num_rows:
        return  # one time of each list, or times of single items
    warn_user(
        "recommendations have no column 'list_id', so all rows of a user are one list, but "
        f"{n_several:,} of {len(users):,} have several times in recommended_at; name the lists in list_id, "
        "such as by a copy of recommended_at"
    )


def _share_items(tables: Tables) -> bool:
    """Whether an item of the judgements is recommended to anyone."""
    judged = pc.unique(tables.held_out.table[C.ITEM_ID])
    recommended = tables.recommendations.table[C.ITEM_ID]
    return bool(pc.any(pc.is_in(recommended, value_set=judged.cast(recommended.type))).as_py())


def _span(times: pa.ChunkedArray) -> str:
    """Write the first and last of times."""
    ends = (pc.min_max(times)[name] for name in ("min", "max"))
    return " to ".join(dict.fromkeys(text_of_micros(end.value) if end.is_valid else "no time" for end in ends))
