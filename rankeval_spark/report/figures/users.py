"""Figures of single users: distributions of values and differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.measures import Measure, with_cutoff
from rankeval_spark.measures.names import measure_of
from rankeval_spark.report import defaults
from rankeval_spark.report.figures import charts
from rankeval_spark.report.figures.charts import NOTEBOOK, Chart, Look, NothingToDrawError
from rankeval_spark.report.figures.figure import Figure, combine_panels, count_users, list_names, night_of
from rankeval_spark.report.tables import keep
from rankeval_spark.statistics.paired_tests import ListCounts, are_too_few, subtract

if TYPE_CHECKING:
    from rankeval_spark.measures.arrays import FloatVector
    from rankeval_spark.report.defaults import MeasureKey

KEY: Final = (C.MODEL_ID, C.USER_ID, C.LIST_ID)
NEEDED: Final = (*KEY, C.K)
N_BINS: Final = 20
BAR_HEIGHT: Final = 130
SIDES: Final = ("better", "worse", "higher", "lower")
"""Sides of a user's difference; the last two if neither side of the measure is better."""


def user_values(
    user_metrics: object,
    *,
    measure: str,
    models: Sequence[str] = (),
    baseline: str | None = None,
    look: Look = NOTEBOOK,
) -> Figure:
    """Draw how the values of users are spread on the same axes: a panel a model, users at exactly 0 in an own bar."""
    table = defaults.read_frame(user_metrics, NEEDED, what="user_metrics")
    wanted = parse_measure(measure)
    values = values_by_model(table, wanted)
    styles_by_model = charts.styles(list(values), look.palette, baseline=baseline)
    edges = bin_edges(list(values.values()))
    bins = {model: value_bins(of_model, edges) for model, of_model in values.items()}
    channels = _shared_channels(with_cutoff(*wanted), wanted, edges, bins.values())
    shown = list(models) or sorted(values)
    if not shown:
        raise NothingToDrawError(Fault("user_metrics", f"no user with a value of {measure}", "at least one"))
    panels = [_bars_panel(model, bins[model], styles_by_model[model].colour, channels, look) for model in shown]
    name, zeros = with_cutoff(*wanted), [float((values[model] == 0).mean()) for model in shown]
    at_zero = (
        f"; those at exactly 0 are the hollow bar ({', '.join(map(wording.percent, zeros))})" if any(zeros) else ""
    )
    whom = f"{_of_users(shown, values, baseline)}{night_of(table)}"
    caption = f"Users by their value of {name}, in bins{at_zero}. {whom}"
    return combine_panels(panels, look, f"{name} of single users", caption)


def _of_users(models: Sequence[str], values: Mapping[str, Any], baseline: str | None) -> str:
    """Return the sentence of a caption on models and their users."""
    users = count_users(len(values[model]) for model in models)
    return f"Models, with {users} each: {list_names(models, 'model', baseline=baseline)}."


def user_differences(
    user_metrics: object, *, measure: str, baseline: str, models: Sequence[str] = (), look: Look = NOTEBOOK
) -> Figure:
    """Draw how differences of users from the baseline are spread; those without one are counted in the title."""
    table = defaults.read_frame(user_metrics, NEEDED, what="user_metrics")
    wanted = parse_measure(measure)
    found = differences_by_model(table, wanted, baseline=baseline)
    if not found:
        users = f"no user with {measure} and lists of {baseline} and another model"
        raise NothingToDrawError(Fault("user_metrics", users, "some"))
    edges = difference_edges(list(found.values()))
    bins = {model: difference_bins(of_model, edges, wanted) for model, of_model in found.items()}
    channels = _shared_channels(f"difference of {with_cutoff(*wanted)}", wanted, edges, bins.values())
    shown, name = list(models) or sorted(found), with_cutoff(*wanted)
    said = {model: f"{model}: {win_phrase(found[model], wanted)}" for model in shown}
    panels = [_difference_panel(title, bins[key], channels, look) for key, title in said.items()]
    caption = (
        f"Users by their difference of {name} from {baseline}, in bins; those without a difference are counted, not "
        f"drawn: {'; '.join(said.values())}. {_of_users(shown, found, baseline)}{night_of(table)}"
    )
    return combine_panels(panels, look, f"Differences of {name} from {baseline}, by user", caption)


def parse_measure(measure: str) -> MeasureKey:
    """Read the name of a measure with its cutoff."""
    found = Measure.parse(measure, where="measure")
    return found.label, found.k


def column_of(label: str) -> str | None:
    """Return the column of a measure in ``user_metrics``; None if users have no value of it."""
    measure = measure_of(label)
    return measure.column if measure is not None and measure.has_user_values else None


