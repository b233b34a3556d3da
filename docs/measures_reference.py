"""The pages about measures, made from their definitions: an index, and a page for each family."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rankeval_spark.measures import Measure, group_statistics, options as measure_options, registry
from rankeval_spark.measures.worked_examples import examples_of

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.measures.options import Option
    from rankeval_spark.measures.worked_examples import Example

MAX_NAMED: Final = 5
"""Options of more measures count them and name none, and have their examples in the index alone."""


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
    "system": Family("system", "All lists together", "All lists of a slice together, and the lists themselves."),
}

HEAD: Final = """\
# Measures

Generated from `rankeval_spark/measures` by `make docs`. [Which measure when](../which-measure.md) helps to choose.
`rankeval measures NAME` shows the same on the command line, with notes on what users dispute or overlook.

"""

READING: Final = """\
## How to read the pages

**Names.** A measure is written `Name(option=value)@k`; options have the defaults on its page, and without `@k` the
whole list counts. In YAML, a name with a map, such as `"nDCG(gains={1:1,2:3})@10"`, needs quotes. In the tables,
column `measure` holds the name and `k` the cutoff (0 = whole list). Undefined values are NULL, never 0.

**Notation.** For a user, `n` is the length of the list. `m` is the number of its items at ranks 1 to `k`: `min(k, n)`,
less the empty ranks that the policy `rank_gaps: keep` leaves. `r_i` and `g_i` are relevance and gain at rank `i`; `R`
is the number of relevant judgements; `h_i` is the number of relevant items at ranks 1 to `i`. An item without a
judgement has gain 0. A judgement is relevant where its gain is at least `rel` (1 by default).

**Better** says which value is the better one. Where it says *neither*, a measure only describes the lists, such as
their popularity, or is best at a value in between, such as PopLift at 0. Then the verdict of a comparison is
`different` instead of `better` or `worse`, a leaderboard has the highest value first, and rules of `gates` bound the
value only.

**Ties.** A measure that *averages over ties* has a mean over all orders of equal scores with the policy
`ties: expected`.

**Examples** show the gain at each rank (`-` without a judgement), and in parentheses missed gains, scores and others;
`others` says at each place of the other list at which rank this list has its item. Measures of all lists together show
the items of each list. Several lists are separated by `;`, and *mean* is that over them. A page
has one example of each choice of an option, `rankeval measures NAME --all` has the others.

## Values and their means

The published value is the mean of the users' values (`agg='macro'`). A measure that is a ratio of sums also has
`agg='micro'`: the numerators of all users divided by their denominators, so that a user counts as often as they have
rows. `AP(agg='micro')` averages over relevant items instead of users; `nDCG(agg='micro')@10` divides the DCG of all
users by the best that was possible. Measures without a denominator, or with the same one for every user, such as
Success, RR and DCG, have no such option: their micro average is their mean. The column of a ratio of sums in
`user_metrics` holds the ratio of each user and `<column>__weight` the denominator. The interval is that of the delta
method with the user as the unit. The values of slices do not average to that of all users by `n_users`, as means do:
they weigh by the denominators. Neither do those of GMAP, which is a mean of logarithms.

A few measures are functions of all lists of a slice together (coverage of items, Gini, entropy, personalization). They
cover every user with a list, judged or not, in any population, and no user has a value. Their interval is a jackknife
that leaves out each of 20 hashed groups of users in turn.

"""

OPTIONS: Final = """\
## Shared options

The pages name the options of each measure with their defaults, and explain those that it alone has.

| option | measures | values | what it does | example |
|---|---|---|---|---|
"""

ABOUT_OPTIONS: Final = """\

**`group`.** By popularity in `train`, `head` has the fewest items that hold at least 20 % of the interactions, ties by
item id. `tail` has the items that are not among the fewest that hold 80 %, and items without interactions; `middle` has
the rest. Any other text is a category of `items`: `R(group='Sci-Fi')@10`. A run has at most 62 groups.

