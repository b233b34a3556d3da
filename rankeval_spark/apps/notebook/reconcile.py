"""Two numbers for the same lists: the policies and options that turn one into the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rankeval_spark import columns as C, wording
from rankeval_spark.apps.notebook.conventions import SAME, Conventions, State, usable_of
from rankeval_spark.apps.notebook.evaluate import evaluate
from rankeval_spark.apps.notebook.hosts import is_of_spark
from rankeval_spark.config import Policies
from rankeval_spark.config.presets import apply_preset
from rankeval_spark.errors import Fault, InvalidCallError, listed, nearest
from rankeval_spark.measures.options import option_text
from rankeval_spark.refusals import raise_with_words
from rankeval_spark.report.result_table import ResultTable

if TYPE_CHECKING:
    from rankeval_spark.evaluation import Evaluation
    from rankeval_spark.measures import Measure
    from rankeval_spark.report.layouts import Layout

    Number = float | str | Decimal

MAX_SWITCHES: Final = 4
ROUNDING: Final = "rounding"  # the last row of a combination: what its switches leave of the gap
UNEXPLAINED: Final = "unexplained"  # the same where that is more than the digits of the numbers allow
MAX_ROWS: Final = 60  # rows that a terminal or a notebook shows
OF_OURS: Final = 0  # number of the combination that explains `ours`
_SCHEMA: Final = pa.schema(
    [
        *(("combination", pa.int32()), ("step", pa.int32())),
        *((name, pa.string()) for name in ("setting", "from", "to")),
        *((name, pa.float64()) for name in (C.VALUE, "worth", "alone")),
        ("tools", pa.string()),
    ]
)
_OUTSIDE: Final = (
    "what is no policy and no option: candidates that were sampled, another split or filter of the data, and code that "
    "departs from its own definition"
)


class Reconciliation(ResultTable):
    """Combinations of switches that turn one number into the other: a row a switch, the likeliest combination first.

    ``value`` is the measure after the step, ``worth`` its difference from the step before, ``alone`` the difference
    that the switch makes without the others. The last row of a combination, ``rounding``, is what is left of the gap,
    so that ``worth`` adds up to it; ``unexplained`` where that is more than the digits leave open. Combination 0
    explains ``ours`` where the policies and options of the call give another number; the others start from it.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        calls: Mapping[int, dict[str, Any]],
        numbers: Mapping[str, float],
        notes: Sequence[str],
        *,
        n_fitting: int,
        not_searched: Sequence[str],
    ) -> None:
        super().__init__(pa.Table.from_pylist([*rows], _SCHEMA), "switches", is_ordered=True, notes=notes)
        self.ours, self.theirs, self.gap = numbers["ours"], numbers["theirs"], numbers["theirs"] - numbers["ours"]
        self.n_fitting = n_fitting  # combinations that give `theirs` to its digits; 0: the nearest are shown
        self.not_searched = tuple(not_searched)  # policies and options without a value to try, and why
        self.sentences = tuple(notes)  # what is to be known of the numbers
        self._calls = calls

    def call(self, combination: int = 1) -> dict[str, Any]:
        """Return the arguments of :func:`evaluate` that give the number of a combination: measures and policies."""
        if combination not in self._calls:
            known = f"one of {', '.join(map(str, self._calls))}" if self._calls else "a combination, of which none is"
            raise InvalidCallError(Fault("call(combination=)", repr(combination), known))
        return self._calls[combination]

    def _lay_out(self, most: int | None) -> Layout:
        return super()._lay_out(None if most is None else MAX_ROWS)


