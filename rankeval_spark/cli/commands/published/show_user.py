"""``rankeval user``: what each model listed for a user, which of it is relevant, and the values of the measures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rich.markup import escape

from rankeval_spark import columns as C
from rankeval_spark.apps.published.user_lists import UserLists, user_lists
from rankeval_spark.cli.commands.published.compare_nights import chosen_night
from rankeval_spark.cli.display import tables
from rankeval_spark.cli.display.terminal import console, say_done, write_out
from rankeval_spark.cli.sessions import new_session
from rankeval_spark.engine.scoring.scorer import RELEVANT
from rankeval_spark.spark.session.on_demand import on_demand

if TYPE_CHECKING:
    from rich.table import Table

    from rankeval_spark.apps.history.published_runs import PastNight
    from rankeval_spark.cli.commands.published.show_results import RowSelection

Row: TypeAlias = Mapping[str, Any]
ListKey: TypeAlias = tuple[str, str]
"""Model and list."""

_HIT: Final = "\u2713"


def user_command(root: str, user: str, selection: RowSelection, *, is_json: bool) -> None:
    """Read the inputs of a published night again, and show the lists of one user next to each other."""
    spark = on_demand(partial(new_session, "rankeval user"))
    night = chosen_night(spark, root, selection)
    found = user_lists(spark, root, night, [user])
    if is_json:
        write_out(json.dumps(_for_programs(found, night, user), indent=2, default=str) + "\n")
    else:
        _show(found, f"{night}, user {user}", selection.ks[0])


def _show(found: UserLists, title: str, k: int) -> None:
    """Print the items of each list down to rank ``k``, what is missed, and the values."""
    ranked, judged, values = (table.to_pylist() for table in (found.ranked, found.judged, found.values))
    lists, out = _lists(ranked, values), console()
    n_relevant = sum(map(_is_relevant, judged))
    say_done(f"{title}: {n_relevant:,} of {len(judged):,} judged items are relevant; {_HIT} marks them")
    out.print(_items(ranked, lists, k))
    of_list = [C.LIST_ID] if C.LIST_ID in found.judged.column_names else []
    place = itemgetter(C.ITEM_ID, *of_list)
    listed = {place(row) for row in ranked if row[C.RANK] <= k}
    missed = [" of ".join([_cell(row), *(row[name] for name in of_list)]) for row in judged if place(row) not in listed]
    if missed:
        out.print(f"judged, and in no list down to rank {k}: {', '.join(missed)}", markup=False, soft_wrap=True)
    out.print()
    out.print(_values(values, lists, k))


def _items(ranked: Sequence[Row], lists: Sequence[ListKey], k: int) -> Table:
    table = tables.headed("rank", *map(_heading, lists))
    cells = {(_list_of(row), row[C.RANK]): _cell(row) for row in ranked}
    deepest = max((row[C.RANK] for row in ranked), default=0)
    for rank in range(1, min(k, deepest) + 1):
        table.add_row(str(rank), *(escape(cells.get((one, rank), "")) for one in lists))
    return table


def _values(values: Sequence[Row], lists: Sequence[ListKey], k: int) -> Table:
    """Lay out measures x lists at one cutoff: the first of the night that is not below ``k``, else its last."""
    cutoffs = sorted({row[C.K] for row in values if row[C.K]})
    shown = next((one for one in cutoffs if one >= k), cutoffs[-1] if cutoffs else 0)
    own = [row for row in values if row[C.K] in (shown, 0)]
    cells = {(tables.measure_label(row), _list_of(row)): row[C.VALUE] for row in own}
    table = tables.headed("measure", *map(_heading, lists))
    for label in dict.fromkeys(map(tables.measure_label, own)):
        table.add_row(label, *(tables.number(cells.get((label, one))) for one in lists))
    return table


def _for_programs(found: UserLists, night: PastNight, user: str) -> dict[str, Any]:
    items, values = found.ranked.to_pylist(), found.values.to_pylist()
    return {
        C.EVALUATION: night.evaluation,
        C.EVALUATION_DATE: night.evaluation_date,
        C.USER_ID: user,
        "judged": found.judged.drop_columns([C.USER_ID]).to_pylist(),
        "lists": [
            {C.MODEL_ID: one[0], C.LIST_ID: one[1], "items": _of_list(items, one), "values": _of_list(values, one)}
            for one in _lists(items, values)
        ],
    }


def _lists(ranked: Iterable[Row], values: Iterable[Row]) -> list[ListKey]:
    """Name the lists of the user; a model without a list has values where missing users count."""
    return sorted({*map(_list_of, ranked), *map(_list_of, values)})


def _list_of(row: Row) -> ListKey:
    return row[C.MODEL_ID], row[C.LIST_ID]


def _of_list(rows: Iterable[Row], one: ListKey) -> list[dict[str, Any]]:
    return [_without_keys(row) for row in rows if _list_of(row) == one]


def _without_keys(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in C.LIST_KEY}


def _heading(one: ListKey) -> str:
    return escape(", ".join(filter(None, one)))


def _is_relevant(row: Row) -> bool:
    return row[C.GAIN] is not None and row[C.GAIN] >= RELEVANT


def _cell(row: Row) -> str:
    """Write an item: marked where it is relevant, with its gain where that says more than the mark."""
    says_more = row[C.GAIN] not in (None, 1)
    parts = (_HIT if _is_relevant(row) else "", str(row[C.ITEM_ID]), f"({row[C.GAIN]:g})" if says_more else "")
    return " ".join(filter(None, parts))
