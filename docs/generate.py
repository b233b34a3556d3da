"""Write the pages that are made from the code: measures, tables, presets and configuration.

``python docs/generate.py`` writes them; ``--check`` only says whether they are current.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measures_reference
from config_reference import configuration_page
from orders_figure import contributions_figure, orders_figure

from rankeval_spark import schemas
from rankeval_spark.measures import options as measure_options, other_tools

if TYPE_CHECKING:
    from rankeval_spark.measures.options import OptionValue
    from rankeval_spark.schemas import Schema

HERE = Path(__file__).parent
TABLES = """\
# Tables

Generated from `rankeval_spark/schemas.py` by `make docs`. All are Delta tables under one results root, partitioned by
`evaluation, evaluation_date`, reader version 1. A run replaces the rows of its evaluation and date and nothing else.
`runs` only grows and is not partitioned, because its small files are merged across nights. Its newest `PUBLISHED` row
names the versions at which the other tables belong together. A type with `?` may be NULL. Every key begins with
`evaluation` and `evaluation_date`.

## Columns of several tables

Every table has `evaluation`, `evaluation_date` and `run_id`; the others are listed with each table that has them.

"""

ALONE = """\
## Results of `evaluate` alone

`metrics`, `user_metrics`, `comparisons`, `group_metrics` and `checks` of `evaluate` have the columns above, without
those of every table. These results are in no table; `list_id` is left out of `agreement` where each user has one list.

| result | one row | columns |
|---|---|---|
| `ranked_items` | an item of a list, as it is measured | `model_id`, `user_id`, `list_id`, `item_id`, `rank`, \
`gain` (NULL: not judged), `is_relevant` |
| `user_values` | a list, measure and cutoff | `model_id`, `user_id`, `list_id`, `measure`, `k`, `value` |
| `gaps` | a model, slice, measure and cutoff | `model_id`, `slice`, `measure`, `k`, `n_groups`, `n_left_out`, \
`gap`, `ci_low`, `ci_high`, `ci_level`, `ratio`, `ratio_ci_low`, `ratio_ci_high`, `mad`, `lowest_group`, \
`lowest_value`, `highest_group`, `highest_value` |
| `gap_tests()` | the same | `model_id`, `slice`, `measure`, `k`, `n_groups`, `gap`, `p_value`, `p_adjusted`, \
`correction`, `family_size`, `replicates`, `reason` |
| `agreement(baseline)` | a list of another model | `model_id`, `user_id`, `list_id`, `overlap`, `jaccard`, `rbo` |
| `hit_ranks(model, baseline)` | a list and relevant item | `user_id`, `list_id`, `item_id`, `gain`, \
`baseline_rank`, `rank` |

## Inputs

What the sources make of a log, whatever its own columns are called.
"""


TOOLS_HEAD = """\
# Presets and other tools' names

Generated from `rankeval_spark/measures/other_tools.yaml` by `make docs`. On one input AP@5 runs from 0.19 to 0.52
across the definitions in use, so a number only compares with another of the same convention. The tables say which
measure here has the number of a tool's own; `rankeval measures --from torchmetrics RetrievalMAP` prints what to write.

A preset is the convention of a tool: `preset: trec_eval` in a config, `evaluate(..., preset=...)` in code. It sets
policies, and options of the measures listed; what you write yourself wins. Results record what came out of both. All
else is as without a preset. Tools without one have policies below, to be written.