def reconcile(  # noqa: PLR0913 - the public surface: each argument is a decision of the user
    log: object,
    held_out: object,
    measure: str,
    *,
    theirs: Number,
    ours: Number | None = None,
    model: str | None = None,
    train: object = None,
    items: object = None,
    format: str | None = None,
    preset: str | None = None,
    policies: Policies | Mapping[str, Any] | None = None,
    inputs: object = None,
    switches: int = MAX_SWITCHES,
    most: int | None = 10,
) -> Reconciliation:
    """Find the policies and options that turn one number for some lists into another.

    Every policy and every option of the measure is a switch, and so are cutoffs nearby and grades as thresholds.
    Combinations of up to four of them are computed, and those kept that give ``theirs`` to its digits.

    Parameters
    ----------
    log, held_out, train, items, format, preset, policies, inputs : optional
        Those of :func:`evaluate`, of which ``log`` is its ``recommendations``. Tables of Spark are not taken.
    measure : str
        The measure of both numbers, with its cutoff, such as ``"nDCG@10"``.
    theirs : float, str or Decimal
        The other number. Its digits say how exact it is: 0.28 is from 0.275 to 0.285, the text ``"0.280"`` from 0.2795
        to 0.2805.
    ours : float, str or Decimal, optional
        The number to start from. Left out, it is that of :func:`evaluate` with these policies; another one is
        explained first, as combination 0.
    model : str, optional
        Model whose lists both numbers are of, where the log has several.
    switches : int
        Most switches of a combination, from 1 to 4.
    most : int, optional
        Combinations that are shown; None for all. Those that a preset names are always shown.

    Returns
    -------
    Reconciliation
        A :class:`ResultTable` with a row a switch. ``call(1)`` has the arguments of :func:`evaluate` for the first
        combination, ``n_fitting`` counts all that fit.

    Raises
    ------
    InvalidCallError
        If a number cannot be read or is beyond the measure, if both are the same, or as :func:`evaluate`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rankeval_spark import reconcile
    >>> log = pa.table({"user_id": ["ann", "ann", "bob"], "item_id": ["a", "b", "c"], "rank": [1, 2, 1]})
    >>> judged = {"user_id": ["ann", "ann", "bob", "dan"], "item_id": ["b", "c", "c", "a"], "gain": [3, 1, 2, 1]}
    >>> found = reconcile(log, pa.table(judged), "nDCG@2", theirs=0.7894, switches=2, most=1)
    >>> for row in found:
    ...     print(row["setting"], row["to"], f"{row['worth']:+.4f}", row["tools"])
    policy population intersection +0.2535 elliot
    option dcg exp-log2 +0.0287 None
    rounding None +0.0000 None
    >>> found.call(1)
    {'measures': ["nDCG(dcg='exp-log2')@2"], 'policies': {'population': 'intersection'}}
    """
    _refuse_spark({"log": log, "held_out": held_out, "train": train, "items": items})
    if not isinstance(switches, int) or not 1 <= switches <= MAX_SWITCHES:
        expected = f"a whole number from 1 to {MAX_SWITCHES}"
        raise InvalidCallError(Fault("reconcile(switches=)", repr(switches), expected))
    target, near = _read_number("theirs", theirs)
    start, near_start = (math.nan, 0.0) if ours is None else _read_number("ours", ours)
    options = {"train": train, "items": items, "format": format, "inputs": inputs, "preset": preset}
    asked = policies.model_dump(exclude_unset=True) if isinstance(policies, Policies) else policies
    base = _evaluate(log, held_out, measure, model, {**options, "policies": asked})
    requested, own = base.request.measure_set.measures[0], next(iter(base.metrics))[C.VALUE]
    _refuse_numbers(requested, {"theirs": (target, near), **({} if ours is None else {"ours": (start, near_start)})})
    start = own if ours is None else start
    given = apply_preset(preset, asked or {})
    sources = {source.name: source.table for source in usable_of(base).tables.all()}
    tables: dict[str, Any] = {**sources, "models": base.request.models}

    def search(from_measure: Measure, from_given: Mapping[str, Any]) -> Conventions:
        return Conventions(tables, from_measure, from_given, text=measure, asked=asked or {}, most=switches)

    found, notes, rows, calls = (
        search(requested, given),
        list[str](),
        list[dict[str, Any]](),
        dict[int, dict[str, Any]](),
    )
    if abs(own - start) > max(near_start, SAME):
        states, is_explained = found.find(start, near_start)
        if is_explained:
            rows += _rows_of(OF_OURS, found, states[0], (own, start), near_start)
            calls[OF_OURS] = _call(found, states[0])
            others = f", the likeliest of {len(states):,} combinations" if len(states) > 1 else ""
            notes.append(
                f"ours is not {own:.6g}, which the policies of the call give: combination 0 explains it{others}"
            )
            from_measure, from_given = found.resolve(states[0])[1], found.given_with(states[0])
            found = search(from_measure, from_given)
        else:
            notes.append(
                f"ours is not explained: the policies of the call give {own:.6g}, and no combination {start:.6g}"
            )
    here = found.value(frozenset())
    states, is_found = found.find(target, near)
    if abs(here - target) <= near:
        notes.append(f"no switch is needed: {here:.6g} is {theirs} to its digits")
        states = states if is_found else []
    of_tools = [state for state in states[most:] if is_found and found.tools_of(state)] if most is not None else []
    shown = [*states[:most], *of_tools]
    for number, state in enumerate(shown, 1):
        rows += _rows_of(number, found, state, (start, target), near + near_start)
        calls[number] = _call(found, state)
    head = f"{requested}: {f'{own:.6g}' if ours is None else ours} here, {theirs} there, a gap of {target - start:+.6g}"
    if is_found:
        n_values = len({round(found.value(state), 12) for state in states})
        many = f"{wording.count(len(states), 'combination')} of up to {switches} switches give {theirs} to its digits"
        apart = f"they have {wording.count(n_values, 'value')}, which more digits would tell apart"
        same = "no digit tells them apart on this data"
        notes.append(
            f"{many}; {same if n_values == 1 else apart}" if len(states) > 1 else many.replace("give", "gives")
        )
    elif shown:
        notes.append(f"no combination of up to {switches} switches gives {theirs}; the nearest are shown")
        notes += [f"not searched: {', '.join(found.not_searched)}; and {_OUTSIDE}"]
    return Reconciliation(
        rows,
        calls,
        {"ours": start, "theirs": target},
        [head, *notes],
        n_fitting=len(states) if is_found else 0,
        not_searched=found.not_searched,
    )


