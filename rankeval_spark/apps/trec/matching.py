"""Rank the documents of a run as trec_eval does, and match them with the judgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.batch import to_batch
from rankeval_spark.engine.batch.codes import to_codes
from rankeval_spark.engine.ranking.judgements import to_judgements
from rankeval_spark.engine.ranking.matching import ListRules, match_log
from rankeval_spark.engine.ranking.ranked_lists import to_ranked
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.measures import Lists
from rankeval_spark.measures.arrays import positions

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from rankeval_spark.inputs.trec_files import Qrels, TrecRun


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


RULES: Final = ListRules(order=C.SCORE, ties="item_desc_bytes", duplicates="keep")
"""Documents in the order of their scores, ties in that of the bytes of their ids, both descending."""


def match(qrels: Qrels, run: TrecRun, *, max_documents: int | None, judged_only: bool) -> Matched:
    """Rank and match by the engine.

    Of each topic the first ``max_documents`` count, and of these, with ``judged_only``, those that were judged.

    Parameters
    ----------
    qrels, run
        The files; topics that have no judgement are left out.
    max_documents
        Greatest length of a list; None for no limit.
    judged_only
        Whether documents without a judgement, or with a negative one, leave the lists before the rest is ranked again.
    """
    batch = to_batch(_rows_of(qrels, run), models=(C.ONE_MODEL,))
    judgements = to_judgements(batch.held_out, n_items=batch.n_items, duplicates="max")
    ranked = to_ranked(match_log(batch, judgements, rules=RULES), rules=RULES)
    n_topics = batch.n_users  # each is judged, so that it has a list

    rank = ranked.rank_at(np.arange(len(ranked.row)))
    judgement = ranked.entries.judgement[ranked.row]
    gain = np.where(judgement >= 0, judgements.gain[judgement], np.nan)
    is_kept = rank <= (max_documents or np.inf)
    if judged_only:
        is_kept &= gain >= 0  # False for NaN, which means no judgement
    topic, gain = ranked.list_code[is_kept], gain[is_kept]
    score = to_numpy(batch.log.columns[C.SCORE])[ranked.row[is_kept]] if len(ranked.row) else np.zeros(0)
    rank = positions(topic, n_lists=n_topics)
    is_hit = ~np.isnan(gain)
    best_first = judgements.descending()
    lists = Lists(
        np.bincount(topic, minlength=n_topics),
        topic[is_hit],
        rank[is_hit],
        gain[is_hit],
        best_first.owner,
        best_first.gain,
        score[is_hit],
    )
    return Matched(batch.users.to_pylist(), ranked.length > 0, lists)


def _rows_of(qrels: Qrels, run: TrecRun) -> pa.Table:
    """Unite the files as rows of the engine: topics are users, documents are items."""
    is_judged = pc.is_in(run.topic, value_set=qrels.topic)
    n_retrieved, n_judged = pc.sum(is_judged).as_py() or 0, len(qrels.topic)
    score, nothing = run.score[to_numpy(is_judged)], np.zeros(n_judged)
    return pa.Table.from_pydict(
        {
            row_kinds.KIND: to_arrow(
                np.repeat(np.array([row_kinds.LOG, row_kinds.HELD_OUT], np.int8), [n_retrieved, n_judged])
            ),
            C.USER_ID: pa.chunked_array([run.topic.filter(is_judged), qrels.topic]),
            C.ITEM_ID: pa.chunked_array([run.document.filter(is_judged), qrels.document]),
            C.SCORE: to_arrow(np.concatenate([score, nothing.astype(score.dtype)])),
            C.GAIN: to_arrow(np.concatenate([np.zeros(n_retrieved), qrels.grade])),
        }
    )


def refuse_repeated_documents(path: Path, file: Qrels | TrecRun) -> None:
    """Stop where a topic has a document twice.

    Raises
    ------
    InputError
        It does; the first one in the file and its lines are named.
    """
    topics, documents = to_codes(file.topic), to_codes(file.document)
    pair = topics.code * documents.n_values + documents.code
    by_pair = np.argsort(pair, kind="stable")
    key = pair[by_pair]
    repeats = np.flatnonzero(key[1:] == key[:-1])
    if not repeats.size:
        return
    first = repeats[np.argmin(by_pair[repeats + 1])]
    before, again = (int(file.line[by_pair[first + offset]]) for offset in (0, 1))
    named = f"document {file.document[by_pair[first]].as_py()!r} of topic {file.topic[by_pair[first]].as_py()!r}"
    more = f" (and {repeats.size - 1:,} more pairs twice)" if repeats.size > 1 else ""
    raise InputError(
        Fault(f"{path}, line {again}", f"{named} again, after line {before}{more}", "each document once a topic")
    )
