"""From a file to a valid config, or to one message with all of its faults."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import get_args

import pytest

from rankeval_spark.config import EvaluationConfig, HeldOutInput, Policies, load_config, parse_date, validate_model
from rankeval_spark.config.policies import Ties
from rankeval_spark.errors import ConfigError, Fault
from rankeval_spark.measures import registry

DATE = dt.date(2026, 1, 2)


def faults(path: Path, *overrides: str) -> list[str]:
    """Load a config that is not valid and return its faults."""
    with pytest.raises(ConfigError) as raised:
        load_config(path, overrides)
    assert raised.value.exit_code == 2
    return [str(fault).replace(str(path), "F") for fault in raised.value.faults]


def fault_of(path: Path, *overrides: str) -> Fault:
    """Load a config with exactly one fault and return it."""
    with pytest.raises(ConfigError) as raised:
        load_config(path, overrides)
    (fault,) = raised.value.faults
    return fault


def append(path: Path, text: str) -> Path:
    """Add lines to a config."""
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    return path


def test_valid_file_becomes_a_config(config_file: Path) -> None:
    config = load_config(config_file)
    assert config.evaluation == "nightly"
    assert config.slices == (("age_band",), ("gender", "age_band"))
    assert config.segment_names() == ("gender", "age_band")
    assert config.policies == Policies()
    assert config.checks.threshold("null_keys").error == 1 / 2


def test_relative_paths_start_from_the_folder_of_the_file(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    config = load_config(config_file)
    folder = config_file.parent
    assert config.inputs.recommendations.location(DATE) == str(folder / "logs" / "2026-01-02")
    assert config.inputs.held_out.location(DATE) == "/data/held_out.csv"
    assert config.results.location == str(folder.parent / "results")
    assert config.inputs.segments is not None
    assert config.inputs.segments.location(DATE) == "main.users"


def test_measures_take_the_cutoffs_they_can_have(config_file: Path) -> None:
    asked = load_config(config_file, ["measures=[nDCG, P, AP@7, Precision@10]"]).measure_set
    assert [str(measure) for measure in asked.measures] == ["nDCG@5", "nDCG@10", "nDCG", "P@5", "P@10", "AP@7"]


def test_measures_without_cutoffs_see_the_whole_list(config_file: Path) -> None:
    asked = load_config(config_file, ["measures=[nDCG, P@5]", "cutoffs=[]"]).measure_set
    assert [str(measure) for measure in asked.measures] == ["nDCG", "P@5"]


def test_measure_that_gets_no_cutoff_is_a_fault(config_file: Path) -> None:
    assert "no cutoff in 'P'" in fault_of(config_file, "measures=[P]", "cutoffs=[all]").found


def test_all_faults_are_reported_at_once_with_their_lines(config_file: Path) -> None:
    path = append(
        config_file, "policies: {ties: item_des}\nintervals: {confidence: 95}\nmodles: [a]\nmodels: [a, b, a]\n"
    )
    text = path.read_text(encoding="utf-8").replace("nDCG", "nDGC").replace("[5, 10, all]", "[0, 10001, true]")
    path.write_text(text, encoding="utf-8")
    assert faults(path) == [
        "F, modles (line 12): found unknown key 'modles'; expected one of "
        + ", ".join(EvaluationConfig.model_fields)
        + "; did you mean 'models'?",
        "F, models[2] (line 13): found model 'a' a second time; expected each once; remove one of them",
        "F, cutoffs[0] (line 7): found 0; expected a whole number from 1 to 10000 or 'all'; "
        "write all for the whole list",
        "F, cutoffs[1] (line 7): found 10001; expected a whole number from 1 to 10000 or 'all'",
        "F, cutoffs[2] (line 7): found True; expected a whole number from 1 to 10000 or 'all'",
        "F, measures[0] (line 6): found unknown measure 'nDGC'; "
        f"expected one of the {len(registry.names())} that 'rankeval measures' lists; did you mean 'nDCG'?",
        f"F, policies.ties (line 10): found 'item_des'; expected one of {', '.join(get_args(Ties))}; "
        "did you mean 'item_desc'?",
        "F, intervals.confidence (line 11): found 95; expected less than 1; did you mean 0.95?",
    ]


def test_a_key_that_other_tools_have_is_translated(config_file: Path) -> None:
    append(config_file, "gates: [{measure: nDCG@10, min: 0.1}]\n")
    assert any("unknown key 'min'" in fault and "did you mean 'at_least'?" in fault for fault in faults(config_file))


def test_misspelt_key_comes_before_the_faults_that_follow_from_it(config_file: Path) -> None:
    text = config_file.read_text(encoding="utf-8").replace("measures:", "measurs:")
    config_file.write_text(text + "comparisons: {basline: pop}\n", encoding="utf-8")
    found = [fault.partition("found ")[2].partition(";")[0] for fault in faults(config_file)]
    assert sorted(found[:2]) == ["unknown key 'basline'", "unknown key 'measurs'"]
    assert "no 'measures'" in found[2:]


@pytest.mark.parametrize(
    ("key", "fix"),
    [("measure", "measures"), ("slice", "slices"), ("model", "models"), ("margin", "comparisons.margin")],
)
def test_a_key_that_lacks_a_letter_is_not_looked_for_in_sections(config_file: Path, key: str, fix: str) -> None:
    append(config_file, f"{key}: 1\n")
    assert any(f"unknown key {key!r}" in fault and f"did you mean {fix!r}?" in fault for fault in faults(config_file))


@pytest.mark.parametrize(
    ("override", "found", "fix"),
    [
        ("inputs.recommendations.path=s3n://bucket/logs", "file system 's3n'", "did you mean 's3'?"),
        ("inputs.recommendations.path='logs/{dat}'", "placeholder {dat}", ""),
        ("inputs.recommendations.path='logs/{date - 1}'", "placeholder {date - 1}", "whole days without blanks"),
        ("inputs.recommendations.path='logs/{date+}'", "placeholder {date+}", "such as {date-7}"),
        ("inputs.recommendations.path='logs/{date-1/x'", "half a placeholder, {date", "write both braces"),
        ("inputs.recommendations.path='logs/{date/x'", "half a placeholder, {date", "write both braces"),
        ("inputs.held_out.filters=[{column: d, op: '=', value: 'date}'}]", "half a placeholder, date}", ""),
        ("inputs.recommendations.columns.userid=u", "unknown key 'userid'", "did you mean 'user_id'?"),
        ("inputs.held_out.delimiter=;", "unknown key 'delimiter'", "write options: {sep: ...}"),
        ("inputs.recommendations.types.model_id=string", "unknown key 'model_id'", ""),
        ("inputs.recommendations.types.user_id=int", "'int'", ""),
        ("inputs.recommendations.table=a.b", "both path and table", ""),
        ("inputs.recommendations.path=", "neither path nor table", ""),
        ("inputs.recommendations.format=table", "a path with format table", "use table:"),
        ("inputs.segments={format: csv, table: users}", "a catalog table of format csv", "write format: table, or"),
        ("inputs.recommendations.options.sep=;", "reader options with format delta", "remove them"),
        ("inputs.recommendations.version=-1", "-1", ""),
        ("inputs.recommendations.version=1.5", "1.5", ""),
        ("inputs.recommendations.timestamp=yesterday", "'yesterday'", ""),
        ("inputs.held_out.version=3", "version with format csv", "remove it"),
        ("inputs.held_out.late_data_grace=6h", "'6h' with attribution 'none'", "set policies.attribution"),
        ("inputs.held_out.options.seperator=x", "unknown key 'seperator'", ""),
        ("inputs.held_out.options.sep=1", "1", "put it in quotes"),
        ("inputs.segments.table=text./etc/hostname", "'text./etc/hostname'", ""),
        ("inputs.segments.table=parquet.users", "'parquet.users'", "write format: parquet and path:"),
        ("inputs.segments.table=a.b.c.d", "'a.b.c.d'", ""),
        ("inputs.held_out.filters=[{column: d, op: '==', value: 1}]", "'=='", "did you mean '='?"),
        ("inputs.held_out.filters=[{column: d, op: in, value: 1}]", "1", ""),
        ("inputs.held_out.filters=[{column: d, op: '=', value: [1]}]", "(1,)", "use op: in for a list"),
        ("inputs.held_out.filters=[{column: d, op: in, value: []}]", "an empty list", ""),
        ("inputs.held_out.filters=[{column: d, op: '=', value: {a: 1}}]", "{'a': 1}", ""),
        ("inputs.held_out.filters=[{column: d, op: '=', value: '{day}'}]", "placeholder {day}", ""),
        ("inputs.held_out.filters=[{column: d, op: lst, value: 7d}]", "'lst'", "did you mean 'last'?"),
        ("inputs.held_out.filters=[{column: d, op: last, value: 7}]", "7", "write 7d"),
        ("inputs.held_out.filters=[{column: d, op: last, value: 7 days}]", "'7 days'", "write 7d"),
        ("inputs.held_out.filters=[{column: d, op: last, value: 07d}]", "'07d'", "write 7d"),
        ("inputs.held_out.filters=[{column: d, op: last, value: 1w}]", "'1w'", "write 7d"),
        ("inputs.held_out.filters=[{column: d, op: next, value: 48h}]", "'48h'", "write 2d"),
        ("inputs.held_out.filters=[{column: d, op: next, value: 30m}]", "'30m'", "write the number of days"),
        ("inputs.held_out.filters=[{column: d, op: next, value: 0d}]", "'0d'", "write 1d"),
        ("inputs.held_out.filters=[{column: d, op: next, value: -7d}]", "'-7d'", "write 7d"),
        ("inputs.held_out.filters=[{column: d, op: next, value: 3661d}]", "'3661d'", "write 3660d"),
        ("inputs.held_out.filters=[{column: d, op: next, value: '{date+7}'}]", "'{date+7}'", "write 7d"),
        ("inputs.held_out.filters=[{column: d, op: next, value: [7d]}]", "('7d',)", "write 7d"),
        ("inputs.held_out.filters=[{column: d, op: next, value: true}]", "True", "write the number of days"),
        ("evaluation=a/b", "'a/b'", ""),
        ("evaluation=..", "'..'", ""),
        ("models=[7]", "7", "put it in quotes"),
        ("models=[]", "an empty list", ""),
        ("measures=nDCG", "'nDCG'", "write [nDCG]"),
        ("measures=[]", "an empty list", ""),
        ("slices=[all]", "'all'", ""),
        ("slices=[a*b]", "'a*b'", ""),
        ("slices=[[a, a]]", "'a'", ""),
        ("slices=[[a, b], [b, a]]", "slice 'a*b' a second time", "remove one of them"),
        ("inputs.segments=", "slices, but no inputs.segments", "add inputs.segments"),
        ("slicing.min_slice_size=0", "0", ""),
        ("intervals.confidence=.nan", "nan", ""),
        ("intervals=bootstrap", "'bootstrap'", ""),
        ("intervals.method=bootstrp", "'bootstrp'", "did you mean 'bootstrap'?"),
        ("intervals.replicates=99", "99", ""),
        ("intervals.replicates=100001", "100001", ""),
        ("intervals.replicates=1e3", "1000.0", ""),
        ("intervals.seed=-1", "-1", ""),
        (f"intervals.seed={2**63}", f"{2**63}", ""),
        ("intervals.level=0.9", "unknown key 'level'", ""),
        ("checks.null_keys={warn: 0.5, error: 0.1}", "warn 0.5 above error 0.1", "exchange the two"),
        ("checks.nullkeys={}", "unknown key 'nullkeys'", "did you mean 'null_keys'?"),
        ("checks.null_gains={}", "unknown key 'null_gains'", "did you mean 'invalid_gains'?"),
        ("checks.null_values={}", "unknown key 'null_values'", "did you mean 'invalid_values'?"),
        ("checks.ties.warn=2", "2", ""),
        ("results.lists=yes", "'yes'", ""),
        ("results.root=results/{date}", "'results/{date}'", "remove the placeholder"),
        ("results.on_busy=waits", "'waits'", "did you mean 'wait'?"),
        ("spark={settings: {driver.memory: 2g}}", "setting 'driver.memory'", "did you mean 'spark.driver.memory'?"),
    ],
)
def test_each_fault_says_what_was_found_and_the_nearest_fix(
    config_file: Path, override: str, found: str, fix: str
) -> None:
    fault = fault_of(config_file, override)
    assert fault.found == found
    assert fault.expected
    assert fault.where.startswith((f"--set {override}", f"{config_file}, "))
    assert fix in fault.fix


def test_missing_key_is_named(config_file: Path) -> None:
    path = append(config_file, "")
    path.write_text(path.read_text(encoding="utf-8").replace("results:", "spark:"), encoding="utf-8")
    assert "F: found no 'results'; expected this key, it is required" in faults(path)


def test_key_without_a_value_is_as_good_as_left_out(config_file: Path) -> None:
    config = load_config(append(config_file, "models:\npolicies:\nchecks: {ties: , null_keys: {}}\n"))
    assert config.models is None
    assert config.policies == Policies()
    assert (config.checks.ties.warn, config.checks.null_keys.error) == (1 / 10, None)  # {} says to count only


def test_overrides_reach_lists_new_keys_and_settings(config_file: Path) -> None:
    overrides = ["cutoffs[0]=3", "cutoffs.3=20", "models[0]=als", "spark.settings.spark.a.b=8", "policies.ties=rank"]
    config = load_config(config_file, overrides)
    assert config.cutoffs == (3, 10, "all", 20)
    assert config.models == ("als",)
    assert config.spark.settings == {"spark.a.b": "8"}
    assert config.policies.ties == "rank"


@pytest.mark.parametrize("override", ["cutoffs[7]=3", "evaluation.name=a", "measures", "=3", "a..b=1", "cutoffs=[1"])
def test_override_that_cannot_be_applied_is_a_fault(config_file: Path, override: str) -> None:
    assert fault_of(config_file, override).where.startswith(f"--set {override}")


def test_unknown_key_of_an_override_is_found_there(config_file: Path) -> None:
    fault = fault_of(config_file, "polices.ties=rank")
    assert (fault.where, fault.fix) == ("--set polices.ties=rank", "did you mean 'policies'?")


def test_the_refusal_of_an_override_that_is_no_yaml_says_how_to_quote_it(config_file: Path) -> None:
    fault = fault_of(config_file, "inputs.segments.options.sep=,")
    assert fault.where == "--set inputs.segments.options.sep=,"
    assert "quote text with special characters twice" in fault.fix


def test_missing_file_suggests_the_nearest_one(config_file: Path) -> None:
    fault = fault_of(config_file.with_name("nihgtly.yaml"))
    assert (fault.found, fault.fix) == ("no such file", "did you mean 'nightly.yaml'?")


def test_folder_instead_of_a_file_is_a_fault(config_file: Path) -> None:
    fault = fault_of(config_file.parent)
    assert (fault.found, fault.fix) == ("a folder", "the folder has nightly.yaml")


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"- a\n", b"text", b"a: [", b"\x00", b"a: 1\n--- \nb: 2\n", b"\tk: 1"]
)
def test_file_that_is_no_config_is_one_readable_fault(config_file: Path, content: bytes) -> None:
    config_file.write_bytes(content)
    assert fault_of(config_file).where.startswith(str(config_file))


def test_empty_file_lacks_every_required_key(config_file: Path) -> None:
    config_file.write_text("", encoding="utf-8")
    assert len(faults(config_file)) == 4


def test_models_can_be_validated_on_their_own() -> None:
    assert validate_model(Policies, {"ties": "rank"}).ties == "rank"
    with pytest.raises(ConfigError, match=r"evaluate\(policies=\)\.ties: found 'item_dsc'.*did you mean 'item_desc'"):
        validate_model(Policies, {"ties": "item_dsc"}, locate=lambda place: f"evaluate(policies=).{place[0]}")


def test_days_before_and_after_the_date_are_filled_in_paths_filters_and_times() -> None:
    given = {
        "format": "delta",
        "path": "logs/{date-1}/{date}",
        "timestamp": "{date+1} 06:00:00",
        "filters": [{"column": "day", "op": "in", "value": ["{date-6}", "{date+7}"]}],
    }
    config = validate_model(HeldOutInput, given)
    day = dt.date(2026, 3, 1)
    assert config.location(day).endswith("logs/2026-02-28/2026-03-01")
    assert config.moment(day) == dt.datetime(2026, 3, 2, 6, tzinfo=dt.UTC)
    assert config.filters[0].values(day) == ("2026-02-23", "2026-03-08")


@pytest.mark.parametrize(
    ("op", "value", "days"),
    [
        ("last", "1d", ("2026-03-01", "2026-03-02")),
        ("last", "7d", ("2026-02-23", "2026-03-02")),
        ("last", "3660d", ("2016-02-23", "2026-03-02")),
        ("next", "1d", ("2026-03-02", "2026-03-03")),
        ("next", "7d", ("2026-03-02", "2026-03-09")),
        ("next", "3660d", ("2026-03-02", "2036-03-09")),
    ],
)
def test_a_window_of_days_is_two_plain_filters(op: str, value: str, days: tuple[str, str]) -> None:
    window = {"column": "day", "op": op, "value": value}
    other = {"column": "placement", "op": "=", "value": "home"}
    config = validate_model(HeldOutInput, {"format": "delta", "path": "logs", "filters": [other, window, other]})
    first, last = config.filters[1:3]
    assert (first.op, last.op, first.column, last.column) == (">=", "<", "day", "day")
    assert (*first.values(dt.date(2026, 3, 1)), *last.values(dt.date(2026, 3, 1))) == days
    assert [each.place for each in config.filters] == [0, 1, 1, 2]
    written = {"format": "delta", "path": "logs", "filters": config.model_dump(mode="json")["filters"]}
    assert validate_model(HeldOutInput, written).model_dump() == config.model_dump()


def test_dates_are_read_strictly() -> None:
    assert parse_date("2026-01-02") == DATE
    for text in ("20260102", "2026-1-2", "2026-02-30", "2026-W01-1", "today", "", "2026-01-02T00:00", "٢٠٢٦-01-02"):
        with pytest.raises(ConfigError, match="--date: found"):
            parse_date(text)


@pytest.mark.parametrize("text", ["20260102", "2026-1-2", "2026/01/02"])
def test_a_date_whose_year_comes_first_is_written_as_it_should_be(text: str) -> None:
    with pytest.raises(ConfigError, match="did you mean 2026-01-02"):
        parse_date(text)
    with pytest.raises(ConfigError, match="such as 2026-01-31"):  # of January or February
        parse_date("01.02.2026")


@pytest.mark.parametrize("text", ["0001-01-01", "1899-12-31", "2200-01-01", "9999-12-31"])
def test_date_far_from_all_others_is_refused(text: str) -> None:
    """The nights before it, and the day after it, would be no dates."""
    with pytest.raises(ConfigError, match=f"--date: found '{text}'; expected a date from 1900-01-01 to 2199-12-31"):
        parse_date(text)


def test_what_cannot_be_read_to_its_end_is_no_config(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    given = {tmp_path / "pipe.yaml": "a pipe", Path("/dev/zero"): "a device", Path(os.devnull): "a device"}
    for path, found in given.items():
        with pytest.raises(ConfigError, match=f"{path}: found {found}"):
            load_config(path)


def test_measures_whose_inputs_are_missing_are_named_at_once(config_file: Path) -> None:
    found = faults(config_file, "measures=[MIUF, SRecall, nDCG]", "cutoffs=[5]")
    assert [fault.partition("nDCG], ")[2] for fault in found] == [
        "measures: found MIUF, SRecall, but no inputs.train; expected the input; add inputs.train",
        "measures: found SRecall, but no inputs.items; expected the input; add inputs.items",
    ]
    inputs = ("inputs.train={format: delta, path: t}", "inputs.items={format: delta, path: i}")
    config = load_config(config_file, ["measures=[MIUF, SRecall, nDCG]", *inputs])
    assert config.measure_set.requiring() == {"train": ["MIUF", "SRecall"], "items.categories": ["SRecall"]}


def test_model_that_lists_are_compared_with_must_be_one_of_those_named(config_file: Path) -> None:
    measures = "measures=[\"Overlap(model='populer')@5\",\"RBO(model='als')\",P@5]"
    fault = fault_of(append(config_file, "models: [als, popular]\n"), measures)
    assert (fault.found, fault.fix) == (
        "model 'populer' in Overlap(model='populer')",
        "did you mean 'popular'?",
    )
    assert fault.expected == "one of the models: als, popular"
    assert "measures" in fault.where
    assert load_config(config_file, [measures, "models="]).models is None
    rule = 'gates=[{"measure":"RBO(model=\'als\')@5","models":["als"],"at_least":0.5}]'
    told = fault_of(config_file, measures.replace("populer", "popular"), rule)
    assert told.found == "'als', with whose lists RBO(model='als')@5 compares"


@pytest.mark.parametrize("rule", ["least_gain: 0.1", "margin: 0.1", "alpha: 0.05, against: previous"])
def test_rule_that_needs_a_better_side_is_refused_where_there_is_none(config_file: Path, rule: str) -> None:
    rbo = "RBO(model='popular')@5"
    asked = f'measures=["{rbo}"]', "comparisons={baseline: popular}"
    fault = fault_of(config_file, *asked, f'gates=[{{measure: "{rbo}", {rule}}}]')
    name = rule.partition(":")[0]
    assert fault.found == f"{name} with {rbo}, where neither the higher nor the lower value is better"
    assert (fault.expected, fault.fix) == ("at_least or at_most", "set bounds of the value")
    assert fault.where.endswith("gates[0]")
    assert load_config(config_file, [*asked, f'gates=[{{measure: "{rbo}", at_most: 0.9}}]']).gates[0].at_most == 0.9


def test_bound_of_the_worst_group_is_refused_where_no_side_is_better(config_file: Path) -> None:
    rbo = "RBO(model='popular')"
    asked = f'measures=["{rbo}"]', f'gates=[{{measure: "WorstGroup({rbo})", slice: age_band, at_least: 0.5}}]'
    fault = fault_of(config_file, *asked)
    assert fault.found == f"WorstGroup({rbo}), where neither the higher nor the lower value is better"
    assert fault.expected == "GroupGap, GroupRatio or UserMAD"
    assert fault.fix == "set at_most for GroupGap(RBO(model='popular',p=0.9))"


def test_keys_of_paths_are_the_models_of_comparisons_and_gates(config_file: Path) -> None:
    places = "inputs.recommendations={format: delta, paths: {als: a, popular: p}}"
    fault = fault_of(config_file, places, "comparisons={baseline: populer}")
    assert (fault.found, fault.expected) == ("'populer'", "one of the models: als, popular")
    rule = fault_of(config_file, places, "gates=[{measure: nDCG@10, models: [asl], at_least: 0.5}]")
    assert (rule.found, rule.fix) == ("'asl'", "did you mean 'als'?")
    measure = fault_of(config_file, places, "measures=[\"Overlap(model='populer')@10\"]")
    assert (measure.found, measure.fix) == ("model 'populer' in Overlap(model='populer')", "did you mean 'popular'?")


def test_parts_that_do_not_fit_are_named_at_once(config_file: Path) -> None:
    """Slices without segments, measures without their inputs or a catalogue, and ties that a measure does not take."""
    overrides = [
        "inputs.segments=",
        "slices=[country]",
        "measures=[MIUF,CatalogCoverage]",
        "cutoffs=[5]",
        "policies.ties=expected",
    ]
    with pytest.raises(ConfigError) as raised:
        load_config(config_file, overrides)
    for part in (
        "slices, but no inputs.segments",
        "MIUF, but no inputs.train",
        "CatalogCoverage, but no catalogue",
        "ties",
    ):
        assert part in str(raised.value)
    assert len(raised.value.faults) >= 4


def test_a_fault_that_two_keys_make_is_found_where_it_is_written(config_file: Path) -> None:
    attributed = "policies: {attribution: all, attribution_window: 7d}\n"
    override = "inputs.held_out.columns.list_id=shown"
    assert fault_of(append(config_file, attributed), override).where.startswith(f"--set {override}")
    text = config_file.read_text(encoding="utf-8").replace("options: {", "columns: {list_id: shown}, options: {")
    config_file.write_text(text, encoding="utf-8")
    assert fault_of(config_file).where.endswith(", inputs.held_out.columns.list_id (line 4)")


def test_a_name_with_dots_is_one_key(config_file: Path) -> None:
    append(config_file, "slicing:\n  bands:\n    age_band: {edges: [18]}\n    age.of/all: {edges: [18]}\n")
    fault = fault_of(config_file)
    assert fault.where.endswith(", slicing.bands.age.of/all (line 13)")
    assert fault.found == "bands of 'age.of/all', which no slice names"


def test_parts_that_do_not_fit_hide_no_other_part(config_file: Path) -> None:
    """Measures that the ties do not allow need their inputs too, and rules are about models that paths name."""
    places = "inputs.recommendations={format: delta, paths: {als: a, popular: p}}"
    rule = "gates=[{measure: MIUF@5, models: [asl], at_least: 0.5}]"
    found = faults(config_file, places, "measures=[MIUF]", "cutoffs=[5]", "policies.ties=expected", rule)
    assert [fault.partition(": found ")[2].partition(";")[0] for fault in found] == [
        "MIUF with ties 'expected'",
        "MIUF, but no inputs.train",
        "'asl'",
    ]


def test_all_faults_of_comparisons_are_reported_at_once(config_file: Path) -> None:
    found = faults(
        append(
            config_file,
            "models: [als, popular]\n"
            "comparisons: {baseline: popula, replicates: 99, seed: -1, tests: [t, bootstrap, bootstrap, tukey]}\n",
        )
    )
    assert len(found) == 5
    text = " ".join(found)
    for part in (
        *("replicates", "seed", "test 'bootstrap' a second time", "tukey, but pairs: baseline"),
        "comparisons.baseline (line 11): found 'popula'; expected one of the models: als, popular; did you mean",
    ):
        assert part in text, found


def test_parts_that_do_not_fit_are_reported_with_values_that_are_wrong(config_file: Path) -> None:
    found = faults(
        append(
            config_file,
            "models: [als, popular]\n"
            "intervals: {confidence: 95, method: bootstrap, replicates: 99}\n"
            "comparisons: {baseline: nobody}\n"
            "gates: [{measure: R@5, at_least: 0}, {measure: nDCG@5, alpha: 2}, {measure: P@5, margin: 1, slice: x}]\n",
        ),
        "inputs.segments=",
        "results.list=true",
    )
    places = [fault.partition(", ")[2].partition(": found ")[0].partition(" (")[0] for fault in found]
    assert places == [
        *("results.list", "slices", "intervals.confidence", "intervals.replicates", "comparisons.baseline"),
        *("gates[0].measure", "gates[1].alpha", "gates[2].slice"),
    ]


@pytest.mark.parametrize(
    ("rule", "place", "message"),
    [
        ("measure: GroupGap(nDCG)@5, slice: age_band", "", ""),
        ("measure: ItemMAD(nDCG)@5", "", ""),
        (
            "measure: GroupGap(nDCG)@5",
            ".slice",
            "found no slice for GroupGap(nDCG)@5; expected one of: age_band, gender*age",
        ),
        ("measure: GroupGap(nDGC)@5, slice: age_band", ".measure", "did you mean 'nDCG'?"),
        ("measure: GroupGap(nDCG)@6, slice: age_band", ".measure", "did you mean 'GroupGap(nDCG)@5'?"),
        ("measure: ItemMAD(P)@5", ".measure", "computes for two groups of items or more"),
    ],
)
def test_a_rule_about_groups_is_about_a_slicing_and_what_is_computed(
    config_file: Path, rule: str, place: str, message: str
) -> None:
    path = append(
        config_file,
        f"slicing: {{item_slices: [drama, comedy]}}\ngates: [{{{rule}, at_most: 0.1}}]\n",
    )
    measured = ("measures=[nDCG, 'P(group=\"drama\")']", "inputs.items={format: csv, path: items.csv}")
    if not place:
        assert load_config(path, measured).gates[0].at_most == 1 / 10
        return
    fault = fault_of(path, *measured)
    assert fault.where.partition(" (")[0].endswith(f"gates[0]{place}")
    assert message in str(fault)


@pytest.mark.parametrize(
    "wrong", ["measures=[nDCG, Succes]", "cutoffs=[0]", "preset=trec-eval", "slicing.item_slices=[a, a]"]
)
def test_what_depends_on_a_wrong_value_is_not_reported_as_a_fault_too(config_file: Path, wrong: str) -> None:
    """Whether a rule's measure is computed cannot be known where it is not known what is."""
    path = append(config_file, "gates: [{measure: Success@7, at_least: 0.1}]\n")
    assert len(faults(path, wrong)) == 1
    assert "gates[0].measure" in fault_of(path).where


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{pairs: all, tests: [t, randomisation]}", "did you mean 'randomization'"),
        ("{pairs: all, tests: [bootstrap]}", "a list with t"),
        ("{pairs: all, tests: []}", "at least one element"),
        ("{tests: [t, sign]}", "the model to compare with"),
    ],
)
def test_a_test_that_cannot_be_made_is_a_clear_error(config_file: Path, options: str, message: str) -> None:
    assert message in str(fault_of(append(config_file, f"comparisons: {options}\n")))
