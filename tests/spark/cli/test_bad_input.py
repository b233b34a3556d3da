"""Bad input that only Spark reads, or whose rows only Spark writes out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake

from rankeval_spark.results.run_record import NightKey
from tests.support import nights
from tests.support.nights import FIRST
from tests.unit.cli.test_bad_input import refused

if TYPE_CHECKING:
    from tests.support.nights import Workspace


def test_damaged_file_is_an_input_that_cannot_be_read(own_copy_of_delta: Workspace) -> None:
    for file in (own_copy_of_delta.folder / "inputs" / "held_out").glob("*.parquet"):
        file.write_bytes(b"not what it was" * 10)

    message = refused(own_copy_of_delta, code=4, recorded=True).message

    assert "inputs.held_out: found a file that cannot be read" in message


def test_unusable_rows_are_kept_unchanged_when_they_stop_the_night(own_copy: Workspace) -> None:
    """A line that was torn off has no day: nobody can tell that it is of another night, so it is counted."""
    rows = nights.held_out()
    shutil.rmtree(own_copy.folder / "inputs" / "held_out")
    folder = own_copy.write("held_out", [{**rows[0], "gain": None, "note": "x"}, *rows[1:]], "json")
    torn = '{"day": "2026-01-01", "user_id": "ann", "ite'
    (folder / "part-1.json").write_text(f"{torn}\n")
    log = nights.recommendations()
    own_copy.write("recommendations", [{**log[0], "score": float("nan")}, *log[1:]])
    own_copy.change(
        inputs__held_out__format="json", checks__null_keys={"error": 0.01}, results__quarantine=True, models=["als"]
    )
    kept = Path(own_copy.root, "_quarantine", NightKey("nightly", FIRST).slug)
    (kept / "of-the-last-run").mkdir(parents=True)

    message = refused(own_copy, code=3, recorded=True).message

    assert (
        f"held_out, null_keys: found 1 (12.50%), for example NULL NULL; expected at most 1.00%; fix the input, "
        f"whose rows are in {kept}, or raise checks.null_keys.error" in message
    )
    found = {
        (row["input"], row["check"]): row["row"] for row in deltalake.DeltaTable(kept).to_pyarrow_table().to_pylist()
    }
    assert found.pop(("held_out", "null_keys")) == torn
    assert {key: json.loads(row) for key, row in found.items()} == {
        ("held_out", "invalid_gains"): {
            **{name: str(value) for name, value in rows[0].items()},
            "gain": None,
            "note": "x",
        },
        ("recommendations", "invalid_scores"): {**log[0], "score": "NaN"},
    }
    assert not (kept / "of-the-last-run").exists()
