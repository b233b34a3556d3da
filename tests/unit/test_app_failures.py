"""A failed job ends as a sentence: what a worker raises is found in the text that Spark makes of it."""

from __future__ import annotations

import traceback

import pytest

from rankeval_spark.app import failures
from rankeval_spark.errors import ChecksFailedError, Fault, JudgementError
from rankeval_spark.measures import Lists, MeasureSet, Ranking


def as_spark_reports(error: Exception) -> RuntimeError:
    """Wrap a worker's traceback as the message of a failed job does."""
    lines = "".join(traceback.format_exception(error))
    return RuntimeError(
        f"Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times: PythonException:\n{lines}\n\tat org.x.Y"
    )


def failure_of(measure: str, ranking: Ranking) -> JudgementError:
    """Score one list that the measure refuses."""
    with pytest.raises(JudgementError) as caught:
        MeasureSet.parse([measure]).score(Lists.of([ranking]))
    return caught.value


@pytest.mark.parametrize("measure", ["nDCG(gains={1:1,2:3})@5", "RBP@5", "ERR@5", "nERR"])
def test_refused_judgement_ends_as_one_readable_fault(measure: str) -> None:
    raised = failure_of(measure, Ranking([5]))
    translated = failures.translated(as_spark_reports(raised), {})
    assert isinstance(translated, ChecksFailedError)
    assert translated.faults == raised.faults
    assert all([raised.faults[0].found, raised.faults[0].expected, raised.faults[0].fix])


def test_policy_that_met_its_case_is_named() -> None:
    error = RuntimeError(
        "[USER_RAISED_EXCEPTION] [rankeval:ties] a list with tied scores, and the policy ties is 'error'"
    )
    translated = failures.translated(error, {})
    assert isinstance(translated, ChecksFailedError)
    assert translated.faults[0] == Fault(
        "policies.ties", "a list with tied scores", "no such case", "choose another policy: item_asc, item_desc or rank"
    )


def test_other_failures_stay_what_they_are() -> None:
    error = RuntimeError("Job aborted due to stage failure: out of memory")
    assert failures.translated(error, {}) is error
