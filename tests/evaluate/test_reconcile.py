"""Two numbers for the same lists: planted switches are found, and what each is worth adds up."""

from __future__ import annotations

import math
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark import Policies, evaluate, reconcile
from rankeval_spark.apps.notebook.conventions import SAME, Conventions
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure
from tests.support.arrow_frames import table
from tests.support.planted_switches import draw_inputs, measure_axes, plant, policy_axes

if TYPE_CHECKING:
    from rankeval_spark.apps.notebook.reconcile import Reconciliation

# ann: hits of gains 3 and 1 at ranks 2 and 3; bob: nothing relevant is judged; cid: no list
LOG = table("user_id item_id rank", ("ann", "a", 1), ("ann", "b", 2), ("ann", "c", 3), ("bob", "d", 1))
HELD_OUT = table(
    "user_id item_id gain",
    ("ann", "b", 3.0),
    ("ann", "c", 1.0),
    ("ann", "e", 1.0),
    ("bob", "d", 0.0),
    ("cid", "a", 1.0),
)


def call(**options: Any) -> Reconciliation:  # noqa: ANN401 - those of `reconcile`
    return reconcile(LOG, HELD_OUT, **{"measure": "P@3", **options})


@pytest.mark.parametrize(
    ("text", "seed", "most"),
    [("P@3", 1, 4), ("nDCG@3", 3, 2), ("RR@3", 3, 4), ("AP@3", 2, 2), ("F@3", 0, 4), ("P@3", 4, 2)],
)
def test_planted_switches_are_among_those_found(text: str, seed: int, most: int) -> None:
    inputs = draw_inputs(seed, share=0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Conventions(inputs, Measure.parse(text), {}, text=text, asked={}, most=most)
    for state, asked, value in islice(plant(inputs, text, seed, most=most), 6):
        states, is_found = found.find(value, SAME)
        assert is_found, asked
        assert state in states, asked


def test_every_choice_of_policies_and_options_is_a_switch_or_named() -> None:
    inputs, measure = draw_inputs(2, share=0.25), Measure.parse("nDCG@3")
    found = Conventions(inputs, measure, {}, text="nDCG@3", asked={}, most=2)
    tried = {switch for states in (found.of_policies, found.of_measures) for state in states for switch in state}
    named = {text.partition(" (")[0] for text in found.not_searched}
    silent = {"score_precision", "own_item", "rank_gaps", "order", "lists", "unit"}  # no row that they could change
    silent |= {"attribution", "consumed_before"}  # refused without a window
    for kind, name, value in (switch for axis in policy_axes() + measure_axes(measure) for switch in axis):
        assert (kind, name, value) in tried or f"{kind} {name}={value}" in named or name in silent, (name, value)
    assert all(len(found._affected.get(name, ())) == 0 for name in silent)


def test_worths_add_up_to_the_gap_in_the_stated_order() -> None:
    found = call(theirs=2 / 3)  # 1/3 here: ann has 2/3 and cid, without a list, 0
    rows = found.where(combination=1).to_pylist()
    assert found.ours == pytest.approx(1 / 3, rel=0, abs=1e-12)
    assert math.fsum(row["worth"] for row in rows) == pytest.approx(found.gap, rel=0, abs=1e-12)
    assert [row["setting"] for row in rows] == ["policy population", "rounding"]
    assert rows[0]["worth"] == rows[0]["alone"] == pytest.approx(1 / 3, rel=0, abs=1e-12)
    two = call(theirs=5 / 6, most=None)
    of_run = [row["combination"] for row in two if row["to"] == "run"]
    steps = [two.where(combination=number).to_pylist() for number in of_run]
    (rows,) = (rows for rows in steps if [row["to"] for row in rows] == ["run", "one", None])
    # users with a list: ann alone has a value; then bob, who has no relevant item, counts as 1
    assert [row["worth"] for row in rows] == pytest.approx([1 / 3, 1 / 6, 0], rel=0, abs=1e-12)
    assert [row["alone"] for row in rows] == [pytest.approx(1 / 3, rel=0, abs=1e-12), None, None]


@pytest.mark.parametrize(("preset", "most"), [("lenskit", 4), ("lenskit", 1), ("elliot", 4), ("spark", 1)])
def test_a_tool_is_named_and_its_call_gives_the_number(preset: str, most: int) -> None:
    inputs = draw_inputs(0, share=0.25)
    log, held_out = inputs["recommendations"], inputs["held_out"]
    value = evaluate(log, held_out, measures=["R@3"], preset=preset).metrics.to_pylist()[0]["value"]
    found = reconcile(log, held_out, "R@3", theirs=round(value, 5), most=1, switches=most)
    (number,) = {row["combination"] for row in found if row["tools"] and preset in row["tools"].split(", ")}
    same = evaluate(log, held_out, **found.call(number)).metrics.to_pylist()[0]["value"]
    assert same == pytest.approx(value, rel=0, abs=1e-12)


def test_ours_is_explained_where_it_is_not_that_of_the_call() -> None:
    found = call(ours="0.6667", theirs="0.8333", policies=Policies(missing="exclude", population="judged"))
    zero, one = (found.where(combination=number).to_pylist() for number in (0, 1))
    start, end = (evaluate(LOG, HELD_OUT, **found.call(number)).metrics.to_pylist()[0]["value"] for number in (0, 1))
    assert (round(start, 4), round(end, 4)) == (0.6667, 0.8333)
    assert sum(row["worth"] for row in zero) == pytest.approx(0.6667 - 1 / 3, rel=0, abs=1e-12)
    assert sum(row["worth"] for row in one) == pytest.approx(0.8333 - 0.6667, rel=0, abs=1e-12)
    assert any("combination 0 explains it" in text for text in found.sentences)


def test_digits_say_how_exact_the_other_number_is() -> None:
    fitting = [call(theirs=text).n_fitting for text in ("0.7", "0.67", "0.6667", "0.66666666666667")]
    assert fitting == sorted(fitting, reverse=True)
    assert fitting[0] > fitting[-1] > 0
    assert any("no digit tells them apart" in text for text in call(theirs="0.66666666666667").sentences)
    assert call(theirs="0.3333", switches=1).sentences[1].startswith("no switch is needed")


def test_where_nothing_fits_the_nearest_are_shown_and_what_is_not_searched() -> None:
    found = call(theirs="0.7182818", most=3)
    assert found.n_fitting == 0
    assert {*found.to_pydict()["combination"]} == {1, 2, 3}
    assert [row["setting"] for row in found].count("unexplained") == 3
    assert "policy seen_in_train=drop (no train)" in found.not_searched
    assert "not searched: " in found.sentences[-1]
    for number in (1, 2, 3):
        rows = found.where(combination=number)
        assert sum(row["worth"] for row in rows) == pytest.approx(found.gap, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"theirs": "28"},
            r"reconcile\(theirs=\): found 28; expected a number from 0 to 1; write 0.28 if it is a perc",
        ),
        ({"theirs": 0.5, "ours": "0.50"}, r"reconcile\(theirs=\): found 0.5, as ours; expected another number"),
        ({"theirs": "much"}, r"reconcile\(theirs=\): found 'much'; expected a number with its digits"),
        ({"theirs": 0.5, "switches": 5}, r"reconcile\(switches=\): found 5; expected a whole number from 1 to 4"),
        ({"theirs": 0.5, "measure": "ItemCoverage@3"}, r"\(measure=\): found ItemCoverage@3, of all lists together"),
        ({"theirs": 0.5, "measure": "PP@3"}, r"reconcile\(measure=\).*unknown measure 'PP'"),
        ({"theirs": 0.5, "measure": ["P@3"]}, r"reconcile\(measure=\): found \['P@3'\]; expected one measure as text"),
        ({"theirs": 0.5, "model": "als"}, r"reconcile\(model=\): found 'als'; expected one of model"),
    ],
    ids=str,
)
def test_what_cannot_be_reconciled_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call(**options)


def test_of_several_models_one_is_named() -> None:
    log = LOG.append_column("model_id", [["als", "knn", "als", "als"]])
    with pytest.raises(
        ConfigError, match=r"\(model=\): found lists of 2 models; expected one of als, knn; write model"
    ):
        reconcile(log, HELD_OUT, "P@3", theirs=0.5)
    found = reconcile(log, HELD_OUT, "P@3", theirs="0.3333", model="als")
    assert found.ours == pytest.approx(1 / 6, rel=0, abs=1e-12)


def test_an_empty_input_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"reconcile\(log=\): found no row; expected at least one"):
        reconcile(LOG.slice(0, 0), HELD_OUT, "P@3", theirs=0.5)
