"""Search for measures by what people call them: full names, textbook words, names in other tools, slips of the pen.

The names are in the definition of a measure: ``name``, ``aliases`` and ``words``. Those that other tools have are in
``other_tools.yaml``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, Union

from rankeval_spark.measures import definition, group_statistics, other_tools, registry
from rankeval_spark.measures.definition import normalise_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.measures.group_statistics import GroupStatistic

Searched: TypeAlias = Union["Definition", "GroupStatistic"]

MIN_LIKENESS: Final = 0.55  # of a phrase to a measure: below it nothing is better than something wrong
_ALMOST: Final = 0.9  # of the best likeness, from which a measure is suggested too
_MAX_SUGGESTED: Final = 3
_MAX_OF_A_WORD: Final = 6  # measures that share a word, above which it alone suggests none
_WEIGHT_OF_A_NAME: Final = 0.7  # of one name alone; the rest is that of all words about the measure

_SILENT: Final = frozenset(  # words that say nothing about a measure
    re.findall(
        r"\w+",
        "a an and are as at be between by for from how in is it of on or over per that the to top with k n m u "
        "metric metrics measure measures score scores value values",
    )
)

_SAME_WORDS: Final = {
    **dict.fromkeys(("avg", "mean", "averaged"), "average"),
    **dict.fromkeys(("fraction", "percentage", "proportion", "percent", "ratio"), "rate"),
    **dict.fromkeys(("catalogue", "catalogs"), "catalog"),
    **{"share": "rate", "recip": "reciprocal", "freq": "frequency", "inv": "inverse", "rec": "recommendation"},
    **{"prec": "precision", "pairs": "pair", "pairwise": "pair", "cumulated": "cumulative", "squares": "square"},
    **{"squared": "square", "err": "err", "judgement": "judgment", "number": "count", "recommender": "recommendation"},
    **dict.fromkeys(("recommend", "recommended"), "recommendation"),
}
_CAMEL: Final = re.compile(r"(?:[A-Z][a-z]+)(?:[A-Z][a-z]+)+")
_SHORT: Final = 5  # most letters of an abbreviation; one other letter makes another measure
_LETTERS_A_SLIP: Final = 4  # letters of a name for each slip of the pen beyond the first


class _Called(NamedTuple):
    """Names and phrases for a measure."""

    entry: Searched
    names: tuple[str, ...]  # that are requested, the canonical one first
    all: tuple[str, ...]  # full names and words, then these names


def find_measures(phrase: str) -> list[Searched]:
    """Return the measures and statistics of groups that a phrase may mean, the likeliest first; empty for none.

    First those whose name is the phrase, or nearly, then those that share rare words with it. If there are neither,
    those whose name differs by several typing errors. For a number that is not computed, its replacements.

    >>> [entry.name for entry in find_measures("hit ratio")][:1], find_measures("MPR")
    (['Success'], [])
    """
    wanted = _without_cutoff(phrase)
    if instead := find_replacement(wanted):
        return _measures_in_text(instead)
    several = registry.meanings_of(wanted)
    meant = _measures_in_text(several.others) if several and not several.taken else []
    named = _find_by_name(wanted) or [entry for entry, _ in _find_by_slips(wanted, most=1)]
    found = {id(entry): entry for entry in (*meant, *named, *(entry for entry, _ in _score_likeness(wanted)))}
    return list(found.values()) or [entry for entry, _ in _find_by_slips(wanted)]


def find_exact(phrase: str) -> list[Searched]:
    """Return the measures that a phrase names, in any spelling."""
    return _find_by_name(_without_cutoff(phrase))


def suggest_fix(name: str) -> str:
    """Return what to do about the name of no measure: the likeliest measures, and how another tool's number differs.

    Empty where none is likely.

    >>> suggest_fix("nDGC"), suggest_fix("pair accuracy"), suggest_fix("MPR")
    ("did you mean 'nDCG'?", "did you mean 'FCP'?", '')
    """
    wanted = _without_cutoff(name)
    names = [entry.name for entry in _find_by_name(wanted)]
    split = re.fullmatch(r"(\w{0,40}[^\W\d_])(\d+)", wanted)  # a number at the end, such as ndcg10, is a cutoff
    match = registry.find(split[1]) if split else None
    if not names and match and split and not match.entry.printed_as:  # F1 is no F@1
        names = [f"{match.entry.name}@{split[2]}"]
    for most in (1, None):
        names = names or [spelling for _, spelling in _find_by_slips(wanted, most=most)][:1] or _likeliest_names(wanted)
    if not names:
        return ""
    *others, last = map(repr, names[:_MAX_SUGGESTED])
    asked = f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"
    theirs = [
        f"{metric} of {tool} is {other_tools.in_words(found)}"
        for tool, metric, found in other_tools.find_in_tools(wanted)
    ]
    return " ".join([asked, *filter(None, ["; ".join(theirs[:_MAX_SUGGESTED])])])


def find_replacement(name: str) -> str:
    """Return the replacements of a number that is not computed; empty for any other name."""
    wanted = normalise_name(_without_cutoff(name))
    return next((text for each, text in registry.NOT_OFFERED.items() if normalise_name(each) == wanted), "")


def _without_cutoff(phrase: str) -> str:
    """Strip options and a cutoff off a name: "recall_at_10" and "Recall(rel=2)@10" become "recall" and "Recall"."""
    name = re.sub(r"\(.*\)|@.*", "", phrase, flags=re.DOTALL).strip()
    return registry.split_cutoff(re.sub(r"\btop[\s_-]?\d+", "top-k", name, flags=re.IGNORECASE))[0]


@cache
def _all_names() -> tuple[_Called, ...]:
    """List what everything is called, statistics of groups last."""
    measures: list[tuple[Searched, tuple[str, ...]]] = [
        (entry, (entry.name, *entry.aliases)) for entry in registry.entries()
    ]
    statistics = [(statistic, (statistic.name,)) for statistic in group_statistics.ALL]
    return tuple(
        _Called(entry, names, (*filter(None, entry.words.split(", ")), *names))
        for entry, names in (*measures, *statistics)
    )


def _find_by_name(wanted: str) -> list[Searched]:
    """List what has a name, those first that mention it first; else what other tools call so, or have instead of it."""
    found: list[tuple[int, Searched]] = []
    for called in _all_names():
        names = [normalise_name(name) for name in called.all]
        if normalise_name(wanted) in names:
            found.append((names.index(normalise_name(wanted)), called.entry))
    if found:
        return [entry for _, entry in sorted(found, key=lambda row: row[0])]
    return _measures_in_text(
        " ".join(metric.get("ours", metric.get("why_not")) for _, _, metric in other_tools.find_in_tools(wanted))
    )


def _measures_in_text(text: str) -> list[Searched]:
    """List the measures that a text names, in its order."""
    return [registry.get(word) for word in dict.fromkeys(re.findall(r"\w+", text)) if word in definition.DEFINED]


def _likeliest_names(wanted: str) -> list[str]:
    """List the names of the likeliest entries; none if they share only words of many measures."""
    found = _score_likeness(wanted)
    are_common = all(_word_counts().get(word, 0) > _MAX_OF_A_WORD for word in _split_words(wanted))  # such as "users"
    if found and are_common and found[0][1] < _ALMOST:
        return []
    return [entry.name for entry, likeness in found if likeness >= _ALMOST * found[0][1]]


def _score_likeness(wanted: str) -> list[tuple[Searched, float]]:
    """List likely entries with their likeness to a phrase, 0 to 1, the likeliest first; rare words count most.

    It is the cosine of the phrase and the likeliest name, and in part the share of the phrase that any word about the
    measure is like.
    """
    words = _split_words(wanted)
    found: list[tuple[Searched, float]] = []
    for called in _all_names() if words else ():
        names = [_split_words(name) for name in called.all]
        best = max(
            _rarity(shared) / math.sqrt(_rarity(words) * max(_rarity(name), _rarity(shared)))
            for name in filter(None, names)
            for shared in [_similar_words(words, name)]
        )
        all_words = frozenset().union(*names, _split_words(called.entry.summary))
        about = _rarity(_similar_words(words, all_words)) / _rarity(words)
        likeness = _WEIGHT_OF_A_NAME * best + (1 - _WEIGHT_OF_A_NAME) * about
        if likeness >= MIN_LIKENESS:
            found.append((called.entry, likeness))
    return sorted(found, key=lambda pair: -pair[1])


def _similar_words(words: Collection[str], others: Collection[str]) -> frozenset[str]:
    """Return the words that are like any of the others."""
    return frozenset(word for word in words if any(_is_similar_word(word, other) for other in others))


def _rarity(words: Collection[str]) -> float:
    """Sum the inverse document frequency of each word: log((N + 1) / (n + 1/2)) where n of N measures have it."""
    n_measures, n_with_word = len(_all_names()), _word_counts()
    return sum(math.log((n_measures + 1) / (n_with_word.get(word, 0) + 0.5)) for word in words)


@cache
def _word_counts() -> Mapping[str, int]:
    """Count the measures by the words about them."""
    return Counter(word for called in _all_names() for word in frozenset().union(*map(_split_words, called.all)))


@cache
def _split_words(text: str) -> frozenset[str]:
    """Split a phrase, or a name such as ``HitRate``, into words in one form each.

    >>> sorted(_split_words("Normalised Cumulated gains")), sorted(_split_words("MeanInvUserFreq"))
    (['cumulative', 'gain', 'normalized'], ['average', 'frequency', 'inverse', 'user'])
    """
    parts = [
        part
        for whole in re.findall(r"[^\W_]+", text)
        for part in (re.findall("[A-Z][a-z]+", whole) if _CAMEL.fullmatch(whole) else [whole])
    ]
    lower = [part.casefold() for part in parts]
    kept = [part for part in lower if part not in _SILENT and not part.isdigit()] or lower
    words = set()
    for written in kept:
        word = re.sub(r"is(ed|ation|ing|e)$", r"iz\1", written) if len(written) > _SHORT else written
        single = re.sub("ies$", "y", word) if word.endswith("ies") else re.sub("(?<=[^su])s$", "", word)
        single = single if len(single) >= _SHORT - 1 else word
        words.add(_SAME_WORDS.get(word, _SAME_WORDS.get(single, single)))
    return frozenset(words)


@cache
def _is_similar_word(word: str, other: str) -> bool:
    """Return True for equal words, words of one stem, and long words that differ by one slip of the pen."""
    if word == other:
        return True
    if min(len(word), len(other)) <= _SHORT - 1:
        return False
    n_common = next(
        (n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other))
    )
    has_stem = n_common >= max(_SHORT, 0.6 * max(len(word), len(other)))
    return has_stem or (min(len(word), len(other)) > _SHORT and _edit_distance(word, other) == 1)


def _find_by_slips(
    wanted: str,
    *,
    most: int | None = None,  # number of slips; as many as the length of a name allows where it is None
) -> list[tuple[Searched, str]]:
    """List what has a name that differs by few slips of the pen, with that name, the likeliest first.

    Of abbreviations only letters that changed places, or a double letter that is single, are slips: MPR is not MRR.
    """
    spelling, found = normalise_name(wanted), list[tuple[int, Searched, str]]()
    for called in _all_names():
        for name in called.names:
            known = normalise_name(name)
            n_slips, n_letters = _edit_distance(spelling, known), min(len(known), len(spelling))
            if n_letters > _SHORT:
                is_likely = n_slips <= max(1, len(known) // _LETTERS_A_SLIP - 1)
            elif len(known) == len(spelling):
                is_likely = sorted(known) == sorted(spelling) and n_slips == 1
            else:
                singles = {re.sub(r"(.)\1", r"\1", word) for word in (spelling, known)}
                is_likely = len(singles) == 1 and abs(len(known) - len(spelling)) == 1
            if n_letters > 2 and is_likely and (most is None or n_slips <= most):  # noqa: PLR2004 - letters
                found.append((n_slips, called.entry, name))
    return [(entry, name) for _, entry, name in sorted(found, key=lambda row: row[0])]


def _edit_distance(written: str, other: str) -> int:
    """Count the letters to insert, leave out, replace or exchange with their neighbour to write another word.

    >>> _edit_distance("ndgc", "ndcg"), _edit_distance("sucess", "success"), _edit_distance("mpr", "mrr")
    (1, 1, 1)
    """
    before, last = list[int](), list(range(len(other) + 1))
    for row, letter in enumerate(written, start=1):
        now = [row]
        for column, wanted in enumerate(other, start=1):
            is_same = letter == wanted
            least = min(now[-1] + 1, last[column] + 1, last[column - 1] + (not is_same))
            if row > 1 and column > 1 and letter == other[column - 2] and written[row - 2] == wanted:
                least = min(least, before[column - 2] + 1)
            now.append(least)
        before, last = last, now
    return last[-1]
