"""Published tables, made again from data that wheels carry: the page ``docs/reproduced.md`` says where each stands.

``make published`` runs it in an environment with the tools whose models the tables are of; ``ARGS=open-bandit`` for one
table. Models are those of the tool, with the seeds of its table; every mean is computed here. It ends with 1 where a
number, rounded as it is published, is another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from rankeval_spark import evaluate
from rankeval_spark.demo import movielens, open_bandit
from rankeval_spark.spark.session import cache_dir

CORNAC: Final = {
    "MF": "0.7430 0.8998 0.7445 0.0548 0.0761 0.0675 0.0463",
    "PMF": "0.7534 0.9138 0.7744 0.0671 0.0969 0.0813 0.0639",
    "BPR": "N/A N/A 0.8695 0.1042 0.1500 0.1110 0.1195",
}
"""MAE, RMSE, AUC, MAP, NDCG@10, Precision@10 and Recall@10 in the README of Cornac, MovieLens 100K."""
OF_CORNAC: Final = ("MAE", "RMSE", "AUC", "AP", "nDCG(gains='binary')@10", "P@10", "R@10")
SURPRISE: Final = {
    "SlopeOne": "0.946 0.743",
    "KNNBasic": "0.980 0.774",
    "KNNWithMeans": "0.951 0.749",
    "KNNBaseline": "0.931 0.733",
    "BaselineOnly": "0.944 0.748",
}
"""RMSE and MAE in the README of Surprise, MovieLens 100K, of the rows that start nowhere at random."""
OF_SURPRISE: Final = ("RMSE(agg='micro')", "MAE(agg='micro')")


class Number(NamedTuple):
    """A number of a table: its row, the measure here, as it is published, and what comes out."""

    row: str
    measure: str
    published: str
    found: float

    @property
    def rounded(self) -> str:
        """What comes out, rounded as it is published."""
        return f"{self.found:.{len(self.published.partition('.')[2])}f}"


def values(log: pd.DataFrame, held_out: pd.DataFrame, measures: Sequence[str], **options: Any) -> dict[str, float]:  # noqa: ANN401 - those of evaluate
    """Evaluate, and return the means by the names as they are requested."""
    rows = evaluate(log, held_out, measures=list(measures), **options).metrics.to_pylist()
    return {f"{row['measure']}@{row['k']}" if row["k"] else row["measure"]: row["value"] for row in rows}


def ratings() -> pd.DataFrame:
    """Read the ratings of MovieLens 100K in the order of their file, ids as text."""
    frame = movielens.load(cache_dir()).interactions
    return frame.astype({"user_id": str, "item_id": str}).rename(columns={"rating": "gain"})


def cornac() -> Iterator[Number]:
    """Train the models of Cornac's README on its split, and evaluate them."""
    from cornac.eval_methods import RatioSplit  # noqa: PLC0415 - installed for this table alone
    from cornac.models import BPR, MF, PMF  # noqa: PLC0415 - installed for this table alone

    triples = list(ratings()[["user_id", "item_id", "gain"]].itertuples(index=False, name=None))
    split = RatioSplit(data=triples, test_size=0.2, rating_threshold=4.0, seed=123)
    models = [
        MF(k=10, max_iter=25, learning_rate=0.01, lambda_reg=0.02, use_bias=True, seed=123),
        PMF(k=10, max_iter=100, learning_rate=0.001, lambda_reg=0.001, seed=123),
        BPR(k=10, max_iter=200, learning_rate=0.001, lambda_reg=0.01, seed=123),
    ]
    test = pd.DataFrame(dict(zip(("user_id", "item_id", "gain"), split.test_set.uir_tuple, strict=True)))
    train = pd.DataFrame(dict(zip(("user_id", "item_id", "gain"), split.train_set.uir_tuple, strict=True)))
    n_items = split.train_set.num_items
    relevant, liked = (frame[frame["gain"] >= 4].groupby("user_id")["item_id"].agg(set) for frame in (test, train))  # noqa: PLR2004 - the threshold of the table
    shown = {user: [item for item in range(n_items) if item not in liked.get(user, ())] for user in relevant.index}
    users = np.repeat([*shown], [len(items) for items in shown.values()])
    items = np.concatenate([*shown.values()])
    hits = np.concatenate([np.isin(items, [*relevant[user]]) for user, items in shown.items()])
    judged = pd.DataFrame({"user_id": users, "item_id": items, "gain": hits.astype(float)})
    for model in models:
        model.fit(split.train_set)
        scores = np.concatenate([model.score(user)[items] for user, items in shown.items()])
        found = values(judged[["user_id", "item_id"]].assign(score=scores), judged, OF_CORNAC[2:])
        if "N/A" not in CORNAC[model.name]:
            rated = [model.rate(user, item).item() for user, item in zip(test["user_id"], test["item_id"], strict=True)]
            found |= values(test[["user_id", "item_id"]].assign(score=rated), test, OF_CORNAC[:2])
        for measure, published in zip(OF_CORNAC, CORNAC[model.name].split(), strict=True):
            if published != "N/A":
                yield Number(model.name, measure, published, found[measure])


