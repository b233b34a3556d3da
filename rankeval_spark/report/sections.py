"""Sections of the page, in reading order. A section without data explains how to get it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rankeval_spark import columns as C, wording
from rankeval_spark.config.requested_measures import recorded_definitions
from rankeval_spark.measures import group_statistics, with_cutoff
from rankeval_spark.measures.names import find_biases, measure_of
from rankeval_spark.report import defaults, figures
from rankeval_spark.report.examples import examples_section
from rankeval_spark.report.figures.forest_plot import forest_rows
from rankeval_spark.report.figures.means import (
    beyond_accuracy,
    curve_labels,
    group_rows,
    leaderboard_rows,
    slicings,
)
from rankeval_spark.report.figures.precision_recall import N_CURVES, TOGETHER, find_spots, level_of, mean_points
from rankeval_spark.report.figures.users import (
    column_of,
    differences_by_model,
    values_by_model,
    win_phrase,
)
from rankeval_spark.report.forest_table import forest_table
from rankeval_spark.report.night_changes import changes_section
from rankeval_spark.report.page_parts import Block, Cell, Drawn, Section, TableView, Tone
from rankeval_spark.report.tables import Row, keep, rows_of
from rankeval_spark.statistics.paired_tests import why_withheld
from rankeval_spark.statistics.unpaired_tests import describe_shared_users

if TYPE_CHECKING:
    from datetime import date

    from rankeval_spark.report.defaults import MeasureKey
    from rankeval_spark.report.night import Night
    from rankeval_spark.report.page_parts import Drawer

FAMILIES: Final = {
    "primary": "{tests} on all users",
    "slices": "{n} in slices",
    "exploratory": "{tests} of exploratory measures",
    None: "{tests}",  # of a version without families
}
OPEN_FORESTS: Final = 1  # the best candidate; forests of others are folded
MAX_SLICINGS: Final = 6
MAX_TRADEOFFS: Final = 6
MAX_MODELS: Final = 8  # with figures of single users
VERDICT_TONES: Final[Mapping[str, Tone]] = {"better": "good", "worse": "bad", "undecided": "open"}
NO_VALUES: Final = "Every value is undefined for every user."
NO_CURVES: Final = "Request `IPrecCurve` for the 11 levels of recall."
NO_USERS: Final = (
    "No rows of single users: `rankeval maintain --keep-days` deleted them, or the night has none. Run the date again "
    "to have them."
)
COUNTS: Final = {
    "n_users": "in the mean",
    "n_undefined": "undefined",
    "n_missing": "without a list",
    "n_zero_relevant": "nothing relevant",
    "n_extra_users": "without judgement",
}
"""Counts of each mean and their headings."""
CHECK_TONES: Final[Mapping[str, Tone]] = {"error": "bad", "warn": "open", "ok": "good"}
CHECK_ORDER: Final = {"error": 0, "warn": 1, "ok": 2}
KINDS: Final = (group_statistics.GROUP_GAP, group_statistics.GROUP_RATIO, group_statistics.WORST_GROUP)


def leaderboard_section(night: Night, drawer: Drawer) -> Section:
    """Build the section of the means over all users."""
    if night.first is None:
        return Section(hint="This night has no rows over all users.")
    drawn: list[Drawn] = []
    for measure in night.headlines:
        name = with_cutoff(*measure)
        drawn += drawer.draw(name, figures.leaderboard, night.means, note=_question(measure[0]), measures=[name])
    level = next((row["ci_level"] for row in rows_of(night.means, ["ci_level"])), 0.95)
    n_all, table = len(night.known), _means_table(night)
    left = ""
    if len(drawn) < n_all:
        all_of_them = f"“{table.caption}” has " + ("all" if table.n_rows == len(table.rows) else f"{len(table.rows):,}")
        left = f" One measure a question is drawn, {len(drawn)} of {n_all}; {all_of_them}."
    orders = " or ".join(dict.fromkeys(defaults.order_in_words(label) for label, _ in night.headlines))
    is_uncertain = any(rows_of(keep(night.means, is_uncertain=True), ["is_uncertain"]))
    uncertain = " The interval of an uncertain mean may miss more often: few users decide about it." * is_uncertain
    lead = (
        f"Means over all users with {100 * level:.4g} % intervals, {orders}. Two models may differ although their "
        f"intervals overlap: the comparison below is of their difference.{uncertain}{left}"
    )
    notes = [f"{bias}." for bias in find_biases(label for label, _ in night.requested)]
    return Section(lead, [Block(figures=drawn), Block(notes=notes, tables=[_board_table(night), table])])


def _question(label: str) -> str:
    """Return the question that a measure answers, as a caption."""
    question = defaults.question_of(label)
    return "" if question == label else question.capitalize()


def _means_table(night: Night) -> TableView:
    """Build the table of measures by models, which has every mean."""
    rows: list[list[Cell | str]] = []
    for measure in night.requested:
        of_measure = {row["model"]: row for row in leaderboard_rows(night.means, measure)}
        users = max((row["users"] for row in of_measure.values()), default=0)
        cells = [_mean_cell(of_measure.get(model)) for model in night.models]
        rows.append([with_cutoff(*measure), *cells, Cell(wording.count(users), users)])
    numbers = [*night.models, "users"]
    caption = "Every measure at every cutoff"
    return TableView("means", caption, ["measure", *numbers], rows, numbers=numbers, is_folded=True)


def _mean_cell(row: Row | None, *, is_best: bool = False) -> Cell:
    """Build the cell of a mean with its interval."""
    return (
        Cell("not computed") if row is None else Cell(row["text"], row["value"], _interval_text(row), is_best=is_best)
    )


def _board_table(night: Night) -> TableView:
    """Build the table of models by measures. The best mean of a column is marked, if either side is better."""
    boards = {
        measure: {row["model"]: row for row in leaderboard_rows(night.means, measure)} for measure in night.headlines
    }
    order = list(dict.fromkeys([*boards[night.headlines[0]], *night.models]))
    rows = []
    for model in order:
        cells = [Cell(model, note="baseline" if model == night.baseline else "")]
        for measure, of_measure in boards.items():
            has_best = len(of_measure) > 1 and defaults.better_of(measure[0]) != "neither"
            row = of_measure.get(model)
            best = next(iter(of_measure.values()))["value"]  # of several models, if they are equal
            is_first = row is not None and row["value"] is not None and row["value"] == best and row["has_support"]
            cells.append(_mean_cell(row, is_best=has_best and is_first))
        users = max((of_measure[model]["users"] for of_measure in boards.values() if model in of_measure), default=0)
        rows.append([*cells, Cell(wording.count(users), users)])
    numbers = [*(with_cutoff(*measure) for measure in night.headlines), "users"]
    return TableView("board", "Models by measures", ["model", *numbers], rows, numbers=numbers)


def _interval_text(row: Row) -> str:
    return "" if row["interval"] == "none" else str(row["interval"])


def _users_cell(row: Row) -> Cell:
    return Cell(wording.count(row["users"]), row["users"])


def comparison_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Build the section of each candidate against the baseline, by slice."""
    compared = defaults.measures_of(night.comparisons)
    if night.first is None or night.baseline is None or not night.comparisons.num_rows:
        hint = "Set `comparisons.baseline` in the config and run the night again."
        return Section(hint=hint)
    first = night.first if night.first in compared else defaults.headline_measure(compared, night.requested)
    if first is None:
        return Section(hint="None of the measures is a mean over users.")
    blocks: list[Block] = []
    for row in leaderboard_rows(night.means, first):
        if row["model"] != night.baseline:
            blocks += _forest_blocks(night, first, row["model"], is_folded=len(blocks) >= OPEN_FORESTS)
    notes = {  # models of other users than the baseline's
        model: row["withheld"]
        for model in night.models
        for row in forest_rows(night.comparisons, first, model=model, baseline=str(night.baseline))
        if row["is_all"] and row["withheld"]
    }
    if not blocks and not notes:
        return Section(hint=f"No user has a value of {with_cutoff(*first)} under two models.")
    said = [Block(notes=[f"{model}: {why}." for model, why in notes.items()])] if notes else []
    of_first = rows_of(keep(night.comparisons, **{C.MEASURE: first[0], C.K: first[1]}))
    row, sizes = of_first[0], {each.get("family"): each["family_size"] for each in of_first}
    corrected = "not adjusted"
    if row["correction"] != "none":
        of_families = [(sizes[name], words) for name, words in FAMILIES.items() if name in sizes]
        counts = " and ".join(words.format(n=f"{n:,}", tests=wording.count(n, "test")) for n, words in of_families)
        corrected = f"adjusted by {row['correction'].title()} for {counts}"
    if "exploratory" in sizes:
        corrected += f" ({with_cutoff(*first)} is not in comparisons.primary: what it finds is to be confirmed)"
    has_side = defaults.better_of(first[0]) != "neither"
    marks = "▲ better and ▼ worse" if has_side else "◆ different, neither side being better,"
    whose, test = "on the same users", "the paired t test"
    if arms := [row for row in of_first if row.get("test") == C.UNPAIRED]:
        whose, test = "between the users of each model, who are others", "the unpaired test"
        shared = {describe_shared_users(row): None for row in arms if row[C.SLICE] == C.ALL_USERS}
        removed = [row["variance_removed"] for row in arms if row.get("variance_removed") is not None]
        whose += (
            f"; {wording.percent(removed[0])} of its variance is removed by their earlier values" if removed else ""
        )
        said += [Block(notes=[f"{text}." for text in shared if text])] if any(shared) else []
    lead = (
        f"Mean difference of {with_cutoff(*first)} {whose}. p of {test} is {corrected}; the "
        f"{100 * row['ci_level']:.4g} % intervals are not, so one that leaves out 0 may be undecided, ○. {marks} are "
        "decided; the other slices open by a click."
    )
    return Section(lead, [*said, *blocks, Block(tables=[_differences_table(night, first)])])


