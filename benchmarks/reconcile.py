"""Combinations of up to four switches that are planted in a number: how many `reconcile` finds, and how long it takes.

``python -m benchmarks.reconcile`` plants 500; ``--seconds`` times a search in 10,000 lists of 100 items instead.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa

from rankeval_spark import reconcile
from rankeval_spark.apps.notebook.conventions import SAME, Conventions
from rankeval_spark.measures import Measure
from tests.support.planted_switches import draw_inputs, plant

MEASURES: Final = ("nDCG@3", "AP@3", "R@4", "P@3", "RR@3", "RBP(rel=1)@4", "ERR(max_rel=9)@3", "DCG@3", "F@3", "Bpref")


def main() -> int:
    """Print what the command line requests; the exit code is 1 where a planted combination is not found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--each", type=int, default=20, help="combinations in one input")
    parser.add_argument("--seconds", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.seconds:
        for decimals in (12, 2):
            seconds = "{:.1f} s, {:.1f} CPU s".format(*_time_search(decimals))
            print(f"scores of {decimals} digits: {seconds}", flush=True)
        return 0
    n_found = n_planted = 0
    for seed in range(-(-options.trials // options.each)):
        text, inputs = MEASURES[seed % len(MEASURES)], draw_inputs(seed, share=0.35)
        found = Conventions(inputs, Measure.parse(text), {}, text=text, asked={}, most=4)
        for state, call, value in islice(plant(inputs, text, seed), min(options.each, options.trials - n_planted)):
            states, is_found = found.find(value, SAME)
            n_planted += 1
            n_found += is_found and state in states
            if not is_found or state not in states:
                print(f"not found: seed {seed}, {text}, {call}", flush=True)
        print(f"{n_found} of {n_planted} found: {text}, {sum(map(len, found.values)):,} combinations", flush=True)
    return int(n_found < n_planted)


def _time_search(decimals: int) -> tuple[float, float]:
    """Return the seconds, and those of processors, of a call for 10,000 users with 100 items and 20 judgements each."""
    draw, n_users, n_items = np.random.default_rng(1), 10_000, 100
    items = np.concatenate([draw.permutation(2000)[:n_items] for _ in range(n_users)])
    scores = draw.random(n_users * n_items).round(decimals)
    log = pa.table({"user_id": np.repeat(np.arange(n_users), n_items), "item_id": items, "score": scores})
    judged = np.concatenate([draw.permutation(2000)[:20] for _ in range(n_users)])
    gains = draw.integers(0, 6, n_users * 20).astype(float)
    held_out = pa.table({"user_id": np.repeat(np.arange(n_users), 20), "item_id": judged, "gain": gains})
    start = time.perf_counter(), time.process_time()
    reconcile(log, held_out, "nDCG@10", theirs="0.0123")
    return time.perf_counter() - start[0], time.process_time() - start[1]


if __name__ == "__main__":
    sys.exit(main())
