"""Columns of the canonical inputs and of the published tables.

Types are Spark type strings; nothing here imports Spark. ``docs/tables.md`` is generated from this module.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from rankeval_spark import columns as C


@dataclass(frozen=True)
class Field:
    """A column: its name, its Spark type string, and one sentence about its content."""

    name: str
    type: str
    comment: str
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    """The columns of a frame or table, what one row is, and the columns that identify a row."""

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

    def key_in(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return the columns of the key that a frame has."""
        return tuple(name for name in self.key if name in columns)


_SLICE_VALUE: Final = (
    "slice_values joined by * as text, with (unknown) for NULL and double quotes around a value that could be misread; "
    "'' for the slice 'all'"
)


# Columns that several tables have, by the line that stands for them.
_SHARED: Final = {
    "*run": """
        evaluation string! Name of the evaluation
        evaluation_date date! Day that is evaluated, of the time_zone in runs.config
        run_id string! Run that wrote the row
    """,
    "*list": """
        model_id string! Model that made the list
        user_id string! User who got the list
        list_id string! List of the user; '' where each user has one
    """,
    "*slice": f"""
        slice string! 'all' for all users, a segment such as country, or a crossing such as country*device
        slice_value string! {_SLICE_VALUE}
        slice_values array<string>! Value of each segment of the slice; NULL is the unknown value
    """,
}


def _columns(text: str) -> tuple[Field, ...]:
    """Parse columns, a line each: name, type with ! where it is never NULL, comment. Deeper lines are more comment."""
    fields: list[Field] = []
    for line in re.sub(r"\n {2,}", " ", textwrap.dedent(text).strip()).splitlines():
        if line in _SHARED:
            fields += _columns(_SHARED[line])
        else:
            name, type_, comment = line.split(maxsplit=2)
            fields.append(Field(name, type_.rstrip("!"), comment, not type_.endswith("!")))
    return tuple(fields)


# Ids keep their type in `evaluate`; published tables have strings.
RECOMMENDATIONS: Final = Schema(
    "recommendations",
    "one recommended item of one list",
    (C.MODEL_ID, C.USER_ID, C.LIST_ID, C.ITEM_ID),
    _columns("""
        *list
        item_id string! Recommended item
        score double Score that orders the list, highest first; whole numbers and decimals keep their type
        rank int Position in the list, from 1; orders the list without scores, and ties with ties='rank'
        predicted_reward double Reward that a model predicts for the item; only DR reads it
        recommended_at timestamp Time at which the list was shown; only the policy attribution reads it
    """),
)

HELD_OUT: Final = Schema(
    "held_out",
    "one held-out interaction of one user: a judgement",
    (C.USER_ID, C.LIST_ID, C.ITEM_ID),
    _columns("""
        user_id string! User
        list_id string! List that the judgement belongs to, such as a session; without this column, all of the user
        item_id string! Item the user interacted with
        gain double Gain of the interaction, such as a rating; 1 where the table has no such column
        interacted_at timestamp Time of the interaction; held_out_duplicates='last' and attribution read it
        value double Value of the interaction, such as revenue; only measures with gains='value' read it
        propensity double Probability with which the item was shown; only off-policy measures read it
        weight double How often the judgement counts; only measures with weighted=True read it
    """),
)
JUDGED_LIST: Final = HELD_OUT.field(C.LIST_ID)

TRAIN: Final = Schema(
    "train",
    "one interaction of the models' training data; a user may have several with an item",
    (C.USER_ID, C.ITEM_ID),
    _columns("""
        user_id string! User
        item_id string! Item the user interacted with
        interacted_at timestamp Time of the interaction
    """),
)

ITEMS: Final = Schema(
    "items",
    "one item of the catalogue",
    (C.ITEM_ID,),
    _columns("""
        item_id string! Item
        categories array<string> Categories of the item; NULL or empty is unknown
        vector array<double> Feature vector of the item, of the same length for all items; NULL is unknown
        published_at date Day the item was published, of the time_zone; NULL is unknown
        title string Name of the item for people; only examples and `rankeval user` show it
    """),
)

