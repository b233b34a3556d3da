"""``rankeval reconcile``: the policies and options that turn one number into another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import yaml

from rankeval_spark.apps.notebook.reconcile import Reconciliation, reconcile
from rankeval_spark.cli.tables import WRITERS
from rankeval_spark.cli.terminal import console, json_text, write_out
from rankeval_spark.errors import ConfigError, Fault, FaultsError, InvalidCallError

_ARGUMENT: Final = re.compile(r"reconcile\((\w+)=\)\.?")


def reconcile_command(
    log: str,
    held_out: str,
    measure: str,
    *,
    policies: Sequence[str],
    format_: str,
    **options: Any,  # noqa: ANN401 - those of `reconcile`
) -> None:
    """Print the combinations that turn one number into the other, as a text table or for programs."""
    given = dict(map(_read_policy, policies))
    try:
        found = reconcile(log, held_out, measure, policies=given, **options)
    except FaultsError as error:
        faults = [replace(fault, where=_ARGUMENT.sub(_to_option, fault.where).strip()) for fault in error.faults]
        raise (ConfigError if isinstance(error, InvalidCallError) else type(error))(*faults) from None
    if format_ == "json":
        write_out(json_text(_to_document(found)))
    elif format_ == "markdown":
        write_out(f"{found.to_markdown()}\n")
    elif format_ == "csv":
        write_out(WRITERS["csv"](found.to_pylist(), found.columns))
    else:
        console().print(repr(found), markup=False, highlight=False, soft_wrap=True)


def _to_option(argument: re.Match[str]) -> str:
    """Write an argument of the function as the command has it."""
    places = {"log": "LOG", "held_out": "HELD_OUT", "policies": "--policy"}
    return f"{places.get(argument[1], f'--{argument[1]}')} "


def _read_policy(text: str) -> tuple[str, Any]:
    """Read ``--policy NAME=VALUE``; ConfigError for another text."""
    name, equals, value = text.partition("=")
    if not equals or not value:
        raise ConfigError(Fault("--policy", repr(text), "NAME=VALUE", "such as --policy population=judged"))
    return name.strip(), yaml.safe_load(value)


def _to_document(found: Reconciliation) -> dict[str, Any]:
    """Return all that was found for programs."""
    names = [name for name in found.columns if name != "combination"]
    combinations: dict[int, list[dict[str, Any]]] = {}
    for row in found.to_pylist():
        combinations.setdefault(row["combination"], []).append({name: row[name] for name in names})
    steps = [{"combination": number, **found.call(number), "steps": rows} for number, rows in combinations.items()]
    numbers = {"ours": found.ours, "theirs": found.theirs, "gap": found.gap, "n_fitting": found.n_fitting}
    return {**numbers, "combinations": steps, "notes": found.sentences, "not_searched": found.not_searched}
