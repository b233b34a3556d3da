"""The five tasks by RecTools 0.19."""

import pandas as pd
from rectools.metrics import MAP, NDCG, Recall, calc_metrics
from scipy import stats


def ranked(log):
    ranks = log.groupby(["model_id", "user_id"])["score"].rank(method="first", ascending=False)
    return dict(list(log.assign(rank=ranks.astype(int)).groupby("model_id")))


def means(log, held_out, _):
    relevant = held_out[held_out["gain"] >= 1]
    metrics = {"NDCG@10": NDCG(k=10), "MAP@10": MAP(k=10), "Recall@10": Recall(k=10)}
    return pd.DataFrame({model: calc_metrics(metrics, reco, relevant) for model, reco in ranked(log).items()}).T


def difference(log, held_out, _):
    relevant = held_out[held_out["gain"] >= 1]
    values = {model: NDCG(k=10).calc_per_user(reco, relevant) for model, reco in ranked(log).items()}
    test = stats.ttest_rel(values["als"], values["popular"])
    return (values["als"] - values["popular"]).mean(), test.confidence_interval(), test.pvalue


def segments(log, held_out, users):
    relevant = held_out[held_out["gain"] >= 1]
    values = {model: NDCG(k=10).calc_per_user(reco, relevant) for model, reco in ranked(log).items()}
    return pd.DataFrame(values).join(users.set_index("user_id")).groupby("age_band").mean(numeric_only=True)


def own_measure(log, held_out, _):
    best = held_out[held_out["gain"] >= 2]
    found = {}
    for model, reco in ranked(log).items():
        shown = reco[reco["rank"] <= 3].merge(best, on=["user_id", "item_id"])["user_id"]
        found[model] = shown.nunique() / best["user_id"].nunique()
    return pd.Series(found)


def page(log, held_out, users):
    found = means(log, held_out, users)
    found.plot.bar().figure.savefig("rectools.png")
    return found.to_latex()
