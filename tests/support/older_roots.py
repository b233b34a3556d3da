"""A results root as an older version of this package published it: real Delta tables that lack columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LACKING: Final[Mapping[str, tuple[str, ...]]] = {
    "runs": ("reason", "input_columns", "policies", "error", "failed_checks"),
    "lists": ("hit_scores", "empty_ranks", "has_rank_gaps", "is_out_of_order"),
    "user_metrics": ("has_ties",),
    "metrics": ("n_lists", "n_extra_users", "tie_share", "std_dev", "quantiles", "quantile_error"),
    "group_metrics": ("n_lists", "ci_low"),
    "comparisons": ("relative_ci_low", "relative_ci_high", "reason", "effect_size", "margin", "win_share"),
    "gates": ("observed", "n_users"),
    "checks": ("share", "threshold"),
}
"""Columns of every table that the older version did not have: of every type, and all that may be NULL."""


def make_older(root: str, lacking: Mapping[str, Collection[str]] = LACKING) -> None:
    """Take columns out of tables: out of every data file, and out of every commit that names columns."""
    for table, names in lacking.items():
        folder = Path(root, table)
        for file in folder.rglob("*.parquet"):
            rows = pq.read_table(file, partitioning=None)
            pq.write_table(rows.drop_columns([name for name in names if name in rows.column_names]), file)
        for commit in folder.glob("_delta_log/*.json"):
            actions = [_without(json.loads(line), names, folder) for line in commit.read_text().splitlines()]
            commit.write_text("\n".join(map(json.dumps, actions)))


def _without(action: dict[str, Any], names: Collection[str], folder: Path) -> dict[str, Any]:
    if "metaData" in action:
        metadata = action["metaData"]
        columns = json.loads(metadata["schemaString"])
        columns["fields"] = [field for field in columns["fields"] if field["name"] not in names]
        rules = metadata["configuration"].items()
        kept = {name: rule for name, rule in rules if not any(column in rule for column in names)}
        return {"metaData": {**metadata, "schemaString": json.dumps(columns), "configuration": kept}}
    if "add" in action and (file := folder / action["add"]["path"]).exists():
        return {"add": {**action["add"], "size": file.stat().st_size}}
    return action
