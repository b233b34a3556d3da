"""Read the reference values of ranking measures. Copy this file: it needs Python's standard library alone."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("values.json")


def cases(name: str | None = None, **options: object) -> list[dict[str, Any]]:
    """Return the cases, of one measure and with these options: inputs as they are, values as fractions or None."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = [case for case in document["cases"] if name in (None, case["name"])]
    found = [case for case in found if options.items() <= case["options"].items()]
    for case in found:
        case["input_names"] = case["inputs"]
        case["inputs"] = [document["inputs"][one] for one in case["input_names"]]
        case["values"] = [exact(value) for value in case["values"]]
        case["mean"] = exact(case.get("mean"))
    return found


def exact(text: str | None) -> Fraction | None:
    """Return the fraction that a text stands for, ``"2/3"`` or ``"0.63..."``; None of null."""
    return None if text is None else Fraction(text)


def run(given: dict[str, Any]) -> dict[str, float]:
    """Return the scores of a list by item, from rank 1; n, ..., 1 where the list has none."""
    scores = given.get("scores") or range(len(given["gains"]), 0, -1)
    return {f"r{rank}": score for rank, score in enumerate(scores, 1)}


def qrels(given: dict[str, Any]) -> dict[str, float]:
    """Return the gains of the judged items of a list, and of those that it misses."""
    gains = {f"r{rank}": gain for rank, gain in enumerate(given["gains"], 1) if gain is not None}
    return {**gains, **{f"m{place}": gain for place, gain in enumerate(given.get("missed", ()), 1)}}


def digits(found: float | None, value: Fraction | None) -> float:
    """Return how many digits of a number agree with an exact one: infinity for the nearest double, 0 for none."""
    if value is None or found is None or math.isnan(found):
        return math.inf if value is None and (found is None or math.isnan(found)) else 0.0
    if found == float(value):
        return math.inf
    error = abs(Fraction(found) - value) / (abs(value) or 1) if math.isfinite(found) else 1
    return max(0.0, -math.log10(error))
