"""Evaluate two files and write the lines that trec_eval writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from rankeval_spark.apps.trec.matching import Matched, match, refuse_repeated_documents
from rankeval_spark.apps.trec.trec_names import OLD, Count, Line, TopicCounts, Version, requested_lines
from rankeval_spark.columns import WHOLE_LIST
from rankeval_spark.errors import Fault, InputError
from rankeval_spark.inputs.trec_files import TrecRun, read_qrels, read_run
from rankeval_spark.measures import Measure, MeasureSet

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector

ALL: Final = "all"
"""The name of the topic in the lines about all of them."""

FLOOR: Final = 1e-5
"""Least value that a geometric mean tells apart; as in LogAP."""

_OUTSIDE_POOL, _NOT_JUDGED, _ABOVE_9 = "-", ".", ">"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to evaluate, and how; the letters are trec_eval's.

    Attributes
    ----------
    measures
        ``-m``: names of trec_eval, or measures of ours.
    level
        ``-l``: grade from which on a document is relevant.
    max_documents
        ``-M``: documents of a topic that count; None for all.
    judged_only
        ``-J``: leave documents without a judgement out of the lists.
    is_complete
        ``-c``: count topics that the run does not have, as empty lists. Without it they are an error, in version 9 they
        are left out.
    per_topic
        ``-q``: lines for each topic before those for all.
    has_summary
        False is ``-n``: no lines for all topics.
    version
        10, or 9 (as pytrec_eval and ir_measures) with its scores in single precision and its rounding of recall.
    """

    measures: Sequence[str] = ("official",)
    level: int = 1
    max_documents: int | None = None
    judged_only: bool = False
    is_complete: bool = False
    per_topic: bool = False
    has_summary: bool = True
    version: Version = 10


@dataclass(frozen=True)
class Report:
    """What was evaluated.

    Attributes
    ----------
    lines
        The request.
    matched
        The topics that count, with their lists.
    values : dict of str to float64, shape (n_topics,)
        By the name of the line; texts such as ``runid`` have none.
    run_name
        Name of the run.
    settings
        The request.
    """

    lines: Sequence[Line]
    matched: Matched
    values: Mapping[str, FloatVector]
    run_name: str
    settings: Settings

    def text(self) -> Iterator[str]:
        """Write lines of the form ``name, topic, value`` between tabs, topics in the order of their bytes."""
        if self.settings.per_topic:
            yield from self._of_topics()
        if self.settings.has_summary:
            yield from (_line(line.name, ALL, self._summary(line)) for line in self.lines if line.is_for_all)

    def total(self, line: Line) -> float:
        """Sum or mean over the topics."""
        values = self.values[line.name]
        values = values[~np.isnan(values)]  # of predicted ratings, a topic may have none
        if line.summary == "geometric mean":
            return math.exp(_sum(np.log(np.maximum(values, FLOOR))) / values.size)
        if line.summary == "sum":
            return _sum(values)
        return _sum(values) / values.size if values.size else math.nan

    def _of_topics(self) -> Iterator[str]:
        # The version before tells nothing of a missing topic, though it counts.
        is_shown = self.matched.is_in_run | (self.settings.version != OLD)
        columns = [(line.name, self._cells(line)) for line in self.lines if line.is_for_topics]
        for place in np.flatnonzero(is_shown).tolist():
            yield from (_line(name, self.matched.topics[place], cells[place]) for name, cells in columns)

    def _cells(self, line: Line) -> list[str]:
        if line.of == "relstring":
            return [f"'{text}'" for text in _relevance_strings(self.matched, line.n_characters)]
        return [_number(value, line) for value in self.values[line.name].tolist()]

    def _summary(self, line: Line) -> str:
        match line.of:
            case "runid":
                return self.run_name
            case "num_q":
                return str(len(self.matched.topics))
            case _:
                return _number(self.total(line), line)


def evaluate_files(qrels_path: Path, run_path: Path, settings: Settings) -> Report:
    """Evaluate a run.

    Raises
    ------
    ConfigError
        A measure is not known.
    InputError
        A file cannot be read, holds a document twice for a topic, or topics are missing.
    """
    lines = requested_lines(settings.measures, level=settings.level, version=settings.version)
    qrels, run = read_qrels(qrels_path), read_run(run_path)
    refuse_repeated_documents(qrels_path, qrels)
    refuse_repeated_documents(run_path, run)
    if settings.version == OLD:
        run = run._replace(score=_in_single_precision(run))
    everything = match(qrels, run, max_documents=settings.max_documents, judged_only=settings.judged_only)
    matched = _evaluated(everything, run_path, settings)
    return Report(lines, matched, _values(lines, matched, settings.level), run.name, settings)


def _in_single_precision(run: TrecRun) -> FloatVector:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, as in C
        return run.score.astype(np.float32)


def _evaluated(matched: Matched, run_path: Path, settings: Settings) -> Matched:
    """Return the topics that are in the mean.

    Raises
    ------
    InputError
        None of the topics is in the run, or one is not and nothing says what that means.
    """
    if settings.is_complete:
        return matched
    missing = [
        topic for topic, is_there in zip(matched.topics, matched.is_in_run.tolist(), strict=True) if not is_there
    ]
    if len(missing) == len(matched.topics):
        raise InputError(Fault(str(run_path), "no topic of the judgements", "at least one", "are the files swapped?"))
    if missing and settings.version != OLD:
        more = f", nor for {len(missing) - 1:,} more" if len(missing) > 1 else ""
        found, expected = f"no document for topic {missing[0]!r}{more}", "some for every topic of the judgements"
        raise InputError(Fault(str(run_path), found, expected, "give -c to count missing topics as 0"))
    return matched.keep(matched.is_in_run)


def _values(lines: Sequence[Line], matched: Matched, level: float) -> dict[str, FloatVector]:
    """Compute what each line shows, topic by topic: all measures in one go."""
    lists = matched.lists
    measures = [line.of for line in lines if isinstance(line.of, Measure)]
    asked = MeasureSet.of(measures) if measures else None
    scores = asked.score(lists) if asked else {}
    whole = lists.cut([WHOLE_LIST])
    judged = (lists.hit_gain >= 0).astype(np.float64)
    counts = TopicCounts(whole.n_recommended, whole.n_relevant(level), whole.hits(level), whole.sum_hits(judged))

    def value(of: Measure | Count) -> FloatVector:
        if not isinstance(of, Measure):
            return of(counts)[:, 0]
        found = scores[of.column][:, asked.ks.index(of.k)] if asked else np.empty(0)
        # A topic without a relevant document counts as one without a hit.
        return np.where(np.isnan(found), of.entry.without_relevant(of.options), found)

    return {line.name: value(line.of) for line in lines if not isinstance(line.of, str)}


def _relevance_strings(matched: Matched, n_characters: int) -> list[str]:
    """Write the grades of the first ranks, a character each."""
    lists = matched.lists
    strings = [[_OUTSIDE_POOL] * min(n, n_characters) for n in lists.n_recommended.tolist()]
    for place, rank, gain in zip(
        lists.hit_list.tolist(), lists.hit_rank.tolist(), lists.hit_gain.tolist(), strict=True
    ):
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
