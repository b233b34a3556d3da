"""Two models in a paragraph: its numbers are those of ``comparisons``, whether or not these have the pair."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from rankeval_spark import evaluate, measure
from rankeval_spark.errors import ConfigError
from tests.support.html import parsed
from tests.support.logs import Logs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankeval_spark import Evaluation

USERS: Final = [f"u{number:02}" for number in range(40)]
HOSTILE: Final = "<i>knn</i>"


def evaluated(ranks: Mapping[str, Mapping[str, int]], **options: Any) -> Evaluation:  # noqa: ANN401 - of evaluate
    """Evaluate models whose one hit has a rank for each user."""
    rows = [
        (model, user, "hit" if place == rank else f"i{place}", place)
        for model, of_user in ranks.items()
        for user, rank in of_user.items()
        for place in range(1, 9)
    ]
    log = pa.table(dict(zip(("model_id", "user_id", "item_id", "rank"), zip(*rows, strict=True), strict=True)))
    held_out = pa.table({"user_id": USERS, "item_id": ["hit"] * len(USERS)})
    return evaluate(log, held_out, **{"measures": ["RR"], **options})


def by_turns(*ranks: int, users: list[str] = USERS) -> dict[str, int]:
    """Return ranks of users, each of them in turn."""
    return {user: ranks[number % len(ranks)] for number, user in enumerate(users)}


def of_tiers(*tiers: str) -> dict[str, Any]:
    segments = pa.table({"user_id": USERS, "tier": [tiers[number % len(tiers)] for number in range(len(USERS))]})
    return {"segments": segments, "slices": ["tier"], "slicing": {"min_slice_size": 5}}


def test_a_clear_difference_is_one_paragraph() -> None:
    """RR of als is 1 and 1/2 by turns, of knn 1/2 and 1/3: the difference of users is 1/2 or 1/6."""
    ranks = {"als": by_turns(1, 2), HOSTILE: by_turns(2, 3)}
    found = evaluated(ranks, baseline=HOSTILE, **of_tiers("one", "two")).compare("als", HOSTILE)
    std_error = 1 / 6 / math.sqrt(39)
    half = float(stats.t.ppf(0.975, 39)) * std_error
    assert found.row["delta"] == pytest.approx(1 / 3, rel=0, abs=1e-12)
    assert found.row["ci_high"] == pytest.approx(1 / 3 + half, rel=0, abs=1e-12)
    low, high = (f"{1 / 3 + side * half:.3f}" for side in (-1, 1))
    assert found.text == (
        "als is better than <i>knn</i> by RR: 0.750 against 0.417 on the same 40 users, a difference of +0.333 (95 % "
        f"interval +{low} to +{high}; +80.0 %), p < .001 by the paired t test, the only primary test. als is better "
        f"for 40 users, worse for 0 and equal for 0. The test finds a difference of {found.row['detectable']:.3f} or "
        "more in 80 % of samples. By slice it is better in tier = one (+0.500) and tier = two (+0.167), with Holm's "
        "correction over 2 tests."
    )
    assert parsed(found._repr_html_()).words == found.text
    assert max(map(len, repr(found).splitlines())) <= 100
    assert " ".join(repr(found).split()) == found.text


def test_the_other_way_round_has_the_same_numbers() -> None:
    result = evaluated({"als": by_turns(1, 2, 3), "knn": by_turns(2, 2, 1)}, baseline="knn")
    there, back = result.compare("als", "knn").row, result.compare("knn", "als").row
    for name, other in (("delta", "delta"), ("ci_low", "ci_high"), ("effect_size", "effect_size")):
        assert back[name] == -there[other]
    for name, other in (("value", "baseline_value"), ("n_wins", "n_losses"), ("model_id", "baseline_model_id")):
        assert (back[name], back[other]) == (there[other], there[name])
    for name in ("p_value", "p_adjusted", "detectable", "std_error", "n_ties", "n_users", "family_size"):
        assert back[name] == there[name]
    own = evaluated({"als": by_turns(1, 2, 3), "knn": by_turns(2, 2, 1)}, baseline="als").compare("knn", "als").row
    for name in (name for name in own if not name.startswith("relative_")):
        assert back[name] == (pytest.approx(own[name], rel=0, abs=1e-12) if isinstance(own[name], float) else own[name])


def test_an_open_question_says_how_many_users_it_takes() -> None:
    """The users that the paragraph asks for are the fewest with whom its difference would be found."""
    result = evaluated({"als": by_turns(1, 2, 3, 4), "knn": by_turns(2, 1, 4, 2)}, baseline="knn")
    found = result.compare("als", "knn")
    row = found.row
    assert found.text.startswith("Whether als or knn is better by RR is undecided: ")
    (needed,) = re.findall(r"To find one as small as this takes ([0-9,]+) users; there are 40\.", found.text)
    n, std_dev = int(needed.replace(",", "")), row["std_error"] * math.sqrt(40)

    def power(n_users: int) -> float:
        critical = stats.t.ppf(0.975, n_users - 1)
        return float(stats.nct.sf(critical, n_users - 1, abs(row["delta"]) / std_dev * math.sqrt(n_users)))

    assert power(n) == pytest.approx(0.8, abs=0.003)  # what the approximation of the noncentral t is off by


def test_a_pair_without_a_baseline_is_that_of_an_evaluation_of_the_two_alone() -> None:
    """Another baseline or none: the numbers are those of comparisons of two models, with families of their own."""
    ranks = {"als": by_turns(1, 2, 3), "knn": by_turns(2, 2, 1), "pop": by_turns(5, 6, 7)}
    options = {"measures": ["RR", "P@1", "P@2"], **of_tiers("one", "two", "two")}
    alone = evaluated({name: ranks[name] for name in ("als", "knn")}, baseline="knn", **options)
    note = "p is corrected for the tests of these two models alone."
    other = f"Comparisons of the evaluation do not have this pair: {note}"
    for given, expected in (({}, note), ({"baseline": "pop"}, other)):
        found = evaluated(ranks, **given, **options).compare("als", "knn", measure="P@1")
        wanted = alone.comparisons.filter((pc.field("measure") == "P") & (pc.field("k") == 1))
        assert sorted(map(str, found.table)) == sorted(map(str, wanted))
        assert found.text == f"{alone.compare('als', 'knn', measure='P@1').text} {expected}"


def test_the_measure_is_the_first_primary_one_unless_it_is_named() -> None:
    tables = Logs.make(seed=7).tables()
    result = evaluate(
        tables.recommendations,
        tables.held_out,
        measures=["P@3", "nDCG@5"],
        comparisons={"baseline": "popular", "primary": ["nDCG@5"]},
    )
    assert result.compare("als", "popular").row["measure"] == "nDCG"
    named = result.compare("als", "popular", measure="P@3")
    assert (named.row["measure"], named.row["family"]) == ("P", "exploratory")
    assert "P@3 is not in comparisons.primary: what it finds is to be confirmed." in named.text


def test_arms_of_an_experiment_are_compared_in_unpaired_words() -> None:
    ranks = {"new": by_turns(1, 2, users=USERS[:20]), "old": by_turns(2, 4, 5, users=USERS[20:])}
    named = {"comparisons": {"baseline": "old", "split": {"new": 0.5, "old": 0.5}}}
    options: dict[str, Any] = {"policies": {"population": "run"}, "slicing": {"min_slice_size": 5}}
    text = evaluated(ranks, **named, **options).compare("new", "old").text
    assert "over 20 users of new and 20 users of old, who are others, a difference of " in text
    assert " by the unpaired t test, the only primary test." in text
    assert "better for" not in text
    apart = evaluated(ranks, **options).compare("new", "old").text
    assert apart == (
        "new and old are not compared by RR: no common users; models of an A/B test are named in comparisons.split."
    )


@measure(undefined="no hit", better="lower", bounds=(1, math.inf), without_relevant=100)
def first_rank(ranks: list[int]) -> float:
    """Rank of the first hit."""
    return ranks[0] if ranks else math.nan


def test_the_lower_value_of_an_own_measure_can_be_the_better_one() -> None:
    ranks = {"als": by_turns(1, 2, 3, 2), "knn": by_turns(4, 5, 2, 2)}
    text = evaluated(ranks, measures=["RR", first_rank]).compare("als", "knn", measure=first_rank).text
    assert text.startswith(
        "als is better than knn by first_rank, where lower is better: 2.00 against 3.25 on the same 40 "
    )
    assert "als is better for 20 users, worse for 10 and equal for 10." in text


def test_too_few_users_are_said_and_not_tested() -> None:
    ranks = {"als": by_turns(1, 2, users=USERS[:9]), "knn": by_turns(2, 3, users=USERS[:9])}
    text = evaluated(ranks, policies={"population": "run"}).compare("als", "knn").text
    assert text.startswith(
        "Whether als or knn is better by RR is not tested, few users: 0.78 against 0.43 on the same 9 "
    )
    assert ", p " not in text


def test_neither_side_of_a_measure_is_better() -> None:
    found = evaluated({"als": by_turns(1, 2), "knn": by_turns(3, 4)}, measures=["Judged@2"]).compare("als", "knn")
    assert found.text.startswith(
        "als and knn differ in Judged@2, of which neither side is better: 0.5000 against 0.0000 "
    )
    assert "als is higher for 40 users, lower for 0 and equal for 0." in found.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "al"}, r"compare\(model=\): found 'al'; .*did you mean 'als'"),
        ({"other": "als"}, r"compare\(other=\): found 'als', the same model; expected another model"),
        ({"measure": "RR@5"}, r"compare\(measure=\): found 'RR@5'; expected one of: RR"),
    ],
)
def test_what_cannot_be_compared_is_refused(given: dict[str, str], message: str) -> None:
    result = evaluated({"als": by_turns(1, 2), "knn": by_turns(3, 4)}, baseline="knn")
    with pytest.raises(ConfigError, match=message):
        result.compare(**{"model": "als", "other": "knn", **given})
