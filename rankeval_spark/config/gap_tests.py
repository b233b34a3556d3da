"""Arguments of the tests of gaps between groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankeval_spark.config.base import Model
from rankeval_spark.config.inference import Replicates, Seed
from rankeval_spark.config.loading import argument_of, validate_model
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import with_cutoff
from rankeval_spark.statistics.multiple_testing import Correction
from rankeval_spark.statistics.resampling import Draws

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.request import Request


class GapTests(Model):
    """Arguments of ``gap_tests``."""

    measures: tuple[str, ...] | None = None
    """Measures of the evaluation with their cutoffs; None: all that can be tested."""
    replicates: Replicates = 1000
    """Random draws."""
    seed: Seed = 0
    """Seed of the draws."""
    correction: Correction = "holm"
    """Correction for the number of tests."""

    @property
    def draws(self) -> Draws:
        """Random draws of the users."""
        return Draws(self.replicates, self.seed)

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return True if a row of ``metrics`` belongs to one of the measures at its cutoff."""
        return with_cutoff(row["measure"], row["k"]) in (self.measures or ())


def gap_tests_of(given: Mapping[str, Any], request: Request, *, has_one_list: bool) -> GapTests:
    """Validate the arguments of ``gap_tests`` and find the measures to test, which are means over users.

    ConfigError with all faults at once.
    """
    place = argument_of("gap_tests")
    asked = validate_model(GapTests, given, locate=place)
    if request.policies.unit == "list" and not has_one_list:
        found, expected = "users with several lists, and means over lists", "means over users"
        raise ConfigError(Fault("gap_tests", found, expected, "evaluate with unit='user'"))
    measures = request.measure_set
    means = [one for one in measures.per_list if one.column in measures.comparable and one.weight_column is None]
    known = [str(one) for one in means]
    others = {str(one) for one in measures.measures} - {*known}
    faults = []
    if not request.slices:
        faults.append(Fault("evaluate(slices=)", "none", "segments whose groups are compared"))
    for index, name in enumerate(asked.measures or ()):
        where = place(("measures", index))
        if name in others:
            faults.append(Fault(where, repr(name), "a measure that is a mean over users"))
        elif name not in known:
            expected = f"a measure of the evaluation: {', '.join(known)}"
            faults.append(Fault(where, repr(name), expected, nearest(name, known)))
    if not known and not asked.measures:
        faults.append(Fault(place(("measures",)), "none", "a measure that is a mean over users"))
    if faults:
        raise ConfigError(*faults)
    return asked.model_copy(update={"measures": tuple(known) if asked.measures is None else asked.measures})
