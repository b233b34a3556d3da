"""``rankeval measures``: what can be measured, from the registry alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from rankeval_spark.cli.terminal import console
from rankeval_spark.measures import Measure, options as measure_options, registry

if TYPE_CHECKING:
    from rankeval_spark.measures.options import Option
    from rankeval_spark.measures.registry import Entry


def show(name: str | None) -> None:
    """List all measures, or explain one."""
    if name is None:
        console().print(_listing())
        return
    _explain(Measure.parse(_any_cutoff(name), where="rankeval measures").entry)


def _any_cutoff(name: str) -> str:
    """Give a bare name the cutoff that some measures cannot do without."""
    found = registry.find(name)
    needs_cutoff = found is not None and found.entry.definition.cutoff.need({}) == "required"
    return f"{name}@10" if needs_cutoff and "@" not in name else name


def _listing() -> Table:
    table = Table(show_edge=False, header_style="bold")
    for heading in ("measure", "formula", "options, default first", "cutoff", "range", "source"):
        table.add_column(heading, overflow="fold")
    for entry in registry.entries():
        options = _options(entry)
        table.add_row(
            f"[bold]{entry.name}[/bold]",
            *map(escape, (entry.definition.formula, options, str(entry.definition.cutoff), entry.range)),
            escape(entry.definition.source),
        )
    return table


def _explain(entry: Entry) -> None:
    out, definition = console(), entry.definition
    out.print(f"[bold]{entry.name}[/bold]  {escape(entry.summary)}")
    facts = {
        "formula": definition.formula,
        "options": _options(entry),
        "cutoff": str(definition.cutoff),
        "range": entry.range,
        "undefined": definition.undefined,
        "needs": entry.requires or "nothing beside the log and the judgements",
        "interval": definition.interval,
        "also called": ", ".join(definition.aliases),
        "source": definition.source,
    }
    for heading, text in facts.items():
        out.print(f"  {heading:<12}{text}", markup=False, soft_wrap=True)
    for golden in definition.goldens:
        values = ", ".join(golden.values)
        out.print(f"  example     {golden.measure} = {values}  {golden.note}", markup=False, soft_wrap=True)


def _options(entry: Entry) -> str:
    """Write the options with their defaults and what else they can be."""
    return "; ".join(_option(one) for one in entry.options)


def _option(option: Option) -> str:
    if option.default is None:
        return f"{option.name} left out ({option.expected})"
    return f"{option.name}={measure_options.show(option.default)} ({option.expected})"
