"""Advice from a profile of the data: measures, cutoffs, policies, slices and comparisons, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rankeval_spark import columns as C, wording
from rankeval_spark.config.requested_measures import tie_faults
from rankeval_spark.inputs.input_columns import RATING_NAMES, plain_name
from rankeval_spark.measures import MeasureSet
from rankeval_spark.measures.options import option_text
from rankeval_spark.result_rows import check_rows
from rankeval_spark.statistics.power import users_needed
from rankeval_spark.sums import profile as P
from rankeval_spark.sums.input_warnings import LEFT_OUT

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.result_rows.check_rows import CheckCount

CUTOFFS: Final = (5, 10, 20)
WINDOW_DAYS: Final = 7  # of the attribution window
MAX_SEGMENTS: Final = 5
MAX_VALUES: Final = 50  # of a segment; more texts name single users rather than groups
MIN_SLICE: Final = 100  # users below which a slice says little
MAX_PLAIN_NUMBERS: Final = 10  # distinct numbers of a segment, up to which each is a value and not in a band
AIM: Final = 0.02  # gain, as a share of the baseline's value, that a comparison is to find
MAX_PAIRS: Final = 6  # models of which every two are compared where none is known to be the baseline
BASELINES: Final = ("control", "popular", "popularity", "mostpopular", "mostpop", "toppop", "pop", "baseline", "random")
COUNT_NAMES: Final = ("count", "counts", "quantity", "qty", "n", "num", "times", "plays", "playcount", "purchases")
ITEM_MEASURES: Final = {
    "ItemCoverage": "coverage: the share of the items that are recommended",
    "MIUF": "novelty: few users have the items in the training data",
    "ARP": "popularity of the items in the training data",
    "ILD(sim='jaccard')": "diversity of a list by the categories",
    "ILD": "diversity of a list by the vectors",
    "Calibration": "distance of the categories from those of the user's history",
    "Freshness": "age of the items",
}
"""Measures of items, with what they say, the most wanted first."""

MIN_GRADES: Final = 4  # distinct gains that ratings and counts have at least
MAX_RATING: Final = 10
MAX_GRADE: Final = 5  # above it gains of which most are small are counts
MANY_RELEVANT: Final = 0.1  # share of the users with more relevant items than places, from which a list is too short
RARE: Final = 0.01  # shares below which nothing is advised
MOST: Final = 0.9  # share that is taken for all
REPEATED: Final = 0.05  # share of judged items in the training data from which consuming again is usual


GAINS: Final = "inputs.held_out.gains"
OF_GAINS: Final = ("counts as grades", "ratings as gains")
"""Key of the advice on gains, and the warnings with it."""


class Advised(NamedTuple):
    """One piece of advice."""

    kind: str  # measure, cutoff, policy, slice, comparison, input or warning
    key: str  # of a config, such as ``policies.ties``; of a warning its name
    value: Any  # of the key, or one of a list; None for a warning
    reason: str


@dataclass(frozen=True)
class Data:
    """Facts about the data; a table that was not read has none."""

    columns: Mapping[str, Collection[str]]  # canonical columns that each input has
    models: Sequence[str] = ()
    profile: pa.Table = field(default_factory=P.SCHEMA.empty_table)
    counts: Mapping[tuple[str, str], CheckCount] = field(default_factory=dict)  # of checks, by input and name
    metrics: Sequence[Mapping[str, Any]] = ()  # rows of ``metrics``
    comparisons: Sequence[Mapping[str, Any]] = ()
    segments: Mapping[str, tuple[int, bool]] = field(default_factory=dict)  # values, and whether they are numbers
    value_names: Sequence[str] = ()  # of own values of users
    gain_column: str = ""  # as the table calls it, where the gains are its numbers
    has_date: bool = False

    def histogram(self, fact: str, model: str | None = None) -> dict[float | None, int]:
        """Return the counts of a fact of the profile by value."""
        return P.histogram(self.profile, fact, model)

    def bounds(self, fact: str) -> tuple[float, float]:
        """Return the least and the greatest number of a fact; NaN without any."""
        rows = [row for row in self.profile.to_pylist() if row["fact"] == fact and row["n"]]
        return (rows[0]["least"], rows[0]["most"]) if rows and rows[0]["most"] is not None else (math.nan, math.nan)

    def share(self, input_: str, check: str) -> float:
        """Return the share that a check finds; 0 where it was not made."""
        found = self.counts.get((input_, check))
        return (found.share or 0.0) if found else 0.0

    def mean(self, measure: str, k: int) -> dict[str, float]:
        """Return the value of a measure over all users, by model."""
        chosen = (row for row in self.metrics if row[C.SLICE] == C.ALL_USERS)
        return {
            row[C.MODEL_ID]: row[C.VALUE]
            for row in chosen
            if (name_of(row), row[C.K]) == (measure, k) and row[C.VALUE] is not None
        }

    @cached_property
    def lengths(self) -> dict[float | None, int]:
        return self.histogram(P.LENGTHS)

    @cached_property
    def relevant(self) -> dict[float | None, int]:
        """Users by the number of their relevant items, without those who have none."""
        return {value: n for value, n in self.histogram(P.RELEVANT_ITEMS).items() if value}

    @cached_property
    def cutoffs(self) -> tuple[int, ...]:
        """Usual cutoffs that at least half of the lists reach; else the usual length of a list."""
        if not self.lengths:
            return CUTOFFS
        longest = int(P.quantile(self.lengths, 0.5))
        return tuple(k for k in CUTOFFS if k <= longest) or (longest,)

    @cached_property
    def gain_kind(self) -> str:
        """Kind of the gains: ``none``, ``binary``, ``ratings``, ``counts``, ``grades`` or ``numbers``."""
        counts, name = self.histogram(P.GAINS), plain_name(self.gain_column)
        n_others = counts.pop(None, 0)  # above 50, or neither whole nor half numbers
        told: dict[float | None, int] = {value: n for value, n in counts.items() if value and value > 0}
        total, most = sum(told.values()) + n_others, self.bounds(P.GAIN_BOUNDS)[1]
        if not total:
            return "none"
        if not told or n_others > REPEATED * total:
            return "numbers"
        middle = P.quantile(told, 0.5)
        has_grades = len(told) >= MIN_GRADES or name in RATING_NAMES
        if len(told) > 1 and most <= MAX_RATING and has_grades and (name in RATING_NAMES or middle > most / 2):
            return "ratings"
        is_whole = all(value is not None and value.is_integer() for value in told) and 1.0 in told
        is_skewed = len(told) >= MIN_GRADES and most > MAX_GRADE and middle <= most / 4
        if is_whole and len(told) > 1 and (is_skewed or name in COUNT_NAMES):
            return "counts"
        return "grades" if len(told) > 1 else "binary"

    @property
    def profiled_cutoff(self) -> int:
        """Cutoff of the profile nearest to the longest that is advised."""
        return min(CUTOFFS, key=lambda k: abs(k - self.cutoffs[-1]))

    @property
    def n_irrelevant(self) -> int:
        """Number of judgements that say not relevant."""
        return sum(n for value, n in self.histogram(P.GAINS).items() if value is not None and value <= 0)

    @property
    def impressions(self) -> str:
        """Estimator of the reward, where judgements have propensities and scores are probabilities; else empty."""
        least, most = self.bounds(P.SCORES)
        if C.PROPENSITY not in self.columns["held_out"] or not (least >= 0 and most <= 1):
            return ""
        return "DR" if C.PREDICTED_REWARD in self.columns["recommendations"] else "SNIPS"

    @property
    def rating_edge(self) -> int:
        """Rating from which an item counts as liked: 4 of 5, 8 of 10."""
        return round(0.75 * self.bounds(P.GAIN_BOUNDS)[1])

    @cached_property
    def predicts_ratings(self) -> bool:
        """True if scores are on the scale of the ratings, so that they predict them."""
        least, most = self.bounds(P.SCORES)
        bottom, top = self.bounds(P.GAIN_BOUNDS)
        return self.gain_kind == "ratings" and most - least > 1 and least >= bottom - 1 and most <= top + 1

    @cached_property
    def one_relevant(self) -> float:
        """Share of the users with a relevant item who have one alone; NaN without users."""
        n_users = sum(self.relevant.values())
        return self.relevant.get(1.0, 0) / n_users if n_users else math.nan

    @cached_property
    def is_ab_test(self) -> bool:
        """True if hardly a user has lists of two models."""
        users = self.histogram(P.MODELS)
        return len(self.models) > 1 and users.get(1.0, 0) >= (1 - REPEATED / 5) * sum(users.values()) > 0

    @cached_property
    def n_candidates(self) -> int | None:
        """Length of lists that rank one relevant item among drawn ones; None where lists are no such samples."""
        n_lists = sum(self.lengths.values())
        recall = self.mean("R", 0).values()
        if not n_lists or not recall or not self.one_relevant >= MOST or min(recall) < 1 - RARE:
            return None
        length, n = max(self.lengths.items(), key=lambda pair: pair[::-1])
        is_drawn = length is not None and length >= CUTOFFS[-1] and self.bounds(P.N_ITEMS)[1] > 1.5 * length
        return int(length or 0) if is_drawn and n >= MOST * n_lists else None

    @property
    def has_times_of_both(self) -> bool:
        """True if lists and interactions have times, and interactions do not name their list."""
        log, judged = self.columns["recommendations"], self.columns["held_out"]
        return C.RECOMMENDED_AT in log and C.INTERACTED_AT in judged and C.LIST_ID not in judged


def name_of(row: Mapping[str, Any]) -> str:
    """Return the name of the measure of a row, without its options."""
    return str(row[C.MEASURE]).partition("(")[0]


def advise_on(data: Data) -> list[Advised]:
    """Conclude from the data; measures, cutoffs and policies fit each other."""
    rows = [*_gains(data), *_measures(data), *_cutoffs(data), *_policies(data), *_slices(data), *_comparisons(data)]
    measures = MeasureSet.parse([row.value for row in rows if row.kind == "measure"])
    ties = next((row for row in rows if row.key == "policies.ties"), None)
    if ties is not None and tie_faults(measures, ties.value):  # a measure has no mean over all orders
        rows[rows.index(ties)] = Advised("warning", "ties", None, ties.reason)
    return [*rows, *_warnings(data)]


def changes_of(rows: Iterable[Advised]) -> dict[str, Any]:
    """Return the keys of a config that advice sets.

    >>> rows = [Advised("cutoff", "cutoffs", 10, ""), Advised("policy", "policies.ties", "expected", "")]
    >>> changes_of([*rows, Advised("warning", "few users", None, "")])
    {'cutoffs': [10], 'policies': {'ties': 'expected'}}
    """
    found = dict[str, Any]()
    for row in rows:
        if row.kind in ("measure", "cutoff") or row.key == "slices":
            found.setdefault(row.key, []).append(row.value)
        elif row.kind != "warning":
            *sections, last = row.key.split(".", 2) if row.key.startswith("slicing.") else row.key.split(".")
            place = found
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = row.value
    return found


def _gains(data: Data) -> Iterator[Advised]:
    """Advise how numbers become gains."""
    counts, column = data.histogram(P.GAINS), data.gain_column
    most = data.bounds(P.GAIN_BOUNDS)[1]
    if data.gain_kind == "ratings" and column and not data.predicts_ratings:
        edge = data.rating_edge
        n_high = sum(n for value, n in counts.items() if value is not None and value >= edge)
        share, least = wording.percent(n_high / sum(counts.values())), data.bounds(P.GAIN_BOUNDS)[0]
        reason = f"ratings from {least:g} to {most:g}: else a 1 is relevant too; {share} are {edge:g} or more"
        yield Advised("input", GAINS, {"column": column, "edges": [edge]}, reason)
    if data.gain_kind == "counts" and column:
        share = wording.percent(counts.get(1.0, 0) / sum(counts.values()))
        reason = f"counts up to {most:g}, {share} of them 1: how often is no grade of how relevant"
        yield Advised("input", GAINS, {"column": column, "edges": [1]}, reason)
    if zero := data.share("recommendations", "zero_ranks"):
        reason = f"{wording.percent(zero)} of the rows have rank 0, which is refused where ranks count from 1"
        yield Advised("input", "inputs.recommendations.ranks_from", 0, reason)
    if data.n_candidates is not None:
        reason = f"all lists have {data.n_candidates} items, one of them relevant: the others were drawn"
        yield Advised("input", "inputs.recommendations.sampled_candidates", data.n_candidates, reason)


def _measures(data: Data) -> Iterator[Advised]:
    """Advise measures of accuracy, and those of what else there is."""

    def measure(name: str, reason: str, *options: str) -> Advised:
        given = ",".join(filter(None, (*options, f"rel={data.rating_edge}" if data.predicts_ratings else "")))
        return Advised("measure", "measures", f"{name}({given})" if given else name, reason)

    k, n_users, gains = data.cutoffs[-1], sum(data.relevant.values()), data.histogram(P.GAINS)
    least, most = data.bounds(P.SCORES)
    if data.impressions and k == 1:  # single items that were shown, of which no list is ranked
        yield from _column_measures(data, least, most)
        return
    if data.gain_kind in ("grades", "ratings"):
        n_grades = sum(value is not None and value > 0 for value in gains)
        yield Advised("measure", "measures", "nDCG", f"order counts, and the {n_grades} grades of the judgements")
    else:
        reason = "order counts: a relevant item at rank 1 is worth more than one at rank 10"
        yield Advised("measure", "measures", "nDCG", reason)
    if data.one_relevant >= MOST:
        one = wording.percent(data.one_relevant)
        yield measure("RR", f"{one} of the users have one relevant item: AP is RR there")
        yield measure("Success", f"{one} of the users have one relevant item: R is Success there")
    else:
        many = sum(n for value, n in data.relevant.items() if value and value > k) / n_users if n_users else 0.0
        option, why = "", "for several relevant items"
        if many >= MANY_RELEVANT:
            option, why = "denom='min'", f"{wording.percent(many)} of the users have more than {k} relevant items"
        elif n_users:
            middle = wording.count(int(P.quantile(data.relevant, 0.5)), "relevant item")
            why = f"{middle} a user in the median"
        yield measure("AP", f"precision at every hit; {why}", option)
        yield measure("R", f"how much of what is relevant is found; {why}", option)
        yield measure("RR", "how soon the first hit comes")
        yield measure("Success", "whether a user finds anything at all")
    judged, n_zero = data.mean("Judged", data.profiled_cutoff), data.n_irrelevant
    if n_zero and judged:
        share, low = wording.percent(n_zero / sum(gains.values())), wording.percent(min(judged.values()))
        reason = f"{share} of the judgements say not relevant; {low} of {data.profiled_cutoff} places are judged"
        yield Advised("measure", "measures", "Judged", reason)
    if data.predicts_ratings:
        yield Advised(
            "measure", "measures", "RMSE", f"scores from {least:.3g} to {most:.3g} are on the scale of the ratings"
        )
        yield Advised("measure", "measures", "MAE", "the same error without squares, in the unit of the ratings")
    yield from _column_measures(data, least, most)


def _column_measures(data: Data, least: float, most: float) -> Iterator[Advised]:
    """Advise measures that columns and inputs make possible."""
    if C.VALUE in data.columns["held_out"]:
        yield Advised("measure", "measures", "R(gains='value')", "held_out has values: how much of them is found")
    if data.impressions:
        reason = f"held_out has propensities, and the scores from {least:.3g} to {most:.3g} can be probabilities"
        yield Advised("measure", "measures", data.impressions, reason)
    k, given = data.cutoffs[-1], {name for name in ("train", "items") if name in data.columns}
    facts = given | {f"{name}.{column}" for name in given for column in data.columns[name]}
    facts |= {"evaluation_date"} if data.has_date else set()
    for name, meaning in ITEM_MEASURES.items():
        if given and set(MeasureSet.parse([f"{name}@{k}"]).requiring()) <= facts:
            yield Advised("measure", "measures", name, meaning)
    for name in data.value_names[:MAX_SEGMENTS]:
        yield Advised("measure", "measures", f"UserValue(name={option_text(name)})", "own value of the users")


def _cutoffs(data: Data) -> Iterator[Advised]:
    n_lists = sum(data.lengths.values())
    for k in data.cutoffs:
        reach = sum(n for length, n in data.lengths.items() if length is not None and length >= k)
        reached = f"{wording.percent(reach / max(n_lists, 1))} of the lists have {wording.count(k, 'item')} or more"
        yield Advised("cutoff", "cutoffs", k, reached if n_lists else "usual, as no list was read")


def _policies(data: Data) -> Iterator[Advised]:
    """Advise policies that differ from the defaults."""
    ties, seen = data.share("recommendations", "ties"), data.share("recommendations", check_rows.SEEN_IN_TRAIN)
    again = data.share("held_out", "held_out_in_train")
    unknown, repeated = data.share("recommendations", check_rows.UNKNOWN_ITEMS), data.share("held_out", "duplicates")
    if data.has_times_of_both:
        late = data.histogram(P.BEFORE_LIST)
        n_early, n_timed = late.get(1.0, 0), sum(late.values())
        early = f": {wording.percent(n_early / n_timed)} of the judgements are not after a list" if n_early else ""
        reason = f"both tables have times, so an event counts for the last list before it{early}"
        yield Advised("policy", "policies.attribution", "last_touch", reason)
        reason = "yours to choose: a night runs once this window is over"
        yield Advised("policy", "policies.attribution_window", f"{WINDOW_DAYS}d", reason)
    if ties >= RARE:
        reason = f"in {wording.percent(ties)} of the judged lists equal scores can change a measure"
        yield Advised("policy", "policies.ties", "expected", reason)
    if seen >= RARE and again < REPEATED:
        reason = f"{wording.percent(seen)} of the recommended items are in the user's training data, judged ones hardly"
        yield Advised("policy", "policies.seen_in_train", "drop_both" if again else "drop", reason)
    elif again >= REPEATED:
        had = f"{wording.percent(again)} of the judgements are of items that the user had"
        reason = f"{had}: consuming again is usual, or the split leaks"
        yield Advised("policy", "policies.seen_in_train", "keep", reason)
    if 0 < unknown < REPEATED and "items" in data.columns:
        reason = f"{wording.percent(unknown)} of the recommended items are not in the catalogue"
        yield Advised("policy", "policies.unknown_items", "drop", reason)
    if repeated >= RARE and C.INTERACTED_AT in data.columns["held_out"] and data.gain_kind in ("ratings", "grades"):
        reason = f"{wording.percent(repeated)} of the judgements repeat an item: the newest counts"
        yield Advised("policy", "policies.held_out_duplicates", "last", reason)
    if data.impressions:
        reason = f"{data.impressions}: impressions without a reward count too"
        yield Advised("policy", "policies.population", "judged", reason)
    elif data.is_ab_test:
        reason = "an A/B test: everyone who was served counts, also who did nothing"
        yield Advised("policy", "policies.population", "run", reason)
        yield Advised("policy", "policies.zero_relevant", "zero", reason)


def choose_slices(segments: Mapping[str, tuple[int, bool]]) -> tuple[list[str], list[str]]:
    """Choose segments with few values, and numbers with many, which become bands; the first are in both lists.

    >>> choose_slices({"country": (3, False), "age": (60, True), "email": (900, False), "planet": (1, False)})
    (['country', 'age'], ['age'])
    """
    known = {name: kind for name, kind in segments.items() if name.isidentifier() and name != C.ALL_USERS}
    numbers = [name for name, (n, is_number) in known.items() if is_number and n > MAX_PLAIN_NUMBERS]
    plain = [name for name, (n, _) in known.items() if 1 < n <= MAX_VALUES and name not in numbers]
    chosen = [*plain, *numbers][:MAX_SEGMENTS]
    return chosen, [name for name in chosen if name in numbers]


def _slices(data: Data) -> Iterator[Advised]:
    """Advise slices by the number of their values, and by the users of the smallest."""
    slices, bands = choose_slices(data.segments)
    for name in slices:
        users = [row["n_users"] for row in data.metrics if row[C.SLICE] == name and row["n_users"]]
        smallest = f", the smallest with {wording.count(min(users), 'user')}" if users else ""
        values = "numbers: bands of alike size" if name in bands else wording.count(data.segments[name][0], "value")
        yield Advised("slice", "slices", name, f"{values}{smallest}")
        if name in bands:
            yield Advised("slice", f"slicing.bands.{name}", {"quantiles": 4}, "numbers: bands of alike size")


def choose_baseline(models: Sequence[str]) -> str | None:
    """Return the model that others are probably compared with, by its name; None without one, or without others.

    >>> choose_baseline(["als", "random", "Most-Popular"]), choose_baseline(["als", "knn"])
    ('Most-Popular', None)
    >>> choose_baseline(["treatment", "control"])
    'control'
    """
    places = {name: BASELINES.index(plain_name(name)) for name in models if plain_name(name) in BASELINES}
    return min(places, key=lambda name: places[name]) if places and len(models) > 1 else None


def _comparisons(data: Data) -> Iterator[Advised]:
    """Advise what is compared, and how."""
    if len(data.models) < 2:  # noqa: PLR2004 - nothing to compare with
        return
    k, shared = data.cutoffs[-1], data.histogram(P.MODELS)
    both = sum(n for models, n in shared.items() if models is not None and models > 1) / max(sum(shared.values()), 1)
    baseline = choose_baseline(data.models)
    if baseline is not None:
        yield Advised("comparison", "comparisons.baseline", baseline, "guessed by its name")
    elif len(data.models) <= MAX_PAIRS and shared:
        yield Advised("comparison", "comparisons.pairs", "all", "no name of a model says that it is the baseline")
    else:
        return
    if data.is_ab_test:
        users = {model: sum(data.histogram(P.LENGTHS, model).values()) for model in data.models}
        shares = _round_shares(users)
        reason = f"{wording.percent(both)} of the users have lists of two models: they are compared unpaired"
        yield Advised("comparison", "comparisons.split", shares, reason)
    primary = data.impressions if k == 1 and data.impressions else f"nDCG@{k}"
    yield Advised("comparison", "comparisons.primary", [primary], "what decides; all else is exploratory")


def _round_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Return shares that add up to 1: equal ones where no count is far from them, else of two digits."""
    total, n = sum(counts.values()), len(counts)
    if all(abs(count / total - 1 / n) < 0.02 for count in counts.values()):  # noqa: PLR2004 - by chance, or hardly more
        return dict.fromkeys(counts, 1 / n)
    shares = {name: max(round(count / total, 2), 0.01) for name, count in counts.items()}
    largest = max(shares, key=lambda name: shares[name])
    return {**shares, largest: round(1 - sum(share for name, share in shares.items() if name != largest), 2)}


