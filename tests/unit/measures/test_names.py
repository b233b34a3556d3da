"""Names are read generously, printed canonically, and refused with a sentence that helps."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given, strategies as st

from rankeval_spark.config.requested_measures import measure_set
from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Lists, Measure, MeasureSet, Ranking, UnknownMeasureError, group_statistics, registry
from rankeval_spark.measures.options import GainMap
from tests.support import oracles

VARIANTS = oracles.all_variants(ks=(0, 10_000))


@pytest.mark.parametrize("measure", VARIANTS, ids=str)
def test_printed_name_is_read_as_the_same_measure(measure: Measure) -> None:
    assert Measure.parse(str(measure)) == measure
    assert Measure.parse(measure.definition + (f"@{measure.k}" if measure.k else "")) == measure


@given(measure=st.sampled_from(VARIANTS), spaces=st.sampled_from(["", " ", "  "]), is_upper=st.booleans())
def test_reading_ignores_case_spaces_and_the_kind_of_quotes(measure: Measure, spaces: str, is_upper: bool) -> None:
    text = str(measure).replace("'", '"')
    for mark in "(,=@)":
        text = text.replace(mark, f"{spaces}{mark}{spaces}")
    text = text.upper() if is_upper else text.lower()
    for option in measure.entry.options:
        value = str(measure.options.get(option.name))
        if option.takes_text and value not in option.choices:  # what a category or a model is called: its case counts
            text = text.replace(f'"{value.upper()}"', f'"{value}"').replace(f'"{value.lower()}"', f'"{value}"')
    assert Measure.parse(text) == measure


@given(rel=st.floats(min_value=0, exclude_min=True, allow_infinity=False), k=st.integers(1, 10_000))
def test_numeric_options_survive_printing(rel: float, k: int) -> None:
    measure = Measure.of("AP", k=k, rel=rel)
    assert Measure.parse(str(measure)) == measure
    assert measure.options["rel"] == rel


@given(
    gains=st.dictionaries(
        st.floats(0, exclude_min=True, allow_infinity=False), st.floats(0.1, 1e9), min_size=1, max_size=4
    ),
    k=st.integers(1, 10_000),
)
def test_maps_survive_printing_in_the_order_of_their_grades(gains: dict[float, float], k: int) -> None:
    rising = dict(zip(sorted(gains), sorted(gains.values()), strict=True))
    shuffled = {grade: rising[grade] for grade in gains}
    measure = Measure.of("nDCG", k=k, gains=shuffled)
    assert Measure.parse(str(measure)) == measure == Measure.of("nDCG", k=k, gains=rising)
    assert measure.options["gains"] == GainMap(tuple(rising.items()))


@given(text=st.text(max_size=30) | st.from_regex(r"[A-Za-z_]{1,5}(\([a-z='0-9,.]*\))?(@[0-9.]*)?", fullmatch=True))
def test_any_text_is_a_measure_or_a_config_error(text: str) -> None:
    try:
        measure = Measure.parse(text)
    except ConfigError:
        return
    assert Measure.parse(str(measure)) == measure


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("HR@10", "Success@10"),
        ("HitRate@10", "Success@10"),
        ("MRR", "RR"),
        ("MAP@5", "AP@5"),
        ("Precision@5", "P@5"),
        ("recall@5", "R@5"),
        ("NDCG@10", "nDCG@10"),
        ("F1@5", "F1@5"),
        ("F@5", "F1@5"),
        ("F(beta=1,rel=2)@5", "F1(rel=2)@5"),
        ("F(beta=2)@5", "F(beta=2)@5"),
        ("relative_P@5", "P(denom='min')@5"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("map", "AP"),
        ("map_cut_10", "AP@10"),
        ("recip_rank", "RR"),
        ("P_5", "P@5"),
        ("recall_10", "R@10"),
        ("success_5", "Success@5"),
        ("relative_P_5", "P(denom='min')@5"),
        ("Rprec_mult_0.20", "Rprec_mult(x=0.2)"),
        ("Rprec_mult@2", "Rprec_mult(x=2)"),
        ("IPrec@0.1", "IPrec(recall=0.1)"),
        ("IPrec", "IPrec(recall=0.1)"),
        ("IPrec@0", "IPrec(recall=0)"),
        ("IPrec(need='v9')@1.0", "IPrec(need='v9',recall=1)"),
        ("iprec_at_recall_0.70", "IPrec(recall=0.7)"),
        ("iprec_at_recall.0.7", "IPrec(recall=0.7)"),
        ("11pt_avg", "IPrecAvg"),
        ("bpref", "Bpref"),
        ("infap", "infAP"),
        ("unj_10", "unj@10"),
        ("set_P", "SetP"),
        ("set_recall", "SetR"),
        ("set_F", "SetF"),
        ("Rprec", "Rprec"),
        ("num_rel_ret", "NumHits"),
        ("P(denom=min, rel=2.0)@5", "P(rel=2,denom='min')@5"),
        ("P()@5", "P@5"),
        ("AP(denom='R')", "AP"),
        ("MAR@5", "MAR(kind='hits_R')@5"),
        ("MAR(kind='cutoffs')@5", "MAR(kind='cutoffs')@5"),
        ("RBP", "RBP(p=0.8)"),
        ("rbp(max_rel=1, p=.80)@5", "RBP(p=0.8)@5"),
        ("RBP(p=0.9,rel=1)", "RBP(rel=1,p=0.9)"),
        ("err_10", "ERR@10"),
        ("nERR(max_rel=4)@10", "nERR@10"),
        ("ERR(MAX_REL=3)", "ERR(max_rel=3)"),
        ("gm_map", "GMAP"),
        ("P(agg=micro)@5", "P(agg='micro')@5"),
        ("P(group=TAIL)@5", "P(group='tail')@5"),
        ('ndcg(gains=VALUE, group="Sci-Fi (old), 1*x@2")@5', "nDCG(gains='value',group='Sci-Fi (old), 1*x@2')@5"),
        ('AP(group="Children\'s")', 'AP(group="Children\'s")'),
        ("AP(group='a\\b')", "AP(group='a\\b')"),
        ("GAUC(agg='micro')", "GAUC"),
        ("LogAP(floor=1e-5)", "LogAP"),
        ("LogAP(floor=1E-3)@5", "LogAP(floor=0.001)@5"),
        ("RBPResidual@10", "RBPResidual(p=0.8)@10"),
        ('biasDisparity(Category="Drama")@10', "BiasDisparity(category='Drama')@10"),
        ("BiasDisparity(category=true)", "BiasDisparity(category='true')"),
        ("ndcg( gains = { 2 : 3.0, 1: 1 }, dcg=JK2 )@5", "nDCG(dcg='jk2',gains={1:1,2:3})@5"),
    ],
)
def test_alias_is_read_as_its_canonical_name(text: str, canonical: str) -> None:
    assert str(Measure.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "nDGC@10",
            "unknown measure 'nDGC'; expected one of the [0-9]+ that 'rankeval .*' lists; did you mean 'nDCG'",
        ),
        ("", "''; expected Name"),
        ("P(rel=1@5", r"expected Name\(option=value,...\)@k"),
        ("P@0", "cutoff '0'; expected a whole number from 1 to 10000; leave '@0' out"),
        ("P@10001", "cutoff '10001'; expected a whole number from 1 to 10000"),
        ("P@", "cutoff ''"),
        ("P@ten", "cutoff 'ten'"),
        ("P@5.5", "cutoff '5.5'"),
        ("P@-1", "cutoff '-1'"),
        ("P_5@5", "two cutoffs"),
        ("P", r"no cutoff; expected one; for P it is required \(optional with denom='len'\)"),
        ("AP(denom='k')", "no cutoff"),
        ("F1", "no cutoff"),
        ("MAR(kind='cutoffs')", "no cutoff"),
        ("Judged(denom='k')", "no cutoff"),
        ("PAUC", "no cutoff"),
        ("BiasDisparity@5", r"no option 'category'; expected category as a category of items; write BiasDisparity\("),
        ("BiasDisparity(category=' Drama')@5", "category=' Drama'; expected category as a category of items"),
        ("BiasDisparity(category='Drama',group='tail')", "option 'group'; expected a measure that reads judgements"),
        ("Rprec_mult(x=1)@2", "option 'x' twice"),
        ("Rprec_mult@ten", "x=ten; expected x as a number above 0"),
        ("IPrecCurve", "'IPrecCurve', which stands for 11 measures; expected one of them, or the name in a list"),
        ("IPrec@10", "recall=10; expected recall as a number from 0 to 1"),
        ("IPrec@-0.1", "recall=-0.1; expected recall as a number from 0 to 1"),
        ("IPrec(recall=0.5)@0.1", "option 'recall' twice; expected each option once; leave '@0.1' out"),
        ("iprec_at_recall_0.10@0.1", "option 'recall' twice"),
        ("IPrec@", "recall=; expected recall"),
        ("IPrecAvg@10", "cutoff 10; expected IPrecAvg without one"),
        ("SetP@5", "cutoff 5; expected SetP without one"),
        ("nDCG(gains='binary',ideal='k_ones')", "no cutoff"),
        ("P(ral=2)@5", "unknown option 'ral'; expected one of rel, agg, denom, group, judged_only; did you mean 'rel'"),
        ("P(denom='R')@5", "denom='R'; expected denom as 'k' or 'len' or 'min'"),
        ("P(rel=0)@5", "rel=0; expected rel as a number above 0"),
        ("P(rel=nan)@5", "rel=nan; expected rel"),
        ("P(rel=1e999)@5", "rel=1e999; expected rel"),
        ("P(rel=1,rel=2)@5", "option 'rel' twice"),
        ("F1(beta=2)@5", "option 'beta' twice"),
        ("P(rel)@5", "'rel'; expected option=value"),
        ("P(rel=1;denom='k')@5", "rel=1;denom="),
        ("nDCG(rel=2)@5", "expected rel only with gains='binary'"),
        ("nDCG(ideal='k_ones')@5", "expected ideal='k_ones' only with gains='binary'"),
        (
            "nDCG(gains={})@5",
            r"gains={}; expected gains as 'grade' or 'binary' or 'value' or a map {grade: gain}, such",
        ),
        ("nDCG(unjudged='mean')", "no cutoff; expected one; for nDCG it is optional"),
        ("nDCG(ideal='retrieved',unjudged='median')@5", "unjudged='mean', 'median' or a number only with ideal="),
        ("nDCG(dcg='exp-log2',gains='value')@5", "gains='value' with a dcg without exp-"),
        ("R(denom='min',gains='value')@5", "gains='value' only with denom='R'"),
        (
            "Bpref(judged_only=True)",
            "option 'judged_only'; expected a measure that items without a judgement take places in, as they do not in "
            "Bpref; leave it out; the policy judged_only holds for all measures of a run",
        ),
        ("RMSE(JUDGED_ONLY=True)", "option 'JUDGED_ONLY'; expected a measure that items without a judgement take"),
        ("MIUF(judged_only=True)@5", "option 'judged_only'; expected a measure that items without a judgement take"),
        ("nDCG(judged_only=False)@5", "judged_only=False; expected judged_only as True; leave it out"),
        (
            "Success(weighted=True)@5",
            "option 'weighted'; expected a measure to which each relevant item adds a term of its own: .*R, NumHits, ",
        ),
        ("nDCG(weighted=False)@5", "weighted=False; expected weighted as True; leave it out"),
        ("R(denom='min',weighted=True)@5", "expected weighted=True only with denom='R'"),
        ("nDCG(ideal='retrieved',weighted=True)@5", "expected weighted=True only with ideal='judged' and 'len'"),
        ("DCG(unjudged='mean',weighted=True)@5", "expected weighted=True only with unjudged='zero'"),
        ("MAR(weighted=True)@5", "expected weighted=True only with kind='cutoffs'"),
        ("nDCG(judged_only=1)@5", "judged_only=1; expected judged_only as True"),
        (
            "nDCG(judged_only=True,unjudged='mean')@5",
            "expected judged_only=True not with unjudged='mean', 'median' or a number",
        ),
        (
            "CG(judged_only=True,unjudged='median')",
            "expected judged_only=True not with unjudged='mean', 'median' or a number",
        ),
        ("MIUF(group='tail')@5", "option 'group'; expected a measure that reads judgements, as MIUF does not"),
        ("ItemCoverage(group='tail')@5", "option 'group'; expected a measure that reads judgements"),
        ("IPrecAvg(levels=10.5)", "levels a whole number"),
        ("IPrecArea(levels=1)", "levels=1; expected levels as a number from 2 to 1001"),
        (
            "P(group='')@5",
            "group=''; expected group as 'head' or 'middle' or 'tail' or 'repeat' or 'explore' or a category of items",
        ),
        (
            "P(group=' a')@5",
            "expected group as 'head' or 'middle' or 'tail' or 'repeat' or 'explore' or a category of items",
        ),
        ("nDCG(gains={1:2,1:3})@5", "a map {grade: gain}"),
        ("nDCG(gains={1:2,2:1})@5", "gains that do not fall"),
        ("nDCG(gains={-1:1,2:1})@5", "grades from 0 on"),
        ("nDCG(gains={1:-1,2:1})@5", "a map {grade: gain}"),
        ("nDCG(gains={1:nan})@5", "a map {grade: gain}"),
        ("nDCG(gains={1:0,2:0})@5", "a map {grade: gain}"),
        ("nDCG(gains={1:1,2:1e999})@5", "a map {grade: gain}"),
        ("nDCG(gains={1:1:1})@5", "a map {grade: gain}"),
        ("nDCG(gains={1,2})@5", "a map {grade: gain}"),
        ("nDCG(gains={1:1)@5", "a map {grade: gain}"),
        (
            "GMAP(agg='micro')",
            r"option 'agg'; expected a measure that is a ratio of sums: .*AP, .*F, FCP, .*P, .*PredictedShare, R, RMSE",
        ),
        (
            "Success(agg='micro')@5",
            "; leave it out: Success has no denominator to sum, so its micro average is its mean",
        ),
        ("Gini(agg='micro')@5", "leave it out: Gini is of all lists together, and no mean over users"),
        ("ARHR(agg='micro')", "expected agg='micro' not with denom='none': without a denominator"),
        (
            "AP(gains='grade')",
            "expected gains as 'binary' or a map {grade: gain}.*say what each grade is worth: gains=",
        ),
        ("AP(rel=2,gains={1:1})", "expected rel only with gains='binary'"),
        ("AP(agg='micro',denom='none')", "expected agg='micro' not with denom='none': without a denominator"),
        ("ARHR(denom='hits',gains='grade')", "gains='grade' not with denom='hits': an item below rel adds its gain"),
        ("nDCG(dcg='geometric')@5", "expected p with dcg='geometric', which needs one such as p=0.8"),
        ("DCG(p=0.8)", "expected p with dcg='geometric', which needs one such as p=0.8, and with no other"),
        ("nDCG(dcg='zipf')@5", "the discount 1 / i is dcg='inverse'"),
        ("LogAP(floor=0)", "floor=0; expected floor as a number above 0 and below 1"),
        ("RBP(p=1)", "p=1; expected p as a number above 0 and below 1"),
        ("RBP(p=0)", "p=0; expected p as a number above 0 and below 1"),
        ("RBP(max_rel=0)", "expected max_rel as a number above 0"),
        ("RBP(rel=None)", "rel=None; expected rel as a number above 0"),
        ("nDCG(unjudged=0)@5", "expected unjudged as 'zero' or 'mean' or 'median' or a number above 0"),
        ("nDCG(unjudged=2)", "no cutoff; expected one; for nDCG it is optional"),
        ("ERR(max_rel=2,unjudged=3)", "expected unjudged at most max_rel"),
        ("RR(weighted=True)", "expected weighted=True only with agg='micro': a list counts by the mean weight"),
        ("RBP(rel=1,max_rel=2)", "expected max_rel only without rel"),
        ("nDCG(rel=2,gains={1:1})@5", "expected rel only with gains='binary'"),
        ("nDCG(gains={1:1},ideal='k_ones')@5", "expected ideal='k_ones' only with gains='binary'"),
        ("Calibration(base='e',distance='Hellinger')", "expected base only with distance='KL' and 'JS'"),
        ("ARHR(gains={1:1})", "gains={1:1}; expected gains as 'binary' or 'grade'$"),
        ("Personalization(denom='min',sim='cosine')@5", "expected denom only with sim='overlap'"),
        ("Personalization", "no cutoff; expected one"),
        (
            "Personalization(sim='Jaccard')@5",
            "sim='Jaccard'; expected sim as 'overlap' or 'cosine'; the Jaccard index takes every pair of lists, "
            ".* take sim='cosine'",
        ),
        (
            "FCP(agg='surprise')",
            "agg='surprise'; expected agg as 'macro' or 'micro'; Surprise divides means over different users.*"
            "agg='micro' with ties='discordant'",
        ),
        ("P(agg='surprise')@5", "agg='surprise'; expected agg as 'macro' or 'micro'$"),
        ("ARHR(rel=2,gains='grade')", "expected rel not with gains='grade' and denom='none' or 'ideal'"),
    ],
)
def test_faulty_name_is_refused_with_a_helpful_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        Measure.parse(text, where="conf/nightly.yaml, measures")
    assert all(fault.where.startswith("conf/nightly.yaml, measures") for fault in caught.value.faults)


@pytest.mark.parametrize("name", [*group_statistics.KINDS, group_statistics.ITEM_MAD])
def test_number_of_several_groups_is_said_to_come_by_itself(name: str) -> None:
    slices = r"slicing\.item_slices" if name == "ItemMAD" else "slices"
    for text in (name, name.lower(), f"{name}(nDCG)@10", f"{name}(AP(denom='min'))"):
        with pytest.raises(
            UnknownMeasureError, match=rf"found '{name}', which is not requested as a measure.* with {slices} the table"
        ):
            Measure.parse(text)


@pytest.mark.parametrize("name", ["Overlap", "Jaccard", "RBO"])
def test_number_of_two_models_is_said_to_lack_the_other_one(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"no option 'model'.*write {name}\(model='...'\)"):
        Measure.parse(f"{name}@10")


def test_statistics_of_measures_have_names_of_their_own_that_are_suggested() -> None:
    assert {*group_statistics.KINDS, group_statistics.ITEM_MAD} == {one.name for one in group_statistics.ALL}
    assert [name for name in (one.name for one in group_statistics.ALL) if registry.find(name)] == []
    with pytest.raises(UnknownMeasureError, match="did you mean 'GroupGap'"):
        Measure.parse("GrupGap")


def test_unknown_name_has_its_own_error() -> None:
    with pytest.raises(UnknownMeasureError):
        Measure.parse("Accuracy@5")


def test_all_faults_of_all_measures_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        MeasureSet.parse(["nDGC@10", "P(rel=0,denom='x')@5", "P@5", "AP@0"])
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize(
    "attack", ["P(rel=__import__('os'))@5", "P(rel=open('x'))@5", "__import__('os')", "P(rel=9**9)@5"]
)
def test_text_is_never_evaluated(attack: str) -> None:
    with pytest.raises(ConfigError):
        Measure.parse(attack)


@pytest.mark.parametrize(
    ("text", "label", "column", "definition"),
    [
        ("P(rel=2)@5", "P(rel=2)", "p_rel_2", "P(rel=2,agg='macro',denom='k')"),
        ("AP(denom='min')", "AP(denom='min')", "ap_denom_min", "AP(rel=1,agg='macro',denom='min',gains='binary')"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(dcg='exp-log2')", "ndcg_dcg_exp_log2", None),
        ("R(rel=0.5)@5", "R(rel=0.5)", "r_rel_0_5", "R(rel=0.5,agg='macro',denom='R',gains='binary')"),
        ("F1@5", "F1", "f1", "F(rel=1,agg='macro',beta=1)"),
        ("IPrec@0.1", "IPrec(recall=0.1)", "iprec_recall_0_1", "IPrec(rel=1,need='ceil',recall=0.1)"),
        ("MAR@5", "MAR(kind='hits_R')", "mar_kind_hits_r", "MAR(rel=1,agg='macro',kind='hits_R')"),
        (
            "P(judged_only=true)@5",
            "P(judged_only=True)",
            "p_judged_only_true",
            "P(rel=1,agg='macro',denom='k',judged_only=True)",
        ),
        ("RBP@5", "RBP(p=0.8)", "rbp_p_0_8", "RBP(max_rel=1,p=0.8,unjudged='zero')"),
        ("RBP(rel=2)@5", "RBP(rel=2,p=0.8)", "rbp_rel_2_p_0_8", "RBP(rel=2,max_rel=1,p=0.8,unjudged='zero')"),
        (
            "CG(gains={1:0.5,2:3})",
            "CG(gains={1:0.5,2:3})",
            "cg_gains_1_0_5_2_3",
            "CG(rel=1,gains={1:0.5,2:3},unjudged='zero')",
        ),
    ],
)
def test_label_column_and_definition(text: str, label: str, column: str, definition: str | None) -> None:
    measure = Measure.parse(text)
    assert (measure.label, measure.column) == (label, column)
    assert definition in {None, measure.definition}


def test_measures_are_values() -> None:
    measure = Measure.parse("P(denom='k',rel=1)@5")
    assert measure == Measure.parse("P@5")
    assert len({measure, Measure.parse("p@5")}) == 1
    assert pickle.loads(pickle.dumps(measure)) == measure


def test_cutoff_is_changed_within_the_rules() -> None:
    assert str(Measure.parse("P@5").at(10)) == "P@10"
    with pytest.raises(ConfigError, match="no cutoff"):
        Measure.parse("P@5").at(0)
    with pytest.raises(ConfigError, match="cutoff 20000"):
        Measure.parse("P@5").at(20_000)


def test_set_orders_cutoffs_and_keeps_measures_in_order_of_mention() -> None:
    asked = MeasureSet.parse(["nDCG@10", "AP", "P@5", "nDCG@1", "ndcg_cut_10"])
    assert asked.ks == (1, 5, 10, 0)
    assert asked.labels == ("nDCG", "AP", "P")
    assert asked.requested_ks == {"ndcg": (1, 10), "ap": (0,), "p": (5,)}


def test_set_survives_the_way_to_an_executor() -> None:
    asked = pickle.loads(pickle.dumps(MeasureSet.parse(["nDCG@10", "AP"])))
    assert asked.score(Lists.of([Ranking([1])]))["ndcg"][0, 0] == 1


def test_set_refuses_two_measures_that_share_a_column() -> None:
    with pytest.raises(ConfigError, match=r"P\(rel=1e-16\), whose column 'p_rel_1e_16' is that of P\(rel=1e\+16\)"):
        MeasureSet.of([Measure.of("P", k=5, rel=1e16), Measure.of("P", k=5, rel=1e-16)])


def test_set_refuses_to_be_empty() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        MeasureSet.of([])


def test_no_measure_takes_the_place_of_a_key_column() -> None:
    for entry in registry.entries():
        need = entry.cutoff.need(entry.defaults)
        given = {option.name: oracles.TEXT for option in entry.options if option.is_required}
        MeasureSet.of([Measure.of(entry.name, k=0 if need == "forbidden" else 5, **given)])


def test_groups_in_other_alphabets_have_columns_of_their_own() -> None:
    asked = MeasureSet.parse([f"R(group='{name}')@5" for name in ("Драма", "Комедия", "drama")])
    assert len(set(asked.columns)) == 3
    assert all(re.fullmatch(r"r_group_[a-z0-9]+", column) for column in asked.columns)


def test_one_name_requests_the_eleven_points_of_a_curve() -> None:
    written = [f"IPrec(rel=2,need='v9',recall={tenths / 10:g})" for tenths in range(11)]
    assert MeasureSet.parse(["P@5", "IPrecCurve(rel=2,need='v9')"]) == MeasureSet.parse(["P@5", *written])
    in_a_config = measure_set(("iprec_curve",), (5, "all"), "trec_eval")
    assert [measure.definition for measure in in_a_config.measures][::10] == [
        f"IPrec(rel=1,need='v10',recall={level})" for level in (0, 1)
    ]
