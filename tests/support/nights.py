"""A workspace of an evaluation, small enough to follow by hand: inputs on disk, a config next to them, a results root.

Two models, two dates, six users. For the first date and the model ``als``: ann finds the best item first, bob the only
relevant item at rank 3, eve nothing; kim has no list, ida no relevant judgement, and zoe no judgement at all.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyarrow import orc

from rankeval_spark import schemas

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]
Config: TypeAlias = dict[str, Any]

FIRST: Final = date(2026, 1, 1)
SECOND: Final = date(2026, 1, 2)
WITHOUT_ROWS: Final = date(2026, 1, 3)

LISTS: Final = {
    FIRST: {
        "als": {"ann": "a b c", "bob": "b a d", "eve": "c d a", "zoe": "a b c"},
        "pop": {"ann": "b a c", "bob": "d a b", "eve": "e a b", "kim": "b a c"},
    },
    SECOND: {"als": {"ann": "a b c", "bob": "d b a"}, "pop": {"ann": "a d b", "bob": "a d b"}},
}
"""Items of each list, best first, by date, model and user."""

GAINS: Final = {
    FIRST: {
        "ann": {"a": 3, "c": 1},
        "bob": {"d": 2},
        "eve": {"b": 1, "e": 2},
        "kim": {"b": 1},
        "ida": {"a": 0},
    },
    SECOND: {"ann": {"b": 1}, "bob": {"d": 1, "a": 2}},
}
"""Judgements by date, user and item."""

USERS: Final = ("ann", "bob", "eve", "ida", "kim", "zoe")

COUNTRIES: Final = {"ann": "AT", "bob": "AT", "eve": "DE", "kim": None}
"""Country of each user; kim's is unknown, and ida and zoe are not in the table."""

MEASURES: Final = ("RR", "nDCG", "Success")
CUTOFFS: Final = (1, 2)

DELTA: Final = "delta"
PARQUET: Final = "parquet"
"""What most tests on Spark read: three small Delta tables take as long to open as all else of a night."""


@dataclass(frozen=True)
class Workspace:
    """A folder with ``inputs``, ``results`` and the config that reads the ones and publishes to the other."""

    folder: Path

    @property
    def config(self) -> Path:
        """The config file."""
        return self.folder / "nightly.yaml"

    @property
    def root(self) -> str:
        """The results root."""
        return str(self.folder / "results")

    def configure(self, config: Config) -> Path:
        """Write the config file again."""
        self.config.write_text(yaml.safe_dump(config, sort_keys=False))
        return self.config

    def change(self, **changes: Any) -> Path:  # noqa: ANN401 - the values of a YAML file
        """Change some keys of the config; a key of a key is joined by two underscores, as in ``results__lists``."""
        config = yaml.safe_load(self.config.read_text())
        for key, value in changes.items():
            *parents, last = key.split("__")
            place = config
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = value
        return self.configure(config)

    def write(self, name: str, rows: Rows, format_: str = "") -> Path:
        """Write the rows of an input, in the format of the config if it names the input, else as a Delta table.

        A table that is there is replaced, and a Delta table has a version more.
        """
        return write_table(self.folder / "inputs" / name, rows, format_ or self._format(name))

    def rows(self, table: str) -> Rows:
        """Return the rows of a published table as anybody reads them, sorted as text."""
        return sorted(deltalake.DeltaTable(f"{self.root}/{table}").to_pyarrow_table().to_pylist(), key=str)

    def published_rows(self) -> dict[str, list[str]]:
        """Return the rows of every published table as text, whichever run wrote them."""
        return {schema.name: list(map(str, self.rows(schema.name))) for schema in schemas.PUBLISHED}

    def events(self) -> Rows:
        """Return the rows of ``runs``, oldest first."""
        return events(self.root)

    def copy(self, folder: Path) -> Workspace:
        """Copy everything, published tables too: a Delta table may be moved as a folder."""
        return Workspace(Path(shutil.copytree(self.folder, folder / "workspace")))

    def rewritten(self, format_: str) -> Workspace:
        """Write the inputs again in another format, and change the config with them; return the workspace."""
        for name, rows in (("recommendations", recommendations()), ("held_out", held_out()), ("segments", segments())):
            shutil.rmtree(self.folder / "inputs" / name)
            self.write(name, rows, format_)
            self.change(**{f"inputs__{name}__format": format_})
        return self

    def _format(self, name: str) -> str:
        inputs = yaml.safe_load(self.config.read_text())["inputs"] if self.config.exists() else {}
        return str(inputs.get(name, {}).get("format", DELTA))


