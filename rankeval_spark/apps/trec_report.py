"""A TREC run evaluated against TREC judgements, without Spark: the numbers and the lines of trec_eval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.apps.trec_names import OLD, Count, Line, TopicCounts, Version, requested_lines
from rankeval_spark.engine.batch import row_kinds
from rankeval_spark.engine.batch.arrays import to_arrow, to_numpy
from rankeval_spark.engine.batch.batch import to_batch
from rankeval_spark.engine.batch.codes import to_codes
from rankeval_spark.engine.ranking.matching import ListRules, match_log, to_judgements
from rankeval_spark.engine.ranking.ranked_lists import to_ranked
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.trec_files import TrecRun, read_qrels, read_run
from rankeval_spark.measures import Lists, Measure, MeasureSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.inputs.trec_files import Qrels
    from rankeval_spark.measures.arrays import FloatVector


ALL: Final = "all"
"""The name of the topic in the lines about all of them."""

FLOOR: Final = 1e-5
"""Least value that a geometric mean tells apart; as in LogAP."""

_OUTSIDE_POOL, _NOT_JUDGED, _ABOVE_9 = "-", ".", ">"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options of an evaluation; the letters are trec_eval's."""

    measures: Sequence[str] = ("official",)  # ``-m``: names of trec_eval, or measures of ours
    level: int = 1  # ``-l``: grade from which on a document is relevant
    max_documents: int | None = None  # ``-M``: documents of a topic that count; None for all
    judged_only: bool = False  # ``-J``: leave documents without a judgement out of the lists
    # ``-c``: count topics that the run does not have, as empty lists. Without it they are an error, in version 9
    # they are left out.
    is_complete: bool = False
    per_topic: bool = False  # ``-q``: lines for each topic before those for all
    has_summary: bool = True  # false is ``-n``: no lines for all topics
    # 10, or 9 (as pytrec_eval and ir_measures) with its scores in single precision and its rounding of recall
    version: Version = 10


@dataclass(frozen=True)
class Report:
    """Values of an evaluation."""

    lines: Sequence[Line]  # the request
    matched: Matched  # the topics that count, with their lists
    values: Mapping[str, FloatVector]  # (n_topics,) by the name of the line; texts such as ``runid`` have none
    run_name: str  # name of the run
    settings: Settings  # the request

    def text(self) -> Iterator[str]:
        """Write lines of the form ``name, topic, value`` between tabs, topics in the order of their bytes."""
        if self.settings.per_topic:
            # The version before tells nothing of a missing topic, though it counts.
            is_shown = self.matched.is_in_run | (self.settings.version != OLD)
            columns = [(line.name, self._cells(line)) for line in self.lines if line.is_for_topics]
            for place in np.flatnonzero(is_shown).tolist():
                yield from (_line(name, self.matched.topics[place], cells[place]) for name, cells in columns)
        if self.settings.has_summary:
            texts = {"runid": self.run_name, "num_q": str(len(self.matched.topics))}
            for line in self.lines:
                if line.is_for_all:
                    text = texts[line.of] if isinstance(line.of, str) else _number(self.total(line), line)
                    yield _line(line.name, ALL, text)

    def total(self, line: Line) -> float:
        """Sum or mean over the topics."""
        values = self.values[line.name]
        values = values[~np.isnan(values)]  # of predicted ratings, a topic may have none
        if line.summary == "geometric mean":
            return math.exp(_sum(np.log(np.maximum(values, FLOOR))) / values.size)
        if line.summary == "sum":
            return _sum(values)
        return _sum(values) / values.size if values.size else math.nan

    def _cells(self, line: Line) -> list[str]:
        if line.of == "relstring":
            return [f"'{text}'" for text in _relevance_strings(self.matched, line.n_characters)]
        return [_number(value, line) for value in self.values[line.name].tolist()]


def evaluate_files(qrels_path: Path, run_path: Path, settings: Settings) -> Report:
    """Evaluate a run.

    Raises ConfigError if a measure is not known; InputError if a file cannot be read, has a document twice in a topic,
    or topics are missing.
    """
    lines = requested_lines(settings.measures, level=settings.level, version=settings.version)
    qrels, run = read_qrels(qrels_path), read_run(run_path)
    refuse_repeated_documents(qrels_path, qrels)
    refuse_repeated_documents(run_path, run)
    if settings.version == OLD:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, as in C
            run = run._replace(score=run.score.astype(np.float32))
    matched = match(qrels, run, max_documents=settings.max_documents, judged_only=settings.judged_only)
    if not settings.is_complete:
        _refuse_missing_topics(matched, run_path, settings.version)
        matched = matched.keep(matched.is_in_run)
    return Report(lines, matched, _values(lines, matched, settings.level), run.name, settings)


def _refuse_missing_topics(matched: Matched, run_path: Path, version: Version) -> None:
    """Raise InputError if none of the topics is in the run, or, in version 10, one is not."""
    missing = [matched.topics[place] for place in np.flatnonzero(~matched.is_in_run).tolist()]
    if len(missing) == len(matched.topics):
        raise InputError(Fault(str(run_path), "no topic of the judgements", "at least one", "are the files swapped?"))
    if missing and version != OLD:
        more = f", nor for {len(missing) - 1:,} more" if len(missing) > 1 else ""
        found, expected = f"no document for topic {missing[0]!r}{more}", "some for every topic of the judgements"
        raise InputError(Fault(str(run_path), found, expected, "give -c to count missing topics as 0"))


