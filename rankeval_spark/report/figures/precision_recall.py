"""Precision over recall: the curves of models on one another, and each over the curves of single users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow.compute as pc

from rankeval_spark import columns as C, wording
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.measures.names import measure_of
from rankeval_spark.refusals import model_faults
from rankeval_spark.report import defaults
from rankeval_spark.report.figures import charts
from rankeval_spark.report.figures.charts import NOTEBOOK, Chart, Look, NothingToDrawError, Style
from rankeval_spark.report.figures.figure import (
    MAX_NAMES,
    Figure,
    combine_panels,
    count_users,
    intervals_of,
    list_names,
    night_of,
)
from rankeval_spark.report.figures.means import NEEDED as NEEDED_OF_MEANS
from rankeval_spark.report.figures.users import KEY, NEEDED as NEEDED_OF_USERS
from rankeval_spark.report.tables import Row, all_users_rows, keep, rows_of
from rankeval_spark.statistics.hashed_random import hash_ids

if TYPE_CHECKING:
    import pyarrow as pa

    Curve: TypeAlias = Sequence[Row]  # points in order, with `recall` and `precision`
    Line: TypeAlias = Sequence[tuple[float, float]]  # the same, as recall and precision

N_CURVES: Final = 50  # users whose curves are drawn faintly
HEIGHT: Final = 210
TOGETHER: Final = "all models"  # title of the panel that has several
_SAME: Final = 1e-12  # distance of two precisions up to which they are equal


class Spot(NamedTuple):
    """A point that every curve has: the cutoff, the label of precision, and that of recall or its level."""

    k: int
    precision: str
    recall: str | float


def pr_curve(
    metrics: object,
    user_metrics: object = None,
    *,
    models: Sequence[str] = (),
    baseline: str | None = None,
    raw: bool = False,
    look: Look = NOTEBOOK,
) -> Figure:
    """Draw precision over recall: models on one another, with rings where two cross, and a panel a model.

    It is the interpolated precision at levels of recall, rows ``IPrec(recall=...)``; where ``raw``, precision at each
    cutoff over recall there, rows ``P`` and ``R``, in steps under which the area of one user is the average precision.
    A panel a model needs ``user_metrics`` of the same, unless there is one model: it has the curves of 50 users, chosen
    by a hash of their id, and a line at the recall that the lists could reach by their length, on average.
    """
    table = defaults.read_frame(metrics, NEEDED_OF_MEANS, what="metrics")
    spots = find_spots(table, raw=raw)
    points = mean_points(table, spots)
    if not points:
        found = "no rows of P and R at the same cutoff" if raw else "no rows of IPrec"
        fix = "request P@1, R@1, P@2, R@2, ..." if raw else "request IPrecCurve"
        raise NothingToDrawError(Fault("pr_curve", found, "precision at levels of recall", fix))
    if faults := model_faults({f"models[{n}]": name for n, name in enumerate(models)}, list(points)):
        raise ConfigError(*faults)
    users = None if user_metrics is None else defaults.read_frame(user_metrics, NEEDED_OF_USERS, what="user_metrics")
    styles_by_model = charts.styles(list(points), look.palette, baseline=baseline)
    curves = {model: points[model] for model in list(models) or points}
    crossed, panels = find_crossings(curves, is_stepped=raw), []
    if len(curves) > 1:
        panels.append(_panel(TOGETHER, curves, {name: styles_by_model[name] for name in curves}, look, crossed=crossed))
    for model, curve in curves.items() if users is not None or len(curves) == 1 else ():
        sample = [] if users is None else user_curves(users, model, spots)
        ceiling = None if users is None else mean_recall_ceiling(users, model)
        style = {model: styles_by_model[model]}
        panels.append(_panel(model, {model: curve}, style, look, sample=sample, ceiling=ceiling))
    caption = f"{_describe(curves, crossed, intervals_of(table), is_stepped=raw)} "
    if users is not None:
        caption += (
            f"Faint lines are {N_CURVES} users at most, chosen by a hash of their id; the dashed line is the recall "
            "that the lists could reach by their length, on average. "
        )
    caption += f"Models: {list_names(curves, 'model', baseline=baseline)}.{night_of(table)}"
    return combine_panels(panels, look, "Precision over recall", caption)


def _describe(curves: Mapping[str, Curve], crossed: Sequence[Row], intervals: str, *, is_stepped: bool) -> str:
    """Return what the curves are and where they cross, in words."""
    users = count_users(row["users"] for curve in curves.values() for row in curve)
    said = f"Interpolated precision at levels of recall: the mean over {users} with bands of {intervals}."
    if is_stepped:
        ks = sorted({row[C.K] for curve in curves.values() for row in curve})
        cutoffs = f"{len(ks)} cutoffs to {ks[-1]}" if len(ks) > MAX_NAMES else f"k = {', '.join(map(str, ks))}"
        said = f"Mean precision over mean recall at {cutoffs}, in steps, of {users} with bands of {intervals}."
    if len(crossed) > MAX_NAMES:
        return f"{said} Rings mark the {len(crossed)} places where two models cross."
    if crossed:
        places = "; ".join(f"{row['models']} at recall {row['recall']:.2f}" for row in crossed)
        return f"{said} {'Rings mark' if len(crossed) > 1 else 'A ring marks'} where two models cross: {places}."
    return f"{said} No two models cross." if len(curves) > 1 else said


def level_of(label: str) -> float | None:
    """Return a measure's level of recall; None if it is not part of a curve."""
    measure = measure_of(label)
    is_level = measure is not None and measure.name == defaults.CURVE and measure.group is None
    return float(str(measure.options["recall"])) if is_level and measure is not None else None


