"""One measure of the judged items alone, beside others of all: from the tables to the users' values."""

from __future__ import annotations

from typing import Any, Final

import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError
from tests.support.arrow_frames import by, judgements, ranking, tuples, where
from tests.support.item_groups import Case
from tests.support.sections import sections

OF_SUMS: Final = (
    *("P@3", "P(denom='len')@3", "R@2", "Success@1", "RR", "AP", "AP(agg='micro',denom='min')@4", "Rprec"),
    *("nDCG@3", "nDCG(agg='micro',dcg='exp-log2')", "nDCG(gains='value')@3", "nDCG(group='tail')@3", "RBP(rel=1)@5"),
)
ANY: Final = (*OF_SUMS, "ERR@3", "IPrec@0.5", "PAUC@2", "AP(denom='hits')", "nDCG(ideal='retrieved')@4")


def alone(text: str) -> str:
    """Write the measure with the option."""
    head, at, k = text.partition("@")
    if head == "IPrec":
        return f"IPrec(recall={k},judged_only=True)"
    return (f"{head[:-1]},judged_only=True)" if "(" in head else f"{head}(judged_only=True)") + at + k


class WithPool(Case):
    """Random tables in which some of the judged items were pooled and not judged, as trec_eval's -1 says."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        for place, held in enumerate(self.held.values()):
            first, (_, value) = next(iter(held.items()))
            held[first] = (-1.0 if place % 3 == 0 else held[first][0], value)


@pytest.mark.parametrize(
    ("measures", "policies"),
    [
        pytest.param(ANY, {}, id="ties by item"),
        pytest.param(OF_SUMS, {"ties": "expected", "population": "judged"}, id="means over ties"),
    ],
)
def test_option_gives_the_values_of_the_policy_to_the_bit(measures: tuple[str, ...], policies: dict[str, Any]) -> None:
    inputs = WithPool(seed=21).tables()
    by_option = evaluate(**sections(**inputs, measures=list(map(alone, measures)), **policies))
    by_policy = evaluate(**sections(**inputs, measures=list(measures), judged_only=True, **policies))
    found, expected = (
        sorted(tuples(result.user_values, "user_id", "k", "value"), key=repr) for result in (by_option, by_policy)
    )
    assert len(found) > 40
    assert found == expected
    labels = dict(zip(by_option.request.measure_set.labels, by_policy.request.measure_set.labels, strict=True))
    values = {
        (labels[measure], *rest) for measure, *rest in tuples(by_option.user_values, "measure", "k", "user_id", "value")
    }
    assert values == {tuple(row) for row in tuples(by_policy.user_values, "measure", "k", "user_id", "value")}


def test_all_items_of_a_list_reach_the_measure_and_its_counts_stay_those_of_the_run() -> None:
    """The largest cutoff is 1, the judged items stand at ranks 5 and 6. Of Cat's list nothing is left."""
    log = ranking({"ann": "v w x y b a", "cat": "x y"})
    held_out = judgements({"ann": {"a": 1, "b": 0}, "cat": {"c": 1}})
    result = evaluate(log, held_out, measures=["R(judged_only=True)@2", "RR@1", "P(judged_only=True)@1"])
    assert by(where(result.user_metrics, k=2), "user_id", value="r_judged_only_true") == {"ann": 1 / 1, "cat": 0.0}
    assert by(where(result.user_metrics, k=1), "user_id", value="p_judged_only_true") == {"ann": 0.0, "cat": 0.0}
    assert sorted(tuples(where(result.user_metrics, k=2), "user_id", "n_recommended", "n_hits")) == [
        ("ann", 2, 0),
        ("cat", 2, 0),
    ]
    assert set(tuples(result.metrics, "n_missing")) == {(0,)}


def test_lists_that_keep_the_ranks_of_the_log_cannot_close_up_for_one_measure() -> None:
    log, held_out = ranking({"ann": "x a"}), judgements({"ann": {"a": 1}})
    found = r"evaluate\(measures=\): found RR\(judged_only=True\) with rank_gaps='keep'.*pass policies={'rank_gaps': "
    with pytest.raises(ConfigError, match=found):
        evaluate(log, held_out, measures=["RR(judged_only=True)", "RR"], policies={"rank_gaps": "keep"})