def _values(lines: Sequence[Line], matched: Matched, level: float) -> dict[str, FloatVector]:
    """Compute what each line shows, topic by topic: all measures in one go."""
    lists = matched.lists
    measures = [line.of for line in lines if isinstance(line.of, Measure)]
    asked = MeasureSet.of(measures) if measures else None
    scores = asked.score(lists) if asked else {}
    whole = lists.cut([C.WHOLE_LIST])
    judged = (lists.hit_gain >= 0).astype(np.float64)
    counts = TopicCounts(whole.n_recommended, whole.n_relevant(level), whole.hits(level), whole.sum_hits(judged))

    def value(of: Measure | Count) -> FloatVector:
        if not isinstance(of, Measure):
            return of(counts)[:, 0]
        found = scores[of.column][:, asked.ks.index(of.k)] if asked else np.empty(0)
        # A topic without a relevant document counts as one without a hit.
        return np.where(np.isnan(found), of.without_relevant, found)

    return {line.name: value(line.of) for line in lines if not isinstance(line.of, str)}


def _relevance_strings(matched: Matched, n_characters: int) -> list[str]:
    """Write the grades of the first ranks, a character each."""
    lists = matched.lists
    strings = [[_OUTSIDE_POOL] * min(n, n_characters) for n in lists.n_recommended.tolist()]
    hits = (each.tolist() for each in (lists.hit_list, lists.hit_rank, lists.hit_gain))
    for place, rank, gain in zip(*hits, strict=True):
        if rank <= n_characters:
            graded = str(int(gain)) if gain <= 9 else _ABOVE_9  # noqa: PLR2004 - the greatest digit
            strings[place][rank - 1] = graded if gain >= 0 else _NOT_JUDGED
    return ["".join(characters) for characters in strings]


def _sum(values: FloatVector) -> float:
    """Add one after the other, as trec_eval does: in another order the last printed digit could differ."""
    return float(np.cumsum(values)[-1])


def _number(value: float, line: Line) -> str:
    return f"{value:.0f}" if line.summary == "sum" else f"{value:6.4f}"


def _line(name: str, topic: str, cell: str) -> str:
    return f"{name:<22}\t{topic}\t{cell}"


@dataclass(frozen=True)
class Matched:
    """The topics of the judgements with their lists."""

    topics: list[str]  # ids in the order of their bytes
    is_in_run: NDArray[np.bool_]  # (n_topics,) whether the run has any document for the topic
    lists: Lists  # A list for each topic; an empty one where the run has no document

    def keep(self, is_kept: NDArray[np.bool_]) -> Matched:
        """Return some of the topics."""
        number, lists = np.cumsum(is_kept) - 1, self.lists
        fields = lists.some(is_kept[lists.hit_list], is_kept[lists.judged_list])
        fields |= {name: number[fields[name]] for name in ("hit_list", "judged_list")}
        topics = [topic for topic, stays in zip(self.topics, is_kept.tolist(), strict=True) if stays]
        return Matched(topics, self.is_in_run[is_kept], Lists(lists.n_recommended[is_kept], **fields))


RULES: Final = ListRules(order=C.SCORE, ties="item_desc_bytes", duplicates="keep")
"""Documents in the order of their scores, ties in that of the bytes of their ids, both descending."""


def match(qrels: Qrels, run: TrecRun, *, max_documents: int | None, judged_only: bool) -> Matched:
    """Rank and match by the engine; topics without a judgement are left out.

    Of each topic the first ``max_documents`` count. With ``judged_only``, those without a judgement, or with a negative
    one, then leave the lists, and the rest is ranked again.
    """
    batch = to_batch(_rows_of(qrels, run), models=(C.ONE_MODEL,))
    judgements = to_judgements(batch.held_out, n_items=batch.n_items, duplicates="max")
    ranked = to_ranked(match_log(batch, judgements, rules=RULES), rules=RULES)
    most = max_documents or len(ranked.row)
    rank = ranked.rank_at(np.arange(len(ranked.row)))
    judgement = ranked.matched.judgement[ranked.row]
    is_hit = (judgement >= 0) & (rank <= most)
    best_first = judgements.descending()
    lists = Lists(
        np.minimum(ranked.length, most),  # a list for each topic, as each is judged
        ranked.list_code[is_hit],
        rank[is_hit],
        judgements.gain[judgement[is_hit]],
        best_first.owner,
        best_first.gain,
        to_numpy(batch.log.columns[C.SCORE])[ranked.row[is_hit]] if len(ranked.row) else np.zeros(0),
    )
    return Matched(batch.users.to_pylist(), ranked.length > 0, lists.judged_only() if judged_only else lists)


def _rows_of(qrels: Qrels, run: TrecRun) -> pa.Table:
    """Build the rows of the engine: topics are users, documents are items."""
    is_judged = pc.is_in(run.topic, value_set=qrels.topic)
    n_retrieved, n_judged = pc.sum(is_judged).as_py() or 0, len(qrels.topic)
    score, nothing = run.score[to_numpy(is_judged)], np.zeros(n_judged)
    kinds = np.array([row_kinds.LOG, row_kinds.HELD_OUT], np.int8)
    return pa.Table.from_pydict(
        {
            row_kinds.KIND: to_arrow(np.repeat(kinds, [n_retrieved, n_judged])),
            C.USER_ID: pa.chunked_array([run.topic.filter(is_judged), qrels.topic]),
            C.ITEM_ID: pa.chunked_array([run.document.filter(is_judged), qrels.document]),
            C.SCORE: to_arrow(np.concatenate([score, nothing.astype(score.dtype)])),
            C.GAIN: to_arrow(np.concatenate([np.zeros(n_retrieved), qrels.grade])),
        }
    )


def refuse_repeated_documents(path: Path, file: Qrels | TrecRun) -> None:
    """Raise InputError if a topic has a document twice, with the lines of the first one in the file."""
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
    found = f"{named} again, after line {before}{more}"
    raise InputError(Fault(f"{path}, line {again}", found, "each document once a topic"))
