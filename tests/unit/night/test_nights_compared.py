"""Two real nights, and seven before them: what changed, who may ship, and which mean left its band."""

from __future__ import annotations

import csv
import io
import json
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rankeval_spark.errors import ConfigError, InputError
from rankeval_spark.results import Results
from tests.support import nights, two_nights
from tests.support.arrow_frames import by, tuples, where
from tests.support.cli import rankeval
from tests.support.two_nights import NOW, THEN, shift, values

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_sequential_rule_counts_each_night_once_however_often_it_ran(tmp_path: Path) -> None:
    """A night of another definition does not count, nor does one that ran twice count twice."""
    made = two_nights.workspace(tmp_path / "workspace", nights.PARQUET)
    rule = {"measure": "RR@2", "models": ["als"], "margin": 0.9, "sequential": True}
    made.change(gates=[rule])
    for name, rows in two_nights.inputs().items():
        of_then = [row for row in rows if row["day"] == THEN.isoformat()]
        made.write(name, [*rows, *({**row, "day": str(THEN - timedelta(days=2))} for row in of_then)], nights.PARQUET)
    made.change(policies={"missing": "exclude"})
    assert rankeval("run", made.config, "--date", THEN - timedelta(days=2)).code in (0, 6)
    made.change(policies={})
    said = "; night {} of 30, each with an error of 0.05 / 30; {}: passed."
    for day, number, before in (
        (THEN, 1, "no night before it with this rule, model and definition"),
        (THEN, 1, "no night before it with this rule, model and definition"),
        (NOW, 2, "0 of the 1 before it failed"),
        (NOW, 2, "0 of the 1 before it failed"),
    ):
        assert rankeval("run", made.config, "--date", day).code == 0
        (row,) = Results(made.root).gates(date=day).to_pylist()
        assert row["explanation"].endswith(said.format(number, before))
    again = rankeval("gate", made.root, "--date", NOW, "--json")
    assert [each["explanation"] for each in json.loads(again.out)] == [row["explanation"]]
    made.change(gates=[{**rule, "margin": 0.8}])  # another rule: it starts anew
    judged = rankeval("gate", made.root, "--date", NOW, "--config", made.config, "--json")
    (other,) = json.loads(judged.out)
    assert "night 1 of 30" in other["explanation"]


def test_causes_of_a_change_agree_on_terminal_page_and_in_programs(
    done: tuple[Workspace, Finished, Finished], tmp_path: Path
) -> None:
    root, options = done[0].root, ("--against", "previous", "--measures", "RR", "--slice", "any")
    as_json, as_csv = (rankeval("compare", root, *options, form) for form in ("--json", "--csv"))
    rows = {(row["model_id"], row["slice_value"]): row for row in json.loads(as_json.out)}
    now, before = values("als", NOW), values("als", THEN)
    kept = [user for user in now if user in before]
    stayed, stayed_then = (np.mean([night[user] for user in kept]) for night in (now, before))
    parts = {
        "delta_left": stayed_then - np.mean(list(before.values())),
        "delta_came": np.mean(list(now.values())) - stayed,
        "delta_same": stayed - stayed_then,
    }
    everyone = rows["als", ""]
    for name, part in parts.items():
        assert everyone[name] == pytest.approx(part, rel=0, abs=1e-12)
    by_slice = [rows["als", country][name] for country in ("AT", "DE") for name in ("delta_mix", "delta_within")]
    assert sum(by_slice) == pytest.approx(everyone["delta"], rel=0, abs=1e-12)
    counts = ("log_rows", "judgement_rows", "catalogue_rows")
    found = [everyone[f"{start}{end}"] for end in counts for start in ("n_earlier_", "n_")]
    assert found == [330, 320, 80, 80, None, None]

    csv_rows = list(csv.DictReader(io.StringIO(as_csv.out)))
    assert [{name: row[name] for name in parts} for row in csv_rows] == [
        {name: "" if row[name] is None else str(row[name]) for name in parts} for row in rows.values()
    ]
    frame = Results(root).what_changed("RR@2").to_pylist()
    assert {(row["model_id"], row["slice_value"]): row["delta_within"] for row in frame} == {
        key: row["delta_within"] for key, row in rows.items()
    }
    told = rankeval("compare", root, *options[:4])
    lines = told.out[told.out.index("What changed RR@2 since 2026-01-08") :].splitlines()
    assert len(lines) <= 12
    shown = {line.split("│")[0].strip(): line.split("│")[1].strip() for line in lines if "│" in line}
    assert shown == {
        "mean on 2026-01-08": "0.506",
        "users who left": "-0.006 (10 users)",
        "users who came": "-0.004 (10 users)",
        "the same users": "-0.164 (70 users)",
        "mean on 2026-01-09": "0.331",
        "mix of country": "0.000 (DE 0.000)",
        "within country": "-0.175 (DE -0.095)",
    }
    assert "Rows then and now: log 330 → 320, judgements 80 → 80." in told.out
    page = tmp_path / "report.html"
    assert rankeval("report", root, "--out", page).code == 0
    html = page.read_text(encoding="utf-8")
    for text in ("What changed RR@2 since 2026-01-08", "−0.164", "70 users", "log 330 → 320"):
        assert text in html


def test_why_a_change_cannot_be_split_is_said(done: tuple[Workspace, Finished, Finished], tmp_path: Path) -> None:
    copy = tmp_path / "results"
    shutil.copytree(done[0].root, copy)
    results, first = Results(str(copy)), THEN - timedelta(days=7)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"measure": "RR@2", "date": first}, "no night of nightly before"),
        ({"measure": "P@2"}, "2026-01-08, when P@2 was not computed"),
        ({"measure": "RR@2", "against": "als"}, "'als'; expected previous, or the date"),
        ({"measure": "RR@2", "against": NOW}, "or the date of another night"),
        ({"measure": "RR@7"}, "did you mean 'RR@2'"),
    ]
    for arguments, words in refused:
        with pytest.raises((ConfigError, InputError)) as found:
            results.what_changed(**arguments)
        assert words in str(found.value)
    page = tmp_path / "report.html"
    assert rankeval("report", copy, "--date", first, "--out", page).code == 0
    assert "there is none before it to compare with" in page.read_text(encoding="utf-8")
    cleaned = rankeval("maintain", copy, "--keep-days", "1", "--date", NOW)
    assert cleaned.code == 0, cleaned.err
    with pytest.raises(InputError, match="2026-01-07: found no user_metrics: deleted by rankeval maintain"):
        results.refresh().what_changed("RR@2", date=THEN)
    assert rankeval("report", copy, "--date", THEN, "--out", page).code == 0
    assert "No comparison with the night before. nightly, 2026-01-07" in page.read_text(encoding="utf-8")
