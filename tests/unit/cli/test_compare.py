"""``rankeval compare`` and ``gate`` on two published nights; without Spark."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rankeval_spark.config import load_config
from tests.support import nights, two_nights
from tests.support.cli import rankeval
from tests.support.published import Root
from tests.support.two_nights import NOW, THEN, shift, values

if TYPE_CHECKING:
    from datetime import date

    from tests.support.nights import Workspace
    from tests.support.published import Frames


def frames_of(day: date) -> Frames:
    return {name: nights.arrow_of(nights.of_date(rows, day)) for name, rows in two_nights.inputs().items()}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish a night, a date without rows, and another night with one measure more."""
    made = two_nights.workspace(tmp_path_factory.mktemp("compared") / "workspace")
    root = Root(made.root, load_config(made.config))
    root.publish_nothing(THEN - timedelta(days=7), run_id="nothing", reason="no rows")
    root.publish(THEN, frames_of(THEN), run_id="then")
    made.change(measures=["RR", "P"])
    root.publish(NOW, frames_of(NOW), run_id="now", config=load_config(made.config))
    return made


def compared(workspace: Workspace, *options: object) -> dict[tuple[str, str, str], dict[str, Any]]:
    found = rankeval("compare", workspace.root, *options, "--json")
    assert found.code == 0, found.err
    return {(row["model_id"], row["slice_value"], row["measure"]): row for row in json.loads(found.out)}


def test_the_previous_night_is_compared_by_all_users_of_both(done: Workspace) -> None:
    found = compared(done, "--against", "previous", "--slice", "any", "--measures", "RR")
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

    told = rankeval("compare", done.root, "--against", THEN, "--k", 2)
    assert told.code == 0, told.err
    assert f"nightly, {NOW} against {THEN}, unpaired" in told.out
    assert "undecided" in told.out
    assert "P" not in {line.split()[0] for line in told.out.splitlines()[3:] if line.strip()}
    assert f"note: not compared, not requested on {THEN}: P@2" in told.err
    assert "different configs" in told.err


def test_models_are_compared_as_published_or_from_the_published_users(
    done: Workspace,
) -> None:
    published = compared(done, "--against", "pop", "--date", NOW, "--measures", "RR")
    computed = compared(done, "--against", "als", "--date", NOW, "--measures", "RR")
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
        (("--against", "previous", "--model", "asl"), 2, "--model: found asl; expected one of: als"),
        (("--against", "previous", "--k", "7"), 2, "--k: found 7; expected one of: "),
        (("--against", "als", "--measure", "RR@7"), 2, "--measure: found RR@7; expected RR at one of: "),
    ],
)
def test_what_is_not_published_is_answered_with_the_nearest(
    done: Workspace, options: tuple[str, ...], code: int, found: str
) -> None:
    refused = rankeval("compare", done.root, *options)
    assert refused.code == code
    refused.assert_readable()
    assert found in refused.message


def test_a_night_is_judged_again_by_its_own_rules_or_by_others(done: Workspace) -> None:
    again = rankeval("gate", done.root, "--date", NOW)
    assert again.code == 6, again.err
    assert [line.split()[2] for line in again.out.splitlines() if line[:6].strip() in ("1", "2")] == [
        *("failed", "failed"),
        *("too", "failed"),
    ]
    assert again.out.splitlines()[-1].startswith("No, it may not ship. als and pop: 2 of 2 rules failed. 1 case")
    assert f"worse than the night of {THEN}" in " ".join(again.out.split())
    first = rankeval("gate", done.root, "--date", THEN)
    assert first.code == 0, first.err
    assert "has no earlier published night to be compared with yet" in " ".join(first.out.split())
    assert first.out.splitlines()[-1] == (
        "Not decided. None of 2 rules could be judged. "
        "The exit code is 0, as without rules: look at the verdicts before a model ships."
    )
    as_json = rankeval("gate", done.root, "--date", THEN, "--json")
    assert as_json.code == 0
    assert as_json.err.startswith(f"note: nightly, {THEN}: Not decided. None of 2 rules could be judged.")
    loose = done.change(gates=[{"measure": "RR@2", "margin": 0.5, "against": "previous"}])
    assert rankeval("gate", done.root, "--date", NOW, "--config", loose).code == 0
