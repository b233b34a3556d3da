"""The tasks that Evidently 0.7.23 offers: not values of users, a test of two models, or a measure by a function."""

from evidently import DataDefinition, Dataset, Recsys, Report
from evidently.metrics import MAP, NDCG, RecallTopK
from evidently.presets import RecsysPreset

DEFINITION = DataDefinition(ranking=[Recsys(prediction="score")])


def read(reco, held_out):
    rows = reco.merge(held_out.rename(columns={"gain": "target"}), on=["user_id", "item_id"], how="outer")
    return Dataset.from_pandas(rows.fillna({"score": -1e9, "target": 0}), data_definition=DEFINITION)


def means(log, held_out, _):
    report = Report([NDCG(k=10), MAP(k=10), RecallTopK(k=10)])
    runs = {model: report.run(read(reco, held_out)) for model, reco in log.groupby("model_id")}
    return {model: [metric["value"] for metric in run.dict()["metrics"]] for model, run in runs.items()}


def segments(log, held_out, users):
    found = {}
    for (model, band), reco in log.merge(users, on="user_id").groupby(["model_id", "age_band"]):
        judged = held_out.merge(users[users["age_band"] == band], on="user_id")
        run = Report([NDCG(k=10)]).run(read(reco, judged))
        found[model, band] = run.dict()["metrics"][0]["value"]
    return found


def page(log, held_out, _):
    for model, reco in log.groupby("model_id"):
        Report([RecsysPreset(k=10)]).run(read(reco, held_out)).save_html(f"evidently-{model}.html")
    return "a page a model"
