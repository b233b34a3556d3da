"""``rankeval measures --presets``: the conventions of other tools, and what each of them sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rankeval_spark.cli.display.layout import print_facts, print_heading, reflowed
from rankeval_spark.cli.display.terminal import console
from rankeval_spark.config import PRESETS, Policies
from rankeval_spark.errors import ConfigError, Fault, nearest
from rankeval_spark.measures import options as measure_options

if TYPE_CHECKING:
    from rankeval_spark.cli.display.layout import Fact
    from rankeval_spark.config import Preset
    from rankeval_spark.measures.options import OptionValue

_EXPLAINED_BY: Final = "rankeval measures --presets NAME explains one."
_HOW: Final = "preset: {name} in a config, or evaluate(..., preset='{name}'). What you write yourself wins over it."


def list_or_explain(name: str | None) -> None:
    """List the presets, or explain one.

    Raises
    ------
    ConfigError
        There is no preset of that name.
    """
    out = console()
    if name is None:
        for each, preset in PRESETS.items():
            print_heading(out, each, preset.tool)
            print_facts(out, [*_settings(preset), ("", "")])
        out.print(_EXPLAINED_BY, markup=False, soft_wrap=True)
        return
    found = PRESETS.get(name)
    if found is None:
        expected = f"one of {', '.join(PRESETS)}"
        raise ConfigError(Fault("rankeval measures --presets", repr(name), expected, nearest(name, PRESETS)))
    print_heading(out, name, found.tool)
    print_facts(out, [*_explained(found), ("how", _HOW.format(name=name))])


def _settings(preset: Preset) -> Iterator[Fact]:
    """Write what a preset sets in short."""
    policies = [f"{policy}={_shown(value)}" for policy, value in preset.policies.items()]
    options = [_measure(measure, given) for measure, given in preset.options.items()]
    yield "policies", ", ".join(policies) or "as without a preset"
    yield "measures", ", ".join(options) or "as without a preset"


def _explained(preset: Preset) -> Iterator[Fact]:
    """Write each setting with its value without the preset, and the notes."""
    for policy, value in preset.policies.items():
        field = Policies.model_fields[policy]
        yield "policy", f"{policy}: {_shown(value)} ({_shown(field.default)} without a preset)"
        yield "", reflowed(field.description or "")
    for measure, given in preset.options.items():
        yield "measure", f"{measure} stands for {_measure(measure, given)}"
    for note in preset.notes:
        yield "note", note


def _measure(name: str, given: Mapping[str, OptionValue]) -> str:
    return f"{name}({','.join(f'{option}={measure_options.option_text(value)}' for option, value in given.items())})"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
