"""Naive reference of own values of users."""

from __future__ import annotations

from tests.support.oracles.plain import Number, PlainList, naive


@naive("UserValue")
def _(one: PlainList, _: int, *, name: str, better: str = "higher") -> Number | None:  # noqa: ARG001 - no part of it
    return one.user_values.get(name)
