"""Which files a run writes, and why some tables have no model: decided before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconcile_jobs.generation.declarations import Declaration, holds, is_moment
from reconcile_jobs.generation.escaping import in_cell, jinja_literal, jinja_value
from reconcile_jobs.generation.names import Pattern, SnapshotPattern, colliding, is_reserved
from reconcile_jobs.generation.project import MACROS, Call, Model, Project
from reconcile_jobs.generation.streams import DATASTREAM, Stream
from reconcile_jobs.generation.tables import Column, Refusal, Table
from reconcile_jobs.generation.yaml_edits import Declared, Document, NotEditable
from reconcile_jobs.generation.yaml_text import model_text, source_text

__all__ = ["NOT_GENERATED", "Plan", "Settings", "free_path", "models_of", "note_refusals", "plan_of"]

NOT_GENERATED = "_not_generated.md"


@dataclass(frozen=True)
class Settings:
    """What the command line says of the models. `staging`: schema and table."""

    staging: tuple[str, str]
    pattern: Pattern
    materialized: str = "current_state"
    tags: tuple[str, ...] = ()
    # Whether all tables of the stream are looked at, so that the list of those without a model is whole.
    is_whole: bool = True
    # Whether nothing is written but columns, into YAML that is there.
    only_columns: bool = False
    stream: Stream = DATASTREAM
    # How the tables of snapshots are called: a new model of which one is declared as a source has the test of parity.
    snapshot: SnapshotPattern | None = None


@dataclass
class Plan:
    """What a run writes: the whole text of each file that changes, None where a file goes.

    `written`: the models of which a file changes. `misfits`: sentences about models that do not fit what comes, and
    that this program does not correct. `news`: what is missing. `added`: which columns each model gets.
    """

    files: dict[Path, str | None] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    columns_added: int = 0
    models_with_new_columns: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def add_columns(self, model: str, columns: Sequence[Column]) -> None:
        """Take note that a model gets columns."""
        self.columns_added += len(columns)
        self.models_with_new_columns.append(model)
        listed = ", ".join(f"{column.name} {column.declaration.data_type}" for column in columns)
        self.added.append(f"{model}: {number_of(len(columns), 'column')} added: {listed}")

    def summary_of_columns(self, will: bool = False) -> str:
        """Return the sentence that a run ends with that adds columns alone."""
        models = number_of(len(self.models_with_new_columns), "model")
        verb = "would be added" if will else "added"
        return f"{number_of(self.columns_added, 'column')} {verb} to {models}, {len(self.unchanged):,} unchanged"

    def summary(self, not_generated: str, will: bool = False) -> str:
        """Return the sentence that a run ends with."""
        said = [
            f"{number_of(len(self.written), 'model')} {'would be ' if will else ''}written",
            f"{len(self.unchanged):,} unchanged",
        ]
        if not self.refusals:
            return ", ".join(said)
        reasons = Counter(refusal.reason for refusal in self.refusals)
        listed = ", ".join(f"{reason} ({number})" for reason, number in reasons.most_common())
        said.append(f"{len(self.refusals)} not written: {listed}")
        return f"{', '.join(said)}; see {not_generated}"


def number_of(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def plan_of(project: Project, tables: Sequence[Table], refusals: Sequence[Refusal], settings: Settings) -> Plan:
    """Return what has to be written so that each table has a model that declares its columns."""
    plan = Plan()
    if settings.only_columns:
        for table in (*tables, *(refusal.table for refusal in refusals if refusal.table)):
            for model in models_of(project, table, settings.staging):
                _update(project, model, table, settings, plan)
        return plan
    relation = _source(project, settings, plan, is_needed=bool(tables))
    for refusal in refusals:
        # What nothing tells here may be told by a model that somebody wrote.
        by_hand = models_of(project, refusal.table, settings.staging) if refusal.table else []
        for model in by_hand:
            if refusal.table:
                _update(project, model, refusal.table, settings, plan)
        if not by_hand:
            plan.refusals.append(refusal)
    missing: dict[str, Table] = {}
    for table in tables:
        models = models_of(project, table, settings.staging)
        for model in models:
            _update(project, model, table, settings, plan)
        if not models:
            missing[table.label] = table
    _create(project, missing, relation, settings, plan)
    if settings.is_whole:
        note_refusals(project, plan)
    return plan


def models_of(project: Project, table: Table, staging: tuple[str, str]) -> list[Model]:
    """Return the models below --into that call the source macro for a table, whatever their files are called."""
    within = [model for model in project.models.values() if project.is_within(model.path)]
    return [m for m in within if any(_is_of(project, call, table, staging) for call in m.calls)]


def _is_of(project: Project, call: Call, table: Table, staging: tuple[str, str]) -> bool:
    if table.source not in ("", call.source):
        return False
    if call.relation:
        known = project.staging_of(call.relation)
        reads = known or (staging[0], call.relation[-1])
        if tuple(part.lower() for part in reads) != tuple(part.lower() for part in staging):
            return False
    if any(name in call.objects for name in table.objects):
        return True
    return any(
        (schema, name) == (table.schema, table.name)
        and (None in (database, table.database) or database == table.database)
        for database, schema, name in call.tables
    )


# --- models that are there -------------------------------------------------------------------------------------------


def _update(project: Project, model: Model, table: Table, settings: Settings, plan: Plan) -> None:
    path = project.patch_of(model.name)
    if path is None and settings.only_columns:
        plan.misfits.append(f"{model.name} has no YAML that columns could be added to; run this without --columns.")
        return
    if path is None:
        key = model.unique_key or list(table.key)
        path = free_path(project, model.path.parent, model.name, plan)
        with_key, materialized = _with_key(table, key), model.materialized or settings.materialized
        plan.files[path] = _yaml(project, model.name, with_key, materialized, settings)
        plan.written.append(model.name)
        plan.news.append(f"{model.name} has no YAML yet")
        return
    document = Document(plan.files[path] or "") if path in plan.files else project.documents[path]
    declared = {column.name.lower(): column for column in document.columns(model.name)}
    former = [name for column in declared.values() for name in column.former_names]
    known = {*declared, *(name.lower() for name in (*former, *model.ignored, *document.ignored(model.name)))}
    new = [column for column in table.columns if column.name.lower() not in known]
    if settings.only_columns:
        new = [column.of_the_source() for column in new]
    if unsettled := [name for name in table.unsettled if name.lower() not in known]:
        plan.misfits.append(
            f"{model.name}: {', '.join(unsettled)} has bytes, which arrive as text, and nothing tells whether this is "
            "hex or base64; declare the column by hand, or give its encoding with --keys."
        )
    _find_misfits(model, table, declared, model.unique_key or document.unique_key(model.name), plan)
    if not new:
        plan.unchanged.append(model.name)
        return
    names = ", ".join(column.name for column in new)
    # The model may be built: then its next run fills the columns.
    new = [replace(column, added=True) for column in new]
    try:
        plan.files[path] = document.with_columns(model.name, new)
    except NotEditable as problem:
        plan.misfits.append(
            f"{model.name}: {names} cannot be added to {project.shown(path)}, since {problem}; add the lines by hand."
        )
        plan.unchanged.append(model.name)
        return
    plan.written.append(model.name)
    plan.add_columns(model.name, new)
    plan.news.append(f"{model.name} has no column {names}")


def _find_misfits(
    model: Model, table: Table, declared: Mapping[str, Declared], key: Sequence[str] | None, plan: Plan
) -> None:
    for column in table.columns:
        there = declared.get(column.name.lower())
        if there is None or there.data_type is None or str(there.meta.get("round")).lower() == "true":
            continue
        if not holds(Declaration(there.data_type), column.values):
            plan.misfits.append(_misfit(model, there, column))
        elif table.source == "mysql" and _has_lost_zero_dates(there, column):
            plan.misfits.append(
                f"{model.name}: {column.name} is declared {there.data_type}, and zero dates came, which go to "
                "quarantine; add `config: {meta: {zero_date: 'null'}}`, which makes them NULL, or declare string."
            )
    is_of_columns = key and table.named_key and key[0] not in ("_change_id", "_row_id")
    if key and is_of_columns and {name.lower() for name in key} != {name.lower() for name in table.named_key}:
        plan.misfits.append(
            f"{model.name}: its unique_key is {', '.join(key)}, and the newest records of {table.label} name "
            f"{', '.join(table.named_key)}; declare this key, and rebuild the model with --full-refresh."
        )


def _has_lost_zero_dates(there: Declared, column: Column) -> bool:
    is_asked = there.data_type is not None and is_moment(there.data_type) and there.meta.get("zero_date") != "null"
    return is_asked and column.values.zero_dates > 0


def _misfit(model: Model, there: Declared, column: Column) -> str:
    proposal = column.declaration.data_type
    if not holds(Declaration(proposal), column.values) or proposal == there.data_type:
        proposal = "string"
    return (
        f"{model.name}: {column.name} is declared {there.data_type}, and values came that it does not hold "
        f"({', '.join(sorted(column.values.shown))}); declare {proposal}, and rebuild the model with --full-refresh."
    )


# --- models that are not ---------------------------------------------------------------------------------------------


def _create(
    project: Project, tables: Mapping[str, Table], relation: tuple[str, str], settings: Settings, plan: Plan
) -> None:
    paths = {label: settings.pattern.path_of(table) for label, table in tables.items()}
    names = {label: path.name for label, path in paths.items()}
    twins = colliding(names)
    taken = {name.lower(): model for name, model in project.models.items()}
    for label, table in tables.items():
        name = names[label]
        if is_reserved(name):
            advice = f"The package has names that begin with reconcile_ for itself. Give a name with `--name`: {_OTHER}"
            plan.refusals.append(Refusal(label, "name of the package", advice))
        elif label in twins:
            others = ", ".join(sorted(other for other in names if other != label and names[other] == name))
            advice = f"{others} would have the name {name} too. Give names with `--name`: {_OTHER}"
            plan.refusals.append(Refusal(label, "two tables of one name", advice))
        elif name.lower() in taken:
            there = project.shown(taken[name.lower()].path)
            advice = f"{there} has the name {name} already. Give names with `--name`: {_OTHER}"
            plan.refusals.append(Refusal(label, "two tables of one name", advice))
        else:
            folder = project.into.joinpath(*paths[label].parts[:-1])
            if project.patch_of(name) is None:
                path = free_path(project, folder, name, plan)
                plan.files[path] = _yaml(project, name, table, settings.materialized, settings)
            else:
                _update_orphan(project, Model(name, folder / f"{name}.sql"), table, plan)
            plan.files[folder / f"{name}.sql"] = _sql(table, relation, settings)
            plan.written.append(name)
            plan.news.append(f"{table.label} has no model")


def _yaml(project: Project, name: str, table: Table, materialized: str, settings: Settings) -> str:
    snapshot = settings.snapshot.relation_of(table) if settings.snapshot else ("", "")
    declared = project.source_of(*snapshot)
    # A history has several versions of a row, and the keys of the package are no columns of a snapshot.
    is_comparable = materialized != "history" and table.key[:1] not in (("_change_id",), ("_row_id",))
    return model_text(
        name, table, materialized, settings.stream.tests_of_models, declared if declared and is_comparable else ()
    )


_OTHER = (
    "`--name '{schema}_{table}'`, or write the model by hand, with the source macro and any name: the next run finds "
    "the model by its macro."
)


def _update_orphan(project: Project, model: Model, table: Table, plan: Plan) -> None:
    """Add columns to YAML that is there before its model."""
    path = project.patch_of(model.name)
    assert path is not None
    document = Document(plan.files[path] or "") if path in plan.files else project.documents[path]
    declared = {column.name.lower() for column in document.columns(model.name)}
    if new := [column for column in table.columns if column.name.lower() not in declared]:
        try:
            plan.files[path] = document.with_columns(model.name, new)
            plan.add_columns(model.name, new)
        except NotEditable as problem:
            plan.misfits.append(f"{model.name}: no column can be added to {project.shown(path)}, since {problem}.")


def free_path(project: Project, folder: Path, name: str, plan: Plan) -> Path:
    """Return a path for a model's YAML that no file has, whatever its case."""
    there = {path.name.lower() for path in folder.iterdir()} if folder.is_dir() else set()
    number = 0
    while True:
        path = folder / (f"{name}.yml" if number == 0 else f"{name}_columns{'' if number == 1 else number}.yml")
        if path not in plan.files and path.name.lower() not in there:
            return path
        number += 1


