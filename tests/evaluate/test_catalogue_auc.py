"""AUC against all items of the catalogue: numbers of implicit and scikit-learn, with lists in part or in full."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.metrics import roc_auc_score

from rankeval_spark import evaluate
from rankeval_spark.errors import InputError, InvalidCallError

N_USERS, N_ITEMS = 40, 25
RANDOM = np.random.default_rng(7)
SCORES = RANDOM.permuted(np.tile(np.arange(N_ITEMS) / 8, (N_USERS, 1)), axis=1)
TRAIN = RANDOM.random((N_USERS, N_ITEMS)) < 0.2
LIKED = ~TRAIN & (RANDOM.random((N_USERS, N_ITEMS)) < 0.15)
CATALOGUE = pa.table({"item_id": np.arange(N_ITEMS)})


class Ranker:
    """A model as implicit sees it: the best unseen items of some users."""

    def recommend(
        self,
        users: np.ndarray,
        seen: sparse.csr_matrix,
        *,
        N: int,  # noqa: N803 - a name of implicit
        **_: object,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and scores."""
        scores = np.where(seen.toarray() > 0, -1.0, SCORES[users])
        ids = np.argsort(-scores, axis=1)[:, :N].astype(np.int32)
        return ids, np.take_along_axis(scores, ids, axis=1)


def pairs(chosen: np.ndarray) -> pa.Table:
    """Build a row per user and item."""
    user, item = np.nonzero(chosen)
    return pa.table({"user_id": user, "item_id": item})


def log_of(chosen: np.ndarray) -> pa.Table:
    """Build the lists of the chosen items, with scores."""
    return pairs(chosen).append_column("score", pa.array(SCORES[chosen]))


def by_user(measure: str, log: pa.Table, held_out: pa.Table, **inputs: pa.Table) -> dict[int, float]:
    """Evaluate one measure and return the value of each user."""
    result = evaluate(log, held_out, measures=[measure], items=CATALOGUE, **inputs)
    return {row["user_id"]: row["value"] for row in result.user_values}


@pytest.mark.parametrize("k", [3, 10])
def test_short_lists_have_the_auc_of_implicit(k: int) -> None:
    evaluation = pytest.importorskip("implicit.evaluation")
    train, liked = (sparse.csr_matrix(each.astype(np.float64)) for each in (TRAIN, LIKED))
    theirs = evaluation.ranking_metrics_at_k(Ranker(), train, liked, K=k, show_progress=False, num_threads=1)
    result = evaluate(log_of(~TRAIN), pairs(LIKED), measures=[f"CatalogAUC@{k}"], items=CATALOGUE)
    assert result.metrics["value"][0].as_py() == pytest.approx(theirs["auc"], rel=0, abs=1e-12)


def test_full_lists_have_the_roc_auc_of_scikit_learn_over_the_catalogue() -> None:
    found = by_user("CatalogAUC", log_of(np.ones_like(TRAIN)), pairs(LIKED))
    for user in np.flatnonzero(LIKED.any(axis=1)).tolist():
        assert found[user] == pytest.approx(roc_auc_score(LIKED[user], SCORES[user]), rel=0, abs=1e-12)


@pytest.mark.parametrize("shown", [np.ones_like(TRAIN), ~TRAIN], ids=["seen items shown", "seen items left out"])
def test_seen_items_are_no_negatives_whether_or_not_the_list_has_them(shown: np.ndarray) -> None:
    """As LightFM and Cornac rank all items but those of the training data; items seen and judged keep counting."""
    repeated = TRAIN & (np.arange(N_ITEMS) == 3)
    judged = LIKED | repeated
    found = by_user("CatalogAUC(negatives='unseen')", log_of(shown | judged), pairs(judged), train=pairs(TRAIN))
    for user in np.flatnonzero(judged.any(axis=1)).tolist():
        counted = ~TRAIN[user] | judged[user]
        expected = roc_auc_score(judged[user, counted], SCORES[user, counted])
        assert found[user] == pytest.approx(expected, rel=0, abs=1e-12)


def test_trained_items_that_the_catalogue_lacks_leave_the_negatives_as_they_are() -> None:
    train = pa.table({"user_id": [1, 1, 1], "item_id": [0, 2, 99]})
    held_out = pa.table({"user_id": [1, 2], "item_id": [4, 4]})
    log = pa.table({"user_id": [1, 1, 1, 2], "item_id": [5, 0, 4, 4], "rank": [1, 2, 3, 1]})
    found = by_user("CatalogAUC(negatives='unseen')", log, held_out, train=train)
    assert found == {1: (N_ITEMS - 1 - 2 - 1) / (N_ITEMS - 1 - 2), 2: 1.0}


def test_what_needs_a_catalogue_or_training_data_says_so() -> None:
    log, held_out = log_of(~TRAIN), pairs(LIKED)
    with pytest.raises(InputError, match=r"CatalogAUC without a catalogue; expected items= or train="):
        evaluate(log, held_out, measures=["CatalogAUC"])
    with pytest.raises(InvalidCallError, match="expected a table with user_id and item_id, for CatalogAUC"):
        evaluate(log, held_out, measures=["CatalogAUC(negatives='unseen')"], items=CATALOGUE)


def test_measures_of_order_need_ranks_alone_where_they_say_so() -> None:
    log = pa.table({"user_id": [1, 1, 1], "item_id": [7, 8, 9], "rank": [1, 2, 3]})
    judged = pa.table({"user_id": [1, 1, 1], "item_id": [7, 8, 9], "gain": [2.0, 3.0, 1.0]})
    expected = {"FCP": 2 / 3, "KendallTau": 1 / 3, "Spearman": 1 / 2, "AUC": 1 / 2}
    options = {"AUC": "by='rank',rel=3"}
    measures = {f"{name}({options.get(name, by)})": value for by in ["by='rank'"] for name, value in expected.items()}
    result = evaluate(log, judged, measures=[*measures])
    found = {row["measure"].partition("(")[0]: row["value"] for row in result.metrics.to_pylist()}
    assert found == pytest.approx(expected, rel=0, abs=1e-12)
    assert "at last 0.6667" in str(result.explain(1, "FCP(by='rank')"))
