"""The notebook's view: the summary of an evaluation, its figures, and those of published nights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import wraps
from html import escape
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeAlias

from rankeval_spark import columns as C
from rankeval_spark.errors import ConfigError, Fault, in_words_of_calls, nearest
from rankeval_spark.measures import registry
from rankeval_spark.measures.own import name_measure
from rankeval_spark.report import defaults, figures
from rankeval_spark.report.figures.charts import NOTEBOOK, NOTEBOOK_DARK, Look
from rankeval_spark.report.figures.means import NEEDED, Marks
from rankeval_spark.report.figures.precision_recall import columns_of, find_spots
from rankeval_spark.report.figures.users import KEY, column_of, parse_measure
from rankeval_spark.report.layouts import TABLE
from rankeval_spark.report.night import MAX_NIGHTS, configured_baseline, newest_runs, redefined_nights
from rankeval_spark.report.tables import select_for_figure, to_arrow

if TYPE_CHECKING:
    from rankeval_spark.config.request import Request
    from rankeval_spark.report.figures import Figure

MAX_NAMES: Final = 12
_CELL: Final = "padding:3px 12px;text-align:left"
_NOT_YET: Final = (
    '<div style="opacity:.8;margin:6px 0">Nothing is computed for this summary; <code>.leaderboard()</code> computes '
    "the means.</div>"
)


def summary(request: Request, leaderboard: str | None) -> str:
    """Return the request and the leaderboard, which is HTML, if it is computed, as HTML."""
    facts = {
        "measures": ", ".join(_first_names(list(map(str, request.measure_set.measures)))),
        "slices": ", ".join("*".join(slicing) for slicing in request.slices),
        "baseline": "" if request.comparisons is None else request.comparisons.baseline or "all pairs",
        "models": ", ".join(_first_names(list(request.models or ()))),
        "users": f"population {request.policies.population}, ties {request.policies.ties}",
    }
    lines = ""
    for what, said in ((what, said) for what, said in facts.items() if said):
        lines += f'<tr><td style="{_CELL};opacity:.7">{what}</td><td style="{_CELL}">{escape(said)}</td></tr>'
    of_pairs = [] if request.comparisons is None else ["comparisons", "plot.forest()"]
    names = ["leaderboard()", "metrics", "user_metrics", "checks", "plot.leaderboard()", *of_pairs]
    onward = " · ".join(f"<code>.{name}</code>" for name in names)
    asked = f'<b>Evaluation</b><table style="{TABLE}">{lines}</table>'
    return f"<div>{asked}{leaderboard or _NOT_YET}<div>Go on with {onward}</div></div>"


def _first_names(names: Sequence[str]) -> list[str]:
    shown = list(names[:MAX_NAMES])
    return shown if len(names) <= MAX_NAMES else [*shown, f"and {len(names) - MAX_NAMES} more"]


Frame: TypeAlias = Any  # A result frame of any library
Day: TypeAlias = date | str | None  # an evaluation date; the newest where it is None


class Evaluated(Protocol):
    """The results that figures are drawn from."""

    request: Request

    @property
    def metrics(self) -> Frame:
        """Means."""

    @property
    def user_metrics(self) -> Frame:
        """Values of users."""

    @property
    def comparisons(self) -> Frame:
        """Models against a baseline."""


P = ParamSpec("P")


def _knowing_own(method: Callable[P, Figure]) -> Callable[P, Figure]:
    """Return a figure that knows the own measures of its evaluation, by their labels and as functions."""

    @wraps(method)
    def draw(*args: P.args, **kwargs: P.kwargs) -> Figure:
        plots, *named = args
        given: Any = (plots, *map(name_measure, named))
        options: Any = {
            name: [*map(name_measure, value)] if isinstance(value, list | tuple) else name_measure(value)
            for name, value in kwargs.items()
        }
        with registry.knowing(given[0]._evaluation.request.own):
            return method(*given, **options)

    return draw


@in_words_of_calls
class Plots:
    """Figures of an evaluation, shown without a network; the numbers behind one are computed when it is drawn.

    Each is a :class:`~rankeval_spark.report.figures.Figure`: ``figure.save("figure.png")`` writes it, and
    ``figure.chart`` is the chart of Altair.

    Those of means and comparisons need aggregates only. Those of single users (:meth:`pr_curve`, :meth:`user_values`,
    :meth:`user_differences`) read a few columns of ``user_metrics``, which on Spark come to the driver.

    ``measure``, ``measures`` and ``labels`` are requested ones, as ``"nDCG@10"``, without the cutoff for a curve, or a
    function of yours; ``against`` are those of the other axis. ``model`` and ``models`` are some of the log, all where
    left out, and ``slices`` some of the call. ``baseline`` is the model to compare with, by default that of the call.
    ``look``: colours and width. ``plot.dark`` has the same figures on a dark background.
    """

    def __init__(self, evaluation: Evaluated, look: Look = NOTEBOOK) -> None:
        self._evaluation = evaluation
        self._look = look

    def __repr__(self) -> str:
        drawn = (f".{name}()" for name, what in vars(Plots).items() if name[0] != "_" and callable(what))
        return f"figures: {', '.join(drawn)}"

    @property
    def dark(self) -> Plots:
        """The same figures on a dark background."""
        return Plots(self._evaluation, NOTEBOOK_DARK)

    @_knowing_own
    def leaderboard(self, *measures: str) -> Figure:
        """Draw each model's mean with its interval, best first; of the first measure where none is named."""
        return figures.leaderboard(
            self._evaluation.metrics, measures=measures or (self._default_measure(),), **self._options
        )

    @_knowing_own
    def curves(self, *labels: str) -> Figure:
        """Draw means over cutoffs, a line a model; of every measure with two cutoffs or more where none is named."""
        return figures.curves(self._evaluation.metrics, measures=labels, **self._options)

    @_knowing_own
    def forest(self, measure: str | None = None, *, model: str | None = None) -> Figure:
        """Draw the differences from the baseline by slice, the greatest gain first; a panel a model."""
        named = measure or self._default_measure(is_compared=True)
        return figures.forest(self._evaluation.comparisons, measure=named, model=model, look=self._look)

    @_knowing_own
    def groups(self, measure: str | None = None, *, slices: Sequence[str] = ()) -> Figure:
        """Draw the means of the groups of each slicing, so that the gaps between them are seen."""
        named = measure or self._default_measure()
        return figures.groups(self._evaluation.metrics, measure=named, slices=slices, **self._options)

    @_knowing_own
    def tradeoffs(self, measure: str | None = None, *, against: Sequence[str] = ()) -> Figure:
        """Draw accuracy against coverage, novelty, popularity and whatever else was measured."""
        named = measure or self._default_measure()
        return figures.tradeoffs(self._evaluation.metrics, measure=named, against=against, **self._options)

    @_knowing_own
    def pr_curve(self, *models: str, raw: bool = False, users: bool = True) -> Figure:
        """Draw precision over recall: models on one another with rings where they cross, and each over some users.

        Interpolated at levels of recall (``IPrec@0`` to ``IPrec@1``), or ``raw`` at the cutoffs of P and R, in steps.
        Without ``users`` only the first panel is drawn.
        """
        metrics = defaults.read_frame(self._evaluation.metrics, NEEDED, what="metrics")
        spots = find_spots(metrics, raw=raw)
        columns = [*KEY, C.K, C.N_RELEVANT, C.N_RECOMMENDED, *columns_of(spots)]
        ks = {C.WHOLE_LIST, *(spot.k for spot in spots)}
        rows = select_for_figure(self._evaluation.user_metrics, columns, ks=ks) if users else None
        return figures.pr_curve(metrics, rows, models=models, raw=raw, **self._options)

    @_knowing_own
    def user_values(self, measure: str | None = None, *, models: Sequence[str] = ()) -> Figure:
        """Draw how the values of single users are spread; a panel a model."""
        named = measure or self._default_measure(is_of_users=True)
        return figures.user_values(self._user_rows(named), measure=named, models=models, **self._options)

    @_knowing_own
    def user_differences(
        self, measure: str | None = None, *, baseline: str | None = None, models: Sequence[str] = ()
    ) -> Figure:
        """Draw how the differences of single users from a baseline are spread; a panel a model."""
        named, other = measure or self._default_measure(is_of_users=True), baseline or self._options["baseline"]
        if other is None:
            fix = "name it here, or call evaluate(..., baseline='popular')"
            raise ConfigError(Fault("plot.user_differences(baseline=)", "none", "the model to compare with", fix))
        options = {**self._options, "baseline": other}
        return figures.user_differences(self._user_rows(named), measure=named, models=models, **options)

    def _user_rows(self, measure: str) -> object:
        """Return the rows of users at the cutoff of a measure."""
        label, k = parse_measure(measure)
        columns = [*KEY, C.K, C.N_RECOMMENDED, *filter(None, [column_of(label)])]
        return select_for_figure(self._evaluation.user_metrics, columns, ks=[k])

    def _default_measure(self, *, is_of_users: bool = False, is_compared: bool = False) -> str:
        """Return the measure to draw by default: of the first one requested, the cutoff nearest to 10."""
        measures = self._evaluation.request.measure_set
        computed = measures.per_list if is_of_users or is_compared else measures.measures
        comparable = set(measures.comparable)
        wanted = [measure for measure in computed if not is_compared or measure.column in comparable]
        by_name = {(measure.label, measure.k): str(measure) for measure in wanted}
        found = defaults.headline_measure(list(by_name), list(by_name))
        if found is None:
            raise ConfigError(Fault("plot", "no such measure among those requested", "at least one, such as nDCG@10"))
        return by_name[found]

    @property
    def _options(self) -> dict[str, Any]:
        compared = self._evaluation.request.comparisons
        return {"baseline": None if compared is None else compared.baseline, "look": self._look}


