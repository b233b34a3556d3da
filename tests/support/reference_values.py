"""Reference values of every measure: fractions, or 40 digits, for any library in any language.

``python -m tests.support.reference_values`` writes ``docs/reference/values.json``. Values are those of the naive
references, computed in exact arithmetic and, for worked examples, those of their arithmetic expressions too. A new
measure or option is in it by itself; where no input tells two choices apart, add a list to ``PANEL``.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds
from rankeval_spark.measures import Measure, Offered, Preferred, Ranking, Shown, registry
from rankeval_spark.measures.options import GROUP, GainMap
from rankeval_spark.measures.worked_examples import UNDEFINED, evaluate_expression, examples_of
from tests.support import naive_exposures, naive_lists, naive_parity, oracles
from tests.support.oracles import number
from tests.support.rankings import BACKGROUNDS, ITEMS, build_ranking

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.measures.worked_examples import Example, Given
    from tests.support.oracles.plain import Number

PATH: Final = Path(__file__).parents[2] / "docs" / "reference" / "values.json"
KS: Final = (3, 0)  # cutoffs of the panel; 0 is the whole list
SAME: Final = Fraction(1, 10**45)  # how far a value of 60 digits may be from the number that it stands for
FUNCTIONS: Final = {"ln": number.log, "log2": number.log2, "sqrt": number.sqrt}


def places(text: str) -> list[Any]:
    """Read places of a list from ``score:gain:item:value:groups``, a blank between; gain ``-`` is not judged."""
    found = []
    for score, gain, number_of_item, value, groups in (place.split(":") for place in text.split()):
        item = ITEMS[int(number_of_item)]
        names = f"{groups.replace('+', ' ')} {'repeat' if item.is_seen else 'explore'}".strip()
        found.append((float(score), None if gain == "-" else float(gain), item, (float(value), names)))
    return found


def listed(text: str, missed: str = "", background: int = 1, other: Sequence[int] = ()) -> Ranking:
    """Build a list of the panel; ``missed`` has ``gain:value:groups``, ``other`` the ranks of another model's list."""
    left = [one.split(":") for one in missed.split()]
    judged = [
        (float(gain), (float(value), f"{groups.replace('+', ' ')} {('repeat', 'explore')[place % 2]}"))
        for place, (gain, value, groups) in enumerate(left)
    ]
    return build_ranking(places(text), judged, BACKGROUNDS[background], list(other))


PANEL: Final[Mapping[str, Ranking]] = {
    "graded": listed(
        "0.75:3:1:4:head 0.5:-:3:1:tail 0.5:1:2:9.5:tail+rock 0.25:0:6:2:middle 0.125:2:4:0.25:middle 0.125:-:5:1:tail",
        "2:4:tail 1:0.25:head -1:9.5:tail 3:1:middle",
        other=[3, 1, 7, 5],
    ),
    "short": listed(
        "0.5:-:2:1:head 0.25:1:4:4:tail", "1:1:head 1:2:tail 2:4:middle 0:1:tail 1:3:tail", other=[2, 9, 1]
    ),
    "hits_first": listed(
        "1:1:1:1:head 0.75:1:2:2:tail 0.5:-:3:1:tail 0.5:-1:2:1:head 0.25:0:4:1:middle 0:1:6:4:middle", other=[1, 2]
    ),
    "hits_last": listed("1:0:4:1:tail 0.75:-:6:1:head 0.5:0:3:1:middle 0.25:1:1:2:tail 0:1:2:4:head", "0:1:head"),
    "tied": listed("0.5:1:2:1:tail 0.5:0:3:1:tail 0.5:0.5:4:1:head 0.5:-:5:1:tail", "1:1:tail", 2, [4, 2]),
    "unjudged_first": listed(
        "0.75:-:0:1: 0.5:1:2:4:tail 0.5:-:3:1:head 0.25:-:1:2:tail 0.125:1:6:2:head 0:2:4:1:tail",
        "0:1:head",
        1,
        [2, 1, 3],
    ),
    "long": listed(
        "1:2:1:1:head 0.75:-:2:1:tail 0.5:0:3:1:tail " + "0.25:-:4:1:tail " * 7 + "0.125:1:5:2:tail 0:3:1:4:middle",
        "1:1:tail " * 8,
    ),
    "binary": listed(
        "1:-:3:1:tail 0.75:1:2:2:tail 0.5:0:1:1:head 0.25:-:4:4:middle 0.125:1:6:1:tail", "1:1:head 1:4:tail", 1, [4, 2]
    ),
    "two_of_three": listed("1:1:1:1:head 0.75:-:2:2:tail 0.5:1:3:1:tail", "1:4:tail", 1, [3, 2, 9]),
    "single": listed("0.5:1:3:2:tail", "1:1:tail", 1, [1]),
    "few_relevant": listed("1:-:2:1:head 0.5:1:4:2:tail 0.25:-:3:1:tail"),
    "not_relevant": listed("0.5:0:1:1:head 0.25:-:2:1:tail", "0:1:tail"),
    "without_judgements": listed("0.5:-:1:1:head 0.25:-:2:1:tail", other=[2, 1]),
    "empty": listed("", "1:4:tail 2:1:head"),
    "nothing_known": listed("0.5:1:0:1:head 0.25:-:0:1:tail", "1:1:head", 0),
}
"""Lists that tell options apart: grades, ties, short and empty lists, users without a judgement or a relevant item."""