def _warnings(data: Data) -> Iterator[Advised]:
    """Warn of what makes numbers mean something else than they seem to."""
    for name, reason in (*_meaning_warnings(data), *_leak_warnings(data), *_size_warnings(data), *_id_warnings(data)):
        yield Advised("warning", name, None, reason)


def _meaning_warnings(data: Data) -> Iterator[tuple[str, str]]:
    counts = data.histogram(P.GAINS)
    most = data.bounds(P.GAIN_BOUNDS)[1]
    if data.gain_kind == "counts":
        share = wording.percent(counts.get(1.0, 0) / sum(counts.values()))
        yield (
            "counts as grades",
            f"gains look like counts, up to {most:g} and {share} of them 1; DCG adds them up as grades",
        )
    if data.gain_kind == "ratings" and not data.predicts_ratings:
        yield "ratings as gains", f"ratings up to {most:g} are gains: each of at least 1 is relevant, low ones too"
    if data.is_ab_test:
        alone = data.histogram(P.MODELS)
        share = wording.percent(alone.get(1.0, 0) / sum(alone.values()))
        yield "A/B test", f"{share} of the users have lists of one model alone: no paired test, and no common users"
    if data.n_candidates is not None:
        yield (
            "sampled candidates",
            f"all lists rank {data.n_candidates} candidates: values are no estimates of those over the whole catalogue",
        )
    judged = data.mean("Judged", data.profiled_cutoff)
    if data.n_irrelevant and judged and max(judged.values()) - min(judged.values()) > 0.1:  # noqa: PLR2004 - of the places
        low, high = min(judged, key=lambda name: judged[name]), max(judged, key=lambda name: judged[name])
        found = f"{wording.percent(judged[high])} of the places of {high} and {wording.percent(judged[low])} of {low}"
        yield "unlike judged", f"{found} are judged: items without a judgement count as not relevant"
    if C.PROPENSITY in data.columns["held_out"] and not data.impressions:
        yield "propensities", "held_out has propensities, but the scores are no probabilities of showing an item"


