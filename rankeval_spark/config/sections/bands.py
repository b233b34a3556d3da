"""Segments made of numbers: age in bands, or a user's activity in the training data."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from rankeval_spark.config.sections.base import Model, Number, Whole, refuse_faults
from rankeval_spark.errors import Fault, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NO_INTERACTION: Final = "none"
"""Band of a user without an interaction in the training data."""

TIERS: Final = ("low", "middle", "high")
"""Bands of the other users, where there are three bands and no labels are given."""

BandLabel = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Band(Model):
    """Bands that group the numbers of a segment column, or the users' numbers of training interactions."""

    of: Literal["train"] | None = None
    """`train` counts the user's interactions in inputs.train; users without any are in the band `none`. Without this
    key, the numbers are those of the segment column of the same name."""
    edges: Annotated[tuple[Number, ...], Field(min_length=1, max_length=100)] | None = None
    """Lower edge of each band but the first, ascending: [18, 25, 40] makes the bands < 18, [18, 25), [25, 40) and
    >= 40."""
    quantiles: Annotated[Whole, Field(ge=2, le=100)] | None = None
    """Number of bands with about as many users each. With `of: train` the default is 3."""
    labels: Annotated[tuple[BandLabel, ...], Field(min_length=1)] | None = None
    """Names of the bands, lowest first. Without this key, three bands of `of: train` are called low, middle and high,
    and all others by their bounds."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Band:
        refuse_faults([*self._rule_faults(), *self._edge_faults()] or self._label_faults())
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
        """Number of bands, without the band of users without an interaction."""
        return len(self.edges) + 1 if self.edges is not None else self.quantiles or len(TIERS)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the bands; None where their bounds are their names."""
        if self.labels is None and self.of is not None and self.n_bands == len(TIERS):
            return TIERS
        return self.labels

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the users below each edge, where the edges are quantiles."""
        return tuple(index / self.n_bands for index in range(1, self.n_bands))


def band_faults(
    bands: Mapping[str, Band], *, slices: Iterable[Sequence[str]], given: Iterable[str]
) -> list[tuple[str, Fault]]:
    """Find bands without a slice or without their input: the name of each band, and its fault."""
    sliced = list(dict.fromkeys(name for one in slices for name in one))
    inputs = set(given)
    unused = [
        (name, Fault("", f"bands of {name!r}, which no slice names", "a segment of slices", nearest(name, sliced)))
        for name in bands
        if name not in sliced
    ]
    needed = {name: "train" if band.of else "segments" for name, band in bands.items()}
    return unused + [
        (name, Fault("", f"bands of {name!r}, but no {one}", f"the input {one}", f"add the input {one}"))
        for name, one in needed.items()
        if one not in inputs
    ]


def segments_from_train(bands: Mapping[str, Band]) -> tuple[str, ...]:
    """Names of the segments that are made of the training data."""
    return tuple(name for name, band in bands.items() if band.of == "train")
