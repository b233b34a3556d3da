"""A night is the same on both hosts: rows of users to the bit, everything else within 1e-12."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankeval_spark import columns as C, schemas
from rankeval_spark.apps.nightly.night import run_night, spark_host
from rankeval_spark.apps.nightly.night_plan import NightPlan
from rankeval_spark.config import load_config
from rankeval_spark.errors import ChecksFailedError, InputError, OpenWindowsError
from rankeval_spark.spark.session import on_demand
from tests.evaluate.test_attribution import tables as attribution_tables
from tests.spark.in_process.test_hosts_agree import TOGETHER
from tests.spark.notebook.test_off_policy import of_weights
from tests.support import arms, example_night, nights
from tests.support.attribution_cases import random_logs
from tests.support.awkward import Awkward
from tests.support.cli import rankeval
from tests.support.hosts import is_same
from tests.support.impressions import rare_rows
from tests.support.nested_logs import flat_of, nested, with_structs
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS, Workspace, no_session
from tests.support.united_logs import with_paths, with_trec
from tests.support.young_impressions import impressions

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rankeval_spark.apps.nightly.night import NightResult

OF_USERS: Final = ("lists", "user_metrics")
TOLERANCE: Final = 1e-12
COUNT_ONLY: Final[dict[str, Any]] = {
    f"checks__{name}": {} for name in ("null_keys", "invalid_scores", "invalid_gains", "missing_users")
}


def roots(workspace: Workspace, *overrides: str) -> tuple[Any, Any]:
    """Configs of the same night, one for each host."""
    of_host = ("results.root=on_spark", "results.root=here")
    on_spark, here = (load_config(workspace.config, (*overrides, root)) for root in of_host)
    return on_spark, here


def on_both(
    spark: SparkSession, workspace: Workspace, *overrides: str, days: tuple[date, ...] = (FIRST,), share: float = 1.0
) -> list[tuple[NightResult, NightResult]]:
    """Run nights on both hosts; that here starts no session."""
    on_spark, here = roots(workspace, *overrides)
    results = []
    for day in days:
        there = run_night(spark, on_spark, day, sample_share=share)
        results.append((there, run_night(on_demand(no_session), here, day, sample_share=share)))
    assert_same(workspace)
    return results


def assert_same(workspace: Workspace) -> None:
    for schema in schemas.PUBLISHED:
        wanted, found = (rows_of(workspace, root, schema.name) for root in ("on_spark", "here"))
        assert len(found) == len(wanted), schema.name
        tolerance = 0.0 if schema.name in OF_USERS else TOLERANCE
        for one, other in zip(found, wanted, strict=True):
            assert one.keys() == other.keys()
            for name, value in other.items():
                assert is_same(one[name], value, tolerance), (schema.name, name, one, other)
    wanted, found = (published(workspace, root) for root in ("on_spark", "here"))
    for one, other in zip(found, wanted, strict=True):
        for name in ("reason", "inputs", "input_columns", "measures", "n_rows", "sample_share"):
            assert one[name] == other[name], name


def rows_of(workspace: Workspace, root: str, table: str) -> list[dict[str, Any]]:
    rows = deltalake.DeltaTable(str(workspace.folder / root / table)).to_pyarrow_table().drop_columns([C.RUN_ID])
    return sorted(rows.to_pylist(), key=lambda row: tuple(str(x) for x in row.values() if not isinstance(x, float)))


def published(workspace: Workspace, root: str) -> list[dict[str, Any]]:
    runs = deltalake.DeltaTable(str(workspace.folder / root / "runs")).to_pyarrow_table()
    rows: list[dict[str, Any]] = runs.to_pylist(maps_as_pydicts="strict")  # the order of a map says nothing
    return sorted((row for row in rows if row["status"] == "PUBLISHED"), key=lambda row: row["recorded_at"])


def awkward(folder: Path, inputs: Awkward, format_: str = "parquet", **changes: Any) -> Workspace:  # noqa: ANN401 - as change
    """Make a workspace of random inputs with everything awkward in them."""
    made = Workspace(folder)
    for name, table in vars(inputs).items():
        write(folder / "inputs" / name, table, format_)
    made.configure(
        {
            "evaluation": "awkward",
            "inputs": {name: {"format": format_, "path": f"inputs/{name}"} for name in vars(inputs)},
            "measures": ["nDCG", "AP", "P(agg='micro')", "RR"],
            "cutoffs": [1, 3],
            "slices": ["country", ["country", "tier"]],
            "slicing": {"min_slice_size": 2},
            "results": {"root": "results", "lists": True, "quarantine": False},
        }
    )
    made.change(**COUNT_ONLY, **changes)
    return made


def write(path: Path, table: pa.Table, format_: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if format_ == "delta":
        deltalake.write_deltalake(str(path), table)
        return
    path.mkdir()
    half = table.num_rows // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, path / f"part-{number}.parquet")


def test_nights_by_hand_with_a_date_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    gates = [
        {"measure": "RR@2", "margin": 0.5, "against": "previous"},
        {"measure": "RR@2", "margin": 0.5, "sequential": True},
    ]
    pairs = {"baseline": "pop", "nights": 7}
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET, gates=gates, comparisons=pairs)
    found = on_both(spark, workspace, days=(FIRST, SECOND, WITHOUT_ROWS, FIRST))
    assert all(here.gates == there.gates and here.warnings == there.warnings for there, here in found)
    assert [here.reason is None for _, here in found] == [True, True, False, True]
    pooled = [row for row in rows_of(workspace, "here", "comparisons") if row["test"] == "pooled"]
    assert {(row["evaluation_date"], row["nights"]) for row in pooled} == {(SECOND, 2)}


def test_sample_draws_the_same_users_with_their_values_and_weights(spark: SparkSession, tmp_path: Path) -> None:
    users = [None, *range(70)]
    values = {"user_id": users, "kpi": ["spent", "visits", None] * 23 + ["spent"] * 2}
    own = {
        "user_values": pa.table({**values, "amount": [float("nan"), *(user / 7 for user in range(70))]}),
        "user_weights": pa.table({"user_id": users[:60], "weight": [1.0, 0.0, 2.5] * 20}),
    }
    for name, table in own.items():
        write(tmp_path / "inputs" / name, table, "parquet")
    found: dict[str, Any] = {f"inputs__{name}": {"format": "parquet", "path": f"inputs/{name}"} for name in own}
    found["inputs__user_values"]["columns"] = {"name": "kpi", "value": "amount"}
    measures = ["nDCG", "P(agg='micro')", "UserValue(name='spent')", "UserValue(name='unheard')"]
    workspace = awkward(
        tmp_path,
        Awkward.make(5, ids="bigint"),
        **found,
        measures=measures,
        checks__invalid_user_values={},
        checks__invalid_user_weights={},
    )
    ((there, here),) = on_both(spark, workspace, share=0.5)
    assert there.evaluation == here.evaluation == "awkward.sample-0.5"
    checks = {(row["input"], row["check"]): row for row in rows_of(workspace, "here", "checks")}
    absent = checks["user_values", "absent_user_values"]
    assert (absent["count"], absent["sample_keys"], absent["verdict"]) == (1, ["unheard"], "warn")
    assert checks["user_weights", "invalid_user_weights"]["count"] > 0
    (run,) = published(workspace, "here")
    assert {"user_values", "user_weights"} <= {each["name"] for each in run["inputs"]}


def test_examples_are_the_same_users_with_their_titles(spark: SparkSession, tmp_path: Path) -> None:
    workspace = example_night.workspace(tmp_path)
    on_both(spark, workspace, days=(example_night.DAY,))
    rows = [
        row for row in rows_of(workspace, "on_spark", "examples") if (row["model_id"], row["side"]) == ("als", "win")
    ]
    users = {row["place"]: row["user_id"] for row in rows}
    assert [users[place] for place in (1, 2, 3)] == example_night.chosen("als", "win", 3)
    assert {row["title"] for row in rows} >= {"Title of i4", example_night.HOSTILE}


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        pytest.param(
            {"has_lists": True, "has_ranks": True},
            {
                "policies__unit": "list",
                "policies__held_out_duplicates": "sum",
                "slicing__quantiles": [0.1, 0.5, 1],
                "comparisons": {
                    "baseline": "popular",
                    "pairs": "all",
                    "tests": ["t", "wilcoxon", "tukey"],
                    "margin": 0.1,
                },
                "results__examples": 3,
            },
            id="several lists, unit list, ranks, comparisons, examples",
        ),
        pytest.param(
            {"ids": "bigint", "has_ranks": True},
            {
                "policies__rank_gaps": "keep",
                "results__lists": False,
                "format_": "delta",
                "intervals": {"method": "bootstrap", "replicates": 100},
                "models": ["als", "popular"],
                **{
                    f"inputs__{name}__types": {"user_id": "string"}
                    for name in ("recommendations", "held_out", "segments", "train")
                },
            },
            id="numbers as text, rank gaps kept, drawn, no lists, Delta",
        ),
        pytest.param(
            {"ids": "bigint"},
            {
                "measures": ["RR", "MIUF", "ILD(unknown='drop')", "Freshness(unknown='drop')", *TOGETHER],
                "policies__seen_in_train": "drop_both",
                "policies__unknown_items": "drop",
                "checks__seen_in_train": {"warn": 0},
                "checks__unknown_rows": {"warn": 0},
            },
            id="measures of items and of all lists, seen and unknown items dropped",
        ),
        pytest.param(
            {},
            {
                "slicing__bands": {"age": {"quantiles": 3}, "activity": {"of": "train"}},
                "slices": ["age", "activity"],
                "slicing__item_slices": ["head", "rock"],
                "checks__seen_in_train": {"warn": 0},
            },
            id="bands, groups of items, seen items counted",
        ),
        pytest.param(
            {},
            {
                "policies": {
                    "population": "run",
                    "ties": "expected",
                    "held_out_duplicates": "last",
                    "own_item": "drop_both",
                },
                "measures": ["P", "RR", "nDCG"],
                "inputs__time_zone": "America/Sao_Paulo",
                "inputs__held_out__filters": [{"column": "interacted_at", "op": "last", "value": "1d"}],
            },
            id="run, a window of days of a zone",
        ),
    ],
)
def test_random_nights(spark: SparkSession, tmp_path: Path, make: dict[str, Any], changes: dict[str, Any]) -> None:
    workspace = awkward(tmp_path, Awkward.make(7, **make), **changes)
    on_both(spark, workspace)


@pytest.mark.parametrize(
    ("form", "changes"),
    [
        pytest.param(
            "flat",
            {
                "measures": ["RR", "alpha_nDCG", "PopREO@3"],
                "policies": {"missing": "exclude", "unit": "list"},
                "results__lists": False,
            },
            id="flat, items, unit list",
        ),
        pytest.param("nested", {"comparisons": {"baseline": "popular"}, "results__quarantine": True}, id="nested"),
    ],
)
def test_nights_whose_judgements_name_their_list(
    spark: SparkSession, tmp_path: Path, form: str, changes: dict[str, Any]
) -> None:
    inputs = Awkward.make(7, has_lists=True).with_judged_lists()
    held_out = inputs.held_out.rename_columns({"list_id": "session"})
    columns: dict[str, Any] = {"inputs__held_out__columns": {"list_id": "session"}}
    if form == "nested":
        inputs = replace(inputs, recommendations=nested(inputs.recommendations))
        columns["inputs__recommendations__nested"] = {"items": "item_id", "scores": "score"}
    workspace = awkward(tmp_path, replace(inputs, held_out=held_out), **columns, **changes)
    on_spark, here = roots(workspace)
    run_night(spark, on_spark, FIRST)
    run_night(on_demand(lambda: spark), here, FIRST)
    assert_same(workspace)
    checks = {(row["input"], row["check"]): row for row in rows_of(workspace, "here", "checks")}
    assert all(checks["held_out", name]["count"] > 0 for name in ("null_keys", "unmatched_lists", "duplicates"))
    lists = {row["list_id"] for row in rows_of(workspace, "here", "user_metrics")}
    assert lists == {"a", "b", *(["c"] if form == "nested" else [])}  # no model has a list c


@pytest.mark.parametrize("form", ["items", "lists", "own setting"])
def test_batches_of_items_alone_have_no_limit_of_bytes(spark: SparkSession, tmp_path: Path, form: str) -> None:
    limit = "spark.sql.execution.arrow.maxBytesPerBatch"
    inputs, changes = Awkward.make(7), dict[str, Any]()
    if form == "lists":
        inputs = replace(inputs, recommendations=nested(inputs.recommendations))
        changes["inputs__recommendations__nested"] = {"items": "item_id", "scores": "score"}
    if form == "own setting":
        changes["spark__settings"] = {limit: "1m"}
    config = load_config(awkward(tmp_path, inputs, **changes).config)
    before = spark.conf.get(limit, "64m")
    with spark_host(spark, NightPlan.of(config, FIRST)) as host:
        host.read()
        assert spark.conf.get(limit, "64m") == (str(2**31 - 1) if form == "items" else before)
    assert spark.conf.get(limit, "64m") == before


def test_rows_are_chosen_by_the_same_filters(spark: SparkSession, tmp_path: Path) -> None:
    filters = [
        {"column": "score", "op": "!=", "value": 0.5},
        {"column": "model_id", "op": "in", "value": ["als", "popular"]},
        {"column": "user_id", "op": ">", "value": 7},
    ]
    of_time = [{"column": "interacted_at", "op": "<", "value": "2026-01-01T12:00:00+02:00"}]
    of_items = [{"column": "published_at", "op": ">=", "value": "2025-03-01"}]
    workspace = awkward(
        tmp_path,
        Awkward.make(3, ids="bigint"),
        inputs__recommendations__filters=filters[1:],
        inputs__held_out__filters=of_time,
        inputs__items__filters=of_items,
        models=["als", "popular"],
    )
    on_both(spark, workspace)

    workspace.change(inputs__recommendations__filters=filters)  # how Spark compares fractions is left to Spark
    with pytest.raises(AssertionError, match="a session was started"):
        on_both(spark, workspace)


def test_what_is_wrong_is_reported_alike(spark: SparkSession, tmp_path: Path) -> None:
    workspace = awkward(tmp_path, Awkward.make(2))
    workspace.change(
        checks__null_keys={"error": 0}, checks__invalid_scores={"error": 0}, policies__invalid_scores="error"
    )
    messages = []
    for session, config in zip((spark, on_demand(no_session)), roots(workspace), strict=True):
        with pytest.raises(ChecksFailedError) as failed:
            run_night(session, config, FIRST)
        messages.append([str(fault) for fault in failed.value.faults])
    assert messages[0] == messages[1]
    assert len(messages[0]) >= 2


def test_rows_that_cannot_be_used_are_written_out_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    workspace = awkward(tmp_path, Awkward.make(2), results__quarantine=True)
    on_spark, here = roots(workspace)
    run_night(spark, on_spark, FIRST)
    run_night(on_demand(lambda: spark), here, FIRST)
    assert_same(workspace)
    kept = [
        sorted(
            map(
                str,
                deltalake.DeltaTable(str(next((workspace.folder / root / "_quarantine").iterdir())))
                .to_pyarrow_table()
                .to_pylist(),
            )
        )
        for root in ("on_spark", "here")
    ]
    assert kept[0] == kept[1]
    assert len(kept[0]) >= 4


def test_judgements_whose_weight_cannot_be_used_are_counted_and_kept(spark: SparkSession, tmp_path: Path) -> None:
    log, held_out = of_weights()
    workspace = impressions_night(tmp_path, log, held_out, measures=["R", "R(weighted=True)", "nDCG(weighted=True)@1"])
    workspace.change(results__quarantine=True)
    on_spark, here = roots(workspace)
    run_night(spark, on_spark, FIRST)
    run_night(on_demand(lambda: spark), here, FIRST)
    assert_same(workspace)
    for root in ("on_spark", "here"):
        counted = {row["check"]: (row["count"], row["verdict"]) for row in rows_of(workspace, root, "checks")}
        assert counted["invalid_weights"] == (20, "warn")
        quarantined = deltalake.DeltaTable(str(next((workspace.folder / root / "_quarantine").iterdir())))
        assert quarantined.to_pyarrow_table()["check"].to_pylist() == ["invalid_weights"] * 20


def test_nights_of_an_ab_test_with_a_night_before_it(spark: SparkSession, tmp_path: Path) -> None:
    workspace = arms.nights_of_a_test(tmp_path)
    on_both(spark, workspace, days=(FIRST,))
    split = {"a": 0.5, "b": 0.5}
    rules = [{"measure": f"{arms.MICRO}@10", "margin": 0.2, "relative": True}]
    workspace.change(comparisons={"baseline": "a", "split": split, "covariate": FIRST.isoformat()}, gates=rules)
    on_both(spark, workspace, days=(SECOND,))
    (row,) = [
        row
        for row in rows_of(workspace, "here", "comparisons")
        if (row["measure"], row["slice"]) == (arms.MICRO, "all")
    ]
    assert (row["test"], row["n_users"], row["n_baseline_users"]) == ("unpaired", 200, 200)
    assert row["variance_removed"] > 0.2


def test_nights_of_estimates_without_support(spark: SparkSession, tmp_path: Path) -> None:
    log, held_out = (pa.Table.from_pylist(rows) for rows in rare_rows())
    workspace = impressions_night(tmp_path, log, held_out, measures=["IPS", "ClippedIPS"])
    rules = [{"measure": "IPS", "at_least": 0.1}, {"measure": "IPS", "least_gain": 0.01}]
    workspace.change(policies={"population": "judged"}, comparisons={"baseline": "same"}, gates=rules)
    on_both(spark, workspace)
    for root in ("on_spark", "here"):
        effective = {row["model_id"]: row["n_effective"] for row in rows_of(workspace, root, "metrics")}
        assert effective["rare"] == pytest.approx(1000**2 / (995 / 199**2 + 5 * 199**2), rel=1e-9)
        compared = [(row["reason"], row["verdict"]) for row in rows_of(workspace, root, "comparisons")]
        assert compared == [("too_little_support", "undecided")] * 2
        verdicts = {
            row["gate"]: row["verdict"] for row in rows_of(workspace, root, "gates") if row["model_id"] == "rare"
        }
        assert verdicts == dict.fromkeys((1, 2), "too_little_support")
        counted = {row["check"]: row["count"] for row in rows_of(workspace, root, "checks")}
        assert (counted["mean_weight"], counted["effective_sample"], counted["target_sums"]) == (0, 995, 0)


def impressions_night(folder: Path, log: pa.Table, held_out: pa.Table, *, measures: list[str]) -> Workspace:
    """Write the inputs of a night, and its config."""
    workspace = Workspace(folder)
    for name, table in (("recommendations", log), ("held_out", held_out)):
        write(folder / "inputs" / name, table, "parquet")
    inputs = {name: {"format": "parquet", "path": f"inputs/{name}"} for name in ("recommendations", "held_out")}
    workspace.configure(
        {"evaluation": "weighted", "inputs": inputs, "measures": measures, "results": {"root": "results"}}
    )
    workspace.change(**COUNT_ONLY)
    return workspace


def test_nights_that_attribute_by_time(spark: SparkSession, tmp_path: Path) -> None:
    log, held_out = attribution_tables(*random_logs(n_users=60))
    workspace = Workspace(tmp_path)
    for name, table in (("recommendations", log), ("held_out", held_out)):
        write(tmp_path / "inputs" / name, table, "parquet")
    workspace.configure(
        {
            "evaluation": "impressions",
            "inputs": {
                name: {"format": "parquet", "path": f"inputs/{name}"} for name in ("recommendations", "held_out")
            },
            "measures": ["nDCG@3", "R"],
            "policies": {"attribution": "last_touch", "attribution_window": "2h", "consumed_before": "drop"},
            "results": {"root": "results", "lists": True},
        }
    )
    workspace.change(**COUNT_ONLY)
    on_both(spark, workspace)
    counted = {row["check"]: row["count"] for row in rows_of(workspace, "here", "checks")}
    assert min(counted[name] for name in ("before_list", "after_window", "consumed_before")) > 0
    assert counted["open_windows"] == 0
    (run,) = published(workspace, "here")
    assert dict(run["policies"])["attribution_window"] == "2h"


def test_nights_whose_windows_are_open_are_refused_or_partial(spark: SparkSession, tmp_path: Path) -> None:
    workspace = impressions(tmp_path, dt.timedelta(hours=1), dt.timedelta(hours=3), dt.timedelta(hours=5))
    for session, config in zip((spark, on_demand(no_session)), roots(workspace), strict=True):
        with pytest.raises(OpenWindowsError, match=r"found 1 lists \(33.33%\)"):
            run_night(session, config, FIRST)
    ((there, here),) = on_both(spark, workspace, "checks.open_windows={warn: 0}")
    assert there.warnings == here.warnings
    counted = {row["check"]: (row["count"], row["verdict"]) for row in rows_of(workspace, "here", "checks")}
    assert counted["open_windows"] == (1, "warn")
    # The newest event is a minute after the last list, and windows are of two hours.
    assert counted["events_end"] == (119 * 60, "warn")


def test_nights_of_trec_files(spark: SparkSession, tmp_path: Path) -> None:
    workspace = with_trec(nights.workspace(tmp_path, format_=nights.PARQUET), has_one_file=False)
    on_both(spark, workspace)
    (run,) = published(workspace, "here")
    columns = "model_id string, user_id string, item_id string, score double, rank bigint"
    assert dict(run["input_columns"])["recommendations"] == columns


def test_lines_that_are_none_of_trec_are_counted_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    workspace = with_trec(nights.workspace(tmp_path, format_=nights.PARQUET, results__quarantine=True))
    file = workspace.folder / "inputs" / "runs" / "all.txt"
    wrong = ["ann Q0 e 1 als", "ann Q0 f 1 much als", "ann"]
    file.write_text(file.read_text() + "".join(f"{line}\n" for line in wrong))
    qrels = workspace.folder / "inputs" / "qrels.txt"
    qrels.write_text(qrels.read_text() + "ann 0 f 1.5\n")
    run_night(on_demand(lambda: spark), load_config(workspace.config), FIRST)
    found = {(row["input"], row["check"]): row["count"] for row in rows_of(workspace, "results", "checks")}
    assert found["recommendations", "null_keys"] == 3
    assert found["held_out", "null_keys"] == 1
    (kept,) = (workspace.folder / "results" / "_quarantine").iterdir()
    refused = {row["row"] for row in deltalake.DeltaTable(str(kept)).to_pyarrow_table().to_pylist()}
    assert refused == {*wrong, "ann 0 f 1.5"}


@pytest.mark.parametrize("format_", ["delta", "trec"])
def test_nights_of_a_log_with_a_place_for_each_model(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    workspace = with_paths(nights.workspace(tmp_path, format_=nights.PARQUET), format_)
    ((there, here),) = on_both(spark, workspace)
    assert here.n_rows["user_metrics"] == there.n_rows["user_metrics"] > 0


ODD_TEXT: Final = {
    "csv": (
        "day,model_id,user_id,item_id,score\r\n"
        '2026-01-01,als,ann,"a ""quoted"", one",0.5\r\n'
        '2026-01-01,als,bob,"two\nlines"," 1e-3 "\r\n'
        '2026-01-01,als,bob,"",2d\r\n'
        "2026-01-01,pop,, b ,0.25\r\n"
        "\r\n"
        "2026-01-01,pop,eve,\\n,\r\n"
    ),
    "json": (
        '{"user_id": "ann", "item_id": "a \\"quoted\\", one", "score": 0.5, "model_id": "als", "day": "2026-01-01"}\n'
        '{"user_id": "bob", "item_id": "two\\nlines", "score": " 1e-3 ", "model_id": "als", "day": "2026-01-01"}\n'
        '{"user_id": "bob", "item_id": "", "score": "2d", "model_id": "als", "day": "2026-01-01", "more": true}\n\n'
        '{"user_id": null, "item_id": " b ", "score": 7, "model_id": "pop", "day": "2026-01-01"}\n'
        '{"user_id": 12, "item_id": false, "model_id": "pop", "day": "2026-01-01"}\n'
    ),
}


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_nights_of_text_with_quotes_new_lines_and_blanks(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET).rewritten(format_)
    odd = workspace.folder / "inputs" / "recommendations" / f"part-1.{format_}"
    odd.write_bytes(ODD_TEXT[format_].encode())
    ((_, here),) = on_both(spark, workspace, "checks.null_keys={}", "checks.invalid_scores={}")
    assert here.n_rows["user_metrics"] > 0
    checks = [row for row in rows_of(workspace, "here", "checks") if row["input"] == "recommendations"]
    found = {row["check"]: row["count"] for row in checks}
    assert (found["null_keys"], found["invalid_scores"]) == (2 if format_ == "csv" else 1, 1)


@pytest.mark.parametrize("format_", ["csv", "json", "orc"])
def test_models_in_places_that_only_spark_reads_have_the_means_of_one_log(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    one = nights.workspace(tmp_path / "one", format_=nights.PARQUET)
    several = with_paths(nights.workspace(tmp_path / "several", format_=nights.PARQUET), format_)
    means = []
    for session, workspace in ((on_demand(no_session), one), (on_demand(lambda: spark), several)):
        run_night(session, load_config(workspace.config), FIRST)
        rows = rows_of(workspace, "results", "metrics")
        key = [name for name in schemas.METRICS.key if name != C.RUN_ID]
        means.append({str([row[name] for name in key]): row["value"] for row in rows})
    assert len(means[0]) > 0
    assert means[1] == pytest.approx(means[0], rel=0, abs=1e-12, nan_ok=True)


def test_a_model_without_rows_of_the_date_is_missed_on_both_hosts_and_afterwards(
    spark: SparkSession, tmp_path: Path
) -> None:
    workspace = with_paths(nights.workspace(tmp_path, format_=nights.PARQUET), "parquet")
    workspace.write("als", [{**one, "day": str(SECOND)} for one in rows_of_als()], "parquet")
    for config, session in zip(roots(workspace), (spark, on_demand(no_session)), strict=True):
        with pytest.raises(ChecksFailedError, match="no list of als for any of 5 judged users"):
            run_night(session, config, FIRST)
    ((there, here),) = on_both(spark, workspace, "checks.missing_users={}")
    assert {row["model_id"] for row in rows_of(workspace, "here", "metrics")} == {"als", "pop"}
    assert there.n_rows == here.n_rows
    again = rankeval("reproduce", workspace.folder / "here", "--run-id", here.run_id)
    assert again.code == 0, again.err
    scored = rankeval("score", workspace.folder / "here", "-m", "R@2", "--date", FIRST)
    assert scored.code == 0, scored.err
    of_r = [row for row in rows_of(workspace, "here", "metrics") if row["measure"] == "R" and row["slice"] == "all"]
    assert {row["model_id"]: row["n_missing"] for row in of_r}["als"] == 5
    planned = rankeval("run", workspace.config, "--date", FIRST, "--dry-run")
    assert "x 2 models x" in planned.out


def rows_of_als() -> list[dict[str, Any]]:
    own = (row for row in nights.recommendations() if row["model_id"] == "als")
    return [{name: value for name, value in row.items() if name != "model_id"} for row in own]


def test_places_whose_columns_differ_are_refused_and_a_model_column_is_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    workspace = with_paths(nights.workspace(tmp_path, format_=nights.PARQUET), "csv")
    for model in ("als", "pop"):
        own = [row for row in nights.recommendations() if row["model_id"] == model]
        workspace.write(f"{model}_named", [{**row, "model_id": "run"} for row in own], "csv")
    workspace.change(inputs__recommendations__paths={"als": "inputs/als", "pop": "inputs/pop_named"})
    run_night(spark, load_config(workspace.config), FIRST)
    assert {row["model_id"] for row in rows_of(workspace, "results", "metrics")} == {"als", "pop"}
    extra = [{**row, "slot": "top"} for row in nights.recommendations()]
    workspace.write("other", extra, "csv")
    workspace.change(inputs__recommendations__paths={"als": "inputs/als", "pop": "inputs/other"})
    with pytest.raises(InputError, match=r"recommendations.paths.pop: found columns .*slot string.*those of als"):
        run_night(spark, load_config(workspace.config), FIRST)


def test_a_night_of_events_counts_those_without_a_gain_on_both_hosts(spark: SparkSession, tmp_path: Path) -> None:
    workspace = nights.workspace(tmp_path, format_=nights.PARQUET)
    events = {3.0: "purchase", 2.0: "cart", 1.0: "view", 0.0: "skip"}
    rows = [{**row, "event": events[row["gain"]]} for row in nights.held_out()]
    rows.append({**rows[0], "item_id": "b", "event": "share"})
    workspace.write("held_out", [{name: row[name] for name in row if name != "gain"} for row in rows])
    values = {"purchase": 3, "cart": 2, "view": 1, "skip": 0}
    workspace.change(inputs__held_out__gains={"column": "event", "values": values})
    ((there, here),) = on_both(spark, workspace)
    assert here.warnings == there.warnings
    assert any("invalid_gains" in warning and "ann b" in warning for warning in here.warnings), here.warnings


@pytest.mark.parametrize(
    ("ids", "format_", "changes"),
    [
        pytest.param("bigint", "delta", {"nested": {"items": "item_id"}}, id="items alone, numbers, Delta"),
        pytest.param(
            "string",
            "parquet",
            {"nested": {"items": "recommendations.movieId", "scores": "recommendations.rating"}},
            id="structs",
        ),
    ],
)
def test_logs_with_a_row_per_list(
    spark: SparkSession, tmp_path: Path, ids: str, format_: str, changes: dict[str, Any]
) -> None:
    inputs = Awkward.make(7, ids=ids, has_lists=format_ == "parquet")
    lists = nested(inputs.recommendations)
    flat = awkward(tmp_path / "flat", replace(inputs, recommendations=flat_log(lists, changes["nested"])))
    if "." in changes["nested"]["items"]:
        lists = with_structs(lists, item="movieId")
    workspace = awkward(tmp_path / "lists", replace(inputs, recommendations=lists), format_)
    workspace.change(**{f"inputs__recommendations__{name}": value for name, value in changes.items()})
    on_both(spark, workspace)
    run_night(on_demand(no_session), load_config(flat.config, ("results.root=here",)), FIRST)
    for name in (*OF_USERS, "metrics", "checks"):
        assert rows_of(workspace, "here", name) == rows_of(flat, "here", name), name
    null_keys = [row for row in rows_of(workspace, "here", "checks") if row["check"] == "null_keys"]
    assert {row["input"]: row["count"] for row in null_keys}["recommendations"] == 3


def test_lists_without_a_model_are_counted_where_models_are_named(spark: SparkSession, tmp_path: Path) -> None:
    models, users = ["als", "als", None, "other"], ["ann", "bob", "eve", "kim"]
    items, scores = [["a"], ["b", "a"], ["a", "c"], ["a"]], [[1.0], [2.0, 1.0], [2.0, 1.0], [1.0]]
    lists = pa.table({"model_id": models, "user_id": users, "item_id": items, "score": scores})
    workspace = awkward(tmp_path, replace(Awkward.make(7), recommendations=lists))
    nested_log = {"items": "item_id", "scores": "score"}
    workspace.change(inputs__recommendations__nested=nested_log, models=["als"], checks__unmatched_items={})
    on_both(spark, workspace)
    of_log = [row for row in rows_of(workspace, "on_spark", "checks") if row["input"] == "recommendations"]
    counts = {row["check"]: row["count"] for row in of_log}
    assert (counts["rows"], counts["null_keys"]) == (5, 2)


def flat_log(lists: pa.Table, names: dict[str, str]) -> pa.Table:
    """Make the flat log with the same items as a nested one: without scores where none are named."""
    log = flat_of(lists)
    return log if "scores" in names else log.drop_columns(["score"])