def _refuse_spark(tables: Mapping[str, object]) -> None:
    """Refuse tables of Spark: thousands of combinations are computed in this process."""
    given = [name for name, table in tables.items() if is_of_spark(table)]
    fix = "call toArrow() on it, or give the path of its files"
    faults = [Fault(f"reconcile({name}=)", "a DataFrame of Spark", "a table of this process", fix) for name in given]
    if faults:
        raise InvalidCallError(*faults)


def _read_number(name: str, given: object) -> tuple[float, float]:
    """Return a number, and half of its last digit: how far what it was rounded from may be away.

    >>> _read_number("theirs", "0.280"), _read_number("theirs", 0.25)[1] < 0.0051
    ((0.28, 0.0005000000005), True)
    """
    try:
        number = Decimal(str(given).strip())
        is_number = number.is_finite() and not isinstance(given, bool)
    except InvalidOperation:
        is_number = False
    if not is_number:
        raise InvalidCallError(Fault(f"reconcile({name}=)", repr(given), "a number with its digits, such as 0.28"))
    value, exponent = float(number), number.as_tuple().exponent
    half = 0.5 * 10.0 ** int(exponent) * (1 + 1e-9)
    return value, max(half, SAME * max(1.0, abs(value)))


def _evaluate(
    log: object, held_out: object, measure: str, model: str | None, options: Mapping[str, Any]
) -> Evaluation[ResultTable]:
    """Evaluate the lists of one model as the call says; its faults are those of the call of `reconcile`."""
    if not isinstance(measure, str):
        raise InvalidCallError(Fault("reconcile(measure=)", repr(measure), "one measure as text, such as 'nDCG@10'"))
    words = {"evaluate(": "reconcile(", "(measures=": "(measure=", "recommendations": "log"}
    with raise_with_words(words):
        base = evaluate(log, held_out, measures=[measure], **options)
        for source in usable_of(base).tables.all():
            if not source.table.num_rows:
                raise InvalidCallError(Fault(f"reconcile({source.name}=)", "no row", "at least one"))
        models = list(base.host.models)
        if model is None and len(models) > 1:
            found, expected = f"lists of {len(models)} models", f"one of {listed('', models)}"
            raise InvalidCallError(Fault("reconcile(model=)", found, expected, f"write model={models[0]!r}"))
        if model is not None and model not in models:
            known, fix = f"one of {listed(model, models)}", nearest(model, models)
            raise InvalidCallError(Fault("reconcile(model=)", repr(model), known, fix))
        if len(models) > 1:
            base = evaluate(log, held_out, measures=[measure], models=[model or ""], **options)
        requested = base.request.measure_set.measures[0]
        if not requested.has_user_values:
            found, expected = f"{requested}, of all lists together", "a measure that has a value for each list"
            raise InvalidCallError(Fault("reconcile(measure=)", found, expected))
        if next(iter(base.metrics), {C.VALUE: None})[C.VALUE] is None:
            found, expected = f"{requested} without a value", "a user of the population for whom it is defined"
            raise InvalidCallError(Fault("reconcile(measure=)", found, expected))
    return base


