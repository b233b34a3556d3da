"""``rankeval register``: views of a results root, as SQL."""

from __future__ import annotations

from rankeval_spark.cli.display.terminal import write_out
from rankeval_spark.results import Results, views
from rankeval_spark.results.reading.table_readers import is_native
from rankeval_spark.results.storage.file_store import normalise


def register_command(root: str, dialect: str, schema: str | None) -> None:
    """Print the statements that make the views; a local root must hold results, others are not looked at."""
    made = views.statements(normalise(root), dialect, schema=schema, where="--for")
    if is_native(root):
        Results(root).table_versions()
    write_out("".join(f"{statement};\n\n" for statement in made.values()))