USER_VALUES: Final = Schema(
    "user_values",
    "one own value of one user, under one model or under each",
    (C.USER_ID, C.MODEL_ID, C.NAME),
    _columns("""
        user_id string! User
        model_id string Model under which the user has the value; NULL, or without this column: every model
        name string! Name of the value, such as revenue, by which UserValue(name='revenue') reads it
        value double! The value
    """),
)

USER_WEIGHTS: Final = Schema(
    "user_weights",
    "the weight of one user",
    (C.USER_ID,),
    _columns("""
        user_id string! User
        weight double! Weight of the user in every mean over users
    """),
)

RUNS: Final = Schema(
    "runs",
    "one event of one run",
    (*C.RUN_KEY, "status", "recorded_at"),
    _columns("""
        *run
        status string! Event: RUNNING, PUBLISHING, PUBLISHED, FAILED, MAINTAINING or MAINTAINED
        recorded_at timestamp! Time of the event (UTC)
        reason string Reason of the outcome, such as an empty date or a failed stage
        sample_share double Share of users that were evaluated, in (0, 1]; 1 is all users
        config string Configuration of the run as JSON, without secrets
        config_hash string SHA-256 of what differs from its default in the configuration, and of the next
        defaults_version bigint Version of the defaults of the configuration; NULL: 1, or no configuration
        code_version string Version of rankeval-spark
        inputs array<struct<name:string,location:string,format:string,version:bigint,n_rows:bigint>> Inputs that were
          read: name, place, format, Delta version (NULL: no Delta table) and number of rows
        input_columns map<string,string> Columns and types of each input's table, such as 'user_id string, day date'
        policies map<string,string> Value of every policy of the run
        measures
          array<struct<measure:string,k:int,column:string,name:string,options:map<string,string>,group_rule:string,own:map<string,string>>>
          Requested measures: name in the tables, cutoff (0 = whole list), column in user_metrics (NULL: none),
          canonical name, value of every option, which items its item group has (NULL: all items), and what an own
          measure declares, with a hash of its code (NULL: a measure of rankeval-spark)
        table_versions map<string,bigint> Published Delta version of every table
        timings map<string,double> Seconds of each stage
        n_rows map<string,bigint> Published rows of each table
        error struct<stage:string,type:string,message:string> Stage, type and message of a failure
        failed_checks array<string> Checks of severity error that failed
    """),
)

LISTS: Final = Schema(
    "lists",
    "one list of one model for one user; a judged user without a list has a row with n_recommended 0",
    (C.EVALUATION, C.EVALUATION_DATE, *C.LIST_KEY),
    _columns("""
        *run
        *list
        segments map<string,string> Segment values of the user; NULL is the unknown value
        n_recommended int! Last rank of the list after all policies; 0 = no list
        n_duplicates int! Repeated items that were removed from the list
        hit_ranks array<int>! Ranks of the judged items in the list, ascending
        hit_gains array<double>! Gains of the items at hit_ranks, in the same order
        judged_gains array<double>! Gains of all judgements of the user or list, descending
        tied_ranks array<int>! Ranks with the same score as the rank before, ascending
        hit_scores array<double> Scores of the items at hit_ranks; NULL where no measure needs them
        empty_ranks array<struct<first:int,last:int>> First and last of consecutive ranks without an item, ascending;
          NULL without a list or with rank_gaps 'renumber'
        has_rank_gaps boolean True if the ranks of the log are not 1, 2, 3, ...; NULL without a list, without ranks in
          the log, or with rank_gaps 'keep'
        is_out_of_order boolean True if a lower score has a better rank in the log; NULL where has_rank_gaps is NULL,
          and without scores in the log
    """),
)

USER_METRICS: Final = Schema(
    "user_metrics",
    "one list at one cutoff",
    (C.EVALUATION, C.EVALUATION_DATE, *C.LIST_KEY, C.K),
    _columns("""
        *run
        *list
        k int! Cutoff; 0 = whole list
        segments map<string,string> Segment values of the user; NULL is the unknown value
        n_judged int! Judgements of the user
        n_relevant int! Judgements of the user with gain >= 1
        n_recommended int! Recommended items at ranks up to k, and empty ranks where rank_gaps is 'keep'; 0 = no list
        n_hits int! Recommended items at ranks up to k with gain >= 1
        has_ties boolean True if the order of equal scores at ranks up to k can change a measure; NULL without a list
    """),
    # One double column per measure follows: NULL where undefined or not requested at this k.
)

