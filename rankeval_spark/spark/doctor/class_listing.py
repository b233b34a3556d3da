"""Keep the classes of a session for those to come: it lists them while it works, and Java archives what is listed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from rankeval_spark.spark.doctor.machine_checks import Check
from rankeval_spark.spark.runtime import class_archive
from rankeval_spark.spark.session import settings
from rankeval_spark.spark.session.builder import default_archive
from rankeval_spark.spark.session.launch import end_driver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "classes of the JVM"
_MEGABYTE: Final = 1 << 20


def settings_to_list(listed: Path) -> dict[str, str]:
    """Return the settings of a session that lists its classes in a file, if its driver is started here."""
    return settings.java_settings({}, class_archive.options_to_list(listed))


def keep_classes(session: SparkSession, listed: Path) -> Check:
    """End a session, and make the archive of its classes unless there is one that fits.

    Parameters
    ----------
    session : SparkSession
        With :func:`settings_to_list`.
    listed : Path
        Its list. Where there is none, its driver was started by others and goes on.
    """
    if not listed.is_file():
        session.stop()
        return Check(NAME, ok=True, found="those of a driver that others started are not archived")
    end_driver(session)
    java, jars = default_archive()
    name, class_path = class_archive.archive_name(java, jars), class_archive.class_path(jars)
    kept = class_archive.find_archive(name)
    if kept is not None and class_archive.fits(java, kept, class_path):
        return Check(NAME, ok=True, found=f"archived in {kept}")
    archive = class_archive.make_archive(java, name, listed=listed, class_path=class_path)
    if archive is None:
        return Check(NAME, ok=True, found="Java made no archive of them: sessions start as before, more slowly")
    return Check(NAME, ok=True, found=f"archived now, {archive.stat().st_size // _MEGABYTE} MB: {archive}")
