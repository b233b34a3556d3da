"""Notes and worked examples of measures: inputs small enough to redo by hand, with exact expected values.

They are in a YAML file next to the module that defines the measures, and read by tests, documentation and command line
alone: nothing that computes a measure loads them. ``CONTRIBUTING.md`` says how they are written.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from rankeval_spark.measures.example_lists import Background, Item, Ranking
from rankeval_spark.measures.exposure import Offered, Preferred, Shown

if TYPE_CHECKING:
    from rankeval_spark.measures.definition import Definition

Given: TypeAlias = Ranking | Shown | Offered | Preferred
"""Input of a value: a list; or, for a measure of all lists together, a group of them."""

UNDEFINED: Final = "undefined"  # expected value of a list for which the measure is undefined

_OPERATORS: Final[Mapping[type[ast.operator], Callable[..., Fraction | float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = {"ln": math.log, "log2": math.log2, "sqrt": math.sqrt}


@dataclass(frozen=True)
class Example:
    """One worked example.

    >>> example = Example("AP", (Ranking([None, 1, 1]),), ("(1/2 + 2/3) / 2",), note="no hit at rank 1")
    >>> example.expected
    (Fraction(7, 12),)
    """

    measure: str  # name with options and cutoff, such as ``"AP@6"``
    inputs: tuple[Given, ...]  # the lists, or groups of lists; each has a value
    # Exact value of each as an arithmetic expression, such as ``"(1/2 + 2/3) / 2"``, or ``"undefined"``
    values: tuple[str, ...]
    mean: str = ""  # mean over the lists where it is defined, as an expression too; empty for an example of one list
    note: str = ""  # what the example shows

    @property
    def rankings(self) -> tuple[Ranking, ...]:
        """The inputs that are single lists."""
        return tuple(given for given in self.inputs if isinstance(given, Ranking))

    @property
    def given(self) -> str:
        """The inputs in words."""
        return "; ".join(map(str, self.inputs))

    @property
    def expected(self) -> tuple[Fraction | float, ...]:
        """Value of each list: a fraction, a float where the expression holds a logarithm, NaN where undefined."""
        return tuple(math.nan if value == UNDEFINED else evaluate_expression(value) for value in self.values)


@dataclass(frozen=True)
class ExamplePage:
    """One measure in the YAML file."""

    notes: str
    examples: tuple[Example, ...]


def examples_of(entry: Definition) -> tuple[Example, ...]:
    """Return the worked examples of a measure.

    >>> first = examples_of(registry.get("P"))[0]
    >>> first.measure, first.given, first.values, first.note
    ('P@5', '- 1 - 1 - (missed 1 1)', ('2/5',), '2 hits in the top 5')
    """
    return example_page_of(entry).examples


def example_page_of(entry: Definition) -> ExamplePage:
    """Return notes and worked examples of a measure; ValueError where its module's file does not have them."""
    module = entry.kernel.__module__
    try:
        return pages_of(module)[entry.name]
    except (KeyError, FileNotFoundError):
        file = f"{module.rpartition('.')[2]}.yaml"
        message = f"no examples of {entry.name}; add them to the YAML file next to {module}, {file}"
        raise ValueError(message) from None


@cache
def pages_of(module: str) -> Mapping[str, ExamplePage]:
    """Read the file next to a module, given its dotted name: notes and examples by measure."""
    package, _, stem = module.rpartition(".")
    text = resources.files(package).joinpath(f"{stem}.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    named = {name: read_input(written) for name, written in content.pop("lists", {}).items()}

    def example(written: Mapping[str, Any]) -> Example:
        given, values = written["given"], written["value"]
        # The gains of one list are numbers, or null.
        is_several = isinstance(given, list) and any(isinstance(part, str | list | dict) for part in given)
        parts = given if is_several else [given]
        inputs = tuple(named[part] if isinstance(part, str) else read_input(part) for part in parts)
        values = values if isinstance(values, list) else [values]
        if len(inputs) != len(values):
            message = f"{written['measure']}: {len(inputs)} lists are given and {len(values)} values"
            raise ValueError(message)
        mean, note = str(written.get("mean", "")), written.get("note", "")
        return Example(written["measure"], inputs, tuple(map(str, values)), mean, note)

    pages = {
        name: ExamplePage(written["notes"].strip(), tuple(map(example, written["examples"])))
        for name, written in content.items()
    }
    used = {id(given) for page in pages.values() for example in page.examples for given in example.inputs}
    unused = [name for name, ranking in named.items() if id(ranking) not in used]
    if unused:
        message = f"{stem}.yaml: no example uses {', '.join(unused)}"
        raise ValueError(message)
    return pages


def read_input(written: Any) -> Given:  # noqa: ANN401 - as the file has it
    """Read a list, or a group of lists; a list of gains alone is a ranking."""
    if isinstance(written, list):
        return Ranking(written)
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in written.items()
    }
    if "groups" in fields and "lists" in fields:
        return Offered(**fields)
    if "category" in fields:
        return Preferred(**fields)
    if "lists" in fields:
        return Shown(**fields)
    if "items" in fields:
        fields["items"] = tuple(Item(**item) for item in fields["items"])
    if "background" in fields:
        fields["background"] = Background(**fields["background"])
    return Ranking(**fields)


def evaluate_expression(
    expression: str, functions: Mapping[str, Callable[..., Fraction | float]] = _FUNCTIONS
) -> Fraction | float:
    """Compute an arithmetic expression of numbers, ``+ - * / **``, ``ln``, ``log2`` and ``sqrt``.

    >>> evaluate_expression("(1 + 2/4 + 3/5) / 3"), evaluate_expression("1 / log2(4)")
    (Fraction(7, 10), 0.5)
    """

    def value(node: ast.expr) -> Fraction | float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return Fraction(str(number))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.BinOp(left=left, op=operation, right=right):
                return _OPERATORS[type(operation)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return functions[name](value(argument))
            case _:
                message = f"not an arithmetic expression: {ast.unparse(node)}"
                raise ValueError(message)

    return value(ast.parse(expression, mode="eval").body)