def _forest_blocks(night: Night, first: MeasureKey, model: str, *, is_folded: bool) -> list[Block]:
    """Build the block of one candidate; none if no user has a difference."""
    title = f"{model} − {night.baseline}, {with_cutoff(*first)}"
    rows = forest_rows(night.comparisons, first, model=model, baseline=str(night.baseline))
    forest = forest_table(title, rows)
    folded_title = f"{title}: {rows[0]['said']}" if is_folded and rows else ""
    return [Block(folded_title, forest=forest, is_folded=is_folded)] if forest else []


def _differences_table(night: Night, first: MeasureKey) -> TableView:
    """Build the table of differences from the baseline."""
    rows = [
        [
            with_cutoff(*measure),
            model,
            row["slice"],
            Cell(row["text"], row["delta"], _interval_text(row)),
            Cell(row["relative"], row["relative_delta"]),
            Cell(row["said"], tone=VERDICT_TONES.get(row["outcome"], "plain")),
            Cell(row["p"], row["p_adjusted"]),
            row["family"],
            _users_cell(row),
        ]
        for measure in dict.fromkeys([first, *night.headlines])
        for model in night.models
        for row in forest_rows(night.comparisons, measure, model=model, baseline=str(night.baseline))
    ]
    headings = ["measure", "model", "slice", "difference", "relative", "verdict", "adjusted p", "family", "users"]
    numbers = ("difference", "relative", "adjusted p", "users")
    caption = f"Differences from {night.baseline} by measure, model and slice"
    return TableView("differences", caption, headings, rows, numbers=numbers, is_folded=True)


