"""``rankeval advise``: the golden nights, in each form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rankeval_spark.config import load_config
from tests.support import nights
from tests.support.cli import rankeval
from tests.support.nights import FIRST

if TYPE_CHECKING:
    from pathlib import Path


def test_advice_on_a_config_has_each_form_and_the_config_is_valid(tmp_path: Path) -> None:
    made = nights.workspace(tmp_path / "workspace")

    text = rankeval("advise", made.config, "--date", FIRST)
    found = json.loads(rankeval("advise", made.config, "--date", FIRST, "--json").out)
    table = rankeval("advise", made.config, "--date", FIRST, "--as", "markdown").out
    call = rankeval("advise", made.config, "--date", FIRST, "--as", "python").out
    config = tmp_path / "workspace" / "advised.yaml"
    config.write_text(rankeval("advise", made.config, "--date", FIRST, "--as", "yaml").out)

    assert text.code == 0, text.err
    assert "missing users        40 % of the judged users have no list: they score 0\n" in text.out
    assert "  nDCG                 order counts, and the 3 grades of the judgements\n" in text.out
    assert found["settings"]["comparisons"] == {"baseline": "pop", "primary": ["nDCG@3"]}
    assert "| warning    | missing users        | -" in table
    assert len(found["advice"]) == len(table.splitlines()) - 2
    assert "    segments=segments,\n    measures=['nDCG@3', 'AP@3'," in call
    advised = load_config(config)
    assert (advised.cutoffs, advised.slices, advised.measures[:2]) == ((3,), (("country",),), ("nDCG", "AP"))
    assert advised.inputs.held_out.filters == load_config(made.config).inputs.held_out.filters
    ran = rankeval("run", config, "--date", FIRST)
    assert ran.code == 0, ran.err


def test_advice_on_dated_inputs_needs_a_date(tmp_path: Path) -> None:
    done = rankeval("advise", nights.workspace(tmp_path / "workspace").config)
    assert done.code == 2
    assert "--date: found none; expected the evaluation date, because the inputs have {date}" in done.message
