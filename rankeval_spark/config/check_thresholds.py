"""Checks: the share of faulty rows, lists or users above which a run warns or fails."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, model_validator

from rankeval_spark.columns import MIN_NIGHTS
from rankeval_spark.config.base import Model, Number, Share, Whole, fault_error
from rankeval_spark.errors import Fault, require_same

# Expected of every list by the check `open_windows`, and the fix.
OVER: Final = "a window that is over, for as long as late_data_grace says, when the events are read"
OPEN_FIX: Final = "run the date again later, or publish what is there with --set 'checks.open_windows={warn: 0}'"

_OfLog = Literal["invalid_scores", "zero_ranks", "unknown_items", "unknown_rows", "seen_in_train", "sampled_candidates"]
_OfJudgements = Literal["invalid_gains", "negative_gains", "low_gains", "invalid_values", "invalid_weights"]
_OfItems = Literal["invalid_facts", "vector_lengths"]
_OfMatches = Literal["unmatched_items", "unmatched_lists", "held_out_in_train", "missing_users", "zero_relevant"]
_OfLists = Literal["short_lists", "ties", "extra_users", "rank_gaps", "score_rank_disagree"]
_OfModels = Literal["absent_baseline", "sample_ratio"]
_OfTimes = Literal["before_list", "after_window", "consumed_before", "list_times", "untimed_lists"]
_OfEvents = Literal["untimed_interactions", "open_windows", "events_end", "train_after_cut"]
_OfOthers = Literal["rows", "null_keys", "duplicates", "own_item", "extra_columns", "alike_values"]
_OfWeights = Literal["target_sums", "mean_weight", "effective_sample"]
_OfUsers = Literal["invalid_user_values", "invalid_user_weights", "absent_user_values", "unmatched_users"]
_OfNights = Literal["volume", "absent_models", "fewer_users", "drift"]
CheckName = Literal[
    _OfLog,
    _OfJudgements,
    _OfItems,
    _OfMatches,
    _OfLists,
    _OfModels,
    _OfTimes,
    _OfEvents,
    _OfWeights,
    _OfUsers,
    _OfOthers,
    _OfNights,
]
"""Every check by its name, whoever counts it; those of bands are called ``bands.<name>``, which no list can have."""

MIN_COUNTED: Final = 3  # earlier nights that the check `volume` needs
WITHOUT_THRESHOLDS: Final = ("rows", "vector_lengths")  # and those of bands
BANDS: Final = "bands."


class Threshold(Model):
    """Shares above which a check warns or fails; a threshold that is left out (or null) never applies."""

    warn: Share | None = None
    """Share above which the run warns."""
    error: Share | None = None
    """Share above which the run fails and publishes nothing."""

    @model_validator(mode="after")
    def _warns_before_it_fails(self) -> Threshold:
        if self.warn is not None and self.error is not None and self.warn > self.error:
            found = f"warn {self.warn:g} above error {self.error:g}"
            raise fault_error(Fault("", found, "warn <= error", "exchange the two"))
        return self


class Drift(Threshold):
    """Thresholds of the check `drift`, which compares means with their recent past."""

    window_days: Annotated[Whole, Field(ge=MIN_NIGHTS, le=366)] = 56
    """Days before the night whose published means make the band; a band needs 7 nights, and one that knows the weekday
    four of it."""


class Volume(Threshold):
    """Thresholds of the check `volume`, which compares the number of input rows with earlier nights."""

    window_days: Annotated[Whole, Field(ge=MIN_COUNTED, le=366)] = 28
    """Days before the night whose rows are counted; the check needs 3 published nights."""


class SampleRatio(Threshold):
    """Thresholds of the check `sample_ratio`, which compares the users of each model with its share of the split."""

    alpha: Annotated[Number, Field(gt=0, lt=1)] = 0.001
    """p-value of the split below which the check counts users; at 0.001, one right split in a thousand."""


class Checks(Model):
    """Thresholds of all checks. Naming a check replaces both of its thresholds; `{}` only counts."""

    null_keys: Threshold = Threshold(warn=0, error=0.5)
    """Rows without a model, user, list or item id, which are dropped. Share of the input's rows."""
    invalid_scores: Threshold = Threshold(warn=0, error=0.5)
    """Rows with a missing, NaN, infinite or unreadable score; where ranks order the lists, with a missing or negative
    rank. Share of the recommendation rows."""
    zero_ranks: Threshold = Threshold(error=0)
    """Rows with rank 0 where ranks order the lists and count from 1: such a list would lose its first item. Share of
    the recommendation rows. If ranks count from 0, set `ranks_from: 0` in `inputs.recommendations`."""
    duplicates: Threshold = Threshold(warn=0, error=0.5)
    """Rows that repeat an item of their list, or a judgement. Share of the input's rows. An item twice in the catalogue
    is always an error. Repeated judgements are only counted where policies read them as a signal: with
    `held_out_duplicates` sum or last, and with attribution; repeated items are where `lists` is pooled."""
    invalid_gains: Threshold = Threshold(warn=0, error=0.5)
    """Held-out rows with a missing, NaN, infinite or unreadable gain, which are dropped. Share of the held-out rows."""
    negative_gains: Threshold = Threshold(warn=0)
    """Held-out rows with a gain below 0: items that were pooled and not judged, as in TREC. Share of the held-out
    rows."""
    invalid_facts: Threshold = Threshold(warn=0, error=0.5)
    """Items with an unreadable cell, or with a missing, NaN or infinite number in the vector; the cell then counts as
    unknown. Share of the rows of the catalogue."""
    invalid_values: Threshold = Threshold(warn=0, error=0.5)
    """Held-out rows with a missing, NaN, infinite or unreadable value, which counts as 0. Counted where a measure reads
    values. Share of the held-out rows."""
    invalid_weights: Threshold = Threshold(warn=0, error=0.5)
    """Held-out rows with a weight that is missing, NaN, infinite, unreadable or not above 0; measures with
    `weighted=True` leave them out. Counted where a measure reads weights. Share of the held-out rows."""
    low_gains: Threshold = Threshold(warn=0)
    """Held-out rows with a gain above 0 and below 1, which is not relevant by default. Share of the held-out rows."""
    unmatched_items: Threshold = Threshold(warn=0.9, error=0.99)
    """Held-out rows whose item is in no list: a large share means that ids do not match. Share of the held-out rows."""
    unmatched_lists: Threshold = Threshold(warn=0.5, error=0.99)
    """Held-out rows of a list that the log does not have: a large share means that ids do not match. Counted where
    held_out has the column `list_id`. Share of the held-out rows."""
    short_lists: Threshold = Threshold(warn=0.5)
    """Lists shorter than the largest cutoff. Share of the lists."""
    ties: Threshold = Threshold(warn=0.1)
    """Lists in which the order of equal scores can change a measure. Share of the judged users' lists."""
    extra_users: Threshold = Threshold()
    """Users with a list and no judgement. Share of the users with a list; where users have several, lists without a
    judgement, and their share."""
    missing_users: Threshold = Threshold(warn=0.5, error=0.99)
    """Judged users without a list. Share of the judged users, per model; where users have several lists, of the judged
    lists, and a user without one counts as one; where judgements name lists, of these lists. Models of
    `comparisons.split` that have lists do not count."""
    absent_baseline: Threshold = Threshold(warn=0)
    """1 if the baseline of `comparisons` has no list, else 0."""
    sample_ratio: SampleRatio = SampleRatio(warn=0)
    """Users whom another model was meant to serve, by the shares of `comparisons.split`: of all users, else of the
    slice that differs most. Share of the users of these models. It counts for nothing where chance explains it: where
    the p of a chi-square test, or of an exact one of few users, is at least `alpha`; in slices, times their number."""
    zero_relevant: Threshold = Threshold(warn=0.5)
    """Judged users without a relevant judgement. Share of the judged users."""

    rank_gaps: Threshold = Threshold(warn=0)
    """Lists whose ranks in the log are not 1, 2, 3, ... Counted where the policies renumber ranks and drop no item.
    Share of the lists. Gaps of repeated items belong to `duplicates`."""
    score_rank_disagree: Threshold = Threshold(warn=0)
    """Lists in which an item has a lower score but a better rank than another. Counted where the log has both. Share of
    the lists."""
    unknown_items: Threshold = Threshold(warn=0.01)
    """Recommended items that are not in the catalogue. Share of the distinct recommended items."""
    unknown_rows: Threshold = Threshold()
    """Recommendation rows of such items, where `policies.unknown_items` drops them. Share of the usable rows."""
    seen_in_train: Threshold = Threshold()
    """Recommended items that the user has in the training data, down to the largest cutoff. Share of the recommended
    items. Counted where a measure such as NotInTrain needs it, or where a threshold is set; it costs a join. Where
    `policies.seen_in_train` drops these items, the share is that of all usable rows of the log."""
    own_item: Threshold = Threshold()
    """Rows whose item is the query itself, of the recommendations and of the judgements. Counted where
    `policies.own_item` drops them. Share of the input's rows."""
    held_out_in_train: Threshold = Threshold(warn=0)
    """Judgements whose user has the item in the training data, so that a model may only repeat what it learnt. Share
    of the judgements. Where users consume items again, this is legitimate: `{}` silences the check, and then it is made
    only if `policies.seen_in_train` is `drop_both`, which leaves such pairs out of lists and judgements."""
    before_list: Threshold = Threshold()
    """Interactions no later than the list was shown: no judgements of it. Share of the interactions of its user, over
    all lists. This check and the next seven are made where `policies.attribution` is set."""
    after_window: Threshold = Threshold()
    """Interactions later than the attribution window of a list: no judgements of it. Share as in `before_list`."""
    consumed_before: Threshold = Threshold()
    """Recommended items that the user interacted with no later than the list was shown. Share of the rows of the lists.
    `policies.consumed_before` keeps or drops them."""
    list_times: Threshold = Threshold(warn=0)
    """Lists whose rows were shown at several times; the earliest counts. Share of the lists. Where a time is a list of
    its own, name that column as the list: `columns: {list_id: recommended_at}`."""
    untimed_lists: Threshold = Threshold(warn=0, error=0.5)
    """Lists without a time that can be read, which have no judgements. Times are timestamps, text such as
    2026-01-31 05:00:00, or seconds since 1970. Share of the lists."""
    untimed_interactions: Threshold = Threshold(warn=0, error=0.5)
    """Interactions without such a time: no judgements of any list. Share as in `before_list`."""
    open_windows: Threshold = Threshold(error=0)
    """Lists whose attribution window, with `inputs.held_out.late_data_grace`, was not over when a night was computed.
    Share of the lists with a time. Such a night fails with exit code 4; `{warn: 0}` publishes what is there."""
    events_end: Threshold = Threshold(warn=0.5)
    """Part of the window of the last list that lies after the newest interaction of all users with a list. Share of the
    window: a large one means that not all events of the window are read."""
    train_after_cut: Threshold = Threshold(warn=0)
    """Training interactions on or after the evaluation date, where they have a time. Share of the rows."""
    target_sums: Threshold = Threshold(warn=0, error=0.5)
    """Lists whose scores are no probabilities of a target policy: they add up to more than 1 for each impression of the
    user or, where a measure reads predicted rewards, to less than 1; 1 % is left to rounding. Share of the lists of
    users with an impression. This check and the next two are made where a measure weighs impressions, such as IPS."""
    mean_weight: Threshold = Threshold(warn=0.01, error=0.5)
    """Models whose mean weight of the impressions is not 1: propensities or target probabilities are not what they say,
    or the log lacks what the target policy shows. The share is 1 - smaller / larger of 1 and the nearest end of its
    interval, at the level of `confidence`, so that 0.5 and 2 are 0.5; of several models, the largest one."""
    effective_sample: Threshold = Threshold(warn=0.99)
    """Users that the effective sample lacks, because few have large weights. Share of the users with an impression, of
    the model that lacks most. Below `min_slice_size` effective users a value carries no verdict, whatever this says."""
    invalid_user_values: Threshold = Threshold(warn=0, error=0.5)
    """Own values of users that are missing, NaN, infinite or unreadable, or have no name; they are left out. Share of
    the rows of user_values."""
    invalid_user_weights: Threshold = Threshold(warn=0, error=0.5)
    """Weights of users that are missing, NaN, infinite, unreadable or not above 0; such a user is in no mean. Share of
    the rows of user_weights."""
    absent_user_values: Threshold = Threshold(warn=0)
    """Own values that a measure reads and that no row of user_values has by this name, so that no user has one. Share
    of the names that measures read."""
    unmatched_users: Threshold = Threshold(warn=0.99)
    """Rows of user_values and user_weights whose user has neither a list nor a judgement: a large share means that ids
    do not match. Share of the usable rows that are read."""
    alike_values: Threshold = Threshold(warn=0)
    """Values of a segment that differ from another value only by case or by surrounding blanks; each is a slice of its
    own. Share of the distinct values of the segments in `slices`."""
    sampled_candidates: Threshold = Threshold(warn=0)
    """1 where `inputs.recommendations.sampled_candidates` says that lists rank a sample of the catalogue."""
    extra_columns: Threshold = Threshold()
    """Columns of an input's table that nothing reads. Share of its columns."""
    volume: Volume = Volume(warn=0.5)
    """Distance of an input's number of rows from the median of earlier nights with the same input settings: 1 - smaller
    / larger, so that half and twice as many rows are 0.5."""
    absent_models: Threshold = Threshold(warn=0)
    """Models with lists on the previous night and none on this one. Share of the models that are still requested."""
    fewer_users: Threshold = Threshold(warn=0.5)
    """Users with a list that a model lost since the previous night. Share of its earlier users; the largest share of
    all models counts."""
    drift: Drift = Drift(warn=0)
    """Means over all users that left the band of the earlier nights, with the same definition. Share of the means with
    a band."""

    def threshold(self, check: str) -> Threshold:
        """Return the thresholds of the check of this name, none for one that has none; KeyError without such a check.

        >>> Checks().threshold("ties").warn, Checks().threshold("bands.age").warn
        (0.1, None)
        """
        if check in WITHOUT_THRESHOLDS or check.startswith(BANDS):
            return Threshold()
        thresholds: dict[str, Threshold] = dict(self)
        return thresholds[check]


require_same("Checks", (*Checks.model_fields, *WITHOUT_THRESHOLDS), get_args(CheckName))
