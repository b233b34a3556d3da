"""Slices of users and items: segments, bands, item groups, and what each reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, assert_never

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from rankeval_spark import columns as C
from rankeval_spark.columns import MIN_USERS
from rankeval_spark.config.base import Model, Number, Whole, each_once, refuse_faults
from rankeval_spark.errors import Fault, nearest


def _crossing(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - a file can hold anything
    names = tuple(value) if isinstance(value, list | tuple) else (value,)
    faults = [] if names else [Fault("", "an empty list", "one or more segment names")]
    for index, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            expected = "the name of a segment"
        elif C.CROSSING in name or name in (C.ALL_USERS, C.USER_ID):
            expected = f"a segment name without {C.CROSSING!r}, other than {C.ALL_USERS!r} and {C.USER_ID!r}"
        elif name in names[:index]:
            expected = "each segment once in a crossing"
        else:
            continue
        faults.append(Fault(f"[{index}]" if len(names) > 1 else "", repr(name), expected))
    refuse_faults(faults)
    return names


_NAMES_SCHEMA = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
Slice = Annotated[
    tuple[str, ...], BeforeValidator(_crossing), WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES_SCHEMA]})
]
ItemSlice = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^([^']+|[^\"]+)$")]
SegmentName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


Quantiles = Annotated[tuple[Annotated[Number, Field(ge=0, le=1)], ...], each_once("quantile")]

NO_INTERACTION: Final = "none"  # band of a user without an interaction in the training data

# Bands of the other users, where there are three bands and no labels are given.
TIERS: Final = ("low", "middle", "high")
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
        faults, edges = [], self.edges or ()
        if self.edges is not None and self.quantiles is not None:
            faults.append(Fault("", "both edges and quantiles", "one of them", "remove one"))
        elif self.edges is None and self.quantiles is None and self.input != "train":
            faults.append(Fault("", "neither edges nor quantiles", "one of them", "write edges: [18, 25, 40]"))
        if any(low >= high for low, high in pairwise(edges)):
            faults.append(Fault(".edges", f"{list(edges)}", "numbers in ascending order, each once"))
        elif self.input == "train" and edges and edges[0] <= 1:
            fix = f"users without an interaction are {NO_INTERACTION!r}, the first band begins at 1"
            faults.append(Fault(".edges", f"{edges[0]:g}", "numbers above 1", fix))
        refuse_faults(faults)
        labels = self.labels or ()
        if labels and len(labels) != self.n_bands:
            refuse_faults([Fault(".labels", f"{len(labels)} labels", f"{self.n_bands}, one for each band")])
        taken = {NO_INTERACTION} if self.input == "train" else set()
        expected = "each label once, other than that of users without an interaction"
        again = [index for index, label in enumerate(labels) if label in labels[:index] or label in taken]
        refuse_faults([Fault(f".labels[{index}]", repr(labels[index]), expected) for index in again])
        return self

    @property
    def input(self) -> Literal["segments", "train"]:
        """Input that the numbers are of."""
        match self.of:
            case None:
                return "segments"
            case "train":
                return "train"
            case _:
                assert_never(self.of)

    @property
    def n_bands(self) -> int:
        """Number of bands, without the band of users without an interaction."""
        return len(self.edges) + 1 if self.edges is not None else self.quantiles or len(TIERS)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the bands; None where their bounds are their names."""
        if self.labels is None and self.input == "train" and self.n_bands == len(TIERS):
            return TIERS
        return self.labels

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the users below each edge, where the edges are quantiles."""
        return tuple(index / self.n_bands for index in range(1, self.n_bands))


def band_faults(
    bands: Mapping[str, Band], *, slices: Iterable[Sequence[str]], given: Collection[str]
) -> Iterator[Fault]:
    """Find bands without a slice or without their input."""
    sliced = list(dict.fromkeys(name for crossing in slices for name in crossing))
    for name in (name for name in bands if name not in sliced):
        found = f"bands of {name!r}, which no slice names"
        yield Fault(f"/slicing/bands.{name}", found, "a segment of slices", nearest(name, sliced))
    for name, band in bands.items():
        if band.input not in given:
            found = f"bands of {name!r}, but no {band.input}"
            yield Fault(f"/slicing/bands.{name}", found, f"the input {band.input}", f"add the input {band.input}")


def segments_from_train(bands: Mapping[str, Band]) -> tuple[str, ...]:
    """Names of the segments that are made of the training data."""
    return tuple(name for name, band in bands.items() if band.input == "train")


class Slicing(Model):
    """Segments made of numbers, groups of items, and what each slice reports."""

    bands: Mapping[SegmentName, Band] = {}
    """Segments of `slices` made of numbers, by edges or quantiles, or of the number of a user's training interactions.
    The table `checks` reports the edges."""
    item_slices: Annotated[tuple[ItemSlice, ...], each_once("item slice")] = ()
    """Groups of items. Every measure that reads judgements is also computed within each group, as R(group='drama').
    Groups are categories of inputs.items, or head, middle and tail by popularity in inputs.train."""
    min_slice_size: Annotated[Whole, Field(ge=1, lt=2**31)] = MIN_USERS
    """Number of users below which a slice is marked as small and a comparison has no p-value."""
    quantiles: Quantiles = ()
    """Shares of the users, such as 0.5 for the median: `metrics` has the quantiles of the users' values. They are exact
    up to 2,049 distinct values of a slice and measure, else within `quantile_error`."""


@dataclass(frozen=True)
class ReportedSlices:
    """Slices that rows are made of, and what holds for the rows of each."""

    segments: Sequence[Sequence[str]]  # of each slice; ``()`` is all users
    min_size: int  # number of users below which a slice is small
    confidence: float  # nominal coverage of the intervals, in (0, 1)
    quantiles: Sequence[float] = ()  # shares of the users up to whose values quantiles are reported

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each slice."""
        return slice_names(self.segments)


def slice_names(slices: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the name of each slice, its segments; that of no segment is all users."""
    return tuple(C.CROSSING.join(names) or C.ALL_USERS for names in slices)
