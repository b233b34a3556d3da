"""Faults in the words of a call: arguments with ``=``, values and types as Python writes them.

Rules of a config and of a call are the same, and so are their faults, which are written in the words of a config file.
Here they are written again for whoever calls ``evaluate``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from rankeval_spark.config.inference import Comparisons, Intervals
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.errors import ConfigError, Fault, FaultsError, InvalidCallError

Rewrite = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

_INPUTS: Final = "recommendations|held_out|segments|train|items"
_WORD: Final = r"\b(?!(?:or|and)\b)[a-z_0-9-]+"
_WORDS: Final = rf"{_WORD}(?:, {_WORD})*(?: (?:or|and) {_WORD})?"

SECTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(Comparisons.model_fields, "comparisons"),
    **dict.fromkeys(Intervals.model_fields, "intervals"),
    **dict.fromkeys(Slicing.model_fields, "slicing"),
    **dict.fromkeys(Policies.model_fields, "policies"),
    **dict.fromkeys(("measures", "baseline", "models", "slices", "preset", "evaluation_date"), ""),
}
"""Argument of ``evaluate`` that has a setting, by the setting; empty for one that is an argument itself."""

_VALUES: Final = {"true": "True", "false": "False", "nothing": "None", "none": "None", "keys with values": "a dict"}
"""Values that YAML and Python write in other words."""

_PYTHON_TYPES: Final = {
    **{"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32"},
    **{"double": "float64", "string": "str", "boolean": "bool", "binary": "bytes", "void": "None"},
    "duration": "timedelta64",
    **{"timestamp_ntz": "datetime64", "timestamp": "datetime64 with a time zone", "array": "list", "struct": "dict"},
}
"""Types of tables in this process, by the names of Spark."""


_EXAMPLES: Final = {
    **dict.fromkeys(
        (("measures", "a list"), ("measures", "a value"), ("measures", "text")),
        'such as measures=["nDCG@10", "P@5"]',
    ),
    **dict.fromkeys(
        (("attribution_window", "text"), ("attribution_window", "a time such as 7d or 36h")),
        "such as '7d'",
    ),
    **dict.fromkeys(
        (("gains", "a dict"), ("gains", "this key")),
        "such as {'column': 'event', 'values': {'purchase': 3}} or {'column': 'rating', 'edges': [4]}",
    ),
    ("bands", "a dict"): "such as {'age': {'edges': [18, 25, 40]}, 'income': {'quantiles': 4}}",
}
"""What to write, by argument and what was expected."""


@contextmanager
def in_words_of_a_call(
    *, is_on_spark: bool, function: str = "evaluate", sections: Mapping[str, str] = SECTIONS
) -> Iterator[None]:
    """Raise what is refused within the block in the words of a call of a function.

    `is_on_spark`: whether the tables are DataFrames of Spark, whose types keep their names. `sections`: as
    :data:`SECTIONS`, of the settings of the function.
    """
    try:
        yield
    except FaultsError as error:
        kind = InvalidCallError if type(error) is ConfigError else type(error)
        faults = [
            call_fault(fault, is_on_spark=is_on_spark, function=function, sections=sections) for fault in error.faults
        ]
        raise kind(*dict.fromkeys(faults)) from error.__cause__


def call_fault(
    fault: Fault, *, is_on_spark: bool, function: str = "evaluate", sections: Mapping[str, str] = SECTIONS
) -> Fault:
    """Write a fault in the words of a call.

    >>> given = Fault("ties", "IPS with population 'truth'", "population 'judged'", "set population to judged")
    >>> call_fault(given, is_on_spark=False)
    Fault(where='evaluate(policies=).ties', found="IPS with population='truth'", expected="population='judged'", \
fix="pass policies={'population': 'judged'}")
    """
    where, expected = _place(fault.where, sections, function), fault.expected
    argument = (re.findall(r"\.(\w+)$", where) or re.findall(r"\((\w+)=\)", where) or [""])[0]
    found = _VALUES.get(fault.found, fault.found)
    if missing := re.fullmatch(r"no '(?:[\w.]+\.)?(\w+)'", found):
        is_argument = where == function
        where, argument = (f"{function}({missing[1]}=)", missing[1]) if is_argument else (where, argument)
        found, expected = ("None", "a value") if is_argument else (f"no key {missing[1]!r}", "this key")
    rules = [*_setting_rules(argument, sections), *_RULES, *([] if is_on_spark else _TYPES)]
    found, expected, fix = (_rewritten(text, rules) for text in (found, expected, fault.fix))
    if fix == "put it in quotes":
        fix = f'write "{found}"'
    if not fix or expected == "text":
        fix = _EXAMPLES.get((argument, expected), fix)
    return Fault(where, found, _VALUES.get(expected, expected), fix or _plain_number(found))


def _plain_number(found: str) -> str:
    """Return how a number of numpy becomes one of Python; empty for anything else."""
    number = re.fullmatch(r"np\.\w+\(([\d.]+)\)", found)
    return f"write {number[1].removesuffix('.0')}, a number of Python" if number else ""


def _place(where: str, sections: Mapping[str, str], function: str) -> str:
    """Write a place of a config or an input as that of the argument."""
    if where == function or "=)" in where:
        return where
    name, rest = re.match(r"(\w*)(.*)", where, re.DOTALL).groups()  # type: ignore[union-attr]  # it always matches
    if name in sections:
        section = sections[name]
        return f"{function}({section}=).{name}{rest}" if section else f"{function}({name}=){rest}"
    if not re.fullmatch(_INPUTS, name):
        return where
    return f"{function}(inputs=).{where}" if rest.startswith(".") else f"{function}({name}=){rest}"


def _setting_rules(argument: str, sections: Mapping[str, str]) -> Iterator[Rewrite]:
    """Yield the rules for values of settings: ``set ties to rank``, ``ties 'rank'``, ``pairs: all``.

    ``argument`` is the setting of the fault, which some texts mean without its name.
    """

    def passing(name: str, words: str) -> str:
        section, quoted = sections.get(name, ""), _quoted(words)
        if not section:
            return f"pass {name}={quoted}"
        first, *others = re.split(r", | or ", quoted, maxsplit=1)
        return f"pass {section}={{{name!r}: {first}}}" + "".join(f", or {rest}" for rest in others)

    names = "|".join(sorted(sections, key=len, reverse=True))
    yield re.compile(rf"\bset ({names}) to ({_WORDS})"), lambda found: passing(found[1], found[2])
    yield re.compile(rf"\b({names}) ('{_WORD}')"), r"\1=\2"
    yield re.compile(rf"\bbut ({names}): ({_WORD})$"), r"but \1='\2'"
    yield re.compile(rf"\buse ({names}) ({_WORDS})"), lambda found: passing(found[1], found[2])
    yield re.compile(rf"\bset ({names})$"), lambda found: passing(found[1], "...").replace("'...'", "...")
    yield re.compile(rf"\bleave the ({names}) out"), r"leave \1= out"
    yield re.compile(rf"\bchoose the policy ({_WORDS})"), lambda found: passing(argument, found[1])
    yield re.compile(rf"\bchoose another policy: ({_WORDS})"), lambda found: passing(argument, found[1])
    yield re.compile(rf"\bchoose other ties, such as ({_WORDS})"), lambda found: passing("ties", found[1])
    yield re.compile(r"\bchoose other ties$"), lambda _: passing("ties", "item_asc")
    yield re.compile(r"\bchoose another policy, such as max"), lambda _: passing("held_out_duplicates", "max")
    yield re.compile(r"^write \[(.*)\]$"), lambda found: f"write {argument}=[{_literal(found[1])}]"
    if sections is SECTIONS:  # other functions have no argument `inputs`
        renamed = rf", or pass inputs={{'{argument}': {{'columns': {{'\2': '\1'}}}}}}"
        yield re.compile(r"\bdid you mean '([^']+)'\? rename it to (\w+)$"), r"\g<0>" + renamed


def _quoted(words: str) -> str:
    return re.sub(_WORD, lambda found: found[0] if found[0] in ("or", "and") else _value(found[0]), words)


def _value(word: str) -> str:
    return _VALUES.get(word, word if word.isdecimal() else repr(word))


def _literal(text: str) -> str:
    return text if re.fullmatch(r"-?[\d.]+", text) else json.dumps(text, ensure_ascii=False)


_RULES: Final[tuple[Rewrite, ...]] = (
    (re.compile(r"; a config names it under [\w.]+"), ""),
    (re.compile(r"^true (?=with )"), "True "),
    (re.compile(rf"\badd the input ({_INPUTS})"), r"pass \1="),
    (re.compile(rf"\bthe input ({_INPUTS}), or ({_INPUTS})"), r"\1= or \2="),
    (re.compile(rf"\bthe input ({_INPUTS})"), r"\1="),
    (re.compile(r"\badd (\w+)=$"), r"pass \1="),
    (re.compile(r"\btrue or false\b"), "True or False"),
    (re.compile(r"\bkeys with values\b"), "a dict"),
    (re.compile(r"\bwrite values: .* or edges: \[4\]"), "write 'values': {'purchase': 3, 'view': 1} or 'edges': [4]"),
    (re.compile(r"\bwrite edges: (\[.*\])"), r"write {'edges': \1}"),
    (re.compile(r"\badd t$"), 'add "t"'),
)
"""Words of a config, and those of a call."""

_TYPES: Final[tuple[Rewrite, ...]] = (
    (
        re.compile(r"(?:(?<=type )|(?<=read as ))[a-z_]+\d*(?:<\S*>)?|(?<= has )(?:bigint|string)$"),
        lambda found: _python_type(found[0]),
    ),
)
"""Names of the types of columns."""


def _python_type(name: str) -> str:
    """Write a type of Spark as Python does.

    >>> _python_type("array<bigint>"), _python_type("array<struct<movieId:bigint,rating:double>>")
    ('list[int64]', 'list[dict[movieId: int64, rating: float64]]')
    """
    words = re.sub(r"[a-z_]+\b(?!:)", lambda found: _PYTHON_TYPES.get(found[0], found[0]), name)
    return re.sub(r"([:,])", r"\1 ", words).replace("<", "[").replace(">", "]")


def _rewritten(text: str, rules: Iterable[Rewrite]) -> str:
    for pattern, words in rules:
        text = pattern.sub(words, text)
    return text
