"""TREC runs evaluated against TREC judgements, without Spark, with the measures, numbers and lines of trec_eval.

Names after ``-m`` are those of trec_eval, or measures of ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.engine.arrays import to_arrow, to_codes, to_numpy
from rankeval_spark.engine.batch import to_batch
from rankeval_spark.engine.matching import ListRules, match_log, to_judgements
from rankeval_spark.engine.ranked_lists import rank_lists
from rankeval_spark.errors import ConfigError, Fault, FaultsError, InputError, nearest
from rankeval_spark.inputs.trec_files import TrecRun, read_qrels, read_run
from rankeval_spark.measures import Lists, Measure, MeasureSet, UnknownMeasureError, registry
from rankeval_spark.measures.accuracy.curves import LEVELS
from rankeval_spark.measures.arrays import divide_or_zero

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankeval_spark.config.policies import OwnItem
    from rankeval_spark.inputs.trec_files import Qrels
    from rankeval_spark.measures.arrays import FloatMatrix, FloatVector

N = TypeVar("N", int, float)
File = TypeVar("File", "Qrels", TrecRun)

Version: TypeAlias = Literal[9, 10]
"""Major version of trec_eval whose numbers are printed."""

OLD: Final = 9
"""The version before: single precision, another rounding of recall, fewer measures, and silent about missing topics."""

FLOOR: Final = 1e-5
"""Least value that a geometric mean tells apart; as in LogAP."""


class TopicCounts(NamedTuple):
    """Documents of each topic: float64, (n_topics, 1)."""

    n_retrieved: FloatMatrix
    n_relevant: FloatMatrix
    n_hits: FloatMatrix  # retrieved and relevant
    n_judged_retrieved: FloatMatrix


Count: TypeAlias = Callable[[TopicCounts], "FloatMatrix"]


@dataclass(frozen=True)
class Line:
    """One line for each topic and one for all of them."""

    name: str  # as it is printed
    subject: Measure | Count | str  # a measure, something counted, or ``runid``, ``num_q``, ``relstring``
    n_characters: int = 10  # of ``relstring``: how many ranks it shows

    @property
    def is_sum(self) -> bool:
        """True if the line for all topics shows a sum rather than a mean; all of these are whole numbers."""
        return callable(self.subject) and self.name.startswith("num_")

    @property
    def is_geometric(self) -> bool:
        """True if there is only a line for all topics, with the geometric mean."""
        return self.name in _GEOMETRIC


_CUTOFFS: Final = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_GEOMETRIC: Final = {"gm_map": "AP", "gm_bpref": "Bpref"}

_WHOLE: Final[Mapping[str, str]] = {
    "map": "AP",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "recip_rank": "RR",
    "infAP": "infAP",
    "11pt_avg": "IPrecAvg(need='{need}')",
    "ndcg": "nDCG",
    "set_P": "SetP",
    "set_relative_P": "SetP(relative=True)",
    "set_recall": "SetR",
    **_GEOMETRIC,
}
"""Measures of the whole list that take no parameter: ours of the same value."""

_AT_CUTOFFS: Final[Mapping[str, tuple[str, Sequence[int]]]] = {
    "P": ("P", _CUTOFFS),
    "recall": ("R", _CUTOFFS),
    "ndcg_cut": ("nDCG", _CUTOFFS),
    "map_cut": ("AP", _CUTOFFS),
    "relative_P": ("P(denom='min')", _CUTOFFS),
    "success": ("Success", (1, 5, 10)),
    "unj": ("unj", (5, 10, 20)),
}
"""Measures at cutoffs: ours, and the cutoffs by default."""

_AT_NUMBERS: Final[Mapping[str, tuple[str, Sequence[float]]]] = {
    "iprec_at_recall": ("IPrec(need='{need}',recall={number!r})", LEVELS),
    "Rprec_mult": ("Rprec_mult(x={number!r})", tuple(fifths / 5 for fifths in range(1, 11))),
}
"""Measures at numbers: ours, and the numbers by default."""

_COUNTED: Final[Mapping[str, Count]] = {
    "num_ret": lambda n: n.n_retrieved,
    "num_rel": lambda n: n.n_relevant,
    "num_rel_ret": lambda n: n.n_hits,
    "num_nonrel_judged_ret": lambda n: n.n_judged_retrieved - n.n_hits,
    "utility": lambda n: n.n_hits - (n.n_retrieved - n.n_hits),
    "set_map": lambda n: divide_or_zero(n.n_hits**2, n.n_retrieved * n.n_relevant),
}
"""Lines of a report that follow from counts alone, without a measure of ours."""

_OFFICIAL: Final = (
    *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret"),
    *("map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P"),
)
_ALL: Final = (
    *_OFFICIAL,
    *("relstring", "recall", "infAP", "gm_bpref", "Rprec_mult", "utility", "11pt_avg"),
    *("ndcg", "ndcg_cut", "map_cut", "relative_P", "success"),
    *("set_P", "set_relative_P", "set_recall", "set_map", "set_F", "num_nonrel_judged_ret", "unj"),
)
"""Every name, in the order in which trec_eval prints them."""

NICKNAMES: Final[Mapping[str, Sequence[str]]] = {
    "official": _OFFICIAL,
    "set": (*_OFFICIAL[:5], "utility", "set_P", "set_recall", "set_relative_P", "set_map", "set_F"),
    "all_trec": _ALL,
}

_SINCE_10: Final = frozenset({"rbp", "rbp_resid", "unj"})
"""Measures that trec_eval 9 does not have; of all others both versions have the same names."""

_NOT_OURS: Final[Mapping[str, str]] = {
    "rbp": "it scales grades by those of the topic; ours is -m 'RBP(p=0.9)'",
    "rbp_resid": "it is 0 where every document is judged; ours is -m 'RBPResidual(p=0.9)'",
    "yaap": "it is a function of AP and R; ours is -m map",
    **dict.fromkeys(("binG", "G", "ndcg_rel", "Rndcg"), "ours of graded relevance is -m ndcg or -m 'nERR(max_rel=4)'"),
}
"""Measures of trec_eval that are left out, and what to take instead."""


def requested_lines(texts: Sequence[str], *, level: float, version: Version) -> list[Line]:
    """Read the requested names, each once: trec_eval's in its own order, then ours as they were requested.

    ``texts`` are names of trec_eval with or without parameters (``P``, ``P.5,10``, ``P_5``), its nicknames, or measures
    of ours. From ``level`` a document is relevant; nDCG of trec_eval does not see it, nor a measure of ours that names
    its own ``rel``. Raises ConfigError for all names and parameters that are not known, or not to this version.
    """
    of_trec: dict[str, list[Line]] = {}
    ours: list[Line] = []
    faults: list[Fault] = []
    for text in texts:
        try:
            names = _find_trec_names(text, version)
            for name, parameters in names:
                lines = _parse_trec_lines(name, parameters, level=level, version=version, where=f"-m {text}")
                of_trec.setdefault(name, []).extend(lines)
            ours += [] if names else [_parse_own_line(text, level)]
        except FaultsError as error:
            faults += error.faults
    if faults:
        raise ConfigError(*faults)
    in_order = [line for name in _ALL for line in of_trec.get(name, [])]
    return list({line.name: line for line in [*in_order, *ours]}.values())


def _find_trec_names(text: str, version: Version) -> list[tuple[str, str]]:
    """Find the names of trec_eval that one ``-m`` means, each with its parameters; none for a measure of ours."""
    where, missing = f"-m {text}", _SINCE_10 if version == OLD else frozenset()
    if text in NICKNAMES:
        return [(each, "") for each in NICKNAMES[text] if each not in missing]
    name, _, parameters = text.partition(".")
    printed = re.fullmatch(r"(?P<name>\w+?)_(?P<number>[0-9.]+)", text)
    if printed and printed["name"] in {*_AT_CUTOFFS, *_AT_NUMBERS}:
        name, parameters = printed["name"], printed["number"]
    if name in missing:
        fix = "leave --trec-eval 9 out, or take a measure of ours (rankeval measures)"
        raise ConfigError(Fault(where, f"{name}, which is new in trec_eval 10", "one of trec_eval 9", fix))
    if name in _NOT_OURS:
        raise ConfigError(Fault(where, "a measure that is not computed", "one of ours", _NOT_OURS[name]))
    return [(name, parameters)] if name in _ALL else []


def _parse_trec_lines(name: str, parameters: str, *, level: float, version: Version, where: str) -> Iterator[Line]:
    """Yield the lines of a measure of trec_eval."""

    def ours(text: str, **values: object) -> Measure:
        return _set_level(
            Measure.parse(text.format(need="v9" if version == OLD else "v10", **values), where=where), level
        )

    def numbers(kind: Callable[[str], N]) -> list[N]:
        try:
            return sorted({kind(part) for part in parameters.split(",")}) if parameters else []
        except ValueError:
            expected = "whole numbers between commas" if kind is int else "numbers between commas"
            raise ConfigError(Fault(where, f"parameters {parameters!r}", expected)) from None

    printed = f"{name}_{parameters}" if parameters else name
    if name in _AT_CUTOFFS:
        form, cutoffs = _AT_CUTOFFS[name]
        yield from (Line(f"{name}_{k}", ours(f"{form}@{k}")) for k in numbers(int) or cutoffs)
    elif name in _AT_NUMBERS:
        form, levels = _AT_NUMBERS[name]
        for number in numbers(float) or levels:
            yield Line(f"{name}_{number:3.2f}", ours(form, number=number))
    elif name == "set_F":
        weight = next(iter(numbers(float)), 1.0)
        if not 0 < weight < math.inf:
            raise ConfigError(Fault(where, f"set_F.{parameters}", "a weight above 0"))
        yield Line(printed, ours(f"SetF(beta={math.sqrt(weight)!r})"))  # their weight is the square of ours
    elif name == "relstring":
        yield Line(printed, name, next(iter(numbers(int)), Line.n_characters))
    elif parameters:
        fix = f"-m 'nDCG(gains={{{parameters.replace('=', ':')}}})'" if name == "ndcg" else f"-m {name}"
        raise ConfigError(Fault(where, f"parameters {parameters!r}", f"none for {name}", fix))
    else:
        yield Line(name, ours(_WHOLE[name]) if name in _WHOLE else _COUNTED.get(name, name))


def _parse_own_line(text: str, level: float) -> Line:
    """Read a measure of ours; ConfigError if its number is no mean over topics, or it reads more than the two files."""
    where = f"-m {text}"
    try:
        measure = Measure.parse(text, where=where)
    except UnknownMeasureError as error:
        names = [*_ALL, *NICKNAMES]
        expected = f"one of trec_eval's ({', '.join(names)}) or of ours (rankeval measures)"
        fix = nearest(re.split("[.(@]", text)[0], [*names, *registry.all_names()])
        raise ConfigError(replace(error.faults[0], expected=expected, fix=fix)) from None
    found = expected = ""
    if requires := MeasureSet.of([measure]).requiring():
        found, expected = f"a measure of {', '.join(requires)}", "one of a run and its judgements"
    elif measure.needs_catalogue and measure.has_user_values:
        found, expected = "a measure of a catalogue", "one of a run and its judgements"
    elif not measure.has_user_values:
        found, expected = "a measure of all lists together", "one with a value a topic"
    elif measure.is_micro or measure.link != "identity":
        found, expected = f"{measure}, which is no mean over topics", "one that is"
    if found:
        raise ConfigError(Fault(where, found, expected, "rankeval run, or evaluate(), has it"))
    names_its_level = re.search(r"\brel\s*=", text, re.IGNORECASE)
    measure = measure if names_its_level else _set_level(measure, level)
    return Line(str(measure), measure)


def _set_level(measure: Measure, level: float) -> Measure:
    """Set the relevance level where a measure has one."""
    if measure.entry.defaults.get("rel") is None:
        return measure
    try:
        return Measure.of(measure.name, k=measure.k, **{**measure.options, "rel": level})
    except ConfigError:
        return measure  # of graded gains, which have no level


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options of an evaluation; the letters are trec_eval's."""

    measures: Sequence[str] = ("official",)  # ``-m``: names of trec_eval, or measures of ours
    level: int = 1  # ``-l``: least grade of a relevant document
    max_documents: int | None = None  # ``-M``: documents of a topic that count; None for all
    own_item: OwnItem = "keep"  # whether lists, and judgements, keep the document that is the topic itself
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

        def format_values(line: Line, values: Sequence[float]) -> list[str]:
            return [f"{value:.0f}" if line.is_sum else f"{value:6.4f}" for value in values]

        if self.settings.per_topic:
            columns = []
            for line in self.lines:
                if line.subject == "relstring":
                    columns.append((line.name, self._relevance_strings(line.n_characters)))
                elif not line.is_geometric and not isinstance(line.subject, str):
                    columns.append((line.name, format_values(line, self.values[line.name].tolist())))
            # The version before tells nothing of a missing topic, though it counts.
            is_shown = self.matched.is_in_run | (self.settings.version != OLD)
            for place in np.flatnonzero(is_shown).tolist():
                topic = self.matched.topics[place]
                yield from (f"{name:<22}\t{topic}\t{cells[place]}" for name, cells in columns)
        if self.settings.has_summary:
            texts = {"runid": self.run_name, "num_q": str(len(self.matched.topics))}
            for line in self.lines:
                if line.subject != "relstring":
                    is_text = isinstance(line.subject, str)
                    cell = texts[str(line.subject)] if is_text else format_values(line, [self.total(line)])[0]
                    yield f"{line.name:<22}\tall\t{cell}"

    def total(self, line: Line) -> float:
        """Sum or mean over the topics."""

        def add(terms: FloatVector) -> float:
            return float(np.cumsum(terms)[-1])  # one after the other, as trec_eval: else the last digit could differ

        values = self.values[line.name]
        values = values[~np.isnan(values)]  # of predicted ratings, a topic may have none
        if line.is_geometric:
            return math.exp(add(np.log(np.maximum(values, FLOOR))) / values.size)
        if line.is_sum:
            return add(values)
        return add(values) / values.size if values.size else math.nan

    def _relevance_strings(self, n_characters: int) -> list[str]:
        """Write the grades of the first ranks, a character each: ``-`` not in the judgements, ``.`` negative."""
        lists = self.matched.lists
        strings = [["-"] * min(n, n_characters) for n in lists.n_recommended.tolist()]
        hits = (each.tolist() for each in (lists.hit_list, lists.hit_rank, lists.hit_gain))
        for place, rank, gain in zip(*hits, strict=True):
            if rank <= n_characters:
                grade = str(int(gain)) if gain <= 9 else ">"  # noqa: PLR2004 - the greatest digit
                strings[place][rank - 1] = grade if gain >= 0 else "."
        return [f"'{''.join(characters)}'" for characters in strings]