METRICS: Final = Schema(
    "metrics",
    "one measure at one cutoff for one model on one slice of the users",
    (C.EVALUATION, C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K),
    _columns("""
        *run
        model_id string! Model
        *slice
        measure string! Measure with its options, without the cutoff, such as nDCG or AP(denom='min')
        k int! Cutoff; 0 = whole list
        value double Value of the measure: the mean over users (over lists with unit='list'), the ratio of sums with
          agg='micro', or one value of all lists; NULL where no user has a value
        n_users bigint! Users in the mean; for a measure of all lists, users with a list
        n_lists bigint Lists of the users in the mean for which the measure is defined; a missing list that scores 0
          counts
        n_undefined bigint Users of the population without a value, n_zero_relevant included; NULL for a measure of all
          lists
        n_missing bigint Judged users without a list of the model; NULL for a measure of all lists
        n_zero_relevant bigint Judged users without a relevant judgement (gain >= 1); NULL for a measure of all lists
        n_extra_users bigint Users with a list but no judgement; NULL for a measure of all lists
        tie_share double Share of judged users' lists in which ties can change the measure at k
        is_small boolean! True if the slice has fewer users than min_slice_size
        std_dev double Standard deviation over users: of logarithms for GMAP, of each user's influence times n_users for
          a ratio of sums; NULL below two users and for a measure of all lists
        std_error double Standard error of the value
        ci_low double Lower end of the confidence interval
        ci_high double Upper end of the confidence interval
        ci_level double! Nominal coverage of the interval, such as 0.95
        ci_method string! Method of the interval: hall, wilson (also where all users have the same value), delta (for
          ratios of sums and means over lists), bootstrap, jackknife or none; t in rows of earlier versions
        n_nonzero bigint Users in the mean with a value other than 0 (of GMAP and LogAP, other than the floor; of
          RBPResidual, other than 1); NULL for a measure of all lists and in rows of older versions
        is_uncertain boolean True if so few users decide about the mean that its interval may miss more often than
          ci_level says: n_nonzero below 10, or values so skewed; False with Wilson's interval of a share; NULL as
          n_nonzero
        quantiles map<string,double> Quantiles of the users' values by share of the users, such as '0.5': the least
          value of a user that at least this share do not exceed; NULL unless requested, and for a measure of all lists
        quantile_error double By how much an exact quantile can be greater: 0 up to 2,049 distinct values, then the step
          of a grid
        n_effective double Effective number of users, (sum of W)^2 / sum of W^2; W is the sum of the weights of a user's
          impressions where a measure weighs these, with user_weights the weight of the user; else NULL
        has_support boolean False if n_effective is below min_slice_size: the value carries no verdict; NULL as
          n_effective
    """),
)

GROUP_METRICS: Final = Schema(
    "group_metrics",
    "how the groups of a segment, or of items, compare by one measure at one cutoff for one model",
    (C.EVALUATION, C.EVALUATION_DATE, C.MODEL_ID, C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K),
    _columns(f"""
        *run
        model_id string! Model
        slice string! Segment or crossing whose groups are compared, or the slice of users for ItemMAD
        slice_value string! {_SLICE_VALUE}
        slice_values array<string>! Segment values of the worst group for WorstGroup and of the slice for ItemMAD, else
          empty
        measure string! Statistic of a measure: GroupGap(...), GroupRatio(...), UserMAD(...), WorstGroup(...) or
          ItemMAD(...)
        k int! Cutoff of the measure; 0 = whole list
        value double Gap, ratio, mean absolute difference, or mean of the worst group; NULL if is_small
        n_users bigint! Users of the compared groups, of the worst group for WorstGroup and of the smallest group for
          ItemMAD
        n_lists bigint Lists of these users for which the measure is defined
        n_left_out bigint! Users of groups that are not compared: small groups, groups without a value, the unknown
          group
        is_small boolean! True if fewer than two groups can be compared
        ci_low double Lower end of the confidence interval
        ci_high double Upper end of the confidence interval
        ci_level double! Nominal coverage of the interval, such as 0.95
        ci_method string! Method of the interval: games-howell, simultaneous (all groups at once) or none
    """),
)

