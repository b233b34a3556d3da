"""What Spark would do, or did: jobs started, and the nodes of a plan. The only place that reaches into the JVM."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOB_FAILED: Final = (PySparkException, Py4JJavaError)
"""What an action raises whose job fails; of two stages that fail at once, an error that pyspark has no class for."""

PYTHON_NODE = re.compile(r"MapIn\w+|ArrowEvalPython|BatchEvalPython|FlatMap\w*In\w+|AggregateInPandas|WindowInPandas")
_STAGES = ("ShuffleQueryStageExec", "BroadcastQueryStageExec", "TableCacheQueryStageExec", "ResultQueryStageExec")
_GROUP = ("spark.jobGroup.id", "spark.job.description")


@dataclass(frozen=True)
class Node:
    """A node of a physical plan.

    Attributes
    ----------
    name : str
        Class of the node without ``Exec``, such as ``ShuffleExchange``.
    text : str
        The node as Spark prints it, in one line.
    partitioning : str
        Kind of partitioning of its output, such as ``HashPartitioning``.
    children : tuple of Node
        Nodes below; the stages of adaptive execution are looked through.
    """

    name: str
    text: str
    partitioning: str
    children: tuple[Node, ...] = field(repr=False)

    def walk(self, *, into_broadcasts: bool = True) -> Iterator[Node]:
        """Give the node and all nodes below it."""
        yield self
        if self.name == "BroadcastExchange" and not into_broadcasts:
            return
        for child in self.children:
            yield from child.walk(into_broadcasts=into_broadcasts)

    @property
    def is_hash_exchange(self) -> bool:
        """Whether rows are moved by a hash here; a reused exchange moves none."""
        return self.name == "ShuffleExchange" and self.partitioning == "HashPartitioning"


@contextmanager
def no_spark_jobs(spark: SparkSession) -> Iterator[None]:
    """Fail when the block starts a Spark job."""
    context = spark.sparkContext
    group = f"no-jobs-{uuid.uuid4()}"
    before = {key: context.getLocalProperty(key) for key in _GROUP}
    context.setJobGroup(group, "no job is expected here")
    try:
        yield
        jobs = list(context.statusTracker().getJobIdsForGroup(group))
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type]  # None removes it, the stub does not know
    assert jobs == [], f"{len(jobs)} Spark jobs were started while only a plan was to be built"


@contextmanager
def counted_bytes(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """Count what the driver, which is its own executor, reads from files of this machine.

    Hadoop does not count the bytes of vectored reads, which are the default of Parquet: there are none in the block.
    """
    before, vectored = _bytes_read(spark), "parquet.hadoop.vectored.io.enabled"
    spark.conf.set(vectored, "false")
    try:
        yield lambda: _bytes_read(spark) - before
    finally:
        spark.conf.unset(vectored)


def _bytes_read(spark: SparkSession) -> int:
    jvm: Any = spark.sparkContext._jvm
    found = jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return sum(int(each.getBytesRead()) for each in found if each.getScheme() == "file")


def plan(frame: DataFrame) -> Node:
    """Return the physical plan: as it was run last, or as it would begin where the frame was not run yet."""
    return _node(_executed_plan(frame))


def final_plan(frame: DataFrame) -> Node:
    """Run the frame and return the plan that adaptive execution ended with; reuse shows nowhere else."""
    frame.collect()
    return plan(frame)


def python_nodes(frame: DataFrame) -> list[str]:
    """Name the nodes that cross into Python, each as often as it occurs."""
    return [node.name for node in plan(frame).walk() if PYTHON_NODE.search(node.name)]


def final_exchanges(frame: DataFrame) -> int:
    """Run the frame and count the hash exchanges that moved rows: reused ones and broadcasts do not count."""
    return sum(node.is_hash_exchange for node in final_plan(frame).walk(into_broadcasts=False))


def planned_exchanges(frame: DataFrame) -> int:
    """Count the hash exchanges that the plan begins with: adaptive execution can leave some out, and adds none."""
    return sum(node.is_hash_exchange for node in plan(frame).walk(into_broadcasts=False))


def exchanges_of(frame: DataFrame, table: str) -> int:
    """Run the frame and count the hash exchanges that the rows of a table, or what is made of them, go through."""
    moved = [node for node in final_plan(frame).walk(into_broadcasts=False) if node.is_hash_exchange]
    return sum(any(f"/{table}]" in below.text for below in node.walk(into_broadcasts=False)) for node in moved)


def files_read(frame: DataFrame) -> int:
    """Run the frame and count the files that its scans of tables opened."""
    again = frame.select("*")  # a plan that ran before has counted them once, and does not do so again
    again.collect()
    return sum(_files_read(_executed_plan(again)))


def _files_read(java: Any) -> Iterator[int]:  # noqa: ANN401 - an object of the JVM
    kind = str(java.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        yield from _files_read(java.executedPlan())
    elif kind in _STAGES:
        yield from _files_read(java.plan())
    elif kind == "FileSourceScanExec":
        yield int(java.metrics().apply("numFiles").value())
    else:
        below = java.children()
        for index in range(below.length()):
            yield from _files_read(below.apply(index))


def joins(frame: DataFrame) -> list[str]:
    """Name the joins of the plan, in its order from the top."""
    return [node.name for node in plan(frame).walk() if node.name.endswith("Join")]


def settings_text(spark: SparkSession) -> str:
    """Give all settings of a session as text, in one call of the JVM: ``conf.getAll`` takes some for each setting."""
    jvm: Any = spark
    return str(jvm.conf._jconf.getAllAsJava().toString())


def temporary_views(spark: SparkSession) -> list[str]:
    """Name the temporary views of a session, without the jobs by which its catalogue would list them."""
    jvm: Any = spark
    found = jvm._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return [str(found.apply(place).table()) for place in range(found.size())]


def cached_frames(spark: SparkSession) -> set[int]:
    """Identify what Spark keeps: the frames of a test, and the tables' states that Delta keeps for itself."""
    kept = spark.sparkContext._jsc.getPersistentRDDs()
    return {int(number) for number in kept}


def _executed_plan(frame: DataFrame) -> Any:  # noqa: ANN401 - an object of the JVM
    return frame._jdf.queryExecution().executedPlan()  # plans have no public interface in Python


def _node(java: Any) -> Node:  # noqa: ANN401 - an object of the JVM
    kind = str(java.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        return _node(java.executedPlan())
    if kind in _STAGES:
        return _node(java.plan())
    below = java.children()
    children = tuple(_node(below.apply(index)) for index in range(below.length()))
    partitioning = str(java.outputPartitioning().getClass().getSimpleName()) if kind == "ShuffleExchangeExec" else ""
    return Node(kind.removesuffix("Exec"), str(java.simpleString(25)), partitioning, children)
