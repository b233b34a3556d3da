"""``rankeval init`` of tables: what it guesses of their names, types and rows, and that the config works as it is."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from rankeval_spark.apps import first_config, sampled_tables
from rankeval_spark.config import load_config
from tests.support import nights
from tests.support.cli import Finished, rankeval
from tests.support.nights import FIRST, SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from rankeval_spark.config import EvaluationConfig

N_USERS = 60


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_parquet(path: Path, **columns: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def of_users(n_items: int = 12) -> tuple[list[int], list[int]]:
    return [n // n_items for n in range(N_USERS * n_items)], [n % n_items for n in range(N_USERS * n_items)]


def write_plain(folder: Path) -> None:
    """Write lists and judgements that need no guess."""
    users, items = of_users()
    write_parquet(folder / "lists.parquet", user_id=users, item_id=items, score=[float(-n) for n in items])
    write_parquet(folder / "truth.parquet", user_id=users[::5], item_id=items[::5])


def write_events(folder: Path, *kinds: str, column: str = "event", **more: list[Any]) -> None:
    """Write lists, and events of some kinds in turn."""
    write_plain(folder)
    users, items = of_users()
    events = [kinds[n % len(kinds)] for n in range(len(users))]
    write_parquet(folder / "truth.parquet", user_id=users, item_id=items, **{column: events}, **more)


def init(config: str = "conf/mine.yaml", **tables: str) -> Finished:
    given = {"recommendations": "lists.parquet", "held_out": "truth.parquet", **tables}
    options = [part for name, path in given.items() if path for part in (f"--{name.replace('_', '-')}", path)]
    return rankeval("init", config, *options)


def written(config: str = "conf/mine.yaml", **tables: str) -> EvaluationConfig:
    done = init(config, **tables)
    assert (done.code, done.err) == (0, ""), done
    assert rankeval("validate", config).code == 0
    return load_config(config)


def conditions(config: EvaluationConfig) -> list[tuple[str, str, object]]:
    return [(each.column, each.op, each.value) for each in config.inputs.held_out.filters]


def test_a_guessed_config_runs_as_it_is(folder: Path) -> None:
    made = nights.workspace(folder / "workspace")

    done = init(recommendations="workspace/inputs/recommendations", held_out="workspace/inputs/held_out")

    assert (
        done.out.splitlines()[-1] == f"check the guesses in it, then: rankeval validate conf/mine.yaml --date {SECOND}"
    )
    config = load_config("conf/mine.yaml")
    assert config.inputs.recommendations.columns == {name: name for name in ("model_id", "user_id", "item_id", "score")}
    assert [each.column for each in config.inputs.held_out.filters] == ["day"]
    assert config.comparisons is not None
    assert config.comparisons.baseline == "pop"
    ran = rankeval("run", "conf/mine.yaml", "--date", FIRST, "--set", "cutoffs=[1]")
    assert ran.code == 0, ran.err
    shown = rankeval("show", folder / "conf" / "results", "--measure", "Success", "--model", "als", "--json")
    assert '"value": 0.25,' in shown.out  # of ann, bob, eve and kim only ann; ida has nothing relevant
    assert made.root != str(folder / "conf" / "results")


def test_columns_are_guessed_by_name_part_of_a_name_and_type(folder: Path) -> None:
    users, items = of_users()
    columns: dict[str, list[Any]] = {
        "customerId": users,
        "movie_number": items,
        "Algo": ["a"] * len(users),
        "pos": items,
    }
    write_parquet(folder / "lists.parquet", **columns)
    write_parquet(folder / "truth.parquet", who=users, ProductID=items, stars=[n % 5 for n in items])

    config = written()

    lists, truth = config.inputs.recommendations, config.inputs.held_out
    assert lists.columns == {"model_id": "Algo", "user_id": "customerId", "item_id": "movie_number", "rank": "pos"}
    assert lists.ranks_from == 0
    assert truth.columns == {"user_id": "who", "item_id": "ProductID"}
    assert truth.gains is not None
    assert truth.gains.model_dump() == {"column": "stars", "values": {}, "edges": (3,)}
    text = (folder / "conf" / "mine.yaml").read_text()
    assert "user_id: customerId                   # guessed by its name\n" in text
    assert "item_id: movie_number                 # guessed by a part of its name\n" in text
    assert "user_id: who                          # guessed by its type: no other column is left\n" in text
    reason = "ratings from 0 to 4: else a 1 is relevant too; 33.3 % are 3 or more"
    assert f"{'    gains:':<43} # {reason}\n      column: stars\n" in text


def test_ids_that_are_text_in_one_input_are_text_in_all(folder: Path) -> None:
    write_plain(folder)
    (folder / "truth.csv").write_text("user_id,item_id\n1,1\n")

    config = written(held_out="truth.csv")

    assert config.inputs.recommendations.types == {"user_id": "string", "item_id": "string"}
    assert config.inputs.held_out.types == {}
    assert written("other.yaml").inputs.recommendations.types == {}


def test_separator_and_newest_date_of_csv_are_found(folder: Path) -> None:
    write_plain(folder)
    for day in ("2026-01-01", "2026-01-02"):
        (folder / f"truth-{day}.csv").write_text("user_id;item_id;rating\n1;1;4\n")

    truth = written(held_out="truth-{date}.csv").inputs.held_out
    assert (truth.options, truth.columns["gain"]) == ({"sep": ";"}, "rating")
    assert truth.location(dt.date(2026, 1, 2)) == str(folder / "truth-2026-01-02.csv")


def test_segments_are_columns_with_few_values_and_bands_of_numbers(folder: Path) -> None:
    write_plain(folder)
    users = range(N_USERS)
    write_parquet(
        folder / "users.parquet",
        user_id=[*users],
        country=["AT" if n % 2 else "DE" for n in users],
        age=[18 + n for n in users],
        email=[f"{n}@example.org" for n in users],
        planet=["earth" for n in users],
    )

    config = written(segments="users.parquet")

    assert config.slices == (("country",), ("age",))
    assert [*config.slicing.bands] == ["age"]
    assert "# other columns of segments: email, planet\n" in (folder / "conf" / "mine.yaml").read_text()


def test_the_catalogue_and_training_data_are_guessed(folder: Path) -> None:
    write_plain(folder)
    users, items = of_users()
    write_parquet(folder / "train.parquet", user_id=users, item_id=items, ts=[1_700_000_000 + n for n in items])
    (folder / "items.csv").write_text("item,genres,release_date\n1,Drama|Crime,1999-01-01\n")

    config = written(train="train.parquet", items="items.csv")

    assert config.inputs.train is not None
    assert config.inputs.train.columns["interacted_at"] == "ts"
    assert config.inputs.items is not None
    assert config.inputs.items.columns == {"item_id": "item", "categories": "genres", "published_at": "release_date"}
    assert config.inputs.items.list_separator == "|"


@pytest.mark.parametrize(
    ("columns", "nested"),
    [
        pytest.param(
            {"recommendations": [[{"movieId": n, "rating": -float(n)} for n in range(12)]] * N_USERS},
            {"items": "recommendations.movieId", "scores": "recommendations.rating"},
            id="MLlib",
        ),
        pytest.param(
            {"item_ids": [[*range(12)]] * N_USERS, "scores": [[-float(n) for n in range(12)]] * N_USERS},
            {"items": "item_ids", "scores": "scores"},
            id="two arrays",
        ),
        pytest.param({"shown": [[*range(12)]] * N_USERS}, {"items": "shown", "scores": None}, id="by type"),
    ],
)
def test_arrays_are_lists(folder: Path, columns: dict[str, list[Any]], nested: dict[str, str | None]) -> None:
    write_plain(folder)
    write_parquet(folder / "lists.parquet", userId=[*range(N_USERS)], **columns)

    config = written()

    log = config.inputs.recommendations
    assert log.nested is not None
    assert log.nested.model_dump(exclude={"separator"}) == nested
    assert log.columns == {"user_id": "userId"}
    assert config.cutoffs == (5, 10)
    text = (folder / "conf" / "mine.yaml").read_text()
    assert f"{'    nested:':<43} # a row is a whole list, guessed by the types\n" in text
    assert "not read" not in text
    ran = rankeval("run", "conf/mine.yaml", "--date", FIRST)
    assert ran.code == 0, ran.err


def test_guessed_shapes_are_shown(folder: Path) -> None:
    write_events(folder, "view", "buy", column="action")
    write_parquet(folder / "lists.parquet", user_id=[*range(N_USERS)], items=[[1, 2]] * N_USERS)

    shown = init().out.splitlines()

    assert "recommendations: a row is a whole list, guessed by the types: items" in shown
    assert "held_out: gains of action, guessed by the names of the events: buy 3, view 1" in shown


def test_arrays_of_numbers_are_text_where_the_other_input_has_text(folder: Path) -> None:
    write_plain(folder)
    write_parquet(folder / "lists.parquet", user_id=[*range(N_USERS)], items=[[1, 2]] * N_USERS)
    (folder / "truth.csv").write_text("user_id,item_id\n1,1\n")

    assert written(held_out="truth.csv").inputs.recommendations.types == {"user_id": "string", "item_id": "string"}


def test_a_log_with_items_and_other_arrays_is_flat(folder: Path) -> None:
    write_plain(folder)
    users, items = of_users()
    tags = [["a", "b"]] * len(users)
    write_parquet(folder / "lists.parquet", user_id=users, item_id=items, score=[1.0] * len(users), item_tags=tags)

    assert written().inputs.recommendations.nested is None


def test_events_have_gains_by_their_names(folder: Path) -> None:
    write_events(folder, "view", "add_to_cart", "purchase", "hide", "beamed")

    gains = written().inputs.held_out.gains

    assert gains is not None
    assert gains.column == "event"
    assert gains.values == {"purchase": 3, "add_to_cart": 2, "beamed": 1, "view": 1, "hide": 0}
    text = (folder / "conf" / "mine.yaml").read_text()
    assert "# guessed by the names of the events: what is each worth?\n" in text
    assert "# unknown, so 1: beamed\n" in text
    assert "not read" not in text


@pytest.mark.parametrize(
    ("kind", "gain"),
    [
        *((kind, 0) for kind in ("dislike", "Unlike", "un-follow", "remove_from_cart", "removeFromCart", "hidden")),
        *((kind, 0) for kind in ("unsubscribe", "cancel_order", "orderCancelled", "return_order", "order returned")),
        *((kind, 0) for kind in ("undo_purchase", "undolike", "refund order", "removedfromcart", "unsave", "skip")),
        *((kind, 0) for kind in ("delete_from_wishlist", "cart_impression", "report", "report_view")),
        *((kind, 1) for kind in ("background_open", "sound_on", "found_on_page", "return_visit", "rerun_play")),
        *((kind, 2) for kind in ("like", "add_to_wish_list", "addtocart", "run_share", "download_report")),
        *((kind, 3) for kind in ("order", "subscribe", "returning_customer_purchase", "check-out", "Order Completed")),
    ],
)
def test_what_takes_an_event_back_comes_before_the_event(folder: Path, kind: str, gain: int) -> None:
    write_events(folder, "view", "purchase", kind)

    gains = written().inputs.held_out.gains

    assert gains is not None
    assert gains.values == {"view": 1, "purchase": 3, kind: gain}


def write_impressions(folder: Path, *, n_lists: int, **more: list[Any]) -> None:
    """Write a log in which each user was shown lists of two items, an hour apart; events are of the second items."""
    rows = [(user, n, item) for user in range(N_USERS) for n in range(n_lists) for item in (0, 1)]
    shown = [dt.datetime(2026, 1, 2, n, tzinfo=dt.UTC) for _, n, _ in rows]
    users = [user for user, _, _ in rows]
    items = [10 * n + item for _, n, item in rows]
    days = ["2026-01-02"] * len(rows)
    ranks = [item + 1 for _, _, item in rows]
    write_parquet(folder / "lists.parquet", user_id=users, item_id=items, rank=ranks, shown_at=shown, day=days)
    later = [time + dt.timedelta(days=2) for time in shown]
    write_parquet(folder / "truth.parquet", user_id=users[1::2], item_id=items[1::2], event_time=later[1::2], **more)


def test_two_tables_with_times_are_attributed(folder: Path) -> None:
    write_impressions(folder, n_lists=2)

    config = written()

    lists = config.inputs.recommendations
    assert (config.policies.attribution, config.policies.attribution_window) == ("last_touch", "7d")
    assert (lists.columns["list_id"], lists.columns["recommended_at"]) == ("shown_at", "shown_at")
    assert conditions(config) == [("event_time", ">=", "{date}"), ("event_time", "<", "{date+8}")]
    ran = rankeval("run", "conf/mine.yaml", "--date", "2026-01-02", "--set", "cutoffs=[1, 2]")
    assert ran.code == 0, ran.err
    shown = rankeval("show", folder / "conf" / "results", "--measure", "RR", "--k", "2", "--json")
    assert '"value": 0.5,' in shown.out  # of each list the second item, and no item of the other list
    assert "attribution: last_touch, because both tables have times" in init("other.yaml").out


@pytest.mark.parametrize(("visits", "is_named"), [(["1", "2"], True), (["x", "y"], False)])
def test_lists_of_judgements_are_those_of_the_log_where_they_match(
    folder: Path, visits: list[str], *, is_named: bool
) -> None:
    log: dict[str, list[Any]] = {"user_id": ["u", "u"], "session_id": [1, 2], "item_id": ["a", "b"], "rank": [1, 1]}
    write_parquet(folder / "lists.parquet", **log, recommended_at=[dt.datetime(2026, 1, 1)] * 2)
    judged = {"user_id": ["u", "u"], "session_id": visits, "item_id": ["a", "b"]}
    write_parquet(folder / "truth.parquet", **judged, interacted_at=[dt.datetime(2026, 1, 2)] * 2)

    config = written()

    assert config.inputs.recommendations.columns["list_id"] == "session_id"
    assert config.inputs.held_out.columns.get("list_id") == ("session_id" if is_named else None)
    assert config.policies.attribution == ("none" if is_named else "last_touch")


def test_days_of_events_are_those_of_the_window(folder: Path) -> None:
    write_impressions(folder, n_lists=1, day=["2026-01-04"] * N_USERS)

    config = written()

    assert "list_id" not in config.inputs.recommendations.columns
    assert conditions(config) == [("day", ">=", "{date}"), ("day", "<=", "{date+7}")]


def seconds_of(path: Path) -> None:
    """Write the times of events as seconds since 1970."""
    events = pq.read_table(path)
    seconds = [int(time.timestamp()) for time in events["event_time"].to_pylist()]
    pq.write_table(events.set_column(events.column_names.index("event_time"), "event_time", [seconds]), path)


def test_events_that_no_filter_keeps_to_the_window_are_marked_with_what_to_add(folder: Path) -> None:
    write_impressions(folder, n_lists=1)
    seconds_of(folder / "truth.parquet")

    done = init()

    told = "held_out: not filtered by day; add a column with the day of events, see NOT FILTERED in the config\n"
    assert told in done.out
    config = folder / "conf" / "mine.yaml"
    assert load_config(config).policies.attribution == "last_touch"
    assert load_config(config).inputs.held_out.filters == ()
    text = config.read_text()
    assert "    # NOT FILTERED: event_time cannot be compared with a date, so each date reads" in text
    # What it says to add, added.
    events = pq.read_table(folder / "truth.parquet")
    pq.write_table(events.append_column("day", [["2026-01-04"] * len(events)]), folder / "truth.parquet")
    head, filters = text.split("    # filters:\n")
    config.write_text(f"{head}    filters:\n{filters.replace('    #   - ', '      - ')}")
    assert conditions(load_config(config)) == [("day", ">=", "{date}"), ("day", "<=", "{date+7}")]
    ran = rankeval("run", config, "--date", "2026-01-02", "--set", "cutoffs=[1, 2]")
    assert ran.code == 0, ran.err
    assert "NOT FILTERED" not in init("other.yaml").out


@pytest.mark.parametrize("is_dated", [True, False], ids=["events have a file a date", "nothing has dates"])
def test_events_that_need_no_filter_are_not_marked(folder: Path, *, is_dated: bool) -> None:
    write_impressions(folder, n_lists=1)
    seconds_of(folder / "truth.parquet")
    if is_dated:
        (folder / "truth.parquet").rename(folder / "truth-2026-01-02.parquet")
    else:
        pq.write_table(pq.read_table(folder / "lists.parquet").drop_columns(["day"]), folder / "lists.parquet")

    done = init(held_out="truth-{date}.parquet" if is_dated else "truth.parquet")

    assert "attribution: last_touch" in done.out
    assert "NOT FILTERED" not in done.out + (folder / "conf" / "mine.yaml").read_text()


def test_times_of_one_table_attribute_nothing(folder: Path) -> None:
    write_impressions(folder, n_lists=1)
    users, items = of_users()
    write_parquet(folder / "truth.parquet", user_id=users, item_id=items)

    config = written()

    assert config.policies.attribution == "none"
    assert config.inputs.held_out.filters == ()


@pytest.mark.parametrize("kinds", [["view"], ["view", "click"], [f"purchase {n}" for n in range(30)] + ["view"]])
def test_events_of_one_gain_or_of_many_kinds_have_none(folder: Path, kinds: list[str]) -> None:
    write_events(folder, *kinds)

    assert written().inputs.held_out.gains is None


def test_ratings_come_before_events(folder: Path) -> None:
    write_events(folder, "view", "buy", rating=of_users()[1])

    truth = written().inputs.held_out
    assert (truth.columns["gain"], truth.gains) == ("rating", None)
    assert "From 4 on: gains: {column: rating, edges: [4]}" in (folder / "conf" / "mine.yaml").read_text()


def test_partitions_of_parquet_are_dates(folder: Path) -> None:
    write_plain(folder)
    for day in ("2026-01-01", "2026-01-02"):
        write_parquet(folder / "lists" / f"day={day}" / "p.parquet", user_id=[1], item_id=[1], score=[1.0])

    done = init(recommendations="lists")

    assert done.out.splitlines()[-1].endswith("--date 2026-01-02")
    assert [each.column for each in load_config("conf/mine.yaml").inputs.recommendations.filters] == ["day"]


def test_what_init_writes_is_what_advise_says_of_it(folder: Path) -> None:
    users, items = of_users()
    scores = [round(1 - n / 24, 1) for n in items]
    write_parquet(folder / "lists.parquet", user_id=users, item_id=items, score=scores)
    stars = [(5, 4, 4, 2, 5, 1, 3)[n % 7] for n in range(len(users[::5]))]
    write_parquet(folder / "truth.parquet", user_id=users[::5], item_id=items[::5], rating=stars)
    write_parquet(folder / "users.parquet", user_id=[*range(N_USERS)], country=["AT", "DE"] * (N_USERS // 2))

    config = written(segments="users.parquet")

    gains = config.inputs.held_out.gains
    assert gains is not None
    assert [*gains.edges] == [4]
    text = (folder / "conf" / "mine.yaml").read_text()
    assert f"{'  - country':<43} # 2 values, the smallest with 2" in text
    said = json.loads(rankeval("advise", "conf/mine.yaml", "--json").out)
    assert tuple(said["settings"]["measures"]) == config.measures
    assert tuple(said["settings"]["cutoffs"]) == config.cutoffs == (5, 10)
    for row in said["advice"]:
        assert row["kind"] not in ("measure", "policy", "slice") or f"# {row['reason']}\n" in text, row
    assert [row["key"] for row in said["advice"] if row["kind"] == "warning"] == ["ties", "small slices"]


def test_rows_that_cannot_be_read_are_said_and_the_usual_measures_advised(folder: Path) -> None:
    write_plain(folder)
    users, items = of_users()
    shown = pa.array(range(len(users)), pa.timestamp("ns"))
    log = pa.table({"user_id": users, "item_id": items, "score": [0.5] * len(users), "other": shown})
    pq.write_table(log, folder / "lists.parquet", version="2.6")

    done = init()

    told = "rows were not looked at, so measures and cutoffs are the usual ones: "
    assert any(line.startswith(told) and "ns" in line for line in done.out.splitlines()), done.out
    assert load_config("conf/mine.yaml").measures == ("nDCG", "AP", "R", "RR", "Success")


def test_a_column_that_is_not_found_is_said(folder: Path) -> None:
    write_plain(folder)
    write_parquet(folder / "odd.parquet", a=["x"], b=["y"], c=["z"])

    done = init(held_out="odd.parquet")

    assert done.code == 0
    assert "not found: held_out.user_id; write its column into the config\n" in done.out
    assert "# NOT FOUND, write one of: a, b, c\n" in (folder / "conf" / "mine.yaml").read_text()
    assert rankeval("validate", "conf/mine.yaml").code == 0


def test_hostile_names_stay_names(folder: Path) -> None:
    write_plain(folder)
    users = [*range(N_USERS)]
    name = "country\nevil: true #"
    write_parquet(folder / "users.parquet", user_id=users, **{name: ["a" if n % 2 else "b" for n in users]})
    write_parquet(folder / "truth.parquet", **{"user id: {x}": users, "item #1": users})

    config = written(segments="users.parquet")

    assert config.slices == ()
    assert config.inputs.held_out.columns == {"user_id": "user id: {x}", "item_id": "item #1"}


def test_models_of_the_whole_log_are_seen(folder: Path) -> None:
    write_plain(folder)
    n_rows = 12_000
    rows = pa.table(
        {
            "model": ["new"] * n_rows + ["popular"],
            "user_id": ["u"] * (n_rows + 1),
            "item_id": [f"{n}" for n in range(n_rows + 1)],
            "score": [0.5] * (n_rows + 1),
        }
    )
    deltalake.write_deltalake(folder / "log", rows)

    config = written(recommendations="log")

    assert config.comparisons is not None
    assert config.comparisons.baseline == "popular"


@pytest.mark.parametrize(
    ("tables", "code", "found"),
    [
        ({"held_out": ""}, 2, "--held-out: found none; expected the lists and what users did, both"),
        ({"held_out": "none.csv"}, 4, "--held-out: found no such path at none.csv"),
        (
            {"held_out": "hdfs://server/truth"},
            2,
            "'hdfs://server/truth'; expected a folder or file of this machine or of an object store",
        ),
        ({"held_out": "notes.txt"}, 2, "--held-out: found files of no known format at notes.txt"),
        ({"held_out": "broken.parquet"}, 4, "--held-out: found a table that cannot be read"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(folder: Path, tables: dict[str, str], code: int, found: str) -> None:
    write_plain(folder)
    for name in ("notes.txt", "broken.parquet"):
        (folder / name).write_text("text")

    done = init(**tables)

    assert (done.code, done.out) == (code, "")
    done.assert_readable()
    assert found in done.message
    assert not (folder / "conf").exists()


def test_a_link_out_of_the_allowed_folders_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plain(folder)
    allowed = folder / "allowed"
    (allowed / "truth").mkdir(parents=True)
    write_parquet(allowed / "lists.parquet", user_id=[1], item_id=[1], score=[1.0])
    (allowed / "truth" / "part.parquet").symlink_to(folder / "truth.parquet")
    monkeypatch.setenv("RANKEVAL_ROOTS", str(allowed))

    done = init("allowed/mine.yaml", recommendations="allowed/lists.parquet", held_out="allowed/truth")

    assert done.code == 2
    assert "RANKEVAL_ROOTS says so" in done.message
    assert init("allowed/mine.yaml", recommendations="lists.parquet", held_out="truth.parquet").code == 2
    assert [path.name for path in allowed.iterdir() if path.suffix == ".yaml"] == []


def test_a_guessed_config_replaces_nothing(folder: Path) -> None:
    write_plain(folder)
    (folder / "mine.yaml").write_text("mine")

    done = init("mine.yaml")

    assert done.code == 2
    assert "found an existing file or folder; expected a new file" in done.message
    assert (folder / "mine.yaml").read_text() == "mine"


def test_results_need_tables(folder: Path) -> None:
    done = rankeval("init", "mine.yaml", "--results", "results")

    assert done.code == 2
    assert "--results: found no tables; expected --recommendations and --held-out with it" in done.message
    assert not (folder / "mine.yaml").exists()


def write_days(folder: Path, name: str, **others: list[Any]) -> None:
    """Write a table of each of three days, whose second column says which."""
    users, items = of_users()
    for day in ("2026-01-01", "2026-01-02", "2026-01-05"):
        write_parquet(folder / name.replace("{}", day), user_id=users, item_id=items, **others)


def test_a_folder_of_days_is_read_a_day_at_a_time(folder: Path) -> None:
    write_days(folder, "logs/{}/part.parquet", score=[1.0] * N_USERS * 12)
    write_days(folder, "truth/of-{}.parquet")
    write_days(folder, "past/{}.parquet")
    (folder / "logs" / "_SUCCESS").touch()

    done = init(recommendations="logs/", held_out="truth", train="past")

    inputs = load_config("conf/mine.yaml").inputs
    assert (inputs.recommendations.path, inputs.held_out.path) == ("../logs/{date}", "../truth/of-{date}.parquet")
    assert inputs.train is not None
    assert inputs.train.path == "../past"  # models learn from all days
    assert "recommendations: a folder of days, read as logs/{date}\n" in done.out
    assert done.out.endswith("rankeval validate conf/mine.yaml --date 2026-01-05\n")
    checked = rankeval("validate", "conf/mine.yaml", "--date", "2026-01-02")
    assert (checked.code, checked.out.count(f"{N_USERS * 12} ")) == (0, 2)
    assert rankeval("run", "conf/mine.yaml", "--date", "2026-01-02").code == 0
    missing = rankeval("validate", "conf/mine.yaml", "--date", "2026-01-03")
    assert "logs has 3 other days: the nearest are 2026-01-02 and 2026-01-05" in missing.message


def test_folders_with_other_files_or_partitions_are_read_whole(folder: Path) -> None:
    write_days(folder, "logs/date={}/part.parquet", score=[1.0] * N_USERS * 12)
    write_days(folder, "truth/{}.parquet")
    write_parquet(folder / "truth" / "older.parquet", user_id=[1], item_id=[1])

    inputs = written(recommendations="logs", held_out="truth").inputs

    assert (inputs.recommendations.path, inputs.held_out.path) == ("../logs", "../truth")
    assert [each.column for each in inputs.recommendations.filters] == ["date"]


def test_events_that_are_attributed_are_of_several_days(folder: Path) -> None:
    at = [dt.datetime(2026, 1, 1)] * N_USERS * 12
    write_days(folder, "logs/{}/part.parquet", score=[1.0] * N_USERS * 12, recommended_at=at)
    write_days(folder, "truth/{}.parquet", interacted_at=at)

    inputs = written(recommendations="logs", held_out="truth").inputs

    assert (inputs.recommendations.path, inputs.held_out.path) == ("../logs/{date}", "../truth")


def write_shuffled(folder: Path, format_: str, *, n_users: int = 4000, n_items: int = 17) -> None:
    """Write lists whose rows are in no order, and whose models come one after the other."""
    shuffled = np.random.default_rng(7).permutation(n_users * n_items)
    users, items = shuffled // n_items, shuffled % n_items
    columns = {
        "userId": [*users.tolist(), 0],
        "movieId": [*items.tolist(), 0],
        "prediction": [*(-items / 2).tolist(), 0.0],
    }
    rows = pa.table({**columns, "model": ["als"] * len(users) + ["popular"]})
    folder.mkdir(parents=True, exist_ok=True)
    if format_ == "parquet":
        pq.write_table(rows, folder / "lists.parquet", row_group_size=5000)
    elif format_ == "csv":
        pa_csv.write_csv(rows, folder / "lists.csv")
    else:
        (folder / "lists.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_pylist()))


@pytest.mark.parametrize("format_", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("max_users", [2_000, 25])
def test_cutoffs_are_those_of_whole_lists_wherever_their_rows_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch, format_: str, max_users: int
) -> None:
    monkeypatch.setattr(first_config, "MAX_ROWS", 1_000)
    monkeypatch.setattr(first_config, "MAX_USERS", max_users)
    write_shuffled(folder, format_)
    write_parquet(folder / "truth.parquet", userId=[1, 2], movieId=[0, 1])

    config = written(recommendations=f"lists.{format_}")

    assert config.cutoffs == (5, 10)
    assert config.comparisons is not None
    assert config.comparisons.baseline == "popular"  # in the last row


def test_rows_of_some_users_are_all_of_theirs_and_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_tables, "MAX_USERS", 25)
    write_shuffled(folder, "parquet")

    rows = sampled_tables.sample_table("--recommendations", "lists.parquet").read_users(["movieId"], "userId")

    counts = rows.filter(pc.field("userId") > 0).group_by("userId").aggregate([([], "count_all")])["count_all"]
    assert counts.unique().to_pylist() == [17]
    assert 24 * 17 <= rows.num_rows <= 25 * 17 + 1  # user 0 has a row of another model


@pytest.mark.parametrize(
    ("tables", "measures"),
    [
        ((), ()),
        (("train",), ("ItemCoverage", "MIUF", "ARP")),
        (("items",), ("ItemCoverage", "ILD(sim='jaccard')", "Freshness")),
        (("train", "items"), ("ItemCoverage", "MIUF", "ARP", "ILD(sim='jaccard')", "Calibration", "Freshness")),
    ],
)
@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_measures_of_the_catalogue_and_of_training_data_run_where_they_were_written(
    folder: Path, format_: str, tables: tuple[str, ...], measures: tuple[str, ...]
) -> None:
    users, items = of_users()
    day = "2026-01-02"
    rows = {
        "lists": pa.table({"userId": users, "movieId": items, "prediction": [float(-n) for n in items]}),
        "truth": pa.table({"userId": users[::5], "movieId": items[::5]}),
        "train": pa.table({"userId": users[::3], "movieId": items[::3], "timestamp": [10**9] * len(users[::3])}),
        "items": pa.table(
            {"movieId": [*range(12)], "genres": ["Drama|War"] * 12, "release_date": [dt.date(1999, 1, 1)] * 12}
        ),
    }
    for name, table in rows.items():
        path = folder / name / (f"day={day}" if name in ("lists", "truth") else "") / f"part-0.{format_}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if format_ == "parquet":
            pq.write_table(table, path)
        elif format_ == "csv":
            pa_csv.write_csv(table, path)
        else:
            path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in table.to_pylist()))

    config = written(recommendations="lists", held_out="truth", **{name: name for name in tables})

    assert config.measures[5:] == measures
    assert [gate.against for gate in config.gates] == ["previous"] * bool(measures)
    checked = rankeval("validate", "conf/mine.yaml", "--date", day)
    assert "would run in this process, without Spark\n" in checked.out, checked.err
    ran = rankeval("run", "conf/mine.yaml", "--date", day)
    assert (ran.code, "published mine 2026-01-02" in ran.out) == (0, True), ran.err