def values_by_model(users: pa.Table, measure: MeasureKey) -> dict[str, Any]:
    """Return the values of users by model, as numpy; a user with several lists has the mean of theirs."""
    averaged = _average_users(users, measure)
    models = averaged[C.MODEL_ID].to_numpy(zero_copy_only=False)
    values = averaged[C.VALUE].to_numpy()
    return {str(model): values[models == model] for model in sorted(set(models.tolist()))}


def _average_users(users: pa.Table, measure: MeasureKey) -> pa.Table:
    """Return a row per model and user with a value: ``model_id, user_id, value``."""
    column = column_of(measure[0])
    if column is None or column not in users.column_names:
        floating = ", ".join(name for name in users.column_names if pa.types.is_floating(users.schema.field(name).type))
        found = f"no values of {with_cutoff(*measure)}"
        raise ConfigError(Fault("user_metrics", found, f"a column of: {floating or '(none)'}"))
    rows = keep(users, **{C.K: measure[1]})
    rows = rows.select([C.MODEL_ID, C.USER_ID, column]).rename_columns([C.MODEL_ID, C.USER_ID, C.VALUE])
    rows = rows.filter(pc.is_valid(rows[C.VALUE]))
    averaged = rows.group_by([C.MODEL_ID, C.USER_ID]).aggregate([(C.VALUE, "mean")])
    return averaged.select([C.MODEL_ID, C.USER_ID, f"{C.VALUE}_mean"]).rename_columns([C.MODEL_ID, C.USER_ID, C.VALUE])


def differences_by_model(users: pa.Table, measure: MeasureKey, *, baseline: str) -> dict[str, Any]:
    """Return the difference of each user with a value under both models, by model; of those who share enough users."""
    averaged = _average_users(users, measure)
    of_baseline = keep(averaged, **{C.MODEL_ID: baseline}).select([C.USER_ID, C.VALUE])
    places = pc.index_in(averaged[C.USER_ID], value_set=of_baseline[C.USER_ID].combine_chunks())
    is_paired = pc.is_valid(places)
    paired, place = averaged.filter(is_paired), places.filter(is_paired).to_numpy()
    models = paired[C.MODEL_ID].to_numpy(zero_copy_only=False)
    values, others = paired[C.VALUE].to_numpy(), of_baseline[C.VALUE].to_numpy()[place]
    differences = subtract(values, others)
    others_served = _find_other_audiences(users, baseline)
    compared = sorted(set(models.tolist()) - {baseline} - others_served)
    return {str(model): differences[models == model] for model in compared}


def _find_other_audiences(users: pa.Table, baseline: str) -> set[str]:
    """Return the models whose lists go to other users than those of a baseline; none if lists are not counted."""
    if C.N_RECOMMENDED not in users.column_names:
        return set()
    listed = users.filter(pc.greater(users[C.N_RECOMMENDED], 0))
    models = pc.unique(users[C.MODEL_ID]).to_pylist()
    served = {model: pc.unique(keep(listed, **{C.MODEL_ID: model})[C.USER_ID]) for model in {*models, baseline}}
    n_both = np.array([pc.sum(pc.is_in(served[model], value_set=served[baseline])).as_py() or 0 for model in models])
    n_model = np.array([len(served[model]) for model in models])
    listed_users = ListCounts(np.full(len(models), len(served[baseline])), n_model, n_both)
    are_others = are_too_few(listed_users, listed_users) | (n_both == 0)
    return {model for model, is_other in zip(models, are_others.tolist(), strict=True) if is_other}


def bin_edges(values: Sequence[Any]) -> Chart:
    """Return the edges of 20 bins: [0, 1] if all values are in it, else their range and 0."""
    together = np.concatenate(values) if values else np.zeros(0)
    if not together.size:
        return np.linspace(0, 1, N_BINS + 1)
    low, high = min(float(together.min()), 0.0), max(float(together.max()), 0.0)
    if low >= 0 and high <= 1:
        return np.linspace(0, 1, N_BINS + 1)
    return np.linspace(low, high if high > low else low + 1, N_BINS + 1)


def difference_edges(differences: Sequence[Any]) -> Chart:
    """Return the edges of 20 bins, symmetric around 0, so that no bin is both better and worse."""
    together = np.concatenate(differences) if differences else np.zeros(0)
    reach = float(np.abs(together).max()) if together.size else 0.0
    return np.linspace(-(reach or 1.0), reach or 1.0, N_BINS + 1)