def _leak_warnings(data: Data) -> Iterator[tuple[str, str]]:
    early, late = data.histogram(P.BEFORE_LIST), data.histogram(P.TRAINED_LATE)
    for name, counts, what in (
        ("held-out before lists", early, "judgements happened at or before the first list of their user"),
        ("training after lists", late, "training rows are not before the lists or judgements of their user"),
    ):
        if counts.get(1.0, 0) >= RARE * max(sum(counts.values()), 1):
            share = wording.percent(counts[1.0] / sum(counts.values()))
            yield name, f"{share} of the {what}: a model may have seen what it is asked"
    again = data.share("held_out", "held_out_in_train")
    if 0 < again < REPEATED:
        yield (
            "held-out in training",
            f"{wording.percent(again)} of the judgements are in the training data of their user",
        )
    seen = data.share("recommendations", check_rows.SEEN_IN_TRAIN)
    if seen >= RARE and again < REPEATED:
        yield "recommended again", f"{wording.percent(seen)} of the recommended items are in the user's training data"


def _size_warnings(data: Data) -> Iterator[tuple[str, str]]:
    k = data.profiled_cutoff
    rows = [row for row in data.comparisons if (name_of(row), row[C.K], row[C.SLICE]) == ("nDCG", k, C.ALL_USERS)]
    needed = {
        users_needed(AIM * row["baseline_value"], row["std_error"] * math.sqrt(row["n_users"]), tail=0.025): row
        for row in rows
        if row["std_error"] and row["n_users"] > 1 and (row["baseline_value"] or 0) > 0
    }
    if needed and max(needed) > needed[max(needed)]["n_users"]:
        row = needed[max(needed)]
        yield (
            "few users",
            f"{row[C.MODEL_ID]} against {row[C.BASELINE_MODEL_ID]}: {wording.count(max(needed), 'user')} find a change "
            f"by {wording.percent(AIM)} of nDCG@{k} in 8 of 10 samples; there are {wording.count(row['n_users'])}",
        )
    for name in choose_slices(data.segments)[0]:
        users = {row["slice_value"]: row["n_users"] for row in data.metrics if row[C.SLICE] == name and row["n_users"]}
        small = [value for value, n in users.items() if n < MIN_SLICE]
        if small:
            least = min(users, key=lambda value: (users[value], value))
            yield (
                "small slices",
                f"{name} {least} has {wording.count(users[least], 'user')}, {len(small)} below {MIN_SLICE}",
            )


