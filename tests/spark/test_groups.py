"""Measures of one item group, of values beside the gains and of the catalogue, from the tables to the users' values."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from pyspark.sql import functions as F

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.measures import Background, Measure, Ranking
from tests.support import oracles
from tests.support.frames import by, table
from tests.support.plans import no_spark_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITEMS: Final = tuple("abcdefghijklmnop")
CATEGORIES: Final = {item: ["rock", "sci-fi"][: place % 3] for place, item in enumerate(ITEMS[:-1])}
"""No, one or two categories; the last item is not in the catalogue."""

ASKED: Final = (
    *(f"nDCG(group='{group}')@3" for group in ("head", "middle", "tail", "rock", "sci-fi")),
    *("P(group='tail')@3", "R(agg='micro',group='tail')@3", "AP(rel=2,group='head')", "Bpref(group='rock')"),
    *("Judged(group='middle')@3", "RMSE(group='tail')", "nDCG(gains='value',group='tail')@5"),
    *("R(gains='value')@3", "R(rel=2,agg='micro',gains='value')@5", "DCG(gains='value')@3", "nCG(gains='value')@3"),
    *("nDCG(unjudged='mean')@3", "nDCG(group='rock',unjudged='median')@3", "ClassAccuracy@3", "MCC@3", "P@3"),
)

Held = dict[str, dict[str, tuple[float, float | None]]]


class Case:
    """Random tables, as plain Python and as frames."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        users = [f"u{number:02}" for number in range(40)]
        self.scores = {
            user: {item: float(draw.randint(0, 5)) for item in draw.sample(ITEMS, draw.randint(0, 9))} for user in users
        }
        self.held: Held = {
            user: {
                item: (draw.choice([0.0, 0.5, 1.0, 2.0]), draw.choice([None, math.nan, -3.0, 0.5, 12.0]))
                for item in draw.sample(ITEMS, draw.randint(1, 6))
            }
            for user in users
        }
        # Few of the items are popular, one is in no interaction, and the counts tie.
        self.train = [
            (draw.choice(users), item) for place, item in enumerate(ITEMS[1:]) for _ in range(40 // (place + 2))
        ]

    def groups(self) -> dict[str, str]:
        """Name the groups of each item, worked out item by item."""
        counts = Counter(item for _, item in self.train)
        total, before = sum(counts.values()), 0
        found = {item: ["tail", *CATEGORIES.get(item, [])] for item in ITEMS}
        for item in sorted(counts, key=lambda item: (-counts[item], item)):
            found[item][0] = "head" if before * 5 < total else "middle" if before * 5 < total * 4 else "tail"
            before += counts[item]
        return {item: " ".join(names) for item, names in found.items()}

    def ranking(self, user: str, *, ties: str = "item_asc", judged_only: bool = False) -> Ranking:
        """Build the list of a user."""
        scores, held, groups = self.scores[user], self.held[user], self.groups()
        gain = {item: held[item][0] if item in held else 0.0 for item in ITEMS}
        value = {item: _usable(held[item][1]) if item in held else 0.0 for item in ITEMS}
        by_gain = ties == "optimistic"
        listed = [item for item in scores if item in held or not judged_only]
        order = sorted(listed, key=lambda item: (-scores[item], -gain[item] if by_gain else 0, item))
        missed = [item for item in held if item not in scores]
        return Ranking(
            [gain[item] if item in held else None for item in order],
            [gain[item] for item in missed],
            [scores[item] for item in order],
            background=Background(catalogue=len(CATEGORIES)),
            values=[value[item] for item in order],
            missed_values=[value[item] for item in missed],
            groups=[groups[item] for item in order],
            missed_groups=[groups[item] for item in missed],
        )

    def frames(self, spark: SparkSession) -> dict[str, Any]:
        """Make the inputs; every judgement stands twice, once worth less."""
        log = [(user, item, score) for user, one in self.scores.items() for item, score in one.items()]
        held = [(user, item, *both) for user, one in self.held.items() for item, both in one.items()]
        columns = "user_id string, item_id string, gain double, value double"
        judged = spark.createDataFrame(held, columns)
        worse = judged.withColumn("gain", F.col("gain") - 1).withColumn("value", F.lit(None).cast("double"))
        return {
            "recommendations": table(spark, "user_id item_id score", *log).repartition(3),
            "held_out": judged.union(worse),
            "train": table(spark, "user_id item_id", *self.train),
            "items": spark.createDataFrame(list(CATEGORIES.items()), "item_id string, categories array<string>"),
        }


def _usable(value: float | None) -> float:
    return 0.0 if value is None or math.isnan(value) else value


def expected_value(measure: Measure, one: Ranking) -> float:
    """Value of a user where those without a relevant judgement score 0, unless the group has no judgement of theirs."""
    value = oracles.expected(measure, one)
    if not math.isnan(value):
        return value
    of_group = one if measure.group is None else oracles.within(one, measure.group)
    has_judgements = of_group.missed or any(gain is not None for gain in of_group.gains)
    filled = measure.entry.definition.without_relevant(**measure.kernel_options)
    return filled if has_judgements else math.nan


OF_ALL_ITEMS: Final = ("nDCG@3", "R(agg='micro')@3", "AP(rel=2)", "Bpref", "RMSE(group='tail')", "ClassAccuracy@3")


@pytest.mark.parametrize(
    ("asked", "policies"),
    [
        pytest.param(ASKED, {}, id="defaults"),
        pytest.param(ASKED[:8], {"judged_only": True}, id="gains known before the ranks"),
        pytest.param(OF_ALL_ITEMS, {"ties": "optimistic"}, id="ties by gain"),
    ],
)
def test_users_values_are_those_of_the_naive_references(
    spark: SparkSession, asked: tuple[str, ...], policies: dict[str, Any]
) -> None:
    case = Case(seed=11)
    result = evaluate(**case.frames(spark), measures=asked, population="judged", **policies)
    found = by(result.user_values, "measure", "user_id", value="value")
    for text in asked:
        measure = Measure.parse(text)
        expected = {user: expected_value(measure, case.ranking(user, **policies)) for user in case.held}
        values = [math.nan if found[measure.label, user] is None else found[measure.label, user] for user in expected]
        np.testing.assert_allclose(values, list(expected.values()), rtol=0, atol=1e-12, err_msg=text)
    without_head = {found["nDCG(group='head')", user] for user in case.held} if asked != OF_ALL_ITEMS else {None}
    assert None in without_head, "a user without a judgement of the head"


def test_values_and_gains_that_do_not_count_are_checked_where_a_measure_reads_them(spark: SparkSession) -> None:
    frames = Case(seed=11).frames(spark)
    columns = ("check", "count", "share", "verdict")
    held = frames["held_out"].collect()
    n_unusable = sum(row["value"] is None or math.isnan(row["value"]) for row in held)
    n_low = sum(0 < row["gain"] < 1 for row in held)

    def of(*measures: str) -> dict[str, Any]:
        checks = evaluate(frames["recommendations"], frames["held_out"], measures=measures).checks
        rows = checks.where("input = 'held_out'").select(*columns).collect()
        return {row["check"]: (row["count"], row["share"], row["verdict"]) for row in rows}

    checked = of("R(gains='value')@3")
    assert checked["null_values"] == (n_unusable, n_unusable / len(held), "error")
    assert checked["low_gains"] == (n_low, n_low / len(held), "warn")


def test_what_a_measure_lacks_is_told_before_any_job(spark: SparkSession) -> None:
    frames = Case(seed=11).frames(spark)
    log, held_out = frames["recommendations"], frames["held_out"].drop("value")
    with no_spark_jobs(spark):
        with pytest.raises(
            InputError, match=r"held_out: found no column 'value'; expected one, for R\(gains='value'\)"
        ):
            evaluate(log, held_out, measures=["R(gains='value')@3", "P@3"])
        with pytest.raises(ConfigError, match=r"train=.*P\(group='tail'\)(.|\n)*items=.*P\(group='rock'\)"):
            evaluate(log, held_out, measures=["P(group='tail')@3", "P(group='rock')@3"])
        with pytest.raises(
            InputError, match=r"items: found no column 'categories'; expected one, for P\(group='rock'\)"
        ):
            evaluate(log, held_out, measures=["P(group='rock')@3"], items=frames["items"].drop("categories"))
        with pytest.raises(InputError, match="ClassAccuracy@3 without a catalogue"):
            evaluate(log, held_out, measures=["ClassAccuracy@3"])
        with pytest.raises(InputError) as raised:
            evaluate(log.drop("rank"), held_out, measures=["ClassAccuracy@3", "R(gains='value')@3"], ties="rank")
    assert [fault.found for fault in raised.value.faults] == [
        "no column 'rank'",
        "ClassAccuracy@3 without a catalogue",
        "no column 'value'",
    ], "a policy, a measure without its input and one without its column, all at once"
