"""Impressions of the Open Bandit data, read out of a wheel, and estimates for a policy from them.

Yuta Saito, Shunsuke Aihara, Megumi Matsutani and Yusuke Narita. 2021. Open Bandit Dataset and Pipeline: Towards
Realistic and Reproducible Off-Policy Evaluation. NeurIPS, Track on Datasets and Benchmarks. See ``docs/demo.md``.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml

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
_PRIOR: Final = "obp/policy/conf/prior_bts.yaml"  # of Thompson sampling, when the site began to log
_DRAWS, _SEED = 100_000, 12345  # as in the published example, whose relative value is 1.198126
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
    mean_weight: float  # of the random impressions: 1, but for chance

    @property
    def relative_value(self) -> float:
        """Estimate by IPS as a multiple of the rate of the random policy."""
        random, by_ips = self.rows[:2]
        return by_ips.value / random.value


@dataclass(frozen=True)
class Impressions:
    """The logs of both policies, and what Thompson sampling knew of the items before."""

    logs: dict[str, pd.DataFrame]  # of each policy: ``item_id``, ``position``, ``gain`` and ``propensity``
    prior: tuple[list[float], list[float]]  # alpha and beta of the click rate of each item


def load(cache: Path) -> Impressions:
    """Read the impressions from the wheel in ``cache``, which is fetched first; DataUnavailableError without either."""
    return read_wheel(WHEEL.cached(cache))


def read_wheel(wheel: Path) -> Impressions:
    """Read the log of each policy, and the prior, from the zip."""
    logs = {}
    with zipfile.ZipFile(wheel) as archive:
        for policy in (RANDOM, THOMPSON):
            with archive.open(_MEMBER.format(policy)) as member:
                frame = pd.read_csv(member, usecols=list(_TYPES), dtype=_TYPES)
            logs[policy] = frame.rename(columns=_NAMES)
        prior = yaml.safe_load(archive.read(_PRIOR))["all"]
    return Impressions(logs, (prior["alpha"], prior["beta"]))


def estimate(impressions: Impressions) -> Estimates:
    """Estimate the clicks of Thompson sampling from the random log, and compare with its own log."""
    logs, random = impressions.logs, impressions.logs[RANDOM]
    own = {policy: measure_impressions(log, log[C.PROPENSITY], ["IPS"])["IPS"] for policy, log in logs.items()}
    measures = ["IPS", "SNIPS", "ImportanceWeight", "ImportanceWeight(power='2')"]
    found = measure_impressions(random, _estimate_chances(impressions), measures)
    rows = (
        ("random", "its own log", own[RANDOM]),
        ("Thompson sampling", "random log, IPS", found["IPS"]),
        ("Thompson sampling", "random log, SNIPS", found["SNIPS"]),
        ("Thompson sampling", "its own log", own[THOMPSON]),
    )
    shown = tuple(PolicyEstimate(policy, by, row[C.VALUE], row["ci_low"], row["ci_high"]) for policy, by, row in rows)
    weight, square = (found[name][C.VALUE] for name in measures[2:])
    return Estimates(shown, len(random), len(random) * weight**2 / square, weight)


def _estimate_chances(impressions: Impressions) -> pd.Series[float]:
    """Return how probably Thompson sampling shows each random impression's item, by draws from its prior."""
    random, (alpha, beta) = impressions.logs[RANDOM], impressions.prior
    drawn = np.random.RandomState(_SEED).beta(alpha, beta, size=(_DRAWS, len(alpha)))  # as published
    n_positions = int(random[_POSITION].max())
    shown = np.argsort(-drawn, axis=1)[:, :n_positions]
    counts = np.stack([np.bincount(items, minlength=len(alpha)) for items in shown.T], axis=1)
    return pd.Series(counts[random[C.ITEM_ID], random[_POSITION] - 1] / _DRAWS)


def measure_impressions(log: pd.DataFrame, score: pd.Series[float], measures: list[str]) -> dict[str, dict[str, Any]]:
    """Compute off-policy measures; each impression is a user of its own, and its item is the list."""
    shown = log[[C.ITEM_ID]].assign(**{C.USER_ID: range(len(log))})
    tables = (shown.assign(**{C.SCORE: score}), shown.assign(**{name: log[name] for name in (C.GAIN, C.PROPENSITY)}))
    lists, judged = (pa.Table.from_pandas(frame, preserve_index=False) for frame in tables)
    result = evaluate(lists, judged, measures=measures, policies={"population": "judged"})
    return {row[C.MEASURE]: row for row in result.metrics.to_pylist()}
