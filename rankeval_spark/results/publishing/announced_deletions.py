"""Deletions of whole nights that the journal announces, so that whoever comes after a crash completes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rankeval_spark import columns as C, schemas
from rankeval_spark.results import journal
from rankeval_spark.results.published_results import OF_USERS
from rankeval_spark.results.publishing.failpoints import failpoint
from rankeval_spark.results.run_record import NightKey
from rankeval_spark.results.storage import delta_log
from rankeval_spark.results.table_changes.changes import changes_of

if TYPE_CHECKING:
    from rankeval_spark.results.storage.commits import Root


def finish_deletions(root: Root, intents: Sequence[Mapping[str, Any]], *, after: datetime) -> datetime:
    """Delete what was announced, and say in one commit of ``runs`` that it is gone; return the time of that.

    Parameters
    ----------
    intents : sequence of mapping
        Rows of ``runs``, one a night; their ``n_rows`` name the tables.
    """
    changes = changes_of(root)
    for table in OF_USERS:
        nights = [NightKey(one[C.EVALUATION], one[C.EVALUATION_DATE]) for one in intents if table in one["n_rows"]]
        if nights:
            changes.delete_nights(table, nights)
            failpoint("after_deletion")
    # Nothing else is pending, so that the newest versions are what readers are to see.
    versions = {schema.name: delta_log.latest_version(root.storage, schema.name) for schema in schemas.PUBLISHED}
    done = [{**one, "status": journal.MAINTAINED, "table_versions": versions} for one in intents]
    return journal.record_all(root.spark, root.storage, done, after=after, held=[root.lock])
