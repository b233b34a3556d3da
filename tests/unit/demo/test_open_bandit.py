"""Impressions of two policies from a wheel, and the estimates made of them. The wheels here are made by the tests."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from rankeval_spark.cli.demo import print_impressions
from rankeval_spark.demo import open_bandit

HEADER = ",timestamp,item_id,position,click,propensity_score,user_feature_0"
RANDOM = ["0,t,7,1,1,0.25,x", "1,t,9,1,0,0.5,x", "2,t,7,2,1,0.25,x", "3,t,9,2,0,0.5,x"]
THOMPSON = ["0,t,7,1,1,0.75,x", "1,t,9,1,0,0.25,x", "2,t,7,2,1,1.0,x", "3,t,7,2,0,1.0,x"]
ALPHA = [1.0] * 7 + [1e9, 1.0, 1e9]
"""Of a prior that nearly always draws 1 for item 7, 1/2 for item 9 and 0 for the others."""
BETA = [1e9] * 7 + [1.0, 1e9, 1e9]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Make a wheel of the right name with four impressions of each policy, and a prior."""
    path = tmp_path / open_bandit.WHEEL.name
    with zipfile.ZipFile(path, "w") as archive:
        for policy, lines in (("random", RANDOM), ("bts", THOMPSON)):
            archive.writestr(f"obp/dataset/obd/{policy}/all/all.csv", "\n".join([HEADER, *lines]) + "\n")
        prior = {"all": {"alpha": ALPHA, "beta": BETA}, "men": {"alpha": [1.0], "beta": [1.0]}}
        archive.writestr("obp/policy/conf/prior_bts.yaml", yaml.safe_dump(prior))
        archive.writestr("obp/__init__.py", "raise SystemExit('the code of the wheel was run')")
    return path


def test_logs_are_read_with_canonical_columns(wheel: Path) -> None:
    found = open_bandit.read_wheel(wheel)
    logs = found.logs
    assert list(logs) == ["random", "bts"]
    assert all(list(log.columns) == ["item_id", "position", "gain", "propensity"] for log in logs.values())
    assert logs["random"].to_numpy().tolist()[2] == [7, 2, 1, 0.25]
    assert found.prior == (ALPHA, BETA)


def test_estimates_are_those_by_hand(wheel: Path) -> None:
    found = open_bandit.estimate(open_bandit.read_wheel(wheel))
    weights = [1 / 0.25, 0, 0, 1 / 0.5]  # by the prior, item 7 is always first and item 9 second
    total, of_clicks = sum(weights), weights[0] + weights[2]
    assert [(one.policy, one.by) for one in found.rows] == [
        ("random", "its own log"),
        ("Thompson sampling", "random log, IPS"),
        ("Thompson sampling", "random log, SNIPS"),
        ("Thompson sampling", "its own log"),
    ]
    assert [one.value for one in found.rows] == pytest.approx([2 / 4, of_clicks / 4, of_clicks / total, 2 / 4])
    assert all(one.low <= one.value <= one.high for one in found.rows)
    assert found.n_impressions == 4
    assert found.mean_weight == pytest.approx(total / 4)
    assert found.n_effective == pytest.approx(total**2 / sum(one**2 for one in weights))


def test_demo_shows_the_estimates(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(open_bandit, "WHEEL", replace(open_bandit.WHEEL, sha256=digest))
    print_impressions(wheel.parent)
    shown = capsys.readouterr().out
    assert "1000.00 [" in shown
    assert "4 random impressions say as much of Thompson sampling as 2 of its own" in shown
    assert "IPS is 2.000 times the click rate of the random policy, the mean weight 1.500" in " ".join(shown.split())


def test_without_network_and_cache_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    print_impressions(tmp_path)
    shown = capsys.readouterr().out
    assert shown.strip().startswith("no impressions: Open Bandit data is not in the cache and could not be fetched: ")
    assert len(shown.strip().splitlines()) == 1
