"""Logs of impressions whose weights are known by hand."""

from __future__ import annotations

from typing import Any, Final

N_USERS: Final = 1000
RARE: Final = 5
"""Users who were shown b, which the log shows once in 200 requests and the model `rare` in 199 of 200."""


def rare_rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a log and the impressions of requests: the models `same`, as the log was made, and `rare`, its opposite.

    A weight of `rare` is 1 / 199 for a and 199 for b, so that its mean is (995 / 199 + 5 * 199) / 1000 = 1. Every third
    a is clicked, and every b.
    """
    usual, seldom = 199 / 200, 1 / 200
    shown = ["b" if user < RARE else "a" for user in range(N_USERS)]
    held_out = [
        {
            "user_id": f"u{user:03}",
            "item_id": item,
            "gain": 1.0 if item == "b" or user % 3 == 0 else 0.0,
            "propensity": seldom if item == "b" else usual,
        }
        for user, item in enumerate(shown)
    ]
    chances = {"same": {"a": usual, "b": seldom}, "rare": {"a": seldom, "b": usual}}
    log = [
        {"model_id": model, "user_id": row["user_id"], "item_id": item, "score": chance}
        for model, of_items in chances.items()
        for row in held_out
        for item, chance in of_items.items()
    ]
    return log, held_out
