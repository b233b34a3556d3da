"""Options of a measure, read off the keyword-only parameters of its kernel, and those that many measures share."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from rankeval_spark.measures.required_facts import BY_HISTORY, BY_POPULARITY

T = TypeVar("T")

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_EXACT_INTEGERS = 2**53


@dataclass(frozen=True)
class GainMap:
    """Gain of each grade, written ``{grade: gain}``: a value that is hashed and compared.

    >>> GainMap.read("{2: 3, 1: 1}")
    GainMap(pairs=((1.0, 1.0), (2.0, 3.0)))
    >>> GainMap.read("{1: 3, 2: 1}") is None  # the better item would be worth less
    True
    """

    # Grades from 0, ascending, each with its gain: not negative, not falling, and not all 0
    pairs: tuple[tuple[float, float], ...]

    @classmethod
    def read(cls, text: str) -> GainMap | None:
        """Read a map; None where the text is not one."""
        if not (text.startswith("{") and text.endswith("}")):
            return None
        sides = [[_parse_number(side.strip()) for side in entry.split(":")] for entry in text[1:-1].split(",")]
        pairs = sorted((entry[0], entry[1]) for entry in sides if len(entry) == 2)  # noqa: PLR2004 - grade and gain
        if not pairs or len(pairs) != len(sides):
            return None
        (least_grade, least_gain), (best_grade, best_gain) = pairs[0], pairs[-1]
        is_rising = all(low[0] < high[0] and low[1] <= high[1] for low, high in pairwise(pairs))
        is_in_range = least_grade >= 0 and least_gain >= 0 and best_gain > 0 and max(best_grade, best_gain) < math.inf
        return cls(tuple(pairs)) if is_rising and is_in_range else None


OptionValue: TypeAlias = str | float | bool | GainMap | None
"""Value of an option; equal to, and printed as, its default where it is left out. None is only ever a default."""

OfOptions: TypeAlias = T | Callable[..., T]  # a value, or a function of the options that returns it


def resolve_for_options(value: OfOptions[T], options: Mapping[str, OptionValue]) -> T:
    """Return what may be a function of the options, for these options.

    >>> resolve_for_options(True, {}), resolve_for_options(lambda denom, **_: denom == "k", {"denom": "len", "rel": 1})
    (True, False)
    """
    return value(**options) if callable(value) else value


@dataclass(frozen=True)
class Above:
    """Bounds of a numeric option, themselves excluded; part of its annotation."""

    low: float
    below: float = math.inf

    def __contains__(self, number: float) -> bool:
        return self.low < number < self.below

    def __str__(self) -> str:
        return f"above {self.low:g}" + (f" and below {self.below:g}" if self.below < math.inf else "")


@dataclass(frozen=True)
class Between:
    """Least and greatest value of a numeric option, both allowed; part of its annotation."""

    low: float
    high: float

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __str__(self) -> str:
        return f"from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Whole:
    """Whole numbers, as values of a numeric option; part of its annotation."""

    def __contains__(self, number: float) -> bool:
        return float(number).is_integer()

    def __str__(self) -> str:
        return "without a fraction"


@dataclass(frozen=True)
class Text:
    """Description of any other text that an option takes; part of its annotation."""

    kind: str


@dataclass(frozen=True)
class NotOffered:
    """A choice that is looked for and not there, and why, with what to take instead; part of its annotation."""

    choice: str
    reason: str


_MAP_EXPECTED = "a map {grade: gain}, such as {1:1,2:3}, with grades from 0 on and gains that do not fall"


@dataclass(frozen=True)
class Option:
    """One option: a choice, a number, a truth value, a map or a text."""

    name: str  # name of the keyword-only parameter
    default: OptionValue  # its value where the option is left out; None where leaving it out has a meaning of its own
    choices: tuple[str, ...] = ()  # the strings it may be; empty for a number or a truth value
    bounds: Above | Between | Whole | None = None  # where a number must lie
    takes_map: bool = False  # whether it may also be a :class:`GainMap`
    takes_number: bool = False  # whether it may be a number instead of one of the choices
    takes_text: str = ""  # what any other text means, in the case in which it is written; empty where it is refused
    is_required: bool = False  # whether it cannot be left out: the kernel's parameter has no default
    not_offered: tuple[NotOffered, ...] = ()  # choices that are looked for and not there
    is_switch: bool = False  # whether only ``True`` can be written: left out, it says nothing
    meaning: str = ""  # what the option and each of its choices does

    @property
    def expected(self) -> str:
        """Values that the option takes, in words.

        >>> Option("denom", "k", choices=("k", "len")).expected, Option("rel", 1.0, bounds=Above(0)).expected
        ("'k' or 'len'", 'a number above 0')
        >>> Option("category", None, takes_text="a category of items").expected
        'a category of items'
        """
        if self.is_switch:
            return "True"
        number = f"a number {self.bounds}" if self.bounds else "a number"
        if self.choices or self.takes_text:
            others = [_MAP_EXPECTED if self.takes_map else "", self.takes_text, number if self.takes_number else ""]
            return " or ".join([*map(repr, self.choices), *filter(None, others)])
        return "True or False" if isinstance(self.default, bool) else number

    def why_not(self, text: str) -> str:
        """Return why a choice that is looked for is not there; empty for any other value.

        >>> sim = Option("sim", "cosine", ("cosine",), not_offered=(NotOffered("jaccard", "it takes all pairs"),))
        >>> sim.why_not("'Jaccard'"), sim.why_not("'cos'")
        ('it takes all pairs', '')
        """
        reasons = {absent.choice.casefold(): absent.reason for absent in self.not_offered}
        return reasons.get(_unquote(text).casefold(), "")

    def read(self, text: str) -> OptionValue | None:
        """Read a value; None where the text is not one.

        >>> Option("denom", "k", choices=("k", "len")).read('"LEN"'), Option("rel", 1.0, bounds=Above(0)).read("0")
        ('len', None)
        >>> Option("category", None, takes_text="a category of items").read("'Drama'")
        'Drama'
        >>> unjudged = Option("unjudged", "zero", ("zero", "mean"), Above(0), takes_number=True)
        >>> unjudged.read("mean"), unjudged.read("0.5"), unjudged.read("0")
        ('mean', 0.5, None)
        """
        inside = _unquote(text)
        if self.is_switch:
            return True if inside.casefold() == "true" else None
        if self.takes_map and text.startswith("{"):
            return GainMap.read(text)
        if self.choices or self.takes_text or isinstance(self.default, bool):
            known: tuple[OptionValue, ...] = self.choices or (() if self.takes_text else (True, False))
            choice = next((value for value in known if str(value).casefold() == inside.casefold()), None)
            # Other text is taken where it is the same when it is printed and read again
            has_both_quotes = {"'", '"'} <= set(inside)
            is_text = bool(inside) and inside.strip() == inside and inside.isprintable() and not has_both_quotes
            if choice is not None or not self.takes_number:
                return inside if choice is None and self.takes_text and is_text else choice
        number = _parse_number(text)
        return None if math.isnan(number) or (self.bounds and number not in self.bounds) else number


def read_options(kernel: Callable[..., Any], hints: Mapping[str, Any]) -> tuple[Option, ...]:
    """Return the options of a kernel, one for each keyword-only parameter, given its type hints.

    ``Literal`` gives choices, ``Annotated`` bounds and, as a text, the meaning; of several the last one holds.
    """
    options = []
    for parameter in inspect.signature(kernel).parameters.values():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        types, extras = _split_annotation(hints[parameter.name])
        main = next(kind for kind in types if kind not in {NoneType, GainMap})
        default, is_required = parameter.default, parameter.default is inspect.Parameter.empty
        of_type = {type(extra): extra for extra in extras}
        options.append(
            Option(
                parameter.name,
                None if is_required else float(default) if main is float and default is not None else default,
                choices=get_args(main) if get_origin(main) is Literal else (),
                bounds=of_type.get(Above, of_type.get(Between, of_type.get(Whole))),
                takes_map=GainMap in types,
                takes_number=float in types and main is not float,
                takes_text=of_type[Text].kind if Text in of_type else "",
                is_required=is_required,
                not_offered=tuple(extra for extra in extras if isinstance(extra, NotOffered)),
                meaning=of_type.get(str, ""),
            )
        )
    return tuple(options)


def _split_annotation(annotation: Any) -> tuple[list[Any], list[Any]]:  # noqa: ANN401 - any type form
    """Return the types of a union, and what they and the union are annotated with, the inner ones first."""
    if hasattr(annotation, "__metadata__"):
        types, extras = _split_annotation(get_args(annotation)[0])
        return types, [*extras, *annotation.__metadata__]
    if get_origin(annotation) in {Union, UnionType}:
        parts = [_split_annotation(part) for part in get_args(annotation)]
        return [kind for types, _ in parts for kind in types], [extra for _, extras in parts for extra in extras]
    return [annotation], []


def option_text(value: OptionValue | Mapping[float, float]) -> str:
    """Print a value as a canonical name shows it: single quotes, whole numbers without a decimal point.

    >>> option_text("k"), option_text(2.0), option_text(0.5), option_text(True), option_text({1: 1, 2: 2.5})
    ("'k'", '2', '0.5', 'True', '{1:1,2:2.5}')
    """
    if isinstance(value, GainMap | Mapping):
        pairs = value.pairs if isinstance(value, GainMap) else value.items()
        return "{" + ",".join(f"{option_text(grade)}:{option_text(gain)}" for grade, gain in pairs) + "}"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_INTEGERS:
        return str(int(value))
    if isinstance(value, str):  # as it is: repr would double a backslash
        return f'"{value}"' if "'" in value else f"'{value}'"
    return repr(value)


def _parse_number(text: str) -> float:
    """Read a decimal number; NaN for other text."""
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _unquote(text: str) -> str:
    """Strip a pair of single or double quotes around a text, if any."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


