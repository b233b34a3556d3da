"""What somebody might write into a config or on the command line to get further than a config goes."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from rankeval_spark import errors
from rankeval_spark.apps.nightly.night import run_night
from rankeval_spark.config import (
    Filter,
    check_roots,
    load_config,
    parse_date,
    spark_settings,
    validate_model,
    yaml_reader,
)
from rankeval_spark.errors import ConfigError, visible, without_secrets
from tests.support.cli import rankeval

if TYPE_CHECKING:
    from pathlib import Path

DATE = dt.date(2026, 1, 2)
PLANTED = "hunter2/planted+Secret"

TABLE = "inputs.segments.table"
PATH = "inputs.recommendations.path"
FILTERS = "inputs.held_out.filters"
SETTINGS = "spark.settings"


def refusal(path: Path, *overrides: str) -> str:
    """Load a config that must be refused and return the whole message."""
    with pytest.raises(ConfigError) as raised:
        load_config(path, overrides)
    return str(raised.value)


@pytest.mark.parametrize(
    "table",
    [
        "text.`/etc/passwd`",
        "parquet.`/x`",
        "`a.b`",
        "a`.b",
        "delta./etc",
        "csv.users",
        "binaryFile.users",
        "users; DROP TABLE users",
        "users WHERE 1=1",
        "users -- x",
        "users OR 1=1",
        "${env:HOME}",
        "(SELECT reflect('java.lang.System', 'getenv', 'HOME'))",
        "a..b",
        ".a",
        "a.b.c.d",
        "tabl\u0435\n",
        "users@v1",
        "",
    ],
)
def test_table_name_is_letters_and_dots_and_no_file(config_file: Path, table: str) -> None:
    assert "inputs.segments.table" in refusal(config_file, f'{TABLE}="{table}"'.replace("\n", "\\n"))


@pytest.mark.parametrize(
    "path",
    [
        *("http://example.org/logs", "https://example.org/logs", "ftp://example.org/logs", "jar:file:/a.jar!/b"),
        *("jdbc:postgresql://host/db", "s3n://bucket/logs", "wasbs://c@account/logs"),
        *("har://x/y", "webhdfs://host/x", "data:text/plain,x", "JAVASCRIPT:alert(1)", "file://host/etc/passwd"),
        *("FILE://host/etc/passwd", "s3a://key:word@bucket/logs", "s3a://AKIA:with/slash@bucket/logs"),
        *("s3a://token@bucket/logs", "gs://token@bucket/logs", "abfss://c@account/logs?sv=2024&sig=abc"),
        *("logs/${env:HOME}", "logs/{user}", "logs\\n/etc", "logs\\u0000", "logs\\u202e"),
    ],
)
def test_path_names_a_known_file_system_and_no_secret(config_file: Path, path: str) -> None:
    assert "inputs.recommendations.path" in refusal(config_file, f'{PATH}="{path}"')


@pytest.mark.parametrize(
    "path",
    [
        *("../logs/{date}", "/data/x", "file:///data/x", "abfss://c@a.example/x", "s3a://b/x"),
        *("s3://b/x", "az://c/x"),
        *("viewfs://host/x", "abfs://c@a.example/x", "gs://b/x", "hdfs://me@host/x", "dbfs:/x"),
    ],
)
def test_path_of_a_known_file_system_is_accepted(config_file: Path, path: str) -> None:
    load_config(config_file, [f'{PATH}="{path}"'])


@pytest.mark.parametrize(
    "given",
    [
        "1=1 OR TRUE",
        ["1=1"],
        {"sql": "1=1"},
        {"column": "a", "op": "= 1 OR 1", "value": 1},
        {"column": "a", "op": "like", "value": "%"},
        {"column": "a", "op": "=", "value": {"expr": "1=1"}},
        {"column": "a", "op": "=", "value": "${env:HOME}"},
        {"column": "a", "op": "=", "value": None},
        {"column": "", "op": "=", "value": 1},
        {"column": "a", "op": "=", "value": 1, "or": True},
    ],
)
def test_filter_is_a_column_a_comparison_and_a_value(given: Any) -> None:  # noqa: ANN401 - anything can be written
    with pytest.raises((ConfigError, ValidationError)):
        validate_model(Filter, given)


@pytest.mark.parametrize(
    "text", ["2026-01-02' OR '1'='1", "2026-01-02/../..", "{date}", "${env:HOME}", "current_date()", "2026-01-02\n"]
)
def test_date_is_a_day_and_nothing_else(text: str) -> None:
    with pytest.raises(ConfigError, match="--date"):
        parse_date(text)


ODD_NAMES = ("a/b", "..", "a b", "a'", "a`", "x=1", "a%2fb", "a\\nb", "a<b>", "${env:HOME}", "a\\u202e")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_name_of_an_evaluation_is_safe_in_a_path(config_file: Path, name: str) -> None:
    assert "evaluation" in refusal(config_file, f'evaluation="{name}"')


@pytest.mark.parametrize(
    "name",
    [
        *("rankeval.maintain", "rankeval", "Rankeval.x", "nightly.sample-0.01", "nightly.sample-1e-05"),
        "nightly.Sample-0.5",
    ],
)
def test_name_that_we_use_ourselves_is_refused(config_file: Path, name: str) -> None:
    assert f"evaluation: found '{name}'" in refusal(config_file, f"evaluation={name}").replace(f"{config_file}, ", "")


@pytest.mark.parametrize("name", ["rankevaluation", "my.rankeval", "nightly.sample", "sample-0.01", "a.sample-b.c"])
def test_name_like_ours_is_accepted(config_file: Path, name: str) -> None:
    load_config(config_file, [f"evaluation={name}"])


@pytest.mark.parametrize(
    "text",
    [
        "P(rel=reflect('java.lang.System','exit',1))@5",
        "__import__('os').system('id')",
        "P(rel=2);DROP@5",
        "nDCG@" + "9" * 90,
        "P(" * 90,
    ],
)
def test_measure_is_data_and_no_code(config_file: Path, text: str) -> None:
    assert "measures[0]" in refusal(config_file, f'measures=["{text}"]')


@pytest.mark.parametrize(
    "override",
    [
        f"slicing.min_slice_size={10**80}",
        f"inputs.recommendations.version={10**40}",
        f"results.wait_seconds={10**60}",
        f"cutoffs=[{10**90}]",
        f"intervals.confidence={10**90}",
        "intervals.confidence=1e999",
        f"intervals.seed=-{10**50}",
    ],
)
def test_huge_number_is_a_fault_and_no_overflow(config_file: Path, override: str) -> None:
    assert override.partition("=")[0].partition("[")[0] in refusal(config_file, override)


def test_digits_without_end_are_no_whole_number(config_file: Path) -> None:
    assert "min_slice_size" in refusal(config_file, f"slicing.min_slice_size={'9' * 5000}")


@pytest.mark.parametrize(
    "text",
    ["a: " * 3000, "- " * 5000 + "x", "{a: " * 500 + "1" + "}" * 500, "? " * 3000, "[" * 100_000, "&a " * 100_000],
)
def test_nesting_without_end_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        yaml_reader.parse(text, "f")


def test_override_without_end_is_refused(config_file: Path) -> None:
    deep = ".".join(["a"] * 5000)
    assert "a key of 5003 parts" in refusal(config_file, f"inputs.held_out.options.{deep}=1")


def test_long_text_is_not_multiplied_by_aliases() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 5000)}]"
    with pytest.raises(ConfigError, match="aliases that multiply a long text"):
        yaml_reader.parse(text, "f")


@pytest.mark.parametrize(
    "override",
    [
        f"{SETTINGS}.spark.hadoop.fs.s3a.secret.key={PLANTED}",
        f"{SETTINGS}.spark.hadoop.fs.s3a.access.key={PLANTED}",
        f"{SETTINGS}.spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net={PLANTED}",
        f"{SETTINGS}.spark.hadoop.fs.gs.auth.service.account.private.key={PLANTED}",
        f"{SETTINGS}.spark.hadoop.fs.s3a.encryption.key={PLANTED}",
        f"{SETTINGS}.spark.authenticate.secret={PLANTED}",
        f"{SETTINGS}.spark.driver.extraJavaOptions=-Xss4m -Djavax.net.ssl.trustStorePassword={PLANTED}",
        f"{SETTINGS}.spark.hadoop.fs.s3a.proxy.host='http://me:{PLANTED}@proxy:3128'",
        f"{SETTINGS}.spark.x.password=[{PLANTED}]",
        f"{SETTINGS}.spark.x.password=!!int {PLANTED}",
        f"{SETTINGS}={{spark.x.password: {PLANTED}, y: 1}}",
        f"{SETTINGS}.x.password={PLANTED}",
        f"spark.password={PLANTED}",
        f"{PATH}=s3a://key:{PLANTED}@bucket/logs",
        f"{PATH}='s3a://key:{PLANTED}@[bucket/{{dat}}'",
        f"{PATH}=http://key:{PLANTED}@host/x",
        f"results.root=s3a://key:{PLANTED}@bucket/r",
        f"results={{root: 's3a://key:{PLANTED}@bucket/r'}}",
        f"inputs.held_out.options.password={PLANTED}",
        f"inputs.held_out.password={PLANTED}",
        f"inputs={{password: {PLANTED}}}",
        f"models=[s3a://key:{PLANTED}@bucket, s3a://key:{PLANTED}@bucket]",
        f"cutoffs=[{PATH}=s3a://key:{PLANTED}@bucket]",
    ],
)
def test_secret_in_the_config_is_refused_and_not_repeated(config_file: Path, override: str) -> None:
    assert PLANTED not in refusal(config_file, override)
    done = rankeval("validate", config_file, "--set", override, "--debug")
    assert done.code == 2
    assert PLANTED not in done.out + done.err


LITERAL = [
    ("executorEnv.DB_PWD", PLANTED),
    ("executorEnv.PGPASS", PLANTED),
    ("executorEnv.MYSQL_PASS", PLANTED),
    ("executorEnv.GITHUB_PAT", PLANTED),
    ("executorEnv.AUTHORIZATION", f"Bearer {PLANTED}"),
    ("my.auth", f"Basic {PLANTED}"),
    ("my.header", f"Authorization: Bearer {PLANTED}"),
    ("hadoop.fs.s3a.session.key", PLANTED),
    ("keystore.pin", "123456"),
    ("keyPass", PLANTED),
    ("x", "AKIAIOSFODNN7EXAMPLE"),
    ("x", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
    ("x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"),
    ("x", "-----BEGIN RSA PRIVATE KEY-----"),
    ("x", f"jdbc:postgresql://host/db?user=me&password={PLANTED}"),
    ("x", f"--user me --password {PLANTED}"),
    ("x", f'{{"client_secret": "{PLANTED}"}}'),
    ("driver.extraJavaOptions", f"-Dpwd={PLANTED} -Ddb.pass={PLANTED}"),
    ("executor.extraJavaOptions", f"-Xss4m -Ddb.pass={PLANTED}"),
]


@pytest.mark.parametrize(("key", "value"), LITERAL)
def test_setting_of_a_secrets_shape_is_refused_with_a_way_out(config_file: Path, key: str, value: str) -> None:
    message = refusal(config_file, f"{SETTINGS}.spark.{key}='{value}'")
    assert value not in message
    assert PLANTED not in message
    assert "a secret in the config" in message
    assert ("@FILE" if key.startswith("executor.") else "${env:NAME}") in message


@pytest.mark.parametrize("text", ["a", "a.", "a-", "-", "- ", "a ", "eyJ-eyJ.", "a=", "authorization "])
def test_long_value_is_looked_through_in_a_moment(text: str) -> None:
    long, started = text * (200_000 // len(text)), time.perf_counter()
    spark_settings.is_written_out("spark.x", long)
    spark_settings.is_secret("spark.x", long)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "setting",
    [
        "spark.hadoop.hadoop.security.credential.provider.path=jceks://hdfs/keys.jceks",
        "spark.hadoop.fs.s3a.aws.credentials.provider=org.example.Provider",
        "spark.kubernetes.authenticate.oauthTokenFile=/run/token",
        "spark.security.credentials.hive.enabled=false",
        "spark.hadoop.fs.s3a.secret.key=${env:S3_SECRET}",
        "spark.hadoop.fs.s3a.endpoint=https://host:9000",
        "spark.jars='abfss://c@a.example/x.jar,abfss://c@a.example/y.jar'",
        "spark.driver.extraJavaOptions=-Duser.timezone=UTC",
        "spark.driver.extraJavaOptions=${env:JAVA_OPTIONS}",
        "spark.shuffle.sort.bypassMergeThreshold=200",
        "spark.authenticate=true",
        "spark.hadoop.hadoop.security.authorization=true",
        "spark.executorEnv.PYTHONPATH=/data/lib",
        "spark.executorEnv.PGPASSFILE=/run/pgpass",
        "spark.sql.optimizer.compass=x",
        "spark.x.tokens=500",
    ],
)
def test_setting_that_says_where_a_secret_is_holds_none(config_file: Path, setting: str) -> None:
    load_config(config_file, [f"{SETTINGS}.{setting}"])


def test_value_from_the_environment_is_hidden_in_every_message(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "_hidden", set())
    config = load_config(config_file, [f"{SETTINGS}.spark.sql.shuffle.partitions=${{env:PLANTED}}"])
    assert config.spark.resolved_settings({"PLANTED": PLANTED}) == {"spark.sql.shuffle.partitions": PLANTED}
    assert without_secrets(f"should be int, but was {PLANTED}.") == "should be int, but was (hidden)."
    assert PLANTED not in str(ConfigError(errors.Fault("x", PLANTED, "y")))
    assert PLANTED not in config.public_json()


@pytest.mark.parametrize(
    "key",
    [
        *("app.name", "jars", "driver.memory", "driver.extraClassPath", "executor.extraJavaOptions"),
        *("network.timeout", "ssl.keyStore", "ui.port", "redaction.regex"),
    ],
)
def test_variable_is_refused_where_spark_shows_it(config_file: Path, key: str) -> None:
    assert f"--set 'spark.settings.spark.{key}=" in refusal(config_file, f"{SETTINGS}.spark.{key}=${{env:X}}")


@pytest.mark.parametrize(
    "key", ["authenticate.secret", "ssl.keyPassword", "executorEnv.X", "driver.defaultJavaOptions"]
)
def test_variable_stays_allowed_where_spark_hides_it(config_file: Path, key: str) -> None:
    load_config(config_file, [f"{SETTINGS}.spark.{key}=${{env:X}}"])


def test_value_from_the_environment_is_hidden_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_hidden", set())
    errors.hide("first line\nsecond line", "with \\ sign", " Trimmed ", "pin4", "true")
    for text in ("a second line b", "'with \\\\ sign'", "was TRIMMED", "pin4.", repr("first line\nsecond line")):
        assert "(hidden)" in without_secrets(text), text
    assert without_secrets("true pin45") == "true pin45"
    # A line that is cut shows no beginning of a secret.
    errors.hide("s3cret" * 40)
    assert "s3cret" not in errors.first_line(f"{'x' * 150} {'s3cret' * 40}")


def test_short_value_from_the_environment_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_hidden", {"8", ""})
    assert without_secrets("8 rows") == "8 rows"


def test_config_names_no_folder_but_the_allowed_ones(config_file: Path) -> None:
    folder = config_file.parent
    (folder / "link").symlink_to("/etc")
    config = load_config(config_file, ["inputs.held_out.path=link/held_out", "results.root=out"])
    check_roots(config, DATE, {})
    check_roots(config, DATE, {"RANKEVAL_ROOTS": "/"})

    with pytest.raises(ConfigError) as raised:
        check_roots(config, DATE, {"RANKEVAL_ROOTS": f"s3a://bucket/a, {folder}/"})
    assert [fault.where for fault in raised.value.faults] == ["inputs.held_out.path"]


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("s3a://bucket/a/x", True),
        ("s3a://bucket/a", True),
        ("s3://bucket/a/x", True),  # of one place
        ("s3://bucket/b", False),
        ("s3a://bucket/a/../b", False),
        ("s3a://bucket/ab", False),
        ("s3a://other/a", False),
        ("gs://bucket/a", False),
        ("/data/../etc/x", False),
        ("file:///data/x", True),
        ("file:/data/x", True),
        ("file:///data/%2e%2e/etc", False),
        ("file:///data#/../../etc", False),
        ("s3a://bucket/a#/../../b", False),
        ("s3a://bucket/a?/../../b", False),
        ("s3a://bucket/a/x#b", True),
        ("/data/*/../../etc", False),
        ("/data", True),
        ("/database", False),
    ],
)
def test_path_is_compared_after_its_dots(config_file: Path, path: str, is_allowed: bool) -> None:
    config = load_config(config_file, [f"{PATH}='{path}'", "inputs.held_out.path=/data/h", "results.root=/data/r"])
    roots = {"RANKEVAL_ROOTS": "/data,s3a://bucket/a"}
    if is_allowed:
        check_roots(config, DATE, roots)
    else:
        with pytest.raises(ConfigError, match="RANKEVAL_ROOTS says so"):
            check_roots(config, DATE, roots)


def test_night_outside_the_allowed_folders_does_not_begin(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKEVAL_ROOTS", "/data")
    with pytest.raises(ConfigError, match=r"results\.root: found"):
        run_night(None, load_config(config_file), DATE)  # type: ignore[arg-type] # it is refused before Spark is asked


def test_text_that_steers_a_terminal_is_written_as_what_it_is() -> None:
    assert visible("\x1b[31mred\x1b]0;t\x07") == r"\x1b[31mred\x1b]0;t\x07"
    assert visible("abc\u202edcb\u2066") == r"abc\u202edcb\u2066"
    assert visible("line\u2028\x85\r\n\ttab\u200b\ufeff\ud800") == r"line\u2028\x85\r\n\ttab\u200b\ufeff\ud800"
    assert visible("héllo 日本 می‌خواهم 👩‍🔬 \xa0") == "héllo 日本 می‌خواهم 👩‍🔬 \xa0"
