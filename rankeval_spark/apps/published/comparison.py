"""A published night against an earlier one, or its models against one of them: published tables only, no inputs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.gates import T_TESTS
from rankeval_spark.apps.nightly.night_plan import has_judged_lists
from rankeval_spark.apps.run_history import NightSide, changes_between, segments_by_slice
from rankeval_spark.config import Comparisons
from rankeval_spark.config.inference import family_of
from rankeval_spark.config.request import request_of
from rankeval_spark.errors import ConfigError, Fault, InputError, nearest
from rankeval_spark.measures import Measure, MeasureSet, with_cutoff
from rankeval_spark.report import defaults
from rankeval_spark.report.figures.forest_plot import pair_row
from rankeval_spark.report.winner import two_best
from rankeval_spark.result_rows.metric_rows import SUPPORT
from rankeval_spark.results import results_of
from rankeval_spark.results.table_scans import DamagedResultsError, to_rows
from rankeval_spark.statistics import multiple_testing
from rankeval_spark.statistics.paired_tests import TOO_LITTLE_SUPPORT
from rankeval_spark.statistics.power import detectable, strictest_tail

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark.apps.published_runs import PastNight
    from rankeval_spark.config import EvaluationConfig
    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.tables import Row
    from rankeval_spark.statistics import Correction

MAX_PAIRED: Final = 300_000  # users of whom the two best models are compared for a verdict alone, in about a second


@dataclass(frozen=True)
class ComparisonSelection:
    """Rows that are selected: all models, measures and cutoffs where none is named."""

    models: Sequence[str] = ()
    measures: Sequence[str] = ()  # canonical names, with a cutoff or without
    ks: Sequence[int] = ()
    slices: Sequence[str] | None = (C.ALL_USERS,)  # names of slices; None: all there are

    def measures_of(self, night: PastNight) -> list[Measure]:
        """Choose from what a night computed."""
        return [
            measure
            for measure in night.measures.measures
            if (not self.measures or measure.label in self.measures or str(measure) in self.measures)
            and (not self.ks or measure.k in self.ks)
        ]

    def slices_of(self, config: EvaluationConfig) -> list[str]:
        """Choose from the slices of a config; a name that it does not have is an error."""
        made = segments_by_slice(config)
        faults = [
            Fault("--slice", repr(name), f"any or one of: {', '.join(made)}", nearest(name, made))
            for name in self.slices or ()
            if name not in made
        ]
        if faults:
            raise ConfigError(*faults)
        return list(made if self.slices is None else self.slices)


@dataclass(frozen=True)
class ComparisonResult:
    """Rows of a comparison."""

    rows: list[dict[str, Any]]  # one a model, slice, measure and cutoff
    notes: list[str] = field(default_factory=list)  # what could not be compared, and why


def compare_nights(root: str, now: PastNight, before: PastNight, selection: ComparisonSelection) -> ComparisonResult:
    """Compare each model with itself on another night.

    Rows of :mod:`rankeval_spark.result_rows.night_change_rows` with ``test``, ``correction``, ``family_size``,
    ``family``, ``p_adjusted``, ``reason`` and ``verdict`` as ``comparisons`` has them; the families are those of the
    requested rows. Raises InputError if one of the nights measured nothing, or another share of the users.
    """
    _require_means(now, before)
    shares = [night.sample_share for night in (now, before)]
    if shares[0] != shares[1]:
        found = f"{shares[0]:g} of the users, and {shares[1]:g} on {before.evaluation_date}"
        raise InputError(Fault(str(now), found, "the same share on both nights", "run one of them again"))
    config, results = now.config, results_of(root)
    measures, names = selection.measures_of(now), selection.slices_of(config)
    sides = [NightSide.of(results, night, models=selection.models) for night in (now, before)]
    rows = changes_between(sides[0], sides[1], config, measures=measures, slices=names)
    correction = config.comparisons.correction if config.comparisons else "holm"
    primary = {(measure.label, measure.k) for measure in config.primary}
    return ComparisonResult(
        with_adjusted_p(
            rows, measures=measures, primary=primary, correction=correction, alpha=1 - config.intervals.confidence
        ),
        _describe_differences(
            now, before, measures, [name for name in names if not sides[0].has_same_slice(name, sides[1])]
        ),
    )


def compare_two_best(
    root: str,
    night: PastNight,
    measure: MeasureKey,
    gates: Sequence[Row],
    means: Sequence[Row],
    pairs: Sequence[Row],
    baseline: str | None,
) -> list[dict[str, Any]]:
    """Compare the model that a verdict names with the next best one; nothing where that was done, or cannot be."""
    found = None if defaults.better_of(measure[0]) == "neither" else two_best(gates, means, measure, baseline)
    n_users = max((row["n_users"] for row in means if (row[C.MEASURE], row[C.K]) == measure), default=0)
    if found is None or n_users > MAX_PAIRED or pair_row(pairs, measure, *found):
        return []
    best, rival = found
    try:
        return compare_models(root, night, rival, ComparisonSelection([best], [with_cutoff(*measure)])).rows
    except (ConfigError, InputError, DamagedResultsError):  # the verdict says that they were not compared
        return []


def compare_models(root: str, night: PastNight, baseline: str, selection: ComparisonSelection) -> ComparisonResult:
    """Compare the models of a night with one of them, paired by user; ConfigError if it has no such model.

    Rows are those published if the night has this baseline. Else they are computed from its users, and the families
    are those of the requested rows.
    """
    _require_means(night)
    results = results_of(root)
    of_night: dict[str, Any] = {"date": night.evaluation_date, "evaluation": night.evaluation}
    names, measures = selection.slices_of(night.config), selection.measures_of(night)
    models = results.arrow(schemas.METRICS.name, columns=[C.MODEL_ID], **of_night)
    models_there = sorted(set(models[C.MODEL_ID].to_pylist()))
    if baseline not in models_there:
        expected = f"a model of {night}: {', '.join(models_there)}; or, of rankeval compare, previous or a date"
        raise ConfigError(Fault("--against", repr(baseline), expected, nearest(baseline, models_there)))
    published, notes = night.config.comparisons, list[str]()
    if published is not None and published.baseline == baseline:
        all_rows = results.arrow(schemas.COMPARISONS.name, **of_night).to_pylist()
    else:
        of_models: dict[str, Any] = {C.MODEL_ID: [baseline, *selection.models]} if selection.models else {}
        users = results.scan(schemas.USER_METRICS.name, **of_night, **of_models)
        metrics = results.arrow(schemas.METRICS.name, columns=[*SUPPORT, "n_extra_users"], **of_night, **of_models)
        are_judged = has_judged_lists(results, night)
        all_rows = _compute_differences(users, night, baseline, selection, measures, metrics, are_judged=are_judged)
        if published is not None and published.covariate is not None:
            notes.append(f"without the covariates of {published.covariate}, which the published comparisons have")
    wanted: dict[str, Sequence[str]] = {C.BASELINE_MODEL_ID: [baseline], C.SLICE: names, **T_TESTS}
    wanted |= {C.MODEL_ID: selection.models} if selection.models else {}
    rows = [row for row in all_rows if all(row[name] in values for name, values in wanted.items())]
    found = {
        measure: [row for row in rows if (row[C.MEASURE], row[C.K]) == (measure.label, measure.k)]
        for measure in measures
    }
    without = [measure for measure, of_measure in found.items() if not of_measure]
    kept = [row for of_measure in found.values() for row in of_measure]
    return ComparisonResult(kept, [*notes, *_note_left_out("no mean over users, or no user with a value", without)])


def with_adjusted_p(
    rows: Iterable[Mapping[str, Any]],
    *,
    measures: Iterable[Measure],
    primary: Collection[tuple[str, int]],
    correction: Correction,
    alpha: float,
) -> list[dict[str, Any]]:
    """Adjust the p-values of changes within their families, and add reason and verdict."""
    found = [{**row, "family": family_of(row[C.MEASURE], row[C.K], row[C.SLICE], primary)} for row in rows]
    p = np.array([np.nan if row["p_value"] is None else row["p_value"] for row in found])
    families = np.unique([row["family"] for row in found], return_inverse=True)[1]
    adjusted = multiple_testing.adjust(p, families, correction=correction, alpha=alpha)
    better = {measure.label: measure.better for measure in measures}
    with_verdicts = []
    for row, adjusted_p, size in zip(found, adjusted.p, adjusted.family_size, strict=True):
        reason, verdict, good = None, None, better[row[C.MEASURE]]
        if row.get("reason") == TOO_LITTLE_SUPPORT:
            reason, verdict = TOO_LITTLE_SUPPORT, "undecided"
        elif row["p_value"] is None:
            few = "few_users" if row["n_earlier_users"] else "no_users_then"
            reason = few if row["n_users"] else "no_users_now"
        if not np.isnan(adjusted_p):
            side = "better" if good != "neither" and (row["delta"] > 0) == (good == "higher") else "worse"
            verdict = "undecided" if adjusted_p > alpha else "different" if good == "neither" else side
        test: dict[str, Any] = {"test": C.UNPAIRED, "correction": correction, "family_size": int(size)}
        tail = strictest_tail(alpha, int(size), correction)
        least = math.nan if np.isnan(adjusted_p) else float(detectable(row["std_error"], row["freedom"], tail=tail))
        test["detectable"] = None if math.isnan(least) else least
        test["p_adjusted"] = None if np.isnan(adjusted_p) else float(adjusted_p)
        with_verdicts.append({**row, **test, "reason": reason, "verdict": verdict})
    return with_verdicts


def _compute_differences(
    user_metrics: Any,  # noqa: ANN401 - what `Results.scan` gives
    night: PastNight,
    baseline: str,
    selection: ComparisonSelection,
    measures: Sequence[Measure],
    metrics: pa.Table,  # its rows of ``metrics``
    *,
    are_judged: bool,  # whether judgements name their list
) -> list[dict[str, Any]]:
    """Compare from the published users, as the night itself would have; nothing where no measure can be."""
    config, per_user = night.config, [measure for measure in measures if measure.has_user_values]
    if not per_user:
        return []
    asked = config.comparisons or Comparisons(baseline=baseline)
    made = segments_by_slice(config)
    split = asked.split if baseline in (asked.split or ()) else None
    comparisons = Comparisons(baseline=baseline, correction=asked.correction, margin=asked.margin, split=split)
    request = request_of(config, night.evaluation_date).copy_with(
        measure_set=MeasureSet.of(per_user),
        slices=[made[name] for name in selection.slices_of(config) if name != C.ALL_USERS],
        comparisons=comparisons,
        primary=config.primary,
    )
    from rankeval_spark.engine.planning import build_outputs  # noqa: PLC0415 - imports the engine
    from rankeval_spark.sums.published import UserTotals, sum_users  # noqa: PLC0415 - as above
    from rankeval_spark.sums.sums import COMPARISONS, Differences  # noqa: PLC0415 - as above

    differences = Differences(
        request, build_outputs(request, averages_lists=True, has_judged_lists=are_judged), metrics
    )
    segments, unit = tuple(request.segments), request.policies.unit
    # all users with a list have rows where the population is of them
    counted = metrics.slice(0, 0) if request.policies.population == "run" else metrics
    unjudged = tuple((COMPARISONS, rows) for rows in differences.unjudged_partials(counted))
    totals = UserTotals(request.measure_set, {COMPARISONS: differences}, segments, unit, known=unjudged)
    return to_rows(sum_users([user_metrics], totals)[COMPARISONS])


def _require_means(*nights: PastNight) -> None:
    if empty := [night for night in nights if night.is_empty]:
        raise InputError(*(Fault(str(night), f"nothing measured: {night.row['reason']}", "means") for night in empty))


def _describe_differences(
    now: PastNight, before: PastNight, measures: Sequence[Measure], unmade: Sequence[str]
) -> list[str]:
    """Return notes on what of two nights is not compared, and whether they ran alike."""
    then, day = before.definitions, before.evaluation_date
    means = [measure for measure in measures if measure.is_mean_of_users]
    computed_then = [measure for measure in means if (measure.label, measure.k) in then]
    notes = _note_left_out("no means over users", [measure for measure in measures if measure not in means])
    notes += _note_left_out(f"not requested on {day}", [measure for measure in means if measure not in computed_then])
    otherwise = [
        measure
        for measure in computed_then
        if now.definitions[measure.label, measure.k] != then[measure.label, measure.k]
    ]
    notes += _note_left_out(f"of other options, policies or code on {day}", otherwise)
    notes += _note_left_out(f"slices that {day} does not have", unmade)
    if now.config_hash != before.config_hash:
        notes.append("the two nights ran with different configs; compared is what both define alike")
    return notes


def _note_left_out(why: str, what: Iterable[object]) -> list[str]:
    names = ", ".join(map(str, what))
    return [f"not compared, {why}: {names}"] if names else []
