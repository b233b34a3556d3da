"""The explanation of a value: its rows, its words, and that it is the value of ``user_metrics`` under any policy."""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from rankeval_spark import evaluate
from rankeval_spark.errors import ConfigError, InputError
from tests.support.arrow_frames import table
from tests.support.sections import measured

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

MEASURES: Final = (
    *("nDCG@3", "nDCG(unjudged='mean')@3", "AP(agg='micro')", "RR@2", "MeanP@2", "GMAP", "Bpref", "Judged@3"),
    "Overlap(model='y',denom='len')",
)

LOG: Final = table(
    "model_id user_id item_id score",
    *(("x", "ann", item, score) for item, score in zip("abcdb", (9, 7, 7, 4, 2), strict=True)),
    *(("y", "ann", item, score) for item, score in zip("dba", (3, 2, 1), strict=True)),
    *(("x", "bob", item, 1) for item in "ab"),
    *(("x", "dan", item, 1) for item in "ab"),
)
"""Two items of Ann tie, and one comes twice; Cat has no list, and Dan no judgement."""

HELD_OUT: Final = table(
    "user_id item_id gain",
    *(("ann", "b", 1), ("ann", "c", 0), ("ann", "d", 1), ("ann", "z", 1), ("ann", "b", 0)),
    *(("bob", "q", 0), ("cat", "a", 1)),
)

POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"ties": "item_desc", "duplicates": "best"},
    {"ties": "item_desc_bytes"},
    {"judged_only": True},
    {"held_out_duplicates": "sum"},
    {"population": "judged", "zero_relevant": "one"},
    {"population": "run", "missing": "exclude"},
    {"unit": "list"},
)


@pytest.mark.parametrize("policies", POLICIES, ids=str)
def test_the_explained_value_is_that_of_user_metrics_under_any_policy(policies: dict[str, Any]) -> None:
    result = measured(LOG, HELD_OUT, measures=MEASURES, **policies)
    values = {(row["model_id"], row["user_id"], row["measure"], row["k"]): row["value"] for row in rows_of(result)}
    users = ("ann", "bob", "cat", "dan")
    for measure in result.request.measure_set.per_list:
        for model, user in ((model, user) for model in "xy" for user in users if (model, user) != ("y", "dan")):
            if user == "dan" and policies == {"judged_only": True}:
                continue
            found = result.explain(user, str(measure), model=model)
            value = values.get((model, user, measure.label, measure.k))
            assert found.value == (None if value is None else pytest.approx(value, rel=0, abs=1e-12)), found
            if value is None or found.numbers["value of the formula"] is None:
                continue
            if found.is_sum:
                total = sum(row["contribution"] for row in found.table) + (found.numbers.get("constant") or 0)
                assert total == pytest.approx(value, rel=0, abs=1e-12), found
            elif len(found.table):
                assert found.table["after"][-1].as_py() == pytest.approx(value, rel=0, abs=1e-12), found


