"""The views of a Bigtable table's rows: written once, and a column added for each cell that is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from reconcile_jobs.generation.bigtable_records import OF_THE_VIEW, Cell, CellTable, named
from reconcile_jobs.generation.declarations import Declaration
from reconcile_jobs.generation.escaping import jinja_literal
from reconcile_jobs.generation.jinja_edits import columns_of_rows, rows_item, with_rows
from reconcile_jobs.generation.names import Pattern
from reconcile_jobs.generation.plan import Plan, Settings, free_path, models_of, note_refusals, plan_of
from reconcile_jobs.generation.project import Model, Project
from reconcile_jobs.generation.tables import Column, Refusal
from reconcile_jobs.generation.yaml_edits import Document, NotEditable
from reconcile_jobs.generation.yaml_text import view_text

__all__ = ["plan_of_cells"]


def plan_of_cells(
    project: Project, tables: Sequence[CellTable], refusals: Sequence[Refusal], settings: Settings
) -> Plan:
    """Return what has to be written so that each table has a model of its cells, and a view of its rows.

    The pattern of `settings` names the views; the models of cells are called after them.
    """
    of_cells = replace(settings, pattern=settings.pattern.ending_in("_cells"), is_whole=False)
    plan = plan_of(project, [cells.table for cells in tables], refusals, of_cells)
    plan.refusals += _add_rows(project, tables, of_cells, settings.pattern, plan)
    if settings.is_whole and not settings.only_columns:
        note_refusals(project, plan)
    return plan


def _add_rows(
    project: Project, tables: Sequence[CellTable], settings: Settings, pattern: Pattern, plan: Plan
) -> list[Refusal]:
    """Add to a plan what the views of rows need. Return the tables whose view would have another model's name."""
    refusals = []
    for cells in tables:
        if not cells.cells:
            continue
        models = models_of(project, cells.table, settings.staging)
        new = settings.pattern.path_of(cells.table)
        of_cells = [model.name for model in models] or [new.name]
        views = [
            m for m in project.models.values() if any(rows[-1:] == (name,) for rows in m.rows for name in of_cells)
        ]
        # One that stands elsewhere may have some of the columns on purpose.
        for view in [view for view in views if project.is_within(view.path)]:
            _update(project, view, cells, settings, plan)
        is_written = project.into.joinpath(f"{new}.sql") in plan.files
        if views or settings.only_columns or not (models or is_written):
            continue
        # A history has several versions of a cell: its rows need a SELECT that somebody writes.
        current = [m.name for m in models if m.materialized != "history"]
        current = current or ([new.name] if not models and settings.materialized != "history" else [])
        if current and (refusal := _create(project, cells, current[0], settings, pattern.path_of(cells.table), plan)):
            refusals.append(refusal)
    return refusals


def _create(
    project: Project, table: CellTable, of_cells: str, settings: Settings, path: PurePosixPath, plan: Plan
) -> Refusal | None:
    name, folder = path.name, project.into.joinpath(*path.parts[:-1])
    planned = {file.stem.lower() for file in plan.files if file.suffix == ".sql"}
    if name.lower() in {*planned, *(there.lower() for there in project.models)}:
        return Refusal(
            table.table.label,
            "two tables of one name",
            f"Another model has the name {name} already, so that there is no view of rows. Give names with `--name`, "
            "or write the view by hand, with `bigtable_rows` and any name: the next run finds it by its macro.",
        )
    columns = named(table.cells)
    config = ["materialized='view'"]
    if settings.tags:
        config.append(f"tags=[{', '.join(jinja_literal(tag) for tag in settings.tags)}]")
    listed = ",\n".join(f"     {rows_item(_item(column, cell, _own(cell)))}" for column, cell in columns.items())
    plan.files[folder / f"{name}.sql"] = (
        f"{{{{ config({', '.join(config)}) }}}}\n"
        f"{{{{ reconcile.bigtable_rows(ref({jinja_literal(of_cells)}), [\n{listed}]) }}}}\n"
    )
    if project.patch_of(name) is None:
        first, last = (Column(given, Declaration(OF_THE_VIEW[given])) for given in OF_THE_VIEW)
        described = [first, *(_described(column, _own(cell)) for column, cell in columns.items()), last]
        plan.files[free_path(project, folder, name, plan)] = view_text(name, described)
    plan.written.append(name)
    plan.news.append(f"{table.table.label} has no view of its rows")
    return None


