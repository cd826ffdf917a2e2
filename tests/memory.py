"""A warehouse in memory: the package's own statements on one Spark session, without a table format.

Its tables are checkpointed frames, its views the text of their SELECT. A statement that writes becomes the SELECT of
the rows that the table holds afterwards: a MERGE is the join that SQL defines it by. Everything else runs as rendered.
`tests/lifecycle` proves that Delta's and Iceberg's tables hold the very rows that this warehouse holds.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from datastream import Staged, frame_of
from plain_dbt import Column, PlainProject, Rows
from pyspark.sql import DataFrame, SparkSession
from recorder import properties_of

_NAME = r"`([^`]+)`\.`([^`]+)`"
_MADE = re.compile(rf"create (?:or replace )?(table|view) (?:if not exists )?{_NAME}(.*?)(?:\nas\n(.*))?$", re.S)
_MERGE = re.compile(rf"merge into {_NAME} as (\w+)\nusing \((.*)\n\) as (\w+)\non (.*?)\n(when .*)$", re.S)
_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[^`'()\[\],=]+|.", re.S)
_CLAUSE = re.compile(r"when (not )?matched(?: and (.*?))? then (update set|delete|insert)(.*?)(?=\nwhen |\Z)", re.S)


class Memory:
    """The tables and views of a session, by `schema.name`."""

    def __init__(self, spark: SparkSession) -> None:
        # A session of its own, so that its settings and caches are nobody else's.
        self.spark = spark.newSession()
        self._tables: dict[str, list[DataFrame]] = {}  # every version, the last one is the present
        self._views: dict[str, str] = {}
        self._properties: dict[str, dict[str, str]] = {}
        self._commits: dict[
            int, tuple[str, dict[str, Any], str | None]
        ] = {}  # how each version was made, by its identity
        self._note: str | None = None
        # Every statement that came, with the model that it is of, for whoever asks.
        self.noted: list[tuple[str, str]] | None = None
        self.model = ""
        self._prefix = f"m{uuid.uuid4().hex[:8]}"
        # As dbt-spark sets it: casts that fail are NULL, and numbers are printed otherwise.
        self.spark.conf.set("spark.sql.ansi.enabled", "false")
        # Its writes are many and small: one partition each.
        self.spark.conf.set("spark.sql.shuffle.partitions", "1")

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        """Forget all tables, which the session would keep in memory."""
        for name, versions in self._tables.items():
            for view in (self._view(name), *(self._view(name, number) for number in range(len(versions)))):
                self.spark.catalog.dropGlobalTempView(view)
        self._tables.clear()
        self._commits.clear()

    def project(self, schema: str, replaced: Mapping[str, Mapping[str, str]] | None = None) -> MemoryProject:
        """Return a project whose models and tests live in a schema; `replaced` plants bugs."""
        return MemoryProject(self, schema, replaced)

    # --- what tests ask and do ---

    def table(self, name: str, version: int | None = None) -> DataFrame:
        """Return the rows of a table or view."""
        if name in self._views:
            return self.sql(self._views[name])
        return self._tables[name][-1 if version is None else version]

    def rows(self, name: str) -> list[Any]:
        return self.table(name).collect()

    def sql(self, sql: str) -> DataFrame:
        """Run a SELECT over the tables and views."""
        return self.spark.sql(self._resolved(sql))

    def has(self, name: str) -> bool:
        return name in self._tables or name in self._views

    def keep(self, name: str, rows: DataFrame, properties: Mapping[str, str] | None = None) -> None:
        """Let a table hold these rows."""
        self._hold(name, rows.coalesce(1).localCheckpoint(), properties)

    def _hold(self, name: str, kept: DataFrame, properties: Mapping[str, str] | None = None) -> None:
        self._tables.setdefault(name, []).append(kept)
        self._commits[id(kept)] = ("WRITE", {}, self._note)
        self._properties[name] = {**self._properties.get(name, {}), **(properties or {})}
        for view in (self._view(name), self._view(name, len(self._tables[name]) - 1)):
            kept.createOrReplaceGlobalTempView(view)

    def view(self, name: str, sql: str) -> None:
        self._views[name] = sql

    def definition(self, name: str) -> str:
        """Return what a view selects."""
        return self._views[name]

    def stage(self, name: str, rows: Iterable[Staged], at: str = "current_timestamp()") -> None:
        """Append rows to a staging table, which is made if need be; `at`: when, in SQL."""
        staged = frame_of(self.spark, rows).selectExpr(
            "record", "source", "object", "origin", "batch", f"{at} as appended_at"
        )
        self.keep(name, self._tables[name][-1].union(staged) if name in self._tables else staged)

    def delete(self, name: str, where: str) -> None:
        self.keep(name, self._tables[name][-1].where(f"not coalesce({where}, false)"))

    def drop(self, name: str) -> None:
        del self._tables[name], self._properties[name]

    def version(self, name: str) -> int:
        return len(self._tables[name]) - 1

    def restore(self, name: str, version: int, properties: Mapping[str, str] | None = None) -> None:
        """Set back the rows, and the properties too if they are given, as a RESTORE of Delta does."""
        self.keep(name, self._tables[name][version])
        self._commits[id(self._tables[name][-1])] = ("RESTORE", {"version": version}, None)
        if properties is not None:
            self._properties[name] = dict(properties)

    def forget_notes(self) -> None:
        """Let no commit have a note, as those of an earlier version of the package, or of Databricks."""
        self._commits = {kept: (operation, said, None) for kept, (operation, said, _) in self._commits.items()}

    # --- as a warehouse ---

    def query(self, sql: str) -> Rows:
        if self.noted is not None:
            self.noted.append((self.model, sql))
        asked = sql.strip()
        word = asked.split(maxsplit=1)[0]
        if word == "create":
            return self._make(asked)
        if word == "alter":
            widened = re.match(rf"alter table {_NAME} alter column (`.*`) type (\S+)$", asked)
            if widened:
                name, rows = f"{widened[1]}.{widened[2]}", self._tables[f"{widened[1]}.{widened[2]}"][-1]
                self.keep(name, rows.withColumn(_name(widened[3]), rows[widened[3]].cast(widened[4])))
                return Rows()
            altered = re.match(rf"alter table {_NAME} (?:set |add columns \((.*)\)$)", asked)
            assert altered is not None, asked
            if altered[3]:
                added = [
                    f"cast(null as {column.split()[1]}) as {column.split()[0]}" for column in altered[3].split(", ")
                ]
                name = f"{altered[1]}.{altered[2]}"
                self.keep(name, self._tables[name][-1].selectExpr("*", *added))
                return Rows()
            self._properties.setdefault(f"{altered[1]}.{altered[2]}", {}).update(properties_of(asked))
            return Rows()
        if word == "merge":
            return self._merge(asked)
        if word == "uncache":  # no cache of a table that was written is read again
            return Rows()
        if word == "insert":
            return self._insert(asked)
        if asked.startswith("show tblproperties"):
            return Rows(("key", "value"), self._properties.get(asked.split(" ")[-1].replace("`", ""), {}).items())
        if asked == "show schemas":
            return Rows(("namespace",), sorted({(name.split(".")[0],) for name in (*self._tables, *self._views)}))
        listed = re.fullmatch(r"show tables in `([^`]+)`(?: like '([^']+)')?", asked)
        if listed:
            names = [name.split(".", 1) for name in (*self._tables, *self._views)]
            of_schema = [(*name, False) for name in names if name[0] == listed[1] and name[1] == (listed[2] or name[1])]
            return Rows(("namespace", "name", "isTemporary"), of_schema)
        if asked.startswith("describe history"):
            name, limit = _plain(asked.split(" ")[2]), int(asked.split(" ")[-1])
            commits = [(version, *self._commits[id(kept)]) for version, kept in enumerate(self._tables[name])]
            return Rows(("version", "operation", "operationParameters", "userMetadata"), commits[::-1][:limit])
        noted = re.fullmatch(r"(?:set|reset) `spark\.databricks\.delta\.commitInfo\.userMetadata`(?: = `(.*)`)?", asked)
        if noted:
            self._note = noted[1]
            return Rows()
        if asked == "set":
            return Rows(("key", "value"))
        if asked.startswith("set spark.sql.extensions"):
            return Rows(("key", "value"), [("", "io.delta.sql.DeltaSparkSessionExtension")])
        if asked.startswith("drop view if exists `"):
            self._views.pop(_plain(asked.split(" ")[-1]), None)
            return Rows()
        result = self.spark.sql(self._resolved(sql))
        return Rows(result.columns, result.collect())

    def columns(self, sql: str) -> list[Column]:
        return [Column(field.name, field.dataType.simpleString()) for field in self.sql(sql).schema]

    def relation_type(self, schema: str, identifier: str) -> str | None:
        name = f"{schema}.{identifier}"
        return "table" if name in self._tables else "view" if name in self._views else None

    def relation_properties(self, schema: str, identifier: str) -> Mapping[str, str]:
        return self._properties.get(f"{schema}.{identifier}", {})

    # --- names ---

    def _view(self, name: str, version: int | None = None) -> str:
        return f"{self._prefix}__{name.replace('.', '__')}" + ("" if version is None else f"__v{version}")

    def _resolved(self, sql: str) -> str:
        """Return a statement with the session's names of tables, and views replaced by what they select."""

        def here(match: re.Match[str]) -> str:
            name = f"{match[1]}.{match[2]}"
            if name in self._views:
                return f"(\n{self._resolved(self._views[name])}\n)"
            if name not in self._tables:
                return match[0]
            return f"global_temp.`{self._view(name, None if match[3] is None else int(match[3]))}`"

        return re.sub(rf"{_NAME}(?: version as of (\d+))?", here, sql)

    def _empty(self, query: str) -> DataFrame:
        """Return a table with the columns of a SELECT and without rows, which Java makes without a job."""
        jvm: Any = self.spark._jvm
        schema = self.sql(query)._jdf.schema()
        return DataFrame(self.spark._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), schema), self.spark)

    # --- statements that write ---

    def _make(self, sql: str) -> Rows:
        made = _MADE.match(sql)
        if made is None:
            assert sql.startswith("create schema"), sql
            return Rows()
        kind, name, query = made[1], f"{made[2]}.{made[3]}", made[5]
        if "if not exists" in sql[:40] and self.has(name):
            return Rows()
        self._properties[name] = properties_of(sql)
        if kind == "view":
            self._views[name] = query
        elif query.endswith("\nwhere false"):
            self._hold(name, self._empty(query))
        else:
            assert "or replace" in sql[:40] or name not in self._tables, f"{name} exists"
            self.keep(name, self.sql(query))
        return Rows()

    def _insert(self, sql: str) -> Rows:
        into = re.match(rf"insert into {_NAME}(?: (by name)|\nreplace where ([^\n]*))?\s*\n(.*)$", sql, re.S)
        assert into is not None, sql
        name, rows = f"{into[1]}.{into[2]}", self.sql(into[5])
        known = self._tables[name][-1]
        if into[3]:
            self.keep(name, known.unionByName(_as(rows, known), allowMissingColumns=True))
        else:
            # In SQL: `union` of two frames puts nested unions together, and a cached SELECT with them is run again.
            before = f"select * from global_temp.`{self._view(name)}`" + (f" where not ({into[4]})" if into[4] else "")
            self.keep(name, self.spark.sql(f"{before}\nunion all\nselect *\nfrom (\n{self._resolved(into[5])}\n)"))
        return Rows()

    def _merge(self, sql: str) -> Rows:
        """Do what SQL says of a MERGE: each row of the source meets at most one of the target's, or is inserted."""
        merge = _MERGE.match(sql)
        assert merge is not None, sql
        schema, identifier, target, source, alias, condition, clauses = merge.groups()
        name = f"{schema}.{identifier}"
        columns = self._tables[name][-1].columns
        matched, inserted = [], None
        for clause in _CLAUSE.finditer(clauses):
            if clause[1]:
                everything = {column: f"{alias}.`{column}`" for column in columns}
                inserted = everything if clause[4].strip() == "*" else _inserted(clause[4])
            else:
                matched.append((clause[2] or "true", clause[3], _assigned(clause[4])))
        values = []
        both = f"{target}._merge_is_known and {alias}._merge_comes"
        for column in columns:
            quoted = f"`{column.replace('`', '``')}`"
            cases = [
                f"when {both} and ({guard}) then {assigned.get(column, f'{target}.{quoted}')}"
                for guard, kind, assigned in matched
                if kind == "update set"
            ]
            new = f"when not coalesce({target}._merge_is_known, false) then {inserted[column]}" if inserted else ""
            values.append(f"case {' '.join(cases)} {new} else {target}.{quoted} end as {quoted}")
        deleted = [guard for guard, kind, _ in matched if kind == "delete"]
        gone = " or ".join(f"({alias}._merge_comes and coalesce({guard}, false))" for guard in deleted) or "false"
        join = "full outer" if inserted else "left outer"
        joined = f"""
select {", ".join(values)}, {target}._merge_row as _merge_row
from (
    select *, true as _merge_is_known, monotonically_increasing_id() as _merge_row from `{schema}`.`{identifier}`
) as {target}
{join} join (
    select *, true as _merge_comes from ({source}\n)
) as {alias}
on {condition}
where not (coalesce({target}._merge_is_known, false) and ({gone}))"""
        rows = self.sql(joined).localCheckpoint()
        twice = rows.where("_merge_row is not null").groupBy("_merge_row").count().where("count > 1").count()
        assert not twice, f"{twice} rows of {name} are matched by several of the source's"
        self.keep(name, rows.drop("_merge_row"))
        return Rows()