def rows_of(result: Evaluation[pa.Table]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result.user_values.to_pylist()
    return rows


def test_means_over_tied_items_are_explained_by_item() -> None:
    found = measured(LOG, HELD_OUT, measures=["P@2"], ties="expected").explain("ann", "P@2", model="x")
    assert found.table.to_pydict()["contribution"] == [0, pytest.approx(1 / 4, rel=0, abs=1e-12), 0]
    assert found.value == pytest.approx(1 / 4, rel=0, abs=1e-12)
    assert "items of one score share their ranks" in repr(found)


def test_the_text_has_items_gains_discounts_ideal_list_and_sums() -> None:
    log = table("user_id item_id score", *(("7", item, -rank) for rank, item in enumerate("abc")))
    held_out = table("user_id item_id gain", ("7", "b", 3), ("7", "c", 1), ("7", "z", 1))
    titles = table("item_id title", ("b", "Brazil <&>"), ("c", "Cabaret"))
    result = evaluate(log, held_out, measures=["nDCG(dcg='exp-log2')@3"], items=titles)
    found = result.explain("7", "nDCG(dcg='exp-log2')@3")
    assert (
        repr(found)
        == """\
nDCG(dcg='exp-log2')@3 = 0.6047 for user 7
DCG@k / IDCG@k; here with dcg='exp-log2'
rank  item_id  title       gain   worth  discount    term  contribution
   1  a                          0.0000            0.0000        0.0000
   2  b        Brazil <&>     3  7.0000    0.6309  4.4165        0.5432
   3  c        Cabaret        1  1.0000    0.5000  0.5000        0.0615
sum of terms 4.9165, divided by 8.1309: 0.6047
R = 3 of 3 judged items are relevant; 3 places down to rank 3, hits: 2

the ideal list, sum of terms 8.1309
rank  item_id  title       gain   worth  discount    term
   1  b        Brazil <&>     3  7.0000    1.0000  7.0000
   2  c        Cabaret        1  1.0000    0.6309  0.6309
   3  z                       1  1.0000    0.5000  0.5000"""
    )
    html = found._repr_html_()
    assert "Brazil &lt;&amp;&gt;" in html
    assert html.count("<tr>") == 2 + 3 + 3


def test_a_value_that_is_undefined_is_explained_in_words() -> None:
    result = measured(LOG, HELD_OUT, measures=["AP"], population="judged")
    assert "the formula has no value: no relevant judgement (R = 0)" in repr(result.explain("bob", "AP", model="x"))
    ndcg = repr(result.explain("bob", "nDCG(gains='binary')", model="x"))
    assert "no value: no judgement with a positive gain; with gains='binary': no relevant one (R = 0)\n" in ndcg
    assert "the policy zero_relevant='zero' counts it as 0" in repr(result.explain("bob", "AP", model="x"))
    assert "is not in the population 'judged'" in repr(result.explain("dan", "AP", model="x"))


COUNTED: Final = {
    "AP(rel=2)@3": "R = 2 of 3 judged items are relevant (gain 2 or more); 3 places down to rank 3, hits: 1",
    "AP(judged_only=True)@1": "R = 3 of 3 judged items are relevant; 1 place down to rank 1, hits: 1",
    "AP(group='new')": "R = 1 of 1 judged items of 'new' are relevant; 4 places, hits: 1",
    "RBP": "R = 3 of 3 judged items are relevant; 4 places, hits: 2",
}


@pytest.mark.parametrize("measure", COUNTED)
def test_the_last_sentence_counts_what_the_measure_takes_for_relevant(measure: str) -> None:
    log = table("user_id item_id score", *(("u", item, -rank) for rank, item in enumerate("abcd")))
    held_out = table("user_id item_id gain", ("u", "b", 1), ("u", "c", 2), ("u", "z", 3))
    items = table("item_id categories", ("b", ["new"]), ("a", ["new"]), ("z", ["old"]))
    found = evaluate(log, held_out, measures=["AP"], items=items).explain("u", measure.replace("RBP", "RBP(max_rel=3)"))
    assert found.sentences[-1] == COUNTED[measure]


@pytest.mark.parametrize(
    ("measure", "here"),
    [
        ("AP(gains={1:1,2:3},denom='min')@3", "; here with denom='min', gains={1:1,2:3}"),
        ("nDCG(unjudged=0.5)@3", "DCG@k / IDCG@k; here with unjudged=0.5"),
        ("AP(rel=2,judged_only=True)", "(1 / R) sum_{i<=k} r_i h_i / i"),
    ],
)
def test_the_formula_names_the_options_that_change_it(measure: str, here: str) -> None:
    found = measured(LOG, HELD_OUT, measures=["AP"]).explain("ann", measure, model="x")
    assert repr(found).splitlines()[1].endswith(here)


def test_a_sum_that_is_not_the_value_is_not_called_no_terms() -> None:
    found = measured(LOG, HELD_OUT, measures=["AP"]).explain("ann", "LogAP", model="x")
    assert "the value is no sum of them: `after` is the value of the list so far" in repr(found)


def test_a_user_without_a_list_has_the_value_of_an_empty_one() -> None:
    found = measured(LOG, HELD_OUT, measures=["AP"]).explain("cat", "AP", model="x")
    assert repr(found).splitlines()[2:4] == ["the list has no item", "sum of terms 0, divided by 1: 0"]


def test_long_lists_are_cut_in_text_alone() -> None:
    log = table("user_id item_id score", *(("u", str(rank), -rank) for rank in range(200)))
    held_out = table("user_id item_id", ("u", "150"))
    found = evaluate(log, held_out, measures=["RR"]).explain("u", "RR")
    assert found.table.num_rows == 200
    assert re.search("^ 151  150 +1 +0.006623$", repr(found), re.MULTILINE)
    assert "\n189 more ranks: .table has all\n" in repr(found)
    assert math.isclose(found.value or 0, 1 / 151)


WRONG: Final = (
    ({"user": "an"}, r"explain\(user=\): found 'an'; expected a user of .*; did you mean '(ann|dan)'"),
    ({"measure": "ItemCoverage@2"}, r"explain\(measure=\): found .*; expected .* with values of lists, such as AP"),
    ({"measure": "Overlap(model='z')@2"}, r"explain\(measure=\): found model 'z' in .*; expected one of .*: x, y"),
    ({"measure": "IPS"}, r"explain\(measure=\): found IPS with population='truth'; expected population"),
    ({"measure": "nDGC@3"}, r"explain\(measure=\): found unknown measure 'nDGC'; expected .*did you mean 'nDCG'"),
    ({"model": "xx"}, r"explain\(model=\): found 'xx'; expected a model of the log: x, y"),
    ({"model": None}, r"explain\(model=\): found None; expected one of: x, y"),
    ({"user": "dan", "model": "y"}, r"explain\(model=\): found 'y', without a list"),
    ({"list_id": "2"}, r"explain\(list_id=\): found '2'; expected none: there are no lists by name"),
)


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=str)
def test_wrong_names_are_refused_with_the_nearest(wrong: dict[str, Any], message: str) -> None:
    result = evaluate(LOG, HELD_OUT, measures=["AP", "ItemCoverage@2"])
    given: dict[str, Any] = {"user": "ann", "measure": "AP", "model": "x", **wrong}
    with pytest.raises(ConfigError, match=message):
        result.explain(**given)