COMPARISONS: Final = Schema(
    "comparisons",
    "one model compared with a baseline, by one measure at one cutoff on one slice of the users, by one test",
    (
        *(C.EVALUATION, C.EVALUATION_DATE, C.BASELINE_MODEL_ID, C.MODEL_ID),
        *(C.SLICE, C.SLICE_VALUES, C.MEASURE, C.K, "test"),
    ),
    _columns("""
        *run
        baseline_model_id string! Baseline of the comparison
        model_id string! Model that is compared with the baseline
        *slice
        measure string! Measure with its options, without the cutoff, such as nDCG or AP(denom='min')
        k int! Cutoff; 0 = whole list
        n_users bigint! Users with a value under both models; of unpaired, users of the model with a value
        n_baseline_users bigint Of unpaired, users of the baseline with a value, where n_users are those of the model;
          else NULL
        n_with_baseline bigint Users of the slice with a list of the baseline, judged or not
        n_with_model bigint The same of the model
        n_with_both bigint The same of both
        baseline_value double Value of the baseline over these users; NULL where no user has one
        value double Value of the model over the same users; of unpaired, each is over its own users
        delta double Difference: value - baseline_value; NULL, as all that follows from it, if withheld
        std_error double Standard error of delta; NULL below two users and for tests of all models
        ci_low double Lower end of the confidence interval of delta, of the test for bootstrap and tukey and of t for
          the others; NULL for randomized_tukey
        ci_high double Upper end of the confidence interval of delta
        ci_level double! Nominal coverage of the intervals, such as 0.95
        relative_delta double delta / baseline_value; NULL unless the baseline is above 0
        relative_ci_low double Lower end of the interval of relative_delta; NULL for tests that compute another interval
        relative_ci_high double Upper end of the interval of relative_delta; NULL for tests that compute another
          interval
        test string! Test: t (paired) or unpaired (of two models of comparisons.split), which verdicts and gates read;
          randomization, bootstrap, wilcoxon, sign, tukey, randomized_tukey, or pooled (t of each user's mean difference
          over several nights)
        nights int Nights on which both models have values of this definition, for the test pooled; else 1
        method string! Method of p_value: t, welch, delta (for ratios of sums and means over lists), exact (all signs),
          equal (equal differences), monte_carlo, wilcox, pratt, binomial or studentized_range
        freedom double Degrees of freedom of the interval of unpaired; NULL for other tests: those of t are n_users - 1
        variance_removed double Share of the variance of delta that earlier values of the users remove, with
          comparisons.covariate: delta is then that of adjusted values, not value - baseline_value; else NULL
        replicates int Random draws of the test; NULL where it needs none
        seed bigint Seed of the random draws; NULL where the test needs none
        p_value double Two-sided p-value; NULL where reason says why there is none
        p_adjusted double p_value corrected for the number of tests in the family
        correction string! Correction: holm, bonferroni, benjamini-hochberg or none
        family string Tests that are corrected together, of those with the same test (t and unpaired count as one):
          primary (primary measures on all users), slices (the same in slices) or exploratory (all other measures and
          cutoffs)
        family_size bigint! Number of p-values in the family
        detectable double Difference that the test finds with a probability of 80 %, or 73 to 97 % where differences of
          few users are very skewed: two-sided, at the strictest step of the correction of its family; NULL for tests
          other than t, unpaired and pooled, and if method is exact or equal
        reason string Why p_value is NULL: no_common_users, no_users (unpaired: no user of a model has a value),
          few_common_lists (withheld: n_with_both is below a tenth of the smaller of n_with_baseline and n_with_model;
          compare the means of population 'run', or name the models of an A/B test in comparisons.split),
          few_common_judged_lists (judgements name lists: of those of the smaller model, fewer than a tenth are answered
          by both), one_user, few_users, few_differences, out_of_range (squares of the differences leave the range of a
          double), too_little_support (n_effective of a model in metrics is below min_slice_size) or undefined; or why
          p_adjusted is NULL: replicates (too few to be significant)
        effect_size double dz: delta / standard deviation of the differences (for tukey, of the residuals; for unpaired,
          of the users); NULL without spread and for ratios of sums
        n_wins bigint Users with a greater value under the model; NULL for tests of all models
        n_ties bigint Users with the same value under both; NULL for tests of all models
        n_losses bigint Users with a smaller value under the model; NULL for tests of all models
        margin double Difference of a user's two values that is named in the config; NULL without one
        win_share double Share of n_users whose value under the model is greater by more than margin
        loss_share double Share of n_users whose value under the model is smaller by more than margin
        is_small boolean! True if the slice has fewer users than min_slice_size
        verdict string Verdict of t, unpaired and pooled: if p_adjusted <= 1 - ci_level, better or worse, or different
          where neither side of the measure is better; else undecided, as with too_little_support; NULL for other
          reasons and other tests
    """),
)

