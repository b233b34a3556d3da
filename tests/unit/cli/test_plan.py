"""``rankeval plan``: what a published night would find, and what a gain takes."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from rankeval_spark.statistics.power import detectable, nights_needed, users_needed
from tests.support import nights, two_nights
from tests.support.cli import json_of, rankeval
from tests.support.two_nights import NOW, THEN, values

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish both nights, with another measure and cutoff."""
    workspace = two_nights.workspace(tmp_path_factory.mktemp("plan") / "workspace", nights.PARQUET)
    workspace.change(measures=["RR", "Success", "ItemCoverage"], cutoffs=[2, 1], gates=[], slices=[])
    for day in (THEN, NOW):
        assert rankeval("run", workspace.config, "--date", day).code == 0
    return workspace


def planned(made: Workspace, *options: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json_of("plan", made.root, *options)
    return rows


def differences(day: date) -> dict[int, float]:
    return {user: value - values("pop", day)[user] for user, value in values("als", day).items()}


def test_a_gain_takes_the_users_and_nights_that_follow_by_hand(made: Workspace) -> None:
    (row,) = planned(made, "--gain", 0.03)
    now, then = differences(NOW), differences(THEN)
    x, y = np.array(list(now.values())), np.array(list(then.values()))
    assert (row["measure"], row["k"], row["n_users"], row["n_tests"]) == ("RR", 2, 80, 1)
    assert row["std_error"] == pytest.approx(x.std(ddof=1) / math.sqrt(80), rel=0, abs=1e-12)
    assert row["n_users_needed"] == users_needed(0.03, x.std(ddof=1), tail=0.025)
    # On the first night no user has a difference, so that two nights have no correlation.
    assert y.std() == 0
    assert (row["night_correlation"], row["n_nights_needed"]) == (None, None)


def test_the_correlation_of_two_nights_is_that_of_their_mean_differences(tmp_path: Path) -> None:
    """Half of the users are other users on the second night; some users have no list of a model, and count as 0."""
    draw = np.random.default_rng(2)
    base = {f"u{user}": draw.random() for user in range(60)}
    lists: dict[Any, Any] = {}
    for day, users in ((THEN, range(40)), (NOW, range(20, 60))):
        skill = {"pop": 0.4, "als": 0.55}
        lists[day] = {
            model: {
                f"u{user}": (
                    "hit x" if draw.random() < (rate + base[f"u{user}"]) / 2 else "x hit" if user % 3 else "x y"
                )
                for user in users
                if user % 17 or model == "pop"
            }
            for model, rate in skill.items()
        }
    made = two_nights.workspace(tmp_path / "workspace", nights.PARQUET)
    made.write("recommendations", nights.recommendations(lists), nights.PARQUET)
    gains = {
        day: {f"u{user}": {"hit": 1} for user in users} for day, users in ((THEN, range(40)), (NOW, range(20, 60)))
    }
    made.write("held_out", nights.held_out(gains), nights.PARQUET)
    made.change(gates=[], slices=[])
    for day in (THEN, NOW):
        assert rankeval("run", made.config, "--date", day).code == 0

    (row,) = planned(made, "--gain", 0.08)
    value = {"hit x": 1.0, "x hit": 0.5, "x y": 0.0, None: 0.0}
    x, y = (
        {user: value[lists[day]["als"].get(user)] - value[lists[day]["pop"][user]] for user in gains[day]}
        for day in (NOW, THEN)
    )
    means = [np.mean(list(each.values())) for each in (x, y)]
    common = sum((x[user] - means[0]) * (y[user] - means[1]) for user in x.keys() & y.keys()) / (len(x) * len(y))
    errors = [np.std(list(each.values()), ddof=1) / math.sqrt(len(each)) for each in (x, y)]
    assert row["night_correlation"] == pytest.approx(common / errors[0] / errors[1], rel=0, abs=1e-12)
    needed = users_needed(0.08, float(errors[0]) * math.sqrt(40), tail=0.025)
    assert row["n_users_needed"] == needed
    found = nights_needed(40, needed, row["night_correlation"])
    assert row["n_nights_needed"] == (None if math.isinf(found) else found)
    said = " ".join(rankeval("plan", made.root, "--gain", 0.08).out.split())
    assert f"takes {needed:,} users for a power of 80 %, two-sided at 0.05. The night has 40" in said
    assert f"{THEN} have a correlation of {row['night_correlation']:.2f}" in said
    assert "No number of such nights does" in " ".join(rankeval("plan", made.root, "--gain", 0.0001).out.split()) or (
        row["night_correlation"] <= 0
    )


def test_without_a_gain_each_measure_says_what_it_finds(made: Workspace) -> None:
    rows = planned(made)
    assert {(row["measure"], row["k"]) for row in rows} == {("RR", 2), ("RR", 1), ("Success", 2), ("Success", 1)}
    published = {
        (row["measure"], row["k"]): row
        for row in json.loads(rankeval("show", made.root, "--comparisons", "--json").out)
    }
    spread = {
        (row["measure"], row["k"]): row["std_dev"]
        for row in made.rows("metrics")
        if (row["model_id"], row["slice"], row["evaluation_date"]) == ("pop", "all", NOW)
    }
    few = [row for row in rows if row["reason"] == "few_differences"]  # an exact test, whose power is not known
    assert [row["detectable"] for row in few] == [None] * len(few)
    assert ("Success", 1) in {(row["measure"], row["k"]) for row in few}
    for row in rows[: len(rows) - len(few)]:
        key = row["measure"], row["k"]
        assert row["detectable"] == pytest.approx(
            float(detectable(published[key]["std_error"], row["n_users"] - 1, tail=0.025)), rel=0, abs=1e-12
        )
        assert row["detectable_std_devs"] == pytest.approx(row["detectable"] / spread[key], rel=0, abs=1e-12)
    assert published["RR", 2]["detectable"] == next(
        row["detectable"] for row in rows if row["measure"] == "RR" and row["k"] == 2
    )
    order = [row["detectable_std_devs"] for row in rows[: len(rows) - len(few)]]
    assert order == sorted(order)
    table = rankeval("plan", made.root).out
    assert "differences that a test finds in 80 % of samples; two-sided at 0.05" in " ".join(table.split())
    surer = planned(made, "--power", 0.95, "-m", "RR@2")
    assert surer[0]["detectable"] > published["RR", 2]["detectable"]


def test_a_share_of_the_baseline_is_a_gain_too(made: Workspace) -> None:
    (row,) = planned(made, "--gain", 0.1, "--relative", "-m", "Success@1", "--against", "als", "--model", "pop")
    assert row["gain"] == pytest.approx(0.1 * row["baseline_value"], rel=0, abs=1e-12)
    assert (row["baseline_model_id"], row["model_id"]) == ("als", "pop")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gain", 0), "--gain: found 0; expected a difference above 0"),
        (("--gain", "nan"), "--gain: found nan; expected a difference above 0"),
        (("--relative",), "--relative: found no --gain"),
        (("--power", 1), "--power: found 1; expected a probability"),
        (("--gain", 0.1, "-m", "RR@5"), "--measure: found RR@5"),
        (("--gain", 0.1, "--model", "al"), "--model: found al; .* did you mean 'als'"),
        (("--gain", 0.1, "--against", "popp"), "--against: found 'popp'; .* did you mean 'pop'"),
    ],
)
def test_what_cannot_be_planned_is_refused(made: Workspace, options: tuple[object, ...], message: str) -> None:
    done = rankeval("plan", made.root, *options)
    assert done.code == 2
    assert re.search(message, " ".join(done.err.split())), done.err


