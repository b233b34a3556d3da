"""Spark settings: which are harmless to store, which Spark itself shows, which name files, and which are secrets.

Secrets are read from the environment when a session is built, and never stored or shown. Jars are code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rankeval_spark.allowed_folders import FILE_SYSTEMS, scheme_of
from rankeval_spark.errors import REDACTED, SHORTEST_SECRET, ConfigError, Fault, has_password, hide

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Settings of plans and sizes, which hold no secret and name no file.
_HARMLESS: Final = re.compile(
    r"spark\.(?:"
    r"default\.parallelism|task\.(?:cpus|maxFailures)|(?:driver|executor)\.(?:cores|memory|memoryOverhead|"
    r"memoryOverheadFactor|instances|maxResultSize|pyspark\.memory)|cores\.max|memory\.[\w.]+|"
    r"dynamicAllocation\.[\w.]+|speculation(?:\.[\w.]+)?|locality\.wait(?:\.[\w.]+)?|scheduler\.mode|"
    r"python\.worker\.(?:memory|reuse)|serializer|kryoserializer\.buffer(?:\.max)?|rdd\.compress|"
    r"shuffle\.(?:compress|spill\.compress|sort\.bypassMergeThreshold|file\.buffer|io\.\w+)|reducer\.\w+|"
    r"io\.compression\.[\w.]+|network\.timeout|rpc\.message\.maxSize|ui\.(?:enabled|showConsoleProgress)|"
    r"eventLog\.(?:enabled|compress)|databricks\.delta\.(?:snapshotPartitions|[\w.]+\.enabled)|"
    r"sql\.(?:adaptive|codegen|execution|objectHashAggregate|join|files|parquet|optimizer|statistics|cbo|"
    r"inMemoryColumnarStorage|sources\.parallelPartitionDiscovery|legacy|ansi)\.[\w.]+|"
    r"sql\.(?:shuffle\.partitions|autoBroadcastJoinThreshold|broadcastTimeout|session\.timeZone|caseSensitive|"
    r"requireAllClusterKeysForCoPartition|windowExec\.buffer\.[\w.]+|sortMergeJoinExec\.buffer\.[\w.]+)"
    r")"
)
# A number, a size, a time, a switch, a name or a zone.
_HARMLESS_VALUE: Final = re.compile(r"-?[\w.+]{1,40}%?(?:/[A-Za-z_]{1,40})?")
# Settings that Spark shows on a command line, such as the memory of a JVM, or in its event log.
_SHOWN: Final = re.compile(
    r"spark\.(?:app\..*|master|jars.*|files|archives|submit\..*|driver\.(?!(?:extra|default)JavaOptions$).*|executor\..*|"
    r"rpc\..*|network\..*|auth(?!enticate\.secret$).*|ssl(?!.*Password$).*|.*\.port|port\..*|yarn\.am\..*|"
    r"(?:sql\.)?redaction\..*)"
)
# Settings whose value consists of files and folders, relative ones too.
_NAMES_FILES: Final = re.compile(
    r"spark\.(?:jars(?:\.ivy|\.ivySettings)?|files|archives|submit\.pyFiles|local\.dir|eventLog\.dir|log\.\w*dir|"
    r"(?:driver|executor)\.extra(?:Class|Library)Path|sql\.warehouse\.dir|pyspark\.(?:driver\.)?python|"
    r"yarn\.(?:jars|archive|dist\.\w+)|checkpoint\.dir|kubernetes\.file\.upload\.path)"
)
_SEPARATORS: Final = re.compile(r"[\s,;=\"']+")
# Prefix of a file in Java options, such as ``-javaagent:``.
_BEFORE_A_PATH: Final = re.compile(r"^(?:-\w[\w./-]*:|@)+(?=[/~.])")

_STARTS: Final = ("/", "~", "./", "../")
_OF_FILES: Final = (*FILE_SYSTEMS, "local", "jar")


def is_shown(key: str) -> bool:
    """Return True if Spark itself shows the value of a setting, so that it must not come from the environment.

    Java options of the driver are not shown: Spark passes them in a file.
    """
    return _SHOWN.fullmatch(key) is not None


def setting_files(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the key of each setting that names a file or folder, with its path."""
    for key, value in settings.items():
        words = [] if _HARMLESS.fullmatch(key) else [_BEFORE_A_PATH.sub("", word) for word in _SEPARATORS.split(value)]
        for word in filter(None, words):
            is_class_path = word.startswith(_STARTS) and "://" not in word
            for part in word.split(":") if is_class_path else [word]:
                if _NAMES_FILES.fullmatch(key) or part.startswith(_STARTS) or scheme_of(part) in _OF_FILES:
                    # `local:` and `jar:` only say how a file is reached
                    yield f"spark.settings.{key}", re.sub(r"^(?:local|jar):(?:file:)?", "", part)


# Pattern in the name of a setting that holds a secret. Spark gets it too, to redact its own logs and pages.
CREDENTIAL_NAME: Final = (
    r"secret|password|passwd|passphrase|passcode|token|credential|bearer|signature|pwd|(?<!by)(?<!com)pass(?![a-z])|"
    r"(?:access|account|api|private|encryption|shared|session|signing|master)[._-]?key|sas[._-]|"
    r"(?<![a-z])(?:pat|pin)(?![a-z])|(?:key|store|card)pin|(?<![a-z])auth(?:orization)?$"
)