def find_spots(metrics: pa.Table, *, raw: bool = False) -> list[Spot]:
    """Find the levels of recall of a frame in order or, where ``raw``, the cutoffs at which it has P and R."""
    computed = defaults.measures_of(all_users_rows(metrics))
    if not raw:
        levels = [(k, label, level) for label, k in computed if (level := level_of(label)) is not None]
        first = min((k for k, _, _ in levels), default=C.WHOLE_LIST)
        return sorted((Spot(*found) for found in levels if found[0] == first), key=lambda spot: spot.recall)
    labels, cutoffs = list[str](), list[set[int]]()
    for name in ("P", "R"):
        known = {label: measure_of(label) for label, _ in computed}
        named = [label for label, one in known.items() if one is not None and one.name == name and one.group is None]
        labels.append(min(named, key=len, default=name))  # the one with the fewest options
        cutoffs.append({k for label, k in computed if label == labels[-1] and k != C.WHOLE_LIST})
    return [Spot(k, *labels) for k in sorted(set.intersection(*cutoffs))]


def _labels(spots: Sequence[Spot]) -> list[str]:
    """Return the measures of the spots."""
    return [*dict.fromkeys(label for spot in spots for label in spot[1:] if isinstance(label, str))]


def columns_of(spots: Sequence[Spot]) -> list[str]:
    """Return the columns of ``user_metrics`` that curves of users are made of, one a measure."""
    return [one.column for label in _labels(spots) if (one := measure_of(label)) is not None]


def _trace(values: Mapping[tuple[str, int], float | None], spots: Sequence[Spot]) -> list[dict[str, Any]]:
    """Return a curve of values by label and cutoff: ``recall``, ``precision``, ``spot``, and ``at`` in words.

    One in steps begins at recall 0 with the first precision; that point is nowhere ``at``.
    """
    curve = list[dict[str, Any]]()
    for spot in spots:
        precision = values.get((spot.precision, spot.k))
        is_level = isinstance(spot.recall, float)
        recall = spot.recall if isinstance(spot.recall, float) else values.get((spot.recall, spot.k))
        if precision is None or recall is None:
            continue
        point = {"recall": recall, "precision": precision, "spot": spot}
        if not is_level and not curve:
            curve.append({**point, "place": 0, "recall": 0.0, "at": ""})
        at = f"recall {recall:.3g}" if is_level else f"k = {spot.k}, recall {recall:.3f}"
        curve.append({**point, "place": len(curve), "at": at})
    return curve


