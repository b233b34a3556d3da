"""What a request needs of the inputs and does not find there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from rankeval_spark import columns as C
from rankeval_spark.errors import Fault, InputError

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request

LOG: Final = "recommendations"
HELD_OUT: Final = "held_out"


def refuse_missing(given: Mapping[str, Collection[str]], request: Request) -> None:
    """Refuse inputs that lack what the request needs.

    Parameters
    ----------
    given : mapping
        Canonical columns that each input has, by its name.

    Raises
    ------
    InputError
        If a policy or the expected models need a column that the log does not have, or a measure an input or a column
        of one; all faults at once.
    """
    faults = [
        *_missing_columns(given, request),
        *_missing_inputs(given, request),
        *_unknown_columns(given, request),
    ]
    if faults:
        raise InputError(*faults)


def _missing_columns(given: Mapping[str, Collection[str]], request: Request) -> list[Fault]:
    """Find what would otherwise fail in the middle of a plan, or leave every list out silently."""
    log, policies = given[LOG], request.policies
    faults = []
    if policies.ties == "rank" and C.RANK not in log:
        faults.append(Fault(LOG, "no column 'rank'", "ranks, which ties='rank' goes by", "choose other ties"))
    if policies.rank_gaps == "keep" and C.RANK not in log:
        expected, fix = "ranks, which rank_gaps='keep' goes by", "set rank_gaps to renumber"
        faults.append(Fault(LOG, "no column 'rank'", expected, fix))
    if policies.held_out_duplicates == "last" and C.INTERACTED_AT not in given[HELD_OUT]:
        expected, fix = "times, which held_out_duplicates='last' goes by", "choose another policy, such as max"
        faults.append(Fault(HELD_OUT, "no column 'interacted_at'", expected, fix))
    unscored = [str(one) for one in request.measures.measures if C.HIT_SCORES in one.needs]
    if unscored and policies.rank_gaps == "keep":
        fix = "set rank_gaps to renumber, or leave these measures out"
        faults.append(Fault("rank_gaps", "'keep', which leaves the scores aside", f"scores for {unscored[0]}", fix))
    elif unscored and C.SCORE not in log:
        fix = "give the log its scores, or leave these measures out"
        faults.append(Fault(LOG, "no column 'score'", f"scores, which {', '.join(unscored)} read", fix))
    if C.MODEL_ID not in log and request.models not in (None, (C.ONE_MODEL,)):
        fix = "leave the models out; a log without names has one model"
        faults.append(Fault(LOG, "no column 'model_id'", "one, where models are named", fix))
    return faults


def _missing_inputs(given: Mapping[str, Collection[str]], request: Request) -> list[Fault]:
    """Find measures that need all items there are, where nothing names them."""
    needing = ", ".join(str(measure) for measure in request.measures.measures if measure.needs_catalogue)
    if not needing or "items" in given or "train" in given:
        return []
    expected = "the catalogue: the input items, or train, whose items then are all there are"
    return [Fault("measures", f"{needing} without a catalogue", expected)]


def _unknown_columns(given: Mapping[str, Collection[str]], request: Request) -> list[Fault]:
    """Find inputs without a column that a measure reads."""
    required = [(one.partition("."), labels) for one, labels in request.measures.requiring().items() if "." in one]
    return [
        Fault(
            name,
            f"no column {column!r}",
            f"one, for {', '.join(labels)}",
            f"name it under {name}.columns.{column}",
        )
        for (name, _, column), labels in required
        if column not in given.get(name, ())
    ]
