"""Segments made of numbers: an age in bands, or how active a user was in the training data."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from rankeval_spark.config.base import Model, Number, Whole, fault_error
from rankeval_spark.errors import Fault, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NO_INTERACTION: Final = "none"
"""Value of a user without an interaction in the training data."""

TIERS: Final = ("low", "middle", "high")
"""Values of the others, where there are three bands of them and nothing else is said."""

BandLabel = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Band(Model):
    """How the numbers of a segment column, or the users' training interactions, become a few values."""

    of: Literal["train"] | None = None
    """`train`: the number of the user's interactions in inputs.train, `none` for a user without; without this key the
    segment column of that name."""
    edges: Annotated[tuple[Number, ...], Field(min_length=1, max_length=100)] | None = None
    """Where each band but the first begins, ascending; a band holds its edge: [18, 25, 40] is < 18, [18, 25), [25, 40),
    >= 40."""
    quantiles: Annotated[Whole, Field(ge=2, le=100)] | None = None
    """Number of bands with about as many users each; for `of: train` 3 where neither edges nor quantiles are given."""
    labels: Annotated[tuple[BandLabel, ...], Field(min_length=1)] | None = None
    """What the bands are called instead, the lowest first; low, middle, high for three bands of `of: train`."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Band:
        faults = [*self._rule_faults(), *self._edge_faults()]
        faults = faults or self._label_faults()
        if faults:
            raise fault_error(*faults)
        return self

    def _rule_faults(self) -> list[Fault]:
        if self.edges is not None and self.quantiles is not None:
            return [Fault("", "both edges and quantiles", "one of them", "remove one")]
        if self.edges is None and self.quantiles is None and self.of is None:
            return [Fault("", "neither edges nor quantiles", "one of them", "write edges: [18, 25, 40]")]
        return []

    def _edge_faults(self) -> list[Fault]:
        edges = self.edges or ()
        if any(one >= other for one, other in pairwise(edges)):
            return [Fault(".edges", f"{list(edges)}", "numbers in ascending order, each once")]
        if self.of is not None and edges and edges[0] <= 1:
            fix = f"users without an interaction are {NO_INTERACTION!r}, the first band begins at 1"
            return [Fault(".edges", f"{edges[0]:g}", "numbers above 1", fix)]
        return []

    def _label_faults(self) -> list[Fault]:
        labels = self.labels or ()
        if labels and len(labels) != self.n_bands:
            return [Fault(".labels", f"{len(labels)} labels", f"{self.n_bands}, one for each band")]
        taken = {NO_INTERACTION} if self.of is not None else set()
        return [
            Fault(f".labels[{index}]", repr(label), "each label once, other than that of users without an interaction")
            for index, label in enumerate(labels)
            if label in labels[:index] or label in taken
        ]

    @property
    def n_bands(self) -> int:
        """Number of bands, that of users without an interaction left out."""
        return len(self.edges) + 1 if self.edges is not None else self.quantiles or len(TIERS)

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the bands are called; None where their bounds are their names."""
        if self.labels is None and self.of is not None and self.n_bands == len(TIERS):
            return TIERS
        return self.labels

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the users below the edges, where these are quantiles."""
        return tuple(index / self.n_bands for index in range(1, self.n_bands))


def band_faults(
    bands: Mapping[str, Band], *, slices: Iterable[Sequence[str]], given: Iterable[str]
) -> list[tuple[str, Fault]]:
    """Return the bands that do not fit the rest of the request: the name of each, and the fault.

    Parameters
    ----------
    slices : iterable of sequences of str
        Segments and crossings that are reported on.
    given : iterable of str
        Inputs that there are.
    """
    sliced = list(dict.fromkeys(name for one in slices for name in one))
    inputs = set(given)
    faults = [
        (name, Fault("", f"bands of {name!r}, which no slice names", "a segment of slices", nearest(name, sliced)))
        for name in bands
        if name not in sliced
    ]
    lacking = [(name, "train" if band.of else "segments") for name, band in bands.items()]
    return faults + [
        (name, Fault("", f"bands of {name!r}, but no {needed}", f"the input {needed}", f"give {needed}"))
        for name, needed in lacking
        if needed not in inputs
    ]


def of_train(bands: Mapping[str, Band]) -> tuple[str, ...]:
    """Name the segments that are made of the training data."""
    return tuple(name for name, band in bands.items() if band.of == "train")
