"""The checks of this process are those of Spark, row by row, on random logs with everything awkward in them."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.config import Checks
from rankeval_spark.hosts.on_spark import OnSpark
from rankeval_spark.inputs.arrow.reading import Source, Tables
from rankeval_spark.result_rows.check_rows import to_check_rows
from rankeval_spark.sums.check_counts import to_list_facts
from rankeval_spark.sums.grouping import sort_by_key
from rankeval_spark.sums.sums import LISTS
from tests.support.arrow_sources import source
from tests.support.frames import frame_of
from tests.support.input_checks import to_facts
from tests.support.sections import sections

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from rankeval_spark.evaluation import Evaluation


USERS: Final = range(12)
ITEMS: Final = range(20)
TYPES: Final = {
    **{"model_id": "string", "list_id": "string", "score": "double", "rank": "int", "gain": "double"},
    **{"value": "double", "interacted_at": "timestamp", "vector": "array<double>", "country": "string"},
    **{"tier": "string", "age": "double"},
}
DAYS: Final = tuple(datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3))
COUNTRIES: Final = ("DE", "de", " De", "FR", "\u2003FR", "Σ", "ς", None)
LISTED: Final = "model_id user_id list_id item_id score rank"


@dataclass(frozen=True)
class Log:
    """Random rows of the inputs, with ids of one type; each input is its columns and its rows."""

    seed: int
    ids: str
    inputs: dict[str, tuple[str, list[tuple[Any, ...]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Draw the rows."""
        draw = random.Random(self.seed)
        makers: dict[str, Callable[[random.Random], tuple[str, list[tuple[Any, ...]]]]] = {
            "recommendations": self._recommendations,
            "held_out": self._held_out,
            "train": self._train,
            "items": self._items,
            "segments": self._segments,
        }
        for name, make in makers.items():
            columns, rows = make(draw)
            draw.shuffle(rows)
            self.inputs[name] = columns, rows

    def with_columns(self, name: str, columns: str) -> Log:
        """Keep only some columns of an input."""
        names, rows = self.inputs[name]
        places = [names.split().index(one) for one in columns.split()]
        kept = columns, [tuple(row[place] for place in places) for row in rows]
        changed = Log(self.seed, self.ids)
        changed.inputs.update({**self.inputs, name: kept})
        return changed

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        """Make a frame of an input, in several partitions."""
        columns, rows = self.inputs[name]
        types = (f"{one} {TYPES.get(one, self.ids)}" for one in columns.split())
        return frame_of(spark, rows, ", ".join(types))

    def source(self, name: str) -> Source:
        """Make a table in memory of an input."""
        columns, rows = self.inputs[name]
        return source(name, columns, *rows, ids=self.ids)

    def _id(self, number: int) -> str | int:
        return number if self.ids == "bigint" else f"n{number}"

    def _user(self, draw: random.Random, users: range = USERS) -> str | int | None:
        return None if draw.random() < 0.05 else self._id(draw.choice(users))

    def _item(self, draw: random.Random, items: range = ITEMS) -> str | int | None:
        return None if draw.random() < 0.05 else self._id(draw.choice(items))

    def _recommendations(self, draw: random.Random) -> tuple[str, list[tuple[Any, ...]]]:
        scores = (None, math.nan, math.inf, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
        ranks: Counter[tuple[Any, ...]] = Counter()
        rows: list[tuple[Any, ...]] = []
        for _ in range(240):
            key = (
                draw.choice(("a", "b", "model", None)),
                self._user(draw, range(9)),
                "" if draw.random() < 0.9 else None,
            )
            ranks[key] += draw.choice((1, 1, 1, 1, 1, 2))  # no rank twice in a list, and a gap now and then
            rank = ranks[key] if draw.random() < 0.9 else draw.choice((None, -1))
            score = draw.choice(scores) if draw.random() < 0.4 else 5.0 - ranks[key]
            rows.append((*key, self._item(draw), score, rank))
        return LISTED, rows

    def _held_out(self, draw: random.Random) -> tuple[str, list[tuple[Any, ...]]]:
        gains = (None, math.nan, -math.inf, -1.0, 0.0, 0.3, 0.4, 0.6, 1.0, 2.0)
        rows = [
            (
                self._user(draw, range(3, 12)),
                self._item(draw, range(4, 24)),
                draw.choice(gains),
                draw.choice((None, math.nan, 0.5, 2.0)),
                draw.choice((None, *DAYS)),
            )
            for _ in range(90)
        ]
        return "user_id item_id gain value interacted_at", rows

    def _train(self, draw: random.Random) -> tuple[str, list[tuple[Any, ...]]]:
        rows = [(self._user(draw), self._item(draw, range(2, 15)), draw.choice((None, *DAYS))) for _ in range(60)]
        return "user_id item_id interacted_at", rows

    def _items(self, draw: random.Random) -> tuple[str, list[tuple[Any, ...]]]:
        vectors = (None, [math.nan, 1.0], [None, 1.0], [0.5, 1.0], [1.0, -1.0])
        return "item_id vector", [(self._id(item), draw.choice(vectors)) for item in ITEMS[3:]] + [(None, None)]

    def _segments(self, draw: random.Random) -> tuple[str, list[tuple[Any, ...]]]:
        rows = [
            (self._id(user), draw.choice(COUNTRIES), draw.choice(("x", "X")), draw.choice((None, math.nan, 20.0, 30.0)))
            for user in USERS[1:]
        ]
        return "user_id country tier age", [*rows, (None, "fr", "y", 1.0)]


CASES: Final[dict[str, dict[str, Any]]] = {
    "by rank": {"rank_gaps": "keep", "held_out_duplicates": "sum"},
    "named models": {"models": ["a", "typo"], "baseline": "typo", "held_out_duplicates": "last"},
    "seen and described": {"measures": ["NotInTrain@2", "ILD@3"], "unknown_items": "drop"},
}
"""What `test_hosts_agree` does not ask for; it compares the checks of all other cases."""

INPUTS: Final = ("train", "items", "segments")


def in_process(result: Evaluation, log: Log, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Check the same rows in this process, with what Spark makes of the lists."""
    sources = {name: log.source(name) for name in ("recommendations", "held_out", *names)}
    tables = Tables(**sources, are_checked=False)
    of_lists = to_list_facts(result._totals[LISTS], result.request)  # the lists are not made anew here
    facts = [*to_facts(tables, result.request), *of_lists]
    rows = to_check_rows(facts, Checks(), expected=result.request.policies.expected_findings)
    found: list[dict[str, Any]] = sort_by_key(rows, ("input", "check")).to_pylist()
    return found


def assert_same(spark: SparkSession, log: Log, names: tuple[str, ...], options: dict[str, Any]) -> None:
    """Check the log in both ways; days are those of UTC, whatever the zone of the session."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    frames = {name: log.frame(spark, name) for name in ("recommendations", "held_out", *names)}
    result = evaluate(
        **sections(**{**frames, "measures": ["P@2", "nDCG@4"], "evaluation_date": date(2026, 1, 2), **options})
    )
    assert isinstance(result.host, OnSpark)
    with result.cached() as kept:
        expected = [row.asDict() for row in kept.checks.collect()]
        assert in_process(kept, log, names) == expected


@pytest.mark.filterwarnings("ignore:segments= is given")
@pytest.mark.parametrize(("seed", "case"), list(enumerate(CASES)))
def test_checks_are_the_same_row_by_row(spark: SparkSession, seed: int, case: str) -> None:
    ids = "bigint" if seed % 2 else "string"
    assert_same(spark, Log(seed, ids), INPUTS, CASES[case])


def test_checks_of_a_log_of_ranks_are_the_same(spark: SparkSession) -> None:
    columns = "model_id user_id list_id item_id rank"
    log = Log(8, "bigint").with_columns("recommendations", columns).with_columns("train", "user_id item_id")
    assert_same(spark, log, ("train",), {"unknown_items": "drop"})
