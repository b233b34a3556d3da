"""Segments made of numbers, as they stand in a config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.config import load_config, validate_model
from rankeval_spark.config.slicing import Band
from rankeval_spark.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_bands_are_named_by_their_bounds_by_labels_or_as_tiers() -> None:
    age = validate_model(Band, {"edges": [18, 25.5]})
    income = validate_model(Band, {"quantiles": 4, "labels": ["q1", "q2", "q3", "q4"]})
    activity = validate_model(Band, {"of": "train"})
    assert (age.n_bands, age.names) == (3, None)
    assert (income.n_bands, income.shares, income.names) == (4, (1 / 4, 2 / 4, 3 / 4), ("q1", "q2", "q3", "q4"))
    assert (activity.n_bands, activity.shares, activity.names) == (3, (1 / 3, 2 / 3), ("low", "middle", "high"))
    assert validate_model(Band, {"of": "train", "edges": [5, 50]}).names == ("low", "middle", "high")
    assert validate_model(Band, {"of": "train", "quantiles": 4}).names is None


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({}, "neither edges nor quantiles"),
        ({"edges": [1], "quantiles": 2}, "both edges and quantiles"),
        ({"edges": [2, 2]}, r"\[2.0, 2.0\]; expected numbers in ascending order"),
        ({"edges": []}, "edges"),
        ({"edges": ["18"]}, "edges"),
        ({"quantiles": 1}, "quantiles"),
        ({"of": "train", "edges": [1, 10]}, "the first band begins at 1"),
        ({"of": "held_out"}, "held_out"),
        ({"edges": [18], "labels": ["young"]}, "1 labels; expected 2"),
        ({"edges": [18], "labels": ["young", "young"]}, "each label once"),
        ({"of": "train", "edges": [2], "labels": ["none", "some"]}, "other than that of users without an interaction"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule: dict[str, Any], found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        validate_model(Band, rule)


def test_bands_are_made_of_columns_that_are_sliced_by_and_of_inputs_that_there_are(config_file: Path) -> None:
    config = load_config(config_file, ["slices=[age, activity, gender]", "slicing.bands.age.edges=[18, 40]"])
    assert config.slicing.bands["age"].n_bands == 3
    assert config.segment_names() == ("gender", "age", "activity")
    with pytest.raises(ConfigError) as raised:
        load_config(
            config_file, ["slices=[age, gender]", "slicing.bands.agee.edges=[18]", "slicing.bands.age.of=train"]
        )
    message = str(raised.value)
    assert "found bands of 'agee', which no slice names" in message
    assert "did you mean 'age'?" in message
    assert "found bands of 'age', but no train" in message


def test_activity_needs_no_segment_table_and_is_no_column_of_one(config_file: Path) -> None:
    changes = ["inputs.segments=", "slices=[activity]"]
    with pytest.raises(ConfigError, match=r"no inputs\.segments.*or slicing\.bands: \{activity: \{of: train\}\}"):
        load_config(config_file, changes)
    train = "inputs.train={format: parquet, path: train}"
    config = load_config(config_file, [*changes, train, "slicing.bands.activity.of=train"])
    assert config.segment_names() == ()


def test_item_slices_ask_for_every_measure_of_judgements_within_a_category_too(config_file: Path) -> None:
    items = ["inputs.items={format: parquet, path: items}", "inputs.train={format: parquet, path: train}"]
    config = load_config(config_file, [*items, "measures=[R@5, ItemCoverage@5]", "slicing.item_slices=[drama, tail]"])
    expected = ["R@5", "ItemCoverage@5", "R(group='drama')@5", "R(group='tail')@5"]
    assert [str(one) for one in config.measure_set.measures] == expected
    assert '"item_slices":["drama","tail"]' in config.public_json()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (["slicing.item_slices=[drama]"], r"R\(group='drama'\), but no inputs\.items"),
        (["slicing.item_slices=[drama, drama]"], "item slice 'drama' a second time"),
        ([r"""slicing.item_slices=['a "b" it''s']"""], "item_slices"),
        (["measures=[ItemCoverage@5]", "slicing.item_slices=[tail]"], r"item_slices.*none of which reads judgements"),
    ],
)
def test_item_slices_need_what_they_are_made_of(config_file: Path, changes: list[str], found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        load_config(config_file, ["measures=[R@5]", *changes])
