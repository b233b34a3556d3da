"""Golden examples: inputs small enough to redo by hand, with exact expected values.

The registry stores them with the kernel they belong to; tests, documentation and command line read them there.
"""

from __future__ import annotations

import ast
import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rankeval_spark.measures.exposure import Shown
    from rankeval_spark.measures.lists import Ranking
    from rankeval_spark.measures.rates import Offered, Preferred

UNDEFINED: Final = "undefined"
"""Expected value of a list for which the measure is undefined."""

_OPERATORS: Final[Mapping[type[ast.operator], Callable[..., Fraction | float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: Final[Mapping[str, Callable[[float], float]]] = {"ln": math.log, "log2": math.log2, "sqrt": math.sqrt}


@dataclass(frozen=True)
class Golden:
    """One worked example.

    Parameters
    ----------
    measure
        Name with options and cutoff, such as ``"AP@6"``.
    rankings
        The lists; empty for a measure of all lists together.
    values
        Exact value of each list as an arithmetic expression, such as ``"(1/2 + 2/3) / 2"``, or ``"undefined"``.
    mean
        Mean over the lists where it is defined, likewise; empty where the example is about one list.
    note
        What the example shows.
    shown
        The groups of lists that a measure of all lists together is computed of, each of which has a value.

    Examples
    --------
    >>> from rankeval_spark.measures import Ranking
    >>> golden = Golden("AP", (Ranking([None, 1, 1]),), ("(1/2 + 2/3) / 2",), note="no hit at rank 1")
    >>> golden.expected
    (Fraction(7, 12),)
    """

    measure: str
    rankings: tuple[Ranking, ...]
    values: tuple[str, ...]
    mean: str = ""
    note: str = ""
    shown: tuple[Shown | Offered | Preferred, ...] = ()

    @property
    def given(self) -> str:
        """What the values are computed of, in words.

        Examples
        --------
        >>> from rankeval_spark.measures import Ranking
        >>> Golden("R@2", (Ranking([1, None], missed=[1]), Ranking([])), ("1/2", "undefined")).given
        '1 - (missed 1); (no list)'
        """
        return "; ".join([*map(_ranking, self.rankings), *map(str, self.shown)])

    @property
    def expected(self) -> tuple[Fraction | float, ...]:
        """Value of each list: a fraction, a float where the expression holds a logarithm, NaN where undefined."""
        return tuple(math.nan if value == UNDEFINED else evaluate(value) for value in self.values)

    @property
    def expected_mean(self) -> Fraction | float | None:
        """The mean; None where the example gives none."""
        return evaluate(self.mean) if self.mean else None


def _ranking(one: Ranking) -> str:
    """Write the gain at each rank, - where there is no judgement, what the list misses, and what else is known."""
    parts = [" ".join("-" if gain is None else f"{gain:g}" for gain in one.gains) or "(no list)"]
    parts += [
        f"({name} {' '.join(f'{value:g}' for value in values)})"
        for name, values in (
            ("missed", one.missed),
            ("scores", one.scores),
            ("values", one.values),
            ("missed values", one.missed_values),
            ("empty ranks", one.empty),
        )
        if values
    ]
    parts += [
        f"({name} {', '.join(group or '-' for group in groups)})"
        for name, groups in (("groups", one.groups), ("missed groups", one.missed_groups))
        if groups
    ]
    parts += [f"(items {' '.join(map(str, one.items))})"] if one.items else []
    parts += [f"({one.background})"] if str(one.background) else []
    return " ".join(parts)


def evaluate(expression: str) -> Fraction | float:
    """Compute an arithmetic expression of numbers, ``+ - * / **``, ``ln``, ``log2`` and ``sqrt``.

    Examples
    --------
    >>> evaluate("(1 + 2/4 + 3/5) / 3"), evaluate("1 / log2(4)")
    (Fraction(7, 10), 0.5)
    """
    return _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.expr) -> Fraction | float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATORS[type(operation)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return _FUNCTIONS[name](float(_value(argument)))
        case _:
            message = f"not an arithmetic expression: {ast.unparse(node)}"
            raise ValueError(message)
