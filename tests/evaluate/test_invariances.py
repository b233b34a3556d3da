"""What must not matter on the whole way: the order and the chunks of rows, who is who, the number of threads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from rankeval_spark import evaluate
from tests.support.arrow_frames import by, dicts
from tests.support.logs import USERS, Logs
from tests.support.threads import threads

if TYPE_CHECKING:
    import pyarrow as pa

    from rankeval_spark import Evaluation

LOGS: Final = Logs.make(seed=20261121)
AT_3: Final = (
    *("P", "P(denom='len')", "R", "F1", "Success", "RR", "AP", "AP(denom='min')", "ARHR", "MAR(kind='cutoffs')"),
    *("MeanP", "FirstHit", "NumHits", "CG", "nCG", "DCG", "nDCG", "nDCG(dcg='exp-log2')", "ERR", "nERR", "PAUC", "PAP"),
    *("RBP(rel=1)", "RBPResidual", "Judged", "unj", "RecallCeiling", "LogAP", "Rprec"),
)
WHOLE: Final = (
    *("AP", "nDCG(ideal='retrieved')", "RR", "Rprec_mult(x=2)", "IPrec@0.5", "IPrecAvg", "IPrecArea", "Bpref", "infAP"),
    *("SetP", "SetR", "SetF"),
)
MEASURES: Final = (*(f"{name}@3" for name in AT_3), *WHOLE)
COLUMNS: Final = (
    "value",
    "std_dev",
    "std_error",
    "ci_low",
    "ci_high",
    "n_users",
    "n_undefined",
    "n_missing",
    "tie_share",
)

Numbers = dict[Any, Any]


def evaluated(logs: Logs, *, n_chunks: int = 2, seed: int | None = None) -> Evaluation[pa.Table]:
    """Evaluate with every measure, for everyone and by country."""
    tables = logs.tables(seed=seed).in_chunks(n_chunks)
    return evaluate(
        tables.recommendations, tables.held_out, measures=MEASURES, segments=tables.segments, slices=["country"]
    )


def of_users(result: Evaluation[pa.Table]) -> Numbers:
    """Value by model, measure, cutoff and user."""
    return by(result.user_values, "model_id", "measure", "k", "user_id", value="value")


def of_all(result: Evaluation[pa.Table]) -> Numbers:
    """Columns of ``metrics`` by model, country, measure and cutoff; the country of everyone is 'all'."""
    rows = dicts(result.metrics)
    found = {
        (row["model_id"], _country(row), row["measure"], row["k"]): {name: row[name] for name in COLUMNS}
        for row in rows
    }
    assert len(found) == len(rows)
    return found


def _country(row: dict[str, Any]) -> str:
    return "all" if row["slice"] == "all" else row["slice_values"][0] or "unknown"


def renamed(logs: Logs) -> tuple[Logs, dict[str, str]]:
    """Give the users each other's names; return the old name of each new one."""
    new = {user: user * 7 % USERS for user in range(USERS)}
    assert len(set(new.values())) == USERS
    changed = Logs(
        recommendations=[(model, new[user], item, score) for model, user, item, score in logs.recommendations],
        held_out=[(new[user], item, gain) for user, item, gain in logs.held_out],
        segments=[(new[user], country, tier) for user, country, tier in logs.segments],
    )
    return changed, {f"{number:03}": f"{user:03}" for user, number in new.items()}


@pytest.fixture(scope="module")
def expected() -> tuple[Numbers, Numbers]:
    """Values of users and means of the logs as they come."""
    result = evaluated(LOGS)
    return of_users(result), of_all(result)


def assert_close(found: Numbers, wanted: Numbers) -> None:
    """Compare rows within 1e-12; nothing but None equals None."""
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        assert numbers_of(found[key]) == pytest.approx(numbers_of(row), rel=0, abs=1e-12), key


def numbers_of(row: dict[str, Any]) -> dict[str, float]:
    """Leave out what is NULL, which has no distance from anything."""
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(("n_chunks", "n_threads"), [(1, 1), (64, 3)])
def test_order_chunks_names_and_threads_change_nothing(
    expected: tuple[Numbers, Numbers], n_chunks: int, n_threads: int
) -> None:
    """Values of users bit for bit, means within 1e-12."""
    logs, old_name = renamed(LOGS)
    with threads(n_threads):
        result = evaluated(logs, n_chunks=n_chunks, seed=n_chunks)
    values = {(*key, old_name[user]): value for (*key, user), value in of_users(result).items()}
    assert values == expected[0]
    assert_close(of_all(result), expected[1])


def test_unjudged_user_changes_no_mean_and_a_missing_one_divides_it_by_one_more(
    expected: tuple[Numbers, Numbers],
) -> None:
    extra, missing = USERS, USERS + 1
    more = replace(
        LOGS,
        recommendations=[*LOGS.recommendations, *(("als", extra, item, 0.5) for item in range(5))],
        held_out=[*LOGS.held_out, (missing, 0, 3.0)],
    )

    found = of_all(evaluated(more))

    for (model, country, measure, k), row in expected[1].items():
        after = found[model, country, measure, k]
        is_his = country in {"all", "unknown"}
        assert after["n_users"] == row["n_users"] + is_his, measure
        if not measure.startswith(("LogAP", "RBPResidual")):  # which are not 0 without a list
            mean = row["value"] * row["n_users"] / after["n_users"]
            assert after["value"] == pytest.approx(mean, rel=0, abs=1e-12), (model, country, measure, k)
