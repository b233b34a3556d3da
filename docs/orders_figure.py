"""Figures of four lists: their orders by four measures, and what each rank adds; ``docs/generate.py`` writes them."""

from __future__ import annotations

from html import escape
from typing import Final

from rankeval_spark import measure_lists

LISTS: Final = {"A": "1 - - - - - | 1 1", "B": "- 1 1 1 - -", "C": "1 - - - - 1 | 1", "D": "- - 1 1 1 -"}
MEASURES: Final = {"RR": "MRR", "AP": "MAP", "nDCG": "nDCG", "ARHR": "ARHR"}
"""Measures, and the names of their means."""

COLOURS: Final = {"A": "#b2382b", "B": "#3d63b8", "C": "#2f7d3b", "D": "#a07b13"}
WIDTH: Final = 800
TOP: Final = 96  # of the first row
ROW: Final = 56  # from one row to the next
FIRST: Final = 380  # of the first measure
COLUMN: Final = 122  # from one measure to the next
TITLE: Final = "Four lists of six items: MRR, MAP, nDCG and ARHR put them in four orders"
CONTRIBUTIONS: Final = "Values of four lists by MRR, MAP, nDCG and ARHR, cut into what each rank adds"
MIN_LABELLED: Final = 10  # pixels of a part that has room for its rank
STYLE: Final = """\
    text { font: 14px system-ui, sans-serif; fill: #1b2330 }
    .small { font-size: 12px }
    .mid { text-anchor: middle }
    .bold { font-weight: 700 }
    .item { fill: #ffffff; stroke: #7d8899; stroke-width: 1.5 }
    .name { fill: #ffffff; font-weight: 700 }"""


def orders_figure() -> str:
    """Draw the lists on the left, and from measure to measure the line of each through its places, best on top."""
    found = measure_lists(LISTS, list(MEASURES)).to_pydict()
    values = {measure: dict(zip(LISTS, found[measure], strict=False)) for measure in MEASURES}
    height = TOP + ROW * len(LISTS) - 8
    parts = [
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text class="bold" x="20" y="24">Which of these lists is best?</text>',
        '<text class="small" x="20" y="46">Ranks 1 to 6; three items are relevant, the filled are hits.</text>',
    ]
    for row, (name, typed) in enumerate(LISTS.items()):
        y = TOP + ROW * row
        parts.append(f'<text class="bold" x="20" y="{y + 5}" style="fill:{COLOURS[name]}">{name}</text>')
        for place, token in enumerate(typed.partition("|")[0].split()):
            fill = f' style="fill:{COLOURS[name]};stroke:{COLOURS[name]}"' if token == "1" else ""
            parts.append(f'<rect class="item" x="{48 + 36 * place}" y="{y - 14}" width="28" height="28" rx="4"{fill}/>')
    places = {measure: _places(values[measure]) for measure in MEASURES}
    for name, colour in COLOURS.items():
        points = " ".join(
            f"{FIRST + COLUMN * column},{TOP + ROW * places[measure][name]:g}"
            for column, measure in enumerate(MEASURES)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="3" opacity=".55"/>')
    for column, (measure, title) in enumerate(MEASURES.items()):
        x = FIRST + COLUMN * column
        parts.append(f'<text class="mid bold" x="{x}" y="60">{title}</text>')
        for name, value in values[measure].items():
            y = TOP + ROW * places[measure][name]
            parts.append(f'<circle cx="{x}" cy="{y:g}" r="14" fill="{COLOURS[name]}"/>')
            parts.append(f'<text class="mid name" x="{x}" y="{y + 5:g}">{name}</text>')
            parts.append(f'<text class="mid small" x="{x}" y="{y + 29:g}">{value:.3f}</text>')
    return _draw(parts, height, TITLE)


def contributions_figure() -> str:
    """Draw for each list and measure a bar as long as the value, cut into what each rank adds to it."""
    found = measure_lists(LISTS, list(MEASURES))
    height, unit = TOP + ROW * len(LISTS) - 8, 120  # pixels of a value of 1
    parts = [
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text class="bold" x="20" y="24">What does each rank add?</text>',
        '<text class="small" x="20" y="46">Bars are values; in each part is the rank that adds it.</text>',
    ]
    for row, (name, typed) in enumerate(LISTS.items()):
        y = TOP + ROW * row + 4
        parts.append(f'<text class="bold" x="20" y="{y + 5}" style="fill:{COLOURS[name]}">{name}</text>')
        parts.append(f'<text class="small" x="44" y="{y + 5}">{escape(typed)}</text>')
        for column, (measure, title) in enumerate(MEASURES.items()):
            x = 172 + 156 * column
            parts += [f'<text class="bold" x="{x}" y="74">{title}</text>'] if row == 0 else []
            explained = found.explain(name, measure)
            for place, rank in enumerate(row for row in explained.table if row["contribution"]):
                width = unit * rank["contribution"]
                shade = f'style="fill:{COLOURS[name]}" opacity="{1 - 0.12 * place:.2f}"'
                parts.append(f'<rect x="{x:.1f}" y="{y - 13}" width="{width - 1.5:.1f}" height="26" {shade}/>')
                if width >= MIN_LABELLED:
                    parts.append(f'<text class="mid name" x="{x + width / 2:.1f}" y="{y + 5}">{rank["rank"]}</text>')
                x += width
            parts.append(f'<text class="small" x="{172 + 156 * column}" y="{y + 29}">{explained.value:.3f}</text>')
    return _draw(parts, height, CONTRIBUTIONS)


def _draw(parts: list[str], height: int, title: str) -> str:
    """Return the parts as a picture with its title."""
    body = "\n".join(f"  {part}" for part in parts)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">'
    return f'{head}\n  <title id="title">{title}</title>\n  <style>\n{STYLE}\n  </style>\n{body}\n</svg>\n'


def _places(values: dict[str, float]) -> dict[str, int]:
    """Return the place of each list from 0, the greatest value first; of equal ones the first by name."""
    order = sorted(values, key=lambda name: (-values[name], name))
    return {name: place for place, name in enumerate(order)}
