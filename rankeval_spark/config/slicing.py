"""Slices of users and items: segments, bands, item groups, and what each reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from rankeval_spark import columns as C
from rankeval_spark.columns import MIN_USERS
from rankeval_spark.config.base import Model, Number, Whole, each_once, refuse_faults
from rankeval_spark.errors import Fault, nearest, require_same


def _check_crossing(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - a file can hold anything
    """Return the segments of a slice, one or a list; refuse names that no segment can have."""
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
    tuple[str, ...], BeforeValidator(_check_crossing), WithJsonSchema({"anyOf": [{"type": "string"}, _NAMES_SCHEMA]})
]
ItemSlice = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^([^']+|[^\"]+)$")]
SegmentName = Annotated[str, StringConstraints(min_length=1, max_length=255)]


Quantiles = Annotated[tuple[Annotated[Number, Field(ge=0, le=1)], ...], each_once("quantile")]

SEGMENTS: Final = "segments"  # input whose columns are segments by their own names


@dataclass(frozen=True)
class SegmentKind:
    """Input that the numbers of a segment are of, and what its bands are unless the config says."""

    input: str
    columns: tuple[str, ...] = (C.USER_ID,)  # that are read of the input, besides columns of segments
    absent: str | None = None  # band of users without a row in the input; None: they are unknown
    lacking: str = "an interaction"  # what such users are without, for messages
    least: float | None = None  # least number of a user with a row, above which all edges are
    tiers: tuple[str, ...] = ()  # bands where neither edges nor quantiles are given, and names of so many bands


KindName = Literal["train"]

SEGMENT_KINDS: Final[Mapping[KindName | None, SegmentKind]] = {
    None: SegmentKind(SEGMENTS),
    "train": SegmentKind("train", absent="none", least=1, tiers=("low", "middle", "high")),
}
"""Kinds of segments made of numbers, by the key `of`. How the numbers of all but the first are computed is in `NUMBERS`
of `in_process/user_segments.py` and `spark/plans/bands.py`."""

require_same("SEGMENT_KINDS", [name for name in SEGMENT_KINDS if name is not None], get_args(KindName))

BandLabel = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Band(Model):
    """Bands that group the numbers of a segment column, or the users' numbers of training interactions."""

    of: KindName | None = None
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
        faults, edges, kind = [], self.edges or (), self.kind
        if self.edges is not None and self.quantiles is not None:
            faults.append(Fault("", "both edges and quantiles", "one of them", "remove one"))
        elif self.edges is None and self.quantiles is None and not kind.tiers:
            faults.append(Fault("", "neither edges nor quantiles", "one of them", "write edges: [18, 25, 40]"))
        if any(low >= high for low, high in pairwise(edges)):
            faults.append(Fault(".edges", f"{list(edges)}", "numbers in ascending order, each once"))
        elif kind.least is not None and edges and edges[0] <= kind.least:
            fix = f"users without {kind.lacking} are {kind.absent!r}, the first band begins at {kind.least:g}"
            faults.append(Fault(".edges", f"{edges[0]:g}", f"numbers above {kind.least:g}", fix))
        refuse_faults(faults)
        labels = self.labels or ()
        if labels and len(labels) != self.n_bands:
            refuse_faults([Fault(".labels", f"{len(labels)} labels", f"{self.n_bands}, one for each band")])
        expected = f"each label once, other than that of users without {kind.lacking}"
        again = [index for index, label in enumerate(labels) if label in labels[:index] or label == kind.absent]
        refuse_faults([Fault(f".labels[{index}]", repr(labels[index]), expected) for index in again])
        return self

    @property
    def kind(self) -> SegmentKind:
        """Input and column of the numbers."""
        return SEGMENT_KINDS[self.of]

    @property
    def n_bands(self) -> int:
        """Number of bands, without the band of users who have no row."""
        return len(self.edges) + 1 if self.edges is not None else self.quantiles or len(self.kind.tiers)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the bands; None where their bounds are their names."""
        tiers = self.kind.tiers
        return tiers if self.labels is None and tiers and self.n_bands == len(tiers) else self.labels

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
        wanted = band.kind.input
        if wanted not in given:
            found = f"bands of {name!r}, but no {wanted}"
            yield Fault(f"/slicing/bands.{name}", found, f"the input {wanted}", f"add the input {wanted}")


class Slicing(Model):
    """Segments made of numbers, groups of items, and what each slice reports."""

    bands: Mapping[SegmentName, Band] = {}
    """Segments of `slices` made of numbers, by edges or quantiles, or of the number of a user's training interactions.
    The table `checks` reports the edges."""
    item_slices: Annotated[tuple[ItemSlice, ...], each_once("item slice")] = ()
    """Groups of items. Every measure that reads judgements is also computed within each group, as R(group='drama').
    Groups are categories of inputs.items; head, middle and tail by popularity in inputs.train; repeat and explore, what
    the user has there and what the user does not have."""
    min_slice_size: Annotated[Whole, Field(ge=1, lt=2**31)] = MIN_USERS
    """Number of users below which a slice is marked as small and a comparison has no p-value."""
    quantiles: Quantiles = ()
    """Shares of the users, such as 0.5 for the median: `metrics` has the quantiles of the users' values. They are exact
    up to 2,049 distinct values of a slice and measure, else within `quantile_error`."""

    @property
    def computed(self) -> tuple[str, ...]:
        """Segments that are computed from rows of another input, so no columns of the segment table."""
        return tuple(name for name, band in self.bands.items() if band.kind.input != SEGMENTS)

    def bands_from(self, name: str) -> dict[str, Band]:
        """Return the bands whose numbers come from an input, by segment."""
        return {segment: band for segment, band in self.bands.items() if band.kind.input == name}


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
