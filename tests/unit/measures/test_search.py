"""Measures are found by what strangers call them, and nothing wrong is suggested."""

from __future__ import annotations

from typing import Final

import pytest

from rankeval_spark.errors import ConfigError
from rankeval_spark.measures import Measure, UnknownMeasureError, definition, group_statistics, registry, search
from rankeval_spark.measures.search import find_exact, find_measures, suggest_fix

PHRASES: Final = """
revenue = UserValue
hit ratio = Success
hit rate at 10 = Success
hits@10 = Success
success rate = Success
top-k accuracy = Success
average reciprocal hit rate = ARHR
average reciprocal hit-rank = ARHR
mean average precision = AP
MAP@K = AP
average_precision_at_k = AP
mean average precision at 12 = AP
PR-AUC = AP
area under the precision recall curve = AP
normalized discounted cumulative gain = nDCG
normalised discounted cumulated gain = nDCG
Normalized Discounted Cumulative Gain (NDCG)@10 = nDCG
normalized DCG = nDCG
discounted cumulative gain = DCG
ideal DCG = IDCG
mean rank of the first hit = HitRank
rank of the last relevant item = HitRank
sum of precisions = AP
cumulative gain = CG
fraction of concordant pairs = FCP
pair accuracy = FCP
pairwise accuracy = FCP
ordered pair accuracy = FCP
OPA = FCP
concordance index = FCP
diversity = ILD
intra-list diversity = ILD
intra list similarity = ILS
inter-list diversity = Personalization
personalisation = Personalization
coverage = CatalogCoverage
catalogue coverage = CatalogCoverage
item coverage = ItemCoverage
aggregate diversity = ItemCoverage
user coverage = UserCoverage
prediction coverage = PredictedShare
distributional coverage = Entropy
shannon entropy = Entropy
gini coefficient = Gini
gini index = Gini
mean reciprocal rank = RR
reciprocal rank = RR
expected reciprocal rank = ERR
rank biased precision = RBP
rank-biased overlap = RBO
binary preference = Bpref
inferred AP = infAP
r-precision = Rprec
precision at R = Rprec
precision at k = P
positive predictive value = P
sensitivity = R
true positive rate = R
recall at top 20 = R
f1 score = F
f measure = F
harmonic mean of precision and recall = F
F-beta = F
11-point interpolated average precision = IPrecAvg
interpolated precision = IPrec
geometric mean average precision = GMAP
mean average recall = MAR
root mean squared error = RMSE
root mean square error = RMSE
mean absolute error = MAE
mean squared error = MSE
log loss = LogLoss
binary cross entropy = LogLoss
area under the ROC curve = AUC
ROC AUC = AUC
group AUC = GAUC
partial AUC = PAUC
kendall's tau = KendallTau
spearman correlation = Spearman
matthews correlation coefficient = MCC
novelty = MIUF
mean inverse user frequency = MIUF
MeanInvUserFreq = MIUF
self information = SelfInfo
expected popularity complement = EPC
expected free discovery = EFD
serendipity = Serendipity
unexpectedness = Unexpectedness
freshness of items = Freshness
average recommendation popularity = ARP
popularity bias = ARP
popularity lift = PopLift
long tail = APLT
average percentage of long tail items = APLT
calibrated recommendations = Calibration
KL divergence = Calibration
subtopic recall = SRecall
alpha-nDCG = alpha_nDCG
intent-aware ERR = ERR_IA
intent-aware precision = P_IA
full AUC = CatalogAUC
inverse propensity scoring = IPS
inverse propensity weighting = IPS
self-normalized IPS = SNIPS
doubly robust = DR
clipped inverse propensity score = ClippedIPS
statistical parity = PopRSP
equal opportunity = PopREO
jaccard similarity = Jaccard
unjudged documents = unj
number of hits = NumHits
coverage_error = HitRank
IPrecCurve = IPrec
fairness between groups of users = GroupGap
worst group = WorstGroup
nDGC = nDCG
ndcg_at_k = nDCG
precison = P
sucess = Success
calibraton = Calibration
personalizaton = Personalization
mean avg precision = AP
avg precision = AP
average recall = MAR
recip_rank = RR
accuracy = ClassAccuracy
popularity = ARP
"""
"""Phrases of textbooks and of the documentation of other tools, and the measure that is found first."""


