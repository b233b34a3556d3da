"""Five tasks of an evaluation, by one tool: lines of code, seconds of the processor, and what is shown.

``python benchmarks/five_tasks/run.py TOOL FOLDER`` in an environment that has the tool: ours, rectools, ranx or
evidently, and pandas below 3. FOLDER has ``recommendations.csv`` (user_id, item_id, score, model_id), ``held_out.csv``
(user_id, item_id, gain) and ``users.csv`` (user_id, age_band). The functions of a module are the tasks: ``means`` of
nDCG, AP and recall at 10; whether two models differ; means by ``segments``; an ``own_measure``, the share of users with
an item of the highest gain among the first three; and a ``page`` or table for a colleague.
"""

from __future__ import annotations

import ast
import importlib
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

TASKS = ("means", "difference", "segments", "own_measure", "page")
TURNS = 3


def main(tool: str, folder: str) -> None:
    """Run each task several times; print its lines, its first and its best seconds, and its result."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    module = importlib.import_module(f"by_{tool}")
    print(f"{tool}: {time.process_time() - started:.1f} s to import")
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    ids = {"user_id": str, "item_id": str}
    frames = [pd.read_csv(Path(folder, f"{name}.csv"), dtype=ids) for name in ("recommendations", "held_out", "users")]
    for task in TASKS:
        if task not in functions:
            print(f"\n{task}: not offered")
            continue
        seconds = []
        for _ in range(TURNS):
            copies = [frame.copy() for frame in frames]
            started = time.process_time()
            found = getattr(module, task)(*copies)
            seconds.append(time.process_time() - started)
        n_lines = sum(count_lines(functions[name]) for name in used_by(task, functions))
        print(f"\n{task}: {n_lines} lines, {seconds[0]:.2f} s at first, {min(seconds):.2f} s at best\n{found}")


def used_by(name: str, functions: Mapping[str, ast.FunctionDef]) -> set[str]:
    """Return the functions of a module that one of them uses, and itself."""
    named = {node.id for node in ast.walk(functions[name]) if isinstance(node, ast.Name)} & functions.keys() - {name}
    return {name}.union(*(used_by(other, functions) for other in named))


def count_lines(function: ast.FunctionDef) -> int:
    """Return the lines of a function below its signature."""
    return sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in function.body)


if __name__ == "__main__":
    main(*sys.argv[1:])
