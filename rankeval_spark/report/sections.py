"""The sections of the page, in the order in which they are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from rankeval_spark import columns as C
from rankeval_spark.measures import of_groups, with_cutoff
from rankeval_spark.report import choices, figures, wording
from rankeval_spark.report.choices import Named
from rankeval_spark.report.drawing import Drawer
from rankeval_spark.report.figures import slicings as group_figures, users as user_figures
from rankeval_spark.report.figures.compared import forest_rows
from rankeval_spark.report.figures.means import curve_labels, leaderboard_rows
from rankeval_spark.report.night import Night
from rankeval_spark.report.tables import Row, rows_of, whole
from rankeval_spark.report.views import Block, Cell, Heading, Section, TableView, Term, Tone

Builder: TypeAlias = Callable[[Night, Drawer], Section]

MOST_USER_MODELS: Final = 8
"""Models of which single users are drawn."""
OPEN_FORESTS: Final = 2
"""Candidates whose forest is open, the best ones; others are folded."""
MOST_SLICINGS: Final = 6
MOST_TRADEOFFS: Final = 6
MOST_CURVES: Final = 6
OF_HEALTH: Final = ("n_users", "n_undefined", "n_missing", "n_zero_relevant", "n_extra_users")


def all_sections(night: Night, drawer: Drawer) -> list[Section]:
    """Build every section; one without data says how to get them."""
    return [build(night, drawer) for build in _BUILDERS]


# ---- means ---------------------------------------------------------------------------------------------------------


def leaderboard(night: Night, drawer: Drawer) -> Section:
    """Show the mean of each model over all users."""
    id_, title = "leaderboard", "Leaderboard"
    if night.first is None:
        return Section(id_, title, hint="No means: this night has no rows over all users.")
    drawn = [
        drawer.draw(
            lambda one=one: figures.leaderboard(  # type: ignore[misc]  # a measure of each turn
                night.metrics, measures=[with_cutoff(*one)], baseline=night.baseline, look=drawer.look
            ),
            with_cutoff(*one),
            _spoken_board(leaderboard_rows(night.metrics, one), with_cutoff(*one)),
        )
        for one in night.headlines
    ]
    level = next((row["ci_level"] for row in rows_of(whole(night.metrics), ["ci_level"])), 0.95)
    n_measures = len(night.known)
    left = (
        ""
        if n_measures == len(drawn)
        else f" {len(drawn)} of {n_measures} measures are drawn, the table below has all."
    )
    lead = (
        f"Means over all users with {100 * level:.4g} % intervals, best first. Overlapping intervals do not say that two "
        f"models are alike: the comparisons below pair the same users.{left}"
    )
    tables = [_board(night), _all_means(night)]
    return Section(id_, title, lead, [Block(figures=drawn), Block(tables=tables)])


def _spoken_board(rows: Sequence[Row], name: str) -> str:
    values = "; ".join(f"{row['model']} {row['text']} ({row['interval']})" for row in rows)
    return f"{name} by model, best first: {values}"


def _board(night: Night) -> TableView:
    """Lay out models by measures; the best mean of each column is marked."""
    boards = {one: leaderboard_rows(night.metrics, one) for one in night.headlines}
    by_model = {one: {row["model"]: row for row in rows} for one, rows in boards.items()}
    order = [row["model"] for row in boards[night.headlines[0]]]
    order += [model for model in night.models if model not in order]
    rows = []
    for model in order:
        cells = [Cell(model, note="baseline" if model == night.baseline else "")]
        for one in night.headlines:
            row = by_model[one].get(model)
            cells.append(
                _mean_cell(row, is_best=bool(row) and row is not None and row["place"] == 1 and len(boards[one]) > 1)
            )
        users = max((own[model]["users"] for own in by_model.values() if model in own), default=0)
        rows.append([*cells, Cell(wording.count(users), users)])
    headings = [Heading("model"), *(Heading(with_cutoff(*one), is_number=True) for one in night.headlines)]
    return TableView.of("board", "Models by measures", [*headings, Heading("users", is_number=True)], rows)


def _mean_cell(row: Row | None, *, is_best: bool = False) -> Cell:
    if row is None:
        return Cell("not computed", tone="plain")
    note = row["interval"] if row["interval"] != "none" else ""
    return Cell(row["text"], row["value"], note, is_best=is_best and row["value"] is not None)


def _all_means(night: Night) -> TableView:
    rows = []
    for one in night.requested:
        for row in leaderboard_rows(night.metrics, one):
            rows.append(
                [
                    with_cutoff(*one),
                    row["model"],
                    Cell(row["text"], row["value"]),
                    row["interval"] if row["interval"] != "none" else "",
                    Cell(wording.count(row["users"]), row["users"]),
                ]
            )
    headings = ["measure", "model", Heading("mean", is_number=True), "interval", Heading("users", is_number=True)]
    return TableView.of("means", "Every measure at every cutoff", headings, rows, is_folded=True)


def comparison(night: Night, drawer: Drawer) -> Section:
    """Show each candidate against the baseline, slice by slice."""
    id_, title = "comparison", "Candidate against baseline"
    if night.first is None or night.baseline is None:
        return Section(
            id_, title, hint="No comparisons: set `comparisons.baseline` in the config and run the night again."
        )
    compared = choices.measures_of(night.comparisons)
    first = night.first if night.first in compared else choices.headline(compared, night.requested)
    if first is None:
        return Section(id_, title, hint="No comparisons: none of the measures is a mean over users.")
    name = with_cutoff(*first)
    blocks = []
    for row in leaderboard_rows(night.metrics, first):
        model = row["model"]
        rows = forest_rows(night.comparisons, first, model=model, baseline=night.baseline)
        if any(own["delta"] is not None for own in rows):
            blocks.append(_forest(night, drawer, model, name, rows, is_folded=len(blocks) >= OPEN_FORESTS))
    row = rows_of(night.comparisons.slice(0, 1))[0]
    corrected = (
        "not adjusted"
        if row["correction"] == "none"
        else f"adjusted by {row['correction']} for {row['family_size']:,} tests"
    )
    lead = (
        f"Mean difference of {name} on the same users, with {100 * row['ci_level']:.4g} % intervals, p by the paired t test, "
        f"{corrected}. ▲ filled: significantly better; ▼ filled: significantly worse; ○ hollow: undecided. Intervals are not "
        "adjusted, so one that leaves out 0 may still be undecided."
    )
    if not blocks:
        blocks = [Block(notes=[f"No user has {name} under {night.baseline} and another model."])]
    return Section(id_, title, lead, [*blocks, Block(tables=[_comparison_table(night, first)])])


def _forest(  # noqa: PLR0913 - a block of its own
    night: Night, drawer: Drawer, model: str, name: str, rows: Sequence[Row], *, is_folded: bool
) -> Block:
    counts = {
        word: sum(row["outcome"] == word for row in rows) for word in ("better", "worse", "undecided", "not tested")
    }
    said = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    figure = drawer.draw(
        lambda: figures.forest(night.comparisons, measure=name, model=model, baseline=night.baseline, look=drawer.look),
        f"{model} − {night.baseline}, {name}",
        f"Differences of {name} by slice, {model} less {night.baseline}: {said}. The table below has every number.",
        note=f"{wording.count(len(rows), 'slice')}: {said}",
        is_wide=True,
    )
    if is_folded:
        return Block(f"{model} − {night.baseline}, {name}: {said}", figures=[figure], is_folded=True)
    return Block(figures=[figure])


def _comparison_table(night: Night, first: Named) -> TableView:
    measures = [first, *(one for one in night.headlines if one != first)]
    tones: Mapping[str, Tone] = {"better": "good", "worse": "bad", "undecided": "open"}
    rows = []
    for one in measures:
        for model in night.models:
            for row in forest_rows(night.comparisons, one, model=model, baseline=str(night.baseline)):
                rows.append(
                    [
                        with_cutoff(*one),
                        model,
                        row["slice"],
                        Cell(row["text"], row["delta"], row["interval"] if row["interval"] != "none" else ""),
                        row["relative"],
                        Cell(row["outcome"], tone=tones.get(row["outcome"], "plain")),
                        row["p"],
                        Cell(wording.count(row["users"]), row["users"]),
                    ]
                )
    headings = [
        *("measure", "model", "slice", Heading("difference", is_number=True), Heading("relative", is_number=True)),
        *("verdict", Heading("adjusted p", is_number=True), Heading("users", is_number=True)),
    ]
    caption = f"Differences from {night.baseline} by measure, model and slice"
    return TableView.of("differences", caption, headings, rows, is_folded=True)


def curves(night: Night, drawer: Drawer) -> Section:
    """Show measures over cutoffs."""
    id_, title = "curves", "Measures over k"
    labels = [label for label in curve_labels(night.known, night.requested) if choices.one_of_many(label) is None]
    if not labels:
        return Section(
            id_, title, hint="No curves: request a measure at two cutoffs or more, such as `cutoffs: [1, 5, 10, 20]`."
        )
    drawn = [
        drawer.draw(
            lambda label=label: figures.curves(  # type: ignore[misc]  # as above
                night.metrics, measures=[label], baseline=night.baseline, look=drawer.look
            ),
            label,
            f"{label} over the cutoff k, a line a model. The table of all means has every number.",
        )
        for label in labels[:MOST_CURVES]
    ]
    left = "" if len(labels) <= MOST_CURVES else f" {MOST_CURVES} of {len(labels)} measures are drawn."
    lead = f"The mean at each cutoff, k on a logarithmic scale, with the band of its interval.{left}"
    return Section(id_, title, lead, [Block(figures=drawn, has_legend=True)])


def history(night: Night, drawer: Drawer) -> Section:
    """Show the nights up to this one."""
    id_, title = "history", "History over nights"
    known = choices.measures_of(night.history)
    first = night.first or choices.headline(known)
    if first is None:
        return Section(id_, title, hint="No history: no night of this evaluation has means yet.")
    measures = [one for one in (night.headlines or [first]) if one in known]
    drawn = []
    changes: dict[tuple[Any, str], list[str]] = {}
    for one in measures:
        marks = night.marks(one)
        name = with_cutoff(*one)
        drawn.append(
            drawer.draw(
                lambda one=one, marks=marks: figures.history(  # type: ignore[misc]  # as above
                    night.history, measures=[with_cutoff(*one)], baseline=night.baseline, marks=marks, look=drawer.look
                ),
                name,
                f"{name} over {wording.count(night.n_nights, 'night')}, a line a model.",
            )
        )
        for change in marks.changes.items():
            changes.setdefault(change, []).append(name)
    notes = [
        f"{day}: the definition of {wording.listed(names)} changed ({what})."
        for (day, what), names in sorted(changes.items(), key=lambda each: each[0][0])
    ]
    failed = [f"{day}: the night failed ({why})." for day, why in night.failures.items()]
    only = "One night so far; more nights make a line. " if night.n_nights == 1 else ""
    lead = (
        f"{only}Means over all users with the bands of their intervals. Dotted lines are bounds of the gates, ✕ is a night "
        "that failed, and a dashed upright line is a night from which on a measure is defined otherwise."
    )
    return Section(id_, title, lead, [Block(figures=drawn, notes=[*notes, *failed], has_legend=True)])


# ---- users ---------------------------------------------------------------------------------------------------------


def precision_recall(night: Night, drawer: Drawer) -> Section:
    """Show precision over recall."""
    id_, title = "precision-recall", "Precision over recall"
    means = user_figures.curve_means(night.metrics) if night.first else []
    if not means:
        hint = "No curves: request `IPrec@0`, `IPrec@0.1`, … `IPrec@1` for the 11 levels of recall."
        return Section(id_, title, hint=hint)
    has_users = bool(night.user_metrics.num_rows)
    models = sorted({row["model"] for row in means})
    drawn = [
        drawer.draw(
            lambda model=model: figures.pr_curve(  # type: ignore[misc]  # as above
                night.metrics,
                night.user_metrics if has_users else None,
                models=[model],
                baseline=night.baseline,
                look=drawer.look,
            ),
            model,
            f"Interpolated precision of {model} over recall: "
            + ", ".join(f"{row['text']} at {row['recall']:g}" for row in means if row["model"] == model),
        )
        for model in models[:MOST_USER_MODELS]
    ]
    sample = (
        f"Faint lines are {user_figures.N_CURVES} users at most, chosen by a hash of their id. The dashed line is the recall "
        "that the lists could reach by their length, on average: precision beyond it says little about a model."
        if has_users
        else _NO_USERS
    )
    lead = f"Interpolated precision at 11 levels of recall: the mean over users, with its interval. {sample}"
    return Section(id_, title, lead, [Block(figures=drawn)])


def distributions(night: Night, drawer: Drawer) -> Section:
    """Show how the values of single users, and their differences, are spread."""
    id_, title = "users", "Users"
    if not night.user_metrics.num_rows:
        return Section(id_, title, hint=_NO_USERS)
    values: dict[str, Any] = {}
    measure = next((one for one in night.headlines if _column_of(one) in night.user_metrics.column_names), None)
    if measure is not None:
        values = user_figures.values_of(night.user_metrics, measure)
    if measure is None or not values:
        return Section(id_, title, hint="No distributions: no measure of this night has a value for each user.")
    name = with_cutoff(*measure)
    drawn = [
        drawer.draw(
            lambda model=model: figures.user_values(  # type: ignore[misc]  # as above
                night.user_metrics, measure=name, models=[model], baseline=night.baseline, look=drawer.look
            ),
            model,
            f"Distribution of {name} over {wording.count(len(values[model]), 'user')} of {model}: "
            f"{wording.percent(float((values[model] == 0).mean()))} at exactly 0.",
        )
        for model in sorted(values)[:MOST_USER_MODELS]
    ]
    whom = _of_users(night)
    lead = f"How {name} is spread over {whom}, in bins. Users at exactly 0 are the hollow bar."
    blocks = [Block(figures=drawn)]
    differences = (
        user_figures.differences_of(night.user_metrics, measure, baseline=night.baseline)
        if night.baseline is not None
        else {}
    )
    if differences:
        of_pairs = [
            drawer.draw(
                lambda model=model: figures.user_differences(  # type: ignore[misc]  # as above
                    night.user_metrics,
                    measure=name,
                    baseline=str(night.baseline),
                    models=[model],
                    look=drawer.look,
                ),
                f"{model} − {night.baseline}",
                f"Distribution of the differences of {name} over users.",
                note=user_figures.spoken(differences[model], measure),
            )
            for model in sorted(differences)[:MOST_USER_MODELS]
        ]
        notes = [f"Difference of {name} on the same user, in bins; users without a difference are counted, not drawn."]
        blocks.append(Block("Differences of the same user", notes, of_pairs))
    return Section(id_, title, lead, blocks)


def _of_users(night: Night) -> str:
    share = night.tables.user_share
    if share >= 1:
        return "all users"
    return f"a sample of {wording.percent(share)} of the users, chosen by a hash of their id"


def _column_of(measure: Named) -> str | None:
    return user_figures.column_of(measure[0])


_NO_USERS: Final = (
    "No rows of single users: they were deleted by `rankeval maintain --keep-days`, or the night has none; run the date "
    "again to have them back."
)


# ---- groups and what else lists are like ---------------------------------------------------------------------------


def groups(night: Night, drawer: Drawer) -> Section:
    """Show how groups of users compare."""
    id_, title = "groups", "Gaps between groups"
    slicings = group_figures.slicings(night.metrics)
    if night.first is None or not slicings:
        return Section(id_, title, hint="No groups: set `slices` in the config, such as `slices: [country]`.")
    name = with_cutoff(*night.first)
    drawn = [
        drawer.draw(
            lambda slicing=slicing: figures.groups(  # type: ignore[misc]  # as above
                night.metrics, measure=name, slices=[slicing], baseline=night.baseline, look=drawer.look
            ),
            wording.crossed(slicing),
            f"{name} of each group of {slicing} by model. The tables below have every number.",
        )
        for slicing in slicings[:MOST_SLICINGS]
    ]
    left = "" if len(slicings) <= MOST_SLICINGS else f" {MOST_SLICINGS} of {len(slicings)} slicings are drawn."
    lead = (
        f"{name} of each group; the bar runs from the worst to the best group of a model. Hollow points are small groups "
        f"and users of unknown segment, which are not compared.{left}"
    )
    tables = [_gap_table(night, night.first), _slice_table(night, night.first)]
    return Section(id_, title, lead, [Block(figures=drawn, has_legend=False), Block(tables=tables)])


def _gap_table(night: Night, measure: Named) -> TableView:
    """Lay out gap, ratio and worst group of each slicing and model."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows_of(night.group_metrics, k=measure[1]):
        parts = of_groups.parts_of(row[C.MEASURE])
        if parts is not None and parts[1] == measure[0] and parts[0] in of_groups.KINDS:
            found.setdefault((row[C.SLICE], row[C.MODEL_ID]), {})[parts[0]] = row
    rows = []
    for (slicing, model), own in sorted(found.items()):
        gap, ratio, worst = (
            own.get(kind) for kind in (of_groups.GROUP_GAP, of_groups.GROUP_RATIO, of_groups.WORST_GROUP)
        )
        ends = "" if gap is None else wording.interval(gap["ci_low"], gap["ci_high"])
        rows.append(
            [
                wording.crossed(slicing),
                model,
                Cell(_number_of(gap), _value_of(gap), ends),
                Cell(_number_of(ratio, 3), _value_of(ratio)),
                Cell("" if worst is None else wording.crossed(worst[C.SLICE_VALUE]), note=_number_of(worst)),
                Cell(wording.count(gap["n_left_out"]) if gap else "", gap["n_left_out"] if gap else None),
            ]
        )
    headings = [
        *("slicing", "model", Heading("gap", is_number=True), Heading("worst / best", is_number=True)),
        *("worst group", Heading("users left out", is_number=True)),
    ]
    return TableView.of("gaps", f"Gaps of {with_cutoff(*measure)} between groups", headings, rows)


