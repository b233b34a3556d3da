"""Own measures of other modules, and those that published nights recorded.

Plugins are code. A module is imported only where a config names it under ``plugins``, an entry point of the group
``rankeval.measures`` only where its package is installed and a name is asked for that nothing else has.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, NoReturn

from rankeval_spark.errors import ConfigError, Fault, MeasureError
from rankeval_spark.measures import registry
from rankeval_spark.measures.definition import Cutoff, Definition
from rankeval_spark.measures.options import GROUP, JUDGED_ONLY, WEIGHTED, Option
from rankeval_spark.measures.own import OWN, code_hash, definitions_in, describe_error

if TYPE_CHECKING:
    from rankeval_spark.measures.names import Measure

GROUP_NAME: Final = "rankeval.measures"
MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

DEFINING: Final = ("code", "version", "kind", "ratio", "better", "bounds", "undefined", "without_relevant")
"""What is recorded of an own measure and makes it another definition where it changes."""
_OF_OPTIONS: Final = ("better", "without_relevant")


def load_plugins(modules: Iterable[str], *, where: str = "") -> None:
    """Import modules and make their measures known; ConfigError with every one that cannot be imported or has none."""
    faults = list[Fault]()
    for index, name in enumerate(modules):
        try:
            found = definitions_in(import_module(name))
        except ConfigError as error:
            faults += error.faults
        except Exception as error:  # it is the code of others
            found_there = f"{name!r}, which fails: {describe_error(error)}"
            fix = "install it, or add its folder to PYTHONPATH" if isinstance(error, ModuleNotFoundError) else ""
            faults.append(Fault(f"{where}[{index}]", found_there, "a module that can be imported", fix))
        else:
            if not found:
                fix = "put @measure from rankeval_spark on a function of a list"
                faults.append(
                    Fault(f"{where}[{index}]", f"{name!r} without a measure", "a module that defines measures", fix)
                )
            registry.LOADED.update({definition.name: definition for definition in found})
    if faults:
        raise ConfigError(*faults)


@cache
def load_installed() -> None:
    """Load the entry points of installed packages, once; ConfigError for one that cannot be loaded."""
    for point in entry_points(group=GROUP_NAME):
        try:
            loaded = point.load()
            found = (loaded.definition,) if hasattr(loaded, "definition") else definitions_in(loaded)
        except Exception as error:  # it is the code of others
            found_there = f"the entry point {point.name} of {GROUP_NAME}, which fails: {describe_error(error)}"
            fault = Fault("measures", found_there, f"a module of measures at {point.value}", "remove the package")
            raise ConfigError(fault) from error
        for definition in found:
            registry.LOADED.setdefault(definition.name, definition)


def plugins_of(own: Iterable[Definition]) -> tuple[str, ...]:
    """Return the modules that a config can name under ``plugins``, so that it has these measures."""
    modules = dict.fromkeys(one.kernel.__module__ for one in own)
    loaded = {name: sys.modules[name] for name in modules if name in sys.modules and name != "__main__"}
    names = {name: {each.name for each in definitions_in(module)} for name, module in loaded.items()}
    return tuple(name for name in names if {one.name for one in own if one.kernel.__module__ == name} <= names[name])


def record(definition: Definition, asked: Measure | None = None) -> dict[str, str]:
    """Return what a run records of an own measure, as text; nothing of a measure of this package.

    ``asked`` is the measure with its options, which may decide which value is the better one.
    """
    if definition.is_builtin:
        return {}
    if isinstance(definition.kernel, Recorded):
        return dict(definition.kernel.facts)
    return {
        "code": code_hash(definition.kernel),
        "version": definition.version,
        "kind": definition.kind,
        "ratio": json.dumps(definition.is_ratio),
        "better": asked.better if asked else "",
        "bounds": json.dumps(definition.bounds),
        "undefined": definition.undefined,
        "without_relevant": json.dumps(asked.without_relevant if asked else None),
        "cutoff": definition.cutoff.default,
        "options": json.dumps({option.name: option.default for option in definition.options}),
        "summary": definition.summary,
        "formula": definition.formula,
        "source": definition.source,
    }


class Recorded:
    """Kernel of a measure that a night recorded and whose plugin is not there: it has no value of new lists."""

    def __init__(self, name: str, facts: Mapping[str, str], options: tuple[Option, ...]) -> None:
        self.name, self.facts, self.options = name, facts, options

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse to compute, with the way to the code."""
        expected, fix = "the module that defines it", "name it under plugins, or install its package"
        raise MeasureError(Fault(f"measures, {self.name}", f"no code of {self.facts['source']}", expected, fix))


def recall(name: str, facts: Mapping[str, str]) -> Definition:
    """Return the definition of a recorded measure: the one of a plugin where it is the same, else what was recorded."""
    known = registry.LOADED.get(name)
    if known is not None and all(
        record(known)[fact] == facts.get(fact) for fact in DEFINING if fact not in _OF_OPTIONS
    ):
        return known
    return registry.RECORDED.setdefault((name, tuple(sorted(facts.items()))), _rebuild(name, facts))


def _rebuild(name: str, facts: Mapping[str, str]) -> Definition:
    defaults = json.loads(facts["options"])
    general = ("agg", GROUP, JUDGED_ONLY, WEIGHTED)
    options = tuple(
        Option(option, default, takes_text="a text" if isinstance(default, str) or default is None else "")
        for option, default in defaults.items()
        if option not in general
    )
    least, greatest = json.loads(facts["bounds"])
    definition = Definition(
        name=name,
        formula=facts["formula"],
        source=facts["source"],
        undefined=facts["undefined"],
        bounds=(least, greatest),
        cutoff=Cutoff(facts["cutoff"]),  # type: ignore[arg-type]  # as it was recorded
        better=facts["better"],  # type: ignore[arg-type]  # as it was recorded
        without_relevant=json.loads(facts["without_relevant"]),
        is_bounded_by_gains=False,
        group=GROUP in defaults,
        judged_only=JUDGED_ONLY in defaults,
        version=facts["version"],
    )
    is_ratio = facts["ratio"] == "true"
    kernel = Recorded(name, facts, options)
    definition.describe(kernel, facts["kind"], is_ratio=is_ratio, doc=facts["summary"], family=OWN)  # type: ignore[arg-type]  # as above
    return definition
