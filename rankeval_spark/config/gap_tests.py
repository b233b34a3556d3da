"""Arguments of the tests of gaps between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankeval_spark.config.base import Model
from rankeval_spark.config.inference import Replicates, Seed
from rankeval_spark.config.loading import validate_model
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.statistics.multiple_testing import Correction
from rankeval_spark.statistics.resampling import Draws

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark.config.request import Request
    from rankeval_spark.measures import Measure


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


@dataclass(frozen=True)
class GapTestRequest:
    """Valid request: measures that are means over users, random draws, and the correction."""

    measures: tuple[Measure, ...]
    draws: Draws
    correction: Correction

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return True if a row of ``metrics`` belongs to one of the measures at its cutoff."""
        return (row["measure"], row["k"]) in {(one.label, one.k) for one in self.measures}


def gap_test_request(given: Mapping[str, Any], request: Request, *, has_one_list: bool) -> GapTestRequest:
    """Validate the arguments of ``gap_tests``; ConfigError with all faults at once."""
    options = validate_model(GapTests, given, locate=_place)
    if request.policies.unit == "list" and not has_one_list:
        found, expected = "users with several lists, and means over lists", "means over users"
        raise ConfigError(Fault("gap_tests", found, expected, "evaluate with unit='user'"))
    draws = Draws(options.replicates, options.seed)
    return GapTestRequest(tuple(_tested(options, request)), draws, options.correction)


def _tested(options: GapTests, request: Request) -> list[Measure]:
    """Find the measures to test: means over users."""
    measures = request.measure_set
    means = [one for one in measures.per_list if one.column in measures.comparable and one.weight_column is None]
    known = {str(one): one for one in means}
    others = {str(one) for one in measures.measures} - known.keys()
    faults = []
    if not request.slices:
        faults.append(Fault("evaluate(slices=)", "none", "segments whose groups are compared"))
    for index, name in enumerate(options.measures or ()):
        where = _place(("measures", index))
        if name in others:
            faults.append(Fault(where, repr(name), "a measure that is a mean over users"))
        elif name not in known:
            expected = f"a measure of the evaluation: {', '.join(known)}"
            faults.append(Fault(where, repr(name), expected, nearest(name, list(known))))
    if not known and not options.measures:
        faults.append(Fault(_place(("measures",)), "none", "a measure that is a mean over users"))
    if faults:
        raise ConfigError(*faults)
    return means if options.measures is None else [known[name] for name in dict.fromkeys(options.measures)]


def _place(place: tuple[str | int, ...]) -> str:
    name, *rest = place or ("",)
    return f"gap_tests({name}=)" + "".join(f"[{part}]" for part in rest)
