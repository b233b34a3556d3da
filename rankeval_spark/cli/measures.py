"""``rankeval measures``: the measures; with ``--presets`` and ``--from`` the conventions and names of other tools."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rich.markup import escape
from rich.text import Text

from rankeval_spark.cli.tables import MAX_LINES, new_table
from rankeval_spark.cli.terminal import console, json_text, write_out
from rankeval_spark.config import Policies, presets
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import Measure, group_statistics, options as measure_options, other_tools, registry, search
from rankeval_spark.measures.group_statistics import GroupStatistic
from rankeval_spark.measures.plugins import load_installed, load_plugins
from rankeval_spark.measures.worked_examples import UNDEFINED, ExamplePage, example_page_of

if TYPE_CHECKING:
    from rich.console import Console

    from rankeval_spark.config import Preset
    from rankeval_spark.measures.definition import Definition
    from rankeval_spark.measures.options import Option
    from rankeval_spark.measures.search import Searched

Fact: TypeAlias = tuple[str, str]  # A label and its text, whose line ends stay
LABEL_WIDTH: Final = 12
HELD: Final = {  # how a row of other_tools.yaml was checked
    "run": "compared with values that the tool gave",
    "published": "compared with values in the tool's own tests",
    "peers": "compared with the tool by the tests of its preset",
    "read": "read in the tool's source",
}
_MARGIN: Final = "  "
_SHOWN_CUTOFF: Final = 10  # cutoff of the snippets
_MAX_FOUND: Final = 20  # measures of a search that are shown
_MAX_WIDTH: Final = 120  # longer lines are hard to read
_MIN_TABLE_WIDTH: Final = 110  # below it a table of six columns would hold three words a line


def _print_entry(out: Console, name: str, sentence: str, facts: Iterable[Fact]) -> None:
    """Print a name in bold with a sentence next to it, and facts below, their texts in one column."""
    first, *others = _wrap_lines(out, sentence, before=len(name) + len(_MARGIN))
    out.print(Text.assemble((name, "bold"), _MARGIN, first), soft_wrap=True)
    for line in others:
        out.print(Text(" " * (len(name) + len(_MARGIN)) + line), soft_wrap=True)
    for label, text in facts:
        for place, line in enumerate(_wrap_lines(out, text, before=len(_MARGIN) + LABEL_WIDTH)):
            shown = f"{_MARGIN}{label if place == 0 else '':<{LABEL_WIDTH}}{line}".rstrip()
            out.print(Text(shown), soft_wrap=True)


def _wrap_lines(out: Console, text: str, *, before: int) -> list[str]:
    """Break each line at blanks for the width of the terminal; a formula without blanks may be longer."""
    room = max(min(out.width, _MAX_WIDTH) - before, 20)
    wrap = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False).wrap
    return [piece for line in text.split("\n") for piece in wrap(line) or [""]]


def measures_command(
    name: str | None,
    *,
    words: str | None = None,
    plugins: Sequence[str] = (),
    is_all: bool = False,
    is_json: bool = False,
) -> None:
    """List the measures, those of plugins and installed packages too, or those of some words; or explain one."""
    load_installed()
    load_plugins(plugins, where="--plugin")
    out = console()
    if name is not None:
        _explain(out, name, is_all=is_all, is_json=is_json)
        return
    entries: list[Searched] = [*registry.entries(), *registry.own_measures(), *group_statistics.ALL]
    if words is not None:  # those that the words name, the likeliest first, and then those whose text has them
        parts = words.casefold().split()
        texts = {entry.name: " ".join(map(str, _to_document(entry).values())).casefold() for entry in entries}
        named = search.find_measures(words) if parts else []
        mentioned = [entry for entry in entries if parts and all(part in texts[entry.name] for part in parts)]
        own = [entry for entry in registry.own_measures() if entry in mentioned]
        entries = list({entry.name: entry for entry in [*own, *named, *mentioned]}.values())
        if not entries:
            fix = "rankeval measures lists all"
            raise ConfigError(Fault("--search", repr(words), "words about a measure, such as coverage", fix))
    if is_json:
        write_out(json_text([_to_document(entry) for entry in entries]))
        return
    if is_all:
        _print_all(out, entries)
    elif words is None:
        _print_names(out, entries)
    else:
        for entry in entries[:_MAX_FOUND]:
            _print_entry(out, entry.name, entry.summary, ())
        if len(entries) > _MAX_FOUND:
            out.print(f"{_MAX_FOUND} of {len(entries)} measures; --all shows all", markup=False)
    text = "rankeval measures NAME explains one: its options, notes and worked examples."
    out.print(text, markup=False)


def _print_names(out: Console, entries: Sequence[Searched]) -> None:
    """Print the names of measures by family."""
    families: dict[str, list[str]] = {}
    for entry in entries:
        family = "groups of users or items" if isinstance(entry, GroupStatistic) else entry.family
        families.setdefault(family.replace("_", " "), []).append(entry.name)
    for family, names in families.items():
        out.print(Text(family, style="bold"))
        for line in _wrap_lines(out, ", ".join(names), before=len(_MARGIN)):
            out.print(Text(f"{_MARGIN}{line}"), soft_wrap=True)
    text = "--search WORDS finds measures by what they are called, --all has formula, options and source of each."
    out.print(text, markup=False)


def _print_all(out: Console, entries: Sequence[Searched]) -> None:
    """Print a table of all facts; on a terminal that is too narrow for it, its cells below one another."""
    table = new_table("measure", "formula", "options, default first", "range", "undefined", "source")
    is_narrow = out.width < _MIN_TABLE_WIDTH
    for entry in entries:
        label, way, rest = "how", "", (entry.range, entry.undefined, entry.source)
        if isinstance(entry, GroupStatistic):
            way = entry.way
        else:  # the options with their choices, and the cutoff, a line each
            cutoff = {"required": "@k", "optional": "[@k]", "forbidden": ""}[entry.cutoff.default]
            label, way = "options", "\n".join(filter(None, (*map(_format_option, entry.options), cutoff)))
            way = ", ".join(way.splitlines()) if is_narrow else way
        if is_narrow:
            facts = [*([(label, way)] if way else []), *zip(("range", "undefined", "source"), rest, strict=True)]
            _print_entry(out, entry.name, entry.formula, [*facts, ("", "")])
        else:
            table.add_row(f"[bold]{entry.name}[/bold]", *map(escape, (entry.formula, way, *rest)))
    if not is_narrow:
        out.print(table)


def _to_document(entry: Searched) -> dict[str, Any]:
    """Return a measure for programs; the keys are the same for all."""
    of_one: dict[str, Any] = dict.fromkeys(("family", "cutoff", "better")) | {"aliases": [], "options": []}
    if isinstance(entry, GroupStatistic):
        of_one["family"] = "group_statistics"
    else:
        of_one |= {"family": entry.family, "cutoff": entry.cutoff.default, "better": entry.better_in_words}
        of_one |= {"aliases": list(entry.aliases), "options": [_format_option(option) for option in entry.options]}
    names = ("summary", "formula", "range", "undefined", "interval", "source")
    return {"name": entry.name, **of_one, **{name: getattr(entry, name) for name in names}}


def _explain(out: Console, name: str, *, is_all: bool, is_json: bool) -> None:
    # A bare name is enough, also of a measure that is not computed without an option or a cutoff.
    """Print one measure with its options and examples; of a word for several measures, these."""
    found, named = registry.find(name), search.find_exact(name)
    entry = found.entry if found else group_statistics.find_statistic(name)
    word = name.partition("@")[0]
    meanings = None if entry or len(named) == 1 or is_json else registry.meanings_of(word)
    if meanings is not None:  # a word for several measures, none of which is the usual one
        out.print(f"{word} has several meanings: {meanings.others}.", markup=False)
        measures_command(None, words=word, is_all=is_all)
        return
    if entry is None:
        entry = named[0] if len(named) == 1 else Measure.parse(name, where="rankeval measures").entry
    if is_json:
        write_out(json_text(_to_document(entry)))
    elif isinstance(entry, GroupStatistic):  # which is not requested as a measure
        facts = [("formula", entry.formula), ("how", entry.way), ("interval", entry.interval)]
        facts += [("range", entry.range), ("undefined", entry.undefined), ("source", entry.source)]
        _print_entry(out, entry.name, entry.summary, facts)
    else:
        facts = [
            (label, text if is_all or label != "notes" else text.partition("\n\n")[0])
            for label, text in _list_facts(entry)
            if is_all or label != "elsewhere"
        ]
        n_lines = sum(len(_wrap_lines(out, text, before=len(_MARGIN) + LABEL_WIDTH)) for _, text in facts)
        examples = [fact for fact in facts if fact[0] == "example"]
        if is_all or n_lines <= MAX_LINES:
            examples = []
        for fact in reversed(examples[1:]):
            if n_lines > MAX_LINES:
                n_lines -= len(_wrap_lines(out, fact[1], before=len(_MARGIN) + LABEL_WIDTH))
                facts.remove(fact)
        _print_entry(out, entry.name, entry.summary, facts)
        n_hidden = len([*_list_facts(entry)]) - len(facts)
        if n_hidden:
            out.print(
                f"{_MARGIN}{n_hidden} more examples; --all shows them and all notes", markup=False, soft_wrap=True
            )


def _format_option(option: Option) -> str:
    """Format an option: its default, and the other choices after it."""
    if option.default is None:
        return f"{option.name}="
    shown = [measure_options.option_text(value) for value in (option.default, *option.choices)]
    choices = [
        *dict.fromkeys(shown),
        *(["{grade:gain}"] if option.takes_map else []),
        *(["number"] if option.takes_number else []),
    ]
    return f"{option.name}={' | '.join(choices)}"


def _list_facts(entry: Definition) -> Iterator[Fact]:
    """Yield all that is known of a measure, in the order in which it is shown."""
    page = example_page_of(entry) if entry.is_builtin else ExamplePage("", ())
    yield "formula", entry.formula
    for option in entry.options:
        default = " left out" if option.default is None else f"={measure_options.option_text(option.default)}"
        default = " required" if option.is_required else default
        yield "option", f"{option.name}{default} ({option.expected})\n{option.meaning.replace('`', '')}"
    yield "cutoff", str(entry.cutoff)
    yield "range", entry.range
    yield "better", entry.better_in_words
    yield "undefined", entry.undefined
    yield "needs", entry.requires or "nothing but the log and the judgements"
    yield "interval", "; ".join(filter(None, (entry.interval, entry.bias)))
    yield "also called", entry.words
    if entry.aliases:
        yield "also read", ", ".join(entry.aliases)
    for several in registry.SEVERAL_MEANINGS:
        if several.taken and (match := registry.find(several.names[0])) and match.entry.name == entry.name:
            yield "meanings", f"{' or '.join(several.names)}: {several.taken}; {several.others}"
    yield "source", entry.source
    for ours, theirs in other_tools.names_of(entry.name).items():
        yield "elsewhere", f"{ours}: {', '.join(theirs)}"
    yield "notes", page.notes.replace("``", "").replace("\n", "\n\n")
    for example in page.examples:  # measure, exact values, decimals, note and lists
        decimals = ", ".join(
            UNDEFINED if text == UNDEFINED else f"{float(value):.4f}"
            for text, value in zip(example.values, example.expected, strict=True)
        )
        rounded = f" = {decimals}" if re.search(r"[*/(]", "".join(example.values)) else ""
        note = f"  ({example.note})" if example.note else ""
        given = f"{'gains' if example.rankings else 'lists'} {example.given}"
        yield "example", f"{example.measure} = {', '.join(example.values)}{rounded}{note}\n{given}"


def presets_command(name: str | None, *, is_json: bool = False) -> None:
    """List the presets, or explain one; ConfigError for an unknown name."""
    out = console()

    def measures_with_options(preset: Preset) -> dict[str, str]:
        """Return each measure with the options that it has by the preset."""
        options = {
            measure: ",".join(f"{option}={measure_options.option_text(value)}" for option, value in given.items())
            for measure, given in preset.options.items()
        }
        return {measure: f"{measure}({text})" for measure, text in options.items()}

    if name is None and is_json:
        write_out(json_text([{"name": each, **vars(preset)} for each, preset in presets().items()]))
        return
    if name is None:
        for each, preset in presets().items():
            policies = [f"{policy}={_format_value(value)}" for policy, value in preset.policies.items()]
            settings = (("policies", policies), ("measures", measures_with_options(preset).values()))
            facts = [(what, ", ".join(texts) or "as without a preset") for what, texts in settings]
            _print_entry(out, each, preset.tool, [*facts, ("", "")])
        out.print("rankeval measures --presets NAME explains one.", markup=False, soft_wrap=True)
        return
    found = presets().get(name)
    if found is None:
        expected = f"one of {', '.join(presets())}"
        raise ConfigError(Fault("rankeval measures --presets", repr(name), expected, nearest(name, presets())))
    if is_json:
        write_out(json_text({"name": name, **vars(found)}))
        return
    facts = []
    for policy, value in found.policies.items():
        field = Policies.model_fields[policy]
        facts.append(("policy", f"{policy}: {_format_value(value)} ({_format_value(field.default)} without a preset)"))
        facts.append(("", "\n\n".join(" ".join(part.split()) for part in (field.description or "").split("\n\n"))))
    facts += [("measure", f"{measure} stands for {text}") for measure, text in measures_with_options(found).items()]
    facts += [("note", note) for note in found.notes]
    how = f"preset: {name} in a config, or evaluate(..., preset='{name}'). What you write yourself wins over it."
    _print_entry(out, name, found.tool, [*facts, ("how", how)])


def tools_command(tool: str, metric: str | None, *, is_json: bool = False) -> None:
    """List what another tool calls its measures, or show how to get one; ConfigError for an unknown name."""
    name, out = other_tools.find_tool(tool), console()
    facts = other_tools.read_tools()[name]
    found = facts["metrics"] if metric is None else other_tools.find_metrics(name, metric)
    if is_json:
        write_out(json_text([{"tool": name, "metric": each, **known} for each, known in found.items()]))
        return
    if metric is None:
        _print_entry(out, name, f"{facts['tool']}, {facts['version']}", [])
        table = new_table("its measure", "here", "policies")
        for each, known in found.items():
            text = ", ".join(f"{policy}={_format_value(value)}" for policy, value in known["policies"].items())
            table.add_row(escape(each), escape(other_tools.in_words(known)), "" if "why_not" in known else text)
        out.print(table)
        out.print(f"rankeval measures --from {name} MEASURE shows what to write for one.", markup=False, soft_wrap=True)
        return
    for each, known in found.items():
        if "why_not" in known:
            _print_entry(out, each, f"of {name} is not offered", [("why", known["why_not"])])
            continue
        of_policies = [("policy", f"{policy}: {_format_value(value)}") for policy, value in known["policies"].items()]
        is_complement = known["ours"].startswith(other_tools.COMPLEMENT)
        notes = [known.get("note"), "its number is 1 minus the one that is written here" if is_complement else None]
        note = [("note", text) for text in notes if text]
        in_yaml, in_python = snippets(name, known, other_tools.find_cutoff(metric) or _SHOWN_CUTOFF)
        how = [("in YAML", in_yaml), ("in Python", in_python), ("held", HELD[known["held"]])]
        _print_entry(out, each, f"of {name} is {known['ours']}", [*of_policies, *note, *how])
    for text in facts.get("notes", ()):
        out.print(Text("\n".join(_wrap_lines(out, text, before=0))), soft_wrap=True)


def snippets(tool: str, metric: Mapping[str, Any], k: int = _SHOWN_CUTOFF) -> tuple[str, str]:
    """Return what to write in a config, and in Python, for the number of a metric.

    The preset of the tool is in it where it does not change the measure.

    >>> in_yaml, in_python = snippets("xgboost", other_tools.read_tools()["xgboost"]["metrics"]["ndcg@k-"])
    >>> print(in_yaml)
    preset: xgboost
    measures: ["nDCG(dcg='exp-log2')@10"]
    policies: {zero_relevant: zero}
    >>> print(in_python)
    evaluate(log, held_out, measures=["nDCG(dcg='exp-log2')@10"], preset='xgboost',
             policies={'zero_relevant': 'zero'})
    """
    facts = other_tools.read_tools()[tool]
    text = metric["ours"].removeprefix(other_tools.COMPLEMENT).replace("@k", f"@{k}")
    has_preset = "preset" in facts and Measure.parse(text, defaults=facts.get("options", {})) == Measure.parse(text)
    usual = facts.get("policies", {}) if has_preset else {}
    policies = {name: value for name, value in metric["policies"].items() if usual.get(name) != value}
    in_yaml, in_python = [f'measures: ["{text}"]'], f'evaluate(log, held_out, measures=["{text}"]'
    if has_preset:
        in_yaml.insert(0, f"preset: {tool}")
        in_python += f", preset={tool!r}"
    if policies:
        in_yaml.append(f"policies: {{{', '.join(f'{name}: {value}' for name, value in policies.items())}}}")
        in_python += f",\n         policies={policies!r}"
    return "\n".join(in_yaml), f"{in_python})"


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
