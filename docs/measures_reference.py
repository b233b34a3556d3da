"""The pages about measures, made from their definitions: an index, and a page for each family."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from rankeval_spark.measures import Measure, group_statistics, options as measure_options, other_tools, registry
from rankeval_spark.measures.worked_examples import examples_of

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.measures.options import Option


MAX_REPEATED: Final = 60
"""Characters of an input that is written again in each example that has it."""


class Family(NamedTuple):
    """The page of a family."""

    file: str
    title: str
    about: str


FAMILIES: Final = {
    "accuracy": Family("accuracy", "Accuracy", "What is relevant: hits, their ranks and their gains."),
    "prediction": Family("prediction", "Prediction", "Scores of held-out items against their gains."),
    "beyond_accuracy": Family(
        "beyond-accuracy", "Beyond accuracy", "Properties of the recommended items, relevant or not."
    ),
    "off_policy": Family(
        "off-policy", "Off-policy", "Estimated gain of a policy, from the log of another one with propensities."
    ),
    "user_values": Family(
        "user-values", "Own values", "What a user did beyond the lists: revenue, retention, a survey."
    ),
    "system": Family("system", "All lists together", "All lists of a slice together, and the lists themselves."),
}

HEAD: Final = """\
# Measures

Generated from `rankeval_spark/measures` by `make docs`. [Which measure when](../which-measure.md) helps to choose.
`rankeval measures NAME` shows an entry on the command line, with notes on what users dispute or overlook; `--all` adds
an example of each choice of an option.

"""

READING: Final = """\
## How to read the pages

**Names.** A measure is written `Name(option=value)@k`. Options have the defaults on its page; without `@k` the whole
list counts. In YAML, a name with a map, such as `"nDCG(gains={1:1,2:3})@10"`, needs quotes. In tables, column
`measure` holds the name and `k` the cutoff (0 = whole list). Undefined values are NULL, never 0.

**Notation.** For a user, `n` is the length of the list, and `m` the number of items at ranks 1 to `k`: `min(k, n)`,
less the empty ranks of the policy `rank_gaps: keep`. `r_i` and `g_i` are relevance and gain at rank `i`; `R` is the
number of relevant judgements; `h_i` counts the relevant items at ranks 1 to `i`. An item without a judgement has
gain 0. A judgement is relevant where its gain is at least `rel`.

**Better: neither** marks a measure that only describes lists, or is best in between, such as PopLift at 0. A
comparison then says `different`, not `better` or `worse`; a leaderboard begins with the highest value; rules of
`gates` only bound the value.

**Other names** of a measure are read in its place where they are printed as code; the rest are words for a search.

**Examples** show the gain at each rank (`-` without a judgement); in parentheses stand missed gains, scores and others.
`others` gives, for each place of the other list, the rank of its item in this list. Measures of all lists together show
the items of each list. `;` separates lists, and *mean* is that over them.

## Values and their means

The published value is the mean of the users' values (`agg='macro'`). A measure that is a ratio of sums also has
`agg='micro'`: the numerators of all users divided by their denominators. `AP(agg='micro')` averages over relevant items
instead of users; `nDCG(agg='micro')@10` divides the DCG of all users by the best possible. In `user_metrics`, its
column holds the ratio of each user and `<column>__weight` the denominator. Its interval is that of the delta method,
with the user as unit. Where all denominators are equal (Success, RR, DCG), the micro average is the mean, and there is
no such option. Values of slices average by `n_users` to that of all users, except micro values (by their denominators)
and GMAP.

A measure *of all lists together* (coverage of items, Gini, entropy, personalization) covers every user with a list,
judged or not, in any population. No user has a value. Its interval is a jackknife over 20 hashed groups of users.

"""

OPTIONS: Final = """\
## Shared options

Pages name the options of each measure with their defaults, and explain those that only it has.

| option | values | effect |
|---|---|---|
"""

ABOUT_OPTIONS: Final = """\

**`group`.** By popularity in `train`, `head` has the fewest items that hold at least 20 % of the interactions, ties by
item id. `tail` has the items outside of the fewest that hold 80 %, and those without interactions; `middle` the rest.
`repeat` has the items that the user has in `train`, and `explore` all others, for each user apart:
`R(group='repeat')@10`, also written `RepeatRecall@10`, is the share found of what the user took again. Any other text
is a category of `items`: `R(group='Sci-Fi')@10`. A run has at most 62 groups.

**`judged_only`** is trec_eval's -J for one measure: `nDCG(judged_only=True)@10` is computed next to `nDCG@10`, and
lists and counts stay those of the run. Judgements are those of all items, also with `group`. Measures about unjudged
items (Judged, unj, RBPResidual, infAP), those that unjudged items do not change (Bpref, SetR), and those of scores
without ranks do not have it. The source of a measure says where a negative gain counts as judged.