def _sql(table: Table, relation: tuple[str, str], settings: Settings) -> str:
    config = [f"materialized={jinja_literal(settings.materialized)}", f"unique_key={jinja_value(table.key)}"]
    if settings.tags:
        config.append(f"tags=[{', '.join(jinja_literal(tag) for tag in settings.tags)}]")
    source = ", ".join(jinja_literal(name) for name in relation)
    return (
        f"{{{{ config({', '.join(config)}) }}}}\n"
        f"{{{{ reconcile.{MACROS[table.source]}(source({source}), {_named(table)}) }}}}\n"
    )


def _named(table: Table) -> str:
    """Return how the source macro is told the table."""
    if table.source in ("spanner", "bigtable"):
        return f"object={jinja_literal(table.objects[0])}"
    parts = [("database", table.database), ("schema", table.schema), ("table", table.name)]
    named = [(part, name) for part, name in parts if name is not None]
    if any("." in name for _, name in named):
        of_table = f"{{{', '.join(f'{jinja_literal(part)}: {jinja_literal(name)}' for part, name in named)}}}"
    else:
        of_table = jinja_literal(".".join(name for _, name in named))
    return f"table={of_table}"


def _with_key(table: Table, key: Sequence[str]) -> Table:
    return Table(**{**table.__dict__, "key": tuple(key)})


