"""The numbers that each figure is drawn of."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rankeval_spark.report.defaults import measures_of
from rankeval_spark.report.figures import forest_plot, means, precision_recall, users
from rankeval_spark.report.figures.charts import LIGHT, styles
from rankeval_spark.report.forest_table import forest_table
from rankeval_spark.report.tables import keep, rows_of

if TYPE_CHECKING:
    from rankeval_spark.report.tables import ReportTables

NEWEST = {"evaluation_date": date(2026, 1, 3)}


def metrics(model: str, value: float | None, **changes: object) -> dict[str, Any]:
    """Write a row of ``metrics`` over all users."""
    ends = {"ci_low": None if value is None else value - 0.01, "ci_high": None if value is None else value + 0.01}
    row = {"model_id": model, "slice": "all", "slice_value": "", "slice_values": [], "measure": "nDCG", "k": 10}
    return {**row, "value": value, **ends, "ci_level": 0.95, "n_users": 100, "is_small": False, **changes}


def comparison(slice_value: str, delta: float | None, **changes: object) -> dict[str, Any]:
    """Write a row of ``comparisons`` of als with popular."""
    where = {"slice": "country" if slice_value else "all", "slice_value": slice_value}
    ends = {"ci_low": None if delta is None else delta - 0.02, "ci_high": None if delta is None else delta + 0.02}
    row = {"baseline_model_id": "popular", "model_id": "als", **where, "measure": "nDCG", "k": 10, "n_users": 80}
    known = {"delta": delta, **ends, "ci_level": 0.95, "relative_delta": None, "test": "t", "p_adjusted": 0.5}
    return {**row, **known, "is_small": False, "verdict": "undecided", "reason": None, **changes}


# ---- means ---------------------------------------------------------------------------------------------------------


def test_a_leaderboard_has_a_row_a_model_best_first_with_the_published_interval(nights: ReportTables) -> None:
    table = keep(nights.metrics, **NEWEST)
    rows = means.leaderboard_rows(table, ("nDCG", 10))
    published = {row["model_id"]: row for row in rows_of(table, slice="all", measure="nDCG", k=10)}
    assert len(rows) == len(published) == 3
    assert [row["value"] for row in rows] == sorted((row["value"] for row in published.values()), reverse=True)
    for row in rows:
        own = published[row["model"]]
        assert (row["value"], row["low"], row["high"], row["users"]) == (
            *(own[name] for name in ("value", "ci_low", "ci_high", "n_users")),
        )


def test_where_the_lower_value_is_the_better_one_it_comes_first() -> None:
    table = pa.Table.from_pylist([metrics("a", 0.9, measure="RMSE", k=0), metrics("b", 0.7, measure="RMSE", k=0)])
    assert [row["model"] for row in means.leaderboard_rows(table, ("RMSE", 0))] == ["b", "a"]


def test_an_undefined_mean_comes_last_and_is_not_zero() -> None:
    table = pa.Table.from_pylist([metrics("a", None), metrics("b", 0.0)])
    rows = means.leaderboard_rows(table, ("nDCG", 10))
    assert [(row["model"], row["value"], row["text"]) for row in rows] == [
        ("b", 0.0, "0.000"),
        ("a", None, "undefined"),
    ]


def test_a_mean_without_an_interval_is_drawn_as_a_point() -> None:
    (row,) = means.leaderboard_rows(pa.Table.from_pylist([metrics("a", 0.5, ci_low=None, ci_high=None)]), ("nDCG", 10))
    assert (row["low"], row["value"], row["high"], row["interval"]) == (0.5, 0.5, 0.5, "none")


def test_curves_have_every_cutoff_but_the_whole_list() -> None:
    rows = [metrics("a", k / 100, k=k) for k in (20, 5, 0)] + [metrics("a", None, k=10)]
    found = means.curve_rows(pa.Table.from_pylist(rows), "nDCG")
    assert [(row["k"], row["value"]) for row in found] == [(5, 5 / 100), (20, 20 / 100)]
    assert means.curve_labels([("nDCG", 5), ("nDCG", 0), ("P", 5), ("P", 10)]) == ["P"]


def test_a_history_has_a_row_a_model_and_night(nights: ReportTables) -> None:
    rows = means.history_rows(nights.metrics, ("nDCG", 10))
    assert [(row["model"], row["date"]) for row in rows] == [
        (model, f"2026-01-0{day}") for model in ("als", "item_knn", "popular") for day in (1, 2, 3)
    ]


# ---- comparisons ---------------------------------------------------------------------------------------------------


def test_a_forest_begins_with_all_users_then_the_greatest_gain() -> None:
    rows = [comparison("DE", 0.01), comparison("FR", None), comparison("", -0.5), comparison("IT", 0.03)]
    found = forest_plot.forest_rows(pa.Table.from_pylist(rows), ("nDCG", 10), model="als", baseline="popular")
    assert [row["slice"] for row in found] == ["all users", "country = IT", "country = DE", "country = FR"]


def test_where_lower_is_better_the_greatest_gain_is_the_least_difference() -> None:
    rows = [comparison("DE", 0.01, measure="RMSE", k=0), comparison("IT", -0.03, measure="RMSE", k=0)]
    found = forest_plot.forest_rows(pa.Table.from_pylist(rows), ("RMSE", 0), model="als", baseline="popular")
    assert [row["slice"] for row in found] == ["country = IT", "country = DE"]


def test_only_the_test_that_verdicts_go_by_is_in_a_forest() -> None:
    rows = [comparison("", 0.01), comparison("", 0.01, test="sign", verdict=None)]
    assert len(forest_plot.forest_rows(pa.Table.from_pylist(rows), ("nDCG", 10), model="als", baseline="popular")) == 1


@pytest.mark.parametrize(
    ("verdict", "p", "reason", "outcome", "note"),
    [
        ("better", 0.0004, None, "better", "▲ p < .001"),
        ("worse", 0.031, None, "worse", "▼ p = .031"),
        ("different", 0.031, None, "different", "◆ p = .031"),
        ("undecided", 0.5, None, "undecided", "○ p = .50"),
        (None, None, "few_users", "not tested", "| no p"),
    ],
)
def test_a_verdict_is_a_sign_and_a_number_in_addition_to_a_colour(
    verdict: str | None, p: float | None, reason: str | None, outcome: str, note: str
) -> None:
    row = comparison("", 0.01, verdict=verdict, p_adjusted=p, reason=reason)
    (found,) = forest_plot.forest_rows(pa.Table.from_pylist([row]), ("nDCG", 10), model="als", baseline="popular")
    assert (found["outcome"], found["note"]) == (outcome, note)


def test_decided_slices_are_shown_by_slicing_and_losses_before_gains() -> None:
    """Of nine decided slices six are shown: the two losses, and the greatest gains."""
    won = [comparison(f"C{n}", 0.1 + n / 100, verdict="better", p_adjusted=0.01) for n in range(7)]
    lost = [comparison(f"L{n}", -0.03 - n / 100, slice="age", verdict="worse", p_adjusted=0.01) for n in range(2)]
    rows = [comparison("", 0.05), *won, *lost, comparison("U", 0.3), comparison("F", None)]
    found = forest_table("als", forest_rows_of(rows))
    assert found is not None
    assert [(name, [row["group"] for row in shown]) for name, shown in found.shown.groups] == [
        *[("", ["all users"]), ("age", ["L0", "L1"]), ("country", ["C6", "C5", "C4", "C3"])],
    ]
    assert found.counts == "11 slices: 7 better, 2 worse, 2 undecided"
    assert found.others == "4 other slices, 3 better"
    assert found.folded is not None
    assert [row["group"] for _, shown in found.folded.groups for row in shown] == ["U", "C2", "C1", "C0"]
    rest = forest_table("als", forest_rows_of([comparison("", 0.05), comparison("U", 0.3)]))
    assert rest is not None
    assert rest.others == "1 slice undecided or not tested"
    assert forest_table("als", forest_rows_of([comparison("", None)])) is None


def test_places_of_a_forest_are_percent_of_an_axis_that_holds_0() -> None:
    """From -0.02 to 0.08 with a twentieth of it free at each end: 0 is at (0.02 + 0.005) / 0.11."""
    found = forest_table("als", forest_rows_of([comparison("", 0.0), comparison("DE", 0.06, verdict="better")]))
    assert found is not None
    assert found.shown.zero == f"{100 * 0.025 / 0.11:.2f}"
    (row,) = found.shown.groups[1][1]
    assert (row["left"], row["width"]) == (f"{100 * 0.065 / 0.11:.2f}", f"{100 * 0.04 / 0.11:.2f}")
    assert row["middle"] == f"{100 * 0.085 / 0.11:.2f}"


def forest_rows_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a forest of als against popular."""
    return forest_plot.forest_rows(pa.Table.from_pylist(rows), ("nDCG", 10), model="als", baseline="popular")