def workspace(folder: Path, *, format_: str = DELTA, **changes: Any) -> Workspace:  # noqa: ANN401 - as `change`
    """Make a workspace with tables of both dates; ``changes`` are those of :meth:`Workspace.change`."""
    made = Workspace(folder)
    made.write("recommendations", recommendations(), format_)
    made.write("held_out", held_out(), format_)
    made.write("segments", segments(), format_)
    made.configure(config_of("recommendations", "held_out", "segments", format_=format_))
    made.change(**changes)
    return made


def config_of(*inputs: str, format_: str = DELTA, date_column: str = "day") -> Config:
    """Return the config of the workspace: everything at cutoffs 1 and 2, by country, lists published."""
    by_date = [{"column": date_column, "op": "=", "value": "{date}"}]
    return {
        "evaluation": "nightly",
        "inputs": {name: {"format": format_, "path": f"inputs/{name}", "filters": by_date} for name in inputs},
        "measures": list(MEASURES),
        "cutoffs": list(CUTOFFS),
        "slices": ["country"] if "segments" in inputs else [],
        "slicing": {"min_slice_size": 2},
        "results": {"root": "results", "lists": True},
    }


def recommendations(
    lists: Mapping[date, Mapping[str, Mapping[str, str]]] = LISTS,
) -> Rows:
    """Return the rows of a log; scores fall by one from item to item."""
    return [
        {"day": day.isoformat(), "model_id": model, "user_id": user, "item_id": item, "score": 10.0 - place}
        for day, models in lists.items()
        for model, users in models.items()
        for user, items in users.items()
        for place, item in enumerate(items.split())
    ]


def held_out(gains: Mapping[date, Mapping[str, Mapping[str, float]]] = GAINS) -> Rows:
    """Return the rows of a table of judgements."""
    return [
        {"day": day.isoformat(), "user_id": user, "item_id": item, "gain": float(gain)}
        for day, users in gains.items()
        for user, items in users.items()
        for item, gain in items.items()
    ]


def segments(days: Iterable[date] = tuple(LISTS)) -> Rows:
    """Return the rows of a segment table: every user's country on every date."""
    return [
        {"day": day.isoformat(), "user_id": user, "country": country}
        for day in days
        for user, country in COUNTRIES.items()
    ]


def of_date(rows: Rows, day: date) -> Rows:
    """Keep the rows of a date, without its column."""
    return [
        {name: value for name, value in row.items() if name != "day"} for row in rows if row["day"] == day.isoformat()
    ]


def renamed(rows: Rows, names: Mapping[str, str]) -> Rows:
    """Give some columns other names."""
    return [{names.get(name, name): value for name, value in row.items()} for row in rows]


def with_number_ids(rows: Rows) -> Rows:
    """Turn the ids into whole numbers; items keep their order, which breaks ties."""
    numbered: dict[str, Callable[[str], int]] = {
        "user_id": lambda text: 100 + ["ann", "bob", "eve", "ida", "kim", "zoe"].index(text),
        "item_id": ord,
    }
    return [{name: numbered[name](value) if name in numbered else value for name, value in row.items()} for row in rows]


def write_table(path: Path, rows: Rows, format_: str) -> Path:
    """Write rows without Spark, in one of the formats that a config can name."""
    writers = {
        "delta": _write_delta,
        "parquet": _write_parquet,
        "csv": _write_csv,
        "json": _write_json,
        "orc": _write_orc,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    writers[format_](path, rows)
    return path


def _write_delta(path: Path, rows: Rows) -> None:
    deltalake.write_deltalake(str(path), arrow_of(rows), mode="overwrite", schema_mode="overwrite")


def _write_parquet(path: Path, rows: Rows) -> None:
    path.mkdir(exist_ok=True)
    pq.write_table(arrow_of(rows), path / "part-0.parquet")


def _write_csv(path: Path, rows: Rows) -> None:
    path.mkdir(exist_ok=True)
    with (path / "part-0.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _write_json(path: Path, rows: Rows) -> None:
    path.mkdir(exist_ok=True)
    (path / "part-0.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _write_orc(path: Path, rows: Rows) -> None:
    path.mkdir(exist_ok=True)
    orc.write_table(arrow_of(rows), path / "part-0.orc")


def arrow_of(rows: Sequence[Row]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return rows as an Arrow table, a NULL as it is."""
    return pa.Table.from_pylist(list(rows))


def events(root: str) -> Rows:
    """Return the rows of ``runs``, oldest first."""
    return sorted(
        deltalake.DeltaTable(f"{root}/runs").to_pyarrow_table().to_pylist(), key=lambda row: row["recorded_at"]
    )


def no_session() -> NoReturn:
    """Fail the test that starts a session where none is needed."""
    message = "a session was started"
    raise AssertionError(message)