def _refuse_numbers(measure: Measure, numbers: Mapping[str, tuple[float, float]]) -> None:
    """Refuse numbers that the measure cannot have, and two that are the same."""
    low, high = measure.bounds
    faults = []
    for name, (number, near) in numbers.items():
        if not low - near <= number <= high + near:
            fix = f"write {number / 100:g} if it is a percentage" if low <= number / 100 <= high else ""
            faults.append(Fault(f"reconcile({name}=)", f"{number:g}", f"a number from {low:g} to {high:g}", fix))
    if len({number for number, _ in numbers.values()}) < len(numbers):
        found = f"{numbers['theirs'][0]:g}, as ours"
        faults.append(Fault("reconcile(theirs=)", found, "another number than ours: there is nothing to explain"))
    if faults:
        raise InvalidCallError(*faults)


def _rows_of(
    number: int,
    found: Conventions,
    state: State,
    numbers: tuple[float, float],  # from which and to which it leads
    near: float,  # what the digits of both leave open
) -> list[dict[str, Any]]:
    """Return the rows of a combination, whose worths add up to the gap."""
    done, rows = State(), list[dict[str, Any]]()
    base = before = found.value(done)
    for place, step in enumerate(found.steps(state), 1):
        policies, measure = found.resolve(done)
        old: dict[str, Any] = {
            "policy": policies.model_dump(),
            "option": measure.options,
            "cutoff": {"cutoff": measure.k},
        }
        done |= {*step}
        value, alone = found.value(done), found.value(State(step))
        rows.append(
            {
                "combination": number,
                "step": place,
                "setting": ", ".join(name if kind == "cutoff" else f"{kind} {name}" for kind, name, _ in step),
                "from": ", ".join(_setting(old[kind][name]) for kind, name, _ in step),
                "to": ", ".join(_setting(value) for _, _, value in step),
                C.VALUE: value,
                "worth": value - before,
                "alone": None if math.isnan(alone) else alone - base,
                "tools": ", ".join(found.tools_of(state)) if place == 1 else None,
            }
        )
        before = value
    left = numbers[1] - numbers[0] - math.fsum(row["worth"] for row in rows)
    name = ROUNDING if abs(left) <= near + SAME else UNEXPLAINED
    last = {"combination": number, "step": len(rows) + 1, "setting": name, C.VALUE: numbers[1], "worth": left}
    return [*rows, last]


def _setting(value: Any) -> str:  # noqa: ANN401 - of any policy or option
    """Write the value of a policy or option; None where an option is left out."""
    return "left out" if value is None else value if isinstance(value, str) else option_text(value)


def _call(found: Conventions, state: State) -> dict[str, Any]:
    """Return the measure and the policies of a combination, as arguments of `evaluate`."""
    return {"measures": [str(found.resolve(state)[1])], "policies": found.given_with(state)}