def surprise() -> Iterator[Number]:
    """Predict ratings by the algorithms of Surprise on its five folds, and evaluate them."""
    import surprise as tool  # noqa: PLC0415 - installed for this table alone
    from surprise.model_selection import KFold  # noqa: PLC0415 - installed for this table alone

    data = tool.Dataset.load_from_df(ratings()[["user_id", "item_id", "gain"]], tool.Reader(rating_scale=(1, 5)))
    for name, row in SURPRISE.items():
        by_fold = []
        for train, test in KFold(random_state=0).split(data):
            model = getattr(tool, name)(**({} if name == "SlopeOne" else {"verbose": False}))
            found = model.fit(train).test(test)
            pairs = pd.DataFrame({"user_id": [one.uid for one in found], "item_id": [one.iid for one in found]})
            log = pairs.assign(score=[one.est for one in found])
            held_out = pairs.assign(gain=[one.r_ui for one in found])
            by_fold.append(values(log, held_out, OF_SURPRISE))
        for measure, published in zip(OF_SURPRISE, row.split(), strict=True):
            yield Number(name, measure, published, float(np.mean([fold[measure] for fold in by_fold])))


def bandit() -> Iterator[Number]:
    """Estimate Thompson sampling from the random log, as the description of the Open Bandit Pipeline does.

    Then each policy from the log of the other, next to its own log, which no one publishes: a number is the one of the
    own log where that is within the interval of the estimate.
    """
    impressions = open_bandit.load(cache_dir())
    estimates = open_bandit.estimate(impressions)
    yield Number("Thompson sampling from random", "IPS, relative", "1.198126", estimates.relative_value)
    of_random, *of_other, own = estimates.rows
    log, n_items = impressions.logs[open_bandit.THOMPSON], len(impressions.prior[0])
    back = open_bandit.measure_impressions(log, pd.Series(1 / n_items, index=log.index), ["IPS", "SNIPS"])
    found = [("Thompson sampling from random", one.by, one.value, one.low, one.high, own.value) for one in of_other]
    found += [
        ("random from Thompson sampling", name, row["value"], row["ci_low"], row["ci_high"], of_random.value)
        for name, row in back.items()
    ]
    for row, by, value, low, high, rate in found:
        print(f"{row}, {by}: {1000 * value:.2f} [{1000 * low:.2f}, {1000 * high:.2f}], own log {1000 * rate:.2f}")
        yield Number(row, f"{by}, own log", f"{rate:.4f}", rate if low <= rate <= high else value)


TABLES: Final[Mapping[str, Callable[[], Iterator[Number]]]] = {
    "open-bandit": bandit,
    "cornac": cornac,
    "surprise": surprise,
}


def main() -> int:
    """Make the tables again that are named, or all; 1 where a number is another."""
    is_same = True
    for name in sys.argv[1:] or TABLES:
        for one in TABLES[name]():
            is_same &= one.rounded == one.published
            mark = "" if one.rounded == one.published else "  <-- another"
            print(f"{name:12}{one.row:34}{one.measure:26}{one.published:>10}{one.rounded:>10}{mark}", flush=True)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