def curves_section(night: Night, drawer: Drawer) -> Section:
    """Build the section of measures over cutoffs, one a question."""
    with_curves = curve_labels(night.known, night.requested)
    labels = [label for label, _ in night.headlines if label in with_curves]
    if not labels:
        hint = "Request a measure at two cutoffs or more, such as `cutoffs: [1, 5, 10, 20]`."
        return Section(hint=hint)
    drawn: list[Drawn] = []
    for label in labels:
        drawn += drawer.draw(label, figures.curves, night.means, note=_question(label), measures=[label])
    if not drawn:
        return Section(hint=NO_VALUES)
    lead = "The mean at each cutoff, k on a logarithmic scale, with the band of its interval. One measure a question."
    return Section(lead, [Block(figures=drawn, has_legend=True)])


def history_section(night: Night, drawer: Drawer) -> Section:
    """Build the section of the nights up to this one."""
    computed = defaults.measures_of(night.history)
    first = night.first or defaults.headline_measure(computed)
    failed = [f"{day}: the night failed ({why})." for day, why in night.failures.items()]
    drawn: list[Drawn] = []
    if night.n_nights <= 1:
        hint = f"{wording.count(night.n_nights, 'night')} with means so far; more nights make a line."
        return Section(hint=hint, blocks=[Block(notes=failed)] if failed else [])
    changes: dict[tuple[date, str], list[str]] = {}
    has_bounds = False
    for measure in night.headlines or ([first] if first else []):
        name = with_cutoff(*measure)
        options: dict[str, Any] = {"note": _question(measure[0]), "measures": [name], "marks": night.marks}
        drawn += drawer.draw(name, figures.history, night.history, **options)
        marks = night.marks(measure)
        has_bounds = has_bounds or bool(marks.bounds)
        for change in marks.redefined.items():
            changes.setdefault(change, []).append(name)
    if not drawn:
        hint = "No night of this evaluation has a mean yet."
        return Section(hint=hint, blocks=[Block(notes=failed)] if failed else [])
    notes = [
        f"{day}: the definition of {wording.listed(names)} changed ({what})."
        for (day, what), names in sorted(changes.items(), key=lambda each: each[0][0])
    ]
    lead = "Means over all users with the bands of their intervals."
    lead += " Dotted lines are bounds of the gates." if has_bounds else ""
    lead += " ✕ is a night that failed." if failed else ""
    lead += " A dashed vertical line is a night when the definition of a measure changed." if changes else ""
    return Section(lead, [Block(figures=drawn, notes=[*notes, *failed], has_legend=True)])


