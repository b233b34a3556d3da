"""Tests of this project have names that fit on a line, and no more lines than now."""

from __future__ import annotations

import ast
from typing import Final

from tests.support.code import modules

MAX_NAME: Final = 80
MAX_LINES: Final = 72_700
"""A test that is added makes another one superfluous, or shares its helper; raised on purpose only."""


def test_no_name_of_a_test_has_more_than_80_characters() -> None:
    named = ((module.place, node) for module in modules("tests") for node in module.nodes)
    tests = [
        (place, node.name) for place, node in named if isinstance(node, ast.FunctionDef) if node.name[:5] == "test_"
    ]
    assert len(tests) > 1000
    assert [(place, name) for place, name in tests if len(name) > MAX_NAME] == []


def test_the_tests_have_no_more_lines() -> None:
    assert sum(module.text.count("\n") for module in modules("tests")) <= MAX_LINES