def evaluate_files(qrels_path: Path, run_path: Path, settings: Settings) -> Report:
    """Evaluate a run; ConfigError for an unknown measure, InputError for a faulty file or missing topics."""
    lines = requested_lines(settings.measures, level=settings.level, version=settings.version)
    qrels, run = read_qrels(qrels_path), read_run(run_path)
    _refuse_repeated_documents(qrels_path, qrels)
    _refuse_repeated_documents(run_path, run)
    name, of_old = run.name, settings.version == OLD
    run = run if settings.own_item == "keep" else _drop_own_documents(run)
    qrels = _drop_own_documents(qrels) if settings.own_item == "drop_both" else qrels
    if of_old:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, as in C
            run = run._replace(score=run.score.astype(np.float32))
    matched = _match_topics(qrels, run, max_documents=settings.max_documents, judged_only=settings.judged_only)
    if not settings.is_complete:
        missing = [matched.topics[place] for place in np.flatnonzero(~matched.is_in_run).tolist()]
        if len(missing) == len(matched.topics):
            found, fix = "no topic of the judgements", "are the files swapped?"
            raise InputError(Fault(str(run_path), found, "at least one", fix))
        if missing and not of_old:
            but_itself = " but itself" if settings.own_item != "keep" else ""
            more = f", nor for {len(missing) - 1:,} more" if len(missing) > 1 else ""
            found, expected = (
                f"no document{but_itself} for topic {missing[0]!r}{more}",
                "some for every topic of the judgements",
            )
            raise InputError(Fault(str(run_path), found, expected, "give -c to count missing topics as 0"))
        matched = matched.keep(matched.is_in_run)
    return Report(lines, matched, _compute_values(lines, matched.lists, settings.level), name, settings)


