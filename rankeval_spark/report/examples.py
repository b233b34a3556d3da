"""Users who win and lose most under a model, with both of their lists side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import visible
from rankeval_spark.measures import with_cutoff
from rankeval_spark.report.page_parts import Block, Cell, Section, TableView
from rankeval_spark.report.tables import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rankeval_spark.report.explanation import Explanation
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_parts import Drawer
    from rankeval_spark.report.tables import Row

HIT: Final = "✓"
RELEVANT: Final = 1.0  # gain from which an item is a hit
MAX_MODELS: Final = 3  # with examples on the page; the table has those of all models
MAX_TITLE: Final = 80  # characters of a title or id
SIDES: Final = {"win": "wins", "loss": "loses"}


def item_text(row: Row) -> str:
    """Return an item as people know it: a mark if it is a hit, its title, else its id; cut if it is long."""
    text = visible(str(row[C.TITLE] or row[C.ITEM_ID] or ""))
    text = text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1]}…"
    text = f"{HIT} {text}" if (row[C.GAIN] or 0.0) >= RELEVANT else text
    added = row.get("contribution")
    return f"{text} ({wording.signed(added, 3)})" if added else text


def examples_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Build the section of the users who win and lose most, the better models first."""
    rows = rows_of(night.examples)
    if not rows:
        return Section(hint=night.tables.no_examples)
    first, pairs = rows[0], dict[tuple[str, str], list[dict[str, Any]]]()
    for row in rows:
        pairs.setdefault((row[C.MODEL_ID], row[C.BASELINE_MODEL_ID]), []).append(row)
    own = [pair for pair in pairs if night.baseline in (None, pair[1])]
    blocks = []
    for number, pair in enumerate(own[:MAX_MODELS]):
        tables = [*_tables_of(pairs[pair], number, night.tables.explained)]
        blocks.append(Block(f"{pair[0]} against {pair[1]}", tables=tables, is_folded=number > 0))
    name = with_cutoff(first[C.MEASURE], first[C.K])
    lead = f"Users with the greatest differences of {name}, with the first items of both lists; {HIT} marks a hit. "
    lead += "A number in brackets is what the item adds to the value. " if any(map(_has_term, rows)) else ""
    lead += "They are chosen for these differences: typical users are under Users."
    if len(own) > MAX_MODELS:
        lead += f" {MAX_MODELS} of {len(own)} models are shown; the table examples has all."
    return Section(lead, blocks)


def _has_term(row: Row) -> bool:
    """Return whether it is known what an item adds to the value."""
    return row.get("contribution") is not None


def _tables_of(rows: Sequence[Row], number: int, explained: Sequence[Explanation]) -> Iterator[TableView]:
    """Yield a table for each user: a line a rank, a column a list; below the first how the values come about."""
    users = dict[tuple[str, int], list[Any]]()
    for row in rows:
        users.setdefault((row["side"], row["place"]), []).append(row)
    for side, place in sorted(users, key=lambda user: (user[0] != "win", user[1])):
        own = users[side, place]
        row, lists = own[0], dict[tuple[str, str], dict[int, str]]()
        for each in sorted(own, key=lambda each: (each["listed_by"] != each[C.MODEL_ID], each[C.LIST_ID])):
            lists.setdefault((each["listed_by"], each[C.LIST_ID]), {})[each[C.RANK]] = item_text(each)
        values = " against ".join(wording.number(row[name]) for name in (C.VALUE, "baseline_value"))
        judged = wording.count(row[C.N_RELEVANT], "relevant item")
        caption = f"{visible(row[C.USER_ID])} {SIDES[side]} {wording.signed(row['delta'])}: {values}, {judged}"
        headings = [visible(" ".join(filter(None, key))) for key in lists]
        ranks = sorted({rank for items in lists.values() for rank in items if rank})
        cells = [[Cell(str(rank), rank), *(Cell(items.get(rank, "")) for items in lists.values())] for rank in ranks]
        yield TableView(
            f"examples-{number}-{side}-{place}",
            caption,
            ["rank", *headings],
            cells,
            numbers=["rank"],
            is_folded=place > 1,
        )
        for turn, (each, heading) in enumerate(zip(lists, headings, strict=True) if place == 1 else ()):
            which = next(row.get("explained") for row in own if (row["listed_by"], row[C.LIST_ID]) == each)
            if which is not None:
                yield from _explain(explained[which], heading, f"explained-{number}-{side}-{turn}")


def _explain(explanation: Explanation, heading: str, id_: str) -> Iterator[TableView]:
    """Yield folded tables of a list, rank by rank with the sums in words, and of its ideal list."""
    name, words = f"{heading}, {explanation.measure} rank by rank", "; ".join(explanation.sentences)
    captions = f"{name}: {words}", f"{heading}, the ideal list"
    for number, (layout, caption) in enumerate(zip(explanation.layouts(), captions, strict=False)):
        columns = [
            [Cell(text, float(text.replace(",", "")) if column.is_number and text else None) for text in column.cells]
            for column in layout.columns
        ]
        headings = {column.heading: column.is_number for column in layout.columns}
        numbers = [one for one, is_number in headings.items() if is_number]
        cells = zip(*columns, strict=True)
        yield TableView(f"{id_}-{number}", caption, headings, cells, numbers=numbers, is_folded=True)
