"""Checks of tables in memory and of scored rows, as an evaluation judges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.hosts.in_process import InProcess
from rankeval_spark.in_process.assembly import Usable
from rankeval_spark.result_rows.check_rows import CheckCount, to_check_rows
from rankeval_spark.sums.check_counts import count_lists, to_list_facts
from rankeval_spark.sums.input_checks import BANDS, BandFacts

if TYPE_CHECKING:
    from rankeval_spark.config import Checks
    from rankeval_spark.config.request import Request
    from rankeval_spark.inputs.arrow.reading import Tables


def to_facts(tables: Tables, request: Request, band_facts: Sequence[CheckCount] = ()) -> list[CheckCount]:
    """Count what is wrong with the inputs; without facts of bands, those of the inputs themselves."""
    host = InProcess(Usable(tables, request, 1))
    asked, totals = host.input_checks, host.input_totals()
    if band_facts:
        asked = replace(asked, has_bands=True)
        totals[BANDS] = pa.Table.from_pylist([asdict(one) for one in band_facts], BandFacts.schema)
    return asked.facts(totals)


def to_checks(
    tables: Tables, scored: pa.Table, request: Request, checks: Checks, band_facts: Sequence[CheckCount] = ()
) -> pa.Table:
    """Count what is wrong with the inputs and with lists; ``scored`` has a row per list and cutoff."""
    lists = scored.filter(pc.equal(scored[C.K], request.measure_set.last_cutoff))
    of_lists = to_list_facts(count_lists(lists, request), request)
    return to_check_rows([*to_facts(tables, request, band_facts), *of_lists], checks)
