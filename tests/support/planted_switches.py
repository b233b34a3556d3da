"""Combinations of policies and options that are planted in a number, for `reconcile` to find again."""

from __future__ import annotations

import datetime as dt
import random
import warnings
from typing import TYPE_CHECKING, Any, get_args, get_origin

from rankeval_spark import Policies, evaluate
from rankeval_spark.errors import FaultsError, RankevalError
from rankeval_spark.measures import Measure
from tests.support.arrow_frames import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rankeval_spark.apps.notebook.conventions import State


def draw_inputs(seed: int, *, n_users: int = 30, share: float = 0.5) -> dict[str, Any]:
    """Draw a log and judgements with ties, and some of: ranks, lists, repeated rows, training data, own items.

    In half of the inputs only a few users have ties and repeated rows.
    """
    draw = random.Random(seed)
    has_ranks, has_lists, has_copies, has_train, has_own, has_noise = (draw.random() < share for _ in range(6))
    n_unusual = draw.choice([n_users, n_users // 5])
    items = [f"i{number:02}" for number in range(14)]
    users = [*(items[:8] if has_own else []), *(f"u{number:02}" for number in range(n_users))]
    log, held_out, train = list[tuple[Any, ...]](), list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    for place, user in enumerate(users):
        is_unusual = place < n_unusual
        for name in ("a", "b")[: draw.randint(0, 2) if has_lists else draw.random() < 0.85]:
            shown = draw.sample(items, draw.randint(1, 9))
            shown += shown[:1] if has_copies and is_unusual and draw.random() < 0.5 else []
            ranks = draw.sample(range(1, len(shown) + 3), len(shown))
            for item, rank in zip(shown, ranks, strict=True):
                noise = draw.choice([0, 1e-9]) if has_noise and is_unusual else 0 if is_unusual else draw.random()
                log.append((user, name, item, draw.randint(0, 4) / 4 + noise, rank))
        judged = draw.sample(items, draw.choice([0, 1, 2, 4, 6]))
        judged += judged[:2] if has_copies and is_unusual else []
        for item in judged:
            at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=draw.randint(0, 999))
            held_out.append((user, item, float(draw.choice([-1, 0, 1, 1, 2, 3])), at))
        train += [(user, item) for item in draw.sample(items[:11], draw.randint(0, 3))]
    found = {
        "recommendations": table("user_id list_id item_id score rank", *log),
        "held_out": table("user_id item_id gain interacted_at", *held_out),
    }
    unwanted = [name for name, has in {"list_id": has_lists, "rank": has_ranks}.items() if not has]
    found["recommendations"] = found["recommendations"].drop_columns(unwanted)
    return found | ({"train": table("user_id item_id", *train)} if has_train else {})


def plant(
    inputs: Mapping[str, Any], text: str, seed: int, *, most: int = 4
) -> Iterator[tuple[State, dict[str, Any], float]]:
    """Yield combinations in which every switch changes the number, with its arguments of `evaluate` and its value."""
    draw, base = random.Random(seed), Measure.parse(text)
    axes = policy_axes() + measure_axes(base)
    while True:
        switches = [draw.choice(axis) for axis in draw.sample(axes, draw.randint(1, most))]
        call, value = _value(inputs, base, switches)
        if call is None or value is None:
            continue
        others = (_value(inputs, base, switches[:at] + switches[at + 1 :])[1] for at in range(len(switches)))
        if all(other is None or abs(other - value) > 1e-9 for other in others):
            yield frozenset(switches), call, value


def policy_axes() -> list[list[Any]]:
    axes, usual = [], Policies()
    for name, field in Policies.model_fields.items():
        kind = field.annotation
        choices = get_args(kind) if get_origin(kind) else [False, True] if kind is bool else []
        values = [each for each in choices if each not in ("error", getattr(usual, name))]
        axes += [[("policy", name, each) for each in values]] if values else []
    return axes


def measure_axes(base: Measure) -> list[list[Any]]:
    axes = [[("cutoff", "cutoff", k) for k in (base.k - 1, base.k + 1, 0)]]
    for option in base.entry.options:
        values: list[Any] = [2.0, 3.0] if option.name == "rel" else [*option.choices]
        values += [True] if option.is_switch else []
        values += [not option.default] if isinstance(option.default, bool) else []
        values = [each for each in values if each != option.default]
        axes += [[("option", option.name, each) for each in values]] if values else []
    return axes


def _value(inputs: Mapping[str, Any], base: Measure, switches: list[Any]) -> tuple[dict[str, Any] | None, Any]:
    """Evaluate a combination; None where it is refused."""
    policies = {name: value for kind, name, value in switches if kind == "policy"}
    options = {**base.options} | {name: value for kind, name, value in switches if kind == "option"}
    k = next((value for kind, _, value in switches if kind == "cutoff"), base.k)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measure = Measure.of(base.name, k=k, **{name: each for name, each in options.items() if each is not None})
            call: dict[str, Any] = {"measures": [str(measure)], "policies": policies}
            rows = evaluate(**inputs, **call).metrics.to_pylist()
    except (RankevalError, FaultsError, ValueError):
        return None, None
    return call, rows[0]["value"]
