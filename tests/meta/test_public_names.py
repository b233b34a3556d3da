"""What other people's schedules and notebooks are written against; it changes on purpose only.

A name or a parameter that is added is added here too; one that is renamed or removed breaks somebody, so it goes into
the changelog first. A new measure needs no line here: those that are listed must stay.
"""

from __future__ import annotations

import inspect
import re
import rlcompleter
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import rankeval_spark
from rankeval_spark import errors, results, schemas, windows
from rankeval_spark.config import Checks, Policies, presets
from rankeval_spark.errors import ExitCode
from rankeval_spark.measures import Measure, registry
from rankeval_spark.spark import session
from rankeval_spark.spark.list_functions import FUNCTIONS

if TYPE_CHECKING:
    import pytest

PUBLIC: Final = [
    *("Comparisons", "Evaluation", "FrameInputs", "Intervals", "Policies", "ResultTable", "Results", "Slicing"),
    *(
        "__version__",
        "advise",
        "attributed_interactions",
        "build_session",
        "evaluate",
        "evaluate_config",
        "measure",
        "measure_lists",
        "reconcile",
        "register_functions",
        "windows",
    ),
]

WINDOWS: Final = {
    "ranked_items": ("recommendations", "held_out", "models", "policies"),
    "user_metrics": ("recommendations", "held_out", "cutoffs", "models", "policies"),
}
"""Functions of ``rankeval_spark.windows`` and their parameters."""

REGISTER_FUNCTIONS: Final = {"spark": "required", "prefix": "", "rel": 1, "dcg": "log2"}
SQL_FUNCTIONS: Final = ["ndcg", "dcg", "precision", "recall", "reciprocal_rank", "average_precision", "hit_rate"]

EVALUATE: Final = {
    "recommendations": "required",
    "held_out": "required",
    "measures": "required, by name",
    "slices": (),
    **dict.fromkeys(("baseline", "models", "segments", "train", "items", "evaluation_date", "format", "preset")),
    **dict.fromkeys(("user_values", "user_weights")),
    **dict.fromkeys(("policies", "inputs", "slicing", "intervals", "comparisons")),
}
EVALUATION: Final = {
    *("agreement", "as_table", "cached", "checks", "compare", "comparisons", "explain", "gap_tests", "gaps"),
    "group_metrics",
    *("hit_ranks", "leaderboard", "metrics", "notes", "plot", "ranked_items", "release"),
    *("flat_metrics", "log_to_mlflow", "to_config", "user_metrics", "user_values"),
}
RESULTS: Final = {
    "arrow": ("table", "date", "evaluation", "columns", "equal"),
    "checks": ("date", "evaluation", "equal"),
    "examples": ("date", "evaluation", "equal"),
    "explain": ("user", "measure", "model", "list_id", "date", "evaluation"),
    "comparisons": ("date", "evaluation", "equal"),
    "compare": ("model", "other", "measure", "date", "evaluation"),
    "deleted": ("date", "evaluation"),
    "gates": ("date", "evaluation", "equal"),
    "history": ("measure", "evaluation", "equal"),
    "latest": ("table", "evaluation", "equal"),
    "leaderboard": ("k", "date", "evaluation"),
    "lists": ("date", "evaluation", "equal"),
    "group_metrics": ("date", "evaluation", "equal"),
    "metrics": ("date", "evaluation", "equal"),
    "nights": ("table",),
    "published": ("table",),
    "refresh": (),
    "register": ("connection", "schema"),
    "runs": ("date", "evaluation"),
    "scan": ("table", "date", "evaluation", "equal"),
    "table_versions": (),
    "user_differences": ("measure", "model_id", "against", "date", "evaluation"),
    "user_metrics": ("date", "evaluation", "equal"),
    "user_values": ("date", "evaluation", "equal"),
    "what_changed": ("measure", "against", "date", "evaluation", "user_share"),
    "worst_users": ("measure", "model_id", "n", "date", "evaluation"),
}
"""Settings that the numbers or the plan hang on; others may come and go with what measures fastest."""

