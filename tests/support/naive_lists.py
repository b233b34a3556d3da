"""Ranking and matching, list by list and row by row: a reference for the engine that can be checked by reading it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rankeval_spark import columns as C
from rankeval_spark.engine import row_kinds

if TYPE_CHECKING:
    from rankeval_spark.engine.matching import ListRules

Row = dict[str, Any]

RANKED = "ranked"
"""All items of a list with their ranks and gains, None without a judgement."""


class Refused(Exception):  # noqa: N818 - an outcome, and no fault of anyone
    """A policy that refuses a case met it."""

    def __init__(self, *, policy: str) -> None:
        self.policy = policy


def to_lists(given: Iterable[Row], *, rules: ListRules, models: tuple[str, ...]) -> list[Row]:
    """Make the compact row of each list, of rows of the engine's input; in no particular order."""
    by_kind: dict[int, list[Row]] = {kind: [] for kind in (row_kinds.LOG, row_kinds.HELD_OUT, row_kinds.TRAIN)}
    for row in given:
        by_kind[row[row_kinds.KIND]].append(row)
    gains = _gains(by_kind[row_kinds.HELD_OUT], rules.held_out_duplicates)
    seen = {(row[C.USER_ID], row[C.ITEM_ID]) for row in by_kind[row_kinds.TRAIN]}
    kept = [row for row in by_kind[row_kinds.LOG] if _stays(row, gains, seen, rules)]
    lists: dict[tuple[Any, ...], list[Row]] = {}
    for row in kept:
        lists.setdefault((row[C.MODEL_ID], row[C.USER_ID], row.get(C.LIST_ID, C.ONE_LIST)), []).append(row)
    for model, user in itertools.product(models, {user for user, _ in gains}):
        if not any(key[:2] == (model, user) for key in lists):
            lists[model, user, C.ONE_LIST] = []
    ordered = {key: _ordered(own, gains, rules) for key, own in lists.items()}
    return [_compact(key, *one, gains, rules) for key, one in ordered.items()]


def _stays(row: Row, gains: dict[Any, float], seen: set[Any], rules: ListRules) -> bool:
    pair = (row[C.USER_ID], row[C.ITEM_ID])
    if rules.drops_seen and pair in seen:
        return False
    return not rules.judged_only or gains.get(pair, -1.0) >= 0


def _gains(held_out: list[Row], duplicates: str) -> dict[tuple[Any, Any], float]:
    """Gain of each (user, item)."""
    copies: dict[tuple[Any, Any], list[Row]] = {}
    for row in held_out:
        copies.setdefault((row[C.USER_ID], row[C.ITEM_ID]), []).append(row)
    if duplicates == "error" and any(len(own) > 1 for own in copies.values()):
        raise Refused(policy="held_out_duplicates")
    return {pair: _gain(own, duplicates) for pair, own in copies.items()}


def _gain(copies: list[Row], duplicates: str) -> float:
    gains = sorted(float(row[C.GAIN]) for row in copies)
    times = [row[C.INTERACTED_AT] for row in copies if row[C.INTERACTED_AT] is not None]
    newest = max(times, default=None)
    return {
        **dict.fromkeys(("max", "error"), gains[-1]),
        "sum": math.fsum(gains) if len(gains) > 1 else gains[0],
        "last": max(float(row[C.GAIN]) for row in copies if row[C.INTERACTED_AT] == newest),
    }[duplicates]


def _ordered(own: list[Row], gains: dict[Any, float], rules: ListRules) -> tuple[list[Row], int]:
    """Sort the rows of one list and leave copies out; count those."""
    ranked: list[Row] = []
    n_duplicates = 0
    for row in sorted(own, key=lambda row: (_score(row, rules), _tie_breaker(row, gains, rules))):
        if rules.duplicates != "keep" and any(row[C.ITEM_ID] == other[C.ITEM_ID] for other in ranked):
            n_duplicates += 1
        else:
            ranked.append(row)
    if n_duplicates and rules.duplicates == "error":
        raise Refused(policy="duplicates")
    return ranked, n_duplicates