def test_a_measure_that_was_not_asked_is_explained_as_if_it_had_been() -> None:
    asked = ("ERR(max_rel=1)@2", "P@1", "RBP(p=0.5)", "Overlap(model='y')@3")
    told, untold = (measured(LOG, HELD_OUT, measures=[*more, "AP"], ties="item_desc") for more in (asked, ()))
    for measure in asked:
        assert repr(untold.explain("ann", measure, model="x")) == repr(told.explain("ann", measure, model="x"))
    assert untold.explain("ann", count_hits, model="x").value == 2


def count_hits(ranks: list[int]) -> int:
    """Return the number of hits."""
    return len(ranks)


@pytest.mark.parametrize(
    ("measure", "lack"),
    [
        ("MIUF@3", "train: found nothing; expected this input, for MIUF"),
        ("R(gains='value')@3", "held_out: found no column 'value'; expected the column, for R"),
        ("Freshness@3", "evaluation_date: found nothing"),
        ("FCP", "recommendations: found no column 'score'"),
    ],
)
def test_an_explanation_says_which_input_a_measure_needs(measure: str, lack: str) -> None:
    log = table("user_id item_id rank", ("u", "a", 1))
    items = table("item_id published_at", ("a", dt.date(2026, 1, 1)))
    with pytest.raises(InputError, match=re.escape(lack)):
        evaluate(log, table("user_id item_id", ("u", "a")), measures=["AP"], items=items).explain("u", measure)


def test_a_whole_number_of_a_row_of_floats_is_an_id() -> None:
    log, held_out = (
        table("user_id item_id rank", (7, 1, 1), (7, 2, 2), ids="bigint"),
        table("user_id item_id", (7, 2), ids="bigint"),
    )
    assert evaluate(log, held_out, measures=["RR"]).explain(7.0, "RR").value == 1 / 2


