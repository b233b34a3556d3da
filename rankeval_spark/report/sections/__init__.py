"""The sections of the page, in the order in which they are read; one without data says how to get them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rankeval_spark.report.sections.groups import groups_section, tradeoffs_section
from rankeval_spark.report.sections.health_and_provenance import definitions_section, health_section, provenance_section
from rankeval_spark.report.sections.means import (
    comparison_section,
    curves_section,
    history_section,
    leaderboard_section,
)
from rankeval_spark.report.sections.users import distributions_section, precision_recall_section

if TYPE_CHECKING:
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_charts import Drawer
    from rankeval_spark.report.page_parts import Section

BUILDERS: Final = (
    leaderboard_section,
    comparison_section,
    curves_section,
    history_section,
    precision_recall_section,
    distributions_section,
    groups_section,
    tradeoffs_section,
    health_section,
    definitions_section,
    provenance_section,
)


def all_sections(night: Night, drawer: Drawer) -> list[Section]:
    """Build every section."""
    return [build(night, drawer) for build in BUILDERS]
