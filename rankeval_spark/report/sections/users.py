"""Sections of single users: precision over recall, and how values and differences are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rankeval_spark.measures import with_cutoff
from rankeval_spark.report import figures, wording
from rankeval_spark.report.figures.users import N_CURVES, column_of, curve_means, differences_of, spoken, values_of
from rankeval_spark.report.page_charts import Caption
from rankeval_spark.report.page_parts import Block, FigureView, Section

if TYPE_CHECKING:
    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_charts import Drawer

MOST_MODELS: Final = 8
"""Models of which single users are drawn."""

NO_USERS: Final = (
    "No rows of single users: `rankeval maintain --keep-days` deleted them, or the night has none. Run the date again "
    "to have them."
)
NO_CURVES: Final = "No curves: request `IPrec@0`, `IPrec@0.1`, … `IPrec@1` for the 11 levels of recall."


def precision_recall_section(night: Night, drawer: Drawer) -> Section:
    """Show precision over recall."""
    id_, title = "precision-recall", "Precision over recall"
    means = curve_means(night.metrics) if night.first else []
    if not means:
        return Section(id_, title, hint=NO_CURVES)
    has_users = bool(night.user_metrics.num_rows)
    drawn: list[FigureView] = []
    for model in sorted({row["model"] for row in means})[:MOST_MODELS]:
        values = ", ".join(f"{row['text']} at {row['recall']:g}" for row in means if row["model"] == model)
        drawn += drawer.draw(
            figures.pr_curve,
            night.metrics,
            night.user_metrics if has_users else None,
            caption=Caption(model, f"Interpolated precision of {model} over recall: {values}"),
            models=[model],
            baseline=night.baseline,
        )
    sample = (
        f"Faint lines are {N_CURVES} users at most, chosen by a hash of their id. The dashed line is the recall that "
        "the lists could reach by their length, on average: precision beyond it says little about a model."
        if has_users
        else NO_USERS
    )
    lead = f"Interpolated precision at levels of recall: the mean over users, with its interval. {sample}"
    return Section(id_, title, lead, [Block(figures=drawn)])


def distributions_section(night: Night, drawer: Drawer) -> Section:
    """Show how the values of single users, and their differences, are spread."""
    id_, title = "users", "Users"
    if not night.user_metrics.num_rows:
        return Section(id_, title, hint=NO_USERS)
    columns = night.user_metrics.column_names
    measure = next((one for one in night.headlines if column_of(one[0]) in columns), None)
    values: dict[str, Any] = {} if measure is None else values_of(night.user_metrics, measure)
    if measure is None or not values:
        return Section(id_, title, hint="No distributions: no measure of this night has a value for a user.")
    name = with_cutoff(*measure)
    drawn: list[FigureView] = []
    for model in sorted(values)[:MOST_MODELS]:
        at_zero = wording.percent(float((values[model] == 0).mean()))
        users = wording.count(len(values[model]), "user")
        drawn += drawer.draw(
            figures.user_values,
            night.user_metrics,
            caption=Caption(model, f"Distribution of {name} over {users} of {model}: {at_zero} at exactly 0."),
            measure=name,
            models=[model],
            baseline=night.baseline,
        )
    lead = f"How {name} is spread over {_whom(night)}, in bins. Users at exactly 0 are the hollow bar."
    return Section(id_, title, lead, [Block(figures=drawn), *_differences(night, drawer, measure)])


def _differences(night: Night, drawer: Drawer, measure: MeasureKey) -> list[Block]:
    if night.baseline is None:
        return []
    name = with_cutoff(*measure)
    drawn: list[FigureView] = []
    differences = differences_of(night.user_metrics, measure, baseline=night.baseline)
    for model in sorted(differences)[:MOST_MODELS]:
        said = spoken(differences[model], measure)
        drawn += drawer.draw(
            figures.user_differences,
            night.user_metrics,
            caption=Caption(f"{model} − {night.baseline}", f"Distribution of the differences of {name}: {said}", said),
            measure=name,
            baseline=night.baseline,
            models=[model],
        )
    notes = [f"Difference of {name} on the same user, in bins; users without a difference are counted, not drawn."]
    return [Block("Differences of the same user", notes, drawn)] if drawn else []


def _whom(night: Night) -> str:
    share = night.tables.user_share
    sample = f"a sample of {wording.percent(share)} of the users, chosen by a hash of their id"
    return "all users" if share >= 1 else sample
