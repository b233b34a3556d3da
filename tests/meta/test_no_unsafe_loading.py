"""Nothing that is read can run code: no pickles, no evaluated text, no shell, no YAML beyond plain data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.code import Module, modules

ALL_MODULES: Final = modules("rankeval_spark", "jobs", "docs", "benchmarks")

LIBRARIES: Final = frozenset({
    "pickle", "cPickle", "_pickle", "dill", "joblib", "cloudpickle", "shelve", "marshal", "jsonpickle", "torch", "code",
    "codeop", "xml", "telnetlib", "ftplib",
})  # fmt: skip  # one name a line would be a page
"""Modules that turn bytes into code, or text into what it says to fetch."""

BUILT_IN: Final = frozenset({"eval", "exec", "compile", "__import__"})
OF_YAML: Final = frozenset({"load", "load_all", "unsafe_load", "full_load", "unsafe_load_all", "full_load_all"})
OF_NUMPY: Final = frozenset({"load", "fromfile", "memmap"})
OF_PANDAS: Final = frozenset({"read_pickle", "to_pickle"})
OF_RDD: Final = frozenset({"pickleFile", "saveAsPickleFile"})
OF_OS: Final = frozenset({"system", "popen", "execv", "execve", "execvp", "spawnl", "spawnv"})


def unsafe(module: Module) -> Iterator[str]:
    """Find imports and calls by which data could run."""
    for name, line in module.imports():
        if name.partition(".")[0] in LIBRARIES:
            yield f"{module.place}:{line}: import {name}"
    for node in module.nodes:
        if isinstance(node, ast.Call) and (what := _unsafe_call(node)):
            yield f"{module.place}:{node.lineno}: {what}"


def _unsafe_call(call: ast.Call) -> str:
    if any(each.arg in {"shell", "allow_pickle"} for each in call.keywords):
        return "a shell, or a pickle"
    if isinstance(call.func, ast.Name):
        return call.func.id if call.func.id in BUILT_IN else ""
    if not isinstance(call.func, ast.Attribute):
        return ""
    owner = call.func.value.id if isinstance(call.func.value, ast.Name) else ""
    of_owner = {"yaml": OF_YAML, "np": OF_NUMPY, "numpy": OF_NUMPY, "os": OF_OS}.get(owner, frozenset())
    return call.func.attr if call.func.attr in of_owner | OF_PANDAS | OF_RDD else ""


def test_nothing_that_is_read_can_run_code() -> None:
    assert [found for module in ALL_MODULES for found in unsafe(module)] == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "import xml.etree.ElementTree",
        "eval(text)",
        "exec(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "np.load(path)",
        "read(path, allow_pickle=True)",
        "pd.read_pickle(path)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
    ],
)
def test_the_finder_finds_what_it_is_for(source: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(source, encoding="utf-8")
    (module,) = [Module(tmp_path / "one.py", "one")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Module, "place", "one.py")
        assert len(list(unsafe(module))) == 1