# ---- users ---------------------------------------------------------------------------------------------------------


def users_of(*values: tuple[str, str, float | None], column: str = "ndcg", k: int = 10) -> pa.Table:
    """Make rows of ``user_metrics``: model, user and value."""
    return pa.table(
        {
            "model_id": [model for model, _, _ in values],
            "user_id": [user for _, user, _ in values],
            "list_id": [""] * len(values),
            "k": pa.array([k] * len(values), pa.int32()),
            column: pa.array([value for *_, value in values], pa.float64()),
        }
    )


def test_bins_hold_every_user_with_a_value_and_zeros_have_a_bar_of_their_own() -> None:
    table = users_of(*(("a", str(n), value) for n, value in enumerate((0.0, 0.0, 0.02, 0.5, 1.0, None))))
    values = users.values_by_model(table, ("nDCG", 10))["a"]
    bins = users.value_bins(values, users.bin_edges([values]))
    assert [(one["kind"], one["count"], one["share"]) for one in bins] == [
        ("zero", 2, 2 / 5),
        ("some", 1, 1 / 5),
        ("some", 1, 1 / 5),
        ("some", 1, 1 / 5),
    ]


def test_a_user_with_several_lists_has_the_mean_of_them() -> None:
    table = users_of(("a", "ann", 0.2), ("a", "ann", 0.6), ("a", "bob", 1.0))
    assert sorted(users.values_by_model(table, ("nDCG", 10))["a"]) == [pytest.approx(0.4, rel=0, abs=1e-12), 1.0]


