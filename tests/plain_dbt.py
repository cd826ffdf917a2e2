"""What dbt does with the package, in plain Jinja: no dbt, no parsing of YAML, and Spark only if the warehouse is one.

A `PlainProject` takes the models that a `Project` takes, and runs them by the package's own materializations. The
warehouse behind it is a Spark session, or a recorder that notes every statement and answers from a script.
`tests/lifecycle` shows that dbt issues the very same statements.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any, NamedTuple, Protocol

import jinja2
import yaml
from dbt_common.clients.jinja import create_undefined

PACKAGE = Path(__file__).parent.parent
INVOCATION = "00000000-0000-0000-0000-000000000000"
_BLOCK = re.compile(r"{%(-?)\s*(materialization|test)\s+(\w+)\s*(\([^%]*\))?(.*?)(-?)%}", re.S)
_END = re.compile(r"{%(-?)\s*end(?:materialization|test)\s*(-?)%}")
_MACRO = re.compile(r"({%-?\s*macro\s+)(\w+)")


class CompilerError(Exception):
    """What `exceptions.raise_compiler_error` says."""


class _Returned(Exception):
    """A macro's `return`: dbt raises, too."""


class Column(NamedTuple):
    """A column of a SELECT, as dbt's adapter describes it."""

    name: str
    dtype: str


class Row(tuple[Any, ...]):
    """A row of a result, as agate has it."""

    def values(self) -> tuple[Any, ...]:
        return tuple(self)


class Rows(list[Row]):
    """A result, as `run_query` returns it."""

    def __init__(self, column_names: Sequence[str] = (), rows: Iterable[Iterable[Any]] = ()) -> None:
        super().__init__(map(Row, rows))
        self.column_names = tuple(column_names)


@dataclass(frozen=True)
class Relation:
    """A table or view, as dbt's adapter names it."""

    schema: str
    identifier: str
    type: str | None = None
    information: str | None = field(default=None, compare=False)
    database: str | None = None

    def incorporate(self, path: Mapping[str, str] | None = None, type: str | None = None) -> Relation:
        return replace(self, **(path or {}), type=type or self.type)

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.identifier) if part)


class Warehouse(Protocol):
    """What statements are sent to."""

    def query(self, sql: str) -> Rows: ...
    def columns(self, sql: str) -> list[Column]: ...
    def relation_type(self, schema: str, identifier: str) -> str | None:
        """Return `table` or `view`, or None where there is no such relation."""

    def relation_properties(self, schema: str, identifier: str) -> Mapping[str, str]:
        """Return the properties of a relation that is there."""


# --- the macros ------------------------------------------------------------------------------------------------------

_environment = jinja2.Environment(
    extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"], undefined=create_undefined(), keep_trailing_newline=False
)


@functools.cache
def _compiled(text: str) -> tuple[CodeType, tuple[str, ...]]:
    """Return the code of a file of macros and their names; a materialization or test becomes a macro of its name."""
    text = _BLOCK.sub(lambda m: f"{{%{m[1]} macro {m[2]}_{m[3]}{m[4] or '()'} {m[6]}%}}", text)
    text = _END.sub(lambda m: f"{{%{m[1]} endmacro {m[2]}%}}", text)
    # Jinja does not export names that begin with an underscore.
    names = tuple(name for _, name in _MACRO.findall(text))
    return _environment.compile(_MACRO.sub(r"\1macro__\2", text)), names


@functools.cache
def _code(text: str) -> CodeType:
    return _environment.compile(text)


@functools.cache
def _text(file: Path, modified: int) -> str:
    return file.read_text()


@functools.cache
def _files(package: Path) -> list[tuple[Path, str]]:
    """Return the files of a package's macros, each with its path in the package."""
    return [(file, str(file.relative_to(package))) for file in sorted((package / "macros").glob("**/*.sql"))]


