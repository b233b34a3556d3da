"""Run schedules: ``python -m tests.simulation SEED`` one, with what happened; ``FIRST LAST`` all of a range."""

from __future__ import annotations

import sys
import time

from tests.simulation.schedules import broken, run_schedule
from tests.simulation.world import ViolationError


def main(first: int, last: int) -> int:
    began, found = time.perf_counter(), list[str]()
    if first == last:
        try:
            trace = run_schedule(first).world.trace
        except ViolationError as error:
            trace, found = [*error.trace], [str(error)]
        print(*trace, sep="\n")
    else:
        found = broken(range(first, last + 1))
        print(*found, f"{len(found)} schedules of {last + 1 - first} are broken", sep="\n")
    print(f"{(last + 1 - first) / (time.perf_counter() - began):.1f} schedules a second")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[-1])))
