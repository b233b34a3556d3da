"""``advise``: what the data says about measures, cutoffs, policies, slices and comparisons."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rankeval_spark import columns as C
from rankeval_spark.apps import advice
from rankeval_spark.apps.advice import Advised
from rankeval_spark.apps.notebook.arguments import name_misplaced_arguments, validate_call
from rankeval_spark.apps.notebook.config_evaluation import host_of_config
from rankeval_spark.apps.notebook.evaluate import host_of, open_call
from rankeval_spark.apps.notebook.hosts import column_names, is_of_spark
from rankeval_spark.config import EvaluationConfig, FrameInputs, validate_model
from rankeval_spark.config.base import DATE_PLACEHOLDER
from rankeval_spark.config.inference import Comparisons
from rankeval_spark.config.policies import Policies
from rankeval_spark.config.request import request_of
from rankeval_spark.config.slicing import Slicing
from rankeval_spark.errors import ConfigError, FaultsError
from rankeval_spark.evaluation import Evaluation
from rankeval_spark.hosts.progress_line import show_progress
from rankeval_spark.inputs.input_files import ForSparkError
from rankeval_spark.refusals import raise_as_call, raise_in_call_words
from rankeval_spark.report.result_table import ResultTable
from rankeval_spark.sums.check_counts import to_list_facts
from rankeval_spark.sums.exposures import to_metrics
from rankeval_spark.sums.grouping import sort_by_key
from rankeval_spark.sums.profile import GAIN_BOUNDS, GAINS, RELEVANT_ITEMS, Profile
from rankeval_spark.sums.sums import COMPARISONS, LISTS, Differences, result_sums

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql import SparkSession

    from rankeval_spark.apps.advice import Data
    from rankeval_spark.config.request import Request
    from rankeval_spark.hosts.host import Host
    from rankeval_spark.sums.sums import Sum

PROFILED: Final = (*(f"{name}@{k}" for name in ("nDCG", "Judged") for k in advice.CUTOFFS), "R")
PROFILED_FROM: Final = (
    *(f"{name}@{k}" for name in ("nDCG(gains='binary',rel={0})", "Judged") for k in advice.CUTOFFS),
    "R(rel={0})",
)
PROFILE: Final = "profile"
HEADINGS: Final = {
    **{"warning": "look at first", "input": "inputs", "measure": "measures", "cutoff": "cutoffs"},
    **{"policy": "policies", "slice": "slices", "comparison": "comparisons"},
}
_OF_CONFIG: Final = ("sampled_candidates",)  # keys of inputs that a call does not have


class Advice(ResultTable):
    """Advice about data: a row each with ``kind``, ``key``, ``value`` and ``reason``.

    It prints as text. ``settings`` has the advised keys of a config, ``to_yaml()`` writes them, and ``to_python()`` the
    call of :func:`rankeval_spark.evaluate`.
    """

    def __init__(self, rows: Sequence[Advised], asked: Request) -> None:
        self.rows = rows
        self.asked: Any = asked  # the call or the config, with all that is advised
        self.settings = advice.changes_of(rows)
        texts = [row._replace(value=_write(row.value))._asdict() for row in rows]
        schema = pa.schema([(name, pa.string()) for name in Advised._fields])
        super().__init__(pa.Table.from_pylist(texts, schema), "advice")

    def to_yaml(self) -> str:
        """Return a config with all that is advised as YAML; of tables of a call it names paths to be filled in."""
        text: str = self.asked.to_yaml()
        return text

    def to_python(self) -> str:
        """Return the call of ``evaluate`` with all that is advised; further tables have the names of the arguments."""
        given = {**getattr(self.asked, "given", {}), **getattr(self.asked.inputs, "given", {})}
        tables = [name for name in given if name not in ("recommendations", "held_out", "evaluation_date")]
        rows = self.asked.inputs.model_dump(mode="json", exclude_defaults=True)
        known = {name: type(one).model_fields for name, one in FrameInputs().frames.items()}
        inputs = {
            name: {key: rows[name][key] for key in rows[name] if key in known[name]} for name in known if name in rows
        }
        values: dict[str, Any] = {"measures": list(map(str, self.asked.measure_set.measures))}
        values |= {"inputs": {name: keys for name, keys in inputs.items() if keys}} if any(inputs.values()) else {}
        values |= {key: value for key, value in self.settings.items() if key not in ("inputs", "measures", "cutoffs")}
        lines = ["recommendations", "held_out", *(f"{name}={name}" for name in tables)]
        lines += [f"{name}={value!r}" for name, value in values.items()]
        return "evaluate(\n" + "".join(f"    {line},\n" for line in lines) + ")\n"

    def __repr__(self) -> str:
        names = [_name_of(row) for row in self]
        width, lines = max(map(len, names), default=0), list[str]()
        for kind, heading in HEADINGS.items():
            of_kind = [(name, row) for name, row in zip(names, self, strict=True) if row["kind"] == kind]
            lines += [heading, *(f"  {name:<{width}}  {row['reason']}" for name, row in of_kind)] if of_kind else []
        return "\n".join(lines)


def _write(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _name_of(row: Mapping[str, str]) -> str:
    """Return what a row advises, without the section that its heading names."""
    if row["kind"] == "warning":
        return row["key"]
    last = row["key"].rpartition(".")[2]
    return row["value"] if last in ("measures", "cutoffs", "slices") else f"{last}: {row['value']}"


@name_misplaced_arguments
def advise(  # noqa: PLR0913 - the inputs of evaluate
    recommendations: object,
    held_out: object,
    *,
    models: Sequence[str] | None = None,
    segments: object = None,
    train: object = None,
    items: object = None,
    user_values: object = None,
    user_weights: object = None,
    evaluation_date: str | dt.date | None = None,
    format: str | None = None,
    inputs: FrameInputs | Mapping[str, Any] | None = None,
) -> Advice:
    """Look at data, and advise measures, cutoffs, policies, slices and comparisons, each with the figure behind it.

    Warns of counts of purchases used as grades, A/B tests, sampled candidates, leakage, few users, models of which
    unlike shares are judged, and ids that do not match. One pass over the rows, of Spark by jobs; what comes back does
    not grow with the users.

    Parameters
    ----------
    recommendations, held_out, segments, train, items, user_values, user_weights : DataFrame, table or path
        As of :func:`evaluate`.
    models, evaluation_date, format, inputs : optional
        As of :func:`evaluate`.

    Returns
    -------
    Advice
        A :class:`ResultTable` with a row for each piece of advice, which prints as text. ``to_yaml()`` writes the keys
        of a config, ``to_python()`` the call of :func:`evaluate`; both work as they are.

    Raises
    ------
    InvalidCallError, InputError
        As :func:`evaluate`.

    Examples
    --------
    >>> from rankeval_spark import advise
    >>> ranks = [n % 10 + 1 for n in range(200)]
    >>> users, items = [n // 10 for n in range(200)], [n % 17 for n in range(200)]
    >>> log = pa.table({"user_id": users, "item_id": items, "rank": ranks})
    >>> held_out = pa.table({"user_id": [*range(20)], "item_id": [n % 17 for n in range(20)]})
    >>> advise(log, held_out)
    measures
      nDCG     order counts: a relevant item at rank 1 is worth more than one at rank 10
      RR       100 % of the users have one relevant item: AP is RR there
      Success  100 % of the users have one relevant item: R is Success there
    cutoffs
      5        100 % of the lists have 5 items or more
      10       100 % of the lists have 10 items or more
    """
    arguments: dict[str, Any] = {**locals(), "measures": list(PROFILED), "slices": ()}
    arguments |= dict.fromkeys(("baseline", "preset", "policies", "slicing", "intervals", "comparisons"))
    with raise_in_call_words(is_on_spark=is_of_spark(recommendations), function="advise"):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call, frames = open_call(arguments)
            names = [name for name in column_names(frames["segments"]) if name.isidentifier() and name != C.USER_ID]
            host = host_of(call, frames, to_profile(call.request, names))
        gains, columns = call.inputs.held_out.gains, call.inputs.held_out.columns
        rows = look_at(host, gain_column="" if gains else columns.get(C.GAIN, C.GAIN))
        rows += [*(Advised("warning", "columns", None, text) for text in _messages(told))]
        changes = _of_call(advice.changes_of(rows))
        changes["inputs"] = _merge(call.inputs.model_dump(mode="json", exclude_unset=True), changes.get("inputs", {}))
        return Advice(rows, validate_call({**arguments, **changes}, frames))


def advise_config(
    config: EvaluationConfig, day: dt.date, *, start: Callable[[], SparkSession] | None = None, on_spark: bool = False
) -> Advice:
    """Advise on the inputs of a config on one date.

    ``start`` starts a session of Spark, for inputs that this process cannot read, or always with ``on_spark``.
    """
    names = [name for name in config.segment_names() if name.isidentifier()]
    rows, request = config.inputs.held_out, to_profile(request_of(config, day), names)
    try:
        session = start() if start is not None and on_spark else None
        host = host_of_config(config, request, day, session, "advise")
    except ConfigError as error:
        if start is None or not isinstance(error.__cause__, ForSparkError):
            raise
        host = host_of_config(config, request, day, start(), "advise")
    column = "" if rows.gains else rows.columns.get(C.GAIN, C.GAIN)
    has_date = DATE_PLACEHOLDER in config.public_json()
    return fit_to_config(config, look_at(host, gain_column=column, has_date=has_date))


def fit_to_config(config: EvaluationConfig, rows: Sequence[Advised]) -> Advice:
    """Return advice with the config that follows it; measures and cutoffs replace those of the config."""
    values = config.model_dump(mode="json", exclude_defaults=True)
    changes = advice.changes_of(rows)
    sliced = [[*names] for names in config.slices]
    changes["slices"] = [*sliced, *([name] for name in changes.get("slices", ()) if [name] not in sliced)]
    return Advice(rows, validate_model(EvaluationConfig, _merge(values, changes)))


def _of_call(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return advised keys without those that only a config has."""
    found = deepcopy(dict(changes))
    for rows in found.get("inputs", {}).values():
        for name in _OF_CONFIG:
            rows.pop(name, None)
    found["inputs"] = {name: rows for name, rows in found.get("inputs", {}).items() if rows}
    return found if found["inputs"] else {name: value for name, value in found.items() if name != "inputs"}


def _merge(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge advised keys into sections; gains of a column take the place of its name."""
    found = dict(values)
    for name, value in changes.items():
        is_section = (
            isinstance(value, Mapping) and isinstance(found.get(name), Mapping) and name not in ("gains", "split")
        )
        found[name] = _merge(found[name], value) if is_section else value
    if "gains" in changes and "columns" in found:
        found["columns"] = {name: column for name, column in found["columns"].items() if name != C.GAIN}
    return found


def _messages(told: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return the texts of warnings about columns; what is given and not used is advised on."""
    return [text for one in told if "is given and not used" not in (text := str(one.message))]


def to_profile(request: Request, segments: Sequence[str]) -> Request:
    """Return the request whose sums are looked at: all columns, and no policy that changes lists."""
    return request.as_request(
        measures=PROFILED,
        cutoffs=(),
        preset=None,
        own=(),
        policies=Policies(lists=request.policies.lists),
        slices=tuple((name,) for name in segments),
        slicing=Slicing(),
        comparisons=None,
        counts_judged_seen=True,
        reads_times=True,
    )


def look_at(
    host: Host, *, gain_column: str, has_date: bool = False, adapt: Callable[[Data], Data] = lambda data: data
) -> list[Advised]:
    """Profile the inputs of a host, and conclude; once more with the gains that are advised, where they are others.

    ``gain_column`` is the name of the gains in the table, where they are its numbers. ``adapt`` changes what is known.
    """
    column = gain_column if C.GAIN in host.given_columns["held_out"] else ""
    data = adapt(_profile(host, column, has_date=has_date or host.request.evaluation_date is not None))
    rows = [*advice.advise_on(data), *_weigh(host, data.impressions)]
    gains = next((row for row in rows if row.key == advice.GAINS), None)
    if gains is None:
        return rows
    kept = [row for row in rows if row.key in (advice.GAINS, *advice.OF_GAINS)]
    return [*kept, *advice.advise_on(_with_gains(host, data, gains.value["edges"][0]))]


@raise_as_call()
def _profile(host: Host, gain_column: str, *, has_date: bool) -> Data:
    """Count the rows of a host in one pass."""
    segments, own = host.describe_users()
    slices, bands = advice.choose_slices(segments)
    host = host.for_request(
        host.request.as_request(
            slices=tuple((name,) for name in slices if name not in bands), counts_seen="train" in host.given_columns
        )
    )
    totals = _count(host, Profile(), {**host.sums, **host.input_checks.sums})
    facts = [*host.input_checks.facts(totals), *to_list_facts(totals[LISTS], host.request)]
    return advice.Data(
        columns=host.given_columns,
        models=host.models,
        counts={(fact.input, fact.check): fact for fact in facts},
        segments=segments,
        value_names=own,
        gain_column=gain_column,
        has_date=has_date,
        **_values(host, totals),
    )


def _weigh(host: Host, estimator: str) -> list[Advised]:
    """Estimate the reward of impressions, and return what is said of their weights; nothing without an estimator."""
    if not estimator:
        return []
    policies = host.request.policies.model_copy(update={"population": "judged", "zero_relevant": "zero"})
    request = host.request.as_request(measures=(estimator,), slices=(), reads_times=False, policies=policies)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            Evaluation(host.for_request(request), request).as_table("metrics")
        except FaultsError as error:
            texts = [f"{fault.found}; expected {fault.expected}" for fault in error.faults]
            return [Advised("warning", "impressions", None, text) for text in texts]
    return [Advised("warning", "impressions", None, text) for text in _messages(told)]


@raise_as_call()
def _with_gains(host: Host, data: Data, edge: float) -> Data:
    """Return what is known with gains from an edge as 1 and others as 0; checks and times are not read again."""
    measures = tuple(one.format(edge) for one in PROFILED_FROM)
    slices = tuple({(row[C.SLICE],): None for row in data.metrics if row[C.SLICE] != C.ALL_USERS})
    plain = {"counts_seen": False, "counts_judged_seen": False, "reads_times": False}
    host = host.for_request(host.request.as_request(measures=measures, slices=slices, **plain))
    found = _values(host, _count(host, Profile(edge), result_sums(host.request, host.job.outputs)))
    is_new = pc.field("fact").isin((GAINS, GAIN_BOUNDS, RELEVANT_ITEMS))
    rows = pa.concat_tables([data.profile.filter(~is_new), found.pop("profile").filter(is_new)])
    return replace(data, profile=rows, gain_column="", **found)


def _count(host: Host, profile: Profile, sums: Mapping[str, Sum]) -> dict[str, pa.Table]:
    """Compute a profile and other sums in one pass, with the differences of the models."""
    sums = {**sums, PROFILE: profile}
    if len(host.models) > 1:
        baseline = advice.choose_baseline(host.models) or host.models[0]
        has_all = len(host.models) <= advice.MAX_PAIRS
        pairs = Comparisons(baseline=baseline, pairs="all" if has_all else "baseline")
        sums[COMPARISONS] = Differences(host.request.as_request(comparisons=pairs), host.job.outputs)
    with show_progress("looking at the data", has_rows=not host.is_on_spark) as advance:
        return host.totals(sums, advance=advance)


def _values(host: Host, totals: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Return the profile, the means and the differences, as fields of :class:`Data`."""
    metrics = sort_by_key(to_metrics(totals, host.request), (C.MODEL_ID, C.SLICE, C.SLICE_VALUE)).to_pylist()
    compared = totals[COMPARISONS].to_pylist() if COMPARISONS in totals else ()
    return {"profile": totals[PROFILE], "metrics": metrics, "comparisons": compared}
