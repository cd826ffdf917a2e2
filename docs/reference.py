"""Write docs/reference/ from the code: macros, options, variables, tables and command lines.

python docs/reference.py    (or `make reference`), after a change of what it reads; a unit test compares.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
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
    "unique_key": "the column, or the list of columns, that identifies a row. `_row_id`: an Oracle table without a "
    "primary key. `_change_id`: a table without a key, where each event is a row",
    "file_format": "`delta` (default) or `iceberg`; the same for all models of a project",
    "meta": "the options of the next table",
    "tblproperties": "table properties of the base table",
    "partition_by": "partition columns of the base table; not together with `buckets`",
    "full_refresh": "as in dbt: `true` rebuilds the model in each run",
    "persist_docs": "as in dbt: `relation` and `columns` write descriptions as comments of the view",
    "grants": "as in dbt",
}
MODEL_META = {
    "fresh": "of a `current_state`: `true` makes its view also show what is staged and not yet merged",
    "fold_unchanged": "of a `history`: `false` also shows versions that change no declared column (default: `true`)",
    "base_snapshot": "`schema.table`, a copy of the model's base table: a rebuild starts from it, where records that "
    "the rows depend on were purged from staging",
    "ignored_columns": "a list of column names: no finding of `no_drift`, and no refusal of a declared column that no "
    "record has had",
    "buckets": "a number, on Iceberg: the base table gets so many buckets of its first key column, and a MERGE does "
    "not shuffle it. Valid from the next `--full-refresh`",
    "partial_records": "whether records that carry only some columns are merged column by column (default: as the "
    "source macro has it; Spanner: `true`)",
    "row_ids": "whether the base table keeps the address of each row, `_row_id` (default: as the source macro has it; "
    "Oracle: `true`). A SELECT of your own that has `_row_id` needs `true`",
    "range_deletes": "whether deletes name a range of cells, `_range` (default: as the source macro has it; Bigtable: "
    "`true`). A SELECT of your own that has `_range` needs `true`",
}
COLUMN_META = {
    "round": "`true`: a value that is too fine for the type is rounded, and not quarantined",
    "encoding": "how the text of a value is read: `hex` or `base64` (`binary`, `array<binary>`), `json`, "
    "`microseconds` or `interval` (`string`)",
    "infinity_is_null": "`true`: PostgreSQL's infinity becomes NULL (`timestamp`, `timestamp_ntz`)",
    "zero_date": "`'null'`: MySQL's zero dates become NULL (`date`, `timestamp`, `timestamp_ntz`), and are counted",
}
VARIABLES = {
    "as_of": "a position, as `{batch: 17}`: build the models as they were then, into a schema of its own. See "
    "[Any earlier moment](../materializations.md#any-earlier-moment)",
    "as_of_schema": "the schema for `as_of`; `none`: the model's own schema with `_as_of` behind its name",
    "reconcile_broadcast_records": "up to so many records Spark broadcasts the records to the base table. They must "
    "fit in memory",
    "reconcile_stalled_after": "`reconcile_lag` calls a watermark stalled that stands still for so long",
}
ENVIRONMENT = {
    "RECONCILE_WAREHOUSE": "`conf/shared`: the warehouse directory, or its address in an object store",
    "RECONCILE_METASTORE_URL": "`conf/shared`: the metastore, as `jdbc:postgresql://host:5432/metastore`",
    "RECONCILE_METASTORE_USER": "`conf/shared`: the user of the metastore's database",
    "RECONCILE_METASTORE_PASSWORD": "`conf/shared`: the password",
    "RECONCILE_PACKAGES": "more jars, as Maven coordinates with spaces between: a JDBC driver, a connector",
    "RECONCILE_JARS": "the directory of fetched jars",
    "RECONCILE_JDBC_USER": "`snapshot.py jdbc`: the user of the database",
    "RECONCILE_JDBC_PASSWORD": "`snapshot.py jdbc`: the password",
    "RECONCILE_PATIENCE": "for so many seconds a process waits until the embedded metastore is free",
    "RECONCILE_TRACEBACK": "`1`: a job that fails also shows the Python traceback",
}
# Set by one part of the package for another, or by tests.
INTERNAL = {"RECONCILE_TERMINAL", "RECONCILE_FAILPOINT"}
# Of files that are read as code; an editor leaves others beside them.
SUFFIXES = {".conf", ".properties", ".py", ".sh", ".sql", ".yml"}
# Of the macros beside source macros and tests, what users call.
OPERATIONS = ["tables_as_sources", "get_purge_statements"]
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
            "A wrong value, a misspelt option of a model or of a column, and an option of a model outside of `meta` "
            "end the run with a sentence that names the model.",
            "## Config of a model",
            "In `config(...)`, or under `config:` in the model's YAML or `models:` in `dbt_project.yml`.",
            _table(["config", "meaning"], checked("config of a model", CONFIG, config)),
            "## `meta` of a model",
            "In `config(meta={...})`, or under `config: {meta: {...}}`.",
            _table(["option", "meaning"], checked("meta of a model", MODEL_META, _options("model_settings"))),
            "## `meta` of a column",
            "Under `config: {meta: {...}}` of a column in the model's YAML. [Types](../types.md) has the details. "
            "A changed option is a changed declaration: rebuild with `--full-refresh`.",
            _table(["option", "meaning"], checked("meta of a column", COLUMN_META, _options("declared_columns"))),
        ]
    )


def _variables() -> str:
    code, conf = _code("macros") + _code("models"), _code("conf")
    variables = checked("variables", VARIABLES, re.findall(r"\bvar\('(\w+)'", code))
    environment = set(re.findall(r"\bRECONCILE_[A-Z_]*[A-Z]\b", _code("ingestion") + conf)) - INTERNAL
    places = checked("environment variables", ENVIRONMENT, environment)
    heads = ["variable", "default", "meaning"]
    return "\n\n".join(
        [
            "# Variables",
            NOTE,
            "## Of dbt",
            "In `vars:` of `dbt_project.yml`, or `--vars` of a command.",
            _table(heads, with_defaults(variables, r"\bvar\('(\w+)', '?([^()']+)'?\)", code)),
            "## Of the environment",
            "Spark is configured by `SPARK_CONF_DIR`, which points at the package's `conf/` or a copy of it. Emulators "
            "are named by `SPANNER_EMULATOR_HOST` and `BIGTABLE_EMULATOR_HOST`.",
            _table(heads, with_defaults(places, r"\${(\w+):?-((?:\${[^{}]*}|[^{}])+)}", conf)),
        ]
    )


def with_defaults(rows: list[list[str]], pattern: str, code: str) -> list[list[str]]:
    """Put behind each name its default in the code, if any. Raises LookupError unless it is the same everywhere."""
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
            "They return change records, or rows, as a SELECT: the SQL of a model.",
            *_source_macros(),
            "## Generic tests",
            "Under `data_tests:` of a model, or of a staging table as a source. An argument that is shown with its "
            "default may be left out. "
            "[Tests](../tests.md) has what each one fails on.",
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
        sections.append(f"{section}\n\nArguments: those of [`{like}`](#{like})." if said else section)
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
            "What the package makes beside your models. [Monitoring](../operations/monitoring.md) has what each is "
            "for; [Design](../design.md#base-tables-current_state) has the relations of one model, `orders__base` "
            "and its like.",
            "## Views",
            "Models of the package.",
            *map(_relation, monitoring),
            "## Tables",
            "In the target schema, written by runs and tests.",
            *map(_relation, tables),
        ]
    )


def _relation(entry: dict[str, Any]) -> str:
    columns = [[column["name"], _text(column["description"])] for column in entry["columns"]]
    return f"### `{entry['name']}`\n\n{_text(entry['description'])}\n\n{_table(['column', 'meaning'], columns)}"


def _commands() -> str:
    _importable()
    text = [
        "# Command lines",
        NOTE,
        "What `--help` of each job prints. Each is started by `spark-submit dbt_packages/reconcile/ingestion/...`; "
        "[Exit codes](../operations/exit_codes.md) are common to all.",
    ]
    for module, kinds in [
        ("append", ["datastream", "spanner", "bigtable", "snapshot"]),
        ("snapshot", ["csv", "jdbc", "spanner", "table", "files"]),
        ("parity", []),
        ("status", []),
        ("metastore", []),
    ]:
        main = import_module(module).main
        _check_kinds(module, kinds, helped(main, module, []))
        for words in [[kind] for kind in kinds] or [[]]:
            text += [f"## `{' '.join([module + '.py', *words])}`", f"```text\n{helped(main, module, words)}\n```"]
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


def helped(main: Callable[..., None], module: str, words: list[str]) -> str:
    """Return what a job's parser prints for --help, 84 characters wide. Nothing else of the job runs."""
    out, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "84"
    # The console and the like, which --help never gets to.
    rest = [None, None] if module == "append" else [None]
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