def _update(project: Project, view: Model, table: CellTable, settings: Settings, plan: Plan) -> None:
    text = view.path.read_bytes().decode("utf-8")
    there = columns_of_rows(text)
    if there is None:
        plan.misfits.append(
            f"{view.name}: the columns of bigtable_rows are not written out in one list, so that no column can be "
            "added; add the cells that are new by hand."
        )
        plan.unchanged.append(view.name)
        return
    known = {place: column for column in there if (place := _place(column)) is not None}
    patch = project.patch_of(view.name)
    document = _document(project, patch, plan) if patch else None
    ignored = {name.lower() for name in (*view.ignored, *(document.ignored(view.name) if document else ()))}
    for cell in table.cells:
        column = known.get((cell.family, cell.qualifier), {})
        if not cell.fits(str(column.get("encoding")), str(column.get("data_type")).strip().lower()):
            plan.misfits.append(
                f"{view.name}: {column.get('name')} is declared {column.get('data_type')} with the encoding "
                f"{column.get('encoding')}, and cells of {cell.label} came that are none; declare binary with the "
                "encoding raw."
            )
    names = named([c for c in table.cells if (c.family, c.qualifier) not in known], [str(c.get("name")) for c in there])
    new = {
        name: cell for name, cell in names.items() if name.lower() not in ignored and cell.label.lower() not in ignored
    }
    if not new:
        plan.unchanged.append(view.name)
        return
    told = {name: _raw() if settings.only_columns else _own(cell) for name, cell in new.items()}
    described = [_described(name, told[name]) for name in new]
    try:
        plan.files[view.path] = with_rows(text, [_item(name, cell, told[name]) for name, cell in new.items()])
    except NotEditable as problem:
        plan.misfits.append(
            f"{view.name}: {', '.join(new)} cannot be added to {project.shown(view.path)}, since {problem}; add the "
            "columns by hand."
        )
        plan.unchanged.append(view.name)
        return
    if patch and document and document.columns(view.name):
        declared = {column.name.lower() for column in document.columns(view.name)}
        lacking = [column for column in described if column.name.lower() not in declared]
        try:
            plan.files[patch] = document.with_columns(view.name, lacking) if lacking else document.text
        except NotEditable as problem:
            plan.misfits.append(f"{view.name}: no column can be added to {project.shown(patch)}, since {problem}.")
    plan.written.append(view.name)
    plan.add_columns(view.name, described)
    plan.news.append(f"{view.name} has no column {', '.join(new)}")


def _document(project: Project, patch: Path, plan: Plan) -> Document:
    return Document(plan.files[patch] or "") if patch in plan.files else project.documents[patch]


def _own(cell: Cell) -> Declaration:
    return cell.declaration


def _raw() -> Declaration:
    """Return what holds every cell, so that the order of the batches has no part in it."""
    return Declaration("binary", "raw", "the source has not told the type")


def _described(name: str, told: Declaration) -> Column:
    # The encoding stands in the SQL; in YAML it would be an option of a model's column.
    return Column(name, Declaration(told.data_type, witness=told.witness))


def _item(name: str, cell: Cell, told: Declaration) -> dict[str, str]:
    text = cell.text
    of_cell = {"cell": f"{cell.family}:{text}"} if text is not None else {
        "cell": f"{cell.family}:", "qualifier_hex": cell.qualifier,
    }  # fmt: skip
    return {"name": name, **of_cell, "data_type": told.data_type, "encoding": str(told.encoding)}


def _place(column: dict[str, Any]) -> tuple[str, str] | None:
    """Return family and qualifier of a column that somebody wrote, as the macro reads it."""
    family, colon, qualifier = str(column.get("cell")).partition(":")
    if not colon:
        return None
    given = str(column.get("qualifier_hex") or "").lower()
    return family, given or qualifier.encode("utf-8", "surrogatepass").hex()