def first_hit(line: str) -> tuple[str, str]:
    phrase, _, name = line.rpartition(" = ")
    return phrase, name


@pytest.mark.parametrize(("phrase", "name"), [*map(first_hit, PHRASES.strip().splitlines())])
def test_a_phrase_finds_its_measure_first(phrase: str, name: str) -> None:
    assert next((entry.name for entry in find_measures(phrase)), None) == name


@pytest.mark.parametrize(
    "phrase", ["MPR", "mean percentile rank", "BLEU", "perplexity", "latency", "XYZ", "PPP", "banana", "weather", ""]
)
def test_a_phrase_of_no_measure_finds_nothing(phrase: str) -> None:
    assert (find_measures(phrase), suggest_fix(phrase)) == ([], "")


@pytest.mark.parametrize("word", ["items", "rank", "average", "list", "recommendations"])
def test_a_word_of_many_measures_finds_them_and_suggests_none(word: str) -> None:
    assert len(find_measures(word)) > 3
    assert suggest_fix(word) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nDGC", "did you mean 'nDCG'?"),
        ("RMES", "did you mean 'RMSE'?"),
        ("recal@5", "did you mean 'Recall'?"),
        ("GrupGap", "did you mean 'GroupGap'?"),
        ("ndcg10", "did you mean 'nDCG@10'?"),
        ("p10", "did you mean 'P@10'?"),
        ("F3", ""),
        ("RMSLF", ""),
        ("MRP", ""),
        ("avg. precision", "did you mean 'AP' or 'MeanP'?"),
        ("top-5 accuracy", "did you mean 'Success'?"),
        ("pair accuracy@5", "did you mean 'FCP'?"),
        ("OPA", "did you mean 'FCP'? OPAMetric of tf_ranking is FCP(agg='micro',ties='discordant')"),
        (
            "giniindex@10",
            "did you mean 'Gini'? GiniIndex of recbole is Gini(norm='n')@k; GiniIndex of elliot is 1 - Gini@k",
        ),
        (
            "surprisal@5",
            "did you mean 'MIUF'? Surprisal of replay is MIUF@k; it divides by log2 of the number of users, and by k "
            "where a list is shorter",
        ),
        ("Coverge@10", "did you mean 'ItemCoverage', 'CatalogCoverage' or 'UserCoverage'?"),
    ],
)
def test_an_unknown_name_is_answered_with_what_it_likely_is(name: str, said: str) -> None:
    assert suggest_fix(name) == said


