"""Run schedules: ``python -m tests.simulation SEED`` one, with what happened; ``FIRST LAST`` all of a range.

A further argument is a planted fault, see :mod:`tests.simulation.planted`; then the first schedule that finds it is the
last one.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext

from tests.simulation.planted import PLANTED
from tests.simulation.schedules import broken, run_schedule
from tests.simulation.world import ViolationError


def main(first: int, last: int, fault: str = "") -> int:
    began, found = time.perf_counter(), list[str]()
    with PLANTED[fault]() if fault else nullcontext():
        if first == last:
            try:
                trace = run_schedule(first).world.trace
            except ViolationError as error:
                trace, found = [*error.trace], [str(error)]
            print(*trace, sep="\n")
        else:
            for text in broken(range(first, last + 1)):
                found.append(text)
                print(text, fault and f'"{fault}"', flush=True)
                if fault:
                    break
    print(f"{len(found)} schedules are broken; {time.perf_counter() - began:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    seeds = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
    sys.exit(main(seeds[0], seeds[-1], *sys.argv[1 + len(seeds) :]))
