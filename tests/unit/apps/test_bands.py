"""Bands and item slices as arguments of ``evaluate``, without a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark.apps.notebook.arguments import validate_call
from rankeval_spark.errors import ConfigError

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request

ASKED: Final = {"measures": ["R@5"], "preset": None, "models": None, "slices": (), "policies": None, "inputs": None}


def requested(**asked: Any) -> Request:  # noqa: ANN401 - as `evaluate` takes them
    """Ask for something in a call without segments, training data and items."""
    return validate_call({**ASKED, "baseline": None, "comparisons": None, **asked}, {"segments": None})


def test_all_that_bands_and_item_slices_lack_is_reported_at_once() -> None:
    rules = {"age": {"edges": [18]}, "activity": {"of": "train"}, "tenure": {"quantiles": 4}}
    with pytest.raises(ConfigError) as raised:
        requested(slices=["age", "activity"], slicing={"bands": rules, "item_slices": ["drama"]})
    found = {(fault.where, fault.found) for fault in raised.value.faults}
    assert found == {
        ("evaluate(items=)", "nothing"),
        ("evaluate(slices=)", "'age'"),
        ("evaluate(slicing=).bands", "bands of 'tenure', which no slice names"),
        ("evaluate(slicing=).bands", "bands of 'age', but no segments"),
        ("evaluate(slicing=).bands", "bands of 'activity', but no train"),
        ("evaluate(slicing=).bands", "bands of 'tenure', but no segments"),
    }


def test_a_rule_that_makes_no_sense_is_named_by_its_place() -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(slicing=\)\.bands\.age.*both edges and quantiles"):
        requested(slices=["age"], slicing={"bands": {"age": {"edges": [18], "quantiles": 2}}})


def test_item_slices_of_no_measure_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"evaluate\(slicing=\)\.item_slices.*none of which reads judgements"):
        requested(measures=["ItemCoverage@5"], slicing={"item_slices": ["tail"]})
