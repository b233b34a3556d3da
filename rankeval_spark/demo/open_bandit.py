"""Impressions of the Open Bandit data, read out of a wheel, and estimates for a policy from them.

Yuta Saito, Shunsuke Aihara, Megumi Matsutani and Yusuke Narita. 2021. Open Bandit Dataset and Pipeline: Towards
Realistic and Reproducible Off-Policy Evaluation. NeurIPS, Track on Datasets and Benchmarks. See ``docs/demo.md``.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from rankeval_spark import columns as C
from rankeval_spark.apps.notebook.evaluate import evaluate
from rankeval_spark.demo.movielens import Wheel

SOURCE_NAME: Final = "Open Bandit data"
WHEEL: Final = Wheel(
    SOURCE_NAME,
    package="obp",
    version="0.4.1",
    sha256="87dec9caf4283c25ab13036532e0a24566f1c7bdcad1653a8ded43b2f5ef8208",
)

RANDOM: Final = "random"
THOMPSON: Final = "bts"
_MEMBER: Final = "obp/dataset/obd/{}/all/all.csv"
_POSITION: Final = "position"
_TYPES: Final = {C.ITEM_ID: "int64", _POSITION: "int64", "click": "float64", "propensity_score": "float64"}
_NAMES: Final = {"click": C.GAIN, "propensity_score": C.PROPENSITY}


@dataclass(frozen=True)
class PolicyEstimate:
    """Clicks per impression of a policy, with their source and interval."""

    policy: str
    by: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimates:
    """Estimates for the second of two policies, from the logs of both."""

    # Rate of the random policy, that of Thompson sampling estimated from the random log, and that of its own log
    rows: tuple[PolicyEstimate, ...]
    n_impressions: int  # of the random log
    n_effective: float  # impressions of Thompson sampling itself that would be as informative


def load(cache: Path) -> dict[str, pd.DataFrame]:
    """Read the logs from the wheel in ``cache``, which is fetched first; DataUnavailableError without either."""
    return read_wheel(WHEEL.cached(cache))


def read_wheel(wheel: Path) -> dict[str, pd.DataFrame]:
    """Read the log of each policy from the zip: ``item_id``, ``position``, ``gain`` and ``propensity``."""
    logs = {}
    with zipfile.ZipFile(wheel) as archive:
        for policy in (RANDOM, THOMPSON):
            with archive.open(_MEMBER.format(policy)) as member:
                frame = pd.read_csv(member, usecols=list(_TYPES), dtype=_TYPES)
            logs[policy] = frame.rename(columns=_NAMES)
    return logs


def estimate(logs: dict[str, pd.DataFrame]) -> Estimates:
    """Estimate the clicks of Thompson sampling from the random log, and compare with its own log."""
    random, thompson = logs[RANDOM], logs[THOMPSON]
    own = {policy: _measured(log, log[C.PROPENSITY], ["IPS"])["IPS"] for policy, log in logs.items()}
    measures = ["IPS", "SNIPS", "ImportanceWeight", "ImportanceWeight(power='2')"]
    found = _measured(random, _shown_by(thompson, random), measures)
    rows = (
        ("random", "its own log", own[RANDOM]),
        ("Thompson sampling", "random log, IPS", found["IPS"]),
        ("Thompson sampling", "random log, SNIPS", found["SNIPS"]),
        ("Thompson sampling", "its own log", own[THOMPSON]),
    )
    shown = tuple(PolicyEstimate(policy, by, row[C.VALUE], row["ci_low"], row["ci_high"]) for policy, by, row in rows)
    weight, square = (found[name][C.VALUE] for name in measures[2:])
    return Estimates(shown, len(random), len(random) * weight**2 / square)


def _shown_by(policy: pd.DataFrame, impressions: pd.DataFrame) -> pd.Series[float]:
    """Probability with which a policy shows the item of each impression at its position: its mean in its own log."""
    shares = policy.groupby([_POSITION, C.ITEM_ID])[C.PROPENSITY].mean()
    shares = shares / shares.groupby(_POSITION).transform("sum")
    places = pd.MultiIndex.from_frame(impressions[[_POSITION, C.ITEM_ID]])
    return shares.reindex(places, fill_value=0.0).reset_index(drop=True)


def _measured(log: pd.DataFrame, score: pd.Series[float], measures: list[str]) -> dict[str, dict[str, Any]]:
    """Compute off-policy measures; each impression is a user of its own, and its item is the list."""
    shown = log[[C.ITEM_ID]].assign(**{C.USER_ID: range(len(log))})
    tables = (shown.assign(**{C.SCORE: score}), shown.assign(**{name: log[name] for name in (C.GAIN, C.PROPENSITY)}))
    lists, judged = (pa.Table.from_pandas(frame, preserve_index=False) for frame in tables)
    result = evaluate(lists, judged, measures=measures, population="judged")
    return {row[C.MEASURE]: row for row in result.metrics.to_pylist()}
