"""Names that other tools and papers use for other numbers."""

from __future__ import annotations

import re

import pytest

from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, UnknownMeasureError, registry
from rankeval_spark.measures.names import find_name_notes
from rankeval_spark.measures.registry import SEVERAL_MEANINGS, meanings_of


@pytest.mark.parametrize("several", SEVERAL_MEANINGS, ids=lambda several: several.names[0])
def test_what_is_said_of_a_name_is_true(several: registry.SeveralMeanings) -> None:
    """Its names are of one measure or of none, its options exist, and each measure that is offered can be requested."""
    entries = {match.entry.name for name in several.names if (match := registry.find(name)) is not None}
    assert bool(entries) == bool(several.taken)
    known = {option.name for entry in map(registry.get, entries) for option in entry.options}
    assert known.issuperset(several.options)
    for call in re.findall(r"\b\w+\([a-z]+='\w+'\)", several.taken + several.others):
        match = registry.find(call.partition("(")[0])
        assert match is not None
        assert Measure.parse(call if match.entry.cutoff.default == "forbidden" else f"{call}@5")


def test_every_short_name_of_a_measure_with_a_choice_of_denominator_is_listed() -> None:
    """A name that fixes an option, such as mapk, has one meaning."""
    for entry in registry.entries("list"):
        if entry.option("denom") is not None and entry.name not in ("Judged", "Overlap"):
            assert all(meanings_of(name) for name in (entry.name, *entry.aliases) if not entry.aliases.get(name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("MAR@5", "the MAR@k of recmetrics \\(mark\\) is AP@k"),
        ("meanaveragerecall@5", "MAR\\(kind='hits_R'\\), as in Evidently"),
        ("MRR", "MRR is RR, 1 / rank of the first hit; the sum of 1 / rank over all hits is ARHR"),
        ("mrr@10", "the sum of 1 / rank over all hits is ARHR"),
        ("ARHR", "of the first hit alone it is RR"),
        ("HR@10", "HR is Success, .* is R\\(agg='micro'\\)"),
        ("MAP@10", "by min\\(R, k\\) it is AP\\(denom='min'\\)"),
        ("AP(rel=2)@10", "AP is the sum of P@i"),
        ("Novelty@10", "Novelty is MIUF, .* SelfInfo"),
        ("rmse", "rmse is the mean of the users' RMSE; .* it is RMSE\\(agg='micro'\\)"),
        ("NDCG@10", "dcg='exp-log2'"),
    ],
)
def test_a_note_says_which_meaning_was_taken(text: str, said: str) -> None:
    (note,) = find_name_notes([text, text])
    assert re.search(said, note), note


@pytest.mark.parametrize(
    "text", ["RR@10", "MAR(kind='cutoffs')@5", "AP( DENOM = 'min' )@10", "Success@3", "Rprec", "@", "NoSuch@3"]
)
def test_a_name_whose_meaning_is_clear_has_no_note(text: str) -> None:
    assert find_name_notes([text]) == {}


def test_the_options_of_a_preset_say_the_meaning_too() -> None:
    assert find_name_notes(["AP@5"], {"AP": {"denom": "min"}}) == {}


def test_mark_of_recmetrics_is_ap() -> None:
    """Of the relevant a, b and c, a and b are at ranks 1 and 3: (1/1 + 2/3) / 3, which is not any MAR."""
    asked = MeasureSet.parse(["AP@3", *(f"MAR(kind='{kind}')@3" for kind in ("hits_R", "hits_min", "cutoffs"))])
    values = {name: found[0, 0] for name, found in asked.score(Lists.of([Ranking([1, None, 1], missed=[1])])).items()}
    mark = (1 + 2 / 3) / 3
    assert {name for name, value in values.items() if value == pytest.approx(mark, rel=0, abs=1e-12)} == {"ap"}
    assert len(values) == 4


@pytest.mark.parametrize("name", ["Coverage@10", "diversity", "Popularity@5", "mark@5"])
def test_a_name_without_a_usual_meaning_is_refused_with_the_measures_of_each(name: str) -> None:
    with pytest.raises(UnknownMeasureError, match=r"which has several meanings; expected .*; "):
        Measure.parse(name)