class Macros:
    """The package's macros, to be called by their names; what is returned is a value, what is rendered a text.

    `replaced`: a planted bug: for files of the package, each passage that becomes another.
    """

    def __init__(
        self, context: dict[str, Any], package: Path = PACKAGE, replaced: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        context |= {**_environment.globals, "reconcile": self, "return": _return}
        # A module costs a millisecond, and a test uses few of them: each is made when one of its macros is called.
        self._context, self._texts, self._made = context, dict[str, str](), dict[str, Any]()
        left = dict(replaced or {})
        for file, path in _files(package):
            text = _text(file, file.stat().st_mtime_ns)
            for found, planted in left.pop(path, {}).items():
                assert text.count(found) == 1, f"{file.name} has changed: plant this bug anew where now is {found!r}"
                text = text.replace(found, planted)
            self._texts |= dict.fromkeys(_compiled(text)[1], text)
        assert not left, f"no such files: {left}"

    def get(self, name: str) -> Any:
        """Return a macro as Jinja has it; None if the package has none of this name."""
        if name not in self._made and name in self._texts:
            self._made |= _macros_of(self._texts[name], self._context)
        return self._made.get(name)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        macro = self.get(name)
        if macro is None:
            raise AttributeError(f"the package has no macro {name}")
        self.__dict__[name] = found = functools.partial(_call, macro)
        return found

    def dispatched(self, name: str, types: Sequence[str], own: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the form of a macro that dbt takes: a project's own form before the package's, of the first type.

        `own`: the macros of the project; `types`: the adapter, and those that it is built upon.
        """
        for macros in (own, self):
            for prefix in (*types, "default"):
                if form := macros.get(f"{prefix}__{name}"):
                    return functools.partial(_call, form)
        raise CompilerError(f"In dispatch: No macro named '{name}' found")


def _macros_of(text: str, context: dict[str, Any]) -> dict[str, Any]:
    code, names = _compiled(text)
    template = jinja2.Template.from_code(_environment, code, context)
    module = template.make_module(context, shared=True)
    return {name: getattr(module, f"macro__{name}") for name in names}


def _call(macro: Any, *given: Any, **named: Any) -> Any:
    try:
        return str(macro(*given, **named))
    except _Returned as returned:
        return returned.args[0]


def _return(value: Any = None) -> None:
    raise _Returned(value)


def _raise_compiler_error(message: str, node: Any = None) -> None:
    raise CompilerError(message)


# --- a project -------------------------------------------------------------------------------------------------------


def _from_json(text: Any, default: Any = None) -> Any:
    """As dbt has it: a text that is no JSON is the default."""
    try:
        return json.loads(text)
    except ValueError:
        return default


class PlainProject:
    """A project that installs the package, its models in `schema`.

    `database`: the catalog of the target, of the adapter dbt-databricks; `own_macros`: what the project's own folder of
    macros holds.
    """

    def __init__(
        self, warehouse: Warehouse, schema: str, *, file_format: str = "delta",
        replaced: Mapping[str, Mapping[str, str]] | None = None, variables: Mapping[str, Any] | None = None,
        package: Path = PACKAGE, database: str | None = None, own_macros: str = "",
    ) -> None:  # fmt: skip
        self.warehouse, self.schema, self.file_format = warehouse, schema, file_format
        self.database, self._own_macros = database, {}
        self.graph: dict[str, Any] = {"nodes": {}, "sources": {}}
        self.variables = dict(variables or {})
        self.logged: list[str] = []
        self.printed: list[str] = []
        self._texts: dict[str, str] = {}
        self.context = self._globals()
        self.macros = self._forms = Macros(self.context, package, replaced)
        self._own_macros = _macros_of(own_macros, self.context)
        views = {file.stem: file.read_text() for file in sorted((package / "models" / "monitoring").glob("*.sql"))}
        for name in sorted(views, key=lambda name: "ref(" in views[name]):  # what another reads comes before it
            self._add(f"model.reconcile.{name}", views[name], {}, {})

    def _globals(self) -> dict[str, Any]:
        adapter = SimpleNamespace(
            get_column_schema_from_query=self.warehouse.columns,
            get_relation=lambda database, schema, identifier: self._load(Relation(schema, identifier)),
            dispatch=self._dispatch,
        )
        return {
            "adapter": adapter, "graph": self.graph, "invocation_id": INVOCATION, "execute": True,
            "api": SimpleNamespace(Relation=SimpleNamespace(create=lambda **said: Relation(**said))),
            "apply_grants": lambda *given, **named: "", "run_hooks": lambda hooks: "", "pre_hooks": [],
            "post_hooks": [], "exceptions": SimpleNamespace(raise_compiler_error=_raise_compiler_error),
            "flags": SimpleNamespace(WHICH="run", EMPTY=False, FULL_REFRESH=False), "fromjson": _from_json,
            "load_relation": self._load, "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
            "location_clause": self._location, "log": lambda text, info=False: self.logged.append(text) or "",
            "modules": SimpleNamespace(re=re, datetime=datetime), "noop_statement": self._noop,
            "partition_cols": self._partitions, "print": lambda text: self.printed.append(text) or "",
            "dbt": SimpleNamespace(default__generate_schema_name=self._schema_name),
            "ref": self._ref, "run_query": self.warehouse.query,
            "selected_resources": [], "should_full_refresh": lambda: self.context["flags"].FULL_REFRESH,
            "source": self._source,
            "target": SimpleNamespace(
                schema=self.schema, name="dev", profile_name="shop", database=self.database,
                type="databricks" if self.database else "spark",
            ),
            "tojson": lambda value, sort_keys=False: json.dumps(value, sort_keys=sort_keys),
            "toyaml": lambda value, sort_keys=False: yaml.safe_dump(value, sort_keys=sort_keys),
            "var": lambda name, default=None: self.variables.get(name, default), "zip": zip,
        }  # fmt: skip

    # --- what a project holds ---

    def source(self, schema: str, *tables: str) -> None:
        """Declare staging tables as the source `lake`."""
        for table in tables:
            id_ = f"source.shop.lake.{table}"
            self.graph["sources"][id_] = {
                "unique_id": id_, "name": table, "schema": schema, "identifier": table, "resource_type": "source",
                "database": self.database,
            }  # fmt: skip

    def model(self, name: str, sql: str, columns: Mapping[str, str | Mapping[str, Any]], **properties: Any) -> None:
        """Add a model; `columns` maps names to data types, or to all that the YAML would say of a column."""
        self._add(f"model.shop.{name}", sql, columns, properties)

    def _add(self, id_: str, sql: str, columns: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        name, said = id_.split(".")[-1], dict(properties.get("config") or {})
        declared = {
            column: {"name": column, "description": "", **({"data_type": of} if isinstance(of, str) else of)}
            for column, of in columns.items()
        }
        config = {"materialized": "view", "file_format": self.file_format, "meta": {}, **said}
        node = {
            "unique_id": id_, "name": name, "alias": name, "schema": self.schema, "resource_type": "model",
            "columns": declared, "config": config, "raw_code": sql, "depends_on": {"nodes": []}, "description": "",
            "data_tests": list(properties.get("data_tests") or []), "database": self.database,
        }  # fmt: skip
        self.graph["nodes"][id_], self._texts[id_] = node, sql
        # As dbt parses: what the SQL says of the model by `config(...)`, and what it depends on.
        with self._of(node, execute=False):
            self._render(sql)
        node["alias"] = config.get("alias", name)
        node["schema"] = config.get("schema", self.schema)

    def node(self, name: str) -> dict[str, Any]:
        for id_, node in self.graph["nodes"].items():
            if id_.split(".")[-1] == name:
                return node
        # Not a StopIteration, of which Jinja makes an undefined value.
        raise LookupError(f"the project has no model {name!r}")

    # --- what dbt does ---

    def run(self, *names: str, full_refresh: bool = False, empty: bool = False) -> dict[str, str]:
        """Do what `dbt run` does, and return what each model says when it is done; a `CompilerError` passes."""
        self.begin("run", names, full_refresh=full_refresh, empty=empty)
        return {node["name"]: self.materialize(node) for node in self._selected(names)}

    def begin(self, which: str, names: Sequence[str] = (), *, full_refresh: bool = False, empty: bool = False) -> None:
        """Do what the package does at the start of every run."""
        selected = [node["unique_id"] for node in self._selected(names)]
        flags = SimpleNamespace(WHICH=which, EMPTY=empty, FULL_REFRESH=full_refresh)
        self.context |= {"flags": flags, "selected_resources": selected}
        self.macros.begin_run()

    def end(self) -> None:
        """Do what the package does at the end of every run."""
        self.macros.end_run()

    def materialize(self, node: dict[str, Any]) -> str:
        """Run one model, and return what it says."""
        with self._of(node) as context:
            self.context["sql"] = self._render(self._texts[node["unique_id"]])
            getattr(self.macros, f"materialization_{node['config']['materialized']}")()
            return str(context["said"])

    def compile(self, name: str) -> str:
        """Return the SELECT of a model, as `dbt compile` does."""
        node, flags = self.node(name), self.context["flags"]
        self.context["flags"] = SimpleNamespace(WHICH="compile", EMPTY=False, FULL_REFRESH=False)
        try:
            with self._of(node):
                return self._render(self._texts[node["unique_id"]])
        finally:
            self.context["flags"] = flags

    def test(self, test: str, model: str, which: str = "test", where: str | None = None, **arguments: Any) -> str:
        """Return the SQL of one of the package's tests on a model, or on a source, by its schema and name.

        `which`: what dbt is to do; `where`: as in a test's config, where dbt then gives a text for the relation.
        """
        schema, _, name = model.rpartition(".")
        relation: Any = Relation(schema, name, database=self.database) if schema else self.relation(model)
        if where:
            relation = f"(select * from {relation} where {where}) dbt_subquery"
        id_ = f"test.shop.{test}_{model}"
        said = {"unique_id": id_, "name": f"{test}_{model}", "resource_type": "test", "test_metadata": {"name": test}}
        with self._of({**said, "config": {}, "columns": {}, "schema": self.schema, "alias": test}):
            self.graph["nodes"][id_] = said
            self.context["flags"] = SimpleNamespace(WHICH=which, EMPTY=False, FULL_REFRESH=False)
            self.context["selected_resources"] = [id_]
            self.macros.begin_run()
            return str(getattr(self.macros, f"test_{test}")(relation, **arguments))

    def relation(self, name: str) -> Relation:
        """Return the relation of a model, as `ref` does."""
        node = self.node(name)
        return Relation(node["schema"], node["alias"], database=node["database"])

    # --- what dbt's Jinja knows ---

    def _of(self, node: dict[str, Any], execute: bool = True) -> _Within:
        return _Within(self.context, {
            "model": node, "execute": execute, "config": _Config(node["config"]), "said": "",
            "this": Relation(node["schema"], node["alias"], database=self.database),
        })  # fmt: skip

    def _render(self, text: str) -> str:
        template = jinja2.Template.from_code(_environment, _code(text), self.context)
        return template.render()

    def _selected(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Return nodes in the order in which they depend on each other: of these names, or all models."""
        models = [node for node in self.graph["nodes"].values() if node["resource_type"] == "model"]
        chosen = {id(node) for node in models if not names or node["name"] in names}
        done: set[str] = set()
        while len(done) < len(models):
            for node in models:
                waits = [i for i in node["depends_on"]["nodes"] if i in self.graph["nodes"] and i not in done]
                if node["unique_id"] not in done and not waits:
                    done.add(node["unique_id"])
                    if id(node) in chosen and node["config"]["materialized"] != "ephemeral":
                        yield node

    def _load(self, relation: Relation) -> Relation | None:
        if "." in relation.schema:
            return None  # dbt-spark notes what Spark lists in such a schema under the schema without its catalog
        if self.database:
            # Without a database, dbt-databricks looks in the old metastore. It keeps no text about a relation.
            found = self.warehouse.relation_type(f"{relation.database}.{relation.schema}", relation.identifier)
            return replace(relation, type=found) if found else None
        found = self.warehouse.relation_type(relation.schema, relation.identifier)
        if not found:
            return None
        # As Spark shows a view; of a Delta table it shows none.
        said = self.warehouse.relation_properties(relation.schema, relation.identifier) if found == "view" else {}
        shown = ", ".join(f"{name}={value}" for name, value in sorted(said.items()))
        return replace(relation, type=found, information=f"Type: VIEW\nTable Properties: [{shown}]\nx" if said else "")

    def _source(self, source: str, table: str) -> Relation:
        found = self.graph["sources"][f"source.shop.{source}.{table}"]
        self._depends(found["unique_id"])
        return Relation(found["schema"], found["identifier"], database=found["database"])

    def _ref(self, name: str) -> Relation:
        node = self.node(name)
        self._depends(node["unique_id"])
        return Relation(node["schema"], node["alias"], database=node["database"])

    def _dispatch(self, name: str, namespace: str) -> Callable[..., Any]:
        assert namespace == "reconcile", f"{name} is dispatched in another namespace: {namespace}"
        types = ("databricks", "spark") if self.database else ("spark",)
        return self._forms.dispatched(name, types, self._own_macros)

    def _depends(self, unique_id: str) -> None:
        nodes = self.context["model"].get("depends_on", {"nodes": []})["nodes"]
        if unique_id not in nodes:
            nodes.append(unique_id)

    def _schema_name(self, custom: str | None, node: Any) -> str:
        return f"\n{self.schema}{f'_{custom}' if custom else ''}\n"

    def _noop(self, name: str, message: str = "", caller: Any = None) -> str:
        self.context["said"] = message.strip()
        return ""

    def _location(self) -> str:
        root = self.context["config"].get("location_root")
        return f"\n    location '{root}/{self.context['model']['alias']}'" if root else ""

    def _partitions(self, label: str, required: bool = False) -> str:
        columns = self.context["config"].get("partition_by")
        columns = [columns] if isinstance(columns, str) else columns
        return f"\n    {label} ({','.join(columns)})" if columns else ""


class _Config:
    """What Jinja calls `config`: to be called, and asked."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said

    def __call__(self, **said: Any) -> str:
        self._said |= {**said, "meta": {**(self._said.get("meta") or {}), **(said.get("meta") or {})}}
        return ""

    def get(self, name: str, default: Any = None, **_: Any) -> Any:
        return self._said.get(name, default)


class _Within:
    """Lets the context be that of one node for a while."""

    def __init__(self, context: dict[str, Any], said: dict[str, Any]) -> None:
        self._context, self._said = context, said

    def __enter__(self) -> dict[str, Any]:
        self._before = dict(self._context)
        self._context |= self._said
        return self._context

    def __exit__(self, *_: object) -> None:
        self._context.clear()
        self._context |= self._before
