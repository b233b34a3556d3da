"""What is stored of a config: all of it, always the same, and no secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

import pytest

from rankeval_spark.config import EvaluationConfig, Policies, evaluation_config, load_config, validate_model
from rankeval_spark.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

KEY = "spark.settings.spark.hadoop.fs.s3a.secret.key"


def settings(path: Path, *overrides: str) -> dict[str, str]:
    """Return the settings as they are stored."""
    stored: dict[str, str] = json.loads(load_config(path, overrides).public_json())["spark"]["settings"]
    return stored


def test_secrets_are_left_out(config_file: Path) -> None:
    provider = "spark.settings.spark.hadoop.fs.s3a.aws.credentials.provider=org.example.Provider"
    plain = [f"spark.settings.spark.{one}" for one in ("sql.shuffle.partitions=8", "driver.memory=2g", "x.y=hunter2")]
    odd = "spark.settings.spark.sql.files.maxPartitionBytes='hunter2 and more'"
    stored = settings(config_file, f"{KEY}=${{env:S3_SECRET}}", provider, *plain, odd)
    assert stored == {
        "spark.driver.memory": "2g",
        "spark.x.y": "(hidden)",  # on no list of harmless ones
        "spark.sql.files.maxPartitionBytes": "(hidden)",  # no such value
        "spark.hadoop.fs.s3a.secret.key": "${env:S3_SECRET}",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "(hidden)",  # rather once too often
        "spark.sql.shuffle.partitions": "8",
    }


def test_secret_of_a_wrong_type_is_not_shown(config_file: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(config_file, ["models=[7]", "spark={settings: {spark.x.password: [hunter2]}}"])
    (fault,) = [fault for fault in raised.value.faults if "password" in fault.where and "a list" in fault.found]
    assert "hunter2" not in fault.found


def test_secrets_come_from_the_environment(config_file: Path) -> None:
    reference = "${env:S3_SECRET}"
    config = load_config(config_file, [f"{KEY}={reference}"])
    name = KEY.removeprefix("spark.settings.")
    assert config.spark.resolved_settings({"S3_SECRET": "hunter2"}) == {name: "hunter2"}
    assert settings(config_file, f"{KEY}={reference}") == {name: reference}
    with pytest.raises(ConfigError, match="has no S3_SECRET"):
        config.spark.resolved_settings({})


def test_environment_is_read_nowhere_else(config_file: Path) -> None:
    config = load_config(config_file, ["evaluation=HOME", "results.root=$HOME/x"])
    assert config.results.location.endswith("/$HOME/x")


def test_hash_follows_the_config_and_not_its_place_or_order(config_file: Path, tmp_path: Path) -> None:
    lines = config_file.read_text(encoding="utf-8").splitlines(keepends=True)
    other = tmp_path / "elsewhere" / "x.yaml"
    other.parent.mkdir()
    other.write_text("".join([*lines[5:], *lines[:5], "intervals: {confidence: 0.95}\n"]), encoding="utf-8")
    first = load_config(config_file)
    assert first.config_hash == load_config(other).config_hash
    assert first.config_hash != load_config(config_file, ["intervals.confidence=0.9"]).config_hash
    assert len(first.config_hash) == 64


class NewerPolicies(Policies):
    """Policies of a later version, with one more."""

    favourites: Literal["keep", "drop"] = "keep"


class NewerConfig(EvaluationConfig):
    """A config of a later version, with a key more in two places."""

    policies: NewerPolicies = NewerPolicies()
    is_thorough: bool = True


def test_keys_that_a_later_version_adds_change_no_hash(config_file: Path) -> None:
    config = load_config(config_file, ["policies.ties=item_desc", "comparisons={baseline: pop}"])
    values = json.loads(config.public_json())
    newer = validate_model(NewerConfig, values)
    assert newer.public_json() != config.public_json()
    assert newer.config_hash == config.config_hash
    for change in ({"is_thorough": False}, {"policies": {**values["policies"], "favourites": "drop"}}):
        assert validate_model(NewerConfig, {**values, **change}).config_hash != config.config_hash


def test_hash_follows_the_version_of_the_defaults(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(config_file)
    before = config.config_hash
    assert before == config.hash_with_defaults(evaluation_config.DEFAULTS_VERSION)
    monkeypatch.setattr(evaluation_config, "DEFAULTS_VERSION", evaluation_config.DEFAULTS_VERSION + 1)
    assert config.config_hash != before


def test_key_that_repeats_its_default_changes_no_hash(config_file: Path) -> None:
    config = load_config(config_file)
    repeated = validate_model(EvaluationConfig, json.loads(config.public_json()))
    assert repeated.config_hash == config.config_hash


def test_stored_config_can_be_loaded_again(config_file: Path) -> None:
    stored = config_file.with_name("stored.yaml")
    stored.write_text(load_config(config_file).public_json(), encoding="utf-8")
    assert load_config(stored).public_json() == load_config(config_file).public_json()
