"""``rankeval show``: filters, and the three ways to write rows; all of it without Spark."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.config import load_config
from tests.support import nights
from tests.support.cli import json_of, rankeval
from tests.support.nights import FIRST, SECOND, WITHOUT_ROWS
from tests.support.published import Root, frames_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.nights import Workspace


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish two dates with rows, one without, and another evaluation."""
    made = nights.workspace(
        tmp_path_factory.mktemp("show") / "workspace",
        comparisons={"baseline": "pop", "tests": ["t", "sign"]},
        gates=[{"measure": "RR@2", "at_least": 0.5}],
    )
    root = Root(made.root, load_config(made.config))
    other = load_config(made.config, ["evaluation=other", "measures=[RR]"])
    root.publish(FIRST, frames_of(FIRST), run_id="other", config=other)
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"nightly-{day}")
    root.publish_nothing(WITHOUT_ROWS, run_id="nothing", reason="no rows")
    return made


def shown(workspace: Workspace, *options: object) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json_of("show", workspace.root, *options)
    return rows


def test_newest_date_with_rows_is_shown_by_default(published: Workspace) -> None:
    rows = shown(published, "--evaluation", "nightly")

    assert {row["evaluation_date"] for row in rows} == {"2026-01-02"}
    assert {row["slice"] for row in rows} == {"all"}
    assert len(rows) == 2 * 3 * 2  # models x measures x cutoffs


def test_filters_narrow_the_rows_down_to_one(published: Workspace) -> None:
    (row,) = shown(
        published,
        *("--date", FIRST, "--evaluation", "nightly", "--model", "pop", "--measure", "MRR", "--k", 2),
    )

    assert row["measure"] == "RR"  # MRR is its other name
    assert row["value"] == pytest.approx((1 / 2 + 1 + 1 + 1) / 4, rel=0, abs=1e-12)
    assert row["n_users"] == 4
    assert row["ci_level"] == 0.95


def test_slices_are_shown_where_asked_for(published: Workspace) -> None:
    one = ("--date", FIRST, "--evaluation", "nightly", "--model", "als", "--measure", "RR", "--k", 1)

    assert [row["slice_value"] for row in shown(published, *one, "--slice", "country")] == ["(unknown)", "AT", "DE"]
    assert [row["slice"] for row in shown(published, *one, "--slice", "any")] == ["all", *["country"] * 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--slice", "contry"), "--slice: found contry; expected one of: all, country; did you mean 'country'?"),
        (("--model", "popp"), "--model: found popp; expected one of: als, pop; did you mean 'pop'?"),
        (("--measure", "RR", "--k", 3), "--k: found 3; expected one of: 1, 2"),
        (("--measure", "AP"), "--measure: found AP; expected one of: "),
        (("--measure", "RR@3"), "--measure: found RR@3; expected RR at one of: 1, 2"),
        (("--comparisons", "--model", "pop"), "--model: found pop; expected one of: als"),
    ],
    ids=str,
)
def test_what_is_not_published_is_named_with_the_nearest_that_is(
    published: Workspace, options: tuple[object, ...], said: str
) -> None:
    done = rankeval("show", published.root, "--evaluation", "nightly", *options)

    assert (done.code, done.out) == (2, "")
    assert done.message.startswith("the command is not valid: - --")
    assert said in done.message


@pytest.mark.parametrize("command", ["show", "runs"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--date", "2025-12-31"),
            "of 2025-12-31; expected one of the dates: 2026-01-01, 2026-01-02, 2026-01-03; the nearest is 2026-01-01",
        ),
        (("--evaluation", "nighly"), "one of the evaluations: nightly, other; did you mean 'nightly'?"),
        (("--evaluation", "other", "--date", SECOND), "of 2026-01-02; expected one of the dates: 2026-01-01; the"),
    ],
    ids=str,
)
def test_a_night_that_is_not_published_is_missing(
    published: Workspace, command: str, options: tuple[object, ...], said: str
) -> None:
    """As for the commands that read one night, it is code 4."""
    done = rankeval(command, published.root, *options, "--json")

    assert (done.code, done.out) == (4, "")
    assert said in done.message