def _id_warnings(data: Data) -> Iterator[tuple[str, str]]:
    for input_, check, least, text in (
        ("recommendations", check_rows.MISSING_USERS, REPEATED, "of the judged users have no list: they score 0"),
        ("recommendations", check_rows.UNKNOWN_ITEMS, REPEATED, "of the recommended items are not in the catalogue"),
        ("recommendations", "extra_users", 0.5, "of the users with a list have no judgement and are in no mean"),
        ("held_out", check_rows.UNMATCHED_ITEMS, MOST, "of the judgements are of items that no list has: do ids match"),
    ):
        share = data.share(input_, check)
        if share > least and not (check == check_rows.MISSING_USERS and data.is_ab_test):
            yield check.replace("_", " "), f"{wording.percent(share)} {text}"
    users = data.histogram(P.RELEVANT_ITEMS)
    if not data.impressions and users.get(0.0, 0) > 0.5 * sum(users.values()):
        share = users[0.0] / sum(users.values())
        yield "zero relevant", f"{wording.percent(share)} of the judged users have nothing relevant and are in no mean"
    for (input_, check), fact in data.counts.items():
        is_told = (
            check in LEFT_OUT and check != check_rows.MISSING_USERS and (input_, check) != ("held_out", "duplicates")
        )
        if is_told and fact.share:
            yield check.replace("_", " "), f"{input_}: {wording.percent(fact.share)} of the rows {LEFT_OUT[check]}"
