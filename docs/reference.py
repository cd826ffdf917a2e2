"""Write docs/reference/ from the code: macros, options, variables, tables and command lines.

python docs/reference.py    (or `make reference`), after a change of what it reads; a unit test compares.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment
from jinja2.nodes import Macro

ROOT = Path(__file__).resolve().parents[1]
MACROS = ROOT / "macros"
PAGES = Path("docs/reference")
NOTE = "<!-- Written by docs/reference.py from the code; `make reference` writes it again. -->"

# What has no description in the code. `checked` compares the names with those that the code reads.
CONFIG = {
    "materialized": "`current_state`, `history` or `current_view`: see [Materializations](../materializations.md)",
    "unique_key": "the column, or the list of columns, that identifies a row. Use `_row_id` for an Oracle table "
    "without a primary key. Use `_change_id` for a table without a key, in which each event is a row",
    "file_format": "`delta` (default) or `iceberg`; the same for all models of a project",
    "meta": "the options in the next table",
    "tblproperties": "table properties of the base table",
    "partition_by": "partition columns of the base table; cannot be combined with `buckets` or `cluster_by`",
    "location_root": "as in dbt: the directory in which the base table lies, under the name of the model",
    "full_refresh": "as in dbt: `true` rebuilds the model in each run",
    "persist_docs": "as in dbt: `relation` and `columns` write the descriptions as comments of the view",
    "grants": "as in dbt",
}
MODEL_META = {
    "fresh": "for a `current_state`: with `true` the view also shows staged records that are not merged yet (default: "
    "`false`)",
    "fold_unchanged": "for a `history`: `false` also shows versions that change no declared column (default: `true`)",
    "base_snapshot": "`schema.table` or `catalog.schema.table`, a copy of the model's base table. A rebuild "
    "starts from this copy if records of the model were purged from staging (default: the copy that "
    "[`maintain.py`](../operations/maintenance.md) keeps)",
    "ignored_columns": "a list of column names. The test `no_drift` ignores these columns, and a run accepts a "
    "declared column that no record has ever had",
    "buckets": "for Iceberg: the number of buckets of the base table, by its first key column. A MERGE then does not "
    "shuffle the base table. A change takes effect with the next `--full-refresh`",
    "cluster_by": "a column, or a list of up to four columns, by whose values the rows of the base table are put into "
    "files: see [Clustered base tables](../materializations.md#clustered-base-tables). A change takes effect with the "
    "next `--full-refresh`",
    "partial_records": "whether the model merges records that carry only some columns, column by column (default: the "
    "source macro determines it; `true` for Spanner)",
    "row_ids": "whether the base table stores the address of each row, `_row_id` (default: the source macro determines "
    "it; `true` for Oracle). A SELECT of your own with a column `_row_id` needs `true`",
    "range_deletes": "whether deletes name a range of cells, `_range` (default: the source macro determines it; `true` "
    "for Bigtable). A SELECT of your own with a column `_range` needs `true`",
    "catalog": "the catalog of the model's tables and views, for dbt-spark: see [Catalogs](../operations/catalogs.md)",
}
COLUMN_META = {
    "round": "`true`: a value that is more precise than the type is rounded, and the record is not quarantined",
    "encoding": "the encoding of the text of a value: `hex` or `base64` (for `binary`, and arrays and maps of it); "
    "`json`, `microseconds`, `interval` or `time` (for `string`)",
    "infinity_is_null": "`true`: PostgreSQL's infinity becomes NULL (for `timestamp` and `timestamp_ntz`)",
    "zero_date": "`'null'`: MySQL's zero dates become NULL (for `date`, `timestamp` and `timestamp_ntz`), and the run "
    "counts them",
    "was": "a name that the column had at its source, or a list of names, the newest first: a record without a field "
    "of the column's name is read under it. See [Change, rename or remove a "
    "column](../types.md#change-rename-or-remove-a-column)",
    "mask": "`sha256` or `drop`, as the file of [`append.py --masks`](../masks.md) has it: the model refuses records "
    "that were staged without this mask",
    "added": "`true`: the column may be added to a model that is built. The next run fills it from all records in "
    "staging: see [Add a column](../types.md#add-a-column)",
}
VARIABLES = {
    "as_of": "a position, for example `{batch: 17}`. `dbt run` builds the models as they were at this position, in a "
    "separate schema. See [Any earlier moment](../materializations.md#any-earlier-moment)",
    "as_of_schema": "the schema for `as_of`, in the catalog of the model unless it is written as `catalog.schema`; "
    "with `none`, the name of the model's own schema followed by `_as_of`",
    "retry_quarantine": "`true`: `dbt run` also applies quarantined records that the corrected declarations can read. "
    "See [Records in quarantine](../operations/troubleshooting.md#apply-them-after-a-correction)",
    "restore": "a batch, as `{batch: 17}`. `dbt run` puts the models back to this batch of their staging table, and "
    "the next run goes on from there. See [Put a model back to a batch]"
    "(../materializations.md#put-a-model-back-to-a-batch)",
    "only_new_records": "`true`: `dbt run` leaves models without new records as they are, and asks none of their "
    "tables. See [Many models](../materializations.md#many-models)",
    "reconcile_broadcast_records": "up to this number of records, Spark broadcasts the records of a range to the base "
    "table. They must fit in memory",
    "reconcile_register_models": "runs register their models with a staging table that "
    "[`maintain.py`](../operations/maintenance.md) purges. With `false` they do not; with a list of names of targets, "
    "only the runs of these targets do, for example `[prod]`. The job does not know models that do not register",
    "reconcile_stalled_after": "`reconcile_lag` reports a watermark as stalled if it has not moved for this time",
}
ENVIRONMENT = {
    "RECONCILE_WAREHOUSE": "`conf/shared`, `conf/shared-iceberg`: the warehouse directory, or its address in an object "
    "store",
    "RECONCILE_METASTORE_URL": "`conf/shared`, `conf/shared-iceberg`: the URL of the metastore, for example "
    "`jdbc:postgresql://host:5432/metastore`",
    "RECONCILE_METASTORE_USER": "`conf/shared`, `conf/shared-iceberg`: the user of the metastore's database",
    "RECONCILE_METASTORE_PASSWORD": "`conf/shared`, `conf/shared-iceberg`: the password of this user",
    "RECONCILE_PACKAGES": "additional jars, as Maven coordinates separated by spaces, for example of a JDBC driver or "
    "a connector",
    "RECONCILE_JARS": "the directory for downloaded jars",
    "RECONCILE_JDBC_USER": "`snapshot.py jdbc`, `generate.py --url`: the user of the database",
    "RECONCILE_JDBC_PASSWORD": "`snapshot.py jdbc`, `generate.py --url`: the password of this user",
    "RECONCILE_MASK_SECRET": "`append.py --masks`, `snapshot.py --masks`: the key of the [masks](../masks.md), 32 "
    "characters or more",
    "RECONCILE_ERASURE_SECRET": "`erase.py`, and `append.py` (but for Bigtable) if the staging table "
    "has erased keys: the key of the register of [erased keys](../operations/erasure.md), 32 characters or more",
    "RECONCILE_PATIENCE": "how many seconds a process waits for the embedded metastore if another process holds it",
    "RECONCILE_TRACEBACK": "with any value, for example `1`, a job that fails also shows the Python traceback",
}
# `_columns_of_models` compares the columns with those that macros describe.
MODEL_RELATIONS = [
    (
        "orders",
        "the view that people read. Of a `current_state` and a `current_view`: the declared columns of the live rows. "
        "Of a `history`: the declared columns, `valid_from`, `valid_to`, `is_current` (whether `valid_to` is "
        "NULL), `_change_type`, `_change_sequence`, `_change_id`; `_row_id` if it is the key",
    ),
    (
        "orders__base",
        "table of a `current_state`: rows and tombstones. The declared columns, `_change_sequence`, "
        "`_change_time`, `_change_batch`, `_deleted`. Where partial records are merged also `_change_row_sequence`, "
        "`_change_column_sequences`. For Oracle also `_row_id`, and unless the address is the key "
        "`_change_transaction`, `_change_is_insert`, `_change_contenders`, `_change_displaced`. "
        "Of a table without a key also `_change_id`",
    ),
    (
        "orders__base",
        "table of a `history`: one row for each distinct change record, deletes too. The declared columns "
        "(NULL of a delete), `_change_type`, `_change_sequence`, `_change_id`, `_change_time`, `_change_batch`, "
        "`valid_from`, `valid_to`, `_change_repeats`, `_change_valid_to`. Where partial records are merged also "
        "`_change_columns`, `_change_is_known`. For Oracle also `_row_id`, and unless the address is the key "
        "`_change_transaction`, `_change_is_undone`",
    ),
    (
        "orders__changes",
        "view: the change records of all of staging. [Change records](../design.md#change-records) lists the columns",
    ),
    (
        "orders__quarantine",
        "table, of a `current_view` a view: what could not be applied. `record`, `_change_error`, "
        "`_change_id`, `_change_batch`, `origin`",
    ),
    (
        "orders__snapshot",
        "table, made by `maintain.py` before a purge: a copy of the base table, with the same columns, from which a "
        "rebuild starts",
    ),
    (
        "orders__row_deletes",
        "table, made when the first such delete comes: deletes that name only an address. "
        "`_row_id`, `_change_sequence`, `_change_time`, `_change_id`, `_change_batch`, `_change_transaction`",
    ),
    (
        "orders__range_deletes",
        "table, made when the first such delete comes: deletes that name a range of cells. The "
        "same columns, with `_range` in place of `_row_id`, and no `_change_transaction`",
    ),
]
# Set by one part of the package for another, or by tests.
INTERNAL = {"RECONCILE_TERMINAL", "RECONCILE_FAILPOINT"}
# Of files that are read as code; an editor leaves others beside them.
SUFFIXES = {".conf", ".properties", ".py", ".sh", ".sql", ".yml"}
# Of the macros beside source macros and tests, what users call.
OPERATIONS = ["tables_as_sources", "get_purge_statements", "schema_in_catalog"]
NOT_CALLED = {"datastream_change_records"}  # of macros/sources
# What stands for the arguments that a generic test must be given.
EXAMPLES = {"compare_to": "source('lake', 'orders_source')", "key": "id"}


def pages() -> dict[Path, str]:
    """Return the text of each page by its path in the repository. Raises LookupError, which names what is missing."""
    written = {"meta": _meta, "variables": _variables, "macros": _macros, "tables": _tables, "command_line": _commands}
    return {PAGES / f"{name}.md": f"{page().strip()}\n" for name, page in written.items()}


def _meta() -> str:
    config = set(re.findall(r"config\.get\('(\w+)'", _code("macros")))
    return "\n\n".join(
        [
            "# Options of models and columns",
            NOTE,
            "The run ends with a message that names the model if a value is wrong, if an option of a model or a column "
            "is misspelt, or if an option of a model is outside of `meta`.",
            "## Config of a model",
            "In `config(...)`, or under `config:` in the model's YAML or `models:` in `dbt_project.yml`.",
            _table(["config", "meaning"], checked("config of a model", CONFIG, config)),
            "## `meta` of a model",
            "In `config(meta={...})`, or under `config: {meta: {...}}`.",
            _table(["option", "meaning"], checked("meta of a model", MODEL_META, _options("model_settings"))),
            "## `meta` of a column",
            "Under `config: {meta: {...}}` of a column in the model's YAML. [Types](../types.md) has the details. "
            "After you change an option, rebuild the model with `--full-refresh`. Only `added` may come and go.",
            _table(["option", "meaning"], checked("meta of a column", COLUMN_META, _options("declared_columns"))),
        ]
    )


def _variables() -> str:
    code, conf = _code("macros") + _code("models"), _code("conf")
    code = re.sub(r"\bis_asked\('(\w+)'\)", r"var('\1', false)", code)  # which is how `is_asked` reads a variable
    variables = checked("variables", VARIABLES, re.findall(r"\bvar\('(\w+)'", code))
    environment = set(re.findall(r"\bRECONCILE_[A-Z_]*[A-Z]\b", _code("ingestion") + conf)) - INTERNAL
    places = checked("environment variables", ENVIRONMENT, environment)
    heads = ["variable", "default", "meaning"]
    return "\n\n".join(
        [
            "# Variables",
            NOTE,
            "## Of dbt",
            "In `vars:` of `dbt_project.yml`, or in the option `--vars` of a dbt command.",
            _table(heads, with_defaults(variables, r"\bvar\('(\w+)', '?([^()']+)'?\)", code)),
            "## Of the environment",
            "`SPARK_CONF_DIR` is Spark's configuration directory: the package's `conf/`, one of its subdirectories, or "
            "a copy. `SPANNER_EMULATOR_HOST` and `BIGTABLE_EMULATOR_HOST` are the addresses of emulators.",
            _table(heads, with_defaults(places, r"\${(\w+):?-((?:\${[^{}]*}|[^{}])+)}", conf)),
        ]
    )


def with_defaults(rows: list[list[str]], pattern: str, code: str) -> list[list[str]]:
    """Put after each name its default in the code, if any. Raises LookupError unless it is the same everywhere."""
    defaults: dict[str, str] = {}
    for name, default in re.findall(pattern, code):
        if defaults.setdefault(f"`{name}`", f"`{default}`") != f"`{default}`":
            raise LookupError(f"variables: of {name} the code has the defaults {defaults[f'`{name}`']} and `{default}`")
    return [[name, defaults.get(name, ""), text] for name, text in rows]


def _macros() -> str:
    tests = [entry for entry in _entries("generic_tests/generic_tests.yml") if entry["name"].startswith("test_")]
    files = sorted(MACROS.glob("*/*.yml"))
    others = {entry["name"]: entry for file in files for entry in _entries(file)}
    if missing := [name for name in OPERATIONS if name not in others]:
        raise LookupError(f"macros: no YAML entry describes {', '.join(missing)}")
    return "\n\n".join(
        [
            "# Macros",
            NOTE,
            "The macros that a project calls, with their arguments. All other macros are internal.",
            "## Source macros",
            "A source macro returns change records, or rows, as a SELECT. The SELECT is the SQL of a model.",
            *_source_macros(),
            "## Generic tests",
            "Under `data_tests:` of a model, or of a staging table as a source. Arguments shown with a default are "
            "optional. [Tests](../tests.md) lists what each test fails on.",
            *map(_test, tests),
            "## Other macros",
            *(_macro(others[name]) for name in OPERATIONS),
        ]
    )


def _source_macros() -> list[str]:
    """Return their sections. Those that have one list of arguments in the YAML show it once."""
    shown: dict[int, str] = {}
    sections = []
    for entry in _entries("sources/sources.yml"):
        if entry["name"] in NOT_CALLED:
            continue
        like = shown.setdefault(id(entry["arguments"]), entry["name"])
        said = like != entry["name"]
        section = _macro(entry | {"arguments": None} if said else entry)
        sections.append(f"{section}\n\nThe arguments are those of [`{like}`](#{like})." if said else section)
    return sections


def _macro(entry: dict[str, Any]) -> str:
    name = entry["name"]
    call = f"```jinja\nreconcile.{name}({_signature('macro', name)})\n```"
    text = [f"### `{name}`", call, _text(entry["description"])]
    if arguments := entry.get("arguments"):
        text.append(_arguments(arguments))
    return "\n\n".join(text)


def _test(entry: dict[str, Any]) -> str:
    """Return the section of a generic test. dbt gives it `model`: where the test stands."""
    name = entry["name"].removeprefix("test_")
    (model,) = (argument for argument in entry["arguments"] if argument["name"] == "model")
    text = [f"### `{name}`", f"```yaml\n{_declared(name)}\n```", _text(entry["description"])]
    text.append(f"On: {_text(model['description'])}.")
    if arguments := [argument for argument in entry["arguments"] if argument is not model]:
        text.append(_arguments(arguments))
    return "\n\n".join(text)


def _declared(test: str) -> str:
    """Return the YAML that declares a generic test, with all its arguments."""
    parsed = Environment().parse(f"{{% macro test({_signature('test', test)}) %}}{{% endmacro %}}").body[0]
    assert isinstance(parsed, Macro)
    names = [argument.name for argument in parsed.args]
    defaults = [default.as_const() for default in parsed.defaults]
    needed = [name for name in names[: len(names) - len(defaults)] if name != "model"]
    if missing := [name for name in needed if name not in EXAMPLES]:
        raise LookupError(f"macros: {test} needs {', '.join(missing)}; give an example in docs/reference.py")
    lines = [_line(name, EXAMPLES[name]) for name in needed]
    if defaults:
        lines.append(f"# the default{'s' if len(defaults) > 1 else ''}")
        lines += map(_line, names[-len(defaults) :], defaults)
    head = f"data_tests:\n  - reconcile.{test}"
    return "\n        ".join([f"{head}:\n      arguments:", *lines]) if lines else head


def _line(name: str, value: Any) -> str:
    return yaml.safe_dump({name: value}).strip()


def _signature(kind: str, name: str) -> str:
    signature = re.search(rf"{{%-?\s*{kind} {name}\(([^%]*)\)\s*-?%}}", _code("macros"))
    if not signature:
        raise LookupError(f"macros: {name} has a YAML entry, and no {kind} in macros/")
    return signature[1]


def _arguments(arguments: list[dict[str, Any]]) -> str:
    cells = [[a["name"], f"`{a['type'].replace('|', ' or ')}`", _text(a.get("description", ""))] for a in arguments]
    return _table(["argument", "type", "meaning"], cells)


def _tables() -> str:
    monitoring = _yaml("models/monitoring/monitoring.yml")["models"]
    tables = [table for source in _yaml("models/monitoring/tables.yml")["sources"] for table in source["tables"]]
    return "\n\n".join(
        [
            "# Tables and views",
            NOTE,
            "The tables and views that the package creates in addition to your models. "
            "[Monitoring](../operations/monitoring.md) explains what each one is for.",
            "## Relations of a model",
            "A model `orders` has these relations, in its own schema. The next table describes the columns of the "
            "package.",
            _table(["relation", "content and columns"], [[f"`{name}`", text] for name, text in MODEL_RELATIONS]),
            "Iceberg stores some of these columns under another name: see [Iceberg](../materializations.md#iceberg).",
            _table(["column", "meaning"], _columns_of_models()),
            "## Views",
            "These views are models of the package.",
            *map(_relation, monitoring),
            "## Tables",
            "These tables are in the target schema. Runs and tests write them.",
            *map(_relation, tables),
        ]
    )


def _columns_of_models() -> list[list[str]]:
    """Return the columns of the package and what they mean. Raises LookupError where MODEL_RELATIONS names another."""
    text = (MACROS / "materializations" / "tables_as_sources.sql").read_text()
    found = re.search(r"macro _descriptions_of_columns\(\) -%}\s*{{ return\((.*?)\) }}", text, re.S)
    if found is None:
        raise LookupError("tables: macros/materializations/tables_as_sources.sql describes no columns")
    described: dict[str, str] = ast.literal_eval(found[1])
    columns = {name for _, relation in MODEL_RELATIONS for name in re.findall(r"`((?:_change)?_\w+)`", relation)}
    checked("columns of a model's relations", dict.fromkeys(columns, ""), set(described) & columns)
    return [[name, _text(meaning)] for name, meaning in described.items()]


def _relation(entry: dict[str, Any]) -> str:
    columns = [[column["name"], _text(column["description"])] for column in entry["columns"]]
    return f"### `{entry['name']}`\n\n{_text(entry['description'])}\n\n{_table(['column', 'meaning'], columns)}"


def _commands() -> str:
    _importable()
    text = [
        "# Command lines",
        NOTE,
        "The output of `--help` of each job. Start a job with `spark-submit dbt_packages/reconcile/ingestion/...`. "
        "All jobs share the same [exit codes](../operations/exit_codes.md).",
    ]
    for module, kinds in [
        ("append", ["datastream", "spanner", "bigtable", "table", "snapshot"]),
        ("snapshot", ["csv", "jdbc", "spanner", "bigtable", "table", "files"]),
        ("generate", ["datastream", "spanner", "bigtable"]),
        ("parity", []),
        ("prove", []),
        ("status", []),
        ("report", []),
        ("maintain", []),
        ("erase", []),
        ("metastore", []),
        ("run_dbt", []),
    ]:
        main = import_module(module).main
        _check_kinds(module, kinds, helped(main, []))
        for words in [[kind] for kind in kinds] or [[]]:
            text += [f"## `{' '.join([module + '.py', *words])}`", f"```text\n{helped(main, words)}\n```"]
    return "\n\n".join(text)


def _check_kinds(module: str, kinds: list[str], text: str) -> None:
    """Raise LookupError where a job has subcommands of which this page does not know."""
    there = set(re.findall(r"^ {4}(\w+)(?: {2,}|$)", text, flags=re.M)) if kinds else set()
    if there != set(kinds):
        raise LookupError(
            f"{module}.py: its subcommands are {', '.join(sorted(there))}; name them in docs/reference.py"
        )


def _importable() -> None:
    if str(ROOT / "ingestion") not in sys.path:
        sys.path.insert(0, str(ROOT / "ingestion"))


def helped(main: Callable[..., None], words: list[str]) -> str:
    """Return what a job's parser prints for --help, 84 characters wide. Nothing else of the job runs."""
    out, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "84"
    # The console and the like, which --help never gets to.
    rest = [None] * (len(signature(main).parameters) - 1)
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main([*words, "--help"], *rest)
    finally:
        os.environ.pop("COLUMNS")
        if width is not None:
            os.environ["COLUMNS"] = width
    return out.getvalue().strip()