**`judged_only`** is trec_eval's -J for one measure: `nDCG(judged_only=True)@10` is computed in addition to `nDCG@10`,
and lists and counts stay those of the run. Judgements are those of all items, also with `group`. Ties are put in order,
or averaged over, as everywhere. Measures about unjudged items (Judged, unj, RBPResidual, infAP), those that unjudged
items do not change (Bpref, SetR), and those that read scores and no ranks do not have it. Where an item with a negative
gain is not one without a judgement, the source of the measure says what it is.

**`weighted`** corrects for judgements that are observed with different probabilities ([weights](../weights.md)).

**`gains='value'`** reads the column `value` of the held-out table, such as revenue or watch time; relevance still
depends on `gain`. A value that is NULL, NaN or infinite is counted by the check `invalid_values` and is worth 0, as a
negative one. Revenue in the column `gain` works differently: an item that cost less than 1 is then not relevant, which
the check `low_gains` counts.

**`model`** of `Overlap`, `Jaccard` and `RBO` names the model whose list of the same user, and of the same list name, is
compared: `Overlap(model='popular')@10`. The lists of that model itself have no value, and rules of `gates` leave it
out.

Published lists hold neither their items nor the groups of these, so `rankeval score` refuses measures with `group` and
those with `model`.

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

Published without a request in `measures`: with slices the table `group_metrics` has them of every measure, such as
`GroupGap(nDCG)` ([slices](../slices.md)); ItemMAD with `slicing.item_slices`. M(g) is the value of the measure for
group g.