"""

HELD = {
    "run": "values of the tool are in the tests",
    "published": "values of the tool's own tests are in ours",
    "peers": "compared with the tool by tests",
    "read": "read in its source",
}


def tables_page() -> str:
    """Describe every published table, and the columns of the inputs."""
    published = (schemas.RUNS, *schemas.PUBLISHED)
    columns = Counter(column for schema in published for column in _columns(schema))
    shared = {_name(column): column for column, tables in reversed(columns.items()) if tables > 1}.values()
    several = TABLES + "".join(column for column in columns if column in shared)
    everywhere = {column for column, tables in columns.items() if tables == len(published)}
    read = (schemas.RECOMMENDATIONS, schemas.HELD_OUT, schemas.TRAIN, schemas.ITEMS)
    read += (schemas.USER_VALUES, schemas.USER_WEIGHTS)
    tables = (_table(schema, shared, everywhere) for schema in published)
    return "\n".join([several, *tables, ALONE, *map(_table, read)])


def tools_page() -> str:
    """Describe every tool: its preset or policies, and our measures for its own."""
    tools = other_tools.read_tools()
    names = ", ".join(f"[{name}](#{name})" for name in tools)
    return TOOLS_HEAD + f"{names}.\n\n" + "\n".join(_tool(name, tool) for name, tool in tools.items())


def _tool(name: str, tool: Mapping[str, Any]) -> str:
    """Write the section of a tool."""
    usual = tool.get("policies", {})
    options = [f"`{measure}({','.join(_options_of(given))})`" for measure, given in tool.get("options", {}).items()]
    alike = f" Also {', '.join(tool['names'])}." if "names" in tool else ""
    lines = [
        f"- version: {tool['version']}; {HELD[tool['held']]}",
        f"- source: {tool['source']}",
        *([f"- preset: `{name}`"] if "preset" in tool else []),
        *([f"- policies: {_policies(usual)}"] if usual else []),
        *([f"- measures: {', '.join(options)}"] if options else []),
        *(f"- {note}" for note in tool.get("notes", ()) if "\n" not in note),
        *(f"\n{note}" for note in tool.get("notes", ()) if "\n" in note),
    ]
    rows = [f"| `{each}` | {_counterpart(metric, usual, tool['held'])} |" for each, metric in tool["metrics"].items()]
    table = ["| its measure | here |", "|---|---|", *rows]
    return "\n".join([f"## {name}\n\n{tool['tool']}.{alike}\n", *lines, "", *table, ""])


def _counterpart(metric: Mapping[str, Any], usual: Mapping[str, OptionValue], held: str) -> str:
    """Write what we have for a metric, with the policies that the tool does not have anyway."""
    if "why_not" in metric:
        return f"not offered: {metric['why_not']}"
    own = {policy: value for policy, value in metric["policies"].items() if usual.get(policy) != value}
    parts = [f"`{metric['ours']}`", _policies(own), metric.get("note", "")]
    parts.append(HELD[metric["held"]] if metric["held"] != held else "")
    return "; ".join(filter(None, parts))


def _policies(policies: Mapping[str, OptionValue]) -> str:
    return ", ".join(f"`{policy}: {str(value).lower()}`" for policy, value in policies.items())


def _options_of(given: Mapping[str, OptionValue]) -> list[str]:
    return [f"{option}={measure_options.option_text(value)}" for option, value in given.items()]


def pages() -> dict[str, str]:
    """Return the text of each page, by its path in this folder."""
    return {
        **measures_reference.pages(),
        "tables.md": tables_page(),
        "presets.md": tools_page(),
        "configuration.md": configuration_page(),
        "orders.svg": orders_figure(),
        "contributions.svg": contributions_figure(),
    }


def _table(schema: Schema, shared: Collection[str] = (), everywhere: Collection[str] = ()) -> str:
    """Write the columns of a table; of those that are ``shared`` the names, except where they are ``everywhere``."""
    columns = _columns(schema)
    own = "".join(column for column in columns if column not in shared)
    names = [f"`{_name(column)}`" for column in columns if column in shared and column not in everywhere]
    above = f"\nAlso [as above](#columns-of-several-tables): {', '.join(names)}.\n" if names else ""
    weights = "and with `agg='micro'` one more, `<column>__weight`, with its denominators"
    more = f"\nThen one double column a measure, {weights}.\n" if schema is schemas.USER_METRICS else ""
    key = ", ".join(f"`{name}`" for name in schema.key if name not in ("evaluation", "evaluation_date"))
    head = f"## {schema.name}\n\nOne row: {schema.grain}. Key: {key}.\n"
    return f"{head}\n{own}{above}{more}"


def _columns(schema: Schema) -> list[str]:
    return [
        f"- `{field.name}` `{field.type}{'?' if field.nullable else ''}`: {field.comment}\n" for field in schema.fields
    ]


def _name(column: str) -> str:
    return column.split("`")[1]


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` name those that are not current."""
    stale = {name: text for name, text in pages().items() if _read(HERE / name) != text}
    if "--check" in arguments:
        print("\n".join(f"docs/{name} is not current: run make docs" for name in stale))
        return 1 if stale else 0
    for name, text in stale.items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