POLICIES: Final = {
    "population": {"truth", "judged", "intersection", "intersection_judged", "run"},
    "zero_relevant": {"exclude", "zero", "one", "error"},
    "missing": {"zero", "exclude", "error"},
    "ties": {"item_asc", "item_desc", "item_desc_bytes", "rank", "optimistic", "pessimistic", "expected", "error"},
    "score_precision": {"double", "single"},
    "rank_gaps": {"renumber", "keep"},
    "duplicates": {"best", "error", "keep"},
    "judged_only": set(),
    "held_out_duplicates": {"max", "sum", "last", "error"},
    "invalid_scores": {"drop", "error"},
    "seen_in_train": {"keep", "drop", "drop_both"},
    "unknown_items": {"keep", "drop"},
    "own_item": {"keep", "drop", "drop_both"},
    "unit": {"user", "list"},
    "order": {"score", "rank"},
    "lists": {"separate", "pooled"},
    "attribution": {"none", "last_touch", "first_touch", "all"},
    "attribution_window": set(),
    "consumed_before": {"keep", "drop"},
}
POLICY_DEFAULTS: Final = {
    "population": "truth",
    "zero_relevant": "exclude",
    "missing": "zero",
    "ties": "item_asc",
    "score_precision": "double",
    "rank_gaps": "renumber",
    "duplicates": "best",
    "judged_only": False,
    "held_out_duplicates": "max",
    "invalid_scores": "drop",
    "seen_in_train": "keep",
    "unknown_items": "keep",
    "own_item": "keep",
    "unit": "user",
    "order": "score",
    "lists": "separate",
    "attribution": "none",
    "attribution_window": "none",
    "consumed_before": "keep",
}
PRESET_NAMES: Final = {
    *("trec_eval", "ir_measures", "ranx", "rectools", "recbole", "elliot", "lenskit", "kaggle", "spark"),
    *("recommenders", "cornac", "tf_ranking", "xgboost", "lightgbm", "catboost", "torchmetrics", "sklearn"),
    "elasticsearch",
}
CHECKS: Final = {
    "null_keys",
    "invalid_scores",
    "zero_ranks",
    "alike_values",
    *("target_sums", "mean_weight", "effective_sample"),
    "duplicates",
    "invalid_gains",
    "negative_gains",
    "invalid_facts",
    "invalid_values",
    "invalid_weights",
    "low_gains",
    "unmatched_items",
    "unmatched_lists",
    "short_lists",
    "ties",
    "extra_users",
    "missing_users",
    "absent_baseline",
    "sample_ratio",
    "zero_relevant",
    "rank_gaps",
    "score_rank_disagree",
    "unknown_items",
    "unknown_rows",
    "seen_in_train",
    "own_item",
    "held_out_in_train",
    "train_after_cut",
    *("before_list", "after_window", "consumed_before", "list_times", "open_windows", "events_end"),
    *("untimed_lists", "untimed_interactions"),
    *("extra_columns", "sampled_candidates"),
    *("invalid_user_values", "invalid_user_weights", "absent_user_values", "unmatched_users"),
    "volume",
    "absent_models",
    "fewer_users",
    "drift",
}
MEASURES: Final = {
    "AP@1": "AP(rel=1,agg='macro',denom='R',gains='binary')",
    "ARHR@1": "ARHR(rel=1,agg='macro',denom='none',gains='binary')",
    "CG@1": "CG(rel=1,gains='grade',unjudged='zero')",
    "DCG@1": "DCG(rel=1,dcg='log2',gains='grade',unjudged='zero')",
    "ERR@1": "ERR(max_rel=4,unjudged='zero')",
    "F@1": "F(rel=1,agg='macro',beta=1)",
    "F1@1": "F(rel=1,agg='macro',beta=1)",
    "FirstHit@1": "FirstHit(rel=1)",
    "HR@1": "Success(rel=1)",
    "IPrec@0.1": "IPrec(rel=1,need='ceil',recall=0.1)",
    "IPrecAvg": "IPrecAvg(rel=1,levels=11,need='ceil')",
    "Judged@1": "Judged(agg='macro',denom='len')",
    "MAR@1": "MAR(rel=1,agg='macro',kind='hits_R')",
    "AUC": "AUC(rel=1,agg='macro',by='score',ties='half')",
    "FCP": "FCP(agg='macro',by='score',ties='half')",
    "GMAP@1": "GMAP(rel=1,floor=1e-05)",
    "GAUC": "GAUC(rel=1,agg='micro',by='score',ties='half')",
    "LogAP@1": "LogAP(rel=1,floor=1e-05)",
    "MAP@1": "AP(rel=1,agg='macro',denom='R',gains='binary')",
    "MRR@1": "RR(rel=1,agg='macro',gains='binary')",
    "NumHits@1": "NumHits(rel=1)",
    "P@1": "P(rel=1,agg='macro',denom='k')",
    "P(judged_only=True)@1": "P(rel=1,agg='macro',denom='k',judged_only=True)",
    "R@1": "R(rel=1,agg='macro',denom='R',gains='binary')",
    "R(group='tail')@1": "R(rel=1,agg='macro',denom='R',gains='binary',group='tail')",
    "RBP@1": "RBP(max_rel=1,p=0.8,unjudged='zero')",
    "RBPResidual@1": "RBPResidual(p=0.8)",
    "RMSE": "RMSE(agg='macro',missing='drop')",
    "RR@1": "RR(rel=1,agg='macro',gains='binary')",
    "Rprec": "Rprec(rel=1,agg='macro')",
    "SetF": "SetF(rel=1,agg='macro',beta=1)",
    "SetP": "SetP(rel=1,agg='macro',relative=False)",
    "SetR": "SetR(rel=1,agg='macro')",
    "Success@1": "Success(rel=1)",
    "nERR@1": "nERR(agg='macro',max_rel=4)",
    "nDCG@1": "nDCG(rel=1,agg='macro',dcg='log2',gains='grade',ideal='judged',unjudged='zero')",
}
"""Names that people write, and what each of them means when every option is written out."""

