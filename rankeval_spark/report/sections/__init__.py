"""The sections of the page, in the order in which they are read; one without data says how to get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from rankeval_spark.report.sections.groups import groups, tradeoffs
from rankeval_spark.report.sections.health_and_provenance import definitions, health, provenance
from rankeval_spark.report.sections.means import comparison, curves, history, leaderboard
from rankeval_spark.report.sections.users import distributions, precision_recall

if TYPE_CHECKING:
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_charts import Drawer
    from rankeval_spark.report.page_parts import Section

Builder: TypeAlias = "Callable[[Night, Drawer], Section]"

BUILDERS: Final[tuple[Builder, ...]] = (
    leaderboard,
    comparison,
    curves,
    history,
    precision_recall,
    distributions,
    groups,
    tradeoffs,
    health,
    definitions,
    provenance,
)


def all_sections(night: Night, drawer: Drawer) -> list[Section]:
    """Build every section."""
    return [build(night, drawer) for build in BUILDERS]