GATES: Final = Schema(
    "gates",
    "one rule for one model on one slice of the users",
    (*(C.EVALUATION, C.EVALUATION_DATE, "gate", C.MODEL_ID), C.SLICE, C.SLICE_VALUES),
    _columns("""
        *run
        gate int! Position of the rule in the config, from 1
        model_id string! Model that is judged; '' where the rule matches none
        *slice
        measure string! Measure with its options, without the cutoff
        k int! Cutoff; 0 = whole list
        rule string! The rule in words
        verdict string! Verdict: passed, failed, no_match or missing_slice (both fail), undecided (not met),
          no_baseline, too_few_users or too_little_support (not judged)
        observed double Number that is compared with the bound: the value, an end of its interval, or the adjusted p of
          `alpha`
        bound double Bound of the rule
        n_users bigint Users of the observed number; NULL without one
        explanation string! The verdict in a sentence
    """),
)

CHECKS: Final = Schema(
    "checks",
    "one check of one input",
    (C.EVALUATION, C.EVALUATION_DATE, "input", "check"),
    _columns("""
        *run
        input string! Input that is checked, or 'metrics' for a check of results
        check string! Name of the check, mostly as in the config under checks
        severity string! Worst possible verdict of the check: info, warn or error
        count bigint! Faulty rows, lists or users; for bands.<name> users without a number, for volume the difference in
          rows
        share double count as a share of all rows, lists or users checked; NULL where there are none
        threshold double Share above which the verdict is not ok; NULL where the check only counts
        verdict string! Verdict: ok, warn or error
        sample_keys array<string>! A few of the faulty keys or numbers; for bands.<name> the edges
    """),
)

EXAMPLES: Final = Schema(
    "examples",
    "one item of a list of a user who wins or loses most under a model; a list without items has a row of rank 0",
    (*(C.EVALUATION, C.EVALUATION_DATE, C.BASELINE_MODEL_ID, C.MODEL_ID, C.USER_ID), "listed_by", C.LIST_ID, C.RANK),
    _columns("""
        *run
        baseline_model_id string! Model that is compared with
        model_id string! Model under which the user wins or loses
        side string! win, if the model is better for the user than the baseline; else loss
        place int! Place of the user on this side, 1 for the greatest difference
        user_id string! User
        measure string! First primary measure of the comparisons, without the cutoff
        k int! Cutoff; 0 = whole list
        value double! Value of the measure for the user under the model
        baseline_value double! Value under the baseline
        delta double! value - baseline_value
        n_relevant int! Judgements of the user with gain >= 1
        listed_by string! Model whose list it is: model_id or baseline_model_id
        list_id string! List of the user; '' where each user has one
        rank int! Rank of the item, from 1; 0 for a list without items
        item_id string Item; NULL for a list without items
        title string Title of the item in the catalogue; NULL without one
        gain double Gain of the judgement of the item, a hit from 1 on; NULL without a judgement
    """),
)

# Tables that a run overwrites, in the order of writing; ``runs`` is append-only and its last row is the commit.
PUBLISHED: Final = (LISTS, USER_METRICS, EXAMPLES, METRICS, GROUP_METRICS, COMPARISONS, GATES, CHECKS)
