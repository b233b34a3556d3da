"""``rankeval score``: measures that are added to published nights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rankeval_spark.apps.published.rescoring import past_nights, plan_scoring, score_night
from rankeval_spark.cli.commands.published.show_results import RowSelection, selected_rows
from rankeval_spark.cli.display import tables
from rankeval_spark.cli.display.terminal import console, progress
from rankeval_spark.cli.sessions import new_session
from rankeval_spark.config import parse_date
from rankeval_spark.measures import MeasureSet
from rankeval_spark.results import results_of
from rankeval_spark.spark.session.on_demand import on_demand


def score_command(root: str, measures: Sequence[str], dates: Sequence[str], evaluation: str | None) -> None:
    """Add measures to published dates, unless they are there already, and show their means."""
    asked = MeasureSet.parse(measures, where="--measure")
    days = [parse_date(text, where="--date") for text in dates]
    spark = on_demand(partial(new_session, "rankeval score"))
    nights = past_nights(spark, root, evaluation=evaluation, dates=days, needs=asked.needs)
    for night in nights:  # what is wrong with any is said before the first is scored
        if not night.is_empty:
            plan_scoring(night, asked)
    out = console()
    for night in nights:
        name, day = night.evaluation, night.evaluation_date
        if night.is_empty:
            out.print(f"{night}: nothing to score, {night.row['reason']}", markup=False, soft_wrap=True)
            continue
        if set(asked.measures) <= set(night.measures.measures):
            out.print(f"{night}: published already, nothing to score", markup=False, soft_wrap=True)
        else:
            with progress(f"{name} {day}") as listener:
                score_night(spark, root, night, asked, progress=listener)
        rows = selected_rows(results_of(spark, root), RowSelection(str(day), name, (), asked.labels, (), asked.ks))
        out.print(tables.leaderboard(rows, f"{name}, {day}", width=out.width))
