"""The page of published tables has the numbers that ``make published`` makes again."""

from __future__ import annotations

from benchmarks import published
from tests.support.code import ROOT

PAGE = (ROOT / "docs" / "reproduced.md").read_text(encoding="utf-8")
ROWS = {
    "SlopeOne": "Slope One",
    "KNNBasic": "k-NN",
    "KNNWithMeans": "Centered k-NN",
    "KNNBaseline": "k-NN Baseline",
    "BaselineOnly": "Baseline",
}


def test_page_has_the_numbers_that_are_made_again() -> None:
    tables = {**published.CORNAC, **{ROWS[name]: row for name, row in published.SURPRISE.items()}}
    for name, row in tables.items():
        assert f"| {' | '.join([name, *row.replace('N/A', '-').split()])} |\n" in PAGE
    for measures in (published.OF_CORNAC, published.OF_SURPRISE):
        assert f"| here | {' | '.join(f'`{measure}`' for measure in measures)} |\n" in PAGE
    n_numbers = sum(number != "N/A" for row in tables.values() for number in row.split()) + 1
    assert f"Each of the {n_numbers} numbers comes out" in PAGE
