"""Roots and files of a root or an input that are not what they should be: a fault, and no trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rankeval_spark.allowed_folders import FILE_SYSTEMS, RESULT_SCHEMES
from rankeval_spark.config import validate_model
from rankeval_spark.config.evaluation_config import ResultsConfig
from rankeval_spark.errors import ConfigError, without_secrets
from rankeval_spark.inputs.spark.probes import _objects
from rankeval_spark.results.locks import Holder
from rankeval_spark.results.roots import MARKER, claim_root, normalise
from rankeval_spark.results.storage import Storage

PROJECT = Path(__file__).parents[3]
DEEP = "[" * 100_000


@pytest.mark.parametrize("text", ['{"product": "rank', "[]", '{"layout": "x"}', '{"layout": null}', "\xff", DEEP])
def test_marker_that_cannot_be_read_is_a_fault(tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER).write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"whose _rankeval\.json cannot be read"):
        claim_root(Storage(str(tmp_path)), create=True)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"owner": 1, "process": {}}', b"\xff"])
def test_lock_that_cannot_be_read_has_no_holder(content: bytes) -> None:
    assert Holder.from_json(content) is None


@pytest.mark.parametrize("line", [DEEP, '{"a": ' * 100_000, "9" * 5000, "nul", ""])
def test_line_of_json_that_cannot_be_read_has_no_keys(line: str) -> None:
    assert _objects(line) == []


@pytest.mark.parametrize(
    "root", ["file://host/data", "http://host/x", "dbfs:/x", "/a`b", "/a%20b", "/a\\b", "/a$b", "/a\nb", "jar:/x"]
)
def test_results_root_is_a_folder_or_a_known_store(root: str) -> None:
    with pytest.raises(ConfigError, match="results root"):
        normalise(root)


@pytest.mark.parametrize("scheme", [*FILE_SYSTEMS, "s3n", "http", "wasbs"])
def test_a_config_and_the_store_accept_the_same_roots(scheme: str) -> None:
    root = f"{scheme}:///data/results" if scheme == "file" else f"{scheme}://bucket/results"
    told = {}
    for where, accept in (("config", check_root_of_config), ("store", normalise)):
        try:
            accept(root)
        except ConfigError as error:
            told[where] = (error.faults[0].expected.rpartition(" of ")[2], error.faults[0].fix)
    assert set(told) == (set() if scheme in RESULT_SCHEMES else {"config", "store"})
    assert len({*told.values()}) <= 1


@pytest.mark.parametrize("page", ["docs/security.md", "rankeval_spark/config/template.yaml"])
def test_a_page_that_lists_the_file_systems_has_all_of_them(page: str) -> None:
    words = set(re.findall(r"\w+", (PROJECT / page).read_text(encoding="utf-8")))
    assert FILE_SYSTEMS.keys() - words == set()


def check_root_of_config(root: str) -> None:
    validate_model(ResultsConfig, {"root": root})


@pytest.mark.parametrize("text", ["://" * 50_000, "://" + ":" * 100_000, "://a:" * 20_000 + "@"])
def test_long_text_is_searched_for_secrets_in_a_moment(text: str) -> None:
    assert without_secrets(text)


def test_password_is_hidden_to_the_last_at() -> None:
    assert without_secrets("no s3a://key:wo@rd@bucket/x here") == "no s3a://(hidden)@bucket/x here"
    assert without_secrets("abfss://c@account/x") == "abfss://c@account/x"
