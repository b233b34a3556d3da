"""Rank the documents of a run as trec_eval does, and match them with the judgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from rankeval_spark.app.trec.files import flags, numbers
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.measures import Lists
from rankeval_spark.measures.arrays import positions

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rankeval_spark.app.trec.files import Qrels, Run
    from rankeval_spark.measures.arrays import FloatVector, IntVector


@dataclass(frozen=True)
class Matched:
    """The topics of the judgements with their lists.

    Attributes
    ----------
    topics : list of str
        Ids in the order of their bytes.
    is_in_run : bool, shape (n_topics,)
        Whether the run has any document for the topic.
    lists : Lists
        A list for each topic; an empty one where the run has no document.
    """

    topics: list[str]
    is_in_run: NDArray[np.bool_]
    lists: Lists

    def keep(self, is_kept: NDArray[np.bool_]) -> Matched:
        """Return some of the topics."""
        number = np.cumsum(is_kept) - 1
        lists = self.lists
        of_hits, of_judged = is_kept[lists.hit_list], is_kept[lists.judged_list]
        kept = Lists(
            lists.n_recommended[is_kept],
            number[lists.hit_list[of_hits]],
            lists.hit_rank[of_hits],
            lists.hit_gain[of_hits],
            number[lists.judged_list[of_judged]],
            lists.judged_gain[of_judged],
            lists.scores[of_hits],
        )
        topics = [topic for topic, stays in zip(self.topics, is_kept.tolist(), strict=True) if stays]
        return Matched(topics, self.is_in_run[is_kept], kept)


@dataclass(frozen=True)
class _Pairs:
    """Rows as numbers: ids in the order of their bytes, and one number for a (topic, document) pair."""

    topic: IntVector
    document: IntVector
    n_documents: int

    @property
    def key(self) -> IntVector:
        return self.topic * self.n_documents + self.document

    def keep(self, kept: NDArray[np.generic]) -> _Pairs:
        return _Pairs(self.topic[kept], self.document[kept], self.n_documents)


def match(qrels: Qrels, run: Run, *, max_documents: int | None, judged_only: bool) -> Matched:
    """Rank and match.

    Documents stand in the order of their scores, ties in that of the bytes of their ids, both descending. Of each
    topic the first ``max_documents`` count, and of these, with ``judged_only``, those that were judged.

    Parameters
    ----------
    qrels, run
        The files; topics that have no judgement are left out.
    max_documents
        Greatest length of a list; None for no limit.
    judged_only
        Whether documents without a judgement, or with a negative one, leave the lists before the rest is ranked anew.
    """
    topics, documents = _in_order(qrels.topic), _in_order(qrels.document, run.document)
    judged = _numbered(topics, documents, qrels.topic, qrels.document)
    order = np.lexsort((-qrels.grade, judged.topic))

    has_judgements = pc.is_in(run.topic, value_set=topics)
    retrieved = _numbered(topics, documents, run.topic.filter(has_judgements), run.document.filter(has_judgements))
    score = run.score[flags(has_judgements)]
    best_first = np.lexsort((-retrieved.document, -score, retrieved.topic))
    retrieved, score = retrieved.keep(best_first), score[best_first]
    is_in_run = np.bincount(retrieved.topic, minlength=len(topics)) > 0

    rank = positions(retrieved.topic, n_lists=len(topics))
    is_within = rank <= (max_documents or np.inf)
    retrieved, rank, score = retrieved.keep(is_within), rank[is_within], score[is_within]
    gain = _gains(judged.key, qrels.grade, retrieved.key)
    if judged_only:
        is_judged = gain >= 0  # False for NaN, which stands for no judgement
        retrieved, gain, score = retrieved.keep(is_judged), gain[is_judged], score[is_judged]
        rank = positions(retrieved.topic, n_lists=len(topics))
    is_hit = ~np.isnan(gain)
    lists = Lists(
        np.bincount(retrieved.topic, minlength=len(topics)),
        retrieved.topic[is_hit],
        rank[is_hit],
        gain[is_hit],
        judged.topic[order],
        qrels.grade[order],
        score[is_hit],
    )
    return Matched(topics.to_pylist(), is_in_run, lists)


def refuse_repeated(path: Path, rows: Qrels | Run) -> None:
    """Stop where a document stands twice for a topic.

    Raises
    ------
    InputError
        It does; the first one in the file and its lines are named.
    """
    pairs = _numbered(_in_order(rows.topic), _in_order(rows.document), rows.topic, rows.document)
    by_pair = np.argsort(pairs.key, kind="stable")
    key = pairs.key[by_pair]
    repeats = np.flatnonzero(key[1:] == key[:-1])
    if not repeats.size:
        return
    first = repeats[np.argmin(by_pair[repeats + 1])]
    before, again = (int(rows.line[by_pair[first + offset]]) for offset in (0, 1))
    pair = f"document {rows.document[by_pair[first]].as_py()!r} of topic {rows.topic[by_pair[first]].as_py()!r}"
    where = f"{path}, line {again}"
    more = f" (and {repeats.size - 1:,} more pairs twice)" if repeats.size > 1 else ""
    raise InputError(Fault(where, f"{pair} again, after line {before}{more}", "each document once a topic"))


def _in_order(*columns: pa.Array) -> pa.Array:
    """Return the distinct ids of some columns, in the order of their bytes."""
    ids = pa.chunked_array(columns).unique()
    return ids.take(pc.sort_indices(ids))


def _numbered(topics: pa.Array, documents: pa.Array, topic: pa.Array, document: pa.Array) -> _Pairs:
    return _Pairs(_places(topic, topics), _places(document, documents), len(documents))


def _places(column: pa.Array, ids: pa.Array) -> IntVector:
    return numbers(pc.index_in(column, value_set=ids)).astype(np.int64)


def _gains(judged_key: IntVector, grade: FloatVector, key: IntVector) -> FloatVector:
    """Look up the grade of each retrieved document; NaN where there is no judgement."""
    order = np.argsort(judged_key)
    sorted_key = judged_key[order]
    place = np.minimum(np.searchsorted(sorted_key, key), sorted_key.size - 1)
    return np.where(sorted_key[place] == key, grade[order][place], np.nan)
