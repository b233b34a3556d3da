"""Random logs with times, and attribution written out event by event."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import defaultdict
from itertools import cycle
from typing import Any, Final, NamedTuple

MIDNIGHT: Final = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
MODELS: Final = ("als", "pop")
HOUR: Final = 3_600_000_000
WINDOW: Final = 2 * HOUR
NEAR: Final = (-HOUR, -1, 0, 1, HOUR, WINDOW - 1, WINDOW, WINDOW + 1, 3 * HOUR)
"""Microseconds around the moments at which lists are shown: both ends of the window, and one to either side."""


class Shown(NamedTuple):
    """A row of the log."""

    model_id: str
    user_id: str
    list_id: str
    item_id: str
    score: float
    recommended_at: dt.datetime | None


class Event(NamedTuple):
    """An interaction."""

    user_id: str
    item_id: str
    gain: float
    interacted_at: dt.datetime | None


class Claim(NamedTuple):
    """An interaction that a list has as a judgement."""

    model_id: str
    user_id: str
    list_id: str
    item_id: str
    recommended_at: dt.datetime
    interacted_at: dt.datetime
    gain: float
    is_recommended: bool


def moment(micros: int) -> dt.datetime:
    """Return a time so many microseconds after midnight."""
    return MIDNIGHT + dt.timedelta(microseconds=micros)


def random_logs(*, n_users: int, seed: int = 20261125) -> tuple[list[Shown], list[Event]]:
    """Draw logs: lists at equal times, events at the ends of windows, items in several lists, missing times of rows."""
    draw = random.Random(seed)
    log: list[Shown] = []
    events: list[Event] = []
    for number in range(n_users):
        user, starts = f"u{number}", [draw.randrange(0, 4) * HOUR for _ in range(4)]
        for model in MODELS:
            for place in range(draw.choice((0, 1, 2, 4))):
                at = None if draw.random() < 0.05 else moment(starts[place])
                items = draw.sample("abcdef", draw.choice((1, 2, 4)))
                name = draw.choice(("x", "y", "é")) + str(place)
                log += [Shown(model, user, name, item, float(-rank), at) for rank, item in enumerate(items)]
                if len(items) == 4:  # the other rows say when the list was shown
                    log[-2] = log[-2]._replace(recommended_at=None)
        for _ in range(draw.choice((0, 1, 3, 6))):
            at = None if draw.random() < 0.05 else moment(draw.choice(starts) + draw.choice(NEAR))
            events.append(Event(user, draw.choice("abcdefg"), draw.choice((0.0, 1.0, 2.0)), at))
    return log, events


def with_unusable(log: list[Shown], events: list[Event]) -> tuple[list[Shown], list[Event]]:
    """Add rows that no evaluation uses: they would make lists of events' items earlier, and events of items later."""
    of_log: list[dict[str, Any]] = [
        *({name: None} for name in ("model_id", "user_id", "list_id", "item_id")),
        *({"score": score} for score in (None, math.nan, math.inf, -math.inf)),
    ]
    of_events: list[dict[str, Any]] = [
        *({name: None} for name in ("user_id", "item_id")),
        *({"gain": gain} for gain in (None, math.nan, math.inf)),
    ]
    early = [row._replace(item_id="g", recommended_at=moment(-1)) for row in log]
    late = [event._replace(interacted_at=moment(2 * HOUR)) for event in events]
    return (
        [*log, *(row._replace(**change) for row, change in zip(early, cycle(of_log), strict=False))],
        [*events, *(event._replace(**change) for event, change in zip(late, cycle(of_events), strict=False))],
    )


def attributed(log: list[Shown], events: list[Event], *, claim: str, window: int = WINDOW) -> list[Claim]:
    """Look at every list for every event."""
    lists: dict[tuple[str, str, str], list[Shown]] = defaultdict(list)
    for row in log:
        lists[row[:3]].append(row)
    length = dt.timedelta(microseconds=window)
    found = []
    for event in events:
        for model in MODELS:
            claims = []
            for (model_id, user_id, name), rows in lists.items():
                times = [row.recommended_at for row in rows if row.recommended_at is not None]
                if (model_id, user_id) != (model, event.user_id) or not times or event.interacted_at is None:
                    continue
                shown = min(times)
                if shown < event.interacted_at <= shown + length:
                    has_item = any(row.item_id == event.item_id for row in rows)
                    claims.append(
                        Claim(model, user_id, name, event.item_id, shown, event.interacted_at, event.gain, has_item)
                    )
            found += claims if claim == "all" else _one_of(claims, is_last=claim == "last_touch")
    return found


def _one_of(claims: list[Claim], *, is_last: bool) -> list[Claim]:
    with_item = [one for one in claims if one.is_recommended]
    ordered = sorted(with_item or claims, key=lambda one: (one.recommended_at, one.list_id.encode()))
    return ordered[-1:] if is_last else ordered[:1]


def judgements(log: list[Shown], events: list[Event], *, claim: str) -> dict[tuple[str, str, str], dict[str, float]]:
    """Gain of each judged item of each list, the largest of several; a user without a list has an empty one."""
    found: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)

    def add(key: tuple[str, str, str], event: Any) -> None:  # noqa: ANN401 - an event or a claim
        found[key][event.item_id] = max(event.gain, found[key].get(event.item_id, event.gain))

    for one in attributed(log, events, claim=claim):
        add(one[:3], one)
    listed = {row[:2] for row in log}
    for event in events:
        for model in MODELS:
            if (model, event.user_id) not in listed:
                add((model, event.user_id, ""), event)
    return found