def _compute_values(lines: Sequence[Line], lists: Lists, level: float) -> dict[str, FloatVector]:
    """Compute what each line shows, topic by topic: all measures in one go."""
    wanted = MeasureSet.of([line.subject for line in lines if isinstance(line.subject, Measure)])
    scores = wanted.score(lists) if wanted.measures else {}
    whole = lists.cut([C.WHOLE_LIST])
    judged = (lists.hit_gain >= 0).astype(np.float64)
    counts = TopicCounts(whole.n_recommended, whole.n_relevant(level), whole.hits(level), whole.sum_hits(judged))
    values = {}
    for line in lines:
        if isinstance(line.subject, Measure):
            found = scores[line.subject.column][:, wanted.ks.index(line.subject.k)]
            # A topic without a relevant document counts as one without a hit.
            values[line.name] = np.where(np.isnan(found), line.subject.without_relevant, found)
        elif not isinstance(line.subject, str):
            values[line.name] = line.subject(counts)[:, 0]
    return values


@dataclass(frozen=True)
class Matched:
    """The topics of the judgements with their lists."""

    topics: list[str]  # ids in the order of their bytes
    is_in_run: NDArray[np.bool_]  # (n_topics,) whether the run has any document for the topic
    lists: Lists  # A list for each topic; an empty one where the run has no document

    def keep(self, is_kept: NDArray[np.bool_]) -> Matched:
        """Return some of the topics."""
        number, lists = np.cumsum(is_kept) - 1, self.lists
        fields = lists.subset_fields(is_kept[lists.hit_list], is_kept[lists.judged_list])
        fields |= {name: number[fields[name]] for name in ("hit_list", "judged_list")}
        topics = [topic for topic, stays in zip(self.topics, is_kept.tolist(), strict=True) if stays]
        return Matched(topics, self.is_in_run[is_kept], Lists(lists.n_recommended[is_kept], **fields))