def checked(what: str, described: dict[str, str], known: Iterable[str]) -> list[list[str]]:
    """Return name and description of each; raises LookupError unless exactly what the code knows is described."""
    known = set(known)
    if missing := sorted(known - set(described)):
        raise LookupError(f"{what}: the code reads {', '.join(missing)}; describe it in docs/reference.py")
    if unknown := sorted(set(described) - known):
        raise LookupError(f"{what}: docs/reference.py describes {', '.join(unknown)}, which the code does not read")
    return [[f"`{name}`", text] for name, text in described.items()]


def _options(macro: str) -> list[str]:
    """Return the names that a macro checks others against."""
    (file,) = MACROS.rglob(f"{macro}.sql")
    (options,) = re.findall(r"set options = \[([^\]]+)\]", file.read_text())
    return re.findall(r"'(\w+)'", options)


@lru_cache
def _code(directory: str) -> str:
    files = sorted(path for path in (ROOT / directory).rglob("*") if path.is_file() and path.suffix in SUFFIXES)
    return "\n".join(path.read_text() for path in files)


def _yaml(path: str | Path) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def _entries(file: str | Path) -> list[dict[str, Any]]:
    return list(_yaml(MACROS / file)["macros"])


def _text(text: str) -> str:
    """Return a description as Markdown: of what stands outside of backticks nothing is markup."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [re.sub(r"([_*\[\]])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads)]
    # A name stands for itself.
    lines += [[name if name.startswith("`") else f"`{name}`", *cells] for name, *cells in rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    """Escape what ends a cell. Raises LookupError where it stands as code: the site would show the backslash too."""
    if any("|" in code for code in text.split("`")[1::2]):
        raise LookupError(f"tables: GitHub and the site differ on a | within backticks; word this otherwise: {text}")
    return text.replace("|", r"\|")


def main() -> None:
    """Write the pages that differ, and say which."""
    for path, text in pages().items():
        file = ROOT / path
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            print(f"written: {path}")


if __name__ == "__main__":
    try:
        main()
    except LookupError as problem:
        sys.exit(f"reference: {problem}")
