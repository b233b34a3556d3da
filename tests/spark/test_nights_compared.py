"""Two real nights, and seven before them: what changed, who may ship, and which mean left its band."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from pyspark.sql import functions as F
from scipy import stats

from rankeval_spark.results import Results
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.frames import by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from tests.support.cli import Finished
    from tests.support.nights import Workspace

THEN, NOW = date(2026, 1, 8), date(2026, 1, 9)
USERS = {THEN: range(80), NOW: range(10, 90)}
NUMBERS = ("input", "check", "count", "share", "verdict", "sample_keys")
MOVED = 15
"""A user who is in AT then and in DE now."""

Values: TypeAlias = "Mapping[int, float]"


def rank_of(model: str, day: date, user: int) -> int:
    """Rank of the one relevant item, 3 where it is not in the list: of ``als`` it falls for every other user."""
    usual = 1 + user % 3
    return min(3, usual + (day == NOW and model == "als" and user % 2))


def country_of(day: date, user: int) -> str:
    return "DE" if user >= 40 or (user, day) == (MOVED, NOW) else "AT"


def values(model: str, day: date, country: str | None = None) -> Values:
    """RR@2 of each user, of those in a country where one is named."""
    users = (user for user in USERS[day] if country in (None, country_of(day, user)))
    return {user: {1: 1.0, 2: 1 / 2, 3: 0.0}[rank_of(model, day, user)] for user in users}


def shift(now: Values, before: Values) -> tuple[float, float]:
    """Difference of the means and half of its interval, from the lists of values."""
    x, y = np.array(list(now.values())), np.array(list(before.values()))
    products = sum((now[user] - x.mean()) * (before[user] - y.mean()) for user in now if user in before)
    squares = x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y) - 2 * products / (len(x) * len(y))
    half = stats.t.ppf(0.975, min(len(x), len(y)) - 1) * np.sqrt(squares)
    return x.mean() - y.mean(), half


@pytest.fixture(scope="module")
def done(
    _shared_session: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Workspace, Finished, Finished]:
    """Run both nights; between them, copy the first one's means to the seven days before it."""
    made = nights.workspace(
        tmp_path_factory.mktemp("compared") / "workspace",
        measures=["RR"],
        cutoffs=[2],
        results__lists=False,
        min_slice_size=30,
        comparisons={"baseline": "pop"},
        gates=[
            {"measure": "RR@2", "margin": 0.05, "against": "previous"},
            {"measure": "RR@2", "slice": "country", "alpha": 0.05, "against": "previous", "models": ["als"]},
        ],
    )
    items = {1: "hit x", 2: "x hit", 3: "x y"}
    lists = {
        day: {model: {f"u{user}": items[rank_of(model, day, user)] for user in users} for model in ("als", "pop")}
        for day, users in USERS.items()
    }
    lists[THEN]["old"] = {f"u{user}": items[1] for user in range(5)}  # a model that gives no list any more
    made.write("recommendations", nights.recommendations(lists))
    made.write("held_out", nights.held_out({day: {f"u{one}": {"hit": 1} for one in USERS[day]} for day in USERS}))
    segments = [
        {"day": day.isoformat(), "user_id": f"u{user}", "country": country_of(day, user)}
        for day, users in USERS.items()
        for user in users
    ]
    made.write("segments", segments)
    first = rankeval("run", made.config, "--date", THEN)
    repeat_before(_shared_session, made.root)
    made.change(measures=["RR", "P"])
    return made, first, rankeval("run", made.config, "--date", NOW)


def repeat_before(spark: SparkSession, root: str) -> None:
    """Leave what seven more nights with the means of the first one would have left in ``metrics`` and ``runs``."""
    results, days = Results(spark, root), [THEN - timedelta(days=day) for day in range(1, 8)]
    ago = spark.createDataFrame([(day, index) for index, day in enumerate(days)], "evaluation_date date, n int")
    version = results.table_versions()["metrics"] + 1
    for table, frame in (("metrics", results.metrics()), ("runs", results.runs().where("status = 'PUBLISHED'"))):
        repeated = frame.drop("evaluation_date").crossJoin(F.broadcast(ago))
        if table == "runs":
            versions = F.map_concat(F.map_filter("table_versions", lambda key, _: key != "metrics"), pinned(version))
            recorded = F.col("recorded_at") + F.make_dt_interval(secs=F.lit(1))
            repeated = repeated.withColumns({"table_versions": versions, "recorded_at": recorded})
        repeated.select(*frame.columns).write.format("delta").mode("append").save(f"{root}/{table}")