@pytest.mark.parametrize(
    ("name", "found", "fix"),
    [
        ("coverage_error", "unknown measure 'coverage_error'", "coverage_error of sklearn is HitRank(stat='last'); "),
        ("MPR@10", "'MPR', which is not computed", "the place of each held-out item among all items"),
        ("ECE", "'ECE', which is not computed", "Calibration is of the categories of items"),
        ("r2", "'r2', which is not computed", "there are RMSE, MSE and MAE"),
        ("Coverage@10", "'Coverage', which has several meanings", "is CatalogCoverage, the number of items ItemCov"),
        ("hits_at_10", "'hits_at_10', which has several meanings", "there is a hit is Success, the number of hits"),
        ("OPA", "unknown measure 'OPA'", "OPAMetric of tf_ranking is FCP(agg='micro',ties='discordant')"),
        ("nDCG@k", "cutoff 'k'", "write the number, such as nDCG@10"),
        ("recall_at_k", "cutoff 'k'", "write the number, such as R@10"),
        ("precisionAtK", "cutoff 'K'", "write the number, such as P@10"),
        ("NDCG(k=10)", "unknown option 'k'", "write the cutoff behind @: nDCG@10"),
        ("ndcgAt(10)", "'10'", "write nDCG@10"),
        ("meanAveragePrecisionAt(10)", "'10'", "write AP(denom='min')@10"),
        ("mapk@k", "cutoff 'k'", "write the number, such as AP(denom='min')@10"),
        ("HitRate(top_k=5)", "unknown option 'top_k'", "write the cutoff behind @: Success@5"),
        ("P@5.0", "cutoff '5.0'", "write P@5"),
        ("P@[5, 10]", "cutoff '[5, 10]'", "write a measure for each: P@5, P@10"),
    ],
)
def test_a_name_of_another_tool_is_refused_with_the_way_to_write_it(name: str, found: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Measure.parse(name)
    (fault,) = caught.value.faults
    assert fault.found == found
    assert fix in fault.fix


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("hit_rate@10", "Success@10"),
        ("hit-rate@10", "Success@10"),
        ("Hit Ratio@10", "Success@10"),
        ("HR_10", "Success@10"),
        ("hr@10", "Success@10"),
        ("recall_at_10", "R@10"),
        ("RecallAt5", "R@5"),
        ("sensitivity_at_10", None),
        ("precision_at_k@10", "P@10"),
        ("P_10", "P@10"),
        ("p.10", "P@10"),
        ("ndcg_at_5", "nDCG@5"),
        ("ndcg_cut_10", "nDCG@10"),
        ("normalized discounted cumulative gain@10", "nDCG@10"),
        ("ndcg_burges@10", "nDCG(dcg='exp-log2')@10"),
        ("dcg-burges@10", "DCG(dcg='exp-log2')@10"),
        ("map_cut_10", "AP@10"),
        ("mapk@10", "AP(denom='min')@10"),
        ("meanAveragePrecisionAtK@10", "AP(denom='min')@10"),
        ("mean_average_precision", "AP"),
        ("MRR@10", "RR@10"),
        ("recip-rank", "RR"),
        ("mean reciprocal rank@5", "RR@5"),
        ("NCRR@10", "ARHR(denom='ideal')@10"),
        ("r_precision", "Rprec"),
        ("r_precision_at_5", "Rprec@5"),
        ("F_1@10", "F1@10"),
        ("f2@10", "F(beta=2)@10"),
        ("F0.5@10", "F(beta=0.5)@10"),
        ("f1_score@10", "F1@10"),
        ("calibrated_recall@10", "R(denom='min')@10"),
        ("Intersection(model='als')@10", "Overlap(denom='len',model='als')@10"),
        ("mean_inv_user_freq@10", "MIUF@10"),
        ("intra_list_similarity@10", "ILS@10"),
        ("catalog_coverage@10", "CatalogCoverage@10"),
        ("item_coverage@10", "ItemCoverage@10"),
        ("distributional_coverage@10", "Entropy@10"),
        ("averagepopularity@10", "ARP@10"),
        ("log_loss", "LogLoss"),
        ("root_mean_squared_error", "RMSE"),
        ("roc_auc_score", "AUC"),
        ("kendalltau", "KendallTau"),
        ("SelfNormalizedInverseProbabilityWeighting", "SNIPS"),
        ("α_nDCG@10", "alpha_nDCG@10"),
    ],
)
def test_names_of_other_tools_for_the_same_number_are_read(text: str, canonical: str | None) -> None:
    if canonical is None:  # a word of textbooks, which is no name
        with pytest.raises(UnknownMeasureError):
            Measure.parse(text)
    else:
        assert str(Measure.parse(text)) == canonical


@pytest.mark.parametrize("entry", [*registry.entries(), *group_statistics.ALL], ids=lambda entry: entry.name)
def test_everything_is_found_by_its_name_and_by_each_of_its_words(entry: search.Searched) -> None:
    assert find_measures(entry.name)[0] is entry
    for phrase in entry.words.split(", "):
        assert phrase == phrase.strip() != ""
        assert entry in find_exact(phrase)


def test_a_name_of_another_number_is_not_read() -> None:
    """It would be a silent difference; so neither is a name that is not computed, or has no usual meaning."""
    assert {name for name in registry.NOT_OFFERED if registry.find(name)} == set()


def test_what_stands_instead_of_a_number_names_measures_that_exist() -> None:
    for text in registry.NOT_OFFERED.values():
        for word in text.replace("@k", "").replace(",", " ").split():
            assert word in definition.DEFINED or not word.isupper() or word == "R"
