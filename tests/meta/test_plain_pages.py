"""Pages are easy to read and to follow: no long sentence, and no link into nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, get_args

import rankeval_spark
from rankeval_spark import FrameInputs, Policies
from rankeval_spark.measures import group_statistics, registry
from tests.support.code import ROOT

MOST_WORDS: Final = 40
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SENTENCE_END: Final = re.compile(r"(?<=[.:;!?])\s+")
LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


def paragraphs(text: str) -> Iterator[str]:
    """Give the paragraphs, list items and table cells of a page, without its blocks of code."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.) )", prose):
        lines = [line for line in block.splitlines() if not line.startswith("    ")]
        for row in (line for line in lines if line.startswith("|")):
            yield from re.split(r"(?<!\\)\|", row)
        yield re.sub(r"^(?:[-*]|#+|\d+\.) ", "", " ".join(line.strip() for line in lines if not line.startswith("|")))


def long_sentences(text: str) -> list[str]:
    """List the sentences of more than 40 words; a piece of code counts as one word."""
    plain = (re.sub(r"`[^`]*`", "code", paragraph) for paragraph in paragraphs(text))
    sentences = (sentence for paragraph in plain for sentence in SENTENCE_END.split(paragraph))
    return [sentence for sentence in sentences if len(sentence.split()) > MOST_WORDS]


def anchors(page: Path) -> set[str]:
    """List the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_sentence_of_41_words_is_found_in_paragraphs_lists_and_tables() -> None:
    long, short = " ".join(["word"] * 41), " ".join(["word"] * 40)
    assert long_sentences(f"{short}. {short}\n\n- {short}\n\n| {short} | {short} |") == []
    for page in (f"# Title\n\n{long}.", f"- {short}.\n- {long}", f"| a | b |\n|---|---|\n| {short} | {long} |"):
        assert [len(sentence.split()) for sentence in long_sentences(page)] == [41]
    assert long_sentences(f"```\n{long}\n```") == []


def test_no_sentence_of_a_page_has_more_than_40_words() -> None:
    found = {
        str(page.relative_to(ROOT)): long
        for page in PAGES
        if (long := long_sentences(page.read_text(encoding="utf-8")))
    }
    assert found == {}


def test_a_page_has_one_title_and_no_level_of_headings_is_left_out() -> None:
    found = {}
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        levels = [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)]
        steps = {after - before for before, after in pairwise(levels)}
        if levels[0] != 1 or levels.count(1) != 1 or max(steps, default=0) > 1:
            found[str(page.relative_to(ROOT))] = levels
    assert found == {}


def test_each_measure_has_a_heading_on_one_page_and_a_line_in_the_index() -> None:
    pages = [page for page in PAGES if page.parent.name == "measures"]
    texts = {page.stem: page.read_text(encoding="utf-8") for page in pages}
    names = [entry.name for entry in registry.entries()]
    headings = re.findall(r"^## (.+)$", "".join(text for stem, text in texts.items() if stem != "index"), re.MULTILINE)
    assert sorted(headings) == sorted([*names, "Statistics of groups"])
    assert re.findall(r"^\| \[(\w+)\]", texts["index"], re.MULTILINE) == [
        *names,
        *(one.name for one in group_statistics.ALL),
    ]


def test_the_api_reference_has_all_public_names_and_the_keys_of_all_frames() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    exported = [name for name in rankeval_spark.__all__ if name != "__version__"]
    assert sorted(re.findall(r"^::: rankeval_spark\.(\w+)$", text, re.MULTILINE)) == sorted(exported)
    rows = {frame: re.findall(r"`(\w+)`", keys) for frame, keys in re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.M)}
    assert rows == {frame: list(type(own).model_fields) for frame, own in FrameInputs().frames.items()}


def test_the_page_of_policies_names_each_of_them_and_their_values() -> None:
    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    values = [value for field in Policies.model_fields.values() for value in get_args(field.annotation)]
    names = [*Policies.model_fields, *(value for value in values if isinstance(value, str))]
    assert len(names) > 40
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            target, _, anchor = link.partition("#")
            other = page if not target else page.parent / target
            if "://" in link or link.startswith("mailto:"):
                continue
            if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other)):
                broken.append((str(page.relative_to(ROOT)), link))
    assert broken == []
