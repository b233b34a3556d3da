"""How much of what is wrong with the input is tolerated, per check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from rankeval_spark.config.base import Model, Share, Whole, fault_error
from rankeval_spark.errors import Fault
from rankeval_spark.statistics.drift import LEAST_NIGHTS

LEAST_COUNTED: Final = 3
"""Earlier nights below which nothing is said about the rows of an input."""


class Threshold(Model):
    """Shares above which a check warns or fails; one that is left out (or null) never does."""

    warn: Share | None = None
    """Warn where more than this share is concerned."""
    error: Share | None = None
    """Fail, and publish nothing, where more than this share is concerned."""

    @model_validator(mode="after")
    def _warns_before_it_fails(self) -> Threshold:
        if self.warn is not None and self.error is not None and self.warn > self.error:
            found = f"warn {self.warn:g} above error {self.error:g}"
            raise fault_error(Fault("", found, "warn <= error", "exchange the two"))
        return self


class Drift(Threshold):
    """Thresholds of the check that means stay in the band of their own recent past."""

    window_days: Annotated[Whole, Field(ge=LEAST_NIGHTS, le=366)] = 28
    """Days before the night whose published means make the band; no mean has one with fewer than 7 nights."""


class Volume(Threshold):
    """Thresholds of the check that inputs have as many rows as they used to."""

    window_days: Annotated[Whole, Field(ge=LEAST_COUNTED, le=366)] = 28
    """Days before the night whose rows are counted; nothing is said with fewer than 3 published nights among them."""


class Checks(Model):
    """Thresholds of the checks, all in one table.

    Naming a check replaces both its thresholds; `{}` makes it count only.
    """

    null_keys: Threshold = Threshold(warn=0, error=0.5)
    """Rows with a NULL model, user, list or item id, which are dropped; share of the input's rows."""
    invalid_scores: Threshold = Threshold(warn=0, error=0.5)
    """Rows with a NULL, NaN, infinite or unparsable score, or with a rank that is NULL or negative where ranks order
    the lists; share of the recommendation rows."""
    zero_ranks: Threshold = Threshold(error=0)
    """Rows with rank 0 where ranks order the lists and count from 1: such a list would lose its first item; share of
    the recommendation rows. For a log that counts from 0 write `ranks_from: 0` in `inputs.recommendations`."""
    duplicates: Threshold = Threshold(warn=0, error=0.5)
    """Rows that repeat an item of their list, or a judgement; share of the input's rows. An item twice in the
    catalogue is always an error."""
    null_gains: Threshold = Threshold(warn=0, error=0.5)
    """Held-out rows with a NULL, NaN or unparsable gain; share of the held-out rows."""
    negative_gains: Threshold = Threshold(warn=0)
    """Held-out rows with a gain below 0, which counts as none: in TREC's files it marks what was pooled and not judged;
    share of the held-out rows."""
    invalid_facts: Threshold = Threshold(warn=0, error=0.5)
    """Items with a cell that cannot be read, or with a NULL, NaN or infinite number in the vector, which is then
    unknown; share of the rows of the catalogue."""
    null_values: Threshold = Threshold(warn=0, error=0.5)
    """Held-out rows with a NULL, NaN, infinite or unparsable value, which then counts as 0, where a measure reads
    values; share of the held-out rows."""
    low_gains: Threshold = Threshold(warn=0)
    """Held-out rows with a gain above 0 and below 1, which is not relevant by default; share of the held-out rows."""
    unmatched_items: Threshold = Threshold(warn=0.9, error=0.99)
    """Held-out rows whose item no list contains, the sign of ids that do not fit; share of the held-out rows."""
    short_lists: Threshold = Threshold(warn=0.5)
    """Lists shorter than the largest cutoff; share of the lists."""
    ties: Threshold = Threshold(warn=0.1)
    """Lists in which equal scores can change a measure; share of the judged users' lists."""
    extra_users: Threshold = Threshold()
    """Users with a list and no judgement; share of the users with a list."""
    missing_users: Threshold = Threshold(warn=0.5, error=0.99)
    """Judged users without a list; share of the judged users, per model."""
    absent_baseline: Threshold = Threshold(warn=0)
    """Whether the baseline of `comparisons` has no list: 1 or 0."""
    zero_relevant: Threshold = Threshold(warn=0.5)
    """Judged users without a relevant judgement; share of the judged users."""

    rank_gaps: Threshold = Threshold(warn=0)
    """Lists whose ranks in the log are not 1, 2, 3, ... without a gap, where the log has ranks and the policies assign
    them again and drop no item; share of the lists. A gap that a repeated item leaves is counted by `duplicates`."""
    score_rank_disagree: Threshold = Threshold(warn=0)
    """Lists in which an item has a lower score and a better rank than the one before it, where the log has both; share
    of the lists."""
    unknown_items: Threshold = Threshold(warn=0.01)
    """Recommended items that the catalogue does not have; share of the different items that are recommended."""
    unknown_rows: Threshold = Threshold()
    """Recommendation rows of such items, counted where `policies.unknown_items` drops them; share of the rows that can
    be used."""
    seen_in_train: Threshold = Threshold()
    """Recommended items that the user has in the training data, down to the largest cutoff; share of the recommended
    items. Counted where a measure such as NotInTrain needs it, down to its cutoff, or a threshold is set: it costs
    a join. Where `policies.seen_in_train` drops them, in all rows of the log that can be used, before anything is
    scored."""
    train_after_cut: Threshold = Threshold(warn=0)
    """Training interactions of the evaluation date (UTC) or later, where they have a time; share of the rows."""
    alike_values: Threshold = Threshold(warn=0)
    """Values of a segment that differ from another only by case or by surrounding blanks, each a slice of its own;
    share of the different values of the segments that `slices` names."""
    extra_columns: Threshold = Threshold()
    """Columns of an input's table that nothing reads; share of its columns."""
    volume: Volume = Volume(warn=0.5)
    """How far the rows of an input are from the median of the nights before that read it alike: 1 - fewer / more, so
    that half and twice as many rows are 0.5."""
    absent_models: Threshold = Threshold(warn=0)
    """Models that gave lists on the last night before and give none tonight; share of those that are still
    requested."""
    fewer_users: Threshold = Threshold(warn=0.5)
    """Users with a list that a model lost since the last night before; share of those it had, of the model that lost
    most."""
    drift: Drift = Drift(warn=0)
    """Means over all users that left the band of the nights before, of the same definition; share of those that have a
    band."""

    @model_validator(mode="before")
    @classmethod
    def _default_where_null(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever was written
        """Keep a line that was half commented out from taking a threshold away: ``{}`` says to count only."""
        if isinstance(values, Mapping):
            return {check: threshold for check, threshold in values.items() if threshold is not None}
        return values

    def threshold(self, check: str) -> Threshold:
        """Return the thresholds of the check of this name."""
        thresholds: dict[str, Threshold] = {name: getattr(self, name) for name in Checks.model_fields}
        return thresholds[check]
