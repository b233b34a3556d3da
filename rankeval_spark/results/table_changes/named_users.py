"""Texts that name a user, and the proof that nothing is left of what was deleted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rankeval_spark import schemas
from rankeval_spark.errors import Fault, ResultsError
from rankeval_spark.results.storage import delta_log
from rankeval_spark.results.storage.delta_log import NO_OTHER_WRITER

if TYPE_CHECKING:
    from rankeval_spark.results.storage.commits import Root

NAMED_IN: Final = (schemas.CHECKS.name, schemas.RUNS.name)
"""Tables whose texts can name a user."""

WITHOUT_USERS: Final = (schemas.METRICS.name, "items")
"""Inputs whose checks name other things than users; so do checks of :data:`BANDS`."""

BANDS: Final = "bands."

REMOVED: Final = "removed: it named a user who was erased"
"""What takes the place of an error message."""

BETWEEN_KEYS: Final = r"[\s;,]+"


def with_blanks(text: str) -> str:
    """Write a text with one blank between its keys, and one at each end.

    Examples
    --------
    >>> with_blanks("ann;m, bob")
    ' ann m bob '
    """
    return f" {re.sub(BETWEEN_KEYS, ' ', text, flags=re.ASCII)} "


def names_user(text: str | None, user: str) -> bool:
    """Return True if a user id is in a text between blanks, commas or semicolons, which part keys and their parts.

    Examples
    --------
    >>> names_user("m ann, m bob", "ann"), names_user("m anna", "ann")
    (True, False)
    """
    return text is not None and with_blanks(user) in with_blanks(text)


def require_none(root: Root, table: str, *, n_rows: int) -> None:
    """Refuse rows that are still there after they were deleted or changed.

    Raises
    ------
    ResultsError
        There are any.
    """
    if n_rows:
        raise ResultsError(
            Fault(
                f"table {table}, version {delta_log.latest_version(root.storage, table)}",
                "rows that were just deleted or changed",
                "none of them",
                NO_OTHER_WRITER,
            )
        )