MEASURE_OPTIONS: Final = {
    "AP": {"agg": {"macro", "micro"}, "denom": {"R", "min", "k", "len", "hits", "none"}},
    "ARHR": {
        "agg": {"macro", "micro"},
        "denom": {"none", "R", "min", "k", "len", "hits", "ideal"},
        "gains": {"binary", "grade"},
    },
    "IPrec": {"need": {"ceil", "v9", "v10"}},
    "MAR": {"kind": {"hits_R", "hits_min", "cutoffs"}},
    "P": {"agg": {"macro", "micro"}, "denom": {"k", "len", "min"}},
    "R": {
        "agg": {"macro", "micro"},
        "denom": {"R", "min"},
        "gains": {"binary", "value"},
        "group": {"head", "middle", "tail", "repeat", "explore"},
    },
    "nDCG": {
        "agg": {"macro", "micro"},
        "dcg": {"log2", "exp-log2", "jk2", "ln", "log10", "inverse", "geometric", "none"},
        "gains": {"grade", "binary", "value"},
        "ideal": {"judged", "k_ones", "retrieved", "len"},
        "unjudged": {"zero", "mean", "median"},
    },
}
TABLES: Final = {
    "lists": "evaluation evaluation_date run_id model_id user_id list_id segments n_recommended n_duplicates hit_ranks "
    "hit_gains judged_gains tied_ranks hit_scores empty_ranks has_rank_gaps is_out_of_order",
    "user_metrics": "evaluation evaluation_date run_id model_id user_id list_id k segments n_judged n_relevant "
    "n_recommended n_hits has_ties",
    "metrics": "evaluation evaluation_date run_id model_id slice slice_value slice_values measure k value n_users "
    "n_lists n_undefined n_missing n_zero_relevant n_extra_users tie_share is_small std_dev std_error ci_low ci_high "
    "ci_level ci_method n_nonzero is_uncertain quantiles quantile_error n_effective has_support",
    "group_metrics": "evaluation evaluation_date run_id model_id slice slice_value slice_values measure k value "
    "n_users n_lists n_left_out is_small ci_low ci_high ci_level ci_method",
    "comparisons": "evaluation evaluation_date run_id baseline_model_id model_id slice slice_value slice_values "
    "measure k n_users n_baseline_users n_with_baseline n_with_model n_with_both baseline_value value delta std_error "
    "ci_low ci_high ci_level relative_delta relative_ci_low relative_ci_high test nights method freedom "
    "variance_removed replicates seed p_value p_adjusted correction family family_size detectable reason "
    "effect_size n_wins n_ties n_losses margin win_share loss_share is_small verdict",
    "gates": "evaluation evaluation_date run_id gate model_id slice slice_value slice_values measure k rule verdict "
    "observed bound n_users explanation",
    "checks": "evaluation evaluation_date run_id input check severity count share threshold verdict sample_keys",
    "examples": "evaluation evaluation_date run_id baseline_model_id model_id side place user_id measure k value "
    "baseline_value delta n_relevant listed_by list_id rank item_id title gain",
}
EXIT_CODES: Final = {
    "ConfigError": 2,
    "InvalidCallError": 2,
    "ChecksFailedError": 3,
    "OpenWindowsError": 4,
    "RefusedCallError": 3,
    "InputError": 4,
    "ResultsBusyError": 5,
    "ResultsError": 1,
    "EnvironmentFaultError": 8,
    "DriverLostError": 8,
    "JudgementError": 3,
    "MeasureError": 3,
}


def parameters(function: object) -> dict[str, inspect.Parameter]:
    """Parameters of a function or a method, without ``self``."""
    found = dict(inspect.signature(function).parameters)  # type: ignore[arg-type]  # any callable has a signature
    found.pop("self", None)
    return found


def public_members(class_: type) -> set[str]:
    """Methods and properties that a user may call."""
    ours = [one for one in class_.__mro__ if one.__module__.startswith(rankeval_spark.__name__)]
    members = {name: value for one in ours for name, value in vars(one).items()}
    return {name for name, value in members.items() if not name.startswith("_") and not inspect.isclass(value)}


