"""What is averaged where that is not the value itself: logarithms, or squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[np.float64]

PUBLISHED: Final[Mapping[str, Callable[[Values], Values]]] = {
    "identity": lambda means: means,
    "log": np.exp,
    "square": lambda means: np.sqrt(np.maximum(means, 0.0)),
}
"""By link, the value that is published of a mean of the link of values; ends of intervals go the same way."""


def published(link: str, means: Values) -> Values:
    """Undo a link; below 0, where an interval of a mean of squares can end, a root is 0.

    Examples
    --------
    >>> published("square", np.array([4.0, -1.0]))
    array([2., 0.])
    """
    with np.errstate(over="ignore"):  # the end of a wide interval of logarithms is infinite
        return PUBLISHED[link](means)


def std_error(link: str, values: Values, std_errors: Values) -> Values:
    """Turn the standard error of a mean of links into that of the published value: the delta method.

    Examples
    --------
    >>> std_error("square", np.array([2.0, 0.0]), np.array([0.4, 0.4]))
    array([0.1, nan])
    """
    if link == "log":
        return std_errors * values
    if link == "square":
        slope: Values = 1 / (2 * np.where(values > 0, values, np.nan))
        return std_errors * slope
    return std_errors