**`weighted`** corrects for judgements that are observed with different probabilities ([weights](../weights.md)).

**`gains='value'`** reads the column `value` of the held-out table, such as revenue; relevance still depends on `gain`.
A value that is NULL, NaN or infinite is counted by the check `invalid_values`. It is worth 0, as a negative one is.
With revenue in the column `gain`, an item that cost less than 1 is not relevant, which the check `low_gains` counts.

**`model`** compares with the list of the same user and list name: `Overlap(model='popular')@10`. Rules of `gates` leave
the lists of that model out.

`rankeval score` refuses measures with `group` or `model`: published lists hold neither groups nor items.

"""

MEANINGS: Final = """\
## Names with several meanings

Other tools and papers use these names for other numbers. `evaluate(...).notes` and `rankeval measures NAME` say which
one is taken; `evaluate` warns of `MAR` without its `kind`.

| name | here | elsewhere |
|---|---|---|
"""

STATISTICS: Final = """\
## Statistics of groups

These are not requested in `measures`: with slices, `group_metrics` has them of every measure, such as `GroupGap(nDCG)`
([slices](../slices.md)); ItemMAD with `slicing.item_slices`. M(g) is the value of the measure for group g. All are
undefined where fewer than two groups have a value, are not small and, of users, have a known segment.

