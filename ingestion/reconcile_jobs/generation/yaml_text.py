"""The YAML that is written for a model that has none, and the lines that a column becomes."""

from __future__ import annotations

from collections.abc import Sequence

from reconcile_jobs.generation.escaping import commented, jinja_literal, yaml_value
from reconcile_jobs.generation.tables import Column, Table

__all__ = ["column_in_braces", "column_lines", "model_text", "source_text", "view_text"]

_ONCE = "# Written by generate.py, once: whatever is changed here stays."


def column_lines(column: Column) -> list[str]:
    """Return the lines of an item of `columns:`, without their indentation; the first one has the name."""
    declaration = column.declaration
    witness = f"  # {commented(declaration.witness)}" if declaration.witness else ""
    lines = [f"name: {yaml_value(column.name)}", f"data_type: {yaml_value(declaration.data_type)}{witness}"]
    if column.description:
        lines.append(f"description: {yaml_value(column.description)}")
    return [*lines, *_config_of(column)]


def column_in_braces(column: Column) -> str:
    """Return the same in one line, for a list that somebody wrote in brackets; there is no room for a comment."""
    declaration = column.declaration
    parts = [f"name: {_in_braces(column.name)}", f"data_type: {_in_braces(declaration.data_type)}"]
    if column.description:
        parts.append(f"description: {_in_braces(column.description)}")
    return f"{{{', '.join([*parts, *_config_of(column)])}}}"


def _config_of(column: Column) -> list[str]:
    """Return the options of a column in one line; no line if it has none."""
    declaration = column.declaration
    encoding = [f"encoding: {declaration.encoding}"] if declaration.encoding else []
    zero_date = ["zero_date: 'null'"] if declaration.zero_dates_are_null else []
    options = ", ".join([*encoding, *zero_date, *(["added: true"] if column.added else [])])
    return [f"config: {{meta: {{{options}}}}}"] if options else []


def _in_braces(text: str) -> str:
    value = yaml_value(text)
    return f'"{value}"' if value[0] != '"' and any(mark in value for mark in ",[]{}") else value


def model_text(
    name: str, table: Table, materialized: str, tests: Sequence[str] = (), snapshot: Sequence[str] = ()
) -> str:
    """Return the YAML of a model.

    `tests`: those that it has beside the tests of its key. `snapshot`: the names of a source with the table's own rows,
    with which parity compares the model.
    """
    lines = ["models:", f"  - name: {yaml_value(name)}"]
    if table.description:
        lines.append(f"    description: {yaml_value(table.description)}")
    lines.append("    data_tests:")
    if materialized == "history":
        lines.append("      - reconcile.history_is_sound")
    if table.key and table.key[0] not in ("_change_id", "_row_id"):
        lines += ["      - reconcile.one_payload_per_sequence:", "          arguments:", *_key_lines(table)]
    if table.key and table.key[0] != "_change_id" and table.source != "bigtable":  # whose records name no key
        lines.append("      - reconcile.key_is_the_sources")
    lines += [f"      - {test}" for test in tests]
    if snapshot:
        source = f"source({', '.join(jinja_literal(name) for name in snapshot)})"
        lines += ["      - reconcile.parity:", "          arguments:", f"            compare_to: {yaml_value(source)}"]
        lines += _key_lines(table)
    if lines[-1].endswith("data_tests:"):
        lines.pop()
    lines.append("    columns:")
    for name in table.left_out:
        lines.append(f"      # not declared, since the package takes no such name: {commented(name)}")
    for column in table.columns:
        first, *rest = column_lines(column)
        lines += [f"      - {first}", *(f"        {line}" for line in rest)]
    return f"{_ONCE} A later run adds columns that are new.\n" + "\n".join(lines) + "\n"


def _key_lines(table: Table) -> list[str]:
    keys = [yaml_value(key) for key in table.key]
    if len(keys) == 1:
        return [f"            key: {keys[0]}"]
    return ["            key:", *(f"              - {key}" for key in keys)]


def view_text(name: str, columns: Sequence[Column]) -> str:
    """Return the YAML of a view of rows."""
    lines = ["models:", f"  - name: {yaml_value(name)}", "    columns:"]
    for column in columns:
        first, *rest = column_lines(column)
        lines += [f"      - {first}", *(f"        {line}" for line in rest)]
    return f"{_ONCE} A later run adds columns that are new.\n" + "\n".join(lines) + "\n"


def source_text(name: str, schema: str, table: str, tests: Sequence[str]) -> str:
    """Return the YAML of the staging table as a source, with the tests that cover all models that read it."""
    lines = ["sources:", f"  - name: {yaml_value(name)}", f"    schema: {yaml_value(schema)}", "    tables:"]
    lines += [f"      - name: {yaml_value(table)}", "        data_tests:", *(f"          - {test}" for test in tests)]
    return f"{_ONCE}\n" + "\n".join(lines) + "\n"
