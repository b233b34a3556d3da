"""``rankeval measures``: what can be measured, from the registry alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.markup import escape

from rankeval_spark.cli.layout import print_facts, print_heading, reflowed
from rankeval_spark.cli.tables import headed
from rankeval_spark.cli.terminal import console
from rankeval_spark.measures import Measure, beside, options as measure_options, registry
from rankeval_spark.measures.golden import UNDEFINED

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rankeval_spark.cli.layout import Fact
    from rankeval_spark.measures import Golden
    from rankeval_spark.measures.beside import Beside
    from rankeval_spark.measures.options import Option
    from rankeval_spark.measures.registry import Entry

_NARROW: Final = 110
"""Columns below which a table of six would hold three words a line."""

_SHARED_MEANINGS: Final = {
    registry.AGG: registry.AGG_MEANING,
    registry.GROUP: registry.GROUP_MEANING,
    registry.JUDGED_ONLY: registry.JUDGED_ONLY_MEANING,
}
_EXPLAINED_BY: Final = "rankeval measures NAME explains one: its options, notes and worked examples."


def show(name: str | None) -> None:
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
    found, other = registry.find(name), beside.find(name)
    if found is None and other is not None:
        _explain_beside(other)
        return
    _explain(found.entry if found else Measure.parse(name, where="rankeval measures").entry)


def _listing() -> Table:
    table = headed("measure", "formula", "options, default first", "range", "undefined", "source")
    for entry in registry.entries():
        definition = entry.definition
        cells = (definition.formula, _options(entry), entry.range, definition.undefined, definition.source)
        table.add_row(f"[bold]{entry.name}[/bold]", *map(escape, cells))
    for one in beside.ALL:
        cells = (one.formula, one.comes, one.range, one.undefined, one.source)
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
    for one in beside.ALL:
        print_heading(out, one.name, one.formula)
        print_facts(out, [("how", one.comes), *_ends(one), ("", "")])


def _options(entry: Entry) -> str:
    """Write the options with what they can be, and whether there is a cutoff."""
    cutoff = {"required": "@k", "optional": "[@k]", "forbidden": ""}[entry.definition.cutoff.default]
    return "\n".join(part for part in (*map(_values, entry.options), cutoff) if part)


def _values(option: Option) -> str:
    """Write an option as it stands in a name: its default, and the other choices after it."""
    if option.default is None:
        return f"{option.name}="
    shown = [measure_options.show(value) for value in (option.default, *option.choices)]
    choices = [*dict.fromkeys(shown), *(["{grade:gain}"] if option.takes_map else [])]
    return f"{option.name}={' | '.join(choices)}"


def _explain(entry: Entry) -> None:
    out = console()
    print_heading(out, entry.name, entry.summary)
    print_facts(out, _facts(entry))


def _explain_beside(one: Beside) -> None:
    """Explain what is not asked for as a measure."""
    out = console()
    print_heading(out, one.name, one.summary)
    print_facts(out, [("formula", one.formula), ("how", one.comes), ("interval", one.interval), *_ends(one)])


def _ends(one: Beside) -> list[Fact]:
    return [("range", one.range), ("undefined", one.undefined), ("source", one.source)]


def _facts(entry: Entry) -> Iterator[Fact]:
    definition, meanings = entry.definition, {**_SHARED_MEANINGS, **_meanings(entry.doc)}
    yield "formula", definition.formula
    for option in entry.options:
        yield "option", f"{_default(option)} ({option.expected})\n{meanings.get(option.name, '')}".strip()
    yield "cutoff", str(definition.cutoff)
    yield "range", entry.range
    yield "undefined", definition.undefined
    yield "needs", entry.requires or "nothing beside the log and the judgements"
    yield "interval", definition.interval
    if definition.aliases:
        yield "also called", ", ".join(definition.aliases)
    yield "source", definition.source
    yield "notes", reflowed(_section(entry.doc, "Notes"))
    for golden in definition.goldens:
        yield "example", _example(golden)


def _default(option: Option) -> str:
    if option.is_required:
        return f"{option.name} required"
    left_out = option.default is None
    return f"{option.name} left out" if left_out else f"{option.name}={measure_options.show(option.default)}"


def _example(golden: Golden) -> str:
    """Write a worked example: measure, lists, exact values, the same in decimals, and what it shows."""
    has_terms = re.search(r"[*/(]", "".join(golden.values))
    decimals = ", ".join(
        UNDEFINED if text == UNDEFINED else f"{float(value):.4f}"
        for text, value in zip(golden.values, golden.expected, strict=True)
    )
    exact = f"{golden.measure} = {', '.join(golden.values)}{f' = {decimals}' if has_terms else ''}"
    note = f"  ({golden.note})" if golden.note else ""
    return f"{exact}{note}\n{'lists' if golden.shown else 'gains'} {golden.given}"


def _section(doc: str, title: str) -> str:
    """Return a section of a numpydoc docstring."""
    found = re.search(rf"^{title}\n-+\n(?P<text>.*?)(?=\n\n\w+\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
    return found["text"].strip().replace("``", "") if found else ""


def _meanings(doc: str) -> dict[str, str]:
    """Return what a docstring says of each parameter."""
    parts = re.split(r"^(\w+) : .*$", _section(doc, "Parameters"), flags=re.MULTILINE)[1:]
    return {name: reflowed(text.strip()) for name, text in zip(parts[::2], parts[1::2], strict=True)}
