"""Submissions with a list in each cell, its items between separators."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from tests.support.nights import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DAY: Final = dt.date(2026, 1, 1)

SEPARATORS: Final = {"blank": " ", "comma": ",", "bar": "|", "tab": "\t", "two characters": ", "}

LISTS: Final[Mapping[str, tuple[str | None, list[str]]]] = {
    "ann": ("0706016001{0}0706016002{0}0706016003", ["0706016001", "0706016002", "0706016003"]),
    "bob": ("0706016002{0}{0}0706016001{0}", ["0706016002", "0706016001"]),
    "eve": ("0706016003", ["0706016003"]),
    "kim": ("", []),
    "ida": (None, []),
    "zoe": ("  ", []),
}
"""Cell of each user, with a place for the separator, and the items in it."""

BOUGHT: Final = {"ann": "0706016002{0}0706016003", "bob": "0706016001", "eve": "0706016001", "kim": "0706016001"}
"""The same of the judgements: RR is 1/2 for ann and for bob, and 0 for the others."""

RR: Final = (1 / 2 + 1 / 2 + 0 + 0) / 4


def submission(separator: str, *, has_scores: bool = False) -> pa.Table:
    """Return the log, with scores of three, two and one in a second column where asked."""
    cells = [cell and cell.format(separator) for cell, _ in LISTS.values()]
    scores = [separator.join(f"{3 - place}.0" for place in range(len(items))) for _, items in LISTS.values()]
    columns = {"customer": list(LISTS), "prediction": pa.array(cells, pa.string())}
    return pa.table({**columns, **({"scores": scores} if has_scores else {})})


def judgements(separator: str) -> pa.Table:
    """Return the judgements."""
    cells = [cell.format(separator) for cell in BOUGHT.values()]
    return pa.table({"customer": list(BOUGHT), "ground_truth": cells})


def renamed(table: pa.Table) -> pa.Table:
    """Give the column of users its canonical name."""
    return table.rename_columns({"customer": "user_id"})


def nested_by(separator: str) -> dict[str, dict[str, str]]:
    """Return the keys of ``nested`` of both tables."""
    log = {"items": "prediction", "separator": separator}
    return {"recommendations": log, "held_out": {"items": "ground_truth", "separator": separator}}


def write(table: pa.Table, path: Path, form: str) -> None:
    """Write a table in a format of inputs."""
    match form:
        case "csv":
            csv.write_csv(table, path)
        case "json":
            path.write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
        case "parquet":
            pq.write_table(table, path)
        case _:
            deltalake.write_deltalake(str(path), table)


def night_of(folder: Path, form: str, separator: str, **log: Any) -> Workspace:  # noqa: ANN401 - keys of the log
    """Write a submission and its judgements, and the config of a night that reads them."""
    made = Workspace(folder)
    (folder / "inputs").mkdir(parents=True)
    tables = {"recommendations": submission(separator, has_scores="scores" in log.get("nested", {}))}
    inputs = {}
    for name, table in {**tables, "held_out": judgements(separator)}.items():
        write(table, folder / "inputs" / name, form)
        inputs[name] = {"format": form, "path": f"inputs/{name}", "columns": {"user_id": "customer"}}
        inputs[name]["nested"] = nested_by(separator)[name]
    inputs["recommendations"] |= log
    made.configure({"evaluation": "cells", "inputs": inputs, "measures": ["RR"], "results": {"root": "results"}})
    return made


def nested_inputs(**nested: object) -> dict[str, dict[str, object]]:
    """Return the argument ``inputs`` of ``evaluate`` by which rows of these tables have several items."""
    return {name: {"nested": one} for name, one in nested.items()}