def _compact(
    key: tuple[Any, ...], ranked: list[Row], n_duplicates: int, gains: dict[Any, float], rules: ListRules
) -> Row:
    """Give ranks to the items of one list and look up its judgements."""
    _, user, _ = key
    ranks = [row[C.RANK] if rules.keeps_gaps else place for place, row in enumerate(ranked, 1)]
    is_tied = [place > 0 and _score(row, rules) == _score(ranked[place - 1], rules) for place, row in enumerate(ranked)]
    if any(is_tied) and (rules.keeps_gaps or rules.ties == "error"):
        raise Refused(policy="rank_gaps" if rules.keeps_gaps else "ties")
    placed = [
        (row[C.ITEM_ID], rank, gains.get((user, row[C.ITEM_ID]))) for row, rank in zip(ranked, ranks, strict=True)
    ]
    hits = [(rank, gain) for _, rank, gain in placed if gain is not None]
    return {
        **dict(zip(C.LIST_KEY, key, strict=True)),
        RANKED: placed,
        C.N_RECOMMENDED: max(ranks, default=0),
        C.N_DUPLICATES: n_duplicates,
        C.HIT_RANKS: [rank for rank, _ in hits],
        C.HIT_GAINS: [gain for _, gain in hits],
        C.JUDGED_GAINS: sorted((gain for (judge, _), gain in gains.items() if judge == user), reverse=True),
        C.TIED_RANKS: [rank for rank, tied in zip(ranks, is_tied, strict=True) if tied],
        **({C.EMPTY_RANKS: _empty_runs(ranks)} if rules.keeps_gaps else {}),
        **_rank_faults(ranked, ranks, n_duplicates, rules),
    }


def _empty_runs(ranks: list[int]) -> list[dict[str, int]] | None:
    """Find the runs of ranks without an item above the last one; None of a list without items."""
    runs: list[dict[str, int]] = []
    for rank in range(1, max(ranks, default=0)):
        if rank in ranks:
            continue
        if runs and runs[-1]["last"] == rank - 1:
            runs[-1]["last"] = rank
        else:
            runs.append({"first": rank, "last": rank})
    return runs if ranks else None


def _score(row: Row, rules: ListRules) -> float:
    """Smaller is better; -0.0 and 0.0 compare equal in Python too."""
    return -float(row[C.SCORE]) if rules.order == C.SCORE else float(row[C.RANK])


def _tie_breaker(row: Row, gains: dict[Any, float], rules: ListRules) -> tuple[Any, ...]:
    """Return what decides between rows of equal score, and at last between copies of an item."""
    logged = math.inf if row.get(C.RANK) is None else float(row[C.RANK])
    item = row[C.ITEM_ID] if isinstance(row[C.ITEM_ID], int) else row[C.ITEM_ID].encode()
    gain = gains.get((row[C.USER_ID], row[C.ITEM_ID]), 0.0)
    return {
        **dict.fromkeys(("item_asc", "expected", "error"), (item, logged)),
        "item_desc": (-item if isinstance(item, int) else _Descending(item), logged),
        "item_desc_bytes": (_Descending(str(row[C.ITEM_ID]).encode()), logged),
        "rank": (logged, item),
        "optimistic": (-gain, item, logged),
        "pessimistic": (gain, item, logged),
    }[rules.ties]


class _Descending(bytes):
    """Bytes that sort the other way around."""

    def __lt__(self, other: bytes) -> bool:
        return bytes(self) > bytes(other)


def _rank_faults(ranked: list[Row], ranks: list[int], n_duplicates: int, rules: ListRules) -> Row:
    """Say how the ranks of the log contradict those that are given; None of a list without items."""
    if not rules.checks_ranks:
        return {}
    names = C.OF_RANKS if rules.order == C.SCORE else C.OF_RANKS[:1]
    if not ranked:
        return dict.fromkeys(names)
    pairs = [(row[C.RANK], rank) for row, rank in zip(ranked, ranks, strict=True) if row[C.RANK] is not None]
    has_gaps = not n_duplicates and sorted(logged for logged, _ in pairs) != sorted(rank for _, rank in pairs)
    is_contrary = any(
        _score(below, rules) > _score(above, rules) and below[C.RANK] < above[C.RANK]
        for above, below in itertools.pairwise(ranked)
        if above[C.RANK] is not None and below[C.RANK] is not None
    )
    return dict(zip(names, (has_gaps, is_contrary), strict=False))