def test_the_package_has_exactly_its_public_names() -> None:
    assert sorted(rankeval_spark.__all__) == PUBLIC
    assert all(getattr(rankeval_spark, name) is not None for name in PUBLIC)


def test_completion_offers_the_public_names_and_no_module() -> None:
    """Names that are loaded at first use are offered too: ``evaluate``, not ``evaluation`` alone."""
    assert dir(rankeval_spark) == PUBLIC
    assert dir(results) == sorted(results.__all__)
    assert dir(session) == sorted(session.__all__)


def test_completion_offers_what_a_plain_install_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Completers read each name that they are offered, so that none may be refused."""
    monkeypatch.setitem(sys.modules, "pyspark", None)

    needing_spark = {"attributed_interactions", "build_session", "register_functions", "windows"}
    assert dir(rankeval_spark) == [name for name in PUBLIC if name not in needing_spark]
    assert rlcompleter.Completer({"r": rankeval_spark}).attr_matches("r.Results") == ["r.Results("]


def test_names_are_offered_without_loading_them() -> None:
    script = "import sys, rankeval_spark as r; print(len(dir(r)), {'numpy', 'pyarrow', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(PUBLIC)} set()\n"


def test_evaluate_takes_exactly_these_parameters_with_these_defaults() -> None:
    found = {
        name: each.default
        if each.default is not inspect.Parameter.empty
        else "required, by name"
        if each.kind is inspect.Parameter.KEYWORD_ONLY
        else "required"
        for name, each in parameters(rankeval_spark.evaluate).items()
    }
    assert found == EVALUATE


def test_windows_are_planned_by_exactly_these_functions() -> None:
    own = (name for name, each in vars(windows).items() if getattr(each, "__module__", "") == windows.__name__)
    assert {name for name in own if not name.startswith("_")} == {*WINDOWS, "WindowPolicies"}
    assert {name: tuple(parameters(getattr(windows, name))) for name in WINDOWS} == WINDOWS


def test_exactly_these_functions_are_registered_for_sql() -> None:
    found = {
        name: "required" if each.default is inspect.Parameter.empty else each.default
        for name, each in parameters(rankeval_spark.register_functions).items()
    }
    assert found == REGISTER_FUNCTIONS
    assert list(FUNCTIONS) == SQL_FUNCTIONS


def test_all_but_the_two_frames_are_given_by_name() -> None:
    kinds = [each.kind for each in parameters(rankeval_spark.evaluate).values()]
    assert kinds == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2 + [inspect.Parameter.KEYWORD_ONLY] * (len(kinds) - 2)


def test_an_evaluation_offers_exactly_these_results() -> None:
    fields = {"inputs", "request"}
    assert public_members(rankeval_spark.Evaluation) - fields == EVALUATION
    assert list(parameters(rankeval_spark.Evaluation.leaderboard)) == ["k"]


def test_published_results_are_read_by_exactly_these_methods() -> None:
    methods = {name: tuple(parameters(getattr(rankeval_spark.Results, name))) for name in RESULTS}
    assert public_members(rankeval_spark.Results) == {*RESULTS, "plot"}
    assert methods == RESULTS
    assert list(parameters(rankeval_spark.Results)) == ["root", "spark"]


def test_every_policy_has_exactly_these_values() -> None:
    found = {name: set(get_args(field.annotation)) for name, field in Policies.model_fields.items()}
    assert found == POLICIES
    assert Policies().model_dump() == POLICY_DEFAULTS


def test_every_preset_keeps_its_name() -> None:
    assert set(presets()) == PRESET_NAMES


def test_every_check_keeps_its_name() -> None:
    assert set(Checks.model_fields) == CHECKS


def test_names_of_measures_keep_their_meaning() -> None:
    assert {name: Measure.parse(name).definition for name in MEASURES} == MEASURES


def test_options_of_measures_keep_their_values() -> None:
    for name, options in MEASURE_OPTIONS.items():
        entry = registry.get(name)
        choices = {each.name: set(each.choices or ()) for each in entry.options}
        assert {option: values - choices[option] for option, values in options.items()} == {
            option: set() for option in options
        }, name


def test_published_tables_have_exactly_these_columns() -> None:
    found = {schema.name: schema.field_names() for schema in schemas.PUBLISHED}
    assert found == {name: columns.split() for name, columns in TABLES.items()}


def test_the_page_of_faults_has_every_exit_code_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    table = page.partition("## Faults")[0]
    stopped = {ExitCode.of_signal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert codes == {*ExitCode} - {ExitCode.BY_SIGNAL} | stopped


def test_every_error_keeps_its_exit_code() -> None:
    found = {
        name: value.exit_code
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.FaultsError) and value is not errors.FaultsError
    }
    assert found == EXIT_CODES
