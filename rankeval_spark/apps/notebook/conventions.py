"""The conventions of a measure, as switches away from one way to compute it, and the value under each combination.

The switches are read off :class:`Policies` and the options of the measure, so that a new policy or option is one too.
The engine makes and scores the lists of each combination of policies that changes lists. Policies that only say who
counts share these values.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args, get_origin

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from rankeval_spark import columns as C
from rankeval_spark.apps.notebook.evaluate import evaluate
from rankeval_spark.config import Policies
from rankeval_spark.config.presets import apply_preset, measure_gap_faults, options_of, presets, rank_gap_faults
from rankeval_spark.config.requested_measures import judgement_faults, tie_faults
from rankeval_spark.engine.arrays import encode_rows, to_numpy
from rankeval_spark.engine.checks import PartitionTallies
from rankeval_spark.engine.failures import RefusedError
from rankeval_spark.engine.scorer import find_members, read_lists, spread_lists
from rankeval_spark.errors import FaultsError, JudgementError, RankevalError
from rankeval_spark.measures import MAX_CUTOFF, Measure, MeasureSet
from rankeval_spark.measures.options import GainMap
from rankeval_spark.measures.worked_examples import examples_of
from rankeval_spark.statistics.intervals import to_published

if TYPE_CHECKING:
    from rankeval_spark.engine.job import Job
    from rankeval_spark.engine.outputs import Part
    from rankeval_spark.evaluation import Evaluation
    from rankeval_spark.in_process.assembly import Usable
    from rankeval_spark.measures.arrays import BoolVector, FloatMatrix, FloatVector, IntVector
    from rankeval_spark.measures.lists import Lists
    from rankeval_spark.measures.options import Option
    from rankeval_spark.report.result_table import ResultTable

KINDS: Final = ("policy", "option", "cutoff")  # what a switch changes, in the stated order
Switch: TypeAlias = tuple[str, str, Any]  # one of KINDS, its name, and its new value
State: TypeAlias = frozenset[Switch]

SAME: Final = 1e-12  # difference below which two values are the same
_OF_MEANS: Final = ("population", "zero_relevant", "missing", "unit")  # policies that leave lists as they are
_MAX_GRADES: Final = 8  # distinct gains that are tried as thresholds, the most frequent ones
_MAX_STARTS: Final = 3  # thresholds from which gains are tried
_MAX_EXPONENT: Final = 30.0  # gain up to which 2**gain - 1 is tried as a map
_WHOLE_LIST_CUTOFFS: Final = (5, 10, 20, 50, 100)  # tried for a measure of whole lists
_LABELS_AT_ONCE: Final = 48  # measures that are scored together, each at all of its cutoffs


class Conventions:
    """Values of a measure under all combinations of a few switches away from a base."""

    def __init__(
        self,
        inputs: Mapping[str, Any],  # arguments of `evaluate` that stay the same: tables, model
        measure: Measure,
        given: Mapping[str, Any],  # policies that the base sets
        *,
        text: str,  # the measure, as it was asked for
        asked: Mapping[str, Any],  # policies that were asked for
        most: int,  # switches of a combination
    ) -> None:
        self.inputs, self.measure, self.given, self.most = inputs, measure, dict(given), most
        self.text, self.asked = text, asked
        self.policies = Policies(**self.given)
        self.not_searched: list[str] = []
        self.of_policies = self._policy_states()
        self.of_measures = self._measure_states()
        self.presets = self._preset_states()
        self._row, self._column = (
            {state: at for at, state in enumerate(states)} for states in (self.of_policies, self.of_measures)
        )
        self._others: dict[State, float] = {}  # values of presets that take more switches, and on the way to them
        # Of each combination of policies, the values with the first measures: those of few enough switches
        self.values: Sequence[FloatVector] = self._values()

    def value(self, state: State) -> float:
        """Return the value under a combination; NaN where it is refused or undefined."""
        if len(state) <= self.most:
            row, column = (
                known.get(part) for known, part in zip((self._row, self._column), split_state(state), strict=True)
            )
            return math.nan if row is None or column is None else float(self.values[row][column])
        if state not in self._others:
            self._others[state] = math.nan
            with suppress(RankevalError, RefusedError, KeyError):
                policies, measure = self.resolve(state)
                if _fitting([measure], policies).all():
                    above, below = self._sums_of([policies], [measure])[:, 0, 0]
                    value = to_published(measure.link, np.array([above / below if below else math.nan]))
                    self._others[state] = float(value[0])
        return self._others[state]

    def resolve(self, state: State) -> tuple[Policies, Measure]:
        """Return the policies and the measure of a combination; KeyError where it is refused."""
        of_policies, of_measure = split_state(state)
        policies, measure = self._allowed_policies(of_policies), self._allowed_measure(of_measure)
        if policies is None or measure is None:
            raise KeyError(state)
        return policies, measure

    def given_with(self, state: State) -> dict[str, Any]:
        """Return the policies that the base sets, with the changes of a combination."""
        return {
            **self.given,
            **{name: value for kind, name, value in sorted(state, key=self._order) if kind == "policy"},
        }

    def find(self, target: float, tolerance: float) -> tuple[list[State], bool]:
        """Return the combinations whose value is near a number, the likeliest first, and whether there are any.

        Fewer switches come first, then those of a tool, then settings that more presets have. Without any, the nearest
        100 are returned. A combination with a switch that changes nothing is left out.
        """
        n_columns = [len(values) for values in self.values]
        rows, columns = np.repeat(np.arange(len(n_columns)), n_columns), np.concatenate([*map(np.arange, n_columns)])
        distance = np.where(self._is_idle, np.nan, np.abs(np.concatenate(self.values) - target))
        distance[0] = np.nan  # the base itself
        near = np.flatnonzero(distance <= tolerance)
        of_tools = (state for state in self._tools if len(state) > self.most)
        others = [state for state in of_tools if abs(self.value(state) - target) <= tolerance]
        is_found = bool(len(near) or others)
        if not is_found:
            near = np.argsort(distance)[: min(100, np.count_nonzero(~np.isnan(distance)))]
        policies, measures = list(self.of_policies), list(self.of_measures)
        states = [policies[row] | measures[column] for row, column in zip(rows[near], columns[near], strict=True)]
        states = list(dict.fromkeys([*states, *others]))
        far = {state: abs(self.value(state) - target) for state in states}

        def rank(state: State) -> tuple[Any, ...]:
            usual = sum(math.log1p(self._n_presets[switch]) for switch in state)
            return len(state), not self.tools_of(state), -usual, far[state], sorted(map(str, state))

        return (sorted(states, key=rank) if is_found else states), is_found

    def steps(self, state: State) -> list[tuple[Switch, ...]]:
        """Return the switches in the stated order, several at once where one alone is refused."""
        rest, done, found = sorted(state, key=self._order), frozenset[Switch](), list[tuple[Switch, ...]]()
        while rest:
            groups = (group for n in range(1, len(rest) + 1) for group in combinations(rest, n))
            step = next((group for group in groups if not math.isnan(self.value(done | {*group}))), tuple(rest))
            found.append(step)
            done |= {*step}
            rest = [switch for switch in rest if switch not in step]
        return found

    def tools_of(self, state: State) -> list[str]:
        """Return the presets that come out at a combination once switches without an effect are gone."""
        return self._tools.get(state, [])

    def reduce(self, state: State) -> State:
        """Leave out the switches of a combination that do not change its value."""
        for switch in sorted(state, key=self._order, reverse=True):
            if abs(self.value(state - {switch}) - self.value(state)) <= SAME:
                state -= {switch}
        return state

    @cached_property
    def _n_presets(self) -> Counter[Switch]:
        """Number of presets that have each setting."""
        found = Counter[Switch]()
        for preset in presets().values():
            policies: dict[str, Any] = {**preset.policies}
            options = Measure.parse(self.text, defaults=preset.options).options
            found.update(("policy", *pair) for pair in Policies(**policies).model_dump().items())
            found.update(("option", *pair) for pair in options.items())
        return found

    @cached_property
    def _tools(self) -> dict[State, list[str]]:
        found: dict[State, list[str]] = {}
        for name, state in self.presets.items():
            found.setdefault(self.reduce(state), []).append(name)
        return found

    def _order(self, switch: Switch) -> tuple[int, int, str]:
        """Return the place of a switch in the stated order: policies, options, the cutoff."""
        kind, name, value = switch
        names = {"policy": [*Policies.model_fields], "option": [*self.measure.options], "cutoff": ["cutoff"]}[kind]
        return KINDS.index(kind), names.index(name), str(value)

    @cached_property
    def _is_idle(self) -> BoolVector:
        """Combinations with a switch that changes nothing: a truth value for each of all values, row by row."""
        found = [np.isnan(values) for values in self.values]
        without = np.full((self.most, len(self.of_measures)), -1)  # column of each measure without one of its switches
        for column, state in enumerate(self.of_measures):
            for place, switch in enumerate(state):
                without[place, column] = self._column.get(state - {switch}, -1)
        for row, (state, values) in enumerate(zip(self.of_policies, self.values, strict=True)):
            fewer = [self._row[rest] for switch in state if (rest := state - {switch}) in self._row]
            others = [self.values[each][: len(values)] for each in fewer]
            others += [np.where(places >= 0, values[places], np.nan) for places in without[:, : len(values)]]
            for other in others:
                found[row] |= np.abs(values - other) <= SAME
        return np.concatenate(found)

    # Switches

    def _policy_states(self) -> dict[State, Policies]:
        """Return all combinations of changed policies that are allowed and can matter, the base first."""
        axes = list[list[Switch]]()
        for name, field in Policies.model_fields.items():
            kind = field.annotation
            choices = get_args(kind) if get_origin(kind) is Literal else (True, False) if kind is bool else ()
            others = [each for each in choices if each not in ("error", getattr(self.policies, name))]
            if not choices:
                self.not_searched.append(f"policy {name} (any text)")
            if others and not self._is_idle_policy(name):
                axes.append([("policy", name, each) for each in others])
        pairs = [state for state in _combine(axes, 2) if self._allowed_policies(state)]
        able = {switch for state in pairs for switch in state}
        decisive = (switch for axis in axes for switch in axis if switch in able and switch[1] not in _OF_MEANS)
        refused = {switch: self._refusal(frozenset([switch])) for switch in decisive}
        for (_, name, value), reason in refused.items():
            self.not_searched += [f"policy {name}={value} ({reason})"] if reason else []
        kept = [[each for each in axis if each in able and not refused.get(each)] for axis in axes]
        known = ((state, self._allowed_policies(state)) for state in _combine(kept, self.most))
        return {state: policies for state, policies in known if policies is not None}

    def _allowed_policies(self, state: State) -> Policies | None:
        """Return the policies of a combination; None where they contradict each other."""
        with suppress(ValueError, FaultsError):
            policies = Policies(**self.given_with(state))
            return None if rank_gap_faults(policies, None) else policies
        return None

    def _refusal(self, state: State, measure: Measure | None = None) -> str:
        """Return why `evaluate` refuses a combination for these inputs; empty where it does not."""
        policies = self._allowed_policies(state)
        if policies is None:  # alone it contradicts the base
            return ""
        try:
            self._evaluate(policies, [measure or self.measure])
        except FaultsError as error:
            found, place = error.faults[0].found, error.faults[0].where.rpartition("(")[2].rstrip("=)")
            return f"no {place}" if found == "None" else f"{found} in {place}"
        return ""

    @cached_property
    def _affected(self) -> dict[str, pa.Array]:
        """Users whose lists a policy can change, whatever else is switched; of other policies all users."""
        log, held_out = (self.inputs[name] for name in ("recommendations", "held_out"))
        has_scores, has_ranks = (name in log.column_names for name in (C.SCORE, C.RANK))
        pair = (C.USER_ID, C.ITEM_ID)
        found = {"duplicates": _repeated(log, pair), "held_out_duplicates": _repeated(held_out, pair)}
        tied = [_repeated(log, (C.USER_ID, C.RANK))] if has_ranks else []
        if has_scores:
            single = pc.cast(pc.cast(log[C.SCORE], "double", safe=False), "float", safe=False)
            rounded = log.select([C.USER_ID, C.SCORE]).append_column("single", single)
            tied.append(_repeated(rounded, (C.USER_ID, "single")))
            is_looked_at = pc.is_in(rounded[C.USER_ID], value_set=tied[-1])
            found["score_precision"] = _repeated(rounded.filter(is_looked_at), (C.USER_ID, "single"), but=C.SCORE)
        found["ties"] = pc.unique(pa.concat_arrays(tied))
        own = [
            pc.unique(table.filter(pc.equal(*(table[name].cast("string") for name in pair)))[C.USER_ID])
            for table in (log, held_out)
        ]
        found["own_item"] = pc.unique(pa.concat_arrays(own))
        absent = {"rank_gaps": has_ranks, "order": has_ranks and has_scores}
        absent |= dict.fromkeys(("lists", "unit"), C.LIST_ID in log.column_names)
        return {**found, **{name: own[0][:0] for name, is_there in absent.items() if not is_there}}

    def _is_idle_policy(self, name: str) -> bool:
        return name in self._affected and not len(self._affected[name])

    def _measure_states(self) -> dict[State, Measure]:
        """Return all combinations of changed options and cutoffs that are allowed and have their inputs."""
        measure, axes = self.measure, list[list[Switch]]()
        examples = self._known_options()
        for option in measure.entry.options:
            values = self._option_values(option, examples)
            if not [*values] and not option.is_switch:
                self.not_searched.append(f"option {option.name} ({option.expected})")
            now = measure.options[option.name]
            axes.append([("option", option.name, each) for each in values if each != now])
        near = (measure.k - 1, measure.k + 1, C.WHOLE_LIST) if measure.k else _WHOLE_LIST_CUTOFFS
        axes.append([("cutoff", "cutoff", k) for k in dict.fromkeys(near) if k != measure.k and 0 <= k <= MAX_CUTOFF])
        able: dict[Switch, Measure] = {}  # a measure with each switch, alone or with another one that it needs
        for state in _combine(axes, 2):
            if found := self._allowed_measure(state):
                able |= {switch: found for switch in state if switch not in able}
        base, reasons = {*measure.needs}, dict[tuple[str, ...], str]()
        for (kind, name, value), found in able.items():
            if found.needs not in reasons:
                reasons[found.needs] = self._refusal(frozenset(), found) if {*found.needs} - base else ""
            if reason := reasons[found.needs]:
                self.not_searched.append(f"{kind} {name}={value} ({reason})")
        kept = [[each for each in axis if each in able and not reasons[able[each].needs]] for axis in axes]
        return {state: found for state in _combine(kept, self.most) if (found := self._allowed_measure(state))}

    def _allowed_measure(self, state: State) -> Measure | None:
        """Return the measure of a combination; None where its rules refuse that."""
        entry, k = self.measure.entry, self.measure.k
        changed = {name: value for kind, name, value in state if kind == "option"}
        k = next((value for kind, _, value in state if kind == "cutoff"), k)
        options = {**self.measure.options, **changed}
        need = entry.cutoff.need(options)
        has_cutoff = need != ("forbidden" if k else "required")
        is_allowed = has_cutoff and not any(rule.is_broken(options) for rule in entry.rules)
        return Measure(self.measure.name, options.items(), k, entry) if is_allowed else None

    def _known_options(self) -> dict[str, list[Any]]:
        """Return the numbers that presets and worked examples have for each option of the measure."""
        entry, found = self.measure.entry, dict[str, list[Any]]()
        options = [preset.options.get(entry.name, {}) for preset in presets().values()]
        options += [Measure.parse(each.measure).options for each in examples_of(entry)] if entry.is_builtin else []
        for name, value in (pair for given in options for pair in given.items()):
            found.setdefault(name, []).append(value)
        return found

    def _option_values(self, option: Option, examples: Mapping[str, Sequence[Any]]) -> list[Any]:
        """Return the values of an option that are tried: all choices; of numbers usual ones, and grades of the data."""
        if option.is_switch:
            return [option.default, True]
        if option.choices or isinstance(option.default, bool):
            left_out = [option.default] if option.default is None else []
            maps = self._gain_maps() if option.takes_map else []
            return [*left_out, *(option.choices or (True, False)), *maps]
        if option.takes_text:
            return []
        grades = {"rel": self._grades, "max_rel": self._grades[-1:]}.get(option.name)
        usual = grades if grades is not None else examples.get(option.name, ())
        numbers = (each for each in (option.default, *usual) if each is not None)
        return list(dict.fromkeys(each for each in numbers if option.bounds is None or each in option.bounds))

    @cached_property
    def _grades(self) -> list[float]:
        """Distinct gains above 0 of the judgements, ascending; the most frequent ones where there are many."""
        gains = to_numpy(self.inputs["held_out"][C.GAIN], null=0.0)
        counted = Counter(gains[(gains > 0) & np.isfinite(gains)].tolist())
        return sorted(grade for grade, _ in counted.most_common(_MAX_GRADES + 1))

    def _gain_maps(self) -> list[GainMap]:
        """Return gains that begin at a threshold: the grade itself, and 2 to the power of its distance, minus 1."""
        pairs = self.inputs["held_out"].group_by([C.USER_ID, C.ITEM_ID]).aggregate([(C.GAIN, "sum")])
        has_sums = len(self._affected["held_out_duplicates"]) > 0
        sums = pc.unique(pairs[f"{C.GAIN}_sum"]).to_pylist() if has_sums else []
        grades = sorted({*self._grades, *(each for each in sums if each is not None and each > 0)})
        if not grades or len(grades) > _MAX_GRADES or grades[-1] > _MAX_EXPONENT:
            self.not_searched += ["option gains={...} (too many grades)"] if grades else []
            return []
        starts = [*dict.fromkeys([1.0, *self._grades])][:_MAX_STARTS]
        least = 1 if "dcg" in self.measure.options else 0  # whose names have 2**gain - 1 already
        raised = [
            [(g, 2.0 ** (g - start + 1) - 1 if g >= start else 0.0) for g in grades]
            for start in starts
            if start > least
        ]
        cut = [[(g, g if g >= start else 0.0) for g in grades] for start in starts if start > grades[0]]
        return [GainMap(tuple(pairs)) for pairs in (*raised, *cut) if any(gain > 0 for _, gain in pairs)]

    def _preset_states(self) -> dict[str, State]:
        """Return the switches from the base to each preset that the call allows."""
        found = {}
        for name in presets():
            with suppress(ValueError, FaultsError):  # what the call says itself contradicts some presets
                target = Policies(**apply_preset(name, self.asked))
                names = [each for each in Policies.model_fields if not self._is_idle_policy(each)]
                now = {each: getattr(target, each) for each in names if getattr(target, each) != "error"}
                of_policies = frozenset(
                    ("policy", each, value) for each, value in now.items() if value != getattr(self.policies, each)
                )
                for switch in of_policies:  # treatments that follow from the population
                    if self._allowed_policies(of_policies - {switch}) == self._allowed_policies(of_policies):
                        of_policies -= {switch}
                measure = Measure.parse(self.text, defaults=options_of(name))
                changed = {**measure.options, "cutoff": measure.k}.items() - {
                    **self.measure.options,
                    "cutoff": self.measure.k,
                }.items()
                of_measure = frozenset(
                    ("cutoff" if each == "cutoff" else "option", each, value) for each, value in changed
                )
                if self._allowed_policies(of_policies) and self._allowed_measure(of_measure):
                    found[name] = of_policies | of_measure
        return found

    # Values

    def _values(self) -> list[FloatVector]:
        """Compute the values of each combination of policies, with the measures that leave it at most the switches."""
        policies, measures = list(self.of_policies.values()), list(self.of_measures.values())
        n_switches = np.array([*map(len, self.of_measures)])  # ascending
        room = [self.most - len(state) for state in self.of_policies]
        sums = [np.full((2, np.searchsorted(n_switches, most, side="right")), np.nan) for most in room]
        groups: dict[tuple[Any, ...], list[int]] = {}  # rows of the same lists and measures
        of_lists = [name for name in Policies.model_fields if name not in _OF_MEANS]
        fits: dict[tuple[Any, ...], BoolVector] = {}
        for row, each in enumerate(policies):
            decisive = (each.ties, each.population == "judged", each.is_attributed, each.rank_gaps)
            if decisive not in fits:
                fits[decisive] = _fitting(measures, each)
            key = (fits[decisive].tobytes(), *(getattr(each, name) for name in of_lists))
            groups.setdefault(key, []).append(row)
        for (fitting, *_), rows in groups.items():
            n_columns = max(sums[row].shape[1] for row in rows)
            columns = np.flatnonzero(np.frombuffer(fitting, np.bool_)[:n_columns])
            with suppress(RankevalError, RefusedError):  # what these inputs cannot have, such as two items at one rank
                found = self._sums(sums, rows, columns)
                for row, of_row in zip(rows, found.transpose(1, 0, 2), strict=True):
                    is_wanted = columns < sums[row].shape[1]
                    sums[row][:, columns[is_wanted]] = of_row[:, is_wanted]
        values: list[FloatVector] = []
        links = np.array([each.link for each in measures])
        for above, below in sums:
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.where(below > 0, above / below, np.nan)
            for link in {*links}:
                has_link = links[: len(found)] == link
                found[has_link] = to_published(link, found[has_link])
            values.append(found)
        return values

    def _sums(self, known: Sequence[FloatMatrix], rows: Sequence[int], columns: IntVector) -> FloatMatrix:
        """Add up numerators and denominators of combinations that have the same lists.

        Where few users can have other lists than with fewer switches, whose sums are known, these are made again.
        """
        states, policies = list(self.of_policies), list(self.of_policies.values())
        measures = [list(self.of_measures.values())[column] for column in columns]
        changed = [policies[row] for row in rows]
        local = [name for name in self._affected if getattr(changed[0], name) != getattr(self.policies, name)]
        before = [self._row.get(frozenset(each for each in states[row] if each[1] not in local)) for row in rows]
        places = [row for row in before if row is not None]
        if local and len(places) == len(rows):
            users = pc.unique(pa.concat_arrays([self._affected[name] for name in local]))
            sums, is_known = np.full((2, len(rows), len(columns)), np.nan), len(users) < self._n_users / 2
            for at, (row, fewer) in enumerate(zip(rows, places, strict=True)):
                wanted = columns[columns < known[row].shape[1]]
                sums[:, at, : len(wanted)] = known[fewer][:, wanted]
                is_known &= not np.isnan(known[fewer][:, wanted]).any()
            if is_known:
                usual = [policies[row] for row in places]
                return sums + self._sums_of(changed, measures, users) - self._sums_of(usual, measures, users)
        return self._sums_of(changed, measures)

    @cached_property
    def _n_users(self) -> int:
        return len(pc.unique(self.inputs["held_out"][C.USER_ID]))

    def _sums_of(
        self, policies: Sequence[Policies], measures: Sequence[Measure], users: pa.Array | None = None
    ) -> FloatMatrix:
        """Add up numerators and denominators of some users: float64, (2, n_policies, n_measures)."""
        usable = usable_of(self._evaluate(policies[0], measures, users))
        needed = _Unscored(usable.request.measure_set.measures)
        rows = replace(usable, request=usable.request.copy_with(measure_set=needed)).user_rows

        def add_up(job: Job) -> Callable[[Iterable[pa.RecordBatch]], Iterator[FloatMatrix]]:
            return lambda batches: (
                _sums_of_part(part, policies, measures) for part in job.parts(batches, PartitionTallies())
            )

        total: FloatMatrix = sum(rows.run(add_up), np.zeros((2, len(policies), len(measures))))
        return total

    def _evaluate(
        self, policies: Policies, measures: Sequence[Measure], users: pa.Array | None = None
    ) -> Evaluation[ResultTable]:
        """Plan an evaluation with all facts that some measures need: one of each kind is enough."""
        kinds = {(each.needs, each.group, each.other_model, each.k): each for each in reversed(measures)}
        inputs = dict(self.inputs)
        for name in ("recommendations", "held_out") if users is not None else ():
            inputs[name] = inputs[name].filter(pc.is_in(inputs[name][C.USER_ID], value_set=users))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the inputs are like has been said of the base
            return evaluate(**inputs, measures=[str(each) for each in kinds.values()], policies=policies)


class _Unscored(MeasureSet):
    """Measures whose facts the lists get, and whose values are computed elsewhere: here they are NaN."""

    @property
    @override
    def with_mean_weight(self) -> MeasureSet:
        return self

    @override
    def score(self, lists: Lists, *, judged_only: bool = False) -> dict[str, FloatMatrix]:
        return {name: np.full((lists.n_lists, len(self.ks)), np.nan) for name in self.stored}


def usable_of(evaluation: Evaluation[ResultTable]) -> Usable:
    """Return the rows of an evaluation in this process."""
    usable: Usable = evaluation.host.usable  # type: ignore[attr-defined]  # those of Spark are refused before
    return usable


def split_state(state: State) -> tuple[State, State]:
    """Split a combination into the policies and what is of the measure."""
    policies = frozenset(switch for switch in state if switch[0] == "policy")
    return policies, state - policies


def _combine(axes: Sequence[Sequence[Switch]], most: int) -> Iterator[State]:
    """Yield the combinations of at most some switches, one of each axis; those of fewer switches come first."""
    for n in range(most + 1):
        for chosen in combinations(axes, n):
            yield from map(frozenset, product(*chosen))


def _repeated(table: pa.Table, names: Iterable[str], *, but: str = "") -> pa.Array:
    """Return the users who have two rows with the same values in some columns, but different ones in another."""
    code = encode_rows(table, names)
    _, first, row = np.unique(code, return_index=True, return_inverse=True)
    others = np.delete(np.arange(len(code)), first)
    if but:
        value = encode_rows(table, (but,))
        others = others[value[others] != value[first[row[others]]]]
    users = pc.unique(pc.take(table[C.USER_ID], pa.array(others)))
    return users.combine_chunks() if isinstance(users, pa.ChunkedArray) else users


def _fitting(measures: Sequence[Measure], policies: Policies) -> BoolVector:
    """Return which measures go with the policies: shape (n_measures,)."""

    def has_faults(some: Sequence[Measure]) -> bool:
        chosen = MeasureSet(tuple(some))
        of_ties = tie_faults(chosen, policies.ties)
        return bool(of_ties or judgement_faults(chosen, policies) or measure_gap_faults(chosen, policies, None))

    if not has_faults(measures):
        return np.ones(len(measures), dtype=np.bool_)
    of_labels = {each.label: not has_faults([each]) for each in {each.label: each for each in measures}.values()}
    return np.array([of_labels[each.label] for each in measures])


def _sums_of_part(
    part: Part,  # lists of some whole users
    policies: Sequence[Policies],  # with the same lists
    measures: Sequence[Measure],
) -> FloatMatrix:
    """Score lists, and add up the values of the users that each policy counts: (2, n_policies, n_measures)."""
    lists, tied_list, tied_rank = read_lists(part.lists, part.outputs.computed.groups)
    spread = spread_lists(lists, tied_list, tied_rank, ties=policies[0].ties)
    n_judged, n_relevant = (part.scored.counts[name][:, 0] for name in (C.N_JUDGED, C.N_RELEVANT))
    n_recommended = to_numpy(part.lists[C.N_RECOMMENDED])
    counted = np.stack(
        [find_members(n_judged, n_relevant, n_recommended, policies=each).is_evaluated for each in policies]
    )  # (n_policies, n_lists)
    user = encode_rows(pa.Table.from_pydict({C.USER_ID: part.lists[C.USER_ID]}), (C.USER_ID,)) - 1
    sums = np.full((2, len(policies), len(measures)), np.nan)
    for chunk, together, scores in _score_chunks(spread, measures, judged_only=policies[0].judged_only):
        chosen = [measures[at] for at in chunk]
        places = [together.ks.index(each.k) for each in chosen]
        one = np.ones((lists.n_lists, len(together.ks)))  # of a measure without weights
        columns = [(each.column, each.weight_column or "") for each in chosen]
        values, weights = (
            np.stack([scores.get(pair[of], one)[:, at] for pair, at in zip(columns, places, strict=True)], axis=1)
            for of in (0, 1)
        )
        shape = (lists.n_lists, 1)
        can_be = [np.broadcast_to(together.can_have_value(lists, each.column), shape) for each in chosen]
        has_weight = ~np.isnan(weights)
        is_known, is_open = ~np.isnan(values) & has_weight, np.isnan(values) & has_weight & np.hstack(can_be)
        # (3, n_lists, n_chosen): numerators, denominators, and denominators where policies decide the value
        terms = np.where([is_known, is_known, is_open], [values * weights, weights, weights], 0.0)
        of_lists = counted.astype(np.float64) @ terms  # (3, n_policies, n_chosen)
        fills = {name: np.full(len(chosen), np.nan) for name in ("exclude", "error")}
        fills["zero"] = np.array([each.without_relevant for each in chosen])
        fills["one"] = np.array([each.at_best for each in chosen])
        for row, each in enumerate(policies):
            fill, found = fills[each.zero_relevant], of_lists[:, row]
            has_fill = ~np.isnan(fill)
            if part.outputs.averages_lists and each.unit == "user":  # each user has the mean of their lists
                n_lists = np.zeros((user.max(initial=0) + 1, len(chosen)))
                np.add.at(n_lists, user, (is_known | (is_open & has_fill)) & counted[row][:, None])
                found = (terms * (counted[row][:, None] / np.maximum(n_lists, 1)[user])).sum(axis=1)
            filled = np.where(has_fill, found[2], 0.0)
            sums[:, row, chunk] = found[0] + np.where(has_fill, fill, 0.0) * filled, found[1] + filled
    return sums


def _score_chunks(
    lists: Lists, measures: Sequence[Measure], *, judged_only: bool
) -> Iterator[tuple[list[int], MeasureSet, Mapping[str, FloatMatrix]]]:
    """Score some measures at a time: yield their places, their set and its scores; without those that are refused."""
    chunks = [*_chunks(measures)]
    for chunk in chunks:
        together = MeasureSet(tuple(measures[at] for at in chunk))
        try:
            scores = together.score(lists, judged_only=judged_only)
        except JudgementError:  # of a grade that one of them refuses: each is scored alone
            if len(together.columns) > 1:
                chunks += ([at for at in chunk if measures[at].column == name] for name in together.columns)
            continue
        yield chunk, together, scores


def _chunks(measures: Sequence[Measure]) -> Iterator[list[int]]:
    """Yield places of measures that are scored together: all cutoffs of some labels, no two labels with one column."""
    by_label: dict[str, list[int]] = {}
    for at, measure in enumerate(measures):
        by_label.setdefault(measure.label, []).append(at)
    chunk, columns = list[int](), set[str]()
    for places in by_label.values():
        column = measures[places[0]].column
        if column in columns or len(columns) == _LABELS_AT_ONCE:
            yield chunk
            chunk, columns = [], set()
        chunk += places
        columns.add(column)
    if chunk:
        yield chunk