def test_the_ideal_list_by_values_has_the_names_of_its_items() -> None:
    log = table("user_id item_id rank", ("u", "a", 1))
    facts = {"gain": [2, 1, 3], "value": [5, 100, 1], "weight": [1, 2, 9]}
    held_out = pa.table({"user_id": ["u"] * 3, "item_id": ["a", "z", "b"], **facts})
    result = evaluate(log, held_out, measures=["nDCG(gains='value')@2", "nDCG(weighted=True)@2"])
    by_value, by_weight = (result.explain("u", each).ideal.to_pydict() for each in result.request.measure_set.measures)
    assert (by_value["item_id"], by_value["gain"], by_value["worth"]) == (["z", "a"], [1, 2], [100, 5])
    assert (by_weight["item_id"], by_weight["worth"]) == (["b", "a"], [27, 2])


def test_a_user_whose_items_all_leave_the_list_has_nothing_to_explain() -> None:
    result = measured(LOG, HELD_OUT, measures=["AP"], judged_only=True)
    with pytest.raises(ConfigError, match=r"explain\(user=\): found 'dan', without a judgement or an item that counts"):
        result.explain("dan", "AP", model="x")


def test_of_several_lists_of_a_user_one_is_named() -> None:
    rows = [("u", page, item, -rank) for page in ("home", "mail") for rank, item in enumerate("ab")]
    log = table("user_id list_id item_id score", *rows)
    result = evaluate(log, table("user_id item_id", ("u", "b")), measures=["RR"])
    assert result.explain("u", "RR", list_id="mail").value == 1 / 2
    with pytest.raises(ConfigError, match=r"explain\(list_id=\): found none of 2 lists; expected one of: home, mail"):
        result.explain("u", "RR")


def test_a_function_is_explained_by_the_value_down_to_each_rank() -> None:
    def last_hit(ranks: list[int]) -> float:
        """Rank of the last hit; 0 without one."""
        return max(ranks, default=0)

    log = table("user_id item_id score", *(("u", item, -rank) for rank, item in enumerate("abcd")))
    found = evaluate(log, table("user_id item_id", ("u", "b"), ("u", "c")), measures=[last_hit]).explain("u", last_hit)
    assert found.table.to_pydict()["after"] == [0, 2, 3, 3]


OF_FACTS: Final = (
    *("MIUF@3", "EPC@3", "ARP(norm='C')@3", "Serendipity(kind='ge')@3", "Calibration@3", "ILD(sim='jaccard')@3"),
    *("alpha_nDCG@3", "SRecall@3", "Freshness@3", "Unexpectedness@3", "R(group='tail')@3", "R(weighted=True)@3"),
    *("R(gains='value')@3", "RMSE", "DR", "SNIPS", "ClassAccuracy@3"),
)


def test_measures_that_read_items_values_and_weights_are_explained() -> None:
    draw, items = random.Random(7), [f"i{number}" for number in range(12)]
    log = [
        {"user_id": user, "item_id": item, "score": draw.random(), "predicted_reward": draw.random()}
        for user in "uv"
        for item in draw.sample(items, 5)
    ]
    facts = {"gain": 1.0, "value": 2.5, "weight": 1.5, "propensity": 0.5}
    judged = [{"user_id": user, "item_id": item, **facts} for user in "uv" for item in draw.sample(items, 5)]
    catalogue = [
        {
            "item_id": item,
            "categories": draw.sample("abc", 2),
            "vector": [draw.random(), draw.random()],
            "published_at": dt.date(2026, 1, draw.randint(1, 28)),
        }
        for item in items
    ]
    seen = [{"user_id": user, "item_id": item} for user in "uvw" for item in draw.sample(items, 6)]
    log_, held_out, train, items_ = map(pa.Table.from_pylist, (log, judged, seen, catalogue))
    inputs = {"train": train, "items": items_, "evaluation_date": dt.date(2026, 2, 1)}
    result = measured(log_, held_out, measures=OF_FACTS, population="judged", **inputs)
    values = {(row["measure"], row["k"]): row["value"] for row in rows_of(result) if row["user_id"] == "u"}
    for measure in result.request.measure_set.per_list:
        found, value = result.explain("u", measure), values[measure.label, measure.k]
        assert found.value == pytest.approx(value, rel=0, abs=1e-12)
        if found.is_sum:
            total = sum(row["contribution"] for row in found.table) + (found.numbers.get("constant") or 0)
            assert total == pytest.approx(found.numbers.get("ratio", value), rel=0, abs=1e-12), measure