def _slice_table(night: Night, measure: Named) -> TableView:
    rows = []
    for slicing in group_figures.slicings(night.metrics):
        for row in group_figures.group_rows(night.metrics, measure, slicing):
            ends = row["interval"] if row["interval"] != "none" else ""
            note = "small or unknown" if row["is_small"] else ""
            rows.append(
                [
                    wording.crossed(slicing),
                    Cell(row["group"], note=note),
                    row["model"],
                    Cell(row["text"], row["value"], ends),
                    Cell(wording.count(row["users"]), row["users"]),
                ]
            )
    headings = ["slicing", "group", "model", Heading("mean", is_number=True), Heading("users", is_number=True)]
    return TableView.of("groups-table", f"{with_cutoff(*measure)} of every group", headings, rows, is_folded=True)


def _value_of(row: Row | None) -> float | None:
    return None if row is None else row[C.VALUE]


def _number_of(row: Row | None, places: int = wording.USUAL_DECIMALS) -> str:
    return "" if row is None else wording.number(row[C.VALUE], places)


def tradeoffs(night: Night, drawer: Drawer) -> Section:
    """Show accuracy against coverage, novelty and popularity."""
    id_, title = "beyond", "Accuracy against coverage, novelty and popularity"
    others = group_figures.beyond_accuracy(night.known, night.requested)
    if night.first is None or not others:
        hint = "Nothing beyond accuracy: request measures such as `CatalogCoverage`, `MIUF` or `ARP`, which read `inputs.train`."
        return Section(id_, title, hint=hint)
    accuracy = with_cutoff(*night.first)
    drawn = [
        drawer.draw(
            lambda one=one: figures.tradeoffs(  # type: ignore[misc]  # as above
                night.metrics,
                measure=accuracy,
                against=[with_cutoff(*one)],
                baseline=night.baseline,
                look=drawer.look,
            ),
            with_cutoff(*one),
            f"{with_cutoff(*one)} against {accuracy}: "
            + "; ".join(
                f"{row['model']} {row['y_text']} at {row['x_text']}"
                for row in group_figures.tradeoff_rows(night.metrics, night.first, one)  # type: ignore[arg-type]  # known
            ),
        )
        for one in others[:MOST_TRADEOFFS]
    ]
    lead = f"What else the lists are like, each upright against {accuracy}, with intervals both ways."
    return Section(id_, title, lead, [Block(figures=drawn, has_legend=True)])