SHOWN: Final[Mapping[str, Sequence[Given]]] = {
    "exposure": (
        Shown(("a b c d", "a c", "b a x", ""), "a b c d e f"),
        Shown(("a b", "a b"), "a b c"),
        Shown(("",), "a b"),
    ),
    "PopREO": (Offered(("a b c e", "b d f", "a"), ("a", "b c", "d e f"), ("a b e", "b f", "c d"), ("", "f", "b")),),
    "PopRSP": (Offered(("a b c e", "b d f", "a"), ("a", "b c", "d e f"), own=("", "f", "b")),),
    "BiasDisparity": (Preferred(("a b c e", "b d f", ""), "b c x", ("a b", "c d e", "b")),),
}
"""Groups of lists, for measures of all lists together."""


def exactly(value: Any) -> Any:  # noqa: ANN401 - anything that an input or an option is made of
    """Make fractions of the numbers in a value, as they are written."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Fraction(repr(value)) if math.isfinite(value) else value
    if isinstance(value, GainMap):
        return GainMap(exactly(value.pairs))
    if isinstance(value, tuple | list):
        parts = [exactly(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def with_exact_options(measure: Measure) -> Measure:
    """Make fractions of the numbers among the options."""
    return Measure(measure.name, {name: exactly(value) for name, value in measure.options.items()}.items(), measure.k)


def value_of(measure: Measure, given: Given) -> Number | None:
    """Value of an input by the naive reference of the measure; None where undefined."""
    match given:
        case Shown():
            catalogue = None if given.catalogue is None else set(given.catalogue.split())
            return naive_exposures.value_of(measure, given.items(0), catalogue)
        case Offered():
            groups = [set(group.split()) for group in given.groups]
            at_any_level = Measure.of(measure.name, k=measure.k)  # items are said to be relevant
            return naive_parity.value_of(at_any_level, naive_parity.users_of(given), groups)
        case Preferred():
            return naive_parity.value_of(measure, naive_parity.users_with(given), [set(given.category.split())])
        case Ranking():
            scores: Any = given.scores or [Fraction(n, len(given.gains)) for n in range(len(given.gains), 0, -1)]
            return oracles.value_of(measure, given._replace(scores=scores))


def mean_of(measure: Measure, lists: Sequence[Ranking], values: Sequence[Number | None]) -> Number | None:
    """Mean of all lists with a value as it is published, or the ratio of sums over them."""
    weights = [Fraction(oracles.denominator_of(measure, one)) if measure.is_micro else Fraction(1) for one in lists]
    pairs = [(weight, value) for weight, value in zip(weights, values, strict=True) if value is not None]
    if not sum(weight for weight, _ in pairs):
        return None
    mean = sum(weight * value for weight, value in pairs) / sum(weight for weight, _ in pairs)
    return {"log": number.exp, "square": number.sqrt}.get(measure.link, Fraction)(mean)


def text_of(value: Number | None) -> str | None:
    """Write a value: a fraction where its denominator is below 10^30, else 40 digits."""
    if value is None:
        return None
    assert not isinstance(value, float), f"{value} is not exact; use tests.support.oracles.number"
    near = Fraction(value).limit_denominator(10**15)
    value = near if abs(near - value) < SAME else Fraction(value)
    if value.denominator < 10**30:
        return str(value)
    return str(Context(prec=40).divide(Decimal(value.numerator), Decimal(value.denominator)))


def once_each(entry: Definition) -> Iterator[Measure]:
    """Choose measures so that each choice of each option is there at each cutoff, with few other options."""
    groups = next((option.choices for option in entry.options if option.name == GROUP), ())
    tried = list(oracles.variants(entry, KS))
    of_groups = [one for one in tried if one.options.get(GROUP) is not None]
    tried += [Measure.of(one.name, k=one.k, **{**one.options, GROUP: group}) for one in of_groups for group in groups]
    n_changed = {one: sum(value != entry.defaults[name] for name, value in one.options.items()) for one in tried}
    found: dict[Any, Measure] = {}
    for measure in sorted(n_changed, key=n_changed.__getitem__):
        for name, value in [*measure.options.items(), ("", "")]:
            found.setdefault((name, str(value), measure.k), measure)
    # What is there only next to other options is compared with the other choices next to the same ones
    places = {beside(one, name) for (name, _, _), one in found.items() if n_changed[one] > 1}
    next_to = [one for one in tried if places & {beside(one, name) for name in one.options}]
    # The roundings of IPrec agree at most levels of recall
    levels = [one for one in tried if one.options.get("recall") == 0.7 and n_changed[one] <= 2]
    yield from dict.fromkeys([*found.values(), *next_to, *levels])


def beside(measure: Measure, option: str) -> tuple[Any, ...]:
    """Return what else a measure has than one of its options."""
    return measure.k, option, str({**measure.options, option: ""})


def takes(measure: Measure, given: Given) -> bool:
    """Whether no gain of a list is an error, nor an item that it leaves out."""
    if not isinstance(given, Ranking) or oracles.takes_every_list(measure):
        return True
    gains = [gain for gain in (*given.gains, *given.missed) if gain is not None]
    is_whole = measure.options.get("missing") != "error" or not given.missed
    greatest: Any = measure.options.get("max_rel", math.inf)
    return is_whole and max(gains, default=0) <= greatest


class Inputs(dict[str, Any]):
    """Inputs of cases by name, each once."""

    def name(self, given: Given, suggested: str) -> str:
        """Return the name of an input, with which it is kept."""
        written = as_written(given)
        names = itertools.chain([suggested], (f"{suggested}_{n}" for n in itertools.count(2)))
        known = [name for name, other in self.items() if other == written]
        self[name := known[0] if known else next(name for name in names if name not in self)] = written
        return name


def as_written(value: Any) -> Any:  # noqa: ANN401 - as the file has it
    """Write a value as examples are written in YAML: fields without those that are left at their defaults."""
    if hasattr(value, "_field_defaults"):
        defaults = {name: value._field_defaults.get(name, ...) for name in value._fields}
        fields = {name: tuple(part) if isinstance(part, list) else part for name, part in value._asdict().items()}
        left = {name for name, part in fields.items() if part is defaults[name] or part == defaults[name]}
        return {name: as_written(part) for name, part in fields.items() if name not in left}
    if isinstance(value, GainMap):
        return {f"{gain:g}": as_written(worth) for gain, worth in value.pairs}
    if isinstance(value, tuple | list):
        return [as_written(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def case_of(measure: Measure, inputs: Sequence[tuple[str, Any]], example: Example | None = None) -> dict[str, Any]:
    """Compute a case of exact inputs; AssertionError where a worked example says something else."""
    is_of_lists = measure.entry.kind == "list"
    with number.exact():
        asked, given = with_exact_options(measure), [one for _, one in inputs]
        values = [value_of(asked, one) for one in given]
        mean = mean_of(asked, given, values) if is_of_lists else None
        if example is not None:
            expected = [None if one == UNDEFINED else evaluate_expression(one, FUNCTIONS) for one in example.values]
            expected += [evaluate_expression(example.mean, FUNCTIONS)] if example.mean else [mean]
            is_same = (text_of(one) == text_of(other) for one, other in zip([*values, mean], expected, strict=True))
            assert all(is_same), f"{example.measure}: the reference has {values}, the worked example {expected}"
            assert str(measure) == example.measure, "worked examples use canonical names"
    return {
        "measure": str(measure),
        "name": measure.name,
        "k": measure.k or None,
        "options": {name: as_written(value) for name, value in measure.options.items()},
        "inputs": [name for name, _ in inputs],
        "values": [text_of(value) for value in values],
        **({"mean": text_of(mean)} if is_of_lists else {}),
        **({"note": example.note} if example and example.note else {}),
    }


LOG: Final = {
    "ann": {"a": [0.9], "b": [0.5], "c": [0.5], "d": [0.5], "e": [0.1]},
    "bob": {"a": [0.9, 0.4], "b": [0.8], "c": [0.3], "d": [0.2]},
    "dan": {"a": [0.5], "b": [0.4]},
    "eve": {"a": [0.5], "b": [0.4]},
    "fay": {"b": [0.7], "10": [0.7], "9": [0.7], "a": [0.2]},
}
"""Scores by user and item: ties, an item twice, a user who is not judged (dan) or has no relevant item (eve)."""

HELD_OUT: Final = {
    "ann": {"b": [1], "d": [3], "x": [2], "e": [0]},
    "bob": {"b": [1], "a": [1, 2], "c": [2], "y": [1]},
    "cid": {"a": [1]},
    "eve": {"a": [0]},
    "fay": {"9": [2], "a": [1]},
}
"""Gains by user and item; cid has no list."""

POLICIES: Final[Sequence[Mapping[str, Any]]] = (
    *({"ties": ties} for ties in ("item_asc", "item_desc", "optimistic", "pessimistic", "expected")),
    {"duplicates": "keep"},
    {"held_out_duplicates": "sum"},
    {"judged_only": True},
    *({"population": "truth", "missing": missing} for missing in ("zero", "exclude")),
    *({"population": "judged", "missing": m, "zero_relevant": z} for m in ("zero", "exclude") for z in ("zero", "one")),
    {"population": "intersection"},
    *({"population": "intersection_judged", "zero_relevant": value} for value in ("zero", "one")),
    *({"population": "run", "zero_relevant": value} for value in ("exclude", "zero", "one")),
)
IN_MEAN: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "truth": lambda _, value: value is not None,
    "judged": lambda row, _: row[C.JUDGED_GAINS],
    "intersection": lambda row, value: row[naive_lists.RANKED] and value is not None,
    "intersection_judged": lambda row, _: row[naive_lists.RANKED] and row[C.JUDGED_GAINS],
    "run": lambda row, _: row[naive_lists.RANKED],
}
"""Whether a user is in the mean, by the population."""


def policy_case(measure: Measure, policies: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a measure of the tables above under some policies, user by user."""
    population = policies.get("population", "truth")
    usual = "exclude" if population in ("truth", "intersection", "run") else "zero"
    instead: Any = {"zero": Fraction(0), "one": Fraction(1), "exclude": None}[policies.get("zero_relevant", usual)]
    found: dict[str, Number] = {}
    for row in naive_rows(policies):
        with number.exact():
            value = value_over_ties(with_exact_options(measure), row, is_expected=policies.get("ties") == "expected")
        is_left_out = not row[naive_lists.RANKED] and policies.get("missing") == "exclude"
        if IN_MEAN[population](row, value) and not is_left_out and (value is not None or instead is not None):
            found[row[C.USER_ID]] = instead if value is None else value
    users = {user: text_of(found[user]) for user in sorted(found)}
    mean = sum(found.values(), Fraction(0)) / len(found)
    return {"measure": str(measure), "policies": dict(policies), "users": users, "mean": text_of(mean)}


