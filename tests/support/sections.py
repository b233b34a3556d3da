"""Settings of ``evaluate`` by their own names, for tests that vary one of them at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import Comparisons, Intervals, Policies, Slicing, evaluate

if TYPE_CHECKING:
    from rankeval_spark import Evaluation

_SECTIONS: Final[dict[str, Any]] = {
    **dict.fromkeys(Policies.model_fields, "policies"),
    **dict.fromkeys(Slicing.model_fields, "slicing"),
    **dict.fromkeys(
        ("pairs", "margin", "correction", "primary", "tests", "wilcoxon_zeros", "few_differences"), "comparisons"
    ),
    "confidence": "intervals",
}
_DRAWS: Final = set(Intervals.model_fields) & set(Comparisons.model_fields)


def sections(**options: Any) -> dict[str, Any]:  # noqa: ANN401 - any argument
    """Put each setting into the section that has it; other arguments stay as they are.

    ``intervals`` may be a method; replicates and seed are those of the intervals, of the comparisons, or of both.

    >>> sections(measures=["P@1"], ties="rank", ranks_from=0)
    {'measures': ['P@1'], 'policies': {'ties': 'rank'}, 'inputs': {'recommendations': {'ranks_from': 0}}}
    """
    found: dict[str, Any] = {}

    def put(section: str, name: str, value: Any) -> None:  # noqa: ANN401 - of any argument
        found[section] = {**found.get(section, {}), name: value}

    drawn = [section for section, name in (("intervals", "intervals"), ("comparisons", "tests")) if name in options]
    for name, value in options.items():
        if name in _DRAWS:
            for section in drawn or ["comparisons"]:
                put(section, name, value)
        elif name == "intervals" and isinstance(value, str):
            put("intervals", "method", value)
        elif name in _SECTIONS:
            put(_SECTIONS[name], name, value)
        elif name in ("ranks_from", "gains"):
            put("inputs", "recommendations" if name == "ranks_from" else "held_out", {name: value})
        elif name == "time_zone":
            put("inputs", name, value)
        else:
            found[name] = value
    return found


def measured(*tables: Any, **options: Any) -> Evaluation[Any]:  # noqa: ANN401 - arguments of evaluate
    """Evaluate with settings by their own names, as :func:`sections` takes them."""
    return evaluate(*tables, **sections(**options))
