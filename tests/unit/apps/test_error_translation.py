"""A failed job ends as a sentence: what a worker raises is found in the text that Spark makes of it."""

from __future__ import annotations

import errno
import traceback

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from rankeval_spark.apps import error_translation
from rankeval_spark.cli.terminal import headline
from rankeval_spark.errors import ChecksFailedError, ConfigError, EnvironmentFaultError, Fault, JudgementError, note
from rankeval_spark.measures import Lists, MeasureSet, Ranking
from rankeval_spark.refusals import raise_as_call


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


@pytest.mark.parametrize(
    "measure", ["nDCG(gains={1:1,2:3})@5", "RBP@5", "ERR@5", "nERR", "nDCG(dcg='exp-log2')@5", "DCG(dcg='exp-log2')"]
)
def test_refused_judgement_ends_as_one_readable_fault(measure: str) -> None:
    raised = failure_of(measure, Ranking([2000]))
    translated = error_translation.translate_error(as_spark_reports(raised), {})
    assert isinstance(translated, ChecksFailedError)
    assert translated.faults == raised.faults
    assert all([raised.faults[0].found, raised.faults[0].expected, raised.faults[0].fix])


def test_policy_that_met_its_case_is_named() -> None:
    error = RuntimeError(
        "[USER_RAISED_EXCEPTION] [rankeval:ties] a list with tied scores, and the policy ties is 'error'"
    )
    translated = error_translation.translate_error(error, {})
    assert isinstance(translated, ChecksFailedError)
    assert translated.faults[0] == Fault(
        "policies.ties", "a list with tied scores", "no such case", "choose another policy: item_asc, item_desc or rank"
    )


def test_input_that_cannot_be_used_is_named_without_a_policy() -> None:
    error = RuntimeError(
        "[USER_RAISED_EXCEPTION] [rankeval:items] vectors of two lengths, 2 numbers for 'a' and 3 numbers for 'c'; "
        "expected one length; fix: give each item a vector of one length. SQLSTATE: P0001\n\tat org.x.Y"
    )
    translated = error_translation.translate_error(error, {})
    assert isinstance(translated, ChecksFailedError)
    found = "vectors of two lengths, 2 numbers for 'a' and 3 numbers for 'c'"
    assert translated.faults == (Fault("inputs.items", found, "one length", "give each item a vector of one length"),)


def test_other_failures_stay_what_they_are() -> None:
    error = RuntimeError("Job aborted due to stage failure: out of memory")
    assert error_translation.translate_error(error, {}) is error


@pytest.mark.parametrize(
    "text",
    [
        "[Errno 28] No space left on device: '/results/_locks/runs/00000001'",
        "Job aborted: Task 0 in stage 3.0: java.io.IOException: No space left on device\n\tat java.io.X",
    ],
)
def test_a_full_disk_is_reported_as_one(text: str) -> None:
    error = OSError(text)
    note(error, "run r could not be recorded as FAILED: no room")

    known = error_translation.translate_error(error, {})

    assert isinstance(known, EnvironmentFaultError)
    assert "disk: found no room: No space left on device; expected room for staging" in str(known)
    assert headline(known).endswith("\nrun r could not be recorded as FAILED: no room")


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        Py4JError("An error occurred while calling o57.save"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_a_lost_driver_is_reported_as_such(error: Exception) -> None:
    with (
        pytest.raises(EnvironmentFaultError, match="Spark driver: found its JVM gone"),
        error_translation.translated_errors(),
    ):
        raise error


def test_a_call_that_java_refused_is_no_driver_that_is_gone() -> None:
    error = Py4JError("An error occurred while calling o5.f. Trace:\npy4j.Py4JException: Method f([]) does not exist")
    assert error_translation.translate_error(error, {}) is error


def test_limit_that_is_exceeded_is_named_as_the_setting_it_is() -> None:
    error = RuntimeError(
        "PythonException: [rankeval:max_rows_per_user] user 'robot' with 9 rows or more in all inputs together; "
        "expected at most 5; fix: leave this user out, or raise max_rows_per_user.\n\tat org.x.Y"
    )
    translated = error_translation.translate_error(error, {})
    assert isinstance(translated, ChecksFailedError)
    assert translated.faults[0].where == "inputs.max_rows_per_user"
    assert translated.faults[0].fix.endswith("raise max_rows_per_user")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EROFS, "Read-only file system", "/results/metrics"),
        PermissionError(errno.EACCES, "Permission denied", "/results/_locks"),
        RuntimeError("java.io.IOException: /results/lists (Read-only file system)"),
    ],
    ids=["mounted read-only", "no permission", "Java"],
)
def test_a_root_that_turns_read_only_is_a_matter_of_its_set_up(error: Exception) -> None:
    for known in (error_translation.translate_error(error, {}), error_translation.machine_fault(error)):
        assert isinstance(known, ConfigError)
        assert known.exit_code == 2
        assert "/results/" in known.faults[0].found


def test_a_job_that_fails_because_it_was_interrupted_is_an_interruption() -> None:
    """Pyspark cancels its jobs on an interruption, and then raises what became of one."""

    @raise_as_call()
    def fail(*, is_interrupted: bool) -> None:
        try:
            if is_interrupted:
                raise KeyboardInterrupt
        finally:
            message = "Job 0 cancelled"
            raise RuntimeError(message)

    with pytest.raises(KeyboardInterrupt):
        fail(is_interrupted=True)
    with pytest.raises(RuntimeError, match="Job 0 cancelled"):
        fail(is_interrupted=False)
