"""Names from data are seen, and nothing else: they steer no terminal, run in no spreadsheet, make no markup."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rankeval_spark.apps.nightly.night import _describe_count
from rankeval_spark.cli import tables
from rankeval_spark.cli.terminal import console, headline, write_out
from rankeval_spark.errors import Fault, InputError
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

FORMULAS = (
    "=cmd|'/C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1+1",
)
HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]:bomb:[/red]\u202egnp\u2066\x9b31m<script>"
SEEN = r"\x1b[2J\x1b]0;owned\x07[red]:bomb:[/red]\u202egnp\u2066\x9b31m<script>"


class Screen(io.StringIO):
    """A standard output that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def mean(model: str) -> dict[str, Any]:
    """One row of ``metrics``, as far as it is shown."""
    where = {"evaluation": "nightly", "model_id": model, "slice": "country", "slice_value": model, "measure": model}
    return {**where, "k": 1, "value": 0.5, "ci_low": None, "ci_high": None, "n_users": 3, "is_small": True}


def comparison(model: str) -> dict[str, Any]:
    """One row of ``comparisons``, as far as it is shown."""
    names = {"baseline_model_id": model, "verdict": None, "reason": model, "correction": model, "family_size": 1}
    return {**mean(model), **names, "delta": 0.1, "relative_delta": None, "p_adjusted": None, "ci_level": 0.95}


def gap(name: str) -> dict[str, Any]:
    """Say how far the groups of a slicing lie apart, as far as it is shown."""
    ratio = {"ratio": 0.5, "ratio_ci_low": None, "ratio_ci_high": None}
    ends = {"lowest_group": name, "lowest_value": 0.1, "highest_group": name, "highest_value": 0.2}
    return {**mean(name), "ci_level": 0.95, "gap": 0.1, **ratio, **ends, "n_groups": 2, "n_left_out": 0}


def layouts(name: str) -> list[Table]:
    """Every table of the terminal, with a name wherever there is one."""
    gate = {"gate": 0, "verdict": name, "explanation": name, "rule": name}
    rows = [mean(name)]
    return [
        tables.leaderboard(rows, name),
        tables.comparisons([comparison(name)], name, width=200),
        tables.comparisons([comparison(name)], name, width=60),
        tables.gates([gate], name),
        tables.rules([gate], name),
        tables.means([{**mean(name), "slice": name, "ci_level": 0.95}], name),
        tables.gaps([gap(name)], name, width=200),
        tables.gaps([gap(name)], name, width=60),
    ]


@pytest.mark.parametrize("place", range(8))
def test_table_of_the_terminal_shows_names_as_they_are(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    console().print(layouts(HOSTILE)[place], width=400)
    text = out.getvalue()
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u2066"} & set(text)
    folded = "".join(text.split())
    assert SEEN in folded or SEEN.replace("_", " ") in folded


def test_verdict_of_all_rules_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    failed = {"gate": 1, "model_id": HOSTILE, "verdict": "failed"}
    console().print(tables.gates_sentence([failed]), markup=False, soft_wrap=True)
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u2066"} & set(out.getvalue())
    assert SEEN in out.getvalue()


def test_message_of_an_error_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", err := io.StringIO())
    error = InputError(Fault("inputs.held_out", repr(HOSTILE), HOSTILE, "two\nlines"))
    console(is_error=True).print(headline(error), markup=False, soft_wrap=True)
    assert "\x1b" not in err.getvalue()
    assert SEEN in err.getvalue()
    assert "two\nlines" in err.getvalue()


def test_example_of_a_check_cannot_pretend_to_be_a_line_of_ours() -> None:
    row: Any = {"count": 1, "share": 0.5, "sample_keys": ["ann\npublished nightly", HOSTILE]}
    assert _describe_count(row) == rf"1 (50.00%), for example ann\npublished nightly; {SEEN}"


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_in_a_name_is_text_in_a_spreadsheet(name: str) -> None:
    text = tables.to_csv([mean(name)], ["model_id", "slice", "value"])
    header, row = csv.reader(io.StringIO(text, newline=""))
    assert header == ["model_id", "slice", "value"]
    assert row == [f"'{name}", "country", "0.5"]


def test_numbers_below_zero_stay_numbers() -> None:
    assert tables.to_csv([{"delta": -0.5}], ["delta"]) == "delta\r\n-0.5\r\n"


def test_name_with_commas_and_quotes_is_one_cell() -> None:
    name = 'a",b\r\n=1'
    rows = list(csv.reader(io.StringIO(tables.to_csv([mean(name)], ["model_id", "k"]), newline="")))
    assert rows[1:] == [[name, "1"]]


def test_json_of_a_name_is_that_name_in_plain_ascii() -> None:
    text = tables.to_json([mean(HOSTILE)], ["model_id"])
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == [{"model_id": HOSTILE}]


def test_what_programs_read_is_as_it_is_and_what_a_terminal_shows_is_inert(monkeypatch: pytest.MonkeyPatch) -> None:
    text = tables.to_csv([mean(f"als{HOSTILE}")], ["model_id"])
    monkeypatch.setattr(sys, "stdout", pipe := io.StringIO(newline=""))
    write_out(text)
    assert pipe.getvalue() == text
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    write_out(text)
    assert screen.getvalue() == f"model_id\nals{SEEN}\n"


def test_topic_of_a_trec_run_is_inert_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qrels").write_text("1\x1b[2J 0 d1 1\n", encoding="utf-8")
    (tmp_path / "run").write_text("1\x1b[2J Q0 d1 1 1.0 r\x1b[2J\n", encoding="utf-8")
    as_it_is = rankeval("trec", "-q", "-m", "map", tmp_path / "qrels", tmp_path / "run")
    assert "1\x1b[2J" in as_it_is.out
    monkeypatch.setattr("tests.support.cli.io.StringIO", Screen)
    shown = rankeval("trec", "-q", "-m", "map", tmp_path / "qrels", tmp_path / "run")
    assert (shown.code, "\x1b" in shown.out) == (0, False)
    assert r"1\x1b[2J" in shown.out
