"""Every measure there is: the decorated kernels of the family folders, for everything else to read.

A measure is added in one place: a kernel decorated with its ``Definition``, in a module of a family folder, and its
examples in the YAML file next to it. Modules are found by themselves; options, names, documentation, command line and
the tests' coverage check follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from rankeval_spark.measures import definition
from rankeval_spark.measures.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rankeval_spark.measures.definition import Options
    from rankeval_spark.measures.entry import Kind

_TREC_NAME = re.compile(r"(?P<name>.+?)[._](?P<cutoff>\d+(\.\d+)?)")


@dataclass(frozen=True)
class Match:
    """What a name means: a measure, the options the name fixes and the number it ends in (trec_eval names)."""

    entry: Entry
    presets: Options = field(default_factory=dict)
    cutoff: str | None = None


def discover(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that its measures register themselves."""
    for module in sorted(info.name for info in iter_modules(path)):
        import_module(f"{package}.{module}")


def entries(kind: Kind | None = None) -> tuple[Entry, ...]:
    """All measures, or those of a kind, in the order of their families and, within one, of their definition."""
    return tuple(entry for entry in map(get, definition.DEFINED) if kind in (None, entry.kind))


def names() -> tuple[str, ...]:
    """Canonical names of all measures."""
    return tuple(definition.DEFINED)


def get(name: str) -> Entry:
    """Return the measure with the canonical name ``name``; KeyError where there is none."""
    return _entry_of(*definition.DEFINED[name])


_entry_of = cache(Entry.of)


def all_names() -> tuple[str, ...]:
    """Canonical names and aliases, as they are written in the definitions."""
    return tuple(spelling for entry in entries() for spelling in (entry.name, *entry.definition.aliases))


def find(name: str) -> Match | None:
    """Look a name up, in any case: a canonical name, an alias, or a trec_eval name such as ``ndcg_cut_10``.

    Examples
    --------
    >>> from rankeval_spark.measures import registry
    >>> match = registry.find("relative_P_5")
    >>> match.entry.name, dict(match.presets), match.cutoff
    ('P', {'denom': 'min'}, '5')
    """
    known = _match(name)
    trec = None if known else _TREC_NAME.fullmatch(name)
    base = _match(trec["name"]) if trec else None
    return replace(base, cutoff=trec["cutoff"]) if trec and base else known


def _match(name: str) -> Match | None:
    canonical, presets = definition.SPELLINGS.get(name.casefold(), ("", {}))
    return Match(get(canonical), presets) if canonical else None