# Pattern of a secret's value: keys of clouds and code hosts, tokens, HTTP headers.
CREDENTIAL_VALUE: Final = (
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[opsur]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}|\bxox[abeprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,200}\.[\w-]{10}|-----BEGIN [A-Z ]*PRIVATE KEY|\bAIza[\w-]{35}|\bdapi[0-9a-f]{32}"
    r"|\b[rs]k_live_\w{16,}"
    r"|(?i:(?:^|authorization\W{1,4})\s*(?:basic|bearer|digest|negotiate) +[\w+/=.~-]{4,}(?:[\"'\s]|$))"
)

_ENVIRONMENT_VALUE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_CREDENTIAL = re.compile(CREDENTIAL_NAME, re.IGNORECASE)
_SHAPE = re.compile(CREDENTIAL_VALUE)
# The lookbehind lets a match begin only at the start of a name; without it long names take quadratic time.
_ASSIGNED = re.compile(
    r"""(?<![\w.-])(?:([\w.-]+)["']?\s*[=:]\s*["']?([^\s;&,"'}]+)|--?([\w.-]+)\s+["']?([^\s;&,"'}-][^\s;&,"'}]*))"""
)
# Keys whose name mentions secrets, while the value says where they are or how to obtain them.
_NO_SECRET = re.compile(r"(provider|providers|provider\.path|file|path|dir|class|type|regex|enabled|impl|ref)$", re.I)
_SECRET_ITSELF = re.compile(r"(?:secret|password|passwd|passphrase|passcode|pass|pwd|pin|pat|token)$", re.IGNORECASE)
_SWITCH = re.compile(r"true|false|", re.IGNORECASE)
_SHORT_NUMBER = re.compile(r"[0-9.]{0,6}")


class Filled(str):
    """Value from the environment: always a secret, whatever its key is called."""

    __slots__ = ()


def is_credential(key: str) -> bool:
    """Return True if the value of a key is probably a secret; in doubt True."""
    return _CREDENTIAL.search(key) is not None


def has_secret(text: str) -> bool:
    """Return True if a text looks like a secret, assigns one (``-Dpassword=x``), or is an address with a password."""
    return is_written_out("", text) or ("=" in text and is_credential(text))


def redact(settings: Mapping[str, str]) -> dict[str, str]:
    """Keep the values of harmless settings and references to the environment; replace all others by ``(hidden)``."""
    shown = {}
    for key, value in settings.items():
        is_plain = _HARMLESS.fullmatch(key) and _HARMLESS_VALUE.fullmatch(value)
        is_kept = is_reference(value) or (is_plain and not is_secret(key, value))
        shown[key] = value if is_kept else REDACTED
    return shown


def is_reference(value: str) -> bool:
    """Return True if a value names a variable of the environment."""
    return _ENVIRONMENT_VALUE.fullmatch(value) is not None


def variable_name(reference: str) -> str:
    """Return the name of the variable in a value such as ``${env:NAME}``."""
    return reference.removeprefix("${env:").removesuffix("}")


def is_secret(key: str, value: str) -> bool:
    """Return True if a setting must be hidden."""
    if isinstance(value, Filled):
        return True
    return not is_reference(value) and (is_credential(key) or has_secret(value))


def is_written_out(key: str, value: str) -> bool:
    """Return True if a setting contains the secret itself, and not only where it is."""
    if has_password(value) or _SHAPE.search(value):
        return True
    for name, text in [(key, value), *assignments(value)]:
        if is_credential(name) and not _NO_SECRET.search(name):
            is_number = _SHORT_NUMBER.fullmatch(text) and not _SECRET_ITSELF.search(name)
            if not (_SWITCH.fullmatch(text) or is_number or is_reference(text) or text == REDACTED):
                return True
    return False


def assignments(text: str) -> list[tuple[str, str]]:
    """List the assignments in a text: ``-Da=b``, ``a=b;c=d``, ``--a b``, ``{"a": "b"}``."""
    return [(found[0] or found[2], found[1] or found[3]) for found in _ASSIGNED.findall(text)]


def fill_environment(settings: Mapping[str, str], environment: Mapping[str, str], where: str) -> dict[str, str]:
    """Replace values ``${env:NAME}`` by that variable, as secrets; ConfigError with all variables that are not set."""
    filled, faults = {}, []
    for key, value in settings.items():
        reference = _ENVIRONMENT_VALUE.fullmatch(value)
        if reference is None:
            filled[key] = value
            continue
        if reference[1] not in environment:
            found = f"{value}, but the environment has no {reference[1]}"
            faults.append(Fault(f"{where}.{key}", found, "a variable that is set", f"export {reference[1]}=..."))
        filled[key] = Filled(environment.get(reference[1], ""))
        hide(filled[key], *(text for _, text in assignments(filled[key]) if len(text) >= SHORTEST_SECRET))
    if faults:
        raise ConfigError(*faults)
    return filled