def precision_recall_section(night: Night, drawer: Drawer) -> Section:
    """Build the section of precision over recall."""
    models = [*mean_points(night.means, find_spots(night.means))] if night.first else []
    if not models:
        return Section(hint=NO_CURVES)
    users = night.user_metrics if night.user_metrics.num_rows else None
    shown = models[:MAX_MODELS]
    drawn = drawer.draw(TOGETHER, figures.pr_curve, night.means, models=shown) if len(shown) > 1 else []
    for model in shown:
        drawn += drawer.draw(model, figures.pr_curve, night.means, users, models=[model])
    sample = NO_USERS
    if users is not None:
        sample = (
            f"Faint lines are {N_CURVES} users at most, chosen by a hash of their id. The dashed line is the recall "
            "that the lists could reach by their length, on average: precision beyond it says little about a model."
        )
    lead = f"Interpolated precision at levels of recall: the mean over users, with its interval. {sample}"
    lead += " Rings mark where two models cross." if len(shown) > 1 else ""
    return Section(lead, [Block(figures=drawn, has_legend=len(shown) > 1)])


def distributions_section(night: Night, drawer: Drawer) -> Section:
    """Build the section of the distributions of users' values and differences."""
    if not night.user_metrics.num_rows:
        return Section(hint=NO_USERS)
    columns = night.user_metrics.column_names
    measure = next((key for key in night.headlines if column_of(key[0]) in columns), None)
    values: dict[str, Any] = {} if measure is None else values_by_model(night.user_metrics, measure)
    if measure is None or not values:
        return Section(hint="No measure of this night has a value for a user.")
    name = with_cutoff(*measure)
    drawn: list[Drawn] = []
    for model in sorted(values)[:MAX_MODELS]:
        drawn += drawer.draw(model, figures.user_values, night.user_metrics, measure=name, models=[model])
    share = night.tables.user_share
    sample = f"a sample of {wording.percent(share)} of the users, chosen by a hash of their id"
    whom = "all users" if share >= 1 else sample
    lead = f"How {name} is spread over {whom}, in bins. Users at exactly 0 are the hollow bar."
    return Section(lead, [Block(figures=drawn), *_user_differences(night, drawer, measure)])


