"""``python -m rankeval_spark`` is the command ``rankeval``."""

from __future__ import annotations

from rankeval_spark.cli import main

if __name__ == "__main__":
    main()
