"""What the site is made of besides the pages of this folder: README and others from above, and the notebooks.

Run by mkdocs (``make site``), in an environment without this package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

HERE: Final = Path(__file__).parent
ABOVE: Final = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "benchmarks/README.md": "benchmarks.md"}
"""Pages outside of this folder, and their names in the site."""
TEMPLATE: Final = "rankeval_spark/config/template.yaml"
MOVED: Final = {**ABOVE, TEMPLATE: "template.md", "docs/decisions": "decisions/index.md"}

DECISION_BOOST: Final = 0.2
"""Factor of the score that the search gives to a decision."""

_ROLE: Final = re.compile(r":(?:class|func|meth|mod):(?=<code>)")
_NO_BRACKETS: Final = str.maketrans("[]", "()")
_LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401 - of mkdocs
    """Add the pages that are not in this folder."""
    for name, text in _pages():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead links to what is added to its pages, and rank decisions below other pages in the search."""
    if page.file.src_uri.startswith("decisions/"):
        page.meta["search"] = {"boost": DECISION_BOOST}
    return _LINK.sub(lambda found: f"]({_page_of(found[1])}", markdown)


def on_page_content(html: str, **_: object) -> str:
    """Leave out the roles of reStructuredText in docstrings, such as ``:class:``; the names after them are code."""
    return _ROLE.sub("", html)


def _page_of(target: str) -> str:
    if target.endswith(".ipynb"):
        return f"{target.removesuffix('.ipynb')}.md"
    return ABOVE.get(target.removeprefix("../"), target) if target.startswith("../") else target


def _pages() -> Iterator[tuple[str, str]]:
    for source, name in ABOVE.items():
        yield name, _moved((HERE.parent / source).read_text(encoding="utf-8"))
    yaml = (HERE.parent / TEMPLATE).read_text(encoding="utf-8")
    yield "template.md", f"# A config with every key\n\n```yaml\n{yaml}```\n"
    yield "decisions/index.md", _decisions()
    for path in sorted((HERE / "notebooks").glob("*.ipynb")):
        yield from _notebook(path)


def _moved(text: str) -> str:
    """Lead links from the folder above to the pages of the site."""

    def link(found: re.Match[str]) -> str:
        target = found[1].removeprefix("../")
        return f"]({MOVED.get(target, target.removeprefix('docs/'))}"

    return _LINK.sub(link, text)


def _decisions() -> str:
    pages = sorted((HERE / "decisions").glob("*.md"))
    titles = ((page.name, page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")) for page in pages)
    items = "".join(f"- [{title}]({name})\n" for name, title in titles)
    return f"# Decisions\n\nWhat was decided and why, with what was measured for it.\n\n{items}"


def _notebook(path: Path) -> Iterator[tuple[str, str]]:
    """Write the cells as a page: text, code, and what the code showed; each figure is a file of its own."""
    parts = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            figure = f"{path.stem}-{number}.svg"
            if "image/svg+xml" in output.get("data", {}):
                yield f"notebooks/{figure}", "".join(output["data"]["image/svg+xml"])
                said = ". ".join("".join(output["data"]["text/plain"]).splitlines()[:2])  # title and caption
                parts.append(f"![{said.translate(_NO_BRACKETS)}]({figure})")
            else:
                parts.append(_shown(output))
    parts.append(f'<a href="{path.name}" download>This page as a notebook</a>\n')
    yield f"notebooks/{path.stem}.md", "\n\n".join(parts)


def _shown(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text'])}```"
    data = output["data"]
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        html = html.replace('<table border="1" class="dataframe">', "<table>")  # which the theme lays out
        return re.sub(r"\n\s*", "\n", html).strip()
    return f"```text\n{''.join(data['text/plain'])}\n```"