def _user_differences(night: Night, drawer: Drawer, measure: MeasureKey) -> list[Block]:
    """Draw, for each model, the distribution of the users' differences from the baseline."""
    if night.baseline is None:
        return []
    name = with_cutoff(*measure)
    drawn: list[Drawn] = []
    differences = differences_by_model(night.user_metrics, measure, baseline=night.baseline)
    withheld = {
        row[C.MODEL_ID]
        for row in rows_of(night.comparisons, slice=C.ALL_USERS)
        if why_withheld(row) or row["test"] == C.UNPAIRED
    }
    for model in sorted(set(differences) - withheld)[:MAX_MODELS]:
        said = win_phrase(differences[model], measure)
        options: dict[str, Any] = {"note": said, "measure": name, "models": [model]}
        drawn += drawer.draw(f"{model} − {night.baseline}", figures.user_differences, night.user_metrics, **options)
    notes = [f"Difference of {name} on the same user, in bins; users without a difference are counted, not drawn."]
    return [Block("Differences of the same user", notes, drawn)] if drawn else []


def groups_section(night: Night, drawer: Drawer) -> Section:
    """Build the section that compares groups of users."""
    computed = slicings(night.metrics)
    if night.first is None or not computed:
        return Section(hint="Set `slices` in the config, such as `slices: [country]`.")
    name = with_cutoff(*night.first)
    drawn: list[Drawn] = []
    for slicing in computed[:MAX_SLICINGS]:
        shown = wording.crossed(slicing)
        drawn += drawer.draw(shown, figures.groups, night.metrics, measure=name, slices=[slicing])
    if not drawn:
        return Section(hint=NO_VALUES)
    lead = (
        f"{name} of each group; the bar runs from the lowest to the highest group of a model. Hollow points are small "
        "groups and users of unknown segment, which are not compared."
    )
    if len(computed) > MAX_SLICINGS:
        lead += f" {MAX_SLICINGS} of {len(computed)} slicings are drawn."
    tables = [_gaps_table(night, night.first), _group_means_table(night, night.first)]
    return Section(lead, [Block(figures=drawn), Block(tables=tables)])