def pinned(version: int) -> Any:  # noqa: ANN401 - Column has two classes, classic and Connect
    return F.create_map(F.lit("metrics"), F.lit(version).cast("bigint"))


def compared(workspace: Workspace, *options: object) -> dict[tuple[str, str, str], dict[str, Any]]:
    found = rankeval("compare", workspace.root, *options, "--format", "json")
    assert found.code == 0, found.err
    return {(row["model_id"], row["slice_value"], row["measure"]): row for row in json.loads(found.out)}


def test_the_previous_night_is_compared_by_all_users_of_both(done: tuple[Workspace, Finished, Finished]) -> None:
    workspace = done[0]
    found = compared(workspace, "--against", "previous", "--slice", "any", "--measures", "RR")
    rows = {key: row for key, row in found.items() if key[0] != "old"}  # of which there is nothing now
    assert set(rows) == {(model, value, "RR") for model in ("als", "pop") for value in ("", "AT", "DE")}
    for (model, value, _), row in rows.items():
        now, before = values(model, NOW, value or None), values(model, THEN, value or None)
        delta, half = shift(now, before)
        numbers = [row[name] for name in ("delta", "ci_low", "ci_high", "value", "earlier_value", "relative_delta")]
        means = [sum(each.values()) / len(each) for each in (now, before)]
        expected = [delta, delta - half, delta + half, *means, means[0] / means[1] - 1]
        np.testing.assert_allclose(numbers, expected, rtol=0, atol=1e-12)
        counts = [row[name] for name in ("n_users", "n_earlier_users", "n_common_users")]
        assert counts == [len(now), len(before), len(set(now) & set(before))]
        assert (row["test"], row["earlier_date"], row["is_small"]) == ("unpaired", str(THEN), value == "AT")
    assert len(values("als", NOW, "DE")) == 51  # one of them has moved, and is no common user of the slice
    assert rows["als", "", "RR"]["verdict"] == "worse"
    assert rows["pop", "", "RR"]["verdict"] == "undecided"
    # Users in AT now are 29, fewer than min_slice_size.
    assert (rows["als", "AT", "RR"]["verdict"], rows["als", "AT", "RR"]["reason"]) == (None, "few_users")

    told = rankeval("compare", workspace.root, "--against", THEN, "--k", 2)
    assert told.code == 0, told.err
    assert f"nightly, {NOW} against {THEN}, unpaired" in told.out
    assert "not distinguishable" in told.out
    assert "P" not in {line.split()[0] for line in told.out.splitlines()[3:] if line.strip()}
    assert f"note: not compared, not asked for on {THEN}: P@2" in told.err
    assert "different configs" in told.err


def test_models_are_compared_as_published_or_from_the_published_users(
    done: tuple[Workspace, Finished, Finished],
) -> None:
    published = compared(done[0], "--against", "pop", "--date", NOW, "--measures", "RR")
    computed = compared(done[0], "--against", "als", "--date", NOW, "--measures", "RR")
    (one,), (other,) = published.values(), computed.values()
    assert (one["model_id"], other["model_id"]) == ("als", "pop")
    assert (one["verdict"], other["verdict"]) == ("worse", "better")
    for name, opposite in (("delta", "delta"), ("ci_low", "ci_high"), ("effect_size", "effect_size")):
        assert one[name] == pytest.approx(-other[opposite], rel=0, abs=1e-12)
    assert one["p_value"] == pytest.approx(other["p_value"], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "code", "found"),
    [
        (("--against", "asl"), 2, "did you mean 'als'?"),
        (("--against", "2026-01-12"), 4, "the nearest is 2026-01-09"),
        (("--against", NOW), 2, "the night itself"),
        (("--against", "previous", "--date", "2026-01-01"), 4, "no published night before nightly, 2026-01-01"),
        (("--against", "previous", "--slice", "contry"), 2, "did you mean 'country'?"),
    ],
)
def test_what_is_not_published_is_answered_with_the_nearest(
    done: tuple[Workspace, Finished, Finished], options: tuple[str, ...], code: int, found: str
) -> None:
    refused = rankeval("compare", done[0].root, *options)
    assert refused.code == code
    refused.assert_readable()
    assert found in refused.message