def test_differences_are_those_of_users_with_a_value_under_both_models() -> None:
    table = users_of(
        *(("a", "ann", 0.5), ("a", "bob", 0.2), ("a", "cid", 0.3), ("a", "dan", None)),
        *(("b", "ann", 0.25), ("b", "bob", 0.2), ("b", "dan", 0.1), ("b", "eve", 1.0)),
    )
    found = users.differences_by_model(table, ("nDCG", 10), baseline="b")
    assert {model: sorted(values) for model, values in found.items()} == {"a": [0.0, 0.25]}
    assert users.win_phrase(found["a"], ("nDCG", 10)) == "better for 1, worse for 0, equal for 1 users"


def test_rounding_is_neither_a_gain_nor_a_loss() -> None:
    table = users_of(*(("a", "ann", 0.1 + 0.2), ("a", "bob", 0.3)), *(("b", "ann", 0.3), ("b", "bob", 0.1 + 0.2)))
    found = users.differences_by_model(table, ("nDCG", 10), baseline="b")["a"]
    assert users.win_phrase(found, ("nDCG", 10)) == "better for 0, worse for 0, equal for 2 users"


def test_where_lower_is_better_a_difference_below_zero_is_a_gain() -> None:
    differences = np.array([-0.5, 0.5, -0.25])
    bins = users.difference_bins(differences, users.difference_edges([differences]), ("RMSE", 0))
    assert [(one["high"] <= 0, one["kind"]) for one in bins] == [(True, "better"), (True, "better"), (False, "worse")]
    assert users.win_phrase(differences, ("RMSE", 0)) == "better for 2, worse for 1, equal for 0 users"


def test_where_neither_side_is_better_a_difference_is_no_gain() -> None:
    differences = np.array([-0.5, 0.5, -0.25])
    bins = users.difference_bins(differences, users.difference_edges([differences]), ("ARP", 10))
    assert [one["kind"] for one in bins] == ["lower", "lower", "higher"]
    assert users.win_phrase(differences, ("ARP", 10)) == "higher for 1, lower for 2, equal for 0 users"
    assert forest_plot.outcomes_of(("ARP", 10)) == ["different", "undecided", "not tested"]


def test_no_bin_holds_both_gains_and_losses() -> None:
    differences = np.array([-0.3, 0.001, -0.001, 0.2])
    edges = users.difference_edges([differences])
    assert 0.0 in edges
    bins = users.difference_bins(differences, edges, ("nDCG", 10))
    assert sum(one["count"] for one in bins) == 4
    assert {one["kind"]: one["count"] for one in bins if one["low"] >= 0} == {"better": 1}