# ``rel``: above 0, because an item without a judgement has gain 0
Level: TypeAlias = Annotated[float, Above(0), "Lowest gain of a relevant item."]

# ``max_rel``: never from the data, because all values would change with one new grade
GreatestGain: TypeAlias = Annotated[
    float, Above(0), "Greatest gain there can be; a judgement with a gain above it is an error."
]

Persistence: TypeAlias = Annotated[
    float, Above(0, below=1), "Probability that a user goes on to the next item; the expected depth is 1 / (1 - p)."
]

RecallWeight: TypeAlias = Annotated[float, Above(0), "Weight of recall relative to precision."]  # ``beta``

Unknown: TypeAlias = Annotated[
    Literal["null", "drop"],
    "Effect of an item without known facts (no vector, categories, users or day of publication): the list "
    "has no value; of the first k items the others count alone, as a list of their own.",
]

Category: TypeAlias = Annotated[
    str,
    Text("a category of items"),
    "Category of items, in the case in which the catalogue writes it. An item of several categories belongs to "
    "each of them as a whole; one without categories, or that the catalogue does not have, to none.",
]

OtherModel: TypeAlias = Annotated[
    str, Text("a model of the same run"), "The other model, as `model_id` names it. Its own lists have no value."
]

MODEL: Final = "model"  # option of a measure that also looks at the lists of another model

