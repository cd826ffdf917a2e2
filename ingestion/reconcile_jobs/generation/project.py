"""A dbt project as it is: its models that call a source macro, and where its YAML speaks of models and sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError

from reconcile_jobs.generation.yaml_edits import Document, UnreadableYaml, paths_of_models
from reconcile_jobs.process.errors import UsageError

__all__ = ["MACROS", "Call", "Model", "Project", "argument", "calls_of", "constant", "parsed"]

_environment = Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])
# The macros by the source of a table, and what their arguments are.
MACROS = {
    **{source: f"datastream_{source}" for source in ("mysql", "oracle", "postgresql", "sqlserver")},
    "spanner": "spanner_change_stream",
    "bigtable": "bigtable_change_stream",
}
_SOURCES = {macro: source for source, macro in MACROS.items()}
_ARGUMENTS = {
    "spanner": ("relation", "object", "columns"),
    "bigtable": ("relation", "object", "garbage_collection", "columns"),
}
_OF_DATASTREAM = ("relation", "object", "generations", "columns", "table")


@dataclass(frozen=True)
class Call:
    """What a source macro is called with, as far as it is written out.

    `relation`: the names in `source(...)`, or the one in `ref(...)`. `tables`: database, schema and table of each.
    """

    source: str
    relation: tuple[str, ...]
    tables: tuple[tuple[str | None, str, str], ...]
    objects: tuple[str, ...] = ()


@dataclass
class Model:
    """A model of the project: its file, the calls in it, and what its `config(...)` says, as far as it is written.

    `ignored`: the columns in `meta={'ignored_columns': [...]}`. `rows`: the relations whose cells it has as rows.
    """

    name: str
    path: Path
    calls: list[Call] = field(default_factory=list)
    unique_key: list[str] | None = None
    ignored: list[str] = field(default_factory=list)
    materialized: str | None = None
    rows: list[tuple[str, ...]] = field(default_factory=list)


class Project:
    """What stands below `into`, and beside it in the models of the same project.

    `unreadable`: files that may have models and cannot be read as Jinja, with the reason.
    """

    def __init__(self, into: Path) -> None:
        self.into = into.resolve()
        if self.into.exists() and not self.into.is_dir():
            raise UsageError(f"--into {into} is a file: name a folder, as models/shop.")
        self.top = _top(self.into)
        self.unreadable: dict[Path, str] = {}
        self.models: dict[str, Model] = {}
        self.documents: dict[Path, Document] = {}
        self._patches: dict[str, Path] = {}
        for path in sorted(_files(self.top)):
            if path.suffix == ".sql":
                self._read_model(path)
            elif path.suffix in (".yml", ".yaml"):
                self._read_yaml(path)

    def shown(self, path: Path) -> str:
        """Return a path as people type it."""
        try:
            return str(path.relative_to(Path.cwd()))
        except ValueError:
            return str(path)

    def patch_of(self, model: str) -> Path | None:
        """Return the file whose YAML describes a model."""
        return self._patches.get(model)

    def source_of(self, schema: str, table: str) -> tuple[str, str] | None:
        """Return the names by which models call a table as a source, None if no YAML declares it."""
        for document in self.documents.values():
            for source, name, of_schema, identifier in document.sources():
                if (of_schema.lower(), identifier.lower()) == (schema.lower(), table.lower()):
                    return source, name
        return None

    def staging_of(self, relation: tuple[str, ...]) -> tuple[str, str] | None:
        """Return schema and table of a source as a model calls it, None where no YAML declares it."""
        for document in self.documents.values():
            for source, name, schema, identifier in document.sources():
                if (source, name) == relation:
                    return schema, identifier
        return None

    def is_within(self, path: Path) -> bool:
        """Whether a file stands below `into`."""
        return path.is_relative_to(self.into)

    def _read_model(self, path: Path) -> None:
        text = _text(path)
        model = Model(path.stem, path)
        if any(macro in text for macro in (*_SOURCES, "bigtable_rows")):
            try:
                _read_calls(parsed(text), model)
            except TemplateSyntaxError as problem:
                self.unreadable[path] = f"line {problem.lineno}: {problem.message}"
        # Names are the project's: of two files of one name dbt takes neither.
        self.models.setdefault(model.name, model)

    def _read_yaml(self, path: Path) -> None:
        text = _text(path)
        if not re.search(r"\b(?:models|sources)\b", text):
            return
        try:
            document = Document(text)
        except UnreadableYaml as problem:
            raise UsageError(
                f"{self.shown(path)} is no YAML ({problem}): correct it, and run this again. Nothing was written."
            ) from None
        self.documents[path] = document
        for model in document.models():
            self._patches.setdefault(model, path)


def _top(into: Path) -> Path:
    """Return the folder of models that `into` belongs to, itself where no dbt project is around it."""
    for parent in (into, *into.parents):
        settings = parent / "dbt_project.yml"
        if settings.is_file():
            try:
                paths = paths_of_models(_text(settings))
            except UnreadableYaml as problem:
                raise UsageError(f"{settings} is no YAML ({problem}): correct it, and run this again.") from None
            tops = [parent / path for path in paths if into.is_relative_to(parent / path)]
            return tops[0] if tops else into
    return into


def _files(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            if name.endswith((".sql", ".yml", ".yaml")) and not name.startswith("."):
                yield Path(folder) / name


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"{path} cannot be read: {why}. Nothing was written.") from None


def parsed(text: str) -> nodes.Template:
    """Return the syntax tree of a template. Raises TemplateSyntaxError."""
    return _environment.parse(text)


def calls_of(template: nodes.Template) -> Iterator[tuple[str, nodes.Call]]:
    """Yield the calls of the package's macros with their names."""
    for call in template.find_all(nodes.Call):
        callee = call.node
        package = callee.node if isinstance(callee, nodes.Getattr) else None
        if isinstance(callee, nodes.Getattr) and isinstance(package, nodes.Name) and package.name == "reconcile":
            yield callee.attr, call