"""


def pages() -> dict[str, str]:
    """Return the text of each page, by its path in this folder."""
    families = {f"measures/{family.file}.md": _family_page(name, family) for name, family in FAMILIES.items()}
    return {"measures/index.md": index_page(), **families}


def index_page() -> str:
    """Write what all measures share, and one line about each of them."""
    shared = "".join(map(_shared_option, _shared_options()))
    meanings = "".join(
        f"| {', '.join(f'`{name}`' for name in case.names[:2])} | {case.taken or 'not read'} | {case.others} |\n"
        for case in registry.SEVERAL_MEANINGS
    )
    tables = "\n".join(_index_table(name, family) for name, family in FAMILIES.items())
    index = f"## All measures\n\n{tables}\n"
    return HEAD + index + READING + OPTIONS + shared + ABOUT_OPTIONS + MEANINGS + meanings


def _entries(family: str) -> list[Definition]:
    return [entry for entry in registry.entries() if entry.family == family]


def _index_table(name: str, family: Family) -> str:
    rows = [
        f"| [{entry.name}]({family.file}.md#{_anchor(entry.name)}) | {entry.summary} |\n" for entry in _entries(name)
    ]
    if name == "system":
        rows += [
            f"| [{added.name}]({family.file}.md#{_anchor(added.name)}) | {added.summary} |\n"
            for added in group_statistics.ALL
        ]
    return f"### {family.title}\n\n{family.about}\n\n| measure | value |\n|---|---|\n{''.join(rows)}"


def _anchor(heading: str) -> str:
    return heading.lower()


def _family_page(name: str, family: Family) -> str:
    entries = _entries(name)
    usual = {fact: _most_common([_facts(entry)[fact] for entry in entries]) for fact in _facts(entries[0])}
    head = f"# {family.title}\n\n{family.about} The [index](index.md) explains the notation and shared options.\n"
    head += f"\nWhere an entry says nothing else: {_in_words(usual)}.\n"
    if over_ties := [entry for entry in entries if entry.has_mean_over_ties]:
        partly = [entry.name for entry in over_ties if callable(entry.has_mean_over_ties)]
        head += (
            "\nWith the policy `ties: expected` these have their mean over all orders of equal scores, "
            f"{', '.join(partly)} but for some options: {', '.join(f'`{entry.name}`' for entry in over_ties)}. "
            "The others take one order.\n"
        )
    works, inputs = set[str](), dict[str, str]()
    measures = ["\n".join(_measure_lines(entry, usual, works, inputs)) for entry in entries]
    statistics = [STATISTICS + _statistics()] if name == "system" else []
    return "\n".join([head, *measures, *statistics])


def _facts(entry: Definition) -> dict[str, str]:
    return {
        "range": entry.range,
        "better": entry.better_in_words,
        "undefined": entry.undefined,
        "cutoff": str(entry.cutoff),
    }


def _most_common(values: list[str]) -> str:
    return Counter(values).most_common(1)[0][0]


def _in_words(facts: Mapping[str, str]) -> str:
    return "; ".join(f"{fact}: {value}" for fact, value in facts.items())


def _shared_options() -> list[Option]:
    """List each option once that several measures have with one meaning, the most common ones first."""
    found = {_key(option): option for entry in registry.entries() for option in entry.options}
    shared = [option for option in found.values() if _is_shared(option)]
    return sorted(shared, key=lambda option: -len(_measures_with(option)))


def _key(option: Option) -> tuple[str, str, str]:
    return option.name, option.expected, option.meaning


def _measures_with(option: Option) -> list[str]:
    return [entry.name for entry in registry.entries() if _key(option) in map(_key, entry.options)]


def _is_shared(option: Option) -> bool:
    return len(_measures_with(option)) > 1


def _shared_option(option: Option) -> str:
    """Write a row; an option whose name has another meaning in most measures names those with this one."""
    measures = _measures_with(option)
    is_other = any(
        other.name == option.name and len(_measures_with(other)) >= len(measures) for other in _others(option)
    )
    names = f" of {', '.join(measures)}" if is_other else ""
    return f"| `{option.name}`{names} | {option.expected.replace(' or ', ', ')} | {_in_table(option.meaning)} |\n"


def _others(option: Option) -> list[Option]:
    return [other for other in _shared_options() if _key(other) != _key(option)]


def _in_table(text: str) -> str:
    return text.replace("|", "\\|")


def _measure_lines(
    entry: Definition, usual: Mapping[str, str], works: set[str], inputs: dict[str, str]
) -> Iterator[str]:
    """Yield the entry of a measure without what is ``usual`` on its page, and what stands above of works and inputs."""
    yield f"## {entry.name}\n\n{entry.summary}\n\n`{entry.formula}`\n"
    if unusual := {fact: value for fact, value in _facts(entry).items() if value != usual[fact]}:
        yield f"- {_in_words(unusual)}"
    if entry.requires:
        yield f"- needs: {entry.requires}"
    if entry.options:
        yield f"- options: {', '.join(map(_default, entry.options))}"
    for option in entry.options:
        if not _is_shared(option):
            yield f"  - `{option.name}` is {option.expected}. {option.meaning}"
    yield from _further(entry)
    yield f"- source: {_without_titles(entry.source, works)}"
    yield f"- other names: {', '.join(_other_names(entry))}"
    if elsewhere := other_tools.names_of(entry.name):
        names = (f"`{ours}`: {', '.join(f'`{each}`' for each in theirs)}" for ours, theirs in elsewhere.items())
        yield f"- [in other tools](../presets.md): {'; '.join(names)}"
    yield f"{_example(entry, inputs)}\n"


def _other_names(entry: Definition) -> Iterator[str]:
    """Yield the names that are read, as code, then the words that are not such a name with blanks."""
    yield from (f"`{alias}`" for alias in entry.aliases)
    known = {_letters(name) for name in (entry.name, *entry.aliases)}
    yield from (words for words in entry.words.split(", ") if _letters(words) not in known)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _without_titles(source: str, seen: set[str]) -> str:
    """Shorten each work that stands ``seen`` above to its authors and year."""
    works = source.split("; ")
    short = [work[: work.index(")") + 1] if work in seen and "), " in work else work for work in works]
    seen.update(works)
    return "; ".join(short)


def _default(option: Option) -> str:
    """Write an option with its default, as a name shows it."""
    value = "" if option.default is None else measure_options.option_text(option.default)
    return f"`{option.name}={value}`{' (required)' if option.is_required else ''}"


def _further(entry: Definition) -> Iterator[str]:
    """Yield where a measure differs from a usual mean over users."""
    if entry.interval == "wilson":
        yield "- interval of the mean: wilson"
    if entry.bias:
        yield f"- interval: {entry.bias}"
    if entry.kind != "list":
        requested = [Measure.parse(example.measure) for example in examples_of(entry)]
        names = dict.fromkeys(f"`{measure.label}`" for measure in requested if measure.needs_catalogue)
        needing = f"; needs the input `items` or `train`: {', '.join(names)}" if names else ""
        yield f"- of all lists of a slice together{needing}"


def _example(entry: Definition, seen: dict[str, str]) -> str:
    """Write the first example; long inputs that stand ``seen`` above are named by the measure that has them."""
    example = examples_of(entry)[0]
    mean = f"; mean {example.mean}" if example.mean else ""
    note = f" ({example.note})" if example.note else ""
    first = seen.setdefault(example.given, entry.name)
    is_long = len(example.given) > MAX_REPEATED
    given = f"the input of {first}" if first != entry.name and is_long else f"`{example.given}`"
    return f"- `{example.measure}` of {given}: `{'; '.join(example.values)}{mean}`{note}"


def _statistics() -> str:
    return "\n".join(map(_statistic, group_statistics.ALL))


def _statistic(statistic: group_statistics.GroupStatistic) -> str:
    further = statistic.undefined.partition("; ")[2]
    undefined = f"- also undefined: {further}\n" if further else ""
    return (
        f"### {statistic.name}\n\n{statistic.summary}\n\n`{statistic.formula}`\n\n"
        f"- range: {statistic.range}\n{undefined}- interval: {statistic.interval}\n"
        f"- source: {statistic.source}\n- other names: {statistic.words}\n"
    )