def test_an_empty_night_says_why_it_has_no_rows(published: Workspace) -> None:
    done = rankeval("show", published.root, "--date", WITHOUT_ROWS)

    assert (done.code, done.out, done.err) == (0, "", "note: nightly, 2026-01-03: nothing was measured, no rows\n")


def test_a_date_without_comparisons_names_the_nearest_that_has_some(published: Workspace, tmp_path: Path) -> None:
    own = published.copy(tmp_path)
    own.change(comparisons=None, gates=[])
    later = WITHOUT_ROWS.replace(day=5)
    Root(own.root, load_config(own.config)).publish(later, frames_of(FIRST), run_id="without")

    done = rankeval("show", own.root, "--comparisons", "--date", later)

    assert done.err.endswith(
        "note: --date: found 2026-01-05; expected one of: 2026-01-01, 2026-01-02; the nearest is 2026-01-02\n"
    )


def test_the_cutoff_of_a_measure_chooses_rows(published: Workspace) -> None:
    night = ("--date", FIRST, "--evaluation", "nightly", "--model", "pop")

    def of(*options: object) -> set[tuple[str, int]]:
        return {(row["measure"], row["k"]) for row in shown(published, *night, *options)}

    assert of("--measure", "nDCG@2", "--measure", "RR") == {("nDCG", 2), ("RR", 1), ("RR", 2)}
    assert of("--measure", "nDCG@1", "--measure", "nDCG") == {("nDCG", 1), ("nDCG", 2)}
    assert of("--measure", "nDCG@1", "--measure", "nDCG@2", "--k", 2) == {("nDCG", 2)}
    for name in ("GroupGap(nDCG@2)", "groupgap(nDCG)@2"):
        assert of("--measure", name, "--slice", "country") == {("GroupGap(nDCG)", 2)}
        assert {row["k"] for row in shown(published, *night, "--gaps", "--measure", name)} == {2}
    assert {row["k"] for row in shown(published, "--comparisons", "--measure", "RR@2")} == {2}
    against = json.loads(
        rankeval("compare", published.root, "--against", "pop", *night[:4], "--measure", "RR@2", "--json").out
    )
    assert {(row["measure"], row["k"]) for row in against} == {("RR", 2)}


def test_a_value_that_no_row_has_is_named_next_to_those_that_are_shown(published: Workspace) -> None:
    night = ("--date", FIRST, "--evaluation", "nightly", "--k", 1)
    done = rankeval("show", published.root, *night, "--model", "als", "--model", "alx", "--measure", "RR", "-m", "RR@7")

    assert done.err == "note: --model: found alx; expected one of: als, pop; did you mean 'als'?\n"
    done = rankeval("show", published.root, *night, "--measure", "RR@1", "--measure", "nDCG@7")
    assert done.err == "note: --measure: found nDCG@7; expected nDCG at one of: 1, 2\n"
    assert "RR@1" in done.out


def test_names_that_are_published_and_never_in_one_row_are_no_fault(published: Workspace) -> None:
    """The statistics of groups have rows of slices, none of all users."""
    options = ("--evaluation", "nightly", "--measure", "GroupGap(RR)", "--slice", "all")
    done = rankeval("show", published.root, *options)

    assert (done.code, done.out) == (0, "")
    assert done.err == f"note: no row matches; without filters: rankeval show {published.root}\n"


def test_missing_numbers_are_null_in_json_and_empty_in_csv(published: Workspace) -> None:
    options = ("--date", FIRST, "--evaluation", "nightly", "--slice", "country", "--measure", "RR", "--k", "1")

    german = [row for row in shown(published, *options) if row["slice_value"] == "DE"]
    as_csv = rankeval("show", published.root, *options, "--csv")

    assert {row["ci_low"] for row in german} == {None}  # one user has no spread
    rows = list(csv.DictReader(io.StringIO(as_csv.out)))
    assert {row["ci_low"] for row in rows if row["slice_value"] == "DE"} == {""}
    assert {(row["model_id"], float(row["value"])) for row in rows if row["slice_value"] == "DE"} == {
        ("als", 0.0),
        ("pop", 1.0),
    }