def test_a_measure_that_is_not_compared_has_no_plan(made: Workspace) -> None:
    done = rankeval("plan", made.root, "-m", "ItemCoverage@1", "--gain", 0.1)
    assert (done.code, done.out) == (0, "")
    assert "nothing to plan" in done.err


def test_two_nights_say_what_they_would_find_too(made: Workspace) -> None:
    done = rankeval("compare", made.root, "--against", "previous", "--measure", "RR@2", "--json")
    (row,) = (row for row in json.loads(done.out) if row["model_id"] == "als")
    _, half = two_nights.shift(values("als", NOW), values("als", THEN))
    least = detectable(half / stats.t.ppf(0.975, 79), 79, tail=0.025 / row["family_size"])
    assert (row["family"], row["family_size"]) == ("primary", 2)  # als and pop
    assert row["detectable"] == pytest.approx(float(least), rel=0, abs=1e-12)


def test_an_experiment_takes_users_of_the_model_at_the_same_split(tmp_path: Path) -> None:
    hit, lists = {0: "hit x", 1: "x hit", 2: "x y"}, dict[str, dict[str, str]]()
    for user in range(120):
        lists.setdefault(("pop", "als")[user % 2], {})[f"u{user}"] = hit[(user // 2) % 3]
    made = two_nights.workspace(tmp_path / "workspace", nights.PARQUET)
    made.write("recommendations", nights.recommendations({NOW: lists}), nights.PARQUET)
    made.write("held_out", nights.held_out({NOW: {f"u{user}": {"hit": 1} for user in range(120)}}), nights.PARQUET)
    made.change(gates=[], slices=[], comparisons={"baseline": "pop", "split": {"als": 0.5, "pop": 0.5}})
    assert rankeval("run", made.config, "--date", NOW).code == 0

    (row,) = planned(made, "--gain", 0.1)
    std_error = math.sqrt(2 * np.var([1.0, 0.5, 0.0] * 20, ddof=1) / 60)
    assert (row["test"], row["n_users"]) == ("unpaired", 60)
    assert row["std_error"] == pytest.approx(std_error, rel=0, abs=1e-12)
    assert row["n_users_needed"] == users_needed(0.1, std_error * math.sqrt(60), tail=0.025)
    assert "users of als at the same split for a power" in " ".join(
        rankeval("plan", made.root, "--gain", 0.1).out.split()
    )
