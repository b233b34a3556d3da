"""Runs the notebooks of ``docs/notebooks`` cell by cell, and stores what they show.

``python -m tests.support.notebooks`` (``make notebooks``) runs all of them, or those that are named, and writes their
output. No Jupyter is needed: a cell is Python, and what its last line is worth is shown as Jupyter would show it; a
cell of lines that begin with ``!rankeval`` calls commands, in this process. Of a figure, SVG and text are stored: its
chart would be most of the file.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest import mock

from tests.support.cli import rankeval
from tests.support.code import ROOT

FOLDER: Final = ROOT / "docs" / "notebooks"
NOTEBOOKS: Final = {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}

Cell: TypeAlias = dict[str, Any]
Output: TypeAlias = dict[str, Any]

WIDTH: Final = "120"
"""Characters of a line in the text of tables, whatever the terminal has."""

_STORED: Final = {"text/plain", "text/html", "image/svg+xml"}


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    """List the cells that are run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any], folder: Path) -> list[list[Output]]:
    """Run the cells from top to bottom in a folder; return the outputs of each."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with _inside(folder):
        return [_run_cell("".join(cell["source"]), namespace) for cell in code_cells(notebook)]


def texts(outputs: list[Output]) -> list[str]:
    """Give what can be compared of outputs: printed text, and values as text."""
    return [
        "".join(output["text"] if output["output_type"] == "stream" else output["data"].get("text/plain", ""))
        for output in outputs
    ]


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    with contextlib.chdir(folder), mock.patch.dict(os.environ, COLUMNS=WIDTH):
        yield


def _call_commands(lines: list[str], namespace: dict[str, Any]) -> list[Output]:
    """Call commands and show what they print, as cells of Jupyter do; ``_exit_code`` is that of the last one."""
    printed = ""
    for line in lines:
        program, *arguments = shlex.split(line.removeprefix("!"))
        assert program == "rankeval", line
        done = rankeval(*arguments)
        printed += done.out + done.err
        namespace["_exit_code"] = int(done.code)
    return [{"output_type": "stream", "name": "stdout", "text": _lines(printed)}]


def _run_cell(source: str, namespace: dict[str, Any]) -> list[Output]:
    if source.startswith("!"):
        return _call_commands(source.splitlines(), namespace)
    tree = ast.parse(source)
    is_shown = bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")
    last = tree.body.pop() if is_shown else None
    printed = io.StringIO()
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # as Jupyter: errors show lines
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        shown = None
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    stream = [{"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}]
    return [*(stream if printed.getvalue() else []), *([_result(shown)] if shown is not None else [])]


def _result(value: object) -> Output:
    found = {"text/plain": repr(value), "text/html": getattr(value, "_repr_html_", lambda: None)()}
    if hasattr(value, "_repr_mimebundle_"):
        found |= value._repr_mimebundle_(include=_STORED, exclude=None)
    data = {
        kind: _lines(shown) if isinstance(shown, str) else shown for kind, shown in found.items() if shown is not None
    }
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(names: list[str]) -> None:
    """Run notebooks and store their output."""
    for name in names or NOTEBOOKS:
        notebook = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            outputs = run(notebook, Path(folder))
        for number, (cell, own) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
            cell["execution_count"] = number
            cell["outputs"] = [
                output | ({"execution_count": number} if output["output_type"] == "execute_result" else {})
                for output in own
            ]
        NOTEBOOKS[name].write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{NOTEBOOKS[name].relative_to(ROOT)}: {NOTEBOOKS[name].stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
