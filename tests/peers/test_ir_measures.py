"""The preset ``ir_measures`` against ir_measures, measure by measure under the same name."""

from __future__ import annotations

import pytest

from tests.support import peer_cases

ir_measures = pytest.importorskip("ir_measures", reason="needs make test-peers")

NAMES = [
    *("nDCG@5", "nDCG", "P@5", "P(rel=2)@5", "R@5", "AP@5", "AP", "AP(rel=2)", "RR", "Rprec", "Bpref"),
    *("Success@3", "IPrec@0.1", "SetP", "SetR", "SetF"),
]


def test_values_of_every_user_are_those_of_ir_measures() -> None:
    users = [user for user in peer_cases.random_users(4) if max(user.grades.values()) >= 2]
    qrels = {str(user.name): {str(item): grade for item, grade in user.grades.items()} for user in users}
    run = {str(user.name): {str(item): float(-rank) for rank, item in enumerate(user.items)} for user in users}
    theirs: dict[str, dict[str, float]] = {name: {} for name in NAMES}
    for name in NAMES:
        measure = ir_measures.parse_measure(name)
        for metric in ir_measures.pytrec_eval.iter_calc([measure], qrels, run):
            theirs[name][metric.query_id] = metric.value
    in_order = {name: [values[str(user.name)] for user in users] for name, values in theirs.items()}
    peer_cases.assert_equal("ir_measures", in_order, users)


def test_mean_is_over_all_judged_users() -> None:
    """As the population `judged`: without a list 0, without a relevant item 0, and extra users do not count."""
    qrels = {"both": {"a": 1}, "missing": {"a": 1}, "none": {"a": 0}}
    run = {user: {"a": 1.0} for user in ("both", "none", "extra")}
    measure = ir_measures.parse_measure("P@1")
    assert ir_measures.calc_aggregate([measure], qrels, run)[measure] == pytest.approx(1 / 3, rel=0, abs=1e-12)