# ---- checks, definitions, provenance ---------------------------------------------------------------------------------


def health(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the others
    """Show what was found in the inputs, and how many users are behind the means."""
    id_, title = "checks", "Checks and health"
    tables = [*([_check_table(night)] if night.checks else []), *([_health_table(night)] if night.first else [])]
    if not tables:
        return Section(id_, title, hint="No checks: nothing of this night was measured.")
    warned = [row for row in night.checks if row["verdict"] != "ok"]
    lead = f"{wording.count(len(night.checks), 'check')} of the inputs, {len(warned)} of them to look at."
    return Section(id_, title, lead, [Block(tables=tables)])


def _check_table(night: Night) -> TableView:
    rank = {"error": 0, "warn": 1, "ok": 2}
    tones: Mapping[str, Tone] = {"error": "bad", "warn": "open", "ok": "good"}
    ordered = sorted(
        night.checks, key=lambda row: (rank.get(row["verdict"], 0), not row["count"], row["input"], row["check"])
    )
    rows = [
        [
            Cell(row["verdict"], float(rank.get(row["verdict"], 0)), tone=tones.get(row["verdict"], "open")),
            row["input"],
            row["check"].replace("_", " "),
            Cell(wording.count(row["count"]), row["count"]),
            Cell(wording.percent(row["share"]), row["share"]),
            Cell("" if row["threshold"] is None else wording.percent(row["threshold"]), row["threshold"]),
            ", ".join(row["sample_keys"]),
        ]
        for row in ordered
    ]
    numbers = [Heading(name, is_number=True) for name in ("count", "share", "threshold")]
    return TableView.of(
        "checks-table", "Checks of the inputs", ["verdict", "input", "check", *numbers, "for example"], rows
    )


def _health_table(night: Night) -> TableView:
    """Lay out who is in the mean of the measure that is looked at first."""
    label, k = night.first or ("", 0)
    rows = []
    for row in rows_of(whole(night.metrics), measure=label, k=k):
        counts = [Cell(wording.count(row[name]), row[name]) for name in OF_HEALTH]
        rows.append([row[C.MODEL_ID], *counts, Cell(wording.percent(row["tie_share"]), row["tie_share"])])
    names = ("in the mean", "undefined", "without a list", "nothing relevant", "without judgement", "lists with ties")
    headings = ["model", *(Heading(name, is_number=True) for name in names)]
    return TableView.of("health", f"Users behind {with_cutoff(label, k)}", headings, rows)


def definitions(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the others
    """Define every measure that is shown."""
    id_, title = "definitions", "Definitions"
    recorded = {one["measure"]: one["definition"] for one in night.run["measures"] or ()}
    labels = list(dict.fromkeys([*(label for label, _ in night.requested), *recorded]))
    if not labels:
        return Section(id_, title, hint="No measures were recorded for this run.")
    terms, levels = [], [label for label in labels if user_figures.level_of(label) is not None]
    for label in (label for label in labels if label not in levels[1:]):
        named = label if label not in levels else f"{choices.CURVE} at {len(levels)} levels of recall"
        terms.append(_term(named, label, recorded.get(label)))
    lead = "Names are those of the tables, without the cutoff. What is recorded is every option and policy of this run."
    return Section(id_, title, lead, [Block(terms=terms)])


def _term(named: str, label: str, recorded: str | None) -> Term:
    lines, code = [], ""
    measure = of_groups.measure_of(label)
    if measure is not None:
        entry = measure.entry
        better = "lower is better" if entry.definition.better == "lower" else ""
        facts = [
            f"Range {entry.range}",
            f"undefined: {entry.definition.undefined}",
            better,
            f"source: {entry.definition.source}",
        ]
        lines = [entry.summary, f"{'; '.join(filter(None, facts))}."]
        code = entry.definition.formula
    else:
        lines = ["This version does not know the measure."]
    return Term(named, [*lines, *([f"Recorded: {recorded}."] if recorded else [])], code)


def provenance(night: Night, drawer: Drawer) -> Section:  # noqa: ARG001 - as the others
    """Say what the numbers were made from."""
    run = night.run
    terms = [
        Term("run", [run[C.RUN_ID]]),
        Term("recorded", [_time_of(run["recorded_at"])]),
        Term("version", [f"rankeval-spark {run['code_version']}"]),
        Term("config", [f"SHA-256 {run['config_hash']}"]),
        Term("sample", [wording.percent(run["sample_share"]) + " of the users"]),
        Term("time", [_timings(run["timings"])]),
        Term("tables", [", ".join(f"{name} {version}" for name, version in _pairs(run["table_versions"])) or "none"]),
    ]
    inputs = [
        [
            one["name"],
            one["location"],
            one["format"],
            Cell("" if one["version"] is None else str(one["version"]), one["version"]),
            Cell(wording.count(one["n_rows"]), one["n_rows"]),
        ]
        for one in run["inputs"] or ()
    ]
    headings = ["input", "location", "format", Heading("version", is_number=True), Heading("rows", is_number=True)]
    tables = [TableView.of("inputs", "Inputs", headings, inputs)] if inputs else []
    config = json.dumps(night.config, indent=2, ensure_ascii=False, sort_keys=True) if night.config else ""
    lead = "What the numbers were made from; the same inputs, config and version give them again."
    blocks = [Block(terms=terms), Block(tables=tables), *([Block("Configuration", code=config)] if config else [])]
    return Section("provenance", "Provenance", lead, blocks)


def _time_of(moment: Any) -> str:  # noqa: ANN401 - a time of pyarrow
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment is not None else ""


def _pairs(found: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - a map column
    return sorted((found or {}).items()) if not isinstance(found, list) else sorted(found)


def _timings(found: Any) -> str:  # noqa: ANN401 - as above
    seconds = _pairs(found)
    stages = ", ".join(f"{name} {spent:.1f} s" for name, spent in seconds)
    return f"{sum(spent for _, spent in seconds):.1f} s: {stages}" if seconds else "not recorded"


_BUILDERS: Final[tuple[Builder, ...]] = (
    leaderboard,
    comparison,
    curves,
    history,
    precision_recall,
    distributions,
    groups,
    tradeoffs,
    health,
    definitions,
    provenance,
)
