"""The five tasks by ranx 0.3.21."""

import pandas as pd
from ranx import Qrels, Run, compare, evaluate


def read(log, held_out):
    names = {"q_id_col": "user_id", "doc_id_col": "item_id"}
    qrels = Qrels.from_df(held_out.astype({"gain": int}), **names, score_col="gain")
    runs = [Run.from_df(reco, **names, score_col="score", name=model) for model, reco in log.groupby("model_id")]
    return qrels, runs


def means(log, held_out, _):
    qrels, runs = read(log, held_out)
    return compare(qrels, runs=runs, metrics=["ndcg@10", "map@10", "recall@10"], make_comparable=True)


def difference(log, held_out, _):
    qrels, runs = read(log, held_out)
    return compare(qrels, runs=runs, metrics=["ndcg@10"], stat_test="student", max_p=0.05, make_comparable=True)


def segments(log, held_out, users):
    qrels, runs = read(log, held_out)
    for run in runs:
        evaluate(qrels, run, "ndcg@10", make_comparable=True)
    values = pd.DataFrame({run.name: pd.Series(run.scores["ndcg@10"]) for run in runs})
    return values.join(users.set_index("user_id")).groupby("age_band").mean(numeric_only=True)


def own_measure(log, held_out, _):
    best = held_out[held_out["gain"] >= 2]
    found = {}
    for model, reco in log.groupby("model_id"):
        first = reco.sort_values("score", ascending=False, kind="stable").groupby("user_id").head(3)
        found[model] = first.merge(best, on=["user_id", "item_id"])["user_id"].nunique() / best["user_id"].nunique()
    return pd.Series(found)


def page(log, held_out, users):
    return means(log, held_out, users).to_latex()