"""


def pages() -> dict[str, str]:
    """Return the text of each page, by its path in this folder."""
    families = {f"measures/{family.file}.md": _family_page(name, family) for name, family in FAMILIES.items()}
    return {"measures/index.md": index_page(), **families}


def index_page() -> str:
    """Write what all measures share, and one line about each of them."""
    shared = "".join(map(_shared_option, _shared_options()))
    meanings = "".join(
        f"| {', '.join(f'`{name}`' for name in several.names)} | {several.taken or 'not read'} | {several.others} |\n"
        for several in registry.SEVERAL_MEANINGS
    )
    tables = "\n".join(_index_table(name, family) for name, family in FAMILIES.items())
    index = f"## All measures\n\n{tables}\n"
    return HEAD + index + READING + OPTIONS + shared + ABOUT_OPTIONS + MEANINGS + meanings


def _entries(family: str) -> list[Definition]:
    return [entry for entry in registry.entries() if entry.family == family]


def _index_table(name: str, family: Family) -> str:
    rows = [
        f"| [{entry.name}]({family.file}.md#{_anchor(entry.name)}) | {entry.summary} | {entry.better_in_words} |\n"
        for entry in _entries(name)
    ]
    if name == "system":
        rows += [
            f"| [{one.name}]({family.file}.md#{_anchor(one.name)}) | {one.summary} | |\n"
            for one in group_statistics.ALL
        ]
    head = f"### {family.title}\n\n{family.about}\n\n"
    return f"{head}| measure | what it is | better |\n|---|---|---|\n{''.join(rows)}"


def _anchor(heading: str) -> str:
    return heading.lower()


def _family_page(name: str, family: Family) -> str:
    head = f"# {family.title}\n\n{family.about} Notation and shared options are on the [index](index.md).\n"
    measures = ["\n".join(_measure_lines(entry)) for entry in _entries(name)]
    statistics = [STATISTICS + _statistics()] if name == "system" else []
    return "\n".join([head, *measures, *statistics])


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


def _is_common(option: Option) -> bool:
    return len(_measures_with(option)) > MAX_NAMED


def _shared_option(option: Option) -> str:
    names = _measures_with(option)
    measures = f"{len(names)} measures" if _is_common(option) else ", ".join(names)
    example = _first_example(option) if _is_common(option) else ""
    return f"| `{option.name}` | {measures} | {option.expected} | {_in_table(option.meaning)} | {example} |\n"


def _first_example(option: Option) -> str:
    """Show what a common option does alone, by the first example that changes nothing else."""
    found = next(
        example
        for entry in registry.entries()
        if option.name in [one.name for one in entry.options if _key(one) == _key(option)]
        for example in examples_of(entry)
        if [one.name for one in _changed(example)] == [option.name]
    )
    return f"`{found.measure}` of {found.given} is {_values(found)}{f': {found.note}' if found.note else ''}"


def _changed(example: Example) -> list[Option]:
    """List the options that the name of an example sets to another value than their default."""
    measure = Measure.parse(example.measure)
    return [option for option in measure.entry.options if measure.options[option.name] != option.default]


def _in_table(text: str) -> str:
    return text.replace("|", "\\|")


def _measure_lines(entry: Definition) -> Iterator[str]:
    yield f"## {entry.name}\n\n{entry.summary}\n"
    yield f"- formula: `{entry.formula}`"
    yield f"- range: {entry.range}; better: {entry.better_in_words}"
    yield f"- undefined: {entry.undefined}; cutoff: {entry.cutoff}"
    if entry.options:
        shared = "; [shared options](index.md#shared-options)" if any(map(_is_shared, entry.options)) else ""
        yield f"- options: {', '.join(map(_default, entry.options))}{shared}"
    for option in entry.options:
        if not _is_shared(option):
            yield f"  - `{option.name}` is {option.expected}. {option.meaning}"
    yield from _further(entry)
    aliases = f"; also read as {', '.join(f'`{alias}`' for alias in entry.aliases)}" if entry.aliases else ""
    yield f"- source: {entry.source}{aliases}"
    yield f"- also called: {entry.words}\n"
    if entry.unlike:
        others = "; ".join(f"`{name}` {difference}" for name, difference in entry.unlike.items())
        yield f"Not the same: {others}.\n"
    yield f"| example | {'gains' if entry.kind == 'list' else 'lists'} | value | |\n|---|---|---|---|"
    yield from _examples(entry)
    yield ""


def _default(option: Option) -> str:
    """Write an option with its default, as a name shows it."""
    value = "" if option.default is None else measure_options.option_text(option.default)
    return f"`{option.name}={value}`{' (required)' if option.is_required else ''}"


def _further(entry: Definition) -> Iterator[str]:
    """Yield what a measure needs, and where it differs from a usual mean over users."""
    if entry.requires:
        yield f"- needs: {entry.requires}"
    if entry.interval == "wilson":
        yield "- interval of the mean: wilson"
    if entry.bias:
        yield f"- interval: {entry.bias}"
    ties = entry.has_mean_over_ties
    if ties:
        yield f"- averages over ties{', but for some options' if callable(ties) else ''}"
    if entry.kind != "list":
        requested = [Measure.parse(example.measure) for example in examples_of(entry)]
        names = dict.fromkeys(f"`{one.label}`" for one in requested if one.needs_catalogue)
        needing = f"; needs the input `items` or `train`: {', '.join(names)}" if names else ""
        yield f"- of all lists of a slice together{needing}"


def _examples(entry: Definition) -> Iterator[str]:
    """Yield rows of examples: the first, and one for each choice of an option that is not a common one."""
    given_above, seen = "", set[str]()
    for number, example in enumerate(examples_of(entry)):
        changed = _changed(example)
        options = Measure.parse(example.measure).options
        shown = {f"{option.name}={options[option.name]}" for option in changed}
        if any(map(_is_common, changed)) or (number > 0 and shown <= seen):
            continue
        seen |= shown
        given = "as above" if example.given == given_above else example.given
        given_above = example.given
        yield f"| `{example.measure}` | {given} | {_values(example)} | {example.note} |"


def _values(example: Example) -> str:
    return "; ".join(example.values) + (f"; mean {example.mean}" if example.mean else "")


def _statistics() -> str:
    return "\n".join(
        f"### {one.name}\n\n{one.summary}\n\n- formula: `{one.formula}`\n- range: {one.range}\n"
        f"- undefined: {one.undefined}\n- interval: {one.interval}\n- source: {one.source}\n"
        f"- also called: {one.words}\n"
        for one in group_statistics.ALL
    )