class Published(Protocol):
    """The results that figures of published nights are drawn from."""

    def arrow(self, table: str, **wanted: Any) -> Any:  # noqa: ANN401 - as `Results` takes and gives them
        """Read rows of a table."""

    def runs(self, *, date: Any = None, evaluation: Any = None) -> Any:  # noqa: ANN401 - as above
        """Read the events of runs."""

    def nights(self) -> list[tuple[str, date]]:
        """Return the published nights, oldest first."""


@in_words_of_calls
class PublishedPlots:
    """Figures of published nights, shown without a network; by default the newest night of the only evaluation.

    ``date`` and ``evaluation`` name another night. ``measure`` and ``measures`` are of those nights, as ``"nDCG@10"``;
    ``model`` and ``models`` are some of them, all where left out; ``baseline`` is by default the one of the night's
    config.
    """

    def __init__(self, results: Published, look: Look = NOTEBOOK) -> None:
        self._results = results
        self._look = look

    def __repr__(self) -> str:
        return "figures: .history(), .leaderboard(), .forest(), .pr_curve()"

    @property
    def dark(self) -> PublishedPlots:
        """The same figures on a dark background."""
        return PublishedPlots(self._results, NOTEBOOK_DARK)

    def history(self, *measures: str, evaluation: str | None = None, baseline: str | None = None) -> Figure:
        """Draw means of the last 60 nights, a line a model; a line across marks a new definition of the measure."""
        name, days = self._find_nights(evaluation)
        shown = days[-MAX_NIGHTS:]
        rows = self._results.arrow("metrics", evaluation=name, date=shown, slice=C.ALL_USERS)
        nights = newest_runs(to_arrow(self._results.runs(date=shown, evaluation=name)), name)

        def marks(measure: defaults.MeasureKey) -> Marks:
            return Marks(redefined=redefined_nights(nights, measure))

        baseline = baseline or next(map(configured_baseline, reversed(nights.values())), None)
        return figures.history(rows, measures=measures, baseline=baseline, marks=marks, look=self._look)

    def leaderboard(
        self, *measures: str, date: Day = None, evaluation: str | None = None, baseline: str | None = None
    ) -> Figure:
        """Draw each model's mean of a night with its interval, best first."""
        rows = self._read_night("metrics", date, evaluation)
        baseline = baseline or self._find_baseline(date, evaluation)
        return figures.leaderboard(rows, measures=measures, baseline=baseline, look=self._look)

    def forest(
        self, measure: str | None = None, *, date: Day = None, evaluation: str | None = None, model: str | None = None
    ) -> Figure:
        """Draw the differences from the baseline by slice, the greatest gain first; a panel a model."""
        rows = self._read_night("comparisons", date, evaluation)
        return figures.forest(rows, measure=measure, model=model, look=self._look)

    def pr_curve(
        self,
        *models: str,
        raw: bool = False,
        users: bool = True,
        date: Day = None,
        evaluation: str | None = None,
        baseline: str | None = None,
    ) -> Figure:
        """Draw precision over recall of a night, ``raw`` or interpolated, see :meth:`Plots.pr_curve`.

        Without ``users`` their published values are not read, and only the first panel is drawn.
        """
        metrics = self._read_night("metrics", date, evaluation, slice=C.ALL_USERS)
        spots = find_spots(metrics, raw=raw)
        ks = sorted({C.WHOLE_LIST, *(spot.k for spot in spots)} & {*metrics[C.K].to_pylist()})
        rows = self._read_night("user_metrics", date, evaluation, k=ks) if users and spots else None
        baseline = baseline or self._find_baseline(date, evaluation)
        return figures.pr_curve(metrics, rows, models=models, baseline=baseline, raw=raw, look=self._look)

    def _read_night(self, table: str, day: Day, evaluation: str | None, **equal: object) -> Frame:
        name, days = self._find_nights(evaluation)
        return self._results.arrow(table, evaluation=name, date=days[-1] if day is None else day, **equal)

    def _find_baseline(self, day: Day, evaluation: str | None) -> str | None:
        """Return the baseline of the config of a night."""
        name, days = self._find_nights(evaluation)
        runs = to_arrow(self._results.runs(date=day or days[-1], evaluation=name))
        return next(map(configured_baseline, newest_runs(runs, name).values()), None)

    def _find_nights(self, evaluation: str | None) -> tuple[str, list[date]]:
        """Return the name of the evaluation and its nights; ConfigError unless one is named or the only one."""
        nights = self._results.nights()
        names = sorted({name for name, _ in nights})
        chosen = defaults.chosen_evaluations(names, evaluation)
        if evaluation is None and len(chosen) == 1:
            evaluation = chosen[0]
        if evaluation not in names:
            expected, fix = f"one of: {', '.join(names)}", nearest(evaluation or "", names)
            raise ConfigError(Fault("plot(evaluation=)", repr(evaluation), expected, fix))
        return evaluation, [day for name, day in nights if name == evaluation]
