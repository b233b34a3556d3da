"""The package's own source as syntax trees, for the tests that keep its rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = "rankeval_spark"


@dataclass(frozen=True)
class Module:
    """A Python file of the project.

    Attributes
    ----------
    path : Path
        Where it is.
    name : str
        Dotted name from the project's root, such as ``rankeval_spark.spark.plans.moved_rows``.
    """

    path: Path
    name: str

    @property
    def place(self) -> str:
        """Path from the project's root, for messages and lists of exceptions."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def is_package(self) -> bool:
        """Whether the file is the ``__init__`` of a package."""
        return self.path.name == "__init__.py"

    @cached_property
    def text(self) -> str:
        """Source."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Syntax tree."""
        return ast.parse(self.text, str(self.path))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))

    def imports(self, *, for_types: bool = True) -> Iterator[tuple[str, int]]:
        """Name and line of every module, or name of a module, that is imported: at the top, in functions, for types.

        Parameters
        ----------
        for_types : bool
            Whether imports below ``if TYPE_CHECKING`` are among them, which no running program makes.
        """
        return ((name, line) for name, line, is_for_types in self._imports if for_types or not is_for_types)

    @cached_property
    def _imports(self) -> tuple[tuple[str, int, bool], ...]:
        tests = (node for node in self.nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for_types = {node for test in tests for node in ast.walk(test)}
        found: list[tuple[str, int, bool]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                base = f"{self._absolute(node)}." if isinstance(node, ast.ImportFrom) else ""
                found += ((f"{base}{each.name}", node.lineno, node in for_types) for each in node.names)
        return tuple(found)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parents = self.name.split(".")[: len(self.name.split(".")) - node.level + self.is_package]
        return ".".join([*parents, *([node.module] if node.module else [])])


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Python files below some folders of the project, by default those of the package; sorted and parsed once."""
    if len(folders) > 1:
        return tuple(module for folder in folders for module in modules(folder))
    paths = sorted((ROOT / (folders[0] if folders else PACKAGE)).rglob("*.py"))
    return tuple(
        Module(path, _name(path)) for path in paths if not any(part.startswith(".") for part in path.parts[-4:])
    )


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
