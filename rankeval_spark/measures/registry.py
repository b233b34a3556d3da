"""Every measure there is: filled by the decorated kernels of the family folders, read by everything else.

A measure is added in one place: a kernel decorated with its ``Definition``, in a module of a family folder, and its
examples in the YAML file next to it. Modules are found by themselves; options, names, documentation, command line and
the tests' coverage check follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rankeval_spark.measures.definition import Options
    from rankeval_spark.measures.entry import Entry, Kind

_NO_OPTIONS: Final[Options] = MappingProxyType({})


@dataclass(frozen=True)
class Match:
    """What a name means: a measure, the options the name fixes and the number it ends in (trec_eval names)."""

    entry: Entry
    presets: Options = field(default_factory=dict)
    cutoff: str | None = None


_ENTRIES: Final[dict[str, Entry]] = {}
_NAMES: Final[dict[str, Match]] = {}
_TREC_NAME = re.compile(r"(?P<name>.+?)[._](?P<cutoff>\d+(\.\d+)?)")


def discover(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that its measures register themselves."""
    for module in sorted(info.name for info in iter_modules(path)):
        import_module(f"{package}.{module}")


def register(entry: Entry) -> None:
    """Add a measure under its canonical name and all others; ValueError where another measure has one of them."""
    definition = entry.definition
    spellings = {entry.name: _NO_OPTIONS, **definition.aliases, **definition.naming.printed_as}
    for spelling, presets in spellings.items():
        taken = _NAMES.get(spelling.casefold())
        if taken is not None and taken.entry.name != entry.name:
            message = f"{spelling!r} is already a name of {taken.entry.name}; {entry.name} cannot have it too"
            raise ValueError(message)
        _NAMES[spelling.casefold()] = Match(entry, presets)
    _ENTRIES[entry.name] = entry


def entries(kind: Kind | None = None) -> tuple[Entry, ...]:
    """All measures, or those of a kind, in the order of their families and, within one, of their definition."""
    return tuple(entry for entry in _ENTRIES.values() if kind in (None, entry.kind))


def names() -> tuple[str, ...]:
    """Canonical names of all measures."""
    return tuple(_ENTRIES)


def get(name: str) -> Entry:
    """Return the measure with the canonical name ``name``; KeyError where there is none."""
    return _ENTRIES[name]


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
    known = _NAMES.get(name.casefold())
    if known is not None:
        return known
    trec = _TREC_NAME.fullmatch(name)
    base = _NAMES.get(trec["name"].casefold()) if trec else None
    return replace(base, cutoff=trec["cutoff"]) if trec and base else None