def _match_topics(qrels: Qrels, run: TrecRun, *, max_documents: int | None, judged_only: bool) -> Matched:
    """Rank and match by the engine, topics as users and documents as items; topics without a judgement are left out.

    Documents are in the order of their scores, ties in that of the bytes of their ids, both descending. Of each topic
    the first ``max_documents`` count. With ``judged_only``, those without a judgement, or with a negative one, then
    leave the lists, and the rest is ranked again.
    """
    rules = ListRules(order=C.SCORE, ties="item_desc_bytes", duplicates="keep")
    is_judged = pc.is_in(run.topic, value_set=qrels.topic)
    n_retrieved, n_judged = pc.sum(is_judged).as_py() or 0, len(qrels.topic)
    score = run.score[to_numpy(is_judged)]
    kinds = np.array([row_kinds.LOG, row_kinds.HELD_OUT], np.int8)
    rows = pa.Table.from_pydict(
        {
            row_kinds.KIND: to_arrow(np.repeat(kinds, [n_retrieved, n_judged])),
            C.USER_ID: pa.chunked_array([run.topic.filter(is_judged), qrels.topic]),
            C.ITEM_ID: pa.chunked_array([run.document.filter(is_judged), qrels.document]),
            C.SCORE: to_arrow(np.concatenate([score, np.zeros(n_judged, score.dtype)])),
            C.GAIN: to_arrow(np.concatenate([np.zeros(n_retrieved), qrels.grade])),
        }
    )
    batch = to_batch(rows, models=(C.ONE_MODEL,))
    judgements = to_judgements(batch.held_out, n_items=batch.n_items, duplicates="max")
    ranked = rank_lists(match_log(batch, judgements, rules=rules), rules=rules)
    most = max_documents or len(ranked.row)
    rank = ranked.rank_at(np.arange(len(ranked.row)))
    judgement = ranked.judgement[ranked.row]
    is_hit = (judgement >= 0) & (rank <= most)
    best_first = judgements.sort_by_gain()
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


def _drop_own_documents(file: File) -> File:
    """Leave out the documents that are their topic, as in retrieval of documents for a document."""
    is_kept = pc.not_equal(file.topic, file.document)
    rows = np.flatnonzero(to_numpy(is_kept))
    kept = {
        name: values.filter(is_kept) if isinstance(values, pa.Array) else values[rows]
        for name, values in file._asdict().items()
    }
    return file._replace(**kept)


def _refuse_repeated_documents(path: Path, file: Qrels | TrecRun) -> None:
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
