"""Write the pages that are made from the code: ``docs/measures.md`` and ``docs/tables.md``.

``python docs/generate.py`` writes them; ``--check`` only says whether they are current.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rankeval_spark import schemas
from rankeval_spark.measures import options as measure_options, registry

if TYPE_CHECKING:
    from rankeval_spark.measures import Ranking
    from rankeval_spark.measures.golden import Golden
    from rankeval_spark.measures.registry import Entry
    from rankeval_spark.schemas import Schema

HERE = Path(__file__).parent

NOTATION = """\
# Measures

Generated from the code by `make docs`; the formulas, options and examples stand beside the kernels.

For a user: `n` is the length of the list, `m = min(k, n)`, `r_i` and `g_i` are relevance and gain at rank `i`, `R` is
the number of relevant judgements, `h_i` the number of relevant items at ranks 1 to `i`. An item without a judgement
has gain 0. A judgement is relevant where its gain is at least `rel` (1 by default).

A measure is written `Name(option=value)@k`; options have the defaults below, and without `@k` the whole list counts.
In YAML, a name with a map, such as `"nDCG(gains={1:1,2:3})@10"`, stands in quotes.
In the tables the name stands in `measure` and the cutoff in `k` (0 = whole list). Undefined values are NULL, never 0.
"""

GUIDE = """\
## Which to use when

| what you want to know | take |
|---|---|
| does the user find something at all | `Success@k` |
| how soon does he find it | `RR@k` |
| how much of the list is good | `P@k`; of what was to be found: `R@k`; both: `F1@k` |
| the order matters, many relevant items, graded | `nDCG@k`; `dcg='exp-log2'` where a grade counts double |
| the order matters, many relevant items, binary | `AP@k`; `AP(denom='min')@k` where more is relevant than k |
| the user stops at the first item that is good enough, graded | `ERR@k` |
| most items have no judgement | `RBP(p=0.8)@k`, and by how much it may be too low: `RBPResidual(p=0.8)@k` |
| users with poor lists must not drown in the mean | `LogAP@k`; its mean is the logarithm of GMAP |
| at which rank the first hit stands | `FirstHit@1`, `FirstHit@2`, ...: a histogram |
| one relevant item a user | `RR@k` and `Success@k`: AP, ARHR and RR are then the same number |
| precision at a level of recall; the whole curve | `IPrec@0.1`; `IPrecAvg`, beside `RecallCeiling` |
| how much of the list was judged at all | `Judged@k`; with irrelevant items among the judged ones: `Bpref` |
| a measure that adds up over users, in units of gain | `DCG@k`, `CG@k` |

Beside accuracy, for which a run is given `train` or `items`:

| what you want to know | take |
|---|---|
| does the list show only what everybody knows | `APLT@k`, `ARP@k`; in bits and comparable over data sets: `MIUF@k` |
| is what is relevant also novel | `EPC@k`, `EFD@k` |
| is there variety within a list | `ILD@k` with vectors, `ILD(sim='jaccard')@k` with categories; `SRecall@k` |
| does the mixture of categories fit the user | `Calibration(distance='JS')@k`, from 0 to 1 |
| what is relevant although nobody would have guessed | `Serendipity@k`; `Unexpectedness@k` whether relevant or not |
| how old the items are | `Freshness@k` |
| do lists repeat what the user has, or end too early | `NotInTrain@k`, `SufficientReco@k` |

A user without a list has no value in these, under any population, and counts in `n_undefined`. Whether a user without
judgements has one hangs on the population as for any measure: `truth` leaves him out, `run` takes everyone with a list.
"""

TABLES = """\
# Tables

Generated from `rankeval_spark/schemas.py` by `make docs`. All are Delta tables under one results root, partitioned by
`evaluation, evaluation_date`, reader version 1. A run replaces the rows of its evaluation and date and nothing else;
`runs` only grows, and its newest `PUBLISHED` row names the versions at which the other tables belong together.
"""


def measures_page() -> str:
    """Describe every measure of the registry."""
    parts = [NOTATION, GUIDE, *(_measure(entry) for entry in registry.entries())]
    return "\n".join(parts)


def tables_page() -> str:
    """Describe every published table."""
    published = (schemas.RUNS, *schemas.PUBLISHED)
    inputs = "## Inputs\n\nWhat the sources make of a log, whatever its own columns are called.\n"
    return "\n".join(
        [
            TABLES,
            *map(_table, published),
            inputs,
            *map(_table, (schemas.RECOMMENDATIONS, schemas.HELD_OUT, schemas.TRAIN, schemas.ITEMS)),
        ]
    )


PAGES: dict[str, Callable[[], str]] = {"measures.md": measures_page, "tables.md": tables_page}


def _measure(entry: Entry) -> str:
    return "\n".join(_measure_lines(entry))


def _measure_lines(entry: Entry) -> Iterator[str]:
    definition = entry.definition
    yield f"## {entry.name}\n\n{entry.summary}\n"
    yield f"- formula: `{definition.formula}`"
    for one in entry.options:
        default = "left out by default" if one.default is None else f"default `{measure_options.show(one.default)}`"
        yield f"- option `{one.name}`: {one.expected}; {default}"
    yield f"- cutoff: {definition.cutoff}"
    yield f"- range: {entry.range}; undefined: {definition.undefined}"
    if entry.requires:
        yield f"- needs: {entry.requires}"
    yield f"- interval of the mean: {definition.interval}"
    if definition.aliases:
        yield f"- also read as: {', '.join(f'`{alias}`' for alias in definition.aliases)}"
    yield f"- source: {definition.source}\n"
    yield "| example | gain at each rank (`-` without judgement; missed gains) | value |\n|---|---|---|"
    yield from map(_example, definition.goldens)
    yield ""


def _example(golden: Golden) -> str:
    lists = "; ".join(
        " ".join("-" if gain is None else f"{gain:g}" for gain in one.gains)
        + (f" (missed {' '.join(f'{gain:g}' for gain in one.missed)})" if one.missed else "")
        for one in golden.rankings
    )
    lists += "".join(_known(one) for one in golden.rankings)
    mean = f"; mean {golden.mean}" if golden.mean else ""
    return f"| `{golden.measure}` | {lists} | {'; '.join(golden.values)}{mean} |"


def _known(one: Ranking) -> str:
    """Write what an example knows of items and users, where it does."""
    items = f"; items {' '.join(map(str, one.items))}" if one.items else ""
    return items + (f"; {one.background}" if str(one.background) else "")


def _table(schema: Schema) -> str:
    rows = "\n".join(
        f"| `{field.name}` | `{field.type}` | {'' if field.nullable else 'never NULL. '}{field.comment} |"
        for field in schema.fields
    )
    more = "\nThen one double column a measure.\n" if schema is schemas.USER_METRICS else ""
    head = f"## {schema.name}\n\nOne row: {schema.grain}. Key: {', '.join(f'`{name}`' for name in schema.key)}.\n"
    return f"{head}\n| column | type | holds |\n|---|---|---|\n{rows}\n{more}"


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` name those that are not current."""
    stale = [name for name, page in PAGES.items() if _read(HERE / name) != page()]
    if "--check" in arguments:
        print("\n".join(f"docs/{name} is not current: run make docs" for name in stale))
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
