"""Facts that several measures share are computed once for a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Remembers:
    """Keeps what was computed once, for as long as the object lives."""

    _memo: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, kw_only=True)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what ``compute`` returned at the first call with ``key``."""
        if key not in self._memo:
            self._memo[key] = compute()
        value: T = self._memo[key]
        return value
