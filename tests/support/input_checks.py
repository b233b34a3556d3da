"""Checks of tables in memory and of scored rows, as an evaluation judges them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.in_process.input_checks import RowFacts
from rankeval_spark.result_rows.check_rows import CheckCount, to_check_rows
from rankeval_spark.sums.check_counts import list_counts, list_facts

if TYPE_CHECKING:
    from rankeval_spark.config import Checks
    from rankeval_spark.config.request import Request
    from rankeval_spark.inputs.arrow.input_tables import Tables


def to_checks(
    tables: Tables, scored: pa.Table, request: Request, checks: Checks, band_facts: Sequence[CheckCount] = ()
) -> pa.Table:
    """Count what is wrong with the inputs and with lists; ``scored`` has a row per list and cutoff."""
    lists = scored.filter(pc.equal(scored[C.K], request.measure_set.last_cutoff))
    of_lists = list_facts(list_counts(lists, request), request)
    return to_check_rows([*RowFacts(tables, request).all(band_facts), *of_lists], checks)
