"""TREC files, and random runs and judgements to write into them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

Runs: TypeAlias = dict[str, dict[str, float]]
Judgements: TypeAlias = dict[str, dict[str, int]]


def random_topics(seed: int, *, n_topics: int = 60, n_documents: int = 40) -> tuple[Runs, Judgements]:
    """Draw a run and judgements with ties, graded and negative judgements, R = 0, R > k, short and long lists.

    Some topics have only judgements, some only documents. Each has a judgement that is not negative, because trec_eval
    reads memory that is not its own where a topic has none.
    """
    draw = random.Random(seed)
    documents = [draw.choice(["d", "D-", "é", "日"]) + str(number) for number in range(n_documents)]
    run: Runs = {}
    judgements: Judgements = {}
    for topic in (f"{draw.choice(['', 'q', 'ü'])}{number}" for number in range(n_topics)):
        kind = draw.random()
        if kind < 0.9:
            retrieved = draw.sample(documents, draw.choice([1, 2, 7, 15, n_documents]))
            # Halves tie often; the others are the same number only in single precision.
            run[topic] = {each: draw.randint(-3, 6) / 2 + draw.choice([0, 0, 1e-9]) for each in retrieved}
        if kind > 0.1:
            judged = draw.sample(documents, draw.choice([1, 2, 6, 20]))
            grades = [draw.choice([0, 1]), *(draw.choice([-1, 0, 0, 1, 1, 2, 3]) for _ in judged[1:])]
            judgements[topic] = dict(zip(judged, grades, strict=True))
    return run, judgements


def write_files(folder: Path, run: Mapping[str, Mapping[str, float]], judgements: Judgements) -> tuple[Path, Path]:
    """Write judgements and a run, rows in no order that means anything; return their paths."""
    qrels_path, run_path = folder / "qrels.txt", folder / "run.txt"
    rows = [f"{topic} 0 {each}\t{grade}" for topic, judged in judgements.items() for each, grade in judged.items()]
    retrieved = [
        f"{topic}\tQ0\t{each}  1 {score!r} a_run" for topic, scores in run.items() for each, score in scores.items()
    ]
    for path, lines in ((qrels_path, rows), (run_path, retrieved)):
        random.Random(0).shuffle(lines)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return qrels_path, run_path