def _gaps_table(night: Night, measure: MeasureKey) -> TableView:
    """Build the table of gaps between groups: a row a slicing and model."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows_of(night.group_metrics, k=measure[1]):
        kind, label = group_statistics.parts_of(row[C.MEASURE]) or ("", "")
        if label == measure[0] and kind in group_statistics.KINDS:
            found.setdefault((row[C.SLICE], row[C.MODEL_ID]), {})[kind] = row
    rows: list[list[Cell | str]] = []
    for (slicing, model), by_kind in sorted(found.items()):
        gap, ratio, worst = map(by_kind.get, KINDS)
        left = None if gap is None else gap["n_left_out"]
        rows.append(
            [
                wording.crossed(slicing),
                model,
                _value_cell(gap),
                _value_cell(ratio),
                Cell(wording.group_name(worst[C.SLICE_VALUE]) if worst else "", note=_value_cell(worst).text),
                Cell(wording.count(left), left),
            ]
        )
    numbers = ("gap", "worst / best", "users left out")
    headings = ["slicing", "model", "gap", "worst / best", "worst group", "users left out"]
    caption = f"Gaps of {with_cutoff(*measure)} between groups"
    return TableView("gaps", caption, headings, rows, numbers=numbers, is_folded=True)


def _value_cell(row: Row | None) -> Cell:
    """Build the cell of a value with the digits of its interval."""
    if row is None:
        return Cell("")
    low, high = row["ci_low"], row["ci_high"]
    places = wording.decimals([None if low is None else (high - low) / 2], [row[C.VALUE]])
    return Cell(wording.number(row[C.VALUE], places), row[C.VALUE], wording.interval(low, high, places))


def _group_means_table(night: Night, measure: MeasureKey) -> TableView:
    """Build the table of the means of every group."""
    rows = [
        [
            wording.crossed(slicing),
            Cell(row["group"], note="small or unknown" if row["is_small"] else ""),
            row["model"],
            Cell(row["text"], row["value"], _interval_text(row)),
            _users_cell(row),
        ]
        for slicing in slicings(night.metrics)
        for row in group_rows(night.metrics, measure, slicing)
    ]
    headings, caption = ["slicing", "group", "model", "mean", "users"], f"{with_cutoff(*measure)} of every group"
    return TableView("values", caption, headings, rows, numbers=("mean", "users"), is_folded=True)


def tradeoffs_section(night: Night, drawer: Drawer) -> Section:
    """Build the section of accuracy against coverage, novelty and popularity."""
    others = {
        defaults.question_of(label): (label, k) for label, k in reversed(beyond_accuracy(night.known, night.requested))
    }
    if night.first is None or not others:
        measures = "`CatalogCoverage`, `MIUF` or `ARP`"
        hint = f"Request measures such as {measures}, which read `inputs.train`."
        return Section(hint=hint)
    accuracy = with_cutoff(*night.first)
    drawn: list[Drawn] = []
    for measure in [*reversed(others.values())][:MAX_TRADEOFFS]:
        name = with_cutoff(*measure)
        options: dict[str, Any] = {"note": _question(measure[0]), "measure": accuracy, "against": [name]}
        drawn += drawer.draw(name, figures.tradeoffs, night.means, **options)
    if not drawn:
        return Section(hint=NO_VALUES)
    lead = f"What else the lists are like, each upright against {accuracy}, with intervals both ways."
    return Section(lead, [Block(figures=drawn, has_legend=True)])


def health_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Build the section of checks and of the users behind the means."""
    warned = [row for row in night.checks if row["verdict"] != "ok"]
    tables = [_checks_table(warned, "Checks to look at")] if warned else []
    if len(warned) < len(night.checks):
        quiet = [row for row in night.checks if row not in warned]
        tables.append(_checks_table(quiet, "Checks with nothing to look at", is_folded=True))
    if night.first:
        users = rows_of(night.means, measure=night.first[0], k=night.first[1])
        rows = [
            [
                row[C.MODEL_ID],
                *(Cell(wording.count(row[name]), row[name]) for name in COUNTS),
                Cell(wording.percent(row["tie_share"]), row["tie_share"]),
            ]
            for row in users
        ]
        numbers, caption = (*COUNTS.values(), "lists with ties"), f"Users behind {with_cutoff(*night.first)}"
        tables.append(TableView("health", caption, ["model", *numbers], rows, numbers=numbers, is_folded=True))
    if not tables:
        return Section(hint="Nothing of this night was measured.")
    lead = f"{wording.count(len(night.checks), 'check')} of the inputs, {len(warned) or 'none'} of them to look at."
    return Section(lead, [Block(tables=tables)])


def _checks_table(checks: Sequence[Row], caption: str, *, is_folded: bool = False) -> TableView:
    """Build the table of checks: failures and warnings first, then those that counted something."""

    rank = {row["verdict"]: CHECK_ORDER.get(row["verdict"], 0) for row in checks}
    ordered = sorted(checks, key=lambda row: (rank[row["verdict"]], not row["count"], row["input"], row["check"]))
    rows = [
        [
            Cell(row["verdict"], float(rank[row["verdict"]]), tone=CHECK_TONES.get(row["verdict"], "open")),
            row["input"],
            row["check"].replace("_", " "),
            Cell(wording.count(row["count"]), row["count"]),
            Cell(wording.percent(row["share"]), row["share"]),
            Cell(wording.percent(row["threshold"]), row["threshold"]),
            ", ".join(row["sample_keys"]),
        ]
        for row in ordered
    ]
    numbers = ("count", "share", "threshold")
    headings = ["verdict", "input", "check", *numbers, "for example"]
    id_ = caption.lower().replace(" ", "-")
    return TableView(id_, caption, headings, rows, numbers=numbers, is_folded=is_folded)


