"""``rankeval measures``: what can be measured, from the registry alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.markup import escape

from rankeval_spark.cli.display.layout import print_facts, print_heading
from rankeval_spark.cli.display.tables import headed
from rankeval_spark.cli.display.terminal import console
from rankeval_spark.measures import Measure, group_statistics, options as measure_options, registry
from rankeval_spark.measures.worked_examples import UNDEFINED, example_page_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rankeval_spark.cli.display.layout import Fact
    from rankeval_spark.measures.group_statistics import GroupStatistic
    from rankeval_spark.measures.options import Option
    from rankeval_spark.measures.registry import Entry
    from rankeval_spark.measures.worked_examples import Example

_NARROW: Final = 110
"""Columns below which a table of six would hold three words a line."""

_EXPLAINED_BY: Final = "rankeval measures NAME explains one: its options, notes and worked examples."


def list_or_explain(name: str | None) -> None:
    """List all measures, or explain one."""
    if name is None:
        out = console()
        if out.width < _NARROW:
            _print_below_one_another(out)
        else:
            out.print(_listing())
        out.print(_EXPLAINED_BY, markup=False, soft_wrap=True)
        return
    # A bare name is enough, also of a measure that is not computed without an option or a cutoff.
    found, other = registry.find(name), group_statistics.find_statistic(name)
    if found is None and other is not None:
        _explain_statistic(other)
        return
    _explain(found.entry if found else Measure.parse(name, where="rankeval measures").entry)


def _listing() -> Table:
    table = headed("measure", "formula", "options, default first", "range", "undefined", "source")
    for entry in registry.entries():
        definition = entry.definition
        cells = (definition.formula, _options(entry), entry.range, definition.undefined, definition.source)
        table.add_row(f"[bold]{entry.name}[/bold]", *map(escape, cells))
    for one in group_statistics.ALL:
        cells = (one.formula, one.way, one.range, one.undefined, one.source)
        table.add_row(f"[bold]{one.name}[/bold]", *map(escape, cells))
    return table


def _print_below_one_another(out: Console) -> None:
    """Write what the table holds, a few lines each, on a terminal that is too narrow for it."""
    for entry in registry.entries():
        definition = entry.definition
        print_heading(out, entry.name, definition.formula)
        options = [("options", ", ".join(_options(entry).splitlines()))]
        rest = (("range", entry.range), ("undefined", definition.undefined), ("source", definition.source))
        print_facts(out, [*(fact for fact in options if fact[1]), *rest, ("", "")])
    for one in group_statistics.ALL:
        print_heading(out, one.name, one.formula)
        print_facts(out, [("how", one.way), *_ends(one), ("", "")])


def _options(entry: Entry) -> str:
    """Write the options with what they can be, and whether there is a cutoff."""
    cutoff = {"required": "@k", "optional": "[@k]", "forbidden": ""}[entry.definition.cutoff.default]
    return "\n".join(part for part in (*map(_values, entry.options), cutoff) if part)


def _values(option: Option) -> str:
    """Write an option as a name shows it: its default, and the other choices after it."""
    if option.default is None:
        return f"{option.name}="
    shown = [measure_options.option_text(value) for value in (option.default, *option.choices)]
    choices = [*dict.fromkeys(shown), *(["{grade:gain}"] if option.takes_map else [])]
    return f"{option.name}={' | '.join(choices)}"


def _explain(entry: Entry) -> None:
    out = console()
    print_heading(out, entry.name, entry.summary)
    print_facts(out, _facts(entry))


def _explain_statistic(one: GroupStatistic) -> None:
    """Explain a statistic of several groups, which is not requested as a measure."""
    out = console()
    print_heading(out, one.name, one.summary)
    print_facts(out, [("formula", one.formula), ("how", one.way), ("interval", one.interval), *_ends(one)])


def _ends(one: GroupStatistic) -> list[Fact]:
    return [("range", one.range), ("undefined", one.undefined), ("source", one.source)]


def _facts(entry: Entry) -> Iterator[Fact]:
    definition, page = entry.definition, example_page_of(entry)
    yield "formula", definition.formula
    for option in entry.options:
        yield "option", f"{_default(option)} ({option.expected})\n{option.meaning.replace('`', '')}"
    yield "cutoff", str(definition.cutoff)
    yield "range", entry.range
    yield "better", entry.better_in_words
    yield "undefined", definition.undefined
    yield "needs", entry.requires or "nothing but the log and the judgements"
    yield "interval", entry.interval
    if definition.aliases:
        yield "also called", ", ".join(definition.aliases)
    for several in registry.SEVERAL_MEANINGS:
        if several.taken and (match := registry.find(several.names[0])) and match.entry.name == entry.name:
            yield "meanings", f"{' or '.join(several.names)}: {several.taken}; {several.others}"
    yield "source", definition.source
    yield "notes", page.notes.replace("``", "").replace("\n", "\n\n")
    for example in page.examples:
        yield "example", _example(example)


def _default(option: Option) -> str:
    if option.is_required:
        return f"{option.name} required"
    left_out = option.default is None
    return f"{option.name} left out" if left_out else f"{option.name}={measure_options.option_text(option.default)}"


def _example(example: Example) -> str:
    """Write a worked example: measure, lists, exact values, the same in decimals, and what it shows."""
    has_terms = re.search(r"[*/(]", "".join(example.values))
    decimals = ", ".join(
        UNDEFINED if text == UNDEFINED else f"{float(value):.4f}"
        for text, value in zip(example.values, example.expected, strict=True)
    )
    exact = f"{example.measure} = {', '.join(example.values)}{f' = {decimals}' if has_terms else ''}"
    note = f"  ({example.note})" if example.note else ""
    return f"{exact}{note}\n{'gains' if example.rankings else 'lists'} {example.given}"
