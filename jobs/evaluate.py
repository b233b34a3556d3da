"""Evaluate one date: ``spark-submit --py-files dist/rankeval_spark.zip jobs/evaluate.py --config CONFIG --date D``.

The options are those of ``rankeval run``; so are the exit codes.
"""

from __future__ import annotations

import sys

from rankeval_spark.cli import main


def arguments(given: list[str]) -> list[str]:
    """Turn ``--config CONFIG`` into the argument that ``rankeval run`` takes; without it, let that ask for it."""
    given = [part for one in given for part in (one.split("=", 1) if one.startswith("--config=") else [one])]
    if "--config" not in given:
        return ["run", *given]
    at = given.index("--config")
    return ["run", *given[at + 1 : at + 2], *given[:at], *given[at + 2 :]]


if __name__ == "__main__":
    main(arguments(sys.argv[1:]))