def definitions_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Build the section of definitions. The levels of a curve are defined once."""
    found = recorded_definitions(night.run)
    policies = next((one.policies for one in found.values()), {})
    recorded = {label: str(replace(definition, policies={})) for (label, _), definition in found.items()}
    labels = list(dict.fromkeys([*(label for label, _ in night.requested), *recorded]))
    if not labels:
        return Section(hint="No measures were recorded for this run.")
    levels = [label for label in labels if level_of(label) is not None]
    terms = (
        [("every measure", [f"Policies: {', '.join(f'{name}={value}' for name, value in policies.items())}."], "")]
        if policies
        else []
    )
    for label in (label for label in labels if label not in levels[1:]):
        recorded_as = [f"Recorded: {recorded[label]}."] if label in recorded else []
        measure = measure_of(label)
        if measure is None:
            terms.append((label, ["This version does not know the measure.", *recorded_as], ""))
            continue
        entry = measure.entry
        facts = [f"Range {entry.range}", f"undefined: {entry.undefined}", f"source: {entry.source}"]
        facts += [] if measure.better == "higher" else [f"{measure.better} is better"]
        facts += [entry.bias] if entry.bias else []
        is_curve = len(levels) > 1 and label in levels
        name = f"{defaults.CURVE} at {len(levels)} levels of recall" if is_curve else label
        terms.append((name, [entry.summary, f"{'; '.join(facts)}.", *recorded_as], entry.formula))
    lead = "Names are those of the tables, without the cutoff. What is recorded is every option and policy of this run."
    title = f"{wording.count(len(labels), 'measure')} and the policies of this run"
    return Section(lead, [Block(title, terms=terms, is_folded=True)])


def provenance_section(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the other sections
    """Build the section of the run's inputs, versions and configuration."""
    run = night.run
    versions = [f"{name} {version}" for name, version in sorted((run["table_versions"] or {}).items())]
    seconds: Mapping[str, float] = run["timings"] or {}
    stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds.items())
    terms = {
        "run": run[C.RUN_ID],
        "recorded": f"{run['recorded_at']:%Y-%m-%d %H:%M:%S} UTC",
        "version": f"rankeval-spark {run['code_version']}",
        "config": f"SHA-256 {run['config_hash']}",
        "sample": f"{wording.percent(run['sample_share'])} of the users",
        "time": f"{sum(seconds.values()):.1f} s: {stages}" if seconds else "not recorded",
        "table versions": ", ".join(versions) or "none",
    }
    inputs = [
        [
            table["name"],
            table["location"],
            table["format"],
            Cell("" if table["version"] is None else str(table["version"]), table["version"]),
            Cell(wording.count(table["n_rows"]), table["n_rows"]),
        ]
        for table in run["inputs"] or ()
    ]
    headings, numbers = ["input", "location", "format", "version", "rows"], ("version", "rows")
    tables = [TableView("inputs", "Inputs", headings, inputs, numbers=numbers)] if inputs else []
    config = json.dumps(night.config, indent=2, ensure_ascii=False, sort_keys=True) if night.config else ""
    blocks = [
        Block(
            "Run, versions and inputs",
            terms=[(name, [text], "") for name, text in terms.items()],
            tables=tables,
            is_folded=True,
        ),
        *([Block("Configuration", code=config, is_folded=True)] if config else []),
    ]
    lead = "What the numbers were made from: the same inputs, config and version give them again."
    return Section(lead, blocks)


BUILDERS: Final = {
    "leaderboard": ("Leaderboard", leaderboard_section),
    "comparison": ("Candidate against baseline", comparison_section),
    "changes": ("What changed", changes_section),
    "curves": ("Measures over k", curves_section),
    "history": ("History over nights", history_section),
    "precision-recall": ("Precision over recall", precision_recall_section),
    "users": ("Users", distributions_section),
    "examples": ("Examples of users", examples_section),
    "groups": ("Gaps between groups", groups_section),
    "beyond": ("Accuracy against coverage, novelty and popularity", tradeoffs_section),
    "checks": ("Checks and health", health_section),
    "definitions": ("Definitions", definitions_section),
    "provenance": ("Provenance", provenance_section),
}
"""Title and builder of each section by its id, in reading order."""

SHORT: Final[Mapping[str, str]] = {
    "comparison": "Comparison",
    "changes": "Changes",
    "curves": "Over k",
    "history": "History",
    "precision-recall": "Recall",
    "examples": "Examples",
    "groups": "Groups",
    "beyond": "Beyond accuracy",
    "checks": "Checks",
}
"""Shorter titles, for the navigation."""