def argument(call: nodes.Call, names: Sequence[str], name: str) -> nodes.Node | None:
    """Return an argument of a call whose arguments have names in this order; None if it is not given."""
    given = dict(zip(names, call.args, strict=False)) | {pair.key: pair.value for pair in call.kwargs}
    return given.get(name)


def _read_calls(template: nodes.Template, model: Model) -> None:
    for call in template.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "config":
            said = {pair.key: constant(pair.value) for pair in call.kwargs}
            if (key := said.get("unique_key")) is not None:
                model.unique_key = [key] if isinstance(key, str) else [str(name) for name in key]
            if isinstance(meta := said.get("meta"), dict):
                model.ignored = [str(name) for name in meta.get("ignored_columns") or []]
            if said.get("materialized"):
                model.materialized = str(said["materialized"])
    for name, call in calls_of(template):
        if name in _SOURCES:
            model.calls.append(_call(_SOURCES[name], call))
        elif name == "bigtable_rows":
            model.rows.append(_relation(argument(call, ("relation", "columns"), "relation")))


def _relation(relation: nodes.Node | None) -> tuple[str, ...]:
    """Return the names in `source(...)` or `ref(...)`."""
    parts = [constant(part) for part in relation.args] if isinstance(relation, nodes.Call) else []
    return tuple(str(part) for part in parts if part is not None)


def _call(source: str, call: nodes.Call) -> Call:
    names = _ARGUMENTS.get(source, _OF_DATASTREAM)
    tables, objects = (constant(argument(call, names, name)) for name in ("table", "object"))
    listed = [tables] if isinstance(tables, str | dict) else tables or []
    places = [place for name in listed if (place := _place(name)) is not None]
    of_objects = tuple([objects] if isinstance(objects, str) else objects or [])
    return Call(source, _relation(argument(call, names, "relation")), tuple(places), of_objects)


def _place(name: Any) -> tuple[str | None, str, str] | None:
    if isinstance(name, dict):
        return name.get("database"), str(name.get("schema")), str(name.get("table"))
    parts = str(name).split(".")
    if len(parts) not in (2, 3):
        return None
    return parts[0] if len(parts) == 3 else None, parts[-2], parts[-1]


def constant(node: nodes.Node | None) -> Any:
    """Return the value of what is written out, None of what is only known when dbt runs."""
    if not isinstance(node, nodes.Expr):
        return None
    try:
        return node.as_const()
    except nodes.Impossible:
        return None