def _source(project: Project, settings: Settings, plan: Plan, is_needed: bool) -> tuple[str, str]:
    """Return the names of the staging table as a source; where no YAML declares it, a file is written that does."""
    schema, table = settings.staging
    if found := project.source_of(schema, table):
        return found
    name = schema.replace(".", "_")  # with a catalog the schema has a dot, which would be one of a source's name
    if not is_needed:
        return name, table
    plan.files[free_path(project, project.into, "_sources", plan)] = source_text(
        name, schema, table, settings.stream.tests
    )
    plan.news.append(f"no YAML declares the source {schema}.{table}")
    return name, table


def note_refusals(project: Project, plan: Plan) -> None:
    """Add to a plan the list of the tables without a model, if it is another one than the last run wrote."""
    path = project.into / NOT_GENERATED
    there = path.read_bytes().decode("utf-8", "replace") if path.exists() else None
    text = _not_generated(plan.refusals) if plan.refusals else None
    if text == there:
        return
    plan.files[path] = text
    before = (there or "").splitlines()
    for refusal in plan.refusals:
        if _row(refusal) not in before:
            plan.news.append(f"{refusal.label} has no model: {refusal.reason}")
    if not any(" has no model: " in sentence for sentence in plan.news):
        plan.news.append(f"{project.shown(path)} lists other tables than those without a model")


def _not_generated(refusals: Sequence[Refusal]) -> str:
    lines = [
        "# Tables without a model",
        "",
        "Each run of `generate.py` writes this file anew.",
        "",
        "| table | reason | what to do |",
        "| --- | --- | --- |",
        *(_row(refusal) for refusal in sorted(refusals, key=lambda refusal: refusal.label)),
    ]
    return "\n".join(lines) + "\n"


def _row(refusal: Refusal) -> str:
    return f"| {' | '.join(in_cell(text) for text in (refusal.label, refusal.reason, refusal.advice))} |"
