"""How one value comes about, as text, as HTML and as tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, wording
from rankeval_spark.config.policies import tie_rule
from rankeval_spark.engine.scorer import RELEVANT
from rankeval_spark.errors import visible
from rankeval_spark.measures.options import AGG, GROUP, JUDGED_ONLY, option_text
from rankeval_spark.report.layouts import Column, Layout, to_html, to_text
from rankeval_spark.report.result_table import ResultTable
from rankeval_spark.result_rows.trace_rows import IDEAL, IS_EVALUATED, IS_SUM, KERNEL_VALUE, LIST, NUMBER, OF_RANK, PART

if TYPE_CHECKING:
    from rankeval_spark.config import Policies
    from rankeval_spark.measures import Measure

MAX_SHOWN: Final = 30  # ranks in a text, those where something happens first
_SHOWN_ANYWAY: Final = 10  # first ranks
_DECIMALS: Final = 4
_NO_NUMBER: Final = object()


class Explanation:
    """How the value of a list comes about: each rank with what it adds, the ideal list, and the sums.

    ``print`` shows it as text, a notebook as HTML; :attr:`table` and :attr:`ideal` are :class:`ResultTable`.
    """

    def __init__(
        self,
        measure: Measure,
        rows: pa.Table,  # of `trace_rows.SCHEMA`, of one list
        policies: Policies,
        titles: Mapping[str, str] | None = None,  # of items by id, where the catalogue has any
    ) -> None:
        self.measure = measure
        self.policies = policies
        self.model_id, self.user_id, self.list_id = (rows[name][0].as_py() for name in C.LIST_KEY)
        of_numbers = rows.filter(pc.equal(rows[PART], NUMBER))
        self.numbers: Mapping[str, float | None] = dict(
            zip(of_numbers["name"].to_pylist(), of_numbers[C.VALUE].to_pylist(), strict=True)
        )
        self.value: float | None = self.numbers[C.VALUE]
        self.table, self.ideal = (_columns_with_values(rows, part, titles or {}) for part in (LIST, IDEAL))

    @property
    def is_sum(self) -> bool:
        """Whether the column ``contribution`` adds up to the value; else ``after`` leads to it."""
        return bool(self.numbers[IS_SUM])

    def __repr__(self) -> str:
        """Return the explanation as text."""
        return "\n\n".join(map(to_text, self.layouts()))

    def _repr_html_(self) -> str:
        """Return the explanation as HTML, for a notebook."""
        return "".join(map(to_html, self.layouts()))

    def layouts(self) -> list[Layout]:
        """Lay out the list with the sentences, and the ideal list."""
        found = [_lay_out(self.table, f"{self._title}\n{self._formula}", self.sentences)]
        return [*found, _lay_out(self.ideal, self._ideal_title, ())] if len(self.ideal) else found

    @property
    def _title(self) -> str:
        model = "" if self.model_id == C.ONE_MODEL else f" under {visible(self.model_id)}"
        of_list = f", list {visible(self.list_id)}" if self.list_id else ""
        value = "is undefined" if self.value is None else f"= {wording.number(self.value)}"
        return f"{self.measure} {value} for user {visible(self.user_id)}{model}{of_list}"

    @property
    def _formula(self) -> str:
        """Return the formula with the choices of this measure that it is not written for."""
        formula = self.measure.entry.formula
        chosen = [
            f"{option.name}={option_text(value)}"
            for option in self.measure.entry.options
            if (value := self.measure.options[option.name]) != option.default
            and (option.choices or isinstance(value, bool))
            and option.name not in (AGG, GROUP, JUDGED_ONLY)
            and f"{option.name}=" not in formula
        ]
        return f"{formula}; here with {', '.join(chosen)}" if chosen else formula

    @property
    def _ideal_title(self) -> str:
        return f"the ideal list, sum of terms {_short(pc.sum(self.ideal['term']).as_py())}"

    @property
    def sentences(self) -> list[str]:
        """The sums and the value in words; why there is none, and what policies did."""
        numbers, kernel_value = self.numbers, self.numbers[KERNEL_VALUE]
        nothing = [] if len(self.table) else ["the list has no item"]
        found = self._sums() if kernel_value is not None else [f"the formula has no value: {self._undefined}"]
        if not numbers[IS_EVALUATED]:
            population, missing = self.policies.population, self.policies.missing
            found.append(f"the list is not in the population {population!r} with missing={missing!r}: it has no value")
        elif kernel_value is None and self.value is not None:
            found.append(f"the policy zero_relevant={self.policies.zero_relevant!r} counts it as {self.value:g}")
        if numbers[C.HAS_TIES] and tie_rule(self.policies.ties).value == "mean":
            found.append("items of one score share their ranks: terms are means over all orders of these items")
        if self.measure.is_judged_only:
            found.append("items without a judgement leave the list before it is cut, and the others close up")
        judged, relevant, recommended, hits = (
            int(numbers[name] or 0) for name in (C.N_JUDGED, C.N_RELEVANT, C.N_RECOMMENDED, C.N_HITS)
        )
        of_items = wording.count(recommended, "place") + (f" down to rank {self.measure.k}" if self.measure.k else "")
        rel, group = (self.measure.options.get(name) for name in ("rel", GROUP))
        level = f" (gain {rel:g} or more)" if isinstance(rel, int | float) and rel != RELEVANT else ""
        of_group = f" of {group!r}" if group else ""
        found.append(f"R = {relevant} of {judged} judged items{of_group} are relevant{level}; {of_items}, hits: {hits}")
        return [*nothing, *found]

    @property
    def _undefined(self) -> str:
        """Return when the formula has no value: what holds for the options of the measure."""
        first, *others = self.measure.entry.undefined.split("; ")
        options = {str(option) for option in self.measure.options.values()}
        said = [each for each in others if options & {*re.findall(r"'(\w+)'", each.partition(":")[0])}]
        return "; ".join([first, *said]) if first != "never" else "a part of it has none"

    def _sums(self) -> list[str]:
        """Return how the terms lead to the value."""
        numbers, steps = self.numbers, list[str]()
        if numbers.get("divided by") == 0:
            return ["divided by 0, which makes 0"]
        if (total := numbers.get("sum of terms")) is not None:
            steps.append(f"sum of terms {_short(total)}")
            steps += [f"{name} {_short(numbers[name])}" for name in ("times", "divided by") if name in numbers]
        elif self.is_sum:
            added = sum(row.get("contribution") or 0.0 for row in self.table)
            steps.append(f"sum of contributions {_short(added)}")
        if "constant" in numbers:
            steps.append(f"plus {_short(numbers['constant'])}, whatever the items add")
        if not self.is_sum:
            why = "the value is no sum of them" if "sum of terms" in numbers else "no terms of single ranks"
            last = f"{why}: `after` is the value of the list so far, at last {self._shown_value}"
            return [*([", ".join(steps)] if steps else []), last]
        if "ratio" in numbers:
            return [f"{', '.join(steps)}: {_short(numbers['ratio'])}, of which the formula makes {self._shown_value}"]
        return [f"{', '.join(steps)}: {self._shown_value}" if len(steps) > 1 else steps[0]]

    @property
    def _shown_value(self) -> str:
        return _short(self.numbers[KERNEL_VALUE])


def _lay_out(table: ResultTable, title: str, notes: Sequence[str]) -> Layout:
    """Lay out ranks: columns that say what no other does, and of a long list the ranks where something happens."""
    rows = table.to_pylist()
    names = table.columns if rows else []
    if "worth" in names and all(row["worth"] in (row.get(C.GAIN), None, 0.0) for row in rows):
        names.remove("worth")
    if "term" in names and all(row["term"] == row.get("contribution", _NO_NUMBER) for row in rows):
        names.remove("term")
    kept = [row for row in rows if len(rows) <= MAX_SHOWN or _matters(row)][:MAX_SHOWN]
    columns = []
    for name in names:
        values = [row[name] for row in kept]
        is_number = name not in (C.ITEM_ID, C.TITLE)
        places = (
            None if name in (C.RANK, C.GAIN) else max(_DECIMALS, wording.decimals((), values)) if is_number else None
        )
        columns.append(Column(name, [_cell(value, places) for value in values], is_number))
    n_more = len(rows) - len(kept)
    left_out = [f"{wording.count(n_more, 'more rank')}: .table has all"] if n_more else []
    return Layout(title, columns, 0, (), [*left_out, *notes])


def _matters(row: Mapping[str, Any]) -> bool:
    """Return whether a row of a long list is shown: of the first ranks, and where items have a judgement."""
    return row[C.RANK] <= _SHOWN_ANYWAY or row.get(C.GAIN) is not None


def _columns_with_values(rows: pa.Table, part: str, titles: Mapping[str, str]) -> ResultTable:
    """Return the rows of a part with the columns that say something."""
    of_part = rows.filter(pc.equal(rows[PART], part))
    table = of_part.select([C.RANK, C.ITEM_ID])
    if titles and part in (LIST, IDEAL):
        named = [titles.get(item) for item in of_part[C.ITEM_ID].to_pylist()]
        table = table.append_column(C.TITLE, pa.array(named, pa.string()))
    for name in OF_RANK:
        table = table.append_column(name, of_part[name])
    known = [name for name in table.column_names if name == C.RANK or table[name].null_count < table.num_rows]
    return ResultTable(table.select(known), part, is_ordered=True)


def _short(number: float | None) -> str:
    """Write a number in a sentence: a whole one as such, others with at least four digits."""
    if number is None or number.is_integer():
        return wording.number(number, 0)
    return wording.number(number, max(_DECIMALS, wording.decimals((), [number])))


def _cell(value: Any, places: int | None) -> str:  # noqa: ANN401 - a cell of any column
    """Write a cell: empty for None, a gain as short as it is."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:g}" if places is None else wording.number(value, places)
    return visible(str(value))