def naive_rows(policies: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rank and judge the lists of the tables above."""
    rules = {"ties": "item_asc", "duplicates": "best", "held_out_duplicates": "max", "judged_only": False, **policies}
    others = {"order": C.SCORE, "drops_seen": False, "keeps_gaps": False, "checks_ranks": False}
    rows = [
        {row_kinds.KIND: kind, C.MODEL_ID: "m", C.USER_ID: user, C.ITEM_ID: item, name: one, C.INTERACTED_AT: None}
        for kind, name, table in ((row_kinds.LOG, C.SCORE, LOG), (row_kinds.HELD_OUT, C.GAIN, HELD_OUT))
        for user, own in table.items()
        for item, several in own.items()
        for one in several
    ]
    as_rules: Any = SimpleNamespace(**rules, **others)  # those that the reference reads
    return naive_lists.to_lists(rows, rules=as_rules, models=("m",))


def value_over_ties(measure: Measure, row: Mapping[str, Any], *, is_expected: bool) -> Number | None:
    """Value of one list, or its mean over all orders of tied items."""
    judged = exactly(row[C.JUDGED_GAINS])  # an item that a list has twice is judged once
    runs: list[list[Any]] = []
    for _, rank, gain in row[naive_lists.RANKED]:
        runs = [*runs[:-1], [*runs[-1], gain]] if rank in row[C.TIED_RANKS] else [*runs, [gain]]
    orders = itertools.product(*map(itertools.permutations, runs)) if is_expected else [runs]
    plain = [oracles.PlainList.of(exactly(Ranking(list(itertools.chain(*order))))) for order in orders]
    plain = [replace(one, judged=judged, judged_gains=judged, judged_values=judged) for one in plain]
    values: list[Any] = [oracles.NAIVE[measure.name](one, measure.k, **measure.kernel_options) for one in plain]
    return None if values[0] is None else sum(values) / len(values)


def build() -> dict[str, Any]:
    """Compute all cases."""
    inputs, cases = Inputs(), list[dict[str, Any]]()

    def named(given: Sequence[Given], name: str) -> list[tuple[str, Given]]:
        return [(inputs.name(one, name), exactly(one)) for one in given]

    panel = [named([one], name)[0] for name, one in PANEL.items()]
    for entry in registry.entries():
        for example in examples_of(entry):
            cases.append(case_of(Measure.parse(example.measure), named(example.inputs, entry.name), example))
        own = panel if entry.kind == "list" else named(SHOWN.get(entry.name, SHOWN.get(entry.kind, ())), entry.kind)
        for measure in once_each(entry):
            cases.append(case_of(measure, [(name, one) for name, one in own if takes(measure, one)]))
    measures = [Measure.parse(name) for name in ("AP", "nDCG@3", "R@2", "RR", "P@3")]
    return {
        "$schema": "values.schema.json",
        "inputs": dict(inputs),
        "cases": cases,
        "log": LOG,
        "held_out": HELD_OUT,
        "policy_cases": [policy_case(measure, policies) for policies in POLICIES for measure in measures],
    }


def write(document: Mapping[str, Any]) -> str:
    """Write a line for each input and case."""
    parts = []
    for name, part in document.items():
        match part:
            case dict():
                inside = ",\n".join(f"    {json.dumps(key)}: {json.dumps(one)}" for key, one in part.items())
                parts.append(f"  {json.dumps(name)}: {{\n{inside}\n  }}")
            case list():
                inside = ",\n".join(f"    {json.dumps(one, ensure_ascii=False)}" for one in part)
                parts.append(f"  {json.dumps(name)}: [\n{inside}\n  ]")
            case _:
                parts.append(f"  {json.dumps(name)}: {json.dumps(part)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(write(build()), encoding="utf-8")