def mean_points(metrics: pa.Table, spots: Sequence[Spot]) -> dict[str, list[dict[str, Any]]]:
    """Return the curve of each model that has one, with intervals of precision that stay within 0 and 1."""
    of_models = dict[str, dict[tuple[str, int], Row]]()
    for each in rows_of(all_users_rows(metrics), measure=_labels(spots)):
        of_models.setdefault(each[C.MODEL_ID], {})[each[C.MEASURE], each[C.K]] = each
    found = dict[str, list[dict[str, Any]]]()
    for model, rows in sorted(of_models.items()):
        curve = _trace({key: row[C.VALUE] for key, row in rows.items()}, spots)
        for point in curve:
            spot, mean = point.pop("spot"), point["precision"]
            row = dict(rows[spot.precision, spot.k])
            for end in ("ci_low", "ci_high"):
                row[end] = None if row[end] is None else min(max(row[end], 0.0), 1.0)
            low, high = (mean if row[end] is None else row[end] for end in ("ci_low", "ci_high"))
            point |= {"model": model, C.K: spot.k, "users": row["n_users"], "low": low, "high": high}
            point |= {"text": wording.number(mean, 3), "interval": wording.mean_interval(row, 3)}
        found |= {model: curve} if curve else {}
    return found


def find_crossings(curves: Mapping[str, Curve], *, is_stepped: bool = False) -> list[dict[str, Any]]:
    """Find where the curves of two models change sides: ``models``, ``recall`` and ``precision`` of each place."""
    cross = _cross_steps if is_stepped else _cross_lines
    lines = {name: [(row["recall"], row["precision"]) for row in curve] for name, curve in curves.items()}
    return [
        {"models": f"{one} and {other}", "recall": recall, "precision": precision}
        for one, other in combinations(lines, 2)
        for recall, precision in cross(lines[one], lines[other])
    ]


