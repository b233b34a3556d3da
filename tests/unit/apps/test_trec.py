"""The values of ``rankeval trec`` are those of trec_eval: of its version 9 by pytrec_eval, of 10 where it differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import pytrec_eval

from rankeval_spark.apps.trec_report import Settings, evaluate_files
from rankeval_spark.measures import Lists, MeasureSet
from tests.support import oracles
from tests.support.trec import random_topics, write_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rankeval_spark.apps.trec_report import Report
    from rankeval_spark.config.policies import OwnItem
    from tests.support.trec import Judgements, Runs

NOT_NUMBERS = ("runid", "num_q", "relstring")
WITH_PARAMETERS = (
    *("P.1,3,10", "recall.1,3", "ndcg_cut.1,3,100", "map_cut.2,7", "relative_P.3,9", "success.1,2"),
    *("Rprec_mult.0.3,1.7", "iprec_at_recall.0,0.15,0.33,0.7,1", "set_F.0.25"),
)


def of_trec_9(
    run: Runs,
    judgements: Judgements,
    measures: Iterable[str] = pytrec_eval.supported_measures,
    *,
    level: int = 1,
    judged_only: bool = False,
) -> dict[str, dict[str, float]]:
    """Ask trec_eval 9, topic by topic; where -J leaves no document, it divides 0 by 0, which is 0 here."""
    evaluator = pytrec_eval.RelevanceEvaluator(
        judgements, set(measures), relevance_level=level, judged_docs_only_flag=judged_only
    )
    return {
        topic: {name: 0.0 if np.isnan(value) else value for name, value in values.items()}
        for topic, values in evaluator.evaluate(run).items()
    }


def by_topic(report: Report) -> dict[str, dict[str, float]]:
    """Turn the values of a report into a dictionary of each topic."""
    return {
        topic: {name: float(values[place]) for name, values in report.values.items()}
        for place, topic in enumerate(report.matched.topics)
    }


def assert_same(found: dict[str, dict[str, float]], expected: dict[str, dict[str, float]]) -> None:
    """Compare the values of all topics by name, those that both know; theirs of geometric means are logarithms."""
    assert found.keys() == expected.keys()
    for topic, values in expected.items():
        names = sorted((values.keys() & found[topic].keys()) - {"gm_map", "gm_bpref"})
        np.testing.assert_allclose(
            [found[topic][name] for name in names],
            [values[name] for name in names],
            rtol=0,
            atol=1e-9,
            err_msg=f"{topic}: {names}",
        )


def cut(run: Runs, max_documents: int) -> Runs:
    """Keep the first documents of each topic, in the order of version 9."""
    single = {
        topic: {each: float(np.float32(score)) for each, score in scores.items()} for topic, scores in run.items()
    }
    return {
        topic: {each: scores[each] for each in oracles.trec_order(scores)[:max_documents]}
        for topic, scores in single.items()
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("judged_only", [False, True], ids=["", "-J"])
def test_every_value_of_every_topic_is_that_of_trec_eval_9(
    tmp_path: Path, seed: int, level: int, judged_only: bool
) -> None:
    run, judgements = random_topics(seed)
    measures = ["all_trec", *WITH_PARAMETERS]
    settings = Settings(measures=measures, level=level, judged_only=judged_only, version=9)

    found = by_topic(evaluate_files(*write_files(tmp_path, run, judgements), settings))

    theirs = of_trec_9(run, judgements, level=level, judged_only=judged_only)
    for topic, values in of_trec_9(run, judgements, WITH_PARAMETERS, level=level, judged_only=judged_only).items():
        theirs[topic] |= {**values, "set_F": theirs[topic]["set_F"], "set_F_0.25": values["set_F"]}
    assert all(len(values.keys() & found[topic].keys()) == 104 for topic, values in theirs.items())
    assert_same(found, theirs)
    for topic, values in theirs.items():
        assert found[topic].keys() == values.keys() - {"binG", "G", "ndcg_rel", "Rndcg", *NOT_NUMBERS}


@pytest.mark.parametrize("own_item", ["keep", "drop", "drop_both"])
def test_topics_among_the_documents_are_left_out_as_if_no_file_had_them(tmp_path: Path, own_item: OwnItem) -> None:
    """BEIR takes a document that is its own query out of the run alone, and leaves the rest to trec_eval."""
    drawn, judged = random_topics(seed=23)
    run = {topic: {**scores, topic: 9.0} for topic, scores in drawn.items()}
    judgements = {topic: {**grades, topic: 1} for topic, grades in judged.items()}
    settings = Settings(measures=["all_trec"], own_item=own_item, version=9)
    found = by_topic(evaluate_files(*write_files(tmp_path, run, judgements), settings))
    of_run, of_both = own_item != "keep", own_item == "drop_both"
    assert_same(found, of_trec_9(drawn if of_run else run, judged if of_both else judgements))


@pytest.mark.parametrize("max_documents", [None, 4])
def test_measure_of_judged_documents_alone_is_what_j_makes_of_all_measures(
    tmp_path: Path, max_documents: int | None
) -> None:
    files = write_files(tmp_path, *random_topics(seed=21))
    names = ["P@5", "AP", "nDCG@3", "RR", "SetP", "IPrec@0.5"]
    alone = [f"{name.partition('@')[0]}(judged_only=True)@{name.partition('@')[2]}".rstrip("@") for name in names]

    by_option = evaluate_files(*files, Settings(measures=alone, max_documents=max_documents, is_complete=True))
    by_flag = evaluate_files(
        *files, Settings(measures=names, max_documents=max_documents, judged_only=True, is_complete=True)
    )

    # In the first report a topic is there whose documents all left its list; -c counts it in the other.
    assert by_option.matched.topics == by_flag.matched.topics
    for one, other in zip(by_option.lines, by_flag.lines, strict=True):
        np.testing.assert_array_equal(by_option.values[one.name], by_flag.values[other.name], err_msg=one.name)


@pytest.mark.parametrize("max_documents", [1, 4, 100])
def test_lists_are_cut_before_anything_is_computed(tmp_path: Path, max_documents: int) -> None:
    run, judgements = random_topics(seed=20)
    settings = Settings(measures=["all_trec"], max_documents=max_documents, version=9)

    found = by_topic(evaluate_files(*write_files(tmp_path, run, judgements), settings))

    theirs = of_trec_9(cut(run, max_documents), judgements)
    assert_same(found, theirs)


def test_summary_is_that_of_trec_eval_9(tmp_path: Path) -> None:
    run, judgements = random_topics(seed=21)
    report = evaluate_files(*write_files(tmp_path, run, judgements), Settings(measures=["all_trec"], version=9))

    theirs = of_trec_9(run, judgements)
    for line in report.lines:
        if line.subject not in NOT_NUMBERS:
            each = [values[line.name] for values in theirs.values()]
            expected = pytrec_eval.compute_aggregated_measure(line.name, each)
            assert report.total(line) == pytest.approx(expected, rel=0, abs=1e-9), line.name


def test_with_c_missing_topics_count_as_empty_lists(tmp_path: Path) -> None:
    run, judgements = random_topics(seed=22)
    missing = judgements.keys() - run.keys()
    assert missing

    report = evaluate_files(*write_files(tmp_path, run, judgements), Settings(measures=["all_trec"], is_complete=True))

    found = by_topic(report)
    assert found.keys() == judgements.keys()
    of_missing = [found[topic] for topic in missing]
    assert {value for values in of_missing for name, value in values.items() if name not in {"num_rel"}} == {0.0}
    ap = [found[topic]["map"] for topic in judgements]
    means = {line.name: report.total(line) for line in report.lines if line.subject not in NOT_NUMBERS}
    assert means["map"] == pytest.approx(sum(ap) / len(judgements), rel=0, abs=1e-12)
    expected = np.exp(np.mean(np.log(np.maximum(ap, 1e-5))))
    assert means["gm_map"] == pytest.approx(expected, rel=0, abs=1e-12)


def test_version_10_compares_scores_in_double_precision(tmp_path: Path) -> None:
    """In single precision the two scores are one, and the tie goes to the id that is greater."""
    files = write_files(tmp_path, {"1": {"a": 0.1 + 1e-9, "b": 0.1}}, {"1": {"a": 1}})

    firsts = [evaluate_files(*files, Settings(measures=["recip_rank"], version=version)) for version in (9, 10)]

    assert [by_topic(first)["1"]["recip_rank"] for first in firsts] == [1 / 2, 1]


def test_version_10_rounds_recall_to_the_nearest_document(tmp_path: Path) -> None:
    """Two of four relevant documents are a recall of 0.6 for it: 2.4 documents are 2."""
    files = write_files(tmp_path, {"1": {"a": 3, "x": 2, "b": 1}}, {"1": dict.fromkeys("abcd", 1)})
    measures = ["iprec_at_recall.0.6", "11pt_avg"]

    old, new = (
        by_topic(evaluate_files(*files, Settings(measures=measures, version=version)))["1"] for version in (9, 10)
    )

    assert old["iprec_at_recall_0.60"] == 0
    assert new["iprec_at_recall_0.60"] == 2 / 3
    assert new["11pt_avg"] == pytest.approx((4 * 1 + 3 * 2 / 3) / 11, rel=0, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_measures_of_ours_are_those_of_the_kernels(tmp_path: Path, seed: int) -> None:
    run, judgements = random_topics(seed + 30)
    measures = ["nDCG(dcg='exp-log2')@10", "ERR(max_rel=3)@5", "Judged@5", "AP(rel=2,denom='min')@3", "unj@3"]
    settings = Settings(measures=measures, is_complete=True)

    report = evaluate_files(*write_files(tmp_path, run, judgements), settings)

    topics = sorted(judgements, key=str.encode)
    batch = Lists.of([oracles.ranking_of(run.get(topic, {}), judgements[topic]) for topic in topics])
    assert report.matched.topics == topics
    assert list(report.values) == measures
    for measure in measures:
        asked = MeasureSet.parse([measure])
        expected = np.nan_to_num(asked.score(batch)[asked.columns[0]][:, 0])
        np.testing.assert_allclose(report.values[measure], expected, rtol=0, atol=1e-12)