Agg: TypeAlias = Literal["macro", "micro"]

AGG: Final = "agg"  # the option of every measure that is a ratio; kernels do not see it
GROUP: Final = "group"  # option of every measure of judgements alone; kernels see lists with fewer judgements
JUDGED_ONLY: Final = "judged_only"  # the same, where unjudged items take places; kernels see shorter lists
WEIGHTED: Final = "weighted"  # option of every measure that adds up relevant items; kernels see judgements with weights

GROUP_OPTION: Final = Option(
    GROUP,
    None,
    choices=(*BY_POPULARITY, *BY_HISTORY),
    takes_text="a category of items",
    meaning="Judgements of one item group only: other items keep their ranks and count as unjudged; undefined for a "
    "user without a judgement of the group. head, middle and tail hold 20, 60 and 20 % of the interactions in train; "
    "repeat is what the user has there, explore what the user does not have.",
)

JUDGED_ONLY_OPTION: Final = Option(
    JUDGED_ONLY,
    None,
    is_switch=True,
    not_offered=(NotOffered("False", "leave it out"),),
    meaning="Items without a judgement, or with a negative gain, leave the list before it is cut, and the rest closes "
    "up: the policy judged_only for one measure. Left out, the policy of the run says what counts.",
)

WEIGHTED_OPTION: Final = Option(
    WEIGHTED,
    None,
    is_switch=True,
    not_offered=(NotOffered("False", "leave it out"),),
    meaning="A judgement counts as often as the column `weight` of the held-out table says, such as 1 over the "
    "probability with which it was observed; a weight that is no number above 0 takes the judgement out, as if its "
    "row were not there. Left out, "
    "every judgement counts once.",
)