def test_table_has_a_line_a_measure_and_a_column_a_model(published: Workspace) -> None:
    done = rankeval("show", published.root, "--date", FIRST, "--evaluation", "nightly")

    lines = done.out.splitlines()
    assert lines[0].strip() == "nightly, 2026-01-01: up to 4 users, 95 % intervals"
    assert [cell.strip() for cell in lines[1].split("┃")] == ["measure", "als", "pop"]
    cells = {line.split("│")[0].strip(): line.split("│")[1:] for line in lines[3:] if "│" in line}
    assert lines[-1].strip() == "~ uncertain: few users decide about it"
    assert list(cells) == ["RR@1", "RR@2", "Success@1", "Success@2", "nDCG@1", "nDCG@2"]
    assert [cell.split()[0] for cell in cells["RR@2"]] == ["0.2500", "0.8750"]


def test_table_of_slices_has_a_line_a_mean(published: Workspace) -> None:
    night = ("--date", FIRST, "--evaluation", "nightly", "--model", "pop")
    done = rankeval("show", published.root, *night, "--slice", "country", "--measure", "RR", "--k", 1)

    lines = done.out.splitlines()
    assert lines[0].strip() == "nightly, 2026-01-01: 95 % intervals"
    assert [cell.strip() for cell in lines[1].split("┃")] == ["model", "country", "measure", "mean", "users"]
    cells = {line.split("│")[1].strip(): line.split("│")[3:] for line in lines if "RR@1" in line}
    assert list(cells) == ["(unknown)", "AT", "DE"]
    assert [cell.strip() for cell in cells["DE"]] == ["1.0000 -", "* 1"]


def test_filter_that_nothing_matches_says_so(published: Workspace) -> None:
    done = rankeval("show", published.root, "--model", "ghost")

    assert (done.code, done.out) == (2, "")
    assert done.message == "the command is not valid: - --model: found ghost; expected one of: als, pop"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--json", "--csv"), "--json and --csv: found both; expected one of them"),
        (("--date", "yesterday"), "--date: found 'yesterday'; expected a date as YYYY-MM-DD"),
        (("--measure", "nDGC"), "did you mean 'nDCG'?"),
    ],
)
def test_option_that_cannot_be_is_refused(published: Workspace, options: tuple[str, str], found: str) -> None:
    refused = rankeval("show", published.root, *options)

    assert refused.code == 2
    refused.assert_readable()
    assert found in refused.message


def test_gaps_between_the_groups_of_a_slice_are_shown(published: Workspace) -> None:
    options = ("--date", FIRST, "--evaluation", "nightly", "--measure", "RR", "--k", 2, "--gaps")

    rows = shown(published, *options)
    as_table = rankeval("show", published.root, *options)

    assert [(row["model_id"], row["slice"], row["n_groups"], row["n_left_out"]) for row in rows] == [
        ("als", "country", 1, 2),  # of AT, DE and (unknown), only AT has two users
        ("pop", "country", 1, 2),
    ]
    assert as_table.code == 0, as_table.err
    lines = as_table.out.splitlines()
    assert lines[0].strip() == "nightly, 2026-01-01: 95 % intervals"
    cells = [[cell.strip() for cell in line.split("│")] for line in lines if "RR@2" in line]
    assert cells == [
        [model, "country", "RR@2", "-", "-", group, group, "1 compared"]
        for model, group in (("als", "AT 0.5000"), ("pop", "AT 0.7500"))
    ]


def test_a_gap_may_be_requested_by_its_own_name(published: Workspace) -> None:
    """A name such as ``GroupGap(RR)`` is one of ``group_metrics``; with ``--gaps`` it is that of the measure."""
    night = ("--date", FIRST, "--evaluation", "nightly", "--k", 2, "--gaps")

    by_measure = shown(published, *night, "--measure", "RR")

    assert shown(published, *night, "--measure", "GroupGap(RR)") == by_measure
    assert {row["measure"] for row in by_measure} == {"RR"}
    of_slice = ("--slice", "country", "--measure", "GroupGap(RR)", "--measure", "RR")
    assert {row["measure"] for row in shown(published, *night[:-1], *of_slice)} == {"RR", "GroupGap(RR)"}


