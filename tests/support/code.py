"""The package's own source as syntax trees, for the tests that keep its rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
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

    def nodes(self) -> Iterator[ast.AST]:
        """Every node of the tree."""
        return ast.walk(self.tree)

    def imports(self, *, for_types: bool = True) -> Iterator[tuple[str, int]]:
        """Name and line of every module, or name of a module, that is imported: at the top, in functions, for types.

        Parameters
        ----------
        for_types : bool
            Whether imports below ``if TYPE_CHECKING`` are among them, which no running program makes.
        """
        left_out = set() if for_types else set(self._type_imports())
        for node in self.nodes():
            if node in left_out:
                continue
            if isinstance(node, ast.Import):
                yield from ((each.name, node.lineno) for each in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                yield from ((f"{base}.{each.name}", node.lineno) for each in node.names)

    def _type_imports(self) -> Iterator[ast.AST]:
        """Everything below ``if TYPE_CHECKING``."""
        for node in self.nodes():
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                yield from ast.walk(node)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parents = self.name.split(".")[: len(self.name.split(".")) - node.level + self.is_package]
        return ".".join([*parents, *([node.module] if node.module else [])])


def modules(*folders: str) -> list[Module]:
    """Python files below some folders of the project, by default those of the package; sorted."""
    paths = (path for folder in folders or (PACKAGE,) for path in sorted((ROOT / folder).rglob("*.py")))
    return [Module(path, _name(path)) for path in paths if not any(part.startswith(".") for part in path.parts[-4:])]


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