def _plain(quoted: str) -> str:
    return quoted.replace("`", "")


def _as(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Return rows with the types that a table has."""
    types = {field.name: field.dataType for field in known.schema}
    return rows.select(*(rows[name].cast(types[name]).alias(name) for name in rows.columns))


def _parts(text: str, mark: str = ",") -> list[str]:
    """Return what stands between the marks that are in no brackets, and no part of a name or a literal."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(text):
        depth += (token in "([") - (token in ")]")
        if token == mark and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]


def _name(identifier: str) -> str:
    """Return the name that an identifier quotes, if it does."""
    return identifier[1:-1].replace("``", "`") if identifier.startswith("`") else identifier


def _assigned(text: str) -> dict[str, str]:
    """Return what `update set` assigns, by column."""
    pairs = (_parts(part, "=") for part in _parts(text))
    return {_name(column): "=".join(value) for column, *value in pairs}


def _inserted(text: str) -> dict[str, str]:
    names, _, values = (part for part in re.split(r"\)\s*(values) \(", text.strip()) if part)
    return {_name(name): value for name, value in zip(_parts(names[1:]), _parts(values[:-1]), strict=True)}


class MemoryProject(PlainProject):
    """A project whose tables are in memory."""

    def __init__(self, memory: Memory, schema: str, replaced: Mapping[str, Mapping[str, str]] | None = None) -> None:
        # The job purges nothing in memory, so nobody asks which models are registered.
        super().__init__(memory, schema, replaced=replaced, variables={"reconcile_register_models": False})
        self.memory = memory

    def begin(self, *given: Any, **named: Any) -> None:
        # Spark knows what is cached by its plan, which names the run.
        self.context["invocation_id"] = str(uuid.uuid4())
        self.memory.model = ""
        super().begin(*given, **named)

    def materialize(self, node: dict[str, Any]) -> str:
        self.memory.model = node["name"]
        return super().materialize(node)

    def failing(self, test: str, model: str, **arguments: Any) -> list[Any]:
        """Run one of the package's tests on a model, and return the rows by which it fails."""
        self.context["invocation_id"] = str(uuid.uuid4())
        return self.memory.sql(self.test(test, model, **arguments)).collect()

    def failing_tests(self, model: str) -> set[str]:
        """Run the tests that a model declares, and return the names of those that fail."""
        failing = set()
        for said in self.node(model)["data_tests"]:
            test, more = (said, {}) if isinstance(said, str) else next(iter(said.items()))
            test = test.removeprefix("reconcile.")
            if self.failing(test, model, **more.get("arguments", {})):
                failing.add(test)
        return failing