def test_comparisons_are_shown_with_the_other_tests_in_their_line(published: Workspace) -> None:
    options = ("--date", FIRST, "--evaluation", "nightly", "--comparisons")

    rows = shown(published, *options, "--measure", "RR", "--k", 2)
    as_table = rankeval("show", published.root, *options, "--measure", "RR", "--k", 2)

    (row,) = rows
    assert (row["model_id"], row["baseline_model_id"], row["test"]) == ("als", "pop", "t")
    assert row["delta"] == pytest.approx((1 + 0 + 0 + 0) / 4 - (1 / 2 + 1 + 1 + 1) / 4, rel=0, abs=1e-12)
    assert list(row["other_tests"]) == ["sign"]
    assert "als" in as_table.out
    assert as_table.out.count("RR@2") == 1


def test_every_evaluation_is_shown_on_its_own_newest_date(published: Workspace) -> None:
    rows = shown(published, "--measure", "RR", "--k", 2, "--model", "als")
    newest = {"nightly": SECOND.isoformat(), "other": FIRST.isoformat()}
    assert {row["evaluation"]: row["evaluation_date"] for row in rows} == newest


def test_a_root_without_results_says_so(tmp_path: Path) -> None:
    refused = rankeval("show", tmp_path)
    assert (refused.code, "no table runs" in refused.message) == (2, True)
    absent = rankeval("show", tmp_path / "absent")
    assert (absent.code, "absent' (no such folder)" in absent.message) == (2, True)
    refused.assert_readable()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (
            "nightly.yaml",
            "nightly.yaml' (a file); expected the results of an earlier run; results.root of a config names",
        ),
        (
            "reslts",
            "reslts' (no such folder); expected the results of an earlier run; {0} has no 'reslts', did you mean",
        ),
        (".", "(no table runs); expected the results of an earlier run; did you mean {0}/results?"),
    ],
)
def test_a_root_that_is_none_names_where_results_are(published: Workspace, named: str, said: str) -> None:
    done = rankeval("show", published.folder / named)

    assert (done.code, done.out) == (2, "")
    assert said.format(published.folder) in done.message


def test_options_that_are_misspelt_name_the_nearest(published: Workspace) -> None:
    named = rankeval("register", published.root, "--for", "duckdbb").message
    assert named.endswith("--for: found 'duckdbb'; expected one of: duckdb, spark; did you mean 'duckdb'?")
    assert rankeval("show", published.root, "--measure", "RR@1,AP@1").message.endswith("name one measure at a time")


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Publish a night with 30 cutoffs of three measures."""
    made = nights.workspace(
        tmp_path_factory.mktemp("wide") / "workspace",
        measures=["nDCG", "RR", "Success"],
        cutoffs=list(range(1, 31)),
        comparisons={"baseline": "pop", "primary": ["nDCG@10"]},
    )
    root = Root(made.root, load_config(made.config))
    for day in (FIRST, SECOND):
        root.publish(day, frames_of(day), run_id=f"run-{day}")
    return made


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "--slice", "any"),
        ("show", "--comparisons"),
        ("show", "--gaps"),
        ("compare", "--against", "previous"),
    ],
)
def test_a_table_fits_a_screen_and_says_how_many_rows_are_left(wide: Workspace, arguments: tuple[str, ...]) -> None:
    command, *options = arguments
    done = rankeval(command, wide.root, *options)

    *table, last = done.out.splitlines()
    assert len(table) < 45
    rows = [line for line in table if "@" in line and not line.startswith("What changed")]
    assert "nDCG@10" in rows[0]
    assert f"{len(rows)} of " in last
    assert last.endswith("--all shows all, and --measure, --k, --slice and --model choose")
    whole = rankeval(command, wide.root, *options, "--all").out
    assert sum("@" in line for line in whole.splitlines()) > len(rows)
    assert "--all" not in whole
    few = rankeval(command, wide.root, *options, "--k", 10, "--measure", "nDCG", "--slice", "all")
    assert "--all" not in few.out
    assert len(json.loads(rankeval(command, wide.root, *options, "--json").out)) > len(rows)
