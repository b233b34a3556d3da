"""The canonical inputs and the published tables: the one place where their columns are declared.

Types are Spark type strings; nothing here imports Spark. ``docs/tables.md`` is generated from this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rankeval_spark import columns as C


@dataclass(frozen=True)
class Field:
    """A column: its name, its Spark type string and what it holds."""

    name: str
    type: str
    comment: str
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    """The columns of a frame or a table and the columns that identify a row."""

    name: str
    grain: str
    key: tuple[str, ...]
    fields: tuple[Field, ...]

    def field_names(self) -> list[str]:
        """Names of the columns, in order."""
        return [field.name for field in self.fields]

    def field(self, name: str) -> Field:
        """Return the column called ``name``."""
        return next(field for field in self.fields if field.name == name)


_SLICE_VALUE: Final = (
    "Readable form of slice_values, joined by *: NULL is (unknown); a text that is (unknown), holds * or begins with a "
    "quote is in double quotes; '' for the slice 'all'"
)


def _key(name: str, type_: str, comment: str) -> Field:
    return Field(name, type_, comment, nullable=False)


# Ids keep the type they come with in `evaluate`; published tables hold them as strings.
RECOMMENDATIONS: Final = Schema(
    "recommendations",
    "one recommended item of one list",
    (C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID),
    (
        _key(C.MODEL_ID, "string", "Model that made the list"),
        _key(C.USER_ID, "string", "User who got the list"),
        _key(C.LIST_ID, "string", "Distinguishes several lists of one user; '' where there is one"),
        _key(C.ITEM_ID, "string", "Recommended item"),
        Field(
            C.SCORE,
            "double",
            "Score by which the list is ordered, higher first; whole numbers and decimals as they are",
        ),
        Field(C.RANK, "int", "Position, counted from 1; used where there is no score, or for ties='rank'"),
    ),
)

HELD_OUT: Final = Schema(
    "held_out",
    "one held-out interaction of one user: a judgement",
    (C.USER_ID, C.ITEM_ID),
    (
        _key(C.USER_ID, "string", "User"),
        _key(C.ITEM_ID, "string", "Item the user interacted with"),
        Field(C.GAIN, "double", "Gain of the interaction; 1 where the table has no such column"),
        Field(C.INTERACTED_AT, "timestamp", "When it was; needed for held_out_duplicates='last' only"),
        Field(C.VALUE, "double", "What it was worth, such as revenue; read by measures with gains='value' only"),
    ),
)

TRAIN: Final = Schema(
    "train",
    "one interaction of the data that the models learnt from; a user may have several with an item",
    (C.USER_ID, C.ITEM_ID),
    (
        _key(C.USER_ID, "string", "User"),
        _key(C.ITEM_ID, "string", "Item the user interacted with"),
        Field(C.INTERACTED_AT, "timestamp", "When that was"),
    ),
)

ITEMS: Final = Schema(
    "items",
    "one item of the catalogue",
    (C.ITEM_ID,),
    (
        _key(C.ITEM_ID, "string", "Item"),
        Field(C.CATEGORIES, "array<string>", "Categories of the item; NULL or empty is unknown"),
        Field(C.VECTOR, "array<double>", "Features of the item, of one length for all items; NULL is unknown"),
        Field(C.PUBLISHED_AT, "date", "Day the item was published (UTC); NULL is unknown"),
    ),
)

_RUN: Final = (
    _key(C.EVALUATION, "string", "Name of the evaluation"),
    _key(C.EVALUATION_DATE, "date", "Day the evaluation is about (UTC)"),
    _key(C.RUN_ID, "string", "Run that wrote the row"),
)

_LIST_KEY: Final = (
    _key(C.MODEL_ID, "string", "Model that made the list"),
    _key(C.USER_ID, "string", "User who got the list"),
    _key(C.LIST_ID, "string", "Distinguishes several lists of one user; '' where there is one"),
)

_SLICE_KEY: Final = (
    _key(C.SLICE, "string", "Segment column, crossing such as country*device, or 'all'"),
    _key(C.SLICE_VALUE, "string", _SLICE_VALUE),
    _key(C.SLICE_VALUES, "array<string>", "Segment values of the slice; a NULL element is unknown"),
)

RUNS: Final = Schema(
    "runs",
    "one event of one run",
    (*C.RUN_KEY, "status", "recorded_at"),
    (
        *_RUN,
        _key("status", "string", "RUNNING, PUBLISHING, PUBLISHED, FAILED, MAINTAINING or MAINTAINED"),
        _key("recorded_at", "timestamp", "When the event was recorded (UTC)"),
        Field("reason", "string", "Why the run ended as it did: empty date, failed stage"),
        Field("sample_share", "double", "Share of users evaluated, in (0, 1]; 1 is everyone"),
        Field("config", "string", "Configuration of the run as JSON, secrets left out"),
        Field("config_hash", "string", "SHA-256 of the canonical configuration"),
        Field("code_version", "string", "Version of rankeval-spark"),
        Field(
            "inputs",
            "array<struct<name:string,location:string,format:string,version:bigint,n_rows:bigint>>",
            "Inputs with the table version that was read (Delta only) and the rows found",
        ),
        Field(
            "input_columns",
            "map<string,string>",
            "Columns and types of the table of each input, such as 'user_id string, day date'",
        ),
        Field(
            "measures",
            "array<struct<measure:string,k:int,column:string,definition:string>>",
            "What was requested: name, cutoff (0 = whole list), column in user_metrics (NULL: none), every option and "
            "policy, and the rule of a group of items",
        ),
        Field("table_versions", "map<string,bigint>", "Delta version of every table as published"),
        Field("timings", "map<string,double>", "Seconds spent in each stage"),
        Field("n_rows", "map<string,bigint>", "Rows published to each table"),
        Field("error", "struct<stage:string,type:string,message:string>", "Stage and cause of a failure"),
        Field("failed_checks", "array<string>", "Checks of severity error that failed"),
    ),
)

LISTS: Final = Schema(
    "lists",
    "one list of one model for one user (list_id '' and n_recommended 0 where the model gave a judged user none)",
    (C.EVALUATION, C.EVALUATION_DATE, *C.LIST_KEY),
    (
        *_RUN,
        *_LIST_KEY,
        Field(C.SEGMENTS, "map<string,string>", "Segment values of the user; a NULL value is unknown"),
        Field(C.N_RECOMMENDED, "int", "Last rank of the list after the list policies; 0 = no list", nullable=False),
        Field(C.N_DUPLICATES, "int", "Repeated items removed from the list", nullable=False),
        Field(C.HIT_RANKS, "array<int>", "Ranks of the judged items in the list, ascending", nullable=False),
        Field(C.HIT_GAINS, "array<double>", "Gains of those items, in the same order", nullable=False),
        Field(C.JUDGED_GAINS, "array<double>", "Gains of all judgements of the user, descending", nullable=False),
        Field(C.TIED_RANKS, "array<int>", "Ranks whose score is that of the rank before, ascending", nullable=False),
        Field(C.HIT_SCORES, "array<double>", "Scores of the hits; NULL where no measure of the run needs them"),
        Field(
            C.EMPTY_RANKS,
            "array<struct<first:int,last:int>>",
            "Runs of ranks without an item, ascending; NULL without a list, or where ranks are given again",
        ),
        Field(
            C.HAS_RANK_GAPS,
            "boolean",
            "The ranks of the log are not 1, 2, 3, ...; NULL without a list, or where the log has none or keeps them",
        ),
        Field(
            C.IS_OUT_OF_ORDER,
            "boolean",
            "An item has a lower score than the one before it and a better rank in the log; NULL likewise, and where "
            "there is no score",
        ),
    ),
)

USER_METRICS: Final = Schema(
    "user_metrics",
    "one list at one cutoff",
    (C.EVALUATION, C.EVALUATION_DATE, *C.LIST_KEY, C.K),
    (
        *_RUN,
        *_LIST_KEY,
        _key(C.K, "int", "Cutoff; 0 = whole list"),
        Field(C.SEGMENTS, "map<string,string>", "Segment values of the user; a NULL value is unknown"),
        Field(C.N_JUDGED, "int", "Judgements of the user", nullable=False),
        Field(C.N_RELEVANT, "int", "Judgements of the user with gain >= 1", nullable=False),
        Field(
            C.N_RECOMMENDED,
            "int",
            "Recommended items at ranks <= k, and empty ranks where rank_gaps keeps them; 0 = the model gave no list",
            nullable=False,
        ),
        Field(C.N_HITS, "int", "Recommended items at ranks <= k with gain >= 1", nullable=False),
        Field(
            C.HAS_TIES,
            "boolean",
            "A block of equal scores that starts at a rank <= k holds different gains; NULL without a list",
        ),
        # One double column a measure follows, NULL where undefined or not requested at this k.
    ),
)

METRICS: Final = Schema(
    "metrics",
    "one measure at one cutoff for one model on one slice of the users",
    (C.EVALUATION, C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K),
    (
        *_RUN,
        _key(C.MODEL_ID, "string", "Model"),
        *_SLICE_KEY,
        _key(C.MEASURE, "string", "Canonical name without its cutoff"),
        _key(C.K, "int", "Cutoff; 0 = whole list"),
        Field(
            C.VALUE,
            "double",
            "Mean over users, over lists with the policy unit='list', with agg='micro' the ratio of sums over them, or "
            "the value of a measure of all lists together; NULL where no user has a value",
        ),
        Field(
            "n_users",
            "bigint",
            "Users in the mean; for a measure of all lists, those with a list",
            nullable=False,
        ),
        Field(
            C.N_LISTS,
            "bigint",
            "Lists of these users for which the measure is defined; a judged user without a list who scores 0 has one. "
            "n_users where each has one list; NULL in rows of a version before this column",
        ),
        Field(
            "n_undefined",
            "bigint",
            "Users of the population for whom the measure is undefined, n_zero_relevant among them; NULL, as the next "
            "three, for a measure of all lists together, which asks for no judgement",
        ),
        Field("n_missing", "bigint", "Judged users without a list of the model"),
        Field("n_zero_relevant", "bigint", "Judged users without a relevant judgement (gain >= 1)"),
        Field("n_extra_users", "bigint", "Users with a list but no judgement"),
        Field("tie_share", "double", "Share of judged users' lists whose ties can change the measure at k"),
        Field("is_small", "boolean", "The slice has fewer users than min_slice_size", nullable=False),
        Field(
            "std_dev",
            "double",
            "Sample standard deviation over users, of what is averaged: of logarithms for GMAP, for a ratio of sums of "
            "what each user moves it by, times n_users; NULL below two users and for a measure of all lists together",
        ),
        Field("std_error", "double", "std_dev / sqrt(n_users), or that of the bootstrap or the jackknife"),
        Field("ci_low", "double", "Lower end of the interval"),
        Field("ci_high", "double", "Upper end of the interval"),
        Field("ci_level", "double", "Nominal coverage of the interval, such as 0.95", nullable=False),
        Field(
            "ci_method",
            "string",
            "t, wilson, delta (of a ratio of sums, or of a mean over lists), bootstrap, jackknife (of 20 groups of "
            "users), or none",
            nullable=False,
        ),
    ),
)

GROUP_METRICS: Final = Schema(
    "group_metrics",
    "how the groups of a segment, or of items, compare by one measure at one cutoff for one model",
    (C.EVALUATION, C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K),
    (
        *_RUN,
        _key(C.MODEL_ID, "string", "Model"),
        _key(C.SLICE, "string", "Segment column or crossing whose groups are compared; of ItemMAD the slice of users"),
        _key(C.SLICE_VALUE, "string", _SLICE_VALUE),
        _key(
            C.SLICE_VALUES,
            "array<string>",
            "Of WorstGroup the segment values of that group, of ItemMAD those of the slice, else empty",
        ),
        _key(
            C.MEASURE,
            "string",
            "GroupGap(...), GroupRatio(...), UserMAD(...), WorstGroup(...) or ItemMAD(...) of a measure",
        ),
        _key(C.K, "int", "Cutoff of that measure; 0 = whole list"),
        Field(C.VALUE, "double", "Gap, ratio, mean absolute difference, or mean of the worst group; NULL if is_small"),
        Field(
            "n_users",
            "bigint",
            "Users of the groups that are compared; of WorstGroup of that group, of ItemMAD the fewest of a group",
            nullable=False,
        ),
        Field(C.N_LISTS, "bigint", "Lists of these users for which the measure is defined"),
        Field(
            "n_left_out",
            "bigint",
            "Users of the groups left out: small ones, those without a value, and users of unknown segment",
            nullable=False,
        ),
        Field("is_small", "boolean", "Fewer than two groups could be compared", nullable=False),
        Field("ci_low", "double", "Lower end of the interval"),
        Field("ci_high", "double", "Upper end of the interval"),
        Field("ci_level", "double", "Nominal coverage of the interval, such as 0.95", nullable=False),
        Field("ci_method", "string", "games-howell, simultaneous (all groups at once) or none", nullable=False),
    ),
)

COMPARISONS: Final = Schema(
    "comparisons",
    "a model against a baseline, by one measure at one cutoff on one slice of the users, by one test",
    (
        *(C.EVALUATION, C.EVALUATION_DATE, C.BASELINE_MODEL_ID, C.MODEL_ID),
        *(C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K, "test"),
    ),
    (
        *_RUN,
        _key(C.BASELINE_MODEL_ID, "string", "Model that is compared with"),
        _key(C.MODEL_ID, "string", "Model that is compared"),
        *_SLICE_KEY,
        _key(C.MEASURE, "string", "Canonical name without its cutoff"),
        _key(C.K, "int", "Cutoff; 0 = whole list"),
        Field("n_users", "bigint", "Users for whom the measure is defined under both models", nullable=False),
        Field("baseline_value", "double", "Mean of the baseline over these users; NULL where there is none"),
        Field(C.VALUE, "double", "Mean of the model over the same users"),
        Field("delta", "double", "Mean difference, value - baseline_value"),
        Field(
            "ci_low",
            "double",
            "Lower end of the interval of delta: Student's t on differences (by the delta method for a ratio of sums), "
            "on rows of bootstrap its percentiles, on rows of tukey simultaneous for all pairs",
        ),
        Field("ci_high", "double", "Upper end"),
        Field("ci_level", "double", "Nominal coverage of the intervals, such as 0.95", nullable=False),
        Field("relative_delta", "double", "delta / baseline_value; NULL where the baseline is not above 0"),
        Field("relative_ci_low", "double", "Lower end of its interval, by the delta method; NULL with other methods"),
        Field("relative_ci_high", "double", "Upper end"),
        Field(
            "test",
            "string",
            "t (paired; the rows that verdicts and gates read), randomization, bootstrap, wilcoxon, sign, tukey or "
            "randomized_tukey; the rows of one test are a family",
            nullable=False,
        ),
        Field(
            "method",
            "string",
            "How the p was found: t, delta (of a ratio of sums, or of means over lists), exact (all signs of at most "
            "20 differences), equal (all differences are equal), monte_carlo, wilcox or pratt (signed ranks, normal "
            "approximation; users without a difference are not ranked, or ranked and left out), binomial or "
            "studentized_range",
            nullable=False,
        ),
        Field("replicates", "int", "Random draws behind the p; NULL where none were drawn"),
        Field("seed", "bigint", "Seed of these draws"),
        Field("p_value", "double", "Two-sided p; NULL where there is none, see reason"),
        Field("p_adjusted", "double", "p_value adjusted for the family"),
        Field("correction", "string", "holm, bonferroni, benjamini-hochberg or none", nullable=False),
        Field("family_size", "bigint", "Rows of the run and test that have a p_value: adjusted for", nullable=False),
        Field(
            "reason",
            "string",
            "Why there is no p_value: no_common_users, one_user, few_users, few_differences or undefined; replicates: "
            "too few for any p_adjusted to be significant, so there is none",
        ),
        Field(
            "effect_size",
            "double",
            "dz = delta / standard deviation of the differences, on rows of tukey over that of the residuals; NULL "
            "without spread and for ratios of sums",
        ),
        Field("n_wins", "bigint", "Users with a greater value under the model; NULL in tests of all models"),
        Field("n_ties", "bigint", "Users with the same value under both; likewise"),
        Field("n_losses", "bigint", "Users with a lesser value under the model; likewise"),
        Field("is_small", "boolean", "The slice has fewer users than min_slice_size", nullable=False),
        Field(
            "verdict",
            "string",
            "better, worse or undecided: p_adjusted against 1 - ci_level, in the direction in which the measure is "
            "better; NULL without a p_adjusted, and on the rows of other tests than t",
        ),
    ),
)

GATES: Final = Schema(
    "gates",
    "one rule for one model on one slice of the users",
    (*(C.EVALUATION, C.EVALUATION_DATE, "gate", C.MODEL_ID), C.SLICE, C.SLICE_VALUES),
    (
        *_RUN,
        _key("gate", "int", "Place of the rule in the config, from 1"),
        _key(C.MODEL_ID, "string", "Model that was judged; '' where the rule matches none"),
        *_SLICE_KEY,
        Field(C.MEASURE, "string", "Canonical name without its cutoff", nullable=False),
        Field(C.K, "int", "Cutoff; 0 = whole list", nullable=False),
        Field("rule", "string", "What is required, in words", nullable=False),
        Field(
            "verdict",
            "string",
            "passed, failed, no_match (nothing computed fits: fails), missing_slice (fails), no_baseline or "
            "too_few_users (not judged)",
            nullable=False,
        ),
        Field("observed", "double", "What was held against the bound: the value, or the end of the interval"),
        Field("bound", "double", "What it was held against"),
        Field("n_users", "bigint", "Users behind the number; NULL where there is none"),
        Field("explanation", "string", "The verdict in a sentence", nullable=False),
    ),
)

CHECKS: Final = Schema(
    "checks",
    "one check of one input",
    (C.EVALUATION, C.EVALUATION_DATE, "input", "check"),
    (
        *_RUN,
        _key("input", "string", "Input that was checked; metrics where it is what was measured"),
        _key("check", "string", "What was counted, by the name that it has in the config"),
        Field("severity", "string", "info, warn or error: what the check can at most amount to", nullable=False),
        Field(
            "count",
            "bigint",
            "How often it happened; of bands.<name>: users without a number; of volume: rows more or fewer than usual",
            nullable=False,
        ),
        Field("share", "double", "count as a share of the rows (or users) looked at; NULL where there were none"),
        Field("threshold", "double", "Share above which the verdict is not ok; NULL where the check only counts"),
        Field("verdict", "string", "ok, warn or error", nullable=False),
        Field(
            "sample_keys",
            "array<string>",
            "A few of the keys concerned, or of the numbers; of bands.<name>: the edges",
            nullable=False,
        ),
    ),
)

PUBLISHED: Final = (LISTS, USER_METRICS, METRICS, GROUP_METRICS, COMPARISONS, GATES, CHECKS)
"""The tables a run overwrites, in the order it writes them; ``runs`` is append-only and holds the commit."""
