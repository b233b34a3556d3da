"""The results of this process as frames: light, over Arrow, that show themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault, InvalidCallError, listed, nearest
from rankeval_spark.measures import registry
from rankeval_spark.measures.own import name_measure
from rankeval_spark.report import layouts

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from rankeval_spark.measures import Definition

_SAME_ROWS: Final = frozenset({"sort_by", "slice", "take"})
"""Calls after which the rows are shown in the order they have."""


NAMES: Final = (C.MODEL_ID, C.SLICE, C.MEASURE)
"""Columns of which a wrong value is refused where rows are kept by it."""


class _Groups(pa.TableGroupBy):  # type: ignore[misc]  # pyarrow has no types
    """Groups of rows, whose aggregates are shown as the table is."""

    def aggregate(self, aggregations: Sequence[Any]) -> ResultTable:
        return ResultTable(super().aggregate(aggregations))


class ResultTable:
    """Rows of a result, over a table of Arrow.

    A notebook and a terminal show it sorted and cut, with the best values in bold. ``to_pandas()``, ``to_polars()`` and
    ``to_arrow()`` hand the rows on; so do ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and
    ``duckdb.sql("FROM table")``, by Arrow's stream. ``to_markdown()`` and ``to_latex()`` write them for a text.

    ``where(measure="nDCG@10", slice="all")`` keeps rows. All other names are those of :class:`pyarrow.Table`, such as
    ``column_names``, ``num_rows``, ``schema``, ``column(name)``, ``select``, ``filter``, ``sort_by``, ``slice``,
    ``group_by``, ``to_pylist`` and ``to_pydict``; what returns a table there returns a ResultTable here. A loop yields
    rows as dictionaries.

    Examples
    --------
    >>> from rankeval_spark import evaluate
    >>> log = {"model_id": ["als", "als", "knn", "knn"], "user_id": [1, 1, 1, 1], "item_id": [7, 8, 9, 7]}
    >>> log = pa.table({**log, "rank": [1, 2, 1, 2]})
    >>> board = evaluate(log, pa.table({"user_id": [1], "item_id": [7]}), measures=["RR@2", "P@2"]).leaderboard()
    >>> board
    leaderboard: 2 models
    model   RR@2     P@2  users
    als    1.000  0.5000      1
    knn    0.500  0.5000      1
    >>> board.where(model_id="als").num_rows
    1
    >>> [row["model_id"] for row in board.filter(pa.compute.field("RR@2") == 1)]
    ['als']
    """

    def __init__(
        self,
        table: pa.Table,
        name: str = "",
        *,
        comparisons: pa.Table | None = None,
        is_ordered: bool = False,
        own: tuple[Definition, ...] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self._table = table
        self._name = name  # of the result, such as "metrics"
        self._comparisons = comparisons  # of the models of a leaderboard
        self._is_ordered = is_ordered  # by the user, and shown so
        self._own = own  # measures of the evaluation that are functions: which value of them is the better one
        self._notes = notes  # what is to be known of the values

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever pyarrow.Table has
        if name.startswith("_"):
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        try:
            found = getattr(self._table, name)
        except AttributeError:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message) from None
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
            plain = [given.to_arrow() if isinstance(given, ResultTable) else given for given in arguments]
            return self._wrap(found(*plain, **options), is_ordered=name in _SAME_ROWS)

        call.__name__, call.__doc__ = name, found.__doc__
        return call

    def _wrap(self, found: Any, *, is_ordered: bool) -> Any:  # noqa: ANN401 - a result of pyarrow
        if not isinstance(found, pa.Table):
            return found
        is_ordered |= self._is_ordered
        return ResultTable(
            found,
            self._name,
            comparisons=self._comparisons,
            is_ordered=is_ordered,
            own=self._own,
            notes=self._notes,
        )

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(name for name in dir(pa.Table) if not name.startswith("_"))})

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._table.to_batches(max_chunksize=10_000):
            yield from batch.to_pylist()

    def __getitem__(self, key: str | int | slice) -> Any:  # noqa: ANN401 - a column, or rows as a table
        return self._wrap(self._table[key], is_ordered=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResultTable | pa.Table) and self.equals(other)

    __hash__ = None  # type: ignore[assignment]  # as a table of Arrow

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.schema.__arrow_c_schema__()

    def __dataframe__(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the interchange of data frames
        return self._table.__dataframe__(*arguments, **options)

    def __narwhals_dataframe__(self) -> object:
        import narwhals  # noqa: PLC0415 - the library that asks, such as Altair, brings it

        return narwhals.from_native(self._table)._compliant_frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns, as pandas and polars have them."""
        return list(self._table.column_names)

    def equals(self, other: object, **options: bool) -> bool:
        """Return whether a table has the rows and columns of ``other``; ``options`` as :meth:`pyarrow.Table.equals`."""
        return bool(self._table.equals(other.to_arrow() if isinstance(other, ResultTable) else other, **options))

    def where(self, **values: object) -> ResultTable:
        """Keep the rows in which each named column has a value, or one of a list of values.

        A measure may have its cutoff: ``where(measure="nDCG@10", slice=["all", "country"])``. InvalidCallError for a
        column, model, slice or measure that the table does not have.
        """
        faults, kept = [], self._table
        for name, value in values.items():
            if name not in self.columns:
                fix = nearest(name, self.columns)
                faults.append(Fault(f"where({name}=)", "no such column", listed(name, self.columns), fix))
                continue
            several = [*value] if isinstance(value, Collection) and not isinstance(value, str) else [value]
            several = [*map(name_measure, several)] if name == C.MEASURE else several
            for each in several:
                try:
                    found = _has_value(self._table, name, each)
                except (pa.ArrowInvalid, pa.ArrowTypeError):
                    faults.append(
                        Fault(f"where({name}=)", repr(each), f"a value of type {self.schema.field(name).type}")
                    )
                    continue
                if name in NAMES and self._table.num_rows and not pc.any(found).as_py():
                    there = sorted(map(str, pc.unique(self._table[name]).to_pylist()))
                    known, fix = listed(str(each), there), nearest(str(each), there)
                    faults.append(Fault(f"where({name}=)", f"{each!r}, which no row has", known, fix))
            if not faults:
                kept = kept.filter(reduce(pc.or_, [_has_value(kept, name, each) for each in several]))
        if faults:
            raise InvalidCallError(*faults)
        rows: ResultTable = self._wrap(kept, is_ordered=False)
        return rows

    def group_by(self, keys: str | Sequence[str], **options: Any) -> _Groups:  # noqa: ANN401 - of pyarrow
        """Group the rows by ``keys``, to be aggregated; ``options`` as :meth:`pyarrow.Table.group_by`."""
        return _Groups(self._table, keys, **options)

    def to_arrow(self) -> pa.Table:
        """Return the table of Arrow; nothing is copied."""
        return self._table

    def to_pandas(self, **options: Any) -> pd.DataFrame:  # noqa: ANN401 - those of pyarrow
        """Return a DataFrame of pandas; ``options`` as :meth:`pyarrow.Table.to_pandas`."""
        found: pd.DataFrame = self._table.to_pandas(**options)
        return found

    def to_polars(self) -> pl.DataFrame:
        """Return a DataFrame of polars, which must be installed."""
        import polars  # noqa: PLC0415 - no part of this package needs it

        return polars.DataFrame(self._table)

    def to_markdown(self) -> str:
        """Return all rows as a table of Markdown, with the best values in bold.

        Letters name the models that a model is significantly better than, as in :meth:`to_latex`.
        """
        return layouts.to_markdown(self._lay_out(most=None))

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Return all rows as a table of LaTeX, which needs the package ``booktabs``.

        Best values are in bold. In a leaderboard with comparisons each model has a letter, and superscripts name the
        models that it is significantly better than, after the correction; the caption says by which test.

        Parameters
        ----------
        caption : str, optional
            Text before the explanation of the marks.
        label : str, optional
            Such as ``"tab:models"``, for references.
        """
        return layouts.to_latex(self._lay_out(most=None), caption=caption, label=label)

    def __repr__(self) -> str:
        return layouts.to_text(self._lay_out(most=layouts.MAX_ROWS))

    def _repr_html_(self) -> str:
        return layouts.to_html(self._lay_out(most=layouts.MAX_ROWS))

    def _lay_out(self, most: int | None) -> layouts.Layout:
        with registry.knowing(self._own):
            layout = layouts.lay_out(
                self._table, self._name, comparisons=self._comparisons, is_ordered=self._is_ordered, most=most
            )
        return layout._replace(notes=[*layout.notes, *self._notes])


def _has_value(table: pa.Table, name: str, value: object) -> Any:  # noqa: ANN401 - truth values of pyarrow
    """Return which rows have a value; a measure with its cutoff is one with that ``k``."""
    found = pc.is_in(table[name], value_set=pa.array([value], table[name].type))
    label, _, k = str(value).rpartition("@")
    if name == C.MEASURE and C.K in table.column_names and label and k.isdecimal():
        found = pc.or_(found, pc.and_(pc.equal(table[name], label), pc.equal(table[C.K], int(k))))
    return found
