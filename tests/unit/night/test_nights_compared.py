"""Two real nights, and seven before them: what changed, who may ship, and which mean left its band."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rankeval_spark.results import Results
from tests.support import nights, two_nights
from tests.support.arrow_frames import by, tuples, where
from tests.support.cli import rankeval
from tests.support.two_nights import NOW, THEN, shift, values

if TYPE_CHECKING:
    from tests.support.cli import Finished
    from tests.support.nights import Workspace

NUMBERS = ("input", "check", "count", "share", "verdict", "sample_keys")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Finished, Finished]:
    """Run both nights; between them, the seven days before the first one, with the same rows."""
    made = two_nights.workspace(tmp_path_factory.mktemp("compared") / "workspace", nights.PARQUET)
    first = rankeval("run", made.config, "--date", THEN)
    for name, rows in two_nights.inputs().items():
        of_then = [row for row in rows if row["day"] == THEN.isoformat()]
        earlier = [{**row, "day": str(THEN - timedelta(days=ago))} for row in of_then for ago in range(1, 8)]
        made.write(name, [*rows, *earlier], nights.PARQUET)
    dates = ("--from", THEN - timedelta(days=7), "--to", THEN - timedelta(days=1))
    assert rankeval("backfill", made.config, *dates).code == 0
    made.change(measures=["RR", "P"])
    return made, first, rankeval("run", made.config, "--date", NOW)


def test_rules_against_the_previous_night_are_judged_in_the_run_and_again(
    done: tuple[Workspace, Finished, Finished],
) -> None:
    workspace, first, second = done
    assert (first.code, second.code) == (0, 6), first.err + second.err
    assert "has no earlier published night to be compared with yet" in " ".join(first.out.split())
    order = [(name, "ascending") for name in ("gate", "model_id", "slice_value")]
    rows = Results(workspace.root).gates(date=NOW).sort_by(order).to_pylist()
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


def test_a_mean_that_left_the_band_of_eight_equal_nights_is_flagged(done: tuple[Workspace, Finished, Finished]) -> None:
    """Equal means have no spread of their own: the band is two standard errors on either side."""
    everything = Results(done[0].root).checks(date=NOW)
    checks = where(everything, check="drift")
    (row,) = checks.to_pylist()
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

    of_nights = Results(done[0].root).checks(date=NOW, check=["volume", "absent_models", "fewer_users"])
    numbers = {row[:2]: row[2:] for row in tuples(of_nights, *NUMBERS)}
    n_then, n_now = 2 * (80 + 80 + 5), 2 * (80 + 80)  # two items a list
    words = f"{n_now} rows, {n_then} by the median of 8 nights"
    assert numbers == {
        ("recommendations", "volume"): (n_then - n_now, (n_then - n_now) / n_then, "ok", [words]),
        ("held_out", "volume"): (0, 0.0, "ok", []),
        ("segments", "volume"): (0, 0.0, "ok", []),
        ("recommendations", "absent_models"): (1, 1 / 3, "warn", ["old"]),
        ("recommendations", "fewer_users"): (0, 0.0, "ok", []),
    }
    with pytest.warns(UserWarning, match=r"check: found '(volume|drift)'; .* it has rows on "):
        assert Results(done[0].root).checks(date=THEN, check=["volume", "drift"]).num_rows == 0