def test_rules_against_the_previous_night_are_judged_in_the_run_and_again(
    done: tuple[Workspace, Finished, Finished], spark: SparkSession
) -> None:
    workspace, first, second = done
    assert (first.code, second.code) == (0, 6), first.err + second.err
    assert "has no earlier published night to be compared with yet" in " ".join(first.out.split())
    gates = Results(spark, workspace.root).gates()
    rows = gates.where(F.col("evaluation_date") == F.lit(NOW)).orderBy("gate", "model_id", "slice_value").collect()
    assert [(row["gate"], row["model_id"], row["slice_value"], row["verdict"]) for row in rows] == [
        (1, "als", "", "failed"),
        (1, "pop", "", "failed"),
        (2, "als", "AT", "too_few_users"),
        (2, "als", "DE", "failed"),
    ]
    delta, half = shift(values("als", NOW), values("als", THEN))
    assert rows[0]["observed"] == pytest.approx(delta - half, rel=0, abs=1e-12)
    assert f"worse than the night of {THEN}" in rows[0]["explanation"]

    again = rankeval("gate", workspace.root, "--date", NOW)
    assert again.code == 6, again.err
    assert [line.split()[2] for line in again.out.splitlines() if line[:6].strip() in ("1", "2")] == [
        *("failed", "failed"),
        *("too", "failed"),
    ]
    loose = workspace.change(gates=[{"measure": "RR@2", "margin": 0.5, "against": "previous"}])
    assert rankeval("gate", workspace.root, "--date", NOW, "--config", loose).code == 0


def test_a_mean_that_left_the_band_of_eight_equal_nights_is_flagged(
    done: tuple[Workspace, Finished, Finished], spark: SparkSession
) -> None:
    """Equal means have no spread of their own: the band is two standard errors on either side."""
    everything = Results(spark, done[0].root).checks(date=NOW)
    checks = everything.where("check = 'drift'")
    (row,) = checks.collect()
    assert (row["evaluation_date"], row["input"], row["verdict"]) == (NOW, "metrics", "warn")
    before = np.array(list(values("als", THEN).values()))
    error = before.std(ddof=1) / np.sqrt(len(before))
    assert np.mean(list(values("als", NOW).values())) < before.mean() - 2 * error
    assert (row["count"], row["share"]) == (1, 1 / 2)  # of two models; P has no past
    (text,) = row["sample_keys"]
    assert text.startswith("als RR@2: ")
    assert f"expected {before.mean() - 2 * error:.4g} to {before.mean() + 2 * error:.4g} by 8 nights" in text
    assert "metrics, drift: 1 (50.00%)" in " ".join(done[2].out.split())
    assert by(checks, "check", value="threshold") == {"drift": 0.0}

    of_nights = everything.where(F.col("check").isin("volume", "absent_models", "fewer_users"))
    numbers = {tuple(row[:2]): tuple(row[2:]) for row in of_nights.select(*NUMBERS).collect()}
    n_then, n_now = 2 * (80 + 80 + 5), 2 * (80 + 80)  # two items a list
    words = f"{n_now} rows, {n_then} by the median of 8 nights"
    assert numbers == {
        ("recommendations", "volume"): (n_then - n_now, (n_then - n_now) / n_then, "ok", [words]),
        ("held_out", "volume"): (0, 0.0, "ok", []),
        ("segments", "volume"): (0, 0.0, "ok", []),
        ("recommendations", "absent_models"): (1, 1 / 3, "warn", ["old"]),
        ("recommendations", "fewer_users"): (0, 0.0, "ok", []),
    }
    assert Results(spark, done[0].root).checks(date=THEN).where(F.col("check").isin("volume", "drift")).isEmpty()
