"""Which policies go together, what a population implies, and what a preset sets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

import pytest

from rankeval_spark.config import EvaluationConfig, Policies, load_config, presets, validate_model
from rankeval_spark.config.policies import HANDLINGS, Missing, Population, ZeroRelevant
from rankeval_spark.config.presets import apply_preset, options_of
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure, MeasureSet, registry
from rankeval_spark.results.run_record import measure_facts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rankeval_spark.errors import Fault

    Refused = Callable[..., tuple[Fault, ...]]

ITEMS = "inputs.items={path: items, format: parquet}"


def policies(**written: Any) -> Policies:  # noqa: ANN401 - right and wrong values
    """Validate policies as the keys of a config."""
    return validate_model(Policies, written)


def stored(path: Path, *overrides: str) -> dict[str, Any]:
    """Return the policies as they are stored with a run."""
    found: dict[str, Any] = json.loads(load_config(path, overrides).public_json())["policies"]
    return found


@pytest.mark.parametrize(
    ("population", "implied"),
    [
        ("truth", ("exclude", "zero")),
        ("judged", ("zero", "zero")),
        ("intersection", ("exclude", "exclude")),
        ("intersection_judged", ("zero", "exclude")),
        ("run", ("exclude", "exclude")),
    ],
)
def test_population_implies_what_was_left_out(population: str, implied: tuple[str, str]) -> None:
    found = policies(population=population, zero_relevant=None)
    assert (found.zero_relevant, found.missing) == implied


def test_every_population_says_what_it_allows() -> None:
    assert set(HANDLINGS) == set(get_args(Population))
    assert {value for one in HANDLINGS.values() for value in one.zero_relevant} == set(get_args(ZeroRelevant))
    assert {value for one in HANDLINGS.values() for value in one.missing} == set(get_args(Missing))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            {"population": "truth", "zero_relevant": "zero"},
            r"zero_relevant: found zero_relevant 'zero' with population 'truth'; expected one of exclude, error; "
            r"use population judged or intersection_judged or run",
        ),
        ({"zero_relevant": "one"}, "'one' with population 'truth'"),
        ({"population": "judged", "zero_relevant": "exclude"}, "use population truth or intersection or run"),
        ({"population": "intersection", "missing": "zero"}, "use population truth or judged"),
        ({"population": "run", "missing": "zero"}, "expected one of exclude, error"),
    ],
)
def test_policy_that_contradicts_the_population_is_a_fault(written: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        policies(**written)


def test_both_contradictions_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        policies(population="intersection", missing="zero", zero_relevant="one")
    assert [fault.where for fault in raised.value.faults] == ["zero_relevant", "missing"]


def test_unknown_population_is_the_only_fault() -> None:
    with pytest.raises(ConfigError) as raised:
        policies(population="thruth", missing="exclude")
    assert [(fault.where, fault.fix) for fault in raised.value.faults] == [("population", "did you mean 'truth'?")]


def test_place_of_a_contradiction_is_that_of_the_file(config_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"--set policies\.missing=zero.*policies\.missing: found missing 'zero'"):
        load_config(config_file, ["policies.population=run", "policies.missing=zero"])


def test_what_is_implied_is_recorded_with_every_number() -> None:
    (fact,) = measure_facts(MeasureSet.parse(["P@5"]), policies(population="intersection_judged", judged_only=True))
    assert str(fact.definition) == (
        "P(rel=1, agg=macro, denom=k); population=intersection_judged, zero_relevant=zero, missing=exclude, "
        "ties=item_asc, order=score, score_precision=double, rank_gaps=renumber, duplicates=best, judged_only=True, "
        "held_out_duplicates=max, invalid_scores=drop, seen_in_train=keep, unknown_items=keep, own_item=keep, "
        "unit=user, lists=separate, attribution=none, attribution_window=none, consumed_before=keep"
    )


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (["policies.rank_gaps=keep"], "rank_gaps 'keep' with judged_only"),
        (["preset=rectools"], "rank_gaps 'keep', which preset 'rectools' sets, with judged_only"),
    ],
)
def test_lists_cut_down_to_judged_items_cannot_keep_their_ranks(
    refused: Refused, written: list[str], found: str
) -> None:
    (fault,) = refused(*written, "policies.judged_only=true")
    assert "policies.rank_gaps" in fault.where
    assert (fault.found, fault.fix) == (found, "set rank_gaps to renumber, or leave judged_only out")


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (["policies.rank_gaps=keep"], "nDCG(judged_only=True) with rank_gaps 'keep'"),
        (
            ["preset=rectools"],
            "nDCG(gains='binary',ideal='k_ones',judged_only=True) with rank_gaps 'keep', which preset 'rectools' sets",
        ),
    ],
)
def test_nor_can_lists_that_one_measure_cuts_down(refused: Refused, written: list[str], found: str) -> None:
    measures = "measures=[nDCG(judged_only=True), nDCG]"
    (fault,) = refused(*written, measures)
    assert fault.where == f"--set {measures}, measures"
    assert (fault.found, fault.fix) == (found, "set rank_gaps to renumber, or leave judged_only out")


def test_measure_of_judged_items_goes_with_the_policy_and_with_every_rule_for_ties(config_file: Path) -> None:
    asked = "measures=[nDCG(judged_only=True), P(judged_only=True)@5]"
    for ties in ("optimistic", "expected", "error", "rank"):
        assert stored(config_file, asked, f"policies.ties={ties}", "policies.judged_only=true")["ties"] == ties


def test_a_preset_that_keeps_ranks_can_be_overridden_to_renumber_them(config_file: Path) -> None:
    found = stored(config_file, "preset=rectools", "policies.rank_gaps=renumber", "policies.judged_only=true")
    assert (found["rank_gaps"], found["judged_only"]) == ("renumber", True)


# ---- means over all orders of ties ----------------------------------------------------------------------------------


def test_measures_without_a_mean_over_all_orders_are_refused_all_at_once(refused: Refused) -> None:
    measures = "measures=[ERR, nDCG, AP(denom='hits'), Bpref]"
    faults = refused("policies.ties=expected", measures)
    assert [fault.found for fault in faults] == [
        "ERR with ties 'expected'",
        "AP(denom='hits') with ties 'expected'",
        "Bpref with ties 'expected'",
    ]
    assert {fault.where for fault in faults} == {f"--set {measures}, measures"}


def test_measures_with_a_mean_over_all_orders_are_taken(config_file: Path) -> None:
    assert stored(config_file, "policies.ties=expected", "measures=[P, nDCG, RR, AP]")["ties"] == "expected"


@pytest.mark.parametrize("ties", ["optimistic", "pessimistic"])
def test_measures_that_the_order_of_the_gains_does_not_bound_are_refused_all_at_once(
    refused: Refused, ties: str
) -> None:
    measures = "measures=[nDCG, AP(denom='hits'), R(gains='value'), ILD, DCG(unjudged='mean'), FirstHit]"
    faults = refused(f"policies.ties={ties}", measures, ITEMS)
    assert [(fault.found, fault.fix.rpartition("such as ")[2]) for fault in faults] == [
        (f"AP(denom='hits') with ties '{ties}'", "item_asc"),
        (f"R(gains='value') with ties '{ties}'", "expected for its mean over all orders"),
        (f"DCG(unjudged='mean') with ties '{ties}'", "expected for its mean over all orders"),
        (f"FirstHit with ties '{ties}'", "item_asc"),
    ]
    assert {fault.where for fault in faults} == {f"--set {measures}, measures"}
    assert all("ordering ties by gain is best or worst" in fault.expected for fault in faults)


def test_item_slices_do_not_go_with_ties_by_gain(config_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"R\(group='drama'\) with ties 'optimistic'"):
        load_config(
            config_file,
            ["policies.ties=optimistic", "measures=[R]", "slicing.item_slices=[drama]", ITEMS],
        )


def test_advice_on_ties_names_only_what_goes_with_the_measure(refused: Refused) -> None:
    measures = "measures=[ERR, AP(denom='hits'), ILD]"
    faults = refused("policies.ties=expected", measures, ITEMS)
    assert [fault.fix.rpartition("such as ")[2] for fault in faults] == [
        "optimistic and pessimistic for its bounds",
        "item_asc",
        "item_asc",
    ]


@pytest.mark.parametrize(
    ("written", "inputs", "told"),
    [
        (["seen_in_train"], [], ["seen_in_train 'drop', but no inputs.train"]),
        (["unknown_items"], [], ["unknown_items 'drop', but no inputs.items or inputs.train"]),
        (["seen_in_train", "unknown_items"], ["items"], ["seen_in_train 'drop', but no inputs.train"]),
        (["seen_in_train", "unknown_items"], ["train"], []),
        (["unknown_items"], ["items"], []),
        ([], [], []),
    ],
)
def test_items_are_left_out_only_by_an_input_that_is_there(
    config_file: Path, written: list[str], inputs: list[str], told: list[str]
) -> None:
    changes = [f"policies.{name}=drop" for name in written]
    changes += [f"inputs.{name}={{path: {name}, format: parquet}}" for name in inputs]
    if not told:
        found = stored(config_file, *changes)
        names = ("seen_in_train", "unknown_items")
        assert {name: found[name] for name in names} == {name: "drop" if name in written else "keep" for name in names}
        return
    with pytest.raises(ConfigError) as raised:
        load_config(config_file, changes)
    assert [fault.found for fault in raised.value.faults] == told
    assert [fault.where.rpartition(", ")[2] for fault in raised.value.faults] == [
        f"policies.{text.partition(' ')[0]}" for text in told
    ]
    assert all(fault.fix.startswith("add inputs.") for fault in raised.value.faults)


def test_what_policies_lack_is_reported_with_the_other_faults(refused: Refused) -> None:
    faults = refused(
        "policies={seen_in_train: drop, unknown_items: drop, judged_only: true, rank_gaps: keep}", "cutoffs=[0]"
    )
    assert [fault.where.rpartition(", ")[2] for fault in faults] == [
        "cutoffs[0]",
        "policies.rank_gaps",
        "policies.seen_in_train",
        "policies.unknown_items",
    ]


# ---- presets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", presets())
def test_preset_sets_only_what_exists(name: str) -> None:
    """Its policies are valid, its options are options, and none of them repeats a default."""
    preset = presets()[name]
    chosen, usual = policies(**preset.policies), Policies()
    assert [key for key in preset.policies if getattr(chosen, key) == getattr(usual, key)] == []
    for measure, options in preset.options.items():
        k = 0 if registry.get(measure).cutoff.default == "forbidden" else 5
        written = Measure.of(measure, k=k, **options)
        assert [key for key, value in options.items() if value == written.entry.defaults[key]] == []
        assert Measure.parse(f"{measure}@{k}" if k else measure, defaults=preset.options) == written


def test_scores_are_compared_as_trec_eval_9_does_unless_version_10_is_asked_for(config_file: Path) -> None:
    assert stored(config_file, "preset=trec_eval")["score_precision"] == "single"
    own = stored(config_file, "preset=trec_eval", "policies.score_precision=double")
    assert (own["score_precision"], own["ties"]) == ("double", "item_desc_bytes")
    assert any("set score_precision to double" in note for note in presets()["trec_eval"].notes)


def test_preset_fills_in_policies_and_what_is_written_wins(config_file: Path) -> None:
    found = stored(config_file, "preset=trec_eval", "policies.duplicates=best", "policies.ties=")
    chosen = {key: found[key] for key in ("population", "zero_relevant", "ties", "duplicates", "held_out_duplicates")}
    assert chosen == {
        "population": "judged",
        "zero_relevant": "zero",
        "ties": "item_desc_bytes",
        "duplicates": "best",
        "held_out_duplicates": "error",
    }
    assert stored(config_file, "preset=trec_eval", "policies.population=truth")["zero_relevant"] == "exclude"


def test_another_population_leaves_out_what_a_preset_does_with_users_it_lacks() -> None:
    """lenskit: run and zero; a user without a relevant judgement is no user of truth, and one of judged."""
    assert apply_preset("lenskit", {"population": "truth"}) == {"population": "truth"}
    assert apply_preset("lenskit", {"population": "judged"}) == {"population": "judged", "zero_relevant": "zero"}
    with pytest.raises(ConfigError, match="zero_relevant 'zero' with population 'truth'"):
        validate_model(Policies, apply_preset("lenskit", {"population": "truth", "zero_relevant": "zero"}))


def test_preset_fills_in_options_and_what_is_written_wins() -> None:
    texts = ["AP@5", "AP(denom='hits')@5", "relative_P@5", "P@5", "nDCG(gains='grade')@5", "RR"]
    found = MeasureSet.parse(texts, defaults=options_of("lenskit")).measures
    assert [str(measure) for measure in found] == [
        *("AP(denom='len')@5", "AP(denom='hits')@5", "P(denom='min')@5", "P(denom='len')@5", "nDCG(dcg='jk2')@5"),
        "RR",
    ]


def test_config_asks_for_the_measures_of_its_preset(config_file: Path) -> None:
    measures = load_config(config_file, ["preset=rectools", "measures=[nDCG, nDCG(rel=2), AP]", "cutoffs=[5]"])
    assert [str(each) for each in measures.measure_set.measures] == [
        "nDCG(gains='binary',ideal='k_ones')@5",
        "nDCG(rel=2,gains='binary',ideal='k_ones')@5",
        "AP@5",
    ]


def test_stored_config_with_a_preset_means_the_same_again(config_file: Path) -> None:
    config = load_config(config_file, ["preset=lenskit", "policies.ties=rank"])
    again = validate_model(EvaluationConfig, json.loads(config.public_json()))
    assert again.public_json() == config.public_json()
    assert again.measure_set == config.measure_set


@pytest.mark.parametrize("value", ["trec", "[trec_eval]", "{}"])
def test_unknown_preset_is_the_only_fault(refused: Refused, value: str) -> None:
    faults = refused(f"preset={value}")
    assert [fault.where for fault in faults] == [f"--set preset={value}, preset"]
