"""Frames that are none, told before anything is run."""

from __future__ import annotations

import pandas as pd
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import InputError


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ((pd.DataFrame(), "logs/held_out"), ("a pandas.DataFrame", "a str")),
        ((None, None), ("None", "None")),
    ],
)
def test_frames_of_other_libraries_are_refused_together(frames: tuple[object, object], found: tuple[str, str]) -> None:
    with pytest.raises(InputError) as raised:
        evaluate(*frames, measures=["nDCG@10"])  # type: ignore[arg-type]  # on purpose
    told = [(fault.where, fault.found) for fault in raised.value.faults]
    assert told == [("evaluate(recommendations=)", found[0]), ("evaluate(held_out=)", found[1])]