def value_bins(values: FloatVector, edges: FloatVector) -> list[dict[str, Any]]:
    """Count users by bin, those at exactly 0 by themselves; shares are of all users with a value."""
    n_users, is_zero = len(values), values == 0
    counts, _ = np.histogram(values[~is_zero], edges)
    rows = [_bin_row(low, high, n, n_users) for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True) if n]
    n_zero = int(is_zero.sum())
    return [{**_bin_row(0.0, 0.0, n_zero, n_users), "kind": "zero"}, *rows] if n_zero else rows


def difference_bins(differences: FloatVector, edges: FloatVector, measure: MeasureKey) -> list[dict[str, Any]]:
    """Count users with a difference by bin and kind: a gain or loss, if either side is better."""
    above, below = _kinds_of_difference(measure)
    rows = [row for row in value_bins(differences, edges) if row["kind"] != "zero"]
    return [{**row, "kind": above if row["low"] + row["high"] > 0 else below} for row in rows]


def win_phrase(differences: FloatVector, measure: MeasureKey) -> str:
    """Return for how many users the model is better, or higher if neither side is better, as a phrase."""
    signs = np.sign(differences)
    n_by_side = dict(zip(_kinds_of_difference(measure), (int((signs == sign).sum()) for sign in (1, -1)), strict=True))
    counts = [f"{side} for {n_by_side[side]:,}" for side in SIDES if side in n_by_side]
    return f"{', '.join(counts)}, equal for {int((signs == 0).sum()):,} users"


def _kinds_of_difference(measure: MeasureKey) -> tuple[str, str]:
    """Return the kinds of a difference above 0 and of one below 0."""
    kinds = {"higher": ("better", "worse"), "lower": ("worse", "better"), "neither": ("higher", "lower")}
    return kinds[defaults.better_of(measure[0])]


def _bin_row(low: float, high: float, n: int, n_users: int) -> dict[str, Any]:
    share = int(n) / n_users
    return {
        "low": float(low),
        "high": float(high),
        "share": share,
        "kind": "some",
        "range": "exactly 0" if low == high else f"{low:.3g} to {high:.3g}",
        "count": int(n),
        "part": wording.percent(share),
    }


def _shared_channels(
    title: str, measure: MeasureKey, edges: FloatVector, bins: Iterable[Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the channels that the bars of all models share: both axes and the tooltip."""
    alt = charts.import_altair()
    most = max((row["share"] for rows in bins for row in rows), default=1.0)
    span = alt.Scale(domain=[float(edges[0]), float(edges[-1])])
    return {
        "x": alt.X("low:Q", bin="binned", scale=span, axis=charts.axis(title, grid=False)),
        "y": alt.Y("share:Q", scale=alt.Scale(domain=[0, most]), axis=charts.axis("users", format=".0%", tickCount=3)),
        "tooltip": charts.tooltips(range=with_cutoff(*measure), count="users", part="of all"),
    }


def _bars_panel(
    model: str, rows: Sequence[Mapping[str, Any]], colour: str, channels: Mapping[str, Any], look: Look
) -> Chart:
    """Draw the histogram of one model, with users at 0 in a bar of their own."""
    some = [row for row in rows if row["kind"] == "some"]
    zeros = [{**row, "note": f"{row['part']} at 0"} for row in rows if row["kind"] == "zero"]
    layers = [charts.layer("bar", some, {"color": colour, "opacity": 0.85, "binSpacing": 1}, x2="high:Q", **channels)]
    if zeros:
        hollow = {"size": 7, "color": look.palette.surface, "stroke": colour, "strokeWidth": 1.5, "xOffset": -6}
        words = {"align": "left", "dx": 3, "dy": 6, "fontSize": 11, "color": look.palette.ink}
        layers += [
            charts.layer("bar", zeros, hollow, **{**channels, "x": "low:Q"}),
            charts.layer("text", zeros, words, x="low:Q", y=channels["y"], text="note:N"),
        ]
    return charts.panel(layers, look, height=BAR_HEIGHT, title=model)


def _difference_panel(title: str, rows: Sequence[Mapping[str, Any]], shared: Mapping[str, Any], look: Look) -> Chart:
    """Draw the histogram of differences, better and worse in their colours."""
    alt, palette = charts.import_altair(), look.palette
    colours = [palette.better, palette.worse, palette.muted, palette.muted]
    scale = alt.Scale(domain=list(SIDES), range=colours)
    channels = {**shared, "color": alt.Color("kind:N", scale=scale, legend=None)}
    layers = [
        charts.layer("bar", rows, {"opacity": 0.85, "binSpacing": 1}, x2="high:Q", **channels),
        charts.layer("rule", [{"low": 0}], {"color": palette.ink, "strokeWidth": 1.2}, x="low:Q"),
    ]
    return charts.panel(layers, look, height=BAR_HEIGHT, title=title)
