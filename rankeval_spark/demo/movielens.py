"""MovieLens 100K, read out of a wheel that carries it.

F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context.
ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. Terms of use: see ``docs/demo.md``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd

from rankeval_spark.demo.dataset import GENRES, INTERACTION_COLUMNS, ITEM_COLUMNS, TITLE, USER_COLUMNS, Dataset
from rankeval_spark.demo.wheels import Wheel

SOURCE_NAME: Final = "MovieLens 100K"

WHEEL: Final = Wheel(
    SOURCE_NAME,
    package="recbole",
    version="1.2.1",
    sha256="9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
)

_MEMBER: Final = "recbole/dataset_example/ml-100k/ml-100k.{}"
_SOURCES: Final = {TITLE: "movie_title", GENRES: "class"}
"""Fields of the files by the columns that have another name."""


def load(cache: Path) -> Dataset:
    """Read the data set from the wheel in ``cache``, which is fetched first if it is not there.

    Raises
    ------
    DataUnavailableError
        When there is neither a sound copy nor a way to fetch one.
    """
    return read_wheel(WHEEL.cached(cache))


def read_wheel(wheel: Path) -> Dataset:
    """Read the three tables straight from the zip; no code of the wheel is unpacked or run."""
    with zipfile.ZipFile(wheel) as archive:
        return Dataset(
            source_name=SOURCE_NAME,
            interactions=_table(archive, "inter", INTERACTION_COLUMNS),
            users=_table(archive, "user", USER_COLUMNS),
            items=_table(archive, "item", ITEM_COLUMNS),
        )


def _table(archive: zipfile.ZipFile, suffix: str, types: Mapping[str, str]) -> pd.DataFrame:
    """Read one atomic file: tab-separated, its header fields written ``name:kind``."""
    with archive.open(_MEMBER.format(suffix)) as member:
        # 'none' is an occupation and may not be read as a missing value.
        frame = pd.read_csv(member, sep="\t", encoding="utf-8", keep_default_na=False)
    frame.columns = frame.columns.str.partition(":").get_level_values(0)
    fields = [_SOURCES.get(name, name) for name in types]
    return frame.loc[:, fields].set_axis(list(types), axis=1).astype(dict(types))
