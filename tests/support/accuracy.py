"""Which measures are about finding what is relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition

_UNDEFINED = ("no relevant judgement", "no judgement with a positive gain")


def is_accuracy(entry: Definition) -> bool:
    """Return True if a measure has no value for a user without a relevant judgement."""
    return entry.undefined.startswith(_UNDEFINED)