def _find_turns(gaps: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Yield the places around each change of sign, the last before and the first after it; zeros are between them."""
    last = None
    for place, gap in enumerate(gaps):
        if abs(gap) <= _SAME:
            continue
        if last is not None and gap * gaps[last] < 0:
            yield last, place
        last = place


def _cross_lines(one: Line, other: Line) -> Iterator[tuple[float, float]]:
    """Yield where lines from level to level cross; of curves that run together, where they meet.

    >>> list(_cross_lines([(0.0, 1.0), (0.5, 0.25)], [(0.0, 0.5), (0.5, 0.5)]))
    [(0.3333333333333333, 0.5)]
    """
    values, others = dict(one), dict(other)
    levels = [level for level in values if level in others]
    gaps = [values[level] - others[level] for level in levels]
    for last, place in _find_turns(gaps):
        start, end = levels[last], levels[last + 1]
        share = gaps[last] / (gaps[last] - gaps[place]) if place == last + 1 else 1.0
        yield start + share * (end - start), values[start] + share * (values[end] - values[start])


def _cross_steps(one: Line, other: Line) -> Iterator[tuple[float, float]]:
    """Yield where steps cross: a precision holds back to the recall before, so both jump or one does.

    >>> list(_cross_steps([(0.0, 1.0), (0.25, 1.0), (0.5, 0.25)], [(0.0, 0.5), (0.5, 0.5)]))
    [(0.25, 0.5)]
    """
    end = min(one[-1][0], other[-1][0])
    edges = sorted({recall for recall, _ in (*one, *other) if 0 < recall <= end})
    both = [[next(height for recall, height in curve if recall >= edge) for edge in edges] for curve in (one, other)]
    for last, _ in _find_turns([first - second for first, second in zip(*both, strict=True)]):
        jumps = [sorted(heights[last : last + 2]) for heights in both]
        yield edges[last], (max(low for low, _ in jumps) + min(high for _, high in jumps)) / 2


def user_curves(users: pa.Table, model: str, spots: Sequence[Spot], *, at_most: int = N_CURVES) -> list[dict[str, Any]]:
    """Return the curves of some users, chosen by a hash of their id: a row a list of a user and point."""
    columns = [name for name in columns_of(spots) if name in users.column_names]
    if not columns:
        return []
    rows = keep(users, **{C.MODEL_ID: model, C.K: sorted({spot.k for spot in spots})})
    rows = rows.filter(pc.is_valid(rows[columns[0]]))
    names = pc.unique(rows[C.USER_ID]).to_pylist()
    order = np.argsort(hash_ids([str(name) for name in names]), kind="stable")
    chosen = [names[place] for place in order[:at_most]]  # the same ones every time, whatever their values are
    rows = keep(rows, **{C.USER_ID: chosen}) if chosen else rows.slice(0, 0)
    labels, lists = _labels(spots), dict[tuple[Any, ...], dict[tuple[str, int], float | None]]()
    for row in rows.select([*KEY, C.K, *columns]).to_pylist():
        of_row = {(label, row[C.K]): row.get(column) for label, column in zip(labels, columns_of(spots), strict=True)}
        lists.setdefault((row[C.USER_ID], row[C.LIST_ID]), {}).update(of_row)
    curves = enumerate(_trace(values, spots) for values in lists.values())
    names_of = ("place", "recall", "precision")
    return [{"user": number, **{name: point[name] for name in names_of}} for number, curve in curves for point in curve]


def mean_recall_ceiling(users: pa.Table, model: str) -> float | None:
    """Mean recall that the lists of a model could reach by their length, min(R, n) / R; None if unknown."""
    if not {C.N_RELEVANT, C.N_RECOMMENDED} <= set(users.column_names):
        return None
    lists = keep(users, **{C.MODEL_ID: model, C.K: C.WHOLE_LIST})
    lists = lists.filter(pc.greater(lists[C.N_RELEVANT], 0))
    if not lists.num_rows:
        return None
    relevant, recommended = (lists[name].to_numpy().astype(float) for name in (C.N_RELEVANT, C.N_RECOMMENDED))
    return float(np.mean(np.minimum(relevant, recommended) / relevant))


def _panel(
    title: str,
    curves: Mapping[str, Curve],
    styles_by_model: Mapping[str, Style],
    look: Look,
    *,
    sample: Sequence[Row] = (),  # of the curves of some users
    ceiling: float | None = None,  # recall that the lists can reach
    crossed: Sequence[Row] = (),
) -> Chart:
    """Draw curves with their bands, those of some users below, and rings where two cross above."""
    alt, palette = charts.import_altair(), look.palette
    # Users reach 1; means hardly do
    span, order = alt.Scale(domain=[0, 1]) if sample else alt.Scale(zero=True, nice=True), alt.Order("place:Q")
    x = alt.X("recall:Q", scale=span, axis=charts.axis("recall"))
    y = alt.Y("precision:Q", scale=span, axis=charts.axis("precision"))
    points = [row for curve in curves.values() for row in curve]
    drawn = {"interpolate": "step-before"} if any(not row["at"] for row in points) else {}
    layers = []
    if sample:
        faint = {"strokeWidth": 1, "opacity": 0.16, "color": palette.ink, **drawn}
        layers.append(charts.layer("line", sample, faint, x=x, y=y, detail="user:N", order=order))
    data, low = charts.to_chart_data(points), alt.Y("low:Q", title="precision")
    colour, dash, marked = {}, {}, {}
    if len(curves) == 1:
        ((_, style),) = styles_by_model.items()
        drawn["color"] = style.colour
    else:
        marked = charts.encode_models(styles_by_model, look)
        colour = {"color": marked["color"]}
        dashes = alt.Scale(domain=list(styles_by_model), range=[list(one.dash) for one in styles_by_model.values()])
        dash = {"strokeDash": alt.StrokeDash("model:N", scale=dashes, legend=None)}
    shown = charts.tooltips(model="model", at="at", text="precision", interval="interval", users="users")
    area = {"opacity": 0.2 if len(curves) == 1 else 0.12, "clip": True, **drawn}
    point = {"filled": True, "size": 40, "opacity": 1, "color": drawn.get("color", palette.ink)}
    layers += [
        charts.layer("area", data, area, x=x, y=low, y2="high:Q", **colour),
        charts.layer("line", data, {"strokeWidth": 2.5, **drawn}, x=x, y=y, order=order, **colour, **dash),
        charts.layer("point", [row for row in points if row["at"]], point, x=x, y=y, tooltip=shown, **marked),
    ]
    if ceiling is not None:
        rows = [{"recall": ceiling, "text": f"lists reach {ceiling:.2f}"}]
        words = {"align": "right", "baseline": "top", "dx": -5, "fontSize": 11, "color": palette.ink}
        layers += [
            charts.layer("rule", rows, {"strokeDash": [5, 3], "color": palette.ink}, x=x),
            charts.layer("text", rows, words, x=x, y={"value": 2}, text="text:N"),
        ]
    if crossed:
        ring = {"shape": "circle", "filled": False, "size": 190, "strokeWidth": 2, "opacity": 1, "color": palette.ink}
        said = [*charts.tooltips(models="cross"), alt.Tooltip("recall:Q", format=".3f")]
        layers.append(charts.layer("point", crossed, ring, x=x, y=y, tooltip=said))
    return charts.panel(layers, look, height=HEIGHT, title=title)