def test_the_means_of_a_curve_are_those_that_are_published(nights: ReportTables) -> None:
    table = keep(nights.metrics, **NEWEST)
    rows = precision_recall.mean_points(table, precision_recall.find_spots(table))["als"]
    assert [row["recall"] for row in rows] == [level / 10 for level in range(11)]
    published = rows_of(table, slice="all", model_id="als", measure="IPrec(recall=0.3)")[0]
    assert rows[3]["precision"] == published["value"]


def test_the_curves_of_the_same_users_are_drawn_whatever_their_order(nights: ReportTables) -> None:
    table = keep(nights.user_metrics, k=0, **NEWEST)
    reversed_rows = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
    found = []
    for rows in (table, reversed_rows):
        spots = precision_recall.find_spots(keep(nights.metrics, **NEWEST))
        curves = precision_recall.user_curves(rows, "als", spots, at_most=7)
        assert len({row["user"] for row in curves}) == 7
        assert len(curves) == 7 * 11
        by_user: dict[int, list[Any]] = {row["user"]: [] for row in curves}
        for row in curves:
            by_user[row["user"]].append((row["recall"], row["precision"]))
        found.append(sorted(by_user.values()))
    assert found[0] == found[1]


def test_the_recall_ceiling_is_the_mean_of_what_lists_of_that_length_could_reach() -> None:
    table = users_of(("a", "ann", 0.1), ("a", "bob", 0.1), ("a", "cid", None), k=0)
    table = table.append_column("n_relevant", pa.array([4, 2, 0], pa.int32()))
    table = table.append_column("n_recommended", pa.array([3, 10, 5], pa.int32()))
    assert precision_recall.mean_recall_ceiling(table, "a") == pytest.approx((3 / 4 + 2 / 2) / 2, rel=0, abs=1e-12)


# ---- groups and tradeoffs --------------------------------------------------------------------------------------------


def test_groups_that_are_small_or_unknown_are_no_end_of_the_range() -> None:
    def group(value: str | None, mean: float, **changes: object) -> dict[str, Any]:
        name = "(unknown)" if value is None else value
        return metrics("a", mean, slice="country", slice_value=name, slice_values=[value], **changes)

    rows = [group("DE", 0.5), group("FR", 0.3), group("IT", 0.9, is_small=True), group(None, 0.1)]
    found = means.group_rows(pa.Table.from_pylist(rows), ("nDCG", 10), "country")
    assert {row["group"]: (row["is_small"], row["is_end"]) for row in found} == {
        "(unknown)": (True, False),
        "FR": (False, True),
        "DE": (False, True),
        "IT": (True, False),
    }


def test_slicings_by_one_segment_come_first(nights: ReportTables) -> None:
    assert means.slicings(nights.metrics) == ["country", "device", "country*device"]


def test_a_tradeoff_has_the_models_with_both_values(nights: ReportTables) -> None:
    table = keep(nights.metrics, **NEWEST)
    assert means.beyond_accuracy(measures_of(table)) == [
        *(("ARP", 10), ("CatalogCoverage", 10), ("MIUF", 10), ("Personalization", 10)),
    ]
    rows = means.tradeoff_rows(table, ("nDCG", 10), ("MIUF", 10))
    assert [row["model"] for row in rows] == ["als", "item_knn", "popular"]
    without = table.filter(pc.invert(pc.and_(pc.equal(table["model_id"], "als"), pc.equal(table["measure"], "MIUF"))))
    assert [row["model"] for row in means.tradeoff_rows(without, ("nDCG", 10), ("MIUF", 10))] == [
        *("item_knn", "popular"),
    ]


# ---- how models look -------------------------------------------------------------------------------------------------


def test_models_differ_in_shape_and_dash_in_addition_to_colour() -> None:
    names = [f"m{number}" for number in range(7)]
    found = styles(names, LIGHT)
    for part in ("colour", "shape", "dash"):
        assert len({getattr(one, part) for one in found.values()}) == 7


def test_a_model_looks_the_same_whatever_its_place_on_the_leaderboard() -> None:
    assert styles(["b", "a"], LIGHT) == styles(["a", "b"], LIGHT)


def test_more_models_than_colours_differ_by_their_shapes() -> None:
    found = styles([f"m{number:02}" for number in range(20)], LIGHT)
    assert len({(one.colour, one.shape) for one in found.values()}) == 20
