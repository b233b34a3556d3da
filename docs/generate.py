"""Write the pages that are made from the code: measures, tables, presets and configuration.

``python docs/generate.py`` writes them; ``--check`` only says whether they are current.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from config_reference import configuration_page

from rankeval_spark import schemas
from rankeval_spark.config import PRESETS
from rankeval_spark.measures import Measure, group_statistics, options as measure_options, registry
from rankeval_spark.measures.worked_examples import examples_of

if TYPE_CHECKING:
    from rankeval_spark.config import Preset
    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.measures.options import Option, OptionValue
    from rankeval_spark.measures.registry import SeveralMeanings
    from rankeval_spark.measures.worked_examples import Example
    from rankeval_spark.schemas import Schema

HERE = Path(__file__).parent
MOST_NAMED = 5
"""Measures of an option that are named, not counted."""

NOTATION = """\
# Measures

Generated from `rankeval_spark/measures` by `make docs`. `rankeval measures NAME` shows notes on a measure too.

Contents: [which to use when](#which-to-use-when), [names with several meanings](#names-with-several-meanings),
[shared options](#shared-options), [accuracy](#accuracy), [prediction](#prediction),
[beyond accuracy](#beyond-accuracy), [off-policy](#off-policy), [all lists together](#system),
[statistics of groups](#in-addition-to-the-measures).

For a user, `n` is the length of the list. `m` is the number of its items at ranks 1 to `k`: `min(k, n)`, less the
empty ranks that the policy `rank_gaps: keep` leaves. `r_i` and `g_i` are relevance and gain at rank `i`; `R` is the
number of relevant judgements; `h_i` is the number of relevant items at ranks 1 to `i`. An item without a judgement has
gain 0. A judgement is relevant where its gain is at least `rel` (1 by default).

A measure is written `Name(option=value)@k`; options have the defaults below, and without `@k` the whole list counts.
In YAML, a name with a map, such as `"nDCG(gains={1:1,2:3})@10"`, needs quotes.

Most measures have a value for each list, and `metrics` holds their mean over users. A few are functions of all lists of
a slice together (coverage of items, Gini, entropy, personalization). They cover every user with a list, judged or not,
in any population, and no user has a value. Their interval is a jackknife that leaves out each of 20 hashed groups of
users in turn.

Every measure that reads judgements and nothing of other items takes `group`: it then counts the judgements of one item
group alone, and is undefined for a user without any. Other items keep their ranks and count as unjudged. By popularity
in `train` there are three groups. `head` has the fewest items that hold at least 20 % of the interactions, ties by item
id. `tail` has the items that are not among the fewest that hold 80 %, and items without interactions. `middle` has the
rest. Any other text is a category of `items`: `nDCG(group='tail')@10`, `R(group='Sci-Fi')@10`. A run has at most 62
groups. Published lists do not hold the groups of their items, so `rankeval score` refuses such measures.

Every such measure in which unjudged items take places takes `judged_only=True`. Items without a judgement, or with a
negative gain (pooled, not judged), then leave the list before it is cut at k, and the rest closes up. This is as with
trec_eval's -J and the same option of ir_measures. It is the policy `judged_only` for one measure:
`nDCG(judged_only=True)@10` is computed in addition to `nDCG@10`, and lists and counts stay those of the run.
Judgements are those of all items, also with `group`: an item leaves the list because it has no judgement, whatever its
group. Ties are put in order, or averaged over, as everywhere. Three kinds of measures do not have this option: those
about unjudged items (Judged, unj, RBPResidual, infAP), those that unjudged items do not change (Bpref, SetR), and those
that read scores and no ranks. Where an item with a negative gain is not one without a judgement, the source of the
measure says what it is.

Measures to which each relevant item adds a term of its own take `weighted=True`: a judgement then counts as often as
the column `weight` of the held-out table says ([weights](weights.md)). Weights correct for judgements that are observed
with different probabilities: `R(weighted=True)@10`.

`Overlap`, `Jaccard` and `RBO` look at the list that another model gave the same user, under the same name where the log
names lists: `Overlap(model='popular')@10`. The lists of that model itself have no value, and rules of `gates` leave it
out. In examples `others` says at each place of the other list at which rank this list has its item. Published lists do
not hold their items, so `rankeval score` refuses such measures too.

With `gains='value'` a gain is read from the column `value` of the held-out table, such as revenue or watch time;
relevance still depends on `gain`. A value that is NULL, NaN or infinite is counted by the check `invalid_values` and is
worth 0, as a negative one. Revenue in the column `gain` works differently: an item that cost less than 1 is then not
relevant, which the check `low_gains` counts.

*better* says which value is the better one. Where it says *neither*, a measure only describes the lists, such as their
popularity, or is best at a value in between, such as PopLift at 0. Then the verdict of a comparison is `different`
instead of `better` or `worse`, a leaderboard has the highest value first, and rules of `gates` bound the value only.

In the tables, column `measure` holds the name and `k` the cutoff (0 = whole list). Undefined values are NULL, never 0.

The published value is the mean of the users' values (`agg='macro'`). A measure that is a ratio of sums also has
`agg='micro'`: the numerators of all users divided by their denominators, so that a user counts as often as they have
rows. `AP(agg='micro')` averages over relevant items instead of users; `nDCG(agg='micro')@10` divides the DCG of all
users by the best that was possible. Measures without a denominator, or with the same one for every user, such as
Success, RR and DCG, have no such option: their micro average is their mean. The column of a ratio of sums in
`user_metrics` holds the ratio of each user and `<column>__weight` the denominator. The interval is that of the delta
method with the user as the unit. The values of slices do not average to that of all users by `n_users`, as means do:
they weigh by the denominators. Neither do those of GMAP, which is a mean of logarithms.
"""

GUIDE = """\
## Which to use when

[Which measure when](which-measure.md) is a page of its own.
"""

NAMES = """\
## Names with several meanings

Other tools and papers use these names for other numbers. `evaluate(...).notes` and `rankeval measures NAME` say which
one is taken; `evaluate` warns of `MAR` without its `kind`.

| name | here | elsewhere |
|---|---|---|
"""

TABLES = """\
# Tables

Generated from `rankeval_spark/schemas.py` by `make docs`. All are Delta tables under one results root, partitioned by
`evaluation, evaluation_date`, reader version 1. A run replaces the rows of its evaluation and date and nothing else;
`runs` only grows, and its newest `PUBLISHED` row names the versions at which the other tables belong together. It is
not partitioned, because its small files are merged across nights.
"""

ALONE = """\
## Results of `evaluate` alone

`metrics`, `user_metrics`, `comparisons`, `group_metrics` and `checks` of `evaluate` have the columns above, without
those of the run. These results are in no table; `list_id` is left out of `agreement` where each user has one list.

| result | one row | columns |
|---|---|---|
| `ranked_items` | an item of a list, as it is measured | `model_id`, `user_id`, `list_id`, `item_id`, `rank`, \
`gain` (NULL: not judged), `is_relevant` |
| `user_values` | a list, measure and cutoff | `model_id`, `user_id`, `list_id`, `measure`, `k`, `value` |
| `gaps` | a model, slice, measure and cutoff | `model_id`, `slice`, `measure`, `k`, `n_groups`, `n_left_out`, \
`gap`, `ci_low`, `ci_high`, `ci_level`, `ratio`, `ratio_ci_low`, `ratio_ci_high`, `mad`, `lowest_group`, \
`lowest_value`, `highest_group`, `highest_value` |
| `gap_tests()` | the same | `model_id`, `slice`, `measure`, `k`, `n_groups`, `gap`, `p_value`, `p_adjusted`, \
`correction`, `family_size`, `replicates`, `reason` |
| `agreement(baseline)` | a list of another model | `model_id`, `user_id`, `list_id`, `overlap`, `jaccard`, `rbo` |
| `hit_ranks(model, baseline)` | a list and relevant item | `user_id`, `list_id`, `item_id`, `gain`, \
`baseline_rank`, `rank` |
"""


PRESETS_HEAD = """\
# Presets

Generated from `rankeval_spark/config/presets.py` by `make docs`. On one input AP@5 runs from 0.19 to 0.52
across the definitions in use, so a number only compares with another of the same convention. A preset is the convention
of a tool, as policies and options of measures that exist anyway: `preset: trec_eval` in a config, `evaluate(...,
preset=...)` in code. A policy or an option that you write yourself wins over it, and what came out of both is recorded
with every number: names of measures print the options of a preset like any others. What is not named below is as
without a preset.
"""

OTHER_TOOLS = """\
## scikit-learn

Its functions are not a preset: they take the scores and gains of one list, and no users, missed items or cutoff other
than nDCG's. Where both are defined the numbers are those of `nDCG`, `DCG`, `AP`, `AUC`, `RMSE`, `MSE`,
`MAE` and `LogLoss`, but:

- `ndcg_score` and `dcg_score` average over all orders of equal scores: that is the policy `ties: expected`.
- The ideal of `ndcg_score` is that of the items it is given: of a retrieved list alone it is `nDCG(ideal='retrieved')`.
- `average_precision_score` takes equal scores for one rank, the last of them. One relevant item among three of one
  score gives 1/3, the worst of the three orders; with `ties: expected` it is (1 + 1/2 + 1/3) / 3.
- `dcg_score` subtracts negative gains: gains -1, 1 give -1 + 1 / log2(3), here 1 / log2(3). `ndcg_score` refuses them,
  and a list of one item, which has the value 1 here.
- `log_loss` keeps probabilities 2.2e-16 away from 0 and 1, here 1e-15: sure and wrong costs 36.04 there, 34.54 here.

## Surprise

Its `rmse`, `mse` and `mae` are of all pairs together: `RMSE(agg='micro')`, `MSE(agg='micro')` and `MAE(agg='micro')`.

Its `fcp` is no measure here. Let c and d be the pairs of a user in the right and in the wrong order, equal scores being
wrong. It is m_c / (m_c + m_d), with m_c the mean of c over the users with c above 0 and m_d that of d over those with d
above 0. So a user with all pairs in the right order does not lower m_d. Ann has one pair, right, and Bob two, one of
them right: 1 / (1 + 1) = 1/2. Koren & Sill, to which it refers, have 2/3 of all pairs (`FCP(agg='micro')`). With nine
more users like Ann 11/12 of all pairs are right, and `fcp` is still 1/2. To compare with published numbers, compute it
from the `user_metrics` of one night with `FCP(agg='micro',ties='discordant')`:

```sql
SELECT model_id, m_c / (m_c + m_d) AS fcp FROM (
  SELECT model_id, coalesce(avg(nullif(c, 0)), 0) AS m_c, coalesce(avg(nullif(n - c, 0)), 0) AS m_d FROM (
    SELECT model_id,
           fcp_agg_micro_ties_discordant__weight AS n,
           round(fcp_agg_micro_ties_discordant * fcp_agg_micro_ties_discordant__weight) AS c
    FROM user_metrics)
  GROUP BY model_id)
```
"""


SHARED = """\
## Shared options

Each measure below names its options with their defaults, and explains those that it alone has.

| option | of | values | what it does |
|---|---|---|---|
"""

FAMILIES = {
    "accuracy": "Accuracy\n\nWhat is relevant: hits, their ranks and their gains.",
    "prediction": "Prediction\n\nScores of held-out items against their gains.",
    "beyond_accuracy": "Beyond accuracy\n\nWhat the recommended items are, whatever is relevant.",
    "off_policy": "Off-policy\n\nWhat a policy would have earned, from the log of another one with propensities.",
    "system": "System\n\nAll lists of a slice together, and the lists themselves.",
}

STATISTICS = """\
# In addition to the measures

Statistics of several groups, published without a request in `measures`. M(g) is the value of the measure for group g.

| name | what | formula | how | range; undefined | interval | source |
|---|---|---|---|---|---|---|
"""


def measures_page() -> str:
    """Describe every measure of the registry, and the statistics published in addition to them."""
    parts = [
        NOTATION,
        GUIDE,
        NAMES + "".join(map(_meanings, registry.SEVERAL_MEANINGS)),
        SHARED + "".join(map(_shared_option, _shared_options())),
    ]
    for family, heading in FAMILIES.items():
        parts += [f"# {heading}\n", *(_measure(entry) for entry in registry.entries() if entry.family == family)]
    return "\n".join([*parts, STATISTICS + _statistics()])


def _meanings(several: SeveralMeanings) -> str:
    names = ", ".join(f"`{name}`" for name in several.names)
    return f"| {names} | {several.taken or 'not read'} | {several.others} |\n"


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
    names = _measures_with(option)
    of = ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} measures"
    return f"| `{option.name}` | {of} | {option.expected} | {_in_table(option.meaning)} |\n"


def _statistics() -> str:
    return "".join(
        f"| `{one.name}` | {one.summary} Also called: {one.words}. | `{_in_table(one.formula)}` | {one.way} | "
        f"{one.range}; {one.undefined} | {one.interval} | {one.source} |\n"
        for one in group_statistics.ALL
    )


def _in_table(formula: str) -> str:
    return formula.replace("|", "\\|")


def tables_page() -> str:
    """Describe every published table."""
    published = (schemas.RUNS, *schemas.PUBLISHED)
    inputs = f"{ALONE}\n## Inputs\n\nWhat the sources make of a log, whatever its own columns are called.\n"
    return "\n".join(
        [
            TABLES,
            *map(_table, published),
            inputs,
            *map(_table, (schemas.RECOMMENDATIONS, schemas.HELD_OUT, schemas.TRAIN, schemas.ITEMS)),
        ]
    )


def presets_page() -> str:
    """Describe every preset."""
    return "\n".join([PRESETS_HEAD, *(_preset(name, preset) for name, preset in PRESETS.items()), OTHER_TOOLS])


def _preset(name: str, preset: Preset) -> str:
    policies = [f"- policy `{policy}`: {str(value).lower()}" for policy, value in preset.policies.items()]
    options = [
        f"- `{measure}` means `{measure}({','.join(_options_of(given))})`" for measure, given in preset.options.items()
    ]
    notes = [f"- {note}" for note in preset.notes]
    return "\n".join([f"## {name}\n\n{preset.tool}.\n", *policies, *options, *notes, ""])


def _options_of(given: Mapping[str, OptionValue]) -> list[str]:
    return [f"{option}={measure_options.option_text(value)}" for option, value in given.items()]


PAGES: dict[str, Callable[[], str]] = {
    "measures.md": measures_page,
    "tables.md": tables_page,
    "presets.md": presets_page,
    "configuration.md": configuration_page,
}


def _measure(entry: Definition) -> str:
    return "\n".join(_measure_lines(entry))


def _measure_lines(entry: Definition) -> Iterator[str]:
    yield f"## {entry.name}\n\n{entry.summary}\n"
    yield f"- formula: `{entry.formula}`"
    yield f"- range: {entry.range}; better: {entry.better_in_words}"
    yield f"- undefined: {entry.undefined}; cutoff: {entry.cutoff}"
    if entry.options:
        yield f"- options: {', '.join(map(_default, entry.options))}"
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
    given = {
        "list": "gain at each rank (`-` without judgement; missed gains, scores)",
        "exposure": "items of each list",
        "parity": "items of each list, and what is known of items and users",
    }
    yield f"| example | {given[entry.kind]} | value | |\n|---|---|---|---|"
    yield from map(_example, examples_of(entry))
    yield ""


def _default(option: Option) -> str:
    """Write an option with its default, as a name shows it; one that several measures share is a link."""
    value = "" if option.default is None else measure_options.option_text(option.default)
    required = " (required)" if option.is_required else ""
    text = f"`{option.name}={value}`{required}"
    return f"[{text}](#shared-options)" if _is_shared(option) else text


def _further(entry: Definition) -> Iterator[str]:
    """Say what a measure needs, and where it is not a usual mean over users."""
    if entry.requires:
        yield f"- needs: {entry.requires}"
    if entry.interval == "wilson":
        yield "- interval of the mean: wilson"
    if entry.bias:
        yield f"- interval: {entry.bias}"
    ties = entry.has_mean_over_ties
    if ties:
        exceptions = ", but for some options" if callable(ties) else ""
        yield f"- mean over all orders of ties (policy `ties: expected`): yes{exceptions}"
    if entry.kind != "list":
        requested = [Measure.parse(example.measure) for example in examples_of(entry)]
        names = dict.fromkeys(f"`{one.label}`" for one in requested if one.needs_catalogue)
        needing = f"; needs the input `items` or `train`: {', '.join(names)}" if names else ""
        yield f"- computed of all lists of a slice together, with a jackknife interval: no user has a value{needing}"


def _example(example: Example) -> str:
    mean = f"; mean {example.mean}" if example.mean else ""
    return f"| `{example.measure}` | {example.given} | {'; '.join(example.values)}{mean} | {example.note} |"


def _table(schema: Schema) -> str:
    rows = "\n".join(
        f"| `{field.name}` | `{field.type}` | {'' if field.nullable else 'never NULL. '}{field.comment} |"
        for field in schema.fields
    )
    weights = "and with `agg='micro'` one more, `<column>__weight`, with its denominators"
    more = f"\nThen one double column a measure, {weights}.\n" if schema is schemas.USER_METRICS else ""
    head = f"## {schema.name}\n\nOne row: {schema.grain}. Key: {', '.join(f'`{name}`' for name in schema.key)}.\n"
    return f"{head}\n| column | type | holds |\n|---|---|---|\n{rows}\n{more}"


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` name those that are not current."""
    stale = [name for name, page in PAGES.items() if _read(HERE / name) != page()]
    if "--check" in arguments:
        print("\n".join(f"docs/{name} is not current: run make docs" for name in stale))
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
